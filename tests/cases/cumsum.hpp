// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of cumsum: what tests and benches share. The model adds in the order that clutch/ops/cumsum.hpp states.
#include <clutch/ops/cumsum.hpp>

#include "cases/segment.hpp"

#include <string_view>
#include <type_traits>
#include <vector>

namespace clutch::cases {

struct CumsumCase {
  static constexpr std::string_view kStem = "cumsum";

  static double flops(std::int64_t n) { return static_cast<double>(n); }
  static double bytes(std::int64_t n, DType dtype) { return 2.0 * static_cast<double>(n) * bits(dtype) / 8; }

  template <class T>
  static T add(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    else
      return a + b;
  }
  /// Sums of a line.
  template <class T>
  static std::vector<T> model(const std::vector<T>& x) {
    std::vector<T> out;
    T before = 0;
    for (std::size_t block = 0; block < x.size(); block += 2048) {
      T inside = 0;
      for (std::size_t group = block; group < std::min(block + 2048, x.size()); group += 16) {
        T v[16];
        for (std::size_t l = 0; l < 16; ++l) v[l] = group + l < x.size() ? x[group + l] : T{0};
        for (std::size_t step = 1; step < 16; step *= 2)
          for (std::size_t l = 15; l >= step; --l) v[l] = add(v[l], v[l - step]);
        for (std::size_t l = 0; l < 16 && group + l < x.size(); ++l) out.push_back(add(before, add(inside, v[l])));
        inside = add(inside, v[15]);
      }
      before = add(before, inside);
    }
    return out;
  }

  /// Lines along dimension 1 of (outer, m, inner).
  static Problem problem(std::string_view what, std::string_view entry, DType dtype, DType result, bool reverse, std::int64_t outer, std::int64_t m,
                         std::int64_t inner, std::uint64_t seed, bool transposed = false) {
    Problem p{.name = std::string(what), .entry = entry, .needs_fp64 = dtype == DType::f64};
    Dims sizes{outer, m, inner}, strides = transposed ? Dims{1, outer + 1, (outer + 1) * m} : Dims{m * (inner + 3), inner + 3, 1};
    p.inputs.push_back({dtype, sizes, strides, model::make_values(static_cast<std::size_t>(numel(sizes)), dtype, seed, false)});
    p.output = {result, sizes, strides, std::vector<std::uint8_t>(bytes_for(result, static_cast<std::uint64_t>(numel(sizes))))};
    auto fill = [&]<class T>(T) {
      std::vector<double> x = SegmentCase::numbers(p.inputs[0]);
      for (std::int64_t o = 0; o < outer; ++o)
        for (std::int64_t i = 0; i < inner; ++i) {
          std::vector<T> line;
          auto place = [&](std::int64_t j) { return static_cast<std::size_t>((o * m + (reverse ? m - 1 - j : j)) * inner + i); };
          for (std::int64_t j = 0; j < m; ++j) line.push_back(static_cast<T>(x[place(j)]));
          line = model(line);
          for (std::int64_t j = 0; j < m; ++j) model::store_at(p.output.raw.data(), place(j), result, static_cast<double>(line[static_cast<std::size_t>(j)]));
        }
    };
    model::with_accumulator(dtype, fill);
    // Kernels of carries run between those of lines.
    const std::string forced(entry == "cumsum_carries" ? "cumsum_lines" : entry == "cumsum_carry_groups" ? "cumsum_groups" : entry);
    p.is_helper = forced != entry;
    p.run = [=](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      cumsum_out(out, in[0], 1, {.reverse = reverse, .implementation = forced}, stream);
    };
    return p;
  }

  /// Lines with stride 1 that begin, or backwards end, where four elements may be loaded at once.
  static Problem quads(std::string_view what, DType dtype, DType result, bool reverse, std::int64_t outer, std::int64_t m, std::uint64_t seed) {
    Problem p = problem(what, "cumsum_groups", dtype, result, reverse, outer, m, 1, seed);
    p.inputs[0].strides = p.output.strides = {(m + 3) / 4 * 4, 1, 1};
    p.inputs[0].lead = p.output.lead = reverse ? 68 - m % 4 : 64;
    return p;
  }

  static std::vector<Problem> problems(std::uint64_t seed) {
    std::vector<Problem> all;
    for (DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      all.push_back(problem(name(dtype), "cumsum_lines", dtype, dtype, false, 3, 77, 1, seed));
      all.push_back(problem(name(dtype), "cumsum_columns", dtype, dtype, false, 2, 37, 150, seed + 1));
    }
    all.push_back(problem("integers", "cumsum_lines", DType::i16, DType::i64, false, 3, 77, 2, seed + 2));
    all.push_back(problem("backward", "cumsum_lines", DType::f32, DType::f32, true, 3, 2100, 2, seed + 3, true));
    all.push_back(problem("blocks", "cumsum_carries", DType::f32, DType::f32, false, 2, 6200, 1, seed + 4));
    for (DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      all.push_back(problem(name(dtype), "cumsum_groups", dtype, dtype, false, 3, 77, 1, seed + 5));
      all.push_back(problem(name(dtype), "cumsum_column_groups", dtype, dtype, false, 2, 197, 45, seed + 6));
    }
    all.push_back(problem("integers", "cumsum_groups", DType::i16, DType::i64, false, 3, 77, 2, seed + 7));
    all.push_back(problem("two blocks", "cumsum_groups", DType::f32, DType::f32, true, 3, 2100, 2, seed + 8, true));
    all.push_back(quads("quads", DType::f32, DType::f32, false, 19, 102, seed + 9));
    all.push_back(quads("quads backward", DType::f32, DType::f32, true, 2, 3998, seed + 10));
    all.push_back(problem("two blocks", "cumsum_column_groups", DType::f32, DType::f32, true, 1, 2100, 9, seed + 11));
    all.push_back(problem("blocks", "cumsum_carry_groups", DType::f32, DType::f32, false, 2, 12300, 1, seed + 12));
    return all;
  }

  static constexpr Mutation kMutations[] = {
      {"cumsum_lines", Edit::tail, "l < count; ++l) CLUTCH_CONCAT(store_", "l + 1 < count; ++l) CLUTCH_CONCAT(store_"},
      {"cumsum_lines", Edit::stride, "x_place + l * x_inner", "x_place + l / 2 * x_inner"},
      {"cumsum_lines", Edit::offset, "offset[1] + j * (IDX)x_inner, (IDX)out_inner", "offset[1] + j / 2 * (IDX)x_inner, (IDX)out_inner"},
      {"cumsum_lines", Edit::arithmetic, "return ADD(A, inside, v[15]);", "return v[15];"},
      {"cumsum_columns", Edit::tail, "l < count && stage != CUMSUM_SUMS; ++l", "l + 1 < count && stage != CUMSUM_SUMS; ++l"},
      {"cumsum_columns", Edit::stride, "load_some(x, from + l * (IDX)x_inner", "load_some(x, from + l / 2 * (IDX)x_inner"},
      {"cumsum_columns", Edit::offset, "to = offset[0] + j * (IDX)out_inner;", "to = offset[0] + j / 2 * (IDX)out_inner;"},
      {"cumsum_columns", Edit::arithmetic, "inside[v] = inside[v] + x16[15];", "inside[v] = x16[15];"},
      {"cumsum_groups", Edit::tail, "e < count; e += (int)team) CLUTCH_CONCAT(store_", "e + 1 < count; e += (int)team) CLUTCH_CONCAT(store_"},
      {"cumsum_groups", Edit::stride, "count - 1) * stride);", "count - 1) / 2 * stride);"},
      {"cumsum_groups", Edit::offset, "const uint first = of * team * CUMSUM_DOUBLED;", "const uint first = of * team;"},
      {"cumsum_groups", Edit::arithmetic, "const A inside = sums[item];", "const A inside = 0;"},
      {"cumsum_column_groups", Edit::tail, "l < left && stage != CUMSUM_SUMS", "l + 1 < left && stage != CUMSUM_SUMS"},
      {"cumsum_column_groups", Edit::stride, "(at + min(l, left - 1)) * (IDX)x_inner", "(at + min(l, left - 1) / 2) * (IDX)x_inner"},
      {"cumsum_column_groups", Edit::offset, "line = outer * columns + column;", "line = outer * width + column;"},
      {"cumsum_column_groups", Edit::arithmetic, "if (u == g) inside = sum;", "if (u == 0) inside = sum;"},
      {"cumsum_carry_groups", Edit::tail, "for (uint e = p; e < count; e += team) carry", "for (uint e = p; e + 1 < count; e += team) carry"},
      {"cumsum_carry_groups", Edit::stride, "own[p + i * team] = numbers[i];", "own[(p + i * team) / 2] = numbers[i];"},
      {"cumsum_carry_groups", Edit::offset, "own = tile + of * (most + 4);", "own = tile;"},
      {"cumsum_carry_groups", Edit::arithmetic, "before.s1 = sum, sum = ADD(A, sum, here[k].s1);", "before.s1 = sum;"},
      {"cumsum_carries", Edit::tail, "block < blocks; ++block) {\n      A here", "block + 1 < blocks; ++block) {\n      A here"},
      {"cumsum_carries", Edit::stride, "A here = carry_of[cumsum_carry(line, blocks, block)];", "A here = carry_of[line + block];"},
      {"cumsum_carries", Edit::offset, "carry_of[cumsum_carry(line, blocks, block)] = sum;", "carry_of[cumsum_carry(line, blocks, block / 2)] = sum;"},
      {"cumsum_carries", Edit::arithmetic, "sum = ADD(A, sum, here);", "sum = here;"},
  };
};

}  // namespace clutch::cases
