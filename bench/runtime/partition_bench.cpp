// SPDX-License-Identifier: Apache-2.0
// The hog next door: what a partition keeps of its speed while kernels of another one never stop. A row's ratio to its peer `alone` is that share. Cores that
// share units of a processor slow each other down whatever clutch does: row partition/host_threads says by how much. On PoCL threads stay on their cores with
// POCL_AFFINITY=1 in the environment: rows partition/*/cores.
#include "harness/rows.hpp"

#include <clutch/partition.hpp>

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace clutch::bench {

void register_partition(Rows& rows);

namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Repeats `work` in a thread of its own while it is switched on.
class Hog {
 public:
  explicit Hog(std::function<void()> work) : work_(std::move(work)), thread_([this] { serve(); }) {}
  Hog(const Hog&) = delete;
  Hog& operator=(const Hog&) = delete;
  ~Hog() {
    change(kEnd);
    thread_.join();
  }
  /// Returns once the hog has begun.
  void on() { change(kOn); }
  /// Returns once the hog has stopped.
  void off() { change(kOff); }

 private:
  enum State { kOff, kOn, kEnd };
  void change(State wanted) {
    std::unique_lock lock(mutex_);
    wanted_ = wanted;
    changed_.notify_all();
    changed_.wait(lock, [&] { return now_ == wanted; });
  }
  void serve() {
    std::unique_lock lock(mutex_);
    while (wanted_ != kEnd) {
      now_ = wanted_;
      changed_.notify_all();
      if (wanted_ == kOff) {
        changed_.wait(lock, [&] { return wanted_ != kOff; });
        continue;
      }
      lock.unlock();
      work_();
      lock.lock();
    }
    now_ = kEnd;
    changed_.notify_all();
  }
  std::function<void()> work_;
  std::mutex mutex_;
  std::condition_variable changed_;
  State wanted_ = kOff, now_ = kOff;
  std::thread thread_;
};

/// A call on a stream, with operands of its own, and its result.
struct Call {
  std::function<void(const Stream&)> run;
  Tensor result;
};

Call compute(const Device& device) {
  const Tensor a = randn({192, 192}, {.device = device, .seed = 1}), b = randn({192, 192}, {.device = device, .seed = 2}),
               c = empty({192, 192}, {.device = device});
  return {[=](const Stream& s) { linalg::matmul_out(c, a, b, {}, s); }, c};
}

Call memory(const Device& device) {
  const Tensor x = randn({8 << 20}, {.device = device, .seed = 3}), y = empty({8 << 20}, {.device = device});
  return {[=](const Stream& s) { add_out(y, x, x, {}, s); }, y};
}

/// What the peers of a row share.
struct Neighbours {
  Partition own, other;
  Stream stream, stream_of_all;
  Call call, call_of_hog;
  std::unique_ptr<Hog> in_other, in_all;  ///< after what they use
};

Work beside_hog(const Device& device, Call (*make)(const Device&)) {
  const int units = device.traits().compute_units;
  auto n = std::make_shared<Neighbours>();
  std::vector<Partition> halves = Partition::split(device, {units - units / 2, units / 2});
  n->own = halves[1], n->other = halves[0];
  n->stream = n->own.make_stream(), n->stream_of_all = Stream(device);
  n->call = make(device), n->call_of_hog = make(device);
  synchronize(device);
  auto hog_on = [call = n->call_of_hog](const Stream& stream) {
    return std::make_unique<Hog>([=] {
      for (int i = 0; i < 4; ++i) call.run(stream);
      stream.synchronize();
    });
  };
  n->in_other = hog_on(n->other.make_stream()), n->in_all = hog_on(Stream(device));
  auto repeat = [](const Neighbours& all, const Stream& stream, int reps) {
    const auto begin = Clock::now();
    for (int r = 0; r < reps; ++r) all.call.run(stream);
    stream.synchronize();
    return since(begin);
  };
  Work work;
  work.run = [=](int reps) {
    n->in_all->off();
    n->in_other->on();
    repeat(*n, n->stream, reps);
  };
  work.peers.push_back({.name = "alone", .timed = [=](int reps) {
                          n->in_all->off(), n->in_other->off();
                          return repeat(*n, n->stream, reps);
                        }});
  work.peers.push_back({.name = "whole device beside the hog", .timed = [=](int reps) {
                          n->in_other->off(), n->in_all->on();
                          return repeat(*n, n->stream_of_all, reps);
                        }});
  work.check = [=]() -> std::string {
    n->in_all->off(), n->in_other->off();
    n->call.run(n->stream);
    const std::vector<std::uint8_t> part = n->call.result.to_bytes(n->stream);
    n->call.run(n->stream_of_all);
    return n->call.result.to_bytes(n->stream_of_all) == part ? "" : "results on the partition differ from those on the whole device";
  };
  return work;
}

/// Seconds of a chain of additions on one core.
double spin(int reps) {
  const auto begin = Clock::now();
  for (int r = 0; r < reps; ++r) {
    float sum[64] = {};
    for (int i = 0; i < 5'000'000; ++i)
      for (float& s : sum) s = s * 0.999f + 1.0f;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (sum[7] < 0) return 0;
  }
  return since(begin);
}

void pin_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

/// The same on the host's cores 0 and 1, without clutch.
Work host_threads() {
  auto hog = std::make_shared<Hog>([] {
    thread_local const bool pinned = (pin_to(0), true);
    if (pinned) spin(1);
  });
  auto on_core_1 = [](int reps) {
    double seconds = 0;
    std::thread([&] {
      pin_to(1);
      seconds = spin(reps);
    }).join();
    return seconds;
  };
  Work work;
  work.run = [=](int reps) {
    hog->on();
    on_core_1(reps);
  };
  work.peers.push_back({.name = "alone", .timed = [=](int reps) {
                          hog->off();
                          return on_core_1(reps);
                        }});
  return work;
}

}  // namespace

void register_partition(Rows& rows) {
  // A row for each isolation, so that its figures tell which one they are of.
  for (const Isolation isolation : {Isolation::threads, Isolation::cores}) {
    const auto lacks = [isolation](const Device& device) -> std::string {
      if (device.traits().compute_units < 2) return "two compute units";
      const Isolation granted = Partition::create(device, {.units = 1}).isolation();
      if (granted == isolation) return {};
      if (granted == Isolation::none) return "sub-devices that run side by side";
      return isolation == Isolation::cores ? "POCL_AFFINITY=1 in the environment as PoCL is loaded" : "environment without POCL_AFFINITY=1";
    };
    rows.push_back({.name = fmt::format("partition/compute/{}", name(isolation)),
                    .prepare = [](const Device& device) { return beside_hog(device, compute); },
                    .lacks = lacks});
    rows.push_back({.name = fmt::format("partition/memory/{}", name(isolation)),
                    .prepare = [](const Device& device) { return beside_hog(device, memory); },
                    .lacks = lacks});
  }
  rows.push_back({.name = "partition/host_threads",
                  .prepare = [](const Device&) { return host_threads(); },
                  .lacks =
                      [](const Device& device) {
                        return device.type() == DeviceType::cpu && std::thread::hardware_concurrency() > 1 ? std::string() : std::string("a CPU of two cores");
                      }});
}

}  // namespace clutch::bench
