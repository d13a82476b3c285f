// SPDX-License-Identifier: Apache-2.0
#include "cases/copy.hpp"

#include "ops/copy_plan.hpp"
#include "support/fixture.hpp"

#include <set>

namespace clutch::testing { namespace {

using cases::CopyCase;

bool needs_fp64(DType a, DType b) { return a != b && (a == DType::f64 || b == DType::f64 || a == DType::c128 || b == DType::c128); }

std::string run_cast(const Device& device, DType from, DType to, const std::vector<std::uint8_t>& raw, std::int64_t n, CopyOptions options = {},
                     const Dims& strides = {}) {
  Guarded source(device, from, {n}, strides), target(device, to, {n}, strides);
  source.set(raw);
  copy_(target.view(), source.view(), options);
  std::vector<std::uint8_t> want(bytes_for(to, static_cast<std::uint64_t>(n)));
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) CopyCase::reference(want.data(), to, raw.data(), from, i, options.overflow);
  return compare_bits(target.get(), want, to, !device.traits().denormals);
}

/// Every pair nightly; by default every dtype both ways with f32, and the pairs whose rounding is their own.
bool runs(DType from, DType to) {
  if (level() != "smoke" || from == DType::f32 || to == DType::f32) return true;
  static const std::set<std::pair<DType, DType>> kOwn{
      {DType::f64, DType::f16}, {DType::f64, DType::bf16}, {DType::f64, DType::f8e4m3fn}, {DType::i64, DType::bf16},    {DType::i64, DType::f16},
      {DType::f64, DType::i64}, {DType::f16, DType::i8},   {DType::i32, DType::u8},       {DType::boolean, DType::f16}, {DType::f16, DType::bf16}};
  return kOwn.contains({from, to});
}

TEST(Copy, CastsMatchTheModelBitForBit) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType from : CopyCase::kReals)
      for (DType to : CopyCase::kReals) {
        if (from == to || !runs(from, to)) continue;
        if (needs_fp64(from, to) && skip_without(device, "fp64", device.traits().fp64)) continue;
        std::int64_t n = 3001;
        std::string wrong = run_cast(device, from, to, model::make_values(static_cast<std::size_t>(n), from, seed()), n);
        ASSERT_EQ(wrong, "") << name(from) << " to " << name(to);
      }
  }
}

TEST(Copy, Every16BitValueWidensAndComesBack) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType small : {DType::f16, DType::bf16}) {
      std::vector<std::uint8_t> raw(2 * 65536);
      for (std::size_t i = 0; i < 65536; ++i) raw[2 * i] = static_cast<std::uint8_t>(i), raw[2 * i + 1] = static_cast<std::uint8_t>(i >> 8);
      Tensor t = from_bytes(raw.data(), raw.size(), {65536}, {.dtype = small, .device = device});
      Tensor wide = t.to(DType::f32);
      std::vector<std::uint8_t> want(4 * 65536);
      for (std::size_t i = 0; i < 65536; ++i) CopyCase::reference(want.data(), DType::f32, raw.data(), small, i, Overflow::nonfinite);
      EXPECT_EQ(compare_bits(wide.to_bytes(), want, DType::f32, !device.traits().denormals), "") << name(small);
      EXPECT_EQ(compare_bits(wide.to(small).to_bytes(), raw, small, !device.traits().denormals), "") << name(small);
      EXPECT_EQ(compare_bits(cast(t, DType::f32, {.implementation = "copy_cast_strided"}).to_bytes(), want, DType::f32, !device.traits().denormals), "");
    }
  }
}

TEST(Copy, RoundingTiesAndNeighboursOfEverySmallValue) {
  CLUTCH_EACH_DEVICE(device) {
    if (skip_without(device, "fp64", device.traits().fp64)) continue;
    for (DType small : {DType::f16, DType::bf16, DType::f8e4m3fn, DType::f8e5m2, DType::f8e8m0fnu}) {
      // Halfway between neighbours, and a hair to both sides: f64 inputs whose rounding through f32 would be wrong.
      std::vector<double> values;
      std::size_t codes = bits(small) == 8 ? 128 : 32768, step = small == DType::bf16 || small == DType::f16 ? 7 : 1;
      for (std::size_t code = 0; code + 1 < codes; code += step) {
        const std::uint64_t a = code, b = code + 1;  // wide enough for value_at of every dtype
        double x = model::value_at(&a, 0, small), y = model::value_at(&b, 0, small);
        if (!std::isfinite(x) || !std::isfinite(y)) continue;
        double middle = (x + y) / 2;
        for (double v : {middle, std::nextafter(middle, 1e300), std::nextafter(middle, -1e300)}) values.insert(values.end(), {v, -v});
      }
      auto n = static_cast<std::int64_t>(values.size());
      std::vector<std::uint8_t> raw(values.size() * 8);
      std::memcpy(raw.data(), values.data(), raw.size());
      if (small == DType::f8e8m0fnu) continue;  // its rule is defined on f32 values and is covered below
      EXPECT_EQ(run_cast(device, DType::f64, small, raw, n), "") << name(small);
    }
  }
}

TEST(Copy, Float8OverflowRulesArePyTorchsByName) {
  CLUTCH_EACH_DEVICE(device) {
    const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    auto bytes = [&](DType dtype, std::vector<float> values, Overflow overflow = Overflow::nonfinite) {
      auto n = static_cast<std::int64_t>(values.size());
      return cast(from_host(values, {n}, device), dtype, {.overflow = overflow}).to_bytes();
    };
    using Bytes = std::vector<std::uint8_t>;
    EXPECT_EQ(bytes(DType::f8e4m3fn, {448, 464, 465, inf, -inf, nan, 0x1p-10f, 0x1.03p-10f}), (Bytes{0x7E, 0x7E, 0x7F, 0x7F, 0xFF, 0x7F, 0, 1}));
    EXPECT_EQ(bytes(DType::f8e4m3fn, {465, -inf, 1e30f}, Overflow::saturate), (Bytes{0x7E, 0xFE, 0x7E}));
    EXPECT_EQ(bytes(DType::f8e5m2, {61439, 61440, 57344, nan}), (Bytes{0x7B, 0x7C, 0x7B, 0x7F}));
    EXPECT_EQ(bytes(DType::f8e5m2, {61440, inf}, Overflow::saturate), (Bytes{0x7B, 0x7B}));
    EXPECT_EQ(bytes(DType::f8e8m0fnu, {1.25f, 1.5f, 3, 6, 0.75f, -1.5f, 0, 3e38f, inf, nan}), (Bytes{127, 128, 129, 130, 127, 128, 0, 255, 255, 255}));
    EXPECT_EQ(cast(from_bytes(Bytes{0, 127, 255}.data(), 3, {3}, {.dtype = DType::f8e8m0fnu, .device = device}), DType::f32).select(0, 1).item(), 1);
  }
}

TEST(Copy, FloatToIntegerTruncatesAndSaturates) {
  CLUTCH_EACH_DEVICE(device) {
    const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    Tensor t = from_host(std::vector<float>{1.9f, -1.9f, nan, inf, -inf, 3e9f, -3e9f, 300, -0.5f}, {9}, device);
    EXPECT_EQ(t.to(DType::i32).to_host<std::int32_t>(), (std::vector<std::int32_t>{1, -1, 0, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 300, 0}));
    EXPECT_EQ(t.to(DType::u8).to_host<std::uint8_t>(), (std::vector<std::uint8_t>{1, 0, 0, 255, 0, 255, 0, 255, 0}));
    EXPECT_EQ(t.to(DType::i64).to_host<std::int64_t>(), (std::vector<std::int64_t>{1, -1, 0, INT64_MAX, INT64_MIN, 3000000000, -3000000000, 300, 0}));
    EXPECT_EQ(t.to(DType::boolean).to_host<bool>(), (std::vector<bool>{true, true, true, true, true, true, true, true, true}));
  }
}

TEST(Copy, ComplexKeepsOrDropsTheImaginaryPart) {
  CLUTCH_EACH_DEVICE(device) {
    std::vector<std::complex<float>> z{{1, 2}, {-3, 4}, {0, 5}};
    Tensor t = from_host(z, {3}, device);
    EXPECT_EQ(t.to(DType::f32).to_host<float>(), (std::vector<float>{1, -3, 0}));
    EXPECT_EQ(t.to(DType::boolean).to_host<bool>(), (std::vector<bool>{true, true, true}));
    EXPECT_EQ(from_host(std::vector<float>{7}, {1}, device).to(DType::c64).to_host<std::complex<float>>()[0], (std::complex<float>{7, 0}));
    if (skip_without(device, "fp64", device.traits().fp64)) continue;
    EXPECT_EQ(t.to(DType::c128).to_host<std::complex<double>>()[1], (std::complex<double>{-3, 4}));
  }
}

TEST(Copy, MovesOfEverySizeLayoutAndImplementation) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::u8, DType::bf16, DType::f32, DType::i64, DType::c128}) {
      for (std::int64_t n : CopyCase::lengths(level())) {
        std::vector<std::uint8_t> raw(bytes_for(dtype, static_cast<std::uint64_t>(n)));
        model::Random random(seed());
        for (auto& b : raw) b = static_cast<std::uint8_t>(random.next());
        for (const auto& row : detail::copy_implementations())
          for (bool strided : {false, true}) {
            Guarded source(device, dtype, {n}, strided ? Dims{2} : Dims{}), target(device, dtype, {n}, strided ? Dims{3} : Dims{});
            source.set(raw);
            ErrorCode code = code_of([&] { copy_(target.view(), source.view(), {.implementation = std::string(row.name)}); });
            if (code == ErrorCode::not_supported) continue;
            ASSERT_EQ(code, ErrorCode::ok);
            if (n > 0) {
              ASSERT_TRUE(last_plan().starts_with(row.name)) << last_plan();
            }
            ASSERT_EQ(target.get(), raw) << name(dtype) << " n " << n << " by " << row.name;
          }
      }
    }
    Tensor matrix = arange(0, 6, 1, {.device = device}).reshape({2, 3});
    EXPECT_EQ(matrix.mT().contiguous().to_host<float>(), (std::vector<float>{0, 3, 1, 4, 2, 5}));
    Tensor rows = empty({4, 3}, {.device = device});
    copy_(rows, matrix.select(0, 1));
    EXPECT_EQ(rows.to_host<float>(), (std::vector<float>{3, 4, 5, 3, 4, 5, 3, 4, 5, 3, 4, 5}));
  }
}

TEST(Copy, StridedMovesOfRandomShapes) {
  model::Random random(seed());
  auto number = [&](std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(most - least + 1));
  };
  /// A layout of elements that are apart: dimensions in any order, with gaps.
  auto apart = [&](const Dims& sizes, std::int64_t& count) {
    std::vector<int> order;
    for (int d = 0; d < sizes.rank(); ++d) order.insert(order.begin() + number(0, d), d);
    Dims strides = Dims::filled(sizes.rank(), 0);
    count = number(1, 3);
    for (int d : order) strides[d] = count, count = count * sizes[d] + number(0, 2);
    return strides;
  };
  auto each = [](const Dims& sizes, const Dims& strides, auto&& visit) {
    Dims at = Dims::filled(sizes.rank(), 0);
    for (std::int64_t i = 0; i < numel(sizes); ++i) {
      std::int64_t offset = 0;
      for (int d = 0; d < sizes.rank(); ++d) offset += at[d] * strides[d];
      visit(i, static_cast<std::size_t>(offset));
      for (int d = sizes.rank() - 1; d >= 0 && ++at[d] == sizes[d]; --d) at[d] = 0;
    }
  };
  CLUTCH_EACH_DEVICE(device) {
    for (int round = 0; round < (level() == "nightly" ? 300 : 40); ++round)
      for (const auto& dtypes :
           {std::pair{DType::u8, DType::u8}, std::pair{DType::bf16, DType::bf16}, std::pair{DType::f32, DType::f32}, std::pair{DType::i64, DType::i64},
            std::pair{DType::c128, DType::c128}, std::pair{DType::f32, DType::f16}, std::pair{DType::i16, DType::i32}}) {
        const DType from = dtypes.first, to = dtypes.second;
        // Sizes of one and less than a vector, and more elements than a tile, which then begins within a row.
        Dims sizes;
        for (int d = static_cast<int>(number(1, 5)); d > 0; --d) sizes.push_back(number(0, 2) == 0 ? number(1, 3) : number(1, numel(sizes) > 400 ? 9 : 47));
        std::int64_t reach = 0, out_reach = 0;
        Dims strides = apart(sizes, reach);
        const Dims out_strides = apart(sizes, out_reach);
        if (number(0, 3) == 0) strides[static_cast<int>(number(0, sizes.rank() - 1))] = 0;  // repeated
        const std::int64_t lead = number(0, 5);
        const auto width = static_cast<std::size_t>(bits(from)) / 8, out_width = static_cast<std::size_t>(bits(to)) / 8;
        std::vector<std::uint8_t> raw(static_cast<std::size_t>(lead + reach) * width), want(static_cast<std::size_t>(lead + out_reach) * out_width, 0xA5);
        if (from == to)
          for (auto& b : raw) b = static_cast<std::uint8_t>(random.next());
        else
          raw = model::make_values(static_cast<std::size_t>(lead + reach), from, seed() + static_cast<std::uint64_t>(round), false);
        const Tensor in = from_bytes(raw.data(), raw.size(), {lead + reach}, {.dtype = from, .device = device});
        const Tensor out = from_bytes(want.data(), want.size(), {lead + out_reach}, {.dtype = to, .device = device});
        std::vector<std::size_t> places;
        each(sizes, strides, [&](std::int64_t, std::size_t at) { places.push_back(at + static_cast<std::size_t>(lead)); });
        each(sizes, out_strides, [&](std::int64_t i, std::size_t at) {
          const std::size_t source = places[static_cast<std::size_t>(i)], target = at + static_cast<std::size_t>(lead);
          if (from == to) {
            std::memcpy(want.data() + target * width, raw.data() + source * width, width);
          } else {
            std::uint8_t element[8] = {};
            std::memcpy(element, raw.data() + source * width, width);
            CopyCase::reference(want.data() + target * out_width, to, element, from, 0, Overflow::nonfinite);
          }
        });
        const std::string implementation = from == to ? "copy_strided" : "copy_cast_strided";
        copy_(out.as_strided(sizes, out_strides, lead), in.as_strided(sizes, strides, lead), {.implementation = implementation});
        ASSERT_EQ(last_plan().substr(0, implementation.size()), implementation);
        ASSERT_EQ(out.to_bytes(), want) << name(from) << " to " << name(to) << " of " << to_string(sizes) << ", strides " << to_string(strides) << " and "
                                        << to_string(out_strides);
        fill_(out, 0);
        copy_(out.as_strided(sizes, out_strides, lead), in.as_strided(sizes, strides, lead));  // the library's own choice
        std::vector<std::uint8_t> alone(want.size(), 0);
        each(sizes, out_strides, [&](std::int64_t, std::size_t at) {
          const std::size_t target = (at + static_cast<std::size_t>(lead)) * out_width;
          std::memcpy(alone.data() + target, want.data() + target, out_width);
        });
        ASSERT_EQ(out.to_bytes(), alone) << last_plan() << ", " << to_string(sizes) << ", strides " << to_string(strides) << " and " << to_string(out_strides);
      }
  }
}

TEST(Copy, StridedCastsMatch) {
  CLUTCH_EACH_DEVICE(device) {
    for (auto [from, to] : {std::pair{DType::f32, DType::f16}, std::pair{DType::bf16, DType::f32}, std::pair{DType::i32, DType::bf16}})
      EXPECT_EQ(run_cast(device, from, to, model::make_values(999, from, seed()), 999, {}, {3}), "");
  }
}

TEST(Copy, RefusesBadInput) {
  CLUTCH_EACH_DEVICE(device) {
    auto make = [&](const Dims& sizes, DType dtype = DType::f32) { return zeros(sizes, {.dtype = dtype, .device = device}); };
    EXPECT_EQ(code_of([&] { copy_(make({3}), make({4})); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { copy_(make({3}), make({2, 3})); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { copy_(make({4}), make({4}, DType::f4e2m1)); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { cast(make({4}), DType::f6e2m3); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { copy_(Tensor(), make({4})); }), ErrorCode::invalid_argument);
    Tensor line = make({10});
    EXPECT_EQ(code_of([&] { copy_(line.slice(0, 1, 10), line.slice(0, 0, 9)); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([&] { copy_(make({1}).expand({3}), make({3})); }), ErrorCode::invalid_overlap);
    Tensor packed = make({5}, DType::f4e2m1);
    EXPECT_EQ(packed.nbytes(), 3u);
    EXPECT_EQ(packed.clone().to_bytes(), packed.to_bytes());
  }
}

TEST(Copy, TransposesOfAllSizes) {
  struct Case {
    Dims sizes;
    int a, b;  ///< dimensions that change places
  };
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::u8, DType::bf16, DType::f32, DType::i64, DType::c128}) {
      if (dtype == DType::c128 && !device.traits().fp64) continue;
      SCOPED_TRACE(name(dtype));
      const std::size_t bytes = static_cast<std::size_t>(bits(dtype)) / 8;
      for (const Case& c : std::vector<Case>{{{32, 32}, 0, 1},
                                             {{33, 65}, 0, 1},
                                             {{2, 500}, 0, 1},
                                             {{400, 3}, 0, 1},
                                             {{3, 40, 50}, 1, 2},
                                             {{40, 3, 50}, 0, 2},
                                             {{5, 6, 7, 8}, 1, 3},
                                             {{4, 1, 90}, 0, 2},
                                             {{3, 41, 24}, 0, 2},
                                             {{3, 41, 70}, 0, 2},
                                             {{70, 41, 3}, 0, 2},
                                             {{5, 41, 300}, 0, 2},
                                             {{33, 600, 2}, 0, 2},
                                             {{33, 9, 2, 70}, 0, 3}}) {
        SCOPED_TRACE(to_string(c.sizes));
        std::vector<std::uint8_t> values(static_cast<std::size_t>(numel(c.sizes)) * bytes);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i * 37 + i / 251);
        const Tensor from = from_bytes(values.data(), values.size(), c.sizes, {.dtype = dtype, .device = device}), view = from.transpose(c.a, c.b);
        // Element i of the view, in row-major order, is at the offset that its strides say.
        std::vector<std::uint8_t> want(values.size());
        std::int64_t i = 0;
        Dims at = Dims::filled(view.rank(), 0);
        for (; i < view.numel(); ++i) {
          std::int64_t offset = 0;
          for (int d = 0; d < view.rank(); ++d) offset += at[d] * view.strides()[d];
          std::memcpy(want.data() + static_cast<std::size_t>(i) * bytes, values.data() + static_cast<std::size_t>(offset) * bytes, bytes);
          for (int d = view.rank() - 1; d >= 0 && ++at[d] == view.sizes()[d]; --d) at[d] = 0;
        }
        EXPECT_EQ(view.contiguous().to_bytes(), want);
        const Tensor into = empty(c.sizes, {.dtype = dtype, .device = device});
        copy_(into.transpose(c.a, c.b), view.contiguous());
        EXPECT_EQ(into.to_bytes(), values) << "into a view";
      }
    }
    // Casts of many elements in another order are those of the elements.
    const Tensor x = mul(randn({90, 100}, {.device = device, .seed = 1}), 100);
    for (DType dtype : {DType::f16, DType::i8, DType::f8e4m3fn, DType::boolean})
      EXPECT_EQ(x.mT().to(dtype).to_bytes(), x.to(dtype).mT().contiguous().to_bytes()) << name(dtype);
  }
}

TEST(Copy, SelectionByTraitsAlone) {
  DeviceTraits t{.type = DeviceType::gpu, .max_work_group = 64};
  EXPECT_EQ(detail::select(t, detail::CopyProblem{}).entry, "copy_bytes");
  EXPECT_EQ(detail::select(t, detail::CopyProblem{.to = DType::bf16}).entry, "copy_cast_contiguous");
  EXPECT_EQ(detail::select(t, detail::CopyProblem{.layout = detail::Layout::rows}).entry, "copy_rows");
  EXPECT_EQ(detail::select(t, detail::CopyProblem{.layout = detail::Layout::strided}).entry, "copy_strided");
  t.local_bytes = 32768;
  EXPECT_EQ(detail::select(t, detail::CopyProblem{.layout = detail::Layout::strided, .transposes = true}).entry, "copy_transposed");
  t.local_bytes = 1024;
  EXPECT_EQ(detail::select(t, detail::CopyProblem{.layout = detail::Layout::strided, .transposes = true}).entry, "copy_strided") << "a square does not fit";
  EXPECT_EQ(code_of([&] { detail::select(t, detail::CopyProblem{.to = DType::f64}); }), ErrorCode::not_supported);
  EXPECT_EQ(detail::select(t, detail::CopyProblem{.from = DType::f64, .to = DType::f64}).entry, "copy_bytes") << "moves need no arithmetic";
}

}}  // namespace clutch::testing
