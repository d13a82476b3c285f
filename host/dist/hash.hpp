// SPDX-License-Identifier: Apache-2.0
// FNV-1a, by which ranks tell each other that long texts and lists are the same.
#pragma once
#include <cstdint>
#include <string_view>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

class Hash {
 public:
  void add(std::uint64_t number) noexcept {
    for (int byte = 0; byte < 8; ++byte) add_byte(number >> (8 * byte) & 0xff);
  }
  void add(std::string_view text) noexcept {
    for (const char c : text) add_byte(static_cast<unsigned char>(c));
  }
  /// Never 0.
  std::uint64_t value() const noexcept { return value_ | 1; }

 private:
  void add_byte(std::uint64_t byte) noexcept { value_ = (value_ ^ byte) * 1099511628211ULL; }
  std::uint64_t value_ = 14695981039346656037ULL;
};

}}}}  // namespace clutch::v0::dist::detail
