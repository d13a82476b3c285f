// SPDX-License-Identifier: Apache-2.0
// Backends, which replay graphs: the queue, command buffers, the faster of both, and those that users register.
#include "graph/native_backend.hpp"
#include "graph/report.hpp"
#include "graph/state.hpp"
#include "runtime/plugin_hook.hpp"

#include <clutch/event.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>

namespace clutch { inline namespace v0 {

namespace detail {

namespace {

/// Enqueues each node of a replay on the stream's queue. All checks, selection and binding were done at the capture.
class HostBackend : public GraphImpl {
 public:
  void instantiate(const GraphProgram&) override {}
  void changed(const GraphProgram&, std::span<const int>) override {}
  void replay(const GraphProgram& program, const Stream& stream) override { program.state().enqueue(program.state().nodes, stream.impl()); }
  void reset() override {}
  std::string debug() const override { return "one enqueue per node"; }
};

/// Alternates between both backends until the caller's own replays have measured both, then uses the faster one.
class AutoBackend : public GraphImpl {
 public:
  void instantiate(const GraphProgram& program) override {
    host_.instantiate(program);
    std::string reason = native_.refuses(program);
    if (reason.empty()) {
      try {
        native_.instantiate(program);
      } catch (const Error& e) {
        reason = e.what();
      }
    }
    if (!reason.empty()) decide(false, fmt::format("native refuses: {}", reason));
  }

  void changed(const GraphProgram& program, std::span<const int> nodes) override {
    if (decided_ && !native_chosen_) return;
    native_.changed(program, nodes);
  }

  void replay(const GraphProgram& program, const Stream& stream) override {
    if (!decided_) settle();
    if (decided_) {
      chosen().replay(program, stream);
      return;
    }
    // Order A B B A, so that drift of the clock rate affects both alike.
    bool native = begun_ % 4 == 1 || begun_ % 4 == 2;
    ++begun_;
    Trial trial;
    trial.native = native;
    trial.before = stream.impl()->mark("Graph::replay");
    auto begin = std::chrono::steady_clock::now();
    (native ? static_cast<GraphImpl&>(native_) : host_).replay(program, stream);
    trial.host_ns = static_cast<double>(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count());
    trial.after = stream.impl()->mark("Graph::replay");
    trials_.push_back(std::move(trial));
  }

  void reset() override {
    native_.reset();
    trials_.clear();
    decided_ = false;
    begun_ = 0;
  }

  std::string debug() const override {
    if (!decided_) return fmt::format("auto: host and native take turns until both are measured ({} replays so far)", begun_);
    return fmt::format("auto: {}: {}", native_chosen_ ? "native" : "host", why_);
  }
  std::pair<std::uint64_t, std::uint64_t> native() const override {
    if (decided_ && !native_chosen_) return {0, 0};
    return native_.native();
  }

 private:
  struct Trial {
    bool native;
    ClEvent before, after;
    double host_ns;
  };
  // The first replays trigger the driver's first-use compilation, so they are not measured.
  static constexpr int kWarmUps = 4, kMeasured = 12;

  GraphImpl& chosen() { return native_chosen_ ? static_cast<GraphImpl&>(native_) : host_; }

  void decide(bool native, std::string why) {
    decided_ = true;
    native_chosen_ = native;
    why_ = std::move(why);
    trials_.clear();
    if (!native) native_.reset();
  }

  /// Time of a trial in ns: the longer of host time and device time. nullopt while the trial is not over.
  static std::optional<double> time_of(const Trial& trial) {
    if (!trial.before || !trial.after) return trial.host_ns;
    if (!is_done(trial.after.get())) return std::nullopt;
    cl_ulong begin = 0, end = 0;
    bool timed = clGetEventProfilingInfo(trial.before.get(), CL_PROFILING_COMMAND_END, sizeof begin, &begin, nullptr) == CL_SUCCESS &&
                 clGetEventProfilingInfo(trial.after.get(), CL_PROFILING_COMMAND_END, sizeof end, &end, nullptr) == CL_SUCCESS && end > begin;
    return timed ? std::max(trial.host_ns, static_cast<double>(end - begin)) : trial.host_ns;
  }

  void settle() {
    if (begun_ < kWarmUps + kMeasured) return;
    std::array<std::vector<double>, 2> times;
    for (std::size_t i = kWarmUps; i < trials_.size(); ++i) {
      std::optional<double> time = time_of(trials_[i]);
      if (!time) return;  // settled at a later replay, so that nothing waits
      times[trials_[i].native ? 1 : 0].push_back(*time);
    }
    auto median = [](std::vector<double>& v) {
      std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
      return v[v.size() / 2];
    };
    double host = median(times[0]), native = median(times[1]);
    decide(native < host, fmt::format("median of {} replays each: host {:.1f} us, native {:.1f} us", times[0].size(), host / 1e3, native / 1e3));
  }

  HostBackend host_;
  NativeBackend native_;
  bool decided_ = false, native_chosen_ = false;
  std::string why_;
  int begun_ = 0;
  std::vector<Trial> trials_;
};

constexpr std::array<std::string_view, 3> kOwn{"auto", "host", "native"};

struct Backends {
  std::mutex mutex;
  std::map<std::string, GraphImplFactory, std::less<>> more;
};
Backends& backends() {
  static auto* all = new Backends;
  return *all;
}

}  // namespace

bool is_own_backend(std::string_view name) noexcept { return std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end(); }

std::unique_ptr<GraphImpl> make_backend(std::string_view name) {
  if (name == "host") return std::make_unique<HostBackend>();
  if (name == "native") return std::make_unique<NativeBackend>();
  if (name == "auto") return std::make_unique<AutoBackend>();
  load_plugins();
  GraphImplFactory factory;
  {
    std::lock_guard lock(backends().mutex);
    auto found = backends().more.find(name);
    if (found == backends().more.end()) throw Error(ErrorCode::invalid_argument, "Graph", fmt::format("the backend must be a registered one, got '{}'", name));
    factory = found->second;
  }
  std::unique_ptr<GraphImpl> made = factory();
  if (!made) throw Error(ErrorCode::not_supported, "Graph", fmt::format("the factory of backend {} must make one, got a null pointer", name));
  return made;
}

}  // namespace detail

GraphImpl::~GraphImpl() = default;
void GraphImpl::begin(const Stream&, CaptureMode) {}
void GraphImpl::end(const GraphProgram&) {}
PoolId GraphImpl::pool() const { return {}; }
std::string GraphImpl::refuses(const GraphProgram&) const { return {}; }
void GraphImpl::changed(const GraphProgram& program, std::span<const int>) {
  reset();
  instantiate(program);
}
std::string GraphImpl::debug() const { return {}; }
std::pair<std::uint64_t, std::uint64_t> GraphImpl::native() const { return {0, 0}; }

Device GraphProgram::device() const { return Device(&state_.runtime().device()); }
int GraphProgram::size() const noexcept { return static_cast<int>(state_.nodes.size()); }

namespace {
const detail::GraphWork& work_of(const detail::GraphState& state, int node, std::string_view op) {
  if (node < 0 || node >= static_cast<int>(state.nodes.size()))
    throw Error(ErrorCode::invalid_argument, op, fmt::format("the node must be in [0, {}), got {}", state.nodes.size(), node));
  return state.nodes[static_cast<std::size_t>(node)];
}
}  // namespace

GraphNodeKind GraphProgram::kind(int node) const { return work_of(state_, node, "GraphProgram::kind").kind; }
GraphNode GraphProgram::node(int node) const {
  work_of(state_, node, "GraphProgram::node");
  return detail::describe_node(state_, node);
}
void GraphProgram::enqueue(int node, const Stream& stream) const {
  constexpr const char* kOp = "GraphProgram::enqueue";
  state_.enqueue(std::span(&work_of(state_, node, kOp), 1), detail::resolve_stream(stream, state_.runtime(), kOp).impl());
}

void register_graph_backend(std::string_view name, GraphImplFactory factory) {
  if (name.empty() || !factory || detail::is_own_backend(name))
    throw Error(ErrorCode::invalid_argument, "register_graph_backend", fmt::format("a backend must have a new name and a factory, got '{}'", name));
  std::lock_guard lock(detail::backends().mutex);
  detail::backends().more.insert_or_assign(std::string(name), std::move(factory));
}

std::vector<std::string> graph_backends() {
  detail::load_plugins();
  std::vector<std::string> names(detail::kOwn.begin(), detail::kOwn.end());
  std::lock_guard lock(detail::backends().mutex);
  for (const auto& [name, factory] : detail::backends().more) names.push_back(name);
  return names;
}

}}  // namespace clutch::v0
