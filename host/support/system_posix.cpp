// SPDX-License-Identifier: Apache-2.0
#ifndef _WIN32
#include "support/system.hpp"

#include "support/posix_file.hpp"

#include <fmt/format.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__linux__)
#include <link.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>
#include <thread>

extern char** environ;

namespace clutch { inline namespace v0 { namespace detail {
namespace {

std::string contents(std::FILE* file) {
  std::rewind(file);
  std::string text;
  std::array<char, 4096> block{};
  while (const std::size_t got = std::fread(block.data(), 1, block.size(), file)) text.append(block.data(), got);
  return text;
}

}  // namespace

std::uint64_t process_id() noexcept { return static_cast<std::uint64_t>(::getpid()); }

bool is_main_thread() noexcept { return ::gettid() == ::getpid(); }

void after_fork_in_child(void (*hook)()) noexcept { ::pthread_atfork(nullptr, nullptr, hook); }

std::vector<std::pair<std::string, std::string>> environment() {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) pairs.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return pairs;
}

void set_environment(const char* name, const char* value) noexcept { ::setenv(name, value, 1); }

std::filesystem::path user_cache_folder() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg) return xdg;
  if (const char* home = std::getenv("HOME"); home && *home) return std::filesystem::path(home) / ".cache";
  return {};
}

std::filesystem::path program_file() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored);
}

std::filesystem::path file_of(void (*function)()) {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(function), &info) == 0 || !info.dli_fname) return {};
  return info.dli_fname;
}

std::filesystem::path in_search_path(const char* program) {
  const char* path = std::getenv("PATH");
  std::string_view left = path ? path : "";
  while (!left.empty()) {
    const std::string_view folder = left.substr(0, left.find(kPathSeparator));
    std::filesystem::path file = std::filesystem::path(folder) / program;
    struct stat status {};
    if (!folder.empty() && ::access(file.c_str(), X_OK) == 0 && ::stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode)) return file;
    left.remove_prefix(std::min(folder.size() + 1, left.size()));
  }
  return {};
}

ProgramRun run_program(const std::filesystem::path& program, const std::vector<std::string>& arguments, Keep keep,
                       std::optional<std::chrono::milliseconds> limit) {
  std::vector<char*> words{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> kept(std::tmpfile());
  const int thrown_away = keep == Keep::errors ? STDOUT_FILENO : STDERR_FILENO, used = keep == Keep::errors ? STDERR_FILENO : STDOUT_FILENO;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, thrown_away, "/dev/null", O_WRONLY, 0);
  if (kept)
    ::posix_spawn_file_actions_adddup2(&actions, ::fileno(kept.get()), used);
  else
    ::posix_spawn_file_actions_addopen(&actions, used, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, program.c_str(), &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return {.problem = reason(error)};
  const auto begin = std::chrono::steady_clock::now();
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(child, &status, limit ? WNOHANG : 0)) == 0 || (ended < 0 && errno == EINTR)) {
    if (!limit) continue;
    if (std::chrono::steady_clock::now() - begin > *limit) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return {.end = ProgramRun::End::timed_out};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  // Where the process ignores SIGCHLD, the system forgets how its children ended.
  if (ended != child) return {.problem = fmt::format("its end is unknown: {}", reason(errno))};
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  const bool own_fault = signal == SIGILL || signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGABRT || signal == SIGTRAP;
  ProgramRun run{.end = WIFEXITED(status) ? ProgramRun::End::exited : own_fault ? ProgramRun::End::crashed : ProgramRun::End::killed};
  if (WIFEXITED(status)) run.status = WEXITSTATUS(status);
  if (kept) run.kept = contents(kept.get());
  return run;
}

#if defined(__linux__)
namespace {

/// Whether a file that begins as a library ends before its last segment, as one whose copy has not ended: a process that maps it gets SIGBUS.
bool is_cut_library(const char* path) {
  const Descriptor file{::open(path, O_RDONLY | O_CLOEXEC)};
  struct stat status {};
  ElfW(Ehdr) head{};
  if (file.number < 0 || ::fstat(file.number, &status) != 0 || ::pread(file.number, &head, sizeof head, 0) != sizeof head) return false;
  constexpr unsigned char kClass = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != kClass || head.e_phentsize != sizeof(ElfW(Phdr))) return false;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  for (std::uint64_t i = 0; i < head.e_phnum; ++i) {
    ElfW(Phdr) part{};
    if (::pread(file.number, &part, sizeof part, static_cast<off_t>(head.e_phoff + i * sizeof part)) != sizeof part) return true;
    if (part.p_type == PT_LOAD && (part.p_offset > size || part.p_filesz > size - part.p_offset)) return true;
  }
  return false;
}

}  // namespace
#endif

void* load_library(const char* file, std::string& why_not) {
#if defined(__linux__)
  if (is_cut_library(file)) {
    why_not = fmt::format("{}: the file ends before its last segment", file);
    return nullptr;
  }
#endif
  void* library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library) return library;
  const char* said = ::dlerror();
  why_not = said ? said : "no reason given";
  return nullptr;
}

void* find_symbol(void* library, const char* symbol) noexcept { return ::dlsym(library, symbol); }

FileMapping map_whole_file(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  auto failed = [&](const char* what) { return FileMapping{.problem = fmt::format("{} {}: {}", what, path, reason(errno))}; };
  if (file.number < 0) return failed("cannot open");
  struct stat status {};
  if (::fstat(file.number, &status) != 0) return failed("cannot look at");
  if (!S_ISREG(status.st_mode)) return {.problem = path + " is no regular file"};
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return {};
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (memory == MAP_FAILED) return failed("cannot map");
  return {.keeper = std::shared_ptr<const void>(memory, [size](const void* p) { ::munmap(const_cast<void*>(p), size); }),
          .bytes = {static_cast<const std::byte*>(memory), size}};
}

std::string replace_file(const std::string& path, std::span<const std::span<const std::byte>> parts, unsigned mode) {
  static std::atomic<unsigned> count{0};
  // Processes of several containers may share the folder and have the same process id, so the name has the time as well.
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  const std::string temporary = fmt::format("{}.{}.{}.{:x}.tmp", path, ::getpid(), count++, now);
  Descriptor file{::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)};
  auto problem = [&](const char* what, const std::string& of) { return fmt::format("{} {}: {}", what, of, reason(errno)); };
  if (file.number < 0) return problem("cannot write next to", path);
  auto write = [&]() -> std::string {
    for (std::span<const std::byte> part : parts)
      if (!write_all(file.number, part)) return problem("cannot write", temporary);
    if (::close(std::exchange(file.number, -1)) != 0) return problem("cannot close", temporary);
    if (std::rename(temporary.c_str(), path.c_str()) != 0) return problem("cannot rename to", path);
    return {};
  };
  std::string failed = write();
  if (!failed.empty()) ::unlink(temporary.c_str());
  return failed;
}

FileLock::FileLock(const std::filesystem::path& path, std::chrono::milliseconds limit) {
  const std::string beside = path.string() + ".lock";
  const auto begin = std::chrono::steady_clock::now();
  const int file = ::open(beside.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  int locked = file < 0 ? -1 : 0;
  while (file >= 0 && (locked = ::flock(file, LOCK_EX | LOCK_NB)) != 0 && (errno == EINTR || errno == EWOULDBLOCK)) {
    if (std::chrono::steady_clock::now() - begin > limit) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (locked == 0) {
    open_ = file;
    return;
  }
  problem_ = file >= 0 && errno == EWOULDBLOCK ? fmt::format("cannot lock {}: another process has held it for {} ms", beside, limit.count())
                                               : fmt::format("cannot lock {}: {}", beside, reason(errno));
  if (file >= 0) ::close(file);
}
FileLock::~FileLock() {
  if (open_ < 0) return;
  ::flock(static_cast<int>(open_), LOCK_UN);  // children of fork() have the open file, too
  ::close(static_cast<int>(open_));
}

bool may_write(const std::filesystem::path& folder) noexcept { return ::access(folder.c_str(), W_OK) == 0; }

std::size_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

namespace {

/// Why a range of addresses of which parts will be used should not be taken; empty if it may. A range takes a sixteenth of what is left at most, so that others
/// find addresses under `ulimit -v`, too, however many ranges there are.
std::string no_range(std::size_t bytes) {
  static const bool counts = std::ifstream("/proc/sys/vm/overcommit_memory").get() == '2';
  if (counts) return "the system counts ranges as memory (vm.overcommit_memory is 2)";
  constexpr std::uint64_t kAddresses = 1ull << 47;
  std::uint64_t most = kAddresses, pages = 0;  // pages of addresses that are taken; 0: not known
  if (rlimit limit{}; ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) most = std::min<std::uint64_t>(most, limit.rlim_cur);
  if (const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC); file >= 0) {
    std::array<char, 32> text{};
    if (::read(file, text.data(), text.size() - 1) > 0) pages = std::strtoull(text.data(), nullptr, 10);
    ::close(file);
  }
  const std::uint64_t left = most - std::min(most, pages * page_bytes());
  return bytes <= left / 16 ? std::string() : fmt::format("of the {} bytes of addresses that are left one range may take {}", left, left / 16);
}

}  // namespace

void* map_memory(std::size_t bytes, MapFor what, std::string& why_not) {
  if (what == MapFor::reserve)
    if (const std::string reason_not = no_range(bytes); !reason_not.empty()) {
      why_not = fmt::format("cannot reserve {} bytes: {}", bytes, reason_not);
      return nullptr;
    }
  constexpr std::size_t kHugePage = 2ull << 20;
  const std::size_t more = bytes + kHugePage;  // of which the ends go, so that the address is a multiple
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  if (what == MapFor::reserve) flags |= MAP_NORESERVE;
  void* raw = more > bytes ? ::mmap(nullptr, more, PROT_READ | PROT_WRITE, flags, -1, 0) : MAP_FAILED;
  if (raw == MAP_FAILED) {
    why_not = fmt::format("cannot map {} bytes: {}", bytes, more > bytes ? reason(errno) : "too many");
    return nullptr;
  }
  const auto address = reinterpret_cast<std::uintptr_t>(raw);
  const std::size_t before = (kHugePage - address % kHugePage) % kHugePage;
  char* memory = static_cast<char*>(raw) + before;
  if (before > 0) ::munmap(raw, before);
  ::munmap(memory + bytes, kHugePage - before);
  want_large_pages(memory, bytes);
  return memory;
}

void unmap_memory(void* memory, std::size_t bytes) noexcept { ::munmap(memory, bytes); }
void want_large_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef MADV_HUGEPAGE
  (void)::madvise(memory, bytes, MADV_HUGEPAGE);
#endif
}
bool give_back_pages(void* memory, std::size_t bytes) noexcept { return ::madvise(memory, bytes, MADV_DONTNEED) == 0; }
bool protect_pages(void* memory, std::size_t bytes, bool accessible) noexcept {
  return ::mprotect(memory, bytes, accessible ? PROT_READ | PROT_WRITE : PROT_NONE) == 0;
}

namespace {

/// The number behind `key` in a file of lines "key number"; without a key the file's first word. nullopt if there is none.
std::optional<std::uint64_t> number_in(const std::filesystem::path& path, std::string_view key) {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    if (!key.empty() && word != key) continue;
    if (!key.empty() && !(file >> word)) return std::nullopt;
    char* end = nullptr;
    errno = 0;
    const std::uint64_t value = std::strtoull(word.c_str(), &end, 10);
    if (end == word.c_str() || errno != 0) return std::nullopt;
    return value;
  }
  return std::nullopt;
}

struct ControlGroup {
  std::filesystem::path mount;
  std::string path;
  const char *limit, *used, *cache;
};

/// Least that the control groups above the process leave; nullopt if none has a limit.
std::optional<std::uint64_t> left_by_control_groups(const std::filesystem::path& root) {
  std::vector<ControlGroup> groups;
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "0::/path", or of version 1 "4:memory:/path"
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1)), path = line.substr(second + 1);
    if (controllers == ",,") groups.push_back({root / "sys/fs/cgroup", path, "memory.max", "memory.current", "inactive_file"});
    if (controllers.find(",memory,") != std::string::npos)
      groups.push_back({root / "sys/fs/cgroup/memory", path, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"});
  }
  std::optional<std::uint64_t> least;
  for (const ControlGroup& group : groups) {
    // In a container the files of its own group may be at the mount, whatever the path says.
    for (std::filesystem::path path = std::filesystem::path(group.path).relative_path();; path = path.parent_path()) {
      const std::filesystem::path folder = group.mount / path;
      const auto limit = number_in(folder / group.limit, {}), used = number_in(folder / group.used, {});
      if (limit && used) {
        const std::uint64_t held = *used - std::min(*used, number_in(folder / "memory.stat", group.cache).value_or(0));
        const std::uint64_t left = *limit - std::min(*limit, held);
        least = std::min(least.value_or(left), left);
      }
      if (path.empty()) break;
    }
  }
  return least;
}

}  // namespace

HostMemory host_memory(const std::filesystem::path& root) {
  HostMemory memory;
  if (const auto kib = number_in(root / "proc/meminfo", "MemAvailable:"))
    memory.available = *kib << 10;
  else if (const long pages = ::sysconf(_SC_PHYS_PAGES); pages > 0)
    memory.available = static_cast<std::uint64_t>(pages) * page_bytes();
  if (const auto left = left_by_control_groups(root)) memory.available = std::min(memory.available.value_or(*left), *left);
  std::ifstream own(root / "proc/self/statm");  // pages: size, resident, shared
  std::uint64_t size = 0, resident = 0, shared = 0;
  if (own >> size >> resident >> shared) memory.resident = (resident - std::min(resident, shared)) * page_bytes();
  return memory;
}

}}}  // namespace clutch::v0::detail
#endif
