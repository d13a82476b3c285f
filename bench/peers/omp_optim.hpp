// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

namespace clutch::bench::omp {

/// Arrays of one parameter: bf16 or f32 by what the call says; states that the optimizer has not are null.
struct OptimArrays {
  void* p;
  const void* g;
  void* s[2];
  float* master;
  long n;
};
struct OptimScalars {
  float lr, a, b, eps, weight_decay;
  int t;
};
enum class OptimTypes { f32, bf16, bf16_master };

/// A step of sgd (with momentum), adam, adamw, adagrad or rmsprop by one SIMD loop over the cores, contracted as the compiler likes.
void optim_step(std::string_view optimizer, OptimTypes types, const OptimArrays& arrays, const OptimScalars& scalars);

}  // namespace clutch::bench::omp
