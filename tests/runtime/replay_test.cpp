// SPDX-License-Identifier: Apache-2.0
// Recorded histories, made again: by heaps that wrote them, by the model of PyTorch's allocator, and one of allocations that PyTorch made.
#include "runtime/driven_heap.hpp"

#include "runtime/memory_report.hpp"
#include "runtime/pickle.hpp"
#include "support/fixture.hpp"
#include "support/system.hpp"
#include "tools/memory_replay.hpp"

#include <algorithm>
#include <random>
#include <span>

namespace clutch::testing { namespace {

using clutch_memory::Replayed, clutch_memory::Segments, clutch_memory::TraceStep, detail::Block;

constexpr std::uint64_t kMiB = 1 << 20;

MemorySnapshot read_back(const std::string& pickle) { return clutch_memory::snapshot_of(detail::read_pickle(std::as_bytes(std::span(pickle)), "test")); }

Replayed replay(const std::vector<TraceStep>& steps, const char* settings, const Segments& from) {
  return clutch_memory::replay(steps, detail::parse_allocator_settings(settings), from);
}

/// A random program of streams and pools, and what its heap recorded.
struct Recorded {
  MemorySnapshot snapshot;
  std::uint64_t requested_peak = 0, reserved_peak = 0, segments = 0;
};
Recorded record(std::uint64_t program, const char* text, std::uint64_t page, std::uint64_t reservable) {
  std::mt19937_64 random(seed() + program);
  Driven ours(detail::parse_allocator_settings(text), page, reservable);
  ours.heap().history().begin({});
  std::vector<std::pair<PoolId, Block*>> live;
  for (int step = 0; step < 800; ++step) {
    const std::uint64_t what = random() % 100;
    const PoolId pool{0, random() % 3};
    if (what < 55 || live.empty()) {
      const std::uint64_t bytes = random() % (random() % 3 == 0 ? 14 * kMiB : 300000);
      live.emplace_back(pool, ours.malloc(bytes, 1 + random() % 2, pool));
    } else if (what < 98 || pool == PoolId{}) {
      std::swap(live[random() % live.size()], live.back());
      ours.free(live.back().second);
      live.pop_back();
    } else {
      std::erase_if(live, [&](const auto& row) { return row.first == pool && (ours.free(row.second), true); });
      ours.end_pool(pool);
    }
  }
  Recorded recorded;
  ours.heap().snapshot(0, recorded.snapshot.segments);
  recorded.snapshot.device_traces.push_back(ours.heap().history().entries());
  const detail::MemoryCounters& c = ours.heap().counters();
  recorded.requested_peak = c.requested_bytes.all.peak;
  recorded.reserved_peak = c.reserved_bytes.all.peak;
  recorded.segments = c.device_allocs;
  return recorded;
}

TEST(Replay, TheSameSettingsGiveWhatWasRecorded) {
  for (std::uint64_t program = 0; program < 6; ++program) {
    SCOPED_TRACE(::testing::Message() << "CLUTCH_TEST_SEED=" << seed() << ", program " << program);
    const bool grows = program % 3 == 2;
    const char* settings = grows ? "expandable_segments:True" : "";
    const Segments from{.page = program % 3 == 0 ? 0u : 4096u, .reservable = grows ? 512 * kMiB : 0};
    const Recorded recorded = record(program, settings, from.page, from.reservable);
    const MemorySnapshot snapshot = read_back(detail::pickle_of(recorded.snapshot));
    std::vector<TraceStep> steps = clutch_memory::steps_of(snapshot, 0);
    const auto ends = std::count_if(steps.begin(), steps.end(), [](const TraceStep& step) { return step.kind == TraceStep::Kind::unused; });
    EXPECT_GT(ends, 0) << "pools end";
    const Replayed again = replay(steps, settings, from);
    EXPECT_EQ(again.requested_peak, recorded.requested_peak);
    EXPECT_EQ(again.reserved_peak, recorded.reserved_peak);
    EXPECT_EQ(again.segments, recorded.segments);
    EXPECT_EQ(again.failed, 0u);
    for (TraceStep& step : steps) step.pool = {};
    EXPECT_LT(replay(steps, settings, from).segments, recorded.segments) << "pools that are one share segments";
  }
}

/// A pickle of one block in each of two segments, whose pools the segments name, and the entries of the trace by `key`, if there is one.
std::string two_pools(const char* key) {
  detail::PickleWriter w;
  auto number = [&](const char* name, std::uint64_t value) { w.text(name), w.integer(value); };
  auto pool = [&](const char* name, std::uint64_t id) { w.text(name), w.begin_tuple(), w.integer(std::uint64_t{0}), w.integer(id), w.end_tuple(); };
  w.begin_dict();
  w.text("segments");
  w.begin_list();
  for (std::uint64_t id : {0u, 7u}) {
    w.begin_dict();
    number("device", 0), number("address", (100 + id) * kMiB), number("total_size", 2 * kMiB), number("stream", 0);
    pool("segment_pool_id", id);
    w.text("blocks"), w.begin_list(), w.end_list();
    w.end_dict();
  }
  w.end_list();
  w.text("device_traces");
  w.begin_list();
  w.begin_list();
  for (std::uint64_t id : {0u, 7u}) {
    w.begin_dict();
    w.text("action"), w.text("alloc");
    number("addr", (100 + id) * kMiB + 512), number("size", 1000), number("stream", 0);
    if (key) pool(key, id + 1);
    w.end_dict();
  }
  w.end_list();
  w.end_list();
  w.end_dict();
  return w.finish();
}

TEST(Replay, PoolsAreThoseThatEntriesOrSegmentsName) {
  for (const char* key : {"segment_pool_id", "pool_id", static_cast<const char*>(nullptr)}) {
    const std::vector<TraceStep> steps = clutch_memory::steps_of(read_back(two_pools(key)), 0);
    ASSERT_EQ(steps.size(), 2u);
    EXPECT_EQ(steps[0].pool, (PoolId{0, key ? 1u : 0u}));
    EXPECT_EQ(steps[1].pool, (PoolId{0, key ? 8u : 7u}));
    EXPECT_EQ(replay(steps, "", {}).segments, 2u);
  }
}

/// As Python's pickler does; PyTorch's viewer takes those of a batch as the arguments of one call, of which engines allow some 100,000.
TEST(Replay, ListsGoInBatches) {
  detail::PickleWriter w;
  w.begin_list();
  for (std::uint64_t i = 0; i < 2500; ++i) {
    w.begin_list(), w.integer(i), w.integer(i), w.end_list();
  }
  w.end_list();
  const std::string text = w.finish();
  std::size_t batches = 0;
  for (std::size_t at = 0; (at = text.find("ee(", at)) != std::string::npos; ++at) ++batches;  // the end of an element and of a batch
  EXPECT_EQ(batches, 2u);
  const detail::PickleValue back = detail::read_pickle(std::as_bytes(std::span(text)), "test");
  ASSERT_NE(back.list(), nullptr);
  ASSERT_EQ(back.list()->size(), 2500u);
  for (std::size_t i = 0; i < 2500; ++i) EXPECT_EQ((*back.list())[i].list()->at(1).whole(0), i);
}

TraceStep alloc(std::uint64_t block, std::uint64_t mib) { return {.kind = TraceStep::Kind::alloc, .block = block, .bytes = mib * kMiB}; }
TraceStep request(std::uint64_t block) { return {.kind = TraceStep::Kind::free_requested, .block = block}; }
TraceStep complete(std::uint64_t block) { return {.kind = TraceStep::Kind::free_completed, .block = block}; }

TEST(Replay, GarbageIsCollectedBelowALimit) {
  const std::vector<TraceStep> steps{alloc(0, 24), request(0), complete(0), alloc(1, 40), request(1), complete(1), alloc(2, 44)};
  const Segments limited{.limit = 100 * kMiB};
  EXPECT_EQ(replay(steps, "", limited).reserved_peak, 64 * kMiB) << "the limit alone makes both go for the third";
  EXPECT_EQ(replay(steps, "garbage_collection_threshold:0.5", limited).reserved_peak, 44 * kMiB) << "each goes before the next one comes";
  EXPECT_EQ(replay(steps, "garbage_collection_threshold:0.9", limited).reserved_peak, 84 * kMiB) << "the oldest goes first";
  EXPECT_EQ(replay(steps, "garbage_collection_threshold:0.5", {}).reserved_peak, 108 * kMiB) << "no limit, no threshold";
}

TEST(Replay, WhatTheLimitForbidsFails) {
  // Unused segments go before an allocation fails, and those that other streams use are waited for.
  EXPECT_EQ(replay({alloc(0, 30), request(0), complete(0), alloc(1, 40)}, "", {.limit = 50 * kMiB}).reserved_peak, 40 * kMiB);
  const Replayed waited = replay({alloc(0, 30), request(0), alloc(1, 40), complete(0)}, "", {.limit = 50 * kMiB});
  EXPECT_EQ(waited.failed, 0u);
  EXPECT_EQ(waited.reserved_peak, 40 * kMiB);
  // What has failed is not freed later, and does not count as requested.
  const std::vector<TraceStep> steps{alloc(0, 30), alloc(1, 30), alloc(2, 12), request(1), complete(1), request(0), complete(0), alloc(3, 38)};
  // Segments that grow hold a page more, because large neighbours begin at other places of theirs.
  constexpr std::uint64_t kMore = 4096;
  for (const char* settings : {"per_process_memory_fraction:0.5", "per_process_memory_fraction:0.5,expandable_segments:True",
                               "per_process_memory_fraction:0.5,expandable_segments:False"})
    for (const Segments& from :
         {Segments{.device = 100 * kMiB + 2 * kMore}, Segments{.page = 4096, .reservable = 88 * kMiB, .device = 100 * kMiB + 2 * kMore, .limit = 10 * kMiB}}) {
      const Replayed limited = replay(steps, settings, from);
      EXPECT_EQ(limited.failed, 1u) << "the settings' limit stands in place of the other";
      EXPECT_EQ(limited.requested_peak, 50 * kMiB);
      const bool grows = from.reservable > 0 && std::string_view(settings).find("False") == std::string_view::npos;
      EXPECT_EQ(limited.reserved_peak, 50 * kMiB + (grows ? kMore : 0));
    }
  EXPECT_EQ(replay(steps, "per_process_memory_fraction:0", {.device = 100 * kMiB}).failed, 4u);
  EXPECT_EQ(replay(steps, "", {}).failed, 0u);
}

TEST(Replay, SettingsWithoutEffectAreNamed) {
  auto notes = [](const char* text, const Segments& from) { return clutch_memory::without_effect(detail::parse_allocator_settings(text), from); };
  EXPECT_TRUE(notes("expandable_segments:True,max_split_size_mb:64", {}).empty());
  const char* both = "garbage_collection_threshold:0.5,per_process_memory_fraction:0.5";
  ASSERT_EQ(notes(both, {}).size(), 2u);
  EXPECT_NE(notes(both, {})[0].find("per_process_memory_fraction has no effect in a replay that does not know the device's memory"), std::string::npos);
  EXPECT_NE(notes(both, {})[1].find("garbage_collection_threshold has no effect in a replay without a limit"), std::string::npos);
  EXPECT_TRUE(notes(both, {.device = kMiB}).empty());
  EXPECT_EQ(notes(both, {.limit = kMiB}).size(), 1u);
  EXPECT_EQ(notes("backend:native", {}), std::vector<std::string>{"backend has no effect on OpenCL devices"});
}

TEST(Replay, AllocationsThatPyTorchMade) {
  // Written by record_torch_trace.py, which says what they are.
  const detail::FileMapping file = detail::map_whole_file(CLUTCH_TESTS_FOLDER "/runtime/torch_trace.pickle");
  ASSERT_EQ(file.problem, "");
  const MemorySnapshot snapshot = clutch_memory::snapshot_of(detail::read_pickle(file.bytes, "test"));
  const std::vector<TraceStep> steps = clutch_memory::steps_of(snapshot, 0);
  std::uint64_t segments = 0, reserved = 0, requested = 0, requested_peak = 0;
  for (const MemoryTraceEntry& entry : snapshot.device_traces.at(0)) {
    if (entry.action == "segment_alloc") ++segments, reserved += entry.size;
    if (entry.action == "free_requested") requested -= entry.size;
    if (entry.action != "alloc") continue;
    EXPECT_EQ(entry.label.find("CachingAllocator"), std::string::npos);
    EXPECT_NE(entry.label, "");
    requested_peak = std::max(requested_peak, requested += entry.size);
  }
  ASSERT_GT(steps.size(), 1500u);

  // Block by block, with all counters, as the model of PyTorch's allocator.
  Driven ours({}, 0, 0);
  TorchAllocatorModel model;
  std::map<std::uint64_t, Block*> live;
  for (const TraceStep& step : steps) {
    if (step.kind == TraceStep::Kind::alloc) {
      Block* block = live[step.block] = ours.malloc(step.bytes, step.stream + 1, step.pool);
      ASSERT_EQ(address_of(*block), model.malloc(step.bytes, 1)) << "block " << step.block;
    } else if (step.kind == TraceStep::Kind::free_requested) {
      model.request_free(address_of(*live.at(step.block)));
      ours.heap().release(*live.at(step.block));
    } else {
      model.complete_free(address_of(*live.at(step.block)));
      ours.heap().merge(live.at(step.block));
      live.erase(step.block);
    }
    const detail::MemoryCounters& c = ours.heap().counters();
    ASSERT_EQ(c.reserved_bytes.all.current, model.reserved);
    ASSERT_EQ(c.active_bytes.all.current, model.active);
    ASSERT_EQ(c.requested_bytes.all.current, model.requested);
    ASSERT_EQ(c.inactive_split_bytes.all.current, model.split_bytes);
  }

  const Replayed plain = replay(steps, "", {});
  EXPECT_EQ(plain.segments, segments) << "the recorded allocator's";
  EXPECT_EQ(plain.reserved_peak, reserved);
  EXPECT_EQ(plain.requested_peak, requested_peak);
  const Replayed growing = replay(steps, "", {.page = 4096, .reservable = 4096 * kMiB});
  RecordProperty("torch", std::to_string(plain.fragmentation()));
  RecordProperty("growing", std::to_string(growing.fragmentation()));
  EXPECT_LE(growing.reserved_peak, model.reserved_peak);
  EXPECT_LE(growing.fragmentation(), 1.10);
}

}}  // namespace clutch::testing
