// SPDX-License-Identifier: Apache-2.0
// Tables of small launches: runs of them, branches and loops become one launch of one work-group, with the bits of eager calls.
#include "graph/tiny.hpp"
#include "encode/elementwise.hpp"
#include "graph/fused.hpp"

#include <clutch/nn.hpp>

#include <fmt/format.h>

#include <filesystem>

#include <unistd.h>

namespace clutch::testing { namespace {

/// The tuning of tables while it lives.
struct Tuning {
  detail::TableTuning before = detail::table_tuning;
  explicit Tuning(int items, std::size_t least = 2) { detail::table_tuning = {.least = least, .least_of_auto = before.least_of_auto, .items = items}; }
  ~Tuning() { detail::table_tuning = before; }
};

/// A rule that is broken while it lives.
struct Broken {
  explicit Broken(detail::BrokenRule rule) { detail::broken_rule = rule; }
  ~Broken() { detail::broken_rule = detail::BrokenRule::none; }
};

/// Items of groups: the device's own number, and those of sub-groups.
std::vector<int> group_sizes() { return level() == "smoke" ? std::vector<int>{0, 16} : std::vector<int>{0, 3, 32, 64}; }

int tables_of(const Graph& graph) {
  int count = 0;
  for (const GraphReport::Group& g : graph.report().groups) count += g.form == "table";
  return count;
}

/// The nodes that are in no table, by what they say; without what fills new memory with NaN.
std::vector<std::string> left_alone(const Graph& graph) {
  std::vector<std::string> all;
  for (const GraphNode& node : graph.nodes())
    if (node.kind == GraphNodeKind::kernel && !node.why.starts_with("one launch")) all.push_back(fmt::format("{}: {}", node.op, node.why));
  return all;
}

Graph captured(const Stream& stream, const std::function<void()>& f, const std::string& backend = "fused") {
  Graph graph({.backend = backend});
  GraphCapture capture(graph, stream);
  f();
  return graph;
}

/// Calls of different elements, which are no launch of one function: each reads what the one before it wrote, by another view.
Tensors views_of_each_other(const Tensors& in) {
  Tensor a = mul(in[0], 2);                                     // (m, n)
  Tensor b = add(a.mT().contiguous(), 1);                       // (n, m)
  Tensor c = sub(b.select(0, 0), a.select(1, 0));               // m
  Tensor d = add(c.unsqueeze(1), b.select(0, 1).unsqueeze(0));  // (m, m)
  Tensor e = maximum(d.mT(), d);
  add_(in[0], e.slice(1, 0, 1));
  return {a, b, c, e, mul(in[0].mT(), 3)};
}

TEST(Tables, SmallCallsAreOneLaunch) {
  CLUTCH_EACH_DEVICE(device) {
    for (int items : group_sizes()) {
      SCOPED_TRACE(items);
      const Tuning tuning(items);
      const Counts c = expect_eager_bits(device, {random({37, 21}, device)}, views_of_each_other);
      EXPECT_EQ(c.launches, 1);
      EXPECT_EQ(c.alone, 0);
    }
  }
}

TEST(Tables, OddShapesAndStrides) {
  CLUTCH_EACH_DEVICE(device) {
    for (int items : group_sizes()) {
      SCOPED_TRACE(items);
      const Tuning tuning(items);
      Tensors state;
      std::uint64_t seed = 1;
      for (const Dims& sizes : {Dims{1, 1}, Dims{1, 5}, Dims{16, 2}, Dims{17, 33}, Dims{3, 64}, Dims{65, 3}, Dims{0, 4}})
        for (const Dims& of : {sizes, Dims{sizes[1]}, Dims{sizes[0], 1}}) state.push_back(random(of, device, DType::f32, seed++));
      // Four dimensions stay, five are too many for a table.
      state.push_back(random({3, 4, 5, 6}, device)), state.push_back(random({2, 3, 2, 3, 2}, device));
      expect_eager_bits(device, state, [](const Tensors& in) {
        Tensors out;
        for (std::size_t i = 0; i + 2 < in.size(); i += 3) {
          const Tensor& x = in[i];
          Tensor h = add(x, in[i + 1]);
          Tensor t = mul(h.mT(), in[i + 2].mT());  // rows that are apart in memory
          Tensor s = neg(h.slice(0, 0, (h.sizes()[0] + 1) / 2));
          copy_(x.mT(), t);
          mul_(h.slice(1, 0, h.sizes()[1]), 0.5);
          Tensor whole = full({5}, 3, {.device = x.device()});
          add_(whole, 1);
          out.insert(out.end(), {h, t, s, whole});
        }
        const Tensor &x = in[in.size() - 2], &y = in[in.size() - 1];
        const Tensor flipped = x.transpose(0, 3).transpose(1, 2), five = y.transpose(0, 4);
        out.insert(out.end(), {mul(flipped, flipped), add(x.transpose(1, 3).slice(0, 0, 2), 1), add(five.transpose(1, 3), five)});
        return out;
      });
    }
  }
}

TEST(Tables, EveryDtypeRoundsAsItsStore) {
  CLUTCH_EACH_DEVICE(device) {
    std::vector<std::vector<DType>> sets{{DType::f16, DType::bf16, DType::i8, DType::boolean}, {DType::u32, DType::i64}};
    if (level() != "smoke") sets.insert(sets.end(), {{DType::u8, DType::i16, DType::u16}, {DType::i32, DType::u64}});
    if (device.traits().fp64) sets.back().push_back(DType::f64);
    for (int items : level() == "smoke" ? std::vector<int>{0} : std::vector<int>{0, 32})
      for (const std::vector<DType>& dtypes : sets) {
        SCOPED_TRACE(fmt::format("{} items, {} and others", items, name(dtypes[0])));
        const Tuning tuning(items);
        const Counts c = expect_eager_bits(device, {mul(random({19, 13}, device), 50)}, [&](const Tensors& in) {
          Tensors out;
          for (DType dtype : dtypes) {
            Tensor h = in[0].to(dtype);
            Tensor flipped = h.mT().contiguous();
            Tensor back = add(flipped.to(DType::f32), in[0].mT());
            Tensor kept = full({7}, 1, {.dtype = dtype, .device = in[0].device()});
            copy_(kept, flipped.select(0, 2).slice(0, 0, 7));
            out.insert(out.end(), {h, flipped, mul(back.mT(), 3), kept});
          }
          return out;
        });
        EXPECT_LE(c.launches, 4);
        EXPECT_EQ(c.alone, 0);
      }
    // NaN, infinities and subnormals.
    const Tuning tuning(0);
    const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
    expect_eager_bits(device, {from_host<float>({nan, -nan, inf, -inf, 0.0f, -0.0f, 1e-40f, -1e-42f, 70000.0f, 1e38f}, {5, 2}, device)}, [](const Tensors& in) {
      Tensor t = in[0].mT().contiguous(), h = t.to(DType::f16), b = t.to(DType::bf16).mT().contiguous();
      return Tensors{t, h, b, maximum(b.to(DType::f32), in[0]), sqrt(abs(t)), h.mT().contiguous()};
    });
  }
}

TEST(Tables, InPlaceAndAliases) {
  CLUTCH_EACH_DEVICE(device) {
    for (int items : group_sizes()) {
      SCOPED_TRACE(items);
      const Tuning tuning(items);
      expect_eager_bits(device, {random({24, 24}, device), random({24, 24}, device, DType::f32, 2)}, [](const Tensors& in) {
        const Tensor &x = in[0], &y = in[1];
        Tensor before = mul(x.slice(0, 3, 9), 2);  // reads what the next call overwrites
        add_(x, y);
        Tensor other = add(x.mT(), y);  // another view of what was written
        mul_(x.slice(0, 0, 5), 3);
        copy_(y.slice(0, 1, 9), x.slice(0, 0, 8));
        copy_(y.slice(0, 0, 8), y.slice(0, 8, 16));
        add_(y.slice(0, 0, 10), 1);
        Tensor after = add(y.mT(), x);
        mul_(x.slice(1, 3, 8), after.slice(1, 3, 8));
        fill_(y.select(0, 2), 4);
        return Tensors{before, other, after, mul(y.slice(0, 0, 3), 2)};
      });
    }
  }
}

TEST(Tables, ABarrierThatIsMissingIsFound) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device);
    StreamGuard guard(stream);
    const Tuning tuning(16);
    const Tensor x = random({40, 30}, device);
    stream.synchronize();
    auto f = [&] { return views_of_each_other({x.clone()}); };
    const auto want = bytes_of(f(), stream);
    for (bool broken : {false, true}) {
      Tensors got;
      Graph graph = [&] {
        const Broken rule(broken ? detail::BrokenRule::table_barrier : detail::BrokenRule::none);
        return captured(stream, [&] { got = f(); });
      }();
      EXPECT_EQ(tables_of(graph), 1);
      graph.replay(stream);
      EXPECT_EQ(bytes_of(got, stream) != want, broken);
    }
  }
}

TEST(Tables, AnOverwriteThatComesTooEarlyIsFound) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device);
    StreamGuard guard(stream);
    const Tuning tuning(0);
    const Tensor x = random({40}, device), y = random({7}, device);
    for (bool broken : {false, true}) {
      const Tensor a = x.clone(), b = y.clone();
      Tensor r, want;
      auto f = [&] {
        Tensor h = exp(b);
        h = add(h.unsqueeze(1), a.slice(0, 0, 5));
        r = add(mul(h, 2).select(0, 0), a.slice(0, 3, 8));  // the third of its chain, reads what the next call overwrites
        fill_(a, 5);
      };
      f();
      want = r.clone();
      copy_(a, x);
      Graph graph = [&] {
        const Broken rule(broken ? detail::BrokenRule::table_reads : detail::BrokenRule::none);
        return captured(stream, f);
      }();
      EXPECT_EQ(tables_of(graph), 1);
      graph.replay(stream);
      EXPECT_EQ(r.to_bytes(stream) != want.to_bytes(stream), broken);
      EXPECT_EQ(a.to_host<float>(stream), std::vector<float>(40, 5));
    }
  }
}

TEST(Tables, IndependentCallsStandSideBySide) {
  CLUTCH_EACH_DEVICE(device) {
    for (int items : group_sizes()) {
      const Tuning tuning(items);
      const Counts c = expect_eager_bits(device, {random({6, 9}, device), random({8, 5}, device, DType::f32, 2), random({50}, device, DType::f32, 3)},
                                         [](const Tensors& in) {
                                           Tensors out;
                                           for (const Tensor& t : in) {  // one chain behind another
                                             Tensor h = t;
                                             for (int i = 0; i < 4; ++i) {
                                               h = tanh(h);
                                               h = add(h, h.rank() > 1 ? h.select(0, 1) : h.slice(0, 1, 2));
                                             }
                                             out.push_back(h);
                                           }
                                           return out;
                                         });
      EXPECT_EQ(c.launches, 1);
      EXPECT_EQ(c.alone, 0);
    }
  }
}

TEST(Tables, OtherTensorsAndNumbersTakeTheirPlaces) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device);
    StreamGuard guard(stream);
    const Tuning tuning(0);
    const Tensor x = random({20, 5}, device), y = random({5}, device, DType::f32, 2), z = empty({5, 20}, {.device = device});
    auto f = [](const Tensor& a, const Tensor& b, const Tensor& out) {
      const Tensor h = add(a, b);
      copy_(out, h.mT());
      add_(b, h.select(0, 3));
      mul_(a.slice(0, 0, 3), 2);
    };
    Graph graph = captured(stream, [&] { f(x, y, z); });
    EXPECT_EQ(tables_of(graph), 1);
    auto expect = [&](const Tensor& a, const Tensor& b, const Tensor& out) {
      SCOPED_TRACE(graph.report().why);
      const Tensor a2 = a.clone(), b2 = b.clone(), out2 = out.clone();
      f(a2, b2, out2);
      graph.replay({{x, a}, {y, b}, {z, out}}, stream);
      EXPECT_EQ(bytes_of({a, b, out}, stream), bytes_of({a2, b2, out2}, stream));
    };
    const Tensor p = random({20, 5}, device, DType::f32, 5), q = random({5}, device, DType::f32, 6), r = empty({5, 20}, {.device = device});
    expect(p, q, r);
    expect(x, q, z);
    expect(p, y, r);
    // Memory that is shared, where the captured tensors share none.
    graph.replay({{x, p}, {y, p.select(0, 1)}, {z, r}}, stream);
    EXPECT_NE(graph.report().why.find("one by one"), std::string::npos) << graph.report().why;
    expect(x, y, z);
    EXPECT_EQ(graph.report().why.find("one by one"), std::string::npos) << graph.report().why;
    // A number of a call that is in the table.
    const auto [call, number] = param_of(graph, "mul_");
    ASSERT_FALSE(number.empty());
    std::vector<float> want = x.to_host<float>(stream);
    graph.update(call, {value(7.0f, number.c_str())});
    graph.replay(stream);
    for (std::size_t i = 0; i < 15; ++i) want[i] *= 7;
    EXPECT_EQ(x.to_host<float>(stream), want);
  }
}

TEST(Tables, LargeCallsAndOtherOpsStayAlone) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device);
    StreamGuard guard(stream);
    const Tuning tuning(0);
    const Tensor x = random({300, 400}, device), y = random({6, 7}, device);
    Tensors got;
    Graph graph = captured(stream, [&] {
      const Tensor large = mul(x, 2);
      Tensor h = add(y.mT().contiguous(), 1), sums = cumsum(y, 0);
      h = add(h, h.select(1, 0).unsqueeze(1));
      got = {large, h, sums};
    });
    EXPECT_EQ(tables_of(graph), 1);
    const std::vector<std::string> alone = left_alone(graph);
    ASSERT_EQ(alone.size(), 2u) << graph.to_string();
    EXPECT_NE(alone[0].find("in no table, since it is large"), std::string::npos) << alone[0];
    EXPECT_NE(alone[1].find("in no table, since it is no function"), std::string::npos) << alone[1];
    graph.replay(stream);
    EXPECT_EQ(got[0].to_bytes(stream), mul(x, 2).to_bytes(stream));
    EXPECT_EQ(got[2].to_bytes(stream), cumsum(y, 0).to_bytes(stream));
    // Shorter runs stay as they are.
    const Tuning longer(0, 100);
    EXPECT_EQ(tables_of(captured(stream, [&] { got = views_of_each_other({x.slice(0, 0, 9)}); })), 0);
  }
}

TEST(Tables, ManyFunctionsAreSeveralTables) {
  CLUTCH_EACH_DEVICE(device) {
    const Tuning tuning(0);
    const Counts c = expect_eager_bits(device, {random({11, 3}, device)}, [](const Tensors& in) {
      Tensor h = in[0];
      for (int i = 0; i < 18; ++i)  // each another text
        h = map(
                [i](Expr a) {
                  Expr b = a;
                  for (int k = 0; k <= i; ++k) b = b * 0.5 + k;
                  return b;
                },
                {h.mT()})
                .contiguous();
      return Tensors{h};
    });
    EXPECT_EQ(c.launches, 2);
    EXPECT_EQ(c.alone, 0);
  }
}

TEST(Tables, ReductionsCombineInTheirOrder) {
  CLUTCH_EACH_DEVICE(device) {
    const Tuning tuning(0);
    const bool reduces = detail::row_tuning(device.traits()).local == 1;
    const float nan = std::numeric_limits<float>::quiet_NaN();
    Tensor some = random({5, 90}, device, DType::f32, 3);
    fill_(some.slice(0, 1, 2).slice(1, 40, 41), -nan);
    const Counts c =
        expect_eager_bits(device, {random({3, 299}, device), random({1, 1021}, device, DType::f32, 2), some, random({4, 3, 7}, device)}, [](const Tensors& in) {
          Tensors out;
          const Tensor half = in[0].to(DType::f16), whole = mul(in[0], 100).to(DType::i32);
          out.insert(out.end(), {sum(in[0], {.dims = {1}}), mean(in[0], {}), sum(in[0].mT(), {.dims = {1}}), sum(in[1], {})});
          out.insert(out.end(), {amax(in[2], {.dims = {1}}), amin(in[2], {}), any(gt(in[2], 2)), all(lt(in[2].mT(), 9), {.dims = {0}})});
          out.insert(out.end(), {prod(in[3], {.dims = {0, 2}}), sum(whole, {}), amax(whole, {.dims = {0}}), sum(half, {.dims = {1}})});
          out.insert(out.end(), {nn::softmax(in[2], -1), nn::softmax(in[3], 1)});
          return out;
        });
    if (reduces) {
      EXPECT_LE(c.launches, 3);
      EXPECT_EQ(c.alone, 0);
    }
  }
}

TEST(Tables, ALoopWhoseConditionReducesRunsInside) {
  CLUTCH_EACH_DEVICE(device) {
    if (detail::row_tuning(device.traits()).local > 1) continue;
    const Tuning tuning(0);
    const Stream stream(device);
    const StreamGuard guard(stream);
    const Tensor a = add(abs(random({33}, device)), 0.5);
    auto newton = [&] {
      const Tensor one = full(a.sizes(), 1, {.device = device});
      return while_loop(
          [&](std::span<const Tensor> s) {
            return any(map([](Expr x, Expr of) { return abs(x * x - of) > of * 1e-5; }, {s[0], a}));
          },
          [&](std::span<const Tensor> s) {
            return Tensors{map([](Expr x, Expr of) { return (x + of / x) * 0.5; }, {s[0], a})};
          },
          std::span(&one, 1), {.max_iterations = 30});
    };
    LoopResult r;
    Graph graph = captured(stream, [&] { r = newton(); });
    EXPECT_EQ(tables_of(graph), 1);
    EXPECT_EQ(left_alone(graph), std::vector<std::string>{});
    for (int i = 0; i < 2; ++i) {
      graph.replay(stream);
      const LoopResult want = newton();
      EXPECT_EQ(r.state[0].to_bytes(stream), want.state[0].to_bytes(stream));
      EXPECT_EQ(r.iterations.item(), want.iterations.item());
      EXPECT_GT(r.iterations.item(), 2);
      EXPECT_LT(r.iterations.item(), 30);
      mul_(a, 40);
    }
  }
}

// Control flow -------------------------------------------------------------------------------------------------------

/// Branches in a loop, whose predicates are tensors of the caller's.
struct Loops {
  Tensor n, p, index, x;
  std::int64_t most = 40;
  LoopResult run() const {
    const Tensor zero = full({}, 0, {.dtype = DType::i32, .device = x.device()});
    const Tensors start{zero, x, full({3}, 1, {.dtype = DType::f16, .device = x.device()})};
    return while_loop([&](std::span<const Tensor> s) { return lt(s[0], n); },
                      [&](std::span<const Tensor> s) {
                        add_(s[0], 1);
                        const Tensor even = eq(remainder(s[0], 2), 0);
                        const Tensor h = cond(
                            even, [&] { return Tensors{mul(s[1].mT().contiguous(), 0.5)}; }, [&] { return Tensors{add(s[1].mT(), s[0])}; })[0];
                        std::vector<BranchFunction> branches;
                        for (int b = 0; b < 3; ++b)
                          branches.emplace_back([&, b] { return mul_(s[2], 1 + b * 0.25), add_(s[2].slice(0, b, b + 1), 1), Tensors{}; });
                        switch_(index, branches);
                        cond(p,
                             [&] {
                               const Tensor two = full({}, 2, {.dtype = DType::i32, .device = x.device()});
                               const LoopResult inner = while_loop([&](std::span<const Tensor> t) { return gt(t[0], 0); },
                                                                   [](std::span<const Tensor> t) {
                                                                     return sub_(t[0], 1), Tensors{t[0], add(t[1], 3)};
                                                                   },
                                                                   std::array{two, h}, {.max_iterations = 3});
                               return copy_(h, inner.state[1]), Tensors{};
                             },
                             {});
                        return Tensors{s[0], h.mT(), s[2]};
                      },
                      start, {.max_iterations = most});
  }
};

TEST(Tables, LoopsAndBranchesRunInside) {
  CLUTCH_EACH_DEVICE(device) {
    for (int items : group_sizes()) {
      SCOPED_TRACE(items);
      const Tuning tuning(items);
      const Stream stream(device);
      const StreamGuard guard(stream);
      const TensorOptions whole{.dtype = DType::i32, .device = device};
      const Loops loops{
          .n = full({}, 0, whole), .p = full({}, 0, whole), .index = full({}, 0, whole), .x = random({4, 6}, device), .most = level() == "smoke" ? 8 : 40};
      LoopResult r;
      Graph graph = captured(stream, [&] { r = loops.run(); });
      EXPECT_EQ(tables_of(graph), 1);
      EXPECT_EQ(left_alone(graph), std::vector<std::string>{});
      for (auto [n, p, index] : {std::array{0, 1, 0}, {1, 0, 1}, {5, 1, 2}, {6, 0, -3}, {1000, 1, 1}, {7, 1, 9}}) {
        SCOPED_TRACE(fmt::format("{} turns, {}, {}", n, p, index));
        fill_(loops.n, n), fill_(loops.p, p), fill_(loops.index, index);
        graph.replay(stream);
        const LoopResult want = loops.run();
        EXPECT_EQ(r.iterations.item(), std::min<double>(n, static_cast<double>(loops.most)));
        EXPECT_EQ(bytes_of(r.state, stream), bytes_of(want.state, stream));
        EXPECT_EQ(r.iterations.to_bytes(stream), want.iterations.to_bytes(stream));
      }
    }
  }
}

TEST(Tables, SavedOnesReplayWithoutTheirCode) {
  CLUTCH_EACH_DEVICE(device) {
    const Tuning tuning(0);
    const Stream stream(device);
    const StreamGuard guard(stream);
    const TensorOptions whole{.dtype = DType::i32, .device = device};
    const Loops loops{.n = full({}, 3, whole), .p = full({}, 1, whole), .index = full({}, 1, whole), .x = random({4, 6}, device), .most = 6};
    LoopResult r;
    Graph graph = captured(stream, [&] { r = loops.run(); });
    EXPECT_EQ(tables_of(graph), 1);
    const std::string path = fmt::format("{}clutch_tables_{}.safetensors", ::testing::TempDir(), ::getpid());
    for (bool replayed : {false, true}) {
      if (replayed) graph.replay(stream);
      graph.save(path, {{"n", loops.n}, {"x", loops.x}, {"h", r.state[1]}, {"turns", r.iterations}});
      for (const char* backend : {"host", "fused"}) {
        Graph loaded = Graph::load(path, device, {.backend = backend});
        for (int n : {0, 2, 9}) {
          fill_(loops.n, n), fill_(loaded.tensor("n"), n);
          const LoopResult want = loops.run();
          loaded.replay(stream);
          EXPECT_EQ(loaded.tensor("turns").item(), std::min(n, 6));
          EXPECT_EQ(loaded.tensor("h").to_bytes(stream), want.state[1].contiguous().to_bytes(stream));
        }
        EXPECT_LE(loaded.nodes().size(), 3u) << loaded.to_string();
      }
      std::filesystem::remove(path);
    }
  }
}

TEST(Tables, ReplaysOnOtherStreams) {
  CLUTCH_EACH_DEVICE(device) {
    const Tuning tuning(0);
    const Stream stream(device), other(device);
    const StreamGuard guard(stream);
    const Tensor x = random({9, 9}, device);
    const Tensor before = x.clone();
    stream.synchronize();
    Tensors got;
    Graph graph = captured(stream, [&] { got = views_of_each_other({x}); });
    for (const Stream* on : {&other, &stream, &other}) graph.replay(*on);
    other.synchronize();
    Tensors want;
    const Tensor y = before.clone();
    for (int i = 0; i < 3; ++i) want = views_of_each_other({y});
    EXPECT_EQ(bytes_of(got, stream), bytes_of(want, stream));
    EXPECT_EQ(x.to_bytes(stream), y.to_bytes(stream));
  }
}

TEST(Tables, AutoTakesThemForManyLaunches) {
  CLUTCH_EACH_DEVICE(device) {
    const Stream stream(device);
    const StreamGuard guard(stream);
    const Tensor x = random({12, 5}, device);
    stream.synchronize();
    Tensors got;
    auto f = [&] {
      Tensor h = x;
      for (int i = 0; i < 20; ++i) h = add(h, 1).mT().contiguous();
      got = {h};
    };
    f();
    const auto want = bytes_of(got, stream);
    Graph graph = captured(stream, f, "auto");
    for (int i = 0; i < 40; ++i) {
      graph.replay(stream);
      if (i % 13 == 0) {
        EXPECT_EQ(bytes_of(got, stream), want);
      }
    }
    stream.synchronize();
    graph.replay(stream);
    EXPECT_NE(graph.report().why.find("fused"), std::string::npos) << graph.report().why;
    EXPECT_EQ(bytes_of(got, stream), want);
  }
}

}}  // namespace clutch::testing
