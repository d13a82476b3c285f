// SPDX-License-Identifier: Apache-2.0
#include "ops/flex/given.hpp"

#include <clutch/graph.hpp>

namespace clutch::testing { namespace {

using attention::PagedCache;

/// Keys and values of sequences, and a cache that holds them in pages which were taken in a mixed order.
struct Filled {
  std::vector<std::int32_t> lengths;
  Tensor k, v, used, sequences;
  PagedCache cache;
  Filled(const Device& device, std::int64_t page_size, std::int64_t e = 16, DType dtype = DType::f32, std::int32_t times = 1)
      : lengths{70 * times, 5 * times, 130 * times},
        k(randn({3, 2, lengths[2], e}, {.dtype = dtype, .device = device, .seed = seed()})),
        v(randn({3, 2, lengths[2], e}, {.dtype = dtype, .device = device, .seed = seed() + 1})),
        used(from_host(lengths, {3}, device)),
        sequences(from_host<std::int32_t>({0, 1, 2}, device)),
        cache({.pages = 3 * ((lengths[2] + page_size - 1) / page_size) + 2,
               .page_size = page_size,
               .max_batch = 4,
               .heads = 2,
               .key_size = e,
               .dtype = dtype,
               .device = device}) {
    cache.reserve(3, 2 * page_size);
    for (int part : {1, 2})
      for (std::int64_t b : {2, 0, 1}) cache.reserve(b, lengths[static_cast<std::size_t>(b)] * part / 2);
    cache.erase(3);
    const Tensor positions = arange(0, lengths[2], 1, {.dtype = DType::i32, .device = device}).unsqueeze(0).expand({3, lengths[2]});
    cache.assign(sequences, positions, k, v);
  }
};

TEST(PagedCache, BooksPagesOnTheHost) {
  CLUTCH_EACH_DEVICE(device) {
    PagedCache cache({.pages = 5, .page_size = 8, .max_batch = 3, .max_pages = 4, .heads = 1, .key_size = 4, .device = device});
    auto row = [&](std::int64_t b) { return cache.page_table().select(0, b).to_host<std::int32_t>(); };
    auto inverse = [&](std::int64_t b) { return cache.physical_to_logical().select(0, b).to_host<std::int32_t>(); };
    using Row = std::vector<std::int32_t>;
    EXPECT_EQ(cache.free_pages(), 5);
    cache.reserve(0, 9), cache.reserve(1, 1), cache.reserve(0, 16), cache.reserve(0, 3);
    EXPECT_EQ(row(0), (Row{0, 1, -1, -1}));
    EXPECT_EQ(row(1), (Row{2, -1, -1, -1}));
    EXPECT_EQ(inverse(1), (Row{-1, -1, 0, -1, -1}));
    EXPECT_EQ(cache.capacity(0), 16);
    // Too many: nothing is lost.
    EXPECT_EQ(code_of([&] { cache.reserve(2, 17); }), ErrorCode::out_of_memory);
    EXPECT_EQ(cache.free_pages(), 2);
    EXPECT_EQ(cache.capacity(2), 0);
    EXPECT_EQ(row(2), (Row{-1, -1, -1, -1}));
    EXPECT_EQ(code_of([&] { cache.reserve(0, 33); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { cache.reserve(3, 1); }), ErrorCode::invalid_argument);
    for (std::int64_t length : {INT64_MAX, INT64_MAX - 6, INT64_MAX - 7, std::int64_t{1} << 62})
      EXPECT_EQ(code_of([&] { cache.reserve(0, length); }), ErrorCode::invalid_argument) << length;
    EXPECT_EQ(cache.capacity(0), 16) << "nothing has changed";
    cache.erase(0), cache.erase(0);
    EXPECT_EQ(cache.free_pages(), 4);
    EXPECT_EQ(row(0), (Row{-1, -1, -1, -1}));
    cache.reserve(2, 17);
    EXPECT_EQ(row(2), (Row{0, 1, 3, -1}));
    EXPECT_EQ(inverse(2), (Row{0, 1, -1, 2, -1}));
    EXPECT_EQ(code_of([] { PagedCache().free_pages(); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { PagedCache({.pages = 0, .key_size = 4, .device = device}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { PagedCache({.pages = 1, .key_size = 4, .dtype = DType::i32, .device = device}); }), ErrorCode::invalid_dtype);
  }
}

/// Pages of 512 keys, the most of a part of flex_split; for more than 8 queries pages of a multiple of 128.
TEST(PagedCache, PagesChangeNoBits) {
  struct Given {
    std::int64_t q_len, page_size;
    std::int32_t times;
  };
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::f32, DType::bf16})
      for (auto [q_len, page_size, times] : {Given{1, 512, 1}, {1, 512, 10}, {8, 512, 10}, {20, 128, 1}, {20, 128, 10}, {20, 384, 10}}) {
        const Filled f(device, page_size, 16, dtype, times);
        const Tensor q = randn({3, 4, q_len, 16}, {.dtype = dtype, .device = device, .seed = 3});
        FlexOptions o{.enable_gqa = true, .return_lse = true, .varlen = {.seqused_kv = f.used}};
        const FlexResult want = flex(q, f.k, f.v, o);
        o.varlen = f.cache.varlen(f.used, f.sequences);
        const FlexResult got = flex(q, f.cache.keys(), f.cache.values(), o);
        EXPECT_EQ(got.out.to_bytes(), want.out.to_bytes()) << name(dtype) << " " << q_len << " " << page_size << " " << times;
        EXPECT_EQ(got.lse.to_bytes(), want.lse.to_bytes());
        if (times > 1) continue;
        // What the model says, of each sequence.
        for (std::size_t b = 0; b < 3; ++b) {
          const auto at = static_cast<std::int64_t>(b), n = static_cast<std::int64_t>(f.lengths[b]);
          auto host = [&](const Tensor& t, std::int64_t rows) { return values(t.slice(0, at, at + 1).slice(2, 0, rows).contiguous()); };
          const std::int64_t rows = q_len;  // clang 14 cannot capture a structured binding
          const FlexCase::Shape shape{.batch = 1, .heads = 4, .q_len = rows, .kv_len = n, .e = 16, .ev = 16, .kv_heads = 2};
          expect_close({.out = got.out.slice(0, at, at + 1).contiguous()}, FlexCase::model(shape, host(q, rows), host(f.k, n), host(f.v, n), 0.25), "paged");
        }
      }
  }
}

TEST(PagedCache, MasksAndModsSeeLogicalKeys) {
  CLUTCH_EACH_DEVICE(device) {
    const Filled f(device, 16);
    const std::int64_t kv_len = f.cache.options().max_pages * 16;
    // Some of the sequences, in another order.
    const Tensor picked = from_host<std::int32_t>({2, 0}, device), used = from_host<std::int32_t>({130, 70}, device);
    const Tensor q = randn({2, 2, 3, 16}, {.device = device, .seed = 4});
    const MaskMod near = [](Index, Index, Index i, Index j) { return trunc_mod(i + j, 3) != 0; };
    const ScoreMod later = [](Score s, Index, Index, Index, Index kv) { return s + kv * 0.01f; };
    const attention::BlockMask logical = attention::create_block_mask(near, {.q_len = 3, .kv_len = kv_len, .block = {128, 16}, .device = device});
    const FlexCase::HostScore host_score = [](double s, auto, auto, auto, auto kv) { return s + static_cast<double>(static_cast<float>(kv) * 0.01f); };
    for (std::string implementation : {"", "flex_items"})
      for (bool physical : {false, true}) {
        FlexOptions o{.score_mod = later, .block_mask = logical, .varlen = f.cache.varlen(used, picked), .implementation = implementation};
        if (physical) {
          // By what knows no pages: the masks leave out what a sequence has not used, since lengths are of logical keys.
          const Captured lengths = captured(used);
          const MaskMod within = [&](Index b, Index, Index, Index kv) { return kv < lengths[b]; };
          const attention::BlockMask both =
              attention::create_block_mask(near & within, {.batch = 2, .q_len = 3, .kv_len = kv_len, .block = {128, 16}, .device = device});
          o = {.score_mod = f.cache.physical(later, picked), .block_mask = f.cache.physical(both, picked), .implementation = implementation};
        }
        const FlexResult got = flex(q, f.cache.keys(), f.cache.values(), o);
        for (std::int64_t b : {0, 1}) {
          const std::int64_t sequence = b == 0 ? 2 : 0, n = b == 0 ? 130 : 70;
          auto host = [&](const Tensor& t) { return values(t.slice(0, sequence, sequence + 1).slice(2, 0, n).contiguous()); };
          const FlexCase::Shape shape{.batch = 1, .heads = 2, .q_len = 3, .kv_len = n, .e = 16, .ev = 16};
          const FlexCase::Result want = FlexCase::model(shape, values(q.slice(0, b, b + 1).contiguous()), host(f.k), host(f.v), 0.25, host_score,
                                                        [](auto, auto, auto i, auto j) { return (i + j) % 3 != 0; });
          expect_close({.out = got.out.slice(0, b, b + 1).contiguous()}, want, fmt::format("{} physical {}", implementation, physical));
        }
      }
    EXPECT_EQ(code_of([&] {
                flex(q, f.cache.keys(), f.cache.values(),
                     {.block_mask = attention::create_block_mask(near, {.q_len = 3, .kv_len = kv_len, .block = {16, 48}, .device = device}),
                      .varlen = f.cache.varlen(used, picked)});
              }),
              ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] {
                attention::flex_backward(q, q, f.cache.keys(), f.cache.values(), {.out = q, .lse = zeros({2, 2, 3}, {.device = device})},
                                         {.varlen = f.cache.varlen(used, picked)});
              }),
              ErrorCode::not_supported);
    // Tables whose pages hold more keys than 64 bits count.
    const Tensor endless = zeros({1, 1}, {.dtype = DType::i32, .device = device}).expand({1, std::int64_t{1} << 34}),
                 one = zeros({1, 1, 1, 16}, {.device = device});
    for (const std::int64_t page : {std::int64_t{1}, std::int64_t{1} << 30})
      EXPECT_EQ(code_of([&] { flex(one, one, one, {.varlen = {.page_table = endless, .page_size = page}}); }), ErrorCode::invalid_shape) << page;
  }
}

TEST(PagedCache, OneGraphDecodesOnAndOn) {
  CLUTCH_EACH_DEVICE(device) {
    PagedCache cache({.pages = 6, .page_size = 4, .max_batch = 2, .heads = 2, .key_size = 16, .device = device});
    const Stream stream = current_stream(device);
    const Tensor q = zeros({2, 2, 1, 16}, {.device = device}), k = zeros({2, 2, 1, 16}, {.device = device}), v = zeros({2, 2, 1, 16}, {.device = device});
    const Tensor at = zeros({2, 1}, {.dtype = DType::i32, .device = device}), used = zeros({2}, {.dtype = DType::i32, .device = device});
    const Tensor sequences = from_host<std::int32_t>({0, 1}, device);
    FlexResult out{.out = empty({2, 2, 1, 16}, {.device = device})};
    auto step = [&] {
      cache.assign(sequences, at, k, v, stream);
      attention::flex_out(out, q, cache.keys(), cache.values(), {.varlen = cache.varlen(used)}, stream);
    };
    step();
    Graph graph;
    graph.capture_begin(stream), step(), graph.capture_end();
    std::vector<double> all_k[2], all_v[2];
    for (std::int32_t n = 0; n < 9; ++n) {
      // The second sequence starts three steps later.
      const std::int32_t second = std::max(n - 3, 0);
      cache.reserve(0, n + 1), cache.reserve(1, second + 1);
      copy_(at, from_host<std::int32_t>({n, second}, device).unsqueeze(1)), copy_(used, from_host<std::int32_t>({n + 1, second + 1}, device));
      for (const Tensor* t : {&q, &k, &v}) normal_(*t, {.seed = static_cast<std::uint64_t>(3 * n + (t - &q))});
      graph.replay();
      const std::vector<double> got = values(out.out), hq = values(q), hk = values(k), hv = values(v);
      for (std::size_t b : {0u, 1u}) {
        if (b == 1 && n < 4) all_k[1].clear(), all_v[1].clear();
        all_k[b].insert(all_k[b].end(), hk.begin() + static_cast<std::ptrdiff_t>(32 * b), hk.begin() + static_cast<std::ptrdiff_t>(32 * b + 32));
        all_v[b].insert(all_v[b].end(), hv.begin() + static_cast<std::ptrdiff_t>(32 * b), hv.begin() + static_cast<std::ptrdiff_t>(32 * b + 32));
        const auto length = static_cast<std::int64_t>(all_k[b].size() / 32);
        ASSERT_EQ(length, b == 0 ? n + 1 : second + 1);
        // The model's keys lie by heads.
        auto transposed = [&](const std::vector<double>& x) {
          std::vector<double> y(x.size());
          for (std::size_t i = 0; i < x.size(); ++i) y[i / 16 % 2 * x.size() / 2 + i / 32 * 16 + i % 16] = x[i];
          return y;
        };
        const FlexCase::Result want = FlexCase::model({.batch = 1, .heads = 2, .q_len = 1, .kv_len = length, .e = 16, .ev = 16},
                                                      {hq.begin() + static_cast<std::ptrdiff_t>(32 * b), hq.begin() + static_cast<std::ptrdiff_t>(32 * b + 32)},
                                                      transposed(all_k[b]), transposed(all_v[b]), 0.25);
        for (std::size_t i = 0; i < 32; ++i) ASSERT_NEAR(got[32 * b + i], want.out[i], 2e-6) << n << " " << b << " " << i;
      }
    }
  }
}

TEST(PagedCache, AssignLeavesOutWhatHasNoPage) {
  CLUTCH_EACH_DEVICE(device) {
    PagedCache cache({.pages = 4, .page_size = 4, .max_batch = 2, .heads = 1, .key_size = 3, .value_size = 2, .dtype = DType::f16, .device = device});
    cache.reserve(1, 6);
    const Tensor k = randn({1, 1, 5, 3}, {.dtype = DType::f16, .device = device, .seed = 1}),
                 v = randn({1, 1, 5, 2}, {.dtype = DType::f16, .device = device, .seed = 2});
    for (std::int32_t sequence : {-1, 0, 2})
      cache.assign(from_host<std::int32_t>({sequence}, device), from_host<std::int32_t>({0, 1, 2, 3, 4}, device).unsqueeze(0), k, v);
    for (double x : values(cache.keys())) EXPECT_EQ(x, 0);
    cache.assign(from_host<std::int32_t>({1}, device), from_host<std::int32_t>({-1, 7, 8, 16, 1 << 30}, device).unsqueeze(0), k, v);
    const std::vector<double> got = values(cache.keys()), from = values(k), got_v = values(cache.values()), from_v = values(v);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], i / 3 == 7 ? from[3 + i % 3] : 0) << i;
    for (std::size_t i = 0; i < got_v.size(); ++i) EXPECT_EQ(got_v[i], i / 2 == 7 ? from_v[2 + i % 2] : 0) << i;
    const Tensor one = from_host<std::int32_t>({1}, device), at = from_host<std::int32_t>({0, 1, 2, 3, 4}, device).unsqueeze(0);
    EXPECT_EQ(code_of([&] { cache.assign(one, at, k.to(DType::f32), v); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { cache.assign(one, at, k, k); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { cache.assign(one, at.slice(1, 0, 4), k, v); }), ErrorCode::invalid_shape);
  }
}

}}  // namespace clutch::testing
