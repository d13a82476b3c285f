// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "graph/fuse.hpp"

#include <string>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// What tests change: steps from which on a table takes their place, in graphs of `fused` and of `auto`, and the items of its group (0: the device's number).
struct TableTuning {
  std::size_t least = 4, least_of_auto = 16;
  int items = 0;
};
inline TableTuning table_tuning;

/// True if a graph may have so many steps that a table takes. Quick: before anything is built.
bool may_have_tables(const GraphState& state, std::size_t least);

/// Puts runs of `least` small steps or more into one launch each (form "table") of one work-group, which goes through a table of them: kernels/tiny.cl. A step
/// is small if its own launch has one work-group; it is a function of elements, a copy, a fill, control flow or, where groups have one item, a function of rows
/// of few elements. All have the bits of their own launches. Steps that depend on each other keep their order, with a barrier between them; others stand side
/// by side. A branch or loop that is not taken is skipped inside the launch. One program is built for each set of functions. The order of the other steps may
/// change, where none depends on another. `program` is of `state`; in its why_alone it says why a step that stays alone is in no table. Errors: those of
/// building programs.
void make_tables(const GraphState& state, FusedProgram& program, std::size_t least);

}}}  // namespace clutch::v0::detail
