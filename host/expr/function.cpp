// SPDX-License-Identifier: Apache-2.0
// Makes canonical steps from traced nodes: equal steps once, constants folded, identities removed, in depth-first order.
#include "expr/builder.hpp"
#include "runtime/op_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

bool commutes(ExprOp op) {
  switch (op) {
    case ExprOp::add:
    case ExprOp::mul:
    case ExprOp::bit_and:
    case ExprOp::bit_or:
    case ExprOp::bit_xor:
    case ExprOp::eq:
    case ExprOp::ne: return true;
    default: return false;
  }
}

/// Orders the operands of a commutative step: by index, with constants last.
void sort_operands(ExprStep& s, const std::vector<ExprStep>& steps) {
  if (!commutes(s.op)) return;
  auto rank = [&](int o) { return std::pair(steps[static_cast<std::size_t>(o)].op == ExprOp::constant, o); };
  if (rank(s.operands[1]) < rank(s.operands[0])) std::swap(s.operands[0], s.operands[1]);
}

std::uint64_t hash_of(const ExprStep& s) {
  std::uint64_t h =
      s.bits * 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(s.op) * 131 + static_cast<std::uint64_t>(s.target) * 31 + static_cast<std::uint64_t>(s.index);
  for (int o : s.operands) h = (h ^ static_cast<std::uint64_t>(o)) * 0x9E3779B97F4A7C15u;
  return h;
}

}  // namespace

bool ExprBuilder::is_constant(int step, double value) const {
  const ExprStep& s = steps_[static_cast<std::size_t>(step)];
  return s.op == ExprOp::constant && s.bits == constant_bits(s.dtype, value);
}

/// An earlier step that gives the same bits for all inputs; -1: none.
int ExprBuilder::simplified(const ExprStep& s) const {
  auto step = [&](int k) -> const ExprStep& { return steps_[static_cast<std::size_t>(k)]; };
  auto operand = [&](std::size_t k) { return s.operands[k]; };
  auto other_than = [&](double value) {  // if one operand is that constant, the other one; else -1
    if (is_constant(operand(1), value)) return operand(0);
    return is_constant(operand(0), value) ? operand(1) : -1;
  };
  bool whole = !is_floating(s.dtype);
  switch (s.op) {
    case ExprOp::add: return whole ? other_than(0) : other_than(-0.0);
    case ExprOp::sub: return is_constant(operand(1), 0) ? operand(0) : -1;
    case ExprOp::mul: return other_than(1);
    case ExprOp::div: return is_constant(operand(1), 1) ? operand(0) : -1;
    case ExprOp::neg:
    case ExprOp::bit_not: return step(operand(0)).op == s.op ? step(operand(0)).operands[0] : -1;
    case ExprOp::abs: return step(operand(0)).op == ExprOp::abs ? operand(0) : -1;
    case ExprOp::min:
    case ExprOp::max: return operand(0) == operand(1) ? operand(0) : -1;
    case ExprOp::bit_and:
    case ExprOp::bit_or:
      if (operand(0) == operand(1)) return operand(0);
      if (s.dtype != DType::boolean) return -1;
      if (int rest = other_than(s.op == ExprOp::bit_and); rest >= 0) return rest;
      if (is_constant(operand(0), s.op == ExprOp::bit_or)) return operand(0);
      return is_constant(operand(1), s.op == ExprOp::bit_or) ? operand(1) : -1;
    case ExprOp::select:
      if (operand(1) == operand(2)) return operand(1);
      if (step(operand(0)).op != ExprOp::constant) return -1;
      return step(operand(0)).bits ? operand(1) : operand(2);
    case ExprOp::cast:
      if (s.target == step(operand(0)).dtype) return operand(0);
      return step(operand(0)).op == ExprOp::cast && step(operand(0)).target == s.target ? operand(0) : -1;
    default: return -1;
  }
}

int ExprBuilder::add(ExprStep s) {
  sort_operands(s, steps_);
  if (info(s.op).operands > 0) {
    if (int same = simplified(s); same >= 0) return same;
    bool constant = true;
    std::vector<std::uint64_t> values;
    for (int o : s.operands) {
      const ExprStep& operand = steps_[static_cast<std::size_t>(o)];
      constant = constant && operand.op == ExprOp::constant;
      values.push_back(operand.bits);
    }
    if (constant) {
      DType operand_dtype = steps_[static_cast<std::size_t>(s.operands.back())].dtype;
      s = {.op = ExprOp::constant, .dtype = s.dtype, .bits = evaluate_step(s, operand_dtype, values)};
    }
  }
  if (s.op == ExprOp::constant && is_floating(s.dtype) && std::isnan(constant_value(s.dtype, s.bits)))
    s.bits = constant_bits(s.dtype, std::numeric_limits<double>::quiet_NaN());  // one bit pattern for all NaNs
  if (s.op != ExprOp::cast) s.target = s.dtype;
  auto& alike = known_[hash_of(s)];
  for (int earlier : alike)
    if (steps_[static_cast<std::size_t>(earlier)] == s) return earlier;
  if (steps_.size() >= kMaxExprNodes)
    throw Error(ErrorCode::invalid_argument, "ExprFunction", fmt::format("a traced function must have at most {} operations, got more", kMaxExprNodes));
  alike.push_back(static_cast<int>(steps_.size()));
  steps_.push_back(std::move(s));
  return alike.back();
}

namespace {

/// Steps that the outputs need: the inputs, then the others in depth-first order.
struct Ordering {
  const std::vector<ExprStep>& from;
  std::vector<int> number;  // new index by old index
  std::vector<int> order;   // old index by new index

  void visit(int root) {
    std::vector<std::pair<int, std::size_t>> open{{root, 0}};
    while (!open.empty()) {
      auto& [step, next] = open.back();
      if (number[static_cast<std::size_t>(step)] >= 0) {
        open.pop_back();
        continue;
      }
      const auto& operands = from[static_cast<std::size_t>(step)].operands;
      if (next < operands.size()) {
        int operand = operands[next++];
        open.emplace_back(operand, 0);
        continue;
      }
      number[static_cast<std::size_t>(step)] = static_cast<int>(order.size());
      order.push_back(step);
      open.pop_back();
    }
  }
};

struct Listed {
  std::vector<ExprStep> steps;
  std::vector<int> outputs;
};

Listed ordered(const std::vector<ExprStep>& steps, const std::vector<int>& outputs, std::size_t inputs) {
  Ordering o{steps, std::vector<int>(steps.size(), -1), {}};
  for (std::size_t i = 0; i < inputs; ++i) o.visit(static_cast<int>(i));
  for (int output : outputs) o.visit(output);
  Listed result;
  for (int old : o.order) {
    ExprStep s = steps[static_cast<std::size_t>(old)];
    for (int& operand : s.operands) operand = o.number[static_cast<std::size_t>(operand)];
    sort_operands(s, result.steps);
    result.steps.push_back(std::move(s));
  }
  for (int output : outputs) result.outputs.push_back(o.number[static_cast<std::size_t>(output)]);
  return result;
}

}  // namespace

std::shared_ptr<const ExprBody> ExprBuilder::finish(const std::vector<int>& outputs) {
  Listed list{steps_, outputs};
  // The order of operands depends on the indices of steps, and the indices on the order of operands; both settle after a few rounds.
  for (int round = 0; round < 16; ++round) {
    Listed next = ordered(list.steps, list.outputs, inputs_.size());
    bool settled = next.steps == list.steps && next.outputs == list.outputs;
    list = std::move(next);
    if (settled) break;
  }
  auto body = std::make_shared<ExprBody>();
  body->inputs = inputs_;
  body->outputs = list.outputs;
  std::vector<int> params(params_.size(), -1), buffers(buffers_.size(), -1);
  // New draws are numbered in their order, behind those that have a number.
  int draws = 0;
  std::unordered_map<std::uint64_t, int> drawn;
  for (const ExprStep& s : list.steps)
    if (is_random(s.op) && s.bits == 0) draws = std::max(draws, s.index + 1);
  for (ExprStep& s : list.steps) {
    if (s.op == ExprOp::param) {
      int& number = params[static_cast<std::size_t>(s.index)];
      if (number < 0) {
        number = static_cast<int>(body->params.size());
        body->params.push_back(params_[static_cast<std::size_t>(s.index)].dtype);
        body->param_values.push_back(params_[static_cast<std::size_t>(s.index)].value);
      }
      s.index = number;
    } else if (s.op == ExprOp::gather) {
      int& number = buffers[static_cast<std::size_t>(s.index)];
      if (number < 0) {
        number = static_cast<int>(body->buffers.size());
        body->buffers.push_back(buffers_[static_cast<std::size_t>(s.index)].shape);
        body->tensors.push_back(buffers_[static_cast<std::size_t>(s.index)].tensor);
      }
      s.index = number;
    } else if (is_random(s.op) && s.bits != 0) {
      const auto [found, fresh] = drawn.try_emplace(s.bits, draws);
      draws += fresh;
      s.index = found->second, s.bits = 0;
    }
  }
  body->steps = std::move(list.steps);
  detail::finish(*body);
  return body;
}

int ExprBuilder::param(const void* identity, DType dtype, double value) {
  for (std::size_t i = 0; i < params_.size(); ++i)
    if (params_[i].identity == identity && params_[i].dtype == dtype) return static_cast<int>(i);
  params_.push_back({identity, dtype, value});
  return static_cast<int>(params_.size()) - 1;
}

bool same_view(const Tensor& a, const Tensor& b) {
  return a.shares_storage(b) && a.byte_offset() == b.byte_offset() && a.sizes() == b.sizes() && a.strides() == b.strides() && a.dtype() == b.dtype();
}

int ExprBuilder::buffer(const ExprBody::Buffer& shape, const Tensor& tensor) {
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    if (const Tensor& t = buffers_[i].tensor; t.defined() && same_view(t, tensor)) return static_cast<int>(i);
  buffers_.push_back({shape, tensor, false});
  return static_cast<int>(buffers_.size()) - 1;
}

int ExprBuilder::default_generator() {
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    if (buffers_[i].default_generator) return static_cast<int>(i);
  buffers_.push_back({{DType::i64, 1}, {}, true});
  return static_cast<int>(buffers_.size()) - 1;
}

namespace {

int number_of(ExprBuilder& builder, const ExprNode& n, const std::unordered_map<const ExprNode*, int>& numbers) {
  ExprStep s{.op = n.op, .dtype = n.dtype, .target = n.target, .bits = n.bits};
  for (const auto& operand : n.operands) s.operands.push_back(numbers.at(operand.get()));
  switch (n.op) {
    case ExprOp::input:
      if (n.index < 0 || n.index >= builder.input_count() || builder.input_dtype(n.index) != n.dtype)
        throw Error(ErrorCode::invalid_argument, "ExprFunction",
                    fmt::format("an expression's inputs must be the function's, got input {} of dtype {}", n.index, name(n.dtype)));
      return n.index;
    case ExprOp::param:
      s.index = builder.param(n.identity, n.dtype, n.real ? std::bit_cast<double>(n.bits) : static_cast<double>(static_cast<std::int64_t>(n.bits)));
      s.bits = 0;
      break;
    case ExprOp::position:
    case ExprOp::philox:
    case ExprOp::philox_wide:
    case ExprOp::opencl: s.index = n.index; break;
    case ExprOp::gather:
      s.index = !n.tensor.defined() && n.bits == 1 ? builder.default_generator() : builder.buffer({n.tensor.dtype(), n.tensor.rank()}, n.tensor);
      s.bits = 0;
      break;
    default: break;
  }
  return builder.add(std::move(s));
}

}  // namespace
}  // namespace detail

ExprFunction::ExprFunction(std::span<const DType> inputs, std::span<const Expr> outputs) {
  detail::ExprBuilder builder(inputs);
  std::unordered_map<const detail::ExprNode*, int> numbers;
  std::vector<int> results;
  std::vector<Expr> roots;  // kept to the end, because nodes are identified by address
  for (const Expr& output : outputs) {
    const Expr& root = roots.emplace_back(detail::strong(output));
    std::vector<std::pair<const detail::ExprNode*, std::size_t>> open{{root.node().get(), 0}};
    while (!open.empty()) {
      auto& [node, next] = open.back();
      if (numbers.contains(node)) {
        open.pop_back();
      } else if (next < node->operands.size()) {
        const detail::ExprNode* operand = node->operands[next++].get();
        open.emplace_back(operand, 0);
      } else {
        int number = detail::number_of(builder, *node, numbers);
        numbers.emplace(node, number);
        open.pop_back();
      }
    }
    results.push_back(numbers.at(root.node().get()));
  }
  body_ = builder.finish(results);
}

int ExprFunction::input_count() const noexcept { return body_ ? static_cast<int>(body_->inputs.size()) : 0; }
int ExprFunction::output_count() const noexcept { return body_ ? static_cast<int>(body_->outputs.size()) : 0; }
int ExprFunction::param_count() const noexcept { return body_ ? static_cast<int>(body_->params.size()) : 0; }
int ExprFunction::captured_count() const noexcept { return body_ ? static_cast<int>(body_->buffers.size()) : 0; }

namespace {
template <class T>
const T& at(const std::vector<T>& list, int i, std::string_view what) {
  if (i < 0 || i >= static_cast<int>(list.size()))
    throw Error(ErrorCode::invalid_argument, "ExprFunction", fmt::format("the index of {} must be in [0, {}), got {}", what, list.size(), i));
  return list[static_cast<std::size_t>(i)];
}
const detail::ExprBody& body_of(const std::shared_ptr<const detail::ExprBody>& body) {
  if (!body) throw Error(ErrorCode::invalid_argument, "ExprFunction", "the function must be a traced one, got an empty one");
  return *body;
}
}  // namespace

DType ExprFunction::input_dtype(int i) const {
  detail::OpName named("ExprFunction::input_dtype");
  return at(body_of(body_).inputs, i, "input");
}
DType ExprFunction::output_dtype(int i) const {
  detail::OpName named("ExprFunction::output_dtype");
  return body_->steps[static_cast<std::size_t>(at(body_of(body_).outputs, i, "output"))].dtype;
}
double ExprFunction::param_value(int i) const {
  detail::OpName named("ExprFunction::param_value");
  return at(body_of(body_).param_values, i, "param");
}
const Tensor& ExprFunction::captured_tensor(int i) const {
  detail::OpName named("ExprFunction::captured_tensor");
  return at(body_of(body_).tensors, i, "captured tensor");
}

ExprFunction ExprFunction::with_params(std::span<const double> values) const {
  detail::OpName named("ExprFunction::with_params");
  auto made = std::make_shared<detail::ExprBody>(body_of(body_));
  if (values.size() != made->param_values.size())
    throw Error(ErrorCode::invalid_argument, "ExprFunction",
                fmt::format("each of {} params must have a value, got {}", made->param_values.size(), values.size()));
  made->param_values.assign(values.begin(), values.end());
  return ExprFunction(std::move(made));
}

ExprFunction ExprFunction::with_captured(std::span<const Tensor> tensors) const {
  detail::OpName named("ExprFunction::with_captured");
  auto made = std::make_shared<detail::ExprBody>(body_of(body_));
  if (tensors.size() != made->tensors.size())
    throw Error(ErrorCode::invalid_argument, "ExprFunction",
                fmt::format("each of {} captured tensors must be given, got {}", made->tensors.size(), tensors.size()));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined() || tensors[i].dtype() != made->buffers[i].dtype || tensors[i].rank() != made->buffers[i].rank || tensors[i].numel() == 0)
      throw Error(ErrorCode::invalid_argument, "ExprFunction",
                  fmt::format("captured tensor {} must be a filled one of dtype {} and rank {}, got {}", i, name(made->buffers[i].dtype), made->buffers[i].rank,
                              tensors[i].defined() ? fmt::format("{} of {}", to_string(tensors[i].sizes()), name(tensors[i].dtype())) : "an undefined one"));
    made->tensors[i] = tensors[i];
  }
  return ExprFunction(std::move(made));
}

const std::string& ExprFunction::text() const {
  detail::OpName named("ExprFunction::text");
  return *body_of(body_).text;
}

int ExprFunction::floating_inputs() const noexcept {
  int count = 0;
  for (int i = 0; i < input_count(); ++i) count += is_floating(body_->inputs[static_cast<std::size_t>(i)]);
  return count;
}

}}  // namespace clutch::v0
