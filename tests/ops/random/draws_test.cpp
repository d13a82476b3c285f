// SPDX-License-Identifier: Apache-2.0
// random_, bernoulli_, exponential_ and randperm against models of their own, bit for bit or within their bounds, and their distributions.
#include "cases/random.hpp"

#include "graph/backends.hpp"
#include "support/fixture.hpp"

#include <clutch/clutch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace clutch::testing { namespace {

__extension__ typedef unsigned __int128 Wide;

/// All dtypes; by day those whose stores differ most, as each is a program to build.
std::vector<DType> whole_dtypes() {
  if (level() == "smoke") return {DType::boolean, DType::u8, DType::i64, DType::f32, DType::bf16};
  return {DType::boolean, DType::i8,  DType::u8,   DType::i16, DType::i32, DType::i64, DType::f32,
          DType::f64,     DType::f16, DType::bf16, DType::u16, DType::u32, DType::u64};
}

/// 64 random bits of the first n elements of a seed: the words that numbers of f64 take, from those of rand().
std::vector<std::uint64_t> bits_of(const Device& device, std::int64_t n, std::uint64_t seed_of_call) {
  const std::vector<std::int64_t> raw = map([&](Expr) { return random_bits(seed_of_call); }, {zeros({n}, {.device = device})}).to_host<std::int64_t>();
  std::vector<std::uint64_t> all;
  for (std::int64_t b : raw) all.push_back(static_cast<std::uint64_t>(b));
  return all;
}

TEST(Draws, BitsAreTheWordsOfF64) {
  CLUTCH_EACH_DEVICE(device) {
    if (skip_without(device, "fp64", device.traits().fp64)) continue;
    const std::vector<std::uint64_t> bits = bits_of(device, 777, 5);
    const std::vector<double> want = rand({777}, {.dtype = DType::f64, .device = device, .seed = 5}).to_host<double>();
    for (std::size_t i = 0; i < bits.size(); ++i) ASSERT_EQ(static_cast<double>(bits[i] >> 11) * 0x1p-53, want[i]) << i;
  }
}

TEST(Draws, WholeNumbersAreTheFormula) {
  struct Bounds {
    std::int64_t from, to;
  };
  CLUTCH_EACH_DEVICE(device) {
    const std::vector<std::uint64_t> bits = bits_of(device, 3000, 11);
    for (Bounds b : {Bounds{0, 10}, Bounds{-7, -6}, Bounds{0, std::int64_t{1} << 31}, Bounds{-5, (std::int64_t{1} << 31) + 77},
                     Bounds{INT64_MIN / 2, INT64_MAX / 2}, Bounds{INT64_MIN, -2}, Bounds{1, INT64_MAX}}) {
      const Tensor t = empty({3000}, {.dtype = DType::i64, .device = device});
      random_(t, b.from, b.to, {.seed = 11});
      const std::vector<std::int64_t> got = t.to_host<std::int64_t>();
      const auto range = static_cast<std::uint64_t>(b.to) - static_cast<std::uint64_t>(b.from);
      for (std::size_t i = 0; i < got.size(); ++i) {
        const auto above = static_cast<std::uint64_t>(Wide{bits[i]} * range >> 64);
        ASSERT_EQ(static_cast<std::uint64_t>(got[i]), static_cast<std::uint64_t>(b.from) + above) << b.from << " to " << b.to << " element " << i;
      }
    }
  }
}

TEST(Draws, WholeNumbersOfEveryDtypeFillTheirRangeEvenly) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : whole_dtypes()) {
      if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
      const Tensor t = empty({40, 1000}, {.dtype = dtype, .device = device});
      const bool no_sign = dtype == DType::boolean || dtype == DType::u8 || dtype == DType::u16 || dtype == DType::u32 || dtype == DType::u64;
      const std::int64_t from = no_sign ? 0 : -3, to = dtype == DType::boolean ? 2 : from + 8;
      random_(t, from, to, {.seed = 3});
      std::vector<double> counts(static_cast<std::size_t>(to - from));
      for (double v : values(t)) {
        ASSERT_GE(v, static_cast<double>(from));
        ASSERT_LT(v, static_cast<double>(to));
        ++counts[static_cast<std::size_t>(v - static_cast<double>(from))];
      }
      const double expected = 40000.0 / static_cast<double>(counts.size());
      double chi = 0;
      for (double c : counts) chi += (c - expected) * (c - expected) / expected;
      EXPECT_LT(chi, 30) << name(dtype) << ": chi squared of at most 7 degrees of freedom";
      // Without bounds both ends of the range are near.
      random_(t, DrawOptions{.seed = 4});
      const std::vector<double> all = values(t);
      const double largest = *std::max_element(all.begin(), all.end()), least = *std::min_element(all.begin(), all.end());
      EXPECT_GE(least, 0) << name(dtype);
      const double limit = dtype == DType::boolean ? 1
                           : dtype == DType::i8    ? 127
                           : dtype == DType::u8    ? 255
                           : dtype == DType::i16   ? 32767
                           : dtype == DType::u16   ? 65535
                                                   : 0;
      if (limit > 0) {
        EXPECT_EQ(largest, limit) << name(dtype);
      }
      if (dtype == DType::bf16) {
        EXPECT_EQ(largest, 256);
      }
      if (dtype == DType::i64 || dtype == DType::u64) {
        EXPECT_GT(largest, 9e18);
      }
    }
  }
}

TEST(Draws, BernoulliComparesRandsNumbers) {
  CLUTCH_EACH_DEVICE(device) {
    const std::vector<float> u = rand({70, 100}, {.device = device, .seed = 21}).to_host<float>();
    for (DType dtype : whole_dtypes()) {
      if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
      Guarded t(device, dtype, {70, 100}, {1, 71});
      bernoulli_(t.view(), 0.3, {.seed = 21});
      const std::vector<double> got = values(t.view().contiguous());
      for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], u[i] < 0.3f ? 1 : 0) << name(dtype) << ' ' << i;
      t.get();
    }
    // A probability for each column, and the ends.
    const Tensor t = empty({70, 100}, {.dtype = DType::boolean, .device = device}), p = rand({100}, {.device = device, .seed = 1});
    bernoulli_(t, p, {.seed = 21});
    const std::vector<float> ps = p.to_host<float>();
    const std::vector<bool> got = t.to_host<bool>();
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], u[i] < ps[i % 100]) << i;
    bernoulli_(t, 0.0, {.seed = 21});
    EXPECT_EQ(t.to_host<bool>(), std::vector<bool>(7000, false));
    bernoulli_(t, 1.0, {.seed = 21});
    EXPECT_EQ(t.to_host<bool>(), std::vector<bool>(7000, true));
    const Tensor ends = from_host({std::nanf(""), -1.0f, 0.0f, 1.0f, 2.0f}, device), five = empty({5}, {.device = device});
    bernoulli_(five, ends, {.seed = 21});
    EXPECT_EQ(five.to_host<float>(), (std::vector<float>{0, 0, 0, 1, 1}));
  }
}

TEST(Draws, ExponentialIsTheFormulaWithinItsBound) {
  CLUTCH_EACH_DEVICE(device) {
    const std::int64_t n = 30000;
    const Tensor t = empty({n}, {.device = device});
    const std::vector<float> u = rand({n}, {.device = device, .seed = 2}).to_host<float>();
    exponential_(t, 2.5, {.seed = 2});
    const std::vector<float> got = t.to_host<float>();
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double want = -std::log1p(-static_cast<double>(u[i])) / 2.5;
      const double unit = std::ldexp(1.0, std::max(std::ilogb(want == 0 ? 1e-30 : want), -126) - 23);
      ASSERT_LE(std::fabs(got[i] - want), 1.35 * unit) << i << ' ' << u[i];
      sum += got[i], squares += static_cast<double>(got[i]) * got[i];
    }
    EXPECT_NEAR(sum / n, 0.4, 5 * 0.4 / std::sqrt(n));
    EXPECT_NEAR(squares / n, 0.32, 0.02);
    for (DType dtype : {DType::f16, DType::bf16}) {
      const Tensor narrow = empty({n}, {.dtype = dtype, .device = device});
      exponential_(narrow, 2.5, {.seed = 2});
      EXPECT_EQ(narrow.to_bytes(), t.to(dtype).to_bytes()) << "rounded once";
    }
    if (skip_without(device, "fp64", device.traits().fp64)) continue;
    const Tensor wide = empty({n}, {.dtype = DType::f64, .device = device});
    exponential_(wide, 0.5, {.seed = 2});
    double total = 0;
    for (double v : wide.to_host<double>()) total += v;
    EXPECT_NEAR(total / n, 2, 5 * 2 / std::sqrt(n));
  }
}

TEST(Draws, PermutationsAreTheOrderOfTheBits) {
  CLUTCH_EACH_DEVICE(device) {
    for (std::int64_t n : {0, 1, 2, 17, 5000}) {
      const std::vector<std::uint64_t> bits = n > 0 ? bits_of(device, n, 31) : std::vector<std::uint64_t>();
      std::vector<std::int64_t> want(static_cast<std::size_t>(n));
      std::iota(want.begin(), want.end(), 0);
      std::stable_sort(want.begin(), want.end(),
                       [&](std::int64_t a, std::int64_t b) { return bits[static_cast<std::size_t>(a)] < bits[static_cast<std::size_t>(b)]; });
      const Tensor got = randperm(n, {.device = device, .seed = 31});
      ASSERT_EQ(got.to_host<std::int64_t>(), want) << n;
      ASSERT_EQ(values(randperm(n, {.dtype = DType::f32, .device = device, .seed = 31})), std::vector<double>(want.begin(), want.end()));
    }
    // Each of the six orders of three.
    std::array<int, 6> seen{};
    const Generator generator(device, 5);
    for (int i = 0; i < 300; ++i) {
      const std::vector<std::int64_t> p = randperm(3, {.device = device, .generator = generator}).to_host<std::int64_t>();
      ++seen[static_cast<std::size_t>(2 * p[0] + (p[1] > p[2]))];
    }
    EXPECT_GT(*std::min_element(seen.begin(), seen.end()), 20);
  }
}

TEST(Draws, GeneratorsAdvanceAndGraphsDrawAnew) {
  CLUTCH_EACH_BACKEND(device, backend) {
    const Stream stream(device);
    const Generator mine(device, 3, stream), other(device, 3, stream);
    const Tensor t = empty({100}, {.dtype = DType::i64, .device = device}, stream), want = t.clone(stream);
    const Tensor order = zeros({50}, {.dtype = DType::i64, .device = device}, stream);
    Graph graph({.backend = backend});
    {
      GraphCapture capture(graph, stream);
      random_(t, 0, 1000000, {.generator = mine}, stream);
      copy_(order, randperm(50, {.device = device, .generator = mine}, stream), {}, stream);
    }
    std::vector<std::int64_t> last;
    for (int replay = 0; replay < 2; ++replay) {
      graph.replay(stream);
      random_(want, 0, 1000000, {.generator = other}, stream);
      const Tensor second = randperm(50, {.device = device, .generator = other}, stream);
      EXPECT_EQ(t.to_bytes(stream), want.to_bytes(stream)) << replay;
      EXPECT_EQ(order.to_bytes(stream), second.to_bytes(stream)) << replay;
      EXPECT_NE(order.to_host<std::int64_t>(stream), last);
      last = order.to_host<std::int64_t>(stream);
    }
    EXPECT_EQ(mine.state(stream), other.state(stream));
  }
}

TEST(Draws, RefusesBadInput) {
  CLUTCH_EACH_DEVICE(device) {
    auto make = [&](DType dtype) { return zeros({4}, {.dtype = dtype, .device = device}); };
    EXPECT_EQ(code_of([&] { random_(make(DType::i32), 5, 5); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { random_(make(DType::u8), -1, 5); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { random_(make(DType::u8), 0, 257); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { random_(make(DType::u8), 0, 256); }), ErrorCode::ok);
    EXPECT_EQ(code_of([&] { random_(make(DType::f16), 0, 2050); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { random_(make(DType::i64), INT64_MIN, INT64_MAX); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { random_(make(DType::c64)); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { random_(Tensor()); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { random_(make(DType::f32).select(0, 0).expand({4})); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([&] { bernoulli_(make(DType::f32), 1.5); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { bernoulli_(make(DType::f32), std::nan("")); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { bernoulli_(make(DType::f32), make(DType::i32)); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { bernoulli_(make(DType::f32), zeros({5}, {.device = device})); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { exponential_(make(DType::f32), 0); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { exponential_(make(DType::f32), -1); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { exponential_(make(DType::i32)); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { randperm(-1, {.device = device}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { randperm(1000, {.dtype = DType::u8, .device = device}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { randperm(4, {.dtype = DType::c64, .device = device}); }), ErrorCode::invalid_dtype);
  }
}

}}  // namespace clutch::testing
