// SPDX-License-Identifier: Apache-2.0
// The self-test of what lanes exchange and round beside matrix instructions (kernels/flex/exchange.clh).
#include <clutch/kernel.hpp>

#include "encode/matrix_instructions.hpp"
#include "program/program.hpp"
#include "runtime/storage.hpp"
#include "self_test/args.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

/// Groups of x: numbers that e^x is made of, then -inf alone, NaN alone.
constexpr int kOrdinary = 6, kGroups = kOrdinary + 2;

/// Lanes that have scores of the same `queries` differ in bits from `first` to `last`.
struct Bits {
  int first, last, queries;
};
Bits bits_of(MatrixLayout layout) {
  const int half = MATMUL_SUB_GROUP(static_cast<int>(layout)) / 2;
  switch (layout) {
    case MatrixLayout::mma: return {1, 2, 2};
    case MatrixLayout::dpas_8:
    case MatrixLayout::dpas_16: return {1, half, 8};
    default: return {16, half, 1};
  }
}

/// x rounded to nearest even to so many bits behind the first, and to a multiple of `least`.
double rounded(double x, int bits, double least) {
  if (x == 0) return 0;
  const double unit = std::max(std::ldexp(1.0, std::ilogb(x) - bits), least);
  return std::nearbyint(x / unit) * unit;
}

/// True if a word holds both numbers, rounded.
bool is_word(std::uint32_t word, double first, double second, int kind) {
  auto value = [&](std::uint32_t bits) -> double {
    if (kind == MATMUL_NUMBERS_BF16) return std::bit_cast<float>(bits << 16);
    const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 1023);
    return exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  };
  if (kind == MATMUL_NUMBERS_TF32) return std::bit_cast<float>(word) == rounded(first, 10, 0);
  const int bits = kind == MATMUL_NUMBERS_BF16 ? 7 : 10;
  const double least = kind == MATMUL_NUMBERS_BF16 ? 0 : 0x1p-24;
  return value(word & 0xffff) == rounded(first, bits, least) && value(word >> 16) == rounded(second, bits, least);
}

}  // namespace

bool lanes_exchange(Runtime& runtime, MatrixInstructions instructions, const MatrixNumbers& n) {
  const int layout = static_cast<int>(instructions.layout), lanes = MATMUL_SUB_GROUP(layout), all = lanes * kGroups;
  const Bits bits = bits_of(instructions.layout);
  std::mt19937 random(20261127);
  auto fraction = [&] { return static_cast<float>(random() >> 8) * 0x1p-24f; };
  std::vector<float> x, y;
  for (int i = 0; i < all; ++i) {
    const int group = i / lanes;
    // Near 0, where weights are large, down to the least normal number, and up to what the backward pass has; zeros among them.
    const float ordinary = i % 11 == 0 ? 0.0f : i % 11 == 1 ? fraction() * 1.5f : -fraction() * (group % 2 == 0 ? 4.0f : 125.0f);
    x.push_back(group < kOrdinary ? ordinary : group < kOrdinary + 1 ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN());
    // From 0 to 1, some subnormal as f16, some halfway between two numbers.
    for (int e = 0; e < 2; ++e)
      y.push_back(i % 7 == e ? 0.0f : i % 5 == e ? 1.0f : i % 3 == e ? std::floor(fraction() * 4096) * 0x1p-12f : std::ldexp(fraction(), i % 13 - 12));
  }
  const Device device(&runtime.device());
  Stream stream(runtime.default_stream());
  const Tensor of_x = from_host(x, {all}, device, stream), of_y = from_host(y, {2 * all}, device, stream);
  const Tensor out = empty({all, CLUTCH_SELF_TEST_EXCHANGES}, {.dtype = DType::i32, .device = device}, stream);
  Defines defines;
  defines.set("WIDTH", 1).set("CLUTCH_LAYOUT", layout).set("CLUTCH_NUMBERS", n.kind).set("CLUTCH_STAND_IN", instructions.stand_in);
  Kernel& kernel = runtime.programs().find("self_test", "self_test_exchange", defines);
  {
    Encoder encoder(stream, "self_test");
    encoder.output(out).input(of_x).input(of_y).dispatch(KernelHandle(&kernel),
                                                         {.global = static_cast<std::uint64_t>(all), .local = static_cast<std::uint64_t>(lanes)});
  }
  const std::vector<std::int32_t> got = out.to_host<std::int32_t>(stream);
  for (int i = 0; i < all; ++i) {
    auto word = [&](int at) {
      return static_cast<std::uint32_t>(got[static_cast<std::size_t>(i) * CLUTCH_SELF_TEST_EXCHANGES + static_cast<std::size_t>(at)]);
    };
    auto number = [&](int at) { return std::bit_cast<float>(word(at)); };
    auto x_of = [&](int other) { return x[static_cast<std::size_t>(other)]; };
    // Groups begin at multiples of their lanes, which are powers of two.
    if (word(0) != std::bit_cast<std::uint32_t>(x_of(i ^ bits.first)) || word(1) != std::bit_cast<std::uint32_t>(x_of(i ^ bits.last))) return false;
    const float mine = x_of(i), power = number(2);
    if (std::isnan(mine)) {
      if (!std::isnan(power)) return false;
      continue;
    }
    const int mask = 2 * bits.last - bits.first;
    for (int query = 0; query < bits.queries; ++query) {
      auto times = [&](int other) { return x_of(other) * static_cast<float>(query + 1); };
      float largest = times(i);
      double sum = 0, size = 0;
      for (int other = i / lanes * lanes; other < (i / lanes + 1) * lanes; ++other)
        if (((other ^ i) & ~mask) == 0) largest = std::max(largest, times(other)), sum += times(other), size += std::fabs(times(other));
      const float got_largest = number(4 + 2 * query), got_sum = number(5 + 2 * query);
      if (got_largest != largest || !(std::fabs(got_sum - sum) <= 0x1p-20 * size || got_sum == sum)) return false;
    }
    const double exact = std::exp2(double{mine});
    if (mine == 0 ? power != 1 : std::isinf(mine) ? power != 0 : !(std::fabs(power - exact) <= 0x1p-20 * exact)) return false;
    const auto at = 2 * static_cast<std::size_t>(i);
    if (!is_word(word(3), double{y[at]}, double{y[at + 1]}, n.kind)) return false;
  }
  return true;
}

}}}  // namespace clutch::v0::detail
