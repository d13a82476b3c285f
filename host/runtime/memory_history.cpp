// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory_history.hpp"

#include "runtime/heap.hpp"

#include <algorithm>
#include <array>
#include <chrono>

namespace clutch { inline namespace v0 { namespace detail {

namespace {
constexpr std::array<std::string_view, 9> kActions{"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap",
                                                   "oom",   "snapshot"};
}  // namespace

void MemoryHistory::begin(const MemoryHistoryOptions& options) {
  // The newest entries of before stay, in order.
  std::rotate(ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(next_), ring_.end());
  next_ = 0;
  const std::size_t most = static_cast<std::size_t>(std::min<std::uint64_t>(options.max_entries, ring_.max_size()));
  if (options.clear_history) ring_.clear();
  if (ring_.size() > most) ring_.erase(ring_.begin(), ring_.end() - static_cast<std::ptrdiff_t>(most));
  most_ = most;
  on_ = true;
}

void MemoryHistory::add(const Event& event) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  Entry entry{event, std::chrono::duration_cast<std::chrono::microseconds>(now).count()};
  if (ring_.size() < most_) {
    ring_.push_back(entry);
    return;
  }
  ring_[next_] = entry;
  next_ = (next_ + 1) % ring_.size();
}

std::vector<MemoryTraceEntry> MemoryHistory::entries() const {
  std::vector<MemoryTraceEntry> all;
  all.reserve(ring_.size());
  for (std::size_t i = 0; i < ring_.size(); ++i) {
    const Entry& entry = ring_[(next_ + i) % ring_.size()];
    const Event& e = entry.event;
    all.push_back({.action = kActions[static_cast<std::size_t>(e.action)],
                   .address = e.address,
                   .size = e.size,
                   .stream = e.stream,
                   .pool = e.pool,
                   .time_us = entry.time_us,
                   .label = e.label ? e.label->name : std::string()});
  }
  return all;
}

}}}  // namespace clutch::v0::detail
