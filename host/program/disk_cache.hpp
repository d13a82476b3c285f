// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "program/sha256.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// Folder of all files that are kept between processes; empty if CLUTCH_CACHE=off. The first write of a file creates it.
std::filesystem::path cache_folder();

/// True if entries are written; false with CLUTCH_CACHE=read.
bool cache_is_written();

/// Reads an entry; nullopt if it is absent, truncated, altered, or has another key or format. A file that another user may have written
/// (support/private_folder.hpp) is not read; this is logged once.
std::optional<std::string> cache_read(const std::filesystem::path& file, const Digest& key);
/// Writes an entry under a temporary name and renames it, so that readers see all of it or none. Programs past CLUTCH_CACHE_SIZE are removed, the least
/// recently used first. A failure is logged once and returns false; the library then works without the cache.
bool cache_write(const std::filesystem::path& file, const Digest& key, std::string_view payload);

/// The result of a device's self-test as it was kept, under a kind that begins with a dot; nullopt if none is. While CLUTCH_PACK_RECORD records there is none,
/// so that the self-test runs and its programs are recorded.
std::optional<std::string> kept_result(const Digest& key, std::string_view kind);
void keep_result(const Digest& key, std::string_view kind, std::string_view result);

}}}  // namespace clutch::v0::detail
