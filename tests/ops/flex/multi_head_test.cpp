// SPDX-License-Identifier: Apache-2.0
#include "ops/flex/given.hpp"

namespace clutch::testing { namespace {

TEST(MultiHead, IsProjectionsAroundAttention) {
  CLUTCH_EACH_DEVICE(device) {
    for (std::int64_t kv_heads : {0, 2}) {
      constexpr std::int64_t kBatch = 2, kLength = 19, kWidth = 24, kHeads = 4, kSize = 6, kOut = 10;
      const std::int64_t shared = kv_heads == 0 ? kHeads : kv_heads, rows = (kHeads + 2 * shared) * kSize;
      auto numbers = [&](const Dims& sizes, std::uint64_t n) { return randn(sizes, {.device = device, .seed = seed() + n}); };
      const Tensor x = numbers({kBatch, kLength, kWidth}, 0);
      auto scaled = [&](const Tensor& t) { return map([](Expr w) { return w * 0.2f; }, t); };
      attention::MultiHeadWeights w{.in_weight = scaled(numbers({rows, kWidth}, 1)),
                                    .in_bias = numbers({rows}, 2),
                                    .out_weight = scaled(numbers({kOut, kHeads * kSize}, 3)),
                                    .out_bias = numbers({kOut}, 4),
                                    .heads = kHeads,
                                    .kv_heads = kv_heads};
      const FlexOptions o{.score_mod = attention::alibi(attention::alibi_slopes(kHeads, device)), .mask_mod = attention::causal()};
      const attention::MultiHeadResult made = attention::multi_head_attention(x, w, o);
      ASSERT_EQ(made.out.sizes(), (Dims{kBatch, kLength, kOut}));
      // The same by products and copies of each head.
      FlexOptions with = o;
      with.enable_gqa = with.return_lse = true;
      const Tensor packed = linalg::linear(x, w.in_weight, w.in_bias);
      auto part = [&](std::int64_t first, std::int64_t count) {
        return packed.slice(2, first * kSize, (first + count) * kSize).contiguous().reshape({kBatch, kLength, count, kSize}).transpose(1, 2).contiguous();
      };
      const Tensor q = part(0, kHeads), k = part(kHeads, shared), v = part(kHeads + shared, shared);
      const FlexResult attended = flex(q, k, v, with);
      auto joined = [&](const Tensor& t) { return t.transpose(1, 2).contiguous().reshape({kBatch, kLength, t.size(1) * kSize}); };
      const Tensor heads = joined(attended.out);
      EXPECT_EQ(made.out.to_bytes(), linalg::linear(heads, w.out_weight, w.out_bias).to_bytes());

      const Tensor grad = numbers({kBatch, kLength, kOut}, 5);
      const attention::MultiHeadGradients got = attention::multi_head_attention_backward(grad, x, w, made, o);
      const linalg::LinearGradients out = linalg::linear_backward(grad, heads, w.out_weight, w.out_bias);
      const Tensor of_heads = out.x.reshape({kBatch, kLength, kHeads, kSize}).transpose(1, 2);
      const attention::FlexGradients inner = attention::flex_backward(of_heads, q, k, v, attended, with);
      const Tensor together = empty(packed.sizes(), {.device = device});
      copy_(together.slice(2, 0, kHeads * kSize), joined(inner.q));
      copy_(together.slice(2, kHeads * kSize, (kHeads + shared) * kSize), joined(inner.k));
      copy_(together.slice(2, (kHeads + shared) * kSize, rows), joined(inner.v));
      const linalg::LinearGradients in = linalg::linear_backward(together, x, w.in_weight, w.in_bias);
      auto near = [&](const Tensor& a, const Tensor& b, const char* of) {
        const std::vector<double> g = values(a), want = values(b);
        ASSERT_EQ(g.size(), want.size()) << of;
        for (std::size_t i = 0; i < g.size(); ++i) ASSERT_NEAR(g[i], want[i], 1e-4) << of << " at " << i;
      };
      near(got.x, in.x, "x"), near(got.in_weight, in.weight, "in_weight"), near(got.in_bias, in.bias, "in_bias");
      near(got.out_weight, out.weight, "out_weight"), near(got.out_bias, out.bias, "out_bias");

      w.in_bias = w.out_bias = {};
      const attention::MultiHeadResult plain = attention::multi_head_attention(x, w, o);
      EXPECT_FALSE(attention::multi_head_attention_backward(grad, x, w, plain, o).in_bias.defined());
      w.heads = 5;
      EXPECT_EQ(code_of([&] { attention::multi_head_attention(x, w, o); }), ErrorCode::invalid_shape);
      w.heads = kHeads;
      EXPECT_EQ(code_of([&] { attention::multi_head_attention(x.select(0, 0), w, o); }), ErrorCode::invalid_shape);
      w.out_weight = {};
      EXPECT_EQ(code_of([&] { attention::multi_head_attention(x, w, o); }), ErrorCode::invalid_argument);
    }
  }
}

}}  // namespace clutch::testing
