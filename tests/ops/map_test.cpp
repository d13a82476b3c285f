// SPDX-License-Identifier: Apache-2.0
#include "cases/map.hpp"

#include "support/fixture.hpp"

namespace clutch::testing {
namespace {

TEST(Map, Program) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor x = arange(-5, 100, 0.5, {.device = device}), t = full({1}, 3, {.device = device});
    auto f = [](Expr a, Expr b) { return select(a > b, a * tanh(a), 0.0f); };
    Tensor y = map(f, x, t);
    std::vector<float> got = y.to_host<float>(), in = x.to_host<float>();
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], in[i] > 3 ? in[i] * std::tanh(in[i]) : 0.0f, 1e-5f) << i;
    std::cout << last_plan() << "\n" << trace(f, std::array{DType::f32, DType::f32}).text() << trace(f, std::array{DType::f32, DType::f32}).backward().text();
  }
}

}  // namespace
}  // namespace clutch::testing
