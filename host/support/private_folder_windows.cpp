// SPDX-License-Identifier: Apache-2.0
#ifdef _WIN32
#include "support/private_folder.hpp"

#include "support/windows_handle.hpp"

#include <fmt/format.h>

#include <aclapi.h>
#include <sddl.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

namespace fs = std::filesystem;

struct FreeLocal {
  void operator()(void* memory) const { ::LocalFree(memory); }
};

/// A security identifier: who someone is.
struct Sid {
  alignas(void*) std::uint8_t bytes[SECURITY_MAX_SID_SIZE] = {};
  bool known = false;
  PSID get() { return bytes; }
};
Sid user() {
  Sid sid;
  HANDLE opened = nullptr;
  if (!::OpenProcessToken(::GetCurrentProcess(), TOKEN_QUERY, &opened)) return sid;
  const WindowsHandle token(opened);
  struct {
    TOKEN_USER user;
    std::uint8_t sid[SECURITY_MAX_SID_SIZE];
  } said;
  DWORD size = 0;
  sid.known = ::GetTokenInformation(token.get(), TokenUser, &said, sizeof said, &size) && ::CopySid(sizeof sid.bytes, sid.bytes, said.user.User.Sid);
  return sid;
}
Sid well_known(WELL_KNOWN_SID_TYPE type) {
  Sid sid;
  DWORD size = sizeof sid.bytes;
  sid.known = ::CreateWellKnownSid(type, nullptr, sid.bytes, &size) != 0;
  return sid;
}
Sid of_text(const char* text) {
  Sid sid;
  PSID made = nullptr;
  if (!::ConvertStringSidToSidA(text, &made)) return sid;
  const std::unique_ptr<void, FreeLocal> keeper(made);
  sid.known = ::CopySid(sizeof sid.bytes, sid.bytes, made) != 0;
  return sid;
}

bool is_trusted(PSID who) {
  static Sid trusted[] = {user(), well_known(WinBuiltinAdministratorsSid), well_known(WinLocalSystemSid)};
  for (Sid& sid : trusted)
    if (sid.known && ::EqualSid(who, sid.get())) return true;
  return false;
}
/// True if rights of `who` harm nobody: of trusted users, of the owner, and of the system's own installer, which owns the system's files.
bool may_have_rights(PSID who) {
  static Sid others[] = {of_text("S-1-3-4"), of_text("S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464")};
  for (Sid& sid : others)
    if (sid.known && ::EqualSid(who, sid.get())) return true;
  return is_trusted(who);
}

std::string name_of(PSID who) {
  char* text = nullptr;
  if (!::ConvertSidToStringSidA(who, &text)) return "an unknown user";
  const std::unique_ptr<void, FreeLocal> keeper(text);
  return text;
}

/// Rights that change what a file or folder holds, or who may.
constexpr DWORD kWrites =
    FILE_WRITE_DATA | FILE_APPEND_DATA | FILE_WRITE_EA | FILE_DELETE_CHILD | DELETE | WRITE_DAC | WRITE_OWNER | GENERIC_WRITE | GENERIC_ALL;

/// The owner and the access control list of what is open, with what keeps them.
struct Security {
  std::unique_ptr<void, FreeLocal> keeper;
  PSID owner = nullptr;
  PACL list = nullptr;
  DWORD error = 0;
};
Security security_of(HANDLE opened) {
  Security security;
  PSECURITY_DESCRIPTOR descriptor = nullptr;
  security.error = ::GetSecurityInfo(opened, SE_FILE_OBJECT, OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION, &security.owner, nullptr, &security.list,
                                     nullptr, &descriptor);
  security.keeper.reset(descriptor);
  return security;
}

/// Why what is open is not used; empty if it is.
std::string refusal_of(HANDLE opened, const fs::path& path) {
  const Security security = security_of(opened);
  if (security.error != 0) return fmt::format("{} is not used: its owner and rights cannot be read: {}", path.string(), reason_of(security.error));
  if (!security.owner || !is_trusted(security.owner))
    return fmt::format("{} is not used: it belongs to user {}, and this process runs as {}", path.string(), security.owner ? name_of(security.owner) : "nobody",
                       name_of(user().get()));
  if (!security.list) return fmt::format("{} is not used: others may write to it (it has no access control list)", path.string());
  for (DWORD i = 0; i < security.list->AceCount; ++i) {
    void* entry = nullptr;
    if (!::GetAce(security.list, i, &entry)) return fmt::format("{} is not used: its access control list cannot be read", path.string());
    const auto* header = static_cast<const ACE_HEADER*>(entry);
    if ((header->AceFlags & INHERIT_ONLY_ACE) != 0) continue;
    if (header->AceType == ACCESS_DENIED_ACE_TYPE) continue;
    // No other kind than this one stands in lists of files, as far as the system makes them; callbacks and objects are not read.
    if (header->AceType != ACCESS_ALLOWED_ACE_TYPE)
      return fmt::format("{} is not used: its access control list has an entry of kind {}", path.string(), header->AceType);
    auto* allowed = static_cast<ACCESS_ALLOWED_ACE*>(entry);
    if ((allowed->Mask & kWrites) != 0 && !may_have_rights(&allowed->SidStart))
      return fmt::format("{} is not used: others may write to it ({}); remove it, or check what it holds and take that right away", path.string(),
                         name_of(&allowed->SidStart));
  }
  return {};
}

constexpr DWORD kShared = FILE_SHARE_READ | FILE_SHARE_WRITE;
// A link itself is opened, not where it leads.
constexpr DWORD kNoLinks = FILE_FLAG_OPEN_REPARSE_POINT;

WindowsHandle open_folder(const fs::path& path, DWORD flags = 0) {
  return WindowsHandle(::CreateFileW(path.c_str(), FILE_LIST_DIRECTORY | FILE_READ_ATTRIBUTES | READ_CONTROL, kShared, nullptr, OPEN_EXISTING,
                                     FILE_FLAG_BACKUP_SEMANTICS | flags, nullptr));
}
WindowsHandle open_file(const fs::path& path, DWORD flags = 0) {
  return WindowsHandle(::CreateFileW(path.c_str(), FILE_READ_DATA | FILE_READ_ATTRIBUTES | READ_CONTROL, kShared | FILE_SHARE_DELETE, nullptr, OPEN_EXISTING,
                                     FILE_FLAG_BACKUP_SEMANTICS | flags, nullptr));
}

DWORD attributes_of(HANDLE opened) {
  BY_HANDLE_FILE_INFORMATION information{};
  return ::GetFileInformationByHandle(opened, &information) ? information.dwFileAttributes : INVALID_FILE_ATTRIBUTES;
}
bool is_missing(DWORD error) { return error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND; }

/// Nanoseconds since 1970 of a time that counts 100 ns since 1601.
std::int64_t nanoseconds(const FILETIME& time) {
  const std::uint64_t ticks = std::uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime;
  return static_cast<std::int64_t>(ticks - 116'444'736'000'000'000) * 100;
}
std::int64_t now_ns() { return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count(); }

void note_use(const fs::path& path) {
  const WindowsHandle file(::CreateFileW(path.c_str(), FILE_WRITE_ATTRIBUTES, kShared | FILE_SHARE_DELETE, nullptr, OPEN_EXISTING, kNoLinks, nullptr));
  FILETIME now{};
  ::GetSystemTimeAsFileTime(&now);
  if (file) ::SetFileTime(file.get(), nullptr, nullptr, &now);
}

PrivateBytes refused(std::string why) { return {.bytes = std::nullopt, .refusal = std::move(why)}; }

/// Checks and reads a file that open_file() opened, unless `judges`, which leaves the bytes empty. GetLastError() is still that of its opening.
PrivateBytes read_open(const WindowsHandle& file, const fs::path& path, bool used, bool judges = false) {
  if (!file) {
    const DWORD error = ::GetLastError();
    return is_missing(error) ? PrivateBytes{} : refused(fmt::format("{} is not used: {}", path.string(), reason_of(error)));
  }
  BY_HANDLE_FILE_INFORMATION information{};
  if (!::GetFileInformationByHandle(file.get(), &information) || ::GetFileType(file.get()) != FILE_TYPE_DISK ||
      (information.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0)
    return refused(fmt::format("{} is not used: it is no regular file", path.string()));
  if ((information.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0) return refused(fmt::format("{} is not used: it is a link", path.string()));
  if (std::string refusal = refusal_of(file.get(), path); !refusal.empty()) return refused(std::move(refusal));
  if (judges) return {.bytes = std::string()};
  // The time of use is set at most once an hour, because writes to a remote folder are slow.
  if (used && now_ns() - nanoseconds(information.ftLastWriteTime) > 3'600'000'000'000) note_use(path);
  std::string bytes(static_cast<std::size_t>(std::uint64_t{information.nFileSizeHigh} << 32 | information.nFileSizeLow), '\0');
  for (std::size_t done = 0; done < bytes.size();) {
    DWORD got = 0;
    const std::size_t left = bytes.size() - done;
    if (!::ReadFile(file.get(), bytes.data() + done, left > (1u << 30) ? 1u << 30 : static_cast<DWORD>(left), &got, nullptr) || got == 0)
      return {};  // the file became shorter meanwhile
    done += got;
  }
  return {.bytes = std::move(bytes)};
}

/// Creates a folder for the user, the Administrators and SYSTEM. Returns the system's error, or 0.
DWORD make_private_folder(const fs::path& path) {
  const std::string rights = fmt::format("D:P(A;OICI;FA;;;{})(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)", name_of(user().get()));
  PSECURITY_DESCRIPTOR made = nullptr;
  if (!::ConvertStringSecurityDescriptorToSecurityDescriptorA(rights.c_str(), SDDL_REVISION_1, &made, nullptr)) return ::GetLastError();
  const std::unique_ptr<void, FreeLocal> keeper(made);
  SECURITY_ATTRIBUTES attributes{.nLength = sizeof attributes, .lpSecurityDescriptor = made, .bInheritHandle = FALSE};
  return ::CreateDirectoryW(path.c_str(), &attributes) ? 0 : ::GetLastError();
}

HANDLE handle(std::intptr_t open) { return reinterpret_cast<HANDLE>(open); }

}  // namespace

bool is_of_trusted_owner(const fs::path& file, const fs::path& other) {
  const WindowsHandle opened = open_file(file), beside = open_file(other);
  if (!opened || ::GetFileType(opened.get()) != FILE_TYPE_DISK || (attributes_of(opened.get()) & FILE_ATTRIBUTE_DIRECTORY) != 0) return false;
  const Security security = security_of(opened.get());
  if (security.error != 0 || !security.owner) return false;
  const Security others = beside ? security_of(beside.get()) : Security{};
  if (!is_trusted(security.owner) && !(beside && others.error == 0 && others.owner && ::EqualSid(security.owner, others.owner))) return false;
  return refusal_of(opened.get(), file).empty() || (beside && !refusal_of(beside.get(), other).empty());
}

PrivateBytes read_private_file(const fs::path& path) {
  const WindowsHandle file = open_file(path);
  return read_open(file, path, false);
}

PrivateFile open_private_file(const fs::path& path) {
  PrivateBytes whole = read_private_file(path);
  if (!whole.bytes) return {.exists = !whole.refusal.empty(), .refusal = std::move(whole.refusal)};
  auto kept = std::make_shared<const std::string>(std::move(*whole.bytes));
  const std::uint64_t size = kept->size();
  auto read = [kept = std::move(kept)](std::uint64_t offset, std::uint64_t bytes) -> std::optional<std::string> {
    if (offset > kept->size() || bytes > kept->size() - offset) return std::nullopt;
    return kept->substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(bytes));
  };
  return {.read = std::move(read), .bytes = size, .exists = true};
}

fs::path make_temporary_folder() {
  std::error_code error;
  const fs::path in = fs::temp_directory_path(error);
  for (int i = 0; !error && i < 100; ++i) {
    const fs::path path = in / fmt::format("clutch-{}-{:x}", ::GetCurrentProcessId(), now_ns());
    const DWORD made = make_private_folder(path);
    if (made == 0) return path;
    if (made != ERROR_ALREADY_EXISTS) break;
  }
  return {};
}

int make_private_folders(const fs::path& path) {
  fs::path made;
  DWORD last = 0;
  for (const fs::path& part : path) {
    made /= part;
    std::error_code ignored;
    if (fs::is_directory(made, ignored) || made == made.root_path() || made == made.root_name()) continue;
    const DWORD error = make_private_folder(made);
    if (error != 0 && error != ERROR_ALREADY_EXISTS && !is_missing(error)) last = error;
  }
  return static_cast<int>(last);
}

PrivateFolder::PrivateFolder(const fs::path& root, const fs::path& below, bool make) : path_(root) {
  WindowsHandle folder = open_folder(root);
  DWORD error = folder ? 0 : ::GetLastError();
  if (is_missing(error) && make) {
    error = static_cast<DWORD>(make_private_folders(root));
    folder = open_folder(root);
    if (!folder && error == 0) error = ::GetLastError();
  }
  if (!folder) {
    error_ = reason_of(error);
    return;
  }
  if ((attributes_of(folder.get()) & FILE_ATTRIBUTE_DIRECTORY) == 0) {
    error_ = "it is no folder";
    return;
  }
  // root may be a link, whose owner must be trusted. From here on the folder goes by its own name, since the link may come to lead elsewhere.
  if (const WindowsHandle link = open_folder(root, kNoLinks); link && (attributes_of(link.get()) & FILE_ATTRIBUTE_REPARSE_POINT) != 0) {
    const Security security = security_of(link.get());
    if (security.error != 0 || !security.owner || !is_trusted(security.owner))
      refusal_ = fmt::format("{} is not used: it is a link that user {} made", root.string(), security.owner ? name_of(security.owner) : "nobody");
    wchar_t own[1024] = {};
    const DWORD length = ::GetFinalPathNameByHandleW(folder.get(), own, 1024, FILE_NAME_NORMALIZED);
    if (length > 0 && length < 1024)
      path_ = own;
    else if (refusal_.empty())
      refusal_ = fmt::format("{} is not used: where it leads is not known", root.string());
  }
  if (refusal_.empty()) refusal_ = refusal_of(folder.get(), path_);
  if (refusal_.empty()) open_ = reinterpret_cast<std::intptr_t>(folder.release());
  for (const fs::path& name : below)
    if (is_open() && !name.empty()) step(name, make);
}

PrivateFolder::~PrivateFolder() {
  if (is_open()) ::CloseHandle(handle(open_));
}

void PrivateFolder::step(const fs::path& name, bool make) {
  // The folder above stays open until the one below is, so that it is the one that was checked.
  const WindowsHandle from(handle(std::exchange(open_, -1)));
  path_ /= name;
  if (make) make_private_folder(path_);
  WindowsHandle folder = open_folder(path_, kNoLinks);
  if (!folder) {
    error_ = reason_of(::GetLastError());
    return;
  }
  const DWORD attributes = attributes_of(folder.get());
  if ((attributes & FILE_ATTRIBUTE_DIRECTORY) == 0 || (attributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0)
    refusal_ = fmt::format("{} is not used: it is no folder, or a link", path_.string());
  else
    refusal_ = refusal_of(folder.get(), path_);
  if (refusal_.empty()) open_ = reinterpret_cast<std::intptr_t>(folder.release());
}

PrivateBytes PrivateFolder::read(const std::string& name, bool used) const {
  if (!is_open()) return {};
  const WindowsHandle file = open_file(path_ / name, kNoLinks);
  return read_open(file, path_ / name, used);
}

std::string PrivateFolder::judge(const std::string& name) const {
  if (!is_open()) return refusal_;
  const WindowsHandle file = open_file(path_ / name, kNoLinks);
  return read_open(file, path_ / name, false, true).refusal;
}

std::string PrivateFolder::write(const std::string& name, std::span<const std::string_view> parts) const {
  if (!is_open()) return problem();
  static std::atomic<unsigned> serial{0};
  // Machines may share the folder and have the same process id, so the name has the time as well.
  const fs::path temporary = path_ / fmt::format("{}.{}.{}.{:x}.tmp", name, ::GetCurrentProcessId(), serial.fetch_add(1), now_ns());
  WindowsHandle file(::CreateFileW(temporary.c_str(), GENERIC_WRITE, FILE_SHARE_READ, nullptr, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, nullptr));
  if (!file) return reason_of(::GetLastError());
  bool good = true;
  for (std::string_view part : parts) good = good && write_all(file.get(), part.data(), part.size());
  good = file.close() && good;
  good = good && ::MoveFileExW(temporary.c_str(), (path_ / name).c_str(), MOVEFILE_REPLACE_EXISTING) != 0;
  if (good) return {};
  std::string why = reason_of(::GetLastError());
  ::DeleteFileW(temporary.c_str());
  return why;
}

bool PrivateFolder::remove(const std::string& name) const {
  if (!is_open()) return false;
  if (::DeleteFileW((path_ / name).c_str())) return true;
  errno = is_missing(::GetLastError()) ? ENOENT : EACCES;
  return false;
}

std::vector<PrivateFolder::File> PrivateFolder::list() const {
  std::vector<File> files;
  if (!is_open()) return files;
  WIN32_FIND_DATAW entry{};
  const HANDLE search = ::FindFirstFileW((path_ / L"*").c_str(), &entry);
  if (search == INVALID_HANDLE_VALUE) return files;
  do {
    if ((entry.dwFileAttributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT)) != 0) continue;
    files.push_back({fs::path(entry.cFileName).string(), std::uint64_t{entry.nFileSizeHigh} << 32 | entry.nFileSizeLow, nanoseconds(entry.ftLastWriteTime)});
  } while (::FindNextFileW(search, &entry));
  ::FindClose(search);
  return files;
}

}}}  // namespace clutch::v0::detail
#endif
