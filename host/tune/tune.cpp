// SPDX-License-Identifier: Apache-2.0
#include "tune/tune.hpp"

#include <clutch/error.hpp>
#include <clutch/stream.hpp>

#include "encode/host_values.hpp"
#include "interop/mapped_file.hpp"
#include "program/disk_cache.hpp"
#include "runtime/op_name.hpp"
#include "runtime/runtime.hpp"
#include "runtime/settings.hpp"
#include "support/private_folder.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <tuple>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

namespace fs = std::filesystem;
using tune::Entry;
using Key = std::tuple<std::string, std::string, std::string, std::string>;

constexpr const char* kName = "tune";

Key key_of(const Entry& e) { return {e.device, e.driver, e.op, e.shape_class}; }

struct Store {
  std::mutex mutex, measuring;
  std::map<Key, Entry> known;
  std::atomic<bool> read{false};
  std::atomic<std::uint64_t> generation{1};
  std::atomic<bool> empty{true};
  std::atomic<bool> unusable{false};  ///< the tuning file exists but cannot be used, for the reason `why`
  std::string why;
};
Store& store() {
  static Store& the = *new Store;  // never destroyed: destructors of static objects may call ops
  return the;
}

/// Errors: invalid_argument, which names the path, if the text is not a tuning file's.
std::vector<Entry> parse_entries(std::string_view text, const fs::path& path) {
  std::vector<Entry> entries;
  try {
    const nlohmann::json root = nlohmann::json::parse(text);
    if (root.at("clutch_tuning") != 1)
      throw Error(ErrorCode::invalid_argument, kName, fmt::format("{} must be of format 1, got {}", path.string(), root.at("clutch_tuning").dump()));
    for (const auto& e : root.at("entries"))
      entries.push_back({e.at("device").get<std::string>(), e.at("driver").get<std::string>(), e.at("op").get<std::string>(),
                         e.at("shape_class").get<std::string>(), e.at("choice").get<std::string>(), e.at("seconds").get<double>(),
                         e.at("untuned_seconds").get<double>()});
  } catch (const nlohmann::json::exception& e) {
    throw Error(ErrorCode::invalid_argument, kName,
                fmt::format("{} must hold the JSON of a tuning file, got a text that is none: {}", path.string(), e.what()));
  }
  return entries;
}

/// Errors: io, which names the path; those of parse_entries().
std::vector<Entry> read_file(const fs::path& path) {
  const MappedFile file = map_file(path.string(), kName);
  return parse_entries({reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()}, path);
}

/// The bytes of tune::file(); a refusal if another user may have written it. In the cache the folder must be private as well.
PrivateBytes read_own_file() {
  PrivateBytes read;
  if (!the_settings().tuning_file.value.empty()) {
    read = read_private_file(the_settings().tuning_file.value);
  } else if (const fs::path path = tune::file(); !path.empty()) {
    const PrivateFolder cache(path.parent_path());
    read = cache.read(path.filename().string());
    if (!cache.refusal().empty()) read.refusal = cache.refusal();
  }
  return read;
}

void write_entries(const fs::path& path, const std::map<Key, Entry>& known) {
  nlohmann::json root{{"clutch_tuning", 1}, {"entries", nlohmann::json::array()}};
  for (const auto& [key, e] : known)
    root["entries"].push_back({{"device", e.device},
                               {"driver", e.driver},
                               {"op", e.op},
                               {"shape_class", e.shape_class},
                               {"choice", e.choice},
                               {"seconds", e.seconds},
                               {"untuned_seconds", e.untuned_seconds}});
  make_private_folders(path.parent_path());
  // A driver's name may be invalid UTF-8.
  const std::string text = root.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  write_file(path.string(), std::span(&bytes, 1), kName, 0644);  // 0644, since a file that other users may write is not read again
}

/// The caller holds the store's lock.
void add(Store& s, std::vector<Entry> entries) {
  for (Entry& e : entries) {
    Key key = key_of(e);
    s.known.insert_or_assign(std::move(key), std::move(e));
  }
  s.empty = s.known.empty();
  ++s.generation;
}
/// The caller holds the store's lock. Errors: those of parse_entries(), at the first call alone.
void read_at_first_use(Store& s) {
  if (s.read) return;
  try {
    PrivateBytes own = read_own_file();
    if (own.bytes) add(s, parse_entries(*own.bytes, tune::file()));
    s.why = std::move(own.refusal), s.unusable = !s.why.empty();
  } catch (const Error& e) {
    s.why = e.message(), s.unusable = true;
    s.read = true;
    throw;
  }
  s.read = true;  // last, because threads that see `read` set do not take the lock
}
/// The same for an op, which runs untuned if the file cannot be used. Errors: strict.
void read_for(Store& s, std::string_view op) {
  if (!s.read) {
    std::lock_guard lock(s.mutex);
    try {
      read_at_first_use(s);
    } catch (const Error&) {
      // read_at_first_use() has noted the reason
    }
  }
  if (!s.unusable) return;
  std::string why;
  {
    std::lock_guard lock(s.mutex);
    why = s.why;
  }
  note_fallback("untuned", op, fmt::format("the tuning file is not used: {}", why));
}
/// Writes the store's entries, and those that other processes have added to the file.
void save_to(Store& s, const fs::path& path) {
  std::map<Key, Entry> all;
  std::error_code error;
  if (fs::exists(path, error))
    for (Entry& e : read_file(path)) all.emplace(key_of(e), e);
  for (const auto& [key, e] : s.known) all.insert_or_assign(key, e);
  write_entries(path, all);
}

/// Median time of each way in seconds. The ways are measured in turns, so that drift of the clock rate affects all alike.
std::vector<double> measure(const std::vector<TuneWay>& ways, const Stream& stream, const std::function<double()>& clock) {
  auto timed = [&](const TuneWay& way, int reps) {
    const double begin = clock();
    for (int i = 0; i < reps; ++i) way.run();
    stream.synchronize();
    return (clock() - begin) / reps;
  };
  constexpr int kRounds = 7;
  std::vector<std::vector<double>> times(ways.size());
  std::vector<int> reps;
  for (const TuneWay& way : ways) reps.push_back(std::clamp(static_cast<int>(2e-3 / std::max(timed(way, 1), 1e-6)), 1, 200));
  for (int round = 0; round < kRounds; ++round)
    for (std::size_t i = 0; i < ways.size(); ++i) times[i].push_back(timed(ways[i], reps[i]));
  std::vector<double> medians;
  for (auto& t : times) {
    std::nth_element(t.begin(), t.begin() + kRounds / 2, t.end());
    medians.push_back(t[kRounds / 2]);
  }
  return medians;
}

/// Returns the first way and those others that run without an error and give its result: its bits if `exact`, else within a bound.
std::vector<TuneWay> sound(std::vector<TuneWay> ways, std::string_view op, const Stream& stream) {
  const Tensor wanted = ways[0].run();
  const std::vector<std::uint8_t> bytes = wanted.to_bytes(stream);
  std::vector<TuneWay> kept{ways[0]};
  for (std::size_t i = 1; i < ways.size(); ++i) {
    try {
      const Tensor got = ways[i].run();
      bool fine = true;
      if (ways[i].exact) {
        fine = got.to_bytes(stream) == bytes;
      } else {
        // Libraries add in another order. Relative to the largest element, results must agree to a few hundred roundings.
        const std::vector<double> x = wanted.to(DType::f64, {}, stream).to_host<double>(stream), y = got.to(DType::f64, {}, stream).to_host<double>(stream);
        double most = 0, apart = 0;
        for (std::size_t e = 0; e < x.size(); ++e) most = std::max(most, std::fabs(x[e])), apart = std::max(apart, std::fabs(x[e] - y[e]));
        fine = apart <= most * (wanted.dtype() == DType::f64 ? 1e-13 : 1e-4);
      }
      if (fine)
        kept.push_back(ways[i]);
      else
        log_line(LogLevel::warn, fmt::format("{}: {} gives other results here and is not taken", op, ways[i].choice));
    } catch (const Error& e) {
      if (e.code() == ErrorCode::device_lost || e.code() == ErrorCode::stream_failed) throw;
      log_line(LogLevel::info, fmt::format("{}: {} does not work here: {}", op, ways[i].choice, e.what()));
    }
  }
  return kept;
}

}  // namespace

std::uint64_t tuning_generation() { return store().generation; }

void forget_tuning() {
  tune::clear();
  store().read = false;
}

double steady_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

bool tuning_matters(std::string_view op) {
  Store& s = store();
  read_for(s, op);
  return !s.empty || the_settings().autotune.value == "1";
}

bool may_measure(const Stream& stream) { return runs_now(stream); }

std::string tuned_choice(Runtime& runtime, std::string_view op, const std::string& shape_class, const Stream& stream,
                         const std::function<std::vector<TuneWay>()>& make_ways, const std::function<double()>& clock) {
  Store& s = store();
  const DeviceRecord& d = runtime.device();
  Entry e{d.facts.name, fmt::format("{} {}", d.facts.platform_name, d.driver_version), std::string(op), shape_class, {}, 0, 0};
  read_for(s, op);
  auto look = [&]() -> std::optional<std::string> {
    std::lock_guard lock(s.mutex);
    auto found = s.known.find(key_of(e));
    return found == s.known.end() ? std::nullopt : std::optional(found->second.choice);
  };
  if (std::optional<std::string> known = look()) return *known;
  if (the_settings().autotune.value != "1" || !may_measure(stream)) return {};
  std::lock_guard one_at_a_time(s.measuring);
  if (std::optional<std::string> known = look()) return *known;
  const std::vector<TuneWay> ways = sound(make_ways(), op, stream);
  const std::vector<double> seconds = measure(ways, stream, clock);
  const auto best = static_cast<std::size_t>(std::min_element(seconds.begin(), seconds.end()) - seconds.begin());
  // A gain below 2 % may be noise.
  const std::size_t chosen = seconds[best] < 0.98 * seconds[0] ? best : 0;
  e.choice = ways[chosen].choice, e.seconds = seconds[chosen], e.untuned_seconds = seconds[0];
  log_line(LogLevel::info,
           fmt::format("{} {}: {} takes {:.3g} s, untuned {:.3g}", op, shape_class, e.choice.empty() ? "untuned" : e.choice, e.seconds, e.untuned_seconds));
  std::lock_guard lock(s.mutex);
  const std::string choice = e.choice;
  add(s, {std::move(e)});
  const fs::path path = tune::file();
  if (path.empty() || the_settings().cache.value == "read" || !read_own_file().refusal.empty()) return choice;
  try {
    save_to(s, path);
  } catch (const Error& failed) {
    log_once(LogLevel::warn, fmt::format("{}: what was measured is not saved: {}", op, failed.message()));
  }
  return choice;
}

}  // namespace detail

namespace tune {

std::vector<Entry> entries() {
  detail::OpName named("tune::entries");
  detail::Store& s = detail::store();
  std::lock_guard lock(s.mutex);
  detail::read_at_first_use(s);
  std::vector<Entry> all;
  for (const auto& [key, e] : s.known) all.push_back(e);
  return all;
}
void load(const std::string& path) {
  detail::OpName named("tune::load");
  std::vector<Entry> more = detail::read_file(path);
  detail::Store& s = detail::store();
  std::lock_guard lock(s.mutex);
  detail::read_at_first_use(s);
  detail::add(s, std::move(more));
}
void save(const std::string& path) {
  detail::OpName named("tune::save");
  detail::Store& s = detail::store();
  std::lock_guard lock(s.mutex);
  detail::read_at_first_use(s);
  detail::save_to(s, path);
}
void clear() {
  detail::Store& s = detail::store();
  std::lock_guard lock(s.mutex);
  s.read = true, s.empty = true, s.unusable = false;
  s.known.clear();
  ++s.generation;
}
std::string file() {
  const detail::Settings& settings = detail::the_settings();
  if (!settings.tuning_file.value.empty()) return settings.tuning_file.value;
  std::filesystem::path folder = detail::cache_folder();
  return folder.empty() ? std::string() : (folder / "tuning.json").string();
}

}  // namespace tune
}}  // namespace clutch::v0
