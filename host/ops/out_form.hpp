// SPDX-License-Identifier: Apache-2.0
#pragma once
// Out forms of ops that are made of others: they make their results as the allocating form does and copy them, last, into the caller's tensors.
#include <clutch/stream.hpp>
#include <clutch/tensor.hpp>

#include <span>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

/// Errors: invalid_argument if the caller's tensor is undefined; invalid_shape unless it has these sizes; invalid_dtype unless it has that dtype;
/// invalid_overlap if elements of it share memory. `what` of the call it is.
void check_out(const Tensor& out, const Dims& sizes, DType dtype, std::string_view what, std::string_view op);

/// A result and the caller's tensor for it.
struct Stored {
  const Tensor& out;
  const Tensor& made;
  std::string_view what;
};
/// Copies results into the caller's tensors, of any strides, after all checks. An undefined one of the caller's is not asked for.
/// Errors: those of check_out(); invalid_argument for a tensor that has no result; device_mismatch; invalid_overlap if two of them share memory.
void store(std::span<const Stored> results, std::string_view op, const Stream& stream);
/// The same for an op's only result, which must be asked for.
void store(const Tensor& out, const Tensor& made, std::string_view op, const Stream& stream);
/// The same for as many tensors as there are results. Errors: also invalid_argument for another count.
void store(std::span<const Tensor> outs, std::span<const Tensor> made, std::string_view what, std::string_view op, const Stream& stream);

}}}  // namespace clutch::v0::detail
