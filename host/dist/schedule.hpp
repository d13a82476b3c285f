// SPDX-License-Identifier: Apache-2.0
// Collectives as data: what each rank sends, receives, copies and adds, in which order. Schedules come from pure functions; what runs them (execute.hpp), and
// what a simulated clock says of them (simulate.hpp), knows nothing of collectives.
#pragma once
#include <clutch/dist/model.hpp>

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

/// Blocks of the input and of the output, where n is the number of ranks and B the schedule's number of blocks:
///   all_reduce, reduce    B and B (reduce: of the root alone)      reduce_scatter   n and 1
///   all_gather, gather    1 and n (gather: of the root alone)      scatter          n (of the root alone) and 1
///   broadcast             B (of the root alone) and B              all_to_all       n and n
using dist::Collective;

enum class Method : std::uint8_t {
  one_shot,  ///< each rank sends all to all, and adds all: one round
  direct,    ///< each rank adds its block of all ranks, and sends the sum to all: two rounds, of (n - 1) / n of the numbers each
  tree,      ///< pairs, pairs of pairs, ...: as many rounds as a tree of the ranks is high, all numbers in each
  halving,   ///< pairs exchange halves, pairs of pairs quarters, ...; n is a power of two
  ring,      ///< neighbours pass blocks on: the least traffic of a link; sums begin at another rank for each block (Order::any)
  board,     ///< no schedule: each rank lays its numbers where all others read them (board.hpp)
};

/// Memory of a rank: the caller's input and output, and scratch memory of whole blocks.
enum class Room : std::uint8_t { input, output, scratch };
struct Place {
  Room room = Room::input;
  std::int32_t block = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

enum class StepKind : std::uint8_t { send, receive, copy, add, sum };

/// Sends and receives of a round go on together; the round's copies and additions follow, in order, once they are done. Messages between two ranks arrive in
/// the order in which they were sent.
struct ScheduleStep {
  StepKind kind = StepKind::copy;
  std::int32_t round = 0;
  std::int32_t peer = -1;   ///< of sends and receives; of sums the part that lies elsewhere
  std::int32_t blocks = 1;  ///< neighbouring ones; of sums the number of parts, each a block
  Place from = {};          ///< of sends, copies; of additions what is on the left of +; of sums the first part
  Place with = {};          ///< of additions what is on the right; of sums part `peer`
  Place to = {};            ///< of receives, copies, additions, sums
};

/// What one rank does. All blocks but the last have as many elements; the last ones have what is left, or none.
struct Schedule {
  std::int32_t blocks = 1;          ///< B; n where the collective's table says n
  std::int32_t scratch = 0;         ///< blocks of scratch memory
  std::vector<ScheduleStep> steps;  ///< by rounds
};

struct Problem {
  Collective collective = Collective::all_reduce;
  int ranks = 1, root = 0;
  Method method = Method::direct;
};

/// Ranks on the left of a sum of `count` ranks: the largest power of two below `count`. The canonical order of every sum: lower ranks are on the left, and so
/// both halves are summed. A rank that sums 2^k parts of its own by this order gives the sum the bits of 2^k times as many ranks with a part each.
std::int32_t left_of(std::int32_t count);

/// The canonical sum of numbers `first` to `first + count - 1`: add(left, right) for each +, in an order in which sums exist before they are used; what it
/// returns stands for the sum. `number(i)` stands for number i.
template <class T, class Number, class Add>
T canonical_sum(std::int32_t first, std::int32_t count, Number&& number, Add&& add) {
  if (count == 1) return number(first);
  const std::int32_t left = left_of(count);
  T of_left = canonical_sum<T>(first, left, number, add);
  T of_right = canonical_sum<T>(first + left, count - left, number, add);
  return add(of_left, of_right);
}

/// The reason why a method does not do a collective; empty if it does.
std::string_view refusal(const Problem& problem);

/// What `rank` does. Input and output may be one memory for all_reduce, reduce and broadcast. Errors: std::invalid_argument with the refusal, or where rank,
/// root or ranks make no sense.
Schedule schedule_of(const Problem& problem, int rank);

/// Blocks that all ranks send, in all, of a schedule with so many blocks.
std::int64_t blocks_sent(const std::vector<Schedule>& all);

}}}}  // namespace clutch::v0::dist::detail
