// SPDX-License-Identifier: Apache-2.0
// Graphs: work that is captured once and replayed by one call.
//
// A replay checks, selects and allocates nothing, so that many small kernels cost what the device needs for
// them. It has the bits of the calls that were captured. Tensors from before the capture are read and written
// where they are; temporaries share memory in a pool of the graph's own.
//
// For your case: call your code once before the capture, so that programs are built; then capture it. Calls that
// need results on the host (to_host, item, synchronize) are errors in a capture; clutch::dry_run() lists them all.
#include <clutch/clutch.hpp>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace {

/// A backend of your own replays the nodes as it likes; this one enqueues them one by one.
class OneByOne : public clutch::GraphImpl {
  void instantiate(const clutch::GraphProgram&) override {}
  void replay(const clutch::GraphProgram& program, const clutch::Stream& stream) override {
    for (int i = 0; i < program.size(); ++i) program.enqueue(i, stream);
  }
  void reset() override {}
};

int failed = 0;
void expect(const char* what, float got, float wanted) {
  std::printf("  %s: %g\n", what, static_cast<double>(got));
  if (got != wanted) std::printf("  WRONG: %g was expected\n", static_cast<double>(wanted)), failed = 1;
}

void show(const clutch::Device& device, const std::string& backend) {
  std::printf("backend %s\n", backend.c_str());
  const clutch::Stream stream(device);
  const clutch::Tensor param = clutch::full({1000}, 1, {.device = device}, stream);
  const clutch::Tensor moment = clutch::full({1000}, 4, {.device = device}, stream);
  const clutch::Tensor denominator = clutch::full({1000}, 2, {.device = device}, stream);
  auto last = [&](const clutch::Tensor& t) { return t.to_host<float>(stream)[999]; };  // waits

  // Capture. Nothing runs in this block: param keeps its numbers.
  clutch::Graph graph({.backend = backend});
  {
    clutch::GraphCapture capture(graph, stream);
    clutch::GraphAnnotation label("step");  // a name for the nodes below
    clutch::addcdiv_(param, moment, denominator, {.value = -0.25});
  }
  expect("captured, not yet run", last(param), 1);

  // Replay: param -= 0.25 * 4 / 2 each time.
  for (int i = 0; i < 10; ++i) graph.replay(stream);
  expect("after ten replays", last(param), -4);

  // Other inputs: write into the captured tensor.
  clutch::fill_(moment, 8, {}, stream);
  graph.replay(stream);
  expect("after a replay with another moment", last(param), -5);

  // Other tensors, this time alone; Graph::rebind() is for all later replays.
  const clutch::Tensor other = clutch::zeros({1000}, {.device = device}, stream);
  graph.replay({{param, other}}, stream);
  expect("another tensor in the place of param", last(other), -1);
  expect("param stays", last(param), -5);

  // Another number, by the node's label and the argument's name; Graph::nodes() lists the names.
  graph.update(graph.find("step").at(0), {clutch::value(0.5, "value")});
  graph.replay(stream);
  expect("after a replay with value 0.5", last(param), -3);

  // A file that a process without this code replays; the tensors are found by these names.
  const std::string path = (std::filesystem::temp_directory_path() / ("clutch_example_graph_" + backend + ".safetensors")).string();
  graph.save(path, {{"param", param}});
  clutch::Graph loaded = clutch::Graph::load(path, device, {.backend = backend});
  std::filesystem::remove(path);
  loaded.replay(stream);
  expect("the saved graph goes on from -3", last(loaded.tensor("param")), -1);

  // A call that cannot be captured is named; the stream works as before.
  std::string message;
  try {
    clutch::Graph never;
    clutch::GraphCapture capture(never, stream);
    stream.synchronize();  // captured work does not run, so waiting for it has no meaning
  } catch (const clutch::Error& e) {
    message = e.what();
  }
  std::printf("  refused: %s\n", message.c_str());
  if (message.empty()) failed = 1;
  expect("param after the refusal", last(param), -3);
  std::printf("  report: %s\n", graph.report().why.c_str());
}

}  // namespace

int main() {
  const clutch::Device device = clutch::default_device();
  std::printf("device: %s\n", device.name().c_str());
  clutch::register_graph_backend("one_by_one", [] { return std::make_unique<OneByOne>(); });
  // "auto" is the default. "native" is for drivers with cl_khr_command_buffer.
  for (const std::string& backend : clutch::graph_backends())
    if (backend != "native" || device.traits().command_buffer != 0) show(device, backend);
  return failed;
}
