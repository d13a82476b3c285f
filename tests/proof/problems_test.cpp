// SPDX-License-Identifier: Apache-2.0
// Every op's small problems, which together run every kernel entry: on each device, on all devices alike, under Oclgrind.
#include "encode/elementwise.hpp"
#include "program/kernel_table.hpp"
#include "program/program.hpp"
#include "support/op_runner.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <set>

namespace clutch::testing { namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// Problems that are tried on a device: all on the first one; by day one of each op on the others and on plugins' devices, under sanitizers and where groups
/// have at most 64 items one of each entry, and on simulators, where a problem takes seconds, one of each of a fifth of the entries, of the next fifth the next
/// day.
class Choice {
 public:
  explicit Choice(const Device& device)
      : first_(device == test_devices().front() && !device.record()->by_plugin),
        slow_(kSanitized || device.traits().simulator || device.traits().max_work_group <= 64),
        turns_(device.traits().simulator && level() == "smoke" && tested_entries().empty() ? 5 : 1) {}
  bool all_entries() const { return turns_ == 1 && (first_ || level() != "smoke"); }
  bool takes(const NamedProblem& problem) {
    if (level() != "smoke" || (first_ && !slow_)) return true;
    if (!seen_.insert(first_ ? std::string(problem.problem->entry) : std::string(problem.stem)).second) return false;
    return static_cast<std::int64_t>(seen_.size()) % turns_ == today() % turns_;
  }

 private:
  bool first_, slow_;
  std::int64_t turns_;
  std::set<std::string> seen_;
};

/// True if the device may refuse what a problem forces for this reason.
bool may_refuse(const Device& device, std::string_view why) {
  const bool emulates = why.find("refuses: needs an exact fma") != std::string_view::npos && !device.traits().fma_exact;
  const bool ends_loops = why.find("(quirk loops_end_early)") != std::string_view::npos && known_bug(device, "loops_end_early");
  const bool lacks_room = why.find("of private memory for each work-item") != std::string_view::npos && detail::row_tuning(device.traits()).local != 1;
  const char* index64 = std::getenv("CLUTCH_INDEX64");
  const bool wide = why.find("entries must be packed") != std::string_view::npos && index64 != nullptr && std::string_view(index64) == "1";
  return emulates || ends_loops || lacks_room || wide || refuses_few_items(device.traits(), why);
}

TEST(Problems, RunEveryEntryAndGiveTheModelsBits) {
  CLUTCH_EACH_DEVICE(device) {
    Choice choice(device);
    // At first use; self_test_dot by clutch-probe, whose process may die of it, self_test_matrix and self_test_exchange where a call allows matrix instructions
    // (tests Matrix.*, FlexMatrix.*), self_test_matrix_speed when clutch-bench measures their limit (tests MatrixRoofs.*). Control flow has no op of its own:
    // its kernels, and tables of small launches, run in graphs and branches (tests Control.*, Tables.*).
    std::set<std::string> ran{"self_test_rounding",     "self_test_args", "self_test_dot", "self_test_matrix", "self_test_exchange",
                              "self_test_matrix_speed", "control_choose", "control_begin", "control_next",     "tiny_table"};
    ASSERT_NO_THROW(detail::tested_traits(*device.record()));
    for (const NamedProblem& p : all_problems()) {
      if (!choice.takes(p)) continue;
      ran.insert(std::string(p.problem->entry));
      if (p.problem->needs_fp64 && skip_without(device, "fp64", device.traits().fp64)) continue;
      try {
        EXPECT_EQ(run_problem(device, *p.problem), "") << p.name;
      } catch (const Error& e) {
        EXPECT_TRUE(may_refuse(device, e.what())) << p.name << ": " << e.what();
      }
    }
    if (!choice.all_entries()) continue;
    for (const detail::KernelText& text : detail::kernel_table())
      for (std::string_view entry : text.entries)
        EXPECT_TRUE(ran.contains(std::string(entry)) || !proves(entry)) << "no problem in tests/cases/" << text.stem << ".hpp runs " << entry;
  }
  // Drivers tell users of warnings on their terminal. Intel's says in its log alone that it leaves a kernel's vectors as they are, as kernels ask it to.
  for (std::string log : detail::build_logs()) {
    constexpr std::string_view kAsked = "Kernel can't be vectorized due to unsupported vec type hint";
    for (std::size_t end; (end = log.find(kAsked)) != std::string::npos;) {
      const std::size_t start = log.rfind('\n', end) + 1;
      log.erase(start, end + kAsked.size() - start);
    }
    EXPECT_EQ(log.find("warning"), std::string::npos) << log;
  }
}

/// Kernels are right for any number of work-groups: here for one, where a problem is made for many.
TEST(Problems, GiveTheModelsBitsInASoftPartitionOfOneUnit) {
  const Device& device = test_devices().front();
  if (device.traits().simulator) return;  // to which a group is as good as another
  const PartitionGuard guard(Partition::create(device, {.units = 1, .soft = true}));
  std::set<std::string_view> seen;
  for (const NamedProblem& p : all_problems()) {
    if (p.problem->needs_fp64 && !device.traits().fp64) continue;
    if (level() == "smoke" && !seen.insert(kSanitized ? p.stem : p.problem->entry).second) continue;
    try {
      EXPECT_EQ(run_once(device, *p.problem), "") << p.name;
    } catch (const Error& e) {
      EXPECT_TRUE(may_refuse(device, e.what())) << p.name << ": " << e.what();
    }
  }
}

/// Else a compiler may put work-items into lanes of vectors of vectors, which takes it ten times as long.
TEST(Problems, KernelsTellCompilersOfTheirVectors) {
  for (const detail::KernelText& text : detail::kernel_table()) {
    const std::string_view source = text.text;
    EXPECT_LT(source.find("vec_type_hint"), source.find("\n__kernel void")) << text.stem;
  }
}

/// Not a test of the library: what Oclgrind must complain about, run by run_oclgrind alone.
TEST(Oclgrind, DISABLED_PlantedDefects) {
  const Device& device = test_devices().front();
  ASSERT_TRUE(device.traits().simulator);
  Tensor out = empty({64}, {.device = device}), never_written = empty({1 << 20}, {.device = device});  // a segment of its own
  Argument arguments[] = {output(out), input(never_written)};
  launch({.text = "__kernel void planted(__global float* out, __global const float* in) {\n"
                  "  size_t i = get_global_id(0);\n"
                  "  if (i < 4) out[i / 2] = (float)i;\n"
                  "  if (i == 4) out[i] = in[i] * 2;\n"
                  "  if (i == 5) out[1 << 28] = 1;\n"
                  "}",
          .entry = "planted"},
         {.global = 64, .local = 8}, arguments);
  synchronize(device);
}

/// Contracts of bits hold across drivers: the first device's results are every device's.
TEST(Differential, AllDevicesGiveTheSameBits) {
  if (skip_without(test_devices().front(), "second device", test_devices().size() > 1)) return;
  std::map<std::string, Choice> choices;
  for (const NamedProblem& p : all_problems()) {
    std::vector<std::uint8_t> first;
    const Device* of = nullptr;
    std::vector<Device> takers;
    for (const Device& device : test_devices())
      if (choices.try_emplace(device.selector(), device).first->second.takes(p)) takers.push_back(device);
    if (takers.size() < 2) continue;  // which Problems.* has run
    for (const Device& device : takers) {
      if (p.problem->needs_fp64 && skip_without(device, "fp64", device.traits().fp64)) continue;
      std::vector<std::uint8_t> now;
      EXPECT_EQ(run_once(device, *p.problem, {}, &now), "") << p.name << " on " << device.name();
      if (!of) first = now, of = &device;
      bool flushes = !device.traits().denormals || !of->traits().denormals;
      EXPECT_EQ(compare_bits(now, first, p.problem->output.dtype, flushes), "") << p.name << " on " << device.name() << " and " << of->name();
    }
  }
}

}}  // namespace clutch::testing
