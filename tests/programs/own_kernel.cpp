// SPDX-License-Identifier: Apache-2.0
// A kernel of the caller's, first class: checked, cached, named like ours.
#include <clutch/clutch.hpp>
#include <clutch/kernel.hpp>

#include <algorithm>
#include <iostream>

int main() {
  clutch::Device device = clutch::default_device();
  clutch::Stream stream(device);
  std::uint64_t n = 1000;
  clutch::Tensor x = clutch::arange(0, 1000, 1, {.device = device}, stream), y = clutch::full({1000}, 1, {.device = device}, stream);
  clutch::KernelSource saxpy{
      .text =
          R"(__kernel void saxpy(__global float* y, __global const float* x, float a, ulong n) { for (ulong i = get_global_id(0); i < n; i += get_global_size(0)) y[i] = fma(a, x[i], y[i]); })",
      .entry = "saxpy"};
  // A driver may take fewer work-items for one kernel than for others.
  std::uint64_t local = std::min<std::uint64_t>(64, clutch::prepare(saxpy, stream).max_work_group());
  clutch::launch(saxpy, {.global = 64 * local, .local = local}, {clutch::inout(y), clutch::input(x), clutch::value(2.0f), clutch::value(n)}, stream);
  float last = y.to_host<float>(stream)[999];
  std::cout << last << '\n';
  return last == 1999 ? 0 : 1;
}
