// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "graph/state.hpp"

#include <memory>
#include <span>
#include <string>

namespace clutch { inline namespace v0 { namespace detail {

void save_graph(const GraphState& state, const std::string& path, std::span<const NamedTensor> tensors, const GraphSaveOptions& options);
/// Errors: as Graph::load().
std::unique_ptr<GraphState> load_graph(const std::string& path, const Device& device, const GraphOptions& options, const std::string& backend);

}}}  // namespace clutch::v0::detail
