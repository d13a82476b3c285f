// SPDX-License-Identifier: Apache-2.0
// Kernels from lambdas, with their derivatives, as a user writes them.
#include <clutch/clutch.hpp>

#include <cmath>
#include <cstdlib>
#include <iostream>

int main() {
  clutch::Tensor x = clutch::randn({64, 100}, {.seed = 1}), threshold = clutch::full({100}, 0.5);
  auto f = [=](clutch::Expr x, clutch::Expr t) { return clutch::select(x > t, x * clutch::tanh(x), 0.0f); };
  clutch::Tensor y = clutch::map(f, x, threshold);  // broadcast, one launch
  clutch::Tensor norm = clutch::reduce(clutch::Reduce::sum, [](clutch::Expr x) { return x * x; }, x, {.dims = {-1}});
  std::vector<clutch::Tensor> gradients = clutch::map_backward({clutch::full({64, 100}, 1)}, f, {x, threshold});

  std::vector<float> in = x.to_host<float>(), out = y.to_host<float>(), norms = norm.to_host<float>(), slope = gradients[0].to_host<float>();
  double worst = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    double v = static_cast<double>(in[i]), t = std::tanh(v);
    worst = std::max(worst, std::fabs(static_cast<double>(out[i]) - (v > 0.5 ? v * t : 0)));
    worst = std::max(worst, std::fabs(static_cast<double>(slope[i]) - (v > 0.5 ? t + v * (1 - t * t) : 0)));
  }
  for (std::size_t row = 0; row < norms.size(); ++row) {
    double sum = 0;
    for (std::size_t j = 0; j < 100; ++j) sum += static_cast<double>(in[row * 100 + j]) * static_cast<double>(in[row * 100 + j]);
    worst = std::max(worst, std::fabs(static_cast<double>(norms[row]) - sum) / sum);
  }
  std::cout << "largest error " << worst << '\n';
  return worst < 1e-5 ? EXIT_SUCCESS : EXIT_FAILURE;
}
