// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensors of which each rank of a mesh has a part.
//
//   dist::Mesh mesh(world, {2, 4}, {"data", "model"});
//   auto weight = dist::Sharded::distribute(full, mesh, {dist::replicate(), dist::shard(0)});
//   auto y = dist::linear(x, weight);                    // x replicated: y is cut along its last dimension
//   Tensor whole = y.full();                             // on every rank
#include <clutch/dist.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace dist {

namespace detail {
struct MeshState;
struct ShardedState;
}  // namespace detail

/// The ranks of a group as the cells of a grid, in row-major order. A cheap value: copies share the groups.
class CLUTCH_DIST_API Mesh {
 public:
  Mesh() = default;
  /// Collective; waits: each dimension gets groups of its own.
  /// Errors: invalid_argument for an empty group, no dimension, or names that are not one each, empty or twice there;
  ///   invalid_shape unless the shape has as many cells as the group has ranks.
  Mesh(const Group& group, const Dims& shape, std::vector<std::string> names = {});
  bool empty() const noexcept { return state_ == nullptr; }
  /// Errors: invalid_argument for an empty Mesh (so for all below).
  const Dims& shape() const;
  /// None, or one a dimension.
  const std::vector<std::string>& names() const;
  /// This rank's cell.
  const Dims& coordinate() const;
  /// All ranks.
  const Group& group() const;
  /// The ranks that differ from this one in this dimension alone, in the order of their coordinates.
  /// Errors: invalid_argument for a dimension or a name that is not there.
  const Group& group(int dim) const;
  const Group& group(std::string_view name) const { return group(dim(name)); }
  int dim(std::string_view name) const;
  /// The mesh of one dimension that this rank's group(name) is.
  Mesh operator[](std::string_view name) const;
  /// The mesh of some dimensions, in this order, that this rank is in. Collective; waits.
  Mesh submesh(const std::vector<std::string>& names) const;
  /// True for meshes of one group and shape.
  friend CLUTCH_DIST_API bool operator==(const Mesh& a, const Mesh& b) noexcept;

 private:
  friend class Sharded;
  std::shared_ptr<const detail::MeshState> state_;
};

/// How the ranks along a dimension of a mesh share a tensor.
struct Placement {
  enum class Kind : std::uint8_t {
    replicate,  ///< all of them the same
    shard,      ///< each a part of the tensor's dimension `dim`
    partial,    ///< each a summand: the tensor is the reduction `op` of theirs
  };
  Kind kind = Kind::replicate;
  int dim = 0;
  int split_factor = 1;
  ReduceOp op = ReduceOp::sum;

  bool is_replicate() const noexcept { return kind == Kind::replicate; }
  bool is_shard() const noexcept { return kind == Kind::shard; }
  bool is_partial() const noexcept { return kind == Kind::partial; }
  friend bool operator==(const Placement& a, const Placement& b) noexcept = default;
};
constexpr Placement replicate() noexcept { return {}; }
/// Parts are those of torch.chunk: ceil(size / ranks) entries each, then what is left, then none. With a split factor
/// the dimension has split_factor such parts, each is cut among the ranks, and a rank has its share of each, joined: as
/// if another dimension of the mesh, of so many ranks, had cut it first (PyTorch's _StridedShard).
constexpr Placement shard(int dim, int split_factor = 1) noexcept {
  return {.kind = Placement::Kind::shard, .dim = dim, .split_factor = split_factor};
}
constexpr Placement partial(ReduceOp op = ReduceOp::sum) noexcept {
  return {.kind = Placement::Kind::partial, .op = op};
}
/// "R", "S(0)", "S(0, 2)" with a split factor, "P(sum)".
CLUTCH_DIST_API std::string to_string(const Placement& placement);

/// How a tensor gets other placements: one dimension of the mesh after the other.
struct Redistribution {
  struct Change {
    int mesh_dim = 0;
    Placement from, to;
    std::string_view collective;  ///< "all_gather", "reduce_scatter", "all_reduce", "all_to_all"; "local": none
    std::uint64_t bytes = 0;      ///< that this rank sends by Algorithm::direct
    double us = 0;                ///< predicted, where the mesh's group has a Machine (choose_by()); else 0
  };
  std::vector<Change> steps;
  std::uint64_t bytes() const noexcept {
    std::uint64_t all = 0;
    for (const Change& step : steps) all += step.bytes;
    return all;
  }
  double us() const noexcept {
    double all = 0;
    for (const Change& step : steps) all += step.us;
    return all;
  }
};
/// A line a step: "mesh dim 1: S(0) -> R by all_gather, 4096 bytes, 31.5 us"; without a Machine no time.
CLUTCH_DIST_API std::string to_string(const Redistribution& plan);

/// A box of a tensor's elements.
struct Box {
  Dims offsets, sizes;
  friend bool operator==(const Box& a, const Box& b) noexcept = default;
};

/// A tensor over a mesh: this rank's part, and for each dimension of the mesh a placement. A cheap value: copies share
/// memory.
/// Order: several dimensions of a mesh that shard one of the tensor cut it from left to right: the second one cuts the
///   parts of the first.
/// Placements: one for each dimension of the mesh; negative dimensions of tensors count from the end.
/// Dtypes: all but packed ones.
/// Memory: shards that are cut from a tensor have their own; a part that stays as it is, such as that of a replicated
///   tensor, is the tensor itself.
/// Errors: invalid_argument for an empty Sharded, another number of placements, a dimension out of range, a split
///   factor below 1, premul_sum, or partial placements of several reductions, but for sum with avg.
class CLUTCH_DIST_API Sharded {
 public:
  Sharded() = default;
  /// This rank's part of a tensor that all ranks have whole: nothing is sent. Where only one rank has it, its
  /// broadcast_() comes first.
  static Sharded distribute(const Tensor& full, const Mesh& mesh, std::vector<Placement> placements,
                            const Stream& stream = {});
  /// A tensor whose part on this rank this is. `sizes`: of the whole; empty: those that it has where all parts are
  /// equal. Nothing is sent or checked among ranks. Errors: invalid_shape unless the part has its sizes.
  static Sharded from_local(const Tensor& local, const Mesh& mesh, std::vector<Placement> placements,
                            const Dims& sizes = {});

  bool empty() const noexcept { return state_ == nullptr; }
  const Tensor& local() const;
  const Dims& sizes() const;
  DType dtype() const { return local().dtype(); }
  const Mesh& mesh() const;
  const std::vector<Placement>& placements() const;
  /// The boxes of the whole that the local part is made of, in row-major order of the local part; none is empty.
  /// Errors: invalid_argument for partial placements.
  std::vector<Box> boxes() const;

  /// Two dimensions swapped: a view of the part, whose placements change with it.
  Sharded transpose(int dim0, int dim1) const;

  /// The tensor with other placements. Collective.
  /// Steps: those of plan(). Shards that are in the way, since dimensions of the mesh within cut the same dimension of
  ///   the tensor, are gathered first, from the last dimension of the mesh on; then partial placements that become
  ///   replicated, also from the last one on; then the rest, from the first one on.
  /// Partial: becomes replicated by all_reduce, a shard by reduce_scatter. Replicated becomes partial without a sum:
  ///   coordinate 0 keeps its elements, the others get -0 for sum, 1 for prod, 0 for bxor; for avg, min, max, band and
  ///   bor all keep theirs. So the reduction has their bits, of avg where there are 2^k ranks.
  /// Bits: copies keep them. Sums have Group's order in each dimension of the mesh. Where placements are all partial
  ///   and become replicated, the bits are those of an all_reduce over all ranks if each dimension of the mesh but the
  ///   first has 2^k ranks; f16, bf16 and f8 are rounded between two steps.
  /// Gradient: that of the result goes back to the placements from which it came, partial ones of which become
  ///   replicated: a summand's gradient is the sum's.
  /// Errors: invalid_argument for a shard that is to become partial, and a partial one of another reduction.
  /// Source: torch.distributed.tensor of PyTorch 2.12, whose replicated sums become v / n instead.
  Sharded redistribute(std::vector<Placement> placements, const CallOptions& options = {}) const;
  Redistribution plan(std::vector<Placement> placements) const;
  /// The whole on every rank. Collective.
  Tensor full(const CallOptions& options = {}) const;

 private:
  std::shared_ptr<const detail::ShardedState> state_;
};

}}}  // namespace clutch::v0::dist
