// SPDX-License-Identifier: Apache-2.0
#pragma once
// Plugins' functions by the C ABI.
#include <clutch/plugin.h>

#include <span>
#include <string>
#include <string_view>

namespace clutch { inline namespace v0 { namespace capi {

/// The table of the C ABI that plugins get.
extern const clutch_api_t kApi;

/// An op that plugins may implement.
struct PluginCall {
  std::string_view function;  ///< in C, without clutch_: "linalg_matmul_out"
  std::string_view op;        ///< in C++, without _out: "linalg::matmul"
  /// Calls a function of that type with the addresses of the out form's C++ arguments, in its order.
  clutch_status_t (*call)(void (*function)(void), const void* const* arguments);
  /// What can be counted of these arguments: dtypes of tensors, enumerators, what is set and what is given.
  std::string (*tell)(const void* const* arguments);
};
std::span<const PluginCall> plugin_calls();

/// What a plugin gives as the text of its failure, and how that is taken.
void set_plugin_error(const char* text);
/// Forgets the text that a plugin gave before.
void clear_plugin_error();
/// The text given since then; else that of the thread's last error, which a C function left that the plugin had called.
std::string plugin_error();

}}}  // namespace clutch::v0::capi
