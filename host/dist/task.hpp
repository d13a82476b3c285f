// SPDX-License-Identifier: Apache-2.0
// A call on its way from the stream's work before it to the work behind it.
#pragma once
#include "dist/group.hpp"

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

/// What each rank says of a call, and what is wrong with that.
struct Envelopes {
  std::vector<std::byte> mine, all;
  std::size_t bytes = 0;  ///< of each rank
  const CallHeader* header(std::size_t rank) const;
  std::span<const std::int64_t> rows(std::size_t rank) const;
};

/// Why the ranks' headers are not one call; none if they are. Errors of the result: mismatch, peer_failed.
std::optional<Error> disagreement(const Envelopes& envelopes, std::size_t ranks, const CallPlan& plan, const std::string& group);

/// "rank 1", "ranks 0, 2 and 5"
std::string ranks_text(const std::vector<int>& ranks);
/// "the process of rank 1"
std::string processes_of(const std::vector<int>& ranks);

class CallTask : public Task {
 public:
  CallTask(std::shared_ptr<GroupImpl> group, std::shared_ptr<const CallPlan> plan, std::shared_ptr<CallState> state, std::shared_ptr<DeviceLink> link,
           DevicePlace input, DevicePlace output);
  bool advance() noexcept override;
  bool sleeps() const noexcept override { return stage_ == Stage::waiting || stage_ == Stage::launched; }
  bool ends_soon() const noexcept override { return stage_ == Stage::moving && plan_->lays; }
  const Envelopes& envelopes() const noexcept { return *envelopes_; }

 private:
  enum class Stage : std::uint8_t { waiting, telling, answering, launched, leaving, polling, mapping, moving, unmapping, ended };
  /// One stage further, if it is over. False if it is not.
  bool step();
  bool begin();
  void tell();
  bool told();
  /// All ranks make the same call.
  bool go_on();
  /// True once all ranks have said what they call; of a group that has a board. Envelopes are made where they are needed.
  bool has_met();
  /// How numbers are passed on by the board: the same bytes of each block in a turn.
  struct Turns {
    std::size_t blocks = 1, block = 0;  ///< of the input, and their bytes
    std::size_t bytes = 0;              ///< of a block in a turn; fewer in the last one
    std::uint64_t count = 1;
  };
  static Turns turns_of(const CallPlan& plan, int ranks);
  /// Bytes of another rank's input that belong in this one's output.
  struct Part {
    int rank;
    std::size_t from, to, bytes;
  };
  std::vector<Part> parts() const;
  /// Reads the next of what others have. True when all ranks have read all.
  bool has_read();
  /// Lays the next turn's numbers.
  void lay();
  /// Makes of the next turn's numbers what the call makes of them.
  void take();
  bool passed_on();
  void launch();
  void leave();
  bool answered();
  void map();
  void move();
  bool moved();
  void end(Work::Status how, std::optional<Error> why);
  void fail(const Error& why);
  /// Nothing more can come of what it waits for.
  bool is_time_over() const;
  void time_out();
  /// Who has not come, or not sent.
  std::vector<int> missing() const;
  /// Processes of other ranks that have ended. True if the call ends by that.
  bool end_with_others();
  std::string text() const;
  CallInfo info() const;
  GroupImpl::Line line() const;
  std::unique_ptr<Exchange> open(Lane lane, std::uint32_t tag);

  const std::shared_ptr<GroupImpl> group_;
  const std::shared_ptr<const CallPlan> plan_;
  const std::shared_ptr<CallState> state_;
  const std::shared_ptr<DeviceLink> link_;
  const DevicePlace input_, output_;
  Stage stage_ = Stage::waiting;
  CallHeader header_;
  int peer_ = kAnyPeer;
  std::uint64_t record_ = FlightRing::kNotRecorded;
  std::shared_ptr<Envelopes> envelopes_;  ///< null where ranks meet on a board and agree
  std::shared_ptr<std::byte[]> wide_;
  ClOwned<cl_event> kernels_;             ///< of what launch() enqueued
  std::unique_ptr<Exchange> exchange_;    ///< of messages between two ranks
  std::unique_ptr<Execution> execution_;  ///< of collectives
  bool has_arrived_ = false;              ///< on the board
  std::optional<std::size_t> deed_;       ///< of simulated ranks
  std::vector<int> cut_;                  ///< those whose messages do not reach this rank
  Turns turns_;
  std::uint64_t laid_ = 0, taken_ = 0;             ///< turns
  std::size_t read_ = 0;                           ///< bytes of other ranks' numbers
  std::optional<Clock::time_point> unread_since_;  ///< when the memory of one was there no more
  bool has_left_ = false;
  Clock::time_point began_, deadline_;
};

}}}}  // namespace clutch::v0::dist::detail
