// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "expr/node.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

inline bool is_whole(DType dtype) { return dtype == DType::i32 || dtype == DType::i64; }
/// Value of a constant of such a dtype.
inline std::int64_t whole_number(const ExprStep& constant) {
  return constant.dtype == DType::i32 ? static_cast<std::int32_t>(constant.bits) : static_cast<std::int64_t>(constant.bits);
}

/// How the value of a step depends on the inputs of its function. Two of the inputs, `row` and `column`, are integers from 0 to 2^31 - 1.
struct Dependence {
  std::uint64_t inputs = 0;   ///< bit i: the value depends on input i
  bool by_difference = true;  ///< the value is a function of row - column and the other inputs
  bool linear = true;         ///< the value is an integer: of_row row + of_column column + a term that depends on neither, modulo the range of its dtype
  std::uint64_t of_row = 0, of_column = 0;

  bool on(int input) const { return (inputs >> input & 1) != 0; }
};
/// The dependence of each step. The function has at most 64 inputs.
std::vector<Dependence> dependences(const ExprBody& body, int row, int column);

/// An input plus an integer, or an integer alone.
struct ShiftedInput {
  int input = -1;  ///< -1: no input
  std::int64_t shift = 0;
};
/// The step as a ShiftedInput, if it is an integer of that form.
std::optional<ShiftedInput> shifted_input(const ExprBody& body, int step);

}}}  // namespace clutch::v0::detail
