// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by ops over traced functions: checks and casts of inputs, vector lengths, and arguments of printed text.
#include <clutch/expr.hpp>

#include "encode/plan.hpp"
#include "expr/node.hpp"

#include <array>
#include <optional>

namespace clutch { inline namespace v0 { namespace detail {

/// Errors: invalid_dtype if an input is traced in another dtype than the function takes. `first` is the index of the first of these inputs in the function.
void check_traced(const ExprFunction& function, std::span<const Tensor> inputs, std::string_view op, int first = 0);

/// The inputs in the dtypes of the kernels: an f64 tensor of rank 0 that affects promotion by its kind alone is cast to f32.
std::vector<Tensor> as_traced(std::span<const Tensor> inputs, const Stream& stream);

/// A dimension counted from the front; negative ones are counted from the end. Errors: invalid_argument if it is out of range.
int dim_of(std::int64_t dim, int rank, std::string_view op);

/// Accumulator dtype for sums of a dtype's elements: its compute dtype, i64 for all integers and booleans.
DType sum_dtype(DType dtype, std::string_view op);

/// The requested dtype for an op with one result, if any. Errors: invalid_argument for several dtypes.
inline std::optional<DType> one_dtype(const DTypeList& dtype, std::string_view op) {
  if (dtype.size() > 1) throw Error(ErrorCode::invalid_argument, op, fmt::format("dtype must be one for one result, got {}", dtype.size()));
  return dtype.empty() ? std::nullopt : std::optional(dtype[0]);
}

/// Marks the dimensions in `dims`, negative ones counted from the end. A tensor of rank 0 counts as one of rank 1. Errors: invalid_argument if one is out of
/// range or given twice.
std::array<bool, kMaxRank> marked_dims(const Dims& dims, int rank, std::string_view op);

bool has_positions(const ExprFunction& function);
/// Strides over `sizes` of the function's positions, in the order of the printed text: 1 in a position's own dimension, else 0; of places those of row-major
/// order. Errors: invalid_argument for a dimension out of range.
std::vector<Dims> position_strides(const ExprFunction& function, const Dims& sizes, std::string_view op);

/// Kinds of dtypes that a kernel stores, loads and computes with.
struct SeenTypes {
  bool has_f64 = false, has_wide = false;  ///< wide: i64 or f64
  void note(DType dtype) { has_f64 = has_f64 || dtype == DType::f64, has_wide = has_wide || is_wide(dtype); }
  void note(const ExprFunction& function) {
    for (const ExprStep& s : function.body()->steps) note(s.dtype);
  }
};

/// Lanes of a vector, the same for 32- and 64-bit values: halved if `has_wide`, one if rounding is emulated.
int lanes_of(const ElementwiseTuning& tuning, const DeviceTraits& traits, bool has_wide);
/// Sets the plan's vector length, with the defines that depend on it.
void set_lanes(KernelPlan& plan, const DeviceTraits& traits, bool has_wide, int operands, bool wide_index, int shape_lanes);

/// Binds sizes or strides as one vector of the kernel's index type.
void bind_lanes(Encoder& encoder, const std::int64_t* values, int lanes, bool wide_index);

/// Tensors of one rank as lines along a dimension: sizes and strides of the other dimensions, in the kernels' layout.
struct LineWalk {
  static constexpr std::size_t kMost = 3;  ///< operands
  std::size_t operands = 0;
  std::uint64_t lines = 1;
  std::int64_t rank = 1;
  std::array<std::int64_t, 16> size{};
  std::array<std::int64_t, 16 * kMost> stride{};
  bool wide_index = false;

  LineWalk(std::initializer_list<const Tensor*> tensors, const Dims& sizes, int dim);
  /// Binds rank, sizes, then strides.
  void bind(Encoder& encoder, std::uint8_t lanes) const;
};

/// For functions that are printed with outputs and inputs of these dtypes. Errors: not_supported if the device's compiler would end the process on a select of
/// bytes (quirk byte_selects_crash).
void check_byte_selects(const DeviceTraits& traits, const ExprFunction& function, std::span<const DType> outputs, std::span<const DType> inputs,
                        std::string_view op);

/// Errors: invalid_argument if a captured tensor is not set.
void check_captured(const ExprBody& body, std::string_view op);
/// Binds params, with these values, and captured tensors, in the order of the printed text.
void bind_extra(Encoder& encoder, const ExprBody& body, std::span<const double> params);

}}}  // namespace clutch::v0::detail
