// SPDX-License-Identifier: Apache-2.0
#include "cases/sort.hpp"

#include "ops/sort_plan.hpp"
#include "runtime/settings.hpp"
#include "support/op_runner.hpp"

namespace clutch::testing { namespace {

using cases::SortCase;
using Raw = SortCase::Raw;

const char* const kWays[] = {"", "sort_items", "sort_bundles", "sort_tiles"};

/// The result of one of kWays; of the automatic one where the device refuses tiles, or bundles the problem.
template <class Call>
Sorted made_by(const char* way, const Device& device, Call call) {
  try {
    return call(way);
  } catch (const Error& e) {
    const std::string_view why = e.what();
    if (why.find("got more") != std::string_view::npos || why.find("got wide ones") != std::string_view::npos) return call("");
    if (!skip_without(device, way, e.code() != ErrorCode::not_supported)) throw;
    return call("");
  }
}

/// What is wrong with the first k elements of lines of m elements, in order; "" if nothing.
std::string wrong(const Device& device, const Raw& raw, DType dtype, std::int64_t lines, std::int64_t m, std::int64_t k, bool descending, const char* way) {
  const Tensor x = from_bytes(raw.data(), raw.size(), {lines, m}, {.dtype = dtype, .device = device});
  const Sorted got = made_by(way, device, [&](const char* forced) {
    return k == m ? sort(x, -1, {.descending = descending, .implementation = forced}) : topk(x, k, -1, {.largest = descending, .implementation = forced});
  });
  const SortCase::Result want = SortCase::model(raw, dtype, lines, m, k, descending);
  const auto text = fmt::format("{} {} x {}, {} kept{} by '{}': ", name(dtype), lines, m, k, descending ? ", descending" : "", way);
  if (!(got.values.sizes() == Dims{lines, k}) || !(got.indices.sizes() == Dims{lines, k})) return text + "shape";
  if (got.indices.to_host<std::int64_t>() != want.indices) return text + "indices";
  // Bits are kept, those of NaN, too.
  return got.values.to_bytes() == want.values ? "" : text + "values";
}

TEST(Sort, AllDTypesBothWaysGiveTheStableOrder) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : SortCase::dtypes(level()))
      for (std::int64_t m : {1, 2, 7, 33, 600, 5000}) {
        const std::int64_t lines = m < 100 ? 41 : 2;
        const Raw raw = SortCase::elements(dtype, lines * m, seed() + static_cast<std::uint64_t>(m));
        for (const char* way : kWays)
          for (bool descending : {false, true}) {
            ASSERT_EQ(wrong(device, raw, dtype, lines, m, m, descending, way), "");
            ASSERT_EQ(wrong(device, raw, dtype, lines, m, (m + 4) / 5, descending, way), "");
          }
      }
  }
}

TEST(Sort, LengthsAroundTilesAndRuns) {
  CLUTCH_EACH_DEVICE(device) {
    for (const char* way : kWays)
      for (DType dtype : {DType::f32, DType::i64})
        for (std::int64_t m : {8, 9, 31, 32, 34, 64, 65, 255, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097, 6145, 8191, 8193, 20000}) {
          const Raw raw = SortCase::elements(dtype, 3 * m, seed());
          ASSERT_EQ(wrong(device, raw, dtype, 3, m, m, false, way), "");
          for (std::int64_t k : {std::int64_t{1}, m / 3, m - 1}) ASSERT_EQ(wrong(device, raw, dtype, 3, m, k, true, way), "");
        }
    const std::int64_t many = level() == "smoke" ? 100003 : 3000017;
    const Raw raw = SortCase::elements(DType::f32, many, seed());
    for (std::int64_t k : {std::int64_t{10}, std::int64_t{3000}, many / 2, many}) ASSERT_EQ(wrong(device, raw, DType::f32, 1, many, k, true, ""), "");
  }
}

TEST(Sort, OrdersThatAreHardForSomeWays) {
  CLUTCH_EACH_DEVICE(device) {
    // Rising, falling, alike, two values, and all but the first in order.
    const std::int64_t m = 9000;
    for (int kind = 0; kind < 5; ++kind) {
      std::vector<float> x;
      for (std::int64_t i = 0; i < m; ++i)
        x.push_back(kind == 0   ? static_cast<float>(i)
                    : kind == 1 ? static_cast<float>(m - i)
                    : kind == 2 ? 3.0f
                    : kind == 3 ? static_cast<float>(i % 2)
                    : i == 0    ? 1e9f
                                : static_cast<float>(i));
      Raw raw(4 * x.size());
      std::memcpy(raw.data(), x.data(), raw.size());
      for (const char* way : kWays)
        for (std::int64_t k : {std::int64_t{1}, std::int64_t{700}, m})
          for (bool descending : {false, true}) ASSERT_EQ(wrong(device, raw, DType::f32, 1, m, k, descending, way), "") << kind;
    }
  }
}

TEST(Sort, NanIsLargestAndZerosAreEqual) {
  CLUTCH_EACH_DEVICE(device) {
    const float nan = NAN, inf = INFINITY;
    const Tensor x = from_host<float>({0.0f, nan, -0.0f, inf, -nan, -inf, -0.0f, 0.0f}, device);
    for (const char* way : kWays) {
      auto indices = [&](bool descending) {
        return made_by(way, device, [&](const char* forced) { return sort(x, 0, {.descending = descending, .implementation = forced}); })
            .indices.to_host<std::int64_t>();
      };
      EXPECT_EQ(indices(false), (std::vector<std::int64_t>{5, 0, 2, 6, 7, 3, 1, 4}));
      EXPECT_EQ(indices(true), (std::vector<std::int64_t>{1, 4, 3, 0, 2, 6, 7, 5}));
    }
    EXPECT_EQ(topk(x, 3).indices.to_host<std::int64_t>(), (std::vector<std::int64_t>{1, 4, 3}));
    EXPECT_EQ(kthvalue(x, 3).indices.to_host<std::int64_t>(), (std::vector<std::int64_t>{2}));
    // A byte that is not 0 is true, and comes out as 1.
    const std::uint8_t bytes[] = {2, 0, 1, 0};
    const Sorted of_bool = sort(from_bytes(bytes, 4, {4}, {.dtype = DType::boolean, .device = device}));
    EXPECT_EQ(of_bool.values.to_bytes(), (Raw{0, 0, 1, 1}));
    EXPECT_EQ(of_bool.indices.to_host<std::int64_t>(), (std::vector<std::int64_t>{1, 3, 0, 2}));
  }
}

TEST(Sort, AnyDimensionStridesAndOffsets) {
  CLUTCH_EACH_DEVICE(device) {
    const Dims sizes{3, 5, 4};
    const Raw raw = SortCase::elements(DType::i32, 60, seed());
    Guarded x(device, DType::i32, sizes, {1, 17, 3});
    x.set(raw);
    for (int dim : {0, 1, 2, -3, -2, -1}) {
      const int d = dim < 0 ? dim + 3 : dim;
      for (std::int64_t k : {std::int64_t{0}, std::int64_t{2}, sizes[d]}) {
        const Sorted got = topk(x.view(), k, dim, {.largest = false});
        Dims shape = sizes;
        shape[d] = k;
        ASSERT_EQ(got.values.sizes(), shape);
        ASSERT_TRUE(got.values.is_contiguous() && got.indices.is_contiguous());
        const std::vector<std::int32_t> values = got.values.to_host<std::int32_t>();
        const std::vector<std::int64_t> indices = got.indices.to_host<std::int64_t>();
        // Lines along d, whose elements are `inner` places from each other.
        std::int64_t inner = 1;
        for (int e = d + 1; e < 3; ++e) inner *= sizes[e];
        for (std::int64_t outer = 0; outer < 60 / (inner * sizes[d]); ++outer)
          for (std::int64_t i = 0; i < inner; ++i) {
            Raw line;
            for (std::int64_t j = 0; j < sizes[d]; ++j) {
              const auto at = raw.begin() + 4 * ((outer * sizes[d] + j) * inner + i);
              line.insert(line.end(), at, at + 4);
            }
            const std::vector<std::int64_t> want = SortCase::order(line, DType::i32, 0, sizes[d], false);
            for (std::int64_t j = 0; j < k; ++j) {
              const auto at = static_cast<std::size_t>((outer * k + j) * inner + i);
              ASSERT_EQ(indices[at], want[static_cast<std::size_t>(j)]);
              ASSERT_EQ(values[at],
                        static_cast<std::int32_t>(model::value_at(line.data(), static_cast<std::size_t>(want[static_cast<std::size_t>(j)]), DType::i32)));
            }
          }
        if (k == 0) continue;
        const Sorted kth = kthvalue(x.view(), k, dim), kept = kthvalue(x.view(), k, dim, {.keepdim = true});
        EXPECT_EQ(kth.values.to_bytes(), got.values.slice(d, k - 1, k).clone().to_bytes());
        EXPECT_EQ(kept.indices.to_bytes(), got.indices.slice(d, k - 1, k).clone().to_bytes());
        EXPECT_EQ(kept.values.rank(), 3);
        EXPECT_EQ(kth.values.rank(), 2);
      }
    }
  }
}

TEST(Sort, EmptyAndRankZero) {
  CLUTCH_EACH_DEVICE(device) {
    for (const char* way : kWays) {
      auto sizes_of = [&](const Dims& sizes, int dim) {
        return made_by(way, device, [&](const char* forced) { return sort(zeros(sizes, {.device = device}), dim, {.implementation = forced}); })
            .indices.sizes();
      };
      EXPECT_EQ(sizes_of({0}, 0), (Dims{0}));
      EXPECT_EQ(sizes_of({3, 0, 2}, 1), (Dims{3, 0, 2}));
      EXPECT_EQ(sizes_of({0, 4}, -1), (Dims{0, 4}));
      const Sorted scalar = made_by(way, device, [&](const char* forced) { return sort(full({}, 7, {.device = device}), -1, {.implementation = forced}); });
      EXPECT_EQ(scalar.values.rank(), 0);
      EXPECT_EQ(scalar.values.to_host<float>(), std::vector<float>{7});
      EXPECT_EQ(scalar.indices.to_host<std::int64_t>(), std::vector<std::int64_t>{0});
    }
    EXPECT_EQ(topk(zeros({0, 4}, {.device = device}), 2).values.sizes(), (Dims{0, 2}));
    EXPECT_EQ(kthvalue(full({}, 7, {.device = device}), 1).values.to_host<float>(), std::vector<float>{7});
    EXPECT_EQ(kthvalue(zeros({0, 4}, {.device = device}), 1, 1).values.sizes(), (Dims{0}));
  }
}

TEST(Sort, OutFormsTakeTheInputItself) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor x = from_host<float>({3, 1, 2}, device), indices = zeros({3}, {.dtype = DType::i64, .device = device});
    sort_out({x, indices}, x, 0, {.descending = true});
    EXPECT_EQ(x.to_host<float>(), (std::vector<float>{3, 2, 1}));
    EXPECT_EQ(indices.to_host<std::int64_t>(), (std::vector<std::int64_t>{0, 2, 1}));
    argsort_out(indices, x);
    EXPECT_EQ(indices.to_host<std::int64_t>(), (std::vector<std::int64_t>{2, 1, 0}));
  }
}

TEST(Sort, WideIndicesGiveTheSame) {
  CLUTCH_EACH_DEVICE(device) {
    detail::SettingsOverride with(detail::parse_settings({{"CLUTCH_INDEX64", "1"}}));
    for (const char* way : kWays)
      for (DType dtype : {DType::f32, DType::i8, DType::bf16})
        for (std::int64_t m : {5, 40, 1500, 5000}) {
          const Raw raw = SortCase::elements(dtype, 2 * m, seed());
          ASSERT_EQ(wrong(device, raw, dtype, 2, m, m, true, way), "");
          ASSERT_EQ(wrong(device, raw, dtype, 2, m, m / 5, false, way), "");
        }
  }
}

TEST(Sort, RefusesBadInput) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = zeros({2, 4}, {.device = device});
    EXPECT_EQ(code_of([&] { sort(Tensor()); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { sort(x, 2); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { sort(x, -3); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { sort(x, 0, {.implementation = "sort_runs"}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { sort(zeros({0}, {.device = device}), 0, {.implementation = "none"}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { sort(zeros({2}, {.dtype = DType::c64, .device = device})); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { sort(zeros({2}, {.dtype = DType::f8e5m2, .device = device})); }), ErrorCode::invalid_dtype);
    for (std::int64_t k : {-1, 5}) EXPECT_EQ(code_of([&] { topk(x, k); }), ErrorCode::invalid_argument);
    for (std::int64_t k : {-1, 0, 5}) EXPECT_EQ(code_of([&] { kthvalue(x, k); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { topk(full({}, 1, {.device = device}), 0); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { topk(full({}, 1, {.device = device}), 2); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { sort_out({zeros({2, 3}, {.device = device}), {}}, x); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { argsort_out(zeros({2, 4}, {.device = device}), x); }), ErrorCode::invalid_dtype);
  }
}

TEST(Sort, ShapesBuildNothingAfterTheFirst) {
  CLUTCH_EACH_DEVICE(device) {
    sort(zeros({300000}, {.device = device}));
    auto before = build_counters();
    for (const Dims& sizes : {Dims{1}, Dims{5, 7}, Dims{3, 5000}, Dims{9, 40000}}) {
      sort(zeros(sizes, {.device = device}), -1, {.descending = true});
      topk(zeros(sizes, {.device = device}), 1, 0);
    }
    EXPECT_EQ(build_counters().built + build_counters().loaded, before.built + before.loaded);
  }
}

TEST(Sort, SelectionByTraitsAlone) {
  EXPECT_EQ(detail::select(wide_cpu(), detail::SortProblem{}).entry, "sort_runs");
  EXPECT_EQ(detail::select(wide_cpu(), detail::SortProblem{.stage = detail::SortStage::merge}).entry, "sort_merge");
  DeviceTraits gpu{.type = DeviceType::gpu, .max_work_group = 1024, .local_bytes = 32 << 10};
  EXPECT_EQ(detail::select(gpu, detail::SortProblem{}).entry, "sort_tiles");
  EXPECT_EQ(detail::select(gpu, detail::SortProblem{.stage = detail::SortStage::merge}).entry, "sort_tile_merge");
  EXPECT_EQ(detail::select(gpu, detail::SortProblem{}, "sort_items").entry, "sort_runs");
  EXPECT_EQ(detail::select(gpu, detail::SortProblem{.short_lines = true}).entry, "sort_tiles");
  EXPECT_EQ(detail::select(wide_cpu(), detail::SortProblem{.short_lines = true}).entry, "sort_bundles");
  EXPECT_EQ(detail::select(wide_cpu(), detail::SortProblem{.wide = true, .short_lines = true}).entry, "sort_runs");
  EXPECT_EQ(code_of([&] { detail::select(gpu, detail::SortProblem{}, "sort_bundles"); }), ErrorCode::not_supported);
  gpu.local_bytes = 16 << 10;
  EXPECT_EQ(detail::select(gpu, detail::SortProblem{}).entry, "sort_runs");
  EXPECT_EQ(code_of([&] { detail::select(gpu, detail::SortProblem{}, "sort_tiles"); }), ErrorCode::not_supported);
}

}}  // namespace clutch::testing
