// SPDX-License-Identifier: Apache-2.0
#pragma once
// The rows of docs/accelerator.md. A row's case prints what calls of clutch's do; the function of its name in the .py file beside prints the same lines by
// PyTorch's calls. Numbers that depend on the device are told by what holds of them.
#include <clutch/clutch.hpp>

#include <concepts>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <unistd.h>

namespace clutch::rows {

/// The text of a value: true, 12, 0.5, "name" without marks, [1 2 3].
template <class T>
std::string to_text(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::integral<T>) {
    return std::to_string(value);
  } else if constexpr (std::floating_point<T>) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", static_cast<double>(value));
    return text;
  } else if constexpr (std::is_convertible_v<T, std::string_view>) {
    return std::string(std::string_view(value));
  } else {
    std::string all;
    for (const auto& one : value) all += (all.empty() ? "" : " ") + to_text(one);
    return "[" + all + "]";
  }
}

/// What a case prints.
class Lines {
 public:
  /// A line `what: value`.
  template <class T>
  void operator()(std::string_view what, const T& value) {
    text_ += "  " + std::string(what) + ": " + to_text(value) + "\n";
  }
  /// A line that says whether the call is refused by an Error.
  template <class Call>
  void refused(std::string_view what, Call call) {
    bool taken = true;
    try {
      (void)call();
    } catch (const Error&) {
      taken = false;
    }
    (*this)(what, taken ? "taken" : "refused");
  }
  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

using Case = void (*)(Lines& line);

/// Enters a case into the program's list.
struct Entry {
  Entry(std::string_view name, Case run);
};

#define ROW(name)                               \
  void row_##name(Lines& line);                 \
  const Entry entry_##name(#name, &row_##name); \
  void row_##name(Lines& line)

/// Numbers of a tensor that is on the stream, which waits.
inline std::vector<float> numbers(const Tensor& x, const Stream& stream = {}) { return x.to_host<float>(stream); }

/// A path for a file of this process.
inline std::string temporary_file(std::string_view name) {
  return (std::filesystem::temp_directory_path() / ("accelerator_rows_" + std::to_string(::getpid()) + "_" + std::string(name))).string();
}

/// The last visible device: another one than the first where there are two.
inline Device last_device() { return device(device_count() - 1); }

}  // namespace clutch::rows
