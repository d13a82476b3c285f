// SPDX-License-Identifier: Apache-2.0
// Products whose rows are of all ranks, beside the library's collectives and products.
#include "dist/ranks.hpp"

#include <clutch/dist/matmul.hpp>

#include <random>

namespace clutch::testing { namespace {

using namespace dist;

const std::vector<int> kRanks{1, 2, 3, 4};

Tensor numbers(const Dims& sizes, DType dtype, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> number;
  std::vector<float> values(static_cast<std::size_t>(numel(sizes)));
  for (float& x : values) x = number(random);
  return from_host(values, sizes).to(dtype);
}

struct Shape {
  std::int64_t m, k, columns;
};
const std::vector<Shape> kShapes{{1, 40, 33}, {5, 17, 9}, {48, 64, 80}};

TEST(AllGatherMatmul, HasTheBitsOfAGatherAndAProduct) {
  for_ranks_of_a_host(kRanks, [](const Group& g) {
    unsigned seed = 0;
    for (const DType dtype :
         level() == "smoke" ? std::vector{DType::f32, DType::bf16} : std::vector{DType::f32, DType::f64, DType::bf16, DType::i8, DType::c64})
      for (const auto& [m, k, columns] : kShapes) {
        SCOPED_TRACE(std::string(name(dtype)) + " " + std::to_string(m) + " rows");
        const DType result = dtype == DType::i8 ? DType::i32 : dtype;
        const Symmetric memory({m + 1, k}, g, {.dtype = dtype});
        const Tensor a = memory.local().slice(0, 1, m + 1), b = numbers({columns, k}, dtype, ++seed).mT();
        copy_(a, numbers({m, k}, dtype, 100 * ++seed + static_cast<unsigned>(g.rank())));
        const Tensor gathered = empty({g.size() * m, k}, {.dtype = dtype});
        g.all_gather_out(gathered, a);
        const std::vector<std::uint8_t> wanted = linalg::matmul(gathered, b).to_bytes();
        for (const Algorithm algorithm : {Algorithm::kernel, Algorithm::direct}) {
          const Tensor out = zeros({g.size() * m, columns}, {.dtype = result});
          const Work work = all_gather_matmul(out, a, b, g, {.async = algorithm == Algorithm::kernel && m == 5, .algorithm = algorithm});
          work.wait();
          EXPECT_EQ(out.to_bytes(), wanted);
          work.synchronize();
        }
      }
  });
}

TEST(AllGatherMatmul, RowsMayChangeBehindTheCall) {
  for_ranks_of_a_host({2, 3}, [](const Group& g) {
    const std::int64_t m = 20, k = 30;
    const Symmetric memory({m, k}, g);
    const Tensor b = numbers({k, 24}, DType::f32, 5), out = empty({g.size() * m, 24}), gathered = empty({g.size() * m, k});
    fill_(memory.local(), g.rank());
    for (int i = 0; i < 10; ++i) {
      all_gather_matmul(out, memory.local(), b, g);
      add_(memory.local(), 1);
      std::vector<float> rows;
      for (int r = 0; r < g.size(); ++r) rows.insert(rows.end(), static_cast<std::size_t>(m * k), static_cast<float>(r + i));
      ASSERT_EQ(out.to_bytes(), linalg::matmul(from_host(rows, {g.size() * m, k}), b).to_bytes()) << "call " << i;
    }
    g.barrier().synchronize();
  });
}

TEST(MatmulReduceScatter, HasTheBitsOfAProductAndAReduceScatter) {
  for_ranks_of_a_host(kRanks, [](const Group& g) {
    const int n = g.size();
    unsigned seed = 0;
    for (const DType dtype : level() == "smoke" ? std::vector{DType::f32, DType::bf16} : std::vector{DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const auto& [m, k, columns] : kShapes)
        for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg}) {
          SCOPED_TRACE(std::string(name(dtype)) + " " + std::to_string(m) + " rows " + std::string(name(op)));
          const Symmetric memory({n * m + 1, columns}, g, {.dtype = dtype});
          const Tensor scratch = memory.local().slice(0, 1, n * m + 1);
          const Tensor a = numbers({n * m, k}, dtype, 100 * ++seed + static_cast<unsigned>(g.rank())),
                       b = numbers({k, columns}, dtype, 100 * ++seed + static_cast<unsigned>(g.rank()));
          const Tensor wanted = empty({m, columns}, {.dtype = dtype}), out = zeros({m, columns}, {.dtype = dtype});
          g.reduce_scatter_out(wanted, linalg::matmul(a, b), {.op = op});
          for (const Algorithm algorithm : {Algorithm::kernel, Algorithm::direct}) {
            fill_(out, 0);
            matmul_reduce_scatter(out, a, b, scratch, g, {.op = op, .algorithm = algorithm}).synchronize();
            EXPECT_EQ(out.to_bytes(), wanted.to_bytes());
          }
        }
  });
}

TEST(MatmulReduceScatter, WhatDoesNotFitIsRefused) {
  for_ranks_of_a_host({2}, [](const Group& g) {
    if (g.size() == 1) return;
    const std::int64_t n = g.size();
    const Symmetric memory({n * 4, 6}, g);
    const Tensor scratch = memory.local(), a = zeros({n * 4, 3}), b = zeros({3, 6}), out = empty({4, 6});
    auto code = [&](auto&& f) { return code_of(f); };
    EXPECT_EQ(code([&] { matmul_reduce_scatter(out, a, b, scratch, Group()); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code([&] { matmul_reduce_scatter(out, a, b, scratch, g, {.op = ReduceOp::bor}); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code([&] { matmul_reduce_scatter(out, a, b, scratch, g, {.async = true}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code([&] { matmul_reduce_scatter(out, a, b, empty({n * 4, 6}), g, {.algorithm = Algorithm::kernel}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code([&] { matmul_reduce_scatter(out, a, b, scratch.slice(0, 0, 4), g); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code([&] { matmul_reduce_scatter(out, zeros({n * 4 + 1, 3}), b, scratch, g); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code([&] { matmul_reduce_scatter(out, a.to(DType::f64), b, scratch, g); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code([&] { matmul_reduce_scatter(out.to(DType::f64), a, b, scratch, g); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code([&] { matmul_reduce_scatter(scratch.slice(0, 0, 4), a, b, scratch, g); }), ErrorCode::invalid_overlap);
    const Symmetric rows({4, 3}, g);
    const Tensor product = empty({n * 4, 6});
    EXPECT_EQ(code([&] { all_gather_matmul(product, rows.local(), b, Group()); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code([&] { all_gather_matmul(product, zeros({4, 3}), b, g, {.algorithm = Algorithm::kernel}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code([&] { all_gather_matmul(out, rows.local(), b, g); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code([&] { all_gather_matmul(product, rows.local(), zeros({4, 6}), g); }), ErrorCode::invalid_shape);
    EXPECT_FALSE(g.failed());
    all_gather_matmul(product, rows.local(), b, g).synchronize();
    g.barrier().synchronize();
  });
}

}}  // namespace clutch::testing
