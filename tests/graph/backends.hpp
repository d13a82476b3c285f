// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "support/fixture.hpp"

#include <string>
#include <vector>

namespace clutch::testing {

/// Backends that the device offers.
inline std::vector<std::string> backends_of(const Device& device) {
  std::vector<std::string> all{"host", "fused"};
  if (!skip_without(device, "command buffers", device.traits().command_buffer > 0)) all.emplace_back("native"), all.emplace_back("auto");
  return all;
}

#define CLUTCH_EACH_BACKEND(device, backend)             \
  CLUTCH_EACH_DEVICE(device)                             \
  for (const std::string& backend : backends_of(device)) \
    if (::testing::ScopedTrace clutch_backend(__FILE__, __LINE__, backend); true)

}  // namespace clutch::testing
