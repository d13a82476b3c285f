// SPDX-License-Identifier: Apache-2.0
#include "runtime/pool.hpp"

#include "runtime/profile_log.hpp"
#include "runtime/recorder.hpp"
#include "runtime/runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

// The sizes of PyTorch's CUDA caching allocator, so that reserved memory is what PyTorch's users expect.
constexpr std::uint64_t kAlignment = 512;
constexpr std::uint64_t kSmallLimit = 1ull << 20;
constexpr std::uint64_t kSmallSegment = 2ull << 20;
constexpr std::uint64_t kLargeSegment = 20ull << 20;
constexpr std::uint64_t kLargeLimit = 10ull << 20;
constexpr std::uint64_t kRounding = 2ull << 20;

std::uint64_t round_up(std::uint64_t n, std::uint64_t to) { return (n + to - 1) / to * to; }

bool all_done(const std::vector<ClEvent>& events) {
  return std::all_of(events.begin(), events.end(), [](const ClEvent& event) { return is_done(event.get()); });
}

thread_local PoolId t_pool{};

}  // namespace

PoolId current_pool() noexcept { return t_pool; }

Pool::~Pool() {
  for (Segment* segment : segments_) {
    for (Block* block = segment->first; block;) delete std::exchange(block, block->after);
    delete segment;
  }
}

Block* Pool::allocate(std::uint64_t bytes, std::uint64_t stream, PoolId pool, std::string_view op) {
  std::uint64_t limit = claimed_traits(runtime_.device()).max_alloc_bytes;
  if (limit > 0 && bytes > limit)
    throw Error(ErrorCode::invalid_shape, op, fmt::format("a buffer must have at most {} bytes on device {}, got {}", limit, runtime_.device().index, bytes));
  std::uint64_t size = round_up(std::max<std::uint64_t>(bytes, 1), kAlignment);
  bool small = size <= kSmallLimit;
  Key key{stream, pool, small};
  std::unique_lock lock(mutex_);
  settle();
  Block* block = take(key, size);
  if (!block) block = take({0, pool, small}, size);
  if (!block) {
    illegal_beside(op);
    std::uint64_t wanted = small ? kSmallSegment : size < kLargeLimit ? kLargeSegment : round_up(size, kRounding);
    if (limit > 0) wanted = std::clamp(wanted, size, std::max(limit, size));
    block = new_segment(wanted, key, op, size, lock)->first;
    free_[key].erase(block);
  }
  block->segment->stream = stream;
  block = split(block, size);
  block->free = false;
  block->requested = bytes;
  allocated_bytes_.add(small, block->bytes);
  requested_bytes_.add(small, bytes);
  allocation_.add(small, 1);
  if (profiled() != 0) [[unlikely]]
    note_memory(runtime_.device().index, stream, block, static_cast<std::int64_t>(block->bytes), allocated_bytes_.all.current, reserved_bytes_.all.current);
  return block;
}

Block* Pool::take(const Key& key, std::uint64_t bytes) {
  auto list = free_.find(key);
  if (list == free_.end()) return nullptr;
  Block probe{.bytes = bytes};
  auto found = list->second.lower_bound(&probe);
  if (found == list->second.end()) return nullptr;
  // A large block is not cut for a request of less than half its size and more than kLargeSegment below it: the small part would keep the segment reserved.
  if (!key.small && (*found)->bytes > bytes + kLargeSegment && bytes < (*found)->bytes / 2) return nullptr;
  Block* block = *found;
  list->second.erase(found);
  return block;
}

Block* Pool::split(Block* block, std::uint64_t bytes) {
  bool small = block->segment->small;
  std::uint64_t rest = block->bytes - bytes;
  if (rest < (small ? kAlignment : kSmallLimit)) return block;
  auto* tail = new Block{.segment = block->segment, .offset = block->offset + bytes, .bytes = rest, .before = block, .after = block->after};
  if (tail->after) tail->after->before = tail;
  block->after = tail;
  block->bytes = bytes;
  free_[key_of(*block->segment)].insert(tail);
  return block;
}

Segment* Pool::new_segment(std::uint64_t bytes, const Key& key, std::string_view op, std::uint64_t wanted, std::unique_lock<std::mutex>& lock) {
  cl_int status = CL_SUCCESS;
  ClMem mem;
  for (int attempt = 0; attempt < 2; ++attempt) {
    mem = ClMem(clCreateBuffer(runtime_.context(), CL_MEM_READ_WRITE, bytes, nullptr, &status));
    if (status == CL_SUCCESS) break;
    if (!is_out_of_memory(status) && status != CL_INVALID_BUFFER_SIZE) throw_cl(status, op, "clCreateBuffer");
    if (attempt == 0) {
      ++retries_;
      settle_all(lock);
      trim_locked();
      bytes = std::max(wanted, std::min(bytes, wanted));  // the retry reserves no more than the call needs
    }
  }
  if (status != CL_SUCCESS) {
    ++ooms_;
    throw Error(ErrorCode::out_of_memory, op,
                fmt::format("{} bytes wanted on device {}, which has {} bytes, of which clutch holds {} ({} in use); clCreateBuffer "
                            "failed with {} after caches were freed",
                            bytes, runtime_.device().index, claimed_traits(runtime_.device()).global_bytes, reserved_bytes_.all.current,
                            allocated_bytes_.all.current, cl_error_name(status)),
                status);
  }
  auto* segment = new Segment{.mem = std::move(mem), .bytes = bytes, .stream = key.stream, .pool = key.pool, .small = key.small};
  segment->first = new Block{.segment = segment, .bytes = bytes};
  segments_.insert(segment);
  free_[key].insert(segment->first);
  reserved_bytes_.add(key.small, bytes);
  segment_.add(key.small, 1);
  ++device_allocs_;
  return segment;
}

void Pool::release(Block* block, std::vector<ClEvent> uses) noexcept {
  std::lock_guard lock(mutex_);
  bool small = block->segment->small;
  allocated_bytes_.remove(small, block->bytes);
  requested_bytes_.remove(small, block->requested);
  allocation_.remove(small, 1);
  if (profiled() != 0) [[unlikely]]
    note_memory(runtime_.device().index, block->segment->stream, block, -static_cast<std::int64_t>(block->bytes), allocated_bytes_.all.current,
                reserved_bytes_.all.current);
  if (!all_done(uses))
    pending_.push_back({block, std::move(uses)});
  else
    merge_free(block);
}

void Pool::merge_free(Block* block) {
  auto& list = free_[key_of(*block->segment)];
  block->free = true;
  auto absorb = [](Block* left, Block* right) {
    left->bytes += right->bytes;
    left->after = right->after;
    if (left->after) left->after->before = left;
    delete right;
  };
  auto is_listed = [&](Block* b) { return b && b->free && list.erase(b) > 0; };
  if (is_listed(block->after)) absorb(block, block->after);
  if (is_listed(block->before)) {
    block = block->before;
    absorb(block, block->after);
  }
  list.insert(block);
  hand_over(*block->segment);
}

/// Gives an orphaned segment to all streams once it is one free block. Smaller parts stay: a stream frees blocks of its own segments while its work on them
/// still runs, which is safe only as long as this one stream reuses them.
void Pool::hand_over(Segment& segment) {
  Block* only = segment.first;
  if (!segment.orphan || only->after || !only->free) return;
  auto own = free_.find(key_of(segment));
  own->second.erase(only);
  if (own->second.empty()) free_.erase(own);
  segment.stream = 0;
  segment.orphan = false;
  free_[key_of(segment)].insert(only);
}

void Pool::adopt_stream(std::uint64_t stream, ClEvent last) noexcept {
  std::lock_guard lock(mutex_);
  orphans_.push_back({stream, std::move(last)});
}

/// Frees blocks whose uses by other streams are done, and orphans segments whose stream is gone with all of its work done.
void Pool::settle() {
  for (std::size_t i = 0; i < pending_.size();) {
    if (!all_done(pending_[i].uses)) {
      ++i;
      continue;
    }
    Block* block = pending_[i].block;
    std::swap(pending_[i], pending_.back());
    pending_.pop_back();
    merge_free(block);
  }
  std::set<std::uint64_t> gone;
  std::erase_if(orphans_, [&](const Orphan& orphan) {
    bool done = !orphan.last || is_done(orphan.last.get());
    if (done) gone.insert(orphan.stream);
    return done;
  });
  if (gone.empty()) return;
  for (Segment* segment : segments_) {
    if (!gone.contains(segment->stream)) continue;
    segment->orphan = true;
    hand_over(*segment);
  }
  std::erase_if(free_, [&](const auto& list) { return list.second.empty() && gone.contains(list.first.stream); });
}

void Pool::settle_all(std::unique_lock<std::mutex>& lock) {
  std::vector<ClEvent> events;
  for (const Pending& pending : pending_)
    for (const ClEvent& use : pending.uses) events.push_back(retained(use.get()));
  for (const Orphan& orphan : orphans_)
    if (orphan.last) events.push_back(retained(orphan.last.get()));
  lock.unlock();  // because a host task that is waited for may itself allocate
  for (const ClEvent& event : events)
    if (cl_event raw = event.get()) clWaitForEvents(1, &raw);
  lock.lock();
  settle();
}

void Pool::trim() {
  std::unique_lock lock(mutex_);
  settle_all(lock);
  trim_locked();
}

void Pool::trim_locked() {
  for (auto it = segments_.begin(); it != segments_.end();) {
    Segment* segment = *it;
    Block* only = segment->first;
    auto& list = free_[key_of(*segment)];
    if (only->after || !only->free || list.erase(only) == 0) {
      ++it;
      continue;
    }
    reserved_bytes_.remove(segment->small, segment->bytes);
    segment_.remove(segment->small, 1);
    ++device_frees_;
    it = segments_.erase(it);
    delete only;
    delete segment;
  }
}

std::uint64_t Pool::live_blocks() const {
  std::lock_guard lock(mutex_);
  return allocation_.all.current;
}

void Pool::reset_peaks() {
  std::lock_guard lock(mutex_);
  for (Counters* c : {&allocated_bytes_, &reserved_bytes_, &allocation_, &segment_, &requested_bytes_})
    for (Counter* k : {&c->all, &c->small, &c->large}) k->peak = k->current;
}

std::map<std::string, std::uint64_t> Pool::stats() const {
  std::lock_guard lock(mutex_);
  std::map<std::string, std::uint64_t> result;
  auto put = [&](const std::string& key, const Counters& counters) {
    auto one = [&](const char* pool, const Counter& c) {
      result[fmt::format("{}.{}.current", key, pool)] = c.current;
      result[fmt::format("{}.{}.peak", key, pool)] = c.peak;
      result[fmt::format("{}.{}.allocated", key, pool)] = c.allocated;
      result[fmt::format("{}.{}.freed", key, pool)] = c.freed;
    };
    one("all", counters.all);
    one("small_pool", counters.small);
    one("large_pool", counters.large);
  };
  if (device_allocs_ == 0) return result;
  put("allocated_bytes", allocated_bytes_);
  put("allocation", allocation_);
  put("requested_bytes", requested_bytes_);
  put("reserved_bytes", reserved_bytes_);
  put("segment", segment_);
  result["num_alloc_retries"] = retries_;
  result["num_ooms"] = ooms_;
  result["num_device_alloc"] = device_allocs_;
  result["num_device_free"] = device_frees_;
  return result;
}

}}}  // namespace clutch::v0::detail

namespace clutch { inline namespace v0 {

PoolId new_pool() {
  static std::atomic<std::uint64_t> next{1};
  return {0, next.fetch_add(1)};
}

PoolGuard::PoolGuard(PoolId pool) : former_(detail::t_pool) { detail::t_pool = pool; }
PoolGuard::~PoolGuard() { detail::t_pool = former_; }

std::map<std::string, std::uint64_t> memory_stats(const Device& device) { return detail::runtime_for(device).pool().stats(); }

std::uint64_t memory_allocated(const Device& device) {
  auto stats = memory_stats(device);
  auto found = stats.find("allocated_bytes.all.current");
  return found == stats.end() ? 0 : found->second;
}

std::uint64_t memory_reserved(const Device& device) {
  auto stats = memory_stats(device);
  auto found = stats.find("reserved_bytes.all.current");
  return found == stats.end() ? 0 : found->second;
}

void empty_cache(const Device& device) {
  if (!detail::illegal_beside("empty_cache")) detail::runtime_for(device).pool().trim();
}
void reset_peak_memory_stats(const Device& device) { detail::runtime_for(device).pool().reset_peaks(); }

}}  // namespace clutch::v0
