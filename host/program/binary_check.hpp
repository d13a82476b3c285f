// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

/// Why a driver that ends the process over it must not be given this binary; empty if nothing is known against it. PoCL (seen: 3.1) takes for granted that
/// lengths within its own format are right.
std::string fault_of_binary(std::string_view platform, std::string_view binary);

}}}  // namespace clutch::v0::detail
