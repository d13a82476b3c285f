// SPDX-License-Identifier: Apache-2.0
#include "harness/bench.hpp"
#include "harness/filter.hpp"
#include "harness/json_input.hpp"
#include "harness/sweep.hpp"
#include "peers/blas.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <regex>
#include <utility>

namespace clutch::bench { namespace {

struct Options {
  std::string filter, device, json, html, picture, from, compare, trace;
  bool profile = false, list = false, quick = false, sweep = false, strict = false, fresh = false, no_cold = false;
  std::vector<std::string> shapes;
  std::optional<std::int64_t> random;
  std::optional<std::uint64_t> seed;
  std::optional<double> seconds, memory;
};

/// Rows by name if a filter is given (any row, swept ones too), else the default or quick ones.
std::vector<Row> choose(const Rows& all, const Options& o) {
  auto in_set = [&](const Row& row) { return o.sweep || (o.quick ? row.in_quick : row.in_default); };
  std::vector<Row> chosen;
  if (o.filter.empty()) {
    for (const Row& row : all)
      if (in_set(row)) chosen.push_back(row);
    return chosen;
  }
  const std::regex pattern = filter_pattern(o.filter);
  std::vector<Row> others;
  for (const Row& row : all)
    if (std::regex_search(row.name, pattern)) (in_set(row) ? chosen : others).push_back(row);
  if (chosen.empty()) chosen = others;  // a swept row asked for by name
  if (chosen.empty()) throw Error(ErrorCode::invalid_argument, "clutch-bench", fmt::format("--filter '{}' matches no row; --list shows them", o.filter));
  return chosen;
}

void judge(Result& r, RooflineMeter& meter) {
  double time = r.measured.hot.median;
  if (time <= 0) return;
  r.gbps = r.row.bytes / time * 1e-9;
  r.gflops = r.row.flops / time * 1e-9;
  if (r.row.bytes <= 0) return;
  auto percent = [&](bool again) {
    double allowed = r.row.bytes / meter.bandwidth(r.row.reads_only ? "read" : "triad", r.row.bytes, again);
    for (const PeerTiming& peer : r.measured.peers)  // the same kernel measured in this row's own pairs is nearer in time
      if (peer.name == (r.row.reads_only ? "read" : "triad")) allowed = peer.ratio * time;
    std::string dtype = r.row.name.find("/f64/") != std::string::npos ? "f64" : "f32";
    if (r.row.flops > 0 && meter.peak(dtype) > 0) allowed = std::max(allowed, r.row.flops / meter.peak(dtype));
    return 100 * allowed / time;
  };
  r.roofline_pct = percent(false);
  if (*r.roofline_pct > 100) r.roofline_pct = percent(true);
  if (*r.roofline_pct > 100) r.doubts.push_back(fmt::format("{:.0f} % of its roofline", *r.roofline_pct));
}

/// The device's own clock must tell what the host's tells.
void check_clock(Result& r, const Work& work, const Device& device) {
  constexpr double kMost = 0.2;
  for (int attempt = 0; attempt < 2; ++attempt) {
    r.device_clock_ratio = device_clock_ratio(work, device);
    if (!r.device_clock_ratio || std::fabs(*r.device_clock_ratio - 1) <= kMost) return;
  }
  r.doubts.push_back(fmt::format("device events tell {:.2f} of the host's time", *r.device_clock_ratio));
}

Result run_row(const Row& row, const Device& device, const MeasureOptions& measuring, RooflineMeter& meter) {
  Result result{.row = row, .device = device.name()};
  result.row.bytes = std::max(row.bytes, 0.0);
  try {
    Work work = row.prepare(device);
    if (work.run) {
      work.run(1);  // may prepare what later calls have
      const Cost before = enqueued_cost();
      work.run(1);
      const Cost cost = enqueued_cost() - before;
      result.plan = last_plan();
      if (row.bytes == kStated) result.row.bytes = cost.bytes;
      if (row.flops == 0) {
        const double stated = cost.flops;
        result.row.flops = stated * row.visited;
        if (row.visited < 1) result.row.dense_flops = stated;
      }
    }
    if (work.check) {
      std::string wrong = work.check();
      if (!wrong.empty()) throw Error(ErrorCode::internal, row.name, "the result is wrong: " + wrong);
      result.checked = true;
    }
    result.measured = measure(work, device, measuring);
    judge(result, meter);
    if (!result.doubts.empty()) {  // once more: a noisy neighbour can slow the roofline or the row
      result.doubts.clear();
      result.measured = measure(work, device, measuring);
      judge(result, meter);
    }
    check_clock(result, work, device);
    result.suspect = !result.doubts.empty();
  } catch (const std::exception& e) {
    result.error = e.what();
  }
  return result;
}

/// Prints where a few calls of a row spend their time; with `trace`, writes them to a file whose name the row's is put into.
void profile_row(const Row& row, const Device& device, const std::string& trace) {
  const Work work = row.prepare(device);
  if (!work.run) {
    fmt::print("{}: no calls to profile\n", row.name);
    return;
  }
  work.run(2);
  profiler::Profiler profiler({.profile_memory = true});
  profiler.start();
  {
    const profiler::Range range(row.name);
    work.run(10);
  }
  profiler.stop();
  fmt::print("\n{}: 10 calls\n{}", row.name, profiler.table());
  if (trace.empty()) return;
  std::string name = row.name;
  std::replace(name.begin(), name.end(), '/', '_');
  const std::size_t dot = std::min(trace.find('.', trace.rfind('/') == std::string::npos ? 0 : trace.rfind('/')), trace.size());
  const std::string path = fmt::format("{}.{}{}", trace.substr(0, dot), name, trace.substr(dot));
  if (path.ends_with(".html"))
    profiler.export_html(path);
  else
    profiler.export_chrome_trace(path);
}

int pairs_of_setting() {
  for (const auto& setting : settings())
    if (setting.name == "CLUTCH_BENCH_PAIRS") return std::atoi(setting.value.c_str());
  return 0;
}

[[noreturn]] void refuse(const std::string& text) { throw Error(ErrorCode::invalid_argument, "clutch-bench", text); }

bool asks_for_shapes(const Options& o) { return o.random || o.seed || o.seconds || o.memory || !o.shapes.empty(); }

/// Random shapes, or those of --shape, instead of rows.
int run_shapes(const Options& o) {
  if (!o.sweep) refuse("--random, --seed, --shape, --seconds and --memory must come with --sweep, got them without");
  if (!o.random && o.shapes.empty()) refuse("--sweep must come with --random or --shape where --seed, --seconds or --memory is given, got neither");
  if (o.random && !o.shapes.empty()) refuse("--random and --shape must come alone, got both");
  if (!o.random && (o.seed || !o.filter.empty())) refuse("--seed and --filter must come with --random, got --shape");
  constexpr std::int64_t kMostShapes = 100000;
  if (o.random && (*o.random < 1 || *o.random > kMostShapes)) refuse(fmt::format("--random must be from 1 to {}, got {}", kMostShapes, *o.random));
  auto check = [](const char* name, std::optional<double> value, double least, double most) {
    if (value && !(*value >= least && *value <= most)) refuse(fmt::format("{} must be from {} to {}, got {}", name, least, most, *value));
  };
  check("--seconds", o.seconds, 0.01, 3600);
  check("--memory", o.memory, 1, 1 << 20);
  const std::pair<const char*, bool> others[] = {{"--html", !o.html.empty()},   {"--picture", !o.picture.empty()}, {"--from", !o.from.empty()},
                                                 {"--trace", !o.trace.empty()}, {"--profile", o.profile},          {"--quick", o.quick},
                                                 {"--strict", o.strict},        {"--fresh-roofline", o.fresh}};
  for (const auto& [name, is_given] : others)
    if (is_given) refuse(fmt::format("{} must come without --random and --shape, got both", name));
  SweepOptions sweep{.filter = o.filter,
                     .shapes = o.shapes,
                     .count = static_cast<int>(o.random.value_or(0)),
                     .pairs = pairs_of_setting(),
                     .json = o.json,
                     .compare = o.compare,
                     .list = o.list};
  sweep.git_hash = CLUTCH_GIT_HASH;
  if (o.seed) sweep.seed = *o.seed;
  if (o.seconds) sweep.seconds = *o.seconds;
  if (o.memory) sweep.mebibytes = *o.memory;
  if (o.list) return run_sweep(sweep, {});
  return run_sweep(sweep, o.device.empty() ? std::vector<Device>{default_device()} : select_devices(o.device));
}

int run(const Options& o) {
  if (asks_for_shapes(o)) return run_shapes(o);
  if (!o.from.empty()) {
    if (o.picture.empty()) throw Error(ErrorCode::invalid_argument, "clutch-bench", "--from must come with --picture, got it alone");
    const Shown shown = parse_shown(read_file(o.from));
    write_picture(o.picture, shown.context, shown.results);
    return 0;
  }
  Rows all;
  register_all(all);
  if (o.list) {
    for (const Row& row : all) fmt::print("{}{}\n", row.name, row.in_quick ? "  (quick)" : row.in_default ? "" : "  (sweep)");
    return 0;
  }
  std::vector<Row> rows = choose(all, o);
  std::vector<Device> chosen = o.device.empty() ? std::vector<Device>{default_device()} : select_devices(o.device);
  const MeasureOptions measuring{.seconds = o.quick ? 0.3 : 1.0, .pairs = pairs_of_setting(), .cold = !o.no_cold};
  std::vector<Context> contexts;
  std::vector<Roofline> rooflines;
  std::vector<Result> results;
  int failures = 0, suspects = 0;
  std::time_t now = std::time(nullptr);
  for (const Device& device : chosen) {
    DeviceGuard guard(device);
    RooflineMeter meter(device, o.fresh);
    Context context{device.name(), device.driver_version(), device.platform(), CLUTCH_GIT_HASH, fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now))};
    print_header(context, meter.all());
    contexts.push_back(context);
    rooflines.push_back(meter.all());
    for (const Row& row : rows) {
      if (std::string lacks = row.lacks ? row.lacks(device) : std::string(); !lacks.empty()) {
        fmt::print("{:<34} skipped: the device has no {}\n", row.name, lacks);
        continue;
      }
      results.push_back(run_row(row, device, measuring, meter));
      print_result(results.back());
      failures += !results.back().error.empty();
      suspects += results.back().suspect;
      empty_cache(device);
      rooflines.back() = meter.all();
      if (!o.json.empty()) write_json(o.json, contexts, rooflines, results);  // also what a crash leaves
      if (!o.html.empty()) write_html(o.html, contexts, rooflines, results);
    }
    suspects += static_cast<int>(meter.all().suspect.size());
    meter.save();
    if (o.profile || !o.trace.empty())
      for (const Row& row : rows)
        if (!row.lacks || row.lacks(device).empty()) profile_row(row, device, o.trace);
  }
  if (!o.picture.empty()) write_picture(o.picture, contexts.at(0), results);
  int losses = o.compare.empty() ? 0 : compare_with(o.compare, results);
  fmt::print("\n{} rows, {} failed, {} suspect\n", results.size(), failures, suspects);
  if (failures > 0 || losses > 0) return 1;
  return o.strict && suspects > 0 ? 1 : 0;
}

}}  // namespace clutch::bench

namespace {
int command(int argc, char** argv) {
  // Peers must wait passively; OpenBLAS takes CPUs newer than itself for old ones; PoCL's threads, woken by one another, else share a core for
  // milliseconds while others idle. These libraries read this before main().
  bool again = false;
  auto set = [&](const char* name, const char* value) {
    if (!value || std::getenv(name)) return;
    ::setenv(name, value, 1);
    again = true;
  };
  set("OMP_WAIT_POLICY", "passive");
  set("POCL_AFFINITY", "1");
  set("OPENBLAS_CORETYPE", clutch::bench::blas::better_core());
  if (again) ::execv("/proc/self/exe", argv);
  clutch::bench::Options o;
  std::string probe;
  CLI::App app{"Measures clutch's kernels on OpenCL devices, against peers and against the device's own roofline."};
  app.add_option("--filter", o.filter,
                 "rows whose full name this regular expression finds (swept sizes with --sweep, or when no other row matches); no match is an error");
  app.add_option("--device", o.device, "selector of the devices, as CLUTCH_DEVICE; default: the default device");
  app.add_option("--json", o.json, "write results to this file, in Google Benchmark's schema");
  app.add_option("--html", o.html, "write a report to this file: one page that needs nothing else");
  app.add_option("--picture", o.picture, "write the bars beside peers to this file, an SVG of the first device's rows");
  app.add_option("--from", o.from, "with --picture: draw the rows of this earlier --json file and measure nothing");
  app.add_option("--compare", o.compare, "compare with an earlier --json file; fails only on significant loss");
  app.add_flag("--profile", o.profile, "print where a few calls of each row spend their time: ops, kernels and their share of the roof");
  app.add_option("--trace", o.trace, "the same, and write a trace of each row to this file (.json, .json.gz, .html), whose name the row's is put into");
  app.add_flag("--list", o.list, "list the rows");
  app.add_flag("--quick", o.quick, "a few rows, short");
  app.add_flag("--sweep", o.sweep, "every size of every row");
  app.add_option("--random", o.random, "with --sweep: as many random shapes of each op instead of rows; --filter finds shapes by their text");
  app.add_option("--seed", o.seed, "with --random: draws other shapes; default 1");
  app.add_option("--shape", o.shapes, "with --sweep: this shape, by its text, as --random prints it; may be given several times");
  app.add_option("--seconds", o.seconds, "with --random or --shape: time for each peer of a shape, of which a call takes at most a tenth; default 0.3");
  app.add_option("--memory", o.memory, "with --random or --shape: most MiB that a shape's operands take; default 512");
  app.add_flag("--strict", o.strict, "fail when a figure stays suspect");
  app.add_flag("--fresh-roofline", o.fresh, "measure the device's roofline again");
  app.add_flag("--no-cold", o.no_cold, "do not measure with cold caches");
  app.add_option("--startup-probe", probe, "internal: time the first result of this process")->group("");
  CLI11_PARSE(app, argc, argv);
  return probe.empty() ? clutch::bench::run(o) : clutch::bench::startup_probe(probe);
}
}  // namespace

int main(int argc, char** argv) {
  try {
    return command(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "clutch-bench: {}\n", e.what());
    return 2;
  }
}
