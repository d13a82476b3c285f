// SPDX-License-Identifier: Apache-2.0
// Scores of any finite size: results and gradients are those of the scores' differences. Scores are made of whole numbers, so that the host makes them with
// the same single rounding; what follows is computed in double.
#include "ops/flex/given.hpp"

#include <cfloat>
#include <random>

namespace clutch::testing { namespace {

struct Sizes {
  std::int64_t heads = 2, shared = 2, q_len = 37, kv_len = 53, e = 16, ev = 24;
};

/// q, k: whole numbers times `unit`; v and the result's gradient: small numbers that all dtypes hold. The bias is the scores' last term.
struct Numbers {
  Sizes s;
  std::vector<double> q, k, v, grad, bias;

  Numbers(const Sizes& sizes, double unit, const std::function<double(std::mt19937_64&, std::int64_t q, std::int64_t kv)>& bias_of) : s(sizes) {
    std::mt19937_64 random(seed());
    auto whole = [&](std::int64_t n, double times) {
      std::vector<double> x;
      for (std::int64_t i = 0; i < n; ++i) x.push_back(times * static_cast<double>(static_cast<std::int64_t>(random() % 5) - 2));
      return x;
    };
    q = whole(s.heads * s.q_len * s.e, unit), k = whole(s.shared * s.kv_len * s.e, unit), v = whole(s.shared * s.kv_len * s.ev, 0.25);
    grad = whole(s.heads * s.q_len * s.ev, 0.5);
    for (std::int64_t i = 0; i < s.q_len; ++i)
      for (std::int64_t j = 0; j < s.kv_len; ++j) bias.push_back(bias_of(random, i, j));
  }
};

struct Wanted {
  std::vector<double> out, lse, dq, dk, dv, dbias;
};

/// Attention of scores rounded to T once, where the bias is added.
template <class T>
Wanted reference(const Numbers& n) {
  const Sizes& s = n.s;
  Wanted w;
  w.out.assign(n.grad.size(), 0), w.lse.assign(static_cast<std::size_t>(s.heads * s.q_len), 0);
  w.dq.assign(n.q.size(), 0), w.dk.assign(n.k.size(), 0), w.dv.assign(n.v.size(), 0), w.dbias.assign(n.bias.size(), 0);
  auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t h = 0; h < s.heads; ++h)
    for (std::int64_t i = 0; i < s.q_len; ++i) {
      const std::int64_t hk = h / (s.heads / s.shared), line = h * s.q_len + i;
      std::vector<double> score, p;
      for (std::int64_t j = 0; j < s.kv_len; ++j) {
        double product = 0;
        for (std::int64_t d = 0; d < s.e; ++d) product += n.q[at(line * s.e + d)] * n.k[at((hk * s.kv_len + j) * s.e + d)];
        score.push_back(static_cast<double>(static_cast<T>(product) + static_cast<T>(n.bias[at(i * s.kv_len + j)])));
      }
      const double top = *std::max_element(score.begin(), score.end());
      double total = 0, delta = 0;
      for (double x : score) p.push_back(std::exp(x - top)), total += p.back();
      w.lse[at(line)] = top + std::log(total);
      for (std::int64_t j = 0; j < s.kv_len; ++j)
        for (std::int64_t d = 0; d < s.ev; ++d) w.out[at(line * s.ev + d)] += p[at(j)] / total * n.v[at((hk * s.kv_len + j) * s.ev + d)];
      for (std::int64_t d = 0; d < s.ev; ++d) delta += w.out[at(line * s.ev + d)] * n.grad[at(line * s.ev + d)];
      for (std::int64_t j = 0; j < s.kv_len; ++j) {
        double product = 0;
        for (std::int64_t d = 0; d < s.ev; ++d) {
          product += n.grad[at(line * s.ev + d)] * n.v[at((hk * s.kv_len + j) * s.ev + d)];
          w.dv[at((hk * s.kv_len + j) * s.ev + d)] += p[at(j)] / total * n.grad[at(line * s.ev + d)];
        }
        const double slope = p[at(j)] / total * (product - delta);
        w.dbias[at(i * s.kv_len + j)] += slope;
        for (std::int64_t d = 0; d < s.e; ++d) {
          w.dq[at(line * s.e + d)] += slope * n.k[at((hk * s.kv_len + j) * s.e + d)];
          w.dk[at((hk * s.kv_len + j) * s.e + d)] += slope * n.q[at(line * s.e + d)];
        }
      }
    }
  return w;
}

/// Within `relative` of the largest number wanted.
void expect_near(const Tensor& got, const std::vector<double>& want, double relative, const std::string& what) {
  const std::vector<double> x = values(got);
  ASSERT_EQ(x.size(), want.size()) << what;
  double largest = 1e-30;
  for (double y : want) largest = std::max(largest, std::abs(y));
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], want[i], relative * largest) << what << " at " << i;
}

struct Case {
  std::string name;
  double unit;
  std::function<double(std::mt19937_64&, std::int64_t, std::int64_t)> bias;
};
std::vector<Case> all_cases(double largest) {
  auto always = [](double x) { return [=](auto&, auto, auto) { return x; }; };
  std::vector<Case> all;
  for (double shift : {1e2, 1e4, 1e6, 1e9, 1e10, 1e20, 1e30}) {
    all.push_back({fmt::format("common shift {}", shift), 1, always(shift)});
    all.push_back({fmt::format("common shift {}", -shift), 1, always(-shift)});
  }
  all.push_back({"the largest number throughout", 1, always(largest)});
  all.push_back({"the lowest number throughout", 1, always(-largest)});
  all.push_back({"padded rows", 1, [=](auto&, auto q, auto) { return q % 3 == 1 ? -largest : q % 3 == 2 ? -1e9 : 0.0; }});
  all.push_back({"padded keys", 1, [=](auto&, auto q, auto kv) { return kv % 4 == 1 || q == 5 ? -largest : 0.0; }});
  all.push_back({"any size", 1, [=](std::mt19937_64& r, auto, auto) {
                   const double size = std::exp2(static_cast<double>(r() % 20) / 20 * std::log2(largest)) * 0.99;
                   return r() % 2 ? size : -size;
                 }});
  all.push_back({"large products", 0x1p15, always(0)});
  all.push_back({"larger products", 0x1p30, always(0)});
  return all;
}

template <class T>
void check_case(const Device& device, const Case& c, const Sizes& sizes, DType dtype, std::string_view implementation) {
  const Numbers n(sizes, c.unit, c.bias);
  const Wanted want = reference<T>(n);
  const bool wide = dtype == DType::f64;
  auto tensor = [&](const std::vector<double>& x, const Dims& dims, DType as) { return from_host(x, dims, device).to(as); };
  const Tensor q = tensor(n.q, {1, sizes.heads, sizes.q_len, sizes.e}, dtype), k = tensor(n.k, {1, sizes.shared, sizes.kv_len, sizes.e}, dtype);
  const Tensor v = tensor(n.v, {1, sizes.shared, sizes.kv_len, sizes.ev}, dtype), grad = tensor(n.grad, {1, sizes.heads, sizes.q_len, sizes.ev}, dtype);
  const Tensor bias = tensor(n.bias, {sizes.q_len, sizes.kv_len}, wide ? DType::f64 : DType::f32);
  const Captured at = captured(bias);
  FlexOptions o{
      .scale = 1, .enable_gqa = sizes.shared != sizes.heads, .return_lse = true, .return_max_scores = true, .implementation = std::string(implementation)};
  o.score_mod = [&](Score s, Index, Index, Index i, Index j) { return s + at[{i, j}]; };
  const std::string what = fmt::format("{} {} {}", c.name, name(dtype), implementation);
  const FlexResult r = flex(q, k, v, o);
  const double eps = dtype == DType::bf16 ? 0x1p-8 : dtype == DType::f16 ? 0x1p-11 : wide ? 1e-14 : 2e-6;
  expect_near(r.out, want.out, eps, what + " out"), expect_near(r.lse, want.lse, wide ? 0x1p-51 : 0x1p-22, what + " lse");
  // What is made of out in its own dtype has its rounding.
  const double back = dtype == DType::bf16 ? 0x1p-6 : dtype == DType::f16 ? 0x1p-9 : wide ? 1e-13 : 1e-5;
  for (bool tops : {false, true}) {
    FlexResult given = r;
    if (!tops) given.max_scores = {};
    const auto g = flex_backward(grad, q, k, v, given, o, {.captured_gradients = !tops});
    expect_near(g.q, want.dq, back, what + " dq"), expect_near(g.k, want.dk, back, what + " dk"), expect_near(g.v, want.dv, back, what + " dv");
    if (!tops) expect_near(g.captured.at(0), want.dbias, back, what + " dbias");
  }
}

/// What the device takes by itself, then what it can be asked for, backward, too. By day without tiles on CPUs, which take seconds to build.
std::vector<std::string_view> ways(const Device& device) {
  std::vector<std::string_view> all{""};
  for (std::string_view name : {"flex_items", "flex_lanes", "flex_tiles"}) {
    if (level() == "smoke" && name == "flex_tiles" && device.type() == DeviceType::cpu) continue;
    if (code_of([&] { detail::select(device.traits(), detail::FlexProblem{.part = detail::FlexPart::backward}, name); }) == ErrorCode::ok) all.push_back(name);
  }
  return all;
}

TEST(LargeScores, ResultsAndGradientsAreThoseOfDifferences) {
  CLUTCH_EACH_DEVICE(device) {
    for (const Case& c : all_cases(FLT_MAX)) {
      check_case<float>(device, c, {}, DType::f32, "");
      if (level() == "smoke" && c.name != "padded rows" && c.name != "any size") continue;
      for (std::string_view implementation : ways(device)) {
        if (implementation.empty() || (level() == "smoke" && implementation == "flex_tiles" && c.name != "padded rows")) continue;
        check_case<float>(device, c, {}, DType::f32, implementation);
      }
      check_case<float>(device, c, {.heads = 4, .shared = 2, .q_len = 3, .kv_len = 700}, DType::f32, "");  // by parts of the keys
      if (c.unit < 0x1p16) check_case<float>(device, c, {}, DType::bf16, "");
      if (c.unit == 1) check_case<float>(device, c, {.heads = 4, .shared = 1}, DType::f16, "");
    }
    if (skip_without(device, "fp64", device.traits().fp64)) continue;
    for (const Case& c : all_cases(DBL_MAX))
      if (level() != "smoke" || c.name == "padded rows" || c.name == "any size") check_case<double>(device, c, {}, DType::f64, "");
  }
}

/// Products that cancel leave scores that the passes round otherwise, by more than e^x has range for.
TEST(LargeScores, TheForwardPassesMaximaMayBeTooHigh) {
  CLUTCH_EACH_DEVICE(device) {
    for (double size : {1e3, 1e5, 1e12}) {
      const auto drawn = [&](std::uint64_t n) { return randn({1, 2, 64, 48}, {.device = device, .seed = seed() + n}); };
      const Tensor q = map([=](Expr x) { return x * static_cast<float>(size); }, {drawn(1)}),
                   k = map([=](Expr x) { return x * static_cast<float>(size); }, {drawn(2)}), v = drawn(3), grad = drawn(4);
      for (std::string_view implementation : ways(device)) {
        const FlexOptions o{.return_lse = true, .return_max_scores = true, .implementation = std::string(implementation)};
        const FlexResult with = flex(q, k, v, o);
        FlexResult without = with;
        without.max_scores = {};
        const auto got = flex_backward(grad, q, k, v, with, o), want = flex_backward(grad, q, k, v, without, o);
        const std::string what = fmt::format("{} {}", size, implementation);
        expect_near(got.q, values(want.q), 1e-4, what + " dq"), expect_near(got.k, values(want.k), 1e-4, what + " dk");
        expect_near(got.v, values(want.v), 1e-4, what + " dv");
        for (double x : values(want.q)) ASSERT_TRUE(std::isfinite(x)) << what;
      }
    }
  }
}

/// A row's weights add to 1 however its scores were rounded. Keys are equal in pairs, so the largest score is that of two, each of which has half of the
/// weight.
TEST(LargeScores, CapturedGradientsAreOfWeightsThatAddTo1) {
  CLUTCH_EACH_DEVICE(device) {
    constexpr std::int64_t kHeads = 2, kRows = 40, kPairs = 32, kE = 48, kEv = 8;
    for (double size : {1e3, 1e4, 1e5}) {
      const auto drawn = [&](const Dims& sizes, std::uint64_t n) { return randn(sizes, {.device = device, .seed = seed() + n}); };
      const Tensor q = mul(drawn({1, kHeads, kRows, kE}, 1), size), half = mul(drawn({1, kHeads, kPairs, 1, kE}, 2), size),
                   k = half.expand({1, kHeads, kPairs, 2, kE}).reshape({1, kHeads, 2 * kPairs, kE}), v = drawn({1, kHeads, 2 * kPairs, kEv}, 3),
                   grad = drawn({1, kHeads, kRows, kEv}, 4), bias = zeros({kHeads, kRows, 2 * kPairs}, {.device = device});
      const std::vector<double> products = values(linalg::matmul(grad, v.mT()));
      for (std::string_view implementation : ways(device)) {
        FlexOptions o{.return_lse = true, .implementation = std::string(implementation)};
        o.score_mod = [at = captured(bias)](Score s, Index, Index h, Index i, Index j) { return s + at[{h, i, j}]; };
        const std::vector<double> got = values(flex_backward(grad, q, k, v, flex(q, k, v, o), o, {.captured_gradients = true}).captured.at(0));
        int rows = 0;
        for (std::size_t row = 0; row < kHeads * kRows; ++row) {
          std::vector<std::size_t> counted;
          for (std::size_t pair = 0; pair < kPairs; ++pair) {
            const std::size_t j = row * 2 * kPairs + 2 * pair;
            EXPECT_NEAR(got[j] + got[j + 1], 0, 1e-5) << size << " " << implementation << " at " << j;
            if (std::fabs(got[j]) > 1e-6) counted.push_back(j);
          }
          if (counted.size() != 1) continue;  // two pairs are about as large
          ++rows;
          EXPECT_NEAR(got[counted[0]], (products[counted[0]] - products[counted[0] + 1]) / 4, 1e-4) << size << " " << implementation << " at " << counted[0];
        }
        EXPECT_GT(rows, kHeads * kRows / 2) << size << " " << implementation;
      }
    }
  }
}

/// A small lse says nothing of the products that its scores were made of: where these cancel, the backward pass's own rounding must not make weights infinite.
TEST(LargeScores, WeightsAreFiniteWhereProductsCancel) {
  CLUTCH_EACH_DEVICE(device) {
    constexpr std::int64_t kBatch = 512, kE = 48;
    std::mt19937_64 random(seed());
    std::normal_distribution<double> normal;
    std::vector<float> q, k;
    for (std::int64_t b = 0; b < kBatch; ++b) {
      double sum = 0;
      for (std::int64_t d = 0; d < kE; ++d) {
        q.push_back(static_cast<float>(1e5 * normal(random)));
        k.push_back(static_cast<float>(d + 1 < kE ? 1e5 * normal(random) : -sum / q.back()));
        sum += static_cast<double>(q.back()) * static_cast<double>(k.back());
      }
    }
    const Tensor queries = from_host(q, {kBatch, 1, 1, kE}, device), keys = from_host(k, {kBatch, 1, 1, kE}, device),
                 v = randn({kBatch, 1, 1, 8}, {.device = device, .seed = 3});
    for (std::string_view implementation : ways(device)) {
      const FlexOptions o{.return_lse = true, .implementation = std::string(implementation)};
      const FlexResult r = flex(queries, keys, v, o);
      const auto g = flex_backward(v, queries, keys, v, r, o);
      const std::vector<double> dv = values(g.v), grad = values(v);
      for (std::size_t i = 0; i < dv.size(); ++i) ASSERT_LE(std::fabs(dv[i]), 2.8 * std::fabs(grad[i])) << implementation << " at " << i;
      for (const Tensor* t : {&g.q, &g.k})
        for (double x : values(*t)) ASSERT_TRUE(std::isfinite(x)) << implementation;
    }
  }
}

/// Reproductions of the first report.
TEST(LargeScores, AdditiveMasksOfWholeRows) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor q = randn({1, 1, 8, 16}, {.device = device, .seed = 1});
    for (double lowest : {-static_cast<double>(FLT_MAX), -1e9}) {
      const Tensor mask = zeros({8, 8}, {.device = device});
      fill_(mask.select(0, 3), lowest);
      const std::vector<double> v = values(q), out = values(attention::sdpa(q, q, q, {.attn_mask = mask}).out);
      for (std::size_t d = 0; d < 16; ++d) {
        double mean = 0;
        for (std::size_t j = 0; j < 8; ++j) mean += v[j * 16 + d] / 8;
        EXPECT_NEAR(out[3 * 16 + d], mean, 2e-6) << lowest;
      }
    }
  }
}

}}  // namespace clutch::testing
