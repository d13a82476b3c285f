// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/kernel.hpp>

#include "common/reciprocal.h"
#include "common/shape.h"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

class Runtime;

/// Layout of the operands of an element-wise op, after adjacent dimensions are joined where possible.
enum class Layout : std::uint8_t {
  contiguous,  ///< every operand is one run of unit stride
  rows,        ///< the output's inner stride is 1, the inputs' are 0 or 1
  strided,
};

/// Divisors of all sizes but the last, as kernels take them (kernels/common/shape.h).
inline void set_divisors(const std::int64_t* size, std::int64_t rank, std::int64_t* divisor) {
  for (std::int64_t d = 0; d + 1 < rank; ++d) divisor[d] = static_cast<std::int64_t>(offsets_divisor(static_cast<std::uint64_t>(size[d])));
}

/// Sizes and strides of kOperands operands, output first, dimension 0 innermost, as kernels take them (kernels/common/shape.h). The first kMaxRank lanes are
/// used, and the sizes' lane CLUTCH_SHAPE_RANK.
template <int kOperands>
struct ElementwiseShape {
  static constexpr int kLanes = CLUTCH_SHAPE_LANES;
  std::int64_t size[kLanes] = {};
  std::int64_t stride[kOperands][kLanes] = {};

  std::int64_t& rank() { return size[CLUTCH_SHAPE_RANK]; }
  /// Rows are walked by units of so many elements.
  void set_units(std::int64_t elements) {
    size[CLUTCH_SHAPE_UNITS] = size[CLUTCH_SHAPE_ALL_UNITS] = (size[0] + elements - 1) / elements;
    for (std::int64_t d = 1; d < rank(); ++d) size[CLUTCH_SHAPE_ALL_UNITS] *= size[d];
  }
  void bind(Encoder& encoder) const {
    encoder.bytes(size, sizeof size);
    std::int64_t divisor[kLanes] = {};
    set_divisors(size, size[CLUTCH_SHAPE_RANK], divisor);
    divisor[CLUTCH_SHAPE_UNITS] = static_cast<std::int64_t>(offsets_divisor(static_cast<std::uint64_t>(size[CLUTCH_SHAPE_UNITS])));
    encoder.bytes(divisor, sizeof divisor);
    for (const auto& of_operand : stride) encoder.bytes(of_operand, sizeof of_operand);
  }
};

/// How an element-wise op walks over `sizes`: joined dimensions, layout, and whether offsets need 64 bits.
template <int kOperands>
struct ElementwiseWalk {
  ElementwiseShape<kOperands> shape;
  Layout layout = Layout::contiguous;
  bool wide_index = false;
  std::uint64_t numel = 0;
};

void make_walk(const Dims& sizes, std::span<const Dims> strides, std::int64_t* rank, std::int64_t* size, std::int64_t* stride, Layout* layout,
               bool* wide_index);

template <int kOperands>
ElementwiseWalk<kOperands> walk_of(const Dims& sizes, const std::array<Dims, kOperands>& strides) {
  static_assert(kMaxRank == CLUTCH_SHAPE_MOST_RANK && kMaxRank <= CLUTCH_SHAPE_RANK);
  ElementwiseWalk<kOperands> walk;
  walk.numel = static_cast<std::uint64_t>(numel(sizes));
  make_walk(sizes, strides, &walk.shape.rank(), walk.shape.size, &walk.shape.stride[0][0], &walk.layout, &walk.wide_index);
  return walk;
}

/// Offset of the last element, in elements.
std::int64_t last_offset(std::int64_t rank, const std::int64_t* size, const std::int64_t* stride);

/// True if offsets in one of the tensors, or up to a vector past its last element, need 64 bits, or CLUTCH_INDEX64 asks for them. Undefined ones have none.
bool has_wide_offsets(std::initializer_list<const Tensor*> tensors);

/// Strides of `tensor` broadcast to `sizes`.
Dims broadcast_strides(const Tensor& tensor, const Dims& sizes);

/// Size of a tile and number of items of a group, by traits. Groups have one item with wide vectors if vectors are native and groups are threads, else many
/// items with vectors of four lanes.
struct ElementwiseTuning {
  int width = 1;            ///< lanes of a float vector
  std::uint64_t tile = 1;   ///< elements of a tile
  std::uint64_t local = 1;  ///< items of a group
  /// Groups may have more items than `local`: as many as the device runs side by side, where that is known once the kernel is built.
  bool fills_sub_groups = false;
  /// For kernels that take this number of items.
  void set_items(std::uint64_t items) { local = items, fills_sub_groups = false; }
};
ElementwiseTuning elementwise_tuning(const DeviceTraits& traits);

/// The same for kernels whose items own whole rows or blocks. Groups have 32 items, so that the driver has more groups to distribute, or a sub-group.
ElementwiseTuning row_tuning(const DeviceTraits& traits);

/// One group for each tile, up to a bound beyond which groups take several tiles.
Geometry tile_geometry(std::uint64_t tiles, std::uint64_t local);
/// The same for a number of items.
inline Geometry item_geometry(std::uint64_t items, std::uint64_t local) { return tile_geometry((items + local - 1) / local, local); }

/// True if stores should bypass the cache, because the operands together do not fit in it.
bool worth_streaming(const DeviceTraits& traits, std::uint64_t bytes);

/// Overlap is decided by bytes, exactly, but for packed dtypes and searches of more than kOverlapSteps (encode/overlap.hpp), which count as overlaps.
/// False only if the tensors share no memory.
bool may_overlap(const Tensor& a, const Tensor& b);
/// Errors: invalid_overlap if the output overlaps the input, unless both are the same elements.
void check_overlap(const Tensor& output, const Tensor& input, std::string_view op);
/// Errors: invalid_overlap if the output shares any memory with the other tensor.
void check_apart(const Tensor& output, const Tensor& other, std::string_view op);
/// For lists of `length` tensors each, one list after another: errors of check_overlap() for an output and an input at one place of their lists, and of
/// check_apart() for an output and any other tensor.
void check_lists_apart(std::span<const Tensor> outputs, std::span<const Tensor> inputs, std::size_t length, std::string_view op);
/// Errors: invalid_overlap if elements of the output share memory.
void check_no_self_overlap(const Tensor& output, std::string_view op);

/// True for f32, f64, f16 and bf16.
bool is_plain_float(DType dtype);
/// Errors: invalid_dtype unless is_plain_float(dtype). `what` names the tensor in the text.
void check_plain_float(DType dtype, std::string_view what, std::string_view op);

/// The runtime that all tensors share. Errors: device_mismatch; invalid_argument for an undefined tensor.
Runtime& common_runtime(std::span<const Tensor* const> tensors, std::string_view op);

}}}  // namespace clutch::v0::detail
