// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/cumsum.hpp>

#include "cumsum/args.h"
#include "ops/traced.hpp"

namespace clutch { inline namespace v0 { namespace detail {

/// Inputs of the selection of cumsum; also the key of its cached plans.
struct CumsumProblem {
  DType dtype = DType::f32, output = DType::f32;
  bool columns = false;  ///< adjacent lines are adjacent in memory
  bool carries = false;  ///< select the kernel that sums the totals of blocks
  bool wide_index = false;
  std::uint8_t rank_lanes = 4;
};

/// Shape of a launch whose items share lines.
struct CumsumTeams {
  std::uint32_t team = 0;   ///< items that share a line
  std::uint64_t local = 1;  ///< items of a group
};
/// Items that share lines of m elements, all of which have the same stride: enough for a block of them.
CumsumTeams line_teams(std::uint64_t m);
/// Items that share `lines` lines of m elements, each `columns` of which are neighbours; groups have at most `most` items. Groups are about `wanted` or more,
/// if narrower ones give as many.
CumsumTeams column_teams(std::uint64_t lines, std::uint64_t m, std::uint64_t columns, std::uint64_t most, std::uint64_t wanted);

/// Pure function. Errors: not_supported, invalid_argument.
KernelPlan select(const DeviceTraits& traits, const CumsumProblem& problem, std::string_view forced = {});

}}}  // namespace clutch::v0::detail
