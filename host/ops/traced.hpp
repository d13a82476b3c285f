// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the ops over traced functions share: checks and casts of inputs, lanes, and the arguments that printed text takes.
#include <clutch/expr.hpp>

#include "encode/plan.hpp"
#include "expr/node.hpp"

#include <array>
#include <optional>

namespace clutch { inline namespace v0 { namespace detail {

/// Errors: invalid_dtype if an input is traced in another dtype than the function takes, whose inputs they are from number `first` on.
void check_traced(const ExprFunction& function, std::span<const Tensor> inputs, std::string_view op, int first = 0);

/// The inputs as kernels read them: an f64 tensor of rank 0 that counts by its kind alone is cast to f32.
std::vector<Tensor> as_traced(std::span<const Tensor> inputs, const Stream& stream);

/// A dimension counted from the front, negative ones from the end. Errors: invalid_argument if it is none of the shape's.
int dim_of(std::int64_t dim, int rank, std::string_view op);

/// What sums of a dtype's elements are kept in: its compute dtype, i64 for all integers and booleans.
DType sum_dtype(DType dtype, std::string_view op);

/// The dtype that an op of one result is asked for, if any. Errors: invalid_argument for several.
inline std::optional<DType> one_dtype(const DTypeList& dtype, std::string_view op) {
  if (dtype.size() > 1) throw Error(ErrorCode::invalid_argument, op, fmt::format("dtype must be one for one result, got {}", dtype.size()));
  return dtype.empty() ? std::nullopt : std::optional(dtype[0]);
}

/// Which dimensions `dims` names, negative ones from the end. Errors: invalid_argument if one is none of the shape's or named twice.
std::array<bool, kMaxRank> marked_dims(const Dims& dims, int rank, std::string_view op);

bool has_positions(const ExprFunction& function);
/// Strides over `sizes` of the function's positions, in the order of the printed text: 1 in a position's own dimension.
/// Errors: invalid_argument for a dimension that is none of the shape's.
std::vector<Dims> position_strides(const ExprFunction& function, const Dims& sizes, std::string_view op);

/// What is among the dtypes that a kernel stores, loads and computes with.
struct SeenTypes {
  bool has_f64 = false, has_wide = false;  ///< wide: i64 or f64
  void note(DType dtype) { has_f64 = has_f64 || dtype == DType::f64, has_wide = has_wide || is_wide(dtype); }
  void note(const ExprFunction& function) {
    for (const ExprStep& s : function.body()->steps) note(s.dtype);
  }
};

/// Lanes of the vectors that hold shapes of that many dimensions.
inline std::uint8_t rank_lanes(std::int64_t rank) { return rank <= 4 ? 4 : rank <= 8 ? 8 : 16; }

/// Lanes of vectors of one length for 32- and 64-bit values: halved where `has_wide`, one where rounding is emulated.
int lanes_of(const ElementwiseTuning& tuning, const DeviceTraits& traits, bool has_wide);
/// Makes them the plan's, with the defines that go with them.
void set_lanes(KernelPlan& plan, const DeviceTraits& traits, bool has_wide, int operands, bool wide_index, int shape_lanes);

/// Sizes or strides as one vector of the kernel's index type.
void bind_lanes(Encoder& encoder, const std::int64_t* values, int lanes, bool wide_index);

/// Tensors of one rank as lines along a dimension: sizes and strides of the others, as kernels walk them.
struct LineWalk {
  static constexpr std::size_t kMost = 3;  ///< operands
  std::size_t operands = 0;
  std::uint64_t lines = 1;
  std::int64_t rank = 1;
  std::array<std::int64_t, 16> size{};
  std::array<std::int64_t, 16 * kMost> stride{};
  bool wide_index = false;

  LineWalk(std::initializer_list<const Tensor*> tensors, const Dims& sizes, int dim);
  /// rank, sizes, then strides.
  void bind(Encoder& encoder, std::uint8_t lanes) const;
};

/// Errors: invalid_argument if a captured tensor is not set.
void check_captured(const ExprBody& body, std::string_view op);
/// Params, with these values, and captured tensors, in the order of the printed text.
void bind_extra(Encoder& encoder, const ExprBody& body, std::span<const double> params);

}}}  // namespace clutch::v0::detail
