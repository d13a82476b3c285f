// SPDX-License-Identifier: Apache-2.0
#include <clutch/dist/sharded.hpp>

#include "dist/group_calls.hpp"
#include "dist/layout.hpp"

#include <clutch/dist/functional.hpp>
#include <clutch/ops/cat.hpp>

namespace clutch { inline namespace v0 { namespace dist {

namespace detail {

struct ShardedState {
  Tensor local;
  Mesh mesh;
  Layout layout;
};

}  // namespace detail

namespace {

using namespace detail;

const ShardedState& of(const std::shared_ptr<const ShardedState>& state, const char* op) {
  if (!state) throw Error(ErrorCode::invalid_argument, op, "the Sharded must be a made one, got an empty one");
  return *state;
}

void check_tensor(const char* op, const Tensor& tensor) {
  if (!tensor.defined()) throw Error(ErrorCode::invalid_argument, op, "the tensor must be defined, got an undefined one");
  if (is_packed(tensor.dtype()))
    throw Error(ErrorCode::invalid_dtype, op, fmt::format("the dtype must be of whole bytes, got {}", clutch::name(tensor.dtype())));
}

/// The parts of a dimension in another order, joined.
Tensor joined(const Tensor& x, int dim, std::span<const std::int64_t> sizes, std::span<const std::size_t> order, const Stream& stream) {
  const std::vector<Tensor> parts = split(x, sizes, dim);
  std::vector<Tensor> taken;
  for (const std::size_t i : order) taken.push_back(parts[i]);
  return cat(taken, dim, {}, stream);
}

/// Numbers of the chunks of a dimension as coordinate after coordinate has them.
std::vector<std::size_t> order_by_coordinate(std::int64_t n, int split_factor) {
  std::vector<std::size_t> order;
  for (std::int64_t c = 0; c < n; ++c)
    for (std::int64_t j = 0; j < split_factor; ++j) order.push_back(static_cast<std::size_t>(j * n + c));
  return order;
}

/// A dimension with the parts of coordinate 0 first, then those of 1, ..., of one that is in its own order; and back.
Tensor by_coordinate(const Tensor& x, const Placement& p, std::int64_t n, const Stream& stream) {
  if (p.split_factor == 1 || n == 1) return x;
  return joined(x, p.dim, chunk_sizes(x.size(p.dim), n, p.split_factor), order_by_coordinate(n, p.split_factor), stream);
}
Tensor in_order(const Tensor& x, const Placement& p, std::int64_t n, const Stream& stream) {
  if (p.split_factor == 1 || n == 1) return x;
  const std::vector<std::int64_t> chunks = chunk_sizes(x.size(p.dim), n, p.split_factor);
  const std::vector<std::size_t> order = order_by_coordinate(n, p.split_factor);
  std::vector<std::int64_t> sizes;
  std::vector<std::size_t> places(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) sizes.push_back(chunks[order[i]]), places[order[i]] = i;
  return joined(x, p.dim, sizes, places, stream);
}

/// A coordinate's share of a sum that has the bits of `x`, or of another reduction.
Tensor summand(const Tensor& x, ReduceOp op, std::int64_t coordinate, const Stream& stream) {
  const bool all_keep = op == ReduceOp::avg || op == ReduceOp::min || op == ReduceOp::max || op == ReduceOp::band || op == ReduceOp::bor;
  if (coordinate == 0 || all_keep) return x;
  return clutch::full(x.sizes(), op == ReduceOp::prod ? 1.0 : op == ReduceOp::sum ? -0.0 : 0.0, {.dtype = x.dtype(), .device = x.device()}, stream);
}

/// The coordinate's part of what it has whole.
Tensor own_part(const Tensor& x, const Placement& p, std::int64_t n, std::int64_t coordinate, const Stream& stream) {
  const Dims sizes{x.size(p.dim)}, shape{n};
  const Ranges mine = Layout{.sizes = sizes, .mesh_shape = shape, .placements = {shard(0, p.split_factor)}}.ranges({coordinate})[0];
  std::vector<Tensor> parts;
  for (const Range& r : mine) parts.push_back(x.slice(p.dim, r.begin, r.end));
  if (parts.empty()) return x.slice(p.dim, 0, 0).clone(stream);
  // A copy, so that the whole may go.
  return parts.size() == 1 ? parts[0].clone(stream) : cat(parts, p.dim, {}, stream);
}

/// The local part after a step, of `layout` before it.
Tensor stepped(const Tensor& x, const Layout& layout, const Mesh& mesh, const Redistribution::Change& step, const CallOptions& options) {
  const Group& group = mesh.group(step.mesh_dim);
  const Dims& cell = mesh.coordinate();
  const std::int64_t n = mesh.shape()[step.mesh_dim], coordinate = cell[step.mesh_dim];
  const Placement &from = step.from, &to = step.to;
  const Stream& stream = options.stream;
  const auto of_shard = [&] { return part_sizes(layout.size_before(cell, step.mesh_dim, from.dim), n, from.split_factor); };
  const auto reduction = [&] {
    return ReduceOptions{.op = from.op, .stream = stream, .async = options.async, .timeout = options.timeout, .where = options.where};
  };
  if (from.is_replicate()) return to.is_partial() ? summand(x, to.op, coordinate, stream) : own_part(x, to, n, coordinate, stream);
  if (from.is_shard() && to.is_replicate()) return in_order(functional::all_gather_v(x, from.dim, of_shard(), group, options), from, n, stream);
  if (from.is_shard()) {
    const Tensor sent = by_coordinate(x, to, n, stream);
    const Tensor got = functional::all_to_all_v(sent, to.dim, part_sizes(x.size(to.dim), n, to.split_factor), from.dim, of_shard(), group, options);
    return in_order(got, from, n, stream);
  }
  if (to.is_replicate()) return functional::all_reduce(x, group, reduction());
  return functional::reduce_scatter_v(by_coordinate(x, to, n, stream), to.dim, part_sizes(x.size(to.dim), n, to.split_factor), group, reduction());
}

/// Bytes that the cell sends in a step, of `layout` before it.
std::uint64_t bytes_of(const Layout& layout, const Dims& cell, const Redistribution::Change& step, DType dtype) {
  const Dims sizes = layout.local_sizes(cell);
  const std::int64_t n = layout.mesh_shape[step.mesh_dim], coordinate = cell[step.mesh_dim], all = numel(sizes);
  std::int64_t sent = 0;
  if (step.collective == "all_gather") {
    sent = (n - 1) * all;
  } else if (step.collective == "all_reduce") {
    sent = 2 * all * (n - 1) / n;
  } else if (step.collective != "local" && all > 0) {
    const std::int64_t size = sizes[step.to.dim];
    sent = all / size * (size - part_sizes(size, n, step.to.split_factor)[static_cast<std::size_t>(coordinate)]);
  }
  return bytes_for(dtype, static_cast<std::uint64_t>(sent));
}

/// Predicted time of a step's collective; copies of the rank's own count nothing. 0 where no machine is known.
double us_of(const Layout& layout, const Mesh& mesh, const Redistribution::Change& step, DType dtype) {
  const GroupImpl& group = *mesh.group(step.mesh_dim).impl();
  const std::shared_ptr<const Machine> machine = group.machine();
  if (!machine || step.collective == "local") return 0;
  const Collective collective = step.collective == "all_gather"       ? Collective::all_gather
                                : step.collective == "reduce_scatter" ? Collective::reduce_scatter
                                : step.collective == "all_to_all"     ? Collective::all_to_all
                                                                      : Collective::all_reduce;
  const std::int64_t n = group.size(), local = numel(layout.local_sizes(mesh.coordinate()));
  const auto bytes = static_cast<double>(bytes_for(dtype, static_cast<std::uint64_t>(local * (step.from.is_shard() && step.to.is_replicate() ? n : 1))));
  const bool is_even = collective == Collective::all_reduce || local % n == 0;
  const bool has_board = group.is_one_host();
  const std::optional<Choice> choice =
      fastest(*machine, collective, {.ranks = static_cast<int>(n), .one_host = has_board, .board = has_board && is_even}, bytes);
  return choice ? choice->us : 0;
}

}  // namespace

Sharded Sharded::distribute(const Tensor& full, const Mesh& mesh, std::vector<Placement> placements, const Stream& stream) {
  constexpr const char* kOp = "dist::Sharded::distribute";
  return named(kOp, [&] {
    check_tensor(kOp, full);
    const std::vector<Placement> whole(static_cast<std::size_t>(mesh.shape().rank()));
    return from_local(full, mesh, whole, full.sizes()).redistribute(std::move(placements), {.stream = stream});
  });
}

Sharded Sharded::from_local(const Tensor& local, const Mesh& mesh, std::vector<Placement> placements, const Dims& sizes) {
  constexpr const char* kOp = "dist::Sharded::from_local";
  check_tensor(kOp, local);
  return named(kOp, [&] {
    Layout layout{.sizes = sizes.empty() ? local.sizes() : sizes, .mesh_shape = mesh.shape(), .placements = {}};
    layout.placements = checked(kOp, std::move(placements), layout.mesh_shape, layout.sizes.rank());
    if (sizes.empty())
      for (int k = 0; k < layout.mesh_shape.rank(); ++k) {
        const Placement& p = layout.placements[static_cast<std::size_t>(k)];
        if (p.is_shard()) layout.sizes[p.dim] *= layout.mesh_shape[k];
      }
    const Dims wanted = layout.local_sizes(mesh.coordinate());
    if (local.sizes() != wanted)
      throw Error(ErrorCode::invalid_shape, kOp,
                  fmt::format("the part must have the shape {} of {}, got {}", to_string(wanted), to_string(layout.sizes), to_string(local.sizes())));
    Sharded made;
    made.state_ = std::make_shared<ShardedState>(ShardedState{.local = local, .mesh = mesh, .layout = std::move(layout)});
    return made;
  });
}

const Tensor& Sharded::local() const { return of(state_, "dist::Sharded::local").local; }
const Dims& Sharded::sizes() const { return of(state_, "dist::Sharded::sizes").layout.sizes; }
const Mesh& Sharded::mesh() const { return of(state_, "dist::Sharded::mesh").mesh; }
const std::vector<Placement>& Sharded::placements() const { return of(state_, "dist::Sharded::placements").layout.placements; }

std::vector<Box> Sharded::boxes() const {
  const ShardedState& state = of(state_, "dist::Sharded::boxes");
  if (state.layout.has_partial())
    throw Error(ErrorCode::invalid_argument, "dist::Sharded::boxes", "placements must be replicated or shards, got a partial one");
  std::vector<Box> boxes;
  for (const Piece& piece : state.layout.pieces(state.mesh.coordinate())) boxes.push_back(piece.box);
  return boxes;
}

Sharded Sharded::transpose(int dim0, int dim1) const {
  constexpr const char* kOp = "dist::Sharded::transpose";
  const ShardedState& state = of(state_, kOp);
  return named(kOp, [&] {
    const Tensor local = state.local.transpose(dim0, dim1);
    Layout layout = state.layout;
    const int rank = layout.sizes.rank(), a = dim0 < 0 ? dim0 + rank : dim0, b = dim1 < 0 ? dim1 + rank : dim1;
    std::swap(layout.sizes[a], layout.sizes[b]);
    for (Placement& p : layout.placements)
      if (p.is_shard()) p.dim = p.dim == a ? b : p.dim == b ? a : p.dim;
    return from_local(local, state.mesh, layout.placements, layout.sizes);
  });
}

Redistribution Sharded::plan(std::vector<Placement> placements) const {
  constexpr const char* kOp = "dist::Sharded::plan";
  const ShardedState& state = of(state_, kOp);
  Layout layout = state.layout;
  Redistribution plan{.steps = steps_of(kOp, layout.placements, checked(kOp, std::move(placements), layout.mesh_shape, layout.sizes.rank()))};
  for (Redistribution::Change& step : plan.steps) {
    step.bytes = bytes_of(layout, state.mesh.coordinate(), step, state.local.dtype());
    step.us = us_of(layout, state.mesh, step, state.local.dtype());
    layout.placements[static_cast<std::size_t>(step.mesh_dim)] = step.to;
  }
  return plan;
}

Sharded Sharded::redistribute(std::vector<Placement> placements, const CallOptions& options) const {
  constexpr const char* kOp = "dist::Sharded::redistribute";
  const ShardedState& state = of(state_, kOp);
  return named(kOp, [&] {
    Layout layout = state.layout;
    Tensor local = state.local;
    for (const Redistribution::Change& step : steps_of(kOp, layout.placements, checked(kOp, std::move(placements), layout.mesh_shape, layout.sizes.rank()))) {
      local = stepped(local, layout, state.mesh, step, options);
      layout.placements[static_cast<std::size_t>(step.mesh_dim)] = step.to;
    }
    return from_local(local, state.mesh, layout.placements, layout.sizes);
  });
}

Tensor Sharded::full(const CallOptions& options) const {
  return named("dist::Sharded::full", [&] { return redistribute(std::vector<Placement>(placements().size()), options).local(); });
}

}}}  // namespace clutch::v0::dist
