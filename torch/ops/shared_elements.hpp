// SPDX-License-Identifier: Apache-2.0
// Tensors of which elements share memory (expand()), and ops that PyTorch still lets write them, with a warning.
#pragma once

#include <ATen/Functions.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/Tensor.h>

#include <vector>

namespace torch_clutch {

/// Whether elements of a tensor that `op` writes share memory; warns as PyTorch does.
inline bool shares_elements(const at::Tensor& self, const char* op) {
  if (at::has_internal_overlap(self) != at::MemOverlap::Yes) return false;
  TORCH_WARN("Use of ", op, " on expanded tensors is deprecated. Please clone() the tensor before performing this operation. ",
             "This also applies to advanced indexing e.g. tensor[mask] = scalar");
  return true;
}

/// The dimensions that expand() made.
inline std::vector<int64_t> expanded_dims(const at::Tensor& self) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self.stride(d) == 0 && self.size(d) > 1) dims.push_back(d);
  return dims;
}

/// Each element once: a view in which the dimensions that expand() made are one long.
inline at::Tensor own_elements(const at::Tensor& self) {
  at::Tensor own = self;
  for (const int64_t d : expanded_dims(self)) own = own.narrow(d, 0, 1);
  return own;
}

}  // namespace torch_clutch
