// SPDX-License-Identifier: Apache-2.0
#include "ops/flex/given.hpp"

namespace clutch::testing { namespace {

/// PyTorch's answers: shapes without elements, and zeros where there are queries and no keys.
TEST(Sdpa, NothingIsNothing) {
  CLUTCH_EACH_DEVICE(device) {
    auto ones = [&](const Dims& sizes) { return full(sizes, 1, {.device = device}); };
    struct Shape {
      std::int64_t batch, heads, q_len, kv_len;
    };
    for (const Shape& s : {Shape{0, 2, 3, 4}, Shape{2, 0, 3, 4}, Shape{2, 2, 0, 4}, Shape{2, 2, 3, 0}, Shape{0, 0, 0, 0}}) {
      SCOPED_TRACE(fmt::format("{} x {} x {} x {}", s.batch, s.heads, s.q_len, s.kv_len));
      const Dims q_sizes{s.batch, s.heads, s.q_len, 8}, k_sizes{s.batch, s.heads, s.kv_len, 8}, v_sizes{s.batch, s.heads, s.kv_len, 6},
          out{s.batch, s.heads, s.q_len, 6};
      const Tensor q = ones(q_sizes), k = ones(k_sizes), v = ones(v_sizes);
      const FlexOptions o{.return_lse = true, .return_max_scores = true};
      const FlexResult made = flex(q, k, v, o);
      EXPECT_EQ(made.out.sizes(), out);
      for (double x : values(made.out)) EXPECT_EQ(x, 0);
      for (double x : values(made.lse)) EXPECT_EQ(x, -INFINITY);
      const attention::FlexGradients gradients = attention::flex_backward(ones(out), q, k, v, made, o);
      EXPECT_EQ(gradients.q.sizes(), q_sizes);
      EXPECT_EQ(gradients.k.sizes(), k_sizes);
      EXPECT_EQ(gradients.v.sizes(), v_sizes);
      for (const Tensor* t : {&gradients.q, &gradients.k, &gradients.v})
        for (double x : values(*t)) EXPECT_EQ(x, 0);
      for (attention::SdpaBackend backend : {attention::SdpaBackend::flash, attention::SdpaBackend::math}) {
        const attention::SdpaBackends only{backend};
        const Tensor got = attention::sdpa(q, k, v).out;
        EXPECT_EQ(got.sizes(), out);
        for (double x : values(got)) EXPECT_EQ(x, 0);
      }
    }
    for (const auto& [batch, length] : {std::pair<std::int64_t, std::int64_t>{0, 3}, {2, 0}}) {
      const attention::MultiHeadWeights weights{.in_weight = ones({3 * 2 * 8, 5}), .out_weight = ones({7, 2 * 8}), .heads = 2};
      const Tensor x = ones({batch, length, 5});
      const attention::MultiHeadResult made = attention::multi_head_attention(x, weights);
      EXPECT_EQ(made.out.sizes(), (Dims{batch, length, 7}));
      const attention::MultiHeadGradients gradients = attention::multi_head_attention_backward(made.out, x, weights, made);
      EXPECT_EQ(gradients.x.sizes(), x.sizes());
      for (double g : values(gradients.in_weight)) EXPECT_EQ(g, 0);
      for (double g : values(gradients.out_weight)) EXPECT_EQ(g, 0);
    }
  }
}

TEST(Sdpa, MatchesTheModelByEachBackend) {
  using attention::Causal;
  using attention::SdpaBackend;
  CLUTCH_EACH_DEVICE(device) {
    const Given given({.batch = 2, .heads = 4, .q_len = 37, .kv_len = 61, .e = 16, .ev = 8, .kv_heads = 2}, device);
    std::vector<float> numbers;
    for (int i = 0; i < 2 * 37 * 61; ++i) numbers.push_back(static_cast<float>(std::sin(i * 0.7)));
    const Tensor bias = from_host(numbers, {2, 1, 37, 61}, device), allowed = map([](Expr x) { return x > -0.5f; }, bias.slice(0, 0, 1));
    auto number = [&](std::int64_t b, std::int64_t q, std::int64_t kv) {
      return static_cast<double>(numbers[static_cast<std::size_t>((b * 37 + q) * 61 + kv)]);
    };
    const struct {
      const char* name;
      attention::SdpaOptions options;
      FlexCase::HostScore score;
      FlexCase::HostMask mask;
    } cases[] = {
        {"plain", {.enable_gqa = true}, {}, {}},
        {"scale", {.scale = 0.5, .enable_gqa = true}, [](double s, auto...) { return s * 2; }, {}},  // of 1 / 4
        {"upper left", {.causal = Causal::upper_left, .enable_gqa = true}, {}, [](auto, auto, auto q, auto kv) { return q >= kv; }},
        {"lower right", {.causal = Causal::lower_right, .enable_gqa = true}, {}, [](auto, auto, auto q, auto kv) { return q + 24 >= kv; }},
        {"numbers", {.attn_mask = bias, .enable_gqa = true}, [&](double s, auto b, auto, auto q, auto kv) { return s + number(b, q, kv); }, {}},
        {"booleans", {.attn_mask = allowed, .enable_gqa = true}, {}, [&](auto, auto, auto q, auto kv) { return number(0, q, kv) > -0.5; }},
        {"one row",
         {.attn_mask = bias.slice(0, 1, 2).slice(2, 3, 4).squeeze(0).squeeze(0), .enable_gqa = true},
         [&](double s, auto, auto, auto, auto kv) { return s + number(1, 3, kv); },
         {}},
        {"nothing", {.attn_mask = map([](Expr x) { return x > 2; }, bias), .enable_gqa = true}, {}, [](auto...) { return false; }},
    };
    for (const auto& c : cases)
      for (SdpaBackend backend : {SdpaBackend::flash, SdpaBackend::math}) {
        // By day what has programs of its own: of masks flash attention makes a mod each, math an addition.
        const std::string_view of = c.name;
        if (level() == "smoke" &&
            (of == "scale" || of == "one row" || of == "upper left" || (backend == SdpaBackend::math && of != "numbers" && of != "lower right")))
          continue;
        attention::SdpaBackends only{backend};
        const auto [out, lse, state] = attention::sdpa(given.q, given.k, given.v, c.options);
        EXPECT_EQ(last_plan().starts_with("flex"), backend == SdpaBackend::flash) << last_plan();
        expect_close({.out = out, .lse = lse}, given.model(c.score, c.mask), fmt::format("{} by {}", c.name, backend == SdpaBackend::math ? "math" : "flash"));
        const Tensor grad = randn(given.shape.out(), {.device = device, .seed = 5});
        const attention::FlexGradients made = attention::sdpa_backward(grad, given.q, given.k, given.v, {out, lse}, c.options);
        const FlexCase::Gradients want =
            FlexCase::gradients(given.shape, values(given.q), values(given.k), values(given.v), values(grad), 0.25, c.score, c.mask);
        const std::vector<double> dq = values(made.q), dk = values(made.k), dv = values(made.v);
        for (std::size_t i = 0; i < dq.size(); ++i) ASSERT_NEAR(dq[i], want.q[i], 2e-5) << c.name;
        for (std::size_t i = 0; i < dk.size(); ++i) ASSERT_NEAR(dk[i], want.k[i], 5e-5) << c.name;
        for (std::size_t i = 0; i < dv.size(); ++i) ASSERT_NEAR(dv[i], want.v[i], 5e-5) << c.name;
      }
    // Without heads, and without batches; no keys.
    const Tensor q3 = given.q.select(1, 0), k3 = given.k.select(1, 0), v3 = given.v.select(1, 0);
    const Tensor whole = attention::sdpa(q3.unsqueeze(1), k3.unsqueeze(1), v3.unsqueeze(1)).out;
    for (SdpaBackend backend : {SdpaBackend::flash, SdpaBackend::math}) {
      attention::SdpaBackends only{backend};
      const auto [out3, lse3, state3] = attention::sdpa(q3, k3, v3);
      ASSERT_EQ(out3.sizes(), (Dims{2, 37, 8}));
      ASSERT_EQ(lse3.sizes(), (Dims{2, 37}));
      for (std::size_t i = 0; i < 100; ++i) EXPECT_NEAR(values(out3)[i], values(whole)[i], 4e-6);
      EXPECT_EQ(attention::sdpa(q3.select(0, 1), k3.select(0, 1), v3.select(0, 1)).out.sizes(), (Dims{37, 8}));
      EXPECT_EQ(attention::sdpa_backward(out3, q3, k3, v3, {out3, lse3}).k.sizes(), k3.sizes());
      for (double x : values(attention::sdpa(q3, k3.slice(1, 0, 0), v3.slice(1, 0, 0)).out)) EXPECT_EQ(x, 0);
      EXPECT_EQ(code_of([&] { attention::sdpa(given.q, given.k, given.v); }), ErrorCode::invalid_argument);
    }
    EXPECT_EQ(code_of([&] { attention::sdpa(given.q, given.k, given.v, {.attn_mask = allowed, .causal = Causal::upper_left}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { attention::sdpa(given.q, given.k, given.v, {.attn_mask = bias.to(DType::f16)}); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { attention::sdpa(given.q, given.k, given.v, {.attn_mask = bias.slice(3, 0, 60)}); }), ErrorCode::invalid_shape);
    // Dropout's choice goes on to backward.
    const attention::SdpaOptions drops{.enable_gqa = true, .dropout_p = 0.25, .generator = Generator(device, 3)};
    const attention::SdpaResult dropped = attention::sdpa(given.q, given.k, given.v, drops);
    const FlexOptions same{.enable_gqa = true, .return_lse = true, .dropout_p = 0.25, .generator = Generator(device, 3)};
    const FlexResult want = flex(given.q, given.k, given.v, same);
    EXPECT_EQ(dropped.out.to_bytes(), want.out.to_bytes());
    EXPECT_EQ(attention::sdpa_backward(want.out, given.q, given.k, given.v, dropped, drops).k.to_bytes(),
              attention::flex_backward(want.out, given.q, given.k, given.v, want, same).k.to_bytes());
    EXPECT_EQ(code_of([] { attention::SdpaBackends none{}; }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([] { attention::SdpaBackends twice{SdpaBackend::math, SdpaBackend::math}; }), ErrorCode::invalid_argument);
  }
}

}}  // namespace clutch::testing
