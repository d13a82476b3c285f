// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

using Digest = std::array<std::uint8_t, 32>;

/// SHA-256 (FIPS 180-4) of the bytes.
Digest sha256(std::string_view bytes);
std::string to_hex(const Digest& digest);

}}}  // namespace clutch::v0::detail
