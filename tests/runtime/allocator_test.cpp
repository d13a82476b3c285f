// SPDX-License-Identifier: Apache-2.0
#include "support/fixture.hpp"

#include <clutch/interop_cl.hpp>

namespace clutch::testing {
namespace {

TEST(Allocator, BlocksAreReusedInStreamOrder) {
  CLUTCH_EACH_DEVICE(device) {
    synchronize(device);
    empty_cache(device);
    auto base = memory_allocated(device);
    Stream a(device), b(device);
    std::uint64_t where = 0;
    cl_mem mem = nullptr;
    {
      Tensor t = empty({1000}, {.device = device}, a);
      where = interop::offset(t);
      mem = interop::mem(t);
      EXPECT_EQ(memory_allocated(device), base + 4096);
    }
    EXPECT_EQ(memory_allocated(device), base);
    Tensor same = empty({1000}, {.device = device}, a);
    EXPECT_EQ(interop::offset(same), where);
    EXPECT_EQ(interop::mem(same), mem);
    Tensor other = empty({1000}, {.device = device}, b);
    EXPECT_NE(interop::mem(other), mem) << "another stream gets another segment";
    EXPECT_EQ(interop::offset(same) % 512, 0u);
  }
}

TEST(Allocator, NeighboursDoNotOverlapAndMerge) {
  CLUTCH_EACH_DEVICE(device) {
    std::vector<Tensor> many;
    for (int i = 0; i < 200; ++i) many.push_back(full({37 + i}, i, {.device = device}));
    for (int i = 0; i < 200; i += 2) many[static_cast<std::size_t>(i)] = Tensor();
    for (int i = 0; i < 200; i += 2) many[static_cast<std::size_t>(i)] = full({500 - i}, i, {.device = device});
    for (int i = 0; i < 200; ++i)
      for (float x : many[static_cast<std::size_t>(i)].to_host<float>()) ASSERT_EQ(x, static_cast<float>(i));
    many.clear();
    synchronize(device);
    empty_cache(device);
    auto stats = memory_stats(device);
    EXPECT_EQ(stats.at("allocation.all.current"), 0u);
    EXPECT_EQ(stats.at("reserved_bytes.all.current"), 0u) << "merged blocks give whole segments back";
    EXPECT_GE(stats.at("allocated_bytes.all.peak"), 200u * 37 * 4);
    reset_peak_memory_stats(device);
    EXPECT_EQ(memory_stats(device).at("allocated_bytes.all.peak"), 0u);
  }
}

TEST(Allocator, MemoryUsedOnAnotherStreamWaitsForIt) {
  CLUTCH_EACH_DEVICE(device) {
    Stream a(device), b(device);
    for (int round = 0; round < 20; ++round) {
      Tensor result;
      {
        Tensor t = full({1 << 18}, round, {.device = device}, a);
        Event ready;
        ready.record(a);
        b.wait(ready);
        result = t.clone(b);
      }
      full({1 << 18}, -1, {.device = device}, a);  // may not take t's block before b has read it
      for (float x : result.to_host<float>(b)) ASSERT_EQ(x, static_cast<float>(round));
    }
  }
}

TEST(Allocator, PoolsAreApart) {
  CLUTCH_EACH_DEVICE(device) {
    PoolId mine = new_pool();
    EXPECT_FALSE(mine == new_pool());
    Tensor outside = empty({100}, {.device = device}), inside;
    {
      PoolGuard guard(mine);
      inside = empty({100}, {.device = device});
    }
    Tensor again = empty({100}, {.device = device});
    EXPECT_NE(interop::mem(inside), interop::mem(outside));
    EXPECT_EQ(interop::mem(again), interop::mem(outside));
  }
}

TEST(Allocator, StreamsThatGoLeaveTheirMemoryToOthers) {
  CLUTCH_EACH_DEVICE(device) {
    synchronize(device);
    empty_cache(device);
    for (int i = 0; i < 10; ++i) {
      Stream s(device);
      full({3 << 20}, i, {.device = device}, s);
      s.synchronize();
    }
    EXPECT_LE(memory_reserved(device), 64u << 20);
    empty_cache(device);
    EXPECT_EQ(memory_stats(device)["allocation.all.current"], 0u);
  }
}

TEST(Allocator, OutOfMemorySaysWantedAndHad) {
  CLUTCH_EACH_DEVICE(device) {
    if (device.traits().max_alloc_bytes > (1ull << 33)) continue;  // would really take it
    std::string message = message_of([&] { empty({static_cast<std::int64_t>(device.traits().max_alloc_bytes / 4) + 1024}, {.device = device}); });
    EXPECT_NE(message.find("takes at most"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace clutch::testing
