// SPDX-License-Identifier: Apache-2.0
#pragma once
// OpenCL's C API with RAII and named errors. Only host/runtime, host/program and host/encode include this.
#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <clutch/error.hpp>

#include <atomic>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// "CL_OUT_OF_RESOURCES" for -5; "CL_ERROR_<n>" for codes without a name.
std::string_view cl_error_name(std::int32_t code) noexcept;

/// Throws the Error that a failing status means: out_of_memory, device_lost or opencl.
[[noreturn]] void throw_cl(cl_int status, std::string_view op, std::string_view call);

inline void check_cl(cl_int status, std::string_view op, std::string_view call) {
  if (status != CL_SUCCESS) [[unlikely]]
    throw_cl(status, op, call);
}

/// True in the child of a fork() whose parent had looked for devices. A driver's threads are not in the child, and its locks may be held there for ever.
extern std::atomic<bool> g_forked;
inline bool forked() noexcept { return g_forked.load(std::memory_order_relaxed); }
[[noreturn]] void throw_forked(std::string_view op);
/// Errors: not_supported in such a child.
inline void check_process(std::string_view op) {
  if (forked()) [[unlikely]]
    throw_forked(op);
}
/// Makes forked() true in the children of later forks.
void watch_forks() noexcept;

bool is_out_of_memory(cl_int status) noexcept;
bool is_device_lost(cl_int status) noexcept;

template <class T, cl_int(CL_API_CALL* kRelease)(T)>
class ClHandle {
 public:
  ClHandle() = default;
  explicit ClHandle(T raw) noexcept : raw_(raw) {}
  ClHandle(ClHandle&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  ClHandle& operator=(ClHandle&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~ClHandle() {
    if (raw_ && !forked()) kRelease(raw_);
  }
  T get() const noexcept { return raw_; }
  T release() noexcept { return std::exchange(raw_, nullptr); }
  explicit operator bool() const noexcept { return raw_ != nullptr; }

 private:
  T raw_ = nullptr;
};

using ClContext = ClHandle<cl_context, clReleaseContext>;
using ClQueue = ClHandle<cl_command_queue, clReleaseCommandQueue>;
using ClMem = ClHandle<cl_mem, clReleaseMemObject>;
using ClProgram = ClHandle<cl_program, clReleaseProgram>;
using ClKernel = ClHandle<cl_kernel, clReleaseKernel>;
using ClEvent = ClHandle<cl_event, clReleaseEvent>;

/// Another handle of the event; null if the driver refuses, and for none.
ClEvent retained(cl_event event) noexcept;
/// True when the event's command has ended, well or not. A query that fails proves nothing: memory in use must not be handed out.
bool is_done(cl_event event) noexcept;

/// Text property of a platform or device; empty if the query fails.
std::string platform_text(cl_platform_id platform, cl_platform_info what);
std::string device_text(cl_device_id device, cl_device_info what);

/// Number property of a device; `fallback` if the query fails.
template <class T>
T device_value(cl_device_id device, cl_device_info what, T fallback = T{}) {
  T value{};
  return clGetDeviceInfo(device, what, sizeof(T), &value, nullptr) == CL_SUCCESS ? value : fallback;
}

}}}  // namespace clutch::v0::detail
