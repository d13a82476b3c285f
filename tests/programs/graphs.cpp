// SPDX-License-Identifier: Apache-2.0
// A graph as its users write it: a step captured and replayed, with other tensors bound, saved, and by a backend of the caller's.
#include <clutch/clutch.hpp>

#include <cstdio>
#include <filesystem>
#include <iostream>

namespace {

/// Replays node by node, as a first version of a backend would.
class Plain : public clutch::GraphImpl {
  void instantiate(const clutch::GraphProgram&) override {}
  void replay(const clutch::GraphProgram& program, const clutch::Stream& stream) override {
    for (int i = 0; i < program.size(); ++i) program.enqueue(i, stream);
  }
  void reset() override {}
};

int fail(const char* what) {
  std::cout << "wrong: " << what << '\n';
  return 1;
}

}  // namespace

int main() {
  clutch::register_graph_backend("plain", [] { return std::make_unique<Plain>(); });
  clutch::Device device = clutch::default_device();
  for (const std::string& backend : clutch::graph_backends()) {
    if (backend == "native" && device.traits().command_buffer == 0) continue;
    clutch::Stream stream(device);
    clutch::Tensor param = clutch::full({1000}, 1, {.device = device}, stream), moment = clutch::full({1000}, 4, {.device = device}, stream);
    clutch::Tensor denominator = clutch::full({1000}, 2, {.device = device}, stream);
    clutch::Graph graph({.backend = backend});
    {
      clutch::GraphCapture capture(graph, stream);
      clutch::GraphAnnotation label("step");
      clutch::addcdiv_(param, moment, denominator, {.value = -0.25});
    }
    for (int i = 0; i < 10; ++i) graph.replay(stream);
    if (param.to_host<float>(stream)[999] != -4) return fail("ten replays");
    graph.update(graph.find("step").at(0), {clutch::value(0.5, "value")});
    clutch::Tensor other = clutch::zeros({1000}, {.device = device}, stream);
    graph.replay({{param, other}}, stream);
    if (other.to_host<float>(stream)[0] != 1) return fail("an update, with another tensor bound");
    std::string path = (std::filesystem::temp_directory_path() / "clutch_program_graphs.safetensors").string();
    graph.save(path, {{"param", param}});
    clutch::Graph loaded = clutch::Graph::load(path, device, {.backend = backend});
    std::filesystem::remove(path);
    loaded.replay(stream);
    if (loaded.tensor("param").to_host<float>(stream)[5] != -3) return fail("a saved graph");
    try {
      clutch::GraphCapture capture(loaded, stream);
      return fail("a graph that is in use captured anew");
    } catch (const clutch::Error& e) {
      std::cout << backend << ": " << graph.report().why << "; " << e.what() << '\n';
    }
  }
}
