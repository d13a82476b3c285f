// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "harness/bench.hpp"

#include <optional>

namespace clutch::bench::eigen {

/// Eigen's closed formulas for n = 2 and 3 (SelfAdjointEigenSolver::computeDirect) on all cores: "eigen_omp". Nothing for other n, or in a
/// build without Eigen. They keep less accuracy than eigh's contract.
std::optional<Peer> eigh_peer(const std::shared_ptr<std::vector<std::uint8_t>>& matrices, DType dtype, std::int64_t batch, std::int64_t n, bool vectors);

}  // namespace clutch::bench::eigen
