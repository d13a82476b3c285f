// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/tensor.hpp>

#include <string>

namespace clutch { inline namespace v0 {

struct @PASCAL@Options {
  std::string implementation = {};  ///< forces a plan by name; empty: the first that accepts
};

/// Computes -input element by element.
/// Shapes: any; the result is contiguous. Dtypes: f32.
/// Accuracy: exact. Errors: invalid_dtype, invalid_shape, device_mismatch, invalid_overlap. Stream: never waits.
CLUTCH_API Tensor @STEM@(const Tensor& input, const @PASCAL@Options& options = {}, const Stream& stream = {});
CLUTCH_API void @STEM@_out(const Tensor& out, const Tensor& input, const @PASCAL@Options& options = {},
                     const Stream& stream = {});

}}  // namespace clutch::v0
