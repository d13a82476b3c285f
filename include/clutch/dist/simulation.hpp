// SPDX-License-Identifier: Apache-2.0
#pragma once
// Programs of many ranks on one machine, with a clock that says how long the ranks would take.
//
//   void train(const dist::Group& world);                       // the program that mpirun starts elsewhere
//   const dist::Simulation run = dist::simulate({.ranks = 1000}, train);
//   run.us();                                                   // when the last rank would have ended
//   run.write_trace("ranks.json"), run.dump_flight("flight.");  // as of a real run
//
// It is: the program's own text, run by a thread for each rank; the numbers, moved by the schedules that real ranks
//   run, with the bits that as many real ranks would get; the order of messages, who waits for whom, what is sent, what
//   becomes of the others when a rank or a link is lost.
// It is not: a measurement. Times are those of a Machine, whose costs were measured with few ranks or were made up,
//   and of links that hold one message at a time. Ranks compute in no time unless simulate_work() says otherwise.
//   Nothing is said of caches that ranks share, of routes in a network, of a system's other work.
#include <clutch/dist/model.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace clutch { inline namespace v0 { namespace dist {

namespace detail {
class SimulatedWorld;
}  // namespace detail

struct SimulationOptions {
  int ranks = 8;
  Machine machine = Machine::nominal();  ///< its costs, and as many ranks in each host; automatic chooses by it
  std::uint64_t seed = 0;
  double jitter = 0;  ///< messages and work take up to so much longer, as a share, by the seed
  struct Straggler {
    int rank = 0;
    double factor =
        1;  ///< its own work takes so often as long: sums, copies, what each message asks of it, its kernels
    double late_us = 0;  ///< it comes so late to each call
  };
  std::vector<Straggler> stragglers = {};
  /// A rank that is gone from its call of this number on, counted from 0 over all its groups.
  struct LostRank {
    int rank = 0;
    std::uint64_t call = 0;
  };
  std::vector<LostRank> lost_ranks = {};
  /// A link that carries nothing one way, from the receiver's call of this number on.
  struct LostLink {
    int from = 0, to = 0;
    std::uint64_t call = 0;
  };
  std::vector<LostLink> lost_links = {};
  Timeout timeout = std::chrono::minutes(10);  ///< of calls that state none, by the simulated clock
  int flight_records = 2000;                   ///< of each rank
};

/// A call of a simulated rank.
struct SimulatedCall {
  std::string name;   ///< "all_reduce"
  std::string group;  ///< its name
  std::uint64_t sequence = 0;
  std::uint64_t bytes = 0;
  double begin_us = 0;  ///< when the rank came to it
  double met_us = 0;    ///< when the last one did
  double end_us = 0;
  Work::Status status = Work::Status::done;
};

/// A run that was simulated. A cheap value: copies share it.
class CLUTCH_DIST_API Simulation {
 public:
  /// Microseconds of the simulated clock until the last rank's program had ended, and of each rank.
  double us() const;
  const std::vector<double>& rank_us() const;
  /// Errors that programs threw, by rank; of lost ranks peer_failed.
  const std::vector<std::optional<Error>>& errors() const;
  /// In the order of the rank's program.
  std::vector<SimulatedCall> calls(int rank) const;
  /// Messages of schedules, and their bytes; envelopes and boards are not among them.
  std::uint64_t messages() const;
  std::uint64_t bytes() const;
  /// A dump of each rank's flight recorder, with the simulated times: as Group::dump_flight(). clutch-flight and
  /// PyTorch's analyzer read them. Errors: not_supported without records; io.
  void dump_flight(const std::filesystem::path& prefix, FlightFormat format = FlightFormat::torch_pickle) const;
  /// A Chrome trace with a process for each rank, for Perfetto: waiting for others and moving numbers of each call.
  /// Errors: io.
  void write_trace(const std::filesystem::path& file) const;

  explicit Simulation(std::shared_ptr<const detail::SimulatedWorld> world) noexcept : world_(std::move(world)) {}

 private:
  std::shared_ptr<const detail::SimulatedWorld> world_;
};

/// Calls program(world) once for each rank, each by a thread with a stream of its own, and then lets the clock run.
/// Numbers first, the clock afterwards: what ranks compute does not depend on it, and the same options and program give
///   the same times, whatever the machine does meanwhile. Receives of kAnyRank alone take what comes first.
/// Clock: each rank has one, that goes on with its calls, of all its streams in the order in which they are made, and
///   its work; asynchronous calls go on meanwhile, until something waits for their Work. Calls of different groups
///   share links. Hosts share memory and network: Machine::host_us_per_byte, network_us_per_byte. Captured calls count
///   at each replay.
/// Lost ranks and links: those who wait for them get timed_out, naming them, when their time-out is over on the
///   simulated clock; so do those who wait for these. The host does not wait so long. Reconfigured groups are
///   simulated, too. A program that ends early is a rank that does not come.
/// Waiting in circles, such as two ranks that both receive first, ends by the same time-out on the host's clock.
/// Numbers: each rank has its tensors, on the current device: 1000 ranks of 64 KiB take 64 MB and their threads.
/// Errors: invalid_argument for less than one rank, a rank that is not there, a factor below 0, a Machine that knows no
///   messages; what a program throws is in Simulation::errors().
CLUTCH_DIST_API Simulation simulate(const SimulationOptions& options, const std::function<void(const Group&)>& program);

/// The rank's device works so long, by the simulated clock; nothing of groups that are not simulated.
CLUTCH_DIST_API void simulate_work(const Group& group, double us);

}}}  // namespace clutch::v0::dist
