// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "expr/node.hpp"

#include <functional>
#include <map>
#include <utility>

namespace clutch { inline namespace v0 { namespace detail {

/// Params of several functions that become one: those of equal dtype and value are one, so that equal parts of the functions stay equal.
using SharedParams = std::map<std::pair<DType, double>, Expr>;

/// The position along a dimension, or kPlace, of the function.
using Positions = std::function<Expr(int)>;
/// applied(), with params of their values from `params`, and with positions from `positions` if it is set.
std::vector<Expr> applied(const ExprFunction& function, std::span<const Expr> inputs, SharedParams& params, const Positions& positions = {});

}}}  // namespace clutch::v0::detail
