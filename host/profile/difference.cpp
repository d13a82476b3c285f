// SPDX-License-Identifier: Apache-2.0
// Two profiles side by side.
#include "profile/output.hpp"
#include "profile/profile.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <stdexcept>

namespace clutch { inline namespace v0 { namespace profiler {

namespace {

using Times = std::map<std::string, std::vector<double>>;  // microseconds of the commands of a name

double median(std::vector<double> v) {
  const auto middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  if (v.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(v.begin(), middle)) / 2;
}

KernelTimes summary(const std::vector<double>& times) {
  KernelTimes t{.count = static_cast<std::int64_t>(times.size()), .median_us = median(times)};
  std::vector<double> away;
  for (const double us : times) t.total_us += us, away.push_back(std::abs(us - t.median_us));
  constexpr double kSigma = 1.4826;  // of a normal distribution, by its median absolute deviation
  t.noise_pct = t.median_us > 0 ? 100 * kSigma * median(away) / t.median_us : 0;
  return t;
}

std::vector<KernelDifference> compare(const Times& before, const Times& after) {
  std::map<std::string, KernelDifference> rows;
  for (const auto& [name, times] : before) rows[name].before = summary(times);
  for (const auto& [name, times] : after) rows[name].after = summary(times);
  std::vector<KernelDifference> all;
  for (auto& [name, row] : rows) {
    row.key = name;
    const KernelTimes &a = row.before, &b = row.after;
    if (a.count > 0 && b.count > 0 && a.median_us > 0) {
      row.change_pct = 100 * (b.median_us / a.median_us - 1);
      // Standard error of a median: 1.2533 sigma / sqrt(n).
      auto error = [](const KernelTimes& t) { return 1.2533 * t.median_us * t.noise_pct * 1e-2 / std::sqrt(static_cast<double>(t.count)); };
      constexpr std::int64_t kLeast = 5;
      constexpr double kLeastPct = 1;
      row.significant = a.count >= kLeast && b.count >= kLeast && std::abs(row.change_pct) >= kLeastPct &&
                        std::abs(b.median_us - a.median_us) > 3 * std::hypot(error(a), error(b));
    }
    all.push_back(std::move(row));
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& x, const auto& y) {
    return std::abs(x.after.total_us - x.before.total_us) > std::abs(y.after.total_us - y.before.total_us);
  });
  return all;
}

Times read_times(const std::string& path) {
  constexpr const char* kOp = "profiler::compare_traces";
  std::ifstream in(path, std::ios::binary);
  std::string text;
  for (std::array<char, 1 << 16> block; in.read(block.data(), block.size()) || in.gcount() > 0;)
    text.append(block.data(), static_cast<std::size_t>(in.gcount()));
  if (!in.is_open() || in.bad()) throw Error(ErrorCode::io, kOp, fmt::format("the trace must be a file that can be read, got {}", path));
  auto refuse = [&](std::string_view why) {
    throw Error(ErrorCode::io, kOp, fmt::format("the trace must be JSON, plain or compressed by gzip, got {}, which is {}", path, why));
  };
  if (text.starts_with("\x1f\x8b")) {
    try {
      text = detail::gunzip(text);
    } catch (const std::runtime_error& e) {
      refuse(fmt::format("a broken gzip file: {}", e.what()));
    }
  }
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || (text[first] != '{' && text[first] != '[')) refuse("neither");
  Times times;
  try {
    const nlohmann::json trace = nlohmann::json::parse(text);
    for (const auto& e : trace.is_array() ? trace : trace.at("traceEvents")) {
      const std::string cat = e.value("cat", "");
      if (e.value("ph", "") == "X" && (cat == "kernel" || cat == "gpu_memcpy" || cat == "gpu_memset"))
        times[e.at("name").get<std::string>()].push_back(e.at("dur").get<double>());
    }
  } catch (const nlohmann::json::exception& e) {
    throw Error(ErrorCode::io, kOp, fmt::format("the trace must be what export_chrome_trace() writes, got {}: {}", path, e.what()));
  }
  return times;
}

Times times_of(std::span<const FunctionEvent> events) {
  Times times;
  for (const FunctionEvent& e : events)
    if (e.on_device && e.finished && (e.activity_type == "kernel" || e.activity_type == "gpu_memcpy" || e.activity_type == "gpu_memset"))
      times[e.trace_name].push_back(e.time_us());
  return times;
}

}  // namespace

std::vector<KernelDifference> compare_events(std::span<const FunctionEvent> before, std::span<const FunctionEvent> after) {
  return compare(times_of(before), times_of(after));
}

std::vector<KernelDifference> compare_traces(const std::string& before, const std::string& after) { return compare(read_times(before), read_times(after)); }

std::string to_string(std::span<const KernelDifference> rows) {
  std::string text =
      fmt::format("{:<40} {:>8} {:>8} {:>11} {:>11} {:>8} {:>8} {:>9}\n", "Name", "# old", "# new", "old us", "new us", "old +-", "new +-", "change");
  for (const KernelDifference& r : rows) {
    const bool both = r.before.count > 0 && r.after.count > 0;
    const std::string change = !both ? (r.after.count > 0 ? "new" : "gone") : fmt::format("{:+.1f}%{}", r.change_pct, r.significant ? " *" : "  ");
    text += fmt::format("{:<40} {:>8} {:>8} {:>11.3f} {:>11.3f} {:>7.1f}% {:>7.1f}% {:>9}\n", r.key, r.before.count, r.after.count, r.before.median_us,
                        r.after.median_us, r.before.noise_pct, r.after.noise_pct, change);
  }
  return text + "Medians; * differs by more than three standard errors and 1 %\n";
}

}}}  // namespace clutch::v0::profiler
