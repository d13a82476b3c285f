// SPDX-License-Identifier: Apache-2.0
// Calls that begin together, and groups that go on without ranks.
#include "dist/ranks.hpp"

#include <numeric>

namespace clutch::testing { namespace {

using namespace dist;

TEST(Batches, MessagesInAnyOrderWaitForNoneOfTheOthers) {
  for_ranks({2, 3, 4}, [](const Group& g) {
    const int n = g.size(), me = g.rank();
    for (int round = 0; round < 5; ++round) {
      std::vector<Tensor> mine, theirs;
      Batch batch(g);
      // Each sends to all before it receives of any: one after the other they would wait for each other.
      for (int r = 0; r < n; ++r) {
        mine.push_back(full({50000}, 100 * me + r + round)), theirs.push_back(zeros({50000}));
        if (r != me) g.send(mine.back(), r, round);
      }
      for (int r = n - 1; r >= 0; --r)
        if (r != me) g.recv(theirs[static_cast<std::size_t>(r)], r, round);
      const Work work = batch.end();
      for (int r = 0; r < n; ++r) {
        if (r != me) {
          EXPECT_EQ(theirs[static_cast<std::size_t>(r)].to_host<float>()[49999], static_cast<float>(100 * r + me + round));
        }
      }
      work.synchronize();
      EXPECT_EQ(work.status(), Work::Status::done);
    }
  });
}

TEST(Batches, CollectivesAndWhatComesBehind) {
  for_ranks({1, 2, 3}, [](const Group& g) {
    const int n = g.size();
    std::vector<Tensor> tensors;
    Work work;
    {
      Batch batch(g, {.async = true});
      for (int i = 0; i < 30; ++i) {
        tensors.push_back(full({10 + 1000 * i}, i + g.rank()));
        g.all_reduce_(tensors.back());
      }
      work = batch.end();
    }
    std::atomic<int> calls = 0;
    work.on_done([&](Work::Status status) { calls += status == Work::Status::done ? 1 : 100; });
    work.wait();
    const int ranks = n * (n - 1) / 2;
    for (int i = 0; i < 30; ++i)
      EXPECT_EQ(tensors[static_cast<std::size_t>(i)].to_host<float>()[static_cast<std::size_t>(9 + 1000 * i)], static_cast<float>(n * i + ranks));
    work.synchronize();
    for (int spin = 0; calls == 0 && spin < 100000; ++spin) std::this_thread::yield();
    EXPECT_EQ(calls, 1);
    // Calls after it are single ones again.
    g.all_reduce_(tensors[0]).synchronize();
    Batch none(g);
    EXPECT_EQ(none.end().status(), Work::Status::done);
  });
}

TEST(Batches, TheFirstErrorIsTheirs) {
  for_ranks({2, 4}, [](const Group& g) {
    if (g.size() == 1) return;
    const Tensor fits = full({100}, 1), differs = zeros({100 + g.rank()});
    Batch batch(g);
    g.all_reduce_(fits), g.all_reduce_(differs);
    const Work work = batch.end();
    EXPECT_EQ(code_of([&] { work.synchronize(); }), ErrorCode::mismatch);
    EXPECT_EQ(work.status(), Work::Status::failed);
    EXPECT_EQ(code_of([] { current_stream().synchronize(); }), ErrorCode::stream_failed);
    current_stream().reset();
    g.all_reduce_(fits).synchronize();
    EXPECT_EQ(fits.to_host<float>()[0], static_cast<float>(g.size() * g.size()));
  });
}

TEST(Batches, WhatMakesNoSenseIsRefused) {
  for_ranks({2}, [](const Group& g) {
    EXPECT_EQ(code_of([] { Batch batch{Group()}; }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { Batch batch(g, {.algorithm = Algorithm::direct}); }), ErrorCode::invalid_argument);
    Batch batch(g);
    EXPECT_EQ(code_of([&] { Batch second(g); }), ErrorCode::invalid_argument);
    // A call that is refused is none of the batch.
    EXPECT_EQ(code_of([&] { g.all_reduce_(Tensor()); }), ErrorCode::invalid_argument);
    EXPECT_EQ(batch.end().status(), Work::Status::done);
    EXPECT_EQ(code_of([&] { batch.end(); }), ErrorCode::invalid_argument);
  });
}

TEST(Batches, GraphsMakeThemAgain) {
  for_ranks({2, 3}, [](const Group& g) {
    const int n = g.size();
    if (n == 1) return;
    const Tensor mine = full({3000}, g.rank()), theirs = zeros({3000}), sum = zeros({3000});
    const Stream stream = current_stream();
    stream.synchronize();
    Graph graph;
    graph.capture_begin(stream, {.mode = CaptureMode::relaxed});
    Batch batch(g);
    g.send(mine, (g.rank() + 1) % n), g.recv(theirs, (g.rank() + n - 1) % n);
    batch.end();
    add_(sum, theirs);
    graph.capture_end();
    const auto from = static_cast<float>((g.rank() + n - 1) % n);
    for (int replay = 1; replay <= 4; ++replay) {
      graph.replay(stream);
      EXPECT_EQ(sum.to_host<float>()[2999], from * static_cast<float>(replay));
    }
  });
}

TEST(LostRanks, OthersGoOnWithoutThem) {
  for_ranks({3, 4}, [](const Group& world) {
    if (world.size() < 3) return;
    const int last = world.size() - 1;
    const Group g = world.split(0, 0, "job");
    const Tensor x = full({1000}, 1);
    const Stream stream = current_stream();
    g.all_reduce_(x).synchronize();
    std::vector<int> survivors(static_cast<std::size_t>(last));
    std::iota(survivors.begin(), survivors.end(), 0);
    if (g.rank() == last) {
      // It comes when the others have given it up, and calls what they called.
      world.barrier().synchronize();
      EXPECT_EQ(code_of([&] { g.reconfigure(survivors, 1); }), ErrorCode::invalid_argument);
      g.set_timeout(std::chrono::milliseconds(100));
      // What the others had laid for it is there; then nobody comes.
      ErrorCode code = ErrorCode::ok;
      for (int i = 0; i < 2 && code == ErrorCode::ok; ++i) code = code_of([&] { g.all_reduce_(x).synchronize(); });
      EXPECT_EQ(code, ErrorCode::timed_out);
      stream.reset();
      world.barrier().synchronize();
      return;
    }
    EXPECT_EQ(code_of([&] { g.all_reduce_(x, {.timeout = std::chrono::milliseconds(150)}).synchronize(); }), ErrorCode::timed_out);
    stream.reset();
    EXPECT_EQ(g.lost(), std::vector<int>{last});
    g.set_timeout(std::chrono::milliseconds(150));
    std::vector<int> all = survivors;
    all.push_back(last);
    EXPECT_EQ(code_of([&] { g.reconfigure(all, 1); }), ErrorCode::timed_out);
    g.set_timeout(std::chrono::seconds(20));
    const Group rest = g.reconfigure(survivors, 2);
    EXPECT_EQ(rest.size(), last);
    EXPECT_EQ(rest.rank(), g.rank());
    EXPECT_FALSE(rest.failed());
    EXPECT_TRUE(rest.lost().empty());
    const Tensor y = full({1000}, rest.rank() + 1);
    rest.all_reduce_(y).synchronize();
    world.barrier().synchronize();
    for (int i = 0; i < 20; ++i) rest.all_reduce_(y, {.op = ReduceOp::avg});
    EXPECT_EQ(y.to_host<float>()[999], static_cast<float>(last * (last + 1)) / 2);
    world.barrier().synchronize();
  });
}

TEST(LostRanks, OthersAgreeOnWhoGoesOn) {
  for_ranks({3, 4, 5}, [](const Group& world) {
    if (world.size() < 3) return;
    const int last = world.size() - 1;
    const Group g = world.split(0, 0, "job");
    g.set_timeout(std::chrono::milliseconds(400));
    if (g.rank() == last) {
      // It comes when the others have given it up, and has their first words alone.
      world.barrier().synchronize();
      EXPECT_EQ(code_of([&] { g.reconfigure(1); }), ErrorCode::timed_out);
      EXPECT_NE(message_of([&] { g.reconfigure(2); }).find("no more than they came, rank " + std::to_string(last) + ": say who goes on"), std::string::npos);
      world.barrier().synchronize();
      return;
    }
    // One after the other, as ranks find out.
    std::this_thread::sleep_for(std::chrono::milliseconds(40 * g.rank()));
    const Group rest = g.reconfigure(1);
    ASSERT_EQ(rest.size(), last);
    EXPECT_EQ(rest.rank(), g.rank());
    const Tensor x = full({1000}, rest.rank() + 1);
    rest.all_reduce_(x).synchronize();
    EXPECT_EQ(x.to_host<float>()[999], static_cast<float>(last * (last + 1)) / 2);
    world.barrier().synchronize();
    world.barrier().synchronize();
    // All come to the next one.
    const Group again = rest.reconfigure(7);
    EXPECT_EQ(again.size(), last);
    const Tensor y = full({10}, 1);
    again.all_reduce_(y).synchronize();
    EXPECT_EQ(y.to_host<float>()[9], static_cast<float>(last));
  });
}

TEST(LostRanks, HalfOfTheRanksDoNotGoOnUnasked) {
  for_ranks({2, 4}, [](const Group& world) {
    if (world.size() % 2 != 0) return;
    const Group g = world.split(0, 0, "job");
    g.set_timeout(std::chrono::milliseconds(200));
    if (g.rank() < g.size() / 2) {
      EXPECT_EQ(code_of([&] { g.reconfigure(1); }), ErrorCode::timed_out);
    }
    world.barrier().synchronize();
  });
}

}}  // namespace clutch::testing
