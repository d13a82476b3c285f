// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "capi/plugin_calls.hpp"
#include "encode/plugin_ops.hpp"

#include <memory>
#include <string>

namespace clutch { inline namespace v0 { namespace detail {

std::unique_ptr<PluginImplementation> make_implementation(const capi::PluginCall& call, const clutch_plugin_op_t& op, const std::string& plugin);
/// What its proofs found, a line for each device.
std::string proofs_of(const PluginImplementation& implementation);

}}}  // namespace clutch::v0::detail
