// SPDX-License-Identifier: Apache-2.0
// Problems of rows with functions, which are proved one by one, of norms, and of cross entropy with its gradient.
#include <clutch/nn.hpp>
#include <clutch/ops/copy.hpp>

#include "plugin/op_problems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

RowFunction with_others(const RowFunction& function) {
  std::vector<double> changed;
  for (int i = 0; i < function.param_count(); ++i) changed.push_back(function.param_value(i) + 1);
  return changed.empty() ? function : function.with_params(changed);
}

}  // namespace

void rows_problems(PluginProblems& problems, const RowFunction& function, std::span<const DType> outputs, std::span<const DType> inputs) {
  const auto elements = static_cast<std::size_t>(function.element_count());
  const RowFunction other = with_others(function);
  auto add = [&](const RowFunction& f, std::vector<Tensor> given, const Dims& dims, bool gaps, bool in_place, std::string_view what) {
    std::vector<Dims> shapes;
    for (const Tensor& t : given) shapes.push_back(t.sizes());
    const Dims sizes = broadcast_shapes(shapes);
    Dims of_rows = sizes;
    for (const std::int64_t d : dims) of_rows[static_cast<int>((d + sizes.rank()) % sizes.rank())] = 1;
    PluginProblem one{.name = fmt::format("{} inputs, {}{}", given.size(), what, in_place ? " in place" : ""), .inputs = given, .any_nan = true};
    for (std::size_t i = 0; i < outputs.size(); ++i) one.outputs.push_back({outputs[i], i < elements ? sizes : of_rows, gaps});
    one.run = [=](std::span<const Tensor> out, const std::string& implementation, const Stream& stream) {
      std::vector<Tensor> of = given;
      if (in_place) copy_(out[0], of[0], {}, stream), of[0] = out[0];
      rowwise_out(out, f, of, {.dims = dims, .implementation = implementation}, stream);
    };
    problems.add(std::move(one));
  };
  auto lists = [&](auto&& make) {
    std::vector<Tensor> made;
    for (std::size_t i = 0; i < inputs.size(); ++i) made.push_back(make(inputs[i], i));
    return made;
  };
  auto random = [&](const Dims& sizes) { return lists([&](DType d, std::size_t) { return problems.random(d, sizes); }); };
  add(function, random({9, 300}), {1}, false, false, "rows");
  add(other, lists([&](DType d, std::size_t i) {
        return problems.random(d, i % 3 == 0 ? Dims{5, 41, 7} : i % 3 == 1 ? Dims{41, 1} : Dims{5, 1, 7});
      }),
      {1}, true, false, "broadcast, with gaps");
  add(function, lists([&](DType d, std::size_t i) {
        return i % 2 == 0 ? problems.random(d, {17, 33}).mT() : problems.random(d, {33, 17});
      }),
      {-1}, false, false, "transposed");
  add(other, random({5, 6, 7}), {0, -1}, false, false, "rows of two dimensions");
  add(other, random({3, 5000}), {1}, false, false, "long rows");
  add(function, random({2100, 6}), {0}, false, false, "columns");
  add(function, random({4, 1}), {1}, false, false, "rows of one");
  if (elements > 0 && inputs[0] == outputs[0]) add(function, random({4, 100}), {1}, false, true, "rows");
  add(function, lists([&](DType d, std::size_t) {
        return (is_floating(d) && bits(d) >= 16 ? problems.special(d, 800) : problems.random(d, {800})).reshape({200, 4});
      }),
      {1}, false, false, "special numbers");
}

void rows_problems(PluginProblems& problems) {
  auto below = [](Row& row, Expr x) { return x - row.max(x); };
  auto shifted = [](Row& row, Expr x, Expr y) {
    Expr total = row.sum(x * y);
    row.result(total);
    return x * param(1.5) + total;
  };
  const Stream& stream = problems.stream();
  for (const DType dtype : problems.dtypes([&](const Tensor& x) { rowwise(below, {x.reshape({0, 1})}, {}, stream); })) {
    const Tensor both[] = {problems.none(dtype, {0, 1}), problems.none(dtype, {0, 1})};
    const std::vector<DType> traced = traced_dtypes(both);
    auto add = [&](const RowFunction& f, std::span<const Tensor> inputs) {
      std::vector<DType> outputs, given;
      for (const Tensor& t : rowwise(f, inputs, {}, stream)) outputs.push_back(t.dtype());
      for (const Tensor& t : inputs) given.push_back(t.dtype());
      rows_problems(problems, f, outputs, given);
    };
    add(trace_rows(below, std::array{traced[0]}), std::span(both).first(1));
    if (is_floating(dtype)) add(trace_rows(shifted, std::array{traced[0], traced[1]}), both);
  }
}

void norm_problems(PluginProblems& problems, bool layers) {
  const Stream& stream = problems.stream();
  auto add = [&](const Tensor& x, DType of_weight, bool weighted, bool biased, int rank, double eps, bool gaps, bool in_place) {
    const DType dtype = x.dtype(), kept = dtype == DType::f64 ? DType::f64 : DType::f32;
    Dims of_rows = x.sizes(), row;
    for (int d = x.rank() - rank; d < x.rank(); ++d) row.push_back(x.sizes()[d]), of_rows[d] = 1;
    // Beside an x with other strides they have some, too.
    auto affine = [&](bool given) {
      if (!given) return Tensor();
      if (x.is_contiguous()) return problems.random(of_weight, row);
      Dims doubled = row;
      doubled.push_back(2);
      return problems.random(of_weight, doubled).select(row.rank(), 0);
    };
    const Tensor weight = affine(weighted), bias = affine(biased);
    PluginProblem one{
        .name = fmt::format("{} {} in rows of rank {}, eps {}{}{}{}{}", name(dtype), to_string(x.sizes()), rank, eps,
                            weighted ? fmt::format(", weighted by {}", name(of_weight)) : "", biased ? fmt::format(", with a bias of {}", name(of_weight)) : "",
                            gaps ? ", with gaps" : "", in_place ? ", in place" : ""),
        .inputs = {x},
        .outputs = {{dtype, x.sizes(), gaps}, {kept, of_rows}},
        .any_nan = true};
    if (layers) one.outputs.push_back({kept, of_rows});
    if (weighted) one.inputs.push_back(weight);
    if (biased) one.inputs.push_back(bias);
    one.run = [=](std::span<const Tensor> to, const std::string&, const Stream& on) {
      if (in_place) copy_(to[0], x, {}, on);
      const Tensor& of = in_place ? to[0] : x;
      const nn::NormOptions options{.normalized_rank = rank, .eps = eps};
      if (layers)
        nn::layer_norm_out({to[0], to[1], to[2]}, of, weight, bias, options, on);
      else
        nn::rms_norm_out({to[0], to[1]}, of, weight, options, on);
    };
    problems.add(std::move(one));
  };
  for (const DType dtype : problems.dtypes([&](const Tensor& x) { nn::rms_norm(x.reshape({0, 1}), {}, {}, stream); }))
    for (const DType of_weight : dtype == DType::f64 || dtype == DType::f32 ? std::vector{dtype} : std::vector{dtype, DType::f32})
      for (const bool weighted : {false, true})
        for (const bool biased : {false, true}) {
          if ((biased && !layers) || (!weighted && !biased && of_weight != dtype)) continue;
          auto random = [&](const Dims& sizes) { return problems.random(dtype, sizes); };
          auto next = [&](const Tensor& x, int rank, double eps, bool gaps, bool in_place) { add(x, of_weight, weighted, biased, rank, eps, gaps, in_place); };
          next(random({9, 300}), 1, 1e-5, false, false);
          next(random({3, 5, 7}), 2, 1e-3, true, false);
          next(random({33, 17}).mT(), 1, 1e-5, false, false);
          next(random({2100, 6}), 1, 0.25, false, false);
          next(random({4, 100}), 1, 1e-5, false, true);
          next(random({40}), 1, 1e-5, false, false);
          if (bits(dtype) >= 16) next(problems.special(dtype, 200).reshape({50, 4}), 1, 1e-5, false, false);
        }
}

namespace {

/// Whole numbers in a dtype.
Tensor whole_numbers(PluginProblems& problems, DType dtype, std::span<const std::int64_t> values, const Dims& sizes) {
  const auto bytes = static_cast<std::size_t>(bits(dtype) / 8);
  std::vector<std::uint8_t> all;
  for (const std::int64_t value : values)
    for (std::size_t i = 0; i < bytes; ++i) all.push_back(static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) >> (8 * i)));
  return from_bytes(all.data(), all.size(), sizes, {.dtype = dtype, .device = problems.stream().device()}, problems.stream());
}

/// A call of cross entropy on random numbers.
struct Classes {
  Tensor logits, target;
  nn::CrossEntropyOptions options;
  Dims losses, rows;  ///< shapes of the losses of all targets, and of what is kept of each row
  std::int64_t classes = 0;
  double most_weight = 1;
  double least_total = 1;  ///< of the weights of all targets
};

class CrossEntropies {
 public:
  explicit CrossEntropies(PluginProblems& problems)
      : problems_(problems), random_(problems.random(DType::u64, {1}).to_host<std::uint64_t>(problems.stream())[0]) {}

  std::vector<double> numbers(std::int64_t n, double least, double most) {
    std::uniform_real_distribution<double> range(least, most);
    std::vector<double> all;
    for (std::int64_t i = 0; i < n; ++i) all.push_back(range(random_));
    return all;
  }
  /// `wrong`: one of the targets is no class.
  Classes call(DType dtype, DType of_target, const Dims& sizes, bool weighted, nn::Reduction reduction, double smoothing, std::int64_t ignored, bool wrong) {
    const int dim = sizes.rank() > 1 ? 1 : 0;
    Classes c{.logits = problems_.random(dtype, sizes),
              .target = {},
              .options = {.ignore_index = ignored, .reduction = reduction, .label_smoothing = smoothing},
              .losses = sizes,
              .rows = sizes,
              .classes = sizes[dim]};
    c.losses.erase(dim), c.rows[dim] = 1;
    if (weighted) c.options.weight = problems_.from_values(dtype, numbers(c.classes, 0.5, 1.5)), c.most_weight = 1.5;
    const std::int64_t n = numel(c.losses);
    if (is_floating(of_target)) {
      c.target = problems_.from_values(of_target, numbers(numel(sizes), 0, 2.0 / static_cast<double>(c.classes))).reshape(sizes);
      c.most_weight *= 2, c.least_total = static_cast<double>(n);
      return c;
    }
    std::vector<std::int64_t> values;
    double counted = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto label = static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(c.classes));
      values.push_back(i % 7 == 3 ? ignored : label);
      counted += values.back() != ignored;
    }
    if (wrong) values[values.size() / 2] = c.classes;
    c.target = whole_numbers(problems_, of_target, values, c.losses);
    c.least_total = std::max(0.5, counted * (weighted ? 0.5 : 1));
    return c;
  }

 private:
  PluginProblems& problems_;
  std::mt19937_64 random_;
};

std::string text_of(const Classes& c) {
  constexpr std::string_view kReductions[] = {"mean", "sum", "none"};
  return fmt::format("{} {}{} of {}{}, {}, smoothing {}, ignored {}", name(c.logits.dtype()), to_string(c.logits.sizes()),
                     c.logits.is_contiguous() ? "" : " transposed", name(c.target.dtype()), c.options.weight.defined() ? ", weighted" : "",
                     kReductions[static_cast<std::size_t>(c.options.reduction)], c.options.label_smoothing, c.options.ignore_index);
}

/// The same call of two dimensions with other strides.
Classes strided(PluginProblems& problems, Classes c) {
  auto other = [&](const Tensor& t) {
    const std::vector<std::uint8_t> bytes = t.to_bytes(problems.stream());
    const auto size = static_cast<std::size_t>(bits(t.dtype()) / 8);
    std::vector<std::uint8_t> doubled(2 * bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) doubled[2 * (i / size) * size + size + i % size] = bytes[i];
    Dims sizes = t.sizes();
    sizes.push_back(2);
    return from_bytes(doubled.data(), doubled.size(), sizes, {.dtype = t.dtype(), .device = t.device()}, problems.stream()).select(t.rank(), 1);
  };
  c.logits = problems.random(c.logits.dtype(), {c.logits.size(1), c.logits.size(0)}).mT(), c.target = other(c.target);
  if (c.options.weight.defined()) c.options.weight = other(c.options.weight);
  return c;
}

/// All that a call may have: next(call).
template <class Next>
void each_cross_entropy(PluginProblems& problems, const Next& next) {
  const Stream& stream = problems.stream();
  CrossEntropies make(problems);
  for (const DType dtype : problems.dtypes([&](const Tensor& x) { nn::cross_entropy(x.reshape({0, 1}), problems.none(DType::i64), {}, stream); })) {
    const Tensor none = problems.none(dtype, {0, 1});
    for (int i = 0; i < kDTypeCount; ++i) {
      const auto target = static_cast<DType>(i);
      const bool shares = is_floating(target);
      if (is_packed(target) || !problems.is_taken([&] { nn::cross_entropy(none, problems.none(target, shares ? Dims{0, 1} : Dims{0}), {}, stream); })) continue;
      for (const bool weighted : {false, true})
        for (const nn::Reduction reduction : {nn::Reduction::mean, nn::Reduction::sum, nn::Reduction::none}) {
          // Of unsigned targets a class is the one without a part.
          const std::int64_t ignored = kDTypes[static_cast<std::size_t>(target)].is_signed ? -100 : 3;
          next(make.call(dtype, target, {37, 53}, weighted, reduction, 0, ignored, !shares && reduction == nn::Reduction::none));
          next(make.call(dtype, target, {21, 64}, weighted, reduction, 0.125, 2, false));
          next(strided(problems, make.call(dtype, target, {23, 40}, weighted, reduction, 0, 2, false)));
          next(make.call(dtype, target, {5, 11, 3, 2}, weighted, reduction, 0.5, 2, false));
          if (!weighted) next(make.call(dtype, target, {19}, weighted, reduction, 0, -1, false));
        }
    }
  }
}

/// What a result in f64 and one in the dtype may differ by, in units of the last place.
double unit_of(DType dtype, bool fp64) { return (fp64 && dtype != DType::f64 ? 1 : 2) * (dtype == DType::f64 ? 0x1p-53 : 0x1p-24); }

}  // namespace

void cross_entropy_problems(PluginProblems& problems) {
  const bool fp64 = problems.stream().device().traits().fp64;
  const DType widest = fp64 ? DType::f64 : DType::f32;
  each_cross_entropy(problems, [&](const Classes& c) {
    const DType dtype = c.logits.dtype(), kept = dtype == DType::f64 ? DType::f64 : DType::f32;
    const bool apart = c.options.reduction == nn::Reduction::none;
    PluginProblem one{.name = text_of(c), .inputs = {c.logits, c.target}, .outputs = {{dtype, apart ? c.losses : Dims{}}, {kept, c.rows}, {kept, c.rows}}};
    if (c.options.weight.defined()) one.inputs.push_back(c.options.weight);
    one.run = [=](std::span<const Tensor> out, const std::string&, const Stream& stream) {
      nn::cross_entropy_out({out[0], out[1], out[2]}, c.logits, c.target, c.options, stream);
    };
    one.exact = [=](std::span<const Tensor> out, const Stream& stream) {
      nn::CrossEntropyOptions options = c.options;
      if (options.weight.defined()) options.weight = options.weight.to(widest, {}, stream);
      const Tensor target = is_floating(c.target.dtype()) ? c.target.to(widest, {}, stream) : c.target;
      nn::cross_entropy_out({out[0], out[1], out[2]}, c.logits.to(widest, {}, stream), target, options, stream);
    };
    one.widest = widest;
    // The contract's, of each loss, and the rounding of what sums and divides them.
    const double unit = unit_of(dtype, fp64), of_row = (std::log(static_cast<double>(c.classes)) + 50) * unit;
    const double losses = c.options.reduction == nn::Reduction::sum ? static_cast<double>(numel(c.losses)) : 1;
    PluginProblem::Bound of_loss = store_bound(dtype);
    of_loss.absolute += c.most_weight * losses * of_row + 0x1p-126, of_loss.relative += 64 * unit;
    one.bounds = {of_loss, {0, 0}, {of_row, 4 * unit}};
    problems.add(std::move(one));
  });
}

void cross_entropy_gradient_problems(PluginProblems& problems) {
  const bool fp64 = problems.stream().device().traits().fp64;
  const DType widest = fp64 ? DType::f64 : DType::f32;
  CrossEntropies make(problems);
  each_cross_entropy(problems, [&](const Classes& c) {
    const DType dtype = c.logits.dtype(), kept = dtype == DType::f64 ? DType::f64 : DType::f32;
    const bool apart = c.options.reduction == nn::Reduction::none;
    const Dims of_grad = apart ? c.losses : Dims{};
    // Any maximum and sum of a row: the gradient is a formula of them.
    const bool repeats = apart && !c.logits.is_contiguous();  // as that of a sum
    const Tensor grad = repeats ? problems.from_values(dtype, make.numbers(1, -1, 1)).expand(of_grad)
                                : problems.from_values(dtype, make.numbers(numel(of_grad), -1, 1)).reshape(of_grad),
                 max = problems.from_values(kept, make.numbers(numel(c.rows), 3, 5)).reshape(c.rows),
                 log_sum = problems.from_values(kept, make.numbers(numel(c.rows), 0, 4)).reshape(c.rows);
    PluginProblem one{.name = text_of(c), .inputs = {grad, c.logits, c.target, max, log_sum}, .outputs = {{dtype, c.logits.sizes()}}};
    if (c.options.weight.defined()) one.inputs.push_back(c.options.weight);
    one.run = [=](std::span<const Tensor> out, const std::string&, const Stream& stream) {
      nn::cross_entropy_backward_out(out[0], grad, c.logits, c.target, {.max = max, .log_sum = log_sum}, c.options, stream);
    };
    one.exact = [=](std::span<const Tensor> out, const Stream& stream) {
      const auto wide = [&](const Tensor& t) { return t.to(widest, {}, stream); };
      nn::CrossEntropyOptions options = c.options;
      if (options.weight.defined()) options.weight = wide(options.weight);
      const Tensor target = is_floating(c.target.dtype()) ? wide(c.target) : c.target;
      nn::cross_entropy_backward_out(out[0], wide(grad), wide(c.logits), target, {.max = wide(max), .log_sum = wide(log_sum)}, options, stream);
    };
    one.widest = widest;
    // The contract's for logits within 12 of the maximum, for the largest weight, and of a gradient of 1.
    const double unit = unit_of(dtype, fp64), own = (24 + 2 * std::log(static_cast<double>(c.classes)) + 54) * unit;
    const double total = c.options.reduction == nn::Reduction::mean ? c.least_total : 1;
    PluginProblem::Bound bound = store_bound(dtype);
    bound.absolute += 2 * c.most_weight * own / total + 0x1p-126, bound.relative += 64 * unit;
    one.bounds = {bound};
    problems.add(std::move(one));
  });
}

}}}  // namespace clutch::v0::detail
