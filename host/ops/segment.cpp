// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/copy.hpp>
#include <clutch/ops/segment.hpp>
#include <clutch/sparse.hpp>

#include "encode/args.hpp"
#include "encode/cost.hpp"
#include "encode/meaning.hpp"
#include "encode/plugin_ops.hpp"
#include "expr/node.hpp"
#include "ops/segment_plan.hpp"
#include "ops/traced.hpp"
#include "runtime/op_name.hpp"
#include "runtime/quirks.hpp"
#include "runtime/storage.hpp"

#include <array>
#include <limits>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

// validate ----------------------------------------------------------------------------------------------------------

double empty_value(Reduce reduce) {
  switch (reduce) {
    case Reduce::prod: return 1;
    case Reduce::amin: return std::numeric_limits<double>::infinity();
    case Reduce::amax: return -std::numeric_limits<double>::infinity();
    case Reduce::mean: return std::numeric_limits<double>::quiet_NaN();
    default: return 0;
  }
}

void check_index(const Tensor& t, std::string_view what, std::string_view op) {
  if (t.dtype() != DType::i32 && t.dtype() != DType::i64)
    throw Error(ErrorCode::invalid_dtype, op, fmt::format("{} must be i32 or i64, got {}", what, name(t.dtype())));
  if (t.rank() != 1) throw Error(ErrorCode::invalid_shape, op, fmt::format("{} must be of rank 1, got shape {}", what, to_string(t.sizes())));
}

Runtime& validate(const Segments& s, const Tensor* out) {
  std::vector<const Tensor*> all{&s.data, &s.offsets};
  if (s.columns.defined()) all.push_back(&s.columns);
  if (s.values.defined()) all.push_back(&s.values);
  if (out) all.push_back(out);
  Runtime& runtime = common_runtime(all, s.op);
  check_index(s.offsets, "offsets", s.op);
  if (s.offsets.numel() < 1) throw Error(ErrorCode::invalid_shape, s.op, "offsets must have one element more than there are segments, got none");
  if (!is_floating(compute_dtype(s.data.dtype(), s.op)))
    throw Error(ErrorCode::invalid_dtype, s.op, fmt::format("data must be f64, f32, f16 or bf16, got {}", name(s.data.dtype())));
  if (s.data.rank() < 1) throw Error(ErrorCode::invalid_shape, s.op, "data must have a dimension, got a scalar");
  if (s.columns.defined()) check_index(s.columns, "columns", s.op);
  if (s.values.defined() && s.values.dtype() != s.data.dtype())
    throw Error(ErrorCode::invalid_dtype, s.op, fmt::format("values must be {} as the dense matrix, got {}", name(s.data.dtype()), name(s.values.dtype())));
  if (s.values.defined() && !(s.values.sizes() == s.columns.sizes()))
    throw Error(ErrorCode::invalid_shape, s.op,
                fmt::format("there must be a value for each of {} columns, got values of shape {}", s.columns.numel(), to_string(s.values.sizes())));
  if (!out) return runtime;
  Dims wanted = s.data.sizes();
  wanted[0] = s.offsets.numel() - 1;
  if (!(out->sizes() == wanted))
    throw Error(ErrorCode::invalid_shape, s.op, fmt::format("the output must have the shape {}, got {}", to_string(wanted), to_string(out->sizes())));
  if (out->dtype() != s.data.dtype())
    throw Error(ErrorCode::invalid_dtype, s.op, fmt::format("the output must be {}, got {}", name(s.data.dtype()), name(out->dtype())));
  check_no_self_overlap(*out, s.op);
  for (const Tensor* t : all)
    if (t != out) check_apart(*out, *t, s.op);
  return runtime;
}

// select ------------------------------------------------------------------------------------------------------------

std::string computes(const DeviceTraits& traits, const SegmentProblem& p) { return refuses_fp64(traits, p.dtype == DType::f64 || p.has_f64); }

std::string fits_rows(const DeviceTraits& traits, const SegmentProblem& p) {
  return p.rows ? computes(traits, p) : std::string("features of a row must have stride 1, got another stride");
}

constexpr std::string_view kGroups = "segment_groups";

std::string fits_groups(const DeviceTraits& traits, const SegmentProblem& p) {
  // Its items walk segments of any length.
  std::string why = fits_rows(traits, p);
  return why.empty() ? refuses_long_loops(traits) : why;
}

std::string fits_dot_groups(const DeviceTraits& traits, const SegmentProblem& p) {
  if (std::string why = fits_groups(traits, p); !why.empty()) return why;
  if (std::string why = refuses_group_items(traits, SEGMENT_DOT_ITEMS); !why.empty()) return why;
  return refuses_local_bytes(traits, SEGMENT_DOT_ITEMS * 4 * (p.dtype == DType::f64 ? 8 : 4));
}

constexpr std::array<Implementation<SegmentProblem>, 3> kImplementations{
    {{kGroups, fits_groups, of_groups<fits_groups>}, {"segment_rows", fits_rows}, {"segment_strided", computes}}};

/// Kernels of the other stages.
constexpr std::string_view kDotGroups = "segment_dot_groups", kFirstGroups = "segment_first_groups";
constexpr std::array<Implementation<SegmentProblem>, 1> kIds{{{"segment_ids", computes}}};
constexpr std::array<Implementation<SegmentProblem>, 2> kDots{{{kDotGroups, fits_dot_groups, of_groups<fits_dot_groups>}, {"segment_dots", computes}}};
constexpr std::array<Implementation<SegmentProblem>, 2> kFirst{{{kFirstGroups, fits_groups, of_groups<fits_groups>}, {"segment_first", computes}}};

std::span<const Implementation<SegmentProblem>> entries_of(SegmentStage stage) {
  switch (stage) {
    case SegmentStage::reduce: return kImplementations;
    case SegmentStage::ids: return kIds;
    case SegmentStage::dots: return kDots;
    case SegmentStage::first: return kFirst;
  }
  return {};
}

/// True if an item of segment_ids or segment_dots takes an entry at a time, not a segment: no item may walk a segment's entries, or neighbours store
/// neighbours.
bool by_entry(const DeviceTraits& traits) { return (traits.quirks & kQuirkLoopsEndEarly) != 0 || row_tuning(traits).local != 1; }

constexpr int kStrideLanes = 4;  // of the vectors of an epilogue's strides: of a row, of a feature

/// The name of a stage's entry where `forced` is an implementation of reductions; empty if it is.
std::string_view helper_of(std::string_view forced, std::string_view groups, std::string_view items) {
  return forced.empty() ? forced : forced == kGroups ? groups : items;
}

}  // namespace

void check_reduce(Reduce reduce, std::string_view op) {
  if (reduce == Reduce::any || reduce == Reduce::all)
    throw Error(ErrorCode::invalid_argument, op, fmt::format("reduce must be sum, prod, amin, amax or mean, got {}", reduce == Reduce::any ? "any" : "all"));
}

KernelPlan select(const DeviceTraits& traits, const SegmentProblem& p, std::string_view forced) {
  const std::string_view entry = choose<SegmentProblem>(entries_of(p.stage), traits, p, forced, "segment").name;
  KernelPlan plan{.stem = "segment", .entry = entry, .tuning = row_tuning(traits)};
  const bool groups = entry == kGroups || entry == kFirstGroups || entry == kDotGroups;
  // Items take four features, of f64, too, or one.
  if (groups) plan.tuning = {.width = 4, .local = std::min<std::uint64_t>(traits.max_work_group, SEGMENT_DOT_ITEMS)};
  const bool has_epilogue = p.function != 0;
  set_lanes(plan, traits, (p.dtype == DType::f64 || p.wide) && !groups, has_epilogue ? 1 + p.input_count : 2, p.wide_index, kStrideLanes);
  plan.defines.set("CLUTCH_OP", op_number(p.reduce)).set("CLUTCH_MEAN", p.reduce == Reduce::mean).set_type("A", compute_dtype(p.dtype, "segment"));
  plan.defines.set("CLUTCH_COLUMNS", p.has_columns).set("CLUTCH_VALUES", p.has_values);
  plan.defines.set("CLUTCH_OFFSETS", p.has_offsets).set("CLUTCH_SELF", static_cast<int>(p.self));
  plan.defines.set("CLUTCH_LOOP_LIMIT", traits.quirks & kQuirkLoopsEndEarly ? static_cast<std::int64_t>(kLoopLimit) : 0);
  plan.defines.set("CLUTCH_BY_ENTRY", by_entry(traits));
  const int rounded = p.result == DType::f16 ? SEGMENT_ROUND_F16 : p.result == DType::bf16 ? SEGMENT_ROUND_BF16 : SEGMENT_ROUND_NOT;
  plan.defines.set("CLUTCH_FIRST", p.has_first).set("CLUTCH_ROUND", rounded).set("CLUTCH_EPILOGUE", has_epilogue);
  plan.defines.set_text("OFFSET", p.offset == DType::i64 ? "long" : "int").set_text("COLUMN", p.column == DType::i64 ? "long" : "int");
  plan.defines.set_type("T", p.dtype).set_text("T_NAME", name(p.dtype));
  return plan;
}

namespace {

// encode ------------------------------------------------------------------------------------------------------------

/// The tensor as (rows, features) with any two strides; a contiguous copy if the trailing dimensions cannot be joined.
Tensor as_matrix(const Tensor& t, const Stream& stream) {
  std::int64_t features = 1;
  bool joins = true;
  for (int d = t.rank() - 1; d > 0; --d) {
    joins = joins && (d == t.rank() - 1 || t.sizes()[d] == 1 || t.strides()[d] == t.strides()[t.rank() - 1] * features);
    features *= t.sizes()[d];
  }
  std::int64_t inner = t.rank() > 1 ? t.strides()[t.rank() - 1] : 1;
  if (joins) return t.as_strided({t.sizes()[0], features}, {t.strides()[0], inner});
  return t.contiguous(stream).as_strided({t.sizes()[0], features}, {features, 1});
}

/// If a group is a thread, a chunk of rows has about 8192 elements, so that its work exceeds the cost to schedule it.
std::uint64_t rows_of_chunk(const BuiltPlan& plan, std::uint64_t elements, std::uint64_t rows) {
  return plan.tuning.local == 1 ? std::clamp<std::uint64_t>(8192 / std::max<std::uint64_t>(elements / std::max<std::uint64_t>(rows, 1), 1), 1, 1024) : 1;
}

/// Items of a kernel that takes an entry, or `chunk` segments, at a time.
Geometry entries_geometry(const Runtime& runtime, const BuiltPlan& plan, std::uint64_t n, std::uint64_t chunk, std::uint64_t entries) {
  return item_geometry(by_entry(runtime.traits()) ? entries : (n + chunk - 1) / chunk, plan.tuning.local);
}

/// Notes the function of results that a call has.
void note_function(SegmentProblem& p, const Segments& s, DType output) {
  if (s.f.empty()) return;
  SeenTypes seen;
  seen.note(s.f), seen.note(output);
  for (std::size_t k = 0; k < s.inputs.size(); ++k) p.inputs[k] = s.inputs[k].dtype(), seen.note(p.inputs[k]);
  p.function = s.f.body()->id, p.input_count = static_cast<std::uint8_t>(s.inputs.size());
  p.output = output, p.wide = seen.has_wide, p.has_f64 = seen.has_f64;
}

/// The plan of a reduction, with its printed function of results.
const BuiltPlan& segment_plan(Runtime& runtime, const SegmentProblem& p, const Segments& s, std::string_view forced) {
  if (p.function == 0) return plan_for(runtime, "segment", p, forced);
  return runtime.plans().find<BuiltPlan>("segment", p, forced, [&] {
    KernelPlan plan = select(runtime.traits(), p, forced);
    // Operand 0 is the result of the reduction when it is read, and the output when it is written.
    std::array<DType, 1 + kSegmentInputs> inputs{compute_dtype(p.dtype, s.op)};
    std::copy(p.inputs.begin(), p.inputs.end(), inputs.begin() + 1);
    const std::size_t count = std::size_t{1} + p.input_count;
    const auto outputs = std::span(&p.output, 1), read = std::span<const DType>(inputs).first(count);
    check_byte_selects(runtime.traits(), s.f, outputs, read, s.op);
    plan.expression = print_operands(1, p.input_count, 0, 0) + print_opencl(s.f, outputs, read, {.first_input = 0, .first_position = count}).text;
    return build_plan(runtime, plan);
  });
}

/// Binds what a function of results takes: strides of the output and its inputs, params.
void give_epilogue(Encoder& encoder, const Segments& s, const Tensor& target, bool wide_index) {
  auto unit = [](const Tensor& t) { return t.sizes()[1] == 1 ? 0 : t.strides()[1]; };
  const auto is_flat = [&](const Tensor& t) { return unit(t) == 0 || unit(t) == 1; };
  encoder.value(static_cast<cl_uint>((unit(target) == 1 || target.sizes()[1] == 1) && std::all_of(s.inputs.begin(), s.inputs.end(), is_flat)), "flat");
  auto give_strides = [&](const Tensor& t) {
    const std::int64_t all[kStrideLanes] = {t.strides()[0], unit(t), 0, 0};
    bind_lanes(encoder, all, kStrideLanes, wide_index);
  };
  give_strides(target);
  for (const Tensor& t : s.inputs) give_strides(t);
  bind_extra(encoder, *s.f.body(), s.f.body()->param_values);
}

/// A reduction's launch without its tensors, which are, behind its output and the inputs of its function: data, offsets, columns, values, self, firsts, places;
/// those that it does not have are others in their place.
struct LaunchedSegments : ProductMeaning {
  Segments segments;  ///< without its tensors, its function and that one's inputs
  bool has_offsets, has_columns, has_values, has_self, has_firsts;
  SegmentOptions options;
};

/// Makes the launch of a meaning with another output, function and inputs.
void launch_again(const Meaning::Call& call) {
  const auto& made = static_cast<const LaunchedSegments&>(*call.product);
  if (call.inputs.size() > kSegmentInputs || has_positions(call.function))
    throw Error(ErrorCode::not_supported, made.segments.op,
                fmt::format("the function of a reduction's results must read at most {} tensors, and no positions", kSegmentInputs));
  Segments s = made.segments;
  auto given = [&](bool has, std::size_t k) { return has ? call.operands[k] : Tensor(); };
  s.data = call.operands[0], s.offsets = given(made.has_offsets, 1), s.columns = given(made.has_columns, 2), s.values = given(made.has_values, 3);
  s.self = given(made.has_self, 4), s.firsts = given(made.has_firsts, 5), s.places = given(made.has_firsts, 6);
  s.f = call.function, s.inputs.assign(call.inputs.begin(), call.inputs.end());
  segment_into(call.elements[0], s, made.options, call.stream);
}

std::shared_ptr<const Meaning> meaning_of(const Segments& s, const SegmentOptions& options, DType compute, const Dims& sizes) {
  auto product = std::make_shared<LaunchedSegments>();
  product->dtype = compute, product->most_inputs = static_cast<int>(kSegmentInputs), product->builds_soon = true;
  product->segments = {.op = s.op, .initial = s.initial, .self_rows = s.self_rows, .data_rows = s.data_rows, .empty = s.empty, .missing = s.missing};
  product->has_offsets = s.offsets.defined(), product->has_columns = s.columns.defined(), product->has_values = s.values.defined();
  product->has_self = s.self.defined(), product->has_firsts = s.firsts.defined();
  product->options = options;
  auto meaning = std::make_shared<Meaning>();
  meaning->elements = 1, meaning->inputs = static_cast<int>(s.inputs.size());
  meaning->sizes = sizes;
  meaning->function = s.f.empty() ? identity(compute) : s.f;
  meaning->product = std::move(product);
  meaning->launch = launch_again;
  return meaning;
}

}  // namespace

void check_segment_implementation(std::string_view forced, std::string_view op) { check_implementation(forced, op, kImplementations); }

void segment_into(const Tensor& out, const Segments& s, const SegmentOptions& options, const Stream& stream) {
  check_segment_implementation(options.implementation, s.op);
  if (out.numel() == 0) return;
  Runtime& runtime = out.storage()->runtime();
  Tensor data = as_matrix(s.data, stream), target = as_matrix(out, stream);
  bool copied = !target.shares_storage(out);
  if (copied) target = empty(target.sizes(), {.dtype = out.dtype(), .device = stream.device()}, stream);
  Tensor offsets = s.offsets.defined() ? s.offsets.contiguous(stream) : s.columns, columns = s.columns.defined() ? s.columns.contiguous(stream) : offsets;
  Tensor values = s.values.defined() ? s.values.contiguous(stream) : data, self = s.self.defined() ? as_matrix(s.self, stream) : data;
  std::int64_t features = data.sizes()[1];
  SegmentProblem p{.dtype = data.dtype(),
                   .offset = s.offsets.defined() ? offsets.dtype() : DType::i64,
                   .column = s.columns.defined() ? columns.dtype() : DType::i64,
                   .reduce = options.reduce,
                   .has_columns = s.columns.defined(),
                   .has_values = s.values.defined(),
                   .has_offsets = s.offsets.defined(),
                   .self = s.self_rows,
                   .has_first = s.firsts.defined()};
  p.rows = (data.strides()[1] == 1 && target.strides()[1] == 1 && self.strides()[1] == 1) || features == 1;
  p.wide_index = has_wide_offsets({&data, &target, &self});
  for (const Tensor& t : s.inputs) p.wide_index = p.wide_index || has_wide_offsets({&t});
  note_function(p, s, target.dtype());
  const BuiltPlan& plan = segment_plan(runtime, p, s, options.implementation);
  auto n = static_cast<std::uint64_t>(target.sizes()[0]), entries = static_cast<std::uint64_t>(s.columns.defined() ? columns.numel() : data.sizes()[0]);
  std::uint64_t chunk = rows_of_chunk(plan, static_cast<std::uint64_t>(features) * (entries + n), n);
  const bool rows = plan.entry == "segment_rows";
  // In groups an item takes four features, if there are as many, or one; the kernel knows which.
  const std::uint64_t each = plan.entry == kGroups && features % 4 == 0 ? 4 : 1;
  const std::uint64_t items = rows ? (n + chunk - 1) / chunk : n * static_cast<std::uint64_t>(features) / each;
  const Geometry geometry = item_geometry(items, plan.tuning.local);
  // For rows without entries; the kernel itself counts iterations over entries. A panel has at least 4 features.
  check_loops(runtime.traits(), s.op, items, geometry, rows ? static_cast<double>(chunk) * (4 * static_cast<double>(features) + 32) : 3);
  Encoder encoder(stream, s.op);
  encoder.output(target);
  for (const Tensor& t : s.inputs) encoder.input(t);
  encoder.input(data).input(offsets).input(columns).input(values).input(self);
  encoder.input(s.firsts.defined() ? s.firsts : data).input(s.places.defined() ? s.places : data);
  bind_args(encoder, SegmentArgs{.n = n,
                                 .features = static_cast<std::uint64_t>(features),
                                 .entries = entries,
                                 .data_rows = static_cast<std::uint64_t>(s.data_rows),
                                 .chunk = chunk,
                                 .out_stride = target.strides()[0],
                                 .out_inner = target.strides()[1],
                                 .data_stride = data.strides()[0],
                                 .data_inner = data.strides()[1],
                                 .self_stride = self.strides()[0],
                                 .self_inner = self.strides()[1],
                                 .empty = static_cast<float>(s.empty),
                                 .missing = static_cast<float>(s.missing)});
  if (!s.f.empty()) give_epilogue(encoder, s, target, p.wide_index);
  if (encoder.asks_for_meaning()) encoder.means(meaning_of(s, options, compute_dtype(data.dtype(), s.op), target.sizes()));
  // Elements that are reduced: of the rows that entries select if there are columns, else of all rows of data.
  const double numbers = static_cast<double>(entries) * static_cast<double>(features);
  encoder.flops(s.offsets.defined() ? numbers * (s.values.defined() ? 2 : 1) : 0);
  auto given = [](const Tensor& wanted, const Tensor& bound) { return wanted.defined() ? distinct_bytes(bound) : 0.0; };
  const double rows_bytes = s.columns.defined() ? numbers * bits(data.dtype()) / 8 : distinct_bytes(data);
  encoder.moves(rows_bytes + distinct_bytes(target) + given(s.columns, columns) + given(s.offsets, offsets) + given(s.values, values) + given(s.self, self));
  encoder.dispatch(plan.kernel, geometry);
  if (copied) copy_(out, target.reshape(out.sizes()), {}, stream);
}

Tensor select_rows(const Tensor& data, const Tensor& columns, double missing, const char* op, const Stream& stream) {
  check_index(columns, "index", op);
  Dims sizes = data.sizes();
  sizes[0] = columns.numel();
  Tensor out = empty(sizes, {.dtype = data.dtype(), .device = stream.device()}, stream);
  select_rows_into(out, data, columns, missing, op, stream);
  return out;
}

void select_rows_into(const Tensor& out, const Tensor& data, const Tensor& columns, double missing, const char* op, const Stream& stream) {
  // amax with -Inf copies x.
  segment_into(out, {.op = op, .data = data, .columns = columns, .data_rows = data.sizes()[0], .missing = missing}, {.reduce = Reduce::amax}, stream);
}

Tensor segment_ids(const Tensor& given, std::int64_t entries, const char* op, const Stream& stream) {
  check_index(given, "offsets", op);
  Tensor offsets = given.contiguous(stream), ids = full({entries}, -1, {.dtype = given.dtype(), .device = stream.device()}, stream);
  auto n = static_cast<std::uint64_t>(offsets.numel() - 1);
  if (n == 0 || entries == 0) return ids;
  Runtime& runtime = ids.storage()->runtime();
  const BuiltPlan& plan = plan_for(runtime, "segment", SegmentProblem{.offset = offsets.dtype(), .stage = SegmentStage::ids}, {});
  std::uint64_t chunk = rows_of_chunk(plan, static_cast<std::uint64_t>(entries), n);
  Encoder encoder(stream, op);
  encoder.output(ids).input(offsets);
  bind_args(encoder, SegmentArgs{.n = n, .entries = static_cast<std::uint64_t>(entries), .chunk = chunk});
  encoder.dispatch(plan.kernel, entries_geometry(runtime, plan, n, chunk, static_cast<std::uint64_t>(entries)));
  return ids;
}

namespace {

/// The plan of products of rows. If the driver allows too few items of the kernel of groups, that of the other.
const BuiltPlan& dots_plan(Runtime& runtime, const SegmentProblem& p, std::string_view forced) {
  return runtime.plans().find<BuiltPlan>("segment", p, forced, [&] {
    const KernelPlan plan = select(runtime.traits(), p, forced);
    if (plan.entry != kDotGroups) return build_plan(runtime, plan);
    return build_groups(runtime, plan, select(runtime.traits(), p, "segment_dots"), SEGMENT_DOT_ITEMS, !forced.empty());
  });
}

}  // namespace

Tensor segment_dots(const Tensor& given_x, const Tensor& given_data, const Tensor& given_offsets, const Tensor& given_columns, const Tensor& firsts,
                    std::string_view forced, const char* op, const Stream& stream) {
  check_index(given_columns, "columns", op);
  // The dot products of entries outside of all segments are 0.
  Tensor out = zeros({given_columns.numel()}, {.dtype = given_data.dtype(), .device = stream.device()}, stream);
  Tensor x = given_x.contiguous(stream), data = given_data.contiguous(stream), offsets = given_offsets.contiguous(stream),
         columns = given_columns.contiguous(stream);
  auto n = static_cast<std::uint64_t>(x.sizes()[0]), features = static_cast<std::uint64_t>(x.sizes()[1]), entries = static_cast<std::uint64_t>(out.numel());
  if (n == 0 || entries == 0) return out;
  Runtime& runtime = out.storage()->runtime();
  SegmentProblem p{.dtype = data.dtype(),
                   .offset = offsets.dtype(),
                   .column = columns.dtype(),
                   .has_columns = true,
                   .stage = SegmentStage::dots,
                   .has_first = firsts.defined()};
  p.wide_index = has_wide_offsets({&x, &data});
  const BuiltPlan& plan = dots_plan(runtime, p, helper_of(forced, kDotGroups, "segment_dots"));
  std::uint64_t chunk = rows_of_chunk(plan, features * (entries + n), n);
  Encoder encoder(stream, op);
  encoder.output(out).input(x).input(data).input(offsets).input(columns);
  encoder.input(firsts.defined() ? firsts : x);
  bind_args(encoder, SegmentArgs{.n = n,
                                 .features = features,
                                 .entries = entries,
                                 .data_rows = static_cast<std::uint64_t>(data.sizes()[0]),
                                 .chunk = chunk,
                                 .data_stride = data.strides()[0],
                                 .x_stride = x.strides()[0]});
  const bool teams = plan.entry == kDotGroups;
  const Geometry geometry = teams ? item_geometry(entries * SEGMENT_DOT_TEAM, plan.tuning.local) : entries_geometry(runtime, plan, n, chunk, entries);
  check_loops(runtime.traits(), op, entries, geometry, static_cast<double>(features) / 16 + 80);
  encoder.flops(2 * static_cast<double>(entries) * static_cast<double>(features)).dispatch(plan.kernel, geometry);
  return out;
}

Tensor segment_first(const Segments& s, const Tensor& given_result, DType rounded, std::string_view forced, const Stream& stream) {
  Tensor out = empty(given_result.sizes(), {.dtype = s.data.dtype(), .device = stream.device()}, stream);
  auto n = static_cast<std::uint64_t>(out.sizes()[0]), features = static_cast<std::uint64_t>(out.sizes()[1]);
  if (out.numel() == 0) return out;
  Tensor data = s.data.contiguous(stream), offsets = s.offsets.contiguous(stream), columns = s.columns.contiguous(stream),
         result = given_result.contiguous(stream);
  Tensor values = s.values.defined() ? s.values.contiguous(stream) : data;
  auto entries = static_cast<std::uint64_t>(columns.numel());
  SegmentProblem p{.dtype = data.dtype(), .offset = offsets.dtype(), .column = columns.dtype(), .has_columns = true, .has_values = s.values.defined()};
  p.stage = SegmentStage::first, p.result = rounded;
  p.wide_index = has_wide_offsets({&data, &out});
  Runtime& runtime = out.storage()->runtime();
  const BuiltPlan& plan = plan_for(runtime, "segment", p, helper_of(forced, kFirstGroups, "segment_first"));
  const auto panel = std::uint64_t{SEGMENT_ABREAST} * static_cast<std::uint64_t>(plan.tuning.width), tasks = n * ((features + panel - 1) / panel);
  // Where loops end early, one at a time, so that an item takes no more iterations than one of the reduction.
  const bool short_loops = (runtime.traits().quirks & kQuirkLoopsEndEarly) != 0;
  const std::uint64_t chunk = short_loops ? 1 : rows_of_chunk(plan, features * (entries + n), tasks);
  Encoder encoder(stream, s.op);
  encoder.output(out).input(data).input(offsets).input(columns).input(values).input(result);
  bind_args(encoder, SegmentArgs{.n = n, .features = features, .entries = entries, .data_rows = static_cast<std::uint64_t>(data.sizes()[0]), .chunk = chunk});
  const std::uint64_t pieces = n * features / (features % 4 == 0 ? 4 : 1);
  encoder.dispatch(plan.kernel, item_geometry(plan.entry == kFirstGroups ? pieces : (tasks + chunk - 1) / chunk, plan.tuning.local));
  return out;
}

namespace {

/// Gives every segment a first row of the initial value.
Segments with_initial(Segments s, const Dims& sizes, const Stream& stream) {
  if (!s.initial) return s;
  Dims row = sizes;
  row[0] = 1;
  s.self = full(row, *s.initial, {.dtype = s.data.dtype(), .device = stream.device()}, stream).expand(sizes);
  s.self_rows = SelfRows::initial;
  return s;
}

/// `by_plugin` gets a result that has elements and its stream, and returns whether a plugin has computed it.
template <class ByPlugin>
Tensor made(const Segments& s, const SegmentOptions& options, const Stream& given, const ByPlugin& by_plugin) {
  Runtime& runtime = validate(s, nullptr);
  Stream stream = resolve_stream(given, runtime, s.op);
  Dims sizes = s.data.sizes();
  sizes[0] = s.offsets.numel() - 1;
  Tensor out = empty(sizes, {.dtype = s.data.dtype(), .device = stream.device()}, stream);
  if (out.numel() > 0 && by_plugin(out, stream)) return out;
  segment_into(out, with_initial(s, sizes, stream), options, stream);
  return out;
}
template <class ByPlugin>
void into(const Tensor& out, const Segments& s, const SegmentOptions& options, const Stream& given, const ByPlugin& by_plugin) {
  Stream stream = resolve_stream(given, validate(s, &out), s.op);
  if (out.numel() > 0 && by_plugin(out, stream)) return;
  segment_into(out, with_initial(s, out.sizes(), stream), options, stream);
}

Segments segments_of(const Tensor& data, const Tensor& offsets, const SegmentOptions& options) {
  check_reduce(options.reduce, "segment_reduce");
  return {.op = "segment_reduce",
          .data = data,
          .offsets = offsets,
          .initial = options.initial,
          .data_rows = data.defined() && data.rank() > 0 ? data.sizes()[0] : 0,
          .empty = empty_value(options.reduce)};
}
Segments product_of(const sparse::Csr& a, const Tensor& b, const sparse::SpmmOptions& options) {
  check_reduce(options.reduce, "spmm");
  if (!a.columns.defined() || !b.defined()) throw Error(ErrorCode::invalid_argument, "spmm", "a tensor must be defined, got an undefined one");
  if (b.rank() != 2 || b.sizes()[0] != a.width)
    throw Error(ErrorCode::invalid_shape, "spmm", fmt::format("b must be of rank 2 and have {} rows, got shape {}", a.width, to_string(b.sizes())));
  return {.op = "spmm", .data = b, .offsets = a.offsets, .columns = a.columns, .values = a.values, .data_rows = a.width};
}

auto segments_by_plugin(const Tensor& data, const Tensor& offsets, const SegmentOptions& options) {
  return [&](const Tensor& out, const Stream& on) { return by_plugin("segment_reduce", options.implementation, {&out, &data, &offsets, &options, &on}, on); };
}
auto product_by_plugin(const sparse::Csr& a, const Tensor& b, const sparse::SpmmOptions& options) {
  return [&](const Tensor& out, const Stream& on) { return by_plugin("sparse::spmm", options.implementation, {&out, &a, &b, &options, &on}, on); };
}

}  // namespace
}  // namespace detail

Tensor segment_reduce(const Tensor& data, const Tensor& offsets, const SegmentOptions& options, const Stream& stream) {
  detail::OpName named("segment_reduce");
  return detail::made(detail::segments_of(data, offsets, options), options, stream, detail::segments_by_plugin(data, offsets, options));
}
void segment_reduce_out(const Tensor& out, const Tensor& data, const Tensor& offsets, const SegmentOptions& options, const Stream& stream) {
  detail::OpName named("segment_reduce_out");
  detail::into(out, detail::segments_of(data, offsets, options), options, stream, detail::segments_by_plugin(data, offsets, options));
}

namespace sparse {
Tensor spmm(const Csr& a, const Tensor& b, const SpmmOptions& options, const Stream& stream) {
  detail::OpName named("sparse::spmm");
  return detail::made(detail::product_of(a, b, options), {.reduce = options.reduce, .implementation = options.implementation}, stream,
                      detail::product_by_plugin(a, b, options));
}
void spmm_out(const Tensor& out, const Csr& a, const Tensor& b, const SpmmOptions& options, const Stream& stream) {
  detail::OpName named("sparse::spmm_out");
  detail::into(out, detail::product_of(a, b, options), {.reduce = options.reduce, .implementation = options.implementation}, stream,
               detail::product_by_plugin(a, b, options));
}
}  // namespace sparse

}}  // namespace clutch::v0
