// SPDX-License-Identifier: Apache-2.0
// Services of the operating system that OpenCL and C++ do not have. system_posix.cpp and system_windows.cpp say how; private_folder.hpp has
// what depends on the owners of files.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

// The process

std::uint64_t process_id() noexcept;

/// True on the thread that runs main(). Windows: on the thread that loaded the library, which runs main() unless the library was loaded later by another.
bool is_main_thread() noexcept;

/// Calls `hook` in the children of later fork() calls. Windows has no fork(), so nothing happens.
void after_fork_in_child(void (*hook)()) noexcept;

/// Names and values of the environment's variables.
std::vector<std::pair<std::string, std::string>> environment();
/// Sets a variable of the environment, for this process and those that it starts. No other thread may read the environment meanwhile.
void set_environment(const char* name, const char* value) noexcept;

/// Folder of this user's caches: $XDG_CACHE_HOME, or ~/.cache; Windows: %LOCALAPPDATA%. Empty if the environment names none.
std::filesystem::path user_cache_folder();

// Programs and libraries

/// Suffix of programs' names.
#ifdef _WIN32
inline constexpr const char* kProgramSuffix = ".exe";
#else
inline constexpr const char* kProgramSuffix = "";
#endif

/// The running program's file; empty if it is not known.
std::filesystem::path program_file();
/// File of the library or program that holds this function; empty if it is not known.
std::filesystem::path file_of(void (*function)());

/// What stands between the folders of PATH and the files of a list.
#ifdef _WIN32
inline constexpr char kPathSeparator = ';';
#else
inline constexpr char kPathSeparator = ':';
#endif

/// The program of that name in the first folder of the environment's PATH that has one, else empty. POSIX: a PATH that is not set has none, as LLVM looks for
/// programs.
std::filesystem::path in_search_path(const char* program);
inline bool is_in_search_path(const char* program) { return !in_search_path(program).empty(); }

struct ProgramRun {
  enum class End {
    exited,       ///< the program ended by itself, with `status`
    crashed,      ///< a signal of its own fault ended it; Windows: an exception, or status 3, which abort() gives
    killed,       ///< a signal from outside ended it, such as SIGTERM, or SIGKILL where memory ran out
    timed_out,    ///< the limit ended it
    not_started,  ///< or its end is not known; for the reason `problem`
  };
  End end = End::not_started;
  int status = 0;
  std::string kept;     ///< what the program wrote to the stream that was kept
  std::string problem;  ///< the system's reason for not_started
};
enum class Keep { output, errors };
/// Runs a program and waits until it ends, or for `limit`, after which it is killed. `keep` names the stream that is kept, standard output or
/// standard error; the other one is thrown away. `arguments`: without the program's name.
ProgramRun run_program(const std::filesystem::path& program, const std::vector<std::string>& arguments, Keep keep,
                       std::optional<std::chrono::milliseconds> limit = std::nullopt);

/// Loads a shared library, which stays loaded. Null, with the system's reason in `why_not`, if that fails.
void* load_library(const char* file, std::string& why_not);
/// Null if the library has no such symbol.
void* find_symbol(void* library, const char* symbol) noexcept;

// Files

/// A file's bytes, mapped for reading while `keeper` lives.
struct FileMapping {
  std::shared_ptr<const void> keeper;
  std::span<const std::byte> bytes;
  std::string problem;  ///< what failed, with the path and the system's reason; empty on success
};
/// Maps a regular file; no bytes if it is empty.
FileMapping map_whole_file(const std::string& path);

/// Writes the parts one after another to a temporary file beside `path`, which then takes the place of `path`, so that readers see all of the old file or all
/// of the new one. `mode`: permissions, minus the umask; Windows: the folder's rights are the file's, and it fails while the old file is open or mapped.
/// Returns what failed, with the path and the system's reason; empty on success.
std::string replace_file(const std::string& path, std::span<const std::span<const std::byte>> parts, unsigned mode);

/// A lock that processes take in turn: the right to write a file that several of them write. The lock is a file beside it, which stays. Children that
/// fork() makes meanwhile do not keep it.
class FileLock {
 public:
  /// Waits until no other process has the lock of that path, but no longer than `limit`: its holder may be stopped.
  explicit FileLock(const std::filesystem::path& path, std::chrono::milliseconds limit = std::chrono::seconds(2));
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  /// What failed, with the path and the system's reason; empty while the lock is held.
  const std::string& problem() const noexcept { return problem_; }

 private:
  std::intptr_t open_ = -1;  ///< POSIX: file descriptor; Windows: handle
  std::string problem_;
};

/// True if the process may write to a folder that exists.
bool may_write(const std::filesystem::path& folder) noexcept;

// Memory

/// Bytes of a page.
std::size_t page_bytes() noexcept;

enum class MapFor {
  use,      ///< memory that the process counts on
  reserve,  ///< a range of addresses of which parts will be used, each counted when it is first touched; Windows has none
};
/// Maps whole pages, which take memory when they are first touched. The address is a multiple of 2 MiB, on Windows of 64 KiB. Null, with the system's reason in
/// `why_not`, if that fails.
void* map_memory(std::size_t bytes, MapFor what, std::string& why_not);
void unmap_memory(void* memory, std::size_t bytes) noexcept;
/// Asks for large pages, one fault of which takes the place of 512; a system without them leaves the memory as it is.
void want_large_pages(void* memory, std::size_t bytes) noexcept;
/// Gives the memory of whole pages back until they are touched again, with undefined contents. False if the system refuses.
bool give_back_pages(void* memory, std::size_t bytes) noexcept;
/// Makes access to whole pages end the process, or allows it again. False if the system refuses.
bool protect_pages(void* memory, std::size_t bytes, bool accessible) noexcept;

struct HostMemory {
  std::optional<std::uint64_t> available;  ///< bytes that the process may take before the system or its control group runs out; none: not known
  std::uint64_t resident = 0;              ///< bytes of the process's own that are in memory; 0: not known
};
/// What the system tells of memory now. `root`: folder that has proc and sys, for tests.
HostMemory host_memory(const std::filesystem::path& root = "/");

}}}  // namespace clutch::v0::detail
