// SPDX-License-Identifier: Apache-2.0
// Replays a saved graph and prints its tensor y, then how many programs were built.
#include <clutch/clutch.hpp>

#include <cstdio>

int main(int count, char** arguments) {
  if (count != 3) return 2;
  try {
    clutch::Device device(arguments[2]);
    device.traits();  // builds its own programs
    auto before = clutch::build_counters().built;
    clutch::Graph graph = clutch::Graph::load(arguments[1], device, {.backend = "host"});
    clutch::Stream stream(device);
    graph.replay(stream);
    for (float v : graph.tensor("y").to_host<float>(stream)) std::printf("%.9g\n", static_cast<double>(v));
    std::printf("%llu\n", static_cast<unsigned long long>(clutch::build_counters().built - before));
  } catch (const clutch::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
