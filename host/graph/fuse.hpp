// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "graph/state.hpp"

#include <string>
#include <utility>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// A rule of fusion that a test breaks, to see that wrong results are found.
enum class BrokenRule : std::uint8_t {
  none,
  other_views,    ///< nodes whose views of written memory differ are not one launch
  way_around,     ///< a node that must come between nodes of a launch keeps them apart
  narrow_store,   ///< a value is rounded to the dtype that a node stored it in
  seen_result,    ///< a value that other nodes read is stored
  table_barrier,  ///< steps of a table wait for those that they depend on
  table_reads,    ///< steps of a table that overwrite what others read follow them
};
inline BrokenRule broken_rule = BrokenRule::none;

/// A launch in the place of nodes of a graph, or one node as it is.
struct FusedStep {
  GraphWork work;
  std::vector<int> nodes;                      ///< in their order
  const char* form = "";                       ///< "pointwise", "rows", "product" or "table"; empty of one node
  int unrounded = 0;                           ///< values that relaxed rounding left as they were
  std::vector<std::pair<int, int>> addresses;  ///< for each use of `work` the node and its use that has the same address
};

/// Strides of a use over the sizes that it broadcasts to. A result may be without the dimensions that are gone.
std::vector<std::int64_t> strides_over(const GraphUse& use, const Meaning& meaning, bool result);

struct FuseOptions {
  bool if_any = false;         ///< gives no steps at all if nothing is fused
  bool products = true;        ///< into launches of products, whose programs take seconds to build
  std::size_t table_from = 0;  ///< small launches that a table takes the place of, at least; 0: none does
  bool relaxed = false;        ///< values in narrower floating dtypes pass from node to node unrounded
};

struct FusedProgram {
  std::vector<FusedStep> steps;        ///< in an order that keeps each result
  std::vector<std::string> why_alone;  ///< for each node of the graph why it is not fused; empty if it is
  int unrounded = 0;                   ///< of all steps
};

/// The nodes of a finished capture in fewer launches, each result with the same bits. Pointwise nodes that read each other's results, or one tensor, become one
/// launch of one function; those that read what a reduction or a product computes become a part of its launch. A result that a node stored in a narrower dtype
/// is rounded to this dtype. Temporaries that no other node reads are not stored. A launch takes the place of its nodes only if no node outside of it must come
/// between them. What is small then becomes launches of tables (graph/tiny.hpp).
/// Needs: state.nodes.
/// Errors: those of building programs.
FusedProgram fuse(const GraphState& state, const FuseOptions& options = {});

}}}  // namespace clutch::v0::detail
