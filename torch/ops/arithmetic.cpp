// SPDX-License-Identifier: Apache-2.0
// Arithmetic of two tensors, or of a tensor and a number.
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/native/Resize.h>

#include <algorithm>
#include <cmath>

namespace torch_clutch {
namespace {

at::Tensor& add_out(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha, at::Tensor& out) {
  at::TensorIterator it;
  it.build_borrowing_binary_op(out, self, other);
  at::native::alpha_check(it.common_dtype(), alpha);
  if (alpha.isIntegral(true) && alpha.toLong() == 1)
    pointwise(
        it, [](const In& in) { return in.x[0] + in.x[1]; }, [](const ComplexIn& in) { return in.x[0] + in.x[1]; });
  else if (at::isFloatingType(it.common_dtype()))
    pointwise(it, [](const In& in) { return clutch::fma(in.n[0], in.x[1], in.x[0]); }, {alpha.toDouble()});
  else
    pointwise(
        it, [](const In& in) { return in.x[0] + in.n[0] * in.x[1]; }, [](const ComplexIn& in) { return in.x[0] + in.n[0] * in.x[1]; }, {alpha});
  return out;
}
at::Tensor& sub_out(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha, at::Tensor& out) {
  at::TensorIterator it;
  it.build_borrowing_binary_op(out, self, other);
  at::native::sub_check(self, other);
  at::native::alpha_check(it.common_dtype(), alpha);
  if (alpha.isIntegral(true) && alpha.toLong() == 1)
    pointwise(
        it, [](const In& in) { return in.x[0] - in.x[1]; }, [](const ComplexIn& in) { return in.x[0] - in.x[1]; });
  else if (at::isFloatingType(it.common_dtype()))
    pointwise(it, [](const In& in) { return clutch::fma(-in.n[0], in.x[1], in.x[0]); }, {alpha.toDouble()});
  else
    pointwise(
        it, [](const In& in) { return in.x[0] - in.n[0] * in.x[1]; }, [](const ComplexIn& in) { return in.x[0] - in.n[0] * in.x[1]; }, {alpha});
  return out;
}
at::Tensor& mul_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return binary(
      out, self, other, [](const In& in) { return in.x[0] * in.x[1]; }, [](const ComplexIn& in) { return in.x[0] * in.x[1]; });
}
at::Tensor& div_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return binary_float(
      out, self, other, [](const In& in) { return in.x[0] / in.x[1]; }, [](const ComplexIn& in) { return in.x[0] / in.x[1]; });
}

// The exact remainder of a quotient that is truncated. Of f64 by 52 bits of the quotient at a time, each step an fma without rounding: with OpenCL's function
// of doubles PoCL 3.1 gives wrong numbers beside lanes that are zero, infinite or NaN, and does not return from subnormal divisors.
Expr exact_remainder(const Expr& from, const Expr& by) {
  const Expr a = floating(from), b = floating(by);
  if ((a + b).dtype() != clutch::DType::f64) return builtin("fmod(x0, x1)", {a, b});
  constexpr int kBits = 52, kSteps = 41;  // doubles differ by less than 2^2099
  const Expr divisor = clutch::abs(b);
  Expr left = clutch::abs(a);
  for (int step = kSteps; step-- > 0;) {
    Expr part = divisor;  // infinite where that is more than what is left can be
    for (int bits = step * kBits; bits > 0; bits -= 1000) part = part * std::ldexp(1.0, std::min(bits, 1000));
    const Expr quotient = clutch::trunc(left / part), rest = clutch::fma(-quotient, part, left);
    left = clutch::select(quotient == 0.0, left, clutch::select(rest < 0.0, rest + part, rest));  // a quotient that was rounded up is one too large
  }
  const Expr none = (a - a) / b;  // NaN
  return clutch::select(clutch::isfinite(a) & (b != 0.0) & !clutch::isnan(b), builtin("copysign(x0, x1)", {left, a}), none);
}
// Python's quotient of floats: of the exact remainder, so that it does not differ from it by rounding.
Expr floor_quotient(const Expr& a, const Expr& b) {
  const Expr remainder = exact_remainder(a, b);
  const Expr exact = (a - remainder) / b;
  const Expr lower = clutch::select((remainder != 0.0) & ((b < 0.0) ^ (remainder < 0.0)), exact - 1.0, exact);
  const Expr rounded = clutch::floor(lower);
  const Expr nearest = clutch::select(lower - rounded > 0.5, rounded + 1.0, rounded);
  const Expr zero = builtin("copysign(x0, x1)", {0.0 * a, a / b});
  const Expr whole = clutch::select(lower != 0.0, nearest, zero);
  return clutch::select(b == 0.0, a / b, whole);
}
at::Tensor& floor_divide_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return binary(out, self, other, [](const In& in) {
    if (clutch::is_floating((in.x[0] + in.x[1]).dtype())) return floor_quotient(floating(in.x[0]), floating(in.x[1]));
    return clutch::floor_div(in.x[0], in.x[1]);
  });
}
at::Tensor floor_divide(const at::Tensor& self, const at::Tensor& other) {
  at::Tensor out = at::empty({0}, self.options().device(kDevice).dtype(at::result_type(self, other)));
  return torch_clutch::floor_divide_out(self, other, out);
}
at::Tensor& floor_divide_(at::Tensor& self, const at::Tensor& other) { return torch_clutch::floor_divide_out(self, other, self); }
at::Tensor& div_mode_out(const at::Tensor& self, const at::Tensor& other, std::optional<c10::string_view> mode, at::Tensor& out) {
  if (!mode.has_value()) return torch_clutch::div_out(self, other, out);
  if (*mode == "floor") return torch_clutch::floor_divide_out(self, other, out);
  TORCH_CHECK(*mode == "trunc", "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", *mode, "'");
  return binary(out, self, other, [](const In& in) {
    if (clutch::is_floating((in.x[0] + in.x[1]).dtype())) return clutch::trunc(in.x[0] / in.x[1]);
    return clutch::trunc_div(in.x[0], in.x[1]);
  });
}
at::Tensor& remainder_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return binary(out, self, other, [](const In& in) {
    if (!clutch::is_floating((in.x[0] + in.x[1]).dtype())) return clutch::floor_mod(in.x[0], in.x[1]);
    const Expr b = floating(in.x[1]), r = exact_remainder(in.x[0], b);
    return clutch::select((r != 0.0) & ((r < 0.0) ^ (b < 0.0)), r + b, r);
  });
}
at::Tensor& fmod_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return binary(out, self, other, [](const In& in) {
    if (!clutch::is_floating((in.x[0] + in.x[1]).dtype())) return clutch::trunc_mod(in.x[0], in.x[1]);
    return exact_remainder(in.x[0], in.x[1]);
  });
}

at::Tensor& pow_tensor_out(const at::Tensor& self, const at::Tensor& exponent, at::Tensor& out) {
  at::TensorIterator it;
  it.build_borrowing_binary_op(out, self, exponent);
  if (!at::isFloatingType(it.common_dtype())) refuse("powers of integers");
  pointwise(it, [](const In& in) { return clutch::pow(in.x[0], in.x[1]); });
  return out;
}
at::Tensor& pow_scalar_out(const at::Tensor& self, const at::Scalar& exponent, at::Tensor& out) {
  if (exponent.isComplex()) refuse("a complex exponent");
  const at::ScalarType common = at::result_type(self, exponent);
  TORCH_CHECK(at::isFloatingType(common) || exponent.toDouble() >= 0, "Integers to negative integer powers are not allowed.");
  const double e = exponent.toDouble();
  auto build = [&](auto formula, Numbers numbers = {}) -> at::Tensor& {
    auto it = at::TensorIteratorConfig().add_output(out).add_const_input(self).promote_inputs_to_common_dtype(false).check_all_same_dtype(false).build();
    if (at::isFloatingType(common) || at::isFloatingType(self.scalar_type()))
      pointwise_as_they_are(it, formula, numbers);
    else
      pointwise_as_they_are(it, formula, numbers);
    return out;
  };
  if (e == 2) return build([](const In& in) { return in.x[0] * in.x[0]; });
  if (e == 1) return build([](const In& in) { return in.x[0]; });
  if (e == 3) return build([](const In& in) { return in.x[0] * in.x[0] * in.x[0]; });
  if (!at::isFloatingType(common)) refuse("powers of integers");
  if (e == 0.5) return build([](const In& in) { return clutch::sqrt(floating(in.x[0])); });
  if (e == -0.5) return build([](const In& in) { return clutch::rsqrt(floating(in.x[0])); });
  if (e == -1) return build([](const In& in) { return 1.0 / floating(in.x[0]); });
  return build([](const In& in) { return clutch::pow(floating(in.x[0]), in.n[0]); }, {e});
}
at::Tensor& pow_of_scalar_out(const at::Scalar& self, const at::Tensor& exponent, at::Tensor& out) {
  if (self.isComplex()) refuse("a complex base");
  if (!at::isFloatingType(at::result_type(self, exponent))) refuse("powers of integers");
  auto it = at::TensorIteratorConfig().add_output(out).add_const_input(exponent).check_all_same_dtype(false).build();
  pointwise_as_they_are(it, [](const In& in) { return clutch::pow(in.n[0], floating(in.x[0])); }, {self.toDouble()});
  return out;
}

at::Tensor& maximum_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return binary(out, self, other, [](const In& in) { return clutch::max(in.x[0], in.x[1]); });
}
at::Tensor& minimum_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return binary(out, self, other, [](const In& in) { return clutch::min(in.x[0], in.x[1]); });
}
// The number where one of two is NaN.
at::Tensor& fmax_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return binary(out, self, other, [](const In& in) {
    if (!clutch::is_floating(in.x[0].dtype())) return clutch::max(in.x[0], in.x[1]);
    return clutch::select(clutch::isnan(in.x[0]), in.x[1], clutch::select(clutch::isnan(in.x[1]), in.x[0], clutch::max(in.x[0], in.x[1])));
  });
}
at::Tensor& fmin_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return binary(out, self, other, [](const In& in) {
    if (!clutch::is_floating(in.x[0].dtype())) return clutch::min(in.x[0], in.x[1]);
    return clutch::select(clutch::isnan(in.x[0]), in.x[1], clutch::select(clutch::isnan(in.x[1]), in.x[0], clutch::min(in.x[0], in.x[1])));
  });
}
at::Tensor& atan2_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return binary_float(out, self, other, [](const In& in) { return builtin("atan2(x0, x1)", {in.x[0], in.x[1]}); });
}
at::Tensor& hypot_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return binary(out, self, other, [](const In& in) { return builtin("hypot(x0, x1)", {floating(in.x[0]), floating(in.x[1])}); });
}
at::Tensor& copysign_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return binary_float(out, self, other, [](const In& in) { return builtin("copysign(x0, x1)", {in.x[0], in.x[1]}); });
}
at::Tensor& xlogy_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return binary_float(out, self, other, [](const In& in) {
    return clutch::select(clutch::isnan(in.x[1]), in.x[1], clutch::select(in.x[0] == 0.0, 0.0, in.x[0] * clutch::log(in.x[1])));
  });
}
at::Tensor rsub(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) { return at::sub(other, self, alpha); }
at::Tensor& xlog1py_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return binary_float(out, self, other, [](const In& in) {
    return clutch::select(clutch::isnan(in.x[1]), in.x[1], clutch::select(in.x[0] == 0.0, 0.0, in.x[0] * clutch::log1p(in.x[1])));
  });
}
// The larger one, and the log of one more than the smaller one's share: finite where both are infinite and equal.
at::Tensor& logaddexp_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return binary(out, self, other, [](const In& in) {
    const Expr largest = clutch::max(in.x[0], in.x[1]), least = clutch::min(in.x[0], in.x[1]);
    return clutch::select(clutch::isinf(largest) & (largest == least), largest, largest + clutch::log1p(clutch::exp(least - largest)));
  });
}
constexpr double kLog2E = 1.4426950408889634;
at::Tensor& logaddexp2_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return binary(out, self, other, [](const In& in) {
    const Expr largest = clutch::max(in.x[0], in.x[1]), least = clutch::min(in.x[0], in.x[1]);
    return clutch::select(clutch::isinf(largest) & (largest == least), largest, largest + kLog2E * clutch::log1p(clutch::exp2(least - largest)));
  });
}
at::Tensor& nextafter_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  at::TensorIterator it;
  it.build_borrowing_binary_op(out, self, other);
  if (it.common_dtype() != at::kFloat && it.common_dtype() != at::kDouble) refuse("neighbours of narrow floats");
  pointwise(it, [](const In& in) { return builtin("nextafter(x0, x1)", {in.x[0], in.x[1]}); });
  return out;
}
at::Tensor& complex_out(const at::Tensor& real, const at::Tensor& imaginary, at::Tensor& out) {
  out.resize_(at::infer_size(real.sizes(), imaginary.sizes()));
  clutch::complex_out(wrap(out), wrap(real), wrap(imaginary));
  return out;
}
at::Tensor& polar_out(const at::Tensor& magnitude, const at::Tensor& angle, at::Tensor& out) {
  return torch_clutch::complex_out(magnitude * angle.cos(), magnitude * angle.sin(), out);
}
at::Tensor& cross_out(const at::Tensor& self, const at::Tensor& other, int64_t dim, at::Tensor& out) {
  if (out.is_complex()) refuse("complex numbers");
  const std::vector<at::Tensor> both = at::broadcast_tensors({self, other});
  dim = at::maybe_wrap_dim(dim, both[0].dim());
  at::native::resize_output(out, both[0].sizes());
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, other);
  for (int64_t i = 0; i < 3; ++i) {
    auto of = [&](const at::Tensor& tensor, int64_t k) { return wrap(tensor.select(dim, (i + k) % 3)); };
    apply(out.select(dim, i), {of(both[0], 1), of(both[1], 2), of(both[0], 2), of(both[1], 1)},
          [](const In& in) { return in.x[0] * in.x[1] - in.x[2] * in.x[3]; });
  }
  return out;
}
at::Tensor& heaviside_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  TORCH_CHECK(self.scalar_type() == other.scalar_type() && out.scalar_type() == self.scalar_type(),
              "heaviside is not yet implemented for tensors with different dtypes.");
  return binary(out, self, other, [](const In& in) { return clutch::select(in.x[0] == 0.0, in.x[1], clutch::cast(in.x[0] > 0.0, clutch::DType::i32)); });
}

at::Tensor& lerp_scalar_out(const at::Tensor& self, const at::Tensor& end, const at::Scalar& weight, at::Tensor& out) {
  return binary(out, self, end, [](const In& in) { return clutch::lerp(in.x[0], in.x[1], in.n[0]); }, {weight});
}
at::Tensor& lerp_tensor_out(const at::Tensor& self, const at::Tensor& end, const at::Tensor& weight, at::Tensor& out) {
  return ternary(out, self, end, weight, [](const In& in) { return clutch::lerp(in.x[0], in.x[1], in.x[2]); });
}

// The order of rounding is that of clutch::addcdiv(), fma_of_quotient: CUDA's.
at::Tensor& addcdiv_out(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& value, at::Tensor& out) {
  TORCH_CHECK(!(at::isIntegralType(a.scalar_type(), true) && at::isIntegralType(b.scalar_type(), true)),
              "Integer division with addcdiv is no longer supported");
  if (value.isComplex()) refuse("a complex value");
  return ternary(out, self, a, b, [](const In& in) { return clutch::fma(in.n[0], in.x[1] / in.x[2], in.x[0]); }, {value.toDouble()});
}
at::Tensor& addcmul_out(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& value, at::Tensor& out) {
  if (!at::isFloatingType(self.scalar_type())) return ternary(out, self, a, b, [](const In& in) { return in.x[0] + in.n[0] * (in.x[1] * in.x[2]); }, {value});
  if (value.toDouble() == 1) return ternary(out, self, a, b, [](const In& in) { return clutch::fma(in.x[1], in.x[2], in.x[0]); });
  return ternary(out, self, a, b, [](const In& in) { return clutch::fma(in.n[0], in.x[1] * in.x[2], in.x[0]); }, {value.toDouble()});
}

}  // namespace

void add_arithmetic(OpTable& table) {
  table.family("arithmetic");
  table.add<"add.out", &add_out>("add, add_scaled");
  table.add<"sub.out", &sub_out>("sub");
  table.add<"mul.out", &mul_out>("mul");
  table.add<"div.out", &div_out>("div");
  table.add<"div.out_mode", &div_mode_out>("floor_divide, trunc_divide");
  table.add<"floor_divide", &floor_divide>("floor_divide");
  table.add<"floor_divide.out", &floor_divide_out>("floor_divide");
  table.add<"floor_divide_.Tensor", &floor_divide_>("floor_divide");
  table.add<"remainder.Tensor_out", &remainder_out>("remainder");
  table.add<"fmod.Tensor_out", &fmod_out>("fmod");
  table.add<"pow.Tensor_Tensor_out", &pow_tensor_out>("pow");
  table.add<"pow.Tensor_Scalar_out", &pow_scalar_out>("pow");
  table.add<"pow.Scalar_out", &pow_of_scalar_out>("pow");
  table.add<"maximum.out", &maximum_out>("maximum");
  table.add<"minimum.out", &minimum_out>("minimum");
  table.add<"fmax.out", &fmax_out>("map of max");
  table.add<"fmin.out", &fmin_out>("map of min");
  table.add<"atan2.out", &atan2_out>("map of OpenCL's atan2");
  table.add<"hypot.out", &hypot_out>("map of OpenCL's hypot");
  table.add<"copysign.out", &copysign_out>("map of OpenCL's copysign");
  table.add<"xlogy.OutTensor", &xlogy_out>("map of log");
  table.add<"heaviside.out", &heaviside_out>("map of select");
  table.add<"rsub.Tensor", &rsub>("sub");
  table.add<"special_xlog1py.out", &xlog1py_out>("map of log1p");
  table.add<"logaddexp.out", &logaddexp_out>("map of log1p and exp");
  table.add<"logaddexp2.out", &logaddexp2_out>("map of log1p and exp2");
  table.add<"nextafter.out", &nextafter_out>("map of OpenCL's nextafter");
  table.add<"complex.out", &complex_out>("complex");
  table.add<"polar.out", &polar_out>("map of cos and sin");
  table.add<"linalg_cross.out", &cross_out>("map");
  table.add<"lerp.Scalar_out", &lerp_scalar_out>("lerp");
  table.add<"lerp.Tensor_out", &lerp_tensor_out>("lerp");
  table.add<"addcdiv.out", &addcdiv_out>("map: the bits of addcdiv");
  table.add<"addcmul.out", &addcmul_out>("map: the bits of addcmul");
}

}  // namespace torch_clutch
