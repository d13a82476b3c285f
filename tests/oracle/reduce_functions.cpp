// SPDX-License-Identifier: Apache-2.0
// Reductions, functions of rows, layers of networks, sums along a dimension.
#include "server.hpp"

namespace clutch::oracle {

namespace {

ReduceOptions reduce_options(const Call& c) {
  ReduceOptions options;
  options.dims = c.dims("dims");
  options.keepdim = c.flag("keepdim");
  options.dtype = c.dtypes("dtype");
  if (c.text("after") == "halved_square") options.after = trace<1>([](Expr x) { return square(x) * 0.5; }, {*c.dtype("accumulator")});
  return options;
}

Reduce reduction(const Call& c) {
  return c.choice<Reduce>("op", {{"sum", Reduce::sum},
                                 {"prod", Reduce::prod},
                                 {"min", Reduce::amin},
                                 {"max", Reduce::amax},
                                 {"any", Reduce::any},
                                 {"all", Reduce::all},
                                 {"mean", Reduce::mean}});
}

void add_reductions(Functions& table) {
#define NAMED(name) table[#name] = [](Call& c) { c.give(name(c["x"], reduce_options(c))); }
  NAMED(sum);
  NAMED(mean);
  NAMED(prod);
  NAMED(amin);
  NAMED(amax);
  NAMED(any);
  NAMED(all);
  NAMED(argmin);
  NAMED(argmax);
  NAMED(logsumexp);
#undef NAMED
  table["var"] = [](Call& c) { c.give(var(c["x"], c.number("correction", 1), reduce_options(c))); };
  table["norm"] = [](Call& c) { c.give(norm(c["x"], c.number("p", 2), reduce_options(c))); };
  table["sum_to"] = [](Call& c) { c.give(sum_to(c["x"], c.dims("sizes"))); };
  // Of x, or of (x - y)^2.
  table["reduce"] = [](Call& c) {
    const std::vector<Tensor> inputs = c.list("inputs");
    const auto distance = [](Expr x, Expr y) { return square(x - y); };
    if (inputs.size() == 1) {
      c.give(reduce(
          reduction(c), [](Expr x) { return x * 2.0 + position(-1); }, inputs[0], reduce_options(c)));
    } else if (c.has("out")) {
      reduce_out(c["out"], reduction(c), clutch::detail::trace_over<2>(distance, inputs, "reduce"), inputs, reduce_options(c));
    } else {
      c.give(reduce(reduction(c), clutch::detail::trace_over<2>(distance, inputs, "reduce"), inputs, reduce_options(c)));
    }
  };
  // y and the last state; with `grad` then all gradients.
  table["selective_scan"] = [](Call& c) {
    const SelectiveScanOptions options{.skip = c.optional("skip"),
                                       .gate = c.optional("gate"),
                                       .delta_bias = c.optional("delta_bias"),
                                       .delta_softplus = c.flag("softplus"),
                                       .initial_state = c.optional("initial_state")};
    const SelectiveScanResult r = selective_scan(c["x"], c["delta"], c["a"], c["b"], c["c"], options);
    c.give(std::vector{r.y, r.state});
    if (!c.has("grad")) return;
    const SelectiveScanGradients g = selective_scan_backward({c["grad"], c.optional("grad_state")}, c["x"], c["delta"], c["a"], c["b"], c["c"], options);
    c.give(std::vector{g.x, g.delta, g.a, g.b, g.c});
    for (const Tensor& t : {g.skip, g.gate, g.delta_bias, g.initial_state})
      if (t.defined()) c.give(t);
  };
  table["cumsum"] = [](Call& c) {
    CumsumOptions options{.reverse = c.flag("reverse"), .dtype = c.dtypes("dtype"), .implementation = {}};
    if (c.has("out"))
      cumsum_out(c["out"], c["x"], c.rank("dim", -1), options);
    else
      c.give(cumsum(c["x"], c.rank("dim", -1), options));
  };
}

/// Of each of three outputs, or none.
DTypeList three_dtypes(const Call& c) {
  if (!c.has("dtype0")) return {};
  return {*c.dtype("dtype0"), *c.dtype("dtype1"), *c.dtype("dtype2")};
}

void add_rows(Functions& table) {
  // Each row without its mean, over its largest magnitude; its mean and that magnitude as results.
  const auto centred = [](Row& row, Expr x) {
    Expr mean = row.mean(x), top = row.max(abs(x - mean));
    row.result(mean);
    row.result(top);
    return (x - mean) / (top + 1.0);
  };
  const auto weighted = [](Row& row, Expr x, Expr w) {
    row.result(row.sum(x * w));
    row.result(row.prod(select(w > 0.0, 1.0, -1.0)));
    row.result(row.min(x));
  };
  table["rowwise"] = [centred, weighted](Call& c) {
    const std::vector<Tensor> inputs = c.list("inputs");
    RowwiseOptions options{.dims = c.has("dims") ? c.dims("dims") : Dims{-1}, .dtype = three_dtypes(c), .implementation = {}};
    if (inputs.size() == 2)
      c.give(rowwise(weighted, {inputs[0], inputs[1]}, options));
    else
      c.give(rowwise(centred, {inputs[0]}, options));
  };
  table["rowwise_out"] = [centred](Call& c) {
    const std::vector<Tensor> inputs = c.list("inputs"), outputs = c.list("outputs");
    const std::vector<DType> traced = traced_dtypes(inputs);
    rowwise_out(outputs, trace_rows<1>(centred, {traced[0]}), inputs, {.dims = c.has("dims") ? c.dims("dims") : Dims{-1}, .dtype = {}, .implementation = {}});
  };
}

void add_layers(Functions& table) {
  table["softmax"] = [](Call& c) {
    if (c.has("out"))
      nn::softmax_out(c["out"], c["x"], c.rank("dim", -1));
    else
      c.give(nn::softmax(c["x"], c.rank("dim", -1)));
  };
  table["log_softmax"] = [](Call& c) {
    if (c.has("out"))
      nn::log_softmax_out(c["out"], c["x"], c.rank("dim", -1));
    else
      c.give(nn::log_softmax(c["x"], c.rank("dim", -1)));
  };
  table["softmax_backward"] = [](Call& c) { c.give(nn::softmax_backward(c["grad"], c["y"], c.rank("dim", -1))); };
  table["log_softmax_backward"] = [](Call& c) { c.give(nn::log_softmax_backward(c["grad"], c["y"], c.rank("dim", -1))); };
  const auto norm_options = [](const Call& c) { return nn::NormOptions{.normalized_rank = c.rank("normalized_rank", 1), .eps = c.number("eps", 1e-5)}; };
  table["layer_norm"] = [norm_options](Call& c) {
    const nn::LayerNormResult r = nn::layer_norm(c["x"], c.optional("weight"), c.optional("bias"), norm_options(c));
    c.give(std::vector{r.y, r.mean, r.rstd});
    if (!c.has("grad")) return;
    const nn::LayerNormGradients g = nn::layer_norm_backward(c["grad"], c["x"], r.mean, r.rstd, c.optional("weight"), norm_options(c));
    c.give(std::vector{g.x, g.weight, g.bias});
  };
  table["rms_norm"] = [norm_options](Call& c) {
    const nn::RmsNormResult r = nn::rms_norm(c["x"], c.optional("weight"), norm_options(c));
    c.give(std::vector{r.y, r.rrms});
    if (!c.has("grad")) return;
    const nn::RmsNormGradients g = nn::rms_norm_backward(c["grad"], c["x"], r.rrms, c.optional("weight"), norm_options(c));
    c.give(std::vector{g.x, g.weight});
  };
  table["cross_entropy"] = [](Call& c) {
    const nn::CrossEntropyOptions options{
        .weight = c.optional("weight"),
        .ignore_index = c.integer("ignore_index", -100),
        .reduction = c.choice<nn::Reduction>("reduction", {{"mean", nn::Reduction::mean}, {"sum", nn::Reduction::sum}, {"none", nn::Reduction::none}}),
        .label_smoothing = c.number("label_smoothing", 0)};
    const nn::CrossEntropyResult r = nn::cross_entropy(c["logits"], c["target"], options);
    c.give(std::vector{r.loss, add(r.max, r.log_sum)});
    if (c.has("grad")) c.give(nn::cross_entropy_backward(c["grad"], c["logits"], c["target"], r, options));
  };
}

}  // namespace

void add_reduce_functions(Functions& table) {
  add_reductions(table);
  add_rows(table);
  add_layers(table);
}

}  // namespace clutch::oracle
