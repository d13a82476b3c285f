// SPDX-License-Identifier: Apache-2.0
// A snapshot of memory as one page: inline SVG and CSS, no script, no network.
#include "runtime/memory_report.hpp"
#include "support/html_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

// Okabe and Ito's colours, in an order in which they stay apart in grey, too; the last is that of all other labels.
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442", "#999999"};
constexpr std::size_t kNamed = std::size(kColours) - 1;
constexpr double kWidth = 1000, kHeight = 300;

std::string name_text(const std::string& label) { return label.empty() ? std::string("(no label)") : html_text(label); }

std::uint64_t sum(const std::vector<std::uint64_t>& bytes, std::size_t from = 0) {
  return std::accumulate(bytes.begin() + static_cast<std::ptrdiff_t>(std::min(from, bytes.size())), bytes.end(), std::uint64_t{0});
}

std::string timeline_svg(const MemoryTimeline& timeline) {
  const std::size_t n = timeline.points.size();
  const double most = static_cast<double>(std::max<std::uint64_t>(sum(timeline.peak.bytes), 1));
  auto x = [&](std::size_t i) { return kWidth * static_cast<double>(i) / static_cast<double>(n); };
  auto y = [&](std::uint64_t bytes) { return kHeight * (1 - static_cast<double>(bytes) / most); };
  std::string svg = fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"Bytes in blocks by label\">\n", kWidth, kHeight);
  const std::size_t shown = std::min(timeline.labels.size(), kNamed + 1);
  std::vector<std::uint64_t> base(n, 0);
  for (std::size_t label = 0; label < shown; ++label) {
    std::vector<std::uint64_t> top = base;
    for (std::size_t i = 0; i < n; ++i) top[i] += label < kNamed ? timeline.points[i].bytes[label] : sum(timeline.points[i].bytes, kNamed);
    std::string path;
    for (std::size_t i = 0; i < n; ++i) path += fmt::format("{}{:.1f},{:.1f}H{:.1f}", i == 0 ? "M" : "L", x(i), y(top[i]), x(i + 1));
    for (std::size_t i = n; i-- > 0;) path += fmt::format("L{:.1f},{:.1f}H{:.1f}", x(i + 1), y(base[i]), x(i));
    svg += fmt::format("<path d=\"{}Z\" fill=\"{}\"><title>{}</title></path>\n", path, kColours[label],
                       label < kNamed ? name_text(timeline.labels[label]) : "others");
    base = std::move(top);
  }
  return svg + "</svg>\n";
}

std::string peak_table(const MemoryTimeline& timeline) {
  const std::vector<std::uint64_t>& bytes = timeline.peak.bytes;
  const std::uint64_t total = sum(bytes);
  std::string rows;
  for (std::size_t i = 0; i < timeline.labels.size() && bytes[i] > 0; ++i)
    rows += fmt::format("<tr><td><i style=\"background:{}\"></i>{}</td><td>{}</td><td>{}</td><td>{:.1f} %</td></tr>\n", kColours[std::min(i, kNamed)],
                        name_text(timeline.labels[i]), bytes_text(bytes[i]), timeline.blocks_at_peak[i],
                        100 * static_cast<double>(bytes[i]) / static_cast<double>(std::max<std::uint64_t>(total, 1)));
  return fmt::format(
      "<h3>The peak: {}, after {} of {} allocations and frees</h3>\n<table><tr><th>label</th><th>bytes</th><th>blocks</th><th>part</th></tr>\n{}</table>\n",
      bytes_text(total), timeline.peak.event, timeline.events, rows);
}

std::string segments_svg(const MemorySnapshot& snapshot, int device, const MemoryTimeline& timeline) {
  std::map<std::string, std::size_t> colour;
  for (std::size_t i = 0; i < timeline.labels.size(); ++i) colour[timeline.labels[i]] = std::min(i, kNamed);
  std::string rows;
  for (const MemorySegment& segment : snapshot.segments) {
    if (segment.device != device) continue;
    rows += fmt::format(
        "<p class=\"segment\">{:#x}, {}: {} of {} in use, stream {}, pool {{{}, {}}}{}</p>\n<svg viewBox=\"0 0 {:.0f} 16\" preserveAspectRatio=\"none\">",
        segment.address, segment.small ? "small" : "large", bytes_text(segment.allocated_size), bytes_text(segment.total_size), segment.stream,
        segment.pool.first, segment.pool.second, segment.is_expandable ? ", grows" : "", kWidth);
    for (const MemoryBlock& block : segment.blocks) {
      const double scale = kWidth / static_cast<double>(std::max<std::uint64_t>(segment.total_size, 1));
      const bool free = block.state == "inactive";
      auto found = colour.find(block.label);
      rows += fmt::format("<rect x=\"{:.2f}\" width=\"{:.2f}\" height=\"16\" class=\"{}\" fill=\"{}\"><title>{}{:#x}: {} ({} wanted), {}</title></rect>",
                          static_cast<double>(block.address - segment.address) * scale, static_cast<double>(block.size) * scale, block.state,
                          free ? "none" : kColours[found == colour.end() ? kNamed : found->second], free ? "" : name_text(block.label) + " at ", block.address,
                          bytes_text(block.size), bytes_text(block.requested_size), block.state);
    }
    rows += "</svg>\n";
  }
  return rows;
}

constexpr std::string_view kStyle = R"(<style>
:root { color-scheme: light dark; font: 15px/1.4 system-ui, sans-serif; }
body { max-width: 70rem; margin: 1rem auto; padding: 0 1rem; }
svg { width: 100%; border: 1px solid #8888; display: block; }
.segment { margin: .6rem 0 .1rem; font-size: .85rem; }
.segment + svg { height: 16px; }
rect { stroke: #8888; stroke-width: .5; }
.active_awaiting_free { fill-opacity: .4; }
table { border-collapse: collapse; }
td, th { padding: .1rem .8rem .1rem 0; text-align: right; white-space: nowrap; }
td:first-child, th:first-child { text-align: left; white-space: normal; }
i { display: inline-block; width: .8em; height: .8em; margin-right: .4em; }
</style>
)";

}  // namespace

std::string page_of(const MemorySnapshot& snapshot) {
  std::string page =
      "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>Memory</title>\n";
  page += kStyle;
  page += "<h1>Memory</h1>\n";
  int devices = static_cast<int>(snapshot.device_traces.size());
  for (const MemorySegment& segment : snapshot.segments) devices = std::max(devices, segment.device + 1);
  for (int device = 0; device < devices; ++device) {
    const MemoryTimeline timeline = timeline_of(snapshot, static_cast<std::size_t>(device));
    std::uint64_t reserved = 0, allocated = 0;
    for (const MemorySegment& segment : snapshot.segments)
      if (segment.device == device) reserved += segment.total_size, allocated += segment.allocated_size;
    if (reserved == 0 && timeline.events == 0) continue;
    page += fmt::format("<h2>Device {}: {} in blocks, {} in segments</h2>\n", device, bytes_text(allocated), bytes_text(reserved));
    if (timeline.events > 0)
      page += timeline_svg(timeline);
    else
      page += "<p>No history was recorded: record_memory_history() begins one.</p>\n";
    page += peak_table(timeline);
    page += "<h3>Segments</h3>\n" + segments_svg(snapshot, device, timeline);
  }
  if (!snapshot.settings.last_allocator_settings.empty())
    page += fmt::format("<p>CLUTCH_ALLOC_CONF={}</p>\n", html_text(snapshot.settings.last_allocator_settings));
  return page + "</html>\n";
}

}}}  // namespace clutch::v0::detail
