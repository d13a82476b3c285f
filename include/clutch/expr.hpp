// SPDX-License-Identifier: Apache-2.0
#pragma once
// Traced expressions: a C++ lambda over Expr runs once, on the host, and what it computed becomes one kernel on any
// device. Functions of an Expr have the same names as those of numbers; ADL finds them.
#include <clutch/random.hpp>
#include <clutch/tensor.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

namespace clutch { inline namespace v0 {

namespace detail {
struct ExprNode;
struct ExprBody;
template <class>
inline constexpr bool kNever = false;
}  // namespace detail

/// A traced value: a handle to an immutable node. Its dtype is one of f32, f64, i32, i64, u64 and boolean.
/// Dtypes: operands of two dtypes promote to the later one of boolean, i32, i64, u64, f32, f64; numbers of C++ (and
///   params) adopt the dtype of the traced operand, as do floating results of numbers alone, but a floating number
///   makes integers f32. Functions of real analysis, and `/`, make integers f32. Integers wrap.
/// Errors: invalid_dtype for an operand that an operation does not take, invalid_argument past 4096 nodes of depth.
/// Traced values have no truth while tracing: `if`, `?:`, `&&` and `||` on them do not compile.
class CLUTCH_API Expr {
 public:
  /// A number: a literal, baked into the kernel.
  template <class T>
  requires std::is_arithmetic_v<T> Expr(T number) : Expr(literal(number)) {}

  DType dtype() const noexcept;

  template <class Bool = bool>
  requires std::is_same_v<Bool, bool>
  explicit operator Bool() const {
    static_assert(
        detail::kNever<Bool>,
        "a traced value has no truth while tracing: use clutch::select(condition, a, b) instead of if and ?:");
    return false;
  }

  template <class Index>
  Expr operator[](const Index&) const {
    static_assert(detail::kNever<Index>,
                  "a captured tensor takes all of its indices at once: write c[{q, kv}] for c[q][kv]");
    return *this;
  }

  explicit Expr(std::shared_ptr<const detail::ExprNode> node) noexcept : node_(std::move(node)) {}
  const std::shared_ptr<const detail::ExprNode>& node() const noexcept { return node_; }

 private:
  template <class T>
  static Expr literal(T number) {
    if constexpr (std::is_same_v<T, bool>)
      return boolean(number);
    else if constexpr (std::is_floating_point_v<T>)
      return real(static_cast<double>(number));
    else
      return whole(static_cast<std::int64_t>(number));
  }
  static Expr boolean(bool value);
  static Expr real(double value);
  static Expr whole(std::int64_t value);

  std::shared_ptr<const detail::ExprNode> node_;
};

/// Arithmetic. Floats: correctly rounded, never contracted. Integers wrap; `/` of integers is a quotient in f32.
CLUTCH_API Expr operator+(const Expr& a, const Expr& b);
CLUTCH_API Expr operator-(const Expr& a, const Expr& b);
CLUTCH_API Expr operator*(const Expr& a, const Expr& b);
CLUTCH_API Expr operator/(const Expr& a, const Expr& b);
CLUTCH_API Expr operator-(const Expr& x);
inline Expr& operator+=(Expr& a, const Expr& b) { return a = a + b; }
inline Expr& operator-=(Expr& a, const Expr& b) { return a = a - b; }
inline Expr& operator*=(Expr& a, const Expr& b) { return a = a * b; }
inline Expr& operator/=(Expr& a, const Expr& b) { return a = a / b; }
/// a * b + c, rounded once.
CLUTCH_API Expr fma(const Expr& a, const Expr& b, const Expr& c);
/// The smaller and the larger; NaN if either is NaN, as torch.minimum. Derivative at a tie: one half each.
CLUTCH_API Expr min(const Expr& a, const Expr& b);
CLUTCH_API Expr max(const Expr& a, const Expr& b);
/// Derivative at 0: 0.
CLUTCH_API Expr abs(const Expr& x);
/// Integers only: the quotient towards minus infinity and towards 0, and what remains of each. By 0: 0 and 0.
CLUTCH_API Expr floor_div(const Expr& a, const Expr& b);
CLUTCH_API Expr trunc_div(const Expr& a, const Expr& b);
CLUTCH_API Expr floor_mod(const Expr& a, const Expr& b);
CLUTCH_API Expr trunc_mod(const Expr& a, const Expr& b);

/// Elementary functions, the same bits on every device. Largest errors in ulp over all floats, and sampled in f64:
///            sqrt  rsqrt  exp   exp2  expm1  log   log2  log1p  tanh  sigmoid  erf   sin   cos   pow
///   f32      0.5   1.5    0.9   0.87  1.33   0.85  1.18  0.85   1.41  1.97     1.08  0.85  0.85  1 (sampled)
///   f64      0.5   1.5    0.9   0.9   1.8    0.9   0.95  0.9    1.4   1.9      1.1   0.9   0.9   3
/// Flushing: devices that flush subnormals have these errors where neither argument nor result is one.
/// Special values: C99's, of pow, too.
CLUTCH_API Expr sqrt(const Expr& x);
CLUTCH_API Expr rsqrt(const Expr& x);
CLUTCH_API Expr exp(const Expr& x);
CLUTCH_API Expr exp2(const Expr& x);
CLUTCH_API Expr expm1(const Expr& x);
CLUTCH_API Expr log(const Expr& x);
CLUTCH_API Expr log2(const Expr& x);
CLUTCH_API Expr log1p(const Expr& x);
CLUTCH_API Expr tanh(const Expr& x);
CLUTCH_API Expr sigmoid(const Expr& x);
CLUTCH_API Expr erf(const Expr& x);
CLUTCH_API Expr sin(const Expr& x);
CLUTCH_API Expr cos(const Expr& x);
CLUTCH_API Expr pow(const Expr& x, const Expr& y);
/// To a whole number; integers stay what they are. round takes ties to even. Derivatives are 0.
CLUTCH_API Expr floor(const Expr& x);
CLUTCH_API Expr ceil(const Expr& x);
CLUTCH_API Expr trunc(const Expr& x);
CLUTCH_API Expr round(const Expr& x);

/// Comparisons, of dtype boolean; with NaN all but != are false.
CLUTCH_API Expr operator<(const Expr& a, const Expr& b);
CLUTCH_API Expr operator<=(const Expr& a, const Expr& b);
CLUTCH_API Expr operator==(const Expr& a, const Expr& b);
CLUTCH_API Expr operator!=(const Expr& a, const Expr& b);
inline Expr operator>(const Expr& a, const Expr& b) { return b < a; }
inline Expr operator>=(const Expr& a, const Expr& b) { return b <= a; }
CLUTCH_API Expr isnan(const Expr& x);
/// Logic of booleans and of integers, bit by bit.
CLUTCH_API Expr operator&(const Expr& a, const Expr& b);
CLUTCH_API Expr operator|(const Expr& a, const Expr& b);
CLUTCH_API Expr operator^(const Expr& a, const Expr& b);
CLUTCH_API Expr operator~(const Expr& x);
/// Integers; the count is taken modulo the bits of the dtype, >> keeps the sign (u64 has none).
CLUTCH_API Expr operator<<(const Expr& x, const Expr& count);
CLUTCH_API Expr operator>>(const Expr& x, const Expr& count);
/// "x is 0", of dtype boolean.
CLUTCH_API Expr operator!(const Expr& x);
/// a where the condition holds (is not 0), else b.
CLUTCH_API Expr select(const Expr& condition, const Expr& a, const Expr& b);
/// The value as `dtype` would store it, by the rules of clutch::cast, but to f16 and bf16 by way of f32; computed on in
/// the dtype's compute type (f32 for f16 and bf16, i32 for i8, u8, i16 and u16, i64 for u32).
/// Errors: invalid_dtype for complex and for 8-, 6- and 4-bit floating dtypes.
CLUTCH_API Expr cast(const Expr& x, DType dtype);

/// OpenCL C, for what tracing has no word for: an expression over x0, x1, ..., which are vectors of some lanes (float,
/// double, int, long, which of u64 has the bits; booleans are ints as comparisons of floats and ints give them), or
/// scalars, as devices go; scalars are mixed with vectors.
struct OpenclText {
  std::string value;  ///< as "x0 > 0 ? x0 : x1 * x0"
  /// The value's derivatives by each argument, likewise expressions over x0, x1, ...; empty text: zero. None at all:
  /// backward() of it is not_supported.
  std::vector<std::string> derivatives = {};
};
/// The text's value at these, as a `dtype` of traced values; arguments go by their dtypes. Equal text is one operation:
/// it is to have no effects. Lambdas and masks of it compose as others do; the host cannot evaluate() it, and of a mask
/// nothing is known but at elements.
/// Errors: invalid_argument without an expression, or for another count of derivatives; invalid_dtype. Texts that do
///   not compile are build_failure at their first use.
CLUTCH_API Expr opencl(DType dtype, const OpenclText& text, std::initializer_list<Expr> arguments);

/// Functions made of the above, with PyTorch's formulas and derivatives.
enum class GeluForm : std::uint8_t {
  erf,   ///< x / 2 (1 + erf(x / sqrt 2))
  tanh,  ///< x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
};
CLUTCH_API Expr relu(const Expr& x);  ///< 0 up to 0, else x; derivative at 0: 0
CLUTCH_API Expr leaky_relu(const Expr& x, const Expr& slope = 0.01);
CLUTCH_API Expr gelu(const Expr& x, GeluForm form = GeluForm::erf);
CLUTCH_API Expr silu(const Expr& x);      ///< x sigmoid(x)
CLUTCH_API Expr softplus(const Expr& x);  ///< log(1 + e^x); x from 20 on
CLUTCH_API Expr sign(const Expr& x);      ///< -1, 0 or 1 in x's dtype; 0 for NaN
CLUTCH_API Expr square(const Expr& x);
CLUTCH_API Expr reciprocal(const Expr& x);
/// x between low and high; high where low > high. The derivative is 1 at the bounds, too.
CLUTCH_API Expr clamp(const Expr& x, const Expr& low, const Expr& high);
/// start + weight (end - start), from the nearer end.
CLUTCH_API Expr lerp(const Expr& start, const Expr& end, const Expr& weight);
CLUTCH_API Expr isinf(const Expr& x);
CLUTCH_API Expr isfinite(const Expr& x);

template <class A, class B>
requires(std::is_base_of_v<Expr, A> || std::is_base_of_v<Expr, B>) Expr operator&&(const A& a, const B&) {
  static_assert(detail::kNever<A>, "&& would not evaluate its right side: use & on traced values");
  return a;
}
template <class A, class B>
requires(std::is_base_of_v<Expr, A> || std::is_base_of_v<Expr, B>) Expr operator||(const A& a, const B&) {
  static_assert(detail::kNever<A>, "|| would not evaluate its right side: use | on traced values");
  return a;
}

/// A number that is an argument of the kernel: another value builds nothing. Adopts dtypes like a literal.
CLUTCH_API Expr param(double value);
CLUTCH_API Expr param(std::int64_t value);
inline Expr param(float value) { return param(static_cast<double>(value)); }
inline Expr param(int value) { return param(static_cast<std::int64_t>(value)); }

/// A tensor that a traced function reads at computed places.
class CLUTCH_API Captured {
 public:
  explicit Captured(const Tensor& tensor) : tensor_(tensor) {}
  const Tensor& tensor() const noexcept { return tensor_; }
  /// The element at integer indices, one per dimension; each is clamped to its dimension.
  /// Errors: invalid_argument for another count of indices, invalid_dtype for indices that are no integers.
  Expr operator[](const Expr& index) const { return at(std::span(&index, 1)); }
  Expr operator[](std::initializer_list<Expr> indices) const { return at(std::span(indices.begin(), indices.size())); }
  Expr at(std::span<const Expr> indices) const;

 private:
  Tensor tensor_;
};
/// Errors: invalid_dtype for dtypes that map does not read; invalid_argument for an undefined or an empty tensor.
CLUTCH_API Captured captured(const Tensor& tensor);

/// The place of the element along a dimension of the result (i64); negative dimensions count from the end.
CLUTCH_API Expr position(int dim);

/// A random number of each element of map's result, uniform in [0, 1): a multiple of 2^-24 (f32) or 2^-53 (f64).
/// Dropout: map([](Expr x) { return select(random_uniform() < 0.1, Expr(0), x / 0.9); }, {x}), one launch.
/// Numbers: those that rand() of this dtype gives the element of the same row-major number, from the same state or
///   seed.
/// Draws: each call is a draw of its own. The first one of a function, in the order of its text, has rand()'s numbers;
///   draw d has those of Philox with d as the third word of its counter. One Expr used twice is one draw.
/// Generator: read when the kernel runs, and advanced behind it as by one rand() of as many elements, so that a graph
///   draws anew at each replay. Empty: at each call the default one of the device.
/// Seed: numbers come from it alone, at offset 0; it is a param, so another seed builds nothing.
/// Derivative: 0. backward() of a function that draws from a generator is not_supported, as it would draw others.
/// Determinism: equal bits on every device and by ExprFunction::evaluate(), whose only position is the element's
///   number.
/// Errors: invalid_dtype for another dtype than f32 and f64; not_supported where an op other than map gets the
///   function.
/// Source: dropout as inductor fuses it in PyTorch 2.12.
CLUTCH_API Expr random_uniform(const Generator& generator = {}, DType dtype = DType::f32);
CLUTCH_API Expr random_uniform(std::uint64_t seed, DType dtype = DType::f32);
/// 64 random bits of each element (i64), of which random_uniform() of f64 takes the 53 high ones. All else as there.
CLUTCH_API Expr random_bits(const Generator& generator = {});
CLUTCH_API Expr random_bits(std::uint64_t seed);

/// One number of any of the dtypes of traced values, for the host evaluator.
struct CLUTCH_API ExprValue {
  DType dtype = DType::f32;
  std::uint64_t bits = 0;  ///< of the float, double, int or long, the rest 0; 0 or 1 for boolean
  static ExprValue of(DType dtype, double value);
  double number() const;
  friend bool operator==(const ExprValue&, const ExprValue&) = default;
};

/// A traced function in canonical form: equal traces have equal text, and equal text is one program. A value; cheap to
/// copy. Common subexpressions are one node, operations on constants are done (by the evaluator, so bits stay), and
/// what is not needed is gone.
class CLUTCH_API ExprFunction {
 public:
  ExprFunction() = default;
  /// From expressions over detail::expr_input(k, inputs[k]). Errors: invalid_argument past 4096 nodes.
  ExprFunction(std::span<const DType> inputs, std::span<const Expr> outputs);

  bool empty() const noexcept { return body_ == nullptr; }
  int input_count() const noexcept;
  int output_count() const noexcept;
  int param_count() const noexcept;
  int captured_count() const noexcept;
  DType input_dtype(int i) const;
  DType output_dtype(int i) const;
  /// Values of the params and the captured tensors, in the order of the text. A parsed function has zeros and undefined
  /// ones.
  double param_value(int i) const;
  const Tensor& captured_tensor(int i) const;
  ExprFunction with_params(std::span<const double> values) const;
  ExprFunction with_captured(std::span<const Tensor> tensors) const;

  /// One line a node: "inputs f32 f32\nparams f32\n%2 = mul %0 %1\n...outputs %4\n". parse(text()) has the same text.
  const std::string& text() const;
  /// Errors: invalid_argument naming line and reason.
  static ExprFunction parse(std::string_view text);

  /// The vector-Jacobian product: a function of the inputs and then of a gradient for each floating output, which
  /// returns the gradient of each floating input, in order. Derivatives at kinks are PyTorch's; captured tensors are
  /// constants (captured_backward() has their gradients).
  /// Errors: not_supported for OpenCL C without derivatives.
  ExprFunction backward() const;
  /// How many inputs backward() gives gradients of.
  int floating_inputs() const noexcept;

  /// The outputs for one element, on the host, with the bits of the kernels.
  /// Errors: invalid_argument for wrong counts or dtypes, not_supported if the function reads captured tensors or has
  ///   OpenCL C.
  std::vector<ExprValue> evaluate(std::span<const ExprValue> inputs,
                                  std::span<const std::int64_t> positions = {}) const;

  const std::shared_ptr<const detail::ExprBody>& body() const noexcept { return body_; }
  explicit ExprFunction(std::shared_ptr<const detail::ExprBody> body) noexcept : body_(std::move(body)) {}

 private:
  std::shared_ptr<const detail::ExprBody> body_;
};

namespace detail {
CLUTCH_API Expr expr_input(int index, DType dtype);

template <class R>
std::vector<Expr> traced_outputs(R&& result) {
  if constexpr (std::is_convertible_v<R, Expr>)
    return {Expr(result)};
  else
    return std::apply([](const auto&... e) { return std::vector<Expr>{Expr(e)...}; }, result);
}
/// 0 for one Expr, else the length of the array or tuple that a lambda over kInputs Exprs returns.
template <class F, class Sequence>
struct TracedResult;
template <class F, std::size_t... kI>
struct TracedResult<F, std::index_sequence<kI...>> {
  using type = std::decay_t<std::invoke_result_t<F&, decltype((void)kI, std::declval<const Expr&>())...>>;
  static constexpr std::size_t outputs() {
    if constexpr (std::is_convertible_v<type, Expr>)
      return 0;
    else
      return std::tuple_size_v<type>;
  }
};
template <std::size_t kInputs, class F>
inline constexpr std::size_t kTracedOutputs = TracedResult<F, std::make_index_sequence<kInputs>>::outputs();
}  // namespace detail

/// Calls `f` once with as many Exprs as there are dtypes (f32, f64, i32, i64, boolean). It returns an Expr, or a
/// std::array or std::tuple of them.
template <std::size_t kInputs, class F>
ExprFunction trace(F&& f, const std::array<DType, kInputs>& inputs) {
  std::vector<Expr> outputs = [&]<std::size_t... kI>(std::index_sequence<kI...>) {
    return detail::traced_outputs(f(detail::expr_input(static_cast<int>(kI), inputs[kI])...));
  }
  (std::make_index_sequence<kInputs>());
  return ExprFunction(inputs, outputs);
}

}}  // namespace clutch::v0
