// SPDX-License-Identifier: Apache-2.0
#include "cases/group.hpp"

#include "ops/group_plan.hpp"
#include "runtime/settings.hpp"
#include "support/op_runner.hpp"

#include <algorithm>
#include <numeric>

namespace clutch::testing { namespace {

using cases::GroupCase;

std::vector<std::int64_t> made(const Groups& g) {
  std::vector<std::int64_t> all = g.offsets.to(DType::i64).to_host<std::int64_t>(), order = g.order.to(DType::i64).to_host<std::int64_t>();
  all.insert(all.end(), order.begin(), order.end());
  return all;
}

const char* const kWays[] = {"", "group_items", "group_tiles"};

/// The result of one of kWays; of the automatic one where the device refuses tiles.
std::vector<std::int64_t> made_by(const char* way, const Tensor& index, std::int64_t groups) {
  try {
    return made(group_by(index, groups, {.implementation = way}));
  } catch (const Error& e) {
    if (!skip_without(index.device(), way, e.code() != ErrorCode::not_supported)) throw;
    return made(group_by(index, groups));
  }
}

TEST(Group, SizesAndCountsOfGroupsGiveTheStableOrder) {
  CLUTCH_EACH_DEVICE(device) {
    auto check = [&](const std::vector<std::int64_t>& index, std::int64_t groups) {
      const auto n = static_cast<std::int64_t>(index.size());
      const std::vector<std::int64_t> want = GroupCase::model(index, groups);
      for (const char* way : kWays)
        ASSERT_EQ(made_by(way, from_host(index, {n}, device), groups), want) << way << " " << n << " entries, " << groups << " groups";
      // Offsets alone, for which no entry is moved where one pass counts all groups.
      const Tensor offsets = full({groups + 1}, -1, {.dtype = DType::i32, .device = device});
      group_by_out({offsets, {}}, from_host(index, {n}, device), groups);
      const std::vector<std::int32_t> alone = offsets.to_host<std::int32_t>();
      ASSERT_TRUE(std::equal(alone.begin(), alone.end(), want.begin())) << n << " entries, " << groups << " groups";
    };
    for (std::int64_t n : {0, 1, 2, 2047, 2048, 2049, 40000})
      for (std::int64_t groups : {1, 2, 7, 255, 256, 2047, 2048, 2049, 100000})
        check(GroupCase::indices(n, groups, seed() + static_cast<std::uint64_t>(n), 2), groups);
    check(GroupCase::indices(200000, 9000, seed(), 2), 9000);
    // Three passes, or four of tiles.
    check(GroupCase::indices(5000, std::int64_t{1} << 23, seed()), std::int64_t{1} << 23);
    check(GroupCase::indices(5000, std::int64_t{1} << 26, seed()), std::int64_t{1} << 26);
    // Sorted already, all of one group, and downwards.
    std::vector<std::int64_t> index(10000);
    std::iota(index.begin(), index.end(), 0);
    check(index, 10000);
    std::reverse(index.begin(), index.end());
    check(index, 10000);
    std::fill(index.begin(), index.end(), 77);
    check(index, 100);
  }
}

TEST(Group, StridesEmptyInputAndNoGroups) {
  CLUTCH_EACH_DEVICE(device) {
    for (const char* way : kWays) {
      Tensor index = from_host<std::int32_t>({2, 9, 0, 9, 2, 9, 1, 9}, device).slice(0, 0, 8, 2);
      EXPECT_EQ(made_by(way, index, 3), (std::vector<std::int64_t>{0, 1, 2, 4, 1, 3, 0, 2}));
      EXPECT_EQ(made_by(way, index, 0), (std::vector<std::int64_t>{0, 0, 1, 2, 3}));
      EXPECT_EQ(made_by(way, zeros({0}, {.dtype = DType::i64, .device = device}), 2), (std::vector<std::int64_t>{0, 0, 0}));
      EXPECT_EQ(made_by(way, from_host<std::int64_t>({INT64_MIN, -1, INT64_MAX, std::int64_t{1} << 32}, device), 2),
                (std::vector<std::int64_t>{0, 0, 0, 0, 1, 2, 3}));
      EXPECT_EQ(made_by(way, from_host<std::int32_t>({INT32_MIN, -1, INT32_MAX, 1}, device), 2), (std::vector<std::int64_t>{0, 0, 1, 3, 0, 1, 2}));
      // A view that begins where whole tiles cannot be read by quads.
      std::vector<std::int64_t> numbers = GroupCase::indices(5001, 300, seed());
      const Tensor all = from_host(numbers, {5001}, device);
      numbers.erase(numbers.begin());
      EXPECT_EQ(made_by(way, all.slice(0, 1, 5001), 300), GroupCase::model(numbers, 300));
      EXPECT_EQ(made_by(way, all.to(DType::i32).slice(0, 1, 5001), 300), GroupCase::model(numbers, 300));
    }
  }
}

TEST(Group, ResultsAreI32WhateverTheIndexAndTheSettings) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::i32, DType::i64}) {
      Tensor index = from_host<std::int32_t>({2, 9, 0, 2}, device).to(dtype);
      for (const char* wide : {"0", "1"}) {
        detail::SettingsOverride with(detail::parse_settings({{"CLUTCH_INDEX64", wide}}));
        for (const char* way : kWays) EXPECT_EQ(made_by(way, index, 3), (std::vector<std::int64_t>{0, 1, 1, 3, 2, 0, 3, 1}));
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
    EXPECT_EQ(code_of([&] { group_by(index, 1, {.implementation = "group_count"}); }), ErrorCode::invalid_argument);
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
  DeviceTraits gpu{.type = DeviceType::gpu, .max_work_group = 1024, .local_bytes = 32 << 10};
  EXPECT_EQ(detail::select(gpu, detail::GroupProblem{}).entry, "group_tile_count");
  EXPECT_EQ(detail::select(gpu, detail::GroupProblem{.stage = detail::GroupStage::offsets}).entry, "group_offsets");
  gpu.local_bytes = 16 << 10;
  EXPECT_EQ(detail::select(gpu, detail::GroupProblem{}).entry, "group_count");
  EXPECT_EQ(code_of([&] { detail::select(gpu, detail::GroupProblem{}, "group_tiles"); }), ErrorCode::not_supported);
}

}}  // namespace clutch::testing
