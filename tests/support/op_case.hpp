// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an op's descriptor (tests/cases/<stem>.hpp) offers to the tests that every op goes through: small problems that
// together run every entry of its kernels, and edits of the kernels that these problems must notice.
#include <clutch/tensor.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace clutch::cases {

/// One tensor of a problem: contiguous raw values, and the strides it has in memory (empty: contiguous).
struct Operand {
  DType dtype = DType::f32;
  Dims sizes;
  Dims strides;
  std::vector<std::uint8_t> raw;
  std::int64_t lead = 67;  ///< elements before element 0 in memory: 64 aligns to any vector, 67 to none
};

/// One call with its expected result.
struct Problem {
  std::string name;
  std::string_view entry;  ///< the kernel entry it is for, forced by name
  std::vector<Operand> inputs;
  Operand output;  ///< raw is the expected result
  std::function<void(const Tensor& out, std::span<const Tensor> inputs, const Stream& stream)> run;
  bool needs_fp64 = false;
  bool is_helper = false;               ///< the entry is another kernel of the call than the plan's
  bool by_matrix_instructions = false;  ///< on devices that have none plain code stands in for them
};

/// Element of an operand that element i of the result reads, by PyTorch's broadcasting.
inline std::size_t operand_index(std::size_t i, const Dims& result, const Dims& operand) {
  std::size_t index = 0, scale = 1;
  for (int d = result.rank() - 1, o = operand.rank() - 1; d >= 0; --d, --o) {
    auto at = i % static_cast<std::size_t>(result[d]);
    i /= static_cast<std::size_t>(result[d]);
    if (o < 0) continue;
    if (operand[o] != 1) index += at * scale;
    scale *= static_cast<std::size_t>(operand[o]);
  }
  return index;
}

enum class Edit { tail, stride, offset, arithmetic };

/// An edit of the kernel's text that must make a problem of the entry give a wrong result. The first `from` behind the
/// entry's #ifdef is replaced, or the first one at all if there is none behind it.
struct Mutation {
  std::string_view entry;
  Edit edit;
  std::string_view from, to;
};

/// An op's row in the table made from CLUTCH_OPS.
struct OpRow {
  std::string_view stem;
  std::vector<Problem> (*problems)(std::uint64_t seed);
  std::span<const Mutation> mutations;
};
const std::vector<OpRow>& op_rows();

}  // namespace clutch::cases
