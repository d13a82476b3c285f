// SPDX-License-Identifier: Apache-2.0
// Random programs of the library's ops: every backend of graphs leaves the bits that eager calls leave. Backends with planted errors show that such are found.
#include "graph/fuse.hpp"
#include "graph/tiny.hpp"
#include "runtime/settings.hpp"
#include "support/fixture.hpp"
#include "support/program_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>
#include <stdexcept>

namespace clutch::testing { namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

constexpr std::string_view kPlanted = "planted ";

/// All backends that there are but the planted ones; without "native" where the device has no command buffers.
std::vector<std::string> backends_to_prove(const Device& device) {
  std::vector<std::string> all = graph_backends();
  std::erase_if(all, [](const std::string& name) { return name.starts_with(kPlanted); });
  if (skip_without(device, "command buffers", device.traits().command_buffer > 0)) std::erase(all, "native");
  return all;
}

ProgramOptions options() { return {.wide = level() == "nightly"}; }

/// The program of CLUTCH_TEST_PROGRAM, a seed or a text; nothing if it is empty.
std::optional<Program> asked_program(ProgramRun& run) {
  const std::string& asked = detail::the_settings().test_program.value;
  if (asked.empty()) return std::nullopt;
  if (asked.find_first_not_of("0123456789") == std::string::npos) return make_program(std::stoull(asked), options(), run);
  return parse_program(asked);
}

TEST(RandomPrograms, EveryBackendLeavesTheBitsOfEagerCalls) {
  // As many programs as fit: by day the first ones, by night those of the date, so that nights go through all.
  constexpr int kByNight = 20000, kLeast = 6;
  const bool is_night = level() == "nightly";
  const double most_seconds = is_night ? 1200 : 25;
  const std::uint64_t first = seed() + (is_night ? static_cast<std::uint64_t>(today()) * kByNight : 0);
  CLUTCH_EACH_DEVICE(device) {
    const auto begin = Clock::now();
    const std::vector<std::string> backends = backends_to_prove(device);
    std::map<std::string, int> refused;
    ProgramRun run(device);
    int programs = 0, calls = 0, nodes = 0;
    double told = 0;
    auto check = [&](const Program& program) {
      const ProgramReference reference = run_eagerly(program, device), again = run_eagerly(program, device);
      ASSERT_EQ(difference(again.twice, reference.twice), "") << "two eager runs differ for\n" << program_text(program);
      // Tables of few launches, too; their groups have one item, and in each third program several, as on GPUs.
      detail::table_tuning.least = 2, detail::table_tuning.items = programs % 3 == 2 ? 32 : 0;
      for (const std::string& backend : backends) {
        const ProgramVerdict verdict = check_program(program, device, backend, reference);
        refused[backend] += verdict.verdict == Verdict::refused;
        nodes += verdict.nodes;
        ASSERT_NE(verdict.verdict, Verdict::wrong) << report_failure(program, device, backend, verdict.why);
      }
      ++programs;
      calls += static_cast<int>(program.calls.size());
    };
    if (std::optional<Program> asked = asked_program(run)) {
      fmt::print("{}", program_text(*asked));
      check(*asked);
      continue;
    }
    for (int i = 0; i < kLeast || (i < kByNight && seconds_since(begin) < most_seconds); ++i) {
      const std::uint64_t made_from = first + static_cast<std::uint64_t>(i);
      check(make_program(made_from, options(), run));
      if (HasFatalFailure()) return;
      if (seconds_since(begin) > told + 60) {
        told = seconds_since(begin);
        fmt::print("{} programs, {:.0f} s\n", programs, told);
        std::fflush(stdout);
      }
    }
    fmt::print("{}: seeds {} to {}: {} programs of {:.1f} calls, {:.1f} nodes each on {}, {:.1f} s\n", device.selector(), first,
               first + static_cast<std::uint64_t>(programs) - 1, programs, static_cast<double>(calls) / programs,
               static_cast<double>(nodes) / programs / static_cast<double>(backends.size()), fmt::join(backends, ", "), seconds_since(begin));
    for (const auto& [backend, count] : refused) {
      if (count > 0) fmt::print("{} refuses {} of {} programs\n", backend, count, programs);
      EXPECT_LT(count, programs) << backend << " takes no program, so nothing of it is proven";
    }
  }
}

TEST(RandomPrograms, HaveEveryOpAndEveryKindOfShape) {
  const Device& device = test_devices().front();
  ProgramRun run(device);
  std::map<std::string, int> ops, bodies;
  int streams = 0, empty = 0, single = 0, drops = 0, self = 0, strided = 0, shared = 0, draws = 0;
  std::size_t calls = 0;
  // Programs of neighbouring seeds have some ops and bodies in common, and no others.
  const bool is_night = level() == "nightly";
  const int programs = is_night ? 400 : 16, apart = is_night ? 397 : 1;
  for (int i = 0; i < programs; ++i) {
    Program program = make_program(seed() + static_cast<std::uint64_t>(i) * apart, options(), run);
    std::set<int> streams_used;
    for (const ProgramCall& call : program.calls) {
      ++ops[call.op];
      if (call.op == "map" || call.op == "map_out") ++bodies[call.values.at("body")];
      streams_used.insert(call.stream);
      drops += call.op == "drop";
      draws += call.values.count("generator") > 0;
      strided += call.values.count("strides") > 0;
      if (call.op != "input" && call.op != "drop" && !program_op_views(call.op)) ++calls;
      self += program_op_writes(call.op) && std::count(call.tensors.begin(), call.tensors.end(), call.tensors[0]) > 1;
      auto sizes = call.values.find("sizes");
      if (call.op != "input" || sizes == call.values.end()) continue;
      std::string dims = "," + sizes->second + ",";
      empty += dims.find(",0,") != std::string::npos;
      single += dims.find(",1,") != std::string::npos;
    }
    streams += streams_used.size() > 1;
    for (const ProgramState::Memory& memory : run.state().memory) shared += std::count(memory.what.begin(), memory.what.end(), '%') > 1;
  }
  EXPECT_EQ(calls, static_cast<std::size_t>(20 * programs));
  for (int count : {streams, empty, single, drops, self, strided, shared, draws}) EXPECT_GT(count, programs / 20);
  std::string none;
  for (const std::string& op : program_ops()) none += ops[op] == 0 ? op + " " : "";
  for (const std::string& body : program_bodies()) none += bodies[body] == 0 ? body + " " : "";
  if (is_night) {
    EXPECT_EQ(none, "") << "no program has these";
  }
  EXPECT_GE(program_ops().size(), 40u);
  EXPECT_EQ(program_bodies().size(), 40u) << "which bounds what is built by day";
}

TEST(RandomPrograms, TextIsTheProgram) {
  const Device& device = test_devices().front();
  ProgramRun run(device);
  for (std::uint64_t i = 0; i < 12; ++i) {
    Program program = make_program(seed() + i, {}, run);
    ProgramState made = run.state();
    std::string text = program_text(program);
    EXPECT_EQ(program_text(make_program(seed() + i, {}, run)), text) << "a seed is a program";
    Program parsed = parse_program(text);
    EXPECT_EQ(parsed, program);
    EXPECT_EQ(program_text(parsed), text);
    std::replace(text.begin(), text.end(), '\n', ';');
    EXPECT_EQ(parse_program(text), program);
    EXPECT_EQ(difference(run_eagerly(parsed, device).once, made), "") << "what was made as the program was is what the text gives";
  }
  EXPECT_EQ(parse_program("# nothing\n\n ; ;"), Program{});
  for (auto [text, wrong] : {std::pair{"%0 = input dtype=f32;%1 = nothing %0", "line 2: there is no op 'nothing'"},
                             {"drop %3", "line 1: %3 must be made first"},
                             {"%0 = full;%0 = full", "line 2: %0 must be made once"},
                             {"%0 = full x", "an argument must be"},
                             {"%0 full", "'=' must follow"},
                             {"%0 =", "an op must be named"},
                             {"%a = full", "a tensor must be a number"},
                             {"%0 = full @2", "the stream must be 0 or 1"},
                             {"seed", "one number"},
                             {"seed x", "the seed must be a number"}}) {
    try {
      parse_program(text);
      ADD_FAILURE() << text << " was taken";
    } catch (const std::invalid_argument& e) {
      EXPECT_NE(std::string_view(e.what()).find(wrong), std::string_view::npos) << e.what();
    }
  }
}

TEST(RandomPrograms, DifferencesAreFoundInEveryByte) {
  const Device& device = test_devices().front();
  Program program = parse_program("%0 = input dtype=f32 sizes=2,2 strides=4,1 lead=1 values=5;uniform_ %0 generator=1;%1 = slice %0 dim=0 from=0 to=1");
  ProgramReference reference = run_eagerly(program, device);
  EXPECT_EQ(difference(reference.once, run_eagerly(program, device).once), "");
  EXPECT_NE(difference(reference.twice, reference.once), "");
  ASSERT_EQ(reference.once.memory.size(), 1u);
  for (std::size_t i = 0; i < reference.once.memory[0].bytes.size(); ++i) {
    ProgramState other = reference.once;
    other.memory[0].bytes[i] ^= 0x80;
    EXPECT_NE(difference(other, reference.once).find(fmt::format("byte {} of", i)), std::string::npos);
  }
  // A NaN's sign and payload are nobody's promise; whether a number is one is.
  ProgramState nan = reference.once, other = nan;
  auto put = [](ProgramState& state, std::uint32_t word) { std::memcpy(state.memory[0].bytes.data() + 4, &word, sizeof word); };
  put(nan, 0x7fc00000), put(other, 0xffc00001);
  EXPECT_EQ(difference(other, nan), "");
  put(other, 0x7f800000);
  EXPECT_NE(difference(other, nan), "");
  put(nan, 0), put(other, 0x80000000);
  EXPECT_NE(difference(other, nan), "");
  other = reference.once;
  ++other.generators[1].offset;
  EXPECT_NE(difference(other, reference.once).find("generator 1"), std::string::npos);
  other = reference.once;
  other.memory.pop_back();
  EXPECT_NE(difference(other, reference.once), "");
}

/// Replays nodes by the queue, with one mistake.
class PlantedBackend : public GraphImpl {
 public:
  enum class Mistake : std::uint8_t {
    none,
    skips_a_node,           ///< the third one
    swaps_dependent_nodes,  ///< the first two neighbours of which one depends on the other
    forgets_a_read,         ///< swaps the first two neighbours of which the latter overwrites what the former reads, and nothing else orders them
    runs_a_node_twice,      ///< the last one
    first_replay_alone,     ///< all others do nothing
    throws,
    refuses,  ///< no mistake
  };
  explicit PlantedBackend(Mistake mistake) : mistake_(mistake) {}
  std::string refuses(const GraphProgram&) const override { return mistake_ == Mistake::refuses ? "it refuses all" : ""; }
  void instantiate(const GraphProgram& program) override {
    order_.clear();
    for (int i = 0; i < program.size(); ++i) order_.push_back(i);
    replays_ = 0;
    const std::size_t n = order_.size();
    if (mistake_ == Mistake::skips_a_node && n >= 3) order_.erase(order_.begin() + 2);
    if (mistake_ == Mistake::runs_a_node_twice && n > 0) order_.push_back(order_.back());
    if (mistake_ == Mistake::swaps_dependent_nodes)
      for (std::size_t i = 0; i + 1 < n; ++i) {
        const std::vector<int> before = program.node(order_[i + 1]).dependencies;
        if (std::find(before.begin(), before.end(), order_[i]) == before.end()) continue;
        std::swap(order_[i], order_[i + 1]);
        break;
      }
    if (mistake_ == Mistake::forgets_a_read)
      for (std::size_t i = 0; i + 1 < n; ++i)
        if (overwrites_what_is_read(program.node(order_[i]), program.node(order_[i + 1]))) {
          std::swap(order_[i], order_[i + 1]);
          break;
        }
  }
  void replay(const GraphProgram& program, const Stream& stream) override {
    if (mistake_ == Mistake::throws) throw Error(ErrorCode::opencl, "planted", "the backend must replay, got a mistake");
    if (mistake_ == Mistake::first_replay_alone && replays_++ > 0) return;
    for (int node : order_) program.enqueue(node, stream);
  }
  void reset() override {}

 private:
  static bool overwrites_what_is_read(const GraphNode& former, const GraphNode& latter) {
    bool read = false;
    for (const GraphArgument& b : latter.arguments)
      for (const GraphArgument& a : former.arguments) {
        if (a.buffer < 0 || a.buffer != b.buffer) continue;
        if (a.kind != Argument::Kind::input) return false;
        read = read || b.kind != Argument::Kind::input;
      }
    return read;
  }
  Mistake mistake_;
  std::vector<int> order_;
  int replays_ = 0;
};

std::string planted(PlantedBackend::Mistake mistake) {
  std::string name = fmt::format("{}{}", kPlanted, static_cast<int>(mistake));
  register_graph_backend(name, [mistake] { return std::make_unique<PlantedBackend>(mistake); });
  return name;
}

TEST(RandomPrograms, PlantedMistakesAreFoundAndShrunk) {
  using Mistake = PlantedBackend::Mistake;
  const Device& device = test_devices().front();
  ProgramRun run(device);
  struct Case {
    Mistake mistake;
    std::size_t calls;  ///< that the shrunk program has at most, its inputs among them
  };
  // Calls of one node each: three that must all run, two that depend on each other, one that reads and one that overwrites, one that is not the same twice.
  for (const Case& row : {Case{Mistake::skips_a_node, 5},
                          {Mistake::swaps_dependent_nodes, 4},
                          {Mistake::forgets_a_read, 5},
                          {Mistake::runs_a_node_twice, 3},
                          {Mistake::first_replay_alone, 3},
                          {Mistake::throws, 2}}) {
    const std::string backend = planted(row.mistake);
    SCOPED_TRACE(backend);
    int tried = 0;
    std::optional<Program> found;
    for (; tried < 64 && !found; ++tried)
      if (Program program = make_program(seed() + static_cast<std::uint64_t>(tried), {}, run); fails_on(program, device, backend)) found = program;
    ASSERT_TRUE(found) << "no program of " << tried << " finds it";
    const auto begin = Clock::now();
    int asked = 0;
    Program small = shrink_program(
        *found,
        [&](const Program& p) {
          ++asked;
          return fails_on(p, device, backend);
        },
        device);
    fmt::print("{}: found by program {}, shrunk from {} to {} calls by {} runs, {:.1f} s\n{}", backend, tried, found->calls.size(), small.calls.size(), asked,
               seconds_since(begin), program_text(small));
    EXPECT_LE(small.calls.size(), row.calls);
    EXPECT_TRUE(fails_on(parse_program(program_text(small)), device, backend)) << "its text fails, too";
    EXPECT_FALSE(fails_on(small, device, "host")) << "it is the backend's mistake";
    for (std::size_t i = 0; i < small.calls.size(); ++i) {
      Program less = small;
      less.calls.erase(less.calls.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_FALSE(fails_on(less, device, backend)) << "call " << i << " is not needed";
    }
    std::string report = report_failure(small, device, backend, "it is wrong");
    EXPECT_NE(report.find("CLUTCH_TEST_PROGRAM='seed "), std::string::npos) << report;
    EXPECT_NE(report.find(fmt::format("of seed {}", small.seed)), std::string::npos) << report;
  }
  // A backend without mistakes, and one that refuses, are no failures.
  Program program = make_program(seed(), {}, run);
  EXPECT_FALSE(fails_on(program, device, planted(Mistake::none)));
  EXPECT_EQ(check_program(program, device, planted(Mistake::refuses), run_eagerly(program, device)).verdict, Verdict::refused);
}

TEST(RandomPrograms, FindEachBrokenRuleOfFusion) {
  const Device& device = test_devices().front();
  ProgramRun run(device);
  struct Rule {
    detail::BrokenRule rule = detail::BrokenRule::none;
    explicit Rule(detail::BrokenRule broken) : rule(broken) { detail::broken_rule = rule; }
    ~Rule() { detail::broken_rule = detail::BrokenRule::none; }
  };
  auto finds = [&](detail::BrokenRule rule, const Program& program) {
    const Rule broken(rule);
    return fails_on(program, device, "fused");
  };
  // Few random programs read what others of a launch write by another view.
  const Program views = parse_program(
      "%0 = input dtype=f32 sizes=8,16 strides=16,1 values=5;%1 = slice %0 dim=0 from=0 to=4;%2 = slice %0 dim=0 from=1 to=5;"
      "%3 = unary %1 fn=relu;binary_ %1 %3 fn=mul;%4 = binary %3 %2 fn=add");
  EXPECT_TRUE(finds(detail::BrokenRule::other_views, views));
  EXPECT_FALSE(finds(detail::BrokenRule::none, views));
  for (detail::BrokenRule rule : {detail::BrokenRule::way_around, detail::BrokenRule::seen_result, detail::BrokenRule::table_reads}) {
    int tried = 0;
    bool found = false;
    for (; tried < 40 && !found; ++tried) found = finds(rule, make_program(seed() + static_cast<std::uint64_t>(tried), {}, run));
    fmt::print("rule {}: found by program {}\n", static_cast<int>(rule), tried);
    EXPECT_TRUE(found) << "no program of " << tried << " finds rule " << static_cast<int>(rule);
  }
}

}}  // namespace clutch::testing
