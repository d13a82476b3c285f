// SPDX-License-Identifier: Apache-2.0
// The rules of model.hpp, each by numbers that were worked out by hand.
#include "gpu/count/model.hpp"

#include <gtest/gtest.h>

namespace clutch::gpu_count { namespace {

/// Counts of one group whose items each do what `item_does(launch, item)` says.
template <class F>
std::array<Counts, 2> group_of(std::uint32_t items, F&& item_does) {
  Launch launch;
  launch.begin_group(items);
  for (std::uint32_t item = 0; item < items; ++item) item_does(launch, item);
  launch.end_group();
  return launch.counts();
}
std::array<Counts, 2> global_loads(std::uint32_t items, std::uint32_t bytes, std::uint64_t stride, std::uint64_t begin = 0) {
  return group_of(items, [&](Launch& l, std::uint32_t item) { l.access(item, 0, Space::global, Action::load, begin + stride * item, bytes); });
}
std::array<Counts, 2> local_loads(std::uint32_t items, std::uint32_t bytes, std::uint64_t stride) {
  return group_of(items, [&](Launch& l, std::uint32_t item) { l.access(item, 0, Space::local, Action::load, stride * item, bytes); });
}

TEST(CountModel, NeighboursShareSectors) {
  const auto [narrow, wide] = global_loads(64, 4, 4);
  EXPECT_EQ(narrow.load_pieces, 2u);
  EXPECT_EQ(narrow.load_sectors, 8u);  // 64 numbers of 4 bytes
  EXPECT_EQ(narrow.load_ideal, 8u);
  EXPECT_EQ(narrow.load_lines, 2u);
  EXPECT_EQ(narrow.load_bytes, 256u);
  EXPECT_EQ(narrow.load_touched, 8u);
  EXPECT_EQ(wide.load_pieces, 1u);
  EXPECT_EQ(wide.load_sectors, 8u);
  EXPECT_EQ(wide.load_lines, 2u);
}

TEST(CountModel, SectorsAndLinesOfBadAccesses) {
  EXPECT_EQ(global_loads(32, 4, 4, 4)[0].load_sectors, 5u);  // one sector more where the first number is not at one's begin
  EXPECT_EQ(global_loads(32, 4, 4, 4)[0].load_ideal, 4u);
  EXPECT_EQ(global_loads(32, 4, 4, 4)[0].load_lines, 2u);
  EXPECT_EQ(global_loads(32, 4, 128)[0].load_sectors, 32u);
  EXPECT_EQ(global_loads(32, 4, 128)[0].load_ideal, 4u);
  EXPECT_EQ(global_loads(32, 4, 128)[0].load_lines, 32u);
  EXPECT_EQ(global_loads(32, 4, 0)[0].load_sectors, 1u);  // all read one number
  EXPECT_EQ(global_loads(32, 4, 0)[0].load_ideal, 1u);
  EXPECT_EQ(global_loads(32, 1, 1)[0].load_sectors, 1u);
}

/// 64 bytes an item are four pieces, each with 16 bytes of every second sector.
TEST(CountModel, WideAccessesGoByPieces) {
  const Counts wide = global_loads(32, 64, 64)[0];
  EXPECT_EQ(wide.load_pieces, 4u);
  EXPECT_EQ(wide.load_sectors, 4u * 32);
  EXPECT_EQ(wide.load_ideal, 4u * 16);
  EXPECT_EQ(wide.load_touched, 64u);
  const Counts sixteen = global_loads(32, 16, 16)[0];
  EXPECT_EQ(sixteen.load_pieces, 1u);
  EXPECT_EQ(sixteen.load_sectors, 16u);
  EXPECT_EQ(sixteen.load_ideal, 16u);
}

TEST(CountModel, BanksOfLocalMemory) {
  struct Case {
    std::uint32_t bytes;
    std::uint64_t stride, ideal, passes;
  };
  for (const Case& c : {
           Case{4, 4, 1, 1}, Case{4, 0, 1, 1},                                                 // neighbours; all one word
           Case{4, 8, 1, 2}, Case{4, 128, 1, 32}, Case{4, 132, 1, 1},                          // every second bank; one bank; a padded row
           Case{1, 1, 1, 1}, Case{2, 2, 1, 1},                                                 // bytes of one word meet no conflict
           Case{8, 8, 2, 2}, Case{8, 16, 2, 4}, Case{8, 128, 2, 32},                           // by halves of 16
           Case{16, 16, 4, 4}, Case{16, 32, 4, 8}, Case{16, 128, 4, 32}, Case{16, 144, 4, 4},  // by quarters of 8
       }) {
    const auto [narrow, wide] = local_loads(32, c.bytes, c.stride);
    EXPECT_EQ(narrow.local_pieces, 1u);
    EXPECT_EQ(narrow.local_ideal, c.ideal) << c.bytes << " " << c.stride;
    EXPECT_EQ(narrow.local_passes, c.passes) << c.bytes << " " << c.stride;
    EXPECT_EQ(narrow.local_worst, c.passes / c.ideal) << c.bytes << " " << c.stride;  // all parts are alike
    EXPECT_EQ(wide.local_ideal, c.ideal) << c.bytes << " " << c.stride;
    EXPECT_EQ(wide.local_passes, c.passes) << c.bytes << " " << c.stride;
  }
  // 64 lanes are two parts, whose banks do not meet.
  EXPECT_EQ(local_loads(64, 4, 4)[1].local_pieces, 1u);
  EXPECT_EQ(local_loads(64, 4, 4)[1].local_ideal, 2u);
  EXPECT_EQ(local_loads(64, 4, 4)[1].local_passes, 2u);
  EXPECT_EQ(local_loads(64, 4, 4)[1].local_worst, 1u);
}

TEST(CountModel, LanesIdleWhereItemsLeaveALoop) {
  // Item i runs instruction 0, of weight 3, i times.
  const auto [narrow, wide] = group_of(64, [](Launch& l, std::uint32_t item) {
    for (std::uint32_t i = 0; i < item; ++i) l.instruction(item, 0, Pipe::f32, 3);
  });
  EXPECT_EQ(narrow.issues[0], 3u * (31 + 63));
  EXPECT_EQ(narrow.busy, 3u * 63 * 64 / 2);
  EXPECT_EQ(narrow.longest, 3u * 63);
  EXPECT_EQ(wide.issues[0], 3u * 63);
  EXPECT_EQ(wide.busy, narrow.busy);
}

/// Both sides of a branch are issued; lanes past the group's end idle, too.
TEST(CountModel, BranchesAndPartialSubGroups) {
  const auto [narrow, wide] = group_of(40, [](Launch& l, std::uint32_t item) { l.instruction(item, item % 2, item % 2 ? Pipe::integer : Pipe::f64, 1); });
  EXPECT_EQ(narrow.sub_groups, 2u);
  EXPECT_EQ(narrow.issues[static_cast<std::size_t>(Pipe::integer)], 2u);
  EXPECT_EQ(narrow.issues[static_cast<std::size_t>(Pipe::f64)], 2u);
  EXPECT_EQ(narrow.issued(), 4u);
  EXPECT_EQ(narrow.busy, 40u);  // of 128
  EXPECT_EQ(wide.sub_groups, 1u);
  EXPECT_EQ(wide.issued(), 2u);
  EXPECT_EQ(wide.busy, 40u);
}

/// Accesses meet by their turn since the last barrier.
TEST(CountModel, AccessesAlignByTurnAndBarrier) {
  Launch launch;
  launch.begin_group(32);
  for (std::uint32_t item = 0; item < 32; ++item)
    for (std::uint64_t turn = 0; turn < (item == 0 ? 3u : 1u); ++turn) launch.access(item, 7, Space::global, Action::store, 128 * turn + 4 * item, 4);
  launch.barrier();
  for (std::uint32_t item = 0; item < 32; ++item) launch.access(item, 7, Space::global, Action::store, 4 * item, 4);
  launch.end_group();
  const Counts c = launch.counts()[0];
  EXPECT_EQ(c.barriers, 1u);
  EXPECT_EQ(c.store_pieces, 4u);  // two by item 0 alone, one by all, one by all behind the barrier
  EXPECT_EQ(c.store_sectors, 4u + 1 + 1 + 4);
  EXPECT_EQ(c.issues[static_cast<std::size_t>(Pipe::memory)], 4u);
  EXPECT_EQ(c.busy, 32u + 1 + 1 + 32);
  EXPECT_EQ(c.store_touched, 6u);
  EXPECT_EQ(c.longest, 4u);
}

/// Four pieces on their way together, but not across a barrier.
TEST(CountModel, WaitsForLoads) {
  Launch launch;
  launch.begin_group(64);
  auto loads = [&](std::uint32_t count, Space space) {
    for (std::uint32_t item = 0; item < 64; ++item)
      for (std::uint32_t i = 0; i < count; ++i) launch.access(item, i, space, Action::load, 256 * i + 4 * item, 4);
  };
  loads(5, Space::global);
  launch.barrier();
  loads(1, Space::global);
  loads(9, Space::local);
  launch.barrier();
  for (std::uint32_t item = 0; item < 64; ++item) launch.access(item, 20, Space::global, Action::store, 4 * item, 4);
  launch.end_group();
  const auto [narrow, wide] = launch.counts();
  EXPECT_EQ(narrow.waits, 2u * (2 + 1));
  EXPECT_EQ(narrow.local_waits, 2u * 3);
  EXPECT_EQ(wide.waits, 2u + 1);
  EXPECT_EQ(wide.local_waits, 3u);
}

/// Elements of a vector of 16 bytes, one by one.
TEST(CountModel, NeighboursJoinWithinWhatIsKnownToBeAligned) {
  constexpr Place kFour{.block = 1, .aligned = 4}, kSixteen{.block = 1, .aligned = 16};
  auto loads = [](auto&& of_item) { return group_of(32, of_item)[0]; };
  auto load = [](Launch& l, std::uint32_t item, std::uint32_t number, std::uint64_t at, Place place) {
    l.access(item, number, Space::global, Action::load, 16 * item + at, 4, place);
  };
  const Counts joined = loads([&](Launch& l, std::uint32_t item) {
    load(l, item, 0, 0, kSixteen);
    for (std::uint32_t i = 1; i < 4; ++i) load(l, item, i, 4 * i, kFour);
  });
  EXPECT_EQ(joined.load_pieces, 1u);
  EXPECT_EQ(joined.load_sectors, 16u);
  EXPECT_EQ(joined.load_bytes, 512u);
  EXPECT_EQ(joined.load_touched, 16u);
  const Counts downwards = loads([&](Launch& l, std::uint32_t item) {
    load(l, item, 0, 4, kFour);
    load(l, item, 1, 0, kSixteen);
    load(l, item, 2, 8, kFour);
    load(l, item, 3, 8, kFour);  // once more
  });
  EXPECT_EQ(downwards.load_pieces, 1u);
  EXPECT_EQ(downwards.load_bytes, 32u * 12);
  const auto apart = [&](auto&& between, Place second, std::uint32_t number = 1) {
    return loads([&](Launch& l, std::uint32_t item) {
      load(l, item, 0, 0, kSixteen);
      between(l, item);
      load(l, item, number, 4, second);
    });
  };
  auto nothing = [](Launch&, std::uint32_t) {};
  EXPECT_EQ(apart(nothing, kFour).load_pieces, 1u);
  EXPECT_EQ(apart(nothing, {.block = 2, .aligned = 4}).load_pieces, 2u);  // of another block
  EXPECT_EQ(apart(nothing, {}).load_pieces, 2u);                          // of none
  EXPECT_EQ(apart(nothing, kFour, 0).load_pieces, 2u);                    // the same instruction, in a loop
  EXPECT_EQ(apart([&](Launch& l, std::uint32_t item) { load(l, item, 9, 4096, kSixteen); }, kFour).load_pieces, 3u);
  EXPECT_EQ(apart([&](Launch& l, std::uint32_t item) { l.access(item, 9, Space::global, Action::store, 4096, 4, kFour); }, kFour).load_pieces, 2u);
  EXPECT_EQ(apart([&](Launch& l, std::uint32_t item) { l.access(item, 9, Space::local, Action::store, 4096, 4, kFour); }, kFour).load_pieces, 1u);
  // Past what is known to be aligned, and where nothing is.
  EXPECT_EQ(loads([&](Launch& l, std::uint32_t item) { load(l, item, 0, 0, kFour), load(l, item, 1, 4, kFour); }).load_pieces, 2u);
  EXPECT_EQ(loads([&](Launch& l, std::uint32_t item) {
              for (std::uint32_t i = 0; i < 5; ++i) load(l, item, i, 4 * i, i == 0 ? kSixteen : kFour);
            }).load_pieces,
            2u);
  // A barrier ends it.
  Launch launch;
  launch.begin_group(32);
  for (std::uint32_t item = 0; item < 32; ++item) load(launch, item, 0, 0, kSixteen);
  launch.barrier();
  for (std::uint32_t item = 0; item < 32; ++item) load(launch, item, 1, 4, kFour);
  launch.end_group();
  EXPECT_EQ(launch.counts()[0].load_pieces, 2u);
}

TEST(CountModel, AtomicsConstantsAndScratch) {
  const auto [narrow, wide] = group_of(64, [](Launch& l, std::uint32_t item) {
    l.access(item, 0, Space::global, Action::atomic, 0, 4);                // all at one address
    l.access(item, 1, Space::local, Action::atomic, item / 4 * 4, 4);      // four at each
    l.access(item, 2, Space::constant, Action::load, item % 2 * 4, 4);     // two addresses
    l.access(item, 3, Space::scratch, Action::load, 64 * (item % 3), 32);  // two pieces
    if (item == 0) l.access(item, 3, Space::scratch, Action::load, 0, 4);
  });
  EXPECT_EQ(narrow.atomics, 128u);
  EXPECT_EQ(narrow.atomic_pieces, 4u);
  EXPECT_EQ(narrow.atomic_passes, 2u * 32 + 2 * 4);
  EXPECT_EQ(wide.atomic_passes, 64u + 4);
  EXPECT_EQ(narrow.constant_pieces, 2u);
  EXPECT_EQ(narrow.constant_passes, 4u);
  EXPECT_EQ(narrow.scratch_pieces, 3u + 2);
  EXPECT_EQ(narrow.scratch_bytes, 64u * 32 + 4);
  EXPECT_EQ(narrow.load_sectors, 0u);
}

TEST(CountModel, GroupsAddUp) {
  Launch launch;
  for (const std::uint32_t items : {64u, 16u}) {
    launch.begin_group(items);
    for (std::uint32_t item = 0; item < items; ++item) {
      launch.instruction(item, 5, Pipe::f32, 1);
      launch.access(item, 6, Space::global, Action::load, 4 * item, 4);
    }
    launch.end_group();
  }
  const auto [narrow, wide] = launch.counts();
  EXPECT_EQ(narrow.groups, 2u);
  EXPECT_EQ(narrow.items, 80u);
  EXPECT_EQ(narrow.sub_groups, 3u);
  EXPECT_EQ(narrow.issues[0], 3u);
  EXPECT_EQ(narrow.load_sectors, 8u + 2);
  EXPECT_EQ(narrow.load_touched, 8u);
  EXPECT_EQ(wide.sub_groups, 2u);
  EXPECT_EQ(wide.longest, 2u);
  EXPECT_NE(to_text(narrow).find("width=32 items=80 groups=2 "), std::string::npos);
}

}}  // namespace clutch::gpu_count
