// SPDX-License-Identifier: Apache-2.0
// A small OpenCL driver in plain C++ that ThreadSanitizer sees through: queues with a thread each, host memory as device
// memory, and of the kernels those that fill and copy bytes; others do nothing. It tests host code, never kernels.
// Chosen by OCL_ICD_VENDORS=libclutch_stub_driver.so. It can say that it is a GPU (profile.hpp) and write what it is given (plans.hpp).
#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_icd.h>

#include "answers.hpp"
#include "plans.hpp"
#include "profile.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

extern cl_icd_dispatch g_dispatch;

/// Every object begins with the loader's dispatch table, then counts its references.
struct Base {
  cl_icd_dispatch* dispatch = &g_dispatch;
  std::atomic<cl_uint> references{1};
};
}  // namespace

struct _cl_platform_id : Base {};
struct _cl_device_id : Base {
  int number = 0;
  cl_uint units = 0;  ///< of one with sub-devices, and of those
  cl_device_id parent = nullptr;
};
struct _cl_context : Base {
  std::vector<cl_device_id> devices;
};
namespace {
/// Buffers that live, where plans are written: an argument's bytes are memory if they are one of them.
class LiveBuffers {
 public:
  static LiveBuffers& instance() {
    static auto* one = new LiveBuffers;
    return *one;
  }
  void note(cl_mem mem, bool lives) {
    if (!stub::Plans::instance().wanted()) return;
    std::lock_guard lock(mutex_);
    if (lives)
      all_.insert(mem);
    else
      all_.erase(mem);
  }
  bool has(cl_mem mem) {
    std::lock_guard lock(mutex_);
    return all_.contains(mem);
  }

 private:
  std::mutex mutex_;
  std::set<cl_mem> all_;
};
}  // namespace
struct _cl_mem : Base {
  _cl_mem() { LiveBuffers::instance().note(this, true); }
  ~_cl_mem() {
    LiveBuffers::instance().note(this, false);
    for (auto at = when_destroyed.rbegin(); at != when_destroyed.rend(); ++at) at->first(this, at->second);
  }
  cl_context context = nullptr;
  std::vector<std::uint8_t> owned;
  std::span<std::uint8_t> bytes;  ///< the owned ones, or a caller's
  std::vector<std::pair<void(CL_CALLBACK*)(cl_mem, void*), void*>> when_destroyed;
};
struct _cl_program : Base {
  cl_context context = nullptr;
  std::string source;
  std::string digest;  ///< where plans are written
  /// True of what a GPU's compiler made, which is no text to preprocess.
  bool is_compiled() const {
    return source.find(".entry ") != std::string::npos || source.rfind(
                                                              "\x7f"
                                                              "ELF",
                                                              0) == 0;
  }
};
struct _cl_kernel : Base {
  cl_program program = nullptr;
  std::string name;
  cl_uint parameters = 0;
  std::vector<std::string> types;  ///< of the parameters, where plans are written
  std::vector<std::vector<std::uint8_t>> arguments;
  std::vector<std::string> said;  ///< of each argument: m for memory, v and the bytes of a value, l and those of local memory; empty: not set
};
struct _cl_event : Base {
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  std::mutex mutex;
  std::condition_variable changed;
  cl_int status = CL_QUEUED;
  cl_ulong begin = 0, end = 0;
};
struct _cl_command_queue : Base {
  cl_context context = nullptr;
  cl_device_id device = nullptr;
  std::mutex mutex;
  std::condition_variable changed;
  struct Command {
    std::function<void()> work;
    cl_event event;
    std::vector<cl_event> waits;
  };
  std::deque<Command> commands;
  bool busy = false, stop = false;
  std::thread worker;
};

namespace {

template <class T>
T* retain(T* object) {
  object->references.fetch_add(1, std::memory_order_relaxed);
  return object;
}
template <class T>
cl_int CL_API_CALL retain_object(T* object) {
  retain(object);
  return CL_SUCCESS;
}
/// True for the last reference.
bool drop(Base* object) { return object->references.fetch_sub(1, std::memory_order_acq_rel) == 1; }

void give(cl_int* errcode, cl_int value) {
  if (errcode) *errcode = value;
}

cl_ulong now() { return static_cast<cl_ulong>(std::chrono::steady_clock::now().time_since_epoch().count()); }

_cl_platform_id& platform() {
  static auto* one = new _cl_platform_id;
  return *one;
}
std::vector<cl_device_id>& devices() {
  static auto* all = [] {
    auto* list = new std::vector<cl_device_id>;
    for (int i = 0; i < (stub::profile().is_gpu ? 1 : 2); ++i) {
      list->push_back(new _cl_device_id);
      list->back()->number = i;
      if (const char* units = std::getenv("STUB_SUB_DEVICES")) list->back()->units = static_cast<cl_uint>(std::atoi(units));
    }
    return list;
  }();
  return *all;
}

// ---- platform, device, context ----
using stub::answer;
using stub::number;
cl_int CL_API_CALL get_platform_ids(cl_uint n, cl_platform_id* to, cl_uint* count) {
  if (count) *count = 1;
  if (to && n > 0) to[0] = &platform();
  return CL_SUCCESS;
}
cl_int CL_API_CALL get_platform_info(cl_platform_id, cl_platform_info what, std::size_t size, void* to, std::size_t* size_ret) {
  if (what == CL_PLATFORM_PROFILE) return answer(std::string_view("FULL_PROFILE"), size, to, size_ret);
  if (what == CL_PLATFORM_EXTENSIONS) return answer(std::string_view("cl_khr_icd"), size, to, size_ret);
  if (what == CL_PLATFORM_ICD_SUFFIX_KHR) return answer(std::string_view("STUB"), size, to, size_ret);
  return stub::platform_fact(what, size, to, size_ret);
}
cl_int CL_API_CALL get_device_ids(cl_platform_id, cl_device_type type, cl_uint n, cl_device_id* to, cl_uint* count) {
  if (!(type & (stub::device_type() | CL_DEVICE_TYPE_DEFAULT))) return CL_DEVICE_NOT_FOUND;
  if (count) *count = static_cast<cl_uint>(devices().size());
  for (cl_uint i = 0; to && i < n && i < devices().size(); ++i) to[i] = devices()[i];
  return CL_SUCCESS;
}
cl_int CL_API_CALL get_device_info(cl_device_id device, cl_device_info what, std::size_t size, void* to, std::size_t* size_ret) {
  if (what == CL_DEVICE_NAME && !stub::profile().is_gpu) return answer(std::string_view(device->number == 0 ? "stub zero" : "stub one"), size, to, size_ret);
  if (what == CL_DEVICE_PLATFORM) return answer<cl_platform_id>(&platform(), size, to, size_ret);
  if (device->units > 0 && what == CL_DEVICE_MAX_COMPUTE_UNITS) return answer(device->units, size, to, size_ret);
  if (device->units > 0 && what == CL_DEVICE_PARTITION_PROPERTIES)
    return answer<cl_device_partition_property>(CL_DEVICE_PARTITION_BY_COUNTS, size, to, size_ret);
  if (what == CL_DEVICE_PARENT_DEVICE) return answer(device->parent, size, to, size_ret);
  return stub::device_fact(what, size, to, size_ret);
}
/// By counts alone, with STUB_SUB_DEVICES in the environment: the number of units of each device.
cl_int CL_API_CALL create_sub_devices(cl_device_id device, const cl_device_partition_property* wanted, cl_uint n, cl_device_id* to, cl_uint* count) {
  if (device->units == 0 || wanted[0] != CL_DEVICE_PARTITION_BY_COUNTS) return CL_INVALID_VALUE;
  cl_uint parts = 0, sum = 0;
  for (; wanted[parts + 1] != CL_DEVICE_PARTITION_BY_COUNTS_LIST_END; ++parts) sum += static_cast<cl_uint>(wanted[parts + 1]);
  if (sum > device->units) return CL_INVALID_DEVICE_PARTITION_COUNT;
  if (count) *count = parts;
  if (to && n < parts) return CL_INVALID_VALUE;
  for (cl_uint i = 0; to && i < parts; ++i) {
    to[i] = new _cl_device_id;
    to[i]->number = device->number, to[i]->parent = device;
    to[i]->units = static_cast<cl_uint>(wanted[i + 1]);
  }
  return CL_SUCCESS;
}
/// Sub-devices live as long as the process.
cl_int CL_API_CALL keep_device(cl_device_id) { return CL_SUCCESS; }

cl_context CL_API_CALL create_context(const cl_context_properties*, cl_uint count, const cl_device_id* device,
                                      void(CL_CALLBACK*)(const char*, const void*, std::size_t, void*), void*, cl_int* errcode) {
  auto* made = new _cl_context;
  made->devices.assign(device, device + count);
  give(errcode, CL_SUCCESS);
  return made;
}
cl_int CL_API_CALL release_context(cl_context context) {
  if (drop(context)) delete context;
  return CL_SUCCESS;
}
/// For what holds a context and nothing else.
template <class T>
cl_int CL_API_CALL release_owned(T* object) {
  if (!drop(object)) return CL_SUCCESS;
  release_context(object->context);
  delete object;
  return CL_SUCCESS;
}
cl_int CL_API_CALL get_context_info(cl_context context, cl_context_info what, std::size_t size, void* to, std::size_t* size_ret) {
  const std::size_t bytes = context->devices.size() * sizeof context->devices[0];
  if (what == CL_CONTEXT_NUM_DEVICES) return answer(static_cast<cl_uint>(context->devices.size()), size, to, size_ret);
  if (what == CL_CONTEXT_DEVICES) {
    if (size_ret) *size_ret = bytes;
    if (to && size < bytes) return CL_INVALID_VALUE;
    if (to) std::memcpy(to, context->devices.data(), bytes);
    return CL_SUCCESS;
  }
  return CL_INVALID_VALUE;
}

// ---- events and queues ----
constexpr auto release_event = release_owned<_cl_event>;

void set_status(cl_event event, cl_int status) {
  std::lock_guard lock(event->mutex);
  event->status = status;
  if (status <= CL_COMPLETE) event->end = now();
  event->changed.notify_all();
}
cl_int wait(cl_event event) {
  std::unique_lock lock(event->mutex);
  event->changed.wait(lock, [&] { return event->status <= CL_COMPLETE; });
  return event->status;
}

void serve(cl_command_queue queue) {
  for (;;) {
    _cl_command_queue::Command command;
    {
      std::unique_lock lock(queue->mutex);
      queue->busy = false;
      queue->changed.notify_all();
      queue->changed.wait(lock, [&] { return queue->stop || !queue->commands.empty(); });
      if (queue->commands.empty()) return;
      command = std::move(queue->commands.front());
      queue->commands.pop_front();
      queue->busy = true;
    }
    cl_int failed = CL_COMPLETE;
    for (cl_event e : command.waits) {
      failed = std::min(failed, wait(e));
      release_event(e);
    }
    if (failed == CL_COMPLETE && command.work) command.work();
    set_status(command.event, failed < 0 ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_COMPLETE);
    release_event(command.event);
  }
}

cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device, cl_command_queue_properties, cl_int* errcode) {
  if (std::find(context->devices.begin(), context->devices.end(), device) == context->devices.end()) {
    give(errcode, CL_INVALID_DEVICE);
    return nullptr;
  }
  auto* made = new _cl_command_queue;
  made->context = retain(context);
  made->device = device;
  made->worker = std::thread(serve, made);
  give(errcode, CL_SUCCESS);
  return made;
}
cl_int CL_API_CALL release_queue(cl_command_queue queue) {
  if (!drop(queue)) return CL_SUCCESS;
  {
    std::lock_guard lock(queue->mutex);
    queue->stop = true;
    queue->changed.notify_all();
  }
  queue->worker.join();
  release_context(queue->context);
  delete queue;
  return CL_SUCCESS;
}
cl_int CL_API_CALL get_queue_info(cl_command_queue queue, cl_command_queue_info what, std::size_t size, void* to, std::size_t* size_ret) {
  if (what == CL_QUEUE_CONTEXT) return answer(queue->context, size, to, size_ret);
  if (what == CL_QUEUE_DEVICE) return answer(queue->device, size, to, size_ret);
  if (what == CL_QUEUE_PROPERTIES) return answer<cl_command_queue_properties>(CL_QUEUE_PROFILING_ENABLE, size, to, size_ret);
  return CL_INVALID_VALUE;
}
cl_int CL_API_CALL flush(cl_command_queue) { return CL_SUCCESS; }
cl_int CL_API_CALL finish(cl_command_queue queue) {
  std::unique_lock lock(queue->mutex);
  queue->changed.wait(lock, [&] { return queue->commands.empty() && !queue->busy; });
  return CL_SUCCESS;
}

cl_int enqueue(cl_command_queue queue, std::function<void()> work, cl_uint waits, const cl_event* wait_list, cl_event* event, bool blocking = false) {
  auto* made = new _cl_event;
  made->context = retain(queue->context);
  made->queue = queue;
  made->begin = now();
  if (event) *event = retain(made);
  std::vector<cl_event> wanted;
  for (cl_uint i = 0; i < waits; ++i) wanted.push_back(retain(wait_list[i]));
  if (blocking) retain(made);
  {
    std::lock_guard lock(queue->mutex);
    queue->commands.push_back({std::move(work), made, std::move(wanted)});
    queue->busy = true;
    queue->changed.notify_all();
  }
  if (blocking) {
    wait(made);
    release_event(made);
  }
  return CL_SUCCESS;
}

cl_int CL_API_CALL wait_for_events(cl_uint n, const cl_event* events) {
  cl_int worst = CL_COMPLETE;
  for (cl_uint i = 0; i < n; ++i) worst = std::min(worst, wait(events[i]));
  return worst < 0 ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS;
}
cl_int CL_API_CALL get_event_info(cl_event event, cl_event_info what, std::size_t size, void* to, std::size_t* size_ret) {
  std::lock_guard lock(event->mutex);
  if (what == CL_EVENT_COMMAND_EXECUTION_STATUS) return answer(event->status, size, to, size_ret);
  if (what == CL_EVENT_CONTEXT) return answer(event->context, size, to, size_ret);
  return CL_INVALID_VALUE;
}
cl_int CL_API_CALL get_event_profiling_info(cl_event event, cl_profiling_info what, std::size_t size, void* to, std::size_t* size_ret) {
  std::lock_guard lock(event->mutex);
  return answer(what == CL_PROFILING_COMMAND_END ? event->end : event->begin, size, to, size_ret);
}
cl_event CL_API_CALL create_user_event(cl_context context, cl_int* errcode) {
  auto* made = new _cl_event;
  made->context = retain(context);
  give(errcode, CL_SUCCESS);
  return made;
}
cl_int CL_API_CALL set_user_event_status(cl_event event, cl_int status) { return set_status(event, status), CL_SUCCESS; }

// ---- memory ----
cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, std::size_t size, void* host, cl_int* errcode) {
  auto* made = new _cl_mem;
  made->context = retain(context);
  if (!(flags & CL_MEM_USE_HOST_PTR)) made->owned.resize(size);
  made->bytes = flags & CL_MEM_USE_HOST_PTR ? std::span(static_cast<std::uint8_t*>(host), size) : std::span(made->owned);
  give(errcode, CL_SUCCESS);
  return made;
}
constexpr auto release_mem = release_owned<_cl_mem>;
cl_int CL_API_CALL set_destructor_callback(cl_mem mem, void(CL_CALLBACK* call)(cl_mem, void*), void* with) {
  mem->when_destroyed.emplace_back(call, with);
  return CL_SUCCESS;
}
/// Keeps a buffer alive inside a command.
std::shared_ptr<_cl_mem> held(cl_mem mem) { return {retain(mem), release_mem}; }

cl_int CL_API_CALL enqueue_write(cl_command_queue queue, cl_mem mem, cl_bool blocking, std::size_t offset, std::size_t size, const void* from, cl_uint waits,
                                 const cl_event* wait_list, cl_event* event) {
  return enqueue(
      queue, [m = held(mem), offset, size, from] { std::memcpy(m->bytes.data() + offset, from, size); }, waits, wait_list, event, blocking);
}
cl_int CL_API_CALL enqueue_read(cl_command_queue queue, cl_mem mem, cl_bool blocking, std::size_t offset, std::size_t size, void* to, cl_uint waits,
                                const cl_event* wait_list, cl_event* event) {
  return enqueue(
      queue, [m = held(mem), offset, size, to] { std::memcpy(to, m->bytes.data() + offset, size); }, waits, wait_list, event, blocking);
}
cl_int CL_API_CALL enqueue_copy(cl_command_queue queue, cl_mem from, cl_mem to, std::size_t from_offset, std::size_t to_offset, std::size_t size, cl_uint waits,
                                const cl_event* wait_list, cl_event* event) {
  return enqueue(
      queue, [a = held(from), b = held(to), from_offset, to_offset, size] { std::memmove(b->bytes.data() + to_offset, a->bytes.data() + from_offset, size); },
      waits, wait_list, event);
}
cl_int CL_API_CALL enqueue_fill(cl_command_queue queue, cl_mem mem, const void* pattern, std::size_t pattern_size, std::size_t offset, std::size_t size,
                                cl_uint waits, const cl_event* wait_list, cl_event* event) {
  std::vector<std::uint8_t> kept(static_cast<const std::uint8_t*>(pattern), static_cast<const std::uint8_t*>(pattern) + pattern_size);
  return enqueue(
      queue,
      [m = held(mem), kept, offset, size] {
        for (std::size_t i = 0; i < size; ++i) m->bytes[offset + i] = kept[i % kept.size()];
      },
      waits, wait_list, event);
}
void* CL_API_CALL enqueue_map(cl_command_queue queue, cl_mem mem, cl_bool blocking, cl_map_flags, std::size_t offset, std::size_t, cl_uint waits,
                              const cl_event* wait_list, cl_event* event, cl_int* errcode) {
  give(errcode, enqueue(queue, {}, waits, wait_list, event, blocking));
  return mem->bytes.data() + offset;
}
cl_int CL_API_CALL enqueue_unmap(cl_command_queue queue, cl_mem, void*, cl_uint waits, const cl_event* wait_list, cl_event* event) {
  return enqueue(queue, {}, waits, wait_list, event);
}
cl_int CL_API_CALL enqueue_marker(cl_command_queue queue, cl_uint waits, const cl_event* wait_list, cl_event* event) {
  return enqueue(queue, {}, waits, wait_list, event);
}

// ---- programs and kernels ----
cl_program CL_API_CALL create_program(cl_context context, cl_uint n, const char** texts, const std::size_t* sizes, cl_int* errcode) {
  auto* made = new _cl_program;
  made->context = retain(context);
  for (cl_uint i = 0; i < n; ++i) made->source.append(texts[i], sizes && sizes[i] ? sizes[i] : std::strlen(texts[i]));
  give(errcode, CL_SUCCESS);
  return made;
}
cl_program CL_API_CALL create_from_binary(cl_context context, cl_uint, const cl_device_id*, const std::size_t* sizes, const unsigned char** binaries,
                                          cl_int* status, cl_int* errcode) {
  const char* text = reinterpret_cast<const char*>(binaries[0]);
  give(status, CL_SUCCESS);
  return create_program(context, 1, &text, sizes, errcode);
}
constexpr auto release_program = release_owned<_cl_program>;
cl_int CL_API_CALL build_program(cl_program program, cl_uint, const cl_device_id*, const char* options, void(CL_CALLBACK*)(cl_program, void*), void*) {
  if (stub::Plans::instance().wanted() && !program->is_compiled()) program->digest = stub::Plans::instance().program(options ? options : "", program->source);
  return CL_SUCCESS;
}
cl_int CL_API_CALL get_build_info(cl_program, cl_device_id, cl_program_build_info what, std::size_t size, void* to, std::size_t* size_ret) {
  return what == CL_PROGRAM_BUILD_LOG ? answer(std::string_view(), size, to, size_ret) : CL_INVALID_VALUE;
}
cl_int CL_API_CALL get_program_info(cl_program program, cl_program_info what, std::size_t size, void* to, std::size_t* size_ret) {
  const std::vector<cl_device_id>& devices = program->context->devices;
  if (what == CL_PROGRAM_NUM_DEVICES || what == CL_PROGRAM_DEVICES)
    return get_context_info(program->context, what == CL_PROGRAM_DEVICES ? CL_CONTEXT_DEVICES : CL_CONTEXT_NUM_DEVICES, size, to, size_ret);
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (what == CL_PROGRAM_BINARY_SIZES)
      static_cast<std::size_t*>(to)[i] = program->source.size();
    else if (what == CL_PROGRAM_BINARIES)
      std::memcpy(static_cast<unsigned char**>(to)[i], program->source.data(), program->source.size());
    else
      return CL_INVALID_VALUE;
  return CL_SUCCESS;
}

/// Parameters of a kernel in what GPUs' compilers made: PTX, or AMD's code objects, whose metadata names the kind of each.
cl_uint count_compiled(const std::string& binary, const std::string& name) {
  cl_uint count = 0;
  if (const auto at = binary.find(".entry " + name + "("); at != std::string::npos) {
    const auto end = binary.find("\n)", at);
    for (auto from = at; (from = binary.find(".param ", from)) < end; ++from) ++count;
    return count;
  }
  constexpr std::string_view kKind = ".value_kind", kHidden = "hidden_";
  for (std::size_t at = 0; (at = binary.find(kKind, at)) != std::string::npos;) {
    at += kKind.size();
    const std::size_t text = static_cast<unsigned char>(binary[at]) == 0xd9 ? at + 2 : at + 1;  // behind its length, of MessagePack
    count += binary.compare(text, kHidden.size(), kHidden) != 0;
  }
  return count;
}

/// Parameters of a kernel, read from its text.
cl_uint count_parameters(const std::string& source, const std::string& name) {
  if (source.find(".entry ") != std::string::npos || source.compare(0, 4,
                                                                    "\x7f"
                                                                    "ELF") == 0)
    return count_compiled(source, name);
  // The wrapper of a kernel text from outside is there twice, first the one that has a predicate.
  constexpr std::string_view kPredicated = "#ifdef CLUTCH_PREDICATED\n#line";
  auto from = source.find("#define CLUTCH_PREDICATED 1") == std::string::npos ? source.find(kPredicated) : std::string::npos;
  if (from != std::string::npos) from = source.find("#else", from);
  auto at = source.find("__kernel void " + name + "(", from == std::string::npos ? 0 : from);
  if (at == std::string::npos) return 0;
  auto begin = source.find('(', at), end = source.find(')', begin);
  std::string list = source.substr(begin, end - begin);
  auto count = static_cast<cl_uint>(1 + std::count(list.begin(), list.end(), ','));
  if (list.find("CLUTCH_SHAPE_PARAMS") == std::string::npos) return count;
  auto operands = source.find("#define CLUTCH_OPERANDS ");
  return count + static_cast<cl_uint>(std::strtoul(source.c_str() + operands + 24, nullptr, 10));
}
cl_kernel CL_API_CALL create_kernel(cl_program program, const char* name, cl_int* errcode) {
  auto* made = new _cl_kernel;
  made->program = retain(program);
  made->name = name;
  if (program->is_compiled())
    made->parameters = count_compiled(program->source, name);
  else if (stub::Plans::instance().wanted() && stub::Plans::instance().parameters(program->digest, name, made->types))
    made->parameters = static_cast<cl_uint>(made->types.size());
  else
    made->parameters = count_parameters(program->source, name);
  made->arguments.resize(made->parameters);
  made->said.resize(made->parameters);
  give(errcode, CL_SUCCESS);
  return made;
}
cl_int CL_API_CALL release_kernel(cl_kernel kernel) {
  if (!drop(kernel)) return CL_SUCCESS;
  release_program(kernel->program);
  delete kernel;
  return CL_SUCCESS;
}
/// What an argument is, in the words of plans.
std::string say_argument(std::size_t size, const void* value) {
  if (!value) return "l" + std::to_string(size);
  cl_mem mem = nullptr;
  if (size == sizeof mem) {
    std::memcpy(&mem, value, sizeof mem);
    if (LiveBuffers::instance().has(mem)) return "m";
  }
  return "v" + std::to_string(size);
}
/// Whether a parameter's type takes it, as drivers see to.
cl_int check_argument(const std::string& type, const std::string& said) {
  const bool points = type.find('*') != std::string::npos, local = type.find("__local") != std::string::npos;
  if (points) return said[0] == (local ? 'l' : 'm') ? CL_SUCCESS : CL_INVALID_ARG_VALUE;
  if (said[0] != 'v') return CL_INVALID_ARG_VALUE;
  const std::size_t bytes = stub::bytes_of(type);
  return bytes == 0 || said == "v" + std::to_string(bytes) ? CL_SUCCESS : CL_INVALID_ARG_SIZE;
}
cl_int CL_API_CALL set_kernel_arg(cl_kernel kernel, cl_uint index, std::size_t size, const void* value) {
  if (index >= kernel->parameters) return CL_INVALID_ARG_INDEX;
  if (stub::Plans::instance().wanted()) {
    kernel->said[index] = say_argument(size, value);
    // Drivers take no buffer for a pointer: that of a node whose temporary has no place yet.
    constexpr cl_mem kNone = nullptr;
    if (!kernel->types.empty() && kernel->types[index].find('*') != std::string::npos && size == sizeof kNone && value &&
        std::memcmp(value, &kNone, sizeof kNone) == 0)
      kernel->said[index] = "m";
    if (!kernel->types.empty())
      if (const cl_int wrong = check_argument(kernel->types[index], kernel->said[index]); wrong != CL_SUCCESS) return wrong;
  }
  auto* bytes = static_cast<const std::uint8_t*>(value);
  kernel->arguments[index].assign(bytes, bytes ? bytes + size : bytes);  // without a lock: one kernel object in two threads is a race
  return CL_SUCCESS;
}
cl_int CL_API_CALL get_kernel_info(cl_kernel kernel, cl_kernel_info what, std::size_t size, void* to, std::size_t* size_ret) {
  return what == CL_KERNEL_NUM_ARGS ? answer(kernel->parameters, size, to, size_ret) : CL_INVALID_VALUE;
}
cl_int CL_API_CALL get_kernel_group_info(cl_kernel, cl_device_id, cl_kernel_work_group_info what, std::size_t size, void* to, std::size_t* size_ret) {
  if (what == CL_KERNEL_WORK_GROUP_SIZE) return answer(number<std::size_t>("group"), size, to, size_ret);
  if (what == CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE) return answer(number<std::size_t>("group_multiple"), size, to, size_ret);
  if (what == CL_KERNEL_LOCAL_MEM_SIZE) return answer<cl_ulong>(0, size, to, size_ret);
  return CL_INVALID_VALUE;
}

template <class T>
T argument(const _cl_kernel& kernel, std::size_t i) {
  T value{};
  std::memcpy(&value, kernel.arguments[i].data(), sizeof(T));
  return value;
}
/// Writes a launch, or says what of it a driver refuses.
cl_int plan_launch(const _cl_kernel& kernel, cl_uint dimensions, const std::size_t* global, const std::size_t* local) {
  std::string globals, locals, arguments;
  std::size_t items = 1;
  for (cl_uint d = 0; d < dimensions; ++d) {
    if (global[d] == 0) return CL_INVALID_GLOBAL_WORK_SIZE;
    if (local && (local[d] == 0 || global[d] % local[d] != 0)) return CL_INVALID_WORK_GROUP_SIZE;
    items *= local ? local[d] : 1;
    globals += (d ? "x" : "") + std::to_string(global[d]);
    locals += (d ? "x" : "") + std::to_string(local ? local[d] : 0);
  }
  if (items > stub::profile().number("group")) return CL_INVALID_WORK_GROUP_SIZE;
  std::size_t local_bytes = 0, argument_bytes = 0;
  for (const std::string& said : kernel.said) {
    if (said.empty()) return CL_INVALID_KERNEL_ARGS;
    const std::size_t bytes = said == "m" ? sizeof(cl_mem) : std::strtoull(said.c_str() + 1, nullptr, 10);
    (said[0] == 'l' ? local_bytes : argument_bytes) += bytes;
    arguments += (arguments.empty() ? "" : ",") + said;
  }
  if (local_bytes > stub::profile().number("local_bytes")) return CL_OUT_OF_RESOURCES;
  if (argument_bytes > stub::profile().number("argument_bytes")) return CL_OUT_OF_RESOURCES;
  if (!kernel.program->is_compiled()) stub::Plans::instance().launch(kernel.program->digest, kernel.name, locals, globals, arguments);
  return CL_SUCCESS;
}
cl_int CL_API_CALL enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const std::size_t*, const std::size_t* global,
                                  const std::size_t* local, cl_uint waits, const cl_event* wait_list, cl_event* event) {
  if (stub::Plans::instance().wanted())
    if (const cl_int wrong = plan_launch(*kernel, dimensions, global, local); wrong != CL_SUCCESS) return wrong;
  std::function<void()> work;
  // With a predicate kernels have two arguments more in front.
  const std::size_t plain = kernel->name == "fill_contiguous" ? 5 : 6, first = kernel->arguments.size() > plain ? 2 : 0;
  if (kernel->name == "fill_contiguous") {
    auto pattern = argument<std::array<std::uint8_t, 16>>(*kernel, first + 3);
    work = [m = held(argument<cl_mem>(*kernel, first)), offset = argument<cl_ulong>(*kernel, first + 1), bytes = argument<cl_ulong>(*kernel, first + 2),
            pattern] {
      for (std::size_t i = 0; i < bytes; ++i) m->bytes[offset + i] = pattern[i % 16];
    };
  } else if (kernel->name == "copy_bytes") {
    work = [to = held(argument<cl_mem>(*kernel, first)), to_offset = argument<cl_ulong>(*kernel, first + 1), from = held(argument<cl_mem>(*kernel, first + 2)),
            from_offset = argument<cl_ulong>(*kernel, first + 3),
            bytes = argument<cl_ulong>(*kernel, first + 4)] { std::memmove(to->bytes.data() + to_offset, from->bytes.data() + from_offset, bytes); };
  }
  if (work && first > 0)
    work = [work = std::move(work), predicate = held(argument<cl_mem>(*kernel, 0)), offset = argument<cl_ulong>(*kernel, 1)] {
      std::uint32_t taken = 0;
      std::memcpy(&taken, predicate->bytes.data() + offset, sizeof taken);
      if (taken != 0) work();
    };
  return enqueue(queue, std::move(work), waits, wait_list, event);
}

void* CL_API_CALL extension_address(const char* name);
void* CL_API_CALL extension_address_for(cl_platform_id, const char* name) { return extension_address(name); }

cl_icd_dispatch make_dispatch() {
  cl_icd_dispatch d{};
  d.clGetPlatformIDs = get_platform_ids;
  d.clGetPlatformInfo = get_platform_info;
  d.clGetDeviceIDs = get_device_ids;
  d.clGetDeviceInfo = get_device_info;
  d.clCreateSubDevices = create_sub_devices;
  d.clRetainDevice = keep_device;
  d.clReleaseDevice = keep_device;
  d.clCreateContext = create_context;
  d.clRetainContext = retain_object<_cl_context>;
  d.clReleaseContext = release_context;
  d.clGetContextInfo = get_context_info;
  d.clCreateCommandQueue = create_queue;
  d.clRetainCommandQueue = retain_object<_cl_command_queue>;
  d.clReleaseCommandQueue = release_queue;
  d.clGetCommandQueueInfo = get_queue_info;
  d.clFlush = flush;
  d.clFinish = finish;
  d.clRetainEvent = retain_object<_cl_event>;
  d.clReleaseEvent = release_event;
  d.clWaitForEvents = wait_for_events;
  d.clGetEventInfo = get_event_info;
  d.clGetEventProfilingInfo = get_event_profiling_info;
  d.clCreateUserEvent = create_user_event;
  d.clSetUserEventStatus = set_user_event_status;
  d.clCreateBuffer = create_buffer;
  d.clRetainMemObject = retain_object<_cl_mem>;
  d.clReleaseMemObject = release_mem;
  d.clSetMemObjectDestructorCallback = set_destructor_callback;
  d.clEnqueueWriteBuffer = enqueue_write;
  d.clEnqueueReadBuffer = enqueue_read;
  d.clEnqueueCopyBuffer = enqueue_copy;
  d.clEnqueueFillBuffer = enqueue_fill;
  d.clEnqueueMapBuffer = enqueue_map;
  d.clEnqueueUnmapMemObject = enqueue_unmap;
  d.clEnqueueMarkerWithWaitList = enqueue_marker;
  d.clEnqueueBarrierWithWaitList = enqueue_marker;
  d.clCreateProgramWithSource = create_program;
  d.clCreateProgramWithBinary = create_from_binary;
  d.clRetainProgram = retain_object<_cl_program>;
  d.clReleaseProgram = release_program;
  d.clBuildProgram = build_program;
  d.clGetProgramBuildInfo = get_build_info;
  d.clGetProgramInfo = get_program_info;
  d.clCreateKernel = create_kernel;
  d.clRetainKernel = retain_object<_cl_kernel>;
  d.clReleaseKernel = release_kernel;
  d.clSetKernelArg = set_kernel_arg;
  d.clGetKernelInfo = get_kernel_info;
  d.clGetKernelWorkGroupInfo = get_kernel_group_info;
  d.clEnqueueNDRangeKernel = enqueue_kernel;
  d.clGetExtensionFunctionAddress = extension_address;
  d.clGetExtensionFunctionAddressForPlatform = extension_address_for;
  return d;
}
cl_icd_dispatch g_dispatch = make_dispatch();

void* CL_API_CALL extension_address(const char* name) {
  if (std::strcmp(name, "clIcdGetPlatformIDsKHR") == 0) return reinterpret_cast<void*>(&get_platform_ids);
  return nullptr;
}

}  // namespace

extern "C" {
// What loaders look up by name.
__attribute__((visibility("default"))) void* CL_API_CALL clGetExtensionFunctionAddress(const char* name) { return extension_address(name); }
__attribute__((visibility("default"))) cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint n, cl_platform_id* to, cl_uint* count) {
  return get_platform_ids(n, to, count);
}
__attribute__((visibility("default"))) cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id p, cl_platform_info what, std::size_t size, void* to,
                                                                            std::size_t* size_ret) {
  return get_platform_info(p, what, size, to, size_ret);
}
}
