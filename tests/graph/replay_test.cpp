// SPDX-License-Identifier: Apache-2.0
#include "graph/backends.hpp"
#include "runtime/settings.hpp"

#include <array>
#include <thread>

namespace clutch::testing { namespace {

TEST(Replays, AGraphNeverRunsBesideItself) {
  CLUTCH_EACH_BACKEND(device, backend) {
    auto settings = detail::the_settings();
    settings.check_streams.value.assign(1, '1');
    detail::SettingsOverride on(settings);
    Stream a(device), b(device), c(device);
    Tensor x = zeros({1 << 16}, {.device = device}, a);
    Graph graph({.backend = backend});
    {
      GraphCapture capture(graph, a);
      for (int i = 0; i < 5; ++i) add_(x, 1);
    }
    a.synchronize();
    for (const Stream& stream : {a, b, b, c, a, c, b, a}) graph.replay(stream);
    std::vector<float> got = x.to_host<float>(a);
    for (float v : got) ASSERT_EQ(v, 40);
    {
      Stream gone(device);
      Event read;
      read.record(a);
      gone.wait(read);
      graph.replay(gone);
    }
    graph.replay(a);
    EXPECT_EQ(x.to_host<float>(a)[9], 50) << "a replay follows one of a stream that is no more";
    b.synchronize();
    c.synchronize();
  }
}

TEST(Replays, UnorderedReplaysAreFoundOnRequest) {
  CLUTCH_EACH_BACKEND(device, backend) {
    auto settings = detail::the_settings();
    settings.check_streams.value.assign(1, '1');
    detail::SettingsOverride on(settings);
    Stream a(device), b(device);
    Tensor read = full({64}, 1, {.device = device}, a), written = full({64}, 0, {.device = device}, a), bound = full({64}, 0, {.device = device}, a);
    Graph graph({.backend = backend});
    {
      GraphCapture capture(graph, a);
      copy_(written, read);
    }
    graph.replay(a);
    EXPECT_EQ(code_of([&] { written.clone(b); }), ErrorCode::invalid_argument) << "the replay's write is not ordered before b";
    EXPECT_EQ(code_of([&] { fill_(read, 2, {}, b); }), ErrorCode::invalid_argument) << "nor its read";
    graph.replay({{written, bound}}, a);
    EXPECT_EQ(code_of([&] { bound.clone(b); }), ErrorCode::invalid_argument);
    Event done;
    done.record(a);
    b.wait(done);
    EXPECT_EQ(code_of([&] { written.clone(b), bound.clone(b); }), ErrorCode::ok);
    EXPECT_EQ(code_of([&] { read.clone(b), read.clone(a); }), ErrorCode::ok) << "readers need no order";
    fill_(written, 3, {}, b);
    EXPECT_EQ(code_of([&] { graph.replay(a); }), ErrorCode::invalid_argument) << "b's write is not ordered before the replay";
    b.synchronize();
    a.synchronize();
  }
}

TEST(Replays, KeepGraphInstantiatesLater) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device);
    Tensor x = full({4}, 1, {.device = device}, stream);
    Graph graph({.keep_graph = true});
    {
      GraphCapture capture(graph, stream);
      add_(x, x);
    }
    EXPECT_EQ(graph.report().why, "not instantiated");
    graph.instantiate();
    graph.replay(stream);
    graph.instantiate();
    graph.replay(stream);
    EXPECT_EQ(x.to_host<float>(stream)[0], 4);
    Graph lazy({.keep_graph = true});
    {
      GraphCapture capture(lazy, stream);
      add_(x, x);
    }
    lazy.replay(stream);
    EXPECT_EQ(x.to_host<float>(stream)[0], 8);
    Graph moved = std::move(lazy);
    moved.replay(stream);
    EXPECT_EQ(x.to_host<float>(stream)[0], 16);
  }
}

TEST(Replays, AutoChoosesAfterTheCallersOwnReplays) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device);
    Tensor x = zeros({4}, {.device = device}, stream);
    Graph graph({.backend = "auto"});
    {
      GraphCapture capture(graph, stream);
      add_(x, 1);
    }
    for (int i = 0; i < 40; ++i) {
      graph.replay(stream);
      if (i % 4 == 3) stream.synchronize();
    }
    EXPECT_EQ(x.to_host<float>(stream)[0], 40) << "each replay ran once";
    std::string why = graph.report().why;
    EXPECT_TRUE(why.find("median") != std::string::npos || why.find("refuses") != std::string::npos) << why;
  }
}

TEST(Replays, ManyNodesAndManyReplays) {
  CLUTCH_EACH_BACKEND(device, backend) {
    Stream stream(device);
    Tensor x = zeros({16}, {.device = device}, stream);
    int nodes = level() == "smoke" ? 2000 : 10000;
    Graph graph({.backend = backend});
    {
      GraphCapture capture(graph, stream);
      for (int i = 0; i < nodes; ++i) add_(x, 1);
    }
    ASSERT_EQ(graph.nodes().size(), static_cast<std::size_t>(nodes));
    for (int i = 0; i < 2; ++i) graph.replay(stream);
    EXPECT_EQ(x.to_host<float>(stream)[15], static_cast<float>(2 * nodes));
    Graph small({.backend = backend});
    {
      GraphCapture capture(small, stream);
      add_(x, 1);
      add_(x, 2);
    }
    for (int i = 0; i < 1000; ++i) small.replay(stream);
    EXPECT_EQ(x.to_host<float>(stream)[15], static_cast<float>(2 * nodes + 3000));
  }
}

TEST(Replays, ThreadsReplayAndCaptureOnTheirOwn) {
  CLUTCH_EACH_BACKEND(device, backend) {
    std::vector<std::thread> threads;
    std::array<float, 4> got{};
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        Stream stream(device);
        Tensor x = full({64}, t, {.device = device}, stream);
        Graph graph({.backend = backend});
        {
          GraphCapture capture(graph, stream, {.mode = CaptureMode::relaxed});
          Tensor y = add(x, 1);
          copy_(x, y);
        }
        for (int i = 0; i < 50; ++i) graph.replay(stream);
        got[static_cast<std::size_t>(t)] = x.to_host<float>(stream)[63];
      });
    for (std::thread& t : threads) t.join();
    for (std::size_t t = 0; t < 4; ++t) EXPECT_EQ(got[t], static_cast<float>(t + 50));
  }
}

}}  // namespace clutch::testing
