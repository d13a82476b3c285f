// SPDX-License-Identifier: Apache-2.0
// compile(): a function of tensors that is recorded at its first call and replayed at all later ones.
//
// A layer of a model is compiled once. Its weights are arguments, so the one graph serves all layers: the model's
// first run records one layer, not twelve. Every result has the bits of the eager calls. What a call's arguments
// must be for a replay (dtypes, shapes, numbers) is found out by itself; explain() lists it.
//
// For your case: give the function all tensors that change from call to call as arguments, alone or in structs.
// Read on the host behind it; or allow graph breaks, as the second function below does.
#include <clutch/clutch.hpp>

#include <cstdio>
#include <vector>

namespace {
using clutch::Tensor;
namespace nn = clutch::nn;
namespace linalg = clutch::linalg;
namespace attention = clutch::attention;

constexpr std::int64_t kTime = 40, kWidth = 32, kHeads = 4;
constexpr int kLayers = 12;

struct Layer {
  Tensor norm_weight, norm_bias, qkv, out, mlp_weight, mlp_bias, up, down;
};

/// A transformer's layer: causal attention and a perceptron, each behind a norm and beside a residual path.
Tensor forward(const Tensor& x, const Layer& layer) {
  const Tensor qkv = linalg::linear(nn::layer_norm(x, layer.norm_weight, layer.norm_bias).y, layer.qkv);
  auto heads = [&](std::int64_t part) {
    return qkv.slice(1, part * kWidth, (part + 1) * kWidth).reshape({x.size(0), kHeads, kWidth / kHeads}).transpose(0, 1);
  };
  const Tensor mixed = attention::sdpa(heads(0), heads(1), heads(2), {.causal = attention::Causal::upper_left}).out;
  const Tensor y = x + linalg::linear(mixed.transpose(0, 1).reshape({x.size(0), kWidth}), layer.out);
  const Tensor hidden = clutch::gelu(linalg::linear(nn::layer_norm(y, layer.mlp_weight, layer.mlp_bias).y, layer.up));
  return y + linalg::linear(hidden, layer.down);
}

int failed = 0;
void expect(const char* what, bool holds) {
  std::printf("  %s: %s\n", what, holds ? "yes" : "NO");
  if (!holds) failed = 1;
}

}  // namespace

int main() {
  const clutch::Device device = clutch::default_device();
  std::printf("device: %s\n", device.name().c_str());
  std::uint64_t seed = 1;
  auto normal = [&](const clutch::Dims& sizes, double scale) { return scale * clutch::randn(sizes, {.device = device, .seed = seed++}); };
  std::vector<Layer> model;
  for (int i = 0; i < kLayers; ++i)
    model.push_back({normal({kWidth}, 1), normal({kWidth}, 0.1), normal({3 * kWidth, kWidth}, 0.2), normal({kWidth, kWidth}, 0.2), normal({kWidth}, 1),
                     normal({kWidth}, 0.1), normal({4 * kWidth, kWidth}, 0.2), normal({kWidth, 4 * kWidth}, 0.1)});

  // Regional: one layer compiled. The rows of x may vary: each number of rows gets a graph, and no recompile is counted.
  auto layer = clutch::compile(forward, {.name = "layer", .dynamic = {{.tensor = 0, .dim = 0}}});
  bool equal = true;
  for (const std::int64_t rows : {kTime, kTime, std::int64_t{1}}) {
    Tensor x = normal({rows, kWidth}, 1), y = x;
    for (const Layer& weights : model) {
      x = layer(x, weights);
      y = forward(y, weights);
    }
    equal = equal && x.to_bytes() == y.to_bytes();
  }
  const clutch::CompileReport report = layer.explain();
  expect("the bits of the eager layers", equal);
  expect("one graph for twelve layers, and one for another number of rows", report.captures == 2 && report.sizes == 1 && report.recompiles == 0);
  std::printf("%s\n", report.to_string().c_str());

  // A function that reads on the host: steps are halved until the loss falls. Each number of halvings it has seen is
  // replayed in parts, with the reads between them.
  auto descend = [](const Tensor& w, const Tensor& gradient) {
    auto loss = [](const Tensor& at) { return clutch::sum(at * at); };
    double step = 1;
    const double before = loss(w).item();
    while (step > 1e-3 && loss(w - gradient * step).item() >= before) step /= 2;
    return w - gradient * step;
  };
  auto compiled = clutch::compile(descend, {.name = "descend", .graph_breaks = clutch::GraphBreaks::allowed});
  const Tensor w = clutch::full({3}, 2, {.device = device}), gradient = 2 * w * 2;
  Tensor first = compiled(w, gradient), second = compiled(w, gradient);
  const std::vector<float> wanted = descend(w, gradient).to_host<float>();
  expect("equal with host reads", first.to_host<float>() == wanted && second.to_host<float>() == wanted);
  expect("the second call ran by graphs alone", compiled.explain().replays == 1);
  std::printf("  %d host reads split the calls\n", static_cast<int>(compiled.explain().breaks));
  return failed;
}
