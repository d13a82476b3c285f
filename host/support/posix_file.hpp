// SPDX-License-Identifier: Apache-2.0
#pragma once
// File descriptors, for the POSIX implementations of support/.
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <system_error>

namespace clutch { inline namespace v0 { namespace detail {

/// The text of an errno.
inline std::string reason(int error) { return std::generic_category().message(error); }

/// A file descriptor that is closed when this goes; negative: none.
struct Descriptor {
  int number = -1;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

/// True if all bytes were written; else errno has the reason.
inline bool write_all(int number, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(number, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

}}}  // namespace clutch::v0::detail
