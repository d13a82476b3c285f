// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gradients by central differences of a host function in double.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace clutch::testing {

/// What is wrong with a gradient of f at x; empty if each element is within `bound` of the difference, relatively to 1 + its size.
inline std::string compare_gradient(const std::function<double(const std::vector<double>&)>& f, std::vector<double> x, const std::vector<float>& gradient,
                                    double bound = 2e-3) {
  constexpr double kStep = 1e-5;
  if (gradient.size() != x.size()) return fmt::format("{} elements instead of {}", gradient.size(), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    double here = x[i];
    x[i] = here + kStep;
    double above = f(x);
    x[i] = here - kStep;
    double below = f(x);
    x[i] = here;
    double want = (above - below) / (2 * kStep), got = static_cast<double>(gradient[i]);
    if (!(std::fabs(got - want) <= bound * (1 + std::fabs(want)))) return fmt::format("element {} is {} instead of {}", i, got, want);
  }
  return {};
}

}  // namespace clutch::testing
