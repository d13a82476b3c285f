// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/export.hpp>

#include <array>
#include <complex>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string_view>

namespace clutch { inline namespace v0 {

/// Element types. The numbers are the C ABI's and never change.
enum class DType : std::uint8_t {
  f64 = 0,
  f32 = 1,
  f16 = 2,        ///< IEEE binary16
  bf16 = 3,       ///< upper half of a binary32
  f8e4m3fn = 4,   ///< OCP E4M3: no Inf, NaN is S.1111.111, largest 448
  f8e5m2 = 5,     ///< OCP E5M2: Inf and NaN as IEEE, largest 57344
  f8e8m0fnu = 6,  ///< power-of-two scale 2^(b-127), 0xFF is NaN
  f6e2m3 = 7,     ///< packed, four elements in three bytes
  f6e3m2 = 8,     ///< packed, four elements in three bytes
  f4e2m1 = 9,     ///< packed, two elements in a byte, the even one in the low nibble
  i8 = 10,
  u8 = 11,
  i16 = 12,
  i32 = 13,
  i64 = 14,
  boolean = 15,  ///< one byte, 0 or 1
  c64 = 16,      ///< two f32
  c128 = 17,     ///< two f64
  u16 = 18,
  u32 = 19,
  u64 = 20,
};

inline constexpr int kDTypeCount = 21;

enum class DTypeKind : std::uint8_t { floating, integral, boolean, complex };

namespace detail {
struct DTypeInfo {
  std::string_view name;
  std::uint8_t bits;
  DTypeKind kind;
  bool is_signed;
};
inline constexpr std::array<DTypeInfo, kDTypeCount> kDTypes{{
    {"f64", 64, DTypeKind::floating, true},       {"f32", 32, DTypeKind::floating, true},
    {"f16", 16, DTypeKind::floating, true},       {"bf16", 16, DTypeKind::floating, true},
    {"f8e4m3fn", 8, DTypeKind::floating, true},   {"f8e5m2", 8, DTypeKind::floating, true},
    {"f8e8m0fnu", 8, DTypeKind::floating, false}, {"f6e2m3", 6, DTypeKind::floating, true},
    {"f6e3m2", 6, DTypeKind::floating, true},     {"f4e2m1", 4, DTypeKind::floating, true},
    {"i8", 8, DTypeKind::integral, true},         {"u8", 8, DTypeKind::integral, false},
    {"i16", 16, DTypeKind::integral, true},       {"i32", 32, DTypeKind::integral, true},
    {"i64", 64, DTypeKind::integral, true},       {"bool", 8, DTypeKind::boolean, false},
    {"c64", 64, DTypeKind::complex, true},        {"c128", 128, DTypeKind::complex, true},
    {"u16", 16, DTypeKind::integral, false},      {"u32", 32, DTypeKind::integral, false},
    {"u64", 64, DTypeKind::integral, false},
}};
}  // namespace detail

/// Bits per element: 64 for f64, 6 for f6e2m3.
constexpr int bits(DType dtype) noexcept { return detail::kDTypes[static_cast<std::size_t>(dtype)].bits; }
/// The name used in rows, defines and messages: "bf16".
constexpr std::string_view name(DType dtype) noexcept { return detail::kDTypes[static_cast<std::size_t>(dtype)].name; }
constexpr DTypeKind kind(DType dtype) noexcept { return detail::kDTypes[static_cast<std::size_t>(dtype)].kind; }
constexpr bool is_floating(DType dtype) noexcept { return kind(dtype) == DTypeKind::floating; }
constexpr bool is_integral(DType dtype) noexcept { return kind(dtype) == DTypeKind::integral; }
constexpr bool is_complex(DType dtype) noexcept { return kind(dtype) == DTypeKind::complex; }
/// True for the 4- and 6-bit types, whose elements share bytes.
constexpr bool is_packed(DType dtype) noexcept { return bits(dtype) < 8; }
/// Bytes that hold `count` contiguous elements, rounded up to a whole byte.
constexpr std::uint64_t bytes_for(DType dtype, std::uint64_t count) noexcept {
  return is_packed(dtype) ? (count * static_cast<std::uint64_t>(bits(dtype)) + 7) / 8
                          : count * static_cast<std::uint64_t>(bits(dtype) / 8);
}
/// Finds a dtype by its name(). Errors: invalid_dtype lists the names.
CLUTCH_API DType dtype_from_name(std::string_view name);
/// PyTorch's torch.promote_types for f64 f32 f16 bf16, integers, bool and complex.
/// Errors: invalid_dtype for the 8-, 6- and 4-bit floating types, which promote with themselves alone, and for u16, u32
///   and u64, which promote with themselves and with f64 f32 f16 bf16 alone.
CLUTCH_API DType promote_types(DType a, DType b);
CLUTCH_API std::ostream& operator<<(std::ostream& out, DType dtype);

/// Rule of a cast to f8e4m3fn or f8e5m2 for values beyond the largest finite one.
enum class Overflow : std::uint8_t {
  nonfinite,  ///< NaN (e4m3fn) or Inf (e5m2), as PyTorch 2.12 casts
  saturate,   ///< the largest finite value of that sign, Inf too, as PyTorch 2.13 and OCP's saturating mode; NaN stays
              ///< NaN
};

/// Rounds a value to a small floating format by nearest even, once, and returns its bits.
/// Dtypes: f16, bf16, f8e4m3fn, f8e5m2, f8e8m0fnu (which drops the sign, ties go up).
/// Errors: invalid_dtype for others.
CLUTCH_API std::uint16_t encode_small_float(double value, DType dtype, Overflow overflow = Overflow::nonfinite);
/// Returns the value of the bits of a small floating format: f16, bf16, the f8, f6 and f4 types. Errors: invalid_dtype.
CLUTCH_API double decode_small_float(std::uint16_t bits, DType dtype);

/// Storage of one f16 element on the host; arithmetic is done in float.
struct float16 {
  std::uint16_t bits = 0;
  float16() = default;
  explicit float16(double value) : bits(encode_small_float(value, DType::f16)) {}
  static constexpr float16 from_bits(std::uint16_t raw) noexcept {
    float16 result;
    result.bits = raw;
    return result;
  }
  explicit operator float() const { return static_cast<float>(decode_small_float(bits, DType::f16)); }
  friend bool operator==(float16, float16) = default;
};

/// Storage of one bf16 element on the host; arithmetic is done in float.
struct bfloat16 {
  std::uint16_t bits = 0;
  bfloat16() = default;
  explicit bfloat16(double value) : bits(encode_small_float(value, DType::bf16)) {}
  static constexpr bfloat16 from_bits(std::uint16_t raw) noexcept {
    bfloat16 result;
    result.bits = raw;
    return result;
  }
  explicit operator float() const { return static_cast<float>(decode_small_float(bits, DType::bf16)); }
  friend bool operator==(bfloat16, bfloat16) = default;
};

/// Storage of one 8-bit floating element on the host.
template <DType kFormat>
struct float8 {
  std::uint8_t bits = 0;
  float8() = default;
  explicit float8(double value, Overflow overflow = Overflow::nonfinite)
      : bits(static_cast<std::uint8_t>(encode_small_float(value, kFormat, overflow))) {}
  explicit operator float() const { return static_cast<float>(decode_small_float(bits, kFormat)); }
  friend bool operator==(float8, float8) = default;
};
using float8_e4m3fn = float8<DType::f8e4m3fn>;
using float8_e5m2 = float8<DType::f8e5m2>;
using float8_e8m0fnu = float8<DType::f8e8m0fnu>;

/// The dtypes of an op's results, as its option `dtype` takes them: none, where the op's rule holds; one, DType::f16;
/// or as many as there are results, up to eight, in braces: {DType::f16, DType::boolean}.
class DTypeList {
 public:
  constexpr DTypeList() = default;
  constexpr DTypeList(DType one) : count_(1), list_{one} {}
  constexpr DTypeList(std::initializer_list<DType> list) {
    for (DType d : list)
      if (count_ < static_cast<int>(list_.size())) list_[static_cast<std::size_t>(count_++)] = d;
  }
  constexpr int size() const noexcept { return count_; }
  constexpr bool empty() const noexcept { return count_ == 0; }
  /// The first one; `otherwise` where there is none.
  constexpr DType value_or(DType otherwise) const noexcept { return empty() ? otherwise : list_[0]; }
  constexpr DType operator[](int i) const noexcept { return list_[static_cast<std::size_t>(i)]; }

 private:
  int count_ = 0;
  std::array<DType, 8> list_{};
};

namespace detail {
template <class T>
struct DTypeOf;
template <DType kValue>
struct DTypeConstant {
  static constexpr DType value = kValue;
};
template <>
struct DTypeOf<double> : DTypeConstant<DType::f64> {};
template <>
struct DTypeOf<float> : DTypeConstant<DType::f32> {};
template <>
struct DTypeOf<float16> : DTypeConstant<DType::f16> {};
template <>
struct DTypeOf<bfloat16> : DTypeConstant<DType::bf16> {};
template <>
struct DTypeOf<float8_e4m3fn> : DTypeConstant<DType::f8e4m3fn> {};
template <>
struct DTypeOf<float8_e5m2> : DTypeConstant<DType::f8e5m2> {};
template <>
struct DTypeOf<float8_e8m0fnu> : DTypeConstant<DType::f8e8m0fnu> {};
template <>
struct DTypeOf<std::int8_t> : DTypeConstant<DType::i8> {};
template <>
struct DTypeOf<std::uint8_t> : DTypeConstant<DType::u8> {};
template <>
struct DTypeOf<std::int16_t> : DTypeConstant<DType::i16> {};
template <>
struct DTypeOf<std::int32_t> : DTypeConstant<DType::i32> {};
template <>
struct DTypeOf<std::int64_t> : DTypeConstant<DType::i64> {};
template <>
struct DTypeOf<std::uint16_t> : DTypeConstant<DType::u16> {};
template <>
struct DTypeOf<std::uint32_t> : DTypeConstant<DType::u32> {};
template <>
struct DTypeOf<std::uint64_t> : DTypeConstant<DType::u64> {};
template <>
struct DTypeOf<bool> : DTypeConstant<DType::boolean> {};
template <>
struct DTypeOf<std::complex<float>> : DTypeConstant<DType::c64> {};
template <>
struct DTypeOf<std::complex<double>> : DTypeConstant<DType::c128> {};
}  // namespace detail

/// The dtype that a C++ type stores: dtype_of<float> is DType::f32.
template <class T>
inline constexpr DType dtype_of = detail::DTypeOf<T>::value;

}}  // namespace clutch::v0
