// SPDX-License-Identifier: Apache-2.0
#pragma once
// Allocations of a recorded history, made again by the allocator with other settings and without a device.
#include <clutch/allocator.hpp>

#include "runtime/pickle.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace clutch_memory {

struct TraceStep {
  enum class Kind : std::uint8_t {
    alloc,
    free_requested,
    free_completed,
    unused,  ///< the recorded pool had no segment any more: it has ended, or the cache was emptied
  } kind = Kind::alloc;
  std::uint64_t block = 0;  ///< number of the allocation
  std::uint64_t bytes = 0;
  std::uint64_t stream = 0;
  clutch::PoolId pool = {};
};

/// Where segments come from in a replay.
struct Segments {
  std::uint64_t page = 0;            ///< bytes of the pages that segments hold; 0: they are held as a whole
  std::uint64_t reservable = 0;      ///< bytes that segments can grow to; 0: they do not grow in place
  std::uint64_t device = 0;          ///< bytes of the device; 0: not known, without bound
  std::uint64_t limit = UINT64_MAX;  ///< bytes that may be held, unless the settings have a limit of their own

  /// Bytes that may be held with the settings; UINT64_MAX: without limit.
  std::uint64_t allowed(const clutch::AllocatorSettings& settings) const;
};

struct Replayed {
  std::uint64_t requested_peak = 0;  ///< bytes that callers asked for
  std::uint64_t reserved_peak = 0;   ///< bytes of segments
  std::uint64_t segments = 0;        ///< that were made
  std::uint64_t failed = 0;          ///< allocations for which the limit left no memory
  double fragmentation() const { return requested_peak == 0 ? 1 : static_cast<double>(reserved_peak) / static_cast<double>(requested_peak); }
};

/// A snapshot that clutch or PyTorch wrote. Errors: io if it is none.
clutch::MemorySnapshot snapshot_of(const clutch::detail::PickleValue& pickle);
/// The allocations of a device's history. Blocks that were there before it are allocated first.
std::vector<TraceStep> steps_of(const clutch::MemorySnapshot& snapshot, std::size_t device);
/// Makes the allocations as a device's pool makes them; those that fail and what is done with them are left out.
Replayed replay(const std::vector<TraceStep>& steps, const clutch::AllocatorSettings& settings, const Segments& from);
/// Which of the settings change nothing in a replay, and why, a sentence each.
std::vector<std::string> without_effect(const clutch::AllocatorSettings& settings, const Segments& from);

}  // namespace clutch_memory
