// SPDX-License-Identifier: Apache-2.0
// What a clock would say of schedules, by a model of links. It moves no numbers. A simulation says how many rounds there are, who waits for whom and that
// nobody waits for ever; its times are those of the model, and no measurement.
#pragma once
#include "dist/execute.hpp"
#include "dist/schedule.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

/// What ranks and links take. Each rank sends one message after another and receives one after another, both at a time; so does each host, by the bytes that
/// its ranks share. A message begins once both ranks have come to it.
struct ClockModel {
  std::vector<int> host_of = {};  ///< of each rank; empty: each has a host of its own
  WayCosts in_host = {}, between_hosts = {};
  // Of a byte, of all that the ranks of a host move in it, and that they send, and receive, at one time.
  double host_us_per_byte = 0, network_us_per_byte = 0;
  std::vector<double> slowness = {};  ///< of each rank: how often longer its own work takes; empty: 1
  double jitter = 0;                  ///< messages take up to so much longer, as a share, by the seed
  std::uint64_t seed = 0;
};

/// Microseconds of so many bytes.
double bytes_us(const WayCosts& way, double bytes) noexcept;

/// Numbers that schedules move, and other things that happen at their times. What happens at one time happens in the order in which it was asked for, so that
/// the same calls give the same times.
class ScheduleClock {
 public:
  explicit ScheduleClock(int ranks, ClockModel model);
  ScheduleClock(const ScheduleClock&) = delete;
  ScheduleClock& operator=(const ScheduleClock&) = delete;

  /// A rank's part in a call.
  struct Member {
    int rank = 0;
    std::shared_ptr<const Schedule> schedule = {};
    HostMemory shape = {};  ///< without memory
    std::size_t input_bytes = 0, output_bytes = 0;
    double begin_us = 0;
  };
  using Then = std::function<void(double us)>;
  /// Calls a function at a time that is not over.
  void at(double us, Then then);
  /// Ranks move the numbers of a call; `ended` is called with each member when it is done. Errors of run(): std::logic_error where two members' messages
  /// differ in length.
  void move(std::vector<Member> members, std::function<void(std::size_t member, double us)> ended);
  /// Goes on until nothing is left that can happen. Errors: std::logic_error where members wait for ever, with rank and round of the first that does.
  void run();

  const ClockModel& model() const noexcept { return model_; }
  std::uint64_t messages() const noexcept { return messages_; }
  double bytes() const noexcept { return bytes_; }

 private:
  struct Call;
  /// A member on its way.
  struct Walker {
    Call* call = nullptr;
    std::size_t member = 0;
    std::size_t at = 0, end = 0;  ///< steps of the round
    std::size_t open = 0;         ///< messages of the round that have not begun
    double ready = 0;             ///< when those that have are over
  };
  struct Message {
    Walker* who;
    const ScheduleStep* step;
    std::int32_t next;
  };
  struct Open {
    bool sends = false;
    std::int32_t first = -1, last = -1;  ///< of waiting_
  };
  struct Call {
    std::vector<Member> members;
    std::vector<Walker> walkers;
    std::unordered_map<std::uint64_t, Open> waiting;  ///< by sender and receiver
    std::function<void(std::size_t, double)> ended;
    std::size_t left = 0;
  };
  /// Both ranks have come to it.
  struct Met {
    Walker* sender;
    const ScheduleStep* step;
    Walker* receiver;
  };
  struct Event {
    double us;
    std::uint64_t
        number;      ///< at one time rounds begin first, then messages by their places in the senders' rounds: so a round's messages do not meet at a rank
    Walker* walker;  ///< whose round is over; else what is called, or ~ the message
    std::int32_t other;
    bool operator>(const Event& o) const noexcept { return us != o.us ? us > o.us : number > o.number; }
  };
  /// Things that are kept until they are taken.
  template <class T>
  struct Pool {
    std::vector<T> all;
    std::vector<std::int32_t> free;
    std::int32_t put(T thing) {
      if (free.empty()) {
        all.push_back(std::move(thing));
        return static_cast<std::int32_t>(all.size()) - 1;
      }
      const std::int32_t place = free.back();
      free.pop_back();
      all[static_cast<std::size_t>(place)] = std::move(thing);
      return place;
    }
    T take(std::int32_t place) {
      free.push_back(place);
      return std::move(all[static_cast<std::size_t>(place)]);
    }
    T& operator[](std::int32_t place) { return all[static_cast<std::size_t>(place)]; }
  };

  void push(double us, Walker* walker, std::int32_t other, std::uint64_t after = 0) { events_.push({us, after << 40 | pushed_++, walker, other}); }
  void begin_round(Walker& walker, double now);
  void meet(Walker& walker, const ScheduleStep& step, double now);
  void carry(const Met& message, double now);
  void begun(Walker& walker, double over);
  double own_work(const Walker& walker) const;
  double slowness(int rank) const { return model_.slowness.empty() ? 1 : model_.slowness[static_cast<std::size_t>(rank)]; }
  int host_of(int rank) const { return model_.host_of.empty() ? rank : model_.host_of[static_cast<std::size_t>(rank)]; }

  const ClockModel model_;
  // When each rank and each host has sent, and received, all before.
  struct Port {
    double sends = 0, receives = 0;
  };
  std::vector<Port> ranks_, hosts_;
  std::vector<double> memory_;  ///< of hosts
  std::deque<Call> calls_;
  std::vector<Call*> free_calls_;
  Pool<Message> waiting_;
  Pool<Met> met_;
  Pool<Then> thens_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t pushed_ = 0, messages_ = 0;
  double bytes_ = 0;
};

/// Microseconds at which each rank is done. `block_bytes`: of a block. `late`: when each rank begins, all at 0 where it is empty.
/// Errors: std::logic_error where ranks would wait for ever, with rank and round of the first that does, or where messages differ in length from what is
/// received.
std::vector<double> simulate(const std::vector<Schedule>& ranks, std::size_t block_bytes, const WayCosts& link, const std::vector<double>& late = {});

/// A number from 0 to 1 that a seed and a counter have.
double uniform(std::uint64_t seed, std::uint64_t counter) noexcept;

}}}}  // namespace clutch::v0::dist::detail
