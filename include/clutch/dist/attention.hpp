// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention of Sharded tensors, on attention::flex(): by batches and heads, which are no other rank's business, and
// along sequences that ranks share.
//
//   auto q = dist::Sharded::distribute(dist::to_balanced(q_full, 2, 4), mesh, {dist::shard(2)});   // and k, v
//   dist::FlexOptions options{.flex = {.mask_mod = attention::causal(), .return_lse = true}, .balanced = true};
//   auto [out, lse] = dist::flex(q, k, v, options);
//   auto [dq, dk, dv] = dist::flex_backward(grad_out, q, k, v, {out, lse}, options);
#include <clutch/dist/sharded.hpp>
#include <clutch/ops/flex.hpp>

namespace clutch { inline namespace v0 { namespace dist {

/// How queries meet the keys of other ranks, where a dimension of the mesh cuts sequences.
enum class SequenceMethod : std::uint8_t {
  automatic,  ///< ulysses where it does the call, else gather
  gather,     ///< each rank gets all keys and values, for its own queries
  ring,       ///< keys and values go round while each rank computes with those it has: memory of two ranks' keys
  ulysses,    ///< all_to_all: each rank gets whole sequences of some heads, of which there must be enough
};

struct FlexOptions {
  /// Mods and masks see batches, heads, queries and keys of the whole tensors. A block mask is of the whole lengths;
  /// each rank makes those of its part by its mask function and block size, at each call.
  attention::FlexOptions flex = {};
  SequenceMethod method = SequenceMethod::automatic;
  bool balanced = false;  ///< sequences are in the order of to_balanced() for the ranks that cut them
};
struct FlexResult {
  Sharded out;  ///< (B, Hq, L, Ev), placed as q
  Sharded lse;  ///< (B, Hq, L), placed as q; empty unless FlexOptions::flex.return_lse
};
struct FlexGradients {
  Sharded q, k, v;  ///< placed as they
};

/// attention::flex() of tensors over a mesh. Collective where sequences are cut.
/// Placements: q, k and v have the same: in each dimension of the mesh replicated, or shards of batches, heads or
///   sequences, of which one dimension of the mesh at most. Each rank's query heads must be those of its key heads.
/// Bits: out and lse have those of attention::flex() of the whole tensors with the same options, but for the ring, for
///   a block mask by gather, whose blocks are of other rows, and where a rank has up to 8 queries and the whole more.
/// Accuracy of the ring: f32 sums of the results for each rank's keys, times e^(lse of these keys - lse): within
///   n (8 + 2 |lse|) eps max|v| of n ranks besides flex()'s, eps = 2^-24 (f64: 2^-53); f16 and bf16 results for each
///   rank's keys are rounded, then their sum.
/// Empty parts: a rank without rows has none in the result, and takes part.
/// Errors: invalid_argument for placements, for balanced tensors whose sequences nothing cuts, and for heads that do
///   not fit; not_supported for dropout, varlen, return_max_scores and a block mask without mask function; as
///   attention::flex().
/// Stream: never waits.
/// Source: context parallelism of PyTorch 2.12 (gather, ring), DeepSpeed's Ulysses.
CLUTCH_DIST_API FlexResult flex(const Sharded& q, const Sharded& k, const Sharded& v, const FlexOptions& options = {},
                                const CallOptions& call = {});
/// Gradients of flex() with the same tensors and options; `result` has lse. Each rank's gradients are computed of the
/// result's, so of one loss whose gradient all ranks have their parts of. Captured tensors are constants.
/// Bits: dk and dv of batches and heads have those of attention::flex_backward(), by ulysses, too; dq where
///   flex_backward() has the keys in as many parts, which depends on the heads that a rank has.
/// Accuracy: by gather dk and dv are sums over the ranks in Group's order, of summands that are rounded to the dtype.
///   By ring dq, dk and dv are f32 (f64) sums of them, in the order of ranks from the keys' own one on; weights have a
///   relative error of (8 + 2 |lse|) eps besides flex_backward()'s.
/// Errors: as flex(); invalid_argument without lse, and for a gradient or result that is not placed as q.
CLUTCH_DIST_API FlexGradients flex_backward(const Sharded& grad_out, const Sharded& q, const Sharded& k,
                                            const Sharded& v, const FlexResult& result, const FlexOptions& options = {},
                                            const CallOptions& call = {});

/// The entries of a dimension in an order for causal masks: of 2 `ranks` chunks (by torch.chunk's rule) 0, the last
/// one, 1, the last but one, and so on. A shard of that dimension over `ranks` ranks then has chunks i and
/// 2 ranks - 1 - i on rank i, which have equal work; where the chunks are not equal it may be off by some entries.
/// Shapes: any; negative dimensions count from the end. The result is contiguous.
/// Errors: invalid_argument for a dimension out of range and less than one rank.
/// Stream: never waits.
CLUTCH_DIST_API Tensor to_balanced(const Tensor& tensor, int dim, int ranks, const Stream& stream = {});
/// Back again.
CLUTCH_DIST_API Tensor from_balanced(const Tensor& tensor, int dim, int ranks, const Stream& stream = {});

}}}  // namespace clutch::v0::dist
