// SPDX-License-Identifier: Apache-2.0
// Training over ranks: AdamW in shares, and bits that do not depend on how many ranks share the work.
#include "dist/ranks.hpp"

#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <random>

namespace clutch::testing { namespace {

using namespace dist;

Tensor random_numbers(std::int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> number;
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& x : values) x = number(random);
  return from_host(values, {n});
}

/// In the order that ShardedAdamW::grad_norm() states.
Tensor norm_in_order(const Tensor& x, optim::NormType type) {
  const std::int64_t rows = (x.numel() + 1023) / 1024;
  const Tensor whole = zeros({rows * 1024});
  copy_(whole.slice(0, 0, x.numel()), abs(x));
  const Tensor blocks = whole.reshape({rows, 1024});
  if (type == optim::NormType::inf) return amax(whole).reshape({1});
  if (type == optim::NormType::one) return sum(sum(blocks, {.dims = {1}})).reshape({1});
  return sqrt(sum(sum(mul(blocks, blocks), {.dims = {1}}))).reshape({1});
}

TEST(ShardedAdamWTest, HasTheBitsOfAnAllReduceAndAdamW) {
  // Ten ranks are too many for one launch. Each number of ranks, decay and factor is a program.
  for_ranks(level() == "smoke" ? std::vector{1, 2, 10} : std::vector{1, 2, 3, 5, 10}, [](const Group& g) {
    unsigned seed = 0;
    for (const std::int64_t n : {1, 17, 12345})
      for (const double decay : {n == 17 ? 0.0 : 0.02}) {
        SCOPED_TRACE(std::to_string(n) + " parameters, weight decay " + std::to_string(decay));
        const Symmetric params({n}, g), grads({n}, g);
        const optim::AdamWOptions options{.lr = 3e-3, .beta1 = 0.8, .weight_decay = decay, .precision = {.numerics = optim::Numerics::source}};
        const Tensor wanted = random_numbers(n, ++seed);
        copy_(params.local(), wanted);
        ShardedAdamW sharded(params, grads, options);
        optim::AdamW whole(std::vector<Tensor>{wanted}, options);
        for (int step = 0; step < 8; ++step) {
          const bool clips = step % 3 == 2;
          const Tensor mine = random_numbers(n, ++seed * 100 + static_cast<unsigned>(g.rank()));
          copy_(grads.local(), mine);
          if (step == 4) sharded.set_lr(1e-3), whole.set_lr(1e-3);
          const optim::NormType type = std::array{optim::NormType::two, optim::NormType::one, optim::NormType::inf}[static_cast<std::size_t>(step % 3)];
          const optim::GradNorm found = sharded.grad_norm(0.5, {.norm_type = type});
          sharded.step(clips ? found.factor : Tensor());
          g.all_reduce_(mine, {.op = ReduceOp::avg});
          ASSERT_EQ(found.norm.to_bytes(), norm_in_order(mine, type).to_bytes()) << "step " << step;
          whole.step(std::vector<Tensor>{mine}, {.grad_factor = clips ? found.factor : Tensor()});
          ASSERT_EQ(params.local().to_bytes(), wanted.to_bytes()) << "step " << step;
        }
        EXPECT_EQ(sharded.steps(), 8);
        const auto state = whole.state();
        const std::int64_t begin = sharded.share_begin(), end = begin + sharded.exp_avg().numel();
        EXPECT_EQ(sharded.exp_avg().to_bytes(), state.at("0.exp_avg").slice(0, begin, end).contiguous().to_bytes());
        EXPECT_EQ(sharded.exp_avg_sq().to_bytes(), state.at("0.exp_avg_sq").slice(0, begin, end).contiguous().to_bytes());
      }
  });
}

TEST(ShardedAdamWTest, RefusesWhatItDoesNotDoAndFindsRanksThatDiffer) {
  for_ranks({2}, [](const Group& g) {
    const Symmetric params({40}, g), grads({40}, g), longer({41}, g), doubles({40}, g, {.dtype = DType::f64});
    EXPECT_EQ(code_of([&] { (void)ShardedAdamW(params, longer); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { (void)ShardedAdamW(doubles, doubles); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { (void)ShardedAdamW(params, Symmetric()); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { (void)ShardedAdamW(params, grads, {.lr = -1}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { (void)ShardedAdamW(params, grads, {.beta2 = 1}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { (void)ShardedAdamW(params, grads, {.amsgrad = true}); }), ErrorCode::not_supported);
    EXPECT_EQ(code_of([&] { (void)ShardedAdamW(params, grads, {.precision = {.numerics = optim::Numerics::torch_cpu}}); }), ErrorCode::not_supported);
    fill_(params.local(), 1), fill_(grads.local(), 1);
    ShardedAdamW optimizer(params, grads);
    EXPECT_EQ(code_of([&] { optimizer.step(zeros({2})); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { optimizer.step(zeros({1}, {.dtype = DType::f64})); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { optimizer.grad_norm(-1); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { optimizer.grad_norm(1, {}, {.async = true}); }), ErrorCode::invalid_argument);
    if (g.size() == 1) return;
    optimizer.set_lr(g.rank() == 0 ? 1e-3 : 2e-3);
    const Work work = optimizer.step();
    try {
      work.synchronize();
      ADD_FAILURE() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::mismatch);
      EXPECT_NE(e.message().find("lr 0.001"), std::string::npos) << e.what();
      EXPECT_NE(e.message().find("lr 0.002"), std::string::npos) << e.what();
    }
    current_stream().reset();
    EXPECT_EQ(params.local().to_host<float>(), std::vector<float>(40, 1.0F));
  });
}

/// Parameters of a small network after 20 steps on a batch of kParts parts, of which each rank has as many as any other one.
constexpr int kParts = 8;
std::vector<std::uint8_t> trained(const Group& g) {
  constexpr std::int64_t kRows = 24, kIn = 10, kHidden = 32, kOut = 4;
  const int n = g.size(), each = kParts / n;
  std::vector<Tensor> weights{random_numbers(kIn * kHidden, 1).reshape({kIn, kHidden}), random_numbers(kHidden * kOut, 2).reshape({kHidden, kOut})};
  optim::AdamW optimizer(weights, {.lr = 0.01});
  for (int step = 0; step < 20; ++step) {
    // Gradients of each part, folded in the order in which ranks fold theirs.
    auto gradients = [&](int part) {
      const unsigned seed = static_cast<unsigned>(1000 * step + part);
      const Tensor x = random_numbers(kRows * kIn, 10 + seed).reshape({kRows, kIn}), y = random_numbers(kRows * kOut, 500000 + seed).reshape({kRows, kOut});
      const Tensor pre = linalg::matmul(x, weights[0]), hidden = tanh(pre), out = linalg::matmul(hidden, weights[1]), wrong = sub(out, y);
      const Tensor back = linalg::matmul(wrong, weights[1].mT());
      const Tensor before = map([](Expr b, Expr h) { return b * (1.0F - h * h); }, back, hidden);
      return std::vector<Tensor>{linalg::matmul(x.mT(), before), linalg::matmul(hidden.mT(), wrong)};
    };
    std::function<std::vector<Tensor>(int, int)> fold = [&](int first, int count) {
      if (count == 1) return gradients(first);
      const std::vector<Tensor> left = fold(first, count / 2), right = fold(first + count / 2, count / 2);
      return std::vector<Tensor>{add(left[0], right[0]), add(left[1], right[1])};
    };
    const std::vector<Tensor> mine = fold(g.rank() * each, each);
    for (const Tensor& x : mine) g.all_reduce_(x);
    optimizer.step(mine);
  }
  std::vector<std::uint8_t> bytes;
  for (const Tensor& w : weights) {
    const std::vector<std::uint8_t> of = w.to_bytes();
    bytes.insert(bytes.end(), of.begin(), of.end());
  }
  return bytes;
}

TEST(VirtualRanks, TwentyStepsHaveTheSameBitsOnAnyNumberOfRanks) {
  // One rank, which is no group of mpirun's, has all parts.
  const std::vector<std::uint8_t> alone = trained(open_threads(1)[0]);
  for_ranks({1, 2, 4, 8}, [&](const Group& g) {
    if (kParts % g.size() != 0) return;
    EXPECT_TRUE(trained(g) == alone) << g.size() << " ranks";
  });
}

}}  // namespace clutch::testing
