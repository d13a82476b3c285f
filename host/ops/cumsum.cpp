// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/copy.hpp>
#include <clutch/ops/cumsum.hpp>

#include "encode/args.hpp"
#include "encode/cost.hpp"
#include "ops/cumsum_plan.hpp"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"

#include <array>
#include <bit>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

// validate ----------------------------------------------------------------------------------------------------------

struct Checked {
  Runtime* runtime;
  int dim;
  DType dtype;  ///< of the result
};

Checked validate(const Tensor* out, const Tensor& x, int dim, const CumsumOptions& options) {
  std::vector<const Tensor*> all{&x};
  if (out) all.push_back(out);
  Checked c{&common_runtime(all, "cumsum"), dim_of(dim, x.rank(), "cumsum"), is_floating(x.dtype()) ? x.dtype() : DType::i64};
  c.dtype = one_dtype(options.dtype, "cumsum").value_or(c.dtype);
  if (out) c.dtype = out->dtype();
  if (sum_dtype(x.dtype(), "cumsum") != sum_dtype(c.dtype, "cumsum") || c.dtype == DType::boolean)
    throw Error(ErrorCode::invalid_dtype, "cumsum",
                fmt::format("x and the result must have dtypes that are accumulated in one type, got {} and {}; cast first", name(x.dtype()), name(c.dtype)));
  if (!out) return c;
  if (!(out->sizes() == x.sizes()))
    throw Error(ErrorCode::invalid_shape, "cumsum",
                fmt::format("the output must have the shape {} of x, got {}", to_string(x.sizes()), to_string(out->sizes())));
  check_no_self_overlap(*out, "cumsum");
  check_overlap(*out, x, "cumsum");
  return c;
}

// select ------------------------------------------------------------------------------------------------------------

/// Vectors of columns that an item takes side by side. More of them give long contiguous accesses; used where an item has a core of its own.
int abreast(const ElementwiseTuning& tuning) { return tuning.local == 1 ? 8 : 1; }

std::string computes(const DeviceTraits& traits, const CumsumProblem& p) { return refuses_fp64(traits, p.dtype == DType::f64); }

std::string fits_columns(const DeviceTraits& traits, const CumsumProblem& p) {
  return p.columns ? computes(traits, p)
                   : fmt::format("lines must be eight or more of floats with stride 1 between them, got {}",
                                 is_floating(p.dtype) ? "fewer, or another stride" : name(p.dtype));
}

/// Reason why a device refuses groups of so many items and numbers in local memory; empty if it accepts.
std::string refuses_teams(const DeviceTraits& traits, const CumsumProblem& p, std::uint64_t items, std::uint64_t numbers) {
  // Loops that hold barriers must not end for one item alone.
  if (std::string why = refuses_long_loops(traits); !why.empty()) return why;
  if (std::string why = refuses_group_items(traits, items); !why.empty()) return why;
  return refuses_local_bytes(traits, numbers * static_cast<std::uint64_t>(bits(sum_dtype(p.dtype, "cumsum")) / 8));
}

constexpr std::string_view kGroups = "cumsum_groups", kColumnGroups = "cumsum_column_groups", kCarryGroups = "cumsum_carry_groups";

std::string fits_groups(const DeviceTraits& traits, const CumsumProblem& p) {
  std::string why = computes(traits, p);
  return why.empty() ? refuses_teams(traits, p, CUMSUM_GROUP_ITEMS, CUMSUM_CARRY_NUMBERS) : why;
}

std::string fits_column_groups(const DeviceTraits& traits, const CumsumProblem& p) {
  std::string why = fits_columns(traits, p);
  return why.empty() ? refuses_teams(traits, p, CUMSUM_LEAST_COLUMN_ITEMS, 2 * CUMSUM_COLUMN_ITEMS) : why;
}

constexpr std::array<Implementation<CumsumProblem>, 4> kImplementations{{
    {kColumnGroups, fits_column_groups, of_groups<fits_column_groups>},
    {kGroups, fits_groups, of_groups<fits_groups>},
    {"cumsum_columns", fits_columns},
    {"cumsum_lines", computes},
}};

/// Kernels of carries.
constexpr std::array<Implementation<CumsumProblem>, 2> kCarries{{{kCarryGroups, fits_groups}, {"cumsum_carries", computes}}};

/// Items of a group of which the entry's groups have a multiple; 0: groups may have any number of items.
std::uint64_t items_of(std::string_view entry) {
  if (entry == kColumnGroups) return CUMSUM_LEAST_COLUMN_ITEMS;
  return entry == kGroups || entry == kCarryGroups ? CUMSUM_GROUP_ITEMS : 0;
}

}  // namespace

CumsumTeams line_teams(std::uint64_t m) {
  const std::uint64_t sums = (std::min<std::uint64_t>(m, CUMSUM_BLOCK) + CUMSUM_DOUBLED - 1) / CUMSUM_DOUBLED;
  return {.team = static_cast<std::uint32_t>(std::bit_ceil(sums)), .local = CUMSUM_GROUP_ITEMS};
}

CumsumTeams column_teams(std::uint64_t lines, std::uint64_t m, std::uint64_t columns, std::uint64_t most, std::uint64_t wanted) {
  // Neighbours that read 128 bytes of f32, or the least that memory moves, where that gives more groups.
  constexpr std::uint64_t kWidth = 32, kLeastWidth = 8;
  const std::uint64_t sums = line_teams(m).team;
  std::uint64_t width = std::clamp(std::bit_ceil(columns), kLeastWidth, kWidth), team = std::min(sums, most / width);
  while (width > kLeastWidth && team < sums && lines / columns * cumsum_panels(columns, width) * cumsum_blocks(m) < wanted) width /= 2, team *= 2;
  while (width * team < CUMSUM_LEAST_COLUMN_ITEMS) width *= 2;
  return {.team = static_cast<std::uint32_t>(team), .local = width * team};
}

KernelPlan select(const DeviceTraits& traits, const CumsumProblem& p, std::string_view forced) {
  const auto& chosen =
      p.carries ? choose<CumsumProblem>(kCarries, traits, p, forced, "cumsum") : choose<CumsumProblem>(kImplementations, traits, p, forced, "cumsum");
  KernelPlan plan{.stem = "cumsum", .entry = chosen.name, .tuning = row_tuning(traits)};
  if (chosen.name == kColumnGroups) plan.tuning = {.local = std::bit_floor(std::min<std::uint64_t>(traits.max_work_group, CUMSUM_COLUMN_ITEMS))};
  if (chosen.name == kGroups || chosen.name == kCarryGroups) plan.tuning = {.local = CUMSUM_GROUP_ITEMS};
  DType accumulator = sum_dtype(p.dtype, "cumsum");
  // An item has 16 elements and their sums.
  if ((chosen.name == kGroups || chosen.name == kCarryGroups) && is_wide(accumulator)) plan.keeps = KernelPlan::Keeps::many;
  set_lanes(plan, traits, is_wide(accumulator), 2, p.wide_index, p.rank_lanes);
  plan.defines.set_text("T_NAME", name(p.dtype))
      .set_text("O_NAME", name(p.output))
      .set_type("A", accumulator)
      .set("CLUTCH_X_BYTES", bits(p.dtype) / 8)
      .set("CLUTCH_O_BYTES", bits(p.output) / 8)
      .set("CLUTCH_ABREAST", abreast(plan.tuning));
  return plan;
}

namespace {

// encode ------------------------------------------------------------------------------------------------------------

/// The plan of a problem, built at first use. If the driver allows too few items of a kernel of groups, that of the entry for items.
const BuiltPlan& built_plan(Runtime& runtime, const CumsumProblem& p, std::string_view forced) {
  return runtime.plans().find<BuiltPlan>("cumsum", p, forced, [&] {
    KernelPlan plan = select(runtime.traits(), p, forced);
    const std::uint64_t items = items_of(plan.entry);
    if (items == 0) return build_plan(runtime, plan);
    const std::string_view other = p.carries ? "cumsum_carries" : plan.entry == kColumnGroups ? "cumsum_columns" : "cumsum_lines";
    return build_groups(runtime, plan, select(runtime.traits(), p, other), items, !p.carries && !forced.empty());
  });
}

/// True if long lines should be cut into blocks. Bits do not change. `lines`: lines, or panels of them, that an item or a group takes at a time.
bool cuts(const DeviceTraits& traits, bool groups, std::uint64_t local, std::uint64_t lines, std::uint64_t blocks) {
  if (blocks == 1) return false;
  // Four blocks of a group take less time than two more launches; four groups on a compute unit have enough loads on their way.
  constexpr std::uint64_t kTurns = 4, kGroupsOfUnit = 4;
  if (groups) return blocks > kTurns && lines < kGroupsOfUnit * static_cast<std::uint64_t>(traits.compute_units);
  // If there are few lines, or if groups have several items, each of which must get little work.
  return local != 1 || lines < 16;
}

/// Computes the sum of the blocks before each block, of n lines with so many.
void send_carries(Encoder& encoder, Runtime& runtime, CumsumProblem p, bool groups, const Tensor& carries, std::uint64_t n, std::uint64_t blocks) {
  p.carries = true;
  const BuiltPlan& plan = built_plan(runtime, p, groups ? kCarryGroups : "cumsum_carries");
  encoder.inout(carries).value(n).value(blocks);
  if (plan.entry == kCarryGroups) {
    const CumsumTeams teams = line_teams(blocks);
    encoder.value(teams.team).dispatch(plan.kernel, item_geometry(n * teams.team, teams.local));
    return;
  }
  const Geometry geometry = item_geometry(n, plan.tuning.local);
  check_loops(runtime.traits(), "cumsum", n, geometry, static_cast<double>(blocks) + 1);
  encoder.dispatch(plan.kernel, geometry);
}

void run(const Tensor& out, const Tensor& x, const Checked& c, const CumsumOptions& options, const Stream& stream) {
  check_implementation(options.implementation, "cumsum", kImplementations);
  if (out.numel() == 0) return;
  if (by_plugin("cumsum", options.implementation, {&out, &x, &c.dim, &options, &stream}, stream)) return;
  CumsumProblem p{.dtype = x.dtype(), .output = out.dtype()};
  const LineWalk walk({&out, &x}, x.sizes(), c.dim);
  p.wide_index = walk.wide_index;
  p.rank_lanes = rank_lanes(walk.rank);
  p.columns = is_floating(x.dtype()) && walk.stride[0] == 1 && walk.stride[16] == 1 && walk.size[0] >= 8;
  const BuiltPlan& plan = built_plan(*c.runtime, p, options.implementation);
  const bool groups = items_of(plan.entry) > 0, by_columns = plan.entry == "cumsum_columns" || plan.entry == kColumnGroups;
  const std::uint64_t n = walk.lines, m = static_cast<std::uint64_t>(x.sizes()[c.dim]), columns = static_cast<std::uint64_t>(walk.size[0]);
  const std::uint64_t blocks = cumsum_blocks(m), units = static_cast<std::uint64_t>(c.runtime->traits().compute_units);
  CumsumTeams teams{.local = plan.tuning.local};
  if (groups) teams = by_columns ? column_teams(n, m, columns, std::bit_floor(plan.tuning.local), 4 * units) : line_teams(m);
  std::uint64_t panel = static_cast<std::uint64_t>(abreast(plan.tuning)) * static_cast<std::uint64_t>(plan.tuning.width);
  if (groups) panel = teams.local / teams.team;
  const std::uint64_t lines = by_columns ? n / columns * cumsum_panels(columns, panel) : n;
  const bool cut = cuts(c.runtime->traits(), groups, teams.local, lines, blocks);
  Encoder encoder(stream, "cumsum");
  Tensor carries = encoder.scratch({cut ? static_cast<std::int64_t>(cumsum_carry(n, blocks, 0)) : 1}, sum_dtype(p.dtype, "cumsum"));
  auto send = [&](std::int32_t stage) {
    const bool backward = options.reverse;
    auto inner = [&](const Tensor& t) { return backward ? -t.strides()[c.dim] : t.strides()[c.dim]; };
    auto first = [&](const Tensor& t) { return backward ? (x.sizes()[c.dim] - 1) * t.strides()[c.dim] : std::int64_t{0}; };
    encoder.output(out).inout(carries).input(x);
    bind_args(
        encoder,
        CumsumArgs{
            .n = n, .m = m, .out_inner = inner(out), .x_inner = inner(x), .out_first = first(out), .x_first = first(x), .stage = stage, .team = teams.team});
    walk.bind(encoder, p.rank_lanes);
    // An addition an element. CUMSUM_SUMS sums blocks, CUMSUM_RESULTS goes through them again.
    encoder.flops(stage == CUMSUM_RESULTS ? 0 : static_cast<double>(x.numel()));
    encoder.moves(distinct_bytes(x) + (stage == CUMSUM_SUMS ? 0 : distinct_bytes(out)) + (stage == CUMSUM_WHOLE ? 0 : distinct_bytes(carries)));
    // An item takes a task at a time, so does a team, and a group a panel of columns.
    std::uint64_t items = cumsum_tasks(stage, lines, blocks);
    if (groups) items *= by_columns ? teams.local : teams.team;
    encoder.dispatch(plan.kernel, item_geometry(items, teams.local));
  };
  if (!cut) return send(CUMSUM_WHOLE);
  send(CUMSUM_SUMS);
  send_carries(encoder, *c.runtime, p, groups, carries, n, blocks);
  send(CUMSUM_RESULTS);
}

}  // namespace
}  // namespace detail

Tensor cumsum(const Tensor& x, int dim, const CumsumOptions& options, const Stream& given) {
  detail::OpName named("cumsum");
  if (x.defined() && x.rank() == 0) return cumsum(x.unsqueeze(0), dim, options, given).squeeze(0);
  detail::Checked c = detail::validate(nullptr, x, dim, options);
  Stream stream = detail::resolve_stream(given, *c.runtime, "cumsum");
  Tensor out = empty(x.sizes(), {.dtype = c.dtype, .device = stream.device()}, stream);
  detail::run(out, x, c, options, stream);
  return out;
}

void cumsum_out(const Tensor& out, const Tensor& x, int dim, const CumsumOptions& options, const Stream& given) {
  detail::OpName named("cumsum_out");
  if (x.defined() && out.defined() && x.rank() == 0 && out.rank() == 0) return cumsum_out(out.unsqueeze(0), x.unsqueeze(0), dim, options, given);
  detail::Checked c = detail::validate(&out, x, dim, options);
  detail::run(out, x, c, options, detail::resolve_stream(given, *c.runtime, "cumsum"));
}

}}  // namespace clutch::v0
