// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/segment.hpp>
#include <clutch/tensor.hpp>

#include <cstdint>
#include <string>

namespace clutch { inline namespace v0 {

/// Elements of x along one dimension: out[i, j, ...] = x[index[i, j, ...], j, ...] for dim 0, and so on.
/// Shapes: index has x's rank and is no longer than x in the other dimensions; out has the index's shape.
/// Dtypes: x any that map takes; index i32 or i64. Bits are kept, but that NaN are made quiet.
/// Bad contents: an index out of range gives NaN, 0 in integers and booleans; nothing is read out of bounds.
/// Errors: invalid_shape; invalid_dtype; invalid_argument for the dimension; device_mismatch.
/// Stream: never waits.
/// Source: torch.gather.
CLUTCH_API Tensor gather(const Tensor& x, int dim, const Tensor& index, const Stream& stream = {});
/// Into the caller's tensor, of the index's shape and x's dtype; it shares no memory with the others.
CLUTCH_API void gather_out(const Tensor& out, const Tensor& x, int dim, const Tensor& index, const Stream& stream = {});
/// The gradient of x, whose shape it has: gradients of the elements that were taken, summed in the index's order.
CLUTCH_API Tensor gather_backward(const Tensor& grad, const Dims& sizes, int dim, const Tensor& index,
                                  const Stream& stream = {});
/// Into the caller's tensor, whose sizes are x's, of grad's dtype; it shares no memory with the others.
CLUTCH_API void gather_backward_out(const Tensor& out, const Tensor& grad, int dim, const Tensor& index,
                                    const Stream& stream = {});

/// Slices of x along one dimension, in the order of `index` (count): as gather with the index repeated over the other
/// dimensions.
/// Source: torch.index_select.
CLUTCH_API Tensor index_select(const Tensor& x, int dim, const Tensor& index, const Stream& stream = {});
CLUTCH_API void index_select_out(const Tensor& out, const Tensor& x, int dim, const Tensor& index,
                                 const Stream& stream = {});

struct ScatterOptions {
  Reduce reduce = Reduce::sum;
  bool include_self = true;         ///< whether an element of self that is scattered to counts, too
  std::string implementation = {};  ///< forces a plan by name; empty: the first that accepts
};

/// Reduces elements of src into those of self that the index names: result[index[i, j, ...], j, ...] takes
/// src[i, j, ...] for dim 0, and so on. Elements of self that are not named stay as they are.
/// Shapes: index, src and self have one rank; index is no longer than src, nor than self in the other dimensions; the
///   result has self's shape.
/// Dtypes: f64 f32 f16 bf16 -> accumulated in f32, f64 for f64, rounded once; integers, which wrap; src has
///   self's dtype; index i32 or i64.
/// Means: of the elements that go to one of self, and of that one if it counts. Those of integers are rounded down;
///   their sum has 64 bits, so that those of narrower ones do not wrap, as PyTorch's do.
/// NaN: amin and amax give NaN if there is one. Zeros: they count 0 and -0 as equal and give the last one.
/// Determinism: bit-equal on every device and for every layout: self first, then src in the order of the index along
///   `dim`. No atomics.
/// Accuracy: as segment_reduce.
/// Bad contents: elements whose index is out of range are left out.
/// Scratch: where self is not accumulated into directly (narrow dtypes, means, include_self false), lines of self, 64
///   MiB at most. An index that is repeated over dimensions of at least 8 elements (strides 0) is sorted instead, as
///   group_by does, and so are few long lines where groups have several items; f32 and f64 rows of a cache line for
///   each core are added in place, unsorted, on CPUs.
/// Errors: invalid_shape; invalid_dtype; invalid_argument for the dimension, any and all, or the name of an
///   implementation; invalid_overlap; device_mismatch; not_supported for an implementation that refuses, and for long
///   lines on a device that ends loops early; what is sorted there gives NaN as segment_reduce does.
/// Stream: never waits.
/// Source: torch.scatter_reduce.
CLUTCH_API Tensor scatter_reduce(const Tensor& self, int dim, const Tensor& index, const Tensor& src,
                                 const ScatterOptions& options = {}, const Stream& stream = {});
/// Into the caller's tensor, of self's shape and dtype; it may be self, and shares no memory with the others.
CLUTCH_API void scatter_reduce_out(const Tensor& out, const Tensor& self, int dim, const Tensor& index,
                                   const Tensor& src, const ScatterOptions& options = {}, const Stream& stream = {});
/// The same in place.
CLUTCH_API void scatter_reduce_(const Tensor& self, int dim, const Tensor& index, const Tensor& src,
                                const ScatterOptions& options = {}, const Stream& stream = {});

struct ScatterGradients {
  Tensor self, src;
};
/// Gradients of scatter_reduce, whose result is asked for again. amin and amax: ties share evenly, self among them if
/// it counts; all that meets in a slot of NaN gets NaN, as in PyTorch; prod: right for zeros, too.
/// Errors: as scatter_reduce, and invalid_dtype for integers.
CLUTCH_API ScatterGradients scatter_reduce_backward(const Tensor& grad, const Tensor& result, const Tensor& self,
                                                    int dim, const Tensor& index, const Tensor& src,
                                                    const ScatterOptions& options = {}, const Stream& stream = {});
/// Into the caller's tensors, of these shapes and dtypes; an undefined one is not asked for. They may share memory with
/// inputs.
CLUTCH_API void scatter_reduce_backward_out(const ScatterGradients& out, const Tensor& grad, const Tensor& result,
                                            const Tensor& self, int dim, const Tensor& index, const Tensor& src,
                                            const ScatterOptions& options = {}, const Stream& stream = {});

}}  // namespace clutch::v0
