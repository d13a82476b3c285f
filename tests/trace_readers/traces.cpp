// SPDX-License-Identifier: Apache-2.0
// Writes traces for tests/trace_readers/run: graph.json and annotations.pickle of replays whose nodes have labels, and steps/rank0.json of steps, under the
// names that HolisticTraceAnalysis looks for. Use: trace_readers <folder>
#include <clutch/clutch.hpp>

#include <iostream>
#include <string>
#include <vector>

namespace {

void write_graph(const std::string& folder) {
  const clutch::Tensor weight = clutch::randn({64, 64}), x = clutch::randn({64, 64});
  const clutch::Stream stream(clutch::default_device());
  clutch::Graph graph;
  clutch::Tensor y;
  {
    clutch::GraphCapture capture(graph, stream);
    {
      clutch::profiler::Range layer("first");
      y = clutch::linalg::matmul(x, weight, {}, stream);
    }
    clutch::profiler::Range layer("second");
    y = clutch::nn::softmax(y, -1, stream);
  }
  clutch::profiler::Profiler profiler({.graph_nodes = true});
  profiler.start();
  for (int i = 0; i < 3; ++i) graph.replay(stream);
  stream.synchronize();
  profiler.stop();
  profiler.export_chrome_trace(folder + "/graph.json");
  profiler.export_kernel_annotations(folder + "/annotations.pickle");
}

void write_steps(const std::string& folder) {
  const clutch::Tensor weight = clutch::randn({256, 256}), x = clutch::randn({512, 256});
  const std::vector<clutch::Tensor> parameters{clutch::randn({50000}), clutch::randn({300})}, gradients{clutch::randn({50000}), clutch::randn({300})};
  clutch::optim::AdamW adamw(parameters, {});
  clutch::profiler::Profiler profiler;
  profiler.start();
  for (int i = 0; i < 4; ++i) {
    clutch::profiler::Range step("ProfilerStep#" + std::to_string(i));
    clutch::sum(clutch::nn::softmax(clutch::linalg::matmul(x, weight))).to_host<float>();
    adamw.step(gradients);
    clutch::current_stream().synchronize();
  }
  profiler.stop();
  profiler.export_chrome_trace(folder + "/steps/rank0.json", {.names = clutch::profiler::TraceNames::hta});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "use: trace_readers <folder>\n";
    return 2;
  }
  write_graph(argv[1]);
  write_steps(argv[1]);
}
