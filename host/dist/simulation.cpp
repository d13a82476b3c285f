// SPDX-License-Identifier: Apache-2.0
#include "dist/simulation.hpp"
#include "dist/flight_dump.hpp"
#include "dist/group.hpp"
#include "dist/group_calls.hpp"
#include "dist/model.hpp"
#include "dist/simulate.hpp"
#include "dist/thread_transport.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

namespace clutch { inline namespace v0 { namespace dist {
namespace detail {

namespace {

bool is_pair(const Deed& deed) { return deed.header.kind == CallKind::send || deed.header.kind == CallKind::receive; }

std::optional<Collective> collective_of(CallKind kind) {
  switch (kind) {
    case CallKind::all_reduce:
    case CallKind::optimizer_step: return Collective::all_reduce;
    case CallKind::reduce: return Collective::reduce;
    case CallKind::reduce_scatter:
    case CallKind::reduce_scatter_v: return Collective::reduce_scatter;
    case CallKind::all_gather:
    case CallKind::all_gather_v: return Collective::all_gather;
    case CallKind::gather:
    case CallKind::gather_v: return Collective::gather;
    case CallKind::scatter:
    case CallKind::scatter_v: return Collective::scatter;
    case CallKind::broadcast: return Collective::broadcast;
    case CallKind::all_to_all:
    case CallKind::all_to_all_v: return Collective::all_to_all;
    default: return std::nullopt;
  }
}

std::uint64_t bytes_of(const Deed& deed) {
  if (deed.header.elements == 0) return std::max(deed.input_bytes, deed.output_bytes);
  return bytes_for(deed.header.dtype, deed.header.elements);
}

}  // namespace

// ---- what ranks tell ----

void SimulatedRank::check_is_there() const {
  const std::lock_guard lock(mutex_);
  for (const SimulationOptions::LostRank& lost : world_.options().lost_ranks)
    if (lost.rank == rank_ && calls_ >= lost.call) throw RankLost{};
}

std::size_t SimulatedRank::begin(const SimulatedGroup& group, const CallPlan& plan, const CallHeader& header, Timeout timeout, std::uint64_t record) {
  Deed deed{.kind = Deed::Kind::call,
            .group = group.index,
            .header = header,
            .peer = plan.peer,
            .async = plan.async,
            .lays = plan.lays,
            .launches = plan.launch != nullptr,
            .has_schedule = plan.schedule != nullptr,
            .shape = plan.shape,
            .input_bytes = plan.input_bytes,
            .output_bytes = plan.output_bytes,
            .timeout = timeout,
            .record = record};
  if (plan.wide) {
    const std::size_t wide = plan.reducer->wide_bytes(), elements = plan.input_bytes / plan.shape.element;
    deed.shape.element = wide, deed.input_bytes = deed.output_bytes = elements * wide;
  }
  const std::lock_guard lock(mutex_);
  deeds_.push_back(std::move(deed));
  ++calls_, ++open_;
  return deeds_.size() - 1;
}

void SimulatedRank::end(std::size_t deed, Work::Status how, const CallHeader& header, int peer) {
  {
    const std::lock_guard lock(mutex_);
    Deed& of = deeds_[deed];
    of.status = how, of.header.sequence = header.sequence, of.peer = peer;
    --open_;
  }
  changed_.notify_all();
}

void SimulatedRank::wait(const std::vector<std::size_t>& calls) {
  const std::lock_guard lock(mutex_);
  for (const std::size_t call : calls)
    if (deeds_[call].async) deeds_.push_back({.kind = Deed::Kind::wait, .call = call});
}

void SimulatedRank::work(double us) {
  const std::lock_guard lock(mutex_);
  deeds_.push_back({.kind = Deed::Kind::work, .us = us});
}

std::vector<int> SimulatedRank::cut_off(const SimulatedGroup& group, int only) const {
  std::vector<int> members;
  const std::lock_guard lock(mutex_);
  // The call that asks is among those that were begun.
  for (const SimulationOptions::LostLink& lost : world_.options().lost_links) {
    if (lost.to != rank_ || calls_ <= lost.call) continue;
    for (std::size_t m = 0; m < group.ranks.size(); ++m)
      if (group.ranks[m] == lost.from && (only == kAnyRank || only == static_cast<int>(m))) members.push_back(static_cast<int>(m));
  }
  return members;
}

void SimulatedRank::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return open_ == 0; });
}

SimulatedWorld::SimulatedWorld(SimulationOptions options)
    : rank_us(static_cast<std::size_t>(options.ranks)),
      errors(static_cast<std::size_t>(options.ranks)),
      options_(std::move(options)),
      ended_(static_cast<std::size_t>(options_.ranks)) {
  for (int r = 0; r < options_.ranks; ++r) ranks_.emplace_back(*this, r);
}

SimulatedGroup* SimulatedWorld::group(std::string_view path, std::string_view name, const std::vector<int>& ranks) {
  const std::lock_guard lock(mutex_);
  for (SimulatedGroup& group : groups_)
    if (group.path == path) return &group;
  SimulatedGroup& group = groups_.emplace_back();
  group.index = static_cast<std::uint32_t>(groups_.size() - 1), group.path = path, group.name = name, group.ranks = ranks;
  group.one_host = std::all_of(ranks.begin(), ranks.end(), [&](int r) { return host_of(r) == host_of(ranks[0]); });
  group.boards = thread_boards(static_cast<int>(ranks.size()));
  for (std::size_t m = 0; m < ranks.size(); ++m) {
    group.gone.emplace_back(false);
    if (ended_[static_cast<std::size_t>(ranks[m])]) leave(group, static_cast<int>(m));
  }
  return &group;
}

void SimulatedWorld::leave(SimulatedGroup& group, int member) {
  group.gone[static_cast<std::size_t>(member)].store(true, std::memory_order_release);
  group.any_gone.store(true, std::memory_order_release);
}

void SimulatedWorld::end(int rank, std::optional<Error> why) {
  const std::lock_guard lock(mutex_);
  errors[static_cast<std::size_t>(rank)] = std::move(why);
  ended_[static_cast<std::size_t>(rank)] = true;
  for (SimulatedGroup& group : groups_)
    if (const auto at = std::find(group.ranks.begin(), group.ranks.end(), rank); at != group.ranks.end())
      leave(group, static_cast<int>(at - group.ranks.begin()));
}

// ---- the clock ----

/// Does again what the ranks did, with times.
class Replay {
 public:
  explicit Replay(SimulatedWorld& world)
      : world_(world), clock_(world.options().ranks, model_of(world)), ranks_(static_cast<std::size_t>(world.options().ranks)) {
    for (const SimulationOptions::Straggler& s : world.options().stragglers) late_.emplace(s.rank, s.late_us);
  }

  void run() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      for (const Deed& deed : world_.deeds(r))
        if (deed.kind == Deed::Kind::call && !is_alone(deed)) {
          Call& call = calls_[key_of(r, deed)];
          call.awaited += deed.status == Work::Status::done ? 1 : 0;
          call.is_broken = call.is_broken || deed.status != Work::Status::done;
        }
      clock_.at(0, [this, r](double us) { go_on(r, us); });
    }
    clock_.run();
    // Calls of several streams of a rank may wait for each other the other way round than another rank's: they go on beside each other.
    for (bool has_more = true; has_more;) {
      has_more = false;
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        Rank& rank = ranks_[r];
        if (rank.at == world_.deeds(r).size() && !rank.waits_for) continue;
        has_more = true;
        rank.waits_for.reset();
        clock_.at(rank.now, [this, r](double us) { go_on(r, us); });
      }
      clock_.run();
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      double end = ranks_[r].now;
      for (const Deed& deed : world_.deeds(r)) end = std::max(end, deed.end_us);
      world_.rank_us[r] = end;
    }
    world_.messages = clock_.messages(), world_.bytes = static_cast<std::uint64_t>(clock_.bytes());
  }

 private:
  struct Rank {
    std::size_t at = 0;  ///< the next deed
    double now = 0;
    std::optional<std::size_t> waits_for = {};
  };
  /// Of all its members.
  struct Call {
    std::size_t awaited = 0;
    bool is_broken = false;                                      ///< somebody did not do it
    std::vector<std::pair<std::size_t, std::size_t>> came = {};  ///< ranks, and their deeds
  };
  using Key = std::tuple<std::uint32_t, int, int, std::uint64_t>;

  static ClockModel model_of(const SimulatedWorld& world) {
    const SimulationOptions& o = world.options();
    ClockModel model{.in_host = messages_of(o.machine, true),
                     .between_hosts = messages_of(o.machine, false),
                     .host_us_per_byte = o.machine.host_us_per_byte,
                     .network_us_per_byte = o.machine.network_us_per_byte,
                     .jitter = o.jitter,
                     .seed = o.seed};
    for (int r = 0; r < o.ranks; ++r) model.host_of.push_back(world.host_of(r)), model.slowness.push_back(1);
    for (const SimulationOptions::Straggler& s : o.stragglers) model.slowness[static_cast<std::size_t>(s.rank)] *= s.factor;
    return model;
  }
  static bool is_alone(const Deed& deed) { return deed.header.kind == CallKind::wait_signal; }
  Key key_of(std::size_t rank, const Deed& deed) const {
    if (!is_pair(deed)) return {deed.group, -1, -1, deed.header.sequence};
    const std::vector<int>& ranks = world_.groups_[deed.group].ranks;
    const auto me = static_cast<int>(std::find(ranks.begin(), ranks.end(), static_cast<int>(rank)) - ranks.begin());
    return deed.header.kind == CallKind::send ? Key{deed.group, me, deed.peer, deed.header.sequence} : Key{deed.group, deed.peer, me, deed.header.sequence};
  }
  double slowness(std::size_t rank) const { return clock_.model().slowness[rank]; }

  /// The rank's deeds, until it waits for one.
  void go_on(std::size_t r, double us) {
    Rank& rank = ranks_[r];
    std::vector<Deed>& deeds = world_.deeds(r);
    rank.now = std::max(rank.now, us);
    while (!rank.waits_for && rank.at < deeds.size()) {
      const std::size_t number = rank.at++;
      Deed& deed = deeds[number];
      if (deed.kind == Deed::Kind::work) {
        const double jitter = 1 + world_.options().jitter * uniform(world_.options().seed + r + 1, number);
        clock_.at(rank.now + deed.us * slowness(r) * jitter, [this, r](double then) { go_on(r, then); });
        return;
      }
      if (deed.kind == Deed::Kind::wait) {
        if (deeds[deed.call].end_us < 0) rank.waits_for = deed.call;
        continue;
      }
      const auto late = late_.find(static_cast<int>(r));
      clock_.at(rank.now + (late == late_.end() ? 0 : late->second), [this, r, number](double then) { come(r, number, then); });
      if (!deed.async) rank.waits_for = number;
    }
  }

  void come(std::size_t r, std::size_t number, double us) {
    Deed& deed = world_.deeds(r)[number];
    deed.begin_us = deed.met_us = us;
    if (deed.status != Work::Status::done || is_alone(deed)) {
      const double waited = deed.status == Work::Status::timed_out ? static_cast<double>(deed.timeout.count()) * 1000 : 0;
      return clock_.at(us + waited, [this, r, number](double then) { finish(r, number, then); });
    }
    Call& call = calls_.at(key_of(r, deed));
    call.came.emplace_back(r, number);
    if (call.came.size() == call.awaited) start(call, us);
  }

  /// All members have come.
  void start(Call& call, double us) {
    const Deed& some = world_.deeds(call.came[0].first)[call.came[0].second];
    const SimulatedGroup& group = world_.groups_[some.group];
    const Machine& machine = world_.options().machine;
    const int n = static_cast<int>(group.ranks.size());
    const std::optional<Collective> collective = collective_of(some.header.kind);
    const WayCosts& way = some.lays && machine.board.known        ? machine.board
                          : some.launches && machine.kernel.known ? machine.kernel
                                                                  : messages_of(machine, group.one_host);
    WayCosts meets = messages_of(machine, group.one_host);
    meets.call_us = 0;
    const double met = group.one_host || n == 1 ? 0 : cost_us(meets, meeting_effort(n), 0);
    // Until numbers move.
    auto begins = [&](std::size_t r) { return us + met + way.call_us * slowness(r); };
    for (const auto& [r, number] : call.came) world_.deeds(r)[number].met_us = us;
    const bool moves = some.has_schedule && !some.lays && !some.launches && !call.is_broken && (is_pair(some) || collective);
    if (!moves) {
      double takes = 0;
      if (collective && (some.has_schedule || some.lays || some.launches)) {
        const auto bytes = static_cast<double>(bytes_of(some));
        const Problem problem{.collective = *collective, .ranks = n, .root = 0, .method = some.header.method};
        const Effort effort = some.lays       ? board_effort(*collective, n, bytes)
                              : some.launches ? kernel_effort(*collective, n, bytes)
                                              : effort_of(problem, bytes);
        takes = cost_us(way, effort, 0) - way.call_us;
      }
      for (const auto& [r, number] : call.came) clock_.at(begins(r) + takes, [this, rank = r, deed = number](double then) { finish(rank, deed, then); });
      return;
    }
    if (is_pair(some) && some.header.kind == CallKind::receive) std::swap(call.came[0], call.came[1]);
    std::vector<ScheduleClock::Member> members;
    auto add = [&](std::size_t m, Schedule schedule, double after) {
      const auto& [r, number] = call.came[m];
      const Deed& deed = world_.deeds(r)[number];
      members.push_back({.rank = static_cast<int>(r),
                         .schedule = std::make_shared<const Schedule>(std::move(schedule)),
                         .shape = deed.shape,
                         .input_bytes = deed.input_bytes,
                         .output_bytes = deed.output_bytes,
                         .begin_us = begins(r) + after});
    };
    if (is_pair(some)) {
      // Behind an envelope and an answer; a block is all that is sent.
      for (std::size_t m = 0; m < 2; ++m) {
        const StepKind kind = m == 0 ? StepKind::send : StepKind::receive;
        add(m, {.steps = {{.kind = kind, .peer = static_cast<std::int32_t>(1 - m), .from = {Room::input, 0}, .to = {Room::output, 0}}}}, 2 * way.round_us);
        members[m].shape = {.element = 1, .block = std::max(members[m].input_bytes, members[m].output_bytes)};
      }
    } else {
      std::vector<std::pair<std::size_t, std::size_t>> by_member(call.came.size());
      for (const auto& came : call.came) by_member[static_cast<std::size_t>(member_of(group, came.first))] = came;
      call.came = std::move(by_member);
      const Problem problem{.collective = *collective, .ranks = n, .root = std::max(some.header.root, 0), .method = some.header.method};
      for (std::size_t m = 0; m < call.came.size(); ++m) add(m, schedule_of(problem, static_cast<int>(m)), 0);
    }
    clock_.move(std::move(members), [this, came = call.came](std::size_t m, double then) { finish(came[m].first, came[m].second, then); });
  }
  static std::ptrdiff_t member_of(const SimulatedGroup& group, std::size_t rank) {
    return std::find(group.ranks.begin(), group.ranks.end(), static_cast<int>(rank)) - group.ranks.begin();
  }

  void finish(std::size_t r, std::size_t number, double us) {
    world_.deeds(r)[number].end_us = us;
    Rank& rank = ranks_[r];
    if (rank.waits_for != number) return;
    rank.waits_for.reset();
    go_on(r, us);
  }

  SimulatedWorld& world_;
  ScheduleClock clock_;
  std::vector<Rank> ranks_;
  std::map<Key, Call> calls_;
  std::map<int, double> late_;
};

void SimulatedWorld::run_clock() { Replay(*this).run(); }

// ---- what is told of it ----

std::vector<SimulatedCall> SimulatedWorld::calls(int rank) const {
  std::vector<SimulatedCall> calls;
  for (const Deed& deed : deeds(static_cast<std::size_t>(rank)))
    if (deed.kind == Deed::Kind::call)
      calls.push_back({.name = std::string(name(deed.header.kind)),
                       .group = groups_[deed.group].name,
                       .sequence = deed.header.sequence,
                       .bytes = bytes_of(deed),
                       .begin_us = deed.begin_us,
                       .met_us = deed.met_us,
                       .end_us = deed.end_us,
                       .status = deed.status});
  return calls;
}

FlightImage SimulatedWorld::image(int rank) const {
  // Times of records begin at a fixed one: 0 stands for none.
  constexpr std::int64_t kBegin = 1'000'000'000'000'000'000;
  const SimulatedRank& of = ranks_[static_cast<std::size_t>(rank)];
  FlightImage image = of.flight_->ring().image();
  std::map<std::uint64_t, const Deed*> by_record;
  for (const Deed& deed : of.deeds_) by_record.emplace(deed.record, &deed);
  auto time = [&](double us) { return kBegin + std::llround(us * 1000); };
  for (FlightRecord& record : image.records) {
    const auto at = by_record.find(record.id);
    if (at == by_record.end()) continue;
    record.created_ns = record.started_ns = time(at->second->begin_us);
    record.completed_ns = record.completed_ns != 0 ? time(at->second->end_us) : 0;
    record.thread = 0;
  }
  const bool is_lost = std::any_of(options_.lost_ranks.begin(), options_.lost_ranks.end(), [&](const auto& lost) { return lost.rank == rank; });
  image.host = fmt::format("host{}", host_of(rank)), image.process = is_lost ? FlightProcess::lost : FlightProcess::closed;
  image.process_id = static_cast<std::uint64_t>(rank) + 1, image.taken_ns = 0;
  return image;
}

std::string SimulatedWorld::trace() const {
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  auto put = [&, is_first = true](const std::string& event) mutable {
    text += is_first ? "\n" : ",\n";
    text += event, is_first = false;
  };
  for (int r = 0; r < options_.ranks; ++r) {
    put(fmt::format(R"({{"ph": "M", "name": "process_name", "pid": {}, "args": {{"name": "rank {} of host {}"}}}})", r, r, host_of(r)));
    put(fmt::format(R"({{"ph": "M", "name": "process_sort_index", "pid": {}, "args": {{"sort_index": {}}}}})", r, r));
    // Rows: the rank's own, and as many for asynchronous calls as go on at a time, with the time at which each is free.
    std::vector<double> rows{0};
    auto row_of = [&](const Deed& deed) {
      if (!deed.async) return std::size_t{0};
      const auto free = std::find_if(rows.begin() + 1, rows.end(), [&](double end) { return end <= deed.begin_us; });
      const auto row = static_cast<std::size_t>(free - rows.begin());
      if (free == rows.end()) rows.push_back(0);
      rows[row] = deed.end_us;
      return row;
    };
    auto slice = [&](std::string_view name, std::size_t row, double begin, double end, const std::string& args) {
      put(fmt::format(R"({{"ph": "X", "name": "{}", "pid": {}, "tid": {}, "ts": {:.3f}, "dur": {:.3f}{}}})", name, r, row, begin, end - begin, args));
    };
    for (const Deed& deed : deeds(static_cast<std::size_t>(r))) {
      if (deed.kind != Deed::Kind::call) continue;
      const std::string args = fmt::format(
          R"(, "cat": "collective", "args": {{"Collective name": "{}", "Process Group Name": {}, "Group size": {}, "Rank": {}, "Seq": {}, "dtype": "{}", "bytes": {}, "state": "{}"}})",
          name(deed.header.kind), nlohmann::json(printable(groups_[deed.group].name)).dump(), groups_[deed.group].ranks.size(), r, deed.header.sequence,
          clutch::name(deed.header.dtype), bytes_of(deed),
          deed.status == Work::Status::done        ? "done"
          : deed.status == Work::Status::timed_out ? "timed out"
                                                   : "failed");
      const std::size_t row = row_of(deed);
      slice("waits", row, deed.begin_us, deed.met_us, "");
      slice(name(deed.header.kind), row, deed.met_us, deed.end_us, args);
    }
  }
  return text + "\n]}\n";
}

}  // namespace detail

using namespace detail;

namespace {

/// A thousand of them need not reach the disk one by one.
void write_file(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw Error(ErrorCode::io, "dist", fmt::format("the file must be writable, got '{}'", file.string()));
}

}  // namespace

Simulation simulate(const SimulationOptions& options, const std::function<void(const Group&)>& program) {
  constexpr const char* kOp = "dist::simulate";
  auto check = [&](bool is_right, const std::string& why) {
    if (!is_right) throw Error(ErrorCode::invalid_argument, kOp, why);
  };
  check(program != nullptr, "the program must be given, got an empty one");
  check(options.ranks >= 1, fmt::format("ranks must be 1 or more, got {}", options.ranks));
  check(options.machine.ranks_of_host >= 1, fmt::format("Machine::ranks_of_host must be 1 or more, got {}", options.machine.ranks_of_host));
  check(options.machine.messages.known || options.machine.network.known, "the Machine must know messages, got one that knows none");
  check(options.jitter >= 0, fmt::format("jitter must be 0 or more, got {}", options.jitter));
  check(options.timeout.count() > 0, fmt::format("timeout must be above 0, got {} ms", options.timeout.count()));
  auto check_rank = [&](int rank) { check(rank >= 0 && rank < options.ranks, fmt::format("a rank must be below {}, got {}", options.ranks, rank)); };
  for (const auto& s : options.stragglers)
    check_rank(s.rank),
        check(s.factor >= 0 && s.late_us >= 0, fmt::format("a straggler's factor and delay must not be negative, got {} and {}", s.factor, s.late_us));
  for (const auto& lost : options.lost_ranks) check_rank(lost.rank);
  for (const auto& lost : options.lost_links) check_rank(lost.from), check_rank(lost.to);

  const auto world = std::make_shared<SimulatedWorld>(options);
  const auto transports = thread_transports(options.ranks);
  const Device device = current_stream().device();
  auto run = [&](int r) {
    const std::shared_ptr<SimulatedRank> rank = world->rank(r);
    std::optional<Error> why;
    try {
      const Stream stream(device);
      const StreamGuard guard(stream);
      try {
        const Group group =
            group_of(transports[static_cast<std::size_t>(r)], {.timeout = options.timeout, .flight_records = options.flight_records}, kOp, rank);
        group.impl()->connect(), group.impl()->set_machine(options.machine);
        program(group);
      } catch (const RankLost&) {
        why.emplace(ErrorCode::peer_failed, kOp, fmt::format("rank {} is lost, as SimulationOptions::lost_ranks says", r));
      } catch (const Error& e) {
        why.emplace(e);
      } catch (const std::exception& e) {
        why.emplace(ErrorCode::internal, kOp, e.what());
      }
      rank->drain();
      // What the stream failed by, the program was told of.
      stream.reset();
    } catch (const Error& e) {
      if (!why) why.emplace(e);
    }
    world->end(r, std::move(why));
  };
  std::vector<std::thread> threads;
  try {
    for (int r = 0; r < options.ranks; ++r) threads.emplace_back(run, r);
  } catch (const std::system_error& e) {
    for (int r = static_cast<int>(threads.size()); r < options.ranks; ++r) world->end(r, std::nullopt);
    for (std::thread& thread : threads) thread.join();
    throw Error(ErrorCode::out_of_memory, kOp, fmt::format("{} threads cannot be made: {}", options.ranks, e.what()));
  }
  for (std::thread& thread : threads) thread.join();
  world->run_clock();
  return Simulation(world);
}

void simulate_work(const Group& group, double us) {
  const GroupCalls call{"dist::simulate_work", group};
  GroupImpl& impl = call.impl();
  call.check(us >= 0, ErrorCode::invalid_argument, "us must be 0 or more, got {}", us);
  if (SimulatedRank* const rank = impl.simulated()) rank->work(us);
}

double Simulation::us() const { return *std::max_element(world_->rank_us.begin(), world_->rank_us.end()); }
const std::vector<double>& Simulation::rank_us() const { return world_->rank_us; }
const std::vector<std::optional<Error>>& Simulation::errors() const { return world_->errors; }
std::vector<SimulatedCall> Simulation::calls(int rank) const {
  if (rank < 0 || rank >= world_->options().ranks)
    throw Error(ErrorCode::invalid_argument, "dist::Simulation::calls", fmt::format("rank must be below {}, got {}", world_->options().ranks, rank));
  return world_->calls(rank);
}
std::uint64_t Simulation::messages() const { return world_->messages; }
std::uint64_t Simulation::bytes() const { return world_->bytes; }

void Simulation::dump_flight(const std::filesystem::path& prefix, FlightFormat format) const {
  constexpr const char* kOp = "dist::Simulation::dump_flight";
  if (world_->options().flight_records == 0) throw Error(ErrorCode::not_supported, kOp, "SimulationOptions::flight_records must be above 0, got 0");
  named(kOp, [&] {
    for (int r = 0; r < world_->options().ranks; ++r) {
      const FlightImage image = world_->image(r);
      std::filesystem::path file = prefix;
      file += std::to_string(r);
      write_file(file, format == FlightFormat::json ? json_of(image) : torch_pickle_of(image));
    }
  });
}

void Simulation::write_trace(const std::filesystem::path& file) const {
  named("dist::Simulation::write_trace", [&] { write_file(file, world_->trace()); });
}

}}}  // namespace clutch::v0::dist
