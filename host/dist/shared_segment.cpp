// SPDX-License-Identifier: Apache-2.0
#include "dist/shared_segment.hpp"
#include "support/shared_file.hpp"
#include "support/system.hpp"

#include <fmt/format.h>
#include <clutch/error.hpp>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#ifdef __linux__
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

#ifdef __linux__

namespace {

/// 0 where it is not known.
std::int64_t this_host() {
  static const auto machine = static_cast<std::int64_t>(clutch::detail::this_process().machine);
  return machine;
}

/// Segments that this process has made and that can be found, by their files.
struct Registry {
  std::mutex mutex;
  std::map<std::int64_t, std::weak_ptr<SharedSegment>> segments;
  static Registry& instance() {
    static auto& registry = *new Registry;  // never destroyed: segments may live until the process ends
    return registry;
  }
};

}  // namespace

std::shared_ptr<SharedSegment> SharedSegment::make(std::size_t bytes) {
  const int file = ::memfd_create("clutch", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) throw Error(ErrorCode::not_supported, "dist", fmt::format("memfd_create failed: {}", std::strerror(errno)));
  // Pages are there from now on: a later write to one that cannot be had would end the process.
  int status = ::posix_fallocate(file, 0, static_cast<off_t>(bytes));
  void* at = MAP_FAILED;
  if (status == 0) {
    ::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) status = errno;
  }
  if (status != 0) {
    ::close(file);
    throw Error(ErrorCode::out_of_memory, "dist", fmt::format("no shared memory of {} bytes: {}", bytes, std::strerror(status)));
  }
  clutch::detail::want_large_pages(at, bytes);
  const SegmentName name{.host = this_host(), .process = ::getpid(), .file = file, .bytes = static_cast<std::int64_t>(bytes)};
  std::shared_ptr<SharedSegment> segment(new SharedSegment({static_cast<std::byte*>(at), bytes}, name, file));
  Registry& registry = Registry::instance();
  const std::lock_guard lock(registry.mutex);
  registry.segments[file] = segment;
  return segment;
}

std::shared_ptr<SharedSegment> SharedSegment::find(const SegmentName& name) {
  if (name.host == 0 || name.host != this_host() || name.process != ::getpid()) return open(name);
  Registry& registry = Registry::instance();
  const std::lock_guard lock(registry.mutex);
  const auto at = registry.segments.find(name.file);
  return at == registry.segments.end() ? nullptr : at->second.lock();
}

std::shared_ptr<SharedSegment> SharedSegment::open(const SegmentName& name) {
  if (name.host == 0 || name.host != this_host()) return nullptr;
  const int file = ::open(fmt::format("/proc/{}/fd/{}", name.process, name.file).c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  struct stat facts {};
  const auto bytes = static_cast<std::size_t>(name.bytes);
  void* at = ::fstat(file, &facts) == 0 && facts.st_size == name.bytes ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  ::close(file);
  if (at == MAP_FAILED) return nullptr;
  clutch::detail::want_large_pages(at, bytes);
  return std::shared_ptr<SharedSegment>(new SharedSegment({static_cast<std::byte*>(at), bytes}, name, -1));
}

SharedSegment::~SharedSegment() {
  forget_name();
  ::munmap(bytes_.data(), bytes_.size());
}

void SharedSegment::forget_name() noexcept {
  const int file = std::exchange(file_, -1);
  if (file < 0) return;
  Registry& registry = Registry::instance();
  const std::lock_guard lock(registry.mutex);
  registry.segments.erase(file);
  ::close(file);
}

#else

std::shared_ptr<SharedSegment> SharedSegment::make(std::size_t) { throw Error(ErrorCode::not_supported, "dist", "memory that processes share needs Linux"); }
std::shared_ptr<SharedSegment> SharedSegment::open(const SegmentName&) { return nullptr; }
std::shared_ptr<SharedSegment> SharedSegment::find(const SegmentName&) { return nullptr; }
SharedSegment::~SharedSegment() = default;
void SharedSegment::forget_name() noexcept {}

#endif

}}}}  // namespace clutch::v0::dist::detail
