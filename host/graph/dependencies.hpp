// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "graph/state.hpp"

namespace clutch::inline v0::detail {

/// Adds to each node the nodes whose results it reads or overwrites, or that still read what it overwrites, by the bytes that
/// they use: also where temporaries share memory.
void find_dependencies(GraphState& state);

}  // namespace clutch::inline v0::detail
