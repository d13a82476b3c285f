// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/tensor.hpp>

#include <string>

namespace clutch { inline namespace v0 {

struct CopyOptions {
  Overflow overflow = Overflow::nonfinite;  ///< for results of f8e4m3fn and f8e5m2 made of another dtype
  std::string implementation = {};          ///< forces a plan by name; empty: the first that accepts
};

/// Writes source, broadcast to destination's shape and cast to its dtype, into destination.
/// Shapes: source broadcasts to destination. Packed dtypes: both contiguous, same dtype and shape.
/// Dtypes: every pair of f64 f32 f16 bf16 f8e4m3fn f8e5m2 f8e8m0fnu, the integers, bool, c64, c128; equal packed ones.
/// Accuracy: float to float rounds to nearest even, once (f64 to f16 directly); f8e8m0fnu takes magnitudes with ties
///   up; integer to float rounds to nearest even, once; float to integer truncates, NaN gives 0, out of range
///   saturates; integer to integer keeps the low bits; anything to bool is "not equal 0"; real to complex has imaginary
///   part 0, complex to real drops it. NaN payloads are not kept (f16, bf16 and f32 give quiet NaNs).
///   Equal dtypes keep their values, Inf of f8e5m2 with Overflow::saturate too.
/// In place: destination may be source element for element, or have its elements between source's; another overlap is
///   an Error.
/// Scratch: none; for casts of a transposed source on CPUs a copy of it.
/// Errors: invalid_shape, device_mismatch (copy between devices with Tensor::to), invalid_overlap; not_supported for
///   f64 or c128 arithmetic without fp64; invalid_dtype for casts of packed dtypes.
/// Stream: never waits.
/// Source: Tensor.copy_ of PyTorch 2.12 where that defines the result; out-of-range float to integer is defined here.
CLUTCH_API void copy_(const Tensor& destination, const Tensor& source, const CopyOptions& options = {},
                      const Stream& stream = {});

/// Returns source cast to a dtype, contiguous. The rules are copy_'s.
CLUTCH_API Tensor cast(const Tensor& source, DType dtype, const CopyOptions& options = {}, const Stream& stream = {});

}}  // namespace clutch::v0
