// SPDX-License-Identifier: Apache-2.0
#include "graph/state.hpp"

#include "graph/capture.hpp"
#include "graph/dependencies.hpp"
#include "graph/fused_backend.hpp"
#include "graph/measure.hpp"
#include "graph/number_type.hpp"
#include "runtime/host_task.hpp"
#include "runtime/last_launch.hpp"
#include "runtime/launch_check.hpp"
#include "runtime/profile_log.hpp"
#include "runtime/settings.hpp"
#include "runtime/tensor_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace clutch { inline namespace v0 { namespace detail {

std::string_view name(GraphBuffer::Kind kind) noexcept {
  switch (kind) {
    case GraphBuffer::Kind::external: return "external";
    case GraphBuffer::Kind::temporary: return "temporary";
    case GraphBuffer::Kind::result: return "result";
    default: return "constant";
  }
}

std::uint64_t set_arguments(const GraphWork& node, cl_kernel kernel) {
  std::uint64_t local = 0;
  for (std::size_t i = 0; i < node.bound.size(); ++i) {
    const BoundArgument& b = node.bound[i];
    auto position = static_cast<cl_uint>(i);
    cl_int status = CL_SUCCESS;
    switch (b.kind) {
      case BoundArgument::Kind::memory: status = clSetKernelArg(kernel, position, sizeof(cl_mem), &node.set[static_cast<std::size_t>(b.use)].mem); break;
      case BoundArgument::Kind::offset: status = clSetKernelArg(kernel, position, sizeof(cl_ulong), &node.set[static_cast<std::size_t>(b.use)].offset); break;
      case BoundArgument::Kind::bytes: status = clSetKernelArg(kernel, position, b.size, node.bytes.data() + b.at); break;
      case BoundArgument::Kind::local:
        status = clSetKernelArg(kernel, position, b.local, nullptr);
        local += b.local;
        break;
    }
    check_argument(status, position, *node.kernel, node.op);
  }
  return local;
}

GraphState::~GraphState() = default;

ClKernel GraphState::make_kernel(const GraphWork& node) const {
  ClKernel kernel(node.kernel->make_bare());
  set_arguments(node, kernel.get());
  return kernel;
}

void GraphState::find_lifetimes() {
  for (std::size_t n = 0; n < nodes.size(); ++n)
    for (const GraphUse& use : nodes[n].uses) {
      GraphBuffer& buffer = buffers[static_cast<std::size_t>(use.buffer)];
      if (buffer.first < 0) buffer.first = static_cast<int>(n);
      buffer.last = static_cast<int>(n);
      buffer.written = buffer.written || use.access != Argument::Kind::input;
    }
}

void GraphState::place_temporaries(const std::shared_ptr<StreamImpl>& stream) {
  std::vector<Lifetime> lifetimes;
  std::vector<GraphBuffer*> temporaries;
  for (GraphBuffer& buffer : buffers) {
    if (buffer.kind != GraphBuffer::Kind::temporary || buffer.first < 0) continue;
    lifetimes.push_back({buffer.bytes, buffer.first, buffer.last});
    temporaries.push_back(&buffer);
  }
  std::vector<Placement> places = arena->place(lifetimes, stream);
  for (std::size_t i = 0; i < places.size(); ++i) temporaries[i]->place = places[i];
}

void GraphState::finish(const std::shared_ptr<StreamImpl>& stream) {
  RecordingExempt exempt;
  origin = stream->id();
  home_ = stream;
  if (!pending.empty() && the_settings().check_streams.on()) seen_ = stream->clock();
  find_lifetimes();
  if (const FusedBackend* fused = fused_backend()) {
    // Before temporaries have places, so that none depends on another because it takes the other's place.
    find_dependencies(*this);
    for (const GraphWork& node : nodes) unplaced_after_.push_back(node.after);
    if (!fused->is_alone()) place_nodes(), find_dependencies(*this);
  } else {
    place_nodes();
    find_dependencies(*this);
  }
  backend_->end(GraphProgram(*this));
}

std::shared_ptr<StreamImpl> GraphState::home() const {
  if (std::shared_ptr<StreamImpl> stream = home_.lock()) return stream;
  return current_stream(Device(&runtime_.device())).impl();
}

FusedBackend* GraphState::fused_backend() const noexcept { return fused_of(*backend_); }

void GraphState::place_nodes() {
  if (placed_) return;
  place_temporaries(home());
  placed_ = true;
  if (instantiated_) bind_nodes();
}

void GraphState::take_memory(const GraphState& from) {
  RecordingExempt exempt;
  const std::shared_ptr<StreamImpl> stream = from.home();
  origin = from.origin, home_ = stream;
  arena = from.arena;
  buffers = from.buffers;
  for (GraphBuffer& buffer : buffers) {
    buffer.first = buffer.last = -1, buffer.written = false, buffer.place = {};
    // `from` owns the memory. A second owner would make compile() take it for memory that its function keeps.
    buffer.storage = std::shared_ptr<Storage>(std::shared_ptr<void>(), buffer.storage.get());
  }
  for (GraphWork& node : nodes) {
    for (std::size_t u = 0; u < node.uses.size(); ++u) {
      if (!node.holds_table(static_cast<int>(u))) continue;
      GraphUse& use = node.uses[u];
      GraphBuffer made{.kind = GraphBuffer::Kind::constant, .bytes = use.bytes};
      if (use.buffer >= 0) made = buffers[static_cast<std::size_t>(use.buffer)];
      made.storage = std::make_shared<Storage>(stream, made.bytes, "Graph::instantiate");
      use.buffer = static_cast<int>(buffers.size());
      buffers.push_back(std::move(made));
    }
  }
  find_lifetimes();
  place_nodes();
  for (GraphWork& node : nodes) node.after.clear();
  find_dependencies(*this);
}

GraphWork GraphWork::copy() const {
  GraphWork made;
  made.kind = kind, made.op = op, made.plan = plan, made.cost = cost, made.stream = stream;
  made.kernel = kernel, made.geometry = geometry;
  made.uses = uses, made.bound = bound, made.table = table, made.bytes = bytes, made.pattern = pattern;
  made.contents = contents, made.task = task, made.opaque = opaque;
  made.after = after, made.labels = labels, made.meaning = meaning;
  return made;
}

void GraphState::instantiate() {
  uses_.assign(buffers.size(), {});
  buffer_of_.clear();
  for (std::size_t b = 0; b < buffers.size(); ++b)
    if (buffers[b].storage) buffer_of_[buffers[b].storage.get()] = static_cast<int>(b);
  bind_nodes();
  for (std::size_t n = 0; n < nodes.size(); ++n)
    for (std::size_t u = 0; u < nodes[n].uses.size(); ++u)
      uses_[static_cast<std::size_t>(nodes[n].uses[u].buffer)].emplace_back(static_cast<int>(n), static_cast<int>(u));
  moved_.clear();
  GraphProgram program(*this);
  if (std::exchange(instantiated_, false)) backend_->reset();
  if (std::string reason = backend_->refuses(program); !reason.empty())
    throw Error(ErrorCode::not_supported, "Graph::instantiate", fmt::format("backend {} must accept the graph, got its refusal: {}", backend_name_, reason));
  backend_->instantiate(program);
  instantiated_ = true;
}

/// Sets the addresses of uses that have none yet, of temporaries only once they have places, and all arguments.
void GraphState::bind_nodes() {
  for (GraphWork& node : nodes) {
    const bool fresh = node.base.empty();
    node.base.resize(node.uses.size());
    node.set.resize(node.uses.size());
    for (std::size_t u = 0; u < node.uses.size(); ++u) {
      const GraphBuffer& buffer = buffers[static_cast<std::size_t>(node.uses[u].buffer)];
      const bool temporary = !buffer.storage;
      if (temporary ? placed_ && !node.base[u].mem : fresh) {
        const Storage& storage = temporary ? *arena->segment(buffer.place.segment) : *buffer.storage;
        node.base[u] = {storage.mem(), storage.offset() + buffer.place.offset + node.uses[u].byte_offset};
        node.set[u] = node.base[u];
      } else if (!instantiated_) {
        node.set[u] = node.base[u];
      }
    }
    if (!placed_) continue;
    if (node.table.first_base >= 0) resolve_table(node);
    if (node.kind == GraphNodeKind::kernel) set_arguments(node, node.object.get());
  }
}

namespace {

/// How the profiler is told of a node that replays.
ProfiledInfo info_of(const GraphWork& node, RecordKind kind, const char* call, std::uint32_t graph, std::uint32_t index) {
  return {.kind = kind,
          .call = call,
          .name = node.kernel ? node.kernel->name() : node.op,
          .plan = node.plan.c_str(),
          .geometry = node.kernel ? &node.geometry : nullptr,
          .cost = node.cost,
          .graph = graph,
          .node = index};
}

/// Enqueues a command and stores its event, or null where the stream wants none; false for a copy or fill of 0 bytes.
bool enqueue_command(const GraphWork& node, StreamImpl& stream, std::uint32_t graph, std::uint32_t index, ClEvent& stored) {
  cl_command_queue queue = stream.queue();
  cl_event event = nullptr;
  const ProfiledCommand profile;
  cl_event* wanted = profile ? &event : stream.event_of_next(event);
  auto enqueued = [&](cl_int status, RecordKind kind, const char* call) {
    check_cl(status, node.op, call);
    if (profile) [[unlikely]]
      profile.enqueued(stream, event, info_of(node, kind, call, graph, index));
  };
  if (node.kind == GraphNodeKind::kernel) {
    const LaunchSizes sizes(node.geometry);
    enqueued(clEnqueueNDRangeKernel(queue, node.object.get(), sizes.dims, nullptr, sizes.global, sizes.local_or_null(), 0, nullptr, wanted), RecordKind::kernel,
             "clEnqueueNDRangeKernel");
  } else if (node.kind == GraphNodeKind::copy && node.uses[1].bytes > 0) {
    enqueued(clEnqueueCopyBuffer(queue, node.set[1].mem, node.set[0].mem, node.set[1].offset, node.set[0].offset, node.uses[1].bytes, 0, nullptr, wanted),
             RecordKind::copy, "clEnqueueCopyBuffer");
  } else if (node.kind == GraphNodeKind::fill && node.uses[0].bytes > 0) {
    enqueued(clEnqueueFillBuffer(queue, node.set[0].mem, &node.pattern, 1, node.set[0].offset, node.uses[0].bytes, 0, nullptr, wanted), RecordKind::fill,
             "clEnqueueFillBuffer");
  } else {
    return false;
  }
  stored = ClEvent(event);
  return true;
}

void run_on_host(const GraphWork& node, StreamImpl& stream, std::uint32_t graph, std::uint32_t index) {
  if (node.kind == GraphNodeKind::opaque) {
    std::vector<Encoder::Place> places;
    for (const Address& at : node.set) places.push_back({at.mem, at.offset});
    const ProfiledCommand profile;
    ClEvent before = profile.marker(stream);
    node.opaque(stream.queue(), places);
    if (ClEvent mark = stream.mark(node.op)) {
      if (profile) profile.enqueued_behind(stream, std::move(before), mark.get(), info_of(node, RecordKind::opaque, "opaque task", graph, index));
      stream.submitted(std::move(mark), node.op);
    }
    return;
  }
  const ProfiledSpan profile(RecordKind::host_task, node.op, stream.id());
  std::vector<HostRange> ranges;
  for (std::size_t u = 0; u < node.uses.size(); ++u)
    ranges.push_back({node.set[u].mem, node.set[u].offset, node.uses[u].bytes, node.uses[u].access != Argument::Kind::input});
  run_host_task(stream, node.op, node.task, ranges);
}

/// Commands of a replay, which are handed to the stream at the end, also after one of them fails.
struct Batch {
  StreamImpl& stream;
  std::vector<StreamImpl::Submitted>& commands;
  ~Batch() { flush(); }
  void flush() {
    if (!commands.empty()) stream.submitted(commands);
    commands.clear();
  }
};

}  // namespace

void GraphState::enqueue(std::span<const GraphWork> work, const std::shared_ptr<StreamImpl>& stream) const {
  std::unique_lock<std::mutex> turn;  // released after the batch
  Batch batch{*stream, commands_};
  for (const GraphWork& node : work) {
    ClEvent event;
    const auto index = static_cast<std::uint32_t>(&node - nodes.data());
    if (!turn) turn = turn_of(*stream);
    if (node.kind == GraphNodeKind::host_task || node.kind == GraphNodeKind::opaque) {
      batch.flush();
      turn = {};  // since the work may use the partition's streams
      run_on_host(node, *stream, id_, index);
    } else if (enqueue_command(node, *stream, id_, index, event)) {
      batch.commands.push_back({std::move(event), node.op});
      if (node.kind == GraphNodeKind::kernel && node.kernel->first_launch(node.geometry)) stream->save_when_idle(&node.kernel->program());
    }
  }
}

std::uint32_t GraphState::next_id() noexcept {
  static std::atomic<std::uint32_t> last{0};
  return ++last;
}

void GraphState::note_labels() const {
  if (has_graph_labels(id_)) return;
  std::vector<std::vector<NodeLabel>> all(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].labels)
      for (const GraphLabel& label : *nodes[i].labels) all[i].push_back({label.name, label.values});
  set_graph_labels(id_, std::move(all));
}

void GraphState::follow(StreamImpl& stream) {
  if (stream.id() == origin) return;
  stream.learn(seen_);
  std::erase_if(pending, [](const ClEvent& event) { return is_done(event.get()); });
  if (pending.empty()) return;
  std::vector<cl_event> raw;
  for (const ClEvent& event : pending) raw.push_back(event.get());
  cl_event event = nullptr;
  check_cl(clEnqueueBarrierWithWaitList(stream.queue(), static_cast<cl_uint>(raw.size()), raw.data(), &event), "Graph::replay", "clEnqueueBarrierWithWaitList");
  stream.submitted(ClEvent(event), "Graph::replay");
}

void GraphState::replayed_on(StreamImpl& stream) {
  // A user's backend may enqueue commands that the stream does not know.
  ClEvent last = is_own_backend(backend_name_) ? stream.last() : stream.mark("Graph::replay");
  pending.clear();
  if (last) pending.push_back(std::move(last));
  origin = stream.id();
  if (the_settings().check_streams.on()) seen_ = stream.clock();
}

void GraphState::note_uses(const std::shared_ptr<StreamImpl>& stream) {
  for (const GraphBuffer& buffer : buffers)
    if (buffer.storage) buffer.storage->used_on(stream, buffer.written, "Graph::replay");
  for (const auto& storage : put_in_) storage->used_on(stream, true, "Graph::replay");
  for (int s = 0; s < arena->segments(); ++s) arena->segment(s)->used_on(stream, true, "Graph::replay");
}

void GraphState::replay(std::span<const Rebinding> rebindings, const Stream& given, const char* call, std::vector<double>* times) {
  Stream stream = resolve_stream(given, runtime_, call);
  if (illegal_on(*stream.impl(), call)) return;
  stream.impl()->check(call);
  const ProfiledOp profile(call);
  if (profiled() != 0) [[unlikely]]
    note_labels();
  if (!instantiated_) instantiate();
  std::vector<Move> moves = moves_of(rebindings, call);
  check_overlaps(moves, call);
  std::vector<std::pair<int, int>> moved;
  for (const Move& m : moves) moved.emplace_back(m.node, m.use);
  // Uses that the last replay alone rebound return to their base, unless this replay rebinds them too.
  for (auto [node, use] : moved_)
    if (std::find(moved.begin(), moved.end(), std::pair(node, use)) == moved.end())
      moves.push_back({node, use, nodes[static_cast<std::size_t>(node)].base[static_cast<std::size_t>(use)]});
  moved_.insert(moved_.end(), moved.begin(), moved.end());  // both lists until all are set, because a call below may fail
  apply(moves);
  moved_ = std::move(moved);
  if (FusedBackend* fused = fused_backend(); times != nullptr || (fused && fused->replays_nodes())) place_nodes();
  follow(*stream.impl());
  note_uses(stream.impl());  // before the first command that uses the memory, because a later one may fail
  for (const Rebinding& r : rebindings) r.bound.storage()->used_on(stream.impl(), true, call);
  stream.impl()->next_ticket();
  struct Replayed {  // also after a command failed, because those before it run
    GraphState& state;
    StreamImpl& stream;
    ~Replayed() { state.replayed_on(stream); }
  } replayed{*this, *stream.impl()};
  if (times != nullptr) {
    upload_tables(*stream.impl());
    measure_nodes(*this, stream, *times);
  } else {
    replay_by_backend(stream);
  }
  for (const GraphWork& node : nodes) last_launch().cost += node.cost;
  ++replays_;
}

void GraphState::replay_by_backend(const Stream& stream) {
  // Only the queue tells the times of each node; command buffers have one event for many.
  const bool by_node = (profiled() & kProfileGraphNodes) != 0 && is_own_backend(backend_name_);
  if (by_node) [[unlikely]]
    note_labels();
  upload_tables(*stream.impl());
  if (FusedBackend* fused = fused_backend(); by_node && !(fused && fused->is_chosen())) [[unlikely]]
    enqueue(nodes, stream.impl());
  else
    backend_->replay(GraphProgram(*this), stream);
}

void GraphState::end_moves() {
  for (const Move& m : moving_) nodes[static_cast<std::size_t>(m.node)].base[static_cast<std::size_t>(m.use)] = m.to;
  apply(moving_);
  moving_.clear();
}

void GraphState::set_values(GraphWork& node, const std::vector<unsigned char>& bytes) {
  if (node.bytes == bytes) return;
  node.bytes = bytes;
  if (node.kind == GraphNodeKind::kernel) set_arguments(node, node.object.get());
  const int changed[] = {static_cast<int>(&node - nodes.data())};
  backend_->changed(GraphProgram(*this), changed);
}

void GraphState::check_replacement(const Tensor& given, DType recorded, std::string_view op) const {
  if (!given.defined()) throw Error(ErrorCode::invalid_argument, op, "a tensor must be defined, got an undefined one");
  if (&given.storage()->runtime() != &runtime_)
    throw Error(ErrorCode::device_mismatch, op, "a tensor must be of the graph's device and context, got one of another");
  if (given.dtype() != recorded)
    throw Error(ErrorCode::invalid_dtype, op, fmt::format("the tensor must be {} as the captured one, got {}", name(recorded), name(given.dtype())));
}

std::vector<GraphState::Move> GraphState::moves_of(std::span<const Rebinding> rebindings, std::string_view op) {
  std::vector<Move> moves;
  for (const Rebinding& r : rebindings) {
    if (!r.captured.defined()) throw Error(ErrorCode::invalid_argument, op, "a tensor must be defined, got an undefined one");
    check_replacement(r.bound, r.captured.dtype(), op);
    if (!(r.captured.sizes() == r.bound.sizes()) || !r.captured.is_contiguous() || !r.bound.is_contiguous())
      throw Error(ErrorCode::invalid_shape, op,
                  fmt::format("both tensors must be contiguous and of one shape, got {} in the place of {}", to_string(r.bound.sizes()),
                              to_string(r.captured.sizes())));
    auto found = buffer_of_.find(r.captured.storage().get());
    if (found == buffer_of_.end()) throw Error(ErrorCode::invalid_argument, op, "a node must use the tensor that is to be replaced, got one that none uses");
    std::uint64_t begin = r.captured.byte_offset(), end = begin + r.captured.nbytes();
    std::size_t known = moves.size();
    for (auto [n, u] : uses_[static_cast<std::size_t>(found->second)]) {
      const GraphUse& use = nodes[static_cast<std::size_t>(n)].uses[static_cast<std::size_t>(u)];
      std::uint64_t first = use.byte_offset, last = first + use.bytes;
      if (last <= begin || first >= end) continue;
      if (first < begin || last > end)
        throw Error(ErrorCode::invalid_argument, op,
                    fmt::format("the tensor that is to be replaced must have all that node {} ({}) uses of its memory, bytes {} to {}, got bytes {} to {}", n,
                                nodes[static_cast<std::size_t>(n)].op, first, last, begin, end));
      moves.push_back({n, u, {r.bound.storage()->mem(), r.bound.storage()->offset() + r.bound.byte_offset() + (first - begin)}});
    }
    if (moves.size() == known) throw Error(ErrorCode::invalid_argument, op, "a node must use the tensor that is to be replaced, got one that none uses");
  }
  return moves;
}

void GraphState::check_overlaps(std::span<const Move> moves, std::string_view op) const {
  auto meet = [](const Address& a, std::uint64_t a_bytes, const Address& b, std::uint64_t b_bytes) {
    return a.mem == b.mem && a.offset < b.offset + b_bytes && b.offset < a.offset + a_bytes;
  };
  for (const Move& m : moves) {
    const GraphWork& node = nodes[static_cast<std::size_t>(m.node)];
    auto wanted = [&](std::size_t use) {
      for (const Move& other : moves)
        if (other.node == m.node && static_cast<std::size_t>(other.use) == use) return other.to;
      return node.base[use];
    };
    auto mine = static_cast<std::size_t>(m.use);
    for (std::size_t u = 0; u < node.uses.size(); ++u) {
      if (u == mine || (node.uses[u].access == Argument::Kind::input && node.uses[mine].access == Argument::Kind::input)) continue;
      Address other = wanted(u);
      bool met = meet(node.base[mine], node.uses[mine].bytes, node.base[u], node.uses[u].bytes);
      bool meets = meet(m.to, node.uses[mine].bytes, other, node.uses[u].bytes);
      if (met != meets || (met && node.base[mine].offset - node.base[u].offset != m.to.offset - other.offset))
        throw Error(ErrorCode::invalid_overlap, op,
                    fmt::format("the tensors of node {} ({}) must overlap as the captured ones do, got another overlap", m.node, node.op));
    }
  }
}

void GraphState::resolve_table(GraphWork& node) const {
  GraphTable& table = node.table;
  std::vector<Address> places;
  for (int use : table.entries) places.push_back(use < 0 ? Address{} : node.set[static_cast<std::size_t>(use)]);
  TableLayout layout = table_layout(places);
  if (layout.bases.size() > TensorTable::kBases)
    throw Error(ErrorCode::not_supported, node.op,
                fmt::format("the captured call's tensors must be in at most {} buffers, got {}", int{TensorTable::kBases}, layout.bases.size()));
  table.words = std::move(layout.words);
  for (std::size_t i = 0; i < TensorTable::kBases; ++i) {
    std::size_t base = i < layout.bases.size() ? i : 0;
    node.bound[static_cast<std::size_t>(table.first_base) + i].use = layout.bases.empty() ? table.use : table.entries[layout.bases[base]];
  }
  table.stale = true;
}

void GraphState::upload_tables(StreamImpl& stream) {
  for (GraphWork& node : nodes) {
    if (node.contents && !node.has_contents) {
      const auto turn = turn_of(stream);
      const Address& to = node.set.back();
      cl_event event = nullptr;
      check_cl(clEnqueueWriteBuffer(stream.queue(), to.mem, CL_FALSE, to.offset, node.contents->size(), node.contents->data(), 0, nullptr, &event), node.op,
               "clEnqueueWriteBuffer");
      stream.submitted(ClEvent(event), node.op, std::const_pointer_cast<std::vector<unsigned char>>(node.contents));
      node.has_contents = true;
    }
    if (!node.table.stale || !placed_) continue;
    auto words = std::make_shared<std::vector<std::uint64_t>>(node.table.words);
    const auto turn = turn_of(stream);
    const Address& to = node.set[static_cast<std::size_t>(node.table.use)];
    cl_event event = nullptr;
    check_cl(clEnqueueWriteBuffer(stream.queue(), to.mem, CL_FALSE, to.offset, words->size() * sizeof(std::uint64_t), words->data(), 0, nullptr, &event),
             node.op, "clEnqueueWriteBuffer");
    stream.submitted(ClEvent(event), node.op, words);
    node.table.stale = false;
  }
}

void GraphState::apply(std::span<const Move> moves) {
  std::vector<int> changed;
  for (const Move& m : moves) {
    GraphWork& node = nodes[static_cast<std::size_t>(m.node)];
    Address& set = node.set[static_cast<std::size_t>(m.use)];
    if (set == m.to) continue;
    set = {};  // a call below may fail and leave the argument undefined
    if (changed.empty() || changed.back() != m.node) changed.push_back(m.node);
    for (std::size_t i = 0; i < node.bound.size(); ++i) {
      const BoundArgument& b = node.bound[i];
      if (b.use != m.use) continue;
      bool memory = b.kind == BoundArgument::Kind::memory;
      check_cl(clSetKernelArg(node.object.get(), static_cast<cl_uint>(i), memory ? sizeof m.to.mem : sizeof m.to.offset,
                              memory ? static_cast<const void*>(&m.to.mem) : &m.to.offset),
               node.op, "clSetKernelArg");
    }
    set = m.to;
  }
  try {
    for (int n : changed) {
      GraphWork& node = nodes[static_cast<std::size_t>(n)];
      if (node.table.first_base < 0 || !placed_) continue;
      resolve_table(node);
      set_arguments(node, node.object.get());
    }
  } catch (...) {  // the tables are those of before, so that the next call must set all of it again
    for (const Move& m : moves) nodes[static_cast<std::size_t>(m.node)].set[static_cast<std::size_t>(m.use)] = {};
    throw;
  }
  if (!changed.empty()) backend_->changed(GraphProgram(*this), changed);
}

void GraphState::rebind(std::span<const Rebinding> rebindings) {
  if (!instantiated_) instantiate();
  std::vector<Move> moves = moves_of(rebindings, "Graph::rebind");
  check_overlaps(moves, "Graph::rebind");
  for (const Rebinding& r : rebindings) put_in_.push_back(r.bound.storage());
  for (const Move& m : moves) {
    nodes[static_cast<std::size_t>(m.node)].base[static_cast<std::size_t>(m.use)] = m.to;
    std::erase(moved_, std::pair(m.node, m.use));
  }
  apply(moves);
}

namespace {

/// Stores a number as one of an OpenCL type; false if the number does not fit. Floating numbers are rounded to narrower floating types.
template <class From>
bool store_number(From v, std::string_view type, unsigned char* to) {
  return with_number_type(type, false, [&]<class T>(T) {
    if constexpr (std::is_integral_v<T> && std::is_floating_point_v<From>) {
      // Bounds of T as doubles: the lower one is exact; the upper one is the power of two above the largest value.
      const double upper = std::ldexp(1.0, std::numeric_limits<T>::digits);
      auto wide = static_cast<double>(v);
      if (!(wide >= static_cast<double>(std::numeric_limits<T>::min()) && wide < upper) || wide != std::trunc(wide)) return false;
    } else if constexpr (std::is_integral_v<T>) {
      if (!std::in_range<T>(v)) return false;
    }
    T out = static_cast<T>(v);
    std::memcpy(to, &out, sizeof out);
    return true;
  });
}

bool convert_number(const Argument& from, std::string_view type, unsigned char* to) {
  return with_number_type(from.type, false, [&]<class T>(T v) {
    std::memcpy(&v, from.bytes, sizeof v);
    return store_number(+v, type, to);  // chars as numbers: promoted
  });
}

}  // namespace

void GraphState::update(int id, std::span<const Argument> arguments) {
  constexpr const char* kOp = "Graph::update";
  if (id < 0 || id >= static_cast<int>(nodes.size()))
    throw Error(ErrorCode::invalid_argument, kOp, fmt::format("the node must be in [0, {}), got {}", nodes.size(), id));
  if (!instantiated_) instantiate();
  GraphWork& node = nodes[static_cast<std::size_t>(id)];
  std::vector<std::string> names = argument_names(node);
  bool is_kernel = node.kind == GraphNodeKind::kernel;
  std::vector<Move> moves;
  std::vector<unsigned char> bytes = node.bytes;
  std::vector<std::size_t> values;
  std::vector<std::shared_ptr<Storage>> put_in;
  for (const Argument& a : arguments) {
    auto found = std::find(names.begin(), names.end(), a.name);
    if (*a.name == '\0' || found == names.end())
      throw Error(ErrorCode::invalid_argument, kOp,
                  fmt::format("the argument must be one of node {} ({}), got '{}'; there are: {}", id, node.op, a.name, fmt::join(names, " ")));
    auto at = static_cast<std::size_t>(found - names.begin());
    const BoundArgument* bound = is_kernel ? &node.bound[at] : nullptr;
    if (a.tensor) {
      if (bound && bound->kind != BoundArgument::Kind::memory)
        throw Error(ErrorCode::invalid_argument, kOp, fmt::format("argument {} must be a number, got a tensor", a.name));
      int u = bound ? bound->use : static_cast<int>(at);
      const GraphUse& use = node.uses[static_cast<std::size_t>(u)];
      check_replacement(*a.tensor, use.dtype, kOp);
      const Storage& storage = *a.tensor->storage();
      if (!(a.tensor->sizes() == use.sizes) || !(a.tensor->strides() == use.strides))
        throw Error(ErrorCode::invalid_shape, kOp,
                    fmt::format("{} must have the recorded sizes {} and strides {}, got {} and {}", a.name, to_string(use.sizes), to_string(use.strides),
                                to_string(a.tensor->sizes()), to_string(a.tensor->strides())));
      moves.push_back({id, u, {storage.mem(), storage.offset() + a.tensor->byte_offset()}});
      put_in.push_back(a.tensor->storage());
    } else {
      if (!bound || bound->kind != BoundArgument::Kind::bytes || *bound->type == '\0')
        throw Error(ErrorCode::invalid_argument, kOp, fmt::format("argument {} must be a tensor, got a number", a.name));
      if (!convert_number(a, bound->type, bytes.data() + bound->at))
        throw Error(ErrorCode::invalid_argument, kOp, fmt::format("argument {} must be a number that {} holds, got another", a.name, bound->type));
      values.push_back(at);
    }
  }
  check_overlaps(moves, kOp);
  auto set_values = [&](const std::vector<unsigned char>& from) {
    cl_int failed = CL_SUCCESS;
    for (std::size_t at : values)
      if (cl_int status = clSetKernelArg(node.object.get(), static_cast<cl_uint>(at), node.bound[at].size, from.data() + node.bound[at].at);
          status != CL_SUCCESS)
        failed = status;
    return failed;
  };
  if (cl_int status = set_values(bytes); status != CL_SUCCESS) {
    set_values(node.bytes);
    throw_cl(status, kOp, "clSetKernelArg");
  }
  node.bytes = std::move(bytes);
  node.updated = true;
  for (const Move& m : moves)
    if (!buffers[static_cast<std::size_t>(node.uses[static_cast<std::size_t>(m.use)].buffer)].storage) node.temporary_replaced = true;
  put_in_.insert(put_in_.end(), put_in.begin(), put_in.end());
  for (const Move& m : moves) {
    node.base[static_cast<std::size_t>(m.use)] = m.to;
    std::erase(moved_, std::pair(m.node, m.use));
  }
  apply(moves);
  const int changed[] = {id};
  if (!values.empty()) backend_->changed(GraphProgram(*this), changed);
}

}}}  // namespace clutch::v0::detail
