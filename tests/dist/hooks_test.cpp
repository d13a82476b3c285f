// SPDX-License-Identifier: Apache-2.0
// Functions that groups call for their calls.
#include "dist/ranks.hpp"

#include <atomic>
#include <mutex>
#include <stdexcept>

namespace clutch::testing { namespace {

using namespace dist;

const std::vector<int> kRanks{1, 2, 3};

/// What hooks of one rank were told.
struct Told {
  std::mutex mutex;
  std::vector<std::pair<std::string, std::uint64_t>> called;
  std::vector<std::pair<std::string, Work::Status>> done;
  std::vector<CallInfo> infos;  // without their views

  Hook on_call(const Group& group) {
    return group.on_call([this](const CallInfo& info) {
      const std::lock_guard lock(mutex);
      called.emplace_back(info.kind, info.sequence);
      EXPECT_EQ(info.group, "test");
      infos.push_back(info);
      infos.back().kind = infos.back().group = {};
    });
  }
  Hook on_done(const Group& group) {
    return group.on_done([this](const CallInfo& info, Work::Status status) {
      const std::lock_guard lock(mutex);
      done.emplace_back(info.kind, status);
    });
  }
};

TEST(Hooks, AreToldOfCalls) {
  for_ranks(kRanks, [](const Group& group) {
    Told told;
    const Hook called = told.on_call(group), ended = told.on_done(group);
    const int n = group.size(), root = n - 1;
    const Tensor few = full({5}, 1), many = full({300000}, 1, {.dtype = DType::f64}), all = empty({5 * n});
    std::vector<Work> works;
    works.push_back(group.all_reduce_(few, {.op = ReduceOp::max}));
    const unsigned line = __LINE__ + 1;
    works.push_back(group.reduce_(many, root));
    works.push_back(group.all_gather_out(all, few, {.async = true}));
    works.push_back(group.broadcast_(few, root));
    works.push_back(group.barrier());
    for (const Work& work : works) work.synchronize();
    const std::vector<std::string> kinds{"all_reduce", "reduce", "all_gather", "broadcast", "barrier"};
    const std::lock_guard lock(told.mutex);
    ASSERT_EQ(told.called.size(), kinds.size());
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      EXPECT_EQ(told.called[i].first, kinds[i]);
      EXPECT_EQ(told.called[i].second, works[i].sequence());
    }
    EXPECT_EQ(told.infos[0].op, ReduceOp::max);
    EXPECT_EQ(told.infos[0].elements, 5U);
    EXPECT_EQ(told.infos[0].root, -1);
    EXPECT_EQ(told.infos[1].dtype, DType::f64);
    EXPECT_EQ(told.infos[1].root, root);
    EXPECT_EQ(told.infos[1].where.line, line);
    EXPECT_NE(std::string(told.infos[1].where.file).find("hooks_test"), std::string::npos);
    EXPECT_EQ(told.infos[4].algorithm, Algorithm::automatic);
    ASSERT_EQ(told.done.size(), kinds.size()) << "a call's function runs before its Work is done";
    for (const auto& [kind, status] : told.done) EXPECT_EQ(status, Work::Status::done) << kind;
  });
}

TEST(Hooks, AreToldOfMessages) {
  for_ranks({2, 3}, [](const Group& group) {
    if (group.size() < 2) return;
    Told told;
    const Hook called = told.on_call(group);
    const Tensor x = full({4}, 1), y = empty({4});
    const int n = group.size(), next = (group.rank() + 1) % n, before = (group.rank() + n - 1) % n;
    const Work sent = group.send(x, next, 3, {.async = true});
    group.recv(y, before, 3).synchronize();
    sent.synchronize();
    const std::lock_guard lock(told.mutex);
    ASSERT_EQ(told.called.size(), 2U);
    EXPECT_EQ(told.called[0].first, "send");
    EXPECT_EQ(told.called[1].first, "recv");
    EXPECT_EQ(told.infos[0].peer, next);
    EXPECT_EQ(told.infos[1].peer, before);
  });
}

TEST(Hooks, AreToldOfCallsOfBatchesAndReplays) {
  for_ranks(kRanks, [](const Group& group) {
    Told told;
    const Hook called = told.on_call(group);
    const Tensor x = full({4}, 1), y = full({4}, 2);
    Batch batch(group);
    group.all_reduce_(x), group.broadcast_(y, 0);
    EXPECT_TRUE(told.called.empty()) << "calls of a Batch begin at its end";
    batch.end().synchronize();
    EXPECT_EQ(told.called.size(), 2U);
    const Stream stream(default_device());
    Graph graph;
    {
      const GraphCapture capture(graph, stream, {.mode = CaptureMode::relaxed});  // other ranks wait meanwhile
      group.all_reduce_(x, {.stream = stream});
    }
    EXPECT_EQ(told.called.size(), 2U);
    for (int i = 0; i < 3; ++i) graph.replay(stream);
    stream.synchronize();
    ASSERT_EQ(told.called.size(), 5U);
    EXPECT_EQ(told.called[4].second, told.called[3].second + 1);
  });
}

TEST(Hooks, LeaveWithTheirHandle) {
  for_ranks({1, 2}, [](const Group& group) {
    Told told;
    int own = 0;
    Hook itself;
    {
      Hook first = told.on_call(group);
      Hook second = std::move(first);
      itself = group.on_call([&](const CallInfo&) { ++own, itself.remove(); });
      group.barrier().synchronize();
      first = std::move(second);
      group.barrier().synchronize();
    }
    group.barrier().synchronize();
    EXPECT_EQ(told.called.size(), 2U);
    EXPECT_EQ(own, 1) << "a function may end its own Hook";
    Hook empty;
    empty.remove();
  });
}

TEST(Hooks, LoseWhatTheyThrow) {
  for_ranks({1, 2}, [](const Group& group) {
    Told told;
    const Hook bad = group.on_call([](const CallInfo&) { throw std::runtime_error("planted"); });
    const Hook worse = group.on_done([](const CallInfo&, Work::Status) { throw 1; });
    const Hook good = told.on_done(group);
    const Tensor x = full({100000}, 1);
    group.all_reduce_(x).synchronize();
    EXPECT_EQ(told.done.size(), 1U);
    EXPECT_EQ(x.to_host<float>()[99999], static_cast<float>(group.size()));
  });
}

TEST(Hooks, AreToldOfFailuresAndOfTheEnd) {
  for_ranks({2, 3}, [](const Group& group) {
    if (group.size() < 2) return;
    Told told;
    const Hook ended = told.on_done(group);
    std::atomic<int> aborts{0};
    const Hook aborted = group.on_abort([&] { ++aborts; });
    const Tensor x = full({4 + group.rank()}, 1);
    {
      const Stream stream(default_device());
      EXPECT_THROW(group.all_reduce_(x, {.stream = stream}).synchronize(), Error);
    }
    ASSERT_EQ(told.done.size(), 1U);
    EXPECT_EQ(told.done[0].second, Work::Status::failed);
    EXPECT_EQ(aborts, 0) << "a mismatch leaves the group whole";
    group.barrier().synchronize();
    group.abort("planted"), group.abort("again");
    EXPECT_EQ(aborts, 1);
    int late = 0;
    const Hook at_once = group.on_abort([&] { ++late; });
    EXPECT_EQ(late, 1) << "the group has failed already";
  });
}

TEST(Hooks, RefuseEmptyFunctionsAndGroups) {
  const Group group = open_threads(1)[0];
  EXPECT_THROW((void)group.on_call({}), Error);
  EXPECT_THROW((void)group.on_done({}), Error);
  EXPECT_THROW((void)group.on_abort({}), Error);
  EXPECT_THROW((void)Group().on_call([](const CallInfo&) {}), Error);
}

}}  // namespace clutch::testing
