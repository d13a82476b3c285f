// SPDX-License-Identifier: Apache-2.0
#include "dist/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <stdexcept>
#include <unordered_map>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

namespace {

struct Message {
  std::int32_t blocks = 0;
  std::optional<double> sender_came = {}, receiver_came = {}, first_byte = {};
};

/// A rank on its way through its schedule.
struct Walker {
  const Schedule* schedule = nullptr;
  std::size_t at = 0, end = 0;      ///< steps of the round
  double now = 0;                   ///< begin of the round
  bool came = false, sent = false;  ///< its messages are known; all that it sends has begun
  double sends_done = 0;
  std::vector<Message*> sends, receives;
  bool is_done() const { return at == schedule->steps.size(); }
};

class Simulation {
 public:
  Simulation(const std::vector<Schedule>& ranks, std::size_t block_bytes, const LinkModel& link, const std::vector<double>& late)
      : bytes_(static_cast<double>(block_bytes)), link_(link), walkers_(ranks.size()) {
    for (std::size_t r = 0; r < ranks.size(); ++r) walkers_[r].schedule = &ranks[r], walkers_[r].now = late.empty() ? 0 : late.at(r);
  }

  std::vector<double> run() {
    // A rank is looked at when it begins a round, and when a peer has gone on.
    std::deque<std::size_t> ready;
    for (std::size_t r = 0; r < walkers_.size(); ++r) ready.push_back(r);
    while (!ready.empty()) {
      const std::size_t r = ready.front();
      ready.pop_front();
      while (advance(r, ready)) {
      }
    }
    std::vector<double> ends;
    for (std::size_t r = 0; r < walkers_.size(); ++r) {
      const Walker& w = walkers_[r];
      if (!w.is_done()) throw std::logic_error(fmt::format("rank {} waits for ever in round {}", r, w.schedule->steps[w.at].round));
      ends.push_back(w.now);
    }
    for (const auto& [key, queue] : sent_)
      if (!queue.empty()) throw std::logic_error(fmt::format("rank {} sends to rank {} what is not received", key / walkers_.size(), key % walkers_.size()));
    return ends;
  }

 private:
  Message& meet(std::size_t from, std::size_t to, bool as_sender, double now, std::int32_t blocks) {
    // Who comes first opens the message; the other one takes the oldest.
    const std::uint64_t key = static_cast<std::uint64_t>(from) * walkers_.size() + to;
    std::deque<Message*>& mine = as_sender ? sent_[key] : awaited_[key];
    std::deque<Message*>& others = as_sender ? awaited_[key] : sent_[key];
    Message* message = nullptr;
    if (others.empty()) {
      messages_.push_back({.blocks = blocks});
      message = &messages_.back();
      mine.push_back(message);
    } else {
      message = others.front();
      others.pop_front();
      if (message->blocks != blocks) throw std::logic_error(fmt::format("rank {} sends rank {} {} and {} blocks", from, to, message->blocks, blocks));
    }
    (as_sender ? message->sender_came : message->receiver_came) = now;
    return *message;
  }

  void begin_round(std::size_t r) {
    Walker& w = walkers_[r];
    w.sends.clear(), w.receives.clear();
    for (w.end = w.at; w.end < w.schedule->steps.size() && w.schedule->steps[w.end].round == w.schedule->steps[w.at].round; ++w.end) {
      const ScheduleStep& step = w.schedule->steps[w.end];
      const auto peer = static_cast<std::size_t>(step.peer);
      if (step.kind == StepKind::send) w.sends.push_back(&meet(r, peer, true, w.now, step.blocks));
      if (step.kind == StepKind::receive) w.receives.push_back(&meet(peer, r, false, w.now, step.blocks));
    }
    w.came = true, w.sent = false;
  }

  /// True if the rank came a step further.
  bool advance(std::size_t r, std::deque<std::size_t>& ready) {
    Walker& w = walkers_[r];
    if (w.is_done()) return false;
    if (!w.came) {
      begin_round(r);
      wake(w, ready);
      return true;
    }
    if (!w.sent) {
      if (std::any_of(w.sends.begin(), w.sends.end(), [](const Message* m) { return !m->receiver_came; })) return false;
      double port = w.now;
      for (Message* m : w.sends) {
        const double begin = std::max(port, *m->receiver_came);
        m->first_byte = begin + link_.latency_us;
        port = begin + m->blocks * bytes_ * link_.us_per_byte;
      }
      w.sends_done = port, w.sent = true;
      wake(w, ready);
      return true;
    }
    if (std::any_of(w.receives.begin(), w.receives.end(), [](const Message* m) { return !m->first_byte; })) return false;
    double port = w.now;
    std::vector<Message*> by_time = w.receives;
    std::stable_sort(by_time.begin(), by_time.end(), [](const Message* a, const Message* b) { return *a->first_byte < *b->first_byte; });
    for (const Message* m : by_time) port = std::max(port, *m->first_byte) + m->blocks * bytes_ * link_.us_per_byte;
    double now = std::max(port, w.sends_done);
    for (; w.at < w.end; ++w.at) {
      const ScheduleStep& step = w.schedule->steps[w.at];
      if (step.kind == StepKind::copy || step.kind == StepKind::add) now += step.blocks * bytes_ * link_.us_per_byte_add;
      if (step.kind == StepKind::sum) now += (step.blocks - 1) * bytes_ * link_.us_per_byte_add;
    }
    w.now = now, w.came = false;
    return true;
  }

  void wake(const Walker& w, std::deque<std::size_t>& ready) const {
    for (std::size_t i = w.at; i < w.end; ++i)
      if (const ScheduleStep& step = w.schedule->steps[i]; step.kind == StepKind::send || step.kind == StepKind::receive)
        ready.push_back(static_cast<std::size_t>(step.peer));
  }

  const double bytes_;
  const LinkModel link_;
  std::vector<Walker> walkers_;
  std::deque<Message> messages_;
  std::unordered_map<std::uint64_t, std::deque<Message*>> sent_, awaited_;
};

}  // namespace

std::vector<double> simulate(const std::vector<Schedule>& ranks, std::size_t block_bytes, const LinkModel& link, const std::vector<double>& late) {
  return Simulation(ranks, block_bytes, link, late).run();
}

}}}}  // namespace clutch::v0::dist::detail
