// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a host meet: shared memory in which each rank says what it calls, and lays numbers that all others read. A rank that has come has done
// no more than a store, and sees with a load who else has.
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
/// Numbers are laid in turns of at most kNumbers bytes, of which a meeting has room for two: turn i is where turn i - 2 was.
/// Threads: different meetings by any threads; each of them by one at a time.
class Board {
 public:
  static constexpr std::uint64_t kMeetings = 8;
  /// Bytes of what a rank says at a meeting, and of what it lays in a turn.
  static constexpr std::size_t kSaid = 128 + (64 << 10), kNumbers = 64 << 10;
  static std::size_t bytes() noexcept;

  /// `parts`: of each rank, of bytes() bytes, zeros where nobody has met; `keeps` has their memory.
  Board(std::vector<std::span<std::byte>> parts, std::shared_ptr<void> keeps, int rank);

  /// True once this rank can have a meeting: a call that had the place before it is over on all ranks.
  bool has_place(std::uint64_t meeting) const noexcept;
  std::byte* said(int rank, std::uint64_t meeting) const noexcept;
  std::byte* numbers(int rank, std::uint64_t meeting, std::uint64_t turn) const noexcept;

  enum Mark : std::uint8_t {
    arrived,  ///< has said what it calls, and laid the numbers of turn 0
    laid,     ///< the numbers of a turn
    took,     ///< reads nothing more of a turn
    left,     ///< of ranks that wait for each other's work
  };
  /// Of this rank, which has done all before it.
  void mark(Mark mark, std::uint64_t meeting, std::uint64_t turn = 0) noexcept;
  bool all_have(Mark mark, std::uint64_t meeting, std::uint64_t turn = 0) const noexcept;
  /// Who has not.
  std::vector<int> missing(Mark mark, std::uint64_t meeting, std::uint64_t turn = 0) const;
  /// This rank reads nothing more of a meeting.
  void end(std::uint64_t meeting);

 private:
  bool has(int rank, Mark mark, std::uint64_t meeting, std::uint64_t turn) const noexcept;
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
