// SPDX-License-Identifier: Apache-2.0
// Backends, which replay graphs: the queue, command buffers, fewer launches, the fastest of these, and those that users register.
#include "graph/fused_backend.hpp"
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

/// Alternates between the backends that take the graph until the caller's own replays have measured all, then uses the fastest one.
class AutoBackend : public GraphImpl {
 public:
  void instantiate(const GraphProgram& program) override {
    candidates_ = {{"host", &host_}};
    host_.instantiate(program);
    refused_.clear();
    add("native", native_, program, native_.refuses(program));
    add("fused", fused_, program, {});
    if (candidates_.size() > 1 && candidates_.back().backend == &fused_ && fused_.groups() == 0) {
      candidates_.pop_back();
      fused_.reset();
    }
    if (candidates_.size() == 1) decide(0, refused_.empty() ? std::string("no other backend differs") : refused_);
  }

  void changed(const GraphProgram& program, std::span<const int> nodes) override {
    if (decided_)
      chosen().changed(program, nodes);
    else
      for (Candidate& c : candidates_) c.backend->changed(program, nodes);
  }

  void replay(const GraphProgram& program, const Stream& stream) override {
    if (!decided_) settle();
    if (decided_) {
      chosen().replay(program, stream);
      return;
    }
    // Order A B C C B A, so that drift of the clock rate affects all alike.
    const std::size_t n = candidates_.size(), turn = static_cast<std::size_t>(begun_) % (2 * n);
    ++begun_;
    Trial trial;
    trial.candidate = turn < n ? turn : 2 * n - 1 - turn;
    trial.before = stream.impl()->mark("Graph::replay");
    auto begin = std::chrono::steady_clock::now();
    candidates_[trial.candidate].backend->replay(program, stream);
    trial.host_ns = static_cast<double>(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count());
    trial.after = stream.impl()->mark("Graph::replay");
    trials_.push_back(std::move(trial));
  }

  void reset() override {
    native_.reset();
    fused_.reset();
    fused_.choose(false);
    candidates_.clear();
    trials_.clear();
    decided_ = false;
    begun_ = 0;
  }

  std::string debug() const override {
    if (!decided_) {
      std::string names;
      for (const Candidate& c : candidates_) names += fmt::format("{}{}", names.empty() ? "" : ", ", c.name);
      return fmt::format("auto: {} take turns until all are measured ({} replays so far)", names, begun_);
    }
    const std::string more = candidates_[chosen_].backend->debug();
    return fmt::format("auto: {}: {}{}{}", candidates_[chosen_].name, why_, more.empty() ? "" : "; ", more);
  }
  std::pair<std::uint64_t, std::uint64_t> native() const override {
    if (decided_) return candidates_[chosen_].backend->native();
    return native_.native();
  }
  FusedBackend& fused() noexcept { return fused_; }

 private:
  struct Candidate {
    const char* name;
    GraphImpl* backend;
  };
  struct Trial {
    std::size_t candidate;
    ClEvent before, after;
    double host_ns;
  };
  // The first replays trigger the driver's first-use compilation, so they are not measured. Each is a number of replays of one candidate.
  static constexpr int kWarmUps = 2, kMeasured = 6;

  GraphImpl& chosen() { return *candidates_[chosen_].backend; }

  void add(const char* name, GraphImpl& backend, const GraphProgram& program, std::string reason) {
    if (reason.empty()) {
      try {
        backend.instantiate(program);
        candidates_.push_back({name, &backend});
        return;
      } catch (const Error& e) {
        backend.reset();
        reason = e.what();
      }
    }
    refused_ += fmt::format("{}{} refuses: {}", refused_.empty() ? "" : "; ", name, reason);
  }

  void decide(std::size_t candidate, std::string why) {
    decided_ = true;
    chosen_ = candidate;
    why_ = std::move(why);
    trials_.clear();
    fused_.choose(candidates_[candidate].backend == &fused_);
    for (const Candidate& c : candidates_)
      if (&c != &candidates_[candidate]) c.backend->reset();
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
    const auto warm_ups = candidates_.size() * kWarmUps;
    if (static_cast<std::size_t>(begun_) < warm_ups + candidates_.size() * kMeasured) return;
    std::vector<std::vector<double>> times(candidates_.size());
    for (std::size_t i = warm_ups; i < trials_.size(); ++i) {
      std::optional<double> time = time_of(trials_[i]);
      if (!time) return;  // settled at a later replay, so that nothing waits
      times[trials_[i].candidate].push_back(*time);
    }
    std::vector<double> medians;
    std::string told;
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      auto middle = times[c].begin() + static_cast<std::ptrdiff_t>(times[c].size() / 2);
      std::nth_element(times[c].begin(), middle, times[c].end());
      medians.push_back(*middle);
      told += fmt::format("{}{} {:.1f} us", told.empty() ? "" : ", ", candidates_[c].name, *middle / 1e3);
    }
    decide(static_cast<std::size_t>(std::min_element(medians.begin(), medians.end()) - medians.begin()),
           fmt::format("median of {} replays each: {}", times[0].size(), told));
  }

  HostBackend host_;
  NativeBackend native_;
  FusedBackend fused_{false};
  std::vector<Candidate> candidates_;
  bool decided_ = false;
  std::size_t chosen_ = 0;
  std::string why_, refused_;
  int begun_ = 0;
  std::vector<Trial> trials_;
};

constexpr std::array<std::string_view, 4> kOwn{"auto", "host", "native", "fused"};

struct Backends {
  std::mutex mutex;
  std::map<std::string, GraphImplFactory, std::less<>> more;
};
Backends& backends() {
  static auto* all = new Backends;
  return *all;
}

}  // namespace

FusedBackend* fused_of(GraphImpl& backend) noexcept {
  if (auto* chooses = dynamic_cast<AutoBackend*>(&backend)) return &chooses->fused();
  return dynamic_cast<FusedBackend*>(&backend);
}

bool is_own_backend(std::string_view name) noexcept { return std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end(); }

std::unique_ptr<GraphImpl> make_backend(std::string_view name, bool relaxed_rounding) {
  if (name == "host") return std::make_unique<HostBackend>();
  if (name == "native") return std::make_unique<NativeBackend>();
  if (name == "fused") return std::make_unique<FusedBackend>(true, relaxed_rounding);
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
