// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/map.hpp>

#include <array>
#include <concepts>
#include <span>
#include <string>

namespace clutch { inline namespace v0 {

/// Operation that combines elements, here and in segment_reduce, scatter_reduce and sparse::spmm, which take all but
/// any and all.
enum class Reduce : std::uint8_t { sum, prod, amin, amax, mean, any, all };

struct ReduceOptions {
  Dims dims = {};                   ///< dimensions to reduce, negative ones from the end; empty: all
  bool keepdim = false;             ///< reduced dimensions stay with size 1
  DTypeList dtype = {};             ///< of the result; empty: as the contract says
  ExprFunction after = {};          ///< of one input, applied to the result before it is stored
  std::string implementation = {};  ///< forces a plan by name; empty: the first that accepts
};

/// Reduces a traced function of broadcast tensors over dimensions, as in
/// reduce(Reduce::sum, [](Expr x) { return x * x; }, x, {.dims = {-1}}).
/// Shapes: the inputs broadcast; the result has the dimensions that are not reduced. At most 8 inputs and 4 positions,
///   which are those of the broadcast shape. Inputs of rank 0 count as of one dimension.
/// Dtypes: as map's inputs. Floats are f64 f32 f16 bf16; integers i64 i32 i16 i8 u64 u32 u16 u8.
///   sum and prod: floats accumulate in f32 (f64 for f64), integers and bool in i64, which wraps.
///   mean: floats likewise; integers and bool are made f32 first, so that no mean wraps, whatever `dtype` is.
///   amin and amax: in the dtype that map() traces. any and all: boolean.
///   Result: for floats as map_dtype() of the function; sums and products of integers i64; means of integers f32; amin
///   and amax of integers as map_dtype(); any and all boolean.
/// Empty: sum 0, prod 1, any false, all true, mean NaN; amin and amax are Errors.
/// NaN: amin and amax give NaN if there is one; any counts it as true.
/// Zeros: amin and amax count 0 and -0 as equal and give the one that the order below takes last, in a tree the one of
///   the second operand.
/// Overflow: a sum, also that of a mean, is Inf where it passes its accumulator's largest number on the way.
/// Determinism: bit-equal on every device, for every layout. Elements, in row-major order, go in blocks of 2048; in a
///   block element j is added to partial 16 floor(j / 512) + j mod 16; partials are added in a tree of halves (0 + 32,
///   1 + 33, ...); the results of blocks are reduced in the same way.
/// Accuracy: |error| <= (38 ceil(log2048(n)) + 1) eps sum |f(x)| for sums, eps being 2^-24 (2^-53 for f64).
/// Scratch: one accumulator per block of 2048 where more than one block is reduced to a result.
/// Errors: invalid_shape for inputs that do not broadcast; invalid_argument for dims out of range or repeated, amin and
///   amax of nothing; invalid_dtype; device_mismatch; not_supported for f64 without fp64 or an implementation that
///   refuses.
/// Stream: never waits.
/// Source: torch.sum and its like; argument checks and dtypes are PyTorch's.
CLUTCH_API Tensor reduce(Reduce op, const ExprFunction& function, std::span<const Tensor> inputs,
                         const ReduceOptions& options = {}, const Stream& stream = {});
CLUTCH_API void reduce_out(const Tensor& out, Reduce op, const ExprFunction& function, std::span<const Tensor> inputs,
                           const ReduceOptions& options = {}, const Stream& stream = {});

template <class F, std::same_as<Tensor> T>
requires detail::kIsLambda<F> Tensor reduce(Reduce op, F&& f, const T& x, const ReduceOptions& options = {},
                                            const Stream& stream = {}) {
  return reduce(op, detail::trace_over<1>(f, std::span(&x, 1), "reduce"), std::span(&x, 1), options, stream);
}
template <class F, std::size_t kInputs>
requires detail::kIsLambda<F> Tensor reduce(Reduce op, F&& f, const Tensor (&inputs)[kInputs],
                                            const ReduceOptions& options = {}, const Stream& stream = {}) {
  return reduce(op, detail::trace_over<kInputs>(f, inputs, "reduce"), std::span<const Tensor>(inputs), options, stream);
}
template <class F, std::size_t kInputs>
requires detail::kIsLambda<F>
void reduce_out(const Tensor& out, Reduce op, F&& f, const Tensor (&inputs)[kInputs], const ReduceOptions& options = {},
                const Stream& stream = {}) {
  reduce_out(out, op, detail::trace_over<kInputs>(f, inputs, "reduce_out"), std::span<const Tensor>(inputs), options,
             stream);
}

/// The reductions by name, of the elements themselves. Out forms write into the caller's tensor, of the result's shape,
/// any strides and any dtype that `dtype` may name; it shares no memory with x. sum and mean take c64 and c128, part by
/// part.
CLUTCH_API Tensor sum(const Tensor& x, const ReduceOptions& options = {}, const Stream& stream = {});
CLUTCH_API void sum_out(const Tensor& out, const Tensor& x, const ReduceOptions& options = {},
                        const Stream& stream = {});
CLUTCH_API Tensor mean(const Tensor& x, const ReduceOptions& options = {}, const Stream& stream = {});
CLUTCH_API void mean_out(const Tensor& out, const Tensor& x, const ReduceOptions& options = {},
                         const Stream& stream = {});
CLUTCH_API Tensor prod(const Tensor& x, const ReduceOptions& options = {}, const Stream& stream = {});
CLUTCH_API void prod_out(const Tensor& out, const Tensor& x, const ReduceOptions& options = {},
                         const Stream& stream = {});
CLUTCH_API Tensor amin(const Tensor& x, const ReduceOptions& options = {}, const Stream& stream = {});
CLUTCH_API void amin_out(const Tensor& out, const Tensor& x, const ReduceOptions& options = {},
                         const Stream& stream = {});
CLUTCH_API Tensor amax(const Tensor& x, const ReduceOptions& options = {}, const Stream& stream = {});
CLUTCH_API void amax_out(const Tensor& out, const Tensor& x, const ReduceOptions& options = {},
                         const Stream& stream = {});
CLUTCH_API Tensor any(const Tensor& x, const ReduceOptions& options = {}, const Stream& stream = {});
CLUTCH_API void any_out(const Tensor& out, const Tensor& x, const ReduceOptions& options = {},
                        const Stream& stream = {});
CLUTCH_API Tensor all(const Tensor& x, const ReduceOptions& options = {}, const Stream& stream = {});
CLUTCH_API void all_out(const Tensor& out, const Tensor& x, const ReduceOptions& options = {},
                        const Stream& stream = {});
/// Where the smallest and the largest element is: the first of equal ones, the first NaN if there is one. i64; of one
/// dimension, or with no `dims` the place among all elements in row-major order.
/// Errors: also invalid_argument for several dims, or nothing to search.
CLUTCH_API Tensor argmin(const Tensor& x, const ReduceOptions& options = {}, const Stream& stream = {});
CLUTCH_API void argmin_out(const Tensor& out, const Tensor& x, const ReduceOptions& options = {},
                           const Stream& stream = {});
CLUTCH_API Tensor argmax(const Tensor& x, const ReduceOptions& options = {}, const Stream& stream = {});
CLUTCH_API void argmax_out(const Tensor& out, const Tensor& x, const ReduceOptions& options = {},
                           const Stream& stream = {});
/// Sum of squared distances from the mean over n - correction, n - correction being 0 at least; two passes, so that it
/// is no difference of large numbers.
/// Dtypes: f32, f64 for f64; integers are made f32 before.
/// Accuracy: |error| <= (60 ceil(log2048(n)) + 5) eps var + d^2 n / (n - correction), d = (38 ceil(log2048(n)) + 2) eps
///   mean |x| being the mean's error: for elements that share a number of size c, d^2 counts once their deviation is
///   below some 40 eps c. NaN or Inf where their sum or a square overflows.
/// Empty: NaN, and where n is not above the correction NaN or Inf, as torch.var.
CLUTCH_API Tensor var(const Tensor& x, double correction = 1, const ReduceOptions& options = {},
                      const Stream& stream = {});
CLUTCH_API Tensor var(const Tensor& x, const ReduceOptions& options, const Stream& stream = {});  ///< of correction 1
CLUTCH_API void var_out(const Tensor& out, const Tensor& x, double correction = 1, const ReduceOptions& options = {},
                        const Stream& stream = {});
CLUTCH_API void var_out(const Tensor& out, const Tensor& x, const ReduceOptions& options, const Stream& stream = {});
/// (sum |x|^p)^(1/p); p = inf and -inf give the largest and the smallest magnitude, 0 counts what is not 0.
/// Dtypes: f32, f64 for f64; integers are made f32 before.
/// Range: powers and their sum are not scaled, as in PyTorch: f32's norm of p = 2 is Inf for elements past 2^64, and
///   those below 2^-63 may count as 0.
/// Empty: 0.
/// Errors: also invalid_argument for p < 0 of nothing.
/// Source: torch.linalg.vector_norm.
CLUTCH_API Tensor norm(const Tensor& x, double p = 2, const ReduceOptions& options = {}, const Stream& stream = {});
CLUTCH_API Tensor norm(const Tensor& x, const ReduceOptions& options, const Stream& stream = {});  ///< of p = 2
CLUTCH_API void norm_out(const Tensor& out, const Tensor& x, double p = 2, const ReduceOptions& options = {},
                         const Stream& stream = {});
CLUTCH_API void norm_out(const Tensor& out, const Tensor& x, const ReduceOptions& options, const Stream& stream = {});
/// log(sum e^x), by way of the maximum. A maximum of +inf gives +inf, of -inf alone -inf.
/// Dtypes: f32, f64 for f64; integers are made f32 before.
/// Empty: -inf.
/// Source: torch.logsumexp.
CLUTCH_API Tensor logsumexp(const Tensor& x, const ReduceOptions& options = {}, const Stream& stream = {});
CLUTCH_API void logsumexp_out(const Tensor& out, const Tensor& x, const ReduceOptions& options = {},
                              const Stream& stream = {});
/// Sums x over the dimensions that broadcasting `sizes` to x's shape would have made: the gradient of broadcasting. The
/// out form has out's sizes.
CLUTCH_API Tensor sum_to(const Tensor& x, const Dims& sizes, const Stream& stream = {});
CLUTCH_API void sum_to_out(const Tensor& out, const Tensor& x, const Stream& stream = {});

}}  // namespace clutch::v0
