// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/cumsum.hpp>

#include "ops/traced.hpp"

namespace clutch { inline namespace v0 { namespace detail {

inline constexpr std::int64_t kCumsumBlock = 2048;  ///< part of the contract

/// What selection of cumsum looks at; also the key of its cached plans.
struct CumsumProblem {
  DType dtype = DType::f32, output = DType::f32;
  bool columns = false;  ///< lines lie side by side
  bool carries = false;  ///< the kernel that sums the blocks' totals
  bool wide_index = false;
  std::uint8_t rank_lanes = 4;
};

/// Pure. Errors: not_supported, invalid_argument.
KernelPlan select(const DeviceTraits& traits, const CumsumProblem& problem, std::string_view forced = {});

}}}  // namespace clutch::v0::detail
