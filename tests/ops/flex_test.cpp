// SPDX-License-Identifier: Apache-2.0
#include "ops/flex/given.hpp"

#include "ops/flex_plan.hpp"
#include "support/op_runner.hpp"

#include <clutch/clutch.hpp>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

namespace clutch::testing { namespace {

/// The implementations that a device can be asked for, first what it takes by itself. By day its tiles, which take CPUs seconds to build, are proofs alone.
std::vector<std::string> implementations(const Device& device, detail::FlexPart part = detail::FlexPart::forward) {
  std::vector<std::string> all{""};
  for (std::string_view name : {"flex_lanes", "flex_tiles"}) {
    if (level() == "smoke" && name == "flex_tiles" && device.type() == DeviceType::cpu) continue;
    auto takes = [&] { detail::select(device.traits(), detail::FlexProblem{.part = part}, name); };
    if (!device.traits().simulator && code_of(takes) == ErrorCode::ok) all.emplace_back(name);
  }
  all.emplace_back("flex_items");
  return all;
}

/// Every mod with its host twin, and captured tensors.
struct Mod {
  const char* name;
  ScoreMod score;
  FlexCase::HostScore host_score;
  MaskMod mask;
  FlexCase::HostMask host_mask;
};
std::vector<Mod> mods(const Device& device, std::int64_t heads, std::int64_t length) {
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < length; ++i) ids.push_back(static_cast<std::int32_t>(i * 5 / length + i % 2));
  std::vector<float> near, by_head;
  for (int i = 0; i < 21; ++i) near.push_back(static_cast<float>(std::sin(i)));
  for (std::int64_t i = 0; i < heads * (2 * length - 1); ++i) by_head.push_back(static_cast<float>(std::cos(static_cast<double>(i))));
  const Tensor documents = from_host(ids, {length}, device), table = from_host(near, {21}, device), wide = from_host(by_head, {heads, 2 * length - 1}, device);
  auto slope = [=](std::int64_t h) {
    return static_cast<double>(static_cast<float>(std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(heads))));
  };
  auto host_table = [=](std::int64_t at) { return static_cast<double>(near[static_cast<std::size_t>(std::clamp<std::int64_t>(at + 10, 0, 20))]); };
  auto host_wide = [=](std::int64_t h, std::int64_t at) {
    return static_cast<double>(by_head[static_cast<std::size_t>(h * (2 * length - 1) + std::clamp<std::int64_t>(at + length - 1, 0, 2 * length - 2))]);
  };
  auto causal = [](auto, auto, auto q, auto kv) { return q >= kv; };
  auto cap = [](double s, auto...) { return 3 * std::tanh(s / 3); };
  std::vector<Mod> all{
      {"none", {}, {}, {}, {}},
      {"causal", {}, {}, attention::causal(), causal},
      {"window", {}, {}, attention::sliding_window(17), [](auto, auto, auto q, auto kv) { return q >= kv && q - kv <= 17; }},
      {"prefix", {}, {}, attention::prefix_lm(30), [](auto, auto, auto q, auto kv) { return kv < 30 || q >= kv; }},
      {"document",
       {},
       {},
       attention::document(documents),
       [=](auto, auto, auto q, auto kv) {
         return ids.at(static_cast<std::size_t>(std::min(q, length - 1))) == ids.at(static_cast<std::size_t>(std::min(kv, length - 1)));
       }},
      {"dilated", {}, {}, attention::dilated(40, 3), [](auto, auto, auto q, auto kv) { return std::abs(q - kv) <= 40 && (q - kv) % 3 == 0; }},
      {"alibi",
       attention::alibi(attention::alibi_slopes(heads, device)),
       [=](double s, auto, auto h, auto q, auto kv) { return s + slope(h) * static_cast<double>(kv - q); },
       {},
       {}},
      {"softcap", attention::softcap(3), cap, {}, {}},
      {"relative", attention::relative_bias(), [](double s, auto, auto, auto q, auto kv) { return s + static_cast<double>(q - kv); }, {}, {}},
      {"relative table", attention::relative_bias(table), [=](double s, auto, auto, auto q, auto kv) { return s + host_table(q - kv); }, {}, {}},
      {"relative tables of heads", attention::relative_bias(wide), [=](double s, auto, auto h, auto q, auto kv) { return s + host_wide(h, q - kv); }, {}, {}},
      {"softcap, causal window of documents", attention::softcap(3), cap, attention::sliding_window(50) & attention::document(documents),
       [=](auto, auto, auto q, auto kv) {
         return q >= kv && q - kv <= 50 &&
                ids.at(static_cast<std::size_t>(std::min(q, length - 1))) == ids.at(static_cast<std::size_t>(std::min(kv, length - 1)));
       }},
      {"nobody of some",
       {},
       {},
       [](Index, Index, Index q, Index kv) { return (trunc_mod(q, 3) != 0) & (kv > q); },
       [](auto, auto, auto q, auto kv) { return q % 3 != 0 && kv > q; }},
  };
  return all;
}

/// By day one mod of each kind; of what a device would not take by itself some are enough, most of all where its programs take seconds to build.
bool worth(std::string_view implementation, const Mod& mod) {
  if (level() != "smoke") return true;
  for (std::string_view name : {"prefix", "dilated", "relative", "relative table"})
    if (name == mod.name) return false;
  if (implementation.empty() || implementation == "flex_lanes") return true;
  return implementation == "flex_items" ? mod.score.empty() != mod.mask.empty() : !mod.score.empty() && !mod.mask.empty();
}

TEST(Flex, ReadyMadeModsMatchTheModel) {
  CLUTCH_EACH_DEVICE(device) {
    const FlexCase::Shape shape{.batch = 2, .heads = 4, .q_len = 131, .kv_len = 131, .e = 24, .ev = 40};
    const Given given(shape, device);
    for (const Mod& mod : mods(device, 4, 131))
      for (const std::string& implementation : implementations(device)) {
        if (!worth(implementation, mod)) continue;
        const FlexCase::Result want = given.model(mod.host_score, mod.host_mask);
        FlexOptions o{.score_mod = mod.score, .return_lse = true, .return_max_scores = true, .implementation = implementation};
        if (!mod.mask.empty()) {
          if (level() != "smoke" || std::string_view(mod.name) == "causal") {
            o.mask_mod = mod.mask;
            expect_close(flex(given.q, given.k, given.v, o), want, fmt::format("{} {} by its mask", implementation, mod.name));
            o.mask_mod = {};
          }
          o.block_mask = attention::create_block_mask(mod.mask, {.q_len = 131, .kv_len = 131, .block = {32, 48}, .device = device});
        }
        expect_close(flex(given.q, given.k, given.v, o), want, fmt::format("{} {}", implementation, mod.name));
      }
  }
}

TEST(Flex, LengthsSizesAndDtypes) {
  CLUTCH_EACH_DEVICE(device) {
    int turn = 0;
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      if (level() == "smoke" && dtype == DType::f16) continue;
      if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
      for (std::int64_t q_len : {0, 1, 16, 33, 127, 128, 129, 200})
        for (std::int64_t kv_len : {0, 1, 7, 128, 129, 260})
          for (bool causal : {false, true}) {
            if (++turn % (level() == "smoke" ? 11 : 1) != 0) continue;
            if (level() == "smoke" && dtype != DType::f32 && causal == (dtype == DType::f16)) continue;
            const Given given({.batch = 1, .heads = 2, .q_len = q_len, .kv_len = kv_len, .e = 8 + turn % 9, .ev = 7 + turn % 11}, device, dtype);
            FlexOptions o{.return_lse = true, .return_max_scores = true};
            if (causal && q_len > 0 && kv_len > 0)
              o.block_mask = attention::create_block_mask(attention::causal(kv_len - q_len), {.q_len = q_len, .kv_len = kv_len, .device = device});
            const bool masked = !o.block_mask.empty();
            expect_close(flex(given.q, given.k, given.v, o),
                         given.model({}, masked ? FlexCase::HostMask([=](auto, auto, auto q, auto kv) { return q + kv_len - q_len >= kv; }) : nullptr),
                         fmt::format("{} {} x {} causal {}", name(dtype), q_len, kv_len, causal));
          }
    }
    if (known_bug(device, "loops_end_early")) {
      const Given far({.batch = 1, .heads = 1, .q_len = 5, .kv_len = 2000, .e = 64, .ev = 64}, device);
      EXPECT_EQ(code_of([&] { flex(far.q, far.k, far.v); }), ErrorCode::not_supported);
      continue;
    }
    // Heads of every class of sizes, and past them.
    for (std::int64_t e : {1, 31, 32, 64, 65, 80, 96, 128, 129, 256, 300, 600, 1030})
      for (std::int64_t ev : {e, (e * 7 + 9) % 140 + 1}) {
        if (level() == "smoke" && (e > 300 || e == 31 || e == 64 || e == 96 || e == 128 || (ev != e && e != 65))) continue;
        const Given given({.batch = 1, .heads = 1, .q_len = 50, .kv_len = 150, .e = e, .ev = ev}, device);
        expect_close(flex(given.q, given.k, given.v), given.model(), fmt::format("{} and {} elements", e, ev));
      }
  }
}

/// Few queries, alone and of heads that share keys: every class of sizes, whole vectors and not, over more than one part and more than one block of a part.
TEST(Flex, FewQueriesOfEverySize) {
  CLUTCH_EACH_DEVICE(device) {
    if (known_bug(device, "loops_end_early")) continue;
    int turn = 0;
    for (DType dtype : {DType::f32, DType::bf16, DType::f64}) {
      if (dtype == DType::f64 && (level() == "smoke" || skip_without(device, "fp64", device.traits().fp64))) continue;
      for (std::int64_t e : {64, 63, 128, 120, 256, 250, 512, 500, 1024, 1000}) {
        if (level() == "smoke" && (dtype == DType::bf16 ? e != 64 : e != 63 && e != 128 && e != 1000)) continue;
        for (std::int64_t q_len : {1, 2, 5})
          for (std::int64_t shared : {1, 3}) {
            if (level() == "smoke" && (q_len == 2) == (shared == 1)) continue;
            const Given given({.batch = 1, .heads = shared, .q_len = q_len, .kv_len = 523, .e = e, .ev = e, .kv_heads = 1}, device, dtype);
            FlexOptions o{.enable_gqa = true};
            FlexCase::HostMask allowed;
            if (level() == "smoke" || ++turn % 3 == 0) {
              o.mask_mod = attention::causal(520 - q_len);
              allowed = [=](auto, auto, auto q, auto kv) { return q + 520 - q_len >= kv; };
            }
            expect_close(flex(given.q, given.k, given.v, o), given.model({}, allowed),
                         fmt::format("{}, {} queries of {} heads, {} elements", name(dtype), q_len, shared, e));
          }
      }
    }
  }
}

/// Tiles of few queries, by parts of the keys: heads together or queries of each, in cache pages, of lengths that the device tells.
TEST(Flex, FewQueriesByTilesOfParts) {
  CLUTCH_EACH_DEVICE(device) {
    auto takes = [&] { detail::select(device.traits(), detail::FlexProblem{.joint = true}, "flex_tiles_split"); };
    if (device.traits().simulator || code_of(takes) != ErrorCode::ok || (level() == "smoke" && device.type() == DeviceType::cpu)) continue;
    for (std::int64_t q_len : {1, 5}) {
      const FlexCase::Shape shape{.batch = 1, .heads = 6, .q_len = q_len, .kv_len = 1300, .e = 24, .ev = 40, .kv_heads = 2};
      const Given given(shape, device);
      FlexOptions o{.score_mod = attention::softcap(3),
                    .mask_mod = attention::causal(1100 - q_len),
                    .enable_gqa = true,
                    .return_lse = true,
                    .return_max_scores = true,
                    .implementation = "flex_tiles_split"};
      const FlexCase::Result want =
          given.model([](double s, auto...) { return 3 * std::tanh(s / 3); }, [=](auto, auto, auto q, auto kv) { return kv < 1205 && q + 1100 - q_len >= kv; });
      // Pages of 100 keys that lie the other way round.
      std::vector<std::int32_t> table;
      for (int i = 12; i >= 0; --i) table.push_back(i);
      auto paged = [&](const Tensor& t) {
        return index_select(t.reshape({1, 2, 13, 100, t.size(3)}), 2, from_host(table, {13}, device)).reshape({1, 2, 1300, t.size(3)});
      };
      o.varlen.seqused_kv = from_host<std::int32_t>({1205}, device);
      expect_close(flex(given.q, given.k, given.v, o), want, fmt::format("{} queries", q_len));
      o.varlen.page_table = from_host(table, {1, 13}, device), o.varlen.page_size = 100;
      expect_close(flex(given.q, paged(given.k), paged(given.v), o), want, fmt::format("{} queries, by pages", q_len));
    }
    const Given given({.batch = 1, .heads = 2, .q_len = 3, .kv_len = 40, .e = 8, .ev = 8}, device);
    const FlexOptions differ{.block_mask = attention::create_block_mask(attention::causal(), {.heads = 2, .q_len = 3, .kv_len = 40, .device = device}),
                             .implementation = "flex_tiles_split"};
    EXPECT_EQ(code_of([&] { flex(given.q, given.k, given.v, differ); }), ErrorCode::not_supported);
  }
}

TEST(Flex, BlocksOfAnySizeAndLists) {
  CLUTCH_EACH_DEVICE(device) {
    const Given given({.batch = 2, .heads = 2, .q_len = 150, .kv_len = 210, .e = 16, .ev = 16}, device);
    const FlexCase::Result want = given.model({}, [](auto b, auto h, auto q, auto kv) { return q + 10 * b >= kv - 60 * h; });
    auto mask = [](Index b, Index h, Index q, Index kv) { return q + 10 * b >= kv - 60 * h; };
    for (attention::BlockSize block : {attention::BlockSize{}, {1, 1}, {5, 300}, {33, 64}, {64, 33}, {192, 17}, {400, 129}}) {
      FlexOptions o{.block_mask = attention::create_block_mask(mask, {.batch = 2, .heads = 2, .q_len = 150, .kv_len = 210, .block = block, .device = device})};
      expect_close(flex(given.q, given.k, given.v, o), want, fmt::format("blocks of {} x {}", block.q, block.kv));
    }
    // Lists of one's own: what they do not name is not attended to, whatever the mask says.
    const Tensor num = from_host<std::int32_t>({1, 2}, device).reshape({1, 1, 2}),
                 list = from_host<std::int32_t>({2, 0, 1, 0, 2, 1}, device).reshape({1, 1, 2, 3});
    FlexOptions o{.block_mask = attention::block_mask_from_lists(num, list, {}, {}, {}, {.q_len = 150, .kv_len = 210, .block = {100, 70}, .device = device})};
    expect_close(flex(given.q, given.k, given.v, o), given.model({}, [](auto, auto, auto q, auto kv) { return q < 100 ? kv >= 140 : kv < 70 || kv >= 140; }),
                 "lists");
  }
}

TEST(Flex, GroupedHeadsSharedKeysAndStrides) {
  CLUTCH_EACH_DEVICE(device) {
    const FlexCase::Shape shape{.batch = 3, .heads = 6, .q_len = 70, .kv_len = 90, .e = 20, .ev = 12, .kv_batch = 1, .kv_heads = 2};
    const Given given(shape, device);
    const FlexCase::Result want = given.model([](double s, auto b, auto h, auto, auto) { return s * static_cast<double>(1 + h) - static_cast<double>(b); });
    FlexOptions o{.score_mod = [](Score s, Index b, Index h, Index, Index) { return s * (1 + h) - b; }, .enable_gqa = true};
    expect_close(flex(given.q, given.k, given.v, o), want, "grouped");
    // (batch, length, heads, size) in memory, keys in columns, and a result of the caller's in the first layout.
    auto by_length = [](const Tensor& t) { return t.transpose(1, 2).contiguous().transpose(1, 2); };
    auto by_column = [](const Tensor& t) { return t.mT().contiguous().mT(); };
    for (const std::string& implementation : implementations(device)) {
      o.implementation = implementation;
      FlexResult made{.out = empty({3, 70, 6, 12}, {.device = device}).transpose(1, 2)};
      attention::flex_out(made, by_length(given.q), by_column(given.k), by_length(given.v), o);
      expect_close(made, want, "strided");
      attention::flex_out(made, by_column(given.q), by_length(given.k), by_column(given.v), o);
      expect_close(made, want, "strided otherwise");
    }
  }
}

TEST(Flex, ExtremeScores) {
  CLUTCH_EACH_DEVICE(device) {
    const Given given({.batch = 1, .heads = 1, .q_len = 40, .kv_len = 200, .e = 16, .ev = 8}, device);
    for (const std::string& implementation : implementations(device)) {
      FlexOptions o{.scale = 1e4, .return_lse = true, .return_max_scores = true, .implementation = implementation};
      // So far apart that one key has it all.
      const FlexResult far = flex(given.q, given.k, given.v, o);
      for (double x : values(far.out)) ASSERT_TRUE(std::isfinite(x));
      const FlexCase::Result want = given.model({}, {}, 1e4);
      const std::vector<double> top = values(far.max_scores), out = values(far.out);
      for (std::size_t i = 0; i < top.size(); ++i) EXPECT_NEAR(top[i], want.top[i], 1e-5 * want.largest);
      for (std::size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], want.out[i], 0.2);
      o.scale = attention::kDefaultScale;
      // -inf everywhere: nothing, and where rows have one key alone, it.
      o.score_mod = [](Score s, Index, Index, Index, Index) { return s * 0 - std::numeric_limits<float>::infinity(); };
      FlexResult none = flex(given.q, given.k, given.v, o);
      for (double x : values(none.out)) ASSERT_EQ(x, 0);
      for (double x : values(none.lse)) ASSERT_EQ(x, -kInf);
      for (double x : values(none.max_scores)) ASSERT_EQ(x, -kInf);
      o.score_mod = [](Score s, Index, Index, Index q, Index kv) { return select(q + 150 == kv, s, -std::numeric_limits<float>::infinity()); };
      expect_close(flex(given.q, given.k, given.v, o), given.model([](double s, auto, auto, auto q, auto kv) { return q + 150 == kv ? s : -kInf; }), "one key");
      // NaN keys that are masked do not count; others make their rows NaN.
      std::vector<float> keys = given.k.to_host<float>();
      for (std::size_t d = 0; d < 16; ++d) keys[7 * 16 + d] = std::numeric_limits<float>::quiet_NaN();
      o.score_mod = {}, o.mask_mod = [](Index, Index, Index q, Index kv) { return (kv != 7) | (q == 3); };
      const std::vector<double> poisoned = values(flex(given.q, from_host(keys, {1, 1, 200, 16}, device), given.v, o).out);
      const FlexCase::Result without = given.model({}, [](auto, auto, auto, auto kv) { return kv != 7; });
      for (std::size_t i = 0; i < poisoned.size(); ++i) {
        if (i / 8 == 3)
          ASSERT_TRUE(std::isnan(poisoned[i]));
        else
          ASSERT_NEAR(poisoned[i], without.out[i], 2e-6);
      }
    }
  }
}

/// NaN with the given bits, at every element of (rows, e) in rows from `begin` to before `end`; elsewhere the numbers of `host`.
std::vector<float> with_nan(std::vector<float> host, std::uint32_t bits, std::int64_t e, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin * e; i < end * e; ++i) host[static_cast<std::size_t>(i)] = std::bit_cast<float>(bits);
  return host;
}

/// Devices make NaN with other bits than the host's, and poison may be any of them. A part of the keys that is NaN throughout counts like one NaN.
TEST(Flex, NanOfAnyBitsMakesItsRowNan) {
  CLUTCH_EACH_DEVICE(device) {
    const Given few({.batch = 1, .heads = 1, .q_len = 3, .kv_len = 1500, .e = 16, .ev = 8}, device),
        many({.batch = 1, .heads = 1, .q_len = 40, .kv_len = 70, .e = 16, .ev = 8}, device);
    for (std::uint32_t bits : {0x7fc00000u, 0x7fc00001u, 0x7fffffffu, 0xffffffffu, 0x7f800001u, 0xffc001ffu}) {
      auto nan_rows = [&](const Tensor& q, const Tensor& k, const Tensor& v, FlexOptions o) {
        o.return_lse = true;
        const FlexResult made = flex(q, k, v, o);
        const std::vector<double> out = values(made.out), lse = values(made.lse);
        std::vector<bool> rows(lse.size());
        for (std::size_t i = 0; i < lse.size(); ++i) {
          rows[i] = std::isnan(lse[i]);
          for (std::size_t d = 0; d < 8; ++d) EXPECT_EQ(std::isnan(out[8 * i + d]), rows[i]) << fmt::format("{} {:x} row {}", o.implementation, bits, i);
        }
        return rows;
      };
      auto check = [&](const Given& given, const std::string& implementation) {
        const std::vector<float> q = given.q.to_host<float>(), k = given.k.to_host<float>();
        const std::int64_t rows = given.shape.q_len, keys = given.shape.kv_len;
        FlexOptions o{.implementation = implementation};
        auto queries = [&](std::int64_t begin, std::int64_t end) { return from_host(with_nan(q, bits, 16, begin, end), given.shape.q(), device); };
        auto poisoned = [&](std::int64_t begin, std::int64_t end) { return from_host(with_nan(k, bits, 16, begin, end), given.shape.k(), device); };
        const std::vector<bool> all(static_cast<std::size_t>(rows), true), none(static_cast<std::size_t>(rows), false);
        std::vector<bool> one = none;
        one[1] = true;
        const std::string what = fmt::format("{} {:x}", implementation, bits);
        EXPECT_EQ(nan_rows(queries(0, rows), given.k, given.v, o), all) << what << " queries";
        EXPECT_EQ(nan_rows(queries(1, 2), given.k, given.v, o), one) << what << " one query";
        EXPECT_EQ(nan_rows(given.q, poisoned(keys - 1, keys), given.v, o), all) << what << " the last key";
        EXPECT_EQ(nan_rows(given.q, poisoned(0, keys), given.v, o), all) << what << " keys";
        if (keys > 1024) {
          EXPECT_EQ(nan_rows(given.q, poisoned(512, 1024), given.v, o), all) << what << " a part of the keys";
        }
        o.mask_mod = [](Index, Index, Index i, Index kv) { return (kv != 7) | (i == 1); };
        EXPECT_EQ(nan_rows(given.q, poisoned(7, 8), given.v, o), one) << what << " a key that one query sees";
      };
      for (const std::string& implementation : implementations(device)) {
        if (level() == "smoke" && implementation == "flex_lanes") continue;  // what CPUs take by themselves
        check(few, implementation), check(many, implementation);
      }
    }
  }
}

/// Forward, then backward, against the model of gradients.
void expect_gradients(const Given& given, FlexOptions o, const FlexCase::HostScore& score, const FlexCase::HostMask& mask, const std::string& what,
                      double times = 1) {
  const Device device = given.q.device();
  const DType dtype = given.q.dtype();
  o.return_lse = true;
  const FlexResult results = flex(given.q, given.k, given.v, o);
  const Tensor grad = randn(given.shape.out(), {.dtype = dtype, .device = device, .seed = seed() + 77});
  const Tensor grad_lse =
      randn({given.shape.batch, given.shape.heads, given.shape.q_len}, {.dtype = results.lse.dtype(), .device = device, .seed = seed() + 78});
  const auto [dq, dk, dv, none] = attention::flex_backward(grad, given.q, given.k, given.v, results, o, {.grad_lse = grad_lse});
  const double scale = std::isnan(o.scale) ? 1 / std::sqrt(static_cast<double>(given.shape.e)) : o.scale;
  const FlexCase::Gradients want =
      FlexCase::gradients(given.shape, values(given.q), values(given.k), values(given.v), values(grad), scale, score, mask, values(grad_lse));
  const double eps = dtype == DType::f64 ? 1e-8 : dtype == DType::f32 ? 1e-5 : dtype == DType::f16 ? 0x1p-8 : 0x1p-5;  // differences are what f64 waits for
  const std::pair<const Tensor*, const std::vector<double>*> all[] = {{&dq, &want.q}, {&dk, &want.k}, {&dv, &want.v}};
  for (int n = 0; n < 3; ++n) {
    const std::vector<double> got = values(*all[n].first);
    ASSERT_EQ(got.size(), all[n].second->size());
    double most = 1;
    for (double x : *all[n].second) most = std::max(most, std::fabs(x));
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], (*all[n].second)[i], eps * most * times) << what << " d"
                                                                   << "qkv"[n] << " at " << i;
  }
}

TEST(Flex, GradientsMatchTheModel) {
  CLUTCH_EACH_DEVICE(device) {
    if (known_bug(device, "loops_end_early")) continue;  // and so takes less than this
    const FlexCase::Shape shape{.batch = 2, .heads = 4, .q_len = 131, .kv_len = 131, .e = 24, .ev = 40};
    const Given given(shape, device);
    for (const Mod& mod : mods(device, 4, 131))
      for (const std::string& implementation : implementations(device, detail::FlexPart::backward)) {
        if (!worth(implementation, mod)) continue;
        // Masks alone have no derivative of their own; by day a mod of scores alone stands for the others.
        const std::string_view name = mod.name;
        if (level() == "smoke" && mod.score.empty() && name != "none" && name != "causal") continue;
        if (level() == "smoke" && (name == "alibi" || name == "softcap")) continue;
        FlexOptions o{.score_mod = mod.score, .implementation = implementation};
        const std::string what = fmt::format("{} {}", implementation, mod.name);
        if (!mod.mask.empty()) o.block_mask = attention::create_block_mask(mod.mask, {.q_len = 131, .kv_len = 131, .block = {32, 48}, .device = device});
        expect_gradients(given, o, mod.host_score, mod.host_mask, what,
                         what.find("relative") != std::string::npos || what.find("alibi") != std::string::npos ? 4 : 1);
        if (level() == "smoke" || mod.mask.empty()) continue;
        o.block_mask = {}, o.mask_mod = mod.mask;
        expect_gradients(given, o, mod.host_score, mod.host_mask, what + " by its mask");
      }
    // Heads and batches that share keys, other strides, sizes and dtypes.
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      if (level() == "smoke" && (dtype == DType::f64 || dtype == DType::f16)) continue;
      if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
      Given grouped({.batch = 3, .heads = 6, .q_len = 70, .kv_len = 90, .e = 21, .ev = 12, .kv_batch = 1, .kv_heads = 2}, device, dtype);
      grouped.q = grouped.q.transpose(1, 2).contiguous().transpose(1, 2), grouped.k = grouped.k.mT().contiguous().mT();
      const int batch = dtype == DType::f32 ? 3 : 1;  // a mask of one batch is everybody's
      const auto mask = [=](auto b, auto h, auto q, auto kv) { return q + 20 + b * (batch / 3) >= kv - h; };
      FlexOptions o{
          .block_mask = attention::create_block_mask(mask, {.batch = batch, .heads = 6, .q_len = 70, .kv_len = 90, .block = {33, 20}, .device = device}),
          .enable_gqa = true};
      expect_gradients(grouped, o, {}, mask, fmt::format("grouped {}", name(dtype)), 2);
    }
    for (std::int64_t q_len : {1, 127, 128, 129, 300})
      for (std::int64_t kv_len : {1, 128, 129, 410}) {
        if (level() == "smoke" && (q_len + kv_len) % 3 == 0) continue;
        const Given sized({.batch = 1, .heads = 1, .q_len = q_len, .kv_len = kv_len, .e = 8 + q_len % 60, .ev = 16}, device);
        expect_gradients(sized, {}, {}, {}, fmt::format("{} x {}", q_len, kv_len));
      }
    for (std::int64_t e : {80, 200, 260, 700, 1100}) {
      if (level() == "smoke" && e != 80) continue;
      const Given sized({.batch = 1, .heads = 1, .q_len = 33, .kv_len = 50, .e = e, .ev = e - 30}, device);
      expect_gradients(sized, {}, {}, {}, fmt::format("{} elements", e), 2);
    }
    const Given none({.batch = 1, .heads = 1, .q_len = 3, .kv_len = 0, .e = 4, .ev = 4}, device);
    expect_gradients(none, {}, {}, {}, "no keys");
  }
}

/// Random score mods of a seed, on the device and on the host.
TEST(Flex, RandomModsMatchTheModel) {
  CLUTCH_EACH_DEVICE(device) {
    const Given given({.batch = 2, .heads = 3, .q_len = 37, .kv_len = 61, .e = 8, .ev = 8}, device);
    std::vector<float> table;
    for (int i = 0; i < 97; ++i) table.push_back(static_cast<float>(std::sin(i * 1.7)));
    const Captured captured_table = captured(from_host(table, {97}, device));
    const int count = level() == "smoke" ? 5 : level() == "full" ? 40 : 300;
    for (int turn = 0; turn < count; ++turn) {
      const std::uint64_t of = seed() * 7919 + static_cast<std::uint64_t>(turn);
      auto number = [](auto& self, model::Random& random, const auto& s, const auto& b, const auto& h, const auto& q, const auto& kv, const auto& read,
                       int depth) {
        using N = std::decay_t<decltype(s)>;
        using std::tanh;
        const auto kind = static_cast<int>(random.uniform(0, depth > 0 ? 9 : 3));
        if (kind == 0) return N(s * random.uniform(-2, 2));
        if (kind == 1) return N(s + N(h - b));
        if (kind == 2) {
          const int a = static_cast<int>(random.uniform(-2, 3)), c = static_cast<int>(random.uniform(-2, 3));
          return N(read(q * a + kv * c + h + static_cast<int>(random.uniform(0, 60))));
        }
        const N x = self(self, random, s, b, h, q, kv, read, depth - 1);
        if (kind == 3) return N(tanh(x));
        const N y = self(self, random, s, b, h, q, kv, read, depth - 1);
        if (kind < 6) return N(x + y);
        if (kind == 6) return N(x - y);
        if (kind == 7) return N(x * tanh(y));
        return N(x + tanh(y) * s);
      };
      auto traced = [&](Score s, Index b, Index h, Index q, Index kv) {
        model::Random random(of);
        auto read = [&](const Expr& at) { return captured_table[at]; };
        return number(number, random, s, b, h, q, kv, read, 3);
      };
      auto host = [&](double s, std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t kv) {
        model::Random random(of);
        auto read = [&](double at) { return static_cast<double>(table[static_cast<std::size_t>(std::clamp(at, 0.0, 96.0))]); };
        return number(number, random, s, static_cast<double>(b), static_cast<double>(h), static_cast<double>(q), static_cast<double>(kv), read, 3);
      };
      ScoreMod mod(traced);
      FlexCase::Result want = given.model(host);
      want.largest = want.largest * 4 + 16;  // steps in between may be larger than the score
      expect_close(flex(given.q, given.k, given.v, {.score_mod = mod, .return_lse = true}), want, mod.function(DType::f32).text());
      if (turn % 2 == 0 && !known_bug(device, "loops_end_early")) expect_gradients(given, {.score_mod = mod}, host, {}, mod.function(DType::f32).text(), 16);
    }
  }
}

TEST(Flex, TheSameBitsAgainAndInABatch) {
  CLUTCH_EACH_DEVICE(device) {
    if (known_bug(device, "loops_end_early")) continue;  // and so takes less than this
    const Given given({.batch = 3, .heads = 4, .q_len = 190, .kv_len = 333, .e = 32, .ev = 32}, device);
    FlexOptions o{.score_mod = attention::softcap(5),
                  .block_mask = attention::create_block_mask(attention::causal(143), {.q_len = 190, .kv_len = 333, .device = device}),
                  .return_lse = true};
    const FlexResult first = flex(given.q, given.k, given.v, o);
    for (int turn = 0; turn < 10; ++turn) {
      const FlexResult again = flex(given.q, given.k, given.v, o);
      ASSERT_EQ(again.out.to_bytes(), first.out.to_bytes());
      ASSERT_EQ(again.lse.to_bytes(), first.lse.to_bytes());
    }
    const attention::FlexGradients gradients = attention::flex_backward(given.v.slice(2, 0, 190), given.q, given.k, given.v, first, o);
    for (int turn = 0; turn < 3; ++turn) {
      const attention::FlexGradients again = attention::flex_backward(given.v.slice(2, 0, 190), given.q, given.k, given.v, first, o);
      ASSERT_EQ(again.q.to_bytes(), gradients.q.to_bytes());
      ASSERT_EQ(again.k.to_bytes(), gradients.k.to_bytes());
      ASSERT_EQ(again.v.to_bytes(), gradients.v.to_bytes());
    }
    for (std::int64_t b = 0; b < 3; ++b)
      for (std::int64_t h = 0; h < 4; h += 3) {
        auto part = [&](const Tensor& t) { return t.slice(0, b, b + 1).slice(1, h, h + 1); };
        EXPECT_EQ(flex(part(given.q), part(given.k), part(given.v), o).out.to_bytes(), part(first.out).contiguous().to_bytes());
      }
    // Queries alone, too, where their block of the mask is the same.
    const FlexResult plain = flex(given.q, given.k, given.v);
    EXPECT_EQ(flex(given.q.slice(2, 100, 117), given.k, given.v).out.to_bytes(), plain.out.slice(2, 100, 117).contiguous().to_bytes());
  }
}

TEST(Flex, CapturedGraphsReadTheirTensorsAgain) {
  CLUTCH_EACH_DEVICE(device) {
    const Given given({.batch = 1, .heads = 2, .q_len = 40, .kv_len = 50, .e = 16, .ev = 16}, device),
        other({.batch = 1, .heads = 2, .q_len = 40, .kv_len = 50, .e = 16, .ev = 16}, device, DType::f32, 9);
    const Tensor slopes = from_host<float>({0.5f, 0.25f}, device), ids = zeros({50}, {.dtype = DType::i32, .device = device});
    Stream stream(device);
    StreamGuard guard(stream);
    Graph graph;
    FlexResult made{.out = empty(given.shape.out(), {.device = device}), .lse = empty({1, 2, 40}, {.device = device})};
    auto run = [&](const FlexResult& to) {
      FlexOptions o{.score_mod = attention::alibi(slopes),
                    .block_mask = attention::create_block_mask(attention::document(ids), {.q_len = 40, .kv_len = 50, .block = {16, 16}, .device = device})};
      attention::flex_out(to, given.q, given.k, given.v, o);
    };
    run(made);
    {
      GraphCapture capture(graph, stream);
      run(made);
    }
    for (int turn = 0; turn < 3; ++turn) {
      copy_(given.q, other.q), copy_(given.v, turn == 1 ? other.k : other.v), mul_(slopes, -1.5);
      copy_(ids, map([&](Expr i) { return floor_div(i, 7 + turn); }, arange(0, 50, 1, {.dtype = DType::i32, .device = device})));
      graph.replay(stream);
      FlexResult eager{.out = empty(given.shape.out(), {.device = device}), .lse = empty({1, 2, 40}, {.device = device})};
      run(eager);
      EXPECT_EQ(made.out.to_bytes(), eager.out.to_bytes());
      EXPECT_EQ(made.lse.to_bytes(), eager.lse.to_bytes());
    }
  }
}

TEST(Flex, MemoryGrowsWithTheLengthAlone) {
  CLUTCH_EACH_DEVICE(device) {
    if (known_bug(device, "loops_end_early") || device.traits().simulator) continue;
    for (std::int64_t length : {1024, 4096}) {
      const Given given({.batch = 1, .heads = 2, .q_len = length, .kv_len = length, .e = 32, .ev = 32}, device);
      FlexOptions o{.score_mod = attention::softcap(5), .mask_mod = attention::sliding_window(100), .return_lse = true};
      // Bytes at the highest beyond what was there before.
      auto more = [&](auto&& f) {
        f();
        current_stream(device).synchronize();
        reset_peak_memory_stats(device);
        const std::uint64_t before = memory_allocated(device);
        f();
        current_stream(device).synchronize();
        return memory_stats(device).at("allocated_bytes.all.peak") - before;
      };
      const auto size = static_cast<std::uint64_t>(2 * length * 32 * 4), some = static_cast<std::uint64_t>(2 * length * 4) + 65536;
      EXPECT_LE(more([&] { flex(given.q, given.k, given.v, o); }), size + some) << length;
      const FlexResult made = flex(given.q, given.k, given.v, o);
      const auto parts = 2 * static_cast<std::uint64_t>(device.traits().compute_units);  // of two heads
      EXPECT_LE(more([&] { attention::flex_backward(given.q, given.q, given.k, given.v, made, o); }), (3 + std::max<std::uint64_t>(parts, 1)) * size + some)
          << length;
      // A query's parts: its result and two numbers for each 512 keys.
      const Tensor one = given.q.slice(2, 0, 1);
      EXPECT_LE(more([&] { flex(one, given.k, given.v, {}); }), static_cast<std::uint64_t>(length / 512 * 2 * (32 + 2) * 4) + 65536) << length;
    }
  }
}

TEST(Flex, OtherLengthsAndNumbersBuildNothing) {
  CLUTCH_EACH_DEVICE(device) {
    if (known_bug(device, "loops_end_early")) continue;  // and so takes less than this
    auto run = [&](std::int64_t length, std::int64_t e, std::int64_t window, double cap, bool grouped) {
      const Given given({.batch = 1, .heads = 4, .q_len = length, .kv_len = length, .e = e, .ev = e, .kv_heads = grouped ? 2 : 4}, device);
      flex(given.q, given.k, given.v,
           {.score_mod = attention::softcap(cap),
            .block_mask = attention::create_block_mask(attention::sliding_window(window), {.q_len = length, .kv_len = length, .device = device}),
            .enable_gqa = true});
    };
    run(100, 33, 5, 2, false), run(2, 33, 5, 2, false);  // elements of values that are no whole vectors, and so copied; many queries and few
    const BuildCounters before = build_counters();
    run(9, 7, 1, 30, true), run(333, 50, 100, 1, false), run(129, 63, 1, 1, true), run(1, 7, 1, 30, true), run(8, 60, 3, 1, false);
    EXPECT_EQ(build_counters().built + build_counters().loaded, before.built + before.loaded);
  }
}

TEST(Flex, RefusesBadInput) {
  CLUTCH_EACH_DEVICE(device) {
    const Given given({.batch = 2, .heads = 4, .q_len = 8, .kv_len = 9, .e = 4, .ev = 5}, device);
    auto with = [&](const Tensor& q, const Tensor& k, const Tensor& v, const FlexOptions& o = {}) { return code_of([&] { flex(q, k, v, o); }); };
    EXPECT_EQ(with(given.q, given.k, given.v), ErrorCode::ok);
    EXPECT_EQ(with(given.q.select(0, 0), given.k, given.v), ErrorCode::invalid_shape);
    EXPECT_EQ(with(given.q, given.k.slice(3, 0, 3), given.v), ErrorCode::invalid_shape);
    EXPECT_EQ(with(given.q, given.k, given.v.slice(2, 0, 8)), ErrorCode::invalid_shape);
    EXPECT_EQ(with(given.q.slice(0, 0, 1), given.k, given.v), ErrorCode::invalid_shape);
    EXPECT_EQ(with(given.q, given.k.to(DType::f16), given.v), ErrorCode::invalid_dtype);
    EXPECT_EQ(with(given.q.to(DType::i32), given.k, given.v), ErrorCode::invalid_dtype);
    EXPECT_EQ(with(given.q, given.k.slice(1, 0, 2), given.v.slice(1, 0, 2)), ErrorCode::invalid_argument);
    EXPECT_EQ(with(given.q, given.k.slice(1, 0, 3), given.v.slice(1, 0, 3), {.enable_gqa = true}), ErrorCode::invalid_argument);
    EXPECT_EQ(with(given.q, given.k, given.v, {.implementation = "flex_best"}), ErrorCode::invalid_argument);
    EXPECT_EQ(with(Tensor(), given.k, given.v), ErrorCode::invalid_argument);
    // A mask of other lengths, shorter or longer, or of other heads.
    for (std::int64_t more : {-1, 1})
      EXPECT_EQ(with(given.q, given.k, given.v,
                     {.block_mask = attention::create_block_mask(attention::causal(), {.q_len = 8 + more, .kv_len = 9, .device = device})}),
                ErrorCode::invalid_argument);
    EXPECT_EQ(with(given.q, given.k, given.v,
                   {.block_mask = attention::create_block_mask(attention::causal(), {.heads = 3, .q_len = 8, .kv_len = 9, .device = device})}),
              ErrorCode::invalid_argument);
    auto into = [&](const FlexResult& r) { return code_of([&] { attention::flex_out(r, given.q, given.k, given.v); }); };
    EXPECT_EQ(into({.out = empty({2, 4, 8, 4}, {.device = device})}), ErrorCode::invalid_shape);
    EXPECT_EQ(into({.out = empty({2, 4, 8, 5}, {.dtype = DType::f16, .device = device})}), ErrorCode::invalid_dtype);
    EXPECT_EQ(into({.out = empty({2, 4, 8, 5}, {.device = device}), .lse = empty({2, 4, 9}, {.device = device})}), ErrorCode::invalid_shape);
    EXPECT_EQ(into({.out = given.v.slice(2, 0, 8)}), ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([] { ScoreMod([](Score s, Index, Index, Index, Index) { return s > 0; }); }), ErrorCode::invalid_dtype);
    for (double cap : {0.0, 1e-50, 1e-40, 1e39, -1.0})  // f32 kernels multiply by the cap and by its inverse
      EXPECT_EQ(code_of([&] { attention::softcap(cap); }), ErrorCode::invalid_argument) << cap;
  }
}

TEST(Flex, SelectionByTraitsAlone) {
  DeviceTraits cpu = wide_cpu();
  detail::FlexProblem problem;
  EXPECT_EQ(detail::select(cpu, problem).entry, "flex_lanes");
  EXPECT_EQ(detail::select(cpu, problem).tuning.width, 16);
  problem.size_class = 5;
  EXPECT_EQ(detail::select(cpu, problem).entry, "flex_items");
  problem = {.dtype = DType::f64};
  EXPECT_EQ(detail::select(cpu, problem).tuning.width, 8);
  cpu.fp64 = false;
  EXPECT_EQ(code_of([&] { detail::select(cpu, problem); }), ErrorCode::not_supported);
  cpu.type = DeviceType::gpu;
  EXPECT_EQ(detail::select(cpu, {}).entry, "flex_items");
  // What an item of the gradients' lanes holds is a core's cache, which no item of a group has.
  for (detail::FlexPart part : {detail::FlexPart::sums, detail::FlexPart::backward})
    EXPECT_EQ(code_of([&] { detail::select(cpu, {.part = part}, "flex_lanes"); }), ErrorCode::not_supported);
  // Nor do compilers give an item of a group more than 128 KiB: 193 KB of f64, 264 KB of long rows, less of keys that are read in place.
  cpu.fp64 = true;
  auto takes = [&](const detail::FlexProblem& p, std::string_view entry) { return code_of([&] { detail::select(cpu, p, entry); }) == ErrorCode::ok; };
  EXPECT_TRUE(takes({}, "flex_lanes"));
  EXPECT_FALSE(takes({.dtype = DType::f64}, "flex_lanes"));
  EXPECT_TRUE(takes({.dtype = DType::f64, .direct = true}, "flex_lanes"));
  EXPECT_FALSE(takes({.size_class = 4}, "flex_lanes"));
  EXPECT_TRUE(takes({.dtype = DType::f64}, "flex_split"));
  EXPECT_FALSE(takes({.dtype = DType::f64, .size_class = 4}, "flex_split"));
  EXPECT_TRUE(takes({.dtype = DType::bf16, .size_class = 4, .direct = true}, "flex_split"));
  try {
    detail::select(cpu, {.dtype = DType::f64}, "flex_lanes");
  } catch (const Error& e) {
    EXPECT_NE(std::string_view(e.what()).find("at most 127 KiB of private memory, got some 189 KiB"), std::string_view::npos) << e.what();
  }
  cpu.simulator = true;
  EXPECT_TRUE(takes({.dtype = DType::f64}, "flex_lanes"));
}

}}  // namespace clutch::testing
