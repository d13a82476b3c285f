// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/allocator.hpp>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

// The sizes of PyTorch's CUDA caching allocator, so that reserved memory is what PyTorch's users expect.
inline constexpr std::uint64_t kBlockAlignment = 512;
inline constexpr std::uint64_t kSmallLimit = 1ull << 20;
/// Where segments grow in place. Small blocks that live long must not split the range of the others; but what has a range of its own holds the pages of its own
/// peak, so that few blocks should be small: with 1 MiB here a network held 1.33 of what it asked for when lengths of sequences varied, with 64 KiB 1.05.
inline constexpr std::uint64_t kSmallGrowingLimit = 64ull << 10;
inline constexpr std::uint64_t kSmallSegment = 2ull << 20;
inline constexpr std::uint64_t kLargeLimit = 10ull << 20;
inline constexpr std::uint64_t kSegmentRounding = 2ull << 20;

constexpr std::uint64_t round_up(std::uint64_t n, std::uint64_t to) { return (n + to - 1) / to * to; }

/// Parses PyTorch's allocator configuration; keys that are not in the text have their defaults. Errors: invalid_setting.
AllocatorSettings parse_allocator_settings(std::string_view text);
/// What CLUTCH_ALLOC_CONF must be if `text` is not valid, with the part that is not; else empty.
std::string allocator_settings_refusal(std::string_view text);

/// Bytes of the block that a request gets.
std::uint64_t rounded_bytes(const AllocatorSettings& settings, std::uint64_t requested);
/// True if a block of so many bytes comes from segments for small ones. `grows`: its segment grows in place.
constexpr bool is_small(std::uint64_t bytes, bool grows) { return bytes <= (grows ? kSmallGrowingLimit : kSmallLimit); }
/// Bytes of a new segment for a block that does not grow in place. `reserved`: bytes of segments that there are; `device`: bytes of the device, 0: without
/// bound.
std::uint64_t new_segment_bytes(const AllocatorSettings& settings, std::uint64_t block, std::uint64_t reserved, std::uint64_t device);

/// The settings in force: CLUTCH_ALLOC_CONF's, or the last set_allocator_settings(). Errors: invalid_setting.
AllocatorSettings current_allocator_settings();
/// Raised by each set_allocator_settings(), so that who keeps a copy sees that it is old.
std::uint64_t allocator_settings_version() noexcept;

}}}  // namespace clutch::v0::detail
