// SPDX-License-Identifier: Apache-2.0
#include "dist/group_calls.hpp"
#include "support/shared_file.hpp"

#include <clutch/ops/fill.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

namespace clutch { inline namespace v0 { namespace dist {

using namespace detail;

namespace {

double microseconds_since(Clock::time_point begin) { return std::chrono::duration<double, std::micro>(Clock::now() - begin).count(); }

double median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
  return x[x.size() / 2];
}

/// Of numbers of each rank the largest ones, the same on all ranks.
std::vector<double> largest(const Group& group, const std::vector<double>& mine) {
  const Tensor all = from_host(mine, {static_cast<std::int64_t>(mine.size())});
  group.all_reduce_(all, {.op = ReduceOp::max, .algorithm = Algorithm::direct}).synchronize();
  return all.to_host<double>();
}

/// A call of one way that is timed at each size.
struct Probe {
  const WayCosts Machine::*way;
  std::function<void(std::int64_t block)> call;  ///< blocks of so many elements
  std::function<Effort(double bytes)> effort;
  std::vector<Timed> timed = {};
};

/// All ways of a group, on f32.
class Probes {
 public:
  Probes(const Group& group, std::int64_t most) : group_(group), n_(group.size()), in_(zeros({most * n_})), out_(zeros({most * n_})) {
    const bool one_host = group_.impl()->is_one_host();
    if (one_host) {
      add_all(&Machine::board, Algorithm::board, in_, out_, [n = n_](Collective c, double bytes) { return board_effort(c, n, bytes); });
    }
    const auto messages = one_host ? &Machine::messages : &Machine::network;
    auto effort_by = [n = n_, one_host](Method method) {
      return [=](Collective c, double bytes) { return message_effort({.collective = c, .ranks = n, .root = 0, .method = method}, one_host, bytes); };
    };
    add(messages, Collective::all_reduce, Algorithm::tree, in_, out_, effort_by(Method::tree));
    for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather})
      add(messages, collective, Algorithm::direct, in_, out_, effort_by(Method::direct));
    if (!one_host) return;
    memory_ = Symmetric({2 * most * n_}, group_);
    fill_(memory_.local(), 0);
    const Reduction reduction{.dtype = DType::f32, .op = ReduceOp::sum, .factor = 1, .ranks = n_};
    if (!can_launch(*memory_.impl(), &reduction, n_)) return;
    const Tensor first = memory_.local().slice(0, 0, most * n_), second = memory_.local().slice(0, most * n_, 2 * most * n_);
    add_all(&Machine::kernel, Algorithm::kernel, first, second, [n = n_](Collective c, double bytes) { return kernel_effort(c, n, bytes); });
  }
  std::vector<Probe>& all() noexcept { return all_; }

 private:
  using EffortOf = std::function<Effort(Collective, double)>;
  void add_all(const WayCosts Machine::*way, Algorithm algorithm, const Tensor& in, const Tensor& out, const EffortOf& effort) {
    for (const Collective c : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather, Collective::all_to_all})
      add(way, c, algorithm, in, out, effort);
  }
  void add(const WayCosts Machine::*way, Collective collective, Algorithm algorithm, const Tensor& in, const Tensor& out, const EffortOf& effort) {
    auto call = [=, g = group_, n = n_](std::int64_t block) {
      const Tensor all_in = in.slice(0, 0, block * n), all_out = out.slice(0, 0, block * n);
      const CallOptions options{.algorithm = algorithm};
      switch (collective) {
        case Collective::all_reduce:
          // Kernels work in place.
          algorithm == Algorithm::kernel ? g.all_reduce_(all_in, {.algorithm = algorithm}) : g.all_reduce_out(all_out, all_in, {.algorithm = algorithm});
          break;
        case Collective::reduce_scatter: g.reduce_scatter_out(all_out.slice(0, 0, block), all_in, {.algorithm = algorithm}); break;
        case Collective::all_gather: g.all_gather_out(all_out, all_in.slice(0, 0, block), options); break;
        default: g.all_to_all_out(all_out, all_in, options);
      }
    };
    all_.push_back({.way = way, .call = call, .effort = [collective, effort](double bytes) { return effort(collective, bytes); }});
  }

  const Group& group_;
  const int n_;
  const Tensor in_, out_;
  Symmetric memory_;
  std::vector<Probe> all_;
};

/// Microseconds of one call, the median of some.
double time_us(const Group& group, const Stream& stream, const Probe& probe, std::int64_t block, int times) {
  std::vector<double> us;
  group.barrier().synchronize();
  for (int i = 0; i < times; ++i) {
    const auto begin = Clock::now();
    probe.call(block);
    stream.synchronize();
    us.push_back(microseconds_since(begin));
  }
  return median(us);
}

/// All ranks at a time: microseconds a byte that each of them copies, and of a small kernel.
std::vector<double> host_times(const Group& group, const Stream& stream) {
  constexpr std::size_t kBytes = 8 << 20;
  constexpr int kTimes = 5;
  const std::vector<std::byte> from(kBytes);
  std::vector<std::byte> to(kBytes);
  std::vector<double> copies, launches;
  const Tensor one = zeros({1});
  group.barrier().synchronize();
  for (int i = 0; i < kTimes; ++i) {
    auto begin = Clock::now();
    std::memcpy(to.data(), from.data(), kBytes);
    copies.push_back(microseconds_since(begin) / static_cast<double>(kBytes));
    begin = Clock::now();
    fill_(one, i);
    stream.synchronize();
    launches.push_back(microseconds_since(begin));
  }
  return {median(copies), median(launches)};
}

/// Rank 0's bytes on all ranks.
Machine shared_by(const Group& group, const Machine& machine) {
  std::vector<std::uint8_t> bytes(sizeof machine);
  std::memcpy(bytes.data(), &machine, sizeof machine);
  const Tensor all = from_host(bytes, {static_cast<std::int64_t>(bytes.size())});
  group.broadcast_(all, 0, {.algorithm = Algorithm::tree}).synchronize();
  bytes = all.to_host<std::uint8_t>();
  Machine result;
  std::memcpy(&result, bytes.data(), sizeof result);
  return result;
}

}  // namespace

Machine measure(const Group& group) {
  constexpr const char* kOp = "dist::measure";
  (void)GroupCalls{kOp, group}.impl();
  return named(kOp, [&] {
    constexpr int kSizes = 20;
    constexpr double kMostUs = 1.3e6, kLeastBytes = 256, kMostBytes = 8 << 20;
    const Stream stream = current_stream();
    const int n = group.size();
    const auto elements_of = [&](int size) {
      const double bytes = kLeastBytes * std::pow(kMostBytes / kLeastBytes, static_cast<double>(size) / (kSizes - 1));
      return std::max<std::int64_t>(1, std::llround(bytes / sizeof(float)) / n);
    };
    Probes probes(group, elements_of(kSizes - 1));
    // Kernels are built before anything is timed.
    for (const Probe& probe : probes.all()) probe.call(elements_of(0)), stream.synchronize();
    group.barrier().synchronize();
    const auto begin = Clock::now();
    // The ends first, then what lies between them, so that those that the time suffices for are spread.
    for (const int size : {0, 19, 9, 14, 4, 17, 11, 7, 2, 12, 16, 5, 18, 1, 10, 15, 3, 13, 8, 6}) {
      const std::int64_t block = elements_of(size);
      const double bytes = static_cast<double>(block * n) * sizeof(float);
      const int times = bytes <= 64 << 10 ? 11 : bytes <= 1 << 20 ? 5 : 3;
      std::vector<double> us;
      for (const Probe& probe : probes.all()) us.push_back(time_us(group, stream, probe, block, times));
      us.push_back(microseconds_since(begin));
      const std::vector<double> all = largest(group, us);
      for (std::size_t i = 0; i < probes.all().size(); ++i) probes.all()[i].timed.push_back({probes.all()[i].effort(bytes), all[i]});
      if (all.back() > kMostUs) break;
    }
    const std::vector<double> host = largest(group, host_times(group, stream));
    Machine machine{.ranks = n, .ranks_of_host = group.impl()->is_one_host() ? n : 1, .launch_us = host[1], .host_us_per_byte = host[0] / n};
    for (auto way : {&Machine::board, &Machine::kernel, &Machine::messages, &Machine::network}) {
      std::vector<Timed> calls;
      for (const Probe& probe : probes.all())
        if (probe.way == way) calls.insert(calls.end(), probe.timed.begin(), probe.timed.end());
      machine.*way = fitted(calls);
    }
    machine.network_us_per_byte = machine.network.memory_us_per_byte / machine.ranks_of_host;
    return shared_by(group, machine);
  });
}

void choose_by(const Group& group, const Machine& machine) {
  constexpr const char* kOp = "dist::choose_by";
  GroupImpl& impl = GroupCalls{kOp, group}.impl();
  named(kOp, [&] {
    const Machine all = shared_by(group, machine);
    if (!all.messages.known && !all.network.known)
      throw Error(ErrorCode::invalid_argument, kOp, "rank 0's Machine must know messages, in a host or between hosts, got one that knows none");
    impl.set_machine(all);
  });
}

namespace {

constexpr const char* kFormat = "clutch_machine";

struct NamedWay {
  const char* name;
  WayCosts Machine::*way;
};
constexpr NamedWay kWays[] = {{"board", &Machine::board}, {"kernel", &Machine::kernel}, {"messages", &Machine::messages}, {"network", &Machine::network}};

struct NamedCost {
  const char* name;
  double WayCosts::*cost;
};
constexpr NamedCost kNamedCosts[] = {{"call_us", &WayCosts::call_us},
                                     {"round_us", &WayCosts::round_us},
                                     {"message_us", &WayCosts::message_us},
                                     {"cache_us_per_byte", &WayCosts::cache_us_per_byte},
                                     {"memory_us_per_byte", &WayCosts::memory_us_per_byte},
                                     {"cache_bytes", &WayCosts::cache_bytes},
                                     {"add_us_per_byte", &WayCosts::add_us_per_byte}};

/// A number that costs can be.
double cost_of(const nlohmann::json& of, const char* key) {
  const auto cost = of.at(key).get<double>();
  if (!(cost >= 0) || !std::isfinite(cost)) throw std::invalid_argument(fmt::format("\"{}\" must be 0 or more, got {}", key, cost));
  return cost;
}

}  // namespace

void Machine::save(const std::filesystem::path& file) const {
  nlohmann::ordered_json json{{kFormat, 1},
                              {"ranks", ranks},
                              {"ranks_of_host", ranks_of_host},
                              {"launch_us", launch_us},
                              {"host_us_per_byte", host_us_per_byte},
                              {"network_us_per_byte", network_us_per_byte}};
  for (const NamedWay& way : kWays) {
    if (!(this->*way.way).known) continue;
    for (const NamedCost& cost : kNamedCosts) json[way.name][cost.name] = this->*way.way.*cost.cost;
  }
  const std::string text = json.dump(2) + '\n';
  if (const std::string why = clutch::detail::replace_file_durably(file.string(), std::as_bytes(std::span(text)), 0666); !why.empty())
    throw Error(ErrorCode::io, "dist::Machine::save", fmt::format("the file must be writable, got: {}", why));
}

Machine Machine::load(const std::filesystem::path& file) {
  constexpr const char* kOp = "dist::Machine::load";
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) throw Error(ErrorCode::io, kOp, fmt::format("the file must be one that can be read, got '{}'", file.string()));
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    if (json.at(kFormat).get<int>() != 1) throw std::invalid_argument("its format must be 1");
    Machine machine{.ranks = json.at("ranks").get<int>(),
                    .ranks_of_host = json.at("ranks_of_host").get<int>(),
                    .launch_us = cost_of(json, "launch_us"),
                    .host_us_per_byte = cost_of(json, "host_us_per_byte"),
                    .network_us_per_byte = cost_of(json, "network_us_per_byte")};
    if (machine.ranks < 1 || machine.ranks_of_host < 1) throw std::invalid_argument("ranks must be 1 or more");
    for (const NamedWay& way : kWays) {
      if (!json.contains(way.name)) continue;
      WayCosts& costs = machine.*way.way;
      costs.known = true;
      for (const NamedCost& cost : kNamedCosts) costs.*cost.cost = cost_of(json.at(way.name), cost.name);
    }
    return machine;
  } catch (const std::exception& e) {
    throw Error(ErrorCode::invalid_argument, kOp, fmt::format("the file must be one of Machine::save(), got '{}': {}", file.string(), e.what()));
  }
}

}}}  // namespace clutch::v0::dist
