// SPDX-License-Identifier: Apache-2.0
// Why a stream ran nothing between two of its commands.
#include "profile/profile.hpp"

#include <algorithm>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

using profiler::IdleGap;

/// What the threads of the host did, and the marks of events.
class HostActivity {
 public:
  explicit HostActivity(const Profile& profile) : profile_(profile) {
    for (std::uint32_t i : profile.order) {
      const ProfileRecord& r = profile.record(i);
      if (r.kind == RecordKind::op || r.kind == RecordKind::host_task) {
        // Outermost ones alone, which do not overlap.
        std::vector<std::uint32_t>& mine = ops_[r.thread];
        if (mine.empty() || profile.record(mine.back()).end <= r.begin) mine.push_back(i);
      }
      if (r.kind == RecordKind::sync) syncs_[r.thread].push_back(i);
      if (r.kind == RecordKind::mark) marks_[r.global].push_back(i);
      if (is_work(r)) by_stream_[r.stream].push_back(i);
      if (r.kind == RecordKind::call) callers_.emplace(r.id, r.thread);
    }
    for (auto& [stream, list] : by_stream_)
      std::sort(list.begin(), list.end(), [&](std::uint32_t a, std::uint32_t b) { return profile.record(a).id < profile.record(b).id; });
  }

  struct Busy {
    std::uint64_t ns = 0;
    std::string_view most;  ///< name of the longest
  };
  Busy ops(std::uint32_t thread, std::uint64_t begin, std::uint64_t end) const { return busy(ops_, thread, begin, end); }
  Busy syncs(std::uint32_t thread, std::uint64_t begin, std::uint64_t end) const { return busy(syncs_, thread, begin, end); }

  std::uint32_t thread_of(const ProfileRecord& command) const {
    auto found = callers_.find(command.id);
    return found == callers_.end() ? command.thread : found->second;
  }

  /// Name of the last command that the event of a wait marks; empty if it is not known.
  std::string_view marked(const ProfileRecord& wait) const {
    auto marks = marks_.find(wait.global);
    if (marks == marks_.end()) return {};
    const ProfileRecord* mark = nullptr;  // the event's last one before the wait: its memory may have been another event's
    for (std::uint32_t i : marks->second)
      if (profile_.record(i).id < wait.id) mark = &profile_.record(i);
    auto list = mark ? by_stream_.find(mark->stream) : by_stream_.end();
    if (list == by_stream_.end()) return {};
    auto after = std::partition_point(list->second.begin(), list->second.end(), [&](std::uint32_t i) { return profile_.record(i).id < mark->id; });
    return after == list->second.begin() ? std::string_view() : trace_name(profile_.record(*(after - 1)));
  }

 private:
  using ByThread = std::map<std::uint32_t, std::vector<std::uint32_t>>;
  Busy busy(const ByThread& all, std::uint32_t thread, std::uint64_t begin, std::uint64_t end) const {
    Busy result;
    auto list = all.find(thread);
    if (list == all.end()) return result;
    auto at = std::partition_point(list->second.begin(), list->second.end(), [&](std::uint32_t i) { return profile_.record(i).end <= begin; });
    std::uint64_t longest = 0;
    for (; at != list->second.end() && profile_.record(*at).begin < end; ++at) {
      const ProfileRecord& r = profile_.record(*at);
      const std::uint64_t ns = std::min(r.end, end) - std::max(r.begin, begin);
      result.ns += ns;
      if (ns > longest) longest = ns, result.most = r.name;
    }
    return result;
  }
  const Profile& profile_;
  ByThread ops_, syncs_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> marks_;
  std::map<std::uint64_t, std::vector<std::uint32_t>> by_stream_;
  std::unordered_map<std::uint64_t, std::uint32_t> callers_;
};

/// The cause that fills most of the gap from `begin` to the begin of `next`; `wait`: the stream's wait between, or null.
void classify(const HostActivity& host, const ProfileRecord& next, const ProfileRecord* wait, std::uint64_t begin, IdleGap& gap) {
  const std::uint64_t end = next.begin, queued = std::clamp(next.queued, begin, end);
  const std::uint64_t waited = wait ? std::clamp(wait->end, queued, end) : queued;
  const std::uint64_t of_host = queued - begin, of_event = waited - queued, of_launch = end - waited;
  // Where the wait itself was enqueued in time, the host may have been late with the next command and lost nothing by it.
  const std::uint64_t hidden = wait && wait->queued < queued ? std::clamp(wait->end, begin, queued) - begin : 0;
  if (of_event + hidden >= std::max(of_host - hidden, of_launch) && of_event + hidden > 0) {
    gap.cause = IdleGap::Cause::event;
    gap.wait_stream = wait->graph;
    gap.waits_for = host.marked(*wait);
    return;
  }
  if (of_launch > of_host) {
    gap.cause = IdleGap::Cause::launch;
    return;
  }
  const std::uint32_t thread = host.thread_of(next);
  const HostActivity::Busy ops = host.ops(thread, begin, queued), syncs = host.syncs(thread, begin, queued);
  const std::uint64_t working = ops.ns - std::min(ops.ns, syncs.ns);
  gap.cause = working > of_host / 2 ? IdleGap::Cause::host_bound : IdleGap::Cause::queue_empty;
  gap.waits_for = gap.cause == IdleGap::Cause::host_bound ? ops.most : syncs.most;
}

}  // namespace

std::vector<IdleGap> profile_gaps(const Profile& profile, double least_us) {
  const HostActivity host(profile);
  struct Last {
    std::uint64_t end = 0;
    const ProfileRecord* command = nullptr;
    const ProfileRecord* wait = nullptr;
  };
  std::map<std::pair<std::uint16_t, std::uint64_t>, Last> streams;
  std::vector<IdleGap> gaps;
  for (std::uint32_t i : profile.order) {
    const ProfileRecord& r = profile.record(i);
    if (!is_timed(r)) continue;
    Last& last = streams[{r.device, r.stream}];
    if (r.kind == RecordKind::wait) {
      last.wait = &r;
      continue;
    }
    if (last.command && r.begin > last.end && static_cast<double>(r.begin - last.end) >= least_us * 1e3) {
      IdleGap gap{.start_ns = profile.since_start(last.end),
                  .end_ns = profile.since_start(r.begin),
                  .device_index = r.device,
                  .stream = r.stream,
                  .before = std::string(trace_name(*last.command)),
                  .after = std::string(trace_name(r))};
      classify(host, r, last.wait, last.end, gap);
      gaps.push_back(std::move(gap));
    }
    last.wait = nullptr;
    if (!last.command || r.end > last.end) last.end = r.end;
    last.command = &r;
  }
  std::stable_sort(gaps.begin(), gaps.end(), [](const IdleGap& a, const IdleGap& b) { return a.start_ns < b.start_ns; });
  return gaps;
}

}}}  // namespace clutch::v0::detail
