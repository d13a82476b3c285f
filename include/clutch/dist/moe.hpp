// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows that go to other ranks by counts that are on the device: an all_to_all of any splits, and the two exchanges of
// a mixture of experts, whose tokens go to the ranks of their experts and come back.
//
//   dist::dispatch(tokens, arrived, mine, splits, world, 8);    // tokens of each expert of this rank, one behind the
//   other
//   ...                                                         // the experts; `arrived` says where whose tokens are
//   dist::combine(back, returned, results, arrived, world);     // in the order in which they were sent
#include <clutch/dist.hpp>

namespace clutch { inline namespace v0 { namespace dist {

// For all calls of this header, on n ranks with ne experts each:
// Rows: entries of dimension 0. Rows of `in` and `out` have the same sizes; their number may differ from rank to rank.
// Splits: i64. `in_splits` says how many rows of `in` go where. `out_splits_offsets` is written: row 0 has how many
//   rows came, row 1 the row of `out` that they begin at.
// Host: waits for nothing where `in` is in Symmetric memory that all ranks reach and begins at the same byte of it on
//   each (Algorithm::automatic and kernel): one launch exchanges splits and sums them, one copies rows out of the
//   peers' memory. The first call of so many experts with this memory makes memory for the splits: it is collective,
//   and waits. Any other `in` goes by messages (Algorithm::direct): the host reads the splits, and waits for the call.
// Dtypes: all; rows of packed dtypes must have whole bytes.
// Order: as Group's calls, in that of the stream.
// Overlap: `out` must not share elements with `in`.
// Errors: invalid_argument for a capture, or an algorithm that does not do it; invalid_shape; invalid_dtype;
//   device_mismatch; invalid_overlap. invalid_shape of Work::synchronize(), on every rank, where the rows of any rank
//   do not fit its `out`, or its splits are negative or reach past its `in`: no row is written then on any rank, and
//   out_splits_offsets is undefined. By messages the call itself throws it. mismatch as of Group's calls.

/// Rank p gets in_splits[p] rows of `in`, those behind the rows of the ranks before p.
/// Shapes: in_splits (n), out_splits_offsets (2, n). The rows of rank p are at p in it, and in the order of the ranks
///   in `out`, none between them. Rows behind them are not written.
CLUTCH_DIST_API Work all_to_all_v(const Tensor& out, const Tensor& out_splits_offsets, const Tensor& in,
                                  const Tensor& in_splits, const Group& group, const CallOptions& options = {});

/// Tokens to the ranks of their experts: PyTorch's all_to_all_vdev_2d.
/// Input: the rows of expert e of rank p are at p ne + e in in_splits (n ne), and in that order in `in`, from row 0 on.
/// Output: the rows for expert e of this rank that rank p sent are at e n + p in out_splits_offsets (2, n ne), and in
///   that order in `out`.
/// Alignment: the rows of each expert begin at a multiple of `major_align`, and an expert without rows takes
///   `major_align` of them, as PyTorch's; 0: nothing is between experts. Rows that are taken must be in `out`; those
///   that nobody sent are not written.
CLUTCH_DIST_API Work dispatch(const Tensor& out, const Tensor& out_splits_offsets, const Tensor& in,
                              const Tensor& in_splits, const Group& group, std::int64_t major_align = 1,
                              const CallOptions& options = {});

/// Tokens back to where they came from: PyTorch's all_to_all_vdev_2d_offset.
/// Input: in_splits_offsets (2, n ne) is as dispatch() wrote it: at e n + p the rows of expert e of this rank that go
///   to rank p, and the row of `in` that they begin at. There may be rows between them, which are not sent.
/// Output: the rows that expert e of rank p sent are at p ne + e in out_splits_offsets (2, n ne), and in that order in
///   `out`, none between them.
CLUTCH_DIST_API Work combine(const Tensor& out, const Tensor& out_splits_offsets, const Tensor& in,
                             const Tensor& in_splits_offsets, const Group& group, const CallOptions& options = {});

}}}  // namespace clutch::v0::dist
