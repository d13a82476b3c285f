// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory_report.hpp"

#include "runtime/pickle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

/// The labels' numbers in the order of bytes at the peak.
std::vector<std::size_t> order_of(const std::vector<std::uint64_t>& at_peak) {
  std::vector<std::size_t> order(at_peak.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return at_peak[a] > at_peak[b]; });
  return order;
}
template <class T>
std::vector<T> sorted(const std::vector<T>& values, const std::vector<std::size_t>& order) {
  std::vector<T> result;
  for (const std::size_t i : order) result.push_back(values[i]);
  return result;
}

struct Live {
  std::uint64_t bytes = 0;
  std::string label;
};

/// Blocks that were there before a trace: freed in it without having been allocated, or there at its end without.
std::map<std::uint64_t, Live> live_before(const MemorySnapshot& snapshot, std::size_t device, const std::vector<MemoryTraceEntry>& trace) {
  std::map<std::uint64_t, Live> before;
  std::set<std::uint64_t> allocated, ended;
  for (const MemoryTraceEntry& entry : trace) {
    if (entry.action == "alloc") allocated.insert(entry.address);
    if (entry.action != "free_requested") continue;
    if (!allocated.contains(entry.address) && !ended.contains(entry.address)) before[entry.address] = {entry.size, entry.label};
    allocated.erase(entry.address);
    ended.insert(entry.address);
  }
  for (const MemorySegment& segment : snapshot.segments)
    for (const MemoryBlock& block : segment.blocks)
      if (segment.device == static_cast<int>(device) && block.state == "active_allocated" && !allocated.contains(block.address) &&
          !ended.contains(block.address))
        before[block.address] = {block.requested_size, block.label};
  return before;
}

}  // namespace

MemoryTimeline timeline_of(const MemorySnapshot& snapshot, std::size_t device, std::size_t most_points) {
  static const std::vector<MemoryTraceEntry> nothing;
  const std::vector<MemoryTraceEntry>& trace = device < snapshot.device_traces.size() ? snapshot.device_traces[device] : nothing;
  const std::map<std::uint64_t, Live> before = live_before(snapshot, device, trace);
  MemoryTimeline timeline;
  std::map<std::string, std::size_t> index;
  auto slot = [&](const std::string& label) {
    auto [found, fresh] = index.emplace(label, index.size());
    if (fresh) timeline.labels.push_back(label);
    return found->second;
  };
  for (const auto& [address, block] : before) slot(block.label);
  for (const MemoryTraceEntry& entry : trace)
    if (entry.action == "alloc") slot(entry.label);
  // Calls `visit` with the number of events so far, bytes in all, and bytes and blocks of each label: before the first event, and after each.
  auto walk = [&](auto visit) {
    std::vector<std::uint64_t> bytes(timeline.labels.size()), blocks(timeline.labels.size());
    std::map<std::uint64_t, Live> live = before;
    std::uint64_t total = 0;
    for (const auto& [address, block] : live) bytes[slot(block.label)] += block.bytes, ++blocks[slot(block.label)], total += block.bytes;
    std::size_t event = 0;
    visit(event, total, bytes, blocks, nullptr);
    for (const MemoryTraceEntry& entry : trace) {
      if (entry.action == "alloc") {
        live[entry.address] = {entry.size, entry.label};
        bytes[slot(entry.label)] += entry.size, ++blocks[slot(entry.label)], total += entry.size;
      } else if (auto found = live.find(entry.address); entry.action == "free_requested" && found != live.end()) {
        const std::size_t at = slot(found->second.label);
        bytes[at] -= found->second.bytes, --blocks[at], total -= found->second.bytes;
        live.erase(found);
      } else {
        continue;
      }
      visit(++event, total, bytes, blocks, &entry);
    }
    return event;
  };
  std::vector<std::uint64_t> totals;
  timeline.events = walk([&](std::size_t, std::uint64_t total, const auto&, const auto&, const MemoryTraceEntry*) { totals.push_back(total); });
  const std::size_t part = (totals.size() + most_points - 1) / most_points;
  std::vector<bool> kept(totals.size());
  for (std::size_t begin = 0; begin < totals.size(); begin += part) {
    const auto first = totals.begin() + static_cast<std::ptrdiff_t>(begin),
               last = totals.begin() + static_cast<std::ptrdiff_t>(std::min(totals.size(), begin + part));
    kept[static_cast<std::size_t>(std::max_element(first, last) - totals.begin())] = true;
  }
  const auto peak = static_cast<std::size_t>(std::max_element(totals.begin(), totals.end()) - totals.begin());
  const MemoryTraceEntry* raised = nullptr;
  walk([&](std::size_t event, std::uint64_t, const std::vector<std::uint64_t>& bytes, const std::vector<std::uint64_t>& blocks, const MemoryTraceEntry* entry) {
    if (event == peak) timeline.peak = {event, bytes}, timeline.blocks_at_peak = blocks, raised = entry;
  });
  const std::vector<std::size_t> order = order_of(timeline.peak.bytes);
  const std::size_t first = std::min(order.size(), kPointLabels);
  walk([&](std::size_t event, std::uint64_t total, const std::vector<std::uint64_t>& bytes, const auto&, const MemoryTraceEntry*) {
    if (!kept[event]) return;
    std::vector<std::uint64_t> largest;
    for (std::size_t i = 0; i < first; ++i) largest.push_back(bytes[order[i]]), total -= bytes[order[i]];
    if (first < order.size()) largest.push_back(total);
    timeline.points.push_back({event, std::move(largest)});
  });
  timeline.labels = sorted(timeline.labels, order);
  timeline.blocks_at_peak = sorted(timeline.blocks_at_peak, order);
  timeline.peak.bytes = sorted(timeline.peak.bytes, order);
  if (raised) timeline.raised_by_bytes = raised->size, timeline.raised_by_label = raised->label;
  // Backwards from the segments that there are at the end.
  for (const MemorySegment& segment : snapshot.segments)
    if (segment.device == static_cast<int>(device)) timeline.reserved_at_peak += segment.total_size;
  for (auto entry = trace.rbegin(); entry != trace.rend() && &*entry != raised; ++entry) {
    const bool gained = entry->action == "segment_alloc" || entry->action == "segment_map";
    if (gained) timeline.reserved_at_peak -= std::min(entry->size, timeline.reserved_at_peak);
    if (entry->action == "segment_free" || entry->action == "segment_unmap") timeline.reserved_at_peak += entry->size;
  }
  return timeline;
}

std::string pickle_of(const MemorySnapshot& snapshot) {
  PickleWriter w;
  auto number = [&](std::string_view key, auto value) {
    w.text(key);
    w.integer(value);
  };
  auto word = [&](std::string_view key, std::string_view value) {
    w.text(key);
    w.text(value);
  };
  auto truth = [&](std::string_view key, bool value) {
    w.text(key);
    w.boolean(value);
  };
  auto pair = [&](std::string_view key, PoolId id) {
    w.text(key);
    w.begin_tuple();
    w.integer(id.first);
    w.integer(id.second);
    w.end_tuple();
  };
  /// C++ has no stack of names: the label is the one frame.
  auto frames = [&](const std::string& label) {
    w.text("frames");
    w.begin_list();
    if (!label.empty()) {
      w.begin_dict();
      word("filename", "");
      number("line", std::int64_t{0});
      word("name", label);
      w.end_dict();
    }
    w.end_list();
  };
  w.begin_dict();
  w.text("segments");
  w.begin_list();
  for (const MemorySegment& segment : snapshot.segments) {
    w.begin_dict();
    number("device", std::int64_t{segment.device});
    number("address", segment.address);
    number("total_size", segment.total_size);
    number("allocated_size", segment.allocated_size);
    number("active_size", segment.active_size);
    number("requested_size", segment.requested_size);
    number("stream", segment.stream);
    word("segment_type", segment.small ? "small" : "large");
    pair("segment_pool_id", segment.pool);
    truth("is_expandable", segment.is_expandable);
    frames({});
    w.text("blocks");
    w.begin_list();
    for (const MemoryBlock& block : segment.blocks) {
      w.begin_dict();
      number("address", block.address);
      number("size", block.size);
      number("requested_size", block.requested_size);
      word("state", block.state);
      frames(block.label);
      w.end_dict();
    }
    w.end_list();
    w.end_dict();
  }
  w.end_list();
  w.text("device_traces");
  w.begin_list();
  for (const std::vector<MemoryTraceEntry>& trace : snapshot.device_traces) {
    w.begin_list();
    for (const MemoryTraceEntry& entry : trace) {
      w.begin_dict();
      word("action", entry.action);
      number(entry.action == "oom" ? "device_free" : "addr", entry.address);
      number("size", entry.size);
      number("stream", entry.stream);
      pair("segment_pool_id", entry.pool);
      number("time_us", entry.time_us);
      frames(entry.label);
      w.end_dict();
    }
    w.end_list();
  }
  w.end_list();
  w.text("allocator_settings");
  w.begin_dict();
  const AllocatorSettings& settings = snapshot.settings;
  word("PYTORCH_CUDA_ALLOC_CONF", settings.last_allocator_settings);
  word("last_allocator_settings", settings.last_allocator_settings);
  w.text("max_split_size");
  settings.max_split_size == UINT64_MAX ? w.integer(std::int64_t{-1}) : w.integer(settings.max_split_size);
  w.text("garbage_collection_threshold");
  w.number(settings.garbage_collection_threshold);
  truth("expandable_segments", settings.expandable_segments);
  number("pinned_num_register_threads", std::int64_t{1});
  truth("release_lock_on_cudamalloc", false);
  truth("pinned_use_host_register", false);
  truth("graph_capture_record_stream_reuse", false);
  w.text("roundup_power2_divisions");
  w.begin_dict();
  for (std::size_t i = 0; i < settings.roundup_power2_divisions.size(); ++i)
    number(fmt::format("{}", std::uint64_t{1} << i), settings.roundup_power2_divisions[i]);
  w.end_dict();
  w.end_dict();
  w.text("external_annotations");
  w.begin_list();
  w.end_list();
  w.end_dict();
  return w.finish();
}

}}}  // namespace clutch::v0::detail
