// SPDX-License-Identifier: Apache-2.0
// New tensors, and tensors of numbers that their places give.
#include "ops/table.hpp"
#include "ops/traced.hpp"
#include "runtime/allocator.hpp"
#include "runtime/convert.hpp"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <clutch/ops/fill.hpp>

#include <cmath>

namespace torch_clutch {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

void check_options(std::optional<at::Layout> layout, std::optional<bool> pinned) {
  TORCH_CHECK(c10::layout_or_default(layout) == at::kStrided, "clutch: tensors are strided");
  TORCH_CHECK(!c10::pinned_memory_or_default(pinned), "Only dense CPU tensors can be pinned");
}

at::Tensor filled(at::Tensor made) {
  if (fills_memory()) at::native::fill_empty_deterministic_(made);
  return made;
}

at::Tensor empty(c10::IntArrayRef sizes, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout, std::optional<at::Device> device,
                 std::optional<bool> pinned, std::optional<at::MemoryFormat> format) {
  check_options(layout, pinned);
  const CurrentDevice current(c10::device_or_default(device).index());
  return filled(at::detail::empty_generic(sizes, &allocator(), kKeys, c10::dtype_or_default(dtype), format));
}
at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                         std::optional<at::Device> device, std::optional<bool> pinned) {
  check_options(layout, pinned);
  const CurrentDevice current(c10::device_or_default(device).index());
  return filled(at::detail::empty_strided_generic(sizes, strides, &allocator(), kKeys, c10::dtype_or_default(dtype)));
}

bool whole(const at::Scalar& number) { return number.isIntegral(true); }
constexpr double kWholeDouble = 9007199254740992.0;

at::Tensor& arange_out(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::Tensor& out) {
  const bool integers = at::isIntegralType(out.scalar_type(), false) && whole(start) && whole(end) && whole(step);
  const double first = start.toDouble(), last = end.toDouble(), by = step.toDouble();
  TORCH_CHECK(by != 0, "step must be nonzero");
  TORCH_CHECK(std::isfinite(first) && std::isfinite(last), "unsupported range: ", first, " -> ", last);
  TORCH_CHECK(by > 0 ? last >= first : last <= first, "upper bound and lower bound inconsistent with step sign");
  if (std::abs(first) > kWholeDouble || std::abs(last) > kWholeDouble) refuse("bounds past 2^53");
  const double exact = (last - first) / by;
  TORCH_CHECK(exact <= static_cast<double>(clutch::kMaxNumel), "invalid size, possible overflow?");
  const auto count = static_cast<std::int64_t>(std::ceil(exact));
  if (!integers && at::isIntegralType(out.scalar_type(), false)) refuse("integers of floating bounds");
  if (out.numel() != count) at::native::resize_output(out, {count});
  if (count > 0) clutch::arange_(wrap(out), first, by);
  return out;
}

at::Tensor& logspace_out(const at::Scalar& start, const at::Scalar& end, int64_t steps, double base, at::Tensor& out) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  at::native::resize_output(out, {steps});
  if (!at::isFloatingType(out.scalar_type())) refuse("logspace of integers");
  if (steps == 0) return out;
  const at::Tensor exponents = at::linspace(start, end, steps, out.options());
  return at::pow_out(out, base, exponents);
}

// Numbers: first, step, last, count - 1. The second half counts from the end.
template <clutch::DType kDType>
constexpr auto line = [](const In& in) {
  const Expr i = clutch::cast(clutch::position(0), kDType);
  return clutch::select(i + i < in.n[3], clutch::fma(i, in.n[1], in.n[0]), clutch::fma(i - in.n[3], in.n[1], in.n[2]));
};
at::Tensor& linspace_out(const at::Scalar& start, const at::Scalar& end, int64_t steps, at::Tensor& out) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  if (out.numel() != steps) at::native::resize_output(out, {steps});
  if (steps == 0) return out;
  if (steps == 1) return out.fill_(start);
  if (!at::isFloatingType(out.scalar_type()) || start.isComplex() || end.isComplex()) refuse("linspace of other than real floating numbers");
  const double first = start.toDouble(), last = end.toDouble(), count = static_cast<double>(steps - 1);
  const Numbers numbers = {first, (last - first) / count, last, count};
  if (out.scalar_type() == at::kDouble)
    apply(out, {}, line<clutch::DType::f64>, numbers);
  else
    apply(out, {}, line<clutch::DType::f32>, numbers);
  return out;
}

constexpr auto diagonal = [](const In&) { return clutch::cast(clutch::position(0) == clutch::position(1), clutch::DType::i32); };
at::Tensor& eye_out(int64_t rows, int64_t columns, at::Tensor& out) {
  TORCH_CHECK(rows >= 0, "n must be greater or equal to 0, got ", rows);
  TORCH_CHECK(columns >= 0, "m must be greater or equal to 0, got ", columns);
  at::native::resize_output(out, {rows, columns});
  apply(out, {}, diagonal);
  return out;
}
at::Tensor& eye_square_out(int64_t rows, at::Tensor& out) { return torch_clutch::eye_out(rows, rows, out); }

}  // namespace

void add_factories(OpTable& table) {
  table.family("factories");
  table.add<"empty.memory_format", &empty>("empty");
  table.add<"empty_strided", &empty_strided>("empty");
  table.add<"arange.start_out", &arange_out>("arange_");
  table.add<"linspace.out", &linspace_out>("map with position()");
  table.add<"logspace.out", &logspace_out>("map with position(), pow");
  table.add<"eye.m_out", &eye_out>("map with position()");
  table.add<"eye.out", &eye_square_out>("map with position()");
}

}  // namespace torch_clutch
