// SPDX-License-Identifier: Apache-2.0
#include "peers/omp.hpp"

#include "peers/bf16.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include <omp.h>

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace clutch::bench::omp {

namespace {

// Below this a second thread costs more than it brings; measured with `clutch-bench --sweep --filter addcdiv`.
constexpr long kParallel = 32768;

template <class T>
T* as(void* p) {
  return static_cast<T*>(p);
}
template <class T>
const T* as(const void* p) {
  return static_cast<const T*>(p);
}

template <class T, bool kDivide>
void addc(T* out, const T* x, const T* a, const T* b, T value, long n) {
#pragma omp parallel for simd schedule(static) if (n >= kParallel)
  for (long i = 0; i < n; ++i) out[i] = __builtin_fma(value, kDivide ? a[i] / b[i] : a[i] * b[i], x[i]);
}
template <bool kDivide>
void addc(float* out, const float* x, const float* a, const float* b, float value, long n) {
#pragma omp parallel for simd schedule(static) if (n >= kParallel)
  for (long i = 0; i < n; ++i) out[i] = __builtin_fmaf(value, kDivide ? a[i] / b[i] : a[i] * b[i], x[i]);
}

template <bool kDivide>
void addc_bf16(Bf16* out, const Bf16* x, const Bf16* a, const Bf16* b, float value, long n) {
#pragma omp parallel for simd schedule(static) if (n >= kParallel)
  for (long i = 0; i < n; ++i) {
    float q = kDivide ? static_cast<float>(a[i]) / static_cast<float>(b[i]) : static_cast<float>(a[i]) * static_cast<float>(b[i]);
    out[i] = Bf16::of(__builtin_fmaf(value, q, static_cast<float>(x[i])));
  }
}

// The compiler does not vectorise _Float16 conversions, the machine's own instructions do.
#if defined(__AVX512F__)
constexpr long kHalves = 16;
using Halves = __m512;
Halves load_halves(const std::uint16_t* p) { return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
void store_halves(std::uint16_t* p, Halves v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT)); }
#elif defined(__F16C__)
constexpr long kHalves = 8;
using Halves = __m256;
Halves load_halves(const std::uint16_t* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
void store_halves(std::uint16_t* p, Halves v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT)); }
#else
constexpr long kHalves = 1;
using Halves = float;
Halves load_halves(const std::uint16_t* p) { return static_cast<float>(std::bit_cast<_Float16>(*p)); }
void store_halves(std::uint16_t* p, Halves v) { *p = std::bit_cast<std::uint16_t>(static_cast<_Float16>(v)); }
#endif

template <bool kDivide>
void addc_f16(std::uint16_t* out, const std::uint16_t* x, const std::uint16_t* a, const std::uint16_t* b, float value, long n) {
#pragma omp parallel for schedule(static) if (n >= kParallel)
  for (long i = 0; i < n / kHalves; ++i) {
    long k = i * kHalves;
    Halves va = load_halves(a + k), vb = load_halves(b + k), vx = load_halves(x + k);
    Halves q = kDivide ? va / vb : va * vb;
    store_halves(out + k, value * q + vx);  // contracted to fma by -ffp-contract=fast below
  }
  for (long k = n / kHalves * kHalves; k < n; ++k) {
    float va = static_cast<float>(std::bit_cast<_Float16>(a[k])), vb = static_cast<float>(std::bit_cast<_Float16>(b[k]));
    float r = __builtin_fmaf(value, kDivide ? va / vb : va * vb, static_cast<float>(std::bit_cast<_Float16>(x[k])));
    out[k] = std::bit_cast<std::uint16_t>(static_cast<_Float16>(r));
  }
}

template <bool kDivide>
void addc_of(DType dtype, void* out, const void* x, const void* a, const void* b, double value, long n) {
  auto v = static_cast<float>(value);
  switch (dtype) {
    case DType::f32: return addc<kDivide>(as<float>(out), as<float>(x), as<float>(a), as<float>(b), v, n);
    case DType::f64: return addc<double, kDivide>(as<double>(out), as<double>(x), as<double>(a), as<double>(b), value, n);
    case DType::bf16: return addc_bf16<kDivide>(as<Bf16>(out), as<Bf16>(x), as<Bf16>(a), as<Bf16>(b), v, n);
    case DType::f16: return addc_f16<kDivide>(as<std::uint16_t>(out), as<std::uint16_t>(x), as<std::uint16_t>(a), as<std::uint16_t>(b), v, n);
    default: throw std::logic_error("omp peer: dtype");
  }
}

}  // namespace

void Buffer::Free::operator()(void* p) const { std::free(p); }

Buffer::Buffer(std::uint64_t bytes) : data_(std::aligned_alloc(64, (std::max<std::uint64_t>(bytes, 64) + 63) / 64 * 64)) {
  auto* p = static_cast<char*>(data_.get());
  auto n = static_cast<long>(bytes);
#pragma omp parallel for schedule(static) if (n >= kParallel)
  for (long i = 0; i < n; ++i) p[i] = 0;
}

const char* name() { return "omp"; }

void addcdiv(DType dtype, void* out, const void* x, const void* a, const void* b, double value, long n) { addc_of<true>(dtype, out, x, a, b, value, n); }
void addcmul(DType dtype, void* out, const void* x, const void* a, const void* b, double value, long n) { addc_of<false>(dtype, out, x, a, b, value, n); }

void copy(void* out, const void* in, long bytes) {
  auto* to = as<std::uint32_t>(out);
  const auto* from = as<std::uint32_t>(in);
  long n = bytes / 4;
#pragma omp parallel for simd schedule(static) if (n >= kParallel)
  for (long i = 0; i < n; ++i) to[i] = from[i];
  std::memcpy(to + n, from + n, static_cast<std::size_t>(bytes % 4));
}

void fill_f32(float* out, float value, long n) {
#pragma omp parallel for simd schedule(static) if (n >= kParallel)
  for (long i = 0; i < n; ++i) out[i] = value;
}

void cast(DType from, DType to, void* out, const void* in, long n) {
  if (from == DType::f32 && to == DType::bf16) {
#pragma omp parallel for simd schedule(static) if (n >= kParallel)
    for (long i = 0; i < n; ++i) as<Bf16>(out)[i] = Bf16::of(as<float>(in)[i]);
  } else if (from == DType::f32 && to == DType::f64) {
#pragma omp parallel for simd schedule(static) if (n >= kParallel)
    for (long i = 0; i < n; ++i) as<double>(out)[i] = static_cast<double>(as<float>(in)[i]);
    // clang-tidy sees no difference between loops that OpenMP shares.
  } else if (from == DType::f32 && to == DType::f16) {  // NOLINT(bugprone-branch-clone)
#pragma omp parallel for schedule(static) if (n >= kParallel)
    for (long i = 0; i < n / kHalves; ++i) {
      Halves v;
      std::memcpy(&v, as<float>(in) + i * kHalves, sizeof v);
      store_halves(as<std::uint16_t>(out) + i * kHalves, v);
    }
  } else if (from == DType::f16 && to == DType::f32) {
#pragma omp parallel for schedule(static) if (n >= kParallel)
    for (long i = 0; i < n / kHalves; ++i) {
      Halves v = load_halves(as<std::uint16_t>(in) + i * kHalves);
      std::memcpy(as<float>(out) + i * kHalves, &v, sizeof v);
    }
  } else {
    throw std::logic_error("omp peer: cast");
  }
}

namespace {

template <class Step>
void each_segment(float first, bool divides, float* out, const float* data, const std::int64_t* offsets, const std::int64_t* columns, const float* values,
                  long rows, long features, Step&& step) {
#pragma omp parallel for schedule(dynamic, 64)
  for (long i = 0; i < rows; ++i) {
    float* to = out + i * features;
    long begin = offsets[i], end = offsets[i + 1];
    for (long f = 0; f < features; ++f) to[f] = begin < end ? first : 0;
    for (long k = begin; k < end; ++k) {
      const float* from = data + (columns ? columns[k] : k) * features;
      float value = values ? values[k] : 1;
#pragma omp simd
      for (long f = 0; f < features; ++f) to[f] = step(to[f], from[f] * value);
    }
    if (divides && begin < end)
      for (long f = 0; f < features; ++f) to[f] /= static_cast<float>(end - begin);
  }
}

}  // namespace

void segments_f32(std::string_view name, float* out, const float* data, const std::int64_t* offsets, const std::int64_t* columns, const float* values,
                  long rows, long features) {
  if (name == "amax")
    each_segment(-3e38f, false, out, data, offsets, columns, values, rows, features, [](float a, float b) { return a > b ? a : b; });
  else if (name == "amin")
    each_segment(3e38f, false, out, data, offsets, columns, values, rows, features, [](float a, float b) { return a < b ? a : b; });
  else
    each_segment(0, name == "mean", out, data, offsets, columns, values, rows, features, [](float a, float b) { return a + b; });
}

void scatter_sum_f32(float* out, const float* src, const std::int64_t* index, long entries, long features) {
  if (features == 1) {
#pragma omp parallel for schedule(static)
    for (long k = 0; k < entries; ++k) {
#pragma omp atomic
      out[index[k]] += src[k];
    }
    return;
  }
#pragma omp parallel
  {
    long threads = omp_get_num_threads(), mine = omp_get_thread_num();
    long first = features * mine / threads, last = features * (mine + 1) / threads;
    for (long k = 0; k < entries; ++k) {
      float* to = out + index[k] * features;
      const float* from = src + k * features;
      for (long f = first; f < last; ++f) to[f] += from[f];
    }
  }
}

void cumsum_f32(float* out, const float* x, long lines, long m, long inner) {
  if (inner == 1) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < lines; ++i) {
      float sum = 0;
      for (long j = 0; j < m; ++j) out[i * m + j] = sum += x[i * m + j];
    }
    return;
  }
#pragma omp parallel for schedule(static)
  for (long i = 0; i < inner; i += 64) {
    float sum[64] = {};
    long width = std::min(64L, inner - i);
    for (long j = 0; j < m; ++j)
      for (long c = 0; c < width; ++c) out[j * inner + i + c] = sum[c] += x[j * inner + i + c];
  }
}

void stable_sort_f32(float* values, std::int64_t* indices, const float* x, long lines, long m) {
  using Entry = std::pair<float, std::int32_t>;
  std::vector<Entry> entries(static_cast<std::size_t>(lines) * static_cast<std::size_t>(m));
  const auto less = [](const Entry& a, const Entry& b) { return a.first < b.first; };
  const long parts = lines > 1 ? 1 : omp_get_max_threads(), each = (m + parts - 1) / parts;
#pragma omp parallel for schedule(static)
  for (long task = 0; task < lines * parts; ++task) {
    const long line = task / parts, begin = std::min(m, task % parts * each), end = std::min(m, begin + each);
    Entry* const of_line = entries.data() + line * m;
    for (long j = begin; j < end; ++j) of_line[j] = {x[line * m + j], static_cast<std::int32_t>(j)};
    std::stable_sort(of_line + begin, of_line + end, less);
  }
  for (long done = each; parts > 1 && done < m; done += each)
    std::inplace_merge(entries.data(), entries.data() + done, entries.data() + std::min(m, done + each), less);
#pragma omp parallel for schedule(static)
  for (long i = 0; i < lines * m; ++i) values[i] = entries[static_cast<std::size_t>(i)].first, indices[i] = entries[static_cast<std::size_t>(i)].second;
}

}  // namespace clutch::bench::omp
