// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernels of the caller's that work on the Symmetric memory of all ranks, and signal other ranks.
//
//   const std::string text = dist::symmetric_text(memory, R"(
//   __kernel void shift(uint n, CLUTCH_SYMMETRIC) {
//     const uint i = get_global_id(0), next = (CLUTCH_RANK + 1) % CLUTCH_RANKS;
//     if (i < n) CLUTCH_PART(float, next)[n + i] = CLUTCH_PART(float, CLUTCH_RANK)[i];
//   })");
//   launch({.text = text, .entry = "shift"}, {.global = n}, dist::symmetric_arguments(memory, {value(n)}));
//   memory.signal(next, 0);                        // behind the kernel, in the stream's order
#include <clutch/dist.hpp>
#include <clutch/kernel.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace dist {

/// OpenCL C of the caller's with these words in front of it, for KernelSource::text with Addressing::pointer. The text
/// is the same on all ranks of a group.
/// Parameters: CLUTCH_SYMMETRIC stands for an entry's last ones, which symmetric_arguments() binds.
/// Ranks: CLUTCH_RANK is this one, CLUTCH_RANKS how many there are.
/// Memory: CLUTCH_PART(T, r) is where the part of rank r begins, a `__global T*`.
/// Signals: CLUTCH_SIGNAL(to, channel, add) adds to the counter of this rank at rank `to`, when the item's own stores
///   before it are done, those of its work-group behind a barrier. Behind stores of several work-groups
///   Symmetric::signal() stands after the kernel. CLUTCH_COUNTER(from, channel) is the counter of rank `from` here, as
///   it is now.
/// Waits: OpenCL promises no progress between work-groups, nor between kernels: Symmetric::wait_signal() before the
///   kernel waits, never a loop in it.
/// Errors: invalid_argument for an empty memory; not_supported unless all_direct().
CLUTCH_DIST_API std::string symmetric_text(const Symmetric& memory, std::string_view text);

/// The arguments of such an entry: the caller's own, then those of CLUTCH_SYMMETRIC, as long as the memory lives. All
/// parts may be written.
/// Ranks: two buffers for each, of which launch() takes as many as DeviceTraits::max_argument_bytes allow: about 30
///   ranks at the least that OpenCL has, 1024 bytes.
/// Errors: as symmetric_text().
CLUTCH_DIST_API std::vector<Argument> symmetric_arguments(const Symmetric& memory, std::vector<Argument> own = {});

}}}  // namespace clutch::v0::dist
