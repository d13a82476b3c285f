// SPDX-License-Identifier: Apache-2.0
#include "profile/profile.hpp"

#include "runtime/registry.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace clutch { inline namespace v0 { namespace detail {

const ProfileRecord* Profile::parent_of(const ProfileRecord& r) const {
  auto found = r.parent == 0 ? scopes.end() : scopes.find(r.parent);
  return found == scopes.end() ? nullptr : &record(found->second);
}

const ProfiledFacts* Profile::facts_of(const ProfileRecord& r) const {
  if (!log->has_facts()) return nullptr;
  if (r.kind == RecordKind::range) return log->facts(r.global);
  if (!is_command(r.kind) || r.kind == RecordKind::wait) return nullptr;
  if (const ProfiledFacts* own = r.kind == RecordKind::opaque ? log->facts(r.global) : nullptr) return own;
  for (const ProfileRecord* scope = parent_of(r); scope; scope = parent_of(*scope))
    if (const ProfiledFacts* facts = scope->kind == RecordKind::range ? log->facts(scope->global) : nullptr) return facts;
  return nullptr;
}

std::shared_ptr<Profile> make_profile(std::unique_ptr<ProfileLog> log, const profiler::DeviceRoof& roof) {
  auto profile = std::make_shared<Profile>();
  log->finish();
  const auto count = static_cast<std::uint32_t>(log->size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const ProfileRecord& r = log->at(i);
    if (r.kind == RecordKind::op || r.kind == RecordKind::range) profile->scopes.emplace(r.id, i);
    if (is_command(r.kind) || r.kind == RecordKind::memory) profile->devices.try_emplace(r.device);
  }
  profile->order.resize(count);
  std::iota(profile->order.begin(), profile->order.end(), 0u);
  std::stable_sort(profile->order.begin(), profile->order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const ProfileRecord &x = log->at(a), &y = log->at(b);
    return x.begin != y.begin ? x.begin < y.begin : x.end > y.end;
  });
  for (auto& [index, device] : profile->devices) {
    const std::vector<Device> all = devices();
    if (static_cast<std::size_t>(index) >= all.size()) continue;
    const Device& known = all[static_cast<std::size_t>(index)];
    const DeviceTraits& traits = claimed_traits(*known.record());
    device = {known.name(), traits.global_bytes, traits.compute_units, traits.max_work_group,
              roof.flops > 0 || roof.bytes > 0 || !roof.matrix.empty() ? roof : profiler::kept_roof(known)};
  }
  profile->log = std::move(log);
  return profile;
}

profiler::ProfileTotals Profile::totals() const {
  std::uint64_t commands = 0;
  for (std::uint32_t i = 0; i < order.size(); ++i) commands += is_command(record(i).kind);
  return {.events = log->size(),
          .dropped = log->dropped(),
          .untimed = log->untimed,
          .wall_us = static_cast<double>(log->stop - std::min(log->stop, log->start)) * 1e-3,
          .overhead_us = (static_cast<double>(commands) * command_cost_ns + static_cast<double>(log->drain_ns)) * 1e-3,
          .command_cost_us = command_cost_ns * 1e-3};
}

std::string_view trace_name(const ProfileRecord& r) {
  switch (r.kind) {
    case RecordKind::copy: return "Memcpy DtoD (Device -> Device)";
    case RecordKind::fill: return "Memset (Device)";
    case RecordKind::upload: return "Memcpy HtoD (Host -> Device)";
    case RecordKind::read: return "Memcpy DtoH (Device -> Host)";
    case RecordKind::wait: return "Stream Wait Event";
    default: return r.name;
  }
}

std::string_view category(const ProfileRecord& r) {
  switch (r.kind) {
    case RecordKind::op:
    case RecordKind::host_task: return "cpu_op";
    case RecordKind::range: return "user_annotation";
    case RecordKind::call:
    case RecordKind::mark: return "cuda_runtime";
    case RecordKind::sync:
    case RecordKind::wait: return "cuda_sync";
    case RecordKind::overhead: return "overhead";
    case RecordKind::memory: return "cpu_instant_event";
    case RecordKind::copy:
    case RecordKind::upload:
    case RecordKind::read: return "gpu_memcpy";
    case RecordKind::fill: return "gpu_memset";
    default: return "kernel";
  }
}

std::uint64_t graph_node_id(const ProfileRecord& r) { return r.kind == RecordKind::wait || r.graph == 0 ? 0 : std::uint64_t{r.graph} << 32 | r.node; }

std::vector<std::pair<std::string, std::string>> node_labels(const Profile& profile, const ProfileRecord& r) {
  std::vector<std::pair<std::string, std::string>> merged;
  auto graph = graph_node_id(r) == 0 ? profile.log->graph_labels.end() : profile.log->graph_labels.find(r.graph);
  if (graph == profile.log->graph_labels.end() || r.node >= graph->second.size()) return merged;
  auto put = [&](const std::string& key, const std::string& value) {
    auto known = std::find_if(merged.begin(), merged.end(), [&](const auto& row) { return row.first == key; });
    if (known == merged.end())
      merged.emplace_back(key, value);
    else
      known->second = value;
  };
  for (const NodeLabel& label : graph->second[r.node]) {
    put("str", label.name);
    for (const auto& [key, value] : label.values) put(key, value);
  }
  return merged;
}

std::vector<DeviceRange> device_ranges(const Profile& profile) {
  std::map<std::tuple<std::uint32_t, std::uint16_t, std::uint64_t>, DeviceRange> found;
  for (std::uint32_t i : profile.order) {
    const ProfileRecord& r = profile.record(i);
    if (!is_work(r)) continue;
    for (const ProfileRecord* scope = profile.parent_of(r); scope; scope = profile.parent_of(*scope)) {
      if (scope->kind != RecordKind::range) continue;
      const std::uint32_t index = profile.scopes.at(scope->id);
      auto [at, fresh] = found.try_emplace({index, r.device, r.stream}, DeviceRange{index, r.device, r.stream, r.begin, r.end});
      if (!fresh) at->second.begin = std::min(at->second.begin, r.begin), at->second.end = std::max(at->second.end, r.end);
    }
  }
  std::vector<DeviceRange> ranges;
  for (const auto& [key, range] : found) ranges.push_back(range);
  return ranges;
}

}}}  // namespace clutch::v0::detail
