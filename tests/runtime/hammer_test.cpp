// SPDX-License-Identifier: Apache-2.0
// Many threads at everything that threads share: enumeration, streams, events, the pool, programs, plans, the disk cache.
// Under ThreadSanitizer it runs on the stub driver (tests/stub), which does the copies and fills that are checked here.
#include <clutch/allocator.hpp>
#include <clutch/profiler.hpp>

#include "program/disk_cache.hpp"
#include "runtime/quirks.hpp"
#include "runtime/registry.hpp"
#include "runtime/settings.hpp"
#include "support/fixture.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <thread>

#include <unistd.h>

namespace clutch::testing { namespace {

/// The first device on which threads may share a stream.
const Device& shared_device() {
  for (const Device& device : test_devices())
    if ((detail::claimed_traits(*device.record()).quirks & detail::kQuirkSharedQueueHangs) == 0) return device;
  return test_devices().front();
}

constexpr int kThreads = 4;

int rounds() { return level() == "smoke" ? 60 : 1000; }

/// Runs `body(thread)` in all threads at once and collects what it throws.
void hammer(const std::function<void(int)>& body) {
  std::atomic<int> ready{0};
  std::vector<std::string> wrong(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      ready.fetch_add(1);
      while (ready.load() < kThreads) std::this_thread::yield();
      try {
        body(t);
      } catch (const std::exception& e) {
        wrong[static_cast<std::size_t>(t)] = e.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : wrong) EXPECT_EQ(text, "");
}

void expect(bool fine, const char* what) {
  if (!fine) throw std::runtime_error(what);
}

TEST(Hammer, EnumerationAndDevices) {
  const std::size_t count = test_devices().size();
  hammer([&](int) {
    for (int i = 0; i < rounds() / 10; ++i) {
      auto registry = detail::make_registry();
      expect(registry->records.size() >= count, "a device is missing");
      for (const auto& record : registry->records) (void)detail::claimed_traits(*record);
      (void)Device("0:0").traits();
      DeviceGuard guard(test_devices().back());
      expect(current_device() == test_devices().back(), "the current device is another thread's");
    }
  });
}

/// What ThreadSanitizer must find: run by the test tsan_canary alone.
TEST(Hammer, DISABLED_PlantedRace) {
  int counter = 0;
  hammer([&](int) {
    for (int i = 0; i < 1000; ++i) ++counter;
  });
  EXPECT_GT(counter, 0);
}

TEST(Hammer, TensorsOnSharedAndOwnStreams) {
  for (const Device& device : test_devices()) {
    Stream shared(device);
    const bool share = !known_bug(device, "shared_queue_hangs");
    hammer([&](int t) {
      Stream own(device);
      for (int i = 0; i < rounds(); ++i) {
        const Stream& stream = share && i % 3 == 0 ? shared : own;
        std::int64_t n = 1000 + 37 * t + i;
        Tensor a = full({n}, t + 1, {.device = device}, stream), b = empty({n}, {.device = device}, stream);
        copy_(b, a, {}, stream);
        if (i % 7 == 0) {
          std::vector<float> got = b.to_host<float>(stream);
          expect(got.front() == static_cast<float>(t + 1) && got.back() == static_cast<float>(t + 1), "a tensor has another thread's values");
        }
        if (i % 11 == 0) (void)stream.query();
      }
      own.synchronize();
    });
    shared.synchronize();
  }
}

TEST(Hammer, EventsBetweenStreams) {
  const Device& device = test_devices().front();
  Tensor source = full({4096}, 3, {.device = device});
  synchronize(device);
  hammer([&](int) {
    for (int i = 0; i < rounds(); ++i) {
      Stream a(device), b(device);
      Tensor x = full({4096}, 5, {.device = device}, a);
      Event ready;
      ready.record(a);
      b.wait(ready);
      Tensor y = empty({4096}, {.device = device}, b);
      copy_(y, x, {}, b);
      Tensor z = source.clone(a);  // x was used on two streams when it goes
      if (i % 5 == 0) expect(y.to_host<float>(b)[4095] == 5, "the event did not order the streams");
    }
  });
}

TEST(Hammer, PoolsTrimWhileOthersAllocate) {
  const Device& device = shared_device();
  hammer([&](int t) {
    for (int i = 0; i < rounds(); ++i) {
      std::vector<Tensor> some;
      for (int k = 0; k < 6; ++k) some.push_back(empty({(1 << (4 + (i + k + t) % 16))}, {.device = device}));
      if (i % 9 == t) empty_cache(device);
      if (i % 5 == 0) (void)memory_stats(device);
      if (i % 13 == t) record_memory_history({.max_entries = 100});
      constexpr std::array kSettings{"expandable_segments:True", "roundup_power2_divisions:4", "per_process_memory_fraction:0.8"};
      if (i % 17 == t) set_allocator_settings(kSettings[static_cast<std::size_t>(i) % kSettings.size()]);
      if (i % 19 == 0) expect(memory_snapshot().device_traces.size() == static_cast<std::size_t>(device_count()), "a device has no trace");
      const MemoryLabelGuard label(t % 2 ? "odd" : "even");
      PoolGuard guard(new_pool());
      some.push_back(empty({100}, {.device = device}));
      MemPool pool;
      PoolGuard inner(pool);
      some.push_back(empty({i % 3 ? 100 : 1 << 19}, {.device = device}));
    }
  });
  stop_memory_history();
  set_allocator_settings("");
}

TEST(Hammer, ProgramsPlansAndTheDiskCache) {
  const Device& device = shared_device();
  auto settings = detail::the_settings();
  auto folder = std::filesystem::temp_directory_path() / ("clutch_hammer_" + std::to_string(::getpid()));
  settings.cache_dir.value = folder.string();
  {
    detail::SettingsOverride here(settings);
    hammer([&](int) {
      for (int i = 0; i < 6; ++i) {
        std::string text = "__kernel void hammered(__global float* y) { y[get_global_id(0)] = " + std::to_string(i) + "; }";
        Tensor y = zeros({64}, {.device = device});
        Argument arguments[] = {output(y)};
        launch({.text = text, .entry = "hammered"}, {.global = 64, .local = 1}, arguments);
        synchronize(device);
      }
      detail::Digest key = detail::sha256("hammer");
      for (int i = 0; i < rounds(); ++i) {
        detail::cache_write(folder / "one", key, std::string(static_cast<std::size_t>(1000 + i % 3), 'x'));
        auto read = detail::cache_read(folder / "one", key);
        expect(!read || read->find_first_not_of('x') == std::string::npos, "a torn cache file was read");
      }
    });
  }
  std::filesystem::remove_all(folder);
}

TEST(Hammer, CapturesBesideEagerWork) {
  const Device& device = test_devices().front();
  Tensor shared = full({4096}, 2, {.device = device});
  synchronize(device);
  hammer([&](int t) {
    for (int i = 0; i < rounds() / 4; ++i) {
      Stream stream(device), side(device);
      if (t % 2 == 0) {  // eager work, memory and waits while others capture
        Tensor y = shared.clone(stream);
        expect(y.to_host<float>(stream)[7] == 2, "eager work beside captures went wrong");
        continue;
      }
      Graph graph({.backend = "host"});
      Tensor sum;
      {
        GraphCapture capture(graph, stream, {.mode = CaptureMode::thread_local_});
        Tensor copy = shared.clone(stream);
        Event forked, joined;
        forked.record(stream);
        side.wait(forked);
        fill_(copy.slice(0, 0, 8), 5, {}, side);
        joined.record(side);
        stream.wait(joined);
        sum = copy.clone(stream);
      }
      for (int k = 0; k < 3; ++k) graph.replay(k % 2 ? side : stream);
      side.synchronize();
      stream.synchronize();
      if (i % 3 == 0) {
        std::vector<float> got = sum.to_host<float>(stream);
        expect(got[0] == 5 && got[4095] == 2, "a replay went wrong");
      }
    }
  });
}

TEST(Hammer, DefaultGeneratorAndSettings) {
  const Device& device = shared_device();
  hammer([&](int) {
    for (int i = 0; i < rounds() / 4; ++i) {
      manual_seed(static_cast<std::uint64_t>(i), device);
      (void)randn({100}, {.device = device});
      (void)clutch::settings();
      (void)build_counters();
    }
  });
}

TEST(Hammer, ThirtyTwoThreadsUnderProfilersThatComeAndGo) {
  const Device& device = test_devices().front();
  constexpr int kMany = 32;
  std::atomic<int> left{kMany};
  std::vector<std::string> wrong(kMany);
  std::vector<std::thread> threads;
  for (int t = 0; t < kMany; ++t)
    threads.emplace_back([&, t] {
      try {
        const Stream stream(device);
        for (int i = 0; i < rounds() / 6; ++i) {
          const profiler::Range outer("outer");
          const Tensor x = full({256}, t + 1, {.device = device}, stream);
          const profiler::Range inner("inner");
          const Tensor y = x.clone(stream);
          if (i % 3 == 0) expect(y.to_host<float>(stream)[200] == static_cast<float>(t + 1), "a copy has another thread's values");
        }
      } catch (const std::exception& e) {
        wrong[static_cast<std::size_t>(t)] = e.what();
      }
      left.fetch_sub(1);
    });
  int profiles = 0;
  std::uint64_t events = 0;
  std::string told;
  while (left.load() > 0 || profiles == 0) try {
      profiler::Profiler profiler({.profile_memory = true, .max_events = profiles % 2 == 0 ? 4096 : 1 << 16});
      profiler.start();
      const Tensor own = full({16}, 1, {.device = device});  // the others may not have begun
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      profiler.stop();
      ++profiles;
      events += profiler.totals().events;
      std::map<std::uint64_t, std::vector<const profiler::FunctionEvent*>> open;  // by thread
      const std::vector<profiler::FunctionEvent> all = profiler.events();
      for (const profiler::FunctionEvent& e : all) {
        if (e.on_device || e.activity_type == "cpu_instant_event") continue;
        std::vector<const profiler::FunctionEvent*>& mine = open[e.thread];
        while (!mine.empty() && mine.back()->end_ns <= e.start_ns) mine.pop_back();
        EXPECT_TRUE(mine.empty() || e.end_ns <= mine.back()->end_ns) << e.name << " does not nest in " << mine.back()->name;
        mine.push_back(&e);
      }
    } catch (const std::exception& e) {
      told = e.what();
      ++profiles;
    }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(told, "");
  for (const std::string& text : wrong) EXPECT_EQ(text, "");
  EXPECT_GT(events, 0u);
}

}}  // namespace clutch::testing
