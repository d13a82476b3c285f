// SPDX-License-Identifier: Apache-2.0
// Functions that a reduction applies to elements: of inputs before it, and of the result.
#pragma once
#include <clutch/dist.hpp>

#include <cstdint>
#include <functional>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

/// What is done on a call's stream to its input before it, and to its result behind it. Empty functions do nothing.
struct CallEnds {
  std::function<Tensor(const Stream&)> input;                ///< returns the contiguous input
  std::function<void(const Tensor&, const Stream&)> output;  ///< gets the contiguous result
};

struct ElementFunctions {
  ExprFunction before, after;

  /// Traced for the elements of a tensor. Errors: invalid_dtype.
  ElementFunctions(const ReduceOptions& options, const Tensor& in);
  bool empty() const noexcept { return before.empty() && after.empty(); }
  /// True where an element's result depends on nothing but the element.
  bool are_pointwise() const;
  /// Of texts and params; 0 where there are none.
  std::uint64_t hash() const;
  /// `out`: undefined on ranks that get no result.
  CallEnds ends(const Tensor& out, const Tensor& in) const;
};

}}}}  // namespace clutch::v0::dist::detail
