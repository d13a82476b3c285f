// SPDX-License-Identifier: Apache-2.0
#include "dist/thread_transport.hpp"

#include <fmt/format.h>
#include <clutch/error.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

namespace {

using Address = std::pair<Lane, std::uint32_t>;

struct Message {
  int from;
  std::vector<std::byte> bytes;
  std::uint64_t number = 0;  ///< in the order in which they came
};

/// What came for a rank and was not received.
class Mailbox {
 public:
  void put(Address address, Message message) {
    const std::lock_guard lock(mutex_);
    message.number = came_++;
    messages_[key_of(address, message.from)].push_back(std::move(message));
  }
  /// The oldest message of that rank, or of any; false if there is none.
  bool take(Address address, int from, Message& message) {
    const std::lock_guard lock(mutex_);
    auto found = from == kAnyPeer ? messages_.end() : messages_.find(key_of(address, from));
    if (from == kAnyPeer)
      for (auto at = messages_.begin(); at != messages_.end(); ++at)
        if (at->first >> kRankBits == key_of(address, 0) >> kRankBits && (found == messages_.end() || at->second.front().number < found->second.front().number))
          found = at;
    if (found == messages_.end()) return false;
    message = std::move(found->second.front());
    found->second.pop_front();
    if (found->second.empty()) messages_.erase(found);
    return true;
  }

 private:
  static constexpr int kRankBits = 32;
  static std::uint64_t key_of(Address address, int from) {
    static_assert(kTags <= 1U << 24);
    return static_cast<std::uint64_t>(address.first) << (kRankBits + 24) | static_cast<std::uint64_t>(address.second) << kRankBits |
           static_cast<std::uint32_t>(from);
  }
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::list<Message>> messages_;  ///< of each sender in the order in which they came; none is empty
  std::uint64_t came_ = 0;
};

struct Ranks {
  explicit Ranks(int ranks) : mailboxes(static_cast<std::size_t>(ranks)) {}
  Mailbox& of(int rank) { return mailboxes[static_cast<std::size_t>(rank)]; }

  std::deque<Mailbox> mailboxes;
  // Groups among these ranks, until all of their ranks have asked for them.
  struct Among {
    std::shared_ptr<Ranks> ranks;
    std::size_t open;
  };
  std::mutex mutex;
  std::map<std::pair<std::vector<int>, std::uint64_t>, Among> groups;
};

class ThreadExchange final : public Exchange {
 public:
  ThreadExchange(std::shared_ptr<Ranks> ranks, int rank, Address address) : ranks_(std::move(ranks)), rank_(rank), address_(address) {}

  void send(int peer, std::span<const std::byte> data) override { ranks_->of(peer).put(address_, {.from = rank_, .bytes = {data.begin(), data.end()}}); }
  void receive(int peer, std::span<std::byte> to) override { open_.push_back({peer, to}); }
  bool done() override {
    // Of two receives from one rank the earlier one gets the earlier message.
    std::vector<bool> is_behind(open_.size() > 1 ? ranks_->mailboxes.size() : 0);
    std::erase_if(open_, [&](const Open& open) {
      const bool may_be_behind = open.peer != kAnyPeer && !is_behind.empty();
      if (may_be_behind && is_behind[static_cast<std::size_t>(open.peer)]) return false;
      Message message;
      if (!ranks_->of(rank_).take(address_, open.peer, message)) {
        if (may_be_behind) is_behind[static_cast<std::size_t>(open.peer)] = true;
        return false;
      }
      if (message.bytes.size() > open.to.size())
        throw Error(ErrorCode::internal, "dist",
                    fmt::format("rank {} expects at most {} bytes of rank {}, got {}", rank_, open.to.size(), message.from, message.bytes.size()));
      if (!message.bytes.empty()) std::memcpy(open.to.data(), message.bytes.data(), message.bytes.size());
      source_ = message.from;
      return true;
    });
    return open_.empty();
  }
  std::vector<int> waiting_for() const override {
    std::vector<int> peers;
    for (const Open& open : open_) peers.push_back(open.peer);
    return peers;
  }
  int source() const override { return source_; }
  void keep(std::shared_ptr<void>) override {}

 private:
  struct Open {
    int peer;
    std::span<std::byte> to;
  };
  const std::shared_ptr<Ranks> ranks_;
  const int rank_;
  const Address address_;
  std::vector<Open> open_;
  int source_ = kAnyPeer;
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<Ranks> ranks, int rank) : ranks_(std::move(ranks)), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_->mailboxes.size()); }
  std::unique_ptr<Exchange> open(Lane lane, std::uint32_t tag) override { return std::make_unique<ThreadExchange>(ranks_, rank_, Address{lane, tag % kTags}); }
  std::shared_ptr<Transport> among(std::span<const int> ranks, std::uint64_t group) override {
    const std::vector<int> list(ranks.begin(), ranks.end());
    const auto own = static_cast<int>(std::find(list.begin(), list.end(), rank_) - list.begin());
    const std::lock_guard lock(ranks_->mutex);
    const auto [at, is_new] = ranks_->groups.try_emplace({list, group});
    if (is_new) at->second = {std::make_shared<Ranks>(static_cast<int>(list.size())), list.size()};
    auto result = std::make_shared<ThreadTransport>(at->second.ranks, own);
    if (--at->second.open == 0) ranks_->groups.erase(at);
    return result;
  }

 private:
  const std::shared_ptr<Ranks> ranks_;
  const int rank_;
};

}  // namespace

std::vector<std::shared_ptr<Transport>> thread_transports(int ranks) {
  const auto all = std::make_shared<Ranks>(ranks);
  std::vector<std::shared_ptr<Transport>> result;
  for (int r = 0; r < ranks; ++r) result.push_back(std::make_shared<ThreadTransport>(all, r));
  return result;
}

}}}}  // namespace clutch::v0::dist::detail
