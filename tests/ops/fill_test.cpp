// SPDX-License-Identifier: Apache-2.0
#include "cases/fill.hpp"

#include "ops/fill_plan.hpp"
#include "support/fixture.hpp"

namespace clutch::testing { namespace {

using cases::FillCase;

std::string run_fill(const Device& device, DType dtype, std::int64_t n, double value, const std::string& implementation, const Dims& strides = {}) {
  Guarded out(device, dtype, {n}, strides);
  fill_(out.view(), value, {.implementation = implementation});
  std::vector<std::uint8_t> want(bytes_for(dtype, static_cast<std::uint64_t>(n)));
  bool complex = is_complex(dtype);
  DType part = dtype == DType::c64 ? DType::f32 : dtype == DType::c128 ? DType::f64 : dtype;
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) model::store_at(want.data(), complex ? 2 * i : i, part, value);
  return compare_bits(out.get(), want, dtype, !device.traits().denormals);
}

TEST(Fill, EveryDtypeLengthAndImplementation) {
  CLUTCH_EACH_DEVICE(device) {
    for (int d = 0; d < kDTypeCount; ++d) {
      auto dtype = static_cast<DType>(d);
      if (is_packed(dtype)) continue;
      for (std::int64_t n : FillCase::lengths(level())) {
        for (std::string implementation : {"fill_contiguous", "fill_strided"}) {
          std::string wrong;
          ASSERT_EQ(code_of([&] { wrong = run_fill(device, dtype, n, 1.75, implementation); }), ErrorCode::ok);
          ASSERT_EQ(wrong, "") << name(dtype) << " n " << n << ' ' << implementation;
        }
      }
      ASSERT_EQ(run_fill(device, dtype, 301, 3, "", {3}), "") << name(dtype);
    }
    EXPECT_EQ(run_fill(device, DType::i8, 40, 1e9, ""), "") << "out of range saturates";
    EXPECT_EQ(run_fill(device, DType::f16, 40, -70000, ""), "");
  }
}

TEST(Fill, StridedViewsOfRank3) {
  CLUTCH_EACH_DEVICE(device) {
    Guarded out(device, DType::f32, {3, 4, 5}, {40, 9, 1});
    fill_(out.view(), 2);
    for (std::uint8_t b : {out.get()[3]}) EXPECT_EQ(b, 0x40);
    Guarded transposed(device, DType::i16, {6, 7}, {1, 6});
    fill_(transposed.view(), -2);
    for (std::size_t i = 0; i < 84; i += 2) ASSERT_EQ(transposed.get()[i], 0xFE);
  }
}

TEST(Fill, ArangeMatchesTheModel) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype :
         {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::u8, DType::i16, DType::i32, DType::i64, DType::u16, DType::u32, DType::u64}) {
      if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
      for (auto [start, step] : {std::pair{0.0, 1.0}, std::pair{-3.0, 2.0}, std::pair{0.1, 0.3}}) {
        Guarded out(device, dtype, {5000}, {});
        arange_(out.view(), start, step);
        std::vector<std::uint8_t> want(bytes_for(dtype, 5000));
        for (std::size_t i = 0; i < 5000; ++i) FillCase::arange(want.data(), dtype, i, start, step);
        bool zero = is_integral(dtype) && start == 0.1;
        if (!zero) {
          ASSERT_EQ(compare_bits(out.get(), want, dtype, !device.traits().denormals), "") << name(dtype) << ' ' << start;
        }
      }
    }
    EXPECT_EQ(arange(0, 7, 2, {.dtype = DType::i32, .device = device}).to_host<std::int32_t>(), (std::vector<std::int32_t>{0, 2, 4, 6}));
    EXPECT_EQ(arange(5, 0, -2, {.device = device}).to_host<float>(), (std::vector<float>{5, 3, 1}));
    EXPECT_EQ(arange(3, 3, 1, {.device = device}).numel(), 0);
    Tensor transposed = zeros({2, 3}, {.device = device}).mT();
    arange_(transposed, 0, 1);
    EXPECT_EQ(transposed.contiguous().to_host<float>(), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  }
}

TEST(Fill, RefusesBadInput) {
  CLUTCH_EACH_DEVICE(device) {
    EXPECT_EQ(code_of([&] { fill_(zeros({1}, {.device = device}).expand({4}), 1); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([&] { full({4}, 1, {.dtype = DType::f6e3m2, .device = device}); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(zeros({4}, {.dtype = DType::f6e3m2, .device = device}).to_bytes(), (std::vector<std::uint8_t>{0, 0, 0}));
    EXPECT_EQ(code_of([&] { arange_(zeros({4}, {.dtype = DType::boolean, .device = device}), 0, 1); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { arange(0, 4, 0, {.device = device}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { arange(0, 4, -1, {.device = device}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { fill_(Tensor(), 1); }), ErrorCode::invalid_argument);
  }
}

TEST(Fill, SelectionByTraitsAlone) {
  DeviceTraits t{.type = DeviceType::gpu, .max_work_group = 64};
  EXPECT_EQ(detail::select(t, detail::FillProblem{}).entry, "fill_contiguous");
  EXPECT_EQ(detail::select(t, detail::FillProblem{.layout = detail::Layout::strided}).entry, "fill_strided");
  EXPECT_EQ(detail::select(t, detail::FillProblem{.arange = true}).entry, "fill_arange");
  EXPECT_EQ(code_of([&] { detail::select(t, detail::FillProblem{.dtype = DType::f64, .arange = true}); }), ErrorCode::not_supported);
}

}}  // namespace clutch::testing
