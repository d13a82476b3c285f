// SPDX-License-Identifier: Apache-2.0
// Attention with a score and a mask of one's own.
#include <clutch/clutch.hpp>

#include <cmath>
#include <cstdio>

int main() {
  const clutch::Device device = clutch::default_device();
  clutch::Tensor q = clutch::randn({1, 8, 512, 64}, {.device = device, .seed = 1}), k = clutch::randn({1, 8, 512, 64}, {.device = device, .seed = 2}),
                 v = clutch::randn({1, 8, 512, 64}, {.device = device, .seed = 3}), grad_out = clutch::randn({1, 8, 512, 64}, {.device = device, .seed = 4});
  using clutch::attention::Index;
  using clutch::attention::Score;
  clutch::Tensor slopes = clutch::from_host<float>({0.5f, 0.25f, 0.125f, 0.0625f, 1.f, 2.f, 3.f, 4.f}, device);
  auto bias = clutch::captured(slopes);
  auto alibi = [=](Score s, Index b, Index h, Index q, Index kv) { return s + bias[h] * (kv - q); };
  auto window = [](Index b, Index h, Index q, Index kv) { return (q >= kv) & (q - kv < 256); };
  auto mask = clutch::attention::create_block_mask(window, {.q_len = 512, .kv_len = 512, .device = device});
  auto out = clutch::attention::flex(q, k, v, {.score_mod = alibi, .block_mask = mask, .return_lse = true});
  auto grad = clutch::attention::flex_backward(grad_out, q, k, v, out, {.score_mod = alibi, .block_mask = mask});

  // The first query sees the first key alone.
  const std::vector<float> first = out.out.select(2, 0).to_host<float>(), value = v.select(2, 0).to_host<float>();
  for (std::size_t i = 0; i < first.size(); ++i)
    if (std::fabs(first[i] - value[i]) > 1e-6f) return std::puts("the first row is not the first value"), 1;
  // A query's weights sum to 1: the gradients of all values add up to those of all results.
  const double sum_v = clutch::sum(grad.v).item(), sum_out = clutch::sum(grad_out).item();
  if (std::fabs(sum_v - sum_out) > 1e-2) return std::puts("weights do not sum to 1"), 1;
  return 0;
}
