// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/tensor.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace clutch { inline namespace v0 {

struct CatOptions {
  std::string implementation = {};  ///< forces a plan by name; empty: the first that accepts
};

/// Joins tensors along a dimension that they have, in one launch for any number of them.
/// Shapes: equal but for `dim`; any strides. Tensors of shape (0,) are left out, whatever the others' shapes. Negative
///   `dim` counts from the end.
/// Dtypes: all but the packed ones. Tensors of several dtypes give their result type (result_type()).
/// Accuracy: bytes are copied; a tensor of another dtype is cast by the rules of clutch::cast.
/// In place: the result shares no memory with the tensors.
/// Launches: one, or more if the tensors are in more than 8 buffers; one besides for each tensor that is cast.
/// Scratch: tensors that are cast; 32 bytes a tensor (views that are no rows: 304), and 8 bytes for each 16 KiB.
/// Errors: invalid_argument for no tensors, a tensor of rank 0 or a dimension out of range; invalid_shape;
///   invalid_dtype for packed dtypes and for an out tensor of another dtype than the result's; device_mismatch;
///   invalid_overlap.
/// Stream: never waits.
/// Source: torch.cat of PyTorch 2.12.
CLUTCH_API Tensor cat(std::span<const Tensor> tensors, int dim = 0, const CatOptions& options = {},
                      const Stream& stream = {});
CLUTCH_API void cat_out(const Tensor& out, std::span<const Tensor> tensors, int dim = 0, const CatOptions& options = {},
                        const Stream& stream = {});

/// Joins tensors of one shape along a new dimension. All else as cat(), but there is no tensor that is left out, and
/// tensors may have rank 0.
/// Source: torch.stack of PyTorch 2.12.
CLUTCH_API Tensor stack(std::span<const Tensor> tensors, int dim = 0, const CatOptions& options = {},
                        const Stream& stream = {});
CLUTCH_API void stack_out(const Tensor& out, std::span<const Tensor> tensors, int dim = 0,
                          const CatOptions& options = {}, const Stream& stream = {});

/// Views of parts of a tensor along a dimension: of `size` elements each, the last with what is left; or of these
/// sizes, which add up to the dimension's.
/// Errors: invalid_argument for a dimension out of range, sizes below 0, a size of 0 of a dimension that is not empty,
///   and sizes that add up to another number.
/// Source: torch.split of PyTorch 2.12.
CLUTCH_API std::vector<Tensor> split(const Tensor& tensor, std::int64_t size, int dim = 0);
CLUTCH_API std::vector<Tensor> split(const Tensor& tensor, std::span<const std::int64_t> sizes, int dim = 0);

/// Copies of the parts that split() gives, contiguous, in one launch.
/// Launches, Dtypes, Scratch and Stream as cat().
/// Errors: as split() and cat().
/// Source: torch.split_with_sizes_copy of PyTorch 2.12.
CLUTCH_API std::vector<Tensor> split_copy(const Tensor& tensor, std::span<const std::int64_t> sizes, int dim = 0,
                                          const CatOptions& options = {}, const Stream& stream = {});
/// Into the caller's tensors, whose sizes along `dim` say what they take.
CLUTCH_API void split_copy_out(std::span<const Tensor> outs, const Tensor& tensor, int dim = 0,
                               const CatOptions& options = {}, const Stream& stream = {});

/// Copies each source into the destination of its place in the list, in one launch.
/// Shapes: a source and its destination have equal sizes; any strides.
/// Dtypes: all but the packed ones; a source of another dtype than its destination's is cast first, by the rules of
///   clutch::cast.
/// In place: destinations share no memory with one another or with a source; one may be its own source element for
///   element.
/// Launches, Scratch, Errors and Stream as cat(); invalid_argument for lists of two lengths.
/// Source: torch._foreach_copy_ of PyTorch 2.12.
CLUTCH_API void foreach_copy_(std::span<const Tensor> destinations, std::span<const Tensor> sources,
                              const CatOptions& options = {}, const Stream& stream = {});

}}  // namespace clutch::v0
