// SPDX-License-Identifier: Apache-2.0
#include "harness/sweep.hpp"
#include "harness/filter.hpp"
#include "harness/json_input.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <optional>
#include <regex>

namespace clutch::bench {

namespace {

/// Below this ratio a shape is measured again: of many measurements the worst one is mostly noise.
constexpr double kAgain = 0.95;
constexpr std::size_t kWorst = 5;

struct Chosen {
  const SweptOp* op;
  RandomShape shape;
};

std::string too_large(const SweptOp& op, const RandomShape& shape, const SweepOptions& o) {
  if (op.refuses)
    if (std::string why = op.refuses(shape); !why.empty()) return why;
  const Load load = op.load(shape);
  if (load.bytes > o.mebibytes * 0x1p20) return fmt::format("the shape must take at most {:.0f} MiB (--memory), got {:.0f}", o.mebibytes, load.bytes * 0x1p-20);
  constexpr double kPerSecond = 1e11;
  if (const double most = o.seconds / 10; load.operations > most * kPerSecond)
    return fmt::format("a call must take at most a tenth of --seconds, {:.3g} s at {:.0f} GFLOP/s, got {:.3g}", most, kPerSecond * 1e-9,
                       load.operations / kPerSecond);
  return {};
}

std::vector<Chosen> given_shapes(const SweptOps& ops, const SweepOptions& o) {
  std::vector<Chosen> chosen;
  for (const std::string& text : o.shapes) {
    const auto op = std::find_if(ops.begin(), ops.end(), [&](const SweptOp& each) { return each.name == op_of_shape(text); });
    if (op == ops.end()) {
      std::vector<std::string_view> names;
      for (const SweptOp& each : ops) names.push_back(each.name);
      throw Error(ErrorCode::invalid_argument, "clutch-bench", fmt::format("a shape must begin with one of {}, got '{}'", fmt::join(names, " "), text));
    }
    RandomShape shape = parse_shape(text, op->parameters);
    if (std::string why = too_large(*op, shape, o); !why.empty()) throw Error(ErrorCode::invalid_argument, "clutch-bench", fmt::format("{}: {}", text, why));
    chosen.push_back({&*op, std::move(shape)});
  }
  return chosen;
}

std::vector<Chosen> random_shapes(const SweptOps& ops, const SweepOptions& o) {
  const std::regex pattern = filter_pattern(o.filter);
  std::vector<Chosen> chosen;
  for (const SweptOp& op : ops) {
    ShapeSource source(op.name, op.parameters, o.seed);
    std::vector<std::string> seen;
    // Filters that find one shape in a hundred get as many as asked for, and small sets of shapes end.
    for (int draws = 0, found = 0; found < o.count && draws < 200 * o.count + 1000; ++draws) {
      RandomShape shape = source.next();
      const std::string text = shape.text();
      if (!too_large(op, shape, o).empty() || !std::regex_search(text, pattern) || std::find(seen.begin(), seen.end(), text) != seen.end()) continue;
      seen.push_back(text);
      chosen.push_back({&op, std::move(shape)});
      ++found;
    }
  }
  if (chosen.empty())
    throw Error(ErrorCode::invalid_argument, "clutch-bench",
                fmt::format("--filter '{}' finds no random shape; --sweep --random 10 --list shows some", o.filter));
  return chosen;
}

Result run_shape(const Chosen& chosen, const Device& device, const MeasureOptions& measuring) {
  Result result{.row = {.name = chosen.shape.text(), .bytes = kStated}, .device = device.name()};
  try {
    Work work = chosen.op->prepare(device, chosen.shape);
    std::erase_if(work.peers, [](const Peer& peer) { return !peer.rival; });
    work.run(1);  // may prepare what later calls have
    const Cost before = enqueued_cost();
    work.run(1);
    const Cost cost = enqueued_cost() - before;
    result.plan = last_plan();
    result.row.bytes = cost.bytes, result.row.flops = cost.flops;
    std::string wrong = work.check ? work.check() : "it has no check";
    if (!wrong.empty()) throw Error(ErrorCode::internal, result.row.name, "the result is wrong: " + wrong);
    result.checked = true;
    result.measured = measure(work, device, measuring);
    if (const PeerTiming* peer = result.fastest_peer(); peer && peer->ratio < kAgain) {
      MeasureOptions longer = measuring;
      longer.seconds *= 2;
      result.measured = measure(work, device, longer);
    }
    if (const double time = result.measured.hot.median; time > 0) result.gbps = result.row.bytes / time * 1e-9, result.gflops = result.row.flops / time * 1e-9;
  } catch (const std::exception& e) {
    result.error = e.what();
  }
  return result;
}

std::string time_of(double seconds) { return seconds < 1e-3 ? fmt::format("{:.2f} us", seconds * 1e6) : fmt::format("{:.3f} ms", seconds * 1e3); }

void print_shape(const Result& r) {
  if (!r.error.empty()) {
    fmt::print("{:>8}  {:>11}  {}  FAILED: {}\n", "", "", r.row.name, r.error);
  } else {
    const PeerTiming* fastest = r.fastest_peer();
    std::vector<std::string> peers;
    for (const PeerTiming& p : r.measured.peers) peers.push_back(fmt::format("{} {:.2f}x", p.name, p.ratio));
    fmt::print("{:>8}  {:>11}  {}  {}\n", fastest ? fmt::format("{:.2f}x", fastest->ratio) : "no peer", time_of(r.measured.hot.median), r.row.name,
               fmt::join(peers, ", "));
  }
  std::fflush(stdout);
}

Summary summary_of(const std::string& op, const std::string& device, const std::vector<Result>& results) {
  Summary s{.op = op, .device = device};
  std::vector<std::pair<double, std::string>> ratios;
  for (const Result& r : results) {
    if (r.device != device || op_of_shape(r.row.name) != op) continue;
    ++s.shapes;
    if (!r.error.empty())
      ++s.failed;
    else if (const PeerTiming* fastest = r.fastest_peer())
      ratios.emplace_back(fastest->ratio, r.row.name);
    else
      ++s.without_peer;
  }
  std::sort(ratios.begin(), ratios.end());
  if (ratios.empty()) return s;
  const std::size_t n = ratios.size();
  s.worst = ratios[0].first, s.low = ratios[(n - 1) / 20].first, s.median = (ratios[(n - 1) / 2].first + ratios[n / 2].first) / 2;
  ratios.resize(std::min(n, kWorst));
  s.worst_shapes = std::move(ratios);
  return s;
}

void print_summaries(const std::vector<Summary>& summaries, const std::vector<Result>& results) {
  fmt::print("\n{:<20} {:>7} {:>7} {:>8} {:>8} {:>8} {:>8}   fastest peer's time / ours\n", "op", "shapes", "failed", "no peer", "worst", "5 %", "median");
  for (const Summary& s : summaries) {
    const bool any = !s.worst_shapes.empty();
    auto ratio = [&](double r) { return any ? fmt::format("{:.2f}x", r) : std::string("-"); };
    fmt::print("{:<20} {:>7} {:>7} {:>8} {:>8} {:>8} {:>8}\n", s.op, s.shapes, s.failed, s.without_peer, ratio(s.worst), ratio(s.low), ratio(s.median));
  }
  fmt::print("\nthe worst, each again by clutch-bench --sweep --shape TEXT\n");
  for (const Summary& s : summaries)
    for (const auto& [ratio, text] : s.worst_shapes)
      for (const Result& r : results)
        if (r.row.name == text && r.device == s.device) {
          fmt::print("{:>7.2f}x  {:>11}  {}  {}\n", ratio, time_of(r.measured.hot.median), text, r.fastest_peer()->name);
          break;
        }
}

/// What the device lacks for a shape.
bool has_dtype(const Device& device, const Chosen& chosen) {
  if (!chosen.shape.has("dtype")) return true;
  const std::string& dtype = chosen.shape.word("dtype");
  return device.traits().fp64 || (dtype != "f64" && dtype != "c128");
}

}  // namespace

int run_sweep(const SweepOptions& o, const std::vector<Device>& devices) {
  SweptOps ops;
  register_swept(ops);
  const std::vector<Chosen> chosen = o.shapes.empty() ? random_shapes(ops, o) : given_shapes(ops, o);
  if (o.list) {
    for (const Chosen& c : chosen) fmt::print("{}\n", c.shape.text());
    return 0;
  }
  const MeasureOptions measuring{.seconds = o.seconds, .pairs = o.pairs, .cold = false, .brief = true};
  std::vector<Context> contexts;
  std::vector<Result> results;
  Summaries summaries{.seed = o.seed, .count = o.count, .ops = {}};
  const std::time_t now = std::time(nullptr);
  int failures = 0;
  for (const Device& device : devices) {
    DeviceGuard guard(device);
    contexts.push_back({device.name(), device.driver_version(), device.platform(), o.git_hash, fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now))});
    fmt::print("\ndevice    {}\nplatform  {} {}\n\n{:>8}  {:>11}  shape  peers: their time / ours\n", device.name(), device.platform(), device.driver_version(),
               "fastest", "ours");
    const std::size_t done = summaries.ops.size();
    for (const Chosen& c : chosen) {
      if (!has_dtype(device, c)) {
        fmt::print("{:>8}  {:>11}  {}  skipped: the device has no f64\n", "", "", c.shape.text());
        continue;
      }
      results.push_back(run_shape(c, device, measuring));
      print_shape(results.back());
      failures += !results.back().error.empty();
      empty_cache(device);
      summaries.ops.resize(done);
      for (const SweptOp& op : ops)
        if (Summary s = summary_of(op.name, device.name(), results); s.shapes > 0) summaries.ops.push_back(std::move(s));
      if (!o.json.empty()) write_json(o.json, contexts, std::vector<Roofline>(contexts.size()), results, summaries);  // also what a crash leaves
    }
  }
  print_summaries(summaries.ops, results);
  const int losses = o.compare.empty() ? 0 : compare_with(o.compare, results);
  fmt::print("\n{} shapes, {} failed\n", results.size(), failures);
  return failures > 0 || losses > 0 ? 1 : 0;
}

}  // namespace clutch::bench
