// SPDX-License-Identifier: Apache-2.0
#ifndef _WIN32
#include "support/private_folder.hpp"

#include "support/posix_file.hpp"

#include <fmt/format.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <utility>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

namespace fs = std::filesystem;

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
// O_NONBLOCK: open() must not wait if the file is a pipe.
constexpr int kFileFlags = O_RDONLY | O_NONBLOCK | O_CLOEXEC;

/// True if the owner of a file or folder is trusted: the process's user, or root.
bool is_trusted_owner(uid_t uid) noexcept { return uid == 0 || uid == ::geteuid(); }

/// An open folder's file descriptor.
int descriptor(std::intptr_t open) { return static_cast<int>(open); }

std::string refusal_of(const struct stat& status, const fs::path& path) {
  if (!is_trusted_owner(status.st_uid))
    return fmt::format("{} is not used: it belongs to user {}, and this process runs as {}", path.string(), status.st_uid, ::geteuid());
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fmt::format("{} is not used: others may write to it (mode {:o}); remove it, or check what it holds and run chmod -R go-w", path.string(),
                       status.st_mode & 07777);
  return {};
}

std::int64_t nanoseconds(const struct timespec& t) { return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; }
std::int64_t now_ns() { return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count(); }

PrivateBytes refused(std::string why) { return {.bytes = std::nullopt, .refusal = std::move(why)}; }

/// Why the open file that open() returned as `number` is not used; empty, with its status, if it is. errno is still open()'s.
std::string judged(int number, const fs::path& path, struct stat& status) {
  if (number < 0) return fmt::format("{} is not used: {}", path.string(), errno == ELOOP ? "it is a link" : reason(errno));
  if (::fstat(number, &status) != 0 || !S_ISREG(status.st_mode)) return fmt::format("{} is not used: it is no regular file", path.string());
  return refusal_of(status, path);
}

/// Checks and reads the file that open() returned as `number`, unless `judges`, which leaves the bytes empty. errno is still open()'s.
PrivateBytes read_open(int number, const fs::path& path, bool used, bool judges = false) {
  if (number < 0 && (errno == ENOENT || errno == ENOTDIR)) return {};
  struct stat status {};
  if (std::string refusal = judged(number, path, status); !refusal.empty()) return refused(std::move(refusal));
  if (judges) return {.bytes = std::string()};
  // The time of use is set at most once an hour, because writes to a remote folder are slow.
  if (used && now_ns() - nanoseconds(status.st_mtim) > 3'600'000'000'000) ::futimens(number, nullptr);
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t got = ::read(number, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return {};  // the file became shorter meanwhile
    done += static_cast<std::size_t>(got);
  }
  return {.bytes = std::move(bytes)};
}

}  // namespace

bool is_of_trusted_owner(const fs::path& file, const fs::path& other) {
  struct stat status {
  }, others{};
  if (::stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const bool known = ::stat(other.c_str(), &others) == 0;
  if (!is_trusted_owner(status.st_uid) && !(known && status.st_uid == others.st_uid)) return false;
  const mode_t for_others = S_IWGRP | S_IWOTH;
  return (status.st_mode & for_others & ~(known ? others.st_mode : 0)) == 0;
}

PrivateBytes read_private_file(const fs::path& path) {
  const Descriptor file{::open(path.c_str(), kFileFlags)};
  return read_open(file.number, path, false);
}

PrivateFile open_private_file(const fs::path& path) {
  auto file = std::make_shared<Descriptor>();
  file->number = ::open(path.c_str(), kFileFlags);
  if (file->number < 0 && (errno == ENOENT || errno == ENOTDIR)) return {};
  struct stat status {};
  if (std::string refusal = judged(file->number, path, status); !refusal.empty()) return {.exists = true, .refusal = std::move(refusal)};
  const auto size = static_cast<std::uint64_t>(status.st_size);
  auto read = [file = std::move(file), size](std::uint64_t offset, std::uint64_t bytes) -> std::optional<std::string> {
    if (offset > size || bytes > size - offset) return std::nullopt;
    std::string part(static_cast<std::size_t>(bytes), '\0');
    for (std::size_t done = 0; done < part.size();) {
      const ssize_t got = ::pread(file->number, part.data() + done, part.size() - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return std::nullopt;  // the file became shorter meanwhile
      done += static_cast<std::size_t>(got);
    }
    return part;
  };
  return {.read = std::move(read), .bytes = size, .exists = true};
}

fs::path make_temporary_folder() {
  std::error_code ignored;
  std::string name = (fs::temp_directory_path(ignored) / "clutch-XXXXXX").string();
  return ::mkdtemp(name.data()) ? fs::path(name) : fs::path();
}

int make_private_folders(const fs::path& path) {
  fs::path made;
  int error = 0;
  for (const fs::path& part : path)
    if (::mkdir((made /= part).c_str(), 0700) != 0 && errno != EEXIST && errno != ENOENT) error = errno;  // ENOENT follows from another folder's error
  return error;
}

PrivateFolder::PrivateFolder(const fs::path& root, const fs::path& below, bool make) : path_(root) {
  open_ = ::open(root.c_str(), kFolderFlags);
  int error = is_open() ? 0 : errno;
  if (error == ENOENT && make) {
    error = make_private_folders(root);
    open_ = ::open(root.c_str(), kFolderFlags);
    if (!is_open() && error == 0) error = errno;
  }
  if (!is_open()) {
    error_ = reason(error);
    return;
  }
  struct stat status {};
  if (::lstat(root.c_str(), &status) == 0 && S_ISLNK(status.st_mode) && !is_trusted_owner(status.st_uid))
    refusal_ = fmt::format("{} is not used: it is a link that user {} made", root.string(), status.st_uid);
  else if (::fstat(descriptor(open_), &status) == 0)
    refusal_ = refusal_of(status, path_);
  if (!refusal_.empty()) ::close(descriptor(std::exchange(open_, -1)));
  for (const fs::path& name : below)
    if (is_open() && !name.empty()) step(name, make);
}

PrivateFolder::~PrivateFolder() {
  if (is_open()) ::close(descriptor(open_));
}

void PrivateFolder::step(const fs::path& name, bool make) {
  const Descriptor from{descriptor(open_)};
  path_ /= name;
  if (make) ::mkdirat(from.number, name.c_str(), 0700);
  open_ = ::openat(from.number, name.c_str(), kFolderFlags | O_NOFOLLOW);
  if (!is_open()) {
    const int error = errno;
    error_ = reason(error);
    if (error == ELOOP || error == ENOTDIR) refusal_ = fmt::format("{} is not used: it is no folder, or a link", path_.string());
    return;
  }
  struct stat status {};
  if (::fstat(descriptor(open_), &status) == 0) refusal_ = refusal_of(status, path_);
  if (!refusal_.empty()) ::close(descriptor(std::exchange(open_, -1)));
}

PrivateBytes PrivateFolder::read(const std::string& name, bool used) const {
  if (!is_open()) return {};
  const Descriptor file{::openat(descriptor(open_), name.c_str(), kFileFlags | O_NOFOLLOW)};
  return read_open(file.number, path_ / name, used);
}

std::string PrivateFolder::judge(const std::string& name) const {
  if (!is_open()) return refusal_;
  const Descriptor file{::openat(descriptor(open_), name.c_str(), kFileFlags | O_NOFOLLOW)};
  return read_open(file.number, path_ / name, false, true).refusal;
}

std::string PrivateFolder::write(const std::string& name, std::span<const std::string_view> parts) const {
  if (!is_open()) return problem();
  static std::atomic<unsigned> serial{0};
  // Processes of several containers may share the folder and have the same process id, so the name has the time as well.
  const std::string temporary = fmt::format("{}.{}.{}.{:x}.tmp", name, ::getpid(), serial.fetch_add(1), now_ns());
  Descriptor file{::openat(descriptor(open_), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (file.number < 0) return reason(errno);
  bool good = true;
  for (std::string_view part : parts) good = good && write_all(file.number, std::as_bytes(std::span(part)));
  good = good && ::close(std::exchange(file.number, -1)) == 0;
  good = good && ::renameat(descriptor(open_), temporary.c_str(), descriptor(open_), name.c_str()) == 0;
  if (good) return {};
  std::string why = reason(errno);
  ::unlinkat(descriptor(open_), temporary.c_str(), 0);
  return why;
}

bool PrivateFolder::remove(const std::string& name) const { return is_open() && ::unlinkat(descriptor(open_), name.c_str(), 0) == 0; }

std::vector<PrivateFolder::File> PrivateFolder::list() const {
  std::vector<File> files;
  const int again = is_open() ? ::openat(descriptor(open_), ".", kFolderFlags) : -1;  // an open file of its own, so that its read position starts at 0
  if (again < 0) return files;
  struct Close {
    void operator()(DIR* entries) const { ::closedir(entries); }
  };
  const std::unique_ptr<DIR, Close> entries(::fdopendir(again));
  if (!entries) {
    ::close(again);
    return files;
  }
  while (const struct dirent* entry = ::readdir(entries.get())) {
    struct stat status {};
    if (::fstatat(descriptor(open_), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) continue;
    files.push_back({entry->d_name, static_cast<std::uint64_t>(status.st_size), nanoseconds(status.st_mtim)});
  }
  return files;
}

}}}  // namespace clutch::v0::detail
#endif
