// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/graph.hpp>

#include <string>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// What a page of a graph shows.
struct GraphPage {
  std::string device;
  std::vector<GraphNode> nodes;
  GraphReport report;
};
/// The page: well-formed XML, too.
std::string html_dump(const GraphPage& page);

}}}  // namespace clutch::v0::detail
