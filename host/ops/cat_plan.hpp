// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/cat.hpp>

#include "encode/plan.hpp"

namespace clutch { inline namespace v0 { namespace detail {

/// Inputs of the selection of copies of lists; also the key of their cached plans.
struct CatProblem {
  DType dtype = DType::f32;
  Layout layout = Layout::rows;  ///< rows: each piece is rows of unit stride; else strided
};

/// Pure function. Errors: not_supported, invalid_argument.
KernelPlan select(const DeviceTraits& traits, const CatProblem& problem, std::string_view forced = {});
std::span<const Implementation<CatProblem>> cat_implementations();

}}}  // namespace clutch::v0::detail
