// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/registry.hpp"

#include <cstdint>
#include <span>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

/// Bits of DeviceTraits::quirks.
enum Quirk : std::uint32_t {
  kQuirkJitPerLocalSize = 1u << 0,
  kQuirkCommandBufferArguments = 1u << 1,
  kQuirkCommandBufferTimes = 1u << 2,
  kQuirkUnderclaimsRounding = 1u << 3,
  kQuirkSlowHostTransfer = 1u << 4,
  kQuirkFailedWaitsPass = 1u << 5,
  kQuirkSharedQueueHangs = 1u << 6,
  kQuirkExitWhileBuilding = 1u << 7,
  kQuirkLoopsEndEarly = 1u << 8,
  kQuirkArgumentSizesPanic = 1u << 9,
  kQuirkByteSelectsCrash = 1u << 10,
  kQuirkEventsCost = 1u << 11,
  kQuirkSubDevicesUnnamed = 1u << 12,
  kQuirkQueuesTakeTurns = 1u << 13,
};

/// Largest number of iterations of all loops of a work-item together if kQuirkLoopsEndEarly applies; leaving a loop counts as one iteration.
inline constexpr std::uint64_t kLoopLimit = 65535;

struct QuirkRow {
  Quirk bit;
  std::string_view name;
  bool (*applies)(const DeviceRecord&);  ///< as a claim, which a self-test may replace
  std::string_view reason;
  std::string_view source;
};

/// The one table of driver quirks. All other code asks traits.
std::span<const QuirkRow> quirk_table();

}}}  // namespace clutch::v0::detail
