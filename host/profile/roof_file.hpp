// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/device.hpp>
#include <clutch/settings.hpp>

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

/// Folder of what is kept of devices, in the cache's folder.
inline constexpr const char* kDeviceFolder = "devices";

/// What the names of the peaks of matrix instructions begin with in a device's roofline.
inline constexpr std::string_view kMatrixPeak = "matrix ";

/// Name of the file there that clutch-bench keeps a device's measured roofline in.
inline std::string roofline_file(const Device& device) {
  auto key = std::hash<std::string>{}(device.platform() + "|" + device.name() + "|" + device.driver_version() + "|" + std::string(version()));
  return fmt::format("{:016x}.roofline.json", key);
}

}}}  // namespace clutch::v0::detail
