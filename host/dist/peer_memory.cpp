// SPDX-License-Identifier: Apache-2.0
#include "dist/peer_memory.hpp"

#include <cstring>

#ifdef __linux__
#include <sys/uio.h>
#include <unistd.h>
#endif

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

#ifdef __linux__

PeerMemory PeerMemory::of(const void* memory) {
  return {.process = static_cast<std::uint64_t>(::getpid()), .address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(memory))};
}

bool PeerMemory::read(std::byte* to, std::size_t bytes) const noexcept {
  auto* const from = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
  if (process == static_cast<std::uint64_t>(::getpid())) {
    if (to != from) std::memmove(to, from, bytes);
    return true;
  }
  for (std::size_t done = 0; done < bytes;) {
    const iovec here{to + done, bytes - done}, there{from + done, bytes - done};
    const ssize_t got = ::process_vm_readv(static_cast<pid_t>(process), &here, 1, &there, 1, 0);
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

#else

PeerMemory PeerMemory::of(const void* memory) { return {.process = 0, .address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(memory))}; }
bool PeerMemory::read(std::byte*, std::size_t) const noexcept { return false; }

#endif

}}}}  // namespace clutch::v0::dist::detail
