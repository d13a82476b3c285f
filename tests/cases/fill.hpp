// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of fill_ and arange_: what tests and benches share.
#include <clutch/ops/fill.hpp>

#include "support/host_model.hpp"

#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

namespace clutch::cases {

struct FillCase {
  static constexpr std::string_view kStem = "fill";
  static std::vector<std::int64_t> lengths(std::string_view level) {
    std::vector<std::int64_t> n{0, 1, 3, 16, 63, 65, 8193, 50001};
    if (level == "nightly") n.push_back((1 << 22) + 5);
    return n;
  }
  static double bytes(std::int64_t n, DType dtype) { return static_cast<double>(n) * bits(dtype) / 8; }

  /// Element i of arange_.
  static void arange(void* out, DType dtype, std::size_t i, double start, double step) {
    if (is_integral(dtype)) {
      std::uint64_t r = static_cast<std::uint64_t>(static_cast<std::int64_t>(start)) + i * static_cast<std::uint64_t>(static_cast<std::int64_t>(step));
      std::memcpy(static_cast<char*>(out) + i * static_cast<std::size_t>(bits(dtype) / 8), &r, static_cast<std::size_t>(bits(dtype) / 8));
    } else if (dtype == DType::f64) {
      model::store_at(out, i, dtype, std::fma(static_cast<double>(i), step, start));
    } else {
      model::store_at(out, i, dtype, std::fma(static_cast<float>(i), static_cast<float>(step), static_cast<float>(start)));
    }
  }
};

}  // namespace clutch::cases
