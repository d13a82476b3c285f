// SPDX-License-Identifier: Apache-2.0
// What CLUTCH_PACK_RECORD=FILE writes: the programs that a process made and launched, for clutch-pack. Sources are noted when a program is made, binaries and
// local sizes when the program is saved, after a launch, so the end of the process makes no OpenCL call. Processes add to one file in turn.
#pragma once
#include "program/pack_file.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

struct DeviceRecord;

/// True if the process records.
bool records_packs();
/// Notes a program that was built or loaded.
void record_program(const DeviceRecord& device, const Digest& key, std::string_view entry, std::string_view options, std::string_view source);
/// Notes what is known of it after a launch.
void record_launches(const DeviceRecord& device, const Digest& key, const std::vector<LocalSize>& launches, std::string binary) noexcept;
/// Writes what is new: at first at once, then after five seconds at least. The end of the process writes the rest. To be called where a program's launches were
/// noted, and where the host has waited for a stream.
void write_recording() noexcept;

}}}  // namespace clutch::v0::detail
