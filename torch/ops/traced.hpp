// SPDX-License-Identifier: Apache-2.0
// Element-wise kernels as lambdas over clutch::Expr: traced once for each lambda and dtypes, and kept; numbers are arguments of the kernel and trace nothing.
#pragma once
#include "runtime/convert.hpp"

#include <ATen/ATen.h>
#include <ATen/TensorIterator.h>
#include <ATen/native/Resize.h>
#include <c10/core/Scalar.h>
#include <clutch/complex.hpp>
#include <clutch/ops/map.hpp>
#include <clutch/ops/reduce.hpp>

#include <initializer_list>
#include <span>
#include <type_traits>
#include <vector>

namespace torch_clutch {

using clutch::Expr;

/// What a lambda gets: values of the op's tensors, its numbers, tensors that it reads at computed places.
struct In {
  std::span<const Expr> x;
  std::span<const Expr> n;
  std::span<const clutch::Captured> c;
};

/// The same of complex numbers.
struct ComplexIn {
  std::span<const clutch::ComplexExpr> x;
  std::span<const clutch::ComplexExpr> n;
};

/// A number of a call: whole ones keep integers integer.
struct Number {
  double value = 0, imaginary = 0;
  bool whole = false, complex = false;
  Number(const at::Scalar& scalar);
  Number(double number) : value(number) {}
  Number(std::int64_t number) : value(static_cast<double>(number)), whole(true) {}
  Number(int number) : value(number), whole(true) {}
  clutch::ComplexExpr traced() const { return {clutch::param(value), complex ? clutch::param(imaginary) : Expr(0)}; }
};
using Numbers = std::initializer_list<Number>;

namespace detail {

struct Results {
  std::vector<Expr> all;
  Results(const Expr& one) : all{one} {}
  Results(std::vector<Expr> several) : all(std::move(several)) {}
};
using Formula = Results (*)(const In&);
template <class F>
Results call_formula(const In& in) {
  return Results(F{}(in));
}

void pointwise(at::TensorIteratorBase& iterator, Formula formula, std::span<const Number> numbers, std::optional<c10::ScalarType> compute);
using ComplexFormula = clutch::detail::ComplexResult (*)(const ComplexIn&);
template <class F>
clutch::detail::ComplexResult call_complex(const ComplexIn& in) {
  return F{}(in);
}
void complex_pointwise(at::TensorIteratorBase& iterator, ComplexFormula formula, std::span<const Number> numbers, c10::ScalarType compute);
clutch::ExprFunction function(Formula formula, std::span<const clutch::Tensor> inputs, std::span<const Number> numbers,
                              std::span<const clutch::Tensor> captured);

}  // namespace detail

/// The function of a lambda for these tensors. `captured` must have elements.
template <class F>
clutch::ExprFunction traced(F, std::span<const clutch::Tensor> inputs, Numbers numbers = {}, std::initializer_list<clutch::Tensor> captured = {}) {
  return detail::function(&detail::call_formula<F>, inputs, std::span(numbers.begin(), numbers.size()), std::span(captured.begin(), captured.size()));
}

/// One launch over the iterator's operands, which it has broadcast and, where it has a common dtype, are cast to it: PyTorch's promotion.
template <class F>
void pointwise(at::TensorIteratorBase& iterator, F, Numbers numbers = {}) {
  detail::pointwise(iterator, &detail::call_formula<F>, std::span(numbers.begin(), numbers.size()), iterator.common_dtype());
}
/// The same with another lambda for a complex common dtype.
template <class F, class G>
void pointwise(at::TensorIteratorBase& iterator, F f, G, Numbers numbers = {}) {
  if (!c10::isComplexType(iterator.common_dtype())) return pointwise(iterator, f, numbers);
  detail::complex_pointwise(iterator, &detail::call_complex<G>, std::span(numbers.begin(), numbers.size()), iterator.common_dtype());
}
/// The same without a cast: each operand is read in its own dtype.
template <class F>
void pointwise_as_they_are(at::TensorIteratorBase& iterator, F, Numbers numbers = {}) {
  detail::pointwise(iterator, &detail::call_formula<F>, std::span(numbers.begin(), numbers.size()), std::nullopt);
}

/// Without a common dtype, for a complex result: operands are cast to its dtype.
template <class F>
void complex_pointwise(at::TensorIteratorBase& iterator, F) {
  detail::complex_pointwise(iterator, &detail::call_complex<F>, {}, iterator.dtype(0));
}

/// One launch over tensors of clutch that broadcast to `out`; without inputs the lambda makes numbers of positions. Returns at once where out is empty.
template <class F>
void apply(const clutch::Tensor& out, std::initializer_list<clutch::Tensor> inputs, F f, Numbers numbers = {},
           std::initializer_list<clutch::Tensor> captured = {}) {
  if (out.numel() == 0) return;
  const std::span<const clutch::Tensor> given(inputs.begin(), inputs.size());
  const std::span<const clutch::Tensor> read = given.empty() ? std::span(&out, 1) : given;
  clutch::map_out(std::span(&out, 1), traced(f, read, numbers, captured), read);
}
template <class F>
void apply(const at::Tensor& out, std::initializer_list<clutch::Tensor> inputs, F f, Numbers numbers = {},
           std::initializer_list<clutch::Tensor> captured = {}) {
  apply(wrap(out), inputs, f, numbers, captured);
}

/// The usual iterators with the arguments of pointwise(): a lambda and numbers, or a lambda and another for complex numbers. `build` sets the iterator up over
/// `out`.
template <class Build, class... Arguments>
at::Tensor& over_iterator(at::Tensor& out, Build build, Arguments... arguments) {
  at::TensorIterator iterator;
  build(iterator);
  pointwise(iterator, arguments...);
  return out;
}
template <class F>
at::Tensor& unary(at::Tensor& out, const at::Tensor& self, F f, Numbers numbers = {}) {
  return over_iterator(
      out, [&](at::TensorIterator& iterator) { iterator.build_borrowing_unary_op(out, self); }, f, numbers);
}
template <class F, class G>
at::Tensor& unary(at::Tensor& out, const at::Tensor& self, F f, G of_complex) {
  return over_iterator(
      out, [&](at::TensorIterator& iterator) { iterator.build_borrowing_unary_op(out, self); }, f, of_complex);
}
template <class F>
at::Tensor& unary_float(at::Tensor& out, const at::Tensor& self, F f, Numbers numbers = {}) {
  return over_iterator(
      out, [&](at::TensorIterator& iterator) { iterator.build_borrowing_unary_float_op(out, self); }, f, numbers);
}
template <class F, class G>
at::Tensor& unary_float(at::Tensor& out, const at::Tensor& self, F f, G of_complex) {
  return over_iterator(
      out, [&](at::TensorIterator& iterator) { iterator.build_borrowing_unary_float_op(out, self); }, f, of_complex);
}
template <class F>
at::Tensor& binary(at::Tensor& out, const at::Tensor& self, const at::Tensor& other, F f, Numbers numbers = {}) {
  return over_iterator(
      out, [&](at::TensorIterator& iterator) { iterator.build_borrowing_binary_op(out, self, other); }, f, numbers);
}
template <class F, class G>
at::Tensor& binary(at::Tensor& out, const at::Tensor& self, const at::Tensor& other, F f, G of_complex) {
  return over_iterator(
      out, [&](at::TensorIterator& iterator) { iterator.build_borrowing_binary_op(out, self, other); }, f, of_complex);
}
template <class F>
at::Tensor& binary_float(at::Tensor& out, const at::Tensor& self, const at::Tensor& other, F f, Numbers numbers = {}) {
  return over_iterator(
      out, [&](at::TensorIterator& iterator) { iterator.build_borrowing_binary_float_op(out, self, other); }, f, numbers);
}
template <class F, class G>
at::Tensor& binary_float(at::Tensor& out, const at::Tensor& self, const at::Tensor& other, F f, G of_complex) {
  return over_iterator(
      out, [&](at::TensorIterator& iterator) { iterator.build_borrowing_binary_float_op(out, self, other); }, f, of_complex);
}
template <class F>
at::Tensor& comparison(at::Tensor& out, const at::Tensor& self, const at::Tensor& other, F f, Numbers numbers = {}) {
  return over_iterator(
      out, [&](at::TensorIterator& iterator) { iterator.build_borrowing_comparison_op(out, self, other); }, f, numbers);
}
template <class F, class G>
at::Tensor& comparison(at::Tensor& out, const at::Tensor& self, const at::Tensor& other, F f, G of_complex) {
  return over_iterator(
      out, [&](at::TensorIterator& iterator) { iterator.build_borrowing_comparison_op(out, self, other); }, f, of_complex);
}
template <class F>
at::Tensor& ternary(at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const at::Tensor& c, F f, Numbers numbers = {}) {
  at::TensorIterator iterator = at::TensorIteratorConfig()
                                    .add_output(out)
                                    .add_const_input(a)
                                    .add_const_input(b)
                                    .add_const_input(c)
                                    .allow_cpu_scalars(true)
                                    .promote_inputs_to_common_dtype(true)
                                    .cast_common_dtype_to_outputs(true)
                                    .enforce_safe_casting_to_output(true)
                                    .build();
  pointwise(iterator, f, numbers);
  return out;
}

/// out= of an op that makes its result: `out` takes its shape and its elements.
inline at::Tensor& deliver(const at::Tensor& made, at::Tensor& out) {
  at::native::resize_output(out, made.sizes());
  return out.copy_(made);
}

/// A traced value as a floating one.
inline Expr floating(const Expr& x) { return clutch::is_floating(x.dtype()) ? x : clutch::cast(x, clutch::DType::f32); }
/// A function of OpenCL C's own library, for what clutch has no word for.
inline Expr builtin(const char* text, std::initializer_list<Expr> arguments) {
  clutch::DType dtype = clutch::DType::f32;
  for (const Expr& argument : arguments)
    if (argument.dtype() == clutch::DType::f64) dtype = clutch::DType::f64;
  return clutch::opencl(dtype, {.value = text}, arguments);
}

}  // namespace torch_clutch
