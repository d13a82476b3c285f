// SPDX-License-Identifier: Apache-2.0
// Functions by compile() beside their eager calls: a graph network, an optimizer with its schedule and scaler, a loop that ends on the device, and one compiled
// layer for all layers of a model.
#include "harness/bench.hpp"
#include "peers/torch.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <random>

namespace clutch::bench {

void register_compiled(Rows& rows);

namespace {

using Clock = std::chrono::steady_clock;

std::function<void(int)> repeated(const Stream& stream, std::function<void()> call) {
  return [stream, call = std::move(call)](int reps) {
    const StreamGuard guard(stream);
    for (int r = 0; r < reps; ++r) call();
    stream.synchronize();
  };
}

std::string same_bits(const Tensor& ours, const Tensor& eager, const Stream& stream) {
  return ours.to_bytes(stream) == eager.to_bytes(stream) ? "" : "the compiled function differs from eager calls";
}

// graph network ----------------------------------------------------------------------------------------------------

constexpr std::int64_t kNodes = 100'000, kEdges = 1'000'000, kIn = 64, kHidden = 64, kClasses = 16;

/// Two layers of a graph convolutional network, and the loss of all nodes.
struct GraphNetwork {
  sparse::Csr edges;
  Tensor x, w1, b1, w2, b2, classes;

  explicit GraphNetwork(const Device& device) {
    std::mt19937 random(7);
    std::vector<std::int32_t> from, to;
    std::vector<std::int64_t> of_nodes;
    for (std::int64_t e = 0; e < kEdges; ++e)
      from.push_back(static_cast<std::int32_t>(random() % kNodes)), to.push_back(static_cast<std::int32_t>(random() % kNodes));
    for (std::int64_t n = 0; n < kNodes; ++n) of_nodes.push_back(static_cast<std::int64_t>(random() % kClasses));
    const auto [offsets, order] = group_by(from_host(to, {kEdges}, device), kNodes);
    const Tensor weights = rand({kEdges}, {.device = device, .seed = 1});
    edges = {.offsets = offsets, .columns = index_select(from_host(from, {kEdges}, device), 0, order), .values = weights, .width = kNodes};
    classes = from_host(of_nodes, {kNodes}, device);
    std::uint64_t seed = 2;
    auto normal = [&](const Dims& sizes) { return mul(randn(sizes, {.device = device, .seed = seed++}), 0.1); };
    x = normal({kNodes, kIn}), w1 = normal({kIn, kHidden}), b1 = normal({kHidden}), w2 = normal({kHidden, kClasses}), b2 = normal({kClasses});
  }
};

Tensor loss_of(const GraphNetwork& net, const Tensor& x) {
  const Tensor hidden = relu(add(sparse::spmm(net.edges, linalg::matmul(x, net.w1)), net.b1));
  const Tensor scores = add(sparse::spmm(net.edges, linalg::matmul(hidden, net.w2)), net.b2);
  return nn::cross_entropy(scores, net.classes).loss;
}

Work graph_network(const Device& device, const char* backend) {
  const Stream stream = current_stream(device);
  auto net = std::make_shared<const GraphNetwork>(device);
  auto loss = [net](const Tensor& x) { return loss_of(*net, x); };
  auto compiled = std::make_shared<Compiled<decltype(loss)>>(compile(loss, {.name = "graph network", .graph = {.backend = backend}}));
  Work work{.run = repeated(stream, [=] { (*compiled)(net->x); })};
  work.check = [=] { return same_bits((*compiled)(net->x), loss(net->x), stream); };
  work.peers.push_back({"eager", repeated(stream, [=] { loss(net->x); })});
  const std::string torch_network = fmt::format(R"(
import torch.nn.functional as F
N, E, I, H, C = {}, {}, {}, {}, {}
g = torch.Generator().manual_seed(7)
edges = torch.sparse_coo_tensor(torch.randint(N, (2, E), generator=g), torch.rand(E, generator=g), (N, N)).coalesce().to_sparse_csr().to(device)
x, w1, b1, w2, b2 = [0.1 * torch.randn(*s, generator=g).to(device) for s in ((N, I), (I, H), (H,), (H, C), (C,))]
classes = torch.randint(C, (N,), generator=g).to(device)
def loss():
    hidden = F.relu(edges @ (x @ w1) + b1)
    return F.cross_entropy(edges @ (hidden @ w2) + b2, classes)
)",
                                                kNodes, kEdges, kIn, kHidden, kClasses);
  add_torch_peer(work, device, torch_network, "loss()", "eager");
  add_torch_peer(work, device, torch_network + "compiled = torch.compile(loss)\n", "compiled()", "compiled");
  return work;
}

// optimizer --------------------------------------------------------------------------------------------------------

/// AdamW with clipping, its schedule and a gradient scaler over the parameters of a small transformer, as one step.
struct Optimization {
  std::vector<Tensor> params, grads, start;
  optim::AdamW adamw;
  optim::LRScheduler schedule;
  optim::GradScaler scaler;

  static std::vector<Tensor> tensors(const Device& device, std::uint64_t seed) {
    std::vector<Tensor> all;
    for (int layer = 0; layer < 12; ++layer)
      for (const Dims& sizes :
           {Dims{128, 384}, Dims{384}, Dims{128, 128}, Dims{128}, Dims{128, 512}, Dims{512}, Dims{512, 128}, Dims{128}, Dims{128}, Dims{128}})
        all.push_back(randn(sizes, {.device = device, .seed = seed++}));
    return all;
  }
  explicit Optimization(const Device& device)
      : params(tensors(device, 1)),
        grads(tensors(device, 1000)),
        adamw(params, {.lr = 1e-3}),
        schedule(adamw, {.warmup_steps = 10, .decay = optim::Decay::cosine, .decay_steps = 1'000'000}),
        scaler({.init_scale = 1}, device) {}
  void step() {
    scaler.unscale_(adamw, grads);
    scaler.step(adamw, grads, {.lr = schedule.lr(), .max_norm = 1e9});
    scaler.update();
    schedule.step();
  }
};

Work optimization(const Device& device, const char* backend) {
  const Stream stream = current_stream(device);
  auto ours = std::make_shared<Optimization>(device), eager = std::make_shared<Optimization>(device);
  auto step = [ours] {
    ours->step();
    return ours->schedule.lr();
  };
  // The first call makes the optimizer's tables.
  auto compiled = std::make_shared<Compiled<decltype(step)>>(compile(step, {.name = "optimizer", .graph = {.backend = backend}, .warm_ups = 1}));
  // As often as ours, so that both have the same state.
  auto done = std::make_shared<std::array<std::int64_t, 2>>();
  Work work{.run = repeated(stream, [=] { (*compiled)(), ++(*done)[0]; })};
  auto eager_step = [=] { eager->step(), ++(*done)[1]; };
  work.check = [=]() -> std::string {
    const StreamGuard guard(stream);
    while ((*done)[1] < (*done)[0]) eager_step();
    while ((*done)[0] < (*done)[1]) (*compiled)(), ++(*done)[0];
    for (std::size_t i = 0; i < ours->params.size(); ++i)
      if (std::string wrong = same_bits(ours->params[i], eager->params[i], stream); !wrong.empty()) return wrong;
    return {};
  };
  work.peers.push_back({"eager", repeated(stream, eager_step)});
  add_torch_peer(work, device, R"(
shapes = [(128, 384), (384,), (128, 128), (128,), (128, 512), (512,), (512, 128), (128,), (128,), (128,)] * 12
params = [torch.randn(s, device=device) for s in shapes]
for p in params:
    p.grad = torch.randn_like(p)
adamw = torch.optim.AdamW(params, lr=1e-3, fused=True)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adamw, 1000000)
def step():
    torch.nn.utils.clip_grad_norm_(params, 1e9)
    adamw.step()
    schedule.step()
)",
                 "step()", "without scaler");
  return work;
}

// a loop that ends on the device -------------------------------------------------------------------------------------

constexpr std::int64_t kSide = 64, kMostIterations = 1000;

/// The largest eigenvalue of a symmetric matrix by power iteration, until the vector no longer turns.
struct PowerIteration {
  Tensor a, start, far;  ///< the matrix, the first vector, and a last distance that lets the loop begin

  explicit PowerIteration(const Device& device) {
    // Eigenvalues 1, 0.98, 0.5 and less: the loop has some hundred iterations.
    const Tensor q = linalg::eigh(add(randn({kSide, kSide}, {.device = device, .seed = 1}), randn({kSide, kSide}, {.device = device, .seed = 1}).mT())).v;
    std::vector<float> values(kSide);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = i == 0 ? 1.0F : i == 1 ? 0.98F : 0.5F / static_cast<float>(i);
    a = linalg::matmul(mul(q, from_host(values, {kSide}, device)), q.mT());
    start = full({kSide, 1}, 1.0 / std::sqrt(static_cast<double>(kSide)), {.device = device});
    far = full({}, 1, {.device = device});
  }
  Tensor goes_on(std::span<const Tensor> state) const { return gt(state[1], 1e-6); }
  std::vector<Tensor> next(std::span<const Tensor> state) const {
    const Tensor y = sum(mul(a, state[0].mT()), {.dims = {1}, .keepdim = true});
    const Tensor v = div(y, sqrt(sum(mul(y, y), {.dims = {0}, .keepdim = true})));
    return {v, amax(abs(sub(v, state[0]))).reshape({})};
  }
  Tensor eigenvalue(const Tensor& v) const { return sum(mul(v, linalg::matmul(a, v))); }
};

Work power_iteration(const Device& device, const char* backend) {
  const Stream stream = current_stream(device);
  auto p = std::make_shared<const PowerIteration>(device);
  auto solve = [p](const Tensor& start) {
    const std::vector<Tensor> state{start, p->far};
    const LoopResult found = while_loop([p](std::span<const Tensor> s) { return p->goes_on(s); }, [p](std::span<const Tensor> s) { return p->next(s); }, state,
                                        {.max_iterations = kMostIterations});
    return p->eigenvalue(found.state[0]);
  };
  auto compiled = std::make_shared<Compiled<decltype(solve)>>(compile(solve, {.name = "power iteration", .graph = {.backend = backend}}));
  auto host_loop = [p] {
    std::vector<Tensor> state{p->start, p->far};
    for (std::int64_t i = 0; i < kMostIterations && p->goes_on(state).item() != 0; ++i) state = p->next(state);
    return p->eigenvalue(state[0]);
  };
  Work work{.run = repeated(stream, [=] { (*compiled)(p->start); })};
  work.check = [=]() -> std::string {
    const StreamGuard guard(stream);
    const Tensor ours = (*compiled)(p->start);
    if (std::string wrong = same_bits(ours, host_loop(), stream); !wrong.empty()) return wrong;
    const double found = ours.item(stream), exact = linalg::eigh(p->a).w.to_host<float>(stream).back();
    return std::abs(found - exact) < 1e-4 ? "" : fmt::format("the eigenvalue must be {}, got {}", exact, found);
  };
  work.peers.push_back({"a host loop that reads its predicate", repeated(stream, [=] { host_loop(); })});
  return work;
}

// one layer for twelve -----------------------------------------------------------------------------------------------

constexpr std::int64_t kTime = 128, kWidth = 128, kHeads = 4;
constexpr int kLayers = 12;

struct Layer {
  Tensor norm_weight, norm_bias, qkv, out, mlp_weight, mlp_bias, up, down;
};

Tensor layer_of(const Tensor& x, const Layer& layer) {
  const Tensor qkv = linalg::linear(nn::layer_norm(x, layer.norm_weight, layer.norm_bias).y, layer.qkv);
  auto heads = [&](std::int64_t part) { return qkv.slice(1, part * kWidth, (part + 1) * kWidth).reshape({kTime, kHeads, kWidth / kHeads}).transpose(0, 1); };
  const Tensor mixed = attention::sdpa(heads(0), heads(1), heads(2), {.causal = attention::Causal::upper_left}).out;
  const Tensor y = add(x, linalg::linear(mixed.transpose(0, 1).reshape({kTime, kWidth}), layer.out));
  const Tensor hidden = gelu(linalg::linear(nn::layer_norm(y, layer.mlp_weight, layer.mlp_bias).y, layer.up));
  return add(y, linalg::linear(hidden, layer.down));
}

struct Model {
  std::vector<Layer> layers;
  Tensor x;
  explicit Model(const Device& device) {
    std::uint64_t seed = 1;
    auto normal = [&](const Dims& sizes, double scale) { return mul(randn(sizes, {.device = device, .seed = seed++}), scale); };
    for (int i = 0; i < kLayers; ++i)
      layers.push_back({normal({kWidth}, 1), normal({kWidth}, 0.1), normal({3 * kWidth, kWidth}, 0.1), normal({kWidth, kWidth}, 0.1), normal({kWidth}, 1),
                        normal({kWidth}, 0.1), normal({4 * kWidth, kWidth}, 0.1), normal({kWidth, 4 * kWidth}, 0.1)});
    x = normal({kTime, kWidth}, 1);
  }
  template <class F>
  Tensor run(F&& layer, const Tensor& from) const {
    Tensor y = from;
    for (const Layer& l : layers) y = layer(y, l);
    return y;
  }
};

auto compiled_layer(const char* backend) { return compile(layer_of, {.name = "layer", .graph = {.backend = backend}}); }
auto compiled_model(const std::shared_ptr<const Model>& model, const char* backend) {
  return compile([model](const Tensor& x) { return model->run(layer_of, x); }, {.name = "model", .graph = {.backend = backend}});
}

Work regional(const Device& device, const char* backend) {
  const Stream stream = current_stream(device);
  auto model = std::make_shared<const Model>(device);
  auto layer = std::make_shared<decltype(compiled_layer(backend))>(compiled_layer(backend));
  auto whole = std::make_shared<decltype(compiled_model(model, backend))>(compiled_model(model, backend));
  Work work{.run = repeated(stream, [=] { model->run(*layer, model->x); })};
  work.check = [=]() -> std::string {
    const StreamGuard guard(stream);
    const Tensor eager = model->run(layer_of, model->x);
    if (std::string wrong = same_bits((*whole)(model->x), eager, stream); !wrong.empty()) return wrong;
    return same_bits(model->run(*layer, model->x), eager, stream);
  };
  work.peers.push_back({"the whole model compiled", repeated(stream, [=] { (*whole)(model->x); })});
  work.peers.push_back({"eager", repeated(stream, [=] { model->run(layer_of, model->x); })});
  return work;
}

/// Seconds of a first call, with programs that are built already.
Work first_call(const Device& device, const char* backend, bool whole) {
  const Stream stream = current_stream(device);
  auto model = std::make_shared<const Model>(device);
  Work work;
  work.measure = [=] {
    const StreamGuard guard(stream);
    const auto begin = Clock::now();
    if (whole)
      compiled_model(model, backend)(model->x);
    else {
      auto layer = compiled_layer(backend);
      model->run(layer, model->x);
    }
    stream.synchronize();
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  work.check = [=]() -> std::string {
    const StreamGuard guard(stream);
    auto layer = compiled_layer(backend);
    return same_bits(model->run(layer, model->x), model->run(layer_of, model->x), stream);
  };
  return work;
}

}  // namespace

void register_compiled(Rows& rows) {
  for (const char* backend : {"auto", "fused"}) {
    auto add_row = [&](const char* name, Work (*prepare)(const Device&, const char*)) {
      rows.push_back({.name = fmt::format("compiled/{}/{}", name, backend), .prepare = [=](const Device& device) { return prepare(device, backend); }});
    };
    add_row("graph_network_100k", graph_network);
    add_row("optimizer_120", optimization);
    add_row("power_iteration_64", power_iteration);
    add_row("layer_x12", regional);
    for (bool whole : {false, true})
      rows.push_back({.name = fmt::format("compiled/first_call_{}/{}", whole ? "model" : "layer", backend),
                      .prepare = [=](const Device& device) { return first_call(device, backend, whole); }});
  }
}

}  // namespace clutch::bench
