// SPDX-License-Identifier: Apache-2.0
#include "runtime/convert.hpp"

#include "runtime/allocator.hpp"
#include "runtime/block.hpp"

#include <c10/core/impl/COW.h>

namespace torch_clutch {

using clutch::DType;

namespace {

struct Pair {
  c10::ScalarType torch;
  DType clutch;
};
constexpr Pair kDTypes[] = {
    {at::kDouble, DType::f64},
    {at::kFloat, DType::f32},
    {at::kHalf, DType::f16},
    {at::kBFloat16, DType::bf16},
    {at::kFloat8_e4m3fn, DType::f8e4m3fn},
    {at::kFloat8_e5m2, DType::f8e5m2},
    {at::kFloat8_e8m0fnu, DType::f8e8m0fnu},
    {at::kChar, DType::i8},
    {at::kByte, DType::u8},
    {at::kShort, DType::i16},
    {at::kInt, DType::i32},
    {at::kLong, DType::i64},
    {at::kBool, DType::boolean},
    {at::kComplexFloat, DType::c64},
    {at::kComplexDouble, DType::c128},
    {at::kUInt16, DType::u16},
    {at::kUInt32, DType::u32},
    {at::kUInt64, DType::u64},
};

}  // namespace

std::optional<DType> dtype_of(c10::ScalarType type, Elements elements) noexcept {
  for (const Pair& pair : kDTypes)
    if (pair.torch == type) return pair.clutch;
  if (elements == Elements::bits) switch (c10::elementSize(type)) {
      case 1: return DType::u8;
      case 2: return DType::i16;
      case 4: return DType::i32;
      case 8: return DType::i64;
      default: break;
    }
  return std::nullopt;
}

DType need_dtype(c10::ScalarType type, Elements elements) {
  const std::optional<DType> found = dtype_of(type, elements);
  if (!found) refuse("clutch has no dtype ", c10::toString(type));
  return *found;
}

c10::ScalarType scalar_type(DType dtype) {
  for (const Pair& pair : kDTypes)
    if (pair.clutch == dtype) return pair.torch;
  refuse("PyTorch has no dtype ", std::string(clutch::name(dtype)));
}

clutch::Dims dims(c10::IntArrayRef sizes) {
  if (sizes.size() > static_cast<std::size_t>(clutch::kMaxRank)) refuse("clutch has up to ", clutch::kMaxRank, " dimensions, got ", sizes.size());
  return clutch::Dims(std::span<const std::int64_t>(sizes.data(), sizes.size()));
}

clutch::Tensor wrap_at(const at::TensorBase& tensor, const void* address, const clutch::Dims& sizes, const clutch::Dims& strides, DType dtype) {
  const Block* block = block_of(tensor.storage().data_ptr());
  if (block == nullptr) return clutch::empty(sizes, {.dtype = dtype, .device = device(tensor.device().index())});  // it has no elements
  return clutch::Tensor(block->bytes.storage(), block->bytes.byte_offset() + (reinterpret_cast<std::uintptr_t>(address) - block->address), sizes, strides,
                        dtype);
}

void own_memory(const at::TensorBase& tensor) {
  if (c10::impl::cow::is_cow_data_ptr(tensor.storage().data_ptr())) tensor.mutable_data_ptr();
}

clutch::Tensor wrap(const at::TensorBase& tensor, Elements elements) {
  TORCH_CHECK(tensor.device().type() == kDevice, "Expected all tensors to be on the same device, but found one on ", tensor.device(), " and one on ",
              c10::DeviceTypeName(kDevice, true));
  if (tensor.is_conj() || tensor.is_neg()) refuse("a lazy conjugate or minus");
  const DType dtype = need_dtype(tensor.scalar_type(), elements);
  const Block* block = block_of(tensor.storage().data_ptr());
  const std::uintptr_t begin = block == nullptr ? 0 : block->address;
  const std::uintptr_t address = begin + static_cast<std::uintptr_t>(tensor.storage_offset()) * tensor.itemsize();
  return wrap_at(tensor, reinterpret_cast<const void*>(address), dims(tensor.sizes()), dims(tensor.strides()), dtype);
}

clutch::Tensor wrap_flat(const at::TensorBase& tensor) {
  return wrap_at(tensor, tensor.const_data_ptr(), {tensor.numel()}, {1}, need_dtype(tensor.scalar_type()));
}

clutch::Tensor wrap(const std::optional<at::Tensor>& tensor) { return tensor.has_value() && tensor->defined() ? wrap(*tensor) : clutch::Tensor(); }

std::vector<clutch::Tensor> wrap(at::TensorList tensors) {
  std::vector<clutch::Tensor> wrapped;
  wrapped.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) wrapped.push_back(wrap(tensor));
  return wrapped;
}

at::Tensor unwrap(const clutch::Tensor& tensor) {
  if (!tensor.defined()) return {};
  // The block begins at element 0 and ends behind the last element that the strides reach.
  std::int64_t last = 0;
  for (int d = 0; d < tensor.rank(); ++d) last += (tensor.sizes()[d] - 1) * tensor.strides()[d];
  const std::uint64_t size = tensor.numel() == 0 ? 0 : clutch::bytes_for(tensor.dtype(), static_cast<std::uint64_t>(last) + 1);
  const auto index = static_cast<c10::DeviceIndex>(tensor.device().index());
  c10::DataPtr memory = empty_pointer(index);
  if (size > 0) memory = adopt(clutch::Tensor(tensor.storage(), tensor.byte_offset(), {static_cast<std::int64_t>(size)}, {1}, DType::u8), index);
  c10::Storage storage(c10::Storage::use_byte_size_t(), size, std::move(memory), &allocator(), true);
  auto made = c10::make_intrusive<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                                   c10::scalarTypeToTypeMeta(scalar_type(tensor.dtype())));
  const auto rank = static_cast<std::size_t>(tensor.rank());
  made->set_sizes_and_strides(c10::IntArrayRef(tensor.sizes().begin(), rank), c10::IntArrayRef(tensor.strides().begin(), rank));
  return at::Tensor::wrap_tensor_impl(std::move(made));
}

}  // namespace torch_clutch
