// SPDX-License-Identifier: Apache-2.0
#include "graph/capture.hpp"

#include "graph/labels.hpp"
#include "runtime/host_task.hpp"
#include "runtime/launch_check.hpp"
#include "runtime/op_name.hpp"
#include "runtime/tensor_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

[[noreturn]] void throw_ended(const char* op) { throw Error(ErrorCode::capturing, op, "the stream's capture must go on, got one that has ended meanwhile"); }

}  // namespace

std::shared_ptr<Storage> stand_in_for(const std::shared_ptr<Storage>& storage) {
  check_cl(clRetainMemObject(storage->mem()), "Graph::capture_begin", "clRetainMemObject");
  return std::make_shared<Storage>(storage->runtime(), ClMem(storage->mem()), storage->offset() + storage->bytes(), storage);
}

Capture::Capture(Runtime& runtime, std::shared_ptr<StreamImpl> origin, const CaptureOptions& options, bool dry)
    : runtime_(runtime),
      origin_(std::move(origin)),
      options_(options),
      dry_(dry),
      thread_(std::this_thread::get_id()),
      arena_(GraphArena::of(runtime, options.pool)) {}

Capture::~Capture() = default;

void Capture::begin() {
  origin_->begin_recording(shared_from_this());
  lanes_.push_back({origin_, -1, {}, {}});
  begin_underway();
}

void Capture::detach() noexcept {
  end_underway();
  std::lock_guard lock(mutex_);
  over_ = true;
  for (Lane& lane : lanes_) lane.stream->end_recording();
}

void Capture::check_valid(const char* op) const {
  if (over_) throw_ended(op);
  if (invalid_)
    throw Error(ErrorCode::capturing, op,
                fmt::format("the capture must be valid, got one that was invalidated by {}: {}", invalid_->op(), invalid_->message()));
}

bool Capture::illegal(std::string_view call, std::string_view why) {
  std::lock_guard lock(mutex_);
  if (dry_) {
    problems_.push_back({std::string(OpName::or_else(call)), std::string(why), static_cast<int>(nodes_.size())});
    return true;
  }
  Error error(ErrorCode::capturing, call, fmt::format("illegal in a capture: {}; the capture is invalidated", why));
  if (!invalid_ && !over_) invalid_ = error;
  throw error;
}

std::string Capture::forbids(Beside what) const {
  const bool own = thread_ == std::this_thread::get_id();
  if (what == Beside::allocation)
    return options_.mode != CaptureMode::relaxed && own
               ? "memory must come from the graph's pool, got a stream that does not capture (give the capturing stream, or make it the current one)"
               : "";
  if (options_.mode != CaptureMode::global && !(options_.mode == CaptureMode::thread_local_ && own)) return {};
  return fmt::format(
      "calls that wait, query or get memory must come outside of captures of mode {}, got one during a capture in {} thread (CaptureMode::relaxed allows it)",
      options_.mode == CaptureMode::global ? "global" : "thread_local_", own ? "this" : "another");
}

Capture::Lane& Capture::lane_of(StreamImpl& stream, const char* op) {
  for (Lane& lane : lanes_)
    if (lane.stream.get() == &stream) return lane;
  throw_ended(op);
}

int Capture::allocate(Storage* storage, std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  check_valid("empty");
  Memory memory;
  memory.buffer.kind = GraphBuffer::Kind::temporary;
  memory.buffer.bytes = bytes;
  memory.made = storage;
  memory.in_capture = true;
  memory_.push_back(std::move(memory));
  return static_cast<int>(memory_.size()) - 1;
}

void Capture::released(int buffer) noexcept {
  std::lock_guard lock(mutex_);
  memory_[static_cast<std::size_t>(buffer)].made = nullptr;
}

GraphUse Capture::use_of(const Tensor& tensor, Argument::Kind access, const char* op) {
  GraphUse use;
  const std::shared_ptr<Storage>& storage = tensor.storage()->stands_for() ? tensor.storage()->stands_for() : tensor.storage();
  if (storage->recording().get() == this) {
    use.buffer = storage->recorded_buffer();
  } else if (storage->unplaced()) {
    throw Error(ErrorCode::capturing, op, "a tensor must have memory or be of this capture, got one of another capture, which has not ended or has failed");
  } else {
    auto [found, fresh] = externals_.try_emplace(storage.get(), static_cast<int>(memory_.size()));
    if (fresh) {
      Memory memory;
      memory.buffer.bytes = storage->bytes();
      memory.buffer.storage = storage;
      memory_.push_back(std::move(memory));
    }
    use.buffer = found->second;
  }
  use.byte_offset = tensor.byte_offset();
  use.access = access;
  use.dtype = tensor.dtype();
  use.sizes = tensor.sizes();
  use.strides = tensor.strides();
  use.bytes = extent_bytes(tensor);
  return use;
}

void Capture::add(StreamImpl& stream, GraphWork work) {
  Lane& lane = lane_of(stream, work.op);
  int id = static_cast<int>(nodes_.size());
  work.stream = stream.id();
  work.labels = thread_labels()->now();
  if (!work.labels) work.labels = labels_->now();
  work.after = std::exchange(lane.waits, {});
  nodes_.push_back(std::move(work));
  lane.last = id;
  ++lane.seen[stream.id()];
}

void Capture::operand(const StreamRef&, Launch& launch, const Tensor& tensor, Argument::Kind access, const char* name) {
  const auto use = static_cast<int>(launch.operands.size());
  launch.check_fits(2);
  launch.operands.push_back({tensor, access});
  launch.arguments.push_back({.kind = BoundArgument::Kind::memory, .use = use, .name = name});
  launch.arguments.push_back({.kind = BoundArgument::Kind::offset, .use = use});
}

void Capture::table(const StreamRef&, Launch& launch, TableState& table, std::span<const Tensor* const> tensors) {
  launch.check_fits(TensorTable::kBases + 2);
  launch.table.first_base = static_cast<int>(launch.arguments.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    launch.table.entries.push_back(tensors[i] ? static_cast<int>(launch.operands.size()) : -1);
    if (tensors[i]) launch.operands.push_back({*tensors[i], table.columns[i % table.columns.size()].access});
  }
  for (int i = 0; i < TensorTable::kBases + 1; ++i) launch.arguments.push_back({.kind = BoundArgument::Kind::memory});
  launch.arguments.push_back({.kind = BoundArgument::Kind::offset});
}

void Capture::kernel(const StreamRef& stream, Launch& launch) {
  Kernel& kernel = *launch.kernel.kernel();
  const char* op = launch.op;
  GraphWork work;
  work.op = op;
  work.kernel = &kernel;
  work.geometry = launch.geometry;
  work.plan = launch.kernel.plan();
  work.cost = launch.cost;
  work.meaning = launch.meaning;
  work.bytes.assign(launch.bytes().begin(), launch.bytes().end());
  work.bound.assign(launch.arguments.begin(), launch.arguments.end());
  work.object = ClKernel(kernel.make_bare());
  std::lock_guard lock(mutex_);
  check_valid(op);
  for (const Operand& operand : launch.operands) work.uses.push_back(use_of(operand.tensor, operand.access, op));
  if (launch.table.first_base >= 0) add_table(work, launch.table);
  work.set.resize(work.uses.size());
  for (std::size_t i = 0; i < work.uses.size(); ++i)
    if (const auto& storage = memory_[static_cast<std::size_t>(work.uses[i].buffer)].buffer.storage)
      work.set[i] = {storage->mem(), storage->offset() + work.uses[i].byte_offset};
  std::uint64_t local_bytes = set_arguments(work, work.object.get());
  check_launch(kernel, work.geometry, local_bytes, op);
  add(*stream, std::move(work));
}

/// Allocates memory for the table of a node; its words become known when the graph is instantiated.
void Capture::add_table(GraphWork& work, LaunchTable launched) {
  GraphTable table{std::move(launched)};
  GraphUse use;
  use.buffer = static_cast<int>(memory_.size());
  use.bytes = table.entries.size() * sizeof(std::uint64_t);
  use.dtype = DType::i64;
  use.sizes = {static_cast<std::int64_t>(table.entries.size())};
  use.strides = {1};
  Memory memory;
  memory.buffer.kind = GraphBuffer::Kind::constant;
  memory.buffer.bytes = use.bytes;
  memory.data = std::make_shared<std::uint8_t[]>(use.bytes);
  memory_.push_back(std::move(memory));
  table.use = static_cast<int>(work.uses.size());
  auto first = static_cast<std::size_t>(table.first_base);
  for (std::size_t i = first; i < first + TensorTable::kBases + 2; ++i) work.bound[i].use = table.use;
  work.uses.push_back(use);
  work.table = std::move(table);
}

void Capture::record(StreamImpl& stream, GraphWork work, std::span<const Operand> operands) {
  std::lock_guard lock(mutex_);
  check_valid(work.op);
  for (const Operand& operand : operands) work.uses.push_back(use_of(operand.tensor, operand.access, work.op));
  add(stream, std::move(work));
}

void Capture::copy(const StreamRef& stream, const char* op, const Tensor& destination, const Tensor& source) {
  GraphWork work;
  work.kind = GraphNodeKind::copy;
  work.op = op;
  work.cost = copy_cost(source.nbytes());
  record(*stream, std::move(work), std::array<Operand, 2>{{{destination, Argument::Kind::output}, {source, Argument::Kind::input}}});
}

void Capture::fill(const StreamRef& stream, const char* op, const Tensor& tensor, std::uint8_t pattern) {
  GraphWork work;
  work.kind = GraphNodeKind::fill;
  work.op = op;
  work.pattern = pattern;
  work.cost.bytes = static_cast<double>(tensor.nbytes());
  record(*stream, std::move(work), std::array<Operand, 1>{{{tensor, Argument::Kind::output}}});
}

void Capture::upload(const StreamRef& stream, const char* op, const Tensor& destination, std::shared_ptr<std::uint8_t[]> data) {
  GraphWork work;
  work.kind = GraphNodeKind::copy;
  work.op = op;
  work.cost = copy_cost(destination.nbytes());
  std::lock_guard lock(mutex_);
  check_valid(op);
  Memory constant;
  constant.buffer.kind = GraphBuffer::Kind::constant;
  constant.buffer.bytes = destination.nbytes();
  constant.data = std::move(data);
  GraphUse to = use_of(destination, Argument::Kind::output, op), from = to;  // before the constant's buffer, as it may add the destination's
  memory_.push_back(std::move(constant));
  from.buffer = static_cast<int>(memory_.size()) - 1;
  from.byte_offset = 0;
  from.access = Argument::Kind::input;
  work.uses = {to, from};
  add(*stream, std::move(work));
}

void Capture::host(const StreamRef& stream, const HostWork& given) {
  GraphWork work;
  work.kind = given.task ? GraphNodeKind::host_task : GraphNodeKind::opaque;
  work.op = given.op;
  work.plan = given.plan;
  work.cost = given.cost;
  work.task = given.task;
  work.opaque = given.opaque;
  work.knows_memory = given.knows_memory;
  std::vector<Operand> operands;
  for (const Tensor& tensor : given.inputs) operands.push_back({tensor, Argument::Kind::input});
  for (const Tensor& tensor : given.outputs) operands.push_back({tensor, Argument::Kind::inout});
  record(*stream, std::move(work), operands);
}

RecordMark Capture::mark(StreamImpl& stream) {
  std::lock_guard lock(mutex_);
  check_valid("Event::record");
  Lane& lane = lane_of(stream, "Event::record");
  return {weak_from_this(), lane.last, lane.seen};
}

void Capture::wait(const StreamRef& stream, const RecordMark& mark) {
  std::lock_guard lock(mutex_);
  check_valid("Stream::wait");
  auto found = std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane& lane) { return lane.stream == stream; });
  if (found == lanes_.end()) {
    stream->begin_recording(shared_from_this());
    found = lanes_.insert(lanes_.end(), Lane{stream, -1, {}, {}});
  }
  for (auto [id, count] : mark.seen) found->seen[id] = std::max(found->seen[id], count);
  if (mark.last >= 0) found->waits.push_back(mark.last);
}

void Capture::follow(const Event& made) {
  std::lock_guard lock(mutex_);
  if (over_) throw_ended("Capture::follow");
  followed_.push_back(made);
}

std::string Capture::unjoined() const {
  const Lane& origin = lanes_.front();
  for (const Lane& lane : lanes_) {
    auto own = lane.seen.find(lane.stream->id());
    int recorded = own == lane.seen.end() ? 0 : own->second;
    auto known = origin.seen.find(lane.stream->id());
    if (recorded > (known == origin.seen.end() ? 0 : known->second))
      return fmt::format("streams that were forked from stream {} must be joined, got stream {} unjoined: record an event on it and let stream {} wait for it",
                         origin.stream->id(), lane.stream->id(), origin.stream->id());
  }
  return {};
}

int Capture::recorded() const {
  std::lock_guard lock(mutex_);
  return static_cast<int>(nodes_.size());
}

std::vector<GraphWork> Capture::take() {
  std::lock_guard lock(mutex_);
  for (Lane& lane : lanes_) lane.last = -1, lane.seen.clear(), lane.waits.clear();
  return std::exchange(nodes_, {});
}

std::vector<std::shared_ptr<Storage>> Capture::living() const {
  std::vector<std::shared_ptr<Storage>> all;
  std::lock_guard lock(mutex_);
  for (const Memory& memory : memory_)
    if (std::shared_ptr<Storage> storage = memory.made ? memory.made->weak_from_this().lock() : nullptr) all.push_back(std::move(storage));
  return all;
}

bool Capture::reuse(const Storage& made, const Tensor& tensor) {
  std::lock_guard lock(mutex_);
  auto found = externals_.find(tensor.storage().get());
  if (found == externals_.end() || made.recording().get() != this) return false;
  const int to = found->second, from = made.recorded_buffer();
  const std::uint64_t begin = tensor.byte_offset(), end = begin + extent_bytes(tensor);
  bool written = false;
  for (const GraphWork& work : nodes_)
    for (const GraphUse& use : work.uses) written = written || use.buffer == from;
  if (!written) return false;
  bool begun = false;
  for (const GraphWork& work : nodes_) {
    for (const GraphUse& use : work.uses) begun = begun || use.buffer == from;
    for (const GraphUse& use : work.uses)
      if (begun && use.buffer == to && use.byte_offset < end && begin < use.byte_offset + use.bytes) return false;
  }
  for (GraphWork& work : nodes_)
    for (GraphUse& use : work.uses)
      if (use.buffer == from) use.buffer = to, use.byte_offset += begin;
  return true;
}

void Capture::drop() noexcept {
  std::vector<GraphWork> nodes;  // destroyed after the unlock, because the nodes may hold the last reference to a Storage
  std::vector<std::shared_ptr<Storage>> storages;
  std::lock_guard lock(mutex_);
  nodes.swap(nodes_);
  for (Memory& memory : memory_) {
    storages.push_back(std::move(memory.buffer.storage));
    memory.data.reset();
  }
  externals_.clear();
}

/// Removes uploads whose destination no other node writes: the destination becomes a constant, which replays need not copy.
void Capture::place_constants() {
  std::vector<int> writers(memory_.size(), 0);
  for (const GraphWork& work : nodes_)
    for (const GraphUse& use : work.uses)
      if (use.access != Argument::Kind::input) ++writers[static_cast<std::size_t>(use.buffer)];
  auto is_constant = [&](const GraphWork& work) {
    if (work.kind != GraphNodeKind::copy) return false;
    const Memory& from = memory_[static_cast<std::size_t>(work.uses[1].buffer)];
    const Memory& to = memory_[static_cast<std::size_t>(work.uses[0].buffer)];
    return from.data && to.in_capture && to.buffer.bytes == from.buffer.bytes && writers[static_cast<std::size_t>(work.uses[0].buffer)] == 1;
  };
  std::vector<int> renumbered(nodes_.size());
  std::vector<GraphWork> kept;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (is_constant(nodes_[i])) {
      Memory& from = memory_[static_cast<std::size_t>(nodes_[i].uses[1].buffer)];
      Memory& to = memory_[static_cast<std::size_t>(nodes_[i].uses[0].buffer)];
      to.buffer.kind = GraphBuffer::Kind::constant;
      to.data = std::move(from.data);
      from.buffer.kind = GraphBuffer::Kind::temporary;  // no node uses this buffer any more
      from.buffer.bytes = 0;
      renumbered[i] = kept.empty() ? -1 : static_cast<int>(kept.size()) - 1;
    } else {
      renumbered[i] = static_cast<int>(kept.size());
      kept.push_back(std::move(nodes_[i]));
    }
  }
  nodes_ = std::move(kept);
  for (GraphWork& work : nodes_) {
    for (int& before : work.after) before = renumbered[static_cast<std::size_t>(before)];
    std::erase(work.after, -1);
  }
}

void Capture::place_memory(GraphState& state) {
  RecordingExempt exempt;
  for (const Event& made : followed_) Stream(origin_).wait(made);
  if (!followed_.empty())
    if (ClEvent behind = origin_->last()) state.pending.push_back(std::move(behind));
  for (Memory& memory : memory_) {
    std::shared_ptr<Storage> living = memory.made ? memory.made->weak_from_this().lock() : nullptr;
    if (living) {
      living->place("Graph::capture_end");
      memory.buffer.storage = living;
      if (memory.buffer.kind == GraphBuffer::Kind::temporary) memory.buffer.kind = GraphBuffer::Kind::result;
    } else if (memory.data) {
      memory.buffer.storage = std::make_shared<Storage>(origin_, memory.buffer.bytes, "Graph::capture_end");
    }
    if (!memory.data) continue;
    const Storage& to = *memory.buffer.storage;
    cl_event event = nullptr;
    check_cl(clEnqueueWriteBuffer(origin_->queue(), to.mem(), CL_FALSE, to.offset(), memory.buffer.bytes, memory.data.get(), 0, nullptr, &event),
             "Graph::capture_end", "clEnqueueWriteBuffer");
    ClEvent written(event);
    if (clRetainEvent(event) == CL_SUCCESS) state.pending.emplace_back(event);
    origin_->submitted(std::move(written), "Graph::capture_end", memory.data);
  }
}

void Capture::finish(GraphState& state) {
  {
    std::lock_guard lock(mutex_);
    if (invalid_) throw Error(ErrorCode::capturing, "Graph::capture_end", fmt::format("{}: {}", invalid_->op(), invalid_->message()));
    if (std::string why = unjoined(); !why.empty()) throw Error(ErrorCode::capturing, "Graph::capture_end", why);
    place_constants();
  }
  // Without the lock: placing may release the last reference to a Storage, which takes the lock. over_ keeps other threads out meanwhile.
  place_memory(state);
  for (Memory& m : memory_) state.buffers.push_back(m.buffer);
  state.nodes = std::move(nodes_);
  state.arena = arena_;
  state.finish(origin_);
}

}}}  // namespace clutch::v0::detail
