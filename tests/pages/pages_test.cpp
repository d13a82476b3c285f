// SPDX-License-Identifier: Apache-2.0
// Pages of profiles, of memory, of graphs and of benches: real ones, empty ones, large ones and such of odd names. They stay in the
// folder of PAGES, where the test pages_look sees them in a browser.
#include <clutch/clutch.hpp>
#include <clutch/profiler.hpp>

#include "graph/html.hpp"
#include "harness/bench.hpp"
#include "profile/profile.hpp"
#include "runtime/memory_report.hpp"
#include "support/fixture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <random>

namespace clutch::testing { namespace {

namespace fs = std::filesystem;

const fs::path& folder() {
  static const fs::path path = [] {
    const char* wanted = std::getenv("PAGES");
    fs::path at = wanted ? fs::path(wanted) : fs::temp_directory_path() / "clutch_pages";
    fs::remove_all(at);
    fs::create_directories(at);
    return at;
  }();
  return path;
}
std::string path_of(std::string_view name) { return (folder() / fmt::format("{}.html", name)).string(); }
std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}
void write(std::string_view name, const std::string& text) { std::ofstream(path_of(name), std::ios::binary) << text; }

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

/// What a look at the text of a page finds wrong; the last test looks at how all nest.
std::string faults(std::string_view name) {
  const std::string text = read(path_of(name));
  std::string wrong;
  if (count(text, "<meta name=\"viewport\" content=\"width=device-width") != 1) wrong += "no viewport; ";
  if (!text.ends_with("</body></html>") && !text.ends_with("</body></html>\n")) wrong += "no end; ";
  for (const char* part : {"<script", "src=", "http:", "https:", "url(", "@import", " on=", "nan", "-inf"})
    if (text.find(part) != std::string::npos && text.find(fmt::format("class=\"{}", part)) == std::string::npos) wrong += fmt::format("it has {}; ", part);
  return wrong;
}

/// Names that a page must neither obey nor break at.
const std::vector<std::string>& odd_names() {
  static const std::vector<std::string> names{
      "<script>alert(\"x\")</script>",
      "a \"quoted\" & 'other' name",
      "]]></style><b>bold</b>",
      std::string(300, 'm'),
      "kernel_with_a_very_long_name_of_many_words_" + std::string(40, 'x') + "::and::a::space::for::each::of::them<float, 4, true>",
      "控制流的内核名称很长很长很长很长很长很长很长很长很长很长",
      "bytes \xFF\x01 that are no text",
      "\xF0\x9F\x98\x80 مرحبا",
      " ",
      "x"};
  return names;
}

/// A profile of made-up commands, as text of a page.
class MadeUp {
 public:
  explicit MadeUp(std::uint64_t length_ns) {
    profile_.log = std::make_unique<detail::ProfileLog>(detail::ProfileLogOptions{});
    profile_.log->start = kStart, profile_.log->stop = kStart + length_ns;
    profile_.devices[0] = {.name = "a device, made up", .roof = {.flops = 1e12, .bytes = 1e11, .flops64 = 5e11}};
  }
  detail::ProfiledDevice& device() { return profile_.devices[0]; }
  std::uint64_t op(std::string_view name, std::uint64_t begin, std::uint64_t end, std::uint32_t thread = 1) {
    detail::ProfileRecord r;
    r.kind = detail::RecordKind::op, r.thread = thread, r.begin = kStart + begin, r.end = kStart + end;
    return add(r, name);
  }
  void kernel(std::string_view name, std::uint64_t begin, std::uint64_t end, std::uint64_t stream = 1, double flops = 0, double bytes = 0,
              std::uint64_t parent = 0) {
    detail::ProfileRecord r;
    r.kind = detail::RecordKind::kernel, r.stream = stream, r.begin = kStart + begin, r.end = kStart + end, r.queued = r.begin;
    r.flops = flops, r.bytes = bytes, r.parent = parent;
    add(r, name);
  }
  void write(std::string_view name) {
    std::stable_sort(profile_.order.begin(), profile_.order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return profile_.record(a).begin < profile_.record(b).begin; });
    detail::write_html(profile_, path_of(name));
  }

 private:
  static constexpr std::uint64_t kStart = 1'000'000;
  std::uint64_t add(detail::ProfileRecord& r, std::string_view name) {
    r.finished = true, r.id = profile_.log->next_id(), r.name = profile_.log->keep(name);
    const auto index = static_cast<std::uint32_t>(profile_.log->size());
    profile_.log->add(r);
    profile_.order.push_back(index);
    if (r.kind == detail::RecordKind::op) profile_.scopes[r.id] = index;
    return r.id;
  }
  detail::Profile profile_;
};

TEST(Pages, OfProfiles) {
  const Device& device = test_devices().front();
  const Stream stream(device), side(device);
  const Tensor x = full({256, 64}, 2, {.device = device}, stream), w = full({64, 64}, 0.01, {.device = device}, stream);
  auto layer = [&](const Tensor& in, const Stream& on) { return nn::softmax(exp(linalg::matmul(in, w, {}, on), {}, on), -1, on); };
  Graph graph;
  Tensor out;
  {
    GraphCapture capture(graph, stream);
    const GraphAnnotation annotation("layer \"one\"", {{"size", "64"}});
    out = layer(x, stream);
  }
  graph.replay(stream);
  stream.synchronize();
  (void)layer(x, side);
  side.synchronize();
  profiler::Profiler profiler({.profile_memory = true, .roof = {.flops = 1e11, .bytes = 1e10}});
  profiler.start();
  for (int i = 0; i < 20; ++i) (void)layer(x, i % 4 == 0 ? side : stream);
  for (int i = 0; i < 5; ++i) graph.replay(stream);
  (void)out.to_bytes();
  profiler.stop();
  profiler.export_html(path_of("profile"));
  EXPECT_EQ(faults("profile"), "");
  const std::string page = read(path_of("profile"));
  for (const char* part : {"Timeline", "Commands by time", "Roofline", "<circle", "The longest commands", "Idle gaps", "softmax"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  EXPECT_GE(count(page, ">device 0, stream "), 2u * (count(page, "with most of the device's work") + 1));
}

TEST(Pages, OfFewEventsAndOfNone) {
  MadeUp nothing(0);
  nothing.write("profile_empty");
  EXPECT_EQ(faults("profile_empty"), "");
  EXPECT_NE(read(path_of("profile_empty")).find("No command was recorded"), std::string::npos);
  MadeUp one(1'000'000);
  one.kernel("only", 400'000, 400'001, 1, 1, 1);
  one.write("profile_one");
  EXPECT_EQ(faults("profile_one"), "");
  const std::string page = read(path_of("profile_one"));
  EXPECT_EQ(count(page, "<a href=\"#c0\"><rect"), 2u) << "in the whole and in the stretch of most work";
  EXPECT_EQ(count(page, "<tr id=\"c0\"><td>only<"), 1u);
  // Commands of no length, out of the recorded time, and a device whose roof is not known.
  MadeUp edge(10);
  edge.device().roof = {};
  edge.kernel("empty", 5, 5), edge.kernel("late", 20, 1'000'000'000'000);
  edge.write("profile_edge");
  EXPECT_EQ(faults("profile_edge"), "");
  EXPECT_NE(read(path_of("profile_edge")).find("The device's roof is not known"), std::string::npos);
}

TEST(Pages, OfOddNames) {
  MadeUp odd(2'000'000'000);
  // Limits of matrix instructions that are close to one another, and speeds over many decades.
  odd.device().name = odd_names()[0] + odd_names()[3];
  odd.device().roof.matrix = {{"f16", 8e12}, {"bf16", 8e12}, {"tf32", 7e12}, {"2:4 f16", 1.5e13}, {"i8", 1.6e13}};
  std::uint64_t at = 0;
  for (int round = 0; round < 40; ++round)
    for (std::size_t i = 0; i < odd_names().size(); ++i) {
      const std::uint64_t length = 100'000 + 37'000 * i;
      const std::uint64_t op = odd.op(odd_names()[(i + 3) % odd_names().size()], at, at + length, static_cast<std::uint32_t>(1 + i % 3));
      odd.kernel(odd_names()[i], at + 20'000, at + length, 1 + i % 4, std::pow(10.0, static_cast<double>(i)), 1e5, op);
      at += length + (i == 0 ? 1'000'000 : 0);
    }
  odd.write("profile_odd");
  EXPECT_EQ(faults("profile_odd"), "");
  const std::string page = read(path_of("profile_odd"));
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
  EXPECT_EQ(page.find("<b>bold"), std::string::npos);
}

TEST(Pages, OfManyEvents) {
  MadeUp many(3'000'000'000);
  std::mt19937 random(1);
  std::array<std::uint64_t, 100> at{};
  for (int i = 0; i < 100'000; ++i) {
    const std::size_t lane = random() % 100;
    const std::uint64_t begin = at.at(lane) + random() % 1'000'000, end = begin + 1000 + random() % 2'000'000;
    at.at(lane) = end;
    if (lane < 40)
      many.op(fmt::format("op_{}", random() % 50), begin, end, static_cast<std::uint32_t>(lane + 1));
    else
      many.kernel(fmt::format("kernel_{}", random() % 500), begin, end, lane, 1e6, 1e6);
  }
  many.write("profile_many");
  EXPECT_EQ(faults("profile_many"), "");
  const std::string page = read(path_of("profile_many"));
  EXPECT_NE(page.find("470 more names take less"), std::string::npos);
  EXPECT_NE(page.find("36 more threads and streams"), std::string::npos);
  EXPECT_LE(count(page, "<rect"), 24'000u);
  EXPECT_LT(page.size(), std::size_t{4} << 20);
}

/// Takes blocks of made-up segments and frees them, and notes it as a history.
class MadeUpMemory {
 public:
  static constexpr std::uint64_t kSegment = 20 << 20;
  MadeUpMemory() { snapshot.device_traces.resize(1); }
  std::uint64_t take(std::uint64_t size, const std::string& label) {
    for (auto& [address, room] : free_)
      if (room >= size) {
        const std::uint64_t at = address, rest = room - size;
        free_.erase(at);
        if (rest > 0) free_[at + size] = rest;
        live_[at] = {size, label};
        note("alloc", at, size, label);
        return at;
      }
    const std::uint64_t at = (++segments_ << 40), whole = std::max(kSegment, size);
    sizes_[at] = whole, free_[at] = whole;
    note("segment_alloc", at, whole, {});
    return take(size, label);
  }
  void give(std::uint64_t at) {
    const auto [size, label] = live_.at(at);
    live_.erase(at);
    free_[at] = size;
    note("free_requested", at, size, label), note("free_completed", at, size, label);
    // With its neighbours, if they are free.
    auto here = free_.find(at);
    if (auto next = std::next(here); next != free_.end() && next->first == at + size && !sizes_.contains(next->first))
      here->second += next->second, free_.erase(next);
    if (here != free_.begin() && !sizes_.contains(at))
      if (auto before = std::prev(here); before->first + before->second == at) before->second += here->second, free_.erase(here);
  }
  MemorySnapshot end() {
    for (const auto& [at, whole] : sizes_) {
      MemorySegment segment;
      segment.address = at, segment.total_size = whole, segment.stream = 1 + (at >> 40) % 2;
      for (auto [address, room] : free_)
        if (address >= at && address < at + whole) segment.blocks.push_back({.address = address, .size = room, .state = "inactive"});
      for (const auto& [address, block] : live_)
        if (address >= at && address < at + whole) {
          const bool awaits = address % 3 == 0;
          segment.blocks.push_back({address, block.first, block.first, awaits ? "active_awaiting_free" : "active_allocated", block.second});
          (awaits ? segment.active_size : segment.allocated_size) += block.first;
          segment.requested_size += block.first;
        }
      segment.active_size += segment.allocated_size;
      std::sort(segment.blocks.begin(), segment.blocks.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
      snapshot.segments.push_back(std::move(segment));
    }
    return snapshot;
  }
  MemorySnapshot snapshot;

 private:
  void note(std::string_view action, std::uint64_t at, std::uint64_t size, const std::string& label) {
    snapshot.device_traces[0].push_back({.action = action, .address = at, .size = size, .stream = 1, .time_us = time_ += 13, .label = label});
  }
  std::map<std::uint64_t, std::uint64_t> free_, sizes_;
  std::map<std::uint64_t, std::pair<std::uint64_t, std::string>> live_;
  std::uint64_t segments_ = 0;
  std::int64_t time_ = 1'700'000'000'000'000;
};

/// Steps of training: weights and moments stay, activations come forwards and go backwards.
MemorySnapshot training(int steps, int layers, const std::vector<std::string>& extra = {}) {
  MadeUpMemory memory;
  for (int layer = 0; layer < layers; ++layer) memory.take(4'200'000, "weights"), memory.take(8'400'000, "moments");
  for (std::size_t i = 0; i < extra.size(); ++i) memory.take(700'000 * (i + 1), extra[i]);
  for (int step = 0; step < steps; ++step) {
    std::vector<std::uint64_t> kept;
    for (int layer = 0; layer < layers; ++layer) {
      kept.push_back(memory.take(1'100'032 + 512 * static_cast<std::uint64_t>(step), fmt::format("layer {}: activations", layer % 3)));
      memory.give(memory.take(600'064, "scratch"));
    }
    while (!kept.empty()) {
      const std::uint64_t gradient = memory.take(2'100'224, "gradients");
      memory.give(kept.back());
      kept.pop_back();
      memory.give(gradient);
    }
  }
  memory.take(1'000'448, "batch");
  return memory.end();
}

TEST(Pages, OfMemory) {
  const MemorySnapshot snapshot = training(4, 12);
  const detail::MemoryTimeline timeline = detail::timeline_of(snapshot, 0);
  // By another way: after every event.
  std::uint64_t held = 0, peak = 0, reserved = 0, reserved_then = 0, last = 0;
  for (const MemoryTraceEntry& entry : snapshot.device_traces[0]) {
    if (entry.action == "segment_alloc") reserved += entry.size;
    if (entry.action == "free_requested") held -= entry.size;
    if (entry.action != "alloc") continue;
    held += entry.size;
    if (held > peak) peak = held, reserved_then = reserved, last = entry.size;
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t bytes : timeline.peak.bytes) sum += bytes;
  EXPECT_EQ(sum, peak);
  EXPECT_EQ(timeline.reserved_at_peak, reserved_then);
  EXPECT_EQ(timeline.raised_by_bytes, last);
  EXPECT_EQ(timeline.raised_by_label, "gradients");
  write("memory", detail::page_of(snapshot));
  EXPECT_EQ(faults("memory"), "");
  const std::string page = read(path_of("memory"));
  for (const char* part :
       {"weights", "moments", "gradients", "The peak", "Segments", "layer 0:<wbr/> activations", "href=\"#d0l0\"", "id=\"d0l0\"", "freed, awaits"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
}

TEST(Pages, OfMemoryWithALabelForEachAllocation) {
  constexpr std::size_t kLabels = 100'000, kPoints = 1000;
  MadeUpMemory memory;
  std::vector<std::uint64_t> held{0};  // after each event
  std::vector<std::uint64_t> blocks;
  for (std::size_t i = 0; i < kLabels; ++i) {
    blocks.push_back(memory.take(512 * (1 + i % 7), fmt::format("tensor {}", i)));
    held.push_back(held.back() + 512 * (1 + i % 7));
    if (i % 3 != 0) continue;
    memory.give(blocks.back());
    held.push_back(held.back() - 512 * (1 + i % 7));
    blocks.pop_back();
  }
  const MemorySnapshot snapshot = memory.end();
  const detail::MemoryTimeline timeline = detail::timeline_of(snapshot, 0, kPoints);
  EXPECT_EQ(timeline.labels.size(), kLabels);
  EXPECT_LE(timeline.points.size(), kPoints);
  for (const auto& point : timeline.points) {
    EXPECT_EQ(point.bytes.size(), detail::kPointLabels + 1);
    EXPECT_EQ(std::accumulate(point.bytes.begin(), point.bytes.end(), std::uint64_t{0}), held[point.event]) << point.event;
  }
  EXPECT_TRUE(std::is_sorted(timeline.peak.bytes.rbegin(), timeline.peak.bytes.rend()));
  EXPECT_LT(detail::page_of(snapshot).size(), 4u << 20);
}

TEST(Pages, OfMemoryOfAProgram) {
  const Device& device = test_devices().front();
  const Stream stream(device), side(device);
  record_memory_history();
  std::vector<Tensor> kept;
  {
    const MemoryLabelGuard label("weights");
    for (int i = 0; i < 8; ++i) kept.push_back(full({200, 1000 + 100 * i}, 1, {.device = device}, i % 2 == 0 ? stream : side));
  }
  synchronize(device);
  for (int step = 0; step < 6; ++step) {
    const MemoryLabelGuard label(fmt::format("step {}", step));
    Tensor x = kept[static_cast<std::size_t>(step)];
    for (int i = 0; i < 5; ++i) x = exp(x, {}, stream);
  }
  synchronize(device);
  const MemorySnapshot snapshot = memory_snapshot();
  stop_memory_history();
  write("memory_program", detail::page_of(snapshot));
  EXPECT_EQ(faults("memory_program"), "");
  EXPECT_NE(read(path_of("memory_program")).find("weights"), std::string::npos);
  dump_memory_snapshot(path_of("memory_dumped"));
  EXPECT_EQ(faults("memory_dumped"), "");
  fs::remove(path_of("memory_dumped"));
}

TEST(Pages, OfMemoryWithOddNamesManyEventsAndNone) {
  write("memory_empty", detail::page_of({}));
  EXPECT_EQ(faults("memory_empty"), "");
  MemorySnapshot no_history = training(1, 3);
  no_history.device_traces.clear();
  no_history.settings.last_allocator_settings = "expandable_segments:False,roundup_power2_divisions:[256:1,512:2,1024:4,>:8],garbage_collection_threshold:0.8";
  write("memory_no_history", detail::page_of(no_history));
  EXPECT_EQ(faults("memory_no_history"), "");
  MadeUpMemory one;
  one.take(1, "one");
  write("memory_one", detail::page_of(one.end()));
  EXPECT_EQ(faults("memory_one"), "");
  write("memory_odd", detail::page_of(training(3, 5, odd_names())));
  EXPECT_EQ(faults("memory_odd"), "");
  EXPECT_EQ(read(path_of("memory_odd")).find("<b>bold"), std::string::npos);

  MadeUpMemory many;
  std::mt19937 random(2);
  std::vector<std::uint64_t> live;
  for (int i = 0; i < 100'000; ++i)
    if (live.size() > 3000 || (!live.empty() && random() % 5 < 2)) {
      std::swap(live[random() % live.size()], live.back());
      many.give(live.back());
      live.pop_back();
    } else {
      live.push_back(many.take(512 * (1 + random() % 1000) * (random() % 20 == 0 ? 40 : 1), fmt::format("label {}", random() % 200)));
    }
  write("memory_many", detail::page_of(many.end()));
  EXPECT_EQ(faults("memory_many"), "");
  EXPECT_LT(fs::file_size(path_of("memory_many")), std::size_t{6} << 20);
}

TEST(Pages, OfGraphsAndBenches) {
  detail::GraphPage page;
  page.device = "a device, made up";
  page.report.backend = "fused", page.report.why = "asked for";
  for (int i = 0; i < 60; ++i) {
    GraphNode node;
    node.id = i, node.op = i < 10 ? odd_names()[static_cast<std::size_t>(i)] : fmt::format("op_{}", i % 7),
    node.kernel = i % 5 == 0 ? odd_names()[4] : "map_contiguous";
    node.stream = static_cast<std::uint64_t>(1 + i % 2), node.measured_us = 10 + i;
    if (i > 0) node.dependencies = {i - 1};
    if (i > 9) node.dependencies.push_back(i - 9);
    if (i % 4 == 0) node.labels = {{odd_names()[static_cast<std::size_t>(i / 4) % odd_names().size()], {{"key", "value"}}}};
    GraphArgument a;
    a.kind = Argument::Kind::output, a.name = "out", a.sizes = {128, 1024, 33}, a.strides = {33792, 33, 1}, a.buffer = i;
    node.arguments = {a};
    page.nodes.push_back(node);
    page.report.buffers.push_back({"temporary", 512, i, std::min(i + 1, 59), 0, static_cast<std::uint64_t>(i % 2) * 512});
  }
  page.report.groups = {{"vertical", "fused<0>", {11, 12, 14}}, {"table", odd_names()[3], {25, 26}}};
  write("graph", detail::html_dump(page));
  EXPECT_EQ(faults("graph"), "");

  std::vector<bench::Result> results;
  for (const char* name : {"addcdiv/f32/1024", "addcdiv/f32/16777216", "networks/transformer/decode/2048_tokens/fused", "eigh/f32/b16384_n8"}) {
    bench::Result r;
    r.row.name = name, r.row.flops = 1e9, r.row.bytes = 1e9, r.device = "a device", r.measured.hot = {.median = 1e-3, .noise_pct = 2};
    r.measured.peers = {{"torch 2.12.1+cu130 compiled (a build of one's own)", {}, 1.5}, {"omp", {}, 0.1}, {"triad", {}, 1}};
    r.gflops = 1000, r.gbps = 1000, r.roofline_pct = 98;
    results.push_back(r);
  }
  results[1].doubts = {"the roofline is lower than the row, by a text that goes on and on and on"};
  results[3].error = odd_names()[0] + " failed: " + odd_names()[3];
  bench::Roofline roof;
  roof.peak_flops = {{"f32", 2e12}, {"f64", 1e12}};
  roof.bandwidth = {{"triad/268435456", 5e10}, {"triad/65536", 5e11}};
  roof.launch_us = 3.5;
  bench::write_html(path_of("bench"), {{"a device", "3.1", "a platform", "abcdef", "2026-11-25T14:01:16Z"}}, {roof}, results);
  EXPECT_NE(read(path_of("bench")).find("Worst and best"), std::string::npos);
}

TEST(Pages, NestAndNeedNothingElse) {
  if (std::string_view(CLUTCH_PYTHON).empty()) return;
  std::string paths;
  for (const auto& entry : fs::directory_iterator(folder()))
    if (entry.path().extension() == ".html" && entry.path().stem() != "bench") paths += fmt::format(" '{}'", entry.path().string());
  const std::string found = (folder() / "found").string();
  EXPECT_EQ(std::system(fmt::format("{} -B {} {} >'{}' 2>&1", CLUTCH_PYTHON, CLUTCH_CHECK_PAGE, paths, found).c_str()), 0) << read(found);
  fs::remove(found);
}

}}  // namespace clutch::testing
