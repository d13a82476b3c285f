// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of sparse24: what tests and benches share. The models work on numbers, quad by quad and tile by tile, as clutch/ops/sparse24.hpp states.
#include <clutch/ops/copy.hpp>
#include <clutch/ops/sparse24.hpp>

#include "support/host_model.hpp"
#include "support/op_case.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>
#include <vector>

namespace clutch::cases {

struct Sparse24Case {
  static constexpr std::string_view kStem = "sparse24";
  static constexpr DType kDtypes[] = {DType::f32, DType::f16, DType::bf16, DType::i8, DType::f8e4m3fn, DType::f8e5m2, DType::f64};

  /// Whether x goes before y where the largest go first.
  static bool before(double x, double y) { return std::isnan(x) ? !std::isnan(y) : x > y; }

  /// What is kept of (m, k) numbers.
  static std::vector<bool> kept(sparse::PruneRule rule, const std::vector<double>& w, std::int64_t m, std::int64_t k) {
    std::vector<bool> keep(w.size(), false);
    const bool groups = rule == sparse::PruneRule::groups, causal = rule == sparse::PruneRule::causal1122;
    const bool magnitudes = groups || rule == sparse::PruneRule::tile_magnitudes;
    auto key = [&](std::size_t i) { return magnitudes ? std::fabs(w[i]) : w[i]; };
    for (std::int64_t top = 0; top < m; top += groups ? 1 : 4)
      for (std::int64_t left = 0; left < k; left += 4) {
        const std::int64_t rows = std::min<std::int64_t>(groups ? 1 : 4, m - top), columns = std::min<std::int64_t>(4, k - left);
        struct Place {
          std::size_t at;
          std::size_t r, c;
        };
        std::vector<Place> order;
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t c = 0; c < columns; ++c)
            order.push_back({static_cast<std::size_t>((top + r) * k + left + c), static_cast<std::size_t>(r), static_cast<std::size_t>(c)});
        std::stable_sort(order.begin(), order.end(),
                         [&](const Place& x, const Place& y) { return causal && x.r != y.r ? x.r < y.r : before(key(x.at), key(y.at)); });
        std::array<int, 4> in_row{}, in_column{};
        for (const Place& p : order) {
          if (in_row[p.r] >= (causal && p.r < 2 ? 1 : 2) || (!groups && in_column[p.c] >= 2)) continue;
          ++in_row[p.r], ++in_column[p.c], keep[p.at] = true;
        }
      }
    return keep;
  }

  /// Places of the two values that metadata names, by which of the four are not zero.
  static std::array<int, 2> places(const std::array<bool, 4>& set) {
    const int count = static_cast<int>(set[0]) + set[1] + set[2] + set[3];
    if (count == 2) {
      std::array<int, 2> two{-1, -1};
      for (int e = 0; e < 4; ++e)
        if (set[static_cast<std::size_t>(e)]) (two[0] < 0 ? two[0] : two[1]) = e;
      return two;
    }
    if (count == 0) return {2, 3};
    if (count == 1) return set[0] ? std::array{0, 2} : set[1] ? std::array{1, 2} : std::array{2, 3};
    if (count == 4 || !set[3] || (set[0] && set[1])) return {0, 1};
    return set[0] ? std::array{0, 3} : std::array{1, 3};
  }

  static std::vector<double> numbers(const Operand& o) {
    std::vector<double> v;
    for (std::size_t i = 0; i < static_cast<std::size_t>(numel(o.sizes)); ++i) v.push_back(model::value_at(o.raw.data(), i, o.dtype));
    return v;
  }

  static Operand matrix(DType dtype, std::int64_t m, std::int64_t k, bool transposed, std::uint64_t seed) {
    return {dtype, {m, k}, transposed ? Dims{1, m + 1} : Dims{k + 3, 1}, model::make_values(static_cast<std::size_t>(m * k), dtype, seed, false)};
  }
  /// Only what the rule keeps.
  static Operand pruned(sparse::PruneRule rule, const Operand& w) {
    Operand p = w;
    p.strides = {};
    const std::vector<bool> keep = kept(rule, numbers(w), w.sizes[0], w.sizes[1]);
    for (std::size_t i = 0; i < keep.size(); ++i)
      if (!keep[i]) model::store_at(p.raw.data(), i, p.dtype, 0);
    return p;
  }

  static Problem prune(std::string_view entry, DType dtype, sparse::PruneRule rule, std::int64_t m, std::int64_t k, bool transposed, std::uint64_t seed) {
    Problem p{.name = std::string(name(dtype)), .entry = entry, .needs_fp64 = dtype == DType::f64, .is_helper = true};
    p.inputs = {matrix(dtype, m, k, transposed, seed)};
    p.output = pruned(rule, p.inputs[0]);
    p.run = [rule](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      copy_(out, sparse::prune_2_4(in[0], {.rule = rule}, stream), {}, stream);
    };
    return p;
  }
  /// Compressed and back, or its values alone.
  static Problem round_trip(std::string_view entry, DType dtype, std::int64_t m, std::int64_t k, bool transposed, std::uint64_t seed) {
    Problem p{.name = std::string(name(dtype)), .entry = entry, .needs_fp64 = dtype == DType::f64, .is_helper = true};
    Operand w = pruned(sparse::PruneRule::groups, matrix(dtype, m, k, false, seed));
    for (std::size_t i = 0; i < static_cast<std::size_t>(m * k); ++i)
      if (model::value_at(w.raw.data(), i, dtype) == 0) model::store_at(w.raw.data(), i, dtype, 0);  // of zeros the sign may go
    p.output = w;
    w.strides = transposed ? Dims{1, m + 1} : Dims{k + 3, 1};
    p.inputs = {w};
    p.run = [](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      copy_(out, sparse::decompress(sparse::compress(in[0], {}, stream), stream), {}, stream);
    };
    return p;
  }
  /// To CUTLASS's order and back, or there alone.
  static Problem cutlass(DType dtype, std::int64_t m, std::int64_t k, std::uint64_t seed) {
    Problem p{.name = std::string(name(dtype)), .entry = "sparse24_cutlass", .is_helper = true};
    Operand w = pruned(sparse::PruneRule::groups, matrix(dtype, m, k, false, seed));
    p.inputs = {w};
    const std::vector<double> x = numbers(w);
    const bool bytes = dtype == DType::i8;
    const std::int64_t per_word = bytes ? 32 : 16, columns = k / per_word, group = bytes ? 16 : 32;
    p.output = {bytes ? DType::i32 : DType::i16, {m, columns}, {}, std::vector<std::uint8_t>(static_cast<std::size_t>(m * columns) * (bytes ? 4 : 2))};
    for (std::int64_t r = 0; r < m; ++r)
      for (std::int64_t c = 0; c < columns; ++c) {
        std::uint64_t word = 0;
        for (std::int64_t g = 0; g < per_word / 4; ++g) {
          std::array<bool, 4> set{};
          for (std::size_t e = 0; e < 4; ++e) set[e] = x[static_cast<std::size_t>(r * k + c * per_word + 4 * g) + e] != 0;
          const auto two = places(set);
          word |= static_cast<std::uint64_t>(two[0] | two[1] << 2) << 4 * g;
        }
        std::int64_t row = r / group * group + r % 8 * (bytes ? 2 : 4) + r % group / 8, column = c;
        if (row % 2 == 0 && column % 2 == 1)
          ++row, --column;
        else if (row % 2 == 1 && column % 2 == 0)
          --row, ++column;
        const auto to = static_cast<std::size_t>(column / 2 * m * 2 + row * 2 + column % 2);
        model::store_at(p.output.raw.data(), to, p.output.dtype,
                        bytes ? static_cast<double>(static_cast<std::int32_t>(word)) : static_cast<double>(static_cast<std::int16_t>(word)));
      }
    p.run = [](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      const sparse::SemiStructured s = sparse::compress(in[0], {}, stream);
      copy_(out, sparse::to_cutlass(sparse::from_cutlass(sparse::to_cutlass(s, stream), stream), stream).metadata, {}, stream);
    };
    return p;
  }
  /// A product that packs: of small whole numbers, so that any order gives its sums.
  static Problem product(std::string_view entry, DType dtype, std::int64_t m, std::int64_t n, std::int64_t k, std::uint64_t seed) {
    Problem p{.name = std::string(name(dtype)), .entry = entry, .is_helper = true};
    Operand w = matrix(dtype, m, k, false, seed), b{dtype, {k, n}, {}, model::make_values(static_cast<std::size_t>(k * n), dtype, seed + 1, false)};
    auto whole = [](Operand& o) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(numel(o.sizes)); ++i)
        model::store_at(o.raw.data(), i, o.dtype, std::clamp(std::nearbyint(std::fmod(model::value_at(o.raw.data(), i, o.dtype) * 3, 5.0)), -4.0, 4.0));
    };
    whole(w), whole(b);
    w = pruned(sparse::PruneRule::groups, w);
    p.inputs = {w, b};
    const std::vector<double> x = numbers(w), y = numbers(b);
    p.output = {dtype == DType::i8 ? DType::i32 : DType::f32, {m, n}, {}, std::vector<std::uint8_t>(static_cast<std::size_t>(4 * m * n))};
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t l = 0; l < k; ++l) sum += x[static_cast<std::size_t>(i * k + l)] * y[static_cast<std::size_t>(l * n + j)];
        model::store_at(p.output.raw.data(), static_cast<std::size_t>(i * n + j), p.output.dtype, sum);
      }
    const std::string_view forced = entry == "sparse24_pack_words" ? "matmul_sparse_dot" : "";
    p.run = [forced](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      copy_(out, sparse::matmul(sparse::compress(in[0], {}, stream), in[1], {.dtype = out.dtype(), .implementation = std::string(forced)}, stream), {}, stream);
    };
    return p;
  }

  static std::vector<Problem> problems(std::uint64_t seed) {
    using sparse::PruneRule;
    return {prune("sparse24_groups", DType::f32, PruneRule::groups, 3, 300, false, seed),
            prune("sparse24_groups", DType::bf16, PruneRule::groups, 5, 39, true, seed + 1),
            prune("sparse24_tiles", DType::f32, PruneRule::tile_magnitudes, 9, 15, false, seed + 2),
            prune("sparse24_tiles", DType::f16, PruneRule::causal1122, 8, 12, true, seed + 3),
            round_trip("sparse24_compress", DType::f32, 3, 297, false, seed + 4),
            round_trip("sparse24_compress", DType::i8, 5, 30, true, seed + 5),
            round_trip("sparse24_compress", DType::i8, 3, 297, false, seed + 12),
            round_trip("sparse24_decompress", DType::bf16, 4, 43, false, seed + 6),
            product("sparse24_pack", DType::f32, 19, 150, 37, seed + 7),
            product("sparse24_pack", DType::bf16, 35, 9, 41, seed + 8),
            product("sparse24_pack_words", DType::i8, 35, 9, 77, seed + 11),
            cutlass(DType::f16, 64, 64, seed + 9),
            cutlass(DType::i8, 32, 128, seed + 10)};
  }

  static constexpr Mutation kMutations[] = {
      {"sparse24_groups", Edit::tail, "const ulong count = min(4ul, end - at);\n      T x[4]", "const ulong count = min(4ul, end - at - 1);\n      T x[4]"},
      {"sparse24_groups", Edit::stride, "from[(long)(at + e) * w_k]", "from[(long)(at + e / 2) * w_k]"},
      {"sparse24_groups", Edit::offset, "w + (long)row * w_row", "w"},
      {"sparse24_groups", Edit::arithmetic, "(key[j] == key[i] && j < i)", "(key[j] != key[i] && j < i)"},
      {"sparse24_tiles", Edit::tail, "columns = min(4ul, k - left)", "columns = min(3ul, k - left)"},
      {"sparse24_tiles", Edit::stride, "(long)(left + c) * w_k", "(long)(left + c / 2) * w_k"},
      {"sparse24_tiles", Edit::offset, "(long)(top + r) * w_row", "(long)r * w_row"},
      {"sparse24_tiles", Edit::arithmetic, "key[e] > key[best]", "key[e] < key[best]"},
      {"sparse24_compress", Edit::tail, "left = (int)min(k - 4 * g, (ulong)4);", "left = (int)min(k - 4 * g, (ulong)4) - 1;"},
      {"sparse24_compress", Edit::stride, "quad[3 * w_k]", "quad[2 * w_k]"},
      {"sparse24_compress", Edit::offset, "values + row * 2 * row_groups", "values"},
      {"sparse24_compress", Edit::arithmetic, "low | code << 4", "low | code << 3"},
      {"sparse24_decompress", Edit::tail, "e < 4 && 4 * g + e < k", "e < 4 && 4 * g + e + 1 < k"},
      {"sparse24_decompress", Edit::stride, "metadata + row * sparse24_row_metadata(row_groups)", "metadata + row * (row_groups / 2)"},
      {"sparse24_decompress", Edit::offset, "out + row * k", "out"},
      {"sparse24_decompress", Edit::arithmetic, "4 * (g & 1) & 15", "2 * (g & 1) & 15"},
      {"sparse24_pack", Edit::tail, "row < m && at < row_groups", "row < m && at + 1 < row_groups"},
      {"sparse24_pack", Edit::stride, "number = sparse24_packed_numbers(to, CLUTCH_ROWS) + s * CLUTCH_ROWS + r",
       "number = sparse24_packed_numbers(to, CLUTCH_ROWS) + s * CLUTCH_ROWS + r / 2"},
      {"sparse24_pack", Edit::offset, "i % tiles * CLUTCH_ROWS", "0 * CLUTCH_ROWS"},
      {"sparse24_pack", Edit::arithmetic, "code * CLUTCH_PANEL_BYTES", "code / 2 * CLUTCH_PANEL_BYTES"},
      {"sparse24_pack_words", Edit::tail, "4 * block + s < steps", "4 * block + s + 1 < steps"},
      {"sparse24_pack_words", Edit::stride, "(1 + s) * CLUTCH_ROWS", "(1 + s / 2) * CLUTCH_ROWS"},
      {"sparse24_pack_words", Edit::offset, "values + row * 2 * row_groups", "values"},
      {"sparse24_pack_words", Edit::arithmetic, "0x00CC00CCu", "0x000000CCu"},
      {"sparse24_cutlass", Edit::tail, "i < m * columns", "i + 1 < m * columns"},
      {"sparse24_cutlass", Edit::stride, "c / 2 * m * 2", "c / 2 * m"},
      {"sparse24_cutlass", Edit::offset, "in + in_offset", "in + in_offset + 2"},
      {"sparse24_cutlass", Edit::arithmetic, "r + right - left", "r + left - right"},
  };
};

}  // namespace clutch::cases
