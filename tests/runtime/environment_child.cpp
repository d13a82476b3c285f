// SPDX-License-Identifier: Apache-2.0
// A program of a user's whose environment environment_test.cpp chooses. Prints what it sees.
#include <clutch/clutch.hpp>

#include <CL/cl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string_view>
#include <thread>

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
  } else if (mode == "pin") {
    // A host that starts the driver first: what it sets then comes too late.
    cl_uint count = 0;
    std::array<cl_platform_id, 16> platforms{};
    clGetPlatformIDs(platforms.size(), platforms.data(), &count);
    for (cl_uint i = 0; i < std::min<cl_uint>(count, platforms.size()); ++i) {
      const std::array<cl_context_properties, 3> of{CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(platforms[i]), 0};
      clCreateContextFromType(of.data(), CL_DEVICE_TYPE_ALL, nullptr, nullptr, nullptr);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ::setenv("POCL_AFFINITY", "1", 1);
    std::cout << name(clutch::Partition::create(clutch::default_device(), {.units = 1}).isolation()) << '\n';
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
