// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/tensor.hpp>
#include <clutch/tune.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

class Runtime;

/// One way to compute a call. run() enqueues it and returns a new tensor with its result. `exact`: the result must have the bits of the first way's.
struct TuneWay {
  std::string choice;
  std::function<Tensor()> run;
  bool exact = true;
};

/// Grows with each change of the tuned choices, so that callers can tell whether an answer they keep is current.
std::uint64_t tuning_generation();
/// Removes all tuned choices and reads the tuning file again at its next use, as a new process does: for tests.
void forget_tuning();
/// False if no choices are known and none are to be measured. This is the common case and costs one load. A tuning file that cannot be used counts as a
/// fall-back of `op`. Errors: strict under CLUTCH_STRICT=untuned.
bool tuning_matters(std::string_view op);

/// False while the stream records. Unknown choices are then left to a later call to measure, so the caller must not keep the answer.
bool may_measure(const Stream& stream);

/// Seconds of a steady clock.
double steady_seconds();

/// The choice for a class of shapes: the known one; else, under CLUTCH_AUTOTUNE and unless the stream captures, the fastest of `ways` by `clock`. The first way
/// is the op's own choice and has an empty name. Errors: those of the ways.
std::string tuned_choice(Runtime& runtime, std::string_view op, const std::string& shape_class, const Stream& stream,
                         const std::function<std::vector<TuneWay>()>& ways, const std::function<double()>& clock = steady_seconds);

}}}  // namespace clutch::v0::detail
