// SPDX-License-Identifier: Apache-2.0
// Evaluates traced functions on the host, with the bits of the kernels.
#include "expr/host_math.hpp"
#include "expr/node.hpp"
#include "random/args.h"
#include "support/fma.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

template <class T>
T from_bits(std::uint64_t bits) {
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<T>(static_cast<std::uint32_t>(bits));
  else
    return std::bit_cast<T>(bits);
}
template <class T>
std::uint64_t to_bits(T value) {
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<std::uint32_t>(value);
  else
    return std::bit_cast<std::uint64_t>(value);
}

/// Truncates; out of range gives the nearest bound, NaN gives 0.
std::int64_t saturate(double x, std::int64_t low, std::int64_t high) {
  if (std::isnan(x)) return 0;
  if (x <= static_cast<double>(low)) return low;
  if (x >= static_cast<double>(high)) return high;
  return static_cast<std::int64_t>(x);
}
std::uint64_t saturate_u64(double x) {
  if (!(x > 0)) return 0;
  return x >= 0x1p64 ? UINT64_MAX : static_cast<std::uint64_t>(x);
}

template <class T>
bool compare(ExprOp op, T a, T b) {
  switch (op) {
    case ExprOp::lt: return a < b;
    case ExprOp::le: return a <= b;
    case ExprOp::eq: return a == b;
    default: return a != b;
  }
}

template <class T>
T on_floats(ExprOp op, T a, T b, T c) {
  switch (op) {
    case ExprOp::add: return a + b;
    case ExprOp::sub: return a - b;
    case ExprOp::mul: return a * b;
    case ExprOp::neg: return -a;
    case ExprOp::abs: return std::fabs(a);
    case ExprOp::min: return a < b || a != a ? a : b;
    case ExprOp::max: return a > b || a != a ? a : b;
    case ExprOp::div: return a / b;
    case ExprOp::fma: return detail::fma(a, b, c);
    case ExprOp::sqrt: return std::sqrt(a);
#define CLUTCH_X(name) \
  case ExprOp::name: return host_math::name(a);
      CLUTCH_HOST_MATH(CLUTCH_X)
#undef CLUTCH_X
    case ExprOp::pow: return host_math::pow(a, b);
    case ExprOp::floor: return std::floor(a);
    case ExprOp::ceil: return std::ceil(a);
    case ExprOp::trunc: return std::trunc(a);
    case ExprOp::round: return std::nearbyint(a);
    default: throw Error(ErrorCode::internal, info(op).name, "is no operation on floats");
  }
}

template <class T>
T on_integers(ExprOp op, T a, T b) {
  using U = std::make_unsigned_t<T>;
  auto ua = static_cast<U>(a), ub = static_cast<U>(b);
  const U mask = sizeof(T) * 8 - 1;
  T quotient = 0, rest = 0;
  if (op >= ExprOp::floor_div && op <= ExprOp::trunc_mod) {
    if (std::is_signed_v<T> && ub == U(-1)) {
      quotient = static_cast<T>(U(0) - ua);
    } else if (b != 0) {
      quotient = a / b, rest = a % b;
      bool floors = std::is_signed_v<T> && (op == ExprOp::floor_div || op == ExprOp::floor_mod);
      if (floors && rest != 0 && (rest < 0) != (b < 0)) --quotient, rest += b;
    }
  }
  switch (op) {
    case ExprOp::add: return static_cast<T>(ua + ub);
    case ExprOp::sub: return static_cast<T>(ua - ub);
    case ExprOp::mul: return static_cast<T>(ua * ub);
    case ExprOp::neg: return static_cast<T>(U(0) - ua);
    case ExprOp::abs: return static_cast<T>(a < 0 ? U(0) - ua : ua);
    case ExprOp::min: return std::min(a, b);
    case ExprOp::max: return std::max(a, b);
    case ExprOp::floor_div:
    case ExprOp::trunc_div: return quotient;
    case ExprOp::floor_mod:
    case ExprOp::trunc_mod: return rest;
    case ExprOp::shift_left: return static_cast<T>(ua << (ub & mask));
    case ExprOp::shift_right: return static_cast<T>(a >> (ub & mask));
    case ExprOp::bit_and: return a & b;
    case ExprOp::bit_or: return a | b;
    case ExprOp::bit_xor: return a ^ b;
    case ExprOp::bit_not: return static_cast<T>(~a);
    default: throw Error(ErrorCode::internal, info(op).name, "is no operation on integers");
  }
}

template <class T>
std::uint64_t apply(const ExprStep& step, std::span<const std::uint64_t> v) {
  T a = from_bits<T>(v[0]), b = v.size() > 1 ? from_bits<T>(v[1]) : T(), c = v.size() > 2 ? from_bits<T>(v[2]) : T();
  if (info(step.op).kind == 'C') return compare(step.op, a, b);
  if constexpr (std::is_floating_point_v<T>)
    return to_bits(on_floats(step.op, a, b, c));
  else
    return to_bits(on_integers(step.op, a, b));
}

std::uint64_t unsigned_as_float(DType to, std::uint64_t n) {
  if (to == DType::f64) return to_bits(static_cast<double>(n));
  const auto rounded = static_cast<float>(n);
  return to == DType::f32 ? to_bits(rounded) : constant_bits(to, static_cast<double>(rounded));
}

/// Converts a value of a compute dtype to a storage dtype and back to the latter's compute dtype.
std::uint64_t cast_bits(DType from, std::uint64_t bits, DType to) {
  if (to == DType::boolean) return is_floating(from) ? constant_value(from, bits) != 0 : bits != 0;
  if (is_floating(from)) {
    double x = constant_value(from, bits);
    switch (to) {
      case DType::i8: return constant_bits(DType::i32, saturate(x, INT8_MIN, INT8_MAX));
      case DType::u8: return constant_bits(DType::i32, saturate(x, 0, UINT8_MAX));
      case DType::i16: return constant_bits(DType::i32, saturate(x, INT16_MIN, INT16_MAX));
      case DType::i32: return constant_bits(DType::i32, saturate(x, INT32_MIN, INT32_MAX));
      case DType::i64: return constant_bits(DType::i64, saturate(x, INT64_MIN, INT64_MAX));
      case DType::u16: return constant_bits(DType::i32, saturate(x, 0, UINT16_MAX));
      case DType::u32: return constant_bits(DType::i64, saturate(x, 0, UINT32_MAX));
      case DType::u64: return saturate_u64(x);
      case DType::f16:
      case DType::bf16: return constant_bits(to, static_cast<double>(static_cast<float>(x)));
      default: return constant_bits(to, x);
    }
  }
  std::int64_t n = from == DType::i32 ? from_bits<std::int32_t>(bits) : static_cast<std::int64_t>(bits);
  switch (to) {
    case DType::i8: return constant_bits(DType::i32, std::int64_t{static_cast<std::int8_t>(n)});
    case DType::u8: return constant_bits(DType::i32, std::int64_t{static_cast<std::uint8_t>(n)});
    case DType::i16: return constant_bits(DType::i32, std::int64_t{static_cast<std::int16_t>(n)});
    case DType::u16: return constant_bits(DType::i32, std::int64_t{static_cast<std::uint16_t>(n)});
    case DType::u32: return constant_bits(DType::i64, std::int64_t{static_cast<std::uint32_t>(n)});
    case DType::f32:
    case DType::f64:
    case DType::f16:
    case DType::bf16:
      if (from == DType::u64) return unsigned_as_float(to, static_cast<std::uint64_t>(n));
      return constant_bits(to, n);
    default: return constant_bits(to, n);
  }
}

}  // namespace

std::uint64_t constant_bits(DType dtype, double value) {
  switch (dtype) {
    case DType::f64: return to_bits(value);
    case DType::f32: return to_bits(static_cast<float>(value));
    case DType::f16:
    case DType::bf16: return to_bits(static_cast<float>(decode_small_float(encode_small_float(value, dtype), dtype)));
    case DType::boolean: return value != 0;
    case DType::i64: return static_cast<std::uint64_t>(saturate(value, INT64_MIN, INT64_MAX));
    // Negative numbers wrap, as they do where they are cast from other integers.
    case DType::u64: return value < 0 ? static_cast<std::uint64_t>(saturate(value, INT64_MIN, INT64_MAX)) : saturate_u64(value);
    default: return static_cast<std::uint32_t>(saturate(value, INT32_MIN, INT32_MAX));
  }
}

std::uint64_t constant_bits(DType dtype, std::int64_t value) {
  switch (dtype) {
    case DType::f64: return to_bits(static_cast<double>(value));
    case DType::f32: return to_bits(static_cast<float>(value));
    case DType::f16:
    case DType::bf16: return constant_bits(dtype, static_cast<double>(static_cast<float>(value)));
    case DType::boolean: return value != 0;
    case DType::i64:
    case DType::u64: return static_cast<std::uint64_t>(value);
    default: return static_cast<std::uint32_t>(value);
  }
}

double constant_value(DType dtype, std::uint64_t bits) {
  switch (dtype) {
    case DType::f64: return from_bits<double>(bits);
    case DType::f32: return static_cast<double>(from_bits<float>(bits));
    case DType::i64: return static_cast<double>(static_cast<std::int64_t>(bits));
    case DType::u64: return static_cast<double>(bits);
    case DType::i32: return from_bits<std::int32_t>(bits);
    default: return bits != 0;
  }
}

namespace {

/// Words of Philox 4x32-10 that the element at a place has (include/clutch/ops/random.hpp).
std::uint64_t random_words_at(std::uint64_t place, std::uint64_t seed, std::uint64_t offset, std::uint64_t draw, bool wide) {
  const std::uint64_t block = offset + place / random_chunk(wide) * RANDOM_CHUNK_BLOCKS + place % RANDOM_CHUNK_BLOCKS;
  std::array<std::uint32_t, 4> c{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), static_cast<std::uint32_t>(draw), 0};
  auto low = static_cast<std::uint32_t>(seed), high = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{c[0]} * 0xD2511F53u, p1 = std::uint64_t{c[2]} * 0xCD9E8D57u;
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ low, static_cast<std::uint32_t>(p1), static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ high,
         static_cast<std::uint32_t>(p0)};
    low += 0x9E3779B9u, high += 0xBB67AE85u;
  }
  const std::size_t word = place / RANDOM_CHUNK_BLOCKS * random_words(wide) % c.size();
  return wide ? c[word] | std::uint64_t{c[word + 1]} << 32 : c[word];
}

}  // namespace

std::uint64_t evaluate_step(const ExprStep& step, DType operand_dtype, std::span<const std::uint64_t> v) {
  switch (step.op) {
    case ExprOp::philox:
    case ExprOp::philox_wide: return random_words_at(v[0], v[1], v[2], static_cast<std::uint64_t>(step.index), step.op == ExprOp::philox_wide);
    case ExprOp::select: return v[0] ? v[1] : v[2];
    case ExprOp::cast: return cast_bits(operand_dtype, v[0], step.target);
    case ExprOp::constant: return step.bits;
    default: break;
  }
  switch (operand_dtype) {
    case DType::f64: return apply<double>(step, v);
    case DType::f32: return apply<float>(step, v);
    case DType::i64: return apply<std::int64_t>(step, v);
    case DType::u64: return apply<std::uint64_t>(step, v);
    case DType::i32: return apply<std::int32_t>(step, v);
    default: break;
  }
  switch (step.op) {
    case ExprOp::bit_and: return v[0] & v[1];
    case ExprOp::bit_or: return v[0] | v[1];
    case ExprOp::bit_xor: return v[0] ^ v[1];
    case ExprOp::bit_not: return !v[0];
    default: throw Error(ErrorCode::internal, info(step.op).name, "is no operation on booleans");
  }
}

}  // namespace detail

ExprValue ExprValue::of(DType dtype, double value) {
  return {detail::compute_dtype(dtype, "ExprValue"), detail::constant_bits(detail::compute_dtype(dtype, "ExprValue"), value)};
}
double ExprValue::number() const { return detail::constant_value(dtype, bits); }

std::vector<ExprValue> ExprFunction::evaluate(std::span<const ExprValue> inputs, std::span<const std::int64_t> positions) const {
  auto refuse = [](ErrorCode code, std::string_view why) { throw Error(code, "ExprFunction::evaluate", why); };
  if (!body_) refuse(ErrorCode::invalid_argument, "the function must be a traced one, got an empty one");
  const detail::ExprBody& body = *body_;
  if (inputs.size() != body.inputs.size())
    refuse(ErrorCode::invalid_argument, fmt::format("each of {} inputs must have a value, got {}", body.inputs.size(), inputs.size()));
  std::vector<std::uint64_t> values;
  for (const detail::ExprStep& s : body.steps) {
    std::uint64_t bits = 0;
    switch (s.op) {
      case detail::ExprOp::input: {
        const ExprValue& given = inputs[static_cast<std::size_t>(s.index)];
        if (given.dtype != s.dtype) refuse(ErrorCode::invalid_argument, fmt::format("input {} must be {}, got {}", s.index, name(s.dtype), name(given.dtype)));
        bits = given.bits;
        break;
      }
      case detail::ExprOp::param: bits = detail::constant_bits(s.dtype, body.param_values[static_cast<std::size_t>(s.index)]); break;
      case detail::ExprOp::position: {
        const bool is_place = s.index == detail::kPlace;
        if (is_place && positions.size() != 1)
          refuse(ErrorCode::invalid_argument,
                 fmt::format("a function of random numbers must be evaluated with one position, the place, got {}", positions.size()));
        int dim = is_place ? 0 : s.index < 0 ? s.index + static_cast<int>(positions.size()) : s.index;
        if (dim < 0 || dim >= static_cast<int>(positions.size()))
          refuse(ErrorCode::invalid_argument, fmt::format("dimension {} must have a position, got {} positions", s.index, positions.size()));
        bits = static_cast<std::uint64_t>(positions[static_cast<std::size_t>(dim)]);
        break;
      }
      case detail::ExprOp::gather:
        refuse(ErrorCode::not_supported, fmt::format("a function on the host must read its inputs alone, got one of {} captured tensors", body.tensors.size()));
        break;
      case detail::ExprOp::opencl:
        refuse(ErrorCode::not_supported, fmt::format("a function on the host must have no OpenCL C, got {}", detail::opencl_text(s.index).value));
        break;
      default: {
        std::uint64_t operands[3] = {};
        for (std::size_t k = 0; k < s.operands.size(); ++k) operands[k] = values[static_cast<std::size_t>(s.operands[k])];
        DType operand_dtype = s.operands.empty() ? s.dtype : body.steps[static_cast<std::size_t>(s.operands.back())].dtype;
        bits = detail::evaluate_step(s, operand_dtype, std::span(operands, s.operands.size()));
      }
    }
    values.push_back(bits);
  }
  std::vector<ExprValue> results;
  for (int o : body.outputs) results.push_back({body.steps[static_cast<std::size_t>(o)].dtype, values[static_cast<std::size_t>(o)]});
  return results;
}

}}  // namespace clutch::v0
