// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/tensor.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace clutch { inline namespace v0 {

enum class SegmentReduce : std::uint8_t { sum, prod, amin, amax, mean };

struct SegmentOptions {
  SegmentReduce reduce = SegmentReduce::sum;
  std::optional<double> initial = {};  ///< what segments begin with, of segment_reduce alone; a mean has it in its sum, not in its count
  std::string implementation = {};     ///< forces a plan by name; empty: the first that accepts
};

/// Reduces rows of `data` over segments: out[i, ...] = reduce of data[k, ...] over k from offsets[i] to offsets[i + 1].
/// Shapes: data (entries, *); offsets (segments + 1), ascending; out (segments, *).
/// Dtypes: f64 f32 f16 bf16 -> accumulated in f32, f64 for f64, rounded once; offsets i32 or i64.
/// Initial: one more operand, the first: (initial + sum of the data) / number of the data for means, as torch.segment_reduce.
/// Empty segments: `initial`; without it sum 0, prod 1, amin +inf, amax -inf, mean NaN, as torch.segment_reduce.
/// NaN: amin and amax give NaN if there is one. Zeros: they count 0 and -0 as equal and give the last one.
/// Determinism: bit-equal on every device and for every layout: a segment's entries are combined one after another, in order.
/// Accuracy: |error| <= n eps sum |x| for a sum of n entries, eps being 2^-24 (2^-53 for f64).
/// Bad contents: offsets are clamped to the entries, so that nothing is read out of bounds. On a device that ends loops early (quirk
///   loops_end_early, 65535 iterations of an item) a segment that takes more gives NaN: from about 8000 entries of 4 features on, fewer of more.
/// Scratch: none; data whose rows do not join into one stride is copied.
/// Errors: invalid_shape; invalid_dtype; device_mismatch; invalid_overlap; invalid_argument or not_supported for an implementation.
/// Stream: never waits. Source: torch.segment_reduce with offsets and axis 0.
CLUTCH_API Tensor segment_reduce(const Tensor& data, const Tensor& offsets, const SegmentOptions& options = {}, const Stream& stream = {});
CLUTCH_API void segment_reduce_out(const Tensor& out, const Tensor& data, const Tensor& offsets, const SegmentOptions& options = {}, const Stream& stream = {});

/// The gradient of the data; `result` is what segment_reduce gave. amin and amax: ties share evenly; prod: right for zeros, too.
/// Entries of no segment get 0. Errors: as segment_reduce.
CLUTCH_API Tensor segment_reduce_backward(const Tensor& grad, const Tensor& result, const Tensor& data, const Tensor& offsets,
                                          const SegmentOptions& options = {}, const Stream& stream = {});

namespace sparse {

/// A matrix of compressed rows: row i has entries offsets[i] to offsets[i + 1].
struct Csr {
  Tensor offsets;          ///< (rows + 1), i32 or i64, ascending
  Tensor columns;          ///< (entries), i32 or i64
  Tensor values = {};      ///< (entries); undefined: all 1
  std::int64_t width = 0;  ///< columns of the matrix
};

/// Multiplies a compressed matrix by a dense one, with any reduction: out[i, :] = reduce of values[k] * b[columns[k], :] over row i.
/// Shapes: a (m, k), b (k, n) -> (m, n).
/// Dtypes: f64 f32 f16 bf16, values and b alike -> accumulated in f32, f64 for f64; sums by fma.
/// Empty rows: 0 for all reductions, as torch.sparse.mm; mean divides by a row's entries.
/// Bad contents: a column outside of the matrix gives NaN, offsets are clamped: nothing is read out of bounds.
/// Determinism, NaN, errors, stream: as segment_reduce. Source: torch.sparse.mm(a, b, reduce), to which prod is added.
CLUTCH_API Tensor spmm(const Csr& a, const Tensor& b, const SegmentOptions& options = {}, const Stream& stream = {});
CLUTCH_API void spmm_out(const Tensor& out, const Csr& a, const Tensor& b, const SegmentOptions& options = {}, const Stream& stream = {});

struct SpmmGradients {
  Tensor values, b;
};
/// Gradients of spmm; `result` is what it gave. Those of the values are made also if the matrix has none.
/// amin and amax: the first entry of a row that gives the result takes it all, as in PyTorch; prod: right for zeros, too.
/// Scratch: entries as many as the matrix has, for amin and amax also as much as the result; for prod rows of b for each entry.
/// Determinism: as spmm; gradients of b are summed in the order of the entries. Errors: as spmm.
CLUTCH_API SpmmGradients spmm_backward(const Tensor& grad, const Tensor& result, const Csr& a, const Tensor& b, const SegmentOptions& options = {},
                                       const Stream& stream = {});

}  // namespace sparse
}}  // namespace clutch::v0
