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

/// Items that share lines: one of a block, several of one, lines of several blocks in one launch and in three; loads of four elements and of one.
TEST(Cumsum, GroupsHaveTheModelsBits) {
  CLUTCH_EACH_DEVICE(device) {
    if (known_bug(device, "loops_end_early")) continue;  // refused
    const std::pair<DType, DType> kDtypes[] = {{DType::f32, DType::f32},  {DType::f64, DType::f64}, {DType::f16, DType::f16}, {DType::bf16, DType::f32},
                                               {DType::f16, DType::bf16}, {DType::i64, DType::i64}, {DType::i8, DType::i32},  {DType::boolean, DType::i64}};
    for (auto [dtype, result] : kDtypes) {
      if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
      for (std::int64_t m : {1, 3, 16, 17, 100, 300, 2047, 2049, 5000, 10300}) {
        // By day few programs: tests/cases/cumsum.hpp has other dtypes, too.
        if (level() == "smoke" && dtype != DType::f32 && (m != 300 || (dtype != DType::f16 && dtype != DType::boolean))) continue;
        for (bool reverse : {false, true}) {
          const std::int64_t lines = m <= 300 ? 150 : 3;
          ASSERT_EQ(run_problem(device, CumsumCase::quads("", dtype, result, reverse, lines, m, seed())), "") << name(dtype) << " quads of " << m;
          ASSERT_EQ(run_problem(device, CumsumCase::problem("", "cumsum_groups", dtype, result, reverse, lines, m, 1, seed())), "")
              << name(dtype) << " lines of " << m;
          ASSERT_EQ(run_problem(device, CumsumCase::problem("", "cumsum_groups", dtype, result, reverse, 3, m, 1, seed(), true)), "")
              << name(dtype) << " transposed lines of " << m;
          if (!is_floating(dtype)) continue;
          ASSERT_EQ(run_problem(device, CumsumCase::problem("", "cumsum_column_groups", dtype, result, reverse, m > 300 ? 1 : 3, m, 9, seed())), "")
              << name(dtype) << " columns of " << m;
          if (m > 5000) continue;
          ASSERT_EQ(run_problem(device, CumsumCase::problem("", "cumsum_column_groups", dtype, result, reverse, 1, m, 201, seed())), "")
              << name(dtype) << " many columns of " << m;
        }
      }
    }
    for (DType dtype : {DType::u8, DType::i8, DType::i16, DType::i32, DType::u16, DType::u32, DType::u64}) {  // sums wrap in the result's dtype
      if (level() == "smoke" && dtype != DType::i16) continue;
      const Tensor ones = full({2, 600}, 1, {.dtype = dtype, .device = device}), got = empty(ones.sizes(), {.dtype = dtype, .device = device}),
                   want = got.clone();
      cumsum_out(got, ones, 1, {.implementation = "cumsum_groups"}), cumsum_out(want, ones, 1, {.implementation = "cumsum_lines"});
      EXPECT_EQ(got.to_bytes(), want.to_bytes()) << name(dtype);
    }
    // In place, and more blocks than items of a group of carries have at a time.
    Tensor x = randn({3, 5000}, {.device = device, .seed = seed()});
    const std::vector<std::uint8_t> want = cumsum(x, 1, {.implementation = "cumsum_lines"}).to_bytes();
    cumsum_out(x, x, 1, {.implementation = "cumsum_groups"});
    EXPECT_EQ(x.to_bytes(), want);
    const Tensor line = randn({level() == "smoke" ? 200000 : 5000000}, {.device = device, .seed = seed()});
    EXPECT_EQ(cumsum(line, 0, {.implementation = "cumsum_groups"}).to_bytes(), cumsum(line, 0, {.implementation = "cumsum_lines"}).to_bytes());
  }
}

TEST(Cumsum, TeamsFillGroups) {
  for (std::uint64_t m : {1, 16, 17, 64, 1024, 1025, 2048, 100000}) {
    const detail::CumsumTeams teams = detail::line_teams(m);
    EXPECT_EQ(teams.local % teams.team, 0u);
    EXPECT_GE(teams.team * 16u, std::min<std::uint64_t>(m, 2048)) << m;
    EXPECT_TRUE(teams.team == 1 || teams.team * 8u < std::min<std::uint64_t>(m, 2048)) << m << ": half of the items would have nothing";
    for (std::uint64_t columns : {8, 9, 31, 33, 5000})
      for (std::uint64_t most : {64, 128, 256}) {
        const detail::CumsumTeams of_columns = detail::column_teams(columns * 3, m, columns, most, 500);
        EXPECT_EQ(of_columns.local % 64, 0u);
        EXPECT_LE(of_columns.local, most);
        EXPECT_GE(of_columns.local / of_columns.team, 8u) << "neighbours";
        EXPECT_LE(of_columns.team, teams.team) << m;
      }
  }
  // 128 bytes of a row at a time, or less where that gives more groups.
  EXPECT_EQ(detail::column_teams(4096, 4096, 4096, 256, 100).team, 8u);
  EXPECT_EQ(detail::column_teams(4096, 4096, 4096, 256, 1000).team, 32u);
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
    EXPECT_EQ(code_of([&] { cumsum(zeros({}, {.device = device}), 1); }), ErrorCode::invalid_argument);
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
  EXPECT_NE(message_of([&] { detail::select(cpu, problem, "cumsum_best"); }).find("cumsum_column_groups"), std::string::npos);
  cpu.local_bytes = 32 << 10;
  EXPECT_EQ(detail::select(cpu, problem, "cumsum_groups").entry, "cumsum_groups");
  EXPECT_EQ(detail::select(cpu, problem).entry, "cumsum_columns");
  cpu.fp64 = false, problem.dtype = DType::f64;
  EXPECT_EQ(code_of([&] { detail::select(cpu, problem); }), ErrorCode::not_supported);
  // Groups of several items.
  DeviceTraits gpu{.type = DeviceType::gpu, .max_work_group = 1024, .local_bytes = 48 << 10};
  gpu.fma_exact = gpu.divide_exact = gpu.sqrt_exact = true;
  const detail::CumsumProblem lines, columns{.columns = true}, carries{.carries = true};
  const detail::KernelPlan plan = detail::select(gpu, lines);
  EXPECT_EQ(plan.entry, "cumsum_groups");
  EXPECT_EQ(plan.tuning.width, 1);
  EXPECT_EQ(plan.tuning.local, 128u);
  EXPECT_EQ(detail::select(gpu, columns).entry, "cumsum_column_groups");
  EXPECT_EQ(detail::select(gpu, columns).tuning.local, 256u);
  EXPECT_EQ(detail::select(gpu, carries).entry, "cumsum_carry_groups");
  EXPECT_NE(message_of([&] { detail::select(gpu, lines, "cumsum_column_groups"); }).find("lines must be eight or more"), std::string::npos);
  gpu.max_work_group = 100;
  EXPECT_EQ(detail::select(gpu, lines).entry, "cumsum_lines");
  EXPECT_EQ(detail::select(gpu, columns).tuning.local, 64u);
  EXPECT_NE(message_of([&] { detail::select(gpu, lines, "cumsum_groups"); }).find("needs groups of 128 items, the device has at most 100"), std::string::npos);
  gpu.max_work_group = 32;
  EXPECT_EQ(detail::select(gpu, columns).entry, "cumsum_columns");
  gpu.max_work_group = 256, gpu.local_bytes = 8 << 10;
  EXPECT_EQ(detail::select(gpu, lines).entry, "cumsum_lines");
  EXPECT_EQ(detail::select(gpu, columns).entry, "cumsum_column_groups");
  EXPECT_NE(message_of([&] { detail::select(gpu, lines, "cumsum_groups"); }).find("needs 10240 bytes of local memory, the device has 8192"), std::string::npos);
  const detail::CumsumProblem wide{.dtype = DType::f64};
  EXPECT_NE(message_of([&] { detail::select(gpu, wide, "cumsum_groups"); }).find("fp64"), std::string::npos);
}

}}  // namespace clutch::testing
