// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of @STEM@: what tests and benches share.
#include <clutch/ops/@STEM@.hpp>

#include "support/host_model.hpp"

#include <string_view>
#include <vector>

namespace clutch::cases {

struct @PASCAL@Case {
  static constexpr std::string_view kStem = "@STEM@";
  static std::vector<std::int64_t> lengths(std::string_view level) {
    std::vector<std::int64_t> n{0, 1, 17, 8193};
    if (level == "nightly") n.push_back(1 << 22);
    return n;
  }
  static double bytes(std::int64_t n) { return 8.0 * static_cast<double>(n); }
  static float reference(float x) { return -x; }
};

}  // namespace clutch::cases
