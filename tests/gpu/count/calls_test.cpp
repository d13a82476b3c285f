// SPDX-License-Identifier: Apache-2.0
// Calls of stated shapes for scripts/gpu-cost --calls. On the stub driver (STUB_PLANS) each is made at its shape, so that its launches are written; on Oclgrind
// at two small sizes of the same work for each item or trip, which the plugin counts. Labels: "call", name, and the amount of work, which is in a unit of the
// call's own: counts of a launch are taken as a number for each group and a number for each unit of work.
#include "support/fixture.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <functional>

namespace clutch::testing { namespace {

using Call = std::function<void()>;

bool counted() { return std::getenv("GPU_COUNT_FILE") != nullptr; }

struct Stated {
  std::string name;
  /// Work and operands at a size; operands are made outside of what is counted.
  std::function<double(std::int64_t)> work;
  std::function<Call(std::int64_t)> prepare;
  std::int64_t size;
  std::vector<std::int64_t> small;
};

std::vector<Stated> stated_calls(const Device& d) {
  auto make = [&d](const Dims& sizes) { return zeros(sizes, {.device = d}); };
  auto one = [](std::int64_t n) { return static_cast<double>(n); };
  std::vector<Stated> calls;
  calls.push_back({"addcdiv 2^24",
                   one,
                   [=](std::int64_t n) -> Call {
                     const Tensor x = make({n}), out = make({n});
                     return [=] { addcdiv_out(out, x, x, x); };
                   },
                   1 << 24,
                   {1 << 17, 1 << 18}});
  calls.push_back({"randn 2^24",
                   one,
                   [=](std::int64_t n) -> Call {
                     if (counted()) randn({1}, {.device = d});  // the first of a process seeds the generator
                     return [=] { randn({n}, {.device = d}); };
                   },
                   1 << 24,
                   {1 << 17, 1 << 18}});
  calls.push_back({"AdamW 2^24",
                   one,
                   [=](std::int64_t n) -> Call {
                     const std::vector<Tensor> p{make({n})}, g{make({n})};
                     const auto adamw = std::make_shared<optim::AdamW>(p, optim::AdamWOptions{.lr = 1e-3});
                     if (counted()) adamw->step(g);  // makes its state; a plan of the same launch would not be written again
                     return [=] { adamw->step(g); };
                   },
                   1 << 24,
                   {1 << 17, 1 << 18}});
  // A row takes the same at each number of rows.
  calls.push_back({"sum, 16384 rows of 1024",
                   one,
                   [=](std::int64_t rows) -> Call {
                     const Tensor x = make({rows, 1024});
                     return [=] { sum(x, {.dims = {1}}); };
                   },
                   16384,
                   {32, 64}});
  calls.push_back({"softmax, 16384 x 1024",
                   one,
                   [=](std::int64_t rows) -> Call {
                     const Tensor x = make({rows, 1024});
                     return [=] { nn::softmax(x); };
                   },
                   16384,
                   {32, 64}});
  // A group is a tile of the result, of 64 x 64. Small products are one tile, and k grows. Larger products, whose tiles are of 128 x 128, take the simulator
  // minutes.
  auto is_small = [](std::int64_t k) { return k < 1024; };
  auto rows = [=](std::int64_t k) { return is_small(k) ? 64 : k; };
  calls.push_back({"matmul 1024",
                   [=](std::int64_t k) { return static_cast<double>(rows(k) * rows(k) * k); },
                   [=](std::int64_t k) -> Call {
                     const Tensor a = make({rows(k), k}), b = make({k, rows(k)});
                     return [=] { linalg::matmul(a, b); };
                   },
                   1024,
                   {32, 64}});
  return calls;
}

TEST(CountCalls, OfStatedShapes) {
  const Device& device = test_devices().front();
  ASSERT_TRUE(counted() || std::getenv("STUB_PLANS")) << "scripts/gpu-cost --calls sets one of them";
  for (const Stated& call : stated_calls(device)) {
    for (const std::int64_t size : counted() ? call.small : std::vector<std::int64_t>{call.size}) {
      const Call run = call.prepare(size);
      synchronize(device);
      const Cost before = enqueued_cost();
      const char* label = counted() ? "GPU_COUNT_LABEL" : "STUB_LABEL";
      const auto text = [&](const Cost& cost) { return fmt::format("call/{}/{}/{}/{}", call.name, call.work(size), cost.flops, cost.bytes); };
      setenv(label, text({}).c_str(), 1);
      EXPECT_NO_THROW((run(), synchronize(device))) << call.name;
      unsetenv(label);
      if (!counted()) fmt::print("cost\t{}\n", text(enqueued_cost() - before));
    }
  }
}

}}  // namespace clutch::testing
