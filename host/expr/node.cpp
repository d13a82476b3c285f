// SPDX-License-Identifier: Apache-2.0
// Traced values: operands of each operation, and promotion of numbers and dtypes.
#include "expr/node.hpp"

#include "random/args.h"
#include "runtime/op_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numbers>
#include <optional>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

[[noreturn]] void refuse(std::string_view op, std::string_view why) { throw Error(ErrorCode::invalid_dtype, op, why); }

Expr make_node(ExprNode node) {
  int depth = 0;
  for (const auto& operand : node.operands) depth = std::max(depth, operand->depth);
  node.depth = depth + 1;
  if (node.depth > kMaxExprNodes)
    throw Error(ErrorCode::invalid_argument, "Expr",
                fmt::format("a traced function must have at most {} operations after one another, got more", kMaxExprNodes));
  return Expr(std::make_shared<const ExprNode>(std::move(node)));
}

int rank_of(DType dtype) {
  switch (dtype) {
    case DType::boolean: return 0;
    case DType::i32: return 1;
    case DType::i64: return 2;
    case DType::u64: return 3;
    case DType::f32: return 4;
    default: return 5;
  }
}
DType larger(DType a, DType b) { return rank_of(a) >= rank_of(b) ? a : b; }
bool is_real(const ExprNode& n) { return is_floating(n.dtype); }

bool is_number(const ExprNode& n) { return n.op == ExprOp::constant || n.op == ExprOp::param; }

bool fits_i32(const ExprNode& n) {
  if (!is_number(n)) return false;
  auto v = static_cast<std::int64_t>(n.bits);
  return v >= INT32_MIN && v <= INT32_MAX;
}

Expr convert(const Expr& x, DType dtype);

Expr adopt_number(const ExprNode& n, DType dtype) {
  ExprNode made = n;
  made.weak = false;
  made.dtype = dtype;
  if (n.op == ExprOp::constant)
    made.bits = is_real(n)                  ? constant_bits(dtype, std::bit_cast<double>(n.bits))
                : n.dtype == DType::boolean ? constant_bits(dtype, static_cast<std::int64_t>(n.bits != 0))
                                            : constant_bits(dtype, static_cast<std::int64_t>(n.bits));
  return make_node(std::move(made));
}

using ExprPtr = std::shared_ptr<const ExprNode>;
using Adopted = std::map<std::pair<const ExprNode*, DType>, std::pair<ExprPtr, Expr>>;

Expr adopt_within(const ExprPtr& x, DType dtype, Adopted& known) {
  const ExprNode& n = *x;
  if (!n.weak) return convert(Expr(x), dtype);
  if (is_number(n)) return adopt_number(n, dtype);
  if (auto found = known.find({x.get(), dtype}); found != known.end()) return found->second.second;
  ExprNode made = n;
  made.weak = false, made.dtype = dtype;
  for (ExprPtr& operand : made.operands) operand = adopt_within(operand, dtype, known).node();
  Expr result = make_node(std::move(made));
  known.emplace(std::pair(x.get(), dtype), std::pair(x, result));
  return result;
}

/// A weak node as a strong value of a compute dtype: numbers, and what is computed of numbers alone. What several values share stays shared.
Expr adopt(const ExprPtr& x, DType dtype) {
  constexpr std::size_t kMost = 4096;
  thread_local Adopted known;
  if (known.size() > kMost) known.clear();
  return adopt_within(x, dtype, known);
}

Expr convert(const Expr& x, DType dtype) {
  const ExprNode& n = *x.node();
  if (n.weak) return adopt(x.node(), dtype);
  if (n.dtype == dtype) return x;
  ExprNode made;
  made.op = ExprOp::cast, made.dtype = made.target = dtype, made.operands = {x.node()};
  return make_node(std::move(made));
}

/// The dtype to which the operands are promoted.
DType common_dtype(std::span<const Expr> operands) {
  DType found = DType::boolean;
  bool any_strong = false;
  for (const Expr& e : operands)
    if (!e.node()->weak) found = larger(found, e.node()->dtype), any_strong = true;
  for (const Expr& e : operands) {
    const ExprNode& n = *e.node();
    if (!n.weak) continue;
    if (is_real(n))
      found = larger(found, DType::f32);
    else if (n.dtype != DType::boolean && !is_floating(found))
      found = larger(found, fits_i32(n) || (any_strong && n.op == ExprOp::param) ? DType::i32 : DType::i64);
  }
  return found;
}

Expr build(ExprOp op, DType dtype, std::span<const Expr> operands, DType operand_dtype) {
  ExprNode made;
  made.op = op, made.dtype = dtype;
  for (const Expr& e : operands) made.operands.push_back(convert(e, operand_dtype).node());
  return make_node(std::move(made));
}

/// A real number computed of numbers alone, which adopts a dtype as a whole.
Expr build_weak(ExprOp op, std::span<const Expr> operands) {
  ExprNode made;
  made.op = op, made.weak = true, made.dtype = DType::f64;
  for (const Expr& e : operands) made.operands.push_back(e.node());
  return make_node(std::move(made));
}

}  // namespace

DType compute_dtype(DType storage, std::string_view op) {
  switch (storage) {
    case DType::f64:
    case DType::f32:
    case DType::i32:
    case DType::i64:
    case DType::u64:
    case DType::boolean: return storage;
    case DType::f16:
    case DType::bf16: return DType::f32;
    case DType::i8:
    case DType::u8:
    case DType::i16:
    case DType::u16: return DType::i32;
    case DType::u32: return DType::i64;
    default: throw Error(ErrorCode::invalid_dtype, op, fmt::format("dtype must be one to compute with, got {}; cast it first", name(storage)));
  }
}

Expr make_expr(ExprOp op, std::initializer_list<Expr> list) {
  std::span<const Expr> operands(list.begin(), list.size());
  DType dtype = common_dtype(operands);
  const ExprOpInfo& i = info(op);
  const bool weak = std::all_of(operands.begin(), operands.end(), [](const Expr& e) { return e.node()->weak; });
  if (weak && (i.kind == 'F' || ((i.kind == 'A' || i.kind == 'R') && is_floating(dtype)))) return build_weak(op, operands);
  switch (i.kind) {
    case 'A': {
      if (dtype == DType::boolean) dtype = DType::i32;
      return build(op, dtype, operands, dtype);
    }
    case 'F': {
      if (!is_floating(dtype)) dtype = DType::f32;
      return build(op, dtype, operands, dtype);
    }
    case 'R':
      if (!is_floating(dtype)) return strong(operands[0]);
      return build(op, dtype, operands, dtype);
    case 'I':
      if (is_floating(dtype)) refuse(i.name, fmt::format("operands must be integers, got {}; divide floats with / and floor() or trunc()", name(dtype)));
      if (dtype == DType::boolean) dtype = DType::i32;
      return build(op, dtype, operands, dtype);
    case 'B':
      if (is_floating(dtype)) refuse(i.name, fmt::format("operands must be integers or booleans, got {}", name(dtype)));
      return build(op, dtype, operands, dtype);
    case 'C':
      if (dtype == DType::boolean) dtype = DType::i32;
      return build(op, DType::boolean, operands, dtype);
    default: break;
  }
  throw Error(ErrorCode::internal, i.name, "is not made of operands alone");
}

Expr strong(const Expr& x) { return x.node()->weak ? convert(x, common_dtype(std::span(&x, 1))) : x; }

Expr expr_constant(DType dtype, double value) {
  ExprNode n;
  n.dtype = dtype, n.bits = constant_bits(dtype, value);
  return make_node(std::move(n));
}

Expr expr_input(int index, DType dtype) {
  ExprNode n;
  n.op = ExprOp::input, n.index = index, n.dtype = dtype;
  return make_node(std::move(n));
}

}  // namespace detail

using detail::ExprNode;
using detail::ExprOp;
using detail::make_expr;

DType Expr::dtype() const noexcept {
  if (!node_->weak || node_->dtype == DType::boolean) return node_->dtype;
  return is_floating(node_->dtype) ? DType::f32 : detail::fits_i32(*node_) ? DType::i32 : DType::i64;
}

Expr Expr::boolean(bool value) {
  ExprNode n;
  n.weak = true, n.dtype = DType::boolean, n.bits = value;
  return detail::make_node(std::move(n));
}
Expr Expr::real(double value) {
  ExprNode n;
  n.weak = true, n.dtype = DType::f64, n.bits = std::bit_cast<std::uint64_t>(value);
  return detail::make_node(std::move(n));
}
Expr Expr::whole(std::int64_t value) {
  ExprNode n;
  n.weak = true, n.dtype = DType::i64, n.bits = static_cast<std::uint64_t>(value);
  return detail::make_node(std::move(n));
}

namespace {
Expr make_param(DType dtype, std::uint64_t bits, bool real) {
  static std::atomic<std::uintptr_t> next{1};
  ExprNode n;
  n.op = ExprOp::param, n.weak = true, n.dtype = dtype, n.bits = bits, n.real = real;
  n.identity = reinterpret_cast<const void*>(next.fetch_add(1));
  return detail::make_node(std::move(n));
}
}  // namespace
Expr param(double value) { return make_param(DType::f64, std::bit_cast<std::uint64_t>(value), true); }
Expr param(std::int64_t value) { return make_param(DType::i64, static_cast<std::uint64_t>(value), false); }

Expr operator+(const Expr& a, const Expr& b) { return make_expr(ExprOp::add, {a, b}); }
Expr operator-(const Expr& a, const Expr& b) { return make_expr(ExprOp::sub, {a, b}); }
Expr operator*(const Expr& a, const Expr& b) { return make_expr(ExprOp::mul, {a, b}); }
Expr operator/(const Expr& a, const Expr& b) { return make_expr(ExprOp::div, {a, b}); }
Expr operator-(const Expr& x) { return make_expr(ExprOp::neg, {x}); }
Expr fma(const Expr& a, const Expr& b, const Expr& c) { return make_expr(ExprOp::fma, {a, b, c}); }
Expr min(const Expr& a, const Expr& b) { return make_expr(ExprOp::min, {a, b}); }
Expr max(const Expr& a, const Expr& b) { return make_expr(ExprOp::max, {a, b}); }
Expr abs(const Expr& x) { return make_expr(ExprOp::abs, {x}); }
Expr floor_div(const Expr& a, const Expr& b) { return make_expr(ExprOp::floor_div, {a, b}); }
Expr trunc_div(const Expr& a, const Expr& b) { return make_expr(ExprOp::trunc_div, {a, b}); }
Expr floor_mod(const Expr& a, const Expr& b) { return make_expr(ExprOp::floor_mod, {a, b}); }
Expr trunc_mod(const Expr& a, const Expr& b) { return make_expr(ExprOp::trunc_mod, {a, b}); }
Expr sqrt(const Expr& x) { return make_expr(ExprOp::sqrt, {x}); }
Expr rsqrt(const Expr& x) { return make_expr(ExprOp::rsqrt, {x}); }
Expr exp(const Expr& x) { return make_expr(ExprOp::exp, {x}); }
Expr exp2(const Expr& x) { return make_expr(ExprOp::exp2, {x}); }
Expr expm1(const Expr& x) { return make_expr(ExprOp::expm1, {x}); }
Expr log(const Expr& x) { return make_expr(ExprOp::log, {x}); }
Expr log2(const Expr& x) { return make_expr(ExprOp::log2, {x}); }
Expr log1p(const Expr& x) { return make_expr(ExprOp::log1p, {x}); }
Expr tanh(const Expr& x) { return make_expr(ExprOp::tanh, {x}); }
Expr sigmoid(const Expr& x) { return make_expr(ExprOp::sigmoid, {x}); }
Expr erf(const Expr& x) { return make_expr(ExprOp::erf, {x}); }
Expr sin(const Expr& x) { return make_expr(ExprOp::sin, {x}); }
Expr cos(const Expr& x) { return make_expr(ExprOp::cos, {x}); }
Expr pow(const Expr& x, const Expr& y) { return make_expr(ExprOp::pow, {x, y}); }
Expr floor(const Expr& x) { return make_expr(ExprOp::floor, {x}); }
Expr ceil(const Expr& x) { return make_expr(ExprOp::ceil, {x}); }
Expr trunc(const Expr& x) { return make_expr(ExprOp::trunc, {x}); }
Expr round(const Expr& x) { return make_expr(ExprOp::round, {x}); }
namespace {
/// What a cast from i32 to i64 widened, if `number` is a constant; else nothing.
std::optional<Expr> widened(const Expr& wide, const Expr& number) {
  const ExprNode &w = *wide.node(), &n = *number.node();
  if (w.op != ExprOp::cast || w.target != DType::i64 || w.operands[0]->dtype != DType::i32 || w.operands[0]->weak) return {};
  if (n.op != ExprOp::constant || n.dtype != DType::i64) return {};
  return Expr(w.operands[0]);
}
/// A comparison by order. Of a widened integer with a constant it is one of what was widened: cheaper, and Mesa's compiler (seen: 22.3) decides the other one
/// wrongly, whatever the integer is.
Expr compare(ExprOp op, const Expr& a, const Expr& b) {
  const auto of_a = widened(a, b), of_b = widened(b, a);
  if (!of_a && !of_b) return make_expr(op, {a, b});
  const auto number = static_cast<std::int64_t>((of_a ? b : a).node()->bits);
  // All of i32 is on one side of other constants.
  if (number != static_cast<std::int32_t>(number)) return Expr((number > 0) == of_a.has_value());
  return of_a ? make_expr(op, {*of_a, Expr(number)}) : make_expr(op, {Expr(number), *of_b});
}
}  // namespace
Expr operator<(const Expr& a, const Expr& b) { return compare(ExprOp::lt, a, b); }
Expr operator<=(const Expr& a, const Expr& b) { return compare(ExprOp::le, a, b); }
Expr operator==(const Expr& a, const Expr& b) { return make_expr(ExprOp::eq, {a, b}); }
Expr operator!=(const Expr& a, const Expr& b) { return make_expr(ExprOp::ne, {a, b}); }
Expr isnan(const Expr& x) { return is_floating(x.dtype()) ? x != x : Expr(false); }
Expr operator&(const Expr& a, const Expr& b) {
  detail::OpName named("operator&");
  return make_expr(ExprOp::bit_and, {a, b});
}
Expr operator|(const Expr& a, const Expr& b) {
  detail::OpName named("operator|");
  return make_expr(ExprOp::bit_or, {a, b});
}
Expr operator^(const Expr& a, const Expr& b) {
  detail::OpName named("operator^");
  return make_expr(ExprOp::bit_xor, {a, b});
}
Expr operator~(const Expr& x) {
  detail::OpName named("operator~");
  return make_expr(ExprOp::bit_not, {x});
}
Expr operator<<(const Expr& x, const Expr& count) {
  detail::OpName named("operator<<");
  return make_expr(ExprOp::shift_left, {x, count});
}
Expr operator>>(const Expr& x, const Expr& count) {
  detail::OpName named("operator>>");
  return make_expr(ExprOp::shift_right, {x, count});
}
Expr operator!(const Expr& x) {
  Expr s = detail::strong(x);
  return s.dtype() == DType::boolean ? ~s : s == 0;
}

Expr select(const Expr& condition, const Expr& a, const Expr& b) {
  Expr c = detail::strong(condition);
  const Expr values[] = {a, b};
  DType dtype = detail::common_dtype(values);
  ExprNode n;
  n.op = ExprOp::select, n.dtype = dtype;
  n.operands = {detail::convert(c, DType::boolean).node(), detail::convert(a, dtype).node(), detail::convert(b, dtype).node()};
  return detail::make_node(std::move(n));
}

Expr cast(const Expr& x, DType dtype) {
  DType compute = detail::compute_dtype(dtype, "cast");
  Expr s = x.node()->weak && compute == dtype ? detail::adopt(x.node(), dtype) : detail::strong(x);
  if (s.dtype() == dtype) return s;
  ExprNode n;
  n.op = ExprOp::cast, n.dtype = compute, n.target = dtype, n.operands = {s.node()};
  return detail::make_node(std::move(n));
}

namespace {
Expr like(const Expr& x, double value) { return cast(Expr(value), x.dtype()); }
Expr real(const Expr& x) { return is_floating(x.dtype()) ? x : cast(x, DType::f32); }
constexpr double kInf = std::numeric_limits<double>::infinity();
}  // namespace

Expr relu(const Expr& x) {
  // max() gives the same values for integers, and the compiler of one driver crashes on select (quirk byte_selects_crash).
  return is_integral(x.dtype()) ? max(x, like(x, 0)) : select(x <= 0, like(x, 0), x);
}
Expr leaky_relu(const Expr& x, const Expr& slope) { return select(x > 0, x, x * slope); }
Expr gelu(const Expr& x, GeluForm form) {
  Expr inner =
      form == GeluForm::erf ? erf(x * (1 / std::numbers::sqrt2)) : tanh((x + 0.044715 * (x * x * x)) * (std::numbers::sqrt2 * std::numbers::inv_sqrtpi));
  return x * 0.5 * (1 + inner);
}
Expr silu(const Expr& x) { return x * sigmoid(x); }
Expr softplus(const Expr& x) { return select(x > 20, real(x), log1p(exp(x))); }
Expr sign(const Expr& x) {
  if (!is_floating(x.dtype())) return select(x > 0, like(x, 1), select(x < 0, like(x, -1), like(x, 0)));
  // By an integer: Mesa's compiler takes the select of floats for its own sign, which is -0 for -0.
  return select(x > 0, Expr(1), select(x < 0, Expr(-1), Expr(0))) + like(x, 0);
}
Expr square(const Expr& x) { return x * x; }
Expr reciprocal(const Expr& x) { return 1 / real(x); }
Expr clamp(const Expr& x, const Expr& low, const Expr& high) {
  // A bound that is NaN makes the result NaN, as in PyTorch.
  Expr raised = select((x < low) | (low != low), low, x);
  return select((raised > high) | (high != high), high, raised);
}
Expr lerp(const Expr& start, const Expr& end, const Expr& weight) {
  Expr way = end - start;
  return select(abs(weight) < 0.5, fma(weight, way, start), fma(-way, 1 - weight, end));
}
Expr isinf(const Expr& x) { return is_floating(x.dtype()) ? abs(x) == kInf : Expr(false); }
Expr isfinite(const Expr& x) { return is_floating(x.dtype()) ? abs(x) < kInf : Expr(true); }

Expr opencl(DType dtype, const OpenclText& text, std::initializer_list<Expr> arguments) {
  auto refuse = [](ErrorCode code, std::string_view why) { throw Error(code, "opencl", why); };
  if (detail::compute_dtype(dtype, "opencl") != dtype || dtype == DType::u64)
    refuse(ErrorCode::invalid_dtype, fmt::format("the value must be f32, f64, i32, i64 or boolean, got {}; cast() it", name(dtype)));
  if (text.value.empty()) refuse(ErrorCode::invalid_argument, "the text must have an expression, got none");
  if (!text.derivatives.empty() && text.derivatives.size() != arguments.size())
    refuse(ErrorCode::invalid_argument, fmt::format("each of {} arguments must have a derivative, got {}", arguments.size(), text.derivatives.size()));
  ExprNode n;
  n.op = ExprOp::opencl, n.dtype = dtype, n.index = detail::text_number(text);
  for (const Expr& x : arguments) n.operands.push_back(detail::strong(x).node());
  return detail::make_node(std::move(n));
}

Captured captured(const Tensor& tensor) {
  if (!tensor.defined() || tensor.numel() == 0)
    throw Error(ErrorCode::invalid_argument, "captured",
                tensor.defined() ? "the tensor must have elements, got none" : "the tensor must be defined, got an undefined one");
  detail::compute_dtype(tensor.dtype(), "captured");
  return Captured(tensor);
}

Expr Captured::at(std::span<const Expr> indices) const {
  if (static_cast<int>(indices.size()) != tensor_.rank())
    throw Error(ErrorCode::invalid_argument, "Captured::at",
                fmt::format("a tensor of rank {} must have as many indices, got {}", tensor_.rank(), indices.size()));
  ExprNode n;
  n.op = ExprOp::gather, n.dtype = detail::compute_dtype(tensor_.dtype(), "Captured::at"), n.tensor = tensor_;
  for (const Expr& index : indices) {
    Expr s = detail::strong(index);
    if (is_floating(s.dtype())) detail::refuse("Captured::at", fmt::format("an index must be an integer, got {}", name(s.dtype())));
    n.operands.push_back(detail::convert(s, DType::i64).node());
  }
  return detail::make_node(std::move(n));
}

namespace {

Expr element_of(const Tensor& state, bool is_default, int index) {
  ExprNode n;
  n.op = ExprOp::gather, n.dtype = DType::i64, n.tensor = state, n.bits = is_default;
  n.operands = {detail::convert(Expr(index), DType::i64).node()};
  return detail::make_node(std::move(n));
}

/// What a draw is made of: two words of state.
struct Source {
  Expr seed, offset;
};
Source source_of(const Generator& generator) {
  const Tensor state = generator.empty() ? Tensor() : generator.state_tensor();
  return {element_of(state, generator.empty(), detail::RANDOM_SEED), element_of(state, generator.empty(), detail::RANDOM_OFFSET)};
}
Source source_of(std::uint64_t seed) {
  // In halves: params are exact up to 2^53.
  const Expr low = cast(param(static_cast<std::int64_t>(seed & 0xFFFFFFFFu)), DType::i64),
             high = cast(param(static_cast<std::int64_t>(seed >> 32)), DType::i64);
  return {(high << 32) | low, cast(Expr(0), DType::i64)};
}

/// A draw of its own: a word of 32 bits (i32), or two of them (i64).
Expr draw(bool wide, const Source& from) {
  static std::atomic<std::uint64_t> next{1};
  ExprNode n;
  n.op = wide ? ExprOp::philox_wide : ExprOp::philox, n.dtype = wide ? DType::i64 : DType::i32, n.bits = next.fetch_add(1);
  n.operands = {position(detail::kPlace).node(), from.seed.node(), from.offset.node()};
  return detail::make_node(std::move(n));
}

Expr uniform(DType dtype, const Source& from) {
  if (dtype != DType::f32 && dtype != DType::f64)
    throw Error(ErrorCode::invalid_dtype, "random_uniform", fmt::format("a random number must be f32 or f64, got {}; cast() it", name(dtype)));
  const bool wide = dtype == DType::f64;
  const Expr bits = draw(wide, from);
  return wide ? cast((bits >> 11) & ((std::int64_t{1} << 53) - 1), dtype) * 0x1p-53 : cast((bits >> 8) & 0xFFFFFF, dtype) * 0x1p-24;
}

}  // namespace

Expr random_uniform(const Generator& generator, DType dtype) {
  detail::OpName named("random_uniform");
  return uniform(dtype, source_of(generator));
}
Expr random_uniform(std::uint64_t seed, DType dtype) {
  detail::OpName named("random_uniform");
  return uniform(dtype, source_of(seed));
}
Expr random_bits(const Generator& generator) {
  detail::OpName named("random_bits");
  return draw(true, source_of(generator));
}
Expr random_bits(std::uint64_t seed) {
  detail::OpName named("random_bits");
  return draw(true, source_of(seed));
}

Expr position(int dim) {
  ExprNode n;
  n.op = ExprOp::position, n.dtype = DType::i64, n.index = dim;
  return detail::make_node(std::move(n));
}

}}  // namespace clutch::v0
