// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small networks of the ops and their backward functions, for tests and benches that train.
#include <clutch/clutch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace clutch::cases {

/// Parameters by name and their gradients.
struct Network {
  std::map<std::string, Tensor> params, grads;

  std::vector<Tensor> param_list() const { return values(params); }
  /// In the order of param_list().
  std::vector<Tensor> grad_list() const { return values(grads); }
  const Tensor& operator[](const std::string& name) const { return params.at(name); }

 protected:
  Tensor normal(const Dims& sizes, double scale, double offset) {
    Tensor t = randn(sizes, {.device = device, .seed = seed++});
    return map([&](Expr x) { return x * param(scale) + param(offset); }, t);
  }
  void add_param(const std::string& name, const Dims& sizes, double scale, double offset = 0) { params[name] = normal(sizes, scale, offset); }
  void add_linear(const std::string& name, std::int64_t in, std::int64_t out) {
    add_param(name + ".weight", {in, out}, 1 / std::sqrt(static_cast<double>(in)));
    add_param(name + ".bias", {out}, 0.1);
  }
  void add_norm(const std::string& name, std::int64_t size) {
    add_param(name + ".weight", {size}, 0.1, 1);
    add_param(name + ".bias", {size}, 0.1);
  }

  /// x (n, in) times weight (in, out), plus a bias.
  Tensor linear(const std::string& name, const Tensor& x) const { return add(linalg::matmul(x, params.at(name + ".weight")), params.at(name + ".bias")); }
  /// The gradient of x; those of weight and bias are kept.
  Tensor linear_backward(const std::string& name, const Tensor& grad, const Tensor& x) {
    grads[name + ".weight"] = linalg::matmul(x.mT(), grad);
    grads[name + ".bias"] = sum(grad, {.dims = {0}});
    return linalg::matmul(grad, params.at(name + ".weight").mT());
  }
  nn::LayerNormResult norm(const std::string& name, const Tensor& x) const { return nn::layer_norm(x, params.at(name + ".weight"), params.at(name + ".bias")); }
  Tensor norm_backward(const std::string& name, const Tensor& grad, const Tensor& x, const nn::LayerNormResult& made) {
    nn::LayerNormGradients g = nn::layer_norm_backward(grad, x, made.mean, made.rstd, params.at(name + ".weight"));
    grads[name + ".weight"] = g.weight, grads[name + ".bias"] = g.bias;
    return g.x;
  }

  Device device;
  std::uint64_t seed = 1;

 private:
  static std::vector<Tensor> values(const std::map<std::string, Tensor>& all) {
    std::vector<Tensor> list;
    for (const auto& [name, t] : all) list.push_back(t);
    return list;
  }
};

/// Two linear layers with a ReLU between; the class is where the first inputs of a row are largest.
struct Perceptron : Network {
  static constexpr std::int64_t kRows = 32, kIn = 8, kHidden = 16, kClasses = 4;
  std::vector<float> inputs;
  std::vector<std::int64_t> classes;

  explicit Perceptron(const Device& on) {
    device = on;
    add_linear("hidden", kIn, kHidden);
    add_linear("out", kHidden, kClasses);
    x_ = normal({kRows, kIn}, 1, 0);
    inputs = x_.to_host<float>();
    for (std::int64_t n = 0; n < kRows; ++n) {
      auto begin = inputs.begin() + n * kIn;
      classes.push_back(std::max_element(begin, begin + kClasses) - begin);
    }
    target_ = from_host(classes, {kRows}, device), one_ = full({}, 1, {.device = device});
  }

  /// The loss; sets the gradients.
  Tensor loss_and_grads() {
    auto relu_of = [](Expr v) { return relu(v); };
    Tensor before = linear("hidden", x_), hidden = map(relu_of, before), logits = linear("out", hidden);
    nn::CrossEntropyResult loss = nn::cross_entropy(logits, target_);
    Tensor g = linear_backward("out", nn::cross_entropy_backward(one_, logits, target_, loss), hidden);
    linear_backward("hidden", map_backward({g}, relu_of, {before})[0], x_);
    return loss.loss;
  }

 private:
  Tensor x_, target_, one_;
};

struct TransformerSize {
  std::int64_t batch = 2, time = 12, width = 16, heads = 2;
  std::int64_t head() const { return width / heads; }
  std::int64_t tokens() const { return batch * time; }
};
/// How a block attends: by products with softmax between them, or by sdpa().
enum class Attends { by_products, by_sdpa };

/// A block of a transformer with causal attention, on characters of a text.
struct TransformerBlock : Network {
  TransformerSize size;
  Attends attends;
  std::vector<std::int64_t> in, next, place;
  std::int64_t characters = 0;
  Tensor logits;  ///< of the last pass, (tokens, characters)

  explicit TransformerBlock(const Device& on, const TransformerSize& sizes = {}, Attends how = Attends::by_products) : size(sizes), attends(how) {
    device = on;
    const std::string text = "the cat sat on the mat, the dog sat on the log";
    std::map<char, std::int64_t> number;
    for (char c : text) number.try_emplace(c, static_cast<std::int64_t>(number.size()));
    characters = static_cast<std::int64_t>(number.size());
    for (std::int64_t b = 0; b < size.batch; ++b)
      for (std::int64_t t = 0; t < size.time; ++t) {
        auto at = static_cast<std::size_t>(b * 20 + t) % (text.size() - 1);
        in.push_back(number[text[at]]), next.push_back(number[text[at + 1]]), place.push_back(t);
      }
    add_param("characters", {characters, size.width}, 0.5);
    add_param("places", {size.time, size.width}, 0.5);
    for (const char* name : {"query", "key", "value", "mixed"}) add_linear(name, size.width, size.width);
    for (const char* name : {"norm1", "norm2", "norm3"}) add_norm(name, size.width);
    add_linear("up", size.width, 4 * size.width);
    add_linear("down", 4 * size.width, size.width);
    add_linear("logits", size.width, characters);
    tokens_ = from_host(in, {size.tokens()}, device), places_ = from_host(place, {size.tokens()}, device), target_ = from_host(next, {size.tokens()}, device);
    one_ = full({}, 1, {.device = device});
  }

  /// The loss; sets the gradients.
  Tensor loss_and_grads() {
    // (tokens, width) <-> (batch, heads, time, head).
    auto split = [&](const Tensor& x) { return x.reshape({size.batch, size.time, size.heads, size.head()}).transpose(1, 2); };
    auto join = [&](const Tensor& x) { return x.transpose(1, 2).contiguous().reshape({size.tokens(), size.width}); };
    const bool fused = attends == Attends::by_sdpa;
    const attention::SdpaOptions causal{.causal = attention::Causal::upper_left};
    const double scale = 1 / std::sqrt(static_cast<double>(size.head()));
    auto masked = [&](Expr s) { return select(position(-1) > position(-2), -std::numeric_limits<double>::infinity(), s * param(scale)); };
    auto gelu_of = [](Expr v) { return gelu(v); };
    Tensor x0 = add(nn::embedding(params.at("characters"), tokens_), nn::embedding(params.at("places"), places_));
    nn::LayerNormResult n1 = norm("norm1", x0);
    Tensor q = split(linear("query", n1.y)), k = split(linear("key", n1.y)), v = split(linear("value", n1.y));
    Tensor weights = fused ? Tensor() : nn::softmax(map(masked, linalg::matmul(q, k.mT())));
    const attention::SdpaResult attended = fused ? attention::sdpa(q, k, v, causal) : attention::SdpaResult{.out = linalg::matmul(weights, v)};
    Tensor heads = join(attended.out);
    Tensor x1 = add(x0, linear("mixed", heads));
    nn::LayerNormResult n2 = norm("norm2", x1);
    Tensor up = linear("up", n2.y), active = map(gelu_of, up), x2 = add(x1, linear("down", active));
    nn::LayerNormResult n3 = norm("norm3", x2);
    logits = linear("logits", n3.y);
    nn::CrossEntropyResult loss = nn::cross_entropy(logits, target_);

    Tensor g2 = norm_backward("norm3", linear_backward("logits", nn::cross_entropy_backward(one_, logits, target_, loss), n3.y), x2, n3);
    Tensor of_up = map_backward({linear_backward("down", g2, active)}, gelu_of, {up})[0];
    Tensor g1 = add(g2, norm_backward("norm2", linear_backward("up", of_up, n2.y), x1, n2));
    Tensor of_heads = split(linear_backward("mixed", g1, heads));
    attention::FlexGradients of;
    if (fused) {
      of = attention::sdpa_backward(of_heads, q, k, v, attended, causal);
    } else {
      Tensor of_scores = map([&](Expr g) { return g * param(scale); }, nn::softmax_backward(linalg::matmul(of_heads, v.mT()), weights));
      of = {linalg::matmul(of_scores, k), linalg::matmul(of_scores.mT(), q), linalg::matmul(weights.mT(), of_heads)};
    }
    Tensor of_norm = add(add(linear_backward("query", join(of.q), n1.y), linear_backward("key", join(of.k), n1.y)), linear_backward("value", join(of.v), n1.y));
    Tensor g0 = add(g1, norm_backward("norm1", of_norm, x0, n1));
    grads["characters"] = nn::embedding_backward(g0, tokens_, characters);
    grads["places"] = nn::embedding_backward(g0, places_, size.time);
    return loss.loss;
  }

  /// The next character's logits, (sequences, characters), for one character of each sequence and its place, i32 both. Its key and value join the cache's;
  /// `used` is how many a sequence has with it.
  Tensor decode(const Tensor& tokens, const Tensor& places, const Tensor& used, const Tensor& sequences, const attention::PagedCache& cache) const {
    const std::int64_t n = tokens.numel();
    auto split = [&](const Tensor& x) { return x.reshape({n, 1, size.heads, size.head()}).transpose(1, 2); };
    Tensor x0 = add(nn::embedding(params.at("characters"), tokens), nn::embedding(params.at("places"), places)), n1 = norm("norm1", x0).y;
    cache.assign(sequences, places.unsqueeze(1), split(linear("key", n1)), split(linear("value", n1)));
    Tensor heads = attention::flex(split(linear("query", n1)), cache.keys(), cache.values(), {.varlen = cache.varlen(used)}).out.reshape({n, size.width});
    Tensor x1 = add(x0, linear("mixed", heads)), active = map([](Expr v) { return gelu(v); }, linear("up", norm("norm2", x1).y));
    return linear("logits", norm("norm3", add(x1, linear("down", active))).y);
  }

 private:
  Tensor tokens_, places_, target_, one_;
};

}  // namespace clutch::cases
