// SPDX-License-Identifier: Apache-2.0
// One fused step for a whole model, captured and replayed.
#include <clutch/clutch.hpp>

#include <cmath>
#include <iostream>
#include <vector>

int main() {
  clutch::Device device = clutch::default_device();
  std::vector<clutch::Tensor> params, grads;
  for (std::int64_t n : {1000, 3, 0, 512, 77}) {
    params.push_back(clutch::full({n}, 1, {.device = device}));
    grads.push_back(clutch::full({n}, 2, {.device = device}));
  }
  clutch::optim::AdamW adamw(params, {.lr = 3e-4, .weight_decay = 0.1});
  clutch::synchronize(device);
  clutch::Stream stream(device);
  clutch::Graph graph;
  {
    clutch::GraphCapture capture(graph, stream);
    clutch::optim::clip_grad_norm_(grads, 1.0, {}, stream);
    adamw.step(grads, stream);
  }
  for (int i = 0; i < 100; ++i) graph.replay(stream);
  stream.synchronize();

  // Gradients alike and all of one sign: each step takes lr from a parameter, after the decay.
  double expected = 1;
  for (int i = 0; i < 100; ++i) expected -= 3e-4 * 0.1 * expected + 3e-4;
  double got = params[0].select(0, 999).item(), steps = adamw.state().at("0.step").item();
  std::cout << device << ": " << steps << " steps, parameters are " << got << ", gradients " << grads[4].select(0, 76).item() << '\n';
  return steps == 100 && std::abs(got - expected) < 1e-5 ? 0 : 1;
}
