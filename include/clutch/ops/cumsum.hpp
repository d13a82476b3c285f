// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/tensor.hpp>

#include <cstdint>
#include <string>

namespace clutch { inline namespace v0 {

struct CumsumOptions {
  bool reverse = false;  ///< sums of the elements from each one to the last
  /// The result's, which is accumulated in the same type as x's and is not bool; empty: x's if floating, else i64
  DTypeList dtype = {};
  std::string implementation = {};  ///< forces a plan by name; empty: the first that accepts
};

/// Sums of the elements up to each one along a dimension. The gradient is the cumsum of the result's gradient with
/// `reverse` the other way.
/// Shapes: x any, of rank 0 as of one dimension; the result has x's shape.
/// Dtypes: f64 f32 f16 bf16 -> accumulated in f32, f64 for f64, rounded once; integers and bool -> accumulated
///   in i64, which wraps.
/// In place: the result may be x if it has its dtype, element for element.
/// Determinism: bit-equal on every device and for every layout. Elements go in groups of 16, whose sums are made by
///   doubling (of 1, 2, 4, 8 neighbours), groups in blocks of 2048, groups one after another, blocks one after another.
/// Accuracy: |error| <= (4 + 128 + n / 2048 + 1) eps sum |x| for the n-th sum, eps being 2^-24 (2^-53 for f64), and the
///   store's rounding.
/// Scratch: a number for each 2048 elements, where few lines are long.
/// Errors: invalid_argument for the dimension or an implementation; invalid_dtype; invalid_shape; invalid_overlap;
///   device_mismatch.
/// Stream: never waits.
/// Source: torch.cumsum.
CLUTCH_API Tensor cumsum(const Tensor& x, int dim = -1, const CumsumOptions& options = {}, const Stream& stream = {});
CLUTCH_API void cumsum_out(const Tensor& out, const Tensor& x, int dim = -1, const CumsumOptions& options = {},
                           const Stream& stream = {});

}}  // namespace clutch::v0
