// SPDX-License-Identifier: Apache-2.0
#include "peers/eigen.hpp"

#include <fmt/format.h>

#ifdef CLUTCH_HAS_EIGEN
#include <omp.h>
#include <Eigen/Core>
#include <Eigen/Eigenvalues>
#endif

namespace clutch::bench::eigen {

#ifdef CLUTCH_HAS_EIGEN
namespace {

template <class T, int kSize>
Peer peer(const std::shared_ptr<std::vector<std::uint8_t>>& matrices, std::int64_t batch, bool vectors) {
  using Matrix = Eigen::Matrix<T, kSize, kSize>;
  auto results = std::make_shared<std::vector<T>>(static_cast<std::size_t>(batch) * (kSize + kSize * kSize));
  return {"eigen_omp (computeDirect)", [=](int reps) {
            const T* from = reinterpret_cast<const T*>(matrices->data());
            T* to = results->data();
            for (int i = 0; i < reps; ++i) {
#pragma omp parallel for schedule(static)
              for (std::int64_t m = 0; m < batch; ++m) {
                Eigen::SelfAdjointEigenSolver<Matrix> solver;
                solver.computeDirect(Eigen::Map<const Matrix>(from + m * kSize * kSize), vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
                Eigen::Map<Eigen::Matrix<T, kSize, 1>>(to + m * kSize) = solver.eigenvalues();
                if (vectors) Eigen::Map<Matrix>(to + batch * kSize + m * kSize * kSize) = solver.eigenvectors();
              }
            }
          }};
}

}  // namespace

std::optional<Peer> eigh_peer(const std::shared_ptr<std::vector<std::uint8_t>>& matrices, DType dtype, std::int64_t batch, std::int64_t n, bool vectors) {
  if (n == 2) return dtype == DType::f64 ? peer<double, 2>(matrices, batch, vectors) : peer<float, 2>(matrices, batch, vectors);
  if (n == 3) return dtype == DType::f64 ? peer<double, 3>(matrices, batch, vectors) : peer<float, 3>(matrices, batch, vectors);
  return std::nullopt;
}

std::optional<Peer> gemm_f32(float* c, const float* a, const float* b, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch) {
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Peer{fmt::format("eigen_omp, {} threads", omp_get_max_threads()), [=](int reps) {
                for (int r = 0; r < reps; ++r) {
#pragma omp parallel for schedule(static) if (batch > 1)
                  for (std::int64_t i = 0; i < batch; ++i)
                    Eigen::Map<Matrix>(c + i * m * n, m, n).noalias() =
                        Eigen::Map<const Matrix>(a + i * m * k, m, k) * Eigen::Map<const Matrix>(b + i * k * n, k, n);
                }
              }};
}
#else
std::optional<Peer> eigh_peer(const std::shared_ptr<std::vector<std::uint8_t>>&, DType, std::int64_t, std::int64_t, bool) { return std::nullopt; }
std::optional<Peer> gemm_f32(float*, const float*, const float*, std::int64_t, std::int64_t, std::int64_t, std::int64_t) { return std::nullopt; }
#endif

}  // namespace clutch::bench::eigen
