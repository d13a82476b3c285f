// SPDX-License-Identifier: Apache-2.0
#include <clutch/dtype.hpp>
#include <clutch/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <ostream>

namespace clutch { inline namespace v0 {

namespace {

// A binary format with sign, exponent and mantissa fields. The largest exponent code holds Inf and NaN (ieee), or NaN in its last mantissa code alone (fn), or
// only finite values (finite).
enum class Specials { ieee, fn, finite };
struct Format {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Specials specials;
};

Format format_of(DType dtype, std::string_view op) {
  switch (dtype) {
    case DType::f16: return {5, 10, 15, Specials::ieee};
    case DType::bf16: return {8, 7, 127, Specials::ieee};
    case DType::f8e4m3fn: return {4, 3, 7, Specials::fn};
    case DType::f8e5m2: return {5, 2, 15, Specials::ieee};
    case DType::f6e2m3: return {2, 3, 1, Specials::finite};
    case DType::f6e3m2: return {3, 2, 3, Specials::finite};
    case DType::f4e2m1: return {2, 1, 1, Specials::finite};
    default: break;
  }
  throw Error(ErrorCode::invalid_dtype, op, fmt::format("dtype must be a floating one of at most 8 bits, got {}", name(dtype)));
}

// Code of the largest finite value, without the sign bit.
std::uint32_t max_code(const Format& f) {
  std::uint32_t all = (1u << (f.exponent_bits + f.mantissa_bits)) - 1;
  if (f.specials == Specials::finite) return all;
  if (f.specials == Specials::fn) return all - 1;
  return ((1u << f.exponent_bits) - 1) * (1u << f.mantissa_bits) - 1;
}

std::uint16_t encode_e8m0(double value) {
  if (!std::isfinite(value)) return 255;
  // PyTorch rounds the f32 value: to nearest, ties up for normals; the tie below the smallest normal goes to code 0.
  auto word = std::bit_cast<std::uint32_t>(static_cast<float>(std::fabs(value)));
  std::uint32_t exponent = word >> 23;
  if (exponent == 255) return 255;
  bool guard = (word & 0x400000) != 0;
  bool rest = (word & 0x3FFFFF) != 0;
  bool up = guard && (rest || exponent > 0);
  return static_cast<std::uint16_t>(exponent + (up ? 1 : 0));
}

}  // namespace

DType dtype_from_name(std::string_view text) {
  std::string known;
  for (int i = 0; i < kDTypeCount; ++i) {
    auto dtype = static_cast<DType>(i);
    if (name(dtype) == text) return dtype;
    known += fmt::format("{}{}", i ? " " : "", name(dtype));
  }
  throw Error(ErrorCode::invalid_dtype, "dtype_from_name", fmt::format("the name must be that of a dtype, got '{}'; known: {}", text, known));
}

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name(dtype); }

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  auto small = [](DType d) { return is_floating(d) && bits(d) <= 8; };
  if (small(a) || small(b))
    throw Error(ErrorCode::invalid_dtype, "promote_types",
                fmt::format("dtypes must be of 16 bits and more, integers or boolean to promote, got {} and {}", name(a), name(b)));
  auto wide_unsigned = [](DType d) { return d == DType::u16 || d == DType::u32 || d == DType::u64; };
  if ((wide_unsigned(a) && !is_floating(b)) || (wide_unsigned(b) && !is_floating(a)))
    throw Error(ErrorCode::invalid_dtype, "promote_types", fmt::format("u16, u32 and u64 must meet floats to promote, got {} and {}", name(a), name(b)));
  if (kind(a) < kind(b)) std::swap(a, b);  // afterwards a's kind is the later one of floating, integral, boolean, complex
  if (is_complex(a)) {
    if (is_complex(b) || b == DType::f64) return a == DType::c128 || b == DType::c128 || b == DType::f64 ? DType::c128 : a;
    return a;
  }
  if (kind(a) == DTypeKind::boolean) return b;
  if (is_integral(a) && is_floating(b)) return b;
  if (is_floating(a)) {
    if (a == DType::f64 || b == DType::f64) return DType::f64;
    return DType::f32;  // f32 with a 16-bit type, or f16 with bf16
  }
  if (a == DType::u8 || b == DType::u8) {
    DType other = a == DType::u8 ? b : a;
    return other == DType::i8 ? DType::i16 : other;
  }
  return bits(a) >= bits(b) ? a : b;
}

std::uint16_t encode_small_float(double value, DType dtype, Overflow overflow) {
  if (dtype == DType::f8e8m0fnu) return encode_e8m0(value);
  Format f = format_of(dtype, "encode_small_float");
  auto word = std::bit_cast<std::uint64_t>(value);
  auto sign = static_cast<std::uint32_t>(word >> 63) << (f.exponent_bits + f.mantissa_bits);
  double magnitude = std::fabs(value);
  std::uint32_t largest = max_code(f);
  if (std::isnan(value)) {
    if (f.specials == Specials::finite) return static_cast<std::uint16_t>(sign | largest);
    if (f.specials == Specials::fn) return static_cast<std::uint16_t>(sign | (largest + 1));
    if (dtype == DType::f8e5m2) return static_cast<std::uint16_t>(sign | 0x7F);  // PyTorch's code of NaN
    return static_cast<std::uint16_t>(sign | (largest + 1) | (1u << (f.mantissa_bits - 1)));
  }
  std::uint32_t code = largest + 1;
  if (std::isfinite(value)) {
    if (magnitude == 0) return static_cast<std::uint16_t>(sign);
    int exponent = std::max(std::ilogb(magnitude), 1 - f.bias);
    // `units` counts units in the last place and is below 2^53, so the scaling is exact and nearbyint rounds once.
    double units = std::nearbyint(std::ldexp(magnitude, f.mantissa_bits - exponent));
    if (exponent <= f.bias + 1) {
      auto whole = static_cast<std::uint32_t>(units);
      auto biased = static_cast<std::uint32_t>(exponent + f.bias);
      std::uint32_t hidden = 1u << f.mantissa_bits;
      code = whole >= hidden ? ((biased - 1) << f.mantissa_bits) + whole : whole;
      code = std::min(code, largest + 1);
    }
  }
  bool saturating = overflow == Overflow::saturate || f.specials == Specials::finite;
  if (code > largest && saturating && !(f.specials == Specials::ieee && bits(dtype) == 16)) code = largest;
  return static_cast<std::uint16_t>(sign | code);
}

double decode_small_float(std::uint16_t raw, DType dtype) {
  if (dtype == DType::f8e8m0fnu) {
    return raw == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, static_cast<int>(raw) - 127);
  }
  Format f = format_of(dtype, "decode_small_float");
  std::uint32_t magnitude = raw & ((1u << (f.exponent_bits + f.mantissa_bits)) - 1);
  bool negative = (raw >> (f.exponent_bits + f.mantissa_bits)) & 1;
  double value = 0;
  if (magnitude > max_code(f)) {
    bool infinite = f.specials == Specials::ieee && magnitude == max_code(f) + 1;
    value = infinite ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else {
    int exponent = static_cast<int>(magnitude >> f.mantissa_bits);
    std::uint32_t mantissa = magnitude & ((1u << f.mantissa_bits) - 1);
    if (exponent > 0) mantissa |= 1u << f.mantissa_bits;
    value = std::ldexp(static_cast<double>(mantissa), std::max(exponent, 1) - f.bias - f.mantissa_bits);
  }
  return negative ? -value : value;
}

}}  // namespace clutch::v0
