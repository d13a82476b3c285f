// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/kernel.hpp>

#include "program/interned.hpp"

namespace clutch::inline v0::detail {

/// Makes `text` what last_plan() returns on this thread. Each dispatch does so with the plan of its kernel; an op of which the last dispatch is not the
/// one that tells what it did says so behind it.
void note_plan(const Interned& text) noexcept;
/// The text last noted on this thread, or an empty one.
const Interned& noted_plan() noexcept;

/// What this thread enqueued last.
struct LastLaunch {
  static constexpr std::uint64_t kNone = UINT64_MAX;
  std::uint64_t kernel = kNone;  ///< id: the kernel goes with its runtime
  Geometry geometry;
};
LastLaunch& last_launch() noexcept;

}  // namespace clutch::inline v0::detail
