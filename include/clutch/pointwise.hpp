// SPDX-License-Identifier: Apache-2.0
#pragma once
// Named element-wise ops: each is clutch::map of one line over the functions of clutch/expr.hpp, whose accuracy holds.
// Shapes, dtypes, aliases, determinism, errors and waiting are those of map.hpp for all of them.
// Each has the forms
//   Tensor exp(x, options, stream)    void exp_out(out, x, options, stream)    void exp_(self, options, stream)
// Differs from PyTorch on purpose: bool counts as the integers 0 and 1 in arithmetic; pow of integers is f32; the
// division that rounds takes integers only.
#include <clutch/ops/map.hpp>

namespace clutch { inline namespace v0 {

/// A number for an op of a tensor and a number; it is a kernel argument, so other numbers build nothing. Whole numbers
/// keep integer tensors integer, floating ones make them f32.
class Scalar {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  constexpr Scalar(T value) : value_(static_cast<double>(value)), whole_(std::is_integral_v<T>) {}
  constexpr double value() const noexcept { return value_; }
  constexpr bool is_whole() const noexcept { return whole_; }

 private:
  double value_;
  bool whole_;
};

#define CLUTCH_POINTWISE_1(name)                                                                      \
  CLUTCH_API Tensor name(const Tensor& x, const MapOptions& options = {}, const Stream& stream = {}); \
  CLUTCH_API void name##_out(const Tensor& out, const Tensor& x, const MapOptions& options = {},      \
                             const Stream& stream = {});                                              \
  CLUTCH_API void name##_(const Tensor& self, const MapOptions& options = {}, const Stream& stream = {});
#define CLUTCH_POINTWISE_2(name)                                                                                       \
  CLUTCH_API Tensor name(const Tensor& a, const Tensor& b, const MapOptions& options = {}, const Stream& stream = {}); \
  CLUTCH_API Tensor name(const Tensor& a, const Scalar& b, const MapOptions& options = {}, const Stream& stream = {}); \
  CLUTCH_API void name##_out(const Tensor& out, const Tensor& a, const Tensor& b, const MapOptions& options = {},      \
                             const Stream& stream = {});                                                               \
  CLUTCH_API void name##_(const Tensor& self, const Tensor& b, const MapOptions& options = {},                         \
                          const Stream& stream = {});                                                                  \
  CLUTCH_API void name##_(const Tensor& self, const Scalar& b, const MapOptions& options = {},                         \
                          const Stream& stream = {});

CLUTCH_POINTWISE_1(neg)
CLUTCH_POINTWISE_1(abs)
CLUTCH_POINTWISE_1(sign)
CLUTCH_POINTWISE_1(square)
CLUTCH_POINTWISE_1(reciprocal)
CLUTCH_POINTWISE_1(sqrt)
CLUTCH_POINTWISE_1(rsqrt)
CLUTCH_POINTWISE_1(exp)
CLUTCH_POINTWISE_1(exp2)
CLUTCH_POINTWISE_1(expm1)
CLUTCH_POINTWISE_1(log)
CLUTCH_POINTWISE_1(log2)
CLUTCH_POINTWISE_1(log1p)
CLUTCH_POINTWISE_1(tanh)
CLUTCH_POINTWISE_1(sigmoid)
CLUTCH_POINTWISE_1(erf)
CLUTCH_POINTWISE_1(sin)
CLUTCH_POINTWISE_1(cos)
CLUTCH_POINTWISE_1(floor)
CLUTCH_POINTWISE_1(ceil)
CLUTCH_POINTWISE_1(trunc)
CLUTCH_POINTWISE_1(round)
CLUTCH_POINTWISE_1(relu)
CLUTCH_POINTWISE_1(silu)
CLUTCH_POINTWISE_1(softplus)
CLUTCH_POINTWISE_1(bitwise_not)
CLUTCH_POINTWISE_1(logical_not)
CLUTCH_POINTWISE_1(isnan)
CLUTCH_POINTWISE_1(isinf)
CLUTCH_POINTWISE_1(isfinite)

CLUTCH_POINTWISE_2(add)
CLUTCH_POINTWISE_2(sub)
CLUTCH_POINTWISE_2(mul)
CLUTCH_POINTWISE_2(div)  ///< the quotient of floats; integers are f32 first
CLUTCH_POINTWISE_2(floor_divide)
CLUTCH_POINTWISE_2(trunc_divide)
CLUTCH_POINTWISE_2(remainder)  ///< of floor_divide, with the sign of b
CLUTCH_POINTWISE_2(fmod)       ///< of trunc_divide, with the sign of a
CLUTCH_POINTWISE_2(pow)
CLUTCH_POINTWISE_2(minimum)
CLUTCH_POINTWISE_2(maximum)
CLUTCH_POINTWISE_2(eq)
CLUTCH_POINTWISE_2(ne)
CLUTCH_POINTWISE_2(lt)
CLUTCH_POINTWISE_2(le)
CLUTCH_POINTWISE_2(gt)
CLUTCH_POINTWISE_2(ge)
CLUTCH_POINTWISE_2(bitwise_and)
CLUTCH_POINTWISE_2(bitwise_or)
CLUTCH_POINTWISE_2(bitwise_xor)
CLUTCH_POINTWISE_2(logical_and)
CLUTCH_POINTWISE_2(logical_or)
CLUTCH_POINTWISE_2(logical_xor)

#undef CLUTCH_POINTWISE_1
#undef CLUTCH_POINTWISE_2

/// a + alpha b, one fma.
CLUTCH_API Tensor add_scaled(const Tensor& a, const Tensor& b, const Scalar& alpha, const MapOptions& options = {},
                             const Stream& stream = {});
CLUTCH_API void add_scaled_out(const Tensor& out, const Tensor& a, const Tensor& b, const Scalar& alpha,
                               const MapOptions& options = {}, const Stream& stream = {});
CLUTCH_API void add_scaled_(const Tensor& self, const Tensor& b, const Scalar& alpha, const MapOptions& options = {},
                            const Stream& stream = {});
CLUTCH_API Tensor gelu(const Tensor& x, GeluForm form = GeluForm::erf, const MapOptions& options = {},
                       const Stream& stream = {});
CLUTCH_API void gelu_out(const Tensor& out, const Tensor& x, GeluForm form = GeluForm::erf,
                         const MapOptions& options = {}, const Stream& stream = {});
/// x where x > 0, else slope x.
CLUTCH_API Tensor leaky_relu(const Tensor& x, const Scalar& slope = 0.01, const MapOptions& options = {},
                             const Stream& stream = {});
CLUTCH_API void leaky_relu_out(const Tensor& out, const Tensor& x, const Scalar& slope = 0.01,
                               const MapOptions& options = {}, const Stream& stream = {});
/// min(max(x, low), high); NaN where x or a bound is NaN.
CLUTCH_API Tensor clamp(const Tensor& x, const Scalar& low, const Scalar& high, const MapOptions& options = {},
                        const Stream& stream = {});
CLUTCH_API Tensor clamp(const Tensor& x, const Tensor& low, const Tensor& high, const MapOptions& options = {},
                        const Stream& stream = {});
CLUTCH_API void clamp_out(const Tensor& out, const Tensor& x, const Scalar& low, const Scalar& high,
                          const MapOptions& options = {}, const Stream& stream = {});
CLUTCH_API void clamp_out(const Tensor& out, const Tensor& x, const Tensor& low, const Tensor& high,
                          const MapOptions& options = {}, const Stream& stream = {});
/// a where the condition holds (is not 0), else b; of the dtype of a and b, whatever the condition's.
CLUTCH_API Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b, const MapOptions& options = {},
                        const Stream& stream = {});
CLUTCH_API void where_out(const Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b,
                          const MapOptions& options = {}, const Stream& stream = {});
CLUTCH_API Tensor lerp(const Tensor& start, const Tensor& end, const Scalar& weight, const MapOptions& options = {},
                       const Stream& stream = {});
CLUTCH_API Tensor lerp(const Tensor& start, const Tensor& end, const Tensor& weight, const MapOptions& options = {},
                       const Stream& stream = {});
CLUTCH_API void lerp_out(const Tensor& out, const Tensor& start, const Tensor& end, const Scalar& weight,
                         const MapOptions& options = {}, const Stream& stream = {});
CLUTCH_API void lerp_out(const Tensor& out, const Tensor& start, const Tensor& end, const Tensor& weight,
                         const MapOptions& options = {}, const Stream& stream = {});

/// Operators are the named ops on the current stream: neg, add, sub, mul and div, of which `/` is the quotient of
/// floats. Comparisons have names alone (eq, lt), and so has the matrix product (linalg::matmul). `a += b` writes into
/// a's memory and keeps its dtype, as add_ does.
/// Errors: those of the named op, by its name.
CLUTCH_API Tensor operator-(const Tensor& x);
CLUTCH_API Tensor operator+(const Tensor& a, const Tensor& b);
CLUTCH_API Tensor operator+(const Tensor& a, const Scalar& b);
CLUTCH_API Tensor operator+(const Scalar& a, const Tensor& b);
CLUTCH_API Tensor operator-(const Tensor& a, const Tensor& b);
CLUTCH_API Tensor operator-(const Tensor& a, const Scalar& b);
CLUTCH_API Tensor operator-(const Scalar& a, const Tensor& b);
CLUTCH_API Tensor operator*(const Tensor& a, const Tensor& b);
CLUTCH_API Tensor operator*(const Tensor& a, const Scalar& b);
CLUTCH_API Tensor operator*(const Scalar& a, const Tensor& b);
CLUTCH_API Tensor operator/(const Tensor& a, const Tensor& b);
CLUTCH_API Tensor operator/(const Tensor& a, const Scalar& b);
CLUTCH_API Tensor operator/(const Scalar& a, const Tensor& b);
CLUTCH_API Tensor& operator+=(Tensor& a, const Tensor& b);
CLUTCH_API Tensor& operator+=(Tensor& a, const Scalar& b);
CLUTCH_API Tensor& operator-=(Tensor& a, const Tensor& b);
CLUTCH_API Tensor& operator-=(Tensor& a, const Scalar& b);
CLUTCH_API Tensor& operator*=(Tensor& a, const Tensor& b);
CLUTCH_API Tensor& operator*=(Tensor& a, const Scalar& b);
CLUTCH_API Tensor& operator/=(Tensor& a, const Tensor& b);
CLUTCH_API Tensor& operator/=(Tensor& a, const Scalar& b);

}}  // namespace clutch::v0
