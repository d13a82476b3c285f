// SPDX-License-Identifier: Apache-2.0
#include "runtime/settings.hpp"

#include <clutch/error.hpp>
#include <clutch/kernel.hpp>
#include <clutch/version.hpp>

#include "runtime/allocator_config.hpp"
#include "runtime/memory_limit.hpp"
#include "support/system.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

struct SettingRow {
  std::string_view name, type, default_value, doc;
  Setting Settings::*member;
};

constexpr std::array kRows{
#define CLUTCH_SETTING(member, NAME, type, default_value, doc) SettingRow{"CLUTCH_" #NAME, type, default_value, doc, &Settings::member},
#include "runtime/settings.def"
#undef CLUTCH_SETTING
};

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

bool contains(const std::vector<std::string_view>& choices, std::string_view value) {
  for (auto choice : choices)
    if (choice == value) return true;
  return false;
}

bool is_number(std::string_view text) {
  bool good = !text.empty() && text.size() <= 18;
  for (char c : text) good = good && c >= '0' && c <= '9';
  return good;
}

/// Description of the row's valid values if `value` is not one of them, else empty.
std::string refusal(const SettingRow& row, std::string_view value) {
  if (row.type == "string" || row.type == "path") return {};
  if (row.type == "flag") return value == "0" || value == "1" ? "" : "0 or 1";
  if (row.type == "allocator") return allocator_settings_refusal(value);
  if (row.type == "limit") {
    MemoryLimitText ignored;
    return parse_memory_limit(value, ignored)
               ? ""
               : "a number of bytes (or of KiB, MiB, GiB with K, M, G behind it), a fraction up to 1 with a point (0.9), or 0 for no limit";
  }
  if (row.type == "integer") return is_number(value) ? "" : "a whole number of at most 18 digits";
  if (row.type == "size") return parse_size(value) ? "" : "a whole number of bytes below 2^63, or of KiB, MiB, GiB with K, M, G behind it: 512M";
  if (row.type.find('|') != std::string_view::npos) return contains(split(row.type, '|'), value) ? "" : fmt::format("one of {}", row.type);
  auto choices = split(row.type, ',');
  for (auto part : split(value, ','))
    if (!contains(choices, part)) return fmt::format("any of {}, joined by commas", row.type);
  return {};
}

std::atomic<const Settings*> g_override{nullptr};
std::mutex g_log_mutex;
std::function<void(LogLevel, std::string_view)>& log_sink() {
  static auto* sink = new std::function<void(LogLevel, std::string_view)>;
  return *sink;
}

std::array<std::atomic<std::uint64_t>, 3> g_fallbacks{};
std::size_t fallback_slot(std::string_view kind, std::string_view op) {
  constexpr std::array<std::string_view, 3> kKinds{"host", "extension", "untuned"};
  for (std::size_t i = 0; i < kKinds.size(); ++i)
    if (kKinds[i] == kind) return i;
  throw Error(ErrorCode::invalid_argument, op, fmt::format("the kind of fall-back must be host, extension or untuned, got '{}'", kind));
}

}  // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) {
  int shift = 0;
  if (const auto unit = text.empty() ? std::string_view::npos : std::string_view("KMG").find(text.back()); unit != std::string_view::npos) {
    shift = 10 * static_cast<int>(unit + 1);
    text.remove_suffix(1);
  }
  if (!is_number(text)) return std::nullopt;
  const std::uint64_t number = std::stoull(std::string(text));
  if (number > std::uint64_t{INT64_MAX} >> shift) return std::nullopt;
  return number << shift;
}

std::uint64_t Setting::bytes() const { return parse_size(value).value_or(0); }
bool Settings::strict_forbids(std::string_view kind) const { return contains(split(strict.value, ','), kind); }

Settings parse_settings(const std::vector<std::pair<std::string, std::string>>& environment) {
  Settings result;
  for (const SettingRow& row : kRows) (result.*row.member).value = row.default_value;
  for (const auto& [key, value] : environment) {
    if (!key.starts_with("CLUTCH_")) continue;
    const SettingRow* found = nullptr;
    std::string names;
    for (const SettingRow& row : kRows) {
      if (row.name == key) found = &row;
      names += fmt::format(" {}", row.name);
    }
    if (!found) throw Error(ErrorCode::invalid_setting, "settings", fmt::format("a setting must be a known one, got {}; known settings:{}", key, names));
    if (auto valid = refusal(*found, value); !valid.empty())
      throw Error(ErrorCode::invalid_setting, "settings", fmt::format("{} must be {}, got '{}'", key, valid, value));
    (result.*found->member).value = value;
    (result.*found->member).from_environment = true;
  }
  return result;
}

const Settings& the_settings() {
  if (const Settings* replaced = g_override.load(std::memory_order_acquire)) return *replaced;
  static const Settings* parsed = new Settings(parse_settings(environment()));
  return *parsed;
}

SettingsOverride::SettingsOverride(Settings settings) : settings_(std::move(settings)) { former_ = g_override.exchange(&settings_); }
SettingsOverride::~SettingsOverride() { g_override.store(former_); }

bool log_enabled(LogLevel level) noexcept {
  try {
    const std::string& wanted = the_settings().log.value;
    constexpr std::array<std::string_view, 5> kNames{"off", "error", "warn", "info", "debug"};
    for (std::size_t i = 0; i < kNames.size(); ++i)
      if (kNames[i] == wanted) return static_cast<int>(level) <= static_cast<int>(i);
  } catch (const Error&) {
    return level <= LogLevel::warn;
  }
  return false;
}

void log_line(LogLevel level, std::string_view text) noexcept {
  if (!log_enabled(level)) return;
  try {
    std::lock_guard lock(g_log_mutex);
    if (log_sink())
      log_sink()(level, text);
    else
      std::fprintf(stderr, "clutch: %.*s\n", static_cast<int>(text.size()), text.data());
  } catch (...) {
    std::fputs("clutch: the log sink threw\n", stderr);
  }
}

void log_once(LogLevel level, const std::string& text) noexcept {
  static auto* seen = new std::set<std::string>;
  static auto* mutex = new std::mutex;
  {
    std::lock_guard lock(*mutex);
    if (!seen->insert(text).second) return;
  }
  log_line(level, text);
}

void note_fallback(std::string_view kind, std::string_view op, const std::string& what) {
  auto slot = fallback_slot(kind, op);
  if (the_settings().strict_forbids(kind)) throw Error(ErrorCode::strict, op, fmt::format("{} (CLUTCH_STRICT={} forbids it)", what, kind));
  g_fallbacks[slot].fetch_add(1, std::memory_order_relaxed);
  log_once(LogLevel::warn, fmt::format("{}: {}", op, what));
}

}  // namespace detail

std::vector<SettingInfo> settings() {
  const detail::Settings& now = detail::the_settings();
  std::vector<SettingInfo> result;
  for (const auto& row : detail::kRows) {
    const detail::Setting& s = now.*row.member;
    result.push_back({row.name, row.type, row.default_value, row.doc, s.value, s.from_environment});
  }
  return result;
}

void check_settings() { detail::the_settings(); }

void set_log_sink(std::function<void(LogLevel, std::string_view)> sink) {
  std::lock_guard lock(detail::g_log_mutex);
  detail::log_sink() = std::move(sink);
}

std::uint64_t fallback_count(std::string_view kind) {
  return detail::g_fallbacks[detail::fallback_slot(kind, "fallback_count")].load(std::memory_order_relaxed);
}

std::string_view version() { return CLUTCH_VERSION; }

std::string build_info() {
  return fmt::format("clutch {}\ncompiler {}\nbuild type {}\nCLBlast {}\nLAPACKE {}\n", CLUTCH_VERSION, CLUTCH_COMPILER, CLUTCH_BUILD_TYPE, CLUTCH_CLBLAST,
                     CLUTCH_LAPACKE);
}

}}  // namespace clutch::v0
