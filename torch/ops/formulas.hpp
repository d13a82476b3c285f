// SPDX-License-Identifier: Apache-2.0
// Functions of one number that ops of one tensor and of lists share, so that both have the same bits.
#pragma once
#include "ops/traced.hpp"

#include <clutch/pointwise.hpp>

namespace torch_clutch::formulas {

/// Bounds in PyTorch's order: NaN stays, and the upper bound wins.
inline Expr at_least(const Expr& x, const Expr& low) { return clutch::select(x < low, low, x); }
inline Expr at_most(const Expr& x, const Expr& high) { return clutch::select(x > high, high, x); }

inline constexpr auto negated = [](const In& in) { return -in.x[0]; };
inline constexpr auto magnitude = [](const In& in) { return clutch::abs(in.x[0]); };
inline constexpr auto sign = [](const In& in) { return clutch::sign(in.x[0]); };
inline constexpr auto exponential = [](const In& in) { return clutch::exp(in.x[0]); };
inline constexpr auto exponential_less_1 = [](const In& in) { return clutch::expm1(in.x[0]); };
inline constexpr auto logarithm = [](const In& in) { return clutch::log(in.x[0]); };
inline constexpr auto logarithm2 = [](const In& in) { return clutch::log2(in.x[0]); };
inline constexpr auto logarithm_of_1 = [](const In& in) { return clutch::log1p(in.x[0]); };
inline constexpr auto root = [](const In& in) { return clutch::sqrt(in.x[0]); };
inline constexpr auto inverse_root = [](const In& in) { return clutch::rsqrt(in.x[0]); };
inline constexpr auto sine = [](const In& in) { return clutch::sin(in.x[0]); };
inline constexpr auto cosine = [](const In& in) { return clutch::cos(in.x[0]); };
inline constexpr auto hyperbolic_tangent = [](const In& in) { return clutch::tanh(in.x[0]); };
inline constexpr auto logistic = [](const In& in) { return clutch::sigmoid(in.x[0]); };
inline constexpr auto error_function = [](const In& in) { return clutch::erf(in.x[0]); };
inline constexpr auto inverse = [](const In& in) { return 1.0 / in.x[0]; };
inline constexpr auto lower = [](const In& in) { return clutch::floor(in.x[0]); };
inline constexpr auto upper = [](const In& in) { return clutch::ceil(in.x[0]); };
inline constexpr auto truncated = [](const In& in) { return clutch::trunc(in.x[0]); };
inline constexpr auto nearest = [](const In& in) { return clutch::round(in.x[0]); };
inline constexpr auto fraction = [](const In& in) { return in.x[0] - clutch::trunc(in.x[0]); };

}  // namespace torch_clutch::formulas
