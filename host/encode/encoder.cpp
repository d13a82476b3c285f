// SPDX-License-Identifier: Apache-2.0
#include <clutch/kernel.hpp>

#include "encode/launch_check.hpp"
#include "encode/plan_text.hpp"
#include "program/program.hpp"
#include "runtime/runtime.hpp"
#include "runtime/settings.hpp"
#include "runtime/storage.hpp"

#include <fmt/format.h>

namespace clutch::inline v0 {

namespace detail {

namespace {
thread_local const std::string* t_plan_ref = nullptr;
}  // namespace

LastLaunch& last_launch() noexcept {
  thread_local LastLaunch last;
  return last;
}

void note_plan(const std::string& text) noexcept { t_plan_ref = &text; }

void check_launch(const Kernel& kernel, const Geometry& g, std::uint64_t local_bytes, const char* op) {
  auto refuse = [&](std::string rule) { throw Error(ErrorCode::invalid_argument, op, fmt::format("launch of {}: {}", kernel.name(), rule)); };
  std::uint64_t local = std::max<std::uint64_t>(g.local, 1) * g.local_y * g.local_z;
  if (g.local_y == 0 || g.local_z == 0) refuse("local sizes of y and z must be positive");
  if (g.local > 0 && g.global % g.local != 0) refuse(fmt::format("global size {} is no multiple of local size {}", g.global, g.local));
  if (g.global_y % g.local_y != 0 || g.global_z % g.local_z != 0) refuse("global sizes of y and z must be multiples of the local ones");
  if (local > kernel.max_work_group()) refuse(fmt::format("{} work-items in a group, but the device takes {} for this kernel", local, kernel.max_work_group()));
  const DeviceTraits& traits = claimed_traits(kernel.program().runtime().device());
  if (traits.address_bits == 32 && g.global >> 32 != 0) refuse("global size past the device's 32 address bits");
  std::uint64_t wanted = local_bytes + kernel.static_local_bytes();
  if (wanted > traits.local_bytes) refuse(fmt::format("{} bytes of local memory, but the device has {}", wanted, traits.local_bytes));
}

}  // namespace detail

std::string last_plan() { return detail::t_plan_ref ? *detail::t_plan_ref : std::string(); }

namespace {
constexpr std::uint16_t kNoBytes = 0xFFFF;

detail::Storage& storage_of(const Tensor& tensor, const char* op) {
  if (!tensor.defined()) throw Error(ErrorCode::invalid_argument, op, "a tensor is undefined");
  return *tensor.storage();
}
}  // namespace

std::uint64_t KernelHandle::max_work_group() const { return kernel_ ? kernel_->max_work_group() : 0; }

Encoder::Encoder(const Stream& stream, const char* op) : stream_(stream), op_(op) {
  if (stream.empty()) throw Error(ErrorCode::invalid_argument, op, "the Encoder's stream is empty");
  stream.impl()->check(op);
}

Encoder::~Encoder() = default;

Encoder& Encoder::bind(const Tensor& tensor, Argument::Kind kind) {
  detail::Storage& storage = storage_of(tensor, op_);
  const auto& stream = stream_.impl();
  if (&storage.runtime() != &stream->runtime()) throw Error(ErrorCode::device_mismatch, op_, "a tensor and the stream are of different devices or contexts");
  storage.used_on(stream, kind != Argument::Kind::input, op_);
  cl_mem mem = storage.mem();
  bind_bytes(&mem, sizeof mem);
  cl_ulong offset = storage.offset() + tensor.byte_offset();
  return bind_bytes(&offset, sizeof offset);
}

Encoder& Encoder::bind_bytes(const void* bytes, std::size_t size) {
  int begin = (used_ + 7) / 8 * 8;
  if (count_ == kMaxArguments || begin + static_cast<int>(size) > kMaxBytes)
    throw Error(ErrorCode::invalid_argument, op_, fmt::format("more than {} arguments or {} bytes of them", kMaxArguments, kMaxBytes));
  std::memcpy(bytes_ + begin, bytes, size);
  bound_[count_++] = {static_cast<std::uint16_t>(size), static_cast<std::uint16_t>(begin)};
  used_ = begin + static_cast<int>(size);
  return *this;
}

Encoder& Encoder::local(std::size_t bytes) {
  if (count_ == kMaxArguments || bytes > 0xFFFF'FFFF) throw Error(ErrorCode::invalid_argument, op_, fmt::format("more than {} arguments", kMaxArguments));
  auto size = static_cast<std::uint32_t>(bytes);
  bind_bytes(&size, sizeof size);
  bound_[count_ - 1].size = kNoBytes;
  return *this;
}

Tensor Encoder::scratch(const Dims& sizes, DType dtype) {
  Tensor result = empty(sizes, {.dtype = dtype, .device = stream_.device()}, stream_);
  return result;
}

void Encoder::dispatch(const KernelHandle& handle, const Geometry& g) {
  int count = std::exchange(count_, 0);
  used_ = 0;
  if (handle.empty()) throw Error(ErrorCode::invalid_argument, op_, "the kernel is empty");
  detail::Kernel& kernel = *handle.kernel();
  detail::StreamImpl& stream = *stream_.impl();
  if (&kernel.program().runtime() != &stream.runtime())
    throw Error(ErrorCode::device_mismatch, op_, fmt::format("kernel {} was built for another device", kernel.name()));
  if (count != kernel.argument_count())
    throw Error(ErrorCode::invalid_argument, op_,
                fmt::format("kernel {} takes {} arguments, {} are bound (a tensor binds two)", kernel.name(), kernel.argument_count(), count));
  if (g.global == 0 || g.global_y == 0 || g.global_z == 0) return;
  std::uint64_t local_bytes = 0;
  detail::KernelLease lease(kernel);
  for (int i = 0; i < count; ++i) {
    const Bound& b = bound_[i];
    cl_int status;
    if (b.size == kNoBytes) {
      std::uint32_t bytes;
      std::memcpy(&bytes, bytes_ + b.offset, sizeof bytes);
      local_bytes += bytes;
      status = clSetKernelArg(lease.get(), static_cast<cl_uint>(i), bytes, nullptr);
    } else {
      status = clSetKernelArg(lease.get(), static_cast<cl_uint>(i), b.size, bytes_ + b.offset);
    }
    if (status == CL_INVALID_ARG_SIZE || status == CL_INVALID_ARG_VALUE || status == CL_INVALID_MEM_OBJECT) [[unlikely]]
      throw Error(ErrorCode::invalid_argument, op_,
                  fmt::format("argument {} of kernel {} does not fit its parameter ({})", i, kernel.name(), detail::cl_error_name(status)), status);
    detail::check_cl(status, op_, "clSetKernelArg");
  }
  detail::check_launch(kernel, g, local_bytes, op_);
  const std::size_t global[3] = {g.global, g.global_y, g.global_z};
  const std::size_t local[3] = {g.local, g.local_y, g.local_z};
  cl_uint dims = g.global_z > 1 ? 3 : g.global_y > 1 ? 2 : 1;
  cl_event event = nullptr;
  stream.next_ticket();
  cl_int status = clEnqueueNDRangeKernel(stream.queue(), lease.get(), dims, nullptr, global, g.local > 0 ? local : nullptr, 0, nullptr, &event);
  detail::check_cl(status, op_, "clEnqueueNDRangeKernel");
  stream.submitted(detail::ClEvent(event), op_);
  detail::last_launch() = {&kernel, g};
  if (kernel.first_launch(g.local, g.local_y, g.local_z)) stream.save_when_idle(&kernel.program());
}

void Encoder::copy(const Tensor& destination, const Tensor& source) {
  detail::Storage& to = storage_of(destination, op_);
  detail::Storage& from = storage_of(source, op_);
  detail::StreamImpl& stream = *stream_.impl();
  if (&to.runtime() != &stream.runtime() || &from.runtime() != &stream.runtime())
    throw Error(ErrorCode::device_mismatch, op_, "tensors and stream of a copy are of different devices or contexts");
  if (!destination.is_contiguous() || !source.is_contiguous() || destination.nbytes() != source.nbytes())
    throw Error(ErrorCode::invalid_shape, op_, "a byte copy needs contiguous tensors of equal size");
  if (source.nbytes() == 0) return;
  from.used_on(stream_.impl(), false, op_);
  to.used_on(stream_.impl(), true, op_);
  cl_event event = nullptr;
  stream.next_ticket();
  detail::check_cl(clEnqueueCopyBuffer(stream.queue(), from.mem(), to.mem(), from.offset() + source.byte_offset(), to.offset() + destination.byte_offset(),
                                       source.nbytes(), 0, nullptr, &event),
                   op_, "clEnqueueCopyBuffer");
  stream.submitted(detail::ClEvent(event), op_);
}

void Encoder::host_task(const std::function<void(std::span<void* const>)>& task, std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  detail::note_fallback("host", op_, "runs on the host");
  detail::StreamImpl& stream = *stream_.impl();
  struct Mapped {
    cl_mem mem;
    void* pointer;
  };
  std::vector<Mapped> mapped;
  std::vector<void*> pointers;
  auto unmap = [&] {
    for (const Mapped& m : mapped) {
      cl_event event = nullptr;
      if (clEnqueueUnmapMemObject(stream.queue(), m.mem, m.pointer, 0, nullptr, &event) == CL_SUCCESS) stream.submitted(detail::ClEvent(event), op_);
    }
  };
  auto map = [&](const Tensor& tensor, bool writes) {
    detail::Storage& storage = storage_of(tensor, op_);
    if (&storage.runtime() != &stream.runtime()) throw Error(ErrorCode::device_mismatch, op_, "a tensor of a host task is of another device or context");
    storage.used_on(stream_.impl(), writes, op_);
    if (tensor.numel() == 0) {
      pointers.push_back(nullptr);
      return;
    }
    // The extent from element 0 to the last one that the strides reach.
    std::uint64_t last = 0;
    for (int i = 0; i < tensor.rank(); ++i) last += static_cast<std::uint64_t>((tensor.sizes()[i] - 1) * tensor.strides()[i]);
    cl_int status = CL_SUCCESS;
    void* pointer = clEnqueueMapBuffer(stream.queue(), storage.mem(), CL_TRUE, writes ? CL_MAP_READ | CL_MAP_WRITE : CL_MAP_READ,
                                       storage.offset() + tensor.byte_offset(), bytes_for(tensor.dtype(), last + 1), 0, nullptr, nullptr, &status);
    detail::check_cl(status, op_, "clEnqueueMapBuffer");
    mapped.push_back({storage.mem(), pointer});
    pointers.push_back(pointer);
  };
  stream.next_ticket();
  try {
    for (const Tensor& tensor : inputs) map(tensor, false);
    for (const Tensor& tensor : outputs) map(tensor, true);
    task(pointers);
  } catch (...) {
    unmap();
    throw;
  }
  unmap();
}

void Encoder::opaque(const std::function<void(void* queue)>& task, std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  detail::StreamImpl& stream = *stream_.impl();
  for (const Tensor& tensor : inputs) storage_of(tensor, op_).used_on(stream_.impl(), false, op_);
  for (const Tensor& tensor : outputs) storage_of(tensor, op_).used_on(stream_.impl(), true, op_);
  stream.next_ticket();
  task(stream.queue());
  if (detail::ClEvent mark = stream.mark(op_)) stream.submitted(std::move(mark), op_);
}

namespace {

// The entry is called by a wrapper that adds the byte offsets: OpenCL C lets kernels call kernels, and no sub-buffer with
// its alignment rules is needed.
std::string wrap_entry(const KernelSource& source, std::span<const Argument> arguments, std::string_view wrapper) {
  std::string parameters, call;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const char* comma = i ? ", " : "";
    switch (arguments[i].kind) {
      case Argument::Kind::value:
        parameters += fmt::format("{}{} a{}", comma, arguments[i].type, i);
        call += fmt::format("{}a{}", comma, i);
        break;
      case Argument::Kind::local:
        parameters += fmt::format("{}__local uchar* a{}", comma, i);
        call += fmt::format("{}(__local void*)a{}", comma, i);
        break;
      default: parameters += fmt::format("{}__global uchar* a{}, ulong o{}", comma, i, i); call += fmt::format("{}(__global void*)(a{} + o{})", comma, i, i);
    }
  }
  return fmt::format("#line 1 \"<call of {}>\"\n__kernel void {}({}) {{ {}({}); }}\n", source.entry, wrapper, parameters, source.entry, call);
}

detail::Runtime& runtime_of_call(std::span<const Argument> arguments, const Stream& stream, std::string_view op) {
  for (const Argument& a : arguments)
    if (a.tensor) return storage_of(*a.tensor, std::string(op).c_str()).runtime();
  if (!stream.empty()) return stream.impl()->runtime();
  return detail::runtime_of(*current_device().record());
}

}  // namespace

KernelHandle prepare(const KernelSource& source, const Stream& stream) {
  detail::Runtime& runtime = runtime_of_call({}, stream, source.entry);
  return KernelHandle(
      &runtime.programs().find({.text = source.text, .file = source.file, .entry = source.entry, .defines = source.defines, .options = source.options}));
}

void launch(const KernelSource& source, const Geometry& geometry, std::span<const Argument> arguments, const Stream& stream) {
  detail::Runtime& runtime = runtime_of_call(arguments, stream, source.entry);
  Stream on = detail::resolve_stream(stream, runtime, source.entry);
  std::string wrapper, wrapper_text;
  if (source.addressing == Addressing::pointer) {
    wrapper = fmt::format("clutch_call_{}", source.entry);
    wrapper_text = wrap_entry(source, arguments, wrapper);
  }
  detail::Kernel& kernel = runtime.programs().find({.text = source.text,
                                                    .file = source.file,
                                                    .entry = source.entry,
                                                    .defines = source.defines,
                                                    .options = source.options,
                                                    .wrapper_name = wrapper,
                                                    .wrapper_text = wrapper_text});
  Encoder encoder(on, kernel.name());
  for (const Argument& a : arguments) {
    switch (a.kind) {
      case Argument::Kind::input: encoder.input(*a.tensor); break;
      case Argument::Kind::output: encoder.output(*a.tensor); break;
      case Argument::Kind::inout: encoder.inout(*a.tensor); break;
      case Argument::Kind::local: encoder.local(a.size); break;
      case Argument::Kind::value: encoder.bytes(a.bytes, a.size); break;
    }
  }
  encoder.dispatch(KernelHandle(&kernel), geometry);
}

}  // namespace clutch::inline v0
