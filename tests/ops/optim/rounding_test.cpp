// SPDX-License-Identifier: Apache-2.0
#include "cases/optim.hpp"

#include "support/compare.hpp"
#include "support/fixture.hpp"

#include <clutch/clutch.hpp>

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace clutch::testing { namespace {

using cases::OptimCase;
using Kind = cases::OptimModel::Kind;
using optim::Numerics;
using optim::StateType;

TEST(OptimRounding, AllKindsAreTheModelBitForBit) {
  using optim::Rounding;
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::f32, DType::f16, DType::bf16})
      for (StateType type : {StateType::same, StateType::f32, StateType::bf16})
        for (bool master : {false, true})
          for (Rounding rounding : {Rounding::nearest, Rounding::stochastic, Rounding::kahan}) {
            DType state = type == StateType::same ? dtype : type == StateType::f32 ? DType::f32 : DType::bf16;
            if (master && dtype == DType::f32) continue;
            if (rounding == Rounding::kahan && (dtype != DType::bf16 || master)) continue;
            if (rounding == Rounding::stochastic && dtype != DType::bf16 && state != DType::bf16) continue;
            cases::PreciseStep want{.model = {.kind = Kind::adam, .lr = 0.02, .weight_decay = 0.05, .decoupled = true},
                                    .dtype = dtype,
                                    .precision = {.state = type, .master = master, .rounding = rounding, .seed = 0x123456789ABCDEFull}};
            want.model.numerics = device.traits().fp64 ? Numerics::source : Numerics::f32;
            struct Param {
              std::vector<float> p, g, m, v, last;
            };
            std::vector<Param> all;
            std::string what = fmt::format("{} states {} master {} rounding {}", name(dtype), name(state), master, static_cast<int>(rounding));
            std::vector<Tensor> params, grads;
            for (std::int64_t n : {100, 1, 37}) {
              auto size = static_cast<std::size_t>(n);
              std::vector<std::uint8_t> start = model::make_values(size, dtype, seed(), false), raw = model::make_values(size, dtype, seed() + 1, false);
              params.push_back(from_bytes(start.data(), start.size(), {n}, {.dtype = dtype, .device = device}));
              grads.push_back(from_bytes(raw.data(), raw.size(), {n}, {.dtype = dtype, .device = device}));
              std::vector<float> zeros(size), p(size), g(size);
              for (std::size_t i = 0; i < size; ++i)
                p[i] = static_cast<float>(model::value_at(start.data(), i, dtype)), g[i] = static_cast<float>(model::value_at(raw.data(), i, dtype));
              all.push_back({p, g, zeros, zeros, master ? p : zeros});
            }
            auto optimizer = OptimCase::make(want.model, params, want.precision);
            for (int t = 1; t <= 20; ++t) {
              optimizer->step(grads);
              for (std::size_t k = 0; k < all.size(); ++k)
                for (std::size_t i = 0; i < all[k].p.size(); ++i) {
                  Param& a = all[k];
                  float s[3] = {a.m[i], a.v[i], 0};
                  want.step(t, static_cast<std::uint32_t>(k), i, a.g[i], a.p[i], s, a.last[i]);
                  a.m[i] = s[0], a.v[i] = s[1];
                }
            }
            auto kept = optimizer->state();
            auto same = [&](const Tensor& got, const std::vector<float>& values) {
              std::vector<std::uint8_t> raw(bytes_for(got.dtype(), values.size()));
              for (std::size_t i = 0; i < values.size(); ++i) model::store_at(raw.data(), i, got.dtype(), static_cast<double>(values[i]));
              return compare_bits(got.to_bytes(), raw, got.dtype(), !device.traits().denormals);
            };
            for (std::size_t k = 0; k < params.size(); ++k) {
              const Param& a = all[k];
              EXPECT_EQ(same(params[k], a.p), "") << what;
              EXPECT_EQ(same(kept.at(fmt::format("{}.exp_avg", k)), a.m), "") << what;
              EXPECT_EQ(same(kept.at(fmt::format("{}.exp_avg_sq", k)), a.v), "") << what;
              EXPECT_EQ(kept.at(fmt::format("{}.exp_avg", k)).dtype(), state) << what;
              if (master) {
                EXPECT_EQ(same(kept.at(fmt::format("{}.master", k)), a.last), "") << what;
              }
              if (rounding == Rounding::kahan) {
                EXPECT_EQ(same(kept.at(fmt::format("{}.compensation", k)), a.last), "") << what;
              }
            }
            EXPECT_EQ(kept.contains("0.number"), rounding == Rounding::stochastic) << what;
          }
  }
}

/// What the other roundings are for: steps far smaller than a bf16 unit add up.
TEST(OptimRounding, SmallStepsAreNotLost) {
  using optim::Rounding;
  CLUTCH_EACH_DEVICE(device) {
    constexpr std::int64_t kCount = 20000;
    constexpr int kSteps = 128;  // of a 16th of a unit each: 8 units of 2^-7 at 1
    auto mean_after = [&](Rounding rounding) {
      Tensor p = full({kCount}, 1, {.dtype = DType::bf16, .device = device}), g = full({kCount}, -1, {.dtype = DType::bf16, .device = device});
      optim::SGD sgd({p}, {.lr = 0x1p-11, .precision = {.rounding = rounding, .seed = 5}});
      for (int t = 0; t < kSteps; ++t) sgd.step(std::span(&g, 1));
      return mean(p.to(DType::f32)).item();
    };
    EXPECT_EQ(mean_after(Rounding::nearest), 1);
    EXPECT_EQ(mean_after(Rounding::kahan), 1.0625);
    // Each element's sum of rounding errors has a variance below steps * (2^-7)^2 * (1/16) * (15/16).
    double deviation = std::sqrt(kSteps * 0x1p-14 * 15 / 256 / kCount);
    EXPECT_NEAR(mean_after(Rounding::stochastic), 1.0625, 5 * deviation);
    // Infinities, NaN and overflow.
    const float inf = std::numeric_limits<float>::infinity();
    for (Rounding rounding : {Rounding::stochastic, Rounding::kahan}) {
      std::vector<float> values(70, 1.0f);
      values[0] = values[66] = inf, values[1] = values[67] = -inf, values[2] = values[68] = std::numeric_limits<float>::quiet_NaN();
      values[3] = values[69] = 0x1.FEp127f;
      Tensor p = from_host(values, {70}, device).to(DType::bf16), g = full({70}, -1, {.dtype = DType::bf16, .device = device});
      optim::SGD sgd({p}, {.lr = 0x1p119, .precision = {.rounding = rounding}});
      for (int t = 0; t < 3; ++t) sgd.step(std::span(&g, 1));
      std::vector<float> got = p.to(DType::f32).to_host<float>();
      for (std::size_t at : {0u, 66u}) {
        EXPECT_EQ(got[at], inf) << at;
        EXPECT_EQ(got[at + 1], -inf) << at;
        EXPECT_TRUE(std::isnan(got[at + 2])) << at;
        EXPECT_GE(got[at + 3], 0x1.FEp127f) << at;
      }
    }
  }
}

TEST(OptimRounding, RandomBitsDependOnTheNumberInTheState) {
  CLUTCH_EACH_DEVICE(device) {
    optim::Precision precision{.rounding = optim::Rounding::stochastic, .seed = 3};
    Tensor start = randn({3000}, {.dtype = DType::bf16, .device = device, .seed = 1}), g = randn({3000}, {.dtype = DType::bf16, .device = device, .seed = 2});
    auto two = [&](bool swapped, bool loaded, std::uint64_t seed) {
      Tensor a = start.clone(), b = start.clone();
      precision.seed = seed;
      optim::AdamW adamw({a, b}, {.precision = precision});
      if (loaded) {
        auto state = adamw.state();
        std::map<std::string, Tensor> given;
        for (const auto& [name, tensor] : state) given[name] = tensor.clone();
        if (swapped) std::swap(given.at("0.number"), given.at("1.number"));
        adamw.load_state(given);
      }
      adamw.step(std::vector<Tensor>{g, g});
      return std::pair(a.to_bytes(), b.to_bytes());
    };
    auto plain = two(false, false, 3), swapped = two(true, true, 3);
    EXPECT_NE(plain.first, plain.second) << "each parameter has bits of its own";
    EXPECT_EQ(swapped, std::pair(plain.second, plain.first));
    EXPECT_EQ(two(false, true, 3), plain);
    EXPECT_NE(two(false, false, 4).first, plain.first) << "another seed";
  }
}

}}  // namespace clutch::testing
