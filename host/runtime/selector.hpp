// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/device.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// Facts about a device for selection: plain data, so that tests can invent devices.
struct DeviceFacts {
  int platform = 0;  ///< number of the platform in the stable order
  int device = 0;    ///< number of the device within its platform
  std::string platform_name;
  std::string vendor;
  std::string name;
  std::string uuid;
  DeviceType type = DeviceType::other;
  bool simulator = false;
};

/// Indices into `all` that the selector accepts, in the selector's order.
/// Errors: invalid_argument for bad grammar; no_device, with a list of the choices, if no device matches.
std::vector<int> match_selector(std::string_view selector, std::span<const DeviceFacts> all);

/// Indices that a CLUTCH_VISIBLE_DEVICES list leaves visible, by CUDA's rules: an invalid or repeated entry hides itself and all entries after it. An entry is
/// an index, or a unique prefix of a UUID after "GPU-" or "UUID-".
std::vector<int> visible_devices(std::string_view list, std::span<const DeviceFacts> all);

/// Index of the first GPU, else of the first CPU, else of the first other device; simulators come last. -1 if `all` is empty.
int default_choice(std::span<const DeviceFacts> all);

/// Lines such as "  0  0:0  cpu  name (platform)" for messages.
std::string list_choices(std::span<const DeviceFacts> all);

}}}  // namespace clutch::v0::detail
