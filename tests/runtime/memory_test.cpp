// SPDX-License-Identifier: Apache-2.0
// What processes do that run out of memory, or use freed memory: each case is a child process. What the system holds for this one.
#include "support/fixture.hpp"

#include <clutch/host_memory.hpp>
#include <clutch/interop_cl.hpp>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <stdexcept>
#include <thread>

namespace clutch::testing { namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // shadow memory takes all addresses, and access violations are the sanitizer's
#else
constexpr bool kSanitized = false;
#endif

/// What the child printed, and its exit status behind it.
std::string child(const std::string& environment, const std::string& mode) {
  const char* program = std::getenv("MEMORY_CHILD");  // set by ctest
  if (!program) throw std::runtime_error("MEMORY_CHILD must name the program memory_child");
  FILE* pipe = ::popen(("env " + environment + " " + program + " " + mode + " 2>&1").c_str(), "r");
  std::string text;
  std::array<char, 4096> buffer{};
  while (pipe && std::fgets(buffer.data(), buffer.size(), pipe)) text += buffer.data();
  return text + "status " + std::to_string(pipe ? ::pclose(pipe) : -1);
}

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * 4096;
}

/// Resident bytes, once they are no more than `most`, or after some seconds: a driver may keep a buffer for a moment behind its last command.
std::uint64_t resident_bytes_down_to(std::uint64_t most) {
  for (int i = 0; i < 500 && resident_bytes() > most; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return resident_bytes();
}

bool is_mapped(const Device& device) {
  set_allocator_settings("expandable_segments:True");
  empty_cache(device);
  Tensor t = empty({1 << 20}, {.device = device});
  bool grows = false;
  for (const MemorySegment& segment : memory_snapshot().segments) grows = grows || (segment.device == device.index() && segment.is_expandable);
  t = Tensor();
  empty_cache(device);
  set_allocator_settings("");
  return grows;
}

TEST(Memory, ALimitIsAnErrorThatSaysWhoHasIt) {
  // In a segment that grows some bytes are left out between neighbours, which take a page more than eight blocks.
  struct Case {
    std::string settings, allowed;
  };
  for (const Case& c :
       {Case{"CLUTCH_MEMORY_LIMIT=512M CLUTCH_ALLOC_CONF=expandable_segments:False", "536870912"}, Case{"CLUTCH_MEMORY_LIMIT=513M", "537919488"}}) {
    const std::string text = child(c.settings, "exhaust");
    EXPECT_NE(text.find("Error out_of_memory: full: 67108864 bytes wanted"), std::string::npos) << text;
    EXPECT_NE(text.find("may hold " + c.allowed + " bytes (CLUTCH_MEMORY_LIMIT)"), std::string::npos) << text;
    EXPECT_NE(text.find("largest in use: hoard 536870912 bytes in 8 blocks"), std::string::npos) << text;
    EXPECT_NE(text.find("held 8\nagain 8, last 2\nstatus 0"), std::string::npos) << text;
  }
}

TEST(Memory, WithoutASettingNineTenthsOfWhatThereIsMayBeHeld) {
  // Memory of other programs comes and goes: compared is what stands between two equal looks.
  const auto bytes = [](const std::string& text) { return std::strtod(text.c_str() + std::string_view("may hold ").size(), nullptr); };
  const auto half = [&] { return bytes(child("CLUTCH_MEMORY_LIMIT=0.45", "allowed")); };
  double usual = 0, before = half(), after = 0;
  for (int look = 0; look < 50; ++look) {
    usual = bytes(child("-u CLUTCH_MEMORY_LIMIT", "allowed")), after = half();
    if (std::abs(after - before) < 0.005 * before) break;
    before = after;
  }
  EXPECT_GT(before, 0);
  EXPECT_NEAR(usual / before, 2, 0.03);
}

TEST(Memory, ProcessesOfEqualCallsHaveEqualAddresses) {
  for (const char* settings : {"CLUTCH_ALLOC_CONF=", "CLUTCH_ALLOC_CONF=expandable_segments:False"}) {
    const std::string first = child(settings, "addresses");
    EXPECT_GT(first.size(), 300u);
    EXPECT_EQ(first, child(settings, "addresses")) << settings;
  }
}

TEST(Memory, AFractionOfNothingIsNoMemory) {
  const std::string text = child("CLUTCH_ALLOC_CONF=per_process_memory_fraction:0", "exhaust");
  EXPECT_NE(text.find("may hold 0 bytes, 0 of what there is (per_process_memory_fraction)"), std::string::npos) << text;
  EXPECT_NE(text.find("held 0\nagain 0\nstatus 0"), std::string::npos) << text;
}

TEST(Memory, ALimitOfTheSystemIsAnErrorToo) {
  if (kSanitized) return;
  for (const char* settings : {"", "CLUTCH_ALLOC_CONF=expandable_segments:True", "CLUTCH_ALLOC_CONF=expandable_segments:False"}) {
    const std::string text = child(std::string(settings) + " CLUTCH_MEMORY_LIMIT=0", "limit_addresses");
    EXPECT_NE(text.find("Error out_of_memory: full: "), std::string::npos) << text;
    EXPECT_NE(text.find("Cannot allocate memory"), std::string::npos) << text;
    EXPECT_NE(text.find(", last 2\nstatus 0"), std::string::npos) << text;
  }
}

TEST(Memory, UseOfFreedMemoryEndsTheProcess) {
  if (kSanitized) return;
  EXPECT_NE(child("", "use_freed").find("kept 6\nstatus 0"), std::string::npos);
  const std::string checked = child("CLUTCH_CHECK_MEMORY=1", "use_freed");
  EXPECT_EQ(checked.find("read "), std::string::npos) << checked;
  EXPECT_EQ(checked.find("status 0"), std::string::npos) << checked;
}

TEST(Memory, BadSettingsAreErrors) {
  EXPECT_NE(child("CLUTCH_ALLOC_CONF=max_split_size_mb:1", "exhaust").find("Error invalid_setting: full: CLUTCH_ALLOC_CONF must be"), std::string::npos);
  EXPECT_NE(child("CLUTCH_MEMORY_LIMIT=lots", "exhaust").find("Error invalid_setting: full: CLUTCH_MEMORY_LIMIT must be a number of bytes"), std::string::npos);
}

TEST(Memory, WhatIsGivenBackIsNoLongerResident) {
  CLUTCH_EACH_DEVICE(device) {
    if (!is_mapped(device)) continue;
    constexpr std::int64_t kFloats = 32 << 20;  // 128 MiB
    full({kFloats}, 1, {.device = device});     // the program is there
    synchronize(device);
    empty_cache(device);
    const std::uint64_t before = resident_bytes();
    // Five hundredths of what is given back; sanitizers keep what the host frees.
    const std::uint64_t most = before + kFloats * 4 / 20 + (kSanitized ? 64 << 20 : 0);
    for (const char* settings : {"expandable_segments:False", ""}) {
      set_allocator_settings(settings);
      {
        Tensor first = full({1 << 20}, 1, {.device = device}), large = full({kFloats}, 1, {.device = device}), last = full({1 << 20}, 2, {.device = device});
        synchronize(device);
        EXPECT_GE(resident_bytes(), before + kFloats * 4);
        // In a segment that others keep, whole pages go.
        large = Tensor();
        empty_cache(device);
        EXPECT_LE(resident_bytes_down_to(most + (8 << 20)), most + (8 << 20)) << settings;
        EXPECT_EQ(first.to_host<float>()[(1 << 20) - 1], 1);
        EXPECT_EQ(last.to_host<float>()[0], 2);
        EXPECT_LE(memory_reserved(device), 48u << 20);
        // Such pages come back when they are used.
        large = full({kFloats}, 3, {.device = device});
        EXPECT_EQ(large.slice(0, kFloats - 1, kFloats).to_host<float>()[0], 3);
        EXPECT_GE(memory_reserved(device), static_cast<std::uint64_t>(kFloats * 4));
      }
      empty_cache(device);
      EXPECT_LE(resident_bytes_down_to(most), most) << settings;
    }
    set_allocator_settings("");
  }
}

/// Tensors of segments of their own lie at other places of their first pages, which nobody sees in their addresses; those of one that grows lie at other
/// places of pages by their addresses.
TEST(Memory, LargeTensorsBeginAtOtherPlacesOfPages) {
  CLUTCH_EACH_DEVICE(device) {
    if (!is_mapped(device)) continue;
    auto made = [&] {
      synchronize(device);
      empty_cache(device);
      std::vector<Tensor> tensors;
      for (int i = 0; i < 16; ++i) tensors.push_back(full({3 << 20}, i, {.device = device}));
      return tensors;
    };
    for (const bool grows : {false, true}) {
      set_allocator_settings(grows ? "" : "expandable_segments:False");
      std::vector<std::uint64_t> addresses;
      {
        const std::vector<Tensor> tensors = made();
        std::set<std::uintptr_t> begins;
        for (std::size_t i = 0; i < tensors.size(); ++i) {
          addresses.push_back(memory_address(tensors[i]));
          const HostMapping mapping(tensors[i], MapAccess::read);
          const auto at = reinterpret_cast<std::uintptr_t>(mapping.bytes().data());
          EXPECT_EQ(at % 256, 0u);
          begins.insert(at % 4096);
          EXPECT_EQ(tensors[i].slice(0, (3 << 20) - 1, 3 << 20).to_host<float>()[0], static_cast<float>(i));
        }
        EXPECT_EQ(begins.size(), grows ? 8u : 16u);
      }
      // One more makes them begin elsewhere.
      full({3 << 20}, 1, {.device = device});
      const std::vector<Tensor> again = made();
      for (std::size_t i = 0; i < again.size(); ++i) EXPECT_EQ(memory_address(again[i]), addresses[i]);
    }
    set_allocator_settings("");
  }
}

}}  // namespace clutch::testing
