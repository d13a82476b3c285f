// SPDX-License-Identifier: Apache-2.0
// Tensors of entries with indices (torch.sparse_coo): made, coalesced, added, scaled, multiplied with dense matrices and converted on the device. What is not
// here runs on the CPU, counted.
#include "ops/sparse.hpp"
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>
#include <ATen/ops/_coalesced_native.h>
#include <ATen/ops/_indices_native.h>
#include <ATen/ops/_nnz_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_and_tensors_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_native.h>
#include <ATen/ops/_to_dense_native.h>
#include <ATen/ops/_to_sparse_csr_native.h>
#include <ATen/ops/_to_sparse_native.h>
#include <ATen/ops/_values_native.h>
#include <ATen/ops/add_native.h>
#include <ATen/ops/clone_native.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/copy_sparse_to_sparse_native.h>
#include <ATen/ops/dense_dim_native.h>
#include <ATen/ops/empty_like_native.h>
#include <ATen/ops/empty_native.h>
#include <ATen/ops/indices_native.h>
#include <ATen/ops/is_coalesced_native.h>
#include <ATen/ops/resize_as_sparse_native.h>
#include <ATen/ops/sparse_dim_native.h>
#include <ATen/ops/sparse_resize_and_clear_native.h>
#include <ATen/ops/sparse_resize_native.h>
#include <ATen/ops/unsqueeze_native.h>
#include <ATen/ops/values_native.h>
#include <ATen/ops/zero_native.h>

namespace torch_clutch {
namespace {

bool is_coo(const at::Tensor& tensor) { return tensor.layout() == at::kSparse; }

at::Tensor made(const at::Tensor& indices, const at::Tensor& values, c10::IntArrayRef sizes, bool coalesced) {
  return at::_sparse_coo_tensor_unsafe(indices, values, sizes, values.options().layout(at::kSparse), coalesced);
}

/// Indices of entries as those of a dense tensor.
c10::List<std::optional<at::Tensor>> places_of(const at::Tensor& indices) {
  c10::List<std::optional<at::Tensor>> places;
  for (const at::Tensor& of_dimension : indices.unbind(0)) places.push_back(std::optional(of_dimension));
  return places;
}
/// x, times a factor that may be 1.
at::Tensor times(const at::Tensor& x, const at::Scalar& factor) { return factor.isComplex() || factor.toDouble() != 1 ? x * factor : x; }

/// Entries in the order of their indices, those of equal ones added up in the order in which they were.
at::Tensor coalesce(const at::Tensor& self) {
  const at::Tensor indices = self._indices(), values = self._values();
  const int64_t dims = self.sparse_dim();
  if (self._nnz() < 2) return made(indices.clone(), values.clone(), self.sizes(), true);
  at::Tensor flat = at::zeros({self._nnz()}, indices.options());  // one number for all indices of an entry
  for (int64_t d = 0; d < dims; ++d) flat = d == 0 ? indices.select(0, 0) : flat * self.size(d) + indices.select(0, d);
  const auto [kept, entry, counts] = at::_unique2(flat, true, true, false);
  std::vector<int64_t> sizes = values.sizes().vec();
  sizes[0] = kept.numel();
  const bool flags = values.scalar_type() == at::kBool;
  at::Tensor sums = at::zeros(sizes, values.options().dtype(flags ? at::kInt : values.scalar_type()));
  sums.index_add_(0, entry, flags ? values.to(at::kInt) : values);
  at::Tensor rows = at::empty({dims, kept.numel()}, indices.options()), rest = kept;
  for (int64_t d = dims - 1; d > 0; --d) {
    rows.select(0, d).copy_(rest.remainder(self.size(d)));
    rest = rest.div(self.size(d), "floor");
  }
  if (dims > 0) rows.select(0, 0).copy_(rest);
  return made(rows, flags ? sums.ne(0) : sums, self.sizes(), true);
}

at::Tensor& add_out(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha, at::Tensor& out) {
  if (!is_coo(self) && is_coo(other)) {
    if (self.sizes() != other.sizes()) refuse("a sparse tensor that is broadcast");
    if (!out.is_same(self)) {
      at::native::resize_output(out, self.sizes());
      out.copy_(self);
    }
    if (other._nnz() == 0 || out.numel() == 0) return out;
    const at::Tensor values = times(other._values().to(out.scalar_type()), alpha);
    if (other.sparse_dim() == 0) return out.add_(values.sum(0));
    return out.index_put_(places_of(other._indices()), values, true);
  }
  if (!is_coo(self) || !is_coo(other)) refuse("the sum of a sparse and a dense tensor");
  TORCH_CHECK(self.sizes() == other.sizes(), "add: expected sizes of 'self' and 'other' to match, but ", self.sizes(), " != ", other.sizes());
  if (self.sparse_dim() != other.sparse_dim()) refuse("sparse tensors of other numbers of dimensions");
  const at::ScalarType type = at::result_type(self, other);
  const at::Tensor more = times(other._values().to(type), alpha);
  at::Tensor sum = made(at::cat({self._indices(), other._indices()}, 1), at::cat({self._values().to(type), more}), self.sizes(), false);
  if (self.is_coalesced() && other.is_coalesced()) sum = sum.coalesce();
  return at::native::copy_sparse_(out, sum.to(out.scalar_type()), false);
}

at::Tensor scaled(const at::Tensor& self, const at::Tensor& other) {
  const at::Tensor &entries = is_coo(self) ? self : other, &factor = is_coo(self) ? other : self;
  if (factor.layout() != at::kStrided || factor.dim() != 0) refuse("a product of other things than a sparse tensor and a number");
  return made(entries._indices(), entries._values() * factor, entries.sizes(), entries.is_coalesced());
}
at::Tensor& scale_(at::Tensor& self, const at::Tensor& factor) {
  if (!is_coo(self) || factor.layout() != at::kStrided || factor.dim() != 0) refuse("a product of other things than a sparse tensor and a number");
  self._values().mul_(factor);
  return self;
}

/// The matrix of compressed rows with the same entries.
at::Tensor by_rows(const at::Tensor& matrix) {
  if (matrix.sparse_dim() != 2 || matrix.dense_dim() != 0) refuse("other sparse tensors than matrices");
  return matrix.coalesce().to_sparse_csr();
}
at::Tensor mm(const at::Tensor& a, const at::Tensor& b) {
  if (is_coo(a) && is_coo(b)) refuse("a product of two sparse matrices");
  TORCH_CHECK(a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0), "mm: Expected dim 0 of mat2 (", b.size(0), ") to be equal to dim 1 of mat1 (", a.size(1),
              ")");
  return is_coo(a) ? at::mm(by_rows(a), b) : at::mm(by_rows(b.t()), a.t()).t();
}
at::Tensor& mm_out(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) { return deliver(torch_clutch::mm(a, b), out); }
at::Tensor& addmm_out(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
  if (is_coo(c)) refuse("a sum that is sparse");
  return deliver_sum(torch_clutch::mm(a, b), c, beta, alpha, out);
}
at::Tensor addmm(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta, const at::Scalar& alpha) {
  at::Tensor out = at::empty({0}, c.options());
  return torch_clutch::addmm_out(c, a, b, beta, alpha, out);
}

at::Tensor sparse_mask(const at::Tensor& self, const at::Tensor& mask) {
  TORCH_CHECK(mask.sizes() == self.sizes(), "sparse_mask(): operands have incompatible sizes; self has size ", self.sizes(), " but mask has size ",
              mask.sizes());
  if (self.is_same(mask)) return self;
  if (self.layout() != at::kStrided || mask.sparse_dim() == 0) refuse("a mask of a sparse tensor");
  const at::Tensor values = mask._nnz() == 0 ? mask._values().to(self.scalar_type()).clone() : self.index(places_of(mask._indices()));
  return made(mask._indices().clone(), values, mask.sizes(), mask.is_coalesced());
}

at::Tensor to_sparse(const at::Tensor& self, std::optional<c10::Layout> layout, at::OptionalIntArrayRef blocks, std::optional<int64_t> dense) {
  if (layout.value_or(at::kSparse) != at::kSparse) refuse("a conversion to ", *layout);
  return at::native::dense_to_sparse(self, layout, blocks, dense);
}
at::Tensor to_sparse_of(const at::Tensor& self, int64_t dims) {
  if (dims <= 0 || dims >= self.dim()) return at::native::dense_to_sparse(self, dims);
  const at::Tensor indices = self.ne(0).flatten(dims).any(dims).nonzero().t().contiguous();
  return made(indices, self.index(places_of(indices)), self.sizes(), true);
}
}  // namespace

at::Tensor masked_by_entries(const at::Tensor& self, const at::Tensor& mask) { return sparse_mask(self, mask); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OpTable table(library);
  table.family("sparse tensors");
  table.add<"_to_sparse", &to_sparse>("nonzero, index");
  table.add<"_to_sparse.sparse_dim", &to_sparse_of>("nonzero, index");
}

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, library) {
  OpTable table(library);
  table.family("sparse tensors");
  table.add<"_sparse_coo_tensor_with_dims", &at::native::new_with_dims_sparse>("empty");
  table.add<"_sparse_coo_tensor_with_dims_and_tensors", &at::native::new_with_dims_and_tensor_sparse_symint>("a view");
  table.add<"_coalesce", &coalesce>("unique, index_add");
  table.add<"add.Tensor", static_cast<at::Tensor (*)(const at::Tensor&, const at::Tensor&, const at::Scalar&)>(&at::native::add_sparse)>("index_put");
  table.add<"add_.Tensor", &at::native::add_sparse_>("index_put");
  table.add<"add.out", &add_out>("index_put");
  table.add<"mul.Tensor", &scaled>("mul");
  table.add<"mul_.Tensor", &scale_>("mul_");
  table.add<"mm", &mm>("sparse::spmm");
  table.add<"mm.out", &mm_out>("sparse::spmm");
  table.add<"addmm", &addmm>("sparse::spmm");
  table.add<"addmm.out", &addmm_out>("sparse::spmm");
  table.add<"sparse_mask", &sparse_mask>("index");
  table.add<"_indices", &at::native::_indices_sparse>("a view");
  table.add<"_values", &at::native::_values_sparse>("a view");
  table.add<"indices", &at::native::indices_sparse>("a view");
  table.add<"values", &at::native::values_sparse>("a view");
  table.add<"_nnz", &at::native::_nnz_sparse>("a view");
  table.add<"sparse_dim", &at::native::sparse_dim_sparse>("a view");
  table.add<"dense_dim", &at::native::dense_dim_sparse>("a view");
  table.add<"_dimI", &at::native::sparse_dim_sparse>("a view");
  table.add<"_dimV", &at::native::dense_dim_sparse>("a view");
  table.add<"is_coalesced", &at::native::is_coalesced_sparse>("a view");
  table.add<"_coalesced_", &at::native::_coalesced_sparse_>("a view");
  table.add<"unsqueeze", &at::native::unsqueeze_sparse>("a view");
  table.add<"clone", &at::native::clone_sparse>("copy_");
  table.add<"copy_", &at::native::copy_sparse_wrapper_>("copy_");
  table.add<"copy_sparse_to_sparse_", &at::native::copy_sparse_>("copy_");
  table.add<"empty.memory_format", &at::native::empty_sparse_symint>("empty");
  table.add<"empty_like", &at::native::empty_like_sparse_coo>("empty");
  table.add<"resize_as_sparse_", &at::native::resize_as_sparse_>("empty");
  table.add<"sparse_resize_", &at::native::sparse_resize_>("empty");
  table.add<"sparse_resize_and_clear_", &at::native::sparse_resize_and_clear_>("empty");
  table.add<"zero_", &at::native::zero_sparse_>("empty");
  table.add<"_to_dense", &at::native::sparse_to_dense>("index_put");
  table.add<"_to_sparse_csr", &at::native::coo_to_sparse_csr>("index_add, cumsum");
}

// All else of these tensors.
TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&cpu_fallback>()); }

}  // namespace torch_clutch
