// SPDX-License-Identifier: Apache-2.0
#pragma once
// One product between the public functions (matmul.cpp) and the kernels (matmul/run.cpp).
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
  Tensor panels;    ///< (batch, panels, k, columns of a panel) in the compute type; undefined if `original` is used
  bool words;       ///< panels hold words of four bytes, after a row of column sums
  Tensor original;  ///< contiguous copy, for devices whose kernels take no panels
};

namespace detail {

inline constexpr const char* kMatmul = "linalg::matmul";

inline bool is_f8(DType d) { return d == DType::f8e4m3fn || d == DType::f8e5m2; }
inline bool is_byte(DType d) { return d == DType::i8 || d == DType::u8; }

const Dims& sizes_of(const linalg::MatrixOperand& b);
/// The tensor that kernels read. Errors: invalid_argument for an empty PackedMatrix.
const Tensor& memory_of(const linalg::MatrixOperand& b);

/// How an item multiplies: size of its register tiles, and how it reads b.
struct Tiling {
  std::int64_t rows = 6, vectors = kMatmulVectors, block = 256, tiles = 32;  ///< tiles: most tiles that an item takes along the rows
  MatmulPlace place = MatmulPlace::packed;

  friend bool operator==(const Tiling&, const Tiling&) = default;
  std::string to_string() const;
  /// nullopt unless the text is a Tiling of this version.
  static std::optional<Tiling> parse(const std::string& text);
};

/// One call, with operands of rank 2 at least. If `f` is empty, the result is the product.
struct MatmulCall {
  Runtime* runtime;
  Tensor out, a;  ///< out: undefined until it is allocated
  const linalg::MatrixOperand* b;
  const ExprFunction* f;
  std::vector<Tensor> inputs;
  linalg::MatmulOptions options;
  Dims sizes;
  DType output;
  std::optional<Tiling> tiling = {};                           ///< given by the caller, as in tuning
  std::shared_ptr<sparse::SemiStructured::State> sparse = {};  ///< replaces a, of which only sizes and dtype are used
  bool transposed = false;                                     ///< rows and columns are swapped, so the function's row positions count columns
};

/// Checks a call; `out` is null if the result is still to be allocated. Errors: as linalg::matmul().
MatmulCall check_matmul(const Tensor* out, const Tensor& a, const linalg::MatrixOperand& b, const ExprFunction& f, std::span<const Tensor> inputs,
                        const linalg::MatmulOptions& options);
/// (*, m, n) for operands of rank 2 at least.
Dims product_sizes(const Dims& a, const Dims& b);
/// Errors: if the function's tensors do not fit the result.
void check_matmul_inputs(const MatmulCall& call);
/// activation(x w^T + bias), where `product` multiplies rows with w^T. w is (out, in) of dtype `of_weight`.
Tensor linear_by(const Tensor& x, DType of_weight, std::int64_t out, const Tensor& bias, const linalg::LinearOptions& options, const char* op,
                 const std::function<Tensor(const Tensor& rows, const ExprFunction& f, std::span<const Tensor> inputs)>& product);

/// The caller's output for a vector x, as one row. Errors: invalid_shape unless the output is a vector.
Tensor row_of(const Tensor& vector);
/// For out forms: stores a layer's gradients into the caller's tensors. Errors: as store().
void store_linear(const linalg::LinearGradients& out, const linalg::LinearGradients& made, const char* op, const Stream& stream);

/// The product of dtype `product`, computed by `multiply`, times both scales, plus a bias. Errors: as linalg::scaled_matmul().
Tensor scaled_by(DType product, const Tensor& scale_a, const Tensor& scale_b, const linalg::ScaledMatmulOptions& options, const char* op,
                 const std::function<Tensor(const ExprFunction&, std::span<const Tensor>, const linalg::MatmulOptions&)>& multiply);

/// From the gradient of a linear layer's result: returns the gradient of x w^T and sets the bias's, if there is one. With an activation the product is computed
/// again by `product_again`, in the dtype that it is given.
Tensor linear_sums_backward(const Tensor& grad, DType dtype, const Tensor& bias, const linalg::LinearOptions& options,
                            const std::function<Tensor(DType)>& product_again, Tensor* of_bias, const Stream& stream);

/// The name of the implementation that takes a problem. Errors: as select().
std::string_view matmul_entry(const DeviceTraits& traits, const MatmulProblem& problem, std::string_view forced);
/// Errors: invalid_argument for a name that no implementation has.
void check_matmul_implementation(bool sparse, std::string_view forced);
/// Reasons why matmul_lanes (a matrix in each lane), matmul_few, matmul_matrix or CLBlast refuses a problem; empty if it accepts.
std::string fits_matmul_lanes(const DeviceTraits& traits, const MatmulProblem& problem);
std::string fits_few(const DeviceTraits& traits, const MatmulProblem& problem);
std::string fits_matrix(const DeviceTraits& traits, const MatmulProblem& problem);
std::string fits_clblast(const DeviceTraits& traits, const MatmulProblem& problem);

/// Panels of `width` columns into which a b of k rows and n columns is packed. A complex number counts as two rows and two columns.
struct Panels {
  bool words;                  ///< words of four bytes, after a row of column sums
  std::int64_t rows, columns;  ///< of b
  std::int64_t width, length;  ///< columns and rows of a panel
  std::int64_t across;         ///< number of panels of a matrix
  std::int64_t numbers;        ///< numbers of a panel

  Panels(DType of_b, bool words, std::int64_t k, std::int64_t n, std::int64_t width);
};
/// Lanes of a vector of a panel.
std::int64_t panel_lanes(const DeviceTraits& traits, const MatmulProblem& problem);
/// Enqueues the plan of Part::pack for b, (batch, k, n).
void pack_panels(Encoder& encoder, const BuiltPlan& plan, const Panels& shape, const Tensor& panels, const Tensor& b);

/// The plan's kernel with its printed epilogue.
const BuiltPlan& matmul_plan(const MatmulCall& call, const MatmulProblem& problem);
/// Makes the call one of the transposed product: out^T = b^T a^T, with `a` for b^T and `b` for a^T, or what stands for them.
void swap_sides(MatmulCall& call, const Tensor& a, const linalg::MatrixOperand& b);
/// Enqueues a product into an existing output, whose complex columns are adjacent.
void run_matmul(MatmulCall call, const Stream& stream);

/// The fastest measured tiling for a call of `rows` rows in all; nullopt if none was measured. `lanes`: of a vector; unit_columns: b's columns have stride 1.
std::optional<Tiling> tuned_tiling(const MatmulCall& call, const Tiling& own, std::int64_t rows, std::int64_t batch, std::int64_t lanes, bool unit_columns,
                                   const Stream& stream);
/// True if CLBlast was measured to be faster than tiles in local memory.
bool library_is_faster(const MatmulCall& call, const MatmulProblem& problem, const Stream& stream);

}  // namespace detail
}}  // namespace clutch::v0
