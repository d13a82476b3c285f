// SPDX-License-Identifier: Apache-2.0
// Named reductions, composed of reduce, rowwise and map.
#include <clutch/complex.hpp>
#include <clutch/ops/copy.hpp>
#include <clutch/ops/reduce.hpp>
#include <clutch/ops/rowwise.hpp>

#include "encode/elementwise.hpp"
#include "ops/out_form.hpp"
#include "ops/traced.hpp"
#include "runtime/op_name.hpp"

#include <limits>

namespace clutch { inline namespace v0 {
namespace {

// Results are written to `out` if given, else to new tensors.

Tensor reduced(const Tensor* out, Reduce op, const ExprFunction& f, std::span<const Tensor> inputs, const ReduceOptions& options, const Stream& stream) {
  if (!out) return reduce(op, f, inputs, options, stream);
  reduce_out(*out, op, f, inputs, options, stream);
  return *out;
}
template <class F, std::size_t kInputs>
Tensor reduced(const Tensor* out, Reduce op, F&& f, const Tensor (&inputs)[kInputs], const ReduceOptions& options, const Stream& stream) {
  return reduced(out, op, detail::trace_over<kInputs>(f, inputs, "reduce"), std::span<const Tensor>(inputs), options, stream);
}

Tensor by_name(const char* name, Reduce op, const Tensor* out, const Tensor& x, const ReduceOptions& options, const Stream& stream) {
  detail::OpName named(name);
  std::span<const Tensor> inputs(&x, 1);
  return reduced(out, op, detail::identity(traced_dtypes(inputs)[0]), inputs, options, stream);
}

/// Sums and means of complex tensors are those of their parts.
Tensor by_parts(const char* name, Reduce op, const Tensor* out, const Tensor& x, const ReduceOptions& options, const Stream& stream) {
  if (!x.defined() || !is_complex(x.dtype())) return by_name(name, op, out, x, options, stream);
  detail::OpName named(name);
  if (!options.after.empty()) throw Error(ErrorCode::invalid_argument, name, "`after` must be left out for a complex tensor, got one");
  const DType dtype = out ? out->dtype() : options.dtype.value_or(x.dtype());
  if (!is_complex(dtype) || dtype != x.dtype())
    throw Error(ErrorCode::invalid_dtype, name,
                fmt::format("the result of a complex tensor must have its dtype {}, got {}", clutch::name(x.dtype()), clutch::name(dtype)));
  ReduceOptions of_parts = options;
  of_parts.dtype = {};
  if (out) {
    const Tensor re = real(*out), im = imag(*out);
    by_name(name, op, &re, real(x), of_parts, stream);
    by_name(name, op, &im, imag(x), of_parts, stream);
    return *out;
  }
  return complex(by_name(name, op, nullptr, real(x), of_parts, stream), by_name(name, op, nullptr, imag(x), of_parts, stream), stream);
}

ReduceOptions keeping(const ReduceOptions& options) {
  ReduceOptions kept = options;
  kept.keepdim = true;
  kept.dtype = {};
  kept.after = {};
  return kept;
}

}  // namespace

/// Defines a named reduction and its out form.
#define CLUTCH_REDUCTION(name, make, op)                                                                                                    \
  Tensor name(const Tensor& x, const ReduceOptions& options, const Stream& stream) { return make(#name, op, nullptr, x, options, stream); } \
  void name##_out(const Tensor& out, const Tensor& x, const ReduceOptions& options, const Stream& stream) { make(#name "_out", op, &out, x, options, stream); }

CLUTCH_REDUCTION(sum, by_parts, Reduce::sum)
CLUTCH_REDUCTION(mean, by_parts, Reduce::mean)
CLUTCH_REDUCTION(prod, by_name, Reduce::prod)
CLUTCH_REDUCTION(amin, by_name, Reduce::amin)
CLUTCH_REDUCTION(amax, by_name, Reduce::amax)
CLUTCH_REDUCTION(any, by_name, Reduce::any)
CLUTCH_REDUCTION(all, by_name, Reduce::all)

namespace {

Tensor place_of(const char* name, Reduce op, const Tensor* out, const Tensor& given, const ReduceOptions& options, const Stream& stream) {
  detail::OpName named(name);
  if (options.dims.rank() > 1) throw Error(ErrorCode::invalid_argument, name, fmt::format("dims must be one dimension or none, got {}", options.dims.rank()));
  if (!options.after.empty() || !options.dtype.empty()) throw Error(ErrorCode::invalid_argument, name, "`after` and dtype must be left out, got one of them");
  if (given.rank() == 0) detail::marked_dims(options.dims, 0, name);
  const bool all = options.dims.empty() || given.rank() == 0;
  Tensor x = all ? given.reshape({-1}) : given;
  int dim = all ? 0 : static_cast<int>(options.dims[0]);
  ReduceOptions searched{.dims = {dim}, .keepdim = true};
  Tensor extreme = by_name(name, op, nullptr, x, searched, stream);
  searched.keepdim = !all && options.keepdim;
  searched.dtype = DType::i64;
  searched.implementation = options.implementation;
  auto places = [&](Expr a, Expr e) { return select((a == e) | (a != a), position(dim), std::numeric_limits<std::int64_t>::max()); };
  if (!(all && options.keepdim)) return reduced(out, Reduce::amin, places, {x, extreme}, searched, stream);
  // The result is one number, with as many dimensions of size 1 as x has.
  const Dims ones = Dims::filled(given.rank(), 1);
  if (!out) return reduce(Reduce::amin, places, {x, extreme}, searched, stream).reshape(ones);
  detail::check_out(*out, ones, out->dtype(), "out", name);
  const Tensor one = out->as_strided({}, {});
  return reduced(&one, Reduce::amin, places, {x, extreme}, searched, stream);
}

}  // namespace

CLUTCH_REDUCTION(argmin, place_of, Reduce::amin)
CLUTCH_REDUCTION(argmax, place_of, Reduce::amax)

namespace {

/// True if the reduced elements are contiguous rows that fit a core's cache, and there are many. One launch that reads each row twice is then faster than two
/// launches.
bool near_rows(const Tensor& x, const ReduceOptions& options, std::string_view op) {
  constexpr std::int64_t kNear = 8192, kMany = 64, kWorth = 65536;
  if (!x.defined() || !is_floating(x.dtype()) || options.dims.empty() || !options.implementation.empty()) return false;
  std::array<bool, kMaxRank> gone = detail::marked_dims(options.dims, x.rank(), op);
  std::int64_t length = 1;
  bool kept = false;
  for (int d = x.rank() - 1; d >= 0; --d) {
    if (!gone[static_cast<std::size_t>(d)]) {
      kept = true;
      continue;
    }
    if (kept || (x.sizes()[d] != 1 && x.strides()[d] != length)) return false;
    length *= x.sizes()[d];
  }
  return length > 0 && length <= kNear && x.numel() / length >= kMany && x.numel() >= kWorth;
}

/// An infinite maximum is not subtracted, since Inf - Inf would be NaN.
Expr guarded(const Expr& m) { return select(isfinite(m), m, cast(Expr(0), m.dtype())); }

struct Squares {
  void operator()(Row& row, const Expr& a) const {
    Expr m = row.mean(a);
    row.result(row.sum(square(a - m)));
  }
};
struct LogSumExp {
  void operator()(Row& row, const Expr& a) const {
    Expr m = guarded(row.max(a));
    row.result(log(row.sum(exp(a - m))) + m);
  }
};
/// Dtype in which real functions of a tensor are computed.
DType real_dtype(const Tensor& x) { return x.dtype() == DType::f64 ? DType::f64 : DType::f32; }

/// A function of rows of f32 or f64, traced once.
template <class F>
const RowFunction& traced_rows(DType computed) {
  static const auto* narrow = new RowFunction(trace_rows(F{}, std::array{DType::f32}));
  static const auto* wide = new RowFunction(trace_rows(F{}, std::array{DType::f64}));
  return computed == DType::f64 ? *wide : *narrow;
}

/// Keeps or removes the reduced dimensions of a result, as the options say.
Tensor shaped(const Tensor& kept, const ReduceOptions& options, std::string_view op) {
  if (options.keepdim) return kept;
  Dims sizes;
  std::array<bool, kMaxRank> gone = detail::marked_dims(options.dims, kept.rank(), op);
  for (int d = 0; d < kept.rank(); ++d)
    if (!options.dims.empty() && !gone[static_cast<std::size_t>(d)]) sizes.push_back(kept.sizes()[d]);
  return kept.reshape(sizes);
}

/// The caller's output as a view with the reduced dimensions. Errors: invalid_shape unless it has the result's shape.
Tensor with_kept(const Tensor& out, const Tensor& x, const ReduceOptions& options, std::string_view op) {
  std::array<bool, kMaxRank> gone = detail::marked_dims(options.dims, x.rank(), op);
  if (options.dims.empty()) gone.fill(true);
  Dims result, sizes, strides;
  for (int d = 0; d < x.rank(); ++d)
    if (!gone[static_cast<std::size_t>(d)] || options.keepdim) result.push_back(gone[static_cast<std::size_t>(d)] ? 1 : x.sizes()[d]);
  detail::check_out(out, result, out.dtype(), "out", op);
  int at = 0;
  for (int d = 0; d < x.rank(); ++d) {
    const bool left_out = gone[static_cast<std::size_t>(d)] && !options.keepdim;
    sizes.push_back(left_out ? 1 : out.sizes()[at]);
    strides.push_back(left_out ? 0 : out.strides()[at++]);
  }
  return out.as_strided(sizes, strides);
}

/// Maps tensors that have the reduced dimensions to the result, with or without these dimensions.
Tensor finished(const Tensor* out, const ExprFunction& f, std::span<const Tensor> kept, const Tensor& x, DTypeList dtype, const ReduceOptions& options,
                std::string_view op, const Stream& stream) {
  if (!out) return shaped(map(f, kept, {.dtype = dtype}, stream)[0], options, op);
  const Tensor whole = with_kept(*out, x, options, op);
  detail::check_apart(*out, x, op);
  map_out(std::span(&whole, 1), f, kept, {}, stream);
  return *out;
}

Tensor variance(const Tensor* out, const Tensor& x, double correction, const ReduceOptions& options, const Stream& stream) {
  ReduceOptions wide = keeping(options), last = options;
  DType computed = real_dtype(x);
  if (is_floating(x.dtype())) wide.dtype = computed;
  if (last.dtype.empty() && is_floating(x.dtype())) last.dtype = x.dtype();
  auto set_after = [&](const Tensor& per_result) {
    double n = per_result.numel() == 0 ? 0 : static_cast<double>(x.numel()) / static_cast<double>(per_result.numel());
    last.after = trace([&](Expr s) { return s / param(std::max(n - correction, 0.0)); }, std::array{computed});
    if (!options.after.empty()) last.after = detail::compose(options.after, last.after);
  };
  if (near_rows(x, options, "var")) {
    Tensor total = rowwise(traced_rows<Squares>(computed), std::span(&x, 1), {.dims = options.dims}, stream)[0];
    set_after(total);
    return finished(out, last.after, std::span(&total, 1), x, last.dtype, options, "var", stream);
  }
  Tensor center = mean(x, wide, stream);
  set_after(center);
  return reduced(
      out, Reduce::sum, [](Expr a, Expr m) { return square(a - m); }, {x, center}, last, stream);
}

Tensor p_norm(const Tensor* out, const Tensor& x, double p, const ReduceOptions& options, const Stream& stream) {
  DType computed = real_dtype(x);
  ReduceOptions last = options;
  if (p < 0 && x.numel() == 0)  // throws as amin of nothing does; for p = -Inf the norm is that minimum and throws itself
    (void)by_name("norm", Reduce::amin, nullptr, x, {.dims = options.dims}, stream);
  auto then = [&](auto f) {
    ExprFunction after = trace(f, std::array{computed});
    last.after = options.after.empty() ? after : detail::compose(options.after, after);
  };
  auto real = [](const Expr& a) { return is_floating(a.dtype()) ? a : cast(a, DType::f32); };
  if (p == std::numeric_limits<double>::infinity())
    return reduced(
        out, Reduce::amax, [&](Expr a) { return abs(real(a)); }, {x}, last, stream);
  if (p == -std::numeric_limits<double>::infinity())
    return reduced(
        out, Reduce::amin, [&](Expr a) { return abs(real(a)); }, {x}, last, stream);
  if (p == 0)
    return reduced(
        out, Reduce::sum, [&](Expr a) { return select(a == 0, real(a) * 0, cast(Expr(1), real(a).dtype())); }, {x}, last, stream);
  if (p == 1)
    return reduced(
        out, Reduce::sum, [&](Expr a) { return abs(real(a)); }, {x}, last, stream);
  if (p == 2) {
    then([](Expr s) { return sqrt(s); });
    return reduced(
        out, Reduce::sum, [&](Expr a) { return square(real(a)); }, {x}, last, stream);
  }
  then([&](Expr s) { return pow(s, param(1 / p)); });
  return reduced(
      out, Reduce::sum, [&](Expr a) { return pow(abs(real(a)), param(p)); }, {x}, last, stream);
}

Tensor log_of_sums(const Tensor* out, const Tensor& x, const ReduceOptions& options, const Stream& stream) {
  ReduceOptions wide = keeping(options);
  DType computed = real_dtype(x);
  wide.dtype = computed;
  DType dtype = is_floating(x.dtype()) ? x.dtype() : DType::f32;
  if (!options.after.empty() && !is_floating(options.after.output_dtype(0))) dtype = options.after.output_dtype(0);
  if (!options.dtype.empty()) dtype = options.dtype[0];
  if (options.after.empty() && near_rows(x, options, "logsumexp")) {
    const RowFunction& rows = traced_rows<LogSumExp>(computed);
    if (!out) return shaped(rowwise(rows, std::span(&x, 1), {.dims = options.dims, .dtype = {dtype}}, stream)[0], options, "logsumexp");
    const Tensor whole = with_kept(*out, x, options, "logsumexp");
    detail::check_apart(*out, x, "logsumexp");
    rowwise_out(std::span(&whole, 1), rows, std::span(&x, 1), {.dims = options.dims}, stream);
    return *out;
  }
  // The sum of no elements is 0, whose logarithm is -Inf. The maximum of no elements would be an Error, so it is not computed.
  Tensor top = x.numel() == 0 ? zeros({}, {.dtype = computed, .device = x.device()}, stream) : amax(x, keeping(options), stream);
  Tensor total = reduce(
      Reduce::sum, [&](Expr a, Expr m) { return exp(cast(a, computed) - guarded(cast(m, computed))); }, {x, top}, wide, stream);
  const Tensor parts[] = {total, top};
  ExprFunction joined = detail::trace_over<2>([&](Expr s, Expr m) { return log(s) + guarded(cast(m, computed)); }, parts, "logsumexp");
  if (!options.after.empty()) joined = detail::compose(options.after, joined);
  return finished(out, joined, parts, x, {dtype}, options, "logsumexp", stream);
}

}  // namespace

Tensor var(const Tensor& x, double correction, const ReduceOptions& options, const Stream& stream) {
  detail::OpName named("var");
  return variance(nullptr, x, correction, options, stream);
}
Tensor var(const Tensor& x, const ReduceOptions& options, const Stream& stream) { return var(x, 1, options, stream); }
void var_out(const Tensor& out, const Tensor& x, double correction, const ReduceOptions& options, const Stream& stream) {
  detail::OpName named("var_out");
  variance(&out, x, correction, options, stream);
}
void var_out(const Tensor& out, const Tensor& x, const ReduceOptions& options, const Stream& stream) { var_out(out, x, 1, options, stream); }

Tensor norm(const Tensor& x, double p, const ReduceOptions& options, const Stream& stream) {
  detail::OpName named("norm");
  return p_norm(nullptr, x, p, options, stream);
}
Tensor norm(const Tensor& x, const ReduceOptions& options, const Stream& stream) { return norm(x, 2, options, stream); }
void norm_out(const Tensor& out, const Tensor& x, double p, const ReduceOptions& options, const Stream& stream) {
  detail::OpName named("norm_out");
  p_norm(&out, x, p, options, stream);
}
void norm_out(const Tensor& out, const Tensor& x, const ReduceOptions& options, const Stream& stream) { norm_out(out, x, 2, options, stream); }

Tensor logsumexp(const Tensor& x, const ReduceOptions& options, const Stream& stream) {
  detail::OpName named("logsumexp");
  return log_of_sums(nullptr, x, options, stream);
}
void logsumexp_out(const Tensor& out, const Tensor& x, const ReduceOptions& options, const Stream& stream) {
  detail::OpName named("logsumexp_out");
  log_of_sums(&out, x, options, stream);
}

namespace {

/// The dimensions of x to sum over so that the result has these sizes. Errors: invalid_shape if the sizes do not broadcast to x's.
Dims summed_dims(const Tensor& x, const Dims& sizes) {
  int lead = x.rank() - sizes.rank();
  const Dims shapes[] = {x.sizes(), sizes};
  if (lead < 0 || !(broadcast_shapes(shapes, "sum_to") == x.sizes()))
    throw Error(ErrorCode::invalid_shape, "sum_to", fmt::format("sizes must broadcast to {}, got {}", to_string(x.sizes()), to_string(sizes)));
  Dims dims;
  for (int d = 0; d < x.rank(); ++d)
    if (d < lead || (sizes[d - lead] == 1 && x.sizes()[d] != 1)) dims.push_back(d);
  return dims;
}

}  // namespace

Tensor sum_to(const Tensor& x, const Dims& sizes, const Stream& stream) {
  detail::OpName named("sum_to");
  if (x.sizes() == sizes) return x;
  const Dims dims = summed_dims(x, sizes);
  return dims.empty() ? x.reshape(sizes) : sum(x, {.dims = dims, .keepdim = true}, stream).reshape(sizes);
}
void sum_to_out(const Tensor& out, const Tensor& x, const Stream& stream) {
  detail::OpName named("sum_to_out");
  const Tensor* both[] = {&out, &x};
  detail::common_runtime(both, "sum_to");
  detail::check_apart(out, x, "sum_to");
  const Dims dims = summed_dims(x, out.sizes());
  if (dims.empty()) return copy_(out, x, {}, stream);
  Dims sizes = Dims::filled(x.rank() - out.rank(), 1), strides = Dims::filled(x.rank() - out.rank(), 0);
  for (int d = 0; d < out.rank(); ++d) sizes.push_back(out.sizes()[d]), strides.push_back(out.strides()[d]);
  sum_out(out.as_strided(sizes, strides), x, {.dims = dims, .keepdim = true}, stream);
}

}}  // namespace clutch::v0
