// SPDX-License-Identifier: Apache-2.0
// What a profiler costs: launches that it records, and its peer, the same launches without it.
#include "harness/rows.hpp"

#include <clutch/profiler.hpp>

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

}  // namespace

void register_profiler(Rows& rows) {
  for (auto [name, width] : {std::pair{"small", std::int64_t{512}}, std::pair{"20us", std::int64_t{1} << 16}})
    rows.push_back({.name = fmt::format("profiler/{}_kernels", name), .prepare = [width = width](const Device& device) { return recorded(device, width); }});
}

}  // namespace clutch::bench
