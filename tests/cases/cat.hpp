// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of cat, stack, split and copies of lists: what tests and benches share.
#include <clutch/ops/cat.hpp>
#include <clutch/ops/copy.hpp>

#include "support/host_model.hpp"
#include "support/op_case.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace clutch::cases {

struct CatCase {
  static constexpr std::string_view kStem = "cat";
  static constexpr DType kDtypes[] = {DType::u8, DType::bf16, DType::f32, DType::i64, DType::c128};

  static double bytes(std::int64_t n, DType dtype) { return 2.0 * static_cast<double>(n) * bits(dtype) / 8; }

  /// Raw values of the join of contiguous tensors along `dim`, element by element of the result.
  static std::vector<std::uint8_t> reference(std::span<const Operand> parts, int dim) {
    const auto size = static_cast<std::size_t>(bits(parts[0].dtype) / 8);
    Dims sizes = parts[0].sizes;
    sizes[dim] = 0;
    for (const Operand& p : parts) sizes[dim] += p.sizes[dim];
    std::vector<std::uint8_t> all(size * static_cast<std::size_t>(numel(sizes)));
    for (std::size_t i = 0; i * size < all.size(); ++i) {
      Dims at = Dims::filled(sizes.rank(), 0);
      std::size_t rest = i;
      for (int d = sizes.rank() - 1; d >= 0; --d) at[d] = static_cast<std::int64_t>(rest) % sizes[d], rest /= static_cast<std::size_t>(sizes[d]);
      std::size_t part = 0;
      while (at[dim] >= parts[part].sizes[dim]) at[dim] -= parts[part++].sizes[dim];
      std::int64_t from = 0;
      for (int d = 0; d < sizes.rank(); ++d) from = from * parts[part].sizes[d] + at[d];
      std::memcpy(all.data() + i * size, parts[part].raw.data() + static_cast<std::size_t>(from) * size, size);
    }
    return all;
  }

  static Problem problem(std::string_view name, std::string_view entry, DType dtype, const std::vector<Dims>& sizes, int dim, const Dims& strides,
                         const Dims& out_strides, std::uint64_t seed) {
    Problem p{.name = std::string(name), .entry = entry};
    Dims whole = sizes[0];
    whole[dim] = 0;
    for (const Dims& s : sizes) {
      model::Random random(seed++);
      std::vector<std::uint8_t> raw(bytes_for(dtype, static_cast<std::uint64_t>(numel(s))));
      for (std::uint8_t& b : raw) b = static_cast<std::uint8_t>(random.next());
      if (is_floating(dtype)) raw = model::make_values(static_cast<std::size_t>(numel(s)), dtype, seed);
      p.inputs.push_back({dtype, s, strides, raw});
      whole[dim] += s[dim];
    }
    p.output = {dtype, whole, out_strides, reference(p.inputs, dim)};
    p.run = [dim, entry](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      cat_out(out, in, dim, {.implementation = std::string(entry)}, stream);
    };
    return p;
  }

  static std::vector<Problem> problems(std::uint64_t seed) {
    std::vector<Problem> all;
    all.push_back(problem("f32 rows", "cat_rows", DType::f32, {{3, 5}, {3, 1}, {3, 70}}, 1, {}, {80, 1}, seed));
    // Several chunks, which begin within rows.
    all.push_back(problem("f32 long rows", "cat_rows", DType::f32, {{5, 5001}, {5, 7}}, 1, {}, {}, seed + 60));
    all.push_back(problem("i16 columns", "cat_rows", DType::i16, {{600, 1}, {600, 1}, {600, 1}}, 1, {}, {}, seed + 50));
    all.push_back(problem("u8 flat", "cat_rows", DType::u8, {{9001}, {1}, {0}, {300}}, 0, {}, {}, seed + 10));
    all.push_back(problem("bf16 middle", "cat_rows", DType::bf16, {{2, 3, 33}, {2, 1, 33}}, 1, {}, {}, seed + 20));
    all.back().output.lead = 64;
    for (Operand& o : all.back().inputs) o.lead = 64;
    all.push_back(problem("i64 strided", "cat_strided", DType::i64, {{7, 2, 5}, {7, 4, 5}}, 1, {1, 7, 30}, {}, seed + 30));
    all.push_back(problem("f32 flat", "cat_strided", DType::f32, {{70000}, {5}}, 0, {}, {2}, seed + 40));
    return all;
  }

  static constexpr Mutation kMutations[] = {
      {"cat_rows", Edit::tail, "r.end = min(r.begin + CLUTCH_TILE, r.words[count_word])", "r.end = min(r.begin + CLUTCH_TILE, r.words[count_word] - 1)"},
      {"cat_rows", Edit::stride, "from_stride = chunk.words[CAT_FROM_STRIDE]", "from_stride = chunk.words[CAT_TO_STRIDE]"},
      {"cat_rows", Edit::offset, "column = chunk.begin - row * length", "column = (chunk.begin - row * length) / 2"},
      {"cat_rows", Edit::arithmetic, "args->first_chunk + c]", "args->first_chunk + c / 2]"},
      {"cat_strided", Edit::tail, "r.end = min(r.begin + CLUTCH_TILE, r.words[count_word])", "r.end = min(r.begin + CLUTCH_TILE, r.words[count_word] - 1)"},
      {"cat_strided", Edit::stride, "at * words[CAT_FROM_STRIDES + d]", "at * words[CAT_TO_STRIDES + d]"},
      {"cat_strided", Edit::offset, "row + CAT_FROM", "row + CAT_TO"},
      {"cat_strided", Edit::offset, "at.x + column * to_stride", "at.x + column / 2 * to_stride"},
      {"cat_strided", Edit::arithmetic, "i - next * size", "i - next * size / 2"},
  };
};

}  // namespace clutch::cases
