// SPDX-License-Identifier: Apache-2.0
// Networks trained by the ops, their backward functions and each optimizer; every step's loss is compared with that of the same training in double,
// whose gradients come from a tape of scalars.
#include "cases/networks.hpp"
#include "cases/optim.hpp"
#include "graph/backends.hpp"
#include "support/fixture.hpp"
#include "support/tape.hpp"

#include <array>
#include <functional>
#include <map>

namespace clutch::testing { namespace {

using cases::OptimCase;
using cases::OptimModel;
using cases::Perceptron;
using cases::TransformerBlock;
using Kind = OptimModel::Kind;

/// Largest difference of a loss, in parts of the first one.
constexpr double kBound = 2e-6;

struct Trainer {
  const char* name;
  OptimModel model;
};
const Trainer kTrainers[] = {
    {"sgd", {.kind = Kind::sgd, .lr = 0.1, .a = 0, .b = 0}},
    {"sgd, momentum", {.kind = Kind::sgd, .lr = 0.02, .a = 0.9, .b = 0, .weight_decay = 1e-3, .nesterov = true, .buffer = true}},
    {"adam", {.kind = Kind::adam, .lr = 0.01}},
    {"adamw", {.kind = Kind::adam, .lr = 0.01, .weight_decay = 0.01, .decoupled = true, .extra = true}},
    {"adagrad", {.kind = Kind::adagrad, .lr = 0.05, .a = 0.001, .eps = 1e-10}},
    {"rmsprop", {.kind = Kind::rmsprop, .lr = 0.003, .a = 0.9, .b = 0.5, .eps = 1e-4, .extra = true, .buffer = true}},
};

/// A network's numbers in double, stepped by the optimizer's model.
struct Host {
  OptimModel model;
  std::map<std::string, std::vector<double>> values;
  std::map<std::string, std::vector<std::array<double, 3>>> states;
  std::int64_t steps = 0;

  Host(const cases::Network& network, const OptimModel& m) : model(m) {
    model.numerics = optim::Numerics::source;
    for (const auto& [name, t] : network.params) {
      std::vector<float> all = t.to_host<float>();
      values[name] = {all.begin(), all.end()};
      states[name].resize(all.size());
    }
  }
};

/// The parameters as leaves of the tape.
struct Leaves {
  std::map<std::string, Vars> vars;
  explicit Leaves(const Host& host) {
    Tape::current().clear();
    Var::leaf(0);  // number 0 is nobody's
    for (const auto& [name, values] : host.values)
      for (double v : values) vars[name].push_back(Var::leaf(v));
  }
  const Vars& operator[](const std::string& name) const { return vars.at(name); }
  void step(Host& host, const Var& loss) const {
    std::vector<double> slope = Tape::current().gradients(loss.id);
    ++host.steps;
    for (auto& [name, values] : host.values)
      for (std::size_t i = 0; i < values.size(); ++i)
        host.model.step<double>(host.steps, slope[vars.at(name)[i].id], values[i], host.states.at(name)[i].data());
  }
};

Vars linear(const Leaves& p, const std::string& name, const Vars& x) {
  const Vars &weight = p[name + ".weight"], &bias = p[name + ".bias"];
  Vars y;
  for (std::size_t o = 0; o < bias.size(); ++o) {
    Vars column;
    for (std::size_t i = 0; i < x.size(); ++i) column.push_back(weight[i * bias.size() + o]);
    y.push_back(dot(x, column) + bias[o]);
  }
  return y;
}
Vars norm(const Leaves& p, const std::string& name, const Vars& x) { return layer_norm(x, p[name + ".weight"], p[name + ".bias"], 1e-5); }

Var loss_of(const Perceptron& net, const Leaves& leaves) {
  Vars losses;
  for (std::size_t n = 0; n < Perceptron::kRows; ++n) {
    Vars row;
    for (std::size_t i = 0; i < Perceptron::kIn; ++i) row.push_back(Var::leaf(static_cast<double>(net.inputs[n * Perceptron::kIn + i])));
    Vars hidden = linear(leaves, "hidden", row);
    for (Var& v : hidden) v = relu(v);
    losses.push_back(cross_entropy(linear(leaves, "out", hidden), static_cast<std::size_t>(net.classes[n])));
  }
  return sum(losses) * (1.0 / Perceptron::kRows);
}

Var loss_of(const TransformerBlock& net, const Leaves& leaves) {
  const auto kBatch = static_cast<std::size_t>(net.size.batch), kTime = static_cast<std::size_t>(net.size.time),
             kHeads = static_cast<std::size_t>(net.size.heads), kHead = static_cast<std::size_t>(net.size.head());
  const std::int64_t kWidth = net.size.width;
  const double scale = 1 / std::sqrt(static_cast<double>(kHead));
  auto row = [&](const Vars& table, std::int64_t index) {
    auto begin = table.begin() + static_cast<std::ptrdiff_t>(index * kWidth);
    return Vars(begin, begin + kWidth);
  };
  auto plus = [](Vars a, const Vars& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = a[i] + b[i];
    return a;
  };
  Vars losses;
  for (std::size_t b = 0; b < kBatch; ++b) {
    std::vector<Vars> x, q, k, v;
    for (std::size_t t = 0; t < kTime; ++t) {
      x.push_back(plus(row(leaves["characters"], net.in[b * kTime + t]), row(leaves["places"], net.place[t])));
      Vars n = norm(leaves, "norm1", x.back());
      q.push_back(linear(leaves, "query", n)), k.push_back(linear(leaves, "key", n)), v.push_back(linear(leaves, "value", n));
    }
    for (std::size_t t = 0; t < kTime; ++t) {
      Vars heads(static_cast<std::size_t>(kWidth));
      for (std::size_t h = 0; h < kHeads; ++h) {
        auto part = [&](const Vars& all) {
          return Vars(all.begin() + static_cast<std::ptrdiff_t>(h * kHead), all.begin() + static_cast<std::ptrdiff_t>((h + 1) * kHead));
        };
        Vars scores;
        for (std::size_t s = 0; s <= t; ++s) scores.push_back(dot(part(q[t]), part(k[s])) * scale);
        Vars w = softmax(scores);
        for (std::size_t c = 0; c < kHead; ++c) {
          Vars column;
          for (std::size_t s = 0; s <= t; ++s) column.push_back(v[s][h * kHead + c]);
          heads[h * kHead + c] = dot(w, column);
        }
      }
      Vars x1 = plus(x[t], linear(leaves, "mixed", heads)), up = linear(leaves, "up", norm(leaves, "norm2", x1));
      for (Var& u : up) u = gelu(u);
      Vars logits = linear(leaves, "logits", norm(leaves, "norm3", plus(x1, linear(leaves, "down", up))));
      losses.push_back(cross_entropy(logits, static_cast<std::size_t>(net.next[b * kTime + t])));
    }
  }
  return sum(losses) * (1.0 / static_cast<double>(net.size.tokens()));
}

/// Trains on the device and in double and compares the losses.
template <class Net>
void train(const Device& device, const Trainer& trainer, int steps, double learned) {
  Net net(device);
  Host host(net, trainer.model);
  OptimModel model = trainer.model;
  model.numerics = optim::Numerics::automatic;
  auto optimizer = OptimCase::make(model, net.param_list());
  double first = 0, last = 0, worst = 0;
  for (int step = 0; step < steps; ++step) {
    double got = net.loss_and_grads().item();
    optimizer->step(net.grad_list());
    Leaves leaves(host);
    Var loss = loss_of(net, leaves);
    leaves.step(host, loss);
    if (step == 0) first = got;
    worst = std::max(worst, std::fabs(got - loss.value) / first);
    ASSERT_LE(std::fabs(got - loss.value), kBound * first) << trainer.name << " step " << step << ": loss " << got << " instead of " << loss.value;
    last = got;
  }
  fmt::print("{}: loss {} to {} in {} steps, largest difference {:.2e} of the first\n", trainer.name, first, last, steps, worst);
  EXPECT_LT(last, learned * first);
}

TEST(Training, PerceptronFollowsTheDoubleModel) {
  CLUTCH_EACH_DEVICE(device) {
    for (const Trainer& trainer : kTrainers) train<Perceptron>(device, trainer, level() == "smoke" ? 60 : 300, 0.7);
  }
}

TEST(Training, TransformerBlockFollowsTheDoubleModel) {
  CLUTCH_EACH_DEVICE(device) {
    for (const Trainer& trainer : kTrainers) train<TransformerBlock>(device, trainer, level() == "smoke" ? 30 : 200, 0.5);
  }
}

/// The same with fused attention, its scores never in memory.
struct FusedBlock : TransformerBlock {
  explicit FusedBlock(const Device& on) : TransformerBlock(on, {}, cases::Attends::by_sdpa) {}
};
TEST(Training, FusedAttentionFollowsTheDoubleModel) {
  CLUTCH_EACH_DEVICE(device) {
    for (const Trainer& trainer : kTrainers)
      if (level() != "smoke" || std::string_view(trainer.name) == "adamw") train<FusedBlock>(device, trainer, level() == "smoke" ? 30 : 200, 0.5);
  }
}

/// Trained by one captured graph per step; then one captured graph per character gives, with keys and values in pages, what whole passes give.
TEST(Training, ATrainedBlockDecodesFromPages) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device);
    StreamGuard guard(stream);
    FusedBlock net(device);
    optim::AdamW adamw(net.param_list(), {.lr = 0.01});
    Graph training;
    Tensor loss;
    {
      GraphCapture capture(training, stream);
      loss = net.loss_and_grads();
      adamw.step(net.grad_list());
    }
    training.replay();
    const double first = loss.item();
    for (int i = 0; i < 80; ++i) training.replay();
    EXPECT_LT(loss.item(), 0.2 * first);
    net.loss_and_grads();
    const std::vector<float> whole = net.logits.to_host<float>();

    const std::int64_t batch = net.size.batch, time = net.size.time;
    attention::PagedCache cache(
        {.pages = 2 * batch * time / 4, .page_size = 4, .max_batch = batch, .heads = net.size.heads, .key_size = net.size.head(), .device = device});
    const Tensor sequences = arange(0, static_cast<double>(batch), 1, {.dtype = DType::i32, .device = device});
    const Tensor tokens = zeros({batch}, {.dtype = DType::i32, .device = device}), places = zeros({batch}, {.dtype = DType::i32, .device = device}),
                 used = full({batch}, 1, {.dtype = DType::i32, .device = device});
    Graph decoding;
    Tensor logits;
    {
      GraphCapture capture(decoding, stream);
      logits = net.decode(tokens, places, used, sequences, cache);
      add_(places, 1), add_(used, 1);
    }
    for (std::int64_t t = 0; t < time; ++t) {
      std::vector<std::int32_t> given;
      for (std::int64_t b = 0; b < batch; ++b) {
        cache.reserve(b, t + 1);
        given.push_back(static_cast<std::int32_t>(net.in[static_cast<std::size_t>(b * time + t)]));
      }
      copy_(tokens, from_host(given, {batch}, device));
      decoding.replay();
      const std::vector<float> got = logits.to_host<float>();
      for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t c = 0; c < net.characters; ++c)
          ASSERT_NEAR(got[static_cast<std::size_t>(b * net.characters + c)], whole[static_cast<std::size_t>((b * time + t) * net.characters + c)], 2e-5)
              << "sequence " << b << " place " << t << " character " << c;
    }
  }
}

/// Forward, backward, clip, step and schedule as one graph.
TEST(Training, ACapturedStepTrainsAsEagerOnesDo) {
  CLUTCH_EACH_BACKEND(device, backend) {
    Stream stream(device);
    StreamGuard guard(stream);
    auto run = [&](bool captured) {
      TransformerBlock net(device);
      optim::AdamW adamw(net.param_list(), {.lr = 0.01});
      optim::LRScheduler schedule(adamw, {.warmup_steps = 5, .decay = optim::Decay::cosine, .decay_steps = 20, .end = 0.1});
      Tensor norm;
      auto step = [&] {
        Tensor loss = net.loss_and_grads();
        norm = adamw.step(net.grad_list(), {.lr = schedule.lr(), .max_norm = 0.5});
        schedule.step();
        return loss;
      };
      std::vector<double> seen;
      Graph graph({.backend = backend});
      Tensor loss;
      if (captured) {
        GraphCapture capture(graph, stream);
        loss = step();
      }
      for (int i = 0; i < 20; ++i) {
        captured ? graph.replay() : void(loss = step());
        seen.insert(seen.end(), {loss.item(), norm.item(), schedule.lr().item()});
      }
      return seen;
    };
    std::vector<double> eager = run(false);
    EXPECT_EQ(run(true), eager);
    EXPECT_LT(eager[57], eager[0]) << "it learns";
    EXPECT_GT(eager[1], 0.5) << "it clips";
  }
}

/// Tensors that a step makes are places in one plan, by their lifetimes; eager ones live as long as the function has them.
TEST(Training, ACapturedStepTakesAtMostThreeQuartersOfTheMemory) {
  CLUTCH_EACH_BACKEND(device, backend) {
    if (backend == "auto") continue;  // which measures the others first
    Stream stream(device);
    StreamGuard guard(stream);
    TransformerBlock net(device, {.batch = 4, .time = 128, .width = 64, .heads = 2}, cases::Attends::by_sdpa);
    optim::AdamW adamw(net.param_list(), {.lr = 0.01});
    auto step = [&] {
      Tensor loss = net.loss_and_grads();
      adamw.step(net.grad_list());
      return loss;
    };
    auto forget = [&] {
      net.grads.clear(), net.logits = Tensor();
      stream.synchronize();
    };
    step();
    forget();
    reset_peak_memory_stats(device);
    const std::uint64_t before = memory_allocated(device);
    step();
    stream.synchronize();
    const std::uint64_t eager = memory_stats(device).at("allocated_bytes.all.peak") - before;
    forget();
    Graph graph({.backend = backend});
    Tensor loss;
    {
      GraphCapture capture(graph, stream);
      loss = step();
    }
    graph.replay();
    const GraphReport report = graph.report();
    EXPECT_LE(static_cast<double>(report.reserved_bytes + report.result_bytes), 0.75 * static_cast<double>(eager)) << eager << " bytes eagerly";
    EXPECT_GT(report.reserved_bytes, 0U);
  }
}

}}  // namespace clutch::testing
