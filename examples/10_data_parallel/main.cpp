// SPDX-License-Identifier: Apache-2.0
// Data-parallel training: each rank has a share of every batch, and all ranks average their gradients. Run by
//   mpirun -np 2 data_parallel
// and with 1, 4 or 8 ranks: the weights have the same bits.
//
// A batch has kParts parts, whatever the number of ranks. A rank adds the gradients of its parts in pairs, pairs of
// pairs and so on, as all_reduce_ adds those of the ranks: the order of the sum is always the same tree.
//
// For your case: read the part's rows of your data in gradients(); hand larger models' gradients over in a Batch, or
// make them views of one tensor, so that a step has one call.
#include <clutch/clutch.hpp>
#include <clutch/dist.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

namespace {
using clutch::Tensor;
namespace linalg = clutch::linalg;

constexpr int kParts = 8, kSteps = 60;
constexpr std::int64_t kRows = 32, kIn = 12, kHidden = 48, kOut = 3;

Tensor numbers(const clutch::Dims& sizes, std::uint64_t seed) { return clutch::randn(sizes, {.generator = clutch::Generator(clutch::default_device(), seed)}); }

struct Network {
  Tensor in = clutch::mul(numbers({kIn, kHidden}, 1), 0.3), out = clutch::mul(numbers({kHidden, kOut}, 2), 0.3);
  const Tensor teacher = numbers({kIn, kOut}, 3);

  /// Of the loss over one part of a step's batch: gradients of `in` and `out`, and the loss.
  std::vector<Tensor> gradients(int step, int part) const {
    const Tensor x = numbers({kRows, kIn}, 1000 + static_cast<std::uint64_t>(step * kParts + part)), wanted = linalg::matmul(x, teacher);
    const Tensor hidden = clutch::tanh(linalg::matmul(x, in));
    const Tensor wrong = clutch::div(clutch::sub(linalg::matmul(hidden, out), wanted), kRows);
    const Tensor back = clutch::map([](clutch::Expr b, clutch::Expr h) { return b * (1.0F - h * h); }, linalg::matmul(wrong, out.mT()), hidden);
    return {linalg::matmul(x.mT(), back), linalg::matmul(hidden.mT(), wrong), clutch::sum(clutch::mul(wrong, wrong)).reshape({1})};
  }
  std::vector<Tensor> gradients(int step, int first, int parts) const {
    if (parts == 1) return gradients(step, first);
    std::vector<Tensor> left = gradients(step, first, parts / 2);
    const std::vector<Tensor> right = gradients(step, first + parts / 2, parts / 2);
    for (std::size_t i = 0; i < left.size(); ++i) clutch::add_(left[i], right[i]);
    return left;
  }
};

/// The network after training by the ranks of a group, and the losses of its first and last step.
Network trained(const clutch::dist::Group& group, float& first_loss, float& last_loss) {
  Network network;
  const int parts = kParts / group.size();
  clutch::optim::AdamW optimizer({network.in, network.out}, {.lr = 0.02});
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<Tensor> mine = network.gradients(step, group.rank() * parts, parts);
    clutch::dist::Batch batch(group);
    for (const Tensor& x : mine) group.all_reduce_(x);
    batch.end();
    for (const Tensor& x : mine) clutch::mul_(x, 1.0 / kParts);
    optimizer.step(std::vector<Tensor>{mine[0], mine[1]});
    if (step == 0) first_loss = mine[2].to_host<float>()[0];
    if (step + 1 == kSteps) last_loss = mine[2].to_host<float>()[0];
  }
  return network;
}

}  // namespace

int main() {
  const clutch::dist::Group world = clutch::dist::open();
  if (kParts % world.size() != 0) return std::puts("the number of ranks must be 1, 2, 4 or 8"), 1;
  float first = 0, last = 0, unused = 0;
  const Network network = trained(world, first, last);

  // One rank, which is no other's business, has all parts.
  const Network alone = trained(clutch::dist::open_threads(1)[0], unused, unused);
  const bool same = network.in.to_bytes() == alone.in.to_bytes() && network.out.to_bytes() == alone.out.to_bytes();
  std::printf("rank %d of %d: loss %.5f, then %.5f; weights %s those of one rank\n", world.rank(), world.size(), static_cast<double>(first),
              static_cast<double>(last), same ? "have the bits of" : "DIFFER from");
  return same && last < first / 4 ? 0 : 1;
}
