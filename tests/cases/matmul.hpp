// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of matmul: what tests and benches share.
#include <clutch/ops/copy.hpp>
#include <clutch/ops/matmul.hpp>

#include "support/host_model.hpp"
#include "support/op_case.hpp"

#include <cmath>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

namespace clutch::cases {

struct MatmulCase {
  static constexpr std::string_view kStem = "matmul";
  static constexpr DType kDtypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16};

  static double flops(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) {
    return 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(batch);
  }

  /// One element: the chain that clutch/ops/matmul.hpp states; x(i) and y(i) are numbers of the row and the column.
  template <class R, class X, class Y>
  static R element(std::int64_t k, X x, Y y, R alpha, R beta, R before) {
    R sum = 0;
    for (std::int64_t i = 0; i < k; ++i) sum = std::fma(static_cast<R>(x(i)), static_cast<R>(y(i)), sum);
    sum = sum * alpha;
    return beta != 0 ? std::fma(beta, before, sum) : sum;
  }

  struct Shape {
    std::int64_t m, n, k, batch = 1;
    bool a_turned = false, b_turned = false;  ///< lie transposed
    bool b_shared = false;                    ///< one b for the whole batch
    double alpha = 1, beta = 0;
  };

  static Problem problem(std::string_view entry, DType dtype, const Shape& s, std::uint64_t seed, DType result) {
    Problem p{.name = std::string(name(dtype)), .entry = entry, .needs_fp64 = dtype == DType::f64, .is_helper = entry == "matmul_pack"};
    const std::int64_t of_b = s.b_shared ? 1 : s.batch;
    auto strides = [](std::int64_t rows, std::int64_t columns, bool turned) {
      return turned ? Dims{rows * columns, 1, rows} : Dims{rows * columns, columns, 1};
    };
    auto values = [&](std::int64_t count, DType type, std::uint64_t from) { return model::make_values(static_cast<std::size_t>(count), type, from, false); };
    p.inputs.push_back({dtype, {s.batch, s.m, s.k}, strides(s.m, s.k, s.a_turned), values(s.batch * s.m * s.k, dtype, seed)});
    p.inputs.push_back({dtype, {of_b, s.k, s.n}, strides(s.k, s.n, s.b_turned), values(of_b * s.k * s.n, dtype, seed + 1)});
    p.inputs.push_back({result, {s.batch, s.m, s.n}, {}, values(s.batch * s.m * s.n, result, seed + 2)});
    p.output = {result, {s.batch, s.m, s.n}, {}, p.inputs[2].raw};
    auto fill = [&]<class R>(R) {
      auto of = [&](std::size_t input, std::int64_t i) {
        return model::value_at(p.inputs[input].raw.data(), static_cast<std::size_t>(i), p.inputs[input].dtype);
      };
      for (std::int64_t b = 0; b < s.batch; ++b)
        for (std::int64_t i = 0; i < s.m; ++i)
          for (std::int64_t j = 0; j < s.n; ++j) {
            std::int64_t at = (b * s.m + i) * s.n + j, matrix = s.b_shared ? 0 : b;
            auto x = [&](std::int64_t l) { return of(0, (b * s.m + i) * s.k + l); };
            auto y = [&](std::int64_t l) { return of(1, (matrix * s.k + l) * s.n + j); };
            R r = element<R>(s.k, x, y, static_cast<R>(s.alpha), static_cast<R>(s.beta), static_cast<R>(of(2, at)));
            model::store_at(p.output.raw.data(), static_cast<std::size_t>(at), result, static_cast<double>(r));
          }
    };
    dtype == DType::f64 ? fill(double{}) : fill(float{});
    p.run = [s, entry, helper = p.is_helper](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      if (s.beta != 0) copy_(out, in[2], {}, stream);
      linalg::matmul_out(out, in[0], in[1], {.alpha = s.alpha, .beta = s.beta, .implementation = helper ? std::string_view() : entry}, stream);
    };
    return p;
  }

  static std::vector<Problem> problems(std::uint64_t seed) {
    std::vector<Problem> all;
    for (DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      all.push_back(problem("matmul_items", dtype, {.m = 7, .n = 13, .k = 11, .batch = 3, .b_turned = true, .alpha = 0.5, .beta = 2}, seed, dtype));
      all.push_back(problem("matmul_panels", dtype, {.m = 15, .n = 150, .k = 21, .batch = 2, .a_turned = true, .alpha = 0.5, .beta = 2}, seed + 1, dtype));
    }
    all.push_back(problem("matmul_pack", DType::f32, {.m = 9, .n = 140, .k = 70, .batch = 2, .b_turned = true}, seed + 2, DType::f32));
    all.push_back(problem("matmul_pack", DType::f16, {.m = 9, .n = 140, .k = 70, .batch = 2, .b_shared = true}, seed + 3, DType::f32));
    return all;
  }

  static constexpr Mutation kMutations[] = {
      {"matmul_items", Edit::tail, "j < k; ++j", "j + 1 < k; ++j"},
      {"matmul_items", Edit::stride, "column * b_n", "column / 2 * b_n"},
      {"matmul_items", Edit::offset, "a + a_offset", "a"},
      {"matmul_items", Edit::arithmetic, "sum = sum * alpha", "sum = sum + alpha"},
      {"matmul_panels", Edit::tail, "(ulong)v * LANES + l < columns", "(ulong)v * LANES + l + 1 < columns"},
      {"matmul_panels", Edit::stride, "(long)p * b_panel", "(long)(p / 2) * b_panel"},
      {"matmul_panels", Edit::offset, "from[r] = a + (long)min((ulong)r, rows - 1) * a_row", "from[r] = a + (long)min((ulong)r / 2, rows - 1) * a_row"},
      {"matmul_panels", Edit::arithmetic, "sum[r][v] = FMA(y, x[v], sum[r][v])", "sum[r][v] = FMA(y, x[v], x[v])"},
      {"matmul_pack", Edit::tail, "rows = min((ulong)PACK_ROWS, k - first)", "rows = min((ulong)PACK_ROWS, k - first - 1)"},
      {"matmul_pack", Edit::stride, "(long)r * b_k + (long)c * b_n", "(long)r * b_k + (long)(c / 2) * b_n"},
      {"matmul_pack", Edit::offset, "(long)of * b_batch + (long)first * b_k", "(long)of * b_batch"},
      {"matmul_pack", Edit::arithmetic, "(ACC)LOAD_T(b, from", "-(ACC)LOAD_T(b, from"},
  };
};

}  // namespace clutch::cases
