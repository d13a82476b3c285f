// SPDX-License-Identifier: Apache-2.0
// compile(): finds the class of a call's arguments, and replays or records it.
#include <clutch/attention.hpp>
#include <clutch/compile.hpp>

#include "compile/recorder.hpp"
#include "graph/fused_backend.hpp"
#include "ops/flex_plan.hpp"
#include "runtime/op_name.hpp"
#include "runtime/settings.hpp"

#include <clutch/profiler.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <unordered_map>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

constexpr const char* kOp = "compile";
constexpr std::size_t kReasons = 32;

/// State of the thread and of its streams that chooses what a function does.
struct Surroundings {
  Stream stream;
  Device device;                     ///< the thread's current one
  const PartitionImpl* partition;    ///< that ops choose sizes for
  std::array<std::uint8_t, 2> sdpa;  ///< backends
};

template <class T>
void put(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put(std::string& key, const Dims& dims) {
  for (const std::int64_t n : dims) put(key, n);
}

/// Sizes and strides that dynamic dimensions change.
struct DynamicParts {
  bool any = false;
  std::vector<bool> dims;
};

}  // namespace

/// One class, at one choice of the dynamic dimensions' sizes.
struct CompiledEntry {
  CompiledClass facts;
  std::string key, family;
  std::uint64_t used = 0;
  std::unique_ptr<Part> root;
  int branches = 0;              ///< parts behind host reads
  std::vector<Outside> outside;  ///< of all parts
  std::vector<bool> written;     ///< regions, by any part
};

class CompiledState {
 public:
  explicit CompiledState(const CompileOptions& options) : options_(options) { report_.name = options.name; }

  bool call(CompiledFunction& function, const CompiledKey& key, CompiledOutcome& outcome);
  CompileReport explain() const;
  void reset();

 private:
  DynamicParts dynamic_of(std::size_t tensor, int rank) const;
  std::string key_of(const CompiledKey& key, const Arguments& arguments, const Surroundings& around, bool whole) const;
  std::vector<CompiledGuard> guards_of(CompiledFunction& function, const Arguments& arguments, const Surroundings& around) const;
  CompiledEntry& entry_of(CompiledFunction& function, const CompiledKey& key, const Arguments& arguments, const Surroundings& around);
  void make_room(const std::string& family);
  void evict(std::size_t index, std::string_view limit);
  bool run(CompiledFunction& function, CompiledEntry& entry, const Arguments& arguments, const Stream& stream, CompiledOutcome& outcome);
  bool record(CompiledFunction& function, CompiledEntry& entry, const Arguments& arguments, const Stream& stream, std::span<Part* const> path,
              std::span<const std::string> values, CompiledOutcome& outcome);
  bool run_eagerly(CompiledEntry& entry);
  void refuse(CompiledEntry& entry, const std::string& why);
  Stream capture_stream(const Stream& stream);
  PoolId pool_of(Runtime& runtime);
  void note(std::string reason);

  const CompileOptions options_;
  std::atomic<std::uint64_t> inline_calls_{0}, plain_calls_{0};
  mutable std::mutex mutex_;
  std::unordered_map<std::string, CompiledEntry*> by_key_;
  std::vector<std::unique_ptr<CompiledEntry>> entries_;
  std::uint64_t tick_ = 0;
  CompileReport report_;
  std::deque<std::string> reasons_;
  std::map<std::pair<Runtime*, const PartitionImpl*>, Stream> streams_;
  std::map<Runtime*, PoolId> pools_;
  Stream last_;  ///< of the last call: the graphs share memory, so no two calls overlap
};

namespace {

/// The one runtime of the tensors; that of the current device if there are none.
Runtime& runtime_of(std::span<const Tensor> tensors, bool& mixed) {
  Runtime* found = nullptr;
  for (const Tensor& t : tensors) {
    if (!t.defined()) continue;
    Runtime& its = t.storage()->runtime();
    if (found && found != &its) mixed = true;
    if (!found) found = &its;
  }
  return found ? *found : current_stream().impl()->runtime();
}

std::string sdpa_text(const std::array<std::uint8_t, 2>& order) {
  auto text = [](std::uint8_t backend) { return backend == static_cast<std::uint8_t>(attention::SdpaBackend::flash) ? "flash" : "math"; };
  return order[1] > 1 ? text(order[0]) : fmt::format("{}, {}", text(order[0]), text(order[1]));
}

}  // namespace

bool CompiledState::call(CompiledFunction& function, const CompiledKey& key, CompiledOutcome& outcome) {
  if (the_settings().compile.value == "off") {
    ++plain_calls_;
    return false;
  }
  bool mixed = false;
  Runtime& runtime = runtime_of(key.tensors, mixed);
  const Stream stream = resolve_stream({}, runtime, kOp);
  const bool unplaced = std::any_of(key.tensors.begin(), key.tensors.end(), [](const Tensor& t) { return t.defined() && t.storage()->unplaced(); });
  if (records_function() || stream.impl()->records() || unplaced) {
    ++inline_calls_;
    return false;
  }
  if (mixed) {
    ++plain_calls_;
    std::lock_guard lock(mutex_);
    note("a call ran without a graph: its tensors are of several devices");
    return false;
  }
  stream.impl()->check(kOp);
  const OpName named(kOp);
  const profiler::Range range(options_.name);
  const Arguments arguments(key.tensors);
  const Surroundings around{stream, current_device(), runtime.own_partition(), sdpa_backends()};
  std::lock_guard lock(mutex_);
  CompiledEntry& entry = entry_of(function, key, arguments, around);
  entry.used = ++tick_;
  ++entry.facts.calls;
  if (entry.facts.eager.empty() && !arguments.refusal.empty()) refuse(entry, arguments.refusal);
  if (!entry.facts.eager.empty() || entry.facts.calls <= static_cast<std::uint64_t>(options_.warm_ups)) return run_eagerly(entry);
  if (const int argument = conflict(arguments, entry.outside, entry.written); argument >= 0) {
    note(fmt::format("a call ran without a graph: tensor {} of the arguments shares memory, which is written, with a tensor that the function refers to",
                     argument));
    return run_eagerly(entry);
  }
  return run(function, entry, arguments, stream, outcome);
}

bool CompiledState::run_eagerly(CompiledEntry& entry) {
  ++entry.facts.eager_calls;
  ++report_.eager_calls;
  return false;
}

void CompiledState::refuse(CompiledEntry& entry, const std::string& why) {
  entry.facts.eager = why;
  entry.root.reset();
  entry.facts.parts = entry.facts.nodes = entry.facts.donated_bytes = 0;
  note(fmt::format("a class runs without a graph: {}", why));
}

namespace {

/// Replays. False, and nothing has run, if a first part's graph cannot have these arguments: they lie in too many buffers.
template <class F>
bool replays(F&& replay, bool is_first, std::string& why) {
  try {
    replay();
    return true;
  } catch (const Error& error) {
    if (!is_first || error.code() != ErrorCode::not_supported) throw;
    why = error.message();
    return false;
  }
}

}  // namespace

/// Replays parts as long as their host reads give values that are known.
bool CompiledState::run(CompiledFunction& function, CompiledEntry& entry, const Arguments& arguments, const Stream& stream, CompiledOutcome& outcome) {
  order_behind(stream, last_);
  last_ = stream;
  std::vector<Part*> path;
  std::vector<std::string> values;
  for (Part* part = entry.root.get(); part;) {
    if (!part->reads) {
      if (std::string why; !replays([&] { outcome.tensors = finish_call(*part, arguments, stream); }, path.empty(), why)) {
        note("a call ran without a graph: " + why);
        return run_eagerly(entry);
      }
      outcome.rest = part->rest;
      ++entry.facts.replays;
      ++report_.replays;
      return true;
    }
    if (std::string why; !replays([&] { replay_part(*part, arguments, {}, stream); }, path.empty(), why)) {
      note("a call ran without a graph: " + why);
      return run_eagerly(entry);
    }
    path.push_back(part);
    values.push_back(read_of(*part, arguments, stream));
    ++report_.breaks;
    const auto next = part->next.find(values.back());
    part = next == part->next.end() ? nullptr : next->second.get();
  }
  return record(function, entry, arguments, stream, path, values, outcome);
}

bool CompiledState::record(CompiledFunction& function, CompiledEntry& entry, const Arguments& arguments, const Stream& stream, std::span<Part* const> path,
                           std::span<const std::string> values, CompiledOutcome& outcome) {
  const CompiledRecorder::Setup setup{options_, arguments, stream, capture_stream(stream), pool_of(stream.impl()->runtime()), entry.outside, entry.written};
  std::string refused;
  {
    CompiledRecorder recorder(setup, entry.root, path, values);
    struct Kept {  // parts stay also where the function fails behind them
      CompiledState& state;
      CompiledEntry& entry;
      const CompiledRecorder& recorder;
      std::size_t regions;
      ~Kept() {
        entry.written.resize(regions);
        for (const Part* part : recorder.recorded()) {
          entry.outside.insert(entry.outside.end(), part->outside.begin(), part->outside.end());
          for (const Part::Input& input : part->inputs)
            if (input.written) entry.written[static_cast<std::size_t>(input.region)] = true;
          ++entry.facts.captures, ++entry.facts.parts, ++state.report_.captures;
          entry.facts.nodes += part->nodes;
          entry.facts.donated_bytes = std::max(entry.facts.donated_bytes, part->donated_bytes);
        }
        entry.branches += static_cast<int>(recorder.recorded().size());
        state.report_.breaks += static_cast<std::uint64_t>(recorder.breaks());
      }
    } kept{*this, entry, recorder, arguments.regions.size()};
    try {
      outcome = recorder.run(function);
    } catch (const Refusal& refusal) {
      ++report_.failures;
      refused = refusal.why;
      if (!path.empty() || !recorder.recorded().empty())
        throw Error(ErrorCode::not_supported, kOp, fmt::format("the function must be one that can be replayed behind a host read, got a refusal: {}", refused));
    } catch (...) {
      ++report_.failures;
      throw;
    }
  }
  if (!refused.empty()) {
    refuse(entry, refused);
    return run_eagerly(entry);
  }
  if (the_settings().compile.value == "log")
    log_line(LogLevel::warn, fmt::format("compile: {}: captured {} nodes: {}", options_.name, entry.facts.nodes, entry.facts.why));
  if (entry.branches > options_.max_branches + 1) refuse(entry, fmt::format("its host reads gave more than {} values", options_.max_branches));
  return true;
}

Stream CompiledState::capture_stream(const Stream& stream) {
  StreamImpl& impl = *stream.impl();
  Stream& made = streams_[{&impl.runtime(), impl.partition().get()}];
  if (made.empty()) made = Stream(impl.runtime().make_stream(StreamPriority::normal, impl.partition()));
  return made;
}

PoolId CompiledState::pool_of(Runtime& runtime) {
  PoolId& pool = pools_[&runtime];
  if (pool == PoolId{}) pool = new_pool();
  return pool;
}

DynamicParts CompiledState::dynamic_of(std::size_t tensor, int rank) const {
  DynamicParts parts;
  parts.dims.resize(static_cast<std::size_t>(rank));
  for (const DynamicDim& d : options_.dynamic) {
    if (d.tensor != static_cast<int>(tensor)) continue;
    const int dim = d.dim < 0 ? d.dim + rank : d.dim;
    if (dim < 0 || dim >= rank)
      throw Error(ErrorCode::invalid_argument, kOp, fmt::format("dynamic dimension {} of tensor {} must be one of its {}, got another", d.dim, tensor, rank));
    parts.any = parts.dims[static_cast<std::size_t>(dim)] = true;
  }
  return parts;
}

/// Bytes that are equal for calls of one class; unless `whole` without what dynamic dimensions change.
std::string CompiledState::key_of(const CompiledKey& key, const Arguments& arguments, const Surroundings& around, bool whole) const {
  std::string made;
  made.reserve(key.bytes.size() + 64 + 64 * key.tensors.size());
  StreamImpl& impl = *around.stream.impl();
  put(made, &impl.runtime());
  put(made, impl.partition().get());
  put(made, around.partition);
  put(made, around.device.index());
  put(made, around.sdpa);
  put(made, key.bytes.size());
  made += key.bytes;
  for (std::size_t i = 0; i < key.tensors.size(); ++i) {
    const Tensor& t = key.tensors[i];
    put(made, static_cast<std::uint8_t>(t.defined()));
    if (!t.defined()) continue;
    put(made, t.dtype());
    put(made, t.rank());
    if (const DynamicParts dynamic = whole ? DynamicParts{} : dynamic_of(i, t.rank()); dynamic.any) {
      for (int d = 0; d < t.rank(); ++d) put(made, dynamic.dims[static_cast<std::size_t>(d)] ? std::int64_t{-1} : t.sizes()[d]);
    } else {
      put(made, t.sizes());
      put(made, t.strides());
    }
    put(made, static_cast<std::uint8_t>(arguments.address(static_cast<int>(i)) % 16));
    const int region = arguments.region_of[i];
    const Region* at = region < 0 ? nullptr : &arguments.regions[static_cast<std::size_t>(region)];
    put(made, at ? at->first : static_cast<int>(i));
    put(made, at ? arguments.address(static_cast<int>(i)) - at->begin : std::uint64_t{0});
  }
  return made;
}

std::vector<CompiledGuard> CompiledState::guards_of(CompiledFunction& function, const Arguments& arguments, const Surroundings& around) const {
  const CompiledNames names = function.names();
  std::vector<CompiledGuard> guards;
  auto add = [&](std::string what, std::string value, bool dynamic = false) { guards.push_back({std::move(what), std::move(value), dynamic}); };
  for (const auto& [name, value] : names.values) add(name, value);
  for (std::size_t i = 0; i < arguments.tensors.size(); ++i) {
    const Tensor& t = arguments.tensors[i];
    const std::string& name = names.tensors[i];
    add(name + ": defined", t.defined() ? "true" : "false");
    if (!t.defined()) continue;
    const DynamicParts dynamic = dynamic_of(i, t.rank());
    add(name + ": dtype", std::string(clutch::name(t.dtype())));
    add(name + ": rank", std::to_string(t.rank()));
    for (int d = 0; d < t.rank(); ++d) add(fmt::format("{}: size {}", name, d), std::to_string(t.sizes()[d]), dynamic.dims[static_cast<std::size_t>(d)]);
    add(name + ": strides", t.is_contiguous() ? "contiguous" : to_string(t.strides()), dynamic.any);
    const int region = arguments.region_of[i];
    const int first = region < 0 ? -1 : arguments.regions[static_cast<std::size_t>(region)].first;
    if (first >= 0 && first != static_cast<int>(i))
      add(name + ": begins in the memory of " + names.tensors[static_cast<std::size_t>(first)],
          fmt::format("{} bytes", arguments.address(static_cast<int>(i)) - arguments.address(first)));
    else
      add(name + ": begins in the memory of", "no argument before it");
    add(name + ": begin, bytes past a multiple of 16", std::to_string(arguments.address(static_cast<int>(i)) % 16));
  }
  StreamImpl& impl = *around.stream.impl();
  add("device", Device(&impl.runtime().device()).selector() + (impl.runtime().adopted() ? " (an adopted context)" : ""));
  add("current device", around.device.selector());
  add("partition", around.partition || impl.partition() ? fmt::format("{}, {}", fmt::ptr(around.partition), fmt::ptr(impl.partition().get())) : "none");
  add("attention::SdpaBackends", sdpa_text(around.sdpa));
  return guards;
}

namespace {

/// Guards of `known` that do not hold for `given`, dynamic ones last.
std::vector<std::string> failed_guards(const std::vector<CompiledGuard>& known, const std::vector<CompiledGuard>& given, bool& dynamic_alone) {
  std::vector<std::string> failed, dynamic;
  auto find = [](const std::vector<CompiledGuard>& in, const std::string& what) {
    return std::find_if(in.begin(), in.end(), [&](const CompiledGuard& g) { return g.what == what; });
  };
  for (const CompiledGuard& g : known) {
    const auto other = find(given, g.what);
    if (other != given.end() && other->value == g.value) continue;
    (g.dynamic ? dynamic : failed).push_back(fmt::format("{} must be {}, got {}", g.what, g.value, other == given.end() ? "none" : other->value));
  }
  for (const CompiledGuard& g : given)
    if (find(known, g.what) == known.end()) failed.push_back(fmt::format("{} must not be there, got {}", g.what, g.value));
  dynamic_alone = failed.empty();
  failed.insert(failed.end(), dynamic.begin(), dynamic.end());
  return failed;
}

}  // namespace

CompiledEntry& CompiledState::entry_of(CompiledFunction& function, const CompiledKey& key, const Arguments& arguments, const Surroundings& around) {
  std::string whole = key_of(key, arguments, around, true);
  if (const auto found = by_key_.find(whole); found != by_key_.end()) return *found->second;
  auto entry = std::make_unique<CompiledEntry>();
  entry->key = std::move(whole);
  entry->family = key_of(key, arguments, around, false);
  entry->facts.guards = guards_of(function, arguments, around);
  if (entries_.empty() && report_.recompiles + report_.sizes + report_.evictions == 0) {
    entry->facts.why = "first call";
  } else {
    std::vector<std::string> nearest;
    bool of_family = false, first = true;
    for (const auto& known : entries_) {
      bool dynamic_alone = false;
      std::vector<std::string> failed = failed_guards(known->facts.guards, entry->facts.guards, dynamic_alone);
      const bool same_family = known->family == entry->family;
      if (first || std::pair(!same_family, failed.size()) < std::pair(!of_family, nearest.size())) nearest = std::move(failed), of_family = same_family;
      first = false;
    }
    entry->facts.why = entries_.empty()  ? "the classes before were evicted"
                       : nearest.empty() ? "a value of an argument differs that guards show as equal"
                                         : fmt::format("{}", fmt::join(nearest, "; "));
    ++(of_family ? report_.sizes : report_.recompiles);
    note(fmt::format("{}: {}", of_family ? "new size" : "recompiled", entry->facts.why));
  }
  make_room(entry->family);
  CompiledEntry& made = *entry;
  by_key_.emplace(made.key, &made);
  entries_.push_back(std::move(entry));
  return made;
}

/// Evicts so that one more entry of the family fits.
void CompiledState::make_room(const std::string& family) {
  std::map<std::string_view, std::uint64_t> families;  // by the last use of one of its entries
  int of_family = 0;
  for (const auto& entry : entries_) {
    std::uint64_t& used = families[entry->family];
    used = std::max(used, entry->used);
    of_family += entry->family == family;
  }
  if (of_family >= options_.max_sizes) {
    std::size_t oldest = entries_.size();
    for (std::size_t i = 0; i < entries_.size(); ++i)
      if (entries_[i]->family == family && (oldest == entries_.size() || entries_[i]->used < entries_[oldest]->used)) oldest = i;
    evict(oldest, "max_sizes");
  } else if (of_family == 0 && static_cast<int>(families.size()) >= options_.max_classes) {
    const auto oldest = std::min_element(families.begin(), families.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    const std::string gone(oldest->first);
    for (std::size_t i = entries_.size(); i-- > 0;)
      if (entries_[i]->family == gone) evict(i, "max_classes");
  }
}

void CompiledState::evict(std::size_t index, std::string_view limit) {
  by_key_.erase(entries_[index]->key);
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(index));
  ++report_.evictions;
  note(fmt::format("evicted the least recently used class: {} is {}", limit, limit == "max_sizes" ? options_.max_sizes : options_.max_classes));
}

void CompiledState::note(std::string reason) {
  if (the_settings().compile.value == "log") log_line(LogLevel::warn, fmt::format("compile: {}: {}", options_.name, reason));
  reasons_.push_back(std::move(reason));
  if (reasons_.size() > kReasons) reasons_.pop_front();
}

namespace {

/// Adds what replays of a part, and of those behind it, launch now.
void add_launches(const Part& part, CompiledClass& facts) {
  const GraphState& state = part.graph.program().state();
  const FusedBackend* fused = state.fused_backend();
  const bool fewer = fused && fused->is_chosen() && fused->fused() && !fused->replays_nodes();
  facts.launches += fewer ? fused->steps().size() : state.nodes.size();
  if (fewer) facts.groups += static_cast<std::uint64_t>(fused->groups());
  for (const auto& [read, next] : part.next)
    if (next) add_launches(*next, facts);
}

}  // namespace

CompileReport CompiledState::explain() const {
  std::lock_guard lock(mutex_);
  CompileReport report = report_;
  report.inline_calls = inline_calls_;
  report.eager_calls += plain_calls_;
  std::vector<const CompiledEntry*> order;
  for (const auto& entry : entries_) order.push_back(entry.get());
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->used > b->used; });
  for (const CompiledEntry* entry : order) {
    report.classes.push_back(entry->facts);
    if (entry->root) add_launches(*entry->root, report.classes.back());
  }
  report.calls = report.inline_calls + plain_calls_ + tick_;
  report.reasons.assign(reasons_.begin(), reasons_.end());
  return report;
}

void CompiledState::reset() {
  std::lock_guard lock(mutex_);
  by_key_.clear();
  entries_.clear();
  streams_.clear();
  pools_.clear();
  last_ = {};
  reasons_.clear();
  tick_ = inline_calls_ = plain_calls_ = 0;
  report_ = {};
  report_.name = options_.name;
}

CompiledFunction::~CompiledFunction() = default;

std::shared_ptr<CompiledState> make_compiled(const CompileOptions& options) {
  auto check = [](bool holds, std::string_view what, int got) {
    if (!holds) throw Error(ErrorCode::invalid_argument, kOp, fmt::format("{}, got {}", what, got));
  };
  check(options.warm_ups >= 0, "warm_ups must be at least 0", options.warm_ups);
  check(options.max_classes >= 1, "max_classes must be at least 1", options.max_classes);
  check(options.max_sizes >= 1, "max_sizes must be at least 1", options.max_sizes);
  check(options.max_branches >= 1, "max_branches must be at least 1", options.max_branches);
  for (const int number : options.donate) check(number >= 0, "a number of `donate` must be that of a tensor among the arguments", number);
  for (const DynamicDim& d : options.dynamic) check(d.tensor >= 0, "a number of `dynamic` must be that of a tensor among the arguments", d.tensor);
  if (options.graph.keep_graph) throw Error(ErrorCode::invalid_argument, kOp, "graph.keep_graph must be false, since calls replay at once, got true");
  const OpName named(kOp);
  const Graph check_backend(options.graph);
  return std::make_shared<CompiledState>(options);
}

bool call_compiled(CompiledState& state, CompiledFunction& function, const CompiledKey& key, CompiledOutcome& outcome) {
  return state.call(function, key, outcome);
}
CompileReport explain_compiled(const CompiledState& state) { return state.explain(); }
void reset_compiled(CompiledState& state) { state.reset(); }

}}}  // namespace clutch::v0::detail
