// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of the optimizers: what tests and benches share.
#include <clutch/ops/copy.hpp>
#include <clutch/ops/fill.hpp>
#include <clutch/ops/optim.hpp>

#include "cases/random.hpp"
#include "support/host_model.hpp"
#include "support/op_case.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

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

/// One element's step with all that Precision has; what is computed in f32. Numbers are as they lie on the device.
struct PreciseStep {
  OptimModel model;
  DType dtype = DType::f32;
  optim::Precision precision = {};

  DType state() const {
    using optim::StateType;
    return precision.state == StateType::same ? dtype : precision.state == StateType::f32 ? DType::f32 : DType::bf16;
  }
  /// x as a store in `to` rounds it; `random` are 16 bits.
  float rounded(float x, DType to, std::uint32_t random) const {
    if (to == DType::bf16 && precision.rounding == optim::Rounding::stochastic)
      return std::isnan(x) ? x : std::bit_cast<float>((std::bit_cast<std::uint32_t>(x) + random) & 0xFFFF0000u);
    std::uint8_t bytes[8];
    model::store_at(bytes, 0, to, static_cast<double>(x));
    return static_cast<float>(model::value_at(bytes, 0, to));
  }
  /// Element i of parameter `number` at step t; `last` is its f32 weight or what rounding lost.
  void step(std::int64_t t, std::uint32_t number, std::size_t i, float g, float& p, float* s, float& last) const {
    std::array<std::uint32_t, 4> words{};
    if (precision.rounding == optim::Rounding::stochastic)
      words = RandomCase::philox({static_cast<std::uint32_t>(i / 2), static_cast<std::uint32_t>(i / 2 >> 32), static_cast<std::uint32_t>(t), number},
                                 {static_cast<std::uint32_t>(precision.seed), static_cast<std::uint32_t>(precision.seed >> 32)});
    auto random = [&](int word) { return words[static_cast<std::size_t>(word)] >> (i % 2 * 16) & 0xFFFFu; };
    bool kahan = precision.rounding == optim::Rounding::kahan;
    float x = precision.master ? last : kahan ? p + last : p;
    model.step<float>(t, g, x, s);
    for (int k = 0; k < model.states(); ++k) s[k] = rounded(s[k], state(), random(1 + k));
    p = rounded(x, dtype, random(0));
    if (kahan) last = std::isfinite(p) ? rounded(x - p, DType::bf16, 0) : 0;
    if (precision.master) last = x;
  }
};

struct OptimCase {
  static constexpr std::string_view kStem = "optim";
  using Kind = OptimModel::Kind;
  static constexpr DType kDtypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16};

  /// Bytes that a step of n elements reads and writes.
  static double bytes(std::int64_t n, const PreciseStep& step) {
    double width = bits(step.dtype) / 8.0, element = 3 * width + 2.0 * step.model.states() * bits(step.state()) / 8;  // gradients are read alone
    if (step.precision.master) element += 8 - width;  // weights are read in the place of parameters
    if (step.precision.rounding == optim::Rounding::kahan) element += 2 * width;
    return element * static_cast<double>(n);
  }

  /// Steps row 0 of raw values (1 + states, n) with gradients; all of `dtype`, computed in its compute type.
  static void reference(const OptimModel& m, DType dtype, std::int64_t t, void* all, const void* grads, std::size_t n) {
    auto states = static_cast<std::size_t>(m.states());
    auto element = [&]<class R>(std::size_t i, R) {
      R p = static_cast<R>(model::value_at(all, i, dtype)), s[3] = {};
      for (std::size_t k = 0; k < states; ++k) s[k] = static_cast<R>(model::value_at(all, (k + 1) * n + i, dtype));
      m.step<R>(t, static_cast<R>(model::value_at(grads, i, dtype)), p, s);
      model::store_at(all, i, dtype, static_cast<double>(p));
      for (std::size_t k = 0; k < states; ++k) model::store_at(all, (k + 1) * n + i, dtype, static_cast<double>(s[k]));
    };
    for (std::size_t i = 0; i < n; ++i) dtype == DType::f64 ? element(i, double{}) : element(i, float{});
  }

  static optim::Precision precision_of(const OptimModel& m, optim::Precision precision) {
    precision.numerics = m.numerics;
    return precision;
  }
  static optim::SGDOptions sgd_options(const OptimModel& m, optim::Precision precision = {}) {
    return {.lr = m.lr,
            .momentum = m.buffer ? m.a : 0,
            .dampening = m.b,
            .weight_decay = m.weight_decay,
            .nesterov = m.nesterov,
            .maximize = m.maximize,
            .precision = precision_of(m, precision)};
  }
  static optim::AdamOptions adam_options(const OptimModel& m, optim::Precision precision = {}) {
    return {.lr = m.lr,
            .beta1 = m.a,
            .beta2 = m.b,
            .eps = m.eps,
            .weight_decay = m.weight_decay,
            .amsgrad = m.extra,
            .maximize = m.maximize,
            .decoupled_weight_decay = m.decoupled,
            .precision = precision_of(m, precision)};
  }
  static optim::AdagradOptions adagrad_options(const OptimModel& m, optim::Precision precision = {}) {
    return {.lr = m.lr, .lr_decay = m.a, .weight_decay = m.weight_decay, .eps = m.eps, .maximize = m.maximize, .precision = precision_of(m, precision)};
  }
  static optim::RMSpropOptions rmsprop_options(const OptimModel& m, optim::Precision precision = {}) {
    return {.lr = m.lr,
            .alpha = m.a,
            .eps = m.eps,
            .weight_decay = m.weight_decay,
            .momentum = m.buffer ? m.b : 0,
            .centered = m.extra,
            .maximize = m.maximize,
            .precision = precision_of(m, precision)};
  }
  /// The class with the model's options.
  static std::unique_ptr<optim::Optimizer> make(const OptimModel& m, std::vector<Tensor> params, optim::Precision precision = {}) {
    switch (m.kind) {
      case Kind::sgd: return std::make_unique<optim::SGD>(std::move(params), sgd_options(m, precision));
      case Kind::adam: return std::make_unique<optim::Adam>(std::move(params), adam_options(m, precision));
      case Kind::adagrad: return std::make_unique<optim::Adagrad>(std::move(params), adagrad_options(m, precision));
      default: return std::make_unique<optim::RMSprop>(std::move(params), rmsprop_options(m, precision));
    }
  }

  /// A step of rows of `all` (1 + states, n), cut into parameters of these sizes.
  static void step(const OptimModel& m, const Tensor& all, const Tensor& grads, std::span<const std::int64_t> sizes, const Tensor& steps, const Stream& stream,
                   const optim::Precision& precision = {}) {
    std::vector<std::vector<Tensor>> s(3);
    for (int k = 0; k < m.states(); ++k) s[static_cast<std::size_t>(k)] = cut(all.select(0, k + 1), sizes);
    std::vector<Tensor> p = cut(all.select(0, 0), sizes), g = cut(grads, sizes);
    switch (m.kind) {
      case Kind::sgd: return optim::sgd_(p, g, s[0], steps, sgd_options(m, precision), {}, stream);
      case Kind::adam: return optim::adam_(p, g, s[0], s[1], s[2], steps, adam_options(m, precision), {}, stream);
      case Kind::adagrad: return optim::adagrad_(p, g, s[0], steps, adagrad_options(m, precision), {}, stream);
      case Kind::rmsprop: return optim::rmsprop_(p, g, s[0], s[1], m.buffer ? s[2] : s[1], steps, rmsprop_options(m, precision), {}, stream);
    }
  }

  /// Values that states can have: squares are not negative.
  static std::vector<std::uint8_t> make_rows(const OptimModel& m, DType dtype, std::size_t n, std::uint64_t seed) {
    std::vector<std::uint8_t> all = model::make_values(n * static_cast<std::size_t>(1 + m.states()), dtype, seed, false);
    for (std::size_t i = n; i < n * static_cast<std::size_t>(1 + m.states()); ++i) {
      double v = std::fabs(model::value_at(all.data(), i, dtype));
      model::store_at(all.data(), i, dtype, m.kind == Kind::rmsprop && m.extra && i >= n * static_cast<std::size_t>(m.states()) ? v / 64 : v);
    }
    return all;
  }

  static Problem problem(std::string_view what, const OptimModel& m, DType dtype, std::uint64_t seed, const optim::Precision& precision = {}) {
    static constexpr std::int64_t kSizes[] = {5, 0, 1, 16, 8200, 33};
    constexpr std::int64_t kCount = 5 + 1 + 16 + 8200 + 33;
    constexpr int kStep = 4;
    Problem p{.name = std::string(what), .entry = "optim_step", .needs_fp64 = true};
    const Dims rows{1 + m.states(), kCount};
    p.inputs.push_back({dtype, rows, {}, make_rows(m, dtype, kCount, seed)});
    p.inputs.push_back({dtype, {kCount}, {}, model::make_values(kCount, dtype, seed + 1, false)});
    std::vector<std::uint8_t> steps(sizeof(float) * std::size(kSizes));
    for (std::size_t i = 0; i < std::size(kSizes); ++i) model::store_at(steps.data(), i, DType::f32, kStep);
    p.inputs.push_back({DType::f32, {static_cast<std::int64_t>(std::size(kSizes))}, {}, steps});
    p.output = {dtype, rows, {}, p.inputs[0].raw};
    if (precision.rounding == optim::Rounding::nearest) {
      reference(m, dtype, kStep, p.output.raw.data(), p.inputs[1].raw.data(), kCount);
    } else {
      PreciseStep step{m, dtype, precision};
      std::size_t at = 0;
      for (std::uint32_t number = 0; number < std::size(kSizes); ++number)
        for (std::size_t i = 0; i < static_cast<std::size_t>(kSizes[number]); ++i, ++at) {
          float numbers[4] = {}, last = 0;
          for (std::size_t k = 0; k <= static_cast<std::size_t>(m.states()); ++k)
            numbers[k] = static_cast<float>(model::value_at(p.output.raw.data(), k * kCount + at, dtype));
          step.step(kStep, number, i, static_cast<float>(model::value_at(p.inputs[1].raw.data(), at, dtype)), numbers[0], numbers + 1, last);
          for (std::size_t k = 0; k <= static_cast<std::size_t>(m.states()); ++k)
            model::store_at(p.output.raw.data(), k * kCount + at, dtype, static_cast<double>(numbers[k]));
        }
    }
    p.run = [m, precision](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      copy_(out, in[0], {}, stream);
      Tensor grads = in[1].clone(stream), counted = in[2].clone(stream);
      step(m, out, grads, kSizes, counted, stream, precision);
    };
    return p;
  }

  /// The norm of tensors that follow each other in `values`, by the contract's order, in R.
  template <class R>
  static R norm(optim::NormType type, DType dtype, const void* values, std::span<const std::int64_t> sizes) {
    auto larger = [](R a, R b) { return a > b || std::isnan(a) ? a : b; };
    auto meet = [&](R a, R b) { return type == optim::NormType::inf ? larger(a, b) : a + b; };
    auto fold = [&](std::array<R, 64> lanes) {
      for (std::size_t half = 32; half > 0; half /= 2)
        for (std::size_t l = 0; l < half; ++l) lanes[l] = meet(lanes[l], lanes[l + half]);
      return lanes[0];
    };
    std::vector<R> chunks;
    std::size_t at = 0;
    for (std::int64_t size : sizes)
      for (std::int64_t begin = 0; begin < size; begin += 8192) {
        std::array<R, 64> lanes{};
        for (std::int64_t i = begin; i < std::min(size, begin + 8192); ++i, ++at) {
          R x = static_cast<R>(model::value_at(values, at, dtype)), &lane = lanes[static_cast<std::size_t>(i % 64)];
          lane = type == optim::NormType::two ? std::fma(x, x, lane) : type == optim::NormType::one ? lane + std::fabs(x) : larger(lane, std::fabs(x));
        }
        chunks.push_back(fold(lanes));
      }
    std::array<R, 64> lanes{};
    for (std::size_t c = 0; c < chunks.size(); ++c) lanes[c % 64] = meet(lanes[c % 64], chunks[c]);
    R total = fold(lanes);
    return type == optim::NormType::two ? std::sqrt(total) : total;
  }
  static std::vector<Tensor> cut(const Tensor& row, std::span<const std::int64_t> sizes) {
    std::vector<Tensor> parts;
    std::int64_t at = 0;
    for (std::int64_t size : sizes) parts.push_back(row.slice(0, at, at + size)), at += size;
    return parts;
  }

  /// A norm, or gradients clipped by it. More chunks than lanes.
  static Problem norm_problem(std::string_view entry, DType dtype, std::uint64_t seed) {
    std::vector<std::int64_t> sizes(70, 3);
    sizes.insert(sizes.end(), {0, 8200, 77});
    std::int64_t count = 0;
    for (std::int64_t size : sizes) count += size;
    const bool scales = entry == "optim_scale";
    const double most = 0.75;
    Problem p{.name = std::string(name(dtype)), .entry = entry, .is_helper = true};
    p.inputs.push_back({dtype, {count}, {}, model::make_values(static_cast<std::size_t>(count), dtype, seed, false)});
    float total = norm<float>(optim::NormType::two, dtype, p.inputs[0].raw.data(), sizes);
    if (scales) {
      p.output = {dtype, {count}, {}, p.inputs[0].raw};
      float factor = std::min(1.0f, static_cast<float>(most) / (total + 1e-6f));
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        float scaled = static_cast<float>(model::value_at(p.inputs[0].raw.data(), i, dtype)) * factor;
        model::store_at(p.output.raw.data(), i, dtype, static_cast<double>(scaled));
      }
    } else {
      p.output = {DType::f32, {1}, {}, std::vector<std::uint8_t>(4)};
      model::store_at(p.output.raw.data(), 0, DType::f32, static_cast<double>(total));
    }
    p.run = [sizes, scales, most](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      Tensor grads = in[0].clone(stream);
      Tensor norm = scales ? optim::clip_grad_norm_(cut(grads, sizes), most, {}, stream) : optim::grad_norm(cut(grads, sizes), most, {}, stream).norm;
      copy_(out, scales ? grads : norm, {}, stream);
    };
    return p;
  }

  /// Three scalers: one whose last number was found, one that grows, one that goes on.
  static Problem update_problem() {
    constexpr std::int64_t kFound = 3, kRow = 2 + kFound;
    const float before[] = {8, 1, 0, 0, 1, 8, 1, 0, 0, 0, 8, 0, 0, 0, 0}, after[] = {4, 0, 0, 0, 0, 24, 0, 0, 0, 0, 8, 1, 0, 0, 0};
    Problem p{.name = "update", .entry = "optim_update_scaler", .is_helper = true};
    auto raw = [](std::span<const float> values) {
      auto bytes = std::as_bytes(values);
      std::vector<std::uint8_t> all(bytes.size());
      std::memcpy(all.data(), bytes.data(), bytes.size());
      return all;
    };
    p.inputs.push_back({DType::f32, {3, kRow}, {}, raw(before)});
    p.output = {DType::f32, {3, kRow}, {}, raw(after)};
    p.run = [](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      Tensor rows = in[0].clone(stream);
      for (std::int64_t i = 0; i < 3; ++i) {
        Tensor row = rows.select(0, i), tracker = row.slice(0, 1, 2).to(DType::i32, {}, stream);
        optim::update_scale_(row.slice(0, 0, 1), tracker, row.slice(0, 2, kRow), {.growth_factor = 3, .growth_interval = 2}, stream);
        copy_(row.slice(0, 1, 2), tracker, {}, stream);
      }
      copy_(out, rows, {}, stream);
    };
    return p;
  }

  /// Two rates half way down a cosine.
  static Problem schedule_problem() {
    Problem p{.name = "schedule", .entry = "optim_schedule", .is_helper = true};
    std::vector<std::uint8_t> raw(12), want(8);
    for (std::size_t i = 0; i < 3; ++i) model::store_at(raw.data(), i, DType::f32, static_cast<double>(i + 1));
    model::store_at(want.data(), 0, DType::f32, 2 * 0.625), model::store_at(want.data(), 1, DType::f32, 3 * 0.625);
    p.inputs.push_back({DType::f32, {3}, {}, raw});
    p.output = {DType::f32, {2}, {}, want};
    p.run = [](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      Tensor step = zeros({1}, {.dtype = DType::i64, .device = out.device()}, stream);
      Tensor lr = empty({2}, {.dtype = DType::f32, .device = out.device()}, stream);
      optim::schedule_(lr, in[0].slice(0, 1, 3), step, 7, {.warmup_steps = 3, .decay = optim::Decay::cosine, .decay_steps = 8, .end = 0.25}, stream);
      copy_(out, lr, {}, stream);
    };
    return p;
  }

  static std::vector<Problem> problems(std::uint64_t seed) {
    using optim::Numerics;
    return {
        norm_problem("optim_norm", DType::f32, seed + 4),
        norm_problem("optim_norm_total", DType::bf16, seed + 5),
        norm_problem("optim_scale", DType::f32, seed + 6),
        update_problem(),
        schedule_problem(),
        problem("adamw f32", {.kind = Kind::adam, .weight_decay = 0.01, .decoupled = true}, DType::f32, seed),
        problem("sgd bf16", {.kind = Kind::sgd, .b = 0, .weight_decay = 0.01, .nesterov = true, .buffer = true}, DType::bf16, seed + 1),
        problem("adamw bf16 stochastic", {.kind = Kind::adam, .weight_decay = 0.01, .decoupled = true}, DType::bf16, seed + 7,
                {.rounding = optim::Rounding::stochastic, .seed = 99}),
        problem("adagrad f64", {.kind = Kind::adagrad, .a = 0.1, .eps = 1e-10}, DType::f64, seed + 2),
        problem("rmsprop f16", {.kind = Kind::rmsprop, .a = 0.99, .b = 0.5, .eps = 1e-3, .extra = true, .buffer = true}, DType::f16, seed + 3),
    };
  }

  static constexpr Mutation kMutations[] = {
      {"optim_step", Edit::tail, "i < end; i += lanes) step_one", "i + 1 < end; i += lanes) step_one"},
      {"optim_step", Edit::stride, "(ulong)chunk.y * CHUNK", "(ulong)chunk.y * (CHUNK / 2)"},
      {"optim_step", Edit::offset, "table_at(table, at), r.g = table_at(table, at + 1)", "table_at(table, at), r.g = table_at(table, at)"},
      {"optim_step", Edit::arithmetic, "FMA(-(R)k->b2, square, square)", "FMA(-(R)k->b1, square, square)"},
      {"optim_norm", Edit::tail, "for (int l = 0; i < end; ++i, ++l)", "for (int l = 0; i + 1 < end; ++i, ++l)"},
      {"optim_norm", Edit::stride, "(ulong)chunk.y * CHUNK", "(ulong)chunk.y * (CHUNK / 2)"},
      {"optim_norm", Edit::offset, "table_at(table, at)", "table_at(table, 0)"},
      {"optim_norm", Edit::arithmetic, "#define GATHER(R, sum, x) FMA(x, x, sum)", "#define GATHER(R, sum, x) FMA(x, sum, x)"},
      {"optim_norm_total", Edit::tail, "i < count; i += NORM_LANES", "i + 1 < count; i += NORM_LANES"},
      {"optim_norm_total", Edit::stride, "i += NORM_LANES) sum = MEET", "i += 2 * NORM_LANES) sum = MEET"},
      {"optim_norm_total", Edit::offset, "uint i = (uint)l;", "uint i = (uint)l / 2;"},
      {"optim_norm_total", Edit::arithmetic, "NORM == 0 ? SQRT(all[0])", "NORM == 0 ? (all[0])"},
      {"optim_scale", Edit::tail, "i < end; i += lanes) {\n      ACC x", "i + 1 < end; i += lanes) {\n      ACC x"},
      {"optim_scale", Edit::stride, "(ulong)chunk.y * CHUNK", "(ulong)chunk.y * (CHUNK / 2)"},
      {"optim_scale", Edit::offset, "table_at(&table, at)", "table_at(&table, 0)"},
      {"optim_scale", Edit::arithmetic, "STOREV_T(g, (long)i, x * factor)", "STOREV_T(g, (long)i, x + factor)"},
      {"optim_update_scaler", Edit::tail, "s < count; ++s", "s + 1 < count; ++s"},
      {"optim_update_scaler", Edit::stride, "seen[s] = 0", "seen[0] = 0"},
      {"optim_update_scaler", Edit::offset, "found + found_offset", "found"},
      {"optim_update_scaler", Edit::arithmetic, "*scale * growth", "*scale + growth"},
      {"optim_schedule", Edit::tail, "i < n; ++i) lr[i]", "i + 1 < n; ++i) lr[i]"},
      {"optim_schedule", Edit::stride, "rate[i] * factor", "rate[i / 2] * factor"},
      {"optim_schedule", Edit::offset, "rates + rates_offset", "rates"},
      {"optim_schedule", Edit::arithmetic, "fma_rn(1 - end, 0.5f", "fma_rn(end, 0.5f"},
  };
};

}  // namespace clutch::cases
