// SPDX-License-Identifier: Apache-2.0
// Losses and their gradients.
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>
#include <ATen/core/Reduction.h>
#include <ATen/native/Resize.h>
#include <clutch/ops/reduce.hpp>

namespace torch_clutch {
namespace {

// Classes stand in dimension 1, or in 0 of one sample: a view with them last.
at::Tensor classes_last(const at::Tensor& x) { return x.dim() <= 1 ? x : x.movedim(1, -1); }
at::Tensor weights_of(const std::optional<at::Tensor>& weight) { return weight.has_value() && weight->defined() ? *weight : at::Tensor(); }

void check_target(const at::Tensor& self, const at::Tensor& target) {
  TORCH_CHECK(target.scalar_type() == at::kLong || target.scalar_type() == at::kByte, "expected scalar type Long but found ", target.scalar_type());
  const int64_t samples = self.dim() <= 1 ? 1 : self.numel() / std::max<int64_t>(self.size(1), 1);
  TORCH_CHECK(target.numel() == samples, "size mismatch (got input: ", self.sizes(), ", target: ", target.sizes(), ")");
}

// The loss of each sample and its weight in one launch; then two sums and a quotient.
std::tuple<at::Tensor&, at::Tensor&> nll_loss_out(const at::Tensor& self, const at::Tensor& target, const std::optional<at::Tensor>& weight, int64_t reduction,
                                                  c10::SymInt ignored, at::Tensor& out, at::Tensor& total) {
  check_target(self, target);
  if (self.numel() == 0 || self.dim() == 0) refuse("no samples or no classes");
  const at::Tensor w = weights_of(weight);
  const at::Tensor rows = classes_last(self).reshape({-1, self.size(self.dim() == 1 ? 0 : 1)});
  const at::Tensor chosen = target.reshape({-1});
  at::Tensor losses = at::empty(chosen.sizes(), self.options()), weights = at::empty(chosen.sizes(), self.options());
  const clutch::Tensor outs[] = {wrap(losses), wrap(weights)}, inputs[] = {wrap(chosen)};
  const std::int64_t ignore = ignored.expect_int();
  if (w.defined()) {
    clutch::map_out(outs,
                    traced(
                        [](const In& in) {
                          const Expr zero = in.c[1][in.x[0]] * 0.0, counted = in.x[0] != in.n[0];
                          const Expr used = clutch::select(counted, in.c[1][in.x[0]], zero);
                          return std::vector<Expr>{clutch::select(counted, -used * in.c[0][{clutch::position(0), in.x[0]}], zero), used};
                        },
                        inputs, {ignore}, {wrap(rows), wrap(w)}),
                    inputs);
  } else {
    clutch::map_out(
        outs,
        traced(
            [](const In& in) {
              const Expr counted = in.x[0] != in.n[0];
              return std::vector<Expr>{clutch::select(counted, -in.c[0][{clutch::position(0), in.x[0]}], 0.0), clutch::cast(counted, clutch::DType::f32)};
            },
            inputs, {ignore}, {wrap(rows)}),
        inputs);
  }
  at::native::resize_output(total, {});
  if (reduction == at::Reduction::None) {
    at::native::resize_output(out, target.sizes());
    out.copy_(losses.view(target.sizes()));
    total.zero_();
    return {out, total};
  }
  at::native::resize_output(out, {});
  at::sum_out(total, weights, at::IntArrayRef{}, false, std::nullopt);
  at::sum_out(out, losses, at::IntArrayRef{}, false, std::nullopt);
  if (reduction == at::Reduction::Mean) out.div_(total);
  return {out, total};
}

at::Tensor& nll_loss_backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target, const std::optional<at::Tensor>& weight,
                                  int64_t reduction, c10::SymInt ignored, const at::Tensor& total, at::Tensor& out) {
  check_target(self, target);
  at::native::resize_output(out, self.sizes());
  if (self.numel() == 0 || self.dim() == 0) refuse("no samples or no classes");
  const at::Tensor w = weights_of(weight);
  const at::Tensor rows = classes_last(out);
  at::DimVector spread(rows.sizes());
  spread.back() = 1;
  const clutch::Tensor chosen = wrap(target.reshape(spread).expand(rows.sizes()));
  at::Tensor scale = reduction == at::Reduction::Mean ? grad.div(total) : grad;
  scale = scale.dim() == 0 ? scale.expand(rows.sizes()) : scale.reshape(spread).expand(rows.sizes());
  const clutch::Tensor each = w.defined() ? wrap(scale.mul(w)) : wrap(scale);
  apply(wrap(rows), {chosen, each}, [](const In& in) { return clutch::select((clutch::position(-1) == in.x[0]) & (in.x[0] != in.n[0]), -in.x[1], 0.0); },
        {ignored.expect_int()});
  return out;
}

std::tuple<at::Tensor, at::Tensor> nll_loss2d(const at::Tensor& self, const at::Tensor& target, const std::optional<at::Tensor>& weight, int64_t reduction,
                                              c10::SymInt ignored) {
  at::Tensor out = at::empty({0}, self.options()), total = at::empty({0}, self.options());
  torch_clutch::nll_loss_out(self, target, weight, reduction, ignored, out, total);
  return {out, total};
}
at::Tensor nll_loss2d_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target, const std::optional<at::Tensor>& weight,
                               int64_t reduction, c10::SymInt ignored, const at::Tensor& total) {
  at::Tensor out = at::empty_like(self);
  return torch_clutch::nll_loss_backward_out(grad, self, target, weight, reduction, ignored, total, out);
}

// A loss of pairs of elements, summed in one launch.
template <class F>
at::Tensor& pair_loss_out(at::Tensor& out, const at::Tensor& self, const at::Tensor& target, int64_t reduction, F f, Numbers numbers = {}) {
  if (!at::isFloatingType(self.scalar_type()) || self.scalar_type() != target.scalar_type()) refuse("losses of integers or of two dtypes");
  if (reduction == at::Reduction::None) return binary(out, self, target, f, numbers);
  at::native::resize_output(out, {});
  std::vector<at::Tensor> both = at::broadcast_tensors({self, target});
  if (both[0].numel() == 0) refuse("a loss of nothing");
  if (both[0].dim() == 0) both = {both[0].reshape({1}), both[1].reshape({1})};
  const clutch::Tensor inputs[] = {wrap(both[0]), wrap(both[1])};
  clutch::reduce_out(wrap(out), reduction == at::Reduction::Mean ? clutch::Reduce::mean : clutch::Reduce::sum, traced(f, inputs, numbers), inputs);
  return out;
}
template <class F>
at::Tensor& pair_loss_backward_out(at::Tensor& out, const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target, int64_t reduction, F f,
                                   double number = 0) {
  const double share =
      reduction == at::Reduction::Mean ? 1.0 / static_cast<double>(std::max<int64_t>(at::broadcast_tensors({self, target})[0].numel(), 1)) : 1.0;
  return ternary(out, grad, self, target, f, {share, number});
}

at::Tensor& mse_loss_out(const at::Tensor& self, const at::Tensor& target, int64_t reduction, at::Tensor& out) {
  return pair_loss_out(out, self, target, reduction, [](const In& in) { return (in.x[0] - in.x[1]) * (in.x[0] - in.x[1]); });
}
at::Tensor& mse_loss_backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target, int64_t reduction, at::Tensor& out) {
  return pair_loss_backward_out(out, grad, self, target, reduction, [](const In& in) { return in.x[0] * (in.x[1] - in.x[2]) * (2.0 * in.n[0]); });
}
at::Tensor mse_loss_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target, int64_t reduction) {
  at::Tensor out = at::empty({0}, self.options());
  return torch_clutch::mse_loss_backward_out(grad, self, target, reduction, out);
}

at::Tensor& smooth_l1_out(const at::Tensor& self, const at::Tensor& target, int64_t reduction, double beta, at::Tensor& out) {
  if (beta == 0) return pair_loss_out(out, self, target, reduction, [](const In& in) { return clutch::abs(in.x[0] - in.x[1]); });
  return pair_loss_out(out, self, target, reduction,
                       [](const In& in) {
                         const Expr d = clutch::abs(in.x[0] - in.x[1]);
                         return clutch::select(d < in.n[0], 0.5 * d * d / in.n[0], d - 0.5 * in.n[0]);
                       },
                       {beta});
}
at::Tensor& smooth_l1_backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target, int64_t reduction, double beta, at::Tensor& out) {
  return pair_loss_backward_out(
      out, grad, self, target, reduction,
      [](const In& in) {
        const Expr d = in.x[1] - in.x[2];
        return in.x[0] * in.n[0] * clutch::select(d <= -in.n[1], -1.0, clutch::select(d >= in.n[1], 1.0, d / in.n[1]));
      },
      beta);
}
at::Tensor huber_loss(const at::Tensor& self, const at::Tensor& target, int64_t reduction, double delta) {
  TORCH_CHECK(delta > 0, "huber_loss does not support non-positive values for delta.");
  at::Tensor out = at::empty({0}, self.options());
  return pair_loss_out(out, self, target, reduction,
                       [](const In& in) {
                         const Expr d = clutch::abs(in.x[0] - in.x[1]);
                         return clutch::select(d <= in.n[0], 0.5 * d * d, in.n[0] * (d - 0.5 * in.n[0]));
                       },
                       {delta});
}
at::Tensor& huber_backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target, int64_t reduction, double delta, at::Tensor& out) {
  return pair_loss_backward_out(
      out, grad, self, target, reduction,
      [](const In& in) {
        const Expr d = in.x[1] - in.x[2];
        return in.x[0] * in.n[0] * clutch::select(d <= -in.n[1], -in.n[1], clutch::select(d >= in.n[1], in.n[1], d));
      },
      delta);
}

constexpr double kLeastLog = -100;  // of PyTorch: a loss of 0 and 1 is finite
at::Tensor binary_cross_entropy(const at::Tensor& self, const at::Tensor& target, const std::optional<at::Tensor>& weight, int64_t reduction) {
  if (weights_of(weight).defined()) {
    at::Tensor each = torch_clutch::binary_cross_entropy(self, target, std::nullopt, at::Reduction::None).mul_(*weight);
    return reduction == at::Reduction::None ? each : reduction == at::Reduction::Mean ? each.mean() : each.sum();
  }
  at::Tensor out = at::empty({0}, self.options());
  return pair_loss_out(out, self, target, reduction, [](const In& in) {
    const Expr one = clutch::max(clutch::log(in.x[0]), kLeastLog), other = clutch::max(clutch::log1p(-in.x[0]), kLeastLog);
    return (in.x[1] - 1.0) * other - in.x[1] * one;
  });
}
at::Tensor binary_cross_entropy_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target, const std::optional<at::Tensor>& weight,
                                         int64_t reduction) {
  at::Tensor out = at::empty({0}, self.options());
  pair_loss_backward_out(out, grad, self, target, reduction,
                         [](const In& in) { return in.x[0] * in.n[0] * (in.x[1] - in.x[2]) / clutch::max((1.0 - in.x[1]) * in.x[1], 1e-12); });
  return weights_of(weight).defined() ? out.mul_(*weight) : out;
}

}  // namespace

void add_losses(OpTable& table) {
  table.family("losses");
  table.add<"nll_loss_forward.output", &nll_loss_out>("map with captured(), sum");
  table.add<"nll_loss_backward.grad_input", &nll_loss_backward_out>("map with position()");
  table.add<"nll_loss2d_forward", &nll_loss2d>("map with captured(), sum");
  table.add<"nll_loss2d_backward", &nll_loss2d_backward>("map with position()");
  table.add<"mse_loss.out", &mse_loss_out>("reduce");
  table.add<"mse_loss_backward", &mse_loss_backward>("map");
  table.add<"mse_loss_backward.grad_input", &mse_loss_backward_out>("map");
  table.add<"smooth_l1_loss.out", &smooth_l1_out>("reduce");
  table.add<"smooth_l1_loss_backward.grad_input", &smooth_l1_backward_out>("map");
  table.add<"huber_loss", &huber_loss>("reduce");
  table.add<"huber_loss_backward.out", &huber_backward_out>("map");
  table.add<"binary_cross_entropy", &binary_cross_entropy>("reduce");
  table.add<"binary_cross_entropy_backward", &binary_cross_entropy_backward>("map");
}

}  // namespace torch_clutch
