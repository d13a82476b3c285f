// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/fill.hpp>

#include "encode/plan.hpp"

namespace clutch { inline namespace v0 { namespace detail {

/// What selection of fill_ and arange_ looks at; also the key of their cached plans. fill_ knows only the element's size.
struct FillProblem {
  DType dtype = DType::f32;
  Layout layout = Layout::contiguous;
  bool wide_index = false;
  bool arange = false;
};

/// Pure. Errors: not_supported, invalid_argument.
KernelPlan select(const DeviceTraits& traits, const FillProblem& problem, std::string_view forced = {});
std::span<const Implementation<FillProblem>> fill_implementations();

}}}  // namespace clutch::v0::detail
