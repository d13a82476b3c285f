// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/scatter.hpp>

#include "encode/plan.hpp"

namespace clutch { inline namespace v0 { namespace detail {

/// Inputs of the selection of scatter_reduce; also the key of its cached plans.
struct ScatterProblem {
  DType dtype = DType::f32, index = DType::i64;
  Reduce reduce = Reduce::sum;
  bool direct = true;  ///< accumulates in the result's memory
  bool wide_index = false;
  bool rows = false;  ///< with `direct`: the index selects whole rows, whose features are contiguous
  std::uint8_t rank_lanes = 4;
};

/// Errors: invalid_argument for a name that no implementation has.
void check_scatter_implementation(std::string_view forced, std::string_view op);

/// gather, with `missing` for indices out of range; for floating tensors.
Tensor gather_or(const Tensor& x, int dim, const Tensor& index, double missing, const char* op, const Stream& stream);

/// Pure function. Errors: not_supported, invalid_argument.
KernelPlan select(const DeviceTraits& traits, const ScatterProblem& problem, std::string_view forced = {});

}}}  // namespace clutch::v0::detail
