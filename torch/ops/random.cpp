// SPDX-License-Identifier: Apache-2.0
// Random numbers: Philox with its state on the device, equal bits on every device, new numbers at each replay of a graph.
// Integers, permutations and multinomial draws run on the CPU, seeded from the device's generator.
#include "ops/table.hpp"
#include "ops/traced.hpp"
#include "runtime/generator.hpp"

#include <ATen/ATen.h>
#include <ATen/native/Resize.h>
#include <clutch/ops/random.hpp>

#include <cmath>

namespace torch_clutch {
namespace {

using MaybeGenerator = const std::optional<at::Generator>&;

at::Tensor& uniform_(at::Tensor& self, double low, double high, std::optional<at::Generator> generator) {
  TORCH_CHECK(at::isFloatingType(self.scalar_type()), "check_uniform_bounds not implemented for '", self.scalar_type(), "'");
  TORCH_CHECK(low <= high, "uniform_ expects to return a [from, to) range, but found from=", low, " > to=", high);
  if (self.numel() > 0) clutch::uniform_(wrap(self), {.low = low, .high = high, .generator = generator_of(generator, self.device().index())});
  return self;
}
at::Tensor& normal_(at::Tensor& self, double mean, double deviation, std::optional<at::Generator> generator) {
  TORCH_CHECK(deviation >= 0, "normal expects std >= 0.0, but found std ", deviation);
  if (self.is_complex()) {
    at::Tensor parts = at::view_as_real(self);
    torch_clutch::normal_(parts, 0, deviation / std::sqrt(2.0), generator);
    if (mean != 0) self.add_(mean);
    return self;
  }
  TORCH_CHECK(at::isFloatingType(self.scalar_type()), "\"normal_kernel\" not implemented for '", self.scalar_type(), "'");
  if (self.numel() > 0) clutch::normal_(wrap(self), {.mean = mean, .stddev = deviation, .generator = generator_of(generator, self.device().index())});
  return self;
}

// Numbers in [0, 1) of a tensor's shape, f64 where that one is.
clutch::Tensor drawn(const at::Tensor& like, MaybeGenerator generator) {
  return clutch::rand(dims(like.sizes()), {.dtype = like.scalar_type() == at::kDouble ? clutch::DType::f64 : clutch::DType::f32,
                                           .device = device(like.device().index()),
                                           .generator = generator_of(generator, like.device().index())});
}
at::Tensor& bernoulli_float_(at::Tensor& self, double p, std::optional<at::Generator> generator) {
  TORCH_CHECK(0 <= p && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  if (self.numel() > 0) clutch::bernoulli_(wrap(self), p, {.generator = generator_of(generator, self.device().index())});
  return self;
}
at::Tensor& bernoulli_tensor_(at::Tensor& self, const at::Tensor& p, std::optional<at::Generator> generator) {
  if (self.numel() > 0) clutch::bernoulli_(wrap(self), wrap(p.to(self.device())), {.generator = generator_of(generator, self.device().index())});
  return self;
}
at::Tensor& bernoulli_out(const at::Tensor& p, std::optional<at::Generator> generator, at::Tensor& out) {
  at::native::resize_output(out, p.sizes());
  return torch_clutch::bernoulli_tensor_(out, p, generator);
}
at::Tensor& exponential_(at::Tensor& self, double rate, std::optional<at::Generator> generator) {
  TORCH_CHECK(at::isFloatingType(self.scalar_type()),
              "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you specified ", self.scalar_type());
  TORCH_CHECK(rate > 0, "exponential_ expects lambda > 0.0, but found lambda=", rate);
  if (self.numel() > 0) clutch::exponential_(wrap(self), rate, {.generator = generator_of(generator, self.device().index())});
  return self;
}
at::Tensor& geometric_(at::Tensor& self, double p, std::optional<at::Generator> generator) {
  TORCH_CHECK(0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  apply(self, {drawn(self, generator)}, [](const In& in) { return clutch::max(clutch::ceil(clutch::log1p(-in.x[0]) / in.n[0]), 1.0); }, {std::log1p(-p)});
  return self;
}
at::Tensor& cauchy_(at::Tensor& self, double median, double sigma, std::optional<at::Generator> generator) {
  TORCH_CHECK(at::isFloatingType(self.scalar_type()),
              "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you specified ", self.scalar_type());
  TORCH_CHECK(sigma > 0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  constexpr double kPi = 3.14159265358979323846;
  apply(self, {drawn(self, generator)}, [](const In& in) { return in.n[0] + in.n[1] * builtin("tan(x0)", {kPi * (in.x[0] - 0.5)}); }, {median, sigma});
  return self;
}
at::Tensor& log_normal_(at::Tensor& self, double mean, double deviation, std::optional<at::Generator> generator) {
  TORCH_CHECK(at::isFloatingType(self.scalar_type()), "log_normal_ expects a floating dtype, got ", self.scalar_type());
  TORCH_CHECK(deviation > 0, "log_normal_ expects std > 0.0, but found std=", deviation);
  return torch_clutch::normal_(self, mean, deviation, generator).exp_();
}

std::tuple<at::Tensor, at::Tensor> dropout(const at::Tensor& self, double p, std::optional<bool> train) {
  TORCH_CHECK(0 <= p && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  at::Tensor mask = at::empty(self.sizes(), self.options().dtype(at::kBool));
  if (!train.value_or(true)) return {self.clone(), mask.fill_(true)};
  at::Tensor out = at::empty(self.sizes(), self.options());
  if (self.numel() == 0) return {out, mask};
  const clutch::Tensor outs[] = {wrap(out), wrap(mask)}, inputs[] = {drawn(self, std::nullopt), wrap(self)};
  const double scale = p == 1 ? 0 : 1 / (1 - p);
  clutch::map_out(outs,
                  traced(
                      [](const In& in) {
                        const Expr kept = in.x[0] >= in.n[0];
                        return std::vector<Expr>{clutch::select(kept, in.x[1] * in.n[1], 0.0), kept};
                      },
                      inputs, {p, scale}),
                  inputs);
  return {out, mask};
}
at::Tensor dropout_backward(const at::Tensor& grad, const at::Tensor& mask, double scale) {
  at::Tensor out = at::empty(grad.sizes(), grad.options());
  apply(out, {wrap(grad), wrap(mask)}, [](const In& in) { return clutch::select(in.x[1], in.x[0] * in.n[0], 0.0); }, {scale});
  return out;
}

}  // namespace

void add_random(OpTable& table) {
  table.family("random numbers");
  table.add<"uniform_", &uniform_>("uniform_");
  table.add<"normal_", &normal_>("normal_");
  table.add<"bernoulli_.float", &bernoulli_float_>("bernoulli_");
  table.add<"bernoulli_.Tensor", &bernoulli_tensor_>("bernoulli_");
  table.add<"bernoulli.out", &bernoulli_out>("bernoulli_");
  table.add<"exponential_", &exponential_>("exponential_");
  table.add<"geometric_", &geometric_>("rand, map");
  table.add<"cauchy_", &cauchy_>("rand, map");
  table.add<"log_normal_", &log_normal_>("normal_, exp");
  table.add<"native_dropout", &dropout>("rand, map");
  table.add<"native_dropout_backward", &dropout_backward>("map");
}

}  // namespace torch_clutch
