// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "graph/backends.hpp"
#include "graph/fuse.hpp"

#include <functional>
#include <regex>

namespace clutch::testing {

using Tensors = std::vector<Tensor>;

inline std::vector<std::vector<std::uint8_t>> bytes_of(const Tensors& tensors, const Stream& stream) {
  std::vector<std::vector<std::uint8_t>> all;
  for (const Tensor& t : tensors) all.push_back(t.contiguous(stream).to_bytes(stream));
  return all;
}

/// Launches of a replay, as the backend tells them.
struct Counts {
  int fused_nodes = 0, launches = 0, alone = 0;
};
inline Counts counts_of(const Graph& graph) {
  std::smatch m;
  const std::string why = graph.report().why;
  EXPECT_TRUE(std::regex_search(why, m, std::regex("(\\d+) nodes in (\\d+) fused launches, (\\d+) alone"))) << why;
  if (m.size() < 4) return {};
  Counts counts{std::stoi(m[1]), std::stoi(m[2]), std::stoi(m[3])};
  for (const GraphNode& node : graph.nodes())  // what fills new memory with NaN
    counts.alone -= node.kind == GraphNodeKind::fill && node.why.starts_with("a launch of its own");
  return counts;
}

/// The node of the one call of `op`, and its param's name.
inline std::pair<int, std::string> param_of(const Graph& graph, std::string_view op) {
  const std::vector<int> calls = graph.find(op);
  EXPECT_EQ(calls.size(), 1u);
  if (calls.size() != 1) return {0, {}};
  const std::vector<GraphNode> nodes = graph.nodes();
  std::string name;
  for (const GraphArgument& a : nodes[static_cast<std::size_t>(calls[0])].arguments)
    if (a.kind == Argument::Kind::value && a.name.starts_with("p")) name = a.name;
  return {calls[0], name};
}

/// Captures f(state) and compares two replays with two eager calls, which start from the same state.
inline Counts expect_eager_bits(const Device& device, const Tensors& state, const std::function<Tensors(const Tensors&)>& f) {
  current_stream(device).synchronize();  // which made the state
  Stream stream(device);
  StreamGuard guard(stream);
  Tensors eager, captured;
  for (const Tensor& t : state) eager.push_back(t.clone(stream)), captured.push_back(t.clone(stream));
  manual_seed(7, device);
  std::vector<std::vector<std::uint8_t>> want[2];
  for (auto& w : want) {
    Tensors results = f(eager);
    results.insert(results.end(), eager.begin(), eager.end());
    w = bytes_of(results, stream);
  }
  Graph graph({.backend = "fused"});
  Tensors results;
  {
    GraphCapture capture(graph, stream);
    results = f(captured);
  }
  manual_seed(7, device);
  results.insert(results.end(), captured.begin(), captured.end());
  for (const auto& w : want) {
    graph.replay(stream);
    EXPECT_EQ(bytes_of(results, stream), w) << graph.to_string();
  }
  return counts_of(graph);
}

inline Tensor random(const Dims& sizes, const Device& device, DType dtype = DType::f32, std::uint64_t seed = 1) {
  return randn(sizes, {.device = device, .seed = seed}).to(dtype);
}

}  // namespace clutch::testing
