// SPDX-License-Identifier: Apache-2.0
#include "tools/memory_replay.hpp"

#include "runtime/heap.hpp"
#include "runtime/segment_growth.hpp"

#include <clutch/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace clutch_memory {

namespace {

using clutch::PoolId, clutch::detail::Heap, clutch::detail::HeapKey, clutch::detail::PickleValue;

constexpr std::uint64_t kMostBytes = 1ull << 48;

std::string label_of(const PickleValue& value) {
  // PyTorch's frames are a stack, whose innermost one says least: the one of a file that is not its own allocator's.
  const PickleValue::List* frames = value["frames"].list();
  if (!frames) return {};
  for (const PickleValue& frame : *frames)
    if (const std::string* name = frame["name"].text(); name && name->find("CachingAllocator") == std::string::npos) return *name;
  return {};
}

/// One of the known words, which outlives the pickle; empty for others.
template <std::size_t n>
std::string_view known(const std::array<std::string_view, n>& words, const PickleValue& value) {
  const std::string* text = value.text();
  for (std::string_view word : words)
    if (text && *text == word) return word;
  return {};
}

/// The pool that a segment or an entry of a trace names; nullopt if it names none.
std::optional<PoolId> pool_of(const PickleValue& value) {
  for (const char* key : {"segment_pool_id", "pool_id"})  // PyTorch's types of entries have the second
    if (const PickleValue::List* pair = value[key].list(); pair && pair->size() == 2) return PoolId{(*pair)[0].whole(0), (*pair)[1].whole(0)};
  return std::nullopt;
}

constexpr std::array<std::string_view, 9> kActions{"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap",
                                                   "oom",   "snapshot"};
constexpr std::array<std::string_view, 3> kStates{"active_allocated", "active_awaiting_free", "inactive"};

clutch::MemorySegment segment_of(const PickleValue& value) {
  clutch::MemorySegment segment{.device = static_cast<int>(std::min<std::uint64_t>(value["device"].whole(0), 1u << 16)),
                                .address = value["address"].whole(0),
                                .total_size = value["total_size"].whole(0),
                                .allocated_size = value["allocated_size"].whole(0),
                                .active_size = value["active_size"].whole(0),
                                .requested_size = value["requested_size"].whole(0),
                                .stream = value["stream"].whole(0),
                                .pool = pool_of(value).value_or(PoolId{}),
                                .is_expandable = value["is_expandable"].number(0) != 0};
  if (const std::string* type = value["segment_type"].text()) segment.small = *type == "small";
  std::uint64_t address = segment.address;
  if (const PickleValue::List* blocks = value["blocks"].list())
    for (const PickleValue& block : *blocks) {
      const std::uint64_t size = block["size"].whole(0);
      segment.blocks.push_back({address, size, block["requested_size"].whole(size), known(kStates, block["state"]), label_of(block)});
      address += size;
    }
  return segment;
}

/// Pools by the addresses of a snapshot's segments, for traces whose entries do not name them.
class PoolsByAddress {
 public:
  explicit PoolsByAddress(const std::vector<clutch::MemorySegment>& segments) {
    for (const clutch::MemorySegment& segment : segments) segments_[{segment.device, segment.address}] = {segment.total_size, segment.pool};
  }
  PoolId at(int device, std::uint64_t address) const {
    auto found = segments_.upper_bound({device, address});
    if (found == segments_.begin()) return {};
    const auto& [begin, segment] = *--found;
    return begin.first == device && address - begin.second < segment.first ? segment.second : PoolId{};
  }

 private:
  std::map<std::pair<int, std::uint64_t>, std::pair<std::uint64_t, PoolId>> segments_;
};

/// Bytes that each pool of the recorded allocator held before the trace, and from entry to entry. Sums wrap, so that they are right for any sizes.
class HeldByPools {
 public:
  HeldByPools(const clutch::MemorySnapshot& snapshot, std::size_t device) {
    for (const clutch::MemorySegment& segment : snapshot.segments)
      if (segment.device == static_cast<int>(device)) of(segment.pool) += segment.total_size;
    for (const clutch::MemoryTraceEntry& entry : snapshot.device_traces[device]) of(entry.pool) -= change(entry);
  }
  /// True if the entry's pool has given the last of its memory back.
  bool ends_with(const clutch::MemoryTraceEntry& entry) {
    const std::uint64_t bytes = change(entry);
    return bytes != 0 && (of(entry.pool) += bytes) == 0;
  }

 private:
  static std::uint64_t change(const clutch::MemoryTraceEntry& entry) {
    if (entry.action == "segment_alloc" || entry.action == "segment_map") return entry.size;
    return entry.action == "segment_free" || entry.action == "segment_unmap" ? 0 - entry.size : 0;
  }
  std::uint64_t& of(PoolId pool) { return held_[{pool.first, pool.second}]; }
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> held_;
};

}  // namespace

clutch::MemorySnapshot snapshot_of(const PickleValue& pickle) {
  const PickleValue::List* segments = pickle["segments"].list();
  const PickleValue::List* traces = pickle["device_traces"].list();
  if (!segments || !traces)
    throw clutch::Error(clutch::ErrorCode::io, "clutch-memory", "the file must be a snapshot of memory, got one without segments or device_traces");
  clutch::MemorySnapshot snapshot;
  for (const PickleValue& segment : *segments) snapshot.segments.push_back(segment_of(segment));
  const PoolsByAddress pools(snapshot.segments);
  for (const PickleValue& trace : *traces) {
    const int device = static_cast<int>(snapshot.device_traces.size());
    std::vector<clutch::MemoryTraceEntry>& entries = snapshot.device_traces.emplace_back();
    if (!trace.list()) continue;
    for (const PickleValue& entry : *trace.list())
      if (const std::string_view action = known(kActions, entry["action"]); !action.empty()) {
        const std::uint64_t address = entry[action == "oom" ? "device_free" : "addr"].whole(0);
        const std::optional<PoolId> pool = pool_of(entry);
        entries.push_back({.action = action,
                           .address = address,
                           .size = entry["size"].whole(0),
                           .stream = entry["stream"].whole(0),
                           .pool = pool ? *pool : pools.at(device, address),
                           .time_us = static_cast<std::int64_t>(entry["time_us"].whole(0)),
                           .label = label_of(entry)});
      }
  }
  return snapshot;
}

std::vector<TraceStep> steps_of(const clutch::MemorySnapshot& snapshot, std::size_t device) {
  if (device >= snapshot.device_traces.size())
    throw clutch::Error(clutch::ErrorCode::invalid_argument, "clutch-memory",
                        fmt::format("the device must be below {}, got {}", snapshot.device_traces.size(), device));
  std::vector<TraceStep> before, steps;
  std::map<std::uint64_t, std::uint64_t> live;  // numbers of blocks by address, until they are free
  std::map<std::uint64_t, bool> requested;      // numbers of blocks whose free was requested
  std::uint64_t next = 0;
  HeldByPools held(snapshot, device);
  auto add = [&](std::vector<TraceStep>& to, std::uint64_t address, std::uint64_t bytes, std::uint64_t stream, PoolId pool) {
    if (bytes > kMostBytes) throw clutch::Error(clutch::ErrorCode::io, "clutch-memory", fmt::format("sizes must be at most {}, got {}", kMostBytes, bytes));
    live[address] = next;
    to.push_back({TraceStep::Kind::alloc, next++, bytes, stream, pool});
  };
  for (const clutch::MemoryTraceEntry& entry : snapshot.device_traces[device]) {
    if (entry.action == "alloc") {
      add(steps, entry.address, entry.size, entry.stream, entry.pool);
    } else if (entry.action == "free_requested" || entry.action == "free_completed") {
      if (!live.contains(entry.address)) add(before, entry.address, entry.size, entry.stream, entry.pool);  // from before the history
      const std::uint64_t block = live[entry.address];
      if (!std::exchange(requested[block], true)) steps.push_back({.kind = TraceStep::Kind::free_requested, .block = block});
      if (entry.action == "free_requested") continue;
      steps.push_back({.kind = TraceStep::Kind::free_completed, .block = block});
      live.erase(entry.address);
    } else if (held.ends_with(entry)) {
      steps.push_back({.kind = TraceStep::Kind::unused, .pool = entry.pool});
    }
  }
  for (const clutch::MemorySegment& segment : snapshot.segments)
    for (const clutch::MemoryBlock& block : segment.blocks)
      if (segment.device == static_cast<int>(device) && block.state == "active_allocated" && !live.contains(block.address))
        add(before, block.address, block.requested_size, segment.stream, segment.pool);
  before.insert(before.end(), steps.begin(), steps.end());
  return before;
}

std::uint64_t Segments::allowed(const clutch::AllocatorSettings& settings) const {
  if (settings.per_process_memory_fraction < 1 && device > 0)
    return static_cast<std::uint64_t>(settings.per_process_memory_fraction * static_cast<double>(device));
  return limit;
}

std::vector<std::string> without_effect(const clutch::AllocatorSettings& settings, const Segments& from) {
  std::vector<std::string> notes;
  if (settings.per_process_memory_fraction < 1 && from.device == 0)
    notes.emplace_back("per_process_memory_fraction has no effect in a replay that does not know the device's memory (--device-mib)");
  if (settings.garbage_collection_threshold > 0 && from.allowed(settings) == UINT64_MAX)
    notes.emplace_back("garbage_collection_threshold has no effect in a replay without a limit (--limit-mib)");
  for (const std::string& key : settings.without_effect) notes.push_back(fmt::format("{} has no effect on OpenCL devices", key));
  return notes;
}

namespace {

/// A pool without a device, which knows only its own heap's bytes as held.
class Replayer {
 public:
  Replayer(const clutch::AllocatorSettings& settings, const Segments& from)
      : settings_(from.reservable > 0 ? clutch::detail::with_growth(settings) : settings), from_(from), allowed_(from.allowed(settings)), heap_(from.page) {}

  void take(const TraceStep& step) {
    if (step.kind == TraceStep::Kind::alloc) return allocate(step);
    if (step.kind == TraceStep::Kind::unused) return remove_unused([&](const Segment& segment) { return segment.pool == step.pool; });
    auto found = blocks_.find(step.block);
    if (found == blocks_.end()) return;
    if (step.kind == TraceStep::Kind::free_requested) return heap_.release(*found->second);
    heap_.merge(found->second);
    blocks_.erase(found);
  }

  Replayed result() const {
    return {.requested_peak = heap_.counters().requested_bytes.all.peak,
            .reserved_peak = heap_.counters().reserved_bytes.all.peak,
            .segments = heap_.counters().device_allocs,
            .failed = failed_};
  }

 private:
  using Block = clutch::detail::Block;
  using Segment = clutch::detail::Segment;

  struct Request {
    HeapKey key;
    std::uint64_t bytes, requested;
    bool grows;
  };

  void allocate(const TraceStep& step) {
    const std::uint64_t bytes = clutch::detail::rounded_bytes(settings_, step.bytes);
    const bool grows = settings_.expandable_segments && from_.reservable >= bytes;
    const Request request{{step.stream + 1, step.pool, clutch::detail::is_small(bytes, grows)}, bytes, step.bytes, grows};  // a heap's stream 0 is any stream
    Block* block = cached(request);
    if (!block) block = of_new_segment(request, false);
    if (!block) {
      trim();
      block = cached(request);
      if (!block) block = of_new_segment(request, true);
    }
    if (block)
      blocks_[step.block] = block;
    else
      ++failed_;
  }

  bool fits(std::uint64_t bytes) const { return heap_.reserved() <= allowed_ && bytes <= allowed_ - heap_.reserved(); }

  Block* cached(const Request& request) {
    Block* block = heap_.find(settings_, request.key, request.bytes);
    return block ? take(request, block) : nullptr;
  }

  Block* take(const Request& request, Block* block) {
    const std::uint64_t taken = Heap::bytes_taken(settings_, *block, request.bytes);
    if (!fits(heap_.missing(*block, taken))) return nullptr;
    heap_.take(settings_, *block, taken, request.requested, request.key.stream, heap_.label({}));
    return block;
  }

  Block* of_new_segment(const Request& request, bool least) {
    const std::uint64_t before = from_.reservable > 0 ? 0 : heap_.reserved();
    std::uint64_t bytes = least ? request.bytes : clutch::detail::new_segment_bytes(settings_, request.bytes, before, from_.device);
    collect_garbage(bytes);
    if (request.grows) bytes = request.bytes;
    if (from_.page > 0) bytes = clutch::detail::round_up(bytes, from_.page);
    if (!fits(bytes)) return nullptr;
    return take(request, heap_.add(settings_, request.key, {}, request.grows ? from_.reservable : bytes, request.grows).first);
  }

  void collect_garbage(std::uint64_t bytes) {
    if (settings_.garbage_collection_threshold <= 0 || allowed_ == UINT64_MAX) return;
    const auto threshold = static_cast<std::uint64_t>(settings_.garbage_collection_threshold * static_cast<double>(allowed_));
    while (heap_.reserved() + bytes > threshold) {
      Segment* oldest = heap_.oldest_unused();
      if (!oldest) return;
      heap_.remove(*oldest);
    }
  }

  template <class Which>
  void remove_unused(Which which) {
    for (auto at = heap_.segments().begin(); at != heap_.segments().end();) {
      Segment& segment = *at++->second;
      if (Heap::is_whole(segment) && which(segment)) heap_.remove(segment);
    }
  }

  /// Gives back what is unused once all work is done, which a pool waits for.
  void trim() {
    std::erase_if(blocks_, [&](const auto& row) {
      if (row.second->state != Block::State::awaiting) return false;
      heap_.merge(row.second);
      return true;
    });
    remove_unused([](const Segment&) { return true; });
    for (const auto& [address, segment] : heap_.segments())
      for (Block* block = segment->first; block; block = block->after)
        if (block->state == Block::State::free) heap_.drop_pages(*block, [](const Segment&, std::uint64_t, std::uint64_t) { return true; });
  }

  const clutch::AllocatorSettings settings_;
  const Segments from_;
  const std::uint64_t allowed_;
  Heap heap_;
  std::map<std::uint64_t, Block*> blocks_;  ///< by number, until they are free
  std::uint64_t failed_ = 0;
};

}  // namespace

Replayed replay(const std::vector<TraceStep>& steps, const clutch::AllocatorSettings& settings, const Segments& from) {
  Replayer replayer(settings, from);
  for (const TraceStep& step : steps) replayer.take(step);
  return replayer.result();
}

}  // namespace clutch_memory
