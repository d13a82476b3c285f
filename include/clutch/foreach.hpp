// SPDX-License-Identifier: Apache-2.0
#pragma once
// A traced function over lists of tensors, as PyTorch's _foreach_ ops: lists of hundreds of tensors in one launch.
#include <clutch/ops/map.hpp>

#include <array>
#include <span>
#include <utility>
#include <vector>

namespace clutch { inline namespace v0 {

/// Calls map() for each place of lists of equal lengths: output i is the function of the i-th tensor of each list.
/// Shapes: the i-th tensors have one shape, any; where a list's tensors have one element each, that goes with any shape
///   (as a number for each tensor). Any strides.
/// Dtypes: map's. Each list is traced in its dtype, a tensor of rank 0 like others; the tensors of a list may differ in
///   dtype where they are traced alike.
/// Captured tensors: any. Positions: none.
/// In place: an output may be any of its own inputs, element for element; it shares no memory with tensors of other
///   places.
/// Determinism: bit-equal to map() of each place.
/// Launches: one for each set of dtypes, or more if the tensors are in more than 8 buffers.
/// Scratch: contiguous copies of tensors that are not; 8 bytes for each tensor and for each tile of 16 KiB.
/// Errors: as map; invalid_argument for no lists or for lists of several lengths, and for a function with positions;
///   invalid_shape.
/// Stream: never waits.
/// Source: torch._foreach_add and others of PyTorch 2.12.
CLUTCH_API std::vector<std::vector<Tensor>> foreach_map(const ExprFunction& function,
                                                        std::span<const std::span<const Tensor>> inputs,
                                                        const MapOptions& options = {}, const Stream& stream = {});
CLUTCH_API void foreach_map_out(std::span<const std::span<const Tensor>> outputs, const ExprFunction& function,
                                std::span<const std::span<const Tensor>> inputs, const MapOptions& options = {},
                                const Stream& stream = {});

/// The dtypes in which lists are traced. Errors, in the name of `op`: invalid_argument for an empty list or an
/// undefined tensor, invalid_dtype.
CLUTCH_API std::vector<DType> traced_dtypes(std::span<const std::span<const Tensor>> lists,
                                            std::string_view op = "traced_dtypes");

namespace detail {
template <std::size_t kInputs, class F>
ExprFunction trace_over_lists(F&& f, std::span<const std::span<const Tensor>> lists, std::string_view op) {
  std::array<DType, kInputs> dtypes;
  const std::vector<DType> traced = traced_dtypes(lists, op);
  for (std::size_t i = 0; i < kInputs; ++i) dtypes[i] = traced[i];
  return trace(f, dtypes);
}
}  // namespace detail

/// As above for a lambda, traced at each call: foreach_map(f, {xs, ys}, options, stream). Returns a list of Tensors, or
/// a std::array of as many lists as the lambda returns Exprs. Empty lists give empty ones.
template <class F, std::size_t kInputs>
requires detail::kIsLambda<F>
auto foreach_map(F&& f, const std::span<const Tensor> (&inputs)[kInputs], const MapOptions& options = {},
                 const Stream& stream = {}) {
  constexpr std::size_t kOutputs = detail::kTracedOutputs<kInputs, std::remove_reference_t<F>>;
  std::vector<std::vector<Tensor>> results(kOutputs == 0 ? 1 : kOutputs);
  if (!inputs[0].empty())
    results = foreach_map(detail::trace_over_lists<kInputs>(f, inputs, "foreach_map"), inputs, options, stream);
  if constexpr (kOutputs == 0) {
    return std::move(results[0]);
  } else {
    std::array<std::vector<Tensor>, kOutputs> lists;
    for (std::size_t i = 0; i < kOutputs; ++i) lists[i] = std::move(results[i]);
    return lists;
  }
}
/// foreach_map_out(outs, f, {xs, ys}) for a lambda that returns one Expr; in place where outs are one of the lists.
template <class F, std::size_t kInputs>
requires detail::kIsLambda<F>
void foreach_map_out(std::span<const Tensor> outputs, F&& f, const std::span<const Tensor> (&inputs)[kInputs],
                     const MapOptions& options = {}, const Stream& stream = {}) {
  if (outputs.empty() && inputs[0].empty()) return;
  foreach_map_out(std::span(&outputs, 1), detail::trace_over_lists<kInputs>(f, inputs, "foreach_map_out"), inputs,
                  options, stream);
}

}}  // namespace clutch::v0
