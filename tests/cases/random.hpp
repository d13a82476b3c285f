// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of uniform_ and normal_: what tests and benches share. The model follows the contract in
// clutch/ops/random.hpp; its elementary functions are written again from their stated coefficients.
#include <clutch/ops/random.hpp>

#include "support/fma.hpp"
#include "support/host_model.hpp"
#include "support/op_case.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

namespace clutch::cases {

struct RandomCase {
  static constexpr std::string_view kStem = "random";
  static constexpr DType kFloats[] = {DType::f32, DType::f64, DType::f16, DType::bf16};
  static std::vector<std::int64_t> lengths(std::string_view level) {
    std::vector<std::int64_t> n{0, 1, 15, 16, 31, 33, 63, 64, 65, 1000, 8193, 20011};
    if (level == "nightly") n.push_back((1 << 22) + 5);
    return n;
  }
  /// A product and a sum for each number, and for two normal ones log, -2, sqrt, cos, sin and two products.
  static double flops(std::int64_t n, bool normal) { return static_cast<double>(n) * (2 + (normal ? 3.5 : 0)); }
  static double bytes(std::int64_t n, DType dtype) { return static_cast<double>(n) * bits(dtype) / 8; }

  /// Philox 4x32-10 of a 128-bit counter and a 64-bit key.
  static std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> k) {
    for (int round = 0; round < 10; ++round) {
      std::uint64_t p = 0xD2511F53ull * c[0], q = 0xCD9E8D57ull * c[2];
      c = {static_cast<std::uint32_t>(q >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(q), static_cast<std::uint32_t>(p >> 32) ^ c[3] ^ k[1],
           static_cast<std::uint32_t>(p)};
      k[0] += 0x9E3779B9u;
      k[1] += 0xBB67AE85u;
    }
    return c;
  }

  static float log(float x) {
    if (std::isnan(x) || x < 0) return std::numeric_limits<float>::quiet_NaN();
    if (x == 0) return -std::numeric_limits<float>::infinity();
    if (std::isinf(x)) return x;
    int e = 0;
    float m = std::frexp(x, &e) * 2;  // [1, 2)
    e -= 1;
    if (m >= std::bit_cast<float>(0x3FB504F3u)) m /= 2, e += 1;  // [sqrt(1/2), sqrt(2))
    float f = m - 1, q = 0x1.1474eap-4f;
    for (float c : {-0x1.de5862p-4f, 0x1.e6f210p-4f, -0x1.fc1cc6p-4f, 0x1.2336e6p-3f, -0x1.555c76p-3f, 0x1.99a4bep-3f, -0x1.000006p-2f, 0x1.555548p-2f, -0.5f})
      q = detail::fma(q, f, c);
    auto n = static_cast<float>(e);
    float r = detail::fma(f * f, q, n * 0x1.7f7d1cp-20f), high = n * 0x1.62e4p-1f, sum = high + f;
    return sum + ((f - (sum - high)) + r);
  }
  static double log(double x) {
    int e = 0;
    double m = std::frexp(x, &e) * 2;
    e -= 1;
    if (m >= std::bit_cast<double>(0x3FF6A09E667F3BCDull)) m /= 2, e += 1;
    double f = m - 1, s = f / (2 + f), z = s * s, p = 0x1.2f058f0886206p-3;
    for (double c : {0x1.39a1b601ecda0p-3, 0x1.74663f1c20314p-3, 0x1.c71c52084094ep-3, 0x1.24924941f2bbep-2, 0x1.999999997fd94p-2, 0x1.5555555555592p-1})
      p = detail::fma(p, z, c);
    double n = e, half = 0.5 * f * f, rest = detail::fma(s, detail::fma(z, p, half), n * 0x1.3de6af278ece6p-42) - half;
    double high = n * 0x1.62e42fefa3000p-1, sum = high + f;
    return sum + ((f - (sum - high)) + rest);
  }

  /// sin(pi t) and cos(pi t) for |t| <= 1.
  template <class R>
  static std::pair<R, R> sincospi(R t) {
    R n = std::nearbyint(2 * t), r = t - n / 2, z = r * r, s, c;
    if constexpr (sizeof(R) == 4) {
      s = 0x1.4be67ep-4f;
      for (float k : {-0x1.32cb24p-1f, 0x1.466bbcp+1f, -0x1.4abbcep+2f, -0x1.777a5cp-24f}) s = detail::fma(s, z, k);
      s = detail::fma(r, 0x1.921fb6p+1f, r * s);
      c = -0x1.a1083cp-6f;
      for (float k : {0x1.e1e85cp-3f, -0x1.55d3bcp+0f, 0x1.03c1f0p+2f, -0x1.3bd3ccp+2f, 1.0f}) c = detail::fma(c, z, k);
    } else {
      s = -0x1.6c63c5deca1c0p-16;
      for (double k : {0x1.e8eeeff585b7ap-12, -0x1.e3074b7dd7d23p-8, 0x1.50783485eea01p-4, -0x1.32d2cce62ade4p-1, 0x1.466bc6775aadbp+1, -0x1.4abbce625be53p+2,
                       0x1.1a62633145c07p-53})
        s = detail::fma(s, z, k);
      s = detail::fma(r, 0x1.921fb54442d18p+1, r * s);
      c = 0x1.1e2f85d353e0dp-18;
      for (double k : {-0x1.b6dd829c26463p-14, 0x1.f9d3856dc19e2p-10, -0x1.a6d1f29f3f483p-6, 0x1.e1f5068919cd2p-3, -0x1.55d3c7e3cbfefp+0, 0x1.03c1f081b5ac4p+2,
                       -0x1.3bd3cc9be45dep+2, 1.0})
        c = detail::fma(c, z, k);
    }
    switch (static_cast<int>(n) & 3) {
      case 0: return {s, c};
      case 1: return {c, -s};
      case 2: return {-s, -c};
      default: return {-c, s};
    }
  }

  /// Element i of uniform_ (scale: high - low, add: low) or normal_ (stddev, mean).
  static double value(bool normal, DType dtype, const GeneratorState& g, std::size_t i, double scale, double add) {
    const std::size_t chunk = dtype == DType::f64 ? 32 : 64, k = i % chunk / 16;
    std::uint64_t block = g.offset + 16 * (i / chunk) + i % 16;
    auto w = philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0},
                    {static_cast<std::uint32_t>(g.seed), static_cast<std::uint32_t>(g.seed >> 32)});
    if (dtype == DType::f64) {
      auto wide = [&](std::size_t p) { return (std::uint64_t{w[2 * p + 1]} << 32) | w[2 * p]; };
      auto unit = [&](std::size_t p) { return static_cast<double>(wide(p) >> 11) * 0x1p-53; };
      if (!normal) return detail::fma(unit(k), scale, add);
      double r = std::sqrt(-2 * log(unit(0) + 0x1p-54));
      auto [s, c] = sincospi(static_cast<double>(static_cast<std::int64_t>(wide(1)) >> 11) * 0x1p-52);
      return detail::fma(r * (k == 0 ? c : s), scale, add);
    }
    auto fscale = static_cast<float>(scale), fadd = static_cast<float>(add);
    if (!normal) {
      int keep = dtype == DType::f16 ? 11 : dtype == DType::bf16 ? 8 : 24;
      return static_cast<double>(detail::fma(std::ldexp(static_cast<float>(w[k] >> (32 - keep)), -keep), fscale, fadd));
    }
    std::size_t pair = k / 2;
    float u = static_cast<float>(w[2 * pair]) * 0x1p-32f + 0x1p-33f, r = std::sqrt(-2 * log(u));
    auto [s, c] = sincospi(static_cast<float>(static_cast<std::int32_t>(w[2 * pair + 1])) * 0x1p-31f);
    return static_cast<double>(detail::fma(r * (k % 2 == 0 ? c : s), fscale, fadd));
  }

  static std::vector<Problem> problems(std::uint64_t seed) {
    std::vector<Problem> all;
    auto add = [&](bool normal, DType dtype, const Dims& sizes, const Dims& strides, bool stateful) {
      Problem p{.name = std::string(name(dtype)) + (stateful ? " from a generator" : ""),
                .entry = normal ? "random_normal" : "random_uniform",
                .needs_fp64 = dtype == DType::f64};
      auto n = static_cast<std::size_t>(numel(sizes));
      p.output = {dtype, sizes, strides, std::vector<std::uint8_t>(bytes_for(dtype, n))};
      const GeneratorState at{seed * 0x9E3779B97F4A7C15ull, stateful ? 0xFFFFFFFBull : 0};  // the low half of the counter wraps
      const std::uint64_t drawn = 16 * ((n + 63) / 64);
      for (std::size_t i = 0; i < n; ++i)
        model::store_at(p.output.raw.data(), i, dtype, value(normal, dtype, {at.seed, at.offset + (stateful ? drawn : 0)}, i, 0.75, -0.5));
      p.run = [=](const Tensor& out, std::span<const Tensor>, const Stream& stream) {
        auto draw = [&](const Generator& generator) {
          std::optional<std::uint64_t> fixed;
          if (!stateful) fixed = at.seed;
          if (normal)
            normal_(out, {.mean = -0.5, .stddev = 0.75, .seed = fixed, .generator = generator}, stream);
          else
            uniform_(out, {.low = -0.5, .high = 0.25, .seed = fixed, .generator = generator}, stream);
        };
        if (!stateful) return draw({});
        Generator generator(out.device(), 1, stream.empty() ? current_stream(out.device()) : stream);
        generator.set_state(at, stream);
        draw(generator);
        draw(generator);  // goes on where the first ended
      };
      all.push_back(std::move(p));
    };
    for (bool normal : {false, true})
      for (DType dtype : kFloats) add(normal, dtype, {157}, {}, false);
    add(true, DType::f32, {9, 13}, {1, 9}, false);
    add(false, DType::f32, {157}, {}, true);
    add(true, DType::bf16, {157}, {}, true);
    all.push_back(all[all.size() - 2]);  // once more for the entry that keeps the state
    all.back().entry = "random_state", all.back().is_helper = true;
    return all;
  }

  static constexpr Mutation kMutations[] = {
      {"random_uniform", Edit::tail, "for (uint j = 0; j < WIDTH && i + j < n; ++j)", "for (uint j = 0; j < WIDTH && i + j + 1 < n; ++j)"},
      {"random_uniform", Edit::stride, "store(out, i + RANDOM_CHUNK_BLOCKS * k, n, SCALE_ADD(CLUTCH_U",
       "store(out, i + RANDOM_CHUNK_BLOCKS * (k / 2), n, SCALE_ADD(CLUTCH_U"},
      {"random_uniform", Edit::offset, "offset + RANDOM_CHUNK_BLOCKS * chunk + j", "offset + (RANDOM_CHUNK_BLOCKS + 1) * chunk + j"},
      {"random_uniform", Edit::arithmetic, "fma_rn(z, (VF)(scale), (VF)(add))", "(z * (VF)(scale))"},
      {"random_normal", Edit::tail, "if (i + WIDTH <= n)", "if (i + WIDTH > n) return;\n  if (i + WIDTH <= n)"},
      {"random_normal", Edit::stride, "i + RANDOM_CHUNK_BLOCKS * (2 * pair + 1)", "i + RANDOM_CHUNK_BLOCKS * (2 * pair + 1) - 1"},
      {"random_normal", Edit::offset, "out + out_offset", "out + out_offset + 4"},
      {"random_normal", Edit::arithmetic, "(f - (sum - high)) + r", "r"},
      {"random_state", Edit::tail, "if (get_global_id(0) != 0) return;", "return;"},
      {"random_state", Edit::stride, "state[RANDOM_OFFSET] = set", "state[RANDOM_SEED] = set"},
      {"random_state", Edit::offset, "state + state_offset", "state"},
      {"random_state", Edit::arithmetic, "state[RANDOM_OFFSET] + offset", "state[RANDOM_OFFSET] - offset"},
  };
};

}  // namespace clutch::cases
