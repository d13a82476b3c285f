// SPDX-License-Identifier: Apache-2.0
// Attention with a mask and a score of your own, forward and backward.
//
// The mask: each query sees the 64 keys up to its own, and the first 4 keys ("sinks") whatever their distance.
// The score: a penalty by distance with a slope for each head (ALiBi). Both are C++ lambdas over traced indices;
// clutch prints them into its attention kernel, so no (L, L) matrix of masks or scores is ever in memory.
//
// For your case: write `mask` and `score` anew. In the lambdas use &, | and clutch::select instead of &&, || and
// ?:, floor_div and floor_mod instead of / and % on indices. captured() brings a tensor into a lambda.
#include <clutch/clutch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace {
constexpr std::int64_t kHeads = 4, kLength = 512, kSize = 32, kWindow = 64, kSinks = 4;
}

int main() {
  const clutch::Device device = clutch::default_device();
  std::printf("device: %s\n", device.name().c_str());
  using clutch::attention::Index, clutch::attention::Score;
  auto normal = [&](std::uint64_t seed) { return clutch::randn({1, kHeads, kLength, kSize}, {.device = device, .seed = seed}); };
  const clutch::Tensor q = normal(1), k = normal(2), v = normal(3), grad_out = normal(4);  // (batch, heads, length, size)
  const std::vector<float> slope = {0.5f, 0.25f, 0.125f, 0.0625f};

  // Arguments: batch, head, query, key. Numbers like kWindow are baked into the kernel; clutch::param(x) makes
  // one an argument, so that another number builds nothing.
  auto mask = [](Index, Index, Index query, Index key) { return (query >= key) & ((query - key < kWindow) | (key < kSinks)); };
  auto slopes = clutch::captured(clutch::from_host(slope, {kHeads}, device));
  auto score = [=](Score s, Index, Index head, Index query, Index key) { return s + slopes[head] * (key - query); };

  // The block mask finds, on the device, which blocks of keys a block of queries needs; the others cost nothing.
  // Make it once and use it for every layer and step.
  const auto blocks = clutch::attention::create_block_mask(mask, {.q_len = kLength, .kv_len = kLength, .block = {.q = 64, .kv = 64}, .device = device});
  std::printf("%.0f %% of the scores lie in blocks that are left out\n", blocks.sparsity());

  // return_lse: the logarithms of the rows' sums, which backward needs.
  const auto result = clutch::attention::flex(q, k, v, {.score_mod = score, .block_mask = blocks, .return_lse = true});
  const auto grad = clutch::attention::flex_backward(grad_out, q, k, v, result, {.score_mod = score, .block_mask = blocks});

  // Check against plain loops in double: results, and the gradient of v, which is sum over queries of weight * grad_out.
  const std::vector<float> hq = q.to_host<float>(), hk = k.to_host<float>(), hv = v.to_host<float>(), hg = grad_out.to_host<float>();
  const std::vector<float> out = result.out.to_host<float>(), grad_v = grad.v.to_host<float>();
  double worst = 0, worst_grad = 0;
  for (std::size_t h = 0; h < kHeads; ++h) {
    const std::size_t base = h * kLength * kSize;
    std::vector<double> expected_grad(kLength * kSize);
    for (std::int64_t i = 0; i < kLength; ++i) {
      std::vector<double> weight(kLength, 0.0);
      const std::size_t qi = base + static_cast<std::size_t>(i) * kSize;
      double sum = 0;
      for (std::int64_t j = 0; j <= i; ++j) {
        if (i - j >= kWindow && j >= kSinks) continue;
        double dot = 0;
        for (std::size_t e = 0; e < kSize; ++e)
          dot += static_cast<double>(hq[qi + e]) * static_cast<double>(hk[base + static_cast<std::size_t>(j) * kSize + e]);
        const double s = dot / std::sqrt(static_cast<double>(kSize)) + static_cast<double>(slope[h]) * static_cast<double>(j - i);
        sum += weight[static_cast<std::size_t>(j)] = std::exp(s);  // small enough here; flex() subtracts the row's largest score
      }
      for (std::size_t e = 0; e < kSize; ++e) {
        double expected = 0;
        for (std::size_t j = 0; j <= static_cast<std::size_t>(i); ++j) {
          expected += weight[j] / sum * static_cast<double>(hv[base + j * kSize + e]);
          expected_grad[j * kSize + e] += weight[j] / sum * static_cast<double>(hg[qi + e]);
        }
        worst = std::max(worst, std::fabs(static_cast<double>(out[qi + e]) - expected));
      }
    }
    for (std::size_t i = 0; i < expected_grad.size(); ++i)
      worst_grad = std::max(worst_grad, std::fabs(static_cast<double>(grad_v[base + i]) - expected_grad[i]));
  }
  std::printf("largest error of the results %.1e, of the gradient of v %.1e\n", worst, worst_grad);
  return worst < 1e-5 && worst_grad < 1e-4 ? 0 : 1;
}
