// SPDX-License-Identifier: Apache-2.0
// Random numbers: Philox with its state on the device, equal bits on every device, new numbers at each replay of a graph.
#include "ops/table.hpp"
#include "ops/traced.hpp"
#include "runtime/generator.hpp"

#include <ATen/ATen.h>
#include <ATen/native/DistributionTemplates.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <clutch/ops/random.hpp>

#include <array>
#include <cmath>
#include <limits>

namespace torch_clutch {
namespace {

using MaybeGenerator = const std::optional<at::Generator>&;

at::Tensor& uniform_(at::Tensor& self, double low, double high, std::optional<at::Generator> generator) {
  if (self.is_complex()) {
    at::Tensor parts = at::view_as_real(self);
    torch_clutch::uniform_(parts, low, high, generator);
    return self;
  }
  TORCH_CHECK(at::isFloatingType(self.scalar_type()), "check_uniform_bounds not implemented for '", self.scalar_type(), "'");
  TORCH_CHECK(low <= high, "uniform_ expects to return a [from, to) range, but found from=", low, " > to=", high);
  if (self.numel() == 0) return self;
  if (at::isReducedFloatingType(self.scalar_type())) {
    // As PyTorch does, from numbers of f32: those of 16 bits would be 256 or 2048 different ones. What is rounded up to `high` becomes `low`.
    at::Tensor numbers = at::empty(self.sizes(), self.options().dtype(at::kFloat));
    torch_clutch::uniform_(numbers, low, high, generator);
    self.copy_(numbers);
    return self.masked_fill_(self.ge(high), low);
  }
  clutch::uniform_(wrap(self), {.low = low, .high = high, .generator = generator_of(generator, self.device().index())});
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
  if (self.numel() == 0) return self;
  TORCH_CHECK(at::isFloatingType(self.scalar_type()), "\"normal_kernel\" not implemented for '", self.scalar_type(), "'");
  clutch::normal_(wrap(self), {.mean = mean, .stddev = deviation, .generator = generator_of(generator, self.device().index())});
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
  apply(self, {drawn(self, generator)},
        [](const In& in) { return in.n[0] + in.n[1] * clutch::sin(kPi * (in.x[0] - 0.5)) / clutch::cos(kPi * (in.x[0] - 0.5)); }, {median, sigma});
  return self;
}
at::Tensor& log_normal_(at::Tensor& self, double mean, double deviation, std::optional<at::Generator> generator) {
  TORCH_CHECK(at::isFloatingType(self.scalar_type()), "log_normal_ expects a floating dtype, got ", self.scalar_type());
  TORCH_CHECK(deviation > 0, "log_normal_ expects std > 0.0, but found std=", deviation);
  return torch_clutch::normal_(self, mean, deviation, generator).exp_();
}

// PyTorch's checks and bounds end in a call of one of these.
template <class>
struct WholeNumbers {
  void operator()(at::TensorIteratorBase& iterator, std::uint64_t range, std::int64_t from, std::optional<at::Generator> generator) {
    const at::Tensor& self = iterator.tensor(0);
    if (range >= std::uint64_t{1} << 63) refuse("2^63 different numbers or more");
    const auto to = static_cast<std::int64_t>(static_cast<std::uint64_t>(from) + range);
    if (to < from) refuse("a bound past the largest integer");
    clutch::random_(wrap(self), from, to, {.generator = generator_of(generator, self.device().index())});
  }
  void operator()(at::TensorIteratorBase&, std::optional<at::Generator>) { refuse("2^64 different numbers"); }
};
at::Tensor& random_from_to_(at::Tensor& self, int64_t from, std::optional<int64_t> to, std::optional<at::Generator> generator) {
  return at::native::templates::random_from_to_impl<WholeNumbers, void>(self, from, to, generator);
}
at::Tensor& random_to_(at::Tensor& self, int64_t to, std::optional<at::Generator> generator) { return torch_clutch::random_from_to_(self, 0, to, generator); }
at::Tensor& random_(at::Tensor& self, std::optional<at::Generator> generator) {
  if (self.numel() > 0) clutch::random_(wrap(self), {.generator = generator_of(generator, self.device().index())});
  return self;
}
at::Tensor& randperm_generator_out(int64_t n, std::optional<at::Generator> generator, at::Tensor& out) {
  TORCH_CHECK(n >= 0, "n must be non-negative, got", n);
  at::native::check_supported_max_int_with_precision(n, out);
  at::native::resize_output(out, {n});
  if (n == 0) return out;
  const c10::DeviceIndex index = out.device().index();
  return out.copy_(unwrap(clutch::randperm(n, {.dtype = need_dtype(out.scalar_type()), .device = device(index), .generator = generator_of(generator, index)})));
}
at::Tensor& randperm_out(int64_t n, at::Tensor& out) { return torch_clutch::randperm_generator_out(n, std::nullopt, out); }

// Of exponential numbers divided by their rates, here by weights, the least one's place has a weight's share of the chances.
at::Tensor multinomial(const at::Tensor& self, int64_t samples, bool replacement, std::optional<at::Generator> generator) {
  TORCH_CHECK(at::isFloatingType(self.scalar_type()), "multinomial only supports floating-point dtypes for input, got: ", self.scalar_type());
  TORCH_CHECK(self.dim() == 1 || self.dim() == 2, "prob_dist must be 1 or 2 dim");
  TORCH_CHECK(samples > 0, "cannot sample n_sample <= 0 samples");
  TORCH_CHECK(replacement || samples <= self.size(-1), "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  TORCH_CHECK(self.size(-1) <= 1 << 24, "number of categories cannot exceed 2^24");
  at::DimVector sizes(self.sizes());
  sizes.back() = samples;
  if (self.numel() == 0) return at::empty(sizes, self.options().dtype(at::kLong));
  if (!clutch::current_stream(device(self.device().index())).is_capturing()) {
    TORCH_CHECK(self.max().lt(std::numeric_limits<double>::infinity()).logical_and(self.min().ge(0)).item<bool>(),
                "probability tensor contains either `inf`, `nan` or element < 0");
    TORCH_CHECK(!self.sum(-1).eq(0).any().item<bool>(), "invalid multinomial distribution (sum of probabilities <= 0)");
  }
  constexpr int64_t kMost = 1 << 26;  // numbers that are drawn at a time
  const bool each = replacement && samples > 1;
  if (each && samples > kMost / self.numel()) refuse("as many samples with replacement");
  at::DimVector drawn(self.sizes());
  if (each) drawn.insert(drawn.end() - 1, samples);
  at::Tensor times = at::empty(drawn, self.options().dtype(self.scalar_type() == at::kDouble ? at::kDouble : at::kFloat));
  torch_clutch::exponential_(times, 1, generator);
  const at::Tensor order = (each ? self.unsqueeze(-2) : self) / times;
  if (each) return order.argmax(-1);
  return samples == 1 ? order.argmax(-1, true) : std::get<1>(order.topk(samples));
}
at::Tensor& multinomial_out(const at::Tensor& self, int64_t samples, bool replacement, std::optional<at::Generator> generator, at::Tensor& out) {
  const at::Tensor made = torch_clutch::multinomial(self, samples, replacement, generator);
  return deliver(made, out);
}

std::tuple<at::Tensor, at::Tensor> dropout(const at::Tensor& self, double p, std::optional<bool> train) {
  TORCH_CHECK(0 <= p && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  at::Tensor mask = at::empty(self.sizes(), self.options().dtype(at::kBool));
  if (!train.value_or(true)) return {self.clone(), mask.fill_(true)};
  at::Tensor out = at::empty(self.sizes(), self.options());
  if (self.numel() == 0) return {out, mask};
  const clutch::Tensor outs[] = {wrap(out), wrap(mask)}, inputs[] = {wrap(self)};
  const clutch::Generator generator = generator_of(std::nullopt, self.device().index());
  const double scale = p == 1 ? 0 : 1 / (1 - p);
  auto drop = [&](const Expr& x) {
    const Expr kept = clutch::random_uniform(generator, x.dtype() == clutch::DType::f64 ? clutch::DType::f64 : clutch::DType::f32) >= clutch::param(p);
    return std::array{clutch::select(kept, x * clutch::param(scale), Expr(0)), kept};
  };
  clutch::map_out(outs, clutch::detail::trace_over<1>(drop, inputs, "native_dropout"), inputs);
  return {out, mask};
}
at::Tensor dropout_backward(const at::Tensor& grad, const at::Tensor& mask, double scale) {
  if (!grad.is_floating_point()) return grad.mul(mask).mul(scale);
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
  table.add<"random_", &random_>("random_");
  table.add<"random_.to", &random_to_>("random_");
  table.add<"random_.from", &random_from_to_>("random_");
  table.add<"randperm.out", &randperm_out>("randperm");
  table.add<"randperm.generator_out", &randperm_generator_out>("randperm");
  table.add<"multinomial", &multinomial>("exponential_, argmax, topk");
  table.add<"multinomial.out", &multinomial_out>("exponential_, argmax, topk");
  table.add<"native_dropout", &dropout>("map of random_uniform");
  table.add<"native_dropout_backward", &dropout_backward>("map");
}

}  // namespace torch_clutch
