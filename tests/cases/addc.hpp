// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of addcdiv and addcmul: what tests and benches share.
#include <clutch/ops/addc.hpp>

#include "support/host_model.hpp"
#include "support/op_case.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

namespace clutch::cases {

enum class Addc { quotient, product };

struct AddcCase {
  static constexpr std::string_view kStem = "addc";
  static constexpr DType kFloats[] = {DType::f32, DType::f64, DType::f16, DType::bf16};
  static constexpr DType kIntegers[] = {DType::i8, DType::u8, DType::i16, DType::i32, DType::i64, DType::u16, DType::u32, DType::u64};
  static constexpr AddcOrder kOrders[] = {AddcOrder::fma_of_quotient, AddcOrder::product_first, AddcOrder::unfused};
  /// Lengths around vectors, tiles and groups.
  static std::vector<std::int64_t> lengths(std::string_view level) {
    std::vector<std::int64_t> n{0, 1, 2, 15, 16, 17, 1023, 8191, 8193, 40001};
    if (level != "smoke") n.insert(n.end(), {31, 33, 127, 8192, 65536, 131071});
    if (level == "nightly") n.insert(n.end(), {1 << 20, (1 << 22) + 3});
    return n;
  }
  static double flops(std::int64_t n) { return 3.0 * static_cast<double>(n); }
  static double bytes(std::int64_t n, DType dtype) { return 4.0 * static_cast<double>(n) * bits(dtype) / 8; }

  /// One element in the compute type R (float or double), by the contract's formulas and std::fma alone.
  template <class R>
  static R combine(Addc op, AddcOrder order, R x, R a, R b, R value) {
    if (op == Addc::quotient) {
      if (order == AddcOrder::fma_of_quotient) return std::fma(value, a / b, x);
      if (order == AddcOrder::product_first) {
        R product = value * a;
        return x + product / b;
      }
      R scaled = value * (a / b);
      return x + scaled;
    }
    if (order == AddcOrder::fma_of_quotient) return value == R(1) ? std::fma(a, b, x) : std::fma(value, a * b, x);
    if (order == AddcOrder::product_first) return std::fma(value * a, b, x);
    R scaled = value * (a * b);
    return x + scaled;
  }

  /// Element i of the result into `out`, from elements ix, ia, ib of raw inputs, all of one dtype.
  static void reference(Addc op, AddcOrder order, DType dtype, double value, void* out, std::size_t i, const void* x, std::size_t ix, const void* a,
                        std::size_t ia, const void* b, std::size_t ib) {
    if (is_integral(dtype)) {
      auto get = [&](const void* data, std::size_t k) {
        std::int64_t v = 0;
        auto size = static_cast<std::size_t>(bits(dtype) / 8);
        std::memcpy(&v, static_cast<const char*>(data) + k * size, size);
        return static_cast<std::uint64_t>(v);
      };
      std::uint64_t r = get(x, ix) + static_cast<std::uint64_t>(static_cast<std::int64_t>(value)) * (get(a, ia) * get(b, ib));
      std::memcpy(static_cast<char*>(out) + i * static_cast<std::size_t>(bits(dtype) / 8), &r, static_cast<std::size_t>(bits(dtype) / 8));
      return;
    }
    double vx = model::value_at(x, ix, dtype), va = model::value_at(a, ia, dtype), vb = model::value_at(b, ib, dtype);
    double r = dtype == DType::f64
                   ? combine<double>(op, order, vx, va, vb, value)
                   : combine<float>(op, order, static_cast<float>(vx), static_cast<float>(va), static_cast<float>(vb), static_cast<float>(value));
    model::store_at(out, i, dtype, r);
  }

  static Problem problem(std::string_view name, std::string_view entry, Addc op, DType dtype, const Dims& sizes, const std::array<Dims, 3>& operands,
                         const std::array<Dims, 4>& strides, std::uint64_t seed) {
    Problem p{.name = std::string(name), .entry = entry, .needs_fp64 = dtype == DType::f64};
    for (std::size_t k = 0; k < 3; ++k)
      p.inputs.push_back({dtype, operands[k], strides[k + 1], model::make_values(static_cast<std::size_t>(numel(operands[k])), dtype, seed + k)});
    auto n = static_cast<std::size_t>(numel(sizes));
    p.output = {dtype, sizes, strides[0], std::vector<std::uint8_t>(bytes_for(dtype, n))};
    const double value = -1.25;
    for (std::size_t i = 0; i < n; ++i)
      reference(op, AddcOrder::fma_of_quotient, dtype, value, p.output.raw.data(), i, p.inputs[0].raw.data(), operand_index(i, sizes, operands[0]),
                p.inputs[1].raw.data(), operand_index(i, sizes, operands[1]), p.inputs[2].raw.data(), operand_index(i, sizes, operands[2]));
    p.run = [op, entry, value](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      (op == Addc::quotient ? addcdiv_out : addcmul_out)(out, in[0], in[1], in[2], {.value = value, .implementation = std::string(entry)}, stream);
    };
    return p;
  }

  static std::vector<Problem> problems(std::uint64_t seed) {
    const Dims flat{157}, rows{3, 41}, transposed{9, 13};
    std::vector<Problem> all;
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32})
      all.push_back(problem(name(dtype), "addc_contiguous", is_integral(dtype) ? Addc::product : Addc::quotient, dtype, flat, {flat, flat, flat}, {}, seed));
    for (DType dtype : {DType::f32, DType::bf16})
      all.push_back(problem(name(dtype), "addc_rows", Addc::quotient, dtype, rows, {Dims{3, 41}, Dims{41}, Dims{3, 1}},
                            {Dims{50, 1}, Dims{47, 1}, Dims{}, Dims{}}, seed));
    for (DType dtype : {DType::f32, DType::f16})
      all.push_back(problem(name(dtype), "addc_strided", Addc::product, dtype, transposed, {transposed, transposed, Dims{13}},
                            {Dims{1, 9}, Dims{}, Dims{2, 20}, Dims{3}}, seed));
    // Operands of other dtypes are cast first, the result is copied: exact values, so that the model needs no promotion.
    Problem mixed = problem("mixed dtypes", "", Addc::quotient, DType::f32, flat, {flat, flat, flat}, {}, seed);
    mixed.inputs[1].dtype = DType::f16, mixed.output.dtype = DType::bf16;
    mixed.inputs[1].raw = model::make_values(157, DType::f16, seed + 9);
    mixed.output.raw.resize(2 * 157);
    for (std::size_t i = 0; i < 157; ++i) {
      float wide[3], result;
      for (std::size_t k = 0; k < 3; ++k) wide[k] = static_cast<float>(model::value_at(mixed.inputs[k].raw.data(), i, mixed.inputs[k].dtype));
      reference(Addc::quotient, AddcOrder::fma_of_quotient, DType::f32, -1.25, &result, 0, &wide[0], 0, &wide[1], 0, &wide[2], 0);
      model::store_at(mixed.output.raw.data(), i, DType::bf16, static_cast<double>(result));
    }
    all.push_back(std::move(mixed));
    return all;
  }

  static constexpr Mutation kMutations[] = {
      {"addc_contiguous", Edit::tail, "for (ulong i = tail + item; i < end; i += items)", "for (ulong i = tail + item; i + 1 < end; i += items)"},
      {"addc_contiguous", Edit::stride, "i < tail; i += items * (elements)) store(", "i < tail; i += 2 * items * (elements)) store("},
      {"addc_contiguous", Edit::offset, "t1 + t1_offset", "t1"},
      {"addc_contiguous", Edit::arithmetic, "FMA((R)(value), DIV(a, b), x)", "((x) + (R)(value) * DIV(a, b))"},
      {"addc_rows", Edit::tail, "for (IDX i = tail + (IDX)item; i < end; i += (IDX)items)", "for (IDX i = tail + (IDX)item; i + 1 < end; i += (IDX)items)"},
      {"addc_rows", Edit::stride, "sa = (IDX)shape->stride[2][0]", "sa = (IDX)shape->stride[3][0]"},
      {"addc_rows", Edit::offset, "STORE(out, o.at[0] + (i), combine(LOAD(input, o.at[1] + (i)*si)",
       "STORE(out, o.at[0] + (i), combine(LOAD(input, o.at[0] + (i)*si)"},
      {"addc_rows", Edit::arithmetic, "FMA((R)(value), DIV(a, b), x)", "FMA((R)(value), DIV(b, a), x)"},
      {"addc_strided", Edit::tail, "i < end; i += items", "i + 1 < end; i += items"},
      {"addc_strided", Edit::stride, "LOAD(t1, o.at[2])", "LOAD(t1, o.at[3])"},
      {"addc_strided", Edit::offset, "t2 + t2_offset", "t2"},
      {"addc_strided", Edit::arithmetic, "FMA((one) ? (a) : (R)(value), (one) ? (b) : (a) * (b), x)", "FMA((R)(value) * (a), b, x)"},
  };
};

}  // namespace clutch::cases
