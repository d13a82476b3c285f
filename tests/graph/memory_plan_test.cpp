// SPDX-License-Identifier: Apache-2.0
#include "graph/memory_plan.hpp"
#include "support/fixture.hpp"

#include <random>

namespace clutch::testing { namespace {

TEST(MemoryPlan, LifetimesThatMeetNeverOverlap) {
  std::mt19937 random(static_cast<unsigned>(seed()));
  for (int round = 0; round < 200; ++round) {
    std::vector<detail::Lifetime> lifetimes;
    std::uint64_t limit = round % 3 == 0 ? 0 : 1 << 16;
    for (unsigned i = 0; i < random() % 60; ++i) {
      int first = static_cast<int>(random() % 50);
      lifetimes.push_back({random() % (1 << 14), first, first + static_cast<int>(random() % 20)});
    }
    std::vector<std::uint64_t> existing;
    if (round % 2) existing = {4096, 512};
    detail::MemoryPlan plan = detail::plan_memory(lifetimes, existing, limit);
    for (std::size_t i = 0; i < lifetimes.size(); ++i) {
      const auto& p = plan.places[i];
      ASSERT_EQ(p.offset % 512, 0u);
      ASSERT_LE(p.offset + lifetimes[i].bytes, plan.segments[static_cast<std::size_t>(p.segment)]);
      for (std::size_t j = 0; j < i; ++j) {
        const auto& q = plan.places[j];
        if (p.segment != q.segment || lifetimes[i].last < lifetimes[j].first || lifetimes[j].last < lifetimes[i].first) continue;
        ASSERT_TRUE(p.offset + lifetimes[i].bytes <= q.offset || q.offset + lifetimes[j].bytes <= p.offset);
      }
    }
    for (std::size_t s = 0; s < plan.segments.size(); ++s) {
      if (s < existing.size()) {
        ASSERT_EQ(plan.segments[s], existing[s]);
      } else if (limit > 0) {
        ASSERT_LE(plan.segments[s], limit);
      }
    }
  }
}

}}  // namespace clutch::testing
