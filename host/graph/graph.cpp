// SPDX-License-Identifier: Apache-2.0
#include <clutch/graph.hpp>
#include <clutch/interop_cl.hpp>

#include "graph/capture.hpp"
#include "graph/fused_backend.hpp"
#include "graph/labels.hpp"
#include "graph/report.hpp"
#include "graph/saved.hpp"
#include "graph/state.hpp"
#include "runtime/op_name.hpp"
#include "runtime/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <fstream>

namespace clutch { inline namespace v0 {

namespace detail {

/// State of a Graph: empty, capturing, or a finished capture.
class GraphHandle {
 public:
  bool keep_graph = false, relaxed_rounding = false;
  std::string backend_name;
  std::unique_ptr<GraphImpl> backend;  ///< backend of the capture underway
  std::shared_ptr<Capture> capture;
  std::unique_ptr<GraphState> state;

  GraphState& need(std::string_view op) const {
    if (capture) throw Error(ErrorCode::capturing, op, "capture_end() must come first, got a graph that is being captured");
    if (!state) throw Error(ErrorCode::invalid_argument, op, "the graph must hold a capture, got an empty one");
    return *state;
  }
};

namespace {

void check_backend(std::string_view wanted) {
  std::vector<std::string> known = graph_backends();
  if (std::find(known.begin(), known.end(), wanted) == known.end())
    throw Error(ErrorCode::invalid_argument, "Graph",
                fmt::format("the backend must be a registered one, got '{}'; there are: {}", wanted, fmt::join(known, " ")));
}

void check_rounding(std::string_view backend, bool relaxed) {
  if (relaxed && backend != "fused")
    throw Error(ErrorCode::invalid_argument, "Graph", fmt::format("relaxed_rounding must be false but for the backend 'fused', got true for '{}'", backend));
}

std::shared_ptr<Capture> start(const Stream& stream, const CaptureOptions& options, bool dry, std::string_view op) {
  if (stream.empty()) throw Error(ErrorCode::invalid_argument, op, "the Stream must be a made one, got an empty one");
  StreamImpl& impl = *stream.impl();
  impl.check(op);
  check_outside_branches(op, impl.runtime());
  impl.runtime().traits();  // runs the self-tests at first use, which read results on the host and so cannot run in a capture
  auto capture = std::make_shared<Capture>(impl.runtime(), stream.impl(), options, dry);
  capture->begin();
  return capture;
}

}  // namespace

const std::shared_ptr<ThreadLabels>& thread_labels() {
  thread_local const auto labels = std::make_shared<ThreadLabels>();
  return labels;
}

}  // namespace detail

std::string_view name(GraphNodeKind kind) noexcept {
  switch (kind) {
    case GraphNodeKind::kernel: return "kernel";
    case GraphNodeKind::copy: return "copy";
    case GraphNodeKind::fill: return "fill";
    case GraphNodeKind::host_task: return "host_task";
    default: return "opaque";
  }
}

Graph::Graph(const GraphOptions& options) : handle_(std::make_unique<detail::GraphHandle>()) {
  handle_->keep_graph = options.keep_graph;
  handle_->backend_name = options.backend.empty() ? detail::the_settings().graph.value : std::string(options.backend);
  handle_->relaxed_rounding = options.relaxed_rounding;
  detail::check_backend(handle_->backend_name);
  detail::check_rounding(handle_->backend_name, options.relaxed_rounding);
}

Graph::~Graph() {
  if (handle_) capture_abandon();
}
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&& other) noexcept {
  if (handle_) capture_abandon();
  handle_ = std::move(other.handle_);
  return *this;
}

void Graph::capture_begin(const Stream& stream, const CaptureOptions& options) {
  constexpr const char* kOp = "Graph::capture_begin";
  if (handle_->capture) throw Error(ErrorCode::capturing, kOp, "the graph's capture must have ended, got one that goes on");
  if (handle_->state) throw Error(ErrorCode::invalid_argument, kOp, "the graph must be empty, got one that holds a capture; reset() forgets it");
  std::unique_ptr<GraphImpl> backend = detail::make_backend(handle_->backend_name, handle_->relaxed_rounding);
  CaptureOptions wanted = options;
  if (wanted.pool == PoolId{}) wanted.pool = backend->pool();
  handle_->capture = detail::start(stream, wanted, false, kOp);
  handle_->capture->set_fuses(detail::fused_of(*backend) != nullptr);
  handle_->backend = std::move(backend);
  try {
    handle_->backend->begin(stream, options.mode);
  } catch (...) {
    capture_abandon();
    throw;
  }
}

void Graph::capture_end() {
  if (handle_->capture) detail::check_outside_branches("Graph::capture_end", handle_->capture->runtime());
  std::shared_ptr<detail::Capture> capture = std::exchange(handle_->capture, nullptr);
  if (!capture)
    throw Error(ErrorCode::capturing, "Graph::capture_end",
                fmt::format("the graph must be capturing, got {}", handle_->state ? "one whose capture has ended" : "an empty one"));
  capture->detach();
  auto state = std::make_unique<detail::GraphState>(capture->runtime(), handle_->backend_name, std::move(handle_->backend));
  try {
    capture->finish(*state);
  } catch (...) {
    capture->drop();
    throw;
  }
  if (!handle_->keep_graph) state->instantiate();
  handle_->state = std::move(state);
}

void Graph::capture_abandon() noexcept {
  if (std::shared_ptr<detail::Capture> capture = std::exchange(handle_->capture, nullptr)) {
    capture->detach();
    capture->drop();
  }
  handle_->backend.reset();
}

bool Graph::is_capturing() const noexcept { return handle_->capture != nullptr; }
void Graph::instantiate() { handle_->need("Graph::instantiate").instantiate(); }
void Graph::replay(const Stream& stream) { handle_->need("Graph::replay").replay({}, stream); }
void Graph::replay(std::span<const Rebinding> rebindings, const Stream& stream) { handle_->need("Graph::replay").replay(rebindings, stream); }

void Graph::reset() {
  capture_abandon();
  handle_->state.reset();
}

PoolId Graph::pool() const {
  if (handle_->capture) return handle_->capture->arena()->pool();
  return handle_->state ? handle_->state->arena->pool() : PoolId{};
}

std::vector<GraphNode> Graph::nodes() const { return detail::describe_nodes(handle_->need("Graph::nodes")); }

std::vector<int> Graph::find(std::string_view wanted) const {
  std::vector<int> found;
  for (const GraphNode& node : detail::describe_nodes(handle_->need("Graph::find"))) {
    bool labelled = std::any_of(node.labels.begin(), node.labels.end(), [&](const GraphLabel& label) { return label.name == wanted; });
    if (labelled || node.op == wanted || node.kernel == wanted) found.push_back(node.id);
  }
  return found;
}

GraphReport Graph::report() const { return detail::describe(handle_->need("Graph::report")); }
std::string Graph::to_string(GraphDump format) const { return detail::dump(handle_->need("Graph::to_string"), format); }

void Graph::debug_dump(std::string_view path) const {
  debug_dump(path, path.ends_with(".html") ? GraphDump::html : path.ends_with(".json") ? GraphDump::json : GraphDump::dot);
}

void Graph::debug_dump(std::string_view path, GraphDump format) const {
  std::string text = detail::dump(handle_->need("Graph::debug_dump"), format);
  std::ofstream out{std::string(path), std::ios::binary};
  out << text;
  out.close();
  if (!out) throw Error(ErrorCode::io, "Graph::debug_dump", fmt::format("the output must be a file that can be written, got {}", path));
}

std::vector<double> Graph::measure(int replays, const Stream& stream) { return handle_->need("Graph::measure").measure(replays, stream); }

void Graph::update(int node, std::span<const Argument> arguments) { handle_->need("Graph::update").update(node, arguments); }
void Graph::rebind(std::span<const Rebinding> rebindings) { handle_->need("Graph::rebind").rebind(rebindings); }

void Graph::save(const std::string& path, std::span<const NamedTensor> tensors, const GraphSaveOptions& options) const {
  detail::OpName named("Graph::save");
  const detail::GraphState& state = handle_->need("Graph::save");
  // Other processes replay what this one does: fewer launches, if there are.
  const detail::FusedBackend* fused = state.fused_backend();
  const bool fewer = fused && fused->is_chosen() && fused->groups() > 0 && !fused->replays_nodes() && !state.has_rebound() && state.named.empty();
  detail::save_graph(fewer ? *fused->fused() : state, path, tensors, options);
}

Graph Graph::load(const std::string& path, const Device& device, const GraphOptions& options) {
  detail::OpName named("Graph::load");
  Graph graph(options);
  graph.handle_->state = detail::load_graph(path, device, options, graph.handle_->backend_name);
  return graph;
}

Tensor Graph::tensor(std::string_view name) const {
  std::string known;
  for (const NamedTensor& row : handle_->need("Graph::tensor").named) {
    if (row.name == name) return row.tensor;
    known += " " + row.name;
  }
  throw Error(ErrorCode::invalid_argument, "Graph::tensor",
              fmt::format("the name must be that of a tensor of the loaded graph, got '{}'; there are:{}", name, known));
}

std::vector<std::string> Graph::tensor_names() const {
  std::vector<std::string> names;
  for (const NamedTensor& row : handle_->need("Graph::tensor_names").named) names.push_back(row.name);
  return names;
}

GraphProgram Graph::program() const {
  detail::GraphState& state = handle_->need("Graph::program");
  state.place_nodes();
  return GraphProgram(state);
}

namespace {
const Stream& not_empty(const Stream& stream) {
  if (stream.empty()) throw Error(ErrorCode::invalid_argument, "GraphCapture", "the Stream must be a made one, got an empty one");
  return stream;
}
}  // namespace

GraphCapture::GraphCapture(Graph& graph, const Stream& stream, const CaptureOptions& options)
    : graph_(graph), guard_(not_empty(stream)), exceptions_(std::uncaught_exceptions()) {
  detail::OpName named("GraphCapture");
  graph_.capture_begin(stream, options);
}

GraphCapture::~GraphCapture() noexcept(false) {  // NOLINT(bugprone-exception-escape)
  if (std::uncaught_exceptions() > exceptions_)
    graph_.capture_abandon();
  else if (graph_.is_capturing())
    graph_.capture_end();
}

std::vector<CaptureProblem> dry_run(const std::function<void()>& f, const Stream& stream, const CaptureOptions& options) {
  std::shared_ptr<detail::Capture> capture = detail::start(stream, options, true, "dry_run");
  auto end = [&] {
    capture->detach();
    capture->drop();
  };
  try {
    StreamGuard guard(stream);
    f();
  } catch (...) {
    end();
    throw;
  }
  capture->detach();
  std::vector<CaptureProblem> problems = capture->problems();
  if (std::string unjoined = capture->unjoined(); !unjoined.empty()) problems.push_back({"Graph::capture_end", unjoined, capture->recorded()});
  capture->drop();
  return problems;
}

GraphAnnotation::GraphAnnotation(std::string_view name, std::initializer_list<std::pair<std::string_view, std::string_view>> values)
    : outer_(detail::thread_labels()->now()) {
  auto labels = std::make_shared<std::vector<GraphLabel>>();
  if (outer_) *labels = *outer_;
  GraphLabel label{std::string(name), {}};
  for (const auto& [key, value] : values) label.values.emplace_back(key, value);
  labels->push_back(std::move(label));
  detail::thread_labels()->exchange(std::move(labels));
}

GraphAnnotation::~GraphAnnotation() { detail::thread_labels()->exchange(std::move(outer_)); }

}}  // namespace clutch::v0

namespace clutch { inline namespace v0 { namespace interop {

Launched kernel(const GraphProgram& program, int node) {
  const detail::GraphState& state = program.state();
  if (node < 0 || node >= program.size() || program.kind(node) != GraphNodeKind::kernel || !state.instantiated())
    throw Error(ErrorCode::invalid_argument, "interop::kernel",
                fmt::format("the node must be a kernel of an instantiated graph of {} nodes, got {}", program.size(), node));
  const detail::GraphWork& work = state.nodes[static_cast<std::size_t>(node)];
  return {state.make_kernel(work).release(), work.geometry};
}

}}}  // namespace clutch::v0::interop
