// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/reduce.hpp>
#include <clutch/tensor.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace clutch { inline namespace v0 {

struct SegmentOptions {
  Reduce reduce = Reduce::sum;
  std::optional<double> initial = {};  ///< what segments begin with; a mean has it in its sum, not in its count
  std::string implementation = {};     ///< forces a plan by name; empty: the first that accepts
};

/// Reduces rows of `data` over segments: out[i, ...] = reduce of data[k, ...] over k from offsets[i] to offsets[i + 1].
/// Shapes: data (entries, *); offsets (segments + 1), ascending; out (segments, *).
/// Dtypes: f64 f32 f16 bf16 -> accumulated in f32, f64 for f64, rounded once; offsets i32 or i64.
/// Initial: one more operand, the first: (initial + sum of the data) / number of the data for means, as
///   torch.segment_reduce.
/// Empty segments: `initial`; without it sum 0, prod 1, amin +inf, amax -inf, mean NaN, as torch.segment_reduce.
/// NaN: amin and amax give NaN if there is one. Zeros: they count 0 and -0 as equal and give the last one.
/// Determinism: bit-equal on every device and for every layout: a segment's entries are combined one after another, in
///   order.
/// Accuracy: |error| <= n eps sum |x| for a sum of n entries, eps being 2^-24 (2^-53 for f64).
/// Bad contents: offsets are clamped to the entries, so that nothing is read out of bounds. On a device that ends loops
///   early (quirk loops_end_early, 65535 iterations of an item) a segment that takes more gives NaN: from about 8000
///   entries of 4 features on, fewer of more.
/// Scratch: none; data whose rows do not join into one stride is copied.
/// Errors: invalid_shape; invalid_dtype; device_mismatch; invalid_overlap; invalid_argument for any and all;
///   invalid_argument or not_supported for an implementation.
/// Stream: never waits.
/// Source: torch.segment_reduce with offsets and axis 0.
CLUTCH_API Tensor segment_reduce(const Tensor& data, const Tensor& offsets, const SegmentOptions& options = {},
                                 const Stream& stream = {});
CLUTCH_API void segment_reduce_out(const Tensor& out, const Tensor& data, const Tensor& offsets,
                                   const SegmentOptions& options = {}, const Stream& stream = {});

/// The gradient of the data; `result` is what segment_reduce gave. amin and amax: ties share evenly, and so do a
/// segment's NaN entries; prod: right for zeros, too. Entries of no segment get 0.
/// Errors: as segment_reduce.
CLUTCH_API Tensor segment_reduce_backward(const Tensor& grad, const Tensor& result, const Tensor& data,
                                          const Tensor& offsets, const SegmentOptions& options = {},
                                          const Stream& stream = {});
/// Into the caller's tensor, of data's shape and dtype; it may share memory with inputs.
CLUTCH_API void segment_reduce_backward_out(const Tensor& out, const Tensor& grad, const Tensor& result,
                                            const Tensor& data, const Tensor& offsets,
                                            const SegmentOptions& options = {}, const Stream& stream = {});

}}  // namespace clutch::v0
