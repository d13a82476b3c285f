// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of the optimizers: what tests and benches share.
#include <clutch/ops/copy.hpp>
#include <clutch/ops/fill.hpp>
#include <clutch/ops/optim.hpp>

#include "cases/optim_model.hpp"
#include "support/host_model.hpp"
#include "support/op_case.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <string_view>
#include <vector>

namespace clutch::cases {

struct OptimCase {
  static constexpr std::string_view kStem = "optim";
  using Kind = OptimModel::Kind;
  static constexpr DType kDtypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16};

  /// Operations of a step of n elements, counted in OptimModel; a fused multiply-add is two.
  static double flops(std::int64_t n, const OptimModel& m) {
    double element = m.weight_decay != 0 ? 2 : 0;
    if (m.kind == Kind::sgd) element += 2 + 3 * m.buffer + 2 * m.nesterov;
    if (m.kind == Kind::adam) element += 15 + m.extra;
    if (m.kind == Kind::adagrad) element += 7;
    if (m.kind == Kind::rmsprop) element += 6 + 5 * m.extra + (m.buffer ? 5 : 3);
    return element * static_cast<double>(n);
  }
  /// Bytes that a step of n elements reads and writes.
  static double bytes(std::int64_t n, const PreciseStep& step) {
    double width = bits(step.dtype) / 8.0, element = 3 * width + 2.0 * step.model.states() * bits(step.state()) / 8;  // gradients are read alone
    if (step.precision.master) element += 8 - width;  // weights are read in the place of parameters
    if (step.precision.rounding == optim::Rounding::kahan) element += 2 * width;
    return element * static_cast<double>(n);
  }

  /// Steps row 0 of raw values (1 + states, n), parameters of these sizes one after another, with gradients; all of `dtype`.
  static void reference(const PreciseStep& step, std::int64_t t, void* all, const void* grads, std::span<const std::int64_t> sizes) {
    const auto rows = 1 + static_cast<std::size_t>(step.model.states());
    std::size_t n = 0, at = 0;
    for (std::int64_t size : sizes) n += static_cast<std::size_t>(size);
    auto element = [&]<class R>(std::uint32_t number, std::size_t i, R) {
      R numbers[4] = {}, last = 0, g = static_cast<R>(model::value_at(grads, at, step.dtype));
      for (std::size_t k = 0; k < rows; ++k) numbers[k] = static_cast<R>(model::value_at(all, k * n + at, step.dtype));
      step.step(t, number, i, g, numbers[0], numbers + 1, last);
      for (std::size_t k = 0; k < rows; ++k) model::store_at(all, k * n + at, step.dtype, static_cast<double>(numbers[k]));
    };
    for (std::uint32_t number = 0; number < sizes.size(); ++number)
      for (std::size_t i = 0; i < static_cast<std::size_t>(sizes[number]); ++i, ++at)
        step.dtype == DType::f64 ? element(number, i, double{}) : element(number, i, float{});
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

  /// A step of rows of `all` (1 + states, n), cut into parameters of these sizes. `steps` is a tensor of all numbers, or a list of one for each parameter.
  template <class Steps>
  static void step(const OptimModel& m, const Tensor& all, const Tensor& grads, std::span<const std::int64_t> sizes, const Steps& steps, const Stream& stream,
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

  static Problem problem(std::string_view what, const OptimModel& m, DType dtype, std::uint64_t seed, const optim::Precision& precision = {},
                         bool listed = false) {
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
    reference({m, dtype, precision}, kStep, p.output.raw.data(), p.inputs[1].raw.data(), kSizes);
    p.run = [m, precision, listed](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      copy_(out, in[0], {}, stream);
      Tensor grads = in[1].clone(stream), counted = in[2].clone(stream);
      listed ? step(m, out, grads, kSizes, single_steps(counted), stream, precision) : step(m, out, grads, kSizes, counted, stream, precision);
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
  /// A tensor of rank 0 for each parameter.
  static std::vector<Tensor> single_steps(const Tensor& steps) {
    std::vector<Tensor> parts;
    for (std::int64_t i = 0; i < steps.numel(); ++i) parts.push_back(steps.select(0, i));
    return parts;
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

  /// The norm of each of some tensors, one without elements, divided by a scale.
  static Problem norms_problem(DType dtype, std::uint64_t seed) {
    const std::vector<std::int64_t> sizes{5, 0, 8200, 64, 2 * 8192 + 77};
    const std::int64_t count = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
    Problem p{.name = std::string(name(dtype)), .entry = "optim_norms", .is_helper = true};
    p.inputs = {{dtype, {count}, {}, model::make_values(static_cast<std::size_t>(count), dtype, seed, false)},
                {DType::f32, {1}, {}, std::vector<std::uint8_t>(4)}};
    model::store_at(p.inputs[1].raw.data(), 0, DType::f32, 4);
    p.output = {DType::f32, {static_cast<std::int64_t>(sizes.size())}, {}, std::vector<std::uint8_t>(4 * sizes.size())};
    std::size_t at = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const float mine =
          norm<float>(optim::NormType::two, dtype, p.inputs[0].raw.data() + at * static_cast<std::size_t>(bits(dtype)) / 8, std::span(&sizes[i], 1));
      model::store_at(p.output.raw.data(), i, DType::f32, static_cast<double>(mine / 4));
      at += static_cast<std::size_t>(sizes[i]);
    }
    p.run = [sizes](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      optim::grad_norms_out(out, cut(in[0], sizes), {.grad_scale = in[1]}, stream);
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
        norms_problem(DType::bf16, seed + 9),
        update_problem(),
        schedule_problem(),
        problem("adamw f32", {.kind = Kind::adam, .weight_decay = 0.01, .decoupled = true}, DType::f32, seed),
        problem("sgd bf16", {.kind = Kind::sgd, .b = 0, .weight_decay = 0.01, .nesterov = true, .buffer = true}, DType::bf16, seed + 1),
        problem("adamw bf16 stochastic", {.kind = Kind::adam, .weight_decay = 0.01, .decoupled = true}, DType::bf16, seed + 7,
                {.rounding = optim::Rounding::stochastic, .seed = 99}),
        problem("adam f32 listed steps", {.kind = Kind::adam, .a = 0.8, .extra = true}, DType::f32, seed + 8, {}, true),
        problem("adagrad f64", {.kind = Kind::adagrad, .a = 0.1, .eps = 1e-10}, DType::f64, seed + 2),
        problem("rmsprop f16", {.kind = Kind::rmsprop, .a = 0.99, .b = 0.5, .eps = 1e-3, .extra = true, .buffer = true}, DType::f16, seed + 3),
    };
  }

  static constexpr Mutation kMutations[] = {
      {"optim_step", Edit::tail, "i < end; i += items) step_one", "i + 1 < end; i += items) step_one"},
      {"optim_step", Edit::stride, "(ulong)chunk.y * CLUTCH_CHUNK", "(ulong)chunk.y * (CLUTCH_CHUNK / 2)"},
      {"optim_step", Edit::offset, "r.g = table_at(table, at + OPTIM_GRADIENT)", "r.g = table_at(table, at)"},
      {"optim_step", Edit::arithmetic, "CLUTCH_FMA(-(R)k->beta2, square, square)", "CLUTCH_FMA(-(R)k->beta1, square, square)"},
      {"optim_step", Edit::offset, "CLUTCH_COLUMNS + CLUTCH_COLUMNS - 1)", "CLUTCH_COLUMNS)"},
      {"optim_norm", Edit::tail, "for (int l = 0; i < end; ++i, ++l)", "for (int l = 0; i + 1 < end; ++i, ++l)"},
      {"optim_norm", Edit::stride, "(ulong)chunk.y * CLUTCH_CHUNK", "(ulong)chunk.y * (CLUTCH_CHUNK / 2)"},
      {"optim_norm", Edit::offset, "table_at(table, at)", "table_at(table, 0)"},
      {"optim_norm", Edit::arithmetic, "#define CLUTCH_ACCUMULATE(R, sum, x) CLUTCH_FMA(x, x, sum)",
       "#define CLUTCH_ACCUMULATE(R, sum, x) CLUTCH_FMA(x, sum, x)"},
      {"optim_norm_total", Edit::tail, "i < args.chunk_count; i += CLUTCH_NORM_LANES", "i + 1 < args.chunk_count; i += CLUTCH_NORM_LANES"},
      {"optim_norm_total", Edit::stride, "i += CLUTCH_NORM_LANES) sum = CLUTCH_COMBINE", "i += 2 * CLUTCH_NORM_LANES) sum = CLUTCH_COMBINE"},
      {"optim_norm_total", Edit::offset, "uint i = (uint)l;", "uint i = (uint)l / 2;"},
      {"optim_norm_total", Edit::arithmetic, "CLUTCH_NORM == OPTIM_NORM_TWO ? CLUTCH_SQRT(sum)", "CLUTCH_NORM == OPTIM_NORM_TWO ? (sum)"},
      {"optim_norms", Edit::tail, "i < end; i += CLUTCH_NORM_LANES) sum", "i + 1 < end; i += CLUTCH_NORM_LANES) sum"},
      {"optim_norms", Edit::stride, "CLUTCH_COMBINE(sum, partial[i])", "CLUTCH_COMBINE(sum, partial[i / 2])"},
      {"optim_norms", Edit::offset, "uint i = first + (uint)l;", "uint i = (uint)l;"},
      {"optim_norms", Edit::arithmetic, "CLUTCH_NORM == OPTIM_NORM_TWO ? CLUTCH_SQRT(sum)", "CLUTCH_NORM == OPTIM_NORM_TWO ? (sum)"},
      {"optim_scale", Edit::tail, "i < end; i += items) {\n      ACC x", "i + 1 < end; i += items) {\n      ACC x"},
      {"optim_scale", Edit::stride, "(ulong)chunk.y * CLUTCH_CHUNK", "(ulong)chunk.y * (CLUTCH_CHUNK / 2)"},
      {"optim_scale", Edit::offset, "table_at(&table, at)", "table_at(&table, 0)"},
      {"optim_scale", Edit::arithmetic, "store(g, (long)i, (x) * (factor))", "store(g, (long)i, (x) + (factor))"},
      {"optim_update_scaler", Edit::tail, "s < count; ++s", "s + 1 < count; ++s"},
      {"optim_update_scaler", Edit::stride, "seen[s] = 0", "seen[0] = 0"},
      {"optim_update_scaler", Edit::offset, "found + found_offset", "found"},
      {"optim_update_scaler", Edit::arithmetic, "*scale * growth_factor", "*scale + growth_factor"},
      {"optim_schedule", Edit::tail, "i < args.rate_count; ++i) lr[i]", "i + 1 < args.rate_count; ++i) lr[i]"},
      {"optim_schedule", Edit::stride, "rate[i] * factor", "rate[i / 2] * factor"},
      {"optim_schedule", Edit::offset, "rates + rates_offset", "rates"},
      {"optim_schedule", Edit::arithmetic, "fma_rn(1 - end, 0.5f", "fma_rn(end, 0.5f"},
  };
};

}  // namespace clutch::cases
