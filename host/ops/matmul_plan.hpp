// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/matmul.hpp>

#include "encode/plan.hpp"

namespace clutch::inline v0::detail {

/// What selection of matmul looks at; also the key of its cached plans.
struct MatmulProblem {
  DType dtype = DType::f32, output = DType::f32;
  bool pack = false;  ///< the kernel that brings b into panels
};

/// Rows and vectors of columns of a register tile.
inline constexpr std::int64_t kMatmulRows = 6, kMatmulVectors = 4;
/// Most rows of tiles and panels that an item takes.
inline constexpr std::int64_t kMatmulTilesEach = 16, kMatmulPanelsEach = 4;
/// Rows of a panel that an item packs.
inline constexpr std::int64_t kMatmulPackRows = 64;

/// Pure. Errors: not_supported, invalid_argument.
KernelPlan select(const DeviceTraits& traits, const MatmulProblem& problem, std::string_view forced = {});

}  // namespace clutch::inline v0::detail
