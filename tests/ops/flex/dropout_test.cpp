// SPDX-License-Identifier: Apache-2.0
#include "ops/flex/given.hpp"

#include <clutch/graph.hpp>

namespace clutch::testing { namespace {

TEST(Dropout, IsThatOfTheGeneratorForwardAndBackward) {
  CLUTCH_EACH_DEVICE(device) {
    const bool wide = detail::select(device.traits(), detail::FlexProblem{}).entry == "flex_lanes";
    for (std::string implementation : {"flex_lanes", "flex_split", "flex_tiles", "flex_items"}) {
      if (implementation != "flex_items" && !wide) continue;
      if (level() == "smoke" && implementation == "flex_tiles" && device.type() == DeviceType::cpu) continue;
      if (implementation == "flex_tiles" && code_of([&] { detail::select(device.traits(), detail::FlexProblem{}, "flex_tiles"); }) != ErrorCode::ok) continue;
      // Blocks that begin anywhere, and a counter that passes 2^32 on the way.
      const Given given({.batch = 2, .heads = 2, .q_len = 37, .kv_len = 45, .e = 8, .ev = 12, .kv_heads = 1}, device);
      const GeneratorState state{.seed = 0x123456789abcdefull, .offset = 0xffffffffull - 300};
      Generator generator(device, 1);
      generator.set_state(state);
      FlexOptions o{.score_mod = attention::softcap(3),
                    .block_mask = attention::create_block_mask(attention::sliding_window(30), {.q_len = 37, .kv_len = 45, .block = {16, 11}, .device = device}),
                    .enable_gqa = true,
                    .return_lse = true,
                    .dropout_p = 0.3,
                    .generator = generator,
                    .implementation = implementation};
      const FlexResult made = flex(given.q, given.k, given.v, o);
      const FlexCase::HostScore score = [](double s, auto...) { return 3 * std::tanh(s / 3); };
      const FlexCase::HostMask mask = [](auto, auto, auto q, auto kv) { return q >= kv && q - kv <= 30; };
      const FlexCase::HostDropout dropout = FlexCase::host_dropout(given.shape, 0.3, state);
      const double scale = 1 / std::sqrt(8.0);
      expect_close(made, FlexCase::model(given.shape, values(given.q), values(given.k), values(given.v), scale, score, mask, dropout),
                   fmt::format("dropout by {}", implementation));
      // Drawn numbers are not drawn again.
      EXPECT_EQ(generator.state(), (GeneratorState{state.seed, state.offset + 2 * 2 * 37 * 12}));
      EXPECT_NE(flex(given.q, given.k, given.v, o).out.to_bytes(), made.out.to_bytes());
      if (implementation == "flex_split") continue;
      const Tensor grad = randn(given.shape.out(), {.device = device, .seed = 4});
      const attention::FlexGradients got = attention::flex_backward(grad, given.q, given.k, given.v, made, o);
      const FlexCase::Gradients want =
          FlexCase::gradients(given.shape, values(given.q), values(given.k), values(given.v), values(grad), scale, score, mask, {}, dropout);
      auto expect = [&](const Tensor& t, const std::vector<double>& wanted, const char* of) {
        const std::vector<double> x = values(t);
        for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], wanted[i], 5e-5) << of << " at " << i << " by " << implementation;
      };
      expect(got.q, want.q, "q"), expect(got.k, want.k, "k"), expect(got.v, want.v, "v");
    }
  }
}

TEST(Dropout, BothBackendsOfSdpaDropTheSame) {
  CLUTCH_EACH_DEVICE(device) {
    const Given given({.batch = 2, .heads = 4, .q_len = 21, .kv_len = 26, .e = 8, .ev = 12, .kv_heads = 2}, device);
    const GeneratorState state{.seed = 77, .offset = 5};
    Generator generator(device, 1);
    auto by = [&](attention::SdpaBackend backend) {
      generator.set_state(state);
      const attention::SdpaBackends only({backend});
      return attention::sdpa(given.q, given.k, given.v,
                             {.causal = attention::Causal::upper_left, .enable_gqa = true, .dropout_p = 0.4, .generator = generator});
    };
    const attention::SdpaResult flash = by(attention::SdpaBackend::flash), math = by(attention::SdpaBackend::math);
    EXPECT_EQ(math.dropout_state.to_bytes(), flash.dropout_state.to_bytes());
    const FlexCase::Result want = FlexCase::model(
        given.shape, values(given.q), values(given.k), values(given.v), 1 / std::sqrt(8.0), {}, [](auto, auto, auto q, auto kv) { return q >= kv; },
        FlexCase::host_dropout(given.shape, 0.4, state));
    expect_close({.out = flash.out, .lse = flash.lse}, want, "flash"), expect_close({.out = math.out, .lse = math.lse}, want, "math");
    EXPECT_EQ(generator.state(), (GeneratorState{77, 5 + 2 * 4 * 21 * 7}));
    // Without any key there is nothing to drop, forward or backward.
    const Tensor no_k = given.k.slice(2, 0, 0), no_v = given.v.slice(2, 0, 0);
    const attention::SdpaOptions o{.enable_gqa = true, .dropout_p = 0.4, .generator = generator};
    for (attention::SdpaBackend backend : {attention::SdpaBackend::flash, attention::SdpaBackend::math}) {
      const attention::SdpaBackends only({backend});
      const attention::SdpaResult none = attention::sdpa(given.q, no_k, no_v, o);
      for (double x : values(attention::sdpa_backward(none.out, given.q, no_k, no_v, none, o).q)) EXPECT_EQ(x, 0);
    }
  }
}

/// A captured table's gradient, by differences of the model.
TEST(Dropout, CapturedGradientsSeeIt) {
  CLUTCH_EACH_DEVICE(device) {
    const Given given({.batch = 1, .heads = 2, .q_len = 9, .kv_len = 13, .e = 8, .ev = 8}, device);
    const GeneratorState state{.seed = 78, .offset = 9};
    Generator generator(device, 1);
    generator.set_state(state);
    const Tensor table = from_host<float>({0.5f, -0.25f}, device), grad = randn(given.shape.out(), {.device = device, .seed = 6});
    const Captured at = captured(table);
    const FlexOptions o{
        .score_mod = [&](Score s, Index, Index h, Index, Index) { return s * (1 + at[h]); }, .return_lse = true, .dropout_p = 0.3, .generator = generator};
    const FlexResult made = flex(given.q, given.k, given.v, o);
    const std::vector<double> got = values(attention::flex_backward(grad, given.q, given.k, given.v, made, o, {.captured_gradients = true}).captured.at(0)),
                              of_grad = values(grad);
    auto loss = [&](std::int64_t which, double step) {
      const double by_head[] = {0.5 + (which == 0 ? step : 0), -0.25 + (which == 1 ? step : 0)};
      const FlexCase::Result r = FlexCase::model(
          given.shape, values(given.q), values(given.k), values(given.v), 1 / std::sqrt(8.0),
          [&](double s, auto, auto h, auto, auto) { return s * (1 + by_head[h]); }, {}, FlexCase::host_dropout(given.shape, 0.3, state));
      double sum = 0;
      for (std::size_t i = 0; i < r.out.size(); ++i) sum += r.out[i] * of_grad[i];
      return sum;
    };
    for (std::int64_t h : {0, 1}) EXPECT_NEAR(got[static_cast<std::size_t>(h)], (loss(h, 1e-5) - loss(h, -1e-5)) / 2e-5, 1e-4);
  }
}

TEST(Dropout, GraphsDrawAnewAndEdgesHold) {
  CLUTCH_EACH_DEVICE(device) {
    const Given given({.batch = 1, .heads = 1, .q_len = 20, .kv_len = 20, .e = 8, .ev = 8}, device);
    const Stream stream = current_stream(device);
    const Generator generator(device, 5);
    FlexResult out{.out = empty(given.shape.out(), {.device = device})};
    FlexOptions o{.dropout_p = 0.5, .generator = generator};
    attention::flex_out(out, given.q, given.k, given.v, o, stream);
    const std::vector<std::uint8_t> eager = out.out.to_bytes();
    generator.manual_seed(5);
    Graph graph;
    graph.capture_begin(stream), attention::flex_out(out, given.q, given.k, given.v, o, stream), graph.capture_end();
    graph.replay();
    EXPECT_EQ(out.out.to_bytes(), eager);
    graph.replay();
    EXPECT_NE(out.out.to_bytes(), eager);
    o.dropout_p = 1;
    for (double x : values(flex(given.q, given.k, given.v, o).out)) EXPECT_EQ(x, 0);
    for (double p : {-0.1, 1.1, kInf - kInf}) {
      o.dropout_p = p;
      EXPECT_EQ(code_of([&] { flex(given.q, given.k, given.v, o); }), ErrorCode::invalid_argument);
    }
    o.dropout_p = 0.5;
    EXPECT_EQ(code_of([&] {
                attention::flex_backward(given.q, given.q, given.k, given.v, {.out = given.q, .lse = zeros({1, 1, 20}, {.device = device})}, o);
              }),
              ErrorCode::invalid_argument);
  }
}

TEST(SkipMasked, WhatIsMaskedMayHoldAnything) {
  CLUTCH_EACH_DEVICE(device) {
    for (std::string implementation : {"", "flex_items"})
      for (std::int64_t q_len : {5, 40}) {
        if (level() == "smoke" && q_len == 5 && !implementation.empty()) continue;
        const Given given({.batch = 1, .heads = 2, .q_len = q_len, .kv_len = 60, .e = 16, .ev = 16}, device);
        // Every third key is masked and holds NaN or infinity.
        const Tensor bad =
            map([](Expr x) { return select(trunc_mod(position(-2), 3) == 1, select(position(-1) == 0, std::numeric_limits<float>::infinity(), x / 0), x); },
                {zeros({1, 2, 60, 16}, {.device = device})});
        const Tensor k = map([](Expr x, Expr y) { return x + y; }, given.k, bad), v = map([](Expr x, Expr y) { return x + y; }, given.v, bad);
        const MaskMod mask = [](Index, Index, Index, Index kv) { return trunc_mod(kv, 3) != 1; };
        FlexOptions o{.mask_mod = mask, .return_lse = true, .implementation = implementation};
        const FlexResult poisoned = flex(given.q, given.k, v, o), clean = flex(given.q, given.k, given.v, o);
        EXPECT_TRUE(std::isnan(values(poisoned.out)[3]));
        o.skip_masked = true;
        const FlexResult got = flex(given.q, k, v, o);
        EXPECT_EQ(got.out.to_bytes(), clean.out.to_bytes()) << implementation << " " << q_len;
        EXPECT_EQ(got.lse.to_bytes(), clean.lse.to_bytes());
        const attention::FlexGradients want = attention::flex_backward(given.q, given.q, given.k, given.v, clean, o),
                                       made = attention::flex_backward(given.q, given.q, k, v, clean, o);
        EXPECT_EQ(made.q.to_bytes(), want.q.to_bytes());
        EXPECT_EQ(made.k.to_bytes(), want.k.to_bytes());
        EXPECT_EQ(made.v.to_bytes(), want.v.to_bytes());
      }
  }
}

}}  // namespace clutch::testing
