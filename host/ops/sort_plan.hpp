// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/sort.hpp>

#include "encode/plan.hpp"

namespace clutch { inline namespace v0 { namespace detail {

/// The kernels of a sort, in the order of their first launches.
enum class SortStage : std::uint8_t { runs, merge };

/// Inputs of the selection of sort's kernels; also the key of their cached plans.
struct SortProblem {
  SortStage stage = SortStage::runs;
  DType dtype = DType::f32;
  bool wide = false;         ///< entries with keys and indices of 64 bits
  bool short_lines = false;  ///< lines have at most SORT_BUNDLED elements
};

/// Pure function. Errors: invalid_argument, not_supported for a forced implementation.
KernelPlan select(const DeviceTraits& traits, const SortProblem& problem, std::string_view forced = {});

}}}  // namespace clutch::v0::detail
