// SPDX-License-Identifier: Apache-2.0
// a b + c, rounded once. MinGW's C library rounds the product as well, so that there the sum is computed from the numbers' bits.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <utility>

namespace clutch { inline namespace v0 { namespace detail {

/// By f64, which holds the product. The sum is rounded to odd before it is rounded to f32, so that the two roundings are as one.
inline float fma_from_bits(float a, float b, float c) {
  const double product = static_cast<double>(a) * static_cast<double>(b), addend = static_cast<double>(c), sum = product + addend;
  const double rest = sum - product, lost = (product - (sum - rest)) + (addend - rest);
  const auto bits = std::bit_cast<std::int64_t>(sum);
  if (!std::isfinite(sum) || lost == 0 || (bits & 1) != 0) return static_cast<float>(sum);
  return static_cast<float>(std::bit_cast<double>(bits + ((lost > 0) == (sum > 0) ? 1 : -1)));
}

/// By integers of 128 bits, whose last bit stands for all that was shifted out.
inline double fma_from_bits(double a, double b, double c) {
  if (!std::isfinite(a) || !std::isfinite(b)) return a * b + c;
  if (!std::isfinite(c)) return c;
  if (a == 0 || b == 0) return a * b + c;
  if (c == 0) return a * b;
  __extension__ using Wide = unsigned __int128;
  struct Number {  // significand 2^exponent
    Wide significand;
    int exponent;
  };
  auto integer_of = [](double x) {
    int exponent = 0;
    const double fraction = std::frexp(std::fabs(x), &exponent);
    return Number{static_cast<Wide>(static_cast<std::uint64_t>(std::ldexp(fraction, 53))), exponent - 53};
  };
  auto shift_out = [](Wide x, int by) { return by == 0 ? x : by > 127 ? Wide{x != 0} : (x >> by) | Wide{(x << (128 - by)) != 0}; };
  auto top_bit_at_125 = [](Number x) {
    const auto high = static_cast<std::uint64_t>(x.significand >> 64);
    const int by = (high != 0 ? std::countl_zero(high) : 64 + std::countl_zero(static_cast<std::uint64_t>(x.significand))) - 2;
    return Number{x.significand << by, x.exponent - by};
  };
  const Number m = integer_of(a), n = integer_of(b);
  Number product = top_bit_at_125({m.significand * n.significand, m.exponent + n.exponent}), addend = top_bit_at_125(integer_of(c));
  bool negative = std::signbit(a) != std::signbit(b), other = std::signbit(c);
  if (product.exponent < addend.exponent || (product.exponent == addend.exponent && product.significand < addend.significand)) {
    std::swap(product, addend);
    std::swap(negative, other);
  }
  addend.significand = shift_out(addend.significand, product.exponent - addend.exponent);
  const Wide sum = negative == other ? product.significand + addend.significand : product.significand - addend.significand;
  if (sum == 0) return 0;
  const auto high = static_cast<std::uint64_t>(sum >> 64);
  const int length = high != 0 ? 128 - std::countl_zero(high) : 64 - std::countl_zero(static_cast<std::uint64_t>(sum));
  // f64 keeps 53 bits, and none below 2^-1074.
  const int least = -1074 - product.exponent, below = length - 53 > least ? length - 53 : least;
  if (below <= 0) return std::ldexp(negative ? -static_cast<double>(sum) : static_cast<double>(sum), product.exponent);
  const Wide kept = below > 127 ? 0 : sum >> below, rest = below > 127 ? sum : sum - (kept << below), half = below > 128 ? ~Wide{0} : Wide{1} << (below - 1);
  const auto rounded = static_cast<double>(static_cast<std::uint64_t>(kept) + (rest > half || (rest == half && (kept & 1) != 0) ? 1 : 0));
  return std::ldexp(negative ? -rounded : rounded, product.exponent + below);
}

template <std::floating_point T>
T fma(T a, T b, T c) {
#ifdef __MINGW32__
  return fma_from_bits(a, b, c);
#else
  return std::fma(a, b, c);
#endif
}

}}}  // namespace clutch::v0::detail
