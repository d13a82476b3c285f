// SPDX-License-Identifier: Apache-2.0
// Inference with 2:4 sparse weights: of each four numbers along a row at most two are not zero.
//
// A pruned weight takes about half the memory and half the multiplications. clutch has kernels for it on every
// device, not only where the hardware has instructions for it, and the result has the bits of the dense product
// of the pruned weight: what you validated dense is what you run sparse.
//
// For your case: prune weights that were trained, then fine-tune with apply_mask() after each step
// (sparse::linear_backward() has the gradients), for pruning alone costs accuracy. f16, bf16, f8 and i8 work alike.
#include <clutch/clutch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace {
constexpr std::int64_t kRows = 64, kIn = 256, kHidden = 512, kOut = 32;
}

int main() {
  const clutch::Device device = clutch::default_device();
  std::printf("device: %s\n", device.name().c_str());
  auto normal = [&](const clutch::Dims& sizes, std::uint64_t seed) { return clutch::randn(sizes, {.device = device, .seed = seed}); };
  const clutch::Tensor x = normal({kRows, kIn}, 1);
  const clutch::Tensor w1 = normal({kHidden, kIn}, 2), b1 = normal({kHidden}, 3);  // (out, in), as torch.nn.Linear
  const clutch::Tensor w2 = normal({kOut, kHidden}, 4), b2 = normal({kOut}, 5);

  // Once, when the model is loaded: keep the two largest of each four, and pack them with their places.
  // A matrix that is not 2:4 is never pruned in silence: require_2_4() names its first bad quad.
  const clutch::Tensor pruned1 = clutch::sparse::prune_2_4(w1), pruned2 = clutch::sparse::prune_2_4(w2);
  clutch::sparse::require_2_4(pruned1);
  const clutch::sparse::SemiStructured s1 = clutch::sparse::compress(pruned1), s2 = clutch::sparse::compress(pruned2);
  std::printf("first weight: %llu bytes dense, %llu compressed\n", static_cast<unsigned long long>(w1.nbytes()), static_cast<unsigned long long>(s1.nbytes()));

  // For each batch: two launches; bias and activation are part of them.
  const clutch::Tensor hidden = clutch::sparse::linear(x, s1, b1, {.activation = clutch::nn::Activation::relu});
  const clutch::Tensor y = clutch::sparse::linear(hidden, s2, b2);

  // The same by dense products of the pruned weights: equal bits.
  const clutch::Tensor dense = clutch::linalg::linear(clutch::linalg::linear(x, pruned1, b1, {.activation = clutch::nn::Activation::relu}), pruned2, b2);
  const std::vector<std::uint8_t> bits = y.to_bytes(), dense_bits = dense.to_bytes();

  // And by plain loops in double, with the magnitude rule written out.
  auto prune = [](std::vector<float> w) {
    for (std::size_t g = 0; g < w.size(); g += 4)
      for (int dropped = 0; dropped < 2; ++dropped) {
        std::size_t least = g;
        for (std::size_t i = g; i < g + 4; ++i)
          if (w[i] != 0 && (w[least] == 0 || std::fabs(w[i]) < std::fabs(w[least]))) least = i;
        w[least] = 0;
      }
    return w;
  };
  auto layer = [](const std::vector<double>& in, const std::vector<float>& w, const std::vector<float>& b, bool relu) {
    const std::size_t outs = b.size(), ins = w.size() / outs;
    std::vector<double> out(kRows * outs);
    for (std::size_t r = 0; r < kRows; ++r)
      for (std::size_t o = 0; o < outs; ++o) {
        double sum = static_cast<double>(b[o]);
        for (std::size_t i = 0; i < ins; ++i) sum += in[r * ins + i] * static_cast<double>(w[o * ins + i]);
        out[r * outs + o] = relu && sum < 0 ? 0 : sum;
      }
    return out;
  };
  const std::vector<float> input = x.to_host<float>(), got = y.to_host<float>();
  const std::vector<double> first = layer({input.begin(), input.end()}, prune(w1.to_host<float>()), b1.to_host<float>(), true);
  const std::vector<double> expected = layer(first, prune(w2.to_host<float>()), b2.to_host<float>(), false);
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    worst = std::max(worst, std::fabs(static_cast<double>(got[i]) - expected[i]));
    largest = std::max(largest, std::fabs(expected[i]));
  }
  std::printf("bits equal those of the dense product: %s\n", bits == dense_bits ? "yes" : "no");
  std::printf("largest error: %.1e of numbers up to %.0f\n", worst, largest);
  return bits == dense_bits && worst < 1e-5 * largest ? 0 : 1;
}
