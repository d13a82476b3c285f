// SPDX-License-Identifier: Apache-2.0
// The hooks of the profiler: what threads have open, and the one log that they write to.
#include "runtime/profile_log.hpp"
#include "runtime/registry.hpp"
#include "runtime/runtime.hpp"
#include "support/system.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <utility>

#if defined(__x86_64__) && defined(__linux__)
#include <x86intrin.h>
#endif

namespace clutch { inline namespace v0 { namespace detail {

std::atomic<unsigned> g_profiled{0};

namespace {

struct ProfileState {
  std::mutex mutex;
  std::unique_ptr<ProfileLog> log;
  std::atomic<std::uint64_t> epoch{0};  ///< number of the profile, so that scopes of former ones are known
};
ProfileState& state() {
  static auto* one = new ProfileState;  // never destroyed: threads may run until the process ends
  return *one;
}

constexpr std::uint64_t kNoRecord = ~std::uint64_t{0};

/// A scope that is open on a thread.
struct Scope {
  const void* owner = nullptr;  ///< of ops
  std::uint64_t range = 0;      ///< of ranges: their number; 0: an op
  const char* name = "";
  std::uint64_t begin = 0, id = 0;
  std::uint64_t record = kNoRecord;  ///< ops are recorded once they do something
};

struct ThreadScopes {
  std::uint32_t number = 0;
  std::uint64_t epoch = 0;
  std::vector<Scope> open;
  std::vector<ProfiledOperand> operands;  ///< of the innermost op
  std::uint64_t facts = 0, facts_at = 0;  ///< the last ones that a range got, and when
};

constinit thread_local ThreadScopes* t_scopes = nullptr;
struct AtThreadEnd {
  ~AtThreadEnd() {
    if (!is_main_thread()) delete std::exchange(t_scopes, nullptr);  // the main thread's static objects may free memory later
  }
};

ThreadScopes& scopes() {
  if (!t_scopes) {
    t_scopes = new ThreadScopes;
    static thread_local const AtThreadEnd at_end;
    (void)at_end;
  }
  return *t_scopes;
}

std::atomic<std::uint32_t> g_threads{0};
std::atomic<std::uint64_t> g_ranges{0};

/// Forgets what the thread had open in a former profile.
void enter(ThreadScopes& mine, std::uint64_t epoch) {
  if (mine.epoch == epoch) [[likely]]
    return;
  if (mine.number == 0) mine.number = g_threads.fetch_add(1, std::memory_order_relaxed) + 1;
  mine.open.clear();
  mine.operands.clear();
  mine.facts = mine.facts_at = 0;
  mine.epoch = epoch;
}

// Commands whose times are read at once: their events stay in the driver until then, which has few of them in its caches.
constexpr std::size_t kDrainAt = 64, kDrained = 32;

/// The log and this thread's scopes while the lock is held; no log if nothing is recorded.
class Locked {
 public:
  Locked() : Locked(state()) {}
  /// Of a log and scopes of the caller's own.
  Locked(std::mutex& mutex, ProfileLog& log, ThreadScopes& mine) : lock_(mutex), log_(&log), mine_(mine) {}
  explicit operator bool() const noexcept { return log_ != nullptr; }
  ProfileLog& log() const noexcept { return *log_; }
  ThreadScopes& mine() const noexcept { return mine_; }

  /// Records the open ops that are not yet, outermost first. Returns the id of the innermost scope; 0: none.
  std::uint64_t parent() const {
    std::uint64_t outer = 0;
    for (Scope& scope : mine_.open) {
      if (scope.record == kNoRecord) {
        scope.id = log_->next_id();
        scope.record = log_->add({.kind = RecordKind::op, .thread = mine_.number, .name = scope.name, .id = scope.id, .parent = outer, .begin = scope.begin});
      }
      outer = scope.id;
    }
    return outer;
  }
  void close(Scope& scope, std::uint64_t now) const {
    if (scope.record == kNoRecord) return;
    ProfileRecord* record = log_->find(scope.record);
    if (!record || record->id != scope.id) return;
    record->end = now;
    record->finished = true;
    if (scope.range != 0 || mine_.operands.empty() || &scope != &mine_.open.back()) return;
    record->global = log_->keep_operands(mine_.operands);
    record->plan = log_->operands(record->global).shapes;
  }
  void drain(std::size_t at, std::size_t most) const {
    if (!log_->wants_drain(at)) return;
    const std::uint64_t began = host_now(), outer = parent();
    if (log_->drain(most) == 0) return;
    log_->add({.kind = RecordKind::overhead,
               .finished = true,
               .thread = mine_.number,
               .name = "Profiler reads times",
               .parent = outer,
               .begin = began,
               .end = host_now()});
  }

 private:
  explicit Locked(ProfileState& state) : lock_(state.mutex), log_(state.log.get()), mine_(scopes()) {
    if (log_) enter(mine_, state.epoch.load(std::memory_order_relaxed));
  }
  std::lock_guard<std::mutex> lock_;
  ProfileLog* log_;
  ThreadScopes& mine_;
};

/// Runs what may lack memory: then the event is missing.
template <class F>
void recording(F&& f) noexcept {
  try {
    f();
  } catch (const std::exception&) {
    return;
  }
}

std::uint32_t clamped(std::uint64_t n) { return static_cast<std::uint32_t>(std::min<std::uint64_t>(n, std::numeric_limits<std::uint32_t>::max())); }
std::uint16_t clamped16(std::uint64_t n) { return static_cast<std::uint16_t>(std::min<std::uint64_t>(n, std::numeric_limits<std::uint16_t>::max())); }

/// A command and its call on the host.
struct Enqueued {
  std::uint64_t stream = 0;
  std::uint16_t device = 0;
  std::uint64_t begin = 0, end = 0;  ///< of the call
  ClEvent event, before;
};

/// Records a command and its call.
void add_command(const Locked& locked, const ProfiledInfo& info, Enqueued command) {
  ProfileLog& log = locked.log();
  const std::uint64_t outer = locked.parent(), id = log.next_id();
  auto place = [&](RecordKind kind) -> ProfileRecord& {
    ProfileRecord& r = log.append();
    r.kind = kind, r.id = id, r.parent = outer, r.thread = locked.mine().number;
    r.stream = command.stream, r.device = command.device, r.graph = info.graph, r.node = info.node;
    return r;
  };
  if (log.options.what & kProfileHost) {
    ProfileRecord& call = place(RecordKind::call);
    call.name = info.call, call.begin = command.begin, call.end = command.end, call.finished = true;
  }
  if ((log.options.what & kProfileDevice) == 0) return;
  ProfileRecord& r = place(info.kind);
  r.name = info.name, r.plan = info.plan;
  // What a library enqueues may say of itself what it is.
  if (info.kind == RecordKind::opaque && locked.mine().facts_at >= command.begin) r.global = locked.mine().facts;
  if (const Geometry* g = info.geometry) {
    r.global = g->global, r.global_y = clamped(g->global_y), r.global_z = clamped(g->global_z);
    r.local = clamped(g->local), r.local_y = clamped16(g->local_y), r.local_z = clamped16(g->local_z);
  }
  r.flops = info.cost.flops, r.bytes = info.cost.bytes, r.is_f64 = 2 * info.cost.flops64 > info.cost.flops;
  if (command.event)
    log.add_pending(command.stream, log.last(), std::move(command.event), std::move(command.before), command.begin);
  else
    ++log.untimed;
  locked.drain(kDrainAt, kDrained);
}

/// Opens an op, without a lock: it is recorded once it does something.
void open_op(ThreadScopes& mine, const void* owner, const char* name) {
  // An Encoder of a public function has its name.
  if (!mine.open.empty() && mine.open.back().range == 0 && (mine.open.back().name == name || std::strcmp(mine.open.back().name, name) == 0)) return;
  mine.operands.clear();
  mine.open.push_back({.owner = owner, .name = name, .begin = host_now()});
}

/// Ends the innermost scope, an op.
void close_op(const Locked& locked, std::uint64_t now) {
  locked.close(locked.mine().open.back(), now);
  locked.mine().open.pop_back();
  locked.mine().operands.clear();
}

}  // namespace

namespace {

std::uint64_t steady_now() noexcept {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

#if defined(__x86_64__) && defined(__linux__)

/// The processor's counter and the clock at one time. The counter takes a third less to read, and a launch reads a time four or five times.
struct CounterAt {
  std::uint64_t counter = 0, ns = 0;
  static CounterAt now() noexcept {
    unsigned core = 0;
    const std::uint64_t before = __rdtscp(&core), ns = steady_now(), after = __rdtscp(&core);
    return {before + (after - before) / 2, ns};
  }
};
const CounterAt g_loaded = CounterAt::now();
/// Nanoseconds of a tick, times 2^32; 0: the clock is read.
std::atomic<std::uint64_t> g_tick{0};
CounterAt g_counted;  ///< from where ticks count; written before g_tick

/// Looks how fast the counter is, once, by the time since the library was loaded. Only where the system's own clock is that counter, which then is one for all
/// cores and never stands still.
void count_ticks() {
  std::string clock;
  std::ifstream("/sys/devices/system/clocksource/clocksource0/current_clocksource") >> clock;
  const CounterAt now = CounterAt::now();
  constexpr std::uint64_t kLeast = 20'000'000;  // ns: then a clock's 100 ns are 5 parts in a million
  if (clock != "tsc" || now.ns < g_loaded.ns + kLeast || now.counter <= g_loaded.counter) return;
  const double tick = std::ldexp(static_cast<double>(now.ns - g_loaded.ns) / static_cast<double>(now.counter - g_loaded.counter), 32);
  if (!(tick < 0x1p32)) return;  // so that products below have 64 bits
  g_counted = now;
  g_tick.store(static_cast<std::uint64_t>(tick), std::memory_order_release);
}

#else

void count_ticks() {}

#endif

}  // namespace

std::uint64_t host_now() noexcept {
#if defined(__x86_64__) && defined(__linux__)
  if (const std::uint64_t tick = g_tick.load(std::memory_order_acquire)) {
    unsigned core = 0;
    const std::uint64_t counter = __rdtscp(&core), ticks = counter > g_counted.counter ? counter - g_counted.counter : 0;
    return g_counted.ns + (ticks >> 32) * tick + ((ticks & 0xFFFFFFFF) * tick >> 32);
  }
#endif
  return steady_now();
}

void begin_profile(const ProfileLogOptions& options, std::string_view op) {
  std::lock_guard lock(state().mutex);
  if (state().log)
    throw Error(ErrorCode::invalid_argument, op, "no other profiler must record in the process, got a second one; stop() the first, or unset CLUTCH_PROFILE");
  static std::once_flag counted;
  std::call_once(counted, count_ticks);
  static std::once_flag watched;  // a lock that another thread had at a fork() stays locked in the child
  std::call_once(watched, [] { after_fork_in_child([] { g_profiled.store(0, std::memory_order_relaxed); }); });
  state().log = std::make_unique<ProfileLog>(options);
  state().log->start = host_now();
  state().log->ranges_before = g_ranges.load(std::memory_order_relaxed);
  ++state().epoch;
  g_profiled.store(options.what, std::memory_order_relaxed);
}

void restart_profile() noexcept {
  std::lock_guard lock(state().mutex);
  if (state().log) state().log->clear();
}

std::unique_ptr<ProfileLog> end_profile() noexcept {
  std::lock_guard lock(state().mutex);
  g_profiled.store(0, std::memory_order_relaxed);
  return std::move(state().log);
}

void begin_op(const void* owner, const char* name) noexcept {
  if (!(profiled() & kProfileHost)) return;
  recording([&] {
    ThreadScopes& mine = scopes();
    enter(mine, state().epoch.load(std::memory_order_relaxed));
    open_op(mine, owner, name);
  });
}

void end_op(const void* owner) noexcept {
  ThreadScopes& mine = scopes();
  if (mine.open.empty() || mine.open.back().owner != owner) return;
  if (mine.open.back().record == kNoRecord) {  // it did nothing
    mine.open.pop_back();
    return;
  }
  const std::uint64_t now = host_now();
  recording([&] {
    const Locked locked;
    if (locked && !locked.mine().open.empty()) close_op(locked, now);
  });
}

void note_operand(const Tensor& tensor) noexcept {
  recording([&] {
    ThreadScopes& mine = scopes();
    constexpr std::size_t kMost = 64;
    if (mine.operands.size() < kMost) mine.operands.push_back({tensor.sizes(), tensor.strides(), tensor.dtype()});
  });
}

std::uint64_t begin_range(std::string_view name) noexcept {
  std::uint64_t number = 0;
  recording([&] {
    const Locked locked;
    if (!locked || !(locked.log().options.what & kProfileHost)) return;
    const std::uint64_t outer = locked.parent(), id = locked.log().next_id(), now = host_now();
    const char* kept = locked.log().keep(name);
    const std::uint64_t record =
        locked.log().add({.kind = RecordKind::range, .thread = locked.mine().number, .name = kept, .id = id, .parent = outer, .begin = now});
    number = g_ranges.fetch_add(1, std::memory_order_relaxed) + 1;
    locked.mine().open.push_back({.range = number, .name = kept, .begin = now, .id = id, .record = record});
  });
  return number;
}

void set_range_facts(std::uint64_t number, ProfiledFacts facts) noexcept {
  recording([&] {
    const Locked locked;
    if (!locked || number <= locked.log().ranges_before) return;
    ThreadScopes& mine = locked.mine();
    const auto found = std::find_if(mine.open.begin(), mine.open.end(), [&](const Scope& s) { return s.range == number; });
    if (found == mine.open.end()) return;
    mine.facts = locked.log().keep_facts(std::move(facts)), mine.facts_at = host_now();
    if (ProfileRecord* record = locked.log().find(found->record); record && record->id == found->id) record->global = mine.facts;
  });
}

RangeEnd end_range(std::uint64_t number, std::string& innermost) noexcept {
  RangeEnd result = RangeEnd::ended;
  recording([&] {
    const Locked locked;
    if (!locked || number <= locked.log().ranges_before) return;  // a range of a former profile
    std::vector<Scope>& open = locked.mine().open;
    auto found = std::find_if(open.begin(), open.end(), [&](const Scope& s) { return s.range == number; });
    if (found == open.end()) {
      result = RangeEnd::not_here;
      return;
    }
    auto inner = std::find_if(open.rbegin(), open.rend(), [](const Scope& s) { return s.range != 0; });
    if (inner->range != number) {
      result = RangeEnd::not_innermost;
      innermost = inner->name;
    }
    const std::uint64_t now = host_now();
    const auto keep = static_cast<std::size_t>(found - open.begin());
    while (open.size() > keep) {
      locked.close(open.back(), now);
      open.pop_back();
    }
  });
  return result;
}

void note_problem(std::string_view text) noexcept {
  recording([&] {
    const Locked locked;
    if (locked && locked.log().problem.empty()) locked.log().problem = text;
  });
}

namespace {

void add_enqueued(const StreamImpl& stream, std::uint64_t begin, ClEvent before, ClEvent event, const ProfiledInfo& info) noexcept {
  const std::uint64_t end = host_now();
  Enqueued command{stream.id(), static_cast<std::uint16_t>(stream.runtime().device().index), begin, end, std::move(event), std::move(before)};
  recording([&] {
    const Locked locked;
    if (locked) add_command(locked, info, std::move(command));
  });
}

}  // namespace

void ProfiledCommand::note(const StreamImpl& stream, cl_event event, const ProfiledInfo& info) const noexcept {
  add_enqueued(stream, begin_, {}, retained(event), info);
}

void ProfiledCommand::enqueued_owned(const StreamImpl& stream, ClEvent event, const ProfiledInfo& info) const noexcept {
  if (begin_ != 0) add_enqueued(stream, begin_, {}, std::move(event), info);
}

ClEvent ProfiledCommand::marker(StreamImpl& stream) const noexcept { return begin_ == 0 ? ClEvent() : stream.mark("profiler"); }

void ProfiledCommand::enqueued_behind(const StreamImpl& stream, ClEvent before, cl_event event, const ProfiledInfo& info) const noexcept {
  if (begin_ != 0) add_enqueued(stream, begin_, std::move(before), retained(event), info);
}

void ProfiledSpan::note() const noexcept {
  const std::uint64_t end = host_now();
  recording([&] {
    const Locked locked;
    if (!locked) return;
    ProfileLog& log = locked.log();
    if (log.options.what & kProfileHost) {
      const std::uint64_t outer = locked.parent();
      log.add({.kind = kind_,
               .finished = true,
               .thread = locked.mine().number,
               .name = name_,
               .id = log.next_id(),
               .parent = outer,
               .stream = stream_,
               .begin = begin_,
               .end = end});
    }
    if (kind_ == RecordKind::sync) locked.drain(kDrained, 0);
  });
}

void note_mark(const StreamImpl& stream, cl_event event) noexcept {
  recording([&] {
    const Locked locked;
    if (!locked) return;
    const std::uint64_t now = host_now(), outer = locked.parent();
    locked.log().add({.kind = RecordKind::mark,
                      .finished = true,
                      .device = static_cast<std::uint16_t>(stream.runtime().device().index),
                      .thread = locked.mine().number,
                      .name = "Event::record",
                      .id = locked.log().next_id(),
                      .parent = outer,
                      .stream = stream.id(),
                      .begin = now,
                      .end = now,
                      .global = reinterpret_cast<std::uintptr_t>(event)});
  });
}

void note_wait(const ProfiledCommand& command, const StreamImpl& stream, cl_event barrier, cl_event event, std::uint64_t other) noexcept {
  if (!command) return;
  Geometry waited{.global = reinterpret_cast<std::uintptr_t>(event)};
  command.enqueued(stream, barrier,
                   {.kind = RecordKind::wait, .call = "clEnqueueBarrierWithWaitList", .name = "Stream::wait", .geometry = &waited, .graph = clamped(other)});
}

void note_memory(int device, std::uint64_t stream, const void* block, std::int64_t bytes, std::uint64_t allocated, std::uint64_t reserved) noexcept {
  recording([&] {
    const Locked locked;
    if (!locked || !(locked.log().options.what & kProfileMemory)) return;
    const std::uint64_t now = host_now(), outer = locked.parent();
    locked.log().add({.kind = RecordKind::memory,
                      .finished = true,
                      .device = static_cast<std::uint16_t>(device),
                      .thread = locked.mine().number,
                      .name = "[memory]",
                      .id = locked.log().next_id(),
                      .parent = outer,
                      .stream = stream,
                      .begin = now,
                      .end = now,
                      .queued = allocated,
                      .reserved = reserved,
                      .global = reinterpret_cast<std::uintptr_t>(block),
                      .bytes = static_cast<double>(bytes)});
  });
}

bool has_graph_labels(std::uint32_t graph) noexcept {
  std::lock_guard lock(state().mutex);
  return !state().log || state().log->graph_labels.contains(graph);
}

void set_graph_labels(std::uint32_t graph, std::vector<std::vector<NodeLabel>> labels) noexcept {
  recording([&] {
    std::lock_guard lock(state().mutex);
    if (state().log) state().log->graph_labels.insert_or_assign(graph, std::move(labels));
  });
}

double measure_profile_cost() {
  constexpr int kTries = 5, kLaunches = 500;
  constexpr const char* kName = "cost";
  std::mutex mutex;
  ThreadScopes mine{.number = 1};
  const Geometry geometry{.global = 1};
  const ProfiledInfo info{.kind = RecordKind::kernel, .call = kName, .name = kName, .geometry = &geometry};
  double least = 0;
  for (int i = 0; i < kTries; ++i) {
    ProfileLog log({.max_events = 4096});
    const std::uint64_t began = host_now();
    for (int launch = 0; launch < kLaunches; ++launch) {
      // The hooks of an op that launches one kernel. Its event is read by drain(), whose time is measured as it goes.
      open_op(mine, &log, kName);
      open_op(mine, &mine, kName);  // of its Encoder
      const std::uint64_t begin = host_now(), end = host_now();
      add_command(Locked(mutex, log, mine), info, {.begin = begin, .end = end});
      const std::uint64_t now = host_now();
      close_op(Locked(mutex, log, mine), now);
    }
    const double each = static_cast<double>(host_now() - began) / kLaunches;
    least = i == 0 ? each : std::min(least, each);
  }
  return least;
}

}}}  // namespace clutch::v0::detail
