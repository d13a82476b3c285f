// SPDX-License-Identifier: Apache-2.0
#include "program/pack_store.hpp"

#include <clutch/kernel.hpp>
#include <clutch/version.hpp>

#include "program/isa.hpp"
#include "runtime/registry.hpp"
#include "runtime/settings.hpp"
#include "support/system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <utility>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

constexpr const char* kInstead = "programs come from the disk cache or are built from source";

/// For clutch-pack prove: the end of a process that looks for programs in packs adds a line to a file, "packed built". No setting, since nobody else needs it.
void count_at_end() {
  static const char* const file = std::getenv(kPackCountsVariable);
  static const bool counts = file && std::atexit([] {
                                       if (forked()) return;
                                       const BuildCounters counters = build_counters();
                                       std::ofstream(file, std::ios::app) << fmt::format("{} {}\n", counters.packed, counters.built);
                                     }) == 0;
  static_cast<void>(counts);
}

std::vector<std::string> named_packs(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const std::string_view name = list.substr(0, list.find(kPathSeparator));
    if (!name.empty()) names.emplace_back(name);
    list.remove_prefix(std::min(name.size() + 1, list.size()));
  }
  return names;
}

/// Why an open file's programs are not for the device; empty if they are.
std::string refusal(const PackFile& pack, const DeviceRecord& device) {
  if (pack.recording()) return fmt::format("{} is not used: it is a recording, of which clutch-pack build makes packs", pack.name());
  if (pack.version() != CLUTCH_VERSION) return fmt::format("{} is not used: it is of clutch {}, and this is {}", pack.name(), pack.version(), CLUTCH_VERSION);
  const std::string why = misfit(pack.targets()[0], device);
  return why.empty() ? why : fmt::format("{} is not used: {}", pack.name(), why);
}

}  // namespace

std::filesystem::path installed_packs() {
  const std::filesystem::path library = file_of([] {});
  // A path that the current folder decides could lead to packs of someone else.
  return library.is_absolute() ? (library.parent_path() / CLUTCH_PACKS_FROM_LIBRARY).lexically_normal() : std::filesystem::path();
}

std::vector<std::shared_ptr<const PackFile>> PackStore::open_packs(const DeviceRecord& device, const std::string& setting,
                                                                   std::vector<std::pair<LogLevel, std::string>>& notes) const {
  std::vector<std::shared_ptr<const PackFile>> packs;
  if (setting == "off") return packs;
  const bool named = !setting.empty();
  std::vector<std::string> names = named_packs(setting);
  if (!named)
    if (const std::filesystem::path folder = installed_packs(); !folder.empty())
      for (const std::string& isa : isas_taken(device)) names.push_back((folder / (isa + kPackSuffix)).string());
  std::vector<std::string> refusals;
  for (const std::string& name : names) {
    PackFile::Opened opened = PackFile::open(name);
    if (!opened.exists && !named) continue;
    std::string why = opened.file ? refusal(*opened.file, device) : opened.problem;
    if (!why.empty()) {
      refusals.push_back(std::move(why));
      continue;
    }
    const PackTarget& target = opened.file->targets()[0];
    if (!named && target.proved.empty() && !is_proved_by_recording(target.isa)) {
      notes.emplace_back(LogLevel::info,
                         fmt::format("{} is not used: no device of {} has run the proofs with it, and CLUTCH_PACK does not name it", name, target.isa));
      continue;
    }
    packs.push_back(std::move(opened.file));
  }
  // A list may hold packs for several devices: one that fits is what the user wants to know of.
  for (std::string& why : refusals) notes.emplace_back(packs.empty() ? LogLevel::warn : LogLevel::info, std::move(why));
  return packs;
}

std::vector<std::shared_ptr<const PackFile>> PackStore::packs_of(const DeviceRecord& device) {
  const std::string& setting = the_settings().pack.value;
  std::vector<std::pair<LogLevel, std::string>> notes;
  std::vector<std::shared_ptr<const PackFile>> packs;
  {
    std::lock_guard lock(mutex_);
    if (setting_ != setting) packs_ = open_packs(device, setting, notes), setting_ = setting;
    packs = packs_;
  }
  for (const auto& [level, what] : notes) log_once(level, fmt::format("kernel pack: {}; {}", what, kInstead));
  return packs;
}

std::vector<LocalSize> PackStore::launches(const DeviceRecord& device, const Digest& key) {
  for (const std::shared_ptr<const PackFile>& pack : packs_of(device))
    if (const PackFile::IndexRow* row = pack->find(key); row && row->binary != PackFile::kNoBlob) return row->program.launches;
  return {};
}

std::optional<PackStore::Found> PackStore::find(const DeviceRecord& device, const Digest& key, std::string_view entry) {
  count_at_end();
  for (const std::shared_ptr<const PackFile>& pack : packs_of(device)) {
    const PackFile::IndexRow* row = pack->find(key);
    if (!row) continue;
    if (std::optional<std::string> binary = pack->blob(row->binary)) return Found{std::move(*binary), pack->name()};
    log_once(LogLevel::warn, row->binary == PackFile::kNoBlob
                                 ? fmt::format("kernel pack: {} has the program of {} without a binary; it is built from source", pack->name(), entry)
                                 : fmt::format("kernel pack: {} is damaged: the program of {} has another digest than its index; it is built from source",
                                               pack->name(), entry));
  }
  return std::nullopt;
}

}}}  // namespace clutch::v0::detail
