// SPDX-License-Identifier: Apache-2.0
// Runs a schedule on host memory, and ranks that are threads of one process.
#pragma once
#include "dist/schedule.hpp"

#include <cstddef>
#include <memory>
#include <span>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

/// Moves the messages of one rank.
class Transport {
 public:
  virtual ~Transport() = default;
  /// Begins to send; the memory must stay as it is until finish().
  virtual void send(int peer, std::span<const std::byte> data) = 0;
  /// Begins to receive a message of at most so many bytes.
  virtual void receive(int peer, std::span<std::byte> to) = 0;
  /// Waits for all that was begun. Errors: what the transport throws where a peer is lost.
  virtual void finish() = 0;
};

/// Memory of a rank, cut into blocks of `block` elements, the last of which may be shorter.
struct HostMemory {
  std::span<const std::byte> input;
  std::span<std::byte> output;
  std::size_t element = 4;  ///< bytes of an element
  std::size_t block = 0;    ///< elements of a block
};

/// to[i] = left[i] + right[i], or what else the caller combines numbers by, for so many elements. `to` may be one of the others.
using Combine = std::function<void(std::byte* to, const std::byte* left, const std::byte* right, std::size_t elements)>;

/// Elements of a block where `total` elements are cut into `blocks`.
std::size_t block_of(std::size_t total, std::int32_t blocks);

void execute(const Schedule& schedule, const HostMemory& memory, const Combine& combine, Transport& transport);

/// Ranks that are threads: messages are copied from one to the other. Each rank's transport is used by one thread at a time.
class ThreadRanks {
 public:
  explicit ThreadRanks(int ranks);
  ~ThreadRanks();
  ThreadRanks(const ThreadRanks&) = delete;
  ThreadRanks& operator=(const ThreadRanks&) = delete;
  Transport& transport(int rank);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}}}}  // namespace clutch::v0::dist::detail
