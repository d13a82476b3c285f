// SPDX-License-Identifier: Apache-2.0
#pragma once
// Element-wise mathematics as a C++ programmer would write it: OpenMP SIMD loops with -O3 -march=native -ffast-math, whose
// functions are glibc's libmvec (up to 4 ulp).
#include <string_view>

namespace clutch::bench::omp {

/// out = name(a) or name(a, b): add mul div exp log tanh sigmoid erf sin pow gelu silu relu; false if there is no such loop.
bool math_f32(std::string_view name, float* out, const float* a, const float* b, long n);
bool math_f64(std::string_view name, double* out, const double* a, const double* b, long n);
/// out = a chain of `ops` multiplications by b and additions of b in turn.
void chain_f32(int ops, float* out, const float* a, const float* b, long n);

/// sum, amax, norm, var or logsumexp of a matrix, over dimension 0, 1 or both (2).
void reduce_f32(std::string_view name, float* out, const float* x, long rows, long columns, int dims);

/// softmax, log_softmax, layer_norm or rms_norm (without weights) of each row; false if there is no such loop.
bool rows_f32(std::string_view name, float* out, const float* x, long rows, long columns);

/// States of each channel along a sequence, contiguous as (length, channels), (channels, states), (length, states): y of selective_scan with softplus, skip
/// and gate. Blocks of 16 channels in parallel, channels in lanes.
void selective_scan_f32(float* y, const float* x, const float* delta, const float* gate, const float* a, const float* b, const float* c, const float* skip,
                        long length, long channels, long states);

}  // namespace clutch::bench::omp
