// SPDX-License-Identifier: Apache-2.0
// A kernel of your own, first class: checked before the driver sees it, built once and cached on disk, named in
// errors, captured in graphs.
//
// The kernel: one step of the heat equation on a grid, where each cell moves towards its four neighbours. A lambda
// (clutch::map) cannot say it, since lambdas see one element of each tensor; OpenCL C can.
//
// For your case: put your text into `text`. Bind arguments in the order of its parameters: input(), output() or
// inout() for tensors, value() for numbers (ulong is std::uint64_t, uint std::uint32_t), local_memory() for __local.
#include <clutch/clutch.hpp>
#include <clutch/kernel.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

namespace {
constexpr std::uint64_t kHeight = 60, kWidth = 100;
constexpr int kSteps = 50;
constexpr float kRate = 0.2f;
}  // namespace

int main() {
  const clutch::Device device = clutch::default_device();
  std::printf("device: %s\n", device.name().c_str());
  const clutch::Stream stream(device);

  // The loop makes it right for any number of work-items. fma() says which rounding is meant: a * b + c may be
  // contracted or not. `defines` are part of the program's key; WIDTH is a constant for the compiler.
  const clutch::KernelSource diffuse{.text = R"(
__kernel void diffuse(__global float* out, __global const float* in, float rate, ulong height) {
  for (ulong i = get_global_id(0); i < height * WIDTH; i += get_global_size(0)) {
    const ulong row = i / WIDTH, column = i % WIDTH;
    const float here = in[i];
    const float up = row > 0 ? in[i - WIDTH] : here, down = row + 1 < height ? in[i + WIDTH] : here;
    const float left = column > 0 ? in[i - 1] : here, right = column + 1 < WIDTH ? in[i + 1] : here;
    out[i] = fma(rate, (up + down) + (left + right) - 4.0f * here, here);
  }
})",
                                     .entry = "diffuse",
                                     .defines = {{"WIDTH", "100"}},
                                     .file = "heat.cl"};

  // A hot spot in the middle.
  std::vector<float> start(kHeight * kWidth, 0.0f);
  start[kHeight / 2 * kWidth + kWidth / 2] = 1000;
  clutch::Tensor now = clutch::from_host(start, {kHeight, kWidth}, device, stream), next = clutch::empty({kHeight, kWidth}, {.device = device}, stream);

  // A driver may take fewer work-items in a group for one kernel than for others. Local size 0 lets it choose.
  const std::uint64_t local = std::min<std::uint64_t>(64, clutch::prepare(diffuse, stream).max_work_group());
  for (int i = 0; i < kSteps; ++i) {
    clutch::launch(diffuse, {.global = 32 * local, .local = local},
                   {clutch::output(next), clutch::input(now), clutch::value(kRate, "rate"), clutch::value(kHeight)}, stream);
    std::swap(now, next);
  }

  // Mistakes are errors of the call, with a reason, before the driver sees them. Here a group is too large.
  bool refused = false;
  try {
    clutch::launch(diffuse, {.global = 1 << 20, .local = 1 << 20}, {clutch::output(next), clutch::input(now), clutch::value(kRate), clutch::value(kHeight)},
                   stream);
  } catch (const clutch::Error& e) {
    refused = true;
    std::printf("refused: %s\n", e.what());
  }

  // Check against the same loop on the host, in double. to_host() waits.
  std::vector<double> expected(start.begin(), start.end()), before;
  for (int step = 0; step < kSteps; ++step) {
    before = expected;
    for (std::size_t r = 0; r < kHeight; ++r)
      for (std::size_t c = 0; c < kWidth; ++c) {
        const std::size_t i = r * kWidth + c;
        const double up = before[r > 0 ? i - kWidth : i], down = before[r + 1 < kHeight ? i + kWidth : i];
        const double left = before[c > 0 ? i - 1 : i], right = before[c + 1 < kWidth ? i + 1 : i];
        expected[i] = before[i] + static_cast<double>(kRate) * (up + down + left + right - 4 * before[i]);
      }
  }
  const std::vector<float> got = now.to_host<float>(stream);
  double worst = 0, total = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    worst = std::max(worst, std::fabs(static_cast<double>(got[i]) - expected[i]));
    total += static_cast<double>(got[i]);
  }
  std::printf("after %d steps: the hottest cell has %.3f, all together %.3f\n", kSteps, static_cast<double>(*std::max_element(got.begin(), got.end())), total);
  std::printf("largest error: %.1e\n", worst);
  return refused && worst < 1e-3 ? 0 : 1;
}
