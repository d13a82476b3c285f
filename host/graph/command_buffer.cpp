// SPDX-License-Identifier: Apache-2.0
#include "graph/command_buffer.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

constexpr cl_device_info kCapabilities = 0x12A9, kRequiredQueueProperties = 0x12AA;
constexpr cl_bitfield kCapabilitySimultaneous = 1u << 2;  // before version 0.9.7
constexpr cl_properties kFlags = 0x1293, kFlagSimultaneous = 1u << 0, kFlagMutable = 1u << 1;
constexpr cl_device_info kMutableCapabilities = 0x12B0;
constexpr cl_properties kUpdatableFields = 0x12B1;
constexpr cl_bitfield kUpdatableArguments = 1u << 3;

/// cl_mutable_dispatch_config_khr since 0.9.2.
struct DispatchConfig {
  void* command;
  cl_uint num_args, num_svm_args, num_exec_infos, work_dim;
  const void* arg_list;
  const void* arg_svm_list;
  const void* exec_info_list;
  const std::size_t *global_work_offset, *global_work_size, *local_work_size;
};

template <class F>
void fetch(cl_platform_id platform, const char* name, F& f, bool& all) {
  void* address = clGetExtensionFunctionAddressForPlatform(platform, name);
  all = all && address;
  f = reinterpret_cast<F>(address);
}

}  // namespace

const CommandBufferApi* CommandBufferApi::of(const DeviceRecord& device, std::string& why_not) {
  int version = claimed_traits(device).command_buffer;
  if (version == 0) {
    why_not = "the device has no cl_khr_command_buffer";
    return nullptr;
  }
  if (version >= 0x020000) {
    why_not = fmt::format("version {}.{}.{} of cl_khr_command_buffer is not known", version >> 16, version >> 8 & 0xFF, version & 0xFF);
    return nullptr;
  }
  auto required = device_value<cl_bitfield>(device.id, kRequiredQueueProperties);
  if (required & ~static_cast<cl_bitfield>(CL_QUEUE_PROFILING_ENABLE)) {
    why_not = fmt::format("its queues must have properties {:#x}", required);
    return nullptr;
  }
  struct Known {
    std::mutex mutex;
    std::map<std::pair<cl_platform_id, int>, std::unique_ptr<CommandBufferApi>> all;
  };
  static auto* known = new Known;
  std::lock_guard lock(known->mutex);
  auto& api = known->all[{device.platform, version}];
  if (api) return api.get();
  auto made = std::make_unique<CommandBufferApi>();
  bool all = true;
  fetch(device.platform, "clCreateCommandBufferKHR", made->create_, all);
  fetch(device.platform, "clFinalizeCommandBufferKHR", made->finalize_, all);
  fetch(device.platform, "clReleaseCommandBufferKHR", made->release_, all);
  fetch(device.platform, "clEnqueueCommandBufferKHR", made->enqueue_, all);
  fetch(device.platform, "clCommandNDRangeKernelKHR", made->kernel_, all);
  fetch(device.platform, "clCommandCopyBufferKHR", made->copy_, all);
  fetch(device.platform, "clCommandFillBufferKHR", made->fill_, all);
  if (!all) {
    why_not = "the platform names cl_khr_command_buffer, but lacks functions of it";
    return nullptr;
  }
  made->properties_ = version >= 0x000905;
  bool old = version < 0x000908;
  made->flag_ = old && (device_value<cl_bitfield>(device.id, kCapabilities) & kCapabilitySimultaneous);
  made->overlaps_ = !old || made->flag_;
  // Before 0.9.2 an update took another structure.
  if (extension_revision(device, "cl_khr_command_buffer_mutable_dispatch", 0) >= 0x000902 &&
      (device_value<cl_bitfield>(device.id, kMutableCapabilities) & kUpdatableArguments)) {
    bool offered = true;
    fetch(device.platform, "clUpdateMutableCommandsKHR", made->update_, offered);
  }
  api = std::move(made);
  return api.get();
}

CommandBufferApi::Buffer CommandBufferApi::create(cl_command_queue queue, bool simultaneous, cl_int* status) const {
  const cl_properties flags = (simultaneous && flag_ ? kFlagSimultaneous : 0) | (updates() ? kFlagMutable : 0);
  const cl_properties properties[] = {kFlags, flags, 0};
  return create_(1, &queue, flags ? properties : nullptr, status);
}

cl_int CommandBufferApi::kernel(Buffer buffer, cl_kernel kernel, cl_uint dims, const std::size_t* global, const std::size_t* local, void** command) const {
  const cl_properties properties[] = {kUpdatableFields, kUpdatableArguments, 0};
  bool updatable = updates() && command;
  return kernel_(buffer, nullptr, updatable ? properties : nullptr, kernel, dims, nullptr, global, local, 0, nullptr, nullptr, updatable ? command : nullptr);
}

cl_int CommandBufferApi::update(Buffer buffer, const std::vector<Update>& updates) const {
  std::vector<DispatchConfig> configs;
  for (const Update& u : updates) {
    DispatchConfig config{};
    config.command = u.command;
    config.num_args = static_cast<cl_uint>(u.arguments.size());
    config.arg_list = u.arguments.data();
    configs.push_back(config);
  }
  std::vector<cl_uint> types(configs.size(), 0);  // CL_STRUCTURE_TYPE_MUTABLE_DISPATCH_CONFIG_KHR
  std::vector<const void*> pointers;
  for (const DispatchConfig& config : configs) pointers.push_back(&config);
  return update_(buffer, static_cast<cl_uint>(configs.size()), types.data(), pointers.data());
}

cl_int CommandBufferApi::copy(Buffer buffer, cl_mem source, cl_mem destination, std::size_t source_offset, std::size_t offset, std::size_t bytes) const {
  if (properties_)
    return reinterpret_cast<Copy095>(copy_)(buffer, nullptr, nullptr, source, destination, source_offset, offset, bytes, 0, nullptr, nullptr, nullptr);
  return reinterpret_cast<Copy094>(copy_)(buffer, nullptr, source, destination, source_offset, offset, bytes, 0, nullptr, nullptr, nullptr);
}

cl_int CommandBufferApi::fill(Buffer buffer, cl_mem mem, std::uint8_t pattern, std::size_t offset, std::size_t bytes) const {
  if (properties_) return reinterpret_cast<Fill095>(fill_)(buffer, nullptr, nullptr, mem, &pattern, 1, offset, bytes, 0, nullptr, nullptr, nullptr);
  return reinterpret_cast<Fill094>(fill_)(buffer, nullptr, mem, &pattern, 1, offset, bytes, 0, nullptr, nullptr, nullptr);
}

}}}  // namespace clutch::v0::detail
