// SPDX-License-Identifier: Apache-2.0
#pragma once
// One product on its way from the public functions (matmul.cpp) to the kernels (matmul/run.cpp).
#include "ops/matmul/clblast.hpp"
#include "ops/matmul_plan.hpp"
#include "ops/sparse24_plan.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace clutch { inline namespace v0 {

struct linalg::PackedMatrix::State {
  Dims sizes;
  DType dtype;
  Tensor panels;    ///< (batch, panels, k, columns of a panel) in the compute type, or undefined:
  bool words;       ///< panels of words of four bytes, behind their columns' sums
  Tensor original;  ///< on devices that do not take panels, a contiguous copy
};

namespace detail {

inline constexpr const char* kMatmul = "linalg::matmul";

inline bool is_f8(DType d) { return d == DType::f8e4m3fn || d == DType::f8e5m2; }
inline bool is_byte(DType d) { return d == DType::i8 || d == DType::u8; }

const Dims& sizes_of(const linalg::MatrixOperand& b);
/// The tensor that kernels read. Errors: invalid_argument for an empty PackedMatrix.
const Tensor& memory_of(const linalg::MatrixOperand& b);

/// How an item multiplies: its register tiles and how b is read.
struct Tiling {
  std::int64_t rows = 6, vectors = kMatmulVectors, block = 256, tiles = 32;  ///< tiles: most of an item, down
  MatmulPlace place = MatmulPlace::packed;

  friend bool operator==(const Tiling&, const Tiling&) = default;
  std::string to_string() const;
  /// Nothing for a text that is none, or of another version's.
  static std::optional<Tiling> parse(const std::string& text);
};

/// One call: operands of rank 2 at least. `f` empty: the product itself.
struct MatmulCall {
  Runtime* runtime;
  Tensor out, a;  ///< out: undefined where it is still to be made
  const linalg::MatrixOperand* b;
  const ExprFunction* f;
  std::vector<Tensor> inputs;
  linalg::MatmulOptions options;
  Dims sizes;
  DType output;
  std::optional<Tiling> tiling = {};                           ///< forced
  std::shared_ptr<sparse::SemiStructured::State> sparse = {};  ///< stands for a, of which only sizes and dtype count
  bool transposed = false;                                     ///< rows and columns changed places: the function's positions count the others
};

/// The call of such operands, `out` null where it is still to be made. Errors: as linalg::matmul().
MatmulCall check_matmul(const Tensor* out, const Tensor& a, const linalg::MatrixOperand& b, const ExprFunction& f, std::span<const Tensor> inputs,
                        const linalg::MatmulOptions& options);
/// (*, m, n) of operands of rank 2 at least.
Dims product_sizes(const Dims& a, const Dims& b);
/// Errors: if the function's tensors do not fit the result.
void check_matmul_inputs(const MatmulCall& call);
/// activation(x w^T + bias) by such a product of rows with w^T, w being (out, in) of that dtype.
Tensor linear_by(const Tensor& x, DType of_weight, std::int64_t out, const Tensor& bias, const linalg::LinearOptions& options, const char* op,
                 const std::function<Tensor(const Tensor& rows, const ExprFunction& f, std::span<const Tensor> inputs)>& product);

/// The caller's output for an x that is a vector, as one row. Errors: invalid_shape unless it is a vector.
Tensor row_of(const Tensor& vector);
/// For out forms: a layer's gradients into the caller's tensors. Errors: as store().
void store_linear(const linalg::LinearGradients& out, const linalg::LinearGradients& made, const char* op, const Stream& stream);

/// The product of that dtype, by `multiply`, times both scales, plus a bias. Errors: as linalg::scaled_matmul().
Tensor scaled_by(DType product, const Tensor& scale_a, const Tensor& scale_b, const linalg::ScaledMatmulOptions& options, const char* op,
                 const std::function<Tensor(const ExprFunction&, std::span<const Tensor>, const linalg::MatmulOptions&)>& multiply);

/// Of a linear layer's result, its gradient for x w^T, and the bias's where there is one; for activations the product in that dtype is made again.
Tensor linear_sums_backward(const Tensor& grad, DType dtype, const Tensor& bias, const linalg::LinearOptions& options,
                            const std::function<Tensor(DType)>& product_again, Tensor* of_bias, const Stream& stream);

/// The name of the implementation that takes a problem. Errors: as select().
std::string_view matmul_entry(const DeviceTraits& traits, const MatmulProblem& problem, std::string_view forced);
/// Why a matrix in each lane, or CLBlast, does not take a problem.
std::string fits_matmul_lanes(const DeviceTraits& traits, const MatmulProblem& problem);
std::string fits_clblast(const DeviceTraits& traits, const MatmulProblem& problem);

/// Panels of `width` columns that a b of k rows and n columns is packed into. Complex numbers are two rows and two columns.
struct Panels {
  bool words;                  ///< of four bytes each, behind a row of their columns' sums
  std::int64_t rows, columns;  ///< of b
  std::int64_t width, length;  ///< columns and rows of a panel
  std::int64_t across;         ///< panels side by side
  std::int64_t numbers;        ///< of a panel

  Panels(DType of_b, bool words, std::int64_t k, std::int64_t n, std::int64_t width);
};
/// Numbers of a vector of panels.
std::int64_t panel_lanes(const DeviceTraits& traits, const MatmulProblem& problem);
/// Enqueues the plan of Part::pack for b, (batch, k, n).
void pack_panels(Encoder& encoder, const BuiltPlan& plan, const Panels& shape, const Tensor& panels, const Tensor& b);

/// The plan's kernel with its printed epilogue.
const BuiltPlan& matmul_plan(const MatmulCall& call, const MatmulProblem& problem);
/// Enqueues a product into an output that is there, whose complex columns lie side by side.
void run_matmul(MatmulCall call, const Stream& stream);

/// The tiling that was measured to be the fastest for a call of `rows` rows in all, if any. `lanes`: of a vector; unit_columns: b's lie side by side.
std::optional<Tiling> tuned_tiling(const MatmulCall& call, const Tiling& own, std::int64_t rows, std::int64_t batch, std::int64_t lanes, bool unit_columns,
                                   const Stream& stream);
/// Whether CLBlast was measured to be faster than tiles in local memory.
bool library_is_faster(const MatmulCall& call, const MatmulProblem& problem, const Stream& stream);

}  // namespace detail
}}  // namespace clutch::v0
