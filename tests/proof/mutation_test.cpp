// SPDX-License-Identifier: Apache-2.0
// The checks are checked: every edit in an op's list builds and makes a problem of its entry give a wrong result.
#include "support/mutation.hpp"
#include "program/kernel_table.hpp"
#include "support/op_runner.hpp"

#include <gtest/gtest-spi.h>

#include <fmt/format.h>

#include <set>

namespace clutch::testing { namespace {

using cases::Edit;
using cases::Mutation;

std::string_view name(Edit edit) {
  constexpr std::string_view kNames[] = {"tail", "stride", "offset", "arithmetic"};
  return kNames[static_cast<std::size_t>(edit)];
}

/// What the entry's problems complain of with the edit in place; "" if nothing, "!..." if it did not come to a result.
std::string found_by_problems(const Device& device, const Mutation& mutation) {
  ForeignContext context(device);
  detail::SourceMutation edit(mutation.from, mutation.to, fmt::format("#ifdef CLUTCH_ENTRY_{}\n", mutation.entry));
  ::testing::TestPartResultArray canaries;
  std::string wrong;
  {
    ::testing::ScopedFakeTestPartResultReporter quiet(::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &canaries);
    wrong = context.run([&](const Stream&) -> std::string {
      for (const NamedProblem& p : all_problems()) {
        if (p.problem->entry != mutation.entry || (p.problem->needs_fp64 && !device.traits().fp64)) continue;
        try {
          if (std::string found = run_once(device, *p.problem); !found.empty()) return found;
        } catch (const Error& e) {
          return fmt::format("!{}", e.what());
        }
      }
      return {};
    });
  }
  if (edit.applied() == 0) return "!the text to replace is not there" + (wrong.empty() ? "" : "; " + wrong);
  if (wrong.empty() && canaries.size() > 0) wrong = canaries.GetTestPartResult(0).message();
  return wrong;
}

TEST(Mutations, EveryEntryHasATailAStrideAnOffsetAndAnArithmeticEdit) {
  for (const cases::OpRow& row : cases::op_rows()) {
    std::set<std::pair<std::string, Edit>> have;
    for (const Mutation& m : row.mutations) have.insert({std::string(m.entry), m.edit});
    for (const detail::KernelText& text : detail::kernel_table()) {
      if (text.stem != row.stem) continue;
      for (std::string_view entry : text.entries)
        for (Edit edit : {Edit::tail, Edit::stride, Edit::offset, Edit::arithmetic})
          EXPECT_TRUE(have.contains({std::string(entry), edit})) << "tests/cases/" << row.stem << ".hpp lacks a mutation: " << entry << ' ' << name(edit);
    }
  }
}

/// By day most mutations are not built: a kernel's edit must not leave one without its text.
TEST(Mutations, EachEditsATextThatIsThere) {
  for (const cases::OpRow& row : cases::op_rows())
    for (const Mutation& m : row.mutations) {
      const detail::KernelText& kernel = detail::find_kernel_text(row.stem, m.entry);
      if (m.from.starts_with("VF v") && kernel.text.find("expression.clh") != std::string_view::npos) continue;  // of a lambda's text, which is printed later
      EXPECT_NE(kernel.text.find(m.from), std::string_view::npos)
          << "tests/cases/" << row.stem << ".hpp: " << m.entry << ", " << name(m.edit) << ": " << m.from;
      EXPECT_NE(m.from, m.to) << m.entry;
    }
}

TEST(Mutations, EachMakesItsOpsTestsFailByAWrongResult) {
  const Device& device = test_devices().front();
  // Other drivers may take other paths, or die of an edit.
  if (skip_without(device, "PoCL", device.platform() == "Portable Computing Language")) return;
  int all = 0;
  for (const cases::OpRow& row : cases::op_rows())
    for (const Mutation& m : row.mutations) {
      // Each is a program to build: by day one of eight, of the next eight another.
      const int turn = all++;
      if (!proves(m.entry) || (tested_entries().empty() && level() == "smoke" && turn % 8 != turn / 8 % 8)) continue;
      std::string found = found_by_problems(device, m);
      EXPECT_FALSE(found.empty()) << "not noticed: " << m.entry << ", " << name(m.edit) << ": " << m.to;
      EXPECT_FALSE(found.starts_with('!')) << m.entry << ", " << name(m.edit) << ": " << found;
    }
}

}}  // namespace clutch::testing
