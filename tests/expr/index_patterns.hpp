// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whole numbers that are made of four places b, h, q and kv, traced and on the host: indices that derivatives are tried with.
#include <clutch/expr.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace clutch::testing {

struct IndexPattern {
  std::string name;
  std::function<Expr(Expr b, Expr h, Expr q, Expr kv)> traced;
  std::function<std::int64_t(std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t kv)> host;
  bool plain = false;  ///< a place, counted upwards or downwards, a difference of two, or a number
};

namespace patterns {

using Whole = std::int64_t;
inline Whole floor_div(Whole a, Whole b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }
inline Whole floor_mod(Whole a, Whole b) { return a - b * floor_div(a, b); }
inline Whole trunc_div(Whole a, Whole b) { return a / b; }
inline Whole abs(Whole a) { return a < 0 ? -a : a; }
inline Whole max(Whole a, Whole b) { return std::max(a, b); }
inline Whole select(bool condition, Whole a, Whole b) { return condition ? a : b; }
/// Towards 0.
inline Whole half(Whole a) { return a / 2; }
inline Expr half(const Expr& a) { return cast(a * 0.5f, DType::i32); }
inline Whole byte_of(Whole a) { return static_cast<std::int8_t>(a); }
inline Expr byte_of(const Expr& a) { return cast(a, DType::i8); }
inline Whole wide(Whole a) { return a; }
inline Expr wide(const Expr& a) { return cast(a, DType::i64); }
inline Whole as_float(Whole a) { return a; }
inline Expr as_float(const Expr& a) { return cast(cast(a, DType::f32), DType::i32); }
/// a + 2^31 - 1, which wraps in i32.
inline Whole wrapped(Whole a) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + 0x7fffffffu); }
inline Expr wrapped(const Expr& a) { return cast(a + 0x7fffffff, DType::i64); }

template <class F>
IndexPattern made(const char* name, F f, bool plain = false) {
  return {name, f, f, plain};
}

}  // namespace patterns

/// For q up to q_len and kv up to kv_len.
inline std::vector<IndexPattern> index_patterns(std::int64_t q_len, std::int64_t kv_len) {
  using namespace patterns;
  const int last_q = static_cast<int>(q_len) - 1, last_kv = static_cast<int>(kv_len) - 1;
#define CLUTCH_PATTERN(expression) \
  [=]([[maybe_unused]] auto b, [[maybe_unused]] auto h, [[maybe_unused]] auto q, [[maybe_unused]] auto kv) { return expression; }
  return {
      made("q", CLUTCH_PATTERN(q), true),
      made("kv", CLUTCH_PATTERN(kv), true),
      made("L - 1 - q", CLUTCH_PATTERN(last_q - q), true),
      made("S - 1 - kv", CLUTCH_PATTERN(last_kv - kv), true),
      made("q - kv", CLUTCH_PATTERN(q - kv), true),
      made("q - kv + 2", CLUTCH_PATTERN(q - kv + 2), true),
      made("kv - q", CLUTCH_PATTERN(kv - q), true),
      made("kv - q + 3", CLUTCH_PATTERN(kv - q + 3), true),
      made("h", CLUTCH_PATTERN(h), true),
      made("b", CLUTCH_PATTERN(b), true),
      made("2", CLUTCH_PATTERN(q - q + 2), true),
      made("q + 1", CLUTCH_PATTERN(q + 1)),
      made("kv - 1", CLUTCH_PATTERN(kv - 1)),
      made("1 + h", CLUTCH_PATTERN(1 + h)),
      made("1 - b", CLUTCH_PATTERN(1 - b)),
      made("q + kv", CLUTCH_PATTERN(q + kv)),
      made("2 q - 2 kv", CLUTCH_PATTERN(2 * q - kv * 2)),
      made("2 q - kv", CLUTCH_PATTERN(2 * q - kv)),
      made("(q - kv) + (kv - q) + q", CLUTCH_PATTERN((q - kv) + (kv - q) + q)),
      made("-(kv - q)", CLUTCH_PATTERN(-(kv - q))),
      made("|q - kv|", CLUTCH_PATTERN(abs(q - kv))),
      made("q kv", CLUTCH_PATTERN(q * kv)),
      made("max(q, kv)", CLUTCH_PATTERN(max(q, kv))),
      made("q < kv ? h : q - kv", CLUTCH_PATTERN(select(q < kv, h, q - kv))),
      made("q - kv < 1 ? 3 : h", CLUTCH_PATTERN(select(q - kv < 1, h - h + 3, h))),
      made("h + q - kv", CLUTCH_PATTERN(h + q - kv)),
      made("floor(q / 2)", CLUTCH_PATTERN(floor_div(q, 2))),
      made("floor(kv / 2)", CLUTCH_PATTERN(floor_div(kv, 2))),
      made("floor(q / 2) - floor(kv / 2)", CLUTCH_PATTERN(floor_div(q, 2) - floor_div(kv, 2))),
      made("floor((q - kv) / 2) + 2", CLUTCH_PATTERN(floor_div(q - kv, 2) + 2)),
      made("q mod 2", CLUTCH_PATTERN(floor_mod(q, 2))),
      made("kv mod 3", CLUTCH_PATTERN(floor_mod(kv, 3))),
      made("q mod 2 - kv mod 2", CLUTCH_PATTERN(floor_mod(q, 2) - floor_mod(kv, 2))),
      made("(q - kv) mod 3", CLUTCH_PATTERN(floor_mod(q - kv, 3))),
      made("trunc((kv - q) / 2)", CLUTCH_PATTERN(trunc_div(kv - q, 2))),
      made("half(q)", CLUTCH_PATTERN(half(q))),
      made("half(q) - half(kv)", CLUTCH_PATTERN(half(q) - half(kv))),
      made("half(kv - q)", CLUTCH_PATTERN(half(kv - q))),
      made("half(L - 1 - q)", CLUTCH_PATTERN(half(last_q - q))),
      made("i8(q)", CLUTCH_PATTERN(byte_of(q))),
      made("i8(126 + q) - i8(126 + kv)", CLUTCH_PATTERN(byte_of(126 + q) - byte_of(126 + kv))),
      made("i64(q)", CLUTCH_PATTERN(wide(q))),
      made("i64(q) - i64(kv) + 1", CLUTCH_PATTERN(wide(q) - wide(kv) + 1)),
      made("i64(L - 1 - q)", CLUTCH_PATTERN(wide(last_q - q))),
      made("float(q) - float(kv)", CLUTCH_PATTERN(as_float(q) - as_float(kv))),
      made("wrapped(q) - wrapped(kv)", CLUTCH_PATTERN(wrapped(q) - wrapped(kv))),
      made("wrapped(q - kv)", CLUTCH_PATTERN(wrapped(q - kv))),
  };
#undef CLUTCH_PATTERN
}

}  // namespace clutch::testing
