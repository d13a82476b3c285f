// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "graph/state.hpp"

#include <string>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

std::vector<GraphNode> describe_nodes(const GraphState& state);
GraphNode describe_node(const GraphState& state, int id);
GraphReport describe(const GraphState& state);
std::string dump(const GraphState& state, GraphDump format);

}}}  // namespace clutch::v0::detail
