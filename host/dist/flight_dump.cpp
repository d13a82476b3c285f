// SPDX-License-Identifier: Apache-2.0
#include "dist/flight_dump.hpp"

#include "dist/flight_ring.hpp"
#include "runtime/pickle.hpp"
#include "support/shared_file.hpp"

#include <clutch/error.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

namespace {

/// PyTorch's names of dtypes, by number; empty where it has none.
constexpr std::array<std::string_view, kDTypeCount> kTorchDTypes{
    "Double", "Float", "Half", "BFloat16", "Float8_e4m3fn", "Float8_e5m2",   "Float8_e8m0fnu", "",       "",      "Float4_e2m1fn_x2", "Char", "Byte",
    "Short",  "Int",   "Long", "Bool",     "ComplexFloat",  "ComplexDouble", "UInt16",         "UInt32", "UInt64"};

}  // namespace

std::string_view torch_name(DType dtype) { return kTorchDTypes[static_cast<std::size_t>(dtype)]; }

namespace {

using clutch::detail::PickleValue;
using clutch::detail::PickleWriter;

constexpr std::string_view kOp = "read_flight";
constexpr std::int64_t kMostRanks = 1 << 20;

[[noreturn]] void refuse(const std::string& text) { throw Error(ErrorCode::invalid_argument, kOp, text); }

// ---- PyTorch's names

std::string_view torch_dtype(const FlightTensors& tensors) {
  if (!tensors.dtype) return "Byte";
  const std::string_view torch = torch_name(*tensors.dtype);
  return torch.empty() ? name(*tensors.dtype) : torch;
}

std::optional<DType> dtype_of(std::string_view text) {
  for (std::size_t i = 0; i < kTorchDTypes.size(); ++i)
    if (!text.empty() && (kTorchDTypes[i] == text || name(static_cast<DType>(i)) == text)) return static_cast<DType>(i);
  return std::nullopt;
}

/// Ops of dumps that PyTorch wrote.
std::optional<FlightOp> op_of_torch(std::string_view torch) {
  constexpr std::array<std::pair<std::string_view, FlightOp>, 12> kOthers{{{"_all_gather_base", FlightOp::all_gather},
                                                                           {"all_gather", FlightOp::all_gather},
                                                                           {"_reduce_scatter_base", FlightOp::reduce_scatter},
                                                                           {"reduce_scatter", FlightOp::reduce_scatter},
                                                                           {"_broadcast_oop", FlightOp::broadcast},
                                                                           {"_reduce_oop", FlightOp::reduce},
                                                                           {"all_to_all_v_single", FlightOp::all_to_all_v},
                                                                           {"all_to_all", FlightOp::all_to_all_v},
                                                                           {"all_reduce_barrier", FlightOp::barrier},
                                                                           {"ALLGATHER_coalesced", FlightOp::all_gather_coalesced},
                                                                           {"REDUCE_SCATTER_coalesced", FlightOp::reduce_scatter_coalesced},
                                                                           {"all_reduce_sparse", FlightOp::all_reduce}}};
  for (const auto& [name, op] : kOthers)
    if (name == torch) return op;
  for (int i = 0; i < kFlightOpCount; ++i)
    if (info(static_cast<FlightOp>(i)).torch_name == torch) return static_cast<FlightOp>(i);
  return std::nullopt;
}

// ---- The encoding

/// Sides as they are written: see docs/flight.md. PyTorch's checks of an op are passed by right calls, and failed by as many wrong ones as they can see.
struct Written {
  FlightSizes in, out;
};
Written written(const FlightRecord& r, std::int32_t rank_in_group) {
  const FlightSizes none{{}};  // one tensor of which nothing is said
  switch (r.op) {
    case FlightOp::barrier:
    case FlightOp::split:
    case FlightOp::new_window: return {};
    // Sizes of all ranks on both sides: each rank's own would differ.
    case FlightOp::all_gather_v: return {r.out.sizes, r.out.sizes};
    case FlightOp::reduce_scatter_v: return {r.in.sizes, r.in.sizes};
    // All ranks' totals are added and compared; of which only the device knows, none.
    case FlightOp::all_to_all_v: return {{{elements_of(r.in.sizes)}}, {{elements_of(r.out.sizes)}}};
    case FlightOp::dispatch:
    case FlightOp::combine: return {{{0}}, {{0}}};
    case FlightOp::gather: return {r.in.sizes, rank_in_group == r.root ? r.out.sizes : none};
    case FlightOp::scatter: return {rank_in_group == r.root ? r.in.sizes : none, r.out.sizes};
    case FlightOp::gather_v:
    case FlightOp::scatter_v: return {none, none};
    case FlightOp::send: return {r.in.sizes, {}};
    case FlightOp::recv: return {{}, r.out.sizes};
    // The root alone has an output, or its input alone.
    case FlightOp::reduce: return {r.in.sizes, r.in.sizes};
    case FlightOp::broadcast: {
      const FlightSizes& all = r.out.sizes.empty() ? r.in.sizes : r.out.sizes;
      return {all, all};
    }
    // A side without tensors would end the analyzer.
    default: return {r.in.sizes.empty() ? none : r.in.sizes, r.out.sizes.empty() ? none : r.out.sizes};
  }
}

/// The pair of ranks of a message, as a group of PyTorch's analyzer: in a group of more ranks a lone send is one that others did not join.
struct RankPair {
  std::uint32_t group = 0;
  std::int32_t low = 0, high = 0;  ///< ranks of the group, by their rank in the world
  friend bool operator<(const RankPair& a, const RankPair& b) { return std::tie(a.group, a.low, a.high) < std::tie(b.group, b.low, b.high); }
};

std::int32_t rank_in(const FlightGroup& group, std::int32_t rank) {
  const auto at = std::find(group.ranks.begin(), group.ranks.end(), rank);
  return at == group.ranks.end() ? -1 : static_cast<std::int32_t>(at - group.ranks.begin());
}

/// A number that both ranks give a message. Tags have their own numbers.
constexpr int kTagShift = 41;
std::int64_t pair_seq(const FlightRecord& r, bool from_low) {
  return static_cast<std::int64_t>((r.p2p_seq & ((1ull << (kTagShift - 1)) - 1)) * 2 + (from_low ? 0 : 1) +
                                   ((static_cast<std::uint64_t>(static_cast<std::uint32_t>(r.tag)) & 0x1fffff) << kTagShift));
}
/// Above all numbers of collectives: an equal one would make both parts of one call.
constexpr std::int64_t kFirstP2P = std::int64_t{1} << 40;

std::string list_of(const std::vector<std::int32_t>& ranks) { return fmt::format("[{}]", fmt::join(ranks, ", ")); }

std::string_view torch_state(const FlightRecord& r) {
  if (r.state == FlightState::completed || r.state == FlightState::scheduled) return name(r.state);
  return r.started_ns != 0 ? "started" : "scheduled";
}

class TorchWriter {
 public:
  explicit TorchWriter(const FlightImage& image) : image_(image) {}

  std::string write() {
    choose();
    p_.begin_dict();
    text("version", "2.10");
    text("comm_lib_version", image_.library);
    // What follows up to pg_config is our own, which PyTorch's analyzer passes over.
    integer("rank", image_.rank);
    integer("world_size", image_.world_size);
    integer("process_id", static_cast<std::int64_t>(image_.process_id));
    text("host_name", image_.host);
    integer("clutch_taken_ns", image_.taken_ns);
    text("clutch_process", name(image_.process));
    p_.text("pg_config");
    p_.begin_dict();
    std::set<std::string> named;
    for (const FlightGroup& group : image_.groups)
      if (group.has_ranks && named.insert(group.name).second) config(group.name, group.description, group.ranks);
    for (const auto& [pair, index] : pairs_) config(name_of(pair), "p2p", ranks_of(pair));
    p_.end_dict();
    status();
    p_.text("entries");
    p_.begin_list();
    for (const FlightRecord* r : chosen_) entry(*r);
    p_.end_list();
    p_.end_dict();
    return p_.finish();
  }

 private:
  void text(std::string_view key, std::string_view value) { p_.text(key), p_.text(value); }
  void integer(std::string_view key, std::int64_t value) { p_.text(key), p_.integer(value); }

  void choose() {
    std::uint32_t next = 0;
    for (const FlightGroup& group : image_.groups) next = std::max(next, group.index + 1);
    for (const FlightRecord& r : image_.records) {
      const FlightGroup* group = image_.group(r.group);
      if (!group || !group->has_ranks || info(r.op).torch_name.empty()) continue;
      const std::int32_t me = rank_in(*group, image_.rank);
      if (me < 0) continue;
      if (info(r.op).match == FlightOpInfo::Match::pair) {
        if (r.peer < 0 || static_cast<std::size_t>(r.peer) >= group->ranks.size()) continue;  // from any rank, and none has come
        if (pairs_.emplace(pair_of(r, *group, me), next).second) ++next;
      }
      chosen_.push_back(&r);
    }
  }

  RankPair pair_of(const FlightRecord& r, const FlightGroup& group, std::int32_t me) const {
    const bool is_low = group.ranks[static_cast<std::size_t>(me)] <= group.ranks[static_cast<std::size_t>(r.peer)];
    return {r.group, is_low ? me : r.peer, is_low ? r.peer : me};
  }
  std::string name_of(const RankPair& pair) const { return fmt::format("{}:p2p:{}-{}", image_.group(pair.group)->name, pair.low, pair.high); }
  std::vector<std::int32_t> ranks_of(const RankPair& pair) const {
    const FlightGroup& group = *image_.group(pair.group);
    const std::int32_t low = group.ranks[static_cast<std::size_t>(pair.low)], high = group.ranks[static_cast<std::size_t>(pair.high)];
    if (low == high) return {low};
    return {low, high};
  }

  void config(const std::string& name, const std::string& description, const std::vector<std::int32_t>& ranks) {
    p_.text(name);
    p_.begin_dict();
    text("name", name);
    text("desc", description);
    text("ranks", list_of(ranks));
    p_.end_dict();
  }

  void status() {
    p_.text("pg_status");
    p_.begin_dict();
    for (const FlightGroup& group : image_.groups) {
      std::int64_t enqueued = -1, started = -1, completed = -1;
      for (const FlightRecord* r : chosen_) {
        if (r->group != group.index || info(r->op).match != FlightOpInfo::Match::collective) continue;
        const auto seq = static_cast<std::int64_t>(r->collective_seq);
        enqueued = std::max(enqueued, seq);
        if (torch_state(*r) != "scheduled") started = std::max(started, seq);
        if (r->state == FlightState::completed) completed = std::max(completed, seq);
      }
      p_.text(std::to_string(group.index));
      p_.begin_dict();
      integer("last_enqueued_collective", enqueued);
      integer("last_started_collective", started);
      integer("last_completed_collective", completed);
      p_.end_dict();
    }
    p_.end_dict();
  }

  void side(std::string_view sizes_key, const FlightSizes& sizes, std::string_view dtypes_key, std::string_view dtype) {
    p_.text(sizes_key);
    p_.begin_list();
    for (const auto& tensor : sizes) {
      p_.begin_list();
      for (const std::int64_t n : tensor) p_.integer(n);
      p_.end_list();
    }
    p_.end_list();
    p_.text(dtypes_key);
    p_.begin_list();
    for (std::size_t i = 0; i < sizes.size(); ++i) p_.text(dtype);
    p_.end_list();
  }

  void entry(const FlightRecord& r) {
    const FlightGroup& group = *image_.group(r.group);
    const std::int32_t me = rank_in(group, image_.rank);
    const bool is_p2p = info(r.op).match == FlightOpInfo::Match::pair;
    std::string group_name = group.name, description = group.description, profiling = fmt::format("gloo:{}", info(r.op).torch_name);
    std::int64_t pg = r.group, seq = static_cast<std::int64_t>(r.collective_seq), p2p_seq = 0;
    if (is_p2p) {
      const RankPair pair = pair_of(r, group, me);
      const bool sends = r.op == FlightOp::send, is_low = me == pair.low, from_low = sends == is_low;
      const int mine = is_low ? 0 : 1, other = pair.low == pair.high ? 0 : 1 - mine;
      group_name = name_of(pair), description = "p2p";
      profiling += fmt::format(" {}{}{}", mine, sends ? "->" : "<-", other);
      pg = pairs_.at(pair);
      seq = pair_seq(r, pair.low == pair.high ? sends : from_low);
      p2p_seq = kFirstP2P + seq;
    }
    const Written sizes = written(r, me);
    p_.begin_dict();
    integer("record_id", static_cast<std::int64_t>(r.id));
    integer("pg_id", pg);
    p_.text("process_group");
    p_.begin_tuple();
    p_.text(group_name), p_.text(description);
    p_.end_tuple();
    text("thread_name", "");
    text("thread_id", std::to_string(r.thread));
    integer("collective_seq_id", seq);
    integer("p2p_seq_id", p2p_seq);
    integer("op_id", static_cast<std::int64_t>(r.op_id));
    text("profiling_name", profiling);
    integer("time_created_ns", r.created_ns);
    if (r.state == FlightState::completed) {
      const std::int64_t from = r.started_ns != 0 ? r.started_ns : r.created_ns;
      p_.text("duration_ms"), p_.number(r.completed_ns > from ? static_cast<double>(r.completed_ns - from) / 1e6 : 0);
    }
    side("input_sizes", sizes.in, "input_dtypes", torch_dtype(r.in.dtype ? r.in : r.out));
    side("output_sizes", sizes.out, "output_dtypes", torch_dtype(r.out.dtype ? r.out : r.in));
    text("state", torch_state(r));
    auto time = [&](std::string_view key, std::int64_t value, bool is_there) {
      p_.text(key);
      if (is_there)
        p_.integer(value);
      else
        p_.none();
    };
    time("time_discovered_started_ns", r.started_ns, r.started_ns != 0);
    time("time_discovered_completed_ns", r.completed_ns, r.state == FlightState::completed);
    p_.text("retired"), p_.boolean(r.state == FlightState::completed);
    integer("timeout_ms", r.timeout_ms);
    p_.text("is_p2p"), p_.boolean(is_p2p);
    p_.text("frames");
    p_.begin_list();
    if (!r.file.empty() || r.line != 0) {
      p_.begin_dict();
      text("name", r.function);
      text("filename", r.file);
      integer("line", r.line);
      p_.end_dict();
    }
    p_.end_list();
    // Our own.
    text("clutch_op", info(r.op).name);
    text("clutch_state", name(r.state));
    if (r.reduce != FlightReduce::none) text("clutch_reduce", name(r.reduce));
    if (r.root >= 0) integer("clutch_root", r.root);
    if (is_p2p) {
      integer("clutch_group", r.group);
      integer("clutch_peer", r.peer);
      integer("clutch_tag", r.tag);
      integer("clutch_p2p_seq", static_cast<std::int64_t>(r.p2p_seq));
    }
    if (r.batch != 0) integer("clutch_batch", static_cast<std::int64_t>(r.batch));
    if (!r.why.empty()) text("clutch_why", r.why);
    if (r.in.is_total || r.out.is_total) {
      // A list of in and out: number of tensors, hash of their sizes; 0 where the sizes are no total.
      p_.text("clutch_totals");
      p_.begin_list();
      for (const FlightTensors* side : {&r.in, &r.out})
        p_.integer(static_cast<std::int64_t>(side->is_total ? side->count : 0)), p_.integer(side->is_total ? side->hash : 0);
      p_.end_list();
    }
    p_.end_dict();
  }

  const FlightImage& image_;
  PickleWriter p_;
  std::vector<const FlightRecord*> chosen_;
  std::map<RankPair, std::uint32_t> pairs_;
};

// ---- Reading pickles

const std::string& text_of(const PickleValue& value, std::string_view what) {
  const std::string* text = value.text();
  if (!text) refuse(fmt::format("{} must be a text, got another thing", what));
  return *text;
}

std::int64_t integer_of(const PickleValue& value, std::string_view what, std::int64_t least, std::int64_t most) {
  const std::uint64_t low = value.whole(0), other = value.whole(1);
  if (low != other) refuse(fmt::format("{} must be a whole number, got another thing", what));
  const auto number = static_cast<std::int64_t>(low);
  if (number < least || number > most) refuse(fmt::format("{} must be from {} to {}, got {}", what, least, most, number));
  return number;
}
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

std::int64_t integer_or(const PickleValue& value, std::string_view what, std::int64_t otherwise, std::int64_t least, std::int64_t most) {
  return value.is_none() ? otherwise : integer_of(value, what, least, most);
}

std::vector<std::int32_t> ranks_of(std::string_view text) {
  const std::string_view whole = text;
  std::vector<std::int32_t> ranks;
  auto fail = [&] { refuse(fmt::format("ranks must be a list of numbers below {}, got '{}'", kMostRanks, printable(whole.substr(0, 60)))); };
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') fail();
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    std::int32_t rank = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
    if (error != std::errc() || rank < 0 || rank >= kMostRanks) fail();
    ranks.push_back(rank);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.starts_with(", "))
      text.remove_prefix(2);
    else if (!text.empty())
      fail();
  }
  std::vector<std::int32_t> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) fail();
  return ranks;
}

FlightTensors tensors_of(const PickleValue& sizes, const PickleValue& dtypes) {
  FlightTensors tensors;
  const PickleValue::List* all = sizes.list();
  if (!all) refuse("sizes must be a list, got another thing");
  for (const PickleValue& tensor : *all) {
    const PickleValue::List* one = tensor.list();
    if (!one) refuse("sizes must be lists of numbers, got another thing");
    auto& to = tensors.sizes.emplace_back();
    for (const PickleValue& n : *one) to.push_back(integer_of(n, "a size", 0, kLargest));
  }
  tensors.count = static_cast<std::uint32_t>(tensors.sizes.size());
  if (const PickleValue::List* names = dtypes.list(); names && !names->empty())
    if (const std::string* first = names->front().text()) tensors.dtype = dtype_of(*first);
  tensors.hash = hash_of(tensors.sizes);
  return tensors;
}

class TorchReader {
 public:
  TorchReader(const PickleValue& dump, std::int32_t rank) : dump_(dump) { image_.rank = rank; }

  FlightImage read() {
    if (!dump_.dict()) refuse("a dump must be a dict, got another thing");
    const std::string& version = text_of(dump_["version"], "version");
    if (!version.starts_with("2.")) refuse(fmt::format("a dump must be of version 2, got '{}'", printable(version.substr(0, 20))));
    image_.rank = static_cast<std::int32_t>(integer_or(dump_["rank"], "rank", image_.rank, 0, kMostRanks - 1));
    image_.world_size = static_cast<std::int32_t>(integer_or(dump_["world_size"], "world_size", image_.rank + 1, image_.rank + 1, kMostRanks));
    image_.process_id = static_cast<std::uint64_t>(integer_or(dump_["process_id"], "process_id", 0, 0, kLargest));
    image_.taken_ns = integer_or(dump_["clutch_taken_ns"], "clutch_taken_ns", 0, 0, kLargest);
    if (const std::string* text = dump_["comm_lib_version"].text()) image_.library = printable(*text);
    if (const std::string* text = dump_["host_name"].text()) image_.host = printable(*text);
    if (const std::string* text = dump_["clutch_process"].text())
      for (const FlightProcess p : {FlightProcess::running, FlightProcess::closed, FlightProcess::lost})
        if (*text == name(p)) image_.process = p;
    groups();
    const PickleValue::List* entries = dump_["entries"].list();
    if (!entries) refuse("entries must be a list, got another thing");
    for (const PickleValue& e : *entries) entry(e);
    std::sort(image_.records.begin(), image_.records.end(), [](const FlightRecord& a, const FlightRecord& b) { return a.id < b.id; });
    for (std::size_t i = 1; i < image_.records.size(); ++i)
      if (image_.records[i].id == image_.records[i - 1].id) refuse(fmt::format("record_id must differ between entries, got {} twice", image_.records[i].id));
    image_.begun = image_.records.empty() ? 0 : image_.records.back().id + 1;
    image_.capacity = image_.records.size();
    return std::move(image_);
  }

 private:
  void groups() {
    const PickleValue::Dict* all = dump_["pg_config"].dict();
    if (!all) refuse("pg_config must be a dict, got another thing");
    for (const auto& [key, value] : *all) {
      FlightGroup group;
      group.name = printable(text_of(key, "a group's name"));
      group.description = printable(text_of(value["desc"], "desc"));
      group.ranks = ranks_of(text_of(value["ranks"], "ranks"));
      for (const std::int32_t rank : group.ranks) image_.world_size = std::max(image_.world_size, rank + 1);
      if (group.description == "p2p" && group.name.find(":p2p:") != std::string::npos) continue;  // a pair, whose messages are their group's
      group.index = static_cast<std::uint32_t>(image_.groups.size());
      image_.groups.push_back(std::move(group));
    }
  }

  void entry(const PickleValue& e) {
    if (!e.dict()) refuse("an entry must be a dict, got another thing");
    const std::string& profiling = text_of(e["profiling_name"], "profiling_name");
    std::string_view torch = profiling;
    if (const std::size_t colon = torch.find(':'); colon != std::string_view::npos) torch.remove_prefix(colon + 1);
    const std::string_view whole = torch;
    torch = torch.substr(0, torch.find(' '));
    if (torch == "coalesced") return;  // the end of a batch of PyTorch's
    FlightRecord r;
    if (const std::string* own = e["clutch_op"].text()) {
      const std::optional<FlightOp> op = flight_op(*own);
      if (!op || info(*op).torch_name != torch) refuse(fmt::format("clutch_op must be that of the profiling_name, got '{}'", printable(*own)));
      r.op = *op;
    } else {
      const std::optional<FlightOp> op = op_of_torch(torch);
      if (!op) refuse(fmt::format("profiling_name must be a collective or a message, got '{}'", printable(profiling.substr(0, 60))));
      r.op = *op;
    }
    const PickleValue::List* pg = e["process_group"].list();
    if (!pg || pg->size() != 2) refuse("process_group must be a name and a description, got another thing");
    std::string group = printable(text_of((*pg)[0], "a group's name"));
    const bool is_p2p = info(r.op).match == FlightOpInfo::Match::pair;
    const std::size_t pair = is_p2p ? group.rfind(":p2p:") : std::string::npos;
    if (pair != std::string::npos) group.resize(pair);
    const auto at = std::find_if(image_.groups.begin(), image_.groups.end(), [&](const FlightGroup& g) { return g.name == group; });
    if (at == image_.groups.end()) refuse(fmt::format("an entry's group must be one of pg_config, got '{}'", group));
    r.group = at->index;
    const auto ranks = static_cast<std::int64_t>(at->ranks.size());
    r.id = static_cast<std::uint64_t>(integer_of(e["record_id"], "record_id", 0, kLargest - 1));
    const std::int64_t seq = integer_of(e["collective_seq_id"], "collective_seq_id", 0, kLargest);
    r.op_id = static_cast<std::uint64_t>(integer_or(e["op_id"], "op_id", 0, 0, kLargest));
    if (is_p2p) {
      r.tag = static_cast<std::int32_t>(
          integer_or(e["clutch_tag"], "clutch_tag", 0, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()));
      r.peer = static_cast<std::int32_t>(e["clutch_peer"].is_none() ? peer(whole, r.op == FlightOp::send, ranks)
                                                                    : integer_of(e["clutch_peer"], "clutch_peer", 0, ranks - 1));
      // PyTorch's own have no number that both ranks know: the messages of a way are counted.
      auto& count = messages_[{r.group, r.peer, r.op, r.tag}];
      ++count;
      r.p2p_seq = static_cast<std::uint64_t>(integer_or(e["clutch_p2p_seq"], "clutch_p2p_seq", count, 0, kLargest));
    } else {
      r.collective_seq = static_cast<std::uint64_t>(seq);
    }
    r.in = tensors_of(e["input_sizes"], e["input_dtypes"]);
    r.out = tensors_of(e["output_sizes"], e["output_dtypes"]);
    if (const PickleValue::List* totals = e["clutch_totals"].list()) {
      if (totals->size() != 4) refuse(fmt::format("clutch_totals must be four numbers, got {}", totals->size()));
      for (const std::size_t i : {0, 1}) {
        FlightTensors& side = i == 0 ? r.in : r.out;
        const std::int64_t count = integer_of((*totals)[2 * i], "a number of tensors", 0, 0xffff);
        if (count == 0 || side.sizes.size() != 1) continue;
        side.is_total = true, side.count = static_cast<std::uint32_t>(count), side.hash = (*totals)[2 * i + 1].whole(0);
      }
    }
    const std::string* own_state = e["clutch_state"].text();
    const std::optional<FlightState> state = flight_state(own_state ? *own_state : text_of(e["state"], "state"));
    if (!state) refuse("state must be scheduled, started or completed, got another text");
    r.state = *state;
    if (const std::string* reduce = e["clutch_reduce"].text()) {
      const std::optional<FlightReduce> known = flight_reduce(*reduce);
      if (!known) refuse(fmt::format("clutch_reduce must be a reduce op, got '{}'", printable(reduce->substr(0, 20))));
      r.reduce = *known;
    }
    r.root = static_cast<std::int32_t>(integer_or(e["clutch_root"], "clutch_root", -1, 0, ranks - 1));
    r.batch = static_cast<std::uint64_t>(integer_or(e["clutch_batch"], "clutch_batch", 0, 0, kLargest));
    r.timeout_ms = integer_or(e["timeout_ms"], "timeout_ms", 0, 0, kLargest);
    r.created_ns = integer_or(e["time_created_ns"], "time_created_ns", 0, 0, kLargest);
    r.started_ns = integer_or(e["time_discovered_started_ns"], "time_discovered_started_ns", 0, 0, kLargest);
    r.completed_ns = integer_or(e["time_discovered_completed_ns"], "time_discovered_completed_ns", 0, 0, kLargest);
    if (const std::string* text = e["clutch_why"].text()) r.why = printable(*text);
    if (const std::string* text = e["thread_id"].text()) {
      const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), r.thread);
      if (error != std::errc() || end != text->data() + text->size()) r.thread = 0;
    }
    if (const PickleValue::List* frames = e["frames"].list(); frames && !frames->empty()) {
      const PickleValue& frame = frames->front();
      if (const std::string* text = frame["filename"].text()) r.file = printable(*text);
      if (const std::string* text = frame["name"].text()) r.function = printable(*text);
      r.line = static_cast<std::uint32_t>(integer_or(frame["line"], "line", 0, 0, 0xffffffff));
    }
    image_.records.push_back(std::move(r));
  }

  /// The other rank in "send 0->1" or "recv 1<-0", of the group's ranks.
  static std::int64_t peer(std::string_view text, bool sends, std::int64_t ranks) {
    const std::size_t arrow = text.find(sends ? "->" : "<-");
    std::int64_t value = -1;
    if (arrow != std::string_view::npos) {
      const std::string_view after = text.substr(arrow + 2);
      const auto [end, error] = std::from_chars(after.data(), after.data() + after.size(), value);
      if (error != std::errc() || end != after.data() + after.size()) value = -1;
    }
    if (value < 0 || value >= ranks) refuse(fmt::format("a message must name its ranks, as 'send 0->1' does, got '{}'", printable(text.substr(0, 40))));
    return value;
  }

  const PickleValue& dump_;
  FlightImage image_;
  std::map<std::tuple<std::uint32_t, std::int32_t, FlightOp, std::int32_t>, std::int64_t> messages_;
};

// ---- JSON

using Json = nlohmann::ordered_json;

Json json_of(const FlightTensors& tensors) {
  Json json{{"dtype", tensors.dtype ? Json(name(*tensors.dtype)) : Json(nullptr)}, {"sizes", tensors.sizes}};
  if (tensors.is_total) json["total_of"] = tensors.count;
  json["hash"] = fmt::format("{:016x}", tensors.hash);
  return json;
}

/// A part of a JSON text, which is read to its end: keys that nothing asked for are refused.
class Part {
 public:
  Part(const Json& json, std::string what) : json_(json), what_(std::move(what)) {
    if (!json.is_object()) refuse(fmt::format("{} must be an object, got another thing", what_));
  }
  const Json& at(const char* key) {
    const auto found = json_.find(key);
    if (found == json_.end()) refuse(fmt::format("{} must have '{}', got none", what_, key));
    ++asked_;
    return *found;
  }
  bool has(const char* key) const { return json_.contains(key); }
  std::string text(const char* key) {
    const Json& value = at(key);
    if (!value.is_string()) refuse(fmt::format("{} must be a text in {}, got another thing", key, what_));
    return printable(value.get_ref<const std::string&>());
  }
  std::int64_t integer(const char* key, std::int64_t least, std::int64_t most) {
    const Json& value = at(key);
    if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(kLargest)))
      refuse(fmt::format("{} must be a whole number in {}, got another thing", key, what_));
    const auto number = value.get<std::int64_t>();
    if (number < least || number > most) refuse(fmt::format("{} must be from {} to {} in {}, got {}", key, least, most, what_, number));
    return number;
  }
  std::uint64_t whole(const char* key) {
    const Json& value = at(key);
    if (!value.is_number_unsigned()) refuse(fmt::format("{} must be a whole number in {}, got another thing", key, what_));
    return value.get<std::uint64_t>();
  }
  const Json& list(const char* key) {
    const Json& value = at(key);
    if (!value.is_array()) refuse(fmt::format("{} must be a list in {}, got another thing", key, what_));
    return value;
  }
  template <class E>
  E one_of(const char* key, std::optional<E> (*find)(std::string_view) noexcept) {
    const std::string value = text(key);
    const std::optional<E> found = find(value);
    if (!found) refuse(fmt::format("{} must be a known name in {}, got '{}'", key, what_, value.substr(0, 40)));
    return *found;
  }
  void end() const {
    if (asked_ != json_.size()) refuse(fmt::format("{} must have no other keys than the format's, got {} of them", what_, json_.size() - asked_));
  }

 private:
  const Json& json_;
  std::string what_;
  std::size_t asked_ = 0;
};

FlightTensors tensors_of(const Json& json) {
  Part part(json, "a call's tensors");
  FlightTensors tensors;
  if (const Json& dtype = part.at("dtype"); !dtype.is_null()) {
    tensors.dtype = dtype.is_string() ? dtype_of(dtype.get_ref<const std::string&>()) : std::nullopt;
    if (!tensors.dtype) refuse("dtype must be one of the library's, got another thing");
  }
  for (const Json& tensor : part.list("sizes")) {
    if (!tensor.is_array()) refuse("sizes must be lists, got another thing");
    auto& to = tensors.sizes.emplace_back();
    for (const Json& n : tensor) {
      if (!n.is_number_integer() || (n.is_number_unsigned() && n.get<std::uint64_t>() > static_cast<std::uint64_t>(kLargest)) || n.get<std::int64_t>() < 0)
        refuse("a size must be a whole number and not negative, got another thing");
      to.push_back(n.get<std::int64_t>());
    }
  }
  tensors.count = static_cast<std::uint32_t>(tensors.sizes.size());
  if (part.has("total_of")) {
    tensors.is_total = true;
    tensors.count = static_cast<std::uint32_t>(part.integer("total_of", 0, 0xffff));
    if (tensors.sizes.size() != 1 || tensors.sizes[0].size() != 1) refuse("a total must be one number, got other sizes");
  }
  const std::string hash = part.text("hash");
  const auto [end, error] = std::from_chars(hash.data(), hash.data() + hash.size(), tensors.hash, 16);
  if (error != std::errc() || end != hash.data() + hash.size()) refuse(fmt::format("hash must be a number of 16 digits, got '{}'", hash.substr(0, 20)));
  part.end();
  return tensors;
}

std::optional<FlightProcess> process_of(std::string_view text) noexcept {
  for (const FlightProcess p : {FlightProcess::unknown, FlightProcess::running, FlightProcess::closed, FlightProcess::lost})
    if (text == name(p)) return p;
  return std::nullopt;
}

constexpr std::string_view kFormat = "clutch-flight";

}  // namespace

std::string torch_pickle_of(const FlightImage& image) { return TorchWriter(image).write(); }

std::string json_of(const FlightImage& image) {
  Json json{{"format", kFormat},
            {"version", 1},
            {"rank", image.rank},
            {"world_size", image.world_size},
            {"process_id", image.process_id},
            {"process", name(image.process)},
            {"host", image.host},
            {"library", image.library},
            {"taken_ns", image.taken_ns},
            {"clock_offset_ns", image.clock_offset_ns},
            {"capacity", image.capacity},
            {"begun", image.begun},
            {"torn", image.torn},
            {"groups", Json::array()},
            {"records", Json::array()}};
  for (const FlightGroup& group : image.groups)
    json["groups"].push_back(
        {{"index", group.index}, {"name", group.name}, {"description", group.description}, {"ranks", group.has_ranks ? Json(group.ranks) : Json(nullptr)}});
  for (const FlightRecord& r : image.records)
    json["records"].push_back({{"id", r.id},
                               {"group", r.group},
                               {"op", info(r.op).name},
                               {"state", name(r.state)},
                               {"collective_seq", r.collective_seq},
                               {"p2p_seq", r.p2p_seq},
                               {"op_id", r.op_id},
                               {"batch", r.batch},
                               {"reduce", name(r.reduce)},
                               {"root", r.root},
                               {"peer", r.peer},
                               {"tag", r.tag},
                               {"in", json_of(r.in)},
                               {"out", json_of(r.out)},
                               {"created_ns", r.created_ns},
                               {"started_ns", r.started_ns},
                               {"completed_ns", r.completed_ns},
                               {"timeout_ms", r.timeout_ms},
                               {"thread", r.thread},
                               {"file", r.file},
                               {"line", r.line},
                               {"function", r.function},
                               {"why", r.why}});
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

FlightImage image_of_torch_pickle(std::span<const std::byte> bytes, std::int32_t rank) {
  const PickleValue dump = clutch::detail::read_pickle(bytes, kOp);
  return TorchReader(dump, rank).read();
}

FlightImage image_of_json(std::string_view text) {
  // A text of brackets alone would be as deep as it is long.
  int deepest = 0, depth = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') deepest = std::max(deepest, ++depth);
    if (c == ']' || c == '}') --depth;
    if (deepest > 1000) refuse("a dump must not be deep, got more than 1000 brackets in one another");
  }
  Json json;
  try {
    json = Json::parse(text);
  } catch (const nlohmann::json::exception& e) {
    refuse(fmt::format("a dump must be JSON, got: {}", printable(e.what())));
  }
  Part head(json, "a dump");
  if (head.text("format") != kFormat) refuse("format must be clutch-flight, got another text");
  head.integer("version", 1, 1);
  FlightImage image;
  image.world_size = static_cast<std::int32_t>(head.integer("world_size", 1, kMostRanks));
  image.rank = static_cast<std::int32_t>(head.integer("rank", 0, image.world_size - 1));
  image.process_id = head.whole("process_id");
  image.process = head.one_of<FlightProcess>("process", process_of);
  image.host = head.text("host");
  image.library = head.text("library");
  image.taken_ns = head.integer("taken_ns", std::numeric_limits<std::int64_t>::min(), kLargest);
  image.clock_offset_ns = head.integer("clock_offset_ns", std::numeric_limits<std::int64_t>::min(), kLargest);
  image.capacity = head.whole("capacity");
  image.begun = head.whole("begun");
  image.torn = head.whole("torn");
  std::set<std::uint32_t> indices;
  for (const Json& value : head.list("groups")) {
    Part part(value, "a group");
    FlightGroup group;
    group.index = static_cast<std::uint32_t>(part.integer("index", 0, 0xffffffff));
    group.name = part.text("name");
    group.description = part.text("description");
    if (const Json& ranks = part.at("ranks"); ranks.is_null()) {
      group.has_ranks = false;
    } else {
      std::set<std::int32_t> different;
      if (!ranks.is_array()) refuse("ranks must be a list or null, got another thing");
      for (const Json& rank : ranks) {
        if (!rank.is_number_unsigned() || rank.get<std::uint64_t>() >= static_cast<std::uint64_t>(image.world_size) ||
            !different.insert(rank.get<std::int32_t>()).second)
          refuse("ranks must be different ones of the world, got another thing");
        group.ranks.push_back(rank.get<std::int32_t>());
      }
    }
    part.end();
    if (!indices.insert(group.index).second) refuse(fmt::format("indices of groups must differ, got {} twice", group.index));
    image.groups.push_back(std::move(group));
  }
  std::sort(image.groups.begin(), image.groups.end(), [](const FlightGroup& a, const FlightGroup& b) { return a.index < b.index; });
  constexpr std::int64_t kInt = std::numeric_limits<std::int32_t>::max();
  for (const Json& value : head.list("records")) {
    Part part(value, "a record");
    FlightRecord r;
    r.id = part.whole("id");
    r.group = static_cast<std::uint32_t>(part.integer("group", 0, 0xffffffff));
    r.op = part.one_of<FlightOp>("op", flight_op);
    r.state = part.one_of<FlightState>("state", flight_state);
    r.collective_seq = part.whole("collective_seq");
    r.p2p_seq = part.whole("p2p_seq");
    r.op_id = part.whole("op_id");
    r.batch = part.whole("batch");
    r.reduce = part.one_of<FlightReduce>("reduce", flight_reduce);
    r.root = static_cast<std::int32_t>(part.integer("root", -1, kInt));
    r.peer = static_cast<std::int32_t>(part.integer("peer", -1, kInt));
    r.tag = static_cast<std::int32_t>(part.integer("tag", -kInt - 1, kInt));
    r.in = tensors_of(part.at("in"));
    r.out = tensors_of(part.at("out"));
    r.created_ns = part.integer("created_ns", std::numeric_limits<std::int64_t>::min(), kLargest);
    r.started_ns = part.integer("started_ns", std::numeric_limits<std::int64_t>::min(), kLargest);
    r.completed_ns = part.integer("completed_ns", std::numeric_limits<std::int64_t>::min(), kLargest);
    r.timeout_ms = part.integer("timeout_ms", std::numeric_limits<std::int64_t>::min(), kLargest);
    r.thread = part.whole("thread");
    r.file = part.text("file");
    r.line = static_cast<std::uint32_t>(part.integer("line", 0, 0xffffffff));
    r.function = part.text("function");
    r.why = part.text("why");
    part.end();
    if (!image.records.empty() && image.records.back().id >= r.id) refuse(fmt::format("ids of records must rise, got {} next", r.id));
    image.records.push_back(std::move(r));
  }
  head.end();
  return image;
}

namespace {

enum class Kind : std::uint8_t { none, ring, pickle, json };
Kind kind_of(const clutch::detail::SharedReader& reader) {
  std::array<std::byte, 16> begin{};
  const std::size_t got = reader.copy(0, begin);
  if (FlightRing::is_ring(std::span(begin).first(got))) return Kind::ring;
  if (got >= 2 && begin[0] == std::byte{0x80} && begin[1] >= std::byte{2} && begin[1] <= std::byte{5}) return Kind::pickle;
  return got >= 1 && begin[0] == std::byte{'{'} ? Kind::json : Kind::none;
}

}  // namespace

bool is_flight_file(const std::filesystem::path& file) {
  const clutch::detail::SharedReader reader(file.string());
  return reader.problem().empty() && kind_of(reader) != Kind::none;
}

FlightImage read_flight(const std::filesystem::path& file) {
  const std::string path = file.string();
  std::string text;
  Kind kind = Kind::none;
  {
    const clutch::detail::SharedReader reader(path);
    if (!reader.problem().empty()) throw Error(ErrorCode::io, kOp, fmt::format("a dump must be readable, got: {}", reader.problem()));
    kind = kind_of(reader);
    constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 32;
    if (kind == Kind::none) refuse(fmt::format("{}: a dump must be a ring, a pickle or JSON, got another file", path));
    if (kind != Kind::ring) {
      if (reader.bytes() > kMostBytes) refuse(fmt::format("{}: a dump must have at most {} bytes, got {}", path, kMostBytes, reader.bytes()));
      text.resize(static_cast<std::size_t>(reader.bytes()));
      text.resize(reader.copy(0, std::as_writable_bytes(std::span(text))));
    }
  }
  if (kind == Kind::ring) return FlightRing::read(file);
  // Who wrote a dump chose its time: what is not in it is missing.
  auto final = [](FlightImage image) {
    image.taken_ns = 0;
    return image;
  };
  try {
    if (kind == Kind::json) return final(image_of_json(text));
    const std::string stem = file.filename().string();
    const std::size_t digits = stem.find_last_not_of("0123456789") + 1;
    std::int32_t rank = 0;
    const auto [end, error] = std::from_chars(stem.data() + digits, stem.data() + stem.size(), rank);
    if (error != std::errc() || rank >= kMostRanks) rank = -1;
    return final(image_of_torch_pickle(std::as_bytes(std::span(text)), std::max(rank, 0)));
  } catch (const Error& e) {
    throw Error(e.code(), kOp, fmt::format("{}: {}", path, e.message()));
  }
}

void write_flight(const std::filesystem::path& file, std::string_view text) {
  const std::string problem = clutch::detail::replace_file_durably(file.string(), std::as_bytes(std::span(text)), 0644);
  if (!problem.empty()) throw Error(ErrorCode::io, "dump_flight", fmt::format("a dump must be writable, got: {}", problem));
}

std::vector<FlightImage> aligned(std::vector<FlightImage> images) {
  const FlightGroups groups(images);
  // What numbers begin with, for each rank of a group, and for the sender (0) and the receiver (1) of a way.
  struct Way {
    std::int32_t group, from, to, tag;
    bool operator<(const Way& b) const { return std::tie(group, from, to, tag) < std::tie(b.group, b.from, b.to, b.tag); }
  };
  using Firsts = std::map<std::int32_t, std::uint64_t>;
  std::vector<Firsts> collectives(groups.all().size());
  std::map<Way, Firsts> messages;
  std::set<std::int32_t> wrapped;
  auto way_of = [&](std::size_t image, const FlightRecord& r, std::int32_t group) {
    const auto& ranks = groups.all()[static_cast<std::size_t>(group)].ranks;
    const std::int32_t me = images[image].rank;
    const std::int32_t other = r.peer >= 0 && static_cast<std::size_t>(r.peer) < ranks.size() ? ranks[static_cast<std::size_t>(r.peer)] : -1;
    return r.op == FlightOp::send ? Way{group, me, other, r.tag} : Way{group, other, me, r.tag};
  };
  auto note = [](Firsts& firsts, std::int32_t key, std::uint64_t number) {
    const auto [at, is_new] = firsts.try_emplace(key, number);
    if (!is_new) at->second = std::min(at->second, number);
  };
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (!images[i].records.empty() && images[i].records.front().id > 0) wrapped.insert(images[i].rank);
    for (const FlightRecord& r : images[i].records) {
      const std::int32_t group = groups.number(i, r.group);
      if (group < 0) continue;
      const FlightOpInfo::Match match = info(r.op).match;
      if (match == FlightOpInfo::Match::collective) note(collectives[static_cast<std::size_t>(group)], images[i].rank, r.collective_seq);
      if (match == FlightOpInfo::Match::pair && r.peer >= 0) note(messages[way_of(i, r, group)], r.op == FlightOp::send ? 0 : 1, r.p2p_seq);
    }
  }
  // Where nothing was lost all is compared from the begin; where a ring went around, from the first that it has; and what others have done of which it has
  // nothing, not at all.
  struct From {
    std::uint64_t first = 0;
    bool has_all = true;
    void rank(const Firsts& firsts, const std::set<std::int32_t>& lost, std::int32_t rank, std::int32_t key) {
      if (!lost.contains(rank)) return;
      const auto at = firsts.find(key);
      if (at == firsts.end())
        has_all = false;
      else
        first = std::max(first, at->second);
    }
    bool keeps(std::uint64_t number, const FlightRecord& r) const { return number >= first && (has_all || r.state != FlightState::completed); }
  };
  std::vector<From> of_collectives(collectives.size());
  for (std::size_t g = 0; g < collectives.size(); ++g)
    for (const std::int32_t rank : groups.all()[g].ranks) of_collectives[g].rank(collectives[g], wrapped, rank, rank);
  for (std::size_t i = 0; i < images.size(); ++i) {
    std::vector<FlightRecord> kept;
    for (FlightRecord& r : images[i].records) {
      const std::int32_t group = groups.number(i, r.group);
      const FlightOpInfo::Match match = info(r.op).match;
      bool keep = true;
      if (group >= 0 && match == FlightOpInfo::Match::collective) keep = of_collectives[static_cast<std::size_t>(group)].keeps(r.collective_seq, r);
      if (group >= 0 && match == FlightOpInfo::Match::pair && r.peer >= 0) {
        const Way way = way_of(i, r, group);
        From from;
        from.rank(messages[way], wrapped, way.from, 0);
        from.rank(messages[way], wrapped, way.to, 1);
        keep = from.keeps(r.p2p_seq, r);
      }
      if (keep) kept.push_back(std::move(r));
    }
    images[i].records = std::move(kept);
    for (std::size_t k = 0; k < images[i].records.size(); ++k) images[i].records[k].id = k;
  }
  return images;
}

}}}}  // namespace clutch::v0::dist::detail
