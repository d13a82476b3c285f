// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// True if the owner of a file or folder is trusted: the process's user, or root.
bool is_trusted_owner(std::uint32_t uid) noexcept;

/// A file's bytes; nullopt if the file is absent or refused.
struct PrivateBytes {
  std::optional<std::string> bytes;
  std::string refusal = {};  ///< why an existing file is not used, with its path and what to do
};

/// Reads a file that no user but the process's own and root can have written: one of the two owns the file, and its group and others may not write to it. The
/// open file is checked, which is the one then read. Links are followed, and the folder is not checked.
PrivateBytes read_private_file(const std::filesystem::path& path);

/// Creates a folder and missing folders above it, for this user alone (mode 0700). Returns the last error, or 0. An error may be harmless; the use of the
/// folder shows it.
int make_private_folders(const std::filesystem::path& path);

/// A folder of files that no user but the process's own and root can have written: one of the two owns the folder, and its group and others may not write to
/// it. All access goes through the open folder, so that the folder cannot be replaced after the check.
class PrivateFolder {
 public:
  /// Opens root / below. Every folder from root on is checked. root may be a link that a trusted owner made; links below root are refused.
  /// `make`: creates missing folders, for this user alone (mode 0700).
  explicit PrivateFolder(const std::filesystem::path& root, const std::filesystem::path& below = {}, bool make = false);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  bool is_open() const noexcept { return number_ >= 0; }
  /// Why the folder is refused; empty if the folder is usable.
  const std::string& refusal() const noexcept { return refusal_; }
  /// Why the folder is not open: the refusal, or the system's error.
  const std::string& problem() const noexcept { return refusal_.empty() ? error_ : refusal_; }

  /// Reads a file, checked as by read_private_file() except that links are refused. `used`: notes the time of use for list(), to the hour.
  PrivateBytes read(const std::string& name, bool used = false) const;
  /// Writes a file (mode 0600) under a temporary name and renames it, so that readers see all of it or none. Returns the reason of a failure; empty on success.
  std::string write(const std::string& name, std::span<const std::string_view> parts) const;
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
  int number_ = -1;
  std::string refusal_, error_;
};

}}}  // namespace clutch::v0::detail
