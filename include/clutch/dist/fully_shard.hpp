// SPDX-License-Identifier: Apache-2.0
#pragma once
// Layers whose parameters, gradients and optimizer states are divided among the ranks of a dimension of a mesh (ZeRO's
// stage 3): a rank has a layer's parameters whole only while it computes with them.
//
//   dist::FullyShard model(layers, {.prefetch = 1});
//   optim::AdamW optimizer(model.flat_parameters(), {.lr = 1e-3});
//   for (int i = 0; i < model.layers(); ++i) forward(i, model.gather(i)), model.release(i);
//   for (int i = model.layers(); i-- > 0;) {
//     model.reduce(i, backward(i, model.gather(i)));
//     model.release(i);
//   }
//   optim::GradNorm norm = dist::grad_norm(model.gradients(), 1.0);
//   optimizer.step(model.flat_gradients(), {.grad_factor = norm.factor});
#include <clutch/dist/sharded.hpp>

#include <memory>
#include <span>
#include <vector>

namespace clutch { inline namespace v0 { namespace dist {

namespace detail {
struct FullyShardState;
}  // namespace detail

struct FullyShardOptions {
  int mesh_dim = 0;  ///< whose ranks share the parameters
  int prefetch = 1;  ///< layers that gather() begins to gather ahead
};

/// Layers in shards of dimension 0 of each parameter, one behind the other in one tensor a layer.
/// Placements: along `mesh_dim` the given parameters are replicated, and become shards of dimension 0; along other
///   dimensions of the mesh they keep their placements, such as tensor parallel ones. A dimension 0 that dimensions of
///   the mesh behind `mesh_dim` cut, too, is cut by them first: the shards then have a split factor.
/// Bits: gathered parameters are copies. Gradients are Group's averages, which of gradients that are averages
///   themselves of 2^k equal parts of a batch, folded in the order of Group, have the same bits on 1, 2, 4, ... ranks
///   unless they underflow; so then have parameters and states of an elementwise optimizer, also of one that clips by
///   the factor of dist::grad_norm().
/// Memory: a share of all parameters and gradients; prefetch + 1 times the largest layer's parameters, more only while
///   the caller holds more layers. It is kept for the next layers, so a layer's tensors must not be used after its
///   release().
/// Order: gather(), work on parameters, release() and reduce() are in the order of one stream.
/// Collectives: one a parameter, a layer's in a Batch, asynchronous, behind the stream's work before. All ranks of a
///   group make the same calls in the same order.
/// Errors: invalid_argument for no layers or parameters, several meshes, placements that are partial or not replicated
///   along `mesh_dim`, options out of range, and a layer that is not there; invalid_shape for parameters without
///   dimensions, and a dimension 0 that the other ranks cut unevenly; invalid_dtype for layers of several dtypes.
/// Stream: never waits.
/// Threads: one at a time.
/// Source: torch.distributed.fsdp.fully_shard of PyTorch 2.12.
class CLUTCH_DIST_API FullyShard {
 public:
  /// Copies this rank's shares: nothing is sent, and the given tensors may go.
  explicit FullyShard(std::span<const std::vector<Sharded>> layers, const FullyShardOptions& options = {},
                      const Stream& stream = {});
  ~FullyShard();
  FullyShard(FullyShard&&) noexcept;
  FullyShard& operator=(FullyShard&&) noexcept;

  int layers() const;
  /// The layer's parameters as they were given, whole along `mesh_dim`, until release(). Begins to gather the next
  /// layers in the direction in which the calls go; after the last layer they go back, after the first one forward.
  const std::vector<Sharded>& gather(int layer, const CallOptions& call = {});
  /// Errors: invalid_argument for a layer that gather() has not given.
  void release(int layer);
  /// Layers whose parameters are whole, or on the way.
  int gathered() const;

  /// Begins to average the ranks' gradients of a layer, this rank's local ones, into its shards, in the place of what
  /// was there. The tensors may go.
  /// Errors: invalid_argument for another count; invalid_shape and invalid_dtype unless as the parameters'.
  void reduce(int layer, std::span<const Tensor> gradients, const CallOptions& call = {});

  /// The shards of all layers' parameters, and of their gradients, which the stream waits for; views. For checkpoints
  /// and norms.
  /// Errors: invalid_argument before reduce() of all layers.
  std::vector<Sharded> parameters() const;
  std::vector<Sharded> gradients(const Stream& stream = {});
  /// The same as one tensor of one dimension for each layer, for optim's optimizers. Gradients drop layers that were
  /// gathered ahead, since parameters will change (so those of gradients()).
  std::vector<Tensor> flat_parameters() const;
  std::vector<Tensor> flat_gradients(const Stream& stream = {});

 private:
  std::unique_ptr<detail::FullyShardState> state_;
};

}}}  // namespace clutch::v0::dist
