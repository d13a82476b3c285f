// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/tensor.hpp>

#include <string_view>

namespace clutch::inline v0::linalg {

struct MatmulOptions {
  double alpha = 1;
  double beta = 0;                       ///< of matmul_out(): 0 never reads the output
  std::string_view implementation = {};  ///< by name, for tests and benches
};

/// Computes alpha a b, for each pair of matrices of the batches.
/// Shapes: a (*, m, k), b (*, k, n), result (*, m, n); batch dims broadcast. A vector a counts as (1, k), a vector b as (k, 1), and the result lacks
///   that dim. Any strides: transposed operands are not copied.
/// Dtypes: f32, f64, f16, bf16, the same for both; computed in f32, for f64 in f64, rounded once where it is stored.
/// Determinism: each element is one chain s = fma(a_ik, b_kj, s) from s = 0 in the order of k, then alpha s (and fma(beta, out, alpha s)): equal bits
///   on every device, in any batch and beside any neighbours.
/// Accuracy: |result - exact| <= (k + 2) eps |a| |b|, componentwise, eps of the compute type; f16 and bf16 rounded besides.
/// Scratch: b in panels, of its size in the compute type; f16 and bf16 a as f32.
/// Errors: invalid_shape; invalid_dtype; device_mismatch; invalid_overlap; not_supported for f64 without fp64, k past 65535
///   on devices that end loops there, or an implementation that refuses.
/// Stream: never waits. Source: torch.matmul of PyTorch 2.12.
CLUTCH_API Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options = {}, const Stream& stream = {});
/// out = alpha a b + beta out; all of rank 2 at least. `out` has the result's shape and the operands' dtype, or f32 for f16 and bf16.
CLUTCH_API void matmul_out(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulOptions& options = {}, const Stream& stream = {});

}  // namespace clutch::inline v0::linalg
