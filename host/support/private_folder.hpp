// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

// Whom this page trusts, and what it judges:
// POSIX: the process's user and root. One of the two owns a file or folder, and its group and others may not write to it (by its mode).
// Windows: the process's user, the Administrators and SYSTEM (and the TrustedInstaller, as a reader of rights alone). One of the three owns the file or folder,
//   and no entry of its access control list allows anyone else to write, append, delete, or to change its rights or its owner. Denials are not
//   counted, so a list that only a denial makes harmless is refused; a file system without such lists is refused.

/// True if a regular file's owner is trusted, or is the owner of the file `other`, and nobody else may write to it unless others may write to `other`, too.
bool is_of_trusted_owner(const std::filesystem::path& file, const std::filesystem::path& other);

/// A file's bytes; nullopt if the file is absent or refused.
struct PrivateBytes {
  std::optional<std::string> bytes;
  std::string refusal = {};  ///< why an existing file is not used, with its path and what to do
};

/// Reads a file that only trusted users can have written. The open file is checked, which is the one then read. Links are followed, and the folder is not
/// checked.
PrivateBytes read_private_file(const std::filesystem::path& path);

/// An open file, of which parts are read when they are asked for. It is not mapped: whoever truncates a mapped file ends the processes that read it.
struct PrivateFile {
  /// Bytes from an offset on; nullopt if the file does not have them, any more. Empty if the file is absent or refused.
  std::function<std::optional<std::string>(std::uint64_t offset, std::uint64_t bytes)> read = {};
  std::uint64_t bytes = 0;
  bool exists = false;
  std::string refusal = {};  ///< as of PrivateBytes
};
/// Opens a file that only trusted users can have written, checked as by read_private_file(). Windows: it is read whole, since an open file could not be
/// replaced.
PrivateFile open_private_file(const std::filesystem::path& path);

/// Creates a folder and missing folders above it, for this user alone (mode 0700; Windows: the user, the Administrators and SYSTEM). Returns the system's last
/// error, or 0. An error may be harmless; the use of the folder shows it.
int make_private_folders(const std::filesystem::path& path);

/// Makes a folder of a new name in the system's folder of temporary files, for this user alone. Empty if that fails.
std::filesystem::path make_temporary_folder();

/// A folder of files that only trusted users can have written. All access goes through the open folder, so that the folder cannot be replaced after the check;
/// on Windows the folder can be neither renamed nor removed while it is open.
class PrivateFolder {
 public:
  /// Opens root / below. Every folder from root on is checked. root may be a link that a trusted owner made; links below root are refused.
  /// `make`: creates missing folders, for this user alone, as make_private_folders().
  explicit PrivateFolder(const std::filesystem::path& root, const std::filesystem::path& below = {}, bool make = false);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  bool is_open() const noexcept { return open_ != -1; }
  /// Why the folder is refused; empty if the folder is usable.
  const std::string& refusal() const noexcept { return refusal_; }
  /// Why the folder is not open: the refusal, or the system's error.
  const std::string& problem() const noexcept { return refusal_.empty() ? error_ : refusal_; }

  /// Reads a file, checked as by read_private_file() except that links are refused. `used`: notes the time of use for list(), to the hour.
  PrivateBytes read(const std::string& name, bool used = false) const;
  /// Why read() would refuse a file, which is not read; empty if it would not, or if there is no such file.
  std::string judge(const std::string& name) const;
  /// Writes a file (mode 0600; Windows: with the folder's rights) under a temporary name and renames it, so that readers see all of it or none. Windows:
  /// fails while another process reads the file of that name. Returns the reason of a failure; empty on success.
  std::string write(const std::string& name, std::span<const std::string_view> parts) const;
  /// False, with the reason in errno (ENOENT if there is no such file), if that fails.
  bool remove(const std::string& name) const;

  struct File {
    std::string name;
    std::uint64_t bytes = 0;
    std::int64_t used_ns = 0;  ///< last write or noted read, since the epoch
  };
  /// The regular files of the folder.
  std::vector<File> list() const;

 private:
  void step(const std::filesystem::path& name, bool make);
  std::filesystem::path path_;
  std::intptr_t open_ = -1;  ///< POSIX: file descriptor; Windows: handle
  std::string refusal_, error_;
};

}}}  // namespace clutch::v0::detail
