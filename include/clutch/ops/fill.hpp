// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/tensor.hpp>

#include <string>

namespace clutch { inline namespace v0 {

struct FillOptions {
  std::string implementation = {};  ///< forces a plan by name; empty: the first that accepts
};

/// Sets every element of self to `value`, cast to its dtype by copy_'s rules (f64 to the dtype, rounded once).
/// Shapes: any, any strides. Packed dtypes: contiguous, and only 0.
/// Errors: invalid_dtype for a packed dtype and a value other than 0; invalid_overlap if self overlaps itself.
/// Stream: never waits.
/// Source: Tensor.fill_ of PyTorch 2.12.
CLUTCH_API void fill_(const Tensor& self, double value, const FillOptions& options = {}, const Stream& stream = {});

/// Sets element i, in row-major order, to start + i * step: exact in 64-bit integers for integer dtypes (start and step
/// are truncated), fma(i, step, start) in f32 (f64 for f64) with i rounded to that type, then one rounding, for
/// floating ones.
/// Errors: invalid_dtype unless the dtype is f64, f32, f16, bf16 or an integer.
/// Stream: never waits.
CLUTCH_API void arange_(const Tensor& self, double start, double step, const FillOptions& options = {},
                        const Stream& stream = {});

}}  // namespace clutch::v0
