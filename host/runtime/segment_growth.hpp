// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/allocator.hpp>

#include <cstdint>

namespace clutch { inline namespace v0 { namespace detail {

/// The settings as a device takes them whose segments can grow in place: they do unless the text says expandable_segments:False, or has a key that means only
/// segments which do not grow (large_segment_size_mb, max_split_size_mb, max_non_split_rounding_mb, garbage_collection_threshold).
AllocatorSettings with_growth(AllocatorSettings settings);

/// Large blocks of a segment that grows lie one behind another. Before those of whole pages some bytes are left out, so that neighbours do not begin at the
/// same place of a page, where kernels that read many of them side by side would find all in a few sets of a core's cache.
inline constexpr std::uint64_t kPlacedLimit = 2ull << 20, kPlacedPage = 4096;

}}}  // namespace clutch::v0::detail
