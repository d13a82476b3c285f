// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/copy.hpp>
#include <clutch/ops/fill.hpp>
#include <clutch/ops/optim.hpp>

#include "encode/args.hpp"
#include "ops/optim/gradients.hpp"
#include "ops/optim/group.hpp"
#include "runtime/storage.hpp"
#include "support/computed_number.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

using optim::Numerics;
using optim::Rounding;

static_assert(static_cast<int>(Numerics::source) == OPTIM_SOURCE && static_cast<int>(Numerics::torch_cpu) == OPTIM_TORCH_CPU);
static_assert(static_cast<int>(Numerics::f32) == OPTIM_F32 && static_cast<int>(Numerics::composed) == OPTIM_COMPOSED);
static_assert(static_cast<int>(Rounding::nearest) == OPTIM_NEAREST && static_cast<int>(Rounding::stochastic) == OPTIM_STOCHASTIC);
static_assert(static_cast<int>(Rounding::kahan) == OPTIM_KAHAN);

// select ------------------------------------------------------------------------------------------------------------

bool has_f64_scalars(const DeviceTraits& traits, const OptimProblem& p) {
  return p.numerics != Numerics::f32 && !(p.numerics == Numerics::automatic && !traits.fp64);
}

std::string computes(const DeviceTraits& traits, const OptimProblem& p) {
  if (std::string why = refuses_fp64(traits, p.dtype == DType::f64); !why.empty()) return why;
  return has_f64_scalars(traits, p) && !traits.fp64 ? "needs fp64 for scalars of these numerics, the device has none" : "";
}

constexpr std::array<Implementation<OptimProblem>, 1> kImplementations{{{"optim_step", computes}}};

}  // namespace

std::span<const Implementation<OptimProblem>> optim_implementations() { return kImplementations; }

KernelPlan select(const DeviceTraits& traits, const OptimProblem& p, std::string_view forced) {
  const auto& chosen = choose<OptimProblem>(kImplementations, traits, p, forced, "optim::step");
  KernelPlan plan{.stem = "optim", .entry = chosen.name, .tuning = elementwise_tuning(traits)};
  bool wide = has_f64_scalars(traits, p);
  Numerics numerics = p.numerics != Numerics::automatic ? p.numerics : wide ? Numerics::source : Numerics::f32;
  if (p.numerics == Numerics::automatic && !wide) plan.note = "numerics f32: the device has no fp64";
  // If f64 scalars are combined with f32 elements, vectors are no longer than the device's native f64 vectors.
  bool mixed = numerics == Numerics::source && (p.kind == OptimKind::sgd || p.kind == OptimKind::adagrad) && p.dtype != DType::f64;
  if (mixed && plan.tuning.local == 1) plan.tuning.width = std::min(plan.tuning.width, std::max(1, traits.native_width_f64));
  set_common(plan.defines, traits, plan.tuning, 1, false);
  plan.defines.set_type("T", p.dtype).set_text("T_NAME", name(p.dtype)).set_type("S", p.state).set_text("S_NAME", name(p.state));
  plan.defines.set("CLUTCH_OPTIMIZER", static_cast<int>(p.kind)).set("CLUTCH_NUMERICS", static_cast<int>(numerics)).set("CLUTCH_STATES", p.states());
  plan.defines.set("CLUTCH_EXTRA", p.extra).set("CLUTCH_BUFFER", p.buffer).set("CLUTCH_MASTER", p.master).set("CLUTCH_SCALED", p.scaled);
  plan.defines.set("CLUTCH_ROUNDING", static_cast<int>(p.rounding));
  plan.defines.set("CLUTCH_CHUNK", static_cast<std::int64_t>(plan.tuning.tile)).set_text("SCALAR", wide ? "double" : "float");
  plan.defines.set("CLUTCH_ITEMS", static_cast<std::int64_t>(plan.tuning.local));
  if (plan.tuning.local > 1) plan.defines.set("CLUTCH_GROUPED", 1);
  if (p.listed) plan.defines.set("CLUTCH_STEP_COLUMN", 1);
  return plan;
}

namespace {

/// Names of the states, in the order of the kernel's columns.
std::vector<std::string> state_names(const OptimProblem& p) {
  std::vector<std::string> names;
  switch (p.kind) {
    case OptimKind::sgd:
      if (p.buffer) names = {"momentum_buffer"};
      break;
    case OptimKind::adam:
      names = {"exp_avg", "exp_avg_sq"};
      if (p.extra) names.emplace_back("max_exp_avg_sq");
      break;
    case OptimKind::adagrad: names = {"sum"}; break;
    case OptimKind::rmsprop:
      names = {"square_avg"};
      if (p.buffer) names.emplace_back("momentum_buffer");
      if (p.extra) names.emplace_back("grad_avg");
      break;
  }
  if (p.master) names.emplace_back("master");
  if (p.compensated()) names.emplace_back("compensation");
  return names;
}

}  // namespace

// validate ----------------------------------------------------------------------------------------------------------

void check_optim_range(bool fine, const char* op, std::string_view what, std::string_view range, double value) {
  if (!fine) throw Error(ErrorCode::invalid_argument, op, fmt::format("{} must be {}, got {}", what, range, value));
}

namespace {

/// `dtype` is the parameters'.
void check_hyper(const OptimHyper& h, DType dtype) {
  // The comparisons are false for NaN.
  check_optim_range(h.lr >= 0, h.op, "learning rate", "at least 0", h.lr);
  check_optim_range(h.eps >= 0, h.op, "epsilon", "at least 0", h.eps);
  check_optim_range(h.weight_decay >= 0, h.op, "weight_decay", "at least 0", h.weight_decay);
  switch (h.kind) {
    case OptimKind::sgd:
      check_optim_range(h.momentum >= 0, h.op, "momentum", "at least 0", h.momentum);
      if (h.nesterov && (h.momentum <= 0 || h.dampening != 0))
        throw Error(ErrorCode::invalid_argument, h.op,
                    fmt::format("Nesterov momentum must have a momentum above 0 and a dampening of 0, got {} and {}", h.momentum, h.dampening));
      break;
    case OptimKind::adam:
      check_optim_range(h.beta1 >= 0 && as_computed(h.beta1, dtype) < 1, h.op, "beta1", "in [0, 1)", h.beta1);
      check_optim_range(h.beta2 >= 0 && as_computed(h.beta2, dtype) < 1, h.op, "beta2", "in [0, 1)", h.beta2);
      break;
    case OptimKind::adagrad:
      check_optim_range(h.lr_decay >= 0, h.op, "lr_decay", "at least 0", h.lr_decay);
      check_optim_range(h.initial >= 0, h.op, "initial_accumulator_value", "at least 0", h.initial);
      break;
    case OptimKind::rmsprop:
      check_optim_range(h.alpha >= 0, h.op, "alpha", "at least 0", h.alpha);
      check_optim_range(h.momentum >= 0, h.op, "momentum", "at least 0", h.momentum);
      break;
  }
}

DType state_dtype(DType dtype, const optim::Precision& precision, const char* op) {
  using optim::StateType;
  bool small = dtype == DType::f16 || dtype == DType::bf16;
  auto refuse = [&](std::string_view must) {
    throw Error(ErrorCode::not_supported, op,
                fmt::format("{}, got {} parameters with states of {}{}", must, name(dtype),
                            precision.state == StateType::same  ? "their dtype"
                            : precision.state == StateType::f32 ? "f32"
                                                                : "bf16",
                            precision.master ? " and f32 weights" : ""));
  };
  if (precision.master && !small) refuse("parameters with f32 master weights must be f16 or bf16");
  if (precision.numerics == Numerics::f32 && dtype == DType::f64) refuse("parameters of numerics f32 must be computed in f32");
  if (precision.state == StateType::bf16 && dtype == DType::f64) refuse("states of f64 parameters must be f64");
  DType state = dtype == DType::f64 || precision.state == StateType::same ? dtype : precision.state == StateType::f32 ? DType::f32 : DType::bf16;
  if (precision.numerics == Numerics::composed && (small || state != dtype)) refuse("parameters of numerics composed must be f32 or f64, states alike");
  if (precision.rounding == optim::Rounding::kahan && (dtype != DType::bf16 || precision.master))
    refuse("parameters with compensation must be bf16 without f32 weights");
  if (precision.rounding == optim::Rounding::stochastic && dtype != DType::bf16 && state != DType::bf16)
    refuse("parameters or states of stochastic rounding must be bf16");
  return state;
}

void check_params(std::span<const Tensor> params, const char* op) {
  std::vector<const Tensor*> all;
  for (const Tensor& p : params) {
    DType dtype = p.dtype();
    check_plain_float(dtype, "a parameter", op);
    if (dtype != params[0].dtype())
      throw Error(ErrorCode::invalid_dtype, op, fmt::format("parameters of a group must be of one dtype, got {} and {}", name(params[0].dtype()), name(dtype)));
    if (!p.is_contiguous())
      throw Error(ErrorCode::invalid_shape, op,
                  fmt::format("a parameter must be contiguous, got {} with strides {}", to_string(p.sizes()), to_string(p.strides())));
    all.push_back(&p);
  }
  common_runtime(all, op);
}

}  // namespace

void check_device_scalar(const Tensor& t, std::int64_t most, const char* what, const char* op) {
  if (t.defined() && (t.dtype() != DType::f32 || (t.numel() != 1 && t.numel() != most)))
    throw Error(t.dtype() != DType::f32 ? ErrorCode::invalid_dtype : ErrorCode::invalid_shape, op,
                fmt::format("{} must be f32 of one element, got {} of {}", what, name(t.dtype()), to_string(t.sizes())));
}

void check_step_memory(StepMemory& memory, const optim::StepOptions& options, std::span<const Tensor> steps, const char* op) {
  std::vector<MemoryRange> reads{
      {options.lr, "lr"}, {options.grad_scale, "grad_scale"}, {options.found_inf, "found_inf"}, {options.grad_factor, "grad_factor"}};
  for (const Tensor& t : steps) reads.emplace_back(t, "steps");
  memory.check(options.grad_scale.defined(), reads, op);
}

void add_written(std::vector<MemoryRange>& ranges, const OptimGroup& g) {
  for (std::size_t i = 0; i < g.params.size(); ++i) ranges.emplace_back(g.params[i], "parameter", g.first + i);
  for (std::size_t i = 0; i < g.columns.size(); ++i) ranges.emplace_back(g.columns[i], "a state of parameter", g.first + i % g.params.size());
  if (g.counts) ranges.emplace_back(g.steps, "the counters of steps");
}

void check_step_options(const optim::StepOptions& options, std::size_t groups, const char* op) {
  check_device_scalar(options.lr, static_cast<std::int64_t>(groups), "lr", op);
  check_device_scalar(options.grad_scale, 1, "grad_scale", op);
  check_device_scalar(options.found_inf, 1, "found_inf", op);
  check_device_scalar(options.grad_factor, 1, "grad_factor", op);
  if (options.max_norm && options.grad_factor.defined())
    throw Error(ErrorCode::invalid_argument, op, "at most one of max_norm and grad_factor must be given, got both");
}

void check_optim_gradients(const OptimGroup& g, std::span<const Tensor> grads, StepMemory& memory) {
  for (std::size_t i = 0; i < grads.size(); ++i) {
    memory.set_gradient(g.first + i, grads[i], g.first + i);
    const Tensor &grad = grads[i], &param = g.params[i];
    if (!grad.defined()) continue;
    if (grad.dtype() != param.dtype())
      throw Error(ErrorCode::invalid_dtype, g.hyper.op,
                  fmt::format("gradient {} must be {} as its parameter, got {}", g.first + i, name(param.dtype()), name(grad.dtype())));
    if (!(grad.sizes() == param.sizes()) || !grad.is_contiguous())
      throw Error(ErrorCode::invalid_shape, g.hyper.op,
                  fmt::format("gradient {} and its parameter must be contiguous and of one shape, got {} and {}", g.first + i, to_string(grad.sizes()),
                              to_string(param.sizes())));
    if (&grad.storage()->runtime() != &param.storage()->runtime())
      throw Error(ErrorCode::device_mismatch, g.hyper.op,
                  fmt::format("gradient {} must be of its parameter's device and context, got one of another", g.first + i));
  }
}

// encode ------------------------------------------------------------------------------------------------------------

OptimChunks cut_into_chunks(std::span<const std::int64_t> sizes, std::int64_t length, std::int64_t least) {
  OptimChunks all;
  for (std::size_t row = 0; row < sizes.size(); ++row) {
    all.first.push_back(static_cast<std::int64_t>(all.pairs.size() / 2));
    for (std::int64_t chunk = 0; chunk < least || chunk * length < sizes[row]; ++chunk)
      all.pairs.insert(all.pairs.end(), {static_cast<std::int32_t>(row), static_cast<std::int32_t>(chunk)});
  }
  all.first.push_back(static_cast<std::int64_t>(all.pairs.size() / 2));
  return all;
}

namespace {

/// States of all parameters, as views of few large tensors, so that they need few buffers. All elements are `value`.
std::vector<Tensor> make_column(std::span<const Tensor> params, DType dtype, double value, const Stream& stream) {
  constexpr std::int64_t kAlignment = 64;  // elements; keeps views aligned to vectors
  auto most = static_cast<std::int64_t>(claimed_traits(stream.impl()->runtime().device()).max_alloc_bytes / 2 / (bits(dtype) / 8));
  std::vector<Tensor> views;
  for (std::size_t first = 0, end = 0; first < params.size(); first = end) {
    std::int64_t total = 0;
    do {
      total += (params[end++].numel() + kAlignment - 1) / kAlignment * kAlignment;
    } while (end < params.size() && total + params[end].numel() + kAlignment <= most);
    Tensor flat = full({std::max<std::int64_t>(total, 1)}, value, {.dtype = dtype, .device = stream.device()}, stream);
    std::int64_t at = 0;
    for (std::size_t i = first; i < end; ++i) {
      views.push_back(flat.as_strided(params[i].sizes(), contiguous_strides(params[i].sizes()), at));
      at += (params[i].numel() + kAlignment - 1) / kAlignment * kAlignment;
    }
  }
  return views;
}

}  // namespace

OptimGroup make_optim_group(std::vector<Tensor> params, const OptimHyper& hyper, std::size_t first, OptimLists given, const Stream& stream) {
  check_params(params, hyper.op);
  check_hyper(hyper, params[0].dtype());
  Runtime& runtime = params[0].storage()->runtime();
  OptimGroup g;
  g.hyper = hyper;
  g.first = first;
  g.problem = {params[0].dtype(),
               state_dtype(params[0].dtype(), hyper.precision, hyper.op),
               hyper.kind,
               hyper.precision.numerics,
               hyper.extra,
               hyper.buffer,
               hyper.precision.master,
               hyper.precision.rounding};
  g.problem.listed = !given.step_of.empty();
  if (hyper.precision.numerics == Numerics::automatic && !runtime.traits().fp64) note_fallback("extension", hyper.op, "without fp64, numerics f32");
  const BuiltPlan& plan = plan_for(runtime, "optim", g.problem, {});
  g.names = state_names(g.problem);
  g.columns = std::move(given.columns);
  bool own = g.counts = !given.counted();
  g.steps = std::move(given.steps), g.step_of = std::move(given.step_of);
  for (const std::string& name : g.names) {
    if (!own) break;
    bool master = name == "master";
    DType dtype = master ? DType::f32 : name == "compensation" ? DType::bf16 : g.problem.state;
    std::vector<Tensor> column = make_column(params, dtype, name == "sum" ? hyper.initial : 0, stream);
    if (master)
      for (std::size_t i = 0; i < params.size(); ++i) copy_(column[i], params[i], {}, stream);
    g.columns.insert(g.columns.end(), column.begin(), column.end());
  }
  std::vector<std::int64_t> sizes;
  for (const Tensor& p : params) sizes.push_back(p.numel());
  const OptimChunks chunks = cut_into_chunks(sizes, static_cast<std::int64_t>(plan.tuning.tile), 1);
  g.first_chunk = chunks.first;
  g.items = static_cast<std::int64_t>(elementwise_tuning(runtime.traits()).local);
  if (own) g.steps = zeros({g.counter(g.first_chunk.back())}, {.dtype = DType::f32, .device = stream.device()}, stream);
  g.sizes = from_host(sizes, {static_cast<std::int64_t>(sizes.size())}, stream.device(), stream);
  g.chunks = from_host(chunks.pairs, {static_cast<std::int64_t>(chunks.pairs.size())}, stream.device(), stream);
  if (g.problem.rounding == optim::Rounding::stochastic) {
    std::vector<std::int32_t> numbers(params.size());
    std::iota(numbers.begin(), numbers.end(), static_cast<std::int32_t>(first));
    g.numbers = from_host(numbers, {static_cast<std::int64_t>(numbers.size())}, stream.device(), stream);
  }
  g.params = std::move(params);
  return g;
}

namespace {

/// Splits a group's rows into launches.
void make_parts(OptimGroup& g) {
  auto columns = static_cast<std::size_t>(g.problem.columns());
  g.parts.clear();
  std::vector<TensorTable::Column> access(columns, {.access = Argument::Kind::inout, .kept = true});
  access[1] = {.access = g.problem.scaled ? Argument::Kind::inout : Argument::Kind::input};
  if (g.problem.listed) access.back().access = Argument::Kind::input;
  std::size_t first = 0;
  for (std::size_t end : TensorTable::split(g.entries, columns)) {
    g.parts.push_back({.first = first, .end = end, .table = TensorTable(access)});
    first = end;
  }
}

/// Sets the gradients in the table's entries. True if any gradient is in another buffer than before.
bool set_gradients(OptimGroup& g, std::span<const Tensor> grads) {
  auto columns = static_cast<std::size_t>(g.problem.columns());
  bool moved = g.entries.empty();
  if (moved) {
    g.entries.assign(g.params.size() * columns, nullptr);
    for (std::size_t row = 0; row < g.params.size(); ++row) {
      g.entries[row * columns] = &g.params[row];
      for (std::size_t c = 2; c < columns - g.problem.listed; ++c) g.entries[row * columns + c] = &g.columns[(c - 2) * g.params.size() + row];
      if (g.problem.listed) g.entries[(row + 1) * columns - 1] = &g.step_of[row];
    }
    g.buffers.assign(g.params.size(), nullptr);
  }
  for (std::size_t row = 0; row < grads.size(); ++row) {
    const Tensor* grad = grads[row].defined() ? &grads[row] : nullptr;
    g.entries[row * columns + 1] = grad;
    const void* buffer = grad ? grad->storage()->mem() : nullptr;
    if (buffer && buffer != g.buffers[row]) g.buffers[row] = buffer, moved = true;
  }
  return moved;
}

/// Bytes of a step: gradients are read, all other tensors are read and written, except that with f32 master weights parameters are only written. Numbers of
/// steps do not count.
double step_bytes(const OptimGroup& g, const OptimPart& part) {
  const auto columns = static_cast<std::size_t>(g.problem.columns());
  double bytes = 0;
  for (std::size_t row = part.first; row < part.end; ++row)
    for (std::size_t c = 0; c < columns - g.problem.listed; ++c)
      if (const Tensor* t = g.entries[row * columns + c]) bytes += static_cast<double>(t->nbytes()) * (c == 1 || (c == 0 && g.hyper.precision.master) ? 1 : 2);
  return bytes;
}

/// Operations on each element by the formulas of clutch/ops/optim.hpp, without those on numbers that all elements share.
double step_flops(const OptimHyper& h) {
  const double decay = h.weight_decay != 0 ? 2 : 0;
  switch (h.kind) {
    case OptimKind::sgd: return decay + (h.buffer ? 3 : 0) + (h.nesterov ? 2 : 0) + 2;
    case OptimKind::adam: return decay + 4 + 5 + (h.extra ? 1 : 0) + 6;
    case OptimKind::adagrad: return decay + 7;
    case OptimKind::rmsprop: return decay + 4 + (h.extra ? 5 : 0) + 2 + (h.buffer ? 5 : 3);
  }
  return 0;
}

}  // namespace

void step_optim_group(OptimGroup& g, std::span<const Tensor> grads, const optim::StepOptions& options, const Stream& stream) {
  const OptimHyper& h = g.hyper;
  Runtime& runtime = stream.impl()->runtime();
  bool anew = set_gradients(g, grads) || g.problem.scaled != options.grad_scale.defined();
  g.problem.scaled = options.grad_scale.defined();
  const BuiltPlan& plan = plan_for(runtime, "optim", g.problem, {});
  if (anew) make_parts(g);
  auto columns = static_cast<std::size_t>(g.problem.columns());
  auto flag = [](bool set, std::uint32_t bit) { return set ? bit : 0u; };
  const std::uint32_t flags = flag(g.counts, OPTIM_COUNTS) | flag(h.maximize, OPTIM_MAXIMIZE) | flag(h.nesterov, OPTIM_NESTEROV) |
                              flag(h.decoupled, OPTIM_DECOUPLED) | flag(options.lr.defined(), OPTIM_HAS_LR) |
                              flag(options.found_inf.defined(), OPTIM_HAS_FOUND) | flag(options.grad_factor.defined(), OPTIM_HAS_FACTOR);
  bool wide = has_f64_scalars(runtime.traits(), g.problem);
  Encoder encoder(stream, h.op);
  auto scalar = [&](double v, const char* name) { wide ? encoder.value(v, name) : encoder.value(static_cast<float>(v), name); };
  auto given = [&](const Tensor& t, const char* name) { encoder.input(t.defined() ? t : g.sizes, name); };
  for (OptimPart& part : g.parts) {
    std::int64_t from = g.first_chunk[part.first], count = g.first_chunk[part.end] - from;
    Tensor chunks = g.chunks.slice(0, 2 * from, 2 * (from + count));
    double elements = 0;
    for (std::size_t row = part.first; row < part.end; ++row)
      if (const Tensor* gradient = g.entries[row * columns + 1]) elements += static_cast<double>(gradient->numel());
    encoder.moves(step_bytes(g, part)).flops(elements * (step_flops(h) + options.grad_scale.defined() + options.grad_factor.defined()));
    encoder.table(part.table, std::span(g.entries).subspan(part.first * columns, (part.end - part.first) * columns));
    if (g.counts)
      encoder.inout(g.steps.slice(0, g.counter(from), g.counter(from + count)), "step");
    else
      given(g.steps, "step");
    encoder.input(g.sizes).input(chunks);
    given(options.lr, "lr_tensor");
    given(options.grad_scale, "grad_scale");
    given(options.found_inf, "found_inf");
    given(options.grad_factor, "grad_factor");
    given(g.numbers, "number");
    bind_args(encoder, OptimStepArgs{flags, static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(part.first)});
    scalar(h.lr, "lr");
    switch (h.kind) {
      case OptimKind::sgd: scalar(h.momentum, "momentum"), scalar(h.dampening, "dampening"); break;
      case OptimKind::adam: scalar(h.beta1, "beta1"), scalar(h.beta2, "beta2"); break;
      case OptimKind::adagrad: scalar(h.lr_decay, "lr_decay"); break;
      case OptimKind::rmsprop: scalar(h.alpha, "alpha"), scalar(h.momentum, "momentum"); break;
    }
    scalar(h.eps, "eps");
    scalar(h.weight_decay, "weight_decay");
    encoder.value(h.precision.seed, "seed");
    auto groups = static_cast<std::uint64_t>(count);
    if (plan.tuning.local == 1) groups = std::min<std::uint64_t>(groups, 256 * static_cast<std::uint64_t>(runtime.traits().compute_units));
    encoder.dispatch(plan.kernel, tile_geometry(groups, plan.tuning.local));
  }
}

namespace {

/// Errors: invalid_argument, invalid_dtype, invalid_shape.
void check_steps(const OptimSteps& steps, std::size_t params, const char* op) {
  if (!steps.together && steps.tensors.size() != params)
    throw Error(ErrorCode::invalid_argument, op, fmt::format("each of {} parameters must have a tensor of its step, got {}", params, steps.tensors.size()));
  for (const Tensor& t : steps.tensors) {
    if (!t.defined()) throw Error(ErrorCode::invalid_argument, op, "a tensor of steps must be defined, got an undefined tensor");
    if (t.dtype() != DType::f32) throw Error(ErrorCode::invalid_dtype, op, fmt::format("steps must be f32, got {}", name(t.dtype())));
    if (steps.together && (!(t.sizes() == Dims{static_cast<std::int64_t>(params)}) || !t.is_contiguous()))
      throw Error(ErrorCode::invalid_shape, op, fmt::format("each of {} parameters must have a step, got steps of {}", params, to_string(t.sizes())));
    if (!steps.together && t.numel() != 1)
      throw Error(ErrorCode::invalid_shape, op, fmt::format("the tensor of a parameter's step must have one element, got {}", to_string(t.sizes())));
  }
}

}  // namespace

void step_optim_lists(const OptimHyper& hyper, std::span<const Tensor> params, std::span<const Tensor> grads, std::initializer_list<OptimState> states,
                      const OptimSteps& steps, const optim::StepOptions& options, const Stream& given, const StepByPlugin& by_plugin) {
  std::vector<const Tensor*> all;
  for (const Tensor& t : steps.tensors) all.push_back(&t);
  if (hyper.precision.master || hyper.precision.rounding == optim::Rounding::kahan)
    throw Error(
        ErrorCode::not_supported, hyper.op,
        fmt::format("{} must be left to the optimizers' classes, got a call on lists of tensors", hyper.precision.master ? "f32 weights" : "compensation"));
  if (options.max_norm)
    throw Error(ErrorCode::not_supported, hyper.op,
                fmt::format("max_norm must be left to the optimizers' classes, got {}; give a grad_factor", *options.max_norm));
  if (grads.size() != params.size())
    throw Error(ErrorCode::invalid_argument, hyper.op,
                fmt::format("each of {} parameters must have a gradient, got {} gradients", params.size(), grads.size()));
  for (const Tensor& p : params) all.push_back(&p);
  std::vector<Tensor> columns;
  for (const auto& [list, wanted] : states) {
    if (!wanted) continue;
    if (list.size() != params.size())
      throw Error(ErrorCode::invalid_argument, hyper.op,
                  fmt::format("each of {} parameters must have a tensor of each state, got {}", params.size(), list.size()));
    columns.insert(columns.end(), list.begin(), list.end());
  }
  for (const Tensor& t : columns) all.push_back(&t);
  check_steps(steps, params.size(), hyper.op);
  check_step_options(options, 1, hyper.op);
  if (params.empty()) return;
  Runtime& runtime = common_runtime(all, hyper.op);
  Stream stream = resolve_stream(given, runtime, hyper.op);
  DType state = state_dtype(params[0].dtype(), hyper.precision, hyper.op);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Tensor &t = columns[i], &p = params[i % params.size()];
    if (t.dtype() != state) throw Error(ErrorCode::invalid_dtype, hyper.op, fmt::format("a state must be {}, got {}", name(state), name(t.dtype())));
    if (!(t.sizes() == p.sizes()) || !t.is_contiguous())
      throw Error(ErrorCode::invalid_shape, hyper.op,
                  fmt::format("a state must have the sizes {} of its parameter, got {}", to_string(p.sizes()), to_string(t.sizes())));
  }
  OptimLists lists{.columns = std::move(columns)};
  steps.together ? void(lists.steps = steps.tensors[0]) : lists.step_of.assign(steps.tensors.begin(), steps.tensors.end());
  OptimGroup g = make_optim_group({params.begin(), params.end()}, hyper, 0, std::move(lists), stream);
  StepMemory memory;
  std::vector<MemoryRange> written;
  add_written(written, g);
  memory.set_written(std::move(written), hyper.op);
  memory.set_count(grads.size());
  check_optim_gradients(g, grads, memory);
  check_step_memory(memory, options, steps.tensors, hyper.op);
  if (steps.together && by_plugin && by_plugin(steps.tensors[0], stream)) return;
  step_optim_group(g, grads, options, stream);
}

}}}  // namespace clutch::v0::detail
