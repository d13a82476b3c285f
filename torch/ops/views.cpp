// SPDX-License-Identifier: Apache-2.0
// Views, sizes and storages: no launch, but for a storage that grows.
#include "ops/table.hpp"
#include "runtime/allocator.hpp"

#include <ATen/EmptyTensor.h>
#include <ATen/core/IListRef.h>
#include <ATen/native/Resize.h>
#include <ATen/native/ResizeCommon.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_cpu_dispatch.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/set_cpu_dispatch.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>

namespace torch_clutch {
namespace {

at::Tensor as_strided(const at::Tensor& self, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides, std::optional<c10::SymInt> offset) {
  return at::cpu::as_strided_symint(self, sizes, strides, offset);
}
at::Tensor view(const at::Tensor& self, c10::SymIntArrayRef sizes) { return at::native::view(self, C10_AS_INTARRAYREF_SLOW(sizes)); }
at::Tensor reshape_alias(const at::Tensor& self, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides) {
  return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides));
}
at::Tensor unfold(const at::Tensor& self, int64_t dim, int64_t size, int64_t step) { return at::native::unfold(self, dim, size, step); }
at::Tensor view_as_real(const at::Tensor& self) { return at::native::view_as_real(self); }
at::Tensor view_as_complex(const at::Tensor& self) { return at::native::view_as_complex(self); }

// PyTorch's own resize_ would copy bytes between addresses that are none of the host's.
const at::Tensor& resize_(const at::Tensor& self, c10::SymIntArrayRef symbolic, std::optional<at::MemoryFormat> format) {
  const c10::IntArrayRef sizes = C10_AS_INTARRAYREF_SLOW(symbolic);
  if (self.sizes() == sizes && !format.has_value()) return self;
  const int64_t elements = c10::multiply_integers(sizes), before = static_cast<int64_t>(self.storage().nbytes());
  const size_t needed = at::detail::computeStorageNbytesContiguous(sizes, self.itemsize(), static_cast<size_t>(self.storage_offset()));
  if (elements > 0 && needed > self.storage().nbytes()) at::native::resize_bytes_nocuda(self.storage(), static_cast<int64_t>(needed));
  at::TensorImpl* impl = self.unsafeGetTensorImpl();
  impl->generic_set_sizes_contiguous(sizes);
  if (format.has_value()) {
    TORCH_CHECK(*format != at::MemoryFormat::Preserve, "Unsupported memory format", *format);
    impl->empty_tensor_restride(*format);
  }
  if (fills_memory()) at::native::fill_resize_deterministic_(self, before);
  return self;
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) { return at::native::set_tensor_(self, source); }
at::Tensor& set_storage(at::Tensor& self, at::Storage source) { return at::native::set_(self, source); }
at::Tensor& set_storage_offset(at::Tensor& self, at::Storage source, int64_t offset, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  return at::cpu::set_(self, source, offset, sizes, strides);
}
at::Tensor& set_nothing(at::Tensor& self) {
  at::Tensor empty = at::empty({0}, self.options());
  return at::native::set_tensor_(self, empty);
}

// Whether tensor.data = other is possible: by it a module keeps its parameters, those shared by two layers too, when it moves to another device.
bool compatible(const at::Tensor& self, const at::Tensor& from) {
  auto dense = [](const at::Tensor& tensor) { return tensor.key_set().has(c10::DispatchKey::CPU) || tensor.key_set().has(c10::DispatchKey::PrivateUse1); };
  return self.key_set() == from.key_set() || (dense(self) && dense(from));
}

// Memory notes by itself each stream that uses it.
void record_stream(at::Tensor&, at::Stream) {}

}  // namespace

void add_views(OpTable& table) {
  table.family("views");
  table.add<"as_strided", &as_strided>("a view");
  table.add<"view", &view>("a view");
  table.add<"_reshape_alias", &reshape_alias>("a view");
  table.add<"unfold", &unfold>("a view");
  table.add<"view_as_real", &view_as_real>("a view");
  table.add<"view_as_complex", &view_as_complex>("a view");
  table.add<"_has_compatible_shallow_copy_type", &compatible>("a view");
  table.add<"is_set_to", &at::native::is_set_to>("a view");
  table.add<"resize_", &resize_>("empty, copy_");
  table.add<"record_stream", &record_stream>("memory notes its streams");
  table.add<"set_", &set_nothing>("empty");
  table.add<"set_.source_Tensor", &set_tensor>("a view");
  table.add<"set_.source_Storage", &set_storage>("a view");
  table.add<"set_.source_Storage_storage_offset", &set_storage_offset>("a view");
}

}  // namespace torch_clutch
