// SPDX-License-Identifier: Apache-2.0
// What a profiler costs: launches that it records, and its peer, the same launches without it. And what recording adds to one launch, by three clocks:
// the launching thread's own, in which other programs do not count, the whole process's, and the wall's.
#include "harness/rows.hpp"

#include <clutch/profiler.hpp>

#include <array>
#include <chrono>
#include <ctime>
#include <utility>

namespace clutch::bench {

void register_profiler(Rows& rows);

namespace {

/// An exponential of two rows of so many numbers.
Work recorded(const Device& device, std::int64_t width) {
  constexpr int kLaunches = 200;  // of each repetition, so that start and stop count little, as in steps of training
  const Tensor x = full({2, width}, 1.0, {.device = device}), y = empty(x.sizes(), {.device = device});
  auto launches = [=](int reps) {
    const Stream stream = current_stream(device);
    for (int i = 0; i < reps * kLaunches; ++i) exp_out(y, x, {}, stream);
    stream.synchronize();
  };
  // One profiler records all samples: what it keeps stays as much as it may be.
  auto profiler = std::make_shared<profiler::Profiler>(profiler::ProfilerOptions{.max_events = 1 << 16});
  Work work;
  work.run = [=](int reps) {
    profiler->start();
    launches(reps);
    profiler->stop();
  };
  work.peers.push_back({.name = "without a profiler", .run = launches});
  work.check = [=]() -> std::string {
    work.run(1);
    std::int64_t kernels = 0;
    for (const profiler::FunctionEvent& e : profiler->events()) kernels += e.activity_type == "kernel";
    return kernels == kLaunches ? "" : fmt::format("{} kernels were recorded, not {}", kernels, kLaunches);
  };
  return work;
}

double seconds_by(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Seconds that recording adds to one launch of a kernel of 18 us or more, a sample being batches with and without it in the order A B B A. It takes the
/// profiler's start and stop in.
Work of_a_launch(const Device& device, clockid_t clock) {
  constexpr int kLaunches = 500;
  const Tensor x = full({2, std::int64_t{1} << 16}, 1.0, {.device = device}), y = empty(x.sizes(), {.device = device});
  auto profiler = std::make_shared<profiler::Profiler>(profiler::ProfilerOptions{.max_events = 1 << 16});
  auto batch = [=](bool records) {
    const Stream stream = current_stream(device);
    const double begin = seconds_by(clock);
    if (records) profiler->start();
    for (int i = 0; i < kLaunches; ++i) exp_out(y, x, {}, stream);
    stream.synchronize();
    if (records) profiler->stop();
    return seconds_by(clock) - begin;
  };
  batch(true);
  Work work;
  work.measure = [=] {
    double added = batch(true);
    for (const bool records : {false, false, true}) added += records ? batch(true) : -batch(false);
    return added / (2 * kLaunches);
  };
  work.check = [=]() -> std::string {
    batch(true);
    std::int64_t kernels = 0;
    for (const profiler::FunctionEvent& e : profiler->events()) kernels += e.activity_type == "kernel" && e.finished;
    return kernels == kLaunches ? "" : fmt::format("{} kernels were recorded, not {}", kernels, kLaunches);
  };
  return work;
}

}  // namespace

void register_profiler(Rows& rows) {
  for (auto [name, width] : {std::pair{"small", std::int64_t{512}}, std::pair{"20us", std::int64_t{1} << 16}})
    rows.push_back({.name = fmt::format("profiler/{}_kernels", name), .prepare = [width = width](const Device& device) { return recorded(device, width); }});
  for (auto [name, clock] : {std::pair{"thread", CLOCK_THREAD_CPUTIME_ID}, {"process", CLOCK_PROCESS_CPUTIME_ID}, {"wall", CLOCK_MONOTONIC}})
    rows.push_back(
        {.name = fmt::format("profiler/of_a_launch/{}", name), .prepare = [clock = clock](const Device& device) { return of_a_launch(device, clock); }});
}

}  // namespace clutch::bench
