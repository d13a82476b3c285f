// SPDX-License-Identifier: Apache-2.0
// Functions of one tensor, element by element.
#include "ops/formulas.hpp"
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>
#include <ATen/native/Resize.h>
#include <clutch/pointwise.hpp>

#include <cmath>
#include <limits>
#include <numbers>

namespace torch_clutch {
namespace {

using namespace formulas;  // NOLINT(google-build-using-namespace)

/// Real functions: integers become floats first.
template <auto kFormula>
at::Tensor& real_out(const at::Tensor& self, at::Tensor& out) {
  return unary_float(out, self, kFormula);
}
/// Functions that keep integers.
template <auto kFormula>
at::Tensor& kept_out(const at::Tensor& self, at::Tensor& out) {
  return unary(out, self, kFormula);
}
/// Roundings: integers stay what they are.
template <auto kFormula>
at::Tensor& rounding_out(const at::Tensor& self, at::Tensor& out) {
  TORCH_CHECK_NOT_IMPLEMENTED(self.scalar_type() != at::kBool, "not implemented for 'Bool'");
  return unary(out, self, kFormula);
}

constexpr auto exponential2 = [](const In& in) { return clutch::exp2(in.x[0]); };
constexpr auto logarithm10 = [](const In& in) { return builtin("log10(x0)", {in.x[0]}); };
constexpr auto tangent = [](const In& in) { return clutch::sin(in.x[0]) / clutch::cos(in.x[0]); };
constexpr auto arcsine = [](const In& in) { return builtin("asin(x0)", {in.x[0]}); };
constexpr auto arccosine = [](const In& in) { return builtin("acos(x0)", {in.x[0]}); };
constexpr auto arctangent = [](const In& in) { return builtin("atan(x0)", {in.x[0]}); };
constexpr auto hyperbolic_sine = [](const In& in) { return builtin("sinh(x0)", {in.x[0]}); };
constexpr auto hyperbolic_cosine = [](const In& in) { return builtin("cosh(x0)", {in.x[0]}); };
constexpr auto area_sine = [](const In& in) { return builtin("asinh(x0)", {in.x[0]}); };
constexpr auto area_cosine = [](const In& in) { return builtin("acosh(x0)", {in.x[0]}); };
constexpr auto area_tangent = [](const In& in) { return builtin("atanh(x0)", {in.x[0]}); };
constexpr auto error_complement = [](const In& in) { return builtin("erfc(x0)", {in.x[0]}); };
constexpr auto log_gamma = [](const In& in) { return builtin("lgamma(x0)", {in.x[0]}); };
constexpr auto sinc = [](const In& in) {
  const Expr angle = std::numbers::pi * in.x[0];
  return clutch::select(in.x[0] == 0.0, 1.0, clutch::sin(angle) / angle);
};

constexpr auto entropy = [](const In& in) {
  const Expr& x = in.x[0];
  return clutch::select(clutch::isnan(x), x,
                        clutch::select(x > 0.0, -x * clutch::log(x), clutch::select(x == 0.0, 0.0, -std::numeric_limits<double>::infinity())));
};
// The series at 10 or more, to which the recurrence leads, and the reflection for negative numbers.
constexpr auto digamma = [](const In& in) {
  const Expr& x = in.x[0];
  const Expr reflected = x < 0.0;
  const Expr place = clutch::select(reflected, 1.0 - x, x);
  Expr at = place, sum = 0.0 * place;
  for (int i = 0; i < 10; ++i) {
    const Expr small = at < 10.0;
    sum = clutch::select(small, sum - 1.0 / at, sum);
    at = clutch::select(small, at + 1.0, at);
  }
  const Expr z = 1.0 / (at * at);
  const Expr series = z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z * (1.0 / 12)))))));
  const Expr positive = sum + clutch::log(at) - 0.5 / at - series;
  const Expr angle = std::numbers::pi * (x - clutch::floor(x));
  const Expr mirrored = positive - std::numbers::pi * clutch::cos(angle) / clutch::sin(angle);
  const Expr whole = x == clutch::floor(x);
  const Expr pole = clutch::select(x == 0.0, -1.0 / x, std::numeric_limits<double>::quiet_NaN());
  return clutch::select((x <= 0.0) & whole, pole, clutch::select(reflected, mirrored, positive));
};

at::Tensor angle(const at::Tensor& self) {
  if (self.is_complex()) refuse("complex numbers");
  at::Tensor out = at::empty(
      {0}, self.options().dtype(at::isIntegralType(self.scalar_type(), true) ? c10::typeMetaToScalarType(at::get_default_dtype()) : self.scalar_type()));
  return unary_float(out, self,
                     [](const In& in) { return clutch::select(clutch::isnan(in.x[0]), in.x[0], clutch::select(in.x[0] < 0.0, std::numbers::pi, 0.0)); });
}

at::Tensor& neg_out(const at::Tensor& self, at::Tensor& out) {
  TORCH_CHECK(
      self.scalar_type() != at::kBool,
      "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.");
  return unary(out, self, negated, [](const ComplexIn& in) { return -in.x[0]; });
}
at::Tensor& abs_out(const at::Tensor& self, at::Tensor& out) {
  if (self.is_complex()) {
    at::native::resize_output(out, self.sizes());
    if (self.numel() > 0) clutch::abs_out(wrap(out), wrap(self));
    return out;
  }
  return unary(out, self, magnitude);
}
at::Tensor abs(const at::Tensor& self) {
  at::Tensor out = at::empty({0}, self.options().dtype(c10::toRealValueType(self.scalar_type())));
  return torch_clutch::abs_out(self, out);
}
at::Tensor& abs_(at::Tensor& self) {
  TORCH_CHECK(!self.is_complex(), "In-place abs is not supported for complex tensors.");
  return torch_clutch::abs_out(self, self);
}

at::Tensor& conj_physical_out(const at::Tensor& self, at::Tensor& out) {
  return unary(
      out, self, [](const In& in) { return in.x[0]; }, [](const ComplexIn& in) { return conj(in.x[0]); });
}
at::Tensor& conj_physical_(at::Tensor& self) { return self.is_complex() ? torch_clutch::conj_physical_out(self, self) : self; }
at::Tensor& exp_out(const at::Tensor& self, at::Tensor& out) {
  return unary_float(out, self, exponential, [](const ComplexIn& in) { return exp(in.x[0]); });
}
at::Tensor& sgn_out(const at::Tensor& self, at::Tensor& out) {
  return unary(out, self, sign, [](const ComplexIn& in) {
    const Expr size = abs(in.x[0]), none = size == 0;
    return clutch::ComplexExpr(clutch::select(none, 0.0, in.x[0].re() / size), clutch::select(none, 0.0, in.x[0].im() / size));
  });
}
at::Tensor& reciprocal_out(const at::Tensor& self, at::Tensor& out) {
  return unary_float(out, self, inverse, [](const ComplexIn& in) { return reciprocal(in.x[0]); });
}

at::Tensor& round_decimals_out(const at::Tensor& self, int64_t decimals, at::Tensor& out) {
  if (!at::isFloatingType(self.scalar_type())) refuse("decimals of integers");
  const double scale = std::pow(10.0, static_cast<double>(std::abs(decimals)));
  if (decimals >= 0) return unary(out, self, [](const In& in) { return clutch::round(in.x[0] * in.n[0]) / in.n[0]; }, {scale});
  return unary(out, self, [](const In& in) { return clutch::round(in.x[0] / in.n[0]) * in.n[0]; }, {scale});
}

at::Tensor& nan_to_num_out(const at::Tensor& self, std::optional<double> nan, std::optional<double> positive, std::optional<double> negative, at::Tensor& out) {
  if (!at::isFloatingType(self.scalar_type())) refuse("nan_to_num of integers");
  const auto limits = [&](bool lowest) {
    switch (self.scalar_type()) {
      case at::kDouble: return lowest ? std::numeric_limits<double>::lowest() : std::numeric_limits<double>::max();
      case at::kHalf: return lowest ? -65504.0 : 65504.0;
      case at::kBFloat16: return static_cast<double>(lowest ? std::numeric_limits<c10::BFloat16>::lowest() : std::numeric_limits<c10::BFloat16>::max());
      default: return static_cast<double>(lowest ? std::numeric_limits<float>::lowest() : std::numeric_limits<float>::max());
    }
  };
  return unary(out, self,
               [](const In& in) {
                 const Expr& x = in.x[0];
                 return clutch::select(clutch::isnan(x), in.n[0], clutch::select(clutch::isinf(x), clutch::select(x > 0.0, in.n[1], in.n[2]), x));
               },
               {nan.value_or(0), positive.value_or(limits(false)), negative.value_or(limits(true))});
}

at::Tensor& logit_out(const at::Tensor& self, std::optional<double> eps, at::Tensor& out) {
  const double margin = eps.value_or(-1);
  if (margin < 0) return unary_float(out, self, [](const In& in) { return clutch::log(in.x[0] / (1.0 - in.x[0])); });
  return unary_float(out, self,
                     [](const In& in) {
                       const Expr x = clutch::select(in.x[0] < in.n[0], in.n[0], clutch::select(in.x[0] > in.n[1], in.n[1], in.x[0]));
                       return clutch::log(x / (1.0 - x));
                     },
                     {margin, 1 - margin});
}
at::Tensor logit(const at::Tensor& self, std::optional<double> eps) {
  const at::ScalarType dtype = at::isIntegralType(self.scalar_type(), true) ? c10::typeMetaToScalarType(at::get_default_dtype()) : self.scalar_type();
  at::Tensor out = at::empty({0}, self.options().dtype(dtype));
  return torch_clutch::logit_out(self, eps, out);
}

}  // namespace

void add_functions(OpTable& table) {
  table.family("functions");
  table.add<"neg.out", &neg_out>("neg");
  table.add<"conj_physical.out", &conj_physical_out>("conj");
  table.add<"conj_physical_", &conj_physical_>("conj_");
  table.add<"abs", &abs>("abs");
  table.add<"abs_", &abs_>("abs");
  table.add<"abs.out", &abs_out>("abs");
  table.add<"sign.out", &kept_out<sign>>("sign");
  table.add<"sgn.out", &sgn_out>("sign");
  table.add<"exp.out", &exp_out>("exp");
  table.add<"exp2.out", &real_out<exponential2>>("exp2");
  table.add<"expm1.out", &real_out<exponential_less_1>>("expm1");
  table.add<"log.out", &real_out<logarithm>>("log");
  table.add<"log2.out", &real_out<logarithm2>>("log2");
  table.add<"log10.out", &real_out<logarithm10>>("map of OpenCL's log10");
  table.add<"log1p.out", &real_out<logarithm_of_1>>("log1p");
  table.add<"sqrt.out", &real_out<root>>("sqrt");
  table.add<"rsqrt.out", &real_out<inverse_root>>("rsqrt");
  table.add<"sin.out", &real_out<sine>>("sin");
  table.add<"cos.out", &real_out<cosine>>("cos");
  table.add<"tan.out", &real_out<tangent>>("map of sin and cos");
  table.add<"asin.out", &real_out<arcsine>>("map of OpenCL's asin");
  table.add<"acos.out", &real_out<arccosine>>("map of OpenCL's acos");
  table.add<"atan.out", &real_out<arctangent>>("map of OpenCL's atan");
  table.add<"sinh.out", &real_out<hyperbolic_sine>>("map of OpenCL's sinh");
  table.add<"cosh.out", &real_out<hyperbolic_cosine>>("map of OpenCL's cosh");
  table.add<"tanh.out", &real_out<hyperbolic_tangent>>("tanh");
  table.add<"asinh.out", &real_out<area_sine>>("map of OpenCL's asinh");
  table.add<"acosh.out", &real_out<area_cosine>>("map of OpenCL's acosh");
  table.add<"atanh.out", &real_out<area_tangent>>("map of OpenCL's atanh");
  table.add<"sigmoid.out", &real_out<logistic>>("sigmoid");
  table.add<"erf.out", &real_out<error_function>>("erf");
  table.add<"erfc.out", &real_out<error_complement>>("map of OpenCL's erfc");
  table.add<"lgamma.out", &real_out<log_gamma>>("map of OpenCL's lgamma");
  table.add<"reciprocal.out", &reciprocal_out>("reciprocal");
  table.add<"special_entr.out", &real_out<entropy>>("map of log");
  table.add<"digamma.out", &real_out<digamma>>("map of log");
  table.add<"angle", &angle>("map of select");
  table.add<"floor.out", &rounding_out<lower>>("floor");
  table.add<"ceil.out", &rounding_out<upper>>("ceil");
  table.add<"trunc.out", &rounding_out<truncated>>("trunc");
  table.add<"round.out", &rounding_out<nearest>>("round");
  table.add<"round.decimals_out", &round_decimals_out>("round");
  table.add<"frac.out", &rounding_out<fraction>>("trunc, sub");
  table.add<"sinc.out", &real_out<sinc>>("map of sin");
  table.add<"nan_to_num.out", &nan_to_num_out>("map of isnan");
  table.add<"logit", &logit>("map of log");
  table.add<"logit.out", &logit_out>("map of log");
}

}  // namespace torch_clutch
