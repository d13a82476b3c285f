// SPDX-License-Identifier: Apache-2.0
// Gradients of attention by matrix instructions, as tests/ops/flex/matrix_test.cpp has attention itself.
#include "ops/flex/matrix_calls.hpp"
#include "support/op_runner.hpp"

#include <array>

namespace clutch::testing { namespace {

using detail::MatrixStandIn;
using linalg::Numerics;

/// Weights of 0 and 1 and whole numbers: lengths around tiles, heads and batches that share keys, rows of quads and others, block masks.
TEST(FlexMatrixGradients, WholeNumbersAreExact) {
  CLUTCH_EACH_DEVICE(device) {
    if (!runs_flex_matrix(device)) continue;
    constexpr std::array kShapes{FlexCase::Shape{.batch = 1, .heads = 2, .q_len = 75, .kv_len = 70, .e = 19, .ev = 11, .kv_heads = 1},
                                 FlexCase::Shape{.batch = 2, .heads = 1, .q_len = 33, .kv_len = 129, .e = 64, .ev = 64, .kv_batch = 1},
                                 FlexCase::Shape{.batch = 1, .heads = 1, .q_len = 70, .kv_len = 40, .e = 72, .ev = 128}};
    int turn = 0;
    for (std::size_t i = 0; i < kShapes.size(); ++i)
      for (const MatrixLayout layout : kLayouts) {
        const MatrixStandIn stand_in(layout);
        for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
          if (dtype == DType::f32 && !detail::multiplies(layout, {.kind = MATMUL_NUMBERS_TF32})) continue;
          ++turn;
          // Each is two programs. Which lane has what does not depend on the shape.
          if (level() == "smoke" && (i > 0 || dtype != DType::bf16 || (layout != MatrixLayout::mma && layout != MatrixLayout::wmma))) continue;
          for (const int which : {0, 1, 2}) {
            const std::string wrong = run_once(device, FlexCase::gradient_problem("flex_matrix_dq", dtype, kShapes[i], which, seed() + i, turn % 2 == 0));
            EXPECT_EQ(wrong, "") << name(layout) << " " << name(dtype) << " shape " << i << " gradient " << which;
          }
        }
      }
  }
}

/// The contract's bounds of gradients of a call with the gradient of the result that is given; those of rounded inputs, whose exact gradients are `want`.
FlexCase::Gradients bounds_of(const Given& given, DType dtype, const std::vector<double>& grad, const MatrixCall& call, const FlexCase::Gradients& want) {
  const FlexCase::Shape& s = given.shape;
  const std::vector<double> q = values(given.q), k = values(given.k), v = values(given.v);
  const FlexCase::HostDropout dropout = call.host_dropout(s);
  const FlexCase::Result forward = FlexCase::model(s, q, k, v, MatrixCall::kScale, call.host_score, call.host_mask);
  const bool f16 = dtype == DType::f16;
  const double d = score_error(given, dtype, MatrixCall::kScale, forward.largest), u = matrix_unit(dtype), step = 1e-5;
  const std::int64_t of_heads = s.heads / s.k()[1], of_batches = s.k()[0] == 1 ? s.batch : 1;
  const auto keys = static_cast<double>(s.kv_len), readers = static_cast<double>(s.q_len * of_heads * of_batches);
  auto of_sums = [](double terms) { return 2 * (terms + 16) * 0x1p-23; };
  auto largest = [](const std::vector<double>& x) {
    double most = 0;
    for (double y : x) most = std::max(most, std::fabs(y));
    return most;
  };
  auto at = [](const std::vector<double>& x, std::int64_t row, std::int64_t length, std::int64_t i) { return x[static_cast<std::size_t>(row * length + i)]; };
  FlexCase::Gradients g{std::vector<double>(q.size()), std::vector<double>(k.size()), std::vector<double>(v.size())};
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h)
      for (std::int64_t i = 0; i < s.q_len; ++i) {
        const std::int64_t row = s.row(b, h, i), kv = s.key(b, h);
        const double lse = forward.lse[static_cast<std::size_t>(row)], of_p = 2 * d + (keys + 256) * 0x1p-21 + 0x1p-22 * std::fabs(lse);
        std::vector<double> w, left, sizes, slopes;
        double all = 0;
        for (std::int64_t j = 0; j < s.kv_len; ++j) {
          double raw = 0, size = 0;
          for (std::int64_t e = 0; e < s.e; ++e) raw += at(q, row, s.e, e) * at(k, kv + j, s.e, e) * MatrixCall::kScale;
          for (std::int64_t e = 0; e < s.ev; ++e) size += std::fabs(at(grad, row, s.ev, e) * at(v, kv + j, s.ev, e));
          auto modified = [&](double x) { return call.host_score ? call.host_score(x, b, h, i, j) : x; };
          const bool allowed = !call.host_mask || call.host_mask(b, h, i, j);
          w.push_back(allowed ? std::exp(modified(raw) - lse) : 0), left.push_back(dropout ? dropout(b, h, i, j) : 1), sizes.push_back(size);
          slopes.push_back(std::fabs(modified(raw + step) - modified(raw - step)) / (2 * step) + call.curvature * d / (3 * u + 4 * of_p));
          all += w.back() * left.back() * size;
        }
        for (std::int64_t j = 0; j < s.kv_len; ++j) {
          const auto n = static_cast<std::size_t>(j);
          if (w[n] == 0) continue;
          const double slope = slopes[n] * w[n] * (left[n] * sizes[n] + all) * MatrixCall::kScale, of_slopes = 3 * u + 4 * of_p;
          auto ev = static_cast<double>(s.ev);
          for (std::int64_t e = 0; e < s.e; ++e) {
            g.q[static_cast<std::size_t>(row * s.e + e)] += (of_slopes + of_sums(keys + ev + 16)) * slope * std::fabs(at(k, kv + j, s.e, e));
            g.k[static_cast<std::size_t>((kv + j) * s.e + e)] += (of_slopes + of_sums(readers + ev + 16)) * slope * std::fabs(at(q, row, s.e, e));
          }
          for (std::int64_t e = 0; e < s.ev; ++e)
            g.v[static_cast<std::size_t>((kv + j) * s.ev + e)] += (u + 2 * of_p + of_sums(readers)) * w[n] * left[n] * std::fabs(at(grad, row, s.ev, e));
        }
      }
  auto finish = [&](std::vector<double>& bounds, const std::vector<double>& exact, double subnormal) {
    for (std::size_t i = 0; i < bounds.size(); ++i) bounds[i] += stored_unit(dtype, exact[i]) + (f16 ? subnormal * 0x1p-25 : 0);
  };
  finish(g.q, want.q, keys * MatrixCall::kScale * largest(k)), finish(g.k, want.k, readers * MatrixCall::kScale * largest(q));
  finish(g.v, want.v, readers * largest(grad));
  return g;
}

/// Random tensors stay within the contract's bounds, on the device's own instructions where it has them: masks, mods with captured tensors, dropout with the
/// numbers that the forward pass drew.
TEST(FlexMatrixGradients, RandomNumbersKeepTheBound) {
  const auto by_day = [](DType dtype, const MatrixCall& call) { return dtype == DType::f16 && call.drops; };
  each_random_matrix_call(by_day, [](const Device& device, const Given& given, DType dtype, const MatrixCall& call, const FlexOptions& options) {
    const Tensor of_out = randn(given.shape.out(), {.dtype = dtype, .device = device, .seed = seed() + 9});
    const attention::FlexGradients got = attention::flex_backward(of_out, given.q, given.k, given.v, flex(given.q, given.k, given.v, options), options);
    const std::vector<double> grad = values(of_out);
    const FlexCase::Gradients want = FlexCase::gradients(given.shape, values(given.q), values(given.k), values(given.v), grad, MatrixCall::kScale,
                                                         call.host_score, call.host_mask, {}, call.host_dropout(given.shape));
    const FlexCase::Gradients bounds = bounds_of(given, dtype, grad, call, want);
    auto expect = [&](const char* what, const Tensor& t, const std::vector<double>& exact, const std::vector<double>& most) {
      const std::vector<double> is = values(t);
      ASSERT_EQ(is.size(), exact.size());
      double nearest = 0;
      for (std::size_t i = 0; i < is.size(); ++i) {
        ASSERT_LE(std::fabs(is[i] - exact[i]), most[i])
            << call.name << " of " << name(dtype) << ": d" << what << " at " << i << ", " << is[i] << " for " << exact[i];
        nearest = std::max(nearest, std::fabs(is[i] - exact[i]) / most[i]);
      }
      // A bound that nothing comes near would notice nothing. That of f32 is of scores whose products are all rounded the same way.
      EXPECT_GT(nearest, dtype == DType::f32 ? 0x1p-10 : 0x1p-7) << call.name << " of " << name(dtype) << ": d" << what;
    };
    expect("q", got.q, want.q, bounds.q), expect("k", got.k, want.k, bounds.k), expect("v", got.v, want.v, bounds.v);
  });
}

/// Sequences of several lengths, an empty one and keys that do not count among them: as by the reference, within what rounding to 11 bits allows.
TEST(FlexMatrixGradients, OfSequencesAreThoseOfTheReference) {
  const Device& device = test_devices().front();
  if (!runs_flex_matrix(device)) GTEST_SKIP() << "the device runs no groups of the layouts' sub-groups";
  auto numbers = [&](const std::vector<std::int32_t>& x) { return from_host(x, {static_cast<std::int64_t>(x.size())}, device); };
  auto rows = [&](const Dims& sizes, std::uint64_t more) { return randn(sizes, {.device = device, .seed = seed() + more}); };
  const Tensor q = rows({1, 4, 77, 24}, 1), k = rows({1, 2, 90, 24}, 2), v = rows({1, 2, 90, 16}, 3), grad = rows({1, 4, 77, 16}, 4);
  FlexOptions o{.mask_mod = attention::causal(15),
                .scale = 0.25,
                .enable_gqa = true,
                .return_lse = true,
                .varlen = {.cu_seq_q = numbers({0, 20, 20, 77}), .cu_seq_kv = numbers({0, 40, 47, 90}), .seqused_kv = numbers({33, 7, 43})},
                .implementation = "flex_items"};
  const FlexResult forward = flex(q, k, v, o);
  const attention::FlexGradients want = attention::flex_backward(grad, q, k, v, forward, o);
  const MatrixStandIn stand_in(MatrixLayout::mma);
  o.implementation = "flex_matrix", o.numerics = Numerics::tf32;
  const attention::FlexGradients got = attention::flex_backward(grad, q, k, v, forward, o);
  auto near = [](const char* what, const Tensor& x, const Tensor& y) {
    const std::vector<double> is = values(x), exact = values(y);
    for (std::size_t i = 0; i < is.size(); ++i) ASSERT_NEAR(is[i], exact[i], 0x1p-6 * (1 + std::fabs(exact[i]))) << what << " at " << i;
  };
  near("dq", got.q, want.q), near("dk", got.k, want.k), near("dv", got.v, want.v);
}

}}  // namespace clutch::testing
