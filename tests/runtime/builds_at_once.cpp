// SPDX-License-Identifier: Apache-2.0
// Processes that build one program at the same time and share a driver's cache, as ranks of a host do: builds_at_once PROCESSES PROGRAMS. PoCL 3.1 fails in
// some of them for no fault of the program.
#include <clutch/clutch.hpp>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <new>
#include <string>
#include <thread>

namespace {

/// Memory of all processes.
struct Shared {
  std::atomic<int> arrived{0}, built{0};
};

/// Builds `programs` programs, each at the same time as the others.
void build(Shared& all, int processes, int programs, const std::string& name) {
  const clutch::Tensor x = clutch::full({4}, 1);
  for (int p = 0; p < programs; ++p) {
    const std::string entry = name + std::to_string(p),
                      text = "__kernel void " + entry + "(__global float* x) { x[get_global_id(0)] += " + std::to_string(p) + "; }";
    ++all.arrived;
    // A process that has failed does not come.
    const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (all.arrived < (p + 1) * processes) {
      if (std::chrono::steady_clock::now() > late) throw std::runtime_error("another process must come to program " + std::to_string(p));
      std::this_thread::yield();
    }
    clutch::launch({.text = text, .entry = entry}, {.global = 4, .local = 1}, {clutch::inout(x)});
    ++all.built;
  }
  float wanted = 1;
  for (int p = 0; p < programs; ++p) wanted += static_cast<float>(p);
  if (x.to_host<float>()[3] != wanted) throw std::runtime_error("the programs must have added up");
}

}  // namespace

int main(int argc, char** argv) try {
  const int processes = argc > 1 ? std::atoi(argv[1]) : 6, programs = argc > 2 ? std::atoi(argv[2]) : 40;
  const std::filesystem::path cache = std::filesystem::temp_directory_path() / ("builds_at_once_" + std::to_string(::getpid()));
  std::filesystem::create_directories(cache);
  ::setenv("POCL_CACHE_DIR", cache.c_str(), 1);
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("mmap must give memory");
  auto* all = new (memory) Shared;
  // No driver has started yet, so that a child is a process like any other.
  for (int c = 0; c < processes; ++c)
    if (::fork() == 0) {
      int code = 0;
      try {
        build(*all, processes, programs, "of_" + std::to_string(::getppid()) + "_");
      } catch (const std::exception& e) {
        std::cerr << "process " << c << ": " << e.what() << std::endl;
        code = 1;
      }
      ::_exit(code);
    }
  bool good = true;
  for (int status = 0; ::wait(&status) > 0;) good = good && status == 0;
  std::filesystem::remove_all(cache);
  std::cout << all->built << " of " << processes * programs << " programs built\n";
  return good && all->built == processes * programs ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
