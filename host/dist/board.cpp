// SPDX-License-Identifier: Apache-2.0
#include "dist/board.hpp"

#include <atomic>
#include <utility>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

namespace {

// A part: a line with the number of meetings that its rank has ended, then the slots of meetings, each of two lines with a flag and the room. A flag is the
// meeting's number + 1. Lines are far enough apart that processors do not fetch them together.
constexpr std::size_t kLine = 128;
constexpr std::size_t kArrived = 0, kLeft = kLine, kRoomAt = 2 * kLine, kSlot = kRoomAt + Board::kRoom;
static_assert(kSlot % kLine == 0);

std::atomic_ref<std::uint64_t> word(std::byte* at) noexcept { return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(at)); }

}  // namespace

std::size_t Board::bytes() noexcept { return kLine + kMeetings * kSlot; }

Board::Board(std::vector<std::span<std::byte>> parts, std::shared_ptr<void> keeps, int rank)
    : parts_(std::move(parts)), keeps_(std::move(keeps)), rank_(rank) {}

std::byte* Board::slot(int rank, std::uint64_t meeting) const noexcept {
  return parts_[static_cast<std::size_t>(rank)].data() + kLine + meeting % kMeetings * kSlot;
}

bool Board::all_did(std::uint64_t meeting, std::size_t flag) const noexcept {
  for (std::size_t r = 0; r < parts_.size(); ++r)
    if (word(slot(static_cast<int>(r), meeting) + flag).load(std::memory_order_acquire) <= meeting) return false;
  return true;
}

std::byte* Board::own_room(std::uint64_t meeting) noexcept {
  if (meeting >= kMeetings)
    for (const std::span<std::byte>& part : parts_)
      if (word(part.data()).load(std::memory_order_acquire) <= meeting - kMeetings) return nullptr;
  return slot(rank_, meeting) + kRoomAt;
}
void Board::arrive(std::uint64_t meeting) noexcept { word(slot(rank_, meeting) + kArrived).store(meeting + 1, std::memory_order_release); }
bool Board::all_arrived(std::uint64_t meeting) const noexcept { return all_did(meeting, kArrived); }
const std::byte* Board::room(int rank, std::uint64_t meeting) const noexcept { return slot(rank, meeting) + kRoomAt; }
void Board::leave(std::uint64_t meeting) noexcept { word(slot(rank_, meeting) + kLeft).store(meeting + 1, std::memory_order_release); }
bool Board::all_left(std::uint64_t meeting) const noexcept { return all_did(meeting, kLeft); }

void Board::end(std::uint64_t meeting) {
  const std::lock_guard lock(mutex_);
  if (meeting != ended_) {
    ended_above_.insert(meeting);
    return;
  }
  ++ended_;
  while (!ended_above_.empty() && *ended_above_.begin() == ended_) ended_above_.erase(ended_above_.begin()), ++ended_;
  word(parts_[static_cast<std::size_t>(rank_)].data()).store(ended_, std::memory_order_release);
}

std::vector<int> Board::missing(std::uint64_t meeting, bool leaves) const {
  std::vector<int> ranks;
  for (std::size_t r = 0; r < parts_.size(); ++r)
    if (word(slot(static_cast<int>(r), meeting) + (leaves ? kLeft : kArrived)).load(std::memory_order_acquire) <= meeting) ranks.push_back(static_cast<int>(r));
  return ranks;
}

std::vector<std::shared_ptr<Board>> thread_boards(int ranks) {
  const std::size_t bytes = Board::bytes(), n = static_cast<std::size_t>(ranks);
  struct Page {
    alignas(kLine) std::byte bytes[kLine];
  };
  const std::size_t pages = (bytes + kLine - 1) / kLine;
  const std::shared_ptr<Page[]> memory(new Page[n * pages]{});
  std::vector<std::span<std::byte>> parts;
  for (std::size_t r = 0; r < n; ++r) parts.push_back({memory[r * pages].bytes, bytes});
  std::vector<std::shared_ptr<Board>> boards;
  for (int r = 0; r < ranks; ++r) boards.push_back(std::make_shared<Board>(parts, memory, r));
  return boards;
}

}}}}  // namespace clutch::v0::dist::detail
