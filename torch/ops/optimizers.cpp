// SPDX-License-Identifier: Apache-2.0
// Fused steps of optimizers on PyTorch's states, and scaling of losses. One launch a tensor; clutch's functional steps over lists take the place of each of the
// four launches below once they are there.
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>
#include <clutch/ops/fill.hpp>

#include <cmath>

namespace torch_clutch {
namespace {

using MaybeTensor = const std::optional<at::Tensor>&;

bool given(MaybeTensor tensor) { return tensor.has_value() && tensor->defined(); }

// What stands behind the states in a step's inputs: gradient scale and "infinity found" (both or none), then a learning rate on the device.
struct Extras {
  std::vector<clutch::Tensor> inputs;
  bool scaled = false, rate_tensor = false;
  double rate = 0;

  Extras(MaybeTensor scale, MaybeTensor infinite, double lr) : scaled(given(infinite)), rate(lr) {
    if (!scaled) return;
    inputs = {given(scale) ? wrap(scale->reshape({1})) : wrap(at::ones({1}, infinite->options())), wrap(infinite->reshape({1}))};
  }
  Extras(MaybeTensor scale, MaybeTensor infinite, const at::Tensor& lr) : Extras(scale, infinite, lr.is_cpu() ? lr.item<double>() : 0.0) {
    rate_tensor = !lr.is_cpu();
    if (rate_tensor) inputs.push_back(wrap(lr.reshape({1})));
  }
};

// A step's view of its inputs: states first, then extras.
template <std::size_t kStates, bool kScaled, bool kRateTensor>
struct Step {
  const In& in;
  Expr scale() const { return in.x[kStates]; }
  Expr skipped() const { return in.x[kStates + 1] != 0.0; }
  Expr rate() const { return kRateTensor ? in.x[kStates + (kScaled ? 2 : 0)] : in.n[0]; }
  Expr grad() const { return (kScaled ? in.x[1] / scale() : in.x[1]) * in.n[1]; }  // n[1]: 1, or -1 to maximize
  // Where an infinity was found all stays as it was.
  std::vector<Expr> results(std::initializer_list<Expr> made, std::initializer_list<std::size_t> states) const {
    std::vector<Expr> all(made);
    if (!kScaled) return all;
    auto state = states.begin();
    for (Expr& value : all) value = clutch::select(skipped(), in.x[*state++], value);
    return all;
  }
};

/// Calls `run` with the lambda that has these two properties.
template <template <bool, bool> class Formula, class Run>
void with_extras(const Extras& extras, Run run) {
  if (extras.scaled)
    extras.rate_tensor ? run(Formula<true, true>()) : run(Formula<true, false>());
  else
    extras.rate_tensor ? run(Formula<false, true>()) : run(Formula<false, false>());
}
template <class Formula>
void launch(Formula formula, std::span<const clutch::Tensor> outputs, std::vector<clutch::Tensor> inputs, const Extras& extras, Numbers numbers) {
  if (outputs[0].numel() == 0) return;
  inputs.insert(inputs.end(), extras.inputs.begin(), extras.inputs.end());
  clutch::map_out(outputs, traced(formula, inputs, numbers), inputs);
}

// 1 - beta^t with the precision of its log: in f32 the power itself would have lost the first steps.
Expr correction(const Expr& log_beta, const Expr& step) { return -clutch::expm1(log_beta * step); }

// x: param, grad, mean, mean of squares, step[, largest mean of squares]. n: rate, sign, beta1, beta2, coupled and decoupled decay, eps, logs of betas.
template <bool kScaled, bool kRateTensor, bool kLargest>
struct AdamFormula {
  std::vector<Expr> operator()(const In& in) const {
    const Step<kLargest ? 6 : 5, kScaled, kRateTensor> s{in};
    const Expr rate = s.rate(), grad = clutch::fma(in.n[4], in.x[0], s.grad());
    const Expr param = in.x[0] - rate * in.n[5] * in.x[0];
    const Expr mean = clutch::fma(1.0 - in.n[2], grad - in.x[2], in.x[2]);
    const Expr squares = clutch::fma((1.0 - in.n[3]) * grad, grad, in.n[3] * in.x[3]);
    const Expr largest = kLargest ? clutch::max(in.x[kLargest ? 5 : 3], squares) : squares;
    const Expr denominator = clutch::sqrt(largest) / clutch::sqrt(correction(in.n[8], in.x[4])) + in.n[6];
    const Expr next = param - rate / correction(in.n[7], in.x[4]) * (mean / denominator);
    if constexpr (kLargest) return s.results({next, mean, squares, largest}, {0, 2, 3, 5});
    return s.results({next, mean, squares}, {0, 2, 3});
  }
};
template <bool kScaled, bool kRateTensor>
using Adam = AdamFormula<kScaled, kRateTensor, false>;
template <bool kScaled, bool kRateTensor>
using AdamLargest = AdamFormula<kScaled, kRateTensor, true>;

struct AdamNumbers {
  double beta1, beta2, decay, eps;
  bool decoupled, amsgrad, maximize;
};
void adam(at::TensorList params, at::TensorList grads, at::TensorList means, at::TensorList squares, at::TensorList largest, at::TensorList steps,
          const Extras& extras, const AdamNumbers& a) {
  for (size_t i = 0; i < params.size(); ++i) {
    std::vector<clutch::Tensor> out{wrap(params[i]), wrap(means[i]), wrap(squares[i])};
    std::vector<clutch::Tensor> in{out[0], wrap(grads[i]), out[1], out[2], wrap(steps[i].reshape({1}))};
    if (a.amsgrad) out.push_back(wrap(largest[i])), in.push_back(out[3]);
    auto run = [&](auto formula) {
      launch(formula, out, in, extras,
             {extras.rate, a.maximize ? -1.0 : 1.0, a.beta1, a.beta2, a.decoupled ? 0.0 : a.decay, a.decoupled ? a.decay : 0.0, a.eps, std::log(a.beta1),
              std::log(a.beta2)});
    };
    a.amsgrad ? with_extras<AdamLargest>(extras, run) : with_extras<Adam>(extras, run);
  }
}

template <bool kDecoupled, class Rate>
void fused_adam(at::TensorList params, at::TensorList grads, at::TensorList means, at::TensorList squares, at::TensorList largest, at::TensorList steps,
                Rate lr, double beta1, double beta2, double decay, double eps, bool amsgrad, bool maximize, const std::optional<at::Tensor>& scale,
                const std::optional<at::Tensor>& infinite) {
  adam(params, grads, means, squares, largest, steps, Extras(scale, infinite, lr),
       {.beta1 = beta1, .beta2 = beta2, .decay = decay, .eps = eps, .decoupled = kDecoupled, .amsgrad = amsgrad, .maximize = maximize});
}

// x: param, grad, momentum. n: rate, sign, decay, momentum, 1 - dampening, nesterov (0 or 1).
template <bool kScaled, bool kRateTensor>
struct Momentum {
  std::vector<Expr> operator()(const In& in) const {
    const Step<3, kScaled, kRateTensor> s{in};
    const Expr grad = clutch::fma(in.n[2], in.x[0], s.grad());
    const Expr buffer = clutch::fma(in.n[3], in.x[2], in.n[4] * grad);
    const Expr used = clutch::select(in.n[5] != 0.0, clutch::fma(in.n[3], buffer, grad), buffer);
    return s.results({in.x[0] - s.rate() * used, buffer}, {0, 2});
  }
};
template <bool kScaled, bool kRateTensor>
struct Plain {
  std::vector<Expr> operator()(const In& in) const {
    const Step<2, kScaled, kRateTensor> s{in};
    return s.results({in.x[0] - s.rate() * clutch::fma(in.n[2], in.x[0], s.grad())}, {0});
  }
};
template <class Rate>
void fused_sgd(at::TensorList params, at::TensorList grads, at::TensorList buffers, double decay, double momentum, Rate lr, double dampening, bool nesterov,
               bool maximize, bool first, const std::optional<at::Tensor>& scale, const std::optional<at::Tensor>& infinite) {
  const Extras extras(scale, infinite, lr);
  const double sign = maximize ? -1.0 : 1.0;
  for (size_t i = 0; i < params.size(); ++i) {
    const clutch::Tensor param = wrap(params[i]), grad = wrap(grads[i]);
    if (buffers.empty() || momentum == 0) {
      const clutch::Tensor out[] = {param};
      with_extras<Plain>(extras, [&](auto formula) { launch(formula, out, {param, grad}, extras, {extras.rate, sign, decay}); });
      continue;
    }
    const clutch::Tensor buffer = wrap(buffers[i]), out[] = {param, buffer};
    // The first momentum is the gradient, undamped, whatever the buffer holds.
    if (first) clutch::fill_(buffer, 0);
    const double share = first ? 1.0 : 1.0 - dampening;
    with_extras<Momentum>(extras, [&](auto formula) {
      launch(formula, out, {param, grad, buffer}, extras, {extras.rate, sign, decay, momentum, share, nesterov ? 1.0 : 0.0});
    });
  }
}

// x: param, grad, sum of squares, step. n: rate, sign, decay, rate's decay, eps.
template <bool kScaled, bool kRateTensor>
struct Adagrad {
  std::vector<Expr> operator()(const In& in) const {
    const Step<4, kScaled, kRateTensor> s{in};
    const Expr grad = clutch::fma(in.n[2], in.x[0], s.grad());
    const Expr sum = clutch::fma(grad, grad, in.x[2]);
    const Expr rate = s.rate() / (1.0 + (in.x[3] - 1.0) * in.n[3]);
    return s.results({in.x[0] - rate * (grad / (clutch::sqrt(sum) + in.n[4])), sum}, {0, 2});
  }
};
template <class Rate>
void fused_adagrad(at::TensorList params, at::TensorList grads, at::TensorList sums, at::TensorList steps, Rate lr, double lr_decay, double decay, double eps,
                   bool maximize, const std::optional<at::Tensor>& scale, const std::optional<at::Tensor>& infinite) {
  const Extras extras(scale, infinite, lr);
  for (size_t i = 0; i < params.size(); ++i) {
    const clutch::Tensor out[] = {wrap(params[i]), wrap(sums[i])};
    const std::vector<clutch::Tensor> in{out[0], wrap(grads[i]), out[1], wrap(steps[i].reshape({1}))};
    with_extras<Adagrad>(extras, [&](auto formula) { launch(formula, out, in, extras, {extras.rate, maximize ? -1.0 : 1.0, decay, lr_decay, eps}); });
  }
}

void unscale(at::TensorList grads, at::Tensor& found, const at::Tensor& inverse) {
  TORCH_CHECK(found.numel() == 1 && inverse.numel() == 1, "found_inf and inv_scale must be 1-element tensors.");
  const clutch::Tensor flag = wrap(found.reshape({1})), factor = wrap(inverse.reshape({1}));
  for (const at::Tensor& grad : grads) {
    TORCH_CHECK(grad.is_floating_point(), "grads must be floating");
    if (grad.numel() == 0) continue;
    const clutch::Tensor g = wrap(grad.dim() == 0 ? grad.reshape({1}) : grad), inputs[] = {g};
    const clutch::Tensor bad =
        clutch::reduce(clutch::Reduce::amax, traced([](const In& in) { return clutch::cast(!clutch::isfinite(in.x[0]), clutch::DType::i32); }, inputs), inputs);
    apply(flag, {flag, bad}, [](const In& in) { return clutch::max(in.x[0], clutch::cast(in.x[1], clutch::DType::f32)); });
    apply(g, {g, factor}, [](const In& in) { return clutch::select(in.x[1] == 1.0, in.x[0], in.x[0] * in.x[1]); });
  }
}
at::Tensor& update_scale(at::Tensor& scale, at::Tensor& tracker, const at::Tensor& found, double growth, double backoff, int64_t interval) {
  const clutch::Tensor outputs[] = {wrap(scale.reshape({1})), wrap(tracker.reshape({1}))}, inputs[] = {outputs[0], outputs[1], wrap(found.reshape({1}))};
  clutch::map_out(outputs,
                  traced(
                      [](const In& in) {
                        const Expr bad = in.x[2] != 0.0, successes = in.x[1] + 1, grows = successes == in.n[2], grown = in.x[0] * in.n[0];
                        const Expr larger = clutch::select(grows & clutch::isfinite(grown), grown, in.x[0]);
                        return std::vector<Expr>{clutch::select(bad, in.x[0] * in.n[1], larger), clutch::select(bad | grows, 0, successes)};
                      },
                      inputs, {growth, backoff, interval}),
                  inputs);
  return scale;
}

}  // namespace

void add_optimizers(OpTable& table) {
  table.family("optimizers");
  table.add<"_fused_adam_", &fused_adam<false, double>>("map: one launch a tensor");
  table.add<"_fused_adam_.tensor_lr", &fused_adam<false, const at::Tensor&>>("map: one launch a tensor");
  table.add<"_fused_adamw_", &fused_adam<true, double>>("map: one launch a tensor");
  table.add<"_fused_adamw_.tensor_lr", &fused_adam<true, const at::Tensor&>>("map: one launch a tensor");
  table.add<"_fused_sgd_", &fused_sgd<double>>("map: one launch a tensor");
  table.add<"_fused_sgd_.tensor_lr", &fused_sgd<const at::Tensor&>>("map: one launch a tensor");
  table.add<"_fused_adagrad_", &fused_adagrad<double>>("map: one launch a tensor");
  table.add<"_fused_adagrad_.tensor_lr", &fused_adagrad<const at::Tensor&>>("map: one launch a tensor");
  table.add<"_amp_foreach_non_finite_check_and_unscale_", &unscale>("reduce, map");
  table.add<"_amp_update_scale_", &update_scale>("map");
}

}  // namespace torch_clutch
