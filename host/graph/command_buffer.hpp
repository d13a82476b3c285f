// SPDX-License-Identifier: Apache-2.0
#pragma once
// cl_khr_command_buffer, declared here because headers differ in the extension and its functions changed their parameters at 0.9.5.
// Source: OpenCL Extension Specification, cl_khr_command_buffer 0.9.0 to 1.0.0.
#include "runtime/registry.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// Functions of the extension on one platform. Loaders do not dispatch them, so they are fetched from each platform and used for its devices alone.
class CommandBufferApi {
 public:
  /// Null, with a reason, if the device lacks the extension or has an unknown version of it.
  static const CommandBufferApi* of(const DeviceRecord& device, std::string& why_not);

  using Buffer = struct _clutch_command_buffer*;  // cl_command_buffer_khr
  Buffer create(cl_command_queue queue, bool simultaneous, cl_int* status) const;
  cl_int finalize(Buffer buffer) const { return finalize_(buffer); }
  cl_int release(Buffer buffer) const { return release_(buffer); }
  cl_int enqueue(cl_command_queue queue, Buffer buffer, cl_event* event) const { return enqueue_(1, &queue, buffer, 0, nullptr, event); }
  /// If updates() is true, `command` receives the handle by which update() changes the kernel's arguments.
  cl_int kernel(Buffer buffer, cl_kernel kernel, cl_uint dims, const std::size_t* global, const std::size_t* local, void** command) const;
  cl_int copy(Buffer buffer, cl_mem source, cl_mem destination, std::size_t source_offset, std::size_t offset, std::size_t bytes) const;
  cl_int fill(Buffer buffer, cl_mem mem, std::uint8_t pattern, std::size_t offset, std::size_t bytes) const;

  /// An argument in the form of clSetKernelArg.
  struct NewArgument {
    cl_uint index;
    std::size_t size;
    const void* value;
  };
  struct Update {
    void* command;
    std::vector<NewArgument> arguments;
  };
  /// Changes arguments of a command buffer that is not running, by cl_khr_command_buffer_mutable_dispatch.
  cl_int update(Buffer buffer, const std::vector<Update>& updates) const;
  bool updates() const noexcept { return update_ != nullptr; }

  /// True if a command buffer may be enqueued again before its last replay is over.
  bool overlaps() const noexcept { return overlaps_; }

 private:
  using Queue = cl_command_queue;
  using Properties = const void*;
  using Sync = const cl_uint*;
  using Create = Buffer(CL_API_CALL*)(cl_uint, const Queue*, const cl_properties*, cl_int*);
  using Finalize = cl_int(CL_API_CALL*)(Buffer);
  using Enqueue = cl_int(CL_API_CALL*)(cl_uint, Queue*, Buffer, cl_uint, const cl_event*, cl_event*);
  using NDRange = cl_int(CL_API_CALL*)(Buffer, Queue, Properties, cl_kernel, cl_uint, const std::size_t*, const std::size_t*, const std::size_t*, cl_uint, Sync,
                                       cl_uint*, void*);
  using UpdateCommands = cl_int(CL_API_CALL*)(Buffer, cl_uint, const cl_uint*, const void**);
  using Copy094 = cl_int(CL_API_CALL*)(Buffer, Queue, cl_mem, cl_mem, std::size_t, std::size_t, std::size_t, cl_uint, Sync, cl_uint*, void*);
  using Copy095 = cl_int(CL_API_CALL*)(Buffer, Queue, Properties, cl_mem, cl_mem, std::size_t, std::size_t, std::size_t, cl_uint, Sync, cl_uint*, void*);
  using Fill094 = cl_int(CL_API_CALL*)(Buffer, Queue, cl_mem, const void*, std::size_t, std::size_t, std::size_t, cl_uint, Sync, cl_uint*, void*);
  using Fill095 = cl_int(CL_API_CALL*)(Buffer, Queue, Properties, cl_mem, const void*, std::size_t, std::size_t, std::size_t, cl_uint, Sync, cl_uint*, void*);

  bool properties_ = false;  ///< true from version 0.9.5 on, whose functions have one more parameter
  bool overlaps_ = false, flag_ = false;
  Create create_ = nullptr;
  Finalize finalize_ = nullptr, release_ = nullptr;
  Enqueue enqueue_ = nullptr;
  NDRange kernel_ = nullptr;
  UpdateCommands update_ = nullptr;
  void* copy_ = nullptr;
  void* fill_ = nullptr;
};

}}}  // namespace clutch::v0::detail
