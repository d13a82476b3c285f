// SPDX-License-Identifier: Apache-2.0
// Bits that match: fma(value, num / den, x), CUDA's bits, on every device.
#include <clutch/clutch.hpp>

#include <cmath>
#include <iostream>

int main() {
  for (const clutch::Device& device : clutch::devices()) {
    clutch::Tensor x = clutch::from_host<float>({0.1f, 0.2f, 0.3f}, device);
    clutch::Tensor num = clutch::from_host<float>({1.0f, 2.0f, 3.0f}, device);
    clutch::Tensor den = clutch::from_host<float>({3.0f, 7.0f, 11.0f}, device);
    clutch::addcdiv_(x, num, den, {.value = -0.1, .order = clutch::AddcOrder::fma_of_quotient});
    std::vector<float> got = x.to_host<float>();
    for (int i = 0; i < 3; ++i) {
      const float in[] = {0.1f, 0.2f, 0.3f}, n[] = {1, 2, 3}, d[] = {3, 7, 11};
      if (got[static_cast<std::size_t>(i)] != std::fma(-0.1f, n[i] / d[i], in[i])) return 1;
    }
    std::cout << device << ": the bits match\n";
  }
}
