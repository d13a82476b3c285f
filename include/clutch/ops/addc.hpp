// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/tensor.hpp>

#include <string>

namespace clutch { inline namespace v0 {

/// The order in which addcdiv and addcmul round; "op" is the quotient or the product, rd() one rounding.
enum class AddcOrder : std::uint8_t {
  /// fma(value, rd(t1 op t2), input): CUDA, XPU and Inductor; addcmul with value 1: fma(t1, t2, input)
  fma_of_quotient,
  product_first,  ///< rd(input + rd(rd(value * t1) / t2)), PyTorch's CPU; addcmul: fma(rd(value * t1), t2, input)
  unfused,        ///< rd(input + rd(value * rd(t1 op t2))): other devices, and CUDA before 2.12
};

struct AddcOptions {
  double value = 1;
  AddcOrder order = AddcOrder::fma_of_quotient;
  std::string implementation = {};  ///< forces a plan by name; empty: the first that accepts
};

/// Computes input + value * tensor1 / tensor2 element by element, rounded in the order of options.order.
/// Shapes: the three tensors broadcast to the result; out (if given) has that shape.
/// Dtypes: f64, f32, f16, bf16; computed in f32 (f64 for f64) and rounded once to the result. `value` is rounded to
///   that type. Mixed dtypes promote as in PyTorch (rank-0 tensors are weak), operands are cast to the result's dtype
///   first.
/// In place: out may be any of the inputs, element for element; partial overlap is an Error.
/// Determinism: bit-equal on every device that has fma_exact and divide_exact; where one is missing an exact emulation
///   runs. Devices that flush subnormals keep the contract in the normal range.
/// Accuracy: exactly the formula of the order, with correctly rounded division.
/// Scratch: none; operands of another dtype, cast first, take their size in the result's dtype.
/// Errors: invalid_shape if shapes do not broadcast or out has another shape; invalid_dtype if tensor1 and tensor2 are
///   both integral or bool, for complex and small floating dtypes, and if the result cannot be cast to out's kind;
///   device_mismatch; invalid_overlap; not_supported for f64 without fp64 or an implementation that refuses.
/// Stream: never waits.
/// Source: torch.addcdiv of PyTorch 2.12. It differs on purpose: one definition on every device, chosen by `order`;
///   complex is not offered.
CLUTCH_API Tensor addcdiv(const Tensor& input, const Tensor& tensor1, const Tensor& tensor2,
                          const AddcOptions& options = {}, const Stream& stream = {});
CLUTCH_API void addcdiv_out(const Tensor& out, const Tensor& input, const Tensor& tensor1, const Tensor& tensor2,
                            const AddcOptions& options = {}, const Stream& stream = {});
CLUTCH_API void addcdiv_(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2,
                         const AddcOptions& options = {}, const Stream& stream = {});

/// Computes input + value * tensor1 * tensor2 element by element, rounded in the order of options.order.
/// Dtypes: as addcdiv, and integers, which wrap; `value` is truncated for them. bool is an Error.
/// All else as addcdiv. Source: torch.addcmul of PyTorch 2.12.
CLUTCH_API Tensor addcmul(const Tensor& input, const Tensor& tensor1, const Tensor& tensor2,
                          const AddcOptions& options = {}, const Stream& stream = {});
CLUTCH_API void addcmul_out(const Tensor& out, const Tensor& input, const Tensor& tensor1, const Tensor& tensor2,
                            const AddcOptions& options = {}, const Stream& stream = {});
CLUTCH_API void addcmul_(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2,
                         const AddcOptions& options = {}, const Stream& stream = {});

}}  // namespace clutch::v0
