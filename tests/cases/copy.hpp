// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of copy_ and cast: what tests and benches share.
#include <clutch/ops/copy.hpp>

#include "support/host_model.hpp"
#include "support/op_case.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace clutch::cases {

struct CopyCase {
  static constexpr std::string_view kStem = "copy";
  static constexpr DType kReals[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8e4m3fn, DType::f8e5m2, DType::f8e8m0fnu, DType::i8,
                                     DType::u8,  DType::i16, DType::i32, DType::i64,  DType::boolean,  DType::u16,    DType::u32,       DType::u64};
  static std::vector<std::int64_t> lengths(std::string_view level) {
    std::vector<std::int64_t> n{0, 1, 7, 16, 17, 8193, 33001};
    if (level == "nightly") n.insert(n.end(), {1 << 20, (1 << 22) + 3});
    return n;
  }
  static double bytes(std::int64_t n, DType from, DType to) { return static_cast<double>(n) * (bits(from) + bits(to)) / 8; }

  /// Element i of `from` cast into element i of `to`. Integers go through exact 64-bit arithmetic where a double would round.
  static void reference(void* to, DType to_type, const void* from, DType from_type, std::size_t i, Overflow overflow) {
    bool from_whole = is_integral(from_type) || from_type == DType::boolean;
    if (!from_whole) return model::store_at(to, i, to_type, model::value_at(from, i, from_type), overflow);
    auto size = static_cast<std::size_t>(bits(from_type) / 8);
    std::uint64_t raw = 0;
    std::memcpy(&raw, static_cast<const char*>(from) + i * size, size);
    if (from_type == DType::boolean) raw = raw != 0;
    const bool is_signed = detail::kDTypes[static_cast<std::size_t>(from_type)].is_signed;
    bool negative = is_signed && (raw >> (8 * size - 1) & 1);
    if (negative && size < 8) raw |= ~std::uint64_t{0} << (8 * size);
    auto whole = static_cast<std::int64_t>(raw);
    const bool below = is_signed && whole < 0;
    if (is_integral(to_type)) {
      std::memcpy(static_cast<char*>(to) + i * static_cast<std::size_t>(bits(to_type) / 8), &raw, static_cast<std::size_t>(bits(to_type) / 8));
    } else if (to_type == DType::f32) {
      auto v = is_signed ? static_cast<float>(whole) : static_cast<float>(raw);
      std::memcpy(static_cast<char*>(to) + 4 * i, &v, 4);
    } else if (to_type == DType::boolean) {
      static_cast<std::uint8_t*>(to)[i] = whole != 0;
    } else if (to_type == DType::f64) {
      auto v = is_signed ? static_cast<double>(whole) : static_cast<double>(raw);
      std::memcpy(static_cast<char*>(to) + 8 * i, &v, 8);
    } else if (to_type == DType::f8e8m0fnu) {
      static_cast<std::uint8_t*>(to)[i] = model::to_e8m0(static_cast<double>(is_signed ? static_cast<float>(whole) : static_cast<float>(raw)));
    } else {
      // 64-bit integers round once to a small float: 53 bits with a sticky one decide the same way.
      std::uint64_t magnitude = below ? 0 - raw : raw;
      if (magnitude >> 53) magnitude = (magnitude >> 11 | ((magnitude & 2047) != 0)) << 11;
      auto v = static_cast<double>(magnitude);
      model::store_at(to, i, to_type, below ? -v : v, overflow);
    }
  }

  static Problem problem(std::string_view name, std::string_view entry, DType from, DType to, const Dims& out, const Dims& in, const Dims& out_strides,
                         const Dims& in_strides, std::uint64_t seed) {
    Problem p{.name = std::string(name), .entry = entry, .needs_fp64 = from != to && (from == DType::f64 || to == DType::f64)};
    auto n = static_cast<std::size_t>(numel(out)), m = static_cast<std::size_t>(numel(in));
    p.inputs.push_back({from, in, in_strides, model::make_values(m, from, seed)});
    std::vector<std::uint8_t> cast(bytes_for(to, m));
    for (std::size_t i = 0; i < m; ++i) {
      auto size = static_cast<std::size_t>(bits(to) / 8);
      if (from == to)
        std::memcpy(cast.data() + i * size, p.inputs[0].raw.data() + i * size, size);
      else
        reference(cast.data(), to, p.inputs[0].raw.data(), from, i, Overflow::nonfinite);
    }
    p.output = {to, out, out_strides, {}};
    for (std::size_t i = 0; i < n; ++i) {  // broadcasting along leading dimensions, or of an innermost one of size 1
      std::size_t at = m == n ? i : in[in.rank() - 1] == 1 ? i / static_cast<std::size_t>(out[out.rank() - 1]) : i % m;
      auto size = static_cast<std::size_t>(bits(to) / 8);
      p.output.raw.insert(p.output.raw.end(), cast.begin() + static_cast<std::ptrdiff_t>(at * size),
                          cast.begin() + static_cast<std::ptrdiff_t>((at + 1) * size));
    }
    p.run = [entry](const Tensor& to_tensor, std::span<const Tensor> inputs, const Stream& stream) {
      copy_(to_tensor, inputs[0], {.implementation = std::string(entry)}, stream);
    };
    return p;
  }

  static std::vector<Problem> problems(std::uint64_t seed) {
    const Dims flat{203}, transposed{9, 13};
    std::vector<Problem> all;
    all.push_back(problem("f32", "copy_bytes", DType::f32, DType::f32, flat, flat, {}, {}, seed));
    all.back().output.lead = all.back().inputs[0].lead = 64;
    all.push_back(problem("u8", "copy_bytes", DType::u8, DType::u8, flat, flat, {}, {}, seed));
    all.push_back(problem("i16", "copy_rows", DType::i16, DType::i16, {5, 37}, {5, 37}, {40, 1}, {39, 1}, seed));
    for (std::int64_t length : {2, 3, 7, 13, 29, 61})
      all.push_back(problem("u8 of " + std::to_string(length), "copy_rows", DType::u8, DType::u8, {5, length}, {5, length}, {70, 1}, {length + 1, 1}, seed));
    all.push_back(problem("f32 broadcast", "copy_rows", DType::f32, DType::f32, {5, 37}, {5, 1}, {40, 1}, {3, 1}, seed));
    all.push_back(problem("f32", "copy_transposed", DType::f32, DType::f32, {35, 70}, {35, 70}, {}, {1, 35}, seed));
    all.push_back(problem("i16 batch", "copy_transposed", DType::i16, DType::i16, {3, 9, 40}, {3, 9, 40}, {500, 1, 11}, {}, seed));
    // The input's rows: of two dimensions; near rows of several matrices; so near that they are no runs; of few columns.
    for (std::int64_t few : {2, 3, 4})
      for (DType dtype : {DType::u8, DType::i16, DType::f32}) {
        const std::string what = std::string(name(dtype)) + " of " + std::to_string(few);
        all.push_back(problem(what + " packed", "copy_transposed", dtype, dtype, {70, few}, {70, few}, {}, {1, 72}, seed));
        all.push_back(problem(what + " unpacked", "copy_transposed", dtype, dtype, {few, 70}, {few, 70}, {75, 1}, {1, few}, seed));
      }
    // The last blocks have three columns, and three rows, of many.
    all.push_back(problem("i16 of 995 columns", "copy_transposed", DType::i16, DType::i16, {70, 995}, {70, 995}, {}, {1, 70}, seed));
    all.push_back(problem("u8 of 4035 rows", "copy_transposed", DType::u8, DType::u8, {4035, 35}, {4035, 35}, {}, {1, 4035}, seed));
    all.push_back(problem("f32 joined", "copy_transposed", DType::f32, DType::f32, {24, 41, 3}, {24, 41, 3}, {}, {1, 24, 984}, seed));
    all.push_back(problem("f32 joined with gaps", "copy_transposed", DType::f32, DType::f32, {41, 24, 3}, {41, 24, 3}, {80, 3, 1}, {24, 1, 984}, seed));
    all.push_back(problem("i16 joined", "copy_transposed", DType::i16, DType::i16, {5, 21, 40}, {5, 21, 40}, {}, {1, 5, 105}, seed));
    all.push_back(problem("u8 inside", "copy_transposed", DType::u8, DType::u8, {70, 41, 3}, {70, 41, 3}, {}, {1, 70, 2870}, seed));
    all.push_back(problem("f64 apart", "copy_transposed", DType::f64, DType::f64, {2, 33, 40}, {2, 33, 40}, {}, {1, 3, 100}, seed));
    all.push_back(problem("f32 apart", "copy_transposed", DType::f32, DType::f32, {2, 9, 40}, {2, 9, 40}, {}, {1, 3, 100}, seed));
    all.push_back(problem("i64", "copy_transposed", DType::i64, DType::i64, {70, 7}, {70, 7}, {}, {1, 70}, seed));
    all.push_back(problem("f64", "copy_strided", DType::f64, DType::f64, transposed, transposed, {1, 9}, {}, seed));
    all.push_back(problem("f32 broadcast", "copy_strided", DType::f32, DType::f32, transposed, {13}, {2, 19}, {3}, seed));
    for (auto [from, to] :
         {std::pair{DType::f32, DType::bf16}, std::pair{DType::f16, DType::f32}, std::pair{DType::bf16, DType::f16}, std::pair{DType::f32, DType::i32},
          std::pair{DType::f64, DType::f32}, std::pair{DType::i64, DType::f16}, std::pair{DType::u64, DType::f32}, std::pair{DType::f32, DType::u64}})
      all.push_back(problem(std::string(name(from)) + " to " + std::string(name(to)), "copy_cast_contiguous", from, to, flat, flat, {}, {}, seed));
    for (auto [from, to] : {std::pair{DType::f32, DType::f8e4m3fn}, std::pair{DType::f8e5m2, DType::bf16}, std::pair{DType::f32, DType::f8e8m0fnu},
                            std::pair{DType::i32, DType::f8e5m2}})
      all.push_back(
          problem(std::string(name(from)) + " to " + std::string(name(to)), "copy_cast_strided", from, to, transposed, transposed, {1, 9}, {2, 27}, seed));
    return all;
  }

  static constexpr Mutation kMutations[] = {
      {"copy_bytes", Edit::tail, "for (ulong i = tail + item; i < end; i += items) out[i]", "for (ulong i = tail + item; i + 1 < end; i += items) out[i]"},
      {"copy_bytes", Edit::stride, "i += items * sizeof(WIDE)) STORE(", "i += 2 * items * sizeof(WIDE)) STORE("},
      {"copy_bytes", Edit::offset, "in + in_offset", "in + in_offset + 1"},
      {"copy_bytes", Edit::arithmetic, "out[i] = in[i]", "out[i] = in[i] + 1"},
      {"copy_rows", Edit::tail, "for (IDX j = item; j < run; j += items) to[j] = x", "for (IDX j = item; j + 1 < run; j += items) to[j] = x"},
      {"copy_rows", Edit::tail, "CLUTCH_MOVE_AT(clutch_bytes64, bytes - sizeof(clutch_bytes64))", "CLUTCH_MOVE_AT(clutch_bytes64, 0)"},
      {"copy_rows", Edit::tail, "CLUTCH_MOVE_AT(V, bytes - sizeof(V))", "CLUTCH_MOVE_AT(V, 0)"},
      {"copy_rows", Edit::stride, "if (step && items == 1)", "if (!step && items == 1)"},
      {"copy_rows", Edit::offset, "in_row += (IDX)shape->stride[1][d]", "in_row += (IDX)shape->stride[0][d]"},
      {"copy_rows", Edit::arithmetic, "(ulong)run * sizeof(T)", "(ulong)(run - 1) * sizeof(T)"},
      {"copy_transposed", Edit::tail, "(IDX)width - x)", "(IDX)width - x - 1)"},
      {"copy_transposed", Edit::tail, "least > (ulong)within ? (least", "least > (ulong)within ? (least / 2"},
      {"copy_transposed", Edit::tail, "IDX j = done; j < height", "IDX j = 0; j < height - 1"},
      {"copy_transposed", Edit::tail, "for (IDX i = done; i < width", "for (IDX i = done + 1; i < width"},
      {"copy_transposed", Edit::stride, "(to + (count)*done", "(to + 2 * done"},
      {"copy_transposed", Edit::offset, "next_step == run * run_step)", "next_step != 0)"},
      {"copy_transposed", Edit::offset, "width <= 4 && run_step", "width > 0 && run_step"},
      {"copy_transposed", Edit::offset, "height <= 4 && in_step", "height > 0 && in_step"},
      {"copy_transposed", Edit::arithmetic, "0, 1, 16, 3, 4, 17,", "0, 1, 16, 3, 4, 18,"},
      {"copy_transposed", Edit::arithmetic, "10, 18, 21, 24,", "10, 18, 22, 24,"},
      {"copy_transposed", Edit::arithmetic, "EVEN(even, other_even)", "EVEN(even, other_odd)"},
      {"copy_transposed", Edit::stride, "(column + l * in_step)", "(column)"},
      {"copy_transposed", Edit::stride, "column[l * in_step + e * in_one]", "column[l * in_step + e]"},
      {"copy_transposed", Edit::stride, "row[e] = column[e * in_step]", "row[e] = column[e]"},
      {"copy_transposed", Edit::stride, "row[e][i] = column[e * in_one]", "row[e][i] = column[e]"},
      {"copy_transposed", Edit::stride, "block.from + m * in_next", "block.from"},
      {"copy_transposed", Edit::offset, "in + in_offset", "in"},
      {"copy_transposed", Edit::offset, "block.to + m * out_next", "block.to"},
      {"copy_transposed", Edit::arithmetic, "(IDX)outer)", "(IDX)outer / 2)"},
      {"copy_transposed", Edit::arithmetic, "if (++along == run)", "if (++along == run + 1)"},
      {"copy_strided", Edit::tail, "end = min(begin + CLUTCH_TILE, n)", "end = min(begin + CLUTCH_TILE, n - 1)"},
      {"copy_strided", Edit::stride, "[from]", "[(from) / 2]"},
      {"copy_strided", Edit::offset, "in + in_offset", "in"},
      {"copy_strided", Edit::arithmetic, "[to] = ((__global const T*)in)[from]", "[to] = ((__global const T*)in)[from] + 1"},
      {"copy_cast_contiguous", Edit::tail, "for (ulong i = tail + item; i < end; i += items) cast_one",
       "for (ulong i = tail + item; i + 1 < end; i += items) cast_one"},
      {"copy_cast_contiguous", Edit::stride, "i += items) cast_one", "i += 2 * items) cast_one"},
      {"copy_cast_contiguous", Edit::offset, "in + in_offset", "in + in_offset + 8"},
      {"copy_cast_contiguous", Edit::arithmetic, "uint r = (u + 0x7FFFu + ((u >> 16) & 1u)) >> 16;\n  return (u & 0x7FFFFFFFu) > 0x7F800000u ?",
       "uint r = (u + 0x8000u) >> 17;\n  return (u & 0x7FFFFFFFu) > 0x7F800000u ?"},
      {"copy_cast_strided", Edit::tail, "end = min(begin + CLUTCH_TILE, n)", "end = min(begin + CLUTCH_TILE, n - 1)"},
      {"copy_cast_strided", Edit::stride, "cast_one(out, to, in, from)", "cast_one(out, to, in, to)"},
      {"copy_cast_strided", Edit::offset, "in + in_offset", "in + in_offset + 4"},
      {"copy_cast_strided", Edit::arithmetic, "((t >> drop) & 1)) >> drop", "1) >> drop"},
  };
};

}  // namespace clutch::cases
