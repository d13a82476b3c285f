// SPDX-License-Identifier: Apache-2.0
#include "support/fixture.hpp"
#include "support/gate.hpp"

#include "runtime/pool.hpp"
#include "runtime/runtime.hpp"

#include <clutch/interop_cl.hpp>

#include <fmt/format.h>

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

/// While it lives, a device has a limit of its own; afterwards none.
class Limited {
 public:
  Limited(const Device& device, std::uint64_t more) : device_(device) {
    for (const Device& each : test_devices()) {  // they may share the limit
      synchronize(each);
      empty_cache(each);
    }
    detail::MemoryLimit& limit = detail::runtime_for(device).pool().limit();
    set_memory_limit(limit.held() + more, device);
  }
  ~Limited() { set_per_process_memory_fraction(1, device_); }

 private:
  Device device_;
};

/// While it lives, the allocator has other settings.
class Configured {
 public:
  explicit Configured(const char* text) { set_allocator_settings(text); }
  ~Configured() { set_allocator_settings(""); }
};

constexpr std::int64_t kMiB = 1 << 20;
Tensor bytes_of(const Device& device, std::int64_t bytes, const Stream& stream = {}) { return empty({bytes}, {.dtype = DType::u8, .device = device}, stream); }

TEST(Allocator, AllOfPyTorchsKeysAreThere) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor t = bytes_of(device, 3 * kMiB);
    const auto stats = memory_stats(device);
    for (const char* counter :
         {"allocation", "allocated_bytes", "segment", "reserved_bytes", "active", "active_bytes", "inactive_split", "inactive_split_bytes", "requested_bytes"})
      for (const char* pool : {"all", "small_pool", "large_pool"})
        for (const char* what : {"current", "peak", "allocated", "freed"})
          EXPECT_TRUE(stats.contains(std::string(counter) + "." + pool + "." + what)) << counter;
    for (const char* key : {"oversize_allocations.current", "oversize_segments.peak", "num_alloc_retries", "num_ooms", "num_sync_all_streams",
                            "num_device_alloc", "num_device_free", "num_oom_rejections", "max_split_size"})
      EXPECT_TRUE(stats.contains(key)) << key;
    EXPECT_EQ(stats.size(), 9u * 3 * 4 + 2 * 4 + 7);
    EXPECT_GE(max_memory_allocated(device), memory_allocated(device));
    EXPECT_GE(max_memory_reserved(device), memory_reserved(device));
    reset_accumulated_memory_stats(device);
    EXPECT_EQ(memory_stats(device).at("allocation.all.allocated"), 0u);
    EXPECT_GT(memory_stats(device).at("allocation.all.current"), 0u);
    const MemoryInfo info = get_memory_info(device);
    EXPECT_GT(info.total, 0u);
    EXPECT_LE(info.free, info.total);
  }
}

TEST(Allocator, PastTheLimitIsAnErrorAndLeavesAllUsable) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor held = bytes_of(device, 1000);
    Limited limited(device, 40 * kMiB);
    std::vector<MemoryShortage> seen;
    MemoryCallback observer = on_out_of_memory([&](const MemoryShortage& shortage) { seen.push_back(shortage); });
    const auto before = memory_stats(device);
    const MemoryLabelGuard label("the weights");
    Tensor weights = bytes_of(device, 20 * kMiB);
    const std::string message = message_of([&] { bytes_of(device, 64 * kMiB); });
    EXPECT_NE(message.find("67108864 bytes wanted"), std::string::npos) << message;
    EXPECT_NE(message.find("(CLUTCH_MEMORY_LIMIT)"), std::string::npos) << message;
    EXPECT_NE(message.find("largest in use: the weights 20971520 bytes in 1 block"), std::string::npos) << message;
    EXPECT_EQ(code_of([&] { bytes_of(device, 64 * kMiB); }), ErrorCode::out_of_memory);
    const auto after = memory_stats(device);
    EXPECT_EQ(after.at("num_ooms"), before.at("num_ooms") + 2);
    EXPECT_EQ(after.at("num_alloc_retries"), before.at("num_alloc_retries") + 2);
    EXPECT_GE(after.at("num_oom_rejections"), before.at("num_oom_rejections") + 2);
    EXPECT_EQ(after.at("allocated_bytes.all.current"), before.at("allocated_bytes.all.current") + 20 * kMiB);
    ASSERT_EQ(seen.size(), 2u);
    EXPECT_EQ(seen[0].wanted, 64u * kMiB);
    EXPECT_GE(seen[0].allocated, 20u * kMiB);
    observer = {};
    EXPECT_EQ(code_of([&] { bytes_of(device, 64 * kMiB); }), ErrorCode::out_of_memory);
    EXPECT_EQ(seen.size(), 2u) << "its handle is gone";
    bytes_of(device, 10 * kMiB);
    EXPECT_EQ(code_of([&] { set_memory_limit(1000, device); }), ErrorCode::invalid_argument) << "less than what is held";
    EXPECT_EQ(code_of([&] { set_memory_limit(0, device); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { set_per_process_memory_fraction(1.5, device); }), ErrorCode::invalid_argument);
  }
}

/// What an Error says of the largest free block is memory that is held: not the rest of a range of addresses.
TEST(Allocator, OutOfMemorySaysWhatIsHeldAndFree) {
  CLUTCH_EACH_DEVICE(device) {
    for (const char* settings : {"expandable_segments:False", ""}) {
      Limited limited(device, 60 * kMiB);
      Configured configured(settings);
      const Tensor first = bytes_of(device, 4 * kMiB);
      std::optional<Tensor> middle(bytes_of(device, 6 * kMiB));
      const Tensor last = bytes_of(device, 4 * kMiB);
      middle.reset();
      const std::string message = message_of([&] { bytes_of(device, 100 * kMiB); });
      std::uint64_t largest = 0;
      for (const MemorySegment& segment : memory_snapshot().segments)
        for (const MemoryBlock& block : segment.blocks)
          if (segment.device == device.index() && block.state == "inactive") largest = std::max(largest, block.size);
      const auto stats = memory_stats(device);
      const std::string wanted = fmt::format("clutch holds {} there, {} in use, 0 in use by other streams alone; the largest free block has {};",
                                             stats.at("reserved_bytes.all.current"), stats.at("allocated_bytes.all.current"), largest);
      EXPECT_NE(message.find(wanted), std::string::npos) << message << '\n' << wanted;
    }
  }
}

TEST(Allocator, TheLimitIsToldAsAFraction) {
  CLUTCH_EACH_DEVICE(device) {
    const double total = static_cast<double>(device.traits().global_bytes);
    {
      Limited limited(device, 40 * kMiB);
      EXPECT_DOUBLE_EQ(get_per_process_memory_fraction(device), static_cast<double>(get_memory_info(device).total) / total);
      set_per_process_memory_fraction(0.25, device);
      EXPECT_EQ(get_per_process_memory_fraction(device), 0.25);
      EXPECT_EQ(code_of([&] { set_per_process_memory_fraction(-0.5, device); }), ErrorCode::invalid_argument);
      EXPECT_EQ(get_per_process_memory_fraction(device), 0.25) << "what is refused changes nothing";
      set_memory_limit(std::uint64_t{1} << 62, device);
      EXPECT_EQ(get_per_process_memory_fraction(device), 1);
    }
    EXPECT_EQ(get_per_process_memory_fraction(device), 1) << "there is no limit";
  }
}

TEST(Allocator, TheLimitOfTheSettingsHoldsAtOnceAndEndsWithThem) {
  CLUTCH_EACH_DEVICE(device) {
    Limited limited(device, 100 * kMiB);
    const std::uint64_t own = get_memory_info(device).total;
    const Tensor held = bytes_of(device, 30 * kMiB);
    {
      Configured configured("per_process_memory_fraction:0.75");
      EXPECT_EQ(get_per_process_memory_fraction(device), 0.75) << "before any allocation";
      set_allocator_settings("max_split_size_mb:64");
      EXPECT_EQ(get_memory_info(device).total, own) << "the key is gone";
      set_allocator_settings("per_process_memory_fraction:0.75");
      set_allocator_settings("per_process_memory_fraction:1");
      EXPECT_EQ(get_memory_info(device).total, own);
      // The later of the two calls counts, also after the next allocation.
      set_allocator_settings("per_process_memory_fraction:0.75");
      set_memory_limit(own + kMiB, device);
      bytes_of(device, kMiB);
      EXPECT_EQ(get_memory_info(device).total, own + kMiB);
      set_allocator_settings("per_process_memory_fraction:0.75");
      EXPECT_EQ(get_per_process_memory_fraction(device), 0.75);
    }
    EXPECT_EQ(get_memory_info(device).total, own + kMiB);
    bytes_of(device, 40 * kMiB);
    EXPECT_EQ(code_of([&] { bytes_of(device, 102 * kMiB); }), ErrorCode::out_of_memory) << "the device's own limit holds again";
  }
}

TEST(Allocator, ALimitOfTheSettingsBelowWhatIsHeldIsAnError) {
  CLUTCH_EACH_DEVICE(device) {
    Limited limited(device, 100 * kMiB);
    const Tensor held = bytes_of(device, 30 * kMiB);
    const std::uint64_t own = get_memory_info(device).total;
    const std::string holds = std::to_string(detail::runtime_for(device).pool().limit().held());
    Configured configured("max_split_size_mb:64");
    for (const char* fraction : {"0", "1e-06"}) {
      const std::string text = std::string("per_process_memory_fraction:") + fraction;
      EXPECT_EQ(code_of([&] { set_allocator_settings(text); }), ErrorCode::invalid_argument);
      const std::string message = message_of([&] { set_allocator_settings(text); });
      EXPECT_NE(message.find(fmt::format("the limit of {} must be at least the {} bytes that are held, got ", text, holds)), std::string::npos) << message;
      EXPECT_EQ(allocator_settings().last_allocator_settings, "max_split_size_mb:64") << "nothing is changed";
      EXPECT_EQ(get_memory_info(device).total, own);
    }
    // Going back to a limit below what is held is one, too.
    set_allocator_settings("per_process_memory_fraction:0.75");
    const Tensor more = bytes_of(device, 128 * kMiB);
    const std::string message = message_of([] { set_allocator_settings(""); });
    EXPECT_NE(message.find("the limit without per_process_memory_fraction must be at least the "), std::string::npos) << message;
    EXPECT_NE(message.find("got " + std::to_string(own)), std::string::npos) << message;
    EXPECT_EQ(get_per_process_memory_fraction(device), 0.75);
    set_per_process_memory_fraction(1, device);  // so that the settings can end
  }
}

TEST(Allocator, CallbacksGiveMemoryBeforeAnAllocationFails) {
  CLUTCH_EACH_DEVICE(device) {
    Limited limited(device, 40 * kMiB);
    std::optional<Tensor> cache(bytes_of(device, 30 * kMiB));
    int calls = 0;
    MemoryCallback callback = on_memory_short([&](const MemoryShortage& shortage) {
      ++calls;
      EXPECT_EQ(shortage.wanted, 32u * kMiB);
      const bool had = cache.has_value();
      cache.reset();
      empty_cache(device);
      return had;
    });
    Tensor t = bytes_of(device, 32 * kMiB);
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(code_of([&] { (void)on_memory_short({}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { (void)on_out_of_memory({}); }), ErrorCode::invalid_argument);
  }
}

TEST(Allocator, OldestUnusedSegmentsGoFirst) {
  CLUTCH_EACH_DEVICE(device) {
    Limited limited(device, 100 * kMiB);
    Configured configured("garbage_collection_threshold:0.6");
    std::optional<Tensor> a(bytes_of(device, 24 * kMiB)), b(bytes_of(device, 20 * kMiB));
    const std::uint64_t address = memory_address(*b);
    const std::uint64_t frees = memory_stats(device).at("num_device_free");
    a.reset();
    b.reset();
    synchronize(device);
    Tensor large = bytes_of(device, 30 * kMiB);
    EXPECT_GT(memory_stats(device).at("num_device_free"), frees) << "above the threshold";
    Tensor again = bytes_of(device, 20 * kMiB);
    EXPECT_EQ(memory_address(again), address) << "the younger one stays";
  }
}

TEST(Allocator, PoolsGiveTheirMemoryBackAtTheirEnd) {
  CLUTCH_EACH_DEVICE(device) {
    synchronize(device);
    empty_cache(device);
    const std::uint64_t before = memory_reserved(device);
    std::optional<Tensor> kept;
    PoolId id;
    {
      MemPool pool;
      id = pool.id();
      PoolGuard guard(pool);
      bytes_of(device, 30 * kMiB);
      kept = bytes_of(device, 2000);
      EXPECT_EQ(memory_stats(id, device).at("allocated_bytes.all.current"), 2048u);
      EXPECT_GE(memory_stats(id, device).at("allocated_bytes.all.peak"), 30u * kMiB);
      EXPECT_GE(memory_reserved(device), before + 30 * kMiB + 2048);
    }
    const std::uint64_t stays = memory_stats(id, device).at("reserved_bytes.all.current");
    EXPECT_EQ(memory_reserved(device), before + stays) << "the segment of the tensor stays";
    EXPECT_TRUE(stays == 2 * kMiB || stays == 4096) << "all of it, or the page of one that grows: " << stays;
    kept.reset();
    EXPECT_EQ(memory_reserved(device), before);
    EXPECT_TRUE(memory_stats(id, device).empty());
    // What may not be split takes all of its segment.
    MemPool whole({.no_split = true});
    PoolGuard guard(whole);
    Tensor t = bytes_of(device, 3 * kMiB);
    EXPECT_EQ(memory_stats(whole.id(), device).at("allocated_bytes.all.current"), 20u * kMiB);
  }
}

TEST(Allocator, PoolsLendInNeed) {
  CLUTCH_EACH_DEVICE(device) {
    Limited limited(device, 40 * kMiB);
    MemPool lending({.use_on_oom = true});
    std::uint64_t address = 0;
    {
      PoolGuard guard(lending);
      address = memory_address(bytes_of(device, 32 * kMiB));
    }
    EXPECT_EQ(memory_address(bytes_of(device, 30 * kMiB)), address);
  }
}

TEST(Allocator, LabelsTellWhoHasMemory) {
  CLUTCH_EACH_DEVICE(device) {
    reset_peak_memory_stats(device);
    std::optional<Tensor> x, y;
    {
      const MemoryLabelGuard outer("outer");
      x = bytes_of(device, 1000);
      const MemoryLabelGuard inner("inner");
      y = bytes_of(device, 5000);
    }
    Tensor sum = full({100}, 1, {.device = device});
    auto labels = memory_stats_by_label(device);
    EXPECT_EQ(labels.at("outer").current, 1024u);
    EXPECT_EQ(labels.at("inner").current, 5120u);
    EXPECT_EQ(labels.at("inner").blocks, 1u);
    EXPECT_GE(labels.at("full").current, 512u);
    y.reset();
    labels = memory_stats_by_label(device);
    EXPECT_EQ(labels.at("inner").current, 0u);
    EXPECT_EQ(labels.at("inner").peak, 5120u);
  }
}

TEST(Allocator, AForeignBlockIsTakenBehindAWait) {
  CLUTCH_EACH_DEVICE(device) {
    if (known_bug(device, "shared_queue_hangs")) continue;  // its locks: completing an event for which work waits hangs, too
    constexpr std::int64_t kFloats = 8 * kMiB;              // 32 MiB
    Stream a(device), b(device);
    Tensor warm = full({256}, 1, {.device = device}, a), other = full({256}, 1, {.device = device}, b);
    Tensor result = empty({256}, {.device = device}, a);
    a.synchronize();
    b.synchronize();
    Limited limited(device, 40 * kMiB);
    std::optional<Tensor> x(full({kFloats}, 3, {.device = device}, a));
    const std::uint64_t address = memory_address(*x);
    a.synchronize();
    Gate gate(a);
    copy_(result, x->slice(0, 0, 256), {}, a);  // has yet to run
    x.reset();                                  // free for a, which has work on it
    Tensor y = empty({kFloats}, {.device = device}, b);
    EXPECT_EQ(memory_address(y), address) << "no more memory may be taken";
    fill_(y, 9, {}, b);  // behind the copy
    std::optional<Tensor> taken(std::move(y));
    gate.open();
    a.synchronize();
    b.synchronize();
    for (float value : result.to_host<float>(a)) ASSERT_EQ(value, 3) << "b has overwritten what a had yet to read";
    EXPECT_EQ(taken->slice(0, 0, 1).to_host<float>(b)[0], 9);
    // The block goes back to a, which must wait for b's work on it.
    Gate second(b);
    copy_(other, taken->slice(0, 0, 256), {}, b);
    taken.reset();
    std::optional<Tensor> z;
    EXPECT_EQ(memory_stats(device).at("active.all.current"), memory_stats(device).at("allocation.all.current") + 1) << "the block awaits b's work";
    second.open();
    b.synchronize();
    z = full({kFloats}, 5, {.device = device}, a);
    EXPECT_EQ(memory_address(*z), address);
    for (float value : other.to_host<float>(b)) ASSERT_EQ(value, 9);
  }
}

TEST(Allocator, SegmentsThatGrowServeAThousandGrowingTensors) {
  CLUTCH_EACH_DEVICE(device) {
    synchronize(device);
    empty_cache(device);
    Configured configured("expandable_segments:True");
    Tensor last = bytes_of(device, 2 * kMiB);
    const bool grows = memory_snapshot().segments.back().is_expandable;
    const std::uint64_t made = memory_stats(device).at("num_device_alloc");
    for (std::int64_t i = 1; i <= 1000; ++i) last = bytes_of(device, 2 * kMiB + i * 4096);
    const std::uint64_t more = memory_stats(device).at("num_device_alloc") - made;
    EXPECT_LE(more, grows ? 0u : 8u) << "where segments cannot grow, each is as large as all before";
    EXPECT_TRUE(allocator_settings().expandable_segments);
    last = {};
    synchronize(device);
    empty_cache(device);
  }
}

TEST(Allocator, AddressesDependOnTheOrderOfCallsAlone) {
  CLUTCH_EACH_DEVICE(device) {
    auto run = [&] {
      synchronize(device);
      empty_cache(device);
      MemPool pool;
      PoolGuard guard(pool);
      std::vector<std::uint64_t> addresses;
      std::vector<Tensor> kept;
      for (int i = 0; i < 200; ++i) {
        kept.push_back(bytes_of(device, 1 + (i * 7919 % 97) * (i % 3 ? 1000 : 100000)));
        addresses.push_back(memory_address(kept.back()));
        if (i % 2) kept.erase(kept.begin() + i * 31 % static_cast<int>(kept.size()));
      }
      return addresses;
    };
    EXPECT_EQ(run(), run());
    EXPECT_EQ(code_of([] { memory_address(Tensor()); }), ErrorCode::invalid_argument);
  }
}

TEST(Allocator, SegmentsGrowByDefaultWhereTheyCan) {
  CLUTCH_EACH_DEVICE(device) {
    auto grows = [&](const char* text) {
      Configured configured(text);
      MemPool pool;
      PoolGuard guard(pool);
      const Tensor small = bytes_of(device, 100), large = bytes_of(device, 3 * kMiB);
      int growing = 0, all = 0;
      for (const MemorySegment& segment : memory_snapshot().segments)
        if (segment.pool == pool.id()) ++all, growing += segment.is_expandable;
      EXPECT_EQ(all, 2) << text;
      EXPECT_TRUE(growing == 0 || growing == 2) << text;
      return growing == 2;
    };
    const bool can = grows("expandable_segments:True");
    EXPECT_EQ(grows(""), can);
    EXPECT_EQ(grows("roundup_power2_divisions:4"), can);
    for (const char* text : {"expandable_segments:False", "max_split_size_mb:64", "garbage_collection_threshold:0.9", "large_segment_size_mb:40"})
      EXPECT_FALSE(grows(text)) << text;
    EXPECT_FALSE(allocator_settings().expandable_segments) << "the text does not ask for it";
  }
}

/// The default grows in place where the setting does.
TEST(Allocator, AThousandGrowingTensorsNeedNoNewSegmentByDefault) {
  CLUTCH_EACH_DEVICE(device) {
    synchronize(device);
    empty_cache(device);
    Tensor last = bytes_of(device, 2 * kMiB);
    const bool grows = memory_snapshot().segments.back().is_expandable;
    const std::uint64_t made = memory_stats(device).at("num_device_alloc");
    for (std::int64_t i = 1; i <= 1000 && grows; ++i) last = bytes_of(device, 2 * kMiB + i * 4096);
    EXPECT_EQ(memory_stats(device).at("num_device_alloc"), made);
    last = {};
    synchronize(device);
    empty_cache(device);
  }
}

TEST(Allocator, SnapshotsHaveWhatTheCountersSay) {
  CLUTCH_EACH_DEVICE(device) {
    for (const char* settings : {"expandable_segments:False", ""}) {
      synchronize(device);
      empty_cache(device);
      Configured configured(settings);
      const std::uint64_t before = memory_reserved(device);
      record_memory_history({.clear_history = true});
      std::vector<Tensor> kept;
      for (int i = 0; i < 50; ++i) {
        const MemoryLabelGuard label(i % 2 ? "odd" : "even");
        Tensor t = bytes_of(device, 1 + i * 300000);
        if (i % 4 == 0) kept.push_back(t);
      }
      synchronize(device);
      empty_cache(device);
      const MemorySnapshot snapshot = memory_snapshot();
      const auto stats = memory_stats(device);
      std::uint64_t reserved = 0, allocated = 0, active = 0, requested = 0;
      for (const MemorySegment& segment : snapshot.segments) {
        if (segment.device != device.index()) continue;
        reserved += segment.total_size, allocated += segment.allocated_size, active += segment.active_size, requested += segment.requested_size;
        std::uint64_t address = segment.address;
        for (const MemoryBlock& block : segment.blocks) {
          EXPECT_EQ(block.address, address);
          address += block.size;
        }
        EXPECT_EQ(address, segment.address + segment.total_size) << "blocks fill their segment";
      }
      EXPECT_EQ(reserved, stats.at("reserved_bytes.all.current")) << settings;
      EXPECT_EQ(allocated, stats.at("allocated_bytes.all.current"));
      EXPECT_EQ(active, stats.at("active_bytes.all.current"));
      EXPECT_EQ(requested, stats.at("requested_bytes.all.current"));
      const auto& trace = snapshot.device_traces.at(static_cast<std::size_t>(device.index()));
      std::uint64_t allocs = 0, frees = 0, mapped = 0;
      for (const MemoryTraceEntry& entry : trace) {
        if (entry.action == "alloc") {
          EXPECT_EQ(entry.label, allocs % 2 ? "odd" : "even");
          EXPECT_EQ(entry.size, 1 + allocs++ * 300000);
        }
        if (entry.action == "free_completed") ++frees;
        if (entry.action == "segment_alloc" || entry.action == "segment_map") mapped += entry.size;
        if (entry.action == "segment_free" || entry.action == "segment_unmap") mapped -= entry.size;
      }
      EXPECT_EQ(allocs, 50u);
      EXPECT_EQ(before + mapped, reserved);
      EXPECT_EQ(frees, 50u - kept.size());
      EXPECT_EQ(trace.back().action, "snapshot");
      stop_memory_history();
      bytes_of(device, 100);
      EXPECT_EQ(memory_snapshot().device_traces.at(static_cast<std::size_t>(device.index())).size(), trace.size()) << "nothing more is recorded";
      record_memory_history({.max_entries = 10});
      for (int i = 0; i < 20; ++i) bytes_of(device, 100 + i);
      const auto ring = memory_snapshot().device_traces.at(static_cast<std::size_t>(device.index()));
      ASSERT_EQ(ring.size(), 10u);
      EXPECT_EQ(ring[8].size, 119u) << "the newest are kept";
      stop_memory_history();
    }
    EXPECT_EQ(code_of([] { record_memory_history({.max_entries = 0}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([] { dump_memory_snapshot("/nonexistent/folder/snapshot.pickle"); }), ErrorCode::io);
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
