// SPDX-License-Identifier: Apache-2.0
// Every op's small problems on a simulator that says that it is the GPU of STUB_PROFILE, for scripts/gpu-cost: the plugin counts each launch under the
// problem's name, and results must be right. GPU_COUNT_OP: a stem of CLUTCH_OPS, for its problems alone. GPU_COUNT_QUICK: of each entry the first one that is
// not large, else the smallest.
#include "program/kernel_table.hpp"
#include "stub/profile.hpp"
#include "support/op_runner.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <vector>

namespace clutch::testing { namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// Elements of a problem's tensors.
std::int64_t size_of(const NamedProblem& p) {
  std::int64_t sum = numel(p.problem->output.sizes);
  for (const cases::Operand& in : p.problem->inputs) sum += numel(in.sizes);
  return sum;
}
/// Interpreters are slow, and work on a matrix's eigenvalues is n^3.
bool is_large(const NamedProblem& p) { return size_of(p) > (p.stem == "eigh" ? 0 : 2048); }

TEST(CountProblems, OfEveryEntry) {
  ASSERT_TRUE(stub::profile().is_gpu) << "STUB_PROFILE must name a file of tests/stub/profiles";
  const Device& device = test_devices().front();
  ASSERT_EQ(device.name(), stub::profile().text("name"));
  const std::string op = variable("GPU_COUNT_OP");
  const bool quick = !variable("GPU_COUNT_QUICK").empty();
  std::map<std::string_view, std::vector<const NamedProblem*>> of_entry;
  for (const NamedProblem& p : all_problems()) {
    if (!op.empty() && p.stem != op) continue;
    if (p.problem->needs_fp64 && !device.traits().fp64) continue;
    of_entry[p.problem->entry].push_back(&p);
  }
  std::vector<const NamedProblem*> chosen;
  for (const auto& [entry, all] : of_entry) {
    auto first = std::find_if(all.begin(), all.end(), [](const NamedProblem* p) { return !is_large(*p); });
    if (first == all.end())
      first = std::min_element(all.begin(), all.end(), [](const NamedProblem* a, const NamedProblem* b) { return size_of(*a) < size_of(*b); });
    if (quick)
      chosen.push_back(*first);
    else
      chosen.insert(chosen.end(), all.begin(), all.end());
  }
  int ran = 0;
  for (const NamedProblem* one : chosen) {
    const NamedProblem& p = *one;
    setenv("GPU_COUNT_LABEL", p.name.c_str(), 1);
    try {
      const std::string wrong = run_once(device, *p.problem);
      // Matrix instructions are counted, not run.
      EXPECT_TRUE(wrong.empty() || p.problem->by_matrix_instructions) << p.name << ": " << wrong;
      ++ran;
    } catch (const Error& e) {  // what a problem forces may refuse
      EXPECT_NE(std::string_view(e.what()).find("refuses"), std::string_view::npos) << p.name << ": " << e.what();
    }
  }
  EXPECT_GT(ran, 0) << "GPU_COUNT_OP must be an op with kernels, got '" << op << "'";
}

}}  // namespace clutch::testing
