// SPDX-License-Identifier: Apache-2.0
// Networks trained by the ops and their backward functions with plain gradient descent; every step's loss is compared with that of the
// same training in double, whose gradients come from a tape of scalars.
#include <clutch/nn.hpp>

#include "support/fixture.hpp"
#include "support/tape.hpp"

#include <map>

namespace clutch::testing {
namespace {

constexpr double kRate = 0.1;

/// A network's numbers by name, on a device and in double.
struct Params {
  std::map<std::string, Tensor> tensors, gradients;
  std::map<std::string, std::vector<double>> host;

  void add(const std::string& name, const Dims& sizes, double scale, double offset, const Device& device) {
    Tensor t = normal(sizes, scale, offset, device);
    std::vector<float> values = t.to_host<float>();
    tensors[name] = t;
    host[name] = {values.begin(), values.end()};
  }
  static Tensor normal(const Dims& sizes, double scale, double offset, const Device& device) {
    static std::uint64_t seed = 1;
    Tensor t = randn(sizes, {.device = device, .seed = seed++});
    return map([&](Expr x) { return x * param(scale) + param(offset); }, t);
  }
  const Tensor& operator[](const std::string& name) const { return tensors.at(name); }
  void step() {
    for (auto& [name, t] : tensors) {
      const Tensor out[] = {t}, in[] = {t, gradients.at(name)};
      map_out(out, trace([](Expr p, Expr g) { return p - param(kRate) * g; }, std::array{DType::f32, DType::f32}), in);
    }
  }
};

/// The parameters as leaves of the tape.
struct Leaves {
  std::map<std::string, Vars> vars;
  explicit Leaves(const Params& params) {
    Tape::current().clear();
    Var::leaf(0);  // number 0 is nobody's
    for (const auto& [name, values] : params.host)
      for (double v : values) vars[name].push_back(Var::leaf(v));
  }
  const Vars& operator[](const std::string& name) const { return vars.at(name); }
  void step(Params& params, const Var& loss) const {
    std::vector<double> slope = Tape::current().gradients(loss.id);
    for (auto& [name, values] : params.host)
      for (std::size_t i = 0; i < values.size(); ++i) values[i] -= kRate * slope[vars.at(name)[i].id];
  }
};

/// a (..., m, k) times b (..., k, n).
Tensor matmul(const Tensor& a, const Tensor& b) {
  return reduce(Reduce::sum, [](Expr x, Expr y) { return x * y; }, {a.unsqueeze(-1), b.unsqueeze(-3)}, {.dims = {-2}});
}

/// x (n, in) times weight (in, out), plus a bias.
Tensor linear(const Params& p, const std::string& name, const Tensor& x) { return add(matmul(x, p[name + ".weight"]), p[name + ".bias"]); }
/// The gradient of x; those of weight and bias are kept.
Tensor linear_backward(Params& p, const std::string& name, const Tensor& grad, const Tensor& x) {
  p.gradients[name + ".weight"] = matmul(x.mT(), grad);
  p.gradients[name + ".bias"] = sum(grad, {.dims = {0}});
  return matmul(grad, p[name + ".weight"].mT());
}
void add_linear(Params& p, const std::string& name, std::int64_t in, std::int64_t out, const Device& device) {
  p.add(name + ".weight", {in, out}, 1 / std::sqrt(static_cast<double>(in)), 0, device);
  p.add(name + ".bias", {out}, 0.1, 0, device);
}
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

void add_norm(Params& p, const std::string& name, std::int64_t size, const Device& device) {
  p.add(name + ".weight", {size}, 0.1, 1, device);
  p.add(name + ".bias", {size}, 0.1, 0, device);
}
nn::LayerNormResult norm(const Params& p, const std::string& name, const Tensor& x) { return nn::layer_norm(x, p[name + ".weight"], p[name + ".bias"]); }
Tensor norm_backward(Params& p, const std::string& name, const Tensor& grad, const Tensor& x, const nn::LayerNormResult& made) {
  nn::LayerNormGradients g = nn::layer_norm_backward(grad, x, made.mean, made.rstd, p[name + ".weight"]);
  p.gradients[name + ".weight"] = g.weight, p.gradients[name + ".bias"] = g.bias;
  return g.x;
}
Vars norm(const Leaves& p, const std::string& name, const Vars& x) { return layer_norm(x, p[name + ".weight"], p[name + ".bias"], 1e-5); }

/// Runs both trainings; `device_loss` and `host_loss` make one step each and return the loss before it.
void train(int steps, double bound, double learned, const std::function<double()>& device_loss, const std::function<double()>& host_loss) {
  double first = 0, last = 0, worst = 0;
  for (int step = 0; step < steps; ++step) {
    double got = device_loss(), want = host_loss();
    worst = std::max(worst, std::fabs(got - want) / want);
    ASSERT_LE(std::fabs(got - want), bound * want) << "step " << step << ": loss " << got << " instead of " << want;
    if (step == 0) first = got;
    last = got;
  }
  fmt::print("loss {} to {} in {} steps, largest relative difference {:.2e}\n", first, last, steps, worst);
  EXPECT_LT(last, learned * first);
}

TEST(Training, PerceptronFollowsTheDoubleModel) {
  CLUTCH_EACH_DEVICE(device) {
    constexpr std::int64_t kRows = 32, kIn = 8, kHidden = 16, kClasses = 4;
    Params p;
    add_linear(p, "hidden", kIn, kHidden, device);
    add_linear(p, "out", kHidden, kClasses, device);
    Tensor x = Params::normal({kRows, kIn}, 1, 0, device);
    std::vector<float> inputs = x.to_host<float>();
    // The class is where the first four inputs are largest.
    std::vector<std::int64_t> classes;
    for (std::size_t n = 0; n < kRows; ++n)
      classes.push_back(std::max_element(inputs.begin() + static_cast<std::ptrdiff_t>(n * kIn), inputs.begin() + static_cast<std::ptrdiff_t>(n * kIn + 4)) -
                        (inputs.begin() + static_cast<std::ptrdiff_t>(n * kIn)));
    Tensor target = from_host(classes, {kRows}, device), one = full({}, 1, {.device = device});
    auto relu_of = [](Expr v) { return relu(v); };
    auto on_device = [&] {
      Tensor before = linear(p, "hidden", x), hidden = map(relu_of, before), logits = linear(p, "out", hidden);
      nn::CrossEntropyResult loss = nn::cross_entropy(logits, target);
      Tensor g = linear_backward(p, "out", nn::cross_entropy_backward(one, logits, target, loss.lse), hidden);
      linear_backward(p, "hidden", map_backward(relu_of, {before}, {g})[0], x);
      double value = loss.loss.item();
      p.step();
      return value;
    };
    auto on_host = [&] {
      Leaves leaves(p);
      Vars losses;
      for (std::size_t n = 0; n < kRows; ++n) {
        Vars row;
        for (std::size_t i = 0; i < kIn; ++i) row.push_back(Var::leaf(static_cast<double>(inputs[n * kIn + i])));
        Vars hidden = linear(leaves, "hidden", row);
        for (Var& v : hidden) v = relu(v);
        losses.push_back(cross_entropy(linear(leaves, "out", hidden), static_cast<std::size_t>(classes[n])));
      }
      Var loss = sum(losses) * (1.0 / kRows);
      leaves.step(p, loss);
      return loss.value;
    };
    train(level() == "smoke" ? 60 : 300, 5e-6, 0.6, on_device, on_host);
  }
}

TEST(Training, ACapturedStepTrainsAsEagerOnesDo) {
  CLUTCH_EACH_DEVICE(device) {
    for (const char* backend : {"host", "native"}) {
      if (std::string_view(backend) == "native" && device.traits().command_buffer == 0) continue;
      Stream stream(device);
      StreamGuard guard(stream);
      constexpr std::int64_t kRows = 32, kIn = 8, kHidden = 16, kClasses = 4;
      Params p;
      add_linear(p, "hidden", kIn, kHidden, device);
      add_linear(p, "out", kHidden, kClasses, device);
      Tensor x = Params::normal({kRows, kIn}, 1, 0, device), one = full({}, 1, {.device = device});
      std::vector<std::int64_t> classes;
      for (std::int64_t n = 0; n < kRows; ++n) classes.push_back(n % kClasses);
      Tensor target = from_host(classes, {kRows}, device);
      auto relu_of = [](Expr v) { return relu(v); };
      auto step = [&] {
        Tensor before = linear(p, "hidden", x), hidden = map(relu_of, before), logits = linear(p, "out", hidden);
        nn::CrossEntropyResult loss = nn::cross_entropy(logits, target);
        Tensor g = linear_backward(p, "out", nn::cross_entropy_backward(one, logits, target, loss.lse), hidden);
        linear_backward(p, "hidden", map_backward(relu_of, {before}, {g})[0], x);
        p.step();
        return loss.loss;
      };
      std::map<std::string, Tensor> start;
      for (const auto& [name, t] : p.tensors) start[name] = t.clone();
      std::vector<float> eager, replayed;
      for (int i = 0; i < 20; ++i) eager.push_back(static_cast<float>(step().item()));
      for (const auto& [name, t] : p.tensors) copy_(t, start.at(name));
      Graph graph({.backend = backend});
      Tensor loss;
      {
        GraphCapture capture(graph, stream);
        loss = step();
      }
      for (int i = 0; i < 20; ++i) {
        graph.replay();
        replayed.push_back(static_cast<float>(loss.item()));
      }
      EXPECT_EQ(replayed, eager) << backend;
      EXPECT_LT(eager.back(), eager.front());
    }
  }
}

TEST(Training, TransformerBlockFollowsTheDoubleModel) {
  CLUTCH_EACH_DEVICE(device) {
    constexpr std::int64_t kBatch = 2, kTime = 12, kWidth = 16, kHeads = 2, kHead = kWidth / kHeads, kTokens = kBatch * kTime;
    const std::string text = "the cat sat on the mat, the dog sat on the log";
    std::map<char, std::int64_t> number;
    for (char c : text) number.try_emplace(c, static_cast<std::int64_t>(number.size()));
    const auto characters = static_cast<std::int64_t>(number.size());
    std::vector<std::int64_t> in, next, place;
    for (std::int64_t b = 0; b < kBatch; ++b)
      for (std::int64_t t = 0; t < kTime; ++t) {
        auto at = static_cast<std::size_t>(b * 20 + t);
        in.push_back(number[text[at]]), next.push_back(number[text[at + 1]]), place.push_back(t);
      }
    Params p;
    p.add("characters", {characters, kWidth}, 0.5, 0, device);
    p.add("places", {kTime, kWidth}, 0.5, 0, device);
    for (const char* name : {"query", "key", "value", "mixed"}) add_linear(p, name, kWidth, kWidth, device);
    for (const char* name : {"norm1", "norm2", "norm3"}) add_norm(p, name, kWidth, device);
    add_linear(p, "up", kWidth, 4 * kWidth, device);
    add_linear(p, "down", 4 * kWidth, kWidth, device);
    add_linear(p, "logits", kWidth, characters, device);
    Tensor tokens = from_host(in, {kTokens}, device), places = from_host(place, {kTokens}, device), target = from_host(next, {kTokens}, device);
    Tensor one = full({}, 1, {.device = device});

    // (tokens, width) <-> (batch, heads, time, head).
    auto split = [&](const Tensor& x) { return x.reshape({kBatch, kTime, kHeads, kHead}).transpose(1, 2); };
    auto join = [&](const Tensor& x) { return x.transpose(1, 2).contiguous().reshape({kTokens, kWidth}); };
    const double scale = 1 / std::sqrt(static_cast<double>(kHead));
    auto masked = [&](Expr s) { return select(position(-1) > position(-2), -std::numeric_limits<double>::infinity(), s * param(scale)); };
    auto gelu_of = [](Expr v) { return gelu(v); };
    auto on_device = [&] {
      Tensor x0 = add(nn::embedding(p["characters"], tokens), nn::embedding(p["places"], places));
      nn::LayerNormResult n1 = norm(p, "norm1", x0);
      Tensor q = split(linear(p, "query", n1.y)), k = split(linear(p, "key", n1.y)), v = split(linear(p, "value", n1.y));
      Tensor weights = nn::softmax(map(masked, matmul(q, k.mT()))), heads = join(matmul(weights, v));
      Tensor x1 = add(x0, linear(p, "mixed", heads));
      nn::LayerNormResult n2 = norm(p, "norm2", x1);
      Tensor up = linear(p, "up", n2.y), active = map(gelu_of, up), x2 = add(x1, linear(p, "down", active));
      nn::LayerNormResult n3 = norm(p, "norm3", x2);
      Tensor logits = linear(p, "logits", n3.y);
      nn::CrossEntropyResult loss = nn::cross_entropy(logits, target);

      Tensor g2 = norm_backward(p, "norm3", linear_backward(p, "logits", nn::cross_entropy_backward(one, logits, target, loss.lse), n3.y), x2, n3);
      Tensor of_up = map_backward(gelu_of, {up}, {linear_backward(p, "down", g2, active)})[0];
      Tensor g1 = add(g2, norm_backward(p, "norm2", linear_backward(p, "up", of_up, n2.y), x1, n2));
      Tensor of_heads = split(linear_backward(p, "mixed", g1, heads));
      Tensor of_scores = map([&](Expr g) { return g * param(scale); }, nn::softmax_backward(matmul(of_heads, v.mT()), weights));
      Tensor of_q = join(matmul(of_scores, k)), of_k = join(matmul(of_scores.mT(), q)), of_v = join(matmul(weights.mT(), of_heads));
      Tensor of_norm = add(add(linear_backward(p, "query", of_q, n1.y), linear_backward(p, "key", of_k, n1.y)), linear_backward(p, "value", of_v, n1.y));
      Tensor g0 = add(g1, norm_backward(p, "norm1", of_norm, x0, n1));
      p.gradients["characters"] = nn::embedding_backward(g0, tokens, characters);
      p.gradients["places"] = nn::embedding_backward(g0, places, kTime);
      double value = loss.loss.item();
      p.step();
      return value;
    };
    auto on_host = [&] {
      Leaves leaves(p);
      auto row = [](const Vars& table, std::int64_t index) {
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
          x.push_back(plus(row(leaves["characters"], in[b * kTime + t]), row(leaves["places"], place[t])));
          Vars n = norm(leaves, "norm1", x.back());
          q.push_back(linear(leaves, "query", n)), k.push_back(linear(leaves, "key", n)), v.push_back(linear(leaves, "value", n));
        }
        for (std::size_t t = 0; t < kTime; ++t) {
          Vars heads(kWidth);
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
          losses.push_back(cross_entropy(logits, static_cast<std::size_t>(next[b * kTime + t])));
        }
      }
      Var loss = sum(losses) * (1.0 / kTokens);
      leaves.step(p, loss);
      return loss.value;
    };
    train(level() == "smoke" ? 30 : 200, 2e-5, 0.3, on_device, on_host);
  }
}

}  // namespace
}  // namespace clutch::testing
