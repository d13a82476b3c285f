// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the ops over traced functions share: checks and casts of inputs, lanes, and the arguments that printed text takes.
#include <clutch/expr.hpp>

#include "encode/plan.hpp"
#include "expr/node.hpp"

namespace clutch::inline v0::detail {

/// Errors: invalid_dtype if an input is traced in another dtype than the function takes.
void check_traced(const ExprFunction& function, std::span<const Tensor> inputs, std::string_view op);

/// The inputs as kernels read them: an f64 tensor of rank 0 that counts by its kind alone is cast to f32.
std::vector<Tensor> as_traced(std::span<const Tensor> inputs, const Stream& stream);

/// Lanes of the vectors that hold shapes of that many dimensions.
inline std::uint8_t rank_lanes(std::int64_t rank) { return rank <= 4 ? 4 : rank <= 8 ? 8 : 16; }

/// Vectors of one length for 32- and 64-bit values, halved where `has_wide`, and the defines that go with them.
void set_lanes(KernelPlan& plan, const DeviceTraits& traits, bool has_wide, int operands, bool wide_index, int shape_lanes);

/// Sizes or strides as one vector of the kernel's index type.
void bind_lanes(Encoder& encoder, const std::int64_t* values, int lanes, bool wide_index);

/// Params, with these values, and captured tensors, in the order of the printed text.
void bind_extra(Encoder& encoder, const ExprBody& body, std::span<const double> params);

}  // namespace clutch::inline v0::detail
