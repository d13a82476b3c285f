// SPDX-License-Identifier: Apache-2.0
#include "expr/index_patterns.hpp"
#include "ops/flex/given.hpp"

#include <array>

namespace clutch::testing { namespace {

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
    {"of the score",
     {3},
     [](const Captured& t) -> ScoreMod { return [=](Score s, Index, Index, Index q, Index) { return s + t[select(s > 0, 1, 0)] * cast(q, s.dtype()); }; },
     [](double s, auto, auto, auto q, auto, const auto& t) { return s + at(t, s > 0 ? 1 : 0) * static_cast<double>(q); }},
    {"L - 1 - q, kv",
     {kQ, kKv},
     [](const Captured& t) -> ScoreMod { return [=](Score s, Index, Index, Index q, Index kv) {
                                           return s + t[{kQ - 1 - q, kv}];
                                         }; },
     [](double s, auto, auto, auto q, auto kv, const auto& t) { return s + at(t, (kQ - 1 - q) * kKv + kv); }},
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
      if (level() == "smoke" && of != "h, q - kv" && of != "h, q, kv" && of != "(q + kv) % 5" && of != "L - 1 - q, kv" && of != "of the score") continue;
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
                            .implementation = level() == "smoke" ? "flex_items" : ""};
        const FlexResult made = flex(given.q, given.k, given.v, o);
        const attention::FlexGradients gradients = attention::flex_backward(grad, given.q, given.k, given.v, made, o, {.captured_gradients = true});
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

double dot(const std::vector<double>& x, std::int64_t row, const std::vector<double>& y, std::int64_t other, std::int64_t length) {
  double sum = 0;
  for (std::int64_t d = 0; d < length; ++d) sum += at(x, row * length + d) * at(y, other * length + d);
  return sum;
}

/// What backward makes of scores, by loops.
struct HostSlopes {
  std::vector<double> slopes;  ///< of scores, each row's keys one after another
  HostSlopes(const FlexCase::Shape& s, const std::vector<double>& v, const std::vector<double>& grad, const std::vector<double>& scores) {
    for (std::int64_t b = 0; b < s.batch; ++b)
      for (std::int64_t h = 0; h < s.heads; ++h)
        for (std::int64_t i = 0; i < s.q_len; ++i) {
          const std::int64_t row = s.row(b, h, i);
          const auto first = scores.begin() + row * s.kv_len;
          const double row_max = *std::max_element(first, first + s.kv_len);
          std::vector<double> weights, products;
          double total = 0, mean = 0;  // mean: of the weights' gradients
          for (std::int64_t j = 0; j < s.kv_len; ++j) {
            weights.push_back(std::exp(first[j] - row_max)), products.push_back(dot(grad, row, v, s.key(b, h) + j, s.ev));
            total += weights.back();
          }
          for (std::size_t j = 0; j < weights.size(); ++j) mean += (weights[j] /= total) * products[j];
          for (std::size_t j = 0; j < weights.size(); ++j) slopes.push_back(weights[j] * (products[j] - mean));
        }
  }
};

/// Where tables are read: one, two or three indices.
using Read = std::vector<const IndexPattern*>;

/// Compares gradients of tables that are added to scores, some at a time, with sums over places by loops.
class ReadsOfTables {
 public:
  static constexpr std::int64_t kRows = 4, kKeys = 5;
  explicit ReadsOfTables(const Device& device) : device_(device), given_({.batch = 2, .heads = 2, .q_len = kRows, .kv_len = kKeys, .e = 3, .ev = 2}, device) {
    grad_ = randn(given_.shape.out(), {.device = device, .seed = seed() + 9});
  }

  void compare(std::span<const Read> reads) {
    for (std::size_t first = 0; first < reads.size(); first += kTogether) compare_together(reads.subspan(first, std::min(kTogether, reads.size() - first)));
  }

 private:
  static constexpr std::size_t kTogether = 4;  // a kernel takes so many
  static constexpr double kFactor = 0.25;
  /// So that a place, a distance and what is far out of range are clamped in one of them and not in another.
  static constexpr std::int64_t kSizes[3] = {5, 4, 6};

  void compare_together(std::span<const Read> reads) {
    const FlexCase::Shape& s = given_.shape;
    std::vector<Tensor> tables;
    std::vector<std::vector<double>> host;
    for (const Read& read : reads) {
      Dims sizes;
      for (std::size_t d = 0; d < read.size(); ++d) sizes.push_back(kSizes[d]);
      tables.push_back(randn(sizes, {.device = device_, .seed = seed() + 20 + tables.size()}));
      host.push_back(values(tables.back()));
    }
    const auto place = [&](const Read& read, auto b, auto h, auto i, auto j) {
      std::int64_t at = 0;
      for (std::size_t d = 0; d < read.size(); ++d) at = at * kSizes[d] + std::clamp<std::int64_t>(read[d]->host(b, h, i, j), 0, kSizes[d] - 1);
      return static_cast<std::size_t>(at);
    };
    const std::vector<double> q = values(given_.q), k = values(given_.k), v = values(given_.v);
    std::vector<double> scores;
    each_score([&](auto b, auto h, auto i, auto j) {
      double x = dot(q, s.row(b, h, i), k, s.key(b, h) + j, s.e) / std::sqrt(static_cast<double>(s.e));
      for (std::size_t n = 0; n < reads.size(); ++n) x += kFactor * host[n][place(reads[n], b, h, i, j)];
      scores.push_back(x);
    });
    const HostSlopes rows(s, v, values(grad_), scores);
    std::vector<std::vector<double>> want;
    for (const std::vector<double>& table : host) want.emplace_back(table.size());
    std::size_t score = 0;
    each_score([&](auto b, auto h, auto i, auto j) {
      for (std::size_t n = 0; n < reads.size(); ++n) want[n][place(reads[n], b, h, i, j)] += kFactor * rows.slopes[score];
      ++score;
    });

    const ScoreMod mod = [&](Score x, Index b, Index h, Index i, Index j) {
      for (std::size_t n = 0; n < reads.size(); ++n) {
        std::vector<Expr> indices;
        for (const IndexPattern* p : reads[n]) indices.push_back(p->traced(b, h, i, j));
        x = x + static_cast<float>(kFactor) * captured(tables[n]).at(indices);
      }
      return x;
    };
    const std::vector<Tensor> got = detail::captured_gradients({.score = mod.function(DType::f32),
                                                                .allowed = [](auto&, auto&, auto&, auto&) { return Expr(true); },
                                                                .q = given_.q,
                                                                .k = given_.k,
                                                                .v = given_.v,
                                                                .grad = grad_,
                                                                .scale = 1 / std::sqrt(static_cast<double>(s.e))},
                                                               current_stream(device_));
    ASSERT_EQ(got.size(), reads.size());
    for (std::size_t n = 0; n < reads.size(); ++n) {
      std::string name;
      for (const IndexPattern* p : reads[n]) name += (name.empty() ? "" : ", ") + p->name;
      const std::vector<double> made = values(got[n]);
      ASSERT_EQ(made.size(), want[n].size()) << name;
      for (std::size_t i = 0; i < made.size(); ++i) ASSERT_NEAR(made[i], want[n][i], 2e-6 * (1 + std::fabs(want[n][i]))) << name << ", element " << i;
    }
  }

  template <class F>
  void each_score(F&& f) const {
    const FlexCase::Shape& s = given_.shape;
    for (std::int64_t b = 0; b < s.batch; ++b)
      for (std::int64_t h = 0; h < s.heads; ++h)
        for (std::int64_t i = 0; i < s.q_len; ++i)
          for (std::int64_t j = 0; j < s.kv_len; ++j) f(b, h, i, j);
  }

  Device device_;
  Given given_;
  Tensor grad_;
};

TEST(Captured, EveryPatternOfIndices) {
  CLUTCH_EACH_DEVICE(device) {
    if (device.traits().simulator) continue;
    const std::vector<IndexPattern> all = index_patterns(ReadsOfTables::kRows, ReadsOfTables::kKeys);
    // By night single ones and all pairs; by day those that are plain, every third pair of these, and those with a head; triples here and there.
    const bool all_of_them = level() == "nightly";
    int pair = 0;
    std::vector<Read> reads;
    for (const IndexPattern& p : all)
      if (all_of_them || p.plain) reads.push_back({&p});
    auto moves = [](const IndexPattern& p) { return p.plain && p.name != "h" && p.name != "b" && p.name != "2" && p.name != "q - kv" && p.name != "kv - q"; };
    for (const IndexPattern& first : all)
      for (const IndexPattern& second : all)
        if (all_of_them || (moves(first) && (moves(second) || second.name == "2") && (++pair % 3 == 0 || (first.name == "kv" && second.name == "L - 1 - q"))) ||
            (first.name == "h" && moves(second)))
          reads.push_back({&first, &second});
    const std::size_t triples = all.size() * all.size() * all.size(), step = all_of_them ? 997 : 9973;
    for (std::size_t n = 0; n < triples; n += step)
      reads.push_back({&all[n % all.size()], &all[n / all.size() % all.size()], &all[n / all.size() / all.size()]});
    ReadsOfTables(device).compare(reads);
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
      const FlexOptions o{.score_mod = mod, .return_lse = true};
      const FlexResult made = flex(given.q, given.k, given.v, o);
      return values(attention::flex_backward(grad, given.q, given.k, given.v, made, o, {.captured_gradients = true}).captured[0]);
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

/// Attention of one batch of sequences: a call's, or one sequence of a packed call's.
struct HostCall {
  FlexCase::Shape shape;
  std::int64_t first_batch;
  std::vector<double> q, k, v, grad;
};

/// Tables that an unrolled dot of rows and biases counted backwards read, under each of the things that backward makes again.
TEST(Captured, UnrolledDotsAndIndicesCountedBackwards) {
  CLUTCH_EACH_DEVICE(device) {
    constexpr std::int64_t kL = 5, kS = 6;
    constexpr int kSize = 6;
    // A dot within tanh is of smaller tables: kernels have so many arguments.
    enum class Mod { dot, dot_in_tanh, biases };
    struct Way {
      std::string_view name;
      DType dtype;
      Mod mod;
    };
    for (const Way& chosen : {Way{"masked", DType::f32, Mod::dot}, Way{"masked", DType::f64, Mod::dot_in_tanh}, Way{"dropout", DType::f32, Mod::biases},
                              Way{"packed", DType::f32, Mod::dot}, Way{"packed", DType::f32, Mod::biases}}) {
      const std::string_view way = chosen.name;
      const DType dtype = chosen.dtype;
      const Mod kind = chosen.mod;
      if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
      auto drawn = [&](const Dims& sizes, std::uint64_t n) { return randn(sizes, {.dtype = dtype, .device = device, .seed = seed() + n}); };
      const bool dot_alone = kind == Mod::dot, in_tanh = kind == Mod::dot_in_tanh;
      const Tensor tables[] = {drawn(dot_alone ? Dims{2, 2, kL, kSize}
                                     : in_tanh ? Dims{kL, kSize}
                                               : Dims{kL, kS},
                                     1),
                               drawn(dot_alone ? Dims{2, kS, kSize}
                                     : in_tanh ? Dims{kS, kSize}
                                               : Dims{kL, kS},
                                     2)};
      const Captured first = captured(tables[0]), second = captured(tables[1]);
      const ScoreMod mod = [&](Score s, Index b, Index h, Index q, Index kv) {
        if (kind == Mod::biases) return 2 * tanh((s + first[{kL - 1 - q, kv}]) * 0.5) + second[{q, kS - 1 - kv}];
        for (int d = 0; d < kSize; ++d) s = s + (dot_alone ? first[{b, h, q, d}] * second[{b, kv, d}] : first[{q, d}] * second[{kv, d}]);
        return dot_alone ? s : 2 * tanh(s * 0.5);
      };
      std::vector<std::vector<double>> host;
      for (const Tensor& t : tables) host.push_back(values(t));
      auto host_mod = [&](double s, std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t kv) {
        if (dot_alone) return s + dot(host[0], (b * 2 + h) * kL + q, host[1], b * kS + kv, kSize);
        if (in_tanh) return 2 * std::tanh((s + dot(host[0], q, host[1], kv, kSize)) / 2);
        return 2 * std::tanh((s + at(host[0], (kL - 1 - q) * kS + kv)) / 2) + at(host[1], q * kS + kS - 1 - kv);
      };
      FlexOptions o{.score_mod = mod,
                    .mask_mod = [](Index, Index h, Index q, Index kv) { return q + 2 + h >= kv; },
                    .enable_gqa = true,
                    .return_lse = true,
                    .implementation = "flex_items"};
      const FlexCase::HostMask mask = [](auto, auto h, auto q, auto kv) { return q + 2 + h >= kv; };
      FlexCase::HostDropout dropout;
      const bool packed = way == "packed";
      const FlexCase::Shape shape{.batch = 2, .heads = 2, .q_len = kL, .kv_len = kS, .e = 3, .ev = 2, .kv_heads = 1};
      const std::int64_t q_lens[] = {5, 3}, kv_lens[] = {4, 6};
      const Tensor q = drawn(packed ? Dims{1, 2, 8, 3} : shape.q(), 5), k = drawn(packed ? Dims{1, 1, 10, 3} : shape.k(), 6),
                   v = drawn(packed ? Dims{1, 1, 10, 2} : shape.v(), 7), grad = drawn(packed ? Dims{1, 2, 8, 2} : shape.out(), 8);
      std::vector<HostCall> calls{{shape, 0, values(q), values(k), values(v), values(grad)}};
      if (packed) {
        o.varlen = {
            .cu_seq_q = from_host<std::int32_t>({0, 5, 8}, device), .cu_seq_kv = from_host<std::int32_t>({0, 4, 10}, device), .max_q = kL, .max_kv = kS};
        calls.clear();
        for (std::int64_t b = 0, i = 0, j = 0; b < 2; i += q_lens[b], j += kv_lens[b], ++b) {
          auto part = [&](const Tensor& t, std::int64_t from, std::int64_t length) { return values(t.slice(2, from, from + length).contiguous()); };
          calls.push_back({{.heads = 2, .q_len = q_lens[b], .kv_len = kv_lens[b], .e = 3, .ev = 2, .kv_heads = 1},
                           b,
                           part(q, i, q_lens[b]),
                           part(k, j, kv_lens[b]),
                           part(v, j, kv_lens[b]),
                           part(grad, i, q_lens[b])});
        }
      }
      if (way == "dropout") {
        const GeneratorState state{.seed = 79, .offset = 3};
        o.generator = Generator(device, 1);
        o.generator.set_state(state);
        o.dropout_p = 0.3;
        dropout = FlexCase::host_dropout(shape, 0.3, state);
      }
      const FlexResult made = flex(q, k, v, o);
      const attention::FlexGradients got = attention::flex_backward(grad, q, k, v, made, o, {.captured_gradients = true});
      ASSERT_EQ(got.captured.size(), 2u);
      auto loss = [&] {
        double sum = 0;
        for (const HostCall& c : calls) {
          const FlexCase::Result r = FlexCase::model(
              c.shape, c.q, c.k, c.v, 1 / std::sqrt(3.0), [&](double s, auto b, auto... at) { return host_mod(s, c.first_batch + b, at...); }, mask, dropout);
          for (std::size_t i = 0; i < c.grad.size(); ++i) sum += c.grad[i] * r.out[i];
        }
        return sum;
      };
      for (std::size_t t = 0; t < 2; ++t) {
        int number = 0;
        while (!mod.function(dtype).captured_tensor(number).shares_storage(tables[t])) ++number;
        const std::vector<double> gradient = values(got.captured[static_cast<std::size_t>(number)]);
        ASSERT_EQ(gradient.size(), host[t].size());
        for (std::size_t i = 0; i < gradient.size(); ++i) {
          constexpr double kStep = 1e-5;
          const double here = host[t][i];
          host[t][i] = here + kStep;
          const double above = loss();
          host[t][i] = here - kStep;
          const double below = loss();
          host[t][i] = here;
          ASSERT_NEAR(gradient[i], (above - below) / (2 * kStep), dtype == DType::f64 ? 1e-8 : 2e-5)
              << way << " " << name(dtype) << " table " << t << " at " << i;
        }
      }
    }
  }
}

/// Scores that have a large number in common: their weights are those of what they differ by.
TEST(Captured, LargeScoresHaveExactWeights) {
  CLUTCH_EACH_DEVICE(device) {
    for (double shift : {1e4, 1e9, -1e9, -1e30}) {
      const Tensor none = zeros({1, 1, 2, 1}, {.device = device}), v = from_host<float>({1, -1}, {1, 1, 2, 1}, device),
                   table = from_host<float>({0, 0, 0, 0}, {2, 2}, device);
      const Captured of = captured(table);
      const ScoreMod mod = [&](Score s, Index, Index, Index q, Index kv) { return s + of[{q, kv}] + param(shift); };
      const std::vector<Tensor> got = detail::captured_gradients({.score = mod.function(DType::f32),
                                                                  .allowed = [](auto&, auto&, auto&, auto&) { return Expr(true); },
                                                                  .q = none,
                                                                  .k = none,
                                                                  .v = v,
                                                                  .grad = full({1, 1, 2, 1}, 1, {.device = device})},
                                                                 current_stream(device));
      const std::vector<double> made = values(got.at(0));
      for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(made[i], i % 2 == 0 ? 0.5 : -0.5, 1e-6) << shift << " at " << i;
    }
  }
}

/// A mod that gives no number where the mask hides it, as a logarithm of a distance does, has gradients all the same.
TEST(Captured, WhatIsMaskedCountsForNothing) {
  CLUTCH_EACH_DEVICE(device) {
    const Given given({.batch = 1, .heads = 2, .q_len = 5, .kv_len = 5, .e = 3, .ev = 2}, device);
    const Tensor slopes = from_host<float>({0.5f, -0.25f}, device), grad = randn(given.shape.out(), {.device = device, .seed = 6});
    const Captured of = captured(slopes);
    auto gradient = [&](const ScoreMod& mod) {
      const FlexOptions o{.score_mod = mod, .mask_mod = attention::causal(), .return_lse = true, .implementation = "flex_items"};
      const FlexResult made = flex(given.q, given.k, given.v, o);
      return values(attention::flex_backward(grad, given.q, given.k, given.v, made, o, {.captured_gradients = true}).captured.at(0));
    };
    const std::vector<double> got = gradient([&](Score s, Index, Index h, Index q, Index kv) { return s + of[h] * log(q - kv + 1.0f); }),
                              want = gradient([&](Score s, Index, Index h, Index q, Index kv) { return s + of[h] * log(max(q - kv, 0) + 1.0f); });
    for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(got[i], want[i], 1e-6) << i;
  }
}

/// An unrolled dot of rows is a few programs, however long the rows are.
TEST(Captured, UnrolledDotsBuildFewPrograms) {
  CLUTCH_EACH_DEVICE(device) {
    if (device.traits().simulator) continue;
    const Given given({.batch = 1, .heads = 2, .q_len = 4, .kv_len = 4, .e = 3, .ev = 2}, device);
    auto built = [&](int size) {
      const Captured of_q = captured(randn({1, 2, 4, size}, {.device = device})), of_k = captured(randn({1, 4, size}, {.device = device}));
      const FlexOptions o{.score_mod =
                              [&](Score s, Index b, Index h, Index q, Index kv) {
                                for (int d = 0; d < size; ++d) s = s + of_q[{b, h, q, d}] * of_k[{b, kv, d}];
                                return s;
                              },
                          .return_lse = true,
                          .implementation = "flex_items"};
      const FlexResult made = flex(given.q, given.k, given.v, o);
      const auto before = build_counters();
      attention::flex_backward(given.v, given.q, given.k, given.v, made, o, {.captured_gradients = true});
      return build_counters().built + build_counters().loaded - before.built - before.loaded;
    };
    const auto first = built(12);
    EXPECT_LE(first, 16u);
    // Nothing but the three kernels of rows' sums and of q's, k's and v's gradients, whose text has the rows' length.
    EXPECT_LE(built(13), 3u);
  }
}

/// A small network over distances, whose loop over its width reads three tables at one number after another.
TEST(Captured, LoopsOverWeightsShareTheirPrograms) {
  CLUTCH_EACH_DEVICE(device) {
    if (device.traits().simulator) continue;
    constexpr int kWidth = 8;
    const Given given({.batch = 1, .heads = 2, .q_len = 4, .kv_len = 5, .e = 3, .ev = 2}, device);
    const Tensor grad = randn(given.shape.out(), {.device = device, .seed = seed() + 7});
    std::vector<Tensor> tables;
    std::vector<std::vector<double>> host;
    for (std::uint64_t n = 0; n < 3; ++n) tables.push_back(randn({kWidth}, {.device = device, .seed = seed() + n})), host.push_back(values(tables.back()));
    const Captured in = captured(tables[0]), shift = captured(tables[1]), out = captured(tables[2]);
    const ScoreMod mod = [&](Score s, Index, Index, Index q, Index kv) {
      for (int d = 0; d < kWidth; ++d) s = s + out[d] * tanh(in[d] * cast(q - kv, s.dtype()) + shift[d]);
      return s;
    };
    const FlexOptions o{.score_mod = mod, .return_lse = true, .implementation = "flex_items"};
    const FlexResult made = flex(given.q, given.k, given.v, o);
    const auto before = build_counters();
    const attention::FlexGradients got = attention::flex_backward(grad, given.q, given.k, given.v, made, o, {.captured_gradients = true});
    const auto after = build_counters();
    EXPECT_LE(after.built + after.loaded - before.built - before.loaded, 14u) << "of 24 reads";
    const std::vector<double> q = values(given.q), k = values(given.k), v = values(given.v), g = values(grad);
    auto loss = [&] {
      const FlexCase::Result r = FlexCase::model(given.shape, q, k, v, 1 / std::sqrt(3.0), [&](double s, auto, auto, auto i, auto j) {
        for (std::size_t d = 0; d < kWidth; ++d) s += host[2][d] * std::tanh(host[0][d] * static_cast<double>(i - j) + host[1][d]);
        return s;
      });
      double sum = 0;
      for (std::size_t i = 0; i < g.size(); ++i) sum += g[i] * r.out[i];
      return sum;
    };
    for (std::size_t t = 0; t < 3; ++t) {
      int number = 0;
      while (!mod.function(DType::f32).captured_tensor(number).shares_storage(tables[t])) ++number;
      const std::vector<double> gradient = values(got.captured.at(static_cast<std::size_t>(number)));
      for (std::size_t i = 0; i < kWidth; ++i) {
        constexpr double kStep = 1e-5;
        const double here = host[t][i];
        host[t][i] = here + kStep;
        const double above = loss();
        host[t][i] = here - kStep;
        const double below = loss();
        host[t][i] = here;
        ASSERT_NEAR(gradient[i], (above - below) / (2 * kStep), 2e-5) << "table " << t << " at " << i;
      }
    }
  }
}

TEST(Captured, EdgesAndErrors) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor slopes = attention::alibi_slopes(2, device);
    FlexOptions o{.score_mod = attention::alibi(slopes), .return_lse = true};
    const Given none({.batch = 1, .heads = 2, .q_len = 3, .kv_len = 0, .e = 4, .ev = 4}, device);
    const FlexResult made = flex(none.q, none.k, none.v, o);
    EXPECT_EQ(values(attention::flex_backward(made.out, none.q, none.k, none.v, made, o, {.captured_gradients = true}).captured.at(0)),
              (std::vector<double>{0, 0}));
    const Given given({.batch = 1, .heads = 2, .q_len = 3, .kv_len = 3, .e = 4, .ev = 4}, device);
    o = {.score_mod = attention::softcap(2), .return_lse = true};
    const FlexResult capped = flex(given.q, given.k, given.v, o);
    EXPECT_TRUE(attention::flex_backward(capped.out, given.q, given.k, given.v, capped, o, {.captured_gradients = true}).captured.empty());
  }
}

}}  // namespace clutch::testing
