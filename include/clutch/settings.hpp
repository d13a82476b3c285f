// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/export.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 {

/// One row of the settings table.
struct SettingInfo {
  std::string_view name;  ///< environment variable, "CLUTCH_DEVICE"
  std::string_view
      type;  ///< "string", "path", "integer", "size", "flag", "allocator", "limit" or the choices, "auto|on|off"
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

/// Folder where programs, self-tests and rooflines are kept between processes; empty when CLUTCH_CACHE=off or no home
/// is known.
CLUTCH_API std::string cache_directory();

/// Programs, self-tests and rooflines in the cache folder.
struct CacheUsage {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t limit = 0;  ///< of programs: CLUTCH_CACHE_SIZE in bytes; 0: none
  /// Why the folder is not used: it belongs to someone else, or others may write to it. Empty if it is used or does not
  /// exist.
  std::string refusal;
};
/// Counts what the cache folder holds.
CLUTCH_API CacheUsage cache_usage();
/// Removes what cache_usage() counts and returns what was removed; tuning files stay. Safe while other processes run.
/// Errors: io if the folder is not used for its `refusal`, or a file cannot be removed.
CLUTCH_API CacheUsage clear_cache();

/// Version, compiler, build type and the optional libraries of this build, one line each.
CLUTCH_API std::string build_info();
/// Version of the library that runs, as "major.minor.patch"; CLUTCH_VERSION is that of the headers.
CLUTCH_API std::string_view version();

}}  // namespace clutch::v0
