// SPDX-License-Identifier: Apache-2.0
#include "support/fixture.hpp"
#include "support/gate.hpp"

#include "runtime/runtime.hpp"

#include <clutch/interop_cl.hpp>

#include <optional>

namespace clutch::testing { namespace {

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

/// Drops the last handle of a stream and waits until its queue is idle, so that the allocator can see its end.
void drop(std::optional<Stream>& stream) {
  cl_command_queue queue = interop::queue(*stream);
  clRetainCommandQueue(queue);
  stream.reset();
  clFinish(queue);
  clReleaseCommandQueue(queue);
}

TEST(Allocator, ASegmentOfADeadStreamChangesHandsAsOneFreeBlock) {
  CLUTCH_EACH_DEVICE(device) {
    if (known_bug(device, "shared_queue_hangs")) continue;  // its locks: completing an event for which work waits hangs, too
    synchronize(device);
    empty_cache(device);
    Stream t(device), a(device), b(device);
    Tensor warm = full({256}, 1, {.device = device}, b);  // programs are built by now
    b.synchronize();
    Gate t_gate(t);
    std::optional<Stream> s(std::in_place, device);
    std::optional<Tensor> x(empty({256}, {.device = device}, *s));
    cl_mem segment = interop::mem(*x);
    fill_(*x, 3, {}, t);
    x.reset();  // pending until t is done
    drop(s);    // its segment has a pending block inside
    Gate a_gate(a);
    std::optional<Tensor> y(empty({256}, {.device = device}, a));
    ASSERT_NE(interop::mem(*y), segment) << "t still writes to a block of it";
    fill_(*y, 7, {}, a);
    y.reset();  // a has work on it
    Tensor w = full({256}, 99, {.device = device}, b);
    b.synchronize();
    a_gate.open();
    a.synchronize();
    t_gate.open();
    t.synchronize();
    for (float value : w.to_host<float>(b)) ASSERT_EQ(value, 99) << "a's block was given to b while a had work on it";
    Stream c(device);
    Tensor z = empty({256}, {.device = device}, c);
    EXPECT_EQ(interop::mem(z), segment) << "now it is one free block";
  }
}

TEST(Allocator, StreamsThatUsedATensorAreNotKept) {
  CLUTCH_EACH_DEVICE(device) {
    synchronize(device);
    empty_cache(device);
    detail::Runtime& runtime = detail::runtime_for(device);
    Tensor weight = full({1024}, 2, {.device = device});
    synchronize(device);
    const int streams = runtime.live();
    for (int i = 0; i < 200; ++i) {
      Stream stream(device);
      Tensor y = weight.clone(stream);
      stream.synchronize();
    }
    EXPECT_EQ(runtime.live(), streams) << "a queue for each stream that has ever read the tensor";
    EXPECT_LE(memory_reserved(device), 32u << 20);
  }
}

TEST(Allocator, MemoryUsedOnAStreamThatIsGoneWaitsForItsWork) {
  CLUTCH_EACH_DEVICE(device) {
    if (known_bug(device, "shared_queue_hangs")) continue;  // its locks: completing an event for which work waits hangs, too
    synchronize(device);
    empty_cache(device);
    Stream home(device);
    std::optional<Stream> user(std::in_place, device);
    std::optional<Tensor> x(full({256}, 1, {.device = device}, home));
    home.synchronize();
    cl_mem segment = interop::mem(*x);
    std::uint64_t offset = interop::offset(*x);
    Tensor copy = empty({256}, {.device = device}, *user);
    Gate gate(*user);
    copy_(copy, *x, {}, *user);
    Event done;
    done.record(*user);
    user.reset();
    x.reset();
    Tensor other = full({256}, 5, {.device = device}, home);
    EXPECT_FALSE(interop::mem(other) == segment && interop::offset(other) == offset) << "the stream that is gone has yet to read it";
    home.synchronize();
    gate.open();
    done.wait();
    for (float value : copy.to_host<float>(home)) ASSERT_EQ(value, 1);
  }
}

TEST(Allocator, OutOfMemorySaysWantedAndHad) {
  CLUTCH_EACH_DEVICE(device) {
    if (device.traits().max_alloc_bytes > (1ull << 33)) continue;  // would really take it
    std::string message = message_of([&] { empty({static_cast<std::int64_t>(device.traits().max_alloc_bytes / 4) + 1024}, {.device = device}); });
    EXPECT_NE(message.find("a buffer must have at most"), std::string::npos) << message;
  }
}

}}  // namespace clutch::testing
