// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/allocator_config.hpp"
#include "runtime/memory_counters.hpp"
#include "runtime/memory_history.hpp"
#include "runtime/page_map.hpp"
#include "runtime/segment_source.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <memory_resource>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

struct FreeList;
struct Segment;

/// What blocks are allocated for: an op's name. How many bytes are in use for it.
struct MemoryLabel {
  std::string name;
  std::uint64_t current = 0, peak = 0, blocks = 0;
};

/// A part of a segment: the memory of one storage, or a gap between two.
struct Block {
  enum class State : std::uint8_t {
    free,
    allocated,
    awaiting,  ///< has no storage, but other streams' work still uses it
  };
  Segment* segment = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t requested = 0;
  Block* before = nullptr;  // neighbours within the segment
  Block* after = nullptr;
  MemoryLabel* label = nullptr;
  std::uint64_t freed_at = 0;  ///< number of blocks that had been released when it was; of merged ones the last's
  int awaited = 0;             ///< events that must be done before it is free
  State state = State::free;
  bool oversize = false;  ///< of max_split_size or more when it was allocated
};

/// What is known of a pool that is not the default one.
struct PoolRecord {
  PoolId id;
  MemPoolOptions options;
  bool ended = false;  ///< its segments are given back as soon as they are unused
  MemoryCounters counters;
};

struct Segment {
  std::uint64_t address = 0;  ///< of its first byte, in a space of addresses that segments of one heap share
  SegmentMemory memory;
  std::uint64_t bytes = 0;
  std::uint64_t span = 0;    ///< bytes of addresses that are its own
  std::uint64_t stream = 0;  // the only stream that gets blocks of this segment; 0: one free block that any stream may take
  bool orphan = false;       // the stream is gone and all of its work is done
  PoolId pool;
  bool small = false;
  bool grows = false;     ///< its pages are held from their first use on, not from the beginning
  bool oversize = false;  ///< of max_split_size or more when it was made
  Block* first = nullptr;
  FreeList* list = nullptr;     ///< of its free blocks
  PoolRecord* owner = nullptr;  ///< null for the default pool
  PageMap pages;
};

/// Sorts blocks by size, and equal ones by address, so that what is taken depends on the order of calls alone.
struct BySize {
  using is_transparent = void;
  bool operator()(const Block* a, std::uint64_t bytes) const { return a->bytes < bytes; }
  bool operator()(const Block* a, const Block* b) const {
    if (a->bytes != b->bytes) return a->bytes < b->bytes;
    if (a->segment != b->segment) return a->segment->address < b->segment->address;
    return a->offset < b->offset;
  }
};

struct HeapKey {
  std::uint64_t stream = 0;
  PoolId pool;
  bool small = false;
  friend bool operator==(const HeapKey&, const HeapKey&) = default;
  friend bool operator<(const HeapKey& a, const HeapKey& b) {
    if (a.stream != b.stream) return a.stream < b.stream;
    if (a.pool.first != b.pool.first) return a.pool.first < b.pool.first;
    if (a.pool.second != b.pool.second) return a.pool.second < b.pool.second;
    return a.small < b.small;
  }
};

struct FreeList {
  FreeList(const HeapKey& of, std::pmr::memory_resource* memory) : key(of), blocks(memory) {}
  HeapKey key;
  std::pmr::set<Block*, BySize> blocks;
};

/// Segments cut into blocks, and what is counted about them: the allocator without streams, events, locks and the driver.
class Heap {
 public:
  /// `page`: bytes of the pages that segments hold; 0: segments are held as a whole.
  explicit Heap(std::uint64_t page = 0) : page_(page) {}
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  void set_page(std::uint64_t page) { page_ = page; }

  /// The smallest free block that the settings let a request of `bytes` (rounded) have; null if there is none.
  Block* find(const AllocatorSettings& settings, const HeapKey& key, std::uint64_t bytes);
  /// Bytes of a free block that a request of `bytes` takes: all, unless the settings let it be split.
  static std::uint64_t bytes_taken(const AllocatorSettings& settings, const Block& block, std::uint64_t bytes);
  /// Bytes that reserved() will grow by when `bytes` of the block are taken.
  std::uint64_t missing(const Block& block, std::uint64_t bytes) const;
  /// Allocates `taken` bytes of a free block, bytes_taken(), for the stream.
  void take(const AllocatorSettings& settings, Block& block, std::uint64_t taken, std::uint64_t requested, std::uint64_t stream, MemoryLabel& label);
  /// Takes a block from its storage. The block still has to be merged.
  void release(Block& block);
  /// Makes a released block free, together with free neighbours.
  void merge(Block* block);

  /// Adds a segment as one free block.
  Segment& add(const AllocatorSettings& settings, const HeapKey& key, SegmentMemory memory, std::uint64_t bytes, bool grows);
  /// Removes a segment that is one free block.
  void remove(Segment& segment);
  /// Of the segments for large blocks that are one free block and do not grow, the one whose block was freed first; null if there is none.
  Segment* oldest_unused() const;
  /// True if the segment is one free block.
  static bool is_whole(const Segment& segment) { return segment.first->state == Block::State::free && !segment.first->after; }
  /// Lets the whole pages of a free block go that `give_back(segment, offset, bytes)` gives back.
  template <class GiveBack>
  void drop_pages(Block& block, GiveBack give_back) {
    Segment& segment = *block.segment;
    if (page_ == 0) return;
    const std::uint64_t begin = round_up(block.offset, page_) / page_, end = (block.offset + block.bytes) / page_;
    if (begin >= end || segment.pages.missing(begin, end) == end - begin) return;
    if (!give_back(segment, begin * page_, (end - begin) * page_)) return;
    const std::uint64_t before = segment.pages.held();
    segment.pages.drop(begin, end);
    count_pages(segment, before, begin);
  }

  /// Gives segments of a stream, whose work is done, to all streams, each once it is one free block.
  void orphan(std::uint64_t stream);

  /// By address.
  const std::map<std::uint64_t, std::unique_ptr<Segment>>& segments() const noexcept { return segments_; }
  MemoryCounters& counters() noexcept { return counters_; }
  const MemoryCounters& counters() const noexcept { return counters_; }
  std::uint64_t reserved() const noexcept { return counters_.reserved_bytes.all.current; }
  /// Number of blocks that were released.
  std::uint64_t released() const noexcept { return released_; }
  /// Makes what is known of a pool at the first call; null for the default pool.
  PoolRecord* record(PoolId pool, const MemPoolOptions& options);
  /// Forgets a pool that has no segments.
  void forget_pool(PoolId pool);
  /// What is known of a pool; null for the default pool, and for others that have not been used.
  PoolRecord* find_record(PoolId pool);
  std::map<std::pair<std::uint64_t, std::uint64_t>, PoolRecord>& records() noexcept { return records_; }
  const std::map<std::pair<std::uint64_t, std::uint64_t>, PoolRecord>& records() const noexcept { return records_; }
  MemoryHistory& history() noexcept { return history_; }
  /// Adds the segments as a snapshot has them.
  void snapshot(int device, std::vector<MemorySegment>& to) const;
  MemoryLabel& label(std::string_view name);
  const std::map<std::string, std::unique_ptr<MemoryLabel>, std::less<>>& labels() const noexcept { return labels_; }

 private:
  FreeList* find_list(const HeapKey& key);
  FreeList& list_of(const HeapKey& key);
  void hand_over(Segment& segment);
  /// Puts a free block into its list, or takes it out, and counts it if it is a part of a segment that does not grow.
  void enlist(Block* block);
  bool unlist(Block* block);
  void count_splits(const Segment& segment);
  /// Counts pages, of which the first that changed is `first`.
  void count_pages(const Segment& segment, std::uint64_t held_before, std::uint64_t first);
  /// Calls `change` with the counters of all and those of the segment's pool.
  template <class Change>
  void count(const Segment& segment, Change change) {
    change(counters_);
    if (segment.owner) [[unlikely]]
      change(segment.owner->counters);
  }
  void note(MemoryHistory::Action action, const Segment& segment, std::uint64_t offset, std::uint64_t size, const MemoryLabel* label = nullptr) {
    if (history_.on()) [[unlikely]]
      history_.add({action, segment.address + offset, size, segment.stream, segment.pool, label});
  }
  std::uint64_t free_address(std::uint64_t span) const;
  /// Removes the lists of a stream that no segment has.
  void forget_lists(std::uint64_t stream);

  std::uint64_t page_;
  std::pmr::unsynchronized_pool_resource memory_;
  std::map<std::uint64_t, std::unique_ptr<Segment>> segments_;
  std::map<HeapKey, FreeList> free_;
  std::array<FreeList*, 2> last_list_{};  ///< of the last request for a small and a large block
  MemoryCounters counters_;
  std::int64_t splits_ = 0, split_bytes_ = 0;  ///< changes of inactive_split that are not yet counted
  std::uint64_t released_ = 0;
  std::map<std::pair<std::uint64_t, std::uint64_t>, PoolRecord> records_;
  MemoryHistory history_;
  std::map<std::string, std::unique_ptr<MemoryLabel>, std::less<>> labels_;
  std::array<std::pair<const char*, MemoryLabel*>, 64> last_labels_{};
};

}}}  // namespace clutch::v0::detail
