// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

namespace clutch { inline namespace v0 { namespace detail {

/// A number that goes up and down, with its peak and what was added and taken away in all.
struct Counter {
  std::uint64_t current = 0, peak = 0, allocated = 0, freed = 0;
  void add(std::uint64_t n) {
    current += n;
    allocated += n;
    peak = std::max(peak, current);
  }
  void remove(std::uint64_t n) {
    current -= n;
    freed += n;
  }
  void change(std::int64_t n) { n >= 0 ? add(static_cast<std::uint64_t>(n)) : remove(static_cast<std::uint64_t>(-n)); }
};

/// A counter of all blocks or segments, and one of those of each class.
struct Counters {
  Counter all, small, large;
  Counter& of(bool is_small) { return is_small ? small : large; }
  void add(bool is_small, std::uint64_t n) { all.add(n), of(is_small).add(n); }
  void remove(bool is_small, std::uint64_t n) { all.remove(n), of(is_small).remove(n); }
  void change(bool is_small, std::int64_t n) { all.change(n), of(is_small).change(n); }
};

/// What PyTorch's allocator counts.
struct MemoryCounters {
  Counters allocation, allocated_bytes, segment, reserved_bytes, active, active_bytes, inactive_split, inactive_split_bytes, requested_bytes;
  Counter oversize_allocations, oversize_segments;
  std::uint64_t alloc_retries = 0, ooms = 0, oom_rejections = 0, sync_all_streams = 0, device_allocs = 0, device_frees = 0;

  void reset_peaks();
  void reset_accumulated();
  /// The numbers under PyTorch's keys.
  std::map<std::string, std::uint64_t> by_key(std::uint64_t max_split_size) const;
};

}}}  // namespace clutch::v0::detail
