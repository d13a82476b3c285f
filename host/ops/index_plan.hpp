// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/index.hpp>

#include "encode/plan.hpp"

namespace clutch { inline namespace v0 { namespace detail {

/// The kernels of index and index_put.
enum class IndexStage : std::uint8_t { places, take, put, add };

/// Inputs of the selection of index's kernels; also the key of their cached plans.
struct IndexProblem {
  IndexStage stage = IndexStage::places;
  DType dtype = DType::f32;  ///< of x; of index_places: any
  bool wide_place = false;   ///< offsets of elements take 64 bits
};

/// Pure function. Errors: not_supported for sums of f64 without fp64.
KernelPlan select(const DeviceTraits& traits, const IndexProblem& problem, std::string_view forced = {});

}}}  // namespace clutch::v0::detail
