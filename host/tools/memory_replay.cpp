// SPDX-License-Identifier: Apache-2.0
#include "tools/memory_replay.hpp"

#include "runtime/heap.hpp"

#include <clutch/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

namespace clutch_memory {

namespace {

using clutch::detail::Heap, clutch::detail::HeapKey, clutch::detail::PickleValue;

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

}  // namespace

clutch::MemorySnapshot snapshot_of(const PickleValue& pickle) {
  const PickleValue::List* segments = pickle["segments"].list();
  const PickleValue::List* traces = pickle["device_traces"].list();
  if (!segments || !traces)
    throw clutch::Error(clutch::ErrorCode::io, "clutch-memory", "the file must be a snapshot of memory, got one without segments or device_traces");
  clutch::MemorySnapshot snapshot;
  for (const PickleValue& segment : *segments) snapshot.segments.push_back(segment_of(segment));
  for (const PickleValue& trace : *traces) {
    std::vector<clutch::MemoryTraceEntry>& entries = snapshot.device_traces.emplace_back();
    if (!trace.list()) continue;
    for (const PickleValue& entry : *trace.list())
      if (const std::string_view action = known(kActions, entry["action"]); !action.empty())
        entries.push_back({.action = action,
                           .address = entry[action == "oom" ? "device_free" : "addr"].whole(0),
                           .size = entry["size"].whole(0),
                           .stream = entry["stream"].whole(0),
                           .time_us = static_cast<std::int64_t>(entry["time_us"].whole(0)),
                           .label = label_of(entry)});
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
  auto add = [&](std::vector<TraceStep>& to, std::uint64_t address, std::uint64_t bytes, std::uint64_t stream) {
    if (bytes > kMostBytes) throw clutch::Error(clutch::ErrorCode::io, "clutch-memory", fmt::format("sizes must be at most {}, got {}", kMostBytes, bytes));
    live[address] = next;
    to.push_back({TraceStep::Kind::alloc, next++, bytes, stream});
  };
  for (const clutch::MemoryTraceEntry& entry : snapshot.device_traces[device]) {
    if (entry.action == "alloc") {
      add(steps, entry.address, entry.size, entry.stream);
    } else if (entry.action == "free_requested" || entry.action == "free_completed") {
      if (!live.contains(entry.address)) add(before, entry.address, entry.size, entry.stream);  // from before the history
      const std::uint64_t block = live[entry.address];
      if (!std::exchange(requested[block], true)) steps.push_back({.kind = TraceStep::Kind::free_requested, .block = block});
      if (entry.action == "free_requested") continue;
      steps.push_back({.kind = TraceStep::Kind::free_completed, .block = block});
      live.erase(entry.address);
    }
  }
  for (const clutch::MemorySegment& segment : snapshot.segments)
    for (const clutch::MemoryBlock& block : segment.blocks)
      if (segment.device == static_cast<int>(device) && block.state == "active_allocated" && !live.contains(block.address))
        add(before, block.address, block.requested_size, segment.stream);
  before.insert(before.end(), steps.begin(), steps.end());
  return before;
}

Replayed replay(const std::vector<TraceStep>& steps, const clutch::AllocatorSettings& settings, const Segments& from) {
  using namespace clutch::detail;
  Heap heap(from.page);
  std::map<std::uint64_t, Block*> blocks;
  Replayed result;
  for (const TraceStep& step : steps) {
    if (step.kind == TraceStep::Kind::alloc) {
      const std::uint64_t bytes = rounded_bytes(settings, step.bytes);
      const HeapKey key{step.stream + 1, {}, bytes <= kSmallLimit};  // a heap's stream 0 is any stream
      Block* block = heap.find(settings, key, bytes);
      if (!block) {
        const bool grows = settings.expandable_segments && from.reservable >= bytes;
        block = heap.add(settings, key, {}, grows ? from.reservable : new_segment_bytes(settings, bytes, heap.reserved(), from.device), grows).first;
      }
      heap.take(settings, *block, Heap::bytes_taken(settings, *block, bytes), step.bytes, key.stream, heap.label({}));
      blocks[step.block] = block;
    } else if (auto found = blocks.find(step.block); found != blocks.end()) {
      if (step.kind == TraceStep::Kind::free_requested) {
        heap.release(*found->second);
      } else {
        heap.merge(found->second);
        blocks.erase(found);
      }
    }
  }
  result.requested_peak = heap.counters().requested_bytes.all.peak;
  result.reserved_peak = heap.counters().reserved_bytes.all.peak;
  result.segments = heap.counters().device_allocs;
  return result;
}

}  // namespace clutch_memory
