// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of flex: what tests and benches share. The model works in double, score by score. Problems have scores of 0
// and -1024, so that weights are 0 or 1, and small whole values: their results are exact.
#include <clutch/attention.hpp>
#include <clutch/ops/copy.hpp>
#include <clutch/ops/flex.hpp>
#include <clutch/paged_cache.hpp>

#include "cases/random.hpp"
#include "support/host_model.hpp"
#include "support/op_case.hpp"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string_view>
#include <vector>

namespace clutch::cases {

struct FlexCase {
  static constexpr std::string_view kStem = "flex";

  struct Shape {
    std::int64_t batch = 1, heads = 1, q_len = 1, kv_len = 1, e = 1, ev = 1;
    std::int64_t kv_batch = 0, kv_heads = 0;  ///< 0: as the queries'
    Dims q() const { return {batch, heads, q_len, e}; }
    Dims k() const { return {kv_batch ? kv_batch : batch, kv_heads ? kv_heads : heads, kv_len, e}; }
    Dims v() const { return {kv_batch ? kv_batch : batch, kv_heads ? kv_heads : heads, kv_len, ev}; }
    Dims out() const { return {batch, heads, q_len, ev}; }
    /// Of the query's row and of the first key of its head.
    std::int64_t row(std::int64_t b, std::int64_t h, std::int64_t i) const { return (b * heads + h) * q_len + i; }
    std::int64_t key(std::int64_t b, std::int64_t h) const {
      const std::int64_t shared = k()[1];
      return ((k()[0] == 1 ? 0 : b) * shared + h / (heads / shared)) * kv_len;
    }
  };
  /// Two products of the forward pass, five of the backward one; masked scores count.
  static double flops(const Shape& s) { return 2.0 * static_cast<double>(s.batch * s.heads * s.q_len * s.kv_len * (s.e + s.ev)); }
  static double backward_flops(const Shape& s) { return 2.0 * static_cast<double>(s.batch * s.heads * s.q_len * s.kv_len * (3 * s.e + 2 * s.ev)); }
  using HostScore = std::function<double(double score, std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t kv)>;
  using HostMask = std::function<bool(std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t kv)>;
  /// What dropout leaves of a weight: 0, or 1 / (1 - p).
  using HostDropout = std::function<double(std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t kv)>;
  /// What the header says of a call's weights.
  static HostDropout host_dropout(const Shape& s, double p, const GeneratorState& state) {
    return [=](std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t kv) {
      const std::uint64_t block = state.offset + static_cast<std::uint64_t>(s.row(b, h, q) * ((s.kv_len + 3) / 4) + kv / 4);
      const auto words = RandomCase::philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0},
                                            {static_cast<std::uint32_t>(state.seed), static_cast<std::uint32_t>(state.seed >> 32)});
      return static_cast<double>(words[static_cast<std::size_t>(kv % 4)]) < p * 0x1p32 ? 0.0 : 1 / (1 - p);
    };
  }
  struct Result {
    std::vector<double> out, lse, top;
    double largest = 0;  ///< magnitude among finite scores
    std::int64_t e = 0;
  };

  static Result model(const Shape& s, const std::vector<double>& q, const std::vector<double>& k, const std::vector<double>& v, double scale,
                      const HostScore& score = {}, const HostMask& mask = {}, const HostDropout& dropout = {}) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    Result r{.e = s.e};
    for (std::int64_t b = 0; b < s.batch; ++b)
      for (std::int64_t h = 0; h < s.heads; ++h)
        for (std::int64_t i = 0; i < s.q_len; ++i) {
          const std::int64_t row = s.row(b, h, i), kv = s.key(b, h);
          std::vector<double> scores(static_cast<std::size_t>(s.kv_len));
          double top = -kInf, total = 0;
          for (std::int64_t j = 0; j < s.kv_len; ++j) {
            double x = dot(q, row, k, kv + j, s.e) * scale;
            if (score) x = score(x, b, h, i, j);
            if (mask && !mask(b, h, i, j)) x = -kInf;
            if (std::isfinite(x)) r.largest = std::max(r.largest, std::fabs(x));
            scores[static_cast<std::size_t>(j)] = x, top = std::max(top, x);
          }
          for (double& x : scores) x = top == -kInf ? 0 : std::exp(x - top), total += x;
          for (std::int64_t d = 0; d < s.ev; ++d) {
            double sum = 0;
            for (std::int64_t j = 0; j < s.kv_len; ++j)
              if (const double w = scores[static_cast<std::size_t>(j)] * (dropout ? dropout(b, h, i, j) : 1); w != 0) sum += w * at(v, kv + j, s.ev, d);
            r.out.push_back(total == 0 ? 0 : sum / total);
          }
          r.top.push_back(top), r.lse.push_back(total == 0 ? -kInf : top + std::log(total));
        }
    return r;
  }

  struct Gradients {
    std::vector<double> q, k, v;
  };
  /// Of the sum of grad times the result, and of grad_lse times lse. Derivatives of the score by differences.
  static Gradients gradients(const Shape& s, const std::vector<double>& q, const std::vector<double>& k, const std::vector<double>& v,
                             const std::vector<double>& grad, double scale, const HostScore& score = {}, const HostMask& mask = {},
                             const std::vector<double>& grad_lse = {}, const HostDropout& dropout = {}) {
    constexpr double kInf = std::numeric_limits<double>::infinity(), kStep = 1e-5;
    Gradients g{std::vector<double>(q.size()), std::vector<double>(k.size()), std::vector<double>(v.size())};
    for (std::int64_t b = 0; b < s.batch; ++b)
      for (std::int64_t h = 0; h < s.heads; ++h)
        for (std::int64_t i = 0; i < s.q_len; ++i) {
          const std::int64_t row = s.row(b, h, i), kv = s.key(b, h);
          std::vector<double> raw, p, products;
          double top = -kInf, total = 0, mean = 0;
          for (std::int64_t j = 0; j < s.kv_len; ++j) {
            raw.push_back(dot(q, row, k, kv + j, s.e) * scale), products.push_back(dot(grad, row, v, kv + j, s.ev));
            p.push_back(mask && !mask(b, h, i, j) ? -kInf : score ? score(raw.back(), b, h, i, j) : raw.back());
            top = std::max(top, p.back());
          }
          if (top == -kInf) continue;
          for (double& x : p) total += x = std::exp(x - top);
          std::vector<double> left(p.size(), 1);
          for (std::size_t j = 0; j < p.size(); ++j) {
            if (dropout) left[j] = dropout(b, h, i, static_cast<std::int64_t>(j));
            p[j] /= total, products[j] *= left[j], mean += p[j] * products[j];
          }
          if (!grad_lse.empty()) mean -= grad_lse[static_cast<std::size_t>(row)];
          for (std::int64_t j = 0; j < s.kv_len; ++j) {
            const auto n = static_cast<std::size_t>(j);
            if (p[n] == 0) continue;
            double slope = p[n] * (products[n] - mean) * scale;
            if (score) slope *= (score(raw[n] + kStep, b, h, i, j) - score(raw[n] - kStep, b, h, i, j)) / (2 * kStep);
            for (std::int64_t d = 0; d < s.e; ++d) {
              g.q[static_cast<std::size_t>(row * s.e + d)] += slope * at(k, kv + j, s.e, d);
              g.k[static_cast<std::size_t>((kv + j) * s.e + d)] += slope * at(q, row, s.e, d);
            }
            for (std::int64_t d = 0; d < s.ev; ++d) g.v[static_cast<std::size_t>((kv + j) * s.ev + d)] += p[n] * left[n] * at(grad, row, s.ev, d);
          }
        }
    return g;
  }

  /// The mean of values whose keys are allowed and like the query well, or of all allowed ones.
  static Problem problem(std::string_view what, std::string_view entry, DType dtype, const Shape& s, std::uint64_t seed, bool blocks, bool transposed = false) {
    const std::string_view implementation = entry == "flex_combine" ? "flex_split" : entry;
    Problem p{.name = std::string(what),
              .entry = entry,
              .needs_fp64 = dtype == DType::f64,
              .is_helper = implementation != entry,
              .by_matrix_instructions = entry.starts_with("flex_matrix")};
    model::Random random(seed);
    auto operand = [&](const Dims& sizes, auto&& draw) { return drawn(p, dtype, sizes, draw, transposed); };
    auto sign = [&] { return random.uniform(-1, 1) < 0 ? -8.0 : 8.0; };
    auto whole = [&] { return std::floor(random.uniform(-64, 64)); };
    const std::vector<double> q = operand(s.q(), sign), k = operand(s.k(), sign), v = operand(s.v(), whole);
    p.output = {dtype, s.out(), {}, std::vector<std::uint8_t>(bytes_for(dtype, static_cast<std::uint64_t>(numel(s.out()))))};
    if (transposed) p.output.strides = {s.heads * s.q_len * s.ev * 2, s.q_len * s.ev * 2, 2, s.q_len * 2};
    for (std::int64_t b = 0; b < s.batch; ++b)
      for (std::int64_t h = 0; h < s.heads; ++h)
        for (std::int64_t i = 0; i < s.q_len; ++i) {
          const std::int64_t row = s.row(b, h, i), kv = s.key(b, h);
          double top = -std::numeric_limits<double>::infinity();
          std::vector<double> scores;
          for (std::int64_t j = 0; j < s.kv_len; ++j) {
            scores.push_back(dot(q, row, k, kv + j, s.e) >= 64.0 * static_cast<double>(h + 3) ? 0.0 : -1024.0);
            if (allowed(s, h, i, j)) top = std::max(top, scores.back());
          }
          for (std::int64_t d = 0; d < s.ev; ++d) {
            double sum = 0, count = 0;
            for (std::int64_t j = 0; j < s.kv_len; ++j)
              if (allowed(s, h, i, j) && scores[static_cast<std::size_t>(j)] == top) sum += at(v, kv + j, s.ev, d), count += 1;
            const double factor = count == 0 ? 0 : dtype == DType::f64 ? 1 / count : static_cast<double>(1.0f / static_cast<float>(count));
            model::store_at(p.output.raw.data(), static_cast<std::size_t>(row * s.ev + d), dtype,
                            dtype == DType::f64 ? sum * factor : static_cast<double>(static_cast<float>(sum) * static_cast<float>(factor)));
          }
        }
    p.run = [=](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      const attention::MaskMod mask = mask_mod(s);
      attention::FlexOptions o{.score_mod = [](attention::Score x, attention::Index, attention::Index h, attention::Index,
                                               attention::Index) { return select(x >= 64.0f * (h + 3), 0.0f, -1024.0f); },
                               .scale = 1,
                               .enable_gqa = true,
                               .implementation = std::string(implementation),
                               .numerics = linalg::Numerics::tf32};
      if (blocks)
        o.block_mask =
            attention::create_block_mask(mask, {.heads = s.heads, .q_len = s.q_len, .kv_len = s.kv_len, .block = {48, 40}, .device = out.device()}, stream);
      else
        o.mask_mod = mask;
      attention::flex_out({.out = out}, in[0], in[1], in[2], o, stream);
    };
    return p;
  }

  /// A page cache's keys after rows were written to two sequences, whose pages lie in each other's.
  static Problem assign_problem(DType dtype, std::uint64_t seed) {
    Problem p{.name = std::string(name(dtype)), .entry = "flex_assign", .needs_fp64 = dtype == DType::f64, .is_helper = true};
    model::Random random(seed);
    const Dims rows{2, 3, 5, 6};
    const std::vector<double> k = drawn(p, dtype, rows, [&] { return std::floor(random.uniform(-64, 64)); });
    drawn(p, dtype, rows, [] { return 1.0; });
    // Positions from 3 and from 6 on, of pages of 4: sequence 0 has pages 0, 2, sequence 1 has 1, 3, 4.
    constexpr int kFirst[] = {3, 6}, kPages[2][3] = {{0, 2, -1}, {1, 3, 4}};
    p.output = {dtype, {1, 3, 20, 6}, {}, std::vector<std::uint8_t>(bytes_for(dtype, 360))};
    for (int b = 0; b < 2; ++b)
      for (int h = 0; h < 3; ++h)
        for (int x = 0; x < 5; ++x)
          for (int d = 0; d < 6; ++d) {
            const int at = kFirst[b] + x, row = kPages[b][at / 4] * 4 + at % 4, to = (h * 20 + row) * 6 + d, from = ((b * 3 + h) * 5 + x) * 6 + d;
            model::store_at(p.output.raw.data(), static_cast<std::size_t>(to), dtype, k[static_cast<std::size_t>(from)]);
          }
    p.run = [=](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      attention::PagedCache cache(
          {.pages = 5, .page_size = 4, .max_batch = 2, .max_pages = 3, .heads = 3, .key_size = 6, .dtype = dtype, .device = out.device()}, stream);
      for (std::int64_t length : {1, 8, 12})
        for (std::int64_t b : {0, 1}) cache.reserve(b, std::min(length, b == 0 ? std::int64_t{8} : length), stream);
      const Tensor sequences = from_host<std::int32_t>({0, 1}, out.device(), stream);
      const Tensor positions = from_host<std::int32_t>({3, 4, 5, 6, 7, 6, 7, 8, 9, 10}, out.device(), stream).reshape({2, 5});
      cache.assign(sequences, positions, in[0], in[1], stream);
      copy_(out, cache.keys(), {}, stream);
    };
    return p;
  }

  /// What dropout leaves of equal weights, by sdpa's math with the unit matrix for values; the counter passes 2^32 on the way.
  static Problem dropout_problem(DType dtype) {
    const Shape s{.batch = 2, .heads = 3, .q_len = 7, .kv_len = 10, .e = 2, .ev = 10};
    const GeneratorState state{.seed = 0x123456789abcdefull, .offset = 0xffffffffull - 20};
    Problem p{.name = std::string(name(dtype)), .entry = "flex_dropout", .needs_fp64 = dtype == DType::f64, .is_helper = true};
    drawn(p, dtype, s.q(), [] { return 0.0; }), drawn(p, dtype, s.k(), [] { return 0.0; });
    std::int64_t n = 0;
    drawn(p, dtype, s.v(), [&] { return n++ % 100 % 11 == 0 ? 1.0 : 0.0; });
    p.output = {dtype, s.out(), {}, std::vector<std::uint8_t>(bytes_for(dtype, static_cast<std::uint64_t>(numel(s.out()))))};
    const HostDropout left = host_dropout(s, 0.5, state);
    for (std::int64_t b = 0; b < s.batch; ++b)
      for (std::int64_t h = 0; h < s.heads; ++h)
        for (std::int64_t q = 0; q < s.q_len; ++q)
          for (std::int64_t kv = 0; kv < s.kv_len; ++kv)
            model::store_at(p.output.raw.data(), static_cast<std::size_t>(s.row(b, h, q) * s.kv_len + kv), dtype,
                            left(b, h, q, kv) / static_cast<double>(s.kv_len));
    p.run = [=](const Tensor& to, std::span<const Tensor> in, const Stream& stream) {
      Generator generator(to.device(), 1, current_stream(to.device()));
      generator.set_state(state);
      const attention::SdpaBackends only({attention::SdpaBackend::math});
      copy_(to, attention::sdpa(in[0], in[1], in[2], {.dropout_p = 0.5, .generator = generator}, stream).out, {}, stream);
    };
    return p;
  }

  /// A gradient (0: of queries, 1: of keys, 2: of values) where each weight is 1 or 0: the mod leaves of whole scores nothing, with a derivative of 1, and lse
  /// is 0. `large`: a query has one key, whose score is 2^20, and lse is too far from that to be used.
  static Problem gradient_problem(std::string_view entry, DType dtype, const Shape& s, int which, std::uint64_t seed, bool blocks, bool large = false) {
    Problem p{.name = fmt::format("d{} {}{}", "qkv"[which], name(dtype), large ? " large" : ""),
              .entry = entry,
              .needs_fp64 = dtype == DType::f64,
              .is_helper = true,
              .by_matrix_instructions = entry.starts_with("flex_matrix")};
    model::Random random(seed);
    auto operand = [&](const Dims& sizes) { return drawn(p, dtype, sizes, [&] { return std::floor(random.uniform(-1, 2)); }); };
    const std::vector<double> q = operand(s.q()), k = operand(s.k()), v = operand(s.v()), grad = operand(s.out()), out = operand(s.out());
    drawn(p, dtype == DType::f64 ? DType::f64 : DType::f32, {s.batch, s.heads, s.q_len}, [&] { return large ? 0x1p20 + 1 : 0.0; });
    const Dims sizes = which == 0 ? s.q() : which == 1 ? s.k() : s.v();
    std::vector<double> sums(static_cast<std::size_t>(numel(sizes)));
    for (std::int64_t b = 0; b < s.batch; ++b)
      for (std::int64_t h = 0; h < s.heads; ++h)
        for (std::int64_t i = 0; i < s.q_len; ++i)
          for (std::int64_t j = 0; j < s.kv_len; ++j) {
            const std::int64_t row = s.row(b, h, i), key = s.key(b, h) + j;
            if (large ? j != (i + h) % s.kv_len : !allowed(s, h, i, j) || dot(q, row, k, key, s.e) < static_cast<double>(h)) continue;
            const double slope = dot(grad, row, v, key, s.ev) - dot(grad, row, out, row, s.ev);
            for (std::int64_t d = 0; d < sizes[3]; ++d)
              sums[static_cast<std::size_t>((which == 0 ? row : key) * sizes[3] + d)] += which == 0   ? slope * at(k, key, s.e, d)
                                                                                         : which == 1 ? slope * at(q, row, s.e, d)
                                                                                                      : at(grad, row, s.ev, d);
          }
    p.output = {dtype, sizes, {}, std::vector<std::uint8_t>(bytes_for(dtype, static_cast<std::uint64_t>(numel(sizes))))};
    for (std::size_t i = 0; i < sums.size(); ++i) model::store_at(p.output.raw.data(), i, dtype, sums[i]);
    p.run = [=, numerics = p.by_matrix_instructions ? linalg::Numerics::tf32 : linalg::Numerics::chain](const Tensor& to, std::span<const Tensor> in,
                                                                                                        const Stream& stream) {
      attention::FlexOptions o{.score_mod = [](attention::Score x, attention::Index, attention::Index h, attention::Index,
                                               attention::Index) { return select(x >= h, x - cast(cast(x, DType::i32), x.dtype()), -1024.0f); },
                               .scale = 1,
                               .enable_gqa = true,
                               .implementation = std::string(entry.substr(0, entry.find('_', 5))),
                               .numerics = numerics};
      attention::MaskMod mask = mask_mod(s);
      if (large) {
        o.score_mod = [](attention::Score x, auto...) { return x - cast(cast(x, DType::i32), x.dtype()) + 0x1p20f; };
        mask = [&](attention::Index, attention::Index h, attention::Index i, attention::Index j) { return j == trunc_mod(i + h, param(s.kv_len)); };
      }
      if (blocks)
        o.block_mask =
            attention::create_block_mask(mask, {.heads = s.heads, .q_len = s.q_len, .kv_len = s.kv_len, .block = {48, 40}, .device = to.device()}, stream);
      else
        o.mask_mod = mask;
      const attention::FlexGradients made = attention::flex_backward(in[3], in[0], in[1], in[2], {.out = in[4], .lse = in[5]}, o, {}, stream);
      copy_(to, which == 0 ? made.q : which == 1 ? made.k : made.v, {}, stream);
    };
    return p;
  }

  static std::vector<Problem> problems(std::uint64_t seed) {
    std::vector<Problem> all;
    const Shape shape{.batch = 2, .heads = 2, .q_len = 51, .kv_len = 43, .e = 9, .ev = 11, .kv_heads = 1};
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) all.push_back(problem(name(dtype), "flex_lanes", dtype, shape, seed, true));
    all.push_back(problem("transposed", "flex_lanes", DType::f32, {.batch = 2, .heads = 1, .q_len = 51, .kv_len = 33, .e = 18, .ev = 40, .kv_batch = 1},
                          seed + 1, false, true));
    for (DType dtype : {DType::f32, DType::f64, DType::f16})
      all.push_back(problem(name(dtype), "flex_split", dtype, {.batch = 2, .heads = 4, .q_len = 5, .kv_len = 83, .e = 9, .ev = 11, .kv_heads = 2}, seed, true));
    all.push_back(problem("transposed", "flex_split", DType::f32, {.batch = 2, .heads = 1, .q_len = 3, .kv_len = 33, .e = 16, .ev = 32, .kv_batch = 1},
                          seed + 1, false, true));
    // The last key of a row counts whatever its score.
    all.push_back(problem("one key", "flex_split", DType::f32, {.batch = 2, .heads = 1, .q_len = 2, .kv_len = 1, .e = 5, .ev = 3}, seed + 1, false));
    for (DType dtype : {DType::f32, DType::f64, DType::bf16})
      all.push_back(problem(name(dtype), "flex_combine", dtype, {.heads = 2, .q_len = 2, .kv_len = 1100, .e = 2, .ev = 19}, seed + 7, false));
    for (DType dtype : {DType::f32, DType::f64, DType::f16}) all.push_back(assign_problem(dtype, seed + 8));
    for (DType dtype : {DType::f32, DType::f64}) all.push_back(dropout_problem(dtype));
    for (DType dtype : {DType::f32, DType::f64, DType::bf16})
      all.push_back(
          problem(name(dtype), "flex_items", dtype, {.batch = 2, .heads = 2, .q_len = 50, .kv_len = 21, .e = 7, .ev = 17, .kv_heads = 1}, seed + 2, true));
    all.push_back(problem("transposed", "flex_items", DType::f32, {.batch = 2, .heads = 1, .q_len = 9, .kv_len = 13, .e = 18, .ev = 33, .kv_batch = 1},
                          seed + 3, false, true));
    const Shape few{.batch = 2, .heads = 2, .q_len = 19, .kv_len = 23, .e = 7, .ev = 17, .kv_heads = 1};
    // Each runs all of backward, which simulators take long for: other dtypes and shapes once.
    for (int which : {0, 1, 2}) {
      all.push_back(gradient_problem("flex_lanes_backward", DType::f32, shape, which, seed + 4, true));
      all.push_back(gradient_problem(which == 0 ? "flex_items_dq" : "flex_items_dkv", DType::f32, few, which, seed + 6, true));
    }
    for (int which : {0, 2}) all.push_back(gradient_problem("flex_lanes", which == 0 ? DType::f32 : DType::f64, shape, which, seed + 15, which == 0, true));
    all.push_back(gradient_problem("flex_items", DType::f32, few, 0, seed + 16, false, true));
    all.push_back(gradient_problem("flex_tiles", DType::f32, {.heads = 1, .q_len = 20, .kv_len = 20, .e = 9, .ev = 9}, 2, seed + 17, false, true));
    // Whole tiles are worked on, which simulators take long for: few of them.
    const Shape tiles{.batch = 1, .heads = 2, .q_len = 66, .kv_len = 20, .e = 19, .ev = 11, .kv_heads = 1};
    for (DType dtype : {DType::f32, DType::f64})
      all.push_back(problem(name(dtype), "flex_tiles", dtype, {.heads = 2, .q_len = 35, .kv_len = 40, .e = 19, .ev = 11, .kv_heads = 1}, seed + 9, true));
    // Rows that are quads in memory, and several tiles of queries and of keys.
    all.push_back(problem("quads", "flex_tiles", DType::f32, {.q_len = 70, .kv_len = 75, .e = 20, .ev = 24}, seed + 18, true));
    all.push_back(problem("bf16", "flex_tiles", DType::bf16, {.q_len = 35, .kv_len = 20, .e = 19, .ev = 11}, seed + 9, false));
    all.push_back(
        problem("transposed", "flex_tiles", DType::f32, {.batch = 2, .q_len = 20, .kv_len = 20, .e = 18, .ev = 40, .kv_batch = 1}, seed + 10, false, true));
    // Several tiles of keys, by blocks and by the mask alone; a tile of queries that is halved on devices of many units. Rows are not quads of words.
    all.push_back(problem("bf16", "flex_matrix", DType::bf16, {.heads = 2, .q_len = 35, .kv_len = 70, .e = 19, .ev = 11, .kv_heads = 1}, seed + 19, true));
    all.push_back(problem("mask", "flex_matrix", DType::bf16, {.q_len = 35, .kv_len = 75, .e = 24, .ev = 40}, seed + 20, false));
    // Several tiles of others, and of both sides; heads and batches that share keys; sums of rows with large scores. Simulators run the first of each entry.
    all.push_back(
        gradient_problem("flex_matrix_dq", DType::bf16, {.heads = 2, .q_len = 20, .kv_len = 40, .e = 19, .ev = 11, .kv_heads = 1}, 0, seed + 21, true));
    all.push_back(gradient_problem("flex_matrix_dkv", DType::bf16, {.q_len = 40, .kv_len = 20, .e = 19, .ev = 11}, 1, seed + 21, true));
    all.push_back(
        gradient_problem("flex_matrix_dkv", DType::bf16, {.heads = 2, .q_len = 70, .kv_len = 75, .e = 19, .ev = 11, .kv_heads = 1}, 2, seed + 22, true));
    all.push_back(
        gradient_problem("flex_matrix_dkv", DType::bf16, {.batch = 2, .q_len = 35, .kv_len = 40, .e = 24, .ev = 40, .kv_batch = 1}, 1, seed + 22, false));
    all.push_back(gradient_problem("flex_matrix", DType::bf16, {.heads = 1, .q_len = 20, .kv_len = 20, .e = 9, .ev = 9}, 2, seed + 23, false, true));
    // Of heads that share keys; and of queries of each, by parts.
    for (DType dtype : {DType::f32, DType::f64, DType::f16})
      all.push_back(problem(name(dtype), "flex_tiles_split", dtype, {.heads = 20, .kv_len = 43, .e = 19, .ev = 11, .kv_heads = 1}, seed + 13, false));
    all.push_back(problem("transposed", "flex_tiles_split", DType::f32, {.batch = 1, .q_len = 3, .kv_len = 530, .e = 18, .ev = 40}, seed + 14, false, true));
    for (int which : {0, 1, 2}) all.push_back(gradient_problem(which == 0 ? "flex_tiles_dq" : "flex_tiles_dkv", DType::f32, tiles, which, seed + 11, true));
    all.push_back(gradient_problem("flex_tiles_dkv", DType::f64, {.q_len = 17, .kv_len = 20, .e = 16, .ev = 24}, 1, seed + 12, false));
    for (DType dtype : {DType::f64, DType::bf16}) all.push_back(gradient_problem("flex_lanes_backward", dtype, shape, 1, seed + 4, true));
    all.push_back(gradient_problem("flex_lanes_backward", DType::f32, {.batch = 2, .heads = 1, .q_len = 37, .kv_len = 70, .e = 16, .ev = 24, .kv_batch = 1}, 0,
                                   seed + 5, false));
    all.push_back(gradient_problem("flex_items_dkv", DType::f16, few, 1, seed + 6, false));
    return all;
  }

  static constexpr Mutation kMutations[] = {
      {"flex_lanes", Edit::tail, "const int count = (int)min((long)CLUTCH_KEYS, block_end - kv);",
       "const int count = (int)min((long)CLUTCH_KEYS, block_end - kv - 1);"},
      {"flex_lanes", Edit::stride, "min(begin + v * WIDTH + l, end - 1) * stride[2]", "min(begin + v * WIDTH + l, end - 1) / 2 * stride[2]"},
      {"flex_lanes", Edit::offset, "value_at = row_at(args.v_stride, b, hk, from);", "value_at = row_at(args.v_stride, b, hk, from) + 1;"},
      {"flex_lanes", Edit::arithmetic, "rescale[v] = rescale_of(row_max[v], shift[v]);", "rescale[v] = (R)1 + rescale_of(row_max[v], shift[v]);"},
      {"flex_lanes", Edit::arithmetic, "*row_max_out = found ? row_max :", "*row_max_out = found ? lse :"},
      {"flex_items", Edit::arithmetic, "*row_log_out = found ? log_sum : 0", "*row_log_out = found ? log_sum + 1 : 0"},
      {"flex_tiles", Edit::arithmetic, "*row_max_out = found ? row_max :", "*row_max_out = found ? lse :"},
      {"flex_split", Edit::tail, "CLUTCH_L_TO_VI(CLUTCH_IOTA_VL) < (VI)(last - j)", "CLUTCH_L_TO_VI(CLUTCH_IOTA_VL) < (VI)(last - j - 1)"},
      {"flex_split", Edit::stride, "keys += key_stride;", "keys += i % 2 * key_stride;"},
      {"flex_split", Edit::offset, "row_at(args.q_stride, b, h, query), args.q_stride, 1,", "row_at(args.q_stride, b, h, query) + 1, args.q_stride, 1,"},
      {"flex_split", Edit::arithmetic, "*row_sum *= *rescale;", "*row_sum += *rescale;"},
      {"flex_combine", Edit::tail, "from + c < args.ev ? parts[", "from + c + 1 < args.ev ? parts["},
      {"flex_combine", Edit::stride, "const long part = flex_part(i, lines, (long)line);", "const long part = flex_part(i / 2, lines, (long)line);"},
      {"flex_combine", Edit::offset, "parts[part * args.part_stride + from + c]", "parts[part * args.part_stride + from + (c ^ 1)]"},
      {"flex_combine", Edit::arithmetic, "has_keys ? multiply_add(sums[2 * part + 1], rescale, row_sum)",
       "has_keys ? multiply_add(sums[2 * part + 1], rescale, (T)0)"},
      {"flex_assign", Edit::tail, "for (long d = 0; d < args.e; ++d)\n      if (there) store_number(keys",
       "for (long d = 1; d < args.e; ++d)\n      if (there) store_number(keys"},
      {"flex_assign", Edit::stride, "positions[i * args.length + x]", "positions[i * args.length + x / 2]"},
      {"flex_assign", Edit::offset, "store_number(keys, row * args.e + d,", "store_number(keys, row * args.e + (d ^ 1),"},
      {"flex_assign", Edit::arithmetic, "position % args.page_size;", "position / 2 % args.page_size;"},
      {"flex_tiles", Edit::tail, "{ return row < (uint)r->count && element < (uint)r->length",
       "{ return row < (uint)r->count && element + 4 < (uint)r->length"},
      {"flex_tiles", Edit::stride, "begin = r->at + (long)row * r->row_stride;", "begin = r->at + (long)(row / 2) * r->row_stride;"},
      {"flex_tiles", Edit::offset, "span.q_at + begin), args.out_stride[2]", "span.q_at + begin) + args.out_stride[3], args.out_stride[2]"},
      {"flex_tiles", Edit::arithmetic, "row_sum[i] *= of_rows[i];", "row_sum[i] += of_rows[i];"},
      {"flex_matrix", Edit::tail, ">= tile.count) score", ">= tile.count - 1) score"},
      {"flex_matrix", Edit::stride, "i = (int)row * r->row_stride", "i = (int)(row / 2) * r->row_stride"},
      {"flex_matrix", Edit::offset, "span.q_at + begin) + first * args.out_stride[3]", "span.q_at + begin) + (first + 1) * args.out_stride[3]"},
      {"flex_matrix", Edit::arithmetic, "line % 8 / 2 * 4 + line % 16 / 8 * 2", "line % 8 / 2 * 2 + line % 16 / 8 * 8"},
      {"flex_matrix", Edit::arithmetic, "*row_max_out = found ? row_max :", "*row_max_out = found ? lse :"},
      {"flex_matrix_dq", Edit::tail, "if (of_tile < count && element < length)", "if (of_tile + 1 < count && element < length)"},
      {"flex_matrix_dq", Edit::stride, "store_states(states, tensors, to, rows.count,", "store_states(states, tensors, to / 2, rows.count,"},
      {"flex_matrix_dq", Edit::offset, "store_results(to, at * length + first,", "store_results(to, at * length + first + 1,"},
      {"flex_matrix_dq", Edit::arithmetic, "(*product * factor - known.s2)", "(*product * factor + known.s2)"},
      {"flex_matrix_dkv", Edit::tail, "((other) < tile->count))", "((other) < tile->count - 1))"},
      {"flex_matrix_dkv", Edit::stride, "i = (int)row * r->row_stride", "i = (int)(row / 2) * r->row_stride"},
      {"flex_matrix_dkv", Edit::offset, "states + 4 * (BY_KEYS ? other : row)", "states + 4 * (BY_KEYS ? other ^ 1 : row)"},
      {"flex_matrix_dkv", Edit::arithmetic, "*raw = p * factor;", "*raw = 2 * p * factor;"},
      {"flex_tiles_split", Edit::tail, "if (element_of(item, c) < args.ev) tensors->parts", "if (element_of(item, c) + 1 < args.ev) tensors->parts"},
      {"flex_tiles_split", Edit::stride, "line_stride = by_heads ? args.q_rows : 1;", "line_stride = by_heads ? 0 : 1;"},
      {"flex_tiles_split", Edit::offset, "row_at(args.q_stride, b, h, span.q_at + begin), row_stride",
       "row_at(args.q_stride, b, h, span.q_at + begin) + 1, row_stride"},
      {"flex_tiles_split", Edit::arithmetic, "tensors->sums[2 * part + 1] = row.row_sum;", "tensors->sums[2 * part + 1] = 2 * row.row_sum;"},
      {"flex_tiles_dq", Edit::tail, "row < (uint)r->count && element < (uint)r->length", "row + 1 < (uint)r->count && element < (uint)r->length"},
      {"flex_tiles_dq", Edit::stride, "const long line = line_of(&args, &span, b, h) + begin, query",
       "const long line = line_of(&args, &span, b, h) + begin / 2, query"},
      {"flex_tiles_dq", Edit::offset, "store_rows(dq, line * args.e,", "store_rows(dq, line * args.e + 1,"},
      {"flex_tiles_dq", Edit::arithmetic, "(*product * factor - delta)", "(*product * factor + delta)"},
      {"flex_tiles_dkv", Edit::tail, "if (row_of(item, i) >= count) return;", "if (row_of(item, i) + 1 >= count) return;"},
      {"flex_tiles_dkv", Edit::stride, "query = span.q_at + x;", "query = span.q_at + x / 2;"},
      {"flex_tiles_dkv", Edit::offset, "store_rows(dv, to * args.ev,", "store_rows(dv, to * args.ev + 1,"},
      {"flex_tiles_dkv", Edit::arithmetic, "factor[i] = scale;\n    store_rows(dk,", "factor[i] = 2 * scale;\n    store_rows(dk,"},
      {"flex_dropout", Edit::tail, "if (4 * quad + i < args.kv_len)", "if (4 * quad + i + 1 < args.kv_len)"},
      {"flex_dropout", Edit::stride, "query = args.first + of % args.count;", "query = args.first + of % args.count / 2;"},
      {"flex_dropout", Edit::offset, "factors[of * args.kv_len + 4 * quad + i] =", "factors[of * args.kv_len + 4 * quad + (i ^ 1)] ="},
      {"flex_dropout", Edit::arithmetic, "words.w[i] < args.dropout_below ? (T)0 : kept", "words.w[i] < args.dropout_below ? kept : (T)0"},
      {"flex_items", Edit::tail, "for (long d = 0; d < args.e; ++d)\n            score", "for (long d = 1; d < args.e; ++d)\n            score"},
      {"flex_items", Edit::stride, "row_v + (from + c) * args.v_stride[3]", "row_v + (from + c) / 2 * args.v_stride[3]"},
      {"flex_items", Edit::offset, "(from + c) * args.out_stride[3], sum", "(from + (c ^ 1)) * args.out_stride[3], sum"},
      {"flex_items", Edit::arithmetic, "const T factor = row_sum == 0 ? (T)0 : 1 / row_sum;", "const T factor = row_sum == 0 ? (T)0 : 2 / row_sum;"},
      {"flex_lanes_backward", Edit::tail, "const int count = (int)min((long)CLUTCH_KEYS, block_end - i);",
       "const int count = (int)min((long)CLUTCH_KEYS, block_end - i - 1);"},
      {"flex_lanes_backward", Edit::stride, "flex_part(chunk, lines, line + i)", "flex_part(chunk, lines, line + i / 2)"},
      {"flex_lanes_backward", Edit::offset, "grad_at = row_at(args.out_stride, b, h, query);", "grad_at = row_at(args.out_stride, b, h, query) + 1;"},
      {"flex_lanes_backward", Edit::arithmetic, "(slopes[j * CLUTCH_NV + v] * factor - mean)", "(slopes[j * CLUTCH_NV + v] * factor + mean)"},
      {"flex_items_dq", Edit::tail, "from + c < args.e ? load_number(tensors->k,", "from + c + 1 < args.e ? load_number(tensors->k,"},
      {"flex_items_dq", Edit::stride, "const long key = span.kv_at + j, row_k", "const long key = span.kv_at + j / 2, row_k"},
      {"flex_items_dq", Edit::offset, "line * args.e + from + c, sum[c] * scale", "line * args.e + from + (c ^ 1), sum[c] * scale"},
      {"flex_items_dq", Edit::arithmetic, "sum[c] * scale);", "-sum[c] * scale);"},
      {"flex_items_dkv", Edit::tail, "if (there && from + c < args.ev) store_number(dv", "if (there && from + c + 1 < args.ev) store_number(dv"},
      {"flex_items_dkv", Edit::stride, "const long line = line_of(&args, &span, b, h) + i, query",
       "const long line = line_of(&args, &span, b, h) + i / 2, query"},
      {"flex_items_dkv", Edit::offset, "to * args.ev + from + c, value_sum", "to * args.ev + from + (c ^ 1), value_sum"},
      {"flex_items_dkv", Edit::arithmetic, "key_sum[c] * scale", "2 * key_sum[c] * scale"},
  };

 private:
  static double at(const std::vector<double>& x, std::int64_t row, std::int64_t length, std::int64_t i) {
    return x[static_cast<std::size_t>(row * length + i)];
  }
  /// Two of three keys up to the query's place, which of few queries is near the last key.
  static std::int64_t offset(const Shape& s) { return std::max<std::int64_t>(s.kv_len - s.q_len - 3, 0); }
  static attention::MaskMod mask_mod(const Shape& s) {
    using attention::Index;
    return [&](Index, Index h, Index i, Index j) { return (i + h + param(offset(s)) >= j) & (trunc_mod(i + j, 3) != 0); };
  }
  static bool allowed(const Shape& s, std::int64_t h, std::int64_t i, std::int64_t j) { return i + h + offset(s) >= j && (i + j) % 3 != 0; }
  static double dot(const std::vector<double>& a, std::int64_t row, const std::vector<double>& b, std::int64_t other, std::int64_t length) {
    double x = 0;
    for (std::int64_t d = 0; d < length; ++d) x += at(a, row, length, d) * at(b, other, length, d);
    return x;
  }
  /// Adds an input: (batch, length, heads, size) in memory, with gaps; `transposed`, elements of a row apart; others than of rank 4 dense.
  static std::vector<double> drawn(Problem& p, DType dtype, const Dims& sizes, const std::function<double()>& draw, bool transposed = false) {
    Operand o{.dtype = dtype, .sizes = sizes, .raw = std::vector<std::uint8_t>(bytes_for(dtype, static_cast<std::uint64_t>(numel(sizes))))};
    if (transposed)
      o.strides = {(sizes[1] * sizes[2] * 2 + 1) * sizes[3] + 5, 2, sizes[1] * 2, sizes[1] * sizes[2] * 2 + 1};
    else if (sizes.rank() == 4)
      o.strides = {sizes[2] * (sizes[1] * sizes[3] + 3) + 7, sizes[3], sizes[1] * sizes[3] + 3, 1};
    std::vector<double> values;
    for (std::int64_t i = 0; i < numel(sizes); ++i) {
      values.push_back(draw());
      model::store_at(o.raw.data(), static_cast<std::size_t>(i), dtype, values.back());
    }
    p.inputs.push_back(std::move(o));
    return values;
  }
};

}  // namespace clutch::cases
