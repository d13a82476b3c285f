// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of rowwise: what tests and benches share. Problems of + and * have a host model of their own, which adds in the order
// that clutch/ops/reduce.hpp states; softmax and norms are held against long double within stated bounds by tests/ops/rowwise_test.cpp.
#include <clutch/ops/rowwise.hpp>

#include "cases/reduce.hpp"
#include "support/host_model.hpp"
#include "support/op_case.hpp"

#include <string_view>
#include <vector>

namespace clutch::cases {

struct RowwiseCase {
  static constexpr std::string_view kStem = "rowwise";

  /// x - max(w x) * sum(x (w + 1)), three roundings an element, for one row.
  template <class T>
  static std::vector<T> model_row(const std::vector<T>& x, const std::vector<T>& w) {
    std::vector<T> a, b, out;
    for (std::size_t j = 0; j < x.size(); ++j) {
      T product = w[j] * x[j], more = w[j] + 1;
      a.push_back(product), b.push_back(x[j] * more);
    }
    T top = ReduceCase::in_order<T>(a, ReduceCase::identity<T>(Reduce::amax), ReduceCase::combine<T>(Reduce::amax));
    T sum = ReduceCase::in_order<T>(b, 0, ReduceCase::combine<T>(Reduce::sum));
    T product = top * sum;
    for (T v : x) out.push_back(v - product);
    return out;
  }
  static RowFunction function(DType dtype) {
    DType traced = dtype == DType::f64 ? DType::f64 : DType::f32;
    return trace_rows(
        [](Row& row, Expr x, Expr w) {
          Expr top = row.max(w * x);
          return x - top * row.sum(x * (w + 1));
        },
        std::array{traced, traced});
  }

  /// x of shape (rows, length) with these strides, w broadcast over the rows.
  static Problem problem(std::string_view what, std::string_view entry, DType dtype, std::int64_t rows, std::int64_t length, const Dims& strides,
                         const Dims& out_strides, std::uint64_t seed) {
    Problem p{.name = std::string(what), .entry = entry, .needs_fp64 = dtype == DType::f64};
    auto values = [&](const Dims& sizes, std::uint64_t k) { return model::make_values(static_cast<std::size_t>(numel(sizes)), dtype, seed + k, false); };
    p.inputs.push_back({dtype, {rows, length}, strides, values({rows, length}, 0)});
    p.inputs.push_back({dtype, {length}, {}, values({length}, 1)});
    p.output = {dtype, {rows, length}, out_strides, std::vector<std::uint8_t>(bytes_for(dtype, static_cast<std::uint64_t>(rows * length)))};
    auto fill = [&]<class T>(T) {
      for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r) {
        std::vector<T> x, w;
        for (std::size_t j = 0; j < static_cast<std::size_t>(length); ++j) {
          x.push_back(static_cast<T>(model::value_at(p.inputs[0].raw.data(), r * static_cast<std::size_t>(length) + j, dtype)));
          w.push_back(static_cast<T>(model::value_at(p.inputs[1].raw.data(), j, dtype)));
        }
        std::vector<T> out = model_row(x, w);
        for (std::size_t j = 0; j < out.size(); ++j)
          model::store_at(p.output.raw.data(), r * static_cast<std::size_t>(length) + j, dtype, static_cast<double>(out[j]));
      }
    };
    if (dtype == DType::f64)
      fill(double{});
    else
      fill(float{});
    p.run = [f = function(dtype), entry](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      rowwise_out(std::span(&out, 1), f, in, {.implementation = std::string(entry)}, stream);
    };
    return p;
  }

  /// w x - sum(w x): the values of a total are elements, too.
  static Problem kept_problem(std::string_view entry, std::int64_t length, std::uint64_t seed, std::int64_t rows = 4, const Dims& strides = {}) {
    Problem p = problem("kept", entry, DType::f32, rows, length, strides, strides, seed);
    for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r) {
      std::vector<float> product;
      for (std::size_t j = 0; j < static_cast<std::size_t>(length); ++j)
        product.push_back(static_cast<float>(model::value_at(p.inputs[0].raw.data(), r * static_cast<std::size_t>(length) + j, DType::f32)) *
                          static_cast<float>(model::value_at(p.inputs[1].raw.data(), j, DType::f32)));
      float sum = ReduceCase::in_order<float>(product, 0, ReduceCase::combine<float>(Reduce::sum));
      for (std::size_t j = 0; j < product.size(); ++j)
        model::store_at(p.output.raw.data(), r * static_cast<std::size_t>(length) + j, DType::f32, static_cast<double>(product[j] - sum));
    }
    RowFunction f = trace_rows(
        [](Row& row, Expr x, Expr w) {
          Expr product = w * x;
          return product - row.sum(product);
        },
        std::array{DType::f32, DType::f32});
    p.run = [f, entry](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      rowwise_out(std::span(&out, 1), f, in, {.implementation = std::string(entry)}, stream);
    };
    return p;
  }

  /// (x^2 - max(x^2)) w, as norms of groups of channels scale: w has one element in each part of a row.
  static Problem parts_problem(std::string_view entry, DType dtype, std::int64_t parts, std::int64_t part, std::uint64_t seed) {
    constexpr std::int64_t kRows = 6;
    Problem p{.name = fmt::format("{} in parts of {}", name(dtype), part), .entry = entry, .needs_fp64 = dtype == DType::f64};
    const Dims sizes{kRows, parts, part};
    auto operand = [&](const Dims& of, const Dims& strides, std::uint64_t k) {
      return Operand{dtype, of, strides, model::make_values(static_cast<std::size_t>(numel(of)), dtype, seed + k, false)};
    };
    p.inputs = {operand(sizes, {(parts + 1) * part, part, 1}, 0), operand({2, 1, parts, 1}, {}, 1)};
    p.output = operand(sizes, {}, 2);
    auto fill = [&]<class T>(T) {
      auto number = [&](std::size_t k, std::int64_t i) { return static_cast<T>(model::value_at(p.inputs[k].raw.data(), static_cast<std::size_t>(i), dtype)); };
      for (std::int64_t r = 0; r < kRows; ++r) {
        T most = -INFINITY;
        for (std::int64_t j = 0; j < parts * part; ++j) most = std::max<T>(most, number(0, r * parts * part + j) * number(0, r * parts * part + j));
        for (std::int64_t j = 0; j < parts * part; ++j) {
          const std::int64_t i = r * parts * part + j;
          const T centered = number(0, i) * number(0, i) - most;
          model::store_at(p.output.raw.data(), static_cast<std::size_t>(i), dtype, static_cast<double>(centered * number(1, r / 3 * parts + j / part)));
        }
      }
    };
    if (dtype == DType::f64)
      fill(double{});
    else
      fill(float{});
    const DType compute = dtype == DType::f64 ? DType::f64 : DType::f32;
    const RowFunction f = trace_rows(
        [](Row& row, Expr x, Expr w) {
          const Expr squared = x * x;
          return (squared - row.max(squared)) * w;
        },
        std::array{compute, compute});
    p.run = [=](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      const Tensor four[] = {in[0].reshape({2, 3, parts, part}), in[1]}, result = out.reshape({2, 3, parts, part});
      rowwise_out(std::span(&result, 1), f, four, {.dims = {2, 3}, .implementation = std::string(entry)}, stream);
    };
    return p;
  }

  /// A long function of which both totals and the elements take the values.
  static Problem shared_problem(std::string_view entry, std::int64_t length, std::uint64_t seed) {
    constexpr int kTurns = 25;
    Problem p = problem("shared", entry, DType::f32, 4, length, {}, {}, seed);
    for (std::size_t r = 0; r < 4; ++r) {
      std::vector<float> values, squares;
      for (std::size_t j = 0; j < static_cast<std::size_t>(length); ++j) {
        auto h = static_cast<float>(model::value_at(p.inputs[0].raw.data(), r * static_cast<std::size_t>(length) + j, DType::f32));
        const auto w = static_cast<float>(model::value_at(p.inputs[1].raw.data(), j, DType::f32));
        for (int i = 0; i < kTurns; ++i) h = h * 0.75f + w;
        values.push_back(h);
      }
      const float sum = ReduceCase::in_order<float>(values, 0, ReduceCase::combine<float>(Reduce::sum));
      for (float h : values) squares.push_back(h * h - sum);
      const float second = ReduceCase::in_order<float>(squares, 0, ReduceCase::combine<float>(Reduce::sum));
      for (std::size_t j = 0; j < values.size(); ++j)
        model::store_at(p.output.raw.data(), r * static_cast<std::size_t>(length) + j, DType::f32, static_cast<double>(values[j] - sum + second));
    }
    RowFunction f = trace_rows(
        [](Row& row, Expr x, Expr w) {
          Expr h = x;
          for (int i = 0; i < kTurns; ++i) h = h * 0.75f + w;
          const Expr sum = row.sum(h), second = row.sum(h * h - sum);
          return h - sum + second;
        },
        std::array{DType::f32, DType::f32});
    p.run = [f, entry](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      rowwise_out(std::span(&out, 1), f, in, {.implementation = std::string(entry)}, stream);
    };
    return p;
  }

  static std::vector<Problem> problems(std::uint64_t seed) {
    std::vector<Problem> all;
    all.push_back(shared_problem("rowwise_rows", 333, seed + 14));
    all.push_back(shared_problem("rowwise_strided", 70, seed + 15));
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) all.push_back(parts_problem("rowwise_rows", dtype, 3, 48, seed + 31));
    all.push_back(parts_problem("rowwise_rows", DType::f32, 5, 480, seed + 32));
    all.push_back(kept_problem("rowwise_rows", 93, seed + 4));
    all.push_back(kept_problem("rowwise_rows", 2077, seed + 5));
    all.push_back(kept_problem("rowwise_strided", 93, seed + 6));
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      all.push_back(problem(name(dtype), "rowwise_rows", dtype, 5, 197, {200, 1}, {211, 1}, seed));
      all.push_back(problem(name(dtype), "rowwise_strided", dtype, 9, 61, {2, 20}, {1, 9}, seed + 1));
    }
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
      all.push_back(problem(name(dtype), "rowwise_groups", dtype, 17, 197, {200, 1}, {211, 1}, seed + 7));
    // What items hold: few elements each, those of a group's row, and values in the place of elements.
    all.push_back(problem("few held", "rowwise_groups", DType::f32, 19, 77, {}, {79, 1}, seed + 10));
    all.push_back(problem("a short chain", "rowwise_groups", DType::f32, 3, 530, {}, {}, seed + 13));
    all.push_back(problem("held by a group", "rowwise_groups", DType::f32, 2, 2600, {}, {}, seed + 11));
    all.push_back(kept_problem("rowwise_groups", 93, seed + 12));
    all.push_back(problem("four chains", "rowwise_groups", DType::f32, 5, 1999, {}, {}, seed + 8));
    all.push_back(problem("five blocks", "rowwise_groups", DType::f32, 2, 9000, {}, {}, seed + 9));
    all.push_back(problem("two blocks", "rowwise_rows", DType::f32, 2, 2500, {}, {}, seed + 2));
    all.push_back(problem("short rows", "rowwise_rows", DType::f32, 37, 3, {}, {}, seed + 3));
    for (DType dtype : {DType::f32, DType::f16, DType::bf16}) all.push_back(problem(name(dtype), "rowwise_items", dtype, 75, 21, {1, 80}, {1, 77}, seed + 26));
    all.push_back(problem("short rows", "rowwise_items", DType::f32, 69, 8, {}, {11, 1}, seed + 27));
    all.push_back(problem("thirteen", "rowwise_items", DType::bf16, 150, 13, {17, 1}, {}, seed + 30));
    all.push_back(problem("four chains", "rowwise_items", DType::f32, 37, 63, {1, 37}, {1, 40}, seed + 28));
    all.push_back(kept_problem("rowwise_items", 13, seed + 29, 37, {1, 37}));
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
      all.push_back(problem(name(dtype), "rowwise_column_groups", dtype, 75, 21, {1, 80}, {1, 77}, seed + 21));
    all.push_back(problem("four chains", "rowwise_column_groups", DType::f32, 37, 1999, {1, 37}, {1, 37}, seed + 22));
    all.push_back(problem("eleven blocks", "rowwise_column_groups", DType::f32, 3, 21000, {1, 4}, {1, 3}, seed + 23));
    all.push_back(problem("short rows", "rowwise_column_groups", DType::f32, 69, 13, {}, {14, 1}, seed + 24));
    all.push_back(problem("steps", "rowwise_column_groups", DType::f32, 9, 61, {140, 2}, {70, 1}, seed + 25));
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
      all.push_back(problem(name(dtype), "rowwise_columns", dtype, 37, 21, {1, 41}, {1, 39}, seed + 16));
    all.push_back(problem("two chains", "rowwise_columns", DType::f32, 150, 530, {1, 150}, {1, 150}, seed + 17));
    all.push_back(problem("far apart", "rowwise_columns", DType::f32, 83, 300, {1, 4096}, {1, 83}, seed + 18));
    all.push_back(kept_problem("rowwise_columns", 93, seed + 19, 37, {1, 37}));
    all.push_back(kept_problem("rowwise_columns", 270, seed + 20, 37, {1, 4096}));
    return all;
  }

  static constexpr Mutation kMutations[] = {
      {"rowwise_rows", Edit::tail, "(int)min(m - j, (IDX)WIDTH) CLUTCH_ROW_NAMES);", "(int)min(m - j, (IDX)WIDTH) - 1 CLUTCH_ROW_NAMES);"},
      {"rowwise_rows", Edit::tail, "ROW_ELEMENTS(near, CLUTCH_LOAD_TAIL, STORE_FRONT)", "ROW_ELEMENTS(near, CLUTCH_LOAD_TAIL, STORE_ROW)"},
      {"rowwise_rows", Edit::stride, "offset[k] += x * stride[k][d];", "offset[k] += x * stride[0][d];"},
      {"rowwise_rows", Edit::offset, "else CLUTCH_CONCAT(storev_, dtype)(CLUTCH_CONCAT(b, k), offset[k] + j, x);",
       "else CLUTCH_CONCAT(storev_, dtype)(CLUTCH_CONCAT(b, k), offset[k] + j + 1, x);"},
      {"rowwise_rows", Edit::stride, "part < (IDX)m; part += part_size", "part < (IDX)m; part += 2 * part_size"},
      {"rowwise_rows", Edit::offset, "CLUTCH_STEPS >> k & 1 ? inner[k] : 0", "CLUTCH_STEPS >> k & 1 ? 0 : 0"},
      {"rowwise_rows", Edit::arithmetic, "#define CLUTCH_TOTAL_VALUE_1 ((V)totals[1])", "#define CLUTCH_TOTAL_VALUE_1 ((V)totals[0])"},
      {"rowwise_rows", Edit::stride, "const IDX j = first + u * WIDTH;", "const IDX j = first + (u & ~1) * WIDTH;"},
      {"rowwise_rows", Edit::arithmetic, "#define CLUTCH_KNOWN_VALUE keep[j / WIDTH]", "#define CLUTCH_KNOWN_VALUE keep[0]"},
      {"rowwise_groups", Edit::tail, "there && j < (IDX)m;", "there && j + 1 < (IDX)m;"},
      {"rowwise_groups", Edit::tail, "const A there = u < own ? value : (A)CLUTCH_IDENTITY;", "const A there = u + 1 < own ? value : (A)CLUTCH_IDENTITY;"},
      {"rowwise_groups", Edit::offset, "mine + first * 16, own - first CLUTCH_BUFFER_NAMES);", "mine + first * 8, own - first CLUTCH_BUFFER_NAMES);"},
      {"rowwise_groups", Edit::offset, "const IDX j = mine + u * 16;\n    values[u] = CLUTCH_HELD_ROW",
       "const IDX j = mine + u * 15;\n    values[u] = CLUTCH_HELD_ROW"},
      {"rowwise_groups", Edit::stride, "offset[k] += place * stride[k][d];", "offset[k] += place * stride[0][d];"},
      {"rowwise_groups", Edit::offset, "CLUTCH_CONCAT(storev_, dtype)(CLUTCH_CONCAT(b, k), offset[k] + j, x);",
       "CLUTCH_CONCAT(storev_, dtype)(CLUTCH_CONCAT(b, k), offset[k] + j + 1, x);"},
      {"rowwise_groups", Edit::arithmetic, "acc = CLUTCH_COMBINE(A, acc, results[b]);", "acc = CLUTCH_COMBINE(A, acc, results[0]);"},
      {"rowwise_items", Edit::tail, "u < CLUTCH_HELD - 8 || u < (int)m", "u < CLUTCH_HELD - 8 || u + 1 < (int)m"},
      {"rowwise_items", Edit::stride, "offset[k] + j * inner[k])\n#define CLUTCH_LOAD_HELD", "offset[k] + j)\n#define CLUTCH_LOAD_HELD"},
      {"rowwise_items", Edit::offset, "(CLUTCH_CONCAT(b, k), offset[k] + j * inner[k], x);", "(CLUTCH_CONCAT(b, k), offset[k] + j, x);"},
      {"rowwise_items", Edit::tail, "e < rows * (uint)m;", "e + 1 < rows * (uint)m;"},
      {"rowwise_items", Edit::stride, "pitch = (uint)m | 1", "pitch = (uint)m - 1"},
      {"rowwise_items", Edit::offset, "offset[k] = (IDX)(first + item) * kept[k][0];", "offset[k] = (IDX)first * kept[k][0] + 1;"},
      {"rowwise_items", Edit::arithmetic, "x[0], x[1])", "x[0], x[0])"},
      {"rowwise_items", Edit::arithmetic, "values[u] = value;", "values[0] = value;"},
      {"rowwise_column_groups", Edit::tail, "(IDX)q; there && j < (IDX)m;", "(IDX)q; there && j + 1 < (IDX)m;"},
      {"rowwise_column_groups", Edit::stride, "LOAD_VALUE(k, dtype) CLUTCH_CONCAT(loadv_, dtype)(CLUTCH_CONCAT(b, k), offset[k] + j * inner[k])",
       "LOAD_VALUE(k, dtype) CLUTCH_CONCAT(loadv_, dtype)(CLUTCH_CONCAT(b, k), offset[k] + j)"},
      {"rowwise_column_groups", Edit::stride, "part_step = along ? 1 : width", "part_step = 1"},
      {"rowwise_column_groups", Edit::offset, "(IDX)q; there && j < (IDX)m; j += REDUCE_COLUMN_ITEMS",
       "(IDX)(q & 6); there && j < (IDX)m; j += REDUCE_COLUMN_ITEMS"},
      {"rowwise_column_groups", Edit::offset, "(IDX)(b * REDUCE_BLOCK), (IDX)min((ulong)(b + 1) * REDUCE_BLOCK, m), q",
       "(IDX)0, (IDX)min((ulong)(b + 1) * REDUCE_BLOCK, m), q"},
      {"rowwise_column_groups", Edit::arithmetic, "acc = CLUTCH_COMBINE(A, low, high)", "acc = (A)0"},
      {"rowwise_column_groups", Edit::arithmetic, "#define CLUTCH_TOTAL_VALUE_1 ((V)totals[1])", "#define CLUTCH_TOTAL_VALUE_1 ((V)totals[0])"},
      {"rowwise_columns", Edit::tail, "WIDTH - (int)(columns % WIDTH)", "WIDTH - 1"},
      {"rowwise_columns", Edit::tail, "max(l, left_out)", "l - left_out"},
      {"rowwise_columns", Edit::offset, "whole ? wanted : columns - WIDTH", "wanted"},
      {"rowwise_columns", Edit::stride, "acc[p + v] = CLUTCH_COMBINE(CLUTCH_LANES_OF(A), acc[p + v], value);",
       "acc[v] = CLUTCH_COMBINE(CLUTCH_LANES_OF(A), acc[v], value);"},
      {"rowwise_columns", Edit::arithmetic, "acc[k] = CLUTCH_COMBINE(CLUTCH_LANES_OF(A), acc[k], acc[k + h])",
       "acc[k] = CLUTCH_COMBINE(CLUTCH_LANES_OF(A), acc[k], acc[k])"},
      {"rowwise_columns", Edit::stride, "#define CLUTCH_KNOWN_VALUE keep[j * abreast + v]", "#define CLUTCH_KNOWN_VALUE keep[j * abreast]"},
      {"rowwise_columns", Edit::stride, "#define CLUTCH_LOAD_HELD(k, dtype) keep[j * abreast + v]", "#define CLUTCH_LOAD_HELD(k, dtype) keep[j]"},
      {"rowwise_strided", Edit::tail, "(int)min(m - j, (IDX)WIDTH) CLUTCH_ROW_NAMES);", "(int)min(m - j, (IDX)WIDTH) - 1 CLUTCH_ROW_NAMES);"},
      {"rowwise_strided", Edit::stride, "at[k][l] = offset[k] + (j + l) * inner[k];\n  ROW_ELEMENTS", "at[k][l] = offset[k] + (j + l);\n  ROW_ELEMENTS"},
      {"rowwise_strided", Edit::offset, "(CLUTCH_CONCAT(b, k), at[k], count, x);", "(CLUTCH_CONCAT(b, k), at[k] + 1, count - 1, x);"},
      {"rowwise_strided", Edit::arithmetic, "#define CLUTCH_TOTAL_VALUE_1 ((V)totals[1])", "#define CLUTCH_TOTAL_VALUE_1 ((V)totals[0])"},
  };
};

}  // namespace clutch::cases
