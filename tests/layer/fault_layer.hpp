// SPDX-License-Identifier: Apache-2.0
#pragma once
// An OpenCL layer (OPENCL_LAYERS=libclutch_fault_layer.so) that makes a driver fail on demand, counts live objects, and can
// pass a device off as a lesser one. A program in which it is loaded finds its controls by clutch::fault::loaded().
//
// What never fails: releases, set-up of the layer itself. What waits (clFinish, clWaitForEvents) does wait before it
// reports a failure, so that no memory is freed under a running kernel. A failing call does nothing else.
#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#include <CL/cl.h>

#include <dlfcn.h>

#include <cstdint>

namespace clutch::fault {

/// What a fake device lacks; the text of its kernels is built without it, too.
enum Lacks : std::uint32_t {
  kNoFp64 = 1u << 0,           ///< `double` does not compile
  kNoFp16 = 1u << 1,           ///< half arithmetic; loads and stores of half are core
  kNoFmaClaim = 1u << 2,       ///< neither FMA nor correctly rounded divide and sqrt is claimed
  kSmallLocal = 1u << 3,       ///< 16 KiB of local memory
  kSmallGroups = 1u << 4,      ///< work-groups of 64
  kOneUnit = 1u << 5,          ///< one compute unit
  kNoCommandBuffer = 1u << 6,  ///< no cl_khr_command_buffer
  kSmallAlloc = 1u << 7,       ///< buffers of 64 MiB at most
  kAllLacks = (1u << 8) - 1,
  kFewKernelItems = 1u << 11,  ///< kernels take 64 items in a group, the device says that it takes more
  kShufflesArgs = 1u << 10,    ///< gives kernels structs by value with their 32-bit words in another order
  kGpu = 1u << 8,              ///< says that it is a GPU, so that work-groups have many items
  kEndsLoops = 1u << 9,        ///< ends a work-item's loops after kLoopIterations in all, and has no vectors; of CPU drivers alone. Waits before each kernel
};

/// Iterations that all loops of a work-item may make together on a device that ends them.
inline constexpr std::int32_t kLoopIterations = 65535;

enum Object : int { kContexts, kQueues, kBuffers, kPrograms, kKernels, kEvents, kCommandBuffers, kObjectKinds };

struct Controls {
  /// Forgets faults, delays and failed events; calls count from 0. The fake device stays.
  void (*reset)();
  /// Fails the k-th call from now (k = 1, 2, ...) of this name, null: of any, with `code`.
  void (*fail_call)(const char* name, std::uint64_t k, cl_int code);
  /// Ends the k-th event made from now with `code`, a negative status.
  void (*fail_event)(std::uint64_t k, cl_int code);
  /// From the k-th call on every call fails with `code` and every event ends with it.
  void (*lose_device)(std::uint64_t k, cl_int code);
  void (*delay)(const char* name, std::uint32_t microseconds);
  void (*fake_device)(std::uint32_t lacks);
  /// Name of the call or event that failed first since reset(), null if none did.
  const char* (*failed)();
  /// Calls since reset(), of a name or (null) of any that can fail.
  std::uint64_t (*calls)(const char* name);
  /// References that the program holds.
  std::int64_t (*live)(Object kind);
};

/// The loaded layer's controls; null if it is not loaded. The loader must have been used before.
inline const Controls* loaded() {
  cl_uint count = 0;
  clGetPlatformIDs(0, nullptr, &count);  // loads the layers
  void* library = dlopen("libclutch_fault_layer.so", RTLD_NOW | RTLD_NOLOAD);
  if (!library) return nullptr;
  auto get = reinterpret_cast<const Controls* (*)()>(dlsym(library, "clutch_fault_controls"));
  return get ? get() : nullptr;
}

}  // namespace clutch::fault
