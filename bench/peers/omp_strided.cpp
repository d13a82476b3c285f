// SPDX-License-Identifier: Apache-2.0
#include "peers/omp_strided.hpp"

#include "peers/bf16.hpp"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace clutch::bench::omp {
namespace {

// As in omp.cpp.
constexpr long kParallel = 32768;

template <class T>
void copy_of(T* out, const T* in, const Three& n, const Three& s) {
#pragma omp parallel for collapse(2) schedule(static) if (n[0] * n[1] * n[2] >= kParallel)
  for (long i = 0; i < n[0]; ++i)
    for (long j = 0; j < n[1]; ++j) {
      T* to = out + (i * n[1] + j) * n[2];
      const T* from = in + i * s[0] + j * s[1];
      if (s[2] == 1)
        std::memcpy(to, from, static_cast<std::size_t>(n[2]) * sizeof(T));
      else
        for (long k = 0; k < n[2]; ++k) to[k] = from[k * s[2]];
    }
}

template <class F>
void map_of(float* out, const float* a, const std::array<long, 2>& sa, const float* b, const std::array<long, 2>& sb, long rows, long columns, F f) {
#pragma omp parallel for schedule(static) if (rows * columns >= kParallel)
  for (long i = 0; i < rows; ++i) {
    float* to = out + i * columns;
    const float *x = a + i * sa[0], *y = b + i * sb[0];
    // Each a loop of its own, which compilers make vectors of.
    if (sa[1] == 1 && sb[1] == 1) {  // NOLINT(bugprone-branch-clone)
#pragma omp simd
      for (long j = 0; j < columns; ++j) to[j] = f(x[j], y[j]);
    } else if (sa[1] == 1 && sb[1] == 0) {
#pragma omp simd
      for (long j = 0; j < columns; ++j) to[j] = f(x[j], y[0]);
    } else {
#pragma omp simd
      for (long j = 0; j < columns; ++j) to[j] = f(x[j * sa[1]], y[j * sb[1]]);
    }
  }
}

struct Sum {
  static constexpr float kFirst = 0;
  static float step(float acc, float x) { return acc + x; }
  static float both(float a, float b) { return a + b; }
  static float last(float a) { return a; }
};
struct Largest {
  static constexpr float kFirst = -3e38f;
  static float step(float acc, float x) { return acc > x ? acc : x; }
  static float both(float a, float b) { return a > b ? a : b; }
  static float last(float a) { return a; }
};
struct Norm {
  static constexpr float kFirst = 0;
  static float step(float acc, float x) { return acc + x * x; }
  static float both(float a, float b) { return a + b; }
  static float last(float a) { return std::sqrt(a); }
};

/// One run of adjacent elements, in lanes that the compiler keeps in registers.
template <class Op, class T>
float run_of(const T* x, long n) {
  constexpr long kLanes = 64;
  float lanes[kLanes], acc = Op::kFirst;
  for (float& lane : lanes) lane = Op::kFirst;
  long k = 0;
  for (; k + kLanes <= n; k += kLanes)
    for (long l = 0; l < kLanes; ++l) lanes[l] = Op::step(lanes[l], static_cast<float>(x[k + l]));
  for (; k < n; ++k) acc = Op::step(acc, static_cast<float>(x[k]));
  for (float lane : lanes) acc = Op::both(acc, lane);
  return acc;
}

template <class Op, class T>
void reduce_of(float* out, const T* x, const Three& n, const Three& s, int gone) {
  const bool g0 = gone & 1, g1 = gone & 2, g2 = gone & 4;
  const long n0 = g0 ? 1 : n[0], n1 = g1 ? 1 : n[1], m0 = g0 ? n[0] : 1, m1 = g1 ? n[1] : 1, results = n0 * n1;
  const int threads = omp_get_max_threads();
  const bool big = n[0] * n[1] * n[2] >= kParallel;
  if (g2) {
    if (results >= threads) {
#pragma omp parallel for schedule(static) if (big)
      for (long r = 0; r < results; ++r) {
        float acc = Op::kFirst;
        for (long i = 0; i < m0; ++i)
          for (long j = 0; j < m1; ++j) acc = Op::both(acc, run_of<Op>(x + (r / n1 + i) * s[0] + (r % n1 + j) * s[1], n[2]));
        out[r] = Op::last(acc);
      }
      return;
    }
    // Few results: the rows of each are shared, or parts of one.
    const long rows = m0 * m1, parts = rows >= threads ? 1 : threads, each = (n[2] + parts - 1) / parts;
    for (long r = 0; r < results; ++r) {
      std::vector<float> made(static_cast<std::size_t>(threads), Op::kFirst);
#pragma omp parallel for schedule(static) if (big)
      for (long t = 0; t < rows * parts; ++t) {
        const long row = t / parts, begin = std::min(n[2], t % parts * each), end = std::min(n[2], begin + each);
        float& acc = made[static_cast<std::size_t>(omp_get_thread_num())];
        acc = Op::both(acc, run_of<Op>(x + (r / n1 + row / m1) * s[0] + (r % n1 + row % m1) * s[1] + begin, end - begin));
      }
      float acc = Op::kFirst;
      for (float part : made) acc = Op::both(acc, part);
      out[r] = Op::last(acc);
    }
    return;
  }
  // Columns: panels of the last dimension go down the rows.
  constexpr long kPanel = 256;
  const long panels = (n[2] + kPanel - 1) / kPanel;
#pragma omp parallel for schedule(static) if (big)
  for (long t = 0; t < results * panels; ++t) {
    const long r = t / panels, first = t % panels * kPanel, width = std::min(kPanel, n[2] - first);
    float acc[kPanel];
    for (float& a : acc) a = Op::kFirst;
    for (long i = 0; i < m0; ++i)
      for (long j = 0; j < m1; ++j) {
        const T* row = x + (r / n1 + i) * s[0] + (r % n1 + j) * s[1] + first;
#pragma omp simd
        for (long k = 0; k < width; ++k) acc[k] = Op::step(acc[k], static_cast<float>(row[k]));
      }
    for (long k = 0; k < width; ++k) out[r * n[2] + first + k] = Op::last(acc[k]);
  }
}

template <class T>
void reduce_named(std::string_view name, float* out, const T* x, const Three& sizes, const Three& strides, int gone) {
  if (name == "sum") return reduce_of<Sum>(out, x, sizes, strides, gone);
  if (name == "amax") return reduce_of<Largest>(out, x, sizes, strides, gone);
  reduce_of<Norm>(out, x, sizes, strides, gone);
}

}  // namespace

void copy_strided(int bytes, void* out, const void* in, const Three& sizes, const Three& strides) {
  if (bytes == 1) return copy_of(static_cast<std::uint8_t*>(out), static_cast<const std::uint8_t*>(in), sizes, strides);
  if (bytes == 2) return copy_of(static_cast<std::uint16_t*>(out), static_cast<const std::uint16_t*>(in), sizes, strides);
  if (bytes == 4) return copy_of(static_cast<std::uint32_t*>(out), static_cast<const std::uint32_t*>(in), sizes, strides);
  copy_of(static_cast<std::uint64_t*>(out), static_cast<const std::uint64_t*>(in), sizes, strides);
}

bool map_strided_f32(std::string_view name, float* out, const float* a, const std::array<long, 2>& sa, const float* b, const std::array<long, 2>& sb, long rows,
                     long columns) {
  auto with = [&](auto f) {
    map_of(out, a, sa, b, sb, rows, columns, f);
    return true;
  };
  if (name == "add") return with([](float x, float y) { return x + y; });
  if (name == "mul") return with([](float x, float y) { return x * y; });
  if (name == "exp") return with([](float x, float) { return std::exp(x); });
  if (name == "silu") return with([](float x, float) { return x / (1 + std::exp(-x)); });
  return false;
}

void reduce_strided(std::string_view name, bool is_bf16, float* out, const void* x, const Three& sizes, const Three& strides, int gone) {
  if (is_bf16)
    reduce_named(name, out, static_cast<const Bf16*>(x), sizes, strides, gone);
  else
    reduce_named(name, out, static_cast<const float*>(x), sizes, strides, gone);
}

void softmax_columns_f32(bool log, float* out, const float* x, long rows, long columns) {
  constexpr long kPanel = 64;
#pragma omp parallel for schedule(static) if (rows * columns >= kParallel)
  for (long c = 0; c < columns; c += kPanel) {
    const long width = std::min(kPanel, columns - c);
    float top[kPanel], total[kPanel];
    for (long k = 0; k < kPanel; ++k) top[k] = -3e38f, total[k] = 0;
    for (long r = 0; r < rows; ++r) {
#pragma omp simd
      for (long k = 0; k < width; ++k) top[k] = std::max(top[k], x[r * columns + c + k]);
    }
    for (long r = 0; r < rows; ++r) {
#pragma omp simd
      for (long k = 0; k < width; ++k) {
        const float y = std::exp(x[r * columns + c + k] - top[k]);
        total[k] += y;
        if (!log) out[r * columns + c + k] = y;
      }
    }
    for (long k = 0; k < width; ++k) total[k] = log ? std::log(total[k]) + top[k] : 1 / total[k];
    for (long r = 0; r < rows; ++r) {
#pragma omp simd
      for (long k = 0; k < width; ++k) {
        float& y = out[r * columns + c + k];
        y = log ? x[r * columns + c + k] - total[k] : y * total[k];
      }
    }
  }
}

void gather_rows_f32(float* out, const float* table, const std::int64_t* index, long entries, long features) {
#pragma omp parallel for schedule(static) if (entries * features >= kParallel)
  for (long k = 0; k < entries; ++k) std::memcpy(out + k * features, table + index[k] * features, static_cast<std::size_t>(features) * sizeof(float));
}

}  // namespace clutch::bench::omp
