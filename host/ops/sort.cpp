// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/copy.hpp>
#include <clutch/ops/sort.hpp>

#include "encode/args.hpp"
#include "ops/out_form.hpp"
#include "ops/sort_plan.hpp"
#include "ops/traced.hpp"
#include "runtime/op_name.hpp"
#include "runtime/settings.hpp"
#include "sort/args.h"

#include <array>
#include <bit>
#include <optional>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

constexpr const char* kOp = "sort";

/// What is asked of each line.
struct Request {
  int dim = -1;
  std::optional<std::int64_t> keep = {};  ///< elements of the result; none: all
  bool descending = false;
  std::string_view implementation = {};
};

// validate ----------------------------------------------------------------------------------------------------------

struct Checked {
  Runtime* runtime;
  int dim;
  std::int64_t m, keep;  ///< elements of a line, and of its result
};

/// `least`: of the elements of a line that may be asked for.
Checked validate(const Tensor& x, const Request& request, std::int64_t least = 0) {
  const Tensor* tensors[] = {&x};
  Checked c{.runtime = &common_runtime(tensors, kOp), .dim = dim_of(request.dim, std::max(x.rank(), 1), kOp), .m = 1, .keep = 1};
  if (!is_plain_float(x.dtype()) && !is_integral(x.dtype()) && x.dtype() != DType::boolean)
    throw Error(ErrorCode::invalid_dtype, kOp, fmt::format("x must be f64, f32, f16, bf16, an integer or bool, got {}", name(x.dtype())));
  if (x.rank() > 0)
    c.m = x.sizes()[c.dim];
  else
    least = 1;
  c.keep = request.keep.value_or(c.m);
  if (request.keep && (c.keep < least || c.keep > c.m))
    throw Error(ErrorCode::invalid_argument, kOp,
                fmt::format("k must be in [{}, {}], dimension {} having {} elements, got {}", least, c.m, c.dim, c.m, c.keep));
  return c;
}

// select ------------------------------------------------------------------------------------------------------------

constexpr std::string_view kTiles = "sort_tiles", kBundles = "sort_bundles", kItems = "sort_items";
/// By stage.
constexpr std::array<std::string_view, 2> kEntries{"sort_runs", "sort_merge"}, kTileEntries{"sort_tiles", "sort_tile_merge"};

std::uint32_t own_entries(bool wide) { return wide ? SORT_WIDE_OWN : SORT_PACKED_OWN; }
std::uint64_t entry_bytes(bool wide) { return wide ? SORT_WIDE_BYTES : SORT_PACKED_BYTES; }

std::string computes(const DeviceTraits&, const SortProblem&) { return ""; }

std::string fits_tiles(const DeviceTraits& traits, const SortProblem& p) {
  // Loops that hold barriers must not end for one item alone.
  if (std::string why = refuses_long_loops(traits); !why.empty()) return why;
  if (std::string why = refuses_group_items(traits, SORT_ITEMS); !why.empty()) return why;
  return refuses_local_bytes(traits, sort_tile_places(own_entries(p.wide)) * entry_bytes(p.wide) + 2 * sizeof(std::uint64_t));
}

/// Iterations for a bundle: a merge exchange of 256 elements goes 36 times over pairs of them; up to eight lanes are loaded and stored.
constexpr double kBundleLoops = (36.0 / 2 + 2 * 8) * static_cast<double>(SORT_BUNDLED);

std::string fits_bundles(const DeviceTraits& traits, const SortProblem& p) {
  if (p.wide) return "entries must be packed, got wide ones";
  if (!p.short_lines) return fmt::format("lines must have at most {} elements, got more", SORT_BUNDLED);
  return refuses_long_loops(traits, kBundleLoops);
}
/// Answer of fits_bundles where no caller forces it.
std::string wants_bundles(const DeviceTraits& traits, const SortProblem& p) {
  return elementwise_tuning(traits).local == 1 ? fits_bundles(traits, p) : std::string(kNeedsVectors);
}

constexpr std::array<Implementation<SortProblem>, 3> kImplementations{
    {{kTiles, fits_tiles, of_groups<fits_tiles>}, {kBundles, fits_bundles, wants_bundles}, {kItems, computes}}};

std::string_view infinity_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return "0x7ff0000000000000ul";
    case DType::f32: return "0x7f800000u";
    case DType::bf16: return "0x7f80u";
    case DType::f16: return "0x7c00u";
    default: return "0u";
  }
}

}  // namespace

KernelPlan select(const DeviceTraits& traits, const SortProblem& p, std::string_view forced) {
  const std::string_view chosen = choose<SortProblem>(kImplementations, traits, p, forced, kOp).name;
  const std::string_view entry = chosen == kBundles ? kBundles : (chosen == kTiles ? kTileEntries : kEntries)[static_cast<std::size_t>(p.stage)];
  KernelPlan plan{.stem = "sort", .entry = entry, .tuning = row_tuning(traits)};
  if (entry == "sort_tiles") plan.keeps = KernelPlan::Keeps::some;
  if (chosen == kTiles) plan.tuning.set_items(SORT_ITEMS);
  if (chosen == kBundles) plan.defines.set("WIDTH", plan.tuning.width);
  const bool is_signed = is_integral(p.dtype) && kDTypes[static_cast<std::size_t>(p.dtype)].is_signed;
  plan.defines.set("CLUTCH_T_BYTES", bits(p.dtype) / 8)
      .set("CLUTCH_KIND", is_floating(p.dtype) ? SORT_FLOATING
                          : is_signed          ? SORT_SIGNED
                                               : SORT_UNSIGNED)
      .set_text("CLUTCH_INFINITY", infinity_of(p.dtype))
      .set("CLUTCH_BOOL", p.dtype == DType::boolean)
      .set("CLUTCH_WIDE", p.wide);
  return plan;
}

namespace {

// encode ------------------------------------------------------------------------------------------------------------

/// The plans of a call.
class Plans {
 public:
  Plans(Runtime& runtime, const SortProblem& problem, std::string_view forced) : runtime_(runtime), problem_(problem), way_(forced) {
    bundles = of(SortStage::runs).entry == kBundles;
    tiles = of(SortStage::runs).entry == kTiles;
    if (!tiles) return;
    // A driver may allow fewer items in a group of one of the kernels than in others.
    const std::uint64_t allowed = std::min<std::uint64_t>(of(SortStage::runs).tuning.local, of(SortStage::merge).tuning.local);
    if (allowed == SORT_ITEMS) return;
    if (!forced.empty()) refuse_group_items(kOp, kTiles, SORT_ITEMS, allowed);
    way_ = kItems, tiles = false;
  }
  const BuiltPlan& of(SortStage stage) const {
    SortProblem problem = problem_;
    problem.stage = stage;
    return plan_for(runtime_, kOp, problem, way_);
  }

  bool tiles = false, bundles = false;

 private:
  Runtime& runtime_;
  SortProblem problem_;
  std::string_view way_;
};

/// How sort_runs divides its work.
struct Runs {
  std::uint64_t span = 1;      ///< elements of a run
  std::uint64_t capacity = 1;  ///< entries of each of an item's two buffers
  std::uint64_t items = 1;
};

Runs runs_of(const DeviceTraits& traits, std::uint64_t lines, std::uint64_t m, std::uint64_t keep, std::uint64_t local, std::uint64_t bytes) {
  const bool ends_loops = traits.quirks & kQuirkLoopsEndEarly;
  Runs runs;
  if (local == 1 && !ends_loops) {
    // A few runs for each core, where lines are too few and long enough. Indices of digits' counts take 32 bits.
    constexpr std::uint64_t kLeast = 4096, kMost = 1u << 30;
    const auto units = static_cast<std::uint64_t>(std::max(traits.compute_units, 1));
    const std::uint64_t wanted = lines >= 4 * units ? 1 : std::bit_ceil((units + lines - 1) / lines);
    runs.span = std::clamp((m + wanted - 1) / wanted, std::min(m, kLeast), kMost);
    runs.items = 16 * units;
  } else {
    // Many items get little each. An item that loops of a driver end early for goes through 11 loops over a run of f64.
    runs.span = std::min<std::uint64_t>(m, 1024);
    runs.items = ends_loops ? UINT64_MAX : 65536;
  }
  runs.capacity = runs.span;
  // Few entries are inserted where they belong. More are collected, and sorted when four times as many as are kept have come.
  if (!ends_loops) runs.capacity = keep <= SORT_INSERTED ? std::min(keep, runs.span) : std::min(runs.span, 4 * keep);
  // Buffers of all items together take 64 MiB, or what a task for each compute unit takes.
  if (!ends_loops)
    runs.items = std::min(runs.items, std::max<std::uint64_t>((64u << 20) / (2 * bytes * runs.capacity), static_cast<std::uint64_t>(traits.compute_units)));
  runs.items = std::min(runs.items, lines * sort_runs_of(m, runs.span));
  return runs;
}

/// Sorts the lines of x (lines, m), contiguous, into values and indices (lines, keep).
void run(Runtime& runtime, const Tensor& values, const Tensor& indices, const Tensor& x, bool descending, std::string_view implementation,
         const Stream& stream) {
  const auto lines = static_cast<std::uint64_t>(x.sizes()[0]), m = static_cast<std::uint64_t>(x.sizes()[1]),
             keep = static_cast<std::uint64_t>(values.sizes()[1]);
  const bool wide = bits(x.dtype()) == 64 || m >= UINT32_MAX || the_settings().index64.on();
  const SortProblem problem{.dtype = x.dtype(), .wide = wide, .short_lines = m <= SORT_BUNDLED};
  const Plans plans(runtime, problem, implementation);
  const BuiltPlan& first = plans.of(SortStage::runs);
  const std::uint64_t bytes = entry_bytes(wide), local = first.tuning.local, own = own_entries(wide), tile = SORT_ITEMS * own;
  Runs runs{.span = std::min(m, tile)};
  SortArgs args{.lines = lines, .m = m, .keep = keep, .descending = descending, .digit_bits = 8, .digits = 1};
  if (plans.tiles) {
    args.place = static_cast<std::uint32_t>(std::clamp(std::bit_ceil(m), own, tile));
  } else if (plans.bundles) {
    args.place = static_cast<std::uint32_t>(std::bit_ceil(m));
  } else {
    runs = runs_of(runtime.traits(), lines, m, keep, local, bytes);
    args.chunk = runs.capacity;
    // Counts of longer digits take longer to clear and to add up than they save passes.
    constexpr std::uint64_t kFewEntries = 4096;
    if (runs.capacity > kFewEntries && bits(x.dtype()) > 16) args.digit_bits = 11;
    args.digits = (static_cast<std::uint32_t>(bits(x.dtype())) + args.digit_bits - 1) / args.digit_bits;
  }
  const std::uint64_t words = bytes / sizeof(std::int64_t);
  auto entries = [&](std::uint64_t span) { return static_cast<std::int64_t>(lines * sort_runs_of(m, span) * sort_stride(keep, span) * words); };
  Encoder encoder(stream, kOp);
  args.span = runs.span;
  args.last = sort_runs_of(m, runs.span) == 1;
  Tensor made = encoder.scratch({args.last ? 1 : entries(runs.span)}, DType::i64);
  encoder.output(values).output(indices).output(made);
  if (plans.tiles) {
    encoder.input(x);
    bind_args(encoder, args);
    encoder.dispatch(first.kernel, item_geometry((lines * sort_runs_of(m, runs.span) * args.place + own - 1) / own, local));
  } else if (plans.bundles) {
    // Bundles for each core in turn, or one for each item.
    const auto lanes = static_cast<std::uint64_t>(std::max(first.tuning.width / 2, 1)), bundles = (lines + lanes - 1) / lanes;
    const Geometry geometry = item_geometry(local == 1 ? std::min(bundles, 16 * static_cast<std::uint64_t>(runtime.traits().compute_units)) : bundles, local);
    Tensor buffers = encoder.scratch({static_cast<std::int64_t>(geometry.global * lanes * m)}, DType::i64);
    encoder.output(buffers).input(x);
    bind_args(encoder, args);
    check_loops(runtime.traits(), kOp, bundles, geometry, kBundleLoops);
    encoder.dispatch(first.kernel, geometry);
  } else {
    const Geometry geometry = item_geometry(runs.items, local);
    Tensor buffers = encoder.scratch({static_cast<std::int64_t>(geometry.global * 2 * runs.capacity * words)}, DType::i64);
    Tensor counts = encoder.scratch({static_cast<std::int64_t>((geometry.global * args.digits) << args.digit_bits)}, DType::i32);
    encoder.output(buffers).output(counts).input(x);
    bind_args(encoder, args);
    // Keys of 64 bits: eight digits are cleared and added up, and entries are counted, moved and stored.
    check_loops(runtime.traits(), kOp, lines * sort_runs_of(m, runs.span), geometry, 22 * static_cast<double>(runs.span));
    encoder.dispatch(first.kernel, geometry);
  }
  const BuiltPlan* merge = args.last ? nullptr : &plans.of(SortStage::merge);
  for (Tensor from = made; !args.last; from = made) {
    const std::uint64_t span = 2 * args.span, longest = sort_length(m, keep, span, 0);
    args.last = sort_runs_of(m, span) == 1;
    made = encoder.scratch({args.last ? 1 : entries(span)}, DType::i64);
    // An item's share: of a tile; where an item has a core, enough to be worth a merge path.
    args.chunk = local == 1 ? 8192 : 256;
    const std::uint64_t tasks = lines * sort_runs_of(m, span) * ((longest + (plans.tiles ? tile : args.chunk) - 1) / (plans.tiles ? tile : args.chunk));
    encoder.output(values).output(indices).output(made).input(from).input(x);
    bind_args(encoder, args);
    const Geometry geometry = item_geometry(plans.tiles ? tasks * SORT_ITEMS : tasks, merge->tuning.local);
    check_loops(runtime.traits(), kOp, tasks, geometry, static_cast<double>(args.chunk) + 64);
    encoder.dispatch(merge->kernel, geometry);
    args.span = span;
  }
}

/// A view of a tensor in which dimension `from` has become number `to`.
Tensor moved(const Tensor& t, int from, int to) {
  Dims sizes, strides;
  auto take = [&](int d) { sizes.push_back(t.sizes()[d]), strides.push_back(t.strides()[d]); };
  for (int d = 0; d < t.rank(); ++d) {
    if (d == from) continue;
    if (sizes.rank() == to) take(from);
    take(d);
  }
  if (sizes.rank() < t.rank()) take(from);
  return t.as_strided(sizes, strides);
}

/// The result by a plugin; undefined tensors if none takes it.
Sorted plugin_sorted(const Tensor& x, int dim, const TensorOptions& on, const SortOptions& options, const Stream& stream) {
  if (!has_plugin_implementations(kOp)) return {};
  const Sorted result{empty(x.sizes(), on, stream), empty(x.sizes(), {.dtype = DType::i64, .device = on.device}, stream)};
  return by_plugin(kOp, options.implementation, {&result, &x, &dim, &options, &stream}, stream) ? result : Sorted{};
}

/// The same of topk().
Sorted plugin_kept(const Tensor& x, std::int64_t k, const Checked& c, const TopkOptions& options, const Stream& stream) {
  if (!has_plugin_implementations("topk") || x.numel() == 0 || k == 0 || x.rank() == 0) return {};
  Dims sizes = x.sizes();
  sizes[c.dim] = k;
  const Sorted result{empty(sizes, {.dtype = x.dtype(), .device = stream.device()}, stream),
                      empty(sizes, {.dtype = DType::i64, .device = stream.device()}, stream)};
  return by_plugin("topk", options.implementation, {&result, &x, &k, &c.dim, &options, &stream}, stream) ? result : Sorted{};
}

/// The same of kthvalue().
Sorted plugin_kth(const Tensor& x, std::int64_t k, const Checked& c, const KthvalueOptions& options, const Stream& stream) {
  if (!has_plugin_implementations("kthvalue") || x.numel() == 0 || x.rank() == 0) return {};
  Dims sizes = x.sizes();
  options.keepdim ? void(sizes[c.dim] = 1) : sizes.erase(c.dim);
  const Sorted result{empty(sizes, {.dtype = x.dtype(), .device = stream.device()}, stream),
                      empty(sizes, {.dtype = DType::i64, .device = stream.device()}, stream)};
  return by_plugin("kthvalue", options.implementation, {&result, &x, &k, &c.dim, &options, &stream}, stream) ? result : Sorted{};
}

/// The first `keep` entries of all sorted lines.
Sorted sorted_lines(const Tensor& x, const Checked& c, const Request& request, const Stream& stream) {
  check_implementation(request.implementation, kOp, kImplementations);
  if (!request.keep && x.numel() > 0) {
    const TensorOptions on{.dtype = x.dtype(), .device = stream.device()};
    const SortOptions options{.descending = request.descending, .implementation = std::string(request.implementation)};
    if (const Sorted all = plugin_sorted(x, c.dim, on, options, stream); all.values.defined()) return all;
  }
  const bool moves = x.rank() > 1 && c.dim < x.rank() - 1;
  const Tensor lined = moves ? moved(x, c.dim, x.rank() - 1) : x;
  Dims sizes = lined.sizes();
  if (x.rank() > 0) sizes[x.rank() - 1] = c.keep;
  const TensorOptions ids{.dtype = DType::i64, .device = stream.device()};
  Sorted result{empty(sizes, {.dtype = x.dtype(), .device = stream.device()}, stream), empty(sizes, ids, stream)};
  if (const std::int64_t n = result.values.numel(); n > 0) {
    const Dims shape{n / c.keep, c.keep};
    run(*c.runtime, result.values.reshape(shape), result.indices.reshape(shape), lined.contiguous(stream).reshape({n / c.keep, c.m}), request.descending,
        request.implementation, stream);
  }
  if (!moves) return result;
  return {moved(result.values, x.rank() - 1, c.dim).contiguous(stream), moved(result.indices, x.rank() - 1, c.dim).contiguous(stream)};
}

Sorted sorted(const Tensor& x, const Request& request, const Stream& given) {
  const Checked c = validate(x, request);
  return sorted_lines(x, c, request, resolve_stream(given, *c.runtime, kOp));
}

void store_sorted(const Sorted& out, const Sorted& made, const Stream& stream) {
  const Stored all[] = {{out.values, made.values, "out.values"}, {out.indices, made.indices, "out.indices"}};
  store(all, kOp, stream);
}

}  // namespace
}  // namespace detail

Sorted sort(const Tensor& x, int dim, const SortOptions& options, const Stream& stream) {
  detail::OpName named("sort");
  return detail::sorted(x, {.dim = dim, .descending = options.descending, .implementation = options.implementation}, stream);
}
void sort_out(const Sorted& out, const Tensor& x, int dim, const SortOptions& options, const Stream& stream) {
  detail::OpName named("sort_out");
  detail::store_sorted(out, sort(x, dim, options, stream), stream);
}

Tensor argsort(const Tensor& x, int dim, const SortOptions& options, const Stream& stream) {
  detail::OpName named("argsort");
  return sort(x, dim, options, stream).indices;
}
void argsort_out(const Tensor& out, const Tensor& x, int dim, const SortOptions& options, const Stream& stream) {
  detail::OpName named("argsort_out");
  detail::store(out, argsort(x, dim, options, stream), detail::kOp, stream);
}

Sorted topk(const Tensor& x, std::int64_t k, int dim, const TopkOptions& options, const Stream& given) {
  detail::OpName named("topk");
  const detail::Request request{.dim = dim, .keep = k, .descending = options.largest, .implementation = options.implementation};
  const detail::Checked c = detail::validate(x, request);
  const Stream stream = detail::resolve_stream(given, *c.runtime, detail::kOp);
  if (const Sorted kept = detail::plugin_kept(x, k, c, options, stream); kept.values.defined()) return kept;
  return detail::sorted_lines(x, c, request, stream);
}
void topk_out(const Sorted& out, const Tensor& x, std::int64_t k, int dim, const TopkOptions& options, const Stream& stream) {
  detail::OpName named("topk_out");
  detail::store_sorted(out, topk(x, k, dim, options, stream), stream);
}

Sorted kthvalue(const Tensor& x, std::int64_t k, int dim, const KthvalueOptions& options, const Stream& given) {
  detail::OpName named("kthvalue");
  const detail::Request request{.dim = dim, .keep = k, .descending = false, .implementation = options.implementation};
  const detail::Checked c = detail::validate(x, request, 1);
  const Stream stream = detail::resolve_stream(given, *c.runtime, detail::kOp);
  if (const Sorted kth = detail::plugin_kth(x, k, c, options, stream); kth.values.defined()) return kth;
  const Sorted all = detail::sorted_lines(x, c, request, stream);
  if (x.rank() == 0) return all;
  auto last = [&](const Tensor& t) {
    const Tensor kept = t.slice(c.dim, k - 1, k);
    return (options.keepdim ? kept : kept.select(c.dim, 0)).clone(stream);
  };
  return {last(all.values), last(all.indices)};
}
void kthvalue_out(const Sorted& out, const Tensor& x, std::int64_t k, int dim, const KthvalueOptions& options, const Stream& stream) {
  detail::OpName named("kthvalue_out");
  detail::store_sorted(out, kthvalue(x, k, dim, options, stream), stream);
}

}}  // namespace clutch::v0
