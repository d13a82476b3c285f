// SPDX-License-Identifier: Apache-2.0
#include "runtime/recorder.hpp"

#include "runtime/op_name.hpp"
#include "runtime/stream.hpp"

#include <fmt/format.h>

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

/// Recordings underway. Calls on streams and memory that are not recorded ask them for permission.
struct Underway {
  std::mutex mutex;
  std::vector<Recording*> all;
  std::atomic<int> count{0};
};
Underway& underway() {
  static auto* all = new Underway;
  return *all;
}

thread_local int t_exempt = 0;

/// First recording that forbids this thread's call, and its reason; null if none forbids it.
std::pair<std::shared_ptr<Recording>, std::string> forbidding(Beside what) {
  Underway& now = underway();
  if (now.count.load(std::memory_order_relaxed) == 0 || t_exempt > 0) [[likely]]
    return {};
  std::lock_guard lock(now.mutex);
  for (Recording* recording : now.all)
    if (std::string why = recording->forbids(what); !why.empty())
      if (auto broken = recording->weak_from_this().lock()) return {std::move(broken), std::move(why)};
  return {};
}

}  // namespace

RecordingExempt::RecordingExempt() noexcept { ++t_exempt; }
RecordingExempt::~RecordingExempt() { --t_exempt; }

void Recording::begin_underway() {
  std::lock_guard lock(underway().mutex);
  underway().all.push_back(this);
  underway().count.fetch_add(1);
}

void Recording::end_underway() noexcept {
  std::lock_guard lock(underway().mutex);
  if (std::erase(underway().all, this) > 0) underway().count.fetch_sub(1);
}

HostRead::HostRead(StreamImpl& stream, std::string_view call, const Tensor* tensor, void* destination)
    : call_(OpName::or_else(call)), tensor_(tensor), destination_(destination) {
  const std::shared_ptr<Recording> recording = stream.recording();
  if (!recording || !recording->reads()) [[likely]]
    return;
  HostReads* reads = recording->reads();
  const HostReads::Answer answer = reads->begin(call_, tensor, destination);
  supplied_ = answer == HostReads::Answer::supplied;
  if (answer == HostReads::Answer::run) reads_ = reads;
}

HostRead::~HostRead() {
  if (reads_) reads_->failed(call_);
}

void HostRead::done() {
  if (HostReads* reads = std::exchange(reads_, nullptr)) reads->end(tensor_, destination_);
}

bool illegal_on(StreamImpl& stream, std::string_view call) {
  std::shared_ptr<Recording> recording = stream.recording();
  if (!recording) check_outside_branches(call, stream.runtime());
  return recording && recording->illegal(call, fmt::format("the stream must run its work, got stream {}, which is capturing", stream.id()));
}

bool illegal_beside(std::string_view call) {
  auto [broken, why] = forbidding(Beside::waiting);
  return broken && broken->illegal(call, why);
}

void check_allocation_beside(std::string_view op) {
  if (auto [broken, why] = forbidding(Beside::allocation); broken) broken->illegal(op, why);
}

bool recording_underway() noexcept { return underway().count.load(std::memory_order_relaxed) > 0; }

void run_behind(const Stream& stream, const Event& made) {
  if (auto recording = stream.impl()->recording())
    recording->follow(made);
  else
    stream.wait(made);
}

}}}  // namespace clutch::v0::detail
