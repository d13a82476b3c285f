// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/map.hpp>
#include <clutch/tensor.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace clutch { inline namespace v0 {

namespace nn {
/// Activation at the end of a linear layer. gelu is erf's, gelu_tanh its approximation.
enum class Activation : std::uint8_t { none, relu, gelu, gelu_tanh, silu };
}  // namespace nn

namespace linalg {

/// How freely a product may round: a device's matrix instructions add blocks along k in an order and with a rounding of
/// their own, which is faster. It is a permission: where the device has none for the operands' dtype that passed a
/// self-test, or CLUTCH_MATRIX_INSTRUCTIONS rules them out, elements are chains. Products of i8 and u8 are exact
/// either way.
enum class Numerics : std::uint8_t {
  chain,   ///< each element is one chain of fma in the order of k: equal bits on every device
  blocks,  ///< f16, bf16 and f8 by matrix instructions
  tf32,    ///< as `blocks`; f32, too, whose operands are rounded to 11 significant bits
  f8,      ///< as `tf32`; f8 by instructions of their own, whose sums may keep as few as 14 bits
};

struct MatmulOptions {
  double alpha = 1;
  double beta = 0;                  ///< of matmul_out(): 0 never reads the output
  DTypeList dtype = {};             ///< of the result; empty: as the contract says
  std::string implementation = {};  ///< forces a plan by name; empty: the first that accepts
  Numerics numerics = Numerics::chain;
};

/// The right operand of products, packed once for many of them: in panels as the device's kernels read them, in the
/// compute type.
/// Determinism: products have the bits that they have with the tensor.
/// Copies: a cheap value; later writes to the tensor do not reach it.
class CLUTCH_API PackedMatrix {
 public:
  PackedMatrix() = default;
  /// b (*, k, n) as of matmul(). Memory: its size in the compute type, n rounded up to 4 vectors.
  /// Stream: never waits; products on other streams are to be ordered after it.
  /// Errors: invalid_shape, invalid_dtype.
  explicit PackedMatrix(const Tensor& b, const Stream& stream = {});
  bool empty() const noexcept { return state_ == nullptr; }
  /// (*, k, n). Errors for empty ones: invalid_argument.
  const Dims& sizes() const;
  DType dtype() const;
  std::uint64_t nbytes() const;

  struct State;
  const std::shared_ptr<const State>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<const State> state_;
};

/// A tensor or a PackedMatrix.
class MatrixOperand {
 public:
  MatrixOperand(const Tensor& t) : tensor_(&t) {}
  MatrixOperand(const PackedMatrix& p) : packed_(&p) {}
  const Tensor* tensor() const noexcept { return tensor_; }
  const PackedMatrix* packed() const noexcept { return packed_; }

 private:
  const Tensor* tensor_ = nullptr;
  const PackedMatrix* packed_ = nullptr;
};

/// Computes alpha a b, for each pair of matrices of the batches.
/// Shapes: a (*, m, k), b (*, k, n), result (*, m, n); batch dims broadcast. A vector a counts as (1, k), a vector b as
///   (k, 1), and the result lacks that dim. Any strides: transposed operands are not copied (complex ones may be).
/// Dtypes: of operands, what they are computed in, of the result:
///   f64: f64, f64.
///   f32, f16, bf16 (the same for both): f32, the operands'.
///   f8e4m3fn and f8e5m2 (any two): f32, f32.
///   i8 and u8 (any two): i32 modulo 2^32, i32; alpha and beta are whole numbers.
///   c64, c128: complex f32 or f64, the operands'.
/// Result: `dtype` takes another floating one for floating operands, rounded once where it is stored.
/// Determinism: each element is one chain s = fma(a_ik, b_kj, s) from s = 0 in the order of k, then alpha s (and
///   fma(beta, out, alpha s)): equal bits on every device, in any batch, with any neighbours, packed or not. Complex
///   numbers are pairs of such chains: re = fma(a.im, -b.im, fma(a.re, b.re, re)),
///   im = fma(a.im, b.re, fma(a.re, b.im, im)).
/// Accuracy: |result - exact| <= (k + 2) eps |a| |b|, componentwise, eps of the compute type (2k for complex ones);
///   rounded besides where stored. Integers are exact. With Numerics::blocks and matrix instructions instead
///   2 (k + 16) eps |a| |b| with eps = 2^-23, and the same bits for the same shapes on the same device; results below
///   2^-126 may be 0. With tf32 of f32 2^-10 |a| |b| more; subnormal operands may count as 0, and those from
///   2^128 (1 - 2^-12) on as infinite. With Numerics::f8 of f8 (k / 16 + 4) 2^-13 |a| |b|.
/// Scratch: b in panels, of its size in the compute type; an a that is not of the compute type as such.
/// Errors: invalid_shape; invalid_dtype; device_mismatch; invalid_overlap; invalid_argument for alpha or beta of
///   integers; not_supported for f64 without fp64, k of about 65535 on devices that end loops early, or an
///   implementation that refuses.
/// Stream: never waits.
/// Source: torch.matmul, torch._int_mm of PyTorch 2.12.
CLUTCH_API Tensor matmul(const Tensor& a, const MatrixOperand& b, const MatmulOptions& options = {},
                         const Stream& stream = {});
/// out = alpha a b + beta out; all of rank 2 at least.
CLUTCH_API void matmul_out(const Tensor& out, const Tensor& a, const MatrixOperand& b,
                           const MatmulOptions& options = {}, const Stream& stream = {});

/// Computes f(alpha a b, inputs ...), element by element, in the kernel that multiplies: bias, activation, residual,
/// scales, any traced function.
/// Function: its first input is the product in the compute type (i32 for integers), unrounded; the others are tensors
///   that broadcast to the result (*, m, n). Positions are places in the result.
/// Dtypes: as above without complex operands. The result's is `dtype`; else what the function casts to; else f16 or
///   bf16 where operands are and the function gives f32; else what it gives.
/// Launches: one. More than 5 inputs, or positions in batch dims, take a second one with the same bits, and no beta.
/// Errors: as above, and as map().
CLUTCH_API Tensor matmul(const Tensor& a, const MatrixOperand& b, const ExprFunction& f, std::span<const Tensor> inputs,
                         const MatmulOptions& options = {}, const Stream& stream = {});
/// out = f(alpha a b + beta out, inputs ...)
CLUTCH_API void matmul_out(const Tensor& out, const Tensor& a, const MatrixOperand& b, const ExprFunction& f,
                           std::span<const Tensor> inputs, const MatmulOptions& options = {},
                           const Stream& stream = {});

/// The dtype of the function's first input for operands of these dtypes: what products are traced as.
/// Errors: invalid_dtype, in the name of `op`.
CLUTCH_API DType product_dtype(DType a, DType b, std::string_view op = "linalg::product_dtype");

}  // namespace linalg
namespace detail {
CLUTCH_API DType matrix_dtype(const linalg::MatrixOperand& b);
template <std::size_t kInputs, class F>
ExprFunction trace_epilogue(F&& f, const Tensor& a, const linalg::MatrixOperand& b, std::span<const Tensor> inputs,
                            std::string_view op = "linalg::matmul") {
  std::array<DType, kInputs + 1> dtypes{linalg::product_dtype(a.dtype(), matrix_dtype(b), op)};
  std::vector<DType> traced = traced_dtypes(inputs, op);
  for (std::size_t i = 0; i < kInputs; ++i) dtypes[i + 1] = traced[i];
  return trace(f, dtypes);
}
}  // namespace detail
namespace linalg {

/// As above for a lambda, traced at each call: matmul(a, b, [](Expr x, Expr bias) { return relu(x + bias); }, {bias}).
template <class F, std::size_t kInputs>
requires clutch::detail::kIsLambda<F> Tensor matmul(const Tensor& a, const MatrixOperand& b, F&& f,
                                                    const Tensor (&inputs)[kInputs], const MatmulOptions& options = {},
                                                    const Stream& stream = {}) {
  return matmul(a, b, clutch::detail::trace_epilogue<kInputs>(f, a, b, inputs), std::span<const Tensor>(inputs),
                options, stream);
}
template <class F>
requires(clutch::detail::kIsLambda<F>&& std::is_invocable_v<F&, Expr>) Tensor
    matmul(const Tensor& a, const MatrixOperand& b, F&& f, const MatmulOptions& options = {},
           const Stream& stream = {}) {
  return matmul(a, b, clutch::detail::trace_epilogue<0>(f, a, b, {}), {}, options, stream);
}

template <class F, std::size_t kInputs>
requires clutch::detail::kIsLambda<F>
void matmul_out(const Tensor& out, const Tensor& a, const MatrixOperand& b, F&& f, const Tensor (&inputs)[kInputs],
                const MatmulOptions& options = {}, const Stream& stream = {}) {
  matmul_out(out, a, b, clutch::detail::trace_epilogue<kInputs>(f, a, b, inputs, "linalg::matmul_out"),
             std::span<const Tensor>(inputs), options, stream);
}

struct LinearOptions {
  nn::Activation activation = nn::Activation::none;
  DTypeList dtype = {};                 ///< of the result; empty: as matmul's
  Numerics numerics = Numerics::chain;  ///< of the product, in linear_backward() of the gradients' products
};
/// activation(x weight^T + bias): weight (out, in), or a PackedMatrix of its transpose (in, out); bias (out) or
/// undefined. One launch.
/// Source: torch.nn.functional.linear of PyTorch 2.12.
CLUTCH_API Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                         const LinearOptions& options = {}, const Stream& stream = {});
CLUTCH_API Tensor linear(const Tensor& x, const PackedMatrix& weight, const Tensor& bias = {},
                         const LinearOptions& options = {}, const Stream& stream = {});
/// Into the caller's tensor, of any dtype that `dtype` may name; it shares no memory with the others.
CLUTCH_API void linear_out(const Tensor& out, const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                           const LinearOptions& options = {}, const Stream& stream = {});
CLUTCH_API void linear_out(const Tensor& out, const Tensor& x, const PackedMatrix& weight, const Tensor& bias = {},
                           const LinearOptions& options = {}, const Stream& stream = {});

struct MatmulGradients {
  Tensor a, b;
  std::vector<Tensor> inputs = {};  ///< of an epilogue: one for each floating input, in order
};
struct MatmulBackwardOptions {
  Numerics numerics = Numerics::chain;  ///< of the gradients' products, and of the one that is computed again
};
/// Gradients of matmul(a, b): grad b^T and a^T grad, summed over batch dims that were broadcast.
/// Dtypes: f64, f32, f16 or bf16, the same of grad, a and b; gradients have it, too: sums in f32 (f64 for f64), rounded
///   once a product and, where batch dims were broadcast, once more for their sum.
/// Accuracy: of each product as matmul()'s with these numerics.
/// Errors: invalid_dtype, also for integers, f8 and complex ones; else as matmul().
CLUTCH_API MatmulGradients matmul_backward(const Tensor& grad, const Tensor& a, const Tensor& b,
                                           const MatmulBackwardOptions& options = {}, const Stream& stream = {});
/// Gradients of matmul(a, b, f, inputs): the product is computed again.
/// Dtypes: a and b as above; grad as map_backward() of f takes it; each gradient has its tensor's dtype.
CLUTCH_API MatmulGradients matmul_backward(const Tensor& grad, const Tensor& a, const Tensor& b, const ExprFunction& f,
                                           std::span<const Tensor> inputs, const MatmulBackwardOptions& options = {},
                                           const Stream& stream = {});
/// Into the caller's tensors, of these shapes and dtypes; an undefined one, or no list of inputs' gradients, is not
/// asked for. They may share memory with inputs.
CLUTCH_API void matmul_backward_out(const MatmulGradients& out, const Tensor& grad, const Tensor& a, const Tensor& b,
                                    const MatmulBackwardOptions& options = {}, const Stream& stream = {});
CLUTCH_API void matmul_backward_out(const MatmulGradients& out, const Tensor& grad, const Tensor& a, const Tensor& b,
                                    const ExprFunction& f, std::span<const Tensor> inputs,
                                    const MatmulBackwardOptions& options = {}, const Stream& stream = {});

struct LinearGradients {
  Tensor x, weight, bias;  ///< bias: undefined where the layer has none
};
/// Dtypes: x and weight of one dtype, as above, grad of the same without an activation; each gradient has its tensor's
///   dtype.
CLUTCH_API LinearGradients linear_backward(const Tensor& grad, const Tensor& x, const Tensor& weight,
                                           const Tensor& bias = {}, const LinearOptions& options = {},
                                           const Stream& stream = {});
/// As matmul_backward_out().
CLUTCH_API void linear_backward_out(const LinearGradients& out, const Tensor& grad, const Tensor& x,
                                    const Tensor& weight, const Tensor& bias = {}, const LinearOptions& options = {},
                                    const Stream& stream = {});

struct ScaledMatmulOptions {
  Tensor bias = {};      ///< broadcasts to the result
  DTypeList dtype = {};  ///< of the result: f32, f16 or bf16; empty: bf16
  Numerics numerics = Numerics::chain;
};
/// (a scale_a) (b scale_b) + bias for f8 operands (others may come, too): fma(product, scale_a scale_b, bias), rounded
/// once. Scales are f32: one, or one for each row of a (*, m, 1) and each column of b (*, 1, n).
/// Source: torch._scaled_mm of PyTorch 2.12, which rounds operands times scales instead.
CLUTCH_API Tensor scaled_matmul(const Tensor& a, const MatrixOperand& b, const Tensor& scale_a, const Tensor& scale_b,
                                const ScaledMatmulOptions& options = {}, const Stream& stream = {});
/// Into the caller's tensor, which has the place of `dtype`; it shares no memory with the others.
CLUTCH_API void scaled_matmul_out(const Tensor& out, const Tensor& a, const MatrixOperand& b, const Tensor& scale_a,
                                  const Tensor& scale_b, const ScaledMatmulOptions& options = {},
                                  const Stream& stream = {});

/// Values that whole numbers stand for: scale (number - zero_point). Scales are f32, zero points i32; undefined ones
/// are 1 and 0.
struct Quantization {
  Tensor scale = {}, zero_point = {};
};
struct QuantizedMatmulOptions {
  Tensor bias = {};      ///< f32, broadcasts to the result
  DTypeList dtype = {};  ///< of the result: f32, f16, bf16, or i8 and u8, which `result` quantises; empty: f32
  Quantization result = {};
};
/// Products of quantised i8 and u8 operands: with x = sum (a - zero_a) (b - zero_b), exact, and r = scale_a scale_b x +
/// bias in f32, r or, for i8 and u8, round(r / scale) + zero_point, to nearest even and clamped. Quantization of a is
/// one or one for each row (*, m, 1), of b one or for each column (*, 1, n).
/// Source: the x86 int8 backend of PyTorch 2.0.
CLUTCH_API Tensor quantized_matmul(const Tensor& a, const Quantization& of_a, const Tensor& b, const Quantization& of_b,
                                   const QuantizedMatmulOptions& options = {}, const Stream& stream = {});
/// As scaled_matmul_out().
CLUTCH_API void quantized_matmul_out(const Tensor& out, const Tensor& a, const Quantization& of_a, const Tensor& b,
                                     const Quantization& of_b, const QuantizedMatmulOptions& options = {},
                                     const Stream& stream = {});

}  // namespace linalg
}}  // namespace clutch::v0
