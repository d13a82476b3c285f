// SPDX-License-Identifier: Apache-2.0
// _foreach_ ops, which optimizers call on all parameters: one launch for the whole list, with the bits of one call for each tensor. Lists that are not of one
// floating dtype, or of shapes that differ, take PyTorch's loop over tensors.
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>
#include <ATen/ops/_foreach_add_native.h>
#include <ATen/ops/_foreach_addcdiv_native.h>
#include <ATen/ops/_foreach_addcmul_native.h>
#include <ATen/ops/_foreach_div_native.h>
#include <ATen/ops/_foreach_lerp_native.h>
#include <ATen/ops/_foreach_mul_native.h>
#include <ATen/ops/_foreach_neg_native.h>
#include <ATen/ops/_foreach_norm_native.h>
#include <ATen/ops/_foreach_sqrt_native.h>
#include <ATen/ops/_foreach_sub_native.h>
#include <clutch/foreach.hpp>
#include <clutch/ops/optim.hpp>

#include <limits>

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
bool equal(at::ArrayRef<at::Scalar> numbers) {
  for (const at::Scalar& number : numbers)
    if (number.isComplex() || number.toDouble() != numbers[0].toDouble()) return false;
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
constexpr auto kAddcdiv = [](const In& in) { return clutch::fma(in.n[0], in.x[1] / in.x[2], in.x[0]); };
constexpr auto kSqrt = [](const In& in) { return clutch::sqrt(in.x[0]); };
constexpr auto kNeg = [](const In& in) { return -in.x[0]; };

/// The ops of a list and a number, in place and not. `kSlow...` are PyTorch's loops.
template <auto kFormula, auto kSlow_>
void number_(at::TensorList self, const at::Scalar& number) {
  if (number.isComplex() || !alike({self})) return kSlow_(self, number);
  run(self, {self}, kFormula, {number.toDouble()});
}
template <auto kFormula, auto kSlow>
std::vector<at::Tensor> number(at::TensorList self, const at::Scalar& number) {
  if (number.isComplex() || !alike({self})) return kSlow(self, number);
  return made({self}, kFormula, {number.toDouble()});
}
template <auto kFormula, auto kSlow_>
void list_(at::TensorList self, at::TensorList other) {
  if (!alike({self, other})) return kSlow_(self, other);
  run(self, {self, other}, kFormula, {});
}
template <auto kFormula, auto kSlow>
std::vector<at::Tensor> list(at::TensorList self, at::TensorList other) {
  if (!alike({self, other})) return kSlow(self, other);
  return made({self, other}, kFormula, {});
}
template <auto kFormula, auto kSlow_>
void unary_(at::TensorList self) {
  if (!alike({self})) return kSlow_(self);
  run(self, {self}, kFormula, {});
}
template <auto kFormula, auto kSlow>
std::vector<at::Tensor> unary(at::TensorList self) {
  if (!alike({self})) return kSlow(self);
  return made({self}, kFormula, {});
}

void add_list_(at::TensorList self, at::TensorList other, const at::Scalar& alpha) {
  if (alpha.isComplex() || !alike({self, other})) return at::native::foreach_tensor_add_list_kernel_slow_(self, other, alpha);
  alpha.toDouble() == 1 ? run(self, {self, other}, kAdd, {}) : run(self, {self, other}, kAddScaled, {alpha.toDouble()});
}
std::vector<at::Tensor> add_list(at::TensorList self, at::TensorList other, const at::Scalar& alpha) {
  if (alpha.isComplex() || !alike({self, other})) return at::native::foreach_tensor_add_list_kernel_slow(self, other, alpha);
  return alpha.toDouble() == 1 ? made({self, other}, kAdd, {}) : made({self, other}, kAddScaled, {alpha.toDouble()});
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
void lerp_(at::TensorList self, at::TensorList end, const at::Scalar& weight) {
  if (weight.isComplex() || !alike({self, end})) return at::native::foreach_tensor_lerp_list_kernel_slow_(self, end, weight);
  run(self, {self, end}, kLerp, {weight.toDouble()});
}
void addcmul_(at::TensorList self, at::TensorList a, at::TensorList b, const at::Scalar& value) {
  if (value.isComplex() || !alike({self, a, b})) return at::native::foreach_tensor_addcmul_scalar_slow_(self, a, b, value);
  value.toDouble() == 1 ? run(self, {self, a, b}, kAddcmulOne, {}) : run(self, {self, a, b}, kAddcmul, {value.toDouble()});
}
void addcdiv_(at::TensorList self, at::TensorList a, at::TensorList b, const at::Scalar& value) {
  if (value.isComplex() || !alike({self, a, b})) return at::native::foreach_tensor_addcdiv_scalar_slow_(self, a, b, value);
  run(self, {self, a, b}, kAddcdiv, {value.toDouble()});
}
// Numbers for each tensor are one in all steps but those of parameters that joined later.
void addcdiv_numbers_(at::TensorList self, at::TensorList a, at::TensorList b, at::ArrayRef<at::Scalar> values) {
  if (values.size() != self.size() || !equal(values) || !alike({self, a, b})) return at::native::foreach_tensor_addcdiv_scalarlist_slow_(self, a, b, values);
  run(self, {self, a, b}, kAddcdiv, {values[0].toDouble()});
}
void div_numbers_(at::TensorList self, at::ArrayRef<at::Scalar> values) {
  if (values.size() != self.size() || !equal(values) || !alike({self})) return at::native::foreach_tensor_div_scalarlist_kernel_slow_(self, values);
  run(self, {self}, kDivNumber, {values[0].toDouble()});
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
  table.add<"_foreach_add_.Scalar", &number_<kAddNumber, &n::foreach_tensor_add_scalar_kernel_slow_>>(kMap);
  table.add<"_foreach_add.Scalar", &number<kAddNumber, &n::foreach_tensor_add_scalar_kernel_slow>>(kMap);
  table.add<"_foreach_sub_.Scalar", &number_<kSubNumber, &n::foreach_tensor_sub_scalar_kernel_slow_>>(kMap);
  table.add<"_foreach_mul_.Scalar", &number_<kMulNumber, &n::foreach_tensor_mul_scalar_kernel_slow_>>(kMap);
  table.add<"_foreach_mul.Scalar", &number<kMulNumber, &n::foreach_tensor_mul_scalar_kernel_slow>>(kMap);
  table.add<"_foreach_div_.Scalar", &number_<kDivNumber, &n::foreach_tensor_div_scalar_kernel_slow_>>(kMap);
  table.add<"_foreach_div.Scalar", &number<kDivNumber, &n::foreach_tensor_div_scalar_kernel_slow>>(kMap);
  table.add<"_foreach_div_.ScalarList", &div_numbers_>(kMap);
  table.add<"_foreach_add_.List", &add_list_>(kMap);
  table.add<"_foreach_add.List", &add_list>(kMap);
  table.add<"_foreach_mul_.List", &list_<kMul, &n::foreach_tensor_mul_list_kernel_slow_>>(kMap);
  table.add<"_foreach_mul.List", &list<kMul, &n::foreach_tensor_mul_list_kernel_slow>>(kMap);
  table.add<"_foreach_mul_.Tensor", &mul_tensor_>(kMap);
  table.add<"_foreach_div_.List", &list_<kDiv, &n::foreach_tensor_div_list_kernel_slow_>>(kMap);
  table.add<"_foreach_div.List", &list<kDiv, &n::foreach_tensor_div_list_kernel_slow>>(kMap);
  table.add<"_foreach_lerp_.Scalar", &lerp_>(kMap);
  table.add<"_foreach_addcmul_.Scalar", &addcmul_>(kMap);
  table.add<"_foreach_addcdiv_.Scalar", &addcdiv_>(kMap);
  table.add<"_foreach_addcdiv_.ScalarList", &addcdiv_numbers_>(kMap);
  table.add<"_foreach_sqrt_", &unary_<kSqrt, &n::foreach_tensor_sqrt_slow_>>(kMap);
  table.add<"_foreach_sqrt", &unary<kSqrt, &n::foreach_tensor_sqrt_slow>>(kMap);
  table.add<"_foreach_norm.Scalar", &norms>("optim::grad_norms");
  table.add<"_foreach_neg_", &unary_<kNeg, &n::foreach_tensor_neg_slow_>>(kMap);
  table.add<"_foreach_neg", &unary<kNeg, &n::foreach_tensor_neg_slow>>(kMap);
}

}  // namespace torch_clutch
