// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/cl_api.hpp"

#include <span>

namespace clutch { inline namespace v0 { namespace detail {

/// Loads plugins at the first call; the same Error at each later one if that failed. Does nothing on a thread that loads them. Defined in plugin/loader.cpp.
void load_plugins();
/// True on a thread that loads plugins.
bool loads_plugins() noexcept;

/// Platforms of devices that loaded plugins bring. Defined in plugin/driver/device.cpp.
std::span<const cl_platform_id> plugin_platforms();

}}}  // namespace clutch::v0::detail
