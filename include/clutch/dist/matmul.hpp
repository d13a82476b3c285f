// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of matrices whose rows are of all ranks, without a collective before or behind them: kernels read the other
// ranks' rows where they are.
#include <clutch/dist.hpp>

namespace clutch { inline namespace v0 { namespace dist {

/// out = all_gather(a) b: rows r m to (r + 1) m of `out` are rank r's `a` times this rank's b. Nothing is gathered: the
/// product of the rank's own rows runs while the other ranks come, then those of theirs, read where they are.
/// Shapes: a (m, k), the same on all ranks, contiguous; b (k, c) of any strides; out (n m, c), contiguous.
/// Dtypes: as linalg::matmul(); that of `out` as MatmulOptions::dtype.
/// Memory: `a` in Symmetric memory that all ranks reach, at the same byte of it, outside of captures, of 1 MiB on all
///   ranks together (Algorithm::kernel: of any size, and an Error for other memory); else all_gather_out() into memory
///   of the pool, and one product.
/// Accuracy: the bits of all_gather_out() and linalg::matmul_out().
/// Order: as Group's calls.
/// Errors: as of these two.
CLUTCH_DIST_API Work all_gather_matmul(const Tensor& out, const Tensor& a, const Tensor& b, const Group& group,
                                       const CallOptions& options = {});

/// out = reduce_scatter(a b): rank r gets rows r m to (r + 1) m of the reduction of all ranks' products. Products of
/// the other ranks' rows come first, in `scratch`; that of the own rows runs while they come.
/// Shapes: a (n m, k) and b (k, c), k may differ from rank to rank; out (m, c), contiguous; scratch (n m, c) at least,
///   contiguous.
/// Dtypes: as linalg::matmul(); that of `out` as MatmulOptions::dtype, and scratch's the same.
/// Memory: `scratch` in Symmetric memory as `a` above, else one product and reduce_scatter_out(). Its elements are
///   undefined afterwards.
/// Accuracy: the bits of linalg::matmul_out() and reduce_scatter_out().
/// Order: as Group's calls; not asynchronous.
/// Errors: as of these two.
CLUTCH_DIST_API Work matmul_reduce_scatter(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& scratch,
                                           const Group& group, const ReduceOptions& options = {});

}}}  // namespace clutch::v0::dist
