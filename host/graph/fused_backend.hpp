// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "graph/fuse.hpp"
#include "graph/state.hpp"

#include <memory>
#include <string>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// Replays a graph in fewer launches (graph/fuse.hpp), which are a graph of their own with its own places of temporaries. While other tensors are bound so
/// that launches of the fused program would not have the results of the nodes, the nodes replay one by one.
class FusedBackend : public GraphImpl {
 public:
  /// `alone`: no other backend replays the graph, so that its nodes need no memory. `relaxed`: GraphOptions::relaxed_rounding.
  explicit FusedBackend(bool alone, bool relaxed = false);
  ~FusedBackend() override;
  void instantiate(const GraphProgram& program) override;
  void changed(const GraphProgram& program, std::span<const int> nodes) override;
  void replay(const GraphProgram& program, const Stream& stream) override;
  void reset() override;
  std::string debug() const override;

  bool is_alone() const noexcept { return alone_; }
  /// True if it replays, and not another backend.
  bool is_chosen() const noexcept { return chosen_; }
  void choose(bool chosen) noexcept { chosen_ = chosen; }
  /// True while the graph's own nodes replay, which then need memory.
  bool replays_nodes() const noexcept { return !stale_.empty(); }
  /// The fused program, as a graph of its own; null before instantiate().
  GraphState* fused() const noexcept { return inner_.get(); }
  const std::vector<FusedStep>& steps() const noexcept { return steps_; }
  const std::vector<std::string>& why_alone() const noexcept { return why_alone_; }
  /// Launches that stand for several nodes.
  int groups() const noexcept { return groups_; }

 private:
  void prepare(const GraphState& state, const FuseOptions& options);
  /// Why the fused program does not have the nodes' results with the present addresses; empty if it has.
  std::string find_stale(const GraphState& state) const;
  /// False for the launch of a table whose tensors are, at the present addresses, in more buffers than a table has.
  bool fits_table(const GraphState& state, std::size_t step) const;

  const bool alone_, relaxed_;
  bool chosen_;
  std::unique_ptr<GraphState> inner_;
  std::vector<FusedStep> steps_;  ///< without their work
  std::vector<std::string> why_alone_;
  std::string stale_;
  std::string updated_;  ///< why an update() of a node ended the use of the fused program
  int groups_ = 0, unrounded_ = 0;
};

/// The backend itself, or the one among those that it chooses from; null if there is none.
FusedBackend* fused_of(GraphImpl& backend) noexcept;

}}}  // namespace clutch::v0::detail
