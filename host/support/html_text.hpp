// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

/// Bytes of the UTF-8 character that the text begins with; 0 if there is none, or one that XML does not have.
inline std::size_t character_bytes(std::string_view text) {
  auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 || first == '\t' || first == '\n' ? 1 : 0;
  const std::size_t count = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  std::uint32_t code = first & (0x7Fu >> count);
  for (std::size_t i = 1; i < count; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3F);
  }
  constexpr std::array<std::uint32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool other =
      first < 0xC2 || first > 0xF4 || code < kLeast.at(count) || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000) || (code & 0xFFFE) == 0xFFFE;
  return other ? 0 : count;
}

/// The text as it stands in HTML and XML, in attributes, too. Bytes that are no text become U+FFFD.
inline std::string html_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    const char c = text[0];
    if (bytes == 0)
      out += "\xEF\xBF\xBD";
    else if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += text.substr(0, bytes);
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return out;
}

}}}  // namespace clutch::v0::detail
