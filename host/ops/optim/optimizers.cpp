// SPDX-License-Identifier: Apache-2.0
// The optimizers' classes, and steps over lists.
#include <clutch/files.hpp>
#include <clutch/ops/copy.hpp>

#include "encode/plugin_ops.hpp"
#include "ops/optim/gradients.hpp"
#include "ops/optim/group.hpp"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"

#include <atomic>

namespace clutch { inline namespace v0 {

namespace detail {

void load_state_into(const std::map<std::string, Tensor>& own, const std::map<std::string, Tensor>& given, const char* op, const Stream& stream) {
  for (const auto& [name, tensor] : own) {
    auto found = given.find(name);
    if (found == given.end() || !found->second.defined()) throw Error(ErrorCode::invalid_argument, op, fmt::format("the state must have {}, got none", name));
    if (found->second.dtype() != tensor.dtype() || !(found->second.sizes() == tensor.sizes()))
      throw Error(ErrorCode::invalid_argument, op,
                  fmt::format("{} must be {} of {}, got {} of {}", name, clutch::name(tensor.dtype()), to_string(tensor.sizes()),
                              clutch::name(found->second.dtype()), to_string(found->second.sizes())));
  }
  for (const auto& [name, tensor] : given)
    if (!own.contains(name)) throw Error(ErrorCode::invalid_argument, op, fmt::format("the state must have the optimizer's names alone, got {}", name));
  std::vector<MemoryRange> written;
  for (const auto& [name, tensor] : own) written.emplace_back(tensor, name.c_str());
  StepMemory memory;
  memory.set_written(std::move(written), op);
  for (const auto& [name, tensor] : own) {
    const MemoryRange range(given.at(name), "a given state");
    const bool itself = range.same_bytes(MemoryRange(tensor, "")) && given.at(name).is_contiguous();
    if (!itself) memory.check(false, std::span(&range, 1), op);
  }
  for (const auto& [name, tensor] : own) copy_(tensor, given.at(name), {}, stream);
}

}  // namespace detail

namespace optim {

struct Optimizer::State {
  explicit State(const char* name_of_step) : step_name(name_of_step) {}
  const std::uint64_t id = next_id();
  const char* step_name;
  std::vector<detail::OptimGroup> groups;
  detail::StepMemory memory;
  detail::GradientList gradients;  ///< of the last step that had a max_norm

  static std::uint64_t next_id() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }
  std::size_t count() const { return groups.empty() ? 0 : groups.back().first + groups.back().params.size(); }
  void add(std::vector<Tensor> params, const detail::OptimHyper& hyper, const Stream& stream) {
    for (const Tensor& p : params)
      if (!p.defined()) throw Error(ErrorCode::invalid_argument, hyper.op, "a parameter must be defined, got an undefined tensor");
    if (params.empty()) throw Error(ErrorCode::invalid_argument, hyper.op, "the parameters must be a list of at least one, got an empty parameter list");
    Stream on = detail::resolve_stream(stream, params[0].storage()->runtime(), hyper.op);
    detail::check_makes_state(on, hyper.op);
    detail::OptimGroup made = detail::make_optim_group(std::move(params), hyper, count(), {}, on);
    std::vector<const Tensor*> all;
    for (const detail::OptimGroup& g : groups)
      for (const Tensor& p : g.params) all.push_back(&p);
    for (const Tensor& p : made.params) all.push_back(&p);
    detail::common_runtime(all, hyper.op);
    std::vector<detail::MemoryRange> written;
    for (const detail::OptimGroup& g : groups) detail::add_written(written, g);
    detail::add_written(written, made);
    memory.set_written(std::move(written), hyper.op);
    groups.push_back(std::move(made));
  }
};

Optimizer::Optimizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Optimizer::~Optimizer() = default;
Optimizer::Optimizer(Optimizer&&) noexcept = default;
Optimizer& Optimizer::operator=(Optimizer&&) noexcept = default;

Optimizer::State& Optimizer::own(const char* op) const {
  if (!state_) throw Error(ErrorCode::invalid_argument, op, "the optimizer must be a made one, got one that was moved from");
  return *state_;
}
std::uint64_t Optimizer::id(const char* op) const { return own(op).id; }

Tensor Optimizer::step(std::span<const Tensor> grads, const StepOptions& options, const Stream& given) {
  State& state = own("optim::Optimizer::step");
  const char* op = state.step_name;
  detail::OpName named(op);
  if (grads.size() != state.count())
    throw Error(ErrorCode::invalid_argument, op, fmt::format("each of {} parameters must have a gradient, got {} gradients", state.count(), grads.size()));
  detail::Runtime& runtime = state.groups[0].params[0].storage()->runtime();
  Stream stream = detail::resolve_stream(given, runtime, op);
  detail::check_step_options(options, state.groups.size(), op);
  state.memory.set_count(grads.size());
  for (const detail::OptimGroup& g : state.groups) detail::check_optim_gradients(g, grads.subspan(g.first, g.params.size()), state.memory);
  detail::check_step_memory(state.memory, options, {}, op);
  GradNorm norm;
  if (options.max_norm) {
    state.gradients.set(grads, op);
    norm = state.gradients.norm(*options.max_norm, {.norm_type = options.norm_type, .grad_scale = options.grad_scale}, false, stream, op);
  }
  StepOptions own = options;
  if (options.max_norm) own.grad_factor = norm.factor;
  for (std::size_t i = 0; i < state.groups.size(); ++i) {
    detail::OptimGroup& g = state.groups[i];
    if (options.lr.defined() && options.lr.numel() > 1) own.lr = options.lr.reshape({options.lr.numel()}).select(0, static_cast<std::int64_t>(i));
    detail::step_optim_group(g, grads.subspan(g.first, g.params.size()), own, stream);
  }
  return norm.norm;
}

std::size_t Optimizer::groups() const { return own("optim::Optimizer::groups").groups.size(); }

namespace {
template <class Groups>
auto& group_at(Groups& groups, std::size_t i) {
  if (i >= groups.size())
    throw Error(ErrorCode::invalid_argument, groups[0].hyper.op, fmt::format("the parameter group must be in [0, {}), got {}", groups.size(), i));
  return groups[i];
}
}  // namespace

double Optimizer::lr(std::size_t group) const {
  detail::OpName named("optim::Optimizer::lr");
  return group_at(own("optim::Optimizer::lr").groups, group).hyper.lr;
}
void Optimizer::set_lr(double lr, std::size_t group) {
  detail::OpName named("optim::Optimizer::set_lr");
  detail::OptimGroup& g = group_at(own("optim::Optimizer::set_lr").groups, group);
  detail::check_optim_range(lr >= 0, g.hyper.op, "learning rate", "at least 0", lr);
  g.hyper.lr = lr;
}
std::span<const Tensor> Optimizer::params(std::size_t group) const {
  detail::OpName named("optim::Optimizer::params");
  return group_at(own("optim::Optimizer::params").groups, group).params;
}

std::map<std::string, Tensor> Optimizer::state() const {
  std::map<std::string, Tensor> all;
  for (const detail::OptimGroup& g : own("optim::Optimizer::state").groups)
    for (std::size_t i = 0; i < g.params.size(); ++i) {
      all[fmt::format("{}.step", g.first + i)] = g.steps.select(0, g.counter(g.first_chunk[i]));
      if (g.numbers.defined()) all[fmt::format("{}.number", g.first + i)] = g.numbers.select(0, static_cast<std::int64_t>(i));
      for (std::size_t c = 0; c < g.names.size(); ++c) all[fmt::format("{}.{}", g.first + i, g.names[c])] = g.columns[c * g.params.size() + i];
    }
  return all;
}

void Optimizer::load_state(const std::map<std::string, Tensor>& given, const Stream& stream) {
  detail::OpName named("optim::Optimizer::load_state");
  State& mine = own("optim::Optimizer::load_state");
  detail::load_state_into(state(), given, mine.groups[0].hyper.op, stream);
  // The saved state of a parameter has its first counter alone; the other counters are set to the same value.
  for (const detail::OptimGroup& g : mine.groups)
    for (std::size_t i = 0; i < g.params.size(); ++i) {
      const std::int64_t first = g.counter(g.first_chunk[i]), end = g.counter(g.first_chunk[i + 1]);
      if (end > first + 1) copy_(g.steps.slice(0, first + 1, end), g.steps.select(0, first), {}, stream);
    }
}

void Optimizer::save(const std::string& path, const Stream& stream) const {
  detail::OpName named("optim::Optimizer::save");
  save_safetensors(path, state(), {}, stream);
}

void Optimizer::load(const std::string& path, const Stream& stream) {
  detail::OpName named("optim::Optimizer::load");
  const Tensor& param = own("optim::Optimizer::load").groups[0].params[0];
  Safetensors file = Safetensors::open(path);
  Stream on = detail::resolve_stream(stream, param.storage()->runtime(), "load");
  std::map<std::string, Tensor> given;
  for (const auto& entry : file.entries()) given[entry.name] = file.load(entry.name, on.device(), on);
  try {
    load_state(given, on);
  } catch (const Error& e) {
    throw Error(e.code(), "load", fmt::format("{}: {}", path, e.message()));
  }
}

namespace {

using detail::OptimHyper;
using detail::OptimKind;

OptimHyper hyper_of(const SGDOptions& o) {
  return {.kind = OptimKind::sgd,
          .op = "optim::SGD",
          .lr = o.lr,
          .momentum = o.momentum,
          .dampening = o.dampening,
          .weight_decay = o.weight_decay,
          .nesterov = o.nesterov,
          .maximize = o.maximize,
          .buffer = o.momentum != 0,
          .precision = o.precision};
}
OptimHyper hyper_of(const AdamOptions& o) {
  return {.kind = OptimKind::adam,
          .op = "optim::Adam",
          .lr = o.lr,
          .beta1 = o.beta1,
          .beta2 = o.beta2,
          .eps = o.eps,
          .weight_decay = o.weight_decay,
          .maximize = o.maximize,
          .decoupled = o.decoupled_weight_decay,
          .extra = o.amsgrad,
          .precision = o.precision};
}
OptimHyper hyper_of(const AdamWOptions& o) {
  OptimHyper h = hyper_of(AdamOptions{.lr = o.lr,
                                      .beta1 = o.beta1,
                                      .beta2 = o.beta2,
                                      .eps = o.eps,
                                      .weight_decay = o.weight_decay,
                                      .amsgrad = o.amsgrad,
                                      .maximize = o.maximize,
                                      .decoupled_weight_decay = true,
                                      .precision = o.precision});
  h.op = "optim::AdamW";
  return h;
}
OptimHyper hyper_of(const AdagradOptions& o) {
  return {.kind = OptimKind::adagrad,
          .op = "optim::Adagrad",
          .lr = o.lr,
          .lr_decay = o.lr_decay,
          .eps = o.eps,
          .weight_decay = o.weight_decay,
          .initial = o.initial_accumulator_value,
          .maximize = o.maximize,
          .precision = o.precision};
}
OptimHyper hyper_of(const RMSpropOptions& o) {
  return {.kind = OptimKind::rmsprop,
          .op = "optim::RMSprop",
          .lr = o.lr,
          .momentum = o.momentum,
          .alpha = o.alpha,
          .eps = o.eps,
          .weight_decay = o.weight_decay,
          .maximize = o.maximize,
          .extra = o.centered,
          .buffer = o.momentum != 0,
          .precision = o.precision};
}

}  // namespace

namespace {

using List = std::span<const Tensor>;

void sgd_with(List params, List grads, List momentum_buffers, const detail::OptimSteps& steps, const SGDOptions& options, const StepOptions& step_options,
              const Stream& stream) {
  detail::OpName named("optim::sgd_");
  const OptimHyper h = hyper_of(options);
  detail::step_optim_lists(h, params, grads, {{momentum_buffers, h.buffer}}, steps, step_options, stream, [&](const Tensor& counted, const Stream& on) {
    return detail::by_plugin("optim::sgd_", {}, {&params, &grads, &momentum_buffers, &counted, &options, &step_options, &on}, on);
  });
}
template <class Options>
void adam_with(const char* op, const Options& options, List params, List grads, List exp_avgs, List exp_avg_sqs, List max_exp_avg_sqs,
               const detail::OptimSteps& steps, const StepOptions& step_options, const Stream& stream) {
  detail::OpName named(op);
  const OptimHyper h = hyper_of(options);
  detail::step_optim_lists(
      h, params, grads, {{exp_avgs}, {exp_avg_sqs}, {max_exp_avg_sqs, h.extra}}, steps, step_options, stream, [&](const Tensor& counted, const Stream& on) {
        return detail::by_plugin(op, {}, {&params, &grads, &exp_avgs, &exp_avg_sqs, &max_exp_avg_sqs, &counted, &options, &step_options, &on}, on);
      });
}
void adagrad_with(List params, List grads, List sums, const detail::OptimSteps& steps, const AdagradOptions& options, const StepOptions& step_options,
                  const Stream& stream) {
  detail::OpName named("optim::adagrad_");
  detail::step_optim_lists(hyper_of(options), params, grads, {{sums}}, steps, step_options, stream, [&](const Tensor& counted, const Stream& on) {
    return detail::by_plugin("optim::adagrad_", {}, {&params, &grads, &sums, &counted, &options, &step_options, &on}, on);
  });
}
void rmsprop_with(List params, List grads, List square_avgs, List momentum_buffers, List grad_avgs, const detail::OptimSteps& steps,
                  const RMSpropOptions& options, const StepOptions& step_options, const Stream& stream) {
  detail::OpName named("optim::rmsprop_");
  const OptimHyper h = hyper_of(options);
  detail::step_optim_lists(h, params, grads, {{square_avgs}, {momentum_buffers, h.buffer}, {grad_avgs, h.extra}}, steps, step_options, stream,
                           [&](const Tensor& counted, const Stream& on) {
                             return detail::by_plugin("optim::rmsprop_", {},
                                                      {&params, &grads, &square_avgs, &momentum_buffers, &grad_avgs, &counted, &options, &step_options, &on},
                                                      on);
                           });
}

}  // namespace

// Each step comes in two forms, by the type of its steps.
#define CLUTCH_STEPS(Steps)                                                                                                                                  \
  void sgd_(List params, List grads, List momentum_buffers, Steps steps, const SGDOptions& options, const StepOptions& step_options, const Stream& stream) { \
    sgd_with(params, grads, momentum_buffers, steps, options, step_options, stream);                                                                         \
  }                                                                                                                                                          \
  void adam_(List params, List grads, List exp_avgs, List exp_avg_sqs, List max_exp_avg_sqs, Steps steps, const AdamOptions& options,                        \
             const StepOptions& step_options, const Stream& stream) {                                                                                        \
    adam_with("optim::adam_", options, params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, step_options, stream);                                  \
  }                                                                                                                                                          \
  void adamw_(List params, List grads, List exp_avgs, List exp_avg_sqs, List max_exp_avg_sqs, Steps steps, const AdamWOptions& options,                      \
              const StepOptions& step_options, const Stream& stream) {                                                                                       \
    adam_with("optim::adamw_", options, params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, step_options, stream);                                 \
  }                                                                                                                                                          \
  void adagrad_(List params, List grads, List sums, Steps steps, const AdagradOptions& options, const StepOptions& step_options, const Stream& stream) {     \
    adagrad_with(params, grads, sums, steps, options, step_options, stream);                                                                                 \
  }                                                                                                                                                          \
  void rmsprop_(List params, List grads, List square_avgs, List momentum_buffers, List grad_avgs, Steps steps, const RMSpropOptions& options,                \
                const StepOptions& step_options, const Stream& stream) {                                                                                     \
    rmsprop_with(params, grads, square_avgs, momentum_buffers, grad_avgs, steps, options, step_options, stream);                                             \
  }
CLUTCH_STEPS(const Tensor&)
CLUTCH_STEPS(List)
#undef CLUTCH_STEPS

#define CLUTCH_OPTIMIZER(Name)                                                                                                                                \
  Name::Name(std::vector<Tensor> params, const Name##Options& options, const Stream& stream) : Optimizer(std::make_unique<State>("optim::" #Name "::step")) { \
    detail::OpName named("optim::" #Name);                                                                                                                    \
    own("optim::" #Name).add(std::move(params), hyper_of(options), stream);                                                                                   \
  }                                                                                                                                                           \
  void Name::add_param_group(std::vector<Tensor> params, const Name##Options& options, const Stream& stream) {                                                \
    detail::OpName named("optim::" #Name "::add_param_group");                                                                                                \
    own("optim::" #Name "::add_param_group").add(std::move(params), hyper_of(options), stream);                                                               \
  }
CLUTCH_OPTIMIZER(SGD)
CLUTCH_OPTIMIZER(Adam)
CLUTCH_OPTIMIZER(AdamW)
CLUTCH_OPTIMIZER(Adagrad)
CLUTCH_OPTIMIZER(RMSprop)
#undef CLUTCH_OPTIMIZER

}  // namespace optim
}}  // namespace clutch::v0
