// SPDX-License-Identifier: Apache-2.0
// How much more memory than a network asks for the allocator holds while it trains, beside the model of PyTorch's allocator.
#include "cases/networks.hpp"
#include "runtime/driven_heap.hpp"
#include "support/fixture.hpp"

#include "runtime/allocator_config.hpp"
#include "runtime/pool.hpp"
#include "runtime/runtime.hpp"

#include <algorithm>
#include <set>
#include <vector>

namespace clutch::testing { namespace {

using clutch_memory::Replayed, clutch_memory::Segments, clutch_memory::TraceStep;

/// Most that a setting which keeps memory in one piece may hold of what is asked for.
constexpr double kMost = 1.10;

/// Steps of training one transformer, on sequences of each of the lengths in turn.
void train(const Device& device, const std::vector<std::int64_t>& lengths) {
  const cases::TransformerSize size{.batch = 8, .time = *std::max_element(lengths.begin(), lengths.end()), .width = 256, .heads = 4};
  const cases::TransformerBlock whole(device, size);
  std::vector<cases::TransformerBlock> nets;
  for (std::int64_t time : lengths) {
    cases::TransformerBlock& net =
        nets.emplace_back(device, cases::TransformerSize{.batch = size.batch, .time = time, .width = size.width, .heads = size.heads});
    net.params = whole.params;
    net.params["places"] = whole["places"].slice(0, 0, time);
  }
  optim::AdamW adamw(whole.param_list(), {.lr = 1e-3});
  for (int step = 0; step < 2; ++step)
    for (cases::TransformerBlock& net : nets) {
      net.loss_and_grads();
      Tensor places = full({size.time, size.width}, 0, {.device = device});
      copy_(places.slice(0, 0, net.size.time), net.grads.at("places"));
      net.grads["places"] = places;
      adamw.step(net.grad_list());
      net.grads.clear();
    }
  synchronize(device);
}

struct Trained {
  double fragmentation = 0;  ///< of the pool, by its counters
  bool grows = false;
  std::vector<TraceStep> steps;  ///< of the pool
};
Trained trained(const Device& device, const char* settings, const std::vector<std::int64_t>& lengths) {
  set_allocator_settings(settings);
  synchronize(device);
  empty_cache(device);
  Trained result;
  MemPool pool;
  record_memory_history({.clear_history = true});
  {
    const PoolGuard guard(pool);
    train(device, lengths);
  }
  stop_memory_history();
  const auto stats = memory_stats(pool.id(), device);
  result.fragmentation = static_cast<double>(stats.at("reserved_bytes.all.peak")) / static_cast<double>(stats.at("requested_bytes.all.peak"));
  const MemorySnapshot snapshot = memory_snapshot();
  for (const MemorySegment& segment : snapshot.segments) result.grows = result.grows || (segment.pool == pool.id() && segment.is_expandable);
  std::set<std::uint64_t> own;
  for (const TraceStep& step : clutch_memory::steps_of(snapshot, static_cast<std::size_t>(device.index()))) {
    if (step.kind == TraceStep::Kind::alloc && step.pool == pool.id()) own.insert(step.block);
    if (step.kind != TraceStep::Kind::unused && own.contains(step.block)) result.steps.push_back(step);
  }
  set_allocator_settings("");
  return result;
}

void check_training(const std::vector<std::int64_t>& lengths) {
  CLUTCH_EACH_DEVICE(device) {
    train(device, lengths);  // what is made once is there
    const Trained plain = trained(device, "expandable_segments:False", lengths), growing = trained(device, "", lengths);
    const TorchAllocatorModel torch = modelled(plain.steps);
    const double torchs = static_cast<double>(torch.reserved_peak) / static_cast<double>(torch.requested_peak);
    ::testing::Test::RecordProperty("torch", std::to_string(torchs));
    ::testing::Test::RecordProperty("plain", std::to_string(plain.fragmentation));
    ::testing::Test::RecordProperty("growing", std::to_string(growing.fragmentation));
    EXPECT_LE(plain.fragmentation, torchs) << "by PyTorch's rules and settings";
    EXPECT_FALSE(plain.grows) << "expandable_segments:False";
    EXPECT_EQ(growing.grows, &detail::runtime_for(device).pool().limit() == detail::MemoryLimit::of_host().get()) << "the default where clutch maps segments";
    if (growing.grows) {
      EXPECT_LE(growing.fragmentation, kMost) << "by default";
      EXPECT_LE(growing.fragmentation, torchs);
    }
    // The same allocations on devices whose segments grow, whatever this one's do.
    const Replayed replayed = clutch_memory::replay(plain.steps, detail::parse_allocator_settings(""), {.page = 4096, .reservable = 4ull << 30});
    EXPECT_LE(replayed.fragmentation(), kMost);
    EXPECT_EQ(replayed.requested_peak, torch.requested_peak);
  }
}

TEST(Fragmentation, OfATransformersTrainingIsBounded) { check_training({256}); }
TEST(Fragmentation, OfTrainingOnVaryingLengthsIsBounded) { check_training({96, 256, 160, 224, 128, 192}); }

}}  // namespace clutch::testing
