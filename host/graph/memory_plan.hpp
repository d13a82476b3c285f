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

/// Where a temporary lies: a segment of the arena and an offset in it.
struct Placement {
  int segment = -1;
  std::uint64_t offset = 0;
};

/// A temporary to be placed: it holds its bytes from node `first` to node `last`.
struct Lifetime {
  std::uint64_t bytes = 0;
  int first = 0, last = 0;
};

struct MemoryPlan {
  std::vector<Placement> places;        ///< one per lifetime
  std::vector<std::uint64_t> segments;  ///< bytes that each segment needs
};

/// Places temporaries so that two whose lifetimes meet never overlap: the biggest first, each at the lowest offset that is free.
/// `existing` are bytes of segments that are there already; further ones are added, none above `limit` bytes (0: no limit).
MemoryPlan plan_memory(std::span<const Lifetime> lifetimes, std::span<const std::uint64_t> existing, std::uint64_t limit);

/// Segments that hold temporaries of the graphs of one pool: blocks of the stream's allocator, which get them back.
class GraphArena {
 public:
  GraphArena(Runtime& runtime, PoolId pool) : runtime_(runtime), pool_(pool) {}
  Runtime& runtime() const noexcept { return runtime_; }
  PoolId pool() const noexcept { return pool_; }
  /// Plans and gets the memory. Errors: out_of_memory; nothing is placed then.
  std::vector<Placement> place(std::span<const Lifetime> lifetimes, const std::shared_ptr<StreamImpl>& stream);
  std::shared_ptr<Storage> segment(int index) const;
  int segments() const;
  std::uint64_t bytes() const;

  /// The arena of that pool: the one that a living graph has, or a new one. {0, 0} gives one of a new pool.
  /// Errors: invalid_argument if graphs of another device or context use the pool.
  static std::shared_ptr<GraphArena> of(Runtime& runtime, PoolId pool);

 private:
  Runtime& runtime_;
  PoolId pool_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Storage>> segments_;
};

}}}  // namespace clutch::v0::detail
