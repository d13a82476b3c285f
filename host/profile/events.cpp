// SPDX-License-Identifier: Apache-2.0
// Events with the fields of PyTorch's FunctionEvent.
#include "profile/profile.hpp"

#include <algorithm>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

void fill_metadata(const Profile& profile, const ProfileRecord& r, profiler::EventMetadata& m) {
  m.stream = r.stream;
  m.queued_us = static_cast<double>(r.begin - r.queued) * 1e-3;
  m.plan = r.plan;
  if (r.kind == RecordKind::kernel) {
    m.block = {r.local, r.local_y, r.local_z};
    const std::uint64_t items[] = {r.global, r.global_y, r.global_z};
    for (std::size_t d = 0; d < 3; ++d) m.grid.at(d) = r.local == 0 ? items[d] : (items[d] + m.block.at(d) - 1) / std::max<std::uint64_t>(m.block.at(d), 1);
  } else if (r.kind == RecordKind::wait) {
    m.wait_on_stream = r.graph;
  } else if (r.kind != RecordKind::opaque) {
    m.bytes = static_cast<std::uint64_t>(r.kind == RecordKind::copy ? r.bytes / 2 : r.bytes);
  }
  m.graph_node_id = graph_node_id(r);
  m.graph_id = m.graph_node_id == 0 ? 0 : r.graph;
  m.labels = node_labels(profile, r);
}

profiler::FunctionEvent event_of(const Profile& profile, const ProfileRecord& r) {
  profiler::FunctionEvent e;
  const bool on_device = is_command(r.kind);
  e.id = r.id, e.external_id = r.parent;
  e.trace_name = trace_name(r);
  e.name = e.trace_name.starts_with("ProfilerStep#") ? "ProfilerStep*" : e.trace_name;
  e.activity_type = category(r);
  e.start_ns = profile.since_start(r.begin), e.end_ns = std::max(profile.since_start(r.end), e.start_ns);
  e.on_device = on_device;
  e.device_index = on_device || r.kind == RecordKind::memory ? r.device : 0;
  e.thread = on_device ? 0 : r.thread;
  e.device_resource_id = on_device ? r.stream : r.thread;
  e.flops = r.flops, e.bytes = r.kind == RecordKind::memory ? 0 : r.bytes;
  e.finished = r.finished;
  if (const ProfiledFacts* facts = profile.facts_of(r)) e.facts = facts->arguments;
  e.is_user_annotation = r.kind == RecordKind::range;
  if (r.kind == RecordKind::op && r.global != 0) {
    e.input_shapes = r.plan;
    for (const ProfiledOperand& operand : profile.log->operands(r.global).list) {
      e.structured_input_shapes.push_back(operand.sizes);
      e.structured_input_strides.push_back(operand.strides);
      e.input_dtypes.push_back(operand.dtype);
    }
  }
  if (r.kind == RecordKind::memory) e.device_memory_usage = static_cast<std::int64_t>(r.bytes);
  if (r.kind == RecordKind::call || on_device) e.flow_id = static_cast<std::uint32_t>(r.id), e.flow_type = 2, e.flow_start = !on_device;
  if (!on_device) return e;
  e.linked_correlation_id = r.parent;
  if (!r.finished) e.start_ns = e.end_ns = 0;
  fill_metadata(profile, r, e.event_metadata);
  e.roof = profile.roof_of(r);
  return e;
}

}  // namespace

std::vector<profiler::FunctionEvent> profile_events(const Profile& profile) {
  std::vector<profiler::FunctionEvent> events;
  events.reserve(profile.order.size());
  for (std::uint32_t i : profile.order) events.push_back(event_of(profile, profile.record(i)));
  for (const DeviceRange& range : device_ranges(profile)) {
    profiler::FunctionEvent e = event_of(profile, profile.record(range.range));
    e.activity_type = "gpu_user_annotation";
    e.start_ns = profile.since_start(range.begin), e.end_ns = profile.since_start(range.end);
    e.on_device = true, e.device_index = range.device, e.thread = 0, e.device_resource_id = range.stream;
    e.external_id = e.id;
    events.push_back(std::move(e));
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const auto& a, const auto& b) { return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns; });
  std::unordered_map<std::uint64_t, std::int64_t> scopes;
  for (std::size_t i = 0; i < events.size(); ++i)
    if (const auto& e = events[i]; !e.on_device && (e.activity_type == "cpu_op" || e.is_user_annotation)) scopes.emplace(e.id, static_cast<std::int64_t>(i));
  for (std::size_t i = 0; i < events.size(); ++i) {
    profiler::FunctionEvent& e = events[i];
    auto scope = scopes.find(e.external_id);
    if (scope == scopes.end() || e.activity_type == "gpu_user_annotation") continue;
    const auto own = static_cast<std::int64_t>(i);
    if (own == scope->second) continue;
    e.cpu_parent = scope->second;
    profiler::FunctionEvent& parent = events[static_cast<std::size_t>(scope->second)];
    (e.on_device ? parent.kernels : parent.cpu_children).push_back(own);
    if (e.activity_type != "cpu_instant_event") continue;
    for (std::int64_t at = e.cpu_parent; at >= 0; at = events[static_cast<std::size_t>(at)].cpu_parent) {
      profiler::FunctionEvent& outer = events[static_cast<std::size_t>(at)];
      outer.device_memory_usage += e.device_memory_usage;
      // A scope's own parent comes before it in the list, so it is known by now.
    }
  }
  return events;
}

}}}  // namespace clutch::v0::detail
