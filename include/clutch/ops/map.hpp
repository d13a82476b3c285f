// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/expr.hpp>

#include <array>
#include <concepts>
#include <span>
#include <string>
#include <vector>

namespace clutch { inline namespace v0 {

struct MapOptions {
  DTypeList dtype = {};             ///< of the outputs, one each; empty: map_dtype()
  std::string implementation = {};  ///< forces a plan by name; empty: the first that accepts
};

/// Computes a traced function of broadcast tensors, element by element, in one launch.
/// Shapes: the inputs broadcast to the shape of every output. At most 24 tensors and positions in one call.
/// Dtypes: f64 f32 f16 bf16, integers and bool, mixed as they come; traced as f64, f32 (f16 and bf16, too), u64, i64
///   (u32, too), i32 (i8, u8, i16 and u16, too) and boolean. A rank-0 floating input counts only by its kind, as in
///   PyTorch. Results are cast once to the outputs' dtypes, by the rules of clutch::cast, but integers and f64 go to
///   f16 and bf16 by way of f32.
/// In place: an output may be any of the inputs, element for element; outputs must not overlap each other or captured
///   tensors.
/// Determinism: bit-equal on every device for equal dtypes (see clutch/expr.hpp), whatever the layout.
/// Scratch: none; tensors of many dimensions may be copied first where there are many tensors (said in the plan), and
///   on CPUs inputs that are adjacent along another dimension than the outputs.
/// Errors: invalid_shape, invalid_dtype, device_mismatch, invalid_overlap; invalid_argument for counts of tensors or
///   dtypes; not_supported for f64 without fp64 or an implementation that refuses.
/// Stream: never waits.
CLUTCH_API std::vector<Tensor> map(const ExprFunction& function, std::span<const Tensor> inputs,
                                   const MapOptions& options = {}, const Stream& stream = {});
CLUTCH_API void map_out(std::span<const Tensor> outputs, const ExprFunction& function, std::span<const Tensor> inputs,
                        const MapOptions& options = {}, const Stream& stream = {});

/// The dtype that map gives an output by default: what it was last cast to; else for floats and integers the inputs'
/// result type, if it is of that kind and traced alike, else the traced dtype. A cast to the dtype that an expression
/// is traced in already, such as to f32 of f16 inputs, is none: MapOptions::dtype asks for that.
CLUTCH_API DType map_dtype(const ExprFunction& function, int output, std::span<const Tensor> inputs);

/// The dtypes in which inputs are traced. Errors, in the name of `op`: invalid_dtype; invalid_argument for an undefined
/// tensor.
CLUTCH_API std::vector<DType> traced_dtypes(std::span<const Tensor> inputs, std::string_view op = "traced_dtypes");

namespace detail {
template <std::size_t kInputs, class F>
ExprFunction trace_over(F&& f, std::span<const Tensor> inputs, std::string_view op) {
  std::array<DType, kInputs> dtypes;
  std::vector<DType> traced = traced_dtypes(inputs, op);
  for (std::size_t i = 0; i < kInputs; ++i) dtypes[i] = traced[i];
  return trace(f, dtypes);
}
template <class F>
inline constexpr bool kIsLambda = !std::is_same_v<std::remove_cvref_t<F>, ExprFunction>;
}  // namespace detail

/// As above for a lambda, traced at each call: map(f, {x, y}, options, stream). Returns a Tensor, or a std::array of as
/// many as the lambda returns Exprs.
template <class F, std::size_t kInputs>
requires detail::kIsLambda<F>
auto map(F&& f, const Tensor (&inputs)[kInputs], const MapOptions& options = {}, const Stream& stream = {}) {
  std::vector<Tensor> results =
      map(detail::trace_over<kInputs>(f, inputs, "map"), std::span<const Tensor>(inputs), options, stream);
  constexpr std::size_t kOutputs = detail::kTracedOutputs<kInputs, std::remove_reference_t<F>>;
  if constexpr (kOutputs == 0) {
    return std::move(results[0]);
  } else {
    std::array<Tensor, kOutputs> list;
    for (std::size_t i = 0; i < kOutputs; ++i) list[i] = std::move(results[i]);
    return list;
  }
}
/// map(f, x, y). The inputs' type is deduced, so that map(f, {x}) is the form above for each compiler.
template <class F, std::same_as<Tensor>... T>
requires(detail::kIsLambda<F> && sizeof...(T) > 0) auto map(F&& f, const T&... x) {
  const Tensor inputs[] = {x...};
  return map(f, inputs);
}
template <class F, std::size_t kInputs>
requires detail::kIsLambda<F>
void map_out(const Tensor& output, F&& f, const Tensor (&inputs)[kInputs], const MapOptions& options = {},
             const Stream& stream = {}) {
  map_out(std::span(&output, 1), detail::trace_over<kInputs>(f, inputs, "map_out"), std::span<const Tensor>(inputs),
          options, stream);
}

/// Gradients of map's floating inputs, in order: the vector-Jacobian product of `function` with one gradient for each
/// of its floating outputs, summed to each input's shape. The derivative is made and kept at the first call for a
/// function.
/// Dtypes: each gradient has its input's dtype.
/// Errors: as map; invalid_argument for another count of gradients.
CLUTCH_API std::vector<Tensor> map_backward(std::span<const Tensor> grad_outputs, const ExprFunction& function,
                                            std::span<const Tensor> inputs, const Stream& stream = {});
/// Into the caller's tensors, one for each gradient, of its shape and dtype; an undefined one is not asked for. They
/// may share memory with inputs.
CLUTCH_API void map_backward_out(std::span<const Tensor> outs, std::span<const Tensor> grad_outputs,
                                 const ExprFunction& function, std::span<const Tensor> inputs,
                                 const Stream& stream = {});
/// map_backward({grad}, f, {x, y}) for a lambda.
template <class F, std::size_t kInputs, std::size_t kOutputs>
requires detail::kIsLambda<F> std::vector<Tensor> map_backward(const Tensor (&grad_outputs)[kOutputs], F&& f,
                                                               const Tensor (&inputs)[kInputs],
                                                               const Stream& stream = {}) {
  return map_backward(std::span<const Tensor>(grad_outputs), detail::trace_over<kInputs>(f, inputs, "map_backward"),
                      std::span<const Tensor>(inputs), stream);
}

/// Gradients of the floating tensors that `function` captures, in the order of captured_tensor(), each with its
/// tensor's shape and dtype. Gradients of elements that are read often are summed: in reduce()'s order over the other
/// dimensions where all indices are positions, else one after another in row-major order, as scatter_reduce() sums. An
/// index that is clamped counts for the element it is clamped to.
/// Dtypes: summed in f32, f64 for f64, and rounded once.
/// Determinism: bit-equal on every device.
/// Scratch: for computed indices a gradient and an i64 for each element.
/// Errors: as map_backward.
CLUTCH_API std::vector<Tensor> captured_backward(std::span<const Tensor> grad_outputs, const ExprFunction& function,
                                                 std::span<const Tensor> inputs, const Stream& stream = {});
/// As map_backward_out().
CLUTCH_API void captured_backward_out(std::span<const Tensor> outs, std::span<const Tensor> grad_outputs,
                                      const ExprFunction& function, std::span<const Tensor> inputs,
                                      const Stream& stream = {});
/// captured_backward({grad}, f, {x, y}) for a lambda.
template <class F, std::size_t kInputs, std::size_t kOutputs>
requires detail::kIsLambda<F> std::vector<Tensor> captured_backward(const Tensor (&grad_outputs)[kOutputs], F&& f,
                                                                    const Tensor (&inputs)[kInputs],
                                                                    const Stream& stream = {}) {
  return captured_backward(std::span<const Tensor>(grad_outputs),
                           detail::trace_over<kInputs>(f, inputs, "captured_backward"), std::span<const Tensor>(inputs),
                           stream);
}

}}  // namespace clutch::v0
