// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fmt/format.h>

#include <dlfcn.h>

#include <string>

namespace clutch { inline namespace v0 { namespace detail {

/// A library loaded at run time and never unloaded. why_not() names the first thing that is missing.
class SharedLibrary {
 public:
  SharedLibrary(const char* name, const char* file) : name_(name), handle_(::dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_) return;
    const char* reason = ::dlerror();
    why_not_ = fmt::format("{} cannot be loaded: {}", name, reason ? reason : "no reason given");
  }
  /// Empty if the library was loaded and all functions were found.
  const std::string& why_not() const { return why_not_; }

  template <class F>
  void find(F& function, const char* symbol) {
    if (!handle_) return;
    function = reinterpret_cast<F>(::dlsym(handle_, symbol));
    if (!function) why_not_ = fmt::format("{} has no {}", name_, symbol);
  }

 private:
  const char* name_;
  void* handle_;
  std::string why_not_;
};

}}}  // namespace clutch::v0::detail
