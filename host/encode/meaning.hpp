// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/expr.hpp>
#include <clutch/stream.hpp>

#include <array>
#include <memory>
#include <span>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// What a launch computes, for graphs that fuse it with others. Its operands are those of the launch, in their order: elements, results, inputs, captured tensors.
/// Inputs and elements go together element by element, over `sizes`, to which inputs broadcast. Results have one element for those of the dimensions `gone`.
struct Meaning {
  /// A launch that computes the same of other inputs, and other elements.
  struct Call {
    std::span<const Tensor> elements, results, inputs;
    const ExprFunction& before;  ///< of the call's inputs: the meaning's inputs
    const ExprFunction& after;   ///< of the call's inputs, then of the values of the meaning's elements: the call's elements; empty if it has none
    const Dims& dims;            ///< those that are gone, of the sizes of the call's elements
    const Stream& stream;
  };
  /// Makes one launch, or it is an Error: not_supported or invalid_argument where one launch cannot do so.
  using Launch = void (*)(const Meaning& meaning, const Call& call);

  int elements = 0, results = 0, inputs = 0;
  Dims sizes;
  /// Pointwise: the function of the inputs, with the values of its params; its captured tensors are undefined. Else empty.
  ExprFunction function;
  // If it is not pointwise:
  std::array<bool, kMaxRank> gone{};
  std::vector<DType> input_values, element_values;  ///< dtypes of the values of inputs and elements
  bool stores_elements = false;                     ///< a launch may have elements that the meaning does not have
  int most_tensors = 16;                            ///< of a launch
  std::shared_ptr<const void> more;                 ///< what `launch` needs besides
  Launch launch = nullptr;
};

}}}  // namespace clutch::v0::detail
