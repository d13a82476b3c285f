// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/copy.hpp>
#include <clutch/ops/map.hpp>

#include "encode/generator.hpp"
#include "encode/meaning.hpp"
#include "encode/plugin_functions.hpp"
#include "encode/plugin_ops.hpp"
#include "expr/side_by_side.hpp"
#include "ops/copy_plan.hpp"
#include "ops/map_plan.hpp"
#include "ops/traced.hpp"
#include "random/args.h"
#include "runtime/last_launch.hpp"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"

#include <array>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

struct Checked {
  Runtime* runtime;
  Dims sizes;
};

// validate ----------------------------------------------------------------------------------------------------------

void refuse(ErrorCode code, std::string_view why) { throw Error(code, "map", why); }

Checked validate(std::span<const Tensor> outputs, const ExprFunction& f, std::span<const Tensor> inputs) {
  if (f.empty()) refuse(ErrorCode::invalid_argument, "the function must be a traced one, got an empty one");
  if (static_cast<int>(inputs.size()) != f.input_count())
    refuse(ErrorCode::invalid_argument, fmt::format("each of the function's {} inputs must have a tensor, got {}", f.input_count(), inputs.size()));
  if (static_cast<int>(outputs.size()) > 0 && static_cast<int>(outputs.size()) != f.output_count())
    refuse(ErrorCode::invalid_argument, fmt::format("each of the function's {} outputs must have a tensor, got {}", f.output_count(), outputs.size()));
  std::vector<const Tensor*> all;
  std::vector<Dims> shapes;
  for (const Tensor& t : inputs) all.push_back(&t), shapes.push_back(t.sizes());
  for (const Tensor& t : outputs) all.push_back(&t);
  for (const Tensor& t : f.body()->tensors) all.push_back(&t);
  if (all.empty()) refuse(ErrorCode::invalid_argument, "there must be a tensor, whose device and shape are taken, got none; use map_out");
  Checked c{&common_runtime(all, "map"), broadcast_shapes(shapes, "map")};
  check_traced(f, inputs, "map");
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& out = outputs[i];
    compute_dtype(out.dtype(), "map");
    if (inputs.empty() && i == 0) c.sizes = out.sizes();
    if (!(out.sizes() == c.sizes))
      refuse(ErrorCode::invalid_shape, fmt::format("the output must have the broadcast shape {}, got {}", to_string(c.sizes), to_string(out.sizes())));
    check_no_self_overlap(out, "map");
    for (const Tensor& t : inputs) check_overlap(out, t, "map");
    for (const Tensor& t : f.body()->tensors) check_apart(out, t, "map");  // captured tensors are read at any position
    for (std::size_t k = 0; k < i; ++k) check_apart(out, outputs[k], "map");
  }
  return c;
}

// select ------------------------------------------------------------------------------------------------------------

std::string computes(const DeviceTraits& traits, const MapProblem& p) { return refuses_fp64(traits, p.types.has_f64); }

constexpr std::string_view kStrided = "map_strided";

/// True if cores take several short rows at once.
bool takes_pieces(const DeviceTraits& traits, const MapProblem& p) { return p.pieces && elementwise_tuning(traits).local == 1; }

constexpr std::array<Implementation<MapProblem>, 3> kImplementations{{
    {"map_contiguous", [](const DeviceTraits& t, const MapProblem& p) { return p.layout != Layout::contiguous ? needs_contiguous(p.layout) : computes(t, p); }},
    {"map_rows",
     [](const DeviceTraits& t, const MapProblem& p) {
       if (p.layout == Layout::strided) return std::string(kNeedsRows);
       return p.short_rows || takes_pieces(t, p) ? std::string("rows must fill vectors, got shorter ones") : computes(t, p);
     }},
    {kStrided, computes},
}};

}  // namespace

KernelPlan select(const DeviceTraits& traits, const MapProblem& p, std::string_view forced) {
  const auto& chosen = choose<MapProblem>(kImplementations, traits, p, forced, "map");
  KernelPlan plan{.stem = "map", .entry = chosen.name, .layout = static_cast<Layout>(&chosen - kImplementations.data()), .tuning = elementwise_tuning(traits)};
  // Whole chunks of random numbers.
  if (p.random) plan.tuning.tile = std::max<std::uint64_t>(plan.tuning.tile / RANDOM_CHUNK_WORDS, 1) * RANDOM_CHUNK_WORDS;
  set_lanes(plan, traits, p.types.has_wide, p.outputs + p.inputs + p.positions, p.wide_index, p.rank_lanes);
  if (p.random) plan.defines.set("CLUTCH_RANDOM", 1);
  if (plan.entry == kStrided) plan.defines.set("CLUTCH_BUFFERED", takes_pieces(traits, p));
  return plan;
}

namespace {

// encode ------------------------------------------------------------------------------------------------------------

/// The operands of one launch, with the strides of all of them and then of positions.
struct Launch {
  std::vector<Tensor> outputs, inputs;
  std::vector<Dims> strides;
  std::int64_t rank = 1;
  std::array<std::int64_t, 16> size{};
  std::array<std::int64_t, 16 * kMaxMapOperands> stride{};
  MapProblem problem;
};

/// True if the arguments of a launch keep to the Encoder's limits: 64 arguments, 1024 bytes.
bool fits(const Launch& l, const ExprBody& body) {
  std::size_t tensors = l.outputs.size() + l.inputs.size() + body.buffers.size(), count = 2 + 2 * tensors + body.params.size(), extents = 0;
  for (const auto& b : body.buffers) extents += 2 * static_cast<std::size_t>(b.rank);
  count += extents;
  std::size_t bytes = 8 * count;
  if (l.problem.layout != Layout::contiguous) {
    const std::size_t lanes = rank_lanes(l.rank);
    count += l.strides.size() + 2;  // sizes and divisors
    bytes += (l.strides.size() + 1) * lanes * (l.problem.wide_index ? 8 : 4) + 8 * lanes;
  }
  return count <= 64 && bytes <= 1024;
}

Launch arrange(std::vector<Tensor> outputs, std::vector<Tensor> inputs, const Dims& sizes, const ExprFunction& f) {
  Launch l{.outputs = std::move(outputs), .inputs = std::move(inputs)};
  MapProblem& p = l.problem;
  std::vector<Dims> positions = position_strides(f, sizes, "map");
  p.types.note(f);
  if (l.outputs.size() + l.inputs.size() + positions.size() > kMaxMapOperands)
    refuse(ErrorCode::invalid_argument,
           fmt::format("a call must have at most {} tensors and positions, got {}", kMaxMapOperands, l.outputs.size() + l.inputs.size() + positions.size()));
  std::size_t k = 0;
  auto add = [&](const Tensor& t) {
    p.dtypes[k++] = t.dtype();
    p.types.note(t.dtype());
    l.strides.push_back(broadcast_strides(t, sizes));
  };
  for (const Tensor& t : l.outputs) add(t);
  for (const Tensor& t : l.inputs) add(t);
  l.strides.insert(l.strides.end(), positions.begin(), positions.end());
  make_walk(sizes, l.strides, &l.rank, l.size.data(), l.stride.data(), &p.layout, &p.wide_index);
  for (std::size_t out = 1; out < l.outputs.size() && p.layout == Layout::rows; ++out)
    if (l.stride[out * 16] != 1) p.layout = Layout::strided;
  p.function = f.body()->id;
  p.random = draws_numbers(*f.body());
  p.outputs = static_cast<std::uint8_t>(l.outputs.size()), p.inputs = static_cast<std::uint8_t>(l.inputs.size());
  p.positions = static_cast<std::uint8_t>(positions.size());
  p.short_rows = l.size[0] < 16;
  // Rows of more elements have enough vectors of their own.
  constexpr std::int64_t kMostOfPieces = 64;
  p.pieces = p.layout != Layout::contiguous && l.size[0] < kMostOfPieces && positions.empty() && !p.random;
  for (std::size_t out = 0; out < l.outputs.size(); ++out) {
    p.pieces = p.pieces && l.stride[16 * out] == 1;
    for (auto d = static_cast<std::size_t>(l.rank) - 1; d > 0; --d) p.pieces = p.pieces && l.stride[16 * out + d] == l.stride[16 * out + d - 1] * l.size[d - 1];
  }
  for (std::size_t i = 0; i < positions.size() && !f.body()->buffers.empty() && p.layout != Layout::strided; ++i)
    if (l.stride[16 * (l.outputs.size() + l.inputs.size() + i)] == 1) p.moving = static_cast<std::uint8_t>(p.moving | 1u << i);
  p.rank_lanes = rank_lanes(p.layout == Layout::contiguous ? 0 : l.rank);
  return l;
}

/// `vectors`: of a row, where the kernel goes by rows; else 0.
void bind_shape(Encoder& encoder, const Launch& l, std::uint64_t vectors) {
  encoder.value(static_cast<std::int32_t>(l.rank));
  bind_lanes(encoder, l.size.data(), l.problem.rank_lanes, l.problem.wide_index);
  std::array<std::int64_t, 16> divisors{};
  set_divisors(l.size.data(), l.rank, divisors.data());
  if (vectors > 0) divisors[0] = static_cast<std::int64_t>(offsets_divisor(vectors));
  bind_lanes(encoder, divisors.data(), l.problem.rank_lanes, true);
  for (std::size_t k = 0; k < l.strides.size(); ++k) bind_lanes(encoder, l.stride.data() + 16 * k, l.problem.rank_lanes, l.problem.wide_index);
}

void launch(const Launch& l, const Dims& sizes, const ExprFunction& f, std::span<const double> params, Runtime& runtime, const MapOptions& options,
            const Stream& stream) {
  const auto n = static_cast<std::uint64_t>(numel(sizes));
  const BuiltPlan& plan = runtime.plans().find<BuiltPlan>("map", l.problem, options.implementation, [&] {
    KernelPlan selected = select(runtime.traits(), l.problem, options.implementation);
    std::span<const DType> dtypes(l.problem.dtypes);
    check_byte_selects(runtime.traits(), f, dtypes.first(l.outputs.size()), dtypes.subspan(l.outputs.size(), l.inputs.size()), "map");
    // With kinds of lanes a generator's state is read once for all of them.
    const std::vector<LaneKind> lanes(l.problem.random ? l.inputs.size() + 1 : 0, LaneKind::any);
    // Captured tensors are read by vectors where their places go on along a row.
    std::vector<LaneKind> position_lanes;
    constexpr std::size_t kMostMoving = 8;
    if (selected.tuning.local == 1 && selected.layout != Layout::strided && !f.body()->buffers.empty() && !l.problem.random &&
        l.problem.positions <= kMostMoving)
      for (unsigned k = 0; k < l.problem.positions; ++k) position_lanes.push_back((l.problem.moving >> k & 1) != 0 ? LaneKind::consecutive : LaneKind::same);
    PrintedExpr printed = print_opencl(f, dtypes.first(l.outputs.size()), dtypes.subspan(l.outputs.size(), l.inputs.size()),
                                       {.random = l.problem.random, .lanes = lanes, .position_lanes = position_lanes});
    selected.expression = print_operands(l.outputs.size(), l.inputs.size(), printed.positions.size(), f.body()->buffers.size()) + printed.text;
    // A thread has a group for itself on CPUs. Groups of several items have other items to compute meanwhile.
    const bool pieces = takes_pieces(runtime.traits(), l.problem) && selected.entry == kStrided;
    if (pieces) selected.expression += print_fetches(l.outputs.size(), dtypes.subspan(l.outputs.size(), l.inputs.size()));
    if (const int sides = selected.tuning.local == 1 && (selected.layout != Layout::strided || pieces) ? sides_of(f) : 1; sides > 1) {
      selected.defines.set("CLUTCH_SIDES", sides);
      selected.expression += print_side_by_side(sides, f, dtypes.first(l.outputs.size()), dtypes.subspan(l.outputs.size(), l.inputs.size()));
    }
    return build_plan(runtime, selected);
  });
  std::uint64_t bytes = 0;
  for (const Tensor& t : l.outputs) bytes += t.nbytes();
  for (const Tensor& t : l.inputs) bytes += t.nbytes();
  const std::uint64_t tile = plan.tuning.tile, inner = static_cast<std::uint64_t>(l.size[0]), width = static_cast<std::uint64_t>(plan.tuning.width);
  const std::uint64_t vectors = plan.layout == Layout::rows ? (inner + width - 1) / width : 0;
  Encoder encoder(stream, "map");
  for (const Tensor& t : l.outputs) encoder.output(t);
  for (const Tensor& t : l.inputs) encoder.input(t);
  encoder.value(n);
  if (plan.layout == Layout::contiguous)
    encoder.value(static_cast<std::uint32_t>(worth_streaming(claimed_traits(runtime.device()), bytes)));
  else
    bind_shape(encoder, l, vectors);
  bind_extra(encoder, *f.body(), params);
  if (encoder.asks_for_meaning()) encoder.means(pointwise_meaning(f, params, static_cast<int>(l.outputs.size()), static_cast<int>(l.inputs.size()), sizes));
  const bool shares = vectors > 0 && plan.tuning.local > 1;
  const std::uint64_t units = shares ? n / inner * vectors : n, each = shares ? CLUTCH_UNITS_OF_TILE(tile) : tile;
  encoder.flops(f.body()->operations * static_cast<double>(n)).dispatch(plan.kernel, tile_geometry((units + each - 1) / each, plan.tuning.local));
}

void run(std::span<const Tensor> outputs, const ExprFunction& f, std::span<const Tensor> given, std::span<const double> params, const Checked& c,
         const MapOptions& options, const Stream& stream) {
  check_implementation(options.implementation, "map", kImplementations);
  std::int64_t n = numel(c.sizes);
  if (n == 0) return;
  std::vector<Tensor> inputs = as_traced(given, stream);
  Launch l = arrange({outputs.begin(), outputs.end()}, inputs, c.sizes, f);
  if (const MapProblem& p = l.problem; p.layout != Layout::contiguous && options.implementation.empty() && copies_pay(c.runtime->traits(), n)) {
    bool rows = true, contiguous = true;  // of the outputs
    for (std::size_t k = 0; k < outputs.size(); ++k) rows = rows && l.stride[16 * k] == 1, contiguous = contiguous && outputs[k].is_contiguous();
    // Inputs that are adjacent along another dimension than the outputs are copied into rows. Pieces take elements of a cache line one by one. Short rows that
    // draw numbers become one long row.
    const bool one_row = p.random && p.short_rows && p.positions == 0 && contiguous;
    const std::int64_t most = p.pieces ? 16 : 1;
    bool copied = false;
    for (std::size_t k = 0; k < inputs.size() && rows && (one_row || p.pieces || !p.short_rows); ++k)
      if (one_row || l.stride[16 * (outputs.size() + k)] > most) inputs[k] = inputs[k].expand(c.sizes).contiguous(stream), copied = true;
    if (copied) l = arrange({outputs.begin(), outputs.end()}, inputs, c.sizes, f);
  }
  if (fits(l, *f.body())) return launch(l, c.sizes, f, params, *c.runtime, options, stream);
  // The shapes need too many arguments. Contiguous copies need no shapes.
  std::vector<Tensor> dense_outputs;
  for (const Tensor& t : outputs) dense_outputs.push_back(empty(c.sizes, {.dtype = t.dtype(), .device = stream.device()}, stream));
  for (Tensor& t : inputs) t = t.expand(c.sizes).contiguous(stream);
  Launch dense = arrange(dense_outputs, inputs, c.sizes, f);
  if (!fits(dense, *f.body()))
    refuse(ErrorCode::invalid_argument, "tensors, params and captured tensors must be at most 64 arguments and 1024 bytes of them, got more");
  launch(dense, c.sizes, f, params, *c.runtime, options, stream);
  for (std::size_t i = 0; i < outputs.size(); ++i) copy_(outputs[i], dense_outputs[i], {}, stream);
}

}  // namespace

namespace {

/// The function with the state of the default generator, if it draws from that.
ExprFunction with_default_generator(const ExprFunction& f, std::span<const Tensor> outputs, std::span<const Tensor> inputs, const Stream& given) {
  std::vector<int> blank;
  if (!f.empty())
    for (int k : generator_states(*f.body()))
      if (!f.body()->tensors[static_cast<std::size_t>(k)].defined()) blank.push_back(k);
  std::vector<const Tensor*> all;
  for (std::span<const Tensor> list : {outputs, inputs})
    for (const Tensor& t : list) all.push_back(&t);
  if (blank.empty() || all.empty()) return f;
  Runtime& runtime = common_runtime(all, "map");
  const Tensor state = default_generator({}, resolve_stream(given, runtime, "map")).impl()->state();
  auto body = std::make_shared<ExprBody>(*f.body());
  for (int k : blank) body->tensors[static_cast<std::size_t>(k)] = state;
  return ExprFunction(std::move(body));
}

/// Advances the generators that the function drew n numbers from.
void advance_generators(const ExprBody& body, std::uint64_t n, Runtime& runtime, const Stream& stream) {
  bool wide = false;
  for (const ExprStep& s : body.steps) wide = wide || s.op == ExprOp::philox_wide;
  const Aside counts;
  for (int k : generator_states(body)) advance_generator(runtime, body.tensors[static_cast<std::size_t>(k)], random_blocks(n, wide), stream, "map");
}

}  // namespace

std::shared_ptr<const Meaning> pointwise_meaning(const ExprFunction& f, std::span<const double> params, int outputs, int inputs, const Dims& sizes) {
  auto body = std::make_shared<ExprBody>(*f.body());
  body->param_values.assign(params.begin(), params.end());
  body->tensors.assign(body->tensors.size(), Tensor());  // a graph knows whether anybody else has them
  auto meaning = std::make_shared<Meaning>();
  meaning->function = ExprFunction(std::move(body));
  meaning->elements = outputs, meaning->inputs = inputs, meaning->most_tensors = kMaxMapOperands;
  meaning->sizes = sizes;
  meaning->launch = [](const Meaning::Call& call) {
    const ExprFunction& of = call.function;
    const Checked c = validate(call.elements, of, call.inputs);
    const auto l = arrange({call.elements.begin(), call.elements.end()}, {call.inputs.begin(), call.inputs.end()}, c.sizes, of);
    if (!fits(l, *of.body())) throw Error(ErrorCode::not_supported, "map", "a launch must have at most 64 arguments and 1024 bytes of them, got more");
    launch(l, c.sizes, of, of.body()->param_values, *c.runtime, {}, call.stream);
  };
  return meaning;
}

namespace {

/// Computes a function of tensors alone by a plugin, which gets it with its params. False if none takes it.
bool mapped_by_plugin(std::span<const Tensor> outputs, const ExprFunction& f, std::span<const Tensor> inputs, std::span<const double> params, const Checked& c,
                      const MapOptions& options, const Stream& stream) {
  if (!has_plugin_implementations("map") || !is_for_plugins(f) || numel(c.sizes) == 0) return false;
  const ExprFunction given = params.empty() ? f : f.with_params(params);
  return by_plugin("map", options.implementation, {&outputs, &given, &inputs, &options, &stream}, stream);
}

}  // namespace

std::vector<Tensor> map_traced(std::span<const Tensor> given, const ExprFunction& function, std::span<const Tensor> inputs, std::span<const double> params,
                               const MapOptions& options, const Stream& given_stream) {
  const ExprFunction f = with_default_generator(function, given, inputs, given_stream);
  Checked c = validate(given, f, inputs);
  if (options.dtype.size() > 0 && options.dtype.size() != f.output_count())
    refuse(ErrorCode::invalid_argument, fmt::format("dtype must be one for each of {} outputs or none, got {}", f.output_count(), options.dtype.size()));
  Stream stream = resolve_stream(given_stream, *c.runtime, "map");
  std::vector<Tensor> outputs(given.begin(), given.end());
  for (int i = static_cast<int>(outputs.size()); i < f.output_count(); ++i) {
    DType dtype = options.dtype.size() > 0 ? options.dtype[i] : map_dtype(f, i, inputs);
    compute_dtype(dtype, "map");
    outputs.push_back(empty(c.sizes, {.dtype = dtype, .device = stream.device()}, stream));
  }
  if (mapped_by_plugin(outputs, f, inputs, params, c, options, stream)) return outputs;
  run(outputs, f, inputs, params, c, options, stream);
  if (const std::int64_t n = numel(c.sizes); n > 0) advance_generators(*f.body(), static_cast<std::uint64_t>(n), *c.runtime, stream);
  return outputs;
}

}  // namespace detail

DType map_dtype(const ExprFunction& f, int output, std::span<const Tensor> inputs) {
  detail::OpName named("map_dtype");
  DType traced = f.output_dtype(output);
  const detail::ExprStep& step = f.body()->steps[static_cast<std::size_t>(f.body()->outputs[static_cast<std::size_t>(output)])];
  if (step.op == detail::ExprOp::cast) return step.target;
  if (traced == DType::boolean || inputs.empty()) return traced;
  std::vector<const Tensor*> pointers;
  for (const Tensor& t : inputs)
    if (is_floating(t.dtype()) == is_floating(traced) && kind(t.dtype()) != DTypeKind::boolean) pointers.push_back(&t);
  if (pointers.empty()) return traced;
  DType result = result_type(pointers);
  return detail::compute_dtype(result, "map") == traced ? result : traced;
}

std::vector<Tensor> map(const ExprFunction& f, std::span<const Tensor> inputs, const MapOptions& options, const Stream& stream) {
  detail::OpName named("map");
  std::span<const double> params;
  if (!f.empty()) params = f.body()->param_values;
  return detail::map_traced({}, f, inputs, params, options, stream);
}

void map_out(std::span<const Tensor> outputs, const ExprFunction& f, std::span<const Tensor> inputs, const MapOptions& options, const Stream& stream) {
  detail::OpName named("map_out");
  if (outputs.empty()) throw Error(ErrorCode::invalid_argument, "map", "there must be an output, got none");
  std::span<const double> params;
  if (!f.empty()) params = f.body()->param_values;
  detail::map_traced(outputs, f, inputs, params, options, stream);
}

}}  // namespace clutch::v0
