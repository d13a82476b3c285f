// SPDX-License-Identifier: Apache-2.0
// Principal components of many small data sets at once.
//
// Each of 512 clouds has 200 points in 8 dimensions. Its principal components are the eigenvectors of
// its covariance matrix. A library call for each matrix would be slow: linalg::eigh takes all of them in
// one call, and on a GPU no number leaves the device until the end.
//
// For your case: replace `points` by your data, (data sets, points, dimensions). If the data sets have
// different numbers of points, weight the points in the mean and the product.
#include <clutch/clutch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace {
constexpr std::int64_t kClouds = 512, kPoints = 200, kSize = 8, kKept = 2;
}

int main() {
  const clutch::Device device = clutch::default_device();  // CLUTCH_DEVICE selects another one
  std::printf("device: %s\n", device.name().c_str());

  // The data: a line through each cloud in a direction of its own, and noise of a tenth of its length.
  const clutch::Tensor along = clutch::randn({kClouds, kPoints, 1}, {.device = device, .seed = 1});
  const clutch::Tensor direction = clutch::randn({kClouds, 1, kSize}, {.device = device, .seed = 2});
  const clutch::Tensor noise = clutch::randn({kClouds, kPoints, kSize}, {.device = device, .seed = 3});
  // A lambda over tensors is one kernel; the tensors broadcast as in PyTorch.
  const clutch::Tensor points = clutch::map([](clutch::Expr t, clutch::Expr d, clutch::Expr n) { return 5.0f + t * d + 0.1f * n; }, along, direction, noise);

  // Covariance: centred^T centred / (points - 1). mT() is a view, so nothing is copied for it.
  const clutch::Tensor centred = points - clutch::mean(points, {.dims = {1}, .keepdim = true});
  const clutch::Tensor covariance = clutch::linalg::matmul(centred.mT(), centred, {.alpha = 1.0 / (kPoints - 1)});

  // Eigenvalues ascend, so the last ones are the largest. Only these pairs are computed. The sign of an
  // eigenvector is free; EighPhase::positive fixes it, so that results compare between devices.
  const clutch::linalg::EighResult eigen =
      clutch::linalg::eigh(covariance, {.phase = clutch::linalg::EighPhase::positive, .first = kSize - kKept, .count = kKept});
  clutch::linalg::require_converged(eigen.status);  // waits; throws clutch::Error naming the first matrix that failed

  // Coordinates of the points along the components, (clouds, points, kept).
  const clutch::Tensor scores = clutch::linalg::matmul(centred, eigen.v);

  // Check against plain loops. The variance of the scores along a component is its eigenvalue, scores
  // along two components are uncorrelated, and the last component has the direction of the line.
  const std::vector<float> w = eigen.w.to_host<float>(), v = eigen.v.contiguous().to_host<float>();
  const std::vector<float> s = scores.to_host<float>(), d = direction.to_host<float>();
  double worst = 0, least_cosine = 1;
  for (std::size_t c = 0; c < kClouds; ++c) {
    double sum[kKept][kKept] = {};
    for (std::size_t p = 0; p < kPoints; ++p)
      for (std::size_t i = 0; i < kKept; ++i)
        for (std::size_t j = 0; j < kKept; ++j)
          sum[i][j] += static_cast<double>(s[(c * kPoints + p) * kKept + i]) * static_cast<double>(s[(c * kPoints + p) * kKept + j]);
    const double largest = static_cast<double>(w[c * kKept + kKept - 1]);
    for (std::size_t i = 0; i < kKept; ++i)
      for (std::size_t j = 0; j < kKept; ++j) {
        const double expected = i == j ? static_cast<double>(w[c * kKept + i]) : 0;
        worst = std::max(worst, std::fabs(sum[i][j] / (kPoints - 1) - expected) / largest);
      }
    double dot = 0, length = 0;
    for (std::size_t k = 0; k < kSize; ++k) {
      dot += static_cast<double>(d[c * kSize + k]) * static_cast<double>(v[(c * kSize + k) * kKept + kKept - 1]);
      length += static_cast<double>(d[c * kSize + k]) * static_cast<double>(d[c * kSize + k]);
    }
    least_cosine = std::min(least_cosine, std::fabs(dot) / std::sqrt(length));
  }
  std::printf("first cloud: variances %g and %g along its two components\n", static_cast<double>(w[1]), static_cast<double>(w[0]));
  std::printf("covariances of scores differ from eigenvalues by at most %.1e of the largest\n", worst);
  std::printf("cosine of the first component and the line: at least %.4f\n", least_cosine);
  return worst < 1e-5 && least_cosine > 0.98 ? 0 : 1;
}
