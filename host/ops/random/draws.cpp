// SPDX-License-Identifier: Apache-2.0
// Distributions that are one traced function of uniform numbers, and random permutations.
#include <clutch/ops/copy.hpp>
#include <clutch/ops/group.hpp>
#include <clutch/ops/map.hpp>
#include <clutch/ops/random.hpp>
#include <clutch/ops/scatter.hpp>

#include "encode/elementwise.hpp"
#include "encode/generator.hpp"
#include "runtime/op_name.hpp"
#include "runtime/runtime.hpp"
#include "runtime/storage.hpp"
#include "support/computed_number.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

namespace clutch { inline namespace v0 {
namespace {

/// Largest of the whole numbers from 0 on that all are exact in a dtype. Errors: invalid_dtype.
std::int64_t largest_whole(DType dtype, const char* op) {
  switch (dtype) {
    case DType::boolean: return 1;
    case DType::i8: return INT8_MAX;
    case DType::u8: return UINT8_MAX;
    case DType::i16: return INT16_MAX;
    case DType::i32: return INT32_MAX;
    case DType::i64:
    case DType::u64: return INT64_MAX;
    case DType::u16: return UINT16_MAX;
    case DType::u32: return UINT32_MAX;
    case DType::f32: return std::int64_t{1} << 24;
    case DType::f64: return std::int64_t{1} << 53;
    case DType::f16: return std::int64_t{1} << 11;
    case DType::bf16: return std::int64_t{1} << 8;
    default: throw Error(ErrorCode::invalid_dtype, op, fmt::format("dtype must be an integer, bool, f32, f64, f16 or bf16, got {}", name(dtype)));
  }
}
std::int64_t least_whole(DType dtype, std::int64_t largest) {
  if (!detail::kDTypes[static_cast<std::size_t>(dtype)].is_signed) return 0;
  return is_integral(dtype) ? -largest - 1 : -largest;
}

Expr uniform(const DrawOptions& o, DType dtype) { return o.seed ? random_uniform(*o.seed, dtype) : random_uniform(o.generator, dtype); }
Expr bits_of(const DrawOptions& o) { return o.seed ? random_bits(*o.seed) : random_bits(o.generator); }

void check_generator(const Tensor& self, const DrawOptions& o, const char* op) {
  std::array<const Tensor*, 1> tensors{&self};
  detail::Runtime& runtime = detail::common_runtime(tensors, op);
  if (!o.seed && !o.generator.empty() && &o.generator.impl()->runtime() != &runtime)
    throw Error(ErrorCode::device_mismatch, op, "the generator must be of the tensor's device and context, got one of another");
}

/// A 64-bit number as an Expr, in halves: params are exact up to 2^53.
Expr wide_param(std::int64_t value) { return (cast(param(value >> 32), DType::i64) << 32) | cast(param(value & 0xFFFFFFFF), DType::i64); }

/// floor(bits range / 2^64), of unsigned bits.
Expr scaled(const Expr& bits, std::int64_t range) {
  const Expr mask = std::int64_t{0xFFFFFFFF};
  auto low_half = [&](const Expr& x) { return x & mask; };
  auto high_half = [&](const Expr& x) { return (x >> 32) & mask; };
  const Expr high = high_half(bits), low = low_half(bits);
  if (range <= std::int64_t{1} << 31) {
    const Expr r = cast(param(range), DType::i64);
    return (high * r + high_half(low * r)) >> 32;
  }
  const Expr range_high = cast(param(range >> 32), DType::i64), range_low = cast(param(range & 0xFFFFFFFF), DType::i64);
  const Expr carried = low_half(high * range_low) + low_half(low * range_high) + high_half(low * range_low);
  return high * range_high + high_half(high * range_low) + high_half(low * range_high) + (carried >> 32);
}

void fill_with(const Tensor& self, const Expr& value, std::span<const DType> inputs, std::span<const Tensor> tensors, const Stream& stream) {
  map_out(std::span(&self, 1), ExprFunction(inputs, std::span(&value, 1)), tensors, {}, stream);
}

void draw_whole(const Tensor& self, std::int64_t from, std::int64_t range, const DrawOptions& o, const Stream& stream, const char* op) {
  check_generator(self, o, op);
  fill_with(self, wide_param(from) + scaled(bits_of(o), range), {}, {}, stream);
}

}  // namespace

void random_(const Tensor& self, std::int64_t from, std::int64_t to, const DrawOptions& o, const Stream& stream) {
  detail::OpName named("random_");
  constexpr const char* op = "random_";
  detail::storage_of(self, op);
  const std::int64_t largest = largest_whole(self.dtype(), op), least = least_whole(self.dtype(), largest);
  std::int64_t range = 0;
  if (from >= to || from < least || to - 1 > largest)
    throw Error(ErrorCode::invalid_argument, op,
                fmt::format("from must be below to, both in [{}, {}] for {}, got {} and {}", least, largest, name(self.dtype()), from, to));
  if (__builtin_sub_overflow(to, from, &range))
    throw Error(ErrorCode::invalid_argument, op, fmt::format("there must be less than 2^63 numbers, got those from {} to {}", from, to));
  draw_whole(self, from, range, o, stream, op);
}

void random_(const Tensor& self, const DrawOptions& o, const Stream& stream) {
  detail::OpName named("random_");
  constexpr const char* op = "random_";
  detail::storage_of(self, op);
  const std::int64_t largest = largest_whole(self.dtype(), op);
  if (largest < INT64_MAX) return draw_whole(self, 0, largest + 1, o, stream, op);
  check_generator(self, o, op);
  fill_with(self, (bits_of(o) >> 1) & std::int64_t{INT64_MAX}, {}, {}, stream);
}

void bernoulli_(const Tensor& self, double p, const DrawOptions& o, const Stream& stream) {
  detail::OpName named("bernoulli_");
  constexpr const char* op = "bernoulli_";
  detail::storage_of(self, op);
  largest_whole(self.dtype(), op);
  if (!(p >= 0 && p <= 1)) throw Error(ErrorCode::invalid_argument, op, fmt::format("p must be in [0, 1], got {}", p));
  check_generator(self, o, op);
  fill_with(self, uniform(o, DType::f32) < param(p), {}, {}, stream);
}

void bernoulli_(const Tensor& self, const Tensor& p, const DrawOptions& o, const Stream& stream) {
  detail::OpName named("bernoulli_");
  constexpr const char* op = "bernoulli_";
  detail::storage_of(self, op);
  largest_whole(self.dtype(), op);
  detail::storage_of(p, op);
  detail::check_plain_float(p.dtype(), "the tensor of probabilities", op);
  check_generator(self, o, op);
  const DType traced = p.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor expanded = p.expand(self.sizes());
  fill_with(self, uniform(o, traced) < detail::expr_input(0, traced), std::span(&traced, 1), std::span(&expanded, 1), stream);
}

void exponential_(const Tensor& self, double lambda, const DrawOptions& o, const Stream& stream) {
  detail::OpName named("exponential_");
  constexpr const char* op = "exponential_";
  detail::storage_of(self, op);
  detail::check_plain_float(self.dtype(), "the tensor", op);
  const double computed = detail::as_computed(lambda, self.dtype());
  if (!(computed > 0) || !std::isfinite(computed))
    throw Error(ErrorCode::invalid_argument, op, fmt::format("lambda must be above 0 and finite, got {}", lambda));
  check_generator(self, o, op);
  const DType traced = self.dtype() == DType::f64 ? DType::f64 : DType::f32;
  fill_with(self, -log1p(-uniform(o, traced)) / param(lambda), {}, {}, stream);
}

Tensor randperm(std::int64_t n, const PermutationOptions& o, const Stream& given) {
  detail::OpName named("randperm");
  constexpr const char* op = "randperm";
  const std::int64_t largest = largest_whole(o.dtype, op);
  if (n < 0 || n > INT32_MAX || n - 1 > largest || o.dtype == DType::boolean)
    throw Error(ErrorCode::invalid_argument, op, fmt::format("n must be in [0, 2^31) and n - 1 a number of {}, got {}", name(o.dtype), n));
  const Stream stream = detail::stream_for(given, o.device, op);
  const TensorOptions like{.dtype = DType::i64, .device = stream.device()};
  // By digits of 16 bits from the lowest on, each stably: equal keys of 64 bits keep their order.
  constexpr int kDigit = 16;
  Tensor keys = empty({n}, like, stream), order = arange(0, static_cast<double>(n), 1, like, stream);
  const DrawOptions draw{.seed = o.seed, .generator = o.generator};
  check_generator(keys, draw, op);
  if (n > 0) fill_with(keys, bits_of(draw), {}, {}, stream);
  for (int shift = 0; shift < 64 && n > 1; shift += kDigit) {
    const Tensor sorted = index_select(keys, 0, order, stream);
    const Tensor digits = map([&](Expr x) { return cast((x >> param(shift)) & 0xFFFF, DType::i32); }, {sorted}, {}, stream);
    const Groups groups = group_by(digits, 1 << kDigit, {}, stream);
    order = index_select(order, 0, groups.order, stream);
  }
  return order.to(o.dtype, {}, stream);
}

}}  // namespace clutch::v0
