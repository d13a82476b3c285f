// SPDX-License-Identifier: Apache-2.0
// Elements in order, and elements that are found: sizes that hang on values wait for the device.
#include "ops/table.hpp"
#include "runtime/convert.hpp"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <ATen/native/Resize.h>
#include <clutch/ops/nonzero.hpp>
#include <clutch/ops/sort.hpp>

namespace torch_clutch {
namespace {

using Pair = std::tuple<at::Tensor&, at::Tensor&>;

// Of a scalar, or of a dimension of size 0: the values themselves, each in place 0.
bool is_trivial(const at::Tensor& self, const at::Tensor& values, const at::Tensor& indices) {
  if (self.dim() == 0 && values.numel() == 1) {
    values.copy_(self);
    indices.zero_();
    return true;
  }
  return values.numel() == 0;
}
void resize_pair(at::Tensor& values, at::Tensor& indices, at::IntArrayRef sizes) {
  TORCH_CHECK(indices.scalar_type() == at::kLong, "Expected out tensor to have dtype int64, but got ", indices.scalar_type(), " instead");
  at::native::resize_output(values, sizes);
  at::native::resize_output(indices, sizes);
}

Pair sort_out(const at::Tensor& self, std::optional<bool>, int64_t dim, bool descending, at::Tensor& values, at::Tensor& indices) {
  dim = at::maybe_wrap_dim(dim, self.dim());
  resize_pair(values, indices, self.sizes());
  if (!is_trivial(self, values, indices)) clutch::sort_out({wrap(values), wrap(indices)}, wrap(self), static_cast<int>(dim), {.descending = descending});
  return {values, indices};
}

Pair topk_out(const at::Tensor& self, c10::SymInt count, int64_t dim, bool largest, bool, at::Tensor& values, at::Tensor& indices) {
  dim = at::maybe_wrap_dim(dim, self.dim());
  const int64_t k = count.expect_int();
  TORCH_CHECK(k >= 0 && k <= (self.dim() > 0 ? self.size(dim) : 1), "selected index k out of range");
  at::DimVector sizes(self.sizes());
  if (!sizes.empty()) sizes[static_cast<size_t>(dim)] = k;
  resize_pair(values, indices, sizes);
  if (!is_trivial(self, values, indices)) clutch::topk_out({wrap(values), wrap(indices)}, wrap(self), k, static_cast<int>(dim), {.largest = largest});
  return {values, indices};
}

Pair kthvalue_out(const at::Tensor& self, c10::SymInt place, int64_t dim, bool keepdim, at::Tensor& values, at::Tensor& indices) {
  dim = at::maybe_wrap_dim(dim, self.dim());
  const int64_t k = place.expect_int();
  TORCH_CHECK(self.dim() == 0 || self.size(dim) > 0, "kthvalue(): Expected reduction dim ", dim, " to have non-zero size.");
  TORCH_CHECK(k >= 1 && k <= (self.dim() > 0 ? self.size(dim) : 1), "kthvalue(): selected number k out of range for dimension ", dim);
  at::DimVector sizes(self.sizes());
  if (keepdim && !sizes.empty()) sizes[static_cast<size_t>(dim)] = 1;
  if (!keepdim && !sizes.empty()) sizes.erase(sizes.begin() + dim);
  resize_pair(values, indices, sizes);
  if (!is_trivial(self, values, indices)) clutch::kthvalue_out({wrap(values), wrap(indices)}, wrap(self), k, static_cast<int>(dim), {.keepdim = keepdim});
  return {values, indices};
}

// Rank 0 as clutch's nonzero() wants it: of one dimension. PyTorch's result has no columns then.
at::Tensor nonzero(const at::Tensor& self) {
  if (self.numel() == 0) return at::empty({0, self.dim()}, self.options().dtype(at::kLong));
  const at::Tensor found = unwrap(clutch::nonzero(wrap(self.dim() == 0 ? self.reshape({1}) : self)));
  return self.dim() == 0 ? found.narrow(1, 0, 0) : found;
}
at::Tensor& nonzero_out(const at::Tensor& self, at::Tensor& out) {
  TORCH_CHECK(out.scalar_type() == at::kLong, "Expected object of scalar type Long as out, but got ", out.scalar_type());
  const at::Tensor found = torch_clutch::nonzero(self);
  at::native::resize_output(out, found.sizes());
  return out.copy_(found);
}

at::Tensor masked_select(const at::Tensor& self, const at::Tensor& mask) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_select: expected BoolTensor for mask");
  const auto [of_mask, of_self] = at::expand_outplace(mask, self);
  if (of_self->numel() == 0) return at::empty({0}, self.options());
  if (of_self->dim() == 0) return unwrap(clutch::masked_select(wrap(of_self->reshape({1})), wrap(of_mask->reshape({1}))));
  return unwrap(clutch::masked_select(wrap(*of_self), wrap(*of_mask)));
}
at::Tensor& masked_select_out(const at::Tensor& self, const at::Tensor& mask, at::Tensor& out) {
  TORCH_CHECK(out.scalar_type() == self.scalar_type(), "masked_select(): self and result must have the same scalar type");
  const at::Tensor found = torch_clutch::masked_select(self, mask);
  at::native::resize_output(out, found.sizes());
  return out.copy_(found);
}

using Uniques = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

Uniques unwrapped(const at::Tensor& self, const clutch::Unique& found) {
  auto or_empty = [&](const clutch::Tensor& t) { return t.defined() ? unwrap(t) : at::empty({0}, self.options().dtype(at::kLong)); };
  return {unwrap(found.values), or_empty(found.inverse), or_empty(found.counts)};
}
Uniques none(const at::Tensor& self) {
  const at::TensorOptions whole = self.options().dtype(at::kLong);
  return {at::empty({0}, self.options()), at::empty(self.sizes(), whole), at::empty({0}, whole)};
}
Uniques unique2(const at::Tensor& self, bool, bool inverse, bool counts) {
  if (self.numel() == 0) return none(self);
  auto [values, places, numbers] = unwrapped(self, clutch::unique(wrap(self.reshape({-1})), {.return_inverse = inverse, .return_counts = counts}));
  return {values, inverse ? places.view(self.sizes()) : places, numbers};
}
std::tuple<at::Tensor, at::Tensor> unique(const at::Tensor& self, bool sorted, bool inverse) {
  auto [values, places, numbers] = unique2(self, sorted, inverse, false);
  return {values, places};
}
Uniques unique_consecutive(const at::Tensor& self, bool inverse, bool counts, std::optional<int64_t> dim) {
  if (dim.has_value() && self.dim() != 1) refuse("unique_consecutive along a dimension");
  if (self.numel() == 0) return none(self);
  auto [values, places, numbers] = unwrapped(self, clutch::unique_consecutive(wrap(self.reshape({-1})), {.return_inverse = inverse, .return_counts = counts}));
  return {values, inverse ? places.view(self.sizes()) : places, numbers};
}

}  // namespace

void add_sorting(OpTable& table) {
  table.family("order and search");
  table.add<"sort.values_stable", &sort_out>("sort");
  table.add<"topk.values", &topk_out>("topk");
  table.add<"kthvalue.values", &kthvalue_out>("kthvalue");
  table.add<"nonzero", &nonzero>("nonzero");
  table.add<"nonzero.out", &nonzero_out>("nonzero");
  table.add<"masked_select", &masked_select>("masked_select");
  table.add<"masked_select.out", &masked_select_out>("masked_select");
  table.add<"_unique2", &unique2>("unique");
  table.add<"_unique", &unique>("unique");
  table.add<"unique_consecutive", &unique_consecutive>("unique_consecutive");
}

}  // namespace torch_clutch
