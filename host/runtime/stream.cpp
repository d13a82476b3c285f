// SPDX-License-Identifier: Apache-2.0
#include "runtime/stream.hpp"

#include <clutch/event.hpp>

#include "program/pack_record.hpp"
#include "runtime/op_name.hpp"
#include "runtime/pool.hpp"
#include "runtime/profile_log.hpp"
#include "runtime/queue_recorder.hpp"
#include "runtime/quirks.hpp"
#include "runtime/runtime.hpp"
#include "runtime/settings.hpp"
#include "support/system.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace clutch { inline namespace v0 {
namespace detail {

namespace {

std::atomic<std::uint64_t> g_next_stream{1};

// Unfinished commands are kept, so that a failure can name its op. Beyond this number each submission retires up to two finished ones, which bounds the list.
constexpr std::size_t kKeptInFlight = 32;

cl_int status_of(cl_event event) {
  cl_int status = CL_COMPLETE;
  cl_int got = clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  return got == CL_SUCCESS ? status : got;
}

/// This thread's current streams by device index; null if none was set.
struct CurrentStreams {
  std::vector<std::shared_ptr<StreamImpl>> by_device;
};
/// Does not release the main thread's streams at exit, because OpenCL may be unloaded by then.
struct CurrentStreamsOwner {
  CurrentStreams* streams = new CurrentStreams;
  ~CurrentStreamsOwner() {
    if (!is_main_thread()) delete streams;
  }
};
thread_local CurrentStreamsOwner t_streams;

std::shared_ptr<StreamImpl>& current_slot(const DeviceRecord& device) {
  auto& all = t_streams.streams->by_device;
  auto index = static_cast<std::size_t>(device.index);
  if (all.size() <= index) all.resize(index + 1);
  return all[index];
}

/// The device's current stream if it belongs to `runtime` (an adopted context has another one), else the runtime's default stream.
std::shared_ptr<StreamImpl> current_of(Runtime& runtime) {
  const auto& slot = current_slot(runtime.device());
  return slot && &slot->runtime() == &runtime ? slot : runtime.default_stream();
}

/// A marker after all of the queue's work so far; null if the queue fails.
ClEvent enqueue_marker(cl_command_queue queue) noexcept {
  cl_event raw = nullptr;
  if (clEnqueueMarkerWithWaitList(queue, 0, nullptr, &raw) != CL_SUCCESS) return {};
  ClEvent marker(raw);
  if (clFlush(queue) != CL_SUCCESS) return {};
  return marker;
}

StreamImpl& need(const std::shared_ptr<StreamImpl>& impl, std::string_view op) {
  if (!impl) throw Error(ErrorCode::invalid_argument, op, "the Stream must be a made one, got an empty one");
  return *impl;
}

}  // namespace

std::uint64_t Clock::of(std::uint64_t stream) const {
  for (auto [id, ticket] : seen)
    if (id == stream) return ticket;
  return 0;
}

void Clock::raise(std::uint64_t stream, std::uint64_t ticket) {
  for (auto& [id, known] : seen)
    if (id == stream) {
      known = std::max(known, ticket);
      return;
    }
  seen.emplace_back(stream, ticket);
}

void Clock::merge(const Clock& other) {
  for (auto [id, ticket] : other.seen) raise(id, ticket);
}

StreamImpl::StreamImpl(Runtime& runtime, ClQueue queue, StreamPriority priority, bool wrapped, std::shared_ptr<PartitionImpl> partition)
    : runtime_(runtime),
      partition_(std::move(partition)),
      queue_(std::move(queue)),
      id_(g_next_stream.fetch_add(1)),
      priority_(priority),
      wrapped_(wrapped),
      end_(std::make_shared<StreamEnd>(id_, queue_.get())),
      events_cost_((claimed_traits(runtime.device()).quirks & kQuirkEventsCost) != 0) {}

StreamImpl::~StreamImpl() {
  if (forked()) return;
  // Host memory that commands in flight read must live until they are done.
  bool keeps = false;
  for (std::size_t i = 0; i < flight_.size(); ++i) keeps = keeps || flight_[i].keep != nullptr;
  if (keeps || !to_save_.empty()) {
    clFinish(queue_.get());
    for (Program* program : to_save_) program->save();
    if (records_packs()) write_recording();
  }
  const bool leaves_work = partition_ && !idle();
  ClEvent last = mark("~Stream");
  ClEvent known = last ? retained(last.get()) : ClEvent();
  if (!known) clFinish(queue_.get());  // because other streams will reuse its memory
  if (leaves_work && last)
    if (ClEvent end = retained(last.get())) partition_->stream_ends(std::move(end));
  end_->close(std::move(known), checked_clock());
  runtime_.pool().adopt_stream(id_, std::move(last));
}

ClEvent StreamImpl::mark(std::string_view) { return enqueue_marker(queue_.get()); }

ClEvent StreamEnd::mark() noexcept {
  std::lock_guard lock(mutex_);
  if (queue_) {
    ClEvent marker = enqueue_marker(queue_);
    if (!marker) clFinish(queue_);  // without a marker only waiting shows that the work is done
    return marker;
  }
  if (!last_ || is_done(last_.get())) return {};
  ClEvent last = retained(last_.get());
  cl_event raw = last_.get();
  if (!last) clWaitForEvents(1, &raw);
  return last;
}

void StreamEnd::finish() noexcept {
  if (ClEvent last = mark()) {
    cl_event raw = last.get();
    clWaitForEvents(1, &raw);
  }
}

bool StreamEnd::over() noexcept {
  std::lock_guard lock(mutex_);
  return !queue_ && (!last_ || is_done(last_.get()));
}

void StreamEnd::close(ClEvent last, Clock seen) noexcept {
  std::lock_guard lock(mutex_);
  queue_ = nullptr;
  last_ = std::move(last), seen_ = std::move(seen);
}

Clock StreamEnd::seen() {
  std::lock_guard lock(mutex_);
  return seen_;
}

void StreamImpl::submitted(ClEvent event, const char* op, std::shared_ptr<void> keep) {
  std::vector<std::shared_ptr<void>> done;  // destroyed after the unlock, since freeing may run callers' code
  std::lock_guard lock(mutex_);
  const bool tells = static_cast<bool>(event);
  flight_.push_back({std::move(event), op, std::move(keep)});
  if (tells && flight_.size() > kKeptInFlight) retire(2, done);
}

void StreamImpl::submitted(std::span<Submitted> commands) {
  std::vector<std::shared_ptr<void>> done;
  std::lock_guard lock(mutex_);
  for (Submitted& command : commands) flight_.push_back({std::move(command.event), command.op, {}});
  if (flight_.size() <= kKeptInFlight) return;
  // The queue is in order, so one finished event proves all earlier ones. Asking each event while the device signals events costs more than enqueueing.
  std::size_t older = flight_.size() - kKeptInFlight;
  while (older > 0 && !flight_[older - 1].event) --older;
  if (older > 0 && status_of(flight_[older - 1].event.get()) <= CL_COMPLETE) retire(older, done);
}

void StreamImpl::mark_last() noexcept {
  if (!flight_.empty() && !flight_.back().event) flight_.back().event = enqueue_marker(queue_.get());
}

ClEvent StreamImpl::last() {
  std::lock_guard lock(mutex_);
  if (flight_.empty()) return {};
  mark_last();
  if (const ClEvent& event = flight_.back().event) return retained(event.get());
  clFinish(queue_.get());  // without a marker only waiting shows that the work is done
  return {};
}

void StreamImpl::pop_front(std::vector<std::shared_ptr<void>>& done) {
  InFlight& front = flight_.front();
  if (front.keep) done.push_back(std::move(front.keep));
  flight_.pop_front();
  ++retired_;
}

void StreamImpl::retire(std::size_t most, std::vector<std::shared_ptr<void>>& done) {
  while (most-- > 0) {
    std::size_t told = 0;  // the first command that has an event, which tells of those before it, too: the queue is in order
    while (told < flight_.size() && !flight_[told].event) ++told;
    if (told == flight_.size()) return;
    const InFlight& teller = flight_[told];
    cl_int status = status_of(teller.event.get());
    if (status > CL_COMPLETE) return;
    if (status < 0) {
      fail(status, flight_.front().op);
      if (teller.keep) clFinish(queue_.get());  // after a failure the event does not tell whether the command still reads this memory
    }
    for (std::size_t i = 0; i <= told; ++i) pop_front(done);
  }
}

void StreamImpl::fail(cl_int status, const char* op) {
  if (sticky_) return;
  const NoOpName by_its_own_name;  // so that the error names the op whose work failed, not the call that detects the failure
  ErrorCode code = is_device_lost(status) ? ErrorCode::device_lost : ErrorCode::stream_failed;
  sticky_.emplace(
      code, op,
      fmt::format("failed on stream {} of device {} with {} ({}); Stream::reset() forgets it", id_, runtime_.device().index, cl_error_name(status), status),
      status);
  failed_.store(true, std::memory_order_release);
}

void StreamImpl::fail(const Error& why) {
  const std::lock_guard lock(mutex_);
  if (sticky_) return;
  const NoOpName by_its_own_name;
  sticky_.emplace(ErrorCode::stream_failed, why.op(),
                  fmt::format("failed on stream {} of device {}: {}; Stream::reset() forgets it", id_, runtime_.device().index, why.message()), why.cl_code());
  failed_.store(true, std::memory_order_release);
}

void StreamImpl::throw_sticky(std::string_view) const {
  std::lock_guard lock(mutex_);
  throw *sticky_;
}

std::shared_ptr<Recorder> StreamImpl::recorder() const {
  std::shared_ptr<Recorder> own = recording();
  if (!own) own = {std::shared_ptr<void>(), &queue_recorder()};
  if (Branch* branch = current_branch()) [[unlikely]]
    return branch->recorder(*this, std::move(own));
  return own;
}

void StreamImpl::begin_recording(std::shared_ptr<Recording> recording) {
  std::lock_guard lock(mutex_);
  if (recording_) throw Error(ErrorCode::capturing, "Graph::capture_begin", fmt::format("the stream must not be capturing, got stream {}, which is", id_));
  recording_ = std::move(recording);
  records_.store(true, std::memory_order_release);
}

void StreamImpl::end_recording() noexcept {
  std::shared_ptr<Recording> ended;  // destroyed after the unlock
  std::lock_guard lock(mutex_);
  records_.store(false, std::memory_order_release);
  ended = std::move(recording_);
}

void StreamImpl::save_when_idle(Program* program) {
  std::lock_guard lock(mutex_);
  if (std::find(to_save_.begin(), to_save_.end(), program) == to_save_.end()) to_save_.push_back(program);
}

bool StreamImpl::idle() {
  std::vector<std::shared_ptr<void>> done;
  std::lock_guard lock(mutex_);
  mark_last();
  retire(flight_.size(), done);
  return flight_.empty();
}

void StreamImpl::wait_for(cl_event event, const char* op, std::uint64_t of) {
  cl_event raw = nullptr;
  const ProfiledCommand profile;
  check_cl(clEnqueueBarrierWithWaitList(queue(), 1, &event, &raw), op, "clEnqueueBarrierWithWaitList");
  note_wait(profile, *this, raw, event, of);
  submitted(ClEvent(raw), op);
}

std::unique_lock<std::mutex> turn_of(StreamImpl& stream) {
  if (!stream.partition()) [[likely]]
    return {};
  return stream.partition()->turn_of(stream);
}

bool StreamImpl::query() {
  check("Stream::query");
  Clock seen = checked_clock();
  std::vector<std::shared_ptr<void>> done;
  bool idle = false;
  {
    std::lock_guard lock(mutex_);
    mark_last();
    retire(flight_.size(), done);
    idle = flight_.empty();
  }
  check("Stream::query");
  if (idle) runtime_.host_waited(seen);
  return idle;
}

void StreamImpl::synchronize(std::string_view op) {
  check(op);
  Clock seen = checked_clock();
  std::uint64_t covered = 0;  // number of commands that clFinish waited for
  const char* first = "synchronize";
  {
    std::lock_guard lock(mutex_);
    covered = retired_ + flight_.size();
    if (!flight_.empty()) first = flight_.front().op;
  }
  std::optional<ProfiledSpan> profile(std::in_place, RecordKind::sync, "clFinish", id_);
  cl_int status = clFinish(queue_.get());
  profile.reset();
  std::vector<std::shared_ptr<void>> done;
  std::vector<Program*> programs;
  // Some drivers set the status of events shortly after clFinish returned, so events that are not complete are awaited one by one.
  for (std::uint64_t waited_for = 0;;) {
    ClEvent late;
    {
      std::lock_guard lock(mutex_);
      retire(flight_.size(), done);
      while (retired_ < covered && !flight_.empty() && !flight_.front().event) pop_front(done);  // clFinish tells of these
      bool again = retired_ < covered && !flight_.empty() && retired_ + 1 > waited_for;
      if (again) late = retained(flight_.front().event.get());
      if (late) {
        waited_for = retired_ + 1;
      } else {
        if (status != CL_SUCCESS) fail(status, first);
        programs.swap(to_save_);
      }
    }
    if (!late) break;
    cl_event raw = late.get();
    clWaitForEvents(1, &raw);
  }
  for (Program* program : programs) program->save();
  if (records_packs()) write_recording();
  check(op);
  runtime_.host_waited(seen);
}

void StreamImpl::reset() {
  check_process("Stream::reset");
  Clock seen = checked_clock();
  clFinish(queue_.get());
  runtime_.host_waited(seen);
  std::lock_guard lock(mutex_);
  retired_ += flight_.size();
  flight_.clear();
  sticky_.reset();
  failed_.store(false, std::memory_order_release);
}

Clock StreamImpl::clock(std::uint64_t running) const {
  std::lock_guard lock(mutex_);
  Clock result = clock_;
  result.raise(id_, ticket() - running);
  return result;
}

Clock StreamImpl::checked_clock(std::uint64_t running) const { return the_settings().check_streams.on() ? clock(running) : Clock(); }

void StreamImpl::learn(const Clock& other) {
  std::lock_guard lock(mutex_);
  clock_.merge(other);
}

Stream resolve_stream(const Stream& stream, Runtime& runtime, std::string_view op) {
  check_process(op);
  if (stream.empty()) return Stream(current_of(runtime));
  if (&stream.impl()->runtime() != &runtime)
    throw Error(ErrorCode::device_mismatch, op,
                fmt::format("the stream must be of the tensors' device and context, got device {}{} for tensors of device {}{}",
                            stream.impl()->runtime().device().index, stream.impl()->runtime().adopted() ? " (an adopted context)" : "", runtime.device().index,
                            runtime.adopted() ? " (an adopted context)" : ""));
  return stream;
}

}  // namespace detail

Stream::Stream(const Device& device, const StreamOptions& options) {
  detail::OpName named("Stream");
  detail::Runtime& runtime = detail::runtime_for(device);
  detail::PartitionImpl* partition = runtime.own_partition();
  impl_ = runtime.make_stream(options.priority, partition ? partition->shared_from_this() : nullptr);
}

Device Stream::device() const { return Device(&detail::need(impl_, "Stream::device").runtime().device()); }
std::uint64_t Stream::id() const { return detail::need(impl_, "Stream::id").id(); }
StreamPriority Stream::priority() const { return detail::need(impl_, "Stream::priority").priority(); }
Partition Stream::partition() const { return Partition(detail::need(impl_, "Stream::partition").partition()); }
bool Stream::query() const {
  auto& impl = detail::need(impl_, "Stream::query");
  return detail::illegal_on(impl, "Stream::query") || detail::illegal_beside("Stream::query") || impl.query();
}

void Stream::synchronize() const {
  auto& impl = detail::need(impl_, "Stream::synchronize");
  detail::HostRead waiting(impl, "Stream::synchronize");
  if (waiting.supplied()) return;
  if (detail::illegal_on(impl, "Stream::synchronize") || detail::illegal_beside("Stream::synchronize")) return;
  impl.synchronize("Stream::synchronize");
  waiting.done();
}

void Stream::reset() const {
  auto& impl = detail::need(impl_, "Stream::reset");
  if (detail::illegal_on(impl, "Stream::reset") || detail::illegal_beside("Stream::reset")) return;
  impl.reset();
}

bool Stream::is_capturing() const { return detail::need(impl_, "Stream::is_capturing").records(); }

void Stream::flush() const {
  auto& impl = detail::need(impl_, "Stream::flush");
  if (impl.records()) return;
  impl.check("Stream::flush");
  detail::check_cl(clFlush(impl.queue()), "Stream::flush", "clFlush");
}

namespace {

/// Makes a stream that waits for a recorded event part of that recording.
void wait_recorded(const std::shared_ptr<detail::StreamImpl>& stream, const detail::RecordMark& mark) {
  std::shared_ptr<detail::Recording> recording = mark.recording.lock(), own = stream->recording();
  if (!recording || (own && own != recording)) {
    const std::string why = fmt::format("the event must be of a capture that goes on, the stream's own if it has one, got one of {}",
                                        recording ? "another" : "a capture that has ended");
    if (own && own->illegal("Stream::wait", why)) return;
    throw Error(ErrorCode::capturing, "Stream::wait", why);
  }
  if (&stream->runtime() != &recording->runtime()) {
    recording->illegal("Stream::wait", fmt::format("the stream must be of the capture's device and context, got one of another: stream {} of device {}",
                                                   stream->id(), stream->runtime().device().index));
    return;
  }
  recording->wait(stream, mark);
}

}  // namespace

void Stream::wait(const Event& event) const {
  detail::OpName named("Stream::wait");
  auto& impl = detail::need(impl_, "Stream::wait");
  impl.check("Stream::wait");
  if (!event.recorded()) return;
  detail::EventImpl& other = *event.impl();
  if (other.recorded) {
    wait_recorded(impl_, *other.recorded);
    return;
  }
  if (auto recording = impl.recording()) {
    recording->illegal("Stream::wait",
                       "the event must be recorded in the capture, so that a node can wait for it, got one from outside: wait before the capture begins");
    return;
  }
  if (&other.runtime != &impl.runtime()) {
    event.wait();
    return;
  }
  impl.wait_for(other.event.get(), "Stream::wait", other.stream);
  if (detail::the_settings().check_streams.on()) {
    detail::Clock seen = other.clock;
    impl.learn(seen);
  }
}

Stream default_stream(const Device& device) {
  detail::OpName named("default_stream");
  return Stream(detail::runtime_for(device).default_stream());
}

Stream current_stream(const Device& device) {
  detail::OpName named("current_stream");
  const detail::DeviceRecord& record = *(device.empty() ? current_device() : device).record();
  const auto& slot = detail::current_slot(record);
  return slot ? Stream(slot) : Stream(detail::runtime_of(record).default_stream());
}

void set_current_stream(const Stream& stream) {
  auto& impl = detail::need(stream.impl(), "set_current_stream");
  detail::current_slot(impl.runtime().device()) = stream.impl();
  set_current_device(stream.device());
}

StreamGuard::StreamGuard(const Stream& stream) : device_(stream.empty() ? Device() : stream.device()) {
  auto& slot = detail::current_slot(detail::need(stream.impl(), "StreamGuard").runtime().device());
  former_ = Stream(slot);
  of_ = stream.device();
  slot = stream.impl();
}

StreamGuard::~StreamGuard() { detail::current_slot(*of_.record()) = former_.impl(); }

}}  // namespace clutch::v0
