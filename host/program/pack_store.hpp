// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/settings.hpp>

#include "program/pack_file.hpp"

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

struct DeviceRecord;

/// Folder of installed packs, one file per ISA.
std::filesystem::path installed_packs();

/// The packs that one device takes programs from: those of CLUTCH_PACK, or the installed ones of its ISAs, which must have been proved on such a device.
/// A pack that does not fit is logged once with the reason, and its programs are built from source.
class PackStore {
 public:
  struct Found {
    std::string binary;
    std::string pack;  ///< its file, for messages
  };
  /// The program of a key whose digest is right. Of several packs the first that has the program; one that is damaged is logged.
  std::optional<Found> find(const DeviceRecord& device, const Digest& key, std::string_view entry);
  /// The local sizes of the program that find() returns if it is sound; none if no pack has it.
  std::vector<LocalSize> launches(const DeviceRecord& device, const Digest& key);

 private:
  std::vector<std::shared_ptr<const PackFile>> packs_of(const DeviceRecord& device);

  std::vector<std::shared_ptr<const PackFile>> open_packs(const DeviceRecord& device, const std::string& setting,
                                                          std::vector<std::pair<LogLevel, std::string>>& notes) const;

  std::mutex mutex_;
  std::optional<std::string> setting_;  ///< that packs_ are of
  std::vector<std::shared_ptr<const PackFile>> packs_;
};

}}}  // namespace clutch::v0::detail
