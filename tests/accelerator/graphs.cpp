// SPDX-License-Identifier: Apache-2.0
// Graphs, parts of a device, kernels of the caller's.
#include "rows.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

namespace clutch::rows { namespace {

/// Captures x += 1 on the stream.
void capture_increment(Graph& graph, const Tensor& x, const Stream& stream, const CaptureOptions& options = {}) {
  const GraphCapture capture(graph, stream, options);
  add_(x, 1);
}

/// A tensor and a stream that are ready for a capture.
struct Ready {
  Stream stream{current_device()};
  Tensor x = full({4}, 1);
  Ready() {
    add(x, 1);  // builds what is captured
    clutch::synchronize();
  }
  float value() const {
    clutch::synchronize();
    return numbers(x)[3];
  }
};

ROW(graph) {
  const Ready ready;
  Graph g;
  {
    const GraphCapture capture(g, ready.stream);
    add_(ready.x, 1);
  }
  line("a capture runs nothing", ready.value());
  g.replay();
  g.replay();
  line("two replays", ready.value());
  fill_(ready.x, 10);
  clutch::synchronize();
  g.replay();
  line("with another value in the tensor", ready.value());
}

ROW(graph_begin_and_end) {
  const Ready ready;
  Graph g;
  {
    const StreamGuard guard(ready.stream);
    g.capture_begin(current_stream());
    line("it captures", ready.stream.is_capturing());
    add_(ready.x, 2);
    g.capture_end();
  }
  g.replay();
  line("replayed", ready.value());
  line.refused("end without begin", [&] { return g.capture_end(), 0; });
}

ROW(graph_keep) {
  const Ready ready;
  Graph one({.keep_graph = true}), two({.keep_graph = true});
  capture_increment(one, ready.x, ready.stream);
  one.instantiate();
  one.replay();
  line("instantiated by hand", ready.value());
  capture_increment(two, ready.x, ready.stream);
  two.replay();
  line("by the first replay", ready.value());
}

ROW(graph_reset) {
  const Ready ready;
  Graph g;
  line.refused("replay before a capture", [&] { return g.replay(), 0; });
  capture_increment(g, ready.x, ready.stream);
  g.replay();
  line("replayed", ready.value());
  g.reset();
  line.refused("replay behind a reset", [&] { return g.replay(), 0; });
  capture_increment(g, ready.x, ready.stream);
  g.replay();
  line("captured again and replayed", ready.value());
}

ROW(graph_pool) {
  const Ready ready;
  Graph one, two;
  Tensor y, z;
  {
    const GraphCapture capture(one, ready.stream);
    y = add(mul(ready.x, 2), 1);
  }
  {
    const GraphCapture capture(two, ready.stream, {.pool = one.pool()});
    z = add(mul(ready.x, 3), 1);
  }
  line("the second has the first one's pool", two.pool() == one.pool());
  one.replay();
  clutch::synchronize();
  line("the first", numbers(y)[0]);
  two.replay();
  clutch::synchronize();
  line("the second", numbers(z)[0]);
}

ROW(graph_refuses_reads) {
  const Ready ready;
  Graph g;
  g.capture_begin(ready.stream);
  {
    const StreamGuard guard(ready.stream);
    line.refused("to read a number in a capture", [&] { return add(ready.x, 1).select(0, 0).item(); });
  }
  line.refused("to end it", [&] { return g.capture_end(), 0; });
  line("the stream captures on", ready.stream.is_capturing());
  capture_increment(g, ready.x, ready.stream);
  g.replay();
  line("the next capture is right", ready.value());
}

ROW(graph_modes) {
  const Ready ready;
  Event event;
  event.record();
  clutch::synchronize();
  const auto in_mode = [&](const char* name, CaptureMode mode) {
    Graph g;
    const Stream other(current_device());
    try {
      const GraphCapture capture(g, ready.stream, {.mode = mode});
      add_(ready.x, 1);
      std::thread([&] { line.refused(std::string(name) + ": another thread asks for an event", [&] { return event.query(); }); }).join();
    } catch (const Error&) {  // the capture, which the call ended
    }
  };
  in_mode("global", CaptureMode::global);
  in_mode("thread_local", CaptureMode::thread_local_);
  in_mode("relaxed", CaptureMode::relaxed);
}

ROW(graph_random) {
  const Ready ready;
  manual_seed(8);
  std::vector<std::vector<float>> eager;
  for (int i = 0; i < 3; ++i) {
    uniform_(ready.x);
    eager.push_back(numbers(ready.x));
  }
  manual_seed(8);
  clutch::synchronize();
  Graph g;
  {
    const GraphCapture capture(g, ready.stream);
    uniform_(ready.x);
  }
  std::vector<std::vector<float>> replayed;
  for (int i = 0; i < 3; ++i) {
    g.replay();
    clutch::synchronize();
    replayed.push_back(numbers(ready.x));
  }
  line("each replay has new numbers", replayed[0] != replayed[1] && replayed[1] != replayed[2]);
  line("those of calls without a graph", replayed == eager);
}

ROW(graph_dump) {
  const Ready ready;
  Graph g({.keep_graph = true});
  capture_increment(g, ready.x, ready.stream);
  const std::string path = temporary_file("graph.dot");
  g.debug_dump(path);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  line("the file is a graph of dot", text.str().find("digraph") != std::string::npos);
  std::filesystem::remove(path);
}

ROW(graphed_callables) {
  const Tensor w = full({3, 3}, 2), x = full({2, 3}, 1);
  GraphedCallable call = make_graphed_callable([&](std::span<const Tensor> in) { return std::vector{relu(linalg::matmul(in[0], w))}; }, std::span(&x, 1));
  line("of ones", numbers(call({full({2, 3}, 1)})[0]));
  line("of twos", numbers(call({full({2, 3}, 2)})[0]));
  line.refused("of another shape", [&] { return call({full({3, 3}, 1)})[0]; });
}

ROW(graph_annotations) {
  const Ready ready;
  Graph g({.keep_graph = true});
  {
    const GraphCapture capture(g, ready.stream);
    add_(ready.x, 1);
    const GraphAnnotation annotation("block", {{"layer", "7"}});
    add_(ready.x, 1);
    add_(ready.x, 1);
  }
  line("kernels under the name", g.find("block").size());
  line("kernels in all", g.nodes().size());
  line("what it says of the last", g.nodes().back().labels.at(0).values.at(0).second);
}

ROW(green_context) {
  const Partition part = Partition::create(current_device(), {.units = 1});
  line("units are as many as were asked for, or more", part.units() >= 1);
  const Stream first = current_stream();
  {
    const PartitionGuard guard(part);
    line("its stream is current", current_stream() == part.stream());
    line("work on it", numbers(add(full({2}, 1), 1)));
  }
  line("the former stream is current again", current_stream() == first);
  const Stream more = part.make_stream();
  line("a stream of its own", !(more == part.stream()));
  line.refused("neither units nor a limit", [] { return Partition::create(current_device(), {}); });
}

ROW(own_kernel) {
  const Tensor x = from_host<float>({1, 2, 3, 4});
  const Tensor y = zeros({4});
  const KernelSource source{.text = "__kernel void twice(__global float* y, __global const float* x) { y[get_global_id(0)] = 2 * x[get_global_id(0)]; }",
                            .entry = "twice"};
  launch(source, {.global = 4, .local = 1}, {output(y), input(x)});
  line("twice 1 to 4", numbers(y));
}

ROW(lambda_kernel) {
  const Tensor x = from_host<float>({1, 2, 3, 4}), y = full({4}, 10);
  line("x * x + y", numbers(map([](Expr a, Expr b) { return a * a + b; }, x, y)));
}

}}  // namespace clutch::rows
