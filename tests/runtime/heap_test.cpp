// SPDX-License-Identifier: Apache-2.0
// The allocator without a device: its blocks, counters and pages against models, its configuration, its limit.
#include "runtime/driven_heap.hpp"

#include "runtime/heap.hpp"
#include "runtime/memory_limit.hpp"
#include "runtime/pickle.hpp"
#include "support/fixture.hpp"
#include "tools/memory_replay.hpp"

#include <random>
#include <set>

namespace clutch::testing { namespace {

using detail::Block, detail::Heap, detail::HeapKey;

std::uint64_t random_bytes(std::mt19937_64& random) {
  switch (random() % 8) {
    case 0: return random() % 600;
    case 1:
    case 2: return random() % (64 << 10);
    case 3: return (1u << 20) - 2048 + random() % 4096;
    case 4:
    case 5: return random() % (8 << 20);
    case 6: return (10u << 20) - 2048 + random() % 4096;
    default: return random() % (70 << 20);
  }
}

class HeapModel : public ::testing::TestWithParam<const char*> {};

TEST_P(HeapModel, RandomProgramsGetTheBlocksAndCountersOfPyTorch) {
  const AllocatorSettings settings = detail::parse_allocator_settings(GetParam());
  for (std::uint64_t program = 0; program < 6; ++program) {
    SCOPED_TRACE(::testing::Message() << "CLUTCH_TEST_SEED=" << seed() << ", program " << program);
    std::mt19937_64 random(seed() + program);
    TorchAllocatorModel model;
    model.large_segment = settings.large_segment_size;
    model.max_split = settings.max_split_size;
    model.max_non_split_rounding = settings.max_non_split_rounding_size;
    std::copy(settings.roundup_power2_divisions.begin(), settings.roundup_power2_divisions.end(), model.divisions);
    Driven ours(settings, program % 2 == 0 ? 0 : 4096, 0);
    std::vector<Block*> live, awaiting;
    auto pick = [&](std::vector<Block*>& from) {
      std::swap(from[random() % from.size()], from.back());
      Block* block = from.back();
      from.pop_back();
      return block;
    };
    for (int step = 0; step < 1500; ++step) {
      const std::uint64_t what = random() % 100;
      if (what < 52 || live.empty()) {
        const std::uint64_t bytes = random_bytes(random);
        const int stream = 1 + static_cast<int>(random() % 3);
        Block* block = ours.malloc(bytes, static_cast<std::uint64_t>(stream));
        ASSERT_EQ(address_of(*block), model.malloc(bytes, stream)) << bytes << " bytes at step " << step;
        live.push_back(block);
      } else if (what < 85) {
        Block* block = pick(live);
        const std::uint64_t address = address_of(*block);
        ours.heap().release(*block);
        model.request_free(address);
        if (random() % 4 == 0) {
          awaiting.push_back(block);
        } else {
          ours.heap().merge(block);
          model.complete_free(address);
        }
      } else if (what < 98) {
        if (awaiting.empty()) continue;
        Block* block = pick(awaiting);
        const std::uint64_t address = address_of(*block);
        ours.heap().merge(block);
        model.complete_free(address);
      } else {
        ours.empty_cache();
        model.empty_cache();
      }
      const detail::MemoryCounters& c = ours.heap().counters();
      ASSERT_EQ(c.reserved_bytes.all.current, model.reserved) << "step " << step;
      ASSERT_EQ(c.allocated_bytes.all.current, model.allocated) << "step " << step;
      ASSERT_EQ(c.requested_bytes.all.current, model.requested) << "step " << step;
      ASSERT_EQ(c.active_bytes.all.current, model.active) << "step " << step;
      ASSERT_EQ(c.allocation.all.current, model.blocks) << "step " << step;
      ASSERT_EQ(c.active.all.current, model.active_blocks) << "step " << step;
      ASSERT_EQ(c.inactive_split.all.current, model.split_blocks) << "step " << step;
      ASSERT_EQ(c.inactive_split_bytes.all.current, model.split_bytes) << "step " << step;
      ASSERT_EQ(c.oversize_allocations.current, model.oversize) << "step " << step;
      ASSERT_EQ(c.device_allocs, model.segments_made) << "step " << step;
      ASSERT_EQ(c.reserved_bytes.small.current + c.reserved_bytes.large.current, model.reserved);
      ASSERT_EQ(c.reserved_bytes.all.allocated - c.reserved_bytes.all.freed, c.reserved_bytes.all.current);
    }
    const detail::MemoryCounters& c = ours.heap().counters();
    EXPECT_EQ(c.reserved_bytes.all.peak, model.reserved_peak);
    EXPECT_EQ(c.requested_bytes.all.peak, model.requested_peak);
    EXPECT_GT(c.inactive_split.all.peak, 0u);
    EXPECT_GT(c.device_frees, 0u) << "the programs empty the cache";
  }
}
INSTANTIATE_TEST_SUITE_P(Settings, HeapModel,
                         ::testing::Values("", "roundup_power2_divisions:4", "max_split_size_mb:20", "max_split_size_mb:32,max_non_split_rounding_mb:24",
                                           "roundup_power2_divisions:[1:2,4:8,16:0,>:4]", "large_segment_size_mb:48"));

/// Pages and blocks of a heap, checked one by one.
void check_structure(Heap& heap, std::uint64_t page) {
  std::uint64_t reserved = 0, active = 0, end = 0;
  for (const auto& [address, segment] : heap.segments()) {
    ASSERT_GE(address, end) << "segments overlap";
    end = address + segment->bytes;
    std::uint64_t at = 0;
    const Block* former = nullptr;
    for (const Block* block = segment->first; block; former = block, block = block->after) {
      ASSERT_EQ(block->offset, at);
      ASSERT_EQ(block->before, former);
      ASSERT_FALSE(former && former->state == Block::State::free && block->state == Block::State::free) << "free neighbours are not merged";
      const std::uint64_t first = block->offset / page, last = (block->offset + block->bytes + page - 1) / page;
      if (block->state != Block::State::free) {
        ASSERT_EQ(segment->pages.missing(first, last), 0u) << "a block in use has pages that are not held";
        active += block->bytes;
      }
      at += block->bytes;
    }
    ASSERT_EQ(at, segment->bytes);
    reserved += segment->pages.held() * page;
    ASSERT_EQ(segment->pages.held() + segment->pages.missing(0, (segment->bytes + page - 1) / page), (segment->bytes + page - 1) / page);
  }
  ASSERT_EQ(reserved, heap.reserved());
  ASSERT_EQ(active, heap.counters().active_bytes.all.current);
}

TEST(Heap, SegmentsThatGrowKeepTheirPagesInOrder) {
  const AllocatorSettings settings = detail::parse_allocator_settings("expandable_segments:True");
  for (std::uint64_t program = 0; program < 4; ++program) {
    std::mt19937_64 random(seed() + program);
    Driven ours(settings, 4096, 256ull << 20);
    std::vector<Block*> live;
    for (int step = 0; step < 1200; ++step) {
      const std::uint64_t what = random() % 100;
      if (what < 50 || live.empty()) {
        live.push_back(ours.malloc(random_bytes(random), 1 + random() % 2));
      } else if (what < 96) {
        std::swap(live[random() % live.size()], live.back());
        ours.heap().release(*live.back());
        ours.heap().merge(live.back());
        live.pop_back();
      } else {
        for (const auto& [address, segment] : ours.heap().segments())
          for (Block* block = segment->first; block; block = block->after)
            if (block->state == Block::State::free)
              ours.heap().drop_pages(*block, [](const auto&, std::uint64_t offset, std::uint64_t bytes) {
                EXPECT_EQ(offset % 4096 + bytes % 4096, 0u);
                return true;
              });
        // What is held are pages in use, and pages at their edges.
        EXPECT_LE(ours.heap().reserved(), ours.heap().counters().active_bytes.all.current + 8192 * (live.size() + 1));
      }
      check_structure(ours.heap(), 4096);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Heap, AThousandGrowingAllocationsNeedNoNewSegment) {
  Driven ours(detail::parse_allocator_settings("expandable_segments:True"), 4096, 4ull << 30);
  Block* last = nullptr;
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    Block* block = ours.malloc((2u << 20) + i * 4096, 1);
    if (last) ours.heap().release(*last), ours.heap().merge(last);
    last = block;
  }
  EXPECT_EQ(ours.heap().counters().device_allocs, 1u);
}

/// A range is no longer than the device's largest buffer: what does not fit goes into further ones, which fill in their order.
TEST(Heap, GrowthGoesOnInFurtherRanges) {
  constexpr std::uint64_t kRange = 64ull << 20, kBytes = 15ull << 20;
  Driven ours({}, 4096, kRange);
  std::vector<Block*> blocks;
  for (int i = 0; i < 12; ++i) blocks.push_back(ours.malloc(kBytes, 1));
  EXPECT_EQ(ours.heap().counters().device_allocs, 3u);
  for (const auto& [address, segment] : ours.heap().segments()) EXPECT_EQ(segment->bytes, kRange);
  EXPECT_LE(ours.heap().reserved(), 12 * kBytes + 12 * 4096) << "pages count when they are used";
  for (std::size_t i = 1; i < blocks.size(); ++i) EXPECT_EQ(blocks[i]->segment == blocks[i - 1]->segment, i % 4 != 0) << i;
  // What is free in them is taken before a new range.
  const detail::Segment* second = blocks[5]->segment;
  ours.free(blocks[5]);
  EXPECT_EQ(ours.malloc(kBytes, 1)->segment, second);
  EXPECT_EQ(ours.heap().counters().device_allocs, 3u);
  check_structure(ours.heap(), 4096);
}

TEST(Heap, FragmentationOfVaryingLengthsIsBounded) {
  // Sequences of lengths that vary: layers' activations are kept until they are freed backwards, keys and values stay for some steps.
  std::mt19937_64 random(seed());
  std::vector<clutch_memory::TraceStep> steps;
  std::uint64_t next = 0;
  auto alloc = [&](std::uint64_t bytes) {
    steps.push_back({clutch_memory::TraceStep::Kind::alloc, next, bytes, 0});
    return next++;
  };
  auto free = [&](std::uint64_t block) {
    steps.push_back({.kind = clutch_memory::TraceStep::Kind::free_requested, .block = block});
    steps.push_back({.kind = clutch_memory::TraceStep::Kind::free_completed, .block = block});
  };
  std::vector<std::pair<int, std::uint64_t>> kept;
  for (int i = 0; i < 24; ++i) alloc((1 + i % 5) * 768 * 3072);  // weights
  for (int step = 0; step < 60; ++step) {
    const std::uint64_t length = 64 + random() % 1500;
    std::vector<std::uint64_t> activations;
    for (int layer = 0; layer < 12; ++layer) {
      for (std::uint64_t width : {768, 2304, 768, 3072}) activations.push_back(alloc(length * width * 4));
      free(alloc(length * length * 12));  // scores
      kept.emplace_back(step + static_cast<int>(random() % 6), alloc(length * 256));
    }
    while (!activations.empty()) {
      free(activations.back());
      activations.pop_back();
    }
    std::erase_if(kept, [&](const auto& row) { return row.first <= step && (free(row.second), true); });
  }
  auto replay = [&](const char* text, const clutch_memory::Segments& from) {
    return clutch_memory::replay(steps, detail::parse_allocator_settings(text), from);
  };
  const TorchAllocatorModel torch = modelled(steps);
  const clutch_memory::Segments mapped{.page = 4096, .reservable = 4ull << 30};
  const auto plain = replay("expandable_segments:False", mapped), growing = replay("", mapped);
  RecordProperty("torch", std::to_string(static_cast<double>(torch.reserved_peak) / static_cast<double>(torch.requested_peak)));
  RecordProperty("growing", std::to_string(growing.fragmentation()));
  EXPECT_EQ(plain.requested_peak, torch.requested_peak);
  EXPECT_LE(plain.reserved_peak, torch.reserved_peak);
  EXPECT_LE(growing.reserved_peak, torch.reserved_peak);
  EXPECT_LE(growing.fragmentation(), 1.10);
}

TEST(Heap, SegmentsGrowUnlessTheTextMeansOthers) {
  auto grows = [](const char* text) { return detail::with_growth(detail::parse_allocator_settings(text)).expandable_segments; };
  for (const char* text : {"", "expandable_segments:True", "roundup_power2_divisions:4", "per_process_memory_fraction:0.5", "backend:native",
                           "expandable_segments:True,max_split_size_mb:64"})
    EXPECT_TRUE(grows(text)) << text;
  for (const char* text : {"expandable_segments:False", " expandable_segments : False ", "large_segment_size_mb:40", "max_split_size_mb:64",
                           "max_non_split_rounding_mb:40", "garbage_collection_threshold:0.5", "backend:native,max_split_size_mb:64"})
    EXPECT_FALSE(grows(text)) << text;
  EXPECT_FALSE(detail::parse_allocator_settings("").expandable_segments) << "what the text says stays PyTorch's";
}

/// Blocks of one size that lie side by side begin at all places of a page in turn; smaller ones, and such as are no whole pages, lie as PyTorch's.
TEST(Heap, LargeNeighboursBeginAtOtherPlacesOfAPage) {
  Driven ours({}, 4096, 4ull << 30);
  std::vector<Block*> blocks;
  for (int i = 0; i < 9; ++i) blocks.push_back(ours.malloc(16u << 20, 1));
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(blocks[i]->offset % 4096, 512 * i);
  EXPECT_EQ(blocks[8]->offset % 4096, 0u);
  const std::uint64_t third = blocks[2]->offset, held = ours.heap().reserved();
  ours.free(blocks[2]);
  blocks[2] = ours.malloc(16u << 20, 1);
  EXPECT_EQ(blocks[2]->offset, third) << "a free block serves the next of its size";
  EXPECT_EQ(ours.heap().reserved(), held);
  EXPECT_LE(held, 9 * (16ull << 20) + 9 * 512 + 4096);
  ours.free(blocks[4]), ours.free(blocks[5]);
  blocks[4] = ours.malloc(16u << 20, 1), blocks[5] = ours.malloc(16u << 20, 1);
  EXPECT_EQ(ours.heap().reserved(), held) << "a hole that two left has room for two";
  EXPECT_NE(blocks[4]->offset % 4096, blocks[5]->offset % 4096);
  Block *small = ours.malloc(1u << 20, 1), *next = ours.malloc(1u << 20, 1), *odd = ours.malloc((2u << 20) + 512, 1), *last = ours.malloc(3u << 20, 1);
  EXPECT_EQ(next->offset - small->offset, 1u << 20);
  EXPECT_EQ(odd->offset - next->offset, 1u << 20);
  EXPECT_EQ(last->offset - odd->offset, (2u << 20) + 512);
}

TEST(Heap, EndedPoolsAndOrphansLeaveNothing) {
  Heap heap;
  const AllocatorSettings settings;
  const PoolId pool{0, 77};
  heap.record(pool, {});
  heap.add(settings, {5, pool, false}, {}, 20 << 20, false);
  Block* block = heap.find(settings, {5, pool, false}, 4 << 20);
  ASSERT_NE(block, nullptr);
  heap.take(settings, *block, 4 << 20, 4 << 20, 5, heap.label("x"));
  EXPECT_EQ(heap.find_record(pool)->counters.allocated_bytes.all.current, 4u << 20);
  heap.orphan(5);
  EXPECT_EQ(heap.find(settings, {0, pool, false}, 4 << 20), nullptr) << "a block of it is in use";
  heap.release(*block);
  heap.merge(block);
  block = heap.find(settings, {0, pool, false}, 4 << 20);
  ASSERT_NE(block, nullptr) << "any stream may have it now";
  EXPECT_EQ(block->bytes, 20u << 20);
  heap.find_record(pool)->ended = true;
  heap.remove(*block->segment);
  EXPECT_EQ(heap.find_record(pool), nullptr);
  EXPECT_TRUE(heap.segments().empty());
}

TEST(AllocatorSettings, SizesAreRoundedAsInPyTorch) {
  auto rounded = [](const char* text, std::uint64_t bytes) { return detail::rounded_bytes(detail::parse_allocator_settings(text), bytes); };
  for (auto [divisions, bytes, block] : {std::tuple{4, 1200ull, 1536ull},
                                         {4, 2049ull, 2560ull},
                                         {4, 5121ull, 6144ull},
                                         {4, 1048577ull, 1310720ull},
                                         {4, 33554433ull, 41943040ull},
                                         {4, 7000000000ull, 7516192768ull},
                                         {2, 5000ull, 6144ull},
                                         {64, 3000001ull, 3014656ull},
                                         {0, 1ull, 512ull},
                                         {0, 513ull, 1024ull},
                                         {0, 0ull, 512ull}})
    EXPECT_EQ(rounded(divisions == 0 ? "" : ("roundup_power2_divisions:" + std::to_string(divisions)).c_str(), bytes), block) << divisions << " " << bytes;
  const AllocatorSettings plain;
  constexpr std::uint64_t kMiB = 1 << 20;
  EXPECT_EQ(detail::new_segment_bytes(plain, kMiB, 0, 0), 2 * kMiB);
  EXPECT_EQ(detail::new_segment_bytes(plain, kMiB + 512, 0, 0), 20 * kMiB);
  EXPECT_EQ(detail::new_segment_bytes(plain, 10 * kMiB - 512, 0, 0), 20 * kMiB);
  EXPECT_EQ(detail::new_segment_bytes(plain, 10 * kMiB, 0, 0), 10 * kMiB);
  EXPECT_EQ(detail::new_segment_bytes(plain, 10 * kMiB + 512, 0, 0), 12 * kMiB);
  // Where a driver cannot grow segments, each is as large as all before, up to an eighth of the device.
  const AllocatorSettings growing = detail::parse_allocator_settings("expandable_segments:True");
  EXPECT_EQ(detail::new_segment_bytes(growing, 2 * kMiB, 300 * kMiB, 8192 * kMiB), 300 * kMiB);
  EXPECT_EQ(detail::new_segment_bytes(growing, 2 * kMiB, 3000 * kMiB, 8192 * kMiB), 1024 * kMiB);
}

TEST(AllocatorSettings, TheGrammarIsPyTorchs) {
  AllocatorSettings s = detail::parse_allocator_settings(
      " max_split_size_mb : 64, expandable_segments:True,garbage_collection_threshold:0.8,roundup_power2_divisions:[256:1,512:2,>:8],backend:native,"
      "pinned_num_register_threads:8,large_segment_size_mb:40,max_non_split_rounding_mb:40,per_process_memory_fraction:0.5,");
  EXPECT_EQ(s.max_split_size, 64u << 20);
  EXPECT_TRUE(s.expandable_segments);
  EXPECT_EQ(s.garbage_collection_threshold, 0.8);
  EXPECT_EQ(s.large_segment_size, 40u << 20);
  EXPECT_EQ(s.per_process_memory_fraction, 0.5);
  // 256 MiB is the ninth interval: those before it have its number, and '>' fills from the last one listed.
  std::array<std::uint64_t, 16> divisions{};
  std::fill(divisions.begin(), divisions.begin() + 9, 1);
  std::fill(divisions.begin() + 9, divisions.end(), 8);
  EXPECT_EQ(s.roundup_power2_divisions, divisions);
  EXPECT_EQ(s.without_effect, (std::vector<std::string>{"backend", "pinned_num_register_threads"}));
  s = detail::parse_allocator_settings("roundup_power2_divisions:[2:4,16:8]");
  EXPECT_EQ(s.roundup_power2_divisions, (std::array<std::uint64_t, 16>{4, 4, 0, 0, 8}));
  EXPECT_EQ(detail::parse_allocator_settings("").max_split_size, UINT64_MAX);
  EXPECT_EQ(detail::parse_allocator_settings("max_split_size_mb:15,large_segment_size_mb:12").max_split_size, 15u << 20);
}

TEST(AllocatorSettings, ErrorsSayWhatMustBe) {
  for (auto [text, must] :
       {std::pair{"max_splt_size_mb:64", "a key must be one of"},
        {"max_split_size_mb:19", "max_split_size_mb must be at least large_segment_size_mb, 20, got '19'"},
        {"max_split_size_mb:39,large_segment_size_mb:40", "max_split_size_mb must be at least large_segment_size_mb, 40, got '39'"},
        {"large_segment_size_mb:30,max_non_split_rounding_mb:29", "max_non_split_rounding_mb must be at least large_segment_size_mb, 30, got '29'"},
        {"large_segment_size_mb:10", "from 11 to"},
        {"roundup_power2_divisions:0", "for all sizes must be a power of two, got '0'"},
        {"max_split_size_mb", "':' must follow"},
        {"max_split_size_mb:", "must follow, got the end"},
        {"max_split_size_mb:64 expandable_segments:True", "whole number"},
        {"expandable_segments:true", "must be True or False, got 'true'"},
        {"garbage_collection_threshold:1", "both excluded"},
        {"garbage_collection_threshold:nan", "both excluded"},
        {"roundup_power2_divisions:3", "powers of two"},
        {"roundup_power2_divisions:[3:1]", "powers of two in MiB"},
        {"roundup_power2_divisions:[4:1", "must follow, got the end"},
        {"roundup_power2_divisions:[4:1,>:2", "']' must follow"},
        {"large_segment_size_mb:99999999999999999999", "whole number"},
        {"pinned_num_register_threads:3", "power of two"},
        {"backend:hip", "native or cudaMallocAsync"},
        {",", "a key must follow"},
        {"per_process_memory_fraction:1.5", "from 0 to 1"}}) {
    const std::string message = message_of([text = text] { detail::parse_allocator_settings(text); });
    EXPECT_NE(message.find(must), std::string::npos) << text << ": " << message;
    EXPECT_EQ(code_of([text = text] { detail::parse_allocator_settings(text); }), ErrorCode::invalid_setting) << text;
  }
}

TEST(MemoryLimit, TextsAndBounds) {
  detail::MemoryLimitText limit;
  EXPECT_TRUE(detail::parse_memory_limit("0.5", limit));
  EXPECT_EQ(limit.fraction, 0.5);
  EXPECT_TRUE(detail::parse_memory_limit("64M", limit));
  EXPECT_EQ(limit.bytes, 64u << 20);
  EXPECT_TRUE(detail::parse_memory_limit("0", limit));
  EXPECT_TRUE(!limit.bytes && !limit.fraction);
  for (const char* bad : {"", "1.5", "0.0", ".", "-1", "64X", "0.5x", "half"}) EXPECT_FALSE(detail::parse_memory_limit(bad, limit)) << bad;

  detail::MemoryLimit device(1000, {.fraction = 0.5});
  EXPECT_EQ(device.allowed(), 500u);
  EXPECT_TRUE(device.take(500));
  EXPECT_FALSE(device.take(1));
  EXPECT_EQ(code_of([&] { device.set({.bytes = 499}, "set_memory_limit"); }), ErrorCode::invalid_argument);
  EXPECT_EQ(device.allowed(), 500u) << "the limit is as before";
  device.give(1);
  EXPECT_TRUE(device.take(1));
  device.set({}, "set_memory_limit");
  EXPECT_TRUE(device.take(1 << 30));
  EXPECT_FALSE(device.take(UINT64_MAX)) << "sums do not wrap";
  for (std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1000}}) {
    detail::MemoryLimit nothing(bytes, {.fraction = 0});
    EXPECT_EQ(nothing.allowed(), 0u) << "a fraction of 0 is no memory, not no limit";
    EXPECT_FALSE(nothing.take(1));
  }
}

TEST(Pickle, ReadsWhatItWrites) {
  detail::PickleWriter w;
  w.begin_dict();
  w.text("numbers");
  w.begin_list();
  for (std::int64_t n : {std::int64_t{0}, std::int64_t{255}, std::int64_t{65535}, std::int64_t{65536}, std::int64_t{-1}, INT64_MAX, INT64_MIN}) w.integer(n);
  w.integer(UINT64_MAX);
  w.number(-0.75);
  w.end_list();
  w.text("truth");
  w.begin_tuple();
  w.boolean(true);
  w.end_tuple();
  w.text("nothing");
  w.begin_dict();
  w.end_dict();
  w.end_dict();
  const std::string text = w.finish();
  const detail::PickleValue read = detail::read_pickle(std::as_bytes(std::span(text)), "test");
  const auto& numbers = *read["numbers"].list();
  ASSERT_EQ(numbers.size(), 9u);
  EXPECT_EQ(numbers[3].whole(0), 65536u);
  EXPECT_EQ(numbers[4].number(0), -1);
  EXPECT_EQ(numbers[5].whole(0), std::uint64_t{INT64_MAX});
  EXPECT_EQ(numbers[6].number(0), static_cast<double>(INT64_MIN));
  EXPECT_EQ(numbers[7].whole(0), UINT64_MAX);
  EXPECT_EQ(numbers[8].number(0), -0.75);
  EXPECT_EQ((*read["truth"].list())[0].number(0), 1);
  EXPECT_TRUE(read["nothing"].dict()->empty());
  EXPECT_TRUE(read["absent"].is_none());
  // Cut off anywhere it is an Error, never a crash.
  for (std::size_t n = 0; n < text.size(); ++n)
    EXPECT_EQ(code_of([&] { detail::read_pickle(std::as_bytes(std::span(text.data(), n)), "test"); }), ErrorCode::io) << n;
}

TEST(Pickle, WhatSnapshotsNeverHaveIsAnError) {
  for (std::string_view bad : {std::string_view("\x80\x02]\x94h\x00"
                                                "a.",
                                                7),
                               std::string_view("\x80\x02}(K\x01u.", 8),
                               std::string_view("\x80\x02"
                                                "e.",
                                                4),
                               std::string_view("\x80\x02(K\x01.", 6),
                               std::string_view("\x80\x02"
                                                "cos\nsystem\n.",
                                                14),
                               std::string_view("\x80\x09N.", 4), std::string_view("\x80\x02X\xff\xff\xff\xff", 7), std::string_view("\x80\x02h\x05.", 5)})
    EXPECT_EQ(code_of([&] { detail::read_pickle(std::as_bytes(std::span(bad)), "test"); }), ErrorCode::io) << bad;
  std::string deep = "\x80\x02";
  for (int i = 0; i < 100000; ++i) deep += ']';
  for (int i = 0; i < 99999; ++i) deep += 'a';
  deep += '.';
  EXPECT_EQ(code_of([&] { detail::read_pickle(std::as_bytes(std::span(deep)), "test"); }), ErrorCode::io);
}

}}  // namespace clutch::testing
