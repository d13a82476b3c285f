// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a host meet: shared memory in which each rank says what it calls, and lays a few numbers that all others read. A rank that has come
// has done no more than a store, and sees with a load who else has.
#pragma once
#include "dist/shared_segment.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

/// Meetings have the numbers of calls, which are the same on all ranks. Those of up to kMeetings calls go on at a time, in any order; a later call waits.
/// Threads: different meetings by any threads; each of them by one at a time.
class Board {
 public:
  static constexpr std::uint64_t kMeetings = 16;
  /// Bytes of numbers that a rank can lay at a meeting, and of all that it can say there.
  static constexpr std::size_t kNumbers = 64 << 10, kRoom = kNumbers + 512;
  static std::size_t bytes() noexcept;

  /// `parts`: of each rank, of bytes() bytes, zeros where nobody has met; `keeps` has their memory.
  Board(std::vector<std::span<std::byte>> parts, std::shared_ptr<void> keeps, int rank);

  /// Where this rank lays what it has to say; null while a call that has the place before it is not over on all ranks.
  std::byte* own_room(std::uint64_t meeting) noexcept;
  void arrive(std::uint64_t meeting) noexcept;
  bool all_arrived(std::uint64_t meeting) const noexcept;
  /// After all_arrived(), until this rank ends the meeting.
  const std::byte* room(int rank, std::uint64_t meeting) const noexcept;
  /// A second meeting, of those who wait for each other's work.
  void leave(std::uint64_t meeting) noexcept;
  bool all_left(std::uint64_t meeting) const noexcept;
  /// This rank reads nothing more of it.
  void end(std::uint64_t meeting);
  /// Who has not arrived, or not left.
  std::vector<int> missing(std::uint64_t meeting, bool leaves) const;

 private:
  bool all_did(std::uint64_t meeting, std::size_t flag) const noexcept;
  std::byte* slot(int rank, std::uint64_t meeting) const noexcept;

  const std::vector<std::span<std::byte>> parts_;
  const std::shared_ptr<void> keeps_;
  const int rank_;
  std::mutex mutex_;
  std::uint64_t ended_ = 0;  ///< all meetings below it
  std::set<std::uint64_t> ended_above_;
};

/// Boards of ranks that are threads of one process, one for each.
std::vector<std::shared_ptr<Board>> thread_boards(int ranks);

}}}}  // namespace clutch::v0::dist::detail
