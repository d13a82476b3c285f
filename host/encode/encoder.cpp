// SPDX-License-Identifier: Apache-2.0
#include <clutch/kernel.hpp>

#include "encode/cost.hpp"
#include "program/binary_check.hpp"
#include "program/program.hpp"
#include "runtime/last_launch.hpp"
#include "runtime/op_name.hpp"
#include "runtime/profile_log.hpp"
#include "runtime/recorder.hpp"
#include "runtime/runtime.hpp"
#include "runtime/settings.hpp"
#include "runtime/storage.hpp"
#include "runtime/tensor_table.hpp"

#include <fmt/format.h>

namespace clutch { inline namespace v0 {

KernelHandle::KernelHandle(detail::Kernel* kernel, const detail::Interned& plan) noexcept : kernel_(kernel), plan_(plan.get()) {}
detail::Interned KernelHandle::plan() const noexcept { return plan_ ? detail::Interned(plan_) : kernel_ ? kernel_->plan() : detail::Interned(); }
std::uint64_t KernelHandle::max_work_group() const { return kernel_ ? kernel_->max_work_group() : 0; }
std::vector<std::byte> KernelHandle::binary() const {
  constexpr const char* kOp = "KernelHandle::binary";
  detail::check_process(kOp);
  if (!kernel_) throw Error(ErrorCode::invalid_argument, kOp, "the handle must have a kernel, got an empty one");
  const std::string binary = kernel_->program().binary();
  if (binary.empty()) throw Error(ErrorCode::not_supported, kOp, fmt::format("the driver must give the binary of {}, got none", kernel_->name()));
  const auto bytes = std::as_bytes(std::span(binary));
  return {bytes.begin(), bytes.end()};
}

Encoder::Encoder(const Stream& stream, const char* op) : stream_(stream), op_(detail::OpName::or_else(op)) {
  if (stream.empty()) throw Error(ErrorCode::invalid_argument, op_, "the Encoder's Stream must be a made one, got an empty one");
  stream.impl()->check(op_);
  recorder_ = stream.impl()->recorder();
  launch_.reset(new detail::Launch);  // not make_unique(), which would clear the memory for arguments
  launch_->op = op_;
  if (detail::profiled() != 0) [[unlikely]]
    detail::begin_op(this, op);
}

Encoder::~Encoder() {
  if (detail::profiled() != 0) [[unlikely]]
    detail::end_op(this);
}

void Encoder::check_tensor(const Tensor& tensor, const char* what) const {
  if (!tensor.defined()) throw Error(ErrorCode::invalid_argument, op_, "a tensor must be defined, got an undefined one");
  if (&tensor.storage()->runtime() != &stream_.impl()->runtime())
    throw Error(ErrorCode::device_mismatch, op_, fmt::format("{} must be of the stream's device and context, got one of another", what));
}

double detail::distinct_bytes(const Tensor& tensor) {
  if (tensor.is_contiguous()) return static_cast<double>(tensor.nbytes());
  double elements = 1;
  for (int d = 0; d < tensor.rank(); ++d)
    if (tensor.strides()[d] != 0 || tensor.sizes()[d] == 0) elements *= static_cast<double>(tensor.sizes()[d]);
  return elements * bits(tensor.dtype()) / 8;
}

Encoder& Encoder::flops(double count) noexcept {
  launch_->cost.flops = count;
  return *this;
}

bool Encoder::asks_for_meaning() const noexcept { return recorder_->asks_for_meaning(); }

Encoder& Encoder::means(std::shared_ptr<const detail::Meaning> meaning) noexcept {
  launch_->meaning = std::move(meaning);
  return *this;
}

Encoder& Encoder::moves(double bytes) noexcept {
  launch_->cost.bytes = bytes, launch_->states_bytes = true;
  return *this;
}

void Encoder::add_bytes(const Tensor& tensor, int times) noexcept {
  const double bytes = detail::distinct_bytes(tensor) * times;
  if (!launch_->states_bytes) launch_->cost.bytes += bytes;
  (tensor.dtype() == DType::f64 || tensor.dtype() == DType::c128 ? launch_->bytes64 : launch_->other_bytes) += bytes;
}

Encoder& Encoder::bind(const Tensor& tensor, Argument::Kind kind, const char* name) {
  check_tensor(tensor, "a tensor");
  recorder_->operand(stream_.impl(), *launch_, tensor, kind, name);
  if (detail::profiled() & detail::kProfileShapes) [[unlikely]]
    detail::note_operand(tensor);
  add_bytes(tensor, kind == Argument::Kind::inout ? 2 : 1);
  return *this;
}

Encoder& Encoder::bind_bytes(const void* bytes, std::size_t size, const char* type, const char* name) {
  launch_->bind(bytes, size, type, name);
  return *this;
}

Encoder& Encoder::local(std::size_t bytes) {
  if (!launch_->arguments.fits(1) || bytes > 0xFFFF'FFFF)
    throw Error(ErrorCode::invalid_argument, op_,
                fmt::format("local memory must be at most {} bytes and argument {} at most, got {} bytes", 0xFFFF'FFFFu, detail::Launch::kMaxArguments, bytes));
  launch_->arguments.push_back({.kind = detail::BoundArgument::Kind::local, .local = static_cast<std::uint32_t>(bytes)});
  return *this;
}

Encoder& Encoder::table(TensorTable& table, std::span<const Tensor* const> tensors) {
  detail::TableState& state = *table.state_;
  const std::size_t columns = state.columns.size();
  if (columns == 0 || tensors.empty() || tensors.size() % columns != 0)
    throw Error(ErrorCode::invalid_argument, op_,
                fmt::format("a table of {} columns must have a multiple of as many tensors, got {}", columns, tensors.size()));
  for (const Tensor* tensor : tensors)
    if (tensor) {
      check_tensor(*tensor, "a tensor");
      add_bytes(*tensor, 1);
    }
  recorder_->table(stream_.impl(), *launch_, state, tensors);
  return *this;
}

Tensor Encoder::scratch(const Dims& sizes, DType dtype) { return empty(sizes, {.dtype = dtype, .device = stream_.device()}, stream_); }

void Encoder::dispatch(const KernelHandle& handle, const Geometry& g) {
  struct UsedUp {  // also after a call that fails
    detail::Launch& launch;
    ~UsedUp() { launch.clear(); }
  } used_up{*launch_};
  if (handle.empty()) throw Error(ErrorCode::invalid_argument, op_, "the kernel must be a built one, got an empty handle");
  const detail::Kernel& kernel = *handle.kernel();
  if (&kernel.program().runtime() != &stream_.impl()->runtime())
    throw Error(ErrorCode::device_mismatch, op_, fmt::format("kernel {} must be built for the stream's device and context, got one of another", kernel.name()));
  const auto bound = static_cast<int>(launch_->arguments.size());
  if (bound != kernel.argument_count())
    throw Error(ErrorCode::invalid_argument, op_,
                fmt::format("kernel {} must have {} arguments, got {} (a tensor binds two)", kernel.name(), kernel.argument_count(), bound));
  if (g.global == 0 || g.global_y == 0 || g.global_z == 0) {
    detail::last_launch().note(handle.plan());
    return;
  }
  const auto& partition = stream_.impl()->partition();
  const Geometry geometry = partition && kernel.takes_any_groups() ? partition->within_units(g) : g;
  launch_->kernel = handle, launch_->geometry = kernel.with_local(geometry), launch_->cost = launch_->whole_cost();
  recorder_->kernel(stream_.impl(), *launch_);
  detail::last_launch().note(handle.plan(), kernel.id(), geometry);
  detail::last_launch().cost += launch_->cost;
}

void Encoder::copy(const Tensor& destination, const Tensor& source) {
  check_tensor(destination, "tensors of a copy");
  check_tensor(source, "tensors of a copy");
  if (!destination.is_contiguous() || !source.is_contiguous() || destination.nbytes() != source.nbytes())
    throw Error(ErrorCode::invalid_shape, op_,
                fmt::format("a byte copy must have contiguous tensors of equal size, got {} and {} bytes", destination.nbytes(), source.nbytes()));
  if (source.nbytes() == 0) return;
  recorder_->copy(stream_.impl(), op_, destination, source);
  detail::last_launch().cost += detail::copy_cost(source.nbytes());
}

void Encoder::host_task(const std::function<void(std::span<void* const>)>& task, std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                        std::string_view plan) {
  if (!task) throw Error(ErrorCode::invalid_argument, op_, "the host task must be a function, got an empty one");
  detail::note_fallback("host", op_, "runs on the host");
  hand_over({.op = op_, .task = task, .inputs = inputs, .outputs = outputs}, plan);
}

void Encoder::opaque(const std::function<void(void* queue)>& task, std::span<const Tensor> inputs, std::span<const Tensor> outputs, std::string_view plan) {
  if (!task) throw Error(ErrorCode::invalid_argument, op_, "the opaque task must be a function, got an empty one");
  hand_over({.op = op_, .opaque = [task](void* queue, std::span<const Place>) { task(queue); }, .inputs = inputs, .outputs = outputs, .knows_memory = true},
            plan);
}

void Encoder::opaque(const std::function<void(void* queue, std::span<const Place> places)>& task, std::span<const Tensor> inputs,
                     std::span<const Tensor> outputs, std::string_view plan) {
  if (!task) throw Error(ErrorCode::invalid_argument, op_, "the opaque task must be a function, got an empty one");
  hand_over({.op = op_, .opaque = task, .inputs = inputs, .outputs = outputs}, plan);
}

void Encoder::hand_over(detail::HostWork work, std::string_view plan) {
  for (auto list : {work.inputs, work.outputs})
    for (const Tensor& tensor : list) check_tensor(tensor, "a tensor of the task");
  if (!plan.empty()) work.plan = detail::Interned(plan);
  // Flops and bytes stated so far belong to the task.
  for (auto list : {work.inputs, work.outputs})
    for (const Tensor& tensor : list) add_bytes(tensor, 1);
  work.cost = launch_->whole_cost();
  recorder_->host(stream_.impl(), work);
  detail::last_launch().cost += work.cost;
  launch_->clear_cost();
  if (!plan.empty()) detail::last_launch().note(work.plan);
}

namespace {

// A wrapper kernel adds the byte offsets and calls the entry. OpenCL C lets kernels call kernels, and sub-buffers with their alignment rules are avoided.
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
        parameters += fmt::format("{}__local long16* a{}", comma, i);  // drivers align local memory to the type that they are told
        call += fmt::format("{}(__local void*)a{}", comma, i);
        break;
      default: parameters += fmt::format("{}__global uchar* a{}, ulong o{}", comma, i, i); call += fmt::format("{}(__global void*)(a{} + o{})", comma, i, i);
    }
  }
  // Some compilers only warn of a number that is passed for a pointer, and the kernel would write through it.
  constexpr std::string_view kStrict = R"(#ifdef __clang__
#if __has_warning("-Wint-conversion")
#pragma clang diagnostic error "-Wint-conversion"
#endif
#endif
)";
  // In a branch of cond() and the like the kernel has a predicate in front.
  return fmt::format(R"({0}#ifdef CLUTCH_PREDICATED
#line 1 "<call of {1}>"
__kernel void {2}(__global const uchar* predicate, ulong predicate_offset{3}{4}) {{
  if (*(__global const uint*)(predicate + predicate_offset) == 0) return;
  {1}({5});
}}
#else
#line 1 "<call of {1}>"
__kernel void {2}({4}) {{ {1}({5}); }}
#endif
)",
                     kStrict, source.entry, wrapper, parameters.empty() ? "" : ", ", parameters, call);
}

detail::Runtime& runtime_of_call(std::span<const Argument> arguments, const Stream& stream, std::string_view op) {
  detail::check_process(op);
  for (const Argument& a : arguments)
    if (a.tensor) return detail::storage_of(*a.tensor, op).runtime();
  if (!stream.empty()) return stream.impl()->runtime();
  return detail::runtime_of(*current_device().record());
}

}  // namespace

namespace {
std::string_view text_of(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

void check_source(const KernelSource& source, std::string_view op) {
  auto refuse = [&](std::string_view why) { throw Error(ErrorCode::invalid_argument, op, why); };
  const int forms = !source.text.empty() + !source.binary.empty() + !source.spirv.empty();
  if (forms != 1 || source.entry.empty())
    refuse(fmt::format("the kernel must have an entry and one of text, binary and spirv, got the entry '{}' and {} of them", source.entry, forms));
  if (!source.text.empty()) return;
  if (source.addressing != Addressing::base_and_offset)
    refuse("a kernel without text must have Addressing::base_and_offset, since no wrapper can be added, got Addressing::pointer");
  if (!source.defines.entries().empty()) refuse(fmt::format("a kernel without text must have no defines, got {}", source.defines.to_string()));
  std::uint32_t first = 0;
  if (source.spirv.size() >= sizeof first) std::memcpy(&first, source.spirv.data(), sizeof first);
  if (!source.spirv.empty() && (source.spirv.size() % 4 != 0 || first != detail::kSpirvMagic))
    refuse(fmt::format("SPIR-V must be 32-bit words of which the first is {:#010x}, got {} bytes that begin with {:#010x}", detail::kSpirvMagic,
                       source.spirv.size(), first));
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

namespace {
detail::ProgramRequest request_of(const KernelSource& source) {
  return {.text = source.text,
          .file = source.file,
          .entry = source.entry,
          .defines = source.defines,
          .options = source.options,
          .binary = text_of(source.binary),
          .spirv = text_of(source.spirv)};
}
}  // namespace

KernelHandle prepare(const KernelSource& source, const Stream& stream) {
  check_source(source, "prepare");
  detail::Runtime& runtime = runtime_of_call({}, stream, source.entry);
  return KernelHandle(&runtime.programs().find(request_of(source)));
}

void launch(const KernelSource& source, const Geometry& geometry, std::span<const Argument> arguments, const Stream& stream) {
  check_source(source, "launch");
  check_arguments(arguments, source.entry);
  detail::Runtime& runtime = runtime_of_call(arguments, stream, source.entry);
  Stream on = detail::resolve_stream(stream, runtime, source.entry);
  detail::ProgramRequest request = request_of(source);
  std::string wrapper, wrapper_text;
  if (source.addressing == Addressing::pointer) {
    wrapper = fmt::format("clutch_call_{}", source.entry);
    wrapper_text = wrap_entry(source, arguments, wrapper);
    request.wrapper_name = wrapper, request.wrapper_text = wrapper_text;
  }
  detail::Kernel& kernel = runtime.programs().find(request);
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

}}  // namespace clutch::v0
