// SPDX-License-Identifier: Apache-2.0
// Simulated ranks: the bits of real ones, times that depend on nothing but options and program, and what becomes of the others when a rank or a link is lost.
#include "dist/flight_analysis.hpp"
#include "dist/flight_dump.hpp"
#include "dist/schedule.hpp"

#include <clutch/clutch.hpp>
#include <clutch/dist/sharded.hpp>
#include <clutch/dist/simulation.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <vector>

#include <unistd.h>

namespace clutch::testing { namespace {

using namespace dist;
namespace fs = std::filesystem;

double seconds_since(std::chrono::steady_clock::time_point begin) { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); }

std::vector<float> numbers_of(int rank, std::size_t n) {
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::vector<float> numbers(n);
  // Sums of such numbers depend on their order.
  for (float& x : numbers) x = std::ldexp(static_cast<float>(random() % 2001) - 1000.0F, static_cast<int>(random() % 30) - 15);
  return numbers;
}

/// The sum of all ranks' numbers in the canonical order.
std::vector<float> sums_of(int ranks, std::size_t n) {
  std::vector<std::vector<float>> all;
  for (int r = 0; r < ranks; ++r) all.push_back(numbers_of(r, n));
  std::vector<float> sums(n);
  for (std::size_t i = 0; i < n; ++i)
    sums[i] = dist::detail::canonical_sum<float>(
        0, ranks, [&](std::int32_t r) { return all[static_cast<std::size_t>(r)][i]; }, [](float a, float b) { return a + b; });
  return sums;
}

void expect_no_errors(const Simulation& run) {
  for (std::size_t r = 0; r < run.errors().size(); ++r) ASSERT_FALSE(run.errors()[r].has_value()) << "rank " << r << ": " << run.errors()[r]->what();
}

/// A folder of the test's own.
struct Folder {
  fs::path path = fs::temp_directory_path() / fmt::format("clutch_simulation_{}", ::getpid());
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};

TEST(Simulations, AThousandRanksHaveTheCanonicalSum) {
  constexpr int kRanks = 1000;
  constexpr std::size_t kNumbers = 4096;
  const std::vector<float> wanted = sums_of(kRanks, kNumbers);
  std::atomic<int> wrong{0};
  const auto begin = std::chrono::steady_clock::now();
  const Simulation run = simulate({.ranks = kRanks}, [&](const Group& world) {
    const Tensor x = from_host(numbers_of(world.rank(), kNumbers), {static_cast<std::int64_t>(kNumbers)});
    world.all_reduce_(x, {.algorithm = Algorithm::tree});
    if (x.to_host<float>() != wanted) ++wrong;
  });
  expect_no_errors(run);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(run.messages(), 2U * (kRanks - 1));
  EXPECT_GT(run.us(), 0);
  std::printf("a tree of %d ranks: %.2f s of the host, %.0f us of the clock\n", kRanks, seconds_since(begin), run.us());
}

TEST(Simulations, ARingOfAThousandRanks) {
  constexpr int kRanks = 1000;
  constexpr std::size_t kNumbers = 16 << 10;
  std::mutex mutex;
  std::set<std::vector<float>> results;
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<double> moved_s{0};
  const Simulation run = simulate({.ranks = kRanks}, [&](const Group& world) {
    const Tensor x = from_host(numbers_of(world.rank(), kNumbers), {static_cast<std::int64_t>(kNumbers)});
    world.barrier().synchronize();
    const auto start = std::chrono::steady_clock::now();
    world.all_reduce_(x, {.order = Order::any, .algorithm = Algorithm::ring});
    const std::vector<float> got = x.to_host<float>();
    const std::lock_guard lock(mutex);
    results.insert(got);
    moved_s = std::max(moved_s.load(), seconds_since(start));
  });
  expect_no_errors(run);
  EXPECT_EQ(results.size(), 1U);
  EXPECT_EQ(run.messages(), 2U * kRanks * (kRanks - 1));
  std::printf("a ring of %d ranks, %llu messages: %.2f s of the host, %.2f of which moved numbers; %.0f us of the clock\n", kRanks,
              static_cast<unsigned long long>(run.messages()), seconds_since(begin), moved_s.load(), run.us());
}

/// Parameters of a linear model after some steps on a batch of kParts parts, of which each rank has as many as any other one.
constexpr int kParts = 16;
std::vector<std::uint8_t> trained(const Group& g) {
  constexpr std::int64_t kRows = 8, kIn = 6;
  const int each = kParts / g.size();
  const Tensor weights = full({kIn, 1}, 0.25);
  optim::AdamW optimizer(std::vector<Tensor>{weights}, {.lr = 0.01});
  for (int step = 0; step < 5; ++step) {
    auto gradient = [&](int part) {
      const std::vector<float> numbers = numbers_of(100 * step + part, static_cast<std::size_t>(kRows * (kIn + 1)));
      const Tensor all = from_host(numbers, {kRows, kIn + 1}), x = all.slice(1, 0, kIn), y = all.slice(1, kIn, kIn + 1);
      return linalg::matmul(x.mT(), sub(linalg::matmul(x, weights), y));
    };
    std::function<Tensor(int, int)> fold = [&](int first, int count) {
      return count == 1 ? gradient(first) : add(fold(first, count / 2), fold(first + count / 2, count / 2));
    };
    const Tensor mine = fold(g.rank() * each, each);
    g.all_reduce_(mine);
    simulate_work(g, 50.0 * each);
    optimizer.step(std::vector<Tensor>{mine});
  }
  return weights.to_bytes();
}

TEST(Simulations, TrainingHasTheBitsOfOneRank) {
  const std::vector<std::uint8_t> alone = trained(open_threads(1)[0]);
  std::vector<double> times;
  for (const int ranks : {1, 2, 16}) {
    std::atomic<int> wrong{0};
    const Simulation run = simulate({.ranks = ranks}, [&](const Group& world) {
      if (trained(world) != alone) ++wrong;
    });
    expect_no_errors(run);
    EXPECT_EQ(wrong, 0) << ranks << " ranks";
    times.push_back(run.us());
  }
  EXPECT_GE(times[0], 5 * 50.0 * kParts);
  EXPECT_LT(times[1], times[0]);
}

/// Groups in both directions, messages, calls beside others, rows.
void mixed(const Group& world) {
  const int n = world.size(), me = world.rank();
  const Group row = world.split(me / 4, me), column = world.split(me % 4, me);
  const Tensor x = full({1000}, me), all = empty({1000 * row.size()}), back = empty({1000});
  for (int i = 0; i < 3; ++i) {
    const Work beside = column.all_reduce_(x, {.async = true});
    simulate_work(world, 10);
    row.all_gather_out(all, full({1000}, i));
    beside.wait();
    Batch batch(world);
    world.send(x, (me + 1) % n, 5), world.recv(back, (me + n - 1) % n, 5);
    batch.end();
    std::vector<std::int64_t> rows(static_cast<std::size_t>(n), 3);
    rows[0] = 0;
    world.all_gather_v_out(empty({3 * (n - 1), 2}), zeros({me == 0 ? 0 : 3, 2}), rows);
  }
  world.barrier().synchronize();
}

TEST(Simulations, MemoryOfAllRanksAndTensorsOverMeshesRunAsTheyAre) {
  // On one host kernels reach all parts; on two they do not, and messages give the same bits.
  std::mutex mutex;
  std::map<int, std::set<std::vector<std::uint8_t>>> results;
  for (const int ranks_of_host : {4, 2}) {
    Machine machine = Machine::nominal();
    machine.ranks = machine.ranks_of_host = ranks_of_host;
    const Simulation run = simulate({.ranks = 4, .machine = machine}, [&](const Group& world) {
      const Symmetric params({1 << 14}, world), grads({1 << 14}, world);
      EXPECT_EQ(params.all_direct(), ranks_of_host == 4);
      fill_(params.local(), 1);
      copy_(grads.local(), from_host(numbers_of(world.rank(), 1 << 14), {1 << 14}));
      ShardedAdamW optimizer(params, grads);
      optimizer.step();
      const Mesh mesh(world, {2, 2}, {"data", "model"});
      const Tensor whole = from_host(numbers_of(9, 35), {7, 5});
      const Sharded parts = Sharded::distribute(whole, mesh, {shard(0), shard(1)});
      EXPECT_GT(parts.plan({replicate(), replicate()}).us(), 0);
      EXPECT_EQ(parts.full().to_bytes(), whole.to_bytes());
      const std::vector<std::uint8_t> bytes = params.local().to_bytes();
      const std::lock_guard lock(mutex);
      results[ranks_of_host].insert(bytes);
    });
    expect_no_errors(run);
  }
  EXPECT_EQ(results[4].size(), 1U);
  EXPECT_EQ(results[4], results[2]);
}

TEST(Simulations, TheSameSeedGivesTheSameTimes) {
  auto run = [&](std::uint64_t seed, double jitter) {
    const Simulation of = simulate({.ranks = 24, .seed = seed, .jitter = jitter, .stragglers = {{.rank = 5, .factor = 3, .late_us = 100}}}, mixed);
    expect_no_errors(of);
    std::vector<double> times = of.rank_us();
    for (int r = 0; r < 24; ++r)
      for (const SimulatedCall& call : of.calls(r)) {
        EXPECT_EQ(call.status, Work::Status::done);
        EXPECT_LE(call.begin_us, call.met_us);
        EXPECT_LE(call.met_us, call.end_us) << call.name;
        times.insert(times.end(), {call.begin_us, call.met_us, call.end_us});
      }
    return times;
  };
  const std::vector<double> first = run(1, 0.5);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run(1, 0.5), first);
  EXPECT_NE(run(2, 0.5), first);
  EXPECT_LT(run(1, 0)[0], first[0]);
}

TEST(Simulations, TheClockSaysWhatTheModelPredicts) {
  // On one host, and one rank on each: no rank waits for a link that others have.
  for (const int ranks_of_host : {8, 1})
    for (const Algorithm algorithm : {Algorithm::direct, Algorithm::one_shot, Algorithm::tree, Algorithm::halving}) {
      Machine machine = Machine::nominal();
      machine.ranks = machine.ranks_of_host = ranks_of_host, machine.host_us_per_byte = machine.network_us_per_byte = 0;
      for (const std::int64_t elements : {16, 1 << 14}) {
        const Simulation run =
            simulate({.ranks = 8, .machine = machine}, [&](const Group& world) { world.all_reduce_(zeros({elements}), {.algorithm = algorithm}); });
        expect_no_errors(run);
        const double predicted = predict_us(machine, Collective::all_reduce, static_cast<std::uint64_t>(elements) * 4, 8, algorithm);
        EXPECT_NEAR(run.us(), predicted, 0.02 * predicted) << static_cast<int>(algorithm) << ", " << elements << ", " << ranks_of_host;
      }
    }
}

TEST(Simulations, RanksOfAHostShareItsLinks) {
  Machine machine = Machine::nominal();
  machine.ranks = machine.ranks_of_host = 4;
  // Each host's ranks send to the next host: one of them, or all.
  auto run = [&](bool all) {
    const Simulation of = simulate({.ranks = 8, .machine = machine}, [&](const Group& world) {
      const Group pair = world.split(world.rank() % 4, world.rank());
      if (!all && world.rank() % 4 != 0) return;
      pair.all_reduce_(zeros({1 << 20}), {.algorithm = Algorithm::direct}).synchronize();
    });
    expect_no_errors(of);
    return of.us();
  };
  EXPECT_GT(run(true), 1.4 * run(false));
}

TEST(Simulations, CallsBesideWorkTakeTheLongerTime) {
  auto run = [&](bool async) {
    const Simulation of = simulate({.ranks = 16}, [&](const Group& world) {
      const Tensor x = zeros({1 << 16});
      const Work work = world.all_reduce_(x, {.async = async});
      simulate_work(world, 300);
      work.wait();
    });
    expect_no_errors(of);
    return of.us();
  };
  EXPECT_GT(run(false), run(true) + 100);
}

TEST(Simulations, StragglersMakeTheOthersWait) {
  const auto program = [](const Group& world) {
    for (int i = 0; i < 4; ++i) world.all_reduce_(zeros({100}));
  };
  const Simulation even = simulate({.ranks = 12}, program), late = simulate({.ranks = 12, .stragglers = {{.rank = 7, .late_us = 1000}}}, program);
  EXPECT_NEAR(late.us(), even.us() + 4000, 1);
  const SimulatedCall own = late.calls(7)[2], other = late.calls(3)[2];
  EXPECT_EQ(own.begin_us, own.met_us);
  EXPECT_NEAR(other.met_us - other.begin_us, 1000, 30);
  // clutch-flight names it by the dumps.
  const Folder folder;
  late.dump_flight(folder.path / "flight.", FlightFormat::json);
  std::vector<dist::detail::FlightImage> images;
  for (int r = 0; r < 12; ++r) images.push_back(dist::detail::read_flight(folder.path / fmt::format("flight.{}", r)));
  const dist::detail::FlightAnalysis analysis = analyze(images);
  EXPECT_TRUE(analysis.findings.empty()) << analysis.text();
  const auto latest = std::max_element(analysis.lateness.begin(), analysis.lateness.end(), [](const auto& a, const auto& b) { return a.mean_us < b.mean_us; });
  EXPECT_EQ(latest->rank, 7) << analysis.text();
  EXPECT_NEAR(latest->mean_us, 1000, 30);
}

TEST(Simulations, ALostRankIsAnErrorOfTheOthersAndTheyGoOn) {
  constexpr int kRanks = 20, kLost = 13;
  std::atomic<int> went_on{0};
  const auto begin = std::chrono::steady_clock::now();
  const Simulation run = simulate({.ranks = kRanks, .lost_ranks = {{.rank = kLost, .call = 2}}, .timeout = std::chrono::seconds(30)}, [&](const Group& world) {
    const Tensor x = full({64}, 1);
    world.all_reduce_(x), world.all_reduce_(x);
    try {
      world.all_reduce_(x).synchronize();
      ADD_FAILURE() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::timed_out);
      EXPECT_NE(e.message().find("waited 30000 ms for rank 13"), std::string::npos) << e.what();
    }
    EXPECT_TRUE(world.failed());
    EXPECT_EQ(world.lost(), std::vector<int>{kLost});
    current_stream().reset();
    std::vector<int> others;
    for (int r = 0; r < kRanks; ++r)
      if (r != kLost) others.push_back(r);
    const Group rest = world.reconfigure(others, 1);
    const Tensor y = full({8}, 1);
    rest.all_reduce_(y);
    if (y.to_host<float>()[7] == kRanks - 1) ++went_on;
  });
  EXPECT_LT(seconds_since(begin), 25) << "the host waits";
  EXPECT_EQ(went_on, kRanks - 1);
  for (int r = 0; r < kRanks; ++r) {
    EXPECT_EQ(run.errors()[static_cast<std::size_t>(r)].has_value(), r == kLost);
    if (r != kLost) {
      EXPECT_GT(run.rank_us()[static_cast<std::size_t>(r)], 30e6);
    }
  }
  EXPECT_LT(run.rank_us()[kLost], 1e6);
  const Folder folder;
  run.dump_flight(folder.path / "flight.");
  std::vector<dist::detail::FlightImage> images;
  for (int r = 0; r < kRanks; ++r) images.push_back(dist::detail::read_flight(folder.path / fmt::format("flight.{}", r)));
  EXPECT_EQ(analyze(images).first_culprits(), std::vector<std::int32_t>{kLost}) << analyze(images).text();
}

TEST(Simulations, ALostLinkIsAnErrorOfWhoListensAndThenOfTheOthers) {
  std::mutex mutex;
  std::vector<std::string> texts(6);
  const Simulation run = simulate({.ranks = 6, .lost_links = {{.from = 4, .to = 1, .call = 1}}}, [&](const Group& world) {
    const Tensor x = full({64}, 1);
    world.all_reduce_(x);
    try {
      world.all_reduce_(x).synchronize();
    } catch (const Error& e) {
      const std::lock_guard lock(mutex);
      texts[static_cast<std::size_t>(world.rank())] = e.message();
      throw;
    }
  });
  for (std::size_t r = 0; r < 6; ++r) {
    if (!run.errors()[r]) continue;
    EXPECT_EQ(run.errors()[r]->code(), ErrorCode::timed_out);
  }
  EXPECT_NE(texts[1].find("for rank 4"), std::string::npos) << texts[1];
  // The same of a message: neither side is done.
  const Simulation message = simulate({.ranks = 3, .lost_links = {{.from = 0, .to = 2}}}, [&](const Group& world) {
    const Tensor x = full({4}, 1);
    if (world.rank() == 0) world.send(x, 2).synchronize();
    if (world.rank() == 2) world.recv(x, 0).synchronize();
  });
  EXPECT_FALSE(message.errors()[1].has_value());
  for (const std::size_t r : {0, 2}) {
    ASSERT_TRUE(message.errors()[r].has_value()) << r;
    EXPECT_EQ(message.errors()[r]->code(), ErrorCode::timed_out);
  }
  EXPECT_NEAR(message.rank_us()[2], 600e6, 1e6);
}

TEST(Simulations, WhoEndsEarlyDoesNotComeAndMismatchesAreFound) {
  const Simulation early = simulate({.ranks = 4}, [](const Group& world) {
    world.barrier().synchronize();
    if (world.rank() != 2) world.barrier().synchronize();
  });
  EXPECT_FALSE(early.errors()[2].has_value());
  for (const std::size_t r : {0, 1, 3}) {
    ASSERT_TRUE(early.errors()[r].has_value());
    EXPECT_EQ(early.errors()[r]->code(), ErrorCode::timed_out) << early.errors()[r]->what();
  }
  const Simulation other = simulate({.ranks = 12}, [](const Group& world) { world.all_reduce_(zeros({world.rank() == 3 ? 9 : 8})).synchronize(); });
  for (const auto& error : other.errors()) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), ErrorCode::mismatch);
  }
  const Simulation thrown = simulate({.ranks = 2}, [](const Group& world) {
    if (world.rank() == 1) throw std::runtime_error("of the program");
  });
  EXPECT_EQ(thrown.errors()[1]->message(), "of the program");
}

TEST(Simulations, TracesHaveARowForEachRank) {
  const Folder folder;
  const Simulation run = simulate({.ranks = 24}, mixed);
  run.write_trace(folder.path / "trace.json");
  std::ifstream in(folder.path / "trace.json");
  const nlohmann::json trace = nlohmann::json::parse(in);
  std::set<int> named, with_calls;
  std::map<std::pair<int, int>, double> ends;
  double end = 0;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    const int rank = event.at("pid").get<int>();
    if (event.at("name") == "process_name") named.insert(rank);
    if (event.at("ph") != "X") continue;
    const double begin = event.at("ts").get<double>();
    double& of_row = ends[{rank, event.at("tid").get<int>()}];
    EXPECT_GE(begin, of_row - 0.002) << "slices of a row must follow each other";
    of_row = begin + event.at("dur").get<double>(), end = std::max(end, of_row);
    if (event.at("name") != "all_reduce") continue;
    with_calls.insert(rank);
    EXPECT_EQ(event.at("args").at("Group size"), 6);
  }
  EXPECT_EQ(named.size(), 24U);
  EXPECT_EQ(with_calls.size(), 24U);
  EXPECT_NEAR(end, run.us(), 0.01);
}

TEST(Simulations, TwoStreamsMayWaitTheOtherWayRound) {
  const Simulation run = simulate({.ranks = 2}, [](const Group& world) {
    const Group a = world.split(0), b = world.split(0);
    const Device device = current_stream().device();
    const Stream one(device), two(device);
    const Tensor x = full({8}, 1), y = full({8}, 1);
    current_stream().synchronize();
    if (world.rank() == 0) a.all_reduce_(x, {.stream = one}), b.all_reduce_(y, {.stream = two});
    if (world.rank() == 1) b.all_reduce_(y, {.stream = two}), a.all_reduce_(x, {.stream = one});
    one.synchronize(), two.synchronize();
  });
  expect_no_errors(run);
  EXPECT_GT(run.us(), 0);
}

TEST(Simulations, WhatMakesNoSenseIsRefused) {
  auto refused = [](const SimulationOptions& options) {
    try {
      simulate(options, [](const Group&) {});
    } catch (const Error& e) {
      return e.code();
    }
    return ErrorCode::ok;
  };
  EXPECT_EQ(refused({.ranks = 0}), ErrorCode::invalid_argument);
  EXPECT_EQ(refused({.ranks = 2, .machine = {}}), ErrorCode::invalid_argument);
  EXPECT_EQ(refused({.ranks = 2, .jitter = -1}), ErrorCode::invalid_argument);
  EXPECT_EQ(refused({.ranks = 2, .stragglers = {{.rank = 2}}}), ErrorCode::invalid_argument);
  EXPECT_EQ(refused({.ranks = 2, .stragglers = {{.rank = 1, .factor = -1}}}), ErrorCode::invalid_argument);
  EXPECT_EQ(refused({.ranks = 2, .lost_ranks = {{.rank = -1}}}), ErrorCode::invalid_argument);
  EXPECT_EQ(refused({.ranks = 2, .lost_links = {{.from = 0, .to = 3}}}), ErrorCode::invalid_argument);
  EXPECT_EQ(refused({.ranks = 2, .timeout = Timeout(0)}), ErrorCode::invalid_argument);
  EXPECT_EQ(refused({.ranks = 2}), ErrorCode::ok);
  EXPECT_THROW(simulate({}, nullptr), Error);
  const Simulation run = simulate({.ranks = 2, .flight_records = 0}, [](const Group& world) { world.barrier(); });
  EXPECT_THROW(run.dump_flight("/tmp/never"), Error);
  EXPECT_THROW(run.calls(2), Error);
  EXPECT_THROW(run.write_trace("/no/folder/trace.json"), Error);
  EXPECT_THROW(simulate_work(Group(), 1), Error);
}

}}  // namespace clutch::testing
