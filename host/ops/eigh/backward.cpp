// SPDX-License-Identifier: Apache-2.0
// Gradients of eigh, composed of reduce and map. Products of matrices are sums over a broadcast dimension.
#include <clutch/ops/eigh.hpp>
#include <clutch/ops/fill.hpp>
#include <clutch/ops/reduce.hpp>

#include "ops/eigh_plan.hpp"
#include "ops/out_form.hpp"
#include "ops/traced.hpp"
#include "runtime/op_name.hpp"
#include "runtime/runtime.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace clutch { inline namespace v0 { namespace linalg {

namespace {

constexpr const char* kOp = "eigh_backward";

/// Views of a tensor's real and imaginary parts; im is undefined for a real tensor.
struct Parts {
  Tensor re, im;
  explicit Parts(const Tensor& t) : re(t) {
    if (!is_complex(t.dtype())) return;
    DType real = detail::eigh_real_of(t.dtype());
    std::array<std::int64_t, kMaxRank> strides{};
    for (int d = 0; d < t.rank(); ++d) strides[static_cast<std::size_t>(d)] = 2 * t.strides()[d];
    Dims doubled(std::span<const std::int64_t>(strides.data(), static_cast<std::size_t>(t.rank())));
    re = Tensor(t.storage(), t.byte_offset(), t.sizes(), doubled, real);
    im = Tensor(t.storage(), t.byte_offset() + bits(real) / 8, t.sizes(), doubled, real);
  }
  bool complex() const { return im.defined(); }
};

Tensor rows(const Tensor& t) { return t.unsqueeze(-2); }     // (..., i, 1, k)
Tensor columns(const Tensor& t) { return t.unsqueeze(-3); }  // (..., 1, j, k)

/// out[i][j] = sum over k of x[i][k] y[j][k], with no factor, the first or the second conjugated.
enum class Conjugate { none, first, second };
void product(const Parts& out, const Parts& x, const Parts& y, Conjugate which, const Stream& stream) {
  auto sum_into = [&]<std::size_t kInputs>(const Tensor& part, auto&& f, const Tensor(&inputs)[kInputs]) {
    reduce_out(part, Reduce::sum, detail::trace_over<kInputs>(f, inputs, kOp), inputs, {.dims = {-1}}, stream);
  };
  if (!x.complex()) {
    sum_into(out.re, [](Expr a, Expr b) { return a * b; }, {rows(x.re), columns(y.re)});
    return;
  }
  const Tensor inputs[] = {rows(x.re), rows(x.im), columns(y.re), columns(y.im)};
  sum_into(
      out.re, [&](Expr xr, Expr xi, Expr yr, Expr yi) { return which == Conjugate::none ? xr * yr - xi * yi : xr * yr + xi * yi; }, inputs);
  sum_into(
      out.im,
      [&](Expr xr, Expr xi, Expr yr, Expr yi) {
        return which == Conjugate::none ? xr * yi + xi * yr : which == Conjugate::first ? xr * yi - xi * yr : xi * yr - xr * yi;
      },
      inputs);
}

}  // namespace

EighGradient eigh_backward(const Tensor& grad_w, const Tensor& grad_v, const Tensor& w, const Tensor& v, const EighBackwardOptions& options,
                           const Stream& given) {
  detail::OpName named("linalg::eigh_backward");
  std::vector<const Tensor*> tensors{&w, &v};
  for (const Tensor* t : {&grad_w, &grad_v})
    if (t->defined()) tensors.push_back(t);
  detail::Runtime& runtime = detail::common_runtime(tensors, kOp);
  Stream stream = detail::resolve_stream(given, runtime, kOp);
  if (v.dtype() != DType::f32 && v.dtype() != DType::f64 && !is_complex(v.dtype()))
    throw Error(ErrorCode::invalid_dtype, kOp, fmt::format("v must be f32, f64, c64 or c128, got {}", name(v.dtype())));
  if (v.rank() < 2 || v.size(-1) != v.size(-2))
    throw Error(ErrorCode::invalid_shape, kOp, fmt::format("v must hold all eigenvectors of square matrices, got {}", to_string(v.sizes())));
  DType real = detail::eigh_real_of(v.dtype());
  Dims of_w(std::span(v.sizes().begin(), static_cast<std::size_t>(v.rank() - 1)));
  auto check = [](const Tensor& t, std::string_view what, const Dims& sizes, DType dtype) { detail::check_eigh_tensor(t, what, sizes, dtype, kOp); };
  check(w, "w", of_w, real);
  if (grad_w.defined()) check(grad_w, "grad_w", of_w, real);
  if (grad_v.defined()) check(grad_v, "grad_v", v.sizes(), v.dtype());
  const double broadening = options.broadening, square = broadening * broadening;
  if (!(broadening >= 0)) throw Error(ErrorCode::invalid_argument, kOp, fmt::format("broadening must be at least 0, got {}", broadening));
  if (broadening > 0 && !(real == DType::f64 ? std::isnormal(square) : std::isnormal(static_cast<float>(square))))
    throw Error(ErrorCode::invalid_argument, kOp,
                fmt::format("the square of broadening must be a normal number of {}, got a broadening of {}", name(real), broadening));
  Device device = stream.device();
  Dims of_gauge(std::span(v.sizes().begin(), static_cast<std::size_t>(v.rank() - 2)));
  EighGradient result{empty(v.sizes(), {.dtype = v.dtype(), .device = device}, stream), zeros(of_gauge, {.dtype = real, .device = device}, stream)};
  if (result.grad_a.numel() == 0) return result;
  auto matrix = [&] { return empty(v.sizes(), {.dtype = v.dtype(), .device = device}, stream); };
  const Tensor gw = grad_w.defined() ? grad_w : zeros(of_w, {.dtype = real, .device = device}, stream);
  const Tensor inner = matrix();  // diag(grad_w) + (M - M^H) / 2 / (w_j - w_i) with M = v^H grad_v
  const Parts s(inner);
  const int i = v.rank() - 2, j = v.rank() - 1;
  if (grad_v.defined()) {
    const Tensor product_of = matrix();
    const Parts m(product_of);
    product(m, Parts(v.mT()), Parts(grad_v.mT()), Conjugate::first, stream);
    auto divided = [=](Expr part, Expr gap, Expr diagonal) {
      Expr quotient = square > 0 ? part * gap / (gap * gap + square) : part / gap;
      return select(position(i) == position(j), diagonal, quotient);
    };
    map_out(
        s.re, [&](Expr x, Expr y, Expr wi, Expr wj, Expr g) { return divided((x - y) * 0.5, wj - wi, g); },
        {m.re, m.re.mT(), w.unsqueeze(-1), w.unsqueeze(-2), gw.unsqueeze(-1)}, {}, stream);
    if (s.complex()) {
      map_out(
          s.im, [&](Expr x, Expr y, Expr wi, Expr wj) { return divided((x + y) * 0.5, wj - wi, Expr(0)); }, {m.im, m.im.mT(), w.unsqueeze(-1), w.unsqueeze(-2)},
          {}, stream);
      const Tensor imaginary[] = {m.im};
      reduce_out(result.gauge, Reduce::amax, detail::trace_over<1>([&](Expr x) { return select(position(i) == position(j), abs(x), 0); }, imaginary, kOp),
                 imaginary, {.dims = {-2, -1}}, stream);
    }
  } else {
    if (s.complex()) fill_(s.im, 0, {}, stream);
    map_out(
        s.re, [&](Expr g) { return select(position(i) == position(j), g, 0); }, {gw.unsqueeze(-1).expand(v.sizes())}, {}, stream);
  }
  // grad_a = v inner v^H, from the transpose of inner v^H
  const Tensor transposed = matrix();
  product(Parts(transposed.mT()), s, Parts(v), Conjugate::second, stream);
  product(Parts(result.grad_a), Parts(v), Parts(transposed), Conjugate::none, stream);
  return result;
}

void eigh_backward_out(const EighGradient& out, const Tensor& grad_w, const Tensor& grad_v, const Tensor& w, const Tensor& v,
                       const EighBackwardOptions& options, const Stream& stream) {
  detail::OpName named("linalg::eigh_backward_out");
  const EighGradient made = eigh_backward(grad_w, grad_v, w, v, options, stream);
  const detail::Stored all[] = {{out.grad_a, made.grad_a, "out.grad_a"}, {out.gauge, made.gauge, "out.gauge"}};
  detail::store(all, kOp, stream);
}

void require_gauge(const Tensor& gauge, double tolerance, const Stream& stream) {
  detail::OpName named("linalg::require_gauge");
  Tensor flat = gauge.reshape({-1});
  std::vector<double> all;
  if (flat.dtype() == DType::f64) {
    all = flat.to_host<double>(stream);
  } else {
    std::vector<float> narrow = flat.to_host<float>(stream);  // on the host, since the device may lack fp64
    all.assign(narrow.begin(), narrow.end());
  }
  for (std::size_t m = 0; m < all.size(); ++m)
    if (!(all[m] <= tolerance))
      throw Error(ErrorCode::invalid_argument, "require_gauge",
                  fmt::format("the loss must not depend on the phases of eigenvectors, which are free, got one that does for matrix {} of the batch: "
                              "|Im diag(v^H grad_v)| is {:.3g}, {:.3g} at most",
                              m, all[m], tolerance));
}

}}}  // namespace clutch::v0::linalg
