// SPDX-License-Identifier: Apache-2.0
#include "dist/symmetric.hpp"
#include "dist/group_calls.hpp"

#include <fmt/format.h>
#include <clutch/interop_cl.hpp>
#include <clutch/kernel.hpp>
#include <clutch/ops/copy.hpp>
#include <clutch/ops/map.hpp>
#include <clutch/pointwise.hpp>
#include <clutch/storage.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

namespace {

constexpr std::size_t kPage = 4096;
// Words behind the counters of a pad: one that its rank writes, and one of each rank.
std::size_t pad_words(int ranks, int channels) {
  return static_cast<std::size_t>(ranks) * static_cast<std::size_t>(channels) + static_cast<std::size_t>(ranks) + 1;
}

/// The byte of a rank's segment at which its part begins. Kernels go through the parts of many ranks, and of some memories, side by side: where they began at
/// one place of their pages, a cache would have a few places for all of them.
std::uint64_t begin_of(std::uint64_t memory, int rank) {
  constexpr std::uint64_t kLine = 128, kLines = kPage / kLine;
  return (memory * 7 + static_cast<std::uint64_t>(rank) * 11) % kLines * kLine;
}

/// A buffer that begins at the segment, which it keeps.
ClOwned<cl_mem> buffer_of(const std::shared_ptr<SharedSegment>& segment, cl_context context) {
  cl_int status = CL_SUCCESS;
  ClOwned<cl_mem> mem(clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, segment->bytes().size(), segment->bytes().data(), &status));
  check_cl(status, "clCreateBuffer");
  auto* kept = new std::shared_ptr<SharedSegment>(segment);
  auto release = [](cl_mem, void* user) { delete static_cast<std::shared_ptr<SharedSegment>*>(user); };
  if (const cl_int set = clSetMemObjectDestructorCallback(mem.get(), release, kept); set != CL_SUCCESS) {
    delete kept;
    check_cl(set, "clSetMemObjectDestructorCallback");
  }
  return mem;
}

std::uint32_t word(const Tensor& one) { return static_cast<std::uint32_t>(add(one, 0).item()); }

/// A plan of a collective of numbers alone.
CallPlan exchange(const char* op, std::vector<std::int64_t> rows) {
  CallPlan plan;
  plan.op = op, plan.rows = std::move(rows), plan.header.kind = CallKind::symmetric;
  return plan;
}

}  // namespace

std::shared_ptr<SymmetricImpl> SymmetricImpl::make(const Dims& sizes, const Group& group, const TensorOptions& options, int channels) {
  constexpr const char* kOp = "dist::Symmetric";
  if (group.empty()) throw Error(ErrorCode::invalid_argument, kOp, "the Group must be one that was opened, got an empty one");
  if (channels < 1) throw Error(ErrorCode::invalid_argument, kOp, fmt::format("channels must be 1 or more, got {}", channels));
  GroupImpl& g = *group.impl();
  const int n = g.size(), me = g.rank();
  const auto count = static_cast<std::size_t>(numel(sizes));
  // A part begins within the first page.
  const std::size_t data = kPage + (bytes_for(options.dtype, count) + kPage - 1) / kPage * kPage, pad = pad_words(n, channels) * sizeof(std::uint32_t);
  const Stream stream = current_stream(options.device);
  auto memory = std::shared_ptr<SymmetricImpl>(new SymmetricImpl(group, channels, g.next_group() + 1));

  // A rank without memory says so before it throws.
  std::shared_ptr<SharedSegment> own;
  std::optional<Error> why;
  try {
    own = SharedSegment::make(data + (pad + kPage - 1) / kPage * kPage);
  } catch (const Error& e) {
    why.emplace(e.code(), kOp, e.message());
  }
  const SegmentName mine = own ? own->name() : SegmentName{};
  CallPlan plan = exchange(kOp, {mine.host, mine.process, mine.file, mine.bytes});
  plan.header.dtype = options.dtype, plan.header.elements = count, plan.header.root = channels;
  if (why) plan.header.broken = static_cast<std::int32_t>(why->code());
  std::vector<std::int64_t> names;
  try {
    names = g.exchange_rows(plan);
  } catch (const Error&) {
    if (why) throw Error(*why);
    throw;
  }
  const Device device = stream.device();
  for (int r = 0; r < n; ++r) {
    const std::int64_t* at = names.data() + 4 * r;
    memory->segments_.push_back(r == me ? own : g.is_apart() ? nullptr : SharedSegment::open({.host = at[0], .process = at[1], .file = at[2], .bytes = at[3]}));
    Tensor part, counters;
    if (const auto& segment = memory->segments_.back()) {
      const ClOwned<cl_mem> mem = buffer_of(segment, interop::context(stream));
      part = interop::wrap(mem.get(), sizes, options.dtype, device, begin_of(memory->id(), r));
      counters = interop::wrap(mem.get(), {static_cast<std::int64_t>(pad_words(n, channels))}, DType::u32, device, data);
    }
    memory->parts_.push_back(part), memory->pads_.push_back(counters);
  }
  memory->try_tiers(device);
  own->forget_name();
  g.add(memory);
  return memory;
}

void SymmetricImpl::try_tiers(const Device& device) {
  GroupImpl& g = *group_.impl();
  const int n = g.size(), me = g.rank();
  const StreamGuard stream{Stream(device)};
  const std::int64_t begin = static_cast<std::int64_t>(n) * channels_;
  auto written_by_itself = [&](int r) { return pads_[static_cast<std::size_t>(r)].slice(0, begin, begin + 1); };
  auto written_by = [&](int at, int from) { return pads_[static_cast<std::size_t>(at)].slice(0, begin + 1 + from, begin + 2 + from); };
  auto meet = [&] { (void)g.exchange_rows(exchange("dist::Symmetric", {0})); };
  auto token = [](int from, int to) { return static_cast<std::uint32_t>(0x5a000000 + from * 4096 + to); };
  std::vector<std::int64_t> found(static_cast<std::size_t>(n), 0);
  // A driver that refuses such memory is one that does not reach it.
  auto tried = [&](int r, auto&& f) {
    try {
      if (segments_[static_cast<std::size_t>(r)]) f();
    } catch (const Error&) {
      found[static_cast<std::size_t>(r)] = -1000;
    }
  };
  tried(me, [&] { add_(written_by_itself(me), static_cast<std::int64_t>(token(me, me))); });
  current_stream().synchronize();
  meet();
  for (int r = 0; r < n; ++r)
    tried(r, [&] {
      found[static_cast<std::size_t>(r)] += word(written_by_itself(r)) == token(r, r) ? 1 : 0;
      add_(written_by(r, me), static_cast<std::int64_t>(token(me, r)));
    });
  current_stream().synchronize();
  meet();
  for (int r = 0; r < n; ++r) tried(me, [&] { found[static_cast<std::size_t>(r)] += word(written_by(me, r)) == token(r, me) ? 2 : 0; });
  // found[r]: 1, this rank reads of r; 2, r's kernels write here. Both ranks must say both.
  const std::vector<std::int64_t> all = g.exchange_rows(exchange("dist::Symmetric", found));
  auto says = [&](int a, int b) { return all[static_cast<std::size_t>(a) * static_cast<std::size_t>(n) + static_cast<std::size_t>(b)] == 3; };
  all_direct_ = true;
  for (int r = 0; r < n; ++r) {
    direct_.push_back(r == me || (says(me, r) && says(r, me)));
    for (int k = 0; k < n; ++k) all_direct_ = all_direct_ && says(r, k);
  }
  all_direct_ = all_direct_ || n == 1;
}

Tensor SymmetricImpl::same_view(const Tensor& own, int rank) const {
  return StorageHandle(part(rank)).view(own.sizes(), own.strides(), own.dtype(), part(rank).byte_offset() + place_of(own));
}

std::uint64_t SymmetricImpl::place_of(const Tensor& own) const { return own.byte_offset() - part(group_.rank()).byte_offset(); }

Tensor SymmetricImpl::counter(int at, int from, int channel) const {
  const std::int64_t i = static_cast<std::int64_t>(from) * channels_ + channel;
  return pads_[static_cast<std::size_t>(at)].slice(0, i, i + 1);
}

std::uint32_t SymmetricImpl::counted(int from, int channel) const {
  const auto me = static_cast<std::size_t>(group_.rank());
  const std::size_t byte =
      pads_[me].byte_offset() + (static_cast<std::size_t>(from) * static_cast<std::size_t>(channels_) + static_cast<std::size_t>(channel)) * 4;
  auto* const at = reinterpret_cast<std::uint32_t*>(segments_[me]->bytes().data() + byte);
  return std::atomic_ref<std::uint32_t>(*at).load(std::memory_order_acquire);
}

std::int64_t SymmetricImpl::read_word(std::uint64_t index) const {
  auto* const at = reinterpret_cast<std::int64_t*>(segments_[static_cast<std::size_t>(group_.rank())]->bytes().data()) + index;
  return std::atomic_ref<std::int64_t>(*at).load(std::memory_order_acquire);
}

// ---- collectives of one launch ----

namespace {

constexpr int kMostTensors = 24;  // of a map

/// The bytes of a contiguous tensor as the widest integers that they are a whole number of.
Tensor raw(const Tensor& tensor) {
  const std::uint64_t bytes = tensor.nbytes(), at = tensor.byte_offset();
  const DType dtype = (bytes | at) % 8 == 0 ? DType::i64 : (bytes | at) % 4 == 0 ? DType::i32 : DType::u8;
  return StorageHandle(tensor).view({static_cast<std::int64_t>(bytes / bytes_for(dtype, 1))}, dtype, at);
}

/// Block `i` of `n` of a contiguous tensor's bytes.
Tensor raw_block(const Tensor& tensor, int i, int n) {
  const Tensor all = flat(tensor);
  if (is_packed(tensor.dtype())) {
    const std::uint64_t bytes = tensor.nbytes() / static_cast<std::uint64_t>(n);
    return StorageHandle(tensor).view({static_cast<std::int64_t>(bytes)}, DType::u8, tensor.byte_offset() + bytes * static_cast<std::uint64_t>(i));
  }
  const std::int64_t block = all.numel() / n;
  return raw(all.slice(0, i * block, (i + 1) * block));
}

/// Copies the bytes of each input to the output of its number, or of the only input to all, in one launch where they are words of one kind.
void copy_all(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs, const Stream& stream) {
  const DType dtype = inputs[0].dtype();
  bool are_alike = true;
  for (const std::vector<Tensor>* list : {&outputs, &inputs})
    for (const Tensor& x : *list) are_alike = are_alike && x.dtype() == dtype;
  auto input_of = [&](std::size_t i) { return inputs.size() == 1 ? std::size_t{0} : i; };
  if (!are_alike || outputs.size() + inputs.size() > kMostTensors) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      // Bytes where words do not begin alike.
      auto bytes = [](const Tensor& x) { return StorageHandle(x).view({static_cast<std::int64_t>(x.nbytes())}, DType::u8, x.byte_offset()); };
      Encoder(stream, "dist").copy(bytes(outputs[i]), bytes(inputs[input_of(i)]));
    }
    return;
  }
  std::vector<DType> dtypes(inputs.size(), traced_dtypes({inputs.data(), 1})[0]);
  std::vector<Expr> results;
  for (std::size_t i = 0; i < outputs.size(); ++i) results.push_back(clutch::detail::expr_input(static_cast<int>(input_of(i)), dtypes[0]));
  map_out(outputs, ExprFunction(dtypes, results), inputs, {}, stream);
}

Expr combined(ReduceOp op, const Expr& a, const Expr& b) {
  switch (op) {
    case ReduceOp::prod: return a * b;
    // A NaN of the left one wins here, of the right one where no comparison holds.
    case ReduceOp::min: return select((a < b) | (a != a), a, b);
    case ReduceOp::max: return select((a > b) | (a != a), a, b);
    case ReduceOp::band: return a & b;
    case ReduceOp::bor: return a | b;
    case ReduceOp::bxor: return a ^ b;
    default: return a + b;
  }
}

}  // namespace

// A product with a power of two has the quotient's bits, and costs less.
Expr average(const Expr& sum, int ranks) {
  const double n = ranks;
  return std::has_single_bit(static_cast<unsigned>(ranks)) ? sum * Expr(1 / n) : sum / Expr(n);
}

namespace {

/// The canonical reduction of the inputs, to all outputs. Functions are made once.
ExprFunction reduction_of(const FusedReduction& fused, DType traced, std::size_t outputs) {
  const Reduction& r = fused.reduction;
  std::vector<DType> dtypes(static_cast<std::size_t>(r.ranks), traced);
  auto number = [&](std::int32_t i) {
    Expr x = clutch::detail::expr_input(i, traced);
    // As it would be stored between two launches.
    if (fused.before) x = cast(fused.before(x), r.dtype);
    return r.op == ReduceOp::premul_sum ? x * Expr(r.factor) : x;
  };
  auto add = [&](const Expr& a, const Expr& b) { return combined(r.op, a, b); };
  Expr all = canonical_sum<Expr>(0, r.ranks, number, add);
  if (r.op == ReduceOp::avg) all = average(all, r.ranks);
  if (fused.after) all = fused.after(cast(all, r.dtype));
  return {dtypes, std::vector<Expr>(outputs, all)};
}

void reduce_all(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs, const FusedReduction& fused, const Stream& stream) {
  map_out(outputs, reduction_of(fused, traced_dtypes({inputs.data(), 1})[0], outputs.size()), inputs, {}, stream);
}

}  // namespace

bool can_launch(const SymmetricImpl& memory, const Reduction* reduction, int outputs) {
  const int n = memory.group().size();
  if (!memory.all_direct() || (reduction != nullptr && n + outputs > kMostTensors)) return false;
  if (reduction == nullptr) return true;
  const DType dtype = reduction->dtype;
  if (is_integral(dtype)) return reduction->op != ReduceOp::avg;
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16;
}

void launch_all_reduce(const SymmetricImpl& memory, const Tensor& self, const FusedReduction& fused, const Stream& stream) {
  const int n = memory.group().size(), me = memory.group().rank();
  // Blocks of whole cache lines.
  const std::int64_t line = 64 / static_cast<std::int64_t>(bytes_for(self.dtype(), 1)), total = self.numel();
  const std::int64_t block = ((total + n - 1) / n + line - 1) / line * line, begin = std::min(me * block, total), end = std::min(begin + block, total);
  if (begin == end) return;
  std::vector<Tensor> parts;
  for (int r = 0; r < n; ++r) parts.push_back(flat(memory.same_view(self, r)).slice(0, begin, end));
  reduce_all(parts, parts, fused, stream);
}

void launch_reduce_scatter(const SymmetricImpl& memory, const Tensor& out, const Tensor& in, const FusedReduction& fused, const Stream& stream) {
  const int n = memory.group().size(), me = memory.group().rank();
  if (out.numel() == 0) return;
  std::vector<Tensor> parts;
  for (int r = 0; r < n; ++r) parts.push_back(flat(memory.same_view(in, r)).slice(0, me * out.numel(), (me + 1) * out.numel()));
  reduce_all({flat(out)}, parts, fused, stream);
}

void launch_all_gather(const SymmetricImpl& memory, const Tensor& out, const Tensor& in, const Stream& stream) {
  const int n = memory.group().size(), me = memory.group().rank();
  if (in.numel() == 0) return;
  std::vector<Tensor> places;
  for (int r = 0; r < n; ++r)
    if (const Tensor place = raw_block(memory.same_view(out, r), me, n); !place.shares_storage(in) || place.byte_offset() != in.byte_offset())
      places.push_back(place);
  if (!places.empty()) copy_all(places, {raw(in)}, stream);
}

void launch_all_to_all(const SymmetricImpl& memory, const Tensor& out, const Tensor& in, const Stream& stream) {
  const int n = memory.group().size(), me = memory.group().rank();
  if (in.numel() == 0) return;
  std::vector<Tensor> places, blocks;
  for (int r = 0; r < n; ++r) places.push_back(raw_block(memory.same_view(out, r), me, n)), blocks.push_back(raw_block(in, r, n));
  copy_all(places, blocks, stream);
}

void launch_broadcast(const SymmetricImpl& memory, const Tensor& self, int root, const Stream& stream) {
  const int n = memory.group().size(), me = memory.group().rank();
  if (me != root || n == 1 || self.numel() == 0) return;
  std::vector<Tensor> places;
  for (int r = 0; r < n; ++r)
    if (r != me) places.push_back(raw(memory.same_view(self, r)));
  copy_all(places, {raw(self)}, stream);
}

}}}}  // namespace clutch::v0::dist::detail

namespace clutch { inline namespace v0 { namespace dist {

// ---- Symmetric ----

namespace {

const detail::SymmetricImpl& need(const std::shared_ptr<detail::SymmetricImpl>& impl, const char* op) {
  if (!impl) throw Error(ErrorCode::invalid_argument, op, "the Symmetric must be a made one, got an empty one");
  return *impl;
}

void check_rank(const detail::SymmetricImpl& memory, int rank, const char* op) {
  if (const int n = memory.group().size(); rank < 0 || rank >= n)
    throw Error(ErrorCode::invalid_argument, op, fmt::format("rank must be below {}, got {}", n, rank));
}

void check_direct(const detail::SymmetricImpl& memory, int rank, const char* op) {
  check_rank(memory, rank, op);
  if (!memory.is_direct(rank))
    throw Error(ErrorCode::not_supported, op, fmt::format("kernels of this device must reach the memory of rank {}, got one whose do not", rank));
}

void check_channel(const detail::SymmetricImpl& memory, int channel, const char* op) {
  if (channel < 0 || channel >= memory.channels())
    throw Error(ErrorCode::invalid_argument, op, fmt::format("channel must be below {}, got {}", memory.channels(), channel));
}

/// Ends when the stream has come to it.
class Behind : public detail::Task {
 public:
  Behind(std::shared_ptr<detail::CallState> state, const char* op) : state_(std::move(state)), op_(op), began_(detail::Clock::now()) {
    Event event;
    event.record(state_->stream);
    event_ = detail::retained(interop::event(event));
    detail::wake_after(event_.get());
  }
  bool advance() noexcept override {
    std::optional<Error> why;
    try {
      if (!detail::is_complete(event_.get(), op_)) return false;
    } catch (const Error& e) {
      why = e;
    }
    {
      const std::lock_guard lock(state_->mutex);
      state_->milliseconds = std::chrono::duration<double, std::milli>(detail::Clock::now() - began_).count();
    }
    const Work::Status how = why ? Work::Status::failed : Work::Status::done;
    state_->end(how, std::move(why));
    return true;
  }
  bool sleeps() const noexcept override { return true; }

 private:
  const std::shared_ptr<detail::CallState> state_;
  const char* const op_;
  const detail::Clock::time_point began_;
  detail::ClOwned<cl_event> event_;
};

/// Copies in the order of the stream that is asked for, or beside it.
Work copy_one_sided(const detail::SymmetricImpl& memory, const char* op, const Tensor& to, const Tensor& from, const CallOptions& options,
                    const std::function<void(const Stream&)>& then) {
  const Stream asked = !options.stream.empty() ? options.stream : current_stream(to.device());
  Stream stream = asked;
  if (options.async) {
    stream = memory.group().impl()->stream_for(asked.device());
    Event before;
    before.record(asked);
    stream.wait(before);
  }
  detail::named(op, [&] {
    copy_(to, from, {}, stream);
    then(stream);
  });
  if (stream.is_capturing()) return {};
  const auto state = std::make_shared<detail::CallState>();
  state->stream = stream, state->status = Work::Status::running;
  if (options.async) state->event.record(stream);
  detail::Progress::instance().add(std::make_shared<Behind>(state, op));
  return Work(state);
}

/// The elements of a rank's part that a tensor is copied to or from.
Tensor place_of(const detail::SymmetricImpl& memory, const Tensor& tensor, int rank, std::int64_t offset, const char* op) {
  check_direct(memory, rank, op);
  if (!tensor.defined()) throw Error(ErrorCode::invalid_argument, op, "the tensor must be defined, got an undefined one");
  const Tensor& part = memory.part(rank);
  if (tensor.dtype() != part.dtype())
    throw Error(ErrorCode::invalid_dtype, op, fmt::format("the tensor must be {} as the memory is, got {}", name(part.dtype()), name(tensor.dtype())));
  if (tensor.device() != part.device()) throw Error(ErrorCode::device_mismatch, op, "the tensor must be on the memory's device, got one on another");
  if (offset < 0 || offset > part.numel() || tensor.numel() > part.numel() - offset)
    throw Error(ErrorCode::invalid_shape, op,
                fmt::format("elements must be within the {} of the part, got {} from number {} on", part.numel(), tensor.numel(), offset));
  return detail::named(op, [&] { return detail::flat(part).slice(0, offset, offset + tensor.numel()).reshape(tensor.sizes()); });
}

}  // namespace

Symmetric::Symmetric(const Dims& sizes, const Group& group, const TensorOptions& options, int channels)
    : impl_(detail::SymmetricImpl::make(sizes, group, options, channels)) {}

const Group& Symmetric::group() const { return need(impl_, "dist::Symmetric::group").group(); }
Tensor Symmetric::local() const {
  const detail::SymmetricImpl& memory = need(impl_, "dist::Symmetric::local");
  return memory.part(memory.group().rank());
}
Symmetric::Tier Symmetric::tier(int rank) const {
  constexpr const char* kOp = "dist::Symmetric::tier";
  check_rank(need(impl_, kOp), rank, kOp);
  return impl_->is_direct(rank) ? Tier::direct : Tier::remote;
}
bool Symmetric::all_direct() const { return need(impl_, "dist::Symmetric::all_direct").all_direct(); }
Tensor Symmetric::peer(int rank) const {
  constexpr const char* kOp = "dist::Symmetric::peer";
  check_direct(need(impl_, kOp), rank, kOp);
  return impl_->part(rank);
}

void Symmetric::signal(int to, int channel, std::uint32_t add, const Stream& stream) const {
  constexpr const char* kOp = "dist::Symmetric::signal";
  const detail::SymmetricImpl& memory = need(impl_, kOp);
  check_direct(memory, to, kOp), check_channel(memory, channel, kOp);
  add_(memory.counter(to, memory.group().rank(), channel), static_cast<std::int64_t>(add), {}, stream);
}

Work Symmetric::wait_signal(int from, int channel, std::uint32_t at_least, const CallOptions& options) const {
  const char* const op = "dist::Symmetric::wait_signal";
  if (!impl_) throw Error(ErrorCode::invalid_argument, op, "the Symmetric must be a made one, got an empty one");
  const detail::GroupCalls call{op, impl_->group()};
  call.check_rank(from, "from");
  call.check(channel >= 0 && channel < impl_->channels(), ErrorCode::invalid_argument, "channel must be below {}, got {}", impl_->channels(), channel);
  CallOptions at = options;
  if (at.stream.empty()) at.stream = current_stream(local().device());
  const auto plan = call.plan(detail::CallKind::wait_signal, {}, at);
  plan->peer = from;
  plan->condition = [memory = impl_, from, channel, at_least] { return memory->counted(from, channel) >= at_least; };
  return call.run(plan, {}, {}, at);
}

Work Symmetric::put(const Tensor& in, int to, std::int64_t offset, int channel, const CallOptions& options) const {
  constexpr const char* kOp = "dist::Symmetric::put";
  const detail::SymmetricImpl& memory = need(impl_, kOp);
  const Tensor place = place_of(memory, in, to, offset, kOp);
  if (channel >= 0) check_channel(memory, channel, kOp);
  return copy_one_sided(memory, kOp, place, in, options, [&](const Stream& stream) {
    if (channel >= 0) add_(memory.counter(to, memory.group().rank(), channel), 1, {}, stream);
  });
}

Work Symmetric::get(const Tensor& out, int from, std::int64_t offset, const CallOptions& options) const {
  constexpr const char* kOp = "dist::Symmetric::get";
  const detail::SymmetricImpl& memory = need(impl_, kOp);
  return copy_one_sided(memory, kOp, out, place_of(memory, out, from, offset, kOp), options, [](const Stream&) {});
}

}}}  // namespace clutch::v0::dist
