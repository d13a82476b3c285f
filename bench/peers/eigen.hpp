// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "harness/bench.hpp"

#include <optional>

namespace clutch::bench::eigen {

/// Eigen's closed formulas for n = 2 and 3 (SelfAdjointEigenSolver::computeDirect) on all cores: "eigen_omp". Nothing for other n, or in a
/// build without Eigen. They keep less accuracy than eigh's contract.
std::optional<Peer> eigh_peer(const std::shared_ptr<std::vector<std::uint8_t>>& matrices, DType dtype, std::int64_t batch, std::int64_t n, bool vectors);

/// Its product of row-major matrices, batches over all cores. Nothing in a build without Eigen.
std::optional<Peer> gemm_f32(float* c, const float* a, const float* b, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch);

}  // namespace clutch::bench::eigen
