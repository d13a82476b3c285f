// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "harness/rows.hpp"

#include <cstdint>
#include <functional>

namespace clutch::bench::blas {

/// The kernels that OpenBLAS should take where it knows less of this CPU than that; null where it knows it.
const char* better_core();

/// OpenBLAS's product of row-major matrices on all cores; batched ones one after another.
Peer gemm_f32(float* c, const float* a, const float* b, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch);

struct Product {
  std::int64_t m, n, k, batch;
  bool a_transposed, b_transposed;  ///< stored so
};
/// The same of f32 or f64; `spread`: matrices over the cores, each on one.
Peer gemm(DType dtype, void* c, const void* a, const void* b, const Product& product, bool spread);

/// What attends to what: query i of a head to keys first(i) to last(i) - 1.
struct Attention {
  std::int64_t batch, heads, group, q_len, kv_len, d;  ///< `group` heads of queries for each of `heads`
  std::function<std::int64_t(std::int64_t)> first, last;
};
/// softmax(q k^T / sqrt(d)) v of (batch, heads, length, d): heads over the cores, or where there are fewer than cores one after another on all.
Peer attention_peer(float* out, const float* q, const float* k, const float* v, const Attention& attention);

/// softmax(q k^T / sqrt(d)) v of (heads, length, d), head by head: OpenBLAS's products on all cores and OpenMP's softmax between them. `scores` takes
/// length x length.
void attention_f32(float* out, const float* q, const float* k, const float* v, float* scores, std::int64_t heads, std::int64_t length, std::int64_t d,
                   bool causal);

}  // namespace clutch::bench::blas
