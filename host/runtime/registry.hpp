// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/cl_api.hpp"
#include "runtime/selector.hpp"

#include <memory>
#include <mutex>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

class Runtime;

/// One visible device. Records live as long as the process, so that a Device can be a pointer to one.
struct DeviceRecord {
  int index = 0;
  DeviceFacts facts;
  cl_platform_id platform = nullptr;
  cl_device_id id = nullptr;
  std::string driver_version, opencl_version, platform_version, extensions;
  bool by_plugin = false;     ///< a plugin's, of which OpenCL's loader has heard nothing
  bool pins_threads = false;  ///< the driver keeps each thread of a sub-device on a core of its own

  mutable std::once_flag claims_once, tests_once, runtime_once;
  mutable DeviceTraits traits;  // claims after claims_once, complete after tests_once
  mutable Runtime* runtime = nullptr;

  bool has_extension(std::string_view name) const;
};

struct Registry {
  bool no_platform = false;
  std::vector<std::unique_ptr<DeviceRecord>> records;  // visible devices, by index
  std::vector<DeviceFacts> facts() const;
};

/// Enumerates anew, into records separate from the process's own. Errors: invalid_setting, opencl.
std::unique_ptr<Registry> make_registry();
/// Enumerates at the first call; never destroyed. Errors: as make_registry().
const Registry& registry();
const DeviceRecord* find_record(cl_device_id id);

/// Version 0x00MMmmpp of an extension from the versioned list. `unversioned` if the driver has no such list; 0 if the extension is absent or the query fails.
int extension_revision(const DeviceRecord& record, std::string_view extension, int unversioned);
/// Traits by the driver's claims; runs no kernel.
const DeviceTraits& claimed_traits(const DeviceRecord& record);
/// Traits by claims and self-tests.
const DeviceTraits& tested_traits(const DeviceRecord& record);

}}}  // namespace clutch::v0::detail
