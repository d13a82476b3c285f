// SPDX-License-Identifier: Apache-2.0
#include "plugin/driver/program.hpp"

#include "capi/plugin_status.hpp"
#include "plugin/driver/device.hpp"
#include "plugin/driver/queue.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <new>

_cl_program::~_cl_program() {
  if (program) context->device->backend().program_release(program);
}
_cl_kernel::~_cl_kernel() {
  if (kernel) program->context->device->backend().kernel_release(kernel);
}

namespace clutch { inline namespace v0 { namespace detail { namespace driver {

cl_program CL_API_CALL create_program(cl_context context, cl_uint n, const char** texts, const std::size_t* sizes, cl_int* status) {
  if (n == 0 || !texts) return given<_cl_program>(nullptr, CL_INVALID_VALUE, status);
  auto made = std::make_unique<_cl_program>();
  made->context = Ref<_cl_context>(context);
  for (cl_uint i = 0; i < n; ++i) {
    if (!texts[i]) return given<_cl_program>(nullptr, CL_INVALID_VALUE, status);
    made->text.append(texts[i], sizes && sizes[i] ? sizes[i] : std::strlen(texts[i]));
  }
  return given(made.release(), CL_SUCCESS, status);
}
cl_program CL_API_CALL create_program_from_binary(cl_context context, cl_uint n, const cl_device_id*, const std::size_t* sizes, const unsigned char** binaries,
                                                  cl_int* binary_status, cl_int* status) {
  if (n != 1 || !sizes || !binaries || sizes[0] == 0 || !binaries[0]) return given<_cl_program>(nullptr, CL_INVALID_VALUE, status);
  auto made = std::make_unique<_cl_program>();
  made->context = Ref<_cl_context>(context);
  made->binary.assign(reinterpret_cast<const char*>(binaries[0]), sizes[0]);
  if (binary_status) *binary_status = CL_SUCCESS;
  return given(made.release(), CL_SUCCESS, status);
}

cl_int CL_API_CALL build_program(cl_program program, cl_uint, const cl_device_id*, const char* options, void(CL_CALLBACK* notify)(cl_program, void*),
                                 void* with) {
  const cl_device_id device = program->context->device;
  clutch_status_t code = CLUTCH_OK;
  {
    std::lock_guard lock(program->mutex);
    if (program->program) return CL_INVALID_OPERATION;  // kernels may stand on it
    program->options = options ? options : "";
    code = capi::call_plugin([&] {
      return program->binary.empty()
                 ? device->backend().program_build(device->number, program->text.data(), program->text.size(), program->options.c_str(), &program->program)
                 : device->backend().program_load(device->number, program->binary.data(), program->binary.size(), program->options.c_str(), &program->program);
    });
    program->built = code == CLUTCH_OK ? CL_BUILD_SUCCESS : CL_BUILD_ERROR;
    program->log = code == CLUTCH_OK ? std::string() : capi::plugin_error();
    if (code != CLUTCH_OK) program->program = nullptr;
  }
  if (notify) notify(program, with);
  if (code == CLUTCH_OK) return CL_SUCCESS;
  return program->binary.empty() ? (code == CLUTCH_OUT_OF_MEMORY ? CL_OUT_OF_HOST_MEMORY : CL_BUILD_PROGRAM_FAILURE) : CL_INVALID_BINARY;
}

cl_int CL_API_CALL get_build_info(cl_program program, cl_device_id, cl_program_build_info what, std::size_t size, void* to, std::size_t* size_ret) {
  std::lock_guard lock(program->mutex);
  switch (what) {
    case CL_PROGRAM_BUILD_STATUS: return answer(program->built, size, to, size_ret);
    case CL_PROGRAM_BUILD_OPTIONS: return answer(program->options, size, to, size_ret);
    case CL_PROGRAM_BUILD_LOG: return answer(program->log, size, to, size_ret);
    case CL_PROGRAM_BINARY_TYPE:
      return answer(static_cast<cl_program_binary_type>(program->program ? CL_PROGRAM_BINARY_TYPE_EXECUTABLE : CL_PROGRAM_BINARY_TYPE_NONE), size, to,
                    size_ret);
    default: return CL_INVALID_VALUE;
  }
}

cl_int CL_API_CALL get_program_info(cl_program program, cl_program_info what, std::size_t size, void* to, std::size_t* size_ret) {
  const cl_device_id device = program->context->device;
  std::lock_guard lock(program->mutex);
  switch (what) {
    case CL_PROGRAM_REFERENCE_COUNT: return answer(program->references.load(), size, to, size_ret);
    case CL_PROGRAM_CONTEXT: return answer(program->context.get(), size, to, size_ret);
    case CL_PROGRAM_NUM_DEVICES: return answer(static_cast<cl_uint>(1), size, to, size_ret);
    case CL_PROGRAM_DEVICES: return answer(device, size, to, size_ret);
    case CL_PROGRAM_SOURCE: return answer(program->text, size, to, size_ret);
    case CL_PROGRAM_BINARY_SIZES:
    case CL_PROGRAM_BINARIES: break;
    default: return CL_INVALID_VALUE;
  }
  std::size_t bytes = 0;
  if (program->program && capi::call_plugin([&] { return device->backend().program_binary(program->program, nullptr, 0, &bytes); }) != CLUTCH_OK) bytes = 0;
  if (what == CL_PROGRAM_BINARY_SIZES) return answer(bytes, size, to, size_ret);
  if (size_ret) *size_ret = sizeof(char*);
  if (!to) return CL_SUCCESS;
  if (size < sizeof(char*)) return CL_INVALID_VALUE;
  char* const into = *static_cast<char**>(to);
  if (!into || bytes == 0) return CL_SUCCESS;
  return status_of(capi::call_plugin([&] { return device->backend().program_binary(program->program, into, bytes, &bytes); }));
}

cl_kernel CL_API_CALL create_kernel(cl_program program, const char* name, cl_int* status) {
  if (!name) return given<_cl_kernel>(nullptr, CL_INVALID_VALUE, status);
  auto made = std::make_unique<_cl_kernel>();
  made->program = Ref<_cl_program>(program);
  made->name = name;
  made->facts.size = sizeof made->facts;
  {
    std::lock_guard lock(program->mutex);
    if (!program->program) return given<_cl_kernel>(nullptr, CL_INVALID_PROGRAM_EXECUTABLE, status);
    const clutch_status_t code =
        capi::call_plugin([&] { return program->context->device->backend().kernel_create(program->program, name, &made->facts, &made->kernel); });
    if (code != CLUTCH_OK) {
      made->kernel = nullptr;
      return given<_cl_kernel>(nullptr, code == CLUTCH_INVALID_ARGUMENT ? CL_INVALID_KERNEL_NAME : status_of(code), status);
    }
  }
  made->arguments.resize(made->facts.arguments_count);
  return given(made.release(), CL_SUCCESS, status);
}

cl_int CL_API_CALL set_kernel_arg(cl_kernel kernel, cl_uint index, std::size_t bytes, const void* value) {
  if (index >= kernel->arguments.size()) return CL_INVALID_ARG_INDEX;
  _cl_kernel::Argument& argument = kernel->arguments[index];
  switch (kernel->facts.argument_kinds[index]) {
    case CLUTCH_DEVICE_ARGUMENT_MEMORY: {
      if (bytes != sizeof(cl_mem)) return CL_INVALID_ARG_SIZE;
      cl_mem mem = nullptr;
      if (value) std::memcpy(&mem, value, sizeof mem);
      argument.memory = Ref<_cl_mem>(mem);
      break;
    }
    case CLUTCH_DEVICE_ARGUMENT_LOCAL:
      if (value) return CL_INVALID_ARG_VALUE;
      if (bytes == 0) return CL_INVALID_ARG_SIZE;
      argument.local_bytes = bytes;
      break;
    default:
      if (bytes != kernel->facts.argument_bytes[index]) return CL_INVALID_ARG_SIZE;
      if (!value) return CL_INVALID_ARG_VALUE;
      argument.value.assign(static_cast<const char*>(value), bytes);
  }
  argument.is_set = true;
  return CL_SUCCESS;
}

cl_int CL_API_CALL get_kernel_info(cl_kernel kernel, cl_kernel_info what, std::size_t size, void* to, std::size_t* size_ret) {
  switch (what) {
    case CL_KERNEL_NUM_ARGS: return answer(static_cast<cl_uint>(kernel->arguments.size()), size, to, size_ret);
    case CL_KERNEL_FUNCTION_NAME: return answer(kernel->name, size, to, size_ret);
    case CL_KERNEL_REFERENCE_COUNT: return answer(kernel->references.load(), size, to, size_ret);
    case CL_KERNEL_CONTEXT: return answer(kernel->program->context.get(), size, to, size_ret);
    case CL_KERNEL_PROGRAM: return answer(kernel->program.get(), size, to, size_ret);
    default: return CL_INVALID_VALUE;
  }
}
cl_int CL_API_CALL get_kernel_arg_info(cl_kernel, cl_uint, cl_kernel_arg_info, std::size_t, void*, std::size_t*) { return CL_KERNEL_ARG_INFO_NOT_AVAILABLE; }
cl_int CL_API_CALL get_kernel_group_info(cl_kernel kernel, cl_device_id, cl_kernel_work_group_info what, std::size_t size, void* to, std::size_t* size_ret) {
  const clutch_device_facts_t& device = kernel->program->context->device->facts;
  switch (what) {
    case CL_KERNEL_WORK_GROUP_SIZE: return answer(static_cast<std::size_t>(kernel->facts.max_group_items), size, to, size_ret);
    case CL_KERNEL_COMPILE_WORK_GROUP_SIZE: return answer_bytes(kernel->facts.required_items, sizeof kernel->facts.required_items, size, to, size_ret);
    case CL_KERNEL_LOCAL_MEM_SIZE: {
      std::uint64_t bytes = kernel->facts.local_bytes;
      for (const _cl_kernel::Argument& argument : kernel->arguments) bytes += argument.local_bytes;
      return answer(static_cast<cl_ulong>(bytes), size, to, size_ret);
    }
    case CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE: return answer(static_cast<std::size_t>(device.group_multiple), size, to, size_ret);
    case CL_KERNEL_PRIVATE_MEM_SIZE: return answer(static_cast<cl_ulong>(0), size, to, size_ret);
    default: return CL_INVALID_VALUE;
  }
}

namespace {

constexpr std::align_val_t kValueAlignment{128};
constexpr std::size_t rounded_up(std::size_t bytes) noexcept {
  const auto to = static_cast<std::size_t>(kValueAlignment);
  return (bytes + to - 1) / to * to;
}

/// A launch with copies of all that its arguments were when it was enqueued.
struct Launch {
  Ref<_cl_kernel> kernel;
  clutch_device_launch_t shape{};
  /// Values one behind the other, each at a multiple of kValueAlignment: a backend may hand its address to code that loads it whole.
  std::unique_ptr<std::byte[], void (*)(std::byte*)> values{nullptr, [](std::byte* block) { ::operator delete[](block, kValueAlignment); }};
  std::vector<Ref<_cl_mem>> memory;
  std::vector<clutch_device_argument_t> arguments;

  cl_int run(void* queue) {
    shape.arguments = arguments.data(), shape.arguments_count = arguments.size();
    return status_of(kernel->program->context->device->backend().launch(queue, kernel->kernel, &shape));
  }
};

/// The largest divisor of `global` that is at most `most`.
std::size_t divisor(std::size_t global, std::size_t most) noexcept {
  for (std::size_t d = std::min(global, most); d > 1; --d)
    if (global % d == 0) return d;
  return 1;
}

}  // namespace

cl_int CL_API_CALL enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const std::size_t* offset, const std::size_t* global,
                                  const std::size_t* local, cl_uint waits, const cl_event* list, cl_event* event) {
  const clutch_device_kernel_facts_t& facts = kernel->facts;
  const clutch_device_facts_t& device = kernel->program->context->device->facts;
  if (queue->context->device != kernel->program->context->device) return CL_INVALID_CONTEXT;
  if (dimensions < 1 || dimensions > 3) return CL_INVALID_WORK_DIMENSION;
  if (!global) return CL_INVALID_GLOBAL_WORK_SIZE;
  auto launch = std::make_shared<Launch>();
  launch->kernel = Ref<_cl_kernel>(kernel);
  clutch_device_launch_t& shape = launch->shape;
  shape.size = sizeof shape, shape.dimensions = dimensions;
  std::size_t items = 1;
  const bool requires_items = facts.required_items[0] > 0;
  for (cl_uint d = 0; d < 3; ++d) {
    const std::size_t all = d < dimensions ? global[d] : 1;
    if (all == 0) return CL_INVALID_GLOBAL_WORK_SIZE;
    std::size_t own = 1;
    if (d < dimensions && local)
      own = local[d];
    else if (requires_items)
      own = facts.required_items[d];
    else if (d == 0)
      own = divisor(all, static_cast<std::size_t>(std::min<std::int64_t>(device.group_multiple, facts.max_group_items)));
    if (own == 0 || all % own != 0) return CL_INVALID_WORK_GROUP_SIZE;
    if (requires_items && own != facts.required_items[d]) return CL_INVALID_WORK_GROUP_SIZE;
    if (own > static_cast<std::size_t>(facts.max_group_items) / items) return CL_INVALID_WORK_GROUP_SIZE;
    items *= own;
    shape.groups[d] = all / own, shape.items[d] = own, shape.offset[d] = offset && d < dimensions ? offset[d] : 0;
  }
  std::uint64_t local_bytes = facts.local_bytes;
  std::size_t value_bytes = 0, at = 0;
  for (const _cl_kernel::Argument& argument : kernel->arguments) value_bytes += rounded_up(argument.value.size());
  launch->values.reset(new (kValueAlignment) std::byte[value_bytes]);
  for (std::size_t i = 0; i < kernel->arguments.size(); ++i) {
    const _cl_kernel::Argument& argument = kernel->arguments[i];
    if (!argument.is_set) return CL_INVALID_KERNEL_ARGS;
    clutch_device_argument_t made{};
    switch (facts.argument_kinds[i]) {
      case CLUTCH_DEVICE_ARGUMENT_MEMORY:
        made.value = argument.memory ? argument.memory->memory : nullptr;
        launch->memory.push_back(argument.memory);
        break;
      case CLUTCH_DEVICE_ARGUMENT_LOCAL: local_bytes += made.bytes = argument.local_bytes; break;
      default:
        made.value = std::memcpy(launch->values.get() + at, argument.value.data(), argument.value.size());
        made.bytes = argument.value.size();
        at += rounded_up(made.bytes);
    }
    launch->arguments.push_back(made);
  }
  if (local_bytes > device.local_bytes) return CL_OUT_OF_RESOURCES;
  return enqueue(
      queue, CL_COMMAND_NDRANGE_KERNEL, [launch](void* q) { return launch->run(q); }, waits, list, event);
}

}}}}  // namespace clutch::v0::detail::driver
