// SPDX-License-Identifier: Apache-2.0
#include "runtime/pool.hpp"

#include "runtime/profile_log.hpp"
#include "runtime/recorder.hpp"
#include "runtime/runtime.hpp"
#include "runtime/segment_growth.hpp"
#include "runtime/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace clutch { inline namespace v0 { namespace detail {

Pool::~Pool() {
  if (limit_) limit_->give(heap_.reserved());
}

void Pool::make_source() {
  if (has_source_.load(std::memory_order_acquire)) [[likely]]
    return;
  std::lock_guard lock(source_mutex_);
  if (source_) return;
  auto source = make_segment_source(runtime_);
  std::lock_guard heap_lock(mutex_);
  limit_ = source->of_host() ? MemoryLimit::of_host() : MemoryLimit::of_device(claimed_traits(runtime_.device()).global_bytes);
  heap_.set_page(source->page());
  checks_memory_ = the_settings().check_memory.on() && source->page() > 0;
  if (const auto history = current_history()) heap_.history().begin(*history);
  source_ = std::move(source);
  has_source_.store(true, std::memory_order_release);
}

MemoryLimit& Pool::limit() {
  make_source();
  return *limit_;
}

void Pool::refresh_settings() {
  const std::uint64_t version = allocator_settings_version();
  if (version == settings_version_) [[likely]]
    return;
  settings_ = current_allocator_settings();
  if (source_->reservable() > 0) settings_ = with_growth(std::move(settings_));
  for (const std::string& key : settings_.without_effect) log_once(LogLevel::warn, fmt::format("allocator_settings: {} has no effect on OpenCL devices", key));
  if (settings_.expandable_segments && source_->reservable() == 0)
    log_once(LogLevel::warn,
             fmt::format("allocator_settings: segments of device {} do not grow in place: each new one is as large as all before it", runtime_.device().index));
  settings_version_ = version;
}

namespace {

/// Whether blocks of a pool may be parts of segments. Asks for its options only until the heap knows them.
bool is_split(Heap& heap, PoolId pool) {
  if (pool == PoolId{}) return true;
  const PoolRecord* record = heap.find_record(pool);
  return !(record ? record->options : pool_options(pool)).no_split;
}

}  // namespace

Block* Pool::allocate(std::uint64_t bytes, StreamImpl& stream, PoolId pool, std::string_view op) {
  make_source();
  const std::uint64_t most = claimed_traits(runtime_.device()).max_alloc_bytes;
  if (most > 0 && bytes > most)
    throw Error(ErrorCode::invalid_shape, op, fmt::format("a buffer must have at most {} bytes on device {}, got {}", most, runtime_.device().index, bytes));
  Lock lock(mutex_);
  refresh_settings();
  std::uint64_t size = rounded_bytes(settings_, bytes);
  if (checks_memory_) [[unlikely]]
    size = round_up(size, source_->page());  // so that a page has one block alone
  if (most > 0 && size > most) size = std::max(round_up(bytes, kBlockAlignment), most / kBlockAlignment * kBlockAlignment);
  const bool grows = settings_.expandable_segments && !checks_memory_ && source_->reservable() >= size && is_split(heap_, pool);
  Request request{.requested = bytes,
                  .bytes = size,
                  .most = most,
                  .grows = grows,
                  .key = {stream.id(), pool, is_small(size, grows)},
                  .stream = stream,
                  .op = op,
                  .label = current_label(op)};
  settle();
  if (Block* block = take_cached(request)) return block;
  illegal_beside(op);
  if (pool != PoolId{}) {
    request.pool = pool_options(pool);
    heap_.record(pool, request.pool);
  }
  std::string why_not;
  if (Block* block = take_new(request, false, why_not)) return block;
  ++heap_.counters().alloc_retries;
  if (Block* block = take_when_short(request, lock, why_not)) return block;
  ++heap_.counters().ooms;
  const MemoryShortage failed = shortage(request);
  if (heap_.history().on())
    heap_.history().add({.action = MemoryHistory::Action::oom,
                         .address = failed.limit - std::min(failed.limit, limit_->held()),
                         .size = bytes,
                         .stream = stream.id(),
                         .pool = pool,
                         .label = &heap_.label(request.label)});
  const std::string text = out_of_memory_text(request, why_not);
  lock.unlock();
  call_out_of_memory(failed);
  throw Error(ErrorCode::out_of_memory, op, text);
}

Block* Pool::take_cached(const Request& request) {
  Block* block = find_free(request.key, request.bytes);
  return block ? take(request, block) : nullptr;
}

Block* Pool::find_free(const HeapKey& key, std::uint64_t bytes) {
  Block* block = heap_.find(settings_, key, bytes);
  return block ? block : heap_.find(settings_, {0, key.pool, key.small}, bytes);
}

Block* Pool::take(const Request& request, Block* block) {
  const std::uint64_t taken = Heap::bytes_taken(settings_, *block, request.bytes);
  if (const std::uint64_t missing = heap_.missing(*block, taken); missing > 0 && !limit_->take(missing)) return nullptr;
  if (block->segment->stream == 0) ends_.try_emplace(request.stream.id(), request.stream.end());
  heap_.take(settings_, *block, taken, request.requested, request.key.stream, heap_.label(request.label));
  if (profiled() != 0) [[unlikely]]
    note_memory(runtime_.device().index, request.key.stream, block, static_cast<std::int64_t>(block->bytes), heap_.counters().allocated_bytes.all.current,
                heap_.reserved());
  if (checks_memory_) [[unlikely]]
    source_->protect(block->segment->memory, block->offset, block->bytes, true);
  return block;
}

Block* Pool::take_new(const Request& request, bool least, std::string& why_not) {
  // A block that is small only in a segment that does not grow must not take the rest of one.
  const std::uint64_t block = request.key.small ? request.bytes : std::max(request.bytes, kSmallLimit + 1);
  // Where segments grow in place, others are what a range of addresses did not serve: as large as by PyTorch's rules.
  const std::uint64_t before = source_->reservable() > 0 ? 0 : heap_.reserved();
  std::uint64_t bytes = least ? request.bytes : new_segment_bytes(settings_, block, before, claimed_traits(runtime_.device()).global_bytes);
  if (settings_.garbage_collection_threshold > 0) collect_garbage(bytes);
  if (request.grows) {
    if (!limit_->take(request.bytes)) {
      why_not = limit_->to_text();
      ++heap_.counters().oom_rejections;
      return nullptr;
    }
    limit_->give(request.bytes);  // the block will take its pages
    // A range of addresses may be refused, too, under a limit of the system: a shorter one may do.
    for (std::uint64_t range = source_->reservable(); range >= std::max(request.bytes, kLargeLimit); range = range / 2 / kSegmentRounding * kSegmentRounding)
      if (Segment* made = new_segment(request, range, true, why_not)) return take(request, made->first);
  }
  if (source_->page() > 0) bytes = round_up(bytes, source_->page());
  if (request.most > 0) bytes = std::clamp(bytes, request.bytes, std::max(request.most, request.bytes));
  Segment* made = new_segment(request, bytes, false, why_not);
  return made ? take(request, made->first) : nullptr;
}

Segment* Pool::new_segment(const Request& request, std::uint64_t bytes, bool grows, std::string& why_not) {
  const std::uint64_t held = grows ? 0 : source_->page() > 0 ? round_up(bytes, source_->page()) : bytes;
  if (!limit_->take(held)) {
    why_not = limit_->to_text();
    ++heap_.counters().oom_rejections;
    return nullptr;
  }
  SegmentMemory memory;
  cl_int status = CL_OUT_OF_HOST_MEMORY;
  try {
    status = source_->make(memory, bytes, grows, request.op, why_not);
  } catch (...) {
    limit_->give(held);
    throw;
  }
  if (status != CL_SUCCESS) {
    limit_->give(held);
    return nullptr;
  }
  if (checks_memory_) source_->protect(memory, 0, bytes, false);
  ends_.try_emplace(request.stream.id(), request.stream.end());
  return &heap_.add(settings_, request.key, std::move(memory), bytes, grows);
}

/// Gives the segments back that have been unused for the longest, until a new one of `bytes` stays below the threshold.
void Pool::collect_garbage(std::uint64_t bytes) {
  const std::uint64_t allowed = limit_->allowed();
  if (allowed == UINT64_MAX) return;
  const auto threshold = static_cast<std::uint64_t>(settings_.garbage_collection_threshold * static_cast<double>(allowed));
  while (limit_->held() + bytes > threshold) {
    Segment* oldest = heap_.oldest_unused();
    if (!oldest) return;
    remove(*oldest);
  }
}

Block* Pool::take_when_short(const Request& request, Lock& lock, std::string& why_not) {
  auto again = [&](bool least) {
    Block* block = take_cached(request);
    return block ? block : take_new(request, least, why_not);
  };
  const MemoryShortage now = shortage(request);
  lock.unlock();
  const bool freed = call_memory_short(now);
  lock.lock();
  if (freed) {
    settle();
    if (Block* block = again(false)) return block;
  }
  if (Block* block = take_from_pools(request)) return block;
  if (Block* block = take_foreign(request, lock)) return block;
  trim_locked(settle_all(lock));
  return again(true);
}

/// A block of a pool that lends in need.
Block* Pool::take_from_pools(const Request& request) {
  if (request.key.pool != PoolId{}) return nullptr;
  for (const auto& [id, record] : heap_.records()) {
    if (!record.options.use_on_oom) continue;
    Block* block = find_free({request.key.stream, record.id, request.key.small}, request.bytes);
    if (block && (block = take(request, block))) return block;
  }
  return nullptr;
}

MemoryShortage Pool::shortage(const Request& request) {
  return {.device = Device(&runtime_.device()),
          .wanted = request.bytes,
          .allocated = heap_.counters().allocated_bytes.all.current,
          .reserved = heap_.reserved(),
          .limit = limit_->allowed()};
}

/// A block that another stream has freed, behind a wait of this stream for that one's work.
Block* Pool::take_foreign(const Request& request, Lock& lock) {
  for (const auto& [stream, end] : ends_) {
    if (stream == request.key.stream) continue;
    Block* block = heap_.find(settings_, {stream, request.key.pool, request.key.small}, request.bytes);
    if (!block || !(block = take(request, block))) continue;
    const std::shared_ptr<StreamEnd> owner = end;
    lock.unlock();
    // The owner's work up to now is all that can use the block: it was free in the owner's order, and is not the owner's any more.
    cl_int status = CL_SUCCESS;
    if (ClEvent mark = owner->mark()) {
      cl_event raw = mark.get();
      status = clEnqueueBarrierWithWaitList(request.stream.queue(), 1, &raw, nullptr);
    }
    if (status == CL_SUCCESS) return block;
    release(block, {});
    throw_cl(status, request.op, "clEnqueueBarrierWithWaitList");
  }
  return nullptr;
}

std::string Pool::out_of_memory_text(const Request& request, const std::string& why_not) const {
  const MemoryCounters& counters = heap_.counters();
  std::uint64_t largest = 0, pending = counters.active_bytes.all.current - counters.allocated_bytes.all.current;
  // As snapshots have them: of a segment that grows what is held, not the rest of its addresses.
  std::vector<MemorySegment> segments;
  heap_.snapshot(runtime_.device().index, segments);
  for (const MemorySegment& segment : segments)
    for (const MemoryBlock& block : segment.blocks)
      if (block.state == "inactive") largest = std::max(largest, block.size);
  std::vector<const MemoryLabel*> labels;
  for (const auto& [name, label] : heap_.labels())
    if (label->current > 0) labels.push_back(label.get());
  std::stable_sort(labels.begin(), labels.end(), [](const auto* a, const auto* b) { return a->current > b->current; });
  constexpr std::size_t kNamed = 5;
  std::string live;
  for (std::size_t i = 0; i < std::min(labels.size(), kNamed); ++i)
    live += fmt::format("{}{} {} bytes in {}", i > 0 ? ", " : "", labels[i]->name.empty() ? "(no label)" : labels[i]->name, labels[i]->current,
                        labels[i]->blocks == 1 ? "1 block" : fmt::format("{} blocks", labels[i]->blocks));
  if (labels.size() > kNamed) live += fmt::format(" and {} more", labels.size() - kNamed);
  return fmt::format(
      "{} bytes wanted on device {}, which has {} bytes: {}; clutch holds {} there, {} in use, {} in use by other streams alone; "
      "the largest free block has {}; largest in use: {}",
      request.bytes, runtime_.device().index, claimed_traits(runtime_.device()).global_bytes, why_not, counters.reserved_bytes.all.current,
      counters.allocated_bytes.all.current, pending, largest, live.empty() ? "none" : live);
}

void Pool::release(Block* block, std::vector<BlockUse> uses) noexcept {
  std::lock_guard lock(mutex_);
  heap_.release(*block);
  if (profiled() != 0) [[unlikely]]
    note_memory(runtime_.device().index, block->segment->stream, block, -static_cast<std::int64_t>(block->bytes), heap_.counters().allocated_bytes.all.current,
                heap_.reserved());
  for (BlockUse& use : uses) {
    if (is_done(use.event.get())) continue;
    ++block->awaited;
    pending_[use.stream].emplace_back(std::move(use.event), block);
  }
  if (block->awaited == 0) merge(block);
}

void Pool::merge(Block* block) {
  Segment& segment = *block->segment;
  if (checks_memory_) [[unlikely]]
    source_->protect(segment.memory, block->offset, block->bytes, false);
  heap_.merge(block);
  if (segment.owner && segment.owner->ended && Heap::is_whole(segment)) remove(segment);
}

void Pool::end_pool(PoolId pool) noexcept {
  std::lock_guard lock(mutex_);
  PoolRecord* record = heap_.find_record(pool);
  if (!record) return;
  record->ended = true;
  if (record->counters.segment.all.current == 0) return heap_.forget_pool(pool);
  for (auto at = heap_.segments().begin(); at != heap_.segments().end();) {
    Segment& segment = *at++->second;
    if (segment.pool == pool && Heap::is_whole(segment)) remove(segment);  // the last one removes the record
  }
}

void Pool::adopt_stream(std::uint64_t stream, ClEvent last) noexcept {
  std::lock_guard lock(mutex_);
  orphans_.push_back({stream, std::move(last)});
}

/// Frees blocks whose uses by other streams are done, and orphans segments whose stream is gone with all of its work done.
void Pool::settle() {
  if (!pending_.empty()) {
    for (auto& [stream, blocks] : pending_)
      while (!blocks.empty() && is_done(blocks.front().first.get())) {
        Block* block = blocks.front().second;
        blocks.pop_front();
        if (--block->awaited == 0) merge(block);
      }
    std::erase_if(pending_, [](const auto& row) { return row.second.empty(); });
  }
  if (orphans_.empty()) return;
  std::erase_if(orphans_, [&](const Orphan& orphan) {
    if (orphan.last && !is_done(orphan.last.get())) return false;
    heap_.orphan(orphan.stream);
    ends_.erase(orphan.stream);
    return true;
  });
}

std::uint64_t Pool::settle_all(Lock& lock) {
  ++heap_.counters().sync_all_streams;
  const std::uint64_t released = heap_.released();
  std::vector<ClEvent> events;
  for (const auto& [stream, blocks] : pending_)
    for (const auto& [event, block] : blocks) events.push_back(retained(event.get()));
  for (const Orphan& orphan : orphans_)
    if (orphan.last) events.push_back(retained(orphan.last.get()));
  std::vector<std::shared_ptr<StreamEnd>> ends;
  for (const auto& [stream, end] : ends_) ends.push_back(end);
  lock.unlock();  // because a host task that is waited for may itself allocate
  for (const ClEvent& event : events)
    if (cl_event raw = event.get()) clWaitForEvents(1, &raw);
  for (const auto& end : ends) end->finish();
  lock.lock();
  settle();
  return released;
}

void Pool::trim() {
  if (!has_source_.load(std::memory_order_acquire)) return;
  Lock lock(mutex_);
  trim_locked(settle_all(lock));
}

void Pool::remove(Segment& segment) {
  const std::uint64_t before = heap_.reserved();
  heap_.remove(segment);
  limit_->give(before - heap_.reserved());
}

void Pool::trim_locked(std::uint64_t released) {
  for (auto at = heap_.segments().begin(); at != heap_.segments().end();) {
    Segment& segment = *at++->second;
    if (Heap::is_whole(segment)) {
      remove(segment);
      continue;
    }
    const std::uint64_t before = heap_.reserved();
    for (Block* block = segment.first; block; block = block->after)
      if (block->state == Block::State::free && block->freed_at <= released)
        heap_.drop_pages(*block, [&](const Segment& of, std::uint64_t offset, std::uint64_t bytes) { return source_->give_back(of.memory, offset, bytes); });
    limit_->give(before - heap_.reserved());
  }
}

std::uint64_t Pool::live_blocks() const {
  std::lock_guard lock(mutex_);
  return heap_.counters().allocation.all.current;
}

void Pool::reset_peaks() {
  std::lock_guard lock(mutex_);
  heap_.counters().reset_peaks();
  for (auto& [id, record] : heap_.records()) record.counters.reset_peaks();
  for (const auto& [name, label] : heap_.labels()) label->peak = label->current;
}

void Pool::reset_accumulated() {
  std::lock_guard lock(mutex_);
  heap_.counters().reset_accumulated();
  for (auto& [id, record] : heap_.records()) record.counters.reset_accumulated();
}

std::map<std::string, std::uint64_t> Pool::stats() const {
  std::lock_guard lock(mutex_);
  if (!has_source_.load(std::memory_order_acquire)) return {};
  return heap_.counters().by_key(settings_.max_split_size);
}

std::map<std::string, std::uint64_t> Pool::stats(PoolId pool) const {
  std::lock_guard lock(mutex_);
  auto found = heap_.records().find({pool.first, pool.second});
  return found == heap_.records().end() ? std::map<std::string, std::uint64_t>() : found->second.counters.by_key(settings_.max_split_size);
}

std::map<std::string, LabelStats> Pool::stats_by_label() const {
  std::lock_guard lock(mutex_);
  std::map<std::string, LabelStats> result;
  for (const auto& [name, label] : heap_.labels())
    if (label->peak > 0) result[name] = {label->current, label->peak, label->blocks};
  return result;
}

void Pool::begin_history(const MemoryHistoryOptions& options) {
  std::lock_guard lock(mutex_);
  heap_.history().begin(options);
}

void Pool::end_history() noexcept {
  std::lock_guard lock(mutex_);
  heap_.history().end();
}

void Pool::snapshot(int index, MemorySnapshot& to) {
  std::lock_guard lock(mutex_);
  settle();
  if (heap_.history().on()) heap_.history().add({.action = MemoryHistory::Action::snapshot});
  heap_.snapshot(index, to.segments);
  to.device_traces.resize(std::max(to.device_traces.size(), static_cast<std::size_t>(index) + 1));
  to.device_traces[static_cast<std::size_t>(index)] = heap_.history().entries();
}

}}}  // namespace clutch::v0::detail
