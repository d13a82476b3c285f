// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/copy.hpp>

#include "encode/plan.hpp"

namespace clutch { inline namespace v0 { namespace detail {

/// Inputs of the selection of copy_ and cast; also the key of their cached plans.
struct CopyProblem {
  DType from = DType::f32;
  DType to = DType::f32;
  Layout layout = Layout::contiguous;
  bool wide_index = false;
  Overflow overflow = Overflow::nonfinite;
  bool transposes = false;  ///< outputs are adjacent along one dimension, inputs along another
};

/// True if a launch that would stride over that many elements takes longer than one over their copies in order, and these copies: where an item is a core.
inline bool copies_pay(const DeviceTraits& traits, std::int64_t elements) { return elements >= 4096 && elementwise_tuning(traits).local == 1; }

/// Exchanges dimensions so that the innermost one fills a vector, where another one does: kernels whose items are cores walk along it. `stride` has
/// CLUTCH_SHAPE_LANES lanes for each operand. False, without a change, if it does already, or none does, or memory would be read too often.
bool lengthen_runs(std::int64_t rank, std::int64_t* size, std::int64_t* stride, std::size_t operands);

/// Pure function. Errors: not_supported, invalid_argument.
KernelPlan select(const DeviceTraits& traits, const CopyProblem& problem, std::string_view forced = {});
std::span<const Implementation<CopyProblem>> copy_implementations();

}}}  // namespace clutch::v0::detail
