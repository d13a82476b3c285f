// SPDX-License-Identifier: Apache-2.0
// Elements taken at indices, tensors put together, and elements chosen by their places.
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/core/IListRef.h>
#include <ATen/native/Resize.h>
#include <clutch/nn.hpp>
#include <clutch/ops/cat.hpp>
#include <clutch/ops/scatter.hpp>

#include <bit>
#include <vector>

namespace torch_clutch {
namespace {

// Kernels of clutch give NaN or 0 for an index out of range and never read there.
void check_index(const at::Tensor& index) {
  TORCH_CHECK_INDEX(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt, "Expected dtype int32 or int64 for index");
}

at::Tensor& index_select_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, at::Tensor& out) {
  dim = at::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  check_index(index);
  TORCH_CHECK(self.scalar_type() == out.scalar_type(), "index_select(): self and result must have the same scalar type");
  at::DimVector sizes(self.sizes());
  if (!sizes.empty()) sizes[static_cast<size_t>(dim)] = index.numel();
  at::native::resize_output(out, sizes);
  if (out.numel() == 0) return out;
  if (self.dim() == 0) return out.copy_(self);
  clutch::index_select_out(wrap(out), wrap(self), static_cast<int>(dim), wrap(index.reshape({-1})));
  return out;
}
at::Tensor index_select(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  at::Tensor out = at::empty({0}, self.options());
  return torch_clutch::index_select_out(self, dim, index, out);
}

at::Tensor& gather_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, bool, at::Tensor& out) {
  dim = at::maybe_wrap_dim(dim, self.dim());
  check_index(index);
  at::native::resize_output(out, index.sizes());
  if (index.numel() == 0) return out;
  if (self.dim() == 0 || index.dim() == 0) {
    const at::Tensor flat = out.reshape({1});
    clutch::gather_out(wrap(flat), wrap(self.reshape({-1})), 0, wrap(index.reshape({1})));
    return out;
  }
  clutch::gather_out(wrap(out), wrap(self), static_cast<int>(dim), wrap(index));
  return out;
}

at::Tensor embedding(const at::Tensor& weight, const at::Tensor& index, c10::SymInt, bool, bool) {
  TORCH_CHECK(weight.dim() == 2, "'weight' must be 2-D");
  check_index(index);
  at::DimVector sizes(index.sizes());
  sizes.push_back(weight.size(1));
  at::Tensor out = at::empty(sizes, weight.options());
  if (out.numel() > 0) clutch::nn::embedding_out(wrap(out), wrap(weight), wrap(index));
  return out;
}
at::Tensor embedding_backward(const at::Tensor& grad, const at::Tensor& index, c10::SymInt rows, c10::SymInt padding, bool by_frequency) {
  const int64_t count = rows.expect_int();
  at::Tensor out = at::empty({count, grad.size(-1)}, grad.options());
  if (index.numel() == 0) return out.zero_();
  clutch::nn::embedding_backward_out(wrap(out), wrap(grad), wrap(index), count, {.padding_index = padding.expect_int(), .scale_by_frequency = by_frequency});
  return out;
}

at::Tensor& cat_out(const at::ITensorListRef& tensors, int64_t dim, at::Tensor& out) {
  std::vector<at::Tensor> given;
  bool skipped = false;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.dim() == 1 && tensor.numel() == 0)
      skipped = true;  // PyTorch leaves such ones out, whatever the other shapes are
    else
      given.push_back(tensor);
  }
  TORCH_CHECK(skipped || !given.empty(), "torch.cat(): expected a non-empty list of Tensors");
  if (given.empty()) {
    at::native::resize_output(out, {0});
    return out;
  }
  dim = at::maybe_wrap_dim(dim, given[0].dim());
  TORCH_CHECK(given[0].dim() > 0, "zero-dimensional tensor (at position 0) cannot be concatenated");
  at::DimVector sizes(given[0].sizes());
  int64_t along = 0;
  for (const at::Tensor& tensor : given) {
    TORCH_CHECK(tensor.dim() == given[0].dim(), "Tensors must have same number of dimensions: got ", given[0].dim(), " and ", tensor.dim());
    for (int64_t d = 0; d < tensor.dim(); ++d)
      TORCH_CHECK(d == dim || tensor.size(d) == sizes[static_cast<size_t>(d)], "Sizes of tensors must match except in dimension ", dim, ". Expected size ",
                  sizes[static_cast<size_t>(d)], " but got size ", tensor.size(d), " for tensor in the list.");
    TORCH_CHECK(tensor.device() == out.device(), "Expected all tensors to be on the same device, but found at least two devices, ", out.device(), " and ",
                tensor.device(), "!");
    along += tensor.size(dim);
    at::assert_no_overlap(out, tensor);
  }
  sizes[static_cast<size_t>(dim)] = along;
  at::native::resize_output(out, sizes);
  if (out.numel() == 0) return out;
  // Of one dtype bytes are moved, whatever they stand for.
  const bool alike = std::all_of(given.begin(), given.end(), [&](const at::Tensor& tensor) { return tensor.scalar_type() == out.scalar_type(); });
  const Elements elements = alike ? Elements::bits : Elements::numbers;
  std::vector<clutch::Tensor> parts;
  for (const at::Tensor& tensor : given) parts.push_back(wrap(tensor, elements));
  clutch::cat_out(wrap(out, elements), parts, static_cast<int>(dim));
  return out;
}

template <bool kUpper>
at::Tensor& triangle_out(const at::Tensor& self, int64_t diagonal, at::Tensor& out) {
  TORCH_CHECK(self.dim() >= 2, "tril/triu: input tensor must have at least 2 dimensions");
  at::native::resize_output(out, self.sizes());
  if (self.numel() == 0) return out;
  apply(out, {wrap(self)},
        [](const In& in) {
          const Expr distance = clutch::position(-1) - clutch::position(-2);
          const Expr kept = kUpper ? distance >= in.n[0] : distance <= in.n[0];
          if (in.x[0].dtype() == clutch::DType::boolean) return kept & in.x[0];
          return clutch::select(kept, in.x[0], 0);
        },
        {diagonal});
  return out;
}

// The bits, as integers of their size.
at::Tensor as_integers(const at::Tensor& x) {
  const at::Tensor parts = x.is_complex() ? at::view_as_real(x) : x;
  constexpr at::ScalarType kOfSize[] = {at::kByte, at::kShort, at::kInt, at::kLong};
  return parts.view(kOfSize[std::countr_zero(static_cast<unsigned>(parts.element_size()))]);
}
// Each element is read where the flipped dimensions count down. Neighbours of a contiguous tensor that are all flipped, or all not, are one dimension.
at::Tensor flip(const at::Tensor& self, c10::IntArrayRef dims) {
  const auto mask = at::dim_list_to_bitset(dims, self.dim());
  at::Tensor out = at::empty_like(self, at::MemoryFormat::Preserve);
  if (self.numel() == 0) return out;
  if (self.dim() == 0 || dims.empty()) return out.copy_(self);
  const bool joins = self.is_contiguous() && out.is_contiguous();
  at::DimVector sizes;
  std::vector<bool> down;
  for (int64_t d = 0; d < self.dim(); ++d) {
    const bool flipped = mask[static_cast<size_t>(d)];
    if (joins && !sizes.empty() && down.back() == flipped)
      sizes.back() *= self.size(d);
    else
      sizes.push_back(self.size(d)), down.push_back(flipped);
  }
  const clutch::Tensor source = wrap(as_integers(joins ? self.view(sizes) : self)), flipped = wrap(as_integers(joins ? out.view(sizes) : out));
  std::vector<Expr> place;  // the parts of a complex number are one more dimension
  for (int d = 0; d < source.rank(); ++d) {
    const bool counts_down = static_cast<size_t>(d) < down.size() && down[static_cast<size_t>(d)];
    place.push_back(counts_down ? clutch::param(source.size(d) - 1) - clutch::position(d) : clutch::position(d));
  }
  const Expr read = clutch::captured(source).at(place);
  clutch::map_out(std::span(&flipped, 1), clutch::ExprFunction({}, std::span(&read, 1)), {});
  return out;
}
at::Tensor roll(const at::Tensor& self, c10::IntArrayRef shifts, c10::IntArrayRef dims) {
  TORCH_CHECK(!shifts.empty(), "`shifts` required");
  if (self.numel() == 0) return self.clone();
  if (dims.empty() && shifts.size() == 1) return at::roll(self.reshape({-1}), shifts, 0).view(self.sizes());
  TORCH_CHECK(shifts.size() == dims.size(), "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:", dims.size());
  at::Tensor rolled = self;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t dim = at::maybe_wrap_dim(dims[i], self.dim()), size = rolled.size(dim);
    const int64_t shift = ((shifts[i] % size) + size) % size;
    if (shift != 0) rolled = at::cat({rolled.narrow(dim, size - shift, shift), rolled.narrow(dim, 0, size - shift)}, dim);
  }
  return rolled.is_same(self) ? self.clone() : rolled;
}

at::Tensor channel_shuffle(const at::Tensor& self, int64_t groups) {
  TORCH_CHECK(self.dim() > 2, "channel_shuffle expects input with > 2 dims, but got input with sizes ", self.sizes());
  TORCH_CHECK(groups > 0 && self.size(1) % groups == 0, "Number of channels must be divisible by groups. Got ", self.size(1), " channels and ", groups,
              " groups.");
  return self.reshape({self.size(0), groups, self.size(1) / groups, -1}).transpose(1, 2).reshape(self.sizes()).contiguous();
}

}  // namespace

void add_indexing(OpTable& table) {
  table.family("indexing");
  table.add<"index_select", &index_select>("index_select");
  table.add<"index_select.out", &index_select_out>("index_select");
  table.add<"gather.out", &gather_out>("gather");
  table.add<"embedding", &embedding>("nn::embedding");
  table.add<"embedding_dense_backward", &embedding_backward>("nn::embedding_backward");
  table.add<"cat.out", &cat_out>("cat");
  table.add<"tril.out", &triangle_out<false>>("map with position()");
  table.add<"triu.out", &triangle_out<true>>("map with position()");
  table.add<"channel_shuffle", &channel_shuffle>("copy_");
  table.add<"flip", &flip>("map of captured");
  table.add<"roll", &roll>("cat");
}

}  // namespace torch_clutch
