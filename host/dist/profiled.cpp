// SPDX-License-Identifier: Apache-2.0
#include "dist/profiled.hpp"
#include "dist/flight_dump.hpp"
#include "dist/group.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <mutex>
#include <utility>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

namespace {

thread_local ProfiledCall* t_call = nullptr;

/// PyTorch's name of a collective, and that of NCCL's kernels.
struct Names {
  std::string_view torch, kernel;
};

Names names_of(CallKind kind) {
  switch (kind) {
    case CallKind::all_reduce: return {"allreduce", "AllReduce"};
    case CallKind::reduce: return {"reduce", "Reduce"};
    case CallKind::reduce_scatter: return {"_reduce_scatter_base", "ReduceScatter"};
    case CallKind::all_gather: return {"_allgather_base", "AllGather"};
    case CallKind::gather: return {"gather", "Gather"};
    case CallKind::scatter: return {"scatter", "Scatter"};
    case CallKind::broadcast: return {"broadcast", "Broadcast"};
    case CallKind::all_to_all: return {"all_to_all", "AllToAll"};
    case CallKind::reduce_scatter_v: return {"reduce_scatter", "ReduceScatter"};
    case CallKind::all_gather_v: return {"allgather", "AllGather"};
    case CallKind::gather_v: return {"gather", "Gather"};
    case CallKind::scatter_v: return {"scatter", "Scatter"};
    case CallKind::all_to_all_v: return {"all_to_allv", "AllToAllV"};
    case CallKind::barrier: return {"barrier", "Barrier"};
    case CallKind::split: return {"split", "Split"};
    case CallKind::symmetric: return {"rendezvous", "Rendezvous"};
    case CallKind::wait_signal: return {"wait_signal", "WaitSignal"};
    case CallKind::optimizer_step: return {"optimizer_step", "OptimizerStep"};
    case CallKind::send: return {"send", "Send"};
    case CallKind::receive: return {"recv", "Recv"};
  }
  return {"call", "Call"};
}

std::string range_name(const CallPlan& plan) { return fmt::format("clutch:{}", name(plan.header.kind)); }

/// "[0, 1]", as PyTorch writes lists: texts.
template <class T>
std::string list(const T& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

/// From one rank to the next; -1: not the same for all.
std::int64_t stride_of(const std::vector<int>& ranks) {
  if (ranks.size() < 2) return 1;
  const int stride = ranks[1] - ranks[0];
  for (std::size_t i = 2; i < ranks.size(); ++i)
    if (ranks[i] - ranks[i - 1] != stride) return -1;
  return stride;
}

profiler::RangeFacts facts_of(const GroupImpl& group, const CallPlan& plan, const CallHeader& header) {
  const bool is_pair = header.kind == CallKind::send || header.kind == CallKind::receive;
  const std::vector<int>& ranks = group.global_ranks();
  const auto numel = [](const Tensor& x) { return x.defined() ? x.numel() : std::int64_t{0}; };
  const Names names = names_of(header.kind);
  profiler::RangeFacts facts{.arguments = {}, .op_name = "record_param_comms", .command_name = fmt::format("ncclKernel_clutch_{}", names.kernel)};
  if (reduces(header.kind)) {
    std::string op(name(header.op));
    op[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(op[0])));
    facts.command_name += '_' + op;
  }
  if (plan.in.defined() || plan.out.defined()) facts.command_name += fmt::format("_{}", name(header.dtype));
  auto add = [&](const char* key, profiler::RangeFacts::Value value) { facts.arguments.emplace_back(key, std::move(value)); };
  auto text = [](std::string_view x) { return std::string(x); };
  const std::string_view dtype = torch_name(header.dtype);
  add("Collective name", text(names.torch));
  add("dtype", text(dtype.empty() ? name(header.dtype) : dtype));
  add("In msg nelems", numel(plan.in)), add("Out msg nelems", numel(plan.out));
  const auto n = static_cast<std::ptrdiff_t>(plan.rows.size() / 2);
  const bool has_splits = header.kind == CallKind::all_to_all_v && n > 0;
  const std::span<const std::int64_t> rows(plan.rows);
  add("In split size", list(rows.first(has_splits ? static_cast<std::size_t>(n) : 0)));
  add("Out split size", list(rows.subspan(has_splits ? static_cast<std::size_t>(n) : rows.size())));
  add("Global rank start", std::int64_t{ranks.front()}), add("Global rank stride", stride_of(ranks));
  add("Group size", std::int64_t{group.size()}), add("Process Group Name", group.facts().path), add("Process Group Description", group.name());
  add("Process Group Ranks", list(ranks)), add("Rank", std::int64_t{group.rank()});
  if (is_pair && plan.peer != kAnyRank) {
    const std::int64_t me = group.rank(), peer = plan.peer;
    add("Src Rank", header.kind == CallKind::send ? me : peer), add("Dst Rank", header.kind == CallKind::send ? peer : me);
  }
  add("Seq", static_cast<std::int64_t>(header.sequence)), add("Is asynchronized op", std::int64_t{plan.async});
  // What PyTorch has no names for.
  if (reduces(header.kind)) add("Reduction", text(name(header.op)));
  if (header.root >= 0) add("Root", std::int64_t{header.root});
  if (is_pair) add("Tag", std::int64_t{plan.tag});
  add("Algorithm", text(name(header.algorithm())));
  add("Source", fmt::format("{}:{}", plan.where.file, plan.where.line));
  return facts;
}

}  // namespace

void ProfiledCall::begin(const CallPlan& plan) {
  range_.emplace(range_name(plan));
  plan_ = &plan;
  outer_ = std::exchange(t_call, this);
}

void ProfiledCall::end() noexcept { t_call = outer_; }

void ProfiledCall::tell(const GroupImpl& group, const CallPlan& plan, const CallHeader& header) {
  if (t_call != nullptr && t_call->plan_ == &plan)
    t_call->range_->set_facts(facts_of(group, plan, header));
  else
    const profiler::Range instant(range_name(plan), facts_of(group, plan, header));
}

ProfiledLaunch::ProfiledLaunch(const GroupImpl& group, const CallPlan& plan, const CallHeader& header) {
  if (profiler::recording()) [[unlikely]]
    range_.emplace(range_name(plan), facts_of(group, plan, header));
}

void tell_profiles(const GroupImpl& group) {
  constexpr std::size_t kMostGroups = 256;
  if (!group.facts().peers) return;
  struct Told {
    std::mutex mutex;
    int rank = 0, ranks = 0, groups = 0;
    std::string list;  ///< of groups
  };
  static auto& told = *new Told;
  const std::lock_guard lock(told.mutex);
  const std::vector<int>& ranks = group.global_ranks();
  // A group of open() is the world.
  if (told.ranks == 0) told.rank = group.rank(), told.ranks = group.size();
  if (static_cast<std::size_t>(++told.groups) <= kMostGroups)
    told.list += fmt::format(R"({}{{"pg_name": {}, "pg_desc": {}, "backend_config": "clutch", "pg_size": {}, "ranks": [{}]}})", told.list.empty() ? "" : ", ",
                             nlohmann::json(group.facts().path).dump(),
                             nlohmann::json(group.name()).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), ranks.size(), fmt::join(ranks, ", "));
  // HolisticTraceAnalysis finds the rank by the space before it.
  profiler::set_trace_member("distributedInfo", fmt::format(R"({{"backend": "clutch", "rank": {}, "world_size": {}, "pg_count": {}, "pg_config": [{}]}})",
                                                            told.rank, told.ranks, told.groups, told.list));
}

}}}}  // namespace clutch::v0::dist::detail
