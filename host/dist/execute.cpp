// SPDX-License-Identifier: Apache-2.0
#include "dist/execute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <stdexcept>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

std::size_t block_of(std::size_t total, std::int32_t blocks) {
  const auto n = static_cast<std::size_t>(blocks);
  return (total + n - 1) / n;
}

void execute(const Schedule& schedule, const HostMemory& memory, const Combine& combine, Transport& transport) {
  const std::size_t block = memory.block * memory.element;
  std::vector<std::byte> scratch(static_cast<std::size_t>(schedule.scratch) * block);
  // Blocks of a room from a place on, as far as they are there.
  auto part = [&]<class Byte>(std::span<Byte> room, Place at, std::int32_t blocks) {
    const std::size_t begin = std::min(static_cast<std::size_t>(at.block) * block, room.size());
    return room.subspan(begin, std::min(static_cast<std::size_t>(blocks) * block, room.size() - begin));
  };
  auto read = [&](Place at, std::int32_t blocks) {
    if (at.room == Room::input) return part(memory.input, at, blocks);
    return std::span<const std::byte>(part(at.room == Room::output ? memory.output : std::span(scratch), at, blocks));
  };
  auto write = [&](Place at, std::int32_t blocks) { return part(at.room == Room::output ? memory.output : std::span(scratch), at, blocks); };
  for (std::size_t i = 0; i < schedule.steps.size();) {
    std::size_t end = i;
    bool moves = false;
    for (; end < schedule.steps.size() && schedule.steps[end].round == schedule.steps[i].round; ++end) {
      const ScheduleStep& step = schedule.steps[end];
      if (step.kind == StepKind::send) transport.send(step.peer, read(step.from, step.blocks)), moves = true;
      if (step.kind == StepKind::receive) transport.receive(step.peer, write(step.to, step.blocks)), moves = true;
    }
    if (moves) transport.finish();
    for (; i < end; ++i) {
      const ScheduleStep& step = schedule.steps[i];
      if (step.kind != StepKind::copy && step.kind != StepKind::add) continue;
      const std::span<std::byte> to = write(step.to, step.blocks);
      const std::span<const std::byte> from = read(step.from, step.blocks);
      std::size_t bytes = std::min(to.size(), from.size());
      if (step.kind == StepKind::copy) {
        if (bytes > 0 && to.data() != from.data()) std::memmove(to.data(), from.data(), bytes);
        continue;
      }
      const std::span<const std::byte> with = read(step.with, step.blocks);
      bytes = std::min(bytes, with.size());
      if (bytes > 0) combine(to.data(), from.data(), with.data(), bytes / memory.element);
    }
  }
}

struct ThreadRanks::State {
  /// Messages of one rank to another.
  struct Mail {
    std::mutex mutex;
    std::condition_variable came;
    std::deque<std::vector<std::byte>> messages;
  };
  class Rank : public Transport {
   public:
    Rank(State& all, int rank) : all_(all), rank_(rank) {}
    void send(int peer, std::span<const std::byte> data) override {
      Mail& mail = all_.mail(rank_, peer);
      {
        const std::lock_guard lock(mail.mutex);
        mail.messages.emplace_back(data.begin(), data.end());
      }
      mail.came.notify_one();
    }
    void receive(int peer, std::span<std::byte> to) override { open_.push_back({peer, to}); }
    void finish() override {
      for (const Open& open : open_) {
        Mail& mail = all_.mail(open.peer, rank_);
        std::unique_lock lock(mail.mutex);
        mail.came.wait(lock, [&] { return !mail.messages.empty(); });
        const std::vector<std::byte> message = std::move(mail.messages.front());
        mail.messages.pop_front();
        lock.unlock();
        if (message.size() > open.to.size())
          throw std::logic_error(fmt::format("rank {} must get at most {} bytes of rank {}, got {}", rank_, open.to.size(), open.peer, message.size()));
        if (!message.empty()) std::memcpy(open.to.data(), message.data(), message.size());
      }
      open_.clear();
    }

   private:
    struct Open {
      int peer;
      std::span<std::byte> to;
    };
    State& all_;
    const int rank_;
    std::vector<Open> open_;
  };

  explicit State(int n) : ranks(n), mails(static_cast<std::size_t>(n) * static_cast<std::size_t>(n)) {
    for (int r = 0; r < n; ++r) transports.push_back(std::make_unique<Rank>(*this, r));
  }
  Mail& mail(int from, int to) { return mails[static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(to)]; }

  const int ranks;
  std::deque<Mail> mails;
  std::vector<std::unique_ptr<Rank>> transports;
};

ThreadRanks::ThreadRanks(int ranks) : state_(std::make_unique<State>(ranks)) {}
ThreadRanks::~ThreadRanks() = default;
Transport& ThreadRanks::transport(int rank) { return *state_->transports.at(static_cast<std::size_t>(rank)); }

}}}}  // namespace clutch::v0::dist::detail
