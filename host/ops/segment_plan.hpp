// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/segment.hpp>

#include "encode/plan.hpp"

namespace clutch::inline v0::detail {

/// What selection of segment looks at; also the key of its cached plans.
struct SegmentProblem {
  DType dtype = DType::f32;
  DType offset = DType::i64, column = DType::i64;
  SegmentReduce reduce = SegmentReduce::sum;
  bool has_columns = false, has_values = false;
  bool rows = true;  ///< features of a row lie side by side, in data and output
  bool wide_index = false;
};

/// Pure. Errors: not_supported, invalid_argument.
KernelPlan select(const DeviceTraits& traits, const SegmentProblem& problem, std::string_view forced = {});

}  // namespace clutch::inline v0::detail
