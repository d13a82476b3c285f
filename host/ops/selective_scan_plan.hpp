// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/selective_scan.hpp>

#include "ops/traced.hpp"
#include "selective_scan/args.h"

namespace clutch { inline namespace v0 { namespace detail {

/// Inputs of the selection of selective_scan and its backward; also the key of their cached plans.
struct SelectiveScanProblem {
  DType dtype = DType::f32;   ///< of x
  std::uint8_t sixteens = 1;  ///< of states, with those past the last one
  bool backward = false;
  bool wide_index = false;
};

/// Pure function. Errors: not_supported, invalid_argument.
KernelPlan select(const DeviceTraits& traits, const SelectiveScanProblem& problem, std::string_view forced = {});

/// Elements of a chunk, whose states backward has at a time. Bits do not depend on it.
int selective_scan_steps(std::string_view entry);

}}}  // namespace clutch::v0::detail
