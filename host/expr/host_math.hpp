// SPDX-License-Identifier: Apache-2.0
#pragma once
// The elementary functions of kernels/common/math_f32.clh and math_f64.clh, compiled for the host from the same text.

namespace clutch { inline namespace v0 { namespace detail { namespace host_math {

#define CLUTCH_HOST_MATH(X) X(rsqrt) X(exp) X(exp2) X(expm1) X(log) X(log2) X(log1p) X(tanh) X(sigmoid) X(erf) X(sin) X(cos)
#define CLUTCH_X(name) \
  float name(float x); \
  double name(double x);
CLUTCH_HOST_MATH(CLUTCH_X)
#undef CLUTCH_X
float pow(float x, float y);
double pow(double x, double y);

}}}}  // namespace clutch::v0::detail::host_math
