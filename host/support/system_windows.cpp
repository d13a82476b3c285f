// SPDX-License-Identifier: Apache-2.0
#ifdef _WIN32
#include "support/system.hpp"

#include "support/windows_handle.hpp"

#include <fmt/format.h>

#include <stdlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

namespace fs = std::filesystem;

// Set before main(), while the loader of this library or program runs.
const DWORD g_main_thread = ::GetCurrentThreadId();

fs::path file_of_module(HMODULE module) {
  std::wstring path(MAX_PATH, L'\0');
  for (;;) {
    const DWORD length = ::GetModuleFileNameW(module, path.data(), static_cast<DWORD>(path.size()));
    if (length == 0) return {};
    if (length < path.size()) return path.substr(0, length);
    path.resize(2 * path.size());
  }
}

/// An argument as the C library of the started program reads it back: backslashes count twice before a quote alone.
std::wstring quoted(const std::wstring& argument) {
  if (!argument.empty() && argument.find_first_of(L" \t\n\v\"") == std::wstring::npos) return argument;
  std::wstring result = L"\"";
  std::size_t backslashes = 0;
  for (const wchar_t c : argument) {
    if (c == L'"') result.append(backslashes + 1, L'\\');
    backslashes = c == L'\\' ? backslashes + 1 : 0;
    result += c;
  }
  return result.append(backslashes, L'\\') + L"\"";
}

/// A file without a name that others see, for what a program writes; it is gone when it is closed.
WindowsHandle temporary_file(SECURITY_ATTRIBUTES* inherited) {
  std::array<wchar_t, MAX_PATH + 1> folder{}, name{};
  if (::GetTempPathW(MAX_PATH, folder.data()) == 0 || ::GetTempFileNameW(folder.data(), L"clu", 0, name.data()) == 0) return WindowsHandle();
  return WindowsHandle(::CreateFileW(name.data(), GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, inherited,
                                     CREATE_ALWAYS, FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, nullptr));
}

std::string contents(HANDLE file) {
  std::string text;
  std::array<char, 4096> block{};
  DWORD got = 0;
  ::SetFilePointer(file, 0, nullptr, FILE_BEGIN);
  while (::ReadFile(file, block.data(), static_cast<DWORD>(block.size()), &got, nullptr) && got > 0) text.append(block.data(), got);
  std::erase(text, '\r');
  return text;
}

}  // namespace

std::uint64_t process_id() noexcept { return ::GetCurrentProcessId(); }

bool is_main_thread() noexcept { return ::GetCurrentThreadId() == g_main_thread; }

void after_fork_in_child(void (*)()) noexcept {}

std::vector<std::pair<std::string, std::string>> environment() {
  std::vector<std::pair<std::string, std::string>> pairs;
  char* block = ::GetEnvironmentStringsA();
  for (const char* entry = block; entry && *entry; entry += std::strlen(entry) + 1) {
    const std::string_view text = entry;
    const std::size_t equals = text.find('=', 1);  // names of the system's own begin with =
    if (equals != std::string_view::npos) pairs.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  if (block) ::FreeEnvironmentStringsA(block);
  return pairs;
}

void set_environment(const char* name, const char* value) noexcept { ::_putenv_s(name, value); }

fs::path user_cache_folder() {
  const wchar_t* local = ::_wgetenv(L"LOCALAPPDATA");
  return local && *local ? fs::path(local) : fs::path();
}

fs::path program_file() { return file_of_module(nullptr); }

fs::path file_of(void (*function)()) {
  HMODULE module = nullptr;
  if (!::GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, reinterpret_cast<const wchar_t*>(function),
                            &module))
    return {};
  return file_of_module(module);
}

fs::path in_search_path(const char* program) {
  std::array<wchar_t, MAX_PATH + 1> found{};
  const DWORD length = ::SearchPathW(nullptr, fs::path(program).c_str(), L".exe", static_cast<DWORD>(found.size()), found.data(), nullptr);
  // A longer one is there all the same.
  return length == 0 ? fs::path() : length < found.size() ? fs::path(found.data()) : fs::path(program);
}

ProgramRun run_program(const fs::path& program, const std::vector<std::string>& arguments, Keep keep, std::optional<std::chrono::milliseconds> limit) {
  std::wstring line = quoted(program.wstring());
  for (const std::string& argument : arguments) line += L' ' + quoted(fs::path(argument).wstring());
  SECURITY_ATTRIBUTES inherited{.nLength = sizeof inherited, .lpSecurityDescriptor = nullptr, .bInheritHandle = TRUE};
  const WindowsHandle nowhere(::CreateFileW(L"NUL", GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, &inherited, OPEN_EXISTING, 0, nullptr));
  const WindowsHandle kept = temporary_file(&inherited);
  const HANDLE used = kept ? kept.get() : nowhere.get();
  STARTUPINFOW start{};
  start.cb = sizeof start;
  start.dwFlags = STARTF_USESTDHANDLES;
  start.hStdInput = ::GetStdHandle(STD_INPUT_HANDLE);
  start.hStdOutput = keep == Keep::output ? used : nowhere.get();
  start.hStdError = keep == Keep::errors ? used : nowhere.get();
  PROCESS_INFORMATION info{};
  if (!::CreateProcessW(program.c_str(), line.data(), nullptr, nullptr, TRUE, CREATE_NO_WINDOW, nullptr, nullptr, &start, &info))
    return {.problem = reason_of(::GetLastError())};
  const WindowsHandle process(info.hProcess), thread(info.hThread);
  if (::WaitForSingleObject(process.get(), limit ? static_cast<DWORD>(limit->count()) : INFINITE) == WAIT_TIMEOUT) {
    ::TerminateProcess(process.get(), 1);
    ::WaitForSingleObject(process.get(), INFINITE);
    return {.end = ProgramRun::End::timed_out};
  }
  DWORD status = 0;
  ::GetExitCodeProcess(process.get(), &status);
  ProgramRun run{.end = ProgramRun::End::exited, .status = static_cast<int>(status)};
  constexpr DWORD kFirstException = 0xC0000000, kAborted = 3;
  if (status >= kFirstException || status == kAborted) run.end = ProgramRun::End::crashed;
  if (kept) run.kept = contents(kept.get());
  return run;
}

void* load_library(const char* file, std::string& why_not) {
  const HMODULE library = ::LoadLibraryA(file);
  if (!library) why_not = fmt::format("{}: {}", file, reason_of(::GetLastError()));
  return reinterpret_cast<void*>(library);
}

void* find_symbol(void* library, const char* symbol) noexcept { return reinterpret_cast<void*>(::GetProcAddress(static_cast<HMODULE>(library), symbol)); }

FileMapping map_whole_file(const std::string& path) {
  auto failed = [&](const char* what) { return FileMapping{.problem = fmt::format("{} {}: {}", what, path, reason_of(::GetLastError()))}; };
  const DWORD attributes = ::GetFileAttributesW(fs::path(path).c_str());
  if (attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY)) return {.problem = path + " is no regular file"};
  // Others may write and replace the file while it is mapped, as on POSIX, as far as Windows lets them.
  const WindowsHandle file(::CreateFileW(fs::path(path).c_str(), GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr, OPEN_EXISTING,
                                         FILE_ATTRIBUTE_NORMAL, nullptr));
  if (!file) return failed("cannot open");
  if (::GetFileType(file.get()) != FILE_TYPE_DISK) return {.problem = path + " is no regular file"};
  LARGE_INTEGER size{};
  if (!::GetFileSizeEx(file.get(), &size)) return failed("cannot look at");
  if (size.QuadPart == 0) return {};
  const WindowsHandle mapping(::CreateFileMappingW(file.get(), nullptr, PAGE_READONLY, 0, 0, nullptr));
  if (!mapping) return failed("cannot map");
  const void* memory = ::MapViewOfFile(mapping.get(), FILE_MAP_READ, 0, 0, 0);
  if (!memory) return failed("cannot map");
  return {.keeper = std::shared_ptr<const void>(memory, [](const void* p) { ::UnmapViewOfFile(p); }),
          .bytes = {static_cast<const std::byte*>(memory), static_cast<std::size_t>(size.QuadPart)}};
}

std::string replace_file(const std::string& path, std::span<const std::span<const std::byte>> parts, unsigned) {
  static std::atomic<unsigned> count{0};
  const std::string temporary = fmt::format("{}.{}.{}", path, process_id(), count++);
  const fs::path from = temporary, to = path;
  auto problem = [](const char* what, const std::string& of) { return fmt::format("{} {}: {}", what, of, reason_of(::GetLastError())); };
  WindowsHandle file(::CreateFileW(from.c_str(), GENERIC_WRITE, FILE_SHARE_READ, nullptr, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, nullptr));
  if (!file) return problem("cannot write next to", path);
  std::string failed;
  for (std::span<const std::byte> part : parts)
    if (failed.empty() && !write_all(file.get(), part.data(), part.size())) failed = problem("cannot write", temporary);
  if (!file.close() && failed.empty()) failed = problem("cannot close", temporary);
  if (failed.empty() && !::MoveFileExW(from.c_str(), to.c_str(), MOVEFILE_REPLACE_EXISTING)) failed = problem("cannot rename to", path);
  if (!failed.empty()) ::DeleteFileW(from.c_str());
  return failed;
}

FileLock::FileLock(const std::filesystem::path& path, std::chrono::milliseconds limit) {
  const fs::path beside = path.string() + ".lock";
  HANDLE file = ::CreateFileW(beside.c_str(), GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr, OPEN_ALWAYS,
                              FILE_ATTRIBUTE_NORMAL, nullptr);
  const auto begin = std::chrono::steady_clock::now();
  bool locked = false;
  while (file != INVALID_HANDLE_VALUE) {
    OVERLAPPED from_begin{};
    locked = ::LockFileEx(file, LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &from_begin);
    if (locked || ::GetLastError() != ERROR_LOCK_VIOLATION || std::chrono::steady_clock::now() - begin > limit) break;
    ::Sleep(2);
  }
  if (!locked) {
    const DWORD error = ::GetLastError();
    problem_ = file != INVALID_HANDLE_VALUE && error == ERROR_LOCK_VIOLATION
                   ? fmt::format("cannot lock {}: another process has held it for {} ms", beside.string(), limit.count())
                   : fmt::format("cannot lock {}: {}", beside.string(), reason_of(error));
  }
  open_ = file == INVALID_HANDLE_VALUE ? -1 : reinterpret_cast<std::intptr_t>(file);
}
FileLock::~FileLock() {
  if (open_ != -1) ::CloseHandle(reinterpret_cast<HANDLE>(open_));
}

bool may_write(const fs::path& folder) noexcept {
  const WindowsHandle opened(::CreateFileW(folder.c_str(), FILE_ADD_FILE, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr, OPEN_EXISTING,
                                           FILE_FLAG_BACKUP_SEMANTICS, nullptr));
  return static_cast<bool>(opened);
}

std::size_t page_bytes() noexcept {
  SYSTEM_INFO info{};
  ::GetSystemInfo(&info);
  return info.dwPageSize;
}

void* map_memory(std::size_t bytes, MapFor what, std::string& why_not) {
  // A driver may touch any part of a buffer, so that a range must be committed as a whole.
  void* memory = what == MapFor::use ? ::VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE) : nullptr;
  if (!memory) why_not = fmt::format("cannot map {} bytes: {}", bytes, what == MapFor::use ? reason_of(::GetLastError()) : "Windows reserves no memory");
  return memory;
}

void unmap_memory(void* memory, std::size_t) noexcept { ::VirtualFree(memory, 0, MEM_RELEASE); }
void want_large_pages(void*, std::size_t) noexcept {}
bool give_back_pages(void* memory, std::size_t bytes) noexcept { return ::VirtualAlloc(memory, bytes, MEM_RESET, PAGE_READWRITE) != nullptr; }
bool protect_pages(void* memory, std::size_t bytes, bool accessible) noexcept {
  DWORD former = 0;
  return ::VirtualProtect(memory, bytes, accessible ? PAGE_READWRITE : PAGE_NOACCESS, &former) != 0;
}

HostMemory host_memory(const fs::path&) {
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof status;
  if (!::GlobalMemoryStatusEx(&status)) return {};
  return {.available = std::min<std::uint64_t>(status.ullAvailPhys, status.ullAvailPageFile)};
}

}}}  // namespace clutch::v0::detail
#endif
