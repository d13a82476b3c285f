// SPDX-License-Identifier: Apache-2.0
// Fully sharded layers: copies, memory, training with the bits of one rank, and with tensor parallel layers.
#include "dist/numbers.hpp"

#include <clutch/allocator.hpp>
#include <clutch/dist/fully_shard.hpp>
#include <clutch/dist/ops.hpp>
#include <clutch/ops/reduce.hpp>
#include <clutch/pointwise.hpp>

#include <cmath>

namespace clutch::testing { namespace {

using namespace dist;
using Layers = std::vector<std::vector<Sharded>>;

Sharded whole_on(const Mesh& mesh, const Tensor& x, std::vector<Placement> placements = {}) {
  placements.resize(static_cast<std::size_t>(mesh.shape().rank()));
  return Sharded::distribute(x, mesh, placements);
}

TEST(FullyShardTest, SharesAndGatheredParametersAreCopies) {
  for_ranks({1, 2, 3, 4}, [](const Group& g) {
    const Mesh line(g, {g.size()});
    const std::vector<Tensor> given{shared_numbers({7, 3}, 1), shared_numbers({5}, 2), shared_numbers({12, 2, 2}, 3), shared_numbers({1, 4}, 4)};
    FullyShard model(Layers{{whole_on(line, given[0]), whole_on(line, given[1])}, {whole_on(line, given[2])}, {whole_on(line, given[3])}});
    const std::vector<Sharded> shares = model.parameters();
    ASSERT_EQ(shares.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(shares[i].placements()[0], shard(0));
      expect_bits(shares[i].local().contiguous(), Sharded::distribute(given[i], line, {shard(0)}).local());
      expect_bits(shares[i].full().contiguous(), given[i]);
    }
    EXPECT_EQ(model.flat_parameters()[0].numel(), shares[0].local().numel() + shares[1].local().numel());
    for (const int layer : {0, 1, 2, 2, 1, 0}) {
      const std::vector<Sharded>& got = model.gather(layer);
      EXPECT_EQ(got[0].placements()[0], replicate());
      expect_bits(got[0].local().contiguous(), given[static_cast<std::size_t>(layer) + (layer > 0 ? 1 : 0)]);
      if (layer == 0) expect_bits(got[1].local().contiguous(), given[1]);
      model.release(layer);
    }
    // Averages of the gradients, which may go at once.
    for (int layer = 0; layer < 3; ++layer) {
      std::vector<Tensor> mine{numbers_of(g.rank(), layer == 0 ? Dims{7, 3} : layer == 1 ? Dims{12, 2, 2} : Dims{1, 4}, 5)};
      if (layer == 0) mine.push_back(numbers_of(g.rank(), {5}, 6));
      model.reduce(layer, mine);
    }
    const Tensor wanted = numbers_of(g.rank(), {7, 3}, 5);
    g.all_reduce_(wanted, {.op = ReduceOp::avg});
    expect_bits(model.gradients()[0].full().contiguous(), wanted);
  });
}

TEST(FullyShardTest, NoMoreThanTheLayersAheadAreWhole) {
  for_ranks({2, 3, 4}, [](const Group& g) {
    constexpr int kLayers = 5;
    constexpr std::int64_t kLong = 96, kColumns = 1024;
    constexpr std::uint64_t kBytes = kLong * kColumns * 4;
    const Mesh line(g, {g.size()});
    for (const int prefetch : {0, 1, 2, 7}) {
      SCOPED_TRACE("prefetch " + std::to_string(prefetch));
      const MemPool pool;
      const PoolGuard guard(pool);
      auto bytes = [&](const char* what) {
        const auto stats = memory_stats(pool.id());
        const auto found = stats.find(std::string("allocated_bytes.all.") + what);
        return found == stats.end() ? 0 : found->second;
      };
      Layers layers;
      std::vector<Tensor> wanted;
      for (int i = 0; i < kLayers; ++i) wanted.push_back(full({kLong, kColumns}, i + 1)), layers.push_back({whole_on(line, wanted.back())});
      FullyShard model(layers, {.prefetch = prefetch});
      layers.clear(), wanted.clear();
      current_stream().synchronize();
      const std::uint64_t before = bytes("current");
      EXPECT_LT(before, kLayers * kBytes);
      const auto most = static_cast<std::uint64_t>(std::min(prefetch + 1, kLayers));
      std::uint64_t peak = 0;
      int last = 0;
      auto visit = [&](int layer) {
        const std::vector<Sharded>& whole = model.gather(layer);
        peak = std::max(peak, bytes("current"));
        // In the direction of the calls, which turns at both ends.
        const bool goes_forward = layer == last ? layer == 0 : layer > last;
        EXPECT_EQ(model.gathered(), 1 + std::min(prefetch, goes_forward ? kLayers - 1 - layer : layer));
        last = layer;
        EXPECT_EQ(whole[0].local().slice(0, 0, 1).contiguous().to_host<float>()[3], static_cast<float>(layer + 1));
        model.release(layer);
      };
      for (int step = 0; step < 2; ++step) {
        for (int i = 0; i < kLayers; ++i) visit(i);
        for (int i = kLayers; i-- > 0;) visit(i);
      }
      EXPECT_EQ(model.gathered(), 0) << "after the first layer on the way back there is nothing ahead";
      // Jumps drop what was gathered ahead.
      for (const int i : {2, 0, 4, 1, 3, 3, 0}) visit(i);
      // Blocks are rounded up, and numbers read back are copied.
      EXPECT_LE(peak - before, most * kBytes + kBytes / 2);
      EXPECT_GE(peak - before, most * kBytes);
      // Layers that were gathered ahead of a step are gathered again behind it.
      for (int i = 0; i < kLayers; ++i) model.reduce(i, std::vector{zeros({kLong, kColumns})});
      visit(2);
      (void)model.flat_gradients();
      fill_(model.flat_parameters()[3], -1);
      EXPECT_EQ(model.gathered(), 0);
      EXPECT_EQ(model.gather(3)[0].local().slice(0, 95, 96).contiguous().to_host<float>()[9], -1.0F);
    }
  });
}

/// Two layers of weights after some steps on batches of eight parts, of which each rank has as many.
struct Trained {
  std::vector<Tensor> weights;
  double first_loss = 0, last_loss = 0;
};
constexpr int kParts = 8, kSteps = 12;
constexpr std::int64_t kRows = 16, kIn = 7, kHidden = 12, kOut = 3;
std::vector<Tensor> first_weights() {
  return {mul(shared_numbers({kIn, kHidden}, 1), 0.3), mul(shared_numbers({kHidden}, 2), 0.1), mul(shared_numbers({kHidden, kOut}, 3), 0.3)};
}
/// Sums over a part: gradients of the weights, and the loss.
std::vector<Tensor> gradients_of(const std::vector<Tensor>& w, int step, int part) {
  const auto salt = static_cast<unsigned>(100 + step * kParts + part);
  const Tensor x = shared_numbers({kRows, kIn}, salt), y = tanh(linalg::matmul(x, shared_numbers({kIn, kOut}, 9)));
  const Tensor hidden = tanh(add(linalg::matmul(x, w[0]), w[1])), wrong = sub(linalg::matmul(hidden, w[2]), y);
  const Tensor back = map([](const Expr& b, const Expr& h) { return b * (1.0F - h * h); }, linalg::matmul(wrong, w[2].mT()), hidden);
  return {linalg::matmul(x.mT(), back), sum(back, {.dims = {0}}), linalg::matmul(hidden.mT(), wrong), sum(mul(wrong, wrong)).reshape({1})};
}
std::vector<Tensor> gradients_of(const std::vector<Tensor>& w, int step, int first, int count) {
  if (count == 1) return gradients_of(w, step, first);
  std::vector<Tensor> left = gradients_of(w, step, first, count / 2);
  const std::vector<Tensor> right = gradients_of(w, step, first + count / 2, count / 2);
  for (std::size_t i = 0; i < left.size(); ++i) add_(left[i], right[i]);
  return left;
}

/// `max_norm` 0: nothing is clipped.
Trained trained(const Group& g, double max_norm) {
  const Mesh line(g, {g.size()});
  const std::vector<Tensor> start = first_weights();
  FullyShard model(Layers{{whole_on(line, start[0]), whole_on(line, start[1])}, {whole_on(line, start[2])}});
  optim::AdamW optimizer(model.flat_parameters(), {.lr = 0.02});
  const int each = kParts / g.size();
  Trained made;
  for (int step = 0; step < kSteps; ++step) {
    // Both layers at once: the gradients are computed together.
    const std::vector<Sharded> first = model.gather(0), second = model.gather(1);
    std::vector<Tensor> mine = gradients_of({first[0].local(), first[1].local(), second[0].local()}, step, g.rank() * each, each);
    for (const Tensor& x : mine) mul_(x, 1.0 / each);
    model.reduce(1, std::span(mine).subspan(2, 1)), model.reduce(0, std::span(mine).first(2));
    model.release(0), model.release(1);
    g.all_reduce_(mine[3], {.op = ReduceOp::avg});
    (step == 0 ? made.first_loss : made.last_loss) = values(mine[3])[0];
    const Tensor factor = max_norm > 0 ? dist::grad_norm(model.gradients(), max_norm).factor : Tensor();
    optimizer.step(model.flat_gradients(), {.grad_factor = factor});
  }
  for (const Sharded& x : model.parameters()) made.weights.push_back(x.full().contiguous());
  return made;
}
Trained trained_alone(double max_norm) {
  Trained made{.weights = first_weights()};
  optim::AdamW optimizer(made.weights, {.lr = 0.02});
  for (int step = 0; step < kSteps; ++step) {
    std::vector<Tensor> all = gradients_of(made.weights, step, 0, kParts);
    for (const Tensor& x : all) mul_(x, 1.0 / kParts);
    (step == 0 ? made.first_loss : made.last_loss) = values(all[3])[0];
    all.pop_back();
    const Tensor factor = max_norm > 0 ? optim::grad_norm(all, max_norm).factor : Tensor();
    optimizer.step(all, {.grad_factor = factor});
  }
  return made;
}

TEST(FullyShardTest, TrainingHasTheBitsOfOneRankAlsoWhereItClips) {
  const Trained clipped_alone = trained(open_threads(1)[0], 0.5);
  for_ranks({1, 2, 4}, [&](const Group& g) {
    if (kParts % g.size() != 0) return;
    const Trained wanted = trained_alone(0), got = trained(g, 0);
    for (std::size_t i = 0; i < 3; ++i) expect_bits(got.weights[i], wanted.weights[i]);
    EXPECT_LT(got.last_loss, got.first_loss / 2);
    EXPECT_EQ(got.last_loss, wanted.last_loss);
    const Trained clipped = trained(g, 0.5), wanted_clipped = trained_alone(0.5);
    for (std::size_t i = 0; i < 3; ++i) {
      expect_bits(clipped.weights[i], clipped_alone.weights[i]);
      expect_near(clipped.weights[i], wanted_clipped.weights[i], 1e-5);
    }
    EXPECT_NE(values(clipped.weights[0]), values(got.weights[0])) << "nothing was clipped";
  });
}

TEST(FullyShardTest, TensorParallelLayersInside) {
  for_ranks({4}, [](const Group& g) {
    if (g.size() != 4) return;
    constexpr std::int64_t kAll = 12, kFeatures = 5, kWide = 6;
    const Mesh mesh(g, {2, 2}, {"data", "model"});
    const Tensor up = mul(shared_numbers({kWide, kFeatures}, 1), 0.3), down = mul(shared_numbers({kOut, kWide}, 2), 0.3);
    FullyShard model(Layers{{whole_on(mesh, up, {replicate(), shard(0)})}, {whole_on(mesh, down, {replicate(), shard(1)})}});
    // Columns are cut by `model` first, and each part then by `data`, of 3 rows into 2 and 1.
    EXPECT_EQ(model.parameters()[0].placements(), (std::vector{shard(0, 2), shard(0)}));
    EXPECT_EQ(model.parameters()[1].placements(), (std::vector{shard(0), shard(1)}));
    EXPECT_EQ(model.parameters()[0].local().size(0), mesh.coordinate()[0] == 0 ? 2 : 1);
    expect_bits(model.parameters()[0].full().contiguous(), up), expect_bits(model.parameters()[1].full().contiguous(), down);
    // Where the ranks that share are those of the last dimension, each cuts the part that it has.
    const FullyShard within(Layers{{whole_on(mesh, up, {shard(0)})}}, {.mesh_dim = 1});
    EXPECT_EQ(within.parameters()[0].placements(), (std::vector{shard(0), shard(0)}));
    expect_bits(within.parameters()[0].full().contiguous(), up);
    optim::AdamW optimizer(model.flat_parameters(), {.lr = 0.02}), alone(std::vector<Tensor>{up, down}, {.lr = 0.02});
    const auto slope = [](const Expr& b, const Expr& h) { return b * (1.0F - h * h); };
    for (int step = 0; step < 10; ++step) {
      const Tensor x = shared_numbers({kAll, kFeatures}, static_cast<unsigned>(10 + step)), y = shared_numbers({kAll, kOut}, static_cast<unsigned>(50 + step));
      const Sharded mine = whole_on(mesh, x, {shard(0)});
      const Tensor wanted = whole_on(mesh, y, {shard(0)}).local();
      // Columns, rows, one sum over `model`.
      const Sharded hidden = dist::map([](const Expr& e) { return tanh(e); }, dist::linear(mine, model.gather(0)[0]));
      model.release(0);
      const Sharded weight = model.gather(1)[0];
      const Tensor out = dist::linear(hidden, weight).redistribute({shard(0), replicate()}).local();
      const Tensor wrong = div(sub(out, wanted), static_cast<double>(out.size(0)));
      const Tensor back = map(slope, linalg::matmul(wrong, weight.local()), hidden.local());
      model.reduce(1, std::vector{linalg::matmul(wrong.mT(), hidden.local())}), model.release(1);
      model.gather(0), model.reduce(0, std::vector{linalg::matmul(back.mT(), mine.local())}), model.release(0);
      const optim::GradNorm norm = dist::grad_norm(model.gradients(), 0.4);
      optimizer.step(model.flat_gradients(), {.grad_factor = norm.factor});
      // One rank.
      const Tensor hidden_alone = tanh(linalg::matmul(x, up.mT()));
      const Tensor wrong_alone = div(sub(linalg::matmul(hidden_alone, down.mT()), y), static_cast<double>(kAll));
      const Tensor back_alone = map(slope, linalg::matmul(wrong_alone, down), hidden_alone);
      const std::vector<Tensor> grads{linalg::matmul(back_alone.mT(), x), linalg::matmul(wrong_alone.mT(), hidden_alone)};
      const optim::GradNorm norm_alone = optim::grad_norm(grads, 0.4);
      expect_near(norm.norm, norm_alone.norm, 1e-5);
      alone.step(grads, {.grad_factor = norm_alone.factor});
    }
    expect_near(model.parameters()[0].full().contiguous(), up, 1e-5), expect_near(model.parameters()[1].full().contiguous(), down, 1e-5);
  });
}

TEST(FullyShardTest, Refusals) {
  for_ranks({2}, [](const Group& g) {
    const Mesh line(g, {g.size()});
    const Sharded x = whole_on(line, zeros({4, 2}));
    auto code = [&](const Layers& layers, const FullyShardOptions& options = {}) { return code_of([&] { FullyShard(layers, options); }); };
    EXPECT_EQ(code({}), ErrorCode::invalid_argument);
    EXPECT_EQ(code({{x}, {}}), ErrorCode::invalid_argument);
    EXPECT_EQ(code({{x}}, {.mesh_dim = 1}), ErrorCode::invalid_argument);
    EXPECT_EQ(code({{x}}, {.prefetch = -1}), ErrorCode::invalid_argument);
    EXPECT_EQ(code({{whole_on(line, zeros({4, 2}), {shard(0)})}}), ErrorCode::invalid_argument);
    EXPECT_EQ(code({{Sharded::from_local(zeros({4, 2}), line, {partial()})}}), ErrorCode::invalid_argument);
    EXPECT_EQ(code({{x}, {whole_on(Mesh(g, {1, g.size()}), zeros({4, 2}))}}), ErrorCode::invalid_argument);
    EXPECT_EQ(code({{x, whole_on(line, zeros({4}, {.dtype = DType::f64}))}}), ErrorCode::invalid_dtype);
    EXPECT_EQ(code({{whole_on(line, zeros({}))}}), ErrorCode::invalid_shape);
    const Mesh square(g, {1, g.size()});
    EXPECT_EQ(code({{whole_on(square, zeros({5, 2}), {replicate(), shard(0)})}}), 5 % g.size() == 0 ? ErrorCode::ok : ErrorCode::invalid_shape);
    FullyShard model(Layers{{x}, {x}});
    EXPECT_EQ(code_of([&] { model.gather(2); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { model.gather(0, {.async = true}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { model.release(0); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { model.gradients(); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { model.reduce(0, {}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { model.reduce(0, std::vector{zeros({2, 2})}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { model.reduce(0, std::vector{zeros({4, 2}, {.dtype = DType::f64})}); }), ErrorCode::invalid_dtype);
    EXPECT_NE(message_of([&] { model.gather(-1); }).find("dist::FullyShard::gather: the layer must be one of 2, got -1"), std::string::npos);
  });
}

}}  // namespace clutch::testing
