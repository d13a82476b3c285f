// SPDX-License-Identifier: Apache-2.0
// A tensor-parallel layer with sequence parallelism: of two weights each rank has some columns of the first and the rows
// of the second that go with them, and between such layers each rank has some of the tokens. Run by
//   mpirun -np 2 tensor_parallel
//
// Placements say what is sent: tokens are gathered in front of the first product, and the second one's sums are
// scattered to tokens again; in the backward pass it is the other way round. Nothing else is sent, and a rank computes
// and stores 1/n of all.
//
// For your case: put your layers in forward() and backward(); a dimension "data" in front of the mesh's makes it
// data-parallel, too, with FullyShard for the weights' shares.
#include <clutch/clutch.hpp>
#include <clutch/dist.hpp>
#include <clutch/dist/ops.hpp>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

namespace {
using clutch::Expr;
using clutch::Tensor;
namespace dist = clutch::dist;

constexpr std::int64_t kTokens = 30, kFeatures = 16, kHidden = 64;
constexpr int kSteps = 60;
const std::vector<dist::Placement> kByTokens{dist::shard(0)}, kOnAll{dist::replicate()};

Tensor numbers(const clutch::Dims& sizes, std::uint64_t seed, double scale) {
  return clutch::mul(clutch::randn(sizes, {.generator = clutch::Generator(clutch::default_device(), seed)}), scale);
}

struct Layer {
  dist::Mesh mesh;
  dist::Sharded tokens = on(kByTokens, numbers({kTokens, kFeatures}, 1, 1));
  dist::Sharded up = on({dist::shard(0)}, numbers({kHidden, kFeatures}, 2, 0.2));    // (out, in): columns of the product
  dist::Sharded down = on({dist::shard(1)}, numbers({kFeatures, kHidden}, 3, 0.1));  // (out, in): rows
  const dist::Sharded wanted = on(kByTokens, numbers({kTokens, kFeatures}, 4, 1));

  explicit Layer(const dist::Group& group) : mesh(group, {group.size()}, {"model"}) {}
  dist::Sharded on(const std::vector<dist::Placement>& placements, const Tensor& full) const { return dist::Sharded::distribute(full, mesh, placements); }

  // What backward() needs of forward().
  clutch::nn::RmsNormResult norm;
  dist::Sharded normed, hidden, wrong;

  /// tokens + down tanh(up norm(tokens)); returns the loss, the same on all ranks.
  float forward() {
    norm = clutch::nn::rms_norm(tokens.local());                                                       // each rank has some tokens, and whole ones
    normed = dist::Sharded::from_local(norm.y, mesh, kByTokens, tokens.sizes()).redistribute(kOnAll);  // all_gather
    hidden = dist::map([](Expr x) { return tanh(x); }, dist::linear(normed, up));                      // by columns
    const dist::Sharded out = dist::linear(hidden, down).redistribute(kByTokens);                      // sums; reduce_scatter
    wrong = dist::map([](Expr x, Expr y, Expr z) { return (x + y - z) / kTokens; }, tokens, out, wanted);
    const Tensor loss = clutch::sum(clutch::mul(wrong.local(), wrong.local())).reshape({1});
    mesh.group().all_reduce_(loss);
    return loss.to_host<float>()[0];
  }

  /// Gradients of this rank's parts of up, down and tokens.
  std::vector<Tensor> backward() const {
    const dist::Sharded grad = wrong.redistribute(kOnAll);  // all_gather, of the reduce_scatter
    const dist::Sharded of_down = dist::matmul(grad.transpose(0, 1), hidden);
    const dist::Sharded of_hidden = dist::map([](Expr g, Expr h) { return g * (1.0F - h * h); }, dist::matmul(grad, down), hidden);
    const dist::Sharded of_up = dist::matmul(of_hidden.transpose(0, 1), normed);
    const dist::Sharded of_normed = dist::matmul(of_hidden, up).redistribute(kByTokens);  // reduce_scatter, of the all_gather
    const Tensor of_tokens = clutch::nn::rms_norm_backward(of_normed.local(), tokens.local(), norm.rrms).x;
    return {of_up.local().contiguous(), of_down.local().contiguous(), clutch::add(of_tokens, wrong.local())};
  }
};

/// The layer after training, and the losses of the first and the last step.
Layer trained(const dist::Group& group, float& first, float& last) {
  Layer layer(group);
  clutch::optim::SGD optimizer({layer.up.local(), layer.down.local(), layer.tokens.local()}, {.lr = 0.1, .momentum = 0.9});
  for (int step = 0; step < kSteps; ++step) {
    last = layer.forward();
    if (step == 0) first = last;
    optimizer.step(layer.backward());
  }
  return layer;
}

float largest_difference(const dist::Sharded& a, const dist::Sharded& b) {
  return clutch::amax(clutch::abs(clutch::sub(a.full(), b.full()))).to_host<float>()[0];
}

}  // namespace

int main() {
  const dist::Group world = dist::open();
  float first = 0, last = 0, unused = 0;
  const Layer layer = trained(world, first, last);
  // One rank, which is no other's business, has all columns, rows and tokens.
  const Layer alone = trained(dist::open_threads(1)[0], unused, unused);
  float difference = 0;
  for (const auto& [a, b] : {std::pair{&layer.up, &alone.up}, {&layer.down, &alone.down}, {&layer.tokens, &alone.tokens}})
    difference = std::max(difference, largest_difference(*a, *b));
  std::printf("rank %d of %d has %lld of %lld columns: loss %.5f, then %.5f; weights differ from those of one rank by %.1e\n", world.rank(), world.size(),
              static_cast<long long>(layer.up.local().size(0)), static_cast<long long>(kHidden), static_cast<double>(first), static_cast<double>(last),
              static_cast<double>(difference));
  return difference < 1e-4F && last < first / 4 ? 0 : 1;
}
