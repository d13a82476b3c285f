// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

/// The first word of SPIR-V.
inline constexpr std::uint32_t kSpirvMagic = 0x07230203;

/// Why a driver that ends the process over it must not be given this binary; empty if nothing is known against it. PoCL (seen: 3.1) and Mesa's rusticl (seen:
/// 22.3) take for granted that lengths and versions within their own formats are right. `platform_version`: a PoCL after 3.1 is given later versions of its
/// format, too.
std::string fault_of_binary(std::string_view platform, const std::string& platform_version, std::string_view binary);

}}}  // namespace clutch::v0::detail
