// SPDX-License-Identifier: Apache-2.0
#include "expr/dependence.hpp"

namespace clutch { inline namespace v0 { namespace detail {
namespace {

/// Sets the factors of row and column for sums, products with a constant, and inputs cast to another width. All other steps are not linear: casts of other
/// values wrap or truncate, divisions and remainders round.
void set_factors(Dependence& d, const ExprBody& body, const ExprStep& s, const std::vector<Dependence>& all) {
  auto step = [&](std::size_t i) -> const ExprStep& { return body.steps[static_cast<std::size_t>(s.operands[i])]; };
  auto of = [&](std::size_t i) -> const Dependence& { return all[static_cast<std::size_t>(s.operands[i])]; };
  auto add = [&](std::size_t i, std::uint64_t factor) {
    d.linear = d.linear && of(i).linear;
    d.of_row += factor * of(i).of_row, d.of_column += factor * of(i).of_column;
  };
  constexpr std::uint64_t kMinusOne = ~std::uint64_t{0};
  switch (s.op) {
    case ExprOp::add: add(0, 1), add(1, 1); break;
    case ExprOp::sub: add(0, 1), add(1, kMinusOne); break;
    case ExprOp::neg: add(0, kMinusOne); break;
    case ExprOp::mul:
      if (step(1).op == ExprOp::constant)
        add(0, static_cast<std::uint64_t>(whole_number(step(1))));
      else if (step(0).op == ExprOp::constant)
        add(1, static_cast<std::uint64_t>(whole_number(step(0))));
      else
        d.linear = false;
      break;
    case ExprOp::cast:
      d.linear = step(0).op == ExprOp::input && is_whole(step(0).dtype) && is_whole(s.target);
      if (d.linear) add(0, 1);
      break;
    default: d.linear = false;
  }
}

}  // namespace

std::vector<Dependence> dependences(const ExprBody& body, int row, int column) {
  std::vector<Dependence> all;
  for (const ExprStep& s : body.steps) {
    Dependence d;
    for (int o : s.operands) {
      const Dependence& operand = all[static_cast<std::size_t>(o)];
      d.inputs |= operand.inputs, d.by_difference = d.by_difference && operand.by_difference;
    }
    if (s.op == ExprOp::input) {
      d.inputs = std::uint64_t{1} << s.index;
      d.of_row = s.index == row, d.of_column = s.index == column;
      d.by_difference = s.index != row && s.index != column;
    } else if (s.op == ExprOp::position) {
      d.inputs = ~std::uint64_t{0}, d.by_difference = d.linear = false;
    } else if (d.on(row) || d.on(column)) {
      set_factors(d, body, s, all);
    }
    d.linear = d.linear && is_whole(s.dtype);
    if (!d.linear) d.of_row = d.of_column = 0;
    d.by_difference = d.by_difference || (d.linear && d.of_row + d.of_column == 0);
    all.push_back(d);
  }
  return all;
}

std::optional<ShiftedInput> shifted_input(const ExprBody& body, int step) {
  // Integers up to this size do not overflow in a sum with an input and are exact in a param.
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  std::int64_t sign = 1;
  ShiftedInput made;
  auto number = [&](int k) -> std::optional<std::int64_t> {
    const ExprStep& s = body.steps[static_cast<std::size_t>(k)];
    if (s.op == ExprOp::constant && is_whole(s.dtype)) return whole_number(s);
    if (s.op == ExprOp::param && is_whole(s.dtype)) return static_cast<std::int64_t>(body.param_values[static_cast<std::size_t>(s.index)]);
    return std::nullopt;
  };
  auto take = [&](std::optional<std::int64_t> n) {
    if (!n || *n > kMost || *n < -kMost) return false;
    made.shift += sign * *n;
    return made.shift <= kMost && made.shift >= -kMost;
  };
  for (;;) {
    const ExprStep& s = body.steps[static_cast<std::size_t>(step)];
    if (!is_whole(s.dtype)) return std::nullopt;
    if (number(step)) return take(number(step)) ? std::optional(made) : std::nullopt;
    if (s.op == ExprOp::input) {
      made.input = s.index;
      return made;
    }
    if (s.op == ExprOp::cast && is_whole(s.target)) {
      step = s.operands[0];
    } else if (s.op == ExprOp::add || s.op == ExprOp::sub) {
      const bool first = s.op == ExprOp::add && number(s.operands[0]).has_value();
      const std::optional<std::int64_t> n = number(s.operands[first ? 0 : 1]);
      sign = s.op == ExprOp::sub ? -1 : 1;
      if (!take(n)) return std::nullopt;
      sign = 1;
      step = s.operands[first ? 1 : 0];
    } else {
      return std::nullopt;
    }
  }
}

}}}  // namespace clutch::v0::detail
