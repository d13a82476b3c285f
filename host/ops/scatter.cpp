// SPDX-License-Identifier: Apache-2.0
#include <clutch/expr.hpp>
#include <clutch/ops/copy.hpp>
#include <clutch/ops/fill.hpp>
#include <clutch/ops/group.hpp>
#include <clutch/ops/map.hpp>
#include <clutch/ops/scatter.hpp>

#include "encode/args.hpp"
#include "encode/cost.hpp"
#include "encode/plugin_ops.hpp"
#include "ops/out_form.hpp"
#include "ops/scatter_plan.hpp"
#include "ops/segment_plan.hpp"
#include "ops/traced.hpp"
#include "runtime/op_name.hpp"
#include "runtime/quirks.hpp"
#include "runtime/settings.hpp"
#include "runtime/storage.hpp"
#include "scatter/args.h"

#include <algorithm>
#include <array>
#include <limits>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

// validate ----------------------------------------------------------------------------------------------------------

/// The dimension of a tensor, counted from the front. Errors: invalid_argument, also for an undefined tensor.
int checked_dim(const Tensor& x, int dim, std::string_view op) {
  if (!x.defined()) throw Error(ErrorCode::invalid_argument, op, "a tensor must be defined, got an undefined one");
  return dim_of(dim, x.rank(), op);
}

/// Checks an index against the tensor that it indexes. In `dim` their lengths may differ.
Runtime& validate_index(const Tensor& x, int dim, const Tensor& index, std::string_view op) {
  const Tensor* tensors[] = {&x, &index};
  Runtime& runtime = common_runtime(tensors, op);
  if (index.dtype() != DType::i32 && index.dtype() != DType::i64)
    throw Error(ErrorCode::invalid_dtype, op, fmt::format("index must be i32 or i64, got {}", name(index.dtype())));
  bool fits = index.rank() == x.rank();
  for (int d = 0; fits && d < x.rank(); ++d) fits = d == dim || index.sizes()[d] <= x.sizes()[d];
  if (!fits)
    throw Error(ErrorCode::invalid_shape, op,
                fmt::format("index must be of the rank of {} and no larger, got {}", to_string(x.sizes()), to_string(index.sizes())));
  return runtime;
}

Runtime& validate(const Tensor& self, int dim, const Tensor& index, const Tensor& src, const ScatterOptions& options) {
  constexpr std::string_view op = "scatter_reduce";
  check_scatter_implementation(options.implementation, op);
  check_reduce(options.reduce, op);
  const Tensor* tensors[] = {&self, &index, &src};
  Runtime& runtime = common_runtime(tensors, op);
  validate_index(self, dim, index, op);
  if (compute_dtype(self.dtype(), op) == DType::boolean)
    throw Error(ErrorCode::invalid_dtype, op, fmt::format("dtype must be one of numbers, got {}", name(self.dtype())));
  if (src.dtype() != self.dtype())
    throw Error(ErrorCode::invalid_dtype, op, fmt::format("src must be {} as self, got {}", name(self.dtype()), name(src.dtype())));
  bool fits = src.rank() == index.rank();
  for (int d = 0; fits && d < index.rank(); ++d) fits = index.sizes()[d] <= src.sizes()[d];
  if (!fits)
    throw Error(ErrorCode::invalid_shape, op,
                fmt::format("index must be of the rank of src {} and no larger, got {}", to_string(src.sizes()), to_string(index.sizes())));
  return runtime;
}

// select ------------------------------------------------------------------------------------------------------------

constexpr std::array<Implementation<ScatterProblem>, 2> kImplementations{{
    {"scatter_panels",
     [](const DeviceTraits& t, const ScatterProblem& p) {
       return p.rows ? refuses_fp64(t, p.dtype == DType::f64)
                     : std::string("the index must name whole contiguous rows, accumulated in place, got single elements or strided rows");
     }},
    {"scatter_lines", [](const DeviceTraits& t, const ScatterProblem& p) { return refuses_fp64(t, p.dtype == DType::f64); }},
}};
/// Those that another op launches.
constexpr std::array<Implementation<ScatterProblem>, 1> kByOthers{{{"segment_rows", nullptr}}};

}  // namespace

void check_scatter_implementation(std::string_view forced, std::string_view op) { check_implementation(forced, op, kImplementations, kByOthers); }

KernelPlan select(const DeviceTraits& traits, const ScatterProblem& p, std::string_view forced) {
  const auto& chosen = choose<ScatterProblem>(kImplementations, traits, p, forced, "scatter_reduce");
  KernelPlan plan{.stem = "scatter", .entry = chosen.name, .tuning = row_tuning(traits)};
  if (!p.rows) plan.tuning.width = 1;
  set_lanes(plan, traits, p.rows && p.dtype == DType::f64, 3, p.wide_index, p.rank_lanes);
  plan.defines.set("CLUTCH_OP", op_number(p.reduce)).set("CLUTCH_MEAN", p.reduce == Reduce::mean).set("CLUTCH_DIRECT", p.direct);
  plan.defines.set_text("INDEX", p.index == DType::i64 ? "long" : "int").set_text("T_NAME", name(p.dtype));
  plan.defines.set_type("A", p.dtype == DType::u64 ? DType::u64 : sum_dtype(p.dtype, "scatter_reduce")).set_type("T", p.dtype);
  return plan;
}

namespace {

// encode ------------------------------------------------------------------------------------------------------------

/// A view of the tensor's first elements, with these sizes.
Tensor cut_to(const Tensor& x, const Dims& sizes) { return x.as_strided(sizes, x.strides()); }

/// Reduces line by line.
void by_lines(const Tensor& out, int dim, const Tensor& index, const Tensor& src, Runtime& runtime, const ScatterOptions& options, const Stream& stream) {
  const bool includes = options.include_self;
  DType dtype = out.dtype();
  ScatterProblem p{.dtype = dtype, .index = index.dtype(), .reduce = options.reduce};
  p.direct = includes && options.reduce != Reduce::mean && (!is_floating(dtype) || sum_dtype(dtype, "scatter_reduce") == dtype);
  const LineWalk walk({&out, &index, &src}, index.sizes(), dim);
  p.wide_index = walk.wide_index;
  p.rank_lanes = rank_lanes(walk.rank);
  const BuiltPlan& plan = plan_for(runtime, "scatter_reduce", p, options.implementation);
  std::uint64_t lines = walk.lines, depth = static_cast<std::uint64_t>(out.sizes()[dim]);
  bool one_item_a_group = plan.tuning.local == 1;
  // If an item has a core of its own, adjacent lines are bundled, since they share cache lines. Items have accumulators of their own, of at most 64 MiB
  // together.
  std::uint64_t bundle = one_item_a_group && out.strides()[dim] != 1 && lines >= 64 ? SCATTER_BUNDLE : 1;
  // Where loops end early, as many items as possible, so that each takes few lines.
  const bool short_loops = (runtime.traits().quirks & kQuirkLoopsEndEarly) != 0;
  std::uint64_t items = std::min<std::uint64_t>((lines + bundle - 1) / bundle, one_item_a_group ? 64 : short_loops ? 1 << 20 : 4096);
  if (!p.direct) {
    constexpr std::uint64_t kMost = std::uint64_t{64} << 20;
    std::uint64_t each = depth * 12;
    if (each * bundle * items > kMost) items = std::max<std::uint64_t>(kMost / (each * bundle), 1);
    if (each * bundle * items > kMost) bundle = 1;
  }
  const auto m = static_cast<std::uint64_t>(index.sizes()[dim]);
  Geometry geometry = item_geometry(items, plan.tuning.local);
  const auto passes = static_cast<double>(m + (p.direct ? 0 : 2 * depth)), in_bundle = static_cast<double>(bundle);
  check_loops(runtime.traits(), "scatter_reduce", (lines + bundle - 1) / bundle, geometry,
              passes * (in_bundle + 2) + in_bundle * static_cast<double>(walk.rank + 2) + 4);
  Encoder encoder(stream, "scatter_reduce");
  auto count = static_cast<std::int64_t>(p.direct ? 1 : scatter_accumulators(geometry.global, depth, bundle));
  Tensor accumulators = encoder.scratch({count}, sum_dtype(dtype, "scatter_reduce")), counts = encoder.scratch({count}, DType::i32);
  encoder.inout(out).output(accumulators).output(counts).input(index).input(src);
  bind_args(encoder, ScatterLinesArgs{.lines = lines,
                                      .depth = depth,
                                      .m = m,
                                      .bundle = bundle,
                                      .out_inner = out.strides()[dim],
                                      .index_inner = index.strides()[dim],
                                      .src_inner = src.strides()[dim],
                                      .include_self = includes});
  walk.bind(encoder, p.rank_lanes);
  // Accumulators stay in caches: what must move are the operands.
  encoder.flops(static_cast<double>(index.numel())).moves(2 * distinct_bytes(out) + distinct_bytes(index) + distinct_bytes(src));
  encoder.dispatch(plan.kernel, geometry);
}

/// If the index is the same for all elements of the other dimensions, so that whole rows are reduced together: the number of these elements; else 0.
std::int64_t row_length(const Tensor& x, int dim, const Tensor& index) {
  std::int64_t others = 1;
  for (int d = 0; d < index.rank(); ++d) {
    if (d == dim) continue;
    if (index.sizes()[d] != x.sizes()[d] || (index.sizes()[d] != 1 && index.strides()[d] != 0)) return 0;
    others *= index.sizes()[d];
  }
  return is_floating(x.dtype()) ? others : 0;
}
bool names_rows(const Tensor& x, int dim, const Tensor& index) { return row_length(x, dim, index) >= 8; }

/// The index of rows, of rank 1.
Tensor row_index(const Tensor& index, int dim) { return index.as_strided({index.sizes()[dim]}, {index.strides()[dim]}); }

/// Sorts rows by their destination, then reduces them as segments.
void by_rows(const Tensor& out, int dim, const Tensor& index, const Tensor& src, const ScatterOptions& options, const Stream& stream) {
  Groups groups = group_by(row_index(index, dim), out.sizes()[dim], {}, stream);
  Tensor data = src.transpose(0, dim), self = out.transpose(0, dim);
  SelfRows rows = options.include_self ? SelfRows::begin : SelfRows::empty;
  segment_into(
      self,
      {.op = "scatter_reduce", .data = data, .offsets = groups.offsets, .columns = groups.order, .self = self, .self_rows = rows, .data_rows = data.sizes()[0]},
      {.reduce = options.reduce, .implementation = options.implementation}, stream);
}

/// True if lines are so few and so long that sorting all elements takes less time than walking each line by an item of its own. Where groups have several
/// items that is about 0.6 us for each element of a line, beside 30 ps for each element in all.
bool has_few_long_lines(const DeviceTraits& traits, const Tensor& out, int dim, const Tensor& index) {
  constexpr std::int64_t kLong = 512, kFew = 8192;
  const std::int64_t m = index.sizes()[dim], lines = index.numel() / m;
  return row_tuning(traits).local > 1 && !(traits.quirks & kQuirkLoopsEndEarly) && m >= kLong && lines < kFew && lines * out.sizes()[dim] < UINT32_MAX;
}

/// Sorts single elements by their destination, then reduces them as segments of one feature.
void by_elements(const Tensor& out, int dim, const Tensor& index, const Tensor& src, const ScatterOptions& options, const Stream& stream) {
  const int last = out.rank() - 1;
  const std::int64_t m = index.sizes()[dim], depth = out.sizes()[dim], lines = index.numel() / m;
  Dims sizes = index.sizes();
  sizes[dim] = depth;
  // Line by line; element d of line l is number l depth + d.
  const Tensor to = cut_to(out, sizes).transpose(dim, last), numbered = to.reshape({-1});
  const Tensor keys = map(
      [&](Expr i) {
        const Expr at = cast(i, DType::i64), length = param(depth);
        return select((at < 0) | (at >= length), cast(Expr(-1), DType::i64), cast(position(0), DType::i64) * length + at);
      },
      {index.transpose(dim, last).reshape({lines, m})}, {.dtype = {DType::i64}}, stream);
  const Groups groups = group_by(keys.reshape({-1}), lines * depth, {}, stream);
  segment_into(numbered,
               {.op = "scatter_reduce",
                .data = src.transpose(dim, last).reshape({-1}),
                .offsets = groups.offsets,
                .columns = groups.order,
                .self = numbered,
                .self_rows = options.include_self ? SelfRows::begin : SelfRows::empty,
                .data_rows = index.numel()},
               {.reduce = options.reduce, .implementation = options.implementation}, stream);
  if (!numbered.shares_storage(out)) copy_(to, numbered.reshape(to.sizes()), {}, stream);
}

/// The stride of rows along `dim` whose other elements are contiguous; 0 if they are not.
std::int64_t row_stride(const Tensor& x, int dim) {
  std::int64_t length = 1;
  for (int d = x.rank() - 1; d >= 0; --d) {
    if (d == dim || x.sizes()[d] == 1) continue;
    if (x.strides()[d] != length) return 0;
    length *= x.sizes()[d];
  }
  return x.strides()[dim];
}

/// True if rows can be accumulated in place, in the memory of `out`.
bool takes_panels(const Tensor& out, int dim, const Tensor& index, const Tensor& src, const ScatterOptions& options) {
  return row_length(out, dim, index) > 0 && row_stride(out, dim) > 0 && row_stride(src, dim) > 0 && options.reduce != Reduce::mean && options.include_self &&
         sum_dtype(out.dtype(), "scatter_reduce") == out.dtype();
}

/// Accumulates rows in order, without sorting, with an item for each panel of features.
void by_panels(const Tensor& out, int dim, const Tensor& index, const Tensor& src, Runtime& runtime, const ScatterOptions& options, const Stream& stream) {
  const ScatterProblem p{.dtype = out.dtype(), .index = index.dtype(), .reduce = options.reduce, .rows = true};
  const BuiltPlan& plan = plan_for(runtime, "scatter_reduce", p, options.implementation);
  const std::int64_t features = row_length(out, dim, index), units = static_cast<std::int64_t>(runtime.traits().compute_units);
  // One panel for each compute unit, of whole cache lines of f32.
  const std::int64_t panel = std::max<std::int64_t>((features / units + 15) / 16, 1) * 16;
  const auto panels = static_cast<std::uint64_t>((features + panel - 1) / panel);
  const Geometry geometry = item_geometry(panels, plan.tuning.local);
  // Iterations for an entry: loops over cache lines, vectors and last features; leaving a loop counts as one more.
  const std::int64_t each = panel * bits(out.dtype()) / 512 + panel / plan.tuning.width + plan.tuning.width + 5;
  check_loops(runtime.traits(), "scatter_reduce", panels, geometry, static_cast<double>(index.sizes()[dim]) * static_cast<double>(each) + 1);
  Encoder encoder(stream, "scatter_reduce");
  auto count = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
  encoder.inout(out).input(index).input(src);
  bind_args(encoder, ScatterPanelsArgs{.features = count(features),
                                       .panel = count(panel),
                                       .depth = count(out.sizes()[dim]),
                                       .m = count(index.sizes()[dim]),
                                       .out_stride = row_stride(out, dim),
                                       .index_stride = index.strides()[dim],
                                       .src_stride = row_stride(src, dim)});
  encoder.flops(static_cast<double>(index.numel())).dispatch(plan.kernel, geometry);
}

void run(const Tensor& out, int dim, const Tensor& index, const Tensor& given, Runtime& runtime, const ScatterOptions& options, const Stream& stream) {
  if (index.numel() == 0 || out.numel() == 0) return;
  if (by_plugin("scatter_reduce", options.implementation, {&out, &out, &dim, &index, &given, &options, &stream}, stream)) return;
  Tensor src = cut_to(given, index.sizes());
  // Rows of few elements make few lines, which would keep few items busy.
  constexpr std::int64_t kLongLine = 4096;
  bool long_lines = row_tuning(runtime.traits()).local > 1 && index.sizes()[dim] >= kLongLine && row_length(out, dim, index) > 0;
  bool rows = names_rows(out, dim, index) || long_lines;
  // If rows have a cache line for each compute unit, panels keep all units busy without sorting.
  const std::int64_t units = static_cast<std::int64_t>(runtime.traits().compute_units);
  bool panels = takes_panels(out, dim, index, src, options), forced = options.implementation == "scatter_panels";
  bool keeps_busy = row_tuning(runtime.traits()).local == 1 && row_length(out, dim, index) >= 16 * units;
  if (panels && (forced || (options.implementation.empty() && keeps_busy))) return by_panels(out, dim, index, src, runtime, options, stream);
  const bool by_segments = options.implementation == "segment_rows", floats = is_floating(out.dtype());
  if (by_segments && !floats)
    throw Error(ErrorCode::not_supported, "scatter_reduce",
                fmt::format("implementation segment_rows refuses: elements must be floats, got {}", name(out.dtype())));
  if (rows && !forced && options.implementation != "scatter_lines")
    by_rows(out, dim, index, src, options, stream);
  else if (by_segments || (options.implementation.empty() && floats && has_few_long_lines(runtime.traits(), out, dim, index)))
    by_elements(out, dim, index, src, options, stream);
  else
    by_lines(out, dim, index, src, runtime, options, stream);
}

}  // namespace
}  // namespace detail

void scatter_reduce_(const Tensor& self, int dim, const Tensor& index, const Tensor& src, const ScatterOptions& options, const Stream& given) {
  detail::OpName named("scatter_reduce_");
  constexpr std::string_view op = "scatter_reduce";
  int d = detail::checked_dim(self, dim, op);
  detail::Runtime& runtime = detail::validate(self, d, index, src, options);
  detail::check_no_self_overlap(self, op);
  detail::check_apart(self, index, op);
  detail::check_apart(self, src, op);
  detail::run(self, d, index, src, runtime, options, detail::resolve_stream(given, runtime, op));
}

Tensor scatter_reduce(const Tensor& self, int dim, const Tensor& index, const Tensor& src, const ScatterOptions& options, const Stream& given) {
  detail::OpName named("scatter_reduce");
  constexpr std::string_view op = "scatter_reduce";
  int d = detail::checked_dim(self, dim, op);
  detail::Runtime& runtime = detail::validate(self, d, index, src, options);
  Stream stream = detail::resolve_stream(given, runtime, op);
  Tensor out = self.clone(stream);
  detail::run(out, d, index, src, runtime, options, stream);
  return out;
}

void scatter_reduce_out(const Tensor& out, const Tensor& self, int dim, const Tensor& index, const Tensor& src, const ScatterOptions& options,
                        const Stream& given) {
  detail::OpName named("scatter_reduce_out");
  constexpr std::string_view op = "scatter_reduce";
  int d = detail::checked_dim(self, dim, op);
  detail::Runtime& runtime = detail::validate(self, d, index, src, options);
  detail::check_out(out, self.sizes(), self.dtype(), "out", op);
  const Tensor* both[] = {&out, &self};
  detail::common_runtime(both, op);
  detail::check_overlap(out, self, op);
  detail::check_apart(out, index, op);
  detail::check_apart(out, src, op);
  Stream stream = detail::resolve_stream(given, runtime, op);
  copy_(out, self, {}, stream);
  detail::run(out, d, index, src, runtime, options, stream);
}

namespace detail {
namespace {

/// Computes into `out` if given, else into a new tensor.
Tensor gathered(const Tensor* out, const Tensor& x, int dim, const Tensor& index, double missing, const char* op, const Stream& given) {
  int d = checked_dim(x, dim, op);
  Runtime& runtime = validate_index(x, d, index, op);
  if (out) {
    check_out(*out, index.sizes(), x.dtype(), "out", op);
    const Tensor* both[] = {out, &x};
    common_runtime(both, op);
    check_apart(*out, x, op), check_apart(*out, index, op);
  }
  Stream stream = resolve_stream(given, runtime, op);
  const std::int64_t length = x.sizes()[d];
  double none = is_floating(compute_dtype(x.dtype(), op)) ? missing : 0;
  const TensorOptions stored{.dtype = x.dtype(), .device = stream.device()};
  if (index.numel() == 0 || length == 0) {
    if (!out) return full(index.sizes(), none, stored, stream);
    fill_(*out, none, {}, stream);
    return *out;
  }
  if (op == std::string_view("gather") && has_plugin_implementations(op)) {
    const Tensor made = out ? *out : empty(index.sizes(), stored, stream);
    if (by_plugin(op, {}, {&made, &x, &d, &index, &stream}, stream)) return made;
  }
  if (names_rows(x, d, index)) {
    const Tensor rows = x.transpose(0, d), of_rows = row_index(index, d);
    if (!out) return select_rows(rows, of_rows, none, op, stream).transpose(0, d);
    select_rows_into(out->transpose(0, d), rows, of_rows, none, op, stream);
    return *out;
  }
  auto element = [&](Expr i) {
    Expr at = cast(i, DType::i64);
    std::vector<Expr> places;
    for (int k = 0; k < x.rank(); ++k) places.push_back(k == d ? at : position(k));
    Expr value = captured(x).at(places);
    return select((at < 0) | (at >= param(length)), cast(Expr(none), value.dtype()), value);
  };
  if (!out) return map(element, {index}, {.dtype = {x.dtype()}}, stream);
  map_out(*out, element, {index}, {}, stream);
  return *out;
}

/// The index of index_select, repeated over the other dimensions.
Tensor slices_index(const Tensor& x, int dim, const Tensor& index) {
  const Tensor* tensors[] = {&x, &index};
  common_runtime(tensors, "index_select");
  int d = checked_dim(x, dim, "index_select");
  if (index.rank() != 1) throw Error(ErrorCode::invalid_shape, "index_select", fmt::format("index must be of rank 1, got shape {}", to_string(index.sizes())));
  Dims sizes = x.sizes(), strides = Dims::filled(x.rank(), 0);
  sizes[d] = index.numel(), strides[d] = index.strides()[0];
  return index.as_strided(sizes, strides);
}

}  // namespace

Tensor gather_or(const Tensor& x, int dim, const Tensor& index, double missing, const char* op, const Stream& stream) {
  return gathered(nullptr, x, dim, index, missing, op, stream);
}

}  // namespace detail

Tensor gather(const Tensor& x, int dim, const Tensor& index, const Stream& stream) {
  detail::OpName named("gather");
  return detail::gather_or(x, dim, index, std::numeric_limits<double>::quiet_NaN(), "gather", stream);
}

void gather_out(const Tensor& out, const Tensor& x, int dim, const Tensor& index, const Stream& stream) {
  detail::OpName named("gather_out");
  detail::gathered(&out, x, dim, index, std::numeric_limits<double>::quiet_NaN(), "gather", stream);
}

Tensor gather_backward(const Tensor& grad, const Dims& sizes, int dim, const Tensor& index, const Stream& stream) {
  detail::OpName named("gather_backward");
  const Tensor* tensors[] = {&grad};
  detail::common_runtime(tensors, "gather_backward");
  Tensor made = zeros(sizes, {.dtype = grad.dtype(), .device = grad.device()}, stream);
  scatter_reduce_(made, dim, index, grad, {}, stream);
  return made;
}

void gather_backward_out(const Tensor& out, const Tensor& grad, int dim, const Tensor& index, const Stream& given) {
  detail::OpName named("gather_backward_out");
  constexpr const char* op = "gather_backward";
  const Tensor* tensors[] = {&out, &grad, &index};
  detail::Runtime& runtime = detail::common_runtime(tensors, op);
  detail::check_out(out, out.sizes(), grad.dtype(), "out", op);
  int d = detail::checked_dim(out, dim, op);
  detail::validate(out, d, index, grad, {});  // before zeros are written
  detail::check_apart(out, grad, op), detail::check_apart(out, index, op);
  Stream stream = detail::resolve_stream(given, runtime, op);
  fill_(out, 0, {}, stream);
  scatter_reduce_(out, dim, index, grad, {}, stream);
}

Tensor index_select(const Tensor& x, int dim, const Tensor& index, const Stream& stream) {
  detail::OpName named("index_select");
  return gather(x, dim, detail::slices_index(x, dim, index), stream);
}
void index_select_out(const Tensor& out, const Tensor& x, int dim, const Tensor& index, const Stream& stream) {
  detail::OpName named("index_select_out");
  gather_out(out, x, dim, detail::slices_index(x, dim, index), stream);
}

}}  // namespace clutch::v0
