// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/tensor.hpp>

#include <initializer_list>
#include <span>

namespace clutch { inline namespace v0 {

/// Elements of x by tensors of indices: x[i0, i1, ...], as NumPy and PyTorch have it.
/// Indices: the n-th tensor counts along the n-th dimension of x; an undefined tensor stands for a whole dimension, and
///   so do missing ones at the end. Negative indices count from the end. A bool tensor is a mask of as many dimensions
///   as it has, and stands for the columns of its nonzero().
/// Shapes: the tensors broadcast to one shape. Its dimensions take the place of those that they count along where these
///   are neighbours, else they come first; the other dimensions of x stay in their order.
/// Dtypes: x of whole bytes; indices i32, i64 or bool. Bits are kept.
/// Bad contents: an index out of range gives NaN, 0 in integers and booleans; nothing is read out of bounds.
/// Scratch: a number for each element of the broadcast indices; a copy of x where the dimensions before or behind those
///   that are counted along cannot be joined.
/// Errors: invalid_shape if the tensors do not broadcast, are more than x has dimensions, or a mask has other sizes
///   than its dimensions; invalid_dtype; invalid_argument without any; device_mismatch; capturing for masks.
/// Stream: never waits, but for the counts of masks.
/// Source: aten::index; torch.Tensor.__getitem__ with tensors, which takes one of rank 0 as a number, not as an index.
CLUTCH_API Tensor index(const Tensor& x, std::span<const Tensor> indices, const Stream& stream = {});
CLUTCH_API void index_out(const Tensor& out, const Tensor& x, std::span<const Tensor> indices,
                          const Stream& stream = {});

struct IndexPutOptions {
  bool accumulate = false;  ///< adds values to what is there, instead of replacing it
};

/// Stores values where index() would read them; other elements of self stay as they are.
/// Shapes: values broadcast to the shape of index(self, indices); the result has self's shape.
/// Dtypes: self of whole bytes, values of its dtype. accumulate: f64 f32 f16 bf16 -> added up in f32, f64 for f64,
///   rounded once; integers, which wrap.
/// Repeated indices: the last one in row-major order holds. accumulate: self first, then values in row-major order.
/// Bad contents: values whose index is out of range are left out.
/// Determinism: bit-equal on every device and for every layout. No atomics.
/// Accuracy: |error| <= n eps sum |x| for n values that go to one element, and the store's rounding.
/// Scratch: as index(), and as sort() of as many places as there are indices; values where they are broadcast; self
///   where dimensions cannot be joined.
/// Errors: as index(); invalid_shape for values; invalid_overlap if elements of self share memory; not_supported to
///   accumulate f64 without fp64, or 2^15 places or more on a device that ends loops early.
/// Stream: never waits, but for the counts of masks.
/// Source: torch.Tensor.index_put.
CLUTCH_API Tensor index_put(const Tensor& self, std::span<const Tensor> indices, const Tensor& values,
                            const IndexPutOptions& options = {}, const Stream& stream = {});
/// Into the caller's tensor, of self's shape and dtype, which may share memory with all others.
CLUTCH_API void index_put_out(const Tensor& out, const Tensor& self, std::span<const Tensor> indices,
                              const Tensor& values, const IndexPutOptions& options = {}, const Stream& stream = {});
/// The same in place; values and indices may share memory with self.
CLUTCH_API void index_put_(const Tensor& self, std::span<const Tensor> indices, const Tensor& values,
                           const IndexPutOptions& options = {}, const Stream& stream = {});

/// The same with the tensors of indices in braces.
inline Tensor index(const Tensor& x, std::initializer_list<Tensor> indices, const Stream& stream = {}) {
  return index(x, std::span<const Tensor>(indices.begin(), indices.size()), stream);
}
inline Tensor index_put(const Tensor& self, std::initializer_list<Tensor> indices, const Tensor& values,
                        const IndexPutOptions& options = {}, const Stream& stream = {}) {
  return index_put(self, std::span<const Tensor>(indices.begin(), indices.size()), values, options, stream);
}
inline void index_put_(const Tensor& self, std::initializer_list<Tensor> indices, const Tensor& values,
                       const IndexPutOptions& options = {}, const Stream& stream = {}) {
  index_put_(self, std::span<const Tensor>(indices.begin(), indices.size()), values, options, stream);
}

}}  // namespace clutch::v0
