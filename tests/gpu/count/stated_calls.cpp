// SPDX-License-Identifier: Apache-2.0
#include "gpu/count/stated_calls.hpp"

#include "support/fixture.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace clutch::testing {

using Call = std::function<void()>;

bool counted() { return std::getenv("GPU_COUNT_FILE") != nullptr; }

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
  calls.push_back({"SGD 2^24",
                   one,
                   [=](std::int64_t n) -> Call {
                     const std::vector<Tensor> p{make({n})}, g{make({n})};
                     const auto sgd = std::make_shared<optim::SGD>(p, optim::SGDOptions{.momentum = 0.9});
                     if (counted()) sgd->step(g);
                     return [=] { sgd->step(g); };
                   },
                   1 << 24,
                   {1 << 17, 1 << 18}});
  // Broadcasts and views: a row, or a matrix, takes the same at each number of them.
  auto bias_of = [=](std::int64_t width) {
    return [=](std::int64_t rows) -> Call {
      const Tensor x = make({rows, width}), bias = make({width}), out = make({rows, width});
      return [=] { add_out(out, x, bias); };
    };
  };
  calls.push_back({"add of a bias, 2^18 rows of 64", one, bias_of(64), 1 << 18, {1024, 2048}});
  calls.push_back({"add of a bias, 16384 rows of 1024", one, bias_of(1024), 16384, {64, 128}});
  calls.push_back({"add of a column, 16384 rows of 1024",
                   one,
                   [=](std::int64_t rows) -> Call {
                     const Tensor x = make({rows, 1024}), column = make({rows, 1}), out = make({rows, 1024});
                     return [=] { add_out(out, x, column); };
                   },
                   16384,
                   {64, 128}});
  calls.push_back({"add of transposed matrices, 64 of 512 x 512",
                   one,
                   [=](std::int64_t batch) -> Call {
                     const Tensor x = make({batch, 512, 512}), out = make({batch, 512, 512});
                     return [=] { add_out(out, x, x.mT()); };
                   },
                   64,
                   {1, 2}});
  calls.push_back({"copy of heads, 64 x 1024 x 12 x 64",
                   one,
                   [=](std::int64_t batch) -> Call {
                     const Tensor x = make({batch, 1024, 12, 64}), out = make({batch, 12, 1024, 64});
                     return [=] { copy_(out, x.transpose(1, 2)); };
                   },
                   64,
                   {1, 2}});
  calls.push_back({"copy of transposed matrices, 64 of 512 x 512",
                   one,
                   [=](std::int64_t batch) -> Call {
                     const Tensor x = make({batch, 512, 512}), out = make({batch, 512, 512});
                     return [=] { copy_(out, x.mT()); };
                   },
                   64,
                   {1, 2}});
  calls.push_back({"copy of columns, 16384 rows of 1000 of 1024",
                   one,
                   [=](std::int64_t rows) -> Call {
                     const Tensor x = make({rows, 1024}), out = make({rows, 1000});
                     return [=] { copy_(out, x.slice(1, 8, 1008)); };
                   },
                   16384,
                   {64, 128}});
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
  calls.push_back({"layer_norm_backward, 16384 x 1024",
                   one,
                   [=](std::int64_t rows) -> Call {
                     const Tensor x = make({rows, 1024}), weight = make({1024}), of_rows = make({rows, 1});
                     return [=] { nn::layer_norm_backward(x, x, of_rows, of_rows, weight); };
                   },
                   16384,
                   {256, 512}});
  calls.push_back({"rms_norm of bf16, 16384 x 1024",
                   one,
                   [=](std::int64_t rows) -> Call {
                     const Tensor x = zeros({rows, 1024}, {.dtype = DType::bf16, .device = d}), weight = zeros({1024}, {.dtype = DType::bf16, .device = d});
                     return [=] { nn::rms_norm(x, weight); };
                   },
                   16384,
                   {32, 64}});
  calls.push_back({"cross_entropy, 4096 x 32000",
                   one,
                   [=](std::int64_t rows) -> Call {
                     const Tensor x = make({rows, 32000}), target = zeros({rows}, {.dtype = DType::i64, .device = d});
                     return [=] { nn::cross_entropy(x, target, {.reduction = nn::Reduction::none}); };
                   },
                   4096,
                   {2, 4}});
  calls.push_back({"softmax, 2^20 rows of 8",
                   one,
                   [=](std::int64_t rows) -> Call {
                     const Tensor x = make({rows, 8});
                     return [=] { nn::softmax(x); };
                   },
                   1 << 20,
                   {4096, 8192}});
  calls.push_back({"softmax over 21 channels, 256 images of 64 x 64",
                   one,
                   [=](std::int64_t images) -> Call {
                     const Tensor x = make({images, 21, 64, 64});
                     return [=] { nn::softmax(x, 1); };
                   },
                   256,
                   {1, 2}});
  // Statistics of a batch norm.
  calls.push_back({"sum of each of 64 channels, 128 images of 56 x 56",
                   one,
                   [=](std::int64_t images) -> Call {
                     const Tensor x = make({images, 64, 56, 56});
                     return [=] { sum(x, {.dims = {0, 2, 3}}); };
                   },
                   128,
                   {1, 2}});
  calls.push_back({"cumsum, 16384 rows of 1024",
                   one,
                   [=](std::int64_t rows) -> Call {
                     const Tensor x = make({rows, 1024});
                     return [=] { cumsum(x, 1); };
                   },
                   16384,
                   {32, 64}});
  // Numbers in a fixed pattern, from -1/2 to 1/2, as random ones spread.
  auto numbers = [d](const Dims& sizes) {
    std::vector<float> v(static_cast<std::size_t>(numel(sizes)));
    std::uint64_t state = 1;
    for (float& x : v) x = static_cast<float>((state = state * 6364136223846793005u + 1442695040888963407u) >> 40) * 0x1p-24f - 0.5f;
    return from_host(v, sizes, d);
  };
  auto below = [d](std::int64_t n, std::int32_t limit) {
    std::vector<std::int32_t> v(static_cast<std::size_t>(n));
    std::uint64_t state = 1;
    for (std::int32_t& x : v)
      x = static_cast<std::int32_t>(((state = state * 6364136223846793005u + 1442695040888963407u) >> 40) % static_cast<std::uint64_t>(limit));
    return from_host(v, {n}, d);
  };
  calls.push_back({"sort, 16384 rows of 1024",
                   one,
                   [=](std::int64_t rows) -> Call {
                     const Tensor x = counted() ? numbers({rows, 1024}) : make({rows, 1024});
                     return [=] { sort(x); };
                   },
                   16384,
                   {4, 8}});
  // Lists, casts, functions of many instructions, and reductions along other dimensions than the last.
  calls.push_back({"cat of two, 16384 rows of 512",
                   one,
                   [=](std::int64_t rows) -> Call {
                     const std::vector<Tensor> parts{make({rows, 512}), make({rows, 512})};
                     return [=] { cat(parts, 1); };
                   },
                   16384,
                   {64, 128}});
  calls.push_back({"cast to bf16, 2^24",
                   one,
                   [=](std::int64_t n) -> Call {
                     const Tensor x = make({n});
                     return [=] { cast(x, DType::bf16); };
                   },
                   1 << 24,
                   {1 << 17, 1 << 18}});
  calls.push_back({"gelu 2^24",
                   one,
                   [=](std::int64_t n) -> Call {
                     const Tensor x = make({n});
                     return [=] { gelu(x); };
                   },
                   1 << 24,
                   {1 << 17, 1 << 18}});
  calls.push_back({"causal mask, 64 of 512 x 512",
                   one,
                   [=](std::int64_t batch) -> Call {
                     const Tensor x = make({batch, 512, 512});
                     return [=] { map([](Expr e) { return select(position(1) >= position(2), e, Expr(-1)); }, {x}); };
                   },
                   64,
                   {1, 2}});
  calls.push_back({"sum over 1024 rows, 16384 columns",
                   one,
                   [=](std::int64_t columns) -> Call {
                     const Tensor x = make({1024, columns});
                     return [=] { sum(x, {.dims = {0}}); };
                   },
                   16384,
                   {128, 256}});
  calls.push_back({"argmax, 16384 rows of 1024",
                   one,
                   [=](std::int64_t rows) -> Call {
                     const Tensor x = make({rows, 1024});
                     return [=] { argmax(x, {.dims = {1}}); };
                   },
                   16384,
                   {32, 64}});
  calls.push_back({"topk 8, 16384 rows of 1024",
                   one,
                   [=](std::int64_t rows) -> Call {
                     const Tensor x = counted() ? numbers({rows, 1024}) : make({rows, 1024});
                     return [=] { topk(x, 8); };
                   },
                   16384,
                   {4, 8}});
  calls.push_back({"cumsum over 1024 rows, 16384 columns",
                   one,
                   [=](std::int64_t columns) -> Call {
                     const Tensor x = make({1024, columns});
                     return [=] { cumsum(x, 0); };
                   },
                   16384,
                   {128, 256}});
  calls.push_back({"index_select of 2^16 rows of 768",
                   one,
                   [=](std::int64_t rows) -> Call {
                     const Tensor table = make({50000, 768}), index = below(rows, 50000);
                     return [=] { index_select(table, 0, index); };
                   },
                   1 << 16,
                   {128, 256}});
  calls.push_back({"embedding_backward of 2^14 rows of 768",
                   one,
                   [=](std::int64_t rows) -> Call {
                     const Tensor grad = make({rows, 768}), index = below(rows, 5000);
                     return [=] { nn::embedding_backward(grad, index, 5000); };
                   },
                   1 << 14,
                   {256, 512}});
  calls.push_back({"index of 2^22 elements",
                   one,
                   [=](std::int64_t n) -> Call {
                     const Tensor x = make({1000, 1000}), row = below(n, 1000), column = below(n, 999);
                     return [=] { index(x, {row, column}); };
                   },
                   1 << 22,
                   {1 << 12, 1 << 13}});
  calls.push_back({"nonzero 2^24",
                   one,
                   [=](std::int64_t n) -> Call {
                     const Tensor x = make({n});
                     return [=] { nonzero_static(x, 1024); };
                   },
                   1 << 24,
                   {1 << 17, 1 << 18}});
  // Groups of one digit, so that entries move once.
  calls.push_back({"group_by, 2^20 of 100",
                   one,
                   [=](std::int64_t n) -> Call {
                     const Tensor ids = below(n, 100);
                     return [=] { group_by(ids, 100); };
                   },
                   1 << 20,
                   {1 << 13, 1 << 14}});
  // Rows so long that panels of them fill the device.
  calls.push_back(
      {"scatter_reduce, 1024 rows of 16384 to 100",
       one,
       [=](std::int64_t features) -> Call {
         const Tensor index = below(1024, 100).reshape({1024, 1}).expand({1024, features}), src = make({1024, features}), out = make({100, features});
         return [=] { scatter_reduce_(out, 0, index, src); };
       },
       16384,
       {128, 256}});
  // Matrices whose iterations are those of random ones.
  auto symmetric = [=](std::int64_t batch, std::int64_t n) {
    if (!counted()) return make({batch, n, n});
    const Tensor half = numbers({batch, n, n});
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
  calls.push_back({"segment_reduce, 16384 segments of 64 rows of 64",
                   one,
                   [=](std::int64_t segments) -> Call {
                     const Tensor offsets = arange(0, static_cast<double>(64 * segments + 1), 64, {.dtype = DType::i32, .device = d});
                     const Tensor data = make({64 * segments, 64});
                     return [=] { segment_reduce(data, offsets); };
                   },
                   16384,
                   {32, 64}});
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
  auto heads = [](std::int64_t length) { return length > 1024 ? 16 : 1; };
  auto of_blocks = [=](std::int64_t length) {
    const std::int64_t rows = length / 128;
    const std::int64_t blocks = heads(length) * rows * (rows + 1) / 2;
    return static_cast<double>(blocks);
  };
  auto causal = [d](std::int64_t length) { return attention::create_block_mask(attention::causal(), {.q_len = length, .kv_len = length, .device = d}); };
  calls.push_back({"flex causal, 16 x 4096 x 64",
                   of_blocks,
                   [=](std::int64_t length) -> Call {
                     const Tensor q = make({1, heads(length), length, 64});
                     const attention::FlexOptions options{.block_mask = causal(length)};
                     return [=] { attention::flex(q, q, q, options); };
                   },
                   4096,
                   {256, 512},
                   4097.0 / (2 * 4096)});
  calls.push_back({"flex_backward causal, 16 x 4096 x 64",
                   of_blocks,
                   [=](std::int64_t length) -> Call {
                     const Tensor q = make({1, heads(length), length, 64}), lse = zeros({1, heads(length), length}, {.device = d});
                     const attention::FlexOptions options{.block_mask = causal(length)};
                     return [=] { attention::flex_backward(q, q, q, q, {.out = q, .lse = lse}, options); };
                   },
                   4096,
                   {256, 512},
                   4097.0 / (2 * 4096)});
  // The same by matrix instructions. Tiles have at most 128 queries.
  for (const std::int64_t e : {64, 128})
    calls.push_back({fmt::format("flex causal of bf16 by matrix instructions, 16 x 4096 x {}", e),
                     of_blocks,
                     [=](std::int64_t length) -> Call {
                       const Tensor q = empty({1, heads(length), length, e}, {.dtype = DType::bf16, .device = d});
                       const attention::FlexOptions options{.block_mask = causal(length), .numerics = linalg::Numerics::blocks};
                       return [=] { attention::flex(q, q, q, options); };
                     },
                     4096,
                     {128, 256},
                     4097.0 / (2 * 4096)});
  // Their gradients. Of the algorithm's operations, 5 products to forward's 2, the useful ones.
  for (const std::int64_t e : {64, 128})
    calls.push_back({fmt::format("flex_backward causal of bf16 by matrix instructions, 16 x 4096 x {}", e),
                     of_blocks,
                     [=](std::int64_t length) -> Call {
                       const Tensor q = empty({1, heads(length), length, e}, {.dtype = DType::bf16, .device = d});
                       // Sums of rows are made again where lse is large, as it is not here.
                       const Tensor lse = zeros({1, heads(length), length}, {.device = d});
                       const attention::FlexOptions options{.block_mask = causal(length), .numerics = linalg::Numerics::blocks};
                       return [=] { attention::flex_backward(q, q, q, q, {.out = q, .lse = lse}, options); };
                     },
                     4096,
                     {128, 256},
                     4097.0 / (2 * 4096)});
  // One query of each head. Parts of the keys are of a fixed length.
  calls.push_back({"flex decode, 8 heads, 65536 keys of 64",
                   one,
                   [=](std::int64_t length) -> Call {
                     const Tensor q = make({1, 8, 1, 64}), k = make({1, 8, length, 64});
                     return [=] { attention::flex(q, k, k); };
                   },
                   65536,
                   {1024, 2048}});
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
  auto of_tile = [](std::int64_t k) { return static_cast<double>((k < 4096 ? 128 * 128 : k * k) * k); };
  calls.push_back({"matmul 4096",
                   of_tile,
                   [=](std::int64_t k) -> Call {
                     const std::int64_t n = k < 4096 ? 128 : k;
                     const Tensor a = make({n, k}), b = make({k, n});
                     return [=] { linalg::matmul(a, b); };
                   },
                   4096,
                   {32, 64}});
  // A is sparse.
  calls.push_back({"sparse24 product 4096",
                   of_tile,
                   [=](std::int64_t k) -> Call {
                     const std::int64_t n = k < 4096 ? 128 : k;
                     const sparse::SemiStructured a = sparse::compress(make({n, k}));
                     const Tensor b = make({k, n});
                     return [=] { sparse::matmul(a, b); };
                   },
                   4096,
                   {32, 64}});
  // 16 tokens through a layer, whose weight is read once.
  calls.push_back({"linear of 16 tokens, 4096 x 4096",
                   [](std::int64_t k) { return static_cast<double>((k < 4096 ? 64 : k) * k); },
                   [=](std::int64_t k) -> Call {
                     const Tensor x = make({16, k}), weight = make({k < 4096 ? 64 : k, k});
                     return [=] { linalg::linear(x, weight); };
                   },
                   4096,
                   {512, 1024}});
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

}  // namespace clutch::testing
