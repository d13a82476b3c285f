// SPDX-License-Identifier: Apache-2.0
#include "program/disk_cache.hpp"

#include <clutch/error.hpp>

#include "runtime/settings.hpp"
#include "support/private_folder.hpp"
#include "support/system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <system_error>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

namespace fs = std::filesystem;

struct Header {
  char magic[8];
  std::uint32_t format;
  std::uint32_t reserved;
  std::uint64_t length;
  Digest key;
  Digest payload;
};
constexpr char kMagic[8] = {'C', 'L', 'U', 'T', 'C', 'H', 'K', 'V'};
constexpr std::uint32_t kFormat = 1;

constexpr const char* kPrograms = "programs";
constexpr std::array kFolders{kPrograms, "devices"};
constexpr std::uint64_t kHour_ns = 3'600'000'000'000;

/// The cache's folder and a file's path below it; for a file outside of the cache, the file's own folder.
struct Place {
  fs::path root, below;
  std::string name;
};
Place place_of(const fs::path& file) {
  const fs::path root = cache_folder(), folder = file.parent_path();
  const fs::path below = root.empty() ? fs::path() : folder.lexically_relative(root);
  if (below.empty() || *below.begin() == "..") return {folder, {}, file.filename().string()};
  return {root, below == "." ? fs::path() : below, file.filename().string()};
}

bool is_temporary(std::string_view name) { return name.ends_with(".tmp"); }
/// True if the name in a folder of the cache is one of the library's (a key, then a kind). The user may choose a folder that has other files.
bool is_of_the_cache(std::string_view name) {
  const std::size_t key = name.find_first_not_of("0123456789abcdef");
  if (key == std::string_view::npos || key < 16) return false;
  const std::string_view kind = name.substr(key);
  for (std::string_view known : {".bin", ".self_test", ".dot_products", ".matrix", ".roofline.json"})
    if (kind == known || (kind.starts_with(known) && kind[known.size()] == '.' && is_temporary(kind))) return true;
  return false;
}

std::vector<PrivateFolder::File> files_of_the_cache(const PrivateFolder& folder) {
  std::vector<PrivateFolder::File> files = folder.list();
  std::erase_if(files, [](const PrivateFolder::File& f) { return !is_of_the_cache(f.name); });
  return files;
}

/// Removes the least recently used programs if `written` more bytes exceed CLUTCH_CACHE_SIZE. A listing of the folder takes longer than a write, so the folder
/// is listed at the first call and then after each sixteenth of the limit written. Other processes may do the same at the same time; they remove the same
/// files.
void keep_to_limit(const PrivateFolder& programs, const fs::path& path, std::uint64_t written) {
  struct Budget {
    std::mutex mutex;
    fs::path path;
    std::uint64_t limit = 0, left = 0;
  };
  static Budget& budget = *new Budget;
  const std::uint64_t limit = the_settings().cache_size.bytes();
  if (limit == 0) return;
  std::lock_guard lock(budget.mutex);
  if (budget.path == path && budget.limit == limit && written <= budget.left) {
    budget.left -= written;
    return;
  }
  std::vector<PrivateFolder::File> files = files_of_the_cache(programs);
  const std::int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  // Temporary files older than an hour are left over from processes that ended during a write.
  std::erase_if(files, [&](const PrivateFolder::File& f) {
    return is_temporary(f.name) && (now - f.used_ns <= static_cast<std::int64_t>(kHour_ns) || programs.remove(f.name));
  });
  std::uint64_t total = 0;
  for (const PrivateFolder::File& f : files) total += f.bytes;
  if (total > limit) {
    std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.used_ns < b.used_ns; });
    for (const PrivateFolder::File& f : files) {
      if (total <= limit - limit / 10) break;  // down to 90 % of the limit, so that the next write need not list the files again
      programs.remove(f.name);
      total -= f.bytes;
    }
  }
  budget.path = path, budget.limit = limit, budget.left = total > limit ? 0 : std::min(limit - total, limit / 16);
}

}  // namespace

fs::path cache_folder() {
  const Settings& settings = the_settings();
  if (settings.cache.value == "off") return {};
  if (!settings.cache_dir.value.empty()) return settings.cache_dir.value;
  const fs::path user = user_cache_folder();
  return user.empty() ? fs::path() : user / "clutch";
}

bool cache_is_written() { return the_settings().cache.value == "on"; }

std::optional<std::string> cache_read(const fs::path& file, const Digest& key) {
  const Place place = place_of(file);
  const PrivateFolder folder(place.root, place.below);
  const PrivateBytes read = folder.read(place.name, cache_is_written());
  for (const std::string& refusal : {folder.refusal(), read.refusal})
    if (!refusal.empty()) log_once(LogLevel::warn, fmt::format("cache: {}; programs are built again by each process", refusal));
  Header header;
  if (!read.bytes || read.bytes->size() < sizeof header) return std::nullopt;
  std::memcpy(&header, read.bytes->data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.format != kFormat || header.key != key) return std::nullopt;
  if (header.length != read.bytes->size() - sizeof header) return std::nullopt;
  std::string payload = read.bytes->substr(sizeof header);
  if (sha256(payload) != header.payload) return std::nullopt;
  return payload;
}

bool cache_write(const fs::path& file, const Digest& key, std::string_view payload) {
  if (!cache_is_written()) return false;
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.format = kFormat;
  header.length = payload.size();
  header.key = key;
  header.payload = sha256(payload);
  const Place place = place_of(file);
  const PrivateFolder folder(place.root, place.below, true);
  const std::array parts{std::string_view(reinterpret_cast<const char*>(&header), sizeof header), payload};
  if (const std::string problem = folder.write(place.name, parts); !problem.empty()) {
    if (folder.refusal().empty())
      log_once(LogLevel::warn,
               fmt::format("the cache folder {} cannot be written ({}): programs are built again by each process", file.parent_path().string(), problem));
    else
      log_once(LogLevel::warn, fmt::format("cache: {}; programs are built again by each process", problem));
    return false;
  }
  if (place.below == kPrograms) keep_to_limit(folder, place.root, sizeof header + payload.size());
  return true;
}

namespace {
fs::path file_of_result(const Digest& key, std::string_view kind) {
  const fs::path folder = cache_folder();
  return folder.empty() ? folder : folder / "devices" / (to_hex(key).substr(0, 32) + std::string(kind));
}
}  // namespace

std::optional<std::string> kept_result(const Digest& key, std::string_view kind) {
  const fs::path file = file_of_result(key, kind);
  return file.empty() || !the_settings().pack_record.value.empty() ? std::nullopt : cache_read(file, key);
}

void keep_result(const Digest& key, std::string_view kind, std::string_view result) {
  if (const fs::path file = file_of_result(key, kind); !file.empty()) cache_write(file, key, result);
}

}}}  // namespace clutch::v0::detail

namespace clutch { inline namespace v0 {

std::string cache_directory() { return detail::cache_folder().string(); }

CacheUsage cache_usage() {
  CacheUsage usage{.limit = detail::the_settings().cache_size.bytes()};
  const std::filesystem::path root = detail::cache_folder();
  if (root.empty()) return usage;
  for (const char* below : detail::kFolders) {
    const detail::PrivateFolder folder(root, below);
    if (usage.refusal.empty()) usage.refusal = folder.refusal();
    for (const detail::PrivateFolder::File& f : detail::files_of_the_cache(folder)) ++usage.files, usage.bytes += f.bytes;
  }
  return usage;
}

CacheUsage clear_cache() {
  CacheUsage removed{.limit = detail::the_settings().cache_size.bytes()};
  const std::filesystem::path root = detail::cache_folder();
  if (root.empty()) return removed;
  for (const char* below : detail::kFolders) {
    const detail::PrivateFolder folder(root, below);
    if (!folder.refusal().empty())
      throw Error(ErrorCode::io, "clear_cache", fmt::format("the cache must be a folder of the user's own, got one that is refused: {}", folder.refusal()));
    for (const detail::PrivateFolder::File& f : detail::files_of_the_cache(folder)) {
      if (folder.remove(f.name))
        ++removed.files, removed.bytes += f.bytes;
      else if (errno != ENOENT)  // ENOENT: another process removed the file first
        throw Error(ErrorCode::io, "clear_cache",
                    fmt::format("files of the cache must be removable, got {}: {}", (root / below / f.name).string(), std::generic_category().message(errno)));
    }
  }
  return removed;
}

}}  // namespace clutch::v0
