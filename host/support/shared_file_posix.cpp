// SPDX-License-Identifier: Apache-2.0
#ifndef _WIN32
#include "support/shared_file.hpp"

#include "support/posix_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <thread>
#include <utility>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

/// A name next to `path` that no other process takes, also where containers share the folder.
std::string temporary_of(const std::string& path) {
  static std::atomic<unsigned> count{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return fmt::format("{}.{}.{}.{:x}.tmp", path, ::getpid(), count++, now);
}

std::string problem_of(const char* what, const std::string& of, int error) { return fmt::format("{} {}: {}", what, of, reason(error)); }

/// Brings the names of a path's folder to the disk; some file systems have no fsync of folders, and then it is as good as they can.
void sync_names(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  Descriptor folder{::open(slash == std::string::npos ? "." : path.substr(0, slash + 1).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (folder.number >= 0) ::fsync(folder.number);
}

/// What a small file of the system says; empty if it cannot be read.
std::string text_of(const std::string& path) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  std::string text(4096, '\0');
  const ssize_t got = file.number < 0 ? -1 : ::read(file.number, text.data(), text.size());
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return text;
}

/// Field 22 of /proc/PID/stat: the second field, a name in brackets, may have spaces and brackets of its own.
std::uint64_t begin_of(std::uint64_t id) {
  const std::string text = text_of(fmt::format("/proc/{}/stat", id));
  std::size_t at = text.rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = text.find(' ', at + 1);
  if (at == std::string::npos) return 0;
  std::uint64_t value = 0;
  for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) value = value * 10 + static_cast<std::uint64_t>(text[at] - '0');
  return value;
}

std::uint64_t machine_of() {
  const std::string boot = text_of("/proc/sys/kernel/random/boot_id");
  std::string ids(256, '\0');
  const ssize_t got = ::readlink("/proc/self/ns/pid", ids.data(), ids.size());
  if (boot.empty() || got <= 0) return 0;
  ids.resize(static_cast<std::size_t>(got));
  std::uint64_t hash = 14695981039346656037ull;  // FNV-1a: the number is kept in files
  for (const char c : boot + ids) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash | 1;
}

}  // namespace

SharedMapping::SharedMapping(std::string path, std::size_t bytes, unsigned mode) : path_(std::move(path)) {
  Descriptor file;
  auto give_up = [&](const char* what, int error) {
    problem_ = problem_of(what, path_.empty() ? fmt::format("{} bytes", bytes) : path_, error);
    if (!temporary_.empty()) ::unlink(std::exchange(temporary_, {}).c_str());
  };
  int flags = MAP_SHARED;
  if (path_.empty()) {
    flags |= MAP_ANONYMOUS;
  } else {
    std::string name = temporary_of(path_);
    file.number = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (file.number < 0) {
      give_up("cannot write next to", errno);
      return;
    }
    temporary_ = std::move(name);
    if (const int error = ::posix_fallocate(file.number, 0, static_cast<off_t>(bytes)); error != 0) {
      give_up("cannot find space for", error);
      return;
    }
  }
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file.number, 0);
  if (memory == MAP_FAILED) {
    give_up("cannot map", errno);
    return;
  }
  memory_ = static_cast<std::byte*>(memory), bytes_ = bytes;
}

SharedMapping::~SharedMapping() {
  if (memory_) ::munmap(memory_, bytes_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

std::string SharedMapping::publish() {
  if (path_.empty() || temporary_.empty()) return {};
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return problem_of("cannot rename to", path_, errno);
  temporary_.clear();
  return {};
}

SharedReader::SharedReader(const std::string& path) {
  // A name may be that of a pipe, which nobody would write to.
  file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status {};
  if (file_ < 0 || ::fstat(file_, &status) != 0) {
    problem_ = problem_of("cannot open", path, errno);
  } else if (!S_ISREG(status.st_mode)) {
    problem_ = fmt::format("cannot read {}: it is no regular file", path);
  } else {
    bytes_ = static_cast<std::uint64_t>(status.st_size);
  }
}

SharedReader::~SharedReader() {
  if (file_ >= 0) ::close(file_);
}

std::size_t SharedReader::copy(std::uint64_t offset, std::span<std::byte> to) const noexcept {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t got = ::pread(file_, to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

std::string replace_file_durably(const std::string& path, std::span<const std::byte> bytes, unsigned mode) {
  const std::string temporary = temporary_of(path);
  Descriptor file{::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)};
  if (file.number < 0) return problem_of("cannot write next to", path, errno);
  std::string failed;
  if (!write_all(file.number, bytes) || ::fsync(file.number) != 0) failed = problem_of("cannot write", temporary, errno);
  if (::close(std::exchange(file.number, -1)) != 0 && failed.empty()) failed = problem_of("cannot close", temporary, errno);
  if (failed.empty() && std::rename(temporary.c_str(), path.c_str()) != 0) failed = problem_of("cannot rename to", path, errno);
  if (!failed.empty()) {
    ::unlink(temporary.c_str());
    return failed;
  }
  sync_names(path);
  return {};
}

std::string replace_folder(const std::string& folder, const std::string& path) {
  if (std::rename(folder.c_str(), path.c_str()) == 0) {
    sync_names(path);
    return {};
  }
  if (errno != EEXIST && errno != ENOTEMPTY) return problem_of("cannot rename to", path, errno);
#if defined(__linux__) && defined(SYS_renameat2)
  constexpr unsigned kExchange = 2;  // RENAME_EXCHANGE, which old headers have not
  if (::syscall(SYS_renameat2, AT_FDCWD, folder.c_str(), AT_FDCWD, path.c_str(), kExchange) != 0) return problem_of("cannot exchange with", path, errno);
  sync_names(path);
  std::error_code ignored;  // the next one removes it
  std::filesystem::remove_all(folder, ignored);
  return {};
#else
  return problem_of("cannot exchange with", path, ENOSYS);
#endif
}

ProcessIdentity this_process() {
  ProcessIdentity me;
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) == 0) me.host = name;
  me.machine = machine_of();
  me.id = static_cast<std::uint64_t>(::getpid());
  me.begun = begin_of(me.id);
  return me;
}

ProcessState state_of(const ProcessIdentity& process) {
  static const std::uint64_t machine = machine_of();
  if (process.machine == 0 || process.machine != machine || process.begun == 0 || process.id == 0 || process.id > 0x7fffffff) return ProcessState::unknown;
  if (::kill(static_cast<pid_t>(process.id), 0) != 0 && errno == ESRCH) return ProcessState::ended;
  // One that has ended and was not waited for, a zombie, is still listed.
  const std::string text = text_of(fmt::format("/proc/{}/stat", process.id));
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return ProcessState::ended;
  const bool is_over = name_end + 2 < text.size() && (text[name_end + 2] == 'Z' || text[name_end + 2] == 'X');
  return !is_over && begin_of(process.id) == process.begun ? ProcessState::running : ProcessState::ended;
}

bool has_steady_ticks() noexcept {
#ifdef __x86_64__
  static const bool steady = text_of("/sys/devices/system/clocksource/clocksource0/current_clocksource").starts_with("tsc");
  return steady;
#else
  return false;
#endif
}

std::uint64_t thread_id() noexcept {
#ifdef __linux__
  return static_cast<std::uint64_t>(::syscall(SYS_gettid));
#else
  return std::hash<std::thread::id>()(std::this_thread::get_id());
#endif
}

}}}  // namespace clutch::v0::detail
#endif
