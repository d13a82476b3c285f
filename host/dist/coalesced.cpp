// SPDX-License-Identifier: Apache-2.0
// Collectives of lists of tensors, in one message.
#include "dist/group_calls.hpp"

#include <clutch/foreach.hpp>
#include <clutch/storage.hpp>

#include <utility>

namespace clutch { inline namespace v0 { namespace dist {

using namespace detail;

namespace {

using Tensors = std::span<const Tensor>;

/// The call's stream, and what is copied to and from messages on it.
class Messages {
 public:
  Messages(const GroupCalls& call, Tensors tensors, const CallOptions& options) : call_(call), options_(options) {
    call.check(!tensors.empty(), ErrorCode::invalid_argument, "the list of tensors must have one or more, got none");
    call.check(BatchState::of(call.impl()) == nullptr, ErrorCode::invalid_argument,
               "calls of lists of tensors must be made outside a Batch, as they are one message already, got one in a Batch");
    first_ = tensors[0];
    call.check_tensor(first_, "each tensor");
    const Stream asked = options.stream.empty() ? current_stream(first_.device()) : options.stream;
    stream_ = options.async ? call.impl().stream_behind(asked) : asked;
  }

  void check(const Tensor& tensor) const {
    call_.check_tensor(tensor, "each tensor");
    call_.check(tensor.dtype() == first_.dtype(), ErrorCode::invalid_dtype, "tensors must be of one dtype, {}, got {}", clutch::name(first_.dtype()),
                clutch::name(tensor.dtype()));
    call_.check(tensor.device() == first_.device(), ErrorCode::device_mismatch, "tensors must be on one device, got one on another");
    call_.check(!is_packed(tensor.dtype()), ErrorCode::invalid_dtype, "the dtype of lists of tensors must have whole bytes, got {}",
                clutch::name(tensor.dtype()));
  }
  void check_pairs(Tensors outs, Tensors ins) const {
    call_.check(outs.size() == ins.size(), ErrorCode::invalid_argument, "there must be as many outs as inputs, {}, got {}", ins.size(), outs.size());
    for (const Tensors list : {outs, ins})
      for (const Tensor& x : list) check(x);
  }

  Tensor message(std::int64_t elements) const { return clutch::empty({elements}, {.dtype = first_.dtype(), .device = first_.device()}, stream_); }
  /// Copies blocks: of each message as many as there are ranks in `blocks`, each with a part of each tensor.
  enum class Way : std::uint8_t { to_message, from_message };
  void copy(const Tensor& message, Tensors tensors, std::int64_t blocks, Way way) const {
    std::vector<Tensor> dense, parts, places;
    for (const Tensor& x : tensors)
      dense.push_back(way == Way::to_message ? x.contiguous(stream_)
                      : x.is_contiguous()    ? x
                                             : clutch::empty(x.sizes(), {.dtype = x.dtype(), .device = x.device()}, stream_));
    std::int64_t at = 0;
    for (std::int64_t block = 0; block < blocks; ++block)
      for (const Tensor& x : dense) {
        const std::int64_t part = x.numel() / blocks;
        if (part > 0) parts.push_back(bits(flat(x).slice(0, block * part, (block + 1) * part))), places.push_back(bits(message.slice(0, at, at + part)));
        at += part;
      }
    if (way == Way::from_message) std::swap(parts, places);
    foreach_map_out(
        places, [](const Expr& x) { return x; }, {Tensors(parts)}, {}, stream_);
    if (way == Way::from_message)
      for (std::size_t i = 0; i < tensors.size(); ++i)
        if (!tensors[i].is_contiguous()) copy_(tensors[i], dense[i], {}, stream_);
  }

  /// `f` makes the call on the message, `finish` copies from it.
  template <class Options, class F, class Finish>
  Work run(Options options, F&& f, Finish&& finish) const {
    options.stream = stream_, options.async = false;
    const Work work = f(options);
    const auto& state = CallState::of(work);
    try {
      finish();
      if (options_.async) state->event.record(stream_);
    } catch (const Error&) {
      // The call itself has failed already, which its Work tells.
      const std::lock_guard lock(state->mutex);
      if (!state->error) throw;
    }
    return work;
  }

 private:
  /// A contiguous tensor as integers.
  static Tensor bits(const Tensor& x) {
    const std::uint64_t bytes = bytes_for(x.dtype(), 1);
    const DType dtype = bytes == 1 ? DType::u8 : bytes == 2 ? DType::i16 : bytes == 4 ? DType::i32 : DType::i64;
    return StorageHandle(x).view({static_cast<std::int64_t>(x.nbytes() / bytes_for(dtype, 1))}, dtype, x.byte_offset());
  }

  const GroupCalls& call_;
  const CallOptions options_;
  Tensor first_;
  Stream stream_;
};

std::int64_t numel_of(Tensors tensors) {
  std::int64_t sum = 0;
  for (const Tensor& x : tensors) sum += x.numel();
  return sum;
}

/// Functions of elements do not see that these are in a message.
void check_functions(const GroupCalls& call, const ReduceOptions& options, const Tensor& message) {
  call.check(ElementFunctions(options, message).are_pointwise(), ErrorCode::invalid_argument,
             "functions of lists of tensors must have no captured tensors, positions or random numbers, got one that has");
}

}  // namespace

Work Group::all_reduce_coalesced_(std::span<const Tensor> tensors, const ReduceOptions& options) const {
  const GroupCalls call{"dist::Group::all_reduce_coalesced_", *this};
  return named(call.op, [&] {
    const Messages messages(call, tensors, GroupCalls::of(options));
    for (const Tensor& x : tensors) messages.check(x);
    const Tensor message = messages.message(numel_of(tensors));
    check_functions(call, options, message);
    messages.copy(message, tensors, 1, Messages::Way::to_message);
    return messages.run(
        options, [&](const ReduceOptions& o) { return all_reduce_(message, o); }, [&] { messages.copy(message, tensors, 1, Messages::Way::from_message); });
  });
}

Work Group::reduce_scatter_coalesced_out(std::span<const Tensor> outs, std::span<const Tensor> ins, const ReduceOptions& options) const {
  const GroupCalls call{"dist::Group::reduce_scatter_coalesced_out", *this};
  return named(call.op, [&] {
    const Messages messages(call, ins, GroupCalls::of(options));
    messages.check_pairs(outs, ins);
    for (std::size_t i = 0; i < ins.size(); ++i) call.check_numel(ins[i], outs[i].numel() * size(), "each input");
    const Tensor given = messages.message(numel_of(ins)), taken = messages.message(numel_of(outs));
    check_functions(call, options, given);
    messages.copy(given, ins, size(), Messages::Way::to_message);
    return messages.run(
        options, [&](const ReduceOptions& o) { return reduce_scatter_out(taken, given, o); },
        [&] { messages.copy(taken, outs, 1, Messages::Way::from_message); });
  });
}

Work Group::all_gather_coalesced_out(std::span<const Tensor> outs, std::span<const Tensor> ins, const CallOptions& options) const {
  const GroupCalls call{"dist::Group::all_gather_coalesced_out", *this};
  return named(call.op, [&] {
    const Messages messages(call, ins, options);
    messages.check_pairs(outs, ins);
    for (std::size_t i = 0; i < ins.size(); ++i) call.check_numel(outs[i], ins[i].numel() * size(), "each out");
    const Tensor given = messages.message(numel_of(ins)), taken = messages.message(numel_of(outs));
    messages.copy(given, ins, 1, Messages::Way::to_message);
    return messages.run(
        options, [&](const CallOptions& o) { return all_gather_out(taken, given, o); },
        [&] { messages.copy(taken, outs, size(), Messages::Way::from_message); });
  });
}

}}}  // namespace clutch::v0::dist
