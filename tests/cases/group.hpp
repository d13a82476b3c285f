// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of group: what tests and benches share. The model is std::stable_sort.
#include <clutch/ops/copy.hpp>
#include <clutch/ops/group.hpp>

#include "cases/segment.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

namespace clutch::cases {

struct GroupCase {
  static constexpr std::string_view kStem = "group";

  /// i64 indices are read, i32 order and offsets written.
  static double bytes(std::int64_t entries, std::int64_t groups) { return 12.0 * static_cast<double>(entries) + 4.0 * static_cast<double>(groups + 1); }

  static std::vector<std::int64_t> indices(std::int64_t n, std::int64_t groups, std::uint64_t seed, std::int64_t beyond = 0) {
    model::Random random(seed);
    std::vector<std::int64_t> index;
    for (std::int64_t k = 0; k < n; ++k) index.push_back(static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(groups + 2 * beyond)) - beyond);
    return index;
  }

  /// Offsets, then the order; entries of no group last.
  static std::vector<std::int64_t> model(const std::vector<std::int64_t>& index, std::int64_t groups) {
    std::vector<std::int64_t> offsets(static_cast<std::size_t>(groups) + 1, 0), order(index.size());
    std::iota(order.begin(), order.end(), 0);
    auto key = [&](std::int64_t k) { return index[static_cast<std::size_t>(k)] < 0 ? groups : std::min(index[static_cast<std::size_t>(k)], groups); };
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return key(a) < key(b); });
    for (std::int64_t k : order)
      if (key(k) < groups) ++offsets[static_cast<std::size_t>(key(k)) + 1];
    std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
    offsets.insert(offsets.end(), order.begin(), order.end());
    return offsets;
  }

  static Problem problem(std::string_view entry, DType dtype, std::int64_t n, std::int64_t groups, std::int64_t beyond, std::uint64_t seed) {
    Problem p{.name = std::string(name(dtype)), .entry = entry, .is_helper = true};
    const std::string forced = entry.starts_with("group_tile_") ? "group_tiles" : "group_items";
    std::vector<std::int64_t> index = indices(n, groups, seed, beyond);
    p.inputs.push_back(SegmentCase::integers(dtype, index));
    p.output = SegmentCase::integers(DType::i64, model(index, groups));
    p.run = [=](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      Groups made = group_by(in[0], groups, {.implementation = forced}, stream);
      copy_(out.slice(0, 0, groups + 1), made.offsets, {}, stream);
      copy_(out.slice(0, groups + 1, groups + 1 + n), made.order, {}, stream);
    };
    return p;
  }

  static std::vector<Problem> problems(std::uint64_t seed) {
    std::vector<Problem> all;
    for (std::string_view entry : {"group_count", "group_scan", "group_base", "group_place", "group_offsets"})
      all.push_back(problem(entry, entry == "group_count" ? DType::i32 : DType::i64, 700, 3000, entry == "group_offsets" ? 0 : 3, seed));
    all.push_back(problem("group_base", DType::i64, 700, 300, 3, seed));  // one pass, whose totals are the offsets
    all.back().name += " of one pass";
    // A whole tile and a part of one; two passes of 6 bits.
    for (std::string_view entry : {"group_tile_count", "group_tile_scan", "group_tile_place"})
      all.push_back(problem(entry, entry == "group_tile_count" ? DType::i32 : DType::i64, 2100, 3000, 3, seed));
    return all;
  }

  static constexpr Mutation kMutations[] = {
      {"group_count", Edit::tail, "i < min((p + 1) * chunk, n)", "i + 1 < min((p + 1) * chunk, n)"},
      {"group_count", Edit::stride, "+ p * digits", "+ p * (digits - 1)"},
      {"group_count", Edit::offset, "key_of(source, i, &args)", "key_of(source, i > 0 ? i - 1 : i, &args)"},
      {"group_count", Edit::arithmetic, "+= 1;", "+= i & 1;"},
      {"group_scan", Edit::tail, "p < parts; ++p", "p + 1 < parts; ++p"},
      {"group_scan", Edit::stride, "const ID here = count[p * digits + first + d]", "const ID here = count[p + first + d]"},
      {"group_scan", Edit::offset, "total[first + d] = sums[d]", "total[first + (d ^ 1)] = sums[d]"},
      {"group_scan", Edit::arithmetic, "sums[d] += here", "sums[d] = here"},
      {"group_base", Edit::tail, "d < digits; ++d", "d < digits / 2; ++d"},
      {"group_base", Edit::stride, "d < digits; ++d", "d < digits; d += 2"},
      {"group_base", Edit::offset, "total[d] = sum", "total[d] = sum / 2"},
      {"group_base", Edit::arithmetic, "sum += here", "sum += here / 2"},
      {"group_place", Edit::tail, "i < min((p + 1) * chunk, n)", "i + 1 < min((p + 1) * chunk, n)"},
      {"group_place", Edit::stride, "+ p * digits", "+ p / 2 * digits"},
      {"group_place", Edit::offset, "count[d] += total[d]", "count[d] += total[d & ~1]"},
      {"group_place", Edit::arithmetic, "(ID)i;", "(ID)i ^ 1;"},
      {"group_tile_count", Edit::tail, "many += quad_entry(item, k) + i < count;", "many += quad_entry(item, k) + i + 1 < count;"},
      {"group_tile_count", Edit::stride, "const ulong begin = p * GROUP_TILE;", "const ulong begin = p / 2 * GROUP_TILE;"},
      {"group_tile_count", Edit::offset, "(ID)found[item];", "(ID)found[item ^ 1];"},
      {"group_tile_count", Edit::arithmetic, "many += quad_entry(item, k) + i < count;", "many += (quad_entry(item, k) + i) & 1;"},
      {"group_tile_scan", Edit::tail, "begin < row; begin", "begin + 4 < row; begin"},
      {"group_tile_scan", Edit::stride, "const ulong p = begin + 4 * item;", "const ulong p = begin + 4 * (item + 1);"},
      {"group_tile_scan", Edit::offset, "(ID4)(first, first + quad.s0,", "(ID4)(first, first,"},
      {"group_tile_scan", Edit::arithmetic, "(ulong)(quad.s0 + quad.s1 + quad.s2 + quad.s3)", "(ulong)quad.s0"},
      {"group_tile_place", Edit::tail, "(e + 3 < count ?", "(e + 3 < count + GROUP_TILE ?"},
      {"group_tile_place", Edit::stride, "(moved + quad_entry(item, k)) =", "(moved + quad_entry(item, 0)) ="},
      {"group_tile_place", Edit::offset, "8 * item + 4 * k)", "8 * item + 4 - 4 * k)"},
      {"group_tile_place", Edit::arithmetic, "places += 1ul << at;", "places += 1ul << (at & 16);"},
      {"group_offsets", Edit::tail, "(ID)low;", "(ID)min(low, n - 1);"},
      {"group_offsets", Edit::stride, "high = min(low + step - 1, n);", "high = low;"},
      {"group_offsets", Edit::offset, "offset[g] = (ID)low;", "offset[g] = (ID)low + 1;"},
      {"group_offsets", Edit::arithmetic, "low = middle + 1;", "low = middle + 2;"},
  };
};

}  // namespace clutch::cases
