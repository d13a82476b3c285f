// SPDX-License-Identifier: Apache-2.0
// The objects behind OpenCL's handles: what they hold, and how they are counted.
#pragma once
#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#ifndef CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#endif
#include <CL/cl.h>
#include <CL/cl_icd.h>

#include <clutch/plugin.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail { namespace driver {

/// The one table that all objects begin with.
const cl_icd_dispatch& dispatch() noexcept;

/// What every object begins with: the loader's table, then the count of references.
struct Object {
  const cl_icd_dispatch* table = &dispatch();
  std::atomic<cl_uint> references{1};
};

template <class T>
void retain(T* object) noexcept {
  object->references.fetch_add(1, std::memory_order_relaxed);
}
/// Deletes the object with its last reference.
template <class T>
void release(T* object) noexcept {
  if (object->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete object;
}

/// A reference that is held.
template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) noexcept : object_(object) {
    if (object) retain(object);
  }
  Ref(const Ref& other) noexcept : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_) release(object_);
  }
  T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

using Backend = clutch_device_backend_t;

/// The status of OpenCL that says what a backend's code says.
cl_int status_of(clutch_status_t code) noexcept;

/// Answers a query of a value's or text's bytes as OpenCL's functions do.
cl_int answer_bytes(const void* from, std::size_t bytes, std::size_t size, void* to, std::size_t* size_ret) noexcept;
template <class T>
cl_int answer(const T& value, std::size_t size, void* to, std::size_t* size_ret) noexcept {
  return answer_bytes(&value, sizeof value, size, to, size_ret);
}
inline cl_int answer(const std::string& text, std::size_t size, void* to, std::size_t* size_ret) noexcept {
  return answer_bytes(text.c_str(), text.size() + 1, size, to, size_ret);
}

/// Sets the status that a function returns by a pointer, and gives `made`.
template <class T>
T* given(T* made, cl_int status, cl_int* status_ret) noexcept {
  if (status_ret) *status_ret = status;
  return made;
}

}}}}  // namespace clutch::v0::detail::driver

// The names of OpenCL's header, which are global ones.
struct _cl_platform_id : clutch::detail::driver::Object {
  clutch::detail::driver::Backend backend{};
  std::vector<cl_device_id> devices;
};
struct _cl_device_id : clutch::detail::driver::Object {
  cl_platform_id platform = nullptr;
  std::int64_t number = 0;
  clutch_device_facts_t facts{};
  const clutch::detail::driver::Backend& backend() const noexcept { return platform->backend; }
};
struct _cl_context : clutch::detail::driver::Object {
  cl_device_id device = nullptr;
};
struct _cl_mem : clutch::detail::driver::Object {
  _cl_mem() = default;
  _cl_mem(const _cl_mem&) = delete;
  _cl_mem& operator=(const _cl_mem&) = delete;
  ~_cl_mem();
  clutch::detail::driver::Ref<_cl_context> context;
  cl_mem_flags flags = 0;
  std::size_t bytes = 0;
  void* host = nullptr;    ///< the caller's memory, of CL_MEM_USE_HOST_PTR
  void* memory = nullptr;  ///< the backend's
  std::mutex mutex;
  std::vector<std::pair<void(CL_CALLBACK*)(cl_mem, void*), void*>> when_destroyed;
  std::atomic<cl_uint> mapped{0};
};
struct _cl_program : clutch::detail::driver::Object {
  _cl_program() = default;
  _cl_program(const _cl_program&) = delete;
  _cl_program& operator=(const _cl_program&) = delete;
  ~_cl_program();
  clutch::detail::driver::Ref<_cl_context> context;
  std::mutex mutex;
  std::string text, binary;  ///< what it is made of: one of them
  std::string options, log;
  cl_build_status built = CL_BUILD_NONE;
  void* program = nullptr;  ///< the backend's, once it is built
};
struct _cl_kernel : clutch::detail::driver::Object {
  _cl_kernel() = default;
  _cl_kernel(const _cl_kernel&) = delete;
  _cl_kernel& operator=(const _cl_kernel&) = delete;
  ~_cl_kernel();
  struct Argument {
    std::string value;
    clutch::detail::driver::Ref<_cl_mem> memory;
    std::size_t local_bytes = 0;
    bool is_set = false;
  };
  clutch::detail::driver::Ref<_cl_program> program;
  std::string name;
  clutch_device_kernel_facts_t facts{};
  void* kernel = nullptr;
  std::vector<Argument> arguments;  ///< OpenCL lets one thread at a time set them
};
struct _cl_event : clutch::detail::driver::Object {
  clutch::detail::driver::Ref<_cl_context> context;
  cl_command_queue queue = nullptr;  ///< for comparison alone; null for a user event
  cl_command_type type = CL_COMMAND_USER;
  std::mutex mutex;
  std::condition_variable changed;
  cl_int status = CL_QUEUED;
  cl_ulong queued = 0, submitted = 0, started = 0, ended = 0;
  std::vector<std::pair<void(CL_CALLBACK*)(cl_event, cl_int, void*), void*>> when_complete;
};
struct _cl_command_queue : clutch::detail::driver::Object {
  _cl_command_queue() = default;
  _cl_command_queue(const _cl_command_queue&) = delete;
  _cl_command_queue& operator=(const _cl_command_queue&) = delete;
  ~_cl_command_queue();
  struct Command {
    std::function<cl_int(void* queue)> work;  ///< on the backend's queue; empty for a marker
    clutch::detail::driver::Ref<_cl_event> event;
    std::vector<clutch::detail::driver::Ref<_cl_event>> waits;
  };
  /// What the thread of commands and the handle share: the thread may outlive the handle.
  struct Line {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Command> commands;
    bool busy = false, stop = false;
  };
  clutch::detail::driver::Ref<_cl_context> context;
  cl_command_queue_properties properties = 0;
  void* queue = nullptr;
  std::shared_ptr<Line> line = std::make_shared<Line>();
  std::thread worker;
};
