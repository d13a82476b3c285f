// SPDX-License-Identifier: Apache-2.0
#include "cases/cumsum.hpp"

#include "ops/cumsum_plan.hpp"
#include "support/op_runner.hpp"

namespace clutch::testing { namespace {

using cases::CumsumCase;

TEST(Cumsum, LengthsDtypesAndLayoutsHaveTheModelsBits) {
  CLUTCH_EACH_DEVICE(device) {
    const std::pair<DType, DType> kDtypes[] = {{DType::f32, DType::f32}, {DType::f64, DType::f64}, {DType::f16, DType::f16},    {DType::bf16, DType::f32},
                                               {DType::i32, DType::i64}, {DType::u8, DType::i32},  {DType::boolean, DType::i64}};
    for (auto [dtype, result] : kDtypes) {
      if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
      for (std::int64_t m : {1, 15, 16, 17, 2047, 2048, 2049, 5000})
        for (bool reverse : {false, true}) {
          if (level() == "smoke" && m > 100 && dtype != DType::f32) continue;
          ASSERT_EQ(run_problem(device, CumsumCase::problem("", "cumsum_lines", dtype, result, reverse, 3, m, 1, seed())), "")
              << name(dtype) << " lines of " << m;
          ASSERT_EQ(run_problem(device, CumsumCase::problem("", "cumsum_lines", dtype, result, reverse, 18, m, 1, seed(), true)), "")
              << name(dtype) << " many lines of " << m;
          if (!is_floating(dtype)) continue;
          ASSERT_EQ(run_problem(device, CumsumCase::problem("", "cumsum_columns", dtype, result, reverse, 1, m, 201, seed())), "")
              << name(dtype) << " columns of " << m;
          if (m >= 2049) continue;
          ASSERT_EQ(run_problem(device, CumsumCase::problem("", "cumsum_columns", dtype, result, reverse, 20, m, 37, seed())), "")
              << name(dtype) << " columns of " << m;
        }
    }
  }
}

TEST(Cumsum, InPlaceEmptyAndScalars) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor x = from_host<float>({1, 2, 3, 4, 5, 6}, device).reshape({2, 3});
    EXPECT_EQ(cumsum(x, 0).to_host<float>(), (std::vector<float>{1, 2, 3, 5, 7, 9}));
    EXPECT_EQ(cumsum(x, 1, {.reverse = true}).to_host<float>(), (std::vector<float>{6, 5, 3, 15, 11, 6}));
    cumsum_out(x, x);
    EXPECT_EQ(x.to_host<float>(), (std::vector<float>{1, 3, 6, 4, 9, 15}));
    EXPECT_EQ(cumsum(zeros({0, 3}, {.device = device}), 0).sizes(), (Dims{0, 3}));
    EXPECT_EQ(cumsum(from_host<std::int8_t>({100, 100}, device)).to_host<std::int64_t>(), (std::vector<std::int64_t>{100, 200}));
    EXPECT_EQ(cumsum(from_host<float>({3}, device), 0).to_host<float>(), (std::vector<float>{3}));
  }
}

TEST(Cumsum, RefusesBadInput) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor x = zeros({4, 3}, {.device = device});
    EXPECT_EQ(code_of([&] { cumsum(Tensor()); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { cumsum(x, 2); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { cumsum(zeros({}, {.device = device})); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { cumsum(x, 0, {.dtype = {DType::i64}}); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { cumsum_out(zeros({3, 4}, {.device = device}), x); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { cumsum_out(x.slice(0, 1, 4), x.slice(0, 0, 3)); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([&] { cumsum(x, 0, {.implementation = "cumsum_best"}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { cumsum(x, 1, {.implementation = "cumsum_columns"}); }), ErrorCode::not_supported);
  }
}

TEST(Cumsum, ShapesOfAClassBuildNothing) {
  CLUTCH_EACH_DEVICE(device) {
    cumsum(zeros({4, 5000}, {.device = device}));
    auto before = build_counters();
    for (auto [rows, m] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {70, 64}, {3, 10000}}) cumsum(zeros({rows, m}, {.device = device}));
    EXPECT_EQ(build_counters().built + build_counters().loaded, before.built + before.loaded);
  }
}

TEST(Cumsum, SelectionByTraitsAlone) {
  DeviceTraits cpu = wide_cpu();
  detail::CumsumProblem problem;
  EXPECT_EQ(detail::select(cpu, problem).entry, "cumsum_lines");
  problem.columns = true;
  EXPECT_EQ(detail::select(cpu, problem).entry, "cumsum_columns");
  EXPECT_EQ(detail::select(cpu, problem).tuning.width, 16);
  cpu.fp64 = false, problem.dtype = DType::f64;
  EXPECT_EQ(code_of([&] { detail::select(cpu, problem); }), ErrorCode::not_supported);
}

}}  // namespace clutch::testing
