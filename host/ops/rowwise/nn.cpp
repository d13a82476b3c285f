// SPDX-License-Identifier: Apache-2.0
// Row-wise ops of neural networks, composed of rowwise, reduce and map.
#include <clutch/nn.hpp>

#include "encode/elementwise.hpp"
#include "encode/plugin_ops.hpp"
#include "expr/node.hpp"
#include "ops/out_form.hpp"
#include "ops/rowwise_plan.hpp"
#include "runtime/op_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>

namespace clutch { inline namespace v0 { namespace nn {
namespace {

/// A function of rows, traced once for each op name, dtypes of its tensors and constant `number`.
template <std::size_t kInputs, class F>
const RowFunction& traced_once(const std::string& op, const Tensor (&inputs)[kInputs], double number, F&& f) {
  static std::mutex mutex;
  static auto* known = new std::map<std::tuple<std::string, std::vector<DType>, double>, RowFunction>;
  for (const Tensor& t : inputs) {
    if (!t.defined()) throw Error(ErrorCode::invalid_argument, op, "a tensor must be defined, got an undefined one");
    if (!is_floating(t.dtype())) throw Error(ErrorCode::invalid_dtype, op, fmt::format("tensors must be floating, got {}", name(t.dtype())));
  }
  std::vector<DType> traced = traced_dtypes(inputs);
  std::lock_guard lock(mutex);
  RowFunction& made = (*known)[{op, traced, number}];
  if (made.empty()) {
    std::array<DType, kInputs> dtypes;
    std::copy(traced.begin(), traced.end(), dtypes.begin());
    made = trace_rows(f, dtypes);
  }
  return made;
}

template <std::size_t kInputs, class F>
std::vector<Tensor> by_rows(const std::string& op, const Tensor (&inputs)[kInputs], const RowwiseOptions& options, const Stream& stream, F&& f,
                            double number = 0) {
  return rowwise(traced_once(op, inputs, number, f), inputs, options, stream);
}
/// The same into given outputs; new ones if none are given.
template <std::size_t kInputs, class F>
std::vector<Tensor> by_rows_into(std::span<const Tensor> outputs, const std::string& op, const Tensor (&inputs)[kInputs], const RowwiseOptions& options,
                                 const Stream& stream, F&& f, double number = 0) {
  if (outputs.empty()) return by_rows(op, inputs, options, stream, f, number);
  rowwise_out(outputs, traced_once(op, inputs, number, f), inputs, {.dims = options.dims}, stream);
  return {outputs.begin(), outputs.end()};
}

/// The same of one output: into `out`, or, if that is undefined, into a new tensor of this dtype. Unless it is wanted, the call is checked alone.
template <std::size_t kInputs, class F>
Tensor rows_or(const std::string& op, bool is_wanted, const Tensor& out, const Tensor (&inputs)[kInputs], const Dims& dims, DType dtype, const Stream& stream,
               F&& f) {
  if (!is_wanted) return detail::check_rowwise({}, traced_once(op, inputs, 0, f), inputs, {.dims = dims}), Tensor();
  if (!out.defined()) return by_rows(op, inputs, {.dims = dims, .dtype = {dtype}}, stream, f)[0];
  return by_rows_into(std::span(&out, 1), op, inputs, {.dims = dims}, stream, f)[0];
}

DType compute_dtype(const Tensor& x) { return detail::compute_dtype(x.dtype(), "nn"); }

auto softmax_of = [](Row& row, Expr x) {
  Expr e = exp(x - row.max(x));
  return e * (1 / row.sum(e));
};
auto log_softmax_of = [](Row& row, Expr x) {
  Expr centered = x - row.max(x);
  return centered - log(row.sum(exp(centered)));
};
/// softmax() or log_softmax() by a plugin, into `out`, or into a new tensor if that is undefined; undefined if none takes it.
template <class F>
Tensor softmax_by_plugin(const char* traced, std::string_view op, const F& of, Tensor out, const Tensor& x, int dim, const Stream& given) {
  if (!detail::has_plugin_implementations(op)) return {};
  const std::span<const Tensor> outputs(&out, out.defined() ? 1 : 0);
  detail::Runtime& runtime = detail::check_rowwise(outputs, traced_once(traced, {x}, 0, of), {&x, 1}, {.dims = {dim}});
  if (x.numel() == 0) return {};
  const Stream stream = detail::resolve_stream(given, runtime, op);
  if (!out.defined()) out = empty(x.sizes(), {.dtype = x.dtype(), .device = stream.device()}, stream);
  return detail::by_plugin(op, {}, {&out, &x, &dim, &stream}, stream) ? out : Tensor();
}
/// The same of a gradient from `y`.
template <class F>
Tensor softmax_back_by_plugin(const char* traced, std::string_view op, const F& of, Tensor out, const Tensor& grad, const Tensor& y, int dim,
                              const Stream& given) {
  if (!detail::has_plugin_implementations(op)) return {};
  const std::span<const Tensor> outputs(&out, out.defined() ? 1 : 0);
  const Tensor both[] = {grad, y};
  detail::Runtime& runtime = detail::check_rowwise(outputs, traced_once(traced, both, 0, of), both, {.dims = {dim}});
  if (y.numel() == 0 || !(grad.sizes() == y.sizes())) return {};  // rows of a shape that one of them has not are the library's own affair
  const Stream stream = detail::resolve_stream(given, runtime, op);
  if (!out.defined()) out = empty(y.sizes(), {.dtype = y.dtype(), .device = stream.device()}, stream);
  return detail::by_plugin(op, {}, {&out, &grad, &y, &dim, &stream}, stream) ? out : Tensor();
}
auto softmax_back = [](Row& row, Expr g, Expr p) { return p * (g - row.sum(g * p)); };
auto log_softmax_back = [](Row& row, Expr g, Expr l) { return g - exp(l) * row.sum(g); };

Dims last_dims(const Tensor& x, int count, std::string_view op) {
  if (count < 1 || count > x.rank())
    throw Error(ErrorCode::invalid_argument, op, fmt::format("normalized_rank must be from 1 to the rank {}, got {}", x.rank(), count));
  Dims dims;
  for (int d = x.rank() - count; d < x.rank(); ++d) dims.push_back(d);
  return dims;
}
Dims leading_dims(const Tensor& x, int count) {
  Dims dims;
  for (int d = 0; d < x.rank() - count; ++d) dims.push_back(d);
  return dims;
}
void check_affine(const Tensor& x, const Tensor& t, int count, std::string_view op) {
  if (!t.defined()) return;
  bool fits = t.rank() == count;
  for (int d = 0; fits && d < count; ++d) fits = t.sizes()[d] == x.sizes()[x.rank() - count + d];
  if (!fits)
    throw Error(ErrorCode::invalid_shape, op,
                fmt::format("weight and bias must have the shape of rows of {}, got {}", to_string(x.sizes()), to_string(t.sizes())));
}

/// The stream of a gradient's call that plugins may take: where one brings the op, x has elements, the gradient is of its shape, and what was kept of each
/// row of one for each row.
template <class F, std::size_t kInputs>
std::optional<Stream> stream_for_plugins(std::string_view op, const std::string& traced, const F& of, const Tensor (&inputs)[kInputs], const Dims& dims,
                                         const Tensor& grad, const Tensor& x, std::initializer_list<const Tensor*> kept, const Stream& given) {
  if (!detail::has_plugin_implementations(op)) return std::nullopt;
  detail::Runtime& runtime = detail::check_rowwise({}, traced_once(traced, inputs, 0, of), inputs, {.dims = dims});
  Dims of_rows = x.sizes();
  for (const std::int64_t d : dims) of_rows[static_cast<int>(d)] = 1;
  bool fits = x.numel() > 0 && grad.sizes() == x.sizes();
  for (const Tensor* t : kept) fits = fits && t->sizes() == of_rows;
  return fits ? std::optional(detail::resolve_stream(given, runtime, op)) : std::nullopt;
}
Dims row_sizes(const Tensor& x, const Dims& dims) {
  Dims sizes;
  for (const std::int64_t d : dims) sizes.push_back(x.sizes()[static_cast<int>(d)]);
  return sizes;
}
/// A plugin's tensor for a result: the caller's, or a new one.
Tensor made_or(const Tensor& out, const Dims& sizes, DType dtype, const Stream& stream) {
  return out.defined() ? out : empty(sizes, {.dtype = dtype, .device = stream.device()}, stream);
}

/// The gradient of a tensor that was broadcast over the leading dimensions: the sum of f over these dimensions, into `out` if that is defined.
template <class F, std::size_t kInputs>
Tensor sum_leading(const Tensor& out, const Tensor& like, const Tensor& x, int count, F&& f, const Tensor (&inputs)[kInputs], const Stream& stream) {
  const ReduceOptions options{.dims = leading_dims(x, count), .dtype = {like.dtype()}};
  if (!out.defined()) return x.rank() == count ? map(f, inputs, {.dtype = {like.dtype()}}, stream) : reduce(Reduce::sum, f, inputs, options, stream);
  if (x.rank() == count)
    map_out(out, f, inputs, {}, stream);
  else
    reduce_out(out, Reduce::sum, f, inputs, {.dims = options.dims}, stream);
  return out;
}

}  // namespace

Tensor softmax(const Tensor& x, int dim, const Stream& stream) {
  detail::OpName named("nn::softmax");
  if (Tensor made = softmax_by_plugin("softmax", "nn::softmax", softmax_of, {}, x, dim, stream); made.defined()) return made;
  return by_rows("softmax", {x}, {.dims = {dim}, .dtype = {x.dtype()}}, stream, softmax_of)[0];
}
void softmax_out(const Tensor& out, const Tensor& x, int dim, const Stream& stream) {
  detail::OpName named("nn::softmax_out");
  if (out.defined() && softmax_by_plugin("softmax", "nn::softmax", softmax_of, out, x, dim, stream).defined()) return;
  rowwise_out(std::span(&out, 1), traced_once("softmax", {x}, 0, softmax_of), std::span(&x, 1), {.dims = {dim}}, stream);
}
Tensor log_softmax(const Tensor& x, int dim, const Stream& stream) {
  detail::OpName named("nn::log_softmax");
  if (Tensor made = softmax_by_plugin("log_softmax", "nn::log_softmax", log_softmax_of, {}, x, dim, stream); made.defined()) return made;
  return by_rows("log_softmax", {x}, {.dims = {dim}, .dtype = {x.dtype()}}, stream, log_softmax_of)[0];
}
void log_softmax_out(const Tensor& out, const Tensor& x, int dim, const Stream& stream) {
  detail::OpName named("nn::log_softmax_out");
  if (out.defined() && softmax_by_plugin("log_softmax", "nn::log_softmax", log_softmax_of, out, x, dim, stream).defined()) return;
  rowwise_out(std::span(&out, 1), traced_once("log_softmax", {x}, 0, log_softmax_of), std::span(&x, 1), {.dims = {dim}}, stream);
}

Tensor softmax_backward(const Tensor& grad, const Tensor& y, int dim, const Stream& stream) {
  detail::OpName named("nn::softmax_backward");
  if (Tensor made = softmax_back_by_plugin("softmax_backward", "nn::softmax_backward", softmax_back, {}, grad, y, dim, stream); made.defined()) return made;
  return by_rows("softmax_backward", {grad, y}, {.dims = {dim}, .dtype = {y.dtype()}}, stream, softmax_back)[0];
}
void softmax_backward_out(const Tensor& out, const Tensor& grad, const Tensor& y, int dim, const Stream& stream) {
  detail::OpName named("nn::softmax_backward_out");
  if (out.defined() && softmax_back_by_plugin("softmax_backward", "nn::softmax_backward", softmax_back, out, grad, y, dim, stream).defined()) return;
  by_rows_into(std::span(&out, 1), "softmax_backward", {grad, y}, {.dims = {dim}}, stream, softmax_back);
}
Tensor log_softmax_backward(const Tensor& grad, const Tensor& y, int dim, const Stream& stream) {
  detail::OpName named("nn::log_softmax_backward");
  constexpr std::string_view kOp = "nn::log_softmax_backward";
  if (Tensor made = softmax_back_by_plugin("log_softmax_backward", kOp, log_softmax_back, {}, grad, y, dim, stream); made.defined()) return made;
  return by_rows("log_softmax_backward", {grad, y}, {.dims = {dim}, .dtype = {y.dtype()}}, stream, log_softmax_back)[0];
}
void log_softmax_backward_out(const Tensor& out, const Tensor& grad, const Tensor& y, int dim, const Stream& stream) {
  detail::OpName named("nn::log_softmax_backward_out");
  constexpr std::string_view kOp = "nn::log_softmax_backward";
  if (out.defined() && softmax_back_by_plugin("log_softmax_backward", kOp, log_softmax_back, out, grad, y, dim, stream).defined()) return;
  by_rows_into(std::span(&out, 1), "log_softmax_backward", {grad, y}, {.dims = {dim}}, stream, log_softmax_back);
}

namespace {

/// A normalization's outputs by a plugin, into given ones or new ones; none if none takes it. `call` gives them to it.
template <class Call>
std::vector<Tensor> normalized_by_plugin(std::string_view op, std::span<const Tensor> outputs, const RowFunction& f, std::span<const Tensor> inputs,
                                         const RowwiseOptions& options, const Stream& given, const Call& call) {
  if (!detail::has_plugin_implementations(op)) return {};
  detail::Runtime& runtime = detail::check_rowwise(outputs, f, inputs, {.dims = options.dims});
  const Tensor& x = inputs[0];
  if (x.numel() == 0) return {};
  const Stream stream = detail::resolve_stream(given, runtime, op);
  std::vector<Tensor> made(outputs.begin(), outputs.end());
  Dims of_rows = x.sizes();
  for (const std::int64_t d : options.dims) of_rows[static_cast<int>(d)] = 1;
  for (int i = static_cast<int>(made.size()); i < options.dtype.size(); ++i)
    made.push_back(empty(i == 0 ? x.sizes() : of_rows, {.dtype = options.dtype[i], .device = stream.device()}, stream));
  return call(made, stream) ? made : std::vector<Tensor>();
}

/// Runs a normalization: core(row, element), times weight and plus bias if these are given; or by_plugin(outputs, stream), where that takes it.
template <class F, class ByPlugin>
std::vector<Tensor> normalized(std::span<const Tensor> outputs, const std::string& op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                               const NormOptions& options, int results, const Stream& stream, F&& core, const ByPlugin& by_plugin) {
  Dims dims = last_dims(x, options.normalized_rank, op);
  check_affine(x, weight, options.normalized_rank, op);
  check_affine(x, bias, options.normalized_rank, op);
  DType kept = compute_dtype(x);
  RowwiseOptions row_options{.dims = dims, .dtype = {x.dtype(), kept}};
  if (results == 2) row_options.dtype = {x.dtype(), kept, kept};
  auto run = [&](const std::string& traced, const auto& inputs, auto&& f) {
    std::vector<Tensor> made = normalized_by_plugin("nn::" + op, outputs, traced_once(traced, inputs, options.eps, f), inputs, row_options, stream, by_plugin);
    return made.empty() ? by_rows_into(outputs, traced, inputs, row_options, stream, f, options.eps) : made;
  };
  const Tensor all[] = {x, weight, bias}, weighted[] = {x, weight}, shifted[] = {x, bias}, plain[] = {x};
  if (weight.defined() && bias.defined()) return run(op + " of weight and bias", all, [&](Row& row, Expr a, Expr w, Expr b) { return core(row, a) * w + b; });
  if (weight.defined()) return run(op + " of weight", weighted, [&](Row& row, Expr a, Expr w) { return core(row, a) * w; });
  if (bias.defined()) return run(op + " of bias", shifted, [&](Row& row, Expr a, Expr b) { return core(row, a) + b; });
  return run(op, plain, [&](Row& row, Expr a) { return core(row, a); });
}

}  // namespace

namespace {

std::vector<Tensor> layer_normalized(std::span<const Tensor> outputs, const Tensor& x, const Tensor& weight, const Tensor& bias, const NormOptions& options,
                                     const Stream& stream) {
  auto core = [&](Row& row, const Expr& a) {
    Expr mean = row.mean(a), centered = a - mean, rstd = rsqrt(row.mean(square(centered)) + options.eps);
    row.result(mean);
    row.result(rstd);
    return centered * rstd;
  };
  return normalized(outputs, "layer_norm", x, weight, bias, options, 2, stream, core, [&](std::span<const Tensor> made, const Stream& on) {
    const LayerNormResult out{made[0], made[1], made[2]};
    return detail::by_plugin("nn::layer_norm", {}, {&out, &x, &weight, &bias, &options, &on}, on);
  });
}
std::vector<Tensor> rms_normalized(std::span<const Tensor> outputs, const Tensor& x, const Tensor& weight, const NormOptions& options, const Stream& stream) {
  auto core = [&](Row& row, const Expr& a) {
    Expr rrms = rsqrt(row.mean(square(a)) + options.eps);
    row.result(rrms);
    return a * rrms;
  };
  return normalized(outputs, "rms_norm", x, weight, {}, options, 1, stream, core, [&](std::span<const Tensor> made, const Stream& on) {
    const RmsNormResult out{made[0], made[1]};
    return detail::by_plugin("nn::rms_norm", {}, {&out, &x, &weight, &options, &on}, on);
  });
}

}  // namespace

LayerNormResult layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const NormOptions& options, const Stream& stream) {
  detail::OpName named("nn::layer_norm");
  std::vector<Tensor> made = layer_normalized({}, x, weight, bias, options, stream);
  return {made[0], made[1], made[2]};
}
void layer_norm_out(const LayerNormResult& out, const Tensor& x, const Tensor& weight, const Tensor& bias, const NormOptions& options, const Stream& stream) {
  detail::OpName named("nn::layer_norm_out");
  layer_normalized(std::array{out.y, out.mean, out.rstd}, x, weight, bias, options, stream);
}

namespace {

/// The gradients that are asked for, which are all if `outs` is null, in the tensors of `outs` where these can be written at once.
LayerNormGradients layer_norm_gradients(const LayerNormGradients* outs, const Tensor& grad, const Tensor& x, const Tensor& mean, const Tensor& rstd,
                                        const Tensor& weight, const NormOptions& options, const Stream& stream) {
  const Dims dims = last_dims(x, options.normalized_rank, "layer_norm_backward");
  check_affine(x, weight, options.normalized_rank, "layer_norm_backward");
  auto core = [](Row& row, const Expr& g, const Expr& a, const Expr& m, const Expr& r) {
    Expr normal = (a - m) * r, along = row.mean(g), across = row.mean(g * normal);
    return r * (g - along - normal * across);
  };
  auto of_weight = [&](Row& row, Expr g, Expr a, Expr m, Expr r, Expr w) { return core(row, g * w, a, m, r); };
  constexpr std::string_view kOp = "nn::layer_norm_backward";
  const Tensor plain[] = {grad, x, mean, rstd}, weighted[] = {grad, x, mean, rstd, weight};
  const std::optional<Stream> on = weight.defined()
                                       ? stream_for_plugins(kOp, "layer_norm_backward of weight", of_weight, weighted, dims, grad, x, {&mean, &rstd}, stream)
                                       : stream_for_plugins(kOp, "layer_norm_backward", core, plain, dims, grad, x, {&mean, &rstd}, stream);
  const Tensor& affine = weight.defined() ? weight : x;
  const Dims row = row_sizes(x, dims);
  LayerNormGradients into;
  if (outs) {
    const detail::Asked asked[] = {{outs->x, x.sizes(), x.dtype()}, {outs->weight, row, affine.dtype(), weight.defined()}, {outs->bias, row, affine.dtype()}};
    const Tensor* inputs[] = {&grad, &x, &mean, &rstd, &weight};
    if (detail::takes_results(asked, inputs)) into = *outs;
  }
  if (on) {
    LayerNormGradients all{.x = made_or(into.x, x.sizes(), x.dtype(), *on),
                           .weight = weight.defined() ? made_or(into.weight, row, weight.dtype(), *on) : Tensor(),
                           .bias = made_or(into.bias, row, affine.dtype(), *on)};
    if (detail::by_plugin(kOp, {}, {&all, &grad, &x, &mean, &rstd, &weight, &options, &*on}, *on)) return all;
  }
  LayerNormGradients made;
  const bool wants_x = !outs || outs->x.defined();
  made.x = weight.defined() ? rows_or("layer_norm_backward of weight", wants_x, into.x, weighted, dims, x.dtype(), stream, of_weight)
                            : rows_or("layer_norm_backward", wants_x, into.x, plain, dims, x.dtype(), stream, core);
  if (weight.defined() && (!outs || outs->weight.defined()))
    made.weight = sum_leading(
        into.weight, weight, x, options.normalized_rank, [](Expr g, Expr a, Expr m, Expr r) { return g * ((a - m) * r); }, plain, stream);
  if (!outs || outs->bias.defined())
    made.bias = sum_leading(
        into.bias, affine, x, options.normalized_rank, [](Expr g) { return g; }, {grad}, stream);
  return made;
}

}  // namespace

LayerNormGradients layer_norm_backward(const Tensor& grad, const Tensor& x, const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                                       const NormOptions& options, const Stream& stream) {
  detail::OpName named("nn::layer_norm_backward");
  return layer_norm_gradients(nullptr, grad, x, mean, rstd, weight, options, stream);
}
void layer_norm_backward_out(const LayerNormGradients& out, const Tensor& grad, const Tensor& x, const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                             const NormOptions& options, const Stream& stream) {
  detail::OpName named("nn::layer_norm_backward_out");
  const LayerNormGradients made = layer_norm_gradients(&out, grad, x, mean, rstd, weight, options, stream);
  const detail::Stored all[] = {{out.x, made.x, "out.x"}, {out.weight, made.weight, "out.weight"}, {out.bias, made.bias, "out.bias"}};
  detail::store(all, "layer_norm_backward", stream);
}

RmsNormResult rms_norm(const Tensor& x, const Tensor& weight, const NormOptions& options, const Stream& stream) {
  detail::OpName named("nn::rms_norm");
  std::vector<Tensor> made = rms_normalized({}, x, weight, options, stream);
  return {made[0], made[1]};
}
void rms_norm_out(const RmsNormResult& out, const Tensor& x, const Tensor& weight, const NormOptions& options, const Stream& stream) {
  detail::OpName named("nn::rms_norm_out");
  rms_normalized(std::array{out.y, out.rrms}, x, weight, options, stream);
}

namespace {

/// As layer_norm_gradients().
RmsNormGradients rms_norm_gradients(const RmsNormGradients* outs, const Tensor& grad, const Tensor& x, const Tensor& rrms, const Tensor& weight,
                                    const NormOptions& options, const Stream& stream) {
  const Dims dims = last_dims(x, options.normalized_rank, "rms_norm_backward");
  check_affine(x, weight, options.normalized_rank, "rms_norm_backward");
  auto core = [](Row& row, const Expr& g, const Expr& a, const Expr& r) {
    Expr normal = a * r;
    return r * (g - normal * row.mean(g * normal));
  };
  auto of_weight = [&](Row& row, Expr g, Expr a, Expr r, Expr w) { return core(row, g * w, a, r); };
  constexpr std::string_view kOp = "nn::rms_norm_backward";
  const Tensor plain[] = {grad, x, rrms}, weighted[] = {grad, x, rrms, weight};
  const std::optional<Stream> on = weight.defined()
                                       ? stream_for_plugins(kOp, "rms_norm_backward of weight", of_weight, weighted, dims, grad, x, {&rrms}, stream)
                                       : stream_for_plugins(kOp, "rms_norm_backward", core, plain, dims, grad, x, {&rrms}, stream);
  const Dims row = row_sizes(x, dims);
  const DType of_affine = weight.defined() ? weight.dtype() : x.dtype();
  RmsNormGradients into;
  if (outs) {
    const detail::Asked asked[] = {{outs->x, x.sizes(), x.dtype()}, {outs->weight, row, of_affine, weight.defined()}};
    const Tensor* inputs[] = {&grad, &x, &rrms, &weight};
    if (detail::takes_results(asked, inputs)) into = *outs;
  }
  if (on) {
    RmsNormGradients all{.x = made_or(into.x, x.sizes(), x.dtype(), *on), .weight = weight.defined() ? made_or(into.weight, row, of_affine, *on) : Tensor()};
    if (detail::by_plugin(kOp, {}, {&all, &grad, &x, &rrms, &weight, &options, &*on}, *on)) return all;
  }
  RmsNormGradients made;
  const bool wants_x = !outs || outs->x.defined();
  made.x = weight.defined() ? rows_or("rms_norm_backward of weight", wants_x, into.x, weighted, dims, x.dtype(), stream, of_weight)
                            : rows_or("rms_norm_backward", wants_x, into.x, plain, dims, x.dtype(), stream, core);
  if (weight.defined() && (!outs || outs->weight.defined()))
    made.weight = sum_leading(
        into.weight, weight, x, options.normalized_rank, [](Expr g, Expr a, Expr r) { return g * (a * r); }, plain, stream);
  return made;
}

}  // namespace

RmsNormGradients rms_norm_backward(const Tensor& grad, const Tensor& x, const Tensor& rrms, const Tensor& weight, const NormOptions& options,
                                   const Stream& stream) {
  detail::OpName named("nn::rms_norm_backward");
  return rms_norm_gradients(nullptr, grad, x, rrms, weight, options, stream);
}
void rms_norm_backward_out(const RmsNormGradients& out, const Tensor& grad, const Tensor& x, const Tensor& rrms, const Tensor& weight,
                           const NormOptions& options, const Stream& stream) {
  detail::OpName named("nn::rms_norm_backward_out");
  const RmsNormGradients made = rms_norm_gradients(&out, grad, x, rrms, weight, options, stream);
  const detail::Stored all[] = {{out.x, made.x, "out.x"}, {out.weight, made.weight, "out.weight"}};
  detail::store(all, "rms_norm_backward", stream);
}

namespace {

/// Inputs of a cross entropy that forward and backward need.
struct Targets {
  int dim = 0;  ///< dimension of the classes
  std::int64_t classes = 0;
  Tensor index;  ///< the target as i64, with size 1 in the classes' dimension
};

/// Checks that apply to both kinds of targets.
Targets classes_of(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& o) {
  constexpr std::string_view op = "cross_entropy";
  if (!logits.defined() || !target.defined()) throw Error(ErrorCode::invalid_argument, op, "a tensor must be defined, got an undefined one");
  if (!is_floating(logits.dtype())) throw Error(ErrorCode::invalid_dtype, op, fmt::format("logits must be floating, got {}", name(logits.dtype())));
  if (logits.rank() == 0) throw Error(ErrorCode::invalid_shape, op, "logits must have a dimension, got a scalar");
  if (!(o.label_smoothing >= 0 && o.label_smoothing <= 1))
    throw Error(ErrorCode::invalid_argument, op, fmt::format("label_smoothing must be in [0, 1], got {}", o.label_smoothing));
  Targets t{.dim = logits.rank() > 1 ? 1 : 0};
  t.classes = logits.size(t.dim);
  if (o.weight.defined() && !(o.weight.sizes() == Dims{t.classes}))
    throw Error(ErrorCode::invalid_shape, op,
                fmt::format("weight must have one number for each of {} classes, got shape {}", t.classes, to_string(o.weight.sizes())));
  if (o.weight.defined() && !is_floating(o.weight.dtype()))
    throw Error(ErrorCode::invalid_dtype, op, fmt::format("weight must be floating, got {}", name(o.weight.dtype())));
  return t;
}

void check_target(const Tensor& target, const Dims& wanted, const Tensor& logits) {
  if (!(target.sizes() == wanted))
    throw Error(ErrorCode::invalid_shape, "cross_entropy",
                fmt::format("target must be of classes or of probabilities of logits {}, got shape {}", to_string(logits.sizes()), to_string(target.sizes())));
}

Targets probabilities_of(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& o) {
  Targets t = classes_of(logits, target, o);
  check_target(target, logits.sizes(), logits);
  return t;
}

/// Checks a target of classes, of which it makes no index.
Targets labels_of(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& o) {
  Targets t = classes_of(logits, target, o);
  if (!is_integral(target.dtype()))
    throw Error(ErrorCode::invalid_dtype, "cross_entropy", fmt::format("target must be floating or an integer, got {}", name(target.dtype())));
  Dims wanted = logits.sizes();
  wanted.erase(t.dim);
  check_target(target, wanted, logits);
  return t;
}

Targets targets_of(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& o, const Stream& stream) {
  Targets t = labels_of(logits, target, o);
  t.index = target.to(DType::i64, {}, stream).unsqueeze(t.dim);
  return t;
}

/// A call of cross_entropy() or of its gradient that plugins may take.
struct OfPlugins {
  Stream stream;
  Dims losses, rows;  ///< shapes of the loss and of what is kept of each row
};
/// Where a plugin brings the op and there are logits. Errors: the op's own.
std::optional<OfPlugins> cross_entropy_of_plugins(std::string_view op, const Tensor& logits, const Tensor& target, const CrossEntropyOptions& o,
                                                  std::initializer_list<const Tensor*> further, const Stream& given) {
  if (!detail::has_plugin_implementations(op)) return std::nullopt;
  const Targets t = target.defined() && is_floating(target.dtype()) ? probabilities_of(logits, target, o) : labels_of(logits, target, o);
  std::vector<const Tensor*> all{&logits, &target};
  if (o.weight.defined()) all.push_back(&o.weight);
  all.insert(all.end(), further.begin(), further.end());
  detail::Runtime& runtime = detail::common_runtime(all, op);
  if (logits.numel() == 0) return std::nullopt;
  OfPlugins call{.stream = detail::resolve_stream(given, runtime, op), .losses = {}, .rows = logits.sizes()};
  call.rows[t.dim] = 1;
  if (o.reduction == Reduction::none) call.losses = logits.sizes(), call.losses.erase(t.dim);
  return call;
}

/// The weight of each target: 0 for ignore_index, NaN for an index that is not a class.
Tensor weights_of(const Targets& t, const CrossEntropyOptions& o, DType dtype, const Stream& stream) {
  return map(
      [&](Expr index) {
        Expr weight = o.weight.defined() && t.classes > 0 ? cast(captured(o.weight)[index], dtype) : cast(Expr(1), dtype);
        Expr checked = select((index < 0) | (index >= param(t.classes)), std::numeric_limits<double>::quiet_NaN(), weight);
        return select(index == param(o.ignore_index), 0.0, checked);
      },
      {t.index}, {.dtype = {dtype}}, stream);
}

/// Sum of the classes' weights.
Tensor total_weight(const Targets& t, const CrossEntropyOptions& o, DType dtype, const Tensor& like, const Stream& stream) {
  if (!o.weight.defined()) return full({}, static_cast<double>(t.classes), {.dtype = dtype, .device = like.device()}, stream);
  return sum(o.weight.to(dtype, {}, stream), {}, stream);
}

/// The classes' weights, in a shape that broadcasts to the logits.
Tensor class_weights(const Targets& t, const CrossEntropyOptions& o, const Tensor& logits, const Stream& stream) {
  Dims shape = Dims::filled(logits.rank(), 1);
  shape[t.dim] = t.classes;
  return o.weight.defined() ? o.weight.reshape(shape) : full(shape, 1, {.dtype = compute_dtype(logits), .device = logits.device()}, stream);
}

/// A row's logits minus their maximum, and log(sum e^x) of these.
struct Centered {
  Expr x, log_sum;
};
/// Makes the maximum and log_sum results of the row, in this order. They are kept apart, because their sum would round log_sum to an ulp of the maximum. An
/// infinite maximum makes everything NaN, as in PyTorch.
Centered centered(Row& row, const Expr& logits) {
  Expr top = row.max(logits), x = logits - top, log_sum = log(row.sum(exp(x)));
  row.result(top);
  row.result(log_sum);
  return {x, log_sum};
}

/// The result for logits without elements; `losses` are the losses of their rows. A mean of no losses is NaN, as in PyTorch.
CrossEntropyResult of_no_logits(const Tensor& logits, const Tensor& losses, Reduction reduction, int dim, const Stream& stream) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
  const TensorOptions kept{.dtype = losses.dtype(), .device = logits.device()}, stored{.dtype = logits.dtype(), .device = logits.device()};
  CrossEntropyResult result{.max = full(losses.sizes(), -kInfinity, kept, stream), .log_sum = full(losses.sizes(), -kInfinity, kept, stream)};
  if (reduction == Reduction::none) {
    Dims sizes = losses.sizes();
    sizes.erase(dim);
    result.loss = losses.reshape(sizes).to(logits.dtype(), {}, stream);
  } else {
    result.loss = reduction == Reduction::sum ? sum(losses, {.dtype = {logits.dtype()}}, stream) : full({}, kNaN, stored, stream);
  }
  return result;
}

/// The weighted probability of a class in a smoothed target, in the dtype of the logits.
Expr share_of(const Row& row, const Expr& given, const Expr& weight, DType dtype, double smoothing) {
  Expr probability = cast(given, dtype);
  return (smoothing == 0 ? probability : probability * (1 - smoothing) + smoothing / row.size()) * cast(weight, dtype);
}

/// Cross entropy with probabilities as targets. Each class's probability is multiplied by its weight.
CrossEntropyResult of_probabilities(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& o, const Stream& stream) {
  Targets t = probabilities_of(logits, target, o);
  DType kept = compute_dtype(logits);
  if (logits.numel() == 0) {
    Dims rows = logits.sizes();
    rows[t.dim] = 1;
    return of_no_logits(logits, zeros(rows, {.dtype = kept, .device = logits.device()}, stream), o.reduction, t.dim, stream);
  }
  const double smoothing = o.label_smoothing;
  RowwiseOptions options{.dims = {t.dim}, .dtype = {kept, kept, kept}};
  std::vector<Tensor> made = by_rows(
      "cross_entropy of probabilities", {logits, target, class_weights(t, o, logits, stream)}, options, stream,
      [&](Row& row, Expr x, Expr p, Expr w) {
        Centered c = centered(row, x);
        row.result(row.sum(share_of(row, p, w, x.dtype(), smoothing) * (c.log_sum - c.x)));
      },
      smoothing);
  CrossEntropyResult result{.max = made[0], .log_sum = made[1]};
  if (o.reduction == Reduction::none) {
    Dims sizes = logits.sizes();
    sizes.erase(t.dim);
    result.loss = made[2].reshape(sizes).to(logits.dtype(), {}, stream);
  } else {
    ReduceOptions last{.dtype = {logits.dtype()}};
    result.loss = o.reduction == Reduction::sum ? sum(made[2], last, stream) : mean(made[2], last, stream);
  }
  return result;
}

Tensor of_probabilities_backward(const Tensor& grad, const Tensor& logits, const Tensor& target, const CrossEntropyResult& result, const CrossEntropyOptions& o,
                                 const Stream& stream) {
  Targets t = probabilities_of(logits, target, o);
  const double smoothing = o.label_smoothing;
  Tensor of_loss = grad.reshape(o.reduction == Reduction::none ? result.max.sizes() : Dims{});
  if (o.reduction == Reduction::mean)
    of_loss = map([&](Expr g) { return g / param(static_cast<double>(result.max.numel())); }, {of_loss}, {.dtype = {compute_dtype(logits)}}, stream);
  return by_rows(
      "cross_entropy_backward of probabilities", {logits, target, class_weights(t, o, logits, stream), result.max, result.log_sum, of_loss},
      {.dims = {t.dim}, .dtype = {logits.dtype()}}, stream,
      [&](Row& row, Expr x, Expr p, Expr w, Expr top, Expr log_sum, Expr g) {
        Expr share = share_of(row, p, w, x.dtype(), smoothing);
        return (exp((x - top) - log_sum) * row.sum(share) - share) * g;
      },
      smoothing)[0];
}

/// The logits at the target: `index` in the classes' dimension, positions in all others.
Expr at_target(const Tensor& logits, int dim, const Expr& index) {
  std::vector<Expr> places;
  for (int d = 0; d < logits.rank(); ++d) places.push_back(d == dim ? index : position(d));
  return captured(logits).at(places);
}

}  // namespace

CrossEntropyResult cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& o, const Stream& stream) {
  detail::OpName named("nn::cross_entropy");
  constexpr std::string_view kOp = "nn::cross_entropy";
  if (const std::optional<OfPlugins> call = cross_entropy_of_plugins(kOp, logits, target, o, {}, stream)) {
    const TensorOptions kept_as{.dtype = compute_dtype(logits), .device = call->stream.device()};
    const CrossEntropyResult out{.loss = empty(call->losses, {.dtype = logits.dtype(), .device = call->stream.device()}, call->stream),
                                 .max = empty(call->rows, kept_as, call->stream),
                                 .log_sum = empty(call->rows, kept_as, call->stream)};
    if (detail::by_plugin(kOp, {}, {&out, &logits, &target, &o, &call->stream}, call->stream)) return out;
  }
  if (target.defined() && is_floating(target.dtype())) return of_probabilities(logits, target, o, stream);
  Targets t = targets_of(logits, target, o, stream);
  DType kept = compute_dtype(logits);
  const double smoothing = o.label_smoothing;
  RowwiseOptions options{.dims = {t.dim}, .dtype = {kept, kept}};
  Tensor weights = weights_of(t, o, kept, stream), losses;
  if (logits.numel() == 0) return of_no_logits(logits, weights, o.reduction, t.dim, stream);  // without classes the losses are NaN, or 0 for ignore_index
  auto counted = [&](const Expr& index, const Expr& loss) { return select(index == param(o.ignore_index), cast(Expr(0), loss.dtype()), loss); };
  std::vector<Tensor> made;
  if (smoothing == 0) {
    made = by_rows("maximum and log_sum", {logits}, options, stream, [](Row& row, Expr x) { centered(row, x); });
    losses = map([&](Expr top, Expr log_sum, Expr index, Expr w) { return counted(index, w * (log_sum - (at_target(logits, t.dim, index) - top))); },
                 {made[0], made[1], t.index, weights}, {.dtype = {kept}}, stream);
  } else {
    options.dtype = {kept, kept, kept};
    made = by_rows("maximum, log_sum and weighted sum", {logits, class_weights(t, o, logits, stream)}, options, stream,
                   [&](Row& row, Expr x, Expr w) { row.result(row.sum(centered(row, x).x * w)); });
    losses = map(
        [&](Expr top, Expr log_sum, Expr weighted, Expr total, Expr index, Expr w) {
          Expr plain = w * (log_sum - (at_target(logits, t.dim, index) - top));
          Expr smooth = (total * log_sum - weighted) * param(smoothing / static_cast<double>(t.classes));
          return counted(index, plain * param(1 - smoothing) + smooth);
        },
        {made[0], made[1], made[2], total_weight(t, o, kept, logits, stream), t.index, weights}, {.dtype = {kept}}, stream);
  }
  CrossEntropyResult result{.max = made[0], .log_sum = made[1]};
  if (o.reduction == Reduction::none) {
    result.loss = losses.reshape(target.sizes()).to(logits.dtype(), {}, stream);
  } else if (o.reduction == Reduction::sum) {
    result.loss = sum(losses, {.dtype = {logits.dtype()}}, stream);
  } else {
    Tensor total = sum(losses, {}, stream), count = sum(weights, {}, stream);
    result.loss = map([](Expr a, Expr n) { return a / n; }, {total, count}, {.dtype = {logits.dtype()}}, stream);
  }
  return result;
}

void cross_entropy_out(const CrossEntropyResult& out, const Tensor& logits, const Tensor& target, const CrossEntropyOptions& o, const Stream& stream) {
  detail::OpName named("nn::cross_entropy_out");
  const CrossEntropyResult made = cross_entropy(logits, target, o, stream);
  const detail::Stored all[] = {{out.loss, made.loss, "out.loss"}, {out.max, made.max, "out.max"}, {out.log_sum, made.log_sum, "out.log_sum"}};
  detail::store(all, "cross_entropy", stream);
}

Tensor cross_entropy_backward(const Tensor& grad, const Tensor& logits, const Tensor& target, const CrossEntropyResult& result, const CrossEntropyOptions& o,
                              const Stream& stream) {
  detail::OpName named("nn::cross_entropy_backward");
  constexpr std::string_view kOp = "nn::cross_entropy_backward";
  if (const std::optional<OfPlugins> call = cross_entropy_of_plugins(kOp, logits, target, o, {&grad, &result.max, &result.log_sum}, stream)) {
    const CrossEntropyResult read{.max = result.max, .log_sum = result.log_sum};
    const bool fits = grad.sizes() == call->losses && result.max.sizes() == call->rows && result.log_sum.sizes() == call->rows;
    const Tensor out = empty(logits.sizes(), {.dtype = logits.dtype(), .device = call->stream.device()}, call->stream);
    if (fits && detail::by_plugin(kOp, {}, {&out, &grad, &logits, &target, &read, &o, &call->stream}, call->stream)) return out;
  }
  if (target.defined() && is_floating(target.dtype())) return of_probabilities_backward(grad, logits, target, result, o, stream);
  Targets t = targets_of(logits, target, o, stream);
  DType kept = compute_dtype(logits);
  Tensor weights = weights_of(t, o, kept, stream), of_loss = o.reduction == Reduction::none ? grad.reshape(t.index.sizes()) : grad.reshape({});
  if (o.reduction == Reduction::mean) of_loss = map([](Expr g, Expr n) { return g / n; }, {of_loss, sum(weights, {}, stream)}, {.dtype = {kept}}, stream);
  auto counted = [&](const Expr& index, const Expr& gradient) { return select(index == param(o.ignore_index), cast(Expr(0), gradient.dtype()), gradient); };
  if (o.label_smoothing == 0)
    return map(
        [&](Expr x, Expr top, Expr log_sum, Expr index, Expr w, Expr g) {
          Expr p = exp((x - top) - log_sum), hot = cast(position(t.dim) == index, p.dtype());
          return counted(index, (p - hot) * (w * g));
        },
        {logits, result.max, result.log_sum, t.index, weights, of_loss}, {.dtype = {logits.dtype()}}, stream);
  return map(
      [&](Expr x, Expr top, Expr log_sum, Expr index, Expr w, Expr g, Expr of_class, Expr total) {
        Expr p = exp((x - top) - log_sum), hot = cast(position(t.dim) == index, p.dtype());
        Expr plain = (p - hot) * w * param(1 - o.label_smoothing);
        Expr smooth = (total * p - of_class) * param(o.label_smoothing / static_cast<double>(t.classes));
        return counted(index, (plain + smooth) * g);
      },
      {logits, result.max, result.log_sum, t.index, weights, of_loss, class_weights(t, o, logits, stream), total_weight(t, o, kept, logits, stream)},
      {.dtype = {logits.dtype()}}, stream);
}
void cross_entropy_backward_out(const Tensor& out, const Tensor& grad, const Tensor& logits, const Tensor& target, const CrossEntropyResult& result,
                                const CrossEntropyOptions& o, const Stream& stream) {
  detail::OpName named("nn::cross_entropy_backward_out");
  detail::store(out, cross_entropy_backward(grad, logits, target, result, o, stream), "cross_entropy_backward", stream);
}

}}}  // namespace clutch::v0::nn
