// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "harness/rows.hpp"

#include <cstdint>

namespace clutch::bench::blas {

/// The kernels that OpenBLAS should take where it knows less of this CPU than that; null where it knows it.
const char* better_core();

/// OpenBLAS's product of row-major matrices on all cores; batched ones one after another.
Peer gemm_f32(float* c, const float* a, const float* b, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch);

/// softmax(q k^T / sqrt(d)) v of (heads, length, d), head by head: OpenBLAS's products on all cores and OpenMP's softmax between them. `scores` takes
/// length x length.
void attention_f32(float* out, const float* q, const float* k, const float* v, float* scores, std::int64_t heads, std::int64_t length, std::int64_t d,
                   bool causal);

}  // namespace clutch::bench::blas
