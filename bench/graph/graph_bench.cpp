// SPDX-License-Identifier: Apache-2.0
#define CL_TARGET_OPENCL_VERSION 300
// Replays beside a bare loop of clEnqueueNDRangeKernel whose arguments are set beforehand (`enqueue`), and beside eager calls.
#include "cases/networks.hpp"
#include "harness/rows.hpp"

#include <clutch/interop_cl.hpp>

#include <chrono>
#include <cmath>
#include <functional>

namespace clutch::bench {

void register_graph(Rows& rows);

namespace {

using Build = std::function<void(const Stream&)>;  // enqueues the work once

std::function<std::string(const Device&)> lacks_for(std::string_view backend) {
  if (backend != "native") return {};
  return [](const Device& device) { return device.traits().command_buffer > 0 ? std::string() : std::string("command buffers"); };
}

std::shared_ptr<Graph> captured(const Build& build, const Stream& stream, const std::string& backend) {
  auto graph = std::make_shared<Graph>(GraphOptions{.backend = backend});
  GraphCapture capture(*graph, stream);
  build(stream);
  return graph;
}

/// The graph's kernels in a plain loop. Graphs with other nodes have no such peer.
std::optional<Peer> enqueue_peer(const Graph& graph, const Stream& stream) {
  struct Kernels {
    std::vector<interop::Launched> all;
    ~Kernels() {
      for (auto& k : all) clReleaseKernel(k.kernel);
    }
  };
  auto kernels = std::make_shared<Kernels>();
  GraphProgram program = graph.program();
  for (int i = 0; i < program.size(); ++i) {
    if (program.kind(i) != GraphNodeKind::kernel) return std::nullopt;
    kernels->all.push_back(interop::kernel(program, i));
  }
  cl_command_queue queue = interop::queue(stream);
  return Peer{"enqueue", [=](int reps) {
                for (int r = 0; r < reps; ++r)
                  for (const auto& k : kernels->all) {
                    const Geometry& g = k.geometry;
                    const std::size_t global[3] = {g.global, g.global_y, g.global_z}, local[3] = {g.local, g.local_y, g.local_z};
                    clEnqueueNDRangeKernel(queue, k.kernel,
                                           g.global_z > 1   ? 3
                                           : g.global_y > 1 ? 2
                                                            : 1,
                                           nullptr, global, g.local > 0 ? local : nullptr, 0, nullptr, nullptr);
                  }
                clFinish(queue);
              }};
}

/// Work of a row: the calls, and the tensor in which their result shows.
struct Model {
  Build build;
  Tensor result;
  std::function<void()> renew;  ///< puts the inputs back
};

/// Rows of one model: each backend and eager calls, all beside the bare loop; the check compares with eager bits.
void add_rows(Rows& rows, const std::string& name, bool in_quick, const std::function<Model(const Device&)>& make) {
  for (const char* backend : {"host", "native", "fused", "auto", "eager"}) {
    rows.push_back({.name = fmt::format("graph/{}/{}", name, backend),
                    .in_quick = in_quick && std::string_view(backend) != "auto",
                    .prepare =
                        [=](const Device& device) {
                          Stream stream = current_stream(device);
                          bool eager = std::string_view(backend) == "eager";
                          auto model = std::make_shared<Model>(make(device));
                          model->build(stream);  // builds programs
                          auto graph = captured(model->build, stream, eager ? "host" : backend);
                          Work work;
                          work.run = [=](int reps) {
                            for (int r = 0; r < reps; ++r) eager ? model->build(stream) : graph->replay(stream);
                            stream.synchronize();
                          };
                          work.check = [=]() -> std::string {
                            model->renew();
                            model->build(stream);
                            std::vector<std::uint8_t> want = model->result.to_bytes(stream);
                            model->renew();
                            eager ? model->build(stream) : graph->replay(stream);
                            return model->result.to_bytes(stream) == want ? "" : "the replay differs from eager calls";
                          };
                          if (auto peer = enqueue_peer(eager ? *graph : *captured(model->build, stream, "host"), stream))
                            work.peers.push_back(std::move(*peer));
                          return work;
                        },
                    .lacks = lacks_for(backend)});
  }
}

Model chain(const Device& device, std::int64_t n) {
  Tensor x = zeros({n}, {.device = device});
  return {[=](const Stream& stream) {
            for (int i = 0; i < 200; ++i) add_(x, 1, {}, stream);
          },
          x, [=] { fill_(x, 0); }};
}

/// 12 layers of 17 different calls on (64, 256).
Model mixed(const Device& device) {
  Tensor start = randn({64, 256}, {.device = device, .seed = 1}), x = start.clone(), w = randn({256}, {.device = device, .seed = 2});
  Tensor b = randn({256}, {.device = device, .seed = 3});
  auto layer = [=](const Stream& s) {
    Tensor h = nn::layer_norm(x, w, b, {}, s).y;
    h = gelu(h, GeluForm::tanh, {}, s);
    h = h.mT().contiguous(s);
    h = nn::softmax(h, -1, s);
    h = h.mT().contiguous(s);
    h = h.to(DType::f16, {}, s);
    h = h.to(DType::f32, {}, s);
    h = add(h, sum(h, {.dims = {-1}, .keepdim = true}, s), {}, s);
    h = sub(h, amax(h, {.dims = {0}, .keepdim = true}, s), {}, s);
    h = exp(h, {}, s);
    h = mul(h, w, {}, s);
    h = tanh(h, {}, s);
    h = maximum(h, b, {}, s);
    h = div(h, 3, {}, s);
    add_(x, h, {}, s);
  };
  return {[=](const Stream& stream) {
            for (int i = 0; i < 12; ++i) layer(stream);
          },
          x, [=] { copy_(x, start); }};
}

/// A step of plain SGD of a perceptron, 32 x 64 -> 128 -> 10.
Model mlp_step(const Device& device) {
  Tensor x = randn({32, 64}, {.device = device, .seed = 1}), one = full({}, 1, {.device = device});
  std::vector<std::int64_t> classes;
  for (int i = 0; i < 32; ++i) classes.push_back(i % 10);
  Tensor target = from_host(classes, {32}, device);
  Tensor w1 = mul(randn({64, 128}, {.device = device, .seed = 2}), 0.1), w2 = mul(randn({128, 10}, {.device = device, .seed = 3}), 0.1);
  Tensor s1 = w1.clone(), s2 = w2.clone();
  return {[=](const Stream& s) {
            Tensor before = linalg::matmul(x, w1, {}, s), hidden = relu(before, {}, s), logits = linalg::matmul(hidden, w2, {}, s);
            auto loss = nn::cross_entropy(logits, target, {}, s);
            Tensor g = nn::cross_entropy_backward(one, logits, target, loss, {}, s);
            Tensor g2 = linalg::matmul(hidden.mT(), g, {}, s), back = linalg::matmul(g, w2.mT(), {}, s);
            Tensor back_in = map([](Expr v, Expr d) { return select(v > 0, d, 0.0f); }, {before, back}, {}, s), g1 = linalg::matmul(x.mT(), back_in, {}, s);
            add_scaled_(w1, g1, -0.1, {}, s);
            add_scaled_(w2, g2, -0.1, {}, s);
          },
          w1, [=] { copy_(w1, s1), copy_(w2, s2); }};
}

/// Forward, backward, clip, AdamW and schedule of a transformer block.
Model train_step(const Device& device) {
  struct Training {
    cases::TransformerBlock net;
    optim::AdamW adamw;
    optim::LRScheduler schedule;
    std::map<std::string, Tensor> start;
    explicit Training(const Device& on)
        : net(on), adamw(net.param_list(), {.lr = 1e-2}), schedule(adamw, {.warmup_steps = 10, .decay = optim::Decay::cosine, .decay_steps = 1000000}) {
      for (const auto& [name, t] : net.params) start[name] = t.clone();
    }
  };
  auto t = std::make_shared<Training>(device);
  return {[t](const Stream& s) {
            StreamGuard guard(s);
            t->net.loss_and_grads();
            t->adamw.step(t->net.grad_list(), {.lr = t->schedule.lr(), .max_norm = 1}, s);
            t->schedule.step(s);
          },
          t->net.params.at("characters"),
          [t] {
            for (const auto& [name, p] : t->net.params) copy_(p, t->start.at(name));
            for (const auto& [name, state] : t->adamw.state()) fill_(state, 0);
            for (const auto& [name, state] : t->schedule.state()) t->schedule.load_state({{name, zeros({1}, {.dtype = DType::i64, .device = state.device()})}});
          }};
}

/// 24 layers that differ in their weights: captured as a whole (the peer `captured`), or one of them, replayed with others' weights bound.
void add_layers(Rows& rows) {
  struct Weights {
    Tensor norm, bias, scale, shift;
  };
  for (const char* backend : {"host", "native"})
    rows.push_back({.name = fmt::format("graph/layer_x24/{}", backend),
                    .prepare =
                        [=](const Device& device) {
                          Stream stream = current_stream(device);
                          Tensor start = randn({64, 1024}, {.device = device, .seed = 1}), x = start.clone();
                          auto weights = std::make_shared<std::vector<Weights>>();
                          std::uint64_t seed = 2;
                          auto random = [&] { return randn({1024}, {.device = device, .seed = seed++}); };
                          for (int i = 0; i < 24; ++i) weights->push_back({random(), random(), random(), random()});
                          auto layer = [=](const Weights& w, const Stream& s) {
                            Tensor h = nn::layer_norm(x, w.norm, w.bias, {}, s).y;
                            h = gelu(h, GeluForm::tanh, {}, s);
                            h = mul(h, w.scale, {}, s);
                            h = add(h, w.shift, {}, s);
                            add_(x, nn::softmax(h, -1, s), {}, s);
                          };
                          Build whole = [=](const Stream& s) {
                            for (const Weights& w : *weights) layer(w, s);
                          };
                          whole(stream);
                          auto all = captured(whole, stream, backend);
                          auto one = captured([=](const Stream& s) { layer((*weights)[0], s); }, stream, backend);
                          auto regional = [=] {
                            const Weights& first = (*weights)[0];
                            for (const Weights& w : *weights)
                              one->replay({{first.norm, w.norm}, {first.bias, w.bias}, {first.scale, w.scale}, {first.shift, w.shift}}, stream);
                          };
                          Work work;
                          work.run = [=](int reps) {
                            for (int r = 0; r < reps; ++r) regional();
                            stream.synchronize();
                          };
                          work.check = [=]() -> std::string {
                            copy_(x, start);
                            whole(stream);
                            std::vector<std::uint8_t> want = x.to_bytes(stream);
                            copy_(x, start);
                            regional();
                            if (x.to_bytes(stream) != want) return "replays of one layer differ from eager calls";
                            copy_(x, start);
                            all->replay(stream);
                            return x.to_bytes(stream) == want ? "" : "the captured whole differs from eager calls";
                          };
                          work.peers.push_back({"captured", [=](int reps) {
                                                  for (int r = 0; r < reps; ++r) all->replay(stream);
                                                  stream.synchronize();
                                                }});
                          return work;
                        },
                    .lacks = lacks_for(backend)});
}

/// A loop of 1,000 small iterations whose end the device decides, beside a loop of eager calls that reads its predicate on the host.
void add_loops(Rows& rows) {
  for (const char* backend : {"host", "fused", "auto"})
    rows.push_back({.name = fmt::format("graph/while_1000/{}", backend), .prepare = [=](const Device& device) {
                      constexpr int kTurns = 1000;
                      Stream stream = current_stream(device);
                      Tensor end = full({}, kTurns, {.dtype = DType::i32, .device = device}), start = randn({64}, {.device = device, .seed = 1});
                      Tensor zero = full({}, 0, {.dtype = DType::i32, .device = device});
                      auto condition = [=](const Tensor& i) { return lt(i, end); };
                      auto body = [](const Tensor& i, const Tensor& x) {
                        add_(i, 1);
                        map_out(x, [](Expr v) { return v * 0.5f + 1.0f; }, {x});
                      };
                      auto result = std::make_shared<LoopResult>();
                      auto graph = captured(
                          [=](const Stream& s) {
                            const StreamGuard guard(s);
                            *result = while_loop([=](std::span<const Tensor> t) { return condition(t[0]); },
                                                 [=](std::span<const Tensor> t) {
                                                   return body(t[0], t[1]), std::vector{t[0], t[1]};
                                                 },
                                                 std::array{zero, start}, {.max_iterations = kTurns});
                          },
                          stream, backend);
                      auto by_host = [=] {
                        Tensor i = zero.clone(), x = start.clone();
                        while (condition(i).item() != 0) body(i, x);
                        return x;
                      };
                      Work work;
                      work.run = [=](int reps) {
                        for (int r = 0; r < reps; ++r) graph->replay(stream);
                        stream.synchronize();
                      };
                      work.check = [=]() -> std::string {
                        graph->replay(stream);
                        return result->state[1].to_bytes(stream) == by_host().to_bytes(stream) ? "" : "the replay differs from eager calls";
                      };
                      work.peers.push_back({"host_loop", [=](int reps) {
                                              for (int r = 0; r < reps; ++r) by_host();
                                              stream.synchronize();
                                            }});
                      return work;
                    }});
}

double seconds_of(const std::function<void()>& f) {
  auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

void register_graph(Rows& rows) {
  add_rows(rows, "chain_200x1k", true, [](const Device& device) { return chain(device, 1024); });
  add_rows(rows, "chain_200x64k", false, [](const Device& device) { return chain(device, 65536); });
  add_rows(rows, "mixed_12x17", false, mixed);
  add_rows(rows, "mlp_step", false, mlp_step);
  add_rows(rows, "train_step", false, train_step);
  add_layers(rows);
  add_loops(rows);
  rows.push_back({.name = "graph/empty/host", .prepare = [](const Device& device) {
                    Stream stream = current_stream(device);
                    auto graph = captured([](const Stream&) {}, stream, "host");
                    Work work;
                    work.run = [=](int reps) {
                      for (int r = 0; r < reps; ++r) graph->replay(stream);
                      stream.synchronize();
                    };
                    work.check = [=] { return graph->nodes().empty() ? std::string() : std::string("it has nodes"); };
                    return work;
                  }});
  // The cost of capturing 200 calls beside making them.
  rows.push_back({.name = "graph/capture_200", .prepare = [](const Device& device) {
                    Stream stream = current_stream(device);
                    auto model = std::make_shared<Model>(chain(device, 1024));
                    model->build(stream);
                    auto graph = std::make_shared<Graph>(GraphOptions{.keep_graph = true, .backend = "host"});
                    Work work;
                    work.run = [=](int reps) {
                      for (int r = 0; r < reps; ++r) {
                        graph->reset();
                        GraphCapture capture(*graph, stream);
                        model->build(stream);
                      }
                    };
                    work.check = [=] { return graph->nodes().size() == 200 ? std::string() : std::string("not 200 nodes"); };
                    work.peers.push_back({"eager", [=](int reps) {
                                            for (int r = 0; r < reps; ++r) model->build(stream);
                                            stream.synchronize();
                                          }});
                    return work;
                  }});
  for (const char* backend : {"host", "native", "fused"})
    rows.push_back({.name = fmt::format("graph/instantiate_1000/{}", backend),
                    .prepare =
                        [=](const Device& device) {
                          Stream stream = current_stream(device);
                          Tensor x = zeros({1024}, {.device = device});
                          auto graph = std::make_shared<Graph>(GraphOptions{.keep_graph = true, .backend = backend});
                          {
                            GraphCapture capture(*graph, stream);
                            for (int i = 0; i < 1000; ++i) add_(x, 1);
                          }
                          Work work;
                          work.measure = [=] { return seconds_of([&] { graph->instantiate(); }); };
                          work.check = [=]() -> std::string {
                            graph->instantiate();
                            graph->replay(stream);
                            return x.to_host<float>(stream)[1023] == 1000 ? "" : "the replay is wrong";
                          };
                          return work;
                        },
                    .lacks = lacks_for(backend)});
}

}  // namespace clutch::bench
