// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/kernel.hpp>
#include <clutch/tensor.hpp>

#include <string>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

/// Name of the implementation, and text of its plan.
inline constexpr std::string_view kClblast = "clblast";

/// Loads CLBlast. Returns why products cannot use it: the build is without CLBlast, or the library cannot be loaded; empty if they can.
std::string clblast_refuses();
/// Returns why CLBlast cannot take the matrices of a tensor, the last two of at least two dims; empty if it can. `what` names them: "a".
std::string clblast_refuses(const Tensor& t, std::string_view what);

/// c = alpha a b + beta c of f32 or f64 matrices, one after another. Tensors are (batch, rows, columns); each matrix as clblast_refuses() asks.
/// Errors: not_supported for others; opencl with CLBlast's status, in a capture from each replay.
void clblast_gemm(const Tensor& c, const Tensor& a, const Tensor& b, double alpha, double beta, bool reads_c, const Stream& stream, const char* op);

}}}  // namespace clutch::v0::detail
