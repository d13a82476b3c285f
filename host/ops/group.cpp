// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/group.hpp>

#include "encode/args.hpp"
#include "encode/plugin_ops.hpp"
#include "group/args.h"
#include "ops/group_plan.hpp"
#include "ops/out_form.hpp"
#include "runtime/op_name.hpp"
#include "runtime/settings.hpp"

#include <array>
#include <bit>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

constexpr unsigned kBits = 11;                                                   ///< most bits of a digit: the output positions of a pass fit in a core's cache
constexpr unsigned kCountedBits = 16;                                            ///< of entries that are counted alone
constexpr std::int64_t kMostCounted = 1 << 22, kCountedOfEntry = 8;              ///< groups that cores count at once: in all, and for each entry
constexpr unsigned kTileBits = std::bit_width(unsigned{GROUP_TILE_DIGITS}) - 1;  ///< the same of tiles
constexpr const char* kOp = "group_by";

// validate ----------------------------------------------------------------------------------------------------------

Runtime& validate(const Tensor& index, std::int64_t groups) {
  const Tensor* tensors[] = {&index};
  Runtime& runtime = common_runtime(tensors, kOp);
  if (index.dtype() != DType::i32 && index.dtype() != DType::i64)
    throw Error(ErrorCode::invalid_dtype, kOp, fmt::format("index must be i32 or i64, got {}", name(index.dtype())));
  if (index.rank() != 1) throw Error(ErrorCode::invalid_shape, kOp, fmt::format("index must be of rank 1, got shape {}", to_string(index.sizes())));
  if (groups < 0 || groups >= UINT32_MAX) throw Error(ErrorCode::invalid_argument, kOp, fmt::format("groups must be in [0, 2^32 - 1), got {}", groups));
  return runtime;
}

// select ------------------------------------------------------------------------------------------------------------

constexpr std::string_view kTiles = "group_tiles", kItems = "group_items";
/// By stage.
constexpr std::array<std::string_view, 5> kEntries{"group_count", "group_scan", "group_base", "group_place", "group_offsets"},
    kTileEntries{"group_tile_count", "group_tile_scan", "", "group_tile_place", "group_offsets"};

/// Digits that an item of group_scan has.
std::uint64_t scanned_by(const DeviceTraits& traits) { return row_tuning(traits).local == 1 ? 64 : 1; }

std::string computes(const DeviceTraits&, const GroupProblem&) { return ""; }

std::string fits_tiles(const DeviceTraits& traits, const GroupProblem& p) {
  // Loops that hold barriers must not end for one item alone.
  if (std::string why = refuses_long_loops(traits); !why.empty()) return why;
  if (std::string why = refuses_group_items(traits, GROUP_ITEMS); !why.empty()) return why;
  const std::uint64_t id = p.wide_id ? 8 : 4;
  return refuses_local_bytes(traits, GROUP_TILE * (4 + id) + 2 * GROUP_ITEMS * 8 + GROUP_TILE_DIGITS * (4 + id));
}

constexpr std::array<Implementation<GroupProblem>, 2> kImplementations{{{kTiles, fits_tiles, of_groups<fits_tiles>}, {kItems, computes}}};

}  // namespace

KernelPlan select(const DeviceTraits& traits, const GroupProblem& p, std::string_view forced) {
  const bool tiles = choose<GroupProblem>(kImplementations, traits, p, forced, kOp).name == kTiles;
  KernelPlan plan{.stem = "group", .entry = (tiles ? kTileEntries : kEntries)[static_cast<std::size_t>(p.stage)], .tuning = row_tuning(traits)};
  if (p.stage == GroupStage::base) plan.tuning.set_items(1);
  if (tiles && p.stage != GroupStage::offsets) plan.tuning.set_items(GROUP_ITEMS);
  plan.defines.set("CLUTCH_SCANNED", static_cast<std::int64_t>(scanned_by(traits)));
  plan.defines.set_text("ID", p.wide_id ? "long" : "int");
  return plan;
}

namespace {

// encode ------------------------------------------------------------------------------------------------------------

/// How n entries are divided into parts.
struct Parts {
  std::uint64_t chunk = 1, count = 1;
  /// `each`: entries of a part.
  Parts(std::int64_t n, std::uint64_t each) : chunk(each), count((static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1)) + each - 1) / each) {}
};
/// Parts for an item each.
Parts parts_of_items(std::int64_t n, bool one_item_a_group, std::uint64_t most = 16384) {
  // More parts if many items run at once. They get little each, as one driver ends loops early (quirk loops_end_early).
  auto entries = static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1));
  return {n, one_item_a_group ? std::max<std::uint64_t>((entries + 15) / 16, 256) : std::clamp<std::uint64_t>((entries + 511) / 512, 256, most)};
}

/// Parts for an item each whose counts of all groups are at most twice the entries, or those of one part.
Parts few_parts(std::int64_t n, std::int64_t groups, int units) {
  const std::int64_t most = std::clamp<std::int64_t>(2 * n / std::max<std::int64_t>(groups, 1), 1, std::min(units, 16));
  return {n, static_cast<std::uint64_t>((std::max<std::int64_t>(n, 1) + most - 1) / most)};
}

/// The plans of a call.
class Plans {
 public:
  Plans(Runtime& runtime, bool wide, std::string_view forced) : runtime_(runtime), wide_(wide), way_(forced) {
    tiles = of(GroupStage::count).entry == kTileEntries[0];
    if (!tiles) return;
    // A driver may allow fewer items in a group of one of the kernels than in others.
    std::uint64_t allowed = GROUP_ITEMS;
    for (GroupStage stage : {GroupStage::count, GroupStage::scan, GroupStage::place}) allowed = std::min<std::uint64_t>(allowed, of(stage).tuning.local);
    if (allowed == GROUP_ITEMS) return;
    if (!forced.empty()) refuse_group_items(kOp, kTiles, GROUP_ITEMS, allowed);
    way_ = kItems, tiles = false;
  }
  const BuiltPlan& of(GroupStage stage) const { return plan_for(runtime_, kOp, GroupProblem{stage, wide_}, way_); }

  bool tiles = false;

 private:
  Runtime& runtime_;
  bool wide_;
  std::string_view way_;
};

/// `ordered`: false if only the offsets are asked for.
Groups run(Runtime& runtime, const Tensor& given, std::int64_t groups, const GroupOptions& options, bool ordered, const Stream& stream) {
  const std::int64_t n = given.numel();
  Tensor index = given.contiguous(stream);
  const bool wide_result = n > INT32_MAX, wide = wide_result || the_settings().index64.on();
  TensorOptions ids{.dtype = wide ? DType::i64 : DType::i32, .device = stream.device()};
  if (has_plugin_implementations(kOp) && n > 0) {
    const TensorOptions stored{.dtype = wide_result ? DType::i64 : DType::i32, .device = stream.device()};
    const Groups made{empty({groups + 1}, stored, stream), empty({n}, stored, stream)};
    if (by_plugin(kOp, options.implementation, {&made, &given, &groups, &options, &stream}, stream)) return made;
  }
  const Plans plans(runtime, wide, options.implementation);
  Encoder encoder(stream, kOp);
  const bool one_item_a_group = row_tuning(runtime.traits()).local == 1, tiles = plans.tiles;
  Parts parts = tiles ? Parts(n, GROUP_TILE) : parts_of_items(n, one_item_a_group);
  // Entries that are counted alone go to no places, which would be too many for a cache. Counts of all parts are fewer than entries then.
  const bool counts_alone = !ordered && parts.count * static_cast<std::uint64_t>(groups) <= static_cast<std::uint64_t>(n);
  unsigned most_bits = tiles ? kTileBits : counts_alone ? kCountedBits : kBits;
  // Many groups are counted at once, too, by cores with a part each: one pass takes less than several that place entries.
  if (!ordered && !tiles && one_item_a_group && !(runtime.traits().quirks & kQuirkLoopsEndEarly) && groups <= std::min(kMostCounted, kCountedOfEntry * n)) {
    if (!counts_alone) parts = few_parts(n, groups, runtime.traits().compute_units);
    most_bits = std::bit_width(static_cast<std::uint64_t>(kMostCounted));
  }
  unsigned passes = 1;
  while (passes * most_bits < 32 && static_cast<std::uint64_t>(groups) >> (passes * most_bits) != 0) ++passes;
  // Digits of similar size, so that a pass has fewer output positions.
  const unsigned bits_each = (static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(groups))) + passes - 1) / passes;
  const std::uint32_t digits = 1u << bits_each;
  const std::uint64_t counted = tiles ? group_count_row(parts.count) : parts.count;
  Tensor counts = encoder.scratch({static_cast<std::int64_t>(counted), std::int64_t{digits}}, ids.dtype);
  // The entries below a digit of one pass are the groups' offsets.
  const bool totals_are_offsets = passes == 1 && !tiles && n > 0;
  Tensor totals = totals_are_offsets ? empty({std::int64_t{digits}}, ids, stream) : encoder.scratch({std::int64_t{digits}}, ids.dtype);
  const bool places_entries = ordered || !totals_are_offsets;
  Groups result{totals_are_offsets ? totals.slice(0, 0, groups + 1) : empty({groups + 1}, ids, stream), places_entries ? empty({n}, ids, stream) : Tensor()};
  Tensor keys[2], order[2];
  if (places_entries) {
    for (Tensor& k : keys) k = encoder.scratch({std::max<std::int64_t>(n, 1)}, DType::i32);
    order[passes % 2] = encoder.scratch({std::max<std::int64_t>(n, 1)}, ids.dtype), order[(passes + 1) % 2] = result.order;
  }
  GroupArgs args{.n = static_cast<std::uint64_t>(n),
                 .chunk = parts.chunk,
                 .parts = parts.count,
                 .groups = static_cast<std::uint64_t>(groups),
                 .keys = index.dtype() == DType::i32 ? KEYS_I32 : KEYS_I64,
                 .digits = digits};
  // The struct comes after the tensors.
  auto send = [&](GroupStage stage, std::uint64_t items) {
    const BuiltPlan& plan = plans.of(stage);
    bind_args(encoder, args);
    encoder.dispatch(plan.kernel, item_geometry(items, plan.tuning.local));
  };
  const std::uint64_t scanned = scanned_by(runtime.traits());
  // Items that share a part, or a digit.
  const std::uint64_t team = tiles ? GROUP_ITEMS : 1;
  Tensor source = index;
  // Pass k writes buffer k % 2, numbered so that the last pass writes the result.
  for (unsigned pass = 0; n > 0 && pass < passes; ++pass) {
    args.shift = pass * bits_each;
    const Tensor &from = order[(pass + 1) % 2], &to = order[pass % 2];
    encoder.output(counts).input(source);
    send(GroupStage::count, parts.count * team);
    encoder.inout(counts).output(totals);
    send(GroupStage::scan, tiles ? digits * team : (digits + scanned - 1) / scanned);
    if (!tiles) {
      encoder.inout(totals);
      send(GroupStage::base, 1);
    }
    if (!places_entries) break;
    encoder.output(keys[pass % 2]).output(to).inout(counts).input(source).input(from).input(totals);
    send(GroupStage::place, parts.count * team);
    source = keys[pass % 2], args.keys = KEYS_PACKED;
  }
  // Each offset is found by a binary search of up to 64 steps. Neighbouring items store neighbours where groups have several.
  if (!totals_are_offsets) {
    const Parts places =
        tiles ? Parts(groups + 1, 1) : parts_of_items(groups + 1, one_item_a_group, runtime.traits().quirks & kQuirkLoopsEndEarly ? 512 : 16384);
    args.chunk = places.chunk, args.parts = places.count;
    encoder.output(result.offsets).input(keys[(passes + 1) % 2]);
    send(GroupStage::offsets, places.count);
  }
  // CLUTCH_INDEX64 sets the index type of kernels, not the dtype of the results.
  if (wide && !wide_result) return {result.offsets.to(DType::i32, {}, stream), places_entries ? result.order.to(DType::i32, {}, stream) : Tensor()};
  return result;
}

}  // namespace
}  // namespace detail

Groups group_by(const Tensor& index, std::int64_t groups, const GroupOptions& options, const Stream& given) {
  detail::OpName named("group_by");
  detail::Runtime& runtime = detail::validate(index, groups);
  return detail::run(runtime, index, groups, options, true, detail::resolve_stream(given, runtime, detail::kOp));
}
void group_by_out(const Groups& out, const Tensor& index, std::int64_t groups, const GroupOptions& options, const Stream& stream) {
  detail::OpName named("group_by_out");
  detail::Runtime& runtime = detail::validate(index, groups);
  const Groups made = detail::run(runtime, index, groups, options, out.order.defined(), detail::resolve_stream(stream, runtime, detail::kOp));
  const detail::Stored all[] = {{out.offsets, made.offsets, "out.offsets"}, {out.order, made.order, "out.order"}};
  detail::store(all, detail::kOp, stream);
}

}}  // namespace clutch::v0
