// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/expr.hpp>

#include <bit>
#include <functional>
#include <optional>

namespace clutch { inline namespace v0 { namespace detail {

/// Operations of traced functions: enumerator, name in the text, operands, class.
/// Classes: A arithmetic on numbers of one dtype; F floats; R rounding of floats; I integers; B integers or booleans;
/// C comparison of one dtype to boolean; X a form of its own.
#define CLUTCH_EXPR_OPS(ROW)        \
  ROW(add, "add", 2, A)             \
  ROW(sub, "sub", 2, A)             \
  ROW(mul, "mul", 2, A)             \
  ROW(neg, "neg", 1, A)             \
  ROW(abs, "abs", 1, A)             \
  ROW(min, "min", 2, A)             \
  ROW(max, "max", 2, A)             \
  ROW(div, "div", 2, F)             \
  ROW(fma, "fma", 3, F)             \
  ROW(sqrt, "sqrt", 1, F)           \
  ROW(rsqrt, "rsqrt", 1, F)         \
  ROW(exp, "exp", 1, F)             \
  ROW(exp2, "exp2", 1, F)           \
  ROW(expm1, "expm1", 1, F)         \
  ROW(log, "log", 1, F)             \
  ROW(log2, "log2", 1, F)           \
  ROW(log1p, "log1p", 1, F)         \
  ROW(tanh, "tanh", 1, F)           \
  ROW(sigmoid, "sigmoid", 1, F)     \
  ROW(erf, "erf", 1, F)             \
  ROW(sin, "sin", 1, F)             \
  ROW(cos, "cos", 1, F)             \
  ROW(pow, "pow", 2, F)             \
  ROW(floor, "floor", 1, R)         \
  ROW(ceil, "ceil", 1, R)           \
  ROW(trunc, "trunc", 1, R)         \
  ROW(round, "round", 1, R)         \
  ROW(floor_div, "floor_div", 2, I) \
  ROW(trunc_div, "trunc_div", 2, I) \
  ROW(floor_mod, "floor_mod", 2, I) \
  ROW(trunc_mod, "trunc_mod", 2, I) \
  ROW(shift_left, "shl", 2, I)      \
  ROW(shift_right, "shr", 2, I)     \
  ROW(bit_and, "and", 2, B)         \
  ROW(bit_or, "or", 2, B)           \
  ROW(bit_xor, "xor", 2, B)         \
  ROW(bit_not, "not", 1, B)         \
  ROW(lt, "lt", 2, C)               \
  ROW(le, "le", 2, C)               \
  ROW(eq, "eq", 2, C)               \
  ROW(ne, "ne", 2, C)               \
  ROW(select, "select", 3, X)       \
  ROW(cast, "cast", 1, X)           \
  ROW(constant, "constant", 0, X)   \
  ROW(input, "input", 0, X)         \
  ROW(param, "param", 0, X)         \
  ROW(position, "position", 0, X)   \
  ROW(gather, "gather", -1, X)      \
  ROW(opencl, "opencl", -1, X)

enum class ExprOp : std::uint8_t {
#define CLUTCH_X(op, text, operands, kind) op,
  CLUTCH_EXPR_OPS(CLUTCH_X)
#undef CLUTCH_X
};

struct ExprOpInfo {
  std::string_view name;
  int operands;
  char kind;
};
inline constexpr ExprOpInfo kExprOps[] = {
#define CLUTCH_X(op, text, operands, kind) {text, operands, #kind[0]},
    CLUTCH_EXPR_OPS(CLUTCH_X)
#undef CLUTCH_X
};
inline const ExprOpInfo& info(ExprOp op) { return kExprOps[static_cast<std::size_t>(op)]; }

inline constexpr int kMaxExprNodes = 4096;

/// The dtype in which a traced function computes with elements of a dtype. Errors: invalid_dtype.
DType compute_dtype(DType storage, std::string_view op);
inline bool is_wide(DType compute) { return compute == DType::f64 || compute == DType::i64; }

struct ExprNode {
  ExprOp op = ExprOp::constant;
  DType dtype = DType::f32;   ///< compute dtype; of a weak node f64, i64 or boolean
  bool weak = false;          ///< a number of C++ or a param that has met no traced value yet
  DType target = DType::f32;  ///< of cast: the dtype asked for
  int index = 0;              ///< of input, position and text
  int depth = 0;
  std::uint64_t bits = 0;  ///< of constant; of param its value, as f64 or i64 by `real`
  bool real = true;
  const void* identity = nullptr;  ///< of param: which call of param() it came from
  std::vector<std::shared_ptr<const ExprNode>> operands = {};
  Tensor tensor = {};  ///< of gather
};

/// A node of a canonical function: operands are numbers of earlier nodes.
struct ExprStep {
  ExprOp op = ExprOp::constant;
  DType dtype = DType::f32;
  DType target = DType::f32;
  int index = 0;  ///< of input, param, position, captured tensor, text
  std::uint64_t bits = 0;
  std::vector<int> operands = {};
  friend bool operator==(const ExprStep&, const ExprStep&) = default;
};

/// What an ExprFunction shares. Inputs are the first steps.
struct ExprBody {
  std::vector<DType> inputs;
  std::vector<DType> params;
  struct Buffer {
    DType dtype;  ///< storage
    int rank;
  };
  std::vector<Buffer> buffers;
  std::vector<ExprStep> steps;
  std::vector<int> outputs;
  std::vector<double> param_values;  ///< integers up to 2^53 are exact
  std::vector<Tensor> tensors;
  const std::string* text = nullptr;  ///< kept for the process
  std::uint64_t id = 0;               ///< equal for equal text, within the process
  double operations = 0;              ///< of one call, as Cost counts them: arithmetic, functions and roundings of floats
};

/// Fills text, id and operations.
void finish(ExprBody& body);

/// OpenCL C by numbers, kept for the process: equal text has an equal one.
int text_number(const OpenclText& text);
const OpenclText& opencl_text(int number);

/// One operation on values, with the bits of the kernels; operands have the dtypes that the step needs.
std::uint64_t evaluate_step(const ExprStep& step, DType operand_dtype, std::span<const std::uint64_t> operands);

/// A constant of a compute dtype from a number, rounded as the store to that dtype rounds.
std::uint64_t constant_bits(DType dtype, double value);
std::uint64_t constant_bits(DType dtype, std::int64_t value);
double constant_value(DType dtype, std::uint64_t bits);

/// Builds nodes with promotion; `name` is for errors.
Expr make_expr(ExprOp op, std::initializer_list<Expr> operands);
Expr strong(const Expr& x);
Expr expr_constant(DType dtype, double value);

/// Whether two tensors are the same elements, seen alike.
bool same_view(const Tensor& a, const Tensor& b);

/// A step of a function as an expression over its operands.
Expr expression_of(const ExprBody& body, const ExprStep& step, std::span<const Expr> operands);
/// What takes the place of step k, if anything; `earlier` are the expressions of the steps before it.
using ExprRewrite = std::function<std::optional<Expr>(std::size_t k, const std::vector<Expr>& earlier)>;
/// All steps of a function as expressions.
std::vector<Expr> expressions_of(const ExprBody& body, const ExprRewrite& rewrite = {});

/// x -> x for a traced dtype; made once.
const ExprFunction& identity(DType dtype);
/// The function's outputs as expressions over others, one for each input, cast if need be.
std::vector<Expr> applied(const ExprFunction& function, std::span<const Expr> inputs);
/// outer(inner(...)): outer's inputs are inner's outputs, cast if need be.
ExprFunction compose(const ExprFunction& outer, const ExprFunction& inner);

/// What flows back to one read of a floating captured tensor.
struct CapturedRead {
  int tensor = 0;                 ///< which one
  int step = 0;                   ///< of the function
  std::optional<Dims> positions;  ///< the dimension that each index is the position of, negative ones from the end; none: computed indices
  /// Functions of the inputs, then of a gradient for each floating output: the gradient of the element read; and that, and the
  /// element's place in row-major order, in i64.
  ExprFunction gradient, gradient_and_place;
};
/// For each read of a floating captured tensor that the outputs depend on, in the order of the text. The tensors are to be set.
std::vector<CapturedRead> captured_reads(const ExprFunction& function);

/// How a value differs between the lanes of a vector.
enum class LaneKind : std::uint8_t {
  any,
  same,
  consecutive,  ///< lane l holds the first lane's plus l
  descending,   ///< lane l holds the first lane's minus l
};

/// What printed text calls things, so that one kernel may hold two functions.
struct PrintNames {
  std::string_view macro = "EXPRESSION", extra = "EXTRA";
  char param = 'p', captured = 'c';
  std::size_t first_output = 0, first_input = SIZE_MAX;  ///< numbers of the operands; inputs follow outputs unless said
  std::size_t first_position = SIZE_MAX;                 ///< positions follow outputs and inputs unless said
  std::size_t memory_inputs = SIZE_MAX;                  ///< inputs from here on are no operands but CLUTCH_TOTAL_VALUE_0, ...
  int known_step = -1;                                   ///< a step whose value is CLUTCH_KNOWN_VALUE
  /// Of the inputs, where it is known; of those that are not `any` CLUTCH_LOAD_FIRST(k) is the first lane's value. Captured tensors are then read at one place,
  /// or at consecutive ones, where their indices allow it.
  std::span<const LaneKind> lanes = {};
};

/// OpenCL C of a function, as macros for kernels that include common/expr.clh:
///   CLUTCH_EXPRESSION(LOAD, POSITION, STORE), the statements; LOAD(k, dtype), POSITION(k) and STORE(k, dtype, value) are the
///   kernel's, k counts outputs, then inputs, then positions;
///   CLUTCH_EXTRA_KERNEL_PARAMS, _PARAMS, _ARGUMENTS, _NAMES: its params and captured tensors, each with a comma before it.
struct PrintedExpr {
  std::string text;
  std::vector<int> positions;  ///< dimensions of the positions, in order
};
PrintedExpr print_opencl(const ExprFunction& function, std::span<const DType> output_dtypes, std::span<const DType> input_dtypes, const PrintNames& names = {});

/// CLUTCH_RANGES(RANGE_LOW, RANGE_HIGH), statements that bound the function's only output, a boolean, where input k, of i32, lies between RANGE_LOW(k) and
/// RANGE_HIGH(k): ints `is_always` and `is_ever`. Captured tensors of i32 are looked at where their indices are single numbers. Params and captured tensors as
/// in print_opencl().
std::string print_ranges(const ExprFunction& function, const PrintNames& names = {});

/// CLUTCH_FETCH_INPUTS(FETCH): FETCH(k, bytes of an element) for operands `first`, first + 1, ... of these dtypes.
std::string print_fetches(std::size_t first, std::span<const DType> dtypes);
/// The like macros for tensors b0, b1, ... (BUFFER), their strides s0, s1, ... (STRIDE) and r1, ... (REDUCED), outputs first.
std::string print_operands(std::size_t outputs, std::size_t inputs, std::size_t positions, std::size_t captured);

}}}  // namespace clutch::v0::detail
