// SPDX-License-Identifier: Apache-2.0
// What torch/bench asks of clutch itself: the sum of two tensors of 1,000 numbers, `times` times, without a wait, beside which it times PyTorch's; and how many
// programs the process has built and loaded.
#include <clutch/device.hpp>
#include <clutch/kernel.hpp>
#include <clutch/ops/fill.hpp>
#include <clutch/pointwise.hpp>

#include <exception>

extern "C" __attribute__((visibility("default"))) int clutch_adds(int times) {
  try {
    static const clutch::Tensor x = clutch::full({1000}, 1.0, {.device = clutch::default_device()});
    for (int i = 0; i < times; ++i) clutch::add(x, x);
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}

extern "C" __attribute__((visibility("default"))) void clutch_programs(clutch::BuildCounters* counters) { *counters = clutch::build_counters(); }
