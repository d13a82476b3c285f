// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "harness/bench.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace clutch::bench {

/// A row of an earlier --json file.
struct OldRow {
  std::string name, device;
  double seconds = 0;
  double noise_pct = 0;
};

/// Rows without errors of a result file. Errors: io for anything that is no result of clutch-bench.
std::vector<OldRow> parse_results(const std::string& text);

/// The part of an earlier --json file that a picture shows: its first device, and times of its rows and of their peers.
struct Shown {
  Context context;
  std::vector<Result> results;
};
/// Errors: io for anything that is no result of clutch-bench, or has no device.
Shown parse_shown(const std::string& text);

/// A roofline as its file keeps it. Errors: io for anything else.
Roofline parse_roofline(const std::string& text);
nlohmann::ordered_json to_json(const Roofline& roofline);

/// The whole of a file. Errors: io.
std::string read_file(const std::string& path);

}  // namespace clutch::bench
