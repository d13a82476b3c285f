// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/event.hpp>
#include <clutch/stream.hpp>

#include "runtime/recorder.hpp"

#include <cstdint>
#include <utility>

namespace clutch { inline namespace v0 { namespace detail {

/// True if the stream's work runs now: what it makes or measures may be kept. Work of a recording may never run, and is of its runs alone; so it is with work
/// of a branch.
bool runs_now(const Stream& stream);
/// The stream if its work runs now, else a new one of its runtime.
Stream unrecorded(const Stream& stream);

/// The stream that made a value on a device, and the event that other streams must wait for.
class MadeOn {
 public:
  /// Orders the stream, or all runs of its recording, after the work that made the value. False if there is no value, or if that work failed.
  bool ready(const Stream& stream);
  /// Notes that the stream runs the work that makes the value. False if the stream records: the recording may be dropped, so the value is valid within it
  /// alone.
  bool made(const Stream& stream);
  void forget() { *this = {}; }

 private:
  bool there_ = false;
  std::uint64_t stream_ = 0;
  Event event_;  ///< after the work that makes the value; empty once that work is known to be done
};

/// A value in device memory that is made once and read on any stream. Not thread-safe.
template <class T>
class Cached {
 public:
  /// The value. If there is none, make() enqueues the work that makes it on the stream.
  template <class Make>
  T get(const Stream& stream, Make&& make) {
    if (on_.ready(stream)) return value_;
    T value = std::forward<Make>(make)();
    if (on_.made(stream)) value_ = value;
    return value;
  }
  /// The same for a value that no recording may make: if the stream records, make(other stream) makes it now, and every run of the recording comes behind.
  template <class Make>
  T get_unrecorded(const Stream& stream, Make&& make) {
    if (!on_.ready(stream)) {
      const RecordingExempt exempt;
      const Stream on = unrecorded(stream);
      value_ = std::forward<Make>(make)(on);
      on_.made(on);
      on_.ready(stream);
    }
    return value_;
  }
  void forget() { on_.forget(), value_ = {}; }

 private:
  MadeOn on_;
  T value_ = {};
};

/// Refuses work that makes state which outlives the call, because each replay of a graph would make the state again. Errors: capturing if the stream records.
void check_makes_state(const Stream& stream, const char* op);

}}}  // namespace clutch::v0::detail
