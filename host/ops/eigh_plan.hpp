// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/eigh.hpp>

#include "encode/plan.hpp"

#include <span>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

/// Classes of batch sizes, which choose between drivers with equal bits. few: too few matrices to fill the lanes of vectors; alone: one matrix.
enum class EighBatch : std::uint8_t { many, few, alone };

/// Floating-point operations of one matrix, for any driver: tridiagonalisation, and with vectors about 9 n^3 in all (Golub and Van Loan, 8.3). Complex
/// reflections take four times as many, complex rotations twice.
constexpr double eigh_flops(std::int64_t n, bool vectors, bool complex = false) {
  const double reflections = (vectors ? 8.0 : 4.0) / 3 * (complex ? 4 : 1), rotations = vectors ? 19.0 / 3 * (complex ? 2 : 1) : 0;
  return (reflections + rotations) * static_cast<double>(n * n * n);
}

/// Kernels of a driver that has several programs: eigh_qr_items reduces matrices, then come sweeps, then rotations of eigenvectors. Others have the first
/// alone.
enum class EighPart : std::uint16_t { first, sweeps, rotations };

/// Inputs of the selection of eigh and eigvalsh; also the key of their cached plans.
struct EighProblem {
  DType dtype = DType::f32;  ///< of computation: f32, f64, c64, c128
  bool vectors = true;
  std::uint16_t n = 0;    ///< eigh_size_class(): one value for all sizes with the same selection
  bool relative = false;  ///< EighAccuracy::relative
  EighBatch batch = EighBatch::many;
  EighPart part = EighPart::first;
};

/// Largest n of a matrix in private memory; larger matrices are in scratch.
inline constexpr int kEighPrivate = 32;
inline constexpr int kEighMost = 256;          ///< largest n of the drivers with a matrix in each lane
inline constexpr int kEighMostOfGroup = 1024;  ///< largest n of eigh_jacobi_group

/// The real type of a dtype's parts.
constexpr DType eigh_real_of(DType dtype) { return dtype == DType::c64 ? DType::f32 : dtype == DType::c128 ? DType::f64 : dtype; }

/// n itself if programs are built for this size, else the largest n of its class.
std::uint16_t eigh_size_class(std::int64_t n);

/// Pure function. The entry "eigh_host" names the host driver, which has no kernel. Errors: not_supported, invalid_argument.
KernelPlan select(const DeviceTraits& traits, const EighProblem& problem, std::string_view forced = {});

/// Errors: invalid_shape, invalid_dtype.
void check_eigh_tensor(const Tensor& t, std::string_view what, const Dims& sizes, DType dtype, const char* op);

/// SIMD lanes of a work-item's vectors: number of matrices that it computes at once.
int eigh_lanes(const DeviceTraits& traits, DType dtype);

/// Number of bundles whose matrices a work-item of a driver with lanes keeps at a time. eigh_qr_lanes needs a matrix only until it is tridiagonal.
constexpr int eigh_matrices(std::string_view entry, int bundles) { return entry == "eigh_qr_lanes" ? 1 : bundles; }

/// The class of a batch size. `few` ends where one matrix after another is no longer faster.
EighBatch eigh_batch(const DeviceTraits& traits, DType dtype, std::int64_t batch);

/// Contiguous matrices in the layout of the drivers; a and v have the compute type.
struct EighCall {
  Tensor w, v, info, sweeps, a;  ///< v undefined: eigenvalues alone
  std::int64_t n = 0, batch = 0;
  std::int64_t stride = 0;  ///< elements from a matrix to the next
  bool transposed = false;
  std::int64_t first = 0, pairs = 0;
  linalg::EighOptions options;
};

/// Rows that a matrix of eigh_qr_items has at most in the program for n.
int eigh_items_cap(std::int64_t n);

/// The kernels of a driver: that of EighPart::first, and of eigh_qr_items those of the other parts.
struct EighKernels {
  const BuiltPlan *first, *sweeps = nullptr, *rotations = nullptr;
};

/// Runs one of our drivers. Never waits.
void eigh_on_device(const EighCall& call, const EighKernels& kernels, const DeviceTraits& traits, const Stream& stream, const char* op);
/// Runs LAPACKE on mapped memory. Errors: strict.
void eigh_on_host(const EighCall& call, std::string_view plan, const Stream& stream, const char* op);
/// Reason why there is no host driver; empty if there is one.
std::string eigh_host_refuses(const DeviceTraits& traits);

}}}  // namespace clutch::v0::detail
