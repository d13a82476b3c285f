// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/copy.hpp>
#include <clutch/ops/fill.hpp>
#include <clutch/ops/reduce.hpp>
#include <clutch/ops/selective_scan.hpp>

#include "encode/args.hpp"
#include "encode/cost.hpp"
#include "ops/out_form.hpp"
#include "ops/selective_scan_plan.hpp"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"

#include <array>
#include <limits>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

constexpr const char* kForward = "selective_scan";
constexpr const char* kBackward = "selective_scan_backward";
constexpr std::string_view kGroups = "selective_scan_backward_groups";
constexpr std::int64_t kMostStates = 256;

// validate ----------------------------------------------------------------------------------------------------------

/// A call's tensors, all defined but those of options.
struct Call {
  const Tensor &x, &delta, &a, &b, &c;
  const SelectiveScanOptions& options;
  std::string_view op;
};

/// A tensor with the shape and dtype that it must have.
struct Needed {
  const char* what;
  const Tensor* tensor;
  Dims sizes;
  DType dtype;
};

void check(const Needed& n, std::string_view op) {
  if (!(n.tensor->sizes() == n.sizes))
    throw Error(ErrorCode::invalid_shape, op, fmt::format("{} must have the shape {}, got {}", n.what, to_string(n.sizes), to_string(n.tensor->sizes())));
  if (n.tensor->dtype() != n.dtype)
    throw Error(ErrorCode::invalid_dtype, op, fmt::format("{} must be {}, got {}", n.what, name(n.dtype), name(n.tensor->dtype())));
}

bool is_storage(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

Dims state_sizes(const Call& call) { return {call.x.sizes()[0], call.x.sizes()[2], call.a.sizes()[1]}; }

/// Errors: all of a call's inputs. `more`: tensors that belong to the call, too, and may be undefined.
Runtime& validate(const Call& call, std::span<const Tensor* const> more) {
  const SelectiveScanOptions& o = call.options;
  std::vector<const Tensor*> all{&call.x, &call.delta, &call.a, &call.b, &call.c};
  for (const Tensor* t : {&o.skip, &o.gate, &o.delta_bias, &o.initial_state})
    if (t->defined()) all.push_back(t);
  for (const Tensor* t : more)
    if (t->defined()) all.push_back(t);
  Runtime& runtime = common_runtime(all, call.op);
  if (call.x.rank() != 3)
    throw Error(ErrorCode::invalid_shape, call.op, fmt::format("x must have the shape (batch, length, channels), got {}", to_string(call.x.sizes())));
  if (call.a.rank() != 2 || call.a.sizes()[1] < 1 || call.a.sizes()[1] > kMostStates)
    throw Error(ErrorCode::invalid_shape, call.op,
                fmt::format("a must have the shape (channels, states) with 1 to {} states, got {}", kMostStates, to_string(call.a.sizes())));
  for (const Tensor* t : {&call.x, &call.b, &call.c})
    if (!is_storage(t->dtype())) throw Error(ErrorCode::invalid_dtype, call.op, fmt::format("x, b and c must be f32, f16 or bf16, got {}", name(t->dtype())));
  const std::int64_t batch = call.x.sizes()[0], length = call.x.sizes()[1], channels = call.x.sizes()[2], states = call.a.sizes()[1];
  check({"delta", &call.delta, call.x.sizes(), call.x.dtype()}, call.op);
  check({"a", &call.a, {channels, states}, DType::f32}, call.op);
  check({"b", &call.b, {batch, length, states}, call.b.dtype()}, call.op);
  check({"c", &call.c, {batch, length, states}, call.c.dtype()}, call.op);
  if (o.skip.defined()) check({"skip", &o.skip, {channels}, DType::f32}, call.op);
  if (o.gate.defined()) check({"gate", &o.gate, call.x.sizes(), call.x.dtype()}, call.op);
  if (o.delta_bias.defined()) check({"delta_bias", &o.delta_bias, {channels}, DType::f32}, call.op);
  if (o.initial_state.defined()) check({"initial_state", &o.initial_state, {batch, channels, states}, DType::f32}, call.op);
  return runtime;
}

// select ------------------------------------------------------------------------------------------------------------

/// States that a kernel has, with those past the last one.
constexpr std::uint64_t states_of(const SelectiveScanProblem& p) { return 16 * static_cast<std::uint64_t>(p.sixteens); }

std::string takes_all(const DeviceTraits&, const SelectiveScanProblem&) { return {}; }

std::string fits_groups(const DeviceTraits& traits, const SelectiveScanProblem& p) {
  if (std::string why = refuses_long_loops(traits); !why.empty()) return why;
  if (std::string why = refuses_group_items(traits, SELECTIVE_SCAN_ITEMS); !why.empty()) return why;
  return refuses_local_bytes(traits, 4 * 2 * SELECTIVE_SCAN_ROW * states_of(p));
}

constexpr std::array<Implementation<SelectiveScanProblem>, 1> kForwards{{{"selective_scan_forward", takes_all}}};
constexpr std::array<Implementation<SelectiveScanProblem>, 2> kBackwards{{
    {kGroups, fits_groups, of_groups<fits_groups>},
    {"selective_scan_backward", takes_all},
}};

}  // namespace

int selective_scan_steps(std::string_view entry) { return entry == kGroups ? 3 : 8; }

KernelPlan select(const DeviceTraits& traits, const SelectiveScanProblem& p, std::string_view forced) {
  const auto& chosen = p.backward ? choose<SelectiveScanProblem>(kBackwards, traits, p, forced, kBackward)
                                  : choose<SelectiveScanProblem>(kForwards, traits, p, forced, kForward);
  KernelPlan plan{.stem = kForward, .entry = chosen.name, .tuning = row_tuning(traits), .keeps = KernelPlan::Keeps::most};
  if (chosen.name == kGroups) plan.tuning = {.local = SELECTIVE_SCAN_ITEMS};
  // Neighbouring items have neighbouring channels: each of them one lane.
  if (plan.tuning.local > 1) plan.tuning.width = 1;
  set_lanes(plan, traits, false, 1, p.wide_index, 4);
  plan.defines.set_text("T_NAME", name(p.dtype))
      .set_text("O_NAME", name(p.dtype))
      .set_type("A", DType::f32)
      .set("CLUTCH_STATES", static_cast<std::int64_t>(states_of(p)))
      .set("CLUTCH_STEPS", selective_scan_steps(chosen.name));
  return plan;
}

namespace {

// encode ------------------------------------------------------------------------------------------------------------

/// The tensor itself if channels are neighbours, else a contiguous copy.
Tensor rows_of(const Tensor& t, const Stream& stream) {
  if (!t.defined() || t.sizes()[2] == 1 || t.strides()[2] == 1) return t;
  return t.contiguous(stream);
}

/// b or c as the kernel takes them: f32, in rows of `states` neighbours on addresses that are multiples of 16 bytes.
Tensor shared_rows(const Tensor& t, std::int64_t states, const Stream& stream) {
  const bool fits = t.dtype() == DType::f32 && t.sizes()[2] == states && t.strides()[2] == 1 && t.strides()[0] % 4 == 0 && t.strides()[1] % 4 == 0 &&
                    (t.storage()->offset() + t.byte_offset()) % 16 == 0;
  if (fits) return t;
  const std::int64_t count = t.sizes()[2];
  Tensor rows = empty({t.sizes()[0], t.sizes()[1], states}, {.dtype = DType::f32, .device = t.device()}, stream);
  copy_(rows.slice(2, 0, count), t, {}, stream);
  if (count < states) fill_(rows.slice(2, count, states), 0, {}, stream);
  return rows;
}

constexpr std::uint32_t flag(bool is_set, std::uint32_t bit) { return is_set ? bit : 0u; }

Tensor contiguous(const Tensor& t, const Stream& stream) { return t.defined() ? t.contiguous(stream) : t; }

/// What both directions bind, made ready. Options that are not given are undefined.
struct Ready {
  Tensor x, delta, b, c, skip, gate, delta_bias, initial_state;
  SelectiveScanProblem problem;
  SelectiveScanArgs args{};
};

/// `y`: the result or its gradient, whose strides go along. `written`: what results of x's shape are written to.
Ready ready(const Call& call, const Tensor& y, const Tensor& written, const Stream& stream) {
  const SelectiveScanOptions& o = call.options;
  const std::int64_t states = (call.a.sizes()[1] + 15) / 16 * 16;
  Ready r{.x = rows_of(call.x, stream),
          .delta = rows_of(call.delta, stream),
          .b = shared_rows(call.b, states, stream),
          .c = shared_rows(call.c, states, stream),
          .skip = contiguous(o.skip, stream),
          .gate = rows_of(o.gate, stream),
          .delta_bias = contiguous(o.delta_bias, stream),
          .initial_state = contiguous(o.initial_state, stream),
          .problem = {.dtype = call.x.dtype(), .sixteens = static_cast<std::uint8_t>(states / 16)}};
  SelectiveScanArgs& args = r.args;
  args.batch = static_cast<std::uint64_t>(call.x.sizes()[0]);
  args.length = static_cast<std::uint64_t>(call.x.sizes()[1]);
  args.channels = static_cast<std::uint64_t>(call.x.sizes()[2]);
  args.y_batch = y.strides()[0], args.y_step = y.strides()[1];
  args.x_batch = r.x.strides()[0], args.x_step = r.x.strides()[1];
  args.delta_batch = r.delta.strides()[0], args.delta_step = r.delta.strides()[1];
  if (r.gate.defined()) args.gate_batch = r.gate.strides()[0], args.gate_step = r.gate.strides()[1];
  args.b_batch = r.b.strides()[0], args.b_step = r.b.strides()[1];
  args.c_batch = r.c.strides()[0], args.c_step = r.c.strides()[1];
  args.a_row = call.a.strides()[0], args.a_state = call.a.strides()[1];
  args.states = static_cast<std::int32_t>(call.a.sizes()[1]);
  args.flags = flag(o.delta_softplus, SELECTIVE_SCAN_SOFTPLUS) | flag(o.skip.defined(), SELECTIVE_SCAN_SKIP) | flag(o.gate.defined(), SELECTIVE_SCAN_GATE) |
               flag(o.delta_bias.defined(), SELECTIVE_SCAN_BIAS) | flag(o.initial_state.defined(), SELECTIVE_SCAN_INITIAL);
  // Numbers of tasks are divided as offsets are.
  r.problem.wide_index = has_wide_offsets({&y, &written, &r.x, &r.delta, &r.gate, &r.b, &r.c}) ||
                         args.batch * selective_scan_padded(args.channels) > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max());
  return r;
}

/// Binds the inputs; in the place of one that the call has not, x.
void bind_inputs(Encoder& encoder, const Call& call, const Ready& r) {
  auto either = [&](const Tensor& t) -> const Tensor& { return t.defined() ? t : r.x; };
  encoder.input(r.x).input(r.delta).input(call.a).input(r.b).input(r.c);
  encoder.input(either(r.skip)).input(either(r.gate)).input(either(r.delta_bias)).input(either(r.initial_state));
  bind_args(encoder, r.args);
}

double bytes_of(const Call& call) {
  double bytes = 0;
  const SelectiveScanOptions& o = call.options;
  for (const Tensor* t : {&call.x, &call.delta, &call.a, &call.b, &call.c, &o.skip, &o.gate, &o.delta_bias, &o.initial_state})
    if (t->defined()) bytes += distinct_bytes(*t);
  return bytes;
}

void run(Runtime& runtime, const SelectiveScanResult& out, const Call& call, const Stream& stream) {
  check_implementation(call.options.implementation, kForward, kForwards);
  const bool has_state = out.state.defined();
  if (call.x.numel() == 0) {  // no sequence, or sequences of no elements
    if (!has_state || out.state.numel() == 0) return;
    if (call.options.initial_state.defined())
      copy_(out.state, call.options.initial_state, {}, stream);
    else
      fill_(out.state, 0, {}, stream);
    return;
  }
  if (by_plugin(kForward, call.options.implementation, {&out, &call.x, &call.delta, &call.a, &call.b, &call.c, &call.options, &stream}, stream)) return;
  // Results that do not lie as the kernel writes them are made apart.
  const bool lies = out.y.sizes()[2] == 1 || out.y.strides()[2] == 1;
  const Tensor y = lies ? out.y : empty(out.y.sizes(), {.dtype = out.y.dtype(), .device = stream.device()}, stream);
  const Tensor state = !has_state || out.state.is_contiguous() ? out.state : empty(out.state.sizes(), {.dtype = DType::f32, .device = stream.device()}, stream);
  Ready r = ready(call, y, y, stream);
  if (has_state) r.args.flags |= SELECTIVE_SCAN_STATE;
  const BuiltPlan& plan = plan_for(runtime, kForward, r.problem, call.options.implementation);
  Encoder encoder(stream, kForward);
  encoder.output(y);
  encoder.output(has_state ? state : y);
  bind_inputs(encoder, call, r);
  const double each = static_cast<double>(call.x.numel()) * static_cast<double>(call.a.sizes()[1]);
  // Of a state: the exponent and its product, a fma with two products, a fma of y.
  encoder.flops(7 * each).moves(bytes_of(call) + distinct_bytes(out.y) + (has_state ? distinct_bytes(out.state) : 0));
  const std::uint64_t tasks = r.args.batch * selective_scan_panels(r.args.channels, static_cast<std::uint64_t>(plan.tuning.width));
  const Geometry geometry = item_geometry(tasks, plan.tuning.local);
  check_loops(runtime.traits(), kForward, tasks, geometry, static_cast<double>(r.args.length) * (static_cast<double>(states_of(r.problem)) / 2 + 1));
  encoder.dispatch(plan.kernel, geometry);
  if (!lies) copy_(out.y, y, {}, stream);
  if (has_state && !out.state.is_contiguous()) copy_(out.state, state, {}, stream);
}

/// Gradients, as many as are asked for, freshly made.
SelectiveScanGradients gradients(Runtime& runtime, const SelectiveScanResult& grad, const Call& call, const SelectiveScanGradients& asked,
                                 const Stream& stream) {
  const SelectiveScanOptions& o = call.options;
  auto make = [&](const Tensor& like, bool is_asked) {
    return is_asked ? empty(like.sizes(), {.dtype = like.dtype(), .device = stream.device()}, stream) : Tensor();
  };
  SelectiveScanGradients made{.x = make(call.x, true),
                              .delta = make(call.delta, true),
                              .a = make(call.a, asked.a.defined()),
                              .b = make(call.b, asked.b.defined()),
                              .c = make(call.c, asked.c.defined()),
                              .skip = make(o.skip, asked.skip.defined()),
                              .gate = make(o.gate, o.gate.defined()),
                              .delta_bias = make(o.delta_bias, asked.delta_bias.defined()),
                              .initial_state = make(o.initial_state, asked.initial_state.defined())};
  if (call.x.numel() == 0) {
    for (const Tensor* t : {&made.a, &made.b, &made.c, &made.skip, &made.delta_bias})
      if (t->defined() && t->numel() > 0) fill_(*t, 0, {}, stream);
    if (made.initial_state.defined() && made.initial_state.numel() > 0) {
      if (grad.state.defined())
        copy_(made.initial_state, grad.state, {}, stream);
      else
        fill_(made.initial_state, 0, {}, stream);
    }
    return made;
  }
  if (by_plugin(kBackward, o.implementation, {&made, &grad, &call.x, &call.delta, &call.a, &call.b, &call.c, &o, &stream}, stream)) return made;
  const Tensor of_y = rows_of(grad.y, stream), of_state = contiguous(grad.state, stream);
  Ready r = ready(call, of_y, made.x, stream);
  r.problem.backward = true;
  const bool wants_shared = made.b.defined() || made.c.defined();
  r.args.flags |= flag(of_state.defined(), SELECTIVE_SCAN_STATE) | flag(made.initial_state.defined(), SELECTIVE_SCAN_TO_INITIAL) |
                  flag(wants_shared, SELECTIVE_SCAN_TO_SHARED);
  const BuiltPlan& plan = runtime.plans().find<BuiltPlan>(kBackward, r.problem, o.implementation, [&] {
    const KernelPlan selected = select(runtime.traits(), r.problem, o.implementation);
    if (selected.entry != kGroups) return build_plan(runtime, selected);
    return build_groups(runtime, selected, select(runtime.traits(), r.problem, "selective_scan_backward"), SELECTIVE_SCAN_ITEMS, !o.implementation.empty());
  });
  const bool groups = plan.entry == kGroups;
  const std::uint64_t batch = r.args.batch, length = r.args.length, states = states_of(r.problem), padded = selective_scan_padded(r.args.channels),
                      blocks = selective_scan_blocks(r.args.channels),
                      chunks = selective_scan_chunks(length, static_cast<std::uint64_t>(selective_scan_steps(plan.entry)));
  auto scratch = [&](std::uint64_t count) { return empty({static_cast<std::int64_t>(count)}, {.dtype = DType::f32, .device = stream.device()}, stream); };
  const Tensor kept = scratch(selective_scan_kept(batch, chunks, 0, states, padded)), own = scratch(selective_scan_own(batch, states, padded)),
               shared = scratch(wants_shared ? selective_scan_sums(batch, length, 0, blocks, states) : 1);
  {
    Encoder encoder(stream, kBackward);
    encoder.output(made.x).output(made.delta).output(made.gate.defined() ? made.gate : made.x);
    encoder.output(made.initial_state.defined() ? made.initial_state : made.x).inout(kept).inout(shared).output(own);
    encoder.input(of_y).input(of_state.defined() ? of_state : of_y);
    bind_inputs(encoder, call, r);
    const double each = static_cast<double>(call.x.numel()) * static_cast<double>(call.a.sizes()[1]);
    encoder.flops(27 * each).moves(bytes_of(call) + distinct_bytes(grad.y) + 3 * distinct_bytes(call.x) + 2 * distinct_bytes(kept) + distinct_bytes(shared));
    const std::uint64_t width = groups ? SELECTIVE_SCAN_ITEMS : SELECTIVE_SCAN_BLOCK, tasks = batch * selective_scan_panels(r.args.channels, width);
    const Geometry geometry = groups ? tile_geometry(tasks, SELECTIVE_SCAN_ITEMS) : item_geometry(tasks, plan.tuning.local);
    // The elements three times, for each panel of a block.
    if (!groups)
      check_loops(runtime.traits(), kBackward, tasks, geometry,
                  3 * static_cast<double>(length) * (static_cast<double>(states_of(r.problem)) / 2 + 2) *
                      (SELECTIVE_SCAN_BLOCK / static_cast<double>(plan.tuning.width)));
    encoder.dispatch(plan.kernel, geometry);
  }
  const auto signed_of = [](std::uint64_t n) { return static_cast<std::int64_t>(n); };
  const std::int64_t channels = call.x.sizes()[2], n = call.a.sizes()[1];
  const Tensor by_block = wants_shared ? shared.reshape({signed_of(batch), signed_of(length), signed_of(blocks), 2, signed_of(states)}) : Tensor();
  if (made.b.defined()) sum_out(made.b, by_block.select(3, 0).slice(3, 0, n), {.dims = {2}}, stream);
  if (made.c.defined()) sum_out(made.c, by_block.select(3, 1).slice(3, 0, n), {.dims = {2}}, stream);
  const Tensor by_sequence = own.reshape({signed_of(batch), signed_of(states + 2), signed_of(padded)}).slice(2, 0, channels);
  if (made.a.defined()) sum_out(made.a.transpose(0, 1), by_sequence.slice(1, 0, n), {.dims = {0}}, stream);
  if (made.skip.defined()) sum_out(made.skip, by_sequence.select(1, signed_of(states)), {.dims = {0}}, stream);
  if (made.delta_bias.defined()) sum_out(made.delta_bias, by_sequence.select(1, signed_of(states) + 1), {.dims = {0}}, stream);
  return made;
}

Runtime& validate_gradients(const SelectiveScanResult& grad, const Call& call, const SelectiveScanGradients& out) {
  const SelectiveScanOptions& o = call.options;
  const std::array<const Tensor*, 11> more{&grad.y,   &grad.state, &out.x,          &out.delta,        &out.a, &out.b, &out.c,
                                           &out.skip, &out.gate,   &out.delta_bias, &out.initial_state};
  if (!grad.y.defined()) throw Error(ErrorCode::invalid_argument, call.op, "the gradient of y must be defined, got an undefined tensor");
  Runtime& runtime = validate(call, more);
  check_implementation(o.implementation, kBackward, kBackwards);
  check({"the gradient of y", &grad.y, call.x.sizes(), call.x.dtype()}, call.op);
  if (grad.state.defined()) check({"the gradient of the state", &grad.state, state_sizes(call), DType::f32}, call.op);
  const std::pair<const Tensor*, const Tensor*> optional[] = {
      {&out.skip, &o.skip}, {&out.gate, &o.gate}, {&out.delta_bias, &o.delta_bias}, {&out.initial_state, &o.initial_state}};
  for (const auto& [gradient, of] : optional)
    if (gradient->defined() && !of->defined())
      throw Error(ErrorCode::invalid_argument, call.op,
                  "gradients must be of tensors that the call has, got one of skip, gate, delta_bias or initial_state without it");
  return runtime;
}

}  // namespace
}  // namespace detail

void selective_scan_out(const SelectiveScanResult& out, const Tensor& x, const Tensor& delta, const Tensor& a, const Tensor& b, const Tensor& c,
                        const SelectiveScanOptions& options, const Stream& given) {
  detail::OpName named("selective_scan_out");
  const detail::Call call{x, delta, a, b, c, options, "selective_scan_out"};
  if (!out.y.defined()) throw Error(ErrorCode::invalid_argument, call.op, "y must be defined, got an undefined tensor");
  const std::array<const Tensor*, 2> more{&out.y, &out.state};
  detail::Runtime& runtime = detail::validate(call, more);
  detail::check_out(out.y, x.sizes(), x.dtype(), "y", call.op);
  if (out.state.defined()) {
    detail::check_out(out.state, detail::state_sizes(call), DType::f32, "state", call.op);
    detail::check_apart(out.state, out.y, call.op);
  }
  for (const Tensor* t : {&x, &delta, &options.gate})
    if (t->defined()) detail::check_overlap(out.y, *t, call.op);
  for (const Tensor* t : {&a, &b, &c, &options.skip, &options.delta_bias, &options.initial_state})
    if (t->defined()) detail::check_apart(out.y, *t, call.op);
  for (const Tensor* t : {&x, &delta, &a, &b, &c, &options.skip, &options.gate, &options.delta_bias, &options.initial_state})
    if (t->defined() && out.state.defined()) detail::check_apart(out.state, *t, call.op);
  detail::run(runtime, out, call, detail::resolve_stream(given, runtime, call.op));
}

SelectiveScanResult selective_scan(const Tensor& x, const Tensor& delta, const Tensor& a, const Tensor& b, const Tensor& c, const SelectiveScanOptions& options,
                                   const Stream& given) {
  detail::OpName named("selective_scan");
  const detail::Call call{x, delta, a, b, c, options, "selective_scan"};
  detail::Runtime& runtime = detail::validate(call, {});
  const Stream stream = detail::resolve_stream(given, runtime, call.op);
  SelectiveScanResult result{.y = empty(x.sizes(), {.dtype = x.dtype(), .device = stream.device()}, stream),
                             .state = empty(detail::state_sizes(call), {.dtype = DType::f32, .device = stream.device()}, stream)};
  detail::run(runtime, result, call, stream);
  return result;
}

SelectiveScanGradients selective_scan_backward(const SelectiveScanResult& grad, const Tensor& x, const Tensor& delta, const Tensor& a, const Tensor& b,
                                               const Tensor& c, const SelectiveScanOptions& options, const Stream& given) {
  detail::OpName named("selective_scan_backward");
  const detail::Call call{x, delta, a, b, c, options, "selective_scan_backward"};
  detail::Runtime& runtime = detail::validate_gradients(grad, call, {});
  const SelectiveScanGradients all{x, delta, a, b, c, options.skip, options.gate, options.delta_bias, options.initial_state};
  return detail::gradients(runtime, grad, call, all, detail::resolve_stream(given, runtime, call.op));
}

void selective_scan_backward_out(const SelectiveScanGradients& out, const SelectiveScanResult& grad, const Tensor& x, const Tensor& delta, const Tensor& a,
                                 const Tensor& b, const Tensor& c, const SelectiveScanOptions& options, const Stream& given) {
  detail::OpName named("selective_scan_backward_out");
  const detail::Call call{x, delta, a, b, c, options, "selective_scan_backward_out"};
  detail::Runtime& runtime = detail::validate_gradients(grad, call, out);
  const Stream stream = detail::resolve_stream(given, runtime, call.op);
  const SelectiveScanGradients made = detail::gradients(runtime, grad, call, out, stream);
  const detail::Stored results[] = {{out.x, made.x, "the gradient of x"},
                                    {out.delta, made.delta, "the gradient of delta"},
                                    {out.a, made.a, "the gradient of a"},
                                    {out.b, made.b, "the gradient of b"},
                                    {out.c, made.c, "the gradient of c"},
                                    {out.skip, made.skip, "the gradient of skip"},
                                    {out.gate, made.gate, "the gradient of the gate"},
                                    {out.delta_bias, made.delta_bias, "the gradient of delta_bias"},
                                    {out.initial_state, made.initial_state, "the gradient of initial_state"}};
  detail::store(results, call.op, stream);
}

}}  // namespace clutch::v0
