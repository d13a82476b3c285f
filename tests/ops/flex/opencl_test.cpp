// SPDX-License-Identifier: Apache-2.0
// Score mods and masks whose functions have OpenCL C in them.
#include "ops/flex/given.hpp"

namespace clutch::testing { namespace {

/// A leaky score, its derivative given.
Expr leaky(const Expr& x, const Expr& slope) { return opencl(x.dtype(), {"x0 > 0 ? x0 : x0 * x1", {"x0 > 0 ? 1 + 0 * x0 : x1 + 0 * x0", ""}}, {x, slope}); }
Expr same_parity(const Index& q, const Index& kv) { return opencl(DType::boolean, {"((x0 ^ x1) & 1) == 0"}, {q, kv}); }

TEST(OpenclMods, AreWhatLambdasAre) {
  CLUTCH_EACH_DEVICE(device) {
    auto host = [](double slope, double more) {
      return FlexCase::HostScore([=](double s, auto b, auto h, auto q, auto kv) {
        const double moved = s + more * static_cast<double>(kv - q) + 0.5 * static_cast<double>(b - h);
        return moved > 0 ? moved : slope * moved;
      });
    };
    auto mod = [](double slope, double more) {
      return ScoreMod([=](Score s, Index b, Index h, Index q, Index kv) {
        return leaky(s + param(more) * cast(kv - q, s.dtype()) + 0.5 * cast(b - h, s.dtype()), cast(param(slope), s.dtype()));
      });
    };
    const FlexCase::HostMask host_mask = [](auto, auto, auto q, auto kv) { return q + 10 >= kv && (q - kv) % 2 == 0; };
    const MaskMod mask = MaskMod([](Index, Index, Index q, Index kv) { return same_parity(q, kv); }) & attention::causal(10);
    for (DType dtype : {DType::f32, DType::f64})
      for (std::string implementation : {"", "flex_items"})
        for (std::int64_t q_len : {3, 30}) {
          if (level() == "smoke" && dtype == DType::f64 && implementation.empty()) continue;
          if (dtype == DType::f64 && (q_len == 3 || skip_without(device, "fp64", device.traits().fp64))) continue;
          const Given given({.batch = 2, .heads = 2, .q_len = q_len, .kv_len = 37, .e = 8, .ev = 8}, device, dtype);
          FlexOptions o{.score_mod = mod(0.125, 0.25), .mask_mod = mask, .return_lse = true, .implementation = implementation};
          const FlexResult made = flex(given.q, given.k, given.v, o);
          expect_close(made, given.model(host(0.125, 0.25), host_mask), fmt::format("{} {}", implementation, name(dtype)));
          const Tensor grad = randn(given.shape.out(), {.dtype = dtype, .device = device, .seed = 3});
          const attention::FlexGradients got = attention::flex_backward(grad, given.q, given.k, given.v, made, o);
          const FlexCase::Gradients want = FlexCase::gradients(given.shape, values(given.q), values(given.k), values(given.v), values(grad), 1 / std::sqrt(8.0),
                                                               host(0.125, 0.25), host_mask);
          const std::vector<double> dq = values(got.q), dk = values(got.k);
          for (std::size_t i = 0; i < dq.size(); ++i) ASSERT_NEAR(dq[i], want.q[i], 5e-5) << implementation;
          for (std::size_t i = 0; i < dk.size(); ++i) ASSERT_NEAR(dk[i], want.k[i], 5e-5) << implementation;
          // Other numbers build nothing.
          const BuildCounters before = build_counters();
          o.score_mod = mod(1, 0.5);
          expect_close(flex(given.q, given.k, given.v, o), given.model(host(1, 0.5), host_mask), "other numbers");
          EXPECT_EQ(build_counters().built + build_counters().loaded, before.built + before.loaded);
        }
  }
}

TEST(OpenclMods, MakeBlockMasks) {
  CLUTCH_EACH_DEVICE(device) {
    // Ranges decide nothing of a text: its blocks are found element by element.
    const MaskMod by_text([](Index, Index, Index q, Index kv) { return opencl(DType::boolean, {"x0 / 16 == x1 / 16"}, {q, kv}); });
    const MaskMod by_lambda([](Index, Index, Index q, Index kv) { return floor_div(q, 16) == floor_div(kv, 16); });
    auto blocks = [&](const MaskMod& mask) {
      return attention::create_block_mask(mask, {.q_len = 70, .kv_len = 90, .block = {16, 32}, .device = device}).to_dense().to_host<std::int32_t>();
    };
    EXPECT_EQ(blocks(by_text), blocks(by_lambda));
    const Given given({.batch = 1, .heads = 2, .q_len = 70, .kv_len = 90, .e = 8, .ev = 8}, device);
    const attention::BlockMask made = attention::create_block_mask(by_text, {.q_len = 70, .kv_len = 90, .block = {16, 32}, .device = device});
    expect_close(flex(given.q, given.k, given.v, {.block_mask = made, .return_lse = true}),
                 given.model({}, [](auto, auto, auto q, auto kv) { return q / 16 == kv / 16; }), "by blocks");
  }
}

TEST(OpenclMods, SayWhatIsMissing) {
  CLUTCH_EACH_DEVICE(device) {
    const Given given({.batch = 1, .heads = 1, .q_len = 20, .kv_len = 20, .e = 8, .ev = 8}, device);
    const ScoreMod unknown([](Score s, Index, Index, Index, Index) { return opencl(s.dtype(), {"no_such_function(x0)"}, {s}); });
    EXPECT_EQ(code_of([&] { flex(given.q, given.k, given.v, {.score_mod = unknown}); }), ErrorCode::build_failure);
    const FlexOptions forward{.score_mod = ScoreMod([](Score s, Index, Index, Index, Index) { return opencl(s.dtype(), {"x0 * 2"}, {s}); }),
                              .return_lse = true};
    const FlexResult made = flex(given.q, given.k, given.v, forward);
    EXPECT_EQ(code_of([&] { attention::flex_backward(given.q, given.q, given.k, given.v, made, forward); }), ErrorCode::not_supported);
  }
}

}}  // namespace clutch::testing
