// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/nonzero.hpp>

#include "encode/plan.hpp"

namespace clutch { inline namespace v0 { namespace detail {

/// The kernels of nonzero, in the order of their launches.
enum class NonzeroStage : std::uint8_t { count, place };

/// Inputs of the selection of nonzero's kernels; also the key of their cached plans.
struct NonzeroProblem {
  NonzeroStage stage = NonzeroStage::count;
  DType dtype = DType::boolean;  ///< of the elements that are looked at
  std::uint8_t value_bytes = 1;  ///< of an element of the values
  bool firsts = false;           ///< those that differ from the one before them are found
  std::uint8_t rank_lanes = 4;
};

/// Pure function. Errors: invalid_argument, not_supported for a forced implementation.
KernelPlan select(const DeviceTraits& traits, const NonzeroProblem& problem, std::string_view forced = {});

}}}  // namespace clutch::v0::detail
