// SPDX-License-Identifier: Apache-2.0
// A layer of a mixture of experts: each rank has its own tokens and some of the experts, and each token goes to its two
// best experts, wherever they are, and back. Run by
//   mpirun -np 2 mixture_of_experts
//
// dispatch() sends the rows by counts that are on the device: the host knows none of them until its own experts want
// theirs. Tokens lie in memory that all ranks reach, so that one launch copies them; on several hosts they go by
// messages.
//
// For your case: take your router's scores and your experts' weights; make `kAlign` what your products like, such as 64.
#include <clutch/clutch.hpp>
#include <clutch/dist/moe.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace {
using clutch::DType;
using clutch::Tensor;
namespace dist = clutch::dist;
namespace linalg = clutch::linalg;

constexpr std::int64_t kExperts = 8, kBest = 2, kTokens = 96, kWidth = 32, kHidden = 64, kAlign = 8;

Tensor numbers(const clutch::Dims& sizes, std::uint64_t seed) { return clutch::randn(sizes, {.generator = clutch::Generator(clutch::default_device(), seed)}); }

Tensor router() { return numbers({kWidth, kExperts}, 7); }
Tensor tokens_of(int rank) { return numbers({kTokens, kWidth}, 100 + static_cast<std::uint64_t>(rank)); }

/// An expert, of rows.
Tensor apply(std::int64_t expert, const Tensor& rows) {
  const Tensor in = numbers({kWidth, kHidden}, 1000 + static_cast<std::uint64_t>(expert)),
               out = numbers({kHidden, kWidth}, 2000 + static_cast<std::uint64_t>(expert));
  return linalg::matmul(clutch::relu(linalg::matmul(rows, in)), out);
}

/// Rows that are sent, token by token: 0 0 1 1 2 2.
Tensor token_of_rows() {
  std::vector<std::int64_t> tokens;
  for (std::int64_t i = 0; i < kTokens * kBest; ++i) tokens.push_back(i / kBest);
  return clutch::from_host(tokens, {kTokens * kBest});
}

/// Where tokens go: kBest experts each, by their share.
struct Route {
  Tensor experts, shares;  ///< (tokens, kBest)
};

Route routed(const Tensor& tokens) {
  const clutch::Sorted best = clutch::topk(clutch::nn::softmax(linalg::matmul(tokens, router())), kBest);
  return {best.indices, best.values};
}

/// The layer of a rank's tokens. `sent`, `results`: memory of at least so many rows as this rank sends, and as its experts get.
Tensor layer(const dist::Group& group, const Tensor& tokens, const dist::Symmetric& sent, const dist::Symmetric& results) {
  const int n = group.size();
  const std::int64_t own = kExperts / n, rows = kTokens * kBest;
  const Route route = routed(tokens);

  // A row for each token and expert, those of an expert one behind the other; experts of a rank follow each other, too.
  const clutch::Groups by_expert = clutch::group_by(route.experts.reshape({rows}), kExperts);
  const Tensor token = clutch::index_select(token_of_rows(), 0, by_expert.order),
               share = clutch::index_select(route.shares.reshape({rows}), 0, by_expert.order);
  const Tensor splits = clutch::sub(by_expert.offsets.slice(0, 1, kExperts + 1), by_expert.offsets.slice(0, 0, kExperts)).to(DType::i64);
  clutch::index_select_out(sent.local().slice(0, 0, rows), tokens, 0, token);

  const Tensor arrived = clutch::empty({2, kExperts}, {.dtype = DType::i64}), got = results.local();
  dist::dispatch(got, arrived, sent.local(), splits, group, kAlign);

  // Each expert's rows begin at a multiple of kAlign, and end with those of the last rank: the only thing that the host reads.
  const std::vector<std::int64_t> places = arrived.to_host<std::int64_t>();
  for (std::int64_t e = 0; e < own; ++e) {
    const auto first = static_cast<std::size_t>(e * n), last = first + static_cast<std::size_t>(n) - 1;
    const std::int64_t begin = places[static_cast<std::size_t>(kExperts) + first], end = places[static_cast<std::size_t>(kExperts) + last] + places[last];
    if (end > begin) clutch::copy_(got.slice(0, begin, end), apply(group.rank() * own + e, got.slice(0, begin, end)));
  }

  const Tensor back = clutch::empty({rows, kWidth}), returned = clutch::empty({2, kExperts}, {.dtype = DType::i64});
  dist::combine(back, returned, got, arrived, group);

  // Each token's results, by their shares.
  const Tensor weighed = clutch::mul(back, share.reshape({rows, 1}));
  return clutch::scatter_reduce(clutch::zeros({kTokens, kWidth}), 0, token.reshape({rows, 1}).expand({rows, kWidth}), weighed);
}

}  // namespace

int main() {
  const dist::Group world = dist::open();
  if (kExperts % world.size() != 0) return std::puts("the number of ranks must be 1, 2, 4 or 8"), 1;
  // All tokens may go to one rank.
  const std::int64_t most = world.size() * kTokens * kBest + kExperts * kAlign;
  const dist::Symmetric sent({kTokens * kBest, kWidth}, world), results({most, kWidth}, world);
  const Tensor tokens = tokens_of(world.rank());
  std::vector<float> mine = layer(world, tokens, sent, results).to_host<float>();

  // All experts by this rank alone, of all its tokens.
  const Route route = routed(tokens);
  const std::vector<std::int64_t> experts = route.experts.to(DType::i64).to_host<std::int64_t>();
  const std::vector<float> shares = route.shares.to_host<float>();
  std::vector<float> wanted(mine.size());
  for (std::int64_t e = 0; e < kExperts; ++e) {
    const std::vector<float> all = apply(e, tokens).to_host<float>();
    for (std::size_t i = 0; i < experts.size(); ++i)
      for (std::size_t j = 0, token = i / kBest; experts[i] == e && j < kWidth; ++j) wanted[token * kWidth + j] += shares[i] * all[token * kWidth + j];
  }
  float worst = 0, largest = 0;
  for (std::size_t i = 0; i < mine.size(); ++i) worst = std::max(worst, std::fabs(mine[i] - wanted[i])), largest = std::max(largest, std::fabs(wanted[i]));
  std::printf("rank %d of %d: %d tokens went to %d experts each and back; the result differs by %.1e of %.1f from all experts on one rank\n", world.rank(),
              world.size(), static_cast<int>(kTokens), static_cast<int>(kBest), static_cast<double>(worst), static_cast<double>(largest));
  return worst < 1e-5F * largest ? 0 : 1;
}
