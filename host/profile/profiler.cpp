// SPDX-License-Identifier: Apache-2.0
#include <clutch/profiler.hpp>

#include "profile/profile.hpp"
#include "runtime/recorder.hpp"
#include "runtime/settings.hpp"
#include "support/system.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <exception>
#include <mutex>

namespace clutch { inline namespace v0 { namespace profiler {

std::string_view name(ProfilerAction action) noexcept {
  switch (action) {
    case ProfilerAction::none: return "none";
    case ProfilerAction::warmup: return "warmup";
    case ProfilerAction::record: return "record";
    default: return "record_and_save";
  }
}

std::string_view name(IdleGap::Cause cause) noexcept {
  switch (cause) {
    case IdleGap::Cause::host_bound: return "host_bound";
    case IdleGap::Cause::queue_empty: return "queue_empty";
    case IdleGap::Cause::event: return "event";
    default: return "launch";
  }
}

ProfilerAction Schedule::operator()(std::int64_t step) const {
  if (step < 0 || wait < 0 || warmup < 0 || active < 1 || repeat < 0 || skip_first < 0 || skip_first_wait < 0)
    throw Error(ErrorCode::invalid_argument, "profiler::Schedule",
                fmt::format("active must be at least 1 and the step and other numbers at least 0, got step {}, wait {}, warmup {}, active {}, repeat {}, "
                            "skip_first {}, skip_first_wait {}",
                            step, wait, warmup, active, repeat, skip_first, skip_first_wait));
  if (step < skip_first) return ProfilerAction::none;
  step -= skip_first;
  if (skip_first_wait != 0) step += wait;
  const std::int64_t cycle = std::int64_t{wait} + warmup + active;
  if (repeat > 0 && step / cycle >= repeat) return ProfilerAction::none;
  const std::int64_t at = step % cycle;
  if (at < wait) return ProfilerAction::none;
  if (at < std::int64_t{wait} + warmup) return ProfilerAction::warmup;
  return at < cycle - 1 ? ProfilerAction::record : ProfilerAction::record_and_save;
}

Range::Range(std::string_view name) {
  if (detail::profiled() != 0) [[unlikely]] {
    number_ = detail::begin_range(name);
    name_ = name;
  }
  if (detail::recording_underway()) [[unlikely]]
    annotation_ = std::make_unique<GraphAnnotation>(name);
}

Range::Range(std::string_view name, const RangeFacts& facts) : Range(name) { set_facts(facts); }

namespace {

std::string json_of(const RangeFacts::Value& value) {
  return std::visit([](const auto& v) { return nlohmann::json(v).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); }, value);
}

}  // namespace

void Range::set_facts(const RangeFacts& facts) noexcept {
  if (number_ == 0) return;
  try {
    detail::ProfiledFacts kept{.arguments = {}, .op_name = facts.op_name, .command_name = facts.command_name};
    for (const auto& [key, value] : facts.arguments) kept.arguments.emplace_back(key, json_of(value));
    detail::set_range_facts(number_, std::move(kept));
  } catch (const std::exception&) {
    return;  // without memory the event has none
  }
}

bool recording() noexcept { return (detail::profiled() & detail::kProfileHost) != 0; }

void set_trace_member(const std::string& key, const std::string& json) {
  if (!nlohmann::json::accept(json))
    throw Error(ErrorCode::invalid_argument, "profiler::set_trace_member", fmt::format("the value of {} must be JSON, got {}", key, json));
  detail::TraceMembers& members = detail::trace_members();
  const std::lock_guard lock(members.mutex);
  members.of[key] = json;
}

std::string Range::close() noexcept {
  annotation_.reset();
  const std::uint64_t number = std::exchange(number_, 0);
  if (number == 0) return {};
  std::string inner;
  switch (detail::end_range(number, inner)) {
    case detail::RangeEnd::ended: return {};
    case detail::RangeEnd::not_innermost:
      return fmt::format("a range must end behind those that began within it, got the end of '{}' while '{}' is open", name_, inner);
    default: return fmt::format("a range must end on the thread that began it, and once, got the end of '{}', which is not open on this thread", name_);
  }
}

void Range::end() {
  if (const std::string problem = close(); !problem.empty()) throw Error(ErrorCode::invalid_argument, "profiler::Range::end", problem);
}

Range::~Range() {
  if (number_ == 0 && !annotation_) return;
  if (const std::string problem = close(); !problem.empty()) detail::note_problem(problem);
}

struct Profiler::State {
  explicit State(const ProfilerOptions& of) : options(of) {}
  const ProfilerOptions options;
  ProfilerAction action = ProfilerAction::none;
  std::int64_t step = 0;
  std::uint64_t step_range = 0;
  double command_cost_ns = 0;
  bool running = false;
  bool logging = false;  ///< the process's log is this profiler's
  std::vector<std::pair<std::string, std::string>> metadata;
  std::unique_ptr<detail::ProfileLog> ended;  ///< the trace that ended last, until need() makes `last` of it
  std::vector<std::pair<std::string, std::string>> ended_metadata;
  std::shared_ptr<const detail::Profile> last;
  std::mutex reading;   ///< guards the three, since const functions may run side by side
  std::string problem;  ///< of the trace that ended last

  ProfilerAction action_of(std::int64_t at) const { return options.schedule ? options.schedule(at) : ProfilerAction::record; }
  void begin_step() {
    if (options.schedule && logging) step_range = detail::begin_range(fmt::format("ProfilerStep#{}", step));
  }
  void end_step() {
    const std::uint64_t number = std::exchange(step_range, 0);
    if (number == 0) return;
    std::string inner;
    if (detail::end_range(number, inner) == detail::RangeEnd::not_innermost)
      detail::note_problem(fmt::format("a range must end within the step that it began in, got '{}', which was open at the end of step {}", inner, step));
  }
  void begin_log(std::string_view op);
  void end_log(bool wait);
  /// From the present action to the next one. Returns true if a trace is ready.
  bool to(ProfilerAction next, std::string_view op);
  bool finish(bool wait, std::string_view op);
  void throw_problem(std::string_view op) {
    if (const std::string text = std::exchange(problem, {}); !text.empty()) throw Error(ErrorCode::invalid_argument, op, text);
  }
  /// The trace that ended last. Made when it is first read, because sorting it costs a good part of recording it.
  const detail::Profile& need() {
    const std::lock_guard lock(reading);
    if (ended) {
      std::shared_ptr<detail::Profile> profile = detail::make_profile(std::move(ended), options.roof);
      profile->metadata = std::move(ended_metadata);
      profile->command_cost_ns = command_cost_ns;
      last = std::move(profile);
    }
    static const auto& empty =
        *new std::shared_ptr<const detail::Profile>(detail::make_profile(std::make_unique<detail::ProfileLog>(detail::ProfileLogOptions{}), {}));
    return last ? *last : *empty;
  }
};

void Profiler::State::begin_log(std::string_view op) {
  detail::ProfileLogOptions log{.what = 0, .max_events = static_cast<std::size_t>(options.max_events)};
  if (options.cpu_activity) log.what |= detail::kProfileHost;
  if (options.device_activity) log.what |= detail::kProfileDevice;
  if (options.profile_memory) log.what |= detail::kProfileMemory;
  if (options.record_shapes) log.what |= detail::kProfileShapes;
  if (options.device_activity && options.graph_nodes) log.what |= detail::kProfileGraphNodes;
  detail::begin_profile(log, op);
  logging = true;
}

void Profiler::State::end_log(bool wait) {
  if (!std::exchange(logging, false)) return;
  const std::uint64_t now = detail::host_now();
  std::unique_ptr<detail::ProfileLog> log = detail::end_profile();
  if (!log) return;
  if (wait)
    log->wait();
  else
    log->drain(0);
  log->end(now);
  problem = log->problem;
  const std::lock_guard lock(reading);
  last = nullptr;
  ended = std::move(log);
  ended_metadata = metadata;
}

bool Profiler::State::to(ProfilerAction next, std::string_view op) {
  using enum ProfilerAction;
  const ProfilerAction now = std::exchange(action, next);
  const bool records_now = now == record || now == record_and_save, records_next = next == record || next == record_and_save;
  const bool ends = now == record_and_save || (records_now && !records_next) || (now == warmup && next == none);
  if (ends && now != record_and_save)
    detail::log_line(LogLevel::warn,
                     fmt::format("profiler: {} should be followed by record or record_and_save, got {}: the trace is ended", name(now), name(next)));
  if (ends) {
    if (now == warmup) detail::restart_profile();
    end_log(true);
  }
  if (next != none && !logging)
    begin_log(op);
  else if (now == warmup && records_next)
    detail::restart_profile();
  return ends && now == record_and_save;
}

bool Profiler::State::finish(bool wait, std::string_view) {
  const ProfilerAction now = std::exchange(action, ProfilerAction::none);
  running = false;
  if (now == ProfilerAction::warmup) detail::restart_profile();
  end_log(wait);
  return now == ProfilerAction::record || now == ProfilerAction::record_and_save;
}

Profiler::Profiler(const ProfilerOptions& options) : state_(std::make_unique<State>(options)) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  if (options.max_events < 1 || options.max_events > kMost)
    throw Error(ErrorCode::invalid_argument, "profiler::Profiler", fmt::format("max_events must be in [1, {}], got {}", kMost, options.max_events));
  if (!options.cpu_activity && !options.device_activity && !options.profile_memory)
    throw Error(ErrorCode::invalid_argument, "profiler::Profiler", "one of cpu_activity, device_activity and profile_memory must be on, got none");
}

Profiler::~Profiler() {
  if (!state_->running || detail::forked()) return;
  state_->end_step();
  if (state_->logging) detail::end_profile();
}

void Profiler::start() {
  constexpr const char* kOp = "profiler::Profiler::start";
  detail::check_process(kOp);
  if (state_->running) throw Error(ErrorCode::invalid_argument, kOp, "the profiler must not record yet, got one that does; stop() comes first");
  const ProfilerAction first = state_->action_of(0);
  if (state_->command_cost_ns <= 0) state_->command_cost_ns = detail::measure_profile_cost();
  state_->step = 0;
  state_->action = ProfilerAction::none;
  state_->to(first, kOp);
  state_->running = true;
  state_->begin_step();
}

void Profiler::stop() {
  constexpr const char* kOp = "profiler::Profiler::stop";
  detail::check_process(kOp);
  if (!state_->running) throw Error(ErrorCode::invalid_argument, kOp, "the profiler must record, got one that does not; start() comes first");
  const bool wait = !detail::illegal_beside(kOp);
  state_->end_step();
  const bool ready = state_->finish(wait, kOp);
  if (ready && state_->options.on_trace_ready) state_->options.on_trace_ready(*this);
  state_->throw_problem(kOp);
}

void Profiler::step() {
  constexpr const char* kOp = "profiler::Profiler::step";
  detail::check_process(kOp);
  if (!state_->running) throw Error(ErrorCode::invalid_argument, kOp, "the profiler must record, got one that does not; start() comes first");
  const ProfilerAction next = state_->action_of(state_->step + 1);
  if (state_->action == ProfilerAction::record_and_save && detail::illegal_beside(kOp)) return;
  state_->end_step();
  ++state_->step;
  // The next trace begins behind on_trace_ready, so that what that does is in none.
  const bool saves = state_->action == ProfilerAction::record_and_save;
  if (saves) {
    state_->to(ProfilerAction::none, kOp);
    if (state_->options.on_trace_ready) state_->options.on_trace_ready(*this);
  }
  state_->to(next, kOp);
  state_->begin_step();
  state_->throw_problem(kOp);
}

std::int64_t Profiler::step_num() const noexcept { return state_->step; }
ProfilerAction Profiler::current_action() const noexcept { return state_->action; }

void Profiler::add_metadata(const std::string& key, const std::string& value) {
  state_->metadata.emplace_back(key, nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void Profiler::add_metadata_json(const std::string& key, const std::string& json) {
  if (!nlohmann::json::accept(json))
    throw Error(ErrorCode::invalid_argument, "profiler::Profiler::add_metadata_json", fmt::format("the value of {} must be JSON, got {}", key, json));
  state_->metadata.emplace_back(key, json);
}

std::vector<FunctionEvent> Profiler::events() const { return detail::profile_events(state_->need()); }
std::vector<KeyAverage> Profiler::key_averages(const KeyAverageOptions& options) const { return detail::profile_averages(state_->need(), options); }
std::string Profiler::table(const TableOptions& options) const { return detail::profile_table(state_->need(), options); }
std::vector<IdleGap> Profiler::idle_gaps(double least_us) const { return detail::profile_gaps(state_->need(), least_us); }
ProfileTotals Profiler::totals() const { return state_->need().totals(); }
void Profiler::export_chrome_trace(const std::string& path, const TraceOptions& options) const { detail::write_trace(state_->need(), path, options); }
void Profiler::export_html(const std::string& path) const { detail::write_html(state_->need(), path); }
void Profiler::export_kernel_annotations(const std::string& path) const { detail::write_annotations(state_->need(), path); }

}}}  // namespace clutch::v0::profiler

namespace clutch { inline namespace v0 { namespace detail {

TraceMembers& trace_members() {
  static auto* one = new TraceMembers;
  return *one;
}

namespace {

/// The profile of CLUTCH_PROFILE, which lives as long as the process.
struct EnvironmentProfile {
  std::string path;
  profiler::Profiler* profiler = nullptr;
};
EnvironmentProfile& environment_profile() {
  static auto* one = new EnvironmentProfile;
  return *one;
}

void save_environment_profile() noexcept {
  if (forked()) return;
  EnvironmentProfile& mine = environment_profile();
  try {
    mine.profiler->stop();
  } catch (const std::exception& e) {
    log_line(LogLevel::warn, fmt::format("CLUTCH_PROFILE: {}", e.what()));
  }
  try {
    if (mine.path.ends_with(".html"))
      mine.profiler->export_html(mine.path);
    else
      mine.profiler->export_chrome_trace(mine.path);
    log_line(LogLevel::info, fmt::format("CLUTCH_PROFILE: wrote {}", mine.path));
  } catch (const std::exception& e) {
    log_line(LogLevel::error, fmt::format("CLUTCH_PROFILE: {}", e.what()));
  }
}

}  // namespace

void start_environment_profile() {
  const std::string& wanted = the_settings().profile.value;
  if (wanted.empty()) return;
  static std::once_flag once;
  std::call_once(once, [&] {
    EnvironmentProfile& mine = environment_profile();
    mine.path = wanted;
    if (const std::size_t at = mine.path.find("%p"); at != std::string::npos) mine.path.replace(at, 2, fmt::format("{}", process_id()));
    try {
      mine.profiler = new profiler::Profiler({.profile_memory = true});
      mine.profiler->start();
    } catch (const std::exception& e) {  // the program has a profiler of its own
      log_line(LogLevel::error, fmt::format("CLUTCH_PROFILE: {}", e.what()));
      return;
    }
    // Registered behind the driver's own handlers, so that it runs before them.
    std::atexit(save_environment_profile);
  });
}

}}}  // namespace clutch::v0::detail
