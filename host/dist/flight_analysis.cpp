// SPDX-License-Identifier: Apache-2.0
#include "dist/flight_analysis.hpp"

#include "dist/flight_dump.hpp"

#include <clutch/error.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

namespace {

using Kind = FlightFinding::Kind;
using Ranks = std::vector<std::int32_t>;
constexpr std::array<std::string_view, 14> kKinds{"op",     "reduce",    "root",    "dtype",     "sizes", "missing",      "state",
                                                  "failed", "timed_out", "message", "unmatched", "cycle", "lost_process", "no_file"};

std::string say(const Ranks& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  constexpr std::size_t kMost = 16;
  const Ranks begin(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(std::min(ranks.size(), kMost)));
  return fmt::format("ranks {}{}", fmt::join(begin, ", "), ranks.size() > kMost ? fmt::format(" and {} more", ranks.size() - kMost) : "");
}

/// A word that agrees with its subject.
std::string_view verb(const Ranks& ranks, std::string_view one, std::string_view several) { return ranks.size() == 1 ? one : several; }

std::string say(const FlightTensors& tensors) {
  std::string text(tensors.dtype ? name(*tensors.dtype) : "");
  if (tensors.is_total) return fmt::format("{} {} elements of {} tensors", text, elements_of(tensors.sizes), tensors.count);
  std::size_t shown = 0;
  for (const auto& sizes : tensors.sizes) {
    if (++shown > 8) return text + fmt::format(" and {} more", tensors.sizes.size() - 8);
    text += fmt::format("{}[{}]", text.empty() ? "" : " ", fmt::join(sizes, ", "));
  }
  return text;
}

/// What all ranks' calls of a number must have in common, but for the op: a kind of difference, and the value that is compared, as text.
struct Trait {
  Kind kind;
  std::string value;
  friend bool operator==(const Trait&, const Trait&) = default;
};
std::vector<Trait> traits_of(const FlightRecord& r) {
  const bool of_in = r.op != FlightOp::scatter && r.op != FlightOp::scatter_v,
             of_out = r.op != FlightOp::gather && r.op != FlightOp::gather_v && r.op != FlightOp::reduce;
  auto dtype = [](const FlightTensors& t) { return t.dtype ? static_cast<int>(*t.dtype) : -1; };
  std::vector<Trait> traits{{Kind::reduce, std::string(name(r.reduce))},
                            {Kind::root, std::to_string(r.root)},
                            {Kind::dtype, fmt::format("{} {}", of_in ? dtype(r.in) : -1, of_out ? dtype(r.out) : -1)}};
  auto hash = [](const FlightTensors& t) { return t.hash != 0 ? t.hash : hash_of(t.sizes); };
  switch (r.op) {
    case FlightOp::all_gather_v:
    case FlightOp::scatter: traits.push_back({Kind::sizes, fmt::format("{:x}", hash(r.out))}); break;
    case FlightOp::reduce_scatter_v:
    case FlightOp::gather:
    case FlightOp::reduce: traits.push_back({Kind::sizes, fmt::format("{:x}", hash(r.in))}); break;
    // A root may name its input alone, and the others their output.
    case FlightOp::broadcast: traits.push_back({Kind::sizes, fmt::format("{:x}", hash(r.out.sizes.empty() ? r.in : r.out))}); break;
    case FlightOp::all_to_all_v:
    case FlightOp::gather_v:
    case FlightOp::scatter_v:
    case FlightOp::dispatch:
    case FlightOp::combine:
    case FlightOp::split: break;
    default: traits.push_back({Kind::sizes, fmt::format("{:x} {:x}", hash(r.in), hash(r.out))});
  }
  if (r.op == FlightOp::broadcast) traits[2].value = std::to_string(dtype(r.out.dtype ? r.out : r.in));
  return traits;
}

/// Why a call cannot be right by itself; empty if it can.
std::string fault_of(const FlightRecord& r, std::size_t ranks) {
  const std::int64_t in = elements_of(r.in.sizes), out = elements_of(r.out.sizes), n = static_cast<std::int64_t>(ranks);
  auto times = [n](std::int64_t x) { return x > std::numeric_limits<std::int64_t>::max() / n ? std::numeric_limits<std::int64_t>::max() : x * n; };
  switch (r.op) {
    case FlightOp::all_reduce:
    case FlightOp::all_reduce_coalesced:
    case FlightOp::all_to_all: return in == out ? "" : fmt::format("its input has {} elements, its output {}", in, out);
    case FlightOp::all_gather:
    case FlightOp::all_gather_coalesced: return out == times(in) ? "" : fmt::format("its output has {} elements, {} ranks' inputs {}", out, ranks, times(in));
    case FlightOp::reduce_scatter:
    case FlightOp::reduce_scatter_coalesced:
      return in == times(out) ? "" : fmt::format("its input has {} elements, {} ranks' outputs {}", in, ranks, times(out));
    default: return {};
  }
}

class Analyzer {
 public:
  Analyzer(std::vector<FlightImage> images, const FlightAnalysisOptions& options) : images_(aligned(std::move(images))), options_(options), groups_(images_) {
    for (std::size_t i = 0; i < images_.size(); ++i) image_of_[images_[i].rank] = i;
  }

  FlightAnalysis run() {
    sort_calls();
    processes();
    shift_clocks();
    for (std::size_t g = 0; g < calls_.size(); ++g) group(static_cast<std::int32_t>(g));
    messages();
    signals();
    cycles();
    lateness();
    // By time, without a part that a cycle tells.
    auto& all = result_.findings;
    all.erase(std::remove_if(all.begin(), all.end(), [&](const FlightFinding& f) { return is_part_of_cycle(f); }), all.end());
    // A process that waited for others when it ended did not end first.
    for (FlightFinding& f : all)
      if (f.kind == Kind::lost_process && edges_.contains(f.ranks.front())) f.time_ns = 0;
    std::stable_sort(all.begin(), all.end(), [](const FlightFinding& a, const FlightFinding& b) { return key(a) < key(b); });
    return std::move(result_);
  }

 private:
  /// A call of one rank.
  struct Call {
    std::size_t image = 0;
    const FlightRecord* record = nullptr;
  };
  using Calls = std::map<std::int32_t, Call>;  ///< by rank of the world
  struct Way {
    std::int32_t group, from, to, tag;
    friend bool operator<(const Way& a, const Way& b) { return std::tie(a.group, a.from, a.to, a.tag) < std::tie(b.group, b.from, b.to, b.tag); }
  };
  struct Message {
    std::optional<Call> send, recv;
  };
  struct Edge {
    std::int32_t to = 0;
    const FlightRecord* record = nullptr;
  };

  static std::int64_t key(const FlightFinding& f) { return f.time_ns == 0 ? std::numeric_limits<std::int64_t>::max() : f.time_ns; }
  static bool is_over(const FlightRecord& r) { return r.state == FlightState::completed; }
  const FlightGroups::Group& of(std::int32_t group) const { return groups_.all()[static_cast<std::size_t>(group)]; }

  /// True if what an image does not have after that time cannot be expected of it: it was made too soon.
  bool is_fresh(std::size_t image, std::int64_t since) const { return images_[image].taken_ns != 0 && images_[image].taken_ns - since < options_.patience_ns; }

  void sort_calls() {
    calls_.resize(groups_.all().size());
    for (std::size_t i = 0; i < images_.size(); ++i) {
      result_.world_size = std::max(result_.world_size, images_[i].world_size);
      for (const FlightRecord& r : images_[i].records) {
        const std::int32_t group = groups_.number(i, r.group);
        const FlightOpInfo::Match match = info(r.op).match;
        if (r.state == FlightState::failed || r.state == FlightState::timed_out) failed(i, r, group);
        if (group < 0) continue;
        if (match == FlightOpInfo::Match::collective) calls_[static_cast<std::size_t>(group)][r.collective_seq][images_[i].rank] = {i, &r};
        if (match == FlightOpInfo::Match::pair) {
          const auto& ranks = of(group).ranks;
          if (r.peer < 0 || static_cast<std::size_t>(r.peer) >= ranks.size()) {
            if (!is_over(r)) from_any_.insert({group, images_[i].rank, r.tag});
            continue;
          }
          const std::int32_t me = images_[i].rank, peer = ranks[static_cast<std::size_t>(r.peer)];
          if (r.op == FlightOp::send)
            ways_[{group, me, peer, r.tag}][r.p2p_seq].send = {i, &r};
          else
            ways_[{group, peer, me, r.tag}][r.p2p_seq].recv = {i, &r};
        }
      }
    }
  }

  void failed(std::size_t image, const FlightRecord& r, std::int32_t group) {
    const bool late = r.state == FlightState::timed_out;
    FlightFinding f;
    f.kind = late ? Kind::timed_out : Kind::failed;
    f.group = group < 0 ? "" : of(group).name;
    f.seq = info(r.op).match == FlightOpInfo::Match::pair ? r.p2p_seq : r.collective_seq;
    f.ranks = {images_[image].rank};
    if (!late) f.culprits = f.ranks;
    f.time_ns = r.created_ns;
    f.text = fmt::format("rank {}: {} {}{}", images_[image].rank, describe(r), late ? "was given up" : "failed", r.why.empty() ? "" : ": " + r.why);
    result_.findings.push_back(std::move(f));
  }

  /// The last call that a rank began.
  std::string last_of(std::size_t image) const {
    const auto& records = images_[image].records;
    return records.empty() ? "it has recorded no call" : fmt::format("its last call is {}", describe(records.back()));
  }

  void processes() {
    for (std::size_t i = 0; i < images_.size(); ++i) {
      const FlightImage& image = images_[i];
      if (image.torn > 0) result_.notes.push_back(fmt::format("rank {}: {} of its records were being written when it ended", image.rank, image.torn));
      if (image.process != FlightProcess::lost) continue;
      FlightFinding f;
      f.kind = Kind::lost_process;
      f.ranks = f.culprits = {image.rank};
      for (const FlightRecord& r : image.records) f.time_ns = std::max({f.time_ns, r.created_ns, r.completed_ns});
      f.text = fmt::format("rank {}: its process {} ended without closing its ring: it was killed, or crashed; {}", image.rank, image.process_id, last_of(i));
      result_.findings.push_back(std::move(f));
    }
    std::set<std::int32_t> wanted;
    for (const FlightGroups::Group& group : groups_.all()) wanted.insert(group.ranks.begin(), group.ranks.end());
    Ranks absent;
    for (const std::int32_t rank : wanted)
      if (!image_of_.contains(rank)) absent.push_back(rank);
    if (absent.empty()) return;
    FlightFinding f;
    f.kind = Kind::no_file;
    f.ranks = f.culprits = absent;
    f.text = fmt::format("{}: there is no file of {}", say(absent), verb(absent, "it", "them"));
    result_.findings.push_back(std::move(f));
  }

  /// Clocks of several hosts: calls in which all wait for all end at one time.
  void shift_clocks() {
    std::set<std::string> hosts;
    for (const FlightImage& image : images_) hosts.insert(image.host);
    if (hosts.size() < 2) return;
    std::size_t largest = 0;
    for (std::size_t g = 1; g < calls_.size(); ++g)
      if (of(static_cast<std::int32_t>(g)).ranks.size() > of(static_cast<std::int32_t>(largest)).ranks.size()) largest = g;
    std::map<std::int32_t, std::vector<std::int64_t>> differences;
    for (const auto& [seq, calls] : calls_[largest]) {
      if (calls.empty()) continue;
      const FlightRecord& first = *calls.begin()->second.record;
      if (!info(first.op).joins || !is_over(first)) continue;
      for (const auto& [rank, call] : calls)
        if (is_over(*call.record) && images_[call.image].host != images_[calls.begin()->second.image].host)
          differences[rank].push_back(call.record->completed_ns - first.completed_ns);
    }
    for (auto& [rank, all] : differences) {
      if (all.size() < 3) continue;
      std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
      shift_[rank] = all[all.size() / 2];
    }
  }
  std::int64_t shift(std::int32_t rank) const {
    const auto at = shift_.find(rank);
    return at == shift_.end() ? 0 : at->second;
  }

  std::string title(std::int32_t group) const { return fmt::format("group {} of {}", of(group).name, say(of(group).ranks)); }

  /// The value that most ranks have; at a tie that of the lowest rank.
  template <class Value>
  static const Value& majority(const std::map<std::int32_t, Value>& values, bool& is_tie) {
    std::map<Value, std::size_t> counts;
    for (const auto& [rank, value] : values) ++counts[value];
    std::size_t most = 0;
    for (const auto& [value, count] : counts) most = std::max(most, count);
    const Value* best = nullptr;
    std::size_t with_most = 0;
    for (const auto& [value, count] : counts) with_most += count == most ? 1 : 0;
    for (const auto& [rank, value] : values)
      if (!best && counts[value] == most) best = &value;
    is_tie = with_most > 1;
    return *best;
  }

  /// A finding about one number of a group whose calls differ in a value.
  template <class Value>
  bool differ(std::int32_t group, std::uint64_t seq, const Calls& calls, Kind kind, const std::map<std::int32_t, Value>& values) {
    if (std::all_of(values.begin(), values.end(), [&](const auto& v) { return v.second == values.begin()->second; })) return false;
    FlightFinding f;
    f.kind = kind, f.group = of(group).name, f.seq = seq;
    const Value& right = majority(values, f.is_tie);
    Ranks agreeing;
    for (const auto& [rank, value] : values) {
      f.ranks.push_back(rank);
      (value == right ? agreeing : f.culprits).push_back(rank);
    }
    f.time_ns = earliest(calls);
    f.text = fmt::format("{}: call {} differs in its {}:", title(group), seq, kind == Kind::reduce ? "reduce op" : name(kind));
    // Each value once, with its ranks.
    std::map<Value, Ranks> by_value;
    for (const auto& [rank, value] : values) by_value[value].push_back(rank);
    f.text += fmt::format("\n    {}: {}", say(agreeing), describe(*calls.at(agreeing.front()).record));
    for (const auto& [value, ranks] : by_value)
      if (!(value == right)) f.text += fmt::format("\n    {}: {}", say(ranks), describe(*calls.at(ranks.front()).record));
    if (f.is_tie) f.text += "\n    as many ranks say the one as the other: either may be wrong";
    if (kind == Kind::op) f.text += shifted(group, seq, f.culprits, agreeing.front());
    result_.findings.push_back(std::move(f));
    return true;
  }

  static std::int64_t earliest(const Calls& calls) {
    std::int64_t time = std::numeric_limits<std::int64_t>::max();
    for (const auto& [rank, call] : calls) time = std::min(time, call.record->created_ns);
    return time;
  }

  /// Says whether a rank's calls are those of another one from the next on.
  std::string shifted(std::int32_t group, std::uint64_t seq, const Ranks& culprits, std::int32_t right) const {
    auto call_of = [&](std::int32_t rank, std::uint64_t number) -> const FlightRecord* {
      const auto& calls = calls_[static_cast<std::size_t>(group)];
      const auto at = calls.find(number);
      if (at == calls.end()) return nullptr;
      const auto found = at->second.find(rank);
      return found == at->second.end() ? nullptr : found->second.record;
    };
    auto follows = [&](std::int32_t rank, std::uint64_t of_rank, std::uint64_t of_right) {
      int same = 0;
      for (; same < 8; ++same) {
        const FlightRecord *a = call_of(rank, of_rank + static_cast<std::uint64_t>(same)), *b = call_of(right, of_right + static_cast<std::uint64_t>(same));
        if (!a || !b) break;
        if (a->op != b->op || traits_of(*a) != traits_of(*b)) return false;
      }
      return same > 0;
    };
    std::string text;
    for (const std::int32_t rank : culprits) {
      if (follows(rank, seq, seq + 1))
        text += fmt::format("\n    rank {} goes on as if it had left this call out", rank);
      else if (follows(rank, seq + 1, seq))
        text += fmt::format("\n    rank {} goes on as if it had put a call in before", rank);
    }
    return text;
  }

  void group(std::int32_t number) {
    const FlightGroups::Group& group = of(number);
    std::size_t found = 0;
    std::set<std::int32_t> gone;  // ranks of which it was said that they did not come
    for (const auto& [seq, calls] : calls_[static_cast<std::size_t>(number)]) {
      if (found >= options_.most_of_group) {
        result_.notes.push_back(fmt::format("{}: calls from {} on are left out after {} findings", title(number), seq, found));
        return;
      }
      ++result_.calls;
      if (calls.size() > 1 && mismatch(number, seq, calls)) {
        ++found;
        // What follows is paired by numbers that mean different calls.
        if (result_.findings.back().kind == Kind::op) return;
      }
      Ranks missing, absent;
      for (const std::int32_t rank : group.ranks) {
        if (calls.contains(rank)) continue;
        const auto at = image_of_.find(rank);
        if (at == image_of_.end())
          absent.push_back(rank);
        else if (!gone.contains(rank) && !is_fresh(at->second, earliest(calls)))
          missing.push_back(rank);
      }
      bool waits = false;
      for (const auto& [rank, call] : calls) {
        if (is_over(*call.record)) continue;
        waits = true;
        for (const std::int32_t other : missing) edges_[rank].push_back({other, call.record});
      }
      if (!missing.empty()) {
        not_come(number, seq, calls, missing, absent);
        gone.insert(missing.begin(), missing.end());
        ++found;
      } else if (!absent.empty() && waits && gone.empty()) {
        result_.notes.push_back(fmt::format("{}: call {} is not done, and {} may not have come: there is no file of {}", title(number), seq, say(absent),
                                            verb(absent, "it", "them")));
        return;
      } else if (gone.empty() && calls.size() == group.ranks.size()) {
        if (states(number, seq, calls)) ++found;
      }
    }
  }

  void not_come(std::int32_t number, std::uint64_t seq, const Calls& calls, const Ranks& missing, const Ranks& absent) {
    const FlightGroups::Group& group = of(number);
    FlightFinding f;
    f.kind = Kind::missing, f.group = group.name, f.seq = seq;
    f.culprits = missing, f.ranks = group.ranks, f.time_ns = earliest(calls);
    Ranks there;
    for (const auto& [rank, call] : calls) there.push_back(rank);
    f.text = fmt::format("{}: {} {} not made call {}: {} called {}", title(number), say(missing), verb(missing, "has", "have"), seq, say(there),
                         describe(*calls.begin()->second.record));
    for (const std::int32_t rank : missing) {
      const std::size_t image = image_of_.at(rank);
      const bool knows = std::any_of(images_[image].groups.begin(), images_[image].groups.end(),
                                     [&](const FlightGroup& g) { return groups_.number(image, g.index) == number; });
      f.text += fmt::format("\n    rank {}: {}{}", rank, knows ? "" : "it does not know the group; ", last_of(image));
      if (f.text.size() > 4000) break;
    }
    if (!absent.empty()) f.text += fmt::format("\n    there is no file of {}", say(absent));
    result_.findings.push_back(std::move(f));
  }

  bool mismatch(std::int32_t number, std::uint64_t seq, const Calls& calls) {
    std::map<std::int32_t, int> ops;
    for (const auto& [rank, call] : calls) ops[rank] = static_cast<int>(call.record->op);
    if (differ(number, seq, calls, Kind::op, ops)) return true;
    std::map<std::int32_t, std::vector<Trait>> traits;
    for (const auto& [rank, call] : calls) traits[rank] = traits_of(*call.record);
    for (std::size_t i = 0; i < traits.begin()->second.size(); ++i) {
      std::map<std::int32_t, std::string> values;
      for (const auto& [rank, all] : traits) values[rank] = all[i].value;
      if (differ(number, seq, calls, traits.begin()->second[i].kind, values)) return true;
    }
    const std::size_t n = of(number).ranks.size();
    FlightFinding f;
    f.kind = Kind::sizes, f.group = of(number).name, f.seq = seq, f.time_ns = earliest(calls);
    for (const auto& [rank, call] : calls) f.ranks.push_back(rank);
    const FlightOp op = calls.begin()->second.record->op;
    for (const auto& [rank, call] : calls) {
      std::string fault = fault_of(*call.record, n);
      // Of lists of all ranks' sizes each rank's own part is known.
      const FlightTensors& list = op == FlightOp::all_gather_v ? call.record->out : call.record->in;
      const FlightTensors& own = op == FlightOp::all_gather_v ? call.record->in : call.record->out;
      if ((op == FlightOp::all_gather_v || op == FlightOp::reduce_scatter_v) && !list.is_total && list.sizes.size() == n && own.sizes.size() == 1) {
        const auto& ranks = of(number).ranks;
        const auto me = static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
        if (me < n && elements_of(list.sizes[me]) != elements_of(own.sizes[0]))
          fault = fmt::format("its own tensor has {} elements, the list says {}", elements_of(own.sizes[0]), elements_of(list.sizes[me]));
      }
      if (fault.empty()) continue;
      f.culprits.push_back(rank);
      if (f.text.empty()) f.text = fmt::format("{}: call {} of rank {}, {}: {}", title(number), seq, rank, describe(*call.record), fault);
    }
    if (op == FlightOp::all_to_all_v && calls.size() == n) {
      std::int64_t in = 0, out = 0;
      std::string each;
      for (const auto& [rank, call] : calls) {
        const std::int64_t mine = elements_of(call.record->in.sizes), yours = elements_of(call.record->out.sizes);
        in = static_cast<std::int64_t>(static_cast<std::uint64_t>(in) + static_cast<std::uint64_t>(mine));
        out = static_cast<std::int64_t>(static_cast<std::uint64_t>(out) + static_cast<std::uint64_t>(yours));
        if (each.size() < 2000) each += fmt::format("\n    rank {}: {}", rank, describe(*call.record));
      }
      if (in != out)
        f.text = fmt::format("{}: call {}, all_to_all_v: all ranks' inputs have {} elements, their outputs {}{}", title(number), seq, in, out, each);
    }
    if (f.text.empty()) return false;
    result_.findings.push_back(std::move(f));
    return true;
  }

  bool states(std::int32_t number, std::uint64_t seq, const Calls& calls) {
    int most = 0, least = 2;
    bool is_early = false;
    const std::int64_t begun = earliest(calls);
    for (const auto& [rank, call] : calls) {
      if (call.record->state == FlightState::failed || call.record->state == FlightState::timed_out) return false;  // said already
      const int state = static_cast<int>(call.record->state);
      most = std::max(most, state), least = std::min(least, state);
      is_early |= is_fresh(call.image, begun);
    }
    if (least == 2 || is_early) return false;
    const FlightRecord& first = *calls.begin()->second.record;
    const bool joins = info(first.op).joins;
    if (least == most || !joins) {
      if (result_.notes.size() < 100) result_.notes.push_back(fmt::format("{}: call {} is not done: {}", title(number), seq, describe(first)));
      return false;
    }
    FlightFinding f;
    f.kind = Kind::state, f.group = of(number).name, f.seq = seq, f.time_ns = begun;
    std::map<int, Ranks> by_state;
    for (const auto& [rank, call] : calls) {
      f.ranks.push_back(rank);
      const int state = static_cast<int>(call.record->state);
      if (state == least) f.culprits.push_back(rank);
      by_state[state].push_back(rank);
    }
    f.text = fmt::format("{}: call {}, {}, is not as far on all ranks:", title(number), seq, info(first.op).name);
    for (const auto& [state, ranks] : by_state)
      f.text += fmt::format("\n    {}: {}, {}", say(ranks), name(static_cast<FlightState>(state)), describe(*calls.at(ranks.front()).record));
    result_.findings.push_back(std::move(f));
    return true;
  }

  void messages() {
    for (const auto& [way, all] : ways_) {
      std::size_t found = 0;
      std::int64_t before = -1;  // elements of the message before, where both sides said the same
      for (const auto& [seq, message] : all) {
        if (found >= options_.most_of_group) break;
        ++result_.calls;
        FlightFinding f;
        f.group = of(way.group).name, f.seq = seq, f.ranks = {way.from, way.to};
        const std::string which =
            fmt::format("group {}: message {} of rank {} to rank {}{}", f.group, seq, way.from, way.to, way.tag == 0 ? "" : fmt::format(", tag {}", way.tag));
        if (message.send && message.recv) {
          const FlightRecord &s = *message.send->record, &r = *message.recv->record;
          const std::int64_t sent = elements_of(s.in.sizes), wanted = elements_of(r.out.sizes);
          if (sent == wanted && s.in.dtype == r.out.dtype) {
            before = sent;
            continue;
          }
          f.kind = Kind::message, f.time_ns = std::min(s.created_ns, r.created_ns);
          if (before >= 0 && (sent == before) != (wanted == before)) f.culprits = {sent == before ? way.to : way.from};
          f.text = fmt::format("{}: the two differ in {}\n    rank {}: {}\n    rank {}: {}", which, sent == wanted ? "dtype" : "sizes", way.from, describe(s),
                               way.to, describe(r));
        } else {
          const bool sends = message.send.has_value();
          const Call& call = sends ? *message.send : *message.recv;
          const std::int32_t me = sends ? way.from : way.to, other = sends ? way.to : way.from;
          const auto image = image_of_.find(other);
          if (image == image_of_.end() || is_fresh(image->second, call.record->created_ns)) continue;
          if (sends && from_any_.contains({way.group, way.to, way.tag})) continue;
          f.kind = Kind::unmatched, f.time_ns = call.record->created_ns, f.culprits = {other};
          if (!is_over(*call.record)) edges_[me].push_back({other, call.record});
          f.text = fmt::format("{}: rank {} called {}, and rank {} has no {} for it; {}", which, me, describe(*call.record), other, sends ? "recv" : "send",
                               last_of(image->second));
          for (auto at = ways_.lower_bound({way.group, way.from, way.to, std::numeric_limits<std::int32_t>::min()});
               at != ways_.end() && at->first.group == way.group && at->first.from == way.from && at->first.to == way.to; ++at) {
            const bool waits = at->first.tag != way.tag && std::any_of(at->second.begin(), at->second.end(), [&](const auto& m) {
                                 return sends ? m.second.recv && !m.second.send : m.second.send && !m.second.recv;
                               });
            if (waits) f.text += fmt::format("\n    rank {} has one of tag {}", other, at->first.tag);
          }
        }
        ++found;
        result_.findings.push_back(std::move(f));
      }
    }
  }

  /// Waits for signals, of which a record does not say how many there must be: they are edges, and no findings of their own.
  void signals() {
    for (std::size_t i = 0; i < images_.size(); ++i)
      for (const FlightRecord& r : images_[i].records) {
        const std::int32_t group = groups_.number(i, r.group);
        if (r.op != FlightOp::wait_signal || is_over(r) || group < 0 || r.peer < 0 || is_fresh(i, r.created_ns)) continue;
        const auto& ranks = of(group).ranks;
        if (static_cast<std::size_t>(r.peer) < ranks.size()) edges_[images_[i].rank].push_back({ranks[static_cast<std::size_t>(r.peer)], &r});
      }
  }

  void cycles() {
    // The shortest cycle through each rank that is in none yet.
    for (const auto& [start, unused] : edges_) {
      if (in_cycle_.contains(start)) continue;
      std::map<std::int32_t, std::pair<std::int32_t, const FlightRecord*>> came;  // from whom, by which call
      std::deque<std::int32_t> next{start};
      bool closed = false;
      while (!next.empty() && !closed) {
        const std::int32_t rank = next.front();
        next.pop_front();
        const auto out = edges_.find(rank);
        if (out == edges_.end()) continue;
        for (const Edge& edge : out->second) {
          if (!came.try_emplace(edge.to, rank, edge.record).second) continue;
          if (edge.to == start) {
            closed = true;
            break;
          }
          next.push_back(edge.to);
        }
      }
      if (!closed) continue;
      std::vector<std::pair<std::int32_t, const FlightRecord*>> steps;  // a rank and its call, backwards
      std::int32_t at = start;
      do {
        const auto [from, record] = came.at(at);
        steps.emplace_back(from, record);
        at = from;
      } while (at != start);
      std::reverse(steps.begin(), steps.end());
      FlightFinding f;
      f.kind = Kind::cycle;
      f.time_ns = std::numeric_limits<std::int64_t>::max();
      for (std::size_t i = 0; i < steps.size(); ++i) {
        const auto& [rank, record] = steps[i];
        f.ranks.push_back(rank);
        f.time_ns = std::min(f.time_ns, record->created_ns);
        in_cycle_.insert(rank);
        f.text += fmt::format("\n    rank {} waits for rank {} in {}", rank, steps[(i + 1) % steps.size()].first, describe(*record));
      }
      std::sort(f.ranks.begin(), f.ranks.end());
      f.text = fmt::format("{} wait for one another:", say(f.ranks)) + f.text;
      cycles_.push_back({f.ranks.begin(), f.ranks.end()});
      result_.findings.push_back(std::move(f));
    }
  }

  /// True if a cycle says why nobody came: all that were missed, and one that missed them, are ranks of it.
  bool is_part_of_cycle(const FlightFinding& f) const {
    if (f.kind != Kind::missing && f.kind != Kind::unmatched) return false;
    return std::any_of(cycles_.begin(), cycles_.end(), [&](const std::set<std::int32_t>& cycle) {
      auto in = [&](std::int32_t rank) { return cycle.contains(rank); };
      const auto others = std::count_if(f.ranks.begin(), f.ranks.end(), in) - std::count_if(f.culprits.begin(), f.culprits.end(), in);
      return std::all_of(f.culprits.begin(), f.culprits.end(), in) && others > 0;
    });
  }

  void lateness() {
    std::map<std::int32_t, std::vector<double>> late;
    std::map<std::int32_t, FlightLateness> of_rank;
    for (std::size_t g = 0; g < calls_.size(); ++g) {
      const auto& group = groups_.all()[g];
      if (group.ranks.size() < 2) continue;
      for (const auto& [seq, calls] : calls_[g]) {
        if (calls.size() != group.ranks.size() || !info(calls.begin()->second.record->op).joins) continue;
        std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = std::numeric_limits<std::int64_t>::min();
        std::int32_t last_rank = 0;
        for (const auto& [rank, call] : calls) {
          const std::int64_t time = call.record->created_ns - shift(rank);
          first = std::min(first, time);
          if (time > last) last = time, last_rank = rank;
        }
        for (const auto& [rank, call] : calls) {
          const double us = static_cast<double>(call.record->created_ns - shift(rank) - first) / 1e3;
          FlightLateness& l = of_rank[rank];
          late[rank].push_back(us);
          if (rank == last_rank) ++l.times_last;
          if (l.calls++ == 0 || us > l.max_us) l.max_us = us, l.worst = fmt::format("{} call {}: {}", group.name, seq, describe(*call.record));
        }
      }
    }
    for (auto& [rank, l] : of_rank) {
      std::vector<double>& all = late[rank];
      l.rank = rank;
      l.clock_shift_us = static_cast<double>(shift(rank)) / 1e3;
      for (const double us : all) l.mean_us += us / static_cast<double>(all.size());
      std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
      l.median_us = all[all.size() / 2];
      result_.lateness.push_back(std::move(l));
    }
  }

  std::vector<FlightImage> images_;
  const FlightAnalysisOptions& options_;
  FlightGroups groups_;
  FlightAnalysis result_;
  std::map<std::int32_t, std::size_t> image_of_;  // by rank
  std::vector<std::map<std::uint64_t, Calls>> calls_;
  std::map<Way, std::map<std::uint64_t, Message>> ways_;
  std::set<std::tuple<std::int32_t, std::int32_t, std::int32_t>> from_any_;  // group, rank, tag
  std::map<std::int32_t, std::vector<Edge>> edges_;
  std::map<std::int32_t, std::int64_t> shift_;
  std::set<std::int32_t> in_cycle_;
  std::vector<std::set<std::int32_t>> cycles_;
};

}  // namespace

std::string_view name(FlightFinding::Kind kind) noexcept { return kKinds[static_cast<std::size_t>(kind)]; }

/// "train::step" of "void train::step(int)".
static std::string_view short_name(std::string_view function) {
  function = function.substr(0, function.find('('));
  const std::size_t space = function.rfind(' ');
  return space == std::string_view::npos ? function : function.substr(space + 1);
}

std::string describe(const FlightRecord& r) {
  std::string text(info(r.op).name);
  if (r.reduce != FlightReduce::none) text += fmt::format(" {}", name(r.reduce));
  const std::string in = say(r.in), out = say(r.out);
  if (!in.empty()) text += " of " + in;
  if (!out.empty() && out != in) text += " to " + out;
  if (r.root >= 0) text += fmt::format(", root {}", r.root);
  if (r.peer >= 0)
    text += fmt::format(", {} {} of the group", r.op == FlightOp::recv || r.op == FlightOp::get || r.op == FlightOp::wait_signal ? "from" : "to", r.peer);
  if (r.tag != 0) text += fmt::format(", tag {}", r.tag);
  text += fmt::format(", {}", name(r.state));
  if (r.line != 0) text += fmt::format(", at {}:{}", r.file.empty() ? "?" : r.file, r.line);
  if (const std::string_view function = short_name(r.function); !function.empty()) text += fmt::format(" ({})", function);
  return text;
}

FlightAnalysis analyze(std::vector<FlightImage> images, const FlightAnalysisOptions& options) {
  if (images.empty()) throw Error(ErrorCode::invalid_argument, "analyze", "there must be a file of at least one rank, got none");
  std::set<std::int32_t> ranks;
  for (const FlightImage& image : images)
    if (!ranks.insert(image.rank).second)
      throw Error(ErrorCode::invalid_argument, "analyze", fmt::format("there must be one file of each rank, got two of rank {}", image.rank));
  std::sort(images.begin(), images.end(), [](const FlightImage& a, const FlightImage& b) { return a.rank < b.rank; });
  return Analyzer(std::move(images), options).run();
}

std::vector<std::int32_t> FlightAnalysis::first_culprits() const {
  for (const FlightFinding& f : findings)
    if (!f.culprits.empty()) return f.culprits;
  return {};
}

std::string FlightAnalysis::text() const {
  std::string text;
  if (findings.empty())
    text += fmt::format("nothing found in {} calls of {} ranks\n", calls, world_size);
  else if (const auto first = first_culprits(); !first.empty())
    text += fmt::format("look at {} first\n", say(first));
  else
    text += "no rank alone is to blame\n";
  for (const FlightFinding& f : findings) text += fmt::format("{}: {}\n", name(f.kind), f.text);
  for (const std::string& note : notes) text += fmt::format("note: {}\n", note);
  if (lateness.size() > 1) {
    text += fmt::format("{:>6} {:>8} {:>10} {:>12} {:>12} {:>12}  latest call\n", "rank", "calls", "times last", "median us", "mean us", "max us");
    for (const FlightLateness& l : lateness)
      text += fmt::format("{:>6} {:>8} {:>10} {:>12.1f} {:>12.1f} {:>12.1f}  {}\n", l.rank, l.calls, l.times_last, l.median_us, l.mean_us, l.max_us, l.worst);
    for (const FlightLateness& l : lateness)
      if (l.clock_shift_us != 0) text += fmt::format("note: rank {}'s clock is taken to be {:.1f} us ahead, by the ends of calls\n", l.rank, l.clock_shift_us);
  }
  return text;
}

std::string FlightAnalysis::json() const {
  nlohmann::ordered_json json{{"format", "clutch-flight-analysis"},
                              {"version", 1},
                              {"world_size", world_size},
                              {"calls", calls},
                              {"exit_code", exit_code()},
                              {"first_culprits", first_culprits()},
                              {"findings", nlohmann::ordered_json::array()},
                              {"lateness", nlohmann::ordered_json::array()},
                              {"notes", notes}};
  for (const FlightFinding& f : findings)
    json["findings"].push_back({{"kind", name(f.kind)},
                                {"group", f.group},
                                {"seq", f.seq},
                                {"culprits", f.culprits},
                                {"ranks", f.ranks},
                                {"is_tie", f.is_tie},
                                {"time_ns", f.time_ns},
                                {"text", f.text}});
  for (const FlightLateness& l : lateness)
    json["lateness"].push_back({{"rank", l.rank},
                                {"calls", l.calls},
                                {"times_last", l.times_last},
                                {"median_us", l.median_us},
                                {"mean_us", l.mean_us},
                                {"max_us", l.max_us},
                                {"worst", l.worst},
                                {"clock_shift_us", l.clock_shift_us}});
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}}}}  // namespace clutch::v0::dist::detail
