// SPDX-License-Identifier: Apache-2.0
// The flight recorder of a process's groups.
#pragma once
#include "dist/call.hpp"
#include "dist/flight_ring.hpp"

#include <atomic>
#include <memory>
#include <string_view>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

class Flight {
 public:
  explicit Flight(const FlightOptions& options) : ring_(options) {}
  /// Names a group. `name`: the same on all of its ranks, and no other group's.
  std::uint32_t add_group(std::string_view name, std::string_view description, std::span<const int> ranks);
  std::uint64_t begin(std::uint32_t group, const CallPlan& plan, const CallHeader& header, Timeout timeout) noexcept;
  void end(std::uint64_t id, Work::Status how, std::string_view why) noexcept;
  FlightRing& ring() noexcept { return ring_; }

 private:
  FlightRing ring_;
  std::atomic<std::uint32_t> groups_{0};
  std::atomic<std::uint64_t> calls_{0};
};

}}}}  // namespace clutch::v0::dist::detail
