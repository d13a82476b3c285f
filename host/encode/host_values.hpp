// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/event.hpp>
#include <clutch/stream.hpp>

#include <cstdint>
#include <utility>

namespace clutch { inline namespace v0 { namespace detail {

/// The stream that made a value on a device, and the event that other streams must wait for.
class MadeOn {
 public:
  /// Orders the stream, or all runs of what it records, after the work that made the value. False if there is no value, or its making failed.
  bool ready(const Stream& stream);
  /// Notes that the stream was given the work that makes the value. False if it records: a recording may be dropped, so the value is the recording's alone.
  bool made(const Stream& stream);
  void forget() { *this = {}; }

 private:
  bool there_ = false;
  std::uint64_t stream_ = 0;
  Event event_;  ///< after the work that makes the value; none once that is known to be done
};

/// A value in device memory that is made once and read on any stream. Not for two threads at once.
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
  void forget() { on_.forget(), value_ = {}; }

 private:
  MadeOn on_;
  T value_ = {};
};

/// Refuses work that makes state which outlives the call: a graph would make it anew at each replay. Errors: capturing if the stream records.
void check_makes_state(const Stream& stream, const char* op);

}}}  // namespace clutch::v0::detail
