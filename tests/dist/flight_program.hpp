// SPDX-License-Identifier: Apache-2.0
#pragma once
// A made-up program of four ranks that makes every call, with one fault or none: what flight recorders have of it.
#include "dist/flight_ring.hpp"

#include <array>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace clutch::testing {

/// Records the calls of one rank as a group of ranks does: it counts the numbers that all ranks have in common.
class FlightCaller {
 public:
  FlightCaller(dist::detail::FlightRing& ring, int rank) : ring_(ring), rank_(rank) {}

  void group(std::uint32_t index, const std::string& name, const std::string& description, const std::vector<std::int32_t>& ranks) {
    ring_.group(index, name, description, ranks);
  }
  struct How {
    std::uint32_t group = 0;
    std::int32_t root = -1;
    dist::detail::FlightReduce reduce = dist::detail::FlightReduce::none;
    DType dtype = DType::f32;
    dist::detail::FlightState state = dist::detail::FlightState::completed;
  };
  std::uint64_t call(dist::detail::FlightOp op, const dist::detail::FlightSizes& in, const dist::detail::FlightSizes& out, const How& how,
                     dist::detail::FlightPlace where = dist::detail::FlightPlace::current()) {
    dist::detail::FlightCall call;
    call.collective_seq = ++seq_[how.group];
    call.group = how.group, call.root = how.root, call.reduce = how.reduce;
    return record(call, op, in, out, how, where);
  }
  /// To or from `peer`, of the group's ranks.
  std::uint64_t message(bool sends, std::int32_t peer, const std::vector<std::int64_t>& sizes, const How& how, std::int32_t tag = 0, std::uint64_t batch = 0,
                        dist::detail::FlightPlace where = dist::detail::FlightPlace::current()) {
    dist::detail::FlightCall call;
    call.p2p_seq = ++messages_[{how.group, peer, tag, sends}];
    call.group = how.group, call.peer = peer, call.tag = tag, call.batch = batch;
    return record(call, sends ? dist::detail::FlightOp::send : dist::detail::FlightOp::recv,
                  sends ? dist::detail::FlightSizes{sizes} : dist::detail::FlightSizes{},
                  sends ? dist::detail::FlightSizes{} : dist::detail::FlightSizes{sizes}, how, where);
  }
  /// A call that no other rank makes, too: it has no number.
  std::uint64_t alone(dist::detail::FlightOp op, const dist::detail::FlightSizes& in, const dist::detail::FlightSizes& out, std::int32_t peer, const How& how,
                      dist::detail::FlightPlace where = dist::detail::FlightPlace::current()) {
    dist::detail::FlightCall call;
    call.group = how.group, call.peer = peer;
    return record(call, op, in, out, how, where);
  }
  int rank() const { return rank_; }

 private:
  std::uint64_t record(dist::detail::FlightCall& call, dist::detail::FlightOp op, const dist::detail::FlightSizes& in, const dist::detail::FlightSizes& out,
                       const How& how, dist::detail::FlightPlace where) {
    const std::vector<std::span<const std::int64_t>> ins(in.begin(), in.end()), outs(out.begin(), out.end());
    call.op = op, call.op_id = ++ops_;
    call.in = ins, call.out = outs, call.timeout_ms = 600000, call.where = where;
    if (!in.empty()) call.in_dtype = how.dtype;
    if (!out.empty()) call.out_dtype = how.dtype;
    const std::uint64_t id = ring_.begin(call);
    if (how.state != dist::detail::FlightState::scheduled) ring_.started(id);
    if (how.state == dist::detail::FlightState::completed) ring_.completed(id);
    if (how.state == dist::detail::FlightState::failed) ring_.failed(id, "out of resources");
    if (how.state == dist::detail::FlightState::timed_out) ring_.timed_out(id, "600000 ms");
    return id;
  }

  dist::detail::FlightRing& ring_;
  int rank_;
  std::uint64_t ops_ = 0;
  std::map<std::uint32_t, std::uint64_t> seq_;
  std::map<std::tuple<std::uint32_t, std::int32_t, std::int32_t, bool>, std::uint64_t> messages_;
};

/// What one rank does wrong.
inline constexpr std::array<const char*, 20> kFlightFaults{"none",  "message",    "group_missing", "totals", "late",      "sizes", "op",
                                                           "dtype", "state",      "left_out",      "put_in", "reduce",    "root",  "own_size",
                                                           "cycle", "two_groups", "alone",         "failed", "timed_out", "list"};

/// All calls of one rank of four.
inline void flight_program(const std::string& fault, FlightCaller& f) {
  using dist::detail::FlightOp, dist::detail::FlightReduce, dist::detail::FlightSizes, dist::detail::FlightState;
  using How = FlightCaller::How;
  const int rank = f.rank();
  auto is = [&](const char* name, int culprit) { return fault == name && rank == culprit; };
  const std::int32_t pair = rank / 2 * 2;
  f.group(0, "0", "default_pg", {0, 1, 2, 3});
  f.group(1, pair == 0 ? "tp0" : "tp1", "tensor_parallel", {pair, pair + 1});
  if (rank < 2) f.group(2, "twin", "data_parallel", {0, 1});
  const How plain{}, sum{.reduce = FlightReduce::sum};
  f.call(is("op", 2) ? FlightOp::broadcast : FlightOp::all_reduce, {{is("sizes", 1) ? 512 : 1024}}, {{is("sizes", 1) ? 512 : 1024}},
         {.root = is("op", 2) ? 0 : -1,
          .reduce = is("op", 2)       ? FlightReduce::none
                    : is("reduce", 3) ? FlightReduce::max
                                      : FlightReduce::sum,
          .dtype = is("dtype", 0) ? DType::f16 : DType::f32,
          .state = is("state", 1) ? FlightState::started : FlightState::completed});
  if (!is("left_out", 1)) f.call(FlightOp::broadcast, {{8}}, {{8}}, {.root = is("root", 2) ? 1 : 0});
  f.call(FlightOp::all_gather, {{8}}, {{32}}, plain);
  if (is("put_in", 3)) f.call(FlightOp::barrier, {}, {}, plain);
  f.call(FlightOp::reduce_scatter, {{32}}, {{8}}, sum);
  const FlightSizes all{{1}, {2}, {is("list", 1) ? 9 : 3}, {4}};
  f.call(FlightOp::all_gather_v, {{rank + 1 + (is("own_size", 2) ? 1 : 0)}}, all, plain);
  f.call(FlightOp::reduce_scatter_v, {{1}, {2}, {3}, {4}}, {{rank + 1}}, sum);
  f.call(FlightOp::all_to_all_v, {{10 * (rank + 1)}}, {{is("totals", 3) ? 26 : 25}}, plain);
  f.call(FlightOp::all_to_all, {{8}}, {{8}}, plain);
  f.call(FlightOp::gather, {{8}}, rank == 0 ? FlightSizes{{4, 8}} : FlightSizes{}, {.root = 0});
  f.call(FlightOp::scatter, rank == 1 ? FlightSizes{{4, 8}} : FlightSizes{}, {{8}}, {.root = 1});
  f.call(FlightOp::gather_v, {{rank}}, rank == 0 ? FlightSizes{{6}} : FlightSizes{}, {.root = 0});
  f.call(FlightOp::scatter_v, rank == 3 ? FlightSizes{{6}} : FlightSizes{}, {{rank}}, {.root = 3});
  f.call(FlightOp::reduce, {{8}}, rank == 0 ? FlightSizes{{8}} : FlightSizes{}, {.root = 0, .reduce = FlightReduce::max});
  f.call(FlightOp::barrier, {}, {}, plain);
  f.call(FlightOp::all_reduce_coalesced, {{8}, {9}}, {{8}, {9}}, sum);
  f.call(FlightOp::all_gather_coalesced, {{8}, {9}}, {{32}, {36}}, plain);
  f.call(FlightOp::reduce_scatter_coalesced, {{32}, {36}}, {{8}, {9}}, sum);
  f.call(FlightOp::dispatch, {{64, 8}}, {{128, 8}}, plain);
  f.call(FlightOp::combine, {{128, 8}}, {{64, 8}}, plain);
  f.call(FlightOp::new_window, {}, {}, plain);
  f.call(FlightOp::split, {}, {}, plain);
  // Sums of more tensors than a record has space for.
  FlightSizes many;
  for (std::int64_t i = 0; i < 40; ++i) many.push_back({8, i + 1});
  f.call(FlightOp::all_reduce_coalesced, many, many, sum);
  if (!is("group_missing", 3)) f.call(FlightOp::all_reduce, {{64}}, {{64}}, {.group = 1, .reduce = FlightReduce::sum});
  // Batches of a send and a receive in the pair's group, each rank's send first.
  for (std::uint64_t batch = 1; batch <= 2; ++batch) {
    const std::int32_t other = 1 - rank % 2;
    f.message(true, other, {32}, {.group = 1}, 0, batch);
    f.message(false, other, {is("message", 3) && batch == 2 ? 31 : 32}, {.group = 1}, 0, batch);
  }
  // Around the world: rank r sends to r + 1, even ranks first; two tags, of which the second comes first to the receiver.
  for (const int tag : {7, 5}) {
    const std::int32_t to = (rank + 1) % 4, from = (rank + 3) % 4;
    if (rank % 2 == 0)
      f.message(true, to, {3, 4}, plain, tag), f.message(false, from, {3, 4}, plain, 12 - tag);
    else
      f.message(false, from, {3, 4}, plain, 12 - tag), f.message(true, to, {3, 4}, plain, tag);
  }
  f.message(true, rank, {2}, plain), f.message(false, rank, {2}, plain);  // to itself
  if (rank == 1) {
    f.alone(FlightOp::put, {{100}}, {}, 0, plain);
    f.alone(FlightOp::get, {}, {{100}}, 2, plain);
    f.alone(FlightOp::signal, {}, {}, 0, plain);
  }
  if (is("alone", 0)) f.message(true, 2, {5}, plain, 9);
  if (is("failed", 1)) f.alone(FlightOp::get, {}, {{7}}, 0, {.state = FlightState::failed});
  if (is("timed_out", 2)) f.alone(FlightOp::wait_signal, {}, {}, 0, {.state = FlightState::timed_out});
  if (fault == "cycle") {
    if (rank < 3) f.message(false, (rank + 1) % 3, {6}, {.state = FlightState::started}, 3);
  } else if (fault == "two_groups") {
    if (rank < 2) f.call(FlightOp::all_reduce, {{11}}, {{11}}, {.group = rank == 0 ? 1u : 2u, .reduce = FlightReduce::sum, .state = FlightState::started});
  } else if (!is("late", 2)) {
    f.call(FlightOp::all_reduce, {{5}}, {{5}}, {.reduce = FlightReduce::sum, .state = fault == "late" ? FlightState::started : FlightState::completed});
  }
}

}  // namespace clutch::testing
