// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the optimizers compute, element by element, on the host.
#include <clutch/ops/optim.hpp>

#include "cases/random.hpp"
#include "support/host_model.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

namespace clutch::cases {

/// One element's step by the contract's formulas, from std::fma and the compiler's arithmetic alone.
struct OptimModel {
  enum class Kind { sgd, adam, adagrad, rmsprop };
  Kind kind = Kind::adam;
  optim::Numerics numerics = optim::Numerics::source;
  double lr = 1e-3, a = 0.9, b = 0.999, eps = 1e-8, weight_decay = 0;  ///< a and b: momentum, dampening; beta1, beta2; lr_decay; alpha, momentum
  bool nesterov = false, maximize = false, decoupled = false, extra = false, buffer = false;

  int states() const { return (kind == Kind::sgd ? 0 : kind == Kind::adam ? 2 : 1) + buffer + extra; }

  static double power(double base, std::int64_t t) {
    if (t == 0) return 1;
    double half = power(base, t / 2), square = half * half;
    return t % 2 != 0 ? square * base : square;
  }
  /// The same as a sum of two floats.
  static std::pair<float, float> product(std::pair<float, float> x, std::pair<float, float> y) {
    float high = x.first * y.first;
    float outer = std::fma(x.first, y.second, x.second * y.first), low = std::fma(x.first, y.first, -high) + outer;
    float sum = high + low;
    return {sum, low - (sum - high)};
  }
  static std::pair<float, float> power_of_floats(float base, std::int64_t t) {
    if (t == 0) return {1, 0};
    auto half = power_of_floats(base, t / 2), square = product(half, half);
    return t % 2 != 0 ? product(square, {base, 0}) : square;
  }

  /// g, then p and the states in the order of the kernel's columns; t counts from 1.
  template <class R>
  void step(std::int64_t t, R g, R& p, R* s) const {
    using optim::Numerics;
    bool source = numerics == Numerics::source || numerics == Numerics::f32;
    if (kind == Kind::rmsprop) return rmsprop(g, p, s);
    if (source && numerics == Numerics::f32) return by_source<R, R>(t, g, p, s);
    if (source) return by_source<R, double>(t, g, p, s);
    if (maximize) g = -g;
    R rate = static_cast<R>(lr), wd = static_cast<R>(weight_decay);
    bool torch = numerics == Numerics::torch_cpu;
    if (kind == Kind::adam && decoupled) {
      if (weight_decay != 0) p = p * static_cast<R>(1 - lr * weight_decay);
    } else if (weight_decay != 0) {
      g = std::fma(wd, p, g);
    }
    if (kind == Kind::sgd) {
      if (buffer) {
        R kept = static_cast<R>(a) * s[0];
        s[0] = t == 1 ? g : std::fma(static_cast<R>(1 - b), g, kept);
        g = nesterov ? std::fma(static_cast<R>(a), s[0], g) : s[0];
      }
      p = std::fma(-rate, g, p);
    } else if (kind == Kind::adagrad) {
      R clr = static_cast<R>(lr / (1 + static_cast<double>(t - 1) * a));
      s[0] = std::fma(g, g, s[0]);
      R root = std::sqrt(s[0]) + static_cast<R>(eps);
      apply(torch, clr, g, root, p);
    } else {
      lerp(s[0], g, static_cast<R>(1 - a));
      R w = static_cast<R>(1 - b), kept = s[1] * static_cast<R>(b), square = g * g, scaled = w * g;
      s[1] = torch ? std::fma(scaled, g, kept) : std::fma(w, square, kept);
      R root = s[1];
      if (extra) root = s[2] = s[2] > s[1] || std::isnan(s[2]) ? s[2] : s[1];
      root = std::sqrt(root) / static_cast<R>(std::sqrt(1 - power(b, t))) + static_cast<R>(eps);
      apply(torch, static_cast<R>(lr / (1 - power(a, t))), s[0], root, p);
    }
  }

 private:
  template <class R>
  static void lerp(R& x, R to, R w) {
    R way = to - x;
    x = std::fabs(w) < R(0.5) ? std::fma(w, way, x) : std::fma(-way, 1 - w, to);
  }
  /// p -= rate * x / root
  template <class R>
  static void apply(bool torch, R rate, R x, R root, R& p) {
    if (torch) {
      R step = rate * x;
      p = p - step / root;
    } else {
      p = std::fma(-rate, x / root, p);
    }
  }

  /// W: what f64 scalars are computed with.
  template <class R, class W>
  void by_source(std::int64_t t, R g, R& p, R* s) const {
    auto rounded = [](W x) { return static_cast<R>(x); };
    if (kind == Kind::sgd) {
      W momentum = static_cast<W>(a), undamped = W(1) - static_cast<W>(b);
      if (weight_decay != 0) g = rounded(W(g) + static_cast<W>(weight_decay) * W(p));
      if (buffer) {
        W kept = momentum * W(s[0]), added = undamped * W(g);
        s[0] = t == 1 ? g : rounded(kept + added);
        W ahead = momentum * W(s[0]);
        g = nesterov ? rounded(W(g) + ahead) : s[0];
      }
      W way = static_cast<W>(lr) * W(g);
      p = rounded(maximize ? W(p) + way : W(p) - way);
      return;
    }
    if (maximize) g = -g;
    if (kind == Kind::adagrad) {
      W decay = W(t - 1) * static_cast<W>(a), clr = static_cast<W>(lr) / (W(1) + decay);
      if (weight_decay != 0) {
        W drawn = W(p) * static_cast<W>(weight_decay);
        g = rounded(W(g) + drawn);
      }
      R square = g * g;
      s[0] = s[0] + square;
      W way = clr * W(g), root = W(std::sqrt(s[0])) + static_cast<W>(eps);
      p = rounded(W(p) - way / root);
      return;
    }
    R rate = static_cast<R>(lr), b1 = static_cast<R>(a), b2 = static_cast<R>(b), wd = static_cast<R>(weight_decay);
    if (weight_decay != 0 && decoupled) {
      R factor = rate * wd, drawn = factor * p;
      p = p - drawn;
    } else if (weight_decay != 0) {
      R drawn = p * wd;
      g = g + drawn;
    }
    auto powered = [&](R base) {
      return numerics == optim::Numerics::f32 ? static_cast<R>(power_of_floats(static_cast<float>(base), t).first) : static_cast<R>(power(base, t));
    };
    R step_size = rate / (1 - powered(b1)), correction = std::sqrt(1 - powered(b2));
    s[0] = std::fma(b1, s[0], std::fma(-b1, g, g));
    R square = g * g;
    s[1] = std::fma(b2, s[1], std::fma(-b2, square, square));
    R root = s[1];
    if (extra) root = s[2] = s[2] < s[1] ? s[1] : s[2];
    R way = step_size * s[0];
    p = p - way / (std::sqrt(root) / correction + static_cast<R>(eps));
  }

  template <class R>
  void rmsprop(R g, R& p, R* s) const {
    bool torch = numerics == optim::Numerics::torch_cpu;
    R alpha = static_cast<R>(a), w = static_cast<R>(numerics == optim::Numerics::f32 ? 1 - static_cast<float>(a) : 1 - a), rate = static_cast<R>(lr);
    if (maximize) g = -g;
    if (weight_decay != 0) g = std::fma(static_cast<R>(weight_decay), p, g);
    R kept = s[0] * alpha, square = g * g, scaled = w * g;
    s[0] = torch ? std::fma(scaled, g, kept) : std::fma(w, square, kept);
    R root = s[0];
    if (extra) {
      R& mean = s[1 + buffer];
      lerp(mean, g, w);
      R drawn = mean * mean;
      root = torch ? std::fma(-mean, mean, s[0]) : s[0] - drawn;
    }
    root = std::sqrt(root) + static_cast<R>(eps);
    if (buffer) {
      R old = s[1] * static_cast<R>(b);
      s[1] = old + g / root;
      p = std::fma(-rate, s[1], p);
    } else {
      apply(torch, rate, g, root, p);
    }
  }
};

/// One element's step with all that Precision has. Numbers are as they lie on the device.
struct PreciseStep {
  OptimModel model;
  DType dtype = DType::f32;
  optim::Precision precision = {};

  DType state() const {
    using optim::StateType;
    return precision.state == StateType::same ? dtype : precision.state == StateType::f32 ? DType::f32 : DType::bf16;
  }
  /// x as a store in `to` rounds it; `random` are 16 bits.
  template <class R>
  R rounded(R x, DType to, std::uint32_t random) const {
    if (to == DType::bf16 && precision.rounding == optim::Rounding::stochastic)
      return std::isnan(x) ? x : static_cast<R>(std::bit_cast<float>((std::bit_cast<std::uint32_t>(static_cast<float>(x)) + random) & 0xFFFF0000u));
    std::uint8_t bytes[8];
    model::store_at(bytes, 0, to, static_cast<double>(x));
    return static_cast<R>(model::value_at(bytes, 0, to));
  }
  /// Element i of parameter `number` at step t, computed in R; `last` is its f32 weight or what rounding lost.
  template <class R>
  void step(std::int64_t t, std::uint32_t number, std::size_t i, R g, R& p, R* s, R& last) const {
    std::array<std::uint32_t, 4> words{};
    if (precision.rounding == optim::Rounding::stochastic)
      words = RandomCase::philox({static_cast<std::uint32_t>(i / 2), static_cast<std::uint32_t>(i / 2 >> 32), static_cast<std::uint32_t>(t), number},
                                 {static_cast<std::uint32_t>(precision.seed), static_cast<std::uint32_t>(precision.seed >> 32)});
    auto random = [&](int word) { return words[static_cast<std::size_t>(word)] >> (i % 2 * 16) & 0xFFFFu; };
    bool kahan = precision.rounding == optim::Rounding::kahan;
    R x = precision.master ? last : kahan ? p + last : p;
    model.step<R>(t, g, x, s);
    for (int k = 0; k < model.states(); ++k) s[k] = rounded(s[k], state(), random(1 + k));
    p = rounded(x, dtype, random(0));
    if (kahan) last = std::isfinite(p) ? rounded(x - p, DType::bf16, 0) : R{0};
    if (precision.master) last = x;
  }
};

}  // namespace clutch::cases
