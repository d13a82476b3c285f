// SPDX-License-Identifier: Apache-2.0
#include "dist/hooks.hpp"
#include "dist/group_calls.hpp"

#include <utility>

namespace clutch { inline namespace v0 { namespace dist {

namespace detail {

namespace {

/// Runs a function unless its Hook has ended. What it throws is lost.
template <class F>
void run(HookState& state, F&& f) noexcept {
  try {
    const std::lock_guard lock(state.running);
    if (!state.has_ended) f();
  } catch (...) {
    return;
  }
}

}  // namespace

void Hooks::add(const std::shared_ptr<HookState>& state) {
  state->of = shared_from_this();
  const std::lock_guard lock(mutex_);
  states_.push_back(state);
  count_ = states_.size();
}

void Hooks::remove(HookState& state) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(states_, [&](const auto& other) { return other.get() == &state; });
    count_ = states_.size();
  }
  const std::lock_guard lock(state.running);
  state.has_ended = true;
}

std::vector<std::shared_ptr<HookState>> Hooks::all() const {
  const std::lock_guard lock(mutex_);
  return states_;
}

void Hooks::called(const CallInfo& info) noexcept {
  for (const auto& state : all())
    if (state->on_call) run(*state, [&] { state->on_call(info); });
}

void Hooks::done(const CallInfo& info, Work::Status status) noexcept {
  for (const auto& state : all())
    if (state->on_done) run(*state, [&] { state->on_done(info, status); });
}

void Hooks::aborted(HookState& state) noexcept {
  if (!state.on_abort) return;
  run(state, [&] {
    if (!std::exchange(state.is_told, true)) state.on_abort();
  });
}

void Hooks::aborted() noexcept {
  for (const auto& state : all()) aborted(*state);
}

}  // namespace detail

using namespace detail;

Hook::~Hook() { remove(); }

Hook& Hook::operator=(Hook&& other) noexcept {
  if (this == &other) return *this;
  remove();
  state_ = std::move(other.state_);
  return *this;
}

void Hook::remove() noexcept {
  if (const std::shared_ptr<HookState> state = std::exchange(state_, nullptr)) state->of->remove(*state);
}

namespace {

std::shared_ptr<HookState> added(const GroupCalls& call, bool is_given, const std::shared_ptr<HookState>& state) {
  call.check(is_given, ErrorCode::invalid_argument, "the function must be given, got an empty one");
  call.impl().hooks().add(state);
  return state;
}

}  // namespace

Hook Group::on_call(std::function<void(const CallInfo&)> function) const {
  const auto state = std::make_shared<HookState>();
  state->on_call = std::move(function);
  return Hook(added({"dist::Group::on_call", *this}, state->on_call != nullptr, state));
}

Hook Group::on_done(std::function<void(const CallInfo&, Work::Status)> function) const {
  const auto state = std::make_shared<HookState>();
  state->on_done = std::move(function);
  return Hook(added({"dist::Group::on_done", *this}, state->on_done != nullptr, state));
}

Hook Group::on_abort(std::function<void()> function) const {
  const auto state = std::make_shared<HookState>();
  state->on_abort = std::move(function);
  Hook hook(added({"dist::Group::on_abort", *this}, state->on_abort != nullptr, state));
  if (failed()) Hooks::aborted(*state);
  return hook;
}

}}}  // namespace clutch::v0::dist
