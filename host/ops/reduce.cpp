// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/reduce.hpp>

#include "common/reciprocal.h"
#include "common/reductions.h"
#include "encode/meaning.hpp"
#include "encode/plugin_functions.hpp"
#include "ops/copy_plan.hpp"
#include "ops/reduce_plan.hpp"
#include "ops/rowwise_plan.hpp"
#include "ops/traced.hpp"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"

#include <array>
#include <optional>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

void refuse(ErrorCode code, std::string_view why) { throw Error(code, "reduce", why); }

/// A checked reduction.
struct Reduction {
  Runtime* runtime = nullptr;
  Reduce op = Reduce::sum;
  DType accumulator = DType::f32;
  Dims sizes;                         ///< of the broadcast inputs
  std::array<bool, kMaxRank> gone{};  ///< by dimension: true if reduced
  Dims result;                        ///< sizes of the result
  std::int64_t n = 1, m = 1;          ///< number of results, and of elements of each
  DType dtype = DType::f32;           ///< of the result
  std::vector<Dims> positions;        ///< strides of the function's positions over `sizes`
};

// validate ----------------------------------------------------------------------------------------------------------

DType accumulator_of(Reduce op, DType traced) {
  switch (op) {
    case Reduce::sum:
    case Reduce::prod: return is_floating(traced) ? traced : DType::i64;
    case Reduce::mean: return is_floating(traced) ? traced : DType::f32;
    case Reduce::any:
    case Reduce::all: return DType::boolean;
    default: return traced;
  }
}

DType result_dtype(const Reduction& r, const ExprFunction& f, std::span<const Tensor> inputs, const ReduceOptions& options) {
  if (!options.dtype.empty()) return options.dtype[0];
  DType natural = is_floating(r.accumulator) || r.op == Reduce::amin || r.op == Reduce::amax ? map_dtype(f, 0, inputs) : r.accumulator;
  if (r.op == Reduce::mean && !is_floating(natural)) natural = r.accumulator;
  if (options.after.empty()) return natural;
  DType after = options.after.output_dtype(0);
  return is_floating(after) && is_floating(natural) ? natural : after;
}

Reduction validate(const Tensor* out, Reduce op, const ExprFunction& f, std::span<const Tensor> inputs, const ReduceOptions& options) {
  if (f.empty() || f.output_count() != 1) refuse(ErrorCode::invalid_argument, "the function must have one output, got none or more");
  if (inputs.empty() || static_cast<int>(inputs.size()) != f.input_count() || inputs.size() > kMaxReduceInputs)
    refuse(ErrorCode::invalid_argument,
           fmt::format("each of the function's {} inputs, at most {}, must have a tensor, got {}", f.input_count(), kMaxReduceInputs, inputs.size()));
  one_dtype(options.dtype, "reduce");
  if (!options.after.empty() && (options.after.input_count() != 1 || options.after.output_count() != 1 || options.after.captured_count() > 0))
    refuse(ErrorCode::invalid_argument, "`after` must have one input, one output and no captured tensors, got another function");
  if (!options.after.empty() && has_positions(options.after)) refuse(ErrorCode::invalid_argument, "`after` must have no positions, got one");
  std::vector<const Tensor*> all;
  std::vector<Dims> shapes;
  for (const Tensor& t : inputs) all.push_back(&t), shapes.push_back(t.sizes());
  for (const Tensor& t : f.body()->tensors) all.push_back(&t);
  if (out) all.push_back(out);
  Reduction r{.runtime = &common_runtime(all, "reduce"), .op = op, .sizes = broadcast_shapes(shapes, "reduce")};
  check_traced(f, inputs, "reduce");
  r.positions = position_strides(f, r.sizes, "reduce");
  if (r.positions.size() > kMaxReducePositions)
    refuse(ErrorCode::invalid_argument, fmt::format("there must be at most {} positions, got {}", kMaxReducePositions, r.positions.size()));
  r.accumulator = accumulator_of(op, f.output_dtype(0));
  if (r.accumulator == DType::boolean && (op == Reduce::amin || op == Reduce::amax)) r.op = op == Reduce::amax ? Reduce::any : Reduce::all;
  r.gone = marked_dims(options.dims, r.sizes.rank(), "reduce");
  if (options.dims.empty()) r.gone.fill(true);
  for (int d = 0; d < r.sizes.rank(); ++d) {
    bool gone = r.gone[static_cast<std::size_t>(d)];
    (gone ? r.m : r.n) *= r.sizes[d];
    if (!gone) r.result.push_back(r.sizes[d]);
    if (gone && options.keepdim) r.result.push_back(1);
  }
  if (r.m == 0 && r.n > 0 && (op == Reduce::amin || op == Reduce::amax)) refuse(ErrorCode::invalid_argument, "min and max must have an element, got none");
  r.dtype = out ? out->dtype() : result_dtype(r, f, inputs, options);
  compute_dtype(r.dtype, "reduce");
  if (!out) return r;
  if (!(out->sizes() == r.result))
    refuse(ErrorCode::invalid_shape, fmt::format("the output must have the shape {}, got {}", to_string(r.result), to_string(out->sizes())));
  check_no_self_overlap(*out, "reduce");
  for (const Tensor& t : inputs) check_apart(*out, t, "reduce");
  for (const Tensor& t : f.body()->tensors) check_apart(*out, t, "reduce");
  return r;
}

// select ------------------------------------------------------------------------------------------------------------

/// True if neighbouring results have neighbouring elements, of one stride or of several. Of Walks or a ReduceProblem.
template <class Elements>
bool are_in_columns(const Elements& x) {
  return x.layout == ReduceLayout::columns || x.vectors == ReduceVectors::columns;
}

std::string computes(const DeviceTraits& traits, const ReduceProblem& p) { return refuses_fp64(traits, p.types.has_f64); }

std::string fits_rows(const DeviceTraits& traits, const ReduceProblem& p) {
  return p.layout != ReduceLayout::rows
             ? fmt::format("reduced elements must be in rows, got {}", p.layout == ReduceLayout::columns ? "columns" : "several strides")
             : computes(traits, p);
}

std::string fits_one_stride(const DeviceTraits& traits, const ReduceProblem& p) {
  return p.layout != ReduceLayout::columns
             ? fmt::format("reduced elements must be in columns, got {}", p.layout == ReduceLayout::rows ? "rows" : "several strides")
             : computes(traits, p);
}
std::string fits_columns(const DeviceTraits& traits, const ReduceProblem& p) {
  return p.vectors == ReduceVectors::columns ? computes(traits, p) : fits_one_stride(traits, p);
}

constexpr std::string_view kGroups = "reduce_groups";

std::string fits_groups(const DeviceTraits& traits, const ReduceProblem& p) {
  if (p.layout == ReduceLayout::columns) return fits_rows(traits, p);
  std::string why = computes(traits, p);
  return why.empty() ? refuses_teams(traits, p.accumulator) : why;
}

/// Neighbouring items have neighbouring elements.
std::string fits_filled_teams(const DeviceTraits& traits, const ReduceProblem& p) {
  if (p.short_rows) return fmt::format("rows must have at least {} elements, got fewer", REDUCE_SHORT_TEAM);
  if (p.vectors == ReduceVectors::columns) return "reduced elements must be in rows or runs, got columns";
  return fits_groups(traits, p);
}

constexpr std::string_view kColumnGroups = "reduce_column_groups";

std::string fits_column_groups(const DeviceTraits& traits, const ReduceProblem& p) {
  std::string why = computes(traits, p);
  return why.empty() ? refuses_teams(traits, p.accumulator) : why;
}

/// The shortest run that is read by vectors: one of the widest ones.
constexpr std::int64_t kLeastRun = 16;
constexpr std::string_view kBuffered = "reduce_buffered";

std::string fits_buffer(const DeviceTraits& traits, const ReduceProblem& p) {
  if (p.vectors == ReduceVectors::none || p.vectors == ReduceVectors::columns)
    return fmt::format("reduced elements must be in runs of at least {}, or in as many such runs side by side, got others", kLeastRun);
  return computes(traits, p);
}

/// Several strides by vectors, for items that each have a core.
template <std::string (*kFits)(const DeviceTraits&, const ReduceProblem&)>
std::string of_cores(const DeviceTraits& traits, const ReduceProblem& p) {
  std::string why = p.layout == ReduceLayout::strided ? refuses_caches(traits) : "";
  return why.empty() ? kFits(traits, p) : why;
}

constexpr std::array<Implementation<ReduceProblem>, 6> kImplementations{{
    {kGroups, fits_groups, of_groups<fits_filled_teams>},
    {kColumnGroups, fits_column_groups, of_groups<fits_column_groups>},
    {"reduce_rows", fits_rows},
    {"reduce_columns", fits_columns, of_cores<fits_columns>},
    {kBuffered, fits_buffer, of_cores<fits_buffer>},
    {"reduce_strided", computes},
}};

}  // namespace

int op_number(Reduce op) {
  switch (op) {
    case Reduce::prod: return CLUTCH_REDUCE_PROD;
    case Reduce::amin: return CLUTCH_REDUCE_MIN;
    case Reduce::amax: return CLUTCH_REDUCE_MAX;
    case Reduce::any: return CLUTCH_REDUCE_ANY;
    case Reduce::all: return CLUTCH_REDUCE_ALL;
    default: return CLUTCH_REDUCE_SUM;
  }
}

ElementwiseTuning team_tuning(const DeviceTraits& traits) {
  return {.local = std::min<std::uint64_t>(traits.max_work_group, REDUCE_GROUP_ITEMS) / REDUCE_TEAM * REDUCE_TEAM};
}

std::uint64_t team_items(const BuiltPlan& plan, std::uint64_t m) {
  return m > REDUCE_BLOCK ? std::min(plan.tuning.local, reduce_blocks(m) * REDUCE_TEAM) : plan.tuning.local;
}

std::string refuses_teams(const DeviceTraits& traits, DType accumulator) {
  // Loops that hold barriers must not end for one item alone.
  if (std::string why = refuses_long_loops(traits); !why.empty()) return why;
  if (std::string why = refuses_group_items(traits, REDUCE_TEAM); !why.empty()) return why;
  static_assert(2 * REDUCE_GROUP_ITEMS <= REDUCE_GROUP_ITEMS + REDUCE_BLOCK, "items that share results of any strides need no more local memory");
  return refuses_local_bytes(traits, (REDUCE_GROUP_ITEMS + REDUCE_BLOCK) * std::uint64_t{is_wide(accumulator) ? 8u : 4u});
}

namespace {
bool takes_teams(std::string_view entry) { return entry == kGroups || entry == kColumnGroups; }
int abreast(const ReduceProblem& p) { return p.wide_panels ? kReduceWide : kReduceAbreast; }
}  // namespace

KernelPlan select(const DeviceTraits& traits, const ReduceProblem& p, std::string_view forced) {
  const auto& chosen = choose<ReduceProblem>(kImplementations, traits, p, forced, "reduce");
  KernelPlan plan{.stem = "reduce", .entry = chosen.name, .tuning = takes_teams(chosen.name) ? team_tuning(traits) : row_tuning(traits)};
  set_lanes(plan, traits, p.types.has_wide, 1 + p.inputs + p.positions, p.wide_index, p.rank_lanes);
  plan.defines.set("CLUTCH_FINAL", p.final_stage).set("CLUTCH_OP", op_number(p.op)).set("CLUTCH_ABREAST", abreast(p)).set("CLUTCH_SPLATS", p.splats);
  if (plan.entry == "reduce_rows") plan.defines.set("CLUTCH_SHORT", p.short_rows && plan.tuning.local == 1);
  if (plan.entry == "reduce_columns") plan.defines.set("CLUTCH_SEVERAL", p.vectors == ReduceVectors::columns);
  if (takes_teams(plan.entry)) plan.defines.set("CLUTCH_SEVERAL", p.layout == ReduceLayout::strided);
  if (plan.entry == kBuffered) plan.defines.set("CLUTCH_ACROSS", p.vectors != ReduceVectors::runs).set("CLUTCH_STRIPS", p.vectors == ReduceVectors::strips);
  // An accumulator of booleans is an int; A_NAME says what it is made of.
  plan.defines.set_type("A", p.accumulator == DType::boolean ? DType::i32 : p.accumulator).set_text("A_NAME", name(p.accumulator));
  return plan;
}

namespace {

// encode ------------------------------------------------------------------------------------------------------------

/// Sizes and strides for the kernels, dimension 0 innermost: strides of the output (kept dimensions alone), then of inputs and positions.
struct Walks {
  std::size_t operands = 0;  ///< inputs and positions
  std::int64_t kept_rank = 1, reduced_rank = 1;
  std::array<std::int64_t, 16> kept_size{}, reduced_size{};
  std::array<std::int64_t, 16 * kMaxReduceOperands> kept{}, reduced{};
  ReduceLayout layout = ReduceLayout::rows;
  ReduceVectors vectors = ReduceVectors::none;
  int across = 0;          ///< of panels and strips: the dimension of neighbours
  std::int64_t inner = 1;  ///< of panels and strips: elements of each neighbour
  bool wide_index = false;
};

/// Joins adjacent dimensions without reordering, because the order of the reduced elements is part of the contract.
void join_in_order(const Dims& sizes, std::span<const Dims> strides, Walks& w) {
  std::int64_t n = 0;
  const bool none = numel(sizes) == 0;  // kernels divide by sizes, of which none may be 0 then
  for (int d = sizes.rank() - 1; d >= 0; --d) {
    if (sizes[d] == 1 || none) continue;
    bool joins = n > 0;
    for (std::size_t k = 0; k < strides.size() && joins; ++k)
      joins = strides[k][d] == w.reduced[16 * (k + 1) + static_cast<std::size_t>(n) - 1] * w.reduced_size[static_cast<std::size_t>(n) - 1];
    if (joins) {
      w.reduced_size[static_cast<std::size_t>(n) - 1] *= sizes[d];
      continue;
    }
    w.reduced_size[static_cast<std::size_t>(n)] = sizes[d];
    for (std::size_t k = 0; k < strides.size(); ++k) w.reduced[16 * (k + 1) + static_cast<std::size_t>(n)] = strides[k][d];
    ++n;
  }
  if (n == 0) {
    w.reduced_size[0] = 1;
    for (std::size_t k = 0; k < strides.size(); ++k) w.reduced[16 * (k + 1)] = 1;
    n = 1;
  }
  w.reduced_rank = n;
}

/// Columns side by side from which their entries are chosen. A core reads them by one vector, a group's items by one each.
std::int64_t least_columns(const DeviceTraits& traits) { return row_tuning(traits).local == 1 ? 4 : 8; }

/// True if each input has stride 0 or 1 along a dimension, of which these are its strides and the other operands'.
bool is_near(std::span<const std::int64_t> strides, std::int64_t dimension, std::size_t inputs) {
  for (std::size_t k = 1; k <= inputs; ++k)
    if (const std::int64_t stride = strides[16 * k + static_cast<std::size_t>(dimension)]; stride != 0 && stride != 1) return false;
  return true;
}

void classify(Walks& w, std::int64_t least_columns) {
  bool one_stride = w.reduced_rank == 1, rows = one_stride, columns = one_stride && w.kept_size[0] >= least_columns;
  for (std::size_t k = 1; k <= w.operands; ++k) {
    rows = rows && (w.reduced[16 * k] == 0 || w.reduced[16 * k] == 1);
    columns = columns && (w.kept[16 * k] == 0 || w.kept[16 * k] == 1);
  }
  // Rows of one element are also columns of one element. As columns they are read by vectors.
  if (columns && w.reduced_size[0] == 1 && w.kept_size[0] >= 8) rows = false;
  w.layout = rows ? ReduceLayout::rows : columns ? ReduceLayout::columns : ReduceLayout::strided;
}

/// Sets along which dimension inputs of several strides are read by vectors.
void find_vectors(Walks& w, std::size_t inputs) {
  if (w.layout != ReduceLayout::strided) return;
  const bool columns = w.kept_size[0] >= kLeastRun && is_near(w.kept, 0, inputs);
  if (columns) w.vectors = ReduceVectors::columns;
  if (columns || w.reduced_size[0] < kLeastRun) return;
  for (std::int64_t d = 0, inner = 1; d < w.reduced_rank; inner *= w.reduced_size[static_cast<std::size_t>(d++)]) {
    const bool strips = d > 0 && inner > REDUCE_MOST_ACROSS;
    if (w.reduced_size[static_cast<std::size_t>(d)] < (strips ? REDUCE_STRIPS : 1) * kLeastRun || !is_near(w.reduced, d, inputs)) continue;
    w.vectors = d == 0 ? ReduceVectors::runs : strips ? ReduceVectors::strips : ReduceVectors::panels;
    w.across = static_cast<int>(d), w.inner = inner;
    return;
  }
}

/// The same with another kept dimension innermost, where the inputs are columns then: the output's innermost one may be none of theirs.
Walks with_columns(const Walks& w, std::size_t inputs, const DeviceTraits& traits) {
  if (w.layout != ReduceLayout::strided || w.vectors != ReduceVectors::none) return w;
  for (std::size_t d = 1; d < static_cast<std::size_t>(w.kept_rank); ++d) {
    if (w.kept_size[d] < kLeastRun / 2) continue;
    Walks other = w;
    std::swap(other.kept_size[0], other.kept_size[d]);
    for (std::size_t k = 0; k <= w.operands; ++k) std::swap(other.kept[16 * k], other.kept[16 * k + d]);
    classify(other, least_columns(traits));
    find_vectors(other, inputs);
    if (are_in_columns(other)) return other;
  }
  return w;
}

Walks walks_of(const Reduction& r, const Tensor& out, std::span<const Tensor> inputs, bool keeps) {
  Walks w;
  Dims kept_sizes, reduced_sizes, out_strides;
  int place = 0;
  for (int d = 0; d < r.sizes.rank(); ++d) {
    bool gone = r.gone[static_cast<std::size_t>(d)];
    (gone ? reduced_sizes : kept_sizes).push_back(r.sizes[d]);
    if (!gone) out_strides.push_back(out.strides()[place]);
    if (!gone || keeps) ++place;
  }
  std::vector<Dims> kept{out_strides}, reduced;
  std::vector<Dims> all;
  for (const Tensor& t : inputs) all.push_back(broadcast_strides(t, r.sizes));
  all.insert(all.end(), r.positions.begin(), r.positions.end());
  for (const Dims& strides : all) {
    Dims in_kept, in_reduced;
    for (int d = 0; d < r.sizes.rank(); ++d) (r.gone[static_cast<std::size_t>(d)] ? in_reduced : in_kept).push_back(strides[d]);
    kept.push_back(in_kept), reduced.push_back(in_reduced);
  }
  Layout unused;
  make_walk(kept_sizes, kept, &w.kept_rank, w.kept_size.data(), w.kept.data(), &unused, &w.wide_index);
  join_in_order(reduced_sizes, reduced, w);
  w.operands = all.size();
  for (std::size_t k = 1; k <= w.operands; ++k) {
    std::int64_t last = last_offset(w.kept_rank, w.kept_size.data(), &w.kept[16 * k]) + last_offset(w.reduced_rank, w.reduced_size.data(), &w.reduced[16 * k]);
    w.wide_index = w.wide_index || last >= INT32_MAX;
  }
  w.wide_index = w.wide_index || r.m >= INT32_MAX;
  classify(w, least_columns(r.runtime->traits()));
  find_vectors(w, inputs.size());
  return with_columns(w, inputs.size(), r.runtime->traits());
}

/// Several strides as columns, each of which has whole blocks of a result, in their order: the places along a reduced dimension of stride 0 or 1, and along
/// those outside it, are columns of the dimensions within. Nothing if there are no such dimensions.
std::optional<Walks> columns_of_blocks(const Walks& w, std::size_t inputs, const DeviceTraits& traits) {
  if (w.layout != ReduceLayout::strided) return std::nullopt;
  std::size_t d = 0;
  std::int64_t inner = 1;
  const auto rank = static_cast<std::size_t>(w.reduced_rank);
  while (d < rank && !(d > 0 && inner % REDUCE_BLOCK == 0 && is_near(w.reduced, static_cast<std::int64_t>(d), inputs))) inner *= w.reduced_size[d++];
  const std::size_t added = rank - d;
  if (d == rank || static_cast<std::size_t>(w.kept_rank) + added > 16) return std::nullopt;
  Walks made = w;
  made.vectors = ReduceVectors::none;
  made.kept_rank += static_cast<std::int64_t>(added), made.reduced_rank = static_cast<std::int64_t>(d);
  for (std::size_t k = 0; k <= w.operands; ++k)
    for (std::size_t i = 0; i < static_cast<std::size_t>(made.kept_rank); ++i)
      made.kept[16 * k + i] = i < added ? w.reduced[16 * k + d + i] : w.kept[16 * k + i - added];
  for (std::size_t i = 0; i < static_cast<std::size_t>(made.kept_rank); ++i) made.kept_size[i] = i < added ? w.reduced_size[d + i] : w.kept_size[i - added];
  classify(made, least_columns(traits));
  find_vectors(made, inputs);
  if (!are_in_columns(made)) return std::nullopt;
  return made;
}

/// One launch: reduces the inputs into `out`, which is the result or holds the accumulators of blocks.
struct Stage {
  const Tensor* out;
  std::vector<Tensor> inputs;
  const ExprFunction* function;
  const ExprFunction* after;  ///< null unless this is the last stage
  Walks walks;
  std::int64_t n, m;
  bool is_first = true;
};

std::shared_ptr<const Meaning> meaning_of(const Stage& s, const Reduction& r);

/// True if every compute unit has work when an item takes a page of columns.
bool takes_wide_panels(const DeviceTraits& traits, const Stage& s) {
  constexpr std::int64_t kPage = 16 * kReduceWide;
  if (!are_in_columns(s.walks) || row_tuning(traits).local > 1 || s.walks.kept_size[0] < kPage / 2) return false;
  if (s.m == 0) return false;
  auto count = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
  return reduce_panel_tasks(count(s.n), count(s.walks.kept_size[0]), kPage, reduce_blocks(count(s.m))) >= 4 * count(traits.compute_units);
}

/// True if a core should take vectors of neighbouring rows.
bool has_short_rows(const Stage& s) {
  constexpr std::int64_t kMostElements = 16;
  const std::span<const std::int64_t> strides(s.walks.kept.data() + 16, 16 * s.walks.operands);
  return s.m > 0 && s.m <= kMostElements && s.walks.kept_size[0] >= kLeastRun &&
         std::all_of(strides.begin(), strides.end(), [](std::int64_t x) { return x >= 0; });
}

/// True if a group should take each row of several blocks in one launch, without accumulators of blocks in memory.
bool shares_rows(const Stage& s, const Reduction& r, std::string_view implementation) {
  const DeviceTraits& traits = r.runtime->traits();
  if (are_in_columns(s.walks) || s.m > kLongestOfGroup || !(implementation.empty() ? row_tuning(traits).local > 1 : implementation == kGroups) ||
      !refuses_teams(traits, r.accumulator).empty())
    return false;
  // Two turns of a group take less time than another launch; four groups on a compute unit have enough loads on their way.
  constexpr std::uint64_t kTurns = 2, kGroupsOfUnit = 4;
  return reduce_blocks(static_cast<std::uint64_t>(s.m)) <= kTurns * (REDUCE_GROUP_ITEMS / REDUCE_TEAM) ||
         static_cast<std::uint64_t>(s.n) >= kGroupsOfUnit * static_cast<std::uint64_t>(traits.compute_units);
}

/// Blocks that an item of reduce_buffered takes at least: those of several panels, or, where compute units would have no work then, of one.
std::uint64_t panel_blocks(const Walks& w, std::uint64_t all, const DeviceTraits& traits) {
  if (w.vectors != ReduceVectors::panels && w.vectors != ReduceVectors::strips) return 1;
  const std::int64_t panel = (w.vectors == ReduceVectors::strips ? REDUCE_STRIPS : 1) * kLeastRun * w.inner;
  auto blocks = [&](std::int64_t panels) { return reduce_blocks(static_cast<std::uint64_t>(panels * panel)); };
  constexpr std::int64_t kPanels = 4;
  return all >= 4 * static_cast<std::uint64_t>(traits.compute_units) * blocks(kPanels) ? blocks(kPanels) : blocks(1);
}

/// False, without a launch, if this is the last stage of rows of several blocks and the plan takes an item or a team for each.
bool launch(const Stage& s, const Reduction& r, std::string_view implementation, const Stream& stream) {
  const ExprBody& body = *s.function->body();
  ReduceProblem p{.function = body.id,
                  .op = r.op,
                  .layout = s.walks.layout,
                  .accumulator = r.accumulator,
                  .output = s.out->dtype(),
                  .final_stage = s.after != nullptr,
                  .wide_index = s.walks.wide_index};
  p.vectors = s.walks.vectors;
  if (s.after) p.after = s.after->body()->id;
  p.inputs = static_cast<std::uint8_t>(s.inputs.size());
  const std::size_t operands = s.walks.operands;
  p.positions = static_cast<std::uint8_t>(operands - s.inputs.size());
  for (std::size_t k = 0; k < s.inputs.size(); ++k) p.dtypes[k] = s.inputs[k].dtype();
  p.wide_panels = takes_wide_panels(r.runtime->traits(), s);
  if (row_tuning(r.runtime->traits()).local > 1)
    p.short_rows = p.layout != ReduceLayout::columns && s.m < REDUCE_SHORT_TEAM;
  else
    p.short_rows = p.layout == ReduceLayout::rows && has_short_rows(s);
  for (std::size_t k = 1; k <= operands && p.layout == ReduceLayout::rows; ++k)
    if (s.walks.reduced[16 * k] == 0) p.splats = static_cast<std::uint16_t>(p.splats | 1u << k);
  p.types.note(r.accumulator), p.types.note(s.out->dtype()), p.types.note(*s.function);
  for (const Tensor& t : s.inputs) p.types.note(t.dtype());
  if (s.after) p.types.note(*s.after);
  std::int64_t lanes = std::max({s.walks.kept_rank, s.walks.reduced_rank, static_cast<std::int64_t>(operands)});
  p.rank_lanes = rank_lanes(lanes);
  const BuiltPlan& plan = r.runtime->plans().find<BuiltPlan>("reduce", p, implementation, [&] {
    KernelPlan selected = select(r.runtime->traits(), p, implementation);
    std::span<const DType> dtypes(p.dtypes);
    selected.expression = print_operands(1, s.inputs.size(), p.positions, body.buffers.size()) +
                          print_opencl(*s.function, std::span(&p.accumulator, 1), dtypes.first(s.inputs.size())).text;
    selected.expression += s.after ? print_opencl(*s.after, std::span(&p.output, 1), std::span(&p.accumulator, 1),
                                                  {.macro = "AFTER", .extra = "AFTER", .param = 'q', .captured = 'd'})
                                         .text
                                   : "#define CLUTCH_AFTER_KERNEL_PARAMS\n";
    if (selected.entry == kBuffered) selected.expression += print_fetches(1, dtypes.first(s.inputs.size()));
    if (!takes_teams(selected.entry)) return build_plan(*r.runtime, selected);
    const bool rows = p.layout == ReduceLayout::rows, columns = p.layout == ReduceLayout::columns;
    KernelPlan other = select(r.runtime->traits(), p, rows ? "reduce_rows" : columns ? "reduce_columns" : "reduce_strided");
    other.expression = selected.expression;
    return build_groups(*r.runtime, selected, other, REDUCE_TEAM, !implementation.empty());
  });
  if (s.after && s.m > REDUCE_BLOCK && plan.entry != kGroups) return false;
  bool by_columns = plan.entry == "reduce_columns", buffered = plan.entry == kBuffered, groups = plan.entry == kGroups,
       column_groups = plan.entry == kColumnGroups;
  const auto n = static_cast<std::uint64_t>(s.n), m = static_cast<std::uint64_t>(s.m), blocks = reduce_blocks(m);
  // If a group is a thread, a chunk has about 8192 elements, so that its work exceeds the cost to schedule it and memory is read in long runs. If groups have
  // several items, an item gets little work, as one driver ends loops early (quirk loops_end_early).
  auto elements = static_cast<std::uint64_t>(std::clamp<std::int64_t>(s.m, 1, REDUCE_BLOCK));
  std::uint64_t chunk =
      plan.tuning.local == 1 ? std::max({std::uint64_t{1}, 8192 / elements, n * blocks / 64}) : std::clamp<std::uint64_t>(256 / elements, 1, 32);
  // A panel whose neighbours are of two chunks is read by both.
  if (buffered) chunk = std::max(chunk, panel_blocks(s.walks, n * blocks, r.runtime->traits()));
  Encoder encoder(stream, "reduce");
  auto bind = [&](const std::int64_t* values) { bind_lanes(encoder, values, p.rank_lanes, p.wide_index); };
  encoder.output(*s.out);
  for (const Tensor& t : s.inputs) encoder.input(t);
  const std::uint32_t team = reduce_team(m);
  encoder.value(n).value(m);
  if (groups)
    encoder.value(team);
  else if (column_groups)
    encoder.value(std::uint32_t{are_in_columns(p) ? 0u : 1u});
  else
    encoder.value(chunk);
  encoder.value(static_cast<std::int32_t>(s.walks.kept_rank));
  bind(s.walks.kept_size.data());
  for (std::size_t k = 0; k <= operands; ++k) bind(s.walks.kept.data() + 16 * k);
  const bool several = p.layout == ReduceLayout::strided && (groups || column_groups);
  if (buffered || several || plan.entry == "reduce_strided" || (by_columns && p.vectors == ReduceVectors::columns)) {
    encoder.value(static_cast<std::int32_t>(s.walks.reduced_rank));
    bind(s.walks.reduced_size.data());
    if (several) {
      std::array<std::int64_t, 16> reciprocals{}, shifts{};
      for (std::size_t d = 0; d + 1 < static_cast<std::size_t>(s.walks.reduced_rank); ++d) {
        const auto size = static_cast<std::uint64_t>(s.walks.reduced_size[d]);
        reciprocals[d] = static_cast<std::int32_t>(offsets_reciprocal(size)), shifts[d] = offsets_shift(size);
      }
      bind(reciprocals.data()), bind(shifts.data());
    }
    for (std::size_t k = 1; k <= operands; ++k) bind(s.walks.reduced.data() + 16 * k);
    if (buffered) encoder.value(static_cast<std::int32_t>(s.walks.across));
  } else if (!groups) {
    std::array<std::int64_t, 16> inner{};
    for (std::size_t k = 0; k < operands; ++k) inner[k] = s.walks.reduced[16 * (k + 1)];
    bind(inner.data());
  }
  bind_extra(encoder, body, body.param_values);
  if (s.after) bind_extra(encoder, *s.after->body(), s.after->body()->param_values);
  if (s.is_first && s.after && body.buffers.empty() && p.positions == 0 && encoder.asks_for_meaning()) encoder.means(meaning_of(s, r));
  std::uint64_t local = plan.tuning.local, items = (n * blocks + chunk - 1) / chunk;
  auto panel_tasks = [&](std::uint64_t panel) { return reduce_panel_tasks(n, static_cast<std::uint64_t>(s.walks.kept_size[0]), panel, blocks); };
  if (by_columns) items = panel_tasks(static_cast<std::uint64_t>(abreast(p)) * static_cast<std::uint64_t>(plan.tuning.width));
  if (column_groups) items = reduce_panels(n, local / REDUCE_COLUMN_ITEMS) * blocks * local;
  if (groups && s.after) local = team_items(plan, m);
  if (groups) items = n * (s.after && m > REDUCE_BLOCK ? local : blocks * team);
  // For each element: the function, and an addition or another combining operation.
  encoder.flops((body.operations + 1) * static_cast<double>(s.n) * static_cast<double>(s.m)).dispatch(plan.kernel, item_geometry(items, local));
  return true;
}

/// The function that is applied to the last accumulator.
ExprFunction last_step(const Reduction& r, const ExprFunction& after) {
  if (r.op != Reduce::mean) return after.empty() ? identity(r.accumulator) : after;
  const Expr x = expr_input(0, r.accumulator) / param(static_cast<double>(r.m));
  ExprFunction divided(std::span(&r.accumulator, 1), std::span(&x, 1));
  if (after.empty()) return divided;
  return compose(after, divided);
}

/// The name of a reduction of one tensor's own elements, which plugins may implement; empty for others.
std::string_view name_of(const Reduction& r, const ExprFunction& f, std::span<const Tensor> given) {
  if (given.size() != 1 || f.body() != identity(f.input_dtype(0)).body()) return {};
  switch (r.op) {
    case Reduce::sum: return "sum";
    case Reduce::prod: return "prod";
    case Reduce::amin: return "amin";
    case Reduce::amax: return "amax";
    case Reduce::mean: return "mean";
    default: return {};
  }
}

/// True if contiguous inputs are columns, where the given ones are several strides of neighbouring columns: these would be read a column at a time, in pieces
/// of a cache line.
bool wants_columns(const Walks& w, const Reduction& r, std::size_t inputs) {
  if (w.layout != ReduceLayout::strided || w.vectors == ReduceVectors::columns || w.kept_size[0] < least_columns(r.runtime->traits()) ||
      !copies_pay(r.runtime->traits(), r.n * r.m))
    return false;
  if (!is_near(w.kept, 0, inputs)) return false;
  // The reduced dimensions must be neighbours.
  int changes = 0;
  bool last = false;
  for (int d = 0; d < r.sizes.rank(); ++d) {
    if (r.sizes[d] == 1) continue;
    const bool gone = r.gone[static_cast<std::size_t>(d)];
    changes += gone && !last;
    last = gone;
  }
  return changes == 1;
}

/// True if elements that are far from each other have no vectors, or rows of a few elements follow each other in another order than the results, so that
/// contiguous copies cost less than an item's load of each.
bool wants_copies(const Walks& w, const Reduction& r) {
  if (!copies_pay(r.runtime->traits(), r.n * r.m)) return false;
  if (w.layout == ReduceLayout::strided) return w.vectors == ReduceVectors::none && w.reduced[16] > 1;
  constexpr std::int64_t kFew = 6;
  if (w.layout != ReduceLayout::rows || w.reduced_size[0] >= kFew) return false;
  for (std::size_t d = 1; d < static_cast<std::size_t>(w.kept_rank); ++d)
    if (w.kept_size[d] >= kLeastRun && w.kept[16 + d] > 0 && w.kept[16 + d] < w.kept[16]) return true;
  return false;
}

void run(const Tensor& out, const ExprFunction& f, std::span<const Tensor> given, const Reduction& r, const ReduceOptions& options, const Stream& stream) {
  const std::string_view named = options.after.empty() ? name_of(r, f, given) : std::string_view();
  check_implementation(options.implementation, named.empty() ? "reduce" : named, kImplementations);
  if (r.n == 0) return;
  if (!named.empty() && r.m > 0 && by_plugin(named, options.implementation, {&out, given.data(), &options, &stream}, stream)) return;
  if (named.empty() && r.m > 0 && has_plugin_implementations("reduce") && is_for_plugins(f) && is_for_plugins(options.after) &&
      by_plugin("reduce", options.implementation, {&out, &r.op, &f, &given, &options, &stream}, stream))
    return;
  std::vector<Tensor> inputs = as_traced(given, stream);
  ExprFunction after = last_step(r, options.after);
  Walks walks = walks_of(r, out, inputs, options.keepdim);
  const std::optional<Walks> columns = options.implementation.empty() ? columns_of_blocks(walks, inputs.size(), r.runtime->traits()) : std::nullopt;
  if (options.implementation.empty() && !columns && (wants_columns(walks, r, inputs.size()) || wants_copies(walks, r))) {
    for (Tensor& t : inputs)
      if (t.sizes() == r.sizes) t = t.contiguous(stream);
    walks = walks_of(r, out, inputs, options.keepdim);
  }
  Stage stage{&out, inputs, &f, &after, walks, r.n, r.m};
  Tensor partials;
  while (stage.m > REDUCE_BLOCK) {
    const auto blocks = static_cast<std::int64_t>(reduce_blocks(static_cast<std::uint64_t>(stage.m)));
    const std::string_view implementation = partials.defined() ? std::string_view() : options.implementation;
    if (shares_rows(stage, r, implementation) && launch(stage, r, implementation, stream)) return;
    DType kept_as = r.accumulator == DType::boolean ? DType::i32 : r.accumulator;
    Tensor made = empty({stage.n, blocks}, {.dtype = kept_as, .device = stream.device()}, stream);
    stage.out = &made, stage.after = nullptr;
    if (columns && !partials.defined()) {
      Stage first = stage;
      first.walks = *columns, first.m = 1;
      for (std::size_t d = 0; d < static_cast<std::size_t>(columns->reduced_rank); ++d) first.m *= columns->reduced_size[d];
      first.n = stage.n * stage.m / first.m;
      launch(first, r, {}, stream);
    } else {
      launch(stage, r, implementation, stream);
    }
    // The accumulators are stored in the order of the results, a row for each result.
    partials = made;
    Stage next{&out, {partials}, &identity(kept_as), &after, stage.walks, stage.n, blocks};
    std::int64_t row = blocks;
    for (std::size_t d = 0; d < static_cast<std::size_t>(next.walks.kept_rank); ++d) next.walks.kept[16 + d] = row, row *= next.walks.kept_size[d];
    next.is_first = false;
    next.walks.operands = 1, next.walks.reduced_rank = 1, next.walks.reduced_size[0] = blocks, next.walks.reduced[16] = 1,
    next.walks.layout = ReduceLayout::rows, next.walks.vectors = ReduceVectors::none;
    stage = std::move(next);
  }
  launch(stage, r, partials.defined() ? std::string_view() : options.implementation, stream);
}

/// As a function of rows of one total, if it has an accumulator that these have.
std::shared_ptr<const Meaning> meaning_of(const Stage& s, const Reduction& r) {
  auto rows = std::make_shared<RowsMeaning>();
  rows->accumulator = r.accumulator;
  rows->reduces_alone = !is_floating(r.accumulator) || r.op == Reduce::any || r.op == Reduce::all;
  rows->ops = {static_cast<int>(r.op == Reduce::mean ? Reduce::sum : r.op)};
  std::vector<DType> dtypes = s.function->body()->inputs;
  std::vector<Expr> inputs;
  for (DType d : dtypes) inputs.push_back(expr_input(static_cast<int>(inputs.size()), d));
  const Expr total = expr_input(static_cast<int>(dtypes.size()), r.accumulator);
  dtypes.resize(dtypes.size() + kMostTotals + 1, r.accumulator);
  const Expr value = rows->reduces_alone ? applied(*s.function, inputs)[0] : cast(applied(*s.function, inputs)[0], r.accumulator);
  rows->totals.emplace_back(dtypes, std::span(&value, 1));
  rows->results = ExprFunction(dtypes, applied(*s.after, std::span(&total, 1)));
  return rows_meaning(std::move(rows), 0, 1, static_cast<int>(s.inputs.size()), r.sizes, r.gone);
}

}  // namespace
}  // namespace detail

Tensor reduce(Reduce op, const ExprFunction& f, std::span<const Tensor> inputs, const ReduceOptions& options, const Stream& given) {
  detail::OpName named("reduce");
  detail::Reduction r = detail::validate(nullptr, op, f, inputs, options);
  Stream stream = detail::resolve_stream(given, *r.runtime, "reduce");
  Tensor out = empty(r.result, {.dtype = r.dtype, .device = stream.device()}, stream);
  detail::run(out, f, inputs, r, options, stream);
  return out;
}

void reduce_out(const Tensor& out, Reduce op, const ExprFunction& f, std::span<const Tensor> inputs, const ReduceOptions& options, const Stream& given) {
  detail::OpName named("reduce_out");
  detail::Reduction r = detail::validate(&out, op, f, inputs, options);
  detail::run(out, f, inputs, r, options, detail::resolve_stream(given, *r.runtime, "reduce"));
}

}}  // namespace clutch::v0
