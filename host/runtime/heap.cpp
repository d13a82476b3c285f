// SPDX-License-Identifier: Apache-2.0
#include "runtime/heap.hpp"

#include "runtime/segment_growth.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace clutch { inline namespace v0 { namespace detail {

namespace {
constexpr std::uint64_t kFirstAddress = 1ull << 32;
constexpr std::uint64_t kGrowingSpan = 1ull << 40;
constexpr std::uint64_t kAddressGap = 2ull << 20;  // between segments, so that none looks like the next one's part

/// Bytes of a free block that are left out before `taken` bytes of it, so that a large block does not begin where in a page its neighbour does. Not in a hole
/// that has room for more: it would then hold one block less.
std::uint64_t lead_of(const Block& block, std::uint64_t taken) {
  if (!block.segment->grows || taken < kPlacedLimit || taken % kPlacedPage != 0 || !block.before) return 0;
  const std::uint64_t lead = (block.before->offset + kBlockAlignment - block.offset) % kPlacedPage;
  const bool is_room = lead + taken <= block.bytes, holds_more = block.after && block.bytes - taken >= kPlacedPage;
  return is_room && !holds_more ? lead : 0;
}
}  // namespace

Heap::~Heap() {
  for (auto& [address, segment] : segments_)
    for (Block* block = segment->first; block;) delete std::exchange(block, block->after);
}

FreeList* Heap::find_list(const HeapKey& key) {
  FreeList*& last = last_list_[key.small];
  if (last && last->key == key) return last;
  auto found = free_.find(key);
  return found == free_.end() ? nullptr : last = &found->second;
}

FreeList& Heap::list_of(const HeapKey& key) {
  FreeList*& last = last_list_[key.small];
  if (last && last->key == key) return *last;
  return *(last = &free_.try_emplace(key, key, &memory_).first->second);
}

MemoryLabel& Heap::label(std::string_view name) {
  // Names are mostly literals, which an address tells.
  auto& last = last_labels_[(reinterpret_cast<std::uintptr_t>(name.data()) >> 2) % last_labels_.size()];
  if (last.second && last.first == name.data() && last.second->name == name) return *last.second;
  auto found = labels_.find(name);
  if (found == labels_.end()) found = labels_.emplace(std::string(name), std::make_unique<MemoryLabel>()).first, found->second->name = name;
  last = {name.data(), found->second.get()};
  return *found->second;
}

Block* Heap::find(const AllocatorSettings& settings, const HeapKey& key, std::uint64_t bytes) {
  FreeList* list = find_list(key);
  if (!list) return nullptr;
  auto found = list->blocks.lower_bound(bytes);
  if (found == list->blocks.end()) return nullptr;
  Block* block = *found;
  if (!key.small && !block->segment->grows) {
    if (bytes < settings.max_split_size && block->bytes >= settings.max_split_size) return nullptr;
    if (bytes >= settings.max_split_size && block->bytes >= bytes + settings.max_non_split_rounding_size) return nullptr;
  }
  return block;
}

std::uint64_t Heap::missing(const Block& block, std::uint64_t bytes) const {
  if (page_ == 0) return 0;
  const std::uint64_t offset = block.offset + lead_of(block, bytes);
  return page_ * block.segment->pages.missing(offset / page_, round_up(offset + bytes, page_) / page_);
}

void Heap::enlist(Block* block) {
  const Segment& segment = *block->segment;
  segment.list->blocks.insert(block);
  if (!segment.grows && (block->before || block->after)) ++splits_, split_bytes_ += static_cast<std::int64_t>(block->bytes);
}

bool Heap::unlist(Block* block) {
  const Segment& segment = *block->segment;
  if (segment.list->blocks.erase(block) == 0) return false;
  if (!segment.grows && (block->before || block->after)) --splits_, split_bytes_ -= static_cast<std::int64_t>(block->bytes);
  return true;
}

void Heap::count_splits(const Segment& segment) {
  const std::int64_t n = std::exchange(splits_, 0), bytes = std::exchange(split_bytes_, 0);
  if (n != 0) count(segment, [&](MemoryCounters& c) { c.inactive_split.change(segment.small, n); });
  if (bytes != 0) count(segment, [&](MemoryCounters& c) { c.inactive_split_bytes.change(segment.small, bytes); });
}

void Heap::count_pages(const Segment& segment, std::uint64_t held_before, std::uint64_t first) {
  const auto change = (static_cast<std::int64_t>(segment.pages.held()) - static_cast<std::int64_t>(held_before)) * static_cast<std::int64_t>(page_);
  if (change == 0) return;
  count(segment, [&](MemoryCounters& c) { c.reserved_bytes.change(segment.small, change); });
  note(change > 0 ? MemoryHistory::Action::segment_map : MemoryHistory::Action::segment_unmap, segment, first * page_,
       static_cast<std::uint64_t>(change > 0 ? change : -change));
}

std::uint64_t Heap::bytes_taken(const AllocatorSettings& settings, const Block& block, std::uint64_t bytes) {
  const std::uint64_t rest = block.bytes - bytes;
  const bool cut = block.segment->small || block.segment->grows ? rest >= kBlockAlignment : bytes < settings.max_split_size && rest > kSmallLimit;
  const bool may_split = !block.segment->owner || !block.segment->owner->options.no_split;
  return may_split && cut ? bytes : block.bytes;
}

void Heap::take(const AllocatorSettings& settings, Block& taken_block, std::uint64_t taken, std::uint64_t requested, std::uint64_t stream, MemoryLabel& label) {
  Block* block = &taken_block;
  Segment& segment = *block->segment;
  unlist(block);
  if (segment.stream == 0 && stream != 0) {
    segment.stream = stream;
    segment.list = &list_of({stream, segment.pool, segment.small});
  }
  if (const std::uint64_t lead = lead_of(*block, taken); lead > 0) {
    auto* gap = new Block{.segment = &segment, .offset = block->offset, .bytes = lead, .before = block->before, .after = block};
    gap->freed_at = block->freed_at;
    block->before = gap->before->after = gap;
    block->offset += lead, block->bytes -= lead;
    enlist(gap);
  }
  if (const std::uint64_t rest = block->bytes - taken; rest > 0) {
    auto* tail = new Block{.segment = &segment, .offset = block->offset + taken, .bytes = rest, .before = block, .after = block->after};
    tail->freed_at = block->freed_at;
    if (tail->after) tail->after->before = tail;
    block->after = tail;
    block->bytes = taken;
    enlist(tail);
  }
  count_splits(segment);
  if (page_ > 0) {
    const std::uint64_t begin = block->offset / page_, end = round_up(block->offset + block->bytes, page_) / page_;
    if (segment.pages.missing(begin, end) > 0) {
      const std::uint64_t before = segment.pages.held();
      segment.pages.hold(begin, end);
      count_pages(segment, before, begin);
    }
  }
  block->state = Block::State::allocated;
  block->requested = requested;
  block->label = &label;
  block->oversize = block->bytes >= settings.max_split_size;
  count(segment, [&](MemoryCounters& c) {
    const bool small = segment.small;
    c.allocation.add(small, 1);
    c.allocated_bytes.add(small, block->bytes);
    c.active.add(small, 1);
    c.active_bytes.add(small, block->bytes);
    c.requested_bytes.add(small, requested);
    if (block->oversize) c.oversize_allocations.add(1);
  });
  label.current += block->bytes;
  label.peak = std::max(label.peak, label.current);
  ++label.blocks;
  note(MemoryHistory::Action::alloc, segment, block->offset, requested, &label);
}

void Heap::release(Block& block) {
  count(*block.segment, [&](MemoryCounters& c) {
    const bool small = block.segment->small;
    c.allocation.remove(small, 1);
    c.allocated_bytes.remove(small, block.bytes);
    c.requested_bytes.remove(small, block.requested);
    if (block.oversize) c.oversize_allocations.remove(1);
  });
  block.label->current -= block.bytes;
  --block.label->blocks;
  block.state = Block::State::awaiting;
  block.freed_at = ++released_;
  note(MemoryHistory::Action::free_requested, *block.segment, block.offset, block.requested, block.label);
}

void Heap::merge(Block* block) {
  Segment& segment = *block->segment;
  count(segment, [&](MemoryCounters& c) {
    c.active.remove(segment.small, 1);
    c.active_bytes.remove(segment.small, block->bytes);
  });
  note(MemoryHistory::Action::free_completed, segment, block->offset, block->requested, block->label);
  block->state = Block::State::free;
  block->label = nullptr;
  auto absorb = [](Block* left, Block* right) {
    left->bytes += right->bytes;
    left->freed_at = std::max(left->freed_at, right->freed_at);
    left->after = right->after;
    if (left->after) left->after->before = left;
    delete right;
  };
  auto is_listed = [&](Block* b) { return b && b->state == Block::State::free && unlist(b); };
  if (is_listed(block->after)) absorb(block, block->after);
  if (is_listed(block->before)) {
    block = block->before;
    absorb(block, block->after);
  }
  enlist(block);
  count_splits(segment);
  hand_over(segment);
}

/// Gives an orphaned segment to all streams once it is one free block. Smaller parts stay: a stream frees blocks of its own segments while its work on them
/// still runs, which is safe only as long as this one stream reuses them.
void Heap::hand_over(Segment& segment) {
  if (!segment.orphan || !is_whole(segment)) return;
  const std::uint64_t former = segment.stream;
  segment.list->blocks.erase(segment.first);
  segment.stream = 0;
  segment.orphan = false;
  segment.list = &list_of({0, segment.pool, segment.small});
  segment.list->blocks.insert(segment.first);
  forget_lists(former);
}

void Heap::orphan(std::uint64_t stream) {
  for (auto& [address, segment] : segments_) {
    if (segment->stream != stream) continue;
    segment->orphan = true;
    hand_over(*segment);
  }
  forget_lists(stream);
}

void Heap::forget_lists(std::uint64_t stream) {
  std::erase_if(free_, [&](const auto& row) {
    if (row.first.stream != stream) return false;
    for (const auto& [address, segment] : segments_)
      if (segment->list == &row.second) return false;
    for (FreeList*& last : last_list_)
      if (last == &row.second) last = nullptr;
    return true;
  });
}

/// Lowest free range of addresses.
std::uint64_t Heap::free_address(std::uint64_t span) const {
  std::uint64_t at = kFirstAddress;
  for (const auto& [address, segment] : segments_) {
    if (address >= at + span + kAddressGap) break;
    at = round_up(address + segment->span, kAddressGap) + kAddressGap;
  }
  return at;
}

Segment& Heap::add(const AllocatorSettings& settings, const HeapKey& key, SegmentMemory memory, std::uint64_t bytes, bool grows) {
  auto segment = std::make_unique<Segment>();
  // How far a segment can grow differs between devices and processes, which no address must tell.
  segment->span = grows ? std::max(bytes, kGrowingSpan) : bytes;
  segment->address = free_address(segment->span);
  segment->memory = std::move(memory);
  segment->bytes = bytes;
  segment->stream = key.stream;
  segment->pool = key.pool;
  segment->small = key.small;
  segment->grows = grows;
  segment->oversize = bytes >= settings.max_split_size;
  segment->list = &list_of(key);
  segment->owner = find_record(key.pool);
  segment->first = new Block{.segment = segment.get(), .bytes = bytes};
  if (page_ > 0) segment->pages = PageMap(round_up(bytes, page_) / page_, !grows);
  count(*segment, [&](MemoryCounters& c) {
    c.reserved_bytes.add(key.small, page_ > 0 ? segment->pages.held() * page_ : bytes);
    c.segment.add(key.small, 1);
    if (segment->oversize) c.oversize_segments.add(1);
    ++c.device_allocs;
  });
  if (!grows) note(MemoryHistory::Action::segment_alloc, *segment, 0, bytes);
  enlist(segment->first);
  Segment& added = *segment;
  segments_.emplace(added.address, std::move(segment));
  return added;
}

void Heap::remove(Segment& segment) {
  unlist(segment.first);
  const std::uint64_t held = page_ > 0 ? segment.pages.held() * page_ : segment.bytes;
  count(segment, [&](MemoryCounters& c) {
    c.reserved_bytes.remove(segment.small, held);
    c.segment.remove(segment.small, 1);
    if (segment.oversize) c.oversize_segments.remove(1);
    ++c.device_frees;
  });
  note(segment.grows ? MemoryHistory::Action::segment_unmap : MemoryHistory::Action::segment_free, segment, 0, held);
  PoolRecord* owner = segment.owner;
  delete segment.first;
  segments_.erase(segment.address);
  if (owner && owner->ended && owner->counters.segment.all.current == 0) forget_pool(owner->id);
}

Segment* Heap::oldest_unused() const {
  Segment* oldest = nullptr;
  for (const auto& [address, segment] : segments_) {
    if (segment->small || segment->grows || !is_whole(*segment)) continue;
    if (!oldest || segment->first->freed_at < oldest->first->freed_at) oldest = segment.get();
  }
  return oldest;
}

void Heap::forget_pool(PoolId pool) {
  for (FreeList*& last : last_list_)
    if (last && last->key.pool == pool) last = nullptr;
  std::erase_if(free_, [&](const auto& row) { return row.first.pool == pool; });
  records_.erase({pool.first, pool.second});
}

PoolRecord* Heap::record(PoolId pool, const MemPoolOptions& options) {
  if (pool == PoolId{}) return nullptr;
  auto [found, fresh] = records_.try_emplace({pool.first, pool.second});
  if (fresh) found->second.id = pool, found->second.options = options;
  return &found->second;
}

PoolRecord* Heap::find_record(PoolId pool) {
  auto found = records_.find({pool.first, pool.second});
  return found == records_.end() ? nullptr : &found->second;
}

void Heap::snapshot(int device, std::vector<MemorySegment>& to) const {
  constexpr std::array<std::string_view, 3> kStates{"inactive", "active_allocated", "active_awaiting_free"};
  for (const auto& row : segments_) {
    const std::uint64_t address = row.first;
    const Segment* segment = row.second.get();
    MemorySegment* open = nullptr;  // the range of held pages that was last added to
    auto add = [&](const Block& block, std::uint64_t begin, std::uint64_t end) {
      if (!open || open->address + open->total_size != address + begin) {
        to.push_back({.device = device,
                      .address = address + begin,
                      .stream = segment->stream,
                      .pool = segment->pool,
                      .small = segment->small,
                      .is_expandable = segment->grows});
        open = &to.back();
      }
      const bool allocated = block.state == Block::State::allocated;
      open->total_size += end - begin;
      if (allocated) open->allocated_size += end - begin, open->requested_size += block.requested;
      if (block.state != Block::State::free) open->active_size += end - begin;
      open->blocks.push_back({address + begin, end - begin, block.state == Block::State::free ? 0 : block.requested,
                              kStates[static_cast<std::size_t>(block.state)], block.label ? block.label->name : std::string()});
    };
    for (const Block* block = segment->first; block; block = block->after) {
      const std::uint64_t end = block->offset + block->bytes;
      if (block->state != Block::State::free || page_ == 0)
        add(*block, block->offset, end);
      else
        segment->pages.each_held(block->offset / page_, round_up(end, page_) / page_, [&](std::uint64_t first, std::uint64_t last) {
          add(*block, std::max(block->offset, first * page_), std::min(end, last * page_));
        });
    }
  }
}

}}}  // namespace clutch::v0::detail
