// SPDX-License-Identifier: Apache-2.0
// clutch-memory: what other settings of the allocator would make of a recorded history, and a page of it. docs/memory.md is its guide.
#include "runtime/allocator_config.hpp"
#include "runtime/memory_report.hpp"
#include "support/system.hpp"
#include "tools/memory_replay.hpp"

#include <clutch/error.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace {

using clutch_memory::Replayed, clutch_memory::Segments, clutch_memory::TraceStep;

clutch::MemorySnapshot read(const std::string& path) {
  const clutch::detail::FileMapping file = clutch::detail::map_whole_file(path);
  if (!file.problem.empty()) throw clutch::Error(clutch::ErrorCode::io, "clutch-memory", file.problem);
  return clutch_memory::snapshot_of(clutch::detail::read_pickle(file.bytes, "clutch-memory"));
}

struct Replay {
  std::string snapshot;
  std::vector<std::string> settings;
  std::size_t device = 0;
  std::uint64_t largest_mib = 4096, device_mib = 0, limit_mib = 0;
  std::string segments = "mapped";
};

int replay(const Replay& r) {
  const std::vector<TraceStep> steps = clutch_memory::steps_of(read(r.snapshot), r.device);
  std::vector<std::string> all = r.settings;
  const bool grows = r.segments == "mapped";  // by default
  const std::string other = grows ? "expandable_segments:False" : "expandable_segments:True";
  if (all.empty()) all = {"", other, "roundup_power2_divisions:4", other + ",roundup_power2_divisions:4", "max_split_size_mb:64"};
  Segments from{.page = 0, .reservable = 0, .device = r.device_mib << 20};
  if (grows) from.page = 4096, from.reservable = r.largest_mib << 20;
  if (r.limit_mib > 0) from.limit = r.limit_mib << 20;
  fmt::print("{:>16} {:>16} {:>9} {:>9} {:>7}  settings\n", "requested peak", "reserved peak", "ratio", "segments", "failed");
  for (const std::string& text : all) {
    const clutch::AllocatorSettings settings = clutch::detail::parse_allocator_settings(text);
    const Replayed result = clutch_memory::replay(steps, settings, from);
    fmt::print("{:>16} {:>16} {:>9.4f} {:>9} {:>7}  {}\n", result.requested_peak, result.reserved_peak, result.fragmentation(), result.segments, result.failed,
               !text.empty() ? text
               : grows       ? "(the defaults: segments grow)"
                             : "(PyTorch's defaults)");
    for (const std::string& note : clutch_memory::without_effect(settings, from)) fmt::print("{:>54}  ({})\n", "", note);
  }
  return 0;
}

int page(const std::string& snapshot, const std::string& output) {
  const std::string text = clutch::detail::page_of(read(snapshot));
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  const std::string problem = clutch::detail::replace_file(output, {{bytes}}, 0644);
  if (!problem.empty()) throw clutch::Error(clutch::ErrorCode::io, "clutch-memory", problem);
  return 0;
}

int command(int argc, char** argv) {
  CLI::App app{"Looks at snapshots of memory that clutch (dump_memory_snapshot) or PyTorch (torch.cuda.memory._dump_snapshot) wrote."};
  app.require_subcommand(1);
  Replay r;
  CLI::App* replaying = app.add_subcommand("replay", "make the history's allocations again, with each of some settings");
  replaying->add_option("snapshot", r.snapshot, "pickle of a snapshot with history")->required();
  replaying->add_option("--conf", r.settings, "settings as CLUTCH_ALLOC_CONF has them; may be given often");
  replaying->add_option("--device", r.device, "index of the device")->capture_default_str();
  replaying->add_option("--segments", r.segments, "mapped: they have pages and can grow in place, as on CPU devices; driver: neither, as on GPUs")
      ->check(CLI::IsMember({"mapped", "driver"}))
      ->capture_default_str();
  replaying->add_option("--largest-mib", r.largest_mib, "the device's largest buffer, to which segments grow")
      ->check(CLI::Range(32, 1 << 20))
      ->capture_default_str();
  replaying
      ->add_option("--device-mib", r.device_mib,
                   "the device's memory: per_process_memory_fraction is a part of it, and new segments have at most an eighth of it; 0: not known")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  replaying->add_option("--limit-mib", r.limit_mib, "what may be held, as CLUTCH_MEMORY_LIMIT has it; 0: no limit")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  std::string snapshot, output;
  CLI::App* drawing = app.add_subcommand("page", "write a page of the snapshot: SNAPSHOT OUTPUT.html");
  drawing->add_option("snapshot", snapshot)->required();
  drawing->add_option("output", output)->required();
  CLI11_PARSE(app, argc, argv);
  return *replaying ? replay(r) : page(snapshot, output);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return command(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 2;
  }
}
