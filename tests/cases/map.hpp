// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of map: what tests and benches share.
#include <clutch/ops/map.hpp>

#include "support/host_model.hpp"
#include "support/op_case.hpp"

#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

namespace clutch::cases {

struct MapCase {
  static constexpr std::string_view kStem = "map";
  /// Lengths around vectors, tiles and groups.
  static std::vector<std::int64_t> lengths(std::string_view level) {
    std::vector<std::int64_t> n{0, 1, 7, 15, 16, 17, 33, 8191, 8193, 20011};
    if (level == "nightly") n.insert(n.end(), {1 << 20, (1 << 22) + 5});
    return n;
  }
  static std::vector<Problem> problems(std::uint64_t) { return {}; }
  static constexpr Mutation kMutations[] = {{"", Edit::tail, "", ""}};
};

}  // namespace clutch::cases
