// SPDX-License-Identifier: Apache-2.0
// What a clock would say of schedules, by a model of links. It moves no numbers. A simulation says how many rounds there are, who waits for whom and that
// nobody waits for ever; its times are those of the model, and no measurement.
#pragma once
#include "dist/schedule.hpp"

#include <cstddef>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

/// Costs of each rank and each link. A rank sends one message after another and receives one after another, both at a time; a message begins once both ranks
/// have come to it.
struct LinkModel {
  double latency_us = 0;       ///< from the begin of a message to its first byte
  double us_per_byte = 0;      ///< of a message, at both ends
  double us_per_byte_add = 0;  ///< of additions and copies, by bytes of the result
};

/// Microseconds at which each rank is done. `block_bytes`: of a block. `late`: when each rank begins, all at 0 where it is empty.
/// Errors: std::logic_error where ranks would wait for ever, with rank and round of the first that does, or where messages differ in length from what is
/// received.
std::vector<double> simulate(const std::vector<Schedule>& ranks, std::size_t block_bytes, const LinkModel& link, const std::vector<double>& late = {});

}}}}  // namespace clutch::v0::dist::detail
