// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of fill_ and arange_: what tests and benches share.
#include <clutch/ops/fill.hpp>

#include "support/host_model.hpp"
#include "support/op_case.hpp"

#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

namespace clutch::cases {

struct FillCase {
  static constexpr std::string_view kStem = "fill";
  static std::vector<std::int64_t> lengths(std::string_view level) {
    std::vector<std::int64_t> n{0, 1, 3, 16, 63, 65, 8193, 50001};
    if (level == "nightly") n.push_back((1 << 22) + 5);
    return n;
  }
  static double bytes(std::int64_t n, DType dtype) { return static_cast<double>(n) * bits(dtype) / 8; }

  /// Element i of arange_.
  static void arange(void* out, DType dtype, std::size_t i, double start, double step) {
    if (is_integral(dtype)) {
      std::uint64_t r = static_cast<std::uint64_t>(static_cast<std::int64_t>(start)) + i * static_cast<std::uint64_t>(static_cast<std::int64_t>(step));
      std::memcpy(static_cast<char*>(out) + i * static_cast<std::size_t>(bits(dtype) / 8), &r, static_cast<std::size_t>(bits(dtype) / 8));
    } else if (dtype == DType::f64) {
      model::store_at(out, i, dtype, std::fma(static_cast<double>(i), step, start));
    } else {
      model::store_at(out, i, dtype, std::fma(static_cast<float>(i), static_cast<float>(step), static_cast<float>(start)));
    }
  }

  static std::vector<Problem> problems(std::uint64_t) {
    std::vector<Problem> all;
    auto fill = [&](std::string_view entry, DType dtype, const Dims& sizes, const Dims& strides) {
      Problem p{.name = std::string(name(dtype)), .entry = entry};
      auto n = static_cast<std::size_t>(numel(sizes));
      p.output = {dtype, sizes, strides, std::vector<std::uint8_t>(bytes_for(dtype, n))};
      for (std::size_t i = 0; i < n; ++i) model::store_at(p.output.raw.data(), i, dtype, 1.3);
      p.run = [entry](const Tensor& out, std::span<const Tensor>, const Stream& stream) { fill_(out, 1.3, {.implementation = std::string(entry)}, stream); };
      all.push_back(std::move(p));
    };
    auto count = [&](DType dtype, const Dims& sizes, const Dims& strides) {
      Problem p{.name = "arange " + std::string(name(dtype)), .entry = "fill_arange", .needs_fp64 = dtype == DType::f64};
      auto n = static_cast<std::size_t>(numel(sizes));
      p.output = {dtype, sizes, strides, std::vector<std::uint8_t>(bytes_for(dtype, n))};
      double start = is_integral(dtype) ? -7 : 0.1, step = is_integral(dtype) ? 3 : 0.3;
      for (std::size_t i = 0; i < n; ++i) arange(p.output.raw.data(), dtype, i, start, step);
      p.run = [start, step](const Tensor& out, std::span<const Tensor>, const Stream& stream) { arange_(out, start, step, {}, stream); };
      all.push_back(std::move(p));
    };
    fill("fill_contiguous", DType::f32, {157}, {});
    all.back().output.lead = 64;
    fill("fill_contiguous", DType::f16, {157}, {});
    fill("fill_strided", DType::f64, {9, 13}, {1, 9});
    fill("fill_strided", DType::i16, {9, 13}, {40, 3});
    count(DType::f32, {9, 13}, {1, 9});
    count(DType::f64, {117}, {});
    count(DType::i16, {117}, {2});
    return all;
  }

  static constexpr Mutation kMutations[] = {
      {"fill_contiguous", Edit::tail, "for (ulong i = tail + item; i < end; i += items) out[i]", "for (ulong i = tail + item; i + 1 < end; i += items) out[i]"},
      {"fill_contiguous", Edit::stride, "i += items * sizeof(WIDE)", "i += 2 * items * sizeof(WIDE)"},
      {"fill_contiguous", Edit::offset, "out + out_offset", "out + out_offset + 1"},
      {"fill_contiguous", Edit::arithmetic, "(uint)(i % 16)", "(uint)((i + 1) % 16)"},
      {"fill_strided", Edit::tail, "i < end; i += items", "i + 1 < end; i += items"},
      {"fill_strided", Edit::stride, "i * (IDX)shape->stride[k][d]", "i * (IDX)shape->stride[k][0]"},
      {"fill_strided", Edit::offset, "out + out_offset", "out + out_offset + sizeof(T)"},
      {"fill_strided", Edit::arithmetic, ".at[0]] = value", ".at[0]] = value + 1"},
      {"fill_arange", Edit::tail, "i < end; i += items", "i + 1 < end; i += items"},
      {"fill_arange", Edit::stride, "i * (IDX)shape->stride[k][d]", "i * (IDX)shape->stride[k][0]"},
      {"fill_arange", Edit::offset, "out + out_offset", "out + out_offset + sizeof(T)"},
      {"fill_arange", Edit::arithmetic, "fma_rn((ACC)i, step, start)", "((ACC)i * step + start)"},
  };
};

}  // namespace clutch::cases
