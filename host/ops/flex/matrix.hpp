// SPDX-License-Identifier: Apache-2.0
#pragma once
// flex_matrix*: attention by matrix instructions (kernels/flex/matrix.clh, matrix_backward.clh).
#include "flex/args.h"
#include "ops/flex/call.hpp"

#include <initializer_list>

namespace clutch { inline namespace v0 { namespace detail {

/// Tile of flex_matrix*: sub-groups, fragments of rows (queries; in gradients of keys keys) that each of them has, and others; of gradients operands of others
/// that local memory holds at a time, 1 or 2.
struct FlexMatrixTile {
  int sub_groups, fragments, others, steps = 0;
  std::int64_t rows(MatrixLayout layout) const;
  std::uint64_t items(MatrixLayout layout) const;
  std::uint64_t local_bytes(const FlexProblem& problem) const;
};
/// That of a problem, halved as often as the problem says; 0 sub-groups if it cannot be.
FlexMatrixTile flex_matrix_tile(const FlexProblem& problem);

/// Tasks that a tile of rows is, each of which makes some elements of its results.
std::int64_t flex_matrix_slices(const FlexProblem& problem, std::int64_t e, std::int64_t ev);

/// Most elements of a key and of a value.
inline constexpr std::int64_t kFlexMatrixMost = 128;

/// Notes which matrix instructions the call allows and the device has for these tensors: queries, keys, values, and of gradients the result's.
void note_matrix_instructions(FlexProblem& problem, const Checked& c, const attention::FlexOptions& options, std::initializer_list<const Tensor*> tensors);
/// Notes the size of tiles of the problem's part by which each compute unit gets one.
void note_matrix_tiles(FlexProblem& problem, const Checked& c);

/// The reason why flex_matrix refuses a problem; empty if it accepts.
std::string fits_flex_matrix(const DeviceTraits& traits, const FlexProblem& problem);
/// Completes the plan of flex_matrix.
void set_flex_matrix(KernelPlan& plan, const DeviceTraits& traits, const FlexProblem& problem);

}}}  // namespace clutch::v0::detail
