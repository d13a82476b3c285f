// SPDX-License-Identifier: Apache-2.0
#include "graph/fused_backend.hpp"

#include "graph/tiny.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace clutch { inline namespace v0 { namespace detail {

FusedBackend::FusedBackend(bool alone, bool relaxed) : alone_(alone), relaxed_(relaxed), chosen_(alone) {}
FusedBackend::~FusedBackend() = default;

void FusedBackend::instantiate(const GraphProgram& program) {
  FuseOptions options{.if_any = !alone_, .products = alone_, .table_from = alone_ ? table_tuning.least : table_tuning.least_of_auto, .relaxed = relaxed_};
  try {
    prepare(program.state(), options);
  } catch (const Error& e) {
    // The arena of temporaries may have more segments than a table has buffers.
    if (e.code() != ErrorCode::not_supported) throw;
    options.table_from = 0;
    prepare(program.state(), options);
  }
}

void FusedBackend::prepare(const GraphState& state, const FuseOptions& options) {
  FusedProgram fused = fuse(state, options);
  if (fused.steps.empty() && !alone_) return;
  auto inner = std::make_unique<GraphState>(state.runtime(), "host", make_backend("host"));
  groups_ = 0;
  for (FusedStep& step : fused.steps) {
    groups_ += step.nodes.size() > 1;
    inner->nodes.push_back(std::move(step.work));
  }
  inner->take_memory(state);
  inner->instantiate();
  inner_ = std::move(inner);
  unrounded_ = fused.unrounded;
  steps_ = std::move(fused.steps);
  why_alone_ = std::move(fused.why_alone);
  stale_.clear(), updated_.clear();
}

void FusedBackend::changed(const GraphProgram& program, std::span<const int> nodes) {
  const GraphState& state = program.state();
  for (int node : nodes)
    if (const GraphWork& work = state.nodes[static_cast<std::size_t>(node)]; work.temporary_replaced && updated_.empty())
      updated_ = fmt::format("Graph::update() gave node {} ({}) another tensor in the place of a temporary", node, work.op);
  bool scattered = false;
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const FusedStep& step = steps_[s];
    const GraphWork& first = state.nodes[static_cast<std::size_t>(step.nodes.front())];
    GraphWork& work = inner_->nodes[s];
    if (step.nodes.size() == 1) {
      if (std::find(nodes.begin(), nodes.end(), step.nodes.front()) != nodes.end()) inner_->set_values(work, first.bytes);
    } else if (updated_.empty()) {
      for (int node : step.nodes)
        if (state.nodes[static_cast<std::size_t>(node)].updated)
          updated_ = fmt::format("Graph::update() gave node {} ({}) of a fused launch another argument", node, state.nodes[static_cast<std::size_t>(node)].op);
    }
    if (!fits_table(state, s)) {
      scattered = true;
      continue;
    }
    for (std::size_t u = 0; u < step.addresses.size(); ++u) {
      const auto [node, use] = step.addresses[u];
      const GraphWork& from = state.nodes[static_cast<std::size_t>(node)];
      if (state.buffers[static_cast<std::size_t>(from.uses[static_cast<std::size_t>(use)].buffer)].kind == GraphBuffer::Kind::temporary) continue;
      if (work.holds_table(static_cast<int>(u))) continue;
      inner_->move_use(static_cast<int>(s), static_cast<int>(u), from.set[static_cast<std::size_t>(use)]);
    }
  }
  inner_->end_moves();
  stale_ = !updated_.empty() ? updated_ : scattered ? "a table's tensors are in more buffers than it has" : find_stale(state);
}

bool FusedBackend::fits_table(const GraphState& state, std::size_t step) const {
  const GraphWork& work = inner_->nodes[step];
  if (work.table.first_base < 0 || steps_[step].nodes.size() == 1) return true;
  std::set<cl_mem> buffers;
  for (std::size_t u = 0; u < steps_[step].addresses.size(); ++u) {
    const auto [node, use] = steps_[step].addresses[u];
    const GraphWork& from = state.nodes[static_cast<std::size_t>(node)];
    const bool temporary = state.buffers[static_cast<std::size_t>(from.uses[static_cast<std::size_t>(use)].buffer)].kind == GraphBuffer::Kind::temporary;
    buffers.insert(temporary ? work.set[u].mem : from.set[static_cast<std::size_t>(use)].mem);
  }
  return buffers.size() <= TensorTable::kBases;
}

std::string FusedBackend::find_stale(const GraphState& state) const {
  // Uses of one buffer that moved together keep what they have in common. Different ones must have nothing in common, before and now.
  struct Place {
    std::uint64_t begin = UINT64_MAX, end = 0;  ///< bytes in the buffer
    bool written = false;
  };
  std::map<std::tuple<int, cl_mem, std::int64_t>, Place> places;
  for (const GraphWork& node : state.nodes)
    for (std::size_t u = 0; u < node.uses.size(); ++u) {
      const GraphUse& use = node.uses[u];
      if (use.bytes == 0 || state.buffers[static_cast<std::size_t>(use.buffer)].kind == GraphBuffer::Kind::temporary) continue;
      const Address& at = node.set[u];
      Place& place = places[{use.buffer, at.mem, static_cast<std::int64_t>(at.offset) - static_cast<std::int64_t>(use.byte_offset)}];
      place.begin = std::min(place.begin, use.byte_offset), place.end = std::max(place.end, use.byte_offset + use.bytes);
      place.written = place.written || use.access != Argument::Kind::input;
    }
  auto meet = [](std::int64_t a, const Place& p, std::int64_t b, const Place& q) {
    return a + static_cast<std::int64_t>(p.begin) < b + static_cast<std::int64_t>(q.end) &&
           b + static_cast<std::int64_t>(q.begin) < a + static_cast<std::int64_t>(p.end);
  };
  for (auto p = places.begin(); p != places.end(); ++p)
    for (auto q = std::next(p); q != places.end(); ++q) {
      if (!p->second.written && !q->second.written) continue;
      const auto& [a, a_mem, a_at] = p->first;
      const auto& [b, b_mem, b_at] = q->first;
      if (a == b && meet(0, p->second, 0, q->second)) return "some uses of a captured tensor, and not all, were given another one";
      if (a_mem == b_mem && meet(a_at, p->second, b_at, q->second))
        return "tensors share memory in the place of captured ones that do not, or are known not to";
    }
  return {};
}

void FusedBackend::replay(const GraphProgram& program, const Stream& stream) {
  if (replays_nodes())
    program.state().enqueue(program.state().nodes, stream.impl());
  else
    inner_->replay_by_backend(stream);
}

void FusedBackend::reset() {
  inner_.reset();
  steps_.clear(), why_alone_.clear();
  stale_.clear(), updated_.clear();
  groups_ = unrounded_ = 0;
}

std::string FusedBackend::debug() const {
  if (!inner_) return "not instantiated";
  std::size_t fused = 0, alone = 0;
  for (const FusedStep& step : steps_) (step.nodes.size() > 1 ? fused : alone) += step.nodes.size();
  std::string text = fmt::format("{} nodes in {} fused launches, {} alone", fused, groups_, alone);
  const auto tables = std::count_if(steps_.begin(), steps_.end(), [](const FusedStep& step) { return std::string_view(step.form) == "table"; });
  if (tables > 0) text += fmt::format("; {} of the launches {} a table", tables, tables == 1 ? "goes through" : "go through");
  if (relaxed_) text += fmt::format("; {} values pass unrounded (relaxed_rounding)", unrounded_);
  std::map<std::string, int> reasons;
  for (const std::string& why : why_alone_)
    if (!why.empty()) ++reasons[why];
  for (const auto& [why, count] : reasons) text += fmt::format("; {} because {}", count, why);
  if (!stale_.empty()) text += fmt::format("; the nodes replay one by one: {}", stale_);
  return text;
}

}}}  // namespace clutch::v0::detail
