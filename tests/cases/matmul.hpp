// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of matmul: what tests and benches share.
#include <clutch/ops/copy.hpp>
#include <clutch/ops/matmul.hpp>
#include <clutch/ops/sparse24.hpp>

#include "support/host_model.hpp"
#include "support/op_case.hpp"

#include <algorithm>
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
    bool a_transposed = false, b_transposed = false;  ///< stored transposed
    bool b_shared = false;                            ///< one b for the whole batch
    double alpha = 1, beta = 0;
    bool epilogue = false;  ///< max((x + column's bias) * row's scale, 0)
    bool packed = false;    ///< b as a PackedMatrix
    bool aligned = false;   ///< operands begin at addresses where quads may be loaded and stored
  };

  static bool is_byte(DType d) { return d == DType::i8 || d == DType::u8; }

  /// The result's elements from inputs a, b, what was there before, bias and scale.
  static void fill(const Shape& s, Problem& p) {
    const DType of_a = p.inputs[0].dtype;
    auto of = [&](std::size_t input, std::int64_t i) {
      return model::value_at(p.inputs[input].raw.data(), static_cast<std::size_t>(i), p.inputs[input].dtype);
    };
    auto each = [&]<class R>(R) {
      for (std::int64_t b = 0; b < s.batch; ++b)
        for (std::int64_t i = 0; i < s.m; ++i)
          for (std::int64_t j = 0; j < s.n; ++j) {
            std::int64_t at = (b * s.m + i) * s.n + j, matrix = s.b_shared ? 0 : b;
            auto x = [&](std::int64_t l) { return of(0, (b * s.m + i) * s.k + l); };
            auto y = [&](std::int64_t l) { return of(1, (matrix * s.k + l) * s.n + j); };
            R r;
            if constexpr (std::is_integral_v<R>) {
              std::uint32_t sum = 0;
              for (std::int64_t l = 0; l < s.k; ++l) sum += static_cast<std::uint32_t>(static_cast<std::int32_t>(x(l)) * static_cast<std::int32_t>(y(l)));
              sum = sum * static_cast<std::uint32_t>(static_cast<std::int32_t>(s.alpha));
              sum += static_cast<std::uint32_t>(static_cast<std::int32_t>(s.beta)) * static_cast<std::uint32_t>(static_cast<std::int32_t>(of(2, at)));
              r = static_cast<R>(sum);
            } else {
              r = element<R>(s.k, x, y, static_cast<R>(s.alpha), static_cast<R>(s.beta), static_cast<R>(of(2, at)));
            }
            double stored = static_cast<double>(r);
            if (s.epilogue) {
              using F = std::conditional_t<std::is_same_v<R, double>, double, float>;
              F sum = static_cast<F>(r) + static_cast<F>(of(3, j));
              stored = static_cast<double>(std::max(sum * static_cast<F>(of(4, i)), F{0}));
            }
            model::store_at(p.output.raw.data(), static_cast<std::size_t>(at), p.output.dtype, stored);
          }
    };
    is_byte(of_a) ? each(std::int32_t{}) : of_a == DType::f64 ? each(double{}) : each(float{});
  }

  static Expr epilogue(const Expr& x, const Expr& bias, const Expr& scale) {
    Expr number = x.dtype() == DType::i32 ? cast(x, DType::f32) : x;
    return relu((number + bias) * scale);
  }

  static Problem problem(std::string_view entry, DType of_a, DType of_b, const Shape& s, std::uint64_t seed, DType result) {
    const bool dot = entry.starts_with("matmul_dot"), helper = entry == "matmul_pack" || dot;
    Problem p{.name = std::string(name(of_a)),
              .entry = entry,
              .needs_fp64 = of_a == DType::f64,
              .is_helper = helper,
              .by_matrix_instructions = entry.ends_with("_matrix")};
    const std::int64_t matrices = s.b_shared ? 1 : s.batch;
    auto strides = [](std::int64_t rows, std::int64_t columns, bool transposed) {
      return transposed ? Dims{rows * columns, 1, rows} : Dims{rows * columns, columns, 1};
    };
    // Sums of whole numbers are exact in any order.
    const bool matrix = entry.ends_with("_matrix");
    auto values = [&](std::int64_t count, DType type, std::uint64_t from) {
      std::vector<std::uint8_t> raw = model::make_values(static_cast<std::size_t>(count), type, from, is_byte(type));
      for (std::int64_t i = 0; i < count && matrix && !is_byte(type); ++i) {
        const auto at = static_cast<std::size_t>(i);
        model::store_at(raw.data(), at, type, std::clamp(std::round(model::value_at(raw.data(), at, type)), -4.0, 4.0));
      }
      return raw;
    };
    // What the epilogue reads is not whole, so that no result is a zero, whose sign relu() leaves open.
    const DType beside = of_a == DType::f64 ? DType::f64 : DType::f32;
    auto beside_values = [&](std::int64_t count, std::uint64_t from) { return model::make_values(static_cast<std::size_t>(count), beside, from, false); };
    p.inputs.push_back({of_a, {s.batch, s.m, s.k}, strides(s.m, s.k, s.a_transposed), values(s.batch * s.m * s.k, of_a, seed)});
    p.inputs.push_back({of_b, {matrices, s.k, s.n}, strides(s.k, s.n, s.b_transposed), values(matrices * s.k * s.n, of_b, seed + 1)});
    p.inputs.push_back({result, {s.batch, s.m, s.n}, {}, values(s.batch * s.m * s.n, result, seed + 2)});
    p.inputs.push_back({beside, {s.n}, {}, beside_values(s.n, seed + 3)});
    p.inputs.push_back({beside, {s.m, 1}, {}, beside_values(s.m, seed + 4)});
    p.output = {result, {s.batch, s.m, s.n}, {}, p.inputs[2].raw};
    if (s.aligned) p.inputs[0].lead = p.inputs[1].lead = p.output.lead = 64;
    const bool is_sparse = entry.starts_with("matmul_sparse");
    if (is_sparse) prune(p.inputs[0], s.k);
    fill(s, p);
    if (is_sparse) {
      // The left one is 2:4.
      p.run = [s, entry, matrix](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
        if (s.beta != 0) copy_(out, in[2], {}, stream);
        const sparse::SemiStructured w = sparse::compress(in[0].select(0, 0), {}, stream);
        const linalg::MatmulOptions options{
            .alpha = s.alpha, .beta = s.beta, .implementation = std::string(entry), .numerics = matrix ? linalg::Numerics::tf32 : linalg::Numerics::chain};
        const Tensor more[] = {in[3], in[4]};
        ExprFunction f;
        if (s.epilogue) f = clutch::detail::trace_epilogue<2>(epilogue, in[0], in[1], more);
        sparse::matmul_out(out, w, in[1], f, s.epilogue ? std::span(more) : std::span<const Tensor>(), options, stream);
      };
      return p;
    }
    const std::string_view forced = dot ? std::string_view("matmul_dot") : helper || s.packed ? std::string_view() : entry;
    p.run = [s, forced, matrix](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      if (s.beta != 0) copy_(out, in[2], {}, stream);
      const linalg::MatmulOptions options{
          .alpha = s.alpha, .beta = s.beta, .implementation = std::string(forced), .numerics = matrix ? linalg::Numerics::tf32 : linalg::Numerics::chain};
      linalg::PackedMatrix packed;
      if (s.packed) packed = linalg::PackedMatrix(in[1], stream);
      const linalg::MatrixOperand b = s.packed ? linalg::MatrixOperand(packed) : linalg::MatrixOperand(in[1]);
      if (!s.epilogue) return linalg::matmul_out(out, in[0], b, options, stream);
      const Tensor more[] = {in[3], in[4]};
      linalg::matmul_out(out, in[0], b, clutch::detail::trace_epilogue<2>(epilogue, in[0], b, more), more, options, stream);
    };
    return p;
  }

  /// Keeps two of each four along rows of k, from row to row others.
  static void prune(Operand& a, std::int64_t k) {
    for (std::int64_t i = 0; i < numel(a.sizes); ++i) {
      const std::int64_t at = i % k % 4, first = i / k % 3;
      if (at == first || at == first + 1) model::store_at(a.raw.data(), static_cast<std::size_t>(i), a.dtype, 0);
    }
  }

  static std::vector<Problem> problems(std::uint64_t seed) {
    std::vector<Problem> all;
    for (DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      all.push_back(problem("matmul_items", dtype, dtype, {.m = 7, .n = 13, .k = 11, .batch = 3, .b_transposed = true, .alpha = 0.5, .beta = 2}, seed, dtype));
      // b as it lies, and brought into private memory by items.
      all.push_back(
          problem("matmul_panels", dtype, dtype, {.m = 15, .n = 128, .k = 21, .batch = 2, .a_transposed = true, .alpha = 0.5, .beta = 2}, seed + 1, dtype));
      all.push_back(
          problem("matmul_panels", dtype, dtype, {.m = 15, .n = 150, .k = 300, .b_transposed = dtype == DType::f32, .epilogue = true}, seed + 2, dtype));
      // Last vectors that are not whole: b as it lies, packed by items, read across; and rows of less than a vector.
      all.push_back(problem("matmul_panels", dtype, dtype, {.m = 5, .n = 77, .k = 9}, seed + 28, dtype));
      all.push_back(problem("matmul_panels", dtype, dtype, {.m = 9, .n = 85, .k = 20, .b_transposed = true}, seed + 29, dtype));
      all.push_back(problem("matmul_panels", dtype, dtype, {.m = 3, .n = 37, .k = 31, .batch = 2, .b_transposed = true}, seed + 30, dtype));
      all.push_back(problem("matmul_panels", dtype, dtype, {.m = 2, .n = 40, .k = 7, .b_transposed = true}, seed + 31, dtype));
      all.push_back(problem("matmul_panels", dtype, dtype, {.m = 9, .n = 3, .k = 6}, seed + 32, dtype));
    }
    // Pairs along k in words, and what is left of whole vectors and of less.
    all.push_back(problem("matmul_panels", DType::bf16, DType::bf16, {.m = 2, .n = 37, .k = 85, .batch = 2, .b_transposed = true}, seed + 34, DType::bf16));
    // Few rows and few columns, along k and across; whole blocks and what is left.
    all.push_back(
        problem("matmul_few", DType::f32, DType::f32, {.m = 5, .n = 40, .k = 134, .b_transposed = true, .alpha = 0.5, .beta = 2}, seed + 20, DType::f32));
    all.push_back(problem("matmul_few", DType::bf16, DType::bf16, {.m = 9, .n = 33, .k = 130, .epilogue = true}, seed + 21, DType::bf16));
    all.push_back(problem("matmul_few", DType::f32, DType::f32, {.m = 40, .n = 3, .k = 133, .alpha = 0.5, .beta = 2}, seed + 22, DType::f32));
    for (DType dtype : {DType::f32, DType::bf16}) {
      all.push_back(problem("matmul_sparse_items", dtype, dtype, {.m = 7, .n = 13, .k = 11, .b_transposed = true, .alpha = 0.5, .beta = 2}, seed + 12, dtype));
      all.push_back(problem("matmul_sparse_panels", dtype, dtype, {.m = 110, .n = 140, .k = 150, .epilogue = true}, seed + 13, dtype));
      all.push_back(
          problem("matmul_sparse_panels", dtype, dtype, {.m = 15, .n = 70, .k = 37, .b_transposed = true, .alpha = 0.5, .beta = 2}, seed + 14, dtype));
      all.push_back(problem("matmul_sparse_tiles", dtype, dtype, {.m = 70, .n = 67, .k = 34, .b_transposed = true, .alpha = 0.5, .beta = 2}, seed + 16, dtype));
      all.push_back(problem("matmul_sparse_tiles", dtype, dtype, {.m = 37, .n = 68, .k = 45, .epilogue = true, .aligned = true}, seed + 25, dtype));
      all.push_back(problem("matmul_sparse_rows", dtype, dtype, {.m = 37, .n = 3, .k = 22, .b_transposed = true, .alpha = 0.5, .beta = 2}, seed + 15, dtype));
    }
    for (DType dtype : {DType::f32, DType::f64})
      all.push_back(problem("matmul_lanes", dtype, dtype, {.m = 5, .n = 7, .k = 6, .batch = 37, .alpha = 0.5, .beta = 2}, seed + 11, dtype));
    for (DType dtype : {DType::f32, DType::bf16}) {
      all.push_back(
          problem("matmul_tiles", dtype, dtype, {.m = 70, .n = 67, .k = 37, .batch = 2, .a_transposed = true, .alpha = 0.5, .beta = 2}, seed + 6, dtype));
      all.push_back(
          problem("matmul_tiles", dtype, dtype, {.m = 9, .n = 130, .k = 32, .b_transposed = true, .epilogue = true, .aligned = true}, seed + 7, dtype));
      // Tiles of 128 x 128, and their edges, on devices of few compute units.
      all.push_back(problem("matmul_tiles", dtype, dtype, {.m = 99, .n = 250, .k = 35, .alpha = 0.5, .beta = 2}, seed + 19, dtype));
      // Quads along k and across, at addresses that allow one access for each, and at others.
      all.push_back(problem("matmul_tiles", dtype, dtype, {.m = 100, .n = 248, .k = 36, .alpha = 0.5, .beta = 2, .aligned = true}, seed + 23, dtype));
      all.push_back(
          problem("matmul_tiles", dtype, dtype,
                  {.m = 36, .n = 68, .k = 28, .batch = 2, .a_transposed = true, .b_transposed = true, .epilogue = true, .aligned = dtype == DType::f32},
                  seed + 24, dtype));
    }
    // Both kinds of tiles by several groups, blocks and what is left of them; quads and single elements.
    all.push_back(problem("matmul_matrix", DType::bf16, DType::bf16, {.m = 70, .n = 67, .k = 37, .batch = 2, .a_transposed = true, .alpha = 0.5, .beta = 2},
                          seed + 23, DType::bf16));
    all.push_back(problem("matmul_matrix", DType::i8, DType::i8, {.m = 9, .n = 130, .k = 80, .b_transposed = true, .epilogue = true}, seed + 24, DType::f32));
    // Rows in pairs of words and number by number, whole blocks and what is left of them.
    all.push_back(problem("matmul_sparse_matrix", DType::bf16, DType::bf16, {.m = 70, .n = 67, .k = 37, .b_transposed = true, .alpha = 0.5, .beta = 2},
                          seed + 26, DType::bf16));
    all.push_back(
        problem("matmul_sparse_matrix", DType::bf16, DType::bf16, {.m = 64, .n = 70, .k = 72, .epilogue = true, .aligned = true}, seed + 27, DType::bf16));
    all.push_back(problem("matmul_items", DType::i8, DType::i8, {.m = 5, .n = 9, .k = 30, .epilogue = true}, seed + 3, DType::f32));
    all.push_back(
        problem("matmul_sparse_dot", DType::i8, DType::i8, {.m = 37, .n = 21, .k = 75, .b_transposed = true, .alpha = 2, .beta = 3}, seed + 17, DType::i32));
    all.push_back(problem("matmul_sparse_dot", DType::i8, DType::u8, {.m = 18, .n = 3, .k = 40, .epilogue = true}, seed + 18, DType::f32));
    all.push_back(problem("matmul_dot_rows", DType::i8, DType::i8, {.m = 7, .n = 70, .k = 37, .batch = 2, .a_transposed = true, .alpha = 2, .beta = 3},
                          seed + 8, DType::i32));
    all.push_back(problem("matmul_dot_rows", DType::u8, DType::i8, {.m = 9, .n = 150, .k = 1100, .epilogue = true}, seed + 9, DType::f32));
    all.push_back(problem("matmul_dot_pack", DType::i8, DType::i8, {.m = 300, .n = 70, .k = 37, .batch = 2}, seed + 10, DType::i32));
    all.push_back(
        problem("matmul_pack", DType::f32, DType::f32, {.m = 9, .n = 140, .k = 70, .batch = 2, .b_transposed = true, .packed = true}, seed + 4, DType::f32));
    all.push_back(problem("matmul_pack", DType::f32, DType::f32, {.m = 5, .n = 37, .k = 84, .b_transposed = true, .packed = true}, seed + 33, DType::f32));
    all.push_back(
        problem("matmul_pack", DType::f16, DType::f16, {.m = 9, .n = 140, .k = 70, .batch = 2, .b_shared = true, .packed = true}, seed + 5, DType::f32));
    return all;
  }

  static constexpr Mutation kMutations[] = {
      {"matmul_items", Edit::tail, "j < k; ++j", "j + 1 < k; ++j"},
      {"matmul_items", Edit::stride, "(long)(column / (1 + CLUTCH_COMPLEX)) * b_n", "(long)(column / 2) * b_n"},
      {"matmul_items", Edit::offset, "a + a_offset", "a"},
      {"matmul_items", Edit::arithmetic, "((sum) * (SUM)(alpha))", "((sum) + (SUM)(alpha))"},
      {"matmul_panels", Edit::tail, "count = min((ulong)LANES, n - column);", "count = min((ulong)LANES, n - column - 1);"},
      {"matmul_panels", Edit::stride, "(long)p * b_panel", "(long)(p / 2) * b_panel"},
      {"matmul_panels", Edit::offset, "from[r] = a + (long)min((ulong)r, rows - 1) * a_row", "from[r] = a + (long)min((ulong)r / 2, rows - 1) * a_row"},
      {"matmul_panels", Edit::arithmetic, "sum[r][v] = CLUTCH_FMA(y, x[v], sum[r][v])", "sum[r][v] = CLUTCH_FMA(y, x[v], x[v])"},
      {"matmul_panels", Edit::offset, "min((long)(v)*LANES, last)", "((v)*LANES)"},
      {"matmul_panels", Edit::offset, "sum = last_lanes(sum, count);", "sum = sum;"},
      {"matmul_panels", Edit::tail, "x[(long)(at + l) - begin], sum[r][v]", "x[l - i], sum[r][v]"},
      {"matmul_panels", Edit::arithmetic, "even = CLUTCH_BF16_EVEN(words)", "even = CLUTCH_BF16_ODD(words)"},
      {"matmul_panels", Edit::offset, "(long)(i + 2 * l + 1) * STEP_K", "(long)(i + 2 * l) * STEP_K"},
      {"matmul_panels", Edit::tail, "POSITION_WHOLE, STORE_FRONT", "POSITION_WHOLE, STORE_WHOLE"},
      {"matmul_sparse_items", Edit::tail, "j < 2 * row_groups", "j < 2 * row_groups - 2"},
      {"matmul_sparse_items", Edit::stride, "(long)at * b_k), sum)", "(long)(at / 2) * b_k), sum)"},
      {"matmul_sparse_items", Edit::offset, "metadata + row * sparse24_row_metadata(row_groups)", "metadata"},
      {"matmul_sparse_items", Edit::arithmetic, "2 * (j % 4) & 3", "2 * (j % 4) & 1"},
      {"matmul_sparse_panels", Edit::tail, "B_ARGUMENTS, (length + 3) / 4,", "B_ARGUMENTS, length / 4,"},
      {"matmul_sparse_panels", Edit::stride, "from += 4 * CLUTCH_PANEL * sizeof(ACC)", "from += 2 * CLUTCH_PANEL * sizeof(ACC)"},
      {"matmul_sparse_panels", Edit::offset, "a + sparse24_packed_numbers(tile, CLUTCH_ROWS)", "a"},
      {"matmul_sparse_panels", Edit::arithmetic, "places[r] >> 16", "places[r] >> 15"},
      {"matmul_sparse_rows", Edit::tail, "left > 1 ? b_k : 0", "left > 2 ? b_k : 0"},
      {"matmul_sparse_rows", Edit::stride, "(long)(4 * g) * b_k", "(long)(2 * g) * b_k"},
      {"matmul_sparse_rows", Edit::offset, "min(first + t, n - 1) * b_n", "min(first, n - 1) * b_n"},
      {"matmul_sparse_rows", Edit::arithmetic, "HAS_BIT(codes[s], 1) ? high : low", "HAS_BIT(codes[s], 1) ? low : high"},
      {"matmul_sparse_dot", Edit::tail, "t < columns; ++t) epilogue", "t + 1 < columns; ++t) epilogue"},
      {"matmul_sparse_dot", Edit::stride, "x += SPARSE24_STEP_WORDS * CLUTCH_TOKENS", "x += CLUTCH_TOKENS"},
      {"matmul_sparse_dot", Edit::offset, "a + sparse24_dot_words(blocks, top)", "a"},
      {"matmul_sparse_dot", Edit::arithmetic, "| 0x04040000", "| 0x00000000"},
      {"matmul_sparse_tiles", Edit::tail, "(ulong)CLUTCH_TILE_K, k - (at - CLUTCH_TILE_K))", "(ulong)CLUTCH_TILE_K, k - (at - CLUTCH_TILE_K) - 1)"},
      {"matmul_sparse_tiles", Edit::stride, "row_metadata = sparse24_row_metadata(row_groups);", "row_metadata = row_groups / 2;"},
      {"matmul_sparse_tiles", Edit::offset, "metadata, top, r,", "metadata, 0, r,"},
      {"matmul_sparse_tiles", Edit::arithmetic, "first == e ? one : second == e ? other", "first == e ? other : second == e ? one"},
      {"matmul_lanes", Edit::tail, "l < count; ++l)\n        for", "l + 1 < count; ++l)\n        for"},
      {"matmul_lanes", Edit::stride, "from + min(l, count - 1) * matrix_stride + e);", "from + min(l, count - 1) * matrix_stride + e / 2);"},
      {"matmul_lanes", Edit::offset, "a + first * a_batch", "a"},
      {"matmul_lanes", Edit::arithmetic, "CLUTCH_FMA(x[row * k + l], y[l * n + at[j]], sum[j])", "CLUTCH_FMA(x[row * k + l], y[l * n + at[j]], x[l])"},
      {"matmul_few", Edit::tail, "s = length / 4 * 4; s < length; ++s", "s = length / 4 * 4; s + 1 < length; ++s"},
      {"matmul_few", Edit::stride, "(long)l * lines.line + (long)s * lines.step);", "(long)(l / 2) * lines.line + (long)s * lines.step);"},
      {"matmul_few", Edit::offset, "(long)first * long_one.line", "(long)(first / 2) * long_one.line"},
      {"matmul_few", Edit::arithmetic, "ADD_PRODUCT(x[e], y[e], sum[r])", "ADD_PRODUCT(x[e], y[e], x[e])"},
      {"matmul_tiles", Edit::tail, "(ulong)CLUTCH_TILE_K, k - (at - CLUTCH_TILE_K))", "(ulong)CLUTCH_TILE_K, k - (at - CLUTCH_TILE_K) - 1)"},
      {"matmul_tiles", Edit::stride, "(PLACE)(s) * (PLACE)(step_stride)", "(PLACE)(s / 2) * (PLACE)(step_stride)"},
      {"matmul_tiles", Edit::offset, "(long)left * args->b_n) * CLUTCH_B_BYTES", "(long)(left / 2) * args->b_n) * CLUTCH_B_BYTES"},
      {"matmul_tiles", Edit::arithmetic, "ADD_PRODUCT(x[i], y[j], sum[i][j])", "ADD_PRODUCT(x[i], y[j], x[i])"},
      {"matmul_matrix", Edit::tail, "if (e < steps) word", "if (e + 1 < steps) word"},
      {"matmul_matrix", Edit::stride, "(int)(l) * (int)(line)", "(int)(l / 2) * (int)(line)"},
      {"matmul_matrix", Edit::offset, "(long)left * args.b_n, args.b_n", "(long)(left / 2) * args.b_n, args.b_n"},
      {"matmul_matrix", Edit::arithmetic, "lane / 4 + r / 2 * 8", "lane / 4 + r / 2 * 4"},
      {"matmul_sparse_matrix", Edit::tail, "max(m.row_groups, first) - first)", "max(m.row_groups, first + 1) - first - 1)"},
      {"matmul_sparse_matrix", Edit::stride, "m.row_groups, 0, 0)", "m.row_groups / 2, 0, 0)"},
      {"matmul_sparse_matrix", Edit::offset, "row = m.top + min(line", "row = min(line"},
      {"matmul_sparse_matrix", Edit::arithmetic, "lane / 4 + 8, lane % 2) << 16", "lane / 4, lane % 2) << 16"},
      {"matmul_dot_rows", Edit::tail, "4 * w + byte < length ?", "4 * w + byte + 1 < length ?"},
      {"matmul_dot_rows", Edit::stride, "(long)(4 * w + byte) * a_k", "(long)(4 * w) * a_k"},
      {"matmul_dot_rows", Edit::offset, "a + a_offset", "a"},
      {"matmul_dot_rows", Edit::arithmetic, "word ^ flip", "word"},
      {"matmul_dot_pack", Edit::tail, "if (row >= rows) continue", "if (row + 1 >= rows) continue"},
      {"matmul_dot_pack", Edit::stride, "load_u8(b, at + (long)(v * LANES + l) * b_n)", "load_u8(b, at + (long)(v * LANES + l / 2) * b_n)"},
      {"matmul_dot_pack", Edit::offset, "b + b_offset", "b"},
      {"matmul_dot_pack", Edit::arithmetic, "CLUTCH_FMA((VI)0x01010101, word[v]", "CLUTCH_FMA((VI)0x01010100, word[v]"},
      {"matmul_pack", Edit::tail, "c + l < columns ? number_of(b", "c + l + 1 < columns ? number_of(b"},
      {"matmul_pack", Edit::tail, "x[l], out + (at + l) * CLUTCH_PANEL", "x[l], out + (r + l) * CLUTCH_PANEL"},
      {"matmul_pack", Edit::stride, "(ulong)CLUTCH_PANEL, n - left)", "(ulong)CLUTCH_PANEL / 2, n - left)"},
      {"matmul_pack", Edit::offset, "(long)(first / (1 + CLUTCH_COMPLEX)) * args.b_k", "0 * args.b_k"},
      {"matmul_pack", Edit::arithmetic, "(ACC)CLUTCH_LOAD_B(b, from + (long)r * b_k", "-(ACC)CLUTCH_LOAD_B(b, from + (long)r * b_k"},
  };
};

}  // namespace clutch::cases
