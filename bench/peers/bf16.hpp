// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstdint>

namespace clutch::bench::omp {

struct Bf16 {
  std::uint16_t bits;
  operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
  static Bf16 of(float x) {
    auto u = std::bit_cast<std::uint32_t>(x);
    std::uint32_t r = (u + 0x7FFF + (u >> 16 & 1)) >> 16;
    return {static_cast<std::uint16_t>(x != x ? 0x7FC0 : r)};
  }
};

}  // namespace clutch::bench::omp
