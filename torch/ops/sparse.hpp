// SPDX-License-Identifier: Apache-2.0
// What matrices of compressed rows and tensors of entries share.
#pragma once
#include <ATen/core/Tensor.h>

namespace torch_clutch {

/// out = alpha product + beta c, of which `beta` 0 leaves c unread.
at::Tensor& deliver_sum(at::Tensor product, const at::Tensor& c, const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out);
/// sparse_mask with a mask of layout torch.sparse_coo.
at::Tensor masked_by_entries(const at::Tensor& self, const at::Tensor& mask);

}  // namespace torch_clutch
