// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/tensor.hpp>

#include <cstdint>
#include <string>

namespace clutch { inline namespace v0 {

/// Elements in order along a dimension, and where they were.
struct Sorted {
  Tensor values;   ///< of x's dtype
  Tensor indices;  ///< i64: places along the dimension of x
};

struct SortOptions {
  bool descending = false;          ///< the largest element first
  std::string implementation = {};  ///< forces a plan by name; empty: the first that accepts
};

/// Sorts the elements of each line along a dimension, stably.
/// Order: NaN counts as larger than all else: it comes last, and first if `descending`. All NaN are equal, and so are
///   -0 and 0. Equal elements keep their order, also if `descending`.
/// Shapes: x any; both results have x's shape. A tensor of rank 0 is a line of one element.
/// Dtypes: f64 f32 f16 bf16, integers and bool; f64 also on devices without fp64. Values keep their bits, those of
///   NaN and -0, too; true is 1.
/// Determinism: the result is unique.
/// Scratch: 24 bytes an element at most, 48 of f64 and i64; a copy of x where its lines are not contiguous.
/// Errors: invalid_argument for the dimension or an implementation; invalid_dtype; not_supported for an implementation
///   that refuses, and for 2^26 elements or more on a device that ends loops early.
/// Stream: never waits.
/// Source: torch.sort with stable=True.
CLUTCH_API Sorted sort(const Tensor& x, int dim = -1, const SortOptions& options = {}, const Stream& stream = {});
/// Into the caller's tensors, of these shapes and dtypes, which may share memory with x; an undefined one is not asked
/// for.
CLUTCH_API void sort_out(const Sorted& out, const Tensor& x, int dim = -1, const SortOptions& options = {},
                         const Stream& stream = {});

/// The indices of sort() alone.
/// Source: torch.argsort with stable=True.
CLUTCH_API Tensor argsort(const Tensor& x, int dim = -1, const SortOptions& options = {}, const Stream& stream = {});
CLUTCH_API void argsort_out(const Tensor& out, const Tensor& x, int dim = -1, const SortOptions& options = {},
                            const Stream& stream = {});

struct TopkOptions {
  bool largest = true;              ///< false: the smallest elements
  std::string implementation = {};  ///< forces a plan by name; empty: the first that accepts
};

/// The k largest elements of each line along a dimension, the largest first; or the k smallest, the smallest first.
/// Order: as sort(). Equal elements are taken by their indices, the lowest first.
/// Shapes: 0 <= k <= the size of the dimension, which k takes the place of; of a tensor of rank 0 at most 1.
/// Determinism: the result is unique: the first k elements of sort().
/// Scratch: as sort(), and less for small k: where items sort runs four times k entries for each item.
/// Errors: as sort(), and invalid_argument for k.
/// Source: torch.topk, which leaves open which of equal elements it takes.
CLUTCH_API Sorted topk(const Tensor& x, std::int64_t k, int dim = -1, const TopkOptions& options = {},
                       const Stream& stream = {});
CLUTCH_API void topk_out(const Sorted& out, const Tensor& x, std::int64_t k, int dim = -1,
                         const TopkOptions& options = {}, const Stream& stream = {});

struct KthvalueOptions {
  bool keepdim = false;             ///< the dimension stays, with size 1
  std::string implementation = {};  ///< forces a plan by name; empty: the first that accepts
};

/// The k-th smallest element of each line along a dimension, counted from 1, and its index.
/// Order: as sort(): the first of equal elements is the smallest.
/// Shapes: 1 <= k <= the size of the dimension, which goes.
/// Errors: as sort(), and invalid_argument for k.
/// Source: torch.kthvalue, which leaves open which of equal elements it names.
CLUTCH_API Sorted kthvalue(const Tensor& x, std::int64_t k, int dim = -1, const KthvalueOptions& options = {},
                           const Stream& stream = {});
CLUTCH_API void kthvalue_out(const Sorted& out, const Tensor& x, std::int64_t k, int dim = -1,
                             const KthvalueOptions& options = {}, const Stream& stream = {});

}}  // namespace clutch::v0
