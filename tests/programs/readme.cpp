// SPDX-License-Identifier: Apache-2.0
#include <clutch/clutch.hpp>
#include <iostream>

int main() {
  clutch::Device device = clutch::default_device();  // CLUTCH_DEVICE, else first GPU, else CPU
  std::cout << device << '\n';

  // One step of an optimizer's update: param = fma(-lr, moment / denominator, param), the bits of CUDA on every device.
  clutch::Tensor param = clutch::full({4096, 256}, 1.0, {.device = device});
  clutch::Tensor moment = clutch::arange(0, 256, 1, {.device = device});  // broadcasts over the rows
  clutch::Tensor denominator = clutch::full({4096, 1}, 2.0, {.device = device});
  clutch::addcdiv_(param, moment, denominator, {.value = -0.001});
  std::cout << param.select(0, 0).slice(0, 0, 4) << '\n';  // waits
}
