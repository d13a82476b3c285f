// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/allocator.hpp>

#include "runtime/cl_api.hpp"
#include "runtime/heap.hpp"
#include "runtime/memory_limit.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

class Runtime;
class StreamEnd;
class StreamImpl;

/// The end of a stream's use of a block.
struct BlockUse {
  std::uint64_t stream = 0;
  ClEvent event;
};

/// Caching allocator of one runtime: few large segments, blocks as byte offsets, reuse in stream order.
class Pool {
 public:
  explicit Pool(Runtime& runtime) : runtime_(runtime) {}
  ~Pool();

  /// Waits for the device's work if memory is short. Errors: out_of_memory if the call fails again after unused memory was given back; invalid_shape if `bytes`
  /// exceeds the device's largest buffer.
  Block* allocate(std::uint64_t bytes, StreamImpl& stream, PoolId pool, std::string_view op);
  /// Returns a block to the pool, which hands it out again once `uses` of other streams than its segment's are over.
  void release(Block* block, std::vector<BlockUse> uses) noexcept;
  /// Lets other streams take the segments of a destroyed stream, each once `last` is done and the segment is one free block.
  void adopt_stream(std::uint64_t stream, ClEvent last) noexcept;
  /// Waits for the device's work, then gives unused segments and pages back.
  void trim();
  std::map<std::string, std::uint64_t> stats() const;
  std::map<std::string, std::uint64_t> stats(PoolId pool) const;
  std::map<std::string, LabelStats> stats_by_label() const;
  void reset_peaks();
  void reset_accumulated();
  std::uint64_t live_blocks() const;
  /// Where the limit of this pool's memory is kept. Errors: opencl, device_lost, invalid_setting.
  MemoryLimit& limit();
  /// True if freed memory must not be touched, so that a block is free only when its own stream's work is over.
  bool checks_memory() const noexcept { return checks_memory_; }
  /// Gives a pool's unused segments back, others when they become unused.
  void end_pool(PoolId pool) noexcept;
  void begin_history(const MemoryHistoryOptions& options);
  void end_history() noexcept;
  /// Adds segments and history as those of a device of that index.
  void snapshot(int index, MemorySnapshot& to);

 private:
  struct Orphan {
    std::uint64_t stream;
    ClEvent last;
  };
  /// What allocate() is asked for.
  struct Request {
    std::uint64_t requested, bytes, most;
    bool grows;  ///< a new segment would grow in place
    HeapKey key;
    StreamImpl& stream;
    std::string_view op, label;
    MemPoolOptions pool;
  };
  using Lock = std::unique_lock<std::mutex>;

  /// Makes the source of segments at the first call.
  void make_source();
  void refresh_settings();
  Block* take_cached(const Request& request);
  /// A free block of the stream, else one of no stream; null if there is none.
  Block* find_free(const HeapKey& key, std::uint64_t bytes);
  /// Null if the limit forbids the pages that the block has to get.
  Block* take(const Request& request, Block* block);
  /// A block of a new segment; null, with the reason, if there is no memory for it. `least`: the segment has no more than the block needs.
  Block* take_new(const Request& request, bool least, std::string& why_not);
  Block* take_when_short(const Request& request, Lock& lock, std::string& why_not);
  Block* take_from_pools(const Request& request);
  Block* take_foreign(const Request& request, Lock& lock);
  MemoryShortage shortage(const Request& request);
  void merge(Block* block);
  Segment* new_segment(const Request& request, std::uint64_t bytes, bool grows, std::string& why_not);
  void collect_garbage(std::uint64_t bytes);
  std::string out_of_memory_text(const Request& request, const std::string& why_not) const;
  void settle();
  /// Unlocks, waits for all of the device's work, locks again and calls settle(). Returns how many blocks had been released before.
  std::uint64_t settle_all(Lock& lock);
  /// Gives unused segments back, and pages of blocks that were among the first `released` to be released: no work may be on these any more.
  void trim_locked(std::uint64_t released);
  void remove(Segment& segment);

  Runtime& runtime_;
  std::mutex source_mutex_;  ///< of making the source, before `mutex_`
  std::atomic<bool> has_source_{false};
  std::unique_ptr<SegmentSource> source_;
  std::shared_ptr<MemoryLimit> limit_;
  mutable std::mutex mutex_;
  AllocatorSettings settings_;
  std::uint64_t settings_version_ = UINT64_MAX;
  bool checks_memory_ = false;  ///< CLUTCH_CHECK_MEMORY
  Heap heap_;
  /// Blocks that other streams still use, with the use of each; those of one stream end in order, so that only the first is asked.
  std::map<std::uint64_t, std::deque<std::pair<ClEvent, Block*>>> pending_;
  std::vector<Orphan> orphans_;
  std::map<std::uint64_t, std::shared_ptr<StreamEnd>> ends_;  ///< of streams that have segments
};

/// The pool that this thread allocates from.
PoolId current_pool() noexcept;
/// The options of a MemPool; the default ones for other ids.
MemPoolOptions pool_options(PoolId pool);
/// What the memory that this thread allocates is counted as: the innermost MemoryLabelGuard's label, else `op`.
std::string_view current_label(std::string_view op) noexcept;
/// Calls the functions of on_memory_short(), with no lock held; true if one let memory go.
bool call_memory_short(const MemoryShortage& shortage);
/// Calls the functions of on_out_of_memory(), with no lock held.
void call_out_of_memory(const MemoryShortage& shortage);
/// The options of the recording that is on; nullopt if none is.
std::optional<MemoryHistoryOptions> current_history();

}}}  // namespace clutch::v0::detail
