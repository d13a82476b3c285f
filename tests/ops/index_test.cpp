// SPDX-License-Identifier: Apache-2.0
#include "cases/index.hpp"

#include "ops/index_plan.hpp"
#include "runtime/settings.hpp"
#include "support/op_runner.hpp"

#include <numeric>

namespace clutch::testing { namespace {

using cases::IndexCase;
using Indices = IndexCase::Indices;
using Raw = IndexCase::Raw;

const Indices kWhole{{}, {}, true};

std::vector<Tensor> upload(const std::vector<Indices>& indices, DType dtype, const Device& device) {
  std::vector<Tensor> made;
  for (const Indices& i : indices) {
    const cases::Operand o = IndexCase::operand(i, dtype);
    made.push_back(i.whole ? Tensor() : from_bytes(o.raw.data(), o.raw.size(), o.sizes, {.dtype = dtype, .device = device}));
  }
  return made;
}

/// Kinds of lists of indices into (4, 5, 3, 6).
std::vector<std::vector<Indices>> lists(bool wild) {
  auto some = [&](const Dims& sizes, std::int64_t n) { return IndexCase::some(sizes, n, seed() + static_cast<std::uint64_t>(n), wild); };
  return {{some({7}, 4)},
          {some({2, 3}, 4)},
          {kWhole, some({7}, 5)},
          {kWhole, kWhole, kWhole, some({7}, 6)},
          {some({7}, 4), some({7}, 5)},
          {some({7, 1}, 4), some({2}, 5)},
          {kWhole, some({2, 1}, 5), some({3}, 3)},
          {some({7}, 4), kWhole, some({7}, 3)},
          {some({2, 1}, 4), kWhole, kWhole, some({3}, 6)},
          {kWhole, some({3}, 5), kWhole, some({1}, 6)},
          {some({9}, 4), some({9}, 5), some({9}, 3), some({9}, 6)},
          {some({}, 4)},
          {kWhole, some({}, 5), kWhole, some({2}, 6)},
          {some({0}, 4)},
          {some({1}, 4), some({0, 1}, 5)}};
}

TEST(Index, TakesWhatALoopTakes) {
  CLUTCH_EACH_DEVICE(device) {
    const Dims sizes{4, 5, 3, 6};
    for (DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i8, DType::i64}) {
      const Raw raw = model::make_values(360, dtype, seed());
      Guarded x(device, dtype, sizes, {1, 4, 23, 75}), y(device, dtype, sizes);
      x.set(raw), y.set(raw);
      for (const std::vector<Indices>& indices : lists(true)) {
        const IndexCase::Mapped want = IndexCase::model(sizes, indices);
        for (DType of : {DType::i64, DType::i32})
          for (const Tensor& view : {x.view(), y.view()}) {
            const Tensor got = index(view, upload(indices, of, device));
            ASSERT_EQ(got.sizes(), want.sizes);
            // Where a single index is out of range integers are all 0.
            const Raw bytes = got.to_bytes(), expected = IndexCase::taken(raw, dtype, want);
            ASSERT_EQ(bytes == expected ? "" : compare_bits(bytes, expected, dtype, false), "") << to_string(got.sizes());
          }
      }
    }
  }
}

TEST(Index, StoresWhatALoopStores) {
  CLUTCH_EACH_DEVICE(device) {
    const Dims sizes{4, 5, 3, 6};
    for (DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i8, DType::i32, DType::u16}) {
      if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
      for (const std::vector<Indices>& indices : lists(true)) {
        const IndexCase::Mapped mapped = IndexCase::model(sizes, indices);
        Raw raw(360 * static_cast<std::size_t>(bits(dtype)) / 8), values(mapped.from.size() * static_cast<std::size_t>(bits(dtype)) / 8);
        model::Random random(seed());
        // Small integers, so that sums are those of any dtype.
        for (std::size_t i = 0; i < 360; ++i) model::store_at(raw.data(), i, dtype, static_cast<double>(random.next() % 9) - 4);
        for (std::size_t i = 0; i < mapped.from.size(); ++i) model::store_at(values.data(), i, dtype, static_cast<double>(random.next() % 9) - 4);
        const Tensor v = from_bytes(values.data(), values.size(), mapped.sizes, {.dtype = dtype, .device = device});
        for (bool accumulate : {false, true}) {
          const Raw want = IndexCase::stored(raw, dtype, mapped, values, accumulate);
          Guarded x(device, dtype, sizes, {1, 4, 23, 75}), y(device, dtype, sizes);
          for (Guarded* guarded : {&x, &y}) {
            guarded->set(raw);
            const Tensor made = index_put(guarded->view(), upload(indices, DType::i32, device), v, {.accumulate = accumulate});
            ASSERT_EQ(made.to_bytes(), want) << name(dtype) << accumulate << to_string(mapped.sizes);
            index_put_(guarded->view(), upload(indices, DType::i64, device), v, {.accumulate = accumulate});
            ASSERT_EQ(guarded->get(), want) << name(dtype) << accumulate << to_string(mapped.sizes);
          }
        }
      }
    }
  }
}

TEST(Index, MasksStandForTheirColumns) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = arange(0, 24, 1, {.dtype = DType::i32, .device = device}).reshape({2, 3, 4});
    const std::uint8_t bytes[] = {1, 0, 0, 0, 1, 1};
    const Tensor mask = from_bytes(bytes, 6, {2, 3}, {.dtype = DType::boolean, .device = device}), i = from_host<std::int64_t>({3, 0, 1}, device);
    const Tensor rows = index(x, {mask});
    EXPECT_EQ(rows.sizes(), (Dims{3, 4}));
    EXPECT_EQ(rows.to_host<std::int32_t>(), (std::vector<std::int32_t>{0, 1, 2, 3, 16, 17, 18, 19, 20, 21, 22, 23}));
    EXPECT_EQ(index(x, {mask, i}).to_host<std::int32_t>(), (std::vector<std::int32_t>{3, 16, 21}));
    const Tensor put = index_put(x, {mask}, full({}, -1, {.dtype = DType::i32, .device = device}));
    EXPECT_EQ(index(put, {mask}).to_host<std::int32_t>(), std::vector<std::int32_t>(12, -1));
    EXPECT_EQ(put.select(0, 0).select(0, 1).to_host<std::int32_t>(), (std::vector<std::int32_t>{4, 5, 6, 7}));
    const Tensor none = zeros({2}, {.dtype = DType::boolean, .device = device});
    EXPECT_EQ(index(x, {none}).sizes(), (Dims{0, 3, 4}));
    EXPECT_EQ(index_put(x, {none}, zeros({4}, {.dtype = DType::i32, .device = device})).to_bytes(), x.to_bytes());
    Stream stream(device);
    Graph graph;
    graph.capture_begin(stream);
    {
      StreamGuard guard(stream);
      EXPECT_EQ(code_of([&] { index(x, {mask}); }), ErrorCode::capturing);
    }
    graph.capture_abandon();
  }
}

/// Order shows in bits: the sums of numbers of many magnitudes, and the last of many values.
TEST(Index, RepeatedIndicesInRowMajorOrder) {
  CLUTCH_EACH_DEVICE(device) {
    for (std::int64_t n : {2, 100, 5000})
      for (std::int64_t features : {1, 3, 40}) {
        model::Random random(seed());
        std::vector<std::int64_t> where;
        std::vector<float> values, want(static_cast<std::size_t>(7 * features), 0.25f), last = want;
        for (std::int64_t k = 0; k < n; ++k) where.push_back(static_cast<std::int64_t>(random.next() >> 8) % 7 - (k % 2 == 0 ? 7 : 0));
        for (std::int64_t k = 0; k < n * features; ++k)
          values.push_back(static_cast<float>(std::ldexp(random.uniform(-1, 1), static_cast<int>(random.next() % 40))));
        for (std::int64_t k = 0; k < n; ++k)
          for (std::int64_t f = 0; f < features; ++f) {
            const auto to = static_cast<std::size_t>(((where[static_cast<std::size_t>(k)] + 7) % 7) * features + f);
            want[to] += values[static_cast<std::size_t>(k * features + f)];
            last[to] = values[static_cast<std::size_t>(k * features + f)];
          }
        const Tensor self = full({7, features}, 0.25, {.device = device}), v = from_host(values, {n, features}, device), i = from_host(where, {n}, device);
        ASSERT_EQ(index_put(self, {i}, v, {.accumulate = true}).to_host<float>(), want);
        ASSERT_EQ(index_put(self, {i}, v).to_host<float>(), last);
      }
  }
}

TEST(Index, SharedMemoryAndWidePlaces) {
  CLUTCH_EACH_DEVICE(device) {
    // Values are self, in another order.
    Tensor x = from_host<float>({1, 2, 3, 4}, device);
    const Tensor backwards = from_host<std::int64_t>({3, 2, 1, 0}, device);
    index_put_(x, {backwards}, x);
    EXPECT_EQ(x.to_host<float>(), (std::vector<float>{4, 3, 2, 1}));
    // Indices are self.
    Tensor i = from_host<std::int64_t>({2, 0, 1}, device);
    index_put_(i, {i}, from_host<std::int64_t>({7, 8, 9}, device));
    EXPECT_EQ(i.to_host<std::int64_t>(), (std::vector<std::int64_t>{8, 9, 7}));
    detail::SettingsOverride with(detail::parse_settings({{"CLUTCH_INDEX64", "1"}}));
    EXPECT_EQ(index(x, {backwards}).to_host<float>(), (std::vector<float>{1, 2, 3, 4}));
    EXPECT_EQ(index_put(x, {backwards}, x, {.accumulate = true}).to_host<float>(), (std::vector<float>{5, 5, 5, 5}));
    const std::vector<std::int64_t> extreme{INT64_MIN, INT64_MAX, -5, 4, -4, 3};
    EXPECT_EQ(index(x.to(DType::i32), {from_host(extreme, {6}, device)}).to_host<std::int32_t>(), (std::vector<std::int32_t>{0, 0, 0, 0, 4, 1}));
  }
}

TEST(Index, RefusesBadInput) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = zeros({2, 4}, {.device = device}), i = zeros({3}, {.dtype = DType::i64, .device = device}),
                 mask = zeros({2, 3}, {.dtype = DType::boolean, .device = device});
    EXPECT_EQ(code_of([&] { index(Tensor(), {i}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { index(x, {Tensor()}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { index(x, std::span<const Tensor>()); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { index(x, {x}); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { index(x, {i, i, i}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { index(x, {i, zeros({2}, {.dtype = DType::i64, .device = device})}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { index(x, {mask}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { index(x, {zeros({}, {.dtype = DType::boolean, .device = device})}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { index_out(zeros({2, 4}, {.device = device}), x, std::array{i}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { index_put(x, {i}, zeros({5}, {.device = device})); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { index_put(x, {i}, zeros({1, 1, 1, 4}, {.device = device})); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { index_put(x, {i}, zeros({4}, {.dtype = DType::f16, .device = device})); }), ErrorCode::invalid_dtype);
    const Tensor flags = zeros({4}, {.dtype = DType::boolean, .device = device});
    EXPECT_EQ(code_of([&] { index_put(flags, {i}, flags.slice(0, 0, 1), {.accumulate = true}); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { index_put_(zeros({1, 4}, {.device = device}).expand({2, 4}), {i}, x.slice(0, 0, 1)); }), ErrorCode::invalid_overlap);
  }
}

TEST(Index, ShapesBuildNothingAfterTheFirst) {
  CLUTCH_EACH_DEVICE(device) {
    auto run = [&](const Dims& sizes, std::int64_t n) {
      const Tensor x = zeros(sizes, {.device = device}), i = zeros({n}, {.dtype = DType::i32, .device = device});
      index(x, {i});
      index_put(x, {Tensor(), i}, full({}, 1, {.device = device}), {.accumulate = true});
    };
    run({3, 4}, 9000);
    auto before = build_counters();
    run({7, 9, 11}, 1), run({100, 2, 2, 3}, 40);
    EXPECT_EQ(build_counters().built + build_counters().loaded, before.built + before.loaded);
  }
}

}}  // namespace clutch::testing
