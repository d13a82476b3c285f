// SPDX-License-Identifier: Apache-2.0
// Elements put or added at indices: fixed order, no atomics, the same bits in each run.
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>
#include <ATen/native/Resize.h>
#include <clutch/ops/scatter.hpp>

namespace torch_clutch {
namespace {

using clutch::Reduce;

at::Tensor at_least_1d(const at::Tensor& tensor) { return tensor.dim() == 0 ? tensor.reshape({1}) : tensor; }

// out = self with elements of src reduced into it.
at::Tensor& scattered(at::Tensor& out, const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& src, Reduce reduce, bool include_self) {
  dim = at::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK(index.numel() == 0 || self.scalar_type() == src.scalar_type(), "scatter(): Expected self.dtype to be equal to src.dtype");
  TORCH_CHECK(index.numel() == 0 || index.scalar_type() == at::kLong || index.scalar_type() == at::kInt, "scatter(): Expected dtype int32 or int64 for index");
  if (index.numel() == 0) {
    if (!out.is_same(self)) {
      at::native::resize_output(out, self.sizes());
      out.copy_(self);
    }
    return out;
  }
  at::native::resize_output(out, self.sizes());
  if (out.numel() == 0) return out;
  const at::Tensor from = at_least_1d(self), to = at_least_1d(out), at = at_least_1d(index), values = at_least_1d(src);
  clutch::scatter_reduce_out(wrap(to), wrap(from), static_cast<int>(dim), wrap(at), wrap(values), {.reduce = reduce, .include_self = include_self});
  return out;
}

at::Tensor& scatter_add_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& src, at::Tensor& out) {
  return scattered(out, self, dim, index, src, Reduce::sum, true);
}
at::Tensor& scatter_reduce_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& src, c10::string_view reduce, bool include_self,
                               at::Tensor& out) {
  const std::pair<c10::string_view, Reduce> names[] = {
      {"sum", Reduce::sum}, {"prod", Reduce::prod}, {"mean", Reduce::mean}, {"amax", Reduce::amax}, {"amin", Reduce::amin}};
  for (const auto& [name, op] : names)
    if (name == reduce) return scattered(out, self, dim, index, src, op, include_self);
  TORCH_CHECK(false, "reduce argument must be either sum, prod, mean, amax or amin, got ", reduce);
}
at::Tensor& scatter_op_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& src, c10::string_view reduce, at::Tensor& out) {
  TORCH_CHECK(reduce == "add" || reduce == "multiply", "reduce argument must be either add or multiply.");
  return scattered(out, self, dim, index, src, reduce == "add" ? Reduce::sum : Reduce::prod, true);
}

at::Tensor& index_add_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& source, const at::Scalar& alpha, at::Tensor& out) {
  dim = at::maybe_wrap_dim(dim, self.dim());
  if (self.dim() == 0) {
    at::native::resize_output(out, {});
    at::Tensor row = out.reshape({1});
    torch_clutch::index_add_out(self.reshape({1}), 0, index.reshape({-1}), source.reshape({-1}), alpha, row);
    return out.is_alias_of(row) ? out : out.copy_(row.squeeze());
  }
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_add_(): Index is supposed to be a vector");
  at::Tensor scaled = alpha.equal(1) ? source : source.mul(alpha);
  at::DimVector shape(static_cast<size_t>(source.dim()), 1);
  shape[static_cast<size_t>(dim)] = index.numel();
  return scattered(out, self, dim, index.reshape(shape).expand(source.sizes()), scaled, Reduce::sum, true);
}

}  // namespace

void add_scatters(OpTable& table) {
  table.family("scatters");
  table.add<"scatter_add.out", &scatter_add_out>("scatter_reduce");
  table.add<"scatter_reduce.two_out", &scatter_reduce_out>("scatter_reduce");
  table.add<"scatter.reduce_out", &scatter_op_out>("scatter_reduce");
  table.add<"index_add.out", &index_add_out>("scatter_reduce");
}

}  // namespace torch_clutch
