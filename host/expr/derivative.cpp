// SPDX-License-Identifier: Apache-2.0
// Functions made from functions: identity, composition, and the reverse-mode derivative. A derivative has the steps again, then the adjoints of floating steps.
#include "expr/node.hpp"
#include "expr/shared_params.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numbers>
#include <optional>

namespace clutch { inline namespace v0 {
namespace detail {

Expr expression_of(const ExprBody& body, const ExprStep& s, std::span<const Expr> operands) {
  ExprNode n;
  n.op = s.op, n.dtype = s.dtype, n.target = s.target, n.index = s.index, n.bits = s.bits;
  for (const Expr& o : operands) n.operands.push_back(o.node()), n.depth = std::max(n.depth, o.node()->depth + 1);
  if (s.op == ExprOp::param) {
    n.bits = std::bit_cast<std::uint64_t>(body.param_values[static_cast<std::size_t>(s.index)]);
    n.identity = &body.param_values[static_cast<std::size_t>(s.index)];
  }
  if (s.op == ExprOp::gather) {
    n.tensor = body.tensors[static_cast<std::size_t>(s.index)];
    const std::vector<int> states = n.tensor.defined() ? std::vector<int>() : generator_states(body);
    n.bits = std::find(states.begin(), states.end(), s.index) != states.end();
  }
  return Expr(std::make_shared<const ExprNode>(std::move(n)));
}

std::vector<Expr> expressions_of(const ExprBody& body, const ExprRewrite& rewrite) {
  std::vector<Expr> values;
  std::vector<Expr> operands;
  for (std::size_t k = 0; k < body.steps.size(); ++k) {
    if (rewrite)
      if (std::optional<Expr> other = rewrite(k, values)) {
        values.push_back(*std::move(other));
        continue;
      }
    operands.clear();
    for (int o : body.steps[k].operands) operands.push_back(values[static_cast<std::size_t>(o)]);
    values.push_back(expression_of(body, body.steps[k], operands));
  }
  return values;
}

namespace {

/// The function's steps as expressions of its inputs, and for each step the sum of its gradients (reverse mode).
class Adjoints {
 public:
  explicit Adjoints(const ExprBody& body, const ExprRewrite& rewrite = {}) : body_(body), values_(expressions_of(body, rewrite)), sums_(body.steps.size()) {}

  void arrive(int step, const Expr& gradient) {
    auto k = static_cast<std::size_t>(step);
    if (!is_floating(body_.steps[k].dtype)) return;
    sums_[k] = sums_[k] ? *sums_[k] + gradient : gradient;
  }
  bool reached(int step) const { return sums_[static_cast<std::size_t>(step)].has_value(); }
  Expr of(int step) const {
    auto k = static_cast<std::size_t>(step);
    return sums_[k] ? *sums_[k] : expr_constant(body_.steps[k].dtype, 0);
  }
  const Expr& value(int step) const { return values_[static_cast<std::size_t>(step)]; }
  void run() {
    for (std::size_t k = body_.steps.size(); k-- > 0;)
      if (sums_[k]) pass(body_.steps[k], values_[k], *sums_[k]);
  }

 private:
  void pass(const ExprStep& s, const Expr& y, const Expr& g) {
    auto x = [&](std::size_t k) -> const Expr& { return values_[static_cast<std::size_t>(s.operands[k])]; };
    auto to = [&](std::size_t k, const Expr& gradient) { arrive(s.operands[k], gradient); };
    auto zero = [&] { return expr_constant(s.dtype, 0); };
    switch (s.op) {
      case ExprOp::add: to(0, g), to(1, g); break;
      case ExprOp::sub: to(0, g), to(1, -g); break;
      case ExprOp::mul: to(0, g * x(1)), to(1, g * x(0)); break;
      case ExprOp::neg: to(0, -g); break;
      case ExprOp::abs: to(0, select(x(0) > 0, g, select(x(0) < 0, -g, zero()))); break;
      case ExprOp::min:
      case ExprOp::max: {
        Expr half = g * 0.5;
        Expr first_loses = s.op == ExprOp::min ? x(0) > x(1) : x(0) < x(1), second_loses = s.op == ExprOp::min ? x(0) < x(1) : x(0) > x(1);
        Expr tie = x(0) == x(1);
        to(0, select(tie, half, select(first_loses, zero(), g)));
        to(1, select(tie, half, select(second_loses, zero(), g)));
        break;
      }
      case ExprOp::div: to(0, g / x(1)), to(1, -g * (y / x(1))); break;
      case ExprOp::fma: to(0, g * x(1)), to(1, g * x(0)), to(2, g); break;
      case ExprOp::sqrt: to(0, g / (y * 2)); break;
      case ExprOp::rsqrt: to(0, g * (y * y * y) * -0.5); break;
      case ExprOp::exp: to(0, g * y); break;
      case ExprOp::exp2: to(0, g * y * std::numbers::ln2); break;
      case ExprOp::expm1: to(0, g * (y + 1)); break;
      case ExprOp::log: to(0, g / x(0)); break;
      case ExprOp::log2: to(0, g / (x(0) * std::numbers::ln2)); break;
      case ExprOp::log1p: to(0, g / (x(0) + 1)); break;
      case ExprOp::tanh: to(0, g * (1 - y * y)); break;
      case ExprOp::sigmoid: to(0, g * ((1 - y) * y)); break;
      case ExprOp::erf: to(0, g * exp(-(x(0) * x(0))) * (2 * std::numbers::inv_sqrtpi)); break;
      case ExprOp::sin: to(0, g * cos(x(0))); break;
      case ExprOp::cos: to(0, -(g * sin(x(0)))); break;
      case ExprOp::pow: {
        to(0, select(x(1) == 0, zero(), g * (x(1) * pow(x(0), x(1) - 1))));
        to(1, select((x(0) == 0) & (x(1) >= 0), zero(), g * (y * log(x(0)))));
        break;
      }
      case ExprOp::select: to(1, select(x(0), g, zero())), to(2, select(x(0), zero(), g)); break;
      case ExprOp::cast:
        if (is_floating(x(0).dtype())) to(0, cast(g, x(0).dtype()));
        break;
      case ExprOp::opencl: pass_text(s, g); break;
      default: break;  // inputs, constants, roundings to integers have no gradient
    }
  }

  /// Passes a gradient through OpenCL C text by the derivatives that the user gave.
  void pass_text(const ExprStep& s, const Expr& g) {
    const OpenclText& text = opencl_text(s.index);
    for (std::size_t k = 0; k < s.operands.size(); ++k) {
      const DType dtype = body_.steps[static_cast<std::size_t>(s.operands[k])].dtype;
      if (!is_floating(dtype)) continue;
      if (text.derivatives.empty())
        throw Error(ErrorCode::not_supported, "ExprFunction::backward",
                    fmt::format("opencl() must be given derivatives for a gradient, got none for {}", text.value));
      if (text.derivatives[k].empty()) continue;
      ExprStep derivative = s;
      derivative.index = text_number({.value = text.derivatives[k]});
      std::vector<Expr> arguments;
      for (int o : s.operands) arguments.push_back(values_[static_cast<std::size_t>(o)]);
      arrive(s.operands[k], cast(g * expression_of(body_, derivative, arguments), dtype));
    }
  }

  const ExprBody& body_;
  std::vector<Expr> values_;
  std::vector<std::optional<Expr>> sums_;
};

}  // namespace

const ExprFunction& identity(DType dtype) {
  static const auto* all = [] {
    auto* made = new std::map<DType, ExprFunction>;
    for (DType d : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u64, DType::boolean}) {
      const Expr x = expr_input(0, d);
      made->try_emplace(d, std::span(&d, 1), std::span(&x, 1));
    }
    return made;
  }();
  return all->at(dtype);
}

ExprFunction conversion(DType from, DType to) {
  const Expr x = cast(expr_input(0, from), to);
  return ExprFunction(std::span(&from, 1), std::span(&x, 1));
}

namespace {

std::vector<Expr> applied(const ExprFunction& function, std::span<const Expr> inputs, SharedParams* params, const Positions& positions) {
  const ExprBody& body = *function.body();
  const std::vector<Expr> values = expressions_of(body, [&](std::size_t k, const std::vector<Expr>&) -> std::optional<Expr> {
    const ExprStep& s = body.steps[k];
    if (s.op == ExprOp::input) return cast(inputs[static_cast<std::size_t>(s.index)], s.dtype);
    if (s.op == ExprOp::position && positions) return positions(s.index);
    if (!params || s.op != ExprOp::param) return std::nullopt;
    const double value = body.param_values[static_cast<std::size_t>(s.index)];
    auto found = params->find({s.dtype, value});
    if (found == params->end()) found = params->emplace(std::pair(s.dtype, value), expression_of(body, s, {})).first;
    return found->second;
  });
  std::vector<Expr> outputs;
  for (int o : body.outputs) outputs.push_back(values[static_cast<std::size_t>(o)]);
  return outputs;
}

}  // namespace

std::vector<Expr> applied(const ExprFunction& function, std::span<const Expr> inputs) { return applied(function, inputs, nullptr, {}); }
std::vector<Expr> applied(const ExprFunction& function, std::span<const Expr> inputs, SharedParams& params, const Positions& positions) {
  return applied(function, inputs, &params, positions);
}

ExprFunction compose(const ExprFunction& outer, const ExprFunction& inner) {
  std::vector<Expr> inputs;
  for (DType d : inner.body()->inputs) inputs.push_back(expr_input(static_cast<int>(inputs.size()), d));
  return ExprFunction(inner.body()->inputs, applied(outer, applied(inner, inputs)));
}

namespace {

/// Adds a gradient for each floating output as one more input of the function. Returns all inputs.
std::vector<DType> start(Adjoints& adjoints, const ExprBody& body) {
  if (!generator_states(body).empty())
    throw Error(ErrorCode::not_supported, "ExprFunction::backward",
                "random numbers must come from a seed for a gradient, got a generator, which gives others then; return what is needed of them as an output");
  std::vector<DType> inputs = body.inputs;
  for (int output : body.outputs) {
    DType dtype = body.steps[static_cast<std::size_t>(output)].dtype;
    if (!is_floating(dtype)) continue;
    adjoints.arrive(output, expr_input(static_cast<int>(inputs.size()), dtype));
    inputs.push_back(dtype);
  }
  adjoints.run();
  return inputs;
}

/// From this number of reads on, constants in indices become params, if kernels have arguments to spare.
constexpr std::size_t kManyReads = 8;
bool has_few_arguments(const ExprFunction& f) {
  int tensors = 0;
  for (const ExprBody::Buffer& b : f.body()->buffers) tensors += 1 + b.rank;
  return f.param_count() <= 4 && tensors <= 12;
}

/// Turns constants among the indices of captured tensors into params.
ExprRewrite indices_as_params(const ExprBody& body) {
  std::vector<bool> is_index(body.steps.size());
  for (const ExprStep& s : body.steps)
    if (s.op == ExprOp::gather)
      for (int o : s.operands) is_index[static_cast<std::size_t>(o)] = true;
  return [&body, is_index = std::move(is_index)](std::size_t k, const std::vector<Expr>&) -> std::optional<Expr> {
    const ExprStep& s = body.steps[k];
    if (s.op != ExprOp::constant || !is_index[k]) return std::nullopt;
    return cast(param(static_cast<std::int64_t>(s.bits)), s.dtype);
  };
}

/// If each index is a position, the dimensions of these positions.
std::optional<Dims> positions_of(const ExprBody& body, const ExprStep& read) {
  Dims dims;
  for (int o : read.operands) {
    const ExprStep& index = body.steps[static_cast<std::size_t>(o)];
    if (index.op != ExprOp::position) return std::nullopt;
    dims.push_back(index.index);
  }
  return dims;
}

}  // namespace

std::vector<CapturedRead> captured_reads(const ExprFunction& function) {
  const ExprBody& body = *function.body();
  Adjoints adjoints(body);
  std::vector<DType> inputs = start(adjoints, body);
  std::vector<int> steps;
  for (int k = 0; k < static_cast<int>(body.steps.size()); ++k)
    if (body.steps[static_cast<std::size_t>(k)].op == ExprOp::gather && adjoints.reached(k)) steps.push_back(k);
  // Among many reads, those that differ in constants of their indices alone should share one program.
  std::optional<Adjoints> numbered;
  if (steps.size() >= kManyReads) start(numbered.emplace(body, indices_as_params(body)), body);

  std::vector<CapturedRead> reads;
  for (int k : steps) {
    const ExprStep& s = body.steps[static_cast<std::size_t>(k)];
    const Tensor& tensor = body.tensors[static_cast<std::size_t>(s.index)];
    auto gradient_of = [&](const Adjoints& from) {
      const Expr gradient = from.of(k);
      return ExprFunction(inputs, std::span(&gradient, 1));
    };
    auto gradient_and_place_of = [&](const Adjoints& from) {
      // Sizes are params, so that the text does not depend on them.
      Expr place = cast(Expr(0), DType::i64);
      for (std::size_t d = 0; d < s.operands.size(); ++d) {
        Expr size = param(tensor.sizes()[static_cast<int>(d)]), index = min(max(from.value(s.operands[d]), 0), size - 1);
        place = d == 0 ? index : place * size + index;
      }
      const Expr both[] = {from.of(k), place};
      return ExprFunction(inputs, both);
    };
    auto made = [&](auto&& make) {
      if (numbered)
        if (ExprFunction f = make(*numbered); has_few_arguments(f)) return f;
      return make(adjoints);
    };
    reads.push_back(
        {.tensor = s.index, .step = k, .positions = positions_of(body, s), .gradient = made(gradient_of), .gradient_and_place = made(gradient_and_place_of)});
  }
  return reads;
}

}  // namespace detail

ExprFunction ExprFunction::backward() const {
  if (!body_) throw Error(ErrorCode::invalid_argument, "ExprFunction::backward", "the function must be a traced one, got an empty one");
  const detail::ExprBody& body = *body_;
  detail::Adjoints adjoints(body);
  std::vector<DType> inputs = detail::start(adjoints, body);
  std::vector<Expr> gradients;
  for (std::size_t i = 0; i < body.inputs.size(); ++i)
    if (is_floating(body.inputs[i])) gradients.push_back(adjoints.of(static_cast<int>(i)));
  if (gradients.empty()) throw Error(ErrorCode::invalid_dtype, "ExprFunction::backward", "an input must be floating, got none");
  return ExprFunction(inputs, gradients);
}

}}  // namespace clutch::v0
