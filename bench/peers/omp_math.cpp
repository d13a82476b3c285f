// SPDX-License-Identifier: Apache-2.0
#include "peers/omp_math.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace clutch::bench::omp {
namespace {

// As in omp.cpp.
constexpr long kParallel = 32768;

#define CLUTCH_LOOP(expression)                                                                          \
  {                                                                                                      \
    _Pragma("omp parallel for simd schedule(static) if (n >= kParallel)") for (long i = 0; i < n; ++i) { \
      const T x = a[i], y = b[i];                                                                        \
      (void)y;                                                                                           \
      out[i] = expression;                                                                               \
    }                                                                                                    \
    return true;                                                                                         \
  }

template <class T>
bool math(std::string_view name, T* out, const T* a, const T* b, long n) {
  if (name == "add") CLUTCH_LOOP(x + y)
  if (name == "mul") CLUTCH_LOOP(x * y)
  if (name == "div") CLUTCH_LOOP(x / y)
  if (name == "exp") CLUTCH_LOOP(std::exp(x))
  if (name == "log") CLUTCH_LOOP(std::log(x))
  if (name == "tanh") CLUTCH_LOOP(std::tanh(x))
  if (name == "sigmoid") CLUTCH_LOOP(1 / (1 + std::exp(-x)))
  if (name == "erf") CLUTCH_LOOP(std::erf(x))
  if (name == "sin") CLUTCH_LOOP(std::sin(x))
  if (name == "pow") CLUTCH_LOOP(std::pow(x, y))
  if (name == "gelu") CLUTCH_LOOP(x * T(0.5) * (1 + std::erf(x * T(M_SQRT1_2))))
  if (name == "silu") CLUTCH_LOOP(x / (1 + std::exp(-x)))
  if (name == "relu") CLUTCH_LOOP(x > 0 ? x : 0)
  return false;
}

template <int kOps>
bool chain(float* out, const float* a, const float* b, long n) {
  using T = float;
  auto steps = [](float x, float y) {
    for (int k = 0; k < kOps; ++k) x = k % 2 == 0 ? x * y : x + y;
    return x;
  };
  CLUTCH_LOOP(steps(x, y))
}

}  // namespace

bool math_f32(std::string_view name, float* out, const float* a, const float* b, long n) { return math(name, out, a, b, n); }
bool math_f64(std::string_view name, double* out, const double* a, const double* b, long n) { return math(name, out, a, b, n); }

void chain_f32(int ops, float* out, const float* a, const float* b, long n) {
  switch (ops) {
    case 1: chain<1>(out, a, b, n); break;
    case 2: chain<2>(out, a, b, n); break;
    case 4: chain<4>(out, a, b, n); break;
    case 8: chain<8>(out, a, b, n); break;
    default: throw std::logic_error("omp peer: chain");
  }
}

namespace {

/// One pass over n elements with all cores (as a row of its own, with one).
#define CLUTCH_PRAGMA(text) _Pragma(#text)
#define CLUTCH_FOLD(name, first, operation, with)                                                                                   \
  float name(const float* x, long n, bool parallel, float shift) {                                                                  \
    float total = first;                                                                                                            \
    (void)shift;                                                                                                                    \
    if (parallel && n >= kParallel) {                                                                                               \
      CLUTCH_PRAGMA(omp parallel for simd schedule(static) reduction(operation : total)) for (long i = 0; i < n; ++i) total = with; \
    } else {                                                                                                                        \
      CLUTCH_PRAGMA(omp simd reduction(operation : total)) for (long i = 0; i < n; ++i) total = with;                               \
    }                                                                                                                               \
    return total;                                                                                                                   \
  }
CLUTCH_FOLD(sum_of, 0, +, total + x[i])
CLUTCH_FOLD(sum_of_squares, 0, +, total + x[i] * x[i])
CLUTCH_FOLD(sum_of_distances, 0, +, total + (x[i] - shift) * (x[i] - shift))
CLUTCH_FOLD(sum_of_exp, 0, +, total + std::exp(x[i] - shift))
CLUTCH_FOLD(largest_of, -3e38f, max, total > x[i] ? total : x[i])

float one_row(std::string_view name, const float* x, long n, bool parallel) {
  if (name == "sum") return sum_of(x, n, parallel, 0);
  if (name == "amax") return largest_of(x, n, parallel, 0);
  if (name == "norm") return std::sqrt(sum_of_squares(x, n, parallel, 0));
  if (name == "var") return sum_of_distances(x, n, parallel, sum_of(x, n, parallel, 0) / static_cast<float>(n)) / static_cast<float>(n - 1);
  float top = largest_of(x, n, parallel, 0);
  return std::log(sum_of_exp(x, n, parallel, top)) + top;
}

/// Column results: each thread takes a panel of columns and goes down it.
void columns_of(std::string_view name, float* out, const float* x, long rows, long columns) {
  constexpr long kPanel = 256;
#pragma omp parallel for schedule(static)
  for (long c = 0; c < columns; c += kPanel) {
    long width = columns - c < kPanel ? columns - c : kPanel;
    float a[kPanel], b[kPanel];
    bool maximum = name == "amax" || name == "logsumexp";
    for (long k = 0; k < kPanel; ++k) a[k] = maximum ? -3e38f : 0, b[k] = 0;
    for (long r = 0; r < rows; ++r) {
      const float* row = x + r * columns + c;
      // clang-tidy sees no difference between loops of OpenMP.
      if (maximum) {  // NOLINT(bugprone-branch-clone)
#pragma omp simd
        for (long k = 0; k < width; ++k) a[k] = a[k] > row[k] ? a[k] : row[k];
      } else if (name == "norm") {
#pragma omp simd
        for (long k = 0; k < width; ++k) a[k] += row[k] * row[k];
      } else {
#pragma omp simd
        for (long k = 0; k < width; ++k) a[k] += row[k];
      }
    }
    if (name == "var" || name == "logsumexp")
      for (long r = 0; r < rows; ++r) {
        const float* row = x + r * columns + c;
        if (name == "var") {
#pragma omp simd
          for (long k = 0; k < width; ++k) b[k] += (row[k] - a[k] / static_cast<float>(rows)) * (row[k] - a[k] / static_cast<float>(rows));
        } else {
#pragma omp simd
          for (long k = 0; k < width; ++k) b[k] += std::exp(row[k] - a[k]);
        }
      }
    for (long k = 0; k < width; ++k)
      out[c + k] = name == "norm" ? std::sqrt(a[k]) : name == "var" ? b[k] / static_cast<float>(rows - 1) : name == "logsumexp" ? std::log(b[k]) + a[k] : a[k];
  }
}

}  // namespace

void reduce_f32(std::string_view name, float* out, const float* x, long rows, long columns, int dims) {
  if (dims == 2) {
    out[0] = one_row(name, x, rows * columns, true);
  } else if (dims == 1) {
#pragma omp parallel for schedule(static)
    for (long r = 0; r < rows; ++r) out[r] = one_row(name, x + r * columns, columns, false);
  } else {
    columns_of(name, out, x, rows, columns);
  }
}

namespace {

template <class F>
bool each_row(float* out, const float* x, long rows, long columns, F&& f) {
#pragma omp parallel for schedule(static) if (rows * columns >= kParallel)
  for (long r = 0; r < rows; ++r) f(out + r * columns, x + r * columns, columns);
  return true;
}

}  // namespace

bool rows_f32(std::string_view name, float* out, const float* x, long rows, long columns) {
  if (name == "softmax")
    return each_row(out, x, rows, columns, [](float* y, const float* a, long n) {
      float top = largest_of(a, n, false, 0), total = 0;
#pragma omp simd reduction(+ : total)
      for (long j = 0; j < n; ++j) total += y[j] = std::exp(a[j] - top);
      float factor = 1 / total;
#pragma omp simd
      for (long j = 0; j < n; ++j) y[j] *= factor;
    });
  if (name == "log_softmax")
    return each_row(out, x, rows, columns, [](float* y, const float* a, long n) {
      float top = largest_of(a, n, false, 0), shift = std::log(sum_of_exp(a, n, false, top)) + top;
#pragma omp simd
      for (long j = 0; j < n; ++j) y[j] = a[j] - shift;
    });
  if (name == "layer_norm" || name == "rms_norm")
    return each_row(out, x, rows, columns, [centers = name == "layer_norm"](float* y, const float* a, long n) {
      float mean = centers ? sum_of(a, n, false, 0) / static_cast<float>(n) : 0;
      float factor = 1 / std::sqrt(sum_of_distances(a, n, false, mean) / static_cast<float>(n) + 1e-5f);
#pragma omp simd
      for (long j = 0; j < n; ++j) y[j] = (a[j] - mean) * factor;
    });
  return false;
}

void selective_scan_f32(float* y, const float* x, const float* delta, const float* gate, const float* a, const float* b, const float* c, const float* skip,
                        long length, long channels, long states) {
  constexpr long kLanes = 16;
#pragma omp parallel for schedule(static)
  for (long first = 0; first < channels; first += kLanes) {
    const long count = std::min(kLanes, channels - first);
    std::vector<float> rates(static_cast<std::size_t>(states * kLanes)), h(rates.size());
    for (long n = 0; n < states; ++n)
      for (long l = 0; l < count; ++l) rates[static_cast<std::size_t>(n * kLanes + l)] = a[(first + l) * states + n];
    for (long t = 0; t < length; ++t) {
      float step[kLanes] = {}, moved[kLanes] = {}, sum[kLanes] = {};
      const long at = t * channels + first;
#pragma omp simd
      for (long l = 0; l < count; ++l) {
        step[l] = std::log1p(std::exp(delta[at + l]));
        moved[l] = step[l] * x[at + l];
        sum[l] = skip[first + l] * x[at + l];
      }
      for (long n = 0; n < states; ++n) {
        float* const state = h.data() + n * kLanes;
        const float* const rate = rates.data() + n * kLanes;
        const float of_b = b[t * states + n], of_c = c[t * states + n];
#pragma omp simd
        for (long l = 0; l < kLanes; ++l) {
          state[l] = std::exp(step[l] * rate[l]) * state[l] + moved[l] * of_b;
          sum[l] += state[l] * of_c;
        }
      }
#pragma omp simd
      for (long l = 0; l < count; ++l) y[at + l] = sum[l] * gate[at + l] / (1 + std::exp(-gate[at + l]));
    }
  }
}

}  // namespace clutch::bench::omp
