// SPDX-License-Identifier: Apache-2.0
#include "dist/flight.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

namespace {

FlightOp op_of(CallKind kind) {
  switch (kind) {
    case CallKind::all_reduce: return FlightOp::all_reduce;
    case CallKind::reduce: return FlightOp::reduce;
    case CallKind::reduce_scatter: return FlightOp::reduce_scatter;
    case CallKind::all_gather: return FlightOp::all_gather;
    case CallKind::gather: return FlightOp::gather;
    case CallKind::scatter: return FlightOp::scatter;
    case CallKind::broadcast: return FlightOp::broadcast;
    case CallKind::all_to_all: return FlightOp::all_to_all;
    case CallKind::reduce_scatter_v: return FlightOp::reduce_scatter_v;
    case CallKind::all_gather_v: return FlightOp::all_gather_v;
    case CallKind::gather_v: return FlightOp::gather_v;
    case CallKind::scatter_v: return FlightOp::scatter_v;
    case CallKind::all_to_all_v: return FlightOp::all_to_all_v;
    case CallKind::barrier: return FlightOp::barrier;
    case CallKind::split: return FlightOp::split;
    case CallKind::symmetric: return FlightOp::new_window;
    case CallKind::wait_signal: return FlightOp::wait_signal;
    case CallKind::optimizer_step: return FlightOp::all_reduce;
    case CallKind::send: return FlightOp::send;
    case CallKind::receive: return FlightOp::recv;
  }
  return FlightOp::barrier;
}

}  // namespace

std::uint32_t Flight::add_group(std::string_view name, std::string_view description, std::span<const int> ranks) {
  const std::uint32_t index = groups_++;
  ring_.group(index, name, description, ranks);
  return index;
}

std::uint64_t Flight::begin(std::uint32_t group, const CallPlan& plan, const CallHeader& header, Timeout timeout) noexcept {
  // Lists of more ranks than these are told by their first ones.
  constexpr std::size_t kMost = 64;
  using Sizes = std::array<std::span<const std::int64_t>, kMost>;
  auto fill = [&](Sizes& to, const std::vector<std::vector<std::int64_t>>& from, const Tensor& tensor) {
    if (from.empty() && tensor.defined()) {
      to[0] = tensor.sizes();
      return std::size_t{1};
    }
    const std::size_t n = std::min(kMost, from.size());
    for (std::size_t i = 0; i < n; ++i) to[i] = from[i];
    return n;
  };
  static thread_local Sizes in, out;
  const std::size_t in_count = fill(in, plan.in_sizes, plan.in), out_count = fill(out, plan.out_sizes, plan.out);
  FlightCall call{.op = op_of(header.kind), .group = group};
  const bool is_pair = header.kind == CallKind::send || header.kind == CallKind::receive || header.kind == CallKind::wait_signal;
  if (!is_pair) call.collective_seq = header.sequence + 1;
  call.p2p_seq = header.ordinal, call.op_id = calls_.fetch_add(1, std::memory_order_relaxed);
  if (in_count > 0) call.in_dtype = header.dtype;
  if (out_count > 0) call.out_dtype = header.dtype;
  call.in = std::span(in).first(in_count), call.out = std::span(out).first(out_count);
  call.reduce = reduces(header.kind) ? static_cast<FlightReduce>(header.op) : FlightReduce::none;
  call.root = header.kind == CallKind::symmetric ? -1 : header.root, call.peer = plan.peer, call.tag = plan.tag, call.timeout_ms = timeout.count();
  call.where = {plan.where.file, plan.where.function, plan.where.line};
  return ring_.begin(call);
}

void Flight::end(std::uint64_t id, Work::Status how, std::string_view why) noexcept {
  if (how == Work::Status::done) ring_.completed(id);
  if (how == Work::Status::timed_out) ring_.timed_out(id, why);
  if (how == Work::Status::failed) ring_.failed(id, why);
}

}}}}  // namespace clutch::v0::dist::detail
