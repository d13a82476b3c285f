// SPDX-License-Identifier: Apache-2.0
#include "dist/call.hpp"
#include "dist/progress.hpp"

#include <fmt/format.h>
#include <clutch/interop_cl.hpp>

#include <utility>

namespace clutch { inline namespace v0 { namespace dist {

using namespace detail;

Work::Status Work::status() const noexcept {
  if (!state_) return Status::done;
  const std::lock_guard lock(state_->mutex);
  return state_->status;
}

void Work::wait(const Stream& stream) const {
  if (!state_) return;
  state_->note_wait();
  const Stream waits = !stream.empty() ? stream : current_stream(state_->stream.device());
  if (waits == state_->stream) return;
  try {
    {
      const std::lock_guard lock(state_->mutex);
      if (!state_->has_ended()) state_->waiting.push_back(waits);
    }
    Event event = state_->event;
    // What the stream was given since then is waited for, too.
    if (!event.recorded()) event.record(state_->stream);
    waits.wait(event);
  } catch (const Error&) {
    const std::lock_guard lock(state_->mutex);
    if (!state_->error) throw;
  }
  const std::lock_guard lock(state_->mutex);
  if (state_->error) interop::fail(waits, *state_->error);
}

void Work::synchronize(Timeout timeout) const {
  if (!state_) return;
  constexpr const char* kOp = "dist::Work::synchronize";
  if (timeout.count() < 0) throw Error(ErrorCode::invalid_argument, kOp, fmt::format("timeout must not be negative, got {} ms", timeout.count()));
  if (Progress::is_this_thread()) throw Error(ErrorCode::invalid_argument, kOp, "functions of Work::on_done() must not wait, got one that does");
  state_->note_wait();
  std::unique_lock lock(state_->mutex);
  auto has_ended = [&] { return state_->has_ended(); };
  // The call itself ends by its own time-out.
  if (timeout.count() == 0)
    state_->changed.wait(lock, has_ended);
  else if (!state_->changed.wait_for(lock, timeout, has_ended))
    throw Error(ErrorCode::timed_out, kOp, fmt::format("call {} has not ended in {} ms", state_->sequence, timeout.count()));
  if (state_->error) throw Error(*state_->error);
  lock.unlock();
  state_->stream.synchronize();
}

std::uint64_t Work::sequence() const noexcept {
  if (!state_) return 0;
  const std::lock_guard lock(state_->mutex);
  return state_->sequence;
}

int Work::source() const {
  if (status() != Status::done || !state_) throw Error(ErrorCode::invalid_argument, "dist::Work::source", "the call must be done, got one that is not");
  const std::lock_guard lock(state_->mutex);
  return state_->source;
}

double Work::milliseconds() const {
  if (status() != Status::done || !state_) throw Error(ErrorCode::invalid_argument, "dist::Work::milliseconds", "the call must be done, got one that is not");
  const std::lock_guard lock(state_->mutex);
  return state_->milliseconds;
}

void Work::on_done(std::function<void(Status)> function) const {
  if (!function) throw Error(ErrorCode::invalid_argument, "dist::Work::on_done", "the function must be given, got an empty one");
  if (!state_) return function(Status::done);
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->has_ended()) {
      state_->hooks.push_back(std::move(function));
      return;
    }
  }
  function(status());
}

}}}  // namespace clutch::v0::dist
