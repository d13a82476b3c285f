// SPDX-License-Identifier: Apache-2.0
#pragma once
// A heap without a device, and what the model of PyTorch's allocator makes of a recorded history.
#include "runtime/torch_allocator_model.hpp"

#include "runtime/heap.hpp"
#include "runtime/segment_growth.hpp"
#include "tools/memory_replay.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace clutch::testing {

/// A Heap that is used as the pool uses it, with segments of nothing.
class Driven {
 public:
  Driven(const AllocatorSettings& settings, std::uint64_t page, std::uint64_t reservable)
      : settings_(reservable > 0 ? detail::with_growth(settings) : settings), heap_(page), reservable_(reservable) {}
  detail::Block* malloc(std::uint64_t bytes, std::uint64_t stream, PoolId pool = {}) {
    const std::uint64_t size = detail::rounded_bytes(settings_, bytes);
    const bool grows = settings_.expandable_segments && reservable_ >= size;
    const detail::HeapKey key{stream, pool, detail::is_small(size, grows)};
    detail::Block* block = heap_.find(settings_, key, size);
    if (!block) {
      block = heap_.add(settings_, key, {}, grows ? reservable_ : detail::new_segment_bytes(settings_, size, heap_.reserved(), 0), grows).first;
    }
    const std::uint64_t before = heap_.reserved(), taken = detail::Heap::bytes_taken(settings_, *block, size), missing = heap_.missing(*block, taken);
    heap_.take(settings_, *block, taken, bytes, stream, heap_.label("test"));
    EXPECT_EQ(heap_.reserved() - before, missing);
    return block;
  }
  void free(detail::Block* block) {
    heap_.release(*block);
    heap_.merge(block);
  }
  void empty_cache() {
    remove_unused([](const detail::Segment&) { return true; });
  }
  void end_pool(PoolId pool) {
    remove_unused([&](const detail::Segment& segment) { return segment.pool == pool; });
  }
  detail::Heap& heap() { return heap_; }

 private:
  template <class Which>
  void remove_unused(Which which) {
    for (auto at = heap_.segments().begin(); at != heap_.segments().end();) {
      detail::Segment& segment = *at++->second;
      if (detail::Heap::is_whole(segment) && which(segment)) heap_.remove(segment);
    }
  }

  AllocatorSettings settings_;
  detail::Heap heap_;
  std::uint64_t reservable_;
};

inline std::uint64_t address_of(const detail::Block& block) { return block.segment->address + block.offset; }

/// The model of PyTorch's allocator after the steps. A stream of a private pool is one of its own to it.
inline TorchAllocatorModel modelled(const std::vector<clutch_memory::TraceStep>& steps) {
  using Kind = clutch_memory::TraceStep::Kind;
  TorchAllocatorModel model;
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>, int> streams;
  std::map<std::uint64_t, std::uint64_t> where;
  for (const clutch_memory::TraceStep& step : steps) {
    if (step.kind == Kind::alloc)
      where[step.block] =
          model.malloc(step.bytes, streams.try_emplace({step.stream, step.pool.first, step.pool.second}, static_cast<int>(streams.size())).first->second);
    else if (step.kind == Kind::free_requested)
      model.request_free(where.at(step.block));
    else if (step.kind == Kind::free_completed)
      model.complete_free(where.at(step.block));
  }
  return model;
}

}  // namespace clutch::testing
