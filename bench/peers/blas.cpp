// SPDX-License-Identifier: Apache-2.0
#include "peers/blas.hpp"
#include "peers/omp_math.hpp"

#include <cblas.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

namespace clutch::bench::blas {

const char* better_core() {
#if defined(__x86_64__)
  std::string_view core = openblas_get_corename();
  bool is_old = core == "Prescott" || core == "Core2" || core == "Nehalem" || core == "Generic";
  if (is_old && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) return "SKYLAKEX";
  if (is_old && __builtin_cpu_supports("avx2")) return "HASWELL";
#endif
  return nullptr;
}

Peer gemm_f32(float* c, const float* a, const float* b, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch) {
  return {fmt::format("openblas ({}), {} threads", openblas_get_corename(), omp_get_max_threads()), [=](int reps) {
            openblas_set_num_threads(omp_get_max_threads());
            auto rows = static_cast<int>(m), columns = static_cast<int>(n), depth = static_cast<int>(k);
            for (int r = 0; r < reps; ++r)
              for (std::int64_t i = 0; i < batch; ++i)
                cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, columns, depth, 1, a + i * m * k, depth, b + i * k * n, columns, 0, c + i * m * n,
                            columns);
          }};
}

Peer gemm(DType dtype, void* c, const void* a, const void* b, const Product& p, bool spread) {
  return {fmt::format("openblas{} ({}), {} threads", spread ? " spread" : "", openblas_get_corename(), omp_get_max_threads()), [=](int reps) {
            const auto rows = static_cast<int>(p.m), columns = static_cast<int>(p.n), depth = static_cast<int>(p.k);
            const CBLAS_TRANSPOSE of_a = p.a_transposed ? CblasTrans : CblasNoTrans, of_b = p.b_transposed ? CblasTrans : CblasNoTrans;
            const int lda = p.a_transposed ? rows : depth, ldb = p.b_transposed ? depth : columns;
            auto one = [&](std::int64_t i) {
              const std::int64_t at_a = i * p.m * p.k, at_b = i * p.k * p.n, at_c = i * p.m * p.n;
              if (dtype == DType::f64)
                cblas_dgemm(CblasRowMajor, of_a, of_b, rows, columns, depth, 1, static_cast<const double*>(a) + at_a, lda, static_cast<const double*>(b) + at_b,
                            ldb, 0, static_cast<double*>(c) + at_c, columns);
              else
                cblas_sgemm(CblasRowMajor, of_a, of_b, rows, columns, depth, 1, static_cast<const float*>(a) + at_a, lda, static_cast<const float*>(b) + at_b,
                            ldb, 0, static_cast<float*>(c) + at_c, columns);
            };
            openblas_set_num_threads(spread ? 1 : omp_get_max_threads());
            for (int r = 0; r < reps; ++r) {
              if (spread) {
#pragma omp parallel for schedule(static)
                for (std::int64_t i = 0; i < p.batch; ++i) one(i);
              } else {
                for (std::int64_t i = 0; i < p.batch; ++i) one(i);
              }
            }
            openblas_set_num_threads(omp_get_max_threads());  // what the library under test has, too
          }};
}

Peer attention_peer(float* out, const float* q, const float* k, const float* v, const Attention& s) {
  const std::int64_t heads = s.batch * s.heads * s.group;
  const bool spread = heads >= omp_get_max_threads();
  auto scores = std::make_shared<std::vector<float>>(static_cast<std::size_t>((spread ? omp_get_max_threads() : 1) * s.q_len * s.kv_len));
  return {fmt::format("openblas{}", spread ? " spread" : ""), [=](int reps) {
            const auto rows = static_cast<int>(s.q_len), keys = static_cast<int>(s.kv_len), size = static_cast<int>(s.d);
            const float scale = 1 / std::sqrt(static_cast<float>(s.d));
            auto one = [&](std::int64_t h) {
              float* p = scores->data() + (spread ? omp_get_thread_num() : 0) * s.q_len * s.kv_len;
              const std::int64_t of_q = h * s.q_len * s.d, of_kv = h / s.group * s.kv_len * s.d;
              cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, keys, size, scale, q + of_q, size, k + of_kv, size, 0, p, keys);
#pragma omp parallel for schedule(static) if (!spread)
              for (std::int64_t i = 0; i < s.q_len; ++i) {
                float* row = p + i * s.kv_len;
                const std::int64_t first = s.first(i), last = s.last(i);
                std::fill(row, row + first, 0.0f);
                if (first < last) omp::rows_f32("softmax", row + first, row + first, 1, last - first);
                std::fill(row + last, row + s.kv_len, 0.0f);
              }
              cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, size, keys, 1, p, keys, v + of_kv, size, 0, out + of_q, size);
            };
            openblas_set_num_threads(spread ? 1 : omp_get_max_threads());
            for (int r = 0; r < reps; ++r) {
              if (spread) {
#pragma omp parallel for schedule(static)
                for (std::int64_t h = 0; h < heads; ++h) one(h);
              } else {
                for (std::int64_t h = 0; h < heads; ++h) one(h);
              }
            }
            openblas_set_num_threads(omp_get_max_threads());  // what the library under test has, too
          }};
}

void attention_f32(float* out, const float* q, const float* k, const float* v, float* scores, std::int64_t heads, std::int64_t length, std::int64_t d,
                   bool causal) {
  openblas_set_num_threads(omp_get_max_threads());
  const auto l = static_cast<int>(length), size = static_cast<int>(d);
  const float scale = 1 / std::sqrt(static_cast<float>(d));
  for (std::int64_t h = 0; h < heads; ++h) {
    const std::int64_t at = h * length * d;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, l, l, size, scale, q + at, size, k + at, size, 0, scores, l);
    if (causal) {
#pragma omp parallel for
      for (std::int64_t i = 0; i < length; ++i)
        for (std::int64_t j = i + 1; j < length; ++j) scores[i * length + j] = -1e30f;
    }
    omp::rows_f32("softmax", scores, scores, length, length);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, l, size, l, 1, scores, l, v + at, size, 0, out + at, size);
  }
}

}  // namespace clutch::bench::blas
