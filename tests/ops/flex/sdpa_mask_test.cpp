// SPDX-License-Identifier: Apache-2.0
// The gradient of sdpa's attn_mask, by a model in f64 on the host.
#include "ops/flex/given.hpp"

#include <algorithm>
#include <cmath>

namespace clutch::testing { namespace {

TEST(SdpaMask, HasAGradient) {
  CLUTCH_EACH_DEVICE(device) {
    const Dims scores{2, 3, 9, 20};
    auto make = [&](const Dims& sizes, std::uint64_t number) { return randn(sizes, {.device = device, .seed = number}); };
    const Tensor q = make({2, 3, 9, 16}, 1), k = make({2, 3, 20, 16}, 2), v = make({2, 3, 20, 8}, 3), g = make({2, 3, 9, 8}, 4);
    for (const Dims& shape : {Dims{2, 3, 9, 20}, Dims{9, 20}, Dims{3, 1, 20}, Dims{2, 1, 9, 1}, Dims{20}, Dims{1, 1, 1, 1}})
      for (attention::SdpaBackend backend : {attention::SdpaBackend::flash, attention::SdpaBackend::math}) {
        const attention::SdpaBackends only{backend};
        const Tensor mask = make(shape, 5);
        const attention::SdpaOptions options{.attn_mask = mask};
        const attention::SdpaResult r = attention::sdpa(q, k, v, options);
        const attention::FlexGradients made = attention::sdpa_backward(g, q, k, v, r, options, {.captured_gradients = true});
        ASSERT_EQ(made.captured.size(), 1u);
        ASSERT_EQ(made.captured[0].sizes(), shape);
        // In f64 on the host: p (g v^T - sum of p g v^T), summed over what the mask repeats.
        const std::vector<double> hq = values(q), hk = values(k), hv = values(v), hg = values(g), hm = values(mask.expand(scores).contiguous());
        std::vector<double> want(static_cast<std::size_t>(mask.numel())), size(want.size());
        Dims padded = Dims::filled(4 - shape.rank(), 1);
        for (std::int64_t s : shape) padded.push_back(s);
        for (std::size_t line = 0; line < 2 * 3 * 9; ++line) {
          const std::size_t head = line / 9;
          std::vector<double> p(20), dp(20);
          double largest = -1e300, sum = 0, dot = 0;
          for (std::size_t j = 0; j < 20; ++j) {
            for (std::size_t e = 0; e < 16; ++e) p[j] += hq[line * 16 + e] * hk[(head * 20 + j) * 16 + e] / 4;
            for (std::size_t e = 0; e < 8; ++e) dp[j] += hg[line * 8 + e] * hv[(head * 20 + j) * 8 + e];
            p[j] += hm[line * 20 + j];
            largest = std::max(largest, p[j]);
          }
          for (double& x : p) x = std::exp(x - largest), sum += x;
          for (std::size_t j = 0; j < 20; ++j) p[j] /= sum, dot += p[j] * dp[j];
          for (std::size_t j = 0; j < 20; ++j) {
            const std::size_t at[] = {head / 3, head % 3, line % 9, j};
            std::size_t place = 0;
            for (int d = 0; d < 4; ++d) place = place * static_cast<std::size_t>(padded[d]) + (padded[d] == 1 ? 0 : at[d]);
            want[place] += p[j] * (dp[j] - dot), size[place] += p[j] * (std::fabs(dp[j]) + std::fabs(dot));
          }
        }
        const std::vector<double> got = values(made.captured[0]);
        for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-5 * size[i] + 1e-6) << shape << " element " << i;
      }
    // A mask of booleans has none; nor has one that is not asked for.
    const attention::SdpaOptions boolean{.attn_mask = full({9, 20}, 1, {.dtype = DType::boolean, .device = device})}, numbers{.attn_mask = make({9, 20}, 5)};
    EXPECT_TRUE(attention::sdpa_backward(g, q, k, v, attention::sdpa(q, k, v, boolean), boolean, {.captured_gradients = true}).captured.empty());
    EXPECT_TRUE(attention::sdpa_backward(g, q, k, v, attention::sdpa(q, k, v, numbers), numbers).captured.empty());
    // Without heads.
    const Tensor q2 = q.select(0, 0).select(0, 0), k2 = k.select(0, 0).select(0, 0), v2 = v.select(0, 0).select(0, 0), g2 = g.select(0, 0).select(0, 0);
    const attention::SdpaResult r2 = attention::sdpa(q2, k2, v2, numbers);
    EXPECT_EQ(attention::sdpa_backward(g2, q2, k2, v2, r2, numbers, {.captured_gradients = true}).captured.at(0).sizes(), (Dims{9, 20}));
  }
}

}}  // namespace clutch::testing
