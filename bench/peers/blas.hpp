// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "harness/rows.hpp"

#include <cstdint>

namespace clutch::bench::blas {

/// The kernels that OpenBLAS should take where it knows less of this CPU than that; null where it knows it.
const char* better_core();

/// OpenBLAS's product of row-major matrices on all cores; batched ones one after another.
Peer gemm_f32(float* c, const float* a, const float* b, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch);

}  // namespace clutch::bench::blas
