// SPDX-License-Identifier: Apache-2.0
// Calls of stated shapes for scripts/gpu-cost --calls. On the stub driver (STUB_PLANS) each is made at its shape, so that its launches are written; on Oclgrind
// at two small sizes of the same work for each item or trip, which the plugin counts. Labels: "call", name, and the amount of work, which is in a unit of the
// call's own: counts of a launch are taken as a number for each group and a number for each unit of work.
#include "gpu/count/stated_calls.hpp"
#include "support/fixture.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace clutch::testing { namespace {

TEST(CountCalls, OfStatedShapes) {
  const Device& device = test_devices().front();
  ASSERT_TRUE(counted() || std::getenv("STUB_PLANS")) << "scripts/gpu-cost --calls sets one of them";
  for (const Stated& call : stated_calls(device)) {
    if (const char* only = std::getenv("GPU_COUNT_ONLY"); only && call.name.find(only) == std::string::npos) continue;
    for (const std::int64_t size : counted() ? call.small : std::vector<std::int64_t>{call.size}) {
      const std::function<void()> run = call.prepare(size);
      synchronize(device);
      const Cost before = enqueued_cost();
      const char* label = counted() ? "GPU_COUNT_LABEL" : "STUB_LABEL";
      const auto text = [&](const Cost& cost) { return fmt::format("call/{}/{}/{}/{}", call.name, call.work(size), call.useful * cost.flops, cost.bytes); };
      setenv(label, text({}).c_str(), 1);
      EXPECT_NO_THROW((run(), synchronize(device))) << call.name;
      unsetenv(label);
      if (!counted()) fmt::print("cost\t{}\n", text(enqueued_cost() - before));
    }
  }
}

}}  // namespace clutch::testing
