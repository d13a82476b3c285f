// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of nonzero: what tests and benches share.
#include <clutch/ops/nonzero.hpp>

#include "support/host_model.hpp"
#include "support/op_case.hpp"

#include <cstring>
#include <string_view>
#include <vector>

namespace clutch::cases {

struct NonzeroCase {
  static constexpr std::string_view kStem = "nonzero";
  using Raw = std::vector<std::uint8_t>;

  /// Elements are read once to be counted and once to be found, indices written.
  static double bytes(DType dtype, std::int64_t n, std::int64_t found, std::int64_t rank) {
    return 2.0 * static_cast<double>(bits(dtype)) / 8 * static_cast<double>(n) + 8.0 * static_cast<double>(found * rank);
  }

  /// Elements of which about `share` are not 0; of floats some are -0, some NaN.
  static Raw elements(DType dtype, std::int64_t n, double share, std::uint64_t seed) {
    Raw raw(static_cast<std::size_t>(n) * static_cast<std::size_t>(bits(dtype)) / 8);
    model::Random random(seed);
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      const double x = random.uniform(0, 1);
      const bool is_float = is_floating(dtype);
      if (x < share)
        model::store_at(raw.data(), i, dtype, is_float && x < share / 8 ? NAN : is_float && x < share / 2 ? -0.75 : 1 + std::floor(x * 1000));
      else if (is_float && x > 0.9)
        model::store_at(raw.data(), i, dtype, -0.0);
    }
    return raw;
  }

  /// Indices of what is not 0, all of one after those of another.
  static std::vector<std::int64_t> model(const Raw& raw, DType dtype, const Dims& sizes) {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < numel(sizes); ++i) {
      const double x = model::value_at(raw.data(), static_cast<std::size_t>(i), dtype);
      if (x == 0) continue;
      std::vector<std::int64_t> index;
      std::int64_t rest = i;
      for (int d = sizes.rank() - 1; d >= 0; --d) index.insert(index.begin(), rest % sizes[d]), rest /= sizes[d];
      all.insert(all.end(), index.begin(), index.end());
    }
    return all;
  }

  static Problem problem(std::string_view entry, DType dtype, const Dims& sizes, std::int64_t size, double share, std::uint64_t seed) {
    Problem p{.name = std::string(name(dtype)), .entry = entry, .is_helper = true};
    const std::string forced = entry.starts_with("nonzero_tile_") ? "nonzero_tiles" : "nonzero_items";
    const Raw raw = elements(dtype, numel(sizes), share, seed);
    // The first dimension is the innermost one.
    Dims strides = Dims::filled(sizes.rank(), 1);
    for (int d = 1; d < sizes.rank(); ++d) strides[d] = strides[d - 1] * sizes[d - 1];
    p.inputs.push_back({dtype, sizes, strides, raw});
    std::vector<std::int64_t> want = model(raw, dtype, sizes);
    want.resize(static_cast<std::size_t>(size * sizes.rank()), -7);
    p.output = {DType::i64, {size, sizes.rank()}, {}, Raw(8 * want.size())};
    std::memcpy(p.output.raw.data(), want.data(), p.output.raw.size());
    p.run = [=](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      nonzero_static_out(out, in[0], size, {.fill_value = -7, .implementation = forced}, stream);
    };
    return p;
  }

  static std::vector<Problem> problems(std::uint64_t seed) {
    std::vector<Problem> all;
    // Several parts, the last one short; of two kinds of ranks; fewer rows than are found, and more.
    for (std::string_view entry : {"nonzero_count", "nonzero_place", "nonzero_tile_count", "nonzero_tile_place"}) {
      all.push_back(problem(entry, DType::f32, {93, 107}, 6000, 0.5, seed));
      all.push_back(problem(entry, DType::boolean, {3, 5, 7, 11, 13}, 400, 0.5, seed));
    }
    return all;
  }

  static constexpr Mutation kMutations[] = {
      {"nonzero_count", Edit::tail, "end = min(begin + args.chunk, args.n);", "end = min(begin + args.chunk, args.n) - 8;"},
      {"nonzero_count", Edit::stride, "begin = p * args.chunk,", "begin = p / 2 * args.chunk,"},
      {"nonzero_count", Edit::offset, "(counts + counts_offset))[p]", "(counts + counts_offset))[p > 0 ? p - 1 : p]"},
      {"nonzero_count", Edit::arithmetic, "count += few;", "count = few;"},
      {"nonzero_place", Edit::tail, "(ulong)NONZERO_LIST);", "(ulong)NONZERO_LIST - 1);"},
      {"nonzero_place", Edit::stride, "begin = p * chunk,", "begin = p / 2 * chunk,"},
      {"nonzero_place", Edit::offset, "STORE_FOUND(to + k, first + list[k])", "STORE_FOUND(to + k, first + list[k] + 1)"},
      {"nonzero_place", Edit::arithmetic, "to += found;", "to += found - 1;"},
      {"nonzero_tile_count", Edit::tail, "(uint)min(args.n - begin, (ulong)TILE);", "(uint)min(args.n - begin, (ulong)TILE) - 1;"},
      {"nonzero_tile_count", Edit::stride, "at = k * NONZERO_ITEMS + item;", "at = k * (NONZERO_ITEMS - 1) + item;"},
      {"nonzero_tile_count", Edit::offset, "(x + x_offset), begin + at)", "(x + x_offset), begin + at / 2)"},
      {"nonzero_tile_count", Edit::arithmetic, "found += at < count", "found = at < count"},
      {"nonzero_tile_place", Edit::tail, "(uint)min(n - begin, (ulong)TILE);", "(uint)min(n - begin, (ulong)TILE) - 1;"},
      {"nonzero_tile_place", Edit::stride, "at = item * NONZERO_OWN + k,", "at = item * (NONZERO_OWN - 1) + k,"},
      {"nonzero_tile_place", Edit::offset, "? sum_of[p - 1] : 0;", "? sum_of[p] : 0;"},
      {"nonzero_tile_place", Edit::arithmetic, "(1ul << 8 * k) - 1", "(1ul << 8 * k) / 2 - 1"},
  };
};

}  // namespace clutch::cases
