// SPDX-License-Identifier: Apache-2.0
// _foreach_ ops, which optimizers call on all parameters: one launch for the whole list, with the bits of one call for each tensor. Lists that are not of one
// floating dtype, or of shapes that differ, take PyTorch's loop over tensors.
#include "ops/formulas.hpp"
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>
#include <ATen/ops/_foreach_abs_native.h>
#include <ATen/ops/_foreach_add_native.h>
#include <ATen/ops/_foreach_addcdiv_native.h>
#include <ATen/ops/_foreach_addcmul_native.h>
#include <ATen/ops/_foreach_ceil_native.h>
#include <ATen/ops/_foreach_clamp_max_native.h>
#include <ATen/ops/_foreach_clamp_min_native.h>
#include <ATen/ops/_foreach_copy_native.h>
#include <ATen/ops/_foreach_cos_native.h>
#include <ATen/ops/_foreach_div_native.h>
#include <ATen/ops/_foreach_erf_native.h>
#include <ATen/ops/_foreach_exp_native.h>
#include <ATen/ops/_foreach_expm1_native.h>
#include <ATen/ops/_foreach_floor_native.h>
#include <ATen/ops/_foreach_frac_native.h>
#include <ATen/ops/_foreach_lerp_native.h>
#include <ATen/ops/_foreach_log1p_native.h>
#include <ATen/ops/_foreach_log2_native.h>
#include <ATen/ops/_foreach_log_native.h>
#include <ATen/ops/_foreach_maximum_native.h>
#include <ATen/ops/_foreach_minimum_native.h>
#include <ATen/ops/_foreach_mul_native.h>
#include <ATen/ops/_foreach_neg_native.h>
#include <ATen/ops/_foreach_norm_native.h>
#include <ATen/ops/_foreach_reciprocal_native.h>
#include <ATen/ops/_foreach_round_native.h>
#include <ATen/ops/_foreach_rsqrt_native.h>
#include <ATen/ops/_foreach_sigmoid_native.h>
#include <ATen/ops/_foreach_sign_native.h>
#include <ATen/ops/_foreach_sin_native.h>
#include <ATen/ops/_foreach_sqrt_native.h>
#include <ATen/ops/_foreach_sub_native.h>
#include <ATen/ops/_foreach_tanh_native.h>
#include <ATen/ops/_foreach_trunc_native.h>
#include <ATen/ops/_foreach_zero_native.h>
#include <clutch/foreach.hpp>
#include <clutch/ops/cat.hpp>
#include <clutch/ops/optim.hpp>

#include <cmath>
#include <limits>
#include <type_traits>

namespace torch_clutch {
namespace {

using Lists = std::initializer_list<at::TensorList>;
using List = std::vector<clutch::Tensor>;

constexpr std::size_t kLeast = 2;  // tensors

/// True if one launch can do it.
bool alike(Lists lists) {
  const at::TensorList self = *lists.begin();
  if (self.size() < kLeast || !at::isFloatingType(self[0].scalar_type())) return false;
  for (const at::TensorList& list : lists) {
    if (list.size() != self.size()) return false;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const at::Tensor& t = list[i];
      if (t.device() != self[0].device() || t.scalar_type() != self[0].scalar_type() || t.numel() == 0 || t.dim() > clutch::kMaxRank ||
          t.sizes() != self[i].sizes())
        return false;
    }
  }
  return true;
}
/// False for numbers that have no kernel, and for those that some of PyTorch's loops refuse.
bool real(const at::Scalar& number) { return !number.isComplex() && !number.isBoolean(); }
bool equal(at::ArrayRef<at::Scalar> numbers) {
  for (const at::Scalar& number : numbers)
    if (!real(number) || number.toDouble() != numbers[0].toDouble()) return false;
  return !numbers.empty();
}

template <class F>
void run(at::TensorList out, Lists inputs, F formula, Numbers numbers) {
  std::vector<List> wrapped;
  for (const at::TensorList& list : inputs) wrapped.push_back(wrap(list));
  std::vector<clutch::Tensor> first;
  for (const List& list : wrapped) first.push_back(list[0]);
  const std::vector<std::span<const clutch::Tensor>> spans(wrapped.begin(), wrapped.end());
  const List outs = wrap(out);
  const std::span<const clutch::Tensor> of_out(outs);
  clutch::foreach_map_out(std::span(&of_out, 1), traced(formula, first, numbers), spans);
}
template <class F>
std::vector<at::Tensor> made(Lists inputs, F formula, Numbers numbers) {
  std::vector<at::Tensor> out;
  for (const at::Tensor& t : *inputs.begin()) out.push_back(at::empty_like(t));
  run(out, inputs, formula, numbers);
  return out;
}

// The formulas, each with the roundings of the op on one tensor.
constexpr auto kAddNumber = [](const In& in) { return in.x[0] + in.n[0]; };
constexpr auto kSubNumber = [](const In& in) { return in.x[0] - in.n[0]; };
constexpr auto kMulNumber = [](const In& in) { return in.x[0] * in.n[0]; };
constexpr auto kDivNumber = [](const In& in) { return in.x[0] / in.n[0]; };
constexpr auto kAdd = [](const In& in) { return in.x[0] + in.x[1]; };
constexpr auto kAddScaled = [](const In& in) { return clutch::fma(in.n[0], in.x[1], in.x[0]); };
constexpr auto kMul = [](const In& in) { return in.x[0] * in.x[1]; };
constexpr auto kDiv = [](const In& in) { return in.x[0] / in.x[1]; };
constexpr auto kLerp = [](const In& in) { return clutch::lerp(in.x[0], in.x[1], in.n[0]); };
constexpr auto kAddcmul = [](const In& in) { return clutch::fma(in.n[0], in.x[1] * in.x[2], in.x[0]); };
constexpr auto kAddcmulOne = [](const In& in) { return clutch::fma(in.x[1], in.x[2], in.x[0]); };
constexpr auto kAddcdivOne = [](const In& in) { return in.x[0] + in.x[1] / in.x[2]; };
constexpr auto kAddcdiv = [](const In& in) { return clutch::fma(in.n[0], in.x[1] / in.x[2], in.x[0]); };
constexpr auto kSub = [](const In& in) { return in.x[0] - in.x[1]; };
constexpr auto kMax = [](const In& in) { return clutch::max(in.x[0], in.x[1]); };
constexpr auto kMin = [](const In& in) { return clutch::min(in.x[0], in.x[1]); };
constexpr auto kAtLeast = [](const In& in) { return formulas::at_least(in.x[0], in.n[0]); };
constexpr auto kAtMost = [](const In& in) { return formulas::at_most(in.x[0], in.n[0]); };

bool plain(const at::Scalar& number) { return real(number) && !std::isnan(number.toDouble()); }

/// One launch: into the first list where the loop `kSlow` returns nothing, into new tensors otherwise.
template <class Result, class F>
Result launch(Lists inputs, F formula, Numbers numbers) {
  if constexpr (std::is_void_v<Result>)
    run(*inputs.begin(), inputs, formula, numbers);
  else
    return made(inputs, formula, numbers);
}

/// The ops of lists, in place and not; `kSlow` is PyTorch's loop. Of a list:
template <auto kFormula, auto kSlow>
auto unary(at::TensorList self) -> decltype(kSlow(self)) {
  if (!alike({self})) return kSlow(self);
  return launch<decltype(kSlow(self))>({self}, kFormula, {});
}
/// Of a list and a number.
template <auto kFormula, auto kSlow>
auto number(at::TensorList self, const at::Scalar& value) -> decltype(kSlow(self, value)) {
  if (!plain(value) || !alike({self})) return kSlow(self, value);
  return launch<decltype(kSlow(self, value))>({self}, kFormula, {value.toDouble()});
}
/// Of a list and a number for each tensor: one in all steps but those of parameters that joined later.
template <auto kFormula, auto kSlow>
auto numbers(at::TensorList self, at::ArrayRef<at::Scalar> values) -> decltype(kSlow(self, values)) {
  if (values.size() != self.size() || !equal(values) || !plain(values[0]) || !alike({self})) return kSlow(self, values);
  return launch<decltype(kSlow(self, values))>({self}, kFormula, {values[0].toDouble()});
}
/// Of two lists.
template <auto kFormula, auto kSlow>
auto list(at::TensorList self, at::TensorList other) -> decltype(kSlow(self, other)) {
  if (!alike({self, other})) return kSlow(self, other);
  return launch<decltype(kSlow(self, other))>({self, other}, kFormula, {});
}
/// self + alpha other, and self - alpha other.
template <auto kOne, int kSign, auto kSlow>
auto scaled_list(at::TensorList self, at::TensorList other, const at::Scalar& alpha) -> decltype(kSlow(self, other, alpha)) {
  using Result = decltype(kSlow(self, other, alpha));
  if (!real(alpha) || !alike({self, other})) return kSlow(self, other, alpha);
  return alpha.toDouble() == 1 ? launch<Result>({self, other}, kOne, {}) : launch<Result>({self, other}, kAddScaled, {kSign * alpha.toDouble()});
}
template <auto kSlow>
auto lerp(at::TensorList self, at::TensorList end, const at::Scalar& weight) -> decltype(kSlow(self, end, weight)) {
  if (weight.isComplex() || !alike({self, end})) return kSlow(self, end, weight);
  return launch<decltype(kSlow(self, end, weight))>({self, end}, kLerp, {weight.toDouble()});
}
/// self + value (a b), or a / b.
template <auto kFormula, auto kOne, auto kSlow>
auto fused(at::TensorList self, at::TensorList a, at::TensorList b, const at::Scalar& value) -> decltype(kSlow(self, a, b, value)) {
  using Result = decltype(kSlow(self, a, b, value));
  if (value.isComplex() || !alike({self, a, b})) return kSlow(self, a, b, value);
  return value.toDouble() == 1 ? launch<Result>({self, a, b}, kOne, {}) : launch<Result>({self, a, b}, kFormula, {value.toDouble()});
}
template <auto kFormula, auto kOne, auto kSlow>
void fused_numbers_(at::TensorList self, at::TensorList a, at::TensorList b, at::ArrayRef<at::Scalar> values) {
  if (values.size() != self.size() || !equal(values) || !alike({self, a, b})) return kSlow(self, a, b, values);
  values[0].toDouble() == 1 ? run(self, {self, a, b}, kOne, {}) : run(self, {self, a, b}, kFormula, {values[0].toDouble()});
}

void mul_tensor_(at::TensorList self, const at::Tensor& other) {
  const bool one =
      other.numel() == 1 && other.dim() == 0 && !self.empty() && other.device() == self[0].device() && other.scalar_type() == self[0].scalar_type();
  if (!one || !alike({self})) return at::native::foreach_tensor_mul_tensor_kernel_slow_(self, other);
  const List params = wrap(self), factors(self.size(), wrap(other.reshape({1})));
  const std::span<const clutch::Tensor> inputs[] = {params, factors};
  const clutch::Tensor first[] = {params[0], factors[0]};
  clutch::foreach_map_out(std::span(&inputs[0], 1), traced(kMul, first), inputs);
}
void copy_(at::TensorList self, at::TensorList source, bool non_blocking) {
  if (!alike({self, source})) return at::native::foreach_tensor_copy_list_kernel_slow_(self, source, non_blocking);
  clutch::foreach_copy_(wrap(self), wrap(source));
}
void zero_(at::TensorList self) {
  if (!alike({self})) return at::native::foreach_tensor_zero_slow_(self);
  run(self, {self}, [](const In& in) { return clutch::cast(Expr(0.0), in.x[0].dtype()); }, {});
}

std::vector<at::Tensor> norms(at::TensorList self, const at::Scalar& order, std::optional<at::ScalarType> dtype) {
  using clutch::optim::NormType;
  const double p = order.isComplex() ? 0 : order.toDouble();
  const bool known = p == 2 || p == 1 || p == std::numeric_limits<double>::infinity();
  if (!known || !alike({self}) || (dtype && *dtype != self[0].scalar_type() && *dtype != at::kFloat) || (dtype && self[0].scalar_type() == at::kDouble))
    return at::native::foreach_tensor_norm_slow(self, order, dtype);
  List all;
  for (const at::Tensor& t : self) all.push_back(wrap_flat(t.is_non_overlapping_and_dense() ? t : t.contiguous()));
  const NormType type = p == 2 ? NormType::two : p == 1 ? NormType::one : NormType::inf;
  return unwrap(clutch::optim::grad_norms(all, {.norm_type = type})).to(dtype.value_or(self[0].scalar_type())).unbind();
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OpTable table(library);
  table.family("lists of tensors");
  constexpr std::string_view kMap = "foreach_map";
  namespace n = at::native;
  table.add<"_foreach_add_.Scalar", &number<kAddNumber, &n::foreach_tensor_add_scalar_kernel_slow_>>(kMap);
  table.add<"_foreach_add.Scalar", &number<kAddNumber, &n::foreach_tensor_add_scalar_kernel_slow>>(kMap);
  table.add<"_foreach_add_.ScalarList", &numbers<kAddNumber, &n::foreach_tensor_add_scalarlist_kernel_slow_>>(kMap);
  table.add<"_foreach_add.ScalarList", &numbers<kAddNumber, &n::foreach_tensor_add_scalarlist_kernel_slow>>(kMap);
  table.add<"_foreach_sub_.Scalar", &number<kSubNumber, &n::foreach_tensor_sub_scalar_kernel_slow_>>(kMap);
  table.add<"_foreach_sub.Scalar", &number<kSubNumber, &n::foreach_tensor_sub_scalar_kernel_slow>>(kMap);
  table.add<"_foreach_sub_.ScalarList", &numbers<kSubNumber, &n::foreach_tensor_sub_scalarlist_kernel_slow_>>(kMap);
  table.add<"_foreach_sub.ScalarList", &numbers<kSubNumber, &n::foreach_tensor_sub_scalarlist_kernel_slow>>(kMap);
  table.add<"_foreach_mul_.Scalar", &number<kMulNumber, &n::foreach_tensor_mul_scalar_kernel_slow_>>(kMap);
  table.add<"_foreach_mul.Scalar", &number<kMulNumber, &n::foreach_tensor_mul_scalar_kernel_slow>>(kMap);
  table.add<"_foreach_mul_.ScalarList", &numbers<kMulNumber, &n::foreach_tensor_mul_scalarlist_kernel_slow_>>(kMap);
  table.add<"_foreach_mul.ScalarList", &numbers<kMulNumber, &n::foreach_tensor_mul_scalarlist_kernel_slow>>(kMap);
  table.add<"_foreach_div_.Scalar", &number<kDivNumber, &n::foreach_tensor_div_scalar_kernel_slow_>>(kMap);
  table.add<"_foreach_div.Scalar", &number<kDivNumber, &n::foreach_tensor_div_scalar_kernel_slow>>(kMap);
  table.add<"_foreach_div_.ScalarList", &numbers<kDivNumber, &n::foreach_tensor_div_scalarlist_kernel_slow_>>(kMap);
  table.add<"_foreach_div.ScalarList", &numbers<kDivNumber, &n::foreach_tensor_div_scalarlist_kernel_slow>>(kMap);
  table.add<"_foreach_maximum_.Scalar", &number<kAtLeast, &n::foreach_tensor_clamp_min_scalar_kernel_slow_>>(kMap);
  table.add<"_foreach_maximum.Scalar", &number<kAtLeast, &n::foreach_tensor_clamp_min_scalar_kernel_slow>>(kMap);
  table.add<"_foreach_maximum_.List", &list<kMax, &n::foreach_tensor_clamp_min_list_kernel_slow_>>(kMap);
  table.add<"_foreach_maximum.List", &list<kMax, &n::foreach_tensor_clamp_min_list_kernel_slow>>(kMap);
  table.add<"_foreach_minimum_.Scalar", &number<kAtMost, &n::foreach_tensor_clamp_max_scalar_kernel_slow_>>(kMap);
  table.add<"_foreach_minimum.Scalar", &number<kAtMost, &n::foreach_tensor_clamp_max_scalar_kernel_slow>>(kMap);
  table.add<"_foreach_minimum_.List", &list<kMin, &n::foreach_tensor_clamp_max_list_kernel_slow_>>(kMap);
  table.add<"_foreach_minimum.List", &list<kMin, &n::foreach_tensor_clamp_max_list_kernel_slow>>(kMap);
  table.add<"_foreach_clamp_min_.Scalar", &number<kAtLeast, &n::foreach_tensor_clamp_min_scalar_kernel_slow_>>(kMap);
  table.add<"_foreach_clamp_min.Scalar", &number<kAtLeast, &n::foreach_tensor_clamp_min_scalar_kernel_slow>>(kMap);
  table.add<"_foreach_clamp_min_.List", &list<kMax, &n::foreach_tensor_clamp_min_list_kernel_slow_>>(kMap);
  table.add<"_foreach_clamp_min.List", &list<kMax, &n::foreach_tensor_clamp_min_list_kernel_slow>>(kMap);
  table.add<"_foreach_clamp_max_.Scalar", &number<kAtMost, &n::foreach_tensor_clamp_max_scalar_kernel_slow_>>(kMap);
  table.add<"_foreach_clamp_max.Scalar", &number<kAtMost, &n::foreach_tensor_clamp_max_scalar_kernel_slow>>(kMap);
  table.add<"_foreach_clamp_max_.List", &list<kMin, &n::foreach_tensor_clamp_max_list_kernel_slow_>>(kMap);
  table.add<"_foreach_clamp_max.List", &list<kMin, &n::foreach_tensor_clamp_max_list_kernel_slow>>(kMap);
  table.add<"_foreach_mul_.List", &list<kMul, &n::foreach_tensor_mul_list_kernel_slow_>>(kMap);
  table.add<"_foreach_mul.List", &list<kMul, &n::foreach_tensor_mul_list_kernel_slow>>(kMap);
  table.add<"_foreach_div_.List", &list<kDiv, &n::foreach_tensor_div_list_kernel_slow_>>(kMap);
  table.add<"_foreach_div.List", &list<kDiv, &n::foreach_tensor_div_list_kernel_slow>>(kMap);
  table.add<"_foreach_add_.List", &scaled_list<kAdd, 1, &n::foreach_tensor_add_list_kernel_slow_>>(kMap);
  table.add<"_foreach_add.List", &scaled_list<kAdd, 1, &n::foreach_tensor_add_list_kernel_slow>>(kMap);
  table.add<"_foreach_sub_.List", &scaled_list<kSub, -1, &n::foreach_tensor_sub_list_kernel_slow_>>(kMap);
  table.add<"_foreach_sub.List", &scaled_list<kSub, -1, &n::foreach_tensor_sub_list_kernel_slow>>(kMap);
  table.add<"_foreach_mul_.Tensor", &mul_tensor_>(kMap);
  table.add<"_foreach_lerp_.Scalar", &lerp<&n::foreach_tensor_lerp_list_kernel_slow_>>(kMap);
  table.add<"_foreach_lerp.Scalar", &lerp<&n::foreach_tensor_lerp_list_kernel_slow>>(kMap);
  table.add<"_foreach_addcmul_.Scalar", &fused<kAddcmul, kAddcmulOne, &n::foreach_tensor_addcmul_scalar_slow_>>(kMap);
  table.add<"_foreach_addcmul.Scalar", &fused<kAddcmul, kAddcmulOne, &n::foreach_tensor_addcmul_scalar_slow>>(kMap);
  table.add<"_foreach_addcmul_.ScalarList", &fused_numbers_<kAddcmul, kAddcmulOne, &n::foreach_tensor_addcmul_scalarlist_slow_>>(kMap);
  table.add<"_foreach_addcdiv_.Scalar", &fused<kAddcdiv, kAddcdivOne, &n::foreach_tensor_addcdiv_scalar_slow_>>(kMap);
  table.add<"_foreach_addcdiv.Scalar", &fused<kAddcdiv, kAddcdivOne, &n::foreach_tensor_addcdiv_scalar_slow>>(kMap);
  table.add<"_foreach_addcdiv_.ScalarList", &fused_numbers_<kAddcdiv, kAddcdivOne, &n::foreach_tensor_addcdiv_scalarlist_slow_>>(kMap);
  table.add<"_foreach_abs_", &unary<formulas::magnitude, &n::foreach_tensor_abs_slow_>>(kMap);
  table.add<"_foreach_abs", &unary<formulas::magnitude, &n::foreach_tensor_abs_slow>>(kMap);
  table.add<"_foreach_ceil_", &unary<formulas::upper, &n::foreach_tensor_ceil_slow_>>(kMap);
  table.add<"_foreach_ceil", &unary<formulas::upper, &n::foreach_tensor_ceil_slow>>(kMap);
  table.add<"_foreach_cos_", &unary<formulas::cosine, &n::foreach_tensor_cos_slow_>>(kMap);
  table.add<"_foreach_cos", &unary<formulas::cosine, &n::foreach_tensor_cos_slow>>(kMap);
  table.add<"_foreach_erf_", &unary<formulas::error_function, &n::foreach_tensor_erf_slow_>>(kMap);
  table.add<"_foreach_erf", &unary<formulas::error_function, &n::foreach_tensor_erf_slow>>(kMap);
  table.add<"_foreach_exp_", &unary<formulas::exponential, &n::foreach_tensor_exp_slow_>>(kMap);
  table.add<"_foreach_exp", &unary<formulas::exponential, &n::foreach_tensor_exp_slow>>(kMap);
  table.add<"_foreach_expm1_", &unary<formulas::exponential_less_1, &n::foreach_tensor_expm1_slow_>>(kMap);
  table.add<"_foreach_expm1", &unary<formulas::exponential_less_1, &n::foreach_tensor_expm1_slow>>(kMap);
  table.add<"_foreach_floor_", &unary<formulas::lower, &n::foreach_tensor_floor_slow_>>(kMap);
  table.add<"_foreach_floor", &unary<formulas::lower, &n::foreach_tensor_floor_slow>>(kMap);
  table.add<"_foreach_frac_", &unary<formulas::fraction, &n::foreach_tensor_frac_slow_>>(kMap);
  table.add<"_foreach_frac", &unary<formulas::fraction, &n::foreach_tensor_frac_slow>>(kMap);
  table.add<"_foreach_log_", &unary<formulas::logarithm, &n::foreach_tensor_log_slow_>>(kMap);
  table.add<"_foreach_log", &unary<formulas::logarithm, &n::foreach_tensor_log_slow>>(kMap);
  table.add<"_foreach_log1p_", &unary<formulas::logarithm_of_1, &n::foreach_tensor_log1p_slow_>>(kMap);
  table.add<"_foreach_log1p", &unary<formulas::logarithm_of_1, &n::foreach_tensor_log1p_slow>>(kMap);
  table.add<"_foreach_log2_", &unary<formulas::logarithm2, &n::foreach_tensor_log2_slow_>>(kMap);
  table.add<"_foreach_log2", &unary<formulas::logarithm2, &n::foreach_tensor_log2_slow>>(kMap);
  table.add<"_foreach_neg_", &unary<formulas::negated, &n::foreach_tensor_neg_slow_>>(kMap);
  table.add<"_foreach_neg", &unary<formulas::negated, &n::foreach_tensor_neg_slow>>(kMap);
  table.add<"_foreach_reciprocal_", &unary<formulas::inverse, &n::foreach_tensor_reciprocal_slow_>>(kMap);
  table.add<"_foreach_reciprocal", &unary<formulas::inverse, &n::foreach_tensor_reciprocal_slow>>(kMap);
  table.add<"_foreach_round_", &unary<formulas::nearest, &n::foreach_tensor_round_slow_>>(kMap);
  table.add<"_foreach_round", &unary<formulas::nearest, &n::foreach_tensor_round_slow>>(kMap);
  table.add<"_foreach_rsqrt_", &unary<formulas::inverse_root, &n::foreach_tensor_rsqrt_slow_>>(kMap);
  table.add<"_foreach_rsqrt", &unary<formulas::inverse_root, &n::foreach_tensor_rsqrt_slow>>(kMap);
  table.add<"_foreach_sigmoid_", &unary<formulas::logistic, &n::foreach_tensor_sigmoid_slow_>>(kMap);
  table.add<"_foreach_sigmoid", &unary<formulas::logistic, &n::foreach_tensor_sigmoid_slow>>(kMap);
  table.add<"_foreach_sign_", &unary<formulas::sign, &n::foreach_tensor_sign_slow_>>(kMap);
  table.add<"_foreach_sign", &unary<formulas::sign, &n::foreach_tensor_sign_slow>>(kMap);
  table.add<"_foreach_sin_", &unary<formulas::sine, &n::foreach_tensor_sin_slow_>>(kMap);
  table.add<"_foreach_sin", &unary<formulas::sine, &n::foreach_tensor_sin_slow>>(kMap);
  table.add<"_foreach_sqrt_", &unary<formulas::root, &n::foreach_tensor_sqrt_slow_>>(kMap);
  table.add<"_foreach_sqrt", &unary<formulas::root, &n::foreach_tensor_sqrt_slow>>(kMap);
  table.add<"_foreach_tanh_", &unary<formulas::hyperbolic_tangent, &n::foreach_tensor_tanh_slow_>>(kMap);
  table.add<"_foreach_tanh", &unary<formulas::hyperbolic_tangent, &n::foreach_tensor_tanh_slow>>(kMap);
  table.add<"_foreach_trunc_", &unary<formulas::truncated, &n::foreach_tensor_trunc_slow_>>(kMap);
  table.add<"_foreach_trunc", &unary<formulas::truncated, &n::foreach_tensor_trunc_slow>>(kMap);
  table.add<"_foreach_zero_", &zero_>(kMap);
  table.add<"_foreach_copy_", &copy_>("foreach_copy_");
  table.add<"_foreach_norm.Scalar", &norms>("optim::grad_norms");
}

}  // namespace torch_clutch
