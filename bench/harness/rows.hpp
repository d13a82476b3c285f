// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "harness/bench.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

namespace clutch::bench {

/// Sizes 2^10 ... 2^25 of element-wise rows; the default and quick ones stand for launch, cache and memory.
struct SweptSize {
  std::int64_t n;
  bool in_default;
  bool in_quick;
};
inline std::vector<SweptSize> element_sizes() {
  std::vector<SweptSize> sizes;
  for (int e = 10; e <= 25; ++e) sizes.push_back({std::int64_t{1} << e, e == 10 || e == 14 || e == 18 || e == 22 || e == 24, e == 10 || e == 24});
  return sizes;
}

/// From here on a row has the device's own triad on as many bytes in its pairs: machines drift by half while rows run.
inline constexpr std::int64_t kTriadFrom = 1 << 22;

inline std::string row_name(std::string_view op, DType dtype, std::int64_t n) { return fmt::format("{}/{}/{}", op, name(dtype), n); }

}  // namespace clutch::bench
