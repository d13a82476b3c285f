// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of @STEM@: what tests and benches share.
#include <clutch/ops/@STEM@.hpp>

#include "support/host_model.hpp"
#include "support/op_case.hpp"

#include <string_view>
#include <vector>

namespace clutch::cases {

struct @PASCAL@Case {
  static constexpr std::string_view kStem = "@STEM@";
  static std::vector<std::int64_t> lengths(std::string_view level) {
    std::vector<std::int64_t> n{0, 1, 17, 8193};
    if (level == "nightly") n.push_back(1 << 22);
    return n;
  }
  static double bytes(std::int64_t n) { return 8.0 * static_cast<double>(n); }
  static float reference(float x) { return -x; }

  /// Small calls that together run every kernel entry.
  static std::vector<Problem> problems(std::uint64_t seed) {
    const Dims sizes{9, 13};
    Problem p{.name = "f32", .entry = "@STEM@_strided"};
    p.inputs.push_back({DType::f32, sizes, {1, 9}, model::make_values(117, DType::f32, seed)});
    p.output = {DType::f32, sizes, {2, 20}, std::vector<std::uint8_t>(4 * 117)};
    for (std::size_t i = 0; i < 117; ++i)
      model::store_at(p.output.raw.data(), i, DType::f32, reference(static_cast<float>(model::value_at(p.inputs[0].raw.data(), i, DType::f32))));
    p.run = [](const Tensor& out, std::span<const Tensor> in, const Stream& stream) { @STEM@_out(out, in[0], {}, stream); };
    return {p};
  }

  /// Edits of the kernels that these problems must notice: of every entry a tail, a stride, an offset and an arithmetic one.
  static constexpr Mutation kMutations[] = {
      {"@STEM@_strided", Edit::tail, "i < end; i += items", "i + 1 < end; i += items"},
      {"@STEM@_strided", Edit::stride, "[o.at[1]]", "[o.at[0]]"},
      {"@STEM@_strided", Edit::offset, "in + in_offset", "in"},
      {"@STEM@_strided", Edit::arithmetic, "= -((__global", "= ((__global"},
  };
};

}  // namespace clutch::cases
