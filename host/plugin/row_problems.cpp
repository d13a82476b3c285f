// SPDX-License-Identifier: Apache-2.0
// Problems of reductions and products with functions, which are proved one by one, of scans along a sequence, and of gradients of rows.
#include <clutch/nn.hpp>
#include <clutch/ops/copy.hpp>
#include <clutch/ops/matmul.hpp>
#include <clutch/ops/reduce.hpp>
#include <clutch/ops/selective_scan.hpp>

#include "plugin/op_problems.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

/// The function with other values of its params.
ExprFunction with_others(const ExprFunction& function) {
  std::vector<double> changed;
  for (int i = 0; i < function.param_count(); ++i) changed.push_back(function.param_value(i) + 1);
  return changed.empty() ? function : function.with_params(changed);
}

std::string_view word_of(Reduce op) {
  constexpr std::string_view kWords[] = {"sum", "prod", "amin", "amax", "mean", "any", "all"};
  return kWords[static_cast<std::size_t>(op)];
}

}  // namespace

void reduction_problems(PluginProblems& problems, Reduce op, const ExprFunction& function, DType output, std::span<const DType> inputs,
                        const ReduceOptions& given) {
  const ExprFunction other = with_others(function), other_after = given.after.empty() ? given.after : with_others(given.after);
  auto add = [&](bool changed, std::vector<Tensor> tensors, const Dims& dims, bool gaps, std::string_view what) {
    const Dims whole = broadcast_shapes([&] {
      std::vector<Dims> all;
      for (const Tensor& t : tensors) all.push_back(t.sizes());
      return all;
    }());
    ReduceOptions options{.dims = dims, .keepdim = given.keepdim, .after = changed ? other_after : given.after};
    const ExprFunction f = changed ? other : function;
    PluginProblem one{.name = fmt::format("{} of {} inputs to {}, {}", word_of(op), tensors.size(), name(output), what),
                      .inputs = tensors,
                      .outputs = {{output, {}, gaps}},
                      .any_nan = true};
    for (int d = 0; d < whole.rank(); ++d) {
      const bool gone = dims.empty() || std::any_of(dims.begin(), dims.end(), [&](std::int64_t dim) { return (dim + whole.rank()) % whole.rank() == d; });
      if (!gone) one.outputs[0].sizes.push_back(whole[d]);
      if (gone && given.keepdim) one.outputs[0].sizes.push_back(1);
    }
    one.run = [=](std::span<const Tensor> to, const std::string& implementation, const Stream& stream) {
      ReduceOptions by = options;
      by.implementation = implementation;
      reduce_out(to[0], op, f, tensors, by, stream);
    };
    problems.add(std::move(one));
  };
  auto lists = [&](auto&& make) {
    std::vector<Tensor> made;
    for (std::size_t i = 0; i < inputs.size(); ++i) made.push_back(make(inputs[i], i));
    return made;
  };
  auto random = [&](const Dims& sizes) { return lists([&](DType d, std::size_t) { return problems.random(d, sizes); }); };
  if (inputs.empty()) return;  // it has no sizes
  add(false, random({9, 300}), {1}, false, "rows");
  add(true, lists([&](DType d, std::size_t i) {
        return problems.random(d, i % 3 == 0 ? Dims{5, 41, 7} : i % 3 == 1 ? Dims{41, 1} : Dims{5, 1, 7});
      }),
      {1}, true, "broadcast, with gaps");
  add(false, lists([&](DType d, std::size_t i) {
        return i % 2 == 0 ? problems.random(d, {17, 33}).mT() : problems.random(d, {33, 17});
      }),
      {-1}, false, "transposed");
  add(true, random({3, 5000}), {1}, false, "long rows");
  add(false, random({2100, 6}), {0}, false, "columns");
  add(true, random({2500}), {}, false, "all elements");
  add(false, random({4, 1}), {1}, false, "rows of one");
  add(false, lists([&](DType d, std::size_t) {
        return (is_floating(d) && bits(d) >= 16 ? problems.special(d, 800) : problems.random(d, {800})).reshape({200, 4});
      }),
      {1}, false, "special numbers");
}

void reduction_problems(PluginProblems& problems) {
  auto square = [](Expr x) { return x * x; };
  auto line = [](Expr x, Expr y) { return x * param(1.5) + y; };
  auto doubled = [](Expr x) { return x + x; };
  const Stream& stream = problems.stream();
  for (const DType dtype : problems.dtypes([&](const Tensor& x) { reduce(Reduce::sum, square, x.reshape({0, 1}), {.dims = {1}}, stream); })) {
    const Tensor none = problems.none(dtype, {0, 1});
    const Tensor both[] = {none, none};
    const DType dtypes[] = {dtype, dtype};
    const ExprFunction of_one = trace_over<1>(square, std::span(&none, 1), "reduce"), of_two = trace_over<2>(line, both, "reduce");
    for (const Reduce op : {Reduce::sum, Reduce::amax}) {
      const DType result = reduce(op, of_one, std::span(&none, 1), {.dims = {1}}, stream).dtype();
      for (const bool keepdim : {false, true}) reduction_problems(problems, op, of_one, result, std::span(dtypes).first(1), {.keepdim = keepdim});
      if (!is_floating(dtype)) continue;
      reduction_problems(problems, op, of_two, result, dtypes, {});
      // The last accumulator's dtype, which a function behind it has.
      const DType last = dtype == DType::f64 ? DType::f64 : DType::f32;
      const Tensor of_last = problems.none(last);
      reduction_problems(problems, op, of_one, result, std::span(dtypes).first(1), {.after = trace_over<1>(doubled, std::span(&of_last, 1), "reduce")});
    }
  }
}

void product_problems(PluginProblems& problems, const ExprFunction& function, DType output, DType of_a, DType of_b, std::span<const DType> inputs) {
  const ExprFunction other = with_others(function);
  const Stream& stream = problems.stream();
  auto add = [&](const ExprFunction& f, const Tensor& a, const Tensor& b, double alpha, double beta, std::string_view what) {
    Dims sizes = a.sizes();
    const int rank = sizes.rank();
    sizes[rank - 1] = b.size(-1);
    // By turns of the result's shape, of one row and of one column.
    std::vector<Tensor> more;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      more.push_back(problems.random(inputs[i], i % 3 == 0 ? Dims{sizes[rank - 1]} : i % 3 == 1 ? sizes : Dims{sizes[rank - 2], 1}));
    const Tensor before = problems.random(output, sizes);
    PluginProblem one{.name = fmt::format("{} {} {} {} to {}, {} inputs, {}, alpha {} beta {}", name(of_a), to_string(a.sizes()), name(of_b),
                                          to_string(b.sizes()), name(output), more.size(), what, alpha, beta),
                      .inputs = {a, b, before},
                      .outputs = {{output, sizes}},
                      .any_nan = true};
    one.inputs.insert(one.inputs.end(), more.begin(), more.end());
    one.run = [=](std::span<const Tensor> to, const std::string& implementation, const Stream& on) {
      if (beta != 0) copy_(to[0], before, {}, on);
      linalg::matmul_out(to[0], a, b, f, more, {.alpha = alpha, .beta = beta, .implementation = implementation}, on);
    };
    problems.add(std::move(one));
  };
  auto left = [&](const Dims& sizes) { return problems.random(of_a, sizes); };
  auto right = [&](const Dims& sizes) { return problems.random(of_b, sizes); };
  std::vector<Tensor> none;
  for (const DType d : inputs) none.push_back(problems.none(d, {0, 0}));
  const bool is_read = problems.is_taken([&] {  // by beta
    linalg::matmul_out(problems.none(output, {0, 0}), problems.none(of_a, {0, 1}), problems.none(of_b, {1, 0}), function, none, {.beta = 2}, stream);
  });
  add(function, left({37, 53}), right({53, 29}), 1, 0, "rows");
  add(other, left({53, 37}).mT(), right({29, 53}).mT(), -3, is_read ? 2 : 0, "transposed");
  add(other, left({3, 8, 16}), right({3, 16, 8}), 1, 0, "a batch");
  add(function, left({1, 300}), right({300, 65}), 1, 0, "one row");
  add(function, left({130, 140}), right({140, 150}), 1, 0, "tiles");
}

void product_problems(PluginProblems& problems) {
  const Stream& stream = problems.stream();
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (is_complex(dtype) || !problems.is_taken([&] { linalg::product_dtype(dtype, dtype); })) continue;
    const DType product = linalg::product_dtype(dtype, dtype);
    const Tensor both[] = {problems.none(product), problems.none(product)};
    const ExprFunction positive = trace_over<1>([](Expr x) { return select(x < 0, 0, x); }, std::span(both).first(1), "matmul"),
                       shifted = trace_over<2>([](Expr x, Expr y) { return x * param(2) + y; }, both, "matmul");
    const Tensor a = problems.none(dtype, {0, 1}), b = problems.none(dtype, {1, 0}), more = problems.none(product, {0, 0});
    if (!problems.is_taken([&] { linalg::matmul_out(problems.none(product, {0, 0}), a, b, shifted, std::span(&more, 1), {}, stream); })) continue;
    product_problems(problems, positive, product, dtype, dtype, {});
    product_problems(problems, shifted, product, dtype, dtype, std::span(&product, 1));
  }
}

namespace {

/// Which tensors a scan has besides those that it must have.
struct ScanParts {
  bool skip, gate, bias, softplus, initial, state;
};
/// All sets of them in f32, in other dtypes all and none.
void each_scan(PluginProblems& problems, const std::function<void(DType dtype, DType shared, const ScanParts& parts)>& call) {
  const Stream& stream = problems.stream();
  auto takes = [&](DType x, DType shared) {
    const Tensor line = problems.none(x, {0, 1, 1}), of_states = problems.none(shared, {0, 1, 1});
    return problems.is_taken([&] { selective_scan(line, line, problems.none(DType::f32, {1, 1}), of_states, of_states, {}, stream); });
  };
  for (int i = 0; i < kDTypeCount; ++i)
    for (int k = 0; k < kDTypeCount; ++k) {
      const auto x = static_cast<DType>(i), shared = static_cast<DType>(k);
      if (!takes(x, shared)) continue;
      const bool all = x == DType::f32 && shared == DType::f32;
      for (int set = 0; set < 64; ++set)
        if (all || set == 0 || set == 63) call(x, shared, {(set & 1) != 0, (set & 2) != 0, (set & 4) != 0, (set & 8) != 0, (set & 16) != 0, (set & 32) != 0});
    }
}

/// Random tensors of a scan of so many states.
struct Scan {
  Tensor x, delta, a, b, c;
  SelectiveScanOptions options;
  std::vector<Tensor> all;
};
Scan scan_of(PluginProblems& problems, DType dtype, DType shared, const ScanParts& parts, std::int64_t batch, std::int64_t length, std::int64_t channels,
             std::int64_t states) {
  auto random = [&](DType d, const Dims& sizes) { return problems.random(d, sizes); };
  // Steps are positive, and what states are multiplied by below 1, as in Mamba: else a random walk soon leaves f32.
  auto of_sign = [&](const Tensor& t, bool negative) {
    std::vector<std::uint8_t> bytes = t.to_bytes(problems.stream());
    const auto size = static_cast<std::size_t>(bits(t.dtype()) / 8);
    for (std::size_t i = size - 1; i < bytes.size(); i += size) bytes[i] = static_cast<std::uint8_t>((bytes[i] & 0x7F) | (negative ? 0x80 : 0));
    return from_bytes(bytes.data(), bytes.size(), t.sizes(), {.dtype = t.dtype(), .device = t.device()}, problems.stream());
  };
  Scan s{.x = random(dtype, {batch, length, channels}),
         .delta = of_sign(random(dtype, {batch, length, channels}), false),
         .a = of_sign(random(DType::f32, {channels, states}), true),
         .b = random(shared, {batch, length, states}),
         .c = random(shared, {batch, length, states}),
         .options = {.delta_softplus = parts.softplus}};
  s.all = {s.x, s.delta, s.a, s.b, s.c};
  auto also = [&](bool is_there, Tensor& option, DType d, const Dims& sizes) {
    if (is_there) s.all.push_back(option = random(d, sizes));
  };
  also(parts.skip, s.options.skip, DType::f32, {channels});
  also(parts.gate, s.options.gate, dtype, {batch, length, channels});
  also(parts.bias, s.options.delta_bias, DType::f32, {channels});
  also(parts.initial, s.options.initial_state, DType::f32, {batch, channels, states});
  return s;
}

std::string text_of(const Scan& s, const ScanParts& parts) {
  return fmt::format("{} {} {} {}, {} states{}{}{}{}{}{}", name(s.x.dtype()), to_string(s.x.sizes()), name(s.b.dtype()), name(s.c.dtype()), s.a.size(1),
                     parts.skip ? ", skip" : "", parts.gate ? ", gate" : "", parts.bias ? ", bias" : "", parts.softplus ? ", softplus" : "",
                     parts.initial ? ", initial state" : "", parts.state ? ", state" : "");
}

}  // namespace

void scan_problems(PluginProblems& problems) {
  each_scan(problems, [&](DType dtype, DType shared, const ScanParts& parts) {
    auto add = [&](std::int64_t batch, std::int64_t length, std::int64_t channels, std::int64_t states, bool in_place) {
      const Scan s = scan_of(problems, dtype, shared, parts, batch, length, channels, states);
      PluginProblem one{.name = text_of(s, parts) + (in_place ? ", in place" : ""), .inputs = s.all, .outputs = {{dtype, s.x.sizes()}}, .any_nan = true};
      if (parts.state) one.outputs.push_back({DType::f32, {batch, channels, states}});
      one.run = [=](std::span<const Tensor> out, const std::string& implementation, const Stream& stream) {
        SelectiveScanOptions by = s.options;
        by.implementation = implementation;
        if (in_place) copy_(out[0], s.x, {}, stream);
        selective_scan_out({out[0], parts.state ? out[1] : Tensor()}, in_place ? out[0] : s.x, s.delta, s.a, s.b, s.c, by, stream);
      };
      problems.add(std::move(one));
    };
    add(2, 37, 19, 5, false);
    add(1, 9, 33, 16, true);
  });
}

void scan_gradient_problems(PluginProblems& problems) {
  each_scan(problems, [&](DType dtype, DType shared, const ScanParts& parts) {
    const Scan s = scan_of(problems, dtype, shared, parts, 2, 21, 19, 5);
    const Tensor of_y = problems.random(dtype, s.x.sizes()), of_state = parts.state ? problems.random(DType::f32, {2, 19, 5}) : Tensor();
    const SelectiveScanOptions& o = s.options;
    const Tensor like[] = {s.x, s.delta, s.a, s.b, s.c, o.skip, o.gate, o.delta_bias, o.initial_state};
    PluginProblem one{.name = text_of(s, parts), .inputs = s.all, .any_nan = true};
    one.inputs.push_back(of_y);
    if (parts.state) one.inputs.push_back(of_state);
    for (const Tensor& t : like)
      if (t.defined()) one.outputs.push_back({t.dtype(), t.sizes()});
    one.run = [=, options = s.options](std::span<const Tensor> out, const std::string& implementation, const Stream& stream) {
      SelectiveScanOptions by = options;
      by.implementation = implementation;
      std::size_t at = 0;
      auto next = [&](const Tensor& of) { return of.defined() ? out[at++] : Tensor(); };
      SelectiveScanGradients to;
      to.x = next(s.x), to.delta = next(s.delta), to.a = next(s.a), to.b = next(s.b), to.c = next(s.c);
      to.skip = next(by.skip), to.gate = next(by.gate), to.delta_bias = next(by.delta_bias), to.initial_state = next(by.initial_state);
      selective_scan_backward_out(to, {of_y, of_state}, s.x, s.delta, s.a, s.b, s.c, by, stream);
    };
    problems.add(std::move(one));
  });
}

void softmax_gradient_problems(PluginProblems& problems, bool logs) {
  const auto out_form = logs ? nn::log_softmax_backward_out : nn::softmax_backward_out;
  const Stream& stream = problems.stream();
  auto add = [&](const Tensor& grad, const Tensor& y, DType out, int dim, bool gaps) {
    PluginProblem one{
        .name = fmt::format("{} {} to {} {} along {}{}", name(grad.dtype()), name(y.dtype()), name(out), to_string(y.sizes()), dim, gaps ? " with gaps" : ""),
        .inputs = {grad, y},
        .outputs = {{out, y.sizes(), gaps}},
        .any_nan = true};
    one.run = [=](std::span<const Tensor> to, const std::string&, const Stream& on) { out_form(to[0], grad, y, dim, on); };
    problems.add(std::move(one));
  };
  for (const DType dtype : problems.dtypes([&](const Tensor& x) { nn::softmax(x, 0, stream); }))
    for (const DType out : problems.dtypes([&](const Tensor& to) { out_form(to, problems.none(dtype), problems.none(dtype), 0, stream); })) {
      if (!is_floating(out)) continue;
      auto random = [&](const Dims& sizes) { return problems.random(dtype, sizes); };
      add(random({3, 700}), random({3, 700}), out, 1, false);
      add(random({700, 6}), random({700, 6}), out, 0, true);
      add(random({5, 41, 7}), random({5, 7, 41}).mT(), out, -2, false);
      add(random({17, 33}).mT(), random({33, 17}), out, 1, true);
      add(random({2048}), random({2048}), out, 0, false);
      add(random({4, 1}), random({4, 1}), out, 1, false);
    }
}

void norm_gradient_problems(PluginProblems& problems, bool layers) {
  const Stream& stream = problems.stream();
  auto add = [&](DType dtype, const Tensor& grad, const Tensor& x, int rank, bool weighted) {
    const DType kept = dtype == DType::f64 ? DType::f64 : DType::f32;
    Dims of_rows = x.sizes(), row;
    for (int d = x.rank() - rank; d < x.rank(); ++d) row.push_back(x.sizes()[d]), of_rows[d] = 1;
    const Tensor mean = problems.random(kept, of_rows), scale = problems.random(kept, of_rows), weight = weighted ? problems.random(dtype, row) : Tensor();
    PluginProblem one{.name = fmt::format("{} {} in rows of rank {}{}", name(dtype), to_string(x.sizes()), rank, weighted ? ", weighted" : ""),
                      .inputs = {grad, x, scale},
                      .outputs = {{dtype, x.sizes()}},
                      .any_nan = true};
    if (layers) one.inputs.push_back(mean);
    if (weighted) one.inputs.push_back(weight), one.outputs.push_back({dtype, row});
    if (layers) one.outputs.push_back({dtype, row});  // of the bias
    one.run = [=](std::span<const Tensor> to, const std::string&, const Stream& on) {
      const Tensor of_weight = weighted ? to[1] : Tensor();
      if (layers)
        nn::layer_norm_backward_out({to[0], of_weight, to[weighted ? 2 : 1]}, grad, x, mean, scale, weight, {.normalized_rank = rank}, on);
      else
        nn::rms_norm_backward_out({to[0], of_weight}, grad, x, scale, weight, {.normalized_rank = rank}, on);
    };
    problems.add(std::move(one));
  };
  for (const DType dtype : problems.dtypes([&](const Tensor& x) { nn::rms_norm(x.reshape({0, 1}), {}, {}, stream); })) {
    auto random = [&](const Dims& sizes) { return problems.random(dtype, sizes); };
    for (const bool weighted : {false, true}) {
      add(dtype, random({9, 300}), random({9, 300}), 1, weighted);
      add(dtype, random({3, 5, 7}), random({3, 5, 7}), 2, weighted);
      add(dtype, random({33, 17}).mT(), random({17, 33}), 1, weighted);
      add(dtype, random({2100, 6}), random({6, 2100}).mT(), 1, weighted);
      add(dtype, random({40}), random({40}), 1, weighted);
    }
  }
}

}}}  // namespace clutch::v0::detail
