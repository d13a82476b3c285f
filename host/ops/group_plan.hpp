// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/group.hpp>

#include "encode/plan.hpp"

namespace clutch { inline namespace v0 { namespace detail {

/// The kernels of a group_by, in the order of their first launches. Tiles have no `base`: each group of `place` adds up the totals for itself.
enum class GroupStage : std::uint8_t { count, scan, base, place, offsets };

/// Inputs of the selection of group_by's kernels; also the key of their cached plans.
struct GroupProblem {
  GroupStage stage = GroupStage::count;
  bool wide_id = false;  ///< 2^31 entries or more
};

/// Pure function. Errors: invalid_argument, not_supported for a forced implementation.
KernelPlan select(const DeviceTraits& traits, const GroupProblem& problem, std::string_view forced = {});

}}}  // namespace clutch::v0::detail
