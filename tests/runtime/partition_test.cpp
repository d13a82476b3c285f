// SPDX-License-Identifier: Apache-2.0
// Partitions of a device: units, results, isolation, limits. Order is forced by events, never by time.
#include "runtime/quirks.hpp"
#include "runtime/registry.hpp"
#include "runtime/runtime.hpp"
#include "support/fixture.hpp"
#include "support/gate.hpp"

#include <clutch/partition.hpp>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <thread>

namespace clutch::testing { namespace {

bool is_stub(const Device& device) { return device.platform().find("stub") != std::string::npos; }
/// True if the driver has sub-devices, so that partitions are not soft.
bool is_divisible(const Device& device) {
  return device.traits().compute_units > 1 && Partition::create(device, {.units = 1}).impl()->device() != interop::device_id(device);
}

TEST(Partitions, UnitsAreDisjointAndComeBack) {
  CLUTCH_EACH_DEVICE(device) {
    const int all = device.traits().compute_units;
    ASSERT_EQ(free_units(device), all);
    {
      const Partition one = Partition::create(device, {.units = 1});
      EXPECT_EQ(one.device(), device);
      EXPECT_GE(one.units(), 1);
      EXPECT_EQ(free_units(device), all - one.units());
      EXPECT_EQ(one.traits().compute_units, one.units());
      EXPECT_EQ(one.stream().partition(), one);
      std::vector<Partition> rest;
      std::vector<char> owners(static_cast<std::size_t>(all));
      while (free_units(device) > 0) rest.push_back(Partition::create(device, {.units = 1}));
      rest.push_back(one);
      for (const Partition& p : rest)
        for (int unit = p.first_unit(); unit < p.first_unit() + p.units(); ++unit) EXPECT_EQ(owners.at(static_cast<std::size_t>(unit))++, 0) << unit;
      const std::string said = message_of([&] { Partition::create(device, {.units = 1}); });
      EXPECT_NE(said.find(fmt::format("0 of {} are free", all)), std::string::npos) << said;
    }
    EXPECT_EQ(free_units(device), all);
    // A stream keeps its partition.
    Stream stream = Partition::create(device, {.units = 1}).make_stream();
    EXPECT_LT(free_units(device), all);
    EXPECT_FALSE(stream.partition().empty());
    EXPECT_TRUE(Stream(device).partition().empty());
    stream = Stream();
    EXPECT_EQ(free_units(device), all);
    // The whole device is no sub-device.
    const Partition whole = Partition::create(device, {.units = all});
    EXPECT_EQ(whole.units(), all);
    EXPECT_EQ(free_units(device), 0);
  }
}

TEST(Partitions, UnitsComeBackWhenTheWorkOfTheirStreamsIsDone) {
  CLUTCH_EACH_DEVICE(device) {
    // The first one's locks: completing an event for which work waits hangs, too. The second waits for a queue's work when it is released.
    if (known_bug(device, "shared_queue_hangs") || is_stub(device)) continue;
    const int all = device.traits().compute_units;
    const Tensor x = full({16}, 0, {.device = device});
    synchronize(device);  // since another stream uses x
    Stream stream = Partition::create(device, {.units = 1}).make_stream();
    fill_(x, 1, {}, stream);
    stream.synchronize();
    Gate gate(stream);
    fill_(x, 2, {}, stream);
    stream.flush();
    stream = Stream();
    const int left = free_units(device);
    EXPECT_LT(left, all) << "a kernel that has not ended may run on them";
    EXPECT_EQ(code_of([&] { Partition::create(device, {.units = all}); }), ErrorCode::invalid_argument);
    gate.open();
    synchronize(device);
    EXPECT_EQ(free_units(device), all);
    EXPECT_EQ(Partition::create(device, {.units = all}).units(), all);
    EXPECT_EQ(x.to_host<float>()[15], 2);
  }
}

TEST(Partitions, TensorsDoNotKeepUnits) {
  CLUTCH_EACH_DEVICE(device) {
    const int all = device.traits().compute_units;
    Tensor x, more;
    Generator generator;
    {
      const Partition p = Partition::create(device, {.units = 1});
      const PartitionGuard guard(p);
      x = full({1 << 16}, 3, {.device = device});
      generator = Generator(device, 7);
      more = rand({100}, {.device = device, .generator = generator});
      p.stream().synchronize();
    }
    EXPECT_EQ(free_units(device), all);
    if (is_stub(device)) continue;
    EXPECT_EQ(x.to_host<float>().back(), 3);
    const Generator like(device, 7);
    EXPECT_EQ(more.to_host<float>(), rand({100}, {.device = device, .generator = like}).to_host<float>());
    EXPECT_EQ(rand({9}, {.device = device, .generator = generator}).to_host<float>(), rand({9}, {.device = device, .generator = like}).to_host<float>());
    // Their memory goes back and is used again, while work of other streams on it runs.
    const Stream other(device);
    for (int i = 0; i < 20; ++i) {
      Tensor made;
      {
        const Stream s = Partition::create(device, {.units = 1}).make_stream();
        made = full({1 << 16}, i, {.device = device}, s);
        s.synchronize();
      }
      const Tensor copy = made.clone(other);
      made = Tensor();
      const Tensor next = full({1 << 16}, -1, {.device = device}, Partition::create(device, {.units = 1}).make_stream());
      EXPECT_EQ(copy.to_host<float>(other).back(), static_cast<float>(i));
    }
    synchronize(device);
    EXPECT_EQ(free_units(device), all);
  }
}

TEST(Partitions, ASplitIsWholeOrNothing) {
  CLUTCH_EACH_DEVICE(device) {
    const int all = device.traits().compute_units;
    EXPECT_EQ(code_of([&] { Partition::split(device, {all, 1}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(free_units(device), all);
    EXPECT_EQ(code_of([&] { Partition::split(device, {1, 0}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(free_units(device), all);
    EXPECT_TRUE(Partition::split(device, {}).empty());
    constexpr int kMost = std::numeric_limits<int>::max();
    const std::string said = message_of([&] { Partition::split(device, {kMost, kMost}); });
    EXPECT_NE(said.find("got 4294967294"), std::string::npos) << said;
    EXPECT_EQ(free_units(device), all);
    if (all < 2) continue;
    const int second = all / 2;
    const std::vector<Partition> halves = Partition::split(device, {all - second, second});
    ASSERT_EQ(halves.size(), 2u);
    EXPECT_EQ(halves[0].units(), all - second);
    EXPECT_EQ(halves[1].units(), second);
    EXPECT_EQ(halves[0].first_unit(), 0);
    EXPECT_EQ(halves[1].first_unit(), all - second);
    EXPECT_EQ(free_units(device), 0);
  }
}

TEST(Partitions, WrongOptionsAreRefused) {
  CLUTCH_EACH_DEVICE(device) {
    for (const PartitionOptions& wrong : {PartitionOptions{}, PartitionOptions{.units = -1}, PartitionOptions{.units = 1, .workqueue_limit = -1},
                                          PartitionOptions{.units = device.traits().compute_units + 1}})
      EXPECT_EQ(code_of([&] { Partition::create(device, wrong); }), ErrorCode::invalid_argument);
    const Partition none;
    EXPECT_EQ(code_of([&] { none.units(); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { none.stream(); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { PartitionGuard guard(none); }), ErrorCode::invalid_argument);
    EXPECT_EQ(free_units(device), device.traits().compute_units);
  }
}

TEST(Partitions, GuardsNestAndSetStreamsAndTraits) {
  CLUTCH_EACH_DEVICE(device) {
    const Stream before = current_stream(device);
    detail::Runtime& runtime = detail::runtime_for(device);
    const int all = device.traits().compute_units;
    const Partition a = Partition::create(device, {.units = 1, .soft = true}), limited = Partition::create(device, {.workqueue_limit = 3});
    EXPECT_EQ(limited.units(), all);
    EXPECT_EQ(limited.workqueue_limit(), 3);
    EXPECT_EQ(limited.isolation(), Isolation::none);
    {
      PartitionGuard one(a);
      EXPECT_EQ(current_stream(device), a.stream());
      EXPECT_EQ(Stream(device).partition(), a);
      EXPECT_EQ(runtime.traits().compute_units, 1);
      EXPECT_EQ(device.traits().compute_units, all);
      const auto* plans = &runtime.plans();
      {
        PartitionGuard two(limited);
        EXPECT_EQ(Stream(device).partition(), limited);
        EXPECT_EQ(runtime.traits().compute_units, all);
        if (all > 1) {
          EXPECT_NE(&runtime.plans(), plans);
        }
      }
      EXPECT_EQ(&runtime.plans(), plans);
      EXPECT_EQ(current_stream(device).partition(), a);
      std::thread([&] {
        EXPECT_EQ(current_stream(device), before) << "guards are per thread";
        EXPECT_EQ(runtime.traits().compute_units, all);
      }).join();
    }
    EXPECT_EQ(current_stream(device), before);
    EXPECT_EQ(runtime.traits().compute_units, all);
  }
}

/// The work-groups of a product are as many as the units that the guard's partition has: with all of them there are more.
TEST(Partitions, OpsChooseForTheUnitsOfTheGuardsPartition) {
  CLUTCH_EACH_DEVICE(device) {
    if (is_stub(device) || !is_divisible(device) || device.type() != DeviceType::cpu) continue;
    const Tensor a = full({512, 512}, 1, {.device = device});
    synchronize(device);
    const Partition one = Partition::create(device, {.units = 1});
    const Stream stream = one.stream();
    const auto groups = [&] {
      linalg::matmul(a, a, {}, stream);
      const interop::Launched launched = interop::last_launch();
      clReleaseKernel(launched.kernel);
      stream.synchronize();
      return launched.geometry.global / std::max<std::uint64_t>(launched.geometry.local, 1);
    };
    const std::uint64_t of_all = groups();
    const PartitionGuard guard(one);
    EXPECT_LT(groups(), of_all);
  }
}

/// Results of a few ops of unlike kinds on the current stream, as bytes.
std::vector<std::byte> results(const Device& device) {
  std::vector<std::byte> all;
  auto add = [&](const Tensor& t) {
    const std::vector<float> values = t.contiguous().to_host<float>();
    const auto raw = std::as_bytes(std::span(values));
    all.insert(all.end(), raw.begin(), raw.end());
  };
  const Tensor x = randn({96, 80}, {.device = device, .seed = 7}), y = randn({80, 33}, {.device = device, .seed = 8});
  add(x);
  add(linalg::matmul(x, y));
  add(sum(x, {.dims = {1}}));
  add(nn::softmax(x, 1));
  add(cumsum(x, 0));
  return all;
}

TEST(Partitions, GiveTheBitsOfTheWholeDevice) {
  CLUTCH_EACH_DEVICE(device) {
    if (is_stub(device)) continue;  // which computes nothing
    const std::vector<std::byte> want = results(device);
    for (const bool soft : {true, false}) {
      const Partition p = Partition::create(device, {.units = 1, .workqueue_limit = 1, .soft = soft});
      PartitionGuard guard(p);
      EXPECT_EQ(results(device), want) << (soft ? "soft" : name(p.isolation()));
    }
  }
}

TEST(Partitions, TensorsOfAllPartitionsMix) {
  CLUTCH_EACH_DEVICE(device) {
    if (device.traits().compute_units < 2) continue;
    const std::vector<Partition> parts = Partition::split(device, {1, 1});
    Stream a = parts[0].make_stream(), b = parts[1].make_stream();
    const Tensor x = full({1000}, 3, {.device = device}, a);
    Event made;
    made.record(a);
    b.wait(made);
    const Tensor copy = x.clone(b);
    EXPECT_EQ(copy.to_host<float>(b)[999], 3);
    Stream of_none(device);
    b.synchronize();
    EXPECT_EQ(copy.clone(of_none).to_host<float>(of_none)[999], 3);
  }
}

/// Work-groups of a launch of the kernel with a partition's stream.
std::uint64_t groups_on(const Stream& stream, std::int64_t length) {
  fill_(empty({length}, {.device = stream.device()}, stream), 1, {}, stream);
  const interop::Launched launched = interop::last_launch();
  clReleaseKernel(launched.kernel);
  stream.synchronize();
  return launched.geometry.global / std::max<std::uint64_t>(launched.geometry.local, 1);
}

TEST(Partitions, SoftOnesStartAsManyGroupsAsTheirUnitsHold) {
  CLUTCH_EACH_DEVICE(device) {
    const Partition one = Partition::create(device, {.units = 1, .soft = true});
    EXPECT_EQ(one.isolation(), Isolation::none);
    constexpr std::int64_t kLength = 1 << 22;
    const std::uint64_t all = groups_on(Stream(device), kLength), some = groups_on(one.make_stream(), kLength);
    EXPECT_LT(some, all);
    if (device.type() == DeviceType::cpu) {
      EXPECT_EQ(some, 1u);
    }
    // A caller's kernel runs as it asks: it may not loop.
    if (is_stub(device)) continue;
    Stream stream = one.make_stream();
    const Tensor to = empty({64}, {.dtype = DType::i32, .device = device}, stream);
    launch({.text = "__kernel void count(__global int* to) { to[get_global_id(0)] = get_num_groups(0); }", .entry = "count"}, {.global = 64, .local = 4},
           {output(to)}, stream);
    EXPECT_EQ(to.to_host<std::int32_t>(stream)[63], 16);
  }
}

/// A kernel of one partition holds its unit until a kernel of another one has run: together they end only if neither takes the other's unit.
TEST(Partitions, AKernelLeavesOtherPartitionsTheirUnits) {
  CLUTCH_EACH_DEVICE(device) {
    if (is_stub(device) || !is_divisible(device)) continue;
    const std::vector<Partition> parts = Partition::split(device, {1, 1});
    const bool takes_turns = known_bug(device, "queues_take_turns");
    EXPECT_EQ(parts[0].isolation() == Isolation::none, takes_turns);
    if (takes_turns) continue;  // the test would never end
    const KernelSource hold{.text = R"(
__kernel void hold(__global volatile int* flag, __global int* ended) {
  for (long turn = 0; turn < (1L << 33) && atomic_add(flag, 0) == 0; ++turn) {}
  ended[get_global_id(0)] = atomic_add(flag, 0);
}
__kernel void let_go(__global volatile int* flag) { atomic_xchg(flag, 1); })",
                            .entry = "hold"};
    KernelSource let_go = hold;
    let_go.entry = "let_go";
    for (const bool first_holds : {true, false}) {
      Stream holds = parts[first_holds ? 0 : 1].make_stream(), frees = parts[first_holds ? 1 : 0].make_stream();
      const Tensor flag = zeros({1}, {.dtype = DType::i32, .device = device}, holds), ended = zeros({8}, {.dtype = DType::i32, .device = device}, holds);
      // Compiled at the first launch, and while that lasts nothing else of this driver starts.
      const Tensor warm = full({1}, 1, {.dtype = DType::i32, .device = device}, holds);
      launch(hold, {.global = 8, .local = 1}, {inout(warm), output(ended)}, holds);
      launch(let_go, {.global = 1, .local = 1}, {inout(warm)}, holds);
      holds.synchronize();
      launch(hold, {.global = 8, .local = 1}, {inout(flag), output(ended)}, holds);
      holds.flush();
      launch(let_go, {.global = 1, .local = 1}, {inout(flag)}, frees);
      frees.synchronize();
      for (const std::int32_t got : ended.to_host<std::int32_t>(holds)) EXPECT_EQ(got, 1);
    }
  }
}

TEST(Partitions, TheWorkqueueLimitHoldsBackFurtherStreams) {
  CLUTCH_EACH_DEVICE(device) {
    if (known_bug(device, "shared_queue_hangs")) continue;  // its locks: completing an event for which work waits hangs, too
    for (const int limit : {1, 2, 3}) {
      const Partition p = Partition::create(device, {.workqueue_limit = limit});
      std::vector<Stream> streams;
      std::vector<Tensor> tensors;
      std::vector<std::unique_ptr<Gate>> gates;
      for (int i = 0; i <= limit; ++i) {
        streams.push_back(p.make_stream());
        tensors.push_back(empty({16}, {.device = device}, streams.back()));
        if (i < limit) gates.push_back(std::make_unique<Gate>(streams.back()));
        fill_(tensors.back(), i, {}, streams.back());
      }
      // The last stream waits for the first, whose last command is the oldest.
      for (const Stream& s : streams) EXPECT_FALSE(s.query());
      if (limit > 1) {
        gates.back()->open();
        streams[static_cast<std::size_t>(limit) - 1].synchronize();
        EXPECT_FALSE(streams.back().query());
      }
      gates.front()->open();
      streams.back().synchronize();
      EXPECT_TRUE(streams.front().query());
      EXPECT_EQ(tensors.back().to_host<float>(streams.back())[15], static_cast<float>(limit));
      for (const auto& gate : gates) gate->open();
      // Streams without work do not count.
      for (const Stream& s : streams) s.synchronize();
      Gate gate(streams.front());
      fill_(tensors.front(), 9, {}, streams.front());
      if (limit > 1) {
        EXPECT_EQ(full({4}, 2, {.device = device}, streams.back()).to_host<float>(streams.back())[3], 2);
        EXPECT_FALSE(streams.front().query());
      }
      gate.open();
      for (const Stream& s : streams) s.synchronize();
    }
  }
}

TEST(Partitions, TheWorkqueueLimitCountsStreamsThatAreGone) {
  CLUTCH_EACH_DEVICE(device) {
    if (known_bug(device, "shared_queue_hangs") || is_stub(device)) continue;  // as above
    const Partition p = Partition::create(device, {.workqueue_limit = 1});
    const Tensor x = full({16}, 0, {.device = device}), y = full({16}, 0, {.device = device});
    synchronize(device);  // since other streams use them
    Stream gone = p.make_stream(), next = p.make_stream();
    for (const Stream& s : {gone, next}) {
      fill_(s == gone ? x : y, 1, {}, s);
      s.synchronize();
    }
    Gate gate(gone);
    fill_(x, 2, {}, gone);
    gone = Stream();
    fill_(y, 2, {}, next);
    next.flush();
    EXPECT_FALSE(next.query());
    gate.open();
    next.synchronize();
    EXPECT_EQ(x.to_host<float>(next)[0], 2);
  }
}

/// While one thread waits for its turn, others give work to the stream that it waits for.
TEST(Partitions, AMappingThatWaitsForItsTurnKeepsNobodyElse) {
  CLUTCH_EACH_DEVICE(device) {
    if (known_bug(device, "shared_queue_hangs")) continue;
    const Partition p = Partition::create(device, {.workqueue_limit = 1});
    const Tensor x = zeros({16}, {.device = device}), y = zeros({16}, {.device = device});
    synchronize(device);
    const Stream holds = p.make_stream(), waits = p.make_stream();
    Gate gate(holds);
    fill_(x, 1, {}, holds);
    auto mapped = std::async(std::launch::async, [&] { return HostMapping(y, MapAccess::read, waits).bytes().size(); });
    while (waits.query()) std::this_thread::yield();
    auto more = std::async(std::launch::async, [&] { fill_(x, 2, {}, holds); });
    EXPECT_EQ(more.wait_for(std::chrono::seconds(30)), std::future_status::ready);
    gate.open();
    more.get();
    EXPECT_EQ(mapped.get(), 64u);
    synchronize(device);
  }
}

/// Kernels count how many of them run at once.
TEST(Partitions, NoMoreStreamsThanTheLimitRunAtOnceInManyThreads) {
  const KernelSource count{.text = R"(
__kernel void count(__global volatile int* running) {
  atomic_max(running + 1, atomic_inc(running) + 1);
  for (volatile int i = 0; i < 20000; ++i) {}
  atomic_dec(running);
})",
                           .entry = "count"};
  CLUTCH_EACH_DEVICE(device) {
    if (is_stub(device) || known_bug(device, "shared_queue_hangs")) continue;
    for (const int limit : {1, 2}) {
      const Partition p = Partition::create(device, {.workqueue_limit = limit});
      const Tensor running = zeros({2}, {.dtype = DType::i32, .device = device});
      launch(count, {.global = 1, .local = 1}, {inout(running)});
      synchronize(device);
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
          for (int round = 0; round < 3; ++round) {
            const Stream own = p.make_stream();  // gone with work in flight
            for (int i = 0; i < 12; ++i) {
              launch(count, {.global = 1, .local = 1}, {inout(running)}, own);
              if (i % 4 == t) own.flush();
            }
          }
        });
      for (std::thread& thread : threads) thread.join();
      synchronize(device);
      const std::vector<std::int32_t> counts = running.to_host<std::int32_t>();
      EXPECT_EQ(counts[0], 0);
      EXPECT_GE(counts[1], 1);
      EXPECT_LE(counts[1], limit);
    }
  }
}

TEST(Partitions, ThreadsShareALimit) {
  const Device& device = test_devices().back();
  if (known_bug(device, "shared_queue_hangs")) return;
  const Partition p = Partition::create(device, {.workqueue_limit = 2});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Stream own = p.make_stream();
      for (int i = 0; i < 50; ++i)
        if (full({64}, t * 100 + i, {.device = device}, own).to_host<float>(own)[63] != static_cast<float>(t * 100 + i)) ++wrong;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Partitions, GraphsReplayOnStreamsOfAny) {
  CLUTCH_EACH_DEVICE(device) {
    const Partition soft = Partition::create(device, {.units = 1, .workqueue_limit = 1, .soft = true});
    std::vector<Stream> streams{Stream(device), soft.make_stream()};
    if (device.traits().compute_units > 1) streams.push_back(Partition::create(device, {.units = 1}).make_stream());
    for (const Stream& captured : streams)
      for (const std::string& backend : {std::string("host"), std::string("native")}) {
        if (backend == "native" && device.traits().command_buffer == 0) continue;
        const Tensor x = zeros({64}, {.device = device}, captured), y = zeros({64}, {.device = device}, captured);
        captured.synchronize();
        Graph graph({.backend = backend});
        graph.capture_begin(captured);
        copy_(y, x, {}, captured);
        fill_(x, 5, {}, captured);
        try {
          graph.capture_end();
        } catch (const Error& e) {
          if (e.code() == ErrorCode::not_supported) continue;
          throw;
        }
        for (const Stream& s : streams) {
          fill_(x, 2, {}, s);
          graph.replay(s);
          EXPECT_EQ(y.to_host<float>(s)[63], 2) << backend;
          EXPECT_EQ(x.to_host<float>(s)[0], 5) << backend;
        }
      }
  }
}

TEST(Partitions, CallersQueuesOfSubDevicesAreWrapped) {
  CLUTCH_EACH_DEVICE(device) {
    cl_device_id whole = interop::device_id(device);
    const cl_device_partition_property one[] = {CL_DEVICE_PARTITION_BY_COUNTS, 1, CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
    cl_device_id part = nullptr;
    if (is_stub(device) || device.traits().compute_units < 2 || clCreateSubDevices(whole, one, 1, &part, nullptr) != CL_SUCCESS) continue;
    cl_device_id both[] = {whole, part};
    cl_int status = CL_SUCCESS;
    for (const bool names_device : {true, false}) {
      cl_context context = clCreateContext(nullptr, names_device ? 2 : 1, names_device ? both : &part, nullptr, nullptr, &status);
      ASSERT_EQ(status, CL_SUCCESS);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
      cl_command_queue queue = clCreateCommandQueue(context, part, CL_QUEUE_PROFILING_ENABLE, &status);
#pragma GCC diagnostic pop
      ASSERT_EQ(status, CL_SUCCESS);
      cl_device_id named[2] = {};  // some drivers name the device in place of its part
      std::size_t bytes = 0;
      ASSERT_EQ(clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof named, named, &bytes), CL_SUCCESS);
      if (named[0] == whole) {
        {
          Stream stream = interop::wrap(queue);
          EXPECT_EQ(stream.device(), device);
          StreamGuard guard(stream);
          const Tensor x = interop::wrap(clCreateBuffer(context, CL_MEM_READ_WRITE, 400, nullptr, &status), {100}, DType::f32);
          clReleaseMemObject(interop::mem(x));
          fill_(x, 4, {}, stream);
          EXPECT_EQ(x.to_host<float>(stream)[99], 4);
        }
        interop::release(context);
      } else {
        EXPECT_EQ(code_of([&] { interop::wrap(queue); }), ErrorCode::no_device);
      }
      clReleaseCommandQueue(queue);
      clReleaseContext(context);
    }
    clReleaseDevice(part);
  }
}

/// Where the driver demands that contexts name sub-devices, parts are halves of halves.
TEST(Partitions, NamedPartsAreHalvesOfHalves) {
  CLUTCH_EACH_DEVICE(device) {
    const std::vector<detail::SubDevice> named = detail::named_sub_devices(*device.record());
    if (named.empty()) continue;
    const int all = device.traits().compute_units;
    EXPECT_EQ(named[0].units, (detail::UnitRange{0, all - all / 2}));
    EXPECT_LE(named.size(), 30u);
    for (const detail::SubDevice& part : named) {
      EXPECT_EQ(detail::device_value<cl_uint>(part.id, CL_DEVICE_MAX_COMPUTE_UNITS), static_cast<cl_uint>(part.units.count));
      EXPECT_LE(part.units.end(), all);
    }
    if (all < 8) continue;
    const Partition three = Partition::create(device, {.units = 3});
    EXPECT_EQ(three.units(), 4) << "the smallest part that is large enough";
    EXPECT_NE(three.isolation(), Isolation::none);
    const Partition five = Partition::create(device, {.units = 3});
    EXPECT_EQ(five.first_unit(), 4);
    EXPECT_EQ(free_units(device), all - 8);
  }
}

/// What the system tells of the process's threads: time that each has run so far, in nanoseconds, by the thread's number.
std::map<std::string, std::uint64_t> run_times() {
  std::map<std::string, std::uint64_t> times;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", none)) {
    std::uint64_t ns = 0;
    std::ifstream(entry.path() / "schedstat") >> ns;
    times[entry.path().filename().string()] = ns;
  }
  return times;
}

/// The cores that a thread may run on, as the system writes them: "3", "0-7".
std::string cores_of(const std::string& thread) {
  std::ifstream status("/proc/self/task/" + thread + "/status");
  constexpr std::string_view kKey = "Cpus_allowed_list:";
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(kKey)) return line.substr(line.find_first_not_of(" \t", kKey.size()));
  return {};
}

/// Cores of the threads that ran while `stream` had much to do.
std::set<std::string> cores_used(const Stream& stream) {
  const Tensor x = full({1 << 20}, 1.0, {.device = stream.device()}, stream), y = empty({1 << 20}, {.device = stream.device()}, stream);
  exp_out(y, x, {}, stream);
  stream.synchronize();
  const auto before = run_times();
  for (int i = 0; i < 100; ++i) exp_out(y, x, {}, stream);
  stream.synchronize();
  const auto after = run_times();
  const std::string self = std::filesystem::read_symlink("/proc/thread-self").filename().string();
  std::set<std::string> cores;
  std::uint64_t most = 0;
  for (const auto& [thread, ns] : after) most = std::max(most, thread == self ? 0 : ns - (before.contains(thread) ? before.at(thread) : 0));
  for (const auto& [thread, ns] : after)
    if (thread != self && ns - (before.contains(thread) ? before.at(thread) : 0) > most / 2) cores.insert(cores_of(thread));
  return cores;
}

/// Run a second time with POCL_AFFINITY=1 in the environment, which PoCL reads as it is loaded.
TEST(Partitions, TellWhetherTheirThreadsStayOnCores) {
  const char* affinity = std::getenv("POCL_AFFINITY");
  const bool pinned = affinity && std::string_view(affinity) == "1";
  CLUTCH_EACH_DEVICE(device) {
    if (device.platform() != "Portable Computing Language" || !is_divisible(device)) continue;
    const std::vector<Partition> parts = Partition::split(device, {1, 1});
    for (const Partition& part : parts) {
      EXPECT_EQ(part.isolation(), pinned ? Isolation::cores : Isolation::threads);
      EXPECT_EQ(name(part.isolation()), pinned ? "cores" : "threads");
    }
    if (!pinned || !std::filesystem::exists("/proc/thread-self/schedstat")) continue;
    // PoCL takes the cores by their numbers: a process that may not have the first two cannot see them kept.
    const std::string own = cores_of(std::filesystem::read_symlink("/proc/thread-self").filename().string());
    if (!own.starts_with("0-")) continue;
    const std::set<std::string> first = cores_used(parts[0].stream()), second = cores_used(parts[1].stream());
    EXPECT_EQ(first.size(), 1u) << fmt::format("{}", fmt::join(first, "; "));
    EXPECT_EQ(second.size(), 1u) << fmt::format("{}", fmt::join(second, "; "));
    EXPECT_NE(first, second);
    for (const auto& cores : {first, second})
      for (const std::string& core : cores) EXPECT_EQ(core.find_first_of("-,"), std::string::npos) << core;
  }
}

}}  // namespace clutch::testing
