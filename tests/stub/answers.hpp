// SPDX-License-Identifier: Apache-2.0
#pragma once
// A profile's facts as answers to OpenCL's questions: of the stub driver, and of the layer that puts a profile before a simulator
// (gpu/count/profile_layer.cpp).
#include "profile.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace stub {

template <class T>
cl_int answer(const T& value, std::size_t size, void* to, std::size_t* size_ret) {
  if (size_ret) *size_ret = sizeof(T);
  if (to && size < sizeof(T)) return CL_INVALID_VALUE;
  if (to) std::memcpy(to, &value, sizeof(T));
  return CL_SUCCESS;
}
inline cl_int answer(std::string_view text, std::size_t size, void* to, std::size_t* size_ret) {
  if (size_ret) *size_ret = text.size() + 1;
  if (to && size < text.size() + 1) return CL_INVALID_VALUE;
  if (to) {
    std::copy(text.begin(), text.end(), static_cast<char*>(to));
    static_cast<char*>(to)[text.size()] = '\0';
  }
  return CL_SUCCESS;
}
inline cl_int answer(const std::string& text, std::size_t size, void* to, std::size_t* size_ret) { return answer(std::string_view(text), size, to, size_ret); }

inline std::string_view fact(const char* name) { return stub::profile().text(name); }
template <class T>
T number(const char* name) {
  return static_cast<T>(stub::profile().number(name));
}
inline cl_device_type device_type() { return stub::profile().is_gpu ? CL_DEVICE_TYPE_GPU : CL_DEVICE_TYPE_CPU; }
inline cl_device_fp_config single_rounding() {
  cl_device_fp_config claims = CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST;
  if (stub::profile().has("rounding", "fma")) claims |= CL_FP_FMA;
  if (stub::profile().has("rounding", "denormals")) claims |= CL_FP_DENORM;
  if (stub::profile().has("rounding", "divide")) claims |= CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
  return claims;
}

/// Number `place` of a version, such as 9 of 9.0 for place 0; CL_INVALID_VALUE if the profile says none.
inline cl_int version_part(const char* name, int place, std::size_t size, void* to, std::size_t* size_ret) {
  std::string version = stub::profile().text(name);
  if (version.empty()) return CL_INVALID_VALUE;
  for (; place > 0; --place) version.erase(0, version.find('.') + 1);
  return answer<cl_uint>(static_cast<cl_uint>(std::strtoul(version.c_str(), nullptr, 10)), size, to, size_ret);
}
/// The packed version of cl_intel_device_attribute_query: architecture, release, revision.
inline cl_int ip_version(std::size_t size, void* to, std::size_t* size_ret) {
  cl_uint parts[3] = {};
  for (int i = 0; i < 3; ++i)
    if (version_part("ip_version", i, sizeof parts[i], &parts[i], nullptr) != CL_SUCCESS) return CL_INVALID_VALUE;
  return answer<cl_uint>(parts[0] << 22 | parts[1] << 14 | parts[2], size, to, size_ret);
}

/// CL_INVALID_VALUE for what profiles do not say.
inline cl_int platform_fact(cl_platform_info what, std::size_t size, void* to, std::size_t* size_ret) {
  switch (what) {
    case CL_PLATFORM_NAME: return answer(fact("platform"), size, to, size_ret);
    case CL_PLATFORM_VENDOR: return answer(fact("vendor"), size, to, size_ret);
    case CL_PLATFORM_VERSION: return answer(fact("version"), size, to, size_ret);
    default: return CL_INVALID_VALUE;
  }
}
/// CL_INVALID_VALUE for what profiles do not say.
inline cl_int device_fact(cl_device_info what, std::size_t size, void* to, std::size_t* size_ret) {
  switch (what) {
    case CL_DEVICE_NAME: return answer(fact("name"), size, to, size_ret);
    case CL_DEVICE_VENDOR: return answer(fact("vendor"), size, to, size_ret);
    case CL_DEVICE_VERSION: return answer(fact("version"), size, to, size_ret);
    case CL_DRIVER_VERSION: return answer(fact("driver"), size, to, size_ret);
    case CL_DEVICE_OPENCL_C_VERSION: return answer("OpenCL C " + stub::profile().text("opencl_c") + " ", size, to, size_ret);
    case CL_DEVICE_EXTENSIONS: return answer("cl_khr_icd " + stub::profile().text("extensions"), size, to, size_ret);
    case CL_DEVICE_TYPE: return answer<cl_device_type>(device_type(), size, to, size_ret);
    case CL_DEVICE_MAX_COMPUTE_UNITS: return answer(number<cl_uint>("units"), size, to, size_ret);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE: return answer(number<std::size_t>("group"), size, to, size_ret);
    case CL_DEVICE_GLOBAL_MEM_SIZE: return answer(number<cl_ulong>("global_bytes"), size, to, size_ret);
    case CL_DEVICE_GLOBAL_MEM_CACHE_SIZE: return answer(number<cl_ulong>("cache_bytes"), size, to, size_ret);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE: return answer(number<cl_ulong>("alloc_bytes"), size, to, size_ret);
    case CL_DEVICE_LOCAL_MEM_SIZE: return answer(number<cl_ulong>("local_bytes"), size, to, size_ret);
    case CL_DEVICE_LOCAL_MEM_TYPE: return answer<cl_device_local_mem_type>(fact("local_memory") == "local" ? CL_LOCAL : CL_GLOBAL, size, to, size_ret);
    case CL_DEVICE_ADDRESS_BITS: return answer<cl_uint>(64, size, to, size_ret);
    case CL_DEVICE_SINGLE_FP_CONFIG: return answer(single_rounding(), size, to, size_ret);
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT: return answer(number<cl_uint>("width_f32"), size, to, size_ret);
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE: return answer(number<cl_uint>("width_f64"), size, to, size_ret);
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF: return answer(number<cl_uint>("width_f16"), size, to, size_ret);
    case 0x4000: return version_part("compute_capability", 0, size, to, size_ret);  // CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV
    case 0x4001: return version_part("compute_capability", 1, size, to, size_ret);  // CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV
    case 0x4250: return ip_version(size, to, size_ret);                             // CL_DEVICE_IP_VERSION_INTEL
    case CL_DEVICE_MAX_PARAMETER_SIZE: return answer(number<std::size_t>("argument_bytes"), size, to, size_ret);
    case 0x4108:  // CL_DEVICE_SUB_GROUP_SIZES_INTEL
      if (number<std::size_t>("least_sub_group") != 0) return answer(number<std::size_t>("least_sub_group"), size, to, size_ret);
      return CL_INVALID_VALUE;
    default: return CL_INVALID_VALUE;
  }
}

}  // namespace stub
