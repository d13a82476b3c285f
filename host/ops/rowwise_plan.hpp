// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/rowwise.hpp>

#include "ops/traced.hpp"
#include "reduce/args.h"
#include "rowwise/args.h"

#include <array>

namespace clutch { inline namespace v0 { namespace detail {

/// Checks a call of rowwise(), of rowwise_out() where there are outputs, and computes nothing. Errors: theirs.
Runtime& check_rowwise(std::span<const Tensor> outputs, const RowFunction& f, std::span<const Tensor> inputs, const RowwiseOptions& options);

inline constexpr int kMaxTotals = ROWWISE_TOTALS;
inline constexpr int kMaxRowwiseOperands = 12;
static_assert(kMaxRowwiseOperands <= ROWWISE_INNER_LANES);
/// Length from which few rows are computed by several launches of reduce and map. The name forces this way.
inline constexpr std::int64_t kLongRow = 16384;
/// Elements of the longest row of rowwise_column_groups: the results of its blocks are two for each of its items.
inline constexpr std::int64_t kLongestOfShared = std::int64_t{CLUTCH_CHAIN} * REDUCE_BLOCK;
/// Rows that are columns in memory are lanes (rowwise_columns) if at least so many lie side by side; or, if they are longer than kLongestOfColumns, computed by
/// several launches, too.
inline constexpr std::int64_t kFewColumns = 16, kFewLongColumns = 64;
/// Elements of a row up to which rowwise_columns reads memory in long pieces.
inline constexpr std::int64_t kLongestOfColumns = ROWWISE_KEPT / ROWWISE_ABREAST;
/// Parts of a row in which an input has one element have a multiple of so many elements.
inline constexpr std::int64_t kPartVector = 16;
inline constexpr std::string_view kComposed = "rowwise_composed";
/// No operand is held.
inline constexpr std::uint8_t kNoneHeld = 255;

/// Lengths of rows as rowwise_groups distinguishes them.
enum class RowLength : std::uint8_t {
  fits,
  few_held,    ///< items can hold them, few elements each
  held,        ///< items can hold them
  short_rows,  ///< fewer elements than the smallest team of items has
  chains,      ///< more blocks than a chain has elements
  long_rows,   ///< more blocks than have their results in local memory
};

/// Shared part of RowFunctions. The functions take the inputs, then kMaxTotals totals and the row's length.
struct RowBody {
  std::vector<DType> inputs;
  DType accumulator = DType::f32;
  std::vector<Reduce> ops;
  std::vector<ExprFunction> totals;
  ExprFunction elements, results;  ///< empty if there are none
  /// Index of a total whose values the elements use again, and the step of these values in `elements`; kMaxTotals if there is none.
  int kept = kMaxTotals;
  int kept_step = -1;
  std::array<int, kMaxTotals> kept_in_total{-1, -1, -1, -1};  ///< the step of these values in later totals; -1 for none

  std::vector<const ExprFunction*> functions() const {
    std::vector<const ExprFunction*> all;
    for (const ExprFunction& f : totals) all.push_back(&f);
    if (!elements.empty()) all.push_back(&elements);
    if (!results.empty()) all.push_back(&results);
    return all;
  }
};

/// Inputs of the selection of rowwise; also the key of its cached plans. Operands: elements, results, inputs.
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
  RowLength length = RowLength::fits;
  std::uint8_t held = kNoneHeld;  ///< operand of which the items of rowwise_groups can hold a row
  std::uint16_t splats = 0;       ///< for rows: bits of the operands that have one element in a row
  DType dtypes[kMaxRowwiseOperands] = {};
  std::uint8_t held_kept = kMaxTotals;  ///< the total whose values take the place of what is held
  bool columns = false;                 ///< neighbours in memory are of neighbouring rows, of at most a block
  bool far_apart = false;               ///< for columns: a core's caches have place for few rows, as the distance between them has many factors of two
  std::uint8_t eights = 0;              ///< eights of elements that an item can hold a row in; 0 if it cannot
  bool many = false;                    ///< there are rows for every item that the device runs at a time
  bool along = false;                   ///< rows are short and behind one another in memory, and so is the one element output
  std::uint16_t steps = 0;              ///< for rows: bits of the inputs that have one element in each part of a row
};

struct Meaning;
struct RowsMeaning;
/// What a launch of rows, or a reduction, computes, with that many operands of each kind.
std::shared_ptr<const Meaning> rows_meaning(std::shared_ptr<const RowsMeaning> rows, int elements, int results, int inputs, const Dims& sizes,
                                            const std::array<bool, kMaxRank>& gone);

/// Pure function; the caller adds the printed functions to the plan. Errors: not_supported, invalid_argument.
KernelPlan select(const DeviceTraits& traits, const RowwiseProblem& problem, std::string_view forced = {});

}}}  // namespace clutch::v0::detail
