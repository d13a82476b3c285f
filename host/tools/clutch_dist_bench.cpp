// SPDX-License-Identifier: Apache-2.0
// clutch-dist-bench: collectives next to MPI's own on host memory and, where CLUTCH_PEER_PYTHON has torch, gloo's, and what works on Symmetric memory next to
// the calls that it takes the place of, all timed in turns by the same ranks.
#include "tools/gloo_peer.hpp"

#include <clutch/dist/matmul.hpp>
#include <clutch/dist/model.hpp>
#include <clutch/dist/moe.hpp>
#include <clutch/dist/symmetric_kernel.hpp>
#include <clutch/ops/copy.hpp>
#include <clutch/ops/fill.hpp>
#include <clutch/ops/matmul.hpp>
#include <clutch/pointwise.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace clutch;
using namespace clutch::dist;

struct Settings {
  std::vector<std::string> ops{"all_reduce", "reduce", "reduce_scatter", "all_gather", "gather", "scatter", "broadcast", "all_to_all", "sendrecv"};
  std::uint64_t least = 1024, most = 64 << 20, factor = 8;
  std::string algorithm = "automatic";
  std::int64_t width = 64;
  int pairs = 7;
  bool symmetric = false, in_place = false, model = false, messages = false;
  std::string machine;
  double least_ms = 20;
  bool json = false;
};

/// A collective of `count` elements in all, by clutch and by MPI.
struct Case {
  std::function<void()> ours, peer;
  std::vector<Symmetric> memory;        ///< kept: kernels know tensors by it
  std::function<std::int64_t()> wrong;  ///< elements of this rank's result that are not what they must be
  std::int64_t count = 0;
  double bus = 1;  ///< bus bandwidth over algorithm bandwidth, as nccl-tests define them
};

constexpr std::uint64_t kElement = sizeof(float);

float value(int rank, std::int64_t i) { return static_cast<float>((rank + 1) * 3 + i % 13); }

std::vector<float> values(int rank, std::int64_t n) {
  std::vector<float> result(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) result[static_cast<std::size_t>(i)] = value(rank, i);
  return result;
}

/// What is there for Symmetric memory alone.
const std::vector<std::string> kOnSymmetric{
    "put", "get", "all_to_all_v", "all_gather_matmul", "matmul_reduce_scatter", "optimizer_step", "signals", "between_two_kernels"};
/// Signals of a call, one after the other, there and back.
constexpr std::uint32_t kSignals = 2000;

std::function<std::int64_t()> differences(const Tensor& a, const Tensor& b) {
  return [a, b] {
    const std::vector<float> x = a.to_host<float>(), y = b.to_host<float>();
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < x.size(); ++i) wrong += x[i] == y[i] ? 0 : 1;
    return wrong;
  };
}

/// Peers: of put and get the device's own copy; of all_to_all_v MPI's, with counts that the host knows; of products and optimizer steps the separate calls; of
/// signals a launch without any; of a call between two kernels these alone.
Case make_on_symmetric(const std::string& op, std::uint64_t bytes, const Group& g, std::int64_t width) {
  const int n = g.size(), me = g.rank(), next = (me + 1) % n, before = (me + n - 1) % n;
  const std::int64_t wide = 256, row = op == "all_gather_matmul" || op == "matmul_reduce_scatter" ? wide : 16;
  const std::int64_t rows = std::max<std::int64_t>(static_cast<std::int64_t>(bytes / kElement) / n / row, 1), total = n * rows * row;
  Case c{.count = total, .bus = static_cast<double>(n - 1) / n};
  auto in = [&](const Dims& sizes) { return from_host(values(me, numel(sizes)), sizes); };
  auto memory = [&](const Dims& sizes) { return c.memory.emplace_back(sizes, g); };
  if (op == "put" || op == "get") {
    const Symmetric shared = memory({total});
    const Tensor x = in({total}), own = empty({total}), theirs = from_host(values(before, total), {total}), out = empty({total});
    copy_(shared.local(), in({total}));
    g.barrier().synchronize();
    c.bus = 1;
    c.peer = [=] { copy_(own, x); };
    if (op == "put") {
      c.ours = [=] { shared.put(x, next); };
      c.wrong = differences(shared.local(), theirs);
    } else {
      c.ours = [=] { shared.get(out, before); };
      c.wrong = differences(out, theirs);
    }
  } else if (op == "all_to_all_v") {
    const Symmetric shared = memory({n * rows, row});
    const Tensor sizes = full({n}, static_cast<double>(rows), {.dtype = DType::i64}), places = empty({2, n}, {.dtype = DType::i64});
    const Tensor out = empty({n * rows, row});
    copy_(shared.local(), in({n * rows, row}));
    const auto a = std::make_shared<std::vector<float>>(values(me, total)), b = std::make_shared<std::vector<float>>(static_cast<std::size_t>(total));
    std::vector<int> counts(static_cast<std::size_t>(n), static_cast<int>(rows * row)), begins;
    for (int r = 0; r < n; ++r) begins.push_back(r * counts[0]);
    c.ours = [=] { all_to_all_v(out, places, shared.local(), sizes, g); };
    c.peer = [=] { MPI_Alltoallv(a->data(), counts.data(), begins.data(), MPI_FLOAT, b->data(), counts.data(), begins.data(), MPI_FLOAT, MPI_COMM_WORLD); };
    c.wrong = [=] {
      const std::vector<float> x = out.to_host<float>();
      std::int64_t wrong = 0;
      for (std::size_t i = 0; i < x.size(); ++i) wrong += x[i] == (*b)[i] ? 0 : 1;
      return wrong;
    };
  } else if (op == "all_gather_matmul") {
    const Symmetric a = memory({rows, wide}), gathered = memory({n * rows, wide});
    const Tensor b = in({wide, width}), out = empty({n * rows, width}), other = empty({n * rows, width});
    copy_(a.local(), in({rows, wide}));
    c.ours = [=] { all_gather_matmul(out, a.local(), b, g); };
    c.peer = [=] { g.all_gather_out(gathered.local(), a.local()), linalg::matmul_out(other, gathered.local(), b); };
    c.wrong = differences(out, other);
  } else if (op == "optimizer_step") {
    // The same gradients again and again: both parameters take the same steps, if not the same number of them.
    const Symmetric params = memory({total}), grads = memory({total}), other = memory({total});
    const Tensor mean = empty({total / n}), share = other.local().slice(0, me * (total / n), (me + 1) * (total / n));
    for (const Symmetric& x : {params, other}) fill_(x.local(), 1);
    copy_(grads.local(), in({total}));
    g.barrier().synchronize();
    const auto one = std::make_shared<ShardedAdamW>(params, grads);
    const auto of_share = std::make_shared<optim::AdamW>(std::vector<Tensor>{share}, optim::AdamWOptions{.precision = {.numerics = optim::Numerics::source}});
    const auto steps = std::make_shared<std::pair<int, int>>();
    c.ours = [=] { one->step(), ++steps->first; };
    c.peer = [=] {
      ++steps->second;
      g.reduce_scatter_out(mean, grads.local(), {.op = ReduceOp::avg});
      of_share->step(std::vector<Tensor>{mean});
      g.all_gather_out(other.local(), share);
    };
    c.wrong = [=, ours = c.ours, peer = c.peer] {
      while (steps->first < steps->second) ours();
      while (steps->second < steps->first) peer();
      return differences(params.local(), other.local())();
    };
  } else if (op == "signals") {
    // Neighbours in pairs: each waits in its kernel, for as long as the other's may take to begin.
    const Symmetric shared = memory({16});
    const Tensor late = zeros({1}, {.dtype = DType::i32});
    const int other = me % 2 == 0 ? me + 1 : me - 1;
    const std::string text = symmetric_text(shared, R"(
__kernel void to_and_fro(__global int* late, uint signals, uint other, uint first, CLUTCH_SYMMETRIC) {
  for (uint i = first; i < first + signals / 2; ++i) {
    if (CLUTCH_RANK < other) CLUTCH_SIGNAL(other, 0, 1);
    uint spins = 0;
    while (CLUTCH_COUNTER(other, 0) <= i && spins < 1u << 28) ++spins;
    if (spins == 1u << 28) late[0] = 1;
    if (CLUTCH_RANK > other) CLUTCH_SIGNAL(other, 0, 1);
  }
})");
    const auto begun = std::make_shared<std::uint32_t>(0);
    auto call = [=](std::uint32_t signals) {
      launch({.text = text, .entry = "to_and_fro"}, {},
             symmetric_arguments(shared, {inout(late), clutch::value(signals), clutch::value(static_cast<std::uint32_t>(other)), clutch::value(*begun)}));
      *begun += signals / 2;
    };
    const bool has_other = other < n;
    c.ours = [=] { call(has_other ? kSignals : 0); };
    c.peer = [=] { call(0); };
    c.wrong = [=] { return static_cast<std::int64_t>(late.to_host<std::int32_t>()[0]); };
  } else if (op == "between_two_kernels") {
    const Tensor x = in({total}), out = empty({total}), alone = in({total});
    c.ours = [=] { mul_(x, 1.0F), g.all_reduce_out(out, x), mul_(out, 1.0F); };
    c.peer = [=] { mul_(alone, 1.0F), mul_(alone, 1.0F); };
    c.wrong = [=] {
      const std::vector<float> got = out.to_host<float>();
      std::int64_t wrong = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        float sum = 0;
        for (int r = 0; r < n; ++r) sum += value(r, static_cast<std::int64_t>(i));
        wrong += got[i] == sum ? 0 : 1;
      }
      return wrong;
    };
  } else {
    const Symmetric scratch = memory({n * rows, wide}), product = memory({n * rows, wide});
    const Tensor a = in({n * rows, width}), b = in({width, wide}), out = empty({rows, wide}), other = empty({rows, wide});
    c.ours = [=] { matmul_reduce_scatter(out, a, b, scratch.local(), g); };
    c.peer = [=] { linalg::matmul_out(product.local(), a, b), g.reduce_scatter_out(other, product.local()); };
    c.wrong = differences(out, other);
  }
  return c;
}

Case make(const std::string& op, std::uint64_t bytes, const Group& g, Algorithm algorithm, const Settings& settings) {
  const bool symmetric = settings.symmetric;
  if (std::find(kOnSymmetric.begin(), kOnSymmetric.end(), op) != kOnSymmetric.end()) return make_on_symmetric(op, bytes, g, settings.width);
  const int n = g.size(), me = g.rank();
  const std::int64_t block = std::max<std::int64_t>(static_cast<std::int64_t>(bytes / kElement) / n, 1), total = block * n;
  const double share = static_cast<double>(n - 1) / n;
  Case c{.count = total};
  auto in = [&](std::int64_t count) {
    const std::vector<float> host = values(me, count);
    return from_host(host, {count});
  };
  // Memory that all ranks reach, or the device's own.
  auto place = [&](std::int64_t elements) { return symmetric ? c.memory.emplace_back(Dims{elements}, g).local() : empty({elements}); };
  auto host_in = [&](std::int64_t count) { return std::make_shared<std::vector<float>>(values(me, count)); };
  auto host_out = [](std::int64_t count) { return std::make_shared<std::vector<float>>(static_cast<std::size_t>(count)); };
  auto check = [](Tensor out, std::function<float(std::int64_t)> wanted) {
    return [out, wanted] {
      const std::vector<float> got = out.to_host<float>();
      std::int64_t wrong = 0;
      for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] == wanted(static_cast<std::int64_t>(i)) ? 0 : 1;
      return wrong;
    };
  };
  auto sum = [n](std::int64_t i) {
    float all = 0;
    for (int r = 0; r < n; ++r) all += value(r, i);
    return all;
  };
  const auto count = static_cast<int>(total), part = static_cast<int>(block);
  if (op == "all_reduce" || op == "reduce") {
    const bool to_all = op == "all_reduce";
    const bool in_place = to_all && (symmetric || settings.in_place);
    const Tensor x = in(total), out = to_all ? place(total) : empty({total});
    const auto a = host_in(total), b = host_out(total);
    c.bus = to_all ? 2 * share : 1;
    if (in_place) {
      // In place, of the same numbers again and again: they are averaged.
      copy_(out, x);
      c.ours = [=] { g.all_reduce_(out, {.op = ReduceOp::avg, .algorithm = algorithm}); };
      c.peer = [=] { MPI_Allreduce(MPI_IN_PLACE, a->data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); };
      c.wrong = check(out, [n, sum](std::int64_t i) { return sum(i) / static_cast<float>(n); });
      return c;
    }
    c.ours = [=] { to_all ? g.all_reduce_out(out, x, {.algorithm = algorithm}) : g.reduce_out(out, x, 0, {.algorithm = algorithm}); };
    c.peer = [=] {
      to_all ? MPI_Allreduce(a->data(), b->data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD)
             : MPI_Reduce(a->data(), b->data(), count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
    };
    if (to_all || me == 0) c.wrong = check(out, sum);
  } else if (op == "reduce_scatter") {
    const Tensor x = place(total), out = empty({block});
    copy_(x, in(total));
    const auto a = host_in(total), b = host_out(block);
    c.bus = share;
    c.ours = [=] { g.reduce_scatter_out(out, x); };
    c.peer = [=] { MPI_Reduce_scatter_block(a->data(), b->data(), part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); };
    c.wrong = check(out, [=](std::int64_t i) { return sum(me * block + i); });
  } else if (op == "all_gather" || op == "gather") {
    const bool to_all = op == "all_gather";
    const Tensor x = in(block), out = to_all ? place(total) : me == 0 ? empty({total}) : Tensor();
    const auto a = host_in(block), b = host_out(total);
    c.bus = share;
    c.ours = [=] { to_all ? g.all_gather_out(out, x) : g.gather_out(out, x, 0); };
    c.peer = [=] {
      to_all ? MPI_Allgather(a->data(), part, MPI_FLOAT, b->data(), part, MPI_FLOAT, MPI_COMM_WORLD)
             : MPI_Gather(a->data(), part, MPI_FLOAT, b->data(), part, MPI_FLOAT, 0, MPI_COMM_WORLD);
    };
    if (out.defined()) c.wrong = check(out, [=](std::int64_t i) { return value(static_cast<int>(i / block), i % block); });
  } else if (op == "scatter") {
    const Tensor x = me == 0 ? in(total) : Tensor(), out = empty({block});
    const auto a = host_in(total), b = host_out(block);
    c.bus = share;
    c.ours = [=] { g.scatter_out(out, x, 0); };
    c.peer = [=] { MPI_Scatter(a->data(), part, MPI_FLOAT, b->data(), part, MPI_FLOAT, 0, MPI_COMM_WORLD); };
    c.wrong = check(out, [=](std::int64_t i) { return value(0, me * block + i); });
  } else if (op == "broadcast") {
    const Tensor x = place(total);
    copy_(x, in(total));
    const auto a = host_in(total);
    c.ours = [=] { g.broadcast_(x, 0); };
    c.peer = [=] { MPI_Bcast(a->data(), count, MPI_FLOAT, 0, MPI_COMM_WORLD); };
    c.wrong = check(x, [](std::int64_t i) { return value(0, i); });
  } else if (op == "all_to_all") {
    const Tensor x = in(total), out = place(total);
    const auto a = host_in(total), b = host_out(total);
    c.bus = share;
    c.ours = [=] { g.all_to_all_out(out, x); };
    c.peer = [=] { MPI_Alltoall(a->data(), part, MPI_FLOAT, b->data(), part, MPI_FLOAT, MPI_COMM_WORLD); };
    c.wrong = check(out, [=](std::int64_t i) { return value(static_cast<int>(i / block), me * block + i % block); });
  } else {
    // Around a ring.
    const int next = (me + 1) % n, before = (me + n - 1) % n;
    const Tensor x = in(total), out = empty({total});
    const auto a = host_in(total), b = host_out(total);
    c.ours = [=] {
      const Work sent = g.send(x, next, 0, {.async = true});
      g.recv(out, before);
      sent.wait();
    };
    c.peer = [=] { MPI_Sendrecv(a->data(), count, MPI_FLOAT, next, 0, b->data(), count, MPI_FLOAT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); };
    c.wrong = check(out, [=](std::int64_t i) { return value(before, i); });
  }
  return c;
}

double slowest_of(double us) {
  double slowest = 0;
  MPI_Allreduce(&us, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

/// Microseconds of a call, of the rank that takes longest.
double time_us(const std::function<void()>& call, int times) {
  const Stream stream = current_stream();
  stream.synchronize();
  MPI_Barrier(MPI_COMM_WORLD);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) {
    call();
    stream.synchronize();
  }
  return slowest_of(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / times);
}

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x.size() % 2 != 0 ? x[x.size() / 2] : (x[x.size() / 2 - 1] + x[x.size() / 2]) / 2;
}

/// Predicted times, compared with measured ones.
class Predictions {
 public:
  /// Measures the machine, or takes that of a file, by which the group's calls are chosen then. Collective.
  Predictions(const Settings& s, const Group& world) {
    machine_ = s.machine.empty() || !std::filesystem::exists(s.machine) ? measure(world) : Machine::load(s.machine);
    if (!s.machine.empty() && world.rank() == 0) machine_.save(s.machine);
    choose_by(world, machine_);
  }
  /// Microseconds; none of calls that the model does not have.
  std::optional<double> of(const std::string& op, std::uint64_t bytes, int ranks, Algorithm algorithm, bool symmetric) const {
    for (int c = 0; c <= static_cast<int>(Collective::all_to_all); ++c) {
      const auto collective = static_cast<Collective>(c);
      if (op != name(collective)) continue;
      const bool is_reduction = collective == Collective::all_reduce || collective == Collective::reduce;
      const double us = predict_us(machine_, collective, bytes, ranks, is_reduction ? algorithm : Algorithm::automatic);
      const bool has_kernel = collective != Collective::reduce && collective != Collective::gather && collective != Collective::scatter;
      if (!symmetric || !machine_.kernel.known || !has_kernel || algorithm != Algorithm::automatic) return us;
      return std::min(us, predict_us(machine_, collective, bytes, ranks, Algorithm::kernel));
    }
    return std::nullopt;
  }
  void compare(double predicted, double measured) { errors_.push_back(std::abs(predicted / measured - 1)), off_ += is_off(predicted, measured) ? 1 : 0; }
  static bool is_off(double predicted, double measured) { return predicted > 2 * measured || measured > 2 * predicted; }
  void print() const {
    if (!errors_.empty())
      fmt::print("# model: median of |predicted / measured - 1| {:.2f} over {} rows; {} of them are off by more than 2x, marked by !\n", median(errors_),
                 errors_.size(), off_);
  }

 private:
  Machine machine_;
  std::vector<double> errors_;
  int off_ = 0;
};

/// Times of one side, and what each pair's time of ours was to it.
struct Times {
  std::vector<double> us, ratios;
  std::string text() const {
    const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
    return fmt::format("{:>10.1f}  {:.2f} [{:.2f}, {:.2f}]", median(us), median(ratios), *least, *most);
  }
  std::string json(const std::string& us_name, const std::string& prefix) const {
    const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
    return fmt::format(R"("{}": {:.2f}, "{}ratio": {:.3f}, "{}least": {:.3f}, "{}most": {:.3f})", us_name, median(us), prefix, median(ratios), prefix, *least,
                       prefix, *most);
  }
};

/// The ranks' Python processes meet, by a file of rank 0's choice. Returns the peer's name.
std::string meet(tools::GlooPeer& peer, const Group& world) {
  std::array<char, 256> file{};
  if (world.rank() == 0)
    fmt::format_to_n(file.data(), file.size() - 1, "{}", (std::filesystem::temp_directory_path() / fmt::format("clutch_gloo_{}", ::getpid())).string());
  MPI_Bcast(file.data(), static_cast<int>(file.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
  std::string name = peer.meet(world.rank(), world.size(), file.data());
  MPI_Barrier(MPI_COMM_WORLD);
  std::error_code ignored;
  if (world.rank() == 0) std::filesystem::remove(file.data(), ignored);
  return name;
}

int run(const Settings& s) {
  static const std::map<std::string, Algorithm> kAlgorithms{{"automatic", Algorithm::automatic}, {"one_shot", Algorithm::one_shot},
                                                            {"direct", Algorithm::direct},       {"tree", Algorithm::tree},
                                                            {"halving", Algorithm::halving},     {"board", Algorithm::board}};
  const Algorithm algorithm = kAlgorithms.at(s.algorithm);
  const std::unique_ptr<tools::GlooPeer> gloo = tools::GlooPeer::start();
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm everyone = MPI_COMM_WORLD;
  const Group world = open({.communicator = &everyone, .apart = s.messages});
  std::optional<Predictions> model;
  if (s.model) model.emplace(s, world);
  const bool prints = world.rank() == 0;
  const std::string gloo_name = gloo ? meet(*gloo, world) : std::string();
  if (prints && !s.json) {
    fmt::print(
        "# {} ranks on {}; times are those of the slowest rank; ratio: the peer's time over ours (MPI's on host memory, or our own "
        "calls, see --help), median of {} pairs [least, most]{}\n",
        world.size(), current_stream().device().name(), s.pairs, gloo ? fmt::format("; then those of {}, a thread each", gloo_name) : std::string());
    fmt::print("#{:>15} {:>12} {:>10} {:>6} {:>6} {:>5} {:>10} {:>8} {:>8} {:>7}{} {:>10}  ratio{}\n", "op", "size (B)", "count", "type", "redop", "root",
               "time (us)", "algbw", "busbw", "#wrong", s.model ? "   model (us)" : "", "peer (us)", gloo ? "               gloo (us)  ratio" : "");
  }
  std::int64_t all_wrong = 0;
  for (const std::string& op : s.ops)
    for (std::uint64_t bytes = s.least; bytes <= s.most; bytes *= s.factor) {
      const Case c = make(op, bytes, world, algorithm, s);
      c.ours(), c.peer();
      auto times_of = [&](double first_us) { return std::clamp(static_cast<int>(s.least_ms * 1000 / first_us), 1, 2000); };
      const int times = times_of(std::max(time_us(c.ours, 1), time_us(c.peer, 1)));
      const std::int64_t gloo_wrong = gloo ? gloo->prepare(op, c.count) : -1;
      const bool has_gloo = gloo_wrong >= 0;
      auto gloo_us = [&](int n) { return slowest_of(gloo->time_us(n)); };
      const int gloo_times = has_gloo ? times_of(gloo_us(1)) : 0;
      std::vector<double> ours;
      Times peers, gloos;
      for (int pair = 0; pair < s.pairs; ++pair) {
        // Ours first and last in turns.
        double a = 0, b = 0, g = 0;
        if (pair % 2 != 0 && has_gloo) g = gloo_us(gloo_times);
        if (pair % 2 == 0) a = time_us(c.ours, times), b = time_us(c.peer, times);
        if (pair % 2 != 0) b = time_us(c.peer, times), a = time_us(c.ours, times);
        if (pair % 2 == 0 && has_gloo) g = gloo_us(gloo_times);
        ours.push_back(a), peers.us.push_back(b), peers.ratios.push_back(b / a);
        if (has_gloo) gloos.us.push_back(g), gloos.ratios.push_back(g / a);
      }
      std::int64_t mine = (c.wrong ? c.wrong() : 0) + std::max<std::int64_t>(gloo_wrong, 0), wrong = 0;
      MPI_Allreduce(&mine, &wrong, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
      all_wrong += wrong;
      const double us = median(ours), gbs = static_cast<double>(c.count) * kElement / us / 1000;
      const bool reduces = op.find("reduce") != std::string::npos, has_root = op == "reduce" || op == "gather" || op == "scatter" || op == "broadcast";
      if (!prints) continue;
      const auto all_bytes = static_cast<std::uint64_t>(c.count) * kElement;
      // Negative: none.
      const double predicted = model ? model->of(op, all_bytes, world.size(), algorithm, s.symmetric).value_or(-1) : -1;
      if (predicted >= 0) model->compare(predicted, us);
      if (s.json)
        fmt::print("{{\"op\": \"{}\", \"ranks\": {}, \"bytes\": {}, \"us\": {:.2f}, {}{}, \"wrong\": {}{}}}\n", op, world.size(), all_bytes, us,
                   peers.json("peer_us", ""), has_gloo ? ", " + gloos.json("gloo_us", "gloo_") : "", wrong,
                   predicted >= 0 ? fmt::format(", \"model_us\": {:.2f}", predicted) : "");
      else
        fmt::print("{:>16} {:>12} {:>10} {:>6} {:>6} {:>5} {:>10.1f} {:>8.3f} {:>8.3f} {:>7}{} {}{}\n", op, all_bytes, c.count, "f32", reduces ? "sum" : "-",
                   has_root ? "0" : "-", us, gbs, gbs * c.bus, wrong,
                   !s.model         ? ""
                   : predicted >= 0 ? fmt::format(" {:>11.1f}{}", predicted, Predictions::is_off(predicted, us) ? '!' : ' ')
                                    : fmt::format(" {:>11} ", '-'),
                   peers.text(), has_gloo ? "  " + gloos.text() : std::string());
      std::fflush(stdout);
    }
  if (model && prints && !s.json) model->print();
  MPI_Finalize();
  return all_wrong == 0 ? 0 : 1;
}

int command(int argc, char** argv) {
  Settings s;
  CLI::App app(
      "Times collectives of f32 and MPI's own on host memory in turns, and gloo's where the Python of CLUTCH_PEER_PYTHON has torch. Start it by mpirun.");
  std::vector<std::string> all = s.ops;
  all.insert(all.end(), kOnSymmetric.begin(), kOnSymmetric.end());
  app.add_option(
         "--ops", s.ops,
         "Collectives; put and get (peer: the device's own copy), all_to_all_v (splits on the device; peer: MPI_Alltoallv), "
         "all_gather_matmul and matmul_reduce_scatter (peer: a collective and a product), optimizer_step (peer: reduce_scatter, AdamW and all_gather), signals "
         "(2000 of two kernels to each other; peer: a launch), between_two_kernels (peer: these alone), all in Symmetric memory")
      ->delimiter(',')
      ->check(CLI::IsMember(all));
  app.add_option("--min", s.least, "Bytes of the smallest tensors")->transform(CLI::AsSizeValue(false));
  app.add_option("--max", s.most, "Bytes of the largest tensors")->transform(CLI::AsSizeValue(false));
  app.add_option("--factor", s.factor, "From one size to the next")->check(CLI::Range(2, 1 << 20));
  app.add_option("--algorithm", s.algorithm, "Of all_reduce and reduce")->check(CLI::IsMember({"automatic", "one_shot", "direct", "tree", "halving", "board"}));
  app.add_flag("--in-place", s.in_place, "all_reduce in place, as gloo's always is and that of --symmetric");
  app.add_flag("--symmetric", s.symmetric, "Tensors in memory that all ranks reach, where the collective takes them");
  app.add_option("--width", s.width, "Columns of products behind a gather, and inner size of those before a reduction; rows that move have 256 numbers")
      ->check(CLI::Range(1, 1 << 16));
  app.add_flag("--model", s.model, "Measures the machine first, chooses algorithms by it, and prints predicted times, too");
  app.add_option("--machine", s.machine, "With --model: the file of the machine, which is measured and written where there is none");
  app.add_option("--pairs", s.pairs, "Measurements of each")->check(CLI::Range(1, 1000));
  app.add_option("--ms", s.least_ms, "Milliseconds of a measurement, at least");
  app.add_flag("--messages", s.messages,
               "Messages alone, as between hosts; with `--mca btl tcp,self` of mpirun by the network's protocol, MPI's own calls, too");
  app.add_flag("--json", s.json, "A line of JSON for each row");
  CLI11_PARSE(app, argc, argv);
  return run(s);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return command(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "clutch-dist-bench: {}\n", e.what());
    return 2;
  }
}
