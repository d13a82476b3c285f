// SPDX-License-Identifier: Apache-2.0
#include "harness/json_input.hpp"

#include <fmt/format.h>

#include <cmath>

namespace clutch::bench {

int compare_with(const std::string& old_path, const std::vector<Result>& results) {
  std::vector<OldRow> old = parse_results(read_file(old_path));
  // A loss counts when it is more than 5 % and more than three times the noise of both runs together.
  constexpr double kLeast = 5, kNoises = 3;
  int losses = 0, common = 0;
  fmt::print("\n{:<32} {:>12} {:>12} {:>9}  against {}\n", "row", "old", "new", "change", old_path);
  for (const Result& r : results) {
    for (const OldRow& row : old) {
      if (row.name != r.row.name || row.device != r.device || !r.error.empty()) continue;
      double before = row.seconds, now = r.measured.hot.median;
      if (before <= 0 || now <= 0) continue;
      ++common;
      double change = 100 * (now / before - 1);
      double noise = kNoises * std::hypot(row.noise_pct, r.measured.hot.noise_pct);
      bool loss = change > kLeast && change > noise;
      losses += loss;
      fmt::print("{:<32} {:>9.3f} us {:>9.3f} us {:>+8.1f}%{}\n", r.row.name, before * 1e6, now * 1e6, change, loss ? "  LOSS" : "");
    }
  }
  fmt::print("{} rows in both, {} significant losses\n", common, losses);
  return losses;
}

}  // namespace clutch::bench
