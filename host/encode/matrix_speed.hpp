// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/device.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// What the matrix instructions of a launch multiply, by the text of its plan: "f16", "bf16", "tf32", "i8", "f8", of 2:4 matrices "2:4 f16", "2:4 bf16",
/// "2:4 i8"; empty: it has none. The name lives as long as the process.
std::string_view matrix_numbers_of(std::string_view plan);

/// FLOP/s that the device's matrix instructions reach where operands stay in registers, by those names; of 2:4 matrices by the numbers that they keep.
/// Numbers for which the device has no instruction that works are left out. Measures.
CLUTCH_API std::vector<std::pair<std::string, double>> matrix_speeds(const Device& device);

}}}  // namespace clutch::v0::detail
