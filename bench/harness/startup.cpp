// SPDX-License-Identifier: Apache-2.0
// Rows that start processes: how long until a newcomer's first result.
#include "harness/bench.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace clutch::bench {

namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

std::string self() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

/// Runs the probe in a child with these variables before it; returns what it prints in milliseconds, as seconds.
double probe(const std::string& environment, const Device& device) {
  std::string command = fmt::format("{} '{}' --startup-probe '{}'", environment, self(), device.selector());
  FILE* pipe = ::popen(command.c_str(), "r");
  std::array<char, 128> line{};
  bool read = pipe && std::fgets(line.data(), line.size(), pipe);
  int status = pipe ? ::pclose(pipe) : -1;
  if (!read || status != 0) throw std::runtime_error("the startup probe failed");
  return std::atof(line.data()) * 1e-3;
}

/// A folder of its own for cold starts, gone at the end.
struct EmptyFolder {
  std::string path = (std::filesystem::temp_directory_path() / fmt::format("clutch-startup-{}", ::getpid())).string();
  ~EmptyFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  void renew() const {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
    std::filesystem::create_directories(path, ignored);
  }
};

}  // namespace

int startup_probe(const std::string& selector) {
  Device device(selector);
  current_stream(device);  // platform, device and context exist from here on
  auto begin = Clock::now();
  std::vector<float> values(1024, 2.0f);
  Tensor x = from_host(values, {1024}, device);
  std::vector<float> result = addcdiv(x, x, x, {.value = 0.5}).to_host<float>();
  double ms = since(begin) * 1e3;
  if (result[1023] != 2.5f) return 1;
  std::printf("%.3f\n", ms);
  return 0;
}

void register_startup(Rows& rows);
void register_startup(Rows& rows) {
  rows.push_back({.name = "startup/first_addcdiv_warm", .in_quick = true, .prepare = [](const Device& device) {
                    probe("", device);
                    return Work{.measure = [device] { return probe("", device); }};
                  }});
  rows.push_back({.name = "startup/first_addcdiv_cold", .prepare = [](const Device& device) {
                    auto folder = std::make_shared<EmptyFolder>();
                    return Work{.measure = [device, folder] {
                      folder->renew();
                      return probe(fmt::format("CLUTCH_CACHE_DIR='{0}/c' POCL_CACHE_DIR='{0}/p'", folder->path), device);
                    }};
                  }});
  rows.push_back({.name = "startup/process_warm", .in_quick = true, .prepare = [](const Device& device) {
                    probe("", device);
                    return Work{.measure = [device] {
                      auto begin = Clock::now();
                      probe("", device);
                      return since(begin);
                    }};
                  }});
}

}  // namespace clutch::bench
