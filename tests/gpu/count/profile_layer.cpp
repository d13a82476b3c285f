// SPDX-License-Identifier: Apache-2.0
// A layer (OPENCL_LAYERS) that gives a simulator's device the facts of STUB_PROFILE, so that the library chooses and launches as on that GPU and kernels still
// run. It answers as the stub driver does: what a profile does not say the driver does not know.
#include "stub/answers.hpp"

#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>

namespace {

cl_icd_dispatch g_next{}, g_layer{};

cl_int CL_API_CALL platform_info(cl_platform_id platform, cl_platform_info what, std::size_t size, void* to, std::size_t* size_ret) {
  if (what == CL_PLATFORM_NAME || what == CL_PLATFORM_VENDOR || what == CL_PLATFORM_VERSION) return stub::platform_fact(what, size, to, size_ret);
  return g_next.clGetPlatformInfo(platform, what, size, to, size_ret);
}
cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, std::size_t size, void* to, std::size_t* size_ret) {
  if (what == CL_DEVICE_PLATFORM) return g_next.clGetDeviceInfo(device, what, size, to, size_ret);
  return stub::device_fact(what, size, to, size_ret);
}
/// A simulator's device is of every type; the profile's is of one.
cl_int CL_API_CALL device_ids(cl_platform_id platform, cl_device_type type, cl_uint n, cl_device_id* to, cl_uint* count) {
  if (!(type & (stub::device_type() | CL_DEVICE_TYPE_DEFAULT))) return CL_DEVICE_NOT_FOUND;
  return g_next.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, n, to, count);
}
cl_int CL_API_CALL group_info(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what, std::size_t size, void* to, std::size_t* size_ret) {
  if (what == CL_KERNEL_WORK_GROUP_SIZE) return stub::answer(stub::number<std::size_t>("group"), size, to, size_ret);
  return g_next.clGetKernelWorkGroupInfo(kernel, device, what, size, to, size_ret);
}

/// Options of vendors' own compilers, as -cl-nv-maxrregcount=120, are unknown to the simulator's.
std::string without_vendors_options(const char* options) {
  std::istringstream words(options ? options : "");
  std::string kept;
  for (std::string word; words >> word;)
    if (!word.starts_with("-cl-nv-") && !word.starts_with("-cl-intel-")) kept += word + " ";
  return kept;
}
cl_int CL_API_CALL build_program(cl_program program, cl_uint n, const cl_device_id* devices, const char* options, void(CL_CALLBACK* notify)(cl_program, void*),
                                 void* data) {
  return g_next.clBuildProgram(program, n, devices, without_vendors_options(options).c_str(), notify, data);
}

/// Oclgrind has no integers of 128 bits, to which -O2 joins a pair of values now and then; -O1 does not. Programs whose kernel it refuses are built again so.
cl_kernel CL_API_CALL create_kernel(cl_program program, const char* name, cl_int* errcode) {
  cl_kernel made = g_next.clCreateKernel(program, name, errcode);
  const char* given = std::getenv("OCLGRIND_BUILD_OPTIONS");
  const std::string options = given ? given : "";
  const auto at = options.find("-O2");
  if (made || at == std::string::npos) return made;
  cl_device_id device = nullptr;
  std::string built(4096, '\0');
  g_next.clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof device, &device, nullptr);
  if (g_next.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_OPTIONS, built.size(), built.data(), nullptr) != CL_SUCCESS) return nullptr;
  setenv("OCLGRIND_BUILD_OPTIONS", std::string(options).replace(at, 3, "-O1").c_str(), 1);
  if (g_next.clBuildProgram(program, 1, &device, built.c_str(), nullptr, nullptr) == CL_SUCCESS) made = g_next.clCreateKernel(program, name, errcode);
  setenv("OCLGRIND_BUILD_OPTIONS", options.c_str(), 1);
  return made;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t size, void* value, size_t* size_ret) {
  if (what != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
  return stub::answer<cl_layer_api_version>(CL_LAYER_API_VERSION_100, size, value, size_ret);
}

__attribute__((visibility("default"))) cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch* target, cl_uint* entries_ret,
                                                                      const cl_icd_dispatch** layer) {
  if (!target || !entries_ret || !layer) return CL_INVALID_VALUE;
  const std::size_t known = sizeof(cl_icd_dispatch) / sizeof(void*), given = std::min<std::size_t>(entries, known);
  std::memcpy(static_cast<void*>(&g_next), target, given * sizeof(void*));
  std::memcpy(static_cast<void*>(&g_layer), target, given * sizeof(void*));
  g_layer.clGetPlatformInfo = platform_info;
  g_layer.clGetDeviceInfo = device_info;
  g_layer.clGetDeviceIDs = device_ids;
  g_layer.clGetKernelWorkGroupInfo = group_info;
  g_layer.clBuildProgram = build_program;
  g_layer.clCreateKernel = create_kernel;
  *layer = &g_layer;
  *entries_ret = static_cast<cl_uint>(given);
  return CL_SUCCESS;
}
}
