// SPDX-License-Identifier: Apache-2.0
#include "dist/group_calls.hpp"
#include "dist/layout.hpp"
#include "dist/sharded_checks.hpp"

#include <clutch/dist/fully_shard.hpp>
#include <clutch/ops/copy.hpp>
#include <clutch/storage.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace clutch { inline namespace v0 { namespace dist {

namespace detail {

/// A parameter of a layer: whole along the dimension of the mesh, and this rank's share.
struct ShardedParameter {
  Dims sizes;  ///< over the mesh
  std::vector<Placement> whole, cut;
  Dims whole_sizes, share_sizes;   ///< of this rank's tensors
  std::vector<std::int64_t> rows;  ///< of each rank

  bool is_even() const { return rows.front() == rows.back(); }
};

struct ShardedLayer {
  std::vector<ShardedParameter> of;
  DType dtype;
  Tensor shares, gradients;  ///< of all parameters, of one dimension; gradients from the first reduce() on
  Work reducing;
  StorageHandle memory = {};  ///< of the whole parameters; undefined: released
  std::vector<Sharded> whole = {};
  Work gathering = {};
  bool is_held = false;  ///< by the caller

  /// Views of a tensor that has the parameters one behind the other.
  std::vector<Tensor> parts_of(const Tensor& all, Dims ShardedParameter::*sizes) const {
    std::vector<Tensor> parts;
    std::int64_t at = 0;
    for (const ShardedParameter& p : of) {
      const std::int64_t n = numel(p.*sizes);
      parts.push_back(all.slice(0, at, at + n).reshape(p.*sizes)), at += n;
    }
    return parts;
  }
  std::int64_t elements(Dims ShardedParameter::*sizes) const {
    std::int64_t n = 0;
    for (const ShardedParameter& p : of) n += numel(p.*sizes);
    return n;
  }
};

struct FullyShardState {
  Mesh mesh;
  FullyShardOptions options;
  std::vector<ShardedLayer> layers;
  int last = 0, direction = 1;
  std::vector<StorageHandle> spare = {};  ///< memory of released layers, each enough for any

  const Group& group() const { return mesh.group(options.mesh_dim); }
  ShardedLayer& layer(const char* op, int i) {
    if (i < 0 || i >= static_cast<int>(layers.size())) refuse(op, fmt::format("the layer must be one of {}, got {}", layers.size(), i));
    return layers[static_cast<std::size_t>(i)];
  }
  int gathered() const {
    return static_cast<int>(std::count_if(layers.begin(), layers.end(), [](const ShardedLayer& of) { return of.memory.defined(); }));
  }
  /// Memory of a layer that is gathered next is that of one released before, in the stream's order: the pool would have it only when what the host has enqueued
  /// meanwhile is done.
  StorageHandle taken(const ShardedLayer& by, const Stream& stream) {
    if (spare.empty()) {
      std::uint64_t most = 1;
      for (const ShardedLayer& of : layers) most = std::max(most, bytes_for(of.dtype, static_cast<std::uint64_t>(of.elements(&ShardedParameter::whole_sizes))));
      return StorageHandle(most, by.shares.device(), stream);
    }
    const StorageHandle memory = spare.back();
    spare.pop_back();
    return memory;
  }
  void drop(ShardedLayer& of) {
    const StorageHandle memory = std::exchange(of.memory, {});
    of.whole.clear(), of.gathering = {}, of.is_held = false;
    if (static_cast<int>(spare.size()) + gathered() <= options.prefetch) spare.push_back(memory);
  }
  /// Drops what was gathered ahead, but for the layers from `first` to `end`.
  void drop_others(const Stream& stream, int first, int end) {
    for (int i = 0; i < static_cast<int>(layers.size()); ++i) {
      ShardedLayer& of = layers[static_cast<std::size_t>(i)];
      if (!of.memory.defined() || of.is_held || (i >= first && i <= end)) continue;
      of.gathering.wait(stream);
      drop(of);
    }
  }
  void begin_gather(ShardedLayer& of, const CallOptions& call) {
    if (of.memory.defined()) return;
    const StorageHandle memory = taken(of, call.stream);
    const Tensor all = memory.view({of.elements(&ShardedParameter::whole_sizes)}, of.dtype);
    const std::vector<Tensor> shares = of.parts_of(of.shares, &ShardedParameter::share_sizes), whole = of.parts_of(all, &ShardedParameter::whole_sizes);
    of.gathering = in_batch(call, [&](const CallOptions& at) {
      for (std::size_t i = 0; i < of.of.size(); ++i)
        of.of[i].is_even() ? group().all_gather_out(whole[i], shares[i], at) : group().all_gather_v_out(whole[i], shares[i], of.of[i].rows, at);
    });
    of.memory = memory;
    for (std::size_t i = 0; i < of.of.size(); ++i) of.whole.push_back(Sharded::from_local(whole[i], mesh, of.of[i].whole, of.of[i].sizes));
  }
  template <class F>
  Work in_batch(const CallOptions& call, F&& f) const {
    CallOptions at = call;
    at.async = true;
    Batch batch(group(), at);
    at.async = false;
    f(at);
    return batch.end();
  }
  void wait_for_gradients(const char* op, const Stream& stream) {
    drop_others(stream, 0, -1);
    for (ShardedLayer& of : layers) {
      if (!of.gradients.defined()) refuse(op, "all layers' gradients must be reduced, got some that are not");
      of.reducing.wait(stream);
    }
  }
  std::vector<Sharded> shards(Tensor ShardedLayer::*all) const {
    std::vector<Sharded> shards;
    for (const ShardedLayer& of : layers) {
      const std::vector<Tensor> parts = of.parts_of(of.*all, &ShardedParameter::share_sizes);
      for (std::size_t i = 0; i < parts.size(); ++i) shards.push_back(Sharded::from_local(parts[i], mesh, of.of[i].cut, of.of[i].sizes));
    }
    return shards;
  }
  std::vector<Tensor> flat(Tensor ShardedLayer::*all) const {
    std::vector<Tensor> tensors;
    for (const ShardedLayer& of : layers) tensors.push_back(of.*all);
    return tensors;
  }
};

}  // namespace detail

namespace {

using namespace detail;

ShardedParameter parameter_of(const char* op, const Sharded& x, const Mesh& mesh, int mesh_dim) {
  check_mesh(op, mesh, x);
  const auto along = static_cast<std::size_t>(mesh_dim);
  const std::int64_t n = mesh.shape()[mesh_dim];
  ShardedParameter p{.sizes = x.sizes(), .whole = x.placements(), .cut = x.placements(), .whole_sizes = x.local().sizes()};
  if (!p.whole[along].is_replicate())
    refuse(op, fmt::format("parameters must be replicated along dimension {} of the mesh, got {}", mesh_dim, to_string(p.whole[along])));
  if (p.sizes.rank() == 0) throw Error(ErrorCode::invalid_shape, op, "parameters must have a dimension, got a number");
  std::int64_t cuts = 1, cuts_behind = 1;
  for (std::size_t k = 0; k < p.whole.size(); ++k) {
    const Placement& of = p.whole[k];
    if (of.is_partial()) refuse(op, fmt::format("parameters must be replicated or shards, got {}", to_string(of)));
    if (!of.is_shard() || of.dim != 0) continue;
    if (of.split_factor != 1) refuse(op, fmt::format("shards of dimension 0 must be without a split factor, got {}", to_string(of)));
    cuts *= mesh.shape()[static_cast<int>(k)];
    if (k > along) cuts_behind *= mesh.shape()[static_cast<int>(k)];
  }
  if (p.sizes[0] % cuts != 0)
    throw Error(ErrorCode::invalid_shape, op,
                fmt::format("dimension 0 must have a multiple of {} entries, which other dimensions of the mesh cut, got {}", cuts, p.sizes[0]));
  p.cut[along] = shard(0, static_cast<int>(cuts_behind));
  p.rows = chunk_sizes(p.whole_sizes[0], n);
  p.share_sizes = p.whole_sizes;
  p.share_sizes[0] = p.rows[static_cast<std::size_t>(mesh.coordinate()[mesh_dim])];
  return p;
}

CallOptions on_stream(const CallOptions& call, const ShardedLayer& layer) {
  CallOptions at = call;
  if (at.stream.empty()) at.stream = current_stream(layer.shares.device());
  return at;
}

}  // namespace

FullyShard::FullyShard(std::span<const std::vector<Sharded>> layers, const FullyShardOptions& options, const Stream& stream) {
  constexpr const char* kOp = "dist::FullyShard";
  state_ = named(kOp, [&] {
    if (layers.empty() || std::any_of(layers.begin(), layers.end(), [](const std::vector<Sharded>& of) { return of.empty(); }))
      refuse(kOp, "there must be a layer, and a parameter in each, got none");
    auto state = std::make_unique<FullyShardState>(FullyShardState{.mesh = layers[0][0].mesh(), .options = options, .layers = {}});
    if (options.mesh_dim < 0 || options.mesh_dim >= state->mesh.shape().rank())
      refuse(kOp, fmt::format("mesh_dim must be one of {}, got {}", state->mesh.shape().rank(), options.mesh_dim));
    if (options.prefetch < 0) refuse(kOp, fmt::format("prefetch must be 0 or more, got {}", options.prefetch));
    const std::int64_t coordinate = state->mesh.coordinate()[options.mesh_dim];
    for (const std::vector<Sharded>& given : layers) {
      ShardedLayer layer{.of = {}, .dtype = given[0].dtype(), .shares = {}, .gradients = {}, .reducing = {}};
      for (const Sharded& x : given) {
        layer.of.push_back(parameter_of(kOp, x, state->mesh, options.mesh_dim));
        if (x.dtype() != layer.dtype)
          throw Error(ErrorCode::invalid_dtype, kOp,
                      fmt::format("parameters of a layer must be of one dtype, got {} and {}", clutch::name(layer.dtype), clutch::name(x.dtype())));
      }
      layer.shares = clutch::empty({layer.elements(&ShardedParameter::share_sizes)}, {.dtype = layer.dtype, .device = given[0].local().device()}, stream);
      const std::vector<Tensor> shares = layer.parts_of(layer.shares, &ShardedParameter::share_sizes);
      for (std::size_t i = 0; i < given.size(); ++i) {
        const std::vector<std::int64_t>& rows = layer.of[i].rows;
        const std::int64_t begin = std::accumulate(rows.begin(), rows.begin() + coordinate, std::int64_t{0});
        copy_(shares[i], given[i].local().slice(0, begin, begin + rows[static_cast<std::size_t>(coordinate)]), {}, stream);
      }
      state->layers.push_back(std::move(layer));
    }
    return state;
  });
}

FullyShard::~FullyShard() = default;
FullyShard::FullyShard(FullyShard&&) noexcept = default;
FullyShard& FullyShard::operator=(FullyShard&&) noexcept = default;

int FullyShard::layers() const { return static_cast<int>(state_->layers.size()); }
int FullyShard::gathered() const { return state_->gathered(); }

const std::vector<Sharded>& FullyShard::gather(int layer, const CallOptions& call) {
  constexpr const char* kOp = "dist::FullyShard::gather";
  return *named(kOp, [&] {
    FullyShardState& state = *state_;
    ShardedLayer& mine = state.layer(kOp, layer);
    check_async(kOp, call);
    const CallOptions at = on_stream(call, mine);
    const int first_way = layer == 0 ? 1 : -1;
    state.direction = layer > state.last ? 1 : layer < state.last ? -1 : first_way;
    state.last = layer;
    const int end = std::clamp(layer + state.direction * state.options.prefetch, 0, layers() - 1);
    state.drop_others(at.stream, std::min(layer, end), std::max(layer, end));
    state.begin_gather(mine, at);
    mine.is_held = true;
    for (int next = layer; next != end && state.gathered() <= state.options.prefetch;) {
      next += state.direction;
      state.begin_gather(state.layers[static_cast<std::size_t>(next)], at);
    }
    mine.gathering.wait(at.stream);
    return &mine.whole;
  });
}

void FullyShard::release(int layer) {
  constexpr const char* kOp = "dist::FullyShard::release";
  ShardedLayer& mine = state_->layer(kOp, layer);
  if (!mine.is_held) refuse(kOp, fmt::format("the layer must be a gathered one, got {}, which is not", layer));
  state_->drop(mine);
}

void FullyShard::reduce(int layer, std::span<const Tensor> gradients, const CallOptions& call) {
  constexpr const char* kOp = "dist::FullyShard::reduce";
  named(kOp, [&] {
    ShardedLayer& mine = state_->layer(kOp, layer);
    check_async(kOp, call);
    if (gradients.size() != mine.of.size())
      refuse(kOp, fmt::format("gradients must be one for each of {} parameters, got {}", mine.of.size(), gradients.size()));
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) refuse(kOp, "gradients must be defined, got an undefined one");
      if (gradients[i].sizes() != mine.of[i].whole_sizes)
        throw Error(ErrorCode::invalid_shape, kOp,
                    fmt::format("a gradient must have its parameter's shape {}, got {}", to_string(mine.of[i].whole_sizes), to_string(gradients[i].sizes())));
      if (gradients[i].dtype() != mine.dtype)
        throw Error(ErrorCode::invalid_dtype, kOp,
                    fmt::format("gradients must be {} as parameters, got {}", clutch::name(mine.dtype), clutch::name(gradients[i].dtype())));
    }
    const CallOptions at = on_stream(call, mine);
    if (!mine.gradients.defined()) mine.gradients = clutch::empty(mine.shares.sizes(), {.dtype = mine.dtype, .device = mine.shares.device()}, at.stream);
    mine.reducing.wait(at.stream);
    const std::vector<Tensor> shares = mine.parts_of(mine.gradients, &ShardedParameter::share_sizes);
    mine.reducing = state_->in_batch(at, [&](const CallOptions& in_batch) {
      const ReduceOptions average{.op = ReduceOp::avg, .stream = in_batch.stream, .timeout = in_batch.timeout, .where = in_batch.where};
      for (std::size_t i = 0; i < gradients.size(); ++i)
        mine.of[i].is_even() ? state_->group().reduce_scatter_out(shares[i], gradients[i], average)
                             : state_->group().reduce_scatter_v_out(shares[i], gradients[i], mine.of[i].rows, average);
    });
  });
}

std::vector<Sharded> FullyShard::parameters() const { return state_->shards(&ShardedLayer::shares); }
std::vector<Tensor> FullyShard::flat_parameters() const { return state_->flat(&ShardedLayer::shares); }
std::vector<Sharded> FullyShard::gradients(const Stream& stream) {
  state_->wait_for_gradients("dist::FullyShard::gradients", stream);
  return state_->shards(&ShardedLayer::gradients);
}
std::vector<Tensor> FullyShard::flat_gradients(const Stream& stream) {
  state_->wait_for_gradients("dist::FullyShard::flat_gradients", stream);
  return state_->flat(&ShardedLayer::gradients);
}

}}}  // namespace clutch::v0::dist
