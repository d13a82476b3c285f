// SPDX-License-Identifier: Apache-2.0
// Handles for the Windows implementations of support/. Included by these alone, since windows.h defines many macros.
#pragma once
#ifndef NOMINMAX
#define NOMINMAX
#endif
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <string>
#include <utility>

namespace clutch { inline namespace v0 { namespace detail {

/// A handle of Windows, closed at the end of its life.
class WindowsHandle {
 public:
  explicit WindowsHandle(HANDLE handle = INVALID_HANDLE_VALUE) : handle_(handle) {}
  ~WindowsHandle() { close(); }
  WindowsHandle(WindowsHandle&& other) noexcept : handle_(std::exchange(other.handle_, INVALID_HANDLE_VALUE)) {}
  WindowsHandle& operator=(WindowsHandle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  explicit operator bool() const { return handle_ != INVALID_HANDLE_VALUE && handle_ != nullptr; }
  HANDLE get() const { return handle_; }
  HANDLE release() { return std::exchange(handle_, INVALID_HANDLE_VALUE); }
  /// False if the system could not close it, or there is none.
  bool close() { return *this && ::CloseHandle(release()) != 0; }

 private:
  HANDLE handle_;
};

/// The system's text of an error code.
inline std::string reason_of(DWORD error) {
  char text[300] = {};
  DWORD length = ::FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, nullptr, error, 0, text, sizeof text, nullptr);
  while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r' || text[length - 1] == ' ' || text[length - 1] == '.')) --length;
  return length > 0 ? std::string(text, length) : "error " + std::to_string(error);
}

/// Writes all bytes. False, with the reason in GetLastError(), if that fails.
inline bool write_all(HANDLE file, const void* bytes, std::size_t count) {
  const char* next = static_cast<const char*>(bytes);
  while (count > 0) {
    DWORD written = 0;
    const DWORD block = count > (1u << 30) ? 1u << 30 : static_cast<DWORD>(count);
    if (!::WriteFile(file, next, block, &written, nullptr) || written == 0) return false;
    next += written, count -= written;
  }
  return true;
}

}}}  // namespace clutch::v0::detail
