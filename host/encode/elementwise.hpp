// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/kernel.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

class Runtime;

/// Layout of the operands of an element-wise op, after dimensions that can be joined are joined.
enum class Layout : std::uint8_t {
  contiguous,  ///< every operand is one run of unit stride
  rows,        ///< the output's inner stride is 1, the inputs' are 0 or 1
  strided,
};

/// Sizes and strides of kOperands operands, output first, dimension 0 innermost. Kernels take it as 1 + kOperands vectors of
/// 16 longs (kernels/common/elementwise.clh), of which kMaxRank lanes count and lane 15 of the sizes is the rank.
template <int kOperands>
struct ElementwiseShape {
  static constexpr int kLanes = 16;
  std::int64_t size[kLanes] = {};
  std::int64_t stride[kOperands][kLanes] = {};

  std::int64_t& rank() { return size[kLanes - 1]; }
  void bind(Encoder& encoder) const {
    encoder.bytes(size, sizeof size);
    for (const auto& of_operand : stride) encoder.bytes(of_operand, sizeof of_operand);
  }
};

/// The walk over `sizes`: joined dimensions, layout, and whether offsets need 64 bits.
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
  static_assert(kMaxRank < ElementwiseShape<kOperands>::kLanes);
  ElementwiseWalk<kOperands> walk;
  walk.numel = static_cast<std::uint64_t>(numel(sizes));
  make_walk(sizes, strides, &walk.shape.rank(), walk.shape.size, &walk.shape.stride[0][0], &walk.layout, &walk.wide_index);
  return walk;
}

/// Offset of the last element.
std::int64_t last_offset(std::int64_t rank, const std::int64_t* size, const std::int64_t* stride);

/// Strides of `tensor` seen as broadcast to `sizes`.
Dims broadcast_strides(const Tensor& tensor, const Dims& sizes);

/// Size of a tile and work-items of a group, by traits: one item with wide vectors if vectors are native and groups are threads,
/// else a group of many items with four lanes.
struct ElementwiseTuning {
  int width = 1;            ///< lanes of a float vector
  std::uint64_t tile = 1;   ///< elements of a tile
  std::uint64_t local = 1;  ///< work-items of a group
};
ElementwiseTuning elementwise_tuning(const DeviceTraits& traits);

/// The same for kernels whose items own whole rows or blocks: groups of few items give the driver more groups to distribute.
ElementwiseTuning row_tuning(const DeviceTraits& traits);

/// Number of work-groups for `tiles`: one for each, up to a bound past which a group takes several.
Geometry tile_geometry(std::uint64_t tiles, std::uint64_t local);
/// The same for that many work-items.
inline Geometry item_geometry(std::uint64_t items, std::uint64_t local) { return tile_geometry((items + local - 1) / local, local); }

/// True if stores should bypass the cache: the operands together do not fit in it.
bool worth_streaming(const DeviceTraits& traits, std::uint64_t bytes);

/// False if the tensors cannot share memory.
bool may_overlap(const Tensor& a, const Tensor& b);
/// These throw invalid_overlap: if the output overlaps the input other than element for element,
void check_overlap(const Tensor& output, const Tensor& input, std::string_view op);
/// if the output shares memory with the other tensor at all,
void check_apart(const Tensor& output, const Tensor& other, std::string_view op);
/// if the output has elements that share memory.
void check_no_self_overlap(const Tensor& output, std::string_view op);

/// Whether it is f32, f64, f16 or bf16.
bool is_plain_float(DType dtype);
/// Errors: invalid_dtype unless is_plain_float(); `what` of the call is.
void check_plain_float(DType dtype, std::string_view what, std::string_view op);

/// The runtime all tensors share. Errors: device_mismatch, invalid_argument for an undefined one.
Runtime& common_runtime(std::span<const Tensor* const> tensors, std::string_view op);

}}}  // namespace clutch::v0::detail
