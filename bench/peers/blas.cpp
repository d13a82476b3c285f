// SPDX-License-Identifier: Apache-2.0
#include "peers/blas.hpp"
#include "peers/omp_math.hpp"

#include <cblas.h>
#include <omp.h>

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
