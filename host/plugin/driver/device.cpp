// SPDX-License-Identifier: Apache-2.0
// Platforms, devices and contexts: what they are and what they answer.
#include "plugin/driver/device.hpp"

#include <clutch/error.hpp>

#include "capi/plugin_status.hpp"
#include "plugin/driver/driver.hpp"
#include "runtime/plugin_hook.hpp"

#include <fmt/format.h>

#include <memory>

namespace clutch { inline namespace v0 { namespace detail {

namespace driver {
namespace {

std::vector<cl_platform_id>& platforms() {
  static auto& all = *new std::vector<cl_platform_id>();  // written while plugins are loaded, one thread at a time
  return all;
}

cl_device_type type_of(clutch_device_type_t type) noexcept {
  switch (type) {
    case CLUTCH_DEVICE_TYPE_CPU: return CL_DEVICE_TYPE_CPU;
    case CLUTCH_DEVICE_TYPE_GPU: return CL_DEVICE_TYPE_GPU;
    case CLUTCH_DEVICE_TYPE_ACCELERATOR: return CL_DEVICE_TYPE_ACCELERATOR;
    default: return CL_DEVICE_TYPE_CUSTOM;
  }
}

/// Errors: invalid_argument for facts that no device has.
void check_facts(const clutch_device_backend_t& backend, std::int64_t number, const clutch_device_facts_t& facts) {
  const auto must = [&](bool holds, std::string_view what, auto got) {
    if (!holds) throw Error(ErrorCode::invalid_argument, "plugins", fmt::format("device {} of backend {}: {}, got {}", number, backend.name, what, got));
  };
  must(facts.name && *facts.name, "it must have a name", "none");
  must(facts.compute_units >= 1, "compute_units must be 1 or more", facts.compute_units);
  must(facts.max_group_items >= 1, "max_group_items must be 1 or more", facts.max_group_items);
  must(facts.group_multiple >= 1, "group_multiple must be 1 or more", facts.group_multiple);
  must(facts.vector_bytes >= 4 && facts.vector_bytes <= 64, "vector_bytes must be from 4 to 64", facts.vector_bytes);
  must(facts.alignment >= 128 && (facts.alignment & (facts.alignment - 1)) == 0, "alignment must be a power of two of 128 or more", facts.alignment);
  must(facts.memory_bytes > 0, "memory_bytes must be above 0", facts.memory_bytes);
  must(facts.largest_buffer_bytes > 0 && facts.largest_buffer_bytes <= facts.memory_bytes, "largest_buffer_bytes must be from 1 to memory_bytes",
       facts.largest_buffer_bytes);
  must(facts.local_bytes >= 32768, "local_bytes must be 32768 or more", facts.local_bytes);
  must(facts.argument_bytes >= 1024, "argument_bytes must be 1024 or more", facts.argument_bytes);
}

std::string text_or_none(const char* text) { return text ? text : ""; }

}  // namespace

cl_int answer_bytes(const void* from, std::size_t bytes, std::size_t size, void* to, std::size_t* size_ret) noexcept {
  if (size_ret) *size_ret = bytes;
  if (to && size < bytes) return CL_INVALID_VALUE;
  if (to) std::memcpy(to, from, bytes);
  return CL_SUCCESS;
}

cl_int status_of(clutch_status_t code) noexcept {
  switch (code) {
    case CLUTCH_OK: return CL_SUCCESS;
    case CLUTCH_INVALID_ARGUMENT: return CL_INVALID_VALUE;
    case CLUTCH_NOT_SUPPORTED: return CL_INVALID_OPERATION;
    case CLUTCH_OUT_OF_MEMORY: return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    case CLUTCH_BUILD_FAILURE: return CL_BUILD_PROGRAM_FAILURE;
    case CLUTCH_DEVICE_LOST: return CL_DEVICE_NOT_AVAILABLE;
    default: return CL_OUT_OF_RESOURCES;
  }
}

cl_int CL_API_CALL get_platform_info(cl_platform_id platform, cl_platform_info what, std::size_t size, void* to, std::size_t* size_ret) {
  switch (what) {
    case CL_PLATFORM_NAME:
    case CL_PLATFORM_VENDOR: return answer(text_or_none(platform->backend.name), size, to, size_ret);
    case CL_PLATFORM_VERSION: return answer(fmt::format("OpenCL 1.2 {}", text_or_none(platform->backend.version)), size, to, size_ret);
    case CL_PLATFORM_PROFILE: return answer(std::string("FULL_PROFILE"), size, to, size_ret);
    case CL_PLATFORM_EXTENSIONS: return answer(std::string("cl_khr_icd"), size, to, size_ret);
    case CL_PLATFORM_ICD_SUFFIX_KHR: return answer(std::string("CLUTCH"), size, to, size_ret);
    default: return CL_INVALID_VALUE;
  }
}

cl_int CL_API_CALL get_device_ids(cl_platform_id platform, cl_device_type wanted, cl_uint n, cl_device_id* to, cl_uint* count) {
  cl_uint found = 0;
  for (cl_device_id device : platform->devices) {
    // The default device is the first.
    if (!(wanted & type_of(device->facts.type)) && !((wanted & CL_DEVICE_TYPE_DEFAULT) && device->number == 0)) continue;
    if (to && found < n) to[found] = device;
    ++found;
  }
  if (count) *count = found;
  return found > 0 ? CL_SUCCESS : CL_DEVICE_NOT_FOUND;
}

cl_int CL_API_CALL get_device_info(cl_device_id device, cl_device_info what, std::size_t size, void* to, std::size_t* size_ret) {
  const clutch_device_facts_t& facts = device->facts;
  const auto gives = [&](auto value) { return answer(value, size, to, size_ret); };
  const auto width = [&](std::int64_t bytes) { return gives(static_cast<cl_uint>(std::max<std::int64_t>(1, facts.vector_bytes / bytes))); };
  const bool has_f64 = text_or_none(facts.extensions).find("cl_khr_fp64") != std::string::npos;
  const bool has_f16 = text_or_none(facts.extensions).find("cl_khr_fp16") != std::string::npos;
  const cl_device_fp_config claims = CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST | (facts.has_subnormals ? CL_FP_DENORM : 0u) |
                                     (facts.fma_is_one_rounding ? CL_FP_FMA : 0u) | (facts.divide_is_exact ? CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT : 0u);
  switch (what) {
    case CL_DEVICE_NAME: return gives(text_or_none(facts.name));
    case CL_DEVICE_VENDOR: return gives(text_or_none(facts.vendor));
    case CL_DRIVER_VERSION: return gives(text_or_none(facts.driver_version));
    case CL_DEVICE_VERSION: return gives(fmt::format("OpenCL 1.2 {}", text_or_none(device->backend().version)));
    case CL_DEVICE_OPENCL_C_VERSION: return gives(std::string("OpenCL C 1.2 "));
    case CL_DEVICE_PROFILE: return gives(std::string("FULL_PROFILE"));
    case CL_DEVICE_EXTENSIONS: return gives(text_or_none(facts.extensions));
    case CL_DEVICE_BUILT_IN_KERNELS: return gives(std::string());
    case CL_DEVICE_TYPE: return gives(type_of(facts.type));
    case CL_DEVICE_PLATFORM: return gives(device->platform);
    case CL_DEVICE_PARENT_DEVICE: return gives(static_cast<cl_device_id>(nullptr));
    case CL_DEVICE_PARTITION_PROPERTIES: return gives(static_cast<cl_device_partition_property>(0));
    case CL_DEVICE_PARTITION_MAX_SUB_DEVICES:
    case CL_DEVICE_VENDOR_ID: return gives(static_cast<cl_uint>(0));
    case CL_DEVICE_AVAILABLE:
    case CL_DEVICE_COMPILER_AVAILABLE:
    case CL_DEVICE_LINKER_AVAILABLE:
    case CL_DEVICE_ENDIAN_LITTLE: return gives(static_cast<cl_bool>(CL_TRUE));
    case CL_DEVICE_IMAGE_SUPPORT:
    case CL_DEVICE_ERROR_CORRECTION_SUPPORT: return gives(static_cast<cl_bool>(CL_FALSE));
    case CL_DEVICE_HOST_UNIFIED_MEMORY: return gives(static_cast<cl_bool>(facts.shares_memory ? CL_TRUE : CL_FALSE));
    case CL_DEVICE_EXECUTION_CAPABILITIES: return gives(static_cast<cl_device_exec_capabilities>(CL_EXEC_KERNEL));
    case CL_DEVICE_QUEUE_PROPERTIES: return gives(static_cast<cl_command_queue_properties>(CL_QUEUE_PROFILING_ENABLE));
    case CL_DEVICE_PROFILING_TIMER_RESOLUTION: return gives(static_cast<std::size_t>(1));
    case CL_DEVICE_ADDRESS_BITS: return gives(static_cast<cl_uint>(8 * sizeof(void*)));
    case CL_DEVICE_MAX_COMPUTE_UNITS: return gives(static_cast<cl_uint>(facts.compute_units));
    case CL_DEVICE_MAX_CLOCK_FREQUENCY: return gives(static_cast<cl_uint>(0));
    case CL_DEVICE_MAX_WORK_GROUP_SIZE: return gives(static_cast<std::size_t>(facts.max_group_items));
    case CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS: return gives(static_cast<cl_uint>(3));
    case CL_DEVICE_MAX_WORK_ITEM_SIZES: {
      const auto items = static_cast<std::size_t>(facts.max_group_items);
      const std::size_t all[3] = {items, items, items};
      return answer_bytes(all, sizeof all, size, to, size_ret);
    }
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE: return gives(static_cast<cl_ulong>(facts.largest_buffer_bytes));
    case CL_DEVICE_GLOBAL_MEM_SIZE: return gives(static_cast<cl_ulong>(facts.memory_bytes));
    case CL_DEVICE_GLOBAL_MEM_CACHE_SIZE: return gives(static_cast<cl_ulong>(facts.cache_bytes));
    case CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE: return gives(static_cast<cl_uint>(64));
    case CL_DEVICE_GLOBAL_MEM_CACHE_TYPE: return gives(static_cast<cl_device_mem_cache_type>(facts.cache_bytes > 0 ? CL_READ_WRITE_CACHE : CL_NONE));
    case CL_DEVICE_LOCAL_MEM_SIZE: return gives(static_cast<cl_ulong>(facts.local_bytes));
    case CL_DEVICE_LOCAL_MEM_TYPE: return gives(static_cast<cl_device_local_mem_type>(facts.local_is_near ? CL_LOCAL : CL_GLOBAL));
    case CL_DEVICE_MAX_PARAMETER_SIZE: return gives(static_cast<std::size_t>(facts.argument_bytes));
    case CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE: return gives(static_cast<cl_ulong>(facts.largest_buffer_bytes));
    case CL_DEVICE_MEM_BASE_ADDR_ALIGN: return gives(static_cast<cl_uint>(8 * facts.alignment));
    case CL_DEVICE_MIN_DATA_TYPE_ALIGN_SIZE: return gives(static_cast<cl_uint>(128));
    case CL_DEVICE_SINGLE_FP_CONFIG: return gives(claims);
    case CL_DEVICE_DOUBLE_FP_CONFIG:
      return gives(static_cast<cl_device_fp_config>(has_f64 ? CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST | CL_FP_DENORM | CL_FP_FMA : 0u));
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_INT:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_INT: return width(4);
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE: return has_f64 ? width(8) : gives(static_cast<cl_uint>(0));
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF: return has_f16 ? width(2) : gives(static_cast<cl_uint>(0));
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_LONG:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_LONG: return width(8);
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_SHORT:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_SHORT: return width(2);
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR: return width(1);
    default: return CL_INVALID_VALUE;
  }
}

cl_context CL_API_CALL create_context(const cl_context_properties*, cl_uint n, const cl_device_id* devices,
                                      void(CL_CALLBACK*)(const char*, const void*, std::size_t, void*), void*, cl_int* status) {
  // Memory belongs to one device.
  if (n != 1) return given<_cl_context>(nullptr, n == 0 ? CL_INVALID_VALUE : CL_INVALID_DEVICE, status);
  auto made = std::make_unique<_cl_context>();
  made->device = devices[0];
  return given(made.release(), CL_SUCCESS, status);
}
cl_context CL_API_CALL create_context_of_type(const cl_context_properties* properties, cl_device_type type,
                                              void(CL_CALLBACK* notify)(const char*, const void*, std::size_t, void*), void* with, cl_int* status) {
  for (const cl_context_properties* p = properties; p && *p; p += 2)
    if (*p == CL_CONTEXT_PLATFORM)
      for (cl_device_id device : reinterpret_cast<cl_platform_id>(p[1])->devices)
        if (type & type_of(device->facts.type)) return create_context(properties, 1, &device, notify, with, status);
  return given<_cl_context>(nullptr, CL_DEVICE_NOT_FOUND, status);
}
cl_int CL_API_CALL get_context_info(cl_context context, cl_context_info what, std::size_t size, void* to, std::size_t* size_ret) {
  switch (what) {
    case CL_CONTEXT_REFERENCE_COUNT: return answer(context->references.load(), size, to, size_ret);
    case CL_CONTEXT_NUM_DEVICES: return answer(static_cast<cl_uint>(1), size, to, size_ret);
    case CL_CONTEXT_DEVICES: return answer(context->device, size, to, size_ret);
    case CL_CONTEXT_PROPERTIES: return answer_bytes(nullptr, 0, 0, nullptr, size_ret);
    default: return CL_INVALID_VALUE;
  }
}

}  // namespace driver

void add_device_backend(const clutch_device_backend_t& backend) {
  const auto check = [&](const auto& call, std::string_view function) {
    if (const clutch_status_t code = capi::call_plugin(call); code != CLUTCH_OK)
      throw Error(capi::code_of(code, ErrorCode::not_supported), "plugins",
                  fmt::format("{} of backend {} must succeed, got {}: {}", function, backend.name, code, capi::plugin_error()));
  };
  auto platform = std::make_unique<_cl_platform_id>();
  platform->backend = backend;
  std::int64_t count = 0;
  check([&] { return backend.device_count(&count); }, "device_count");
  std::vector<std::unique_ptr<_cl_device_id>> devices;
  for (std::int64_t i = 0; i < count; ++i) {
    auto device = std::make_unique<_cl_device_id>();
    device->platform = platform.get();
    device->number = i;
    device->facts.size = sizeof device->facts;
    check([&] { return backend.device_facts(i, &device->facts); }, "device_facts");
    driver::check_facts(backend, i, device->facts);
    devices.push_back(std::move(device));
  }
  for (auto& device : devices) platform->devices.push_back(device.release());
  driver::platforms().push_back(platform.release());
}

std::span<const cl_platform_id> plugin_platforms() { return driver::platforms(); }

}}}  // namespace clutch::v0::detail
