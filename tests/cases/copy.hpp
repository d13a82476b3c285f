// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of copy_ and cast: what tests and benches share.
#include <clutch/ops/copy.hpp>

#include "support/host_model.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace clutch::cases {

struct CopyCase {
  static constexpr std::string_view kStem = "copy";
  static constexpr DType kReals[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8e4m3fn, DType::f8e5m2, DType::f8e8m0fnu,
                                     DType::i8,  DType::u8,  DType::i16, DType::i32,  DType::i64,      DType::boolean};
  static std::vector<std::int64_t> lengths(std::string_view level) {
    std::vector<std::int64_t> n{0, 1, 7, 16, 17, 8193, 33001};
    if (level == "nightly") n.insert(n.end(), {1 << 20, (1 << 22) + 3});
    return n;
  }
  static double bytes(std::int64_t n, DType from, DType to) { return static_cast<double>(n) * (bits(from) + bits(to)) / 8; }

  /// Element i of `from` cast into element i of `to`. Integers go through exact 64-bit arithmetic where a double would round.
  static void reference(void* to, DType to_type, const void* from, DType from_type, std::size_t i, Overflow overflow) {
    bool from_whole = is_integral(from_type) || from_type == DType::boolean;
    if (!from_whole) return model::store_at(to, i, to_type, model::value_at(from, i, from_type), overflow);
    auto size = static_cast<std::size_t>(bits(from_type) / 8);
    std::uint64_t raw = 0;
    std::memcpy(&raw, static_cast<const char*>(from) + i * size, size);
    if (from_type == DType::boolean) raw = raw != 0;
    bool negative = from_type != DType::u8 && from_type != DType::boolean && (raw >> (8 * size - 1) & 1);
    if (negative && size < 8) raw |= ~std::uint64_t{0} << (8 * size);
    auto whole = static_cast<std::int64_t>(raw);
    if (is_integral(to_type)) {
      std::memcpy(static_cast<char*>(to) + i * static_cast<std::size_t>(bits(to_type) / 8), &raw, static_cast<std::size_t>(bits(to_type) / 8));
    } else if (to_type == DType::f32) {
      auto v = static_cast<float>(whole);
      std::memcpy(static_cast<char*>(to) + 4 * i, &v, 4);
    } else if (to_type == DType::boolean) {
      static_cast<std::uint8_t*>(to)[i] = whole != 0;
    } else if (to_type == DType::f64) {
      auto v = static_cast<double>(whole);
      std::memcpy(static_cast<char*>(to) + 8 * i, &v, 8);
    } else if (to_type == DType::f8e8m0fnu) {
      static_cast<std::uint8_t*>(to)[i] = model::to_e8m0(static_cast<double>(static_cast<float>(whole)));
    } else {
      // 64-bit integers round once to a small float: 53 bits with a sticky one decide the same way.
      auto magnitude = static_cast<std::uint64_t>(whole < 0 ? 0 - static_cast<std::uint64_t>(whole) : static_cast<std::uint64_t>(whole));
      if (magnitude >> 53) magnitude = (magnitude >> 11 | ((magnitude & 2047) != 0)) << 11;
      auto v = static_cast<double>(magnitude);
      model::store_at(to, i, to_type, whole < 0 ? -v : v, overflow);
    }
  }
};

}  // namespace clutch::cases
