// SPDX-License-Identifier: Apache-2.0
// Writes the traces of ranks for tests/trace_readers/run_ranks: steps with products and, on another stream, collectives by messages, by the board and by
// kernels, under the names that HolisticTraceAnalysis looks for. Use: mpirun -np 2 rank_traces <folder>
#include <clutch/clutch.hpp>
#include <clutch/dist.hpp>

#include <iostream>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "use: mpirun -np 2 rank_traces <folder>\n";
    return 2;
  }
  namespace dist = clutch::dist;
  const dist::Group world = dist::open();
  const clutch::Tensor weight = clutch::randn({256, 256}), x = clutch::randn({512, 256}), gradient = clutch::randn({1 << 20});
  const dist::Symmetric shared({1 << 20}, world);
  clutch::fill_(shared.local(), 1);
  auto step = [&] {
    std::vector<dist::Work> works;
    works.push_back(world.all_reduce_(gradient, {.async = true, .algorithm = dist::Algorithm::direct}));
    clutch::linalg::matmul(x, weight);
    works.push_back(world.broadcast_(gradient, 0, {.async = true}));
    clutch::linalg::matmul(x, weight);
    if (shared.all_direct()) works.push_back(world.all_reduce_(shared.local(), {.op = dist::ReduceOp::avg, .async = true}));
    clutch::linalg::matmul(x, weight);
    for (const dist::Work& work : works) work.wait();
    clutch::current_stream().synchronize();
  };
  step();  // builds the kernels
  world.barrier().synchronize();
  clutch::profiler::Profiler profiler;
  profiler.start();
  for (int i = 0; i < 4; ++i) {
    const clutch::profiler::Range range("ProfilerStep#" + std::to_string(i));
    step();
  }
  profiler.stop();
  profiler.export_chrome_trace(std::string(argv[1]) + "/rank" + std::to_string(world.rank()) + ".json", {.names = clutch::profiler::TraceNames::hta});
}
