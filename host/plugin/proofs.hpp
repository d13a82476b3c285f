// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "encode/plugin_ops.hpp"

#include <set>
#include <string>

namespace clutch { inline namespace v0 { namespace detail {

/// What a proof found.
struct Proof {
  std::string wrong;              ///< what differs first; empty if all bits are equal, nothing was written beside the outputs, and a problem was taken at least
  std::set<std::string> calls;    ///< of the problems that the implementation took, as PluginImplementation::call_of() tells them
  std::set<std::string> refused;  ///< calls of functions whose own problems it did not take
};

/// Computes its op's problems by an implementation and by the library's own, on fresh random numbers.
Proof prove(const PluginImplementation& implementation, const Device& device);
/// Adds to a proof what problems of a call's own function find; of ops that has_functions() tells.
void prove_call(const PluginImplementation& implementation, const Device& device, std::span<const void* const> arguments, Proof& proof);

}}}  // namespace clutch::v0::detail
