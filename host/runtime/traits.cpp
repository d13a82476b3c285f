// SPDX-License-Identifier: Apache-2.0
#include "runtime/quirks.hpp"
#include "runtime/registry.hpp"
#include "runtime/self_test.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#ifndef CL_DEVICE_EXTENSIONS_WITH_VERSION
#define CL_DEVICE_EXTENSIONS_WITH_VERSION 0x1060
#endif

namespace clutch { inline namespace v0 { namespace detail {

int extension_revision(const DeviceRecord& d, std::string_view extension, int unversioned) {
  if (!d.has_extension(extension)) return 0;
  std::size_t size = 0;
  cl_int status = clGetDeviceInfo(d.id, CL_DEVICE_EXTENSIONS_WITH_VERSION, 0, nullptr, &size);
  if (status == CL_INVALID_VALUE) return unversioned;  // drivers before OpenCL 3.0
  std::vector<cl_name_version> list(size / sizeof(cl_name_version));
  if (status == CL_SUCCESS) status = clGetDeviceInfo(d.id, CL_DEVICE_EXTENSIONS_WITH_VERSION, size, list.data(), nullptr);
  if (status != CL_SUCCESS) return 0;  // a guessed revision could have other parameters than the driver's
  for (const auto& entry : list)
    if (extension == entry.name)
      return static_cast<int>((CL_VERSION_MAJOR(entry.version) << 16) | (CL_VERSION_MINOR(entry.version) << 8) | (CL_VERSION_PATCH(entry.version) & 0xFF));
  return unversioned;
}

namespace {

int opencl_c_version(const DeviceRecord& d) {
  int major = 1, minor = 2;
  std::string text = device_text(d.id, CL_DEVICE_OPENCL_C_VERSION);  // "OpenCL C 1.2 ..."
  if (std::sscanf(text.c_str(), "OpenCL C %d.%d", &major, &minor) != 2) return 120;
  return major * 100 + minor * 10;
}

/// Numeric property of a device; `fallback` if the driver does not know the property. Errors: opencl if the query fails otherwise, because a fallback would
/// then understate the device.
template <class T>
T known_value(cl_device_id device, cl_device_info what, T fallback = T{}) {
  T value{};
  const cl_int status = clGetDeviceInfo(device, what, sizeof(T), &value, nullptr);
  if (status == CL_INVALID_VALUE) return fallback;
  check_cl(status, "device", "clGetDeviceInfo");
  return value;
}

/// Items of the smallest sub-group that a kernel may ask for; 0 if the driver knows no such thing.
int least_sub_group(cl_device_id device) {
  constexpr cl_device_info kSubGroupSizes = 0x4108;  // CL_DEVICE_SUB_GROUP_SIZES_INTEL
  std::array<std::size_t, 16> sizes{};
  std::size_t bytes = 0;
  if (clGetDeviceInfo(device, kSubGroupSizes, sizeof sizes, sizes.data(), &bytes) != CL_SUCCESS || bytes < sizeof sizes[0]) return 0;
  return static_cast<int>(*std::min_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(bytes / sizeof sizes[0])));
}

void claim(const DeviceRecord& d) {
  DeviceTraits& t = d.traits;
  t.type = d.facts.type;
  t.simulator = d.facts.simulator;
  t.opencl_c = opencl_c_version(d);
  t.address_bits = static_cast<int>(known_value<cl_uint>(d.id, CL_DEVICE_ADDRESS_BITS, 64));
  t.compute_units = static_cast<int>(known_value<cl_uint>(d.id, CL_DEVICE_MAX_COMPUTE_UNITS, 1));
  t.max_work_group = known_value<std::size_t>(d.id, CL_DEVICE_MAX_WORK_GROUP_SIZE, 1);
  std::array<std::size_t, 16> items{};
  const cl_int knows_items = clGetDeviceInfo(d.id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof items, items.data(), nullptr);
  if (knows_items != CL_INVALID_VALUE) check_cl(knows_items, "device", "clGetDeviceInfo");
  if (items[0] > 0) t.max_work_group = std::min<std::uint64_t>(t.max_work_group, items[0]);
  t.local_bytes = known_value<cl_ulong>(d.id, CL_DEVICE_LOCAL_MEM_SIZE);
  t.local_memory_real = known_value<cl_device_local_mem_type>(d.id, CL_DEVICE_LOCAL_MEM_TYPE) == CL_LOCAL;
  t.global_bytes = known_value<cl_ulong>(d.id, CL_DEVICE_GLOBAL_MEM_SIZE);
  t.max_alloc_bytes = known_value<cl_ulong>(d.id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  t.max_argument_bytes = known_value<std::size_t>(d.id, CL_DEVICE_MAX_PARAMETER_SIZE, 1024);
  t.cache_bytes = known_value<cl_ulong>(d.id, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
  t.base_align_bits = known_value<cl_uint>(d.id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, 1024);
  t.native_width_f32 = static_cast<int>(known_value<cl_uint>(d.id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, 1));
  t.native_width_f64 = static_cast<int>(known_value<cl_uint>(d.id, CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE));
  t.native_width_f16 = static_cast<int>(known_value<cl_uint>(d.id, CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF));
  if (t.native_width_f32 < 1) t.native_width_f32 = 1;
  t.fp64 = known_value<cl_device_fp_config>(d.id, CL_DEVICE_DOUBLE_FP_CONFIG, d.has_extension("cl_khr_fp64") ? CL_FP_FMA : 0) != 0;
  t.fp16 = d.has_extension("cl_khr_fp16");
  t.sub_groups = d.has_extension("cl_khr_subgroups") || known_value<cl_uint>(d.id, CL_DEVICE_MAX_NUM_SUB_GROUPS) > 0;
  t.native_atomics64 = d.has_extension("cl_khr_int64_base_atomics");
  auto queues = known_value<cl_command_queue_properties>(d.id, CL_DEVICE_QUEUE_PROPERTIES);
  t.out_of_order = (queues & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0;
  t.register_limits = d.has_extension("cl_nv_compiler_options");
  // No extension tells of the option: GPUs of Xe-HPG and Xe-HPC have it.
  auto is_named = [&](std::string_view part) { return d.facts.name.find(part) != std::string::npos; };
  t.large_registers = d.facts.platform_name == "Intel(R) OpenCL Graphics" && (is_named("Arc") || is_named("Data Center GPU"));
  t.least_sub_group = least_sub_group(d.id);
  t.priority_hints = d.has_extension("cl_khr_priority_hints");
  t.command_buffer = extension_revision(d, "cl_khr_command_buffer", 0x000900);
  auto single = known_value<cl_device_fp_config>(d.id, CL_DEVICE_SINGLE_FP_CONFIG);
  t.fma_exact = (single & CL_FP_FMA) != 0;
  t.divide_exact = t.sqrt_exact = (single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  t.denormals = (single & CL_FP_DENORM) != 0;
  t.device_timer = true;
  for (const QuirkRow& row : quirk_table())
    if (row.applies(d)) t.quirks |= row.bit;
}

}  // namespace

const DeviceTraits& claimed_traits(const DeviceRecord& record) {
  std::call_once(record.claims_once, [&] { claim(record); });
  return record.traits;
}

const DeviceTraits& tested_traits(const DeviceRecord& record) {
  claimed_traits(record);
  std::call_once(record.tests_once, [&] { run_self_tests(record, record.traits); });
  return record.traits;
}

}}}  // namespace clutch::v0::detail
