// SPDX-License-Identifier: Apache-2.0
#include "dist/group.hpp"
#include "dist/mpi_transport.hpp"
#include "dist/peer_memory.hpp"
#include "dist/profiled.hpp"
#include "dist/symmetric.hpp"
#include "dist/task.hpp"

#include <fmt/format.h>
#include <clutch/interop_cl.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>
#include <type_traits>
#include <utility>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

GroupImpl::GroupImpl(std::shared_ptr<Transport> transport, GroupFacts facts)
    : transport_(std::move(transport)),
      facts_(std::move(facts)),
      flight_group_(facts_.flight ? facts_.flight->add_group(facts_.path, facts_.name, facts_.global_ranks) : 0),
      timeout_(facts_.timeout),
      machine_(facts_.machine),
      of_pairs_(static_cast<std::size_t>(transport_->size())) {
  if (!facts_.simulated) return;
  simulated_group_ = facts_.simulated->world().group(facts_.path, facts_.name, facts_.global_ranks);
  facts_.apart = !simulated_group_->one_host;
}

std::shared_ptr<const Schedule> GroupImpl::meeting() {
  const std::lock_guard lock(mutex_);
  if (!meeting_)
    meeting_ = std::make_shared<const Schedule>(
        schedule_of({.collective = Collective::all_gather, .ranks = transport_->size(), .root = 0, .method = Method::direct}, transport_->rank()));
  return meeting_;
}

std::shared_ptr<GroupImpl> GroupImpl::part(std::span<const int> ranks, std::uint64_t number, const std::string& mark, std::string name) {
  const std::shared_ptr<GroupImpl> group = part_by(transport_->among(ranks, number), ranks, mark, std::move(name));
  join(*group);
  return group;
}

void GroupImpl::join(GroupImpl& part) {
  part.connect();
  tell_profiles(part);
}

std::shared_ptr<GroupImpl> GroupImpl::part_by(std::shared_ptr<Transport> transport, std::span<const int> ranks, const std::string& mark, std::string name) {
  GroupFacts facts = facts_;
  facts.name = std::move(name), facts.path += '/' + mark, facts.timeout = timeout(), facts.machine = machine(), facts.global_ranks.clear();
  for (const int r : ranks) facts.global_ranks.push_back(facts_.global_ranks[static_cast<std::size_t>(r)]);
  return std::make_shared<GroupImpl>(std::move(transport), std::move(facts));
}

namespace {

// Tags of what is told while a group opens; those of later tries to go on follow.
enum OpeningTag : std::uint32_t { t_segments, t_found, t_read, t_processes, t_epochs };

}  // namespace

std::vector<int> GroupImpl::all_ranks() const {
  std::vector<int> ranks(static_cast<std::size_t>(size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::vector<std::byte> GroupImpl::tell_all(std::span<const std::byte> mine, std::uint32_t tag, std::span<const int> ranks) {
  const std::size_t bytes = mine.size();
  const auto said = std::make_shared<std::vector<std::byte>>(mine.begin(), mine.end());
  const auto all = std::make_shared<std::vector<std::byte>>(bytes * ranks.size());
  const std::unique_ptr<Exchange> exchange = transport_->open(Lane::opening, tag);
  exchange->keep(said), exchange->keep(all);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::span<std::byte> place = std::span(*all).subspan(i * bytes, bytes);
    if (ranks[i] == rank()) {
      std::memcpy(place.data(), mine.data(), bytes);
      continue;
    }
    exchange->send(ranks[i], *said);
    exchange->receive(ranks[i], place);
  }
  const auto deadline = Clock::now() + timeout();
  while (!exchange->done()) {
    const std::vector<int> waiting = exchange->waiting_for();
    std::vector<int> gone = ended();
    std::erase_if(gone, [&](int r) { return std::find(waiting.begin(), waiting.end(), r) == waiting.end(); });
    if (!gone.empty()) throw Error(ErrorCode::peer_failed, "dist", fmt::format("group '{}' waits for {} that ended", name(), processes_of(gone)));
    if (Clock::now() > deadline)
      throw Error(ErrorCode::timed_out, "dist", fmt::format("group '{}' waited {} ms for {}", name(), timeout().count(), ranks_text(waiting)));
    std::this_thread::yield();
  }
  return *all;
}

template <class T>
std::vector<T> GroupImpl::tell_all(const T& mine, std::uint32_t tag, std::span<const int> ranks) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::vector<std::byte> bytes = tell_all(std::as_bytes(std::span(&mine, 1)), tag, ranks);
  std::vector<T> all(ranks.size());
  std::memcpy(all.data(), bytes.data(), bytes.size());
  return all;
}

void GroupImpl::connect() {
  constexpr int kMostRanks = 256;
  if (simulated_group_ != nullptr) {
    board_ = simulated_group_->boards[static_cast<std::size_t>(rank())];
    return;
  }
  if (size() == 1) {
    if (!facts_.apart) board_ = thread_boards(1)[0];
    return;
  }
  std::shared_ptr<SharedSegment> own;
  if (!facts_.apart && size() <= kMostRanks) try {
      own = SharedSegment::make(Board::bytes());
    } catch (const Error&) {
      // Messages need none.
    }
  const std::vector<int> ranks = all_ranks();
  const std::vector<SegmentName> names = tell_all(own ? own->name() : SegmentName{}, t_segments, ranks);
  const auto segments = std::make_shared<std::vector<std::shared_ptr<SharedSegment>>>();
  std::vector<std::span<std::byte>> parts;
  std::uint8_t has_all = own ? 1 : 0;
  for (int r = 0; r < size() && has_all == 1; ++r) {
    segments->push_back(r == rank() ? own : SharedSegment::find(names[static_cast<std::size_t>(r)]));
    if (!segments->back() || segments->back()->bytes().size() != Board::bytes())
      has_all = 0;
    else
      parts.push_back(segments->back()->bytes());
  }
  // A number that the others try to read.
  struct Found {
    std::uint64_t has_all, number;
    PeerMemory place;
  };
  const auto secret = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count()) * 2654435761U + static_cast<std::uint64_t>(rank());
  const std::vector<Found> found = tell_all(Found{has_all, secret, PeerMemory::of(&secret)}, t_found, ranks);
  if (own) own->forget_name();
  if (std::any_of(found.begin(), found.end(), [](const Found& of) { return of.has_all == 0; })) return;
  board_ = std::make_shared<Board>(std::move(parts), segments, rank());
  std::uint8_t reads_all = 1;
  for (const Found& of : found) {
    std::uint64_t number = 0;
    if (!of.place.read(reinterpret_cast<std::byte*>(&number), sizeof number) || number != of.number) reads_all = 0;
  }
  const std::vector<std::uint8_t> read = tell_all(reads_all, t_read, ranks);
  reads_peers_ = std::count(read.begin(), read.end(), 1) == size();
}

void GroupImpl::watch() {
  struct Numbers {
    std::uint64_t machine, id, begun;
  };
  const clutch::detail::ProcessIdentity me = clutch::detail::this_process();
  std::vector<clutch::detail::ProcessIdentity> processes;
  for (const Numbers& of : tell_all(Numbers{me.machine, me.id, me.begun}, t_processes, all_ranks())) {
    clutch::detail::ProcessIdentity& process = processes.emplace_back();
    process.machine = of.machine, process.id = of.id, process.begun = of.begun;
  }
  facts_.peers = std::make_shared<Peers>(processes);
  tell_profiles(*this);
}

std::vector<int> GroupImpl::ended() const {
  std::vector<int> ranks;
  if (!facts_.peers) return ranks;
  const std::vector<int> gone = facts_.peers->ended();
  if (gone.empty()) return ranks;
  for (int r = 0; r < size(); ++r)
    if (std::find(gone.begin(), gone.end(), facts_.global_ranks[static_cast<std::size_t>(r)]) != gone.end()) ranks.push_back(r);
  return ranks;
}

void GroupImpl::lose(const std::vector<int>& ranks) {
  const std::lock_guard lock(mutex_);
  lost_.insert(ranks.begin(), ranks.end());
}

std::vector<int> GroupImpl::lost() const {
  const std::vector<int> gone = ended();
  const std::lock_guard lock(mutex_);
  std::set<int> all = lost_;
  all.insert(gone.begin(), gone.end());
  return {all.begin(), all.end()};
}

std::shared_ptr<GroupImpl> GroupImpl::rest(std::span<const int> ranks, std::uint64_t epoch) {
  // Those that do not come are found first.
  (void)tell_all(epoch, t_epochs + static_cast<std::uint32_t>(epoch % (kTags - t_epochs)), ranks);
  if (static_cast<int>(ranks.size()) < size()) wait_less_for_finalize();
  const std::shared_ptr<GroupImpl> group = part_by(transport_->beside(ranks, epoch), ranks, fmt::format("epoch{}", epoch), name());
  join(*group);
  return group;
}

namespace {

/// What a rank knows of another one; the largest of what ranks know holds.
enum Presence : std::uint8_t {
  p_there,
  p_silent,  ///< has not come within the time-out
  p_ended,
};

}  // namespace

bool GroupImpl::agree(Presences& known, std::uint32_t tag) {
  struct Talk {
    int peer;
    std::shared_ptr<Presences> told;
    std::unique_ptr<Exchange> exchange;
  };
  const auto before = std::make_shared<Presences>(known);
  const std::size_t decided = before->size() - 1;
  const auto know = [&](int r, std::uint8_t what) {
    std::uint8_t& of = known[static_cast<std::size_t>(r)];
    of = std::max(of, what);
  };
  // An exchange for each, as one whose peer is lost may be done for at all.
  std::vector<Talk> talks;
  for (int r = 0; r < size(); ++r) {
    if (r == rank() || known[static_cast<std::size_t>(r)] != p_there) continue;
    Talk& talk = talks.emplace_back(Talk{.peer = r, .told = std::make_shared<Presences>(known.size()), .exchange = transport_->open(Lane::presence, tag)});
    talk.exchange->keep(before), talk.exchange->keep(talk.told);
    talk.exchange->send(r, std::as_bytes(std::span(*before)));
    if (known[decided] == 0) talk.exchange->receive(r, std::as_writable_bytes(std::span(*talk.told)));
  }
  bool all_agree = true;
  const auto deadline = Clock::now() + timeout();
  while (known[decided] == 0 && !talks.empty()) {
    for (const int r : ended()) know(r, p_ended);
    const bool is_late = Clock::now() > deadline;
    std::erase_if(talks, [&](const Talk& talk) {
      if (known[decided] != 0) return true;
      bool is_done = false;
      try {
        is_done = talk.exchange->done();
      } catch (const Error&) {
        know(talk.peer, p_silent);
      }
      if (is_done && (*talk.told)[decided] != 0) {
        known = *talk.told;
      } else if (is_done) {
        all_agree = all_agree && *talk.told == *before;
        for (int r = 0; r < size(); ++r) know(r, (*talk.told)[static_cast<std::size_t>(r)]);
      } else if (is_late) {
        know(talk.peer, p_silent);
      }
      return is_done;
    });
    // Also those that others have given up need not be waited for.
    std::erase_if(talks, [&](const Talk& talk) { return known[static_cast<std::size_t>(talk.peer)] != p_there; });
    std::this_thread::yield();
  }
  if (known[decided] == 0 && all_agree && known == *before) known[decided] = 1;
  return known[decided] != 0;
}

std::shared_ptr<GroupImpl> GroupImpl::rest(std::uint64_t epoch) {
  // Of each rank, and whether that is decided.
  Presences known(static_cast<std::size_t>(size()) + 1, p_there);
  for (const int r : ended()) known[static_cast<std::size_t>(r)] = p_ended;
  // Simulated ranks do not end, and time is not the host's.
  if (simulated() != nullptr)
    for (const int r : lost()) known[static_cast<std::size_t>(r)] = p_ended;
  // Each round but the last ones tells some rank of one more that is lost. Who has decided tells it to those that may not have, since a rank that was lost
  // meanwhile told only some of them that it was there.
  const std::uint64_t rounds = 2 * static_cast<std::uint64_t>(size()) + 2;
  const auto tag = [&](std::uint64_t round) { return static_cast<std::uint32_t>((epoch * (rounds + 1) + round) % kTags); };
  std::uint64_t round = 0;
  while (round < rounds && !agree(known, tag(round))) ++round;
  if (round == rounds) throw Error(ErrorCode::timed_out, "dist", fmt::format("ranks of group '{}' did not agree on who goes on", name()));
  agree(known, tag(round + 1));
  std::vector<int> there, silent;
  for (int r = 0; r < size(); ++r) {
    const std::uint8_t of = known[static_cast<std::size_t>(r)];
    if (of != p_ended) (of == p_there ? there : silent).push_back(r);
  }
  if (known[static_cast<std::size_t>(rank())] != p_there)
    throw Error(ErrorCode::peer_failed, "dist", fmt::format("the other ranks of group '{}' go on without rank {}, which they waited for", name(), rank()));
  if (!silent.empty() && silent.size() >= there.size())
    throw Error(ErrorCode::timed_out, "dist",
                fmt::format("group '{}' waited {} ms for {}, and no more than they came, {}: say who goes on", name(), timeout().count(), ranks_text(silent),
                            ranks_text(there)));
  wait_less_for_finalize();
  const std::shared_ptr<GroupImpl> group = part_by(transport_->beside(there, epoch * (rounds + 1)), there, fmt::format("epoch{}", epoch), name());
  try {
    join(*group);
  } catch (const Error& e) {
    // A rank was lost since. All others have the group, which some may find to be connected: its first call says so on all.
    if (e.code() != ErrorCode::peer_failed) throw;
    group->fail(e);
  }
  return group;
}

int GroupImpl::same_subgroups(std::uint64_t ranks) {
  const std::lock_guard lock(mutex_);
  return subgroups_[ranks]++;
}

std::shared_ptr<const Machine> GroupImpl::machine() const {
  const std::lock_guard lock(mutex_);
  return machine_;
}
void GroupImpl::set_machine(const Machine& machine) {
  const std::lock_guard lock(mutex_);
  machine_ = std::make_shared<const Machine>(machine);
}
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
std::uint64_t GroupImpl::line_up(const Line& line, const void* call) {
  const std::lock_guard lock(mutex_);
  lines_[line].push_back(call);
  return line.peer == kAnyRank ? 0 : ++counts_[line];
}
void GroupImpl::count(const Line& line) {
  const std::lock_guard lock(mutex_);
  ++counts_[line];
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
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    is_first = !failure_.has_value();
    if (is_first) failure_ = why;
    has_failed_ = true;
  }
  if (simulated_group_ != nullptr) SimulatedWorld::leave(*simulated_group_, rank());
  Progress::instance().wake();
  if (is_first) hooks_->aborted();
}
std::optional<Error> GroupImpl::failure() const {
  if (!has_failed_) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return failure_;
}

const DeviceLink::Beside& GroupImpl::beside(cl_command_queue queue) {
  const QueueOf of(queue);
  const std::lock_guard lock(mutex_);
  DeviceLink::Beside& found = beside_[{of.context, of.device}];
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

Stream GroupImpl::stream_behind(const Stream& stream) {
  Stream behind = stream_for(stream.device());
  Event before;
  before.record(stream);
  behind.wait(before);
  return behind;
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

bool GroupImpl::hurry(Task& call, std::size_t bytes) const {
  // Many ranks would keep each other from coming.
  if (simulated() != nullptr) return call.advance();
  // Ranks that make one call after the other come as late as the numbers take: who gives up too early makes the others late.
  constexpr std::chrono::microseconds kAlone{5}, kMost{500};
  const auto patience = std::chrono::microseconds(50 + bytes / 1024);
  const auto begin = Clock::now();
  for (auto now = begin; now < begin + patience || (call.ends_soon() && now < begin + kMost); now = Clock::now()) {
    if (call.advance()) return true;
    // More ranks than cores come one after the other.
    if (now > begin + kAlone) std::this_thread::yield();
  }
  return false;
}

std::vector<std::int64_t> GroupImpl::exchange_rows(const CallPlan& plan) {
  if (simulated() != nullptr) simulated()->check_is_there();
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

}}}}  // namespace clutch::v0::dist::detail
