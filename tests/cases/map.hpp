// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of map: what tests and benches share. Problems of + * fma have a host model of their own; the one of elementary
// functions takes the host evaluator, whose functions tests/expr/math_test.cpp holds against libm and MPFR.
#include <clutch/foreach.hpp>
#include <clutch/ops/map.hpp>

#include "support/host_model.hpp"
#include "support/op_case.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace clutch::cases {

struct MapCase {
  static constexpr std::string_view kStem = "map";
  /// Lengths around vectors, tiles and groups.
  static std::vector<std::int64_t> lengths(std::string_view level) {
    std::vector<std::int64_t> n{0, 1, 7, 15, 16, 17, 33, 8191, 8193, 20011};
    if (level == "nightly") n.insert(n.end(), {1 << 20, (1 << 22) + 5});
    return n;
  }

  /// Element of raw storage as a value of the dtype it is traced in.
  static ExprValue value_of(const void* data, std::size_t i, DType storage, DType traced) {
    if (is_integral(storage) || storage == DType::boolean) {
      std::int64_t n = 0;
      auto get = [&]<class T>(T v) {
        std::memcpy(&v, static_cast<const char*>(data) + i * sizeof(T), sizeof(T));
        n = std::int64_t{0} + v;  // without the addition clang-tidy takes an i8 for a character
      };
      switch (storage) {
        case DType::i8: get(std::int8_t{}); break;
        case DType::i16: get(std::int16_t{}); break;
        case DType::i32: get(std::int32_t{}); break;
        case DType::i64:
        case DType::u64: get(std::int64_t{}); break;
        case DType::u16: get(std::uint16_t{}); break;
        case DType::u32: get(std::uint32_t{}); break;
        default: get(std::uint8_t{}); break;
      }
      if (storage == DType::boolean) n = n != 0;
      return {traced, traced == DType::i64 || traced == DType::u64 ? static_cast<std::uint64_t>(n) : static_cast<std::uint32_t>(n)};
    }
    return ExprValue::of(traced, model::value_at(data, i, storage));
  }
  /// Stores a traced value as a storage dtype: floats round, integers wrap, floats to integers saturate.
  static void store(void* data, std::size_t i, DType storage, const ExprValue& v) {
    if (is_floating(v.dtype))
      return model::store_at(data, i, storage, storage == DType::f64 ? v.number() : static_cast<double>(static_cast<float>(v.number())));
    auto n = v.dtype == DType::i32 ? std::int64_t{static_cast<std::int32_t>(v.bits)} : static_cast<std::int64_t>(v.bits);
    if (is_integral(storage))
      std::memcpy(static_cast<char*>(data) + i * static_cast<std::size_t>(bits(storage) / 8), &n, static_cast<std::size_t>(bits(storage) / 8));
    else
      model::store_at(data, i, storage,
                      storage == DType::f64 ? v.number() : static_cast<double>(v.dtype == DType::u64 ? static_cast<float>(v.bits) : static_cast<float>(n)));
  }

  /// Fills the expected raw output of a function by the host evaluator.
  static void expect(const ExprFunction& f, int output, const std::vector<Operand>& inputs, Operand& out) {
    auto n = static_cast<std::size_t>(numel(out.sizes));
    out.raw.resize(bytes_for(out.dtype, n));
    std::vector<ExprValue> values(inputs.size());
    std::vector<std::int64_t> at(static_cast<std::size_t>(out.sizes.rank()));
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < inputs.size(); ++k)
        values[k] = value_of(inputs[k].raw.data(), operand_index(i, out.sizes, inputs[k].sizes), inputs[k].dtype, f.input_dtype(static_cast<int>(k)));
      std::size_t rest = i;
      for (int d = out.sizes.rank() - 1; d >= 0; --d) {
        at[static_cast<std::size_t>(d)] = static_cast<std::int64_t>(rest % static_cast<std::size_t>(out.sizes[d]));
        rest /= static_cast<std::size_t>(out.sizes[d]);
      }
      store(out.raw.data(), i, out.dtype, f.evaluate(values, at)[static_cast<std::size_t>(output)]);
    }
  }

  static Problem problem(std::string_view name, std::string_view entry, const ExprFunction& f, std::vector<Operand> inputs, Operand output) {
    Problem p{.name = std::string(name), .entry = entry, .inputs = std::move(inputs), .output = std::move(output)};
    for (const Operand& o : p.inputs) p.needs_fp64 = p.needs_fp64 || o.dtype == DType::f64;
    p.needs_fp64 = p.needs_fp64 || p.output.dtype == DType::f64;
    p.run = [f, entry](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      map_out(std::span(&out, 1), f, in, {.implementation = std::string(entry)}, stream);
    };
    return p;
  }

  /// Parts of these sizes of a tensor of rank 1.
  static std::vector<Tensor> cut(const Tensor& t, std::span<const std::int64_t> sizes) {
    std::vector<Tensor> parts;
    std::int64_t at = 0;
    for (std::int64_t size : sizes) parts.push_back(t.slice(0, at, at + size)), at += size;
    return parts;
  }
  /// Lists of parts of tensors: fma(a, s, b), where s is one number for each part.
  static Problem list_problem(DType dtype, std::uint64_t seed) {
    static constexpr std::int64_t kSizes[] = {5, 0, 1, 16, 9000, 33};
    constexpr std::int64_t kCount = 5 + 1 + 16 + 9000 + 33;
    Problem p{.name = "lists " + std::string(name(dtype)), .entry = "map_list"};
    p.inputs.push_back({dtype, {kCount}, {}, model::make_values(kCount, dtype, seed, false)});
    p.inputs.push_back({dtype, {kCount}, {}, model::make_values(kCount, dtype, seed + 1, false)});
    p.inputs.push_back({DType::f32, {static_cast<std::int64_t>(std::size(kSizes))}, {}, model::make_values(std::size(kSizes), DType::f32, seed + 2, false)});
    p.output = {dtype, {kCount}, {}, std::vector<std::uint8_t>(bytes_for(dtype, kCount))};
    std::size_t i = 0;
    for (std::size_t part = 0; part < std::size(kSizes); ++part)
      for (std::int64_t k = 0; k < kSizes[part]; ++k, ++i) {
        auto at = [&](std::size_t input, std::size_t place) {
          return static_cast<float>(model::value_at(p.inputs[input].raw.data(), place, p.inputs[input].dtype));
        };
        model::store_at(p.output.raw.data(), i, dtype, static_cast<double>(std::fma(at(0, i), at(2, part), at(1, i))));
      }
    p.run = [](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      const std::vector<Tensor> a = cut(in[0], kSizes), b = cut(in[1], kSizes), outs = cut(out, kSizes);
      std::vector<Tensor> numbers;
      for (std::int64_t part = 0; part < in[2].numel(); ++part) numbers.push_back(in[2].select(0, part));
      foreach_map_out(
          outs, [](Expr x, Expr y, Expr s) { return fma(x, s, y); }, {a, b, numbers}, {}, stream);
    };
    return p;
  }

  static std::vector<Problem> problems(std::uint64_t seed) {
    std::vector<Problem> all;
    all.push_back(list_problem(DType::f32, seed + 20));
    all.push_back(list_problem(DType::bf16, seed + 30));
    auto operand = [&](DType dtype, const Dims& sizes, const Dims& strides, std::uint64_t k) {
      return Operand{dtype, sizes, strides, model::make_values(static_cast<std::size_t>(numel(sizes)), dtype, seed + k)};
    };
    // 2 a + b in one rounding, modelled apart.
    auto twice = [](Expr a, Expr b) { return fma(a, 2, b); };
    auto add = [&](std::string_view entry, DType dtype, const Dims& sizes, const std::array<Dims, 2>& shapes, const std::array<Dims, 3>& strides) {
      DType traced = dtype == DType::f64 ? DType::f64 : DType::f32;
      Problem p = problem(name(dtype), entry, trace(twice, std::array{traced, traced}),
                          {operand(dtype, shapes[0], strides[1], 0), operand(dtype, shapes[1], strides[2], 1)},
                          {dtype, sizes, strides[0], std::vector<std::uint8_t>(bytes_for(dtype, static_cast<std::uint64_t>(numel(sizes))))});
      for (std::size_t i = 0; i < static_cast<std::size_t>(numel(sizes)); ++i) {
        double a = model::value_at(p.inputs[0].raw.data(), operand_index(i, sizes, shapes[0]), dtype);
        double b = model::value_at(p.inputs[1].raw.data(), operand_index(i, sizes, shapes[1]), dtype);
        double r = traced == DType::f64 ? std::fma(2, a, b) : static_cast<double>(std::fma(2.0f, static_cast<float>(a), static_cast<float>(b)));
        model::store_at(p.output.raw.data(), i, dtype, r);
      }
      all.push_back(std::move(p));
    };
    const Dims flat{157}, rows{3, 41}, transposed{9, 13};
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) add("map_contiguous", dtype, flat, {flat, flat}, {});
    add("map_contiguous", DType::f32, flat, {flat, flat}, {});
    all.back().output.lead = all.back().inputs[0].lead = 64;  // aligned
    for (DType dtype : {DType::f32, DType::bf16}) add("map_rows", dtype, rows, {Dims{41}, Dims{3, 1}}, {Dims{50, 1}, Dims{}, Dims{}});
    for (DType dtype : {DType::f32, DType::f16, DType::f64}) add("map_strided", dtype, transposed, {transposed, Dims{13}}, {Dims{1, 9}, Dims{2, 20}, Dims{3}});
    // Short rows, in pieces of several: a row for all, a number of each, and rows that are apart or of other strides.
    for (DType dtype : {DType::f32, DType::f64, DType::bf16}) add("map_strided", dtype, Dims{990, 9}, {Dims{9}, Dims{990, 1}}, {});
    add("map_strided", DType::f16, Dims{5, 31, 20}, {Dims{5, 31, 20}, Dims{31, 20}}, {Dims{}, Dims{700, 22, 1}, Dims{1, 31}});

    auto elementary = [](Expr x, Expr y) {
      return exp(-abs(x)) + tanh(x) * log1p(abs(y)) + erf(x) * sin(y) + cos(x) / (1 + sigmoid(y)) + sqrt(abs(x)) * exp2(-abs(y));
    };
    auto evaluated = [&](std::string_view what, std::string_view entry, const ExprFunction& f, std::vector<Operand> inputs, Operand output) {
      expect(f, 0, inputs, output);
      all.push_back(problem(what, entry, f, std::move(inputs), std::move(output)));
    };
    for (DType dtype : {DType::f32, DType::f64})
      evaluated("elementary " + std::string(name(dtype)), "map_contiguous", trace(elementary, std::array{dtype, dtype}),
                {operand(dtype, flat, {}, 2), operand(dtype, flat, {}, 3)}, {dtype, flat, {}, {}});
    auto integers = [](Expr a, Expr b) { return floor_mod(a, b) + (trunc_div(a, b + 3) ^ (b >> 2)) - select(a < b, max(a, b), a & b); };
    evaluated("integers", "map_strided", trace(integers, std::array{DType::i32, DType::i64}),
              {operand(DType::i8, transposed, Dims{1, 9}, 4), operand(DType::i64, transposed, {}, 5)}, {DType::i64, transposed, {}, {}});
    evaluated("integers of short rows", "map_strided", trace(integers, std::array{DType::i32, DType::i64}),
              {operand(DType::i8, Dims{90, 1}, {}, 4), operand(DType::i64, Dims{11}, {}, 5)}, {DType::i64, Dims{90, 11}, {}, {}});
    auto places = [](Expr x) { return x * cast(position(0), DType::f32) + cast(position(-1), DType::f32); };
    evaluated("positions", "map_rows", trace(places, std::array{DType::f32}), {operand(DType::f32, rows, {}, 6)}, {DType::f32, rows, Dims{50, 1}, {}});
    evaluated("positions", "map_strided", trace(places, std::array{DType::f32}), {operand(DType::bf16, transposed, Dims{1, 9}, 7)},
              {DType::f32, transposed, {}, {}});
    // Each numbers of several chunks, which begin within tiles.
    auto drawn = [](Expr x) { return select(random_uniform(71) < 0.3, Expr(0.0f), x + random_uniform(72)) + cast(random_bits(73) >> 40, DType::f32); };
    const Dims many{1203};
    evaluated("random numbers", "map_contiguous", trace(drawn, std::array{DType::f32}), {operand(DType::f32, many, {}, 11)}, {DType::f32, many, {}, {}});
    evaluated("random numbers", "map_strided", trace(drawn, std::array{DType::f32}), {operand(DType::bf16, many, Dims{2}, 12)},
              {DType::f32, many, Dims{3}, {}});
    auto mixed = [](Expr h, Expr i, Expr b) { return select(b, h, cast(i, DType::f32) * 0.5); };
    evaluated("mixed dtypes", "map_contiguous", trace(mixed, std::array{DType::f32, DType::i32, DType::boolean}),
              {operand(DType::f16, flat, {}, 8), operand(DType::u8, flat, {}, 9), operand(DType::boolean, flat, {}, 10)}, {DType::bf16, flat, {}, {}});
    return all;
  }

  static constexpr Mutation kMutations[] = {
      {"map_contiguous", Edit::stride, "++word, i += RANDOM_CHUNK_BLOCKS)", "++word, i += RANDOM_CHUNK_BLOCKS + WIDTH)"},
      {"map_contiguous", Edit::arithmetic, "turn & 2 ? w2 : w0", "turn & 2 ? w0 : w2"},
      {"map_strided", Edit::arithmetic, "== (VUL)0ul ? r.w[0] : r.w[2], odd", "== (VUL)0ul ? r.w[2] : r.w[0], odd"},
      {"map_list", Edit::tail, "(int)(end - tail) CLUTCH_BUFFER_NAMES", "(int)(end - tail) - 1 CLUTCH_BUFFER_NAMES"},
      {"map_list", Edit::stride, "(T)items * WIDTH)", "(T)items * 2 * WIDTH)"},
      {"map_list", Edit::offset, "(ulong)(chunk.x - args.first_row) * CLUTCH_OPERANDS", "(ulong)(chunk.x - args.first_row) * CLUTCH_OPERANDS / 2"},
      {"map_list", Edit::arithmetic, "spread[k] ? 0 :", "!spread[k] ? 0 :"},
      {"map_contiguous", Edit::tail, "(int)(end - tail)", "(int)(end - tail) - 1"},
      {"map_contiguous", Edit::stride, "(T)items * WIDTH)", "(T)items * 2 * WIDTH)"},
      {"map_contiguous", Edit::stride, "const ulong i = whole + u * WIDTH;", "const ulong i = whole + (u & ~1) * WIDTH;"},
      {"map_contiguous", Edit::offset, "(CLUTCH_CONCAT(b, k), (IDX)i, count)", "(CLUTCH_CONCAT(b, k), (IDX)i + 1, count)"},
      {"map_contiguous", Edit::tail, "(CLUTCH_CONCAT(b, k), (IDX)i, count, x)", "(CLUTCH_CONCAT(b, k), (IDX)i, count - 1, x)"},
      {"map_contiguous", Edit::arithmetic, "VF v3 = fma_rn(v0,", "VF v3 = fma_rn(-v0,"},
      {"map_rows", Edit::tail, "(int)(end - tail)", "(int)(end - tail) - 1"},
      {"map_rows", Edit::stride, "offset[k] += stride[k][d];", "offset[k] += stride[k][0];"},
      {"map_rows", Edit::offset, "CLUTCH_CONCAT(b, k), row[k] + i, x)", "CLUTCH_CONCAT(b, k), row[k] + i + 1, x)"},
      {"map_rows", Edit::tail, "CLUTCH_EXPRESSION(LOAD_SOME, POSITION_ROW, STORE_FRONT)", "CLUTCH_EXPRESSION(LOAD_SOME, POSITION_ROW, STORE_ROW)"},
      {"map_rows", Edit::arithmetic, "VF v3 = fma_rn(v0,", "VF v3 = fma_rn(-v0,"},
      {"map_strided", Edit::tail, "map_strided_body(CLUTCH_IDS, n,", "map_strided_body(CLUTCH_IDS, n - 1,"},
      {"map_strided", Edit::stride, "CLUTCH_STRIDES(stride)\n", "CLUTCH_STRIDES(stride)\n  stride[1][0] -= 1;\n"},
      {"map_strided", Edit::tail, "map_piece_tail(base, (IDX)at, tail, (int)(end - tail) C", "map_piece_tail(base, (IDX)at, tail, (int)(end - tail) - 1 C"},
      {"map_strided", Edit::stride, "stride[k][d] == stride[k][d - 1] * size[d - 1]", "stride[k][d] != 2 * stride[k][d - 1] * size[d - 1]"},
      {"map_strided", Edit::offset, "(size_t)(buffer[k] + done * bytes)", "(size_t)(buffer[k])"},
      {"map_strided", Edit::stride, "kept[k] = flows[k] || same[k]", "kept[k] = 1"},
      {"map_strided", Edit::arithmetic, "CLUTCH_TILE / (ulong)most * (ulong)most", "CLUTCH_TILE"},
      {"map_strided", Edit::arithmetic, "0x1000100010001ul", "0x10001ul"},
      {"map_strided", Edit::offset, "place_of(number, 1, rank, size, stride, place, row);",
       "place_of(number, 1, rank, size, stride, place, row), row[1] += 4;"},
      {"map_strided", Edit::arithmetic, "VF v3 = fma_rn(v0,", "VF v3 = fma_rn(-v0,"},
  };
};

}  // namespace clutch::cases
