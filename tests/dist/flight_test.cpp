// SPDX-License-Identifier: Apache-2.0
// Flight recorders: what a ring keeps of calls, of threads, of processes that are killed; what its files are refused for; dumps; and whom the analysis blames.
#include "dist/flight_analysis.hpp"
#include "dist/flight_dump.hpp"
#include "dist/flight_program.hpp"
#include "runtime/pickle.hpp"

#include <clutch/error.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <source_location>
#include <string>
#include <thread>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace clutch::dist::detail;
using clutch::DType, clutch::Error, clutch::ErrorCode, clutch::testing::FlightCaller;
using Kind = FlightFinding::Kind;
namespace fs = std::filesystem;

/// A folder of the test's own.
class Flight : public ::testing::Test {
 protected:
  Flight() : folder(fs::temp_directory_path() / fmt::format("clutch_flight_{}", ::getpid())) { fs::create_directories(folder); }
  ~Flight() override { fs::remove_all(folder); }
  fs::path folder;
};

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write_bytes(const fs::path& file, const std::string& bytes) { std::ofstream(file, std::ios::binary) << bytes; }

FlightImage made(const std::string& fault, int rank) {
  FlightRing ring({.rank = rank, .world_size = 4});
  FlightCaller f(ring, rank);
  clutch::testing::flight_program(fault, f);
  FlightImage image = ring.image();
  image.taken_ns = 0;  // nothing comes later
  return image;
}
std::vector<FlightImage> made(const std::string& fault) {
  std::vector<FlightImage> images;
  for (int rank = 0; rank < 4; ++rank) images.push_back(made(fault, rank));
  return images;
}

template <class F>
ErrorCode refused(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code();
  }
  return ErrorCode::ok;
}

TEST_F(Flight, KeepsAllOfACall) {
  FlightRing ring({.file = folder / "ring", .records = 10, .rank = 3, .world_size = 8});
  ring.group(7, "tp", "tensor parallel", std::vector<std::int32_t>{1, 3, 5, 7});
  ring.clock_offset(1'000'000'000'000);
  const std::vector<std::int64_t> a{2, 3, 4}, b{1, std::int64_t{1} << 40}, c{};
  const std::span<const std::int64_t> in[] = {a, b}, out[] = {c};
  const auto before = std::chrono::system_clock::now().time_since_epoch();
  FlightCall call{.op = FlightOp::reduce,
                  .group = 7,
                  .collective_seq = 11,
                  .p2p_seq = 12,
                  .op_id = 13,
                  .batch = 14,
                  .in_dtype = DType::bf16,
                  .out_dtype = {},
                  .in = in,
                  .out = out,
                  .reduce = FlightReduce::premul_sum,
                  .root = 2,
                  .peer = -1,
                  .tag = -5,
                  .timeout_ms = 600000};
  const std::uint64_t id = ring.begin(call);
  EXPECT_EQ(id, 0u);
  ring.started(id);
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  ring.completed(id);
  const std::uint64_t lost = ring.begin({.op = FlightOp::recv, .group = 7, .where = {}});
  ring.matched(lost, 1, 4);
  ring.failed(lost, "a text that is longer than a record has space for");
  for (const FlightImage& image : {ring.image(), FlightRing::read(folder / "ring")}) {
    EXPECT_EQ(image.rank, 3);
    EXPECT_EQ(image.world_size, 8);
    EXPECT_EQ(image.process_id, static_cast<std::uint64_t>(::getpid()));
    EXPECT_EQ(image.process, FlightProcess::running);
    EXPECT_FALSE(image.host.empty());
    EXPECT_EQ(image.library.substr(0, 7), "clutch ");
    EXPECT_EQ(image.capacity, 10u);
    EXPECT_EQ(image.begun, 2u);
    EXPECT_EQ(image.torn, 0u);
    ASSERT_EQ(image.groups.size(), 1u);
    EXPECT_EQ(image.groups[0], (FlightGroup{7, "tp", "tensor parallel", {1, 3, 5, 7}, true}));
    ASSERT_EQ(image.records.size(), 2u);
    const FlightRecord& r = image.records[0];
    EXPECT_EQ(r.id, 0u);
    EXPECT_EQ(r.group, 7u);
    EXPECT_EQ(std::tuple(r.collective_seq, r.p2p_seq, r.op_id, r.batch), std::tuple(11u, 12u, 13u, 14u));
    EXPECT_EQ(r.op, FlightOp::reduce);
    EXPECT_EQ(r.reduce, FlightReduce::premul_sum);
    EXPECT_EQ(r.state, FlightState::completed);
    EXPECT_EQ(r.in.sizes, (FlightSizes{a, b}));
    EXPECT_EQ(r.in.count, 2u);
    EXPECT_FALSE(r.in.is_total);
    EXPECT_EQ(r.in.hash, hash_of({a, b}));
    EXPECT_EQ(r.in.dtype, DType::bf16);
    EXPECT_EQ(r.out.sizes, FlightSizes{{}});
    EXPECT_EQ(r.out.dtype, std::nullopt);
    EXPECT_EQ(std::tuple(r.root, r.peer, r.tag), std::tuple(2, -1, -5));
    EXPECT_EQ(r.timeout_ms, 600000);
    EXPECT_GT(r.thread, 0u);
    EXPECT_TRUE(r.file.ends_with("tests/dist/flight_test.cpp")) << r.file;
    EXPECT_EQ(r.line, call.where.line);
    EXPECT_EQ(r.function, "TestBody");
    const std::int64_t begun = std::chrono::duration_cast<std::chrono::nanoseconds>(before).count() + 1'000'000'000'000;
    EXPECT_NEAR(static_cast<double>(r.created_ns - begun), 0, 1e9);
    EXPECT_GE(r.started_ns, r.created_ns);
    EXPECT_GT(r.completed_ns - r.started_ns, 2'000'000);
    EXPECT_LT(r.completed_ns - r.started_ns, 2'000'000'000);
    EXPECT_EQ(image.records[1].state, FlightState::failed);
    EXPECT_EQ(image.records[1].why, std::string("a text that is longer than").substr(0, 24));
    EXPECT_EQ(std::pair(image.records[1].peer, image.records[1].p2p_seq), std::pair(1, std::uint64_t{4}));
    EXPECT_EQ(image.records[1].file, "");
  }
}

#ifdef __cpp_lib_source_location
TEST_F(Flight, TakesTheStandardsPlaces) {
  const FlightPlace place = std::source_location::current();
  EXPECT_EQ(place.line, static_cast<std::uint32_t>(__LINE__ - 1));
  EXPECT_TRUE(std::string_view(place.file).ends_with("flight_test.cpp"));
  EXPECT_NE(std::string_view(place.function).find("TakesTheStandardsPlaces"), std::string_view::npos);
}
#endif

TEST_F(Flight, SizesThatFillARecordBecomeATotal) {
  FlightRing ring({});
  auto record = [&](const FlightSizes& in, const FlightSizes& out) {
    const std::vector<std::span<const std::int64_t>> ins(in.begin(), in.end()), outs(out.begin(), out.end());
    ring.begin({.op = FlightOp::all_reduce, .in = ins, .out = outs});
    return ring.image().records.back();
  };
  const FlightSizes twelve(12, {5}), thirteen(13, {5}), eleven(11, {5}), huge(5000, {1, 2});
  FlightRecord r = record(twelve, {});
  EXPECT_FALSE(r.in.is_total);
  EXPECT_EQ(r.in.sizes, twelve);
  r = record(thirteen, {});
  EXPECT_TRUE(r.in.is_total);
  EXPECT_EQ(r.in.sizes, FlightSizes{{65}});
  EXPECT_EQ(r.in.count, 13u);
  EXPECT_EQ(r.in.hash, hash_of(thirteen));
  r = record({{7}}, eleven);
  EXPECT_EQ(r.in.sizes, FlightSizes{{7}});
  EXPECT_EQ(r.out.sizes, eleven);
  r = record({{7}}, thirteen);
  EXPECT_EQ(r.in.sizes, FlightSizes{{7}});
  EXPECT_EQ(r.out.sizes, FlightSizes{{65}});
  EXPECT_TRUE(r.out.is_total);
  r = record(huge, huge);
  EXPECT_TRUE(r.in.is_total && r.out.is_total);
  EXPECT_EQ(r.in.sizes, FlightSizes{{10000}});
  EXPECT_EQ(r.in.count, 4095u);
  EXPECT_EQ(r.in.hash, r.out.hash);
  const FlightSizes deep{std::vector<std::int64_t>(30, 1)};
  EXPECT_EQ(record(deep, {}).in.sizes, FlightSizes{{1}});
}

TEST_F(Flight, TheRingKeepsTheLastCalls) {
  FlightRing ring({.records = 7});
  std::uint64_t first = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const std::uint64_t id = ring.begin({.op = FlightOp::barrier, .collective_seq = i});
    EXPECT_EQ(id, i);
    if (i == 0) first = id;
  }
  // Its place is another call's by now.
  ring.completed(first);
  ring.failed(FlightRing::kNotRecorded, "no call");
  ring.completed(12345);
  const FlightImage image = ring.image();
  EXPECT_EQ(image.begun, 100u);
  ASSERT_EQ(image.records.size(), 7u);
  for (std::uint64_t i = 0; i < 7; ++i) {
    EXPECT_EQ(image.records[i].id, 93 + i);
    EXPECT_EQ(image.records[i].collective_seq, 93 + i);
    EXPECT_EQ(image.records[i].state, FlightState::scheduled);
  }
}

TEST_F(Flight, Groups) {
  FlightRing ring({.rank = 1, .world_size = 1000});
  std::vector<std::int32_t> all(1000), odd, scattered;
  for (int i = 0; i < 1000; ++i) all[static_cast<std::size_t>(i)] = i;
  for (int i = 999; i > 0; i -= 2) odd.push_back(i);
  std::mt19937 random(5);
  std::vector<std::int32_t> shuffled = all;
  std::shuffle(shuffled.begin(), shuffled.end(), random);
  for (int i = 0; i < 40; ++i) scattered.push_back(shuffled[static_cast<std::size_t>(i)]);
  ring.group(0, "world", "default_pg", all);
  ring.group(1, "odd", std::string(100, 'd'), odd);
  ring.group(2, "shuffled", "", shuffled);
  ring.group(3, "scattered", "", scattered);
  ring.group(4, "", "", {});
  FlightImage image = ring.image();
  ASSERT_EQ(image.groups.size(), 5u);
  EXPECT_EQ(image.group(0)->ranks, all);
  EXPECT_EQ(image.group(1)->ranks, odd);
  EXPECT_EQ(image.group(1)->description, std::string(48, 'd'));
  EXPECT_FALSE(image.group(2)->has_ranks);
  EXPECT_TRUE(image.group(3)->has_ranks);
  EXPECT_EQ(image.group(3)->ranks, scattered);
  EXPECT_TRUE(image.group(4)->ranks.empty());
  EXPECT_EQ(image.group(5), nullptr);
  ring.group(1, "again", "", odd);
  EXPECT_EQ(ring.image().group(1)->name, "again");
  for (std::uint32_t i = 10; i < 400; ++i) ring.group(i, fmt::format("group {}", i), "", odd);
  image = ring.image();
  EXPECT_EQ(image.groups.size(), 256u);
  EXPECT_EQ(image.group(143), nullptr);
  ASSERT_NE(image.group(144), nullptr);
  EXPECT_EQ(image.group(399)->name, "group 399");
}

TEST_F(Flight, SourcesOutliveTheTable) {
  FlightRing ring({.records = 4});
  for (int i = 0; i < 20000; ++i) {
    ring.begin({.op = FlightOp::barrier});
    ring.begin({.op = FlightOp::barrier});
  }
  for (const FlightRecord& r : ring.image().records) EXPECT_TRUE(r.file.ends_with("flight_test.cpp"));
}

/// Fields that all follow from one number, so that a mixture of two records is seen.
void record_number(FlightRing& ring, std::uint64_t n, int ends) {
  const std::vector<std::int64_t> sizes{static_cast<std::int64_t>(n), static_cast<std::int64_t>(n << 33 | 5)};
  const std::span<const std::int64_t> in[] = {sizes};
  const auto small = static_cast<std::int32_t>(n & 0xfffffff);
  const std::uint64_t id = ring.begin({.op = static_cast<FlightOp>(n % kFlightOpCount),
                                       .group = static_cast<std::uint32_t>(n),
                                       .collective_seq = 3 * n,
                                       .p2p_seq = 5 * n,
                                       .op_id = n,
                                       .batch = ~n,
                                       .in_dtype = static_cast<DType>(n % clutch::kDTypeCount),
                                       .in = in,
                                       .out = in,
                                       .reduce = static_cast<FlightReduce>(n % kFlightReduceCount),
                                       .root = small,
                                       .peer = small + 1,
                                       .tag = small + 2,
                                       .timeout_ms = small + 3});
  if (ends > 0) ring.started(id);
  if (ends > 1) ring.completed(id);
  if (ends > 2) ring.failed(id, fmt::format("{:x}", n & 0xffffffffff));
}
::testing::AssertionResult is_whole(const FlightRecord& r) {
  const std::uint64_t n = r.op_id;
  const auto small = static_cast<std::int32_t>(n & 0xfffffff);
  const FlightSizes sizes{{static_cast<std::int64_t>(n), static_cast<std::int64_t>(n << 33 | 5)}};
  const bool same = r.op == static_cast<FlightOp>(n % kFlightOpCount) && r.group == static_cast<std::uint32_t>(n) && r.collective_seq == 3 * n &&
                    r.p2p_seq == 5 * n && r.batch == ~n && r.in.dtype == static_cast<DType>(n % clutch::kDTypeCount) && r.in.sizes == sizes &&
                    r.out.sizes == sizes && r.in.hash == hash_of(sizes) && r.reduce == static_cast<FlightReduce>(n % kFlightReduceCount) && r.root == small &&
                    r.peer == small + 1 && r.tag == small + 2 && r.timeout_ms == small + 3 && r.created_ns > 0 && r.file.ends_with("flight_test.cpp");
  const bool timed = (r.state == FlightState::scheduled || r.started_ns >= r.created_ns) &&
                     (r.state != FlightState::completed || r.completed_ns >= r.started_ns) &&
                     (r.state != FlightState::failed || r.why == fmt::format("{:x}", n & 0xffffffffff));
  if (same && timed) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "record " << r.id << " of number " << n << " is mixed: " << describe(r) << " " << r.why << " " << r.created_ns << " "
                                       << r.started_ns << " " << r.completed_ns;
}

TEST_F(Flight, ACallFromANewPlaceIsReadWithIt) {
  for (int round = 0; round < 20; ++round) {
    FlightRing ring({.records = 500});
    std::atomic<bool> ended{false};
    std::jthread caller([&] {
      for (std::uint32_t line = 1; line <= 500; ++line) ring.begin({.op = FlightOp::barrier, .where = FlightPlace(__FILE__, "caller", line)});
      ended = true;
    });
    bool last = false;
    do {
      last = ended;
      for (const FlightRecord& r : ring.image().records) {
        ASSERT_TRUE(r.file.ends_with("flight_test.cpp")) << r.id;
        ASSERT_EQ(r.line, r.id + 1);
      }
    } while (!last);
  }
}

TEST_F(Flight, EightThreadsRecordWhileOthersRead) {
  FlightRing ring({.file = folder / "ring", .records = 100});
  constexpr std::uint64_t kEach = 20000;
  std::atomic<int> running{8};
  std::vector<std::jthread> threads;
  for (std::uint64_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < kEach; ++i) {
        record_number(ring, t << 32 | i, static_cast<int>(i % 4));
        if (i % 256 == 0) ring.group(static_cast<std::uint32_t>(t), fmt::format("g{}", i), "", std::vector<std::int32_t>{0});
      }
      --running;
    });
  std::size_t images = 0, records = 0;
  do {
    for (const FlightImage& image : {ring.image(), FlightRing::read(folder / "ring")}) {
      ++images;
      records += image.records.size();
      for (const FlightRecord& r : image.records) ASSERT_TRUE(is_whole(r));
    }
  } while (running > 0);
  threads.clear();
  const FlightImage image = ring.image();
  EXPECT_EQ(image.begun, 8 * kEach);
  EXPECT_EQ(image.torn, 0u);
  EXPECT_GE(image.records.size(), 90u);
  EXPECT_GT(records, images * 10);
  std::set<std::uint64_t> numbers;
  for (const FlightRecord& r : image.records) EXPECT_TRUE(numbers.insert(r.op_id).second);
}

TEST_F(Flight, AKilledProcessLeavesItsRing) {
  std::mt19937 random(7);
  std::uint64_t records = 0;
  for (int round = 0; round < 12; ++round) {
    const fs::path file = folder / fmt::format("ring_{}", round);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      FlightRing ring({.file = file, .records = 50, .rank = 1, .world_size = 2});
      ring.group(0, "0", "default_pg", std::vector<std::int32_t>{0, 1});
      std::vector<std::thread> threads;
      for (std::uint64_t t = 0; t < 3; ++t)
        threads.emplace_back([&ring, t] {
          for (std::uint64_t i = 0;; ++i) record_number(ring, t << 32 | (i & 0xffffffff), static_cast<int>(i % 4));
        });
      for (std::thread& t : threads) t.join();
    }
    // It is there as soon as it is whole.
    while (!fs::exists(file)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::microseconds(5000 + random() % 20000));
    EXPECT_EQ(FlightRing::read(file).process, FlightProcess::running);
    ::kill(child, SIGKILL);
    // Until it was waited for, too.
    while (FlightRing::read(file).process == FlightProcess::running) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ::waitpid(child, nullptr, 0);
    const FlightImage image = FlightRing::read(file);
    EXPECT_EQ(image.process, FlightProcess::lost);
    EXPECT_EQ(image.taken_ns, 0);
    EXPECT_EQ(image.process_id, static_cast<std::uint64_t>(child));
    EXPECT_LE(image.torn, 3u);
    EXPECT_EQ(image.group(0)->ranks, (std::vector<std::int32_t>{0, 1}));
    for (const FlightRecord& r : image.records) EXPECT_TRUE(is_whole(r) || r.state == FlightState::failed);
    records += image.records.size();
  }
  EXPECT_GT(records, 100u);
}

TEST_F(Flight, OrderlyEndsAndForks) {
  const fs::path file = folder / "ring";
  {
    FlightRing ring({.file = file});
    const std::uint64_t id = ring.begin({.op = FlightOp::barrier});
    const pid_t child = ::fork();
    if (child == 0) {
      ring.completed(id);
      ring.group(1, "child", "", {});
      const bool recorded = ring.begin({.op = FlightOp::barrier}) != FlightRing::kNotRecorded;
      ring.~FlightRing();
      ::_exit(recorded ? 1 : 0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    const FlightImage image = FlightRing::read(file);
    EXPECT_EQ(image.process, FlightProcess::running);
    EXPECT_EQ(image.begun, 1u);
    EXPECT_TRUE(image.groups.empty());
    EXPECT_EQ(image.records.at(0).state, FlightState::scheduled);
  }
  EXPECT_EQ(FlightRing::read(file).process, FlightProcess::closed);
  // A new ring takes the old one's place; who reads the old one goes on.
  FlightRing ring({.file = file});
  EXPECT_EQ(FlightRing::read(file).begun, 0u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
}

TEST_F(Flight, RefusesWhatItCannotBe) {
  EXPECT_EQ(refused([&] { FlightRing({.records = 0}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(refused([&] { FlightRing({.records = (1u << 20) + 1}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(refused([&] { FlightRing({.rank = 2, .world_size = 2}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(refused([&] { FlightRing({.rank = -1}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(refused([&] { FlightRing({.file = folder / "absent" / "ring"}); }), ErrorCode::io);
  EXPECT_EQ(refused([&] { FlightRing::read(folder / "absent"); }), ErrorCode::io);
  EXPECT_EQ(refused([&] { FlightRing::read(folder); }), ErrorCode::io);
  EXPECT_EQ(refused([&] { read_flight(folder / "absent"); }), ErrorCode::io);
  write_bytes(folder / "empty", "");
  EXPECT_EQ(refused([&] { FlightRing::read(folder / "empty"); }), ErrorCode::invalid_argument);
  EXPECT_EQ(refused([&] { read_flight(folder / "empty"); }), ErrorCode::invalid_argument);
  EXPECT_EQ(refused([&] { write_flight(folder / "absent" / "dump", "x"); }), ErrorCode::io);
  EXPECT_EQ(refused([&] { analyze({}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(refused([&] { analyze({FlightImage{}, FlightImage{}}); }), ErrorCode::invalid_argument);
}

/// A ring's file with four records and its place of record `i`.
std::string ring_file(const fs::path& file) {
  FlightRing ring({.file = file, .records = 4, .rank = 1, .world_size = 4});
  FlightCaller f(ring, 1);
  f.group(0, "0", "default_pg", {0, 1, 2, 3});
  for (int i = 0; i < 6; ++i) f.call(FlightOp::all_reduce, {{8, i}}, {{8, i}}, {.reduce = FlightReduce::sum});
  return bytes_of(file);
}
constexpr std::size_t kRecordBytes = 256;

TEST_F(Flight, TornRecordsAreSkipped) {
  const std::string whole = ring_file(folder / "ring");
  const std::size_t records = whole.size() - 4 * kRecordBytes;
  auto with_phase = [&](std::size_t slot, char phase) {
    std::string bytes = whole;
    char& low = bytes[records + slot * kRecordBytes];
    low = static_cast<char>((low & ~3) | phase);
    write_bytes(folder / "torn", bytes);
    return FlightRing::read(folder / "torn");
  };
  const FlightImage all = FlightRing::read(folder / "ring");
  ASSERT_EQ(all.records.size(), 4u);
  EXPECT_EQ(all.records.front().id, 2u);
  // Being written: slot 1 has call 5.
  FlightImage image = with_phase(1, 1);
  EXPECT_EQ(image.torn, 1u);
  ASSERT_EQ(image.records.size(), 3u);
  EXPECT_EQ(image.records.back().id, 4u);
  // Never written.
  image = with_phase(1, 0);
  EXPECT_EQ(image.torn, 0u);
  EXPECT_EQ(image.records.size(), 3u);
  // Killed while the state changed: the call is there.
  image = with_phase(1, 2);
  EXPECT_EQ(image.torn, 0u);
  EXPECT_EQ(image.records, all.records);
}

/// Changes some bytes, or cuts the end, or puts some in.
std::string damaged(std::string bytes, std::mt19937_64& random) {
  auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % std::max<std::size_t>(n, 1)); };
  for (std::size_t edits = 1 + pick(4); edits > 0 && !bytes.empty(); --edits) {
    const std::size_t at = pick(bytes.size());
    switch (random() % 8) {
      case 0: bytes.resize(at); break;
      case 1: bytes.insert(at, bytes.substr(pick(bytes.size()), pick(20))); break;
      case 2: bytes.erase(at, pick(9)); break;
      case 3:
        for (std::size_t i = at / 8 * 8; i < std::min(at / 8 * 8 + 8, bytes.size()); ++i) bytes[i] = '\xff';
        break;
      default: bytes[at] = static_cast<char>(random());
    }
  }
  return bytes;
}

/// Each is taken or refused with one of the two codes; what is taken can be analysed, dumped and read again.
template <class Read>
void survives(const std::string& valid, Read&& read, int times, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  int taken = 0, refused_ones = 0;
  for (int i = 0; i < times; ++i) {
    std::string bytes = damaged(valid, random);
    try {
      FlightImage image = read(bytes);
      ++taken;
      const FlightAnalysis analysis = analyze({image, made("none", image.rank == 3 ? 2 : 3)});
      EXPECT_FALSE(analysis.text().empty());
      EXPECT_FALSE(torch_pickle_of(image).empty());
      EXPECT_EQ(image_of_json(json_of(image)), image);
    } catch (const Error& e) {
      ++refused_ones;
      EXPECT_TRUE(e.code() == ErrorCode::io || e.code() == ErrorCode::invalid_argument) << e.what();
    }
  }
  EXPECT_GT(refused_ones, times / 20);
  EXPECT_GT(taken, 0);
}

TEST_F(Flight, DamagedRingsAreTakenOrRefused) {
  const std::string whole = ring_file(folder / "ring");
  auto read = [&](const std::string& bytes) {
    write_bytes(folder / "damaged", bytes);
    return FlightRing::read(folder / "damaged");
  };
  survives(whole, read, 150, 1);
  // Where it hurts: the header, the first group and the records.
  const std::size_t records = whole.size() - 4 * kRecordBytes;
  std::mt19937_64 random(2);
  for (int i = 0; i < 1000; ++i) {
    std::string bytes = whole;
    for (std::uint64_t flips = 1 + random() % 3; flips > 0; --flips) {
      const std::size_t at = random() % 3 == 0 ? random() % 1200 : random() % 2 == 0 ? 4096 + random() % 512 : records + random() % (4 * kRecordBytes);
      bytes[at] ^= static_cast<char>(1u << random() % 8);
      if (random() % 4 == 0) std::memset(&bytes[at / 8 * 8], random() % 2 == 0 ? 0xff : 0x7f, 8);
    }
    try {
      const FlightImage image = read(bytes);
      EXPECT_LE(image.records.size(), 4u);
      EXPECT_EQ(image_of_json(json_of(image)), image);
      torch_pickle_of(image);
      analyze({image}).text();
    } catch (const Error& e) {
      EXPECT_TRUE(e.code() == ErrorCode::io || e.code() == ErrorCode::invalid_argument) << e.what();
    }
  }
  for (std::size_t n = 0; n < whole.size(); n += n < 8192 ? 509 : 20011)
    EXPECT_EQ(refused([&] { read(whole.substr(0, n)); }), ErrorCode::invalid_argument) << n;
}

TEST_F(Flight, DamagedDumpsAreTakenOrRefused) {
  FlightImage image = made("failed", 1);
  survives(
      torch_pickle_of(image), [](const std::string& bytes) { return image_of_torch_pickle(std::as_bytes(std::span(bytes)), 1); }, 1500, 3);
  survives(
      json_of(image), [](const std::string& bytes) { return image_of_json(bytes); }, 1500, 4);
  EXPECT_EQ(refused([] { image_of_json(std::string(1 << 20, '[')); }), ErrorCode::invalid_argument);
}

TEST_F(Flight, JsonHasAll) {
  for (const char* fault : clutch::testing::kFlightFaults)
    for (const FlightImage& image : made(fault)) EXPECT_EQ(image_of_json(json_of(image)), image) << fault;
  FlightImage odd = made("none", 0);
  odd.host = "a \"host\"\\";
  odd.records[0].created_ns = -1;
  EXPECT_EQ(image_of_json(json_of(odd)), odd);
}

/// The encoding that PyTorch's analyzer takes, of each call of rank 1: name, sizes of in and of out.
TEST_F(Flight, TheEncodingOfEveryOp) {
  const std::string dump = torch_pickle_of(made("none", 1));
  const clutch::detail::PickleValue value = clutch::detail::read_pickle(std::as_bytes(std::span(dump)), "test");
  EXPECT_EQ(*value["version"].text(), "2.10");
  EXPECT_EQ(*value["pg_config"]["0"]["ranks"].text(), "[0, 1, 2, 3]");
  EXPECT_EQ(*value["pg_config"]["0"]["desc"].text(), "default_pg");
  EXPECT_EQ(*value["pg_config"]["tp0:p2p:0-1"]["ranks"].text(), "[0, 1]");
  EXPECT_EQ(*value["pg_config"]["0:p2p:1-2"]["ranks"].text(), "[1, 2]");
  EXPECT_EQ(*value["pg_config"]["0:p2p:1-1"]["ranks"].text(), "[1]");
  EXPECT_EQ(*value["pg_config"]["tp0:p2p:0-1"]["desc"].text(), "p2p");
  EXPECT_EQ(value["pg_status"]["0"]["last_enqueued_collective"].whole(0), 23u);
  EXPECT_EQ(static_cast<std::int64_t>(value["pg_status"]["2"]["last_completed_collective"].whole(0)), -1);
  std::vector<std::string> rows;
  std::set<std::uint64_t> ids;
  for (const auto& e : *value["entries"].list()) {
    auto sizes = [](const clutch::detail::PickleValue& all) {
      std::string text = "[";
      for (const auto& tensor : *all.list()) {
        text += text.size() > 1 ? " [" : "[";
        for (const auto& n : *tensor.list()) text += fmt::format("{}{}", text.back() == '[' ? "" : " ", n.whole(0));
        text += "]";
      }
      return text + "]";
    };
    rows.push_back(
        fmt::format("{} {} {} {}", *(*e["process_group"].list())[0].text(), *e["profiling_name"].text(), sizes(e["input_sizes"]), sizes(e["output_sizes"])));
    EXPECT_EQ(e["input_dtypes"].list()->size(), e["input_sizes"].list()->size());
    EXPECT_EQ(e["output_dtypes"].list()->size(), e["output_sizes"].list()->size());
    for (const auto& dtype : *e["input_dtypes"].list()) EXPECT_TRUE(*dtype.text() == "Float" || *dtype.text() == "Byte");
    EXPECT_EQ(*e["state"].text(), "completed");
    EXPECT_TRUE(e["frames"].list()->front()["filename"].text()->ends_with("flight_program.hpp"));
    EXPECT_TRUE(ids.insert(e["record_id"].whole(0)).second);
    const bool is_p2p = e["is_p2p"].number(0) != 0;
    EXPECT_EQ(e["p2p_seq_id"].whole(0), is_p2p ? (std::uint64_t{1} << 40) + e["collective_seq_id"].whole(0) : 0);
  }
  const std::vector<std::string> expected{
      "0 gloo:all_reduce [[1024]] [[1024]]",
      "0 gloo:broadcast [[8]] [[8]]",
      "0 gloo:all_gather_single [[8]] [[32]]",
      "0 gloo:reduce_scatter_single [[32]] [[8]]",
      "0 gloo:all_gather_v [[1] [2] [3] [4]] [[1] [2] [3] [4]]",
      "0 gloo:reduce_scatter_v [[1] [2] [3] [4]] [[1] [2] [3] [4]]",
      "0 gloo:all_to_all [[20]] [[25]]",
      "0 gloo:all_to_all_single [[8]] [[8]]",
      "0 gloo:gather [[8]] [[]]",
      "0 gloo:scatter [[4 8]] [[8]]",
      "0 gloo:gather [[]] [[]]",
      "0 gloo:scatter [[]] [[]]",
      "0 gloo:reduce [[8]] [[8]]",
      "0 gloo:barrier [] []",
      "0 gloo:allreduce_coalesced [[8] [9]] [[8] [9]]",
      "0 gloo:all_gather_into_tensor_coalesced [[8] [9]] [[32] [36]]",
      "0 gloo:reduce_scatter_tensor_coalesced [[32] [36]] [[8] [9]]",
      "0 gloo:all_to_all [[0]] [[0]]",
      "0 gloo:all_to_all [[0]] [[0]]",
      "0 gloo:new_window [] []",
      "0 gloo:split [] []",
      "0 gloo:allreduce_coalesced [[6560]] [[6560]]",
      "tp0 gloo:all_reduce [[64]] [[64]]",
      "tp0:p2p:0-1 gloo:send 1->0 [[32]] []",
      "tp0:p2p:0-1 gloo:recv 1<-0 [] [[32]]",
      "tp0:p2p:0-1 gloo:send 1->0 [[32]] []",
      "tp0:p2p:0-1 gloo:recv 1<-0 [] [[32]]",
      "0:p2p:0-1 gloo:recv 1<-0 [] [[3 4]]",
      "0:p2p:1-2 gloo:send 0->1 [[3 4]] []",
      "0:p2p:0-1 gloo:recv 1<-0 [] [[3 4]]",
      "0:p2p:1-2 gloo:send 0->1 [[3 4]] []",
      "0:p2p:1-1 gloo:send 0->0 [[2]] []",
      "0:p2p:1-1 gloo:recv 0<-0 [] [[2]]",
      "0 gloo:all_reduce [[5]] [[5]]",
  };
  EXPECT_EQ(rows, expected);
  // A message has one number on both sides.
  const std::string other = torch_pickle_of(made("none", 2));
  const clutch::detail::PickleValue of_two = clutch::detail::read_pickle(std::as_bytes(std::span(other)), "test");
  auto numbers = [](const clutch::detail::PickleValue& of, const char* group, const char* name) {
    std::set<std::uint64_t> all;
    for (const auto& e : *of["entries"].list())
      if (*(*e["process_group"].list())[0].text() == group && *e["profiling_name"].text() == name) all.insert(e["p2p_seq_id"].whole(0));
    return all;
  };
  EXPECT_EQ(numbers(value, "0:p2p:1-2", "gloo:send 0->1"), numbers(of_two, "0:p2p:1-2", "gloo:recv 1<-0"));
  EXPECT_EQ(numbers(value, "0:p2p:1-2", "gloo:send 0->1").size(), 2u);
}

struct Expected {
  const char* fault;
  Kind kind;
  std::vector<std::int32_t> culprits;
  const char* group;
  std::uint64_t seq;
  bool in_pickles = true;  ///< PyTorch's format has it
};
const std::vector<Expected>& expected_findings() {
  static const std::vector<Expected> all{
      {"message", Kind::message, {3}, "tp1", 2},
      {"group_missing", Kind::missing, {3}, "tp1", 1},
      {"totals", Kind::sizes, {}, "0", 7},
      {"late", Kind::missing, {2}, "0", 23},
      {"sizes", Kind::sizes, {1}, "0", 1},
      {"op", Kind::op, {2}, "0", 1},
      {"dtype", Kind::dtype, {0}, "0", 1},
      {"state", Kind::state, {1}, "0", 1},
      {"left_out", Kind::op, {1}, "0", 2},
      {"put_in", Kind::op, {3}, "0", 4},
      {"reduce", Kind::reduce, {3}, "0", 1},
      {"root", Kind::root, {2}, "0", 2},
      {"own_size", Kind::sizes, {2}, "0", 5, false},
      {"cycle", Kind::cycle, {}, "", 0},
      {"two_groups", Kind::cycle, {}, "", 0},
      {"alone", Kind::unmatched, {2}, "0", 1},
      {"failed", Kind::failed, {1}, "0", 0, false},
      {"timed_out", Kind::timed_out, {}, "0", 0, false},
      {"list", Kind::sizes, {1}, "0", 5},
  };
  return all;
}

TEST_F(Flight, BlamesTheRightRank) {
  EXPECT_EQ(expected_findings().size() + 1, clutch::testing::kFlightFaults.size());
  const FlightAnalysis clean = analyze(made("none"));
  EXPECT_EQ(clean.exit_code(), 0) << clean.text();
  EXPECT_EQ(clean.calls, 45u);
  EXPECT_TRUE(clean.notes.empty()) << clean.text();
  EXPECT_TRUE(clean.text().starts_with("nothing found"));
  for (const Expected& e : expected_findings()) {
    const std::vector<FlightImage> images = made(e.fault);
    std::vector<FlightImage> read;
    for (const FlightImage& image : images) {
      const std::string dump = torch_pickle_of(image);
      read.push_back(image_of_torch_pickle(std::as_bytes(std::span(dump)), image.rank));
    }
    for (const bool of_pickles : {false, true}) {
      const FlightAnalysis analysis = analyze(of_pickles ? read : images);
      if (of_pickles && !e.in_pickles) continue;
      EXPECT_EQ(analysis.exit_code(), 1) << e.fault;
      ASSERT_EQ(analysis.findings.size(), 1u) << e.fault << "\n" << analysis.text();
      const FlightFinding& f = analysis.findings[0];
      EXPECT_EQ(f.kind, e.kind) << e.fault << "\n" << analysis.text();
      EXPECT_EQ(f.culprits, e.culprits) << e.fault << "\n" << analysis.text();
      EXPECT_EQ(f.group, e.group) << e.fault;
      EXPECT_EQ(f.seq, e.seq) << e.fault;
      EXPECT_EQ(analysis.first_culprits(), e.culprits);
      // Where the call was made.
      EXPECT_NE(f.text.find("flight_program.hpp:"), std::string::npos) << e.fault << "\n" << f.text;
      const auto json = nlohmann::json::parse(analysis.json());
      EXPECT_EQ(json["exit_code"], 1);
      EXPECT_EQ(json["findings"][0]["kind"], name(e.kind));
      EXPECT_EQ(json["findings"][0]["culprits"], e.culprits);
    }
  }
  auto text_of = [](const char* fault) { return analyze(made(fault)).text(); };
  EXPECT_NE(text_of("left_out").find("rank 1 goes on as if it had left this call out"), std::string::npos);
  EXPECT_NE(text_of("put_in").find("rank 3 goes on as if it had put a call in before"), std::string::npos);
  EXPECT_NE(text_of("cycle").find("rank 2 waits for rank 0 in recv"), std::string::npos);
  EXPECT_EQ(analyze(made("cycle")).findings[0].ranks, (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_EQ(analyze(made("two_groups")).findings[0].ranks, (std::vector<std::int32_t>{0, 1}));
}

TEST_F(Flight, AnyRankIsBlamedThatDiffers) {
  // One rank of n makes another call at a random number; with two ranks it is a tie.
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    const int ranks = 2 + static_cast<int>(random() % 7), culprit = static_cast<int>(random() % static_cast<unsigned>(ranks)),
              at = static_cast<int>(random() % 10);
    const int what = static_cast<int>(random() % 4);
    std::vector<FlightImage> images;
    std::vector<std::int32_t> world(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; ++r) world[static_cast<std::size_t>(r)] = r;
    for (int r = 0; r < ranks; ++r) {
      FlightRing ring({.rank = r, .world_size = ranks});
      FlightCaller f(ring, r);
      f.group(0, "0", "default_pg", world);
      for (int i = 0; i < 10; ++i) {
        const bool wrong = r == culprit && i == at;
        if (wrong && what == 3) break;  // it stops there
        const std::int64_t n = wrong && what == 1 ? 9 : 8;
        f.call(wrong && what == 0 ? FlightOp::all_to_all : FlightOp::all_reduce, {{n}}, {{n}}, {.dtype = wrong && what == 2 ? DType::i32 : DType::f32});
      }
      images.push_back(ring.image());
      images.back().taken_ns = 0;
    }
    const FlightAnalysis analysis = analyze(images);
    ASSERT_EQ(analysis.findings.size(), 1u) << analysis.text();
    const FlightFinding& f = analysis.findings[0];
    constexpr Kind kKinds[] = {Kind::op, Kind::sizes, Kind::dtype, Kind::missing};
    EXPECT_EQ(f.kind, kKinds[what]) << analysis.text();
    EXPECT_EQ(f.seq, static_cast<std::uint64_t>(at + 1));
    if (what == 3 || ranks > 2)
      EXPECT_EQ(f.culprits, std::vector<std::int32_t>{culprit}) << analysis.text();
    else
      EXPECT_TRUE(f.is_tie) << analysis.text();
  }
}

TEST_F(Flight, RanksWithoutAFile) {
  std::vector<FlightImage> images = made("none");
  images.erase(images.begin() + 2);
  FlightAnalysis analysis = analyze(images);
  ASSERT_FALSE(analysis.findings.empty());
  EXPECT_EQ(analysis.findings.back().kind, Kind::no_file);
  EXPECT_EQ(analysis.findings.back().culprits, std::vector<std::int32_t>{2});
  images = made("late");
  images.erase(images.begin() + 2);
  analysis = analyze(images);
  EXPECT_EQ(analysis.first_culprits(), std::vector<std::int32_t>{2});
  ASSERT_EQ(analysis.notes.size(), 1u) << analysis.text();
  EXPECT_NE(analysis.notes[0].find("rank 2 may not have come"), std::string::npos) << analysis.notes[0];
}

TEST_F(Flight, RunningProcessesHaveTheirTime) {
  std::vector<FlightImage> images = made("late");
  std::int64_t latest = 0;
  for (const FlightImage& image : images)
    for (const FlightRecord& r : image.records) latest = std::max(latest, r.created_ns);
  for (FlightImage& image : images) image.taken_ns = latest + 1'000'000'000, image.process = FlightProcess::running;
  EXPECT_EQ(analyze(images).exit_code(), 0);
  EXPECT_EQ(analyze(images, {.patience_ns = 500'000'000}).first_culprits(), std::vector<std::int32_t>{2});
  // One that has ended will not come.
  images[2].taken_ns = 0, images[2].process = FlightProcess::lost;
  const FlightAnalysis analysis = analyze(images);
  EXPECT_EQ(analysis.first_culprits(), std::vector<std::int32_t>{2});
  EXPECT_EQ(analysis.findings.size(), 2u) << analysis.text();
}

/// Ranks whose rings begin at different calls.
TEST_F(Flight, RingsThatWentAroundAreComparedByWhatAllHave) {
  for (const bool wrong : {false, true}) {
    std::vector<FlightImage> images;
    for (int rank = 0; rank < 4; ++rank) {
      FlightRing ring({.records = 50, .rank = rank, .world_size = 4});
      FlightCaller f(ring, rank);
      f.group(0, "0", "default_pg", {0, 1, 2, 3});
      f.group(1, rank < 2 ? "tp0" : "tp1", "tensor_parallel", rank < 2 ? std::vector{0, 1} : std::vector{2, 3});
      f.group(2, "long ago", "", {0, 1, 2, 3});
      f.call(FlightOp::barrier, {}, {}, {.group = 2});
      for (int step = 0; step < 60; ++step) {
        f.call(FlightOp::all_reduce, {{step + 1}}, {{step + (wrong && rank == 3 && step == 58 ? 2 : 1)}}, {});
        for (int i = 0; i < (rank < 2 ? 1 : 3); ++i) f.call(FlightOp::all_gather, {{step + 1}}, {{2 * step + 2}}, {.group = 1});
        if (rank >= 2) f.message(rank == 2, rank == 2 ? 3 : 2, {step + 1}, {});
      }
      images.push_back(ring.image());
      images.back().taken_ns = 0;
    }
    const FlightAnalysis analysis = analyze(images);
    if (!wrong)
      EXPECT_EQ(analysis.exit_code(), 0) << analysis.text();
    else
      EXPECT_EQ(analysis.first_culprits(), std::vector<std::int32_t>{3}) << analysis.text();
    EXPECT_GT(analysis.calls, 50u);
    for (const FlightImage& image : aligned(images)) EXPECT_EQ(image.records.front().id, 0u);
  }
}

TEST_F(Flight, LatenessOnOneClock) {
  std::vector<FlightImage> images;
  for (int rank = 0; rank < 3; ++rank) {
    FlightImage image;
    image.rank = rank, image.world_size = 3;
    image.host = rank == 2 ? "far" : "near";
    image.groups = {{0, "0", "default_pg", {0, 1, 2}, true}};
    for (int i = 0; i < 9; ++i) {
      FlightRecord r;
      r.id = static_cast<std::uint64_t>(i), r.collective_seq = r.id + 1;
      r.state = FlightState::completed;
      const std::int64_t clock = rank == 2 ? 7'000'000 : 0;  // ahead
      r.created_ns = 1'000'000'000 + i * 1'000'000 + clock + (rank == 1 ? 20'000 + (i == 4 ? 300'000 : 0) : rank == 2 ? 5'000 : 0);
      r.started_ns = r.created_ns + 1000;
      r.completed_ns = 1'000'900'000 + i * 1'000'000 + clock + rank * 10;
      r.file = "train.cpp", r.line = static_cast<std::uint32_t>(i + 1);
      image.records.push_back(r);
    }
    images.push_back(std::move(image));
  }
  const FlightAnalysis analysis = analyze(images);
  ASSERT_EQ(analysis.lateness.size(), 3u);
  EXPECT_EQ(analysis.lateness[0].times_last, 0u);
  EXPECT_EQ(analysis.lateness[1].times_last, 9u);
  EXPECT_DOUBLE_EQ(analysis.lateness[1].median_us, 20);
  EXPECT_DOUBLE_EQ(analysis.lateness[1].max_us, 320);
  EXPECT_NE(analysis.lateness[1].worst.find("train.cpp:5"), std::string::npos);
  EXPECT_NEAR(analysis.lateness[2].median_us, 5, 0.1);
  EXPECT_NEAR(analysis.lateness[2].clock_shift_us, 7000, 0.1);
  EXPECT_EQ(analysis.exit_code(), 0);
}

/// A dump as PyTorch's NCCL backend writes it: no key of ours, names of its own.
TEST_F(Flight, DumpsOfPyTorch) {
  std::vector<FlightImage> images;
  for (int rank = 0; rank < 2; ++rank) {
    clutch::detail::PickleWriter p;
    p.begin_dict();
    p.text("version"), p.text("2.10");
    p.text("pg_config"), p.begin_dict();
    p.text("0"), p.begin_dict();
    for (const auto& [key, value] : {std::pair("name", "0"), std::pair("desc", "default_pg"), std::pair("ranks", "[0, 1]")}) p.text(key), p.text(value);
    p.end_dict(), p.end_dict();
    p.text("entries"), p.begin_list();
    int id = 0;
    auto entry = [&](const std::string& name, std::int64_t n, bool is_p2p) {
      p.begin_dict();
      p.text("record_id"), p.integer(std::int64_t{id++});
      p.text("process_group"), p.begin_tuple(), p.text("0"), p.text("default_pg"), p.end_tuple();
      p.text("collective_seq_id"), p.integer(std::int64_t{id});
      p.text("p2p_seq_id"), p.integer(std::int64_t{0});
      p.text("profiling_name"), p.text(name);
      p.text("time_created_ns"), p.integer(std::int64_t{1790000000000000000});
      for (const char* side : {"input", "output"}) {
        p.text(fmt::format("{}_sizes", side)), p.begin_list(), p.begin_list(), p.integer(n), p.end_list(), p.end_list();
        p.text(fmt::format("{}_dtypes", side)), p.begin_list(), p.text("BFloat16"), p.end_list();
      }
      p.text("state"), p.text("completed");
      p.text("time_discovered_started_ns"), p.none();
      p.text("time_discovered_completed_ns"), p.none();
      p.text("is_p2p"), p.boolean(is_p2p);
      p.end_dict();
    };
    entry("nccl:all_reduce", 8, false);
    entry("nccl:_all_gather_base", 8, false);
    entry(rank == 0 ? "nccl:send 0->1" : "nccl:recv 1<-0", rank == 0 ? 4 : 5, true);
    entry("nccl:coalesced", 0, true);
    p.end_list();
    p.end_dict();
    const std::string dump = p.finish();
    write_bytes(folder / fmt::format("nccl_trace_rank_{}", rank), dump);
    images.push_back(read_flight(folder / fmt::format("nccl_trace_rank_{}", rank)));
    EXPECT_EQ(images.back().rank, rank);
    EXPECT_EQ(images.back().records.size(), 3u);
    EXPECT_EQ(images.back().records[0].in.dtype, DType::bf16);
  }
  const FlightAnalysis analysis = analyze(images);
  ASSERT_EQ(analysis.findings.size(), 2u) << analysis.text();  // an all_gather whose output is no larger than its input, and the message
  EXPECT_EQ(analysis.findings[0].kind, Kind::sizes);
  EXPECT_EQ(analysis.findings[1].kind, Kind::message);
}

TEST_F(Flight, FilesAreKnownByTheirBegin) {
  const FlightImage image = made("late", 2);
  write_flight(folder / "a", torch_pickle_of(image));
  write_flight(folder / "b", json_of(image));
  { FlightRing ring({.file = folder / "c"}); }
  write_bytes(folder / "d", "text");
  EXPECT_TRUE(is_flight_file(folder / "a") && is_flight_file(folder / "b") && is_flight_file(folder / "c"));
  EXPECT_FALSE(is_flight_file(folder / "d") || is_flight_file(folder / "absent") || is_flight_file(folder));
  EXPECT_EQ(read_flight(folder / "a").rank, 2);
  EXPECT_EQ(read_flight(folder / "b"), image);
  EXPECT_EQ(read_flight(folder / "c").process, FlightProcess::closed);
}

/// 1000 ranks: what is compared grows with the calls, not with their square.
TEST_F(Flight, AThousandRanks) {
  std::vector<FlightImage> images;
  std::vector<std::int32_t> world(1000);
  for (int r = 0; r < 1000; ++r) world[static_cast<std::size_t>(r)] = r;
  for (int rank = 0; rank < 1000; ++rank) {
    FlightImage image;
    image.rank = rank, image.world_size = 1000;
    image.groups = {{0, "0", "default_pg", world, true}};
    for (std::uint64_t i = 0; i < (rank == 777 ? 49u : 50u); ++i) {
      FlightRecord r;
      r.id = i, r.collective_seq = i + 1, r.state = FlightState::completed, r.created_ns = static_cast<std::int64_t>(1000 + i);
      r.in.sizes = r.out.sizes = {{8}}, r.in.count = r.out.count = 1;
      image.records.push_back(std::move(r));
    }
    images.push_back(std::move(image));
  }
  const auto begin = std::chrono::steady_clock::now();
  const FlightAnalysis analysis = analyze(std::move(images));
  EXPECT_EQ(analysis.first_culprits(), std::vector<std::int32_t>{777});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_LT(analysis.findings[0].text.size(), 2000u);
}

}  // namespace
