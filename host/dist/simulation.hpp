// SPDX-License-Identifier: Apache-2.0
// The inside of a simulation: what ranks did, written down while their numbers move, and when, which the clock finds afterwards.
#pragma once
#include "dist/board.hpp"
#include "dist/call.hpp"
#include "dist/flight.hpp"

#include <clutch/dist/simulation.hpp>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

/// What a rank did, in the order of its program.
struct Deed {
  enum class Kind : std::uint8_t {
    call,
    wait,  ///< for a call that went on beside
    work,  ///< of its device
  };
  Kind kind = Kind::call;
  // Of calls.
  std::uint32_t group = 0;
  CallHeader header = {};
  int peer = kAnyRank;  ///< of messages
  bool async = false, lays = false, launches = false, has_schedule = false;
  HostMemory shape = {};  ///< without memory
  std::size_t input_bytes = 0, output_bytes = 0;
  Timeout timeout = {};
  std::uint64_t record = FlightRing::kNotRecorded;
  Work::Status status = Work::Status::running;
  std::size_t call = 0;  ///< of waits
  double us = 0;         ///< of work
  // By the clock; below 0: not yet.
  double begin_us = -1, met_us = -1, end_us = -1;
};

/// Ends the program of a rank that is lost. No std::exception, so that programs do not take it for an error of theirs.
struct RankLost {};

class SimulatedWorld;

struct SimulatedGroup {
  std::uint32_t index = 0;
  std::string path, name;
  std::vector<int> ranks;
  bool one_host = true;
  std::vector<std::shared_ptr<Board>> boards;  ///< of each member
  std::deque<std::atomic<bool>> gone;          ///< members that make no call any more
  std::atomic<bool> any_gone{false};
};

/// What a rank of a simulated world tells of itself, and is told of others. Threads: any.
class SimulatedRank {
 public:
  SimulatedRank(SimulatedWorld& world, int rank) : world_(world), rank_(rank) {}
  SimulatedWorld& world() const noexcept { return world_; }
  int rank() const noexcept { return rank_; }
  /// Before each call. Errors: RankLost.
  void check_is_there() const;
  /// Returns the deed's number.
  std::size_t begin(const SimulatedGroup& group, const CallPlan& plan, const CallHeader& header, Timeout timeout, std::uint64_t record);
  void end(std::size_t deed, Work::Status how, const CallHeader& header, int peer);
  void wait(const std::vector<std::size_t>& calls);
  void work(double us);
  /// Of a group's members, or of that one alone, those of whom nothing reaches this rank any more.
  std::vector<int> cut_off(const SimulatedGroup& group, int only) const;
  /// Waits until all calls have ended.
  void drain();
  void keep(std::shared_ptr<Flight> flight) { flight_ = std::move(flight); }

 private:
  friend class SimulatedWorld;
  SimulatedWorld& world_;
  const int rank_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Deed> deeds_;
  std::uint64_t calls_ = 0;
  std::size_t open_ = 0;  ///< calls that have not ended
  std::shared_ptr<Flight> flight_;
};

class SimulatedWorld : public std::enable_shared_from_this<SimulatedWorld> {
 public:
  explicit SimulatedWorld(SimulationOptions options);
  const SimulationOptions& options() const noexcept { return options_; }
  /// Keeps the world, too.
  std::shared_ptr<SimulatedRank> rank(int rank) { return {shared_from_this(), &ranks_[static_cast<std::size_t>(rank)]}; }
  int host_of(int rank) const noexcept { return rank / options_.machine.ranks_of_host; }

  /// The group of that path, the same for all its members. Threads: any.
  SimulatedGroup* group(std::string_view path, std::string_view name, const std::vector<int>& ranks);
  /// The member makes no call of the group any more.
  static void leave(SimulatedGroup& group, int member);
  /// The rank's program has ended.
  void end(int rank, std::optional<Error> why);

  /// Finds when each deed was done, after all ranks have ended.
  void run_clock();

  // What Simulation tells.
  std::vector<double> rank_us;
  std::vector<std::optional<Error>> errors;
  std::uint64_t messages = 0, bytes = 0;
  std::vector<SimulatedCall> calls(int rank) const;
  /// With the simulated times.
  FlightImage image(int rank) const;
  std::string trace() const;

 private:
  friend class Replay;
  std::vector<Deed>& deeds(std::size_t rank) const { return ranks_[rank].deeds_; }

  const SimulationOptions options_;
  mutable std::deque<SimulatedRank> ranks_;
  mutable std::mutex mutex_;
  std::deque<SimulatedGroup> groups_;
  std::vector<bool> ended_;
};

}}}}  // namespace clutch::v0::dist::detail
