// SPDX-License-Identifier: Apache-2.0
// A program of a user's whose environment environment_test.cpp chooses. Prints what it sees.
#include <clutch/clutch.hpp>

#include <iostream>
#include <optional>
#include <string_view>

namespace {
/// Says at the very end whether the work that main() left had ended by then.
struct Late {
  std::optional<clutch::Event> event;
  ~Late() { std::cout << (!event ? "" : event->query() ? "ended\n" : "running\n") << std::flush; }
};
}  // namespace

int main(int argc, char** argv) try {
  std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "count") {
    std::cout << "count " << clutch::device_count() << '\n';
  } else if (mode == "default") {
    std::cout << "default " << clutch::default_device().selector() << '\n';
  } else if (mode == "run") {
    clutch::Tensor t = clutch::full({8}, 3);
    std::cout << "ran " << clutch::addcmul(t, t, t).to_host<float>()[7] << '\n';
  } else if (mode == "leave") {
    static Late late;
    clutch::Tensor t = clutch::full({768, 768}, 0);
    for (int i = 0; i < 20; ++i) t = clutch::linalg::matmul(t, t);
    clutch::Event end;
    end.record();
    late.event = end;
    std::cout << "left\n";
  }
  return 0;
} catch (const clutch::Error& e) {
  std::cout << "Error " << clutch::name(e.code()) << ": " << e.what() << '\n';
  return 0;
}
