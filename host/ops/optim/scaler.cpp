// SPDX-License-Identifier: Apache-2.0
// GradScaler and learning rate schedules, whose numbers are in device memory.
#include <clutch/ops/fill.hpp>
#include <clutch/pointwise.hpp>

#include "encode/args.hpp"
#include "ops/optim/gradients.hpp"
#include "ops/optim/group.hpp"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"
#include "support/computed_number.hpp"

#include <cmath>

namespace clutch { inline namespace v0 { namespace optim {
namespace {

Stream stream_for_state(const Device& device, const Stream& stream, const char* op) {
  Stream on = stream.empty() ? current_stream(device) : stream;
  detail::check_makes_state(on, op);
  return on;
}

/// Launches a kernel of which one work-item loops over `count` elements. Errors: not_supported if the device ends such loops early.
void dispatch_one_item(Encoder& encoder, detail::OptimAid aid, std::int64_t count) {
  detail::Runtime& runtime = encoder.stream().impl()->runtime();
  const detail::BuiltPlan& plan = detail::plan_for(runtime, "optim_aid", detail::OptimAidProblem{.aid = aid}, {});
  const Geometry geometry = detail::tile_geometry(1, plan.tuning.local);
  detail::check_loops(runtime.traits(), encoder.op(), 1, geometry, static_cast<double>(count) + 1);
  encoder.flops(static_cast<double>(count) + 1).dispatch(plan.kernel, geometry);
}
}  // namespace

// GradScaler --------------------------------------------------------------------------------------------------------

namespace {
constexpr std::int64_t kSlots = 16;
constexpr const char* kScaler = "optim::GradScaler";

/// A valid scale is positive, finite and not subnormal, since some devices treat subnormals as 0.
constexpr const char* kScales = "a normal f32 above 0";
bool scales(double number) { return number > 0 && std::isnormal(static_cast<float>(number)); }

void check_scaler(const GradScalerOptions& options, const char* op) {
  auto need = [op](bool fine, std::string_view what, std::string_view range, double value) { detail::check_optim_range(fine, op, what, range, value); };
  need(scales(options.init_scale), "init_scale", kScales, options.init_scale);
  need(scales(options.growth_factor) && detail::as_computed(options.growth_factor) > 1, "growth_factor", "a normal f32 above 1", options.growth_factor);
  need(scales(options.backoff_factor) && detail::as_computed(options.backoff_factor) < 1, "backoff_factor", "a normal f32 above 0 and below 1",
       options.backoff_factor);
  need(options.growth_interval >= 1, "growth_interval", "at least 1", static_cast<double>(options.growth_interval));
}

/// Tensors that must be on one runtime's device, contiguous, of these dtypes and counts (-1: any), and without common memory.
struct Wanted {
  const Tensor& tensor;
  const char* what;
  DType dtype;
  std::int64_t count;
};
Stream check_tensors(std::initializer_list<Wanted> all, const Stream& stream, const char* op) {
  std::vector<const Tensor*> tensors;
  for (const Wanted& w : all) tensors.push_back(&w.tensor);
  detail::Runtime& runtime = detail::common_runtime(tensors, op);
  for (const Wanted& w : all) {
    const Tensor& t = w.tensor;
    if (t.dtype() != w.dtype) throw Error(ErrorCode::invalid_dtype, op, fmt::format("{} must be {}, got {}", w.what, name(w.dtype), name(t.dtype())));
    if (!t.is_contiguous() || (w.count >= 0 && t.numel() != w.count))
      throw Error(ErrorCode::invalid_shape, op,
                  fmt::format("{} must be contiguous, of {} elements, got {} with strides {}", w.what, w.count, to_string(t.sizes()), to_string(t.strides())));
  }
  std::vector<detail::MemoryRange> ranges;
  for (const Wanted& w : all) ranges.emplace_back(w.tensor, w.what);
  detail::StepMemory().set_written(std::move(ranges), op);
  return detail::resolve_stream(stream, runtime, op);
}
}  // namespace

void check_and_unscale_(std::span<const Tensor> grads, const Tensor& found_inf, const Tensor& scale, const Stream& stream) {
  detail::OpName named("optim::check_and_unscale_");
  constexpr const char* op = "optim::check_and_unscale_";
  if (!found_inf.defined()) throw Error(ErrorCode::invalid_argument, op, "found_inf must be defined, got an undefined tensor");
  detail::check_device_scalar(found_inf, 1, "found_inf", op);
  detail::check_device_scalar(scale, 1, "scale", op);
  detail::GradientList list;
  list.set(grads, op);
  list.check(found_inf, scale, detail::resolve_stream(stream, list.runtime(), op), op);
}

void update_scale_(const Tensor& scale, const Tensor& growth_tracker, const Tensor& found_inf, const GradScalerOptions& options, const Stream& stream) {
  detail::OpName named("optim::update_scale_");
  constexpr const char* op = "optim::update_scale_";
  check_scaler(options, op);
  Stream on =
      check_tensors({{scale, "scale", DType::f32, 1}, {growth_tracker, "growth_tracker", DType::i32, 1}, {found_inf, "found_inf", DType::f32, -1}}, stream, op);
  Encoder encoder(on, op);
  encoder.inout(scale, "scale").inout(growth_tracker, "growth_tracker").inout(found_inf, "found_inf");
  encoder.value(static_cast<std::uint32_t>(found_inf.numel())).value(static_cast<std::int32_t>(options.growth_interval), "growth_interval");
  encoder.value(static_cast<float>(options.growth_factor), "growth_factor").value(static_cast<float>(options.backoff_factor), "backoff_factor");
  dispatch_one_item(encoder, detail::OptimAid::update_scaler, found_inf.numel());
}

struct GradScaler::State {
  /// State of an optimizer since the last update. Its slot is its index in `seen`.
  struct Seen {
    std::uint64_t who = 0;  ///< id of the optimizer
    bool unscaled = false, stepped = false;
    std::map<DType, detail::GradientList> lists;
    bool idle() const { return !unscaled && !stepped; }
  };
  GradScalerOptions options;
  Tensor scale, tracker, found;
  std::vector<Seen> seen;

  std::size_t slot_of(const Optimizer& optimizer, const char* op) {
    const std::uint64_t who = optimizer.id(op);
    for (std::size_t i = 0; i < seen.size(); ++i)
      if (seen[i].who == who) return i;
    for (std::size_t i = 0; i < seen.size(); ++i)
      if (seen[i].idle()) return seen[i] = Seen{.who = who}, i;
    if (seen.size() == kSlots)
      throw Error(ErrorCode::invalid_argument, op, fmt::format("at most {} optimizers must step between two updates, got more", kSlots));
    seen.push_back({.who = who});
    return seen.size() - 1;
  }
  Tensor found_of(std::size_t slot) const { return found.slice(0, static_cast<std::int64_t>(slot), static_cast<std::int64_t>(slot) + 1); }

  /// Notes gradients that are not finite. If `by` is defined, multiplies the gradients by its inverse.
  void look_at(std::size_t slot, std::span<const Tensor> grads, const Tensor& by, const Stream& stream, const char* op) {
    std::map<DType, std::vector<Tensor>> parts;
    for (const Tensor& g : grads)
      if (g.defined()) parts[g.dtype()].push_back(g);
    if (parts.empty()) throw Error(ErrorCode::invalid_argument, op, "there must be a gradient, got none");
    for (const auto& [dtype, part] : parts) {
      detail::GradientList& list = seen[slot].lists[dtype];
      list.set(part, op);
      list.check(found_of(slot), by, detail::resolve_stream(stream, list.runtime(), op), op);
    }
  }
  void forget() {
    for (Seen& s : seen) s.unscaled = s.stepped = false;
  }
};

GradScaler::GradScaler(const GradScalerOptions& options, const Device& device, const Stream& stream) : state_(std::make_unique<State>()) {
  detail::OpName named("optim::GradScaler");
  check_scaler(options, kScaler);
  state_->options = options;
  Stream on = stream_for_state(device, stream, kScaler);
  TensorOptions like{.dtype = DType::f32, .device = on.device()};
  state_->scale = full({1}, options.init_scale, like, on);
  state_->tracker = zeros({1}, {.dtype = DType::i32, .device = on.device()}, on);
  state_->found = zeros({kSlots}, like, on);
}
GradScaler::~GradScaler() = default;
GradScaler::GradScaler(GradScaler&&) noexcept = default;
GradScaler& GradScaler::operator=(GradScaler&&) noexcept = default;

GradScaler::State& GradScaler::own(const char* op) const {
  if (!state_) throw Error(ErrorCode::invalid_argument, op, "the scaler must be a made one, got one that was moved from");
  return *state_;
}

Tensor GradScaler::scale(const Tensor& loss, const Stream& stream) const {
  detail::OpName named("optim::GradScaler::scale");
  const State& state = own("optim::GradScaler::scale");
  if (!state.options.enabled) return loss;
  Tensor scaled = empty(loss.sizes(), {.dtype = loss.dtype(), .device = loss.device()}, stream);
  mul_out(scaled, loss, state.scale.reshape({}), {}, stream);
  return scaled;
}

void GradScaler::unscale_(const Optimizer& optimizer, std::span<const Tensor> grads, const Stream& stream) {
  detail::OpName named("optim::GradScaler::unscale_");
  constexpr const char* op = "optim::GradScaler::unscale_";
  State& state = own(op);
  if (!state.options.enabled) return;
  std::size_t slot = state.slot_of(optimizer, op);
  State::Seen& seen = state.seen[slot];
  if (!seen.idle())
    throw Error(ErrorCode::invalid_argument, op, "unscale_() must come once and before step() of this optimizer, got another call since the last update()");
  state.look_at(slot, grads, state.scale, stream, op);
  seen.unscaled = true;
}

Tensor GradScaler::step(Optimizer& optimizer, std::span<const Tensor> grads, const StepOptions& options, const Stream& stream) {
  detail::OpName named("optim::GradScaler::step");
  constexpr const char* op = "optim::GradScaler::step";
  State& state = own(op);
  if (!state.options.enabled) return optimizer.step(grads, options, stream);
  if (options.grad_scale.defined() || options.found_inf.defined())
    throw Error(ErrorCode::invalid_argument, op, "grad_scale and found_inf must be left to the scaler, got one of them");
  std::size_t slot = state.slot_of(optimizer, op);
  State::Seen& seen = state.seen[slot];
  if (seen.stepped) throw Error(ErrorCode::invalid_argument, op, "step() must come once for this optimizer between updates, got a second call");
  StepOptions own = options;
  own.found_inf = state.found_of(slot);
  if (!seen.unscaled) {
    state.look_at(slot, grads, {}, stream, op);
    own.grad_scale = state.scale;
  }
  Tensor norm = optimizer.step(grads, own, stream);
  seen.stepped = true;
  return norm;
}

void GradScaler::update(const Stream& stream) {
  detail::OpName named("optim::GradScaler::update");
  constexpr const char* op = "optim::GradScaler::update";
  State& state = own(op);
  if (!state.options.enabled) return;
  bool any = false;
  for (const State::Seen& s : state.seen) any = any || !s.idle();
  if (!any) throw Error(ErrorCode::invalid_argument, op, "gradients must have been looked at since the last update(), got none");
  update_scale_(state.scale, state.tracker, state.found, state.options, stream);
  state.forget();
}

void GradScaler::update(double new_scale, const Stream& stream) {
  detail::OpName named("optim::GradScaler::update");
  constexpr const char* op = "optim::GradScaler::update";
  State& state = own(op);
  if (!state.options.enabled) return;
  detail::check_optim_range(scales(new_scale), op, "scale", kScales, new_scale);
  fill_(state.scale, new_scale, {}, stream);
  fill_(state.found, 0, {}, stream);
  state.forget();
}

const Tensor& GradScaler::scale_tensor() const {
  detail::OpName named("optim::GradScaler::scale_tensor");
  return own("optim::GradScaler::scale_tensor").scale;
}
double GradScaler::get_scale(const Stream& stream) const {
  detail::OpName named("optim::GradScaler::get_scale");
  const State& state = own("optim::GradScaler::get_scale");
  return state.options.enabled ? state.scale.item(stream) : 1;
}
bool GradScaler::enabled() const {
  detail::OpName named("optim::GradScaler::enabled");
  return own("optim::GradScaler::enabled").options.enabled;
}
std::map<std::string, Tensor> GradScaler::state() const {
  detail::OpName named("optim::GradScaler::state");
  const State& state = own("optim::GradScaler::state");
  return {{"scale", state.scale}, {"growth_tracker", state.tracker}};
}
void GradScaler::load_state(const std::map<std::string, Tensor>& given, const Stream& stream) {
  detail::OpName named("optim::GradScaler::load_state");
  detail::load_state_into(state(), given, "optim::GradScaler::load_state", stream);
}

// LRScheduler -------------------------------------------------------------------------------------------------------

namespace {
constexpr const char* kScheduler = "optim::LRScheduler";

/// A valid rate, or factor of a rate, is at least 0 and finite in f32.
constexpr const char* kRate = "at least 0 and finite in f32";
bool is_rate(double number) { return number >= 0 && std::isfinite(detail::as_computed(number)); }

void check_schedule(const LRSchedulerOptions& options, const char* op) {
  auto need = [op](bool fine, std::string_view what, std::string_view range, double value) { detail::check_optim_range(fine, op, what, range, value); };
  auto steps = [&](std::int64_t n, std::string_view what) { need(n >= 0, what, "at least 0", static_cast<double>(n)); };
  steps(options.warmup_steps, "warmup_steps"), steps(options.decay_steps, "decay_steps");
  need(is_rate(options.warmup_start), "warmup_start", kRate, options.warmup_start);
  need(is_rate(options.end), "end", kRate, options.end);
  need(options.decay == Decay::constant || options.decay_steps > 0, "decay_steps", "above 0 where rates decay", static_cast<double>(options.decay_steps));
}

std::vector<double> rates_of(const Optimizer& optimizer) {
  std::vector<double> rates;
  for (std::size_t i = 0; i < optimizer.groups(); ++i) rates.push_back(optimizer.lr(i));
  return rates;
}
}  // namespace

static_assert(static_cast<int>(Decay::constant) == detail::OPTIM_DECAY_CONSTANT && static_cast<int>(Decay::linear) == detail::OPTIM_DECAY_LINEAR);
static_assert(static_cast<int>(Decay::cosine) == detail::OPTIM_DECAY_COSINE);

void schedule_(const Tensor& lr, const Tensor& rates, const Tensor& step, std::int64_t advance, const LRSchedulerOptions& options, const Stream& stream) {
  detail::OpName named("optim::schedule_");
  constexpr const char* op = "optim::schedule_";
  check_schedule(options, op);
  detail::check_optim_range(advance >= 0, op, "advance", "at least 0", static_cast<double>(advance));
  Stream on = check_tensors({{lr, "lr", DType::f32, rates.numel()}, {rates, "rates", DType::f32, -1}, {step, "step", DType::i64, 1}}, stream, op);
  Encoder encoder(on, op);
  encoder.output(lr, "lr").inout(step, "step").input(rates, "rates");
  detail::bind_args(encoder, detail::OptimScheduleArgs{static_cast<std::uint32_t>(rates.numel()), static_cast<std::int32_t>(options.decay)});
  encoder.value(static_cast<std::uint64_t>(advance), "advance").value(static_cast<std::uint64_t>(options.warmup_steps), "warmup_steps");
  encoder.value(static_cast<std::uint64_t>(options.decay_steps), "decay_steps");
  encoder.value(static_cast<float>(options.warmup_start), "warmup_start").value(static_cast<float>(options.end), "end");
  dispatch_one_item(encoder, detail::OptimAid::schedule, rates.numel());
}

LRScheduler::LRScheduler(const Optimizer& optimizer, const LRSchedulerOptions& options, const Stream& stream)
    : LRScheduler(rates_of(optimizer), options, optimizer.params()[0].device(), stream) {}

LRScheduler::LRScheduler(std::span<const double> rates, const LRSchedulerOptions& options, const Device& device, const Stream& stream) : options_(options) {
  detail::OpName named("optim::LRScheduler");
  check_schedule(options, kScheduler);
  if (rates.empty()) throw Error(ErrorCode::invalid_argument, kScheduler, "there must be a learning rate, got none");
  for (double rate : rates) detail::check_optim_range(is_rate(rate), kScheduler, "learning rate", kRate, rate);
  Stream on = stream_for_state(device, stream, kScheduler);
  std::vector<float> values(rates.begin(), rates.end());
  rates_ = from_host(values, {static_cast<std::int64_t>(values.size())}, on.device(), on);
  count_ = zeros({1}, {.dtype = DType::i64, .device = on.device()}, on);
  lr_ = empty(rates_.sizes(), {.dtype = DType::f32, .device = on.device()}, on);
  schedule_(lr_, rates_, count_, 0, options_, on);
}

void LRScheduler::step(const Stream& stream) {
  detail::OpName named("optim::LRScheduler::step");
  schedule_(lr_, rates_, count_, 1, options_, stream);
}

void LRScheduler::load_state(const std::map<std::string, Tensor>& given, const Stream& stream) {
  detail::OpName named("optim::LRScheduler::load_state");
  Stream on = detail::resolve_stream(stream, lr_.storage()->runtime(), kScheduler);
  detail::load_state_into(state(), given, kScheduler, on);
  schedule_(lr_, rates_, count_, 0, options_, on);
}

}}}  // namespace clutch::v0::optim
