// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/tensor.hpp>

#include <cstdint>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// coefficient * x, where x is any whole number from 0 to `most`.
struct SumTerm {
  std::int64_t coefficient = 1;
  std::int64_t most = 0;
};

enum class Reached : std::uint8_t { no, yes, unknown };

/// Searches of overlaps end after so many steps; then nothing is known. Views whose strides are multiples of one another, as those of slices and transposes
/// are, take a few.
constexpr int kOverlapSteps = 1 << 14;

/// Whether the sum of the terms, whose coefficients are positive, can be `target`. Numbers must be so small that no sum overflows.
Reached can_reach(std::vector<SumTerm> terms, std::int64_t target);

/// Whether two elements of the tensor share memory. Not for packed dtypes.
Reached overlaps_itself(const Tensor& tensor);
/// Whether tensors of one buffer, whose elements 0 are `distance` bytes apart (b's behind a's, or negative), share a byte. Not for packed dtypes.
Reached overlaps(const Tensor& a, const Tensor& b, std::int64_t distance);

}}}  // namespace clutch::v0::detail
