// SPDX-License-Identifier: Apache-2.0
// Norms of gradients that ranks share, whose bits do not depend on how many ranks there are.
#pragma once
#include <clutch/expr.hpp>
#include <clutch/ops/optim.hpp>
#include <clutch/ops/reduce.hpp>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

/// Errors: invalid_argument for one that is negative or NaN.
void check_max_norm(const char* op, double max_norm);

/// What a norm adds up of an element of that dtype, or takes the largest of.
ExprFunction norm_term(optim::NormType type, DType dtype);
Reduce norm_reduce(optim::NormType type);
/// The dtype in which gradients of a dtype are added up.
DType sum_dtype(DType of);

/// The norm and the factor by sums of all elements' terms (or largest ones).
optim::GradNorm norm_of_sums(const Tensor& sums, double max_norm, const optim::ClipOptions& options, const Stream& stream);

}}}}  // namespace clutch::v0::dist::detail
