// SPDX-License-Identifier: Apache-2.0
// Activations and their gradients.
#include "ops/shared_elements.hpp"
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>

namespace torch_clutch {
namespace {

at::Tensor& relu_out(const at::Tensor& self, at::Tensor& out) {
  TORCH_CHECK(self.scalar_type() != at::kBool, "Boolean inputs not supported for relu");
  return unary(out, self, [](const In& in) { return clutch::select(in.x[0] < 0, 0, in.x[0]); });
}
at::Tensor relu(const at::Tensor& self) {
  at::Tensor out = at::empty_like(self);
  return torch_clutch::relu_out(self, out);
}
at::Tensor& relu_(at::Tensor& self) { return torch_clutch::relu_out(self, self); }

bool tanh_form(c10::string_view form) {
  TORCH_CHECK(form == "none" || form == "tanh", "approximate argument must be either none or tanh.");
  return form == "tanh";
}
at::Tensor& gelu_out(const at::Tensor& self, c10::string_view form, at::Tensor& out) {
  if (tanh_form(form)) return unary(out, self, [](const In& in) { return clutch::gelu(in.x[0], clutch::GeluForm::tanh); });
  return unary(out, self, [](const In& in) { return clutch::gelu(in.x[0]); });
}
at::Tensor& gelu_backward_out(const at::Tensor& grad, const at::Tensor& self, c10::string_view form, at::Tensor& out) {
  if (tanh_form(form))
    return binary(out, grad, self, [](const In& in) {
      constexpr double kRoot = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kCubic = 0.044715;
      const Expr& x = in.x[1];
      const Expr t = clutch::tanh(kRoot * (x + kCubic * x * x * x));
      return in.x[0] * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * kRoot * (1.0 + 3.0 * kCubic * x * x));
    });
  return binary(out, grad, self, [](const In& in) {
    constexpr double kDensity = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    const Expr& x = in.x[1];
    return in.x[0] * (0.5 * (1.0 + clutch::erf(x * (1 / std::numbers::sqrt2))) + x * kDensity * clutch::exp(-0.5 * x * x));
  });
}

at::Tensor& silu_out(const at::Tensor& self, at::Tensor& out) {
  return unary(out, self, [](const In& in) { return clutch::silu(floating(in.x[0])); });
}
at::Tensor& silu_backward_out(const at::Tensor& grad, const at::Tensor& self, at::Tensor& out) {
  return binary(out, grad, self, [](const In& in) {
    const Expr s = clutch::sigmoid(in.x[1]);
    return in.x[0] * s * (1.0 + in.x[1] * (1.0 - s));
  });
}
// PyTorch makes this form of five other ops where a backend has none.
at::Tensor silu_backward(const at::Tensor& grad, const at::Tensor& self) {
  at::Tensor out = at::empty({0}, self.options());
  return silu_backward_out(grad, self, out);
}
Expr softplus_of(const Expr& x) { return clutch::max(x, 0.0) + clutch::log1p(clutch::exp(-clutch::abs(x))); }
at::Tensor& mish_out(const at::Tensor& self, at::Tensor& out) {
  return unary(out, self, [](const In& in) { return in.x[0] * clutch::tanh(softplus_of(floating(in.x[0]))); });
}
at::Tensor mish_backward(const at::Tensor& grad, const at::Tensor& self) {
  at::Tensor out = at::empty({0}, self.options());
  return binary(out, grad, self, [](const In& in) {
    const Expr& x = in.x[1];
    const Expr t = clutch::tanh(softplus_of(x));
    return in.x[0] * (t + x * clutch::sigmoid(x) * (1.0 - t * t));
  });
}

at::Tensor& tanh_backward_out(const at::Tensor& grad, const at::Tensor& y, at::Tensor& out) {
  return binary(out, grad, y, [](const In& in) { return in.x[0] * (1.0 - in.x[1] * in.x[1]); });
}
at::Tensor& sigmoid_backward_out(const at::Tensor& grad, const at::Tensor& y, at::Tensor& out) {
  return binary(out, grad, y, [](const In& in) { return in.x[0] * (1.0 - in.x[1]) * in.x[1]; });
}
at::Tensor& logit_backward_out(const at::Tensor& grad, const at::Tensor& self, std::optional<double> eps, at::Tensor& out) {
  if (eps.value_or(-1) < 0)
    return binary(out, grad, self,
                  [](const In& in) {
                    return clutch::select((in.x[1] < 0.0) | (in.x[1] > 1.0), clutch::cast(in.n[0], in.x[1].dtype()), in.x[0] / (in.x[1] * (1.0 - in.x[1])));
                  },
                  {std::nan("")});
  return binary(out, grad, self,
                [](const In& in) { return clutch::select((in.x[1] < in.n[0]) | (in.x[1] > in.n[1]), 0.0, in.x[0] / (in.x[1] * (1.0 - in.x[1]))); },
                {*eps, 1 - *eps});
}

at::Tensor& threshold_out(const at::Tensor& self, const at::Scalar& threshold, const at::Scalar& value, at::Tensor& out) {
  // In place it gives elements that share memory the same number, however often.
  if (out.is_same(self) && at::has_internal_overlap(out) == at::MemOverlap::Yes) {
    at::Tensor own = own_elements(out);
    torch_clutch::threshold_out(own, threshold, value, own);
    return out;
  }
  at::assert_no_internal_overlap(out);
  return unary(out, self, [](const In& in) { return clutch::select(in.x[0] <= in.n[0], in.n[1], in.x[0]); }, {threshold, value});
}
at::Tensor& threshold_backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Scalar& threshold, at::Tensor& out) {
  return binary(out, grad, self, [](const In& in) { return clutch::select(in.x[1] <= in.n[0], 0, in.x[0]); }, {threshold});
}

at::Tensor& leaky_relu_out(const at::Tensor& self, const at::Scalar& slope, at::Tensor& out) {
  return unary(out, self, [](const In& in) { return clutch::select(in.x[0] > 0.0, in.x[0], in.x[0] * in.n[0]); }, {slope.toDouble()});
}
at::Tensor& leaky_relu_backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Scalar& slope, bool, at::Tensor& out) {
  return binary(out, grad, self, [](const In& in) { return clutch::select(in.x[1] > 0.0, in.x[0], in.x[0] * in.n[0]); }, {slope.toDouble()});
}

at::Tensor& elu_out(const at::Tensor& self, const at::Scalar& alpha, const at::Scalar& scale, const at::Scalar& input_scale, at::Tensor& out) {
  return unary(out, self, [](const In& in) { return clutch::select(in.x[0] > 0.0, in.x[0] * in.n[1], clutch::expm1(in.x[0] * in.n[2]) * in.n[0]); },
               {alpha.toDouble() * scale.toDouble(), scale.toDouble(), input_scale.toDouble()});
}
at::Tensor& elu_backward_out(const at::Tensor& grad, const at::Scalar& alpha, const at::Scalar& scale, const at::Scalar& input_scale, bool is_result,
                             const at::Tensor& self_or_result, at::Tensor& out) {
  const double negative = alpha.toDouble() * scale.toDouble(), positive = scale.toDouble(), inner = input_scale.toDouble();
  if (is_result) {
    TORCH_CHECK(negative >= 0, "In-place elu backward calculation is triggered with a negative slope which is not supported.");
    return binary(out, grad, self_or_result,
                  [](const In& in) { return clutch::select(in.x[1] <= 0.0, in.x[0] * in.n[2] * (in.x[1] + in.n[0]), in.x[0] * in.n[1]); },
                  {negative, positive, inner});
  }
  return binary(out, grad, self_or_result,
                [](const In& in) { return clutch::select(in.x[1] <= 0.0, in.x[0] * in.n[2] * in.n[0] * clutch::exp(in.x[1] * in.n[2]), in.x[0] * in.n[1]); },
                {negative, positive, inner});
}

at::Tensor& softplus_out(const at::Tensor& self, const at::Scalar& beta, const at::Scalar& threshold, at::Tensor& out) {
  return unary(out, self,
               [](const In& in) {
                 const Expr scaled = in.x[0] * in.n[0];
                 return clutch::select(scaled > in.n[1], in.x[0], clutch::log1p(clutch::exp(scaled)) / in.n[0]);
               },
               {beta.toDouble(), threshold.toDouble()});
}
at::Tensor& softplus_backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Scalar& beta, const at::Scalar& threshold, at::Tensor& out) {
  return binary(out, grad, self,
                [](const In& in) {
                  const Expr scaled = in.x[1] * in.n[0];
                  return clutch::select(scaled > in.n[1], in.x[0], in.x[0] * clutch::sigmoid(scaled));
                },
                {beta.toDouble(), threshold.toDouble()});
}

at::Tensor& softshrink_out(const at::Tensor& self, const at::Scalar& lambda, at::Tensor& out) {
  TORCH_CHECK(lambda.toDouble() >= 0, "lambda must be greater or equal to 0, but found to be ", lambda.toDouble(), ".");
  return unary(out, self,
               [](const In& in) {
                 const Expr& x = in.x[0];
                 return clutch::select(x > in.n[0], x - in.n[0], clutch::select(x < -in.n[0], x + in.n[0], x * 0.0));
               },
               {lambda.toDouble()});
}
at::Tensor& hardshrink_out(const at::Tensor& self, const at::Scalar& lambda, at::Tensor& out) {
  return unary(out, self, [](const In& in) { return clutch::select((in.x[0] >= -in.n[0]) & (in.x[0] <= in.n[0]), 0.0, in.x[0]); }, {lambda.toDouble()});
}
at::Tensor& shrink_backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Scalar& lambda, at::Tensor& out) {
  return binary(out, grad, self, [](const In& in) { return clutch::select((in.x[1] >= -in.n[0]) & (in.x[1] <= in.n[0]), 0.0, in.x[0]); }, {lambda.toDouble()});
}

at::Tensor& hardtanh_out(const at::Tensor& self, const at::Scalar& low, const at::Scalar& high, at::Tensor& out) {
  TORCH_CHECK(self.scalar_type() != at::kBool, "Bool inputs not supported for hardtanh");
  if (at::isIntegralType(self.scalar_type(), false)) {
    TORCH_CHECK(!(self.scalar_type() == at::kByte && (low.toDouble() < 0 || high.toDouble() < 0)),
                "cannot do hardtanh on an unsigned type with negative limits");
    return unary(out, self, [](const In& in) { return clutch::min(clutch::max(in.x[0], in.n[0]), in.n[1]); },
                 {at::Scalar(low.toLong()), at::Scalar(high.toLong())});
  }
  return unary(out, self, [](const In& in) { return clutch::min(clutch::max(in.x[0], in.n[0]), in.n[1]); }, {low.toDouble(), high.toDouble()});
}
at::Tensor hardtanh(const at::Tensor& self, const at::Scalar& low, const at::Scalar& high) {
  at::Tensor out = at::empty_like(self);
  return torch_clutch::hardtanh_out(self, low, high, out);
}
at::Tensor& hardtanh_(at::Tensor& self, const at::Scalar& low, const at::Scalar& high) { return torch_clutch::hardtanh_out(self, low, high, self); }
at::Tensor& hardtanh_backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Scalar& low, const at::Scalar& high, at::Tensor& out) {
  return binary(out, grad, self, [](const In& in) { return clutch::select((in.x[1] <= in.n[0]) | (in.x[1] >= in.n[1]), 0.0, in.x[0]); },
                {low.toDouble(), high.toDouble()});
}
at::Tensor hardtanh_backward(const at::Tensor& grad, const at::Tensor& self, const at::Scalar& low, const at::Scalar& high) {
  at::Tensor out = at::empty({0}, self.options());
  return torch_clutch::hardtanh_backward_out(grad, self, low, high, out);
}
at::Tensor& hardsigmoid_out(const at::Tensor& self, at::Tensor& out) {
  return unary_float(out, self, [](const In& in) { return clutch::min(clutch::max(in.x[0] + 3.0, 0.0), 6.0) / 6.0; });
}
at::Tensor& hardsigmoid_backward_out(const at::Tensor& grad, const at::Tensor& self, at::Tensor& out) {
  return binary(out, grad, self, [](const In& in) { return clutch::select((in.x[1] > -3.0) & (in.x[1] < 3.0), in.x[0] / 6.0, 0.0); });
}
at::Tensor& hardswish_out(const at::Tensor& self, at::Tensor& out) {
  return unary(out, self, [](const In& in) { return in.x[0] * clutch::min(clutch::max(in.x[0] + 3.0, 0.0), 6.0) / 6.0; });
}
at::Tensor hardswish(const at::Tensor& self) {
  at::Tensor out = at::empty_like(self);
  return torch_clutch::hardswish_out(self, out);
}
at::Tensor& hardswish_(at::Tensor& self) { return torch_clutch::hardswish_out(self, self); }
at::Tensor hardswish_backward(const at::Tensor& grad, const at::Tensor& self) {
  at::Tensor out = at::empty({0}, self.options());
  return binary(out, grad, self, [](const In& in) {
    const Expr& x = in.x[1];
    return clutch::select(x <= -3.0, 0.0, clutch::select(x < 3.0, in.x[0] * (x / 3.0 + 0.5), in.x[0]));
  });
}

at::Tensor& log_sigmoid_out(const at::Tensor& self, at::Tensor& out) {
  return unary(out, self, [](const In& in) { return clutch::min(in.x[0], 0.0) - clutch::log1p(clutch::exp(-clutch::abs(in.x[0]))); });
}
std::tuple<at::Tensor&, at::Tensor&> log_sigmoid_forward_out(const at::Tensor& self, at::Tensor& out, at::Tensor& buffer) {
  torch_clutch::log_sigmoid_out(self, out);
  return {out, buffer};
}
std::tuple<at::Tensor, at::Tensor> log_sigmoid_forward(const at::Tensor& self) {
  at::Tensor out = at::empty({0}, self.options());
  torch_clutch::log_sigmoid_out(self, out);
  return {out, at::empty({0}, self.options())};
}
at::Tensor& log_sigmoid_backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Tensor&, at::Tensor& out) {
  return binary(out, grad, self, [](const In& in) { return in.x[0] * clutch::sigmoid(-in.x[1]); });
}
at::Tensor log_sigmoid_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& buffer) {
  at::Tensor out = at::empty({0}, self.options());
  return torch_clutch::log_sigmoid_backward_out(grad, self, buffer, out);
}

at::Tensor& glu_out(const at::Tensor& self, int64_t dim, at::Tensor& out) {
  const int64_t half = self.size(dim) / 2;
  return binary(out, self.narrow(dim, 0, half), self.narrow(dim, half, half), [](const In& in) { return in.x[0] * clutch::sigmoid(in.x[1]); });
}
at::Tensor& glu_backward_out(const at::Tensor& grad, const at::Tensor& self, int64_t dim, at::Tensor& out) {
  const int64_t half = self.size(dim) / 2;
  if (!out.sizes().equals(self.sizes())) out.resize_(self.sizes());
  const at::Tensor a = self.narrow(dim, 0, half), b = self.narrow(dim, half, half);
  at::Tensor first = out.narrow(dim, 0, half), second = out.narrow(dim, half, half);
  binary(first, grad, b, [](const In& in) { return in.x[0] * clutch::sigmoid(in.x[1]); });
  ternary(second, grad, a, b, [](const In& in) {
    const Expr s = clutch::sigmoid(in.x[2]);
    return in.x[0] * in.x[1] * s * (1.0 - s);
  });
  return out;
}
at::Tensor glu_backward(const at::Tensor& grad, const at::Tensor& self, int64_t dim) {
  at::Tensor out = at::empty_like(self, at::MemoryFormat::Contiguous);
  return torch_clutch::glu_backward_out(grad, self, dim, out);
}

at::Tensor prelu(const at::Tensor& self, const at::Tensor& weight) {
  at::Tensor out = at::empty({0}, self.options());
  return binary(out, self, weight, [](const In& in) { return clutch::select(in.x[0] > 0.0, in.x[0], in.x[0] * in.x[1]); });
}
std::tuple<at::Tensor, at::Tensor> prelu_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& weight) {
  at::Tensor of_self = at::empty({0}, self.options()), of_weight = at::empty({0}, self.options());
  ternary(of_self, grad, self, weight, [](const In& in) { return clutch::select(in.x[1] > 0.0, in.x[0], in.x[0] * in.x[2]); });
  binary(of_weight, grad, self, [](const In& in) { return clutch::select(in.x[1] > 0.0, 0.0, in.x[0] * in.x[1]); });
  return {of_self, of_weight};
}

}  // namespace

void add_activations(OpTable& table) {
  table.family("activations");
  table.add<"relu", &relu>("relu");
  table.add<"relu_", &relu_>("relu");
  table.add<"relu.out", &relu_out>("relu");
  table.add<"gelu.out", &gelu_out>("gelu");
  table.add<"gelu_backward.grad_input", &gelu_backward_out>("map");
  table.add<"silu.out", &silu_out>("silu");
  table.add<"silu_backward", &silu_backward>("map");
  table.add<"silu_backward.grad_input", &silu_backward_out>("map");
  table.add<"mish.out", &mish_out>("map of softplus");
  table.add<"mish_backward", &mish_backward>("map");
  table.add<"tanh_backward.grad_input", &tanh_backward_out>("map");
  table.add<"sigmoid_backward.grad_input", &sigmoid_backward_out>("map");
  table.add<"logit_backward.grad_input", &logit_backward_out>("map");
  table.add<"threshold.out", &threshold_out>("map of select");
  table.add<"threshold_backward.grad_input", &threshold_backward_out>("map of select");
  table.add<"leaky_relu.out", &leaky_relu_out>("leaky_relu");
  table.add<"leaky_relu_backward.grad_input", &leaky_relu_backward_out>("map of select");
  table.add<"elu.out", &elu_out>("map of expm1");
  table.add<"elu_backward.grad_input", &elu_backward_out>("map of exp");
  table.add<"softplus.out", &softplus_out>("map of log1p");
  table.add<"softplus_backward.grad_input", &softplus_backward_out>("map of sigmoid");
  table.add<"softshrink.out", &softshrink_out>("map of select");
  table.add<"softshrink_backward.grad_input", &shrink_backward_out>("map of select");
  table.add<"hardshrink.out", &hardshrink_out>("map of select");
  table.add<"hardshrink_backward.grad_input", &shrink_backward_out>("map of select");
  table.add<"hardtanh", &hardtanh>("map of min and max");
  table.add<"hardtanh_", &hardtanh_>("map of min and max");
  table.add<"hardtanh.out", &hardtanh_out>("map of min and max");
  table.add<"hardtanh_backward", &hardtanh_backward>("map of select");
  table.add<"hardtanh_backward.grad_input", &hardtanh_backward_out>("map of select");
  table.add<"hardsigmoid.out", &hardsigmoid_out>("map of min and max");
  table.add<"hardsigmoid_backward.grad_input", &hardsigmoid_backward_out>("map of select");
  table.add<"hardswish", &hardswish>("map of min and max");
  table.add<"hardswish_", &hardswish_>("map of min and max");
  table.add<"hardswish.out", &hardswish_out>("map of min and max");
  table.add<"hardswish_backward", &hardswish_backward>("map of select");
  table.add<"log_sigmoid_forward", &log_sigmoid_forward>("map of log1p");
  table.add<"log_sigmoid_forward.output", &log_sigmoid_forward_out>("map of log1p");
  table.add<"log_sigmoid_backward", &log_sigmoid_backward>("map of sigmoid");
  table.add<"log_sigmoid_backward.grad_input", &log_sigmoid_backward_out>("map of sigmoid");
  table.add<"glu.out", &glu_out>("map of sigmoid");
  table.add<"glu_backward", &glu_backward>("map of sigmoid");
  table.add<"glu_backward.grad_input", &glu_backward_out>("map of sigmoid");
  table.add<"_prelu_kernel", &prelu>("map of select");
  table.add<"_prelu_kernel_backward", &prelu_backward>("map of select");
}

}  // namespace torch_clutch
