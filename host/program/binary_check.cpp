// SPDX-License-Identifier: Apache-2.0
#include "program/binary_check.hpp"

#include "runtime/settings.hpp"
#include "support/system.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

/// Reads a binary from the front; `whole` is false once a read would pass its end.
struct Reader {
  std::string_view left;
  bool whole = true;

  template <class T>
  T number() {
    T n{};
    if (std::string_view bytes = skip(sizeof n); !bytes.empty()) std::memcpy(&n, bytes.data(), sizeof n);
    return n;
  }
  std::string_view skip(std::uint64_t bytes) {
    if (bytes > left.size()) {
      whole = false, left = {};
      return {};
    }
    std::string_view part = left.substr(0, bytes);
    left.remove_prefix(bytes);
    return part;
  }
};

/// Files as they stand one after another: a path and contents, each after its length.
bool are_files(std::string_view bytes) {
  Reader r{bytes};
  while (r.whole && !r.left.empty()) {
    const bool has_path = !r.skip(r.number<std::uint32_t>()).empty();
    if (!has_path || r.skip(r.number<std::uint32_t>()).empty()) return false;
  }
  return r.whole;
}

// Version 9, which is little-endian: name, device (8 bytes), version (4), kernels (4), flags (8), files of the program (4), digest (41); the files' bytes (8)
// and the files; then each kernel: its bytes (8), of which are files (8) and of arguments (4), name, and so on, and its files.
constexpr std::string_view kPoclName("poclbin\0", 8);
constexpr std::uint32_t kPoclVersion = 9;

/// True of a PoCL after 3.1, which may write later versions than this page knows: it checks those for itself.
bool is_newer_pocl(const std::string& platform_version) {
  constexpr std::string_view kName = "PoCL ";
  constexpr double kKnown = 3.1;
  const std::size_t at = platform_version.find(kName);
  return at != std::string::npos && std::strtod(platform_version.c_str() + at + kName.size(), nullptr) > kKnown + 0.05;
}

std::string fault_of_pocl(std::string_view binary, bool driver_is_newer) {
  Reader r{binary};
  if (r.skip(kPoclName.size()) != kPoclName) return "it does not begin with poclbin";
  r.skip(8);
  const auto version = r.number<std::uint32_t>(), kernels = r.number<std::uint32_t>();
  if (r.whole && version > kPoclVersion && driver_is_newer) return {};
  if (r.whole && version != kPoclVersion) return fmt::format("its version must be {}, got {}", kPoclVersion, version);
  r.skip(8 + 4 + 41);
  const std::string_view files = r.skip(r.number<std::uint64_t>());
  bool sound = r.whole && are_files(files);
  for (std::uint32_t k = 0; sound && k < kernels; ++k) {
    Reader head = r;
    const auto bytes = head.number<std::uint64_t>(), of_files = head.number<std::uint64_t>(), of_arguments = std::uint64_t{head.number<std::uint32_t>()};
    constexpr std::uint64_t kHead = 8 + 8 + 4;
    const std::string_view kernel = r.skip(bytes);
    sound = head.whole && r.whole && bytes >= kHead && of_files <= bytes - kHead && of_arguments <= bytes - kHead - of_files;
    if (sound) sound = are_files(kernel.substr(static_cast<std::size_t>(bytes - of_files)));
  }
  return sound && r.left.empty() ? std::string() : fmt::format("its lengths do not fit its {} bytes", binary.size());
}

// Version 1, little-endian: version (4), bytes of SPIR-V (4), kind (4), SPIR-V. Later versions begin with a name, and are checked by the driver.
constexpr std::string_view kMesaName("rusticl\0", 8);

std::string fault_of_mesa(std::string_view binary) {
  if (binary.starts_with(kMesaName)) return {};
  Reader r{binary};
  const auto version = r.number<std::uint32_t>(), bytes = r.number<std::uint32_t>();
  r.skip(4);
  if (!r.whole || version != 1 || r.left.size() != bytes || r.number<std::uint32_t>() != kSpirvMagic)
    return fmt::format("it must be SPIR-V behind a head of version 1, got other contents in {} bytes", binary.size());
  return {};
}

}  // namespace

bool is_pocl(std::string_view platform) noexcept { return platform == "Portable Computing Language"; }

bool links_at_launch(std::string_view platform, const std::string& platform_version, DeviceType type) {
  return is_pocl(platform) && type == DeviceType::cpu && !is_newer_pocl(platform_version);
}

bool may_link() {
  // As LLVM's driver looks for it: behind the name of its target first.
#if defined(__x86_64__)
  constexpr const char* kOfTarget = "x86_64-pc-linux-gnu-ld";
#elif defined(__aarch64__)
  constexpr const char* kOfTarget = "aarch64-unknown-linux-gnu-ld";
#else
  constexpr const char* kOfTarget = "ld";
#endif
  static const bool found = is_in_search_path("ld") || is_in_search_path(kOfTarget);
  return found || the_settings().linker.value == "assume";
}

std::vector<LocalSize> local_sizes_in(std::string_view binary, std::string_view kernel) {
  // Files of a kernel stand in folders such as 64-1-1-goffs0-smallgrid; a folder without smallgrid is for wide launches.
  std::vector<LocalSize> sizes;
  Reader r{binary};
  r.skip(kPoclName.size() + 8 + 4);
  const auto kernels = r.number<std::uint32_t>();
  r.skip(8 + 4 + 41);
  r.skip(r.number<std::uint64_t>());
  for (std::uint32_t k = 0; r.whole && k < kernels; ++k) {
    Reader head = r;
    const auto bytes = head.number<std::uint64_t>(), of_files = head.number<std::uint64_t>();
    const std::string_view whole = r.skip(bytes);
    if (!head.whole || !r.whole || of_files > whole.size()) return sizes;
    Reader files{whole.substr(whole.size() - static_cast<std::size_t>(of_files))};
    while (files.whole && !files.left.empty()) {
      const std::string path(files.skip(files.number<std::uint32_t>()));
      files.skip(files.number<std::uint32_t>());
      const std::size_t begin = path.find(fmt::format("/{}/", kernel));
      if (begin == std::string::npos) continue;
      LocalSize size;
      int read = 0;
      if (std::sscanf(path.c_str() + begin + kernel.size() + 2, "%u-%u-%u-goffs0%n", &size.x, &size.y, &size.z, &read) != 3 || read == 0) continue;
      // A folder without the compiled kernel is what a build that failed left.
      if (!path.ends_with(".so")) continue;
      size.wide = !path.substr(begin + kernel.size() + 2 + static_cast<std::size_t>(read)).starts_with("-smallgrid");
      sizes.push_back(size);
    }
  }
  return sizes;
}

std::string fault_of_binary(std::string_view platform, const std::string& platform_version, std::string_view binary) {
  if (is_pocl(platform)) return fault_of_pocl(binary, is_newer_pocl(platform_version));
  return platform == "rusticl" ? fault_of_mesa(binary) : std::string();
}

}}}  // namespace clutch::v0::detail
