// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/export.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace clutch { inline namespace v0 {

/// An implementation of an op that a plugin brings.
struct PluginOp {
  std::string op;          ///< "cumsum"
  std::string name;        ///< as the op's option `implementation` takes it
  std::int64_t score = 0;  ///< above 0: chosen before the library's own
  /// Result of its proof, a line for each device that it was called on: "device 0: passed", or why it failed.
  std::string proof;
};

/// A plugin that was loaded: clutch/plugin.h.
struct Plugin {
  std::string name, version, path;
  std::int64_t score = 0;  ///< how well it says to suit this machine; 0: not used
  bool used = true;        ///< false: its score is 0, or another of its name has a higher one
  std::vector<PluginOp> ops;
  std::vector<std::string> graph_backends;
  std::vector<std::string> device_backends;  ///< platforms of devices
};

/// The plugins that CLUTCH_PLUGINS names and those of the folder lib/clutch/plugins, loaded by now.
/// Errors: io for a file that cannot be loaded; not_supported for one that is no plugin or of another ABI;
///   invalid_argument for what a plugin describes badly; what its init() returns. Each names the file and the setting,
///   and each call that asks for devices, op, graph and call of plugins() throws it again.
CLUTCH_API std::vector<Plugin> plugins();

}}  // namespace clutch::v0
