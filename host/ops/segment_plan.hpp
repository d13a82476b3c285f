// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "encode/plan.hpp"
#include "ops/reduce_plan.hpp"
#include "ops/segments.hpp"
#include "segment/args.h"

#include <array>

namespace clutch { inline namespace v0 { namespace detail {

/// How a reduction uses `self`, a row for each segment.
enum class SelfRows : std::uint8_t {
  none = SEGMENT_SELF_NONE,
  begin = SEGMENT_SELF_BEGIN,      ///< initial values of accumulators, which means count
  empty = SEGMENT_SELF_EMPTY,      ///< results of empty segments
  initial = SEGMENT_SELF_INITIAL,  ///< initial values of accumulators, which means do not count
};

enum class SegmentStage : std::uint8_t { reduce, ids, dots, first };

/// Most tensors that the function of a reduction's results reads beside them.
inline constexpr std::size_t kSegmentInputs = 5;

/// Inputs of the selection of segment; also the key of its cached plans.
struct SegmentProblem {
  DType dtype = DType::f32;
  DType offset = DType::i64, column = DType::i64;
  Reduce reduce = Reduce::sum;
  bool has_columns = false, has_values = false;
  bool rows = true;  ///< features of a row are contiguous, in data and output
  bool wide_index = false;
  bool has_offsets = true;  ///< false: segment i is entry i
  SelfRows self = SelfRows::none;
  SegmentStage stage = SegmentStage::reduce;
  bool has_first = false;
  DType result = DType::f32;  ///< for the stage `first`: dtype to which results were rounded
  // Of a function that results go through before they are stored.
  DType output = DType::f32;
  std::array<DType, kSegmentInputs> inputs{};
  std::uint8_t input_count = 0;
  bool wide = false, has_f64 = false;  ///< its values
  std::uint8_t unused[2] = {};
  std::uint64_t function = 0;  ///< id of its body; 0: none
};

/// Errors: invalid_argument for any and all.
void check_reduce(Reduce reduce, std::string_view op);
/// Errors: invalid_argument for a name that no implementation has.
void check_segment_implementation(std::string_view forced, std::string_view op);

/// The rows that `columns` selects; `missing` for indices out of range. Bits are preserved, except that NaNs become quiet.
Tensor select_rows(const Tensor& data, const Tensor& columns, double missing, const char* op, const Stream& stream);
void select_rows_into(const Tensor& out, const Tensor& data, const Tensor& columns, double missing, const char* op, const Stream& stream);
/// The segment of each entry, in the offsets' dtype; -1 for an entry outside of all segments.
Tensor segment_ids(const Tensor& offsets, std::int64_t entries, const char* op, const Stream& stream);
/// Products of rows: out[k] = x[i, :] . data[columns[k], :], where entry k is in segment i. If `firsts` is defined, only features f count for which firsts[i,
/// f] is the position of k in its segment. `forced`: an implementation of reductions, or empty; segment_groups forces the kernel of groups here and below.
Tensor segment_dots(const Tensor& x, const Tensor& data, const Tensor& offsets, const Tensor& columns, const Tensor& firsts, std::string_view forced,
                    const char* op, const Stream& stream);
/// For each segment i of s (data contiguous, in f32 or f64) and feature f, the position of the first term that equals result[i, f], which was rounded to
/// `rounded`; -1 if none does.
Tensor segment_first(const Segments& s, const Tensor& result, DType rounded, std::string_view forced, const Stream& stream);

/// Pure function. Errors: not_supported, invalid_argument.
KernelPlan select(const DeviceTraits& traits, const SegmentProblem& problem, std::string_view forced = {});

}}}  // namespace clutch::v0::detail
