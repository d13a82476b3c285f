// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of reduce: what tests and benches share. The model adds in the order that clutch/ops/reduce.hpp states.
#include <clutch/ops/reduce.hpp>

#include "support/host_model.hpp"
#include "support/op_case.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string_view>
#include <vector>

namespace clutch::cases {

struct ReduceCase {
  static constexpr std::string_view kStem = "reduce";
  static std::vector<std::int64_t> lengths(std::string_view level) {
    std::vector<std::int64_t> m{1, 2, 15, 17, 63, 64, 65, 127, 1000, 2047, 2048, 2049, 10007};
    if (level == "nightly") m.insert(m.end(), {1 << 20, (1 << 22) + 77});
    return m;
  }

  /// The contract's order, for one result.
  template <class A>
  static A in_order(std::vector<A> values, A identity, const std::function<A(A, A)>& op) {
    do {
      std::vector<A> results;
      for (std::size_t begin = 0; begin < std::max<std::size_t>(values.size(), 1); begin += 2048) {
        std::array<A, 64> partial;
        partial.fill(identity);
        for (std::size_t j = begin; j < std::min(begin + 2048, values.size()); ++j) {
          std::size_t p = 16 * ((j - begin) / 512) + (j - begin) % 16;
          partial[p] = op(partial[p], values[j]);
        }
        for (std::size_t half = 32; half > 0; half /= 2)
          for (std::size_t k = 0; k < half; ++k) partial[k] = op(partial[k], partial[k + half]);
        results.push_back(partial[0]);
      }
      values = std::move(results);
    } while (values.size() > 1);
    return values[0];
  }

  template <class A>
  static std::function<A(A, A)> combine(Reduce op) {
    switch (op) {
      case Reduce::prod: return [](A a, A b) { return static_cast<A>(a * b); };
      case Reduce::amin: return [](A a, A b) { return a < b || a != a ? a : b; };
      case Reduce::amax: return [](A a, A b) { return a > b || a != a ? a : b; };
      case Reduce::any: return [](A a, A b) { return static_cast<A>(a != 0 || b != 0); };
      case Reduce::all: return [](A a, A b) { return static_cast<A>(a != 0 && b != 0); };
      default: return [](A a, A b) { return static_cast<A>(a + b); };
    }
  }
  template <class A>
  static A identity(Reduce op) {
    switch (op) {
      case Reduce::prod:
      case Reduce::all: return 1;
      case Reduce::amin: return std::numeric_limits<A>::has_infinity ? std::numeric_limits<A>::infinity() : std::numeric_limits<A>::max();
      case Reduce::amax: return std::numeric_limits<A>::has_infinity ? -std::numeric_limits<A>::infinity() : std::numeric_limits<A>::min();
      default: return 0;
    }
  }

  /// Raw results of one tensor of floats, each element squared first if `square`.
  template <class A>
  static std::vector<std::uint8_t> expected(Reduce op, const Operand& x, const std::vector<int>& dims, DType result, bool square = false) {
    std::vector<std::vector<A>> groups;
    std::array<bool, kMaxRank> gone{};
    for (int d : dims) gone[static_cast<std::size_t>(d)] = true;
    std::int64_t n = 1, m = 1;
    for (int d = 0; d < x.sizes.rank(); ++d) (gone[static_cast<std::size_t>(d)] ? m : n) *= x.sizes[d];
    groups.resize(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < static_cast<std::size_t>(numel(x.sizes)); ++i) {
      std::size_t rest = i, number = 0, scale = 1;
      for (int d = x.sizes.rank() - 1; d >= 0; --d) {
        auto at = rest % static_cast<std::size_t>(x.sizes[d]);
        rest /= static_cast<std::size_t>(x.sizes[d]);
        if (gone[static_cast<std::size_t>(d)]) continue;
        number += at * scale;
        scale *= static_cast<std::size_t>(x.sizes[d]);
      }
      auto v = static_cast<A>(model::value_at(x.raw.data(), i, x.dtype));
      if (op == Reduce::any || op == Reduce::all) v = v != 0;
      groups[number].push_back(square ? v * v : v);
    }
    std::vector<std::uint8_t> raw(bytes_for(result, static_cast<std::uint64_t>(n)));
    for (std::size_t k = 0; k < groups.size(); ++k) {
      A total = in_order<A>(groups[k], identity<A>(op), combine<A>(op));
      if (op == Reduce::mean) total = static_cast<A>(total / static_cast<A>(m));
      model::store_at(raw.data(), k, result, static_cast<double>(total));
    }
    return raw;
  }

  static Problem problem(std::string_view what, std::string_view entry, Reduce op, DType dtype, const Dims& sizes, const Dims& strides,
                         const std::vector<int>& dims, std::uint64_t seed) {
    Problem p{.name = std::string(what), .entry = entry, .needs_fp64 = dtype == DType::f64};
    p.inputs.push_back({dtype, sizes, strides, model::make_values(static_cast<std::size_t>(numel(sizes)), dtype, seed, false)});
    std::array<bool, kMaxRank> gone{};
    ReduceOptions options{.implementation = std::string(entry)};
    for (int d : dims) gone[static_cast<std::size_t>(d)] = true, options.dims.push_back(d);
    Dims result;
    for (int d = 0; d < sizes.rank(); ++d)
      if (!gone[static_cast<std::size_t>(d)]) result.push_back(sizes[d]);
    p.output = {dtype, result, {}, {}};
    p.output.raw = dtype == DType::f64 ? expected<double>(op, p.inputs[0], dims, dtype, true) : expected<float>(op, p.inputs[0], dims, dtype, true);
    DType traced = dtype == DType::f64 ? DType::f64 : DType::f32;
    ExprFunction square = trace([](Expr x) { return x * x; }, std::array{traced});
    p.run = [square, op, options](const Tensor& out, std::span<const Tensor> in, const Stream& stream) { reduce_out(out, op, square, in, options, stream); };
    return p;
  }

  static std::vector<Problem> problems(std::uint64_t seed) {
    std::vector<Problem> all;
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      all.push_back(problem(name(dtype), "reduce_rows", Reduce::sum, dtype, {3, 197}, {200, 1}, {1}, seed));
      all.push_back(problem(name(dtype), "reduce_columns", Reduce::sum, dtype, {71, 21}, {25, 1}, {0}, seed + 1));
      all.push_back(problem(name(dtype), "reduce_strided", Reduce::sum, dtype, {5, 13, 7}, {2, 80, 10}, {0, 2}, seed + 2));
    }
    for (const Dims& few : {Dims{3, 40}, Dims{1, 33}, Dims{600, 16}})
      all.push_back(problem("few partials", "reduce_columns", few[0] == 1 ? Reduce::amin : Reduce::sum, DType::f32, few, {}, {0}, seed + 9));
    all.push_back(problem("two blocks", "reduce_rows", Reduce::sum, DType::f32, {2, 2500}, {}, {1}, seed + 3));
    all.back().is_helper = true;  // the device chooses how the blocks' results are reduced
    all.push_back(problem("two blocks", "reduce_columns", Reduce::amax, DType::f32, {2100, 9}, {}, {0}, seed + 4));
    all.back().is_helper = true;  // the blocks are then reduced as rows
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
      all.push_back(problem(name(dtype), "reduce_groups", Reduce::sum, dtype, {19, 197}, {200, 1}, {1}, seed + 7));
    all.push_back(problem("max of four chains", "reduce_groups", Reduce::amax, DType::f32, {5, 1999}, {}, {1}, seed + 8));
    all.push_back(problem("two blocks", "reduce_groups", Reduce::sum, DType::f32, {3, 2500}, {}, {1}, seed + 9));
    all.push_back(problem("ten blocks", "reduce_groups", Reduce::sum, DType::f32, {1, 20000}, {}, {1}, seed + 10));
    all.back().is_helper = true;  // the same
    for (DType dtype : {DType::f32, DType::f64, DType::bf16})
      all.push_back(problem(name(dtype), "reduce_column_groups", Reduce::sum, dtype, {197, 41}, {}, {0}, seed + 10));
    all.push_back(problem("max of four chains", "reduce_column_groups", Reduce::amax, DType::f32, {2, 1999, 9}, {}, {1}, seed + 11));
    all.push_back(problem("four chains", "reduce_column_groups", Reduce::sum, DType::f32, {1999, 37}, {}, {0}, seed + 22));
    all.push_back(problem("three chains", "reduce_column_groups", Reduce::sum, DType::f32, {700, 5}, {}, {0}, seed + 23));
    all.push_back(problem("short rows", "reduce_column_groups", Reduce::sum, DType::f32, {75, 13}, {20, 1}, {1}, seed + 24));
    all.push_back(problem("several strides", "reduce_column_groups", Reduce::sum, DType::f32, {4, 3, 9, 37}, {}, {0, 2}, seed + 25));
    all.push_back(problem("several short", "reduce_column_groups", Reduce::sum, DType::f32, {3, 40, 4}, {200, 5, 1}, {0, 2}, seed + 26));
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
      all.push_back(problem(fmt::format("several {}", name(dtype)), "reduce_groups", Reduce::sum, dtype, {5, 13, 37}, {600, 41, 1}, {0, 2}, seed + 27));
    all.push_back(problem("several blocks", "reduce_groups", Reduce::sum, DType::f32, {51, 2, 47}, {}, {0, 2}, seed + 28));
    all.push_back(problem("two blocks", "reduce_column_groups", Reduce::sum, DType::f32, {2100, 35}, {}, {0}, seed + 12));
    all.back().is_helper = true;  // the blocks are then reduced as rows
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      all.push_back(problem(fmt::format("runs {}", name(dtype)), "reduce_buffered", Reduce::sum, dtype, {3, 7, 41}, {500, 50, 1}, {1, 2}, seed + 13));
      all.push_back(problem(fmt::format("panels {}", name(dtype)), "reduce_buffered", Reduce::sum, dtype, {2, 43, 23}, {2000, 1, 45}, {1, 2}, seed + 14));
    }
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
      all.push_back(problem(fmt::format("short {}", name(dtype)), "reduce_rows", Reduce::sum, dtype, {3, 37, 11}, {600, 14, 1}, {2}, seed + 20));
    all.push_back(problem("short min", "reduce_rows", Reduce::amin, DType::f32, {70, 3}, {}, {1}, seed + 21));
    all.push_back(problem("short runs", "reduce_buffered", Reduce::amax, DType::f32, {2, 60, 18}, {3000, 20, 1}, {1, 2}, seed + 15));
    all.push_back(problem("planes of panels", "reduce_buffered", Reduce::sum, DType::f32, {3, 37, 2, 19}, {40, 1, 5000, 130}, {0, 1, 2, 3}, seed + 16));
    all.back().is_helper = true;  // the blocks are then reduced as rows
    for (const Dims& several : {Dims{4, 2, 5, 37}, Dims{2, 3, 300, 70}}) {
      all.push_back(problem("several strides", "reduce_columns", several[3] == 37 ? Reduce::sum : Reduce::amax, DType::f32, several, {}, {0, 2}, seed + 17));
    }
    all.push_back(problem("blocks of runs", "reduce_buffered", Reduce::sum, DType::f32, {71, 83}, {90, 1}, {0, 1}, seed + 18));
    all.back().is_helper = true;  // the blocks are then reduced as rows
    all.push_back(problem("blocks of panels", "reduce_buffered", Reduce::sum, DType::f32, {101, 83}, {1, 107}, {0, 1}, seed + 19));
    all.back().is_helper = true;  // the same
    for (DType dtype : {DType::f32, DType::f64}) {
      all.push_back(problem(fmt::format("strips {}", name(dtype)), "reduce_buffered", Reduce::sum, dtype, {70, 2100}, {1, 71}, {0, 1}, seed + 29));
      all.back().is_helper = true;  // the same
    }
    all.push_back(problem("mean", "reduce_strided", Reduce::mean, DType::f32, {7, 9, 2}, {1, 20, 8}, {1}, seed + 5));
    all.push_back(problem("min", "reduce_rows", Reduce::amin, DType::f32, {3, 97}, {}, {1}, seed + 6));
    return all;
  }

  static constexpr Mutation kMutations[] = {
      {"reduce_rows", Edit::tail, "j < stop; j += WIDTH)", "j + WIDTH < stop; j += WIDTH)"},
      {"reduce_rows", Edit::tail, "offset[k] + j, count))", "offset[k] + j + 1, count))"},
      {"reduce_rows", Edit::stride, "j += WIDTH) {\n        V value;", "j += 2 * WIDTH) {\n        V value;"},
      {"reduce_rows", Edit::offset, "min((block + 1) * REDUCE_BLOCK, m) CLUTCH", "min((block + 1) * REDUCE_BLOCK, m) - 1 CLUTCH"},
      {"reduce_rows", Edit::arithmetic, "chain[v] = CLUTCH_COMBINE(CLUTCH_LANES_OF(A), chain[v], value);",
       "chain[v] = CLUTCH_COMBINE(CLUTCH_LANES_OF(A), chain[v], value + value);"},
      {"reduce_rows", Edit::tail, "if (j + l < m) acc[j + l]", "acc[j + l]"},
      {"reduce_rows", Edit::tail, "size[0] - (IDX)one % size[0] >= WIDTH", "1"},
      {"reduce_rows", Edit::stride, "offset[k] = first[k] + l * kept[k][0]", "offset[k] = first[k] + l * m"},
      {"reduce_groups", Edit::tail, "values[u] = inside ? value : (A)CLUTCH_IDENTITY;", "values[u] = value;"},
      {"reduce_groups", Edit::stride, "begin + (IDX)(i + u * 16) CLUTCH", "begin + (IDX)(i + u) CLUTCH"},
      {"reduce_groups", Edit::offset, "(offset, (IDX)(block * REDUCE_BLOCK), (IDX)min((block + 1)",
       "(offset, (IDX)(block * REDUCE_BLOCK) / 2, (IDX)min((block + 1)"},
      {"reduce_groups", Edit::arithmetic, "acc = CLUTCH_COMBINE(A, left, right);", "acc = CLUTCH_COMBINE(A, left, left);"},
      {"reduce_groups", Edit::stride, "add_offsets_by_reciprocals(j, reduced_rank,", "add_offsets_by_reciprocals(j / 2, reduced_rank,"},
      {"reduce_column_groups", Edit::tail, "there = result < n;", "there = result + 1 < n;"},
      {"reduce_column_groups", Edit::stride, "offset[k] + j * step[k])\n", "offset[k] + j / 2 * step[k])\n"},
      {"reduce_column_groups", Edit::stride, "part_step = along ? 1 : width", "part_step = 1"},
      {"reduce_column_groups", Edit::stride, "add_offsets_by_reciprocals(j, reduced_rank,", "add_offsets_by_reciprocals(j / 2, reduced_rank,"},
      {"reduce_column_groups", Edit::offset, "result = panel * width + c;", "result = panel * width + c / 2;"},
      {"reduce_column_groups", Edit::arithmetic, "x[0], x[2])", "x[0], x[0])"},
      {"reduce_column_groups", Edit::arithmetic, "q + reversed * REDUCE_COLUMN_ITEMS", "q + t * REDUCE_COLUMN_ITEMS"},
      {"reduce_columns", Edit::tail, "for (; l < width; ++l)", "for (; l + 1 < width; ++l)"},
      {"reduce_columns", Edit::offset, "STORE_RESULTS(offset[0] + l", "STORE_RESULTS(offset[0] + l + 1"},
      {"reduce_columns", Edit::tail, "j >= filled", "j > filled"},
      {"reduce_columns", Edit::tail, "used / 2 >= m", "used >= m"},
      {"reduce_columns", Edit::tail, "CLUTCH_PARTIALS / 2 : 16", "16 : 16"},
      {"reduce_columns", Edit::stride, "row[k] += step[k]", "row[k] += across[k]"},
      {"reduce_columns", Edit::offset, "row[k] = offset[k] + begin * step[k]", "row[k] = offset[k] + (begin + 1) * step[k]"},
      {"reduce_columns", Edit::arithmetic, "acc[k][v], acc[k + h][v])", "acc[k][v], acc[k][v])"},
      {"reduce_columns", Edit::offset, "min((v)*WIDTH, width - WIDTH)", "((v)*WIDTH)"},
      {"reduce_columns", Edit::offset, "whole * WIDTH + l - (width - WIDTH)", "l"},
      {"reduce_columns", Edit::stride, "reduced[k][d + 1] - reduced_size[d] * reduced[k][d]", "reduced[k][d + 1]"},
      {"reduce_buffered", Edit::tail, "from = min(t, (IDX)(run - WIDTH))", "from = min(t, (IDX)(run - WIDTH)) / 2"},
      {"reduce_buffered", Edit::tail, "from = min(j, (IDX)(length - WIDTH))", "from = min(j, (IDX)(length - WIDTH)) / WIDTH * WIDTH"},
      {"reduce_buffered", Edit::tail, "ahead = (int)(WIDTH - left)", "ahead = 0"},
      {"reduce_buffered", Edit::tail, "from[j] = (A)CLUTCH_IDENTITY", "from[j] = 1"},
      {"reduce_buffered", Edit::stride, "(l - skipped) * inner", "(l - skipped) * length"},
      {"reduce_buffered", Edit::offset, "begin += count, filled -= count", "begin = 0, filled -= count"},
      {"reduce_buffered", Edit::offset, "buffer[j] = buffer[begin + j]", "buffer[j] = buffer[j]"},
      {"reduce_buffered", Edit::offset, "here[k] - ahead * reduced[k][across]", "here[k]"},
      {"reduce_buffered", Edit::arithmetic, "acc[v], GET(from + j))", "acc[v], GET(from))"},
      {"reduce_buffered", Edit::stride, "here[k] -= skipped * reduced[k][across]", "here[k] -= 0"},
      {"reduce_buffered", Edit::offset, "begun[skipped] = carried", "begun[skipped] = begun[skipped]"},
      {"reduce_buffered", Edit::offset, "PUT(part->chain, GET(part->chain + CLUTCH_CHAIN))", "PUT(part->chain, GET(part->chain))"},
      {"reduce_buffered", Edit::offset, "begun->chain[j] = rest->chain[j]", "begun->chain[j] = (A)CLUTCH_IDENTITY"},
      {"reduce_buffered", Edit::offset, "begun->sums[v] = rest->sums[v]", "begun->sums[v] = begun->sums[v]"},
      {"reduce_buffered", Edit::offset, "put_runs(begun[l].chain + filled", "put_runs(begun[l].chain"},
      {"reduce_buffered", Edit::tail, "begun[l].chain, count % CLUTCH_CHAIN", "begun[l].chain, CLUTCH_CHAIN"},
      {"reduce_buffered", Edit::arithmetic, "GET(chain + j + v * WIDTH)", "GET(chain + v * WIDTH)"},
      {"reduce_strided", Edit::tail, "end = (IDX)min((block + 1) * REDUCE_BLOCK, m)", "end = (IDX)min((block + 1) * REDUCE_BLOCK, m) - 1"},
      {"reduce_strided", Edit::stride, "REDUCED_SHAPE\n  CLUTCH_SHIFT_BUFFERS\n  REDUCE_TASKS",
       "REDUCED_SHAPE\n  reduced[1][0] -= 1;\n  CLUTCH_SHIFT_BUFFERS\n  REDUCE_TASKS"},
      {"reduce_strided", Edit::offset, "add_offsets((IDX)number, rank, size, kept, 0, offset)", "add_offsets((IDX)number + 1, rank, size, kept, 1, offset)"},
      {"reduce_strided", Edit::arithmetic, "STORE_RESULT(offset[0], block, blocks, number, result)",
       "STORE_RESULT(offset[0], block, blocks, number, result + result)"},
  };
};

}  // namespace clutch::cases
