// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the tests of dense and 2:4 products by matrix instructions share.
#include <clutch/clutch.hpp>

#include "encode/matrix_instructions.hpp"
#include "ops/matmul_plan.hpp"

#include <array>

namespace clutch::testing {

using detail::MatrixLayout;

inline constexpr std::array kLayouts{MatrixLayout::mma,         MatrixLayout::mfma,   MatrixLayout::wmma,
                                     MatrixLayout::wmma_halves, MatrixLayout::dpas_8, MatrixLayout::dpas_16};

/// True if the device can run the kernels, with plain code in the place of instructions.
inline bool can_run(const Device& device) {
  const DeviceTraits& t = device.traits();
  // The smallest tile of each layout has at most 256 items.
  return t.max_work_group >= 256 && t.local_bytes >= detail::matrix_tiles(MatrixLayout::mfma).back().local_bytes(MatrixLayout::mfma, true);
}

/// From -4 to 3, which f8 and bytes hold, too; from 0 for unsigned ones.
inline Tensor whole_numbers(const Dims& sizes, DType dtype, const Device& device, std::uint64_t seed) {
  const float least = dtype == DType::u8 ? 0.0f : -4.0f;
  return map([&](Expr x) { return floor(x * 8.0f) + param(least); }, {rand(sizes, {.device = device, .seed = seed})}).to(dtype);
}

}  // namespace clutch::testing
