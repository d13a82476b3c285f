// SPDX-License-Identifier: Apache-2.0
#include <clutch/dlpack.hpp>

#include "interop/dlpack_abi.hpp"
#include "runtime/op_name.hpp"
#include "runtime/runtime.hpp"
#include "runtime/storage.hpp"
#include "runtime/stream.hpp"

#include <clutch/interop_cl.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace clutch { inline namespace v0 {
namespace {

constexpr std::string_view kFrom = "from_dlpack", kTo = "to_dlpack";

struct TypeRow {
  DType dtype;
  std::uint8_t code, bits;
};
constexpr TypeRow kTypes[] = {
    {DType::i8, 0, 8},      {DType::i16, 0, 16},    {DType::i32, 0, 32},    {DType::i64, 0, 64},      {DType::u8, 1, 8},      {DType::f16, 2, 16},
    {DType::u16, 1, 16},    {DType::u32, 1, 32},    {DType::u64, 1, 64},    {DType::f32, 2, 32},      {DType::f64, 2, 64},    {DType::bf16, 4, 16},
    {DType::c64, 5, 64},    {DType::c128, 5, 128},  {DType::boolean, 6, 8}, {DType::f8e4m3fn, 10, 8}, {DType::f8e5m2, 12, 8}, {DType::f8e8m0fnu, 14, 8},
    {DType::f6e2m3, 15, 6}, {DType::f6e3m2, 16, 6}, {DType::f4e2m1, 17, 4},
};

// export ------------------------------------------------------------------------------------------------------------

/// The owner of an exported tensor.
template <class Managed>
struct Handed {
  Tensor tensor;
  std::vector<std::uint8_t> bytes;
  Dims sizes, strides;
  Managed managed{};
};

template <class Managed>
Managed* hand_out(const Tensor& tensor, interop::DlpackMemory memory, const Stream& given) {
  if (!tensor.defined()) throw Error(ErrorCode::invalid_argument, kTo, "the tensor must be defined, got an undefined one");
  if (bits(tensor.dtype()) < 8 && !tensor.is_contiguous())
    throw Error(ErrorCode::invalid_shape, kTo, fmt::format("a tensor of a packed dtype must be contiguous, got strides {}", to_string(tensor.strides())));
  auto handed = std::make_unique<Handed<Managed>>();
  handed->sizes = tensor.sizes();
  DLTensor& t = handed->managed.dl_tensor;
  if (memory == interop::DlpackMemory::device) {
    detail::resolve_stream(given, tensor.storage()->runtime(), kTo).synchronize();
    handed->tensor = tensor;
    handed->strides = tensor.strides();
    t.data = interop::mem(tensor);
    t.device = {detail::kDlOpenCl, tensor.device().index()};
    t.byte_offset = interop::offset(tensor);
  } else {
    handed->bytes = tensor.to_bytes(given);
    handed->strides = detail::contiguous_strides(tensor.sizes());
    t.data = handed->bytes.data();
    t.device = {detail::kDlCpu, 0};
  }
  for (const TypeRow& row : kTypes)
    if (row.dtype == tensor.dtype()) t.dtype = {row.code, row.bits, 1};
  t.ndim = tensor.rank();
  t.shape = const_cast<std::int64_t*>(handed->sizes.begin());  // DLPack's fields are not const
  t.strides = const_cast<std::int64_t*>(handed->strides.begin());
  handed->managed.manager_ctx = handed.get();
  handed->managed.deleter = [](Managed* managed) { delete static_cast<Handed<Managed>*>(managed->manager_ctx); };
  return &handed.release()->managed;
}

// import ------------------------------------------------------------------------------------------------------------

struct Described {
  DType dtype;
  Dims sizes, strides;
  bool contiguous = true;
};

Described describe(const DLTensor& t) {
  Described d{};
  bool known = false;
  for (const TypeRow& row : kTypes)
    if (row.code == t.dtype.code && row.bits == t.dtype.bits && t.dtype.lanes == 1) d.dtype = row.dtype, known = true;
  if (!known)
    throw Error(ErrorCode::invalid_dtype, kFrom,
                fmt::format("the dtype must be one of clutch's, got code {} of {} bits and {} lanes", t.dtype.code, t.dtype.bits, t.dtype.lanes));
  if (t.ndim < 0 || t.ndim > kMaxRank)
    throw Error(ErrorCode::invalid_shape, kFrom, fmt::format("the tensor must have 0 to {} dimensions, got {}", kMaxRank, t.ndim));
  if (t.ndim > 0 && !t.shape)
    throw Error(ErrorCode::invalid_argument, kFrom, fmt::format("the shape of {} dimensions must be given, got a null pointer", t.ndim));
  for (int i = 0; i < t.ndim; ++i) d.sizes.push_back(t.shape[i]);
  numel(d.sizes);  // throws for invalid sizes
  Dims dense = detail::contiguous_strides(d.sizes);
  for (int i = 0; i < t.ndim; ++i) {
    d.strides.push_back(t.strides ? t.strides[i] : dense[i]);
    d.contiguous = d.contiguous && (d.sizes[i] <= 1 || d.strides[i] == dense[i]);
  }
  if (bits(d.dtype) < 8 && !d.contiguous)
    throw Error(ErrorCode::invalid_shape, kFrom, fmt::format("a tensor of a packed dtype must be contiguous, got strides {}", to_string(d.strides)));
  return d;
}

/// The elements in row-major order. Errors: invalid_shape; out_of_memory for more elements than fit, which strides of 0 can ask for.
std::vector<std::uint8_t> packed(const std::uint8_t* first, const Described& d) {
  auto size = static_cast<std::size_t>(bits(d.dtype) / 8);
  const std::int64_t count = numel(d.sizes);
  if (count > std::int64_t{1} << 57) throw Error(ErrorCode::invalid_shape, kFrom, fmt::format("the tensor must have at most 2^57 elements, got {}", count));
  std::vector<std::uint8_t> bytes;
  try {
    bytes.resize(static_cast<std::size_t>(count) * size);
  } catch (const std::exception&) {
    throw Error(ErrorCode::out_of_memory, kFrom, fmt::format("{} elements of {} bytes wanted on the host", count, size));
  }
  std::int64_t index[kMaxRank] = {}, offset = 0;
  for (std::size_t i = 0; i < bytes.size(); i += size) {
    std::memcpy(bytes.data() + i, first + offset * static_cast<std::int64_t>(size), size);
    for (int k = d.sizes.rank() - 1; k >= 0; --k) {
      if (d.sizes[k] == 1) continue;  // its stride may be any number
      offset += d.strides[k];
      if (++index[k] < d.sizes[k]) break;
      offset -= d.strides[k] * std::exchange(index[k], 0);
    }
  }
  return bytes;
}

/// Number of elements from the first to the last that the strides reach, both included. Negative strides count by their absolute value.
std::int64_t reach(const Described& d) {
  if (numel(d.sizes) == 0) return 0;
  std::int64_t last = 0;
  for (int i = 0; i < d.sizes.rank(); ++i) {
    std::int64_t step = 0;
    if (__builtin_mul_overflow(d.strides[i], d.sizes[i] - 1, &step) || step < -kMaxNumel || step > kMaxNumel)
      throw Error(ErrorCode::invalid_shape, kFrom, fmt::format("the strides must end inside of a memory of 2^63 elements, got {}", to_string(d.strides)));
    last += std::abs(step);
  }
  return last + 1;
}

/// Returns a tensor to its producer by its deleter.
template <class Managed>
struct Held {
  Managed* managed = nullptr;
  ~Held() {
    if (managed && managed->deleter) managed->deleter(managed);
  }
};

template <class Managed>
Tensor in_place(Managed* managed, const Described& d, const Device& device) {
  const DLTensor& t = managed->dl_tensor;
  if (t.byte_offset * 8 % static_cast<std::uint64_t>(std::max(bits(d.dtype), 8)) != 0)
    throw Error(ErrorCode::invalid_shape, kFrom, fmt::format("byte_offset must be a multiple of the size of {}, got {}", name(d.dtype), t.byte_offset));
  auto held = std::make_shared<Held<Managed>>();
  if (std::any_of(d.strides.begin(), d.strides.end(), [](std::int64_t stride) { return stride < 0; }))
    throw Error(ErrorCode::invalid_shape, kFrom, fmt::format("strides must not be negative in memory of a device, got {}", to_string(d.strides)));
  // Errors: those of wrap_kept(), which checks kind, context and size of the buffer.
  Tensor flat = interop::wrap_kept(static_cast<cl_mem>(t.data), {reach(d)}, d.dtype, device, t.byte_offset, held);
  Tensor made = flat.as_strided(d.sizes, d.strides);
  held->managed = managed;  // last, because on an error the caller keeps the tensor
  return made;
}

template <class Managed>
Tensor take(Managed* managed, const Device& device, const Stream& stream) {
  const DLTensor& t = managed->dl_tensor;
  Described d = describe(t);
  if (t.device.device_type == detail::kDlOpenCl) return in_place(managed, d, device);
  if (t.device.device_type != detail::kDlCpu)
    throw Error(
        ErrorCode::not_supported, kFrom,
        fmt::format("memory must be of kDLCPU ({}) or kDLOpenCL ({}), got device type {}", int{detail::kDlCpu}, int{detail::kDlOpenCl}, t.device.device_type));
  const auto* first = static_cast<const std::uint8_t*>(t.data) + t.byte_offset;
  std::uint64_t size = bytes_for(d.dtype, static_cast<std::uint64_t>(numel(d.sizes)));
  if (size > 0 && !t.data) throw Error(ErrorCode::invalid_argument, kFrom, fmt::format("the data of {} bytes must be given, got a null pointer", size));
  Tensor made;
  TensorOptions options{.dtype = d.dtype, .device = device};
  if (d.contiguous) {
    made = from_bytes(first, size, d.sizes, options, stream);
  } else {
    reach(d);  // throws for invalid strides
    std::vector<std::uint8_t> bytes = packed(first, d);
    made = from_bytes(bytes.data(), bytes.size(), d.sizes, options, stream);
  }
  if (managed->deleter) managed->deleter(managed);
  return made;
}

}  // namespace

namespace interop {

DLManagedTensor* to_dlpack(const Tensor& tensor, DlpackMemory memory, const Stream& stream) {
  detail::OpName named("interop::to_dlpack");
  return hand_out<DLManagedTensor>(tensor, memory, stream);
}

DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor, DlpackMemory memory, const Stream& stream) {
  detail::OpName named("interop::to_dlpack_versioned");
  DLManagedTensorVersioned* made = hand_out<DLManagedTensorVersioned>(tensor, memory, stream);
  made->version = {1, 1};
  made->flags = memory == DlpackMemory::host ? detail::kDlCopied : 0;
  return made;
}

Tensor from_dlpack(DLManagedTensor* managed, const Device& device, const Stream& stream) {
  detail::OpName named("interop::from_dlpack");
  if (!managed) throw Error(ErrorCode::invalid_argument, kFrom, "the tensor must be given, got a null pointer");
  return take(managed, device, stream);
}

Tensor from_dlpack(DLManagedTensorVersioned* managed, const Device& device, const Stream& stream) {
  detail::OpName named("interop::from_dlpack");
  if (!managed) throw Error(ErrorCode::invalid_argument, kFrom, "the tensor must be given, got a null pointer");
  if (managed->version.major != 1)
    throw Error(ErrorCode::not_supported, kFrom, fmt::format("DLPack's version must be 1.x, got {}.{}", managed->version.major, managed->version.minor));
  if (managed->flags & detail::kDlPadded)
    throw Error(ErrorCode::not_supported, kFrom, "sub-byte elements must be packed, got elements that are padded to bytes");
  return take(managed, device, stream);
}

}  // namespace interop
}}  // namespace clutch::v0
