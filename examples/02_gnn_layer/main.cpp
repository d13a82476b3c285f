// SPDX-License-Identifier: Apache-2.0
// A layer of a graph neural network (GraphSAGE with means), and the readout of a batch of graphs.
//
//   h_i = relu(x_i W_self + mean over edges j -> i of x_j W_neighbour + bias)
//   out_g = max over the nodes i of graph g of h_i
//
// Frameworks often sum over edges by atomics, whose results differ from run to run. Here edges are sorted by
// their target once, and each row sums its own edges in order: equal bits in each run and on every device.
//
// For your case: load `source` and `target` from your edge list. Edge weights are Csr::values; sums, maxima
// and minima are SpmmOptions::reduce. spmm_backward() and linalg::matmul_backward() are the gradients.
#include <clutch/clutch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

namespace {
constexpr std::int64_t kNodes = 300, kEdges = 2000, kIn = 16, kOut = 8;
constexpr std::size_t kGraphs = 3;
}  // namespace

int main() {
  const clutch::Device device = clutch::default_device();
  std::printf("device: %s\n", device.name().c_str());

  // Three graphs in one batch: nodes 0 to 99, 100 to 149 and 150 to 299; an edge stays within its graph.
  const std::vector<std::int32_t> begin = {0, 100, 150, 300};
  std::mt19937 random(7);
  std::vector<std::int32_t> from, to;
  for (std::int64_t e = 0; e < kEdges; ++e) {
    const std::size_t g = random() % kGraphs;
    const auto size = static_cast<std::uint32_t>(begin[g + 1] - begin[g]);
    from.push_back(begin[g] + static_cast<std::int32_t>(random() % size));
    to.push_back(begin[g] + static_cast<std::int32_t>(random() % size));
  }
  const clutch::Tensor source = clutch::from_host(from, {kEdges}, device), target = clutch::from_host(to, {kEdges}, device);
  const clutch::Tensor x = clutch::randn({kNodes, kIn}, {.device = device, .seed = 1});
  const clutch::Tensor w_self = clutch::randn({kIn, kOut}, {.device = device, .seed = 2});
  const clutch::Tensor w_neighbour = clutch::randn({kIn, kOut}, {.device = device, .seed = 3});
  const clutch::Tensor bias = clutch::randn({kOut}, {.device = device, .seed = 4});

  // The edge list as compressed rows: row i lists the sources of the edges that end in node i. Made once for
  // each graph, on the device, and used by all layers.
  const auto [offsets, order] = clutch::group_by(target, kNodes);
  const clutch::sparse::Csr adjacency{.offsets = offsets, .columns = clutch::index_select(source, 0, order), .width = kNodes};

  // The layer: one product over the edges, and two dense ones. The second one adds the first one's result and
  // the bias and applies relu in the kernel that multiplies (its epilogue).
  const clutch::Tensor neighbours = clutch::sparse::spmm(adjacency, x, {.reduce = clutch::Reduce::mean});
  const clutch::Tensor own = clutch::linalg::matmul(x, w_self);
  const clutch::Tensor h = clutch::linalg::matmul(
      neighbours, w_neighbour, [](clutch::Expr product, clutch::Expr self, clutch::Expr b) { return clutch::relu(product + self + b); }, {own, bias});

  // The readout: nodes of a graph stand in consecutive rows, so a graph is a segment.
  const clutch::Tensor starts = clutch::from_host(begin, {static_cast<std::int64_t>(begin.size())}, device);
  const clutch::Tensor readout = clutch::segment_reduce(h, starts, {.reduce = clutch::Reduce::amax});

  // Check against plain loops in double.
  const std::vector<float> xs = x.to_host<float>(), ws = w_self.to_host<float>(), wn = w_neighbour.to_host<float>();
  const std::vector<float> bs = bias.to_host<float>(), got = readout.to_host<float>();
  std::vector<double> mean(kNodes * kIn), degree(kNodes), expected(kGraphs * kOut, 0);  // relu gives 0 at least
  for (std::size_t e = 0; e < kEdges; ++e) {
    const auto i = static_cast<std::size_t>(to[e]), j = static_cast<std::size_t>(from[e]);
    degree[i] += 1;
    for (std::size_t k = 0; k < kIn; ++k) mean[i * kIn + k] += static_cast<double>(xs[j * kIn + k]);
  }
  for (std::size_t g = 0; g < kGraphs; ++g)
    for (auto i = static_cast<std::size_t>(begin[g]); i < static_cast<std::size_t>(begin[g + 1]); ++i)
      for (std::size_t o = 0; o < kOut; ++o) {
        double sum = static_cast<double>(bs[o]);
        for (std::size_t k = 0; k < kIn; ++k) {
          sum += static_cast<double>(xs[i * kIn + k]) * static_cast<double>(ws[k * kOut + o]);
          if (degree[i] > 0) sum += mean[i * kIn + k] / degree[i] * static_cast<double>(wn[k * kOut + o]);
        }
        expected[g * kOut + o] = std::max(expected[g * kOut + o], sum);
      }
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) worst = std::max(worst, std::fabs(static_cast<double>(got[i]) - expected[i]));
  for (std::size_t g = 0; g < kGraphs; ++g)
    std::printf("graph %zu: first features %.4f, %.4f\n", g, static_cast<double>(got[g * kOut]), static_cast<double>(got[g * kOut + 1]));
  std::printf("largest error: %.1e\n", worst);
  return worst < 1e-4 ? 0 : 1;
}
