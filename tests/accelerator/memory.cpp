// SPDX-License-Identifier: Apache-2.0
// Device memory: counters, limits, snapshots, pools, memory of the host.
#include "rows.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

namespace clutch::rows { namespace {

Tensor bytes(std::int64_t count) { return empty({count}, {.dtype = DType::u8}); }

std::uint64_t stat(const char* key) { return memory_stats().at(key); }

ROW(memory_allocated) {
  bytes(1);  // the allocator is there
  const std::uint64_t before = memory_allocated();
  Tensor x = bytes(4000);
  line("4000 bytes take", memory_allocated() - before);
  Tensor y = bytes(1);
  line("and one byte", memory_allocated() - before);
  x = y = {};
  line("given back", memory_allocated() - before);
}

ROW(max_memory_allocated) {
  Tensor x = bytes(1);
  reset_peak_memory_stats();
  line("reset: the peak is what is allocated", max_memory_allocated() == memory_allocated());
  const std::uint64_t before = memory_allocated();
  x = bytes(8 << 20);
  x = {};
  line("peak above what was there, from 8 MiB on", max_memory_allocated() - before >= 8u << 20);
  line("it stays while memory is given back", max_memory_allocated() > memory_allocated());
  reset_peak_memory_stats();
  line("reset again", max_memory_allocated() == memory_allocated());
}

ROW(memory_reserved) {
  bytes(1);
  clutch::synchronize();
  empty_cache();
  reset_peak_memory_stats();
  const std::uint64_t before = memory_reserved();
  line("no less than is allocated", before >= memory_allocated());
  Tensor x = bytes(32 << 20);
  line("32 MiB take", memory_reserved() - before);
  x = {};
  line("the cache keeps it", memory_reserved() - before);
  line("the peak", max_memory_reserved() - before);
  empty_cache();
  line("given back", memory_reserved() - before);
  line("the peak stays", max_memory_reserved() - before);
  reset_peak_memory_stats();
  line("until it is reset", max_memory_reserved() == memory_reserved());
}

ROW(accumulated_stats) {
  bytes(1);
  reset_accumulated_memory_stats();
  line("reset", std::vector{stat("allocation.all.allocated"), stat("allocation.all.freed"), stat("num_ooms")});
  const std::uint64_t current = stat("allocation.all.current");
  { const Tensor x = bytes(10), y = bytes(20); }
  line("two tensors came and went", std::vector{stat("allocation.all.allocated"), stat("allocation.all.freed")});
  line("as many as before are there", stat("allocation.all.current") == current);
}

ROW(memory_stats) {
  bytes(1);
  const std::map<std::string, std::uint64_t> stats = clutch::memory_stats();
  std::map<std::string, std::set<std::string>> parts;
  for (const auto& [key, value] : stats) {
    if (key == "num_oom_rejections") continue;  // torch.cuda has it, torch.accelerator does not
    const std::size_t dot = key.find('.');
    parts[key.substr(0, dot)].insert(dot == std::string::npos ? "alone" : key.substr(dot + 1));
  }
  for (const auto& [family, keys] : parts) line(family, keys);
  line("they are sorted", std::is_sorted(stats.begin(), stats.end()));
  line("allocated bytes are memory_allocated", stats.at("allocated_bytes.all.current") == memory_allocated());
  line("reserved bytes are memory_reserved", stats.at("reserved_bytes.all.current") == memory_reserved());
  line("requested bytes are no more", stats.at("requested_bytes.all.current") <= stats.at("allocated_bytes.all.current"));
}

ROW(memory_info) {
  const MemoryInfo info = get_memory_info();
  line("there is memory", info.total > 0);
  line("no more is free than there is", info.free <= info.total);
}

ROW(memory_fraction) {
  line.refused("1.5", [] { return set_per_process_memory_fraction(1.5), 0; });
  line.refused("-0.5", [] { return set_per_process_memory_fraction(-0.5), 0; });
  set_per_process_memory_fraction(0.25);
  line("set", get_per_process_memory_fraction());
  set_per_process_memory_fraction(1);
  line("set back", get_per_process_memory_fraction());
}

ROW(out_of_memory) {
  bytes(1);
  clutch::synchronize();
  empty_cache();
  const std::uint64_t before = stat("num_ooms");
  set_per_process_memory_fraction(0.01);
  std::string end = "taken";
  const DeviceTraits& traits = current_device().traits();
  try {
    bytes(static_cast<std::int64_t>(std::min(traits.global_bytes / 10, traits.max_alloc_bytes)));
  } catch (const Error& error) {
    end = error.code() == ErrorCode::out_of_memory ? "out of memory" : "another error";
  }
  line("a tenth of the memory, of which a hundredth is allowed", end);
  line("counted", stat("num_ooms") - before);
  line("less is to be had", bytes(1000).numel());
  set_per_process_memory_fraction(1);
}

ROW(allocator_settings) {
  for (const char* text : {"max_split_size_mb:64",
                           "expandable_segments:True",
                           "garbage_collection_threshold:0.8",
                           "roundup_power2_divisions:4",
                           "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
                           "roundup_power2_divisions:[1:2,4:0]",
                           "max_split_size_mb:64,expandable_segments:False",
                           " max_split_size_mb : 64 ,",
                           "max_split_size_mb:20",
                           "max_split_size_mb:19",
                           "max_split_size_mb:1.5",
                           "max_split_size_mb:",
                           "max_split_size_mb",
                           "max_non_split_rounding_mb:20",
                           "max_non_split_rounding_mb:19",
                           "expandable_segments:true",
                           "expandable_segments:1",
                           "no_such_key:1",
                           ",max_split_size_mb:64",
                           "garbage_collection_threshold:0",
                           "garbage_collection_threshold:1",
                           "garbage_collection_threshold:x",
                           "roundup_power2_divisions:3",
                           "roundup_power2_divisions:0",
                           "roundup_power2_divisions:[3:1]",
                           "roundup_power2_divisions:[256:1",
                           "pinned_use_background_threads:yes",
                           "pinned_use_background_threads:True",
                           "large_segment_size_mb:10",
                           "max_split_size_mb:25,large_segment_size_mb:30",
                           "large_segment_size_mb:30,max_non_split_rounding_mb:25",
                           "large_segment_size_mb:12,max_split_size_mb:15",
                           "large_segment_size_mb:20,max_split_size_mb:20"})
    line.refused(text, [&] { return set_allocator_settings(text), 0; });
  set_allocator_settings("max_split_size_mb:64");
  line("the text that was given last", clutch::allocator_settings().last_allocator_settings);
  set_allocator_settings("");
}

ROW(memory_snapshot) {
  bytes(1);
  record_memory_history({.clear_history = true});
  Tensor x = bytes(3000), y = bytes(5 << 20);
  std::map<std::string, std::uint64_t> sums;
  const MemorySnapshot now = clutch::memory_snapshot();
  for (const MemorySegment& segment : now.segments)
    if (segment.device == current_device().index()) {
      sums["total"] += segment.total_size, sums["allocated"] += segment.allocated_size;
      std::uint64_t of_blocks = 0;
      for (const MemoryBlock& block : segment.blocks) {
        of_blocks += block.size;
        if (block.state == "active_allocated") sums["blocks"] += block.size;
        if (block.requested_size == 3000) line("a block of 3000 bytes has", block.size);
      }
      if (of_blocks != segment.total_size) line("blocks do not fill a segment of", segment.total_size);
    }
  line("segments are what is reserved", sums["total"] == memory_reserved());
  line("blocks in use are what is allocated", sums["blocks"] == memory_allocated() && sums["allocated"] == memory_allocated());
  x = y = {};
  stop_memory_history();
  bytes(3000);  // is not recorded
  std::map<std::string, int> actions;
  const MemorySnapshot later = clutch::memory_snapshot();
  for (const MemoryTraceEntry& entry : later.device_traces.at(static_cast<std::size_t>(current_device().index())))
    if (entry.size == 3000) ++actions[std::string(entry.action)];
  line("history of 3000 bytes: allocated, freed", std::vector{actions["alloc"], actions["free_requested"], actions["free_completed"]});
  const std::string path = temporary_file("snapshot.pickle");
  dump_memory_snapshot(path);
  std::ifstream file(path, std::ios::binary);
  line("the file is a pickle", file.get() == 0x80);
  std::filesystem::remove(path);
}

ROW(mem_pool) {
  bytes(1);
  clutch::synchronize();
  empty_cache();
  const std::uint64_t before = memory_reserved();
  const auto of_pool = [](PoolId id) {
    std::uint64_t size = 0;
    for (const MemorySegment& segment : clutch::memory_snapshot().segments)
      if (segment.pool == id) size += segment.allocated_size;
    return size;
  };
  {
    const MemPool pool, other;
    line("two pools are two", !(pool.id() == other.id()));
    Tensor x, y;
    {
      const PoolGuard guard(pool);
      x = bytes(3 << 20);
      {
        const PoolGuard inner(other);
        y = bytes(1 << 10);
      }
    }
    const Tensor outside = bytes(4 << 20);
    line("allocated in the one and in the other", std::vector{of_pool(pool.id()), of_pool(other.id())});
    line("the pool and the rest have memory of their own", memory_reserved() - before >= 7u << 20);
  }
  clutch::synchronize();
  empty_cache();
  line("behind their end all is given back", memory_reserved() - before);
}

ROW(graph_pool_handle) {
  const PoolId one = new_pool(), two = new_pool();
  line("the first number", std::vector{one.first, two.first});
  line("two handles are two", one.second != two.second);
}

ROW(host_memory) {
  HostBuffer buffer(4 * sizeof(float));
  const std::span<std::byte> memory = buffer.bytes();
  for (int i = 0; i < 4; ++i) reinterpret_cast<float*>(memory.data())[i] = static_cast<float>(i);
  line("pinned, with the host", buffer.with_host());
  buffer.to_device();
  line("on the device", numbers(add(buffer.tensor({4}, DType::f32), 1)));
}

ROW(raw_memory) {
  bytes(1);
  const std::uint64_t before = memory_allocated();
  StorageHandle memory(1000);
  line("1000 bytes take", memory_allocated() - before);
  line("it has", memory.bytes());
  {
    const Tensor x = memory.view({10}, DType::f32, 40), y = memory.view({1}, DType::f32, 76);
    fill_(x, 2);
    line("the number at byte 76", numbers(y));
  }
  memory = {};
  line("given back", memory_allocated() - before);
}

}}  // namespace clutch::rows
