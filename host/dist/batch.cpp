// SPDX-License-Identifier: Apache-2.0
#include "dist/batch.hpp"
#include "dist/group.hpp"

#include <fmt/format.h>
#include <clutch/kernel.hpp>

#include <algorithm>
#include <atomic>
#include <utility>

namespace clutch { inline namespace v0 { namespace dist {

namespace detail {

namespace {
thread_local std::vector<BatchState*> t_batches;
}  // namespace

BatchState* BatchState::of(const GroupImpl& group) noexcept {
  for (BatchState* batch : t_batches)
    if (batch->group.impl().get() == &group) return batch;
  return nullptr;
}

BatchState::BatchState(const Group& made_of, const CallOptions& options)
    : group(made_of), async(options.async), asked(options.stream.empty() ? current_stream() : options.stream), stream(asked) {
  if (async) stream = group.impl()->stream_for(asked.device());
  t_batches.push_back(this);
}
BatchState::~BatchState() { std::erase(t_batches, this); }

namespace {

/// Lets `all` end when all of these calls have, with the error of the first in their order.
void join(const std::shared_ptr<CallState>& all, const std::vector<Work>& calls) {
  const auto left = std::make_shared<std::atomic<std::size_t>>(calls.size());
  for (const Work& call : calls)
    call.on_done([all, left, calls](Work::Status) {
      if (--*left > 0) return;
      for (const Work& each : calls)
        if (const Work::Status status = each.status(); status != Work::Status::done) return all->end(status, CallState::of(each)->failure());
      all->end(Work::Status::done, std::nullopt);
    });
}

/// Of simulated ranks: who waits for all of them waits for each.
void note_calls(CallState& all, const std::vector<Work>& calls) {
  all.deeds.clear();
  for (const Work& call : calls) {
    const CallState& state = *CallState::of(call);
    all.simulated = state.simulated;
    all.deeds.insert(all.deeds.end(), state.deeds.begin(), state.deeds.end());
  }
}

}  // namespace

Work BatchState::end() {
  is_open = false;
  std::erase(t_batches, this);
  if (calls.empty()) return {};
  if (async) {
    // What the caller's stream was given until now, for the calls, too.
    Event before;
    before.record(asked);
    stream.wait(before);
  }
  std::vector<Tensor> inputs, outputs;
  for (const BatchCall& call : calls) {
    inputs.insert(inputs.end(), call.inputs.begin(), call.inputs.end());
    outputs.insert(outputs.end(), call.outputs.begin(), call.outputs.end());
  }
  struct Start {
    StartCall start;
    std::vector<std::size_t> input_bytes, output_bytes;
  };
  std::vector<Start> starts;
  auto bytes_of = [](const std::vector<Tensor>& tensors) {
    std::vector<std::size_t> bytes;
    for (const Tensor& x : tensors) bytes.push_back(x.nbytes());
    return bytes;
  };
  for (const BatchCall& call : calls) starts.push_back({call.start, bytes_of(call.inputs), bytes_of(call.outputs)});
  std::vector<Work> works;
  for (const BatchCall& call : calls) works.emplace_back(call.state);
  const auto all = std::make_shared<CallState>();
  all->stream = stream;
  auto task = [starts, works, all, is_async = async, inputs_in_all = inputs.size(), group = group.impl()](void* queue, std::span<const Encoder::Place> given) {
    auto* const of = static_cast<cl_command_queue>(queue);
    const auto place = std::make_shared<DeviceLink>(of, group->beside(of), false);
    // Once more at each replay.
    all->begin_again();
    for (const Work& work : works) CallState::of(work)->begin_again();
    join(all, works);
    std::size_t input = 0, output = inputs_in_all;
    for (const Start& call : starts) {
      std::vector<DevicePlace> places;
      for (const std::size_t bytes : call.input_bytes) places.push_back({static_cast<cl_mem>(given[input].mem), given[input].offset, bytes}), ++input;
      for (const std::size_t bytes : call.output_bytes) places.push_back({static_cast<cl_mem>(given[output].mem), given[output].offset, bytes}), ++output;
      Progress::instance().add(call.start(DeviceLink::at_place_of(*place), places));
    }
    note_calls(*all, works);
    if (!is_async) all->note_wait();
    place->end();
  };
  Encoder(stream, "dist::Batch").opaque(task, inputs, outputs, fmt::format("{} calls", calls.size()));
  for (const BatchCall& call : calls)
    if (call.finish) call.finish(stream);
  if (async) all->event.record(stream);
  return Work(all);
}

Work joined(const std::vector<Work>& calls) {
  const auto all = std::make_shared<CallState>();
  const CallState& last = *CallState::of(calls.back());
  all->stream = last.stream, all->event = last.event, all->sequence = last.sequence;
  note_calls(*all, calls);
  join(all, calls);
  return Work(all);
}

}  // namespace detail

Batch::Batch(const Group& group, const CallOptions& options) {
  constexpr const char* kOp = "dist::Batch";
  if (group.empty()) throw Error(ErrorCode::invalid_argument, kOp, "the Group must be one that was opened, got an empty one");
  if (options.algorithm != Algorithm::automatic)
    throw Error(ErrorCode::invalid_argument, kOp, "the algorithm must be the automatic one, as the calls choose theirs, got another");
  if (detail::BatchState::of(*group.impl()) != nullptr)
    throw Error(ErrorCode::invalid_argument, kOp, "a thread must end a Batch of the group before the next, got one that is open");
  state_ = std::make_unique<detail::BatchState>(group, options);
}

Batch::~Batch() {
  if (!state_->is_open) return;
  try {
    (void)state_->end();
  } catch (const Error&) {
    // A stream that has failed says so to whom uses it next.
  }
}

Work Batch::end() {
  if (!state_->is_open) throw Error(ErrorCode::invalid_argument, "dist::Batch::end", "a Batch must be ended once, got one that has ended");
  return state_->end();
}

}}}  // namespace clutch::v0::dist
