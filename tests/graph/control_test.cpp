// SPDX-License-Identifier: Apache-2.0
// cond(), switch_() and while_loop() in graphs: replays decide anew, on every backend and in saved files.
#include "graph/backends.hpp"

#include <clutch/interop_cl.hpp>

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include <unistd.h>

namespace clutch::testing { namespace {

using List = std::vector<Tensor>;

/// Both branches of nested cond()s, a switch_() and a loop, whose predicates are tensors of the caller's.
struct Decisions {
  Tensor p, q, index, n, x, drawn, log;
  List picked;
  LoopResult loop;
  Graph graph;
  Generator generator;

  Decisions(const Device& device, const Stream& stream, const std::string& backend) : graph({.backend = backend}), generator(device, 5, stream) {
    const StreamGuard guard(stream);
    const TensorOptions whole{.dtype = DType::i32, .device = device};
    p = full({}, 0, whole), q = full({1}, 0, {.device = device}), index = full({}, 0, {.dtype = DType::i64, .device = device});
    n = full({}, 0, whole), x = from_host<float>({1, 2, 3}, device), drawn = zeros({8}, {.device = device}), log = zeros({8}, whole);
    GraphCapture capture(graph, stream);
    run();
  }

  void run() {
    auto note = [&](int i) { add_(log.slice(0, i, i + 1), 1); };
    picked = cond(
        p,
        [&] {
          note(0);
          uniform_(drawn, {.generator = generator});
          return cond(
              q,
              [&] {
                return note(1), List{mul(x, 10), sum(x)};
              },
              [&] {
                return note(2), List{x, amax(x)};
              });
        },
        [&] {
          note(3);
          const Tensor constant = from_host<float>({7, 8, 9}, x.device());
          return List{add(constant, x), linalg::matmul(x.unsqueeze(0), x.unsqueeze(1)).reshape({})};
        });
    std::vector<BranchFunction> branches;
    for (int i = 0; i < 3; ++i) branches.emplace_back([&, i] { return note(4 + i), List{add(picked[1], i)}; });
    const List chosen = switch_(index, branches);
    picked.push_back(chosen[0]);
    const List start{full({}, 1, {.dtype = DType::i32, .device = x.device()}), full({}, 0, {.dtype = DType::i32, .device = x.device()})};
    loop = while_loop(
        [&](std::span<const Tensor> s) {
          return map([](Expr i, Expr end) { return i < end; }, {s[1], n});
        },
        [](std::span<const Tensor> s) {
          return List{mul(s[0], 3), add(s[1], 1)};
        },
        start, {.max_iterations = 6});
  }

  void set(int of_p, double of_q, int of_index, int of_n, const Stream& stream) const {
    fill_(p, of_p, {}, stream), fill_(q, of_q, {}, stream), fill_(index, of_index, {}, stream), fill_(n, of_n, {}, stream);
  }
};

void expect_decided(const Decisions& d, int p, bool q, int index, int n, const std::vector<std::int32_t>& log, const Stream& stream) {
  const std::vector<float> first = p && q ? std::vector<float>{10, 20, 30} : p ? std::vector<float>{1, 2, 3} : std::vector<float>{8, 10, 12};
  const float second = p && q ? 6 : p ? 3 : 14;
  EXPECT_EQ(d.picked[0].to_host<float>(stream), first);
  EXPECT_EQ(d.picked[1].item(stream), second);
  EXPECT_EQ(d.picked[2].item(stream), second + static_cast<float>(std::clamp(index, 0, 2)));
  const int turns = std::clamp(n, 0, 6);
  EXPECT_EQ(d.loop.iterations.item(stream), turns);
  EXPECT_EQ(d.loop.state[0].item(stream), std::pow(3, turns));
  EXPECT_EQ(d.loop.state[1].item(stream), turns);
  EXPECT_EQ(d.log.to_host<std::int32_t>(stream), log);
}

struct Row {
  int p;
  double q;
  int index, n;
};
constexpr Row kRows[] = {{1, 1, 0, 3}, {0, 1, 1, 6}, {1, 0, 2, 0}, {1, NAN, -4, 100}, {0, 0, 7, 1}, {1, -0.0, 1, 2}};

void count(std::vector<std::int32_t>& log, const Row& row) {
  const bool q = row.q != 0;
  if (row.p) ++log[0], ++log[q ? 1 : 2];
  if (!row.p) ++log[3];
  ++log[4 + static_cast<std::size_t>(std::clamp(row.index, 0, 2))];
}

TEST(ControlInGraphs, ReplaysDecideAnew) {
  CLUTCH_EACH_BACKEND(device, backend) {
    const Stream stream(device);
    Decisions d(device, stream, backend);
    std::vector<std::int32_t> log(8);
    std::uint64_t draws = 0;
    for (const Row& row : kRows)
      for (int again = 0; again < 2; ++again) {
        d.set(row.p, row.q, row.index, row.n, stream);
        d.graph.replay(stream);
        count(log, row);
        expect_decided(d, row.p, row.q != 0, row.index, row.n, log, stream);
        draws += row.p ? 16 : 0;
        EXPECT_EQ(d.generator.state(stream).offset, draws);
      }
    for (const GraphNode& node : d.graph.nodes())  // but what fills scratch with NaN
      EXPECT_TRUE(node.kind == GraphNodeKind::kernel || node.kind == GraphNodeKind::fill) << node.op;
    // What a branch may leave as it is counts as read.
    for (const GraphNode& node : d.graph.nodes()) {
      if (node.arguments.empty() || node.arguments[0].name != "predicate" || node.kernel == "control_choose") continue;
      for (const GraphArgument& argument : node.arguments) EXPECT_NE(argument.kind, Argument::Kind::output) << node.op;
    }
    EXPECT_FALSE(d.graph.find("cond").empty());
    EXPECT_FALSE(d.graph.find("while_loop").empty());
    // The predicate is an argument by name: here that of the loop, which never begins then.
    Tensor never = zeros({1}, {.dtype = DType::u32, .device = device}, stream);
    for (const GraphNode& node : d.graph.nodes())
      if (node.op == "uniform_" && !node.arguments.empty() && node.arguments[0].name == "predicate") d.graph.update(node.id, {input(never, "predicate")});
    d.set(1, 1, 0, 0, stream);
    d.graph.replay(stream);
    EXPECT_EQ(d.generator.state(stream).offset, draws);
  }
}

TEST(ControlInGraphs, HaveTheBitsOfEagerCalls) {
  CLUTCH_EACH_DEVICE(device) {
    const Stream stream(device);
    const StreamGuard guard(stream);
    Decisions d(device, stream, "host");
    const Generator other(device, 5, stream);
    for (const Row& row : kRows) {
      d.set(row.p, row.q, row.index, row.n, stream);
      d.graph.replay(stream);
      const List replayed{d.picked[0].clone(), d.picked[1].clone(), d.picked[2].clone(), d.loop.state[0].clone(), d.loop.iterations.clone()};
      const List kept = d.picked;
      const LoopResult kept_loop = d.loop;
      d.run();
      const List eager{d.picked[0], d.picked[1], d.picked[2], d.loop.state[0], d.loop.iterations};
      for (std::size_t i = 0; i < eager.size(); ++i) EXPECT_EQ(eager[i].to_bytes(), replayed[i].to_bytes()) << i;
      d.picked = kept, d.loop = kept_loop;
    }
  }
}

TEST(ControlInGraphs, SavedOnesCarryThem) {
  CLUTCH_EACH_BACKEND(device, backend) {
    const Stream stream(device);
    const std::string path = fmt::format("{}clutch_control_{}.safetensors", ::testing::TempDir(), ::getpid());
    Decisions d(device, stream, "host");
    const std::vector<NamedTensor> names{{"p", d.p},
                                         {"q", d.q},
                                         {"index", d.index},
                                         {"n", d.n},
                                         {"first", d.picked[0]},
                                         {"second", d.picked[1]},
                                         {"third", d.picked[2]},
                                         {"turns", d.loop.iterations},
                                         {"power", d.loop.state[0]},
                                         {"log", d.log}};
    d.graph.save(path, names, {.binaries = backend == "host"});
    Graph loaded = Graph::load(path, device, {.backend = backend});
    std::filesystem::remove(path);
    std::vector<std::int32_t> log(8);
    for (const Row& row : kRows) {
      fill_(loaded.tensor("p"), row.p, {}, stream), fill_(loaded.tensor("q"), row.q, {}, stream);
      fill_(loaded.tensor("index"), row.index, {}, stream), fill_(loaded.tensor("n"), row.n, {}, stream);
      loaded.replay(stream);
      d.set(row.p, row.q, row.index, row.n, stream);
      d.graph.replay(stream);
      count(log, row);
      expect_decided(d, row.p, row.q != 0, row.index, row.n, log, stream);
      for (const NamedTensor& t : names) EXPECT_EQ(loaded.tensor(t.name).to_bytes(stream), t.tensor.to_bytes(stream)) << t.name;
    }
  }
}

TEST(ControlInGraphs, TablesAndOptimizersAreSkipped) {
  CLUTCH_EACH_BACKEND(device, backend) {
    const Stream stream(device);
    const StreamGuard guard(stream);
    const Tensor w = from_host<float>({1, 2, 3}, device), v = w.clone(), g = from_host<float>({1, 1, 1}, device), go = full({}, 1, {.device = device});
    optim::AdamW guarded({w}), plain({v});
    const std::vector<Tensor> many{zeros({5}, {.device = device}), zeros({300}, {.device = device})};
    Graph graph({.backend = backend});
    {
      GraphCapture capture(graph, stream);
      cond(go,
           [&] {
             guarded.step(std::span(&g, 1));
             const std::span<const Tensor> lists[] = {many};
             foreach_map_out(lists, trace([](Expr a) { return a + 1; }, std::array{DType::f32}), lists);
             return List{};
           },
           {});
    }
    int taken = 0;
    for (const int p : {1, 0, 0, 1, 1, 0}) {
      fill_(go, p);
      graph.replay(stream);
      if (p) plain.step(std::span(&g, 1)), ++taken;
      EXPECT_EQ(w.to_host<float>(stream), v.to_host<float>(stream));
      EXPECT_EQ(many[1].to_host<float>(stream), std::vector<float>(300, static_cast<float>(taken)));
    }
  }
}

TEST(ControlInGraphs, FailedCapturesLeaveStreamsAndTensorsAsTheyWere) {
  CLUTCH_EACH_DEVICE(device) {
    const Stream stream(device);
    const StreamGuard guard(stream);
    const Tensor x = from_host<float>({1, 2}, device), yes = full({}, 1, {.dtype = DType::i32, .device = device});
    const std::vector<std::pair<ErrorCode, std::function<void()>>> calls{
        {ErrorCode::invalid_shape,
         [&] {
           cond(
               yes, [&] { return add_(x, 1), List{x}; }, [&] { return List{sum(x)}; });
         }},
        {ErrorCode::invalid_argument,
         [&] { while_loop([&](auto) { return yes; }, [&](auto) { return add_(x, 1), List{x}; }, {}, {.max_iterations = 2}, stream); }},
        {ErrorCode::not_supported, [&] { cond(yes, [&] { return Encoder(stream, "task").host_task([](auto) {}, {}, {}), List{}; }, {}); }},
        {ErrorCode::capturing, [&] { cond(yes, [&] { return add_(x, 1), yes.item(), List{}; }, {}); }},
    };
    for (const auto& [code, call] : calls) {
      Graph graph;
      EXPECT_EQ(code_of([&, &call = call] {
                  GraphCapture capture(graph, stream);
                  call();
                }),
                code);
      EXPECT_FALSE(graph.is_capturing());
      EXPECT_FALSE(stream.is_capturing());
      EXPECT_EQ(x.to_host<float>(stream), (std::vector<float>{1, 2}));
      {
        GraphCapture capture(graph, stream);
        cond(yes, [&] { return add_(x, 1), List{}; }, {});
      }
      EXPECT_EQ(x.to_host<float>(stream), (std::vector<float>{1, 2}));
      graph.replay(stream);
      EXPECT_EQ(x.to_host<float>(stream), (std::vector<float>{2, 3}));
      sub_(x, 1);
    }
    // A caught Error does not end the capture.
    Graph graph;
    {
      GraphCapture capture(graph, stream);
      EXPECT_EQ(code_of([&] { cond(yes, [&] { return List{x}; }, {}); }), ErrorCode::invalid_argument);
      cond(yes, [&] { return mul_(x, 2), List{}; }, {});
    }
    graph.replay(stream);
    EXPECT_EQ(x.to_host<float>(stream), (std::vector<float>{2, 4}));
    const std::vector<CaptureProblem> problems = dry_run([&] { cond(yes, [&] { return yes.item(), List{}; }, {}); }, stream);
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_EQ(problems[0].call, "Tensor::item");
  }
}

TEST(ControlInGraphs, ForkedStreamsAndConstantsAreOfTheBranch) {
  CLUTCH_EACH_BACKEND(device, backend) {
    const Stream stream(device), side(device);
    const StreamGuard guard(stream);
    const Tensor p = full({}, 0, {.device = device}), x = zeros({4}, {.device = device});
    Graph graph({.backend = backend});
    List got;
    {
      GraphCapture capture(graph, stream);
      got = cond(
          p,
          [&] {
            Event fork, join;
            fork.record(stream);
            side.wait(fork);
            add_(x, from_host<float>({1, 2, 3, 4}, device, side), {}, side);
            join.record(side);
            stream.wait(join);
            return List{mul(x, 2)};
          },
          [&] {
            return List{from_host<float>({-1, -2, -3, -4}, device)};
          });
      // Memory that a branch made, which the host fills in each replay, and is then another branch's result.
      const List other = cond(
          p, [&] { return List{from_host<float>({5}, device)}; }, [&] { return List{from_host<float>({6}, device)}; });
      got.push_back(other[0]);
    }
    for (const int v : {0, 1, 1, 0}) {
      const std::vector<float> before = x.to_host<float>();
      fill_(p, v);
      graph.replay(stream);
      EXPECT_EQ(got[1].item(), v ? 5 : 6);
      const std::vector<float> now = x.to_host<float>(), result = got[0].to_host<float>();
      for (std::size_t i = 0; i < 4; ++i) {
        const auto element = static_cast<float>(i + 1);
        EXPECT_EQ(now[i], before[i] + static_cast<float>(v) * element);
        EXPECT_EQ(result[i], v ? 2 * now[i] : -element);
      }
    }
  }
}

TEST(ControlInGraphs, LongLoopsReplay) {
  CLUTCH_EACH_BACKEND(device, backend) {
    const Stream stream(device);
    const StreamGuard guard(stream);
    const Tensor end = full({}, 0, {.dtype = DType::i32, .device = device});
    const std::int64_t most = level() == "smoke" ? 300 : 2000;
    LoopResult r;
    Graph graph({.backend = backend});
    {
      GraphCapture capture(graph, stream);
      const Tensor start = full({}, 0, {.dtype = DType::i32, .device = device});
      r = while_loop(
          [&](std::span<const Tensor> s) {
            return map([](Expr i, Expr n) { return i < n; }, {s[0], end});
          },
          [](std::span<const Tensor> s) { return add_(s[0], 1), List{s[0]}; }, std::span(&start, 1), {.max_iterations = most});
    }
    const std::vector<GraphNode> nodes = graph.nodes();
    EXPECT_EQ(std::count_if(nodes.begin(), nodes.end(), [](const GraphNode& n) { return n.kind == GraphNodeKind::kernel; }), 3 * most + 3)
        << "a body in place copies nothing";
    for (const int n : {0, 17, 299, 100000}) {
      fill_(end, n);
      graph.replay(stream);
      EXPECT_EQ(r.state[0].item(), static_cast<double>(std::min<std::int64_t>(n, most)));
      EXPECT_EQ(r.iterations.item(), r.state[0].item());
    }
  }
}

}}  // namespace clutch::testing
