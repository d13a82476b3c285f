// SPDX-License-Identifier: Apache-2.0
// x[i, j], x[i, j] = y and their like by index() and index_put(), with PyTorch's own errors; scatter by scatter_reduce and places.
#include "ops/shared_elements.hpp"
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <clutch/ops/index.hpp>
#include <clutch/ops/scatter.hpp>

namespace torch_clutch {
namespace {

using Indices = c10::List<std::optional<at::Tensor>>;

at::Tensor numbers(const at::Tensor& like, int64_t count) { return at::arange(count, like.options().dtype(at::kLong)); }

// out = self, but elements of the flat `source` where `last` names one.
void put_last(const at::Tensor& out, const at::Tensor& self, const at::Tensor& last, const at::Tensor& source) {
  if (source.numel() == 0) {
    if (!out.is_same(self)) out.copy_(self);
    return;
  }
  apply(out, {wrap(last), wrap(self)}, [](const In& in) { return clutch::select(in.x[0] >= 0, in.c[0][in.x[0]], in.x[1]); }, {}, {wrap(source)});
}

void check_scatter(const at::Tensor& self, int64_t& dim, const at::Tensor& index) {
  dim = at::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK(index.numel() == 0 || index.scalar_type() == at::kLong || index.scalar_type() == at::kInt, "scatter(): Expected dtype int32 or int64 for index");
}
// The number of the last element of `index` that names a place of self, in the shape of self; elements are numbered in row-major order.
at::Tensor last_of_scatter(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  const at::Tensor last = at::full(self.sizes(), -1, index.options().dtype(at::kLong));
  clutch::scatter_reduce_(wrap(last), static_cast<int>(dim), wrap(index), wrap(numbers(index, index.numel()).view(index.sizes())),
                          {.reduce = clutch::Reduce::amax, .include_self = true});
  return last;
}
at::Tensor& scatter_src_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& source, at::Tensor& out) {
  check_scatter(self, dim, index);
  TORCH_CHECK(index.numel() == 0 || self.scalar_type() == source.scalar_type(), "scatter(): Expected self.dtype to be equal to src.dtype");
  at::native::resize_output(out, self.sizes());
  if (index.numel() == 0 || self.numel() == 0) return out.is_same(self) ? out : out.copy_(self);
  if (self.dim() == 0) return out.copy_(source.reshape({-1})[0]);
  if (index.dim() == 0) return torch_clutch::scatter_src_out(self, dim, index.reshape({1}), source.reshape({1}), out);
  TORCH_CHECK(index.dim() == self.dim() && source.dim() == self.dim(), "Index tensor must have the same number of dimensions as self tensor");
  at::Tensor written = source;
  for (int64_t d = 0; d < index.dim(); ++d) {
    TORCH_CHECK(index.size(d) <= source.size(d) && (d == dim || index.size(d) <= self.size(d)), "Expected index ", index.sizes(), " to be no larger than self ",
                self.sizes(), " apart from dimension ", dim, " and to be no larger than src ", source.sizes());
    written = written.narrow(d, 0, index.size(d));
  }
  put_last(out, self, last_of_scatter(self, dim, index), written.reshape({-1}));
  return out;
}
at::Tensor& scatter_value_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Scalar& value, at::Tensor& out) {
  return torch_clutch::scatter_src_out(self, dim, index, at::full({}, value, self.options()).expand(index.sizes()), out);
}

// ---- indices of several dimensions

// What clutch takes: masks as bool, other indices as i64.
std::vector<clutch::Tensor> checked(const at::Tensor& self, const Indices& indices) {
  for (const std::optional<at::Tensor>& given : indices)
    TORCH_CHECK(!given.has_value() || !given->defined() || given->is_cpu() || given->device() == self.device(),
                "indices should be either on cpu or on the same device as the indexed tensor (", self.device(), ")");
  std::vector<clutch::Tensor> all;
  int64_t dim = 0;
  bool any = false;
  for (const std::optional<at::Tensor>& given : indices) {
    if (!given.has_value() || !given->defined()) {
      all.emplace_back();
      ++dim;
      continue;
    }
    any = true;
    const at::Tensor index = given->to(self.device());
    if (index.scalar_type() == at::kBool || index.scalar_type() == at::kByte) {
      for (int64_t d = 0; d < index.dim(); ++d)
        TORCH_CHECK_INDEX(dim + d < self.dim() && index.size(d) == self.size(dim + d), "The shape of the mask ", index.sizes(), " at index ", d,
                          " does not match the shape of the indexed tensor ", self.sizes(), " at index ", dim + d);
      all.push_back(wrap(index.to(at::kBool)));
      dim += index.dim();
    } else {
      TORCH_CHECK_INDEX(at::isIntegralType(index.scalar_type(), false), "tensors used as indices must be long, int, byte or bool tensors");
      TORCH_CHECK_INDEX(dim >= self.dim() || self.size(dim) > 0 || index.numel() == 0, "index is out of bounds for dimension with size 0");
      all.push_back(wrap(index.to(at::kLong)));
      ++dim;
    }
  }
  TORCH_CHECK_INDEX(dim <= self.dim(), "too many indices for tensor of dimension ", self.dim(), " (got ", dim, ")");
  TORCH_CHECK_INDEX(any, "at least one index must be provided");
  return all;
}

at::Tensor index(const at::Tensor& self, const Indices& indices) { return unwrap(clutch::index(wrap(self), checked(self, indices))); }
at::Tensor& index_out(const at::Tensor& self, const Indices& indices, at::Tensor& out) {
  const at::Tensor found = torch_clutch::index(self, indices);
  at::native::resize_output(out, found.sizes());
  return out.copy_(found);
}

// Each number of an element that others share stands for all of them.
at::Tensor& index_put_shared(at::Tensor& self, const Indices& indices, const at::Tensor& values, bool accumulate) {
  const at::Tensor own = own_elements(self);
  const at::Tensor numbers = at::arange(own.numel(), self.options().dtype(at::kLong)).view(own.sizes()).expand_as(self).contiguous();
  const at::Tensor written = torch_clutch::index(numbers, indices);
  at::Tensor flat = own.reshape({-1});
  flat.index_put_({written.reshape({-1})}, values.to(self.device()).expand_as(written).reshape({-1}), accumulate);
  if (!flat.is_alias_of(own)) own.copy_(flat.view(own.sizes()));
  return self;
}

at::Tensor& put_at(at::Tensor& self, const Indices& indices, const at::Tensor& values, bool accumulate) {
  TORCH_CHECK_INDEX(self.scalar_type() == values.scalar_type(), "Index put requires the source and destination dtypes match, got ", self.scalar_type(),
                    " for the destination and ", values.scalar_type(), " for the source.");
  if (self.dim() == 0) refuse("a tensor of rank 0");
  const std::vector<clutch::Tensor> places = checked(self, indices);
  if (self.numel() > 0) clutch::index_put_(wrap(self), places, wrap(values.to(self.device())), {.accumulate = accumulate});
  return self;
}
at::Tensor& index_put_(at::Tensor& self, const Indices& indices, const at::Tensor& values, bool accumulate, bool) {
  at::assert_no_overlap(self, values);
  for (const std::optional<at::Tensor>& index : indices)
    if (index.has_value() && index->defined()) at::assert_no_overlap(self, *index);
  return shares_elements(self, "index_put_") ? index_put_shared(self, indices, values, accumulate) : put_at(self, indices, values, accumulate);
}

// One tensor of indices that counts along `dim`.
Indices along(int64_t dim, const at::Tensor& index) {
  Indices indices;
  for (int64_t d = 0; d < dim; ++d) indices.push_back(std::optional<at::Tensor>());
  indices.push_back(std::optional(index.reshape({-1})));
  return indices;
}
at::Tensor& index_copy_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& source, at::Tensor& out) {
  at::native::resize_output(out, self.sizes());
  if (!out.is_same(self)) out.copy_(self);
  if (index.numel() == 0 || self.numel() == 0) return out;
  if (self.dim() == 0) return out.copy_(source.reshape({-1})[0]);
  return put_at(out, along(at::maybe_wrap_dim(dim, self.dim()), index), source.dim() == 0 ? source.reshape({1}) : source, false);
}
at::Tensor& index_fill_(at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Scalar& value) {
  TORCH_CHECK_INDEX(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt, "index_fill_(): Expected dtype int64 for index.");
  if (self.dim() == 0) return index.numel() == 0 ? self : self.fill_(value);
  dim = at::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK(index.dim() <= 1, "Index has to be a vector/scalar");
  if (index.numel() == 0 || self.numel() == 0) return self;
  at::assert_no_overlap(self, index);
  const at::Tensor filled = at::full({}, value, self.options());
  return shares_elements(self, "index_fill_") ? index_put_shared(self, along(dim, index), filled, false) : put_at(self, along(dim, index), filled, false);
}
at::Tensor& index_fill_tensor_(at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ", value.dim(), " dimension(s).");
  return torch_clutch::index_fill_(self, dim, index, value.item());
}

at::Tensor take(const at::Tensor& self, const at::Tensor& index) {
  TORCH_CHECK(index.scalar_type() == at::kLong, "take(): Expected a long tensor for index, but got ", index.scalar_type());
  Indices indices;
  indices.push_back(std::optional(index));
  return torch_clutch::index(self.reshape({-1}), indices);
}
at::Tensor& put_(at::Tensor& self, const at::Tensor& index, const at::Tensor& source, bool accumulate) {
  TORCH_CHECK(index.scalar_type() == at::kLong, "put_(): Expected a long tensor for index, but got ", index.scalar_type());
  TORCH_CHECK(index.numel() == source.numel(), "put_(): Expected source and index to have the same number of elements");
  at::assert_no_overlap(self, index);
  at::assert_no_overlap(self, source);
  if (index.numel() == 0) return self;
  at::Tensor flat = self.reshape({-1});
  Indices indices;
  indices.push_back(std::optional(index.reshape({-1})));
  put_at(flat, indices, source.reshape({-1}), accumulate);
  return flat.is_alias_of(self) ? self : self.copy_(flat.view(self.sizes()));
}

}  // namespace

void add_advanced_indexing(OpTable& table) {
  table.family("indexing by several tensors");
  table.add<"scatter.src_out", &scatter_src_out>("scatter_reduce, map with captured()");
  table.add<"scatter.value_out", &scatter_value_out>("scatter_reduce, map with captured()");
  table.add<"index.Tensor", &index>("index");
  table.add<"index.Tensor_out", &index_out>("index");
  table.add<"_index_put_impl_", &index_put_>("index_put");
  table.add<"index_copy.out", &index_copy_out>("index_put");
  table.add<"index_fill_.int_Scalar", &index_fill_>("index_put");
  table.add<"index_fill_.int_Tensor", &index_fill_tensor_>("index_put");
  table.add<"take", &take>("index");
  table.add<"put_", &put_>("index_put");
}

}  // namespace torch_clutch
