// SPDX-License-Identifier: Apache-2.0
// Reductions over dimensions, and sums along one.
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/native/Resize.h>
#include <clutch/ops/cumsum.hpp>
#include <clutch/ops/reduce.hpp>

#include <cmath>

namespace torch_clutch {
namespace {

using clutch::Reduce;
using clutch::ReduceOptions;

// The dimensions that a call reduces, and the result's shape.
struct Reduction {
  clutch::Dims dims;
  at::DimVector shape;
  bool keepdim = false;

  Reduction(const at::Tensor& self, at::OptionalIntArrayRef asked, bool keep) : keepdim(keep) {
    const bool all = !asked.has_value() || asked->empty();
    const auto mask = at::dim_list_to_bitset(all ? at::OptionalIntArrayRef() : asked, self.dim());
    for (int64_t d = 0; d < self.dim(); ++d) {
      if (mask[static_cast<size_t>(d)]) dims.push_back(d);
      if (!mask[static_cast<size_t>(d)] || keep) shape.push_back(mask[static_cast<size_t>(d)] ? 1 : self.size(d));
    }
  }
  ReduceOptions options(const at::Tensor& out) const { return {.dims = dims, .keepdim = keepdim, .dtype = need_dtype(out.scalar_type())}; }
};

// A tensor of rank 0 counts as one of a single element.
clutch::Tensor row(const at::Tensor& self) { return wrap(self.dim() == 0 ? self.reshape({1}) : self); }

using Named = void (*)(const clutch::Tensor&, const clutch::Tensor&, const ReduceOptions&, const clutch::Stream&);

at::Tensor& reduce_out(Named named, const at::Tensor& self, at::OptionalIntArrayRef dims, bool keep, at::Tensor& out) {
  if (self.dim() > clutch::kMaxRank) refuse("clutch has up to ", clutch::kMaxRank, " dimensions, got ", self.dim());
  const Reduction reduction(self, dims, keep);
  at::native::resize_output(out, reduction.shape);
  if (out.numel() == 0) return out;
  if (self.dim() == 0) {
    named(wrap(out.reshape({1})), row(self), {.dims = {0}, .keepdim = true, .dtype = need_dtype(out.scalar_type())}, {});
    return out;
  }
  named(wrap(out), wrap(self), reduction.options(out), {});
  return out;
}

at::Tensor& sum_out(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keep, std::optional<at::ScalarType> dtype, at::Tensor& out) {
  if (dtype.has_value() && at::isFloatingType(*dtype) && !at::isFloatingType(self.scalar_type()))
    return reduce_out(&clutch::sum_out, self.to(*dtype), dims, keep, out);
  return reduce_out(&clutch::sum_out, self, dims, keep, out);
}
at::Tensor& mean_out(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keep, std::optional<at::ScalarType>, at::Tensor& out) {
  if (!at::isFloatingType(self.scalar_type()) && !self.is_complex()) refuse("means of other than floating numbers");
  return reduce_out(&clutch::mean_out, self, dims, keep, out);
}
at::Tensor& prod_dim_out(const at::Tensor& self, int64_t dim, bool keep, std::optional<at::ScalarType>, at::Tensor& out) {
  return reduce_out(&clutch::prod_out, self, at::OptionalIntArrayRef(dim), keep, out);
}
at::Tensor prod(const at::Tensor& self, std::optional<at::ScalarType> dtype) {
  at::Tensor out = at::empty({}, self.options().dtype(at::native::get_dtype_from_self(self, dtype, true)));
  return reduce_out(&clutch::prod_out, self.scalar_type() == out.scalar_type() || !dtype.has_value() ? self : self.to(*dtype), std::nullopt, false, out);
}
at::Tensor& amax_out(const at::Tensor& self, at::IntArrayRef dims, bool keep, at::Tensor& out) { return reduce_out(&clutch::amax_out, self, dims, keep, out); }
at::Tensor& amin_out(const at::Tensor& self, at::IntArrayRef dims, bool keep, at::Tensor& out) { return reduce_out(&clutch::amin_out, self, dims, keep, out); }
std::tuple<at::Tensor&, at::Tensor&> aminmax_out(const at::Tensor& self, std::optional<int64_t> dim, bool keep, at::Tensor& low, at::Tensor& high) {
  const int64_t one = dim.value_or(0);
  const at::OptionalIntArrayRef dims = dim.has_value() ? at::OptionalIntArrayRef(one) : at::OptionalIntArrayRef();
  reduce_out(&clutch::amin_out, self, dims, keep, low);
  reduce_out(&clutch::amax_out, self, dims, keep, high);
  return {low, high};
}
at::Tensor max(const at::Tensor& self) {
  at::Tensor out = at::empty({}, self.options());
  return reduce_out(&clutch::amax_out, self, std::nullopt, false, out);
}
at::Tensor min(const at::Tensor& self) {
  at::Tensor out = at::empty({}, self.options());
  return reduce_out(&clutch::amin_out, self, std::nullopt, false, out);
}

// any and all keep u8 as u8, as PyTorch does.
at::Tensor& truth_out(Named named, const at::Tensor& self, at::OptionalIntArrayRef dims, bool keep, at::Tensor& out) {
  if (out.scalar_type() == at::kBool) return reduce_out(named, self, dims, keep, out);
  at::Tensor truths = at::empty({0}, out.options().dtype(at::kBool));
  reduce_out(named, self, dims, keep, truths);
  at::native::resize_output(out, truths.sizes());
  return out.copy_(truths);
}
at::Tensor& any_dim_out(const at::Tensor& self, int64_t dim, bool keep, at::Tensor& out) {
  return truth_out(&clutch::any_out, self, at::OptionalIntArrayRef(dim), keep, out);
}
at::Tensor& any_out(const at::Tensor& self, at::Tensor& out) { return truth_out(&clutch::any_out, self, std::nullopt, false, out); }
at::Tensor& all_dim_out(const at::Tensor& self, int64_t dim, bool keep, at::Tensor& out) {
  return truth_out(&clutch::all_out, self, at::OptionalIntArrayRef(dim), keep, out);
}
at::Tensor& all_out(const at::Tensor& self, at::Tensor& out) { return truth_out(&clutch::all_out, self, std::nullopt, false, out); }

using Search = void (*)(const clutch::Tensor&, const clutch::Tensor&, const ReduceOptions&, const clutch::Stream&);
at::Tensor& search_out(Search named, const at::Tensor& self, std::optional<int64_t> dim, bool keep, at::Tensor& out) {
  if (!dim.has_value()) {
    const at::Tensor flat = self.reshape({-1});
    at::DimVector shape;
    if (keep) shape.assign(static_cast<size_t>(self.dim()), 1);
    at::native::resize_output(out, shape);
    named(wrap(out.reshape({1})), wrap(flat), {.dims = {0}, .keepdim = true}, {});
    return out;
  }
  const int64_t wrapped = at::maybe_wrap_dim(*dim, self.dim());
  const Reduction reduction(self, at::OptionalIntArrayRef(wrapped), keep);
  at::native::resize_output(out, reduction.shape);
  if (out.numel() == 0) return out;
  if (self.dim() == 0) return out.zero_();
  named(wrap(out), wrap(self), {.dims = {wrapped}, .keepdim = keep}, {});
  return out;
}
at::Tensor& argmax_out(const at::Tensor& self, std::optional<int64_t> dim, bool keep, at::Tensor& out) {
  return search_out(&clutch::argmax_out, self, dim, keep, out);
}
at::Tensor& argmin_out(const at::Tensor& self, std::optional<int64_t> dim, bool keep, at::Tensor& out) {
  return search_out(&clutch::argmin_out, self, dim, keep, out);
}

std::tuple<at::Tensor&, at::Tensor&> extreme_out(Search search, Named named, const at::Tensor& self, int64_t dim, bool keep, at::Tensor& values,
                                                 at::Tensor& indices) {
  reduce_out(named, self, at::OptionalIntArrayRef(dim), keep, values);
  search_out(search, self, dim, keep, indices);
  return {values, indices};
}
std::tuple<at::Tensor&, at::Tensor&> max_dim_out(const at::Tensor& self, int64_t dim, bool keep, at::Tensor& values, at::Tensor& indices) {
  return extreme_out(&clutch::argmax_out, &clutch::amax_out, self, dim, keep, values, indices);
}
std::tuple<at::Tensor&, at::Tensor&> min_dim_out(const at::Tensor& self, int64_t dim, bool keep, at::Tensor& values, at::Tensor& indices) {
  return extreme_out(&clutch::argmin_out, &clutch::amin_out, self, dim, keep, values, indices);
}

at::Tensor& var_out(const at::Tensor& self, at::OptionalIntArrayRef dims, const std::optional<at::Scalar>& correction, bool keep, at::Tensor& out) {
  TORCH_CHECK(at::isFloatingType(self.scalar_type()) || self.is_complex(), "std and var only support floating point and complex dtypes");
  if (self.is_complex()) refuse("complex numbers");
  const Reduction reduction(self, dims, keep);
  at::native::resize_output(out, reduction.shape);
  if (out.numel() == 0) return out;
  ReduceOptions options = reduction.options(out);
  if (self.dim() == 0) options.dims = {0}, options.keepdim = true;
  const clutch::Tensor x = row(self);
  clutch::var_out(wrap(self.dim() == 0 ? out.reshape({1}) : out), x, correction.has_value() ? correction->toDouble() : 1.0, options);
  return out;
}
at::Tensor& std_out(const at::Tensor& self, at::OptionalIntArrayRef dims, const std::optional<at::Scalar>& correction, bool keep, at::Tensor& out) {
  torch_clutch::var_out(self, dims, correction, keep, out);
  return out.sqrt_();
}
at::Tensor var(const at::Tensor& self, at::OptionalIntArrayRef dims, const std::optional<at::Scalar>& correction, bool keep) {
  at::Tensor out = at::empty({0}, self.options());
  return torch_clutch::var_out(self, dims, correction, keep, out);
}
at::Tensor standard_deviation(const at::Tensor& self, at::OptionalIntArrayRef dims, const std::optional<at::Scalar>& correction, bool keep) {
  at::Tensor out = at::empty({0}, self.options());
  return torch_clutch::std_out(self, dims, correction, keep, out);
}
std::tuple<at::Tensor, at::Tensor> var_mean(const at::Tensor& self, at::OptionalIntArrayRef dims, const std::optional<at::Scalar>& correction, bool keep) {
  at::Tensor variance = torch_clutch::var(self, dims, correction, keep), mean = at::empty({0}, self.options());
  torch_clutch::mean_out(self, dims, keep, std::nullopt, mean);
  return {variance, mean};
}
std::tuple<at::Tensor, at::Tensor> std_mean(const at::Tensor& self, at::OptionalIntArrayRef dims, const std::optional<at::Scalar>& correction, bool keep) {
  auto [variance, mean] = torch_clutch::var_mean(self, dims, correction, keep);
  return {variance.sqrt_(), mean};
}

at::Tensor& vector_norm_out(const at::Tensor& self, const at::Scalar& ord, at::OptionalIntArrayRef dims, bool keep, std::optional<at::ScalarType> dtype,
                            at::Tensor& out) {
  if (self.is_complex()) refuse("norms of complex numbers");
  if (dtype.has_value() && *dtype != self.scalar_type()) return torch_clutch::vector_norm_out(self.to(*dtype), ord, dims, keep, std::nullopt, out);
  TORCH_CHECK(at::isFloatingType(self.scalar_type()), "linalg.vector_norm: Expected a floating point or complex tensor as input. Got ", self.scalar_type());
  const double p = ord.toDouble();
  if (self.numel() == 0 && (p < 0 || std::isinf(p))) refuse("a norm of nothing");
  const Reduction reduction(self, dims, keep);
  at::native::resize_output(out, reduction.shape);
  if (out.numel() == 0) return out;
  ReduceOptions options = reduction.options(out);
  if (self.dim() == 0) options.dims = {0}, options.keepdim = true;
  clutch::norm_out(wrap(self.dim() == 0 ? out.reshape({1}) : out), row(self), p, options);
  return out;
}
at::Tensor& norm_out(const at::Tensor& self, const std::optional<at::Scalar>& p, at::IntArrayRef dims, bool keep, at::Tensor& out) {
  return vector_norm_out(self, p.value_or(2), dims, keep, std::nullopt, out);
}

at::Tensor& logsumexp_out(const at::Tensor& self, at::IntArrayRef dims, bool keep, at::Tensor& out) {
  if (!at::isFloatingType(self.scalar_type())) refuse("logsumexp of integers");
  return reduce_out(&clutch::logsumexp_out, self, dims, keep, out);
}
at::Tensor logsumexp(const at::Tensor& self, at::IntArrayRef dims, bool keep) {
  at::Tensor out = at::empty({0}, self.options());
  return torch_clutch::logsumexp_out(self, dims, keep, out);
}

at::Tensor count_nonzero(const at::Tensor& self, at::IntArrayRef dims) {
  if (self.is_complex()) refuse("complex numbers");
  return self.ne(0).sum(dims);
}
at::Tensor& nansum_out(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keep, std::optional<at::ScalarType> dtype, at::Tensor& out) {
  if (!at::isFloatingType(self.scalar_type())) return at::sum_out(out, self, dims, keep, dtype);
  return at::sum_out(out, self.nan_to_num(0, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()), dims, keep, dtype);
}

at::Tensor nansum(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keep, std::optional<at::ScalarType> dtype) {
  at::Tensor out = at::empty({0}, self.options().dtype(at::native::get_dtype_from_self(self, dtype, true)));
  return torch_clutch::nansum_out(self, dims, keep, dtype, out);
}
at::Tensor trace(const at::Tensor& self) {
  TORCH_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim ", self.dim());
  return self.diagonal().sum();
}
bool equal(const at::Tensor& self, const at::Tensor& other) {
  TORCH_CHECK(self.device() == other.device() && self.scalar_type() == other.scalar_type(),
              "Expected all tensors to be on the same device and of one dtype, got ", self.device(), " ", self.scalar_type(), " and ", other.device(), " ",
              other.scalar_type());
  return self.sizes().equals(other.sizes()) && (self.numel() == 0 || self.eq(other).all().item<bool>());
}

at::Tensor& cumsum_out(const at::Tensor& self, int64_t dim, std::optional<at::ScalarType>, at::Tensor& out) {
  at::native::resize_output(out, self.sizes());
  if (self.numel() == 0) return out;
  const int64_t wrapped = at::maybe_wrap_dim(dim, self.dim());
  if (self.dim() == 0) return out.copy_(self);
  const bool widened = at::isFloatingType(out.scalar_type()) != at::isFloatingType(self.scalar_type()) ||
                       (at::isFloatingType(out.scalar_type()) && out.scalar_type() != self.scalar_type());
  clutch::cumsum_out(wrap(out), wrap(widened ? self.to(out.scalar_type()) : self), static_cast<int>(wrapped), {.dtype = need_dtype(out.scalar_type())});
  return out;
}

}  // namespace

void add_reductions(OpTable& table) {
  table.family("reductions");
  table.add<"sum.IntList_out", &sum_out>("sum");
  table.add<"mean.out", &mean_out>("mean");
  table.add<"prod.int_out", &prod_dim_out>("prod");
  table.add<"prod", &prod>("prod");
  table.add<"amax.out", &amax_out>("amax");
  table.add<"amin.out", &amin_out>("amin");
  table.add<"aminmax.out", &aminmax_out>("amin, amax");
  table.add<"max", &max>("amax");
  table.add<"min", &min>("amin");
  table.add<"max.dim_max", &max_dim_out>("amax, argmax");
  table.add<"min.dim_min", &min_dim_out>("amin, argmin");
  table.add<"argmax.out", &argmax_out>("argmax");
  table.add<"argmin.out", &argmin_out>("argmin");
  table.add<"any.out", &any_dim_out>("any");
  table.add<"any.all_out", &any_out>("any");
  table.add<"all.out", &all_dim_out>("all");
  table.add<"all.all_out", &all_out>("all");
  table.add<"var.correction", &var>("var");
  table.add<"var.correction_out", &var_out>("var");
  table.add<"std.correction", &standard_deviation>("var, sqrt");
  table.add<"std.correction_out", &std_out>("var, sqrt");
  table.add<"var_mean.correction", &var_mean>("var, mean");
  table.add<"std_mean.correction", &std_mean>("var, mean");
  table.add<"linalg_vector_norm.out", &vector_norm_out>("norm");
  table.add<"norm.out", &norm_out>("norm");
  table.add<"logsumexp", &logsumexp>("logsumexp");
  table.add<"logsumexp.out", &logsumexp_out>("logsumexp");
  table.add<"count_nonzero.dim_IntList", &count_nonzero>("ne, sum");
  table.add<"nansum", &nansum>("map, sum");
  table.add<"trace", &trace>("sum");
  table.add<"equal", &equal>("eq, all");
  table.add<"nansum.out", &nansum_out>("map, sum");
  table.add<"cumsum.out", &cumsum_out>("cumsum");
}

}  // namespace torch_clutch
