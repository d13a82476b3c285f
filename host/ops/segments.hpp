// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/expr.hpp>
#include <clutch/ops/segment.hpp>

#include <limits>
#include <optional>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

enum class SelfRows : std::uint8_t;  // ops/segment_plan.hpp

/// One call: rows of data reduced, with or without columns and values.
struct Segments {
  const char* op;
  Tensor data, offsets, columns, values, self;  ///< undefined: none
  std::optional<double> initial;                ///< of segment_reduce, which turns it into `self`
  Tensor firsts, places;                        ///< an entry k counts for feature f only if firsts[columns[k], f] is places[k]; of the data's dtype
  SelfRows self_rows{};
  ExprFunction f = {};              ///< stores f(result, inputs ...) in place of a result; empty: the result
  std::vector<Tensor> inputs = {};  ///< of f, of the output's sizes
  std::int64_t data_rows = 0;
  double empty = 0, missing = std::numeric_limits<double>::quiet_NaN();
};

/// Reduces into `out`, whose rows are the segments. The caller has checked the operands.
void segment_into(const Tensor& out, const Segments& segments, const SegmentOptions& options, const Stream& stream);

}}}  // namespace clutch::v0::detail
