// SPDX-License-Identifier: Apache-2.0
#include <clutch/event.hpp>

#include "runtime/op_name.hpp"
#include "runtime/profile_log.hpp"
#include "runtime/recorder.hpp"
#include "runtime/runtime.hpp"
#include "runtime/settings.hpp"

#include <fmt/format.h>

#include <optional>

namespace clutch { inline namespace v0 {

namespace detail {
EventImpl::EventImpl(Runtime& of, ClEvent raw) : runtime(of), event(std::move(raw)) {}
EventImpl::~EventImpl() = default;
}  // namespace detail

namespace {

/// True if a dry run has noted the call, which must then do nothing. Errors: capturing if a capture recorded the event, or if a capture underway forbids the
/// call.
bool illegal(const detail::EventImpl& impl, std::string_view call) {
  detail::check_process(call);
  if (!impl.recorded) {
    detail::check_outside_branches(call, impl.runtime);
    return detail::illegal_beside(call);
  }
  constexpr std::string_view kWhy = "the event must mark work that runs, got one that was recorded in a capture";
  if (auto recording = impl.recorded->recording.lock()) return recording->illegal(call, kWhy);
  throw Error(ErrorCode::capturing, call, kWhy);
}

cl_int status_of(const detail::EventImpl& impl) {
  cl_int status = CL_COMPLETE;
  detail::check_cl(clGetEventInfo(impl.event.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr), "Event", "clGetEventInfo");
  return status;
}

[[noreturn]] void throw_failed(cl_int status, std::string_view op) {
  throw Error(ErrorCode::stream_failed, op, fmt::format("the marked work failed with {} ({})", detail::cl_error_name(status), status), status);
}

}  // namespace

void Event::record(const Stream& stream) {
  detail::OpName named("Event::record");
  Stream target = stream.empty() ? current_stream() : stream;
  detail::StreamImpl& impl = *target.impl();
  impl.check("Event::record");
  if (auto recording = impl.recording()) {
    auto made = std::make_shared<detail::EventImpl>(impl.runtime(), detail::ClEvent());
    made->stream = impl.id();
    made->recorded = std::make_unique<detail::RecordMark>(recording->mark(impl));
    impl_ = std::move(made);
    return;
  }
  cl_event raw = nullptr;
  detail::check_cl(clEnqueueMarkerWithWaitList(impl.queue(), 0, nullptr, &raw), "Event::record", "clEnqueueMarkerWithWaitList");
  auto made = std::make_shared<detail::EventImpl>(impl.runtime(), detail::ClEvent(raw));
  made->stream = impl.id();
  if (detail::profiled() != 0) [[unlikely]]
    detail::note_mark(impl, raw);
  if (detail::the_settings().check_streams.on()) made->clock = impl.clock();
  detail::check_cl(clFlush(impl.queue()), "Event::record", "clFlush");
  impl_ = std::move(made);
}

bool Event::query() const {
  detail::OpName named("Event::query");
  if (!impl_ || illegal(*impl_, "Event::query")) return true;
  cl_int status = status_of(*impl_);
  if (status < 0) throw_failed(status, "Event::query");
  if (status == CL_COMPLETE) impl_->runtime.host_waited(impl_->clock);
  return status == CL_COMPLETE;
}

void Event::wait() const {
  if (!impl_ || illegal(*impl_, "Event::wait")) return;
  cl_event raw = impl_->event.get();
  std::optional<detail::ProfiledSpan> profile(std::in_place, detail::RecordKind::sync, "clWaitForEvents", impl_->stream);
  cl_int result = clWaitForEvents(1, &raw);
  profile.reset();
  if (cl_int status = status_of(*impl_); status < 0) throw_failed(status, "Event::wait");
  detail::check_cl(result, "Event::wait", "clWaitForEvents");
  impl_->runtime.host_waited(impl_->clock);
}

double elapsed_ms(const Event& start, const Event& end) {
  if (!start.recorded() || !end.recorded()) throw Error(ErrorCode::invalid_argument, "elapsed_ms", "both events must have been recorded, got one that was not");
  if (&start.impl()->runtime != &end.impl()->runtime) throw Error(ErrorCode::invalid_argument, "elapsed_ms", "the events must be of one device, got two");
  if (illegal(*start.impl(), "elapsed_ms") || illegal(*end.impl(), "elapsed_ms")) return 0;
  if (!start.impl()->runtime.traits().device_timer)
    throw Error(ErrorCode::not_supported, "elapsed_ms",
                fmt::format("needs a usable timer (trait device_timer), device {} has none", start.impl()->runtime.device().index));
  start.wait();
  end.wait();
  auto time = [](const Event& event) {
    cl_ulong ns = 0;
    detail::check_cl(clGetEventProfilingInfo(event.impl()->event.get(), CL_PROFILING_COMMAND_END, sizeof ns, &ns, nullptr), "elapsed_ms",
                     "clGetEventProfilingInfo");
    return ns;
  };
  return (static_cast<double>(time(end)) - static_cast<double>(time(start))) * 1e-6;
}

}}  // namespace clutch::v0
