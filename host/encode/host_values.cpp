// SPDX-License-Identifier: Apache-2.0
#include "encode/host_values.hpp"

#include "runtime/runtime.hpp"
#include "runtime/settings.hpp"

#include <fmt/format.h>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

/// An event after the last command of the stream; empty if that command is done. Failures are the stream's to report.
Event event_of_last(const Stream& stream) {
  Event event;
  StreamImpl& impl = *stream.impl();
  if (the_settings().check_streams.on()) {
    event.record(stream);  // also notes the stream's clock
  } else if (ClEvent last = impl.last()) {
    stream.flush();  // other streams may wait for the event
    auto made = std::make_shared<EventImpl>(impl.runtime(), std::move(last));
    made->stream = impl.id();
    event = Event(std::move(made));
  }
  return event;
}

}  // namespace

bool runs_now(const Stream& stream) { return !stream.is_capturing() && !current_branch(); }

Stream unrecorded(const Stream& stream) { return runs_now(stream) ? stream : Stream(stream.impl()->runtime().make_stream(StreamPriority::normal)); }

bool MadeOn::ready(const Stream& stream) {
  if (!there_ || !event_.recorded()) return there_;
  try {
    RecordingExempt exempt;
    // The race checker needs the order between the streams even if the work is done.
    if (event_.query() && !the_settings().check_streams.on()) {
      event_ = {};
      return true;
    }
  } catch (const Error&) {
    forget();
    return false;
  }
  // A recording may be replayed on any stream.
  if (!runs_now(stream) || stream_ != stream.impl()->id()) run_behind(stream, event_);
  return true;
}

bool MadeOn::made(const Stream& stream) {
  forget();
  if (!runs_now(stream)) return false;
  event_ = event_of_last(stream), stream_ = stream.impl()->id(), there_ = true;
  return true;
}

void check_makes_state(const Stream& stream, const char* op) {
  if (illegal_on(*stream.impl(), op))
    throw Error(ErrorCode::capturing, op,
                fmt::format("the call's state must be made outside of captures, got stream {}, which is capturing", stream.impl()->id()));
}

}}}  // namespace clutch::v0::detail
