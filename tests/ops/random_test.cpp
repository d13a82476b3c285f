// SPDX-License-Identifier: Apache-2.0
#include "cases/random.hpp"

#include "common/rounding.h"
#include "ops/random_plan.hpp"
#include "program/kernel_table.hpp"
#include "program/program.hpp"
#include "support/fixture.hpp"

#include <fmt/format.h>

namespace clutch::testing { namespace {

using cases::RandomCase;

std::string run_random(const Device& device, bool normal, DType dtype, std::int64_t n, std::uint64_t seed, double scale, double add) {
  Guarded out(device, dtype, {n});
  if (normal)
    normal_(out.view(), {.mean = add, .stddev = scale, .seed = seed});
  else
    uniform_(out.view(), {.low = add, .high = add + scale, .seed = seed});
  std::vector<std::uint8_t> want(bytes_for(dtype, static_cast<std::uint64_t>(n)));
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
    model::store_at(want.data(), i, dtype, RandomCase::value(normal, dtype, {seed, 0}, i, scale, add));
  return compare_bits(out.get(), want, dtype, !device.traits().denormals);
}

TEST(Random, PhiloxGivesThePublishedVectors) {
  // Random123's known answers: the model against them, the kernels against the model below.
  using Counter = std::array<std::uint32_t, 4>;
  EXPECT_EQ(RandomCase::philox({0, 0, 0, 0}, {0, 0}), (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(RandomCase::philox({ones, ones, ones, ones}, {ones, ones}), (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(RandomCase::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  CLUTCH_EACH_DEVICE(device) {
    // The first one on the device: seed 0 at offset 0, the top 24 bits of words 0 to 3.
    std::vector<float> u = rand({64}, {.device = device, .seed = 0}).to_host<float>();
    EXPECT_EQ(u[0], static_cast<float>(0x6627e8d5u >> 8) * 0x1p-24f);
    EXPECT_EQ(u[16], static_cast<float>(0xe169c58du >> 8) * 0x1p-24f);
    EXPECT_EQ(u[32], static_cast<float>(0xbc57ac4cu >> 8) * 0x1p-24f);
    EXPECT_EQ(u[48], static_cast<float>(0x9b00dbd8u >> 8) * 0x1p-24f);
  }
}

TEST(Random, LengthsAndDtypesMatchTheModelBitForBit) {
  CLUTCH_EACH_DEVICE(device) {
    for (bool normal : {false, true})
      for (DType dtype : RandomCase::kFloats) {
        if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
        for (std::int64_t n : RandomCase::lengths(level())) {
          ASSERT_EQ(run_random(device, normal, dtype, n, seed(), 1, 0), "") << name(dtype) << " n " << n << (normal ? " normal" : " uniform");
          if (n == 1000) {
            ASSERT_EQ(run_random(device, normal, dtype, n, ~seed(), 3.5, -2), "") << name(dtype);
          }
        }
      }
  }
}

TEST(Random, AGeneratorGoesOnWhereItWas) {
  CLUTCH_EACH_DEVICE(device) {
    Generator generator(device, 42);
    Tensor first = rand({100}, {.device = device, .generator = generator});
    EXPECT_EQ(generator.state(), (GeneratorState{42, 32})) << "two chunks of 16 blocks";
    Tensor second = randn({3}, {.dtype = DType::bf16, .device = device, .generator = generator});
    EXPECT_EQ(generator.state(), (GeneratorState{42, 48}));
    EXPECT_EQ(static_cast<double>(first.to_host<float>()[99]), RandomCase::value(false, DType::f32, {42, 0}, 99, 1, 0));
    std::uint16_t want = model::to_bf16(RandomCase::value(true, DType::bf16, {42, 32}, 2, 1, 0));
    EXPECT_EQ(second.select(0, 2).item(), static_cast<double>(model::bf16_value(want)));
    generator.set_state({42, 0});
    EXPECT_EQ(rand({100}, {.device = device, .generator = generator}).to_bytes(), first.to_bytes()) << "the same state gives the same numbers";
    EXPECT_EQ(rand({0}, {.device = device, .generator = generator}).numel(), 0);
    EXPECT_EQ(generator.state(), (GeneratorState{42, 32})) << "nothing drawn for an empty tensor";
    Generator far(device, 7);
    far.set_state({7, ~std::uint64_t{0} - 20});
    Tensor wrapped = rand({200}, {.device = device, .generator = far});
    EXPECT_EQ(static_cast<double>(wrapped.to_host<float>()[199]), RandomCase::value(false, DType::f32, {7, ~std::uint64_t{0} - 20}, 199, 1, 0));
  }
}

TEST(Random, TheDefaultGeneratorIsOnePerDevice) {
  CLUTCH_EACH_DEVICE(device) {
    manual_seed(5, device);
    Tensor a = randn({1000}, {.device = device}), b = randn({1000}, {.device = device});
    EXPECT_NE(a.to_bytes(), b.to_bytes());
    manual_seed(5, device);
    EXPECT_EQ(randn({1000}, {.device = device}).to_bytes(), a.to_bytes());
    EXPECT_EQ(default_generator(device).state().seed, 5u);
    EXPECT_EQ(default_generator(device).device(), device);
  }
}

TEST(Random, AGuardGivesTheStateBack) {
  CLUTCH_EACH_DEVICE(device) {
    const DeviceGuard current(device);
    const Generator own(device, 11), usual = default_generator(device);
    const auto draw = [&](const Generator& generator, const Stream& stream = {}) {
      return rand({100}, {.device = device, .generator = generator}, stream).to_host<float>(stream);
    };
    draw(own), draw(usual);
    const GeneratorState of_own = own.state(), of_usual = usual.state();
    const std::vector<float> next_own = draw(own), next_usual = draw(usual);
    own.set_state(of_own), usual.set_state(of_usual);
    try {
      const GeneratorGuard outer(own), inner;
      usual.manual_seed(5);
      draw(own), draw(usual);
      {
        const GeneratorGuard nested(own);
        own.manual_seed(6);
        draw(own);
      }
      EXPECT_EQ(own.state().seed, 11u);
      EXPECT_GT(own.state().offset, of_own.offset) << "the inner guard gives back what it found";
      throw std::runtime_error("leaves the scope");
    } catch (const std::runtime_error&) {
    }
    EXPECT_EQ(own.state(), of_own);
    EXPECT_EQ(usual.state(), of_usual);
    EXPECT_EQ(draw(own), next_own);
    EXPECT_EQ(draw(usual), next_usual);
    // The stream is the one of the begin, whichever is current at the end.
    const Stream stream(device), other(device);
    own.set_state(of_own, stream);
    {
      const StreamGuard first(stream);
      std::optional<GeneratorGuard> guard(std::in_place, own);
      draw(own, stream);
      const StreamGuard second(other);
      guard.reset();
    }
    EXPECT_EQ(own.state(stream), of_own);
  }
}

TEST(Random, MomentsAndBounds) {
  CLUTCH_EACH_DEVICE(device) {
    constexpr int n = 1 << 18;
    std::vector<float> u = rand({n}, {.device = device, .seed = 11}).to_host<float>(), z = randn({n}, {.device = device, .seed = 12}).to_host<float>();
    double mean = 0, square = 0, mean_z = 0, square_z = 0, fourth = 0;
    for (int i = 0; i < n; ++i) {
      double x = static_cast<double>(u[static_cast<std::size_t>(i)]), y = static_cast<double>(z[static_cast<std::size_t>(i)]);
      ASSERT_TRUE(x >= 0 && x < 1 && std::fabs(y) <= 6.77);
      mean += x, square += x * x, mean_z += y, square_z += y * y, fourth += y * y * y * y;
    }
    // Five standard errors.
    EXPECT_NEAR(mean / n, 0.5, 5 * 0.2887 / 512);
    EXPECT_NEAR(square / n, 1.0 / 3, 5 * 0.2981 / 512);
    EXPECT_NEAR(mean_z / n, 0, 5.0 / 512);
    EXPECT_NEAR(square_z / n, 1, 5 * 1.4142 / 512);
    EXPECT_NEAR(fourth / n, 3, 5 * 9.8 / 512);
  }
}

/// Largest error of the model's functions in ulp, over every `step`-th float of a range; the kernels have the model's bits.
TEST(Random, ElementaryFunctionsKeepTheirBounds) {
  const std::uint32_t step = level() == "nightly" ? 1 : 1009;
  double worst_log = 0, worst_sin = 0, worst_cos = 0;
  auto ulps = [](float got, double want) {
    int e = 0;
    std::frexp(want, &e);
    return std::fabs(static_cast<double>(got) - want) / std::ldexp(1.0, std::max(e - 24, -149));
  };
  for (std::uint32_t bits = 1; bits < 0x7F800000u; bits += step) {
    auto x = std::bit_cast<float>(bits);
    double want = std::log(static_cast<double>(x));
    if (want != 0) worst_log = std::max(worst_log, ulps(RandomCase::log(x), want));
  }
  for (std::uint32_t bits = 0x20000000u; bits <= 0x3F800000u; bits += step) {
    auto t = std::bit_cast<float>(bits);
    auto [s, c] = RandomCase::sincospi(t);
    // The argument is reduced exactly, so that long double's own rounding of pi t is no matter.
    long double r = t > 0.5f ? 1.0L - static_cast<long double>(t) : static_cast<long double>(t), q = 0.5L - static_cast<long double>(t);
    const long double pi = 3.14159265358979323846264338327950288L;
    worst_sin = std::max(worst_sin, ulps(s, static_cast<double>(std::sin(pi * r))));
    if (q != 0) worst_cos = std::max(worst_cos, ulps(c, static_cast<double>(std::sin(pi * q))));
  }
  fmt::print("ulp: log {:.3f}, sinpi {:.3f}, cospi {:.3f}\n", worst_log, worst_sin, worst_cos);
  EXPECT_LE(worst_log, 1);
  EXPECT_LE(worst_sin, 1.03);
  EXPECT_LE(worst_cos, 1.03);
  EXPECT_EQ(RandomCase::log(1.0f), 0);
  double worst64 = 0, worst_sin64 = 0;
  model::Random random(seed());
  for (int i = 0; i < 1000000; ++i) {
    double x = std::ldexp(random.uniform(1, 2), static_cast<int>(random.next() % 60) - 55), t = random.uniform(-0.25, 0.25);
    auto error = [](double got, long double want) {
      int e = 0;
      std::frexp(want, &e);
      return static_cast<double>(std::fabs(static_cast<long double>(got) - want) / std::ldexp(1.0L, e - 53));
    };
    worst64 = std::max(worst64, error(RandomCase::log(x), std::log(static_cast<long double>(x))));
    worst_sin64 = std::max(worst_sin64, error(RandomCase::sincospi(t).first, std::sin(3.14159265358979323846264338327950288L * static_cast<long double>(t))));
  }
  fmt::print("ulp in f64: log {:.3f}, sinpi {:.3f}\n", worst64, worst_sin64);
  EXPECT_LE(worst64, 1);
  EXPECT_LE(worst_sin64, 1);
}

/// The kernels' log over special values, which the drawing functions never reach.
TEST(Random, LogOfTheDeviceHasTheModelsBits) {
  CLUTCH_EACH_DEVICE(device) {
    const float inf = std::numeric_limits<float>::infinity();
    std::vector<float> x{0, -0.0f, 1, inf, -inf, -1, std::numeric_limits<float>::quiet_NaN(), 0x1p-149f, 0x1p-126f, 0x1.fffffep127f, 0.7071067f, 0.70710683f};
    for (std::uint32_t bits = 1; bits < 0x7F800000u; bits += 100003) x.push_back(std::bit_cast<float>(bits));
    auto n = static_cast<std::int64_t>(x.size());
    Tensor in = from_host(x, {n}, device), out = empty({n}, {.device = device});
    const DeviceTraits& t = device.traits();
    std::string text(detail::find_kernel_text("random", "random_normal").text);
    text +=
        "\n__kernel void log_of(__global float* y, __global const float* x, ulong n) { for (ulong i = get_global_id(0); i < n; i += get_global_size(0)) "
        "y[i] = log_f32(x[i]); }";
    Defines defines{{"WIDTH", "1"}, {"CLUTCH_OPERANDS", "1"}, {"IDX", "long"}, {"CLUTCH_TILE", "64"}};
    auto rounding = [](bool exact) { return exact ? CLUTCH_RN_NATIVE : CLUTCH_RN_BY_INTEGERS; };
    defines.set("CLUTCH_DIV_RN", rounding(t.divide_exact)).set("CLUTCH_SQRT_RN", rounding(t.sqrt_exact)).set("CLUTCH_FMA_RN", rounding(t.fma_exact));
    Argument arguments[] = {output(out), input(in), value(static_cast<std::uint64_t>(n))};
    launch({.text = text, .entry = "log_of", .defines = defines}, {.global = 64, .local = 1}, arguments);
    std::vector<float> want;
    for (float v : x) want.push_back(RandomCase::log(v));
    std::vector<std::uint8_t> raw(want.size() * 4);
    std::memcpy(raw.data(), want.data(), raw.size());
    std::vector<std::uint8_t> got = out.to_bytes();
    if (!t.denormals) {  // subnormal arguments are zeros there
      for (std::size_t i = 0; i < x.size(); ++i)
        if (std::fpclassify(x[i]) == FP_SUBNORMAL) std::memcpy(got.data() + 4 * i, raw.data() + 4 * i, 4);
    }
    EXPECT_EQ(compare_bits(got, raw, DType::f32), "");
  }
}

TEST(Random, RefusesBadInput) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor t = zeros({8}, {.device = device});
    EXPECT_EQ(code_of([&] { rand({4}, {.dtype = DType::i32, .device = device}); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { randn({4}, {.dtype = DType::f8e5m2, .device = device}); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { uniform_(t, {.low = 1, .high = 0}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { normal_(t, {.stddev = -1}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { normal_(t, {.mean = std::numeric_limits<double>::infinity()}); }), ErrorCode::invalid_argument);
    for (double number : {1e39, -1e39}) {  // finite, but not as an f32 number
      EXPECT_EQ(code_of([&] { normal_(t, {.mean = number}); }), ErrorCode::invalid_argument);
      EXPECT_EQ(code_of([&] { uniform_(t, {.low = std::min(0.0, number), .high = std::max(0.0, number)}); }), ErrorCode::invalid_argument);
    }
    EXPECT_EQ(code_of([&] { normal_(t, {.stddev = 1e39}); }), ErrorCode::invalid_argument);
    if (device.traits().fp64) {
      EXPECT_EQ(code_of([&] { normal_(zeros({4}, {.dtype = DType::f64, .device = device}), {.stddev = 1e39}); }), ErrorCode::ok);
    }
    EXPECT_EQ(code_of([&] { normal_(Tensor()); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { uniform_(zeros({1}, {.device = device}).expand({4})); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([&] { (void)Generator().state(); }), ErrorCode::invalid_argument);
    for (const Device& other : test_devices())
      if (!(other == device)) {
        EXPECT_EQ(code_of([&] { normal_(t, {.generator = Generator(other)}); }), ErrorCode::device_mismatch);
      }
  }
}

TEST(Random, SelectionByTraitsAlone) {
  DeviceTraits t{.type = DeviceType::gpu, .max_work_group = 64};
  EXPECT_EQ(detail::select(t, detail::RandomProblem{}).entry, "random_uniform");
  EXPECT_EQ(detail::select(t, detail::RandomProblem{.normal = true}).entry, "random_normal");
  EXPECT_NE(detail::select(t, detail::RandomProblem{.normal = true}).note.find("integers"), std::string::npos);
  EXPECT_EQ(code_of([&] { detail::select(t, detail::RandomProblem{.dtype = DType::f64}); }), ErrorCode::not_supported);
}

}}  // namespace clutch::testing
