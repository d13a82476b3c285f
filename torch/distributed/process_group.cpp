// SPDX-License-Identifier: Apache-2.0
#include "distributed/process_group.hpp"

#include "distributed/place.hpp"
#include "runtime/convert.hpp"
#include "runtime/device.hpp"
#include "runtime/error.hpp"
#include "runtime/stream.hpp"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>
#include <c10/core/StreamGuard.h>
#include <clutch/interop_cl.hpp>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace torch_clutch {

namespace dist = clutch::dist;
using Status = dist::Work::Status;

namespace {

bool has_ended(Status status) { return status != Status::waiting && status != Status::running; }
bool has_failed(Status status) { return status == Status::failed || status == Status::timed_out; }

bool must_block() {
  const char* const wish = std::getenv("TORCH_CLUTCH_BLOCKING_WAIT");
  return wish != nullptr && std::string_view(wish) == "1";
}

/// The device of all these tensors.
c10::Device device_of(at::TensorList tensors, const char* what) {
  TORCH_CHECK_VALUE(!tensors.empty(), "clutch: ", what, " must have a tensor, got none");
  for (const at::Tensor& tensor : tensors) {
    TORCH_CHECK_VALUE(tensor.defined(), "clutch: ", what, " must be defined, got an undefined tensor");
    TORCH_CHECK_VALUE(tensor.layout() == c10::kStrided, "clutch: ", what, " must be dense, got a tensor of layout ", tensor.layout());
    TORCH_CHECK_VALUE(tensor.device().type() == kDevice && tensor.device() == tensors[0].device(), "clutch: ", what,
                      " must be on one device of clutch, got one on ", tensors[0].device(), " and one on ", tensor.device());
  }
  return tensors[0].device();
}
at::Tensor& one(std::vector<at::Tensor>& tensors, const char* what) {
  TORCH_CHECK_VALUE(tensors.size() == 1, "clutch: ", what, " must be one tensor, got ", tensors.size());
  return tensors[0];
}
std::vector<at::Tensor>& one(std::vector<std::vector<at::Tensor>>& lists, const char* what) {
  TORCH_CHECK_VALUE(lists.size() == 1, "clutch: ", what, " must be one list of tensors, got ", lists.size());
  return lists[0];
}
void check_dtype(const at::Tensor& tensor, const at::Tensor& of, const char* what) {
  TORCH_CHECK_TYPE(tensor.scalar_type() == of.scalar_type(), "clutch: ", what, " must be ", of.scalar_type(), " as the other tensors are, got ",
                   tensor.scalar_type());
}

/// A tensor that is written. Contiguous ones in one dimension, of which clutch has up to 12.
clutch::Tensor written(const at::Tensor& tensor, Elements elements = Elements::bits) {
  own_memory(tensor);
  return wrap(tensor.is_contiguous() ? tensor.view(-1) : tensor, elements);
}
/// One that is read.
clutch::Tensor read(const at::Tensor& tensor, Elements elements = Elements::bits) { return written(tensor.resolve_conj().resolve_neg(), elements); }

at::Tensor flat(at::TensorList tensors) {
  std::vector<at::Tensor> rows;
  for (const at::Tensor& tensor : tensors) rows.push_back(tensor.reshape(-1));
  return at::cat(rows);
}
/// Cuts a tensor of one dimension into these.
void cut(const at::Tensor& from, at::TensorList into) {
  int64_t begin = 0;
  for (const at::Tensor& tensor : into) {
    tensor.copy_(from.narrow(0, begin, tensor.numel()).view(tensor.sizes()));
    begin += tensor.numel();
  }
}
std::vector<int64_t> numels(at::TensorList tensors) {
  std::vector<int64_t> all;
  for (const at::Tensor& tensor : tensors) all.push_back(tensor.numel());
  return all;
}
int64_t sum(const std::vector<int64_t>& numbers) {
  int64_t total = 0;
  for (int64_t n : numbers) total += n;
  return total;
}
bool all_are(const std::vector<int64_t>& numbers, int64_t wanted) {
  return std::all_of(numbers.begin(), numbers.end(), [&](int64_t n) { return n == wanted; });
}
bool of_one_dtype(at::TensorList tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [&](const at::Tensor& t) { return t.scalar_type() == tensors[0].scalar_type(); });
}
/// `in` n times as long as `out`, or the other way round.
bool have_ratio(at::TensorList longer, at::TensorList shorter, int64_t ranks) {
  for (size_t i = 0; i < longer.size(); ++i)
    if (longer[i].numel() != ranks * shorter[i].numel()) return false;
  return true;
}

std::vector<at::Tensor> joined(at::TensorList a, at::TensorList b) {
  std::vector<at::Tensor> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

dist::ReduceOptions reduction(const c10d::ReduceOp& op, const dist::CallOptions& call) {
  dist::ReduceOptions made{.stream = call.stream, .timeout = call.timeout, .where = call.where};
  switch (op.op_) {
    case c10d::ReduceOp::SUM: made.op = dist::ReduceOp::sum; break;
    case c10d::ReduceOp::AVG: made.op = dist::ReduceOp::avg; break;
    case c10d::ReduceOp::PRODUCT: made.op = dist::ReduceOp::prod; break;
    case c10d::ReduceOp::MIN: made.op = dist::ReduceOp::min; break;
    case c10d::ReduceOp::MAX: made.op = dist::ReduceOp::max; break;
    case c10d::ReduceOp::BAND: made.op = dist::ReduceOp::band; break;
    case c10d::ReduceOp::BOR: made.op = dist::ReduceOp::bor; break;
    case c10d::ReduceOp::BXOR: made.op = dist::ReduceOp::bxor; break;
    case c10d::ReduceOp::PREMUL_SUM: {
      made.op = dist::ReduceOp::premul_sum;
      const auto* by = static_cast<const c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
      TORCH_CHECK_VALUE(by != nullptr, "clutch: PREMUL_SUM must have a factor (torch.distributed._make_nccl_premul_sum), got none");
      made.factor = by->tensor_factor.defined() ? by->tensor_factor.item().toDouble() : by->double_factor;
      break;
    }
    default: TORCH_CHECK_VALUE(false, "clutch: the reduction must be one of SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM, got ", int(op.op_));
  }
  return made;
}

}  // namespace

// Work

WorkClutch::WorkClutch(int rank, c10d::OpType type, std::vector<Call> calls, std::vector<at::Tensor> outputs, bool blocks)
    : c10d::Work(rank, type), calls_(std::move(calls)), outputs_(std::move(outputs)), blocks_(blocks) {}

Status WorkClutch::status() const {
  Status all = Status::done;
  for (const Call& call : calls_) {
    const Status one = call.work.status();
    if (has_failed(one)) return one;
    if (!has_ended(one)) all = one;
  }
  return all;
}

bool WorkClutch::isCompleted() { return has_ended(status()); }
bool WorkClutch::isSuccess() const { return status() == Status::done; }

void WorkClutch::finish(const Call& call, std::chrono::milliseconds timeout) {
  translated([&] {
    try {
      call.work.synchronize(timeout);
    } catch (const clutch::Error&) {
      // Who is told needs no stream that fails, too.
      if (call.is_beside && has_failed(call.work.status())) call.stream.reset();
      throw;
    }
    call.stream.synchronize();
  });
}

void WorkClutch::throw_if_failed() const {
  for (const Call& call : calls_)
    if (has_failed(call.work.status())) finish(call);
}

std::exception_ptr WorkClutch::exception() const {
  try {
    throw_if_failed();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

int WorkClutch::sourceRank() const {
  return translated([&] { return calls_.at(0).work.source(); });
}

bool WorkClutch::wait(std::chrono::milliseconds timeout) {
  throw_if_failed();
  if (blocks_ || timeout > kNoTimeout)
    for (const Call& call : calls_) finish(call, std::max(timeout, kNoTimeout));
  blockCurrentStream();
  return true;
}

void WorkClutch::blockCurrentStream() {
  translated([&] {
    for (const Call& call : calls_) {
      const clutch::Stream current = clutch::current_stream(call.stream.device());
      if (!call.is_beside || call.stream == current) continue;
      call.work.wait(current);
      current.wait(call.done);
    }
  });
}

void WorkClutch::abort() {
  TORCH_CHECK(false, "clutch: a call alone cannot be given up; torch.distributed.distributed_c10d._abort_process_group() gives up its group");
}

c10::intrusive_ptr<c10::ivalue::Future> WorkClutch::getFuture() {
  std::lock_guard lock(future_mutex_);
  if (future_) return future_;
  std::vector<c10::Device> devices;
  for (const at::Tensor& output : outputs_)
    if (std::find(devices.begin(), devices.end(), output.device()) == devices.end()) devices.push_back(output.device());
  auto made = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()), devices);
  if (std::exception_ptr failure = exception()) {
    made->setError(failure);
    return future_ = std::move(made);
  }
  translated([&] {
    std::optional<c10::StreamGuard> guard;
    if (!calls_.empty()) {
      const clutch::Stream& stream = calls_[0].stream;
      for (const Call& call : calls_)
        if (call.stream != stream) stream.wait(call.done);
      guard.emplace(stream_named(stream, static_cast<c10::DeviceIndex>(stream.device().index())));
    }
    made->markCompleted(c10::IValue(outputs_));
  });
  return future_ = std::move(made);
}

c10::intrusive_ptr<c10::ivalue::Future> WorkClutch::getFutureResult() {
  auto made = c10::make_intrusive<c10::ivalue::Future>(c10::IntType::get());
  struct Left {
    std::atomic<size_t> calls;
    std::atomic<int64_t> result{static_cast<int64_t>(c10d::WorkResult::SUCCESS)};
  };
  auto left = std::make_shared<Left>();
  left->calls = calls_.size();
  if (calls_.empty()) made->markCompleted(c10::IValue(left->result.load()));
  for (const Call& call : calls_)
    call.work.on_done([made, left](Status status) {
      if (has_failed(status)) left->result = static_cast<int64_t>(status == Status::timed_out ? c10d::WorkResult::TIMEOUT : c10d::WorkResult::COMM_ERROR);
      if (left->calls.fetch_sub(1) == 1) made->markCompleted(c10::IValue(left->result.load()));
    });
  return made;
}

float WorkClutch::getDuration() const {
  return translated([&] {
    double longest = 0;
    for (const Call& call : calls_) longest = std::max(longest, call.work.milliseconds());
    return static_cast<float>(longest);
  });
}

uint64_t WorkClutch::getSequencenumber() const { return calls_.empty() ? 0 : calls_[0].work.sequence(); }

// Group

ProcessGroupClutch::ProcessGroupClutch(dist::Group group, c10::intrusive_ptr<c10d::Backend::Options> options)
    : c10d::Backend(group.rank(), group.size()), group_(std::move(group)), options_(std::move(options)), blocks_(must_block()) {
  if (options_->timeout.count() > 0) group_.set_timeout(options_->timeout);
  init();
}

void ProcessGroupClutch::setTimeout(std::chrono::milliseconds timeout) {
  translated([&] { group_.set_timeout(timeout); });
  options_->timeout = timeout;
}

c10d::ErrorType ProcessGroupClutch::getError() { return group_.failed() ? c10d::ErrorType::COMM_ERROR : c10d::ErrorType::SUCCESS; }

void ProcessGroupClutch::abort() {
  translated([&] { group_.abort("torch.distributed aborted the group"); });
}

c10::intrusive_ptr<c10d::Backend> ProcessGroupClutch::split(const c10::intrusive_ptr<c10d::Store>&, const std::vector<int>& ranks,
                                                            const c10::intrusive_ptr<c10d::Backend::Options>& options) {
  if (std::find(ranks.begin(), ranks.end(), getRank()) == ranks.end()) return nullptr;
  return translated([&]() -> c10::intrusive_ptr<c10d::Backend> {
    auto made = c10::make_intrusive<Options>(options->timeout);
    made->group_name = options->group_name;
    for (int rank : ranks) made->global_ranks_in_group.push_back(static_cast<uint64_t>(group_.global_ranks()[static_cast<size_t>(rank)]));
    return c10::make_intrusive<ProcessGroupClutch>(group_.subgroup(ranks, options->group_name), std::move(made));
  });
}

void ProcessGroupClutch::startCoalescing() {
  std::lock_guard lock(mutex_);
  TORCH_CHECK(!coalesces_, "clutch: the calls of one block must be ended before those of another are begun, got a block within a block");
  coalesces_ = true;
}

c10::intrusive_ptr<c10d::Work> ProcessGroupClutch::endCoalescing() {
  std::lock_guard lock(mutex_);
  TORCH_CHECK(coalesces_, "clutch: a block of calls must be begun before it is ended, got an end alone");
  coalesces_ = false;
  for (auto& [tag, line] : lines_) {
    const size_t left = std::exchange(line.receiving, {}).size();
    TORCH_CHECK_VALUE(left == 0, "clutch: a block of calls must send what it receives of its own rank, got ", left, " receives more with tag ", tag);
  }
  return c10::make_intrusive<WorkClutch>(getRank(), c10d::OpType::COALESCED, std::exchange(coalesced_, {}), std::exchange(coalesced_outputs_, {}), blocks_);
}

clutch::Stream ProcessGroupClutch::stream_beside(const clutch::Stream& current) {
  clutch::Stream found;
  {
    std::lock_guard lock(mutex_);
    std::erase_if(streams_, [](const clutch::Stream& stream) { return clutch::interop::failed(stream); });
    // Calls on one stream would wait for each other, which messages between ranks must not.
    for (const clutch::Stream& stream : streams_)
      if (stream.device() == current.device() && clutch::interop::idle(stream)) found = stream;
    if (found.empty()) found = streams_.emplace_back(current.device());
  }
  if (!clutch::interop::idle(current)) {
    clutch::Event before;
    before.record(current);
    found.wait(before);
  }
  return found;
}

template <class F>
c10::intrusive_ptr<c10d::Work> ProcessGroupClutch::run(const Asked& asked, c10::Device device, std::vector<at::Tensor> outputs, F&& make) {
  RECORD_FUNCTION(asked.name, std::vector<c10::IValue>{});
  at::NoGradGuard no_grad;
  at::AutoDispatchBelowADInplaceOrView below;
  return translated([&]() -> c10::intrusive_ptr<c10d::Work> {
    const clutch::Stream current = clutch::current_stream(torch_clutch::device(or_current(device.index())));
    // A capture has one order. Of a stream that has failed the call itself tells the other ranks.
    const bool is_beside = (asked.async || asked.blocks || blocks_) && !current.is_capturing() && !clutch::interop::failed(current);
    const clutch::Stream stream = is_beside ? stream_beside(current) : current;
    const c10::StreamGuard guard(stream_named(stream, or_current(device.index())));
    dist::CallOptions options{.stream = stream, .where = place_in_python()};
    if (asked.timeout.count() > 0) options.timeout = asked.timeout;
    std::vector<WorkClutch::Call> calls;
    for (dist::Work& work : make(options)) calls.push_back({.work = std::move(work), .stream = stream, .is_beside = is_beside, .done = {}});
    ++calls_made_;
    if (is_beside && !calls.empty()) {
      clutch::Event done;
      try {
        done.record(stream);
      } catch (const clutch::Error&) {
        // The stream has failed with the call, which tells it by its Work.
        if (!clutch::interop::failed(stream)) throw;
      }
      for (WorkClutch::Call& call : calls) call.done = done;
    }
    {
      std::lock_guard lock(mutex_);
      if (coalesces_) {
        coalesced_.insert(coalesced_.end(), calls.begin(), calls.end());
        coalesced_outputs_.insert(coalesced_outputs_.end(), outputs.begin(), outputs.end());
      }
    }
    return c10::make_intrusive<WorkClutch>(getRank(), asked.type, std::move(calls), std::move(outputs), (blocks_ || asked.blocks) && !current.is_capturing());
  });
}

void ProcessGroupClutch::check_root(int64_t root) const {
  TORCH_CHECK_VALUE(root >= 0 && root < getSize(), "clutch: the root must be a rank below ", getSize(), ", got ", root);
}

void ProcessGroupClutch::check_list(size_t tensors, const char* what) const {
  TORCH_CHECK_VALUE(static_cast<int>(tensors) == getSize(), "clutch: ", what, " must be a tensor for each of ", getSize(), " ranks, got ", tensors);
}

// Collectives

c10::intrusive_ptr<c10d::Work> ProcessGroupClutch::broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) {
  check_root(options.rootRank);
  const at::Tensor& tensor = one(tensors, "what is broadcast");
  return run({c10d::OpType::BROADCAST, "clutch:broadcast", options.timeout, options.asyncOp}, device_of(tensors, "what is broadcast"), tensors,
             [&](const dist::CallOptions& call) { return Calls{group_.broadcast_(written(tensor), static_cast<int>(options.rootRank), call)}; });
}

c10::intrusive_ptr<c10d::Work> ProcessGroupClutch::allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) {
  const at::Tensor& tensor = one(tensors, "what is reduced");
  return run({c10d::OpType::ALLREDUCE, "clutch:all_reduce", options.timeout, options.asyncOp}, device_of(tensors, "what is reduced"), tensors,
             [&](const dist::CallOptions& call) { return Calls{group_.all_reduce_(written(tensor, Elements::numbers), reduction(options.reduceOp, call))}; });
}

c10::intrusive_ptr<c10d::Work> ProcessGroupClutch::allreduce_coalesced(std::vector<at::Tensor>& tensors, const c10d::AllreduceCoalescedOptions& options) {
  const Asked asked{c10d::OpType::ALLREDUCE_COALESCED, "clutch:all_reduce_coalesced", options.timeout, options.asyncOp};
  return run(asked, device_of(tensors, "what is reduced"), tensors, [&](const dist::CallOptions& call) {
    const dist::ReduceOptions reduce = reduction(options.reduceOp, call);
    Calls calls;
    if (tensors.size() > 1 && of_one_dtype(tensors)) {
      const at::Tensor all = flat(tensors);
      calls.push_back(group_.all_reduce_(written(all, Elements::numbers), reduce));
      cut(all, tensors);
      return calls;
    }
    for (const at::Tensor& tensor : tensors) calls.push_back(group_.all_reduce_(written(tensor, Elements::numbers), reduce));
    return calls;
  });
}

c10::intrusive_ptr<c10d::Work> ProcessGroupClutch::reduce(std::vector<at::Tensor>& tensors, const c10d::ReduceOptions& options) {
  check_root(options.rootRank);
  const at::Tensor& tensor = one(tensors, "what is reduced");
  return run({c10d::OpType::REDUCE, "clutch:reduce", options.timeout, options.asyncOp}, device_of(tensors, "what is reduced"), tensors,
             [&](const dist::CallOptions& call) {
               return Calls{group_.reduce_(written(tensor, Elements::numbers), static_cast<int>(options.rootRank), reduction(options.reduceOp, call))};
             });
}

c10::intrusive_ptr<c10d::Work> ProcessGroupClutch::allgather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                                                             const c10d::AllgatherOptions& options) {
  std::vector<at::Tensor>& out = one(outputs, "the outputs");
  const at::Tensor& in = one(inputs, "the input");
  check_list(out.size(), "the outputs");
  const c10::Device device = device_of(joined(inputs, out), "tensors that are gathered");
  for (const at::Tensor& tensor : out) check_dtype(tensor, in, "an output");
  const std::vector<int64_t> rows = numels(out);
  const int64_t mine = rows[static_cast<size_t>(getRank())];
  TORCH_CHECK_VALUE(in.numel() == mine, "clutch: the output of this rank must have the input's ", in.numel(), " elements, got ", mine);
  return run({c10d::OpType::ALLGATHER, "clutch:all_gather", options.timeout, options.asyncOp}, device, out, [&](const dist::CallOptions& call) {
    const at::Tensor all = at::empty({sum(rows)}, in.options().memory_format(std::nullopt));
    Calls calls{all_are(rows, mine) ? group_.all_gather_out(written(all), read(in), call)
                                    : group_.all_gather_v_out(written(all), read(in.reshape(-1)), rows, call)};
    cut(all, out);
    return calls;
  });
}

c10::intrusive_ptr<c10d::Work> ProcessGroupClutch::_allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) {
  const c10::Device device = device_of({output, input}, "tensors that are gathered");
  check_dtype(output, input, "the output");
  TORCH_CHECK_VALUE(output.numel() == input.numel() * getSize(), "clutch: the output must have ", getSize(), " times the input's ", input.numel(),
                    " elements, got ", output.numel());
  return run({c10d::OpType::_ALLGATHER_BASE, "clutch:_all_gather_base", options.timeout, options.asyncOp}, device, {output},
             [&](const dist::CallOptions& call) { return Calls{group_.all_gather_out(written(output), read(input), call)}; });
}

c10::intrusive_ptr<c10d::Work> ProcessGroupClutch::allgather_into_tensor_coalesced(std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs,
                                                                                   const c10d::AllgatherOptions& options) {
  const int64_t ranks = getSize();
  TORCH_CHECK_VALUE(outputs.size() == inputs.size(), "clutch: outputs must be as many as the ", inputs.size(), " inputs, got ", outputs.size());
  const c10::Device device = device_of(joined(outputs, inputs), "tensors that are gathered");
  TORCH_CHECK_VALUE(have_ratio(outputs, inputs, ranks), "clutch: each output must have ", ranks, " times the elements of its input, got another number");
  const Asked asked{c10d::OpType::COALESCED, "clutch:all_gather_into_tensor_coalesced", options.timeout, options.asyncOp};
  return run(asked, device, outputs, [&](const dist::CallOptions& call) {
    Calls calls;
    if (inputs.size() > 1 && of_one_dtype(joined(outputs, inputs))) {
      const at::Tensor mine = flat(inputs), all = at::empty({ranks, mine.numel()}, mine.options());
      calls.push_back(group_.all_gather_out(written(all), read(mine), call));
      int64_t begin = 0;
      for (size_t i = 0; i < inputs.size(); begin += inputs[i++].numel()) outputs[i].copy_(all.narrow(1, begin, inputs[i].numel()).reshape(outputs[i].sizes()));
      return calls;
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      check_dtype(outputs[i], inputs[i], "an output");
      calls.push_back(group_.all_gather_out(written(outputs[i]), read(inputs[i]), call));
    }
    return calls;
  });
}

c10::intrusive_ptr<c10d::Work> ProcessGroupClutch::gather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                                                          const c10d::GatherOptions& options) {
  check_root(options.rootRank);
  const at::Tensor& in = one(inputs, "the input");
  const bool is_root = getRank() == options.rootRank;
  std::vector<at::Tensor> out;
  if (is_root) {
    out = one(outputs, "the outputs");
    check_list(out.size(), "the outputs");
    for (const at::Tensor& tensor : out) {
      check_dtype(tensor, in, "an output");
      TORCH_CHECK_VALUE(tensor.numel() == in.numel(), "clutch: each output must have the input's ", in.numel(), " elements, got ", tensor.numel());
    }
  } else {
    TORCH_CHECK_VALUE(outputs.empty() || (outputs.size() == 1 && outputs[0].empty()), "clutch: the outputs must be the root's alone, got some on rank ",
                      getRank());
  }
  return run({c10d::OpType::GATHER, "clutch:gather", options.timeout, options.asyncOp}, device_of(joined(inputs, out), "tensors that are gathered"), out,
             [&](const dist::CallOptions& call) {
               const at::Tensor all = is_root ? at::empty({in.numel() * getSize()}, in.options().memory_format(std::nullopt)) : at::Tensor();
               Calls calls{group_.gather_out(is_root ? written(all) : clutch::Tensor(), read(in), static_cast<int>(options.rootRank), call)};
               if (is_root) cut(all, out);
               return calls;
             });
}

c10::intrusive_ptr<c10d::Work> ProcessGroupClutch::scatter(std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& inputs,
                                                           const c10d::ScatterOptions& options) {
  check_root(options.rootRank);
  const at::Tensor& out = one(outputs, "the output");
  const bool is_root = getRank() == options.rootRank;
  std::vector<at::Tensor> in;
  if (is_root) {
    in = one(inputs, "the inputs");
    check_list(in.size(), "the inputs");
    for (const at::Tensor& tensor : in) {
      check_dtype(tensor, out, "an input");
      TORCH_CHECK_VALUE(tensor.numel() == out.numel(), "clutch: each input must have the output's ", out.numel(), " elements, got ", tensor.numel());
    }
  } else {
    TORCH_CHECK_VALUE(inputs.empty() || (inputs.size() == 1 && inputs[0].empty()), "clutch: the inputs must be the root's alone, got some on rank ", getRank());
  }
  return run({c10d::OpType::SCATTER, "clutch:scatter", options.timeout, options.asyncOp}, device_of(joined(outputs, in), "tensors that are scattered"), outputs,
             [&](const dist::CallOptions& call) {
               const clutch::Tensor all = is_root ? read(flat(in)) : clutch::Tensor();
               return Calls{group_.scatter_out(written(out), all, static_cast<int>(options.rootRank), call)};
             });
}

c10::intrusive_ptr<c10d::Work> ProcessGroupClutch::reduce_scatter(std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& inputs,
                                                                  const c10d::ReduceScatterOptions& options) {
  const at::Tensor& out = one(outputs, "the output");
  const std::vector<at::Tensor>& in = one(inputs, "the inputs");
  check_list(in.size(), "the inputs");
  const c10::Device device = device_of(joined(outputs, in), "tensors that are reduced");
  for (const at::Tensor& tensor : in) check_dtype(tensor, out, "an input");
  const std::vector<int64_t> rows = numels(in);
  const int64_t mine = rows[static_cast<size_t>(getRank())];
  TORCH_CHECK_VALUE(out.numel() == mine, "clutch: the output must have the ", mine, " elements of this rank's input, got ", out.numel());
  return run({c10d::OpType::REDUCE_SCATTER, "clutch:reduce_scatter", options.timeout, options.asyncOp}, device, outputs, [&](const dist::CallOptions& call) {
    const clutch::Tensor all = read(flat(in), Elements::numbers), to = written(out, Elements::numbers);
    const dist::ReduceOptions reduce = reduction(options.reduceOp, call);
    return Calls{all_are(rows, mine) ? group_.reduce_scatter_out(to, all, reduce) : group_.reduce_scatter_v_out(to, all, rows, reduce)};
  });
}

c10::intrusive_ptr<c10d::Work> ProcessGroupClutch::_reduce_scatter_base(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) {
  const c10::Device device = device_of({output, input}, "tensors that are reduced");
  check_dtype(output, input, "the output");
  TORCH_CHECK_VALUE(input.numel() == output.numel() * getSize(), "clutch: the input must have ", getSize(), " times the output's ", output.numel(),
                    " elements, got ", input.numel());
  return run({c10d::OpType::_REDUCE_SCATTER_BASE, "clutch:_reduce_scatter_base", options.timeout, options.asyncOp}, device, {output},
             [&](const dist::CallOptions& call) {
               return Calls{group_.reduce_scatter_out(written(output, Elements::numbers), read(input, Elements::numbers), reduction(options.reduceOp, call))};
             });
}

c10::intrusive_ptr<c10d::Work> ProcessGroupClutch::reduce_scatter_tensor_coalesced(std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs,
                                                                                   const c10d::ReduceScatterOptions& options) {
  const int64_t ranks = getSize();
  TORCH_CHECK_VALUE(outputs.size() == inputs.size(), "clutch: outputs must be as many as the ", inputs.size(), " inputs, got ", outputs.size());
  const c10::Device device = device_of(joined(outputs, inputs), "tensors that are reduced");
  TORCH_CHECK_VALUE(have_ratio(inputs, outputs, ranks), "clutch: each input must have ", ranks, " times the elements of its output, got another number");
  const Asked asked{c10d::OpType::REDUCE_SCATTER_TENSOR_COALESCED, "clutch:reduce_scatter_tensor_coalesced", options.timeout, options.asyncOp};
  return run(asked, device, outputs, [&](const dist::CallOptions& call) {
    const dist::ReduceOptions reduce = reduction(options.reduceOp, call);
    Calls calls;
    if (inputs.size() > 1 && of_one_dtype(joined(outputs, inputs))) {
      std::vector<at::Tensor> rows;
      for (const at::Tensor& input : inputs) rows.push_back(input.reshape({ranks, input.numel() / ranks}));
      const at::Tensor all = at::cat(rows, 1), mine = at::empty({all.size(1)}, all.options());
      calls.push_back(group_.reduce_scatter_out(written(mine, Elements::numbers), read(all, Elements::numbers), reduce));
      cut(mine, outputs);
      return calls;
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      check_dtype(outputs[i], inputs[i], "an output");
      calls.push_back(group_.reduce_scatter_out(written(outputs[i], Elements::numbers), read(inputs[i], Elements::numbers), reduce));
    }
    return calls;
  });
}

c10::intrusive_ptr<c10d::Work> ProcessGroupClutch::alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                                                                 std::vector<int64_t>& input_splits, const c10d::AllToAllOptions& options) {
  const c10::Device device = device_of({output, input}, "tensors that are exchanged");
  check_dtype(output, input, "the output");
  auto check_splits = [&](const at::Tensor& tensor, const std::vector<int64_t>& splits, const char* what) {
    TORCH_CHECK_VALUE(tensor.dim() > 0, "clutch: ", what, " must have a dimension, got a number");
    if (splits.empty()) {
      TORCH_CHECK_VALUE(tensor.size(0) % getSize() == 0, "clutch: the rows of ", what, " must be a multiple of ", getSize(),
                        " ranks where no splits are given, got ", tensor.size(0));
      return;
    }
    check_list(splits.size(), "the splits");
    TORCH_CHECK_VALUE(sum(splits) == tensor.size(0), "clutch: the splits of ", what, " must add up to its ", tensor.size(0), " rows, got ", sum(splits));
  };
  check_splits(output, output_splits, "the output"), check_splits(input, input_splits, "the input");
  return run({c10d::OpType::ALLTOALL_BASE, "clutch:all_to_all", options.timeout, options.asyncOp}, device, {output}, [&](const dist::CallOptions& call) {
    // Some ranks may give splits and others none.
    auto elements = [&](const at::Tensor& tensor, const std::vector<int64_t>& splits) {
      const int64_t row = tensor.size(0) == 0 ? 0 : tensor.numel() / tensor.size(0);
      std::vector<int64_t> all(static_cast<size_t>(getSize()), tensor.numel() / getSize());
      for (size_t r = 0; r < splits.size(); ++r) all[r] = splits[r] * row;
      return all;
    };
    const at::Tensor to = output.is_contiguous() ? output.view(-1) : at::empty({output.numel()}, output.options().memory_format(std::nullopt));
    Calls calls{group_.all_to_all_v_out(written(to), read(input.reshape(-1)), elements(output, output_splits), elements(input, input_splits), call)};
    if (!output.is_contiguous()) output.copy_(to.view(output.sizes()));
    return calls;
  });
}

c10::intrusive_ptr<c10d::Work> ProcessGroupClutch::alltoall(std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs,
                                                            const c10d::AllToAllOptions& options) {
  check_list(outputs.size(), "the outputs"), check_list(inputs.size(), "the inputs");
  const c10::Device device = device_of(joined(outputs, inputs), "tensors that are exchanged");
  for (const at::Tensor& tensor : joined(outputs, inputs)) check_dtype(tensor, inputs[0], "each tensor");
  return run({c10d::OpType::ALLTOALL, "clutch:all_to_all", options.timeout, options.asyncOp}, device, outputs, [&](const dist::CallOptions& call) {
    const std::vector<int64_t> out_rows = numels(outputs), in_rows = numels(inputs);
    const at::Tensor mine = flat(inputs), all = at::empty({sum(out_rows)}, mine.options());
    Calls calls{group_.all_to_all_v_out(written(all), read(mine), out_rows, in_rows, call)};
    cut(all, outputs);
    return calls;
  });
}

namespace {

void hand_over(const at::Tensor& from, const at::Tensor& to) {
  check_dtype(to, from, "what is received");
  TORCH_CHECK_VALUE(to.numel() == from.numel(), "clutch: what is received must have the ", from.numel(), " elements that were sent, got ", to.numel());
  to.copy_(from.reshape(to.sizes()));
}

}  // namespace

c10::intrusive_ptr<c10d::Work> ProcessGroupClutch::send_to_self(const at::Tensor& tensor, int tag) {
  return run({c10d::OpType::SEND, "clutch:send"}, tensor.device(), {}, [&](const dist::CallOptions& call) {
    Line& line = lines_[tag];
    if (line.receiving.empty()) {
      line.sent.push_back({tensor.clone(), {}});
      line.sent.back().done.record(call.stream);
    } else {
      hand_over(tensor, line.receiving.front());
      line.receiving.pop_front();
    }
    return Calls(1);
  });
}

c10::intrusive_ptr<c10d::Work> ProcessGroupClutch::receive_from_self(const at::Tensor& tensor, int tag) {
  return run({c10d::OpType::RECV, "clutch:recv"}, tensor.device(), {tensor}, [&](const dist::CallOptions& call) {
    Line& line = lines_[tag];
    if (line.sent.empty()) {
      TORCH_CHECK_VALUE(coalesces_,
                        "clutch: a message of a rank to itself must be sent before it is received, or within batch_isend_irecv(), got the receive first");
      line.receiving.push_back(tensor);
    } else {
      call.stream.wait(line.sent.front().done);
      hand_over(line.sent.front().copy, tensor);
      line.sent.pop_front();
    }
    return Calls(1);
  });
}

// Messages go on beside each other, whatever the caller waits for: two ranks may send to each other before either receives.
c10::intrusive_ptr<c10d::Work> ProcessGroupClutch::send(std::vector<at::Tensor>& tensors, int to, int tag) {
  const at::Tensor& tensor = one(tensors, "what is sent");
  if (to == getRank()) return device_of(tensors, "what is sent"), send_to_self(tensor, tag);
  return run({c10d::OpType::SEND, "clutch:send"}, device_of(tensors, "what is sent"), {},
             [&](const dist::CallOptions& call) { return Calls{group_.send(read(tensor), to, tag, call)}; });
}

c10::intrusive_ptr<c10d::Work> ProcessGroupClutch::recv(std::vector<at::Tensor>& tensors, int from, int tag) {
  const at::Tensor& tensor = one(tensors, "what is received");
  TORCH_CHECK_VALUE(from >= 0, "clutch: the source must be a rank, got ", from);
  if (from == getRank()) return device_of(tensors, "what is received"), receive_from_self(tensor, tag);
  return run({c10d::OpType::RECV, "clutch:recv"}, device_of(tensors, "what is received"), tensors,
             [&](const dist::CallOptions& call) { return Calls{group_.recv(written(tensor), from, tag, call)}; });
}

c10::intrusive_ptr<c10d::Work> ProcessGroupClutch::recvAnysource(std::vector<at::Tensor>& tensors, int tag) {
  const at::Tensor& tensor = one(tensors, "what is received");
  return run({.type = c10d::OpType::RECVANYSOURCE, .name = "clutch:recvAnysource", .blocks = true}, device_of(tensors, "what is received"), tensors,
             [&](const dist::CallOptions& call) { return Calls{group_.recv(written(tensor), dist::kAnyRank, tag, call)}; });
}

c10::intrusive_ptr<c10d::Work> ProcessGroupClutch::barrier(const c10d::BarrierOptions& options) {
  c10::Device device(kDevice, current_device());
  if (options.device && options.device->type() == kDevice && options.device->has_index())
    device = *options.device;
  else if (!options.device_ids.empty())
    device = c10::Device(kDevice, static_cast<c10::DeviceIndex>(options.device_ids[0]));
  return run({c10d::OpType::BARRIER, "clutch:barrier", options.timeout, true, true}, device, {},
             [&](const dist::CallOptions& call) { return Calls{group_.barrier(call)}; });
}

}  // namespace torch_clutch
