// SPDX-License-Identifier: Apache-2.0
#include <clutch/event.hpp>
#include <clutch/graph.hpp>
#include <clutch/ops/copy.hpp>

#include "encode/elementwise.hpp"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"

#include <fmt/format.h>

namespace clutch { inline namespace v0 {

namespace {
/// True if both are the same view of the same memory. The caller has compared sizes and dtypes.
bool is_view(const Tensor& a, const Tensor& b) { return a.storage() == b.storage() && a.byte_offset() == b.byte_offset() && a.strides() == b.strides(); }
}  // namespace

GraphedCallable make_graphed_callable(const std::function<std::vector<Tensor>(std::span<const Tensor>)>& f, std::span<const Tensor> samples,
                                      const GraphedCallableOptions& options) {
  constexpr const char* kOp = "make_graphed_callable";
  if (samples.empty() || options.warm_ups < 0)
    throw Error(ErrorCode::invalid_argument, kOp,
                fmt::format("there must be samples, and warm_ups must be at least 0, got {} samples and {}", samples.size(), options.warm_ups));
  for (const Tensor& sample : samples)
    if (!sample.defined()) throw Error(ErrorCode::invalid_argument, kOp, "a sample must be defined, got an undefined tensor");
  GraphedCallable made(options.graph);
  made.inputs_.assign(samples.begin(), samples.end());
  for (std::size_t j = 0; j < samples.size(); ++j)
    for (std::size_t i = 0; i < j; ++i)
      if (detail::may_overlap(samples[i], samples[j])) made.shared_.emplace_back(i, j);
  // The work that makes the samples may still run on the current stream.
  Stream before = current_stream(samples.front().device()), stream(samples.front().device());
  Event ready;
  ready.record(before);
  stream.wait(ready);
  {
    StreamGuard guard(stream);
    for (int i = 0; i < options.warm_ups; ++i) f(samples);
    stream.synchronize();
  }
  {
    GraphCapture capture(made.graph_, stream, options.capture);
    made.outputs_ = f(samples);
  }
  return made;
}

const std::vector<Tensor>& GraphedCallable::operator()(std::span<const Tensor> inputs, const Stream& stream) {
  constexpr const char* kOp = "GraphedCallable::operator()";
  detail::OpName named(kOp);
  if (inputs.size() != inputs_.size())
    throw Error(ErrorCode::invalid_argument, kOp, fmt::format("there must be the {} captured inputs, got {}", inputs_.size(), inputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) throw Error(ErrorCode::invalid_argument, kOp, fmt::format("input {} must be defined, got an undefined tensor", i));
    if (inputs[i].dtype() != inputs_[i].dtype())
      throw Error(ErrorCode::invalid_dtype, kOp,
                  fmt::format("input {} must be {} as its sample, got {}", i, name(inputs_[i].dtype()), name(inputs[i].dtype())));
    if (!(inputs[i].sizes() == inputs_[i].sizes()))
      throw Error(ErrorCode::invalid_shape, kOp,
                  fmt::format("input {} must have the sizes {} of its sample, got {}", i, to_string(inputs_[i].sizes()), to_string(inputs[i].sizes())));
  }
  for (const auto& [i, j] : shared_) {
    const bool are_samples = is_view(inputs[i], inputs_[i]) && is_view(inputs[j], inputs_[j]);
    if (!are_samples && !(is_view(inputs_[i], inputs_[j]) && is_view(inputs[i], inputs[j])))
      throw Error(
          ErrorCode::invalid_overlap, kOp,
          fmt::format("inputs of samples {} and {}, which share memory, must be the samples themselves or one tensor where the samples are one, got others", i,
                      j));
  }
  Stream on = detail::resolve_stream(stream, inputs_.front().storage()->runtime(), kOp);
  auto moves = [&](std::size_t i) { return !is_view(inputs[i], inputs_[i]); };
  // Inputs that overlap the destination of a copy are cloned first, so that every copy reads the original values.
  std::vector<Tensor> sources(inputs.begin(), inputs.end());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    for (std::size_t j = 0; j < inputs.size() && moves(i); ++j)
      if (moves(j) && detail::may_overlap(inputs[i], inputs_[j])) {
        sources[i] = inputs[i].clone(on);
        break;
      }
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (moves(i)) copy_(inputs_[i], sources[i], {}, on);
  graph_.replay(on);
  return outputs_;
}

}}  // namespace clutch::v0
