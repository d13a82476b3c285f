// SPDX-License-Identifier: Apache-2.0
// Schedules of collectives: what each rank ends with, in which order sums are made, what is sent, that nobody waits for ever, and what a simulated clock says.
#include "dist/schedule.hpp"
#include "dist/execute.hpp"
#include "dist/model.hpp"
#include "dist/simulate.hpp"
#include "dist/thread_transport.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <thread>

namespace {

using namespace clutch::dist::detail;
using clutch::dist::WayCosts;

constexpr Collective kCollectives[] = {Collective::all_reduce, Collective::reduce,  Collective::reduce_scatter, Collective::all_gather,
                                       Collective::gather,     Collective::scatter, Collective::broadcast,      Collective::all_to_all};
constexpr Method kMethods[] = {Method::one_shot, Method::direct, Method::tree, Method::halving, Method::ring};

std::string say(const Problem& p) {
  constexpr const char* kNames[] = {"all_reduce", "reduce", "reduce_scatter", "all_gather", "gather", "scatter", "broadcast", "all_to_all"};
  constexpr const char* kMethodNames[] = {"one_shot", "direct", "tree", "halving", "ring"};
  return std::string(kNames[static_cast<int>(p.collective)]) + " by " + kMethodNames[static_cast<int>(p.method)] + " of " + std::to_string(p.ranks) +
         " ranks, root " + std::to_string(p.root);
}

std::vector<Schedule> all_of(const Problem& p) {
  std::vector<Schedule> all;
  for (int rank = 0; rank < p.ranks; ++rank) all.push_back(schedule_of(p, rank));
  return all;
}

/// Calls f(problem) for each method that does each collective, with the first, a middle and the last rank as root where there is one.
template <class F>
void for_each_problem(int ranks, F&& f) {
  for (const Collective collective : kCollectives)
    for (const Method method : kMethods) {
      if (!refusal({collective, ranks, 0, method}).empty()) continue;
      const bool has_root =
          collective == Collective::reduce || collective == Collective::gather || collective == Collective::scatter || collective == Collective::broadcast;
      std::vector<int> roots{0};
      if (has_root) roots = {0, ranks / 2, ranks - 1};
      roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
      for (const int root : roots) f(Problem{collective, ranks, root, method});
    }
}

/// Terms: numbers that stand for an element of a rank's input, or for a sum of two terms.
class Terms {
 public:
  std::int32_t element(int rank, std::size_t i) { return known({-1 - rank, static_cast<std::int32_t>(i)}); }
  std::int32_t sum(std::int32_t left, std::int32_t right) { return known({left, right}); }
  std::int32_t canonical(int ranks, std::size_t i) {
    return canonical_sum<std::int32_t>(
        0, ranks, [&](std::int32_t r) { return element(r, i); }, [&](std::int32_t a, std::int32_t b) { return sum(a, b); });
  }
  /// How often each rank's element i is in a term.
  std::map<int, int> ranks_in(std::int32_t term) {
    const std::lock_guard lock(mutex_);
    std::map<int, int> result;
    std::vector<std::int32_t> open{term};
    while (!open.empty()) {
      const auto [left, right] = terms_.at(static_cast<std::size_t>(open.back()));
      open.pop_back();
      if (left < 0)
        ++result[-1 - left];
      else
        open.push_back(left), open.push_back(right);
    }
    return result;
  }

 private:
  std::int32_t known(std::pair<std::int32_t, std::int32_t> term) {
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = numbers_.try_emplace(term, static_cast<std::int32_t>(terms_.size()));
    if (is_new) terms_.push_back(term);
    return at->second;
  }
  std::mutex mutex_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> numbers_;
  std::vector<std::pair<std::int32_t, std::int32_t>> terms_;
};

/// Elements of input and output of a rank, where a block has `block` of them and B blocks `total`.
struct Sizes {
  std::size_t input, output;
};
Sizes sizes_of(const Problem& p, int rank, std::size_t block, std::size_t total) {
  const std::size_t all = static_cast<std::size_t>(p.ranks) * block;
  const bool is_root = rank == p.root;
  switch (p.collective) {
    case Collective::all_reduce: return {total, total};
    case Collective::reduce: return {total, is_root ? total : 0};
    case Collective::reduce_scatter: return {all, block};
    case Collective::all_gather: return {block, all};
    case Collective::gather: return {block, is_root ? all : 0};
    case Collective::scatter: return {is_root ? all : 0, block};
    case Collective::broadcast: return {is_root ? total : 0, total};
    case Collective::all_to_all: return {all, all};
  }
  return {};
}

/// Runs all ranks as threads, or in turns. inputs, outputs: of each rank; they may be one memory.
enum class Ranks { threads, in_turns };
template <class T>
void run_ranks(const std::vector<Schedule>& schedules, std::vector<std::vector<T>>& inputs, std::vector<std::vector<T>>& outputs, std::size_t block,
               const Sum& sum, Ranks how = Ranks::threads) {
  const auto transports = thread_transports(static_cast<int>(schedules.size()));
  auto execution_of = [&](std::size_t r) {
    const HostMemory memory{
        .input = std::as_bytes(std::span(inputs[r])), .output = std::as_writable_bytes(std::span(outputs[r])), .element = sizeof(T), .block = block};
    const std::shared_ptr<const Schedule> schedule(std::shared_ptr<void>(), &schedules[r]);
    return std::make_unique<Execution>(schedule, memory, sum, transports[r]->open(Lane::collective, 7));
  };
  if (how == Ranks::in_turns) {
    std::vector<std::unique_ptr<Execution>> open;
    for (std::size_t r = 0; r < schedules.size(); ++r) open.push_back(execution_of(r));
    while (!open.empty()) std::erase_if(open, [](const auto& execution) { return execution->advance(); });
    return;
  }
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < schedules.size(); ++r)
    threads.emplace_back([&, r] {
      const auto execution = execution_of(r);
      while (!execution->advance()) std::this_thread::yield();
    });
  for (std::thread& thread : threads) thread.join();
}

template <class T, class F>
Sum sum_by(F f) {
  return [f](std::byte* to, std::span<const std::byte* const> parts, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      auto number = [&](std::int32_t part) {
        T x;
        std::memcpy(&x, parts[static_cast<std::size_t>(part)] + i * sizeof(T), sizeof(T));
        return x;
      };
      const T all = canonical_sum<T>(0, static_cast<std::int32_t>(parts.size()), number, f);
      std::memcpy(to + i * sizeof(T), &all, sizeof(T));
    }
  };
}

/// The term that element i of a rank's output must be; sums of a ring have an order of their own, of which -1 says nothing.
std::int32_t wanted(Terms& terms, const Problem& p, int rank, std::size_t i, std::size_t block) {
  const auto other = static_cast<int>(i / block);
  const std::size_t inside = i % block, own = static_cast<std::size_t>(rank) * block + inside;
  switch (p.collective) {
    case Collective::all_reduce:
    case Collective::reduce: return p.method == Method::ring ? -1 : terms.canonical(p.ranks, i);
    case Collective::reduce_scatter: return terms.canonical(p.ranks, static_cast<std::size_t>(rank) * block + i);
    case Collective::all_gather:
    case Collective::gather: return terms.element(other, inside);
    case Collective::scatter: return terms.element(p.root, static_cast<std::size_t>(rank) * block + i);
    case Collective::broadcast: return terms.element(p.root, i);
    case Collective::all_to_all: return terms.element(other, own);
  }
  return -1;
}

void check_ends(const Problem& p, std::size_t total, Ranks how = Ranks::threads) {
  SCOPED_TRACE(say(p) + ", " + std::to_string(total) + " elements");
  const std::vector<Schedule> schedules = all_of(p);
  const std::size_t block = block_of(total, schedules[0].blocks);
  const bool may_be_one = p.collective == Collective::all_reduce || p.collective == Collective::reduce || p.collective == Collective::broadcast;
  for (const bool in_place : {false, true}) {
    if (in_place && !may_be_one) continue;
    Terms terms;
    std::vector<std::vector<std::int32_t>> inputs, outputs;
    for (int r = 0; r < p.ranks; ++r) {
      const Sizes n = sizes_of(p, r, block, total);
      std::vector<std::int32_t> input(in_place ? std::max(n.input, n.output) : n.input);
      for (std::size_t i = 0; i < input.size(); ++i) input[i] = terms.element(r, i);
      inputs.push_back(input), outputs.emplace_back(n.output, -7);
    }
    const Sum sum = sum_by<std::int32_t>([&](std::int32_t a, std::int32_t b) { return terms.sum(a, b); });
    if (in_place) {
      run_ranks(schedules, inputs, inputs, block, sum, how);
      outputs = inputs;
    } else {
      run_ranks(schedules, inputs, outputs, block, sum, how);
    }
    for (int r = 0; r < p.ranks; ++r) {
      const Sizes n = sizes_of(p, r, block, total);
      for (std::size_t i = 0; i < n.output; ++i) {
        const std::int32_t got = outputs[static_cast<std::size_t>(r)][i];
        if (const std::int32_t want = wanted(terms, p, r, i, std::max<std::size_t>(block, 1)); want >= 0) {
          ASSERT_EQ(got, want) << "rank " << r << ", element " << i << (in_place ? ", in place" : "");
        } else {
          ASSERT_GE(got, 0);
          const std::map<int, int> in = terms.ranks_in(got);
          ASSERT_EQ(in.size(), static_cast<std::size_t>(p.ranks)) << "rank " << r << ", element " << i;
          for (const auto& [rank, times] : in) ASSERT_EQ(times, 1) << "rank " << rank;
        }
      }
    }
  }
}

TEST(Schedules, EachRankEndsWithWhatTheCollectiveSays) {
  for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17})
    for_each_problem(ranks, [&](const Problem& p) {
      for (const std::size_t total : {std::size_t{0}, std::size_t{1}, static_cast<std::size_t>(2 * ranks + 1)}) check_ends(p, total);
    });
}

TEST(Schedules, ManyRanksEndWithWhatTheCollectiveSays) {
  const char* const level = std::getenv("CLUTCH_TEST_LEVEL");
  const bool is_night = level != nullptr && std::string_view(level) == "nightly";
  std::vector<int> numbers{21, 32, 33, 63, 64};
  if (is_night) {
    numbers.resize(64);
    std::iota(numbers.begin(), numbers.end(), 1);
  }
  for (const int ranks : numbers) for_each_problem(ranks, [&](const Problem& p) { check_ends(p, static_cast<std::size_t>(ranks % 5), Ranks::in_turns); });
  std::vector<std::pair<Collective, Method>> of_a_thousand{
      {Collective::all_reduce, Method::tree}, {Collective::reduce, Method::tree}, {Collective::broadcast, Method::tree}};
  if (is_night)
    for (const Collective collective :
         {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather, Collective::gather, Collective::scatter, Collective::all_to_all})
      of_a_thousand.emplace_back(collective, Method::direct);
  for (const auto& [collective, method] : of_a_thousand)
    check_ends({collective, 1000, collective == Collective::all_reduce ? 0 : 999, method}, 2, Ranks::in_turns);
}

TEST(Schedules, SumsOfPartsHaveTheBitsOfAsManyRanks) {
  // V parts, of which each of n ranks has V / n, a power of two.
  for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16})
    for (const int each : {1, 2, 4, 8}) {
      Terms terms;
      auto sum = [&](std::int32_t a, std::int32_t b) { return terms.sum(a, b); };
      const std::int32_t of_parts = canonical_sum<std::int32_t>(
          0, ranks * each, [&](std::int32_t part) { return terms.element(part, 0); }, sum);
      const std::int32_t of_ranks = canonical_sum<std::int32_t>(
          0, ranks,
          [&](std::int32_t r) {
            return canonical_sum<std::int32_t>(
                r * each, each, [&](std::int32_t part) { return terms.element(part, 0); }, sum);
          },
          sum);
      EXPECT_EQ(of_ranks, of_parts) << ranks << " ranks of " << each << " parts";
    }
}

TEST(Schedules, EveryMethodGivesTheSameBits) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> number(-1, 1);
  for (const int ranks : {2, 3, 4, 5, 8, 9}) {
    constexpr std::size_t kTotal = 1000;
    std::vector<std::vector<float>> inputs(static_cast<std::size_t>(ranks), std::vector<float>(kTotal));
    for (auto& input : inputs)
      for (float& x : input) x = std::ldexp(number(random), static_cast<int>(random() % 20));
    std::vector<std::uint32_t> wanted(kTotal);
    for (std::size_t i = 0; i < kTotal; ++i)
      wanted[i] = std::bit_cast<std::uint32_t>(canonical_sum<float>(
          0, ranks, [&](std::int32_t r) { return inputs[static_cast<std::size_t>(r)][i]; }, [](float a, float b) { return a + b; }));
    for (const Method method : kMethods) {
      const Problem p{Collective::all_reduce, ranks, 0, method};
      if (method == Method::ring || !refusal(p).empty()) continue;
      std::vector<std::vector<float>> outputs(static_cast<std::size_t>(ranks), std::vector<float>(kTotal));
      const std::vector<Schedule> schedules = all_of(p);
      run_ranks(schedules, inputs, outputs, block_of(kTotal, schedules[0].blocks), sum_by<float>([](float a, float b) { return a + b; }));
      for (const auto& output : outputs)
        for (std::size_t i = 0; i < kTotal; ++i) ASSERT_EQ(std::bit_cast<std::uint32_t>(output[i]), wanted[i]) << say(p) << ", element " << i;
    }
  }
}

TEST(Schedules, NobodyWaitsForEver) {
  for (int ranks = 1; ranks <= 64; ++ranks) for_each_problem(ranks, [&](const Problem& p) { EXPECT_NO_THROW(simulate(all_of(p), 4, {})) << say(p); });
  for (const auto& [method, ranks] : {std::pair{Method::tree, 1000}, {Method::ring, 1000}, {Method::direct, 300}, {Method::one_shot, 300}}) {
    const Problem p{Collective::all_reduce, ranks, 0, method};
    EXPECT_NO_THROW(simulate(all_of(p), 4, {})) << say(p);
  }
  EXPECT_NO_THROW(simulate(all_of({Collective::all_reduce, 1024, 0, Method::halving}), 4, {}));
}

TEST(Schedules, TrafficIsWhatTheFormulasSay) {
  for (const std::int64_t n : {1, 2, 3, 4, 7, 8, 16, 33}) {
    const int ranks = static_cast<int>(n);
    auto sent = [&](Collective collective, Method method, int root = 0) { return blocks_sent(all_of({collective, ranks, root, method})); };
    // Blocks of n, but where a block is all there is.
    EXPECT_EQ(sent(Collective::all_reduce, Method::one_shot), n * (n - 1));
    EXPECT_EQ(sent(Collective::all_reduce, Method::direct), 2 * n * (n - 1));
    EXPECT_EQ(sent(Collective::all_reduce, Method::ring), 2 * n * (n - 1));
    EXPECT_EQ(sent(Collective::all_reduce, Method::tree), 2 * (n - 1));
    if (std::has_single_bit(static_cast<std::uint64_t>(n))) {
      EXPECT_EQ(sent(Collective::all_reduce, Method::halving), 2 * n * (n - 1));
    }
    EXPECT_EQ(sent(Collective::reduce_scatter, Method::direct), n * (n - 1));
    EXPECT_EQ(sent(Collective::all_gather, Method::direct), n * (n - 1));
    EXPECT_EQ(sent(Collective::all_to_all, Method::direct), n * (n - 1));
    EXPECT_EQ(sent(Collective::gather, Method::direct), n - 1);
    EXPECT_EQ(sent(Collective::scatter, Method::direct, ranks - 1), n - 1);
    EXPECT_EQ(sent(Collective::broadcast, Method::tree, ranks / 2), n - 1);
    EXPECT_EQ(sent(Collective::reduce, Method::tree), n - 1);
    EXPECT_EQ(sent(Collective::reduce, Method::one_shot, ranks - 1), n - 1);
  }
}

TEST(Schedules, TheClockSaysWhatTheFormulasSay) {
  const WayCosts link{.round_us = 5, .memory_us_per_byte = 0.001, .add_us_per_byte = 0.0003};
  const double a = link.round_us, b = link.memory_us_per_byte, g = link.add_us_per_byte;
  constexpr std::size_t kBytes = 1 << 20;
  for (const int n : {2, 4, 8, 16}) {
    const double s = kBytes, part = s / n, rounds = std::countr_zero(static_cast<unsigned>(n));
    auto last = [&](Method method, std::size_t block) {
      const std::vector<double> ends = simulate(all_of({Collective::all_reduce, n, 0, method}), block, link);
      return *std::max_element(ends.begin(), ends.end());
    };
    EXPECT_NEAR(last(Method::ring, kBytes / static_cast<std::size_t>(n)), 2 * (n - 1) * (a + part * b) + (n - 1) * part * g, 1e-6 * s) << n;
    // A block goes from scratch memory to the output.
    EXPECT_NEAR(last(Method::halving, kBytes / static_cast<std::size_t>(n)), 2 * rounds * a + 2 * (n - 1) * part * b + (n - 1) * part * g + part * g, 1e-6 * s)
        << n;
    EXPECT_NEAR(last(Method::tree, kBytes), 2 * rounds * (a + s * b) + rounds * s * g + s * g, 1e-6 * s) << n;
    EXPECT_NEAR(last(Method::direct, kBytes / static_cast<std::size_t>(n)), 2 * (a + (n - 1) * part * b) + (n - 1) * part * g, 1e-6 * s) << n;
    EXPECT_NEAR(last(Method::one_shot, kBytes), a + (n - 1) * s * b + (n - 1) * s * g, 1e-6 * s) << n;
  }
}

TEST(Schedules, EffortsAreWhatTheClockSays) {
  constexpr std::size_t kBytes = 1 << 10;
  for (const int ranks : {1, 2, 3, 4, 5, 8, 13, 16, 33, 64})
    for_each_problem(ranks, [&](const Problem& p) {
      const std::vector<Schedule> all = all_of(p);
      auto last = [&](const WayCosts& link) {
        const std::vector<double> ends = simulate(all, kBytes, link);
        return *std::max_element(ends.begin(), ends.end());
      };
      // A schedule's blocks are the bytes, or a share of them.
      const bool is_whole = p.collective == Collective::all_reduce || p.collective == Collective::reduce || p.collective == Collective::broadcast;
      const double bytes = kBytes * static_cast<double>(is_whole ? all[0].blocks : ranks);
      const Effort effort = effort_of(p, bytes);
      // Trees that are not full are counted as full ones, and who adds most in one need not be who ends last.
      const bool is_full =
          std::has_single_bit(static_cast<unsigned>(ranks)) || p.method == Method::direct || p.method == Method::one_shot || p.method == Method::ring;
      const double high = is_full ? 0 : 2;
      auto expect = [&](double clock, double counted, double allowed, const char* what) {
        EXPECT_LE(clock, counted + 1e-6 * bytes) << what << " of " << say(p);
        EXPECT_GE(clock + allowed + 1e-6 * bytes, counted) << what << " of " << say(p);
      };
      expect(last({.round_us = 1}), effort.rounds, high, "rounds");
      expect(last({.memory_us_per_byte = 1}), effort.moved, high * bytes, "bytes");
      expect(last({.add_us_per_byte = 1}), effort.added, bytes, "sums");
    });
}

TEST(Schedules, ALateRankMakesThoseWaitWhoNeedIt) {
  const Problem p{Collective::all_reduce, 8, 0, Method::direct};
  std::vector<double> late(8, 0.0);
  late[3] = 1000;
  const WayCosts link{.round_us = 1, .memory_us_per_byte = 0.001};
  for (const double end : simulate(all_of(p), 1024, link, late)) EXPECT_GE(end, 1001);
  // What a rank sends needs nobody who is late behind it.
  late.assign(8, 0.0), late[7] = 1000;
  const std::vector<double> ends = simulate(all_of({Collective::broadcast, 8, 0, Method::tree}), 1024, link, late);
  EXPECT_LT(ends[5], 1000);
  EXPECT_GT(ends[7], 1000);
}

TEST(Schedules, PlantedFaultsAreFound) {
  for (const Method method : {Method::one_shot, Method::direct, Method::tree, Method::halving, Method::ring})
    for (const StepKind kind : {StepKind::send, StepKind::receive}) {
      std::vector<Schedule> all = all_of({Collective::all_reduce, 8, 0, method});
      std::vector<ScheduleStep>& steps = all[5].steps;
      steps.erase(std::find_if(steps.begin(), steps.end(), [&](const ScheduleStep& s) { return s.kind == kind; }));
      EXPECT_THROW(simulate(all, 4, {}), std::logic_error) << static_cast<int>(method);
    }
  std::vector<Schedule> all = all_of({Collective::all_reduce, 4, 0, Method::halving});
  std::find_if(all[1].steps.begin(), all[1].steps.end(), [](const ScheduleStep& s) { return s.kind == StepKind::send; })->blocks = 1;
  EXPECT_THROW(simulate(all, 4, {}), std::logic_error);
}

TEST(Schedules, WhatMakesNoSenseIsRefused) {
  EXPECT_EQ(refusal({Collective::all_reduce, 6, 0, Method::halving}), "halving takes a power of two of ranks");
  EXPECT_EQ(refusal({Collective::broadcast, 6, 0, Method::ring}), "ring does all_reduce alone");
  EXPECT_THROW(schedule_of({Collective::all_reduce, 6, 0, Method::halving}, 0), std::invalid_argument);
  EXPECT_THROW(schedule_of({Collective::all_reduce, 4, 0, Method::direct}, 4), std::invalid_argument);
  EXPECT_THROW(schedule_of({Collective::reduce, 4, 4, Method::tree}, 0), std::invalid_argument);
  EXPECT_THROW(schedule_of({Collective::reduce, 0, 0, Method::tree}, 0), std::invalid_argument);
}

}  // namespace
