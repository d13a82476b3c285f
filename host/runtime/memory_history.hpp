// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/allocator.hpp>

#include <cstdint>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

struct MemoryLabel;

/// What happened to memory, the newest events of a heap.
class MemoryHistory {
 public:
  enum class Action : std::uint8_t { alloc, free_requested, free_completed, segment_alloc, segment_free, segment_map, segment_unmap, oom, snapshot };
  struct Event {
    Action action = Action::alloc;
    std::uint64_t address = 0, size = 0, stream = 0;
    PoolId pool;
    const MemoryLabel* label = nullptr;
  };

  bool on() const noexcept { return on_; }
  void begin(const MemoryHistoryOptions& options);
  void end() noexcept { on_ = false; }
  /// Adds an event that happens now.
  void add(const Event& event);
  std::vector<MemoryTraceEntry> entries() const;

 private:
  struct Entry {
    Event event;
    std::int64_t time_us = 0;
  };
  bool on_ = false;
  std::size_t most_ = 0;
  std::vector<Entry> ring_;
  std::size_t next_ = 0;  ///< where the next entry goes once the ring is full
};

}}}  // namespace clutch::v0::detail
