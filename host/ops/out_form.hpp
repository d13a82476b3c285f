// SPDX-License-Identifier: Apache-2.0
#pragma once
// Out forms of composed ops: they compute results as the allocating form does, and finally copy them into the caller's tensors.
#include <clutch/stream.hpp>
#include <clutch/tensor.hpp>

#include <span>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

/// Checks the caller's tensor, which `what` names in texts. Errors: invalid_argument if it is undefined; invalid_shape and invalid_dtype unless it has these
/// sizes and this dtype; invalid_overlap if its elements share memory.
void check_out(const Tensor& out, const Dims& sizes, DType dtype, std::string_view what, std::string_view op);

/// The caller's tensor for a result of these sizes and this dtype; undefined if it is not asked for.
struct Asked {
  const Tensor& out;
  Dims sizes;
  DType dtype;
  bool exists = true;  ///< false if the call has no such result
};
/// True if an op may write all these tensors before it has read its inputs: store() would take them, they are contiguous, and they share no memory with inputs,
/// of which some may be undefined. False if not; then results are new tensors, which store() copies or refuses.
bool takes_results(std::span<const Asked> asked, std::span<const Tensor* const> inputs);
/// Where an op writes its only result: the caller's tensor, if it takes that, or a new one. `out` may be undefined.
Tensor result_tensor(const Tensor& out, const Dims& sizes, DType dtype, std::span<const Tensor* const> inputs, const Stream& stream);

/// A result and the caller's tensor for it.
struct Stored {
  const Tensor& out;
  const Tensor& made;
  std::string_view what;
};
/// Copies results into the caller's tensors, of any strides, after all checks. A result is skipped if the caller's tensor is undefined, or is the result.
/// Errors: those of check_out(); invalid_argument for a tensor without a result; device_mismatch; invalid_overlap if two of the tensors share memory.
void store(std::span<const Stored> results, std::string_view op, const Stream& stream);
/// The same for an op's only result, whose tensor must be defined.
void store(const Tensor& out, const Tensor& made, std::string_view op, const Stream& stream);
/// The same for a list of tensors. Errors: also invalid_argument unless there are as many tensors as results.
void store(std::span<const Tensor> outs, std::span<const Tensor> made, std::string_view what, std::string_view op, const Stream& stream);

}}}  // namespace clutch::v0::detail
