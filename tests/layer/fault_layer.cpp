// SPDX-License-Identifier: Apache-2.0
#include "layer/fault_layer.hpp"

#include <CL/cl_ext.h>
#include <CL/cl_layer.h>

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <regex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <vector>

// The calls that the layer sees. Images, pipes, samplers, GL and D3D are not used by the library.
// clang-format off
#define CLUTCH_FAULT_CALLS(X) \
  X(clGetPlatformIDs) \
  X(clGetPlatformInfo) \
  X(clGetDeviceIDs) \
  X(clGetDeviceInfo) \
  X(clCreateSubDevices) \
  X(clRetainDevice) \
  X(clReleaseDevice) \
  X(clCreateContext) \
  X(clRetainContext) \
  X(clReleaseContext) \
  X(clGetContextInfo) \
  X(clCreateCommandQueue) \
  X(clCreateCommandQueueWithProperties) \
  X(clRetainCommandQueue) \
  X(clReleaseCommandQueue) \
  X(clGetCommandQueueInfo) \
  X(clCreateBuffer) \
  X(clCreateSubBuffer) \
  X(clRetainMemObject) \
  X(clReleaseMemObject) \
  X(clGetMemObjectInfo) \
  X(clSetMemObjectDestructorCallback) \
  X(clSVMAlloc) \
  X(clCreateProgramWithSource) \
  X(clCreateProgramWithBinary) \
  X(clCreateProgramWithIL) \
  X(clBuildProgram) \
  X(clCompileProgram) \
  X(clLinkProgram) \
  X(clRetainProgram) \
  X(clReleaseProgram) \
  X(clGetProgramInfo) \
  X(clGetProgramBuildInfo) \
  X(clCreateKernel) \
  X(clCloneKernel) \
  X(clRetainKernel) \
  X(clReleaseKernel) \
  X(clSetKernelArg) \
  X(clSetKernelArgSVMPointer) \
  X(clSetKernelExecInfo) \
  X(clGetKernelInfo) \
  X(clGetKernelArgInfo) \
  X(clGetKernelWorkGroupInfo) \
  X(clWaitForEvents) \
  X(clGetEventInfo) \
  X(clCreateUserEvent) \
  X(clRetainEvent) \
  X(clReleaseEvent) \
  X(clSetUserEventStatus) \
  X(clSetEventCallback) \
  X(clGetEventProfilingInfo) \
  X(clFlush) \
  X(clFinish) \
  X(clEnqueueReadBuffer) \
  X(clEnqueueReadBufferRect) \
  X(clEnqueueWriteBuffer) \
  X(clEnqueueWriteBufferRect) \
  X(clEnqueueCopyBuffer) \
  X(clEnqueueCopyBufferRect) \
  X(clEnqueueFillBuffer) \
  X(clEnqueueMapBuffer) \
  X(clEnqueueUnmapMemObject) \
  X(clEnqueueMigrateMemObjects) \
  X(clEnqueueNDRangeKernel) \
  X(clEnqueueMarkerWithWaitList) \
  X(clEnqueueBarrierWithWaitList) \
  X(clEnqueueSVMMemcpy) \
  X(clEnqueueSVMMemFill) \
  X(clEnqueueSVMMap) \
  X(clEnqueueSVMUnmap) \
  X(clGetExtensionFunctionAddressForPlatform)
// clang-format on

namespace clutch::fault { namespace {

enum Call : int {
#define CLUTCH_ROW(name) k_##name,
  CLUTCH_FAULT_CALLS(CLUTCH_ROW)
#undef CLUTCH_ROW
      kCallCount
};
constexpr std::array<std::string_view, kCallCount> kNames{
#define CLUTCH_ROW(name) #name,
    CLUTCH_FAULT_CALLS(CLUTCH_ROW)
#undef CLUTCH_ROW
};

constexpr std::size_t kSmallLocalBytes = 16 << 10, kSmallGroup = 64;
constexpr cl_ulong kSmallAllocBytes = 64ull << 20;
constexpr std::size_t kCounters = 1 << 20;  // of iterations: one for each work-item of a launch

struct State {
  std::mutex mutex;
  std::string name;  // of the call to fail; empty: any
  std::uint64_t fail_at = 0, fail_event_at = 0, lost_at = 0;
  cl_int code = 0, event_code = 0, lost_code = 0;
  std::string failed;
  std::uint64_t any_calls = 0, events = 0;
  std::map<std::string, std::uint64_t, std::less<>> calls;
  std::map<cl_event, cl_int> failed_events;
  std::string delayed;
  std::uint32_t delay_us = 0;
  std::atomic<std::uint32_t> lacks{0};
  std::array<std::atomic<std::int64_t>, kObjectKinds> live{};
};
State& state() {
  static auto* one = new State;
  return *one;
}
bool lacks(Lacks what) { return (state().lacks.load(std::memory_order_relaxed) & what) != 0; }

bool never_fails(std::string_view name) {
  return name.find("Release") != std::string_view::npos || name == "clGetExtensionFunctionAddressForPlatform" || name == "clSetUserEventStatus";
}

/// The status this call is to end with instead of being made.
cl_int fault_of(std::string_view name) {
  State& s = state();
  std::uint32_t wait_us = 0;
  cl_int result = CL_SUCCESS;
  {
    std::lock_guard lock(s.mutex);
    std::uint64_t of_name = 0;
    if (auto found = s.calls.find(name); found != s.calls.end())
      of_name = ++found->second;
    else
      s.calls.emplace(name, of_name = 1);
    if (s.delay_us > 0 && (s.delayed.empty() || s.delayed == name)) wait_us = s.delay_us;
    if (!never_fails(name)) {
      ++s.any_calls;
      if (s.lost_at > 0 && s.any_calls >= s.lost_at) result = s.lost_code;
      if (s.fail_at > 0 && (s.name.empty() ? s.any_calls == s.fail_at : s.name == name && of_name == s.fail_at)) result = s.code;
      if (result != CL_SUCCESS && s.failed.empty()) s.failed = name;
    }
  }
  if (wait_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(wait_us));
  return result;
}

void count(Object kind, std::int64_t n) { state().live[static_cast<std::size_t>(kind)].fetch_add(n, std::memory_order_relaxed); }

void event_made(cl_event event) {
  count(kEvents, 1);
  State& s = state();
  std::lock_guard lock(s.mutex);
  ++s.events;
  bool lost = s.lost_at > 0 && s.any_calls >= s.lost_at;
  if (lost || (s.fail_event_at > 0 && s.events == s.fail_event_at)) {
    s.failed_events[event] = lost ? s.lost_code : s.event_code;
    if (s.failed.empty()) s.failed = "an event";
  }
}
cl_int event_code(cl_event event) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  auto found = s.failed_events.find(event);
  return found == s.failed_events.end() ? CL_COMPLETE : found->second;
}

template <class T>
constexpr int object_kind() {
  if constexpr (std::is_same_v<T, cl_context>) return kContexts;
  if constexpr (std::is_same_v<T, cl_command_queue>) return kQueues;
  if constexpr (std::is_same_v<T, cl_mem>) return kBuffers;
  if constexpr (std::is_same_v<T, cl_program>) return kPrograms;
  if constexpr (std::is_same_v<T, cl_kernel>) return kKernels;
  if constexpr (std::is_same_v<T, cl_event>) return kEvents;
  return -1;
}

cl_icd_dispatch g_next{};

/// The event that the call's last cl_event* parameter received, if any.
template <class... A>
cl_event* event_slot(A... a) {
  cl_event* slot = nullptr;
  auto look = [&]<class T>(T given) {
    if constexpr (std::is_same_v<T, cl_event*>) slot = given;
  };
  (look(a), ...);
  return slot;
}

// ---- what is special about single calls ----
std::string without(std::string text, std::string_view word) {
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
    auto end = text.find(' ', at);
    text.erase(at, end == std::string::npos ? std::string::npos : end - at + 1);
  }
  return text;
}
std::string lesser_extensions(std::string text) {
  if (lacks(kNoFp64)) text = without(text, "cl_khr_fp64");
  if (lacks(kNoFp16)) text = without(text, "cl_khr_fp16");
  if (lacks(kNoCommandBuffer)) text = without(text, "cl_khr_command_buffer");
  return text;
}

template <class T>
void lower(void* value, std::size_t size, T most, std::size_t index = 0) {
  if (!value || size < (index + 1) * sizeof(T)) return;
  T now;
  std::memcpy(&now, static_cast<char*>(value) + index * sizeof(T), sizeof(T));
  if (now > most) std::memcpy(static_cast<char*>(value) + index * sizeof(T), &most, sizeof(T));
}

cl_int device_info(cl_device_id device, cl_device_info what, std::size_t size, void* value, std::size_t* size_ret) {
  auto next = g_next.clGetDeviceInfo;
  if (what == CL_DEVICE_EXTENSIONS && state().lacks != 0) {
    std::size_t real = 0;
    if (cl_int status = next(device, what, 0, nullptr, &real); status != CL_SUCCESS) return status;
    std::string text(real, '\0');
    if (cl_int status = next(device, what, real, text.data(), nullptr); status != CL_SUCCESS) return status;
    text = lesser_extensions(text.c_str());
    if (size_ret) *size_ret = text.size() + 1;
    if (value && size < text.size() + 1) return CL_INVALID_VALUE;
    if (value) std::memcpy(value, text.c_str(), text.size() + 1);
    return CL_SUCCESS;
  }
  cl_int status = next(device, what, size, value, size_ret);
  if (status != CL_SUCCESS || state().lacks == 0) return status;
  if (lacks(kNoFp64) && (what == CL_DEVICE_DOUBLE_FP_CONFIG)) lower<cl_device_fp_config>(value, size, 0);
  if (lacks(kNoFp64) && (what == CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE || what == CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE)) lower<cl_uint>(value, size, 0);
  if (lacks(kNoFp16) && (what == CL_DEVICE_HALF_FP_CONFIG)) lower<cl_device_fp_config>(value, size, 0);
  if (lacks(kNoFp16) && (what == CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF || what == CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF)) lower<cl_uint>(value, size, 0);
  if (lacks(kNoFmaClaim) && what == CL_DEVICE_SINGLE_FP_CONFIG && value && size >= sizeof(cl_device_fp_config)) {
    auto* config = static_cast<cl_device_fp_config*>(value);
    *config &= ~static_cast<cl_device_fp_config>(CL_FP_FMA | CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT);
  }
  if (lacks(kSmallLocal) && what == CL_DEVICE_LOCAL_MEM_SIZE) lower<cl_ulong>(value, size, kSmallLocalBytes);
  if (lacks(kSmallGroups) && what == CL_DEVICE_MAX_WORK_GROUP_SIZE) lower<std::size_t>(value, size, kSmallGroup);
  if (lacks(kSmallGroups) && what == CL_DEVICE_MAX_WORK_ITEM_SIZES)
    for (std::size_t i = 0; i < 3; ++i) lower<std::size_t>(value, size, kSmallGroup, i);
  if (lacks(kEndsLoops) && what == CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT) lower<cl_uint>(value, size, 1);
  if (lacks(kGpu) && what == CL_DEVICE_TYPE && value && size >= sizeof(cl_device_type)) *static_cast<cl_device_type*>(value) = CL_DEVICE_TYPE_GPU;
  if (lacks(kOneUnit) && what == CL_DEVICE_MAX_COMPUTE_UNITS) lower<cl_uint>(value, size, 1);
  if (lacks(kSmallAlloc) && what == CL_DEVICE_MAX_MEM_ALLOC_SIZE) lower<cl_ulong>(value, size, kSmallAllocBytes);
#ifdef CL_DEVICE_EXTENSIONS_WITH_VERSION
  if (what == CL_DEVICE_EXTENSIONS_WITH_VERSION && value) {
    auto* rows = static_cast<cl_name_version*>(value);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < size / sizeof(cl_name_version); ++i)
      if (!lesser_extensions(rows[i].name).empty()) rows[kept++] = rows[i];
    std::memset(rows + kept, 0, (size / sizeof(cl_name_version) - kept) * sizeof(cl_name_version));
  }
#endif
  return CL_SUCCESS;
}

/// Iterations that are left to each work-item. Kernels of a CPU's driver run in this process and find them by their address, which is the same in each
/// process, so that drivers which keep programs find them again.
std::span<std::int32_t> iterations_left() {
  static void* const memory = mmap(reinterpret_cast<void*>(0x3C0000000000), kCounters * sizeof(std::int32_t), PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return {static_cast<std::int32_t*>(memory), kCounters};
}
/// Names in a piece of kernel text that are no loop variable of `constants` and no macro (written in capitals).
bool has_variables(std::string_view text, const std::set<std::string, std::less<>>& constants) {
  static const std::regex name("[A-Za-z_][A-Za-z_0-9]*");
  using Each = std::regex_iterator<std::string_view::const_iterator>;
  for (Each at(text.begin(), text.end(), name), end; at != end; ++at) {
    const std::string found = at->str();
    const bool macro = std::none_of(found.begin(), found.end(), [](char c) { return c >= 'a' && c <= 'z'; });
    const bool member = at->suffix().length() > 0 && (*at->suffix().first == '.' || *at->suffix().first == '-');
    if (!macro && (member || !constants.contains(found))) return true;
  }
  return false;
}

/// The text with each loop's condition counted, except that of loops between constants, which compilers unroll.
std::string with_counted_loops(std::string_view text) {
  static const std::regex head("\\b(for|while) *\\("), assigned("([A-Za-z_][A-Za-z_0-9]*) *=[^=]"), between("(\\s|\\\\|\\{|_Pragma\\([^)]*\\)|#pragma[^\n]*)*");
  std::string made;
  std::set<std::string, std::less<>> constants;  // variables of the constant loops around this one, which begin right before it
  using Each = std::regex_iterator<std::string_view::const_iterator>;
  std::size_t done = 0;
  for (Each found(text.begin(), text.end(), head), end; found != end; ++found) {
    const auto open = static_cast<std::size_t>(found->position() + found->length());
    std::vector<std::size_t> parts{open};  // where init, condition and step begin, and the end
    int depth = 1;
    std::size_t at = open;
    for (; at < text.size() && depth > 0; ++at) {
      depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
      if (depth == 1 && text[at] == ';') parts.push_back(at + 1);
    }
    if (open < done) continue;
    const bool is_for = (*found)[1] == "for";
    if (depth > 0 || parts.size() != (is_for ? 3u : 1u)) continue;  // words of a comment
    const std::size_t begin = is_for ? parts[1] : open, stop = is_for ? parts[2] - 1 : at - 1;
    const std::string_view condition = text.substr(begin, stop - begin);
    if (is_for) {
      const auto from = static_cast<std::size_t>(found->position());
      if (from < done || !std::regex_match(text.begin() + static_cast<std::ptrdiff_t>(done), text.begin() + static_cast<std::ptrdiff_t>(from), between))
        constants.clear();
      const std::string_view init = text.substr(open, parts[1] - 1 - open);
      std::set<std::string, std::less<>> own = constants;
      for (Each name(init.begin(), init.end(), assigned); name != end; ++name) own.insert((*name)[1].str());
      const auto equals = init.find('=');
      const bool constant = equals != std::string_view::npos && !has_variables(init.substr(equals + 1), own) && !has_variables(condition, own);
      made += text.substr(done, (constant ? at : begin) - done);
      done = at;
      if (constant) {
        constants = own;
        continue;
      }
    } else {
      made += text.substr(done, begin - done);
    }
    constants.clear();
    const bool empty = condition.find_first_not_of(" \t\n\\") == std::string_view::npos;
    made += empty ? "CLUTCH_LEFT-- > 0" : "CLUTCH_LEFT-- > 0 && (" + std::string(condition) + ")";  // the end of a loop counts, too
    made += text.substr(stop, at - stop);
    done = at;
  }
  made += text.substr(done);
  return made;
}

/// The text with CLUTCH_ARGS by value giving the struct's words in another order.
std::string with_shuffled_args(std::string_view text) {
  std::string made(text);
  auto replace = [&](std::string_view from, std::string_view to) {
    const auto at = made.find(from);
    if (at != std::string::npos) made.replace(at, from.size(), to);
  };
  replace("#define CLUTCH_ARGS(Type, name) const Type name\n", "#define CLUTCH_ARGS(Type, name) const Type name##_given\n");
  replace("#define CLUTCH_TAKE_ARGS(Type, name)\n",
          "#define CLUTCH_TAKE_ARGS(Type, name) Type name = name##_given; for (int word_ = 0; word_ < (int)(sizeof(Type) / 4); ++word_) "
          "((__private uint*)&name)[word_] = ((__private const uint*)&name##_given)[sizeof(Type) / 4 - 1 - word_];\n");
  return made;
}

cl_program create_with_source(cl_context context, cl_uint n, const char** texts, const std::size_t* lengths, cl_int* errcode) {
  // One line, so that the line numbers of build logs stay.
  std::string prelude;
  if (lacks(kNoFp64)) prelude += "\n#undef cl_khr_fp64\n#define double this_device_has_no_fp64\n";
  if (lacks(kNoFp16)) prelude += "\n#undef cl_khr_fp16\n";
  if (lacks(kEndsLoops)) {
    prelude += "\n#define CLUTCH_LEFT ((__global int*)" + std::to_string(reinterpret_cast<std::uintptr_t>(iterations_left().data())) +
               "ul)[(get_global_id(0) + get_global_size(0) * get_global_id(1)) % " + std::to_string(kCounters) + "]\n";
  }
  if (prelude.empty() && !lacks(kShufflesArgs)) return g_next.clCreateProgramWithSource(context, n, texts, lengths, errcode);
  prelude += "#line 1\n";
  std::deque<std::string> counted;
  std::vector<const char*> all{prelude.c_str()};
  std::vector<std::size_t> sizes{prelude.size()};
  for (cl_uint i = 0; i < n; ++i) {
    std::string_view text(texts[i], lengths && lengths[i] ? lengths[i] : std::strlen(texts[i]));
    if (lacks(kShufflesArgs)) text = counted.emplace_back(with_shuffled_args(text));
    if (lacks(kEndsLoops)) text = counted.emplace_back(with_counted_loops(text));
    all.push_back(text.data());
    sizes.push_back(text.size());
  }
  return g_next.clCreateProgramWithSource(context, n + 1, all.data(), sizes.data(), errcode);
}

cl_mem create_buffer(cl_context context, cl_mem_flags flags, std::size_t size, void* host, cl_int* errcode) {
  if (lacks(kSmallAlloc) && size > kSmallAllocBytes) {
    if (errcode) *errcode = CL_INVALID_BUFFER_SIZE;
    return nullptr;
  }
  return g_next.clCreateBuffer(context, flags, size, host, errcode);
}

cl_int work_group_info(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what, std::size_t size, void* value, std::size_t* size_ret) {
  cl_int status = g_next.clGetKernelWorkGroupInfo(kernel, device, what, size, value, size_ret);
  if (status == CL_SUCCESS && (lacks(kSmallGroups) || lacks(kFewKernelItems)) && what == CL_KERNEL_WORK_GROUP_SIZE)
    lower<std::size_t>(value, size, kSmallGroup);
  return status;
}

cl_int enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims, const std::size_t* offset, const std::size_t* global, const std::size_t* local,
                      cl_uint waits, const cl_event* wait_list, cl_event* event) {
  if (local && lacks(kSmallGroups)) {
    std::size_t items = 1;
    for (cl_uint i = 0; i < dims; ++i) items *= local[i];
    if (items > kSmallGroup) return CL_INVALID_WORK_GROUP_SIZE;
  }
  if (lacks(kSmallLocal)) {
    cl_ulong bytes = 0;
    cl_device_id device = nullptr;
    g_next.clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, nullptr);
    if (g_next.clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof bytes, &bytes, nullptr) == CL_SUCCESS && bytes > kSmallLocalBytes)
      return CL_OUT_OF_RESOURCES;
  }
  if (lacks(kEndsLoops)) {
    g_next.clFinish(queue);  // what runs still counts
    const std::span<std::int32_t> left = iterations_left();
    std::fill(left.begin(), left.end(), kLoopIterations);
  }
  return g_next.clEnqueueNDRangeKernel(queue, kernel, dims, offset, global, local, waits, wait_list, event);
}

cl_int event_info(cl_event event, cl_event_info what, std::size_t size, void* value, std::size_t* size_ret) {
  cl_int status = g_next.clGetEventInfo(event, what, size, value, size_ret);
  cl_int code = event_code(event);
  if (status == CL_SUCCESS && what == CL_EVENT_COMMAND_EXECUTION_STATUS && code < 0 && value && size >= sizeof code) {
    cl_int now;
    std::memcpy(&now, value, sizeof now);
    if (now == CL_COMPLETE) std::memcpy(value, &code, sizeof code);
  }
  return status;
}

cl_int wait_for_events(cl_uint n, const cl_event* events) {
  cl_int status = g_next.clWaitForEvents(n, events);
  for (cl_uint i = 0; i < n; ++i)
    if (event_code(events[i]) < 0) return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  return status;
}

cl_int release_event(cl_event event) {
  cl_uint references = 0;
  g_next.clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof references, &references, nullptr);
  cl_int status = g_next.clReleaseEvent(event);
  if (references <= 1) {
    std::lock_guard lock(state().mutex);
    state().failed_events.erase(event);
  }
  return status;
}

void* extension_address(cl_platform_id platform, const char* name);

#define CLUTCH_SPECIAL(call, function)       \
  template <>                                \
  struct Special<k_##call> {                 \
    static constexpr auto* next = &function; \
  };
template <Call kCall>
struct Special {};
CLUTCH_SPECIAL(clGetDeviceInfo, device_info)
CLUTCH_SPECIAL(clCreateProgramWithSource, create_with_source)
CLUTCH_SPECIAL(clCreateBuffer, create_buffer)
CLUTCH_SPECIAL(clGetKernelWorkGroupInfo, work_group_info)
CLUTCH_SPECIAL(clEnqueueNDRangeKernel, enqueue_kernel)
CLUTCH_SPECIAL(clGetEventInfo, event_info)
CLUTCH_SPECIAL(clWaitForEvents, wait_for_events)
CLUTCH_SPECIAL(clReleaseEvent, release_event)
CLUTCH_SPECIAL(clGetExtensionFunctionAddressForPlatform, extension_address)
template <Call kCall>
concept IsSpecial = requires {
  Special<kCall>::next;
};

// ---- every call ----
template <Call kCall, auto kMember, class F>
struct Wrap;

template <Call kCall, auto kMember, class R, class... A>
struct Wrap<kCall, kMember, R(CL_API_CALL*)(A...)> {
  static R next(A... a) {
    if constexpr (IsSpecial<kCall>)
      return Special<kCall>::next(a...);
    else
      return (g_next.*kMember)(a...);
  }
  static R CL_API_CALL call(A... a) {
    constexpr std::string_view name = kNames[kCall];
    cl_int fault = fault_of(name);
    if (fault != CL_SUCCESS) {
      // The work is waited for; only the answer is bad.
      if constexpr (kCall == k_clFinish || kCall == k_clWaitForEvents) next(a...);
      if constexpr (std::is_same_v<R, cl_int>) {
        return fault;
      } else {
        auto last = std::get<sizeof...(A) - 1>(std::tuple<A...>(a...));
        if constexpr (std::is_same_v<decltype(last), cl_int*>)
          if (last) *last = fault;
        return R{};
      }
    }
    R result = next(a...);
    constexpr std::string_view verb = name.substr(2);
    using First = std::tuple_element_t<0, std::tuple<A..., void>>;
    if constexpr (std::is_same_v<R, cl_int>) {
      if constexpr (verb.starts_with("Retain") && object_kind<First>() >= 0) {
        if (result == CL_SUCCESS) count(static_cast<Object>(object_kind<First>()), 1);
      } else if constexpr (verb.starts_with("Release") && object_kind<First>() >= 0) {
        if (result == CL_SUCCESS) count(static_cast<Object>(object_kind<First>()), -1);
      }
      if constexpr (verb.starts_with("Enqueue"))
        if (cl_event* slot = event_slot(a...); result == CL_SUCCESS && slot) event_made(*slot);
    } else {
      if constexpr (kCall == k_clEnqueueMapBuffer) {
        if (cl_event* slot = event_slot(a...); result && slot) event_made(*slot);
      } else if constexpr (object_kind<R>() == kEvents) {
        if (result) event_made(result);
      } else if constexpr (object_kind<R>() >= 0) {
        if (result) count(static_cast<Object>(object_kind<R>()), 1);
      }
    }
    return result;
  }
};

// ---- extension functions: wrapped where they are fetched ----
// cl_khr_command_buffer changed its parameters at 0.9.5, and every one of them is an integer or a pointer: passing on as many
// words as any of its functions takes serves all versions on the 64-bit calling conventions, which ignore what is too much.
constexpr int kSlots = 64;
using Word = std::uintptr_t;
using Words = Word (*)(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word);

struct Extension {
  cl_platform_id platform = nullptr;
  std::string name;
  Words real = nullptr;
};
std::array<Extension, kSlots> g_extensions;
int g_extension_count = 0;

Word call_extension(const Extension& e, const std::array<Word, 16>& a) {
  bool creates = e.name == "clCreateCommandBufferKHR";
  if (cl_int fault = fault_of(e.name); fault != CL_SUCCESS) {
    if (!creates) return static_cast<Word>(static_cast<std::uint32_t>(fault));
    if (auto* errcode = reinterpret_cast<cl_int*>(a[3])) *errcode = fault;
    return 0;
  }
  Word result = e.real(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15]);
  bool fine = static_cast<cl_int>(result) == CL_SUCCESS;
  if (creates && result) count(kCommandBuffers, 1);
  if (e.name == "clRetainCommandBufferKHR" && fine) count(kCommandBuffers, 1);
  if (e.name == "clReleaseCommandBufferKHR" && fine) count(kCommandBuffers, -1);
  if (e.name == "clEnqueueCommandBufferKHR" && fine && a[5]) event_made(*reinterpret_cast<cl_event*>(a[5]));
  return result;
}
template <int kSlot>
Word extension_slot(Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i, Word j, Word k, Word l, Word m, Word n, Word o, Word p) {
  return call_extension(g_extensions[kSlot], {a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p});
}
template <int... kSlot>
constexpr std::array<Words, kSlots> slots_of(std::integer_sequence<int, kSlot...>) {
  return {&extension_slot<kSlot>...};
}
constexpr auto kSlotFunctions = slots_of(std::make_integer_sequence<int, kSlots>());

void* extension_address(cl_platform_id platform, const char* name) {
  std::string_view wanted(name ? name : "");
  bool command_buffer = wanted.find("Command") != std::string_view::npos && wanted.ends_with("KHR");
  if (command_buffer && lacks(kNoCommandBuffer)) return nullptr;
  void* real = g_next.clGetExtensionFunctionAddressForPlatform(platform, name);
  if (!real || !command_buffer) return real;
  std::lock_guard lock(state().mutex);
  for (int i = 0; i < g_extension_count; ++i)
    if (g_extensions[static_cast<std::size_t>(i)].platform == platform && g_extensions[static_cast<std::size_t>(i)].name == wanted)
      return reinterpret_cast<void*>(kSlotFunctions[static_cast<std::size_t>(i)]);
  if (g_extension_count == kSlots) return real;
  auto slot = static_cast<std::size_t>(g_extension_count++);
  g_extensions[slot] = {platform, std::string(wanted), reinterpret_cast<Words>(real)};
  return reinterpret_cast<void*>(kSlotFunctions[slot]);
}

// ---- controls ----
void reset() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.name.clear();
  s.failed.clear();
  s.delayed.clear();
  s.fail_at = s.fail_event_at = s.lost_at = s.any_calls = s.events = s.delay_us = 0;
  s.calls.clear();
  s.failed_events.clear();
}
void fail_call(const char* name, std::uint64_t k, cl_int code) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.name = name ? name : "";
  auto found = s.calls.find(s.name);
  s.fail_at = k + (s.name.empty() ? s.any_calls : found == s.calls.end() ? 0 : found->second);
  s.code = code;
}
void fail_event(std::uint64_t k, cl_int code) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.fail_event_at = s.events + k;
  s.event_code = code;
}
void lose_device(std::uint64_t k, cl_int code) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.lost_at = s.any_calls + k;
  s.lost_code = code;
}
void delay(const char* name, std::uint32_t microseconds) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.delayed = name ? name : "";
  s.delay_us = microseconds;
}
void fake_device(std::uint32_t what) { state().lacks = what; }
const char* failed() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  return s.failed.empty() ? nullptr : s.failed.c_str();
}
std::uint64_t calls(const char* name) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (!name) return s.any_calls;
  auto found = s.calls.find(std::string_view(name));
  return found == s.calls.end() ? 0 : found->second;
}
std::int64_t live(Object kind) { return state().live[static_cast<std::size_t>(kind)].load(); }

cl_icd_dispatch g_layer{};

}}  // namespace clutch::fault

extern "C" {

__attribute__((visibility("default"))) const clutch::fault::Controls* clutch_fault_controls() {
  using namespace clutch::fault;
  static const Controls kControls{reset, fail_call, fail_event, lose_device, delay, fake_device, failed, calls, live};
  return &kControls;
}

__attribute__((visibility("default"))) cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t size, void* value, size_t* size_ret) {
  if (what != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
  if (size_ret) *size_ret = sizeof(cl_layer_api_version);
  if (value && size < sizeof(cl_layer_api_version)) return CL_INVALID_VALUE;
  if (value) *static_cast<cl_layer_api_version*>(value) = CL_LAYER_API_VERSION_100;
  return CL_SUCCESS;
}

__attribute__((visibility("default"))) cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch* target, cl_uint* entries_ret,
                                                                      const cl_icd_dispatch** layer) {
  using namespace clutch::fault;
  if (!target || !entries_ret || !layer) return CL_INVALID_VALUE;
  std::size_t known = sizeof(cl_icd_dispatch) / sizeof(void*), given = std::min<std::size_t>(entries, known);
  std::memcpy(static_cast<void*>(&g_next), target, given * sizeof(void*));
  std::memcpy(static_cast<void*>(&g_layer), target, given * sizeof(void*));
#define CLUTCH_ROW(name) \
  if (g_next.name) g_layer.name = &Wrap<k_##name, &cl_icd_dispatch::name, decltype(cl_icd_dispatch::name)>::call;
  CLUTCH_FAULT_CALLS(CLUTCH_ROW)
#undef CLUTCH_ROW
  *layer = &g_layer;
  *entries_ret = static_cast<cl_uint>(given);
  return CL_SUCCESS;
}
}
