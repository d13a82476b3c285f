// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/expr.hpp>

#include <memory>
#include <span>

namespace clutch { inline namespace v0 { namespace detail {

/// What a launch computes, for graphs that fuse it with others. Its operands are those of the launch, in their order: outputs, inputs, captured tensors.
struct Meaning {
  /// Launches a pointwise function. It makes one launch, or it is an Error: not_supported where one launch cannot take so many arguments.
  using Launch = void (*)(std::span<const Tensor> outputs, const ExprFunction& function, std::span<const Tensor> inputs, const Stream& stream);

  /// Pointwise: each element of the outputs is the function of the inputs' elements at its place, in the outputs' dtypes. Its captured tensors are undefined.
  ExprFunction function;
  int outputs = 0, inputs = 0;
  Dims sizes;  ///< of the outputs; the inputs broadcast to them
  Launch launch = nullptr;
};

}}}  // namespace clutch::v0::detail
