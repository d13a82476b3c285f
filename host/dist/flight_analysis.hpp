// SPDX-License-Identifier: Apache-2.0
// Compares what the ranks of a program recorded: which rank made another call than the others, which did not come, which came late, who waits for whom.
#pragma once
#include "dist/flight_image.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

struct FlightFinding {
  enum class Kind : std::uint8_t {
    op,            ///< ranks made different calls
    reduce,        ///< ... of one op, with different sums,
    root,          ///< roots,
    dtype,         ///< dtypes
    sizes,         ///< or sizes
    missing,       ///< ranks did not make a call that others made
    state,         ///< ranks have not come as far as others in one call
    failed,        ///< a call ended with an error
    timed_out,     ///< or was given up
    message,       ///< a send and its receive differ
    unmatched,     ///< a send without a receive, or the reverse
    cycle,         ///< ranks wait for one another
    lost_process,  ///< a process ended and did not close its ring
    no_file,       ///< there is no file of a rank
  };
  Kind kind = Kind::op;
  std::string group;                   ///< empty where it is of no group
  std::uint64_t seq = 0;               ///< collective_seq, or p2p_seq of messages
  std::vector<std::int32_t> culprits;  ///< ranks of the world that the others speak against; none where that cannot be told
  std::vector<std::int32_t> ranks;     ///< all that take part
  bool is_tie = false;                 ///< as many ranks speak for the culprits as against them
  std::string text;                    ///< what happened, with calls and their places in the source
  std::int64_t time_ns = 0;            ///< when the first of its calls began
};
std::string_view name(FlightFinding::Kind kind) noexcept;

/// How long after the first rank of a call this rank began it, over calls in which all ranks wait for each other.
struct FlightLateness {
  std::int32_t rank = 0;
  std::uint64_t calls = 0, times_last = 0;
  double mean_us = 0, median_us = 0, max_us = 0;
  std::string worst;          ///< the call of max_us
  double clock_shift_us = 0;  ///< what was taken from its clock, by the times at which calls end on all; only between hosts
};

struct FlightAnalysis {
  std::vector<FlightFinding> findings;  ///< by time; those of no time last
  std::vector<FlightLateness> lateness;
  std::vector<std::string> notes;  ///< what may be so in a right program
  std::int32_t world_size = 0;
  std::uint64_t calls = 0;  ///< that were compared
  /// The ranks of the first finding that has culprits; empty if none has.
  std::vector<std::int32_t> first_culprits() const;
  std::string text() const;
  std::string json() const;
  int exit_code() const noexcept { return findings.empty() ? 0 : 1; }
};

struct FlightAnalysisOptions {
  /// How long a call may take, or a rank may be late, in images of running processes.
  std::int64_t patience_ns = 5'000'000'000;
  /// Findings of one group, after which the rest of its calls is left out.
  std::size_t most_of_group = 5;
};

/// Errors: invalid_argument for no images or two of one rank.
FlightAnalysis analyze(std::vector<FlightImage> images, const FlightAnalysisOptions& options = {});

/// A call in a line: "all_reduce sum of f32 [8, 4], started, at train.cc:31 (step)".
std::string describe(const FlightRecord& record);

}}}}  // namespace clutch::v0::dist::detail
