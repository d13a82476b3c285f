// SPDX-License-Identifier: Apache-2.0
#include "dist/model.hpp"
#include "dist/board.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

namespace clutch { inline namespace v0 { namespace dist {

std::string_view name(Collective collective) noexcept {
  switch (collective) {
    case Collective::all_reduce: return "all_reduce";
    case Collective::reduce: return "reduce";
    case Collective::reduce_scatter: return "reduce_scatter";
    case Collective::all_gather: return "all_gather";
    case Collective::gather: return "gather";
    case Collective::scatter: return "scatter";
    case Collective::broadcast: return "broadcast";
    case Collective::all_to_all: return "all_to_all";
  }
  return "";
}

namespace detail {

Method method_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::one_shot: return Method::one_shot;
    case Algorithm::tree: return Method::tree;
    case Algorithm::halving: return Method::halving;
    case Algorithm::ring: return Method::ring;
    case Algorithm::automatic:
    case Algorithm::board:
    case Algorithm::kernel:
    case Algorithm::direct: break;
  }
  return Method::direct;
}

/// By rounds for few bytes, and by traffic for many.
Method automatic(Collective collective, int ranks, std::uint64_t bytes) {
  constexpr std::uint64_t kFewBytes = 64 << 10;
  constexpr int kFewRanks = 8;
  const auto n = static_cast<std::uint64_t>(ranks);
  const bool is_small = bytes * (n - 1) <= kFewBytes;
  if (collective == Collective::broadcast) return Method::tree;
  if (collective == Collective::reduce) return ranks <= kFewRanks && is_small ? Method::one_shot : Method::tree;
  if (collective != Collective::all_reduce) return Method::direct;
  if (ranks <= kFewRanks) return is_small ? Method::one_shot : Method::direct;
  if ((n & (n - 1)) == 0) return Method::halving;
  return bytes <= kFewBytes ? Method::tree : Method::direct;
}

Effort effort_of(const Problem& p, double bytes) {
  const double n = p.ranks, others = n - 1, share = others / n, high = std::bit_width(static_cast<unsigned>(p.ranks - 1));
  // Sums and copies cost the same.
  if (p.ranks == 1) return {.added = bytes};
  const double to_root = p.root == 0 ? 0 : 1;
  switch (p.collective) {
    case Collective::all_reduce:
      switch (p.method) {
        case Method::one_shot: return {1, others, others * bytes, others * bytes};
        case Method::direct: return {2, 2 * others, 2 * share * bytes, share * bytes};
        case Method::tree: return {2 * high, 2 * high, 2 * high * bytes, (high + 1) * bytes};
        case Method::halving: return {2 * high, 2 * high, 2 * share * bytes, bytes};
        case Method::ring: return {2 * others, 2 * others, 2 * share * bytes, share * bytes};
        case Method::board: break;
      }
      break;
    case Collective::reduce:
      if (p.method == Method::one_shot) return {1, others, others * bytes, others * bytes};
      return {high + to_root, high + to_root, (high + to_root) * bytes, (high + 1 - to_root) * bytes};
    case Collective::reduce_scatter: return {1, others, share * bytes, share * bytes};
    case Collective::all_gather:
    case Collective::gather:
    case Collective::scatter:
    case Collective::all_to_all: return {1, others, share * bytes, bytes / n};
    case Collective::broadcast: return {high, high, high * bytes, bytes};
  }
  return {};
}

Effort board_effort(Collective collective, int ranks, double bytes) {
  constexpr double kLine = 64;
  const double n = ranks;
  const bool is_reduction = collective == Collective::all_reduce || collective == Collective::reduce || collective == Collective::reduce_scatter;
  // Copies that are read where they are: where one is, and that all have read it.
  if (!is_reduction && bytes > Board::kNumbers) return {.rounds = 2, .messages = 2, .moved = collective == Collective::scatter ? bytes / n : bytes, .added = 0};
  const bool has_blocks = collective == Collective::reduce_scatter || collective == Collective::scatter || collective == Collective::all_to_all;
  const bool is_whole = collective == Collective::all_reduce || collective == Collective::reduce || collective == Collective::broadcast;
  const double blocks = has_blocks ? n : 1, turn = std::floor(Board::kNumbers / blocks / kLine) * kLine;
  Effort effort{.rounds = std::max(1.0, std::ceil((is_whole ? bytes : bytes / n) / std::max(turn, kLine)))};
  effort.messages = effort.rounds;
  switch (collective) {
    case Collective::all_reduce:
    case Collective::reduce: effort.moved = (n + 1) * bytes, effort.added = (n - 1) * bytes; break;
    case Collective::reduce_scatter: effort.moved = 2 * bytes, effort.added = (n - 1) / n * bytes; break;
    case Collective::all_gather:
    case Collective::gather:
    case Collective::scatter: effort.moved = (1 + 1 / n) * bytes; break;
    case Collective::broadcast:
    case Collective::all_to_all: effort.moved = 2 * bytes; break;
  }
  return effort;
}

Effort kernel_effort(Collective collective, int ranks, double bytes) {
  const double n = ranks;
  switch (collective) {
    case Collective::all_reduce:
    case Collective::all_to_all: return {.moved = 2 * bytes};
    case Collective::broadcast: return {.moved = n * bytes};
    default: return {.moved = (1 + 1 / n) * bytes};
  }
}

Effort meeting_effort(int ranks) {
  constexpr double kEnvelope = 128;
  const double others = ranks - 1;
  return {.rounds = 1, .messages = others, .moved = others * kEnvelope, .added = 0};
}

double cost_us(const WayCosts& way, const Effort& effort, double shared_us_per_byte) {
  const double in_cache = std::min(effort.moved, way.cache_bytes);
  return way.call_us + effort.rounds * way.round_us + (effort.messages - effort.rounds) * way.message_us + in_cache * way.cache_us_per_byte +
         (effort.moved - in_cache) * std::max(way.memory_us_per_byte, shared_us_per_byte) + effort.added * way.add_us_per_byte;
}

namespace {

/// What a byte takes where all ranks of a host move some: more ranks than were measured share its memory.
double shared_in_host(const Machine& machine, int ranks) { return ranks > machine.ranks ? ranks * machine.host_us_per_byte : 0; }

double board_us(const Machine& machine, Collective collective, int ranks, double bytes) {
  return cost_us(machine.board, board_effort(collective, ranks, bytes), shared_in_host(machine, ranks));
}

}  // namespace

const WayCosts& messages_of(const Machine& machine, bool one_host) {
  const WayCosts &wanted = one_host ? machine.messages : machine.network, &other = one_host ? machine.network : machine.messages;
  return wanted.known ? wanted : other;
}

Effort message_effort(const Problem& problem, bool one_host, double bytes) {
  Effort effort = effort_of(problem, bytes);
  if (one_host) return effort;
  const Effort meeting = meeting_effort(problem.ranks);
  effort.rounds += meeting.rounds, effort.messages += meeting.messages, effort.moved += meeting.moved;
  return effort;
}

double message_us(const Machine& machine, const Problem& problem, bool one_host, double bytes) {
  const double shared = one_host ? shared_in_host(machine, problem.ranks) : std::min(problem.ranks, machine.ranks_of_host) * machine.network_us_per_byte;
  return cost_us(messages_of(machine, one_host), message_effort(problem, one_host, bytes), shared);
}

double kernel_us(const Machine& machine, Collective collective, int ranks, double bytes) {
  return cost_us(machine.kernel, kernel_effort(collective, ranks, bytes), shared_in_host(machine, ranks));
}

std::optional<Choice> fastest(const Machine& machine, Collective collective, const Ways& ways, double bytes) {
  if (!messages_of(machine, ways.one_host).known) return std::nullopt;
  std::optional<Choice> best;
  auto take = [&](Method method, double us) {
    if (!best || us < best->us) best = {method, us};
  };
  for (const Method method : {Method::direct, Method::one_shot, Method::tree, Method::halving, Method::ring}) {
    const Problem problem{.collective = collective, .ranks = ways.ranks, .root = 0, .method = method};
    if ((method != Method::ring || ways.ring) && refusal(problem).empty()) take(method, message_us(machine, problem, ways.one_host, bytes));
  }
  if (ways.board && machine.board.known) take(Method::board, board_us(machine, collective, ways.ranks, bytes));
  return best;
}

namespace {

constexpr std::size_t kCosts = 6;
using Costs = std::array<double, kCosts>;

/// How often a call does what has a cost.
Costs counts_of(const Effort& e, double cache_bytes) {
  const double in_cache = std::min(e.moved, cache_bytes);
  return {1, e.rounds, e.messages - e.rounds, in_cache, e.moved - in_cache, e.added};
}

/// A call among least squares, and how much it counts.
struct Sample {
  Costs counts;
  double us, weight;
};

/// Solves the normal equations of some of the costs; the others are 0.
Costs solved(const std::vector<Sample>& rows, const std::array<bool, kCosts>& used) {
  std::vector<std::size_t> at;
  for (std::size_t i = 0; i < kCosts; ++i)
    if (used[i]) at.push_back(i);
  const std::size_t n = at.size();
  std::vector<std::vector<double>> m(n, std::vector<double>(n + 1));
  for (const Sample& row : rows)
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) m[i][j] += row.weight * row.counts[at[i]] * row.counts[at[j]];
      m[i][n] += row.weight * row.counts[at[i]] * row.us;
    }
  // Costs that no call tells apart share what they take.
  for (std::size_t i = 0; i < n; ++i) m[i][i] *= 1 + 1e-9;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = i + 1; j < n; ++j) {
      const double factor = m[j][i] / m[i][i];
      for (std::size_t k = i; k <= n; ++k) m[j][k] -= factor * m[i][k];
    }
  Costs x{};
  for (std::size_t i = n; i-- > 0;) {
    double sum = m[i][n];
    for (std::size_t k = i + 1; k < n; ++k) sum -= m[i][k] * x[at[k]];
    x[at[i]] = sum / m[i][i];
  }
  return x;
}

Costs not_below_zero(const std::vector<Sample>& rows) {
  std::array<bool, kCosts> used{};
  for (const Sample& row : rows)
    for (std::size_t i = 0; i < kCosts; ++i) used[i] = used[i] || row.counts[i] > 0;
  for (;;) {
    const Costs costs = solved(rows, used);
    const auto least = std::min_element(costs.begin(), costs.end());
    if (*least >= 0) return costs;
    used[static_cast<std::size_t>(least - costs.begin())] = false;
  }
}

struct Fit {
  Costs costs{};
  double error = std::numeric_limits<double>::infinity();
};

/// The costs whose ratios to what was measured are nearest to 1, as logarithms: half as long is as wrong as twice as long. Ratios past kFar count as if they
/// were measured while the machine did something else.
Fit fit(const std::vector<Timed>& calls, double cache_bytes) {
  constexpr int kRounds = 8;
  constexpr double kFar = 0.3;
  std::vector<Sample> rows;
  for (const Timed& call : calls) rows.push_back({counts_of(call.effort, cache_bytes), call.us, 1 / (call.us * call.us)});
  Fit best;
  for (int round = 0; round < kRounds; ++round) {
    const Costs costs = not_below_zero(rows);
    double error = 0;
    for (Sample& row : rows) {
      double us = 0;
      for (std::size_t i = 0; i < kCosts; ++i) us += row.counts[i] * costs[i];
      const double ratio = std::abs(std::log(std::max(us, 1e-9) / row.us));
      error += ratio < kFar ? ratio * ratio : 2 * kFar * ratio - kFar * kFar;
      const double slope = std::abs(us - row.us) > 1e-9 * row.us ? ratio / (us - row.us) : 1 / row.us;
      row.weight = slope * slope * (ratio < kFar ? 1 : kFar / ratio);
    }
    if (error < best.error) best = {costs, error};
  }
  return best;
}

}  // namespace

WayCosts fitted(const std::vector<Timed>& calls) {
  WayCosts way;
  if (calls.empty()) return way;
  Fit best;
  for (double cache = 4 << 10; cache <= 16 << 20; cache *= 2)
    if (const Fit of = fit(calls, cache); of.error < best.error) best = of, way.cache_bytes = cache;
  const auto& [call, round, message, in_cache, in_memory, add] = best.costs;
  way.known = true, way.call_us = call, way.round_us = round, way.cache_us_per_byte = in_cache, way.memory_us_per_byte = in_memory, way.add_us_per_byte = add;
  // Two ranks have one message a round.
  const bool has_messages = std::any_of(calls.begin(), calls.end(), [](const Timed& c) { return c.effort.messages > c.effort.rounds; });
  way.message_us = has_messages ? message : round;
  return way;
}

}  // namespace detail

using namespace detail;

double predict_us(const Machine& machine, Collective collective, std::uint64_t bytes, int ranks, Algorithm algorithm) {
  constexpr const char* kOp = "dist::predict_us";
  if (ranks < 1) throw Error(ErrorCode::invalid_argument, kOp, fmt::format("ranks must be 1 or more, got {}", ranks));
  const bool one_host = ranks <= machine.ranks_of_host;
  const auto all = static_cast<double>(bytes);
  auto check = [&](bool is_known, const char* what) {
    if (!is_known) throw Error(ErrorCode::invalid_argument, kOp, fmt::format("the Machine must know {}, got one that does not", what));
  };
  if (algorithm == Algorithm::board) {
    check(machine.board.known && one_host, "the board of so many ranks");
    return board_us(machine, collective, ranks, all);
  }
  if (algorithm == Algorithm::kernel) {
    check(machine.kernel.known && one_host, "kernels over the memory of so many ranks");
    return kernel_us(machine, collective, ranks, all);
  }
  check(messages_of(machine, one_host).known, "messages");
  if (algorithm == Algorithm::automatic) return fastest(machine, collective, {.ranks = ranks, .one_host = one_host, .board = one_host}, all)->us;
  const Problem problem{.collective = collective, .ranks = ranks, .root = 0, .method = method_of(algorithm)};
  if (const std::string_view why = refusal(problem); !why.empty())
    throw Error(ErrorCode::invalid_argument, kOp, fmt::format("the algorithm must do the call, got one that does not: {}", why));
  return message_us(machine, problem, one_host, all);
}

Machine Machine::nominal() noexcept {
  constexpr double kGigabyte = 1e-3;  // microseconds a byte at 1 GB/s
  Machine machine;
  machine.ranks = machine.ranks_of_host = 8, machine.launch_us = 5, machine.host_us_per_byte = kGigabyte / 100, machine.network_us_per_byte = kGigabyte / 25;
  auto way = [](double us, double gigabytes) {
    return WayCosts{.known = true,
                    .call_us = us,
                    .round_us = us,
                    .message_us = us / 4,
                    .cache_us_per_byte = kGigabyte / gigabytes,
                    .memory_us_per_byte = kGigabyte / gigabytes,
                    .cache_bytes = 1 << 20,
                    .add_us_per_byte = kGigabyte / 20};
  };
  machine.board = machine.messages = way(1, 10), machine.network = way(10, 10);
  machine.kernel = way(10, 10), machine.kernel.add_us_per_byte = 0;
  return machine;
}

}}}  // namespace clutch::v0::dist
