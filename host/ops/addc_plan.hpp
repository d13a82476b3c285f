// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/addc.hpp>

#include "addc/args.h"
#include "encode/plan.hpp"

namespace clutch { inline namespace v0 { namespace detail {

enum class AddcOp : std::uint8_t { quotient = ADDC_QUOTIENT, product = ADDC_PRODUCT };

/// Floating-point operations of n elements: a quotient or a product, and a multiply-add.
constexpr double addc_flops(std::int64_t n) { return 3.0 * static_cast<double>(n); }

/// Inputs of the selection of addcdiv and addcmul; also the key of their cached plans.
struct AddcProblem {
  DType dtype = DType::f32;
  AddcOp op = AddcOp::quotient;
  AddcOrder order = AddcOrder::fma_of_quotient;
  Layout layout = Layout::contiguous;
  bool wide_index = false;
};

/// Pure function. Errors: not_supported, invalid_argument.
KernelPlan select(const DeviceTraits& traits, const AddcProblem& problem, std::string_view forced = {});
/// Names of the implementations, in the order of selection.
std::span<const Implementation<AddcProblem>> addc_implementations();

}}}  // namespace clutch::v0::detail
