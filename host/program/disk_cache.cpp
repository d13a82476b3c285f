// SPDX-License-Identifier: Apache-2.0
#include "program/disk_cache.hpp"

#include "runtime/settings.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace clutch::inline v0::detail {

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

}  // namespace

fs::path cache_folder() {
  const Settings& settings = the_settings();
  if (settings.cache.value == "off") return {};
  if (!settings.cache_dir.value.empty()) return settings.cache_dir.value;
  // XDG_CACHE_HOME and HOME are the system's, not settings of this library.
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg) return fs::path(xdg) / "clutch";
  if (const char* home = std::getenv("HOME"); home && *home) return fs::path(home) / ".cache" / "clutch";
  return {};
}

bool cache_is_written() { return the_settings().cache.value == "on"; }

std::optional<std::string> cache_read(const fs::path& file, const Digest& key) {
  std::ifstream in(file, std::ios::binary);
  Header header;
  if (!in.read(reinterpret_cast<char*>(&header), sizeof header)) return std::nullopt;
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.format != kFormat || header.key != key) return std::nullopt;
  std::error_code ignored;
  auto size = fs::file_size(file, ignored);
  if (ignored || size < sizeof header || header.length != size - sizeof header) return std::nullopt;
  std::string payload(header.length, '\0');
  if (!in.read(payload.data(), static_cast<std::streamsize>(payload.size()))) return std::nullopt;
  if (sha256(payload) != header.payload) return std::nullopt;
  return payload;
}

bool cache_write(const fs::path& file, const Digest& key, std::string_view payload) {
  if (!cache_is_written()) return false;
  static std::atomic<unsigned> serial{0};
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.format = kFormat;
  header.length = payload.size();
  header.key = key;
  header.payload = sha256(payload);
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  fs::path temporary = file;
  temporary += fmt::format(".{}.{}.tmp", ::getpid(), serial.fetch_add(1));
  {
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(&header), sizeof header);
    out.write(payload.data(), static_cast<std::streamsize>(payload.size()));
    out.close();
    if (!out) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) fs::rename(temporary, file, error);
  if (error) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    log_once(LogLevel::warn,
             fmt::format("the cache folder {} cannot be written ({}): programs are built again by each process", file.parent_path().string(), error.message()));
    return false;
  }
  return true;
}

}  // namespace clutch::inline v0::detail

namespace clutch::inline v0 {

std::string cache_directory() { return detail::cache_folder().string(); }

}  // namespace clutch::inline v0
