// SPDX-License-Identifier: Apache-2.0
// Optimizers, clipping, loss scales, learning rates.
#include "server.hpp"

#include <memory>

namespace clutch::oracle {

namespace {

using namespace optim;

Precision precision(const Call& c) {
  return {.numerics = c.choice<Numerics>("numerics", {{"automatic", Numerics::automatic},
                                                      {"source", Numerics::source},
                                                      {"torch_cpu", Numerics::torch_cpu},
                                                      {"f32", Numerics::f32},
                                                      {"composed", Numerics::composed}}),
          .state = c.choice<StateType>("state_type", {{"same", StateType::same}, {"f32", StateType::f32}, {"bf16", StateType::bf16}}),
          .master = c.flag("master"),
          .rounding = c.choice<Rounding>("rounding", {{"nearest", Rounding::nearest}, {"stochastic", Rounding::stochastic}, {"kahan", Rounding::kahan}}),
          .seed = static_cast<std::uint64_t>(c.integer("seed", 0))};
}

SGDOptions sgd_options(const Call& c) {
  return {.lr = c.number("lr", 1e-3),
          .momentum = c.number("momentum", 0),
          .dampening = c.number("dampening", 0),
          .weight_decay = c.number("weight_decay", 0),
          .nesterov = c.flag("nesterov"),
          .maximize = c.flag("maximize"),
          .precision = precision(c)};
}

AdamOptions adam_options(const Call& c) {
  return {.lr = c.number("lr", 1e-3),
          .beta1 = c.number("beta1", 0.9),
          .beta2 = c.number("beta2", 0.999),
          .eps = c.number("eps", 1e-8),
          .weight_decay = c.number("weight_decay", 0),
          .amsgrad = c.flag("amsgrad"),
          .maximize = c.flag("maximize"),
          .decoupled_weight_decay = c.flag("decoupled_weight_decay"),
          .precision = precision(c)};
}

AdamWOptions adamw_options(const Call& c) {
  return {.lr = c.number("lr", 1e-3),
          .beta1 = c.number("beta1", 0.9),
          .beta2 = c.number("beta2", 0.999),
          .eps = c.number("eps", 1e-8),
          .weight_decay = c.number("weight_decay", 1e-2),
          .amsgrad = c.flag("amsgrad"),
          .maximize = c.flag("maximize"),
          .precision = precision(c)};
}

AdagradOptions adagrad_options(const Call& c) {
  return {.lr = c.number("lr", 1e-2),
          .lr_decay = c.number("lr_decay", 0),
          .weight_decay = c.number("weight_decay", 0),
          .initial_accumulator_value = c.number("initial_accumulator_value", 0),
          .eps = c.number("eps", 1e-10),
          .maximize = c.flag("maximize"),
          .precision = precision(c)};
}

RMSpropOptions rmsprop_options(const Call& c) {
  return {.lr = c.number("lr", 1e-2),
          .alpha = c.number("alpha", 0.99),
          .eps = c.number("eps", 1e-8),
          .weight_decay = c.number("weight_decay", 0),
          .momentum = c.number("momentum", 0),
          .centered = c.flag("centered"),
          .maximize = c.flag("maximize"),
          .precision = precision(c)};
}

NormType norm_type(const Call& c) { return c.choice<NormType>("norm_type", {{"two", NormType::two}, {"one", NormType::one}, {"inf", NormType::inf}}); }

StepOptions step_options(const Call& c) {
  StepOptions options;
  options.lr = c.optional("lr_tensor");
  options.grad_scale = c.optional("grad_scale");
  options.found_inf = c.optional("found_inf");
  options.grad_factor = c.optional("grad_factor");
  if (c.has("max_norm")) options.max_norm = c.number("max_norm", 1);
  options.norm_type = norm_type(c);
  return options;
}

/// With "second_lr" the last parameter is a group of its own.
template <class O, class Options>
std::unique_ptr<Optimizer> make(const Call& c, std::vector<Tensor> params, Options options) {
  if (!c.has("second_lr")) return std::make_unique<O>(params, options);
  const Tensor last = params.back();
  params.pop_back();
  auto result = std::make_unique<O>(params, options);
  options.lr = c.number("second_lr", 0);
  result->add_param_group({last}, options);
  return result;
}

std::unique_ptr<Optimizer> make_optimizer(const Call& c, const std::vector<Tensor>& params) {
  const std::string which = c.text("optimizer");
  if (which == "SGD") return make<SGD>(c, params, sgd_options(c));
  if (which == "Adam") return make<Adam>(c, params, adam_options(c));
  if (which == "AdamW") return make<AdamW>(c, params, adamw_options(c));
  if (which == "Adagrad") return make<Adagrad>(c, params, adagrad_options(c));
  if (which == "RMSprop") return make<RMSprop>(c, params, rmsprop_options(c));
  throw std::runtime_error("no optimizer is called " + which);
}

void give_state(Call& c, const std::map<std::string, Tensor>& state) {
  Json names = Json::array();
  for (const auto& [name, tensor] : state) {
    names.push_back(name);
    c.give(tensor);
  }
  c.say("state", names);
}

/// Calls f with the steps as one tensor or, if "listed", as a list.
template <class F>
void with_steps(const Call& c, F f) {
  const Tensor steps = c["steps"];
  if (!c.flag("listed")) return f(steps);
  std::vector<Tensor> each;
  for (std::int64_t i = 0; i < steps.numel(); ++i) each.push_back(steps.select(0, i));
  f(each);
}

void add_steps(Functions& table) {
  // Steps over params.* with gradients "grads<step>.*"; gives the params, then the state by its names, then the norms of clipping.
  table["optimizer"] = [](Call& c) {
    std::vector<Tensor> params;
    for (const Tensor& p : c.list("params")) params.push_back(p.clone());
    std::unique_ptr<Optimizer> optimizer = make_optimizer(c, params);
    std::vector<Tensor> norms;
    const std::int64_t steps = c.integer("steps", 1);
    for (std::int64_t step = 0; step < steps; ++step) {
      const Tensor norm = optimizer->step(c.list("grads" + std::to_string(step)), step_options(c));
      if (norm.defined()) norms.push_back(norm);
      if (c.has("later_lr")) optimizer->set_lr(c.number("later_lr", 0));
      // In the middle the state goes into an optimizer of the same parameters, through a file or as tensors.
      if (c.has("path") && step == steps / 2) {
        optimizer->save(c.text("path"));
        optimizer = make_optimizer(c, params);
        optimizer->load(c.text("path"));
      } else if (c.flag("by_state") && step == steps / 2) {
        const std::unique_ptr<Optimizer> next = make_optimizer(c, params);
        next->load_state(optimizer->state());
        optimizer = make_optimizer(c, params);
        optimizer->load_state(next->state());
      }
    }
    c.give(params);
    give_state(c, optimizer->state());
    c.give(norms);
    c.say("norms", norms.size());
    c.say("lr", optimizer->lr());
  };
  table["sgd_"] = [](Call& c) {
    with_steps(c, [&](const auto& steps) { sgd_(c.list("params"), c.list("grads"), c.list("momentum_buffers"), steps, sgd_options(c), step_options(c)); });
  };
  table["adam_"] = [](Call& c) {
    with_steps(c, [&](const auto& steps) {
      adam_(c.list("params"), c.list("grads"), c.list("exp_avgs"), c.list("exp_avg_sqs"), c.list("max_exp_avg_sqs"), steps, adam_options(c), step_options(c));
    });
  };
  table["adamw_"] = [](Call& c) {
    with_steps(c, [&](const auto& steps) {
      adamw_(c.list("params"), c.list("grads"), c.list("exp_avgs"), c.list("exp_avg_sqs"), c.list("max_exp_avg_sqs"), steps, adamw_options(c), step_options(c));
    });
  };
  table["adagrad_"] = [](Call& c) {
    with_steps(c, [&](const auto& steps) { adagrad_(c.list("params"), c.list("grads"), c.list("sums"), steps, adagrad_options(c), step_options(c)); });
  };
  table["rmsprop_"] = [](Call& c) {
    with_steps(c, [&](const auto& steps) {
      rmsprop_(c.list("params"), c.list("grads"), c.list("square_avgs"), c.list("momentum_buffers"), c.list("grad_avgs"), steps, rmsprop_options(c),
               step_options(c));
    });
  };
}

void add_around(Functions& table) {
  table["grad_norm"] = [](Call& c) {
    const GradNorm n = grad_norm(c.list("grads"), c.number("max_norm", 1), {.norm_type = norm_type(c), .grad_scale = c.optional("grad_scale")});
    c.give(std::vector{n.norm, n.factor});
  };
  table["grad_norms"] = [](Call& c) { c.give(grad_norms(c.list("grads"), {.norm_type = norm_type(c), .grad_scale = c.optional("grad_scale")})); };
  table["clip_grad_norm_"] = [](Call& c) {
    c.give(clip_grad_norm_(c.list("grads"), c.number("max_norm", 1), {.norm_type = norm_type(c), .grad_scale = c.optional("grad_scale")}));
  };
  table["check_and_unscale_"] = [](Call& c) { check_and_unscale_(c.list("grads"), c["found_inf"], c.optional("scale")); };
  const auto scaler_options = [](const Call& c) {
    return GradScalerOptions{.init_scale = c.number("init_scale", 65536),
                             .growth_factor = c.number("growth_factor", 2),
                             .backoff_factor = c.number("backoff_factor", 0.5),
                             .growth_interval = static_cast<int>(c.integer("growth_interval", 2000)),
                             .enabled = c.integer("enabled", 1) != 0};
  };
  table["update_scale_"] = [scaler_options](Call& c) { update_scale_(c["scale"], c["growth_tracker"], c["found_inf"], scaler_options(c)); };
  // Steps of SGD with a loss scale: gradients come scaled; gives the params and the scale after each step, and the scaled loss.
  table["grad_scaler"] = [scaler_options](Call& c) {
    std::vector<Tensor> params;
    for (const Tensor& p : c.list("params")) params.push_back(p.clone());
    SGD optimizer(params, sgd_options(c));
    GradScaler scaler(scaler_options(c));
    c.give(scaler.scale(c["loss"]));
    for (std::int64_t step = 0; step < c.integer("steps", 1); ++step) {
      const std::vector<Tensor> grads = c.list("grads" + std::to_string(step));
      if (c.flag("unscale")) scaler.unscale_(optimizer, grads);
      scaler.step(optimizer, grads);
      scaler.update();
      for (const Tensor& p : params) c.give(p.clone());
      c.give(scaler.scale_tensor().clone());
    }
    c.say("scale", scaler.get_scale());
  };
  const auto schedule_options = [](const Call& c) {
    return LRSchedulerOptions{.warmup_steps = c.integer("warmup_steps", 0),
                              .warmup_start = c.number("warmup_start", 0),
                              .decay = c.choice<Decay>("decay", {{"constant", Decay::constant}, {"linear", Decay::linear}, {"cosine", Decay::cosine}}),
                              .decay_steps = c.integer("decay_steps", 0),
                              .end = c.number("end", 0)};
  };
  // Rates at the beginning and after each step.
  table["lr_scheduler"] = [schedule_options](Call& c) {
    LRScheduler scheduler(c.numbers("rates"), schedule_options(c));
    c.give(scheduler.lr().clone());
    for (std::int64_t step = 0; step < c.integer("steps", 1); ++step) {
      scheduler.step();
      c.give(scheduler.lr().clone());
    }
  };
  table["schedule_"] = [schedule_options](Call& c) { schedule_(c["lr"], c["rates"], c["step"], c.integer("advance", 1), schedule_options(c)); };
}

}  // namespace

void add_optim_functions(Functions& table) {
  add_steps(table);
  add_around(table);
}

}  // namespace clutch::oracle
