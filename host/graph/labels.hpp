// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/graph.hpp>

#include <memory>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// Annotations in force on this thread, outermost first; null if none.
std::shared_ptr<const std::vector<GraphLabel>> current_labels();

}}}  // namespace clutch::v0::detail
