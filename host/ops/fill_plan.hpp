// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/fill.hpp>

#include "encode/plan.hpp"

namespace clutch { inline namespace v0 { namespace detail {

/// Inputs of the selection of fill_ and arange_; also the key of their cached plans. For fill_ only the element's size counts.
struct FillProblem {
  DType dtype = DType::f32;
  Layout layout = Layout::contiguous;
  bool wide_index = false;
  bool arange = false;
};

/// Pure function. Errors: not_supported, invalid_argument.
KernelPlan select(const DeviceTraits& traits, const FillProblem& problem, std::string_view forced = {});
std::span<const Implementation<FillProblem>> fill_implementations();

}}}  // namespace clutch::v0::detail
