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

/// Whether a file or folder of this owner may steer the process: it is the process's user, or root.
bool is_trusted_owner(std::uint32_t uid) noexcept;

/// A file's bytes; nothing if it is absent or refused.
struct PrivateBytes {
  std::optional<std::string> bytes;
  std::string refusal = {};  ///< why the file is not used though it is there, with its path and what to do
};

/// Reads a file that nobody but this process's user, or root, can have written: one of them owns it, and its group and others may not write to it.
/// What is judged is what is then read. Links are followed, and the folder is not judged.
PrivateBytes read_private_file(const std::filesystem::path& path);

/// Creates a folder and those above it that are missing, for this user alone (mode 0700). Returns the last error, 0 if there was none; whether it matters shows
/// when the folder is used.
int make_private_folders(const std::filesystem::path& path);

/// A folder of files that nobody but this process's user, or root, can have written: one of them owns the folder, and its group and others may not write
/// to it. Everything goes through the open folder, so that nothing else can take its place after it was judged.
class PrivateFolder {
 public:
  /// Opens root / below, of which every folder from root on is judged. root may be a link that a trusted owner made; below it links are refused.
  /// `make`: creates the folders that are missing, for this user alone (mode 0700).
  explicit PrivateFolder(const std::filesystem::path& root, const std::filesystem::path& below = {}, bool make = false);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  bool is_open() const noexcept { return number_ >= 0; }
  /// Why the folder is refused; empty if it is not.
  const std::string& refusal() const noexcept { return refusal_; }
  /// Why it is not open: the refusal, or the system's reason.
  const std::string& problem() const noexcept { return refusal_.empty() ? error_ : refusal_; }

  /// Reads a file, which is judged as read_private_file() does; links are refused. `used`: notes that it was, for list(), to the hour.
  PrivateBytes read(const std::string& name, bool used = false) const;
  /// Writes a file (mode 0600) under a temporary name and renames it, so that readers see all of it or none. Returns why it failed; empty: it did not.
  std::string write(const std::string& name, std::span<const std::string_view> parts) const;
  bool remove(const std::string& name) const;

  struct File {
    std::string name;
    std::uint64_t bytes = 0;
    std::int64_t used_ns = 0;  ///< last write or noted read, since the epoch
  };
  /// The regular files.
  std::vector<File> list() const;

 private:
  void step(const std::filesystem::path& name, bool make);
  std::filesystem::path path_;
  int number_ = -1;
  std::string refusal_, error_;
};

}}}  // namespace clutch::v0::detail
