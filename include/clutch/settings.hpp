// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/export.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace clutch::inline v0 {

/// One row of the settings table.
struct SettingInfo {
  std::string_view name;           ///< environment variable, "CLUTCH_DEVICE"
  std::string_view type;           ///< "string", "path", "integer", "flag" or the choices, "auto|on|off"
  std::string_view default_value;  ///< as it would be written in the environment
  std::string_view doc;            ///< one line
  std::string value;               ///< in force in this process
  bool from_environment = false;   ///< set by the environment rather than by the default
};

/// Lists every setting of the library, its tools, tests and benches. Errors: invalid_setting as check_settings().
CLUTCH_API std::vector<SettingInfo> settings();

/// Checks the environment's CLUTCH_* names and values; the runtime does so at first use.
/// Errors: invalid_setting names the variable and lists what is valid.
CLUTCH_API void check_settings();

enum class LogLevel : int { off = 0, error = 1, warn = 2, info = 3, debug = 4 };

/// Sends log lines of the library to `sink`; an empty function restores stderr. CLUTCH_LOG sets which levels are made.
CLUTCH_API void set_log_sink(std::function<void(LogLevel, std::string_view)> sink);

/// Folder where programs, self-tests and rooflines are kept between processes; empty when CLUTCH_CACHE=off or no home is known.
CLUTCH_API std::string cache_directory();

/// Version, compiler, build type and the optional libraries of this build, one line each.
CLUTCH_API std::string build_info();
/// "0.1.0"
CLUTCH_API std::string_view version();

}  // namespace clutch::inline v0
