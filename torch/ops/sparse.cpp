// SPDX-License-Identifier: Apache-2.0
// Matrices of compressed rows or columns (torch.sparse_csr, torch.sparse_csc): products with dense ones, and their gradients, by sparse::spmm.
#include "ops/sparse.hpp"
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_nnz_native.h>
#include <ATen/ops/_to_dense_native.h>
#include <ATen/ops/ccol_indices_native.h>
#include <ATen/ops/clone_native.h>
#include <ATen/ops/col_indices_native.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/crow_indices_native.h>
#include <ATen/ops/dense_dim_native.h>
#include <ATen/ops/empty_like_native.h>
#include <ATen/ops/empty_native.h>
#include <ATen/ops/resize_as_sparse_native.h>
#include <ATen/ops/row_indices_native.h>
#include <ATen/ops/sparse_dim_native.h>
#include <ATen/ops/values_native.h>
#include <clutch/sparse.hpp>

namespace torch_clutch {
namespace {

bool by_rows(const at::Tensor& matrix) { return matrix.layout() == at::kSparseCsr; }

/// A matrix of compressed rows as it is; of one of compressed columns its transpose.
clutch::sparse::Csr csr_of(const at::Tensor& matrix) {
  if (matrix.layout() != at::kSparseCsr && matrix.layout() != at::kSparseCsc) refuse("a matrix of layout ", matrix.layout());
  if (matrix.dim() != 2 || matrix.values().dim() != 1) refuse("a batch of sparse matrices");
  const bool rows = by_rows(matrix);
  return {.offsets = wrap(rows ? matrix.crow_indices() : matrix.ccol_indices()),
          .columns = wrap(rows ? matrix.col_indices() : matrix.row_indices()),
          .values = wrap(matrix.values()),
          .width = matrix.size(rows ? 1 : 0)};
}

void check(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0), "mat1 and mat2 shapes cannot be multiplied (", a.size(0), "x", a.size(1), " and ",
              b.size(0), "x", b.size(1), ")");
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "expected m1 and m2 to have the same dtype, but got: ", a.scalar_type(), " != ", b.scalar_type());
}

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  check(a, b);
  if (a.layout() == at::kStrided) return product(b.t(), a.t()).t();
  if (b.layout() != at::kStrided) refuse("a product of two sparse matrices");
  at::Tensor out = at::empty({a.size(0), b.size(1)}, b.options());
  if (out.numel() == 0) return out;
  if (b.numel() == 0 || a._nnz() == 0) return out.zero_();
  if (by_rows(a)) {
    clutch::sparse::spmm_out(wrap(out), csr_of(a), wrap(b));
    return out;
  }
  // Compressed columns are the rows of the transposed matrix, and the gradient of a product with that one is the product with this one. A sum's
  // gradient needs no result.
  const at::Tensor like = at::empty({1}, b.options()).expand({a.size(0), b.size(1)});
  clutch::sparse::spmm_backward_out({.values = {}, .b = wrap(out)}, wrap(b), wrap(b), csr_of(a), wrap(like));
  return out;
}

at::Tensor& addmm_out(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
  if (c.layout() != at::kStrided || out.layout() != at::kStrided) refuse("a sparse result");
  return deliver_sum(product(a, b), c, beta, alpha, out);
}
at::Tensor addmm(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta, const at::Scalar& alpha) {
  at::Tensor out = at::empty({0}, c.options());
  return torch_clutch::addmm_out(c, a, b, beta, alpha, out);
}
at::Tensor mm(const at::Tensor& a, const at::Tensor& b) { return product(a, b); }
at::Tensor& mm_out(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  const at::Tensor made = product(a, b);
  return deliver(made, out);
}

// beta self + alpha a b at self's entries alone.
at::Tensor sampled(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta, const at::Scalar& alpha) {
  check(a, b);
  if (!by_rows(self) || a.layout() != at::kStrided || b.layout() != at::kStrided) refuse("other layouts than compressed rows and dense factors");
  TORCH_CHECK(self.size(0) == a.size(0) && self.size(1) == b.size(1), "sampled_addmm: the sparse matrix must have the product's shape");
  at::Tensor values = at::empty_like(self.values());
  if (values.numel() > 0 && a.size(1) > 0)
    clutch::sparse::spmm_backward_out({.values = wrap(values), .b = {}}, wrap(a), wrap(a), csr_of(self), wrap(b.t()));
  else
    values.zero_();
  values = values * alpha;
  if (beta.isComplex() || beta.toDouble() != 0) values = at::add(values, self.values(), beta);
  return at::_sparse_csr_tensor_unsafe(self.crow_indices(), self.col_indices(), values, self.sizes(), values.options().layout(at::kSparseCsr));
}

clutch::sparse::SpmmOptions reduction(c10::string_view name) {
  using clutch::Reduce;
  for (const auto& [known, reduce] :
       {std::pair<c10::string_view, Reduce>("sum", Reduce::sum), {"mean", Reduce::mean}, {"amax", Reduce::amax}, {"amin", Reduce::amin}})
    if (name == known) return {.reduce = reduce};
  TORCH_CHECK(false, "reduce argument must be either sum, mean, amax or amin, got ", name);
}
// The second result is what the backward is given: PyTorch's CPU has places of the largest entries there, clutch finds them by the result.
std::tuple<at::Tensor, at::Tensor> mm_reduce(const at::Tensor& a, const at::Tensor& b, c10::string_view reduce) {
  check(a, b);
  const clutch::sparse::SpmmOptions options = reduction(reduce);
  if (!by_rows(a)) refuse("other layouts than compressed rows");
  at::Tensor out = at::empty({a.size(0), b.size(1)}, b.options());
  if (out.numel() == 0 || b.numel() == 0 || a._nnz() == 0)
    out.zero_();
  else
    clutch::sparse::spmm_out(wrap(out), csr_of(a), wrap(b), options);
  return {out, out.clone()};
}
std::tuple<at::Tensor, at::Tensor> mm_reduce_backward(const at::Tensor& a, const at::Tensor& grad, const at::Tensor& b, c10::string_view reduce,
                                                      const at::Tensor& result, std::array<bool, 2> wanted) {
  at::Tensor of_values = wanted[0] ? at::zeros_like(a.values()) : at::Tensor(),
             of_b = wanted[1] ? at::zeros_like(b, at::MemoryFormat::Contiguous) : at::Tensor();
  if (grad.numel() > 0 && b.numel() > 0 && a._nnz() > 0)
    clutch::sparse::spmm_backward_out({.values = of_values.defined() ? wrap(of_values) : clutch::Tensor(), .b = of_b.defined() ? wrap(of_b) : clutch::Tensor()},
                                      wrap(grad), wrap(result), csr_of(a), wrap(b), reduction(reduce));
  at::Tensor of_a;
  if (wanted[0]) of_a = at::_sparse_csr_tensor_unsafe(a.crow_indices(), a.col_indices(), of_values, a.sizes(), of_values.options().layout(at::kSparseCsr));
  return {of_a, of_b};
}

// The row of each entry: how many rows, but for the first, begin at it or before.
at::Tensor rows_of(const at::Tensor& offsets, int64_t entries) {
  const at::Tensor begins = offsets.narrow(0, 1, std::max<int64_t>(offsets.numel() - 2, 0)).to(at::kLong);
  at::Tensor counts = at::zeros({entries + 1}, begins.options());
  counts.index_add_(0, begins, at::ones_like(begins));
  return counts.narrow(0, 0, entries).cumsum(0);
}
// The inverse: where each row begins, from the row of each entry, in order.
at::Tensor& to_offsets(const at::Tensor& rows, int64_t count, bool, at::Tensor& out) {
  at::Tensor begins = at::zeros({count + 1}, rows.options());
  begins.index_add_(0, rows + 1, at::ones_like(rows));
  return out.copy_(begins.cumsum(0));
}
at::Tensor& to_pairs(const at::Tensor& offsets, const at::Tensor& columns, bool, bool transpose, at::Tensor& out) {
  if (offsets.dim() != 1) refuse("a batch of sparse matrices");
  out.select(0, transpose ? 1 : 0).copy_(rows_of(offsets, columns.numel()));
  out.select(0, transpose ? 0 : 1).copy_(columns);
  return out;
}

at::Tensor scaled(const at::Tensor& self, const at::Tensor& factor) {
  if (factor.layout() != at::kStrided || factor.dim() != 0 || !by_rows(self)) refuse("a product of other things than a matrix of compressed rows and a number");
  const at::Tensor values = self.values() * factor;
  return at::_sparse_csr_tensor_unsafe(self.crow_indices(), self.col_indices(), values, self.sizes(), values.options().layout(at::kSparseCsr));
}

// A gradient has the entries of its matrix. Waits, where it has copies of the indices, to compare them.
at::Tensor sparse_mask(const at::Tensor& self, const at::Tensor& mask) {
  if (mask.layout() == at::kSparse) return masked_by_entries(self, mask);
  if (self.is_same(mask)) return self;
  if (self.layout() == at::kStrided && by_rows(mask) && mask.values().dim() == 1) {
    const at::Tensor columns = mask.col_indices(), values = self.index({rows_of(mask.crow_indices(), columns.numel()), columns.to(at::kLong)});
    return at::_sparse_csr_tensor_unsafe(mask.crow_indices(), columns, values, mask.sizes(), values.options().layout(at::kSparseCsr));
  }
  auto same = [](const at::Tensor& a, const at::Tensor& b) { return a.is_set_to(b) || (a.scalar_type() == b.scalar_type() && at::equal(a, b)); };
  if (!by_rows(self) || !by_rows(mask) || !same(self.crow_indices(), mask.crow_indices()) || !same(self.col_indices(), mask.col_indices()))
    refuse("a mask of other entries");
  return self;
}

}  // namespace

at::Tensor& deliver_sum(at::Tensor product, const at::Tensor& c, const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
  if (alpha.isComplex() || alpha.toDouble() != 1) product = product * alpha;
  if (beta.isComplex() || beta.toDouble() != 0) product = at::add(product, c, beta);
  return deliver(product, out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OpTable table(library);
  table.family("sparse matrices");
  table.add<"sparse_mask", &sparse_mask>("index");
  table.add<"_convert_indices_from_csr_to_coo.out", &to_pairs>("index_add, cumsum");
  table.add<"_convert_indices_from_coo_to_csr.out", &to_offsets>("index_add, cumsum");
}

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, library) {
  OpTable table(library);
  table.family("sparse matrices");
  table.add<"mm", &mm>("sparse::spmm");
  table.add<"mm.out", &mm_out>("sparse::spmm");
  table.add<"addmm", &addmm>("sparse::spmm");
  table.add<"addmm.out", &addmm_out>("sparse::spmm");
  table.add<"mul.Tensor", &scaled>("mul");
  table.add<"_sparse_mm_reduce_impl", &mm_reduce>("sparse::spmm");
  table.add<"_sparse_mm_reduce_impl_backward", &mm_reduce_backward>("sparse::spmm_backward");
  table.add<"sparse_sampled_addmm", &sampled>("sparse::spmm_backward");
  table.add<"sparse_mask", &sparse_mask>("index");
  table.add<"crow_indices", &at::native::crow_indices_sparse_csr>("a view");
  table.add<"col_indices", &at::native::col_indices_sparse_csr>("a view");
  table.add<"ccol_indices", &at::native::ccol_indices_sparse_csr>("a view");
  table.add<"row_indices", &at::native::row_indices_sparse_csr>("a view");
  table.add<"values", &at::native::values_sparse_csr>("a view");
  table.add<"_nnz", &at::native::_nnz_sparse_csr>("a view");
  table.add<"sparse_dim", &at::native::sparse_dim_sparse_csr>("a view");
  table.add<"dense_dim", &at::native::dense_dim_sparse_csr>("a view");
  table.add<"clone", &at::native::clone_sparse_compressed>("copy_");
  table.add<"copy_", &at::native::copy_sparse_compressed_>("copy_");
  table.add<"empty.memory_format", &at::native::empty_sparse_compressed_symint>("empty");
  table.add<"empty_like", &at::native::empty_like_sparse_csr>("empty");
  table.add<"resize_as_sparse_", &at::native::resize_as_sparse_compressed_>("empty");
  table.add<"_to_dense", &at::native::sparse_compressed_to_dense>("index_add");
}

}  // namespace torch_clutch
