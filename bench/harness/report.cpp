// SPDX-License-Identifier: Apache-2.0
#include "harness/bench.hpp"
#include "harness/json_input.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace clutch::bench {

namespace {

std::string time_text(double seconds) {
  if (seconds < 1e-6) return fmt::format("{:.1f} ns", seconds * 1e9);
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3f} ms", seconds * 1e3);
  return fmt::format("{:.3f} s", seconds);
}

std::string rate_text(double bytes_per_second) { return fmt::format("{:.1f} GB/s", bytes_per_second * 1e-9); }

}  // namespace

void print_header(const Context& context, const Roofline& r) {
  fmt::print("\ndevice    {}\nplatform  {} {}\nroofline  ", context.device, context.platform, context.driver);
  for (const auto& [dtype, flops] : r.peak_flops) fmt::print("{} {:.1f} GFLOP/s  ", dtype, flops * 1e-9);
  auto triad = r.bandwidth.find("triad/268435456");
  if (triad != r.bandwidth.end()) fmt::print("triad {}  ", rate_text(triad->second));
  fmt::print("launch {:.1f} us, with finish {:.1f} us  to device {}, back {}\n", r.launch_us, r.launch_finish_us, rate_text(r.host_to_device),
             rate_text(r.device_to_host));
  for (const std::string& line : r.suspect) fmt::print("suspect   {}\n", line);
  fmt::print("\n{:<32} {:>11} {:>11} {:>7} {:>9} {:>9} {:>6}  {}\n", "row", "hot", "cold", "noise", "GB/s", "GFLOP/s", "roof", "peers: their time / ours");
  std::fflush(stdout);
}

const PeerTiming* Result::fastest_peer() const {
  const auto& peers = measured.peers;
  auto fastest = std::min_element(peers.begin(), peers.end(), [](const PeerTiming& a, const PeerTiming& b) { return a.ratio < b.ratio; });
  return fastest == peers.end() ? nullptr : &*fastest;
}

void print_result(const Result& r) {
  if (!r.error.empty()) {
    fmt::print("{:<32} FAILED: {}\n", r.row.name, r.error);
    return;
  }
  std::string peers;
  for (const PeerTiming& p : r.measured.peers) peers += fmt::format("{}{} {:.2f}x", peers.empty() ? "" : ", ", p.name, p.ratio);
  fmt::print("{:<32} {:>11} {:>11} {:>6.1f}% {:>9} {:>9} {:>6}  {}{}\n", r.row.name, time_text(r.measured.hot.median),
             r.measured.cold ? time_text(r.measured.cold->median) : "-", r.measured.hot.noise_pct, r.row.bytes > 0 ? fmt::format("{:.2f}", r.gbps) : "-",
             r.row.flops > 0 ? fmt::format("{:.2f}", r.gflops) : "-", r.roofline_pct ? fmt::format("{:.0f}%", *r.roofline_pct) : "-", peers,
             (r.row.dense_flops > 0 && r.row.flops > 0 ? fmt::format("  dense {:.2f} GFLOP/s", r.gflops * r.row.dense_flops / r.row.flops) : "") +
                 (r.suspect ? fmt::format("  suspect: {}", fmt::join(r.doubts, "; ")) : ""));
  std::fflush(stdout);
}

void write_json(const std::string& path, const std::vector<Context>& contexts, const std::vector<Roofline>& rooflines, const std::vector<Result>& results,
                const Summaries& summaries) {
  nlohmann::ordered_json root;
  auto& context = root["context"];
  context["library"] = fmt::format("clutch {}", version());
  context["executable"] = "clutch-bench";
  if (!contexts.empty()) {
    context["date"] = contexts[0].date;
    context["git_hash"] = contexts[0].git_hash;
  }
  context["devices"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    const Roofline& r = rooflines[i];
    context["devices"].push_back(
        {{"device", contexts[i].device}, {"platform", contexts[i].platform}, {"driver", contexts[i].driver}, {"roofline", to_json(r)}});
  }
  root["benchmarks"] = nlohmann::ordered_json::array();
  for (const Result& r : results) {
    nlohmann::ordered_json row;
    row["name"] = r.row.name;
    row["run_name"] = r.row.name;
    row["run_type"] = "iteration";
    row["iterations"] = r.measured.hot.samples;
    row["real_time"] = r.measured.hot.median * 1e9;
    row["cpu_time"] = r.measured.hot.median * 1e9;
    row["time_unit"] = "ns";
    row["device"] = r.device;
    row["plan"] = r.plan;
    auto number = [&](const char* key, bool known, double value) { row[key] = known ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr); };
    number("gflops", r.row.flops > 0, r.gflops);
    if (r.row.dense_flops > 0 && r.row.flops > 0) row["dense_gflops"] = r.gflops * r.row.dense_flops / r.row.flops;
    number("gbps", r.row.bytes > 0, r.gbps);
    number("roofline_pct", r.roofline_pct.has_value(), r.roofline_pct.value_or(0));
    row["noise_pct"] = r.measured.hot.noise_pct;
    number("cold_time", r.measured.cold.has_value(), r.measured.cold ? r.measured.cold->median * 1e9 : 0);
    row["checked"] = r.checked;
    row["suspect"] = r.suspect;
    row["doubts"] = r.doubts;
    number("device_clock_ratio", r.device_clock_ratio.has_value(), r.device_clock_ratio.value_or(0));
    row["peers"] = nlohmann::ordered_json::object();
    for (const PeerTiming& p : r.measured.peers) row["peers"][p.name] = {{"real_time", p.timing.median * 1e9}, {"ratio", p.ratio}};
    if (!r.error.empty()) {
      row["error_occurred"] = true;
      row["error_message"] = r.error;
    }
    root["benchmarks"].push_back(std::move(row));
  }
  if (!summaries.ops.empty()) {
    auto& sweep = root["sweep"];
    if (summaries.count > 0) sweep["random"] = summaries.count, sweep["seed"] = summaries.seed;
    sweep["ops"] = nlohmann::ordered_json::array();
    for (const Summary& s : summaries.ops) {
      nlohmann::ordered_json op{{"op", s.op},
                                {"device", s.device},
                                {"shapes", s.shapes},
                                {"failed", s.failed},
                                {"without_peer", s.without_peer},
                                {"worst", nullptr},
                                {"low", nullptr},
                                {"median", nullptr},
                                {"worst_shapes", nlohmann::ordered_json::array()}};
      if (!s.worst_shapes.empty()) op["worst"] = s.worst, op["low"] = s.low, op["median"] = s.median;
      for (const auto& [ratio, shape] : s.worst_shapes) op["worst_shapes"].push_back({{"ratio", ratio}, {"shape", shape}});
      sweep["ops"].push_back(std::move(op));
    }
  }
  std::string temporary = path + ".tmp";
  std::ofstream out(temporary);
  out << root.dump(1) << '\n';
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(temporary, path, error);
  if (!out || error)
    throw Error(ErrorCode::io, "clutch-bench",
                fmt::format("the output must be a file that can be written, got {} ({})", path, error ? error.message() : "writing failed"));
}

}  // namespace clutch::bench
