// SPDX-License-Identifier: Apache-2.0
// Attention over ranks against attention::flex() of the whole tensors: heads, batches, sequences by each method, masks and mods that see the whole's indices.
#include "dist/numbers.hpp"

#include <clutch/attention.hpp>
#include <clutch/dist/attention.hpp>

#include <cmath>
#include <limits>

namespace clutch::testing { namespace {

using namespace dist;
using attention::Index;
using attention::Score;
using Placements = std::vector<Placement>;

struct Sizes {
  std::int64_t batch = 1, q_heads = 2, k_heads = 2, q_len = 45, kv_len = 45, e = 8, ev = 8;
};

/// q, k, v and the result's gradient, and what one rank makes of them.
struct Whole {
  Tensor q, k, v, grad;
  attention::FlexResult result;
  attention::FlexGradients gradients;

  Whole(const Sizes& n, attention::FlexOptions options, DType dtype = DType::f32)
      : q(shared_numbers({n.batch, n.q_heads, n.q_len, n.e}, 1, dtype)),
        k(shared_numbers({n.batch, n.k_heads, n.kv_len, n.e}, 2, dtype)),
        v(shared_numbers({n.batch, n.k_heads, n.kv_len, n.ev}, 3, dtype)),
        grad(shared_numbers({n.batch, n.q_heads, n.q_len, n.ev}, 4, dtype)) {
    options.return_lse = true;
    result = attention::flex(q, k, v, options);
    gradients = attention::flex_backward(grad, q, k, v, result, options);
  }
};

/// The same over a mesh, whole again.
struct Over {
  Tensor out, lse, q, k, v;

  Over(const Whole& whole, const Mesh& mesh, const Placements& placements, dist::FlexOptions options) {
    options.flex.return_lse = true;
    int ranks = 1;
    for (std::size_t i = 0; i < placements.size(); ++i)
      if (placements[i].is_shard() && placements[i].dim == 2) ranks = static_cast<int>(mesh.shape()[static_cast<int>(i)]);
    auto sharded = [&](const Tensor& x) { return Sharded::distribute(options.balanced ? to_balanced(x, 2, ranks) : x, mesh, placements); };
    auto joined = [&](const Sharded& x) { return options.balanced ? from_balanced(x.full(), 2, ranks) : x.full().contiguous(); };
    const Sharded of_q = sharded(whole.q), of_k = sharded(whole.k), of_v = sharded(whole.v);
    const dist::FlexResult result = dist::flex(of_q, of_k, of_v, options);
    EXPECT_EQ(result.out.placements(), of_q.placements());
    const dist::FlexGradients gradients = dist::flex_backward(sharded(whole.grad), of_q, of_k, of_v, result, options);
    EXPECT_EQ(gradients.k.placements(), of_k.placements());
    out = joined(result.out), lse = joined(result.lse), q = joined(gradients.q), k = joined(gradients.k), v = joined(gradients.v);
  }
};

/// Which results have the bits of one rank; the others are near.
struct Bits {
  bool out = true, keys = true;
};
void expect_whole(const Over& got, const Whole& wanted, const Bits& bits, double bound = 2e-5) {
  auto expect = [&](bool is_equal, const Tensor& a, const Tensor& b, const char* what) { is_equal ? expect_bits(a, b, what) : expect_near(a, b, bound, what); };
  expect(bits.out, got.out, wanted.result.out, "out"), expect(bits.out, got.lse, wanted.result.lse, "lse");
  expect(false, got.q, wanted.gradients.q, "dq");
  expect(bits.keys, got.k, wanted.gradients.k, "dk"), expect(bits.keys, got.v, wanted.gradients.v, "dv");
}

/// A score and a mask of all indices: the same in most tests, so that they have the same programs.
attention::FlexOptions by_places() {
  return {.score_mod = [](Score s, Index b, Index h, Index q, Index kv) { return s + 0.02F * (q - kv) + 0.3F * h - 0.7F * b; },
          .mask_mod = attention::causal()};
}

/// By day sequences are in the balanced order alone: each order has programs of its own, which take long to compile.
std::vector<bool> orders() { return level() == "smoke" ? std::vector{true} : std::vector{true, false}; }

TEST(BalancedOrder, GivesEachRankAChunkOfBothEnds) {
  const Tensor x = from_host(std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {12});
  EXPECT_EQ(to_balanced(x, 0, 3).to_host<float>(), (std::vector<float>{0, 1, 10, 11, 2, 3, 8, 9, 4, 5, 6, 7}));
  for (const std::int64_t n : {0, 1, 2, 5, 7, 12, 13})
    for (const int ranks : {1, 2, 3, 4}) {
      const Tensor some = shared_numbers({2, n, 3}, 1);
      expect_bits(from_balanced(to_balanced(some, 1, ranks), -2, ranks), some);
    }
  EXPECT_EQ(code_of([&] { to_balanced(x, 1, 2); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { from_balanced(x, 0, 0); }), ErrorCode::invalid_argument);
}

TEST(ShardedFlex, BatchesAndHeadsHaveTheBitsOfOneRank) {
  for_ranks({1, 2, 3, 4}, [](const Group& g) {
    const attention::FlexOptions flex = by_places();
    const Whole wanted({.batch = 3, .q_heads = 5, .k_heads = 5}, flex);
    const Mesh line(g, {g.size()});
    for (const Placement& p : {replicate(), shard(0), shard(1)}) {
      SCOPED_TRACE(to_string(p));
      expect_whole(Over(wanted, line, {p}, {.flex = flex}), wanted, {});
    }
    if (g.size() != 4 || level() == "smoke") return;
    const Mesh square(g, {2, 2});
    expect_whole(Over(wanted, square, {shard(0), shard(1)}, {.flex = flex}), wanted, {});
  });
}

TEST(ShardedFlex, SequencesByEachMethod) {
  for_ranks({2, 3, 4}, [](const Group& g) {
    const int n = g.size();
    const Mesh line(g, {n});
    const Sizes sizes{.batch = 2, .q_heads = 2 * n, .k_heads = n};
    attention::FlexOptions flex = by_places();
    flex.enable_gqa = true;
    const Whole wanted(sizes, flex);
    for (const bool balanced : orders()) {
      SCOPED_TRACE(balanced ? "balanced" : "in order");
      expect_whole(Over(wanted, line, {shard(2)}, {.flex = flex, .method = SequenceMethod::gather, .balanced = balanced}), wanted, {.keys = false});
      expect_whole(Over(wanted, line, {shard(2)}, {.flex = flex, .method = SequenceMethod::ulysses, .balanced = balanced}), wanted, {});
      expect_whole(Over(wanted, line, {shard(2)}, {.flex = flex, .balanced = balanced}), wanted, {});
      expect_whole(Over(wanted, line, {shard(2)}, {.flex = flex, .method = SequenceMethod::ring, .balanced = balanced}), wanted, {.out = false, .keys = false});
    }
    if (n != 4 || level() == "smoke") return;
    // One dimension of the mesh for sequences, another one for heads.
    const Mesh square(g, {2, 2});
    for (const SequenceMethod method : {SequenceMethod::gather, SequenceMethod::ulysses, SequenceMethod::ring}) {
      SCOPED_TRACE("method " + std::to_string(static_cast<int>(method)));
      expect_whole(Over(wanted, square, {shard(2), shard(1)}, {.flex = flex, .method = method, .balanced = true}), wanted,
                   {.out = method != SequenceMethod::ring, .keys = method == SequenceMethod::ulysses});
    }
  });
}

TEST(ShardedFlex, BlockMasksAreMadeOfEachRanksPart) {
  for_ranks({2, 3}, [](const Group& g) {
    const Mesh line(g, {g.size()});
    // Two lengths, and rows without any key.
    const Sizes sizes{.batch = 1, .q_heads = 12, .k_heads = 12, .q_len = 50, .kv_len = 37};
    const attention::MaskMod mask = attention::causal(-3);
    attention::FlexOptions flex = by_places();
    flex.mask_mod = {};
    flex.block_mask = attention::create_block_mask(mask, {.q_len = sizes.q_len, .kv_len = sizes.kv_len, .block = {.q = 8, .kv = 8}});
    const Whole wanted(sizes, flex);
    EXPECT_EQ(values(wanted.result.lse)[0], -std::numeric_limits<double>::infinity());
    auto finite = [](Over got) {
      got.lse = map([](const Expr& x) { return select(isinf(x), Expr(-1000), x); }, got.lse);
      return got;
    };
    Whole compared = wanted;
    compared.result.lse = map([](const Expr& x) { return select(isinf(x), Expr(-1000), x); }, wanted.result.lse);
    for (const SequenceMethod method : {SequenceMethod::ulysses, SequenceMethod::ring, SequenceMethod::gather}) {
      if (method == SequenceMethod::gather && level() == "smoke") continue;
      for (const bool balanced : orders())
        expect_whole(finite(Over(wanted, line, {shard(2)}, {.flex = flex, .method = method, .balanced = balanced})), compared,
                     {.out = method == SequenceMethod::ulysses, .keys = method == SequenceMethod::ulysses});
    }
  });
}

TEST(ShardedFlex, PartsMayBeEmpty) {
  for_ranks({4}, [](const Group& g) {
    const Mesh line(g, {g.size()});
    for (const auto& [q_len, kv_len] : {std::pair{5, 5}, {2, 9}, {9, 1}, {3, 0}}) {
      SCOPED_TRACE(std::to_string(q_len) + " queries, " + std::to_string(kv_len) + " keys");
      const Whole wanted({.q_heads = 3, .k_heads = 3, .q_len = q_len, .kv_len = kv_len}, by_places());
      for (const SequenceMethod method : {SequenceMethod::automatic, SequenceMethod::gather, SequenceMethod::ring}) {
        const Over got(wanted, line, {shard(2)}, {.flex = by_places(), .method = method, .balanced = true});
        if (kv_len > 0) expect_near(got.lse, wanted.result.lse, 1e-5);
        expect_near(got.out, wanted.result.out, 1e-5);
        expect_near(got.q, wanted.gradients.q, 1e-5), expect_near(got.k, wanted.gradients.k, 1e-5), expect_near(got.v, wanted.gradients.v, 1e-5);
      }
    }
  });
}

TEST(ShardedFlex, TheRingIsWithinItsBound) {
  for_ranks({2, 3, 4}, [](const Group& g) {
    const Mesh line(g, {g.size()});
    constexpr double kEps = 0x1p-24, kLargestValue = 2;
    // Scores of hundreds: weights are made of differences, and sums of rows are not made again of some ranks' keys.
    for (const double scale : {0.3, 30.0}) {
      SCOPED_TRACE("scale " + std::to_string(scale));
      attention::FlexOptions flex = by_places();
      flex.scale = scale;
      const Whole wanted({}, flex);
      const Over got(wanted, line, {shard(2)}, {.flex = flex, .method = SequenceMethod::ring, .balanced = true});
      double largest = 0;
      for (const double x : values(wanted.result.lse)) largest = std::max(largest, std::abs(x));
      EXPECT_GT(largest, scale > 1 ? 100 : 1);
      const double of_weights = (8 + 2 * largest) * kEps;
      const std::vector<double> a = values(got.out), b = values(wanted.result.out);
      for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], g.size() * of_weights * kLargestValue + 4e-6 * std::max(scale, 1.0));
      // Sums of up to 45 products of weights, gradients of scores (up to 4 * 8 * 2), and rows.
      const double of_gradients = 45 * scale * 64 * 2 * (of_weights + 1e-6);
      for (const auto& [x, y] : {std::pair{got.q, wanted.gradients.q}, {got.k, wanted.gradients.k}, {got.v, wanted.gradients.v}}) {
        const std::vector<double> of_ranks = values(x), of_one = values(y);
        for (std::size_t i = 0; i < of_ranks.size(); ++i) ASSERT_NEAR(of_ranks[i], of_one[i], of_gradients);
      }
    }
  });
}

TEST(ShardedFlex, OtherDtypes) {
  if (level() == "smoke") GTEST_SKIP() << "programs of other dtypes: by night";
  for_ranks({3}, [](const Group& g) {
    const Mesh line(g, {g.size()});
    for (const auto& [dtype, bound] : {std::pair{DType::f64, 1e-13}, {DType::f16, 6e-3}}) {
      SCOPED_TRACE(name(dtype));
      const attention::FlexOptions flex{.mask_mod = attention::causal()};
      const Whole wanted({.q_heads = 3, .k_heads = 3}, flex, dtype);
      const Over got(wanted, line, {shard(2)}, {.flex = flex, .method = SequenceMethod::ring});
      expect_whole(got, wanted, {.out = false, .keys = false}, bound);
      EXPECT_EQ(got.k.dtype(), dtype);
    }
  });
}

TEST(ShardedFlex, Refusals) {
  for_ranks({3}, [](const Group& g) {
    const Mesh line(g, {g.size()});
    auto made = [&](const Dims& sizes, const Placement& p) { return Sharded::distribute(shared_numbers(sizes, 1), line, {p}); };
    const Dims sizes{2, 4, 12, 8};
    auto code = [&](const Sharded& q, const Sharded& k, const dist::FlexOptions& options = {}) { return code_of([&] { dist::flex(q, k, k, options); }); };
    const Sharded x = made(sizes, shard(2));
    EXPECT_EQ(code(made(sizes, shard(3)), made(sizes, shard(3))), ErrorCode::invalid_argument);
    EXPECT_EQ(code(Sharded::from_local(zeros(sizes), line, {partial()}), x), ErrorCode::invalid_argument);
    EXPECT_EQ(code(x, made(sizes, replicate())), ErrorCode::invalid_argument);
    EXPECT_EQ(code(made({4, 12, 8}, shard(2)), x), ErrorCode::invalid_shape);
    EXPECT_EQ(code(x, x, {.method = SequenceMethod::ulysses}), 4 % g.size() == 0 ? ErrorCode::ok : ErrorCode::invalid_argument);
    EXPECT_EQ(code(made(sizes, shard(1)), made(sizes, shard(1)), {.balanced = true}), ErrorCode::invalid_argument);
    EXPECT_EQ(code(made({2, 8, 12, 8}, shard(1)), made(sizes, shard(1)), {.flex = {.enable_gqa = true}}),
              4 % g.size() == 0 ? ErrorCode::ok : ErrorCode::invalid_argument);
    EXPECT_EQ(code(made(sizes, shard(0)), made({1, 4, 12, 8}, shard(0))), ErrorCode::invalid_argument);
    EXPECT_EQ(code(x, x, {.flex = {.dropout_p = 0.5}}), ErrorCode::not_supported);
    EXPECT_EQ(code(x, x, {.flex = {.return_max_scores = true}}), ErrorCode::not_supported);
    EXPECT_EQ(code(x, x, {.flex = {.varlen = {.seqused_kv = zeros({2}, {.dtype = DType::i32})}}}), ErrorCode::not_supported);
    EXPECT_EQ(code(x, x, {.flex = {.block_mask = attention::create_block_mask(attention::causal(), {.q_len = 4, .kv_len = 4})}}), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { dist::flex(x, x, x, {}, {.async = true}); }), ErrorCode::invalid_argument);
    const dist::FlexResult result = dist::flex(x, x, x);
    EXPECT_TRUE(result.lse.empty());
    EXPECT_EQ(code_of([&] { dist::flex_backward(x, x, x, x, result); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { dist::flex_backward(made(sizes, replicate()), x, x, x, result); }), ErrorCode::invalid_argument);
    EXPECT_NE(message_of([&] { dist::flex(x, x, x, {.flex = {.dropout_p = 0.5}}); }).find("dist::flex: options must be without dropout, got some"),
              std::string::npos);
  });
}

}}  // namespace clutch::testing
