// SPDX-License-Identifier: Apache-2.0
// The board on which ranks of a host meet, and calls of few bytes that go over it.
#include "dist/board.hpp"
#include "dist/ranks.hpp"

#include <cstring>
#include <random>
#include <set>

namespace clutch::testing { namespace {

using namespace dist;
using dist::detail::Board;
using dist::detail::thread_boards;

TEST(BoardMeetings, EachRankReadsWhatAllHaveLaid) {
  const auto boards = thread_boards(3);
  for (std::uint64_t meeting = 0; meeting < 100; ++meeting) {
    for (int r = 0; r < 3; ++r) {
      EXPECT_FALSE(boards[0]->all_arrived(meeting));
      std::byte* const room = boards[static_cast<std::size_t>(r)]->own_room(meeting);
      ASSERT_NE(room, nullptr);
      std::memset(room, static_cast<int>(meeting) + r, Board::kRoom);
      EXPECT_EQ(boards[0]->missing(meeting, false).size(), static_cast<std::size_t>(3 - r));
      boards[static_cast<std::size_t>(r)]->arrive(meeting);
    }
    for (const auto& board : boards) {
      ASSERT_TRUE(board->all_arrived(meeting));
      for (int r = 0; r < 3; ++r)
        for (const std::size_t at : {std::size_t{0}, Board::kRoom - 1}) EXPECT_EQ(board->room(r, meeting)[at], std::byte(meeting + static_cast<unsigned>(r)));
      EXPECT_FALSE(board->all_left(meeting));
    }
    boards[2]->leave(meeting), boards[0]->leave(meeting);
    EXPECT_EQ(boards[1]->missing(meeting, true), std::vector<int>{1});
    boards[1]->leave(meeting);
    for (const auto& board : boards) {
      EXPECT_TRUE(board->all_left(meeting));
      board->end(meeting);
    }
  }
}

TEST(BoardMeetings, APlaceIsFreeOnceAllHaveEndedAllMeetingsUpToItsLast) {
  const auto boards = thread_boards(2);
  auto is_free = [&](std::uint64_t meeting) { return boards[0]->own_room(meeting) != nullptr; };
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
        if (next < kRounds && open.size() < 10 && random() % 2 == 0) open.insert(next++);
        if (open.empty()) continue;
        auto at = open.begin();
        std::advance(at, random() % open.size());
        const std::uint64_t meeting = *at;
        if (!arrived.contains(meeting)) {
          std::byte* const room = boards[r]->own_room(meeting);
          if (room == nullptr) continue;
          const std::uint64_t says = meeting * 3 + r;
          std::memcpy(room, &says, sizeof says);
          boards[r]->arrive(meeting);
          arrived.insert(meeting);
        }
        if (!boards[r]->all_arrived(meeting)) {
          std::this_thread::yield();
          continue;
        }
        for (unsigned k = 0; k < 3; ++k) {
          std::uint64_t said = 0;
          std::memcpy(&said, boards[r]->room(static_cast<int>(k), meeting), sizeof said);
          EXPECT_EQ(said, meeting * 3 + k);
        }
        boards[r]->end(meeting);
        open.erase(meeting), arrived.erase(meeting), ++ended;
      }
    });
}

TEST(BoardCalls, ManyAtATimeOnDifferentStreams) {
  for_ranks({1, 2, 4}, [](const Group& g) {
    const int n = g.size(), me = g.rank();
    std::mt19937 random(static_cast<unsigned>(me));
    for (int round = 0; round < 3; ++round) {
      std::vector<Tensor> tensors;
      std::vector<Work> works;
      for (int i = 0; i < 40; ++i) {
        tensors.push_back(full({100 + i}, i + me + 1, {.dtype = DType::i32}));
        works.push_back(g.all_reduce_(tensors.back(), {.async = true}));
        // A few larger ones between them, which go by messages.
        if (i % 7 == 0) works.push_back(g.all_reduce_(zeros({40000}), {.async = true}));
        if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
      }
      for (const Work& work : works) work.wait();
      for (int i = 0; i < 40; ++i)
        EXPECT_EQ(tensors[static_cast<std::size_t>(i)].to_host<std::int32_t>()[static_cast<std::size_t>(99 + i)], n * i + n * (n + 1) / 2) << i;
    }
  });
}

TEST(BoardCalls, GoOnAfterADifference) {
  for_ranks({2, 4}, [](const Group& g) {
    if (g.size() == 1) return;
    const Stream stream = current_stream();
    for (int i = 0; i < 50; ++i) {
      const Tensor x = full({10 + (i % 3 == 0 ? g.rank() : 0)}, 1);
      const Work work = g.all_reduce_(x);
      if (i % 3 == 0) {
        EXPECT_EQ(code_of([&] { work.synchronize(); }), ErrorCode::mismatch);
        stream.reset();
      } else {
        EXPECT_EQ(x.to_host<float>()[9], static_cast<float>(g.size()));
      }
    }
  });
}

TEST(BoardCalls, UpToTheirMostBytesAndRefusedAbove) {
  for_ranks({2, 4}, [](const Group& g) {
    const auto most = static_cast<std::int64_t>(Board::kNumbers);
    const Tensor x = full({most}, g.rank() + 1, {.dtype = DType::u8}), larger = zeros({most + 1}, {.dtype = DType::u8});
    if (g.size() % 2 == 1) {
      EXPECT_EQ(code_of([&] { g.all_reduce_(x, {.algorithm = Algorithm::board}); }), ErrorCode::invalid_argument);
      return;
    }
    g.all_reduce_(x, {.algorithm = Algorithm::board});
    EXPECT_EQ(x.to_host<std::uint8_t>()[Board::kNumbers - 1], static_cast<std::uint8_t>(g.size() * (g.size() + 1) / 2));
    EXPECT_EQ(code_of([&] { g.all_reduce_(larger, {.algorithm = Algorithm::board}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { g.all_gather_v_out(x, x, std::vector<std::int64_t>(static_cast<std::size_t>(g.size()), 1), {.algorithm = Algorithm::board}); }),
              ErrorCode::invalid_shape);
    // One rank asks for another algorithm: a difference as any.
    const Work work = g.all_reduce_(x, {.algorithm = g.rank() == 0 ? Algorithm::board : Algorithm::direct});
    EXPECT_EQ(code_of([&] { work.synchronize(); }), ErrorCode::mismatch);
    current_stream().reset();
  });
}

}}  // namespace clutch::testing
