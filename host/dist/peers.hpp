// SPDX-License-Identifier: Apache-2.0
// Watches the processes of other ranks of this host.
#pragma once
#include "support/shared_file.hpp"

#include <chrono>
#include <mutex>
#include <optional>
#include <vector>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

class Peers {
 public:
  /// `processes`: of all ranks of the world. Those of other hosts, and of this process itself, are not watched.
  explicit Peers(const std::vector<clutch::detail::ProcessIdentity>& processes);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  /// Ranks whose process ended so long ago that what they had sent has come. Asks the system once a millisecond at most. Threads: any.
  std::vector<int> ended();

 private:
  using Clock = std::chrono::steady_clock;
  struct Peer {
    int rank, handle;  ///< -1: of one that had ended
    std::optional<Clock::time_point> seen_ended;
  };
  std::mutex mutex_;
  std::vector<Peer> peers_;
  Clock::time_point asked_{};
};

}}}}  // namespace clutch::v0::dist::detail
