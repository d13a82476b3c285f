// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/random.hpp>
#include <clutch/tensor.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace clutch { inline namespace v0 {

/// Where a call's numbers come from: a seed alone (at offset 0, no state anywhere), else a generator, else the default
/// one.
struct UniformOptions {
  double low = 0;
  double high = 1;
  std::optional<std::uint64_t> seed = {};
  Generator generator = {};
};
struct NormalOptions {
  double mean = 0;
  double stddev = 1;
  std::optional<std::uint64_t> seed = {};
  Generator generator = {};
};
struct RandomOptions {
  DType dtype = DType::f32;
  Device device = {};  ///< empty: the current device
  std::optional<std::uint64_t> seed = {};
  Generator generator = {};
};

/// Fills self, in row-major order, with numbers of a uniform distribution: fma(u, high - low, low).
/// Range: u is a multiple of 2^-24 (f32), 2^-53 (f64), 2^-11 (f16) or 2^-8 (bf16) in [0, 1); `high` itself occurs by
///   rounding alone, never for [0, 1).
/// Words: elements form chunks of 64, of 16 Philox blocks each. Element i takes word (i / 16) % 4 of block
///   offset + 16 * (i / 64) + i % 16, from its top bits; for f64 chunks have 32 elements and element i takes words
///   2 * ((i / 16) % 2), the low half, and the next. A call draws 16 * ceil(numel / chunk) blocks.
/// Shapes: any, any strides.
/// Dtypes: f32, f64, f16, bf16; computed in f32 (f64 for f64), rounded once.
/// Determinism: equal bits on every device.
/// Scratch: a contiguous copy where self is not contiguous.
/// Errors: invalid_dtype; invalid_argument if low > high or one is not finite in the type that computes;
///   device_mismatch for a generator of another device; invalid_overlap if self overlaps itself; not_supported for f64
///   without fp64.
/// Stream: never waits.
/// Source: Tensor.uniform_ of PyTorch 2.12; the numbers are not PyTorch's, whose own differ from device to device.
CLUTCH_API void uniform_(const Tensor& self, const UniformOptions& options = {}, const Stream& stream = {});

/// Fills self, in row-major order, with numbers of a normal distribution by Box and Muller: fma(z, stddev, mean).
/// Formula: for words w, v of a block u = w * 2^-32 + 2^-33 and t = int(v) * 2^-31, in f32, where w, the sum and v are
///   rounded to nearest; r = sqrt(-2 log(u)); z = r * cos(pi t) for the first element of the pair and r * sin(pi t) for
///   the second.
/// Range: f32's |z| is at most 6.77.
/// Words: as uniform_; words 0 and 1 give elements 0 and 1 of a block, words 2 and 3 elements 2 and 3.
/// Words of f64: u has the 53 bits of words 0 and 1 plus a half unit, rounded to nearest, t the 53 bits of words 2 and
///   3, and a block gives two elements (chunks of 32).
/// Shapes, Dtypes, Determinism, Scratch and Stream as uniform_.
/// Errors: as uniform_; invalid_argument if stddev is negative or not finite.
/// Accuracy: log within 1 ulp, sinpi and cospi within 1.03 (kernels/common/math.clh; f64: 1), so z within 4 ulp of the
///   exact formula of the rounded u and t, which near u = 1 is far from that of the unrounded ones.
/// Source: Tensor.normal_ of PyTorch 2.12; G. E. P. Box and M. E. Muller, 1958.
CLUTCH_API void normal_(const Tensor& self, const NormalOptions& options = {}, const Stream& stream = {});

/// Where a call's numbers come from: a seed alone, else a generator, else the default one.
struct DrawOptions {
  std::optional<std::uint64_t> seed = {};
  Generator generator = {};
};
struct PermutationOptions {
  DType dtype = DType::i64;
  Device device = {};  ///< empty: the current device
  std::optional<std::uint64_t> seed = {};
  Generator generator = {};
};

/// Fills self, in row-major order, with whole numbers of a uniform distribution in [from, to): from + floor(bits (to -
/// from) / 2^64), where bits are random_bits() of the element. Each number is within (to - from) / 2^64 of as likely
/// as every other.
/// Without bounds: from 0 to the dtype's largest integer, both included; of floats to 2^24 (f32), 2^53 (f64), 2^11
///   (f16) and 2^8 (bf16).
/// Shapes: any, any strides.
/// Dtypes: integers, bool, f32, f64, f16, bf16.
/// Determinism: equal bits on every device.
/// Errors: invalid_argument unless from < to, both are numbers of the dtype (of floats up to the powers of two above,
///   exactly) and to - from is below 2^63; invalid_dtype; device_mismatch; invalid_overlap; not_supported for f64
///   without fp64.
/// Stream: never waits.
/// Source: Tensor.random_ of PyTorch 2.12; the numbers are not PyTorch's.
CLUTCH_API void random_(const Tensor& self, std::int64_t from, std::int64_t to, const DrawOptions& options = {},
                        const Stream& stream = {});
CLUTCH_API void random_(const Tensor& self, const DrawOptions& options = {}, const Stream& stream = {});

/// Fills self with 1 where random_uniform() of the element is below p, else with 0: with probability p, up to 2^-24.
/// Probabilities of a tensor, which broadcasts to self's shape, are its elements; f64 ones are met up to 2^-53. Above 1
/// counts as 1, below 0 and NaN as 0.
/// Shapes, Dtypes, Determinism and Stream as random_().
/// Errors: invalid_argument unless 0 <= p <= 1; invalid_shape; invalid_dtype for probabilities that are not f32, f64,
///   f16 or bf16; as random_().
/// Source: Tensor.bernoulli_ of PyTorch 2.12.
CLUTCH_API void bernoulli_(const Tensor& self, double p = 0.5, const DrawOptions& options = {},
                           const Stream& stream = {});
CLUTCH_API void bernoulli_(const Tensor& self, const Tensor& p, const DrawOptions& options = {},
                           const Stream& stream = {});

/// Fills self with numbers of an exponential distribution: -log1p(-u) / lambda, where u is random_uniform() of the
/// element, f64 for f64. 0 has the probability 2^-24 (2^-53), the largest number is 16.7 / lambda (36.8 / lambda).
/// Shapes, Determinism and Stream as random_(). Dtypes: f32, f64, f16, bf16; rounded once.
/// Accuracy: 1.35 ulp of the exact formula of the rounded lambda.
/// Errors: invalid_argument unless lambda is above 0 and finite; as random_().
/// Source: Tensor.exponential_ of PyTorch 2.12.
CLUTCH_API void exponential_(const Tensor& self, double lambda = 1, const DrawOptions& options = {},
                             const Stream& stream = {});

/// A random order of the numbers 0 to n - 1: that of random_bits() of n elements, of which equal ones keep theirs.
/// Dtypes: integers, f32, f64, f16, bf16, whose largest exact integer is at least n - 1.
/// Determinism: equal on every device.
/// Scratch: 40 n bytes.
/// Errors: invalid_argument for n below 0, from 2^31 on, or past the dtype's integers; invalid_dtype; device_mismatch.
/// Stream: never waits.
/// Source: torch.randperm of PyTorch 2.12.
CLUTCH_API Tensor randperm(std::int64_t n, const PermutationOptions& options = {}, const Stream& stream = {});

/// A new tensor of uniform_ in [0, 1); of c64 and c128 both parts are.
CLUTCH_API Tensor rand(const Dims& sizes, const RandomOptions& options = {}, const Stream& stream = {});
/// A new tensor of normal_ with mean 0 and standard deviation 1; of c64 and c128 each part has 1 / sqrt 2.
CLUTCH_API Tensor randn(const Dims& sizes, const RandomOptions& options = {}, const Stream& stream = {});

}}  // namespace clutch::v0
