// SPDX-License-Identifier: Apache-2.0
#include "ops/flex/given.hpp"

#include <numeric>

namespace clutch::testing { namespace {

using attention::Varlen;

/// Sequences of these lengths one after another, in PyTorch's layout.
struct Packed {
  std::vector<std::int64_t> q_lens, kv_lens;
  Tensor q, k, v;
  Varlen varlen;
  Packed(const std::vector<std::int64_t>& q_lengths, const std::vector<std::int64_t>& kv_lengths, std::int64_t heads, std::int64_t kv_heads, std::int64_t e,
         const Device& device, DType dtype = DType::f32, std::int64_t ev = 0)
      : q_lens(q_lengths), kv_lens(kv_lengths) {
    auto starts = [&](const std::vector<std::int64_t>& lengths) {
      std::vector<std::int32_t> at{0};
      for (std::int64_t n : lengths) at.push_back(at.back() + static_cast<std::int32_t>(n));
      return at;
    };
    const std::vector<std::int32_t> q_at = starts(q_lens), kv_at = starts(kv_lens);
    auto longest = [](const std::vector<std::int64_t>& lengths) { return *std::max_element(lengths.begin(), lengths.end()); };
    varlen = {.cu_seq_q = from_host(q_at, {static_cast<std::int64_t>(q_at.size())}, device),
              .cu_seq_kv = from_host(kv_at, {static_cast<std::int64_t>(kv_at.size())}, device),
              .max_q = longest(q_lens),
              .max_kv = longest(kv_lens)};
    q = randn({q_at.back(), heads, e}, {.dtype = dtype, .device = device, .seed = seed()});
    k = randn({kv_at.back(), kv_heads, e}, {.dtype = dtype, .device = device, .seed = seed() + 1});
    v = randn({kv_at.back(), kv_heads, ev > 0 ? ev : e + 8}, {.dtype = dtype, .device = device, .seed = seed() + 2});
  }
  /// One sequence's rows, (1, heads, length, size).
  static Tensor one(const Tensor& t, const std::vector<std::int64_t>& lengths, std::size_t b) {
    const std::int64_t at = std::accumulate(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(b), std::int64_t{0});
    return t.slice(0, at, at + lengths[b]).transpose(0, 1).unsqueeze(0);
  }
};

TEST(Varlen, SequencesHaveTheBitsThatTheyHaveAlone) {
  CLUTCH_EACH_DEVICE(device) {
    const bool wide = device.traits().type == DeviceType::cpu && !known_bug(device, "loops_end_early");
    // Of few queries and of many: each kind has a kernel of its own. Sums of few depend on which rows go together where values have four vectors.
    const struct {
      bool few;
      DType dtype;
      std::int64_t kv_heads, e, ev;
      const char* implementation;
    } kinds[] = {{false, DType::f32, 2, 24, 32, ""},
                 {true, DType::f32, 2, 64, 64, ""},
                 {true, DType::bf16, 4, 64, 64, ""},
                 {true, DType::f32, 2, 24, 32, ""},
                 {true, DType::f32, 2, 64, 64, "flex_tiles_split"}};
    for (const auto& [few, dtype, kv_heads, e, ev, implementation] : kinds) {
      const std::string_view forced = implementation;
      if (level() == "smoke" && few && dtype == DType::f32 && (e == 24 || (!forced.empty() && device.type() == DeviceType::cpu))) continue;
      if (!forced.empty() && code_of([&] { detail::select(device.traits(), detail::FlexProblem{.few = true, .joint = true}, forced); }) != ErrorCode::ok)
        continue;
      const std::vector<std::int64_t> q_lens = few ? std::vector<std::int64_t>{1, 0, 8, 3, 5} : std::vector<std::int64_t>{150, 0, 17, 40, 9},
                                      kv_lens{130, 20, 0, wide ? 1300 : 33, 64};
      const Packed p(q_lens, kv_lens, 4, kv_heads, e, device, dtype, ev);
      const Tensor slopes = attention::alibi_slopes(4, device);
      const Tensor shifts = from_host<float>({0.5f, 1.f, 2.f, -1.f, 0.25f}, device);
      const Captured shift = captured(shifts);
      const struct {
        const char* name;
        ScoreMod score;
        MaskMod mask;
      } mods[] = {
          {"none", {}, {}},
          {"causal", {}, attention::causal()},
          {"lower right, alibi", attention::alibi(slopes), attention::causal_lower_right(p.varlen)},
          {"of its sequence", [&](Score s, Index b, Index, Index, Index kv) { return s + shift[b] * (kv & 1); }, {}},
      };
      for (const auto& mod : mods) {
        if (level() == "smoke" && few && (mod.score.empty() && mod.mask.empty()) == (dtype == DType::f32)) continue;
        FlexOptions o{.score_mod = mod.score,
                      .mask_mod = mod.mask,
                      .enable_gqa = true,
                      .return_lse = true,
                      .return_max_scores = true,
                      .varlen = p.varlen,
                      .implementation = implementation};
        const FlexResult all = attention::varlen_attn(p.q, p.k, p.v, o);
        EXPECT_TRUE(!wide || !forced.empty() || last_plan().starts_with(few ? "flex_split " : "flex_lanes ")) << last_plan();
        ASSERT_EQ(all.out.sizes(), (Dims{p.q.size(0), 4, ev}));
        ASSERT_EQ(all.lse.sizes(), (Dims{4, p.q.size(0)}));
        std::int64_t at = 0;
        for (std::size_t b = 0; b < q_lens.size(); at += q_lens[b++]) {
          if (q_lens[b] == 0) continue;
          const auto number = static_cast<std::int64_t>(b);
          FlexOptions alone{.score_mod = mod.score,
                            .mask_mod = mod.mask,
                            .enable_gqa = true,
                            .return_lse = true,
                            .return_max_scores = true,
                            .implementation = implementation};
          if (!o.mask_mod.empty() && !o.score_mod.empty()) alone.mask_mod = attention::causal(kv_lens[b] - q_lens[b]);
          if (!o.score_mod.empty() && o.mask_mod.empty())
            alone.score_mod = [&](Score s, Index, Index, Index, Index kv) { return s + shift[param(number)] * (kv & 1); };
          const FlexResult one = flex(Packed::one(p.q, q_lens, b), Packed::one(p.k, kv_lens, b), Packed::one(p.v, kv_lens, b), alone);
          const std::string what = fmt::format("{} of {} {}{}, {} elements, sequence {}", mod.name, few ? "few" : "many", name(dtype), implementation, ev, b);
          EXPECT_EQ(Packed::one(all.out, q_lens, b).contiguous().to_bytes(), one.out.to_bytes()) << what;
          EXPECT_EQ(all.lse.slice(1, at, at + q_lens[b]).contiguous().to_bytes(), one.lse.to_bytes()) << what;
          EXPECT_EQ(all.max_scores.slice(1, at, at + q_lens[b]).contiguous().to_bytes(), one.max_scores.to_bytes()) << what;
        }
      }
    }
  }
}

TEST(Varlen, ByItemsAndInOtherDtypesAsTheModelSays) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::f32, DType::f16, DType::f64})
      for (std::string implementation : {"", "flex_items"}) {
        if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
        if (dtype == DType::f16 && !implementation.empty()) continue;
        const Packed p({20, 3, 31}, {11, 40, 25}, 2, 2, 9, device, dtype);
        const FlexResult all = attention::varlen_attn(
            p.q, p.k, p.v,
            {.mask_mod = attention::causal_lower_right(p.varlen), .return_lse = true, .varlen = p.varlen, .implementation = std::string(implementation)});
        std::int64_t at = 0;
        for (std::size_t b = 0; b < 3; at += p.q_lens[b++]) {
          const FlexCase::Shape shape{.batch = 1, .heads = 2, .q_len = p.q_lens[b], .kv_len = p.kv_lens[b], .e = 9, .ev = 17};
          auto host = [](const Tensor& t) { return values(t.contiguous()); };
          const FlexCase::Result want =
              FlexCase::model(shape, host(Packed::one(p.q, p.q_lens, b)), host(Packed::one(p.k, p.kv_lens, b)), host(Packed::one(p.v, p.kv_lens, b)), 1 / 3.0,
                              {}, [&](auto, auto, auto q, auto kv) { return q + p.kv_lens[b] - p.q_lens[b] >= kv; });
          expect_close({.out = Packed::one(all.out, p.q_lens, b).contiguous(), .lse = all.lse.slice(1, at, at + p.q_lens[b]).contiguous()}, want,
                       fmt::format("{} {}", name(dtype), b));
        }
      }
  }
}

TEST(Varlen, GradientsOfEachSequence) {
  CLUTCH_EACH_DEVICE(device) {
    if (known_bug(device, "loops_end_early")) continue;  // and so takes less than this
    for (std::string implementation : {"", "flex_items"}) {
      const std::vector<std::int64_t> q_lens{60, 5, 0, 33}, kv_lens{35, 70, 12, 33};
      const Packed p(q_lens, kv_lens, 4, 2, 16, device);
      const FlexOptions o{.score_mod = attention::softcap(3),
                          .mask_mod = attention::causal(),
                          .enable_gqa = true,
                          .return_lse = true,
                          .varlen = p.varlen,
                          .implementation = std::string(implementation)};
      const FlexResult all = attention::varlen_attn(p.q, p.k, p.v, o);
      const Tensor grad = randn(all.out.sizes(), {.device = device, .seed = 9});
      const attention::FlexGradients made = attention::varlen_attn_backward(grad, p.q, p.k, p.v, all, o);
      ASSERT_EQ(made.q.sizes(), p.q.sizes());
      ASSERT_EQ(made.v.sizes(), p.v.sizes());
      for (std::size_t b = 0; b < q_lens.size(); ++b) {
        auto one = [&](const Tensor& t, bool keys) { return values(Packed::one(t, keys ? kv_lens : q_lens, b).contiguous()); };
        const FlexCase::Shape shape{.batch = 1, .heads = 4, .q_len = q_lens[b], .kv_len = kv_lens[b], .e = 16, .ev = 24, .kv_heads = 2};
        const FlexCase::Gradients want = FlexCase::gradients(
            shape, one(p.q, false), one(p.k, true), one(p.v, true), one(grad, false), 0.25, [](double s, auto...) { return 3 * std::tanh(s / 3); },
            [](auto, auto, auto q, auto kv) { return q >= kv; });
        auto expect = [&](const std::vector<double>& got, const std::vector<double>& wanted, const char* of) {
          ASSERT_EQ(got.size(), wanted.size());
          for (std::size_t i = 0; i < got.size(); ++i)
            ASSERT_NEAR(got[i], wanted[i], 5e-5) << of << " of sequence " << b << " at " << i << " " << implementation;
        };
        expect(one(made.q, false), want.q, "q"), expect(one(made.k, true), want.k, "k"), expect(one(made.v, true), want.v, "v");
      }
    }
  }
}

/// What is captured gets the sum of its gradients by each sequence alone.
TEST(Varlen, CapturedTensorsGetTheGradientsOfAllSequences) {
  CLUTCH_EACH_DEVICE(device) {
    if (known_bug(device, "loops_end_early")) continue;  // and so takes less than this
    const std::vector<std::int64_t> q_lens{19, 5, 0, 12}, kv_lens{16, 23, 12, 12};
    const Packed p(q_lens, kv_lens, 4, 2, 8, device);
    const Tensor slopes = attention::alibi_slopes(4, device), table = randn({9}, {.device = device, .seed = 5});
    const Captured at = captured(slopes), near = captured(table);
    const ScoreMod score = [&](Score s, Index, Index h, Index q, Index kv) { return s + at[h] * tanh(cast(q - kv, s.dtype())) + near[q - kv + 4]; };
    FlexOptions o{.score_mod = score,
                  .mask_mod = attention::causal_lower_right(p.varlen),
                  .enable_gqa = true,
                  .return_lse = true,
                  .varlen = p.varlen,
                  .implementation = level() == "smoke" ? "flex_items" : ""};
    const FlexResult all = attention::varlen_attn(p.q, p.k, p.v, o);
    const Tensor grad = randn(all.out.sizes(), {.device = device, .seed = 9});
    const attention::FlexGradients made = attention::varlen_attn_backward(grad, p.q, p.k, p.v, all, o, {.captured_gradients = true});
    ASSERT_EQ(made.captured.size(), 2u);
    std::vector<std::vector<double>> want{std::vector<double>(4), std::vector<double>(9)};
    o.varlen = {};
    for (std::size_t b = 0; b < q_lens.size(); ++b) {
      if (q_lens[b] == 0) continue;
      const Tensor q = Packed::one(p.q, q_lens, b), k = Packed::one(p.k, kv_lens, b), v = Packed::one(p.v, kv_lens, b), g = Packed::one(grad, q_lens, b);
      o.mask_mod = attention::causal(kv_lens[b] - q_lens[b]);
      const attention::FlexGradients one = attention::flex_backward(g, q, k, v, flex(q, k, v, o), o, {.captured_gradients = true});
      for (std::size_t t = 0; t < 2; ++t) {
        const std::vector<double> part = values(one.captured.at(t));
        for (std::size_t i = 0; i < part.size(); ++i) want[t][i] += part[i];
      }
    }
    for (std::size_t t = 0; t < 2; ++t) {
      const std::vector<double> got = values(made.captured[t]);
      double most = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got[i], want[t][i], 1e-4) << t << " element " << i;
        most = std::max(most, std::fabs(got[i]));
      }
      EXPECT_GT(most, 1e-2);
    }
  }
}

TEST(Varlen, SomeKeysOfEachSequenceHaveTheirGradients) {
  CLUTCH_EACH_DEVICE(device) {
    constexpr std::int64_t kLength = 40;
    const Tensor slopes = from_host<float>({0.25f, -0.5f, 0.125f, 1.0f}, device);
    for (std::string_view implementation : {"", "flex_tiles", "flex_items"})
      for (bool shared : {false, true}) {
        if (level() == "smoke" && implementation == "flex_tiles") continue;
        const std::vector<std::int32_t> used{17, 40, 0};
        const Given given({.batch = 3, .heads = 4, .q_len = 21, .kv_len = kLength, .e = 16, .ev = 8}, device);
        const Tensor k = shared ? given.k.slice(0, 0, 1).slice(1, 0, 2) : given.k.slice(1, 0, 2),
                     v = shared ? given.v.slice(0, 0, 1).slice(1, 0, 2) : given.v.slice(1, 0, 2);
        const Tensor grad = randn(given.shape.out(), {.device = device, .seed = seed() + 7});
        FlexOptions o{.score_mod = attention::alibi(slopes), .enable_gqa = true, .return_lse = true, .implementation = std::string(implementation)};
        o.varlen.seqused_kv = from_host(used, {3}, device);
        const FlexResult made = flex(given.q, k, v, o);
        const auto got = attention::flex_backward(grad, given.q, k, v, made, o, {.captured_gradients = true});
        o.varlen = {};
        std::vector<double> dq, dk(k.numel()), dv(v.numel()), captured(4);
        auto add = [](std::vector<double>& sums, const Tensor& part, std::int64_t first_line, std::int64_t size) {  // (1, h, used, size) to lines of kLength
          const std::vector<double> x = values(part);
          const std::int64_t line = part.size(2) * size;
          for (std::int64_t i = 0; i < part.numel(); ++i)
            sums[static_cast<std::size_t>((first_line + i / line) * kLength * size + i % line)] += x[static_cast<std::size_t>(i)];
        };
        for (std::int64_t b = 0; b < 3; ++b) {
          auto of = [&](const Tensor& t) { return t.slice(0, b, b + 1); };
          auto keys = [&](const Tensor& t) { return (shared ? t : of(t)).slice(2, 0, used[static_cast<std::size_t>(b)]); };
          const FlexResult alone = flex(of(given.q), keys(k), keys(v), o);
          const auto want = attention::flex_backward(of(grad), of(given.q), keys(k), keys(v), alone, o, {.captured_gradients = true});
          EXPECT_EQ(of(made.out).to_bytes(), alone.out.to_bytes()) << b;
          for (double x : values(want.q)) dq.push_back(x);
          if (used[static_cast<std::size_t>(b)] > 0) add(dk, want.k, shared ? 0 : 2 * b, 16), add(dv, want.v, shared ? 0 : 2 * b, 8);
          for (std::size_t h = 0; h < 4; ++h) captured[h] += values(want.captured.at(0))[h];
        }
        auto check = [&](const Tensor& t, const std::vector<double>& want, const char* what) {
          const std::vector<double> x = values(t);
          ASSERT_EQ(x.size(), want.size()) << what;
          for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], want[i], 2e-5) << what << " " << implementation << " shared " << shared << " at " << i;
        };
        check(got.q, dq, "dq"), check(got.k, dk, "dk"), check(got.v, dv, "dv");
        const std::vector<double> slope_gradients = values(got.captured.at(0));
        for (std::size_t h = 0; h < 4; ++h) EXPECT_NEAR(slope_gradients[h], captured[h], 1e-3) << h;
      }
  }
}

TEST(Varlen, NumbersOnTheDeviceAreClamped) {
  CLUTCH_EACH_DEVICE(device) {
    Packed p({12, 20}, {12, 20}, 1, 1, 8, device);
    const Tensor whole = attention::varlen_attn(p.q, p.k, p.v, {.varlen = p.varlen}).out;
    // Starts out of range and in the wrong order reach nothing outside; longer sequences are cut off.
    for (const std::vector<std::int32_t>& starts : {std::vector<std::int32_t>{-5, 1000, 7}, {30, 2, 90}, {0, 12, 40}}) {
      Varlen wrong = p.varlen;
      wrong.cu_seq_q = from_host(starts, {3}, device), wrong.cu_seq_kv = wrong.cu_seq_q;
      const Guarded out(device, DType::f32, whole.sizes());
      attention::flex_out({.out = out.view().transpose(0, 1).unsqueeze(0)}, p.q.transpose(0, 1).unsqueeze(0), p.k.transpose(0, 1).unsqueeze(0),
                          p.v.transpose(0, 1).unsqueeze(0), {.varlen = wrong});
      out.get();
    }
    p.varlen.cu_seq_q = from_host<std::int32_t>({0, 12, 40}, device), p.varlen.cu_seq_kv = p.varlen.cu_seq_q;
    EXPECT_EQ(attention::varlen_attn(p.q, p.k, p.v, {.varlen = p.varlen}).out.to_bytes(), whole.to_bytes());
    // The mask counts keys as the sequences do.
    const Packed few({12, 20}, {12, 20}, 1, 1, 8, device);
    auto lower_right = [&](const std::vector<std::int32_t>& used, std::int64_t longest) {
      Varlen some = few.varlen;
      some.seqused_kv = from_host(used, {2}, device), some.max_kv = longest;
      return attention::varlen_attn(few.q, few.k, few.v, {.mask_mod = attention::causal_lower_right(some), .varlen = some}).out.to_bytes();
    };
    EXPECT_EQ(lower_right({99, -1}, 20), lower_right({12, 0}, 20));
    EXPECT_EQ(lower_right({12, 20}, 16), lower_right({12, 16}, 16));
  }
}

TEST(Varlen, RefusesBadInput) {
  CLUTCH_EACH_DEVICE(device) {
    const Packed p({12, 20}, {9, 7}, 2, 2, 8, device);
    auto with = [&](const Varlen& varlen, const Tensor& q, const Tensor& k, const Tensor& v, const FlexOptions& more = {}) {
      FlexOptions o = more;
      o.varlen = varlen;
      return code_of([&] { attention::varlen_attn(q, k, v, o); });
    };
    EXPECT_EQ(with(p.varlen, p.q, p.k, p.v), ErrorCode::ok);
    EXPECT_EQ(with({}, p.q, p.k, p.v), ErrorCode::invalid_argument);
    EXPECT_EQ(with(p.varlen, p.q.unsqueeze(0), p.k, p.v), ErrorCode::invalid_shape);
    Varlen wrong = p.varlen;
    wrong.cu_seq_kv = wrong.cu_seq_kv.slice(0, 0, 2);
    EXPECT_EQ(with(wrong, p.q, p.k, p.v), ErrorCode::invalid_shape);
    wrong.cu_seq_kv = p.varlen.cu_seq_kv.to(DType::i64);
    EXPECT_EQ(with(wrong, p.q, p.k, p.v), ErrorCode::invalid_dtype);
    wrong = p.varlen, wrong.page_table = zeros({2, 1}, {.dtype = DType::i32, .device = device}), wrong.page_size = 4;
    EXPECT_EQ(with(wrong, p.q, p.k, p.v), ErrorCode::invalid_argument);
    const FlexOptions masked{.block_mask = attention::create_block_mask(attention::causal(), {.q_len = 20, .kv_len = 20, .device = device})};
    EXPECT_EQ(with(p.varlen, p.q, p.k, p.v, masked), ErrorCode::invalid_argument);
    wrong = p.varlen, wrong.cu_seq_q = wrong.cu_seq_kv = empty({0}, {.dtype = DType::i32, .device = device});
    EXPECT_EQ(with(wrong, p.q, p.k, p.v), ErrorCode::invalid_shape);
    // Packed queries beside batches of keys, which are three.
    const Tensor keys = zeros({3, 2, 5, 8}, {.device = device});
    EXPECT_EQ(code_of([&] { flex(p.q.transpose(0, 1).unsqueeze(0), keys, keys, {.varlen = {.cu_seq_q = p.varlen.cu_seq_q}}); }), ErrorCode::invalid_shape);
    // The longest length of sequences that lie in batches.
    for (const Varlen& longest : {Varlen{.max_q = 3}, Varlen{.max_kv = 3}})
      EXPECT_EQ(code_of([&] { flex(keys, keys, keys, {.varlen = longest}); }), ErrorCode::invalid_argument);
  }
}

}}  // namespace clutch::testing
