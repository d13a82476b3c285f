// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collectives that return new tensors, and their gradients. Group's calls are their out forms, whose bits they have.
//
//   namespace functional = clutch::dist::functional;
//   Tensor whole = functional::all_gather(mine, 1, world);
//   Tensor grad_mine = functional::all_gather_backward(grad_whole, 1, world);
//
// Gradients: each rank's loss is a summand of the loss, which is the sum over the ranks; each rank's tensors are
// variables of their own, copies of one value too. So the gradient of a sum that all ranks get is the sum of all
// ranks' gradients. Where ranks compute the same loss of the same numbers, divide it by the number of ranks.
#include <clutch/dist.hpp>

#include <cstdint>
#include <span>

namespace clutch { inline namespace v0 { namespace dist { namespace functional {

/// Every rank gets the reduction of all ranks' tensors.
/// Shapes: the same on all ranks; the result's, too. Any strides, here and below; results are contiguous.
/// Dtypes: as Group says of its calls, here and below.
/// Bits: those of Group::all_reduce_(), here and below those of the Group's call of that name.
/// Stream: never waits; the result is there in the order of options.stream. Give another stream to go on meanwhile.
/// Errors: invalid_argument for options.async and a dimension out of range; as Group, here and below.
/// Source: torch.distributed._functional_collectives of PyTorch 2.12.
CLUTCH_DIST_API Tensor all_reduce(const Tensor& in, const Group& group, const ReduceOptions& options = {});
/// Gradients of the sum, of avg and of premul_sum are the same reduction of the gradients. That of prod is the sum of
/// the gradients times the product of the other ranks' elements; that of min and max goes to the ranks that have the
/// result, in equal parts where several have it.
/// Inputs: `in` and `out` of the forward call, which sum, avg and premul_sum leave alone: they may be undefined then.
/// Scratch: prod: all ranks' tensors; min and max: two tensors.
/// Errors: invalid_argument for band, bor and bxor; invalid_dtype for prod, min and max of others than floats.
CLUTCH_DIST_API Tensor all_reduce_backward(const Tensor& grad, const Tensor& in, const Tensor& out, const Group& group,
                                           const ReduceOptions& options = {});

/// The root gets the reduction; the result of the others is undefined.
CLUTCH_DIST_API Tensor reduce(const Tensor& in, int root, const Group& group, const ReduceOptions& options = {});
/// As all_reduce_backward(). `grad` and `out` are the root's alone; `in` is needed on all ranks.
CLUTCH_DIST_API Tensor reduce_backward(const Tensor& grad, const Tensor& in, const Tensor& out, int root,
                                       const Group& group, const ReduceOptions& options = {});

/// Every rank gets the tensors of all, one behind the other along `dim`. Negative `dim` counts from the end, here and
/// below.
/// Shapes: the same on all ranks, but that of all_gather_v() has sizes[r] entries of `dim` on rank r.
/// Scratch: for another `dim` than the first a copy of the result, here and below.
CLUTCH_DIST_API Tensor all_gather(const Tensor& in, int dim, const Group& group, const CallOptions& options = {});
CLUTCH_DIST_API Tensor all_gather_v(const Tensor& in, int dim, std::span<const std::int64_t> sizes, const Group& group,
                                    const CallOptions& options = {});
/// reduce_scatter() of the gradients' sum.
CLUTCH_DIST_API Tensor all_gather_backward(const Tensor& grad, int dim, const Group& group,
                                           const CallOptions& options = {});
CLUTCH_DIST_API Tensor all_gather_v_backward(const Tensor& grad, int dim, std::span<const std::int64_t> sizes,
                                             const Group& group, const CallOptions& options = {});

/// Rank r gets part r of the reduction, of equal parts along `dim` or of these sizes.
/// Errors: invalid_shape where parts cannot be equal.
CLUTCH_DIST_API Tensor reduce_scatter(const Tensor& in, int dim, const Group& group, const ReduceOptions& options = {});
CLUTCH_DIST_API Tensor reduce_scatter_v(const Tensor& in, int dim, std::span<const std::int64_t> sizes,
                                        const Group& group, const ReduceOptions& options = {});
/// all_gather() of the gradients; for prod, min and max as all_reduce_backward() with `in` and `out` of the forward
/// call.
CLUTCH_DIST_API Tensor reduce_scatter_backward(const Tensor& grad, const Tensor& in, const Tensor& out, int dim,
                                               const Group& group, const ReduceOptions& options = {});
CLUTCH_DIST_API Tensor reduce_scatter_v_backward(const Tensor& grad, const Tensor& in, const Tensor& out, int dim,
                                                 std::span<const std::int64_t> sizes, const Group& group,
                                                 const ReduceOptions& options = {});

/// The root gets the tensors of all along `dim`; the result of the others is undefined.
CLUTCH_DIST_API Tensor gather(const Tensor& in, int dim, int root, const Group& group, const CallOptions& options = {});
/// scatter() of the root's gradient; the gradients of the others are undefined. `in`: of the forward call.
CLUTCH_DIST_API Tensor gather_backward(const Tensor& grad, const Tensor& in, int dim, int root, const Group& group,
                                       const CallOptions& options = {});

/// Rank r gets part r of the root's tensor, of equal parts along `dim`.
/// Shapes: `sizes` and `dtype` are the result's, the same on all ranks. `in` is the root's; others give an undefined
///   one. The result is on the device of the stream, for an empty one on the current device.
CLUTCH_DIST_API Tensor scatter(const Tensor& in, const Dims& sizes, DType dtype, int dim, int root, const Group& group,
                               const CallOptions& options = {});
/// gather() of the gradients: the root's, undefined for the others.
CLUTCH_DIST_API Tensor scatter_backward(const Tensor& grad, int dim, int root, const Group& group,
                                        const CallOptions& options = {});

/// Every rank gets what the root has. On other ranks `in` gives sizes and dtype; its elements are not read.
CLUTCH_DIST_API Tensor broadcast(const Tensor& in, int root, const Group& group, const CallOptions& options = {});
/// The root gets the sum of all ranks' gradients; the others, whose elements were not read, get zeros.
CLUTCH_DIST_API Tensor broadcast_backward(const Tensor& grad, int root, const Group& group,
                                          const CallOptions& options = {});

/// Part r of each rank's tensor along `split_dim` goes to rank r, which joins what it gets along `concat_dim`, by rank.
/// With other dimensions it is what makes a tensor that is cut along one be cut along the other.
/// Shapes: the same on all ranks; equal parts, or split_sizes[r] entries for rank r and concat_sizes[r] entries of
///   `concat_dim` from rank r. With two dimensions concat_sizes of this rank is what its tensor has, and the lists are
///   the same on all ranks; with one they are what goes and what comes.
/// Errors: invalid_shape where parts cannot be equal or sizes differ.
CLUTCH_DIST_API Tensor all_to_all(const Tensor& in, int split_dim, int concat_dim, const Group& group,
                                  const CallOptions& options = {});
CLUTCH_DIST_API Tensor all_to_all_v(const Tensor& in, int split_dim, std::span<const std::int64_t> split_sizes,
                                    int concat_dim, std::span<const std::int64_t> concat_sizes, const Group& group,
                                    const CallOptions& options = {});
/// The arguments are the forward call's: what came goes back.
CLUTCH_DIST_API Tensor all_to_all_backward(const Tensor& grad, int split_dim, int concat_dim, const Group& group,
                                           const CallOptions& options = {});
CLUTCH_DIST_API Tensor all_to_all_v_backward(const Tensor& grad, int split_dim,
                                             std::span<const std::int64_t> split_sizes, int concat_dim,
                                             std::span<const std::int64_t> concat_sizes, const Group& group,
                                             const CallOptions& options = {});

/// No rank, in send_recv().
inline constexpr int kNoRank = -1;
/// This rank's tensor goes to rank `to`, and that of rank `from` is the result; a ring is (rank + 1, rank - 1).
/// Shapes: the result has the sizes and the dtype of `in`. To kNoRank nothing goes; from kNoRank the result is
///   undefined. The rank itself, in both places, gives a copy.
/// Messages: sends and receives of tag Group::kMaxTag: no other ones of that tag may be under way.
/// Capturable: in a graph messages of a ring go from rank to rank, one after the other.
/// Errors: mismatch where the two ranks' sizes differ.
CLUTCH_DIST_API Tensor send_recv(const Tensor& in, int to, int from, const Group& group,
                                 const CallOptions& options = {});
/// The gradient goes back; zeros where nothing went to a rank. `grad`: undefined where nothing came. `in`: of the
/// forward call.
CLUTCH_DIST_API Tensor send_recv_backward(const Tensor& grad, const Tensor& in, int to, int from, const Group& group,
                                          const CallOptions& options = {});

}}}}  // namespace clutch::v0::dist::functional
