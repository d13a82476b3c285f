// SPDX-License-Identifier: Apache-2.0
// Memory of the processes of other ranks of this host, which is read where it is.
#pragma once
#include <cstddef>
#include <cstdint>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

struct PeerMemory {
  std::uint64_t process = 0, address = 0;
  /// Of this process.
  static PeerMemory of(const void* memory);
  /// Copies bytes to here. False where the system refuses, or has no such process or memory.
  bool read(std::byte* to, std::size_t bytes) const noexcept;
  PeerMemory at(std::size_t byte) const { return {process, address + byte}; }
};

}}}}  // namespace clutch::v0::dist::detail
