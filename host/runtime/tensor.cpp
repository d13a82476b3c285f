// SPDX-License-Identifier: Apache-2.0
#include <clutch/tensor.hpp>

#include "runtime/last_launch.hpp"
#include "runtime/op_name.hpp"
#include "runtime/profile_log.hpp"
#include "runtime/recorder.hpp"
#include "runtime/runtime.hpp"
#include "runtime/settings.hpp"
#include "runtime/storage.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <ostream>

namespace clutch { inline namespace v0 {

namespace {

void poison(const Stream& stream, const Tensor& tensor) { stream.impl()->recorder()->fill(stream.impl(), "empty", tensor, 0xFF); }

/// The value of stored element `i` as text.
std::string element_text(const std::uint8_t* data, std::uint64_t i, DType dtype) {
  auto read = [&]<class T>(T) {
    T v;
    std::memcpy(&v, data + i * sizeof(T), sizeof(T));
    return v;
  };
  switch (dtype) {
    case DType::f64: return fmt::format("{:.6g}", read(double{}));
    case DType::f32: return fmt::format("{:.6g}", read(float{}));
    case DType::i8: return fmt::format("{}", static_cast<int>(read(std::int8_t{})));
    case DType::u8: return fmt::format("{}", static_cast<int>(read(std::uint8_t{})));
    case DType::i16: return fmt::format("{}", read(std::int16_t{}));
    case DType::i32: return fmt::format("{}", read(std::int32_t{}));
    case DType::i64: return fmt::format("{}", read(std::int64_t{}));
    case DType::u16: return fmt::format("{}", read(std::uint16_t{}));
    case DType::u32: return fmt::format("{}", read(std::uint32_t{}));
    case DType::u64: return fmt::format("{}", read(std::uint64_t{}));
    case DType::boolean: return read(std::uint8_t{}) ? "true" : "false";
    case DType::c64: {
      auto v = read(std::complex<float>{});
      return fmt::format("{:.6g}{:+.6g}i", v.real(), v.imag());
    }
    case DType::c128: {
      auto v = read(std::complex<double>{});
      return fmt::format("{:.6g}{:+.6g}i", v.real(), v.imag());
    }
    default: break;
  }
  auto width = static_cast<std::uint64_t>(bits(dtype));
  std::uint32_t raw = 0;
  for (std::uint64_t b = 0; b < width; ++b) raw |= static_cast<std::uint32_t>(data[(i * width + b) / 8] >> ((i * width + b) % 8) & 1) << b;
  return fmt::format("{:.6g}", decode_small_float(static_cast<std::uint16_t>(raw), dtype));
}

constexpr std::int64_t kEdge = 3;         // elements shown at each end of a long dimension
constexpr std::int64_t kShownWhole = 12;  // largest size of a dimension that is shown whole

void print_dim(std::string& text, const std::uint8_t* data, const Dims& sizes, int dim, std::uint64_t at, DType dtype) {
  if (dim == sizes.rank()) {
    text += element_text(data, at, dtype);
    return;
  }
  text += '[';
  std::int64_t n = sizes[dim];
  std::uint64_t step = 1;
  for (int d = dim + 1; d < sizes.rank(); ++d) step *= static_cast<std::uint64_t>(sizes[d]);
  for (std::int64_t i = 0; i < n; ++i) {
    if (i > 0) text += ", ";
    if (n > kShownWhole && i == kEdge) {
      text += "..., ";
      i = n - kEdge;
    }
    print_dim(text, data, sizes, dim + 1, at + static_cast<std::uint64_t>(i) * step, dtype);
  }
  text += ']';
}

}  // namespace

namespace {

Tensor allocate(const Dims& sizes, const TensorOptions& options, const Stream& stream) {
  std::uint64_t bytes = bytes_for(options.dtype, static_cast<std::uint64_t>(numel(sizes)));
  stream.impl()->check("empty");
  auto storage = std::make_shared<detail::Storage>(stream.impl(), bytes, "empty");
  return Tensor(std::move(storage), 0, sizes, detail::contiguous_strides(sizes), options.dtype);
}

/// A tensor that the host writes, for a simulator that tracks written bytes. Oclgrind 21.10 forgets earlier writes to a buffer when the host writes to it, so
/// each such tensor gets a buffer of its own. That buffer is never released, since the simulator would use its number again.
Tensor allocate_alone(const Dims& sizes, const TensorOptions& options, const Stream& stream, std::uint64_t bytes) {
  cl_int status = CL_SUCCESS;
  cl_mem raw = clCreateBuffer(stream.impl()->runtime().context(), CL_MEM_READ_WRITE, bytes, nullptr, &status);
  detail::check_cl(status, "from_bytes", "clCreateBuffer");
  detail::check_cl(clRetainMemObject(raw), "from_bytes", "clRetainMemObject");
  auto storage = std::make_shared<detail::Storage>(stream.impl()->runtime(), detail::ClMem(raw), bytes);
  storage->set_branch(detail::current_branch_id());
  return Tensor(std::move(storage), 0, sizes, detail::contiguous_strides(sizes), options.dtype);
}

}  // namespace

Tensor empty(const Dims& sizes, const TensorOptions& options, const Stream& given) {
  detail::OpName named("empty");
  Stream stream = detail::stream_for(given, options.device, "empty");
  Tensor result = allocate(sizes, options, stream);
  if (result.numel() > 0 && detail::the_settings().poison_scratch.on()) poison(stream, result);
  return result;
}

Tensor from_bytes(const void* data, std::uint64_t bytes, const Dims& sizes, const TensorOptions& options, const Stream& given) {
  detail::OpName named("from_bytes");
  std::uint64_t wanted = bytes_for(options.dtype, static_cast<std::uint64_t>(numel(sizes)));
  if (wanted != bytes)
    throw Error(ErrorCode::invalid_argument, "from_bytes",
                fmt::format("{} of {} must have {} bytes, got {}", to_string(sizes), name(options.dtype), wanted, bytes));
  if (!data && bytes > 0) throw Error(ErrorCode::invalid_argument, "from_bytes", fmt::format("data of {} bytes must be given, got a null pointer", bytes));
  Stream stream = detail::stream_for(given, options.device, "from_bytes");
  bool simulated = bytes > 0 && !stream.is_capturing() && stream.impl()->runtime().device().facts.simulator;
  Tensor result = simulated ? allocate_alone(sizes, options, stream, bytes) : allocate(sizes, options, stream);
  if (bytes == 0) return result;
  // The caller may free `data` at once, so the enqueued write reads a copy that lives until the write is done.
  auto staged = std::make_shared_for_overwrite<std::uint8_t[]>(bytes);
  std::memcpy(staged.get(), data, bytes);
  stream.impl()->recorder()->upload(stream.impl(), "from_bytes", result, std::move(staged));
  detail::last_launch().cost += detail::copy_cost(bytes);
  return result;
}

/// Writes a contiguous tensor. With `keep` the stream reads the caller's memory later, and holds what `keep` points to until then.
void Tensor::put(std::span<const std::byte> bytes, const std::shared_ptr<const void>* keep, const Stream& stream, const char* op) const {
  const detail::StreamRef& impl = stream.impl();
  impl->check(op);
  if (!stream.is_capturing() && impl->runtime().device().facts.simulator) {  // from_bytes() knows what a simulator cannot do
    impl->recorder()->copy(impl, op, *this, from_bytes(bytes.data(), bytes.size(), sizes_, {.dtype = dtype_, .device = stream.device()}, stream));
    return;
  }
  detail::last_launch().cost += detail::copy_cost(bytes.size());
  // A capture keeps the bytes. While any is underway, and in branches, nothing may wait.
  const bool may_wait = !detail::recording_underway() && !detail::current_branch();
  const bool puts_aside = stream.is_capturing() || (!keep && (bytes.size() <= kPutAside || !may_wait));
  if (puts_aside) {
    auto data = std::make_shared_for_overwrite<std::uint8_t[]>(bytes.size());
    std::memcpy(data.get(), bytes.data(), bytes.size());
    impl->recorder()->upload(impl, op, *this, std::move(data));
    return;
  }
  // The stream only reads this memory.
  auto* given = const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(bytes.data()));
  const std::shared_ptr<std::uint8_t[]> lent(keep ? *keep : nullptr, given);
  if (keep) return impl->recorder()->upload(impl, op, *this, lent);
  try {
    impl->recorder()->upload(impl, op, *this, lent);
    stream.synchronize();
  } catch (...) {
    impl->end()->finish();  // ends all reads of the memory, which the caller may free at once
    throw;
  }
}

Tensor Tensor::to(const Device& target) const {
  detail::OpName named("Tensor::to");
  if (target.empty() || target == device()) return *this;
  std::vector<std::uint8_t> bytes = to_bytes();
  return from_bytes(bytes.data(), bytes.size(), sizes_, {.dtype = dtype_, .device = target});
}

void Tensor::check_host_type(DType wanted, const char* op) const {
  if (wanted != dtype_)
    throw Error(ErrorCode::invalid_dtype, op, fmt::format("the tensor must be of {} to be read so, got {}; cast it with to()", name(wanted), name(dtype_)));
}

void Tensor::check_host_memory(const void* destination, std::size_t elements) const {
  if (elements != static_cast<std::size_t>(numel_))
    throw Error(ErrorCode::invalid_argument, "Tensor::read_into", fmt::format("the destination must have the tensor's {} elements, got {}", numel_, elements));
  if (!destination && elements > 0)
    throw Error(ErrorCode::invalid_argument, "Tensor::read_into", fmt::format("a destination of {} elements must be given, got a null pointer", elements));
}

void Tensor::read_bytes(std::span<std::byte> destination, const Stream& stream) const {
  detail::OpName named("Tensor::read_bytes");
  if (destination.size() != nbytes())
    throw Error(ErrorCode::invalid_argument, "Tensor::read_bytes",
                fmt::format("the destination must have the tensor's {} bytes, got {}", nbytes(), destination.size()));
  if (!destination.data() && !destination.empty())
    throw Error(ErrorCode::invalid_argument, "Tensor::read_bytes",
                fmt::format("a destination of {} bytes must be given, got a null pointer", destination.size()));
  read(destination.data(), stream, "Tensor::read_bytes");
}

void Tensor::read(void* destination, const Stream& given, const char* op) const {
  detail::OpName named(op);
  detail::Storage& storage = detail::storage_of(*this, op);
  Stream stream = detail::resolve_stream(given, storage.runtime(), op);
  detail::HostRead reading(*stream.impl(), op, this, destination);
  if (reading.supplied()) return;
  if (detail::illegal_on(*stream.impl(), op) || detail::illegal_beside(op)) {
    std::memset(destination, 0, nbytes());
    return;
  }
  detail::check_placed(storage, op);
  if (numel_ == 0) {
    stream.synchronize();
    reading.done();
    return;
  }
  Tensor source = contiguous(stream);
  detail::Storage& from = *source.storage();
  from.used_on(stream.impl(), false, op);
  stream.impl()->check(op);
  auto turn = detail::turn_of(*stream.impl());
  stream.impl()->next_ticket();
  cl_event event = nullptr;
  const detail::ProfiledCommand profile;
  detail::check_cl(clEnqueueReadBuffer(stream.impl()->queue(), from.mem(), CL_FALSE, from.offset() + source.byte_offset(), source.nbytes(), destination, 0,
                                       nullptr, profile ? &event : stream.impl()->event_of_next(event)),
                   op, "clEnqueueReadBuffer");
  profile.enqueued(
      *stream.impl(), event,
      {.kind = detail::RecordKind::read, .call = "clEnqueueReadBuffer", .name = "Tensor::read", .cost = {.bytes = static_cast<double>(source.nbytes())}});
  try {
    stream.impl()->submitted(detail::ClEvent(event), op);
    if (turn) turn.unlock();
    stream.synchronize();
  } catch (...) {
    clFinish(stream.impl()->queue());  // ends all writes to the memory, which the caller may free at once
    throw;
  }
  reading.done();
}

template <>
std::vector<bool> Tensor::to_host<bool>(const Stream& stream) const {
  check_host_type(DType::boolean, "Tensor::to_host");
  std::vector<std::uint8_t> bytes = to_bytes(stream);
  return {bytes.begin(), bytes.end()};
}

std::vector<std::uint8_t> Tensor::to_bytes(const Stream& stream) const {
  detail::OpName named("Tensor::to_bytes");
  std::vector<std::uint8_t> bytes(nbytes());
  read(bytes.data(), stream, "Tensor::to_bytes");
  return bytes;
}

double Tensor::item(const Stream& stream) const {
  detail::OpName named("Tensor::item");
  if (numel_ != 1) throw Error(ErrorCode::invalid_shape, "item", fmt::format("the tensor must have one element, got {}", numel_));
  std::vector<std::uint8_t> b = to_bytes(stream);
  auto as = [&]<class T>(T v) {
    std::memcpy(&v, b.data(), sizeof v);
    return static_cast<double>(v);
  };
  switch (dtype_) {
    case DType::f64:
    case DType::c128: return as(double{});
    case DType::f32:
    case DType::c64: return as(float{});
    case DType::i8: return as(std::int8_t{});
    case DType::u8:
    case DType::boolean: return as(std::uint8_t{});
    case DType::i16: return as(std::int16_t{});
    case DType::i32: return as(std::int32_t{});
    case DType::i64: return as(std::int64_t{});
    case DType::u16: return as(std::uint16_t{});
    case DType::u32: return as(std::uint32_t{});
    case DType::u64: return as(std::uint64_t{});
    case DType::f16:
    case DType::bf16: return decode_small_float(static_cast<std::uint16_t>(b[0] | b[1] << 8), dtype_);
    default: return decode_small_float(static_cast<std::uint16_t>(b[0] & ((1u << bits(dtype_)) - 1)), dtype_);
  }
}

std::string Tensor::to_string(const Stream& stream) const {
  detail::OpName named("Tensor::to_string");
  if (!defined()) return "tensor(undefined)";
  std::vector<std::uint8_t> bytes = to_bytes(stream);
  std::string text = "tensor(";
  if (numel_ == 0)
    text += "[]";
  else
    print_dim(text, bytes.data(), sizes_, 0, 0, dtype_);
  if (numel_ == 0 || rank() > 1) text += fmt::format(", sizes={}", clutch::to_string(sizes_));
  return text + fmt::format(", {})", name(dtype_));
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << tensor.to_string(); }

DType result_type(std::span<const Tensor* const> tensors) {
  detail::OpName named("result_type");
  // PyTorch's rule: a rank-0 tensor decides only if no other tensor is of its kind or a later one.
  auto category = [](DType d) { return kind(d) == DTypeKind::boolean ? 0 : is_integral(d) ? 1 : is_floating(d) ? 2 : 3; };
  bool has_dim = false, has_zero = false;
  DType dim{}, zero{};
  for (const Tensor* t : tensors) {
    bool& has = t->rank() > 0 ? has_dim : has_zero;
    DType& slot = t->rank() > 0 ? dim : zero;
    slot = has ? promote_types(slot, t->dtype()) : t->dtype();
    has = true;
  }
  if (!has_zero) return dim;
  if (!has_dim) return zero;
  // A complex number beside floats counts by its kind alone.
  if (is_complex(zero) && (dim == DType::f64 || dim == DType::f32 || dim == DType::f16 || dim == DType::bf16))
    return dim == DType::f64 ? DType::c128 : DType::c64;
  return category(zero) > category(dim) ? promote_types(dim, zero) : dim;
}

}}  // namespace clutch::v0
