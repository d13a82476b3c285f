// SPDX-License-Identifier: Apache-2.0
// Tensors of PyTorch as tensors of clutch and back: the same memory, no copy.
#pragma once
#include "runtime/device.hpp"
#include "runtime/error.hpp"

#include <ATen/core/Tensor.h>
#include <clutch/tensor.hpp>

#include <optional>
#include <vector>

namespace torch_clutch {

/// Whose elements are meant: numbers, or bits that are moved alone, for which dtypes that clutch lacks stand as integers of their size.
enum class Elements { numbers, bits };

/// Empty where clutch lacks the dtype.
std::optional<clutch::DType> dtype_of(c10::ScalarType type, Elements elements = Elements::numbers) noexcept;
/// Errors: Refusal.
clutch::DType need_dtype(c10::ScalarType type, Elements elements = Elements::numbers);
c10::ScalarType scalar_type(clutch::DType dtype);

/// Gives a lazy clone (Tensor._lazy_clone) memory of its own, before it may be written. Rows of the table of ops have what they write prepared so.
TORCH_CLUTCH_EXPORT void own_memory(const at::TensorBase& tensor);
/// Errors: RuntimeError for a tensor that is not on a clutch device; Refusal for its dtype or more than 12 dimensions.
TORCH_CLUTCH_EXPORT clutch::Tensor wrap(const at::TensorBase& tensor, Elements elements = Elements::numbers);
/// Undefined for none.
clutch::Tensor wrap(const std::optional<at::Tensor>& tensor);
std::vector<clutch::Tensor> wrap(at::TensorList tensors);
/// All elements in the order of memory, as one dimension. The tensor must be dense and not overlap itself.
clutch::Tensor wrap_flat(const at::TensorBase& tensor);
/// The elements at an address of the tensor's memory.
clutch::Tensor wrap_at(const at::TensorBase& tensor, const void* address, const clutch::Dims& sizes, const clutch::Dims& strides, clutch::DType dtype);

/// A new PyTorch tensor of clutch's memory; an undefined one of an undefined one.
at::Tensor unwrap(const clutch::Tensor& tensor);

clutch::Dims dims(c10::IntArrayRef sizes);

}  // namespace torch_clutch
