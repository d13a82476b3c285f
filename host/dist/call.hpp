// SPDX-License-Identifier: Apache-2.0
// A call of a group: what it is, what the other ranks are told of it, and how it stands.
#pragma once
#include "dist/execute.hpp"
#include "dist/reducer.hpp"

#include <clutch/dist.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

using Clock = std::chrono::steady_clock;

enum class CallKind : std::uint8_t {
  all_reduce,
  reduce,
  reduce_scatter,
  all_gather,
  gather,
  scatter,
  broadcast,
  all_to_all,
  reduce_scatter_v,
  all_gather_v,
  gather_v,
  scatter_v,
  all_to_all_v,
  barrier,
  split,
  symmetric,
  wait_signal,
  optimizer_step,
  send,
  receive,
};
bool reduces(CallKind kind) noexcept;
/// "all_reduce"
std::string_view name(CallKind kind) noexcept;
/// "one_shot"
std::string_view name(Algorithm algorithm) noexcept;

class SimulatedRank;

/// What ranks tell each other of a call before its numbers move. It goes between machines of one kind as it is.
struct CallHeader {
  static constexpr std::uint32_t kMagic = 0x434c4431;  // "CLD1"
  std::uint32_t magic = kMagic;
  CallKind kind = CallKind::barrier;
  DType dtype = DType::u8;
  ReduceOp op = ReduceOp::sum;
  Method method = Method::direct;
  std::int32_t broken = 0;  ///< the ErrorCode of a rank that cannot take part
  std::uint32_t line = 0;
  std::uint64_t sequence = 0;
  std::uint64_t elements = 0;   ///< of the larger one of input and output; 0 where ranks may differ
  std::uint64_t rows = 0;       ///< a hash of the list of rows
  std::uint64_t symmetric = 0;  ///< the Symmetric whose memory kernels work on, and where in it; 0: none
  std::uint64_t place = 0;
  double factor = 1;
  std::uint64_t ordinal = 0;    ///< of messages: of those between the two ranks with its tag, from 1
  std::uint64_t functions = 0;  ///< a hash of what is done before and after a reduction; 0: nothing
  std::int32_t root = -1;
  std::uint32_t ticket = 0;  ///< of sends: what their numbers are tagged by
  char file[40] = {};        ///< the end of its name

  void set_place(const SourceLine& where);
  /// "all_reduce(sum, direct, 1024 elements of f32) at FILE:42"
  std::string text() const;
  /// The algorithm that does it; automatic where there is no choice.
  Algorithm algorithm() const noexcept;
  /// True if both are one call.
  bool agrees(const CallHeader& other) const;
};
static_assert(sizeof(CallHeader) == 128);

/// How a call stands: what Work shows.
struct CallState {
  std::mutex mutex;
  std::condition_variable changed;
  Work::Status status = Work::Status::waiting;
  std::optional<Error> error;
  std::uint64_t sequence = 0;
  int source = kAnyRank;
  double milliseconds = 0;
  std::vector<std::function<void(Work::Status)>> hooks;
  // For Work::wait(): the call's stream, what another one waits for, and those that do.
  Stream stream;
  Event event;
  std::vector<Stream> waiting;
  // Where the rank is simulated: what it writes down, and the calls that this one is there.
  std::shared_ptr<SimulatedRank> simulated;
  std::vector<std::size_t> deeds;

  /// Somebody waits for it.
  void note_wait() const;
  bool has_ended() const { return status != Work::Status::waiting && status != Work::Status::running; }
  void end(Work::Status how, std::optional<Error> why);
  void begin_again();
  std::optional<Error> failure();
  static const std::shared_ptr<CallState>& of(const Work& work) noexcept { return work.state_; }
};

/// What a rank does in a call, the same at each replay.
struct CallPlan {
  const char* op = "";
  CallHeader header;
  std::shared_ptr<const Schedule> schedule;  ///< none of barriers and splits
  HostMemory shape;                          ///< without memory
  std::optional<Reducer> reducer;
  bool wide = false;   ///< sums are sent in the wide type
  bool lays = false;   ///< the numbers are laid on the board, in the place of a schedule
  bool reads = false;  ///< of a call that `lays`: where its numbers are is laid there, and the others read them
  bool async = false;  ///< as CallOptions says
  // Bytes of the tensors; 0 where this rank has none. `one_memory`: the output is the input.
  std::size_t input_bytes = 0, output_bytes = 0;
  bool one_memory = false;
  std::vector<std::int64_t> rows;  ///< of all_to_all_v: to each rank, then from each; of splits color and key
  Timeout timeout{};
  int peer = kAnyRank, tag = 0;  ///< of sends and receives
  // What flight recorders have of the call: the tensors' sizes, or others in their place.
  Tensor in, out;
  std::vector<std::vector<std::int64_t>> in_sizes, out_sizes;
  SourceLine where;
  /// Work of the device between two meetings of all ranks, in the place of a schedule.
  std::function<void(const Stream&)> launch;
  /// What kernels of launch() found wrong, the same on all ranks; asked when all have done their work.
  std::function<std::optional<Error>()> verdict;
  /// What is waited for, in the place of other ranks' messages.
  std::function<bool()> condition;
};

}}}}  // namespace clutch::v0::dist::detail
