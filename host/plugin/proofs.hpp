// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "encode/plugin_ops.hpp"

#include <string>

namespace clutch { inline namespace v0 { namespace detail {

/// Computes its op's problems by an implementation and by the library's own, on fresh random numbers. Returns what differs first; empty if all bits are equal,
/// nothing was written beside the outputs, and it took at least one problem.
std::string prove(const PluginImplementation& implementation, const Device& device);

}}}  // namespace clutch::v0::detail
