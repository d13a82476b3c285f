// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/reduce.hpp>
#include <clutch/tensor.hpp>

#include <cstdint>
#include <string>

namespace clutch { inline namespace v0 {

struct NonzeroOptions {
  std::string implementation = {};  ///< forces a plan by name; empty: the first that accepts
};

/// Indices of the elements that are not 0, in row-major order.
/// Shapes: x any; result (count, rank of x).
/// Dtypes: f64 f32 f16 bf16, integers, bool, c64 and c128; the result is i64. NaN is not 0, -0 is.
/// Determinism: the result is unique. No atomics.
/// Scratch: a count for each 256 elements at most; a copy of x where it is not contiguous.
/// Errors: invalid_dtype; invalid_argument and not_supported for an implementation; capturing, as the size of the
///   result is a count that the call waits for: nonzero_static() can be captured.
/// Stream: waits for the count.
/// Source: torch.nonzero.
CLUTCH_API Tensor nonzero(const Tensor& x, const NonzeroOptions& options = {}, const Stream& stream = {});

struct NonzeroStaticOptions {
  std::int64_t fill_value = -1;     ///< of all indices of the rows that are left over
  std::string implementation = {};  ///< forces a plan by name; empty: the first that accepts
};

/// The first `size` rows of nonzero(), and rows of `fill_value` where there are fewer.
/// Shapes: result (size, rank of x).
/// Errors: as nonzero() but capturing, and invalid_argument for a negative size.
/// Stream: never waits.
/// Source: torch.nonzero_static.
CLUTCH_API Tensor nonzero_static(const Tensor& x, std::int64_t size, const NonzeroStaticOptions& options = {},
                                 const Stream& stream = {});
CLUTCH_API void nonzero_static_out(const Tensor& out, const Tensor& x, std::int64_t size,
                                   const NonzeroStaticOptions& options = {}, const Stream& stream = {});

/// How many elements are not 0: all elements, or those of the dimensions of options.dims.
/// Shapes: as sum().
/// Dtypes: x any that map takes; the result is i64.
/// Errors: as sum().
/// Stream: never waits.
/// Source: torch.count_nonzero.
CLUTCH_API Tensor count_nonzero(const Tensor& x, const ReduceOptions& options = {}, const Stream& stream = {});
CLUTCH_API void count_nonzero_out(const Tensor& out, const Tensor& x, const ReduceOptions& options = {},
                                  const Stream& stream = {});

/// The elements of x where mask is true, in row-major order.
/// Shapes: x and mask broadcast to one shape; result (count).
/// Dtypes: x of whole bytes; mask bool. Bits are kept.
/// Scratch: as nonzero(), and copies of what is broadcast.
/// Errors: invalid_shape; invalid_dtype; device_mismatch; as nonzero().
/// Stream: waits for the count.
/// Source: torch.masked_select.
CLUTCH_API Tensor masked_select(const Tensor& x, const Tensor& mask, const NonzeroOptions& options = {},
                                const Stream& stream = {});

/// Elements that differ.
struct Unique {
  Tensor values;   ///< (count)
  Tensor inverse;  ///< i64, of x's shape: where an element is in values; undefined unless it is asked for
  Tensor counts;   ///< i64 (count): how many elements of x each one stands for; undefined unless they are asked for
};

struct UniqueOptions {
  bool return_inverse = false;      ///< whether inverse is made
  bool return_counts = false;       ///< whether counts are made
  std::string implementation = {};  ///< forces a plan by name; empty: the first that accepts
};

/// The different elements of x, ascending.
/// NaN: each differs from all others; they come last. Zeros: -0 and 0 are equal; the first in row-major order stands.
/// Dtypes: those of sort().
/// Determinism: the result is unique. Made of sort() and of nonzero()'s kernels.
/// Scratch: as sort(), its results, and as nonzero().
/// Errors: as sort() and nonzero().
/// Stream: waits for the count.
/// Source: torch.unique with sorted=True, without dim.
CLUTCH_API Unique unique(const Tensor& x, const UniqueOptions& options = {}, const Stream& stream = {});
/// The elements of x in row-major order without those that equal the one before them.
/// NaN: as unique(), and so are zeros and dtypes.
/// Errors: as unique().
/// Stream: waits for the count.
/// Source: torch.unique_consecutive, without dim.
CLUTCH_API Unique unique_consecutive(const Tensor& x, const UniqueOptions& options = {}, const Stream& stream = {});

}}  // namespace clutch::v0
