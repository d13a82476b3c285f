// SPDX-License-Identifier: Apache-2.0
#include "dist/board.hpp"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

namespace {

// A part: a line with the number of meetings that its rank has ended, then the slots of meetings, each of a line for each mark, what is said, and the numbers
// of two turns. Lines are far enough apart that processors do not fetch them together.
constexpr std::size_t kLine = 128, kMarks = 4;
constexpr std::size_t kSaidAt = kMarks * kLine, kNumbersAt = kSaidAt + Board::kSaid, kSlot = kNumbersAt + 2 * Board::kNumbers;
static_assert(kSlot % kLine == 0 && kNumbersAt % kLine == 0);

std::atomic_ref<std::uint64_t> word(std::byte* at) noexcept { return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(at)); }

/// What a mark's word has from this turn on; it grows with meetings, too, as a slot's next meeting has a larger number.
constexpr std::uint64_t marked(std::uint64_t meeting, std::uint64_t turn) { return meeting << 24 | (turn + 1); }

}  // namespace

std::size_t Board::bytes() noexcept { return kLine + kMeetings * kSlot; }

Board::Board(std::vector<std::span<std::byte>> parts, std::shared_ptr<void> keeps, int rank)
    : parts_(std::move(parts)), keeps_(std::move(keeps)), rank_(rank) {}

std::byte* Board::slot(int rank, std::uint64_t meeting) const noexcept {
  return parts_[static_cast<std::size_t>(rank)].data() + kLine + meeting % kMeetings * kSlot;
}
std::byte* Board::said(int rank, std::uint64_t meeting) const noexcept { return slot(rank, meeting) + kSaidAt; }
std::byte* Board::numbers(int rank, std::uint64_t meeting, std::uint64_t turn) const noexcept { return slot(rank, meeting) + kNumbersAt + turn % 2 * kNumbers; }

bool Board::has_place(std::uint64_t meeting) const noexcept {
  if (meeting < kMeetings) return true;
  for (const std::span<std::byte>& part : parts_)
    if (word(part.data()).load(std::memory_order_acquire) <= meeting - kMeetings) return false;
  return true;
}

void Board::mark(Mark mark, std::uint64_t meeting, std::uint64_t turn) noexcept {
  word(slot(rank_, meeting) + mark * kLine).store(marked(meeting, turn), std::memory_order_release);
}
bool Board::has(int rank, Mark mark, std::uint64_t meeting, std::uint64_t turn) const noexcept {
  return word(slot(rank, meeting) + mark * kLine).load(std::memory_order_acquire) >= marked(meeting, turn);
}
bool Board::all_have(Mark mark, std::uint64_t meeting, std::uint64_t turn) const noexcept {
  for (std::size_t r = 0; r < parts_.size(); ++r)
    if (!has(static_cast<int>(r), mark, meeting, turn)) return false;
  return true;
}
std::vector<int> Board::missing(Mark mark, std::uint64_t meeting, std::uint64_t turn) const {
  std::vector<int> ranks;
  for (std::size_t r = 0; r < parts_.size(); ++r)
    if (!has(static_cast<int>(r), mark, meeting, turn)) ranks.push_back(static_cast<int>(r));
  return ranks;
}

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

std::vector<std::shared_ptr<Board>> thread_boards(int ranks) {
  // Zeros of the system, which take memory where they are written to alone: many ranks lay few numbers.
  std::size_t bytes = static_cast<std::size_t>(ranks) * Board::bytes() + kLine;
  const std::shared_ptr<void> memory(std::calloc(1, bytes), std::free);
  void* begin = memory.get();
  if (begin == nullptr || std::align(kLine, bytes - kLine, begin, bytes) == nullptr) throw std::bad_alloc();
  std::vector<std::span<std::byte>> parts;
  for (int r = 0; r < ranks; ++r) parts.push_back({static_cast<std::byte*>(begin) + static_cast<std::size_t>(r) * Board::bytes(), Board::bytes()});
  std::vector<std::shared_ptr<Board>> boards;
  for (int r = 0; r < ranks; ++r) boards.push_back(std::make_shared<Board>(parts, memory, r));
  return boards;
}

}}}}  // namespace clutch::v0::dist::detail
