// SPDX-License-Identifier: Apache-2.0
#include <clutch/clutch.hpp>
#include <clutch/interop_cl.hpp>

#include <iostream>

int main() {
  clutch::Tensor t = clutch::full({100}, 2.0);
  float sum = clutch::addcdiv(t, t, t).to_host<float>()[99];
  std::cout << "clutch " << clutch::version() << " says " << sum << " on " << t.device() << '\n';
  // Whose plan hangs on a program that the library runs.
  clutch::Tensor bytes = clutch::full({64, 64}, 3, {.dtype = clutch::DType::i8});
  std::int32_t product = clutch::linalg::matmul(bytes, bytes.mT()).to_host<std::int32_t>()[99];
  std::cout << "products of bytes: " << clutch::last_plan() << '\n';
  return sum == 3.0f && product == 9 * 64 && clutch::interop::mem(t) != nullptr ? 0 : 1;
}
