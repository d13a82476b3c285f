// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/plugin.h>

namespace clutch { inline namespace v0 { namespace detail {

/// Registers a plugin's graph backend. Errors: invalid_argument for a name that the library or another plugin has.
void add_graph_backend(const clutch_graph_backend_t& backend);

}}}  // namespace clutch::v0::detail
