// SPDX-License-Identifier: Apache-2.0
#include "ops/flex/given.hpp"

namespace clutch::testing {
namespace {

constexpr std::int64_t kHeads = 4, kQ = 9, kKv = 11;

/// A score mod with a captured table, and its host twin.
struct TableMod {
  const char* name;
  Dims sizes;
  std::function<ScoreMod(const Captured&)> mod;
  std::function<double(double s, std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t kv, const std::vector<double>& t)> host;
};
double at(const std::vector<double>& t, std::int64_t i) { return t[static_cast<std::size_t>(i)]; }

const TableMod kMods[] = {
    {"h",
     {kHeads},
     [](const Captured& t) -> ScoreMod { return [=](Score s, Index, Index h, Index q, Index kv) { return s + t[h] * (kv - q); }; },
     [](double s, auto, auto h, auto q, auto kv, const auto& t) { return s + at(t, h) * static_cast<double>(kv - q); }},
    {"q",
     {kQ},
     [](const Captured& t) -> ScoreMod { return [=](Score s, Index, Index, Index q, Index) { return tanh(s * t[q]); }; },
     [](double s, auto, auto, auto q, auto, const auto& t) { return std::tanh(s * at(t, q)); }},
    {"kv",
     {kKv},
     [](const Captured& t) -> ScoreMod { return [=](Score s, Index, Index, Index, Index kv) { return s * (1 + t[kv]); }; },
     [](double s, auto, auto, auto, auto kv, const auto& t) { return s * (1 + at(t, kv)); }},
    {"kv, clamped",
     {5},
     [](const Captured& t) -> ScoreMod { return [=](Score s, Index, Index, Index, Index kv) { return s + t[kv]; }; },
     [](double s, auto, auto, auto, auto kv, const auto& t) { return s + at(t, std::min<std::int64_t>(kv, 4)); }},
    {"q - kv",
     {7},
     [](const Captured& t) -> ScoreMod { return attention::relative_bias(t.tensor()); },
     [](double s, auto, auto, auto q, auto kv, const auto& t) { return s + at(t, std::clamp<std::int64_t>(q - kv + 3, 0, 6)); }},
    {"h, q - kv",
     {kHeads, kQ + kKv},
     [](const Captured& t) -> ScoreMod { return [=](Score s, Index, Index h, Index q, Index kv) {
                                           return s + s * t[{h, kv - q + 8}];
                                         }; },
     [](double s, auto, auto h, auto q, auto kv, const auto& t) { return s + s * at(t, h * (kQ + kKv) + kv - q + 8); }},
    {"h, q, kv",
     {kHeads, kQ, kKv},
     [](const Captured& t) -> ScoreMod { return [=](Score s, Index, Index h, Index q, Index kv) {
                                           return s + t[{h, q, kv}];
                                         }; },
     [](double s, auto, auto h, auto q, auto kv, const auto& t) { return s + at(t, (h * kQ + q) * kKv + kv); }},
    {"b, kv, 0, q",
     {2, kKv, 1, kQ},
     [](const Captured& t) -> ScoreMod { return [=](Score s, Index b, Index h, Index q, Index kv) {
                                           return s + t[{b, kv, h, q}];
                                         }; },
     [](double s, auto b, auto, auto q, auto kv, const auto& t) { return s + at(t, (b * kKv + kv) * kQ + q); }},
    {"(q + kv) % 5",
     {5},
     [](const Captured& t) -> ScoreMod { return [=](Score s, Index, Index, Index q, Index kv) { return s + t[trunc_mod(q + kv, 5)]; }; },
     [](double s, auto, auto, auto q, auto kv, const auto& t) { return s + at(t, (q + kv) % 5); }},
    {"q and |q - kv|, both",
     {12},
     [](const Captured& t) -> ScoreMod { return [=](Score s, Index, Index, Index q, Index kv) { return s * t[q] + t[abs(q - kv)]; }; },
     [](double s, auto, auto, auto q, auto kv, const auto& t) { return s * at(t, q) + at(t, std::abs(q - kv)); }},
};

TEST(Captured, GradientsOfEachClassOfIndex) {
  CLUTCH_EACH_DEVICE(device) {
    int turn = 0;
    for (const TableMod& m : kMods) {
      // One of a kind by day.
      const std::string_view of = m.name;
      if (level() == "smoke" && of != "h" && of != "q" && of != "h, q - kv" && of != "h, q, kv" && of != "(q + kv) % 5") continue;
      for (DType dtype : {DType::f32, DType::f64, DType::f16}) {
        if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
        if (level() == "smoke" && dtype != DType::f32 && ++turn % 7 != 0) continue;
        const FlexCase::Shape shape{.batch = 2, .heads = kHeads, .q_len = kQ, .kv_len = kKv, .e = 5, .ev = 6, .kv_batch = turn % 2 + 1, .kv_heads = 2};
        const Given given(shape, device, dtype);
        const Tensor table = randn(m.sizes, {.dtype = dtype == DType::f16 ? DType::f32 : dtype, .device = device, .seed = 8}),
                     grad = randn(shape.out(), {.dtype = dtype, .device = device, .seed = 9});
        // What is masked by blocks, and by itself beside them.
        const FlexOptions o{.score_mod = m.mod(captured(table)),
                            .mask_mod = [](Index, Index, Index i, Index j) { return i + j != 6; },
                            .block_mask = attention::create_block_mask(attention::causal(4), {.q_len = kQ, .kv_len = kKv, .block = {4, 3}, .device = device}),
                            .enable_gqa = true,
                            .return_lse = true,
                            .captured_gradients = true,
                            .implementation = level() == "smoke" ? "flex_items" : ""};
        const FlexResult made = flex(given.q, given.k, given.v, o);
        const attention::FlexGradients gradients = attention::flex_backward(grad, given.q, given.k, given.v, made, o);
        ASSERT_EQ(gradients.captured.size(), 1u) << m.name;
        ASSERT_EQ(gradients.captured[0].sizes(), m.sizes) << m.name;
        const std::vector<double> got = values(gradients.captured[0]), q = values(given.q), k = values(given.k), v = values(given.v), g = values(grad);
        std::vector<double> host = values(table);
        auto loss = [&] {
          const FlexCase::Result r = FlexCase::model(
              shape, q, k, v, 1 / std::sqrt(5.0), [&](double s, auto b, auto h, auto i, auto j) { return m.host(s, b, h, i, j, host); },
              [](auto, auto, auto i, auto j) { return i + 4 >= j && i + j != 6; });
          double sum = 0;
          for (std::size_t i = 0; i < g.size(); ++i) sum += g[i] * r.out[i];
          return sum;
        };
        for (std::size_t i = 0; i < host.size(); ++i) {
          constexpr double kStep = 1e-5;
          const double here = host[i];
          host[i] = here + kStep;
          const double above = loss();
          host[i] = here - kStep;
          const double below = loss();
          host[i] = here;
          const double want = (above - below) / (2 * kStep);
          ASSERT_NEAR(got[i], want, (dtype == DType::f16 ? 5e-2 : 2e-4) * (1 + std::fabs(want))) << m.name << " " << name(dtype) << " element " << i;
        }
      }
    }
  }
}

TEST(Captured, ChunksOfRowsAddUp) {
  CLUTCH_EACH_DEVICE(device) {
    if (known_bug(device, "loops_end_early") || device.traits().simulator) continue;
    // More scores than a chunk holds. Gradients of a bias for each of them, summed along diagonals, are those of a bias by distance.
    constexpr std::int64_t kLength = 2100;
    const Given given({.batch = 1, .heads = 1, .q_len = kLength, .kv_len = kLength, .e = 8, .ev = 8}, device);
    const Tensor grad = randn({1, 1, kLength, 8}, {.device = device, .seed = 4});
    const Tensor by_pair = zeros({kLength, kLength}, {.device = device}), by_distance = zeros({2 * kLength - 1}, {.device = device}),
                 one = zeros({1}, {.device = device});
    auto gradient = [&](const ScoreMod& mod) {
      const FlexOptions o{.score_mod = mod, .return_lse = true, .captured_gradients = true};
      const FlexResult made = flex(given.q, given.k, given.v, o);
      return values(attention::flex_backward(grad, given.q, given.k, given.v, made, o).captured[0]);
    };
    const Captured pairs = captured(by_pair), whole = captured(one);
    const std::vector<double> each = gradient([&](Score s, Index, Index, Index q, Index kv) {
      return s + pairs[{q, kv}];
    }),
                              sums = gradient(attention::relative_bias(by_distance));
    std::vector<double> want(sums.size());
    for (std::int64_t i = 0; i < kLength; ++i)
      for (std::int64_t j = 0; j < kLength; ++j) want[static_cast<std::size_t>(i - j + kLength - 1)] += each[static_cast<std::size_t>(i * kLength + j)];
    for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(sums[i], want[i], 1e-5) << i;
    if (level() == "smoke") continue;
    // What is added to all scores of a row changes nothing.
    EXPECT_NEAR(gradient([&](Score s, Index, Index h, Index, Index) { return s + whole[h]; })[0], 0, 1e-4);
  }
}

TEST(Captured, EdgesAndErrors) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor slopes = attention::alibi_slopes(2, device);
    FlexOptions o{.score_mod = attention::alibi(slopes), .return_lse = true, .captured_gradients = true};
    const Given none({.batch = 1, .heads = 2, .q_len = 3, .kv_len = 0, .e = 4, .ev = 4}, device);
    const FlexResult made = flex(none.q, none.k, none.v, o);
    EXPECT_EQ(values(attention::flex_backward(made.out, none.q, none.k, none.v, made, o).captured.at(0)), (std::vector<double>{0, 0}));
    const Given given({.batch = 1, .heads = 2, .q_len = 3, .kv_len = 3, .e = 4, .ev = 4}, device);
    o = {.score_mod = attention::softcap(2), .return_lse = true, .captured_gradients = true};
    const FlexResult capped = flex(given.q, given.k, given.v, o);
    EXPECT_TRUE(attention::flex_backward(capped.out, given.q, given.k, given.v, capped, o).captured.empty());
  }
}

}  // namespace
}  // namespace clutch::testing
