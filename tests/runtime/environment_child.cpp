// SPDX-License-Identifier: Apache-2.0
// A program of a user's whose environment environment_test.cpp chooses. Prints what it sees.
#include <clutch/clutch.hpp>

#include <iostream>
#include <string_view>

int main(int argc, char** argv) try {
  std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "count") {
    std::cout << "count " << clutch::device_count() << '\n';
  } else if (mode == "default") {
    std::cout << "default " << clutch::default_device().selector() << '\n';
  } else if (mode == "run") {
    clutch::Tensor t = clutch::full({8}, 3);
    std::cout << "ran " << clutch::addcmul(t, t, t).to_host<float>()[7] << '\n';
  }
  return 0;
} catch (const clutch::Error& e) {
  std::cout << "Error " << clutch::name(e.code()) << ": " << e.what() << '\n';
  return 0;
}
