// SPDX-License-Identifier: Apache-2.0
// Times of calls by a model of the machine: how often a call does what a Machine has costs of. Arithmetic alone.
#pragma once
#include "dist/schedule.hpp"

#include <clutch/dist/model.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

/// Of algorithms that send messages.
Method method_of(Algorithm algorithm);
/// By rounds for few bytes, and by traffic for many: where no machine is known.
Method automatic(Collective collective, int ranks, std::uint64_t bytes);

/// What a call asks of the rank that has most to do.
struct Effort {
  double rounds = 0, messages = 0;
  double moved = 0, added = 0;  ///< bytes
};

/// Of a schedule of that many bytes (Collective's bytes, see predict_us()): what its longest way through all ranks has. Methods that refuse the problem have
/// none.
Effort effort_of(const Problem& problem, double bytes);
/// Of turns on the board.
Effort board_effort(Collective collective, int ranks, double bytes);
/// Of kernels on the memory of all ranks.
Effort kernel_effort(Collective collective, int ranks, double bytes);

/// Of the envelopes that ranks of several hosts, which have no board, send each other before a call.
Effort meeting_effort(int ranks);
/// Of a schedule, and of the meeting before it.
Effort message_effort(const Problem& problem, bool one_host, double bytes);

/// `shared_us_per_byte`: what a byte beyond the cache takes at least.
double cost_us(const WayCosts& way, const Effort& effort, double shared_us_per_byte);

/// What a group of ranks has.
struct Ways {
  int ranks = 1;
  bool one_host = true;
  bool board = true;
  bool ring = false;  ///< its order of sums is allowed
};
struct Choice {
  Method method = Method::direct;
  double us = 0;
};
/// The fastest way; none where the machine does not know the group's messages.
std::optional<Choice> fastest(const Machine& machine, Collective collective, const Ways& ways, double bytes);
/// Costs of a group's messages: unknown ones of one kind are taken to be those of the other.
const WayCosts& messages_of(const Machine& machine, bool one_host);
double message_us(const Machine& machine, const Problem& problem, bool one_host, double bytes);
double kernel_us(const Machine& machine, Collective collective, int ranks, double bytes);

/// A call that was timed.
struct Timed {
  Effort effort;
  double us = 0;
};
/// Costs of least squares of the ratios' logarithms, none below 0.
WayCosts fitted(const std::vector<Timed>& calls);

}}}}  // namespace clutch::v0::dist::detail
