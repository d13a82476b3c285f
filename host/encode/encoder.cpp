// SPDX-License-Identifier: Apache-2.0
#include <clutch/kernel.hpp>

#include "encode/host_task.hpp"
#include "encode/launch_check.hpp"
#include "program/program.hpp"
#include "runtime/last_launch.hpp"
#include "runtime/op_name.hpp"
#include "runtime/recorder.hpp"
#include "runtime/runtime.hpp"
#include "runtime/settings.hpp"
#include "runtime/storage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>

namespace clutch::inline v0 {

namespace detail {

void check_argument(cl_int status, std::uint32_t position, const Kernel& kernel, const char* op) {
  if (status == CL_INVALID_ARG_SIZE || status == CL_INVALID_ARG_VALUE || status == CL_INVALID_MEM_OBJECT) [[unlikely]]
    throw Error(ErrorCode::invalid_argument, op,
                fmt::format("argument {} of kernel {} does not fit its parameter ({})", position, kernel.name(), cl_error_name(status)), status);
  check_cl(status, op, "clSetKernelArg");
}

void check_launch(const Kernel& kernel, const Geometry& g, std::uint64_t local_bytes, const char* op) {
  auto refuse = [&](std::string rule) { throw Error(ErrorCode::invalid_argument, op, fmt::format("launch of {}: {}", kernel.name(), rule)); };
  const DeviceTraits& traits = claimed_traits(kernel.program().runtime().device());
  const std::uint64_t global[] = {g.global, g.global_y, g.global_z}, local[] = {std::max<std::uint64_t>(g.local, 1), g.local_y, g.local_z};
  const std::uint64_t most = kernel.max_work_group();
  // Drivers count groups in 32 bits: past that they abort, or leave groups out. A local size that the driver chooses may be 1.
  constexpr std::uint64_t kMostGroups = 0xFFFF'FFFF;
  std::uint64_t items = 1, groups = 1;
  if (g.local_y == 0 || g.local_z == 0) refuse("local sizes of y and z must be positive");
  for (int d = 0; d < 3; ++d) {
    if (global[d] % local[d] != 0) refuse(fmt::format("global size {} of {} must be a multiple of its local size {}", global[d], "xyz"[d], local[d]));
    if (__builtin_mul_overflow(items, local[d], &items) || items > most)
      refuse(fmt::format("a group of {} x {} x {} work-items, but the device takes at most {} for this kernel", local[0], local[1], local[2], most));
    if (traits.address_bits == 32 && global[d] >> 32 != 0)
      refuse(fmt::format("global size {} of {} is past the device's 32 address bits", global[d], "xyz"[d]));
    if (__builtin_mul_overflow(groups, global[d] / local[d], &groups) || groups > kMostGroups)
      refuse(fmt::format("global sizes {} x {} x {} make more than {} groups of {} x {} x {}", global[0], global[1], global[2], kMostGroups, local[0], local[1],
                         local[2]));
  }
  std::uint64_t wanted = local_bytes + kernel.static_local_bytes();
  if (wanted > traits.local_bytes) refuse(fmt::format("{} bytes of local memory, but the device has {}", wanted, traits.local_bytes));
}

}  // namespace detail

namespace {
constexpr std::uint16_t kNoBytes = 0xFFFF;

detail::Storage& storage_of(const Tensor& tensor, const char* op) {
  if (!tensor.defined()) throw Error(ErrorCode::invalid_argument, op, "a tensor is undefined");
  return *tensor.storage();
}
detail::Storage& placed_storage_of(const Tensor& tensor, const char* op) {
  detail::Storage& storage = storage_of(tensor, op);
  detail::check_placed(storage, op);
  return storage;
}
}  // namespace

namespace detail {

namespace {

/// Memory of a host task's ranges: each place of a buffer mapped once, or copied while another task has it mapped. Nobody waits for another task, so tasks
/// may share tensors, nest and come in any order.
class HostMemory {
 public:
  HostMemory(StreamImpl& stream, const char* op, std::span<const HostRange> ranges) : stream_(stream), op_(op) {
    std::vector<std::size_t> part_of;
    for (const HostRange& range : ranges) {
      auto part = std::find_if(parts_.begin(), parts_.end(), [&](const Part& p) { return p.range.mem == range.mem && p.range.offset == range.offset; });
      part_of.push_back(static_cast<std::size_t>(part - parts_.begin()));
      if (part == parts_.end()) part = parts_.insert(part, {.range = {.mem = range.mem, .offset = range.offset}});
      part->range.bytes = std::max(part->range.bytes, range.bytes);
      part->range.writes = part->range.writes || (range.writes && range.bytes > 0);
    }
    try {
      for (Part& part : parts_)
        if (part.range.bytes > 0) enter(part);
    } catch (...) {
      leave();
      throw;
    }
    for (std::size_t i = 0; i < ranges.size(); ++i) pointers_.push_back(ranges[i].bytes > 0 ? parts_[part_of[i]].pointer : nullptr);
  }

  std::span<void* const> pointers() const noexcept { return pointers_; }

  /// Hands the memory back, also after a failure; returns the first status that says that what was written may be lost.
  cl_int leave() noexcept {
    cl_int first = CL_SUCCESS;
    for (Part& part : parts_) {
      if (!part.pointer) continue;
      const HostRange& range = part.range;
      cl_event event = nullptr;
      cl_int status = CL_SUCCESS;
      if (!part.copy)
        status = clEnqueueUnmapMemObject(stream_.queue(), range.mem, part.pointer, 0, nullptr, &event);
      else if (range.writes)
        status = clEnqueueWriteBuffer(stream_.queue(), range.mem, CL_FALSE, range.offset, range.bytes, part.copy.get(), 0, nullptr, &event);
      if (first == CL_SUCCESS && range.writes) first = status;
      ClEvent done(status == CL_SUCCESS ? event : nullptr);
      if (!part.copy) stream_.runtime().mappings().give_back(range.mem, range.offset, stream_.id(), retained(done.get()));
      if (done) stream_.submitted(std::move(done), op_, std::move(part.copy));
    }
    parts_.clear();
    return first;
  }

 private:
  struct Part {
    HostRange range{};
    void* pointer = nullptr;
    std::shared_ptr<std::byte[]> copy = {};
  };

  void enter(Part& part) {
    const HostRange& range = part.range;
    cl_int status = CL_SUCCESS;
    if (HostMappings& mappings = stream_.runtime().mappings(); mappings.take(range.mem, range.offset, stream_.id())) {
      void* pointer = clEnqueueMapBuffer(stream_.queue(), range.mem, CL_TRUE, range.writes ? CL_MAP_READ | CL_MAP_WRITE : CL_MAP_READ, range.offset,
                                         range.bytes, 0, nullptr, nullptr, &status);
      if (status != CL_SUCCESS) mappings.give_back(range.mem, range.offset, stream_.id(), {});
      check_cl(status, op_, "clEnqueueMapBuffer");
      part.pointer = pointer;
      return;
    }
    constexpr std::align_val_t kAlignment{64};  // of a cache line, as mapped memory has at least
    part.copy = std::shared_ptr<std::byte[]>(new (kAlignment) std::byte[range.bytes], [](std::byte* p) { ::operator delete[](p, kAlignment); });
    status = clEnqueueReadBuffer(stream_.queue(), range.mem, CL_TRUE, range.offset, range.bytes, part.copy.get(), 0, nullptr, nullptr);
    if (status != CL_SUCCESS) clFinish(stream_.queue());  // nothing may write to the copy any more
    check_cl(status, op_, "clEnqueueReadBuffer");
    part.pointer = part.copy.get();
  }

  StreamImpl& stream_;
  const char* op_;
  std::vector<Part> parts_;
  std::vector<void*> pointers_;
};

}  // namespace

void run_host_task(StreamImpl& stream, const char* op, const std::function<void(std::span<void* const>)>& task, std::span<const HostRange> ranges) {
  Clock before = stream.checked_clock(1);  // the task itself has a ticket already
  HostMemory memory(stream, op, ranges);
  if (std::any_of(ranges.begin(), ranges.end(), [](const HostRange& range) { return range.bytes > 0; })) stream.runtime().host_waited(before);
  try {
    task(memory.pointers());
  } catch (...) {
    memory.leave();
    throw;
  }
  check_cl(memory.leave(), op, "clEnqueueUnmapMemObject");
}

}  // namespace detail

KernelHandle::KernelHandle(detail::Kernel* kernel, const detail::Interned& plan) noexcept : kernel_(kernel), plan_(plan.get()) {}
detail::Interned KernelHandle::plan() const noexcept { return plan_ ? detail::Interned(plan_) : kernel_ ? kernel_->plan() : detail::Interned(); }
std::uint64_t KernelHandle::max_work_group() const { return kernel_ ? kernel_->max_work_group() : 0; }

Encoder::Encoder(const Stream& stream, const char* op) : stream_(stream), op_(detail::OpName::or_else(op)) {
  if (stream.empty()) throw Error(ErrorCode::invalid_argument, op_, "the Encoder's stream is empty");
  stream.impl()->check(op_);
  if (auto recorder = stream.impl()->recorder()) [[unlikely]]
    recording_ = std::make_unique<detail::Recording>(detail::Recording{std::move(recorder), {}});
}

Encoder::~Encoder() = default;

Encoder& Encoder::bind(const Tensor& tensor, Argument::Kind kind, const char* name) {
  detail::Storage& storage = storage_of(tensor, op_);
  const auto& stream = stream_.impl();
  if (&storage.runtime() != &stream->runtime()) throw Error(ErrorCode::device_mismatch, op_, "a tensor and the stream are of different devices or contexts");
  if (recording_) [[unlikely]] {
    detail::Launch& launch = recording_->launch;
    int use = static_cast<int>(launch.operands.size());
    launch.operands.push_back({tensor, kind});
    launch.arguments.push_back({.kind = detail::BoundArgument::Kind::memory, .use = use, .name = name});
    launch.arguments.push_back({.kind = detail::BoundArgument::Kind::offset, .use = use});
    return *this;
  }
  detail::check_placed(storage, op_);
  storage.used_on(stream, kind != Argument::Kind::input, op_);
  cl_mem mem = storage.mem();
  bind_bytes(&mem, sizeof mem, "", name);
  cl_ulong offset = storage.offset() + tensor.byte_offset();
  return bind_bytes(&offset, sizeof offset, "", name);
}

Encoder& Encoder::bind_bytes(const void* bytes, std::size_t size, const char* type, const char* name) {
  int begin = (used_ + 7) / 8 * 8;
  if (!bytes || size == 0 || !type || !name)
    throw Error(ErrorCode::invalid_argument, op_, fmt::format("argument {} must have bytes, a type and a name, got {} bytes or a null pointer", count_, size));
  if (count_ == kMaxArguments || size > static_cast<std::size_t>(kMaxBytes) || begin + static_cast<int>(size) > kMaxBytes)
    throw Error(ErrorCode::invalid_argument, op_, fmt::format("more than {} arguments or {} bytes of them", kMaxArguments, kMaxBytes));
  std::memcpy(bytes_ + begin, bytes, size);
  if (recording_) [[unlikely]]
    recording_->launch.arguments.push_back({.size = static_cast<std::uint16_t>(size), .at = static_cast<std::uint16_t>(begin), .type = type, .name = name});
  bound_[count_++] = {static_cast<std::uint16_t>(size), static_cast<std::uint16_t>(begin)};
  used_ = begin + static_cast<int>(size);
  return *this;
}

Encoder& Encoder::local(std::size_t bytes) {
  if (count_ == kMaxArguments || bytes > 0xFFFF'FFFF) throw Error(ErrorCode::invalid_argument, op_, fmt::format("more than {} arguments", kMaxArguments));
  auto size = static_cast<std::uint32_t>(bytes);
  bind_bytes(&size, sizeof size, "", "");
  bound_[count_ - 1].size = kNoBytes;
  if (recording_) recording_->launch.arguments.back() = {.kind = detail::BoundArgument::Kind::local, .local = size};
  return *this;
}

Tensor Encoder::scratch(const Dims& sizes, DType dtype) {
  Tensor result = empty(sizes, {.dtype = dtype, .device = stream_.device()}, stream_);
  return result;
}

void Encoder::dispatch(const KernelHandle& handle, const Geometry& g) {
  int count = std::exchange(count_, 0);
  int used = std::exchange(used_, 0);
  if (recording_) [[unlikely]]
    count = static_cast<int>(recording_->launch.arguments.size());
  if (handle.empty()) throw Error(ErrorCode::invalid_argument, op_, "the kernel is empty");
  detail::Kernel& kernel = *handle.kernel();
  detail::StreamImpl& stream = *stream_.impl();
  if (&kernel.program().runtime() != &stream.runtime())
    throw Error(ErrorCode::device_mismatch, op_, fmt::format("kernel {} was built for another device", kernel.name()));
  if (count != kernel.argument_count())
    throw Error(ErrorCode::invalid_argument, op_,
                fmt::format("kernel {} takes {} arguments, {} are bound (a tensor binds two)", kernel.name(), kernel.argument_count(), count));
  bool empty = g.global == 0 || g.global_y == 0 || g.global_z == 0;
  if (recording_) [[unlikely]] {
    if (!empty) record(handle, g, static_cast<std::size_t>(used));
    recording_->launch = {};
    detail::last_launch() = {kernel.id(), g, handle.plan()};
    return;
  }
  if (empty) return;
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
    detail::check_argument(status, static_cast<std::uint32_t>(i), kernel, op_);
  }
  detail::check_launch(kernel, g, local_bytes, op_);
  const detail::LaunchSizes sizes(g);
  cl_event event = nullptr;
  stream.next_ticket();
  cl_int status = clEnqueueNDRangeKernel(stream.queue(), lease.get(), sizes.dims, nullptr, sizes.global, sizes.local_or_null(), 0, nullptr, &event);
  detail::check_cl(status, op_, "clEnqueueNDRangeKernel");
  stream.submitted(detail::ClEvent(event), op_);
  detail::last_launch() = {kernel.id(), g, handle.plan()};
  if (kernel.first_launch(g.local, g.local_y, g.local_z)) stream.save_when_idle(&kernel.program());
}

void Encoder::record(const KernelHandle& kernel, const Geometry& geometry, std::size_t bytes) {
  detail::Launch& launch = recording_->launch;
  launch.op = op_, launch.kernel = kernel, launch.geometry = geometry;
  launch.bytes.assign(bytes_, bytes_ + bytes);
  recording_->recorder->kernel(*stream_.impl(), std::move(launch));
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
  if (recording_) {
    recording_->recorder->copy(stream, op_, destination, source);
    return;
  }
  detail::check_placed(from, op_);
  detail::check_placed(to, op_);
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
  if (!task) throw Error(ErrorCode::invalid_argument, op_, "the host task is an empty function");
  detail::note_fallback("host", op_, "runs on the host");
  detail::StreamImpl& stream = *stream_.impl();
  for (auto list : {inputs, outputs})
    for (const Tensor& tensor : list)
      if (&storage_of(tensor, op_).runtime() != &stream.runtime())
        throw Error(ErrorCode::device_mismatch, op_, "a tensor of a host task is of another device or context");
  if (recording_) {
    recording_->recorder->host_task(stream, op_, task, inputs, outputs);
    return;
  }
  std::vector<detail::HostRange> ranges;
  for (bool writes : {false, true})
    for (const Tensor& tensor : writes ? outputs : inputs) {
      detail::Storage& storage = placed_storage_of(tensor, op_);
      storage.used_on(stream_.impl(), writes, op_);
      ranges.push_back({storage.mem(), storage.offset() + tensor.byte_offset(), detail::extent_bytes(tensor), writes});
    }
  stream.next_ticket();
  detail::run_host_task(stream, op_, task, ranges);
}

void Encoder::opaque(const std::function<void(void* queue)>& task, std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  if (!task) throw Error(ErrorCode::invalid_argument, op_, "the opaque task is an empty function");
  opaque([task](void* queue, std::span<const Place>) { task(queue); }, inputs, outputs);
}

void Encoder::opaque(const std::function<void(void* queue, std::span<const Place> places)>& task, std::span<const Tensor> inputs,
                     std::span<const Tensor> outputs) {
  if (!task) throw Error(ErrorCode::invalid_argument, op_, "the opaque task is an empty function");
  detail::StreamImpl& stream = *stream_.impl();
  if (recording_) {
    recording_->recorder->opaque(stream, op_, task, inputs, outputs);
    return;
  }
  std::vector<Place> places;
  for (bool writes : {false, true})
    for (const Tensor& tensor : writes ? outputs : inputs) {
      detail::Storage& storage = placed_storage_of(tensor, op_);
      storage.used_on(stream_.impl(), writes, op_);
      places.push_back({storage.mem(), storage.offset() + tensor.byte_offset()});
    }
  stream.next_ticket();
  task(stream.queue(), places);
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
  detail::check_process(op);
  for (const Argument& a : arguments)
    if (a.tensor) return storage_of(*a.tensor, std::string(op).c_str()).runtime();
  if (!stream.empty()) return stream.impl()->runtime();
  return detail::runtime_of(*current_device().record());
}

}  // namespace

namespace {
void check_source(const KernelSource& source, std::string_view op) {
  if (source.text.empty() || source.entry.empty())
    throw Error(ErrorCode::invalid_argument, op,
                fmt::format("the kernel must have text and an entry, got {} characters and the entry '{}'", source.text.size(), source.entry));
}

void check_arguments(std::span<const Argument> arguments, std::string_view op) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Argument& a = arguments[i];
    auto refuse = [&](std::string_view rule) { throw Error(ErrorCode::invalid_argument, op, fmt::format("argument {} {}", i, rule)); };
    bool is_value = a.kind == Argument::Kind::value, is_local = a.kind == Argument::Kind::local;
    if (!is_value && !is_local && !a.tensor) refuse("must have a tensor, got none");
    if (is_value && (a.size == 0 || a.size > sizeof a.bytes)) refuse(fmt::format("must be a value of 1 to {} bytes, got {}", sizeof a.bytes, a.size));
    if (!a.type || !a.name) refuse("must have a type and a name, which may be empty, got a null pointer");
  }
}
}  // namespace

KernelHandle prepare(const KernelSource& source, const Stream& stream) {
  check_source(source, "prepare");
  detail::Runtime& runtime = runtime_of_call({}, stream, source.entry);
  return KernelHandle(
      &runtime.programs().find({.text = source.text, .file = source.file, .entry = source.entry, .defines = source.defines, .options = source.options}));
}

void launch(const KernelSource& source, const Geometry& geometry, std::span<const Argument> arguments, const Stream& stream) {
  check_source(source, "launch");
  check_arguments(arguments, source.entry);
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
      case Argument::Kind::input: encoder.input(*a.tensor, a.name); break;
      case Argument::Kind::output: encoder.output(*a.tensor, a.name); break;
      case Argument::Kind::inout: encoder.inout(*a.tensor, a.name); break;
      case Argument::Kind::local: encoder.local(a.size); break;
      case Argument::Kind::value: encoder.bytes(a.bytes, a.size, a.type, a.name); break;
    }
  }
  encoder.dispatch(KernelHandle(&kernel), geometry);
}

}  // namespace clutch::inline v0
