// SPDX-License-Identifier: Apache-2.0
// Moves bytes between ranks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

/// Messages of different lanes do not meet, whatever their tags.
enum class Lane : std::uint8_t { opening, collective, leaving, envelope, answer, payload, presence };
/// Tags of a lane are below it.
inline constexpr std::uint32_t kTags = 1U << 20;

/// Messages of one rank that are waited for together. Messages between two ranks with one lane and tag arrive in the order in which they were sent.
/// Threads: one at a time.
class Exchange {
 public:
  /// Ends what is under way, as far as that can be done; memory of what cannot is kept (see keep()).
  virtual ~Exchange() = default;
  /// Begins to send; the memory must stay as it is until done().
  virtual void send(int peer, std::span<const std::byte> data) = 0;
  /// Begins to receive a message of at most so many bytes.
  virtual void receive(int peer, std::span<std::byte> to) = 0;
  /// True once all that was begun is done. Never waits. Errors: what the transport throws where a message is too long, or a peer is lost.
  virtual bool done() = 0;
  /// Peers of which something is still awaited.
  virtual std::vector<int> waiting_for() const = 0;
  /// The rank of which a message to kAnyPeer came.
  virtual int source() const = 0;
  /// Keeps this until no message can come into the memory of the exchange any more, which may be never.
  virtual void keep(std::shared_ptr<void> memory) = 0;
};
inline constexpr int kAnyPeer = -1;

/// The ways from one rank of a group to all others.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Messages of a lane and tag.
  virtual std::unique_ptr<Exchange> open(Lane lane, std::uint32_t tag) = 0;
  /// Ways among these ranks, which all of them ask for; waits for them. `group` is the same number on all, and no other group of these ranks has it.
  virtual std::shared_ptr<Transport> among(std::span<const int> ranks, std::uint64_t group) = 0;
  /// The same where a rank may be lost meanwhile: waits for nobody, as far as that can be done.
  virtual std::shared_ptr<Transport> beside(std::span<const int> ranks, std::uint64_t group) { return among(ranks, group); }
};

}}}}  // namespace clutch::v0::dist::detail
