// SPDX-License-Identifier: Apache-2.0
#include "runtime/cl_api.hpp"

#include "support/system.hpp"

#include <fmt/format.h>

namespace clutch { inline namespace v0 { namespace detail {

std::string_view cl_error_name(std::int32_t code) noexcept {
  switch (code) {
#define CLUTCH_NAME(x) \
  case x: return #x;
    CLUTCH_NAME(CL_SUCCESS)
    CLUTCH_NAME(CL_DEVICE_NOT_FOUND)
    CLUTCH_NAME(CL_DEVICE_NOT_AVAILABLE)
    CLUTCH_NAME(CL_COMPILER_NOT_AVAILABLE)
    CLUTCH_NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE)
    CLUTCH_NAME(CL_OUT_OF_RESOURCES)
    CLUTCH_NAME(CL_OUT_OF_HOST_MEMORY)
    CLUTCH_NAME(CL_PROFILING_INFO_NOT_AVAILABLE)
    CLUTCH_NAME(CL_MEM_COPY_OVERLAP)
    CLUTCH_NAME(CL_BUILD_PROGRAM_FAILURE)
    CLUTCH_NAME(CL_MAP_FAILURE)
    CLUTCH_NAME(CL_MISALIGNED_SUB_BUFFER_OFFSET)
    CLUTCH_NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    CLUTCH_NAME(CL_COMPILE_PROGRAM_FAILURE)
    CLUTCH_NAME(CL_LINKER_NOT_AVAILABLE)
    CLUTCH_NAME(CL_LINK_PROGRAM_FAILURE)
    CLUTCH_NAME(CL_KERNEL_ARG_INFO_NOT_AVAILABLE)
    CLUTCH_NAME(CL_INVALID_VALUE)
    CLUTCH_NAME(CL_INVALID_DEVICE_TYPE)
    CLUTCH_NAME(CL_INVALID_PLATFORM)
    CLUTCH_NAME(CL_INVALID_DEVICE)
    CLUTCH_NAME(CL_INVALID_CONTEXT)
    CLUTCH_NAME(CL_INVALID_QUEUE_PROPERTIES)
    CLUTCH_NAME(CL_INVALID_COMMAND_QUEUE)
    CLUTCH_NAME(CL_INVALID_HOST_PTR)
    CLUTCH_NAME(CL_INVALID_MEM_OBJECT)
    CLUTCH_NAME(CL_INVALID_BINARY)
    CLUTCH_NAME(CL_INVALID_BUILD_OPTIONS)
    CLUTCH_NAME(CL_INVALID_PROGRAM)
    CLUTCH_NAME(CL_INVALID_PROGRAM_EXECUTABLE)
    CLUTCH_NAME(CL_INVALID_KERNEL_NAME)
    CLUTCH_NAME(CL_INVALID_KERNEL_DEFINITION)
    CLUTCH_NAME(CL_INVALID_KERNEL)
    CLUTCH_NAME(CL_INVALID_ARG_INDEX)
    CLUTCH_NAME(CL_INVALID_ARG_VALUE)
    CLUTCH_NAME(CL_INVALID_ARG_SIZE)
    CLUTCH_NAME(CL_INVALID_KERNEL_ARGS)
    CLUTCH_NAME(CL_INVALID_WORK_DIMENSION)
    CLUTCH_NAME(CL_INVALID_WORK_GROUP_SIZE)
    CLUTCH_NAME(CL_INVALID_WORK_ITEM_SIZE)
    CLUTCH_NAME(CL_INVALID_GLOBAL_OFFSET)
    CLUTCH_NAME(CL_INVALID_EVENT_WAIT_LIST)
    CLUTCH_NAME(CL_INVALID_EVENT)
    CLUTCH_NAME(CL_INVALID_OPERATION)
    CLUTCH_NAME(CL_INVALID_BUFFER_SIZE)
    CLUTCH_NAME(CL_INVALID_GLOBAL_WORK_SIZE)
    CLUTCH_NAME(CL_INVALID_PROPERTY)
    CLUTCH_NAME(CL_INVALID_COMPILER_OPTIONS)
    CLUTCH_NAME(CL_INVALID_DEVICE_PARTITION_COUNT)
    CLUTCH_NAME(CL_PLATFORM_NOT_FOUND_KHR)
#undef CLUTCH_NAME
    case -9999: return "CL_DEVICE_FAULT_NV";
    default: return "an unnamed OpenCL status";
  }
}

std::atomic<bool> g_forked{false};

void throw_forked(std::string_view op) {
  throw Error(
      ErrorCode::not_supported, op,
      "a fork must come before the first use of clutch, since a driver's threads do not survive it, got a process that was forked after its parent's first "
      "use: fork before, or exec() in the child");
}

void watch_forks() noexcept {
  static const bool watched = [] {
    after_fork_in_child([] { g_forked.store(true, std::memory_order_relaxed); });
    return true;
  }();
  (void)watched;
}

bool is_out_of_memory(cl_int status) noexcept {
  return status == CL_MEM_OBJECT_ALLOCATION_FAILURE || status == CL_OUT_OF_RESOURCES || status == CL_OUT_OF_HOST_MEMORY;
}

bool is_device_lost(cl_int status) noexcept { return status == CL_DEVICE_NOT_AVAILABLE || status == -9999; }

bool is_done(cl_event event) noexcept {
  cl_int status = CL_QUEUED;
  return clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr) == CL_SUCCESS && status <= CL_COMPLETE;
}

ClEvent retained(cl_event event) noexcept { return event && clRetainEvent(event) == CL_SUCCESS ? ClEvent(event) : ClEvent(); }

void throw_cl(cl_int status, std::string_view op, std::string_view call) {
  ErrorCode code = is_device_lost(status) ? ErrorCode::device_lost : is_out_of_memory(status) ? ErrorCode::out_of_memory : ErrorCode::opencl;
  throw Error(code, op, fmt::format("{} failed with {} ({})", call, cl_error_name(status), status), status);
}

namespace {
template <class Query, class Object, class What>
std::string query_text(Query query, Object object, What what) {
  std::size_t size = 0;
  if (query(object, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
  std::string text(size, '\0');
  if (query(object, what, size, text.data(), nullptr) != CL_SUCCESS) return {};
  while (!text.empty() && (text.back() == '\0' || text.back() == ' ')) text.pop_back();
  return text.substr(text.find_first_not_of(' ') == std::string::npos ? text.size() : text.find_first_not_of(' '));
}
}  // namespace

std::string platform_text(cl_platform_id platform, cl_platform_info what) { return query_text(clGetPlatformInfo, platform, what); }

std::string device_text(cl_device_id device, cl_device_info what) { return query_text(clGetDeviceInfo, device, what); }

}}}  // namespace clutch::v0::detail
