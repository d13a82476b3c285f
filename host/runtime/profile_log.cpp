// SPDX-License-Identifier: Apache-2.0
#include "runtime/profile_log.hpp"

#include "runtime/stream.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <type_traits>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

// Chunks of former logs. New ones cost page faults, and large blocks that come and go make malloc() merge the small ones that it keeps at hand.
std::array<std::atomic<void*>, 8> g_spare{};

void* take_spare() noexcept {
  for (std::atomic<void*>& place : g_spare)
    if (place.load(std::memory_order_relaxed))
      if (void* spare = place.exchange(nullptr)) return spare;
  return nullptr;
}

/// False if there are enough.
bool give_spare(void* chunk) noexcept {
  for (std::atomic<void*>& place : g_spare)
    if (void* none = nullptr; place.compare_exchange_strong(none, chunk)) return true;
  return false;
}

}  // namespace

ProfileLog::ProfileLog(const ProfileLogOptions& of) : options(of), capacity_((std::max<std::size_t>(of.max_events, 1) + kChunk - 1) / kChunk * kChunk) {}

ProfileLog::~ProfileLog() {
  for (std::unique_ptr<RecordChunk>& chunk : chunks_)
    if (give_spare(chunk.get())) (void)chunk.release();
}

ProfileRecord& ProfileLog::append() { return *std::construct_at(next_place()); }

ProfileRecord* ProfileLog::next_place() {
  // Chunks fill one after another; a full log overwrites the oldest.
  if (next_ / kChunk == chunks_.size()) {
    std::unique_ptr<RecordChunk> chunk(static_cast<RecordChunk*>(take_spare()));
    if (!chunk) chunk = std::make_unique_for_overwrite<RecordChunk>();
    chunks_.push_back(std::move(chunk));
  }
  static_assert(std::is_trivially_copyable_v<ProfileRecord> && std::is_trivially_destructible_v<ProfileRecord>);
  ProfileRecord* const record = &place(next_);
  next_ = next_ + 1 == capacity_ ? 0 : next_ + 1;
  ++written_;
  return record;
}

std::uint64_t ProfileLog::add(const ProfileRecord& record) {
  std::construct_at(next_place(), record);
  return last();
}

ProfileRecord* ProfileLog::find(std::uint64_t number) noexcept { return number >= first() && number < written_ ? &slot(number) : nullptr; }

const char* ProfileLog::keep(std::string_view text) { return texts_.emplace(text).first->c_str(); }

std::uint64_t ProfileLog::keep_operands(std::span<const ProfiledOperand> operands) {
  std::string key;
  auto add = [&](std::int64_t value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); };
  for (const ProfiledOperand& o : operands) {
    add(static_cast<std::int64_t>(o.dtype));
    add(o.sizes.rank());
    for (const Dims* dims : {&o.sizes, &o.strides})
      for (const std::int64_t n : *dims) add(n);
  }
  if (const auto known = operand_numbers_.find(key); known != operand_numbers_.end()) return known->second;
  std::string shapes;
  constexpr std::size_t kMost = 1000;
  for (const ProfiledOperand& o : operands)
    if (shapes.size() < kMost) shapes += (shapes.empty() ? "" : ", ") + to_string(o.sizes);
  operands_.push_back({{operands.begin(), operands.end()}, keep(shapes)});
  return operand_numbers_.emplace(std::move(key), operands_.size()).first->second;
}

std::uint64_t ProfileLog::keep_facts(ProfiledFacts facts) {
  if (facts_.size() == capacity_) facts_.pop_front(), ++facts_dropped_;
  facts_.push_back(std::move(facts));
  return facts_dropped_ + facts_.size();
}

const ProfiledFacts* ProfileLog::facts(std::uint64_t number) const noexcept {
  return number > facts_dropped_ && number <= facts_dropped_ + facts_.size() ? &facts_[static_cast<std::size_t>(number - facts_dropped_ - 1)] : nullptr;
}

void ProfileLog::add_pending(std::uint64_t stream, std::uint64_t number, ClEvent event, ClEvent before, std::uint64_t host_begin) {
  pending_[stream].push_back({number, std::move(event), std::move(before), host_begin});
  ++pending_count_;
}

void ProfileLog::Clock::add(const Sample& sample) {
  constexpr std::size_t kMost = 4096;
  if (!samples.empty() && sample.host < samples.back().host + spacing) {
    ++commands;
    samples.back().offset = std::max(samples.back().offset, sample.offset);
    return;
  }
  if (samples.size() == kMost) {
    for (std::size_t i = 0; i < kMost / 2; ++i) samples[i] = samples[2 * i];
    samples.resize(kMost / 2);
    spacing *= 2;
  }
  samples.push_back(sample);
  commands = 1;
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
  // A command that is not done has no end: one call then tells both.
  const std::uint64_t end = time(pending.event, CL_PROFILING_COMMAND_END);
  cl_int status = CL_COMPLETE;
  if (end == 0 && clGetEventInfo(pending.event.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr) == CL_SUCCESS && status > CL_COMPLETE)
    return false;
  const std::uint64_t begin = pending.before ? time(pending.before, CL_PROFILING_COMMAND_END) : time(pending.event, CL_PROFILING_COMMAND_START);
  ProfileRecord* record = find(pending.number);
  if (!record) return true;
  Clock& clock = clocks_[record->device];
  const bool samples = clock.wants(pending.host_begin);
  const std::uint64_t queued = samples ? time(pending.event, CL_PROFILING_COMMAND_QUEUED) : begin;
  if (begin == 0 || end < begin || queued == 0) {
    ++untimed;
    return true;
  }
  record->begin = begin, record->end = end, record->queued = pending.host_begin;
  record->finished = true;
  // The command was queued while the host was in the call that enqueues, so its stamp is no earlier than the call's begin.
  if (samples) clock.add({pending.host_begin, static_cast<std::int64_t>(pending.host_begin - queued)});
  return true;
}

std::size_t ProfileLog::drain(std::size_t most) {
  const std::uint64_t began = host_now();
  const std::size_t before = pending_count_;
  std::size_t left = most == 0 ? std::numeric_limits<std::size_t>::max() : most;
  for (auto& [stream, queue] : pending_) {
    while (left > 0 && !queue.empty() && read(queue.front())) {
      queue.pop_front();
      --pending_count_, --left;
    }
  }
  drain_ns += host_now() - began;
  // Where the oldest is not done, asking again soon would tell the same.
  drain_at_ = left > 0 ? pending_count_ + 256 : 0;
  return before - pending_count_;
}

void ProfileLog::wait() {
  // The last command of a stream first: the others are then done, but where a driver tells so a little later, or runs out of order.
  for (auto& [stream, queue] : pending_)
    if (!queue.empty()) {
      cl_event last = queue.back().event.get();
      clWaitForEvents(1, &last);
    }
  drain(0);
  for (auto& [stream, queue] : pending_)
    for (; !queue.empty(); queue.pop_front(), --pending_count_) {
      cl_event event = queue.front().event.get();
      clWaitForEvents(1, &event);
      if (!read(queue.front())) break;
    }
}

void ProfileLog::clear() {
  cleared_ = written_;
  pending_.clear();
  pending_count_ = 0;
  drain_ns = untimed = 0;
  facts_dropped_ += facts_.size(), facts_.clear();
  start = host_now();
}

void ProfileLog::end(std::uint64_t now) {
  stop = now;
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  wall_start = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count()) - (host_now() - start);
  untimed += pending_count_;
  pending_.clear();
  pending_count_ = 0;
}

void ProfileLog::finish() {
  // Scopes may have ended since the time of the end was read: what is still open around them ends no earlier.
  for (std::uint64_t i = 0; i < size(); ++i)
    if (!is_command(at(i).kind)) stop = std::max(stop, at(i).end);
  for (auto& [device, clock] : clocks_) clock.settle();
  for (std::uint64_t i = 0; i < size(); ++i) {
    ProfileRecord& r = at(i);
    if (!is_command(r.kind)) {
      if (r.end == 0) r.end = std::max(stop, r.begin);
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
    r.queued = std::min(begin, r.queued);
    r.begin = begin;
  }
}

}}}  // namespace clutch::v0::detail
