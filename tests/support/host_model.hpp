// SPDX-License-Identifier: Apache-2.0
#pragma once
// Host models of number formats, written apart from the library: the compiler's 16-bit floats, and nearest-value searches.
// Translation units that include this are compiled with -ffp-contract=off.
#include <clutch/dtype.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace clutch::model {

inline float bf16_value(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

/// Nearest bf16 of an exact double, ties to even, by comparing the two neighbours.
inline std::uint16_t to_bf16(double x) {
  if (std::isnan(x)) return static_cast<std::uint16_t>(std::signbit(x) ? 0xFFC0 : 0x7FC0);
  std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  double a = std::fabs(x);
  if (std::isinf(a)) return static_cast<std::uint16_t>(sign | 0x7F80);
  std::uint32_t low = 0, high = 0x7F80;  // value(low) <= a < value(high), 0x7F80 standing for 2^128
  auto value = [](std::uint32_t code) { return code == 0x7F80 ? 0x1p128 : static_cast<double>(bf16_value(static_cast<std::uint16_t>(code))); };
  if (a >= 0x1p128) return static_cast<std::uint16_t>(sign | 0x7F80);
  while (high - low > 1) {
    std::uint32_t middle = (low + high) / 2;
    (value(middle) <= a ? low : high) = middle;
  }
  double below = a - value(low), above = value(high) - a;
  std::uint32_t chosen = below < above ? low : above < below ? high : (low % 2 == 0 ? low : high);
  return static_cast<std::uint16_t>(sign | chosen);
}

// In C++, GCC 12 has _Float16 on x86 alone.
#ifdef __ARM_FP16_FORMAT_IEEE
using Half = __fp16;
#else
using Half = _Float16;
#endif
inline float f16_value(std::uint16_t bits) { return static_cast<float>(std::bit_cast<Half>(bits)); }
inline std::uint16_t to_f16(double x) {
  if (std::isnan(x)) return static_cast<std::uint16_t>(std::signbit(x) ? 0xFE00 : 0x7E00);
  return std::bit_cast<std::uint16_t>(static_cast<Half>(x));
}

/// Values of the 8-bit formats from their definition.
inline double f8_value(std::uint8_t bits, DType dtype) {
  double sign = bits & 0x80 ? -1 : 1;
  int e, m, bias, mbits;
  if (dtype == DType::f8e4m3fn) {
    e = (bits >> 3) & 15, m = bits & 7, bias = 7, mbits = 3;
    if (e == 15 && m == 7) return std::numeric_limits<double>::quiet_NaN();
  } else if (dtype == DType::f8e5m2) {
    e = (bits >> 2) & 31, m = bits & 3, bias = 15, mbits = 2;
    if (e == 31) return m ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  } else {
    return bits == 255 ? std::numeric_limits<double>::quiet_NaN() : std::exp2(static_cast<double>(bits) - 127);
  }
  double fraction = m / std::exp2(mbits);
  return sign * (e == 0 ? fraction * std::exp2(1 - bias) : (1 + fraction) * std::exp2(e - bias));
}

/// Nearest finite code by search over all of them; past half a step above the largest it overflows.
inline std::uint8_t to_f8(double x, DType dtype, Overflow overflow) {
  std::uint8_t sign = std::signbit(x) ? 0x80 : 0;
  const std::uint8_t nan = 0x7F, largest = dtype == DType::f8e4m3fn ? 0x7E : 0x7B, over = dtype == DType::f8e4m3fn ? 0x7F : 0x7C;
  if (std::isnan(x)) return sign | nan;
  double a = std::fabs(x), top = f8_value(largest, dtype), step = top - f8_value(static_cast<std::uint8_t>(largest - 1), dtype);
  // The tie above the largest goes to even: 464 down to 448 (even mantissa), 61440 up (57344 is odd).
  bool tie_up = dtype == DType::f8e5m2;
  if (a > top + step / 2 || (a == top + step / 2 && tie_up)) return sign | (overflow == Overflow::saturate ? largest : over);
  int best = 0;
  for (int code = 0; code <= largest; ++code) {
    double d = std::fabs(a - f8_value(static_cast<std::uint8_t>(code), dtype));
    double b = std::fabs(a - f8_value(static_cast<std::uint8_t>(best), dtype));
    if (d < b || (d == b && code % 2 == 0)) best = code;
  }
  return static_cast<std::uint8_t>(sign | best);
}

/// PyTorch's f8e8m0fnu cast of the f32 nearest to x: magnitudes, ties between powers of two up.
inline std::uint8_t to_e8m0(double x) {
  float f = std::fabs(static_cast<float>(x));
  if (!std::isfinite(f)) return 255;
  if (f <= 0x1p-127f) return 0;
  if (f < 0x1p-126f) return 1;  // above 2^-127, which is code 0
  int e = static_cast<int>(std::floor(std::log2(static_cast<double>(f))));
  double base = std::exp2(e);
  if (f < base) base = std::exp2(--e);
  if (f >= 2 * base) base = std::exp2(++e);
  bool up = static_cast<double>(f) >= 1.5 * base;
  int code = e + 127 + (up ? 1 : 0);
  return static_cast<std::uint8_t>(code >= 255 ? 255 : code);
}

/// Element i of raw storage as exact double (f16 to f64, integers up to 2^53 exactly).
inline double value_at(const void* data, std::size_t i, DType dtype) {
  auto get = [&]<class T>(T v) {
    std::memcpy(&v, static_cast<const char*>(data) + i * sizeof(T), sizeof(T));
    return v;
  };
  switch (dtype) {
    case DType::f64: return get(double{});
    case DType::f32: return static_cast<double>(get(float{}));
    case DType::f16: return static_cast<double>(f16_value(get(std::uint16_t{})));
    case DType::bf16: return static_cast<double>(bf16_value(get(std::uint16_t{})));
    case DType::f8e4m3fn:
    case DType::f8e5m2:
    case DType::f8e8m0fnu: return f8_value(get(std::uint8_t{}), dtype);
    case DType::i8: return get(std::int8_t{});
    case DType::u8: return get(std::uint8_t{});
    case DType::boolean: return get(std::uint8_t{}) != 0;
    case DType::i16: return get(std::int16_t{});
    case DType::i32: return get(std::int32_t{});
    case DType::i64: return static_cast<double>(get(std::int64_t{}));
    case DType::u16: return get(std::uint16_t{});
    case DType::u32: return get(std::uint32_t{});
    case DType::u64: return static_cast<double>(get(std::uint64_t{}));
    default: throw std::logic_error("value_at: dtype");
  }
}

/// Stores x, rounded once, as element i.
inline void store_at(void* data, std::size_t i, DType dtype, double x, Overflow overflow = Overflow::nonfinite) {
  auto put = [&]<class T>(T v) { std::memcpy(static_cast<char*>(data) + i * sizeof(T), &v, sizeof(T)); };
  auto whole = [&]<class T>(T) -> T {
    if (std::isnan(x)) return 0;
    double t = std::trunc(x), low = static_cast<double>(std::numeric_limits<T>::min()), high = static_cast<double>(std::numeric_limits<T>::max());
    if (t <= low) return std::numeric_limits<T>::min();
    if (t >= high) return std::numeric_limits<T>::max();
    return static_cast<T>(t);
  };
  switch (dtype) {
    case DType::f64: put(x); break;
    case DType::f32: put(static_cast<float>(x)); break;
    case DType::f16: put(to_f16(x)); break;
    case DType::bf16: put(to_bf16(x)); break;
    case DType::f8e4m3fn:
    case DType::f8e5m2: put(to_f8(x, dtype, overflow)); break;
    case DType::f8e8m0fnu: put(to_e8m0(x)); break;
    case DType::i8: put(whole(std::int8_t{})); break;
    case DType::u8: put(whole(std::uint8_t{})); break;
    case DType::i16: put(whole(std::int16_t{})); break;
    case DType::i32: put(whole(std::int32_t{})); break;
    case DType::i64: put(whole(std::int64_t{})); break;
    case DType::u16: put(whole(std::uint16_t{})); break;
    case DType::u32: put(whole(std::uint32_t{})); break;
    case DType::u64: put(whole(std::uint64_t{})); break;
    case DType::boolean: put(static_cast<std::uint8_t>(x != 0)); break;
    default: throw std::logic_error("store_at: dtype");
  }
}

/// SplitMix64: a seed printed by a failing test gives the same inputs everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  double uniform(double low, double high) { return low + (high - low) * static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

/// Raw storage of n elements: mostly moderate values, every 17th element one of the specials that break kernels.
inline std::vector<std::uint8_t> make_values(std::size_t n, DType dtype, std::uint64_t seed, bool specials = true) {
  std::vector<std::uint8_t> data(bytes_for(dtype, n));
  Random random(seed);
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const double list[] = {0.0, -0.0, inf, -inf, nan, 1.0, -1.0, 0x1p-149, -0x1p-127, 0x1p-24, 65504.0, -65519.0, 3.3e38, -2.8e38, 0x1p-14, 0x1.004p0};
  for (std::size_t i = 0; i < n; ++i) {
    double x = random.uniform(-4, 4);
    if (random.next() % 8 == 0) x = std::ldexp(x, static_cast<int>(random.next() % 40) - 20);
    if (specials && is_floating(dtype) && random.next() % 17 == 0) x = list[random.next() % std::size(list)];
    if (is_integral(dtype)) {
      if (specials && random.next() % 3 == 0) {
        auto raw = random.next();
        std::memcpy(data.data() + i * static_cast<std::size_t>(bits(dtype) / 8), &raw, static_cast<std::size_t>(bits(dtype) / 8));
        continue;
      }
      x *= 25;
    }
    store_at(data.data(), i, dtype, x);
  }
  return data;
}

/// Calls f with a number of the type that the library accumulates a dtype in: std::int64_t, double or float.
template <class F>
void with_accumulator(DType dtype, F&& f) {
  if (!is_floating(dtype))
    f(std::int64_t{});
  else if (dtype == DType::f64)
    f(double{});
  else
    f(float{});
}

}  // namespace clutch::model
