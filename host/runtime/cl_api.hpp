// SPDX-License-Identifier: Apache-2.0
#pragma once
// OpenCL's C API with RAII handles and named errors. Only runtime/, graph/, program/ and encode/ call OpenCL.
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

/// Name of an OpenCL status, such as "CL_OUT_OF_RESOURCES" for -5; "an unnamed OpenCL status" for codes without a name.
std::string_view cl_error_name(std::int32_t code) noexcept;

/// Throws the Error for a failing status. Its code is out_of_memory, device_lost or opencl.
[[noreturn]] void throw_cl(cl_int status, std::string_view op, std::string_view call);

/// `op` is text of any type, whose length is found only when the call failed.
inline void check_cl(cl_int status, const auto& op, std::string_view call) {
  if (status != CL_SUCCESS) [[unlikely]]
    throw_cl(status, op, call);
}

/// True in the child of a fork() whose parent had enumerated devices. The child has none of the driver's threads, and driver locks may stay locked there.
extern std::atomic<bool> g_forked;
inline bool forked() noexcept { return g_forked.load(std::memory_order_relaxed); }
[[noreturn]] void throw_forked(std::string_view op);
/// Errors: not_supported if forked().
inline void check_process(std::string_view op) {
  if (forked()) [[unlikely]]
    throw_forked(op);
}
/// Makes forked() true in the children of later fork() calls.
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

/// Returns another handle of the event, with a reference of its own. Null if `event` is null or the driver refuses the reference.
ClEvent retained(cl_event event) noexcept;
/// True if the event's command has ended, with or without an error. False if the query fails, so that memory that may be in use is not handed out.
bool is_done(cl_event event) noexcept;

/// Text property of a platform or device; empty if the query fails.
std::string platform_text(cl_platform_id platform, cl_platform_info what);
std::string device_text(cl_device_id device, cl_device_info what);

/// Numeric property of a device; `fallback` if the query fails.
template <class T>
T device_value(cl_device_id device, cl_device_info what, T fallback = T{}) {
  T value{};
  return clGetDeviceInfo(device, what, sizeof(T), &value, nullptr) == CL_SUCCESS ? value : fallback;
}

}}}  // namespace clutch::v0::detail
