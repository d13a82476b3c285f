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

/// One way of doing a call. run() enqueues it and returns its result, an output of its own. `exact`: its bits must be those of the first way.
struct TuneWay {
  std::string choice;
  std::function<Tensor()> run;
  bool exact = true;
};

/// Grows with every change of what is known, so that answers may be cached by it.
std::uint64_t tuning_generation();
/// Forgets what is known and reads the tuning file at its next use, as a new process does: for tests.
void forget_tuning();
/// False where nothing is known and nothing is to be measured: the common case, at the price of a load. A tuning file that cannot be used is a
/// fall-back of `op`. Errors: strict under CLUTCH_STRICT=untuned.
bool tuning_matters(std::string_view op);

/// False while the stream records: what is not known then is measured by a later call, so an answer is not to be kept.
bool may_measure(const Stream& stream);

/// Seconds since some moment.
double steady_seconds();

/// The choice for a class of shapes: what is known, else, under CLUTCH_AUTOTUNE and unless the stream captures, the fastest of `ways` by `clock`, of
/// which the first is the op's own choice and has an empty name. Errors: as the ways'.
std::string tuned_choice(Runtime& runtime, std::string_view op, const std::string& shape_class, const Stream& stream,
                         const std::function<std::vector<TuneWay>()>& ways, const std::function<double()>& clock = steady_seconds);

}}}  // namespace clutch::v0::detail
