// SPDX-License-Identifier: Apache-2.0
#include "peers/omp_optim.hpp"

#include "peers/bf16.hpp"

#include <cmath>
#include <type_traits>

namespace clutch::bench::omp {

namespace {

constexpr long kParallel = 16384;

template <class T>
T narrowed(float x) {
  if constexpr (std::is_same_v<T, float>)
    return x;
  else
    return T::of(x);
}

/// f(g, p, s0, s1) steps one element.
template <class P, class S, bool kMaster, int kStates, class F>
void walk(const OptimArrays& arrays, F f) {
  P* p = static_cast<P*>(arrays.p);
  const P* g = static_cast<const P*>(arrays.g);
  S *s0 = static_cast<S*>(arrays.s[0]), *s1 = static_cast<S*>(arrays.s[1]);
  float* master = arrays.master;
  const long n = arrays.n;
#pragma omp parallel for simd schedule(static) if (n >= kParallel)
  for (long i = 0; i < n; ++i) {
    float x = kMaster ? master[i] : static_cast<float>(p[i]), a = kStates > 0 ? static_cast<float>(s0[i]) : 0, b = kStates > 1 ? static_cast<float>(s1[i]) : 0;
    f(static_cast<float>(g[i]), x, a, b);
    if (kMaster) master[i] = x;
    p[i] = narrowed<P>(x);
    if (kStates > 0) s0[i] = narrowed<S>(a);
    if (kStates > 1) s1[i] = narrowed<S>(b);
  }
}

template <int kStates, class F>
void walk_of(OptimTypes types, const OptimArrays& arrays, F f) {
  if (types == OptimTypes::f32) return walk<float, float, false, kStates>(arrays, f);
  if (types == OptimTypes::bf16) return walk<Bf16, Bf16, false, kStates>(arrays, f);
  walk<Bf16, float, true, kStates>(arrays, f);
}

}  // namespace

void optim_step(std::string_view optimizer, OptimTypes types, const OptimArrays& arrays, const OptimScalars& k) {
  const float lr = k.lr, a = k.a, b = k.b, eps = k.eps, wd = k.weight_decay;
  if (optimizer == "sgd")
    return walk_of<1>(types, arrays, [=](float g, float& p, float& s0, float&) {
      g += wd * p;
      s0 = a * s0 + g;
      p -= lr * s0;
    });
  if (optimizer == "adagrad")
    return walk_of<1>(types, arrays, [=](float g, float& p, float& s0, float&) {
      g += wd * p;
      s0 += g * g;
      p -= lr * g / (std::sqrt(s0) + eps);
    });
  if (optimizer == "rmsprop")
    return walk_of<1>(types, arrays, [=](float g, float& p, float& s0, float&) {
      g += wd * p;
      s0 = a * s0 + (1 - a) * g * g;
      p -= lr * g / (std::sqrt(s0) + eps);
    });
  const bool decoupled = optimizer == "adamw";
  const float step_size = lr / (1 - std::pow(a, static_cast<float>(k.t))), correction = std::sqrt(1 - std::pow(b, static_cast<float>(k.t)));
  const float keep = decoupled ? 1 - lr * wd : 1, added = decoupled ? 0 : wd;
  walk_of<2>(types, arrays, [=](float g, float& p, float& s0, float& s1) {
    p *= keep;
    g += added * p;
    s0 += (1 - a) * (g - s0);
    s1 = b * s1 + (1 - b) * g * g;
    p -= step_size * s0 / (std::sqrt(s1) / correction + eps);
  });
}

}  // namespace clutch::bench::omp
