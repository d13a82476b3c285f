// SPDX-License-Identifier: Apache-2.0
// Times of a graph's nodes, each by itself.
#include "graph/measure.hpp"

#include "runtime/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

double time_of(cl_event event, cl_profiling_info what) {
  cl_ulong ns = 0;
  check_cl(clGetEventProfilingInfo(event, what, sizeof ns, &ns, nullptr), "Graph::measure", "clGetEventProfilingInfo");
  return static_cast<double>(ns) * 1e-3;
}

/// True of the event of a command that does the node's work; false of a marker's.
bool is_work(cl_event event) {
  cl_command_type type = 0;
  return clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, nullptr) == CL_SUCCESS &&
         (type == CL_COMMAND_NDRANGE_KERNEL || type == CL_COMMAND_COPY_BUFFER || type == CL_COMMAND_FILL_BUFFER);
}

}  // namespace

void measure_nodes(const GraphState& state, const Stream& stream, std::vector<double>& times) {
  const std::shared_ptr<StreamImpl>& impl = stream.impl();
  struct Marks {
    ClEvent before, work, after;
  };
  std::vector<Marks> marks(state.nodes.size());
  std::vector<double> host(state.nodes.size());
  for (std::size_t i = 0; i < state.nodes.size(); ++i) {
    const GraphWork& node = state.nodes[i];
    const bool on_host = node.kind == GraphNodeKind::host_task;
    if (on_host) impl->synchronize("Graph::measure");  // the task waits for what is before it, which is not its time
    const ClEvent last = impl->last();
    marks[i].before = impl->mark("Graph::measure");
    const auto begin = std::chrono::steady_clock::now();
    state.enqueue(std::span(&node, 1), impl);
    if (on_host) impl->synchronize("Graph::measure");
    host[i] = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    if (ClEvent work = impl->last(); node.kind != GraphNodeKind::opaque && !on_host && work.get() != last.get()) marks[i].work = std::move(work);
    marks[i].after = impl->mark("Graph::measure");
  }
  impl->synchronize("Graph::measure");
  for (std::size_t i = 0; i < state.nodes.size(); ++i) {
    const Marks& m = marks[i];
    double us = host[i];
    if (m.work && is_work(m.work.get()))
      us = time_of(m.work.get(), CL_PROFILING_COMMAND_END) - time_of(m.work.get(), CL_PROFILING_COMMAND_START);
    else if (state.nodes[i].kind != GraphNodeKind::host_task && m.before && m.after)
      us = time_of(m.after.get(), CL_PROFILING_COMMAND_END) - time_of(m.before.get(), CL_PROFILING_COMMAND_END);
    times.push_back(std::max(us, 0.0));
  }
}

std::vector<double> GraphState::measure(int replays, const Stream& given) {
  constexpr const char* kOp = "Graph::measure";
  constexpr int kMost = 10000;
  if (replays < 1 || replays > kMost) throw Error(ErrorCode::invalid_argument, kOp, fmt::format("the replays must be in [1, {}], got {}", kMost, replays));
  if (!runtime_.traits().device_timer)
    throw Error(ErrorCode::not_supported, kOp, fmt::format("needs a usable timer (trait device_timer), device {} has none", runtime_.device().index));
  if (illegal_beside(kOp)) return std::vector<double>(nodes.size());
  std::vector<std::vector<double>> all(static_cast<std::size_t>(replays));
  for (std::vector<double>& times : all) {
    replay({}, given, kOp, &times);
    if (times.size() != nodes.size()) return std::vector<double>(nodes.size());  // in a dry run, where the call is illegal and does nothing
  }
  std::vector<double> medians;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    std::vector<double> of_node;
    for (const std::vector<double>& times : all) of_node.push_back(times[n]);
    auto middle = of_node.begin() + static_cast<std::ptrdiff_t>(of_node.size() / 2);
    std::nth_element(of_node.begin(), middle, of_node.end());
    medians.push_back(*middle);
  }
  measured = medians;
  return medians;
}

}}}  // namespace clutch::v0::detail
