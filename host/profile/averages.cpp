// SPDX-License-Identifier: Apache-2.0
// Sums of events of one name, and their table.
#include "profile/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

using Key = std::tuple<bool, bool, std::string, std::string>;  // on the device, user's range, name, shapes

struct Sums {
  double device_total = 0, device_self = 0, children = 0;
  std::int64_t memory = 0;
};

/// The limit of matrix instructions, of the device that has the highest.
std::string matrix_limit_text(const Profile& profile, std::string_view matrix) {
  double most = 0;
  for (const auto& [index, device] : profile.devices) most = std::max(most, matrix_limit(device.roof, matrix));
  return most > 0 ? fmt::format("roof {:.1f} GFLOP/s", most * 1e-9) : "whose roof is not known";
}
std::string shortened(const std::string& text, std::size_t most) { return text.size() <= most ? text : text.substr(0, most - 3) + "..."; }

std::string time_text(double us) {
  return us >= 1e6 ? fmt::format("{:.3f}s", us * 1e-6) : us >= 1e3 ? fmt::format("{:.3f}ms", us * 1e-3) : fmt::format("{:.3f}us", us);
}

std::string bytes_text(std::int64_t bytes) {
  const double b = static_cast<double>(bytes), size = b < 0 ? -b : b;
  return size >= 1 << 30   ? fmt::format("{:.2f} GB", b / (1 << 30))
         : size >= 1 << 20 ? fmt::format("{:.2f} MB", b / (1 << 20))
         : size >= 1 << 10 ? fmt::format("{:.2f} KB", b / (1 << 10))
                           : fmt::format("{} b", bytes);
}

double sort_value(const profiler::KeyAverage& a, std::string_view by) {
  if (by == "cpu_time_total") return a.cpu_time_total;
  if (by == "device_time_total") return a.device_time_total;
  if (by == "self_cpu_time_total") return a.self_cpu_time_total;
  if (by == "self_device_time_total") return a.self_device_time_total;
  if (by == "device_memory_usage") return static_cast<double>(a.device_memory_usage);
  return static_cast<double>(a.count);
}

}  // namespace

std::vector<profiler::KeyAverage> profile_averages(const Profile& profile, const profiler::KeyAverageOptions& options) {
  std::unordered_map<std::uint64_t, Sums> sums;  // by scope
  for (std::uint32_t i : profile.order) {
    const ProfileRecord& r = profile.record(i);
    const double us = static_cast<double>(r.end - r.begin) * 1e-3;
    const bool work = is_work(r), memory = r.kind == RecordKind::memory;
    if (!is_command(r.kind) && !memory && r.parent != 0) sums[r.parent].children += us;
    if (work && r.parent != 0) sums[r.parent].device_self += us;
    if (!work && !memory) continue;
    for (const ProfileRecord* scope = profile.parent_of(r); scope; scope = profile.parent_of(*scope)) {
      Sums& s = sums[scope->id];
      if (work) s.device_total += us;
      if (memory) s.memory += static_cast<std::int64_t>(r.bytes);
    }
  }
  std::map<Key, profiler::KeyAverage> found;
  struct Busy {
    double seconds = 0, known = 0, allowed = 0, flops_time = 0, bytes_time = 0;
    std::string_view matrix = {};
    bool mixed = false;  ///< some have other matrix instructions than others
  };
  std::map<Key, Busy> busy;
  for (std::uint32_t i : profile.order) {
    const ProfileRecord& r = profile.record(i);
    if (r.kind == RecordKind::memory || (is_command(r.kind) && !r.finished)) continue;
    const bool device = is_command(r.kind), scope = r.kind == RecordKind::op || r.kind == RecordKind::range;
    std::string name(trace_name(r));
    if (name.starts_with("ProfilerStep#")) name = "ProfilerStep*";
    const Key key{device, r.kind == RecordKind::range, name, options.group_by_input_shape && r.kind == RecordKind::op ? r.plan : ""};
    profiler::KeyAverage& a = found[key];
    a.key = name, a.on_device = device, a.is_user_annotation = r.kind == RecordKind::range, a.input_shapes = std::get<3>(key);
    ++a.count;
    const double us = static_cast<double>(r.end - r.begin) * 1e-3;
    if (device) {
      a.device_time_total += us, a.self_device_time_total += us;
      a.flops += r.flops, a.bytes += r.bytes;
      const profiler::RoofPoint roof = profile.roof_of(r);
      Busy& b = busy[key];
      b.mixed = b.mixed || (a.count > 1 && roof.matrix != b.matrix), b.matrix = roof.matrix;
      b.seconds += us * 1e-6, b.allowed += roof.roof_us;
      if (roof.matrix.empty() || !roof.binding.empty()) b.known += us * 1e-6;
      (roof.binding == "compute" ? b.flops_time : b.bytes_time) += roof.roof_us;
      continue;
    }
    a.cpu_time_total += us;
    const Sums s = scope ? sums[r.id] : Sums();
    // A scope that was open at the end may have children that end later.
    a.self_cpu_time_total += std::max(0.0, us - s.children);
    a.device_time_total += s.device_total, a.self_device_time_total += s.device_self, a.device_memory_usage += s.memory;
  }
  std::vector<profiler::KeyAverage> all;
  for (auto& [key, a] : found) {
    if (const Busy& b = busy[key]; b.seconds > 0) {
      a.roof = {.gflops = a.flops / b.seconds * 1e-9, .gbps = a.bytes / b.seconds * 1e-9, .roof_us = b.allowed};
      if (b.known > 0) a.roof.roof_pct = 1e-4 * b.allowed / b.known;
      if (!b.mixed) a.roof.matrix = b.matrix;
      if (b.allowed > 0) a.roof.binding = b.flops_time > b.bytes_time ? "compute" : "memory";
    }
    all.push_back(std::move(a));
  }
  return all;
}

std::string profile_table(const Profile& profile, const profiler::TableOptions& options) {
  constexpr const char* kOp = "profiler::Profiler::table";
  constexpr std::string_view kKeys[] = {"cpu_time_total", "device_time_total", "self_cpu_time_total", "self_device_time_total", "device_memory_usage", "count"};
  const std::string& by = options.sort_by;
  if (!by.empty() && std::find(std::begin(kKeys), std::end(kKeys), by) == std::end(kKeys))
    throw Error(ErrorCode::invalid_argument, kOp, fmt::format("sort_by must be one of {}, got '{}'", fmt::join(kKeys, ", "), by));
  if (options.row_limit < 1) throw Error(ErrorCode::invalid_argument, kOp, fmt::format("row_limit must be at least 1, got {}", options.row_limit));
  std::vector<profiler::KeyAverage> rows = profile_averages(profile, {.group_by_input_shape = options.group_by_input_shape});
  std::stable_sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) {
    if (!by.empty()) return sort_value(a, by) > sort_value(b, by);
    return std::pair(a.device_time_total, a.cpu_time_total) > std::pair(b.device_time_total, b.cpu_time_total);
  });
  double cpu = 0, device = 0, allowed = 0;
  for (const auto& a : rows) {
    cpu += a.self_cpu_time_total;
    if (a.on_device) device += a.device_time_total, allowed += a.roof.roof_us;
  }
  auto share = [](double part, double whole) { return whole > 0 ? 100 * part / whole : 0; };
  std::string text = fmt::format("{:<36} {:>10} {:>11} {:>11} {:>10} {:>11} {:>11} {:>11} {:>8} {:>9} {:>9} {:>6} {:>11}\n", "Name", "Self CPU %", "Self CPU",
                                 "CPU total", "Self DEV %", "Self DEV", "DEV total", "DEV time avg", "# Calls", "GFLOP/s", "GB/s", "roof %", "DEV Mem");
  const std::string rule(text.size() - 1, '-');
  text = rule + '\n' + text + rule + '\n';
  int left = options.row_limit;
  for (const auto& a : rows) {
    if (left-- == 0) break;
    const bool own = a.on_device;
    text += fmt::format("{:<36} {:>9.2f}% {:>11} {:>11} {:>9.2f}% {:>11} {:>11} {:>11} {:>8} {:>9} {:>9} {:>6} {:>11}\n", shortened(a.key, 36),
                        share(a.self_cpu_time_total, cpu), time_text(a.self_cpu_time_total), time_text(a.cpu_time_total),
                        own ? share(a.self_device_time_total, device) : 0.0, time_text(a.self_device_time_total), time_text(a.device_time_total),
                        time_text(a.device_time_total / static_cast<double>(a.count)), a.count, a.roof.gflops > 0 ? fmt::format("{:.2f}", a.roof.gflops) : "-",
                        a.roof.gbps > 0 ? fmt::format("{:.2f}", a.roof.gbps) : "-", a.roof.roof_pct > 0 ? fmt::format("{:.0f}%", a.roof.roof_pct) : "-",
                        a.device_memory_usage != 0 ? bytes_text(a.device_memory_usage) : "-");
    if (!a.input_shapes.empty()) text += fmt::format("    {}\n", a.input_shapes);
  }
  const profiler::ProfileTotals totals = profile.totals();
  std::string of_matrix;
  for (const auto& a : rows)
    if (!a.roof.matrix.empty())
      of_matrix += fmt::format("Matrix instructions: {} multiplies {}, {}\n", shortened(a.key, 36), a.roof.matrix, matrix_limit_text(profile, a.roof.matrix));
  text += rule + fmt::format("\nSelf CPU time total: {}\nDevice time total: {}\n", time_text(cpu), time_text(device));
  if (allowed > 0) text += fmt::format("Time that the roof allows: {} ({:.0f} %)\n", time_text(allowed), share(allowed, device));
  text += of_matrix;
  text += fmt::format("Profiled: {} in {} events, of which the profiler took {}\n", time_text(totals.wall_us), totals.events, time_text(totals.overhead_us));
  if (totals.dropped > 0) text += fmt::format("Dropped: the oldest {} events, beyond max_events\n", totals.dropped);
  if (totals.untimed > 0) text += fmt::format("Without device times: {} commands\n", totals.untimed);
  return text;
}

}}}  // namespace clutch::v0::detail
