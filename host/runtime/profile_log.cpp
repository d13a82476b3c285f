// SPDX-License-Identifier: Apache-2.0
#include "runtime/profile_log.hpp"

#include "runtime/stream.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace clutch { inline namespace v0 { namespace detail {

ProfileLog::ProfileLog(const ProfileLogOptions& of) : options(of), capacity_((std::max<std::size_t>(of.max_events, 1) + kChunk - 1) / kChunk * kChunk) {}

std::uint64_t ProfileLog::add(const ProfileRecord& record) {
  const std::uint64_t number = written_;
  // Chunks fill one after another; a full log overwrites the oldest.
  if (number % capacity_ / kChunk == chunks_.size()) chunks_.push_back(std::make_unique<ProfileRecord[]>(kChunk));
  slot(number) = record;
  ++written_;
  return number;
}

ProfileRecord* ProfileLog::find(std::uint64_t number) noexcept { return number >= first() && number < written_ ? &slot(number) : nullptr; }

const char* ProfileLog::keep(std::string_view text) { return texts_.emplace(text).first->c_str(); }

void ProfileLog::add_pending(std::uint64_t stream, std::uint64_t number, ClEvent event, ClEvent before, std::uint64_t host_begin) {
  pending_[stream].entries.push_back({number, std::move(event), std::move(before), host_begin});
  ++pending_count_;
}

void ProfileLog::Clock::add(const Sample& sample) {
  constexpr std::size_t kMost = 4096;
  if (!samples.empty() && sample.host < samples.back().host + spacing) {
    samples.back().offset = std::max(samples.back().offset, sample.offset);
    return;
  }
  if (samples.size() == kMost) {
    for (std::size_t i = 0; i < kMost / 2; ++i) samples[i] = samples[2 * i];
    samples.resize(kMost / 2);
    spacing *= 2;
  }
  samples.push_back(sample);
}

void ProfileLog::Clock::settle() {
  constexpr double kDrift = 200e-6;  // clocks differ less in rate
  constexpr double kSlack = 1000;    // ns
  // The least that the distance must be at each sample, by those before and behind it.
  std::vector<double> least(samples.size());
  auto pass = [&](auto begin, auto end, auto bound) {
    double known = -std::numeric_limits<double>::infinity(), at = 0;
    for (; begin != end; ++begin, ++bound) {
      const auto host = static_cast<double>(begin->host);
      known = std::max(known - kDrift * std::abs(host - at), static_cast<double>(begin->offset));
      at = host;
      *bound = std::max(*bound, known);
    }
  };
  std::fill(least.begin(), least.end(), -std::numeric_limits<double>::infinity());
  pass(samples.begin(), samples.end(), least.begin());
  pass(samples.rbegin(), samples.rend(), least.rbegin());
  std::size_t kept = 0;
  for (std::size_t i = 0; i < samples.size(); ++i)
    if (static_cast<double>(samples[i].offset) >= least[i] - kSlack) samples[kept++] = samples[i];
  samples.resize(kept);
}

std::uint64_t ProfileLog::Clock::to_host(std::uint64_t device) const {
  const auto host = [&](const Sample& s) { return device + static_cast<std::uint64_t>(s.offset); };
  const auto after = std::partition_point(samples.begin(), samples.end(), [&](const Sample& s) { return s.host < host(s); });
  if (after == samples.begin()) return host(*after);
  if (after == samples.end()) return host(samples.back());
  // Both clocks run evenly, but not alike: between samples the offset changes evenly.
  const Sample& left = *(after - 1);
  const double share = static_cast<double>(host(left) - left.host) / static_cast<double>(after->host - left.host);
  return host(left) + static_cast<std::uint64_t>(static_cast<std::int64_t>(share * static_cast<double>(after->offset - left.offset)));
}

bool ProfileLog::read(Pending& pending) {
  auto time = [](const ClEvent& event, cl_profiling_info what) {
    cl_ulong ns = 0;
    return clGetEventProfilingInfo(event.get(), what, sizeof ns, &ns, nullptr) == CL_SUCCESS ? static_cast<std::uint64_t>(ns) : 0;
  };
  cl_int status = CL_COMPLETE;
  if (clGetEventInfo(pending.event.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr) == CL_SUCCESS && status > CL_COMPLETE)
    return false;
  const std::uint64_t queued = time(pending.event, CL_PROFILING_COMMAND_QUEUED), submitted = time(pending.event, CL_PROFILING_COMMAND_SUBMIT);
  std::uint64_t begin = time(pending.event, CL_PROFILING_COMMAND_START), end = time(pending.event, CL_PROFILING_COMMAND_END);
  if (pending.before) begin = time(pending.before, CL_PROFILING_COMMAND_END);
  ProfileRecord* record = find(pending.number);
  if (!record) return true;
  if (begin == 0 || end < begin || queued == 0) {
    ++untimed;
    return true;
  }
  record->begin = begin, record->end = end, record->queued = queued, record->submitted = std::max(submitted, queued);
  record->finished = true;
  // The command was queued while the host was in the call that enqueues, so its stamp is no earlier than the call's begin.
  clocks_[record->device].add({pending.host_begin, static_cast<std::int64_t>(pending.host_begin - queued)});
  return true;
}

std::size_t ProfileLog::drain(std::size_t most) {
  const std::uint64_t began = host_now();
  const std::size_t before = pending_count_;
  std::size_t left = most == 0 ? std::numeric_limits<std::size_t>::max() : most;
  for (auto& [stream, queue] : pending_) {
    while (left > 0 && queue.first < queue.entries.size() && read(queue.entries[queue.first])) {
      queue.entries[queue.first++] = {};
      --pending_count_, --left;
    }
    if (queue.first == queue.entries.size()) {
      queue.entries.clear();
      queue.first = 0;
    } else if (queue.first > 4096) {
      queue.entries.erase(queue.entries.begin(), queue.entries.begin() + static_cast<std::ptrdiff_t>(queue.first));
      queue.first = 0;
    }
  }
  drain_ns += host_now() - began;
  drain_at_ = pending_count_ + 256;
  return before - pending_count_;
}

void ProfileLog::wait() {
  // The last command of a stream first: the others are then done, but where a driver tells so a little later, or runs out of order.
  for (auto& [stream, queue] : pending_)
    if (queue.first < queue.entries.size()) {
      cl_event last = queue.entries.back().event.get();
      clWaitForEvents(1, &last);
    }
  drain(0);
  for (auto& [stream, queue] : pending_)
    for (; queue.first < queue.entries.size(); ++queue.first) {
      Pending& entry = queue.entries[queue.first];
      cl_event event = entry.event.get();
      clWaitForEvents(1, &event);
      if (!read(entry)) break;
      --pending_count_;
    }
}

void ProfileLog::clear() {
  cleared_ = written_;
  pending_.clear();
  pending_count_ = 0;
  drain_ns = untimed = 0;
  start = host_now();
}

void ProfileLog::finish(std::uint64_t now) {
  // Scopes may have ended since `now` was read: what is still open around them ends no earlier.
  for (std::uint64_t i = 0; i < size(); ++i)
    if (!is_command(at(i).kind)) now = std::max(now, at(i).end);
  stop = now;
  untimed += pending_count_;
  pending_.clear();
  pending_count_ = 0;
  for (auto& [device, clock] : clocks_) clock.settle();
  for (std::uint64_t i = 0; i < size(); ++i) {
    ProfileRecord& r = at(i);
    if (!is_command(r.kind)) {
      if (r.end == 0) r.end = std::max(now, r.begin);
      continue;
    }
    if (!r.finished) continue;
    auto clock = clocks_.find(r.device);
    if (clock == clocks_.end()) {
      r.finished = false;
      continue;
    }
    const std::uint64_t begin = clock->second.to_host(r.begin);
    r.end = std::max(begin, clock->second.to_host(r.end));  // so that the order of all times stays
    r.queued = begin - std::min(begin, r.begin - std::min(r.begin, r.queued));
    r.submitted = begin - std::min(begin, r.begin - std::min(r.begin, r.submitted));
    r.begin = begin;
  }
}

}}}  // namespace clutch::v0::detail
