// SPDX-License-Identifier: Apache-2.0
// Checks calls of a group, and makes them of their arguments.
#pragma once
#include "dist/batch.hpp"
#include "dist/element_functions.hpp"
#include "dist/group.hpp"
#include "dist/hash.hpp"
#include "dist/model.hpp"
#include "dist/profiled.hpp"
#include "dist/symmetric.hpp"
#include "dist/task.hpp"

#include <fmt/format.h>
#include <clutch/interop_cl.hpp>
#include <clutch/kernel.hpp>
#include <clutch/ops/copy.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

inline std::int64_t total(std::span<const std::int64_t> rows) {
  std::int64_t sum = 0;
  for (const std::int64_t n : rows) sum += n;
  return sum;
}

inline std::uint64_t hash_of(std::span<const std::int64_t> rows) {
  Hash hash;
  for (const std::int64_t n : rows) hash.add(static_cast<std::uint64_t>(n));
  return hash.value();
}

/// True where both are views of one memory from the same byte on.
inline bool begin_alike(const Tensor& a, const Tensor& b) { return a.shares_storage(b) && a.byte_offset() == b.byte_offset(); }

/// What errors of other functions of the library are called by.
template <class F>
auto named(const char* op, F&& f) {
  try {
    return f();
  } catch (const Error& e) {
    // What failed on a stream before has its own name.
    if (e.code() == ErrorCode::stream_failed || e.code() == ErrorCode::device_lost) throw;
    throw Error(e.code(), op, e.message(), e.cl_code());
  }
}

struct CallShape {
  Collective collective;
  std::size_t elements = 0;  ///< of which all blocks of an all_reduce, reduce or broadcast are made
  std::size_t block = 0;     ///< of other collectives
  int root = -1;
};

/// Makes calls of their arguments.
struct GroupCalls {
  const char* op;
  const Group& group;

  GroupImpl& impl() const {
    if (group.empty()) throw Error(ErrorCode::invalid_argument, op, "the Group must be one that was opened, got an empty one");
    return *group.impl();
  }
  [[noreturn]] void refuse(ErrorCode code, const std::string& why) const { throw Error(code, op, why); }
  /// The text is made where it is needed alone: calls of few bytes take less time than texts.
  template <class... Args>
  void check(bool is_right, ErrorCode code, fmt::string_view why, const Args&... args) const {
    if (is_right) [[likely]]
      return;
    if constexpr (sizeof...(args) == 0)
      refuse(code, std::string(why.data(), why.size()));
    else
      refuse(code, fmt::vformat(why, fmt::make_format_args(args...)));
  }
  void check_usable() const {
    if (const std::optional<Error> failure = impl().failure())
      throw Error(ErrorCode::peer_failed, op, fmt::format("group '{}' has failed: {}", impl().name(), failure->message()));
  }
  void check_tensor(const Tensor& tensor, const char* what) const {
    check(tensor.defined(), ErrorCode::invalid_argument, "{} must be defined, got an undefined tensor", what);
  }
  void check_rank(int rank, const char* what) const {
    check(rank >= 0 && rank < impl().size(), ErrorCode::invalid_argument, "{} must be a rank below {}, got {}", what, impl().size(), rank);
  }
  /// Both tensors, where they are there, and that they fit each other.
  void check_pair(const Tensor& out, const Tensor& in) const {
    if (!out.defined() || !in.defined()) return;
    check(out.dtype() == in.dtype(), ErrorCode::invalid_dtype, "out must be {} as the input is, got {}", clutch::name(in.dtype()), clutch::name(out.dtype()));
    check(out.device() == in.device(), ErrorCode::device_mismatch, "out must be on the input's device, got another one");
  }
  void check_numel(const Tensor& tensor, std::int64_t wanted, const char* what) const {
    if (tensor.numel() != wanted)
      refuse(ErrorCode::invalid_shape, fmt::format("{} must have {} elements, got {} of shape {}", what, wanted, tensor.numel(), to_string(tensor.sizes())));
  }
  void check_rows(std::span<const std::int64_t> rows, const char* what) const {
    check(rows.size() == static_cast<std::size_t>(impl().size()), ErrorCode::invalid_argument, "{} must have an entry for each of {} ranks, got {}", what,
          impl().size(), rows.size());
    for (const std::int64_t n : rows) check(n >= 0, ErrorCode::invalid_argument, "{} must not be negative, got {}", what, n);
  }
  /// Elements of a row.
  std::int64_t row_of(const Tensor& tensor, std::int64_t rows, const char* what) const {
    if (tensor.rank() < 1 || tensor.size(0) != rows)
      refuse(ErrorCode::invalid_shape, fmt::format("{} must have {} rows, got shape {}", what, rows, to_string(tensor.sizes())));
    std::int64_t row = 1;
    for (int d = 1; d < tensor.rank(); ++d) row *= tensor.size(d);
    return row;
  }

  /// A plan whose blocks have whole bytes.
  std::shared_ptr<CallPlan> plan(CallKind kind, const Tensor& some, const CallOptions& options) const {
    check_usable();
    if (impl().simulated() != nullptr) impl().simulated()->check_is_there();
    auto plan = std::make_shared<CallPlan>();
    plan->op = op, plan->timeout = options.timeout;
    check(options.timeout.count() >= 0, ErrorCode::invalid_argument, "timeout must not be negative, got {} ms", options.timeout.count());
    plan->header.kind = kind;
    plan->header.set_place(options.where);
    plan->where = options.where;
    if (some.defined()) plan->header.dtype = some.dtype(), plan->shape.element = is_packed(some.dtype()) ? 1 : static_cast<std::size_t>(bits(some.dtype())) / 8;
    return plan;
  }
  /// Elements, or bytes of packed types.
  std::size_t units(const Tensor& some, std::int64_t elements) const {
    if (!is_packed(some.dtype())) return static_cast<std::size_t>(elements);
    check(elements * bits(some.dtype()) % 8 == 0, ErrorCode::invalid_shape, "each rank's elements of {} must fill whole bytes, got {}",
          clutch::name(some.dtype()), elements);
    return bytes_for(some.dtype(), static_cast<std::uint64_t>(elements));
  }

  /// True for a copy of so many bytes that ranks read it where it is.
  bool reads(const CallPlan& plan) const {
    const CallKind kind = plan.header.kind;
    const bool is_copy =
        kind == CallKind::all_gather || kind == CallKind::gather || kind == CallKind::scatter || kind == CallKind::broadcast || kind == CallKind::all_to_all;
    return is_copy && impl().reads_peers() && bytes_for(plan.header.dtype, plan.header.elements) > Board::kNumbers;
  }
  /// True where the board can do the call. Errors: invalid_argument where it is asked for and cannot.
  bool may_lay(const CallPlan& plan, Algorithm algorithm) const {
    if (algorithm != Algorithm::automatic && algorithm != Algorithm::board) return false;
    const CallKind kind = plan.header.kind;
    const bool is_even = kind == CallKind::all_reduce || kind == CallKind::reduce || kind == CallKind::reduce_scatter || kind == CallKind::all_gather ||
                         kind == CallKind::gather || kind == CallKind::scatter || kind == CallKind::broadcast || kind == CallKind::all_to_all;
    const bool has_board = impl().is_one_host();
    check((has_board && is_even) || algorithm == Algorithm::automatic, ErrorCode::invalid_argument,
          "Algorithm::board must have a call of a group of one host whose ranks have equal numbers of rows, got {}",
          has_board ? "one of different numbers" : "ranks of several hosts");
    return has_board && is_even;
  }
  Ways ways(bool board, Order order) const { return {.ranks = impl().size(), .one_host = impl().is_one_host(), .board = board, .ring = order == Order::any}; }
  /// How messages, or the board, do the call. The same on all ranks, as all that it depends on is.
  Method method_for(const CallPlan& plan, Collective collective, std::uint64_t bytes, Algorithm algorithm, Order order) const {
    const bool board = may_lay(plan, algorithm);
    if (algorithm != Algorithm::automatic) return board ? Method::board : method_of(algorithm);
    if (const auto machine = impl().machine())
      if (const std::optional<Choice> choice = fastest(*machine, collective, ways(board, order), static_cast<double>(bytes))) return choice->method;
    // Each rank reads all that the others have laid, and adds all.
    constexpr int kFewRanks = 4;
    const bool is_small = bytes_for(plan.header.dtype, plan.header.elements) <= Board::kNumbers;
    return board && (is_small || impl().size() <= kFewRanks || reads(plan)) ? Method::board : automatic(collective, impl().size(), bytes);
  }
  void choose(CallPlan& plan, const CallShape& shape, Algorithm algorithm, Order order = Order::canonical) const {
    const int n = impl().size();
    const bool is_whole = shape.collective == Collective::all_reduce || shape.collective == Collective::reduce || shape.collective == Collective::broadcast;
    const std::size_t bytes = (is_whole ? shape.elements : shape.block * static_cast<std::size_t>(n)) * plan.shape.element;
    const Method method = method_for(plan, shape.collective, bytes, algorithm, order);
    plan.header.method = method, plan.header.root = shape.root;
    if (method == Method::board) {
      plan.lays = true, plan.reads = reads(plan), plan.shape.block = shape.block;
      return;
    }
    check(algorithm != Algorithm::kernel, ErrorCode::invalid_argument,
          "Algorithm::kernel must have a call that it does in Symmetric memory (an all_reduce in place, reduce_scatter, all_gather, all_to_all, broadcast), "
          "got another");
    const Problem problem{.collective = shape.collective, .ranks = n, .root = std::max(shape.root, 0), .method = method};
    if (const std::string_view why = refusal(problem); !why.empty())
      refuse(ErrorCode::invalid_argument, fmt::format("the algorithm must do the call, got one that does not: {}", why));
    check(method != Method::ring || order == Order::any, ErrorCode::invalid_argument,
          "the order must be Order::any for the ring, whose sums are not the canonical ones, got Order::canonical");
    plan.schedule = std::make_shared<const Schedule>(schedule_of(problem, impl().rank()));
    plan.shape.block = is_whole ? block_of(shape.elements, plan.schedule->blocks) : shape.block;
    if (plan.reducer) plan.wide = plan.reducer->must_widen() && (method == Method::tree || method == Method::halving || method == Method::ring);
  }
  void reduce_by(CallPlan& plan, const ReduceOptions& options) const {
    const DType dtype = plan.header.dtype;
    if (const std::string why = reduction_refusal(dtype, options.op); !why.empty()) refuse(ErrorCode::invalid_dtype, why);
    plan.header.op = options.op, plan.header.factor = options.op == ReduceOp::premul_sum ? options.factor : 1;
    plan.reducer.emplace(Reduction{.dtype = dtype, .op = options.op, .factor = plan.header.factor, .ranks = impl().size()});
  }
  static CallOptions of(const ReduceOptions& o) {
    return {.stream = o.stream, .async = o.async, .timeout = o.timeout, .algorithm = o.algorithm, .where = o.where};
  }

  /// `block`: where the output, or the input, may be the own block of the other one: its first element; -1 where it may not.
  void check_overlap(const Tensor& out, const Tensor& in, bool may_be_one, std::int64_t block) const {
    if (!out.defined() || !in.defined() || !out.shares_storage(in) || out.numel() == 0 || in.numel() == 0) return;
    const bool is_same = begin_alike(out, in) && out.sizes() == in.sizes() && out.strides() == in.strides();
    if (is_same && may_be_one) return;
    if (!out.is_contiguous() || !in.is_contiguous())
      refuse(ErrorCode::invalid_overlap, "out must not share memory with the input unless both are contiguous, got strided ones");
    const std::uint64_t out_end = out.byte_offset() + out.nbytes(), in_end = in.byte_offset() + in.nbytes();
    if (out_end <= in.byte_offset() || in_end <= out.byte_offset()) return;
    const Tensor& large = out.numel() >= in.numel() ? out : in;
    const Tensor& small = out.numel() >= in.numel() ? in : out;
    if (block >= 0 && small.byte_offset() == large.byte_offset() + bytes_for(out.dtype(), static_cast<std::uint64_t>(block))) return;
    refuse(ErrorCode::invalid_overlap, "out must not overlap the input but as the contract says, got one that does");
  }

  /// The functions of a reduction, which the ranks compare.
  ElementFunctions functions_of(CallPlan& plan, const ReduceOptions& options, const Tensor& in) const {
    return named(op, [&] {
      ElementFunctions functions(options, in);
      plan.header.functions = functions.hash();
      check(functions.are_pointwise() || options.algorithm != Algorithm::kernel, ErrorCode::invalid_argument,
            "functions of Algorithm::kernel must have no captured tensors, positions or random numbers, got one that has");
      return functions;
    });
  }
  bool prefers_kernel(Collective collective, std::uint64_t bytes) const {
    constexpr std::uint64_t kLeastBytes = 128 << 10;
    const auto machine = impl().machine();
    if (!machine || !machine->kernel.known) return bytes >= kLeastBytes;
    const auto all = static_cast<double>(bytes);
    const std::optional<Choice> other = fastest(*machine, collective, ways(impl().is_one_host(), Order::canonical), all);
    return !other || kernel_us(*machine, collective, impl().size(), all) < other->us;
  }
  /// The memory whose kernels do the call: that of `shared`, where they are the fastest way or asked for. `other`: the tensor that need not be there.
  std::shared_ptr<SymmetricImpl> memory_of(Collective collective, const Tensor& shared, const Tensor& other, Algorithm algorithm, const Reduction* reduction,
                                           int outputs) const {
    const bool is_asked = algorithm == Algorithm::kernel;
    if (!is_asked && (algorithm != Algorithm::automatic || !prefers_kernel(collective, shared.nbytes()))) return nullptr;
    const auto memory = impl().find(shared);
    const char* why = !memory                                             ? "one in other memory"
                      : !can_launch(*memory, reduction, outputs)          ? "one whose ranks, dtype or reduction it does not do"
                      : !shared.is_contiguous() || !other.is_contiguous() ? "strided ones"
                                                                          : nullptr;
    if (why == nullptr) return memory;
    check(!is_asked, ErrorCode::invalid_argument, "Algorithm::kernel must have contiguous tensors in Symmetric memory that all ranks reach, got {}", why);
    return nullptr;
  }
  /// The call becomes a launch between two meetings.
  void launch_by(CallPlan& plan, const SymmetricImpl& memory, const Tensor& shared, std::function<void(const Stream&)> launch) const {
    plan.header.symmetric = memory.id(), plan.header.place = memory.place_of(shared);
    plan.launch = std::move(launch);
  }

  /// The other ranks hear that this one cannot take part.
  void tell_failed(const std::shared_ptr<CallPlan>& plan) const {
    plan->header.broken = static_cast<std::int32_t>(ErrorCode::stream_failed);
    Progress::instance().add(impl().make(plan, std::make_shared<CallState>(), nullptr, {}, {}));
  }
  /// True if nothing is enqueued before. Errors: those of a stream that has failed, which the other ranks are told of.
  bool check_stream(const Stream& stream, const std::shared_ptr<CallPlan>& plan) const {
    if (!interop::failed(stream)) return interop::idle(stream);
    tell_failed(plan);
    stream.flush();  // throws the failure
    return false;
  }

  /// Makes the call in the order of the stream. Undefined tensors are none.
  Work run(const std::shared_ptr<CallPlan>& plan, const Tensor& out, const Tensor& in, const CallOptions& options, const CallEnds& ends = {}) const {
    GroupImpl& g = impl();
    const Tensor& some = out.defined() ? out : in;
    BatchState* const batch = BatchState::of(g);
    plan->async = options.async || batch != nullptr;
    const Stream asked = !options.stream.empty() ? options.stream
                         : batch != nullptr      ? batch->asked
                         : some.defined()        ? current_stream(some.device())
                                                 : current_stream();
    return named(op, [&] {
      if (some.defined() && asked.device() != some.device())
        refuse(ErrorCode::device_mismatch, "the stream must be of the tensors' device, got one of another");
      check(batch == nullptr || asked == batch->asked, ErrorCode::invalid_argument,
            "the stream of a call in a Batch must be that of the Batch, got another one");
      const ProfiledCall profiled(*plan, batch == nullptr && !asked.is_capturing());
      const bool is_idle = check_stream(asked, plan);
      const Stream stream = batch != nullptr ? batch->stream : options.async ? g.stream_behind(asked) : asked;
      // What a Batch is given is made on the caller's stream until end().
      const Stream made_on = batch != nullptr ? batch->asked : stream;
      const auto state = std::make_shared<CallState>();
      const bool is_one = !ends.input && out.defined() && in.defined() && begin_alike(out, in) && out.sizes() == in.sizes();
      const Tensor dense_in = ends.input ? ends.input(made_on) : in.defined() ? in.contiguous(made_on) : in;
      const bool copies_back = out.defined() && !out.is_contiguous();
      const Tensor dense_out = !copies_back ? out : is_one ? dense_in : clutch::empty(out.sizes(), {.dtype = out.dtype(), .device = out.device()}, made_on);
      plan->one_memory = is_one;
      plan->in = in, plan->out = out;
      plan->input_bytes = dense_in.defined() ? dense_in.nbytes() : 0, plan->output_bytes = dense_out.defined() ? dense_out.nbytes() : 0;
      state->stream = stream;
      std::function<void(const Stream&)> finish;
      if (ends.output)
        finish = [output = ends.output, dense_out](const Stream& s) { output(dense_out, s); };
      else if (copies_back)
        finish = [out, dense_out](const Stream& s) { copy_(out, dense_out, {}, s); };

      const auto has_started = std::make_shared<std::atomic<bool>>(false);
      auto start = [group = g.shared_from_this(), made = std::shared_ptr<const CallPlan>(plan), state, has_started](const std::shared_ptr<DeviceLink>& link,
                                                                                                                    std::span<const DevicePlace> places) {
        *has_started = true;
        state->begin_again();
        const bool reads = made->input_bytes > 0, writes = made->output_bytes > 0;
        return group->make(made, state, link, reads ? places.front() : DevicePlace{}, writes ? places.back() : DevicePlace{});
      };
      std::vector<Tensor> inputs, outputs;
      auto list_tensors = [&] {
        if (dense_in.defined()) inputs.push_back(dense_in);
        if (dense_out.defined()) outputs.push_back(dense_out);
      };
      if (batch != nullptr) {
        list_tensors();
        batch->calls.push_back({state, start, inputs, outputs, finish});
        return Work(state);
      }
      // Few bytes behind nothing: nothing need be enqueued.
      constexpr std::size_t kFewBytes = 256 << 10;
      const bool has_staged = finish || ends.input || !dense_in.shares_storage(in) || stream.is_capturing();
      if (is_idle && !options.async && !has_staged && std::max(plan->input_bytes, plan->output_bytes) <= kFewBytes) {
        std::array<DevicePlace, 2> places;
        std::size_t count = 0;
        for (const Tensor* x : {&dense_in, &dense_out})
          if (x->defined()) places[count++] = {interop::mem(*x), interop::offset(*x), x->nbytes()};
        cl_command_queue queue = interop::queue(stream);
        const auto link = std::make_shared<DeviceLink>(queue, g.beside(queue), true);
        const std::shared_ptr<Task> call = start(link, std::span(places).first(count));
        if (g.hurry(*call, std::max(plan->input_bytes, plan->output_bytes))) return Work(state);
        list_tensors();
        Encoder(stream, op)
            .opaque(
                [link, call](void*) {
                  link->hold();
                  Progress::instance().add(call);
                },
                inputs, outputs, plan->header.text());
        return Work(state);
      }
      list_tensors();
      std::vector<std::size_t> bytes;
      for (const std::vector<Tensor>* list : {&inputs, &outputs})
        for (const Tensor& x : *list) bytes.push_back(x.nbytes());
      auto task = [start, bytes, group = g.shared_from_this()](void* queue, std::span<const Encoder::Place> given) {
        auto* const of = static_cast<cl_command_queue>(queue);
        std::vector<DevicePlace> places;
        for (std::size_t i = 0; i < given.size(); ++i) places.push_back({static_cast<cl_mem>(given[i].mem), given[i].offset, bytes[i]});
        Progress::instance().add(start(std::make_shared<DeviceLink>(of, group->beside(of), false), places));
      };
      try {
        Encoder(stream, op).opaque(task, inputs, outputs, plan->header.text());
        if (finish) finish(stream);
        if (options.async) state->event.record(stream);
      } catch (const Error&) {
        // The stream has failed since it was looked at.
        if (!*has_started && !stream.is_capturing() && interop::failed(stream)) tell_failed(plan);
        // The call itself has failed already, which its Work tells.
        const std::lock_guard lock(state->mutex);
        if (!state->error) throw;
      }
      return Work(state);
    });
  }
};

}}}}  // namespace clutch::v0::dist::detail
