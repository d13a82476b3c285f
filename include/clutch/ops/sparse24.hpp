// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/matmul.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace clutch { inline namespace v0 {

/// 2:4 semi-structured matrices: at most two numbers of each quad are not zero. On every device.
/// Quads: four numbers along a row, the reduction dimension of products.
/// Shapes: any; a last quad of fewer than four numbers counts as one that ends in zeros.
namespace sparse {

/// Rule of what pruning keeps. The first of equal numbers is kept, NaN before all others, in the order of PyTorch's
/// Python reference.
enum class PruneRule : std::uint8_t {
  groups,  ///< the two of largest magnitude of each quad
  /// The largest values of each tile of 4 x 4 while their row and column have fewer than two: the transpose is 2:4, too
  tile_values,
  tile_magnitudes,  ///< the same by magnitude
  causal1122,       ///< of a tile's rows, one after another, the largest values: one, one, two and two, of columns two
};

struct PruneOptions {
  PruneRule rule = PruneRule::groups;
};

/// w (m, k) with what is not kept set to zero; numbers keep their bits.
/// Dtypes: f32, f64, f16, bf16, f8e4m3fn, f8e5m2, i8. Any strides; the result is contiguous.
/// Errors: invalid_shape unless w is of rank 2; invalid_dtype.
/// Stream: never waits.
/// Source: torch._sparse_semi_structured_tile of PyTorch 2.12 and its Python reference; `groups` is the usual magnitude
///   rule.
CLUTCH_API Tensor prune_2_4(const Tensor& w, const PruneOptions& options = {}, const Stream& stream = {});
/// Into the caller's tensor, of the result's shape and dtype and any strides; it may share memory with the inputs. So
/// do all out forms here but those of products.
CLUTCH_API void prune_2_4_out(const Tensor& out, const Tensor& w, const PruneOptions& options = {},
                              const Stream& stream = {});
/// Mask of what prune_2_4() keeps: booleans of w's shape.
CLUTCH_API Tensor mask_2_4(const Tensor& w, const PruneOptions& options = {}, const Stream& stream = {});
CLUTCH_API void mask_2_4_out(const Tensor& out, const Tensor& w, const PruneOptions& options = {},
                             const Stream& stream = {});
/// w where the mask is set, zero elsewhere, also where w is NaN: pruning again as training goes on.
/// Dtypes: as prune_2_4(); numbers keep their bits, NaN of f8 is the dtype's usual one.
CLUTCH_API Tensor apply_mask(const Tensor& w, const Tensor& mask, const Stream& stream = {});
CLUTCH_API void apply_mask_out(const Tensor& out, const Tensor& w, const Tensor& mask, const Stream& stream = {});
/// A mask's bits in PyTorch's order, u8 (m / 8, k / 8, 8): each 8 x 8 numbers are four tiles of 4 x 4, two bytes each,
/// their bits row after row, the first one lowest.
/// Errors: invalid_dtype unless boolean; invalid_shape unless 8 divides m and k.
/// Source: the compressed_swizzled_bitmask of torch.sparse.SparseSemiStructuredTensor.
CLUTCH_API Tensor to_bitmask(const Tensor& mask, const Stream& stream = {});
CLUTCH_API void to_bitmask_out(const Tensor& out, const Tensor& mask, const Stream& stream = {});
CLUTCH_API Tensor from_bitmask(const Tensor& bits, const Stream& stream = {});
CLUTCH_API void from_bitmask_out(const Tensor& out, const Tensor& bits, const Stream& stream = {});
/// One boolean, on the device: whether w is 2:4. Stream: never waits.
CLUTCH_API Tensor is_2_4(const Tensor& w, const Stream& stream = {});
CLUTCH_API void is_2_4_out(const Tensor& out, const Tensor& w, const Stream& stream = {});
/// Waits. Errors: invalid_argument naming the first quad that has more than two.
CLUTCH_API void require_2_4(const Tensor& w, const Stream& stream = {});

struct CompressOptions {
  /// Quads that are not 2:4 are marked in info(), and products with it are NaN throughout (for integers the least
  /// i32). false: PyTorch's two of three or four numbers are kept, the first ones of four.
  bool strict = true;
};

/// A 2:4 matrix (m, k) as its values and their places: 9/16 of the dense size for 16-bit types.
/// Copies: a cheap value. Later writes to the dense tensor do not reach it.
/// Packing: the first product of each kind packs what such products read besides, and it is kept.
class CLUTCH_API SemiStructured {
 public:
  SemiStructured() = default;
  /// From values (m, 2 ceil(k / 4)) and metadata (m, ceil(ceil(k / 4) / 2)), u8, contiguous. The two places of a quad
  /// differ.
  /// Errors: invalid_shape, invalid_dtype.
  SemiStructured(const Tensor& values, const Tensor& metadata, std::int64_t k);

  bool empty() const noexcept { return state_ == nullptr; }
  /// (m, k). Errors for empty ones: invalid_argument.
  const Dims& sizes() const;
  DType dtype() const;
  /// Bytes of values and metadata.
  std::uint64_t nbytes() const;
  /// Two for each quad.
  const Tensor& values() const;
  /// Four bits for each quad, the first quad's low: the place of the first value in the two low ones, of the second in
  /// the two high ones. Quads with fewer numbers have zeros among their values, at the places that PyTorch takes.
  const Tensor& metadata() const;
  /// One i32: -1, or the number of the first quad that had more than two, counted row after row.
  const Tensor& info() const;

  struct State;
  const std::shared_ptr<State>& state() const noexcept { return state_; }
  explicit SemiStructured(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

/// w (m, k) of prune_2_4()'s dtypes, any strides.
/// Errors: invalid_shape; invalid_dtype; not_supported for 2^31 quads and more.
/// Stream: never waits.
CLUTCH_API SemiStructured compress(const Tensor& w, const CompressOptions& options = {}, const Stream& stream = {});
/// The dense matrix; negative zeros may have become zeros.
CLUTCH_API Tensor decompress(const SemiStructured& s, const Stream& stream = {});
CLUTCH_API void decompress_out(const Tensor& out, const SemiStructured& s, const Stream& stream = {});

/// Values (m, k / 2) and metadata in the order of CUTLASS, as PyTorch's SparseSemiStructuredTensorCUTLASS holds them:
/// i16 (m, k / 16) for f16 and bf16, i32 (m, k / 32) for i8.
struct CutlassLayout {
  Tensor values, metadata;
};
/// Errors: invalid_dtype, also for f32, which CUTLASS holds as 1:2; invalid_shape unless 32 divides m (16 for i8) and k
///   (64).
CLUTCH_API CutlassLayout to_cutlass(const SemiStructured& s, const Stream& stream = {});
CLUTCH_API void to_cutlass_out(const CutlassLayout& out, const SemiStructured& s, const Stream& stream = {});
CLUTCH_API SemiStructured from_cutlass(const CutlassLayout& layout, const Stream& stream = {});

/// alpha w b for w (m, k) and b (*, k, n): (*, m, n). As linalg::matmul of decompress(w), with its dtypes, options and
/// epilogues; where b is finite and numerics is `chain`, with its bits. NaN and Inf of b that meet no value of w have
/// no effect where a kernel skips them, and make NaN where it has zeros in their places (on GPUs). Errors: as
/// linalg::matmul.
CLUTCH_API Tensor matmul(const SemiStructured& w, const Tensor& b, const linalg::MatmulOptions& options = {},
                         const Stream& stream = {});
CLUTCH_API Tensor matmul(const SemiStructured& w, const Tensor& b, const ExprFunction& f,
                         std::span<const Tensor> inputs, const linalg::MatmulOptions& options = {},
                         const Stream& stream = {});
CLUTCH_API void matmul_out(const Tensor& out, const SemiStructured& w, const Tensor& b,
                           const linalg::MatmulOptions& options = {}, const Stream& stream = {});
CLUTCH_API void matmul_out(const Tensor& out, const SemiStructured& w, const Tensor& b, const ExprFunction& f,
                           std::span<const Tensor> inputs, const linalg::MatmulOptions& options = {},
                           const Stream& stream = {});
/// alpha a w^T for a (*, m, k) and w (n, k): (*, m, n). PyTorch's dense @ sparse.t().
CLUTCH_API Tensor matmul_transposed(const Tensor& a, const SemiStructured& w, const linalg::MatmulOptions& options = {},
                                    const Stream& stream = {});
CLUTCH_API Tensor matmul_transposed(const Tensor& a, const SemiStructured& w, const ExprFunction& f,
                                    std::span<const Tensor> inputs, const linalg::MatmulOptions& options = {},
                                    const Stream& stream = {});
CLUTCH_API void matmul_transposed_out(const Tensor& out, const Tensor& a, const SemiStructured& w,
                                      const linalg::MatmulOptions& options = {}, const Stream& stream = {});
CLUTCH_API void matmul_transposed_out(const Tensor& out, const Tensor& a, const SemiStructured& w,
                                      const ExprFunction& f, std::span<const Tensor> inputs,
                                      const linalg::MatmulOptions& options = {}, const Stream& stream = {});

/// Either for a lambda, traced at each call: matmul(w, b, [](Expr x, Expr bias) { return relu(x + bias); }, {bias}).
template <class F, std::size_t kInputs>
requires clutch::detail::kIsLambda<F> Tensor matmul(const SemiStructured& w, const Tensor& b, F&& f,
                                                    const Tensor (&inputs)[kInputs],
                                                    const linalg::MatmulOptions& options = {},
                                                    const Stream& stream = {}) {
  return matmul(w, b, clutch::detail::trace_epilogue<kInputs>(f, w.values(), b, inputs, "sparse::matmul"),
                std::span<const Tensor>(inputs), options, stream);
}
template <class F, std::size_t kInputs>
requires clutch::detail::kIsLambda<F> Tensor matmul_transposed(const Tensor& a, const SemiStructured& w, F&& f,
                                                               const Tensor (&inputs)[kInputs],
                                                               const linalg::MatmulOptions& options = {},
                                                               const Stream& stream = {}) {
  return matmul_transposed(
      a, w, clutch::detail::trace_epilogue<kInputs>(f, a, w.values(), inputs, "sparse::matmul_transposed"),
      std::span<const Tensor>(inputs), options, stream);
}

/// (w scale_w) (b scale_b) + bias for f8 operands (others may come, too), as linalg::scaled_matmul: scales are f32,
/// one, or one for each row of w (m, 1) and each column of b (*, 1, n).
/// Source: torch._scaled_mm of PyTorch 2.12 with a sparse operand, which takes one scale each and no bias.
CLUTCH_API Tensor scaled_matmul(const SemiStructured& w, const Tensor& b, const Tensor& scale_w, const Tensor& scale_b,
                                const linalg::ScaledMatmulOptions& options = {}, const Stream& stream = {});
/// As linalg::scaled_matmul_out().
CLUTCH_API void scaled_matmul_out(const Tensor& out, const SemiStructured& w, const Tensor& b, const Tensor& scale_w,
                                  const Tensor& scale_b, const linalg::ScaledMatmulOptions& options = {},
                                  const Stream& stream = {});
/// (a scale_a) (w scale_w)^T + bias: scales one each, or (*, m, 1) for the rows of a and (1, n) for those of w.
CLUTCH_API Tensor scaled_matmul_transposed(const Tensor& a, const SemiStructured& w, const Tensor& scale_a,
                                           const Tensor& scale_w, const linalg::ScaledMatmulOptions& options = {},
                                           const Stream& stream = {});
CLUTCH_API void scaled_matmul_transposed_out(const Tensor& out, const Tensor& a, const SemiStructured& w,
                                             const Tensor& scale_a, const Tensor& scale_w,
                                             const linalg::ScaledMatmulOptions& options = {},
                                             const Stream& stream = {});

/// activation(x w^T + bias): w (out, in), bias (out) or undefined. One launch.
/// Source: torch.nn.functional.linear with a sparse weight.
CLUTCH_API Tensor linear(const Tensor& x, const SemiStructured& w, const Tensor& bias = {},
                         const linalg::LinearOptions& options = {}, const Stream& stream = {});
/// As linalg::linear_out().
CLUTCH_API void linear_out(const Tensor& out, const Tensor& x, const SemiStructured& w, const Tensor& bias = {},
                           const linalg::LinearOptions& options = {}, const Stream& stream = {});

struct LinearBackwardOptions {
  nn::Activation activation = nn::Activation::none;
  /// w^T, compressed: of a weight that was pruned by tiles. Without it the gradient of x is a dense product.
  SemiStructured transposed = {};
  /// The weight's gradient where w holds values, zero elsewhere; false: all of it.
  bool masked = true;
  linalg::Numerics numerics = linalg::Numerics::chain;  ///< of the products
};
/// Gradients of linear(): x's is grad w, the weight's, dense, grad^T x. Floating dtypes but f8.
/// Source: the training path of PyTorch's SparseSemiStructuredTensor.
CLUTCH_API linalg::LinearGradients linear_backward(const Tensor& grad, const Tensor& x, const SemiStructured& w,
                                                   const Tensor& bias = {}, const LinearBackwardOptions& options = {},
                                                   const Stream& stream = {});
/// As linalg::matmul_backward_out().
CLUTCH_API void linear_backward_out(const linalg::LinearGradients& out, const Tensor& grad, const Tensor& x,
                                    const SemiStructured& w, const Tensor& bias = {},
                                    const LinearBackwardOptions& options = {}, const Stream& stream = {});
/// Booleans (m, k): where w holds values, zeros among them.
CLUTCH_API Tensor mask_of(const SemiStructured& w, const Stream& stream = {});
CLUTCH_API void mask_of_out(const Tensor& out, const SemiStructured& w, const Stream& stream = {});

}  // namespace sparse
}}  // namespace clutch::v0
