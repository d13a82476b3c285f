// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "support/host_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace clutch::testing {

/// Compares raw storage bit for bit, any NaN equal to any NaN. Where the device flushes subnormals (`flushes`), elements with a
/// subnormal expected value may be 0 instead. Returns what differs first; "all zero" if nothing is proven.
inline std::string compare_bits(const std::vector<std::uint8_t>& got, const std::vector<std::uint8_t>& want, DType dtype, bool flushes = false) {
  if (got.size() != want.size()) return fmt::format("{} bytes instead of {}", got.size(), want.size());
  DType part = dtype == DType::c64 ? DType::f32 : dtype == DType::c128 ? DType::f64 : dtype;
  auto width = static_cast<std::size_t>(bits(part) / 8);
  bool any = want.size() < 8 * width;
  for (std::size_t i = 0; i < got.size() / width; ++i) {
    for (std::size_t b = 0; b < width; ++b) any = any || want[i * width + b] != 0;
    if (std::equal(got.begin() + static_cast<std::ptrdiff_t>(i * width), got.begin() + static_cast<std::ptrdiff_t>((i + 1) * width),
                   want.begin() + static_cast<std::ptrdiff_t>(i * width)))
      continue;
    double g = model::value_at(got.data(), i, part), w = model::value_at(want.data(), i, part);
    if (is_floating(part) && std::isnan(g) && std::isnan(w)) continue;
    double least = part == DType::f64 ? 0x1p-1022 : 0x1p-126;
    if (flushes && is_floating(part) && std::fabs(w) <= least && std::fabs(g) <= least) continue;
    return fmt::format("element {} is {} ({:#x}), not {} ({:#x})", i, g, got[i * width], w, want[i * width]);
  }
  return any ? "" : "the expected result is all zero and proves nothing";
}

}  // namespace clutch::testing
