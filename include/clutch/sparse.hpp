// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sparse matrices: compressed rows, here, and 2:4 semi-structured ones (clutch/ops/sparse24.hpp).
#include <clutch/ops/segment.hpp>
#include <clutch/ops/sparse24.hpp>

#include <cstdint>
#include <string>

namespace clutch { inline namespace v0 { namespace sparse {

/// A matrix of compressed rows: row i has entries offsets[i] to offsets[i + 1].
struct Csr {
  Tensor offsets;          ///< (rows + 1), i32 or i64, ascending
  Tensor columns;          ///< (entries), i32 or i64
  Tensor values = {};      ///< (entries); undefined: all 1
  std::int64_t width = 0;  ///< columns of the matrix
};

struct SpmmOptions {
  Reduce reduce = Reduce::sum;
  std::string implementation = {};  ///< forces a plan by name; empty: the first that accepts
};

/// Multiplies a compressed matrix by a dense one, with any reduction:
/// out[i, :] = reduce of values[k] * b[columns[k], :] over row i.
/// Shapes: a (m, k), b (k, n) -> (m, n).
/// Dtypes: f64 f32 f16 bf16, values and b alike -> accumulated in f32, f64 for f64; sums by fma.
/// Empty rows: 0 for all reductions, as torch.sparse.mm; mean divides by a row's entries.
/// Bad contents: a column outside of the matrix gives NaN, offsets are clamped: nothing is read out of bounds.
/// Determinism, NaN, errors, stream: as segment_reduce. Source: torch.sparse.mm(a, b, reduce), to which prod is added.
CLUTCH_API Tensor spmm(const Csr& a, const Tensor& b, const SpmmOptions& options = {}, const Stream& stream = {});
CLUTCH_API void spmm_out(const Tensor& out, const Csr& a, const Tensor& b, const SpmmOptions& options = {},
                         const Stream& stream = {});

struct SpmmGradients {
  Tensor values, b;
};
/// Gradients of spmm; `result` is what it gave. Those of the values are made also if the matrix has none. amin and
/// amax: the first entry of a row that gives the result takes it all, as in PyTorch; prod: right for zeros, too.
/// Scratch: entries as many as the matrix has, for amin and amax also as much as the result; for prod rows of b for
///   each entry.
/// Determinism: as spmm; gradients of b are summed in the order of the entries.
/// Errors: as spmm.
CLUTCH_API SpmmGradients spmm_backward(const Tensor& grad, const Tensor& result, const Csr& a, const Tensor& b,
                                       const SpmmOptions& options = {}, const Stream& stream = {});
/// Into the caller's tensors, of these shapes and dtypes; an undefined one is not asked for. They may share memory with
/// inputs.
CLUTCH_API void spmm_backward_out(const SpmmGradients& out, const Tensor& grad, const Tensor& result, const Csr& a,
                                  const Tensor& b, const SpmmOptions& options = {}, const Stream& stream = {});

}}}  // namespace clutch::v0::sparse
