// SPDX-License-Identifier: Apache-2.0
// What a flight recorder's ring or dump says: plain values, which dumps are written from and which the analysis compares.
#pragma once
#include <clutch/dtype.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

/// Calls that are recorded. The numbers stand in files and never change.
enum class FlightOp : std::uint8_t {
  all_reduce = 0,
  reduce = 1,
  broadcast = 2,
  all_gather = 3,
  reduce_scatter = 4,
  all_to_all = 5,
  gather = 6,
  scatter = 7,
  all_gather_v = 8,      ///< sizes: in of this rank, out of all ranks
  reduce_scatter_v = 9,  ///< sizes: in of all ranks, out of this rank
  all_to_all_v = 10,     ///< sizes: totals of this rank, in and out
  gather_v = 11,
  scatter_v = 12,
  all_reduce_coalesced = 13,  ///< several tensors as one call
  all_gather_coalesced = 14,
  reduce_scatter_coalesced = 15,
  dispatch = 16,  ///< an all_to_all_v whose splits only the device knows
  combine = 17,
  barrier = 18,
  split = 19,
  new_window = 20,
  send = 21,
  recv = 22,
  put = 23,
  get = 24,
  signal = 25,
  wait_signal = 26,
  reconfigure = 27,
};
inline constexpr int kFlightOpCount = 28;

/// Numbers of a sum's kind, as the public header has them.
enum class FlightReduce : std::uint8_t { sum = 0, avg = 1, prod = 2, min = 3, max = 4, band = 5, bor = 6, bxor = 7, premul_sum = 8, none = 9 };
inline constexpr int kFlightReduceCount = 10;

enum class FlightState : std::uint8_t { scheduled = 0, started = 1, completed = 2, failed = 3, timed_out = 4 };
inline constexpr int kFlightStateCount = 5;

struct FlightOpInfo {
  enum class Match : std::uint8_t {
    collective,  ///< all ranks of a group make call n of the group
    pair,        ///< a send and a receive
    none,        ///< nobody else makes a call of it
  };
  std::string_view name;
  std::string_view torch_name;  ///< as PyTorch's analyzer knows it; empty: it does not
  Match match = Match::none;
  bool joins = false;     ///< no rank is done before every rank has begun
  bool has_root = false;  ///< sizes may differ at the root
};
const FlightOpInfo& info(FlightOp op) noexcept;
std::string_view name(FlightReduce reduce) noexcept;  ///< "" for none
std::string_view name(FlightState state) noexcept;
/// None if no op, state, ... has that name.
std::optional<FlightOp> flight_op(std::string_view name) noexcept;
std::optional<FlightReduce> flight_reduce(std::string_view name) noexcept;
std::optional<FlightState> flight_state(std::string_view name) noexcept;

using FlightSizes = std::vector<std::vector<std::int64_t>>;  ///< sizes of each tensor

/// Elements of tensors; what 64 bits do not hold is the largest number.
std::int64_t elements_of(const std::vector<std::int64_t>& sizes) noexcept;
std::int64_t elements_of(const FlightSizes& sizes) noexcept;

/// One side of a call: its inputs or its outputs.
struct FlightTensors {
  std::optional<DType> dtype;
  FlightSizes sizes;
  /// True where a record has no space for the sizes: `sizes` is the number of all elements then, of `count` tensors.
  bool is_total = false;
  std::uint32_t count = 0;
  std::uint64_t hash = 0;  ///< of the sizes, also where they are a total; 0: not known
  friend bool operator==(const FlightTensors&, const FlightTensors&) = default;
};
/// The hash that a ring keeps of sizes.
std::uint64_t hash_of(const FlightSizes& sizes) noexcept;

/// Times: nanoseconds of the Unix epoch, on the clock of rank 0 as far as it is known; 0: it has not happened, or is not known.
struct FlightRecord {
  std::uint64_t id = 0;     ///< number of the call in its process, from 0
  std::uint32_t group = 0;  ///< index of a FlightGroup
  std::uint64_t collective_seq = 0;
  std::uint64_t p2p_seq = 0;  ///< number among messages of its group, way and tag between two ranks, from 1
  std::uint64_t op_id = 0;
  std::uint64_t batch = 0;  ///< what calls of one batch share; 0: none
  FlightOp op = FlightOp::all_reduce;
  FlightReduce reduce = FlightReduce::none;
  FlightState state = FlightState::scheduled;
  FlightTensors in, out;
  std::int32_t root = -1;  ///< of the group's ranks
  std::int32_t peer = -1;  ///< of the group's ranks; -1: none, or any, of which none has come
  std::int32_t tag = 0;
  std::int64_t timeout_ms = 0;
  std::int64_t created_ns = 0, started_ns = 0, completed_ns = 0;
  std::uint64_t thread = 0;
  std::string file, function;  ///< of the caller; the end of the file's path
  std::uint32_t line = 0;
  std::string why;  ///< of a failure, its begin
  friend bool operator==(const FlightRecord&, const FlightRecord&) = default;
};

struct FlightGroup {
  std::uint32_t index = 0;
  std::string name, description;
  std::vector<std::int32_t> ranks;  ///< of the world, in the group's order
  bool has_ranks = true;            ///< false: the ring has no space for such a list
  friend bool operator==(const FlightGroup&, const FlightGroup&) = default;
};

enum class FlightProcess : std::uint8_t {
  unknown,
  running,
  closed,  ///< it ended, or ended its recording, in order
  lost,    ///< it ended in another way: killed, crashed
};
std::string_view name(FlightProcess process) noexcept;

struct FlightImage {
  std::int32_t rank = 0, world_size = 1;
  std::uint64_t process_id = 0;
  std::string host, library;
  FlightProcess process = FlightProcess::unknown;
  std::int64_t taken_ns = 0;  ///< when the image was made of a running process, or the dump was written; 0: nothing can have been added later
  std::int64_t clock_offset_ns = 0;
  std::uint64_t capacity = 0, begun = 0;  ///< records of the ring; calls that were begun
  std::uint64_t torn = 0;                 ///< records that were being written when the process ended
  std::vector<FlightGroup> groups;        ///< by index
  std::vector<FlightRecord> records;      ///< by id
  /// Null if the image does not know the group.
  const FlightGroup* group(std::uint32_t index) const noexcept;
  friend bool operator==(const FlightImage&, const FlightImage&) = default;
};

/// The groups of several ranks' images: two are one group if they have the same name and the same ranks.
class FlightGroups {
 public:
  explicit FlightGroups(const std::vector<FlightImage>& images);
  struct Group {
    std::string name, description;
    std::vector<std::int32_t> ranks;
  };
  const std::vector<Group>& all() const noexcept { return all_; }
  /// Number of the group that an image has under an index; -1 if its ranks are not known.
  std::int32_t number(std::size_t image, std::uint32_t index) const noexcept;

 private:
  std::vector<Group> all_;
  std::vector<std::map<std::uint32_t, std::int32_t>> numbers_;  ///< of each image
};

/// `text` with '?' in place of each byte that is no UTF-8 or a control character, so that every format takes it.
std::string printable(std::string_view text);

}}}}  // namespace clutch::v0::dist::detail
