// SPDX-License-Identifier: Apache-2.0
// A snapshot of memory as one page: inline SVG and CSS, no script, no network. What tips tell is in tables, too, as fingers have no tips.
#include "runtime/memory_report.hpp"
#include "support/html_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

// Labels have a colour each while there are some left; kPageOther is that of all others.
constexpr std::size_t kNamed = kPageColours.size();
constexpr double kWidth = 1000, kHeight = 260;
constexpr std::size_t kMostLabels = 60, kMostSegments = 100, kMostBlocks = 12;

constexpr std::string_view kStyle = R"(
h3{font-size:15px;margin:20px 0 6px}
p{margin:6px 0}
.chart{display:grid;grid-template-columns:auto 1fr;gap:2px 8px;margin:12px 0}
.chart svg{display:block;width:100%;height:260px;background:var(--panel);border-radius:3px}
.chart .up{display:flex;flex-direction:column;justify-content:space-between;text-align:right;white-space:nowrap}
.chart .up,.chart .along{font-size:12px;color:var(--soft)}
.chart .along{grid-column:2;display:flex;justify-content:space-between;gap:8px}
.chart line{stroke:var(--ink);stroke-opacity:.5;stroke-dasharray:4 4;vector-effect:non-scaling-stroke}
.swatch{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:6px}
td{overflow-wrap:anywhere}tr:target td{background:var(--panel);box-shadow:inset 0 0 0 1px #56b4e9}
details{margin:8px 0}summary{cursor:pointer;font-size:13px;color:var(--soft);overflow-wrap:anywhere}
.segment summary{list-style:none}.segment summary::-webkit-details-marker{display:none}
.segment summary::before{content:"▸ "}.segment[open] summary::before{content:"▾ "}
.segment svg{display:block;width:100%;height:18px;margin-top:2px;background:var(--panel);border-radius:3px}
.segment rect{stroke:var(--back);stroke-width:1;vector-effect:non-scaling-stroke}
.free{fill:none}.awaits{fill-opacity:.45}
)";

const char* colour_of(std::size_t label) { return label < kNamed ? kPageColours.at(label) : kPageOther; }
std::string swatch(std::size_t label) { return fmt::format("<i class=\"swatch\" style=\"background:{}\"></i>", colour_of(label)); }
std::string name_text(const std::string& label) { return label.empty() ? std::string("(no label)") : html_words(label); }
/// The same for a tip.
std::string tip_text(const std::string& label) { return label.empty() ? std::string("(no label)") : html_text(label); }
double part_of(std::uint64_t bytes, std::uint64_t all) { return static_cast<double>(bytes) / static_cast<double>(std::max<std::uint64_t>(all, 1)); }

std::uint64_t sum(const std::vector<std::uint64_t>& bytes, std::size_t from = 0) {
  return std::accumulate(bytes.begin() + static_cast<std::ptrdiff_t>(std::min(from, bytes.size())), bytes.end(), std::uint64_t{0});
}

std::string_view state_text(std::string_view state) {
  return state == "inactive" ? "free" : state == "active_allocated" ? "in use" : "freed, awaits other streams";
}

/// One device's part of the page.
class DevicePart {
 public:
  DevicePart(const MemorySnapshot& snapshot, int device) : device_(device), timeline_(timeline_of(snapshot, static_cast<std::size_t>(device))) {
    for (const MemorySegment& segment : snapshot.segments)
      if (segment.device == device) segments_.push_back(&segment), reserved_ += segment.total_size, allocated_ += segment.allocated_size;
    for (std::size_t i = 0; i < timeline_.labels.size(); ++i) label_of_[timeline_.labels[i]] = i;
    if (static_cast<std::size_t>(device) >= snapshot.device_traces.size()) return;
    for (const MemoryTraceEntry& entry : snapshot.device_traces[static_cast<std::size_t>(device)]) {
      if (entry.time_us <= 0) continue;
      if (first_us_ == 0) first_us_ = entry.time_us;
      last_us_ = std::max(last_us_, entry.time_us);
    }
  }
  bool empty() const { return segments_.empty() && timeline_.events == 0; }

  std::string text() {
    out_ = fmt::format("<h2>Device {}</h2>\n<div class=\"facts\">", device_);
    out_ += page_fact("in blocks", bytes_text(allocated_)) + page_fact("in segments", bytes_text(reserved_));
    out_ += page_fact("segments", fmt::format("{}", segments_.size()));
    if (timeline_.events > 0) {
      out_ += page_fact("the peak", bytes_text(sum(timeline_.peak.bytes)));
      out_ += page_fact("allocations and frees", fmt::format("{}", timeline_.events));
      if (last_us_ > first_us_) out_ += page_fact("time of the history", duration_text(static_cast<double>(last_us_ - first_us_)));
    }
    out_ += "</div>\n";
    if (timeline_.events > 0) {
      write_timeline();
      write_peak();
    } else {
      out_ += "<p class=\"note\">No history was recorded: record_memory_history() begins one.</p>\n";
    }
    write_segments();
    return std::move(out_);
  }

 private:
  std::string row_id(std::size_t label) const { return fmt::format("d{}l{}", device_, std::min(label, kNamed)); }

  void write_timeline() {
    const std::size_t n = timeline_.points.size();
    const std::uint64_t peak = sum(timeline_.peak.bytes);
    const double most = static_cast<double>(std::max<std::uint64_t>(peak, 1));
    auto x = [&](std::size_t i) { return kWidth * static_cast<double>(i) / static_cast<double>(n); };
    auto y = [&](std::uint64_t bytes) { return kHeight * (1 - static_cast<double>(bytes) / most); };
    out_ += fmt::format(
        "<h3>Bytes in blocks by label</h3>\n<div class=\"chart\"><div class=\"up\"><span>{}</span><span>{}</span><span>0</span></div><svg viewBox=\"0 0 {:.0f} "
        "{:.0f}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Bytes in blocks by label\">\n",
        bytes_text(peak), bytes_text(peak / 2), kWidth, kHeight);
    const std::size_t shown = std::min(timeline_.labels.size(), kNamed + 1);
    std::vector<std::uint64_t> base(n, 0);
    for (std::size_t label = 0; label < shown; ++label) {
      std::vector<std::uint64_t> top = base;
      for (std::size_t i = 0; i < n; ++i) top[i] += label < kNamed ? timeline_.points[i].bytes[label] : sum(timeline_.points[i].bytes, kNamed);
      std::string path;
      for (std::size_t i = 0; i < n; ++i) path += fmt::format("{}{:.1f},{:.1f}H{:.1f}", i == 0 ? "M" : "L", x(i), y(top[i]), x(i + 1));
      for (std::size_t i = n; i-- > 0;) path += fmt::format("L{:.1f},{:.1f}H{:.1f}", x(i + 1), y(base[i]), x(i));
      out_ += fmt::format("<a href=\"#{}\"><path d=\"{}Z\" fill=\"{}\"><title>{}</title></path></a>\n", row_id(label), path, colour_of(label),
                          label < kNamed ? tip_text(timeline_.labels[label]) : "others");
      base = std::move(top);
    }
    out_ += fmt::format(
        "<line x1=\"0\" x2=\"{0:.0f}\" y1=\"{1:.0f}\" y2=\"{1:.0f}\"/></svg><div class=\"along\"><span>0</span><span>{2}</span><span>{3} allocations and "
        "frees</span></div></div>\n",
        kWidth, kHeight / 2, timeline_.events / 2, timeline_.events);
  }

  void write_peak() {
    const std::vector<std::uint64_t>& bytes = timeline_.peak.bytes;
    const std::uint64_t total = sum(bytes), blocks = sum(timeline_.blocks_at_peak);
    out_ += fmt::format("<h3>The peak: {}, after {} of {} allocations and frees</h3>\n<p class=\"note\">{} {}", bytes_text(total), timeline_.peak.event,
                        timeline_.events, blocks, blocks == 1 ? "block" : "blocks");
    if (timeline_.raised_by_bytes > 0)
      out_ += fmt::format(", the last of {} for {}", bytes_text(timeline_.raised_by_bytes), name_text(timeline_.raised_by_label));
    if (timeline_.reserved_at_peak > 0 && total > 0)
      out_ += fmt::format(". Segments had {} then, {:.2f} times as much", bytes_text(timeline_.reserved_at_peak),
                          static_cast<double>(timeline_.reserved_at_peak) / static_cast<double>(total));
    out_ += ".</p>\n<div class=\"wide\"><table><tr><th>label</th><th>bytes</th><th>blocks</th><th>part</th></tr>\n";
    std::size_t rows = 0;
    for (; rows < timeline_.labels.size() && rows < kMostLabels && (bytes[rows] > 0 || rows <= kNamed); ++rows)
      out_ += fmt::format("<tr{}><td>{}{}</td><td>{}</td><td>{}</td><td>{:.1f} %</td></tr>\n",
                          rows <= kNamed ? fmt::format(" id=\"{}\"", row_id(rows)) : std::string(), swatch(rows), name_text(timeline_.labels[rows]),
                          bytes_text(bytes[rows]), timeline_.blocks_at_peak[rows], 100 * part_of(bytes[rows], total));
    out_ += "</table></div>\n";
    std::size_t more = 0;
    for (std::size_t i = rows; i < bytes.size(); ++i) more += bytes[i] > 0;
    if (more > 0) out_ += fmt::format("<p class=\"note\">{} more labels have {}.</p>\n", more, bytes_text(sum(bytes, rows)));
  }

  void write_segments() {
    if (segments_.empty()) return;
    out_ += "<h3>Segments</h3>\n<p class=\"note\">What is free has no colour; pale blocks were freed and await other streams.</p>\n";
    std::vector<const MemorySegment*> used, unused;
    std::uint64_t unused_bytes = 0;
    for (const MemorySegment* segment : segments_) {
      const bool idle = segment->active_size == 0 && segment->allocated_size == 0;
      (idle ? unused : used).push_back(segment);
      if (idle) unused_bytes += segment->total_size;
    }
    for (std::size_t i = 0; i < std::min(used.size(), kMostSegments); ++i) write_segment(*used[i]);
    if (used.size() > kMostSegments) {
      std::uint64_t bytes = 0;
      for (std::size_t i = kMostSegments; i < used.size(); ++i) bytes += used[i]->total_size;
      out_ += fmt::format("<p class=\"note\">{} more segments have {}.</p>\n", used.size() - kMostSegments, bytes_text(bytes));
    }
    if (unused.empty()) return;
    out_ += fmt::format("<details><summary>{} {} of {} without a block in use</summary>\n", unused.size(), unused.size() == 1 ? "segment" : "segments",
                        bytes_text(unused_bytes));
    for (std::size_t i = 0; i < std::min(unused.size(), kMostSegments); ++i) out_ += fmt::format("<p class=\"note\">{}</p>\n", title_of(*unused[i]));
    out_ += "</details>\n";
  }

  static std::string title_of(const MemorySegment& segment) {
    return fmt::format("{:#x}, {}: {} of {} in use, stream {}, pool {{{}, {}}}{}", segment.address, segment.small ? "small" : "large",
                       bytes_text(segment.allocated_size), bytes_text(segment.total_size), segment.stream, segment.pool.first, segment.pool.second,
                       segment.is_expandable ? ", grows" : "");
  }

  std::size_t label_of(const MemoryBlock& block) const {
    auto found = label_of_.find(block.label);
    return found == label_of_.end() ? kNamed : found->second;
  }

  /// A bar of the blocks, and a table of the largest ones. Neighbours that a screen cannot tell apart are one shape.
  void write_segment(const MemorySegment& segment) {
    out_ += fmt::format("<details class=\"segment\"><summary>{}<svg viewBox=\"0 0 {:.0f} 18\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"blocks\">",
                        title_of(segment), kWidth);
    const double scale = kWidth / static_cast<double>(std::max<std::uint64_t>(segment.total_size, 1));
    auto rect = [&](std::uint64_t begin, std::uint64_t size, std::string_view kind, const char* colour, const std::string& tip) {
      out_ += fmt::format("<rect x=\"{:.2f}\" width=\"{:.2f}\" height=\"18\" class=\"{}\"{}><title>{}</title></rect>",
                          static_cast<double>(begin - segment.address) * scale, std::max(static_cast<double>(size) * scale, 0.4), kind,
                          kind == "free" ? std::string() : fmt::format(" fill=\"{}\"", colour), tip);
    };
    std::vector<const MemoryBlock*> live;
    std::uint64_t begin = 0, size = 0, in_use = 0;
    std::size_t count = 0;
    auto flush = [&] {
      if (count > 0) rect(begin, size, in_use > 0 ? "in" : "free", kPageOther, fmt::format("{} small blocks, {} in use", count, bytes_text(in_use)));
      count = 0, size = in_use = 0;
    };
    for (const MemoryBlock& block : segment.blocks) {
      const bool free = block.state == "inactive";
      if (!free) live.push_back(&block);
      if (static_cast<double>(block.size) * scale < 1) {
        if (count++ == 0) begin = block.address;
        size += block.size, in_use += free ? 0 : block.size;
        if (static_cast<double>(size) * scale >= 2) flush();
        continue;
      }
      flush();
      rect(block.address, block.size,
           free                                ? "free"
           : block.state == "active_allocated" ? "in"
                                               : "awaits",
           colour_of(label_of(block)),
           fmt::format("{}{:#x}: {}{}, {}", free ? std::string() : tip_text(block.label) + " at ", block.address, bytes_text(block.size),
                       free ? std::string() : fmt::format(" ({} wanted)", bytes_text(block.requested_size)), state_text(block.state)));
    }
    flush();
    out_ += "</svg></summary>\n";
    std::stable_sort(live.begin(), live.end(), [](const MemoryBlock* a, const MemoryBlock* b) { return a->size > b->size; });
    out_ +=
        "<div class=\"wide\"><table><tr><th>largest blocks</th><th>bytes</th><th class=\"more\">wanted</th><th "
        "class=\"more\">address</th><th>state</th></tr>\n";
    for (std::size_t i = 0; i < std::min(live.size(), kMostBlocks); ++i)
      out_ += fmt::format("<tr><td>{}{}</td><td>{}</td><td class=\"more\">{}</td><td class=\"more\">{:#x}</td><td>{}</td></tr>\n", swatch(label_of(*live[i])),
                          name_text(live[i]->label), bytes_text(live[i]->size), bytes_text(live[i]->requested_size), live[i]->address,
                          live[i]->state == "active_allocated" ? "in use" : "freed");
    out_ += "</table></div>\n";
    if (live.size() > kMostBlocks) out_ += fmt::format("<p class=\"note\">{} more blocks are in use.</p>\n", live.size() - kMostBlocks);
    out_ += "</details>\n";
  }

  int device_;
  MemoryTimeline timeline_;
  std::vector<const MemorySegment*> segments_;
  std::map<std::string, std::size_t> label_of_;
  std::uint64_t reserved_ = 0, allocated_ = 0;
  std::int64_t first_us_ = 0, last_us_ = 0;
  std::string out_;
};

}  // namespace

std::string page_of(const MemorySnapshot& snapshot) {
  std::string page = page_head("clutch memory", kStyle) + "<h1>Memory</h1>\n";
  int devices = static_cast<int>(snapshot.device_traces.size());
  for (const MemorySegment& segment : snapshot.segments) devices = std::max(devices, segment.device + 1);
  bool any = false;
  for (int device = 0; device < devices; ++device)
    if (DevicePart part(snapshot, device); !part.empty()) any = true, page += part.text();
  if (!any) page += "<p class=\"note\">There are no segments, and no history was recorded: record_memory_history() begins one.</p>\n";
  if (!snapshot.settings.last_allocator_settings.empty())
    page += fmt::format("<p class=\"note\">CLUTCH_ALLOC_CONF={}</p>\n", html_words(snapshot.settings.last_allocator_settings));
  return page + "</body></html>\n";
}

}}}  // namespace clutch::v0::detail
