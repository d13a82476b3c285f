// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "support/system.hpp"

#include <fmt/format.h>

#include <string>

namespace clutch { inline namespace v0 { namespace detail {

/// A library loaded at run time and never unloaded. why_not() names the first thing that is missing.
class SharedLibrary {
 public:
  SharedLibrary(const char* name, const char* file) : name_(name) {
    std::string reason;
    handle_ = load_library(file, reason);
    if (!handle_) why_not_ = fmt::format("{} cannot be loaded: {}", name, reason);
  }
  /// Empty if the library was loaded and all functions were found.
  const std::string& why_not() const { return why_not_; }

  template <class F>
  void find(F& function, const char* symbol) {
    if (!handle_) return;
    function = reinterpret_cast<F>(find_symbol(handle_, symbol));
    if (!function) why_not_ = fmt::format("{} has no {}", name_, symbol);
  }

 private:
  const char* name_;
  void* handle_ = nullptr;
  std::string why_not_;
};

}}}  // namespace clutch::v0::detail
