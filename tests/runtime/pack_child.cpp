// SPDX-License-Identifier: Apache-2.0
// What the tests of kernel packs run in processes of their own: pack_child ops | own LOCAL | unsynchronized |
// killed SECONDS. Prints what happened in words and numbers.
#include <clutch/clutch.hpp>

#include <sys/resource.h>

#include <time.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) { return std::chrono::duration<double, std::milli>(Clock::now() - begin).count(); }

/// Time of processors that the process has used, which other processes do not lengthen as they do its time.
double cpu_ms() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return 1e3 * static_cast<double>(used.tv_sec) + 1e-6 * static_cast<double>(used.tv_nsec);
}

void print_counters() {
  // Pages of children that ended: none if there was no child.
  rusage children{};
  ::getrusage(RUSAGE_CHILDREN, &children);
  const clutch::BuildCounters counters = clutch::build_counters();
  std::printf("built %llu loaded %llu packed %llu children %ld\n", static_cast<unsigned long long>(counters.built),
              static_cast<unsigned long long>(counters.loaded), static_cast<unsigned long long>(counters.packed), children.ru_minflt);
}

void ops() {
  const Clock::time_point begin = Clock::now();
  const clutch::Device device = clutch::default_device();
  const double driver = ms_since(begin), driver_cpu = cpu_ms();
  const clutch::Tensor t = clutch::full({1000}, 2, {.device = device});
  const float first = clutch::addcdiv(t, t, t).to_host<float>()[999];
  const double after_first = ms_since(begin), first_cpu = cpu_ms();
  const clutch::Tensor a = clutch::full({64, 64}, 1, {.device = device});
  const float product = clutch::linalg::matmul(a, a).to_host<float>()[9], share = clutch::nn::softmax(a).to_host<float>()[9];
  std::printf("results %g %g %g\nms driver %.2f first %.2f all %.2f of processors %.2f\n", static_cast<double>(first), static_cast<double>(product),
              static_cast<double>(share), driver, after_first, ms_since(begin), first_cpu - driver_cpu);
}

/// A caller's kernel with groups of `local` work-items.
void own(std::uint64_t local) {
  const clutch::KernelSource source{.text = "__kernel void own(__global float* y, ulong offset) { y[get_global_id(0)] = 7 + get_local_size(0); }",
                                    .entry = "own",
                                    .addressing = clutch::Addressing::base_and_offset};
  const clutch::Tensor out = clutch::full({64}, 0);
  clutch::launch(source, {.global = 64, .local = local}, {clutch::output(out)});
  std::printf("own %g\n", static_cast<double>(out.to_host<float>()[63]));
}

/// Launches at once and after some seconds; then nothing of the process runs any more.
void killed(int seconds) {
  clutch::full({10}, 1).to_host<float>();
  own(4);
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  clutch::synchronize();
  std::fflush(stdout);
  ::raise(SIGKILL);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const std::string mode = count > 1 ? arguments[1] : "";
    if (mode == "ops") ops();
    if (mode == "own" && count > 2) own(std::strtoull(arguments[2], nullptr, 10));
    if (mode == "unsynchronized") clutch::full({10}, 1);
    if (mode == "killed" && count > 2) killed(std::atoi(arguments[2]));
  } catch (const clutch::Error& e) {
    std::printf("Error %s: %s\n", std::string(clutch::name(e.code())).c_str(), e.what());
  }
  print_counters();
}
