// SPDX-License-Identifier: Apache-2.0
// Writes what PyTorch's analyzer reads, for tests/flight_by_torch/run: a folder of dumps for each fault of the made-up program, one of rings that went around,
// and rings of four processes of which one was killed. Use: flight_dumps FOLDER
#include "dist/flight_dump.hpp"
#include "dist/flight_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace clutch::dist::detail;
namespace fs = std::filesystem;

void write(const fs::path& folder, const std::vector<FlightImage>& images) {
  fs::create_directories(folder);
  for (const FlightImage& image : images) write_flight(folder / fmt::format("clutch_flight_{}", image.rank), torch_pickle_of(image));
}

/// Ranks that make different numbers of calls in groups of two, so that their rings begin at different calls.
std::vector<FlightImage> wrapped() {
  std::vector<FlightImage> images;
  for (int rank = 0; rank < 4; ++rank) {
    FlightRing ring({.records = 50, .rank = rank, .world_size = 4});
    clutch::testing::FlightCaller f(ring, rank);
    f.group(0, "0", "default_pg", {0, 1, 2, 3});
    f.group(1, rank < 2 ? "tp0" : "tp1", "tensor_parallel", rank < 2 ? std::vector{0, 1} : std::vector{2, 3});
    for (int step = 0; step < 60; ++step) {
      f.call(FlightOp::all_reduce, {{step + 1}}, {{step + 1}}, {.reduce = FlightReduce::sum});
      for (int i = 0; i < (rank < 2 ? 1 : 3); ++i) f.call(FlightOp::all_gather, {{step + 1}}, {{2 * step + 2}}, {.group = 1});
      if (rank >= 2) f.message(rank == 2, rank == 2 ? 3 : 2, {step + 1}, {});
    }
    images.push_back(ring.image());
  }
  return images;
}

/// Rank 2 is killed in its last call.
void killed(const fs::path& folder) {
  fs::create_directories(folder);
  std::vector<pid_t> children;
  for (int rank = 0; rank < 4; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      FlightRing ring({.file = folder / fmt::format("ring_{}", rank), .rank = rank, .world_size = 4});
      clutch::testing::FlightCaller f(ring, rank);
      clutch::testing::flight_program("none", f);
      if (rank != 2) f.call(FlightOp::all_reduce, {{77}}, {{77}}, {.reduce = FlightReduce::sum, .state = FlightState::started});
      ::kill(::getpid(), SIGKILL);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
}

int time_calls(const fs::path& file) {
  FlightRing ring({.file = file});
  const std::int32_t ranks[] = {0};
  ring.group(0, "0", "default_pg", ranks);
  const std::int64_t sizes[] = {1024, 4096};
  const std::span<const std::int64_t> tensors[] = {sizes};
  constexpr int kCalls = 20000;
  double best[3] = {1e9, 1e9, 1e9};
  for (int run = 0; run < 300; ++run) {
    const int what = run % 3;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) {
      FlightCall call{
          .collective_seq = static_cast<std::uint64_t>(i), .in_dtype = clutch::DType::f32, .out_dtype = clutch::DType::f32, .in = tensors, .out = tensors};
      const std::uint64_t id = ring.begin(call);
      if (what > 0) ring.started(id);
      if (what > 1) ring.completed(id);
    }
    best[what] = std::min(best[what], std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / kCalls);
  }
  fmt::print("begin {:.0f} ns, and started {:.0f} ns, and completed {:.0f} ns\n", best[0], best[1], best[2]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const fs::path folder = argv[1];
  if (folder == "--time") {
    const fs::path file = fs::temp_directory_path() / fmt::format("flight_time_{}", ::getpid());
    const int status = time_calls(file);
    fs::remove(file);
    return status;
  }
  for (const char* fault : clutch::testing::kFlightFaults) {
    std::vector<FlightImage> images;
    for (int rank = 0; rank < 4; ++rank) {
      FlightRing ring({.rank = rank, .world_size = 4});
      clutch::testing::FlightCaller f(ring, rank);
      clutch::testing::flight_program(fault, f);
      images.push_back(ring.image());
    }
    write(folder / fault, images);
  }
  write(folder / "wrapped", aligned(wrapped()));
  write(folder / "wrapped_alone", wrapped());
  killed(folder / "killed");
  return 0;
}
