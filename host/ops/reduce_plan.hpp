// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/reduce.hpp>

#include "ops/traced.hpp"
#include "reduce/args.h"

namespace clutch { inline namespace v0 { namespace detail {

inline constexpr int kMaxReduceInputs = 8;
inline constexpr int kMaxReducePositions = 4;
inline constexpr int kMaxReduceOperands = 1 + kMaxReduceInputs + kMaxReducePositions;  ///< output, inputs, positions
/// Vectors of columns that one item takes side by side. With many columns kReduceWide is used, since whole pages are read faster.
inline constexpr int kReduceAbreast = 4, kReduceWide = 64;

/// Strides of the elements that are reduced to one result.
enum class ReduceLayout : std::uint8_t {
  rows,     ///< one stride, 0 or 1, in each input
  columns,  ///< one stride in each input; the innermost kept dimension has stride 0 or 1 in each
  strided,
};

/// Where items with caches of their own find vectors among several strides: the dimension along which each input has stride 0 or 1.
enum class ReduceVectors : std::uint8_t {
  none,
  runs,     ///< the innermost reduced one
  panels,   ///< another reduced one, whose neighbours are at most REDUCE_MOST_ACROSS elements long
  strips,   ///< another reduced one, whose neighbours are longer
  columns,  ///< the innermost kept one
};

/// Inputs of the selection of reduce; also the key of its cached plans.
struct ReduceProblem {
  std::uint64_t function = 0, after = 0;  ///< ExprBody::id
  Reduce op = Reduce::sum;
  ReduceLayout layout = ReduceLayout::rows;
  DType accumulator = DType::f32, output = DType::f32;
  bool final_stage = true;
  bool wide_index = false;
  bool wide_panels = false;  ///< for columns: there are enough for kReduceWide vectors
  SeenTypes types;
  std::uint8_t inputs = 1, positions = 0, rank_lanes = 4;
  bool short_rows = false;                      ///< for rows: fewer elements than the smallest team of items has
  ReduceVectors vectors = ReduceVectors::none;  ///< for strided
  std::uint16_t splats = 0;                     ///< for rows: bits of the operands that have one element in a row
  DType dtypes[kMaxReduceInputs] = {};
};

/// Entries whose groups are made of teams of items (reduce/args.h), of rowwise, too. Items take single elements; groups have whole teams.
ElementwiseTuning team_tuning(const DeviceTraits& traits);
/// Reason why a device refuses teams; empty if it accepts.
std::string refuses_teams(const DeviceTraits& traits, DType accumulator);
/// Reason why items of a device refuse an entry, of rowwise, too, that keeps what it reads in a cache of each item's; empty if they have one.
inline std::string refuses_caches(const DeviceTraits& traits) {
  return row_tuning(traits).local > 1 ? "needs work-items that each have a core, the device has groups of several items" : "";
}
/// Items of a group that takes rows of m elements: as many as it has blocks for, if a group shares a row.
std::uint64_t team_items(const BuiltPlan& plan, std::uint64_t m);
/// Elements of the longest row that a group shares: the results of its blocks are a block.
inline constexpr std::int64_t kLongestOfGroup = std::int64_t{REDUCE_BLOCK} * REDUCE_BLOCK;
/// The operation as kernels know it (common/reductions.h).
int op_number(Reduce op);

/// Pure function; the caller adds the printed functions to the plan. Errors: not_supported, invalid_argument.
KernelPlan select(const DeviceTraits& traits, const ReduceProblem& problem, std::string_view forced = {});

}}}  // namespace clutch::v0::detail
