// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/cumsum.hpp>

#include "ops/traced.hpp"

namespace clutch { inline namespace v0 { namespace detail {

/// Inputs of the selection of cumsum; also the key of its cached plans.
struct CumsumProblem {
  DType dtype = DType::f32, output = DType::f32;
  bool columns = false;  ///< adjacent lines are adjacent in memory
  bool carries = false;  ///< select the kernel that sums the totals of blocks
  bool wide_index = false;
  std::uint8_t rank_lanes = 4;
};

/// Pure function. Errors: not_supported, invalid_argument.
KernelPlan select(const DeviceTraits& traits, const CumsumProblem& problem, std::string_view forced = {});

}}}  // namespace clutch::v0::detail
