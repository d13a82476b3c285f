// SPDX-License-Identifier: Apache-2.0
#include "cases/group.hpp"

#include "ops/group_plan.hpp"
#include "runtime/settings.hpp"
#include "support/op_runner.hpp"

namespace clutch::testing { namespace {

using cases::GroupCase;

std::vector<std::int64_t> made(const Groups& g) {
  std::vector<std::int64_t> all = g.offsets.to(DType::i64).to_host<std::int64_t>(), order = g.order.to(DType::i64).to_host<std::int64_t>();
  all.insert(all.end(), order.begin(), order.end());
  return all;
}

TEST(Group, SizesAndCountsOfGroupsGiveTheStableOrder) {
  CLUTCH_EACH_DEVICE(device) {
    for (std::int64_t n : {0, 1, 2, 2047, 2048, 2049, 40000})
      for (std::int64_t groups : {1, 2, 7, 2047, 2048, 2049, 100000}) {
        std::vector<std::int64_t> index = GroupCase::indices(n, groups, seed() + static_cast<std::uint64_t>(n), 2);
        ASSERT_EQ(made(group_by(from_host(index, {n}, device), groups)), GroupCase::model(index, groups)) << n << " entries, " << groups << " groups";
      }
    // Three passes.
    std::vector<std::int64_t> index = GroupCase::indices(5000, std::int64_t{1} << 23, seed());
    ASSERT_EQ(made(group_by(from_host(index, {5000}, device), std::int64_t{1} << 23)), GroupCase::model(index, std::int64_t{1} << 23));
  }
}

TEST(Group, StridesEmptyInputAndNoGroups) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor index = from_host<std::int32_t>({2, 9, 0, 9, 2, 9, 1, 9}, device).slice(0, 0, 8, 2);
    EXPECT_EQ(made(group_by(index, 3)), (std::vector<std::int64_t>{0, 1, 2, 4, 1, 3, 0, 2}));
    EXPECT_EQ(made(group_by(index, 0)), (std::vector<std::int64_t>{0, 0, 1, 2, 3}));
    EXPECT_EQ(made(group_by(zeros({0}, {.dtype = DType::i64, .device = device}), 2)), (std::vector<std::int64_t>{0, 0, 0}));
    EXPECT_EQ(made(group_by(from_host<std::int64_t>({INT64_MIN, -1, INT64_MAX, std::int64_t{1} << 32}, device), 2)),
              (std::vector<std::int64_t>{0, 0, 0, 0, 1, 2, 3}));
  }
}

TEST(Group, ResultsAreI32WhateverTheIndexAndTheSettings) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::i32, DType::i64}) {
      Tensor index = from_host<std::int32_t>({2, 9, 0, 2}, device).to(dtype);
      for (const char* wide : {"0", "1"}) {
        detail::SettingsOverride with(detail::parse_settings({{"CLUTCH_INDEX64", wide}}));
        Groups groups = group_by(index, 3);
        EXPECT_EQ(groups.offsets.dtype(), DType::i32);
        EXPECT_EQ(groups.order.dtype(), DType::i32);
        EXPECT_EQ(made(groups), (std::vector<std::int64_t>{0, 1, 1, 3, 2, 0, 3, 1}));
      }
    }
  }
}

TEST(Group, RefusesBadInput) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor index = zeros({4}, {.dtype = DType::i64, .device = device});
    EXPECT_EQ(code_of([&] { group_by(Tensor(), 1); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { group_by(zeros({4}, {.device = device}), 1); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { group_by(index.reshape({2, 2}), 1); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { group_by(index, -1); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { group_by(index, std::int64_t{1} << 32); }), ErrorCode::invalid_argument);
  }
}

TEST(Group, ShapesBuildNothingAfterTheFirst) {
  CLUTCH_EACH_DEVICE(device) {
    group_by(zeros({10}, {.dtype = DType::i64, .device = device}), 5);
    auto before = build_counters();
    for (auto [n, groups] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {5000, 3}, {100, 100000}})
      group_by(zeros({n}, {.dtype = DType::i32, .device = device}), groups);
    EXPECT_EQ(build_counters().built + build_counters().loaded, before.built + before.loaded);
  }
}

TEST(Group, SelectionByTraitsAlone) {
  EXPECT_EQ(detail::select(wide_cpu(), detail::GroupProblem{}).entry, "group_count");
  EXPECT_EQ(detail::select(wide_cpu(), detail::GroupProblem{.stage = detail::GroupStage::place, .wide_id = true}).to_string().find("ID=int"),
            std::string::npos);
}

}}  // namespace clutch::testing
