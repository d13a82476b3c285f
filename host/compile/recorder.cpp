// SPDX-License-Identifier: Apache-2.0
#include "compile/recorder.hpp"

#include "graph/capture.hpp"
#include "runtime/op_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

constexpr const char* kOp = "compile";

thread_local int t_records = 0;
struct Records {
  Records() noexcept { ++t_records; }
  ~Records() { --t_records; }
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;
};

const std::shared_ptr<Storage>& memory_of(const Tensor& tensor) { return tensor.storage()->stands_for() ? tensor.storage()->stands_for() : tensor.storage(); }

/// The storage of a buffer among those of a recorded graph, and its number; null if it has none there.
const GraphBuffer* buffer_of(const GraphState& state, const Storage* storage, int& number) {
  for (std::size_t b = 0; b < state.buffers.size(); ++b)
    if (state.buffers[b].storage.get() == storage) {
      number = static_cast<int>(b);
      return &state.buffers[b];
    }
  return nullptr;
}

[[noreturn]] void throw_other_calls() {
  throw Error(ErrorCode::invalid_argument, kOp,
              "the function must do the same for equal arguments and equal values of host reads, got other calls than before");
}

}  // namespace

bool records_function() noexcept { return t_records > 0; }

CompiledRecorder::CompiledRecorder(const Setup& setup, std::unique_ptr<Part>& root, std::span<Part* const> replayed, std::span<const std::string> values)
    : setup_(setup), slot_(&root), replayed_(replayed), values_(values) {}

CompiledRecorder::~CompiledRecorder() {
  if (graph_) graph_->capture_abandon();
  let_go();
}

/// Stand-ins have the arguments' memory by storages of their own, so that the recording tells them from tensors that the function refers to otherwise.
void CompiledRecorder::make_stand_ins() {
  std::map<const Storage*, std::shared_ptr<Storage>> by_storage;
  for (const Tensor& t : setup_.arguments.tensors) {
    if (!t.defined()) {
      stand_ins_.emplace_back();
      continue;
    }
    const std::shared_ptr<Storage>& storage = t.storage();
    std::shared_ptr<Storage>& stand_in = by_storage[storage.get()];
    if (!stand_in) stand_in = stand_in_for(storage);
    stand_ins_.emplace_back(stand_in, storage->offset() + t.byte_offset(), t.sizes(), t.strides(), t.dtype());
  }
}

std::shared_ptr<Capture> CompiledRecorder::capture() const { return std::static_pointer_cast<Capture>(setup_.capture.impl()->recording()); }

void CompiledRecorder::begin_part() {
  graph_.emplace(setup_.options.graph);
  graph_->capture_begin(setup_.capture, {.mode = CaptureMode::thread_local_, .pool = setup_.pool});
  if (setup_.options.graph_breaks == GraphBreaks::allowed) capture()->set_reads(this);
}

CompiledOutcome CompiledRecorder::run(CompiledFunction& function) {
  make_stand_ins();
  CompiledOutcome outcome;
  std::vector<Tensor> results;
  {
    const Records records;
    const Device device = current_device();
    const StreamGuard guard(setup_.capture);
    const DeviceGuard same(device);
    const GraphAnnotation label(setup_.options.name);
    begin_part();
    const NoOpName users;
    results = function.run(stand_ins_, outcome.rest);
  }
  if (!failed_.empty())
    throw Error(ErrorCode::invalid_argument, kOp,
                fmt::format("the function must pass on the error of its host read, got one that goes on after {} failed", failed_));
  if (!graph_) throw Error(ErrorCode::internal, kOp, "a part must be underway where the function ends, got none");
  if (followed_ < replayed_.size()) throw_other_calls();
  Part& last = end_part({}, nullptr, &results);
  last.rest = outcome.rest;
  results.clear();
  let_go();
  outcome.tensors = finish_call(last, setup_.arguments, setup_.stream);
  return outcome;
}

Part& CompiledRecorder::part_before() const { return followed_ > 0 && recorded_.empty() ? *replayed_[followed_ - 1] : *recorded_.back(); }

CompiledRecorder::Answer CompiledRecorder::begin(std::string_view call, const Tensor* tensor, void* destination) {
  if (std::this_thread::get_id() != thread_ || !graph_) return Answer::refuse;
  const NoOpName own;
  struct Broken {
    CompiledRecorder& recorder;
    std::string_view call;
    int exceptions = std::uncaught_exceptions();
    ~Broken() {
      if (std::uncaught_exceptions() > exceptions) recorder.failed(call);
    }
  } broken{*this, call};
  if (followed_ < replayed_.size()) {
    const std::string& value = values_[followed_];
    if (tensor && tensor->nbytes() != value.size()) throw_other_calls();
    follow_part(call);
    if (tensor && !value.empty()) std::memcpy(destination, value.data(), value.size());
    slot_ = &part_before().next[value];
    begin_part();
    return Answer::supplied;
  }
  Part& part = end_part(call, tensor, nullptr);
  replay_part(part, setup_.arguments, {}, setup_.stream);
  order_behind(setup_.capture, setup_.stream);
  ++breaks_;
  return Answer::run;
}

void CompiledRecorder::end(const Tensor* tensor, const void* data) {
  const NoOpName own;
  std::string value;
  if (tensor && tensor->nbytes() > 0) value.assign(static_cast<const char*>(data), tensor->nbytes());
  slot_ = &part_before().next[value];
  try {
    begin_part();
  } catch (...) {
    failed(part_before().call);
    throw;
  }
}

/// The function may catch the error, and what it enqueues then must not run: it goes to a recording that is invalid.
void CompiledRecorder::failed(std::string_view call) noexcept {
  try {
    failed_ = call;
    if (!capture()) begin_part();
    capture()->set_reads(nullptr);
    capture()->illegal(call, "the host reads before it must succeed, got one that failed");
  } catch (...) {  // thrown by illegal(); an error before it leaves a stream that nobody reads
  }
}

void CompiledRecorder::follow_part(std::string_view call) {
  Part& part = *replayed_[followed_];
  const std::shared_ptr<Capture> recording = capture();
  const std::vector<std::shared_ptr<Storage>> alive = recording->living();
  const bool same = part.call == call && std::equal(alive.begin(), alive.end(), part.alive.begin(), part.alive.end(),
                                                    [](const auto& a, const auto& b) { return a->bytes() == b->bytes(); });
  if (!same) throw_other_calls();
  for (std::size_t i = 0; i < alive.size(); ++i) alive[i]->stand_for(part.alive[i]);
  graph_->capture_abandon();
  graph_.reset();
  for (const auto& storage : part.alive) own_.insert(storage.get());
  ++followed_;
}

Part& CompiledRecorder::end_part(std::string_view call, const Tensor* tensor, std::vector<Tensor>* results) {
  std::shared_ptr<Capture> recording = capture();
  if (!recording) throw Error(ErrorCode::internal, kOp, "the recording must be underway, got one that has ended");
  std::vector<std::shared_ptr<Storage>> alive;
  if (results)
    donate(*results);
  else
    alive = recording->living();
  recording.reset();  // it would count as an owner of the results' memory
  graph_->capture_end();
  auto part = std::make_unique<Part>(std::move(*graph_));
  graph_.reset();
  note_memory(*part);
  if (results) {
    held_.clear();
    for (const Tensor& t : *results)
      if (t.defined()) ++held_[memory_of(t).get()];
    for (const Tensor& t : *results) part->results.push_back(origin_of(t, *part, true));
    part->donated_bytes = donated_bytes_;
  } else {
    part->reads = true;
    part->call = call;
    for (const auto& storage : alive) own_.insert(storage.get());
    part->alive = std::move(alive);
    if (tensor) part->read = origin_of(*tensor, *part, false);
  }
  note_kept_memory(*part);
  check_outside(*part);
  *slot_ = std::move(part);
  recorded_.push_back(slot_->get());
  return **slot_;
}

/// A conflict would give nodes hazards that the recording does not know of.
void CompiledRecorder::check_outside(const Part& part) const {
  std::vector<bool> written = setup_.written;
  written.resize(setup_.arguments.regions.size());
  std::vector<Outside> outside = setup_.outside;
  auto add = [&](const Part& p) {
    for (const Part::Input& input : p.inputs)
      if (input.written) written[static_cast<std::size_t>(input.region)] = true;
    outside.insert(outside.end(), p.outside.begin(), p.outside.end());
  };
  for (const Part* p : recorded_) add(*p);
  add(part);
  if (const int argument = conflict(setup_.arguments, outside, written); argument >= 0)
    throw Refusal{fmt::format("tensor {} of the arguments shares memory, which is written, with a tensor that the function refers to", argument)};
}

void CompiledRecorder::note_memory(Part& part) {
  const GraphState& state = part.graph.program().state();
  part.nodes = state.nodes.size();
  const Arguments& arguments = setup_.arguments;
  std::vector<int> input_of(arguments.regions.size(), -1);
  std::map<const Storage*, bool> is_stand_in;
  for (const Tensor& t : stand_ins_)
    if (t.defined()) is_stand_in[t.storage().get()] = true;
  std::map<std::pair<const Storage*, std::pair<std::uint64_t, std::uint64_t>>, bool> outside;
  for (const GraphWork& work : state.nodes)
    for (const GraphUse& use : work.uses) {
      const GraphBuffer& buffer = state.buffers[static_cast<std::size_t>(use.buffer)];
      if (use.bytes == 0 || buffer.kind != GraphBuffer::Kind::external) continue;
      const bool writes = use.access != Argument::Kind::input;
      const std::uint64_t begin = use.byte_offset, end = begin + use.bytes;
      if (!is_stand_in.contains(buffer.storage.get())) {
        bool& written = outside[{buffer.storage.get(), {begin, end}}];
        written = written || writes;
        continue;
      }
      int region = -1;
      for (std::size_t r = 0; r < arguments.regions.size() && region < 0; ++r) {
        const Region& at = arguments.regions[r];
        if (stand_ins_[static_cast<std::size_t>(at.first)].storage() == buffer.storage && at.begin <= begin && end <= at.end) region = static_cast<int>(r);
      }
      if (work.knows_memory) throw Refusal{fmt::format("{} is an opaque task without places, which cannot use the memory of other arguments", work.op)};
      if (region < 0) throw Refusal{fmt::format("{} uses elements past those of an argument", work.op)};
      int& input = input_of[static_cast<std::size_t>(region)];
      if (input < 0) {
        input = static_cast<int>(part.inputs.size());
        const Region& at = arguments.regions[static_cast<std::size_t>(region)];
        part.inputs.push_back({region, Tensor(buffer.storage, at.begin, {static_cast<std::int64_t>(at.end - at.begin)}, {1}, DType::u8)});
      }
      Part::Input& noted = part.inputs[static_cast<std::size_t>(input)];
      noted.written = noted.written || writes;
    }
  for (const auto& [where, written] : outside)
    part.outside.push_back({where.first->mem(), where.first->offset() + where.second.first, where.first->offset() + where.second.second, written});
}

/// Memory that was made in the recording and is kept, which a caller may get by a reused result, or by a tensor that the function keeps.
void CompiledRecorder::note_kept_memory(Part& part) {
  const GraphState& state = part.graph.program().state();
  for (const GraphBuffer& buffer : state.buffers) {
    if (!buffer.storage || buffer.first < 0 || (buffer.kind != GraphBuffer::Kind::result && buffer.kind != GraphBuffer::Kind::constant)) continue;
    const bool let_go = std::any_of(part.made.begin(), part.made.end(), [&](const Made& m) { return !m.copied && m.captured.storage() == buffer.storage; });
    if (let_go) continue;
    const std::uint64_t begin = buffer.storage->offset();
    part.outside.push_back({buffer.storage->mem(), begin, begin + buffer.bytes, buffer.written});
  }
}

int CompiledRecorder::made_of(const std::shared_ptr<Storage>& storage, Part& part) {
  for (std::size_t i = 0; i < part.made.size(); ++i)
    if (part.made[i].captured.storage() == storage) return static_cast<int>(i);
  const GraphState& state = part.graph.program().state();
  int number = -1;
  const GraphBuffer* buffer = buffer_of(state, storage.get(), number);
  Made made{.bytes = storage->bytes(), .captured = Tensor(storage, 0, {static_cast<std::int64_t>(storage->bytes())}, {1}, DType::u8)};
  const bool used = buffer && buffer->first >= 0;
  // Owners: the graph, the results, and the Tensor above. Another one is the function itself, whose tensor must keep its memory.
  const bool kept = storage.use_count() > 2 + held_[storage.get()];
  const bool is_result = buffer && buffer->kind == GraphBuffer::Kind::result;
  made.copied = !is_result || kept;
  made.bound = !made.copied && used && made.bytes > 0;
  part.made.push_back(std::move(made));
  return static_cast<int>(part.made.size()) - 1;
}

Origin CompiledRecorder::origin_of(const Tensor& t, Part& part, bool last) {
  Origin origin;
  origin.sizes = t.sizes(), origin.strides = t.strides(), origin.dtype = t.dtype();
  if (!t.defined()) return origin;
  const std::shared_ptr<Storage>& storage = memory_of(t);
  const std::uint64_t bytes = extent_bytes(t);
  const Arguments& arguments = setup_.arguments;
  bool of_argument = false;
  for (std::size_t i = 0; i < stand_ins_.size(); ++i) {
    if (!stand_ins_[i].defined() || stand_ins_[i].storage() != storage) continue;
    of_argument = true;
    const int region = arguments.region_of[i];
    const bool inside = region >= 0 && arguments.regions[static_cast<std::size_t>(region)].begin <= t.byte_offset() &&
                        t.byte_offset() + bytes <= arguments.regions[static_cast<std::size_t>(region)].end;
    if (!inside && bytes > 0) continue;
    origin.kind = Origin::Kind::argument;
    origin.index = static_cast<int>(i);
    if (inside || region < 0) origin.shift = static_cast<std::int64_t>(t.byte_offset()) - static_cast<std::int64_t>(stand_ins_[i].byte_offset());
    return origin;
  }
  if (const auto donated = donated_.find(storage); donated != donated_.end()) {
    origin.kind = Origin::Kind::argument;
    origin.index = donated->second;
    origin.shift = static_cast<std::int64_t>(t.byte_offset());
    return origin;
  }
  if (of_argument) throw Refusal{"a result, or a tensor that is read on the host, has elements past those of an argument"};
  int number = -1;
  const GraphBuffer* buffer = buffer_of(part.graph.program().state(), storage.get(), number);
  const bool own = own_.contains(storage.get()) || (buffer && buffer->kind != GraphBuffer::Kind::external);
  const bool reused = setup_.options.results == CompiledResults::reused && buffer && buffer->kind == GraphBuffer::Kind::result;
  if (!last || !own || reused) {
    origin.kind = Origin::Kind::kept;
    origin.kept = Tensor(storage, t.byte_offset(), t.sizes(), t.strides(), t.dtype());
    return origin;
  }
  origin.kind = Origin::Kind::made;
  origin.index = made_of(storage, part);
  origin.shift = static_cast<std::int64_t>(t.byte_offset());
  return origin;
}

/// Results take the memory of donated arguments before the graph is finished, so that it knows of all hazards.
void CompiledRecorder::donate(const std::vector<Tensor>& results) {
  if (setup_.options.results == CompiledResults::reused) return;
  for (const int number : setup_.options.donate) {
    if (number >= static_cast<int>(stand_ins_.size())) continue;
    const Tensor& argument = stand_ins_[static_cast<std::size_t>(number)];
    const int region = setup_.arguments.region_of[static_cast<std::size_t>(number)];
    if (region < 0 || setup_.arguments.regions[static_cast<std::size_t>(region)].tensors != 1 || !argument.is_contiguous() || argument.byte_offset() % 16 != 0)
      continue;
    const bool returned = std::any_of(results.begin(), results.end(), [&](const Tensor& t) { return t.defined() && t.storage() == argument.storage(); });
    if (returned) continue;
    for (const Tensor& result : results) {
      if (!result.defined() || donated_.contains(result.storage()) || result.storage()->bytes() > argument.nbytes()) continue;
      const auto held = std::count_if(results.begin(), results.end(), [&](const Tensor& t) { return t.defined() && t.storage() == result.storage(); });
      if (result.storage().use_count() > held) continue;  // the function keeps it
      if (!capture()->reuse(*result.storage(), argument)) continue;
      donated_.emplace(result.storage(), number);
      donated_bytes_ += result.storage()->bytes();
      break;
    }
  }
}

/// Gives back memory that replays never use: that of the arguments, and that of results that are made anew at each call.
void CompiledRecorder::let_go() noexcept {
  std::vector<std::shared_ptr<Storage>> stand_ins;
  for (const Tensor& t : stand_ins_)
    if (t.defined() && std::find(stand_ins.begin(), stand_ins.end(), t.storage()) == stand_ins.end()) stand_ins.push_back(t.storage());
  stand_ins_.clear();
  auto owners = [&](const std::shared_ptr<Storage>& storage) {
    long known = 1;
    int number = -1;
    for (const Part* part : recorded_) {
      if (buffer_of(part->graph.program().state(), storage.get(), number)) ++known;
      for (const Part::Input& input : part->inputs) known += input.captured.storage() == storage;
    }
    return known;
  };
  for (const auto& storage : stand_ins)
    if (storage.use_count() == owners(storage)) storage->let_go();  // else the function keeps an argument
  for (const Part* part : recorded_)
    for (const Made& made : part->made)
      if (!made.copied) made.captured.storage()->let_go();
  for (const auto& [storage, argument] : donated_) storage->let_go();
  donated_.clear();
}

}}}  // namespace clutch::v0::detail
