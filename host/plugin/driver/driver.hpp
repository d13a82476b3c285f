// SPDX-License-Identifier: Apache-2.0
// OpenCL's objects over what a plugin's device can do. They begin with a dispatch table, as those of installed drivers do, so that the loader's functions reach
// them and no other code knows of them.
#pragma once
#include <clutch/plugin.h>

namespace clutch { inline namespace v0 { namespace detail {

/// Makes a platform of the backend, whose functions stay for the process, with its devices.
/// Errors: what the backend's device_count() or device_facts() gives; invalid_argument for facts that no device has.
void add_device_backend(const clutch_device_backend_t& backend);

}}}  // namespace clutch::v0::detail
