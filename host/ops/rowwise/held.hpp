// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which input of a row the items of rowwise_groups and rowwise_items hold in registers, so that its totals and elements read it once
// (kernels/common/reduce_held.inc, reduce_item.inc).
#include "ops/rowwise_plan.hpp"

#include <string>

namespace clutch { inline namespace v0 { namespace detail {

/// Sets `held`, the input that most totals and elements read, if two do, `held_kept`, and `eights` of rows of m elements. All else that the problem has of the
/// function is set.
void hold(const RowBody& body, std::int64_t m, RowwiseProblem* problem);

/// The length of rows of m elements for groups of so many teams.
RowLength length_of(std::int64_t m, std::uint64_t teams);

/// The macros of held inputs in expression.clh.
std::string print_held(const RowwiseProblem& problem);

}}}  // namespace clutch::v0::detail
