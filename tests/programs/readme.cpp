// SPDX-License-Identifier: Apache-2.0
#include <clutch/clutch.hpp>
#include <iostream>

int main() {
  for (const clutch::Device& device : clutch::devices()) std::cout << device << '\n';
  clutch::Device device = clutch::default_device();  // CLUTCH_DEVICE, else first GPU, else CPU

  // One step of an optimizer's update: param = fma(-lr, moment / denominator, param), the bits of CUDA on every device.
  clutch::Tensor param = clutch::full({4096, 256}, 1.0, {.device = device});
  clutch::Tensor moment = clutch::arange(0, 256, 1, {.device = device});  // broadcasts over the rows
  clutch::Tensor denominator = clutch::full({4096, 1}, 2.0, {.device = device});
  clutch::addcdiv_(param, moment, denominator, {.value = -0.001});

  // Work on two streams, ordered by an event. Nothing above or below waits but what says so.
  clutch::Stream side(device);
  clutch::Event ready;
  ready.record();
  side.wait(ready);
  clutch::Tensor half = param.to(clutch::DType::bf16, {}, side);
  std::cout << half.select(0, 0).slice(0, 0, 4).to_string(side) << '\n';  // waits

  try {
    clutch::addcdiv(param, clutch::zeros({5}), denominator);
  } catch (const clutch::Error& e) {
    std::cout << e.what() << '\n';  // addcdiv: shapes (4096, 256), (5,), (4096, 1) do not broadcast
  }
}
