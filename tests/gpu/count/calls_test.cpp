// SPDX-License-Identifier: Apache-2.0
// Calls of stated shapes for scripts/gpu-cost --calls. On the stub driver (STUB_PLANS) each is made at its shape, so that its launches are written; on Oclgrind
// at two small sizes of the same work for each item or trip, which the plugin counts. Labels: "call", name, and the amount of work, which is in a unit of the
// call's own: counts of a launch are taken as a number for each group and a number for each unit of work.
#include "support/fixture.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <functional>

namespace clutch::testing { namespace {

using Call = std::function<void()>;

bool counted() { return std::getenv("GPU_COUNT_FILE") != nullptr; }

struct Stated {
  std::string name;
  /// Work and operands at a size; operands are made outside of what is counted.
  std::function<double(std::int64_t)> work;
  std::function<Call(std::int64_t)> prepare;
  std::int64_t size;
  std::vector<std::int64_t> small;
  double useful = 1;  ///< share of the operations that the op counts which the roofline counts
};

std::vector<Stated> stated_calls(const Device& d) {
  auto make = [&d](const Dims& sizes) { return zeros(sizes, {.device = d}); };
  auto one = [](std::int64_t n) { return static_cast<double>(n); };
  std::vector<Stated> calls;
  calls.push_back({"addcdiv 2^24",
                   one,
                   [=](std::int64_t n) -> Call {
                     const Tensor x = make({n}), out = make({n});
                     return [=] { addcdiv_out(out, x, x, x); };
                   },
                   1 << 24,
                   {1 << 17, 1 << 18}});
  calls.push_back({"randn 2^24",
                   one,
                   [=](std::int64_t n) -> Call {
                     if (counted()) randn({1}, {.device = d});  // the first of a process seeds the generator
                     return [=] { randn({n}, {.device = d}); };
                   },
                   1 << 24,
                   {1 << 17, 1 << 18}});
  calls.push_back({"AdamW 2^24",
                   one,
                   [=](std::int64_t n) -> Call {
                     const std::vector<Tensor> p{make({n})}, g{make({n})};
                     const auto adamw = std::make_shared<optim::AdamW>(p, optim::AdamWOptions{.lr = 1e-3});
                     if (counted()) adamw->step(g);  // makes its state; a plan of the same launch would not be written again
                     return [=] { adamw->step(g); };
                   },
                   1 << 24,
                   {1 << 17, 1 << 18}});
  // A row takes the same at each number of rows.
  calls.push_back({"sum, 16384 rows of 1024",
                   one,
                   [=](std::int64_t rows) -> Call {
                     const Tensor x = make({rows, 1024});
                     return [=] { sum(x, {.dims = {1}}); };
                   },
                   16384,
                   {32, 64}});
  calls.push_back({"softmax, 16384 x 1024",
                   one,
                   [=](std::int64_t rows) -> Call {
                     const Tensor x = make({rows, 1024});
                     return [=] { nn::softmax(x); };
                   },
                   16384,
                   {32, 64}});
  calls.push_back({"layer_norm, 16384 x 1024",
                   one,
                   [=](std::int64_t rows) -> Call {
                     const Tensor x = make({rows, 1024}), weight = make({1024});
                     return [=] { nn::layer_norm(x, weight, weight); };
                   },
                   16384,
                   {32, 64}});
  // Small integers in a fixed pattern: symmetric matrices whose iterations are those of random ones.
  auto symmetric = [d](std::int64_t batch, std::int64_t n) {
    if (!counted()) return zeros({batch, n, n}, {.device = d});
    std::vector<float> v(static_cast<std::size_t>(batch * n * n));
    std::uint64_t state = 1;
    for (float& x : v) x = static_cast<float>((state = state * 6364136223846793005u + 1442695040888963407u) >> 40) * 0x1p-24f - 0.5f;
    const Tensor half = from_host(v, {batch, n, n}, d);
    return add(half, half.mT());
  };
  auto eigh_of = [=](std::int64_t n) {
    return [=](std::int64_t batch) -> Call {
      const Tensor a = symmetric(batch, n);
      return [=] { linalg::eigh(a); };
    };
  };
  calls.push_back({"eigh of 2^20, n = 8", one, eigh_of(8), 1 << 20, {64, 128}});
  calls.push_back({"eigh of 10000, n = 8", one, eigh_of(8), 10000, {64, 128}});
  calls.push_back({"eigh of 2^20, n = 32", one, eigh_of(32), 1 << 20, {64, 128}});
  calls.push_back({"eigh of 10000, n = 32", one, eigh_of(32), 10000, {64, 128}});
  // Rows of 32 entries whose columns are spread over the whole matrix.
  calls.push_back({"spmm, 65536 rows of 32, 64 columns",
                   one,
                   [=](std::int64_t rows) -> Call {
                     constexpr std::int64_t kOfRow = 32;
                     std::vector<std::int32_t> columns(static_cast<std::size_t>(rows * kOfRow));
                     for (std::size_t i = 0; i < columns.size(); ++i)
                       columns[i] = static_cast<std::int32_t>(i * 2654435761u % static_cast<std::uint64_t>(rows));
                     const Tensor offsets = arange(0, static_cast<double>(rows * kOfRow + 1), kOfRow, {.dtype = DType::i32, .device = d});
                     const sparse::Csr a{offsets, from_host(columns, {rows * kOfRow}, d), make({rows * kOfRow}), rows};
                     const Tensor b = make({rows, 64});
                     return [=] { sparse::spmm(a, b); };
                   },
                   65536,
                   {128, 256}});
  // Blocks of 128 x 128 scores below the diagonal, and on it: the block mask leaves out the others, as in users' calls. Operations of the scores that the mask
  // allows are the useful ones; the op counts all.
  auto blocks = [](std::int64_t length) { return length / 128 * (length / 128 + 1) / 2; };
  calls.push_back({"flex causal, 16 x 4096 x 64",
                   [=](std::int64_t length) { return static_cast<double>((length > 1024 ? 16 : 1) * blocks(length)); },
                   [=](std::int64_t length) -> Call {
                     const Tensor q = make({1, length > 1024 ? 16 : 1, length, 64});
                     const attention::FlexOptions options{
                         .block_mask = attention::create_block_mask(attention::causal(), {.q_len = length, .kv_len = length, .device = d})};
                     return [=] { attention::flex(q, q, q, options); };
                   },
                   4096,
                   {256, 512},
                   4097.0 / (2 * 4096)});
  // The same by matrix instructions. Tiles have at most 128 queries.
  for (const std::int64_t e : {64, 128})
    calls.push_back({fmt::format("flex causal of bf16 by matrix instructions, 16 x 4096 x {}", e),
                     [=](std::int64_t length) { return static_cast<double>((length > 1024 ? 16 : 1) * blocks(length)); },
                     [=](std::int64_t length) -> Call {
                       const Tensor q = empty({1, length > 1024 ? 16 : 1, length, e}, {.dtype = DType::bf16, .device = d});
                       const attention::FlexOptions options{
                           .block_mask = attention::create_block_mask(attention::causal(), {.q_len = length, .kv_len = length, .device = d}),
                           .numerics = linalg::Numerics::blocks};
                       return [=] { attention::flex(q, q, q, options); };
                     },
                     4096,
                     {128, 256},
                     4097.0 / (2 * 4096)});
  // Their gradients. Of the algorithm's operations, 5 products to forward's 2, the useful ones.
  for (const std::int64_t e : {64, 128})
    calls.push_back({fmt::format("flex_backward causal of bf16 by matrix instructions, 16 x 4096 x {}", e),
                     [=](std::int64_t length) { return static_cast<double>((length > 1024 ? 16 : 1) * blocks(length)); },
                     [=](std::int64_t length) -> Call {
                       const Tensor q = empty({1, length > 1024 ? 16 : 1, length, e}, {.dtype = DType::bf16, .device = d});
                       // Sums of rows are made again where lse is large, as it is not here.
                       const Tensor lse = zeros({1, length > 1024 ? 16 : 1, length}, {.device = d});
                       const attention::FlexOptions options{
                           .block_mask = attention::create_block_mask(attention::causal(), {.q_len = length, .kv_len = length, .device = d}),
                           .numerics = linalg::Numerics::blocks};
                       return [=] { attention::flex_backward(q, q, q, q, {.out = q, .lse = lse}, options); };
                     },
                     4096,
                     {128, 256},
                     4097.0 / (2 * 4096)});
  // One document: all pairs of each block are looked at.
  calls.push_back({"block mask by documents, 2048",
                   [](std::int64_t length) { return static_cast<double>(length) * static_cast<double>(length) / (128.0 * 128.0); },
                   [=](std::int64_t length) -> Call {
                     const Tensor ids = zeros({length}, {.dtype = DType::i32, .device = d});
                     return [=] { attention::create_block_mask(attention::document(ids), {.q_len = length, .kv_len = length, .device = d}); };
                   },
                   2048,
                   {128, 256}});
  // Tiles of 128 x 128: a product of one tile, whose k grows.
  calls.push_back({"matmul 4096",
                   [=](std::int64_t k) { return static_cast<double>((k < 4096 ? 128 * 128 : k * k) * k); },
                   [=](std::int64_t k) -> Call {
                     const std::int64_t n = k < 4096 ? 128 : k;
                     const Tensor a = make({n, k}), b = make({k, n});
                     return [=] { linalg::matmul(a, b); };
                   },
                   4096,
                   {32, 64}});
  // Tiles of 256 x 128, or two of 128 x 128. b lies along n, and along k, as a layer's weight does.
  for (const bool along_k : {false, true})
    calls.push_back({along_k ? "linear 4096 of bf16 by matrix instructions" : "matmul 4096 of bf16 by matrix instructions",
                     [=](std::int64_t k) { return static_cast<double>((k < 4096 ? 256 * 128 : k * k) * k); },
                     [=](std::int64_t k) -> Call {
                       const std::int64_t m = k < 4096 ? 256 : k, n = k < 4096 ? 128 : k;
                       auto matrix = [&](std::int64_t of, std::int64_t to) { return empty({of, to}, {.dtype = DType::bf16, .device = d}); };
                       const Tensor a = matrix(m, k), b = along_k ? matrix(n, k).mT() : matrix(k, n);
                       return [=] { linalg::matmul(a, b, {.numerics = linalg::Numerics::blocks}); };
                     },
                     4096,
                     {64, 128}});
  // A group is a tile of the result, of 64 x 64. Small products are one tile, and k grows. Larger products, whose tiles are of 128 x 128, take the simulator
  // minutes.
  auto is_small = [](std::int64_t k) { return k < 1024; };
  auto rows = [=](std::int64_t k) { return is_small(k) ? 64 : k; };
  calls.push_back({"matmul 1024",
                   [=](std::int64_t k) { return static_cast<double>(rows(k) * rows(k) * k); },
                   [=](std::int64_t k) -> Call {
                     const Tensor a = make({rows(k), k}), b = make({k, rows(k)});
                     return [=] { linalg::matmul(a, b); };
                   },
                   1024,
                   {32, 64}});
  // A group is a matrix.
  calls.push_back({"matmul, 1024 of 64^3",
                   [](std::int64_t batch) { return static_cast<double>(batch); },
                   [=](std::int64_t batch) -> Call {
                     const Tensor a = make({batch, 64, 64}), b = make({batch, 64, 64});
                     return [=] { linalg::matmul(a, b); };
                   },
                   1024,
                   {2, 4}});
  return calls;
}

TEST(CountCalls, OfStatedShapes) {
  const Device& device = test_devices().front();
  ASSERT_TRUE(counted() || std::getenv("STUB_PLANS")) << "scripts/gpu-cost --calls sets one of them";
  for (const Stated& call : stated_calls(device)) {
    if (const char* only = std::getenv("GPU_COUNT_ONLY"); only && call.name.find(only) == std::string::npos) continue;
    for (const std::int64_t size : counted() ? call.small : std::vector<std::int64_t>{call.size}) {
      const Call run = call.prepare(size);
      synchronize(device);
      const Cost before = enqueued_cost();
      const char* label = counted() ? "GPU_COUNT_LABEL" : "STUB_LABEL";
      const auto text = [&](const Cost& cost) { return fmt::format("call/{}/{}/{}/{}", call.name, call.work(size), call.useful * cost.flops, cost.bytes); };
      setenv(label, text({}).c_str(), 1);
      EXPECT_NO_THROW((run(), synchronize(device))) << call.name;
      unsetenv(label);
      if (!counted()) fmt::print("cost\t{}\n", text(enqueued_cost() - before));
    }
  }
}

}}  // namespace clutch::testing
