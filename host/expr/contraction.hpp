// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "expr/node.hpp"

#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// A sum of products, such as a loop over d < count that was unrolled makes: left(b, h, q, d) right(b, h, kv, d), added up over d.
struct Contraction {
  std::int64_t count = 0;
  ExprFunction left, right;  ///< of four i32
};
/// A function of a score and of b, h, q and kv (i32), apart from the contractions in it.
struct Contracted {
  ExprFunction rest;  ///< of the function's inputs, then of the value of each contraction
  std::vector<Contraction> sums;
};
inline constexpr std::size_t kFewestProducts = 4;
inline constexpr std::size_t kMostContractions = 4;
/// Finds sums of kFewestProducts products at least that differ in whole numbers alone, which rise or fall evenly from one to the next. `rest` is the function
/// itself if there are none. Values differ from the function's by the rounding of sums.
Contracted contracted(const ExprFunction& function);

}}}  // namespace clutch::v0::detail
