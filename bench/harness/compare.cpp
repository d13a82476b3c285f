// SPDX-License-Identifier: Apache-2.0
#include "harness/bench.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace clutch::bench {

int compare_with(const std::string& old_path, const std::vector<Result>& results) {
  std::ifstream in(old_path);
  if (!in) throw Error(ErrorCode::io, "clutch-bench", fmt::format("{} cannot be read", old_path));
  nlohmann::json old = nlohmann::json::parse(in, nullptr, false);
  if (old.is_discarded() || !old.contains("benchmarks")) throw Error(ErrorCode::io, "clutch-bench", fmt::format("{} is no result of clutch-bench", old_path));
  // A loss counts when it is more than 5 % and more than three times the noise of both runs together.
  constexpr double kLeast = 5, kNoises = 3;
  int losses = 0, common = 0;
  fmt::print("\n{:<32} {:>12} {:>12} {:>9}  against {}\n", "row", "old", "new", "change", old_path);
  for (const Result& r : results) {
    for (const auto& row : old["benchmarks"]) {
      if (row.value("name", "") != r.row.name || row.value("device", "") != r.device || !r.error.empty() || row.contains("error_occurred")) continue;
      double before = row.value("real_time", 0.0) * 1e-9, now = r.measured.hot.median;
      if (before <= 0 || now <= 0) continue;
      ++common;
      double change = 100 * (now / before - 1);
      double noise = kNoises * std::hypot(row.value("noise_pct", 0.0), r.measured.hot.noise_pct);
      bool loss = change > kLeast && change > noise;
      losses += loss;
      fmt::print("{:<32} {:>9.3f} us {:>9.3f} us {:>+8.1f}%{}\n", r.row.name, before * 1e6, now * 1e6, change, loss ? "  LOSS" : "");
    }
  }
  fmt::print("{} rows in both, {} significant losses\n", common, losses);
  return losses;
}

}  // namespace clutch::bench
