// SPDX-License-Identifier: Apache-2.0
#pragma once
// Complex tensors: views of their parts, and traced functions of complex values. c64 is two f32, c128 two f64, the real
// part first. The named ops of clutch/pointwise.hpp that have a complex meaning take complex tensors by these: neg,
// add, sub, mul, div, square, reciprocal, exp, abs, eq, ne and isfinite; so do sum, mean and fill_. Gradients of
// complex functions are not offered.
#include <clutch/ops/fill.hpp>
#include <clutch/ops/map.hpp>

#include <complex>

namespace clutch { inline namespace v0 {

/// The parts of a complex tensor as views of its memory, with strides twice as large. A real tensor is its own real
/// part.
/// Errors: invalid_argument for an undefined tensor; invalid_dtype for imag() of a real one.
/// Source: torch.real, torch.imag.
CLUTCH_API Tensor real(const Tensor& x);
CLUTCH_API Tensor imag(const Tensor& x);
/// A complex tensor as one of f32 or f64 whose last dimension, of size 2, has the parts, and the reverse. Views.
/// Errors: invalid_dtype; invalid_shape if the last dimension has not size 2 and stride 1, other strides or the offset
///   are odd, or the result would have more than 12 dimensions.
/// Source: torch.view_as_real, torch.view_as_complex.
CLUTCH_API Tensor view_as_real(const Tensor& x);
CLUTCH_API Tensor view_as_complex(const Tensor& x);
/// The complex tensor of two parts of one dtype, f32 or f64, which broadcast.
/// Errors: invalid_dtype; invalid_shape; device_mismatch.
/// Stream: never waits.
/// Source: torch.complex.
CLUTCH_API Tensor complex(const Tensor& re, const Tensor& im, const Stream& stream = {});
CLUTCH_API void complex_out(const Tensor& out, const Tensor& re, const Tensor& im, const Stream& stream = {});
/// The conjugate; a copy of a real tensor.
/// Source: torch.conj_physical.
CLUTCH_API Tensor conj(const Tensor& x, const MapOptions& options = {}, const Stream& stream = {});
CLUTCH_API void conj_out(const Tensor& out, const Tensor& x, const MapOptions& options = {}, const Stream& stream = {});
CLUTCH_API void conj_(const Tensor& self, const MapOptions& options = {}, const Stream& stream = {});
/// Every element becomes a complex number, rounded to the dtype's parts. Else as fill_().
/// Errors: also invalid_dtype for a real tensor.
CLUTCH_API void fill_(const Tensor& self, std::complex<double> value, const FillOptions& options = {},
                      const Stream& stream = {});

/// A traced complex value: two traced parts of one dtype.
/// Accuracy: each operation of the parts is rounded as those of Expr are, in the order that is written here. Quotients
///   and abs() are scaled, so that no square overflows before the result does.
class ComplexExpr {
 public:
  ComplexExpr(const Expr& re, const Expr& im = 0) : re_(re), im_(im) {}
  template <class T>
  requires std::is_arithmetic_v<T> ComplexExpr(T number) : re_(number), im_(0) {}
  ComplexExpr(std::complex<double> number) : re_(number.real()), im_(number.imag()) {}
  const Expr& re() const noexcept { return re_; }
  const Expr& im() const noexcept { return im_; }

  friend ComplexExpr operator-(const ComplexExpr& z) { return {-z.re_, -z.im_}; }
  friend ComplexExpr operator+(const ComplexExpr& a, const ComplexExpr& b) { return {a.re_ + b.re_, a.im_ + b.im_}; }
  friend ComplexExpr operator-(const ComplexExpr& a, const ComplexExpr& b) { return {a.re_ - b.re_, a.im_ - b.im_}; }
  /// (a.re b.re - a.im b.im, a.re b.im + a.im b.re), each product and sum rounded.
  friend ComplexExpr operator*(const ComplexExpr& a, const ComplexExpr& b) {
    return {a.re_ * b.re_ - a.im_ * b.im_, a.re_ * b.im_ + a.im_ * b.re_};
  }
  /// Smith's method: with r the quotient of b's smaller part by its larger one. By 0: the parts divided by 0.
  friend CLUTCH_API ComplexExpr operator/(const ComplexExpr& a, const ComplexExpr& b);
  friend Expr operator==(const ComplexExpr& a, const ComplexExpr& b) { return (a.re_ == b.re_) & (a.im_ == b.im_); }
  friend Expr operator!=(const ComplexExpr& a, const ComplexExpr& b) { return (a.re_ != b.re_) | (a.im_ != b.im_); }
  friend ComplexExpr conj(const ComplexExpr& z) { return {z.re_, -z.im_}; }
  friend ComplexExpr square(const ComplexExpr& z) { return z * z; }
  friend ComplexExpr reciprocal(const ComplexExpr& z) { return ComplexExpr(1) / z; }
  /// l sqrt(1 + (s / l)^2), l being the larger and s the smaller magnitude of the parts; Inf where a part is infinite.
  friend CLUTCH_API Expr abs(const ComplexExpr& z);
  /// e^re (cos im, sin im); of im = 0 the imaginary part is im.
  friend CLUTCH_API ComplexExpr exp(const ComplexExpr& z);
  friend Expr isfinite(const ComplexExpr& z) { return isfinite(z.re_) & isfinite(z.im_); }
  friend ComplexExpr select(const Expr& condition, const ComplexExpr& a, const ComplexExpr& b) {
    return {select(condition, a.re_, b.re_), select(condition, a.im_, b.im_)};
  }

 private:
  Expr re_, im_;
};

namespace detail {
/// The result of a traced function of complex values: a complex value, or a real one.
struct ComplexResult {
  ComplexResult(const ComplexExpr& z) : parts{z.re(), z.im()} {}
  ComplexResult(const Expr& x) : parts{x} {}
  std::vector<Expr> parts;
};
/// A traced value for each tensor, over the inputs that its parts are. Errors: as traced_dtypes().
CLUTCH_API std::vector<ComplexExpr> complex_inputs(std::span<const Tensor> inputs, std::string_view op);
CLUTCH_API Tensor map_complex(const Tensor* out, const ComplexResult& result, std::span<const Tensor> inputs,
                              const MapOptions& options, const Stream& stream, std::string_view op);
template <class F, std::size_t... kIndex>
ComplexResult trace_complex(F&& f, std::span<const Tensor> inputs, std::string_view op,
                            std::index_sequence<kIndex...>) {
  const std::vector<ComplexExpr> values = complex_inputs(inputs, op);
  return f(values[kIndex]...);
}
}  // namespace detail

/// map of a lambda over ComplexExpr, one launch:
/// map_complex([](ComplexExpr z, ComplexExpr w) { return z * conj(w); }, {x, y}).
/// Dtypes: c64 and c128, and those of map, whose imaginary part is 0. A complex result has the inputs' result type, or
///   options.dtype, a complex one; a real result has map's.
/// Shapes, aliases, determinism, scratch, errors and waiting: as map.
/// Source: torch's operations on complex tensors.
template <class F, std::size_t kInputs>
Tensor map_complex(F&& f, const Tensor (&inputs)[kInputs], const MapOptions& options = {}, const Stream& stream = {}) {
  return detail::map_complex(nullptr,
                             detail::trace_complex(f, inputs, "map_complex", std::make_index_sequence<kInputs>()),
                             inputs, options, stream, "map_complex");
}
template <class F, std::size_t kInputs>
void map_complex_out(const Tensor& out, F&& f, const Tensor (&inputs)[kInputs], const MapOptions& options = {},
                     const Stream& stream = {}) {
  detail::map_complex(&out, detail::trace_complex(f, inputs, "map_complex_out", std::make_index_sequence<kInputs>()),
                      inputs, options, stream, "map_complex_out");
}

}}  // namespace clutch::v0
