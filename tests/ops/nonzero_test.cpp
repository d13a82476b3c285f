// SPDX-License-Identifier: Apache-2.0
#include "cases/nonzero.hpp"

#include "cases/sort.hpp"
#include "ops/nonzero_plan.hpp"
#include "support/op_runner.hpp"

namespace clutch::testing { namespace {

using cases::NonzeroCase;
using cases::SortCase;
using Raw = NonzeroCase::Raw;
using Indices = std::vector<std::int64_t>;

const char* const kWays[] = {"", "nonzero_items", "nonzero_tiles"};

/// The result of one of kWays; of the automatic one where the device refuses tiles.
template <class Call>
auto made_by(const char* way, const Device& device, Call call) {
  try {
    return call(way);
  } catch (const Error& e) {
    if (!skip_without(device, way, e.code() != ErrorCode::not_supported)) throw;
    return call("");
  }
}

Tensor upload(const Raw& raw, const Dims& sizes, DType dtype, const Device& device) {
  return from_bytes(raw.data(), raw.size(), sizes, {.dtype = dtype, .device = device});
}

TEST(Nonzero, AllDTypesAndShapesInRowMajorOrder) {
  CLUTCH_EACH_DEVICE(device) {
    for (const char* way : kWays) {
      auto check = [&](DType dtype, const Dims& sizes, double share) {
        const Raw raw = NonzeroCase::elements(dtype, numel(sizes), share, seed());
        const Tensor got = made_by(way, device, [&](const char* forced) { return nonzero(upload(raw, sizes, dtype, device), {.implementation = forced}); });
        const Indices want = NonzeroCase::model(raw, dtype, sizes);
        const std::int64_t rank = sizes.rank();
        ASSERT_EQ(got.sizes(), (Dims{static_cast<std::int64_t>(want.size()) / rank, rank}));
        ASSERT_EQ(got.to_host<std::int64_t>(), want) << name(dtype) << " " << to_string(sizes) << " " << share << " " << way;
      };
      for (DType dtype : SortCase::dtypes(level())) check(dtype, {41, 67}, 0.3);
      for (std::int64_t n : {1, 63, 64, 65, 2047, 2048, 2049, 10001})
        for (double share : {0.0, 0.01, 0.5, 1.0}) check(DType::boolean, {n}, share);
      check(DType::i32, {3, 4, 5}, 0.5);
      check(DType::f32, {2, 3, 2, 3, 2, 3, 2, 3}, 0.5);
      check(DType::u8, {2, 1, 2, 1, 2, 3, 2, 3, 2, 1, 3, 2}, 0.5);
      check(DType::f32, {0}, 0.5);
      check(DType::f32, {3, 0, 2}, 0.5);
    }
    EXPECT_EQ(nonzero(full({}, 3, {.device = device})).sizes(), (Dims{1, 0}));
    EXPECT_EQ(nonzero(full({}, 0, {.device = device})).sizes(), (Dims{0, 0}));
    // Numbers that are complex: 0 in both parts is 0.
    for (DType dtype : {DType::c64, DType::c128}) {
      const bool wide = dtype == DType::c128;
      if (wide && skip_without(device, "fp64", device.traits().fp64)) continue;
      const std::vector<double> doubles{0, -0.0, 0, 2, 3, 0, -0.0, -0.0, NAN, 0};
      const std::vector<float> floats(doubles.begin(), doubles.end());
      const Tensor x = wide ? from_bytes(doubles.data(), 80, {5}, {.dtype = dtype, .device = device})
                            : from_bytes(floats.data(), 40, {5}, {.dtype = dtype, .device = device});
      EXPECT_EQ(nonzero(x).to_host<std::int64_t>(), (Indices{1, 2, 4}));
    }
  }
}

TEST(Nonzero, StridesOffsetsAndSizesOfTheResult) {
  CLUTCH_EACH_DEVICE(device) {
    const Raw raw = NonzeroCase::elements(DType::i16, 60, 0.4, seed());
    Guarded x(device, DType::i16, {3, 5, 4}, {1, 17, 3});
    x.set(raw);
    const Indices want = NonzeroCase::model(raw, DType::i16, {3, 5, 4});
    EXPECT_EQ(nonzero(x.view()).to_host<std::int64_t>(), want);
    const auto count = static_cast<std::int64_t>(want.size()) / 3;
    for (std::int64_t size : {std::int64_t{0}, std::int64_t{1}, count, count + 9})
      for (const char* way : kWays) {
        const Tensor got =
            made_by(way, device, [&](const char* forced) { return nonzero_static(x.view(), size, {.fill_value = 5, .implementation = forced}); });
        Indices some = want;
        some.resize(static_cast<std::size_t>(3 * size), 5);
        ASSERT_EQ(got.sizes(), (Dims{size, 3}));
        ASSERT_EQ(got.to_host<std::int64_t>(), some);
      }
    EXPECT_EQ(nonzero_static(full({}, 1, {.device = device}), 4).sizes(), (Dims{4, 0}));
    EXPECT_EQ(nonzero_static(zeros({0}, {.device = device}), 2).to_host<std::int64_t>(), (Indices{-1, -1}));
    EXPECT_EQ(count_nonzero(x.view()).to_host<std::int64_t>(), Indices{count});
    EXPECT_EQ(count_nonzero(from_host<float>({0, -0.0f, NAN, 2}, device).reshape({2, 2}), {.dims = {1}}).to_host<std::int64_t>(), (Indices{0, 2}));
  }
}

TEST(Nonzero, MaskedSelectKeepsBits) {
  CLUTCH_EACH_DEVICE(device) {
    for (const char* way : kWays)
      for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::i8, DType::i64, DType::c64, DType::c128, DType::f8e5m2}) {
        const auto size = static_cast<std::size_t>(bits(dtype)) / 8;
        Raw raw(3000 * size);
        model::Random random(seed());
        for (std::uint8_t& byte : raw) byte = static_cast<std::uint8_t>(random.next());
        const Raw mask = NonzeroCase::elements(DType::boolean, 3000, 0.5, seed());
        Raw want;
        for (std::size_t i = 0; i < 3000; ++i)
          if (mask[i] != 0)
            want.insert(want.end(), raw.begin() + static_cast<std::ptrdiff_t>(i * size), raw.begin() + static_cast<std::ptrdiff_t>((i + 1) * size));
        const Tensor x = upload(raw, {30, 100}, dtype, device), m = upload(mask, {30, 100}, DType::boolean, device);
        ASSERT_EQ(made_by(way, device, [&](const char* forced) { return masked_select(x, m, {.implementation = forced}); }).to_bytes(), want) << name(dtype);
      }
    // Both broadcast.
    const Tensor x = from_host<float>({1, 2, 3}, device), m = from_host<float>({1, 0, 1}, device).reshape({3, 1}).to(DType::boolean);
    EXPECT_EQ(masked_select(x, m).to_host<float>(), (std::vector<float>{1, 2, 3, 1, 2, 3}));
    EXPECT_EQ(masked_select(x, zeros({3}, {.dtype = DType::boolean, .device = device})).sizes(), (Dims{0}));
    EXPECT_EQ(masked_select(zeros({0, 2}, {.device = device}), zeros({2}, {.dtype = DType::boolean, .device = device})).sizes(), (Dims{0}));
    EXPECT_EQ(masked_select(full({}, 4, {.device = device}), full({}, 1, {.dtype = DType::boolean, .device = device})).to_host<float>(), std::vector<float>{4});
  }
}

/// Elements that differ from those before them, by a loop.
struct Model {
  Raw values;
  Indices inverse, counts;
};
Model unique_model(const Raw& raw, DType dtype, bool sorts) {
  const auto n = static_cast<std::int64_t>(raw.size() / SortCase::size_of(dtype));
  Indices order(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) order[static_cast<std::size_t>(i)] = i;
  if (sorts) order = SortCase::order(raw, dtype, 0, n, false);
  auto bytes_of = [&](std::int64_t i) {
    return Raw(raw.begin() + i * static_cast<std::ptrdiff_t>(SortCase::size_of(dtype)),
               raw.begin() + (i + 1) * static_cast<std::ptrdiff_t>(SortCase::size_of(dtype)));
  };
  auto equal = [&](std::int64_t a, std::int64_t b) {
    if (dtype == DType::i64 || dtype == DType::u64) return bytes_of(a) == bytes_of(b);
    return model::value_at(raw.data(), static_cast<std::size_t>(a), dtype) == model::value_at(raw.data(), static_cast<std::size_t>(b), dtype);
  };
  Model made;
  made.inverse.resize(static_cast<std::size_t>(n));
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (k == 0 || !equal(order[k - 1], order[k])) {
      const Raw bytes = bytes_of(order[k]);
      made.values.insert(made.values.end(), bytes.begin(), bytes.end());
      made.counts.push_back(0);
    }
    made.counts.back() += 1;
    made.inverse[static_cast<std::size_t>(order[k])] = static_cast<std::int64_t>(made.counts.size()) - 1;
  }
  return made;
}

TEST(Nonzero, UniqueWithInverseAndCounts) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : SortCase::dtypes(level()))
      for (std::int64_t n : {0, 1, 2, 300, 5000}) {
        const Raw raw = SortCase::elements(dtype, n, seed());
        const Tensor x = upload(raw, {n}, dtype, device);
        for (const char* way : kWays)
          for (bool sorts : {true, false}) {
            const Model want = unique_model(raw, dtype, sorts);
            auto make = [&](bool inverse, bool counts) {
              return made_by(way, device, [&](const char* forced) {
                const UniqueOptions options{.return_inverse = inverse, .return_counts = counts, .implementation = forced};
                return sorts ? unique(x, options) : unique_consecutive(x, options);
              });
            };
            const Unique all = make(true, true), values = make(false, false), counts = make(false, true);
            ASSERT_EQ(all.values.to_bytes(), want.values) << name(dtype) << " " << n << " " << way;
            ASSERT_EQ(all.inverse.to_host<std::int64_t>(), want.inverse) << name(dtype) << " " << n << " " << way;
            ASSERT_EQ(all.counts.to_host<std::int64_t>(), want.counts) << name(dtype) << " " << n << " " << way;
            ASSERT_EQ(values.values.to_bytes(), want.values);
            ASSERT_FALSE(values.inverse.defined() || values.counts.defined() || counts.inverse.defined());
            ASSERT_EQ(counts.counts.to_host<std::int64_t>(), want.counts);
          }
      }
    const float nan = NAN;
    const Tensor x = from_host<float>({nan, 2, -0.0f, nan, 0, 2}, device).reshape({2, 3});
    const Unique made = unique(x, {.return_inverse = true, .return_counts = true});
    EXPECT_EQ(made.inverse.sizes(), (Dims{2, 3}));
    EXPECT_EQ(made.inverse.to_host<std::int64_t>(), (Indices{2, 1, 0, 3, 0, 1}));
    EXPECT_EQ(made.counts.to_host<std::int64_t>(), (Indices{2, 2, 1, 1}));
    EXPECT_TRUE(std::signbit(made.values.to_host<float>()[0]));
    const std::uint8_t bytes[] = {2, 1, 0, 3};
    EXPECT_EQ(unique_consecutive(from_bytes(bytes, 4, {4}, {.dtype = DType::boolean, .device = device})).values.to_bytes(), (Raw{1, 0, 1}));
    EXPECT_EQ(unique(full({}, 3, {.device = device}), {.return_inverse = true}).inverse.rank(), 0);
  }
}

TEST(Nonzero, CapturesSayWhyTheyCannot) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = from_host<float>({0, 3, 0, 4}, device);
    const std::pair<const char*, std::function<void()>> calls[] = {{"nonzero", [&] { nonzero(x); }}, {"unique", [&] { unique(x); }}};
    for (const auto& [name, call] : calls) {
      call();
      Stream stream(device);
      Graph graph;
      graph.capture_begin(stream);
      StreamGuard guard(stream);
      const std::string message = message_of(call);
      graph.capture_abandon();
      EXPECT_NE(message.find("nonzero_static() has a size of its own"), std::string::npos) << name << ": " << message;
    }
  }
}

TEST(Nonzero, RefusesBadInput) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = zeros({2, 4}, {.device = device}), mask = zeros({4}, {.dtype = DType::boolean, .device = device});
    EXPECT_EQ(code_of([&] { nonzero(Tensor()); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { nonzero(zeros({2}, {.dtype = DType::f8e5m2, .device = device})); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { nonzero(x, {.implementation = "nonzero_count"}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { nonzero(zeros({0}, {.device = device}), {.implementation = "none"}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { nonzero_static(x, -1); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { nonzero_static_out(zeros({3, 2}, {.device = device}), x, 3); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { masked_select(x, x); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { masked_select(x, zeros({3}, {.dtype = DType::boolean, .device = device})); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { masked_select(Tensor(), mask); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { unique(zeros({2}, {.dtype = DType::c64, .device = device})); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { unique_consecutive(Tensor()); }), ErrorCode::invalid_argument);
  }
}

TEST(Nonzero, ShapesBuildNothingAfterTheFirst) {
  CLUTCH_EACH_DEVICE(device) {
    nonzero(full({300000}, 1, {.device = device}));
    auto before = build_counters();
    for (const Dims& sizes : {Dims{1}, Dims{5, 7}, Dims{3, 50, 100}, Dims{1, 2, 3, 4000}}) nonzero(full(sizes, 1, {.device = device}));
    EXPECT_EQ(build_counters().built + build_counters().loaded, before.built + before.loaded);
  }
}

TEST(Nonzero, SelectionByTraitsAlone) {
  EXPECT_EQ(detail::select(wide_cpu(), detail::NonzeroProblem{}).entry, "nonzero_count");
  DeviceTraits gpu{.type = DeviceType::gpu, .max_work_group = 1024, .local_bytes = 32 << 10};
  EXPECT_EQ(detail::select(gpu, detail::NonzeroProblem{}).entry, "nonzero_tile_count");
  EXPECT_EQ(detail::select(gpu, detail::NonzeroProblem{.stage = detail::NonzeroStage::place}).entry, "nonzero_tile_place");
  gpu.max_work_group = 128;
  EXPECT_EQ(detail::select(gpu, detail::NonzeroProblem{}).entry, "nonzero_count");
  EXPECT_EQ(code_of([&] { detail::select(gpu, detail::NonzeroProblem{}, "nonzero_tiles"); }), ErrorCode::not_supported);
}

}}  // namespace clutch::testing
