// SPDX-License-Identifier: Apache-2.0
// The board on which ranks of a host meet.
#include "dist/board.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <iterator>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace clutch::testing { namespace {

using dist::detail::Board;
using dist::detail::thread_boards;

TEST(BoardMeetings, EachRankReadsWhatAllHaveSaidAndLaid) {
  const auto boards = thread_boards(3);
  for (std::uint64_t meeting = 0; meeting < 100; ++meeting) {
    for (int r = 0; r < 3; ++r) {
      Board& mine = *boards[static_cast<std::size_t>(r)];
      EXPECT_FALSE(boards[0]->all_have(Board::arrived, meeting));
      ASSERT_TRUE(mine.has_place(meeting));
      std::memset(mine.said(r, meeting), static_cast<int>(meeting) + r, Board::kSaid);
      for (const std::uint64_t turn : {0, 1}) std::memset(mine.numbers(r, meeting, turn), static_cast<int>(meeting + turn) + r, Board::kNumbers);
      EXPECT_EQ(boards[0]->missing(Board::arrived, meeting).size(), static_cast<std::size_t>(3 - r));
      mine.mark(Board::arrived, meeting), mine.mark(Board::laid, meeting, 1);
    }
    for (const auto& board : boards) {
      ASSERT_TRUE(board->all_have(Board::arrived, meeting));
      EXPECT_TRUE(board->all_have(Board::laid, meeting, 0));
      EXPECT_TRUE(board->all_have(Board::laid, meeting, 1));
      EXPECT_FALSE(board->all_have(Board::laid, meeting, 2));
      for (int r = 0; r < 3; ++r) {
        const auto wanted = [&](std::uint64_t turn) { return std::byte(static_cast<unsigned char>(meeting + turn + static_cast<unsigned>(r))); };
        for (const std::size_t at : {std::size_t{0}, Board::kSaid - 1}) EXPECT_EQ(board->said(r, meeting)[at], wanted(0));
        for (const std::uint64_t turn : {0, 1})
          for (const std::size_t at : {std::size_t{0}, Board::kNumbers - 1}) EXPECT_EQ(board->numbers(r, meeting, turn)[at], wanted(turn));
      }
      EXPECT_FALSE(board->all_have(Board::left, meeting));
    }
    boards[2]->mark(Board::left, meeting), boards[0]->mark(Board::left, meeting);
    EXPECT_EQ(boards[1]->missing(Board::left, meeting), std::vector<int>{1});
    boards[1]->mark(Board::left, meeting);
    for (const auto& board : boards) {
      EXPECT_TRUE(board->all_have(Board::left, meeting));
      board->end(meeting);
    }
  }
}

TEST(BoardMeetings, APlaceIsFreeOnceAllHaveEndedAllMeetingsUpToItsLast) {
  const auto boards = thread_boards(2);
  auto is_free = [&](std::uint64_t meeting) { return boards[0]->has_place(meeting); };
  EXPECT_TRUE(is_free(Board::kMeetings - 1));
  EXPECT_FALSE(is_free(Board::kMeetings));
  boards[0]->end(0);
  EXPECT_FALSE(is_free(Board::kMeetings));
  boards[1]->end(1), boards[1]->end(2);
  EXPECT_FALSE(is_free(Board::kMeetings));
  boards[1]->end(0);
  EXPECT_TRUE(is_free(Board::kMeetings));
  EXPECT_FALSE(is_free(Board::kMeetings + 1));
  boards[0]->end(2), boards[0]->end(1);
  EXPECT_TRUE(is_free(Board::kMeetings + 2));
  EXPECT_FALSE(is_free(Board::kMeetings + 3));
}

TEST(BoardMeetings, ThreadsMeetInAnyOrder) {
  constexpr std::uint64_t kRounds = 3000;
  const auto boards = thread_boards(3);
  std::vector<std::jthread> threads;
  for (unsigned r = 0; r < 3; ++r)
    threads.emplace_back([&, r] {
      std::mt19937 random(r);
      std::set<std::uint64_t> open, arrived;
      std::uint64_t next = 0, ended = 0;
      while (ended < kRounds) {
        if (next < kRounds && open.size() < 6 && random() % 2 == 0) open.insert(next++);
        if (open.empty()) continue;
        auto at = open.begin();
        std::advance(at, random() % open.size());
        const std::uint64_t meeting = *at;
        if (!arrived.contains(meeting)) {
          if (!boards[r]->has_place(meeting)) continue;
          const std::uint64_t says = meeting * 3 + r;
          std::memcpy(boards[r]->said(static_cast<int>(r), meeting), &says, sizeof says);
          boards[r]->mark(Board::arrived, meeting);
          arrived.insert(meeting);
        }
        if (!boards[r]->all_have(Board::arrived, meeting)) {
          std::this_thread::yield();
          continue;
        }
        for (unsigned k = 0; k < 3; ++k) {
          std::uint64_t said = 0;
          std::memcpy(&said, boards[r]->said(static_cast<int>(k), meeting), sizeof said);
          EXPECT_EQ(said, meeting * 3 + k);
        }
        boards[r]->end(meeting);
        open.erase(meeting), arrived.erase(meeting), ++ended;
      }
    });
}

}}  // namespace clutch::testing
