// SPDX-License-Identifier: Apache-2.0
#pragma once
// A cost model of collectives on the machine at hand: measured once, it predicts times, and chooses algorithms.
//
//   const dist::Machine machine = dist::measure(world);  // less than two seconds
//   machine.save("machine.json");
//   dist::choose_by(world, machine);                     // Algorithm::automatic goes by it from now on
//   double us = dist::predict_us(machine, dist::Collective::all_reduce, 1 << 20, world.size());
#include <clutch/dist.hpp>

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace clutch { inline namespace v0 { namespace dist {

enum class Collective : std::uint8_t {
  all_reduce,
  reduce,
  reduce_scatter,
  all_gather,
  gather,
  scatter,
  broadcast,
  all_to_all,
};

/// Returns the enumerator's name: "all_reduce".
CLUTCH_DIST_API std::string_view name(Collective collective) noexcept;

/// Microseconds that one way of moving numbers takes a rank: the sum of these, each times how often a call does it.
struct WayCosts {
  bool known = false;
  double call_us = 0;             ///< a call, whatever it moves
  double round_us = 0;            ///< a round of messages, or a turn of 64 KiB on the board
  double message_us = 0;          ///< each message of a rank in a round but the first
  double cache_us_per_byte = 0;   ///< of what a rank moves, up to cache_bytes in a call
  double memory_us_per_byte = 0;  ///< beyond them
  double cache_bytes = 0;
  double add_us_per_byte = 0;  ///< of each summand but one
};

/// A cost model of machines whose ranks work together: latencies, bytes by two classes of size, sums, and one memory
/// that the ranks of a host share.
/// Accuracy: of calls that all ranks begin at the same time while nothing else runs. clutch-dist-bench --model prints
///   both predicted and measured times.
struct CLUTCH_DIST_API Machine {
  int ranks = 0;          ///< that measured it
  int ranks_of_host = 0;  ///< groups of more are taken to be on several hosts
  WayCosts board;         ///< Algorithm::board
  WayCosts kernel;        ///< Algorithm::kernel
  WayCosts messages;      ///< in a host
  WayCosts network;       ///< messages between hosts
  double launch_us = 0;   ///< a kernel of one element, until the host knows that it is done
  // A byte of all that the ranks of a host copy, and that they send, and receive, at one time: what they share.
  double host_us_per_byte = 0;
  double network_us_per_byte = 0;

  /// A machine of round numbers that nobody measured, for simulations: 8 ranks a host; 1 us and 10 GB/s a rank in a
  /// host, 10 us and 10 GB/s between hosts; sums of 20 GB/s; 100 GB/s of memory in a host, and 25 GB/s to others.
  static Machine nominal() noexcept;
  /// A JSON file. Errors: io; of load() also invalid_argument for a file that is none of save().
  void save(const std::filesystem::path& file) const;
  static Machine load(const std::filesystem::path& file);
};

/// Times all ways that the group has: four collectives of 20 sizes up to 8 MiB each, fewer where two seconds do not
/// suffice, and fits the costs by least squares of ratios. Collective; waits, on the current stream.
/// Results: rank 0's fit, the same on all ranks. Messages of a group of one host fill Machine::messages, those of
///   others Machine::network; what the group does not have stays unknown.
/// Errors: as Group::all_reduce_().
CLUTCH_DIST_API Machine measure(const Group& group);

/// Lets Algorithm::automatic of the group, and of groups made of it later, take the way with the least predicted time;
/// groups without a Machine go by fixed numbers of bytes and ranks. All ranks take rank 0's, whatever the others give.
/// Collective; waits.
/// Bits: the same, as no algorithm changes any. With Order::any the ring is among the choices.
/// Errors: as Group::broadcast_(); invalid_argument where rank 0's knows no messages.
CLUTCH_DIST_API void choose_by(const Group& group, const Machine& machine);

/// Microseconds of a call from where all ranks begin it to where the last one has ended. `bytes`: of the tensor of
/// all_reduce, reduce and broadcast; of all ranks' blocks together of the others. Algorithm::automatic: of the fastest
/// way but the ring and Algorithm::kernel.
/// Errors: invalid_argument for less than one rank, an algorithm that does not do it, and a way that is not known.
CLUTCH_DIST_API double predict_us(const Machine& machine, Collective collective, std::uint64_t bytes, int ranks,
                                  Algorithm algorithm = Algorithm::automatic);

}}}  // namespace clutch::v0::dist
