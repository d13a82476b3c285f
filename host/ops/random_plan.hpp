// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/random.hpp>

#include "encode/plan.hpp"

namespace clutch { inline namespace v0 { namespace detail {

/// Inputs of the selection of uniform_ and normal_; also the key of their cached plans.
struct RandomProblem {
  DType dtype = DType::f32;
  bool normal = false;
};

/// Pure function. Errors: not_supported.
KernelPlan select(const DeviceTraits& traits, const RandomProblem& problem, std::string_view forced = {});

}}}  // namespace clutch::v0::detail
