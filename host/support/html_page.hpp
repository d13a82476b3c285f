// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the library's pages have in common: inline CSS and SVG, no script, no network; for phones and wide screens, light and dark.
#include "support/html_text.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

// Okabe and Ito's colours, which stay apart for the colour-blind.
inline constexpr std::array kPageColours{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9"};
inline constexpr const char* kPageOther = "#8a8f98";

inline constexpr std::string_view kPageStyle = R"(
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#5b6470;--line:#d7dce2;--back:#fff;--panel:#f5f7f9}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ed;--soft:#9aa4b0;--line:#3a424c;--back:#14181d;--panel:#1d232a}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1400px;padding:16px;font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--back)}
h1{font-size:22px;margin:4px 0 12px}h2{font-size:17px;margin:26px 0 8px}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:8px}
.facts div{background:var(--panel);border-radius:6px;padding:8px 10px}
.note,.facts b,h1,h2,h3{overflow-wrap:anywhere}
.facts b{display:block;font-size:18px;font-weight:600}.facts span,.note{color:var(--soft);font-size:13px}
.row{margin:6px 0}.row span{font-size:12px;color:var(--soft)}
.row svg{display:block;width:100%;height:22px;background:var(--panel);border-radius:3px}
.axis{display:flex;justify-content:space-between;font-size:12px;color:var(--soft)}
.legend{display:flex;flex-wrap:wrap;gap:4px 14px;font-size:13px;margin:8px 0}
.legend i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:5px}
.legend span{overflow-wrap:anywhere}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:14px}
th,td{padding:5px 8px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left;white-space:normal;overflow-wrap:anywhere}
th{color:var(--soft);font-weight:500}
@media(max-width:700px){.more{display:none}body{padding:10px}th,td{padding:4px 5px;font-size:13px}}
)";

/// The page up to its first words. `style` is what it has besides kPageStyle.
inline std::string page_head(std::string_view title, std::string_view style) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/>"
      "<title>{}</title><style>{}{}</style></head><body>",
      html_text(title), kPageStyle, style);
}

/// Begin and end of a text that is too long for a page.
inline std::string shortened(std::string_view text) {
  constexpr std::size_t kMost = 160, kBegin = 100, kEnd = 40;
  if (text.size() <= kMost) return std::string(text);
  // Not within a character of UTF-8.
  auto within = [&](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80; };
  std::size_t begin = kBegin, end = text.size() - kEnd;
  while (begin > kBegin - 3 && within(begin)) --begin;
  while (end < text.size() - kEnd + 3 && within(end)) ++end;
  return fmt::format("{}…{}", text.substr(0, begin), text.substr(end));
}

/// Text of a page in which a name may break after what parts its words, and is cut if it is too long; not for attributes.
inline std::string html_words(std::string_view text) {
  std::string out;
  const std::string escaped = html_text(shortened(text));
  for (std::size_t i = 0; i < escaped.size(); ++i) {
    out += escaped[i];
    const bool last_colon = escaped[i] == ':' && (i + 1 == escaped.size() || escaped[i + 1] != ':');
    if (i + 1 < escaped.size() && (escaped[i] == '_' || escaped[i] == '/' || escaped[i] == ',' || last_colon)) out += "<wbr/>";
  }
  return out;
}

inline std::string page_fact(std::string_view name, std::string_view value) { return fmt::format("<div><span>{}</span><b>{}</b></div>", name, value); }

inline std::string duration_text(double us) {
  if (us >= 1e6) return fmt::format("{:.2f} s", us * 1e-6);
  return us >= 1e3 ? fmt::format("{:.2f} ms", us * 1e-3) : fmt::format("{:.1f} µs", us);
}

inline std::string bytes_text(std::uint64_t bytes) {
  if (bytes >= 1ull << 30) return fmt::format("{:.2f} GiB", std::ldexp(static_cast<double>(bytes), -30));
  if (bytes >= 1ull << 20) return fmt::format("{:.2f} MiB", std::ldexp(static_cast<double>(bytes), -20));
  if (bytes >= 1ull << 10) return fmt::format("{:.1f} KiB", std::ldexp(static_cast<double>(bytes), -10));
  return fmt::format("{} B", bytes);
}

}}}  // namespace clutch::v0::detail
