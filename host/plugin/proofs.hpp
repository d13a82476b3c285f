// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "encode/plugin_ops.hpp"

#include <set>
#include <string>

namespace clutch { inline namespace v0 { namespace detail {

/// What a proof found.
struct Proof {
  std::string wrong;            ///< what differs first; empty if all bits are equal, nothing was written beside the outputs, and a problem was taken at least
  std::set<std::string> calls;  ///< of the problems that the implementation took, as PluginImplementation::call_of() tells them
};

/// Computes its op's problems by an implementation and by the library's own, on fresh random numbers.
Proof prove(const PluginImplementation& implementation, const Device& device);

}}}  // namespace clutch::v0::detail
