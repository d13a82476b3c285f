// SPDX-License-Identifier: Apache-2.0
// Training of a small transformer that predicts the next character: forward, backward, clipping and AdamW,
// captured as one graph and replayed for each step.
//
// clutch has no autograd: each op has a function of its gradients, and backward() below calls them in reverse
// order. What this costs in lines it gives back in control: all kernels of a step are known, a replay
// checks and allocates nothing, and the same bits come out in each run.
//
// For your case: copy a batch into `tokens` and `target` by copy_() before each replay; add layers in forward()
// and their gradients in backward(). A gradient that is wrong shows in the check by differences at the end.
#include <clutch/clutch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace {
using clutch::Tensor;
namespace nn = clutch::nn;
namespace linalg = clutch::linalg;
namespace attention = clutch::attention;

constexpr std::int64_t kTime = 48, kWidth = 32, kHeads = 4;
const attention::FlexOptions kAttention{.mask_mod = attention::causal(), .return_lse = true};  // lse: for backward

struct Model {
  Tensor tokens, target;  // (time) character numbers, and those that follow
  Tensor characters, places, norm_weight, norm_bias, head_weight, head_bias;
  attention::MultiHeadWeights mix;
  // What forward() leaves for backward().
  Tensor x, y, logits;
  attention::MultiHeadResult mixed;
  nn::LayerNormResult norm;
  nn::CrossEntropyResult loss;

  std::vector<Tensor> params() const { return {characters, places, mix.in_weight, mix.out_weight, norm_weight, norm_bias, head_weight, head_bias}; }

  Tensor forward() {
    x = (nn::embedding(characters, tokens) + places).unsqueeze(0);  // (1, time, width)
    mixed = attention::multi_head_attention(x, mix, kAttention);
    y = (x + mixed.out).reshape({kTime, kWidth});  // the residual path
    norm = nn::layer_norm(y, norm_weight, norm_bias);
    logits = linalg::linear(norm.y, head_weight, head_bias);
    loss = nn::cross_entropy(logits, target);
    return loss.loss;
  }

  /// Gradients of all parameters, in the order of params(); `one` is the gradient of the loss.
  std::vector<Tensor> backward(const Tensor& one) const {
    const Tensor of_logits = nn::cross_entropy_backward(one, logits, target, loss);
    const linalg::LinearGradients head = linalg::linear_backward(of_logits, norm.y, head_weight, head_bias);
    const nn::LayerNormGradients of_norm = nn::layer_norm_backward(head.x, y, norm.mean, norm.rstd, norm_weight);
    const Tensor of_y = of_norm.x.reshape({1, kTime, kWidth});
    const attention::MultiHeadGradients mixing = attention::multi_head_attention_backward(of_y, x, mix, mixed, kAttention);
    const Tensor of_x = of_y + mixing.x.reshape({kTime, kWidth});  // both paths into x
    const Tensor of_characters = nn::embedding_backward(of_x, tokens, characters.size(0));
    return {of_characters, of_x, mixing.in_weight, mixing.out_weight, of_norm.weight, of_norm.bias, head.weight, head.bias};
  }
};
}  // namespace

int main() {
  const clutch::Device device = clutch::default_device();
  std::printf("device: %s\n", device.name().c_str());
  const std::string text = "the quick brown fox jumps over the lazy dog, twice.";
  std::map<char, std::int64_t> number;
  for (char c : text) number.try_emplace(c, static_cast<std::int64_t>(number.size()));
  std::vector<std::int64_t> in, next;
  for (std::size_t i = 0; i < kTime; ++i) in.push_back(number[text[i]]), next.push_back(number[text[i + 1]]);
  const auto letters = static_cast<std::int64_t>(number.size());

  const clutch::Stream stream(device);
  const clutch::StreamGuard guard(stream);  // calls that name no stream go on this one
  std::uint64_t seed = 1;
  auto normal = [&](const clutch::Dims& sizes, double scale) { return scale * clutch::randn(sizes, {.device = device, .seed = seed++}); };
  Model model;
  model.tokens = clutch::from_host(in, {kTime}, device), model.target = clutch::from_host(next, {kTime}, device);
  model.characters = normal({letters, kWidth}, 0.5), model.places = normal({kTime, kWidth}, 0.5);
  model.mix = {.in_weight = normal({3 * kWidth, kWidth}, 0.15), .out_weight = normal({kWidth, kWidth}, 0.15), .heads = kHeads};
  model.norm_weight = clutch::full({kWidth}, 1, {.device = device}), model.norm_bias = clutch::zeros({kWidth}, {.device = device});
  model.head_weight = normal({letters, kWidth}, 0.15), model.head_bias = clutch::zeros({letters}, {.device = device});
  const Tensor one = clutch::full({}, 1, {.device = device});

  // A gradient against a difference of losses: a small step of the characters' vectors along it,
  // which every layer's backward has a part in.
  const double before = model.forward().item();  // waits
  const Tensor slope = model.backward(one)[0];
  const double squares = clutch::sum(clutch::square(slope)).item(), h = 1e-2 / std::sqrt(squares);
  const Tensor kept = model.characters, move = slope * h;
  model.characters = kept + move;
  const double up = model.forward().item();
  model.characters = kept - move;
  const double down = model.forward().item(), relative = (up - down) / (2 * h) / squares;
  model.characters = kept;
  std::printf("slope by differences over slope by backward(): %.4f\n", relative);

  // One step as a graph. The optimizer makes its state here, outside of the capture.
  clutch::optim::AdamW adamw(model.params(), {.lr = 1e-2, .weight_decay = 1e-3});
  clutch::Graph step;
  {
    clutch::GraphCapture capture(step, stream);  // records until the end of this block; nothing runs
    model.forward();
    adamw.step(model.backward(one), {.max_norm = 1.0});
  }
  for (int i = 0; i < 150; ++i) step.replay(stream);

  // The logits of the last step say what the model has learned.
  const double after = model.loss.loss.item();
  const std::vector<float> scores = model.logits.to_host<float>();
  std::int64_t right = 0;
  for (std::int64_t t = 0; t < kTime; ++t) {
    const auto row = scores.begin() + t * letters;
    right += std::max_element(row, row + letters) - row == next[static_cast<std::size_t>(t)];
  }
  std::printf("loss %.3f before, %.4f after 150 steps; %d of %d characters are right\n", before, after, static_cast<int>(right), static_cast<int>(kTime));
  return std::fabs(relative - 1) < 0.01 && after < 0.1 * before && right == kTime ? 0 : 1;
}
