// SPDX-License-Identifier: Apache-2.0
// Gradients of map: of its inputs and of the tensors that its function captures. Composed of map, reduce and scatter_reduce.
#include <clutch/ops/copy.hpp>
#include <clutch/ops/map.hpp>
#include <clutch/ops/reduce.hpp>
#include <clutch/ops/scatter.hpp>
#include <clutch/pointwise.hpp>

#include "expr/node.hpp"
#include "ops/out_form.hpp"
#include "ops/reduce_plan.hpp"
#include "ops/traced.hpp"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

namespace clutch { inline namespace v0 {
namespace {

/// Derivatives by function, made once.
ExprFunction backward_of(const ExprFunction& f) {
  static std::mutex mutex;
  static auto* known = new std::map<std::uint64_t, ExprFunction>;
  if (f.param_count() > 0 || f.captured_count() > 0) return f.backward();  // not kept: it has the values of this function
  {
    std::lock_guard lock(mutex);
    if (auto found = known->find(f.body()->id); found != known->end()) return found->second;
  }
  ExprFunction made = f.backward();
  std::lock_guard lock(mutex);
  return known->try_emplace(f.body()->id, made).first->second;
}

/// The tensors that a derivative takes, and their broadcast shape.
struct Operands {
  std::vector<Tensor> tensors;  ///< inputs, then gradients, each in the dtype it is traced in
  Dims sizes;
};

Operands operands_of(const ExprFunction& f, std::span<const Tensor> inputs, std::span<const Tensor> grad_outputs, std::string_view op, const Stream& stream) {
  if (f.empty()) throw Error(ErrorCode::invalid_argument, op, "the function must be a traced one, got an empty one");
  std::vector<DType> traced;
  for (int i = 0; i < f.output_count(); ++i)
    if (is_floating(f.output_dtype(i))) traced.push_back(f.output_dtype(i));
  if (grad_outputs.size() != traced.size() || static_cast<int>(inputs.size()) != f.input_count())
    throw Error(ErrorCode::invalid_argument, op,
                fmt::format("inputs and gradients must be as many as the function's, got {} and {} for {} inputs and {} floating outputs", inputs.size(),
                            grad_outputs.size(), f.input_count(), traced.size()));
  Operands o{.tensors = {inputs.begin(), inputs.end()}};
  for (std::size_t i = 0; i < traced.size(); ++i) {
    const Tensor& g = grad_outputs[i];
    if (!g.defined()) throw Error(ErrorCode::invalid_argument, op, "a gradient must be defined, got an undefined tensor");
    o.tensors.push_back(detail::compute_dtype(g.dtype(), op) == traced[i] ? g : cast(g, traced[i], CopyOptions{}, stream));
  }
  std::vector<Dims> shapes;
  for (const Tensor& t : o.tensors)
    shapes.push_back(t.defined() ? t.sizes() : throw Error(ErrorCode::invalid_argument, op, "a tensor must be defined, got an undefined one"));
  o.sizes = broadcast_shapes(shapes, op);
  return o;
}

}  // namespace

std::vector<Tensor> map_backward(std::span<const Tensor> grad_outputs, const ExprFunction& f, std::span<const Tensor> inputs, const Stream& stream) {
  detail::OpName named("map_backward");
  constexpr std::string_view op = "map_backward";
  Operands o = operands_of(f, inputs, grad_outputs, op, stream);
  ExprFunction backward = backward_of(f);
  std::vector<const Tensor*> floating;
  for (const Tensor& t : inputs)
    if (is_floating(t.dtype())) floating.push_back(&t);
  // Gradients that are summed next are kept in the accumulator's dtype.
  std::vector<Tensor> outputs;
  for (const Tensor* t : floating) {
    DType dtype = t->sizes() == o.sizes ? t->dtype() : detail::compute_dtype(t->dtype(), op);
    outputs.push_back(empty(o.sizes, {.dtype = dtype, .device = inputs[0].device()}, stream));
  }
  map_out(outputs, backward, o.tensors, {}, stream);
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = sum_to(outputs[i], floating[i]->sizes(), stream).to(floating[i]->dtype(), {}, stream);
  return outputs;
}

void map_backward_out(std::span<const Tensor> outs, std::span<const Tensor> grad_outputs, const ExprFunction& f, std::span<const Tensor> inputs,
                      const Stream& stream) {
  detail::OpName named("map_backward_out");
  detail::store(outs, map_backward(grad_outputs, f, inputs, stream), "the gradients of floating inputs", "map_backward", stream);
}

namespace {

/// If all indices of a read are positions of different dimensions, none is clamped and reduce() can take the operands: these dimensions.
std::optional<Dims> read_dims(const detail::CapturedRead& read, const Operands& o, const Tensor& tensor) {
  if (!read.positions || o.tensors.size() > detail::kMaxReduceInputs) return std::nullopt;
  Dims dims;
  for (std::int64_t position : *read.positions) {
    int d = detail::dim_of(position, o.sizes.rank(), "captured_backward");
    if (o.sizes[d] > tensor.sizes()[dims.rank()] || std::find(dims.begin(), dims.end(), d) != dims.end()) return std::nullopt;
    dims.push_back(d);
  }
  int used = 0;
  for (const detail::ExprStep& s : read.gradient.body()->steps) used += s.op == detail::ExprOp::position;
  return used <= detail::kMaxReducePositions ? std::optional(dims) : std::nullopt;
}

/// The sum of a read's gradients over all dimensions except `dims`, which are the result's dimensions in their order.
Tensor summed_to(const Dims& dims, const ExprFunction& gradient, const Operands& o, DType dtype, const Stream& stream) {
  auto is_read = [&](int d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); };
  Dims others;
  for (int d = 0; d < o.sizes.rank(); ++d)
    if (!is_read(d)) others.push_back(d);
  Tensor part = others.empty() ? map(gradient, o.tensors, {.dtype = {dtype}}, stream)[0]
                               : reduce(Reduce::sum, gradient, o.tensors, {.dims = others, .keepdim = true, .dtype = {dtype}}, stream);
  Dims sizes, strides;
  for (std::int64_t d : dims) sizes.push_back(part.sizes()[static_cast<int>(d)]), strides.push_back(part.strides()[static_cast<int>(d)]);
  return part.as_strided(sizes, strides);
}

}  // namespace

std::vector<Tensor> captured_backward(std::span<const Tensor> grad_outputs, const ExprFunction& f, std::span<const Tensor> inputs, const Stream& stream) {
  detail::OpName named("captured_backward");
  constexpr std::string_view op = "captured_backward";
  Operands o = operands_of(f, inputs, grad_outputs, op, stream);
  detail::check_captured(*f.body(), op);
  std::vector<Tensor> totals(static_cast<std::size_t>(f.captured_count()));
  for (const detail::CapturedRead& read : detail::captured_reads(f)) {
    Tensor& total = totals[static_cast<std::size_t>(read.tensor)];
    const Tensor& tensor = f.captured_tensor(read.tensor);
    const DType dtype = detail::compute_dtype(tensor.dtype(), op);
    auto started = [&] { return total.defined() ? total : zeros(tensor.sizes(), {.dtype = dtype, .device = tensor.device()}, stream); };
    if (std::optional<Dims> dims = read_dims(read, o, tensor)) {
      Tensor part = summed_to(*dims, read.gradient, o, dtype, stream);
      if (!total.defined() && part.sizes() == tensor.sizes()) {
        total = part.contiguous(stream);
        continue;
      }
      total = started();
      add_(total.as_strided(part.sizes(), total.strides()), part, {}, stream);
    } else {
      std::vector<Tensor> made = map(read.gradient_and_place, o.tensors, {.dtype = {dtype, DType::i64}}, stream);
      total = started();
      scatter_reduce_(total.reshape({-1}), 0, made[1].reshape({-1}), made[0].reshape({-1}), {}, stream);
    }
  }
  std::vector<Tensor> gradients;
  for (int i = 0; i < f.captured_count(); ++i) {
    const Tensor& tensor = f.captured_tensor(i);
    const Tensor& total = totals[static_cast<std::size_t>(i)];
    if (!is_floating(tensor.dtype())) continue;
    gradients.push_back(total.defined() ? total.to(tensor.dtype(), {}, stream)
                                        : zeros(tensor.sizes(), {.dtype = tensor.dtype(), .device = tensor.device()}, stream));
  }
  if (gradients.empty()) throw Error(ErrorCode::invalid_dtype, op, "a captured tensor must be floating, got none");
  return gradients;
}

void captured_backward_out(std::span<const Tensor> outs, std::span<const Tensor> grad_outputs, const ExprFunction& f, std::span<const Tensor> inputs,
                           const Stream& stream) {
  detail::OpName named("captured_backward_out");
  detail::store(outs, captured_backward(grad_outputs, f, inputs, stream), "the gradients of floating captured tensors", "captured_backward", stream);
}

}}  // namespace clutch::v0
