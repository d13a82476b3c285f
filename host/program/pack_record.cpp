// SPDX-License-Identifier: Apache-2.0
#include "program/pack_record.hpp"

#include <clutch/version.hpp>

#include "program/binary_check.hpp"
#include "program/isa.hpp"
#include "runtime/registry.hpp"
#include "runtime/settings.hpp"
#include "support/system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a process waits at least before it writes the file again.
constexpr std::chrono::seconds kBetweenWrites{5};

/// What this process has recorded. Never destroyed, so that the end of the process finds it.
struct PackRecorder {
  std::mutex mutex;
  std::map<std::pair<std::string, Digest>, PackProgram> programs;  ///< by ISA and key
  std::map<std::string, PackTarget> targets;                       ///< by ISA
  std::map<const DeviceRecord*, std::string> isas;
  std::string setting, path;            ///< the file of a setting, whatever folder the process moves to later
  std::uint64_t changes = 0, kept = 0;  ///< number of changes so far, and of those that the file has
  bool ends = false, writes = false;
  std::optional<Clock::time_point> tried;  ///< last time that the file was written, or was to be

  const std::string& isa(const DeviceRecord& device) {
    auto [at, added] = isas.try_emplace(&device);
    if (added) {
      PackTarget target = target_of(device);
      at->second = target.isa;
      targets.try_emplace(at->second, std::move(target));
    }
    return at->second;
  }

  void set_path() {
    if (const std::string& wanted = the_settings().pack_record.value; setting != wanted)
      setting = wanted, path = std::filesystem::absolute(std::filesystem::path(wanted)).string();
  }

  /// Under the mutex: everything so far.
  PackContents all() const {
    PackContents all{.recording = true, .version = CLUTCH_VERSION, .targets = {}, .programs = {}};
    for (const auto& [isa, target] : targets) all.targets.push_back(target);
    for (const auto& [of, program] : programs) {
      all.programs.push_back(program);
      all.programs.back().target = static_cast<std::uint32_t>(std::distance(targets.begin(), targets.find(of.first)));
    }
    return all;
  }
};

/// Adds everything to the file. Returns what failed.
std::string add_to(const std::string& path, PackContents all) {
  const FileLock lock(path);
  if (!lock.problem().empty()) return lock.problem();
  const PackFile::Opened before = PackFile::open(path);
  if (before.exists && (!before.file || !before.file->recording()))
    return before.file ? fmt::format("{} must be a recording or not there, got a pack", path) : before.problem;
  if (before.file && before.file->version() != CLUTCH_VERSION)
    return fmt::format("{} is of clutch {}, and this is {}", path, before.file->version(), CLUTCH_VERSION);
  if (before.file) {
    std::string damaged;
    for (const std::string& entry : merge_packs(all, before.file->contents(damaged)))
      log_once(LogLevel::warn,
               fmt::format("CLUTCH_PACK_RECORD: processes launched {} with different local sizes, and no binary contains all: the one with more is "
                           "kept; let the processes use one POCL_CACHE_DIR, one after another",
                           entry));
    if (!damaged.empty()) log_once(LogLevel::warn, fmt::format("CLUTCH_PACK_RECORD: {}, and is left out", damaged));
  }
  return write_pack(path, std::move(all));
}

/// Writes the file if there is something new and, unless the process ends, it is time. Other threads record meanwhile. What fails is tried again later.
void write_changes(PackRecorder& r, bool ends) noexcept {
  try {
    std::unique_lock lock(r.mutex);
    if (r.changes == r.kept || (!ends && (r.writes || (r.tried && Clock::now() - *r.tried < kBetweenWrites)))) return;
    const std::uint64_t changes = r.changes;
    const std::string path = r.path;
    PackContents all = r.all();
    r.writes = true;
    lock.unlock();
    std::string problem;
    try {
      problem = add_to(path, std::move(all));
    } catch (const std::exception& e) {
      problem = e.what();
    }
    lock.lock();
    r.writes = false, r.tried = Clock::now();
    if (problem.empty()) r.kept = changes;
    lock.unlock();
    if (!problem.empty())
      log_once(LogLevel::error, fmt::format("CLUTCH_PACK_RECORD: nothing is recorded{}: {}", ends ? "" : " for now, which is tried again", problem));
  } catch (const std::exception& e) {
    log_once(LogLevel::error, fmt::format("CLUTCH_PACK_RECORD: nothing is recorded: {}", e.what()));
  }
}

PackRecorder& recorder() {
  static auto* one = new PackRecorder;
  return *one;
}

void write_at_end() {
  if (forked()) return;  // the parent has the same programs, and its other threads may have held the lock
  write_changes(recorder(), true);
}

}  // namespace

bool records_packs() { return !the_settings().pack_record.value.empty(); }

void record_program(const DeviceRecord& device, const Digest& key, std::string_view entry, std::string_view options, std::string_view source) {
  PackRecorder& r = recorder();
  std::lock_guard lock(r.mutex);
  r.set_path();
  if (!std::exchange(r.ends, true)) std::atexit(write_at_end);
  PackProgram& program = r.programs[{r.isa(device), key}];
  program.key = key, program.entry = entry, program.options = options, program.source = source;
  ++r.changes;
}

void record_launches(const DeviceRecord& device, const Digest& key, const std::vector<LocalSize>& launches, std::string binary) noexcept {
  try {
    PackRecorder& r = recorder();
    std::lock_guard lock(r.mutex);
    auto found = r.programs.find({r.isa(device), key});
    if (found == r.programs.end()) return;
    PackProgram& program = found->second;
    if (program.binary == binary && program.launches == launches) return;
    // Contexts of one device have programs of their own, each with its launches.
    const bool contains = links_at_launch(device.facts.platform_name, device.platform_version, device.facts.type);
    PackProgram more;
    more.launches = launches, more.binary = std::move(binary);
    merge_program(program, std::move(more), contains);
    ++r.changes;
  } catch (const std::exception& e) {
    log_once(LogLevel::warn, fmt::format("CLUTCH_PACK_RECORD: a program is not recorded: {}", e.what()));
  }
}

void write_recording() noexcept { write_changes(recorder(), false); }

}}}  // namespace clutch::v0::detail
