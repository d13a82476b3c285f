// SPDX-License-Identifier: Apache-2.0
#include "ops/flex/given.hpp"

namespace clutch::testing {
namespace {

using attention::OpenclScore;

TEST(OpenclScore, IsWhatTheLambdaIs) {
  CLUTCH_EACH_DEVICE(device) {
    const FlexCase::HostScore host = [](double s, auto b, auto h, auto q, auto kv) {
      const double moved = s + 0.25 * static_cast<double>(kv - q) + 0.5 * static_cast<double>(b - h);
      return moved > 0 ? moved : 0.125 * moved;
    };
    const OpenclScore text{.score = "leaky(score + p0 * TO_NUMBER(kv - q) + TO_NUMBER(b - h) / 2, p1)",
                           .derivative = "score + p0 * TO_NUMBER(kv - q) + TO_NUMBER(b - h) / 2 > 0 ? gradient : gradient * p1",
                           .params = {0.25, 0.125}};
    for (DType dtype : {DType::f32, DType::f64})
      for (std::string_view implementation : {"", "flex_items"})
        for (std::int64_t q_len : {3, 30}) {
          if (level() == "smoke" && dtype == DType::f64 && implementation.empty()) continue;
          if (dtype == DType::f64 && (q_len == 3 || skip_without(device, "fp64", device.traits().fp64))) continue;
          const Given given({.batch = 2, .heads = 2, .q_len = q_len, .kv_len = 37, .e = 8, .ev = 8}, device, dtype);
          OpenclScore whole = text;
          whole.score =
              "(score + p0 * TO_NUMBER(kv - q) + TO_NUMBER(b - h) / 2) > 0 ? score + p0 * TO_NUMBER(kv - q) + TO_NUMBER(b - h) / 2 : "
              "p1 * (score + p0 * TO_NUMBER(kv - q) + TO_NUMBER(b - h) / 2)";
          FlexOptions o{.score_mod = ScoreMod(whole), .mask_mod = attention::causal(10), .return_lse = true, .implementation = implementation};
          const FlexCase::HostMask mask = [](auto, auto, auto q, auto kv) { return q + 10 >= kv; };
          const FlexResult made = flex(given.q, given.k, given.v, o);
          expect_close(made, given.model(host, mask), fmt::format("{} {}", implementation, name(dtype)));
          const Tensor grad = randn(given.shape.out(), {.dtype = dtype, .device = device, .seed = 3});
          const attention::FlexGradients got = attention::flex_backward(grad, given.q, given.k, given.v, made, o);
          const FlexCase::Gradients want =
              FlexCase::gradients(given.shape, values(given.q), values(given.k), values(given.v), values(grad), 1 / std::sqrt(8.0), host, mask);
          const std::vector<double> dq = values(got.q), dk = values(got.k);
          for (std::size_t i = 0; i < dq.size(); ++i) ASSERT_NEAR(dq[i], want.q[i], 5e-5) << implementation;
          for (std::size_t i = 0; i < dk.size(); ++i) ASSERT_NEAR(dk[i], want.k[i], 5e-5) << implementation;
          // Other numbers build nothing.
          const BuildCounters before = build_counters();
          whole.params = {0.5, 1};
          o.score_mod = ScoreMod(whole);
          expect_close(
              flex(given.q, given.k, given.v, o),
              given.model([](double s, auto b, auto h, auto q, auto kv) { return s + 0.5 * static_cast<double>(kv - q) + 0.5 * static_cast<double>(b - h); },
                          mask),
              "other numbers");
          EXPECT_EQ(build_counters().built + build_counters().loaded, before.built + before.loaded);
        }
    const Given given({.batch = 1, .heads = 1, .q_len = 20, .kv_len = 20, .e = 8, .ev = 8}, device);
    EXPECT_EQ(code_of([&] { flex(given.q, given.k, given.v, {.score_mod = ScoreMod(text)}); }), ErrorCode::build_failure) << "there is no leaky()";
    const FlexOptions forward{.score_mod = ScoreMod(OpenclScore{.score = "score * 2"}), .return_lse = true};
    const FlexResult made = flex(given.q, given.k, given.v, forward);
    EXPECT_EQ(code_of([&] { attention::flex_backward(given.q, given.q, given.k, given.v, made, forward); }), ErrorCode::not_supported);
    EXPECT_EQ(code_of([] { ScoreMod(OpenclScore{}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { ScoreMod([&](Score s, Index b, Index h, Index q, Index kv) { return forward.score_mod(s, b, h, q, kv); }); }),
              ErrorCode::not_supported);
  }
}

}  // namespace
}  // namespace clutch::testing
