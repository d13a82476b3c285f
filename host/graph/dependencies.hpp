// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "graph/state.hpp"

namespace clutch { inline namespace v0 { namespace detail {

/// Adds to each node the nodes whose results it reads or overwrites, or that still read what it overwrites, by the bytes that
/// they use: also where temporaries share memory.
void find_dependencies(GraphState& state);

}}}  // namespace clutch::v0::detail
