// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/tensor.hpp>

#include <cstdint>
#include <string_view>

namespace clutch { inline namespace v0 { namespace linalg {

/// The triangle that is read; the other one may hold anything.
enum class Uplo : std::uint8_t { lower, upper };

/// How eigenpairs are found. A driver that refuses a problem throws an Error that names its reason.
enum class EighDriver : std::uint8_t {
  automatic,     ///< by the device's traits, dtype and n; by the batch only between drivers that give the same bits
  closed,        ///< n = 1 and 2 by formula
  jacobi_lanes,  ///< cyclic Jacobi, a matrix in each lane of a work-item's vectors; n up to 256
  jacobi_group,  ///< Jacobi in the order of a tournament, a matrix for each core or work-group; n up to 1024
  qr_lanes,      ///< Householder tridiagonalisation and implicit QR, a matrix in each lane; n up to 256
  qr_group,      ///< the same, matrices reduced one after another by a core or work-group, iterated a bundle at a time
  device_wide,   ///< the same, every stage of a matrix shared by the whole device: for a few large ones
  jacobi_items,  ///< cyclic Jacobi, a matrix in the registers of each work-item; n 2 to 8 (f64 and c64 5, c128 4)
  qr_items,  ///< QR, a matrix in the registers of 4 to 64 items, its sweeps by one; n up to 64 (f64, c64 32, c128 16)
  host,      ///< LAPACKE on the device's own memory, on CPU devices: waits for the stream, counted as a host fall-back
};
/// Returns the enumerator's name, "jacobi_lanes".
CLUTCH_API std::string_view name(EighDriver driver) noexcept;

/// The measure of eigenvalues' accuracy.
enum class EighAccuracy : std::uint8_t {
  norm,      ///< the matrix's norm
  relative,  ///< each itself, of positive definite matrices: by Jacobi alone
};

/// Choice of the free sign (phase) of each eigenvector.
enum class EighPhase : std::uint8_t {
  free,      ///< as the driver leaves it
  positive,  ///< the largest component, the first of those as large within 1e-4, is real and positive
};

struct EighOptions {
  Uplo uplo = Uplo::lower;
  EighDriver driver = EighDriver::automatic;
  EighPhase phase = EighPhase::free;
  EighAccuracy accuracy = EighAccuracy::norm;
  std::int64_t first = 0;   ///< number of the first eigenpair wanted, in ascending order
  std::int64_t count = -1;  ///< how many from there; -1: all others
  /// Largest off-diagonal element that counts as 0, relative to the matrix's Frobenius norm, or with
  /// EighAccuracy::relative against the root of its diagonal elements' product; 0: the compute type's epsilon
  double tolerance = 0;
  int max_sweeps = 0;  ///< sweeps of a matrix before it counts as not converged; 0: 30 of Jacobi, 30 n of QR
};

/// How the matrices of a batch (*) came out, i32 each.
struct EighStatus {
  Tensor info;  ///< 0: converged; k > 0: so many off-diagonal elements did not fall below the tolerance; -1: NaN or Inf
                ///< in the input
  Tensor sweeps;  ///< iterations that the matrix took
};

struct EighResult {
  Tensor w, v;
  EighStatus status;
};

/// Computes eigenvalues and eigenvectors of symmetric or Hermitian matrices, a = v diag(w) v^H, for all matrices of a
/// batch at once.
/// Shapes: a (*, n, n), any strides; w (*, k), v (*, n, k), status.info (*), status.sweeps (*), k the number of
///   eigenpairs wanted. n = 0 and empty batches give empty results. The allocating form's v has its columns contiguous
///   (strides (..., 1, n)), as PyTorch's.
/// Dtypes: f32, f64, c64, c128; w is real. f16 and bf16 are storage, computed in f32. info and sweeps are i32.
/// Results: w ascends. Columns of v are orthonormal. The real part of a complex diagonal is used.
/// Status: info is 0 where a matrix converged; k > 0: so many off-diagonal elements (of the tridiagonal form; Jacobi:
///   1) did not fall below the tolerance; -1: NaN or Inf is in the triangle that is read, and all of that matrix's
///   results are NaN. `sweeps` counts a matrix's own iterations (0 where there are none).
/// In place: no result may overlap a or another one.
/// Determinism: a matrix's bits depend neither on its neighbours nor on its place in the batch nor on the batch's size.
///   qr_group and device_wide give the same bits, and so does qr_lanes for n > 16 where it has several lanes.
/// Accuracy: |a v - v w| <= 30 n eps |a| and |v^H v - 1| <= 30 n eps (Frobenius norms, eps of the compute type),
///   |w - exact| <= 30 n eps |a|, for norms down to the smallest subnormal number; subnormal eigenvalues are rounded to
///   a subnormal number.
/// Relative accuracy: with EighAccuracy::relative, for a positive definite a = d b d with d diagonal and b's diagonal
///   1, |w - exact| <= 30 n eps cond(b) w for each eigenvalue that is a normal number and at least 2^-190 (f64 and
///   c128: 2^-1880) of the largest, however much d's elements differ in size.
/// Scratch: at most the input's size, plus what two bundles of matrices take for each core; device_wide takes twice the
///   input's size and 2 KB times n a matrix, jacobi_group about six matrices, padded to whole vectors, for each of up
///   to 16 work-groups a core. Other strides than those of a batch of contiguous matrices, and f16 and bf16, are copied
///   first.
/// Errors: invalid_shape if a is not (*, n, n) or results have other shapes; invalid_dtype; invalid_argument for a
///   range outside of 0 to n; invalid_overlap; device_mismatch; not_supported for f64 and c128 without fp64 or a driver
///   that refuses; strict where a host fall-back is forbidden.
/// Stream: never waits, but for the host driver, which waits for the stream's earlier work.
/// Source: torch.linalg.eigh of PyTorch 2.12. It differs on purpose: what does not converge is told per matrix in
///   `status.info` and throws only by require_converged(); NaN and Inf stay in their matrix.
CLUTCH_API EighResult eigh(const Tensor& a, const EighOptions& options = {}, const Stream& stream = {});
CLUTCH_API void eigh_out(const Tensor& w, const Tensor& v, const EighStatus& status, const Tensor& a,
                         const EighOptions& options = {}, const Stream& stream = {});

struct EigvalshResult {
  Tensor w;
  EighStatus status;
};

/// Computes eigenvalues alone; eigenvectors are never formed. All else as eigh, `phase` has no meaning.
CLUTCH_API EigvalshResult eigvalsh(const Tensor& a, const EighOptions& options = {}, const Stream& stream = {});
CLUTCH_API void eigvalsh_out(const Tensor& w, const EighStatus& status, const Tensor& a,
                             const EighOptions& options = {}, const Stream& stream = {});

struct EighBackwardOptions {
  double broadening = 0;  ///< in the unit of the eigenvalues; 0: none
};
struct EighGradient {
  Tensor grad_a, gauge;
};

/// Gradient of a from those of its eigenvalues and eigenvectors: v (diag(grad_w) + (m - m^H) / 2 / (w_j - w_i)) v^H
/// with m = v^H grad_v; whole, symmetric or Hermitian, whichever triangle eigh read.
/// Shapes: w and grad_w (*, n); v, grad_v and grad_a (*, n, n); gauge (*). An undefined grad_w or grad_v counts as
///   zero, the latter without the division.
/// Dtypes: v, grad_v and grad_a one of f32, f64, c64, c128; w, grad_w and gauge its real type.
/// Close eigenvalues: 1 / x becomes x / (x^2 + broadening^2) for the distance x of two eigenvalues, in their unit
///   (Lorentzian broadening): finite for repeated ones, of which it leaves out what mixes them. With 0 repeated
///   eigenvalues give Inf or NaN where grad_v mixes them, as in PyTorch.
/// Gauge: eigenvectors of complex matrices are free in their phases. `gauge` is the largest |Im (v^H grad_v)_ii|, 0 for
///   a loss that does not depend on them (and for real dtypes): see require_gauge().
/// Errors: invalid_shape, also for ranges of eigenpairs; invalid_dtype; invalid_argument for a negative broadening, or
///   one whose square over- or underflows; device_mismatch.
/// Stream: never waits.
/// Scratch: three matrices for each of a's.
/// Source: linalg_eigh_backward of PyTorch 2.12, which checks the gauge by waiting.
CLUTCH_API EighGradient eigh_backward(const Tensor& grad_w, const Tensor& grad_v, const Tensor& w, const Tensor& v,
                                      const EighBackwardOptions& options = {}, const Stream& stream = {});
/// Into the caller's tensors, of these shapes and dtypes; an undefined one is not asked for. They may share memory with
/// inputs.
CLUTCH_API void eigh_backward_out(const EighGradient& out, const Tensor& grad_w, const Tensor& grad_v, const Tensor& w,
                                  const Tensor& v, const EighBackwardOptions& options = {}, const Stream& stream = {});
/// Waits for the gauge of eigh_backward() and throws if a loss depends on the phases of eigenvectors.
/// Errors: invalid_argument names the first matrix; capturing.
CLUTCH_API void require_gauge(const Tensor& gauge, double tolerance = 1e-2, const Stream& stream = {});

/// Waits for status.info and throws if a matrix did not converge.
/// Errors: not_converged names the first one by its place in the flattened batch, and what its info says; capturing.
CLUTCH_API void require_converged(const EighStatus& status, const Stream& stream = {});

}}}  // namespace clutch::v0::linalg
