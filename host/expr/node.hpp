// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/expr.hpp>

#include <bit>
#include <functional>
#include <optional>

namespace clutch { inline namespace v0 { namespace detail {

/// Operations of traced functions: enumerator, name in the text, number of operands, class.
/// Classes: A arithmetic on numbers of one dtype; F floats; R rounding of floats; I integers; B integers or booleans;
/// C comparison of one dtype to boolean; X other.
#define CLUTCH_EXPR_OPS(ROW)            \
  ROW(add, "add", 2, A)                 \
  ROW(sub, "sub", 2, A)                 \
  ROW(mul, "mul", 2, A)                 \
  ROW(neg, "neg", 1, A)                 \
  ROW(abs, "abs", 1, A)                 \
  ROW(min, "min", 2, A)                 \
  ROW(max, "max", 2, A)                 \
  ROW(div, "div", 2, F)                 \
  ROW(fma, "fma", 3, F)                 \
  ROW(sqrt, "sqrt", 1, F)               \
  ROW(rsqrt, "rsqrt", 1, F)             \
  ROW(exp, "exp", 1, F)                 \
  ROW(exp2, "exp2", 1, F)               \
  ROW(expm1, "expm1", 1, F)             \
  ROW(log, "log", 1, F)                 \
  ROW(log2, "log2", 1, F)               \
  ROW(log1p, "log1p", 1, F)             \
  ROW(tanh, "tanh", 1, F)               \
  ROW(sigmoid, "sigmoid", 1, F)         \
  ROW(erf, "erf", 1, F)                 \
  ROW(sin, "sin", 1, F)                 \
  ROW(cos, "cos", 1, F)                 \
  ROW(pow, "pow", 2, F)                 \
  ROW(floor, "floor", 1, R)             \
  ROW(ceil, "ceil", 1, R)               \
  ROW(trunc, "trunc", 1, R)             \
  ROW(round, "round", 1, R)             \
  ROW(floor_div, "floor_div", 2, I)     \
  ROW(trunc_div, "trunc_div", 2, I)     \
  ROW(floor_mod, "floor_mod", 2, I)     \
  ROW(trunc_mod, "trunc_mod", 2, I)     \
  ROW(shift_left, "shl", 2, I)          \
  ROW(shift_right, "shr", 2, I)         \
  ROW(bit_and, "and", 2, B)             \
  ROW(bit_or, "or", 2, B)               \
  ROW(bit_xor, "xor", 2, B)             \
  ROW(bit_not, "not", 1, B)             \
  ROW(lt, "lt", 2, C)                   \
  ROW(le, "le", 2, C)                   \
  ROW(eq, "eq", 2, C)                   \
  ROW(ne, "ne", 2, C)                   \
  ROW(select, "select", 3, X)           \
  ROW(cast, "cast", 1, X)               \
  ROW(constant, "constant", 0, X)       \
  ROW(input, "input", 0, X)             \
  ROW(param, "param", 0, X)             \
  ROW(position, "position", 0, X)       \
  ROW(gather, "gather", -1, X)          \
  ROW(philox, "philox", 3, X)           \
  ROW(philox_wide, "philox_wide", 3, X) \
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

/// `index` of the position that is the element's place in row-major order.
inline constexpr int kPlace = kMaxRank;
inline bool is_random(ExprOp op) { return op == ExprOp::philox || op == ExprOp::philox_wide; }

/// The dtype in which a traced function computes with elements of a storage dtype. Errors: invalid_dtype.
DType compute_dtype(DType storage, std::string_view op);
inline bool is_wide(DType compute) { return compute == DType::f64 || compute == DType::i64 || compute == DType::u64; }

struct ExprNode {
  ExprOp op = ExprOp::constant;
  DType dtype = DType::f32;   ///< compute dtype; of a weak node f64, i64 or boolean
  bool weak = false;          ///< a C++ number or a param that has not been combined with a traced value yet
  DType target = DType::f32;  ///< of cast: the dtype asked for
  int index = 0;              ///< of input, position, text and a draw of random numbers
  int depth = 0;
  /// Of constant: its value; of param: its value, as f64 if `real`, else as i64; of philox: the number of the call that made the node, 0 if `index` is set; of
  /// gather without a tensor: 1 for the state of the default generator.
  std::uint64_t bits = 0;
  bool real = true;
  const void* identity = nullptr;  ///< of param: identifies the call of param() that made the node
  std::vector<std::shared_ptr<const ExprNode>> operands = {};
  Tensor tensor = {};  ///< of gather
};

/// A node of a canonical function. Operands are indices of earlier nodes.
struct ExprStep {
  ExprOp op = ExprOp::constant;
  DType dtype = DType::f32;
  DType target = DType::f32;
  int index = 0;  ///< of input, param, position, captured tensor, text, draw
  std::uint64_t bits = 0;
  std::vector<int> operands = {};
  friend bool operator==(const ExprStep&, const ExprStep&) = default;
};

/// The shared part of ExprFunctions. Inputs are the first steps.
struct ExprBody {
  std::vector<DType> inputs;
  std::vector<DType> params;
  struct Buffer {
    DType dtype;  ///< storage dtype
    int rank;
  };
  std::vector<Buffer> buffers;
  std::vector<ExprStep> steps;
  std::vector<int> outputs;
  std::vector<double> param_values;  ///< integers up to 2^53 are exact
  std::vector<Tensor> tensors;
  const std::string* text = nullptr;  ///< kept as long as the process
  std::uint64_t id = 0;               ///< equal for equal text, within the process
  double operations = 0;              ///< number for one call, as Cost counts: arithmetic, functions and roundings of floats
};

/// Sets text, id and operations.
void finish(ExprBody& body);

/// Indices of the captured tensors that are states of generators, from which the function draws numbers.
std::vector<int> generator_states(const ExprBody& body);
bool draws_numbers(const ExprBody& body);

/// Index of an OpenCL C text, equal for equal texts. Texts live as long as the process.
int text_number(const OpenclText& text);
const OpenclText& opencl_text(int number);

/// One operation on values, with the bits of the kernels. Operands have the dtypes that the step needs.
std::uint64_t evaluate_step(const ExprStep& step, DType operand_dtype, std::span<const std::uint64_t> operands);

/// A constant of a compute dtype from a number, rounded like a store to that dtype.
std::uint64_t constant_bits(DType dtype, double value);
std::uint64_t constant_bits(DType dtype, std::int64_t value);
double constant_value(DType dtype, std::uint64_t bits);

/// Builds a node and promotes its operands.
Expr make_expr(ExprOp op, std::initializer_list<Expr> operands);
Expr strong(const Expr& x);
Expr expr_constant(DType dtype, double value);

/// True if two tensors are views of the same elements with equal dtype, sizes and strides.
bool same_view(const Tensor& a, const Tensor& b);

/// A step of a function as an expression of its operands.
Expr expression_of(const ExprBody& body, const ExprStep& step, std::span<const Expr> operands);
/// Returns the replacement of step k, if any. `earlier` are the expressions of the steps before k.
using ExprRewrite = std::function<std::optional<Expr>(std::size_t k, const std::vector<Expr>& earlier)>;
/// All steps of a function as expressions.
std::vector<Expr> expressions_of(const ExprBody& body, const ExprRewrite& rewrite = {});

/// x -> x for a traced dtype; made once.
const ExprFunction& identity(DType dtype);
/// x -> cast(x, to) for a traced dtype.
ExprFunction conversion(DType from, DType to);
/// The function's outputs as expressions of `inputs`, which are cast if necessary.
std::vector<Expr> applied(const ExprFunction& function, std::span<const Expr> inputs);
/// outer(inner(...)): outer's inputs are inner's outputs, cast if necessary.
ExprFunction compose(const ExprFunction& outer, const ExprFunction& inner);

/// Gradient of one read of a floating captured tensor.
struct CapturedRead {
  int tensor = 0;                 ///< index of the captured tensor
  int step = 0;                   ///< step of the function
  std::optional<Dims> positions;  ///< for indices that are positions, their dimensions, negative ones counted from the end; nullopt for computed indices
  /// Functions of the inputs, then of a gradient for each floating output. `gradient` gives the gradient of the element read; `gradient_and_place` gives this
  /// and the element's row-major offset, in i64.
  ExprFunction gradient, gradient_and_place;
};
/// For each read of a floating captured tensor that the outputs depend on, in the order of the text. The function's tensors must be set.
std::vector<CapturedRead> captured_reads(const ExprFunction& function);

/// How a value differs between the lanes of a vector.
enum class LaneKind : std::uint8_t {
  any,
  same,
  consecutive,  ///< lane l has the first lane's value plus l
  descending,   ///< lane l has the first lane's value minus l
};

/// Names in printed text, so that one kernel may have two functions.
struct PrintNames {
  std::string_view macro = "EXPRESSION", extra = "EXTRA";
  char param = 'p', captured = 'c';
  std::size_t first_output = 0, first_input = SIZE_MAX;  ///< indices of operands; default: inputs follow outputs
  std::size_t first_position = SIZE_MAX;                 ///< default: positions follow outputs and inputs
  std::size_t memory_inputs = SIZE_MAX;                  ///< inputs from this index on are no operands but CLUTCH_TOTAL_VALUE_0, CLUTCH_TOTAL_VALUE_1, ...
  int known_step = -1;                                   ///< a step whose value is CLUTCH_KNOWN_VALUE
  bool random = false;                                   ///< the kernel has common/expr_random.clh
  /// Kinds of the inputs, if known. For each input that is not `any`, CLUTCH_LOAD_FIRST(k) must be the first lane's value. Captured tensors are then read at
  /// one place, or at consecutive places, if the kinds of their indices allow this.
  std::span<const LaneKind> lanes = {};
  /// The same of positions, for each of which CLUTCH_FIRST_POSITION(k) must be the first lane's value.
  std::span<const LaneKind> position_lanes = {};
};

/// OpenCL C of a function, as macros for kernels that include common/expr.clh:
///   CLUTCH_EXPRESSION(LOAD, POSITION, STORE): the statements. The kernel defines LOAD(k, dtype), POSITION(k) and STORE(k, dtype, value);
///   k counts outputs, then inputs, then positions.
///   CLUTCH_EXTRA_KERNEL_PARAMS, _PARAMS, _ARGUMENTS, _NAMES: params and captured tensors, each with a comma before it.
///   Random numbers: CLUTCH_DRAW(function, step, place, seed, offset, draw), which the kernel defines, and CLUTCH_NEAR_DRAWS: declarations of near<step>.
struct PrintedExpr {
  std::string text;
  std::vector<int> positions;  ///< dimensions of the positions, in order
};
/// Errors: not_supported for a function that draws random numbers, in other kernels than those that have them.
PrintedExpr print_opencl(const ExprFunction& function, std::span<const DType> output_dtypes, std::span<const DType> input_dtypes, const PrintNames& names = {});

/// CLUTCH_RANGES(RANGE_LOW, RANGE_HIGH): statements that bound the function's only output, a boolean, for i32 inputs k between RANGE_LOW(k) and RANGE_HIGH(k).
/// They set the ints `is_always` and `is_ever`. A captured tensor of i32 is read if each of its indices has one possible value. Params and captured tensors are
/// as in print_opencl().
std::string print_ranges(const ExprFunction& function, const PrintNames& names = {});

/// CLUTCH_FETCH_INPUTS(FETCH): FETCH(k, bytes of an element) for operands `first`, first + 1, ... of these dtypes.
std::string print_fetches(std::size_t first, std::span<const DType> dtypes);
/// Similar macros for tensors b0, b1, ... (BUFFER), their strides s0, s1, ... (STRIDE) and r1, ... (REDUCED), outputs first. No comma comes before
/// CLUTCH_BUFFER_KERNEL_PARAMS, which are a kernel's first parameters. CLUTCH_OUTPUT_ADDRESSES and CLUTCH_ADDRESSES: the bits of the outputs' and of all
/// addresses, joined by |.
std::string print_operands(std::size_t outputs, std::size_t inputs, std::size_t positions, std::size_t captured);
/// CLUTCH_TABLE_BUFFERS(table, first): declares b0, b1, ... as the tensors of a table (common/table.clh) from `first` on. CLUTCH_SPREAD_0, CLUTCH_SPREAD_1,
/// ...: 1 for an operand of one element for all; CLUTCH_SPREADS: the same, as a list. CLUTCH_LIST_ADDRESSES: the bits of the others' addresses, joined by |.
std::string print_table_operands(std::size_t outputs, std::span<const bool> spread);

}}}  // namespace clutch::v0::detail
