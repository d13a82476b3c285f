// SPDX-License-Identifier: Apache-2.0
#include "dist/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

double bytes_us(const WayCosts& way, double bytes) noexcept {
  const double in_cache = std::min(bytes, way.cache_bytes);
  return in_cache * way.cache_us_per_byte + (bytes - in_cache) * way.memory_us_per_byte;
}

double uniform(std::uint64_t seed, std::uint64_t counter) noexcept {
  // splitmix64
  std::uint64_t x = seed + (counter + 1) * 0x9e3779b97f4a7c15ULL;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
  return static_cast<double>((x ^ x >> 31) >> 11) * 0x1p-53;
}

ScheduleClock::ScheduleClock(int ranks, ClockModel model) : model_(std::move(model)), ranks_(static_cast<std::size_t>(ranks)) {
  int hosts = 0;
  for (int r = 0; r < ranks; ++r) hosts = std::max(hosts, host_of(r) + 1);
  hosts_.resize(static_cast<std::size_t>(hosts)), memory_.resize(static_cast<std::size_t>(hosts));
}

void ScheduleClock::at(double us, Then then) { push(us, nullptr, thens_.put(std::move(then))); }

void ScheduleClock::move(std::vector<Member> members, std::function<void(std::size_t, double)> ended) {
  if (free_calls_.empty()) free_calls_.push_back(&calls_.emplace_back());
  Call& call = *free_calls_.back();
  free_calls_.pop_back();
  call.members = std::move(members), call.ended = std::move(ended), call.left = call.members.size();
  call.walkers.assign(call.members.size(), {});
  for (std::size_t m = 0; m < call.members.size(); ++m) {
    call.walkers[m].call = &call, call.walkers[m].member = m;
    push(call.members[m].begin_us, &call.walkers[m], -1);
  }
}

namespace {

double length_of(const ScheduleClock::Member& member, Place place, std::int32_t blocks) {
  const std::size_t room = place.room == Room::input    ? member.input_bytes
                           : place.room == Room::output ? member.output_bytes
                                                        : std::numeric_limits<std::size_t>::max();
  const ByteRange range = range_of(member.shape, room, place, blocks);
  return static_cast<double>(range.end - range.begin);
}

}  // namespace

double ScheduleClock::own_work(const Walker& walker) const {
  const Member& member = walker.call->members[walker.member];
  double bytes = 0;
  for (std::size_t i = walker.at; i < walker.end; ++i) {
    const ScheduleStep& step = member.schedule->steps[i];
    if (step.kind == StepKind::copy || step.kind == StepKind::add) bytes += length_of(member, step.to, step.blocks);
    if (step.kind == StepKind::sum) bytes += (step.blocks - 1) * length_of(member, step.to, 1);
  }
  return bytes * model_.in_host.add_us_per_byte * slowness(member.rank);
}

void ScheduleClock::begin_round(Walker& walker, double now) {
  Call& call = *walker.call;
  const Member& member = call.members[walker.member];
  const std::vector<ScheduleStep>& steps = member.schedule->steps;
  walker.at = walker.end;
  if (walker.at == steps.size()) {
    // What is called may begin another call in this one's place.
    const std::size_t which = walker.member;
    const bool is_last = --call.left == 0;
    if (!is_last) return call.ended(which, now);
    const auto ended = std::move(call.ended);
    call.members.clear(), call.waiting.clear();
    free_calls_.push_back(&call);
    return ended(which, now);
  }
  walker.ready = now, walker.open = 0;
  for (; walker.end < steps.size() && steps[walker.end].round == steps[walker.at].round; ++walker.end) {
    const StepKind kind = steps[walker.end].kind;
    walker.open += kind == StepKind::send || kind == StepKind::receive ? 1 : 0;
  }
  if (walker.open == 0) return push(now + own_work(walker), &walker, -1);
  for (std::size_t i = walker.at; i < walker.end; ++i)
    if (steps[i].kind == StepKind::send || steps[i].kind == StepKind::receive) meet(walker, steps[i], now);
}

void ScheduleClock::meet(Walker& walker, const ScheduleStep& step, double now) {
  // Who comes first leaves the message; the other one takes the oldest.
  Call& call = *walker.call;
  const bool sends = step.kind == StepKind::send;
  const auto me = static_cast<std::uint64_t>(walker.member), peer = static_cast<std::uint64_t>(step.peer);
  const std::uint64_t key = sends ? me << 32 | peer : peer << 32 | me;
  Open& open = call.waiting[key];
  if (open.first < 0 || open.sends == sends) {
    const std::int32_t place = waiting_.put({&walker, &step, -1});
    (open.last < 0 ? open.first : waiting_[open.last].next) = place;
    open.last = place, open.sends = sends;
    return;
  }
  const Message other = waiting_.take(open.first);
  open.first = other.next;
  if (open.first < 0) open.last = -1;
  if (other.step->blocks != step.blocks)
    throw std::logic_error(fmt::format("rank {} sends rank {} {} and {} blocks", key >> 32, key & 0xffffffff, other.step->blocks, step.blocks));
  const Met message = sends ? Met{&walker, &step, other.who} : Met{other.who, other.step, &walker};
  const auto place = static_cast<std::uint64_t>(message.step - &message.sender->call->members[message.sender->member].schedule->steps[message.sender->at]);
  if (place == 0) return carry(message, now);
  push(now, nullptr, ~met_.put(message), place);
}

void ScheduleClock::carry(const Met& message, double now) {
  Walker &sender = *message.sender, &receiver = *message.receiver;
  const ScheduleStep& step = *message.step;
  const Member &from = sender.call->members[sender.member], &to = receiver.call->members[receiver.member];
  const int host = host_of(from.rank), other_host = host_of(to.rank);
  const bool in_host = host == other_host;
  const WayCosts& way = in_host ? model_.in_host : model_.between_hosts;
  const double length = length_of(from, step.from, step.blocks);
  const double late = model_.jitter > 0 ? 1 + model_.jitter * uniform(model_.seed, messages_) : 1;
  const double own = bytes_us(way, length) * late, shared = length * (in_host ? model_.host_us_per_byte : model_.network_us_per_byte);
  Port &out = ranks_[static_cast<std::size_t>(from.rank)], &in = ranks_[static_cast<std::size_t>(to.rank)];
  double& leaves = in_host ? memory_[static_cast<std::size_t>(host)] : hosts_[static_cast<std::size_t>(host)].sends;
  const double sent = std::max({now, out.sends, leaves});
  leaves = sent + shared, out.sends = sent + own + way.message_us * slowness(from.rank);
  double arrived = std::max(sent, in.receives);
  if (!in_host) {
    double& comes = hosts_[static_cast<std::size_t>(other_host)].receives;
    arrived = std::max(arrived, comes);
    comes = arrived + shared;
  }
  in.receives = arrived + own + way.message_us * slowness(to.rank);
  ++messages_, bytes_ += length;
  begun(sender, sent + own);
  begun(receiver, arrived + way.round_us * late + own);
}

void ScheduleClock::begun(Walker& walker, double over) {
  walker.ready = std::max(walker.ready, over);
  if (--walker.open == 0) push(walker.ready + own_work(walker), &walker, -1);
}

void ScheduleClock::run() {
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    if (event.walker != nullptr)
      begin_round(*event.walker, event.us);
    else if (event.other < 0)
      carry(met_.take(~event.other), event.us);
    else
      thens_.take(event.other)(event.us);
  }
  for (const Call& call : calls_) {
    if (call.left == 0) continue;
    for (const Walker& w : call.walkers)
      if (w.open > 0)
        throw std::logic_error(
            fmt::format("rank {} waits for ever in round {}", call.members[w.member].rank, call.members[w.member].schedule->steps[w.at].round));
  }
}

std::vector<double> simulate(const std::vector<Schedule>& ranks, std::size_t block_bytes, const WayCosts& link, const std::vector<double>& late) {
  ScheduleClock clock(static_cast<int>(ranks.size()), {.in_host = link, .between_hosts = link});
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  std::vector<ScheduleClock::Member> members(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    ScheduleClock::Member& member = members[r];
    member.rank = static_cast<int>(r), member.schedule = std::shared_ptr<const Schedule>(std::shared_ptr<void>(), &ranks[r]);
    member.shape.element = 1, member.shape.block = block_bytes;
    member.input_bytes = member.output_bytes = kAll;
    member.begin_us = late.empty() ? 0 : late.at(r);
  }
  std::vector<double> ends(ranks.size());
  clock.move(std::move(members), [&](std::size_t member, double us) { ends[member] = us; });
  clock.run();
  return ends;
}

}}}}  // namespace clutch::v0::dist::detail
