// SPDX-License-Identifier: Apache-2.0
#include <clutch/files.hpp>
#include <clutch/ops/copy.hpp>
#include <clutch/ops/fill.hpp>
#include <clutch/ops/optim.hpp>

#include "graph/capture.hpp"
#include "ops/optim_plan.hpp"
#include "runtime/storage.hpp"

#include <algorithm>
#include <array>

namespace clutch::inline v0 {
namespace detail {
namespace {

using optim::Numerics;

// select ------------------------------------------------------------------------------------------------------------

bool has_f64_scalars(const DeviceTraits& traits, const OptimProblem& p) {
  return p.numerics != Numerics::f32 && !(p.numerics == Numerics::automatic && !traits.fp64);
}

std::string computes(const DeviceTraits& traits, const OptimProblem& p) {
  if (std::string why = refuses_fp64(traits, p.dtype == DType::f64); !why.empty()) return why;
  return has_f64_scalars(traits, p) && !traits.fp64 ? "the device has no fp64, which these numerics' scalars are in" : "";
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
  // Where f64 scalars meet f32 elements, a vector is no longer than one of f64.
  bool mixed = numerics == Numerics::source && (p.kind == OptimKind::sgd || p.kind == OptimKind::adagrad) && p.dtype != DType::f64;
  if (mixed && plan.tuning.local == 1) plan.tuning.width = std::min(plan.tuning.width, std::max(1, traits.native_width_f64));
  set_common(plan.defines, traits, plan.tuning, 1, false);
  plan.defines.set_type("T", p.dtype).set_text("T_NAME", name(p.dtype)).set_type("S", p.state).set_text("S_NAME", name(p.state));
  plan.defines.set("OPTIMIZER", static_cast<int>(p.kind)).set("NUMERICS", static_cast<int>(numerics) - 1).set("STATES", p.states());
  plan.defines.set("EXTRA", p.extra).set("BUFFER", p.buffer).set("MASTER", p.master).set("SCALED", p.scaled);
  plan.defines.set("CHUNK", static_cast<std::int64_t>(plan.tuning.tile)).set_text("SCALAR", wide ? "double" : "float");
  if (plan.tuning.local > 1) plan.defines.set("GROUPED", 1);
  return plan;
}

namespace {

/// The options of all optimizers.
struct Hyper {
  OptimKind kind = OptimKind::adam;
  const char* op = "";
  double lr = 0;
  double a = 0;  ///< SGD's momentum, Adam's beta1, Adagrad's lr_decay, RMSprop's alpha
  double b = 0;  ///< dampening, beta2, unused, momentum
  double eps = 0;
  double weight_decay = 0;
  double initial = 0;  ///< of Adagrad's sum
  bool nesterov = false, maximize = false, decoupled = false, extra = false, buffer = false;
  optim::Precision precision;
  std::array<const char*, 2> names{};  ///< of a and b
};

enum Flags : std::uint32_t { kMaximize = 1, kNesterov = 2, kDecoupled = 4, kHasLr = 8, kCounts = 16, kHasFound = 32, kHasFactor = 64 };

/// Rows of a group that one launch takes.
struct Part {
  std::size_t first = 0, end = 0;
  TensorTable table;
};

struct Group {
  Hyper hyper;
  OptimProblem problem;
  std::size_t first = 0;  ///< number of its first parameter among all
  std::vector<Tensor> params;
  std::vector<Tensor> columns;  ///< of all rows: states, then the f32 weights
  std::vector<std::string> names;
  Tensor steps;          ///< a counter for each chunk, all of a parameter alike; of a caller's lists one for each parameter
  Tensor sizes, chunks;  ///< of parameters; pairs of a row and a chunk of it
  bool counts = true;
  std::vector<std::int64_t> first_chunk;  ///< of each row, and behind the last
  std::vector<Part> parts;
  std::vector<const void*> buffers;    ///< in which the gradients lay when the parts were made
  std::vector<const Tensor*> entries;  ///< of the table
};

/// Names of the states in the order of the kernel's columns.
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
  return names;
}

// validate ----------------------------------------------------------------------------------------------------------

void check_range(bool fine, const char* op, std::string_view what, double value) {
  if (!fine) throw Error(ErrorCode::invalid_argument, op, fmt::format("Invalid {}: {}", what, value));
}

void check_hyper(const Hyper& h) {
  // Comparisons that NaN fails.
  check_range(h.lr >= 0, h.op, "learning rate", h.lr);
  check_range(h.eps >= 0, h.op, "epsilon value", h.eps);
  check_range(h.weight_decay >= 0, h.op, "weight_decay value", h.weight_decay);
  switch (h.kind) {
    case OptimKind::sgd:
      check_range(h.a >= 0, h.op, "momentum value", h.a);
      if (h.nesterov && (h.a <= 0 || h.b != 0)) throw Error(ErrorCode::invalid_argument, h.op, "Nesterov momentum requires a momentum and zero dampening");
      break;
    case OptimKind::adam:
      check_range(h.a >= 0 && h.a < 1, h.op, "beta parameter at index 0", h.a);
      check_range(h.b >= 0 && h.b < 1, h.op, "beta parameter at index 1", h.b);
      break;
    case OptimKind::adagrad:
      check_range(h.a >= 0, h.op, "lr_decay value", h.a);
      check_range(h.initial >= 0, h.op, "initial_accumulator_value value", h.initial);
      break;
    case OptimKind::rmsprop:
      check_range(h.a >= 0, h.op, "alpha value", h.a);
      check_range(h.b >= 0, h.op, "momentum value", h.b);
      break;
  }
}

DType state_dtype(DType dtype, const optim::Precision& precision, const char* op) {
  using optim::StateType;
  bool small = dtype == DType::f16 || dtype == DType::bf16;
  auto refuse = [&](std::string_view why) { throw Error(ErrorCode::not_supported, op, fmt::format("parameters are {}: {}", name(dtype), why)); };
  if (precision.master && !small) refuse("f32 weights beside them are for f16 and bf16");
  if (precision.numerics == Numerics::f32 && dtype == DType::f64) refuse("numerics f32 are for what is computed in f32");
  if (precision.state == StateType::bf16 && dtype == DType::f64) refuse("states of f64 parameters are f64");
  DType state = dtype == DType::f64 || precision.state == StateType::same ? dtype : precision.state == StateType::f32 ? DType::f32 : DType::bf16;
  if (precision.numerics == Numerics::composed && (small || state != dtype)) refuse("numerics composed are for f32 and f64 parameters with states alike");
  return state;
}

void check_params(std::span<const Tensor> params, const char* op) {
  std::vector<const Tensor*> all;
  for (const Tensor& p : params) {
    DType dtype = p.dtype();
    if (dtype != DType::f32 && dtype != DType::f64 && dtype != DType::f16 && dtype != DType::bf16)
      throw Error(ErrorCode::invalid_dtype, op, fmt::format("a parameter is {}: f32, f64, f16 or bf16", name(dtype)));
    if (dtype != params[0].dtype())
      throw Error(ErrorCode::invalid_dtype, op, fmt::format("parameters of {} and {} in one group", name(params[0].dtype()), name(dtype)));
    if (!p.is_contiguous()) throw Error(ErrorCode::invalid_shape, op, fmt::format("a parameter of {} is not contiguous", to_string(p.sizes())));
    all.push_back(&p);
  }
  common_runtime(all, op);
}

/// Bytes of memory in order, so that sharing shows between neighbours.
void check_apart_all(std::span<const Tensor* const> params, const char* op) {
  struct Range {
    const void* memory;
    std::uint64_t begin, end;
  };
  std::vector<Range> ranges;
  for (const Tensor* p : params) {
    const Storage& s = *p->storage();
    std::uint64_t begin = s.offset() + p->byte_offset();
    if (p->numel() > 0) ranges.push_back({s.unplaced() ? static_cast<const void*>(&s) : s.mem(), begin, begin + p->nbytes()});
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& x, const Range& y) { return std::tie(x.memory, x.begin) < std::tie(y.memory, y.begin); });
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].memory == ranges[i - 1].memory && ranges[i].begin < ranges[i - 1].end)
      throw Error(ErrorCode::invalid_overlap, op, "some parameters appear in more than one place: they share memory");
}

// encode ------------------------------------------------------------------------------------------------------------

/// States of all parameters as views of few big tensors, so that they lie in few buffers. `value` fills them.
std::vector<Tensor> make_column(std::span<const Tensor> params, DType dtype, double value, const Stream& stream) {
  constexpr std::int64_t kApart = 64;  // elements: views begin where vectors do
  auto most = static_cast<std::int64_t>(claimed_traits(stream.impl()->runtime().device()).max_alloc_bytes / 2 / (bits(dtype) / 8));
  std::vector<Tensor> views;
  for (std::size_t first = 0, end = 0; first < params.size(); first = end) {
    std::int64_t total = 0;
    do {
      total += (params[end++].numel() + kApart - 1) / kApart * kApart;
    } while (end < params.size() && total + params[end].numel() + kApart <= most);
    Tensor flat = full({std::max<std::int64_t>(total, 1)}, value, {.dtype = dtype, .device = stream.device()}, stream);
    std::int64_t at = 0;
    for (std::size_t i = first; i < end; ++i) {
      views.push_back(flat.as_strided(params[i].sizes(), contiguous_strides(params[i].sizes()), at));
      at += (params[i].numel() + kApart - 1) / kApart * kApart;
    }
  }
  return views;
}

/// States and numbers of the step; what the caller does not give is made.
struct Lists {
  std::vector<Tensor> columns;
  Tensor steps;
};

Group make_group(std::vector<Tensor> params, const Hyper& hyper, std::size_t first, Lists given, const Stream& stream) {
  check_hyper(hyper);
  check_params(params, hyper.op);
  Runtime& runtime = params[0].storage()->runtime();
  Group g;
  g.hyper = hyper;
  g.first = first;
  g.problem = {
      params[0].dtype(),     state_dtype(params[0].dtype(), hyper.precision, hyper.op), hyper.kind, hyper.precision.numerics, hyper.extra, hyper.buffer,
      hyper.precision.master};
  if (hyper.precision.numerics == Numerics::automatic && !runtime.traits().fp64) note_fallback("extension", hyper.op, "without fp64, numerics f32");
  const BuiltPlan& plan = plan_for(runtime, "optim", g.problem, {});
  g.names = state_names(g.problem);
  g.columns = std::move(given.columns);
  g.steps = std::move(given.steps);
  bool own = g.counts = !g.steps.defined();
  for (const std::string& name : g.names) {
    if (!own) break;
    bool master = name == "master";
    std::vector<Tensor> column = make_column(params, master ? DType::f32 : g.problem.state, name == "sum" ? hyper.initial : 0, stream);
    if (master)
      for (std::size_t i = 0; i < params.size(); ++i) copy_(column[i], params[i], {}, stream);
    g.columns.insert(g.columns.end(), column.begin(), column.end());
  }
  std::vector<std::int64_t> sizes;
  std::vector<std::int32_t> chunks;
  for (std::size_t row = 0; row < params.size(); ++row) {
    sizes.push_back(params[row].numel());
    g.first_chunk.push_back(static_cast<std::int64_t>(chunks.size() / 2));
    for (std::int64_t at = 0, chunk = 0; chunk == 0 || at < sizes.back(); at += static_cast<std::int64_t>(plan.tuning.tile), ++chunk)
      chunks.insert(chunks.end(), {static_cast<std::int32_t>(row), static_cast<std::int32_t>(chunk)});
  }
  g.first_chunk.push_back(static_cast<std::int64_t>(chunks.size() / 2));
  if (own) g.steps = zeros({g.first_chunk.back()}, {.dtype = DType::f32, .device = stream.device()}, stream);
  g.sizes = from_host(sizes, {static_cast<std::int64_t>(sizes.size())}, stream.device(), stream);
  g.chunks = from_host(chunks, {static_cast<std::int64_t>(chunks.size())}, stream.device(), stream);
  g.params = std::move(params);
  return g;
}

/// Cuts a group's rows into launches.
void make_parts(Group& g) {
  auto columns = static_cast<std::size_t>(g.problem.columns());
  g.parts.clear();
  std::vector<TensorTable::Column> access(columns, {.access = Argument::Kind::inout, .kept = true});
  access[1] = {.access = g.problem.scaled ? Argument::Kind::inout : Argument::Kind::input};
  std::size_t first = 0;
  for (std::size_t end : TensorTable::split(g.entries, columns)) {
    g.parts.push_back({.first = first, .end = end, .table = TensorTable(access)});
    first = end;
  }
}

/// The table's entries with these gradients; true if they lie in other buffers than before.
bool set_gradients(Group& g, std::span<const Tensor> grads) {
  auto columns = static_cast<std::size_t>(g.problem.columns());
  bool moved = g.entries.empty();
  if (moved) {
    g.entries.assign(g.params.size() * columns, nullptr);
    for (std::size_t row = 0; row < g.params.size(); ++row) {
      g.entries[row * columns] = &g.params[row];
      for (std::size_t c = 2; c < columns; ++c) g.entries[row * columns + c] = &g.columns[(c - 2) * g.params.size() + row];
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

void check_gradients(const Group& g, std::span<const Tensor> grads) {
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Tensor &grad = grads[i], &param = g.params[i];
    if (!grad.defined()) continue;
    if (grad.dtype() != param.dtype())
      throw Error(ErrorCode::invalid_dtype, g.hyper.op,
                  fmt::format("gradient {} is {}, its parameter {}", g.first + i, name(grad.dtype()), name(param.dtype())));
    if (!(grad.sizes() == param.sizes()) || !grad.is_contiguous())
      throw Error(ErrorCode::invalid_shape, g.hyper.op,
                  fmt::format("gradient {} of {}, its parameter of {}: both must be contiguous and of one shape", g.first + i, to_string(grad.sizes()),
                              to_string(param.sizes())));
    if (&grad.storage()->runtime() != &param.storage()->runtime())
      throw Error(ErrorCode::device_mismatch, g.hyper.op, fmt::format("gradient {} and its parameter are of different devices or contexts", g.first + i));
  }
}

void check_device_scalar(const Tensor& t, const char* what, const char* op) {
  if (t.defined() && (t.dtype() != DType::f32 || t.numel() != 1))
    throw Error(t.dtype() != DType::f32 ? ErrorCode::invalid_dtype : ErrorCode::invalid_shape, op,
                fmt::format("{} must be f32 of one element, got {} of {}", what, name(t.dtype()), to_string(t.sizes())));
}

void step_group(Group& g, std::span<const Tensor> grads, const optim::StepOptions& options, const Stream& stream) {
  const Hyper& h = g.hyper;
  Runtime& runtime = stream.impl()->runtime();
  bool anew = set_gradients(g, grads) || g.problem.scaled != options.grad_scale.defined();
  g.problem.scaled = options.grad_scale.defined();
  const BuiltPlan& plan = plan_for(runtime, "optim", g.problem, {});
  if (anew) make_parts(g);
  auto columns = static_cast<std::size_t>(g.problem.columns());
  std::uint32_t flags = (g.counts ? kCounts : 0u) | (h.maximize ? kMaximize : 0u) | (h.nesterov ? kNesterov : 0u) | (h.decoupled ? kDecoupled : 0u) |
                        (options.lr.defined() ? kHasLr : 0u) | (options.found_inf.defined() ? kHasFound : 0u) |
                        (options.grad_factor.defined() ? kHasFactor : 0u);
  bool wide = h.precision.numerics != Numerics::f32 && runtime.traits().fp64;
  Encoder encoder(stream, h.op);
  auto scalar = [&](double v, const char* name) { wide ? encoder.value(v, name) : encoder.value(static_cast<float>(v), name); };
  auto given = [&](const Tensor& t, const char* name) { encoder.input(t.defined() ? t : g.sizes, name); };
  for (Part& part : g.parts) {
    std::int64_t from = g.first_chunk[part.first], count = g.first_chunk[part.end] - from;
    Tensor chunks = g.chunks.slice(0, 2 * from, 2 * (from + count));
    encoder.table(part.table, std::span(g.entries).subspan(part.first * columns, (part.end - part.first) * columns));
    encoder.input(g.sizes).input(chunks);
    g.counts ? encoder.inout(g.steps.slice(0, from, from + count), "step") : encoder.input(g.steps, "step");
    given(options.lr, "lr_tensor");
    given(options.grad_scale, "grad_scale");
    given(options.found_inf, "found_inf");
    given(options.grad_factor, "grad_factor");
    scalar(h.lr, "lr");
    scalar(h.a, h.names[0]);
    scalar(h.b, h.names[1]);
    scalar(h.eps, "eps");
    scalar(h.weight_decay, "weight_decay");
    encoder.value(flags).value(static_cast<std::uint32_t>(count));
    encoder.value(static_cast<std::uint32_t>(part.first));
    auto groups = static_cast<std::uint64_t>(count);
    if (plan.tuning.local == 1) groups = std::min<std::uint64_t>(groups, 32 * static_cast<std::uint64_t>(runtime.traits().compute_units));
    encoder.dispatch(plan.kernel, tile_geometry(groups, plan.tuning.local));
  }
}

/// A step over lists of the caller's.
void step_lists(const Hyper& hyper, std::span<const Tensor> params, std::span<const Tensor> grads, std::initializer_list<std::span<const Tensor>> states,
                const Tensor& steps, const optim::StepOptions& options, const Stream& given) {
  std::vector<const Tensor*> all{&steps};
  if (hyper.precision.master) throw Error(ErrorCode::not_supported, hyper.op, "f32 weights are kept by the optimizers' classes");
  if (grads.size() != params.size())
    throw Error(ErrorCode::invalid_argument, hyper.op, fmt::format("{} gradients for {} parameters", grads.size(), params.size()));
  std::vector<const Tensor*> written;
  for (const Tensor& p : params) written.push_back(&p);
  for (std::span<const Tensor> list : states) {
    if (list.size() != params.size())
      throw Error(ErrorCode::invalid_argument, hyper.op, fmt::format("{} tensors of a state for {} parameters", list.size(), params.size()));
    for (const Tensor& t : list) written.push_back(&t);
  }
  all.insert(all.end(), written.begin(), written.end());
  Runtime& runtime = common_runtime(all, hyper.op);
  auto count = static_cast<std::int64_t>(params.size());
  if (steps.dtype() != DType::f32) throw Error(ErrorCode::invalid_dtype, hyper.op, fmt::format("steps are {}, wanted f32", name(steps.dtype())));
  if (!(steps.sizes() == Dims{count}) || !steps.is_contiguous())
    throw Error(ErrorCode::invalid_shape, hyper.op, fmt::format("steps of {}, wanted one for each of {} parameters", to_string(steps.sizes()), count));
  check_device_scalar(options.lr, "lr", hyper.op);
  check_device_scalar(options.grad_scale, "grad_scale", hyper.op);
  check_device_scalar(options.found_inf, "found_inf", hyper.op);
  check_device_scalar(options.grad_factor, "grad_factor", hyper.op);
  if (params.empty()) return;
  Stream stream = resolve_stream(given, runtime, hyper.op);
  Lists lists{{}, steps};
  for (std::span<const Tensor> list : states) lists.columns.insert(lists.columns.end(), list.begin(), list.end());
  DType state = state_dtype(params[0].dtype(), hyper.precision, hyper.op);
  for (std::size_t i = 0; i < lists.columns.size(); ++i) {
    const Tensor &t = lists.columns[i], &p = params[i % params.size()];
    if (t.dtype() != state) throw Error(ErrorCode::invalid_dtype, hyper.op, fmt::format("a state is {}, wanted {}", name(t.dtype()), name(state)));
    if (!(t.sizes() == p.sizes()) || !t.is_contiguous())
      throw Error(ErrorCode::invalid_shape, hyper.op, fmt::format("a state of {}, its parameter of {}", to_string(t.sizes()), to_string(p.sizes())));
  }
  check_apart_all(written, hyper.op);
  Group g = make_group({params.begin(), params.end()}, hyper, 0, std::move(lists), stream);
  check_gradients(g, grads);
  step_group(g, grads, options, stream);
}

}  // namespace
}  // namespace detail

namespace optim {

struct Optimizer::State {
  std::vector<detail::Group> groups;

  std::size_t count() const { return groups.empty() ? 0 : groups.back().first + groups.back().params.size(); }
  void add(std::vector<Tensor> params, const detail::Hyper& hyper, const Stream& stream) {
    for (const Tensor& p : params)
      if (!p.defined()) throw Error(ErrorCode::invalid_argument, hyper.op, "a parameter is undefined");
    if (params.empty()) throw Error(ErrorCode::invalid_argument, hyper.op, "optimizer got an empty parameter list");
    Stream on = detail::resolve_stream(stream, params[0].storage()->runtime(), hyper.op);
    if (detail::illegal_on(*on.impl(), hyper.op)) throw Error(ErrorCode::capturing, hyper.op, "an optimizer's state is made outside of captures");
    detail::Group made = detail::make_group(std::move(params), hyper, count(), {}, on);
    std::vector<const Tensor*> all;
    for (const detail::Group& g : groups)
      for (const Tensor& p : g.params) all.push_back(&p);
    for (const Tensor& p : made.params) all.push_back(&p);
    detail::common_runtime(all, hyper.op);
    detail::check_apart_all(all, hyper.op);
    groups.push_back(std::move(made));
  }
};

Optimizer::Optimizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Optimizer::~Optimizer() = default;
Optimizer::Optimizer(Optimizer&&) noexcept = default;
Optimizer& Optimizer::operator=(Optimizer&&) noexcept = default;

void Optimizer::step(std::span<const Tensor> grads, const StepOptions& options, const Stream& given) {
  const char* op = state_->groups[0].hyper.op;
  if (grads.size() != state_->count())
    throw Error(ErrorCode::invalid_argument, op, fmt::format("{} gradients for {} parameters", grads.size(), state_->count()));
  detail::Runtime& runtime = state_->groups[0].params[0].storage()->runtime();
  Stream stream = detail::resolve_stream(given, runtime, op);
  detail::check_device_scalar(options.lr, "lr", op);
  detail::check_device_scalar(options.grad_scale, "grad_scale", op);
  detail::check_device_scalar(options.found_inf, "found_inf", op);
  detail::check_device_scalar(options.grad_factor, "grad_factor", op);
  for (const detail::Group& g : state_->groups) detail::check_gradients(g, grads.subspan(g.first, g.params.size()));
  for (detail::Group& g : state_->groups) detail::step_group(g, grads.subspan(g.first, g.params.size()), options, stream);
}

std::size_t Optimizer::groups() const { return state_->groups.size(); }

namespace {
template <class Groups>
auto& group_at(Groups& groups, std::size_t i) {
  if (i >= groups.size()) throw Error(ErrorCode::invalid_argument, groups[0].hyper.op, fmt::format("parameter group {} of {}", i, groups.size()));
  return groups[i];
}
}  // namespace

double Optimizer::lr(std::size_t group) const { return group_at(state_->groups, group).hyper.lr; }
void Optimizer::set_lr(double lr, std::size_t group) {
  detail::Group& g = group_at(state_->groups, group);
  detail::check_range(lr >= 0, g.hyper.op, "learning rate", lr);
  g.hyper.lr = lr;
}
std::span<const Tensor> Optimizer::params(std::size_t group) const { return group_at(state_->groups, group).params; }

std::map<std::string, Tensor> Optimizer::state() const {
  std::map<std::string, Tensor> all;
  for (const detail::Group& g : state_->groups)
    for (std::size_t i = 0; i < g.params.size(); ++i) {
      all[fmt::format("{}.step", g.first + i)] = g.steps.select(0, g.first_chunk[i]);
      for (std::size_t c = 0; c < g.names.size(); ++c) all[fmt::format("{}.{}", g.first + i, g.names[c])] = g.columns[c * g.params.size() + i];
    }
  return all;
}

void Optimizer::load_state(const std::map<std::string, Tensor>& given, const Stream& stream) {
  const char* op = state_->groups[0].hyper.op;
  std::map<std::string, Tensor> own = state();
  for (const auto& [name, tensor] : own) {
    auto found = given.find(name);
    if (found == given.end() || !found->second.defined()) throw Error(ErrorCode::invalid_argument, op, fmt::format("the state lacks {}", name));
    if (found->second.dtype() != tensor.dtype() || !(found->second.sizes() == tensor.sizes()))
      throw Error(ErrorCode::invalid_argument, op,
                  fmt::format("{} is {} of {}, wanted {} of {}", name, clutch::name(found->second.dtype()), to_string(found->second.sizes()),
                              clutch::name(tensor.dtype()), to_string(tensor.sizes())));
  }
  for (const auto& [name, tensor] : given)
    if (!own.contains(name)) throw Error(ErrorCode::invalid_argument, op, fmt::format("the state has {}, which this optimizer has not", name));
  for (auto& [name, tensor] : own) copy_(tensor, given.at(name), {}, stream);
  for (const detail::Group& g : state_->groups)
    for (std::size_t i = 0; i < g.params.size(); ++i)
      copy_(g.steps.slice(0, g.first_chunk[i], g.first_chunk[i + 1]), given.at(fmt::format("{}.step", g.first + i)), {}, stream);
}

void Optimizer::save(const std::string& path, const Stream& stream) const { save_safetensors(path, state(), {}, stream); }

void Optimizer::load(const std::string& path, const Stream& stream) {
  Safetensors file = Safetensors::open(path);
  const Tensor& param = state_->groups[0].params[0];
  Stream on = detail::resolve_stream(stream, param.storage()->runtime(), "load");
  std::map<std::string, Tensor> given;
  for (const auto& entry : file.entries()) given[entry.name] = file.load(entry.name, on.device(), on);
  load_state(given, on);
}

namespace {

using detail::Hyper;
using detail::OptimKind;

Hyper hyper_of(const SGDOptions& o) {
  return {.kind = OptimKind::sgd,
          .op = "optim::SGD",
          .lr = o.lr,
          .a = o.momentum,
          .b = o.dampening,
          .weight_decay = o.weight_decay,
          .nesterov = o.nesterov,
          .maximize = o.maximize,
          .buffer = o.momentum != 0,
          .precision = o.precision,
          .names = {"momentum", "dampening"}};
}
Hyper hyper_of(const AdamOptions& o) {
  return {.kind = OptimKind::adam,
          .op = "optim::Adam",
          .lr = o.lr,
          .a = o.beta1,
          .b = o.beta2,
          .eps = o.eps,
          .weight_decay = o.weight_decay,
          .maximize = o.maximize,
          .decoupled = o.decoupled_weight_decay,
          .extra = o.amsgrad,
          .precision = o.precision,
          .names = {"beta1", "beta2"}};
}
Hyper hyper_of(const AdamWOptions& o) {
  return {.kind = OptimKind::adam,
          .op = "optim::AdamW",
          .lr = o.lr,
          .a = o.beta1,
          .b = o.beta2,
          .eps = o.eps,
          .weight_decay = o.weight_decay,
          .maximize = o.maximize,
          .decoupled = true,
          .extra = o.amsgrad,
          .precision = o.precision,
          .names = {"beta1", "beta2"}};
}
Hyper hyper_of(const AdagradOptions& o) {
  return {.kind = OptimKind::adagrad,
          .op = "optim::Adagrad",
          .lr = o.lr,
          .a = o.lr_decay,
          .eps = o.eps,
          .weight_decay = o.weight_decay,
          .initial = o.initial_accumulator_value,
          .maximize = o.maximize,
          .precision = o.precision,
          .names = {"lr_decay", "unused"}};
}
Hyper hyper_of(const RMSpropOptions& o) {
  return {.kind = OptimKind::rmsprop,
          .op = "optim::RMSprop",
          .lr = o.lr,
          .a = o.alpha,
          .b = o.momentum,
          .eps = o.eps,
          .weight_decay = o.weight_decay,
          .maximize = o.maximize,
          .extra = o.centered,
          .buffer = o.momentum != 0,
          .precision = o.precision,
          .names = {"alpha", "momentum"}};
}

}  // namespace

void sgd_(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> momentum_buffers, const Tensor& steps,
          const SGDOptions& options, const StepOptions& step_options, const Stream& stream) {
  Hyper h = hyper_of(options);
  if (h.buffer)
    detail::step_lists(h, params, grads, {momentum_buffers}, steps, step_options, stream);
  else
    detail::step_lists(h, params, grads, {}, steps, step_options, stream);
}
void adam_(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> exp_avgs, std::span<const Tensor> exp_avg_sqs,
           std::span<const Tensor> max_exp_avg_sqs, const Tensor& steps, const AdamOptions& options, const StepOptions& step_options, const Stream& stream) {
  Hyper h = hyper_of(options);
  if (h.extra)
    detail::step_lists(h, params, grads, {exp_avgs, exp_avg_sqs, max_exp_avg_sqs}, steps, step_options, stream);
  else
    detail::step_lists(h, params, grads, {exp_avgs, exp_avg_sqs}, steps, step_options, stream);
}
void adagrad_(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> sums, const Tensor& steps, const AdagradOptions& options,
              const StepOptions& step_options, const Stream& stream) {
  detail::step_lists(hyper_of(options), params, grads, {sums}, steps, step_options, stream);
}
void rmsprop_(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> square_avgs, std::span<const Tensor> momentum_buffers,
              std::span<const Tensor> grad_avgs, const Tensor& steps, const RMSpropOptions& options, const StepOptions& step_options, const Stream& stream) {
  Hyper h = hyper_of(options);
  if (h.buffer && h.extra)
    detail::step_lists(h, params, grads, {square_avgs, momentum_buffers, grad_avgs}, steps, step_options, stream);
  else if (h.buffer || h.extra)
    detail::step_lists(h, params, grads, {square_avgs, h.buffer ? momentum_buffers : grad_avgs}, steps, step_options, stream);
  else
    detail::step_lists(h, params, grads, {square_avgs}, steps, step_options, stream);
}

#define CLUTCH_OPTIMIZER(Name)                                                                                                        \
  Name::Name(std::vector<Tensor> params, const Name##Options& options, const Stream& stream) : Optimizer(std::make_unique<State>()) { \
    own().add(std::move(params), hyper_of(options), stream);                                                                          \
  }                                                                                                                                   \
  void Name::add_param_group(std::vector<Tensor> params, const Name##Options& options, const Stream& stream) {                        \
    own().add(std::move(params), hyper_of(options), stream);                                                                          \
  }
CLUTCH_OPTIMIZER(SGD)
CLUTCH_OPTIMIZER(Adam)
CLUTCH_OPTIMIZER(AdamW)
CLUTCH_OPTIMIZER(Adagrad)
CLUTCH_OPTIMIZER(RMSprop)
#undef CLUTCH_OPTIMIZER

}  // namespace optim
}  // namespace clutch::inline v0
