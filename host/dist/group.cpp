// SPDX-License-Identifier: Apache-2.0
#include "dist/group.hpp"
#include "dist/symmetric.hpp"
#include "dist/task.hpp"

#include <fmt/format.h>
#include <clutch/interop_cl.hpp>
#include <clutch/kernel.hpp>
#include <clutch/ops/copy.hpp>

#include <algorithm>
#include <utility>

namespace clutch { inline namespace v0 { namespace dist {
namespace detail {

GroupImpl::GroupImpl(std::shared_ptr<Transport> transport, std::string name, std::vector<int> global_ranks, Timeout timeout)
    : transport_(std::move(transport)),
      name_(std::move(name)),
      global_ranks_(std::move(global_ranks)),
      timeout_(timeout),
      of_pairs_(static_cast<std::size_t>(transport_->size())) {}

Timeout GroupImpl::timeout() const {
  const std::lock_guard lock(mutex_);
  return timeout_;
}
void GroupImpl::set_timeout(Timeout timeout) {
  const std::lock_guard lock(mutex_);
  timeout_ = timeout;
}
std::uint64_t GroupImpl::next_sequence() {
  const std::lock_guard lock(mutex_);
  return sequence_++;
}
std::uint64_t GroupImpl::next_of_pair(int to) {
  const std::lock_guard lock(mutex_);
  return of_pairs_.at(static_cast<std::size_t>(to))++;
}
std::uint32_t GroupImpl::next_ticket() {
  const std::lock_guard lock(mutex_);
  return tickets_++ % kTags;
}
void GroupImpl::line_up(const Line& line, const void* call) {
  const std::lock_guard lock(mutex_);
  lines_[line].push_back(call);
}
bool GroupImpl::is_first(const Line& line, const void* call) const {
  const std::lock_guard lock(mutex_);
  const auto at = lines_.find(line);
  return at == lines_.end() || at->second.front() == call;
}
void GroupImpl::leave_line(const Line& line, const void* call) {
  {
    const std::lock_guard lock(mutex_);
    const auto at = lines_.find(line);
    if (at == lines_.end() || std::erase(at->second, call) == 0) return;
    if (at->second.empty()) lines_.erase(at);
  }
  Progress::instance().wake();
}
std::uint64_t GroupImpl::next_group() {
  const std::lock_guard lock(mutex_);
  return groups_++;
}

void GroupImpl::fail(const Error& why) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = why;
  }
  Progress::instance().wake();
}
std::optional<Error> GroupImpl::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

const DeviceLink::Beside& GroupImpl::beside(cl_command_queue queue) {
  cl_context context = nullptr;
  cl_device_id device = nullptr;
  check_cl(clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, nullptr), "clGetCommandQueueInfo");
  check_cl(clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, nullptr), "clGetCommandQueueInfo");
  const std::lock_guard lock(mutex_);
  DeviceLink::Beside& found = beside_[{context, device}];
  if (!found.maps) found = DeviceLink::beside(queue);
  return found;
}

Stream GroupImpl::stream_for(const Device& device) {
  const std::lock_guard lock(mutex_);
  std::erase_if(streams_, [](const Stream& stream) { return interop::failed(stream); });
  for (const Stream& stream : streams_)
    if (stream.device() == device && interop::idle(stream)) return stream;
  return streams_.emplace_back(device);
}

Stream GroupImpl::kernel_stream(const Device& device) {
  const std::lock_guard lock(mutex_);
  for (const Stream& stream : kernel_streams_)
    if (stream.device() == device) return stream;
  return kernel_streams_.emplace_back(device);
}

void GroupImpl::add(const std::shared_ptr<SymmetricImpl>& memory) {
  const std::lock_guard lock(mutex_);
  std::erase_if(symmetric_, [](const auto& of) { return of.expired(); });
  symmetric_.push_back(memory);
}

std::shared_ptr<SymmetricImpl> GroupImpl::find(const Tensor& tensor) const {
  const std::lock_guard lock(mutex_);
  for (const auto& of : symmetric_)
    if (auto memory = of.lock(); memory && memory->part(rank()).shares_storage(tensor)) return memory;
  return nullptr;
}

std::shared_ptr<Task> GroupImpl::make(std::shared_ptr<const CallPlan> plan, std::shared_ptr<CallState> state, std::shared_ptr<DeviceLink> link,
                                      DevicePlace input, DevicePlace output) {
  return std::make_shared<CallTask>(shared_from_this(), std::move(plan), std::move(state), std::move(link), input, output);
}

bool GroupImpl::hurry(Task& call) {
  constexpr std::chrono::microseconds kPatience{20};
  const auto until = Clock::now() + kPatience;
  do
    if (call.advance()) return true;
  while (Clock::now() < until);
  return false;
}

std::vector<std::int64_t> GroupImpl::exchange_rows(const CallPlan& plan) {
  const auto state = std::make_shared<CallState>();
  const auto task = std::make_shared<CallTask>(shared_from_this(), std::make_shared<const CallPlan>(plan), state, nullptr, DevicePlace{}, DevicePlace{});
  Progress::instance().add(task);
  {
    std::unique_lock lock(state->mutex);
    state->changed.wait(lock, [&] { return state->has_ended(); });
    if (state->error) throw Error(*state->error);
  }
  std::vector<std::int64_t> all;
  for (int r = 0; r < size(); ++r) {
    const std::span<const std::int64_t> rows = task->envelopes().rows(static_cast<std::size_t>(r));
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

}  // namespace detail

namespace {

using namespace detail;

std::int64_t total(std::span<const std::int64_t> rows) {
  std::int64_t sum = 0;
  for (const std::int64_t n : rows) sum += n;
  return sum;
}

std::uint64_t hash_of(std::span<const std::int64_t> rows) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const std::int64_t n : rows)
    for (int byte = 0; byte < 8; ++byte) hash = (hash ^ (static_cast<std::uint64_t>(n) >> (8 * byte) & 0xff)) * 1099511628211ULL;
  return hash | 1;
}

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

Method method_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::one_shot: return Method::one_shot;
    case Algorithm::tree: return Method::tree;
    case Algorithm::halving: return Method::halving;
    case Algorithm::ring: return Method::ring;
    case Algorithm::automatic:
    case Algorithm::kernel:
    case Algorithm::direct: break;
  }
  return Method::direct;
}

/// By rounds for few bytes, and by traffic for many.
Method automatic(Collective collective, int ranks, std::uint64_t bytes) {
  constexpr std::uint64_t kFewBytes = 64 << 10;
  constexpr int kFewRanks = 8;
  const auto n = static_cast<std::uint64_t>(ranks);
  const bool is_small = bytes * (n - 1) <= kFewBytes;
  if (collective == Collective::broadcast) return Method::tree;
  if (collective == Collective::reduce) return ranks <= kFewRanks && is_small ? Method::one_shot : Method::tree;
  if (collective != Collective::all_reduce) return Method::direct;
  if (ranks <= kFewRanks) return is_small ? Method::one_shot : Method::direct;
  if ((n & (n - 1)) == 0) return Method::halving;
  return bytes <= kFewBytes ? Method::tree : Method::direct;
}

struct Shape {
  Collective collective;
  CallKind kind;
  std::size_t elements = 0;  ///< of which all blocks of an all_reduce, reduce or broadcast are made
  std::size_t block = 0;     ///< of other collectives
  int root = -1;
};

}  // namespace

/// Makes calls of their arguments.
struct detail::GroupCalls {
  const char* op;
  const Group& group;

  GroupImpl& impl() const {
    if (group.empty()) throw Error(ErrorCode::invalid_argument, op, "the Group must be one that was opened, got an empty one");
    return *group.impl();
  }
  [[noreturn]] void refuse(ErrorCode code, const std::string& why) const { throw Error(code, op, why); }
  void check(bool is_right, ErrorCode code, const std::string& why) const {
    if (!is_right) refuse(code, why);
  }
  void check_usable() const {
    if (const std::optional<Error> failure = impl().failure())
      throw Error(ErrorCode::peer_failed, op, fmt::format("group '{}' has failed: {}", impl().name(), failure->message()));
  }
  void check_tensor(const Tensor& tensor, const char* what) const {
    check(tensor.defined(), ErrorCode::invalid_argument, fmt::format("{} must be defined, got an undefined tensor", what));
  }
  void check_rank(int rank, const char* what) const {
    check(rank >= 0 && rank < impl().size(), ErrorCode::invalid_argument, fmt::format("{} must be a rank below {}, got {}", what, impl().size(), rank));
  }
  /// Both tensors, where they are there, and that they fit each other.
  void check_pair(const Tensor& out, const Tensor& in) const {
    if (!out.defined() || !in.defined()) return;
    check(out.dtype() == in.dtype(), ErrorCode::invalid_dtype,
          fmt::format("out must be {} as the input is, got {}", clutch::name(in.dtype()), clutch::name(out.dtype())));
    check(out.device() == in.device(), ErrorCode::device_mismatch, "out must be on the input's device, got another one");
  }
  void check_numel(const Tensor& tensor, std::int64_t wanted, const char* what) const {
    check(tensor.numel() == wanted, ErrorCode::invalid_shape,
          fmt::format("{} must have {} elements, got {} of shape {}", what, wanted, tensor.numel(), to_string(tensor.sizes())));
  }
  void check_rows(std::span<const std::int64_t> rows, const char* what) const {
    check(rows.size() == static_cast<std::size_t>(impl().size()), ErrorCode::invalid_argument,
          fmt::format("{} must have an entry for each of {} ranks, got {}", what, impl().size(), rows.size()));
    for (const std::int64_t n : rows) check(n >= 0, ErrorCode::invalid_argument, fmt::format("{} must not be negative, got {}", what, n));
  }
  /// Elements of a row.
  std::int64_t row_of(const Tensor& tensor, std::int64_t rows, const char* what) const {
    check(tensor.rank() >= 1 && tensor.size(0) == rows, ErrorCode::invalid_shape,
          fmt::format("{} must have {} rows, got shape {}", what, rows, to_string(tensor.sizes())));
    std::int64_t row = 1;
    for (int d = 1; d < tensor.rank(); ++d) row *= tensor.size(d);
    return row;
  }

  /// A plan whose blocks have whole bytes.
  std::shared_ptr<CallPlan> plan(CallKind kind, const Tensor& some, const CallOptions& options) const {
    check_usable();
    auto plan = std::make_shared<CallPlan>();
    plan->op = op, plan->timeout = options.timeout;
    check(options.timeout.count() >= 0, ErrorCode::invalid_argument, fmt::format("timeout must not be negative, got {} ms", options.timeout.count()));
    plan->header.kind = kind;
    plan->header.set_place(options.where);
    if (some.defined()) plan->header.dtype = some.dtype(), plan->shape.element = is_packed(some.dtype()) ? 1 : static_cast<std::size_t>(bits(some.dtype())) / 8;
    return plan;
  }
  /// Elements, or bytes of packed types.
  std::size_t units(const Tensor& some, std::int64_t elements) const {
    if (!is_packed(some.dtype())) return static_cast<std::size_t>(elements);
    check(elements * bits(some.dtype()) % 8 == 0, ErrorCode::invalid_shape,
          fmt::format("each rank's elements of {} must fill whole bytes, got {}", clutch::name(some.dtype()), elements));
    return bytes_for(some.dtype(), static_cast<std::uint64_t>(elements));
  }

  void choose(CallPlan& plan, const Shape& shape, Algorithm algorithm, Order order = Order::canonical) const {
    const int n = impl().size();
    check(algorithm != Algorithm::kernel, ErrorCode::invalid_argument,
          "Algorithm::kernel must have a call that it does in Symmetric memory (an all_reduce in place, reduce_scatter, all_gather, all_to_all, broadcast), "
          "got another");
    const bool is_whole = shape.collective == Collective::all_reduce || shape.collective == Collective::reduce || shape.collective == Collective::broadcast;
    const Method method = algorithm == Algorithm::automatic ? automatic(shape.collective, n, shape.elements * plan.shape.element) : method_of(algorithm);
    const Problem problem{.collective = shape.collective, .ranks = n, .root = std::max(shape.root, 0), .method = method};
    if (const std::string_view why = refusal(problem); !why.empty())
      refuse(ErrorCode::invalid_argument, fmt::format("the algorithm must do the call, got one that does not: {}", why));
    check(method != Method::ring || order == Order::any, ErrorCode::invalid_argument,
          "the order must be Order::any for the ring, whose sums are not the canonical ones, got Order::canonical");
    plan.schedule = std::make_shared<const Schedule>(schedule_of(problem, impl().rank()));
    plan.shape.block = is_whole ? block_of(shape.elements, plan.schedule->blocks) : shape.block;
    plan.header.method = method, plan.header.root = shape.root;
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
    const bool is_same = out.byte_offset() == in.byte_offset() && out.sizes() == in.sizes() && out.strides() == in.strides();
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

  /// The memory whose kernels do the call: that of `shared`, where it is large enough or they are asked for. `other`: the tensor that need not be there.
  std::shared_ptr<SymmetricImpl> memory_of(const Tensor& shared, const Tensor& other, Algorithm algorithm, const Stream& stream, const Reduction* reduction,
                                           int outputs) const {
    constexpr std::uint64_t kLeastBytes = 32 << 10;
    const bool is_asked = algorithm == Algorithm::kernel;
    if (!is_asked && (algorithm != Algorithm::automatic || shared.nbytes() < kLeastBytes)) return nullptr;
    const auto memory = impl().find(shared);
    const Stream of = !stream.empty() ? stream : current_stream(shared.device());
    const char* why = !memory                                             ? "one in other memory"
                      : !can_launch(*memory, reduction, outputs)          ? "one whose ranks, dtype or reduction it does not do"
                      : !shared.is_contiguous() || !other.is_contiguous() ? "strided ones"
                      : of.is_capturing()                                 ? "a capture"
                                                                          : nullptr;
    if (why == nullptr) return memory;
    check(!is_asked, ErrorCode::invalid_argument,
          fmt::format("Algorithm::kernel must have contiguous tensors in Symmetric memory that all ranks reach, outside of captures, got {}", why));
    return nullptr;
  }
  /// The call becomes a launch between two meetings.
  void launch_by(CallPlan& plan, const SymmetricImpl& memory, const Tensor& shared, std::function<void(const Stream&)> launch) const {
    plan.header.symmetric = memory.id(), plan.header.place = shared.byte_offset();
    plan.launch = std::move(launch);
  }

  /// True if nothing is enqueued before. Errors: those of a stream that has failed, which the other ranks are told of.
  bool check_stream(const Stream& stream, const std::shared_ptr<CallPlan>& plan) const {
    if (!interop::failed(stream)) return interop::idle(stream);
    plan->header.broken = static_cast<std::int32_t>(ErrorCode::stream_failed);
    Progress::instance().add(impl().make(plan, std::make_shared<CallState>(), nullptr, {}, {}));
    stream.flush();  // throws the failure
    return false;
  }

  /// Makes the call in the order of the stream. Undefined tensors are none.
  Work run(const std::shared_ptr<CallPlan>& plan, const Tensor& out, const Tensor& in, const CallOptions& options) const {
    GroupImpl& g = impl();
    const Tensor& some = out.defined() ? out : in;
    const Stream asked = !options.stream.empty() ? options.stream : some.defined() ? current_stream(some.device()) : current_stream();
    return named(op, [&] {
      if (some.defined() && asked.device() != some.device())
        refuse(ErrorCode::device_mismatch, "the stream must be of the tensors' device, got one of another");
      const bool is_idle = check_stream(asked, plan);
      Stream stream = asked;
      const auto state = std::make_shared<CallState>();
      if (options.async) {
        stream = g.stream_for(asked.device());
        Event before;
        before.record(asked);
        stream.wait(before);
      }
      const bool is_one = out.defined() && in.defined() && out.shares_storage(in) && out.byte_offset() == in.byte_offset() && out.sizes() == in.sizes();
      const Tensor dense_in = in.defined() ? in.contiguous(stream) : in;
      const bool copies_back = out.defined() && !out.is_contiguous();
      const Tensor dense_out = !copies_back ? out : is_one ? dense_in : clutch::empty(out.sizes(), {.dtype = out.dtype(), .device = out.device()}, stream);
      plan->one_memory = is_one;
      plan->input_bytes = dense_in.defined() ? dense_in.nbytes() : 0, plan->output_bytes = dense_out.defined() ? dense_out.nbytes() : 0;
      state->timeout = options.timeout.count() > 0 ? options.timeout : g.timeout();
      state->stream = stream;

      std::vector<Tensor> inputs, outputs;
      if (dense_in.defined()) inputs.push_back(dense_in);
      if (dense_out.defined()) outputs.push_back(dense_out);
      auto start = [group = g.shared_from_this(), made = std::shared_ptr<const CallPlan>(plan), state](const std::shared_ptr<DeviceLink>& link,
                                                                                                       std::span<const DevicePlace> places) {
        {
          const std::lock_guard lock(state->mutex);
          state->status = Work::Status::waiting, state->error.reset();
        }
        const bool reads = made->input_bytes > 0, writes = made->output_bytes > 0;
        return group->make(made, state, link, reads ? places.front() : DevicePlace{}, writes ? places.back() : DevicePlace{});
      };
      std::vector<std::size_t> bytes;
      for (const Tensor& x : inputs) bytes.push_back(x.nbytes());
      for (const Tensor& x : outputs) bytes.push_back(x.nbytes());
      // Few bytes behind nothing: nothing need be enqueued.
      constexpr std::size_t kFewBytes = 64 << 10;
      const bool has_staged = copies_back || !dense_in.shares_storage(in) || stream.is_capturing();
      if (is_idle && !options.async && !has_staged && std::max(plan->input_bytes, plan->output_bytes) <= kFewBytes) {
        std::vector<DevicePlace> places;
        for (const Tensor& x : inputs) places.push_back({interop::mem(x), interop::offset(x), x.nbytes()});
        for (const Tensor& x : outputs) places.push_back({interop::mem(x), interop::offset(x), x.nbytes()});
        cl_command_queue queue = interop::queue(stream);
        const auto link = std::make_shared<DeviceLink>(queue, g.beside(queue), true);
        const std::shared_ptr<Task> call = start(link, places);
        if (GroupImpl::hurry(*call)) return Work(state);
        Encoder(stream, op)
            .opaque(
                [link, call](void*) {
                  link->hold();
                  Progress::instance().add(call);
                },
                inputs, outputs, plan->header.text());
        return Work(state);
      }
      auto task = [start, bytes, group = g.shared_from_this()](void* queue, std::span<const Encoder::Place> given) {
        auto* const of = static_cast<cl_command_queue>(queue);
        std::vector<DevicePlace> places;
        for (std::size_t i = 0; i < given.size(); ++i) places.push_back({static_cast<cl_mem>(given[i].mem), given[i].offset, bytes[i]});
        Progress::instance().add(start(std::make_shared<DeviceLink>(of, group->beside(of), false), places));
      };
      try {
        Encoder(stream, op).opaque(task, inputs, outputs, plan->header.text());
        if (copies_back) copy_(out, dense_out, {}, stream);
        if (options.async) state->event.record(stream);
      } catch (const Error&) {
        // The call itself has failed already, which its Work tells.
        const std::lock_guard lock(state->mutex);
        if (!state->error) throw;
      }
      return Work(state);
    });
  }
};

// ---- Work ----

Work::Status Work::status() const noexcept {
  if (!state_) return Status::done;
  const std::lock_guard lock(state_->mutex);
  return state_->status;
}

void Work::wait(const Stream& stream) const {
  if (!state_) return;
  const Stream waits = !stream.empty() ? stream : current_stream(state_->stream.device());
  if (waits == state_->stream) return;
  try {
    {
      const std::lock_guard lock(state_->mutex);
      if (!state_->has_ended()) state_->waiting.push_back(waits);
    }
    Event event = state_->event;
    // What the stream was given since then is waited for, too.
    if (!event.recorded()) event.record(state_->stream);
    waits.wait(event);
  } catch (const Error&) {
    const std::lock_guard lock(state_->mutex);
    if (!state_->error) throw;
  }
  const std::lock_guard lock(state_->mutex);
  if (state_->error) interop::fail(waits, *state_->error);
}

void Work::synchronize(Timeout timeout) const {
  if (!state_) return;
  constexpr const char* kOp = "dist::Work::synchronize";
  if (timeout.count() < 0) throw Error(ErrorCode::invalid_argument, kOp, fmt::format("timeout must not be negative, got {} ms", timeout.count()));
  if (Progress::is_this_thread()) throw Error(ErrorCode::invalid_argument, kOp, "functions of Work::on_done() must not wait, got one that does");
  std::unique_lock lock(state_->mutex);
  auto has_ended = [&] { return state_->has_ended(); };
  // The call itself ends by its own time-out.
  if (timeout.count() == 0)
    state_->changed.wait(lock, has_ended);
  else if (!state_->changed.wait_for(lock, timeout, has_ended))
    throw Error(ErrorCode::timed_out, kOp, fmt::format("call {} has not ended in {} ms", state_->sequence, timeout.count()));
  if (state_->error) throw Error(*state_->error);
  lock.unlock();
  state_->stream.synchronize();
}

std::uint64_t Work::sequence() const noexcept {
  if (!state_) return 0;
  const std::lock_guard lock(state_->mutex);
  return state_->sequence;
}

int Work::source() const {
  if (status() != Status::done || !state_) throw Error(ErrorCode::invalid_argument, "dist::Work::source", "the call must be done, got one that is not");
  const std::lock_guard lock(state_->mutex);
  return state_->source;
}

double Work::milliseconds() const {
  if (status() != Status::done || !state_) throw Error(ErrorCode::invalid_argument, "dist::Work::milliseconds", "the call must be done, got one that is not");
  const std::lock_guard lock(state_->mutex);
  return state_->milliseconds;
}

void Work::on_done(std::function<void(Status)> function) const {
  if (!function) throw Error(ErrorCode::invalid_argument, "dist::Work::on_done", "the function must be given, got an empty one");
  if (!state_) return function(Status::done);
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->has_ended()) {
      state_->hooks.push_back(std::move(function));
      return;
    }
  }
  function(status());
}

// ---- Group ----

int Group::rank() const { return GroupCalls{"dist::Group::rank", *this}.impl().rank(); }
int Group::size() const { return GroupCalls{"dist::Group::size", *this}.impl().size(); }
std::span<const int> Group::global_ranks() const { return GroupCalls{"dist::Group::global_ranks", *this}.impl().global_ranks(); }
const std::string& Group::name() const { return GroupCalls{"dist::Group::name", *this}.impl().name(); }

Group Group::split(int color, int key, const std::string& name, const CallOptions& options) const {
  const GroupCalls call{"dist::Group::split", *this};
  GroupImpl& g = call.impl();
  const auto plan = call.plan(CallKind::split, {}, options);
  plan->rows = {color, key};
  const std::uint64_t number = g.next_group();
  const std::vector<std::int64_t> all = g.exchange_rows(*plan);
  if (color < 0) return {};
  std::vector<std::pair<std::int64_t, int>> members;
  for (int r = 0; r < g.size(); ++r)
    if (const auto at = static_cast<std::size_t>(2 * r); all[at] == color) members.emplace_back(all[at + 1], r);
  std::sort(members.begin(), members.end());
  std::vector<int> ranks, global;
  for (const auto& [of_key, r] : members) ranks.push_back(r), global.push_back(g.global_ranks()[static_cast<std::size_t>(r)]);
  return Group(
      std::make_shared<GroupImpl>(g.transport().among(ranks, number), name.empty() ? fmt::format("{}.{}", g.name(), color) : name, global, g.timeout()));
}

Group Group::subgroup(std::span<const int> ranks, const std::string& name) const {
  const GroupCalls call{"dist::Group::subgroup", *this};
  GroupImpl& g = call.impl();
  call.check_usable();
  std::vector<int> sorted(ranks.begin(), ranks.end()), global;
  std::sort(sorted.begin(), sorted.end());
  for (const int r : ranks) call.check_rank(r, "each of ranks"), global.push_back(g.global_ranks()[static_cast<std::size_t>(r)]);
  call.check(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(), ErrorCode::invalid_argument, "ranks must be different ones, got one twice");
  call.check(std::binary_search(sorted.begin(), sorted.end(), g.rank()), ErrorCode::invalid_argument,
             fmt::format("ranks must have this one, {}, got a list without it", g.rank()));
  // Members alone count, so that the number is theirs: that of their list.
  std::vector<std::int64_t> list(ranks.begin(), ranks.end());
  return Group(std::make_shared<GroupImpl>(g.transport().among(ranks, hash_of(list)), name.empty() ? g.name() + ".subgroup" : name, global, g.timeout()));
}

Work Group::all_reduce_out(const Tensor& out, const Tensor& in, const ReduceOptions& options) const {
  const GroupCalls call{"dist::Group::all_reduce_out", *this};
  call.check_tensor(out, "out"), call.check_tensor(in, "the input"), call.check_pair(out, in), call.check_numel(out, in.numel(), "out");
  call.check_overlap(out, in, true, -1);
  const auto plan = call.plan(CallKind::all_reduce, in, GroupCalls::of(options));
  call.reduce_by(*plan, options);
  plan->header.elements = static_cast<std::uint64_t>(in.numel());
  const Reduction reduction = plan->reducer->reduction();
  const bool is_one = out.shares_storage(in) && out.byte_offset() == in.byte_offset();
  if (const auto memory = is_one ? call.memory_of(in, in, options.algorithm, options.stream, &reduction, call.impl().size()) : nullptr) {
    call.launch_by(*plan, *memory, in, [memory, in, reduction](const Stream& s) { launch_all_reduce(*memory, in, reduction, s); });
    return call.run(plan, out, in, GroupCalls::of(options));
  }
  call.choose(*plan, {.collective = Collective::all_reduce, .kind = CallKind::all_reduce, .elements = static_cast<std::size_t>(in.numel())}, options.algorithm,
              options.order);
  return call.run(plan, out, in, GroupCalls::of(options));
}

Work Group::all_reduce_(const Tensor& self, const ReduceOptions& options) const {
  return named("dist::Group::all_reduce_", [&] { return all_reduce_out(self, self, options); });
}

Work Group::reduce_out(const Tensor& out, const Tensor& in, int root, const ReduceOptions& options) const {
  const GroupCalls call{"dist::Group::reduce_out", *this};
  call.check_rank(root, "root"), call.check_tensor(in, "the input");
  const bool is_root = call.impl().rank() == root;
  if (is_root) call.check_tensor(out, "out"), call.check_pair(out, in), call.check_numel(out, in.numel(), "out"), call.check_overlap(out, in, true, -1);
  const auto plan = call.plan(CallKind::reduce, in, GroupCalls::of(options));
  call.reduce_by(*plan, options);
  plan->header.elements = static_cast<std::uint64_t>(in.numel());
  call.choose(*plan, {.collective = Collective::reduce, .kind = CallKind::reduce, .elements = static_cast<std::size_t>(in.numel()), .root = root},
              options.algorithm, options.order);
  return call.run(plan, is_root ? out : Tensor(), in, GroupCalls::of(options));
}

Work Group::reduce_(const Tensor& self, int root, const ReduceOptions& options) const {
  return named("dist::Group::reduce_", [&] { return reduce_out(self, self, root, options); });
}

Work Group::reduce_scatter_out(const Tensor& out, const Tensor& in, const ReduceOptions& options) const {
  const GroupCalls call{"dist::Group::reduce_scatter_out", *this};
  call.check_tensor(out, "out"), call.check_tensor(in, "the input"), call.check_pair(out, in);
  call.check_numel(in, out.numel() * call.impl().size(), "the input");
  call.check_overlap(out, in, call.impl().size() == 1, out.numel() * call.impl().rank());
  const auto plan = call.plan(CallKind::reduce_scatter, in, GroupCalls::of(options));
  call.reduce_by(*plan, options);
  plan->header.elements = static_cast<std::uint64_t>(in.numel());
  const Reduction reduction = plan->reducer->reduction();
  if (const auto memory = call.memory_of(in, out, options.algorithm, options.stream, &reduction, 1)) {
    call.launch_by(*plan, *memory, in, [memory, out, in, reduction](const Stream& s) { launch_reduce_scatter(*memory, out, in, reduction, s); });
    return call.run(plan, out, in, GroupCalls::of(options));
  }
  call.choose(*plan, {.collective = Collective::reduce_scatter, .kind = CallKind::reduce_scatter, .block = static_cast<std::size_t>(out.numel())},
              options.algorithm);
  return call.run(plan, out, in, GroupCalls::of(options));
}

Work Group::all_gather_out(const Tensor& out, const Tensor& in, const CallOptions& options) const {
  const GroupCalls call{"dist::Group::all_gather_out", *this};
  call.check_tensor(out, "out"), call.check_tensor(in, "the input"), call.check_pair(out, in);
  call.check_numel(out, in.numel() * call.impl().size(), "out");
  call.check_overlap(out, in, call.impl().size() == 1, in.numel() * call.impl().rank());
  const auto plan = call.plan(CallKind::all_gather, in, options);
  plan->header.elements = static_cast<std::uint64_t>(out.numel());
  const std::size_t block = call.units(in, in.numel());
  if (const auto memory = call.memory_of(out, in, options.algorithm, options.stream, nullptr, 1)) {
    call.launch_by(*plan, *memory, out, [memory, out, in](const Stream& s) { launch_all_gather(*memory, out, in, s); });
    return call.run(plan, out, in, options);
  }
  call.choose(*plan, {.collective = Collective::all_gather, .kind = CallKind::all_gather, .block = block}, options.algorithm);
  return call.run(plan, out, in, options);
}

Work Group::gather_out(const Tensor& out, const Tensor& in, int root, const CallOptions& options) const {
  const GroupCalls call{"dist::Group::gather_out", *this};
  call.check_rank(root, "root"), call.check_tensor(in, "the input");
  const int n = call.impl().size();
  const bool is_root = call.impl().rank() == root;
  if (is_root)
    call.check_tensor(out, "out"), call.check_pair(out, in), call.check_numel(out, in.numel() * n, "out"),
        call.check_overlap(out, in, n == 1, in.numel() * root);
  const auto plan = call.plan(CallKind::gather, in, options);
  plan->header.elements = static_cast<std::uint64_t>(in.numel() * n);
  call.choose(*plan, {.collective = Collective::gather, .kind = CallKind::gather, .block = call.units(in, in.numel()), .root = root}, options.algorithm);
  return call.run(plan, is_root ? out : Tensor(), in, options);
}

Work Group::scatter_out(const Tensor& out, const Tensor& in, int root, const CallOptions& options) const {
  const GroupCalls call{"dist::Group::scatter_out", *this};
  call.check_rank(root, "root"), call.check_tensor(out, "out");
  const int n = call.impl().size();
  const bool is_root = call.impl().rank() == root;
  if (is_root)
    call.check_tensor(in, "the input"), call.check_pair(out, in), call.check_numel(in, out.numel() * n, "the input"),
        call.check_overlap(out, in, n == 1, out.numel() * root);
  const auto plan = call.plan(CallKind::scatter, out, options);
  plan->header.elements = static_cast<std::uint64_t>(out.numel() * n);
  call.choose(*plan, {.collective = Collective::scatter, .kind = CallKind::scatter, .block = call.units(out, out.numel()), .root = root}, options.algorithm);
  return call.run(plan, out, is_root ? in : Tensor(), options);
}

Work Group::broadcast_(const Tensor& self, int root, const CallOptions& options) const {
  const GroupCalls call{"dist::Group::broadcast_", *this};
  call.check_rank(root, "root"), call.check_tensor(self, "the tensor");
  const auto plan = call.plan(CallKind::broadcast, self, options);
  plan->header.elements = static_cast<std::uint64_t>(self.numel());
  if (const auto memory = call.memory_of(self, self, options.algorithm, options.stream, nullptr, 1)) {
    plan->header.root = root;
    call.launch_by(*plan, *memory, self, [memory, self, root](const Stream& s) { launch_broadcast(*memory, self, root, s); });
    return call.run(plan, self, self, options);
  }
  const std::size_t units = is_packed(self.dtype()) ? static_cast<std::size_t>(self.nbytes()) : static_cast<std::size_t>(self.numel());
  call.choose(*plan, {.collective = Collective::broadcast, .kind = CallKind::broadcast, .elements = units, .root = root}, options.algorithm);
  return call.run(plan, self, self, options);
}

Work Group::all_to_all_out(const Tensor& out, const Tensor& in, const CallOptions& options) const {
  const GroupCalls call{"dist::Group::all_to_all_out", *this};
  call.check_tensor(out, "out"), call.check_tensor(in, "the input"), call.check_pair(out, in), call.check_numel(out, in.numel(), "out");
  const int n = call.impl().size();
  call.check(in.numel() % n == 0, ErrorCode::invalid_shape, fmt::format("the input's elements must be a multiple of {} ranks, got {}", n, in.numel()));
  call.check_overlap(out, in, true, -1);
  const auto plan = call.plan(CallKind::all_to_all, in, options);
  plan->header.elements = static_cast<std::uint64_t>(in.numel());
  const std::size_t block = call.units(in, in.numel() / n);
  // What comes would overwrite what goes.
  const bool is_one = out.shares_storage(in) && out.byte_offset() == in.byte_offset() && n > 1;
  if (const auto memory = is_one ? nullptr : call.memory_of(out, in, options.algorithm, options.stream, nullptr, 1)) {
    call.launch_by(*plan, *memory, out, [memory, out, in](const Stream& s) { launch_all_to_all(*memory, out, in, s); });
    return call.run(plan, out, in, options);
  }
  call.choose(*plan, {.collective = Collective::all_to_all, .kind = CallKind::all_to_all, .block = block}, options.algorithm);
  return call.run(plan, out, is_one ? named(call.op, [&] { return in.clone(options.stream); }) : in, options);
}

namespace {

/// Begins of blocks of so many rows, and their end.
std::vector<std::size_t> begins_of(const GroupCalls& call, const Tensor& some, std::span<const std::int64_t> rows, std::int64_t row) {
  std::vector<std::size_t> begins{0};
  for (const std::int64_t n : rows) begins.push_back(begins.back() + call.units(some, n * row));
  return begins;
}

std::size_t longest(const std::vector<std::size_t>& begins) {
  std::size_t most = 0;
  for (std::size_t i = 1; i < begins.size(); ++i) most = std::max(most, begins[i] - begins[i - 1]);
  return most;
}

}  // namespace

Work Group::reduce_scatter_v_out(const Tensor& out, const Tensor& in, std::span<const std::int64_t> rows, const ReduceOptions& options) const {
  const GroupCalls call{"dist::Group::reduce_scatter_v_out", *this};
  call.check_tensor(out, "out"), call.check_tensor(in, "the input"), call.check_pair(out, in), call.check_rows(rows, "rows");
  const auto me = static_cast<std::size_t>(call.impl().rank());
  const std::int64_t row = call.row_of(in, total(rows), "the input");
  call.check_numel(out, rows[me] * row, "out");
  call.check_overlap(out, in, call.impl().size() == 1, total(rows.first(me)) * row);
  const auto plan = call.plan(CallKind::reduce_scatter_v, in, GroupCalls::of(options));
  call.reduce_by(*plan, options);
  plan->header.elements = static_cast<std::uint64_t>(in.numel()), plan->header.rows = hash_of(rows);
  plan->shape.input_begins = begins_of(call, in, rows, row);
  call.choose(*plan, {.collective = Collective::reduce_scatter, .kind = CallKind::reduce_scatter_v, .block = static_cast<std::size_t>(out.numel())},
              options.algorithm);
  return call.run(plan, out, in, GroupCalls::of(options));
}

Work Group::all_gather_v_out(const Tensor& out, const Tensor& in, std::span<const std::int64_t> rows, const CallOptions& options) const {
  const GroupCalls call{"dist::Group::all_gather_v_out", *this};
  call.check_tensor(out, "out"), call.check_tensor(in, "the input"), call.check_pair(out, in), call.check_rows(rows, "rows");
  const auto me = static_cast<std::size_t>(call.impl().rank());
  const std::int64_t row = call.row_of(out, total(rows), "out");
  call.check_numel(in, rows[me] * row, "the input");
  call.check_overlap(out, in, call.impl().size() == 1, total(rows.first(me)) * row);
  const auto plan = call.plan(CallKind::all_gather_v, in, options);
  plan->header.elements = static_cast<std::uint64_t>(out.numel()), plan->header.rows = hash_of(rows);
  plan->shape.output_begins = begins_of(call, out, rows, row);
  call.choose(*plan, {.collective = Collective::all_gather, .kind = CallKind::all_gather_v, .block = call.units(in, in.numel())}, options.algorithm);
  return call.run(plan, out, in, options);
}

Work Group::gather_v_out(const Tensor& out, const Tensor& in, std::span<const std::int64_t> rows, int root, const CallOptions& options) const {
  const GroupCalls call{"dist::Group::gather_v_out", *this};
  call.check_rank(root, "root"), call.check_tensor(in, "the input"), call.check_rows(rows, "rows");
  const auto me = static_cast<std::size_t>(call.impl().rank());
  const bool is_root = call.impl().rank() == root;
  const std::int64_t row = call.row_of(in, rows[me], "the input");
  const auto plan = call.plan(CallKind::gather_v, in, options);
  plan->header.elements = static_cast<std::uint64_t>(total(rows)) * static_cast<std::uint64_t>(row), plan->header.rows = hash_of(rows);
  if (is_root) {
    call.check_tensor(out, "out"), call.check_pair(out, in), call.check_numel(out, total(rows) * row, "out");
    call.check_overlap(out, in, call.impl().size() == 1, total(rows.first(me)) * row);
    plan->shape.output_begins = begins_of(call, out, rows, row);
  }
  call.choose(*plan, {.collective = Collective::gather, .kind = CallKind::gather_v, .block = call.units(in, in.numel()), .root = root}, options.algorithm);
  return call.run(plan, is_root ? out : Tensor(), in, options);
}

Work Group::scatter_v_out(const Tensor& out, const Tensor& in, std::span<const std::int64_t> rows, int root, const CallOptions& options) const {
  const GroupCalls call{"dist::Group::scatter_v_out", *this};
  call.check_rank(root, "root"), call.check_tensor(out, "out"), call.check_rows(rows, "rows");
  const auto me = static_cast<std::size_t>(call.impl().rank());
  const bool is_root = call.impl().rank() == root;
  const std::int64_t row = call.row_of(out, rows[me], "out");
  const auto plan = call.plan(CallKind::scatter_v, out, options);
  plan->header.elements = static_cast<std::uint64_t>(total(rows)) * static_cast<std::uint64_t>(row), plan->header.rows = hash_of(rows);
  if (is_root) {
    call.check_tensor(in, "the input"), call.check_pair(out, in), call.check_numel(in, total(rows) * row, "the input");
    call.check_overlap(out, in, call.impl().size() == 1, total(rows.first(me)) * row);
    plan->shape.input_begins = begins_of(call, in, rows, row);
  }
  call.choose(*plan, {.collective = Collective::scatter, .kind = CallKind::scatter_v, .block = call.units(out, out.numel()), .root = root}, options.algorithm);
  return call.run(plan, out, is_root ? in : Tensor(), options);
}

Work Group::all_to_all_v_out(const Tensor& out, const Tensor& in, std::span<const std::int64_t> out_rows, std::span<const std::int64_t> in_rows,
                             const CallOptions& options) const {
  const GroupCalls call{"dist::Group::all_to_all_v_out", *this};
  call.check_tensor(out, "out"), call.check_tensor(in, "the input"), call.check_pair(out, in);
  call.check_rows(out_rows, "out_rows"), call.check_rows(in_rows, "in_rows");
  const std::int64_t row = call.row_of(in, total(in_rows), "the input");
  call.check(call.row_of(out, total(out_rows), "out") == row, ErrorCode::invalid_shape,
             "rows of out must have as many elements as those of the input, got another number");
  call.check_overlap(out, in, false, -1);
  const auto plan = call.plan(CallKind::all_to_all_v, in, options);
  const std::int64_t one_row[] = {row};
  plan->header.rows = hash_of(one_row);
  plan->rows.assign(in_rows.begin(), in_rows.end()), plan->rows.insert(plan->rows.end(), out_rows.begin(), out_rows.end());
  plan->shape.input_begins = begins_of(call, in, in_rows, row), plan->shape.output_begins = begins_of(call, out, out_rows, row);
  const std::size_t block = std::max(longest(plan->shape.input_begins), longest(plan->shape.output_begins));
  call.choose(*plan, {.collective = Collective::all_to_all, .kind = CallKind::all_to_all_v, .block = block}, options.algorithm);
  return call.run(plan, out, in, options);
}

Work Group::send(const Tensor& in, int to, int tag, const CallOptions& options) const {
  const GroupCalls call{"dist::Group::send", *this};
  call.check_rank(to, "to"), call.check_tensor(in, "the input");
  call.check(to != call.impl().rank(), ErrorCode::invalid_argument, fmt::format("to must be another rank, got {}", to));
  call.check(tag >= 0 && tag <= kMaxTag, ErrorCode::invalid_argument, fmt::format("tag must be 0 to {}, got {}", kMaxTag, tag));
  const auto plan = call.plan(CallKind::send, in, options);
  plan->header.elements = static_cast<std::uint64_t>(in.numel()), plan->peer = to, plan->tag = tag;
  plan->schedule = std::make_shared<const Schedule>();
  return call.run(plan, {}, in, options);
}

Work Group::recv(const Tensor& out, int from, int tag, const CallOptions& options) const {
  const GroupCalls call{"dist::Group::recv", *this};
  if (from != kAnyRank) call.check_rank(from, "from");
  call.check_tensor(out, "out");
  call.check(from != call.impl().rank(), ErrorCode::invalid_argument, fmt::format("from must be another rank, got {}", from));
  call.check(tag >= 0 && tag <= kMaxTag, ErrorCode::invalid_argument, fmt::format("tag must be 0 to {}, got {}", kMaxTag, tag));
  const auto plan = call.plan(CallKind::receive, out, options);
  plan->header.elements = static_cast<std::uint64_t>(out.numel()), plan->peer = from, plan->tag = tag;
  plan->schedule = std::make_shared<const Schedule>();
  return call.run(plan, out, {}, options);
}

Work Group::barrier(const CallOptions& options) const {
  const GroupCalls call{"dist::Group::barrier", *this};
  return call.run(call.plan(CallKind::barrier, {}, options), {}, {}, options);
}

Work Symmetric::wait_signal(int from, int channel, std::uint32_t at_least, const CallOptions& options) const {
  const char* const op = "dist::Symmetric::wait_signal";
  if (!impl_) throw Error(ErrorCode::invalid_argument, op, "the Symmetric must be a made one, got an empty one");
  const GroupCalls call{op, impl_->group()};
  call.check_rank(from, "from");
  call.check(channel >= 0 && channel < impl_->channels(), ErrorCode::invalid_argument,
             fmt::format("channel must be below {}, got {}", impl_->channels(), channel));
  CallOptions at = options;
  if (at.stream.empty()) at.stream = current_stream(local().device());
  const auto plan = call.plan(CallKind::wait_signal, {}, at);
  plan->peer = from;
  plan->condition = [memory = impl_, from, channel, at_least] { return memory->counted(from, channel) >= at_least; };
  return call.run(plan, {}, {}, at);
}

void Group::set_timeout(Timeout timeout) const {
  const GroupCalls call{"dist::Group::set_timeout", *this};
  call.check(timeout.count() > 0, ErrorCode::invalid_argument, fmt::format("timeout must be above 0, got {} ms", timeout.count()));
  call.impl().set_timeout(timeout);
}

void Group::abort(const std::string& why) const {
  const GroupCalls call{"dist::Group::abort", *this};
  call.impl().fail(Error(ErrorCode::peer_failed, call.op, fmt::format("rank {} gave up: {}", call.impl().rank(), why)));
}

bool Group::failed() const { return GroupCalls{"dist::Group::failed", *this}.impl().failure().has_value(); }

}}}  // namespace clutch::v0::dist
