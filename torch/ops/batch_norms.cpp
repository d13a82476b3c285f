// SPDX-License-Identifier: Apache-2.0
// Norms over batches, of two reductions and a launch over the elements, and over groups of channels, which are rows.
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>
#include <clutch/ops/reduce.hpp>
#include <clutch/ops/rowwise.hpp>

#include <map>
#include <mutex>

namespace torch_clutch {
namespace {

using MaybeTensor = const std::optional<at::Tensor>&;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

bool given(MaybeTensor tensor) { return tensor.has_value() && tensor->defined(); }

// x with a channel's elements in the dimensions 0 and 2.
at::Tensor by_channels(const at::Tensor& x) { return x.reshape({x.size(0), x.size(1), -1}); }
at::Tensor spread(const at::Tensor& of_channels) { return of_channels.view({1, -1, 1}); }
at::Tensor or_value(MaybeTensor tensor, double value, int64_t channels, const at::Tensor& like) {
  return given(tensor) ? *tensor : at::full({channels}, value, like.options());
}
at::TensorOptions statistics(const at::Tensor& x) { return x.options().dtype(x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat); }

Three batch_norm(const at::Tensor& self, MaybeTensor weight, MaybeTensor bias, MaybeTensor running_mean, MaybeTensor running_var, bool training,
                 double momentum, double eps) {
  if (self.numel() == 0) refuse("a batch of nothing");
  const int64_t channels = self.size(1);
  const at::Tensor x = by_channels(self);
  at::Tensor mean, rstd;
  if (training) {
    mean = at::empty({channels}, statistics(self));
    at::Tensor variance = at::empty({channels}, statistics(self));
    clutch::mean_out(wrap(mean), wrap(x), {.dims = {0, 2}, .dtype = need_dtype(mean.scalar_type())});
    clutch::var_out(wrap(variance), wrap(x), 0, {.dims = {0, 2}, .dtype = need_dtype(mean.scalar_type())});
    rstd = variance.add(eps).rsqrt_();
    const auto count = static_cast<double>(x.numel() / channels);
    if (given(running_mean)) running_mean->mul_(1 - momentum).add_(mean, momentum);
    if (given(running_var)) running_var->mul_(1 - momentum).add_(variance, momentum * count / (count - 1));
  } else {
    mean = running_mean->to(statistics(self).dtype());
    rstd = running_var->to(statistics(self).dtype()).add(eps).rsqrt_();
  }
  at::Tensor out = at::empty(x.sizes(), self.options());
  apply(out,
        {wrap(x), wrap(spread(mean)), wrap(spread(rstd)), wrap(spread(or_value(weight, 1, channels, mean))), wrap(spread(or_value(bias, 0, channels, mean)))},
        [](const In& in) { return clutch::fma((in.x[0] - in.x[1]) * in.x[2], in.x[3], in.x[4]); });
  at::Tensor none = at::empty({0}, statistics(self));
  return {out.view(self.sizes()), training ? mean : none, training ? rstd : none};
}
Three batch_norm_legit(const at::Tensor& self, MaybeTensor weight, MaybeTensor bias, at::Tensor& running_mean, at::Tensor& running_var, bool training,
                       double momentum, double eps) {
  return batch_norm(self, weight, bias, running_mean, running_var, training, momentum, eps);
}
Three batch_norm_without_statistics(const at::Tensor& self, MaybeTensor weight, MaybeTensor bias, bool, double momentum, double eps) {
  return batch_norm(self, weight, bias, std::nullopt, std::nullopt, true, momentum, eps);
}

Three batch_norm_backward(const at::Tensor& grad, const at::Tensor& self, MaybeTensor weight, MaybeTensor running_mean, MaybeTensor running_var,
                          MaybeTensor save_mean, MaybeTensor save_rstd, bool training, double eps, std::array<bool, 3> wanted) {
  if (self.numel() == 0) refuse("a batch of nothing");
  const int64_t channels = self.size(1);
  const at::Tensor x = by_channels(self), g = by_channels(grad);
  const at::Tensor mean = training ? *save_mean : running_mean->to(statistics(self).dtype());
  const at::Tensor rstd = training ? *save_rstd : running_var->to(statistics(self).dtype()).add(eps).rsqrt_();
  const clutch::Tensor inputs[] = {wrap(g), wrap(x), wrap(spread(mean)), wrap(spread(rstd))};
  at::Tensor sum = at::empty({channels}, statistics(self)), product = at::empty({channels}, statistics(self));
  const clutch::ReduceOptions options{.dims = {0, 2}, .dtype = need_dtype(sum.scalar_type())};
  clutch::sum_out(wrap(sum), inputs[0], options);
  clutch::reduce_out(wrap(product), clutch::Reduce::sum, traced([](const In& in) { return in.x[0] * ((in.x[1] - in.x[2]) * in.x[3]); }, inputs), inputs,
                     options);
  at::Tensor of_x;
  if (wanted[0]) {
    of_x = at::empty(x.sizes(), self.options());
    const clutch::Tensor w = wrap(spread(or_value(weight, 1, channels, mean)));
    if (training)
      apply(of_x, {inputs[0], inputs[1], inputs[2], inputs[3], w, wrap(spread(sum)), wrap(spread(product))},
            [](const In& in) {
              const Expr normal = (in.x[1] - in.x[2]) * in.x[3];
              return (in.x[0] - (in.x[5] + normal * in.x[6]) * in.n[0]) * in.x[3] * in.x[4];
            },
            {static_cast<double>(channels) / static_cast<double>(x.numel())});
    else
      apply(of_x, {inputs[0], inputs[3], w}, [](const In& in) { return in.x[0] * in.x[1] * in.x[2]; });
    of_x = of_x.view(self.sizes());
  }
  auto as_weight = [&](const at::Tensor& made) { return given(weight) ? made.to(weight->scalar_type()) : made; };
  return {of_x, wanted[1] ? as_weight(product) : at::Tensor(), wanted[2] ? as_weight(sum) : at::Tensor()};
}

// A group is a row: its numbers as they are or, with a weight and a bias for each channel, scaled.
clutch::RowFunction group_function(clutch::DType dtype, clutch::DType of_weight, clutch::DType of_bias, bool scaled, double eps) {
  static std::mutex mutex;
  static auto* known = new std::map<std::tuple<clutch::DType, clutch::DType, clutch::DType, bool, double>, clutch::RowFunction>;
  auto normal = [eps](clutch::Row& row, const Expr& x) {
    const Expr mean = row.mean(x), centered = x - mean, rstd = clutch::rsqrt(row.mean(clutch::square(centered)) + eps);
    row.result(mean);
    row.result(rstd);
    return centered * rstd;
  };
  const std::lock_guard lock(mutex);
  clutch::RowFunction& made = (*known)[{dtype, of_weight, of_bias, scaled, eps}];
  if (!made.empty()) return made;
  if (scaled)
    made = clutch::trace_rows<3>([&](clutch::Row& row, const Expr& x, const Expr& w, const Expr& b) { return clutch::fma(normal(row, x), w, b); },
                                 {dtype, of_weight, of_bias});
  else
    made = clutch::trace_rows<1>(normal, {dtype});
  return made;
}
Three group_norm(const at::Tensor& self, MaybeTensor weight, MaybeTensor bias, c10::SymInt batch, c10::SymInt channels, c10::SymInt places, int64_t groups,
                 double eps) {
  const int64_t n = batch.expect_int(), c = channels.expect_int(), hw = places.expect_int(), width = c / groups;
  if (self.numel() == 0) refuse("a batch of nothing");
  const bool scaled = given(weight) || given(bias);
  std::vector<clutch::Tensor> inputs{wrap(self.reshape({n, groups, width, hw}))};
  if (scaled)
    for (const auto& [of_channels, value] : {std::pair(&weight, 1), {&bias, 0}})
      inputs.push_back(wrap(or_value(*of_channels, value, c, self).view({1, groups, width, 1})));
  const std::vector<clutch::DType> dtypes = clutch::traced_dtypes(inputs);
  at::Tensor y = at::empty({n, groups, width, hw}, self.options()), mean = at::empty({n, groups, 1, 1}, statistics(self)), rstd = at::empty_like(mean);
  const clutch::Tensor outs[] = {wrap(y), wrap(mean), wrap(rstd)};
  clutch::rowwise_out(outs, group_function(dtypes[0], dtypes[scaled ? 1 : 0], dtypes[scaled ? 2 : 0], scaled, eps), inputs, {.dims = {2, 3}});
  return {y.view(self.sizes()), mean.view({n, groups}), rstd.view({n, groups})};
}

// Sums over a group are those of its channels, each channel's by its weight.
Three group_norm_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& mean, const at::Tensor& rstd, MaybeTensor weight, c10::SymInt batch,
                          c10::SymInt channels, c10::SymInt places, int64_t groups, std::array<bool, 3> wanted) {
  const int64_t n = batch.expect_int(), c = channels.expect_int(), hw = places.expect_int(), width = c / groups;
  if (self.numel() == 0) refuse("a batch of nothing");
  const at::Tensor x = self.reshape({n, groups, width, hw}), g = grad.reshape({n, groups, width, hw});
  const at::Tensor m = mean.reshape({n, groups, 1, 1}), r = rstd.reshape({n, groups, 1, 1});
  const at::Tensor w = (given(weight) ? *weight : at::ones({c}, self.options())).view({1, groups, width, 1});
  const clutch::Tensor inputs[] = {wrap(g), wrap(x), wrap(m), wrap(r), wrap(w)};
  const clutch::DType dtype = need_dtype(mean.scalar_type());
  at::Tensor sum = at::empty({n, groups, 1, 1}, mean.options()), product = at::empty_like(sum);
  at::Tensor of_x, of_weight, of_bias;
  if (wanted[0]) {
    const clutch::ReduceOptions in_groups{.dims = {2, 3}, .keepdim = true, .dtype = dtype};
    clutch::reduce_out(wrap(sum), clutch::Reduce::sum, traced([](const In& in) { return in.x[0] * in.x[4]; }, inputs), inputs, in_groups);
    clutch::reduce_out(wrap(product), clutch::Reduce::sum, traced([](const In& in) { return in.x[0] * in.x[4] * ((in.x[1] - in.x[2]) * in.x[3]); }, inputs),
                       inputs, in_groups);
    of_x = at::empty({n, groups, width, hw}, self.options());
    apply(of_x, {inputs[0], inputs[1], inputs[2], inputs[3], inputs[4], wrap(sum), wrap(product)},
          [](const In& in) {
            const Expr normal = (in.x[1] - in.x[2]) * in.x[3];
            return (in.x[0] * in.x[4] - (in.x[5] + normal * in.x[6]) * in.n[0]) * in.x[3];
          },
          {1.0 / static_cast<double>(width * hw)});
    of_x = of_x.view(self.sizes());
  }
  const clutch::ReduceOptions in_channels{.dims = {0, 3}, .dtype = need_dtype(self.scalar_type())};
  if (wanted[1]) {
    of_weight = at::empty({groups, width}, self.options());
    clutch::reduce_out(wrap(of_weight), clutch::Reduce::sum,
                       traced([](const In& in) { return in.x[0] * ((in.x[1] - in.x[2]) * in.x[3]); }, std::span(inputs, 4)), std::span(inputs, 4), in_channels);
    of_weight = of_weight.view({c});
  }
  if (wanted[2]) {
    of_bias = at::empty({groups, width}, self.options());
    clutch::sum_out(wrap(of_bias), inputs[0], in_channels);
    of_bias = of_bias.view({c});
  }
  return {of_x, of_weight, of_bias};
}

// Parts of nn.SyncBatchNorm, between which ranks tell each other their statistics.

using Two = std::tuple<at::Tensor, at::Tensor>;

Two batch_norm_stats(const at::Tensor& self, double eps) {
  const at::Tensor x = by_channels(self), mean = at::empty({self.size(1)}, statistics(self)), variance = at::empty_like(mean);
  clutch::mean_out(wrap(mean), wrap(x), {.dims = {0, 2}, .dtype = need_dtype(mean.scalar_type())});
  clutch::var_out(wrap(variance), wrap(x), 0, {.dims = {0, 2}, .dtype = need_dtype(mean.scalar_type())});
  return {mean, variance.add(eps).rsqrt_()};
}

/// Of each rank, which are rows: mean, 1 / standard deviation and the number of elements.
Two batch_norm_gather_stats_with_counts(const at::Tensor& self, const at::Tensor& mean, const at::Tensor& rstd, MaybeTensor running_mean,
                                        MaybeTensor running_var, double momentum, double eps, const at::Tensor& counts) {
  const at::Tensor share = counts.to(mean.dtype()).view({-1, 1}), total = share.sum();
  const at::Tensor all_mean = (mean * share).sum(0).div_(total);
  const at::Tensor variance = rstd.pow(-2).sub_(eps).add_((mean - all_mean).square_()).mul_(share).sum(0).div_(total);
  if (given(running_mean)) running_mean->mul_(1 - momentum).add_(all_mean, momentum);
  if (given(running_var)) running_var->mul_(1 - momentum).add_(variance * (total / (total - 1)), momentum);
  return {all_mean, variance.add(eps).rsqrt_()};
}

at::Tensor batch_norm_elemt(const at::Tensor& self, MaybeTensor weight, MaybeTensor bias, const at::Tensor& mean, const at::Tensor& rstd, double) {
  const at::Tensor x = by_channels(self), out = at::empty(x.sizes(), self.options());
  const int64_t channels = self.size(1);
  apply(out,
        {wrap(x), wrap(spread(mean)), wrap(spread(rstd)), wrap(spread(or_value(weight, 1, channels, mean))), wrap(spread(or_value(bias, 0, channels, mean)))},
        [](const In& in) { return clutch::fma((in.x[0] - in.x[1]) * in.x[2], in.x[3], in.x[4]); });
  return out.view(self.sizes()).contiguous(self.suggest_memory_format());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> batch_norm_backward_reduce(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& mean,
                                                                                      const at::Tensor& rstd, MaybeTensor weight, bool of_input, bool of_weight,
                                                                                      bool of_bias) {
  const at::Tensor dy = by_channels(grad), x = by_channels(self);
  const at::Tensor sum = at::empty({self.size(1)}, mean.options()), product = at::empty_like(sum);
  const clutch::ReduceOptions options{.dims = {0, 2}, .dtype = need_dtype(sum.scalar_type())};
  const clutch::Tensor inputs[] = {wrap(dy), wrap(x), wrap(spread(mean))};
  clutch::sum_out(wrap(sum), inputs[0], options);
  clutch::reduce_out(wrap(product), clutch::Reduce::sum, traced([](const In& in) { return in.x[0] * (in.x[1] - in.x[2]); }, inputs), inputs, options);
  const auto dtype = given(weight) ? weight->scalar_type() : sum.scalar_type();
  return {of_input ? sum : at::Tensor(), of_input ? product : at::Tensor(), of_weight ? (product * rstd).to(dtype) : at::Tensor(),
          of_bias ? sum.to(dtype, /*non_blocking=*/false, /*copy=*/true) : at::Tensor()};
}

/// Both sums are of all ranks, which have `count` elements.
at::Tensor batch_norm_backward_elemt(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& mean, const at::Tensor& rstd, MaybeTensor weight,
                                     const at::Tensor& sum, const at::Tensor& product, const at::Tensor& count) {
  const at::Tensor dy = by_channels(grad), x = by_channels(self), out = at::empty(x.sizes(), self.options());
  const at::Tensor total = count.sum().to(sum.dtype());
  apply(out,
        {wrap(dy), wrap(x), wrap(spread(mean)), wrap(spread(sum / total)), wrap(spread(product / total * rstd * rstd)),
         wrap(spread(rstd * or_value(weight, 1, self.size(1), mean)))},
        [](const In& in) { return (in.x[0] - in.x[3] - (in.x[1] - in.x[2]) * in.x[4]) * in.x[5]; });
  return out.view(self.sizes()).contiguous(self.suggest_memory_format());
}

}  // namespace

void add_batch_norms(OpTable& table) {
  table.family("norms over batches and groups");
  table.add<"native_batch_norm", &batch_norm>("mean, var, map");
  table.add<"_native_batch_norm_legit", &batch_norm_legit>("mean, var, map");
  table.add<"_native_batch_norm_legit.no_stats", &batch_norm_without_statistics>("mean, var, map");
  table.add<"native_batch_norm_backward", &batch_norm_backward>("sum, reduce, map");
  table.add<"native_group_norm", &group_norm>("rowwise");
  table.add<"native_group_norm_backward", &group_norm_backward>("reduce, map");
  table.add<"batch_norm_stats", &batch_norm_stats>("mean, var");
  table.add<"batch_norm_gather_stats_with_counts", &batch_norm_gather_stats_with_counts>("map, sum");
  table.add<"batch_norm_elemt", &batch_norm_elemt>("map");
  table.add<"batch_norm_backward_reduce", &batch_norm_backward_reduce>("sum, reduce");
  table.add<"batch_norm_backward_elemt", &batch_norm_backward_elemt>("map");
}

}  // namespace torch_clutch
