// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "graph/state.hpp"

#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// Enqueues the nodes one by one, waits for them, and appends the microseconds that each took.
void measure_nodes(const GraphState& state, const Stream& stream, std::vector<double>& times);

}}}  // namespace clutch::v0::detail
