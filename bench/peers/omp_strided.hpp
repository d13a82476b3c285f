// SPDX-License-Identifier: Apache-2.0
#pragma once
// Strided tensors as a C++ programmer would walk them: OpenMP loops, -O3 -march=native -ffast-math, all cores.
#include <array>
#include <cstdint>
#include <string_view>

namespace clutch::bench::omp {

using Three = std::array<long, 3>;

/// out (contiguous) = in, elements of 1, 2, 4 or 8 bytes.
void copy_strided(int bytes, void* out, const void* in, const Three& sizes, const Three& strides);
/// out (contiguous) = a + b, a * b, or exp(a), silu(a); false if there is no such loop.
bool map_strided_f32(std::string_view name, float* out, const float* a, const std::array<long, 2>& a_strides, const float* b,
                     const std::array<long, 2>& b_strides, long rows, long columns);
/// sum, amax or norm over the dimensions that `gone` has bits of, of f32 or, as raw bits, bf16; the last stride is 1.
void reduce_strided(std::string_view name, bool is_bf16, float* out, const void* x, const Three& sizes, const Three& strides, int gone);
/// softmax or log_softmax of each column.
void softmax_columns_f32(bool log, float* out, const float* x, long rows, long columns);
/// out[k, :] = table[index[k], :].
void gather_rows_f32(float* out, const float* table, const std::int64_t* index, long entries, long features);

}  // namespace clutch::bench::omp
