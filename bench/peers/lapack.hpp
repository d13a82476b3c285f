// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "harness/bench.hpp"

#include <complex>

namespace clutch::bench::lapack {

/// The batch matrix after matrix by the best of syev, syevd and syevr for that n (tried once): column-major, work space allocated before, no
/// NaN check. All cores: OpenMP over matrices with OpenBLAS single-threaded inside ("lapacke_omp"), else one loop with OpenBLAS's own
/// threads ("lapacke_loop").
Peer eigh_peer(const std::shared_ptr<std::vector<std::uint8_t>>& matrices, DType dtype, std::int64_t batch, std::int64_t n, bool vectors, bool all_cores);

/// Ascending, in double.
std::vector<double> eigenvalues(std::vector<std::complex<double>> a, std::int64_t n);

}  // namespace clutch::bench::lapack
