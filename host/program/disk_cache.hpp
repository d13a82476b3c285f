// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "program/sha256.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// Folder of all files that are kept between processes; empty if CLUTCH_CACHE=off. It is made when a file is written first.
std::filesystem::path cache_folder();

/// True if entries are written; false with CLUTCH_CACHE=read.
bool cache_is_written();

/// Reads an entry; nothing if it is absent, truncated, altered, or of another key or format. What someone else may have written (support/private_folder.hpp)
/// is not read and logged once.
std::optional<std::string> cache_read(const std::filesystem::path& file, const Digest& key);
/// Writes an entry under a temporary name and renames it, so that readers see all of it or none; programs past CLUTCH_CACHE_SIZE go, the least recently
/// used first. A failure is logged once and reported as false; the library goes on without the cache.
bool cache_write(const std::filesystem::path& file, const Digest& key, std::string_view payload);

}}}  // namespace clutch::v0::detail
