// SPDX-License-Identifier: Apache-2.0
// The cost model: what calls ask of a machine, fits, files, and times that are predicted for the ranks at hand.
#include "dist/model.hpp"
#include "dist/ranks.hpp"

#include <clutch/dist/sharded.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace clutch::testing { namespace {

using namespace dist;

TEST(CostModel, FitsGiveTheCostsBack) {
  // Of 3 ranks, whose rounds have two messages.
  const WayCosts wanted{.known = true,
                        .call_us = 2,
                        .round_us = 1.5,
                        .message_us = 0.5,
                        .cache_us_per_byte = 1e-4,
                        .memory_us_per_byte = 4e-4,
                        .cache_bytes = 1 << 18,
                        .add_us_per_byte = 3e-5};
  std::vector<dist::detail::Timed> calls;
  for (double bytes = 64; bytes <= 16 << 20; bytes *= 2)
    for (const auto& [collective, method] : {std::pair{Collective::all_reduce, dist::detail::Method::direct},
                                             {Collective::all_reduce, dist::detail::Method::tree},
                                             {Collective::reduce_scatter, dist::detail::Method::direct},
                                             {Collective::all_gather, dist::detail::Method::direct}}) {
      const dist::detail::Effort effort = dist::detail::effort_of({.collective = collective, .ranks = 3, .root = 0, .method = method}, bytes);
      calls.push_back({effort, dist::detail::cost_us(wanted, effort, 0)});
    }
  const WayCosts got = dist::detail::fitted(calls);
  EXPECT_TRUE(got.known);
  EXPECT_NEAR(got.call_us, wanted.call_us, 1e-3);
  EXPECT_NEAR(got.round_us, wanted.round_us, 1e-3);
  EXPECT_NEAR(got.message_us, wanted.message_us, 1e-3);
  EXPECT_NEAR(got.cache_us_per_byte, wanted.cache_us_per_byte, 1e-6);
  EXPECT_NEAR(got.memory_us_per_byte, wanted.memory_us_per_byte, 1e-6);
  EXPECT_NEAR(got.add_us_per_byte, wanted.add_us_per_byte, 1e-6);
  EXPECT_EQ(got.cache_bytes, wanted.cache_bytes);
  EXPECT_FALSE(dist::detail::fitted({}).known);
}

TEST(CostModel, CostsAreNeverBelowZero) {
  // Larger calls that take less time.
  std::vector<dist::detail::Timed> calls;
  for (int i = 0; i < 10; ++i) calls.push_back({{.rounds = 1, .messages = 1, .moved = 100.0 * i, .added = 50.0 * i}, 10.0 - i});
  const WayCosts way = dist::detail::fitted(calls);
  EXPECT_EQ(way.cache_us_per_byte, 0);
  EXPECT_EQ(way.memory_us_per_byte, 0);
  EXPECT_EQ(way.add_us_per_byte, 0);
  EXPECT_GT(way.call_us + way.round_us, 0);
}

TEST(CostModel, PredictsWhatIsKnownAndRefusesTheRest) {
  const Machine machine = Machine::nominal();
  auto us = [&](std::uint64_t bytes, int ranks, Algorithm algorithm = Algorithm::automatic) {
    return predict_us(machine, Collective::all_reduce, bytes, ranks, algorithm);
  };
  EXPECT_LT(us(8, 8), us(1 << 20, 8));
  EXPECT_LT(us(8, 8), us(8, 16)) << "the network";
  EXPECT_LT(us(8, 1000, Algorithm::tree), us(8, 1000, Algorithm::ring));
  EXPECT_LT(us(1 << 30, 1000, Algorithm::ring), us(1 << 30, 1000, Algorithm::tree));
  for (const Algorithm algorithm : {Algorithm::one_shot, Algorithm::direct, Algorithm::tree, Algorithm::halving, Algorithm::board})
    EXPECT_LE(us(4096, 8), us(4096, 8, algorithm)) << static_cast<int>(algorithm);
  EXPECT_EQ(code_of([&] { us(8, 0); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { us(8, 6, Algorithm::halving); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { us(8, 16, Algorithm::board); }), ErrorCode::invalid_argument) << "several hosts";
  EXPECT_EQ(code_of([&] { predict_us(Machine{}, Collective::all_reduce, 8, 2); }), ErrorCode::invalid_argument);
  EXPECT_EQ(name(Collective::all_to_all), "all_to_all");
}

TEST(CostModel, FilesHaveAllOfAMachine) {
  if (processes() > 0) GTEST_SKIP() << "one process writes";
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("clutch_model_" + std::to_string(::getpid())), file = folder / "machine.json";
  fs::create_directories(folder);
  Machine machine = Machine::nominal();
  machine.network = {}, machine.board.add_us_per_byte = 1.0 / 3;
  machine.save(file);
  const Machine again = Machine::load(file);
  EXPECT_EQ(again.ranks, machine.ranks);
  EXPECT_EQ(again.board.add_us_per_byte, machine.board.add_us_per_byte);
  EXPECT_EQ(again.host_us_per_byte, machine.host_us_per_byte);
  EXPECT_TRUE(again.kernel.known);
  EXPECT_FALSE(again.network.known);
  EXPECT_EQ(code_of([&] { Machine::load(folder / "none"); }), ErrorCode::io);
  EXPECT_EQ(code_of([&] { machine.save(folder / "none" / "machine.json"); }), ErrorCode::io);
  for (const char* text : {"", "{}", "[]", R"({"clutch_machine": 2})",
                           R"({"clutch_machine": 1, "ranks": 0, "ranks_of_host": 1, "launch_us": 1, "host_us_per_byte": 0, "network_us_per_byte": 0})",
                           R"({"clutch_machine": 1, "ranks": 2, "ranks_of_host": 1, "launch_us": -1, "host_us_per_byte": 0, "network_us_per_byte": 0})"}) {
    std::ofstream(file) << text;
    EXPECT_EQ(code_of([&] { Machine::load(file); }), ErrorCode::invalid_argument) << text;
  }
  fs::remove_all(folder);
}

TEST(CostModel, MeasuresTheSameOnAllRanksAndPredicts) {
  for_ranks({2, 3}, [](const Group& g) {
    const auto begin = std::chrono::steady_clock::now();
    const Machine machine = measure(g);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const Tensor mine = from_host(std::vector<double>{machine.launch_us, machine.messages.call_us, machine.network.call_us, machine.board.round_us}, {4});
    const Tensor most = empty({4}, {.dtype = DType::f64});
    g.all_reduce_out(most, mine, {.op = ReduceOp::max});
    EXPECT_EQ(most.to_bytes(), mine.to_bytes());
    EXPECT_EQ(machine.ranks, g.size());
    choose_by(g, machine);
    // Times of a machine that others use, too, say little: they are printed, and nothing asserts them.
    for (const std::int64_t elements : {64, 4096, 65536, 524288}) {
      const Tensor x = zeros({elements}), y = empty({elements});
      std::vector<double> us;
      g.barrier().synchronize();
      for (int i = 0; i < 9; ++i) {
        const auto start = std::chrono::steady_clock::now();
        g.all_reduce_out(y, x);
        current_stream().synchronize();
        us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
      }
      std::sort(us.begin(), us.end());
      const double predicted = predict_us(machine, Collective::all_reduce, static_cast<std::uint64_t>(elements) * 4, g.size());
      if (g.rank() != 0) continue;
      const double off = std::max(predicted / us[4], us[4] / predicted);
      std::printf("%sall_reduce of %lld elements on %d ranks: predicted %.1f us, measured %.1f us\n", off > 4 ? "OFF BY MORE THAN 4x: " : "",
                  static_cast<long long>(elements), g.size(), predicted, us[4]);
    }
    if (g.rank() == 0) std::printf("measured in %.2f s\n", seconds);
    // Bits do not change.
    const Tensor x = full({1000}, 0.1 * (g.rank() + 1)), wanted = empty({1000}), got = empty({1000});
    g.all_reduce_out(wanted, x, {.algorithm = Algorithm::tree}), g.all_reduce_out(got, x);
    EXPECT_EQ(got.to_bytes(), wanted.to_bytes());
  });
}

TEST(CostModel, RanksChooseByRankZerosMachine) {
  for_ranks({2, 4, 5}, [](const Group& g) {
    // Rank 0's machine has free rounds and dear bytes, or the other way round; the others give the opposite.
    Machine machine = Machine::nominal();
    machine.board = machine.kernel = {};
    for (const bool dear_bytes : {true, false}) {
      const bool mine = dear_bytes == (g.rank() == 0);
      for (WayCosts* way : {&machine.messages, &machine.network})
        way->cache_us_per_byte = way->memory_us_per_byte = mine ? 1 : 1e-9, way->round_us = way->message_us = mine ? 0 : 100;
      choose_by(g, machine);
      const Tensor x = full({3000}, g.rank() + 1), y = empty({3000});
      g.all_reduce_out(y, x).synchronize();
      const int sum = g.size() * (g.size() + 1) / 2;
      EXPECT_EQ(y.to_host<float>()[2999], static_cast<float>(sum));
      // Groups made of it have it, too.
      const Group part = g.split(g.rank() % 2);
      const Mesh mesh(part, {part.size()});
      const Sharded sharded = Sharded::from_local(x, mesh, {shard(0)});
      const Redistribution plan = sharded.plan({replicate()});
      ASSERT_EQ(plan.steps.size(), 1U);
      EXPECT_EQ(plan.us(), plan.steps[0].us);
      if (part.size() == 1) continue;
      EXPECT_NE(to_string(plan).find(" us\n"), std::string::npos) << to_string(plan);
      EXPECT_EQ(plan.us() > 1000, dear_bytes) << to_string(plan);
    }
    EXPECT_EQ(code_of([&] { choose_by(g, Machine{}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { choose_by(Group(), machine); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { (void)measure(Group()); }), ErrorCode::invalid_argument);
  });
}

}}  // namespace clutch::testing
