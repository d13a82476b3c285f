// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/map.hpp>

#include "ops/traced.hpp"

namespace clutch { inline namespace v0 { namespace detail {

inline constexpr int kMaxMapOperands = 24;

/// Inputs of the selection of map; also the key of its cached plans. Operands: outputs, inputs, positions.
struct MapProblem {
  std::uint64_t function = 0;  ///< ExprBody::id
  std::uint8_t outputs = 1, inputs = 1, positions = 0;
  Layout layout = Layout::contiguous;
  bool wide_index = false;
  bool short_rows = false;  ///< the innermost dimension is shorter than a vector
  SeenTypes types;
  std::uint8_t rank_lanes = 4;  ///< lanes of the shape vectors
  bool random = false;          ///< draws random numbers
  bool pieces = false;          ///< rows of few vectors, which the outputs have side by side; no positions
  std::uint8_t moving = 0;      ///< of contiguous operands and rows that read captured tensors: bits of the positions that go on along a row
  std::uint8_t unused[4] = {};
  DType dtypes[kMaxMapOperands] = {};
};

/// map into the given outputs, or into new ones if there are none, with `params` as the values of the function's params.
std::vector<Tensor> map_traced(std::span<const Tensor> outputs, const ExprFunction& function, std::span<const Tensor> inputs, std::span<const double> params,
                               const MapOptions& options, const Stream& stream);

struct Meaning;
/// What a launch computes whose operands are the function's outputs, inputs and captured tensors, with these values of its params.
std::shared_ptr<const Meaning> pointwise_meaning(const ExprFunction& function, std::span<const double> params, int outputs, int inputs, const Dims& sizes);

/// Pure function; the caller adds the printed function to the plan. Errors: not_supported, invalid_argument.
KernelPlan select(const DeviceTraits& traits, const MapProblem& problem, std::string_view forced = {});

}}}  // namespace clutch::v0::detail
