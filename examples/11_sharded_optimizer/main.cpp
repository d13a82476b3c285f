// SPDX-License-Identifier: Apache-2.0
// Training with a sharded optimizer (ZeRO): each rank keeps AdamW's moments of its share of the parameters alone, so that
// their memory is divided by the number of ranks. Run by
//   mpirun -np 2 sharded_optimizer
//
// Parameters lie one behind the other in memory that all ranks reach, and so do the gradients: a step is one launch on
// each rank, which averages its share of all ranks' gradients, updates it, and stores it to all ranks. On several hosts
// the same bits come by messages. Gradients are clipped by a norm whose bits do not depend on the number of ranks.
//
// For your case: list the sizes of your parameters in kSizes, and compute your gradients into `grads`.
#include <clutch/clutch.hpp>
#include <clutch/dist.hpp>

#include <cstdio>
#include <numeric>
#include <vector>

namespace {
using clutch::Tensor;
namespace dist = clutch::dist;

const std::vector<clutch::Dims> kSizes{{64, 256}, {256}, {256, 64}, {64}};

/// Views of one tensor, one for each parameter.
std::vector<Tensor> parts_of(const Tensor& all) {
  std::vector<Tensor> parts;
  std::int64_t begin = 0;
  for (const clutch::Dims& sizes : kSizes) {
    const std::int64_t numel = clutch::numel(sizes);
    parts.push_back(all.slice(0, begin, begin + numel).reshape(sizes));
    begin += numel;
  }
  return parts;
}

/// A rank's gradients in a step: here, of half the squared distance to numbers of its own.
void compute(const std::vector<Tensor>& params, const std::vector<Tensor>& grads, int rank) {
  for (std::size_t i = 0; i < params.size(); ++i) {
    clutch::copy_(grads[i], params[i]);
    clutch::add_(grads[i], -0.25 * (rank + 1));
  }
}

}  // namespace

int main() {
  const dist::Group world = dist::open();
  const std::int64_t total =
      std::accumulate(kSizes.begin(), kSizes.end(), std::int64_t{0}, [](std::int64_t sum, const clutch::Dims& sizes) { return sum + clutch::numel(sizes); });
  const dist::Symmetric params({total}, world), grads({total}, world);
  clutch::fill_(params.local(), 1);
  const std::vector<Tensor> param_parts = parts_of(params.local()), grad_parts = parts_of(grads.local());
  dist::ShardedAdamW optimizer(params, grads, {.lr = 0.01});

  // The same by each rank for itself: averaged gradients, and moments of all parameters.
  const Tensor plain = clutch::full({total}, 1), plain_grads = clutch::zeros({total});
  clutch::optim::AdamW plain_optimizer({plain}, {.lr = 0.01, .precision = {.numerics = clutch::optim::Numerics::source}});

  for (int step = 0; step < 20; ++step) {
    compute(param_parts, grad_parts, world.rank());
    clutch::copy_(plain_grads, grads.local());
    const clutch::optim::GradNorm norm = optimizer.grad_norm(0.5);
    optimizer.step(norm.factor);
    world.all_reduce_(plain_grads, {.op = dist::ReduceOp::avg});
    plain_optimizer.step(std::vector<Tensor>{plain_grads}, {.grad_factor = norm.factor});
  }
  const bool same = params.local().to_bytes() == plain.to_bytes();
  std::printf("rank %d of %d keeps moments of %lld of %lld parameters, which %s those of a whole optimizer\n", world.rank(), world.size(),
              static_cast<long long>(optimizer.exp_avg().numel()), static_cast<long long>(total), same ? "have the bits of" : "DIFFER from");
  return same ? 0 : 1;
}
