// SPDX-License-Identifier: Apache-2.0
#include "dist/peers.hpp"

#ifdef __linux__
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

#if defined(__linux__) && defined(SYS_pidfd_open)

Peers::Peers(const std::vector<clutch::detail::ProcessIdentity>& processes) {
  const clutch::detail::ProcessIdentity me = clutch::detail::this_process();
  for (std::size_t r = 0; r < processes.size(); ++r) {
    const clutch::detail::ProcessIdentity& process = processes[r];
    if (process.machine != me.machine || process.id == me.id) continue;
    const int handle = static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(process.id), 0));
    // The number may be another process's by now.
    const clutch::detail::ProcessState state = clutch::detail::state_of(process);
    if (state == clutch::detail::ProcessState::running && handle >= 0) {
      peers_.push_back({static_cast<int>(r), handle, std::nullopt});
      continue;
    }
    if (handle >= 0) ::close(handle);
    if (state == clutch::detail::ProcessState::ended) peers_.push_back({static_cast<int>(r), -1, Clock::now()});
  }
}

Peers::~Peers() {
  for (const Peer& peer : peers_)
    if (peer.handle >= 0) ::close(peer.handle);
}

std::vector<int> Peers::ended() {
  constexpr std::chrono::milliseconds kBetween{1}, kGrace{3};
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  if (now - asked_ >= kBetween) {
    asked_ = now;
    std::vector<pollfd> handles;
    for (const Peer& peer : peers_) handles.push_back({peer.handle, POLLIN, 0});
    if (!handles.empty() && ::poll(handles.data(), static_cast<nfds_t>(handles.size()), 0) > 0)
      for (std::size_t i = 0; i < peers_.size(); ++i)
        if (handles[i].revents != 0 && !peers_[i].seen_ended) peers_[i].seen_ended = now;
  }
  std::vector<int> ranks;
  for (const Peer& peer : peers_)
    if (peer.seen_ended && now - *peer.seen_ended >= kGrace) ranks.push_back(peer.rank);
  return ranks;
}

#else

Peers::Peers(const std::vector<clutch::detail::ProcessIdentity>&) {}
Peers::~Peers() = default;
std::vector<int> Peers::ended() { return {}; }

#endif

}}}}  // namespace clutch::v0::dist::detail
