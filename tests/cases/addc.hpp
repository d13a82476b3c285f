// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of addcdiv and addcmul: what tests and benches share.
#include <clutch/ops/addc.hpp>

#include "support/host_model.hpp"

#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

namespace clutch::cases {

enum class Addc { quotient, product };

struct AddcCase {
  static constexpr std::string_view kStem = "addc";
  static constexpr DType kFloats[] = {DType::f32, DType::f64, DType::f16, DType::bf16};
  static constexpr DType kIntegers[] = {DType::i8, DType::u8, DType::i16, DType::i32, DType::i64};
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
};

}  // namespace clutch::cases
