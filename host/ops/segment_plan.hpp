// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/segment.hpp>

#include "encode/plan.hpp"
#include "ops/reduce_plan.hpp"

#include <limits>
#include <optional>

namespace clutch { inline namespace v0 { namespace detail {

/// The rows of a tensor of their own that a reduction takes.
enum class SelfRows : std::uint8_t {
  none,
  begin,    ///< accumulators begin with them, and means count them
  empty,    ///< empty segments are them
  initial,  ///< accumulators begin with them, and means do not count them
};

enum class SegmentStage : std::uint8_t { reduce, ids, dots, first };

/// What selection of segment looks at; also the key of its cached plans.
struct SegmentProblem {
  DType dtype = DType::f32;
  DType offset = DType::i64, column = DType::i64;
  Reduce reduce = Reduce::sum;
  bool has_columns = false, has_values = false;
  bool rows = true;  ///< features of a row lie side by side, in data and output
  bool wide_index = false;
  bool has_offsets = true;  ///< otherwise segment i is entry i
  SelfRows self = SelfRows::none;
  SegmentStage stage = SegmentStage::reduce;
  bool has_first = false;
  DType result = DType::f32;  ///< of the stage `first`: what results were rounded to
};

/// Errors: invalid_argument for any and all.
void check_reduce(Reduce reduce, std::string_view op);

/// One call: rows of data reduced, with or without columns and values.
struct Segments {
  const char* op;
  Tensor data, offsets, columns, values, self;  ///< undefined: none
  std::optional<double> initial;                ///< of segment_reduce, which makes it `self`
  Tensor firsts, places;                        ///< only features f count for which firsts[columns[k], f] is places[k]; of the data's dtype
  SelfRows self_rows = SelfRows::none;
  std::int64_t data_rows = 0;
  double empty = 0, missing = std::numeric_limits<double>::quiet_NaN();
};

/// Reduces into `out`, whose rows are the segments. The operands are known to fit.
void segment_into(const Tensor& out, const Segments& segments, const SegmentOptions& options, const Stream& stream);
/// The rows that `columns` names; `missing` where it names none. Bits are kept, NaN are made quiet.
Tensor select_rows(const Tensor& data, const Tensor& columns, double missing, const char* op, const Stream& stream);
void select_rows_into(const Tensor& out, const Tensor& data, const Tensor& columns, double missing, const char* op, const Stream& stream);
/// The number of each entry's segment, in the offsets' dtype; -1 where it lies in none.
Tensor segment_ids(const Tensor& offsets, std::int64_t entries, const char* op, const Stream& stream);
/// Products of rows: out[k] = x[i, :] . data[columns[k], :], i being the segment of entry k; of features f for which firsts[i, f] is k's place
/// in its segment, where that is defined.
Tensor segment_dots(const Tensor& x, const Tensor& data, const Tensor& offsets, const Tensor& columns, const Tensor& firsts, const char* op,
                    const Stream& stream);
/// Where in segment i of s (data contiguous, in f32 or f64) a term of feature f is result[i, f], which was rounded to a dtype, first; -1: nowhere.
Tensor segment_first(const Segments& s, const Tensor& result, DType rounded, const Stream& stream);

/// Pure. Errors: not_supported, invalid_argument.
KernelPlan select(const DeviceTraits& traits, const SegmentProblem& problem, std::string_view forced = {});

}}}  // namespace clutch::v0::detail
