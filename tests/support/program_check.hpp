// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether backends of graphs do what a program does eagerly, and the smallest program with which one does not.
#include "support/random_program.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace clutch::testing {

/// What a program leaves eagerly: after it ran once, and after it ran again on what it had left.
struct ProgramReference {
  ProgramState once, twice;
};
/// Errors: clutch::Error of a call that the library refuses.
ProgramReference run_eagerly(const Program& program, const Device& device);

enum class Verdict : std::uint8_t {
  right,
  wrong,    ///< other bits, or an error where the eager calls have none
  refused,  ///< the backend does not take the graph
};
struct ProgramVerdict {
  Verdict verdict = Verdict::right;
  std::string why;  ///< of `wrong` and `refused`
  int nodes = 0;    ///< that were captured
};
/// Captures the program, replays it twice and compares what it leaves each time.
ProgramVerdict check_program(const Program& program, const Device& device, const std::string& backend, const ProgramReference& reference);

/// Whether the backend gets the program wrong, in a run of its own; not where the library refuses a call.
bool fails_on(const Program& program, const Device& device, const std::string& backend);

/// A smaller program for which `fails` holds, too: without calls, with tensors that are given instead of computed, on one stream, with smaller shapes and
/// simpler arguments. No call of it can be left out.
/// `fails` is asked at most `tries` times.
Program shrink_program(const Program& program, const std::function<bool(const Program&)>& fails, const Device& device, int tries = 2000);

/// A program that a backend gets wrong, shrunk, as a failing test prints it: seed, both texts, and what is wrong with both.
std::string report_failure(const Program& program, const Device& device, const std::string& backend, const std::string& why);

}  // namespace clutch::testing
