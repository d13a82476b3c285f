// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/optim.hpp>

#include "encode/plan.hpp"
#include "optim/args.h"

namespace clutch { inline namespace v0 { namespace detail {

enum class OptimKind : std::uint8_t { sgd = OPTIM_SGD, adam = OPTIM_ADAM, adagrad = OPTIM_ADAGRAD, rmsprop = OPTIM_RMSPROP };

/// Inputs of the selection of an optimizer's step; also the key of its cached plans.
struct OptimProblem {
  DType dtype = DType::f32;
  DType state = DType::f32;
  OptimKind kind = OptimKind::adam;
  optim::Numerics numerics = optim::Numerics::automatic;
  bool extra = false;   ///< amsgrad, or centered RMSprop
  bool buffer = false;  ///< momentum of SGD and RMSprop
  bool master = false;
  optim::Rounding rounding = optim::Rounding::nearest;
  bool scaled = false;  ///< gradients are divided by a scale
  bool listed = false;  ///< each parameter has a tensor of its step

  int states() const { return (kind == OptimKind::sgd ? 0 : kind == OptimKind::adam ? 2 : 1) + buffer + extra; }
  bool compensated() const { return rounding == optim::Rounding::kahan; }
  int columns() const { return optim_columns(states(), master || compensated() || listed); }
};

/// Kernels that assist steps.
enum class OptimAid : std::uint8_t {
  norm_chunks,
  norm_total,
  norms,
  scale,
  unscale,  ///< multiplies by the inverse of a scale, and notes gradients that are not finite
  check,    ///< only notes gradients that are not finite
  update_scaler,
  schedule,
};
struct OptimAidProblem {
  DType dtype = DType::f32;
  optim::NormType norm = optim::NormType::two;
  OptimAid aid = OptimAid::norm_chunks;
};
KernelPlan select(const DeviceTraits& traits, const OptimAidProblem& problem, std::string_view forced = {});

/// Pure function. Errors: not_supported, invalid_argument.
KernelPlan select(const DeviceTraits& traits, const OptimProblem& problem, std::string_view forced = {});
/// Names of the implementations, in the order of selection.
std::span<const Implementation<OptimProblem>> optim_implementations();

}}}  // namespace clutch::v0::detail
