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
#include <map>
#include <mutex>
#include <utility>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a process waits at least before it writes the file again.
constexpr std::chrono::seconds kBetweenWrites{5};

/// What this process has recorded. Never destroyed, so that the end of the process finds it.
struct Recorder {
  std::mutex mutex;
  std::map<std::pair<std::string, Digest>, PackProgram> programs;  ///< by ISA and key
  std::map<std::string, PackTarget> targets;                       ///< by ISA
  std::map<const DeviceRecord*, std::string> isas;
  bool changed = false, ends = false;
  Clock::time_point written = Clock::now();

  const std::string& isa(const DeviceRecord& device) {
    auto [at, added] = isas.try_emplace(&device);
    if (added) {
      PackTarget target = target_of(device);
      at->second = target.isa;
      targets.try_emplace(at->second, std::move(target));
    }
    return at->second;
  }

  /// Adds everything to the file. Returns what failed.
  std::string write() {
    const std::string& path = the_settings().pack_record.value;
    PackContents all{.recording = true, .version = CLUTCH_VERSION, .targets = {}, .programs = {}};
    for (const auto& [isa, target] : targets) all.targets.push_back(target);
    for (const auto& [of, program] : programs) {
      all.programs.push_back(program);
      all.programs.back().target = static_cast<std::uint32_t>(std::distance(targets.begin(), targets.find(of.first)));
    }
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
    changed = false, written = Clock::now();
    return write_pack(path, std::move(all));
  }

  void write_now() noexcept {
    try {
      if (const std::string problem = write(); !problem.empty()) log_once(LogLevel::error, fmt::format("CLUTCH_PACK_RECORD: nothing is recorded: {}", problem));
    } catch (const std::exception& e) {
      log_once(LogLevel::error, fmt::format("CLUTCH_PACK_RECORD: nothing is recorded: {}", e.what()));
    }
  }
};

Recorder& recorder() {
  static auto* one = new Recorder;
  return *one;
}

void write_at_end() {
  if (forked()) return;  // the parent has the same programs, and its other threads may have held the lock
  Recorder& r = recorder();
  std::lock_guard lock(r.mutex);
  if (r.changed) r.write_now();
}

}  // namespace

bool records_packs() { return !the_settings().pack_record.value.empty(); }

void record_program(const DeviceRecord& device, const Digest& key, std::string_view entry, std::string_view options, std::string_view source) {
  Recorder& r = recorder();
  std::lock_guard lock(r.mutex);
  if (!std::exchange(r.ends, true)) std::atexit(write_at_end);
  PackProgram& program = r.programs[{r.isa(device), key}];
  program.key = key, program.entry = entry, program.options = options, program.source = source;
  r.changed = true;
}

void record_launches(const DeviceRecord& device, const Digest& key, const std::vector<LocalSize>& launches, std::string binary) noexcept {
  try {
    Recorder& r = recorder();
    std::lock_guard lock(r.mutex);
    auto found = r.programs.find({r.isa(device), key});
    if (found == r.programs.end()) return;
    PackProgram& program = found->second;
    if (program.binary == binary && program.launches == launches) return;
    program.launches = launches, program.binary = std::move(binary);
    r.changed = true;
    if (Clock::now() - r.written > kBetweenWrites) r.write_now();
  } catch (const std::exception& e) {
    log_once(LogLevel::warn, fmt::format("CLUTCH_PACK_RECORD: a program is not recorded: {}", e.what()));
  }
}

}}}  // namespace clutch::v0::detail
