// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/error.hpp>

#include <fmt/format.h>

#include <regex>
#include <string>

namespace clutch::bench {

/// What --filter says. Errors: invalid_argument for text that is no regular expression.
inline std::regex filter_pattern(const std::string& text) {
  try {
    return std::regex(text);
  } catch (const std::regex_error& e) {
    throw Error(ErrorCode::invalid_argument, "clutch-bench", fmt::format("--filter '{}' is no regular expression: {}", text, e.what()));
  }
}

}  // namespace clutch::bench
