// SPDX-License-Identifier: Apache-2.0
// The host's own limits, to cross-check what the device's kernels reach on a CPU device. Built for this machine.
#include "harness/bench.hpp"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>

namespace clutch::bench {

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Sixteen chains of 64-byte vectors, which covers latency times ports of today's cores; wider than the machine's vectors
/// the compiler splits them.
template <class T>
double fma_chains() {
  typedef T Vector __attribute__((vector_size(64)));
  constexpr int kChains = 12, kLanes = 64 / sizeof(T);
  constexpr long kSteps = 1 << 18;
  double best = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    double begin = now();
    T keep = 0;
#pragma omp parallel reduction(+ : keep)
    {
      Vector x[kChains];
      for (int i = 0; i < kChains; ++i) x[i] = Vector{} + static_cast<T>(i);
      Vector a = Vector{} + static_cast<T>(0.999), b = Vector{} + static_cast<T>(0.001);
      for (long s = 0; s < kSteps; ++s)
#pragma GCC unroll 12
        for (int i = 0; i < kChains; ++i)
#pragma GCC unroll 16
          for (int k = 0; k < kLanes; ++k) x[i][k] = x[i][k] * a[k] + b[k];  // contracted to fma
      for (int i = 0; i < kChains; ++i)
        for (int k = 0; k < kLanes; ++k) keep += x[i][k];
    }
    double t = now() - begin;
    volatile T sink = keep;
    (void)sink;
    best = std::max(best, 2.0 * kChains * kLanes * static_cast<double>(kSteps) * omp_get_max_threads() / t);
  }
  return best;
}

}  // namespace

double host_triad(double bytes) {
  auto n = static_cast<long>(bytes / 12);
  auto allocate = [&] {
    return std::unique_ptr<float, decltype(&std::free)>(static_cast<float*>(std::aligned_alloc(64, static_cast<std::size_t>((n * 4 + 63) / 64 * 64))),
                                                        std::free);
  };
  auto a = allocate(), b = allocate(), c = allocate();
  float *pa = a.get(), *pb = b.get(), *pc = c.get();
#pragma omp parallel for simd schedule(static)
  for (long i = 0; i < n; ++i) pa[i] = 0, pb[i] = 1, pc[i] = 2;
  double best = 0;
  for (int attempt = 0; attempt < 7; ++attempt) {
    double begin = now();
#pragma omp parallel for simd schedule(static)
    for (long i = 0; i < n; ++i) pa[i] = pb[i] + 3.0f * pc[i];
    best = std::max(best, 12.0 * static_cast<double>(n) / (now() - begin));
  }
  return best;
}

double host_fma_f32() { return fma_chains<float>(); }
double host_fma_f64() { return fma_chains<double>(); }

}  // namespace clutch::bench
