// SPDX-License-Identifier: Apache-2.0
#include <clutch/complex.hpp>
#include <clutch/pointwise.hpp>

#include "ops/map_plan.hpp"
#include "runtime/op_name.hpp"
#include "runtime/runtime.hpp"

#include <atomic>

namespace clutch { inline namespace v0 {
namespace {

using Inputs = std::span<const Tensor* const>;
using Scalars = std::span<const Scalar>;
using Build = Expr (*)(std::span<const Expr>);
using BuildComplex = detail::ComplexResult (*)(std::span<const ComplexExpr>);

/// One named op with its functions by the dtypes of operands. Each function is traced at first use and kept.
class Pointwise {
 public:
  constexpr Pointwise(const char* name, Build build, BuildComplex build_complex = nullptr) : name_(name), build_(build), build_complex_(build_complex) {}

  Tensor call(Inputs inputs, Scalars scalars, const MapOptions& options, const Stream& stream) {
    detail::OpName named(name_);
    std::vector<Tensor> tensors = list(inputs);
    if (has_complex(inputs)) return complex_call(nullptr, tensors, scalars, options, stream);
    const ExprFunction& f = function(tensors, scalars);
    return std::move(detail::map_traced({}, f, tensors, values(f, scalars), options, stream)[0]);
  }
  void call_out(const Tensor& out, Inputs inputs, Scalars scalars, const MapOptions& options, const Stream& stream) {
    std::vector<Tensor> tensors = list(inputs);
    if (has_complex(inputs)) return void(complex_call(&out, tensors, scalars, options, stream));
    const ExprFunction& f = function(tensors, scalars);
    detail::map_traced(std::span(&out, 1), f, tensors, values(f, scalars), options, stream);
  }

 private:
  static bool has_complex(Inputs inputs) {
    return std::any_of(inputs.begin(), inputs.end(), [](const Tensor* t) { return t->defined() && is_complex(t->dtype()); });
  }
  Tensor complex_call(const Tensor* out, std::span<const Tensor> tensors, Scalars scalars, const MapOptions& options, const Stream& stream) const {
    if (!build_complex_) throw Error(ErrorCode::invalid_dtype, name_, "inputs must be real, got a complex one");
    std::vector<ComplexExpr> operands = detail::complex_inputs(tensors, name_);
    for (const Scalar& s : scalars) operands.emplace_back(param(s.value()));
    return detail::map_complex(out, build_complex_(operands), tensors, options, stream, name_);
  }
  static std::vector<Tensor> list(Inputs inputs) {
    std::vector<Tensor> tensors;
    for (const Tensor* t : inputs) tensors.push_back(*t);
    return tensors;
  }
  /// In the kept function, the value of a param is the index of its scalar.
  static std::vector<double> values(const ExprFunction& f, Scalars scalars) {
    std::vector<double> numbers;
    for (int k = 0; k < f.param_count(); ++k) numbers.push_back(scalars[static_cast<std::size_t>(f.param_value(k))].value());
    return numbers;
  }
  static std::size_t digit(DType dtype) {
    switch (dtype) {
      case DType::f32: return 0;
      case DType::f64: return 1;
      case DType::i32: return 2;
      case DType::i64: return 3;
      case DType::u64: return 4;
      default: return 5;
    }
  }

  const ExprFunction& function(std::span<const Tensor> inputs, Scalars scalars) {
    std::vector<DType> dtypes = traced_dtypes(inputs);
    std::size_t slot = 0;
    for (DType d : dtypes) slot = slot * kDigits + digit(d);
    for (const Scalar& s : scalars) slot = slot * kDigits + 6 + s.is_whole();
    auto& place = functions_[slot];
    if (const ExprFunction* found = place.load(std::memory_order_acquire)) return *found;
    std::vector<Expr> operands;
    for (std::size_t i = 0; i < dtypes.size(); ++i) operands.push_back(detail::expr_input(static_cast<int>(i), dtypes[i]));
    for (std::size_t i = 0; i < scalars.size(); ++i)
      operands.push_back(scalars[i].is_whole() ? param(static_cast<std::int64_t>(i)) : param(static_cast<double>(i)));
    const Expr result = build_(operands);
    auto* made = new ExprFunction(dtypes, std::span(&result, 1));  // kept for the process
    const ExprFunction* expected = nullptr;
    if (!place.compare_exchange_strong(expected, made, std::memory_order_acq_rel)) {
      delete made;
      return *expected;
    }
    return *made;
  }

  const char* name_;
  Build build_;
  BuildComplex build_complex_;
  static constexpr std::size_t kDigits = 8;  ///< traced dtypes, and kinds of scalars
  std::array<std::atomic<const ExprFunction*>, kDigits * kDigits * kDigits> functions_{};
};

}  // namespace

// In these lines x, or a and b, are the operands.
#define CLUTCH_OF_1(Value, Result, expression) \
  [](std::span<const Value> v) {               \
    const Value& x = v[0];                     \
    return Result(expression);                 \
  }
#define CLUTCH_OF_2(Value, Result, expression) \
  [](std::span<const Value> v) {               \
    const Value &a = v[0], &b = v[1];          \
    return Result(expression);                 \
  }
#define CLUTCH_REAL(of, name, expression) Pointwise op(#name, of(Expr, Expr, expression))
#define CLUTCH_COMPLEX(of, name, expression) Pointwise op(#name, of(Expr, Expr, expression), of(ComplexExpr, detail::ComplexResult, expression))
// `numbers`: REAL, or COMPLEX where the expression has a meaning for complex operands, too.
#define CLUTCH_POINTWISE_1(name, numbers, expression)                                                    \
  namespace {                                                                                            \
  Pointwise& op_##name() {                                                                               \
    static CLUTCH_##numbers(CLUTCH_OF_1, name, expression);                                              \
    return op;                                                                                           \
  }                                                                                                      \
  }                                                                                                      \
  Tensor name(const Tensor& x, const MapOptions& options, const Stream& stream) {                        \
    const Tensor* inputs[] = {&x};                                                                       \
    return op_##name().call(inputs, {}, options, stream);                                                \
  }                                                                                                      \
  void name##_out(const Tensor& out, const Tensor& x, const MapOptions& options, const Stream& stream) { \
    detail::OpName named(#name "_out");                                                                  \
    const Tensor* inputs[] = {&x};                                                                       \
    op_##name().call_out(out, inputs, {}, options, stream);                                              \
  }                                                                                                      \
  void name##_(const Tensor& self, const MapOptions& options, const Stream& stream) {                    \
    detail::OpName named(#name "_");                                                                     \
    name##_out(self, self, options, stream);                                                             \
  }

#define CLUTCH_POINTWISE_2(name, numbers, expression)                                                                     \
  namespace {                                                                                                             \
  Pointwise& op_##name() {                                                                                                \
    static CLUTCH_##numbers(CLUTCH_OF_2, name, expression);                                                               \
    return op;                                                                                                            \
  }                                                                                                                       \
  }                                                                                                                       \
  Tensor name(const Tensor& a, const Tensor& b, const MapOptions& options, const Stream& stream) {                        \
    const Tensor* inputs[] = {&a, &b};                                                                                    \
    return op_##name().call(inputs, {}, options, stream);                                                                 \
  }                                                                                                                       \
  Tensor name(const Tensor& a, const Scalar& b, const MapOptions& options, const Stream& stream) {                        \
    const Tensor* inputs[] = {&a};                                                                                        \
    return op_##name().call(inputs, std::span(&b, 1), options, stream);                                                   \
  }                                                                                                                       \
  void name##_out(const Tensor& out, const Tensor& a, const Tensor& b, const MapOptions& options, const Stream& stream) { \
    detail::OpName named(#name "_out");                                                                                   \
    const Tensor* inputs[] = {&a, &b};                                                                                    \
    op_##name().call_out(out, inputs, {}, options, stream);                                                               \
  }                                                                                                                       \
  void name##_(const Tensor& self, const Tensor& b, const MapOptions& options, const Stream& stream) {                    \
    detail::OpName named(#name "_");                                                                                      \
    name##_out(self, self, b, options, stream);                                                                           \
  }                                                                                                                       \
  void name##_(const Tensor& self, const Scalar& b, const MapOptions& options, const Stream& stream) {                    \
    detail::OpName named(#name "_");                                                                                      \
    const Tensor* inputs[] = {&self};                                                                                     \
    op_##name().call_out(self, inputs, std::span(&b, 1), options, stream);                                                \
  }

CLUTCH_POINTWISE_1(neg, COMPLEX, -x)
CLUTCH_POINTWISE_1(abs, COMPLEX, abs(x))
CLUTCH_POINTWISE_1(sign, REAL, sign(x))
CLUTCH_POINTWISE_1(square, COMPLEX, square(x))
CLUTCH_POINTWISE_1(reciprocal, COMPLEX, reciprocal(x))
CLUTCH_POINTWISE_1(sqrt, REAL, sqrt(x))
CLUTCH_POINTWISE_1(rsqrt, REAL, rsqrt(x))
CLUTCH_POINTWISE_1(exp, COMPLEX, exp(x))
CLUTCH_POINTWISE_1(exp2, REAL, exp2(x))
CLUTCH_POINTWISE_1(expm1, REAL, expm1(x))
CLUTCH_POINTWISE_1(log, REAL, log(x))
CLUTCH_POINTWISE_1(log2, REAL, log2(x))
CLUTCH_POINTWISE_1(log1p, REAL, log1p(x))
CLUTCH_POINTWISE_1(tanh, REAL, tanh(x))
CLUTCH_POINTWISE_1(sigmoid, REAL, sigmoid(x))
CLUTCH_POINTWISE_1(erf, REAL, erf(x))
CLUTCH_POINTWISE_1(sin, REAL, sin(x))
CLUTCH_POINTWISE_1(cos, REAL, cos(x))
CLUTCH_POINTWISE_1(floor, REAL, floor(x))
CLUTCH_POINTWISE_1(ceil, REAL, ceil(x))
CLUTCH_POINTWISE_1(trunc, REAL, trunc(x))
CLUTCH_POINTWISE_1(round, REAL, round(x))
CLUTCH_POINTWISE_1(relu, REAL, relu(x))
CLUTCH_POINTWISE_1(silu, REAL, silu(x))
CLUTCH_POINTWISE_1(softplus, REAL, softplus(x))
CLUTCH_POINTWISE_1(bitwise_not, REAL, ~x)
CLUTCH_POINTWISE_1(logical_not, REAL, !x)
CLUTCH_POINTWISE_1(isnan, REAL, isnan(x))
CLUTCH_POINTWISE_1(isinf, REAL, isinf(x))
CLUTCH_POINTWISE_1(isfinite, COMPLEX, isfinite(x))

CLUTCH_POINTWISE_2(add, COMPLEX, a + b)
CLUTCH_POINTWISE_2(sub, COMPLEX, a - b)
CLUTCH_POINTWISE_2(mul, COMPLEX, a* b)
CLUTCH_POINTWISE_2(div, COMPLEX, a / b)
CLUTCH_POINTWISE_2(floor_divide, REAL, floor_div(a, b))
CLUTCH_POINTWISE_2(trunc_divide, REAL, trunc_div(a, b))
CLUTCH_POINTWISE_2(remainder, REAL, floor_mod(a, b))
CLUTCH_POINTWISE_2(fmod, REAL, trunc_mod(a, b))
CLUTCH_POINTWISE_2(pow, REAL, pow(a, b))
CLUTCH_POINTWISE_2(minimum, REAL, min(a, b))
CLUTCH_POINTWISE_2(maximum, REAL, max(a, b))
CLUTCH_POINTWISE_2(eq, COMPLEX, a == b)
CLUTCH_POINTWISE_2(ne, COMPLEX, a != b)
CLUTCH_POINTWISE_2(lt, REAL, a < b)
CLUTCH_POINTWISE_2(le, REAL, a <= b)
CLUTCH_POINTWISE_2(gt, REAL, a > b)
CLUTCH_POINTWISE_2(ge, REAL, a >= b)
CLUTCH_POINTWISE_2(bitwise_and, REAL, a& b)
CLUTCH_POINTWISE_2(bitwise_or, REAL, a | b)
CLUTCH_POINTWISE_2(bitwise_xor, REAL, a ^ b)
CLUTCH_POINTWISE_2(logical_and, REAL, (a != 0) & (b != 0))
CLUTCH_POINTWISE_2(logical_or, REAL, (a != 0) | (b != 0))
CLUTCH_POINTWISE_2(logical_xor, REAL, (a != 0) ^ (b != 0))

namespace {

/// fma of floats; integers wrap.
Expr scaled_sum(const Expr& a, const Expr& b, const Expr& alpha) {
  Expr product = b * alpha;
  return is_floating(product.dtype()) || is_floating(a.dtype()) ? fma(alpha, b, a) : a + product;
}
Pointwise& op_add_scaled() {
  static Pointwise op("add_scaled", [](std::span<const Expr> v) { return scaled_sum(v[0], v[1], v[2]); });
  return op;
}
Pointwise& op_gelu(GeluForm form) {
  static Pointwise by_erf("gelu", [](std::span<const Expr> v) { return gelu(v[0], GeluForm::erf); });
  static Pointwise by_tanh("gelu", [](std::span<const Expr> v) { return gelu(v[0], GeluForm::tanh); });
  return form == GeluForm::erf ? by_erf : by_tanh;
}
Pointwise& op_leaky_relu() {
  static Pointwise op("leaky_relu", [](std::span<const Expr> v) { return leaky_relu(v[0], v[1]); });
  return op;
}
Pointwise& op_clamp() {
  static Pointwise op("clamp", [](std::span<const Expr> v) { return clamp(v[0], v[1], v[2]); });
  return op;
}
Pointwise& op_where() {
  static Pointwise op("where", [](std::span<const Expr> v) { return select(v[0], v[1], v[2]); });
  return op;
}
Pointwise& op_lerp() {
  static Pointwise op("lerp", [](std::span<const Expr> v) { return lerp(v[0], v[1], v[2]); });
  return op;
}

/// The number is the first operand: a - x and a / x.
Pointwise& op_sub_from() {
  static Pointwise op(
      "sub", [](std::span<const Expr> v) { return v[1] - v[0]; }, [](std::span<const ComplexExpr> v) { return detail::ComplexResult(v[1] - v[0]); });
  return op;
}
Pointwise& op_div_into() {
  static Pointwise op(
      "div", [](std::span<const Expr> v) { return v[1] / v[0]; }, [](std::span<const ComplexExpr> v) { return detail::ComplexResult(v[1] / v[0]); });
  return op;
}

}  // namespace

Tensor add_scaled(const Tensor& a, const Tensor& b, const Scalar& alpha, const MapOptions& options, const Stream& stream) {
  const Tensor* inputs[] = {&a, &b};
  return op_add_scaled().call(inputs, std::span(&alpha, 1), options, stream);
}
void add_scaled_out(const Tensor& out, const Tensor& a, const Tensor& b, const Scalar& alpha, const MapOptions& options, const Stream& stream) {
  detail::OpName named("add_scaled_out");
  const Tensor* inputs[] = {&a, &b};
  op_add_scaled().call_out(out, inputs, std::span(&alpha, 1), options, stream);
}
Tensor gelu(const Tensor& x, GeluForm form, const MapOptions& options, const Stream& stream) {
  const Tensor* inputs[] = {&x};
  return op_gelu(form).call(inputs, {}, options, stream);
}
void gelu_out(const Tensor& out, const Tensor& x, GeluForm form, const MapOptions& options, const Stream& stream) {
  detail::OpName named("gelu_out");
  const Tensor* inputs[] = {&x};
  op_gelu(form).call_out(out, inputs, {}, options, stream);
}
Tensor leaky_relu(const Tensor& x, const Scalar& slope, const MapOptions& options, const Stream& stream) {
  const Tensor* inputs[] = {&x};
  return op_leaky_relu().call(inputs, std::span(&slope, 1), options, stream);
}
void leaky_relu_out(const Tensor& out, const Tensor& x, const Scalar& slope, const MapOptions& options, const Stream& stream) {
  detail::OpName named("leaky_relu_out");
  const Tensor* inputs[] = {&x};
  op_leaky_relu().call_out(out, inputs, std::span(&slope, 1), options, stream);
}
Tensor clamp(const Tensor& x, const Scalar& low, const Scalar& high, const MapOptions& options, const Stream& stream) {
  const Tensor* inputs[] = {&x};
  const Scalar scalars[] = {low, high};
  return op_clamp().call(inputs, scalars, options, stream);
}
void clamp_out(const Tensor& out, const Tensor& x, const Scalar& low, const Scalar& high, const MapOptions& options, const Stream& stream) {
  detail::OpName named("clamp_out");
  const Tensor* inputs[] = {&x};
  const Scalar scalars[] = {low, high};
  op_clamp().call_out(out, inputs, scalars, options, stream);
}
Tensor clamp(const Tensor& x, const Tensor& low, const Tensor& high, const MapOptions& options, const Stream& stream) {
  const Tensor* inputs[] = {&x, &low, &high};
  return op_clamp().call(inputs, {}, options, stream);
}
void clamp_out(const Tensor& out, const Tensor& x, const Tensor& low, const Tensor& high, const MapOptions& options, const Stream& stream) {
  detail::OpName named("clamp_out");
  const Tensor* inputs[] = {&x, &low, &high};
  op_clamp().call_out(out, inputs, {}, options, stream);
}
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b, const MapOptions& options, const Stream& stream) {
  const Tensor* inputs[] = {&condition, &a, &b};
  MapOptions of_values = options;
  // The condition's numbers are asked for 0 alone: its dtype does not count.
  if (options.dtype.empty() && condition.defined() && condition.dtype() != DType::boolean && a.defined() && b.defined())
    of_values.dtype = {result_type(std::span(inputs).subspan(1))};
  return op_where().call(inputs, {}, of_values, stream);
}
void where_out(const Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b, const MapOptions& options, const Stream& stream) {
  detail::OpName named("where_out");
  const Tensor* inputs[] = {&condition, &a, &b};
  op_where().call_out(out, inputs, {}, options, stream);
}
Tensor lerp(const Tensor& start, const Tensor& end, const Scalar& weight, const MapOptions& options, const Stream& stream) {
  const Tensor* inputs[] = {&start, &end};
  return op_lerp().call(inputs, std::span(&weight, 1), options, stream);
}
void lerp_out(const Tensor& out, const Tensor& start, const Tensor& end, const Scalar& weight, const MapOptions& options, const Stream& stream) {
  detail::OpName named("lerp_out");
  const Tensor* inputs[] = {&start, &end};
  op_lerp().call_out(out, inputs, std::span(&weight, 1), options, stream);
}
Tensor lerp(const Tensor& start, const Tensor& end, const Tensor& weight, const MapOptions& options, const Stream& stream) {
  const Tensor* inputs[] = {&start, &end, &weight};
  return op_lerp().call(inputs, {}, options, stream);
}
void lerp_out(const Tensor& out, const Tensor& start, const Tensor& end, const Tensor& weight, const MapOptions& options, const Stream& stream) {
  detail::OpName named("lerp_out");
  const Tensor* inputs[] = {&start, &end, &weight};
  op_lerp().call_out(out, inputs, {}, options, stream);
}
void add_scaled_(const Tensor& self, const Tensor& b, const Scalar& alpha, const MapOptions& options, const Stream& stream) {
  detail::OpName named("add_scaled_");
  add_scaled_out(self, self, b, alpha, options, stream);
}

Tensor operator-(const Tensor& x) { return neg(x); }
Tensor operator-(const Scalar& a, const Tensor& b) {
  const Tensor* inputs[] = {&b};
  return op_sub_from().call(inputs, std::span(&a, 1), {}, {});
}
Tensor operator/(const Scalar& a, const Tensor& b) {
  const Tensor* inputs[] = {&b};
  return op_div_into().call(inputs, std::span(&a, 1), {}, {});
}
Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
Tensor operator+(const Tensor& a, const Scalar& b) { return add(a, b); }
Tensor operator+(const Scalar& a, const Tensor& b) { return add(b, a); }
Tensor& operator+=(Tensor& a, const Tensor& b) {
  add_(a, b);
  return a;
}
Tensor& operator+=(Tensor& a, const Scalar& b) {
  add_(a, b);
  return a;
}
Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
Tensor operator-(const Tensor& a, const Scalar& b) { return sub(a, b); }
Tensor& operator-=(Tensor& a, const Tensor& b) {
  sub_(a, b);
  return a;
}
Tensor& operator-=(Tensor& a, const Scalar& b) {
  sub_(a, b);
  return a;
}
Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
Tensor operator*(const Tensor& a, const Scalar& b) { return mul(a, b); }
Tensor operator*(const Scalar& a, const Tensor& b) { return mul(b, a); }
Tensor& operator*=(Tensor& a, const Tensor& b) {
  mul_(a, b);
  return a;
}
Tensor& operator*=(Tensor& a, const Scalar& b) {
  mul_(a, b);
  return a;
}
Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
Tensor operator/(const Tensor& a, const Scalar& b) { return div(a, b); }
Tensor& operator/=(Tensor& a, const Tensor& b) {
  div_(a, b);
  return a;
}
Tensor& operator/=(Tensor& a, const Scalar& b) {
  div_(a, b);
  return a;
}

}}  // namespace clutch::v0
