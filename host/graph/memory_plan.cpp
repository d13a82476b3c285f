// SPDX-License-Identifier: Apache-2.0
#include "graph/memory_plan.hpp"

#include "runtime/runtime.hpp"
#include "runtime/storage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

constexpr std::uint64_t kAlignment = 512;  // bytes, as for the allocator's blocks

struct Placed {
  std::uint64_t begin, end;
  int first, last;
};

/// Lowest offset of a segment at which `bytes` are free from node `first` to node `last`. `placed` is sorted by begin.
std::uint64_t lowest_free(const std::vector<Placed>& placed, std::uint64_t bytes, int first, int last) {
  std::uint64_t at = 0;
  for (const Placed& p : placed) {
    if (p.last < first || last < p.first) continue;
    if (p.begin >= at + bytes) break;
    at = std::max(at, p.end);
  }
  return at;
}

}  // namespace

MemoryPlan plan_memory(std::span<const Lifetime> lifetimes, std::span<const std::uint64_t> existing, std::uint64_t limit) {
  MemoryPlan plan;
  plan.places.resize(lifetimes.size());
  std::vector<std::vector<Placed>> segments(existing.size());
  std::vector<std::uint64_t> capacities(existing.begin(), existing.end());
  plan.segments.assign(existing.begin(), existing.end());
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  for (std::size_t i : order) {
    const Lifetime& l = lifetimes[i];
    std::uint64_t bytes = (std::max<std::uint64_t>(l.bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    for (std::size_t s = 0;; ++s) {
      if (s == segments.size()) {  // a new segment, which may grow up to the limit
        segments.emplace_back();
        capacities.push_back(limit > 0 ? std::max(limit, bytes) : UINT64_MAX);
        plan.segments.push_back(0);
      }
      std::uint64_t at = lowest_free(segments[s], bytes, l.first, l.last);
      if (bytes > capacities[s] || at > capacities[s] - bytes) continue;
      Placed placed{at, at + bytes, l.first, l.last};
      segments[s].insert(std::upper_bound(segments[s].begin(), segments[s].end(), placed, [](const Placed& a, const Placed& b) { return a.begin < b.begin; }),
                         placed);
      plan.segments[s] = std::max(plan.segments[s], at + bytes);
      plan.places[i] = {static_cast<int>(s), at};
      break;
    }
  }
  return plan;
}

std::vector<Placement> GraphArena::place(std::span<const Lifetime> lifetimes, const std::shared_ptr<StreamImpl>& stream) {
  if (lifetimes.empty()) return {};
  std::lock_guard lock(mutex_);
  std::vector<std::uint64_t> existing;
  for (const auto& segment : segments_) existing.push_back(segment->bytes());
  MemoryPlan plan = plan_memory(lifetimes, existing, claimed_traits(runtime_.device()).max_alloc_bytes);
  std::vector<std::shared_ptr<Storage>> more;
  for (std::size_t s = existing.size(); s < plan.segments.size(); ++s) more.push_back(std::make_shared<Storage>(stream, plan.segments[s], "Graph"));
  segments_.insert(segments_.end(), more.begin(), more.end());
  return plan.places;
}

std::shared_ptr<Storage> GraphArena::segment(int index) const {
  std::lock_guard lock(mutex_);
  return segments_[static_cast<std::size_t>(index)];
}

int GraphArena::segments() const {
  std::lock_guard lock(mutex_);
  return static_cast<int>(segments_.size());
}

std::uint64_t GraphArena::bytes() const {
  std::lock_guard lock(mutex_);
  std::uint64_t all = 0;
  for (const auto& segment : segments_) all += segment->bytes();
  return all;
}

std::shared_ptr<GraphArena> GraphArena::of(Runtime& runtime, PoolId pool) {
  struct Arenas {
    std::mutex mutex;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::weak_ptr<GraphArena>> by_pool;
  };
  static auto* all = new Arenas;
  if (pool == PoolId{}) pool = {new_pool().second, 0};
  std::lock_guard lock(all->mutex);
  auto& known = all->by_pool[{pool.first, pool.second}];
  std::shared_ptr<GraphArena> arena = known.lock();
  if (arena && &arena->runtime() != &runtime)
    throw Error(ErrorCode::invalid_argument, "Graph::capture_begin",
                fmt::format("a pool's graphs must be of one device, got pool {{{}, {}}} that graphs of device {} use", pool.first, pool.second,
                            arena->runtime().device().index));
  if (!arena) known = arena = std::make_shared<GraphArena>(runtime, pool);
  std::erase_if(all->by_pool, [](const auto& row) { return row.second.expired(); });
  return arena;
}

}}}  // namespace clutch::v0::detail
