// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/device.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// Facts by which selection decides. Pure data, so that tests select among invented vendors.
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
/// Errors: invalid_argument for bad grammar; no_device, listing the choices, if nothing matches.
std::vector<int> match_selector(std::string_view selector, std::span<const DeviceFacts> all);

/// Indices that a CLUTCH_VISIBLE_DEVICES list leaves, by CUDA's rules: an invalid or repeated entry hides itself and the
/// rest. Entries are indices or unique prefixes of a UUID behind "GPU-" or "UUID-".
std::vector<int> visible_devices(std::string_view list, std::span<const DeviceFacts> all);

/// First GPU, else first CPU, else the first of what is left, simulators last; -1 if there is none.
int default_choice(std::span<const DeviceFacts> all);

/// "  0  0:0  cpu  name (platform)" lines for messages.
std::string list_choices(std::span<const DeviceFacts> all);

}}}  // namespace clutch::v0::detail
