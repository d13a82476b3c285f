// SPDX-License-Identifier: Apache-2.0
#include "encode/elementwise.hpp"

#include "encode/overlap.hpp"
#include "runtime/runtime.hpp"
#include "runtime/settings.hpp"
#include "runtime/storage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

void make_walk(const Dims& sizes, std::span<const Dims> strides, std::int64_t* rank, std::int64_t* size, std::int64_t* stride, Layout* layout,
               bool* wide_index) {
  const int operands = static_cast<int>(strides.size());
  auto at = [&](int k, int d) -> std::int64_t& { return stride[k * ElementwiseShape<1>::kLanes + d]; };
  int order[kMaxRank];
  int kept = 0;
  for (int d = sizes.rank() - 1; d >= 0; --d)
    if (sizes[d] != 1) order[kept++] = d;
  // The order of elements does not matter, so dimensions are sorted: the one with the output's smallest stride becomes the innermost.
  std::stable_sort(order, order + kept, [&](int a, int b) { return strides[0][a] < strides[0][b]; });
  int n = 0;
  for (int i = 0; i < kept; ++i) {
    int d = order[i];
    bool joins = n > 0;
    for (int k = 0; k < operands && joins; ++k) joins = strides[static_cast<std::size_t>(k)][d] == at(k, n - 1) * size[n - 1];
    if (joins) {
      size[n - 1] *= sizes[d];
      continue;
    }
    size[n] = sizes[d];
    for (int k = 0; k < operands; ++k) at(k, n) = strides[static_cast<std::size_t>(k)][d];
    ++n;
  }
  if (n == 0) {
    size[0] = 1;
    for (int k = 0; k < operands; ++k) at(k, 0) = 1;
    n = 1;
  }
  *rank = n;
  bool unit = true, row = at(0, 0) == 1;
  for (int k = 0; k < operands; ++k) {
    unit = unit && at(k, 0) == 1;
    row = row && (at(k, 0) == 0 || at(k, 0) == 1);
  }
  *layout = n == 1 && unit ? Layout::contiguous : row ? Layout::rows : Layout::strided;
  std::int64_t count = 1;
  for (int d = 0; d < n; ++d) count *= size[d];
  *wide_index = the_settings().index64.on() || count >= INT32_MAX;
  for (int k = 0; k < operands; ++k) {
    std::int64_t last = 0;
    for (int d = 0; d < n; ++d) last += (size[d] - 1) * at(k, d);
    *wide_index = *wide_index || last >= INT32_MAX;
  }
}

std::int64_t last_offset(std::int64_t rank, const std::int64_t* size, const std::int64_t* stride) {
  std::int64_t last = 0;
  for (std::int64_t d = 0; d < rank; ++d) last += std::max<std::int64_t>(size[d] - 1, 0) * stride[d];
  return last;
}

bool has_wide_offsets(std::initializer_list<const Tensor*> tensors) {
  if (the_settings().index64.on()) return true;
  constexpr std::int64_t kVector = 64;
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const Tensor* t) { return t->defined() && last_offset(t->rank(), t->sizes().begin(), t->strides().begin()) + kVector >= INT32_MAX; });
}

Dims broadcast_strides(const Tensor& tensor, const Dims& sizes) {
  Dims result = Dims::filled(sizes.rank(), 0);
  int lead = sizes.rank() - tensor.rank();
  for (int d = 0; d < tensor.rank(); ++d)
    if (tensor.sizes()[d] != 1) result[d + lead] = tensor.strides()[d];
  return result;
}

ElementwiseTuning elementwise_tuning(const DeviceTraits& traits) {
  // A tile takes about 10 us of streaming on one core, so that the work of a group exceeds the cost to schedule the group; measured with `clutch-bench --filter
  // addcdiv/f32` on a wide-vector device. For groups of several items a tile has 8 vectors for each item.
  if (traits.type == DeviceType::cpu && traits.native_width_f32 >= 4) return {.width = std::min(traits.native_width_f32, 16), .tile = 8192, .local = 1};
  std::uint64_t local = std::min<std::uint64_t>(traits.max_work_group, 128);
  return {.width = 4, .tile = 8 * 4 * local, .local = local};
}

ElementwiseTuning row_tuning(const DeviceTraits& traits) {
  ElementwiseTuning tuning = elementwise_tuning(traits);
  tuning.local = std::min<std::uint64_t>(tuning.local, 32);
  tuning.fills_sub_groups = tuning.local > 1;
  return tuning;
}

Geometry tile_geometry(std::uint64_t tiles, std::uint64_t local) {
  constexpr std::uint64_t kMostGroups = 1u << 16;
  return {.global = std::min(tiles, kMostGroups) * local, .local = local};
}

bool worth_streaming(const DeviceTraits& traits, std::uint64_t bytes) { return traits.cache_bytes > 0 && bytes > traits.cache_bytes; }

namespace {

/// Offsets, from the begin of the storage, of the first byte of a tensor and of the byte after the last.
std::pair<std::uint64_t, std::uint64_t> extent(const Tensor& t) {
  std::uint64_t begin = t.storage()->offset() + t.byte_offset();
  return {begin, begin + extent_bytes(t)};
}

/// True if each of the sorted strides exceeds the reach of all smaller ones, so that no two indices reach the same element.
bool surely_injective(const Tensor& t) {
  int order[kMaxRank];
  int n = 0;
  for (int d = 0; d < t.rank(); ++d)
    if (t.sizes()[d] > 1) order[n++] = d;
  std::stable_sort(order, order + n, [&](int a, int b) { return t.strides()[a] < t.strides()[b]; });
  std::int64_t reach = 0;
  for (int i = 0; i < n; ++i) {
    if (t.strides()[order[i]] <= reach) return false;
    reach += (t.sizes()[order[i]] - 1) * t.strides()[order[i]];
  }
  return true;
}

}  // namespace

void check_no_self_overlap(const Tensor& output, std::string_view op) {
  if (output.numel() <= 1 || output.is_contiguous() || surely_injective(output)) return;
  if (!is_packed(output.dtype()) && overlaps_itself(output) == Reached::no) return;
  throw Error(ErrorCode::invalid_overlap, op,
              fmt::format("each element of the output must have memory of its own, got sizes {} with strides {}; clone() it first", to_string(output.sizes()),
                          to_string(output.strides())));
}

namespace {

enum class Overlap { none, same, partial };

/// True if both have the same sizes, and strides where they count.
bool same_walk(const Tensor& a, const Tensor& b) {
  if (!(a.sizes() == b.sizes())) return false;
  for (int d = 0; d < a.rank(); ++d)
    if (a.sizes()[d] > 1 && a.strides()[d] != b.strides()[d]) return false;
  return true;
}

Overlap overlap_of(const Tensor& a, const Tensor& b) {
  if (a.numel() == 0 || b.numel() == 0 || !a.storage()->same_memory(*b.storage())) return Overlap::none;
  auto [a0, a1] = extent(a);
  auto [b0, b1] = extent(b);
  if (a1 <= b0 || b1 <= a0) return Overlap::none;
  if (a0 == b0 && a.dtype() == b.dtype() && same_walk(a, b)) return Overlap::same;
  if ((a.is_contiguous() && b.is_contiguous()) || is_packed(a.dtype()) || is_packed(b.dtype())) return Overlap::partial;
  return overlaps(a, b, static_cast<std::int64_t>(b0) - static_cast<std::int64_t>(a0)) == Reached::no ? Overlap::none : Overlap::partial;
}

}  // namespace

bool may_overlap(const Tensor& a, const Tensor& b) { return overlap_of(a, b) != Overlap::none; }

void check_overlap(const Tensor& output, const Tensor& input, std::string_view op) {
  if (overlap_of(output, input) == Overlap::partial)
    throw Error(ErrorCode::invalid_overlap, op,
                "the output must be an input element for element or share no memory with it, got another overlap; clone() the input first");
}

void check_apart(const Tensor& output, const Tensor& other, std::string_view op) {
  if (overlap_of(output, other) != Overlap::none)
    throw Error(ErrorCode::invalid_overlap, op, "the output must share no memory with other operands, got an overlap");
}

void check_lists_apart(std::span<const Tensor> outputs, std::span<const Tensor> inputs, std::size_t length, std::string_view op) {
  struct Range {
    const void* memory;
    std::uint64_t begin, end;
    const Tensor* tensor;
    std::size_t place;
    bool written;
  };
  std::vector<Range> ranges;
  auto add = [&](std::span<const Tensor> list, bool written) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].numel() == 0) continue;
      const Storage& storage = *list[i].storage();
      const auto [begin, end] = extent(list[i]);
      ranges.push_back({storage.unplaced() ? static_cast<const void*>(&storage) : storage.mem(), begin, end, &list[i], i % length, written});
    }
  };
  for (const Tensor& output : outputs) check_no_self_overlap(output, op);
  add(outputs, true), add(inputs, false);
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.memory != b.memory ? std::less<>()(a.memory, b.memory) : a.begin < b.begin; });
  std::vector<const Range*> open;  // ranges that may reach into the next one
  for (const Range& r : ranges) {
    std::erase_if(open, [&](const Range* other) { return other->memory != r.memory || other->end <= r.begin; });
    for (const Range* other : open) {
      if (!r.written && !other->written) continue;
      const Range &output = r.written ? r : *other, &second = r.written ? *other : r;
      if (!second.written && output.place == second.place)
        check_overlap(*output.tensor, *second.tensor, op);
      else
        check_apart(*output.tensor, *second.tensor, op);
    }
    open.push_back(&r);
  }
}

bool is_plain_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16; }

void check_plain_float(DType dtype, std::string_view what, std::string_view op) {
  if (!is_plain_float(dtype)) throw Error(ErrorCode::invalid_dtype, op, fmt::format("{} must be f32, f64, f16 or bf16, got {}", what, name(dtype)));
}

Runtime& common_runtime(std::span<const Tensor* const> tensors, std::string_view op) {
  Runtime* found = nullptr;
  for (const Tensor* tensor : tensors) {
    if (!tensor->defined()) throw Error(ErrorCode::invalid_argument, op, "a tensor must be defined, got an undefined one");
    Runtime& runtime = tensor->storage()->runtime();
    if (found && found != &runtime)
      throw Error(ErrorCode::device_mismatch, op,
                  fmt::format("tensors must be of one device and context, got device {}{} and device {}{}", found->device().index,
                              found->adopted() ? " (an adopted context)" : "", runtime.device().index, runtime.adopted() ? " (an adopted context)" : ""));
    found = &runtime;
  }
  return *found;
}

}}}  // namespace clutch::v0::detail
