// SPDX-License-Identifier: Apache-2.0
#include "graph/backends.hpp"

#include <clutch/interop_cl.hpp>

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>

namespace clutch::testing { namespace {

using attention::Index;

TEST(Graphs, ReplayDoesWhatWasCaptured) {
  CLUTCH_EACH_BACKEND(device, backend) {
    Stream stream(device);
    Tensor x = from_host<float>({1, 2, 3, 4}, device, stream);
    Graph graph({.backend = backend});
    Tensor y;
    {
      GraphCapture capture(graph, stream);
      EXPECT_TRUE(stream.is_capturing());
      y = add(mul(x, x), x);
    }
    EXPECT_FALSE(stream.is_capturing());
    for (int i = 0; i < 30; ++i) graph.replay(stream);
    EXPECT_EQ(y.to_host<float>(stream), (std::vector<float>{2, 6, 12, 20}));
    fill_(x, 5, {}, stream);
    graph.replay(stream);
    EXPECT_EQ(y.to_host<float>(stream), (std::vector<float>{30, 30, 30, 30}));
    GraphReport report = graph.report();
    EXPECT_EQ(report.replays, 31u);
    if (backend == "native") {
      EXPECT_EQ(report.native_nodes, graph.nodes().size());
    }
    // What the capture made lives longer than the graph.
    graph.reset();
    EXPECT_EQ(y.to_host<float>(stream)[0], 30);
  }
}

TEST(Graphs, NothingRunsWhileCapturing) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device);
    Tensor x = zeros({8}, {.device = device}, stream);
    Graph graph;
    graph.capture_begin(stream);
    fill_(x, 3, {}, stream);
    graph.capture_end();
    EXPECT_EQ(x.to_host<float>(stream)[7], 0);
    graph.replay(stream);
    EXPECT_EQ(x.to_host<float>(stream)[7], 3);
  }
}

TEST(Graphs, ConstantsOfTheHostAreUploadedOnceAndKeptAsTheyWere) {
  CLUTCH_EACH_BACKEND(device, backend) {
    Stream stream(device), other(device);
    Graph graph({.backend = backend});
    Tensor sum = zeros({3}, {.device = device}, stream), kept, changed;
    {
      GraphCapture capture(graph, stream);
      kept = from_host<float>({1, 2, 3}, device);
      changed = from_host<float>({10, 20, 30}, device);
      add_(sum, kept);
      add_(changed, kept);
      add_(sum, changed);
    }
    stream.synchronize();
    for (int i = 0; i < 2; ++i) graph.replay(other);
    // 2 * (kept + changed + kept), and `changed` starts anew at each replay
    EXPECT_EQ(sum.to_host<float>(other), (std::vector<float>{24, 48, 72}));
    EXPECT_EQ(changed.to_host<float>(other), (std::vector<float>{11, 22, 33}));
    int constants = 0;
    for (const auto& buffer : graph.report().buffers) constants += buffer.kind == "constant" && buffer.bytes > 0;
    EXPECT_EQ(constants, 2);
    EXPECT_EQ(graph.find("from_bytes").size(), 1u) << "only what is overwritten is copied at each replay";
  }
}

TEST(Graphs, RandomNumbersAdvanceAsTheyDoEagerly) {
  CLUTCH_EACH_BACKEND(device, backend) {
    Stream stream(device);
    Tensor t = zeros({100}, {.device = device}, stream);
    std::vector<std::vector<float>> eager, replayed;
    manual_seed(11, device, stream);
    for (int i = 0; i < 3; ++i) {
      uniform_(t, {}, stream);
      eager.push_back(t.to_host<float>(stream));
    }
    manual_seed(11, device, stream);
    Graph graph({.backend = backend});
    {
      GraphCapture capture(graph, stream);
      uniform_(t);
    }
    for (int i = 0; i < 3; ++i) {
      graph.replay(stream);
      replayed.push_back(t.to_host<float>(stream));
    }
    EXPECT_EQ(replayed, eager);
    EXPECT_NE(eager[0], eager[1]);
  }
}

TEST(Graphs, ForksAndJoinsThroughEvents) {
  CLUTCH_EACH_BACKEND(device, backend) {
    Stream main(device), side(device);
    Tensor x = full({1000}, 2, {.device = device}, main), a, b, c;
    Graph graph({.backend = backend});
    {
      GraphCapture capture(graph, main);
      a = add(x, x, {}, main);
      Event forked;
      forked.record(main);
      side.wait(forked);
      EXPECT_TRUE(side.is_capturing());
      b = mul(a, a, {}, side);
      a = neg(x, {}, main);
      Event joined;
      joined.record(side);
      main.wait(joined);
      c = add(a, b, {}, main);
    }
    EXPECT_FALSE(side.is_capturing());
    std::vector<GraphNode> nodes = graph.nodes();
    auto stream_of = [&](std::string_view op) { return nodes[static_cast<std::size_t>(graph.find(op).front())].stream; };
    EXPECT_EQ(stream_of("mul"), side.id());
    EXPECT_EQ(stream_of("neg"), main.id());
    for (int i = 0; i < 2; ++i) graph.replay(main);
    EXPECT_EQ(c.to_host<float>(main)[999], 14);
    // The side stream works again.
    EXPECT_EQ(full({1}, 4, {.device = device}, side).to_host<float>(side)[0], 4);

    Graph loose({.backend = backend});
    loose.capture_begin(main);
    Event forked;
    forked.record(main);
    side.wait(forked);
    fill_(x, 1, {}, side);
    EXPECT_EQ(code_of([&] { loose.capture_end(); }), ErrorCode::capturing);
    EXPECT_FALSE(side.is_capturing());
    EXPECT_FALSE(main.is_capturing());
  }
}

TEST(Graphs, DependenciesAreThoseOfTheBytes) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device);
    Tensor x = zeros({64}, {.device = device}, stream), y = zeros({64}, {.device = device}, stream);
    Graph graph({.backend = "host"});
    {
      GraphCapture capture(graph, stream);
      fill_(x.slice(0, 0, 32), 1);   // 0
      fill_(x.slice(0, 32, 64), 2);  // 1
      copy_(y, x);                   // 2: reads both
      fill_(x.slice(0, 0, 16), 3);   // 3: overwrites what 2 read, of 0
      fill_(y, 4);                   // 4
    }
    std::vector<GraphNode> nodes = graph.nodes();
    ASSERT_EQ(nodes.size(), 5u);
    EXPECT_EQ(nodes[0].dependencies, std::vector<int>{});
    EXPECT_EQ(nodes[1].dependencies, std::vector<int>{});
    EXPECT_EQ(nodes[2].dependencies, (std::vector<int>{0, 1}));
    EXPECT_EQ(nodes[3].dependencies, (std::vector<int>{0, 2}));
    EXPECT_EQ(nodes[4].dependencies, std::vector<int>{2});
  }
}

TEST(Graphs, HostTasksAndOpaqueNodesSplitANativeGraph) {
  CLUTCH_EACH_BACKEND(device, backend) {
    Stream stream(device);
    Tensor x = full({16}, 1, {.device = device}, stream), y = zeros({16}, {.device = device}, stream);
    Tensor z = zeros({16}, {.device = device}, stream);
    int tasks = 0;
    Graph graph({.backend = backend});
    {
      GraphCapture capture(graph, stream);
      add_(x, x);
      {
        Encoder encoder(stream, "doubler");
        encoder.host_task(
            [&tasks](std::span<void* const> p) {
              ++tasks;
              for (int i = 0; i < 16; ++i) static_cast<float*>(p[1])[i] = 2 * static_cast<float*>(p[0])[i];
            },
            std::array{x}, std::array{y});
        encoder.opaque(
            [y, z](void* queue) {
              clEnqueueCopyBuffer(static_cast<cl_command_queue>(queue), interop::mem(y), interop::mem(z), interop::offset(y), interop::offset(z), 64, 0,
                                  nullptr, nullptr);
            },
            std::array{y}, std::array{z});
      }
      add_(z, x);
    }
    EXPECT_EQ(tasks, 0);
    for (int i = 1; i <= 3; ++i) {
      graph.replay(stream);
      EXPECT_EQ(z.to_host<float>(stream)[15], static_cast<float>(3 << i));
    }
    EXPECT_EQ(tasks, 3);
    if (backend == "native") {
      EXPECT_EQ(graph.report().native_parts, 2u);
      EXPECT_EQ(graph.report().native_nodes, graph.nodes().size() - 2);
    }
  }
}

TEST(Graphs, CallersKernelsAreCapturedAndUpdatedByName) {
  CLUTCH_EACH_BACKEND(device, backend) {
    Stream stream(device);
    KernelSource saxpy{.text = R"(__kernel void saxpy(__global float* y, __global const float* x, float a, uint n) {
      for (uint i = get_global_id(0); i < n; i += get_global_size(0)) y[i] = fma(a, x[i], y[i]); })",
                       .entry = "saxpy"};
    Tensor x = full({100}, 1, {.device = device}, stream), y = zeros({100}, {.device = device}, stream), other = full({100}, 10, {.device = device}, stream);
    Graph graph({.backend = backend});
    {
      GraphCapture capture(graph, stream);
      launch(saxpy, {.global = 4, .local = 1}, {inout(y, "y"), input(x, "x"), value(2.0f, "a"), value(100u)});
    }
    graph.replay(stream);
    EXPECT_EQ(y.to_host<float>(stream)[99], 2);
    ASSERT_EQ(graph.find("saxpy"), std::vector<int>{0});
    graph.update(0, {value(3, "a")});
    graph.replay(stream);
    EXPECT_EQ(y.to_host<float>(stream)[99], 5);
    graph.update(0, {input(other, "x"), value(0.5, "a")});
    graph.replay(stream);
    EXPECT_EQ(y.to_host<float>(stream)[99], 10);
    graph.update(0, {value(50, "value1")});
    graph.replay(stream);
    EXPECT_EQ(y.to_host<float>(stream)[99], 10);
    EXPECT_EQ(y.to_host<float>(stream)[49], 15);

    if (backend == "native" && device.extensions().find("cl_khr_command_buffer_mutable_dispatch") != std::string::npos) {
      EXPECT_EQ(graph.report().why.find(" 0 updates"), std::string::npos) << graph.report().why;
    }
    // The library's own ops name theirs, too.
    Graph own({.backend = backend});
    {
      GraphCapture capture(own, stream);
      addcmul_(y, x, x, {.value = 1});
      add_(y, 4);
    }
    fill_(y, 0, {}, stream);
    own.update(own.find("addcmul_").at(0), {value(5, "value")});
    own.update(own.find("add_").at(0), {value(-1, "param0")});
    own.replay(stream);
    EXPECT_EQ(y.to_host<float>(stream)[0], 4);
    fill_(y.slice(0, 0, 50), 15, {}, stream);

    Tensor whole = zeros({200}, {.device = device}, stream);
    EXPECT_EQ(code_of([&] { graph.update(1, {value(1, "a")}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { graph.update(0, {value(1, "b")}); }), ErrorCode::invalid_argument);
    EXPECT_NE(message_of([&] { graph.update(0, {value(1, "b")}); }).find('y'), std::string::npos);
    EXPECT_EQ(code_of([&] { graph.update(0, {value(-1, "value1")}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { graph.update(0, {value(1.5, "value1")}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { graph.update(0, {value(std::int64_t{1} << 40, "value1")}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { graph.update(0, {input(whole, "x")}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { graph.update(0, {input(whole.slice(0, 0, 200, 2), "x")}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { graph.update(0, {input(y, "x")}); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([&] { graph.update(0, {input(zeros({100}, {.dtype = DType::i32, .device = device}, stream), "x")}); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { graph.update(0, {input(x, "a")}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { graph.update(0, {value(1, "x")}); }), ErrorCode::invalid_argument);
    graph.replay(stream);
    EXPECT_EQ(y.to_host<float>(stream)[49], 20) << "a refused update changes nothing";
  }
}

TEST(Graphs, RebindingPutsOtherTensorsInTheirPlace) {
  CLUTCH_EACH_BACKEND(device, backend) {
    Stream stream(device);
    auto make = [&](double v) { return full({4, 8}, v, {.device = device}, stream); };
    Tensor x = make(1), w = make(2), y = make(0);
    Graph graph({.backend = backend});
    {
      GraphCapture capture(graph, stream);
      Tensor t = mul(x, w);
      copy_(y, add(t, t));
    }
    auto builds = build_counters().built;
    std::vector<Tensor> weights, outs;
    for (int i = 0; i < 5; ++i) weights.push_back(make(i)), outs.push_back(make(-1));
    for (int round = 0; round < 2; ++round)
      for (std::size_t i = 0; i < 5; ++i) {
        graph.replay({{w, weights[i]}, {y, outs[i]}}, stream);
        EXPECT_EQ(outs[i].to_host<float>(stream)[31], static_cast<float>(2 * i));
      }
    EXPECT_EQ(y.to_host<float>(stream)[0], 0) << "the captured tensor was not touched";
    graph.replay(stream);
    EXPECT_EQ(y.to_host<float>(stream)[0], 4) << "and is bound again";
    graph.rebind({{w, weights[4]}});
    graph.replay(stream);
    EXPECT_EQ(y.to_host<float>(stream)[0], 8);
    graph.replay({{w, weights[3]}}, stream);
    EXPECT_EQ(y.to_host<float>(stream)[0], 6);
    graph.replay(stream);
    EXPECT_EQ(y.to_host<float>(stream)[0], 8) << "rebind() lasts";
    graph.rebind({{w, w}});
    graph.replay(stream);
    EXPECT_EQ(y.to_host<float>(stream)[0], 4);
    EXPECT_EQ(build_counters().built, builds);

    EXPECT_EQ(code_of([&] { graph.rebind({{make(0), w}}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { graph.rebind({{w, Tensor()}}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { graph.rebind({{w, zeros({4, 4}, {.device = device}, stream)}}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { graph.rebind({{w, make(0).mT()}}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { graph.rebind({{w.slice(0, 0, 2), make(0).slice(0, 0, 2)}}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { graph.replay({{y, zeros({4, 8}, {.dtype = DType::i32, .device = device}, stream)}}, stream); }), ErrorCode::invalid_dtype);
    graph.replay(stream);
    EXPECT_EQ(y.to_host<float>(stream)[0], 4);
  }
}

/// A node's plan is that of its own kernel, whatever else its op or another one plans before and after it.
TEST(Graphs, EachNodeHasThePlanOfItsOwnKernel) {
  CLUTCH_EACH_DEVICE(device) {
    const TensorOptions f32{.device = device};
    Tensor square = randn({20, 12, 12}, {.device = device, .seed = 1}), lines = randn({3, 12000}, {.device = device, .seed = 2});
    Tensor a = randn({70, 64}, {.device = device, .seed = 3}), b = randn({64, 96}, {.device = device, .seed = 4});
    Tensor q = randn({1, 2, 1, 64}, {.device = device, .seed = 5}), keys = randn({1, 2, 700, 64}, {.device = device, .seed = 6});
    const sparse::SemiStructured w = sparse::compress(sparse::prune_2_4(b.mT().contiguous()));
    Tensor index = zeros({40}, {.dtype = DType::i64, .device = device}), drawn = zeros({40}, f32), transposed = zeros({8, 5}, f32).mT();
    const std::pair<const char*, std::function<void()>> calls[] = {
        {"eigh", [&] { linalg::eigh(square); }},
        {"cumsum", [&] { cumsum(lines, 1); }},
        {"matmul", [&] { linalg::matmul(a, b, {.implementation = "matmul_items"}), linalg::matmul(a, b); }},
        {"flex", [&] { attention::flex(q, keys, keys); }},
        {"sparse24", [&] { sparse::matmul(w, a.mT()), sparse::decompress(sparse::compress(b)), sparse::mask_2_4(b); }},
        {"group_by", [&] { group_by(index, 9); }},
        {"sort", [&] { sort(lines), topk(lines, 50), kthvalue(lines, 2, 0); }},
        {"index", [&] { clutch::index(a, {index}), index_put(a, {index}, a.select(0, 0), {.accumulate = true}); }},
        {"nonzero_static", [&] { nonzero_static(lines, 20000), count_nonzero(lines); }},
        {"block_mask",
         [&] { attention::create_block_mask([](Index, Index, Index i, Index j) { return i >= j; }, {.q_len = 300, .kv_len = 300, .device = device}); }},
        {"random", [&] { uniform_(drawn), normal_(transposed); }},
    };
    for (const auto& [name, call] : calls) {
      SCOPED_TRACE(name);
      Stream stream(device);
      StreamGuard guard(stream);
      synchronize(device);
      call();  // default_generator() and programs are there
      synchronize(device);
      Graph graph;
      {
        GraphCapture capture(graph, stream);
        call();
      }
      std::size_t kernels = 0;
      for (const GraphNode& node : graph.nodes()) {
        if (node.kind != GraphNodeKind::kernel) continue;
        ++kernels;
        EXPECT_TRUE((node.plan + " ").starts_with(node.kernel + " ")) << node.op << " " << node.kernel << ": " << node.plan;
      }
      EXPECT_GE(kernels, std::string_view(name) == "cumsum" ? 3u : 1u);
    }
  }
}

TEST(Graphs, TemporariesShareMemoryByTheirLifetimes) {
  CLUTCH_EACH_BACKEND(device, backend) {
    Stream stream(device);
    constexpr std::int64_t kN = 1 << 16;
    Tensor x = full({kN}, 1, {.device = device}, stream), y;
    Graph graph({.backend = backend});
    {
      GraphCapture capture(graph, stream);
      Tensor t = add(x, x);
      for (int i = 0; i < 20; ++i) t = add(t, x);
      y = t;
    }
    GraphReport report = graph.report();
    const bool fused = backend == "fused";  // stores none of them
    EXPECT_EQ(report.temporary_bytes, fused ? 0u : 20u * kN * 4);
    EXPECT_EQ(report.reserved_bytes, fused ? 0u : 2u * kN * 4) << "a chain needs two at a time";
    EXPECT_EQ(report.unfused_bytes, 2u * kN * 4);
    EXPECT_EQ(report.result_bytes, 1u * kN * 4);
    for (int i = 0; i < 2; ++i) graph.replay(stream);
    EXPECT_EQ(y.to_host<float>(stream)[kN - 1], 22);
    // Nothing of it is left when the graph and its results are gone.
    std::uint64_t with = memory_allocated(device);
    graph.reset();
    y = Tensor();
    EXPECT_EQ(with - memory_allocated(device), (fused ? 1u : 3u) * kN * 4);
  }
}

TEST(Graphs, PoolsAreSharedAmongGraphs) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device);
    constexpr std::int64_t kN = 1 << 16;
    Tensor x = full({kN}, 1, {.device = device}, stream), y, z;
    auto chain = [&](int length) {
      Tensor t = add(x, x);
      for (int i = 0; i < length; ++i) t = add(t, x);
      return t;
    };
    Graph first, second;
    {
      GraphCapture capture(first, stream);
      y = chain(4);
    }
    std::uint64_t before = memory_allocated(device);
    {
      GraphCapture capture(second, stream, {.pool = first.pool()});
      z = chain(6);
    }
    EXPECT_EQ(second.pool(), first.pool());
    EXPECT_EQ(memory_allocated(device) - before, 1u * kN * 4) << "its result alone";
    for (int i = 0; i < 2; ++i) {
      first.replay(stream);
      second.replay(stream);
    }
    EXPECT_EQ(y.to_host<float>(stream)[0], 6);
    EXPECT_EQ(z.to_host<float>(stream)[0], 8);
    first.reset();
    second.replay(stream);
    EXPECT_EQ(z.to_host<float>(stream)[0], 8);
  }
}

TEST(Graphs, ExternalMemoryIsKeptAlive) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device);
    Tensor y = zeros({1000}, {.device = device}, stream);
    Graph graph;
    {
      Tensor x = full({1000}, 7, {.device = device}, stream);
      GraphCapture capture(graph, stream);
      add_(y, x);
    }
    for (int i = 0; i < 20; ++i) full({1000}, -1, {.device = device}, stream);  // would take the memory
    graph.replay(stream);
    EXPECT_EQ(y.to_host<float>(stream)[999], 7);
  }
}

// As gradients are recorded: by a thread that has no names of its own.
TEST(Graphs, OtherThreadsTakeTheNamesOfTheRecordingOne) {
  Device device;
  Stream stream(device);
  Tensor x = full({4}, 1, {.device = device}, stream);
  Graph graph;
  auto elsewhere = [&](bool named) {
    std::thread([&] {
      std::optional<GraphAnnotation> own;
      if (named) own.emplace("own");
      StreamGuard guard(stream);
      add_(x, x);
    }).join();
  };
  {
    GraphCapture capture(graph, stream, {.mode = CaptureMode::relaxed});
    elsewhere(false);
    GraphAnnotation label("backward");
    elsewhere(false);
    elsewhere(true);
  }
  EXPECT_EQ(graph.find("backward"), std::vector<int>{1});
  EXPECT_EQ(graph.find("own"), std::vector<int>{2});
}

TEST(Graphs, AnnotationsNameNodesInDumps) {
  CLUTCH_EACH_BACKEND(device, backend) {
    Stream stream(device);
    Tensor x = full({4}, 1, {.device = device}, stream);
    Graph graph({.backend = backend});
    {
      GraphCapture capture(graph, stream);
      add_(x, x);
      GraphAnnotation outer("layer", {{"index", "3"}});
      add_(x, x);
      {
        GraphAnnotation inner("attention \"q\"");
        add_(x, x);
      }
      add_(x, x);
    }
    EXPECT_EQ(graph.find("layer"), (std::vector<int>{1, 2, 3}));
    EXPECT_EQ(graph.find("attention \"q\""), std::vector<int>{2});
    std::vector<GraphNode> nodes = graph.nodes();
    ASSERT_EQ(nodes[2].labels.size(), 2u);
    EXPECT_EQ(nodes[2].labels[0].values, (std::vector<std::pair<std::string, std::string>>{{"index", "3"}}));
    graph.replay(stream);
    std::string json = graph.to_string(), dot = graph.to_string(GraphDump::dot);
    EXPECT_NE(json.find("\"attention \\\"q\\\"\""), std::string::npos);
    EXPECT_NE(json.find(nodes[0].kernel), std::string::npos);
    EXPECT_NE(dot.find("n0 -> n1"), std::string::npos);
    EXPECT_NE(dot.find("@layer"), std::string::npos);
    std::string path = ::testing::TempDir() + "clutch_graph_dump.json";
    graph.debug_dump(path, GraphDump::json);
    std::ifstream in(path);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), graph.to_string());
    EXPECT_EQ(code_of([&] { graph.debug_dump("/nowhere/at/all"); }), ErrorCode::io);
  }
}

TEST(Graphs, AGraphedCallableCopiesItsInputs) {
  CLUTCH_EACH_BACKEND(device, backend) {
    Tensor a = full({3, 5}, 1, {.device = device}), b = full({5}, 2, {.device = device});
    int calls = 0;
    auto callable = make_graphed_callable(
        [&](std::span<const Tensor> in) {
          ++calls;
          Tensor product = mul(in[0], in[1]);
          return std::vector<Tensor>{product, sum(product)};
        },
        std::array{a, b}, {.graph = {.backend = backend}});
    EXPECT_EQ(calls, 4);
    const auto& first = callable({a, b});
    EXPECT_EQ(first[1].item(), 30);
    const auto& second = callable({full({3, 5}, 3, {.device = device}), b});
    EXPECT_EQ(second[0].to_host<float>()[14], 6);
    EXPECT_EQ(second[1].item(), 90);
    EXPECT_EQ(a.to_host<float>()[0], 3) << "the sample holds the input";
    EXPECT_EQ(calls, 4);
    EXPECT_EQ(code_of([&] { callable({a}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { callable({b, a}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { callable({a, zeros({5}, {.dtype = DType::f16, .device = device})}); }), ErrorCode::invalid_dtype);
  }
}

/// What an object makes at its first use is not kept from a capture, which may come to nothing.
TEST(Graphs, AnAbandonedCaptureLeavesNothingBehind) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device);
    StreamGuard guard(stream);
    const Tensor grad = full({300}, 2, {.device = device}), x = randn({5, 64}, {.device = device, .seed = 1});
    const sparse::SemiStructured w = sparse::compress(sparse::prune_2_4(randn({32, 64}, {.device = device, .seed = 2})));
    Tensor p = full({300}, 1, {.device = device}), scaled = p.clone();
    optim::SGD sgd({p}, {.lr = 0.5}), other({scaled}, {.lr = 0.5});
    optim::GradScaler scaler({.init_scale = 4}, device);
    auto all = [&] {
      sgd.step(std::span(&grad, 1), {.max_norm = 1});
      scaler.step(other, std::span(&grad, 1), {.max_norm = 1});
      scaler.update();
      return sparse::matmul_transposed(x, w);
    };
    Graph graph;
    graph.capture_begin(stream);
    all();
    graph.capture_abandon();
    EXPECT_EQ(all().to_bytes(), linalg::matmul(x, sparse::decompress(w).mT()).to_bytes());
    EXPECT_LT(p.to_host<float>()[299], 1);
    EXPECT_LT(scaled.to_host<float>()[299], 1);
  }
}

/// Inputs may be the captured samples in another order, or views that overlap them: each is read as it was before the call.
TEST(Graphs, AGraphedCallableTakesItsOwnSamplesInAnyOrder) {
  CLUTCH_EACH_DEVICE(device) {
    using Values = std::vector<float>;
    Tensor whole = arange(0, 12, 1, {.device = device}), p = whole.slice(0, 0, 4), q = whole.slice(0, 4, 8), r = full({4}, -1, {.device = device});
    auto callable = make_graphed_callable(
        [](std::span<const Tensor> in) {
          return std::vector<Tensor>{add(in[0], mul(in[1], 100)), in[2].clone()};
        },
        std::array{p, q, r}, {.warm_ups = 1});
    auto call = [&](const Tensor& a, const Tensor& b, const Tensor& c) {
      arange_(whole, 0, 1);
      fill_(r, -1);
      return callable({a, b, c})[0].to_host<float>();
    };
    EXPECT_EQ(call(p, q, r), (Values{400, 501, 602, 703}));
    EXPECT_EQ(call(q, p, r), (Values{4, 105, 206, 307})) << "swapped";
    EXPECT_EQ(call(q, r, p), (Values{-96, -95, -94, -93})) << "each in the place of the next";
    EXPECT_EQ(callable({p, q, r})[1].to_host<float>(), (Values{0, 1, 2, 3})) << "the third sample holds what the first one held";
    EXPECT_EQ(call(p, p, p), (Values{0, 101, 202, 303})) << "one for all";
    EXPECT_EQ(call(whole.slice(0, 2, 6), whole.slice(0, 3, 7), r), (Values{302, 403, 504, 605})) << "views that overlap both samples";
    EXPECT_EQ(call(whole.slice(0, 1, 5), q, r), (Values{401, 502, 603, 704})) << "a view that overlaps its own sample";
    EXPECT_EQ(call(q, whole.slice(0, 0, 8, 2), r), (Values{4, 205, 406, 607})) << "a strided view of both";
    EXPECT_EQ(callable({p, q, r})[0].to_host<float>(), (Values{4, 205, 406, 607})) << "the samples hold the inputs";
    // Samples that share memory: what cannot be right is refused.
    auto twice = make_graphed_callable([](std::span<const Tensor> in) { return std::vector<Tensor>{add(in[0], in[1])}; }, std::array{p, p}, {.warm_ups = 1});
    EXPECT_EQ(twice({r, r})[0].to_host<float>(), (Values{-2, -2, -2, -2}));
    EXPECT_EQ(code_of([&] { twice({r, q}); }), ErrorCode::invalid_overlap);
    auto meet = make_graphed_callable([](std::span<const Tensor> in) { return std::vector<Tensor>{add(in[0], in[1])}; },
                                      std::array{whole.slice(0, 0, 4), whole.slice(0, 2, 6)}, {.warm_ups = 1});
    EXPECT_EQ(code_of([&] { meet({r, whole.slice(0, 2, 6)}); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([&] { meet({whole.slice(0, 0, 4), whole.slice(0, 2, 6)}); }), ErrorCode::ok);
  }
}

/// A backend from outside: enqueues backwards through the program's own calls where the graph allows it.
class CountingBackend : public GraphImpl {
 public:
  static inline int instantiated = 0, replayed = 0, nodes = 0;
  static inline std::string calls;
  static inline PoolId shared;
  void begin(const Stream&, CaptureMode) override { calls += "begin "; }
  void end(const GraphProgram& program) override { calls += fmt::format("end of {} ", program.size()); }
  PoolId pool() const override { return shared; }
  std::string refuses(const GraphProgram& program) const override { return program.size() > 3 ? "more than three nodes" : ""; }
  void instantiate(const GraphProgram& program) override { ++instantiated, nodes = program.size(); }
  void replay(const GraphProgram& program, const Stream& stream) override {
    ++replayed;
    for (int i = 0; i < program.size(); ++i) program.enqueue(i, stream);
  }
  void reset() override {}
  std::string debug() const override { return "counts"; }
};

TEST(Graphs, BackendsFromOutsideAreRegisteredByName) {
  register_graph_backend("counting", [] { return std::make_unique<CountingBackend>(); });
  EXPECT_EQ(code_of([] { register_graph_backend("host", [] { return std::make_unique<CountingBackend>(); }); }), ErrorCode::invalid_argument);
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device);
    Tensor x = full({4}, 1, {.device = device}, stream);
    CountingBackend::instantiated = CountingBackend::replayed = 0;
    CountingBackend::calls.clear();
    CountingBackend::shared = new_pool();
    Graph graph({.backend = "counting"});
    {
      GraphCapture capture(graph, stream);
      add_(x, x);
      add_(x, x);
    }
    for (int i = 0; i < 2; ++i) graph.replay(stream);
    EXPECT_EQ(x.to_host<float>(stream)[3], 16);
    EXPECT_EQ(CountingBackend::instantiated, 1);
    EXPECT_EQ(CountingBackend::replayed, 2);
    EXPECT_EQ(CountingBackend::nodes, 2);
    EXPECT_EQ(CountingBackend::calls, "begin end of 2 ");
    EXPECT_EQ(graph.pool(), CountingBackend::shared);
    EXPECT_EQ(graph.report().why, "counts");
    Graph big({.backend = "counting"});
    EXPECT_EQ(code_of([&] {
                GraphCapture capture(big, stream);
                for (int i = 0; i < 4; ++i) add_(x, x);
              }),
              ErrorCode::not_supported);
  }
}

}}  // namespace clutch::testing
