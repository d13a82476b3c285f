// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ops over Sharded tensors: each rank computes its part, and nothing is sent unless the contract says so. Where
// placements do not fit, the call is an Error: Sharded::redistribute() makes others.
#include <clutch/dist/sharded.hpp>
#include <clutch/nn.hpp>
#include <clutch/ops/map.hpp>
#include <clutch/ops/matmul.hpp>
#include <clutch/ops/optim.hpp>

#include <concepts>
#include <span>
#include <vector>

namespace clutch { inline namespace v0 { namespace dist {

/// clutch::map of the parts.
/// Placements: in each dimension of the mesh all inputs are replicated, which the result is, too; or those that have an
///   entry for each of the result's in some dimension are shards of it, with one split factor, which the result is, and
///   the others are replicated. Partial ones are Errors.
/// Shapes: the inputs broadcast.
/// Bits: those of clutch::map of the whole tensors.
/// Errors: invalid_argument for placements that do not fit, inputs of several meshes, and functions of positions, which
///   would be places in the parts; as clutch::map.
/// Stream: never waits (so below).
CLUTCH_DIST_API std::vector<Sharded> map(const ExprFunction& function, std::span<const Sharded> inputs,
                                         const MapOptions& options = {}, const Stream& stream = {});
/// map([](Expr a, Expr b) { return relu(a) * b; }, x, y)
template <class F, std::same_as<Sharded>... T>
requires(clutch::detail::kIsLambda<F> && sizeof...(T) > 0) Sharded map(F&& f, const T&... x) {
  const Tensor parts[] = {x.local()...};
  const Sharded inputs[] = {x...};
  return map(clutch::detail::trace_over<sizeof...(T)>(f, parts, "dist::map"), inputs)[0];
}

/// As map(); sums of which all summands are partial, of sum or of avg, are partial.
CLUTCH_DIST_API Sharded add(const Sharded& a, const Sharded& b, const MapOptions& options = {},
                            const Stream& stream = {});
/// As map(); the product of a partial one, of sum or of avg, and a replicated one is partial.
CLUTCH_DIST_API Sharded mul(const Sharded& a, const Sharded& b, const MapOptions& options = {},
                            const Stream& stream = {});

/// linalg::matmul of the parts.
/// Placements: in each dimension of the mesh, of a (*, m, k), b (*, k, n) and the result: R, R -> R; a shard of m, R ->
///   m; R, a shard of n -> n; shards of k in both -> P(sum); shards of one batch dimension in both, or in the one that
///   has it, -> that one; P(sum) or P(avg) and R, in either order, -> the same. Others are Errors.
/// Shapes: as linalg::matmul of tensors with two dimensions at least.
/// Bits: those of the whole product (Numerics::chain) unless k is cut: then those of the parts' chains and of their
///   sum, and |error| <= (k + 2 + log2 of the ranks) eps |a| |b|. `dtype` f32 keeps f16 and bf16 summands unrounded.
/// Errors: invalid_argument; else as linalg::matmul.
CLUTCH_DIST_API Sharded matmul(const Sharded& a, const Sharded& b, const linalg::MatmulOptions& options = {},
                               const Stream& stream = {});

/// linalg::linear of the parts: x weight^T + bias, weight (out, in).
/// Placements: as matmul() of x and weight^T. Columns: weight shard(0), x replicated -> a shard of the last dimension.
///   Rows: weight shard(1), x a shard of its last dimension -> P(sum). `bias`, which may be an empty one, is a shard
///   where the result's last dimension is, else replicated; a partial result gets it from coordinate 0 alone.
/// Bits: as matmul().
/// Errors: invalid_argument besides for an activation of a partial result and a bias of a P(avg).
CLUTCH_DIST_API Sharded linear(const Sharded& x, const Sharded& weight, const Sharded& bias = {},
                               const linalg::LinearOptions& options = {}, const Stream& stream = {});

/// nn::embedding of the parts: rows of weight (rows, features).
/// Placements: in each dimension of the mesh, weight, index and the result: R, R -> R; R, shard(i) -> shard(i);
///   shard(1), R -> a shard of the last dimension; shard(0), R -> P(sum), of which one rank has the row and the others
///   -0.
/// Bits: those of nn::embedding of the whole, also of the sum.
/// Bad contents: an index that is no row gives NaN.
/// Errors: invalid_argument besides for rows with a split factor; as nn::embedding.
CLUTCH_DIST_API Sharded embedding(const Sharded& weight, const Sharded& index, const Stream& stream = {});

/// nn::rms_norm and nn::layer_norm, of which y alone is returned.
/// Placements: as map() of x and the weights. Where a dimension of a row is cut, the row's sums are reduced over the
///   ranks that have its parts: one all_reduce of a number a row, of layer_norm two. Then the call is collective.
/// Bits: those of the whole unless rows are cut: then sums of a row have the order of its parts and Group's between
///   them, and the error of a mean is the same but for log2 of the ranks eps.
/// Errors: invalid_argument; as nn::rms_norm and nn::layer_norm.
CLUTCH_DIST_API Sharded rms_norm(const Sharded& x, const Sharded& weight = {}, const nn::NormOptions& options = {},
                                 const CallOptions& call = {});
CLUTCH_DIST_API Sharded layer_norm(const Sharded& x, const Sharded& weight = {}, const Sharded& bias = {},
                                   const nn::NormOptions& options = {}, const CallOptions& call = {});

/// The norm of all elements of all gradients, and the factor that would clip them, the same on all ranks. Collective.
/// Placements: any but partial ones, and of one mesh. Elements that several ranks have count once.
/// Dtypes: f32, f64, f16, bf16, the same for all; computed in f32, for f64 in f64.
/// Order: of each gradient the elements at each index of the dimensions that placements cut are added up; where such a
///   dimension has 4096 indices or more, a multiple of 64, and at most three are cut, then the indices of each 64th of
///   it; at last the sums of all gradients, each in reduce()'s order. So bits depend on sizes and on which dimensions
///   placements cut, and neither on the number of ranks nor on the rank, the algorithm or the transport.
/// Traffic: one all_reduce over the mesh, of a number for each index of the dimensions that are cut, or for each 64th
///   where ranks have whole ones. For NormType::inf a number a gradient.
/// Accuracy: that of reduce()'s sums, three times at most.
/// Errors: invalid_argument for no gradients, a max_norm that is negative or NaN, and placements; invalid_dtype.
/// Source: torch.nn.utils.clip_grad_norm_ of DTensors, PyTorch 2.12.
CLUTCH_DIST_API optim::GradNorm grad_norm(std::span<const Sharded> grads, double max_norm,
                                          const optim::ClipOptions& options = {}, const CallOptions& call = {});
/// The same, and multiplies the gradients by the factor. Returns the norm before.
CLUTCH_DIST_API Tensor clip_grad_norm_(std::span<const Sharded> grads, double max_norm,
                                       const optim::ClipOptions& options = {}, const CallOptions& call = {});

}}}  // namespace clutch::v0::dist
