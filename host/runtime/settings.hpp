// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/settings.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

struct Setting {
  std::string value;
  bool from_environment = false;
  bool on() const { return value == "1"; }
  std::int64_t integer() const { return std::stoll(value); }
  /// Value of a setting of type size, in bytes.
  std::uint64_t bytes() const;
};

/// Parsed settings. A plain value, so that tests can parse environments of their own.
struct Settings {
#define CLUTCH_SETTING(member, NAME, type, default_value, doc) Setting member;
#include "runtime/settings.def"
#undef CLUTCH_SETTING
  bool strict_forbids(std::string_view kind) const;
};

/// Bytes of "4096", "512K", "64M" or "2G"; nullopt unless the text is a size below 2^63.
std::optional<std::uint64_t> parse_size(std::string_view text);

/// Parses "NAME=value" pairs; names without CLUTCH_ are skipped. Errors: invalid_setting.
Settings parse_settings(const std::vector<std::pair<std::string, std::string>>& environment);

/// The process's settings, parsed at first use. Errors: invalid_setting, at each call until the environment is valid.
const Settings& the_settings();

/// While an override lives, its settings replace the process's; for tests.
class SettingsOverride {
 public:
  explicit SettingsOverride(Settings settings);
  ~SettingsOverride();

 private:
  const Settings* former_;
  Settings settings_;
};

bool log_enabled(LogLevel level) noexcept;
void log_line(LogLevel level, std::string_view text) noexcept;
/// Logs a text once in the process.
void log_once(LogLevel level, const std::string& text) noexcept;

/// Counts and logs a fall-back. Errors: strict if CLUTCH_STRICT names `kind`.
void note_fallback(std::string_view kind, std::string_view op, const std::string& what);

}}}  // namespace clutch::v0::detail
