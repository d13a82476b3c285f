// SPDX-License-Identifier: Apache-2.0
#include "dist/call.hpp"
#include "dist/flight_image.hpp"
#include "dist/simulation.hpp"

#include <fmt/format.h>
#include <clutch/interop_cl.hpp>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace clutch { inline namespace v0 { namespace dist {

std::string_view name(ReduceOp op) noexcept { return detail::name(static_cast<detail::FlightReduce>(op)); }

namespace detail {

std::string_view name(CallKind kind) noexcept {
  // Calls begin with the collectives.
  static_assert(static_cast<int>(CallKind::all_to_all) == static_cast<int>(Collective::all_to_all));
  if (kind <= CallKind::all_to_all) return dist::name(static_cast<Collective>(kind));
  switch (kind) {
    case CallKind::reduce_scatter_v: return "reduce_scatter_v";
    case CallKind::all_gather_v: return "all_gather_v";
    case CallKind::gather_v: return "gather_v";
    case CallKind::scatter_v: return "scatter_v";
    case CallKind::all_to_all_v: return "all_to_all_v";
    case CallKind::barrier: return "barrier";
    case CallKind::split: return "split";
    case CallKind::symmetric: return "Symmetric";
    case CallKind::wait_signal: return "wait_signal";
    case CallKind::optimizer_step: return "ShardedAdamW::step";
    case CallKind::send: return "send";
    case CallKind::receive: return "recv";
    default: break;
  }
  return "unknown call";
}

std::string_view name(Algorithm algorithm) noexcept {
  switch (algorithm) {
    case Algorithm::automatic: return "automatic";
    case Algorithm::one_shot: return "one_shot";
    case Algorithm::direct: return "direct";
    case Algorithm::tree: return "tree";
    case Algorithm::halving: return "halving";
    case Algorithm::ring: return "ring";
    case Algorithm::board: return "board";
    case Algorithm::kernel: return "kernel";
  }
  return "";
}

bool reduces(CallKind kind) noexcept {
  return kind == CallKind::all_reduce || kind == CallKind::reduce || kind == CallKind::reduce_scatter || kind == CallKind::reduce_scatter_v;
}

void CallHeader::set_place(const SourceLine& where) {
  std::string_view path = where.file;
  if (const std::size_t slash = path.find_last_of("/\\"); slash != std::string_view::npos) path.remove_prefix(slash + 1);
  if (path.size() >= sizeof file) path.remove_prefix(path.size() - sizeof file + 1);
  std::memset(file, 0, sizeof file);
  std::memcpy(file, path.data(), path.size());
  line = where.line;
}

Algorithm CallHeader::algorithm() const noexcept {
  if (symmetric != 0) return Algorithm::kernel;
  // Who sends to whom is the call itself.
  if (kind > CallKind::all_to_all_v) return Algorithm::automatic;
  switch (method) {
    case Method::one_shot: return Algorithm::one_shot;
    case Method::direct: return Algorithm::direct;
    case Method::tree: return Algorithm::tree;
    case Method::halving: return Algorithm::halving;
    case Method::ring: return Algorithm::ring;
    case Method::board: return Algorithm::board;
  }
  return Algorithm::automatic;
}

std::string CallHeader::text() const {
  std::string what(name(kind));
  if (kind != CallKind::barrier && kind != CallKind::split) {
    what += '(';
    if (reduces(kind)) what += op == ReduceOp::premul_sum ? fmt::format("premul_sum by {}, ", factor) : fmt::format("{}, ", name(op));
    if (kind == CallKind::all_reduce || kind == CallKind::reduce) what += fmt::format("{}, ", name(algorithm()));
    if (kind == CallKind::optimizer_step) what += fmt::format("lr {}, step {}, ", factor, rows);
    if (functions != 0) what += fmt::format("functions {:08x}, ", functions & 0xffffffff);
    if (root >= 0) what += fmt::format("root {}, ", root);
    what += elements > 0 || rows == 0 || kind == CallKind::optimizer_step ? fmt::format("{} elements of {}", elements, name(dtype))
                                                                          : fmt::format("{}, rows {:08x}", name(dtype), rows & 0xffffffff);
    what += ')';
  }
  if (symmetric != 0) what += fmt::format(" in symmetric memory at byte {}", place);
  const std::string_view where(file, ::strnlen(file, sizeof file));
  if (!where.empty()) what += fmt::format(" at {}:{}", where, line);
  return what;
}

bool CallHeader::agrees(const CallHeader& o) const {
  const bool is_pair = (kind == CallKind::send && o.kind == CallKind::receive) || (kind == CallKind::receive && o.kind == CallKind::send);
  return magic == o.magic && broken == 0 && o.broken == 0 && (kind == o.kind || is_pair) && dtype == o.dtype && op == o.op && method == o.method &&
         elements == o.elements && rows == o.rows && symmetric == o.symmetric && place == o.place && factor == o.factor && functions == o.functions &&
         root == o.root && (is_pair || sequence == o.sequence);
}

void CallState::note_wait() const {
  if (simulated) simulated->wait(deeds);
}

void CallState::end(Work::Status how, std::optional<Error> why) {
  std::vector<std::function<void(Work::Status)>> called;
  {
    const std::lock_guard lock(mutex);
    if (why && !stream.empty()) {
      interop::fail(stream, *why);
      for (const Stream& other : waiting) interop::fail(other, *why);
    }
    waiting.clear();
    status = how, error = std::move(why);
    called.swap(hooks);
  }
  changed.notify_all();
  for (const auto& hook : called) hook(how);
}

void CallState::begin_again() {
  const std::lock_guard lock(mutex);
  status = Work::Status::waiting, error.reset();
}

std::optional<Error> CallState::failure() {
  const std::lock_guard lock(mutex);
  return error;
}

}  // namespace detail
}}}  // namespace clutch::v0::dist
