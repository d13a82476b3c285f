// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "graph/state.hpp"

namespace clutch { inline namespace v0 { namespace detail {

/// Adds to each node the nodes that it must follow: read after write, write after write and write after read, by the bytes that nodes use. Bytes are compared
/// by address, so temporaries that share memory are covered.
void find_dependencies(GraphState& state);

}}}  // namespace clutch::v0::detail
