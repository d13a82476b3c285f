// SPDX-License-Identifier: Apache-2.0
#include "dist/schedule.hpp"

#include <fmt/format.h>

#include <bit>
#include <stdexcept>
#include <string>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

std::int32_t left_of(std::int32_t count) { return static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(count - 1))); }

namespace {

bool is_power_of_two(int n) { return std::has_single_bit(static_cast<unsigned>(n)); }

/// Writes the steps of one rank.
class Writer {
 public:
  Writer(const Problem& problem, int rank, std::int32_t blocks) : n_(problem.ranks), rank_(rank) { schedule_.blocks = blocks; }

  int ranks() const { return n_; }
  int rank() const { return rank_; }
  static Place input(int block) { return {Room::input, block}; }
  static Place output(int block) { return {Room::output, block}; }
  Place scratch(int blocks = 1) {
    const Place first{Room::scratch, schedule_.scratch};
    schedule_.scratch += blocks;
    return first;
  }

  /// The other ranks, from the next one on: in a round no two ranks begin with the same peer.
  template <class F>
  void to_others(F&& f) const {
    for (int k = 1; k < n_; ++k) f((rank_ + k) % n_);
  }
  /// The same the other way round: who sends to this rank first comes first.
  template <class F>
  void from_others(F&& f) const {
    for (int k = 1; k < n_; ++k) f((rank_ + n_ - k) % n_);
  }

  void next_round() { ++round_; }
  void send(int peer, Place from, int blocks = 1) { put({.kind = StepKind::send, .peer = peer, .blocks = blocks, .from = from}); }
  void receive(int peer, Place to, int blocks = 1) { put({.kind = StepKind::receive, .peer = peer, .blocks = blocks, .to = to}); }
  void copy(Place from, Place to, int blocks = 1) {
    if (!(from == to)) put({.kind = StepKind::copy, .blocks = blocks, .from = from, .to = to});
  }
  void add(Place left, Place right, Place to, int blocks = 1) { put({.kind = StepKind::add, .blocks = blocks, .from = left, .with = right, .to = to}); }

  /// to = the canonical sum of one block of each rank: of rank r block r behind `others`, of this one `own`.
  void sum_of_ranks(Place others, Place own, Place to) { put({.kind = StepKind::sum, .peer = rank_, .blocks = n_, .from = others, .with = own, .to = to}); }

  void reserve(int steps) { schedule_.steps.reserve(static_cast<std::size_t>(steps)); }
  Schedule take() { return std::move(schedule_); }

 private:
  void put(ScheduleStep step) {
    step.round = round_;
    schedule_.steps.push_back(step);
  }

  const int n_, rank_;
  std::int32_t round_ = 0;
  Schedule schedule_;
};

/// Each rank's block for rank r goes to rank r, and what comes here is summed. Round: one.
template <class BlockFor>
void exchange_and_sum(Writer& w, BlockFor&& block_for, Place to) {
  const Place others = w.ranks() > 1 ? w.scratch(w.ranks()) : Place{};
  w.to_others([&](int r) { w.send(r, Writer::input(block_for(r))); });
  w.from_others([&](int r) { w.receive(r, {Room::scratch, others.block + r}); });
  w.sum_of_ranks(others, Writer::input(block_for(w.rank())), to);
}

/// Sends `mine` to all, and receives theirs as output blocks.
void give_to_all(Writer& w, Place mine) {
  w.to_others([&](int r) { w.send(r, mine); });
  w.from_others([&](int r) { w.receive(r, Writer::output(r)); });
}

/// Rank r of a tree takes the sums of ranks r + 1, r + 2, r + 4, ... until it gives its own to the rank from which it differs in its lowest bit: that is the
/// canonical order. The sum is at rank 0. Returns where this rank has it, or had what it gave away.
Place tree_to_first(Writer& w) {
  Place mine = Writer::input(0);
  Place received{}, sum{};
  for (int distance = 1; distance < w.ranks(); distance *= 2) {
    w.next_round();
    if (w.rank() & distance) {
      w.send(w.rank() - distance, mine);
      // Ranks that have given their sum take no part in later rounds.
      while (2 * distance < w.ranks()) distance *= 2, w.next_round();
      return mine;
    }
    if (w.rank() + distance >= w.ranks()) continue;
    if (mine.room == Room::input) received = w.scratch(), sum = w.scratch();
    w.receive(w.rank() + distance, received);
    w.add(mine, received, sum);
    mine = sum;
  }
  return mine;
}

/// The blocks of `root`'s `from` to all ranks' outputs. Ranks are counted from the root on.
void tree_from(Writer& w, int root, Place from, int blocks) {
  const int me = (w.rank() - root + w.ranks()) % w.ranks();
  auto rank_of = [&](int relative) { return (relative + root) % w.ranks(); };
  int distance = 1;
  while (distance < w.ranks()) distance *= 2;
  if (me == 0) w.copy(from, Writer::output(0), blocks);
  for (distance /= 2; distance > 0; distance /= 2) {
    w.next_round();
    if (me % (2 * distance) == distance)
      w.receive(rank_of(me - distance), Writer::output(0), blocks);
    else if (me % (2 * distance) == 0 && me + distance < w.ranks())
      w.send(rank_of(me + distance), me == 0 ? from : Writer::output(0), blocks);
  }
}

/// Halves, quarters, ... of n blocks: in round k ranks that differ in bit k exchange them, and each adds the half that it keeps. Then the way back. Sums are
/// the canonical ones, since those of ranks that differ in lower bits exist before.
void halving(Writer& w) {
  const int n = w.ranks();
  if (n == 1) return w.copy(Writer::input(0), Writer::output(0));
  const Place received = w.scratch(n / 2), sums = w.scratch(n);
  int first = 0, length = n;  // the blocks of this rank
  auto held = [&](int block) { return length == n ? Writer::input(block) : Place{Room::scratch, sums.block + block}; };
  for (int distance = 1; distance < n; distance *= 2) {
    const int peer = w.rank() ^ distance, half = length / 2;
    const bool upper = (w.rank() & distance) != 0;
    const int kept = upper ? first + half : first, given = upper ? first : first + half;
    w.send(peer, held(given), half);
    w.receive(peer, received, half);
    const Place own = held(kept), to{Room::scratch, sums.block + kept};
    w.add(upper ? received : own, upper ? own : received, to, half);
    first = kept, length = half;
    w.next_round();
  }
  w.copy({Room::scratch, sums.block + first}, Writer::output(first));
  for (int distance = n / 2; distance > 0; distance /= 2) {
    w.next_round();
    const int peer = w.rank() ^ distance;
    const bool upper = (w.rank() & distance) != 0;
    const int other = upper ? first - length : first + length;
    w.send(peer, Writer::output(first), length);
    w.receive(peer, Writer::output(other), length);
    first = upper ? other : first, length *= 2;
  }
}

/// n - 1 rounds in which each block gets the numbers of one more rank, and n - 1 in which the sums go round.
void ring(Writer& w) {
  const int n = w.ranks(), next = (w.rank() + 1) % n, before = (w.rank() + n - 1) % n;
  if (n == 1) return w.copy(Writer::input(0), Writer::output(0));
  auto block = [&](int back) { return ((w.rank() - back) % n + n) % n; };
  w.reserve(5 * (n - 1));
  const Place received = w.scratch(), sum = w.scratch();
  for (int k = 0; k < n - 1; ++k) {
    w.send(next, k == 0 ? Writer::input(block(0)) : sum);
    w.receive(before, received);
    const bool is_last = k == n - 2;
    w.add(received, Writer::input(block(k + 1)), is_last ? Writer::output(block(k + 1)) : sum);
    w.next_round();
  }
  for (int k = 0; k < n - 1; ++k) {
    w.send(next, Writer::output(block(k - 1)));
    w.receive(before, Writer::output(block(k)));
    w.next_round();
  }
}

}  // namespace

std::string_view refusal(const Problem& p) {
  switch (p.method) {
    case Method::one_shot:
      return p.collective == Collective::all_reduce || p.collective == Collective::reduce ? "" : "one_shot does all_reduce and reduce alone";
    case Method::direct: return p.collective == Collective::broadcast || p.collective == Collective::reduce ? "direct does neither broadcast nor reduce" : "";
    case Method::tree:
      return p.collective == Collective::all_reduce || p.collective == Collective::reduce || p.collective == Collective::broadcast
                 ? ""
                 : "tree does all_reduce, reduce and broadcast alone";
    case Method::halving:
      if (p.collective != Collective::all_reduce) return "halving does all_reduce alone";
      return is_power_of_two(p.ranks) ? "" : "halving takes a power of two of ranks";
    case Method::ring: return p.collective == Collective::all_reduce ? "" : "ring does all_reduce alone";
    case Method::board: return "the board has no schedule";
  }
  return "unknown method";
}

Schedule schedule_of(const Problem& p, int rank) {
  if (p.ranks < 1 || rank < 0 || rank >= p.ranks || p.root < 0 || p.root >= p.ranks)
    throw std::invalid_argument(fmt::format("rank and root must be below the number of ranks, got {} and {} of {}", rank, p.root, p.ranks));
  if (const std::string_view why = refusal(p); !why.empty()) throw std::invalid_argument(std::string(why));
  const bool by_rank = p.collective != Collective::broadcast && p.collective != Collective::reduce && p.method != Method::one_shot && p.method != Method::tree;
  Writer w(p, rank, by_rank ? p.ranks : 1);
  auto own_block = [](int r) { return r; };
  const bool is_root = rank == p.root;
  switch (p.collective) {
    case Collective::all_reduce:
      if (p.method == Method::one_shot)
        exchange_and_sum(
            w, [](int) { return 0; }, Writer::output(0));
      if (p.method == Method::direct) {
        exchange_and_sum(w, own_block, Writer::output(rank));
        w.next_round();
        give_to_all(w, Writer::output(rank));
      }
      if (p.method == Method::tree) {
        const Place sum = tree_to_first(w);
        tree_from(w, 0, sum, 1);
      }
      if (p.method == Method::halving) halving(w);
      if (p.method == Method::ring) ring(w);
      break;
    case Collective::reduce:
      if (p.method == Method::one_shot) {
        if (!is_root) {
          w.send(p.root, Writer::input(0));
        } else {
          const Place others = p.ranks > 1 ? w.scratch(p.ranks) : Place{};
          w.from_others([&](int r) { w.receive(r, {Room::scratch, others.block + r}); });
          w.sum_of_ranks(others, Writer::input(0), Writer::output(0));
        }
      } else {
        const Place sum = tree_to_first(w);
        w.next_round();
        if (p.root == 0) {
          if (is_root) w.copy(sum, Writer::output(0));
        } else if (rank == 0) {
          w.send(p.root, sum);
        } else if (is_root) {
          w.receive(0, Writer::output(0));
        }
      }
      break;
    case Collective::reduce_scatter: exchange_and_sum(w, own_block, Writer::output(0)); break;
    case Collective::all_gather:
      give_to_all(w, Writer::input(0));
      w.copy(Writer::input(0), Writer::output(rank));
      break;
    case Collective::gather:
      if (!is_root) {
        w.send(p.root, Writer::input(0));
      } else {
        w.from_others([&](int r) { w.receive(r, Writer::output(r)); });
        w.copy(Writer::input(0), Writer::output(rank));
      }
      break;
    case Collective::scatter:
      if (is_root) {
        w.to_others([&](int r) { w.send(r, Writer::input(r)); });
        w.copy(Writer::input(rank), Writer::output(0));
      } else {
        w.receive(p.root, Writer::output(0));
      }
      break;
    case Collective::broadcast: tree_from(w, p.root, Writer::input(0), 1); break;
    case Collective::all_to_all:
      w.to_others([&](int r) { w.send(r, Writer::input(r)); });
      w.from_others([&](int r) { w.receive(r, Writer::output(r)); });
      w.copy(Writer::input(rank), Writer::output(rank));
      break;
  }
  return w.take();
}

std::int64_t blocks_sent(const std::vector<Schedule>& all) {
  std::int64_t sum = 0;
  for (const Schedule& schedule : all)
    for (const ScheduleStep& step : schedule.steps)
      if (step.kind == StepKind::send) sum += step.blocks;
  return sum;
}

}}}}  // namespace clutch::v0::dist::detail
