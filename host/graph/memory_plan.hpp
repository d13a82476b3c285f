// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/allocator.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

class Runtime;
class Storage;
class StreamImpl;

/// Address of a temporary: a segment of the arena and a byte offset in the segment.
struct Placement {
  int segment = -1;
  std::uint64_t offset = 0;
};

/// A temporary to be placed: `bytes` that are in use from node `first` to node `last`.
struct Lifetime {
  std::uint64_t bytes = 0;
  int first = 0, last = 0;
};

struct MemoryPlan {
  std::vector<Placement> places;        ///< one for each lifetime
  std::vector<std::uint64_t> segments;  ///< bytes that each segment needs
};

/// Places temporaries: the largest first, each at the lowest free offset, so that those with common nodes never overlap. `existing` are sizes of present
/// segments in bytes; new segments are added as needed. No segment grows above `limit` bytes (0: no limit).
MemoryPlan plan_memory(std::span<const Lifetime> lifetimes, std::span<const std::uint64_t> existing, std::uint64_t limit);

/// Segments that hold temporaries of the graphs of one pool. They are blocks of the stream's allocator, to which they return.
class GraphArena {
 public:
  GraphArena(Runtime& runtime, PoolId pool) : runtime_(runtime), pool_(pool) {}
  Runtime& runtime() const noexcept { return runtime_; }
  PoolId pool() const noexcept { return pool_; }
  /// Plans the temporaries and allocates their memory. Errors: out_of_memory, after which nothing is placed.
  std::vector<Placement> place(std::span<const Lifetime> lifetimes, const std::shared_ptr<StreamImpl>& stream);
  std::shared_ptr<Storage> segment(int index) const;
  int segments() const;
  std::uint64_t bytes() const;

  /// The arena of a pool: that of a living graph, or a new one. {0, 0} gives an arena of a new pool.
  /// Errors: invalid_argument if graphs of another device or context use the pool.
  static std::shared_ptr<GraphArena> of(Runtime& runtime, PoolId pool);

 private:
  Runtime& runtime_;
  PoolId pool_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Storage>> segments_;
};

}}}  // namespace clutch::v0::detail
