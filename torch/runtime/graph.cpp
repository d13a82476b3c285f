// SPDX-License-Identifier: Apache-2.0
// torch.accelerator.Graph: a clutch::Graph, with what clutch has besides for torch.clutch.Graph.
#include "runtime/convert.hpp"
#include "runtime/device.hpp"
#include "runtime/error.hpp"

#include <ATen/core/GraphImplInterface.h>
#include <torch/library.h>
#include <clutch/graph.hpp>
#include <clutch/kernel.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace torch_clutch {

struct GraphImpl;

namespace {

clutch::CaptureMode capture_mode(at::GraphCaptureMode mode) {
  switch (mode) {
    case at::GraphCaptureMode::ThreadLocal: return clutch::CaptureMode::thread_local_;
    case at::GraphCaptureMode::Relaxed: return clutch::CaptureMode::relaxed;
    default: return clutch::CaptureMode::global;
  }
}

// Graphs by their numbers. PyTorch's class has no place for what clutch's graphs have besides. Never destroyed: graphs may go after this file's objects.
struct Graphs {
  std::mutex mutex;
  std::map<std::int64_t, GraphImpl*> all;
  std::int64_t next = 1;
};
Graphs& graphs() {
  static auto* made = new Graphs;
  return *made;
}
// Of this thread: the backend of the next graphs, and the number of the last one.
thread_local std::string next_backend;
thread_local std::int64_t last_made = 0;

}  // namespace

struct GraphImpl final : at::GraphImplInterface {
  explicit GraphImpl(const at::GraphImplArgs& args)
      : graph(translated([&] { return clutch::Graph(clutch::GraphOptions{.keep_graph = args.keep_graph, .backend = next_backend}); })) {
    std::lock_guard lock(graphs().mutex);
    number = graphs().next++;
    graphs().all.emplace(number, this);
    last_made = number;
  }
  ~GraphImpl() override {
    std::lock_guard lock(graphs().mutex);
    graphs().all.erase(number);
  }
  GraphImpl(const GraphImpl&) = delete;
  GraphImpl& operator=(const GraphImpl&) = delete;

  void capture_begin(at::MempoolId_t pool, at::GraphCaptureMode mode) override {
    translated([&] {
      graph.capture_begin(clutch::current_stream(device(current_device())), {.mode = capture_mode(mode), .pool = {.first = pool.first, .second = pool.second}});
    });
  }
  void capture_end() override {
    translated([&] { graph.capture_end(); });
  }
  void instantiate() override {
    translated([&] { graph.instantiate(); });
  }
  void replay() override {
    translated([&] { graph.replay(clutch::current_stream(device(current_device()))); });
  }
  void reset() override {
    translated([&] { graph.reset(); });
  }
  at::MempoolId_t pool() const override {
    const clutch::PoolId id = graph.pool();
    return {id.first, id.second};
  }
  void enable_debug_mode() override { debug = true; }
  void debug_dump(const std::string& path) override {
    TORCH_CHECK(debug, "clutch: call enable_debug_mode() of the graph before debug_dump()");
    translated([&] { graph.debug_dump(path); });
  }

  clutch::Graph graph;
  std::int64_t number = 0;
  bool debug = false;
};

namespace {

// Python holds the graph while it calls.
GraphImpl& graph_of(std::int64_t number) {
  std::lock_guard lock(graphs().mutex);
  const auto found = graphs().all.find(number);
  TORCH_CHECK(found != graphs().all.end(), "clutch: no graph has the number ", number);
  return *found->second;
}

std::string exchange_graph_backend(const std::string& backend) { return std::exchange(next_backend, backend); }

// Nodes, launches of a replay, groups; then what the report says of the backend.
std::tuple<std::vector<std::int64_t>, std::vector<std::string>> graph_report(std::int64_t number) {
  return translated([&] {
    const clutch::Graph& graph = graph_of(number).graph;
    const clutch::GraphReport report = graph.report();
    const auto nodes = static_cast<std::int64_t>(graph.nodes().size());
    std::int64_t launches = nodes;
    for (const clutch::GraphReport::Group& group : report.groups) launches -= static_cast<std::int64_t>(group.nodes.size()) - 1;
    return std::tuple(
        std::vector<std::int64_t>{nodes, launches, static_cast<std::int64_t>(report.groups.size()), static_cast<std::int64_t>(report.reserved_bytes),
                                  static_cast<std::int64_t>(report.unfused_bytes), static_cast<std::int64_t>(report.replays)},
        std::vector<std::string>{report.backend, report.why});
  });
}

std::string graph_text(std::int64_t number) {
  return translated([&] { return graph_of(number).graph.to_string(clutch::GraphDump::json); });
}

void graph_save(std::int64_t number, const std::string& path, const std::vector<std::string>& names, at::TensorList tensors, bool binaries) {
  TORCH_CHECK_VALUE(names.size() == tensors.size(), "clutch: as many names as tensors must be given, got ", names.size(), " and ", tensors.size());
  translated([&] {
    std::vector<clutch::NamedTensor> named;
    for (const at::Tensor& tensor : tensors) own_memory(tensor);
    for (std::size_t i = 0; i < names.size(); ++i) named.push_back({names[i], wrap(tensors[i])});
    graph_of(number).graph.save(path, named, {.binaries = binaries});
  });
}

std::vector<clutch::Rebinding> rebindings(at::TensorList captured, at::TensorList bound) {
  TORCH_CHECK_VALUE(captured.size() == bound.size(), "clutch: as many tensors must be bound as captured ones are named, got ", bound.size(), " and ",
                    captured.size());
  std::vector<clutch::Rebinding> made;
  for (std::size_t i = 0; i < captured.size(); ++i) {
    own_memory(bound[i]);
    made.push_back({wrap(captured[i]), wrap(bound[i])});
  }
  return made;
}
void graph_rebind(std::int64_t number, at::TensorList captured, at::TensorList bound) {
  translated([&] { graph_of(number).graph.rebind(rebindings(captured, bound)); });
}
void graph_replay_with(std::int64_t number, at::TensorList captured, at::TensorList bound) {
  translated([&] { graph_of(number).graph.replay(rebindings(captured, bound), clutch::current_stream(device(current_device()))); });
}
// Numbers first, then tensors.
void graph_update(std::int64_t number, std::int64_t node, const std::vector<std::string>& names, const std::vector<double>& values, at::TensorList tensors) {
  TORCH_CHECK_VALUE(names.size() == values.size() + tensors.size(), "clutch: as many names as arguments must be given, got ", names.size(), " and ",
                    values.size() + tensors.size());
  for (const at::Tensor& tensor : tensors) own_memory(tensor);
  translated([&] {
    std::vector<clutch::Argument> arguments;
    const std::vector<clutch::Tensor> given = wrap(tensors);
    for (std::size_t i = 0; i < values.size(); ++i) arguments.push_back(clutch::value(values[i], names[i].c_str()));
    for (std::size_t i = 0; i < given.size(); ++i) arguments.push_back(clutch::input(given[i], names[values.size() + i].c_str()));
    graph_of(number).graph.update(static_cast<int>(node), arguments);
  });
}

// Graphs that were loaded, by their numbers.
struct Loaded {
  std::mutex mutex;
  std::map<std::int64_t, std::shared_ptr<clutch::Graph>> all;
  std::int64_t next = 1;
};
Loaded& loaded() {
  static auto* made = new Loaded;
  return *made;
}
std::tuple<std::int64_t, std::vector<std::string>, std::vector<at::Tensor>> graph_load(const std::string& path, const std::string& backend) {
  auto graph = translated([&] {
    return std::make_shared<clutch::Graph>(clutch::Graph::load(path, device(current_device()), {.backend = backend.empty() ? next_backend : backend}));
  });
  std::vector<std::string> names = graph->tensor_names();
  std::vector<at::Tensor> tensors;
  for (const std::string& name : names) tensors.push_back(unwrap(graph->tensor(name)));
  std::lock_guard lock(loaded().mutex);
  loaded().all.emplace(loaded().next, std::move(graph));
  return {loaded().next++, std::move(names), std::move(tensors)};
}
void loaded_replay(std::int64_t number) {
  std::shared_ptr<clutch::Graph> graph;
  {
    std::lock_guard lock(loaded().mutex);
    graph = loaded().all.at(number);
  }
  translated([&] { graph->replay(clutch::current_stream(device(current_device()))); });
}
void loaded_forget(std::int64_t number) {
  std::lock_guard lock(loaded().mutex);
  loaded().all.erase(number);
}

// Of this thread, the last one innermost.
thread_local std::vector<std::unique_ptr<clutch::GraphAnnotation>> annotations;

void push_annotation(const std::string& name, const std::string& values) {
  annotations.push_back(values.empty() ? std::make_unique<clutch::GraphAnnotation>(name)
                                       : std::make_unique<clutch::GraphAnnotation>(
                                             name, std::initializer_list<std::pair<std::string_view, std::string_view>>{{"values", values}}));
}
void pop_annotation() {
  TORCH_CHECK(!annotations.empty(), "clutch: an annotation must end on the thread that began it");
  annotations.pop_back();
}

}  // namespace
}  // namespace torch_clutch

namespace at {
// The key is the device's name in capitals.
REGISTER_GRAPH_IMPL(CLUTCH, ::torch_clutch::GraphImpl)
}  // namespace at

TORCH_LIBRARY_FRAGMENT(clutch, library) {
  library.def("exchange_graph_backend(str backend) -> str", &torch_clutch::exchange_graph_backend);
  library.def("last_graph() -> int", [] { return torch_clutch::last_made; });
  library.def("push_annotation(str name, str values) -> ()", &torch_clutch::push_annotation);
  library.def("pop_annotation() -> ()", &torch_clutch::pop_annotation);
  library.def("graph_rebind(int number, Tensor[] captured, Tensor[] bound) -> ()", &torch_clutch::graph_rebind);
  library.def("graph_replay_with(int number, Tensor[] captured, Tensor[] bound) -> ()", &torch_clutch::graph_replay_with);
  library.def("graph_update(int number, int node, str[] names, float[] values, Tensor[] tensors) -> ()", &torch_clutch::graph_update);
  library.def("graph_load(str path, str backend) -> (int, str[], Tensor[])", &torch_clutch::graph_load);
  library.def("loaded_replay(int number) -> ()", &torch_clutch::loaded_replay);
  library.def("loaded_forget(int number) -> ()", &torch_clutch::loaded_forget);
  library.def("graph_report(int number) -> (int[], str[])", &torch_clutch::graph_report);
  library.def("graph_text(int number) -> str", &torch_clutch::graph_text);
  library.def("graph_save(int number, str path, str[] names, Tensor[] tensors, bool binaries) -> ()", &torch_clutch::graph_save);
}
