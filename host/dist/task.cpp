// SPDX-License-Identifier: Apache-2.0
#include "dist/task.hpp"
#include "dist/mpi_transport.hpp"
#include "dist/peer_memory.hpp"
#include "dist/profiled.hpp"

#include <fmt/format.h>
#include <clutch/interop_cl.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <map>
#include <utility>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

namespace {

/// Calls that have no number in the group.
bool is_alone(CallKind kind) { return kind == CallKind::wait_signal; }
bool is_pair(CallKind kind) { return kind == CallKind::send || kind == CallKind::receive; }

/// "0, 2 and 5"
std::string list_of(const std::vector<int>& ranks) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(ranks.size(), kMost); ++i) text += fmt::format("{}{}", i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ", ranks[i]);
  return ranks.size() > kMost ? fmt::format("{} and {} more", text, ranks.size() - kMost) : text;
}
}  // namespace

std::string ranks_text(const std::vector<int>& ranks) { return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", list_of(ranks)); }
std::string processes_of(const std::vector<int>& ranks) { return fmt::format("the {} of {}", ranks.size() == 1 ? "process" : "processes", ranks_text(ranks)); }

const CallHeader* Envelopes::header(std::size_t rank) const { return reinterpret_cast<const CallHeader*>(all.data() + rank * bytes); }
std::span<const std::int64_t> Envelopes::rows(std::size_t rank) const {
  return {reinterpret_cast<const std::int64_t*>(all.data() + rank * bytes + sizeof(CallHeader)), (bytes - sizeof(CallHeader)) / sizeof(std::int64_t)};
}

std::optional<Error> disagreement(const Envelopes& envelopes, std::size_t ranks, const CallPlan& plan, const std::string& group) {
  std::vector<int> broken;
  bool all_agree = true;
  for (std::size_t r = 0; r < ranks; ++r) {
    const CallHeader& header = *envelopes.header(r);
    if (header.broken != 0) broken.push_back(static_cast<int>(r));
    all_agree = all_agree && header.agrees(*envelopes.header(0));
  }
  if (!broken.empty())
    return Error(ErrorCode::peer_failed, plan.op,
                 fmt::format("{} of group '{}' cannot take part in call {}: {}", ranks_text(broken), group, envelopes.header(0)->sequence,
                             name(static_cast<ErrorCode>(envelopes.header(static_cast<std::size_t>(broken[0]))->broken))));
  if (!all_agree) {
    std::map<std::string, std::vector<int>> calls;
    for (std::size_t r = 0; r < ranks; ++r) calls[envelopes.header(r)->text()].push_back(static_cast<int>(r));
    std::string text;
    // The calls of most ranks come first.
    std::vector<std::pair<std::string, std::vector<int>>> by_count(calls.begin(), calls.end());
    std::stable_sort(by_count.begin(), by_count.end(), [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
    for (const auto& [call, of] : by_count)
      text += fmt::format("{}{} {} {}", text.empty() ? "" : "; ", ranks_text(of), of.size() == 1 ? "makes" : "make", call);
    return Error(ErrorCode::mismatch, plan.op, fmt::format("ranks of group '{}' make different calls: {}", group, text));
  }
  if (plan.header.kind == CallKind::all_to_all_v)
    for (std::size_t a = 0; a < ranks; ++a)
      for (std::size_t b = 0; b < ranks; ++b)
        if (const std::int64_t given = envelopes.rows(a)[b], taken = envelopes.rows(b)[ranks + a]; given != taken)
          return Error(
              ErrorCode::mismatch, plan.op,
              fmt::format("in group '{}' rank {} sends {} rows to rank {}, which expects {}: {}", group, a, given, b, taken, envelopes.header(b)->text()));
  return std::nullopt;
}

CallTask::CallTask(std::shared_ptr<GroupImpl> group, std::shared_ptr<const CallPlan> plan, std::shared_ptr<CallState> state, std::shared_ptr<DeviceLink> link,
                   DevicePlace input, DevicePlace output)
    : group_(std::move(group)),
      plan_(std::move(plan)),
      state_(std::move(state)),
      link_(std::move(link)),
      input_(input),
      output_(output),
      header_(plan_->header),
      peer_(plan_->peer) {
  // In the order of the calls, which is that of all ranks.
  if (!is_pair(header_.kind) && !is_alone(header_.kind)) {
    header_.sequence = group_->next_sequence();
  } else if (header_.kind == CallKind::send) {
    header_.sequence = group_->next_of_pair(peer_), header_.ticket = group_->next_ticket();
  }
  if (is_pair(header_.kind)) header_.ordinal = group_->line_up(line(), this);
  if (Flight* flight = group_->flight()) record_ = flight->begin(group_->flight_group(), *plan_, header_, group_->timeout_of(*plan_));
  state_->sequence = header_.sequence;
  if (SimulatedRank* const simulated = group_->simulated()) {
    deed_ = simulated->begin(*group_->simulated_group(), *plan_, header_, group_->timeout_of(*plan_), record_);
    state_->simulated = group_->shared_simulated(), state_->deeds = {*deed_};
  }
  if (profiler::recording()) [[unlikely]]
    ProfiledCall::tell(*group_, *plan_, header_);
  if (group_->hooks().any()) [[unlikely]]
    group_->hooks().called(info());
}

CallInfo CallTask::info() const {
  return {.kind = name(header_.kind),
          .sequence = header_.sequence,
          .group = group_->name(),
          .dtype = header_.dtype,
          .elements = header_.elements,
          .root = header_.root,
          .peer = peer_,
          .op = header_.op,
          .algorithm = header_.algorithm(),
          .where = plan_->where};
}

GroupImpl::Line CallTask::line() const { return {header_.kind == CallKind::send, plan_->peer, plan_->tag}; }

std::unique_ptr<Exchange> CallTask::open(Lane lane, std::uint32_t tag) {
  std::unique_ptr<Exchange> exchange = group_->transport().open(lane, tag);
  exchange->keep(link_), exchange->keep(envelopes_), exchange->keep(wide_);
  return exchange;
}

std::string CallTask::text() const {
  return fmt::format("call {} of group '{}' on rank {}, {}", header_.sequence, group_->name(), group_->rank(), header_.text());
}

bool CallTask::advance() noexcept {
  try {
    if (std::optional<Error> failure = group_->failure()) {
      end(Work::Status::failed, Error(failure->code(), plan_->op, failure->message(), failure->cl_code()));
      return true;
    }
    while (stage_ != Stage::ended) {
      if (step()) continue;
      if (stage_ == Stage::waiting) return false;
      if (end_with_others()) return true;
      if (!is_time_over()) return false;
      // What those who are gone sent before is there now.
      if (!step()) time_out();
    }
  } catch (const Error& e) {
    fail(e);
  } catch (const std::exception& e) {
    fail(Error(ErrorCode::internal, plan_->op, e.what()));
  }
  return true;
}

bool CallTask::step() {
  switch (stage_) {
    case Stage::waiting: return begin();
    case Stage::telling: return told();
    case Stage::answering: return answered();
    case Stage::launched:
      if (!is_complete(kernels_.get(), "Algorithm::kernel")) return false;
      leave();
      return true;
    case Stage::leaving:
      if (Board* board = group_->board(); board != nullptr ? !board->all_have(Board::left, header_.sequence) : !execution_->advance()) return false;
      if (std::optional<Error> why = plan_->verdict ? plan_->verdict() : std::nullopt)
        end(Work::Status::failed, std::move(why));
      else
        end(Work::Status::done, std::nullopt);
      return true;
    case Stage::polling:
      if (!plan_->condition()) return false;
      end(Work::Status::done, std::nullopt);
      return true;
    case Stage::mapping:
      if (link_ && !link_->is_mapped()) return false;
      if (plan_->lays && !has_arrived_)
        tell();
      else
        move();
      return true;
    case Stage::moving: return moved();
    case Stage::unmapping:
      if (link_ && !link_->is_unmapped()) return false;
      end(Work::Status::done, std::nullopt);
      return true;
    case Stage::ended: return true;
  }
  return true;
}

bool CallTask::begin() {
  if (link_ && !link_->is_ready()) return false;
  if (is_pair(header_.kind) && !group_->is_first(line(), this)) return false;
  // Who cannot take part says so to the others.
  if (link_ && link_->has_failed(interop::failed(state_->stream))) header_.broken = static_cast<std::int32_t>(ErrorCode::stream_failed);
  {
    const std::lock_guard lock(state_->mutex);
    state_->status = Work::Status::running;
  }
  if (Flight* flight = group_->flight()) flight->ring().started(record_);
  if (SimulatedRank* const simulated = group_->simulated()) cut_ = simulated->cut_off(*group_->simulated_group(), plan_->peer);
  constexpr std::size_t kMostRows = (Board::kSaid - sizeof(CallHeader)) / sizeof(std::int64_t);
  if (group_->board() != nullptr && plan_->rows.size() > kMostRows)
    throw Error(ErrorCode::not_supported, plan_->op,
                fmt::format("ranks of a host must tell each other {} numbers of rows at most, got {}", kMostRows, plan_->rows.size()));
  began_ = Clock::now(), deadline_ = began_ + group_->timeout_of(*plan_);
  if (plan_->lays && header_.broken == 0)
    map();
  else
    tell();
  return true;
}

/// All ranks have come: their memory is as they want it read.
void CallTask::launch() {
  const Stream stream = group_->kernel_stream(state_->stream.device());
  {
    const ProfiledLaunch profiled(*group_, *plan_, header_);
    plan_->launch(stream);
  }
  Event behind;
  behind.record(stream);
  kernels_ = retained(interop::event(behind));
  wake_after(kernels_.get());
  stage_ = Stage::launched;
}

/// Nobody goes on before all have read and written.
void CallTask::leave() {
  stage_ = Stage::leaving;
  if (Board* board = group_->board()) {
    board->mark(Board::left, header_.sequence);
    return;
  }
  Envelopes& e = *envelopes_;
  execution_ = std::make_unique<Execution>(
      group_->meeting(),
      HostMemory{.input = std::span(e.mine).first(1), .output = std::span(e.all).first(static_cast<std::size_t>(group_->size())), .element = 1, .block = 1},
      Sum{}, open(Lane::leaving, static_cast<std::uint32_t>(header_.sequence)));
}

void CallTask::tell() {
  if (plan_->condition) {
    stage_ = Stage::polling;
    return;
  }
  stage_ = Stage::telling;
  if (!is_pair(header_.kind) && group_->board() != nullptr) return;
  const auto n = static_cast<std::size_t>(group_->size());
  envelopes_ = std::make_shared<Envelopes>();
  Envelopes& e = *envelopes_;
  if (is_pair(header_.kind)) {
    e.bytes = sizeof(CallHeader), e.mine.resize(e.bytes), e.all.resize(2 * e.bytes);
    std::memcpy(e.mine.data(), &header_, sizeof header_);
    exchange_ = open(Lane::envelope, static_cast<std::uint32_t>(plan_->tag));
    if (header_.kind == CallKind::send)
      exchange_->send(peer_, e.mine);
    else
      exchange_->receive(peer_, std::span(e.all).first(e.bytes));
    group_->leave_line(line(), this);
    return;
  }
  e.bytes = sizeof(CallHeader) + plan_->rows.size() * sizeof(std::int64_t);
  e.mine.resize(e.bytes), e.all.resize(n * e.bytes);
  std::memcpy(e.mine.data(), &header_, sizeof header_);
  if (!plan_->rows.empty()) std::memcpy(e.mine.data() + sizeof header_, plan_->rows.data(), plan_->rows.size() * sizeof(std::int64_t));
  execution_ = std::make_unique<Execution>(group_->meeting(), HostMemory{.input = e.mine, .output = e.all, .element = 1, .block = e.bytes}, Sum{},
                                           open(Lane::collective, static_cast<std::uint32_t>(header_.sequence)));
}

bool CallTask::told() {
  if (is_pair(header_.kind)) {
    if (!cut_.empty() || !exchange_->done()) return false;
    Envelopes& e = *envelopes_;
    stage_ = Stage::answering;
    if (header_.kind == CallKind::send) {
      exchange_ = open(Lane::answer, header_.ticket);
      exchange_->receive(peer_, std::span(e.all).first(e.bytes));
      return true;
    }
    peer_ = exchange_->source();
    header_.sequence = e.header(0)->sequence, header_.ticket = e.header(0)->ticket;
    if (plan_->peer == kAnyRank) {
      group_->count({false, peer_, plan_->tag});
      if (Flight* flight = group_->flight()) flight->ring().matched(record_, peer_, e.header(0)->ordinal);
    }
    {
      const std::lock_guard lock(state_->mutex);
      state_->source = peer_, state_->sequence = header_.sequence;
    }
    std::memcpy(e.mine.data(), &header_, sizeof header_);
    exchange_ = open(Lane::answer, header_.ticket);
    exchange_->send(peer_, e.mine);
    return true;
  }
  if (group_->board() != nullptr ? !has_met() : !execution_->advance()) return false;
  if (!cut_.empty()) return false;
  if (!envelopes_) return go_on();
  if (std::optional<Error> why = disagreement(*envelopes_, static_cast<std::size_t>(group_->size()), *plan_, group_->name())) {
    end(Work::Status::failed, std::move(why));
    return true;
  }
  return go_on();
}

bool CallTask::go_on() {
  if (plan_->launch) {
    launch();
    return true;
  }
  if (plan_->lays) {
    stage_ = Stage::moving;
    return true;
  }
  if (!plan_->schedule) {
    end(Work::Status::done, std::nullopt);
    return true;
  }
  map();
  return true;
}

bool CallTask::has_met() {
  Board& board = *group_->board();
  const std::uint64_t meeting = header_.sequence;
  if (!has_arrived_) {
    if (!board.has_place(meeting)) return false;
    std::byte* const said = board.said(group_->rank(), meeting);
    std::memcpy(said, &header_, sizeof header_);
    if (!plan_->rows.empty()) std::memcpy(said + sizeof header_, plan_->rows.data(), plan_->rows.size() * sizeof(std::int64_t));
    if (plan_->reads && header_.broken == 0) {
      const PeerMemory place = PeerMemory::of(link_->input().data());
      std::memcpy(said + sizeof header_, &place, sizeof place);
    } else if (plan_->lays && header_.broken == 0) {
      turns_ = turns_of(*plan_, group_->size()), lay();
    }
    board.mark(Board::arrived, meeting);
    has_arrived_ = true;
  }
  if (!board.all_have(Board::arrived, meeting)) return false;
  bool all_agree = plan_->rows.empty() && header_.broken == 0;
  for (int r = 0; all_agree && r < group_->size(); ++r) {
    const auto& other = *reinterpret_cast<const CallHeader*>(board.said(r, meeting));
    all_agree = other.broken == 0 && other.agrees(header_);
  }
  if (all_agree) return true;
  // What they say is looked at in full.
  envelopes_ = std::make_shared<Envelopes>();
  envelopes_->bytes = sizeof(CallHeader) + plan_->rows.size() * sizeof(std::int64_t);
  for (int r = 0; r < group_->size(); ++r) {
    const std::byte* const said = board.said(r, meeting);
    envelopes_->all.insert(envelopes_->all.end(), said, said + envelopes_->bytes);
  }
  return true;
}

CallTask::Turns CallTask::turns_of(const CallPlan& plan, int ranks) {
  constexpr std::size_t kLine = 64;
  const CallKind kind = plan.header.kind;
  const bool has_blocks = kind == CallKind::reduce_scatter || kind == CallKind::scatter || kind == CallKind::all_to_all;
  const bool is_whole = kind == CallKind::all_reduce || kind == CallKind::reduce || kind == CallKind::broadcast;
  Turns turns;
  turns.blocks = has_blocks ? static_cast<std::size_t>(ranks) : 1;
  turns.block = is_whole ? bytes_for(plan.header.dtype, plan.header.elements) : plan.shape.block * plan.shape.element;
  turns.bytes = Board::kNumbers / turns.blocks / kLine * kLine;
  turns.count = std::max<std::uint64_t>(1, (turns.block + turns.bytes - 1) / turns.bytes);
  return turns;
}

void CallTask::lay() {
  const std::uint64_t turn = laid_++;
  const bool is_heard = (header_.kind != CallKind::broadcast && header_.kind != CallKind::scatter) || header_.root == group_->rank();
  const std::span<const std::byte> input = link_->input();
  if (!is_heard || input.empty()) return;
  std::byte* const to = group_->board()->numbers(group_->rank(), header_.sequence, turn);
  const std::size_t begin = turn * turns_.bytes, bytes = std::min(turns_.bytes, turns_.block - begin);
  for (std::size_t i = 0; i < turns_.blocks; ++i) std::memcpy(to + i * turns_.bytes, input.data() + i * turns_.block + begin, bytes);
}

void CallTask::take() {
  const std::uint64_t turn = taken_++;
  const std::span<std::byte> output = link_->output();
  if (output.empty()) return;
  const Board& board = *group_->board();
  const int n = group_->size();
  const std::size_t begin = turn * turns_.bytes, bytes = std::min(turns_.bytes, turns_.block - begin);
  // Of what each rank lays either all is for this one, or its block.
  const std::size_t mine = turns_.blocks > 1 ? static_cast<std::size_t>(group_->rank()) * turns_.bytes : 0;
  auto laid = [&](int rank) { return board.numbers(rank, header_.sequence, turn) + mine; };
  if (plan_->reducer) {
    constexpr std::size_t kFew = 16;
    std::array<const std::byte*, kFew> few{};
    std::vector<const std::byte*> many(static_cast<std::size_t>(n) > kFew ? static_cast<std::size_t>(n) : 0);
    const std::span<const std::byte*> parts = many.empty() ? std::span(few).first(static_cast<std::size_t>(n)) : std::span(many);
    for (int r = 0; r < n; ++r) parts[static_cast<std::size_t>(r)] = laid(r);
    plan_->reducer->all(output.data() + begin, parts, bytes / plan_->shape.element);
  } else if (header_.kind == CallKind::broadcast || header_.kind == CallKind::scatter) {
    // The root of a broadcast has it.
    if (const std::byte* const from = laid(header_.root); header_.kind == CallKind::scatter || header_.root != group_->rank())
      std::memcpy(output.data() + begin, from, bytes);
  } else {
    for (int r = 0; r < n; ++r) std::memcpy(output.data() + static_cast<std::size_t>(r) * turns_.block + begin, laid(r), bytes);
  }
}

bool CallTask::passed_on() {
  Board& board = *group_->board();
  const std::uint64_t meeting = header_.sequence;
  while (taken_ < turns_.count) {
    // This turn's, and the next one's for those who are faster.
    while (laid_ < std::min(turns_.count, taken_ + 2) && (laid_ < 2 || board.all_have(Board::took, meeting, laid_ - 2))) {
      lay();
      board.mark(Board::laid, meeting, laid_ - 1);
    }
    if (taken_ > 0 && !board.all_have(Board::laid, meeting, taken_)) return false;
    take();
    if (turns_.count > 2) board.mark(Board::took, meeting, taken_ - 1);
  }
  return true;
}

std::vector<CallTask::Part> CallTask::parts() const {
  const int n = group_->size(), me = group_->rank();
  const std::size_t block = plan_->shape.block * plan_->shape.element;
  if (link_->output().empty()) return {};
  switch (header_.kind) {
    case CallKind::broadcast:
      if (me == header_.root) return {};
      return {{.rank = header_.root, .from = 0, .to = 0, .bytes = link_->output().size()}};
    case CallKind::scatter: return {{.rank = header_.root, .from = static_cast<std::size_t>(me) * block, .to = 0, .bytes = block}};
    default: break;
  }
  std::vector<Part> all;
  // Each rank begins with another one's.
  for (int i = 0; i < n; ++i) {
    const int r = (me + i) % n;
    all.push_back({.rank = r,
                   .from = header_.kind == CallKind::all_to_all ? static_cast<std::size_t>(me) * block : 0,
                   .to = static_cast<std::size_t>(r) * block,
                   .bytes = block});
  }
  return all;
}

bool CallTask::has_read() {
  constexpr std::size_t kAtATime = 4 << 20;
  Board& board = *group_->board();
  if (!has_left_) {
    std::size_t before = 0;
    for (const Part& part : parts()) {
      if (read_ >= before + part.bytes) {
        before += part.bytes;
        continue;
      }
      const std::size_t at = read_ - before, bytes = std::min(kAtATime, part.bytes - at);
      PeerMemory place;
      std::memcpy(&place, board.said(part.rank, header_.sequence) + sizeof header_, sizeof place);
      if (!place.at(part.from + at).read(link_->output().data() + part.to + at, bytes)) {
        // Its process is ending: who watches the ranks knows in a moment which have ended.
        constexpr std::chrono::seconds kMoment{1};
        if (!unread_since_) unread_since_ = Clock::now();
        if (Clock::now() - *unread_since_ < kMoment) return false;
        throw Error(ErrorCode::peer_failed, plan_->op,
                    fmt::format("the memory of rank {} must be there until all have read it, got one that is not", part.rank));
      }
      read_ += bytes;
      return false;
    }
    board.mark(Board::left, header_.sequence);
    has_left_ = true;
  }
  // What others read stays as it is.
  return board.all_have(Board::left, header_.sequence);
}

bool CallTask::answered() {
  if (!cut_.empty() || !exchange_->done()) return false;
  const CallHeader other = *envelopes_->header(0);
  const int from = header_.kind == CallKind::send ? group_->rank() : peer_, to = header_.kind == CallKind::send ? peer_ : group_->rank();
  if (header_.broken != 0 || other.broken != 0) {
    const ErrorCode code = static_cast<ErrorCode>(header_.broken != 0 ? header_.broken : other.broken);
    end(Work::Status::failed, Error(ErrorCode::peer_failed, plan_->op,
                                    fmt::format("rank {} of group '{}' cannot take part in a message from rank {} to rank {}: {}",
                                                header_.broken != 0 ? group_->rank() : peer_, group_->name(), from, to, name(code))));
    return true;
  }
  if (!header_.agrees(other)) {
    end(Work::Status::failed,
        Error(ErrorCode::mismatch, plan_->op,
              fmt::format("in group '{}' rank {} makes {}, and rank {} makes {}", group_->name(), group_->rank(), header_.text(), peer_, other.text())));
    return true;
  }
  map();
  return true;
}

void CallTask::map() {
  stage_ = Stage::mapping;
  if (link_) link_->map(input_, output_, plan_->one_memory);
}

void CallTask::move() {
  stage_ = Stage::moving;
  const std::span<const std::byte> input = link_->input();
  const std::span<std::byte> output = link_->output();
  if (is_pair(header_.kind)) {
    exchange_ = open(Lane::payload, header_.ticket);
    if (header_.kind == CallKind::send)
      exchange_->send(peer_, input);
    else
      exchange_->receive(peer_, output);
    return;
  }
  HostMemory memory = plan_->shape;
  memory.input = input, memory.output = output;
  const Reducer* reducer = plan_->reducer ? &*plan_->reducer : nullptr;
  Sum sum;
  if (plan_->wide) {
    // Input and output are one memory of wide numbers.
    const std::size_t elements = input.size() / plan_->shape.element;
    const std::size_t bytes = elements * reducer->wide_bytes();
    wide_ = group_->scratch().get(bytes);
    reducer->widen(wide_.get(), input.data(), elements);
    memory.input = {wide_.get(), bytes}, memory.output = {wide_.get(), bytes}, memory.element = reducer->wide_bytes();
    sum = [reducer](std::byte* to, std::span<const std::byte* const> parts, std::size_t n) { reducer->add(to, parts, n); };
  } else if (reducer != nullptr) {
    sum = [reducer](std::byte* to, std::span<const std::byte* const> parts, std::size_t n) { reducer->all(to, parts, n); };
  }
  execution_ = std::make_unique<Execution>(plan_->schedule, std::move(memory), std::move(sum),
                                           open(Lane::collective, static_cast<std::uint32_t>(header_.sequence)), &group_->scratch());
}

bool CallTask::moved() {
  if (is_pair(header_.kind) ? !exchange_->done() : plan_->reads ? !has_read() : plan_->lays ? !passed_on() : !execution_->advance()) return false;
  if (wide_) {
    const std::span<std::byte> output = link_->output();
    plan_->reducer->narrow(output.data(), wide_.get(), output.size() / plan_->shape.element);
  }
  stage_ = Stage::unmapping;
  link_->unmap();
  return true;
}

bool CallTask::end_with_others() {
  const std::vector<int> gone = group_->ended();
  if (gone.empty()) return false;
  group_->lose(gone);
  never_finalize_mpi();
  const Error error(ErrorCode::peer_failed, plan_->op, fmt::format("{} cannot be done, as {} ended", text(), processes_of(gone)));
  group_->fail(error);
  end(Work::Status::failed, error);
  return true;
}

std::vector<int> CallTask::missing() const {
  if (!cut_.empty()) return cut_;
  std::vector<int> ranks;
  if (const Board* board = group_->board(); has_arrived_) {
    if (stage_ == Stage::telling) ranks = board->missing(Board::arrived, header_.sequence);
    if (stage_ == Stage::leaving) ranks = board->missing(Board::left, header_.sequence);
    if (stage_ == Stage::moving && plan_->reads) ranks = board->missing(Board::left, header_.sequence);
    if (stage_ == Stage::moving && plan_->lays && !plan_->reads) ranks = board->missing(Board::laid, header_.sequence, taken_);
  }
  if (ranks.empty())
    if (Exchange* exchange = exchange_ ? exchange_.get() : execution_ ? &execution_->exchange() : nullptr) ranks = exchange->waiting_for();
  return ranks;
}

bool CallTask::is_time_over() const {
  if (Clock::now() >= deadline_ || !cut_.empty()) return true;
  const SimulatedGroup* const simulated = group_->simulated_group();
  if (simulated == nullptr || !simulated->any_gone.load(std::memory_order_acquire)) return false;
  // Those who are late come, as the host's clock counts for nobody.
  const std::vector<int> ranks = missing();
  return !ranks.empty() &&
         std::all_of(ranks.begin(), ranks.end(), [&](int r) { return r >= 0 && simulated->gone[static_cast<std::size_t>(r)].load(std::memory_order_acquire); });
}

void CallTask::time_out() {
  const std::vector<int> waiting = missing();
  const auto ms = std::chrono::duration_cast<Timeout>(deadline_ - began_).count();
  const Error error(ErrorCode::timed_out, plan_->op,
                    fmt::format("{} waited {} ms{}{}", text(), ms, waiting.empty() ? "" : " for ", waiting.empty() ? "" : ranks_text(waiting)));
  group_->lose(waiting);
  group_->fail(error);
  end(Work::Status::timed_out, error);
}

void CallTask::fail(const Error& why) {
  const Error named(why.code(), plan_->op, fmt::format("{}: {}", text(), why.message()), why.cl_code());
  group_->fail(named);
  end(Work::Status::failed, named);
}

void CallTask::end(Work::Status how, std::optional<Error> why) {
  stage_ = Stage::ended;
  if (is_pair(header_.kind)) group_->leave_line(line(), this);
  {
    const std::lock_guard lock(state_->mutex);
    state_->milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - began_).count();
  }
  if (Flight* flight = group_->flight()) flight->end(record_, how, why ? std::string_view(why->message()) : std::string_view());
  if (deed_) group_->simulated()->end(*deed_, how, header_, peer_);
  if (has_arrived_) group_->board()->end(header_.sequence);
  // Exchanges that are not done keep the memory.
  exchange_.reset(), execution_.reset();
  if (group_->hooks().any()) [[unlikely]]
    group_->hooks().done(info(), how);
  // Streams fail before they go on.
  state_->end(how, std::move(why));
  if (link_) link_->end();
}

}}}}  // namespace clutch::v0::dist::detail
