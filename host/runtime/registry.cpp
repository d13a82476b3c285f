// SPDX-License-Identifier: Apache-2.0
#include "runtime/registry.hpp"

#include "runtime/plugin_hook.hpp"
#include "runtime/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#ifndef CL_DEVICE_UUID_KHR
#define CL_DEVICE_UUID_KHR 0x106A
#endif

namespace clutch { inline namespace v0 { namespace detail {

namespace {

std::string query_uuid(cl_device_id id, const std::string& extensions) {
  if (extensions.find("cl_khr_device_uuid") == std::string::npos) return {};
  unsigned char raw[16] = {};
  if (clGetDeviceInfo(id, CL_DEVICE_UUID_KHR, sizeof raw, raw, nullptr) != CL_SUCCESS) return {};
  std::string text;
  for (unsigned char byte : raw) text += fmt::format("{:02x}", byte);
  return text;
}

/// Fills in the record. Returns CL_SUCCESS, or the status of the failed query if the device's type is unknown.
cl_int describe(DeviceRecord& record) {
  record.extensions = device_text(record.id, CL_DEVICE_EXTENSIONS);
  record.driver_version = device_text(record.id, CL_DRIVER_VERSION);
  record.opencl_version = device_text(record.id, CL_DEVICE_VERSION);
  record.platform_version = platform_text(record.platform, CL_PLATFORM_VERSION);
  DeviceFacts& facts = record.facts;
  facts.platform_name = platform_text(record.platform, CL_PLATFORM_NAME);
  facts.vendor = device_text(record.id, CL_DEVICE_VENDOR);
  facts.name = device_text(record.id, CL_DEVICE_NAME);
  facts.uuid = query_uuid(record.id, record.extensions);
  cl_device_type type = 0;
  if (const cl_int status = clGetDeviceInfo(record.id, CL_DEVICE_TYPE, sizeof type, &type, nullptr); status != CL_SUCCESS) return status;
  type &= ~static_cast<cl_device_type>(CL_DEVICE_TYPE_DEFAULT);
  facts.type = type & CL_DEVICE_TYPE_GPU           ? DeviceType::gpu
               : type & CL_DEVICE_TYPE_CPU         ? DeviceType::cpu
               : type & CL_DEVICE_TYPE_ACCELERATOR ? DeviceType::accelerator
                                                   : DeviceType::other;
  facts.simulator = (type & (type - 1)) != 0;
  const char* affinity = std::getenv("POCL_AFFINITY");  // which PoCL reads as it starts
  record.pins_threads = facts.platform_name == "Portable Computing Language" && affinity && std::string_view(affinity) == "1";
  return CL_SUCCESS;
}

std::vector<std::unique_ptr<DeviceRecord>> enumerate(bool& no_platform) {
  std::vector<std::unique_ptr<DeviceRecord>> all;
  cl_uint count = 0;
  cl_int found = clGetPlatformIDs(0, nullptr, &count);
  if (found == CL_PLATFORM_NOT_FOUND_KHR) found = CL_SUCCESS, count = 0;
  check_cl(found, "devices", "clGetPlatformIDs");
  std::vector<cl_platform_id> platforms(count);
  if (count > 0) check_cl(clGetPlatformIDs(count, platforms.data(), nullptr), "devices", "clGetPlatformIDs");
  // Loaders list platforms in varying order. With names sorted, a new driver changes few device numbers. Names are queried once, before sorting: a query that
  // fails in between would make the comparison inconsistent.
  std::vector<std::pair<std::string, cl_platform_id>> named;
  for (cl_platform_id platform : platforms) named.emplace_back(platform_text(platform, CL_PLATFORM_NAME), platform);
  std::stable_sort(named.begin(), named.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const std::size_t of_drivers = named.size();
  // Those of plugins come last, so that a plugin changes neither the numbers of drivers' devices nor which is the default one.
  for (cl_platform_id platform : plugin_platforms()) named.emplace_back(platform_text(platform, CL_PLATFORM_NAME), platform);
  no_platform = named.empty();
  int platform_number = 0;
  for (std::size_t number = 0; number < named.size(); ++number) {
    const auto& [platform_name, platform] = named[number];
    cl_uint devices = 0;
    std::vector<cl_device_id> ids;
    cl_int status = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &devices);
    if (status == CL_SUCCESS && devices > 0) {
      ids.resize(devices);
      status = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, devices, ids.data(), nullptr);
    }
    // A driver that fails must not hide the devices of others.
    if (status != CL_SUCCESS && status != CL_DEVICE_NOT_FOUND)
      log_line(LogLevel::warn, fmt::format("platform {} is left out: clGetDeviceIDs failed with {} ({})", platform_name, cl_error_name(status), status));
    if (status != CL_SUCCESS || devices == 0) continue;
    for (cl_uint i = 0; i < devices; ++i) {
      auto record = std::make_unique<DeviceRecord>();
      record->platform = platform;
      record->id = ids[i];
      record->by_plugin = number >= of_drivers;
      // Kernels are chosen by the device's type, so a device of unknown type is left out.
      if (const cl_int failed = describe(*record); failed != CL_SUCCESS) {
        log_line(LogLevel::warn,
                 fmt::format("device {} of platform {} is left out: clGetDeviceInfo failed with {} ({})", i, platform_name, cl_error_name(failed), failed));
        continue;
      }
      record->facts.platform = platform_number;
      record->facts.device = static_cast<int>(i);
      all.push_back(std::move(record));
    }
    ++platform_number;
  }
  return all;
}

}  // namespace

bool DeviceRecord::has_extension(std::string_view name) const {
  std::string_view text = extensions;
  for (auto at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    auto end = at + name.size();
    if ((at == 0 || text[at - 1] == ' ') && (end == text.size() || text[end] == ' ')) return true;
  }
  return false;
}

std::vector<DeviceFacts> Registry::facts() const {
  std::vector<DeviceFacts> result;
  for (const auto& record : records) result.push_back(record->facts);
  return result;
}

std::unique_ptr<Registry> make_registry() {
  const Setting& visible = the_settings().visible_devices;
  auto result = std::make_unique<Registry>();
  auto all = enumerate(result->no_platform);
  std::vector<DeviceFacts> facts;
  for (const auto& record : all) facts.push_back(record->facts);
  std::vector<int> shown;
  if (visible.value == "all")
    for (std::size_t i = 0; i < all.size(); ++i) shown.push_back(static_cast<int>(i));
  else
    shown = visible_devices(visible.value, facts);
  for (int i : shown) {
    auto& record = all[static_cast<std::size_t>(i)];
    record->index = static_cast<int>(result->records.size());
    result->records.push_back(std::move(record));
  }
  return result;
}

const Registry& registry() {
  check_process("devices");
  watch_forks();
  // A plugin that asked for devices while it is loaded would get those without its own, and so would the process.
  if (loads_plugins()) throw Error(ErrorCode::not_supported, "devices", "a plugin must not ask for devices while plugins are loaded");
  static const Registry* made = [] {
    load_plugins();
    return make_registry().release();
  }();
  return *made;
}

const DeviceRecord* find_record(cl_device_id id) {
  for (const auto& record : registry().records)
    if (record->id == id) return record.get();
  return nullptr;
}

}}}  // namespace clutch::v0::detail
