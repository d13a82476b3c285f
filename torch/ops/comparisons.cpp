// SPDX-License-Identifier: Apache-2.0
// Comparisons, logic, choices and bounds.
#include "ops/formulas.hpp"
#include "ops/shared_elements.hpp"
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>
#include <ATen/native/TensorFactories.h>

namespace torch_clutch {
namespace {

constexpr auto equal = [](const In& in) { return in.x[0] == in.x[1]; };
constexpr auto not_equal = [](const In& in) { return in.x[0] != in.x[1]; };
constexpr auto less = [](const In& in) { return in.x[0] < in.x[1]; };
constexpr auto less_equal = [](const In& in) { return in.x[0] <= in.x[1]; };
constexpr auto greater = [](const In& in) { return in.x[0] > in.x[1]; };
constexpr auto greater_equal = [](const In& in) { return in.x[0] >= in.x[1]; };

constexpr auto equal_complex = [](const ComplexIn& in) { return in.x[0] == in.x[1]; };
constexpr auto not_equal_complex = [](const ComplexIn& in) { return in.x[0] != in.x[1]; };
template <auto kFormula, auto kComplex>
at::Tensor& equality_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return comparison(out, self, other, kFormula, kComplex);
}
template <auto kFormula, auto kComplex>
at::Tensor& equality_scalar_out(const at::Tensor& self, const at::Scalar& other, at::Tensor& out) {
  return comparison(out, self, at::native::wrapped_scalar_tensor(other), kFormula, kComplex);
}
template <auto kFormula>
at::Tensor& compare_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return comparison(out, self, other, kFormula);
}
template <auto kFormula>
at::Tensor& compare_scalar_out(const at::Tensor& self, const at::Scalar& other, at::Tensor& out) {
  return comparison(out, self, at::native::wrapped_scalar_tensor(other), kFormula);
}

Expr truth(const Expr& x) { return x != 0; }
constexpr auto both = [](const In& in) { return truth(in.x[0]) & truth(in.x[1]); };
constexpr auto either = [](const In& in) { return truth(in.x[0]) | truth(in.x[1]); };
constexpr auto one_of_both = [](const In& in) { return truth(in.x[0]) ^ truth(in.x[1]); };
template <auto kFormula>
at::Tensor& logic_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  at::TensorIterator iterator;
  iterator.build_comparison_op(out, self, other);
  pointwise_as_they_are(iterator, kFormula);
  return out;
}
at::Tensor& logical_not_out(const at::Tensor& self, at::Tensor& out) {
  auto iterator = at::TensorIteratorConfig().check_all_same_dtype(false).add_output(out).add_const_input(self).build();
  pointwise_as_they_are(iterator, [](const In& in) { return !truth(in.x[0]); });
  return out;
}

constexpr auto bits_and = [](const In& in) { return in.x[0] & in.x[1]; };
constexpr auto bits_or = [](const In& in) { return in.x[0] | in.x[1]; };
constexpr auto bits_xor = [](const In& in) { return in.x[0] ^ in.x[1]; };
template <auto kFormula>
at::Tensor& bits_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return binary(out, self, other, kFormula);
}
at::Tensor& bitwise_not_out(const at::Tensor& self, at::Tensor& out) {
  return unary(out, self, [](const In& in) { return ~in.x[0]; });
}

// A count out of range leaves zero, or the sign.
constexpr auto shift_left = [](const In& in) {
  const Expr &x = in.x[0], &count = in.x[1];
  return clutch::select((count >= 0) & (count < clutch::bits(x.dtype())), x << count, clutch::cast(Expr(0), x.dtype()));
};
constexpr auto shift_right = [](const In& in) {
  const Expr &x = in.x[0], &count = in.x[1];
  const int size = clutch::bits(x.dtype());
  const Expr signs = clutch::cast(clutch::select(x < 0, Expr(-1), Expr(0)), x.dtype());
  return clutch::select((count >= 0) & (count < size), x >> count, signs);
};
template <auto kFormula>
at::Tensor& shift_out(const at::Tensor& self, const at::Tensor& count, at::Tensor& out) {
  if (!c10::isIntegralType(at::result_type(self, count), false)) refuse("a shift of ", at::result_type(self, count));
  return binary(out, self, count, kFormula);
}
template <auto kFormula>
at::Tensor shift(const at::Tensor& self, const at::Tensor& count) {
  at::Tensor out = at::empty({0}, self.options().dtype(at::result_type(self, count)));
  return shift_out<kFormula>(self, count, out);
}
template <auto kFormula>
at::Tensor& shift_(at::Tensor& self, const at::Tensor& count) {
  return shift_out<kFormula>(self, count, self);
}
template <auto kFormula>
at::Tensor shift_by_number(const at::Tensor& self, const at::Scalar& count) {
  return shift<kFormula>(self, at::native::wrapped_scalar_tensor(count));
}
template <auto kFormula>
at::Tensor& shift_by_number_(at::Tensor& self, const at::Scalar& count) {
  return shift_out<kFormula>(self, at::native::wrapped_scalar_tensor(count), self);
}

template <auto kFormula>
at::Tensor& test_out(const at::Tensor& self, at::Tensor& out) {
  auto iterator = at::TensorIteratorConfig().check_all_same_dtype(false).add_output(out).add_const_input(self).build();
  pointwise_as_they_are(iterator, kFormula);
  return out;
}
constexpr auto is_positive_infinity = [](const In& in) { return clutch::isinf(floating(in.x[0])) & (in.x[0] > 0); };
constexpr auto is_negative_infinity = [](const In& in) { return clutch::isinf(floating(in.x[0])) & (in.x[0] < 0); };
constexpr auto sign_bit = [](const In& in) {
  if (!clutch::is_floating(in.x[0].dtype())) return in.x[0] < 0;
  return builtin("copysign(x0, x1)", {floating(1.0 + 0.0 * in.x[0]), in.x[0]}) < 0.0;
};
at::Tensor isnan(const at::Tensor& self) {
  at::Tensor out = at::empty(self.sizes(), self.options().dtype(at::kBool));
  return test_out<[](const In& in) { return clutch::isnan(floating(in.x[0])); }>(self, out);
}

at::Tensor& where_out(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  TORCH_CHECK(condition.scalar_type() == at::kBool || condition.scalar_type() == at::kByte,
              "where expected condition to be a boolean tensor, but got a tensor with dtype ", condition.scalar_type());
  const at::ScalarType common = at::result_type(self, other);
  auto on_device = [&](const at::Tensor& tensor) { return tensor.to(tensor.dim() == 0 ? condition.device() : tensor.device(), common); };
  auto iterator = at::TensorIteratorConfig()
                      .check_all_same_dtype(false)
                      .add_output(out)
                      .add_owned_const_input(condition.dim() == 0 && condition.is_cpu() ? condition.to(out.device()) : condition)
                      .add_owned_const_input(on_device(self))
                      .add_owned_const_input(on_device(other))
                      .build();
  if (out.is_complex())
    complex_pointwise(iterator, [](const ComplexIn& in) { return select(in.x[0].re() != 0, in.x[1], in.x[2]); });
  else
    pointwise_as_they_are(iterator, [](const In& in) { return clutch::select(in.x[0], in.x[1], in.x[2]); });
  return out;
}
at::Tensor where(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other) {
  const at::Device where = self.device().type() == kDevice ? self.device() : other.device().type() == kDevice ? other.device() : condition.device();
  at::Tensor out = at::empty({0}, self.options().device(where).dtype(at::result_type(self, other)));
  return where_out(condition, self, other, out);
}

// What any mask of an element's has filled.
template <class Value>
at::Tensor& masked_fill_shared(at::Tensor& self, const at::Tensor& mask, const Value& value) {
  const std::vector<int64_t> dims = expanded_dims(self);
  own_elements(self).masked_fill_(mask.expand_as(self).any(dims, true), value);
  return self;
}
at::Tensor& masked_fill_tensor_(at::Tensor& self, const at::Tensor& mask, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ", value.dim(), " dimension(s).");
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_fill_ only supports boolean masks, but got mask with dtype ", mask.scalar_type());
  at::assert_no_partial_overlap(self, mask);
  if (shares_elements(self, "masked_fill_")) return masked_fill_shared(self, mask, value);
  if (self.is_complex()) return where_out(mask, value.to(self.options()), self, self);
  const clutch::Tensor target = wrap(self);
  const clutch::Tensor masked = wrap(mask.expand_as(self)), filled = wrap(value.to(self.options()).expand_as(self));
  apply(target, {masked, filled, target}, [](const In& in) { return clutch::select(in.x[0], in.x[1], in.x[2]); });
  return self;
}
at::Tensor& masked_fill_scalar_(at::Tensor& self, const at::Tensor& mask, const at::Scalar& value) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_fill_ only supports boolean masks, but got mask with dtype ", mask.scalar_type());
  TORCH_CHECK(at::canCast(value.type(), self.scalar_type()) || !value.isComplex(), "value cannot be converted to type ", self.scalar_type(),
              " without overflow");
  at::assert_no_partial_overlap(self, mask);
  if (shares_elements(self, "masked_fill_")) return masked_fill_shared(self, mask, value);
  if (self.is_complex()) return where_out(mask, at::scalar_tensor(value, self.options()), self, self);
  const clutch::Tensor target = wrap(self), masked = wrap(mask.expand_as(self));
  if (self.scalar_type() == at::kBool) {
    apply(target, {masked, target}, [](const In& in) { return clutch::select(in.x[0], in.n[0] != 0, in.x[1]); }, {value.toDouble() != 0 ? 1 : 0});
  } else if (at::isIntegralType(self.scalar_type(), false)) {
    apply(target, {masked, target}, [](const In& in) { return clutch::select(in.x[0], in.n[0], in.x[1]); }, {at::Scalar(value.toLong())});
  } else {
    apply(target, {masked, target}, [](const In& in) { return clutch::select(in.x[0], in.n[0], in.x[1]); }, {value.toDouble()});
  }
  return self;
}

using formulas::at_least, formulas::at_most;
bool is_nan(const std::optional<at::Scalar>& bound) { return bound.has_value() && !bound->isComplex() && std::isnan(bound->toDouble()); }

at::Tensor& clamp_out(const at::Tensor& self, const std::optional<at::Scalar>& low, const std::optional<at::Scalar>& high, at::Tensor& out) {
  TORCH_CHECK(low.has_value() || high.has_value(), "torch.clamp: At least one of 'min' or 'max' must not be None");
  if (is_nan(low) || is_nan(high)) return out.fill_(std::nan(""));
  auto iterator = at::TensorIteratorConfig().check_all_same_dtype(false).add_output(out).add_const_input(self).build();
  if (!high.has_value())
    pointwise_as_they_are(iterator, [](const In& in) { return at_least(in.x[0], in.n[0]); }, {*low});
  else if (!low.has_value())
    pointwise_as_they_are(iterator, [](const In& in) { return at_most(in.x[0], in.n[0]); }, {*high});
  else
    pointwise_as_they_are(iterator, [](const In& in) { return at_most(at_least(in.x[0], in.n[0]), in.n[1]); }, {*low, *high});
  return out;
}
at::Tensor& clamp_min_out(const at::Tensor& self, const at::Scalar& low, at::Tensor& out) { return clamp_out(self, low, std::nullopt, out); }
at::Tensor& clamp_max_out(const at::Tensor& self, const at::Scalar& high, at::Tensor& out) { return clamp_out(self, std::nullopt, high, out); }
at::Tensor& clamp_min_tensor_out(const at::Tensor& self, const at::Tensor& low, at::Tensor& out) {
  return binary(out, self, low, [](const In& in) { return clutch::max(in.x[0], in.x[1]); });
}
at::Tensor& clamp_max_tensor_out(const at::Tensor& self, const at::Tensor& high, at::Tensor& out) {
  return binary(out, self, high, [](const In& in) { return clutch::min(in.x[0], in.x[1]); });
}
at::Tensor& clamp_tensor_out(const at::Tensor& self, const std::optional<at::Tensor>& low, const std::optional<at::Tensor>& high, at::Tensor& out) {
  const bool has_low = low.has_value() && low->defined(), has_high = high.has_value() && high->defined();
  TORCH_CHECK(has_low || has_high, "torch.clamp: At least one of 'min' or 'max' must not be None");
  if (!has_high) return clamp_min_tensor_out(self, *low, out);
  if (!has_low) return clamp_max_tensor_out(self, *high, out);
  return ternary(out, self, *low, *high, [](const In& in) { return clutch::min(clutch::max(in.x[0], in.x[1]), in.x[2]); });
}

}  // namespace

void add_comparisons(OpTable& table) {
  table.family("comparisons and choices");
  table.add<"eq.Tensor_out", &equality_out<equal, equal_complex>>("eq");
  table.add<"eq.Scalar_out", &equality_scalar_out<equal, equal_complex>>("eq");
  table.add<"ne.Tensor_out", &equality_out<not_equal, not_equal_complex>>("ne");
  table.add<"ne.Scalar_out", &equality_scalar_out<not_equal, not_equal_complex>>("ne");
  table.add<"lt.Tensor_out", &compare_out<less>>("lt");
  table.add<"lt.Scalar_out", &compare_scalar_out<less>>("lt");
  table.add<"le.Tensor_out", &compare_out<less_equal>>("le");
  table.add<"le.Scalar_out", &compare_scalar_out<less_equal>>("le");
  table.add<"gt.Tensor_out", &compare_out<greater>>("gt");
  table.add<"gt.Scalar_out", &compare_scalar_out<greater>>("gt");
  table.add<"ge.Tensor_out", &compare_out<greater_equal>>("ge");
  table.add<"ge.Scalar_out", &compare_scalar_out<greater_equal>>("ge");
  table.add<"logical_and.out", &logic_out<both>>("logical_and");
  table.add<"logical_or.out", &logic_out<either>>("logical_or");
  table.add<"logical_xor.out", &logic_out<one_of_both>>("logical_xor");
  table.add<"logical_not.out", &logical_not_out>("logical_not");
  table.add<"bitwise_and.Tensor_out", &bits_out<bits_and>>("bitwise_and");
  table.add<"bitwise_or.Tensor_out", &bits_out<bits_or>>("bitwise_or");
  table.add<"bitwise_xor.Tensor_out", &bits_out<bits_xor>>("bitwise_xor");
  table.add<"bitwise_not.out", &bitwise_not_out>("bitwise_not");
  table.add<"bitwise_left_shift.Tensor_out", &shift_out<shift_left>>("map");
  table.add<"bitwise_right_shift.Tensor_out", &shift_out<shift_right>>("map");
  table.add<"__lshift__.Tensor", &shift<shift_left>>("map");
  table.add<"__rshift__.Tensor", &shift<shift_right>>("map");
  table.add<"__lshift__.Scalar", &shift_by_number<shift_left>>("map");
  table.add<"__rshift__.Scalar", &shift_by_number<shift_right>>("map");
  table.add<"__ilshift__.Tensor", &shift_<shift_left>>("map");
  table.add<"__irshift__.Tensor", &shift_<shift_right>>("map");
  table.add<"__ilshift__.Scalar", &shift_by_number_<shift_left>>("map");
  table.add<"__irshift__.Scalar", &shift_by_number_<shift_right>>("map");
  table.add<"isposinf.out", &test_out<is_positive_infinity>>("isinf");
  table.add<"isneginf.out", &test_out<is_negative_infinity>>("isinf");
  table.add<"signbit.out", &test_out<sign_bit>>("map of OpenCL's copysign");
  table.add<"isnan", &isnan>("isnan");
  table.add<"where.self", &where>("where");
  table.add<"where.self_out", &where_out>("where");
  table.add<"masked_fill_.Scalar", &masked_fill_scalar_>("where");
  table.add<"masked_fill_.Tensor", &masked_fill_tensor_>("where");
  table.add<"clamp.out", &clamp_out>("clamp");
  table.add<"clamp.Tensor_out", &clamp_tensor_out>("clamp");
  table.add<"clamp_min.out", &clamp_min_out>("clamp");
  table.add<"clamp_min.Tensor_out", &clamp_min_tensor_out>("maximum");
  table.add<"clamp_max.out", &clamp_max_out>("clamp");
  table.add<"clamp_max.Tensor_out", &clamp_max_tensor_out>("minimum");
}

}  // namespace torch_clutch
