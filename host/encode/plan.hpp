// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/error.hpp>
#include <clutch/kernel.hpp>

#include "common/rounding.h"
#include "encode/elementwise.hpp"
#include "encode/plugin_ops.hpp"
#include "program/program.hpp"
#include "runtime/last_launch.hpp"
#include "runtime/quirks.hpp"
#include "runtime/runtime.hpp"
#include "runtime/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

/// Lanes of the vectors that hold shapes of that many dimensions.
inline std::uint8_t rank_lanes(std::int64_t rank) { return rank <= 4 ? 4 : rank <= 8 ? 8 : 16; }

/// Plan of one launch of one of the library's kernels: plain data that select() returns and last_plan() prints.
struct KernelPlan {
  std::string_view stem;
  std::string_view entry;
  Layout layout = Layout::contiguous;  ///< selects the element-wise parameter list of the entry
  Defines defines = {};
  ElementwiseTuning tuning = {};
  std::string expression = {};    ///< printed traced function, for entries that take one
  std::string_view options = {};  ///< further build options
  /// Registers of four bytes that an item takes: most where the compiler takes a limit (trait register_limits), at least on devices that have more of them for
  /// fewer items (trait large_registers); 0: as the compiler likes.
  int registers = 0;
  /// Numbers that items keep, where devices have more registers for fewer items (trait large_registers): many are given those, some where the smallest
  /// sub-groups (trait least_sub_group) have 16 items and more; most besides run in the smallest sub-groups, since items of larger ones have fewer registers
  /// each.
  enum class Keeps : std::uint8_t { few, some, many, most } keeps = Keeps::few;
  std::string note = {};  ///< remarks such as emulation, or casts through scratch
  /// Entry, defines and note; names of defines without their prefix CLUTCH_.
  std::string to_string() const {
    std::string text;
    for (const auto& [name, value] : defines.entries()) {
      const bool has_prefix = name.starts_with("CLUTCH_");
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", std::string_view(name).substr(has_prefix ? 7 : 0), value);
    }
    return fmt::format("{} {}{}{}", entry, text, note.empty() ? "" : " # ", note);
  }
};

/// A KernelPlan with its built kernel, as kept in the runtime's plan cache.
struct BuiltPlan : CachedPlan {
  Interned text;  ///< printed plan: "addc_contiguous T=f32 ..."
  KernelHandle kernel;
  std::string_view entry;
  Layout layout = Layout::contiguous;
  ElementwiseTuning tuning;
};

inline BuiltPlan build_plan(Runtime& runtime, const KernelPlan& plan) {
  BuiltPlan built;
  built.text = Interned(plan.to_string());
  std::string options(plan.options);
  if (plan.registers > 0 && runtime.traits().register_limits) options += fmt::format("{}-cl-nv-maxrregcount={}", options.empty() ? "" : " ", plan.registers);
  // Without that option items have at most 128 registers, which do not all hold numbers.
  const int least = runtime.traits().least_sub_group;
  const bool keeps_many = plan.keeps >= KernelPlan::Keeps::many || (plan.keeps == KernelPlan::Keeps::some && least >= 16);
  if ((plan.registers >= 128 || keeps_many) && runtime.traits().large_registers)
    options += fmt::format("{}-cl-intel-256-GRF-per-thread", options.empty() ? "" : " ");
  Defines defines = plan.defines;
  // Where the smallest have 16 items, compilers take 32 for all but a few kernels, and keep arrays in memory then.
  if (least >= 16 || (plan.keeps == KernelPlan::Keeps::most && least > 0)) defines.set("CLUTCH_SUB_GROUP", least);
  Kernel& kernel = runtime.programs().find(plan.stem, plan.entry, defines, plan.expression, options);
  built.kernel = KernelHandle(&kernel, built.text);
  built.entry = plan.entry;
  built.layout = plan.layout;
  built.tuning = plan.tuning;
  // A driver may allow fewer items in a group of this kernel than in others; kernels are right for any number.
  constexpr std::uint64_t kLargestSubGroup = 128;
  if (built.tuning.fills_sub_groups) built.tuning.local = std::max(built.tuning.local, std::min(kernel.preferred_multiple(), kLargestSubGroup));
  built.tuning.local = std::min(built.tuning.local, kernel.max_work_group());
  log_line(LogLevel::debug, fmt::format("plan on device {}: {}", runtime.device().index, built.text.str()));
  return built;
}

/// Errors: not_supported, as a forced implementation needs groups of `items` items, and the driver allows fewer in one of its kernels.
[[noreturn]] inline void refuse_group_items(std::string_view op, std::string_view implementation, std::uint64_t items, std::uint64_t allowed) {
  throw Error(
      ErrorCode::not_supported, op,
      fmt::format("implementation {} refuses: needs groups of {} items, the device has at most {} in one of its kernels", implementation, items, allowed));
}

/// The same for kernels whose groups have a multiple of `items` items. A driver may allow fewer in a group of this kernel: then `other` is built instead, or
/// Error not_supported is thrown if the entry is forced.
inline BuiltPlan build_groups(Runtime& runtime, const KernelPlan& plan, const KernelPlan& other, std::uint64_t items, bool forced) {
  BuiltPlan built = build_plan(runtime, plan);
  const std::uint64_t allowed = built.tuning.local;
  built.tuning.local = allowed / items * items;
  if (built.tuning.local > 0) return built;
  if (!forced) return build_plan(runtime, other);
  refuse_group_items(plan.stem, plan.entry, items, allowed);
}

/// One row of an op's ordered list of implementations. `accepts` returns an empty text, or the reason why the implementation refuses: what must be and what
/// was given ("must", "got"), or what it needs and what the device has ("needs", "has"). `unforced`, if there is one, is asked in its place where no caller
/// forces the implementation by name.
template <class Problem>
struct Implementation {
  using Answer = std::string (*)(const DeviceTraits&, const Problem&);
  std::string_view name;
  Answer accepts, unforced = nullptr;
};

/// Errors: invalid_argument for a forced name that no list has, or that a plugin has too. choose() calls it; ops that may return before they select, as there
/// is nothing to compute, call it first.
template <class... Lists>
void check_implementation(std::string_view forced, std::string_view op, const Lists&... lists) {
  if (forced.empty()) return;
  bool known = false;
  std::string names;
  auto look = [&](const auto& list) {
    for (const auto& row : list) known = known || row.name == forced;
  };
  (look(lists), ...);
  const bool is_plugins = is_plugin_implementation(op, forced);
  if (known && is_plugins)
    throw Error(ErrorCode::invalid_argument, op,
                fmt::format("a plugin's implementation must have a name that none of the library's own has, got one named {}", forced));
  if (known || is_plugins) return;
  auto add = [&](const auto& list) {
    for (const auto& row : list) names += fmt::format("\n  {}", row.name);
  };
  (add(lists), ...);
  for (const auto& row : plugin_implementations())
    if (is_of_op(*row, op)) names += fmt::format("\n  {}", row->name);
  throw Error(ErrorCode::invalid_argument, op, fmt::format("the implementation must be one of the op's, got '{}'; there are:{}", forced, names));
}

/// Returns the first implementation that accepts the problem, or the forced one.
/// Errors: invalid_argument for an unknown forced name; not_supported, with the reasons, if the forced one refuses or all do.
template <class Problem>
const Implementation<Problem>& choose(std::span<const Implementation<Problem>> list, const DeviceTraits& traits, const Problem& problem,
                                      std::string_view forced, std::string_view op) {
  check_implementation(forced, op, list);
  std::string reasons;
  for (const auto& row : list) {
    if (!forced.empty() && row.name != forced) continue;
    std::string reason = (forced.empty() && row.unforced ? row.unforced : row.accepts)(traits, problem);
    if (reason.empty()) return row;
    if (!forced.empty()) throw Error(ErrorCode::not_supported, op, fmt::format("implementation {} refuses: {}", row.name, reason));
    reasons += fmt::format("\n  {}: {}", row.name, reason);
  }
  if (!forced.empty()) reasons = fmt::format("\n  {}: needs a call that plugins may take, this one has other options or operands", forced);
  throw Error(ErrorCode::not_supported, op, fmt::format("no implementation accepts:{}", reasons));
}

/// The plan of a problem, selected and built at first use. Ops have different `op`s, so their problems cannot be confused.
template <class Problem>
const BuiltPlan& plan_for(Runtime& runtime, std::string_view op, const Problem& problem, std::string_view forced) {
  return runtime.plans().find<BuiltPlan>(op, problem, forced, [&] { return build_plan(runtime, select(runtime.traits(), problem, forced)); });
}

/// Number of tiles that a plan's entry walks.
template <int kOperands>
std::uint64_t tile_count(const BuiltPlan& plan, const ElementwiseWalk<kOperands>& walk) {
  std::uint64_t tile = plan.tuning.tile;
  if (plan.layout != Layout::rows) return (walk.numel + tile - 1) / tile;
  if (const auto units = static_cast<std::uint64_t>(walk.shape.size[CLUTCH_SHAPE_ALL_UNITS]); units > 0 && plan.tuning.local > 1) {
    const std::uint64_t each = CLUTCH_UNITS_OF_TILE(tile);
    return (units + each - 1) / each;
  }
  auto inner = static_cast<std::uint64_t>(walk.shape.size[0]);
  return walk.numel / inner * ((inner + tile - 1) / tile);
}

/// Reason why a device refuses doubles; empty if it supports them.
inline std::string refuses_fp64(const DeviceTraits& traits, bool has_f64) { return has_f64 && !traits.fp64 ? "needs fp64, the device has none" : ""; }

/// Reason why a device refuses a kernel; empty if it accepts. `iterations` is an upper bound of the iterations of a work-item's loops, counted as for
/// kLoopLimit; the default exceeds what a device that ends loops early allows.
inline std::string refuses_long_loops(const DeviceTraits& traits, double iterations = 1e300) {
  if (!(traits.quirks & kQuirkLoopsEndEarly) || iterations <= static_cast<double>(kLoopLimit)) return "";
  return fmt::format("needs {} in a work-item's loops, the device has {} before it ends them (quirk loops_end_early)",
                     iterations < 1e300 ? fmt::format("{:.0f} iterations", iterations) : "any number of iterations", kLoopLimit);
}

/// Reason why a device refuses groups of so many items; empty if it accepts.
inline std::string refuses_group_items(const DeviceTraits& traits, std::uint64_t items) {
  return traits.max_work_group < items ? fmt::format("needs groups of {} items, the device has at most {} in one", items, traits.max_work_group) : "";
}

/// Reason why a device refuses a group so much local memory; empty if it accepts.
inline std::string refuses_local_bytes(const DeviceTraits& traits, std::uint64_t bytes) {
  return traits.local_bytes < bytes ? fmt::format("needs {} bytes of local memory, the device has {}", bytes, traits.local_bytes) : "";
}

/// Errors: not_supported with the reason of refuses_long_loops(). The launch's items share `tasks`, each of which takes `each` iterations.
inline void check_loops(const DeviceTraits& traits, std::string_view op, std::uint64_t tasks, const Geometry& geometry, double each) {
  const std::uint64_t turns = (tasks + geometry.global - 1) / geometry.global;
  if (std::string why = refuses_long_loops(traits, 1 + static_cast<double>(turns) * (1 + each)); !why.empty()) throw Error(ErrorCode::not_supported, op, why);
}

/// Reasons of several ops.
inline std::string needs_contiguous(Layout given) {
  return fmt::format("operands must be contiguous, got {}", given == Layout::rows ? "rows with gaps or repeats" : "inner strides past 1");
}
inline constexpr std::string_view kNeedsRows = "inner strides must be 0 or 1, got larger ones";
inline constexpr std::string_view kNeedsExactFma = "needs an exact fma, the device has an emulated one";
inline constexpr std::string_view kNeedsVectors = "needs wide vectors in each item, the device has none";
inline constexpr std::string_view kNeedsGroups = "needs groups of several items, the device has a thread for each group";

/// Answer of `fits`, on devices whose groups have several items; other devices refuse.
template <auto fits, class Problem>
std::string of_groups(const DeviceTraits& traits, const Problem& problem) {
  return row_tuning(traits).local == 1 ? std::string(kNeedsGroups) : fits(traits, problem);
}

/// True if math.clh emulates a rounding. Emulation is scalar.
inline bool emulates_rounding(const DeviceTraits& traits) { return !traits.fma_exact || !traits.divide_exact || !traits.sqrt_exact; }

/// Defines for kernels/common/elementwise.clh, dtype.clh and math.clh. math.clh emulates operations that the device does not round correctly.
inline void set_common(Defines& d, const DeviceTraits& traits, const ElementwiseTuning& tuning, int operands, bool wide_index) {
  d.set("WIDTH", tuning.width).set("CLUTCH_TILE", static_cast<std::int64_t>(tuning.tile)).set("CLUTCH_OPERANDS", operands);
  d.set_text("IDX", wide_index ? "long" : "int");
  auto rounding = [&](bool exact) { return exact ? CLUTCH_RN_NATIVE : traits.fp64 ? CLUTCH_RN_BY_F64 : CLUTCH_RN_BY_INTEGERS; };
  d.set("CLUTCH_DIV_RN", rounding(traits.divide_exact)).set("CLUTCH_SQRT_RN", rounding(traits.sqrt_exact)).set("CLUTCH_FMA_RN", rounding(traits.fma_exact));
}

}}}  // namespace clutch::v0::detail
