// SPDX-License-Identifier: Apache-2.0
#include "dist/reducer.hpp"
#include "dist/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <complex>
#include <concepts>
#include <cstring>
#include <type_traits>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

namespace {

// How elements are stored: the number of one, and back.
template <class T>
struct Plain {
  using Number = T;
  static constexpr std::size_t kBytes = sizeof(T);
  static Number load(const std::byte* from) {
    Number x;
    std::memcpy(&x, from, sizeof x);
    return x;
  }
  static void store(std::byte* to, Number x) { std::memcpy(to, &x, sizeof x); }
};
struct Boolean : Plain<std::uint8_t> {
  static Number load(const std::byte* from) { return *from != std::byte{0}; }
};
struct Bf16 {
  using Number = float;
  static constexpr std::size_t kBytes = 2;
  static float load(const std::byte* from) { return std::bit_cast<float>(static_cast<std::uint32_t>(Plain<std::uint16_t>::load(from)) << 16); }
  static void store(std::byte* to, float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1), nan = bits | 0x400000;
    Plain<std::uint16_t>::store(to, static_cast<std::uint16_t>(((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded) >> 16));
  }
};
struct F16 {
  using Number = float;
  static constexpr std::size_t kBytes = 2;
  static float load(const std::byte* from) {
    const std::uint32_t bits = Plain<std::uint16_t>::load(from), sign = (bits & 0x8000) << 16, magnitude = bits & 0x7fff;
    // A product with a power of two is exact, for subnormal numbers, too; Inf and NaN have the greatest exponent of both formats.
    const float finite = std::bit_cast<float>(magnitude << 13) * std::bit_cast<float>(0x77800000U);
    const std::uint32_t value = magnitude >= 0x7c00 ? magnitude << 13 | 0x7f800000 : std::bit_cast<std::uint32_t>(finite);
    return std::bit_cast<float>(sign | value);
  }
  static void store(std::byte* to, float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t magnitude = bits & 0x7fffffff;
    std::uint32_t result;
    if (magnitude > 0x7f800000) {
      result = 0x7e00 | (magnitude >> 13 & 0x3ff);
    } else if (magnitude >= 0x477ff000) {
      result = 0x7c00;  // past the middle between the greatest number and the next power of two
    } else if (magnitude < 0x38800000) {
      // 0.5 has an ulp of 2^-24, that of subnormal numbers: adding it rounds.
      result = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000;
    } else {
      result = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
    }
    Plain<std::uint16_t>::store(to, static_cast<std::uint16_t>(result | (bits >> 16 & 0x8000)));
  }
};
template <DType kFormat>
struct F8 {
  using Number = float;
  static constexpr std::size_t kBytes = 1;
  static float load(const std::byte* from) {
    static const std::array<float, 256> values = [] {
      std::array<float, 256> all{};
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(decode_small_float(static_cast<std::uint16_t>(i), kFormat));
      return all;
    }();
    return values[static_cast<std::size_t>(*from)];
  }
  static void store(std::byte* to, float x) { *to = static_cast<std::byte>(encode_small_float(x, kFormat)); }
};

template <class T>
constexpr bool kComplex = false;
template <class T>
constexpr bool kComplex<std::complex<T>> = true;

template <class T>
T added(T a, T b) {
  if constexpr (std::integral<T>)
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  else
    return a + b;
}
template <class T>
T multiplied(T a, T b) {
  if constexpr (std::integral<T>)
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  else if constexpr (kComplex<T>)
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  else
    return a * b;
}

/// out[i] = out[i] op right[i].
template <class W>
void combine(ReduceOp op, W* __restrict out, const W* __restrict right, std::size_t n) {
  auto each = [&](auto&& f) {
    for (std::size_t i = 0; i < n; ++i) out[i] = f(out[i], right[i]);
  };
  if constexpr (!kComplex<W>) {
    if (op == ReduceOp::min) return each([](W a, W b) { return a < b || a != a ? a : b; });
    if (op == ReduceOp::max) return each([](W a, W b) { return a > b || a != a ? a : b; });
  }
  if constexpr (std::integral<W>) {
    if (op == ReduceOp::band) return each([](W a, W b) { return static_cast<W>(a & b); });
    if (op == ReduceOp::bor) return each([](W a, W b) { return static_cast<W>(a | b); });
    if (op == ReduceOp::bxor) return each([](W a, W b) { return static_cast<W>(a ^ b); });
  }
  if (op == ReduceOp::prod) return each(multiplied<W>);
  each(added<W>);
}

template <class W, class T>
W widened(T x) {
  if constexpr (std::integral<T>)
    return static_cast<W>(+x);
  else
    return static_cast<W>(x);
}

template <class Stored, class W>
void load_numbers(const Reduction& r, W* __restrict to, const std::byte* __restrict from, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = widened<W>(Stored::load(from + i * Stored::kBytes));
  if constexpr (!std::integral<W>)
    if (r.op == ReduceOp::premul_sum) {
      if constexpr (kComplex<W>) {
        const auto factor = static_cast<typename W::value_type>(r.factor);
        for (std::size_t i = 0; i < n; ++i) to[i] = {to[i].real() * factor, to[i].imag() * factor};
      } else {
        for (std::size_t i = 0; i < n; ++i) to[i] *= static_cast<W>(r.factor);
      }
    }
}

template <class Stored, class W>
void store_numbers(const Reduction& r, std::byte* __restrict to, W* __restrict from, std::size_t n) {
  if (r.op == ReduceOp::avg) {
    // A product with a power of two has the quotient's bits, and costs less.
    const bool is_power = std::has_single_bit(static_cast<unsigned>(r.ranks));
    if constexpr (kComplex<W>) {
      const auto count = static_cast<typename W::value_type>(r.ranks);
      for (std::size_t i = 0; i < n; ++i) from[i] = {from[i].real() / count, from[i].imag() / count};
    } else if (std::floating_point<W> && is_power) {
      const W share = W{1} / static_cast<W>(r.ranks);
      for (std::size_t i = 0; i < n; ++i) from[i] = static_cast<W>(from[i] * share);
    } else {
      for (std::size_t i = 0; i < n; ++i) from[i] = static_cast<W>(from[i] / static_cast<W>(r.ranks));
    }
  }
  for (std::size_t i = 0; i < n; ++i) Stored::store(to + i * Stored::kBytes, static_cast<typename Stored::Number>(from[i]));
}

/// Elements that are reduced at a time, so that what is between loads and stores stays in the nearest cache.
constexpr std::size_t kChunk = 512;

template <class W, class Load>
void fold(ReduceOp op, std::int32_t first, std::int32_t count, std::size_t n, const Load& load, W* out) {
  if (count == 1) return load(first, out);
  const std::int32_t left = left_of(count);
  fold(op, first, left, n, load, out);
  W right[kChunk];
  fold(op, first + left, count - left, n, load, right);
  combine(op, out, right, n);
}

template <class Stored, class W>
struct Of {
  static void all(const Reducer& reducer, std::byte* to, std::span<const std::byte* const> parts, std::size_t elements) {
    const Reduction& r = reducer.reduction();
    W chunk[kChunk];
    for (std::size_t begin = 0; begin < elements; begin += kChunk) {
      const std::size_t n = std::min(kChunk, elements - begin), at = begin * Stored::kBytes;
      auto load = [&](std::int32_t part, W* out) { load_numbers<Stored, W>(r, out, parts[static_cast<std::size_t>(part)] + at, n); };
      fold(r.op, 0, static_cast<std::int32_t>(parts.size()), n, load, chunk);
      store_numbers<Stored, W>(r, to + at, chunk, n);
    }
  }
  static void add(const Reducer& reducer, std::byte* to, std::span<const std::byte* const> parts, std::size_t elements) {
    W chunk[kChunk];
    for (std::size_t begin = 0; begin < elements; begin += kChunk) {
      const std::size_t n = std::min(kChunk, elements - begin), at = begin * sizeof(W);
      auto load = [&](std::int32_t part, W* out) { std::memcpy(out, parts[static_cast<std::size_t>(part)] + at, n * sizeof(W)); };
      fold(reducer.reduction().op, 0, static_cast<std::int32_t>(parts.size()), n, load, chunk);
      std::memcpy(to + at, chunk, n * sizeof(W));
    }
  }
  static void widen(const Reducer& reducer, std::byte* to, const std::byte* from, std::size_t elements) {
    W chunk[kChunk];
    for (std::size_t begin = 0; begin < elements; begin += kChunk) {
      const std::size_t n = std::min(kChunk, elements - begin);
      load_numbers<Stored, W>(reducer.reduction(), chunk, from + begin * Stored::kBytes, n);
      std::memcpy(to + begin * sizeof(W), chunk, n * sizeof(W));
    }
  }
  static void narrow(const Reducer& reducer, std::byte* to, const std::byte* from, std::size_t elements) {
    W chunk[kChunk];
    for (std::size_t begin = 0; begin < elements; begin += kChunk) {
      const std::size_t n = std::min(kChunk, elements - begin);
      std::memcpy(chunk, from + begin * sizeof(W), n * sizeof(W));
      store_numbers<Stored, W>(reducer.reduction(), to + begin * Stored::kBytes, chunk, n);
    }
  }
};

template <class Stored, class W>
Reducer::Functions of(ReduceOp op) {
  using F = Of<Stored, W>;
  const bool changes = op == ReduceOp::avg || op == ReduceOp::premul_sum || std::is_same_v<Stored, Boolean>;
  return {F::all, F::add, F::widen, F::narrow, sizeof(W), changes || !std::is_same_v<typename Stored::Number, W> || Stored::kBytes != sizeof(W)};
}
template <class T>
Reducer::Functions of_integer(ReduceOp op) {
  if (op == ReduceOp::avg) return of<Plain<T>, std::conditional_t<std::is_signed_v<T> || sizeof(T) < 8, std::int64_t, std::uint64_t>>(op);
  return of<Plain<T>, T>(op);
}

Reducer::Functions functions_of(DType dtype, ReduceOp op) {
  switch (dtype) {
    case DType::f64: return of<Plain<double>, double>(op);
    case DType::f32: return of<Plain<float>, float>(op);
    case DType::f16: return of<F16, float>(op);
    case DType::bf16: return of<Bf16, float>(op);
    case DType::f8e4m3fn: return of<F8<DType::f8e4m3fn>, float>(op);
    case DType::f8e5m2: return of<F8<DType::f8e5m2>, float>(op);
    case DType::c64: return of<Plain<std::complex<float>>, std::complex<float>>(op);
    case DType::c128: return of<Plain<std::complex<double>>, std::complex<double>>(op);
    case DType::i8: return of_integer<std::int8_t>(op);
    case DType::i16: return of_integer<std::int16_t>(op);
    case DType::i32: return of_integer<std::int32_t>(op);
    case DType::i64: return of_integer<std::int64_t>(op);
    case DType::u8: return of_integer<std::uint8_t>(op);
    case DType::u16: return of_integer<std::uint16_t>(op);
    case DType::u32: return of_integer<std::uint32_t>(op);
    case DType::u64: return of_integer<std::uint64_t>(op);
    case DType::boolean: return of<Boolean, std::uint8_t>(op);
    default: return {};
  }
}

}  // namespace

std::string reduction_refusal(DType dtype, ReduceOp op) {
  if (functions_of(dtype, op).all == nullptr) return fmt::format("the dtype must be one that is reduced, got {}", name(dtype));
  const DTypeKind of = kind(dtype);
  const bool is_bitwise = op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor;
  const bool is_whole = of == DTypeKind::integral || of == DTypeKind::boolean;
  const bool is_ordered = op == ReduceOp::min || op == ReduceOp::max;
  if (is_bitwise && !is_whole) return fmt::format("the dtype of {} must be an integer or bool, got {}", name(op), name(dtype));
  if (is_ordered && of == DTypeKind::complex) return fmt::format("the dtype of {} must not be complex, got {}", name(op), name(dtype));
  if (op == ReduceOp::premul_sum && is_whole) return fmt::format("the dtype of premul_sum must be floating or complex, got {}", name(dtype));
  if (op == ReduceOp::avg && of == DTypeKind::boolean) return "the dtype of avg must be a number's, got bool";
  return {};
}

// Of truth values, 0 and 1, sum and max are "or", prod and min "and".
Reducer::Reducer(const Reduction& reduction) : reduction_(reduction), functions_(functions_of(reduction.dtype, reduction.op)) {
  if (reduction.dtype == DType::boolean && reduction.op == ReduceOp::sum) reduction_.op = ReduceOp::max;
}

}}}}  // namespace clutch::v0::dist::detail
