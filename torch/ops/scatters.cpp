// SPDX-License-Identifier: Apache-2.0
// Elements put or added at indices: fixed order, no atomics, the same bits in each run.
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>
#include <ATen/native/Resize.h>
#include <clutch/ops/group.hpp>
#include <clutch/ops/scatter.hpp>
#include <clutch/ops/segment.hpp>

#include <algorithm>
#include <utility>

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

// How often each number occurs, or the sum of its weights. The host reads how many there are.
at::Tensor bincount(const at::Tensor& self, const std::optional<at::Tensor>& weights, c10::SymInt least) {
  const int64_t minimum = least.guard_int(__FILE__, __LINE__);
  const bool weighed = weights.has_value() && weights->defined();
  TORCH_CHECK(minimum >= 0, "minlength should be >= 0");
  TORCH_CHECK(self.dim() == 1 && at::isIntegralType(self.scalar_type(), true), "bincount only supports 1-d non-negative integral inputs.");
  TORCH_CHECK(!weighed || (weights->dim() == 1 && weights->numel() == self.numel()), "weights should be 1-d and have the same length as input");
  const at::ScalarType dtype = !weighed ? at::kLong : weights->scalar_type() == at::kFloat ? at::kFloat : at::kDouble;
  if (self.numel() == 0) return at::zeros({minimum}, self.options().dtype(dtype));
  const at::Tensor numbers = self.to(self.scalar_type() == at::kInt && !weighed ? at::kInt : at::kLong);
  const auto [lowest, largest] = at::aminmax(numbers);
  // One wait for both.
  const at::Tensor ends = at::stack({lowest, largest}).cpu().to(at::kLong);
  TORCH_CHECK(ends[0].item<int64_t>() >= 0, "bincount only supports 1-d non-negative integral inputs.");
  const int64_t bins = std::max(minimum, ends[1].item<int64_t>() + 1);
  if (weighed) return at::zeros({bins}, self.options().dtype(dtype)).scatter_add_(0, numbers, weights->to(dtype));
  const clutch::DType counted = numbers.numel() > INT32_MAX ? clutch::DType::i64 : clutch::DType::i32;
  const clutch::Tensor offsets = clutch::empty({bins + 1}, {.dtype = counted, .device = wrap(numbers).device()});
  clutch::group_by_out({offsets, {}}, wrap(numbers), bins);
  return unwrap(offsets).diff().to(dtype);
}

// Offsets of the segments of all rows along `axis`, one behind another, as data's rows lie in memory.
at::Tensor segment_offsets(const at::Tensor& data, const std::optional<at::Tensor>& lengths, const std::optional<at::Tensor>& offsets, int64_t axis) {
  if (offsets.has_value() && offsets->defined()) {
    if (axis > 0) refuse("offsets along a later dimension");
    return offsets->to(at::kLong);
  }
  const at::Tensor ends = lengths->to(at::kLong).reshape({-1}).cumsum(0);
  return at::cat({at::zeros({1}, ends.options()), ends});
}
clutch::SegmentOptions segment_options(c10::string_view reduce, const std::optional<at::Scalar>& initial) {
  const std::pair<c10::string_view, Reduce> names[] = {
      {"sum", Reduce::sum}, {"prod", Reduce::prod}, {"mean", Reduce::mean}, {"max", Reduce::amax}, {"min", Reduce::amin}};
  for (const auto& [name, op] : names)
    if (name == reduce) return {.reduce = op, .initial = initial.has_value() ? std::optional(initial->toDouble()) : std::nullopt};
  TORCH_CHECK(false, "unsupported reduction: ", reduce);
}
// The dimensions up to `axis` as one.
at::Tensor rows_of(const at::Tensor& x, int64_t axis) { return (axis == 0 ? x : x.flatten(0, axis)).contiguous(); }

at::Tensor segment_reduce(const at::Tensor& data, c10::string_view reduce, const std::optional<at::Tensor>& lengths, const std::optional<at::Tensor>& indices,
                          const std::optional<at::Tensor>& offsets, int64_t axis, bool is_unsafe, const std::optional<at::Scalar>& initial) {
  const bool by_offsets = offsets.has_value() && offsets->defined();
  if (indices.has_value() || data.numel() == 0 || !at::isFloatingType(data.scalar_type()) || (!by_offsets && (!lengths.has_value() || !lengths->defined())))
    refuse("indices, no data, or data that are not floating");
  axis = at::maybe_wrap_dim(axis, data.dim());
  const at::Tensor& given = by_offsets ? *offsets : *lengths;
  TORCH_CHECK(axis == given.dim() - 1, "segment_reduce(): Expected ",
              by_offsets ? "axis to be the last dimension of offsets" : "axis to be the last dimension of lengths", " but got ", axis, ".");
  TORCH_CHECK(given.device() == data.device(), "segment_reduce(): Expected data and ", by_offsets ? "offsets" : "lengths", " on one device");
  if (!by_offsets && is_unsafe && axis > 0) refuse("lengths along a later dimension that are not checked");
  if (!by_offsets && !is_unsafe) {
    TORCH_CHECK(given.numel() == 0 || given.min().item<int64_t>() >= 0, "lengths contains negative value!");
    TORCH_CHECK(given.sum(-1).eq(data.size(axis)).all().item<bool>(),
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe.");
  }
  const at::Tensor out =
      unwrap(clutch::segment_reduce(wrap(rows_of(data, axis)), wrap(segment_offsets(data, lengths, offsets, axis)), segment_options(reduce, initial)));
  std::vector<int64_t> sizes = data.sizes().vec();
  sizes[static_cast<size_t>(axis)] = given.size(axis) - (by_offsets ? 1 : 0);
  return out.view(sizes);
}
at::Tensor segment_reduce_backward(const at::Tensor& grad, const at::Tensor& output, const at::Tensor& data, c10::string_view reduce,
                                   const std::optional<at::Tensor>& lengths, const std::optional<at::Tensor>& offsets, int64_t axis,
                                   const std::optional<at::Scalar>& initial) {
  axis = at::maybe_wrap_dim(axis, data.dim());
  return unwrap(clutch::segment_reduce_backward(wrap(rows_of(grad, axis)), wrap(rows_of(output, axis)), wrap(rows_of(data, axis)),
                                                wrap(segment_offsets(data, lengths, offsets, axis)), segment_options(reduce, initial)))
      .view(data.sizes());
}

}  // namespace

void add_scatters(OpTable& table) {
  table.family("scatters");
  table.add<"scatter_add.out", &scatter_add_out>("scatter_reduce");
  table.add<"scatter_reduce.two_out", &scatter_reduce_out>("scatter_reduce");
  table.add<"scatter.reduce_out", &scatter_op_out>("scatter_reduce");
  table.add<"index_add.out", &index_add_out>("scatter_reduce");
  table.add<"bincount", &bincount>("group_by or scatter_reduce");
  table.add<"segment_reduce", &segment_reduce>("segment_reduce");
  table.add<"_segment_reduce_backward", &segment_reduce_backward>("segment_reduce_backward");
}

}  // namespace torch_clutch
