// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "expr/node.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

inline bool is_whole(DType dtype) { return dtype == DType::i32 || dtype == DType::i64; }
/// Of a constant of such a dtype.
inline std::int64_t whole_number(const ExprStep& constant) {
  return constant.dtype == DType::i32 ? static_cast<std::int32_t>(constant.bits) : static_cast<std::int64_t>(constant.bits);
}

/// How the value of a step depends on the inputs of its function. Two of these, `row` and `column`, are whole numbers between 0 and 2^31 - 1.
struct Dependence {
  std::uint64_t inputs = 0;   ///< bit i: it depends on input i
  bool by_difference = true;  ///< it is the same wherever row - column and the other inputs are the same
  bool linear = true;         ///< it is an integer: of_row row + of_column column + what depends on neither, modulo the range of its dtype
  std::uint64_t of_row = 0, of_column = 0;

  bool on(int input) const { return (inputs >> input & 1) != 0; }
};
/// Of each step. The function has at most 64 inputs.
std::vector<Dependence> dependences(const ExprBody& body, int row, int column);

/// An input plus a number, or a number alone.
struct ShiftedInput {
  int input = -1;  ///< -1: none
  std::int64_t shift = 0;
};
/// What an integer step is, if it is one of these.
std::optional<ShiftedInput> shifted_input(const ExprBody& body, int step);

}}}  // namespace clutch::v0::detail
