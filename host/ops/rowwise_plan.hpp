// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/rowwise.hpp>

#include "ops/traced.hpp"

namespace clutch { inline namespace v0 { namespace detail {

inline constexpr int kMaxTotals = 4;
inline constexpr int kMaxRowwiseOperands = 12;
/// Rows from this length on are taken apart where there are few of them, by reduce and map, which are forced by this name.
inline constexpr std::int64_t kLongRow = 16384;
inline constexpr std::string_view kComposed = "rowwise_composed";

/// What a RowFunction shares. Its functions take the inputs, then kMaxTotals totals and the row's length.
struct RowBody {
  std::vector<DType> inputs;
  DType accumulator = DType::f32;
  std::vector<Reduce> ops;
  std::vector<ExprFunction> totals;
  ExprFunction elements, results;  ///< empty if there are none
  /// A total whose values the elements use again, and their step there; kMaxTotals if there is none.
  int kept = kMaxTotals;
  int kept_step = -1;

  std::vector<const ExprFunction*> functions() const {
    std::vector<const ExprFunction*> all;
    for (const ExprFunction& f : totals) all.push_back(&f);
    if (!elements.empty()) all.push_back(&elements);
    if (!results.empty()) all.push_back(&results);
    return all;
  }
};

/// What selection of rowwise looks at; also the key of its cached plans. Operands: elements, results, inputs.
struct RowwiseProblem {
  std::uint64_t totals[kMaxTotals] = {}, elements = 0, results = 0;  ///< ExprBody::id
  std::uint8_t ops[kMaxTotals] = {};
  std::uint8_t total_count = 1, element_count = 1, result_count = 0, input_count = 1;
  std::uint8_t rank_lanes = 4;
  DType accumulator = DType::f32;
  bool rows = true;  ///< every operand's stride along a row is 0 or 1, and 1 for element outputs
  bool wide_index = false;
  SeenTypes types;
  std::uint8_t kept = kMaxTotals, fetch_in = kMaxTotals;
  std::uint8_t unused[2] = {};
  std::uint16_t splats = 0;  ///< of rows: bits of the operands that have one element a row
  DType dtypes[kMaxRowwiseOperands] = {};
};

/// Pure, but for the printed functions, which the caller adds. Errors: not_supported, invalid_argument.
KernelPlan select(const DeviceTraits& traits, const RowwiseProblem& problem, std::string_view forced = {});

}}}  // namespace clutch::v0::detail
