// SPDX-License-Identifier: Apache-2.0
// Fused steps of optimizers on PyTorch's states, by clutch's steps over lists, and scaling of losses.
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>
#include <clutch/foreach.hpp>
#include <clutch/ops/optim.hpp>

#include <map>

namespace torch_clutch {
namespace {

using MaybeTensor = const std::optional<at::Tensor>&;
using List = std::vector<clutch::Tensor>;

// Elements in the order of memory, which is the same for a parameter, its gradient and its states: clutch's steps take contiguous ones.
List in_memory_order(at::TensorList tensors, at::TensorList params) {
  List all;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor& t = tensors[i];
    const bool dense = t.is_non_overlapping_and_dense() && t.sizes() == params[i].sizes() && t.strides() == params[i].strides();
    if (!dense && !(t.is_contiguous() && params[i].is_contiguous())) refuse("parameters and states of different strides");
    all.push_back(wrap_flat(t));
  }
  return all;
}
List of_one_element(at::TensorList tensors) {
  List all;
  for (const at::Tensor& t : tensors) {
    TORCH_CHECK(t.numel() == 1, "a step must have one element, got ", t.sizes());
    all.push_back(wrap_flat(t));
  }
  return all;
}

// The bits of PyTorch's fused steps on its CPU, whose SGD takes the same way as the others where it maximizes; those on its GPUs do not.
constexpr clutch::optim::Precision kPrecision{.numerics = clutch::optim::Numerics::torch_cpu};

clutch::optim::StepOptions step_options(MaybeTensor scale, MaybeTensor infinite) {
  clutch::optim::StepOptions options;
  if (scale.has_value() && scale->defined()) options.grad_scale = wrap(scale->reshape({1}));
  if (infinite.has_value() && infinite->defined()) options.found_inf = wrap(infinite->reshape({1}));
  return options;
}
// A learning rate is a number, or a tensor, which may be the host's.
void set_rate(double lr, double& number, clutch::optim::StepOptions&) { number = lr; }
void set_rate(const at::Tensor& lr, double& number, clutch::optim::StepOptions& options) {
  if (lr.is_cpu())
    number = lr.item<double>();
  else
    options.lr = wrap(lr.reshape({1}));
}

template <bool kDecoupled, class Rate>
void fused_adam(at::TensorList params, at::TensorList grads, at::TensorList means, at::TensorList squares, at::TensorList largest, at::TensorList steps,
                Rate lr, double beta1, double beta2, double decay, double eps, bool amsgrad, bool maximize, const std::optional<at::Tensor>& scale,
                const std::optional<at::Tensor>& infinite) {
  if (params.empty()) return;
  clutch::optim::StepOptions step = step_options(scale, infinite);
  clutch::optim::AdamOptions options{.beta1 = beta1,
                                     .beta2 = beta2,
                                     .eps = eps,
                                     .weight_decay = decay,
                                     .amsgrad = amsgrad,
                                     .maximize = maximize,
                                     .decoupled_weight_decay = kDecoupled,
                                     .precision = kPrecision};
  set_rate(lr, options.lr, step);
  clutch::optim::adam_(in_memory_order(params, params), in_memory_order(grads, params), in_memory_order(means, params), in_memory_order(squares, params),
                       in_memory_order(largest, params), of_one_element(steps), options, step);
}

template <class Rate>
void fused_sgd(at::TensorList params, at::TensorList grads, at::TensorList buffers, double decay, double momentum, Rate lr, double dampening, bool nesterov,
               bool maximize, bool first, const std::optional<at::Tensor>& scale, const std::optional<at::Tensor>& infinite) {
  if (params.empty()) return;
  clutch::optim::StepOptions step = step_options(scale, infinite);
  clutch::optim::SGDOptions options{
      .momentum = momentum, .dampening = dampening, .weight_decay = decay, .nesterov = nesterov, .maximize = maximize, .precision = kPrecision};
  set_rate(lr, options.lr, step);
  // PyTorch does not count these steps: the first one alone is another.
  const clutch::Tensor number = wrap(at::full({1}, first ? 1.0 : 2.0, params[0].options().dtype(at::kFloat)));
  clutch::optim::sgd_(in_memory_order(params, params), in_memory_order(grads, params), in_memory_order(momentum == 0 ? at::TensorList() : buffers, params),
                      List(params.size(), number), options, step);
}

template <class Rate>
void fused_adagrad(at::TensorList params, at::TensorList grads, at::TensorList sums, at::TensorList steps, Rate lr, double lr_decay, double decay, double eps,
                   bool maximize, const std::optional<at::Tensor>& scale, const std::optional<at::Tensor>& infinite) {
  if (params.empty()) return;
  clutch::optim::StepOptions step = step_options(scale, infinite);
  clutch::optim::AdagradOptions options{.lr_decay = lr_decay, .weight_decay = decay, .eps = eps, .maximize = maximize, .precision = kPrecision};
  set_rate(lr, options.lr, step);
  clutch::optim::adagrad_(in_memory_order(params, params), in_memory_order(grads, params), in_memory_order(sums, params), of_one_element(steps), options, step);
}

void unscale(at::TensorList grads, at::Tensor& found, const at::Tensor& inverse) {
  TORCH_CHECK(found.numel() == 1 && inverse.numel() == 1, "found_inf and inv_scale must be 1-element tensors.");
  const clutch::Tensor flag = wrap(found.reshape({1})), factor = wrap(inverse.reshape({1}));
  std::map<at::ScalarType, std::vector<at::Tensor>> of_dtype;
  for (const at::Tensor& grad : grads) {
    TORCH_CHECK(grad.is_floating_point(), "grads must be floating");
    if (grad.numel() > 0) of_dtype[grad.scalar_type()].push_back(grad);
  }
  std::vector<List> lists;
  for (const auto& [dtype, part] : of_dtype) lists.push_back(in_memory_order(part, part));
  // clutch's own function divides by a scale, PyTorch's multiplies by the inverse.
  for (const List& list : lists) {
    clutch::optim::check_and_unscale_(list, flag);
    const List factors(list.size(), factor);
    const std::span<const clutch::Tensor> inputs[] = {list, factors};
    const clutch::Tensor first[] = {list[0], factor};
    clutch::foreach_map_out(std::span(&inputs[0], 1), traced([](const In& in) { return clutch::select(in.x[1] == 1.0, in.x[0], in.x[0] * in.x[1]); }, first),
                            inputs);
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
  table.add<"_fused_adam_", &fused_adam<false, double>>("optim::adam_");
  table.add<"_fused_adam_.tensor_lr", &fused_adam<false, const at::Tensor&>>("optim::adam_");
  table.add<"_fused_adamw_", &fused_adam<true, double>>("optim::adam_");
  table.add<"_fused_adamw_.tensor_lr", &fused_adam<true, const at::Tensor&>>("optim::adam_");
  table.add<"_fused_sgd_", &fused_sgd<double>>("optim::sgd_");
  table.add<"_fused_sgd_.tensor_lr", &fused_sgd<const at::Tensor&>>("optim::sgd_");
  table.add<"_fused_adagrad_", &fused_adagrad<double>>("optim::adagrad_");
  table.add<"_fused_adagrad_.tensor_lr", &fused_adagrad<const at::Tensor&>>("optim::adagrad_");
  table.add<"_amp_foreach_non_finite_check_and_unscale_", &unscale>("optim::check_and_unscale_, foreach_map");
  table.add<"_amp_update_scale_", &update_scale>("map");
}

}  // namespace torch_clutch
