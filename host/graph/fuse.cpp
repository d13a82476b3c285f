// SPDX-License-Identifier: Apache-2.0
#include "graph/fuse.hpp"

#include "encode/meaning.hpp"
#include "encode/plan.hpp"
#include "expr/shared_params.hpp"
#include "graph/capture.hpp"
#include "graph/tiny.hpp"

#include <clutch/stream.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

constexpr const char* kOp = "Graph::instantiate";
constexpr const char* kFusedOp = "fused";  // what a launch in the place of several nodes is called in dumps and profiles

// A bound of one launch: the values that an item holds at once.
constexpr std::size_t kMostSteps = 1024;
/// Nodes of one launch. Longer chains become several launches, since the time of compilers grows faster than the text.
constexpr std::size_t kMostNodes = 256;
/// Elements from which a launch that strides over them takes longer than the launches that it would save.
constexpr std::int64_t kMostInAnyOrder = 4096;

/// The elements that a node computes: dimensions without those of size 1, neighbours merged where all operands allow it.
struct Space {
  std::vector<std::int64_t> sizes;
  friend bool operator==(const Space&, const Space&) = default;
};

/// A tensor of a node over its space.
struct View {
  int buffer = -1;
  std::uint64_t offset = 0;  ///< of element 0, in bytes
  DType dtype = DType::f32;
  std::vector<std::int64_t> strides;
  friend auto operator<=>(const View&, const View&) = default;  // NOLINT(modernize-use-nullptr): of the compiler's own comparison
};

struct Operand {
  int node = 0, use = 0;
  View view;
  std::uint64_t first = 0, last = 0;  ///< bytes in the buffer that it may touch
  bool writes = false;
  bool apart = false;  ///< read at any place: it does not go with the elements
};

/// A node that can be fused.
struct Piece {
  const Meaning* meaning = nullptr;
  Space space;
  std::vector<std::int64_t> gone;   ///< by dimension of the space: 1 if results have one element for all of it
  std::vector<Operand> operands;    ///< elements, results, inputs, captured tensors
  std::vector<int> positions;       ///< dimensions of the node whose positions its function reads, none twice; each is one of the space, or of size 1
  std::vector<int> places_of_dims;  ///< dimension of the space by dimension of the node; -1 of size 1
  bool reads_place = false;         ///< its function reads the place of elements
  bool reads_positions() const { return reads_place || !positions.empty(); }
  bool is_product() const { return meaning->product != nullptr; }
  bool pointwise() const { return !meaning->rows && !is_product(); }
};

std::int64_t count(const Space& space) {
  std::int64_t n = 1;
  for (std::int64_t s : space.sizes) n *= s;
  return n;
}

/// The coarsest space that both can be split into; nullopt if there is none.
std::optional<Space> common_space(const Space& a, const Space& b) {
  if (a == b) return a;
  if (count(a) != count(b)) return std::nullopt;
  std::set<std::int64_t> inner{1};  // elements behind each dimension's boundary
  for (const Space* s : {&a, &b}) {
    std::int64_t n = 1;
    for (auto size = s->sizes.rbegin(); size != s->sizes.rend(); ++size) inner.insert(n *= *size);
  }
  Space made;
  std::int64_t before = 0;
  for (std::int64_t n : inner) {
    if (before > 0) {
      if (n % before != 0) return std::nullopt;
      made.sizes.insert(made.sizes.begin(), n / before);
    }
    before = n;
  }
  if (made.sizes.size() > kMaxRank) return std::nullopt;
  return made;
}

/// For each dimension of a space the first one, of those of a finer space, that it is split into; then their number.
std::vector<std::size_t> firsts_over(const Space& from, const Space& to) {
  std::vector<std::size_t> firsts(from.sizes.size() + 1, to.sizes.size());
  std::size_t d = to.sizes.size();
  for (std::size_t k = from.sizes.size(); k-- > 0; firsts[k] = d)
    for (std::int64_t covered = 1; covered < from.sizes[k]; covered *= to.sizes[d]) --d;
  return firsts;
}

/// Strides over a finer space. `to` splits dimensions of `from`.
std::vector<std::int64_t> split_strides(const std::vector<std::int64_t>& strides, const Space& from, const Space& to) {
  std::vector<std::int64_t> result(to.sizes.size());
  const std::vector<std::size_t> firsts = firsts_over(from, to);
  for (std::size_t k = 0; k < from.sizes.size(); ++k) {
    std::int64_t stride = strides[k];
    for (std::size_t d = firsts[k + 1]; d-- > firsts[k]; stride *= to.sizes[d]) result[d] = stride;
  }
  return result;
}

/// Flags of dimensions over a finer space.
std::vector<std::int64_t> flags_over(const std::vector<std::int64_t>& flags, const Space& from, const Space& to) {
  std::vector<std::int64_t> result(to.sizes.size());
  const std::vector<std::size_t> firsts = firsts_over(from, to);
  for (std::size_t k = 0; k < from.sizes.size(); ++k)
    for (std::size_t d = firsts[k]; d < firsts[k + 1]; ++d) result[d] = flags[k];
  return result;
}

/// Strides over a coarser space, of which `from` splits dimensions; nullopt if the elements of one are not evenly spaced.
std::optional<std::vector<std::int64_t>> merged_strides(const std::vector<std::int64_t>& strides, const Space& from, const Space& to) {
  std::vector<std::int64_t> result(to.sizes.size());
  std::size_t d = from.sizes.size();
  for (std::size_t k = to.sizes.size(); k-- > 0;) {
    result[k] = strides[--d];
    std::int64_t covered = from.sizes[d];
    for (; covered < to.sizes[k]; covered *= from.sizes[d])
      if (strides[--d] != result[k] * covered) return std::nullopt;
  }
  return result;
}

View over(const View& view, const Space& from, const Space& to) {
  if (from == to) return view;
  View made = view;
  made.strides = split_strides(view.strides, from, to);
  return made;
}

/// Dimensions, of so many, whose positions a function reads, besides the place.
std::vector<int> positions_of(const ExprFunction& f, int rank) {
  std::set<int> all;
  for (const ExprStep& s : f.body()->steps)
    if (s.op == ExprOp::position && s.index != kPlace) all.insert(s.index < 0 ? s.index + rank : s.index);
  return {all.begin(), all.end()};
}

bool reads_place(const ExprFunction& f) {
  return std::any_of(f.body()->steps.begin(), f.body()->steps.end(), [](const ExprStep& s) { return s.op == ExprOp::position && s.index == kPlace; });
}

/// The node as a part of a fused launch; nullopt, with a reason, if it is none.
std::optional<Piece> as_piece(const GraphWork& node, int number, std::string& why) {
  if (node.kind != GraphNodeKind::kernel) {
    why = fmt::format("it is a {}", name(node.kind));
    return std::nullopt;
  }
  if (!node.meaning) {
    why = "the op does not say what it computes";
    return std::nullopt;
  }
  const Meaning& m = *node.meaning;
  if (m.predicated || m.known != Meaning::Known::function) {
    why = m.predicated                      ? "it is in a branch or loop"
          : m.known == Meaning::Known::fill ? "it is a fill"
          : m.known == Meaning::Known::copy ? "it copies bytes"
                                            : "it is control flow";
    return std::nullopt;
  }
  Piece p{.meaning = &m, .space = {}, .operands = {}};
  if (numel(m.sizes) == 0) {
    why = "it has no elements";
    return std::nullopt;
  }
  if (!m.function.empty()) p.positions = positions_of(m.function, m.sizes.rank()), p.reads_place = reads_place(m.function);
  if (!p.positions.empty() && !p.pointwise()) {
    why = "its function reads the positions of elements";
    return std::nullopt;
  }
  std::vector<std::vector<std::int64_t>> strides;
  const auto elements = static_cast<std::size_t>(m.elements), results = elements + static_cast<std::size_t>(m.results),
             inputs = results + static_cast<std::size_t>(m.inputs);
  for (std::size_t u = 0; u < node.uses.size(); ++u) {
    const GraphUse& use = node.uses[u];
    Operand o{.node = number, .use = static_cast<int>(u), .view = {use.buffer, use.byte_offset, use.dtype, {}}, .first = use.byte_offset};
    o.last = use.byte_offset + use.bytes;
    o.writes = use.access != Argument::Kind::input;
    o.apart = u >= inputs;
    if (u < inputs) strides.push_back(strides_over(use, m, u >= elements && u < results));
    p.operands.push_back(std::move(o));
  }
  // Dimensions of size 1 go; a dimension joins the one inside it if every operand goes on there. What is gone stays apart from what is kept.
  std::vector<std::vector<std::int64_t>> kept(strides.size());  // from the innermost one out
  std::vector<std::int64_t> sizes;
  bool inner_gone = false, inner_apart = false;
  p.places_of_dims.assign(static_cast<std::size_t>(m.sizes.rank()), -1);
  for (auto d = static_cast<std::size_t>(m.sizes.rank()); d-- > 0;) {
    const std::int64_t size = m.sizes[static_cast<int>(d)];
    if (size == 1) continue;
    const bool apart = std::binary_search(p.positions.begin(), p.positions.end(), static_cast<int>(d));
    bool joins = !sizes.empty() && m.gone[d] == inner_gone && !p.is_product() && !apart && !inner_apart;
    for (std::size_t k = 0; k < strides.size() && joins; ++k) joins = strides[k][d] == kept[k].back() * sizes.back();
    if (joins) {
      sizes.back() *= size;
      continue;
    }
    inner_gone = m.gone[d], inner_apart = apart;
    p.places_of_dims[d] = static_cast<int>(sizes.size());  // from the innermost one out
    sizes.push_back(size);
    p.gone.insert(p.gone.begin(), inner_gone);
    for (std::size_t k = 0; k < strides.size(); ++k) kept[k].push_back(strides[k][d]);
  }
  p.space.sizes.assign(sizes.rbegin(), sizes.rend());
  for (int& place : p.places_of_dims)
    if (place >= 0) place = static_cast<int>(sizes.size()) - 1 - place;
  for (std::size_t k = 0; k < kept.size(); ++k) p.operands[k].view.strides.assign(kept[k].rbegin(), kept[k].rend());
  if (m.rows && std::none_of(p.gone.begin(), p.gone.end(), [](std::int64_t g) { return g != 0; })) {
    why = "its rows have one element";
    return std::nullopt;
  }
  return p;
}

/// Records the launches of groups. The graph's buffers are tensors of a capture of its own, so that ops are called as by anybody.
class Emission {
 public:
  explicit Emission(const GraphState& state)
      : state_(state),
        stream_(state.runtime().make_stream(StreamPriority::normal)),
        capture_(std::make_shared<Capture>(state.runtime(), stream_.impl(), CaptureOptions{.mode = CaptureMode::relaxed}, false)) {
    capture_->set_fuses(true);  // tables ask for it
    capture_->begin();
  }
  ~Emission() {
    capture_->detach();
    capture_->drop();
  }
  Emission(const Emission&) = delete;
  Emission& operator=(const Emission&) = delete;

  const Stream& stream() const noexcept { return stream_; }

  Tensor tensor(const View& view, const Space& space) {
    Dims sizes, strides;
    for (std::int64_t s : space.sizes) sizes.push_back(s);
    for (std::int64_t s : view.strides) strides.push_back(s);
    if (space.sizes.empty()) sizes.push_back(1), strides.push_back(1);
    return Tensor(storage(view.buffer), view.offset, sizes, strides, view.dtype);
  }
  /// The same without the dimensions that are gone, which have size 1.
  Tensor result(const View& view, const Space& space, const std::vector<bool>& gone) {
    Space kept = space;
    for (std::size_t d = 0; d < gone.size(); ++d)
      if (gone[d]) kept.sizes[d] = 1;
    return tensor(view, kept);
  }
  /// A tensor of sizes that `space` has without those that are 1. Errors: not_supported if it has no such strides.
  Tensor tensor(const View& view, const Space& from, const Space& space, const Dims& sizes) {
    const auto merged = merged_strides(view.strides, from, space);
    if (!merged) throw Error(ErrorCode::not_supported, kOp, "the tensors of a product must have a stride for each of its dimensions");
    Dims strides;
    std::size_t d = 0;
    for (int k = 0; k < sizes.rank(); ++k) strides.push_back(sizes[k] == 1 ? 0 : (*merged)[d++]);
    return Tensor(storage(view.buffer), view.offset, sizes, strides, view.dtype);
  }
  Tensor tensor(const GraphUse& use) { return Tensor(storage(use.buffer), use.byte_offset, use.sizes, use.strides, use.dtype); }

  /// The one node that was recorded since the last call, with uses of the graph's buffers. Errors: not_supported if there is another count of nodes, or
  /// memory of its own.
  GraphWork take() {
    std::vector<GraphWork> nodes = capture_->take();
    if (nodes.size() != 1) throw Error(ErrorCode::not_supported, kOp, fmt::format("nodes that are fused must be one launch, got {}", nodes.size()));
    for (GraphUse& use : nodes.front().uses) {
      auto found = buffers_.find(use.buffer);
      if (found == buffers_.end()) throw Error(ErrorCode::not_supported, kOp, "a fused launch must use memory of the graph alone, got other memory");
      use.buffer = found->second;
    }
    return std::move(nodes.front());
  }
  void drop() { capture_->take(); }

 private:
  const std::shared_ptr<Storage>& storage(int buffer) {
    std::shared_ptr<Storage>& made = storages_[buffer];
    if (!made) {
      made = std::make_shared<Storage>(stream_.impl(), state_.buffers[static_cast<std::size_t>(buffer)].bytes, kOp);
      buffers_[made->recorded_buffer()] = buffer;
    }
    return made;
  }

  const GraphState& state_;
  Stream stream_;
  std::shared_ptr<Capture> capture_;
  std::map<int, std::shared_ptr<Storage>> storages_;  ///< by buffer of the graph
  std::map<int, int> buffers_;                        ///< the graph's buffer by the capture's
};

/// Nodes that become one launch.
struct Group {
  std::vector<int> nodes;
  Space space;
  std::vector<int> rows;  ///< those of the nodes that compute rows
  int product = -1;       ///< the node that computes a product
};

class Fuser {
 public:
  Fuser(const GraphState& state, const FuseOptions& options)
      : state_(state), options_(options), pieces_(state.nodes.size()), group_of_(state.nodes.size()), why_(state.nodes.size()) {}

  FusedProgram run() {
    const auto n = static_cast<int>(state_.nodes.size());
    for (;;) {
      groups_.clear(), users_.clear();
      after_.assign(state_.nodes.size(), {});
      why_.assign(state_.nodes.size(), {});
      int last_task = -1;  // tasks keep their order, since they may do more than what graphs know of
      for (int i = 0; i < n; ++i) {
        for (int before : state_.dependencies(i)) after_[static_cast<std::size_t>(before)].push_back(i);
        if (work(i).kind == GraphNodeKind::host_task || work(i).kind == GraphNodeKind::opaque) {
          if (last_task >= 0) after_[static_cast<std::size_t>(last_task)].push_back(i);
          last_task = i;
        }
        group_of_[static_cast<std::size_t>(i)] = i;
        groups_[i].nodes = {i};
        auto& p = pieces_[static_cast<std::size_t>(i)] = as_piece(work(i), i, why_[static_cast<std::size_t>(i)]);
        if (p && p->is_product() && !options_.products && !p->meaning->product->builds_soon)
          p.reset(), why_[static_cast<std::size_t>(i)] = "auto leaves products as they are";
        if (auto refused = refused_.find(i); refused != refused_.end()) p.reset(), why_[static_cast<std::size_t>(i)] = refused->second;
        if (!p) continue;
        groups_[i].space = p->space;
        if (p->meaning->rows) groups_[i].rows = {i};
        if (p->is_product()) groups_[i].product = i;
        join(i);
      }
      const bool any = std::any_of(groups_.begin(), groups_.end(), [](const auto& group) { return group.second.nodes.size() > 1; });
      const bool tables = options_.table_from > 0 && may_have_tables(state_, options_.table_from);
      if (!any && !tables && options_.if_any) return {};
      std::optional<FusedProgram> program = emit();
      if (!program) continue;
      if (tables) make_tables(state_, *program, options_.table_from);
      const bool fuses = std::any_of(program->steps.begin(), program->steps.end(), [](const FusedStep& step) { return step.nodes.size() > 1; });
      if (!fuses && options_.if_any) return {};
      for (FusedStep& step : program->steps)
        if (step.work.kernel && !step.work.object) step.work.object = ClKernel(step.work.kernel->make_bare());
      return *std::move(program);
    }
  }

 private:
  const GraphWork& work(int node) const { return state_.nodes[static_cast<std::size_t>(node)]; }
  const Piece& piece(int node) const { return *pieces_[static_cast<std::size_t>(node)]; }
  int group_of(int node) const { return group_of_[static_cast<std::size_t>(node)]; }
  bool is_temporary(int buffer) const { return state_.buffers[static_cast<std::size_t>(buffer)].kind == GraphBuffer::Kind::temporary; }

  /// Merges the node's group with those that it has a tensor in common with, the latest ones first.
  void join(int node) {
    std::string refused;
    std::set<int, std::greater<>> candidates;
    for (const Operand& o : piece(node).operands) {
      if (o.apart) continue;
      for (int other : users_[o.view.buffer])
        if (group_of(other) != group_of(node)) candidates.insert(group_of(other));
    }
    for (const Operand& o : piece(node).operands) users_[o.view.buffer].push_back(node);
    for (int candidate : candidates) {
      if (candidate == group_of(node)) continue;
      std::string why = merge(candidate, group_of(node));
      if (!why.empty()) refused = why;
    }
    if (groups_[group_of(node)].nodes.size() == 1)
      why_[static_cast<std::size_t>(node)] = refused.empty() ? "no node that can be fused has a tensor in common with it" : refused;
  }

  /// Merges two groups into one. Returns why they stay apart; empty if they do not.
  std::string merge(int first, int second) {
    Group &a = groups_.at(first), &b = groups_.at(second);
    if (a.nodes.size() + b.nodes.size() > kMostNodes) return fmt::format("a launch has at most {} nodes", kMostNodes);
    const std::optional<Space> space = common_space(a.space, b.space);
    if (!space) return "the elements are other ones than those of the nodes whose results it reads";
    if (a.product >= 0 && b.product >= 0) return "a launch has at most one product";
    const int product = std::max(a.product, b.product);
    if (product >= 0 && !(a.rows.empty() && b.rows.empty())) return "a launch with a product has no reductions";
    if (std::string why = rows_differ(a, b, *space); !why.empty()) return why;
    bool shares = false;
    for (int x : a.nodes)
      for (int y : b.nodes)
        if (std::string why = conflict(x, y, *space, shares); !why.empty()) return why;
    if (!shares) return "no node that can be fused has a view in common with it";
    if (has_way_around(first, second)) return "another node must come between it and the nodes that it has a tensor in common with";
    Group made{a.nodes, *space, a.rows, product};
    made.rows.insert(made.rows.end(), b.rows.begin(), b.rows.end());
    std::sort(made.rows.begin(), made.rows.end());
    made.nodes.insert(made.nodes.end(), b.nodes.begin(), b.nodes.end());
    std::sort(made.nodes.begin(), made.nodes.end());
    if (std::string why = too_large(made); !why.empty()) return why;
    if (std::string why = product_refuses(made); !why.empty()) return why;
    if (count(*space) >= kMostInAnyOrder && strides_over_elements(made)) {
      const bool of_a = strides_over_elements(a), of_b = strides_over_elements(b);
      const bool may = made.rows.empty() ? of_a && of_b : only_reduces(made) && (a.rows.empty() ? of_b : of_a);
      if (!may) return "its elements are in another order in memory than those of a launch with them";
    }
    for (int node : made.nodes) group_of_[static_cast<std::size_t>(node)] = first;
    groups_.erase(second);
    groups_[first] = std::move(made);
    return {};
  }

  std::vector<std::int64_t> gone_over(int node, const Space& space) const { return flags_over(piece(node).gone, piece(node).space, space); }

  /// Why reductions of both groups cannot be one launch; empty if they can.
  std::string rows_differ(const Group& a, const Group& b, const Space& space) const {
    if (a.rows.empty() || b.rows.empty()) return {};
    const RowsMeaning &x = *piece(a.rows[0]).meaning->rows, &y = *piece(b.rows[0]).meaning->rows;
    if (x.reduces_alone || y.reduces_alone || x.accumulator != y.accumulator)
      return "it and the nodes that it has a tensor in common with reduce by different accumulators";
    if (gone_over(a.rows[0], space) != gone_over(b.rows[0], space)) return "it and the nodes that it has a tensor in common with reduce other dimensions";
    std::size_t totals = 0;
    for (const Group* group : {&a, &b})
      for (int node : group->rows) totals += piece(node).meaning->rows->totals.size();
    return totals > kMostTotals ? fmt::format("a launch has at most {} totals", kMostTotals) : "";
  }

  /// Why two nodes cannot be one launch because of memory that both use. Sets `shares` if they have a view in common.
  std::string conflict(int x, int y, const Space& space, bool& shares) const {
    const Piece &px = piece(x), &py = piece(y);
    for (const Operand& a : px.operands)
      for (const Operand& b : py.operands) {
        if (a.view.buffer != b.view.buffer) {
          if ((a.writes || b.writes) && share_memory(a, b)) return "it uses memory of the nodes it has a tensor in common with by another tensor";
          continue;
        }
        const bool alike = !a.apart && !b.apart && over(a.view, px.space, space) == over(b.view, py.space, space);
        shares = shares || alike;
        if (alike || (!a.writes && !b.writes) || a.first >= b.last || b.first >= a.last) continue;
        if (broken_rule == BrokenRule::other_views) [[unlikely]]
          continue;
        return a.apart || b.apart ? "an element depends on other elements of a tensor that the nodes it has a tensor in common with write"
                                  : "it uses another view of memory that the nodes it has a tensor in common with write";
      }
    return {};
  }

  /// True if two buffers are parts of one, and the operands have bytes in common.
  bool share_memory(const Operand& a, const Operand& b) const {
    const auto& x = state_.buffers[static_cast<std::size_t>(a.view.buffer)].storage;
    const auto& y = state_.buffers[static_cast<std::size_t>(b.view.buffer)].storage;
    return x && y && x->mem() == y->mem() && x->offset() + a.first < y->offset() + b.last && y->offset() + b.first < x->offset() + a.last;
  }

  /// True if a node outside of both groups depends on one of them, and one of them on it.
  bool has_way_around(int first, int second) const {
    if (broken_rule == BrokenRule::way_around) [[unlikely]]
      return false;
    std::set<int> seen;
    std::vector<int> open;
    auto visit = [&](int group, bool from_inside) {
      for (int node : groups_.at(group).nodes)
        for (int next : after_[static_cast<std::size_t>(node)]) {
          const int to = group_of(next);
          if (to == group) continue;
          if (to == first || to == second) {
            if (!from_inside) return true;
            continue;
          }
          if (seen.insert(to).second) open.push_back(to);
        }
      return false;
    };
    visit(first, true);
    visit(second, true);
    while (!open.empty()) {
      const int group = open.back();
      open.pop_back();
      if (visit(group, false)) return true;
    }
    return false;
  }

  /// What a launch of the group reads and stores, each view once: not what its nodes pass to each other.
  struct Outside {
    std::set<View> inputs, results;
  };
  Outside outside_of(const Group& group) const {
    Outside all;
    std::set<View> made;
    for (int node : group.nodes) {
      const Piece& p = piece(node);
      const auto stored = static_cast<std::size_t>(p.meaning->elements) + static_cast<std::size_t>(p.meaning->results);
      for (std::size_t k = p.operands.size(); k-- > 0;) {  // inputs first
        const Operand& o = p.operands[k];
        if (o.apart) continue;
        View view = over(o.view, p.space, group.space);
        if (k >= stored) {
          if (!made.contains(view)) all.inputs.insert(std::move(view));
          continue;
        }
        if (!is_inside(o, group)) all.results.insert(view);
        made.insert(std::move(view));
      }
    }
    return all;
  }

  /// Why one launch cannot take what the group's nodes read, compute and store; empty if it can.
  std::string too_large(const Group& group) const {
    std::size_t steps = 0, captured = 0, extents = 0;
    bool has_places = false;
    std::set<std::size_t> positions;  // dimensions of the launch
    std::set<std::pair<DType, double>> params;
    const RowsMeaning* rows = group.rows.empty() ? nullptr : piece(group.rows[0]).meaning->rows.get();
    for (int node : group.nodes) {
      const Piece& p = piece(node);
      if (!p.meaning->function.empty()) {
        const ExprBody& body = *p.meaning->function.body();
        steps += body.steps.size();
        has_places = has_places || p.reads_place;
        for (std::size_t k = 0; k < body.params.size(); ++k) params.emplace(body.params[k], body.param_values[k]);
        for (const ExprBody::Buffer& b : body.buffers) extents += 2 * static_cast<std::size_t>(b.rank);
      }
      for (const Operand& o : p.operands) {
        captured += o.apart;
        if (!o.apart && o.writes && p.pointwise() && rows != nullptr && rows->reduces_alone && !is_inside(o, group))
          return "a reduction of it would have to store what it reduces, which another node reads";
      }
      if (rows != nullptr && p.pointwise() && p.meaning->function.captured_count() > 0) return "a reduction takes no function that reads captured tensors";
      if (rows != nullptr && p.pointwise() && p.reads_positions()) return "a reduction takes no function that reads positions";
      const std::vector<std::size_t> firsts = firsts_over(p.space, group.space);
      for (int d : p.positions)
        if (const int k = p.places_of_dims[static_cast<std::size_t>(d)]; k >= 0)
          for (std::size_t g = firsts[static_cast<std::size_t>(k)]; g < firsts[static_cast<std::size_t>(k) + 1]; ++g) positions.insert(g);
    }
    const auto [inputs, results] = outside_of(group);
    const int leader = rows != nullptr ? group.rows[0] : group.product >= 0 ? group.product : group.nodes.front();
    const std::size_t tensors = inputs.size() + results.size() + has_places + positions.size(),
                      most = static_cast<std::size_t>(piece(leader).meaning->most_tensors);
    if (steps > kMostSteps) return fmt::format("a launch has at most {} operations", kMostSteps);
    if (tensors > most) return fmt::format("its launch would have more than {} tensors", most);
    // A tensor is two arguments and, where one is not dense, a vector of strides, and a shape is a few.
    const bool strided =
        rows != nullptr || group.product >= 0 || has_places || !positions.empty() || !all_dense(inputs, group.space) || !all_dense(results, group.space);
    const std::size_t lanes = rank_lanes(static_cast<std::int64_t>(group.space.sizes.size()));
    const std::size_t scalars = 2 * (tensors + captured) + extents + params.size() + 6, vectors = strided ? tensors + 3 : 0;  // sizes, and divisors of 64 bits
    if (scalars + vectors > Launch::kMaxArguments || 8 * scalars + 4 * lanes * vectors > Launch::kMaxBytes)
      return fmt::format("its launch would have more than {} arguments or {} bytes of them", Launch::kMaxArguments, Launch::kMaxBytes);
    return {};
  }

  /// True if the elements of each view are one after another in memory.
  static bool all_dense(const std::set<View>& views, const Space& space) {
    return std::all_of(views.begin(), views.end(), [&](const View& view) {
      std::int64_t stride = 1;
      for (std::size_t d = space.sizes.size(); d-- > 0; stride *= space.sizes[d])
        if (view.strides[d] != stride) return false;
      return true;
    });
  }

  /// True if neighbouring elements of a tensor that the group's launch reads or writes are apart in memory: such launches take many times as long. Elements
  /// are neighbours along the last dimension; of rows along the last one that is gone.
  bool strides_over_elements(const Group& group) const {
    if (group.product >= 0 || group.space.sizes.empty()) return false;
    std::size_t inner = group.space.sizes.size() - 1;
    if (!group.rows.empty()) {
      const std::vector<std::int64_t> gone = gone_over(group.rows[0], group.space);
      while (inner > 0 && gone[inner] == 0) --inner;
    }
    std::set<View> made;  // by the group itself
    for (int node : group.nodes) {
      const Piece& p = piece(node);
      for (std::size_t k = p.operands.size(); k-- > 0;) {  // inputs first
        const Operand& o = p.operands[k];
        if (o.apart) continue;
        View view = over(o.view, p.space, group.space);
        const std::int64_t stride = view.strides[inner];
        const bool is_read = static_cast<int>(k) >= p.meaning->elements + p.meaning->results, is_known = is_read ? made.contains(view) : is_inside(o, group);
        if (!is_read) made.insert(std::move(view));
        if (!is_known && stride != 1 && (stride != 0 || static_cast<int>(k) < p.meaning->elements)) return true;
      }
    }
    return false;
  }

  /// True if a reduction can be the group's launch: one result of one total, and no elements.
  bool only_reduces(const Group& group) const {
    if (group.rows.size() != 1) return false;
    const Meaning& m = *piece(group.rows[0]).meaning;
    if (m.rows->totals.size() != 1 || m.results != 1) return false;
    return std::all_of(group.nodes.begin(), group.nodes.end(), [&](int node) {
      const Piece& p = piece(node);
      return std::all_of(p.operands.begin(), p.operands.begin() + p.meaning->elements, [&](const Operand& o) { return is_inside(o, group); });
    });
  }

  /// Why the group's product cannot take the other nodes into its launch; empty if it can, or if there is none.
  std::string product_refuses(const Group& group) const {
    if (group.product < 0) return {};
    const Piece& product = piece(group.product);
    for (int node : group.nodes) {
      const Piece& p = piece(node);
      if (p.pointwise() && p.meaning->function.captured_count() > 0) return "a product's function reads no captured tensors";
      if (p.pointwise() && p.reads_positions()) return "a product's function reads no positions";
      for (const Operand& o : p.operands)
        if (!o.apart && !merged_strides(over(o.view, p.space, group.space).strides, group.space, product.space))
          return "its tensors do not have a stride for each of a product's dimensions";
    }
    const auto [inputs, results] = outside_of(group);
    if (results.size() > 1) return "a product has one result, and other nodes read another";
    const auto most = static_cast<std::size_t>(product.meaning->product->most_inputs);
    return inputs.size() > most ? fmt::format("a product's function reads at most {} tensors", most) : "";
  }

  /// True if no node outside of the group, and nobody after the replay, sees the operand's memory.
  bool is_inside(const Operand& o, const Group& group) const {
    if (!is_temporary(o.view.buffer)) return false;
    if (broken_rule == BrokenRule::seen_result) [[unlikely]]
      return true;
    const auto& all = readers();
    auto found = all.find(o.view.buffer);
    if (found == all.end()) return true;
    return std::all_of(found->second.begin(), found->second.end(),
                       [&](int reader) { return std::binary_search(group.nodes.begin(), group.nodes.end(), reader); });
  }

  /// Nodes that read each buffer.
  const std::map<int, std::vector<int>>& readers() const {
    if (readers_.empty())
      for (std::size_t i = 0; i < state_.nodes.size(); ++i)
        for (const GraphUse& use : state_.nodes[i].uses)
          if (use.access != Argument::Kind::output) readers_[use.buffer].push_back(static_cast<int>(i));
    return readers_;
  }

  // emit ------------------------------------------------------------------------------------------------------------

  /// A launch of a group before it is made.
  struct Built {
    std::vector<Operand> elements, results, inputs, captured;  ///< all but captured ones with views over the group's space
    ExprFunction function;                                     ///< of a pointwise group, or of one with a product
    RowsMeaning rows;                                          ///< of another
    int unrounded = 0;                                         ///< values that relaxed rounding left as they were
  };

  /// nullopt if a reduction's launch cannot be made, which is then not to be fused.
  std::optional<FusedProgram> emit() {
    FusedProgram program;
    program.why_alone.resize(state_.nodes.size());
    for (int first : scheduled()) {
      const Group& group = groups_.at(first);
      std::optional<FusedStep> fused;
      std::string why;
      if (group.nodes.size() > 1) fused = emit(group, why);
      if (!why.empty() && (!group.rows.empty() || group.product >= 0)) {
        refused_[group.product >= 0 ? group.product : group.rows.back()] = why;
        return std::nullopt;
      }
      if (fused) {
        program.unrounded += fused->unrounded;
        program.steps.push_back(*std::move(fused));
        continue;
      }
      for (int node : group.nodes) {
        FusedStep step{.work = work(node).copy(), .nodes = {node}, .addresses = {}};
        for (std::size_t u = 0; u < step.work.uses.size(); ++u) step.addresses.emplace_back(node, static_cast<int>(u));
        program.steps.push_back(std::move(step));
        program.why_alone[static_cast<std::size_t>(node)] = why.empty() ? why_[static_cast<std::size_t>(node)] : why;
      }
    }
    drop_idle_fills(program);
    return program;
  }

  /// Removes fills of memory that no other launch uses any more.
  void drop_idle_fills(FusedProgram& program) const {
    std::map<int, int> uses;
    for (const FusedStep& step : program.steps)
      for (const GraphUse& use : step.work.uses) ++uses[use.buffer];
    std::erase_if(program.steps, [&](const FusedStep& step) {
      if (step.work.kind != GraphNodeKind::fill) return false;
      const int buffer = step.work.uses[0].buffer;
      if (!is_temporary(buffer) || uses[buffer] > 1) return false;
      program.why_alone[static_cast<std::size_t>(step.nodes.front())] = "no launch uses what it fills";
      return true;
    });
  }

  /// The groups in an order in which each comes after those that it depends on, else that of their first nodes.
  std::vector<int> scheduled() const {
    std::map<int, int> missing;
    std::map<int, std::set<int>> next;
    for (const auto& [number, group] : groups_)
      for (int node : group.nodes)
        for (int after : after_[static_cast<std::size_t>(node)])
          if (const int to = group_of(after); to != number && next[number].insert(to).second) ++missing[to];
    auto first_node = [&](int group) { return groups_.at(group).nodes.front(); };
    std::set<std::pair<int, int>> ready;
    for (const auto& [number, group] : groups_)
      if (missing[number] == 0) ready.emplace(first_node(number), number);
    std::vector<int> order;
    while (!ready.empty()) {
      const int group = ready.begin()->second;
      ready.erase(ready.begin());
      order.push_back(group);
      for (int to : next[group])
        if (--missing[to] == 0) ready.emplace(first_node(to), to);
    }
    if (order.size() != groups_.size()) throw Error(ErrorCode::internal, kOp, "fused launches must not wait for each other, got some that do");
    return order;
  }

  /// Values as a store in the dtype and a load would leave them.
  std::optional<Expr> stored(const Expr& value, const Operand& o, const Group& group, int& unrounded) const {
    const DType dtype = o.view.dtype;
    if (compute_dtype(dtype, kOp) == dtype && dtype == value.dtype()) return value;
    if (broken_rule == BrokenRule::narrow_store) [[unlikely]]
      return cast(value, compute_dtype(dtype, kOp));
    // What the launch stores is rounded by the store, and its readers in the launch read the same value.
    if (options_.relaxed && is_floating(dtype) && is_inside(o, group)) {
      ++unrounded;
      return cast(value, compute_dtype(dtype, kOp));
    }
    // A store rounds once from f64; a cast of an expression goes by way of f32.
    if (value.dtype() == DType::f64 && (dtype == DType::f16 || dtype == DType::bf16)) return std::nullopt;
    return cast(value, dtype);
  }

  /// The group's functions, and the tensors that it reads and writes; nullopt, with a reason, if a value cannot be passed on.
  std::optional<Built> build(const Group& group, std::string& why) {
    std::optional<Built> built = build(group, 0, why);
    // Totals are inputs of functions behind all tensors, whose number is known now.
    if (built && !group.rows.empty()) built = build(group, static_cast<int>(built->inputs.size()), why);
    return built;
  }

  /// Tensors that a launch writes, one for each view, and the last values that they get.
  struct Stores {
    std::vector<Operand> operands;
    std::vector<Expr> values;
    std::map<View, std::size_t> place;
    void put(Operand o, const Expr& value) {
      auto [found, fresh] = place.try_emplace(o.view, operands.size());
      if (fresh)
        operands.push_back(std::move(o)), values.push_back(value);
      else
        values[found->second] = value;
    }
  };

  /// Positions of a node in the dimensions of a launch.
  static Positions positions_over(const Piece& p, const Space& space) {
    if (p.positions.empty()) return {};
    return [&p, &space, firsts = firsts_over(p.space, space)](int index) {
      if (index == kPlace) return position(kPlace);
      const int rank = p.meaning->sizes.rank(), k = p.places_of_dims[static_cast<std::size_t>(index < 0 ? index + rank : index)];
      if (k < 0) return expr_constant(DType::i64, 0);
      std::optional<Expr> all;
      std::int64_t inner = 1;
      for (std::size_t g = firsts[static_cast<std::size_t>(k) + 1]; g-- > firsts[static_cast<std::size_t>(k)]; inner *= space.sizes[g]) {
        const Expr part = inner == 1 ? position(static_cast<int>(g)) : position(static_cast<int>(g)) * inner;
        all = all ? part + *all : part;
      }
      return *all;
    };
  }

  /// first_total: index of the first total among the inputs of functions.
  std::optional<Built> build(const Group& group, int first_total, std::string& why) {
    Built built;
    std::map<View, Expr> values;  // what the memory of a view holds at this point
    Stores elements, results;
    std::vector<DType> input_dtypes;
    if (group.product >= 0) input_dtypes.push_back(piece(group.product).meaning->product->dtype);
    std::vector<ExprFunction> kept;  // params are identified by addresses in them
    SharedParams params;
    std::vector<Expr> totals;
    const DType accumulator = group.rows.empty() ? DType::f32 : piece(group.rows[0]).meaning->rows->accumulator;
    for (int node : group.nodes) {
      const Piece& p = piece(node);
      const Meaning& m = *p.meaning;
      auto operand = [&](int k) {
        Operand o = p.operands[static_cast<std::size_t>(k)];
        o.view = over(o.view, p.space, group.space);
        return o;
      };
      std::vector<Expr> inputs;
      if (p.is_product()) inputs.push_back(expr_input(0, m.product->dtype));
      for (int k = 0; k < m.inputs; ++k) {
        Operand o = operand(m.elements + m.results + k);
        auto found = values.find(o.view);
        if (found == values.end()) {
          const DType dtype = compute_dtype(o.view.dtype, kOp);
          found = values.emplace(o.view, expr_input(static_cast<int>(input_dtypes.size()), dtype)).first;
          input_dtypes.push_back(dtype);
          built.inputs.push_back(std::move(o));
        }
        inputs.push_back(found->second);
      }
      std::vector<Expr> of_elements, of_results;
      if (p.is_product()) {
        kept.push_back(m.function);
        of_elements = applied(m.function, inputs, params);
      } else if (p.pointwise()) {
        std::vector<Tensor> captured;
        for (std::size_t k = m.elements + m.results + m.inputs; k < p.operands.size(); ++k) {
          captured.push_back(emission().tensor(work(node).uses[k]));
          built.captured.push_back(p.operands[k]);
        }
        kept.push_back(captured.empty() ? m.function : m.function.with_captured(captured));
        of_elements = applied(kept.back(), inputs, params, positions_over(p, group.space));
      } else {
        const RowsMeaning& rows = *m.rows;
        const auto own = static_cast<int>(totals.size()), count = static_cast<int>(rows.totals.size());
        for (int t = 0; t < kMostTotals; ++t) inputs.push_back(t < count ? expr_input(first_total + own + t, accumulator) : expr_constant(accumulator, 0));
        inputs.push_back(expr_input(first_total + kMostTotals, accumulator));
        for (const ExprFunction& f : rows.totals) totals.push_back(applied(f, inputs, params)[0]);
        built.rows.ops.insert(built.rows.ops.end(), rows.ops.begin(), rows.ops.end());
        if (!rows.elements.empty()) of_elements = applied(rows.elements, inputs, params);
        if (!rows.results.empty()) of_results = applied(rows.results, inputs, params);
      }
      for (int k = 0; k < m.elements + m.results; ++k) {
        Operand o = operand(k);
        const std::optional<Expr> value =
            stored(k < m.elements ? of_elements[static_cast<std::size_t>(k)] : of_results[static_cast<std::size_t>(k - m.elements)], o, group, built.unrounded);
        if (!value) {
          why = "a store rounds f64 to 16 bits at once, which no function of values does";
          return std::nullopt;
        }
        values.insert_or_assign(o.view, *value);
        (k < m.elements ? elements : results).put(std::move(o), *value);
      }
    }
    // Values that the group's nodes alone read are not stored.
    auto seen = [&](const Stores& stores, std::vector<Operand>& operands) {
      std::vector<Expr> exprs;
      for (std::size_t k = 0; k < stores.values.size(); ++k)
        if (!is_inside(stores.operands[k], group)) exprs.push_back(stores.values[k]), operands.push_back(stores.operands[k]);
      return exprs;
    };
    const std::vector<Expr> element_values = seen(elements, built.elements), result_values = seen(results, built.results);
    if (element_values.empty() && result_values.empty()) {
      why = "no node reads its results";
      return std::nullopt;
    }
    if (group.rows.empty()) {
      built.function = ExprFunction(input_dtypes, element_values);
      return built;
    }
    if (first_total == 0) return built;
    input_dtypes.resize(input_dtypes.size() + kMostTotals + 1, accumulator);
    built.rows.accumulator = accumulator;
    built.rows.reduces_alone = piece(group.rows[0]).meaning->rows->reduces_alone;
    for (const Expr& value : totals) built.rows.totals.emplace_back(input_dtypes, std::span(&value, 1));
    if (!element_values.empty()) built.rows.elements = ExprFunction(input_dtypes, element_values);
    if (!result_values.empty()) built.rows.results = ExprFunction(input_dtypes, result_values);
    return built;
  }

  Emission& emission() {
    if (!emission_) emission_ = std::make_unique<Emission>(state_);
    return *emission_;
  }

  std::optional<FusedStep> emit(const Group& group, std::string& why) {
    std::optional<Built> built = build(group, why);
    if (!built) return std::nullopt;
    std::vector<bool> gone(group.space.sizes.size());
    Dims dims;
    if (!group.rows.empty()) {
      const std::vector<std::int64_t> flags = gone_over(group.rows[0], group.space);
      for (std::size_t d = 0; d < flags.size(); ++d)
        if (flags[d] != 0) gone[d] = true, dims.push_back(static_cast<std::int64_t>(d));
    }
    std::vector<Tensor> elements, results, inputs;
    const int first = group.product >= 0 ? group.product : group.rows.empty() ? group.nodes.front() : group.rows.front();
    const Piece& leader = piece(first);
    auto tensor_of = [&](const Operand& o) {
      return leader.is_product() ? emission().tensor(o.view, group.space, leader.space, leader.meaning->sizes) : emission().tensor(o.view, group.space);
    };
    std::vector<Tensor> operands;
    FusedStep step{.work = {},
                   .nodes = group.nodes,
                   .form = leader.is_product()  ? "product"
                           : group.rows.empty() ? "pointwise"
                                                : "rows",
                   .unrounded = built->unrounded,
                   .addresses = {}};
    try {
      for (const Operand& o : built->elements) elements.push_back(tensor_of(o));
      for (const Operand& o : built->results) results.push_back(emission().result(o.view, group.space, gone));
      for (const Operand& o : built->inputs) inputs.push_back(tensor_of(o));
      if (leader.is_product())
        for (const Operand& o : leader.operands)
          if (o.apart) operands.push_back(emission().tensor(work(o.node).uses[static_cast<std::size_t>(o.use)]));
      leader.meaning->launch({.elements = elements,
                              .results = results,
                              .inputs = inputs,
                              .function = built->function,
                              .rows = built->rows,
                              .dims = dims,
                              .product = leader.meaning->product.get(),
                              .operands = operands,
                              .stream = emission().stream()});
      step.work = emission().take();
    } catch (const Error& e) {
      emission().drop();
      if (e.code() != ErrorCode::not_supported && e.code() != ErrorCode::invalid_argument) throw;
      why = e.message();
      return std::nullopt;
    }
    for (const auto* list : {&built->elements, &built->results, &built->inputs})
      for (const Operand& o : *list) step.addresses.emplace_back(o.node, o.use);
    if (leader.is_product())
      for (const Operand& o : leader.operands)
        if (o.apart) step.addresses.emplace_back(o.node, o.use);
    if (!built->function.empty())
      for (const Tensor& t : built->function.body()->tensors) {
        const auto from = std::find_if(built->captured.begin(), built->captured.end(),
                                       [&](const Operand& o) { return same_view(t, emission().tensor(work(o.node).uses[static_cast<std::size_t>(o.use)])); });
        step.addresses.emplace_back(from->node, from->use);
      }
    if (step.addresses.size() != step.work.uses.size())
      throw Error(ErrorCode::internal, kOp, fmt::format("a fused launch must have {} tensors, got {}", step.addresses.size(), step.work.uses.size()));
    step.work.op = kFusedOp;
    step.work.stream = work(group.nodes.front()).stream;
    step.work.labels = labels_of(group);
    return step;
  }

  /// The annotations of all nodes, each once.
  std::shared_ptr<const std::vector<GraphLabel>> labels_of(const Group& group) const {
    auto all = std::make_shared<std::vector<GraphLabel>>();
    std::set<const std::vector<GraphLabel>*> seen;
    for (int node : group.nodes) {
      const auto& labels = work(node).labels;
      if (!labels || !seen.insert(labels.get()).second) continue;
      for (const GraphLabel& label : *labels)
        if (std::none_of(all->begin(), all->end(), [&](const GraphLabel& l) { return l.name == label.name && l.values == label.values; }))
          all->push_back(label);
    }
    return all->empty() ? nullptr : all;
  }

  const GraphState& state_;
  const FuseOptions options_;
  std::vector<std::optional<Piece>> pieces_;
  std::map<int, Group> groups_;
  std::vector<int> group_of_;
  std::vector<std::vector<int>> after_;    ///< nodes that depend on each node
  std::map<int, std::vector<int>> users_;  ///< pointwise nodes so far that use a buffer
  mutable std::map<int, std::vector<int>> readers_;
  std::vector<std::string> why_;
  std::map<int, std::string> refused_;  ///< reductions whose launches could not be made
  std::unique_ptr<Emission> emission_;
};

}  // namespace

std::vector<std::int64_t> strides_over(const GraphUse& use, const Meaning& m, bool result) {
  const int rank = m.sizes.rank();
  std::vector<std::int64_t> strides(static_cast<std::size_t>(rank), 0);
  const bool keeps = !result || use.sizes.rank() == rank;
  int from = use.sizes.rank() - 1;
  for (int d = rank - 1; d >= 0 && from >= 0; --d) {
    if (result && m.gone[static_cast<std::size_t>(d)]) {
      from -= keeps;
      continue;
    }
    if (use.sizes[from] != 1) strides[static_cast<std::size_t>(d)] = use.strides[from];
    --from;
  }
  return strides;
}

FusedProgram fuse(const GraphState& state, const FuseOptions& options) { return Fuser(state, options).run(); }

}}}  // namespace clutch::v0::detail
