// SPDX-License-Identifier: Apache-2.0
#include "peers/omp_math.hpp"

#include <cmath>
#include <stdexcept>

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

}  // namespace clutch::bench::omp
