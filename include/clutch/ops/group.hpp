// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/tensor.hpp>

#include <cstdint>
#include <string>

namespace clutch { inline namespace v0 {

/// Entries sorted by group, as compressed rows: group g has entries order[offsets[g]] to order[offsets[g + 1] - 1],
/// ascending.
struct Groups {
  Tensor offsets;  ///< (groups + 1)
  Tensor order;    ///< (entries); entries behind the last offset are of no group
};

struct GroupOptions {
  std::string implementation = {};  ///< forces a plan by name; empty: the first that accepts
};

/// Sorts entries by their group, stably: what makes reductions by index deterministic, and compressed rows of
/// coordinates or transposes.
/// Shapes: index (entries); 0 <= index[k] < groups says to which group entry k belongs; groups below 2^32 - 1.
/// Dtypes: index i32 or i64; both results are i32 for fewer than 2^31 entries, i64 from there on, whatever the index's
///   dtype and the settings are.
/// Bad contents: entries whose index is no group's belong to none.
/// Determinism: the result is unique. A radix sort of 11 bits a pass; where groups have several items, of 8 bits.
/// Scratch: 16 bytes an entry at most, and counts of digits, 8 MiB below 2^24 entries.
/// Errors: invalid_shape; invalid_dtype; invalid_argument for the count of groups or an implementation; not_supported
///   for an implementation.
/// Stream: never waits.
/// Source: torch.argsort(stable=True) with torch.bincount and cumsum, in one op.
CLUTCH_API Groups group_by(const Tensor& index, std::int64_t groups, const GroupOptions& options = {},
                           const Stream& stream = {});
/// Into the caller's tensors, of these shapes and dtypes; an undefined one is not asked for.
CLUTCH_API void group_by_out(const Groups& out, const Tensor& index, std::int64_t groups,
                             const GroupOptions& options = {}, const Stream& stream = {});

}}  // namespace clutch::v0
