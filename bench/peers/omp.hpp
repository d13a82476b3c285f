// SPDX-License-Identifier: Apache-2.0
#pragma once
// The same by plain C++: OpenMP SIMD loops, -O3 -march=native, all cores.
#include <clutch/dtype.hpp>

#include <cstdint>
#include <memory>

namespace clutch::bench::omp {

/// Host memory on cache lines, first touched by the threads that use it.
class Buffer {
 public:
  explicit Buffer(std::uint64_t bytes);
  void* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(void* p) const;
  };
  std::unique_ptr<void, Free> data_;
};

/// Name of the peer, with its threads: "omp".
const char* name();

/// out = fma(value, a / b, x), or fma(value, a * b, x); f16 and bf16 compute in f32.
void addcdiv(DType dtype, void* out, const void* x, const void* a, const void* b, double value, long n);
void addcmul(DType dtype, void* out, const void* x, const void* a, const void* b, double value, long n);
void copy(void* out, const void* in, long bytes);
void fill_f32(float* out, float value, long n);
/// f32 to dtype, or dtype f32 from f16 where the pair says so.
void cast(DType from, DType to, void* out, const void* in, long n);

/// out[i, :] = sum, mean, amax or amin of values[k] * data[columns[k], :] over row i; columns and values may be null.
void segments_f32(std::string_view name, float* out, const float* data, const std::int64_t* offsets, const std::int64_t* columns, const float* values,
                  long rows, long features);
/// out[index[k], :] += src[k, :], each thread taking its share of the features in turn where there are many, else with atomic adds.
void scatter_sum_f32(float* out, const float* src, const std::int64_t* index, long entries, long features);
/// Sums up to each element along each of `lines` lines of m elements, `inner` apart: lines in parallel.
void cumsum_f32(float* out, const float* x, long lines, long m, long inner);
/// Each of `lines` lines of m elements by std::stable_sort of values with their places: lines in parallel, or parts of a line, which are then merged.
void stable_sort_f32(float* values, std::int64_t* indices, const float* x, long lines, long m);

}  // namespace clutch::bench::omp
