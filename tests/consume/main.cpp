// SPDX-License-Identifier: Apache-2.0
#include <clutch/clutch.hpp>
#include <clutch/interop_cl.hpp>

#include <iostream>

int main() {
  clutch::Tensor t = clutch::full({100}, 2.0);
  float sum = clutch::addcdiv(t, t, t).to_host<float>()[99];
  std::cout << "clutch " << clutch::version() << " says " << sum << " on " << t.device() << '\n';
  return sum == 3.0f && clutch::interop::mem(t) != nullptr ? 0 : 1;
}
