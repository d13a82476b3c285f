// SPDX-License-Identifier: Apache-2.0
// Eigenvalues on whatever device there is.
#include <clutch/clutch.hpp>
#include <iostream>

int main() {
  clutch::Device device = clutch::default_device();  // CLUTCH_DEVICE, else first GPU, else CPU
  std::cout << device << '\n';
  clutch::Tensor a = clutch::randn({4096, 8, 8}, {.dtype = clutch::DType::f32, .device = device, .seed = 7});
  auto [w, v, status] = clutch::linalg::eigh(a + a.mT());
  clutch::linalg::require_converged(status);  // waits; throws clutch::Error naming the first failing matrix
  std::vector<float> smallest = w.select(-1, 0).to_host<float>();
  std::cout << smallest[0] << '\n';
}
