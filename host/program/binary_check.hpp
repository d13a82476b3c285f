// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/device.hpp>

#include "program/pack_file.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// The first word of SPIR-V.
inline constexpr std::uint32_t kSpirvMagic = 0x07230203;

bool is_pocl(std::string_view platform) noexcept;
/// True of a CPU device of a PoCL up to 3.1, which runs a linker at the first launch of each local size that a program's binary does not contain, and ends the
/// process where it finds none.
bool links_at_launch(std::string_view platform, const std::string& platform_version, DeviceType type);
/// False where such a PoCL finds no linker and CLUTCH_LINKER does not say that it needs none.
bool may_link();
/// Local sizes that a binary of such a PoCL contains for a kernel. The binary must be without a fault.
std::vector<LocalSize> local_sizes_in(std::string_view pocl_binary, std::string_view kernel);

/// Why a driver that ends the process over it must not be given this binary; empty if nothing is known against it. PoCL (seen: 3.1) and Mesa's rusticl (seen:
/// 22.3) take for granted that lengths and versions within their own formats are right. `platform_version`: a PoCL after 3.1 is given later versions of its
/// format, too.
std::string fault_of_binary(std::string_view platform, const std::string& platform_version, std::string_view binary);

}}}  // namespace clutch::v0::detail
