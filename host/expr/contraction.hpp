// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "expr/node.hpp"

#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// A sum of products, as an unrolled loop over d < count makes: sum over d of left(b, h, q, d) right(b, h, kv, d).
struct Contraction {
  std::int64_t count = 0;
  ExprFunction left, right;  ///< of four i32
};
/// A function of a score and of b, h, q and kv (i32) with its contractions taken out.
struct Contracted {
  ExprFunction rest;  ///< takes the function's inputs, then the value of each contraction
  std::vector<Contraction> sums;
};
inline constexpr std::size_t kFewestProducts = 4;
inline constexpr std::size_t kMostContractions = 4;
/// Finds sums of at least kFewestProducts products that differ in integer constants alone, where each constant is an arithmetic sequence over the products.
/// Without such sums `rest` is the function itself. The result differs from the function's by the rounding of sums.
Contracted contracted(const ExprFunction& function);

}}}  // namespace clutch::v0::detail
