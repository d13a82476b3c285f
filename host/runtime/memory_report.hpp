// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/allocator.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// Labels that have a number of their own at each point of a history: a program may make a label for each allocation.
constexpr std::size_t kPointLabels = 64;

/// Bytes in blocks over a history, by label.
struct MemoryTimeline {
  struct Point {
    std::size_t event = 0;             ///< number of allocations and frees before it
    std::vector<std::uint64_t> bytes;  ///< of each label; in `points` of the first kPointLabels, then of all others together
  };
  std::vector<std::string> labels;            ///< the ones with most bytes at the peak first
  std::vector<Point> points;                  ///< of each part of the history the one with most bytes in all
  std::size_t events = 0;                     ///< allocations and frees
  Point peak;                                 ///< the first with most bytes in all
  std::vector<std::uint64_t> blocks_at_peak;  ///< of each label
  std::uint64_t reserved_at_peak = 0;         ///< bytes of segments then
  std::uint64_t raised_by_bytes = 0;          ///< the allocation that led to the peak; 0: it was there before the history
  std::string raised_by_label;
};

/// Goes through a device's history, for at most `most_points` points. Blocks that were there before it begin are known by their ends, and by being there at the
/// end.
MemoryTimeline timeline_of(const MemorySnapshot& snapshot, std::size_t device, std::size_t most_points = 1000);

/// A snapshot as PyTorch's viewers read it.
std::string pickle_of(const MemorySnapshot& snapshot);
/// A snapshot as a page that needs nothing else.
std::string page_of(const MemorySnapshot& snapshot);

}}}  // namespace clutch::v0::detail
