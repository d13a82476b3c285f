// SPDX-License-Identifier: Apache-2.0
// The inside of a Group, and its calls on their way.
#pragma once
#include "dist/board.hpp"
#include "dist/call.hpp"
#include "dist/device_link.hpp"
#include "dist/flight.hpp"
#include "dist/hooks.hpp"
#include "dist/peers.hpp"
#include "dist/progress.hpp"
#include "dist/simulation.hpp"
#include "dist/transport.hpp"

#include <clutch/dist/model.hpp>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

struct GroupFacts {
  std::string name;
  std::string path;  ///< the same on all ranks, and no other group's
  std::vector<int> global_ranks;
  Timeout timeout{};
  bool apart = false;                             ///< ranks have nothing but messages
  std::shared_ptr<Flight> flight;                 ///< null without a recorder
  std::shared_ptr<Peers> peers;                   ///< of the world; null where they are threads
  std::shared_ptr<SimulatedRank> simulated = {};  ///< null of real ranks
  std::shared_ptr<const Machine> machine = {};
};

class GroupImpl : public std::enable_shared_from_this<GroupImpl> {
 public:
  GroupImpl(std::shared_ptr<Transport> transport, GroupFacts facts);
  /// Connects all ranks, which all of them ask for; waits. Errors: timed_out with the ranks that did not come, peer_failed.
  void connect();
  /// As connect(), where the ranks are threads.
  void connect(std::shared_ptr<Board> board) { board_ = std::move(board), reads_peers_ = true; }
  /// Watches the processes of the ranks, which all of them ask for once, before any part is made; waits.
  void watch();
  /// Ranks that have ended.
  std::vector<int> ended() const;
  void lose(const std::vector<int>& ranks);
  std::vector<int> lost() const;
  /// A group of some ranks, even of a group that has failed.
  std::shared_ptr<GroupImpl> rest(std::span<const int> ranks, std::uint64_t epoch);
  /// The same of those that come.
  std::shared_ptr<GroupImpl> rest(std::uint64_t epoch);
  /// A group of ranks of this one, connected. `mark` tells it from others of them.
  std::shared_ptr<GroupImpl> part(std::span<const int> ranks, std::uint64_t number, const std::string& mark, std::string name);

  Transport& transport() const { return *transport_; }
  /// Where the ranks meet, if one host has all of them; null: they tell each other by messages.
  Board* board() const noexcept { return board_.get(); }
  /// True where ranks that have a board read each other's memory.
  bool reads_peers() const noexcept { return reads_peers_; }
  /// As where they cannot; all ranks must do it between the same calls.
  void read_no_peers() noexcept { reads_peers_ = false; }
  /// True where ranks have nothing but messages.
  bool is_apart() const noexcept { return facts_.apart; }
  /// True where a board takes numbers, too: simulated ranks of several hosts have one to meet on alone.
  bool is_one_host() const noexcept { return board_ != nullptr && !facts_.apart; }
  /// What a simulated rank writes down, and its group; null of others.
  SimulatedRank* simulated() const noexcept { return facts_.simulated.get(); }
  SimulatedGroup* simulated_group() const noexcept { return simulated_group_; }
  const std::shared_ptr<SimulatedRank>& shared_simulated() const noexcept { return facts_.simulated; }
  int rank() const { return transport_->rank(); }
  int size() const { return transport_->size(); }
  const std::string& name() const { return facts_.name; }
  Flight* flight() const { return facts_.flight.get(); }
  std::uint32_t flight_group() const { return flight_group_; }
  Hooks& hooks() const noexcept { return *hooks_; }
  const GroupFacts& facts() const noexcept { return facts_; }
  /// How often a subgroup of such ranks was made before.
  int same_subgroups(std::uint64_t ranks);
  const std::vector<int>& global_ranks() const { return facts_.global_ranks; }

  /// By which Algorithm::automatic chooses, the same on all ranks; null: by fixed numbers.
  std::shared_ptr<const Machine> machine() const;
  void set_machine(const Machine& machine);
  Timeout timeout() const;
  /// The call's own, or the group's.
  Timeout timeout_of(const CallPlan& plan) const { return plan.timeout.count() > 0 ? plan.timeout : timeout(); }
  /// What every call begins with, and those of one launch end with: each rank tells all others.
  std::shared_ptr<const Schedule> meeting();
  void set_timeout(Timeout timeout);
  std::uint64_t next_sequence();
  /// Of messages to a rank.
  std::uint64_t next_of_pair(int to);
  std::uint32_t next_ticket();
  /// Messages between two ranks with one tag are matched in the order of the calls, whatever streams they are on: a call that has lined up begins when it is
  /// the first one, and leaves when it has begun or ended.
  struct Line {
    bool sends;
    int peer, tag;
    friend bool operator<(const Line& a, const Line& b) { return std::tie(a.sends, a.peer, a.tag) < std::tie(b.sends, b.peer, b.tag); }
  };
  /// Returns the call's number in its line, from 1.
  std::uint64_t line_up(const Line& line, const void* call);
  /// A receive from any rank has taken a message that belongs to this line.
  void count(const Line& line);
  bool is_first(const Line& line, const void* call) const;
  void leave_line(const Line& line, const void* call);
  std::uint64_t next_group();

  /// Fails all calls. The first reason stays.
  void fail(const Error& why);
  std::optional<Error> failure() const;

  /// What is needed to map memory beside this queue.
  const DeviceLink::Beside& beside(cl_command_queue queue);
  ScratchMemory& scratch() { return scratch_; }
  /// A stream for a call that is asynchronous: one that is idle, so that calls do not wait for each other.
  Stream stream_for(const Device& device);
  /// The same, behind the work of another stream.
  Stream stream_behind(const Stream& stream);

  /// The stream of work between ranks. For the progress thread alone.
  Stream kernel_stream(const Device& device);

  /// Memory whose kernels reach all ranks.
  void add(const std::shared_ptr<SymmetricImpl>& memory);
  /// That of a tensor, if it is in any.
  std::shared_ptr<SymmetricImpl> find(const Tensor& tensor) const;

  /// A call that has its number. `link`: none of calls without a device; input and output are where they are on it.
  std::shared_ptr<Task> make(std::shared_ptr<const CallPlan> plan, std::shared_ptr<CallState> state, std::shared_ptr<DeviceLink> link, DevicePlace input,
                             DevicePlace output);
  /// Brings a call of few bytes forward by this thread, for some microseconds. True if it is over: then nothing needs to be enqueued.
  bool hurry(Task& call, std::size_t bytes) const;
  /// Calls without a device: waits, and returns what each rank has given. Errors: those of the call.
  std::vector<std::int64_t> exchange_rows(const CallPlan& plan);

 private:
  /// What each of these ranks says, by messages that are no call; waits.
  std::vector<std::byte> tell_all(std::span<const std::byte> mine, std::uint32_t tag, std::span<const int> ranks);
  template <class T>
  std::vector<T> tell_all(const T& mine, std::uint32_t tag, std::span<const int> ranks);
  std::vector<int> all_ranks() const;
  /// As part(), not connected yet.
  std::shared_ptr<GroupImpl> part_by(std::shared_ptr<Transport> transport, std::span<const int> ranks, const std::string& mark, std::string name);
  /// Connects a part.
  static void join(GroupImpl& part);
  /// What is known of each rank, and then whether that is decided.
  using Presences = std::vector<std::uint8_t>;
  /// A round of what ranks know, told to those that are there; adds what they know. True, and decided, where all knew the same and nothing was added, or one
  /// has decided already, whose word is taken. Who has decided before tells it, and waits for nobody.
  bool agree(Presences& known, std::uint32_t tag);

  const std::shared_ptr<Transport> transport_;
  GroupFacts facts_;
  SimulatedGroup* simulated_group_ = nullptr;
  std::shared_ptr<Board> board_;
  bool reads_peers_ = false;
  ScratchMemory scratch_;
  const std::uint32_t flight_group_;
  const std::shared_ptr<Hooks> hooks_ = std::make_shared<Hooks>();
  mutable std::mutex mutex_;
  std::shared_ptr<const Schedule> meeting_;
  Timeout timeout_;
  std::shared_ptr<const Machine> machine_;
  std::uint64_t sequence_ = 0, groups_ = 0;
  std::uint32_t tickets_ = 0;
  std::vector<std::uint64_t> of_pairs_;
  std::map<Line, std::deque<const void*>> lines_;
  std::map<Line, std::uint64_t> counts_;
  std::map<std::uint64_t, int> subgroups_;
  std::optional<Error> failure_;
  std::atomic<bool> has_failed_{false};
  std::set<int> lost_;
  std::map<std::pair<cl_context, cl_device_id>, DeviceLink::Beside> beside_;
  std::vector<Stream> streams_, kernel_streams_;
  std::vector<std::weak_ptr<SymmetricImpl>> symmetric_;
};

/// The world of a transport, not yet connected; `simulated`: where the rank is.
Group group_of(std::shared_ptr<Transport> transport, const OpenOptions& options, const char* op, std::shared_ptr<SimulatedRank> simulated = nullptr);

}}}}  // namespace clutch::v0::dist::detail
