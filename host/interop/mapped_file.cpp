// SPDX-License-Identifier: Apache-2.0
#include "interop/mapped_file.hpp"

#include <clutch/error.hpp>

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

[[noreturn]] void fail(std::string_view op, std::string_view what, const std::string& path) {
  throw Error(ErrorCode::io, op, fmt::format("{} {}: {}", what, path, std::generic_category().message(errno)));
}

struct File {
  int number = -1;
  ~File() {
    if (number >= 0) ::close(number);
  }
};

}  // namespace

MappedFile map_file(const std::string& path, std::string_view op) {
  File file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.number < 0) fail(op, "cannot open", path);
  struct stat status {};
  if (::fstat(file.number, &status) != 0) fail(op, "cannot look at", path);
  if (!S_ISREG(status.st_mode)) throw Error(ErrorCode::io, op, path + " is no regular file");
  auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return {};
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (memory == MAP_FAILED) fail(op, "cannot map", path);
  return {std::shared_ptr<const void>(memory, [size](const void* p) { ::munmap(const_cast<void*>(p), size); }), {static_cast<const std::byte*>(memory), size}};
}

void write_file(const std::string& path, std::span<const std::span<const std::byte>> parts, std::string_view op, unsigned mode) {
  static std::atomic<unsigned> count{0};
  std::string temporary = fmt::format("{}.{}.{}", path, ::getpid(), count++);
  File file{::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)};
  if (file.number < 0) fail(op, "cannot write beside", path);
  try {
    for (std::span<const std::byte> part : parts)
      while (!part.empty()) {
        ssize_t written = ::write(file.number, part.data(), part.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) fail(op, "cannot write", temporary);
        part = part.subspan(static_cast<std::size_t>(written));
      }
    if (::close(std::exchange(file.number, -1)) != 0) fail(op, "cannot close", temporary);
    if (std::rename(temporary.c_str(), path.c_str()) != 0) fail(op, "cannot rename to", path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

}}}  // namespace clutch::v0::detail
