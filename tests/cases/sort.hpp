// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of sort: what tests and benches share. The model is std::stable_sort.
#include <clutch/ops/sort.hpp>

#include "support/host_model.hpp"
#include "support/op_case.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

namespace clutch::cases {

struct SortCase {
  static constexpr std::string_view kStem = "sort";
  static constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::f16,     DType::bf16, DType::i64, DType::i32, DType::i16,
                                      DType::i8,  DType::u8,  DType::boolean, DType::u16,  DType::u32, DType::u64};
  /// Those that tests go through: by day one of each kind and size.
  static std::vector<DType> dtypes(std::string_view level) {
    if (level == "smoke") return {DType::f32, DType::f64, DType::bf16, DType::i64, DType::i8, DType::boolean, DType::u64};
    return {std::begin(kDTypes), std::end(kDTypes)};
  }
  using Raw = std::vector<std::uint8_t>;
  static std::size_t size_of(DType dtype) { return static_cast<std::size_t>(bits(dtype)) / 8; }

  /// Elements are read, values and i64 indices written.
  static double bytes(DType dtype, std::int64_t n, std::int64_t lines, std::int64_t keep) {
    return static_cast<double>(size_of(dtype)) * static_cast<double>(n) + static_cast<double>(size_of(dtype) + 8) * static_cast<double>(lines * keep);
  }

  /// Elements with repeats; of floats among them NaN with and without sign, infinities, zeros of both signs and subnormals.
  static Raw elements(DType dtype, std::int64_t n, std::uint64_t seed, bool special = true) {
    Raw raw(static_cast<std::size_t>(n) * size_of(dtype));
    model::Random random(seed);
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      const std::uint64_t r = random.next();
      if (dtype == DType::i64 || dtype == DType::u64) {
        // Also such as doubles do not tell apart.
        const std::int64_t x = r % 4 == 0   ? static_cast<std::int64_t>(r)
                               : r % 4 == 1 ? INT64_MAX - static_cast<std::int64_t>(r / 64 % 3)
                                            : static_cast<std::int64_t>(r / 64 % 100) - 50;
        std::memcpy(raw.data() + 8 * i, &x, 8);
        continue;
      }
      const double wide = (static_cast<double>(r >> 11) * 0x1p-53 - 0.5) * 200, narrow = std::floor(wide / 8);
      double x = r % 3 == 0 ? narrow : wide;
      if (special && is_floating(dtype) && r % 5 == 0) {
        constexpr double kSpecial[] = {0.0, -0.0, INFINITY, -INFINITY, 5e-8, -5e-8};
        x = kSpecial[r / 8 % 6];
        if (r / 64 % 4 == 0) x = std::copysign(NAN, r / 256 % 2 == 0 ? 1.0 : -1.0);
      }
      model::store_at(raw.data(), i, dtype, x);
    }
    return raw;
  }

  /// The order of elements first to first + m of raw storage, as places in that line.
  static std::vector<std::int64_t> order(const Raw& raw, DType dtype, std::int64_t first, std::int64_t m, bool descending) {
    std::vector<std::int64_t> places(static_cast<std::size_t>(m));
    std::iota(places.begin(), places.end(), 0);
    auto sort = [&](auto at, auto less) {
      std::stable_sort(places.begin(), places.end(), [&](std::int64_t a, std::int64_t b) { return descending ? less(at(b), at(a)) : less(at(a), at(b)); });
    };
    if (dtype == DType::i64) {
      auto at = [&](std::int64_t i) {
        std::int64_t x = 0;
        std::memcpy(&x, raw.data() + 8 * (first + i), 8);
        return x;
      };
      sort(at, std::less<>());
    } else if (dtype == DType::u64) {
      auto at = [&](std::int64_t i) {
        std::uint64_t x = 0;
        std::memcpy(&x, raw.data() + 8 * (first + i), 8);
        return x;
      };
      sort(at, std::less<>());
    } else {
      auto at = [&](std::int64_t i) { return model::value_at(raw.data(), static_cast<std::size_t>(first + i), dtype); };
      sort(at, [](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; });
    }
    return places;
  }

  struct Result {
    Raw values;
    std::vector<std::int64_t> indices;
  };
  /// Lines of m elements, of which the first `keep` in order are the result.
  static Result model(const Raw& raw, DType dtype, std::int64_t lines, std::int64_t m, std::int64_t keep, bool descending) {
    Result result;
    for (std::int64_t line = 0; line < lines; ++line) {
      const std::vector<std::int64_t> places = order(raw, dtype, line * m, m, descending);
      for (std::int64_t k = 0; k < keep; ++k) {
        const std::int64_t at = places[static_cast<std::size_t>(k)];
        result.indices.push_back(at);
        const auto from = raw.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(line * m + at) * size_of(dtype));
        result.values.insert(result.values.end(), from, from + static_cast<std::ptrdiff_t>(size_of(dtype)));
      }
    }
    return result;
  }

  /// The values, or the indices, of a call.
  static Problem problem(std::string_view entry, DType dtype, std::int64_t lines, std::int64_t m, std::int64_t k, bool largest, bool indices,
                         std::uint64_t seed) {
    // The copy into the output comes last.
    Problem p{.name = std::string(name(dtype)), .entry = entry, .is_helper = true};
    const std::string forced = entry.starts_with("sort_tile") ? "sort_tiles" : entry == "sort_bundles" ? "sort_bundles" : "sort_items";
    const Raw raw = elements(dtype, lines * m, seed);
    p.inputs.push_back({dtype, {lines, m}, {1, lines}, raw});
    const Result want = model(raw, dtype, lines, m, k, largest);
    p.output = {indices ? DType::i64 : dtype, {lines, k}, {}, want.values};
    if (indices) {
      p.output.raw.resize(8 * want.indices.size());
      std::memcpy(p.output.raw.data(), want.indices.data(), p.output.raw.size());
    }
    p.run = [=](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      const Sorted into = indices ? Sorted{{}, out} : Sorted{out, {}};
      topk_out(into, in[0], k, -1, {.largest = largest, .implementation = forced}, stream);
    };
    return p;
  }

  static std::vector<Problem> problems(std::uint64_t seed) {
    std::vector<Problem> all;
    auto add = [&](std::string_view entry, DType dtype, std::int64_t lines, std::int64_t m, std::int64_t k, bool largest) {
      for (bool indices : {false, true}) all.push_back(problem(entry, dtype, lines, m, k, largest, indices, seed));
    };
    // By digits, by insertion, and of few that are kept.
    add("sort_runs", DType::f32, 3, 301, 301, false);
    add("sort_runs", DType::i16, 3, 21, 20, true);
    add("sort_runs", DType::f64, 2, 3001, 40, true);
    add("sort_runs", DType::u8, 2, 300, 5, true);
    add("sort_bundles", DType::f32, 19, 29, 29, false);
    add("sort_bundles", DType::i8, 3, 16, 9, true);
    // More runs than cores, and as many as groups of several items need.
    add("sort_merge", DType::f32, 1, 8192 + 77, 8192 + 77, true);
    add("sort_merge", DType::f64, 1, 8192 + 77, 3000, false);
    // Several lines in a tile; a run of a line.
    add("sort_tiles", DType::bf16, 70, 37, 37, true);
    add("sort_tiles", DType::f64, 3, 900, 500, false);
    add("sort_tile_merge", DType::f32, 1, 3 * 2048 + 100, 3 * 2048 + 100, false);
    add("sort_tile_merge", DType::i64, 2, 2 * 1024 + 100, 1500, true);
    return all;
  }

  static constexpr Mutation kMutations[] = {
      {"sort_runs", Edit::tail, "i < length; ++i", "i + 1 < length; ++i"},
      {"sort_runs", Edit::stride, "x_of + line * m;", "x_of + line * (m - 1);"},
      {"sort_runs", Edit::offset, "key_of(x_line[i], &args), i);", "key_of(x_line[i], &args), i ^ 1);"},
      {"sort_runs", Edit::arithmetic, "descending ? ~key & ALL_BITS : key;", "descending ? key : ~key & ALL_BITS;"},
      {"sort_bundles", Edit::tail, "begin + distance < m; begin", "begin + distance + 1 < m; begin"},
      {"sort_bundles", Edit::stride, "begin += 2 * p", "begin += 4 * p"},
      {"sort_bundles", Edit::offset, "x_of + (line + min(l, count - 1)) * m;", "x_of + line * m;"},
      {"sort_bundles", Edit::arithmetic, "= max(low, high);", "= high;"},
      {"sort_merge", Edit::tail, "end = min(begin + chunk, sort", "end = min(begin + chunk - 1, sort"},
      {"sort_merge", Edit::stride, "*b = a + sort_stride(keep, span);", "*b = a + span;"},
      {"sort_merge", Edit::offset, "ulong j = begin - i", "ulong j = begin - i + 1"},
      {"sort_merge", Edit::arithmetic, "j += takes_b;", "j += 1;"},
      {"sort_tiles", Edit::tail, "in_run < length &&", "in_run + 1 < length &&"},
      {"sort_tiles", Edit::stride, "(run + number) * stride + in_run", "(run + number) * (stride - 1) + in_run"},
      {"sort_tiles", Edit::offset, "begin + in_run);", "begin + in_run + 1);"},
      {"sort_tiles", Edit::arithmetic, "swaps ? high : low", "low"},
      {"sort_tile_merge", Edit::tail, "tiles = (longest + TILE - 1) / TILE;", "tiles = longest / TILE;"},
      {"sort_tile_merge", Edit::stride, "(line * read + 2 * r) * sort_stride(keep, span)", "(line * read + r) * sort_stride(keep, span)"},
      {"sort_tile_merge", Edit::offset, "b_first = begin - a_first;", "b_first = begin - a_first - (begin > a_first);"},
      {"sort_tile_merge", Edit::arithmetic, "own[k] = takes_b ? of_b : of_a;", "own[k] = of_a;"},
  };
};

}  // namespace clutch::cases
