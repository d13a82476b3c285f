// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/allocator.hpp>

#include "runtime/cl_api.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

class Runtime;
struct Segment;

/// A part of a segment: the memory of one storage, or a gap between two.
struct Block {
  Segment* segment = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t requested = 0;
  bool free = true;
  Block* before = nullptr;  // neighbours within the segment
  Block* after = nullptr;
};

struct Segment {
  ClMem mem;
  std::uint64_t bytes = 0;
  std::uint64_t stream = 0;  // the only stream that gets blocks of this segment; 0: one free block that any stream may take
  bool orphan = false;       // the stream is gone and all of its work is done
  PoolId pool;
  bool small = false;
  Block* first = nullptr;
};

/// Caching allocator of one runtime: few large cl_mem segments, blocks as byte offsets, reuse in stream order.
class Pool {
 public:
  explicit Pool(Runtime& runtime) : runtime_(runtime) {}
  ~Pool();

  /// Errors: out_of_memory if the call fails again after cached segments were freed; invalid_shape if `bytes` exceeds the device's largest buffer.
  Block* allocate(std::uint64_t bytes, std::uint64_t stream, PoolId pool, std::string_view op);
  /// Returns a block to the pool, which hands it out again once `uses`, events of other streams that used the block, are done.
  void release(Block* block, std::vector<ClEvent> uses) noexcept;
  /// Lets other streams take the segments of a destroyed stream, each once `last` is done and the segment is one free block.
  void adopt_stream(std::uint64_t stream, ClEvent last) noexcept;
  /// Waits for other streams' work on freed blocks, then releases free segments to the driver.
  void trim();
  std::map<std::string, std::uint64_t> stats() const;
  void reset_peaks();
  std::uint64_t live_blocks() const;

 private:
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
  };
  struct Counters {
    Counter all, small, large;
    void add(bool is_small, std::uint64_t n) { all.add(n), (is_small ? small : large).add(n); }
    void remove(bool is_small, std::uint64_t n) { all.remove(n), (is_small ? small : large).remove(n); }
  };
  struct BySize {
    bool operator()(const Block* a, const Block* b) const {
      if (a->bytes != b->bytes) return a->bytes < b->bytes;
      if (a->segment != b->segment) return a->segment < b->segment;
      return a->offset < b->offset;
    }
  };
  struct Key {
    std::uint64_t stream;
    PoolId pool;
    bool small;
    bool operator<(const Key& o) const {
      if (stream != o.stream) return stream < o.stream;
      if (pool.first != o.pool.first) return pool.first < o.pool.first;
      if (pool.second != o.pool.second) return pool.second < o.pool.second;
      return small < o.small;
    }
  };
  struct Pending {
    Block* block;
    std::vector<ClEvent> uses;
  };
  struct Orphan {
    std::uint64_t stream;
    ClEvent last;
  };

  static Key key_of(const Segment& s) { return {s.stream, s.pool, s.small}; }
  Block* take(const Key& key, std::uint64_t bytes);
  Block* split(Block* block, std::uint64_t bytes);
  void merge_free(Block* block);
  void hand_over(Segment& segment);
  void settle();
  /// Unlocks, waits for all events that are pending now, locks again and calls settle().
  void settle_all(std::unique_lock<std::mutex>& lock);
  void trim_locked();
  Segment* new_segment(std::uint64_t bytes, const Key& key, std::string_view op, std::uint64_t wanted, std::unique_lock<std::mutex>& lock);

  Runtime& runtime_;
  mutable std::mutex mutex_;
  std::set<Segment*> segments_;
  std::map<Key, std::set<Block*, BySize>> free_;
  std::vector<Pending> pending_;
  std::vector<Orphan> orphans_;
  Counters allocated_bytes_, reserved_bytes_, allocation_, segment_, requested_bytes_;
  std::uint64_t retries_ = 0, ooms_ = 0, device_allocs_ = 0, device_frees_ = 0;
};

/// The pool that this thread allocates from.
PoolId current_pool() noexcept;

}}}  // namespace clutch::v0::detail
