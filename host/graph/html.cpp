// SPDX-License-Identifier: Apache-2.0
// A graph as one page that needs nothing else: what was called, how it replays, how long each node takes and where its memory lies.
#include "graph/html.hpp"

#include "support/html_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

constexpr std::string_view kStyle = R"(
h3{font-size:14px;font-weight:500;color:var(--soft);margin:14px 0 4px}
.map{display:block;width:100%;background:var(--panel);border-radius:4px}
.map *{vector-effect:non-scaling-stroke}
.map .edge{fill:none;stroke:var(--soft);stroke-width:1;stroke-opacity:.55}
.map .box{fill:none;stroke-width:1.5}
.map .live{fill:var(--soft);fill-opacity:.3}.map .held{stroke:var(--ink);stroke-width:1;stroke-dasharray:5 4}
.map .block{stroke:var(--panel);stroke-width:1}
.ends{display:flex;justify-content:space-between;gap:12px;font-size:12px;color:var(--soft);margin-top:2px}
.node summary{display:grid;grid-template-columns:4em minmax(9em,1.1fr) minmax(10em,1.6fr) minmax(8em,1fr) minmax(0,1.4fr) 8em;gap:2px 10px;align-items:baseline;
padding:4px 8px;border-bottom:1px solid var(--line);cursor:pointer;list-style:none}
.node summary::-webkit-details-marker{display:none}
.node summary:hover,.node[open] summary{background:var(--panel)}
.node:target summary{outline:2px solid #56b4e9;outline-offset:-2px}
.node .id{color:var(--soft);font-variant-numeric:tabular-nums}
.node i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:6px}
.node b{font-weight:600;overflow-wrap:anywhere}
.node code,.group code{font:13px/1.4 ui-monospace,monospace;overflow-wrap:anywhere}
.node .soft,.group .soft{color:var(--soft);font-size:13px;overflow-wrap:anywhere}
.node .time{text-align:right;font-variant-numeric:tabular-nums}
.node .time u{display:block;height:4px;border-radius:2px;margin:2px 0 0 auto}
.node .why{grid-column:2/-1}
.chip{display:inline-block;border:1px solid var(--line);border-radius:9px;padding:0 7px;margin:0 4px 2px 0;font-size:12px;overflow-wrap:anywhere}
.inside{padding:6px 8px 12px 30px;border-bottom:1px solid var(--line)}
.inside p{margin:4px 0;font-size:13px;overflow-wrap:anywhere}.inside a{color:inherit}
.inside td,.inside th{text-align:left;font-size:13px;white-space:normal}
.inside td:first-child,.inside th:first-child{overflow-wrap:normal;white-space:nowrap}.inside td:nth-child(3){overflow-wrap:anywhere}
.group{border:2px solid;border-radius:8px;margin:8px 0;overflow:hidden}
.group header{display:flex;flex-wrap:wrap;gap:2px 12px;align-items:baseline;padding:6px 8px;background:var(--panel)}
.group header span:last-child{margin-left:auto}
.group .node:last-child summary{border-bottom:0}
@media(max-width:900px){
.node summary{grid-template-columns:3.4em 1fr auto;gap:1px 8px}
.node .kernel{grid-column:2}.node .result{grid-column:3;text-align:right}.node .labels,.node .why{grid-column:2/-1}
.node .time{grid-column:3;grid-row:1}.inside{padding-left:8px}}
)";

constexpr double kWidth = 1000;
constexpr std::size_t kMostRows = 2000, kMostEdges = 3000, kMostBlocks = 3000, kMostSegments = 8;

std::string_view role_text(Argument::Kind kind) {
  switch (kind) {
    case Argument::Kind::input: return "reads";
    case Argument::Kind::output: return "writes";
    case Argument::Kind::inout: return "reads, writes";
    case Argument::Kind::local: return "local";
    default: return "value";
  }
}

/// "f32 (2, 3)" of what the node writes first.
std::string result_text(const GraphNode& node) {
  for (const GraphArgument& a : node.arguments)
    if (a.buffer >= 0 && a.kind != Argument::Kind::input) return fmt::format("{} {}", name(a.dtype), to_string(a.sizes));
  return {};
}

/// Structs are long in hexadecimal.
std::string short_value(const std::string& value) {
  constexpr std::size_t kMost = 40, kBegin = 24;
  return value.size() <= kMost ? value : fmt::format("{}… ({} bytes)", value.substr(0, kBegin), value.size() / 2);
}

class Page {
 public:
  explicit Page(const GraphPage& page) : nodes_(page.nodes), report_(page.report), device_(page.device) {
    for (const GraphNode& node : nodes_) streams_.insert(node.stream), total_us_ += node.measured_us, most_us_ = std::max(most_us_, node.measured_us);
    group_of_.assign(nodes_.size(), -1);
    for (std::size_t g = 0; g < report_.groups.size(); ++g)
      for (int n : report_.groups[g].nodes)
        if (n >= 0 && static_cast<std::size_t>(n) < nodes_.size()) group_of_[static_cast<std::size_t>(n)] = static_cast<int>(g);
    // Ops that take longest have colours of their own, or those that are called most often.
    std::map<std::string, double> weights;
    for (const GraphNode& node : nodes_) weights[node.op] += total_us_ > 0 ? node.measured_us : 1;
    for (const auto& [op, weight] : weights) ops_.emplace_back(weight, op);
    std::stable_sort(ops_.begin(), ops_.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  }

  std::string text() {
    out_ = page_head("clutch graph", kStyle) + "<h1>Graph</h1>\n";
    write_facts();
    if (!nodes_.empty()) {
      write_order();
      write_times();
      write_memory();
    }
    write_nodes();
    return std::move(out_) + "</body></html>\n";
  }

 private:
  const char* colour(std::string_view op) const {
    for (std::size_t i = 0; i < std::min(ops_.size(), kPageColours.size()); ++i)
      if (ops_[i].second == op) return kPageColours.at(i);
    return kPageOther;
  }
  static const char* group_colour(int group) { return kPageColours.at(static_cast<std::size_t>(group) % kPageColours.size()); }
  double x(double node) const { return kWidth * node / static_cast<double>(std::max<std::size_t>(nodes_.size(), 1)); }
  void add(std::string text) { out_ += text; }
  void begin_svg(double height, int pixels, std::string_view label) {
    add(fmt::format("<svg class=\"map\" style=\"height:{}px\" viewBox=\"0 0 {:.0f} {:.2f}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">",
                    pixels, kWidth, std::max(height, 1e-9), html_text(label)));
  }
  void ends(std::string_view left, std::string_view right) {
    add(fmt::format("</svg>\n<div class=\"ends\"><span>{}</span><span>{}</span></div>\n", left, right));
  }
  std::string last_node() const { return fmt::format("node {}", nodes_.size() - 1); }

  void write_facts() {
    std::size_t grouped = 0;
    for (int g : group_of_) grouped += g >= 0;
    add("<div class=\"facts\">");
    add(page_fact("nodes", fmt::format("{}", nodes_.size())));
    if (!report_.groups.empty()) add(page_fact("launches", fmt::format("{}", nodes_.size() - grouped + report_.groups.size())));
    if (report_.native_nodes > 0) add(page_fact("in command buffers", fmt::format("{} nodes in {}", report_.native_nodes, report_.native_parts)));
    if (streams_.size() > 1) add(page_fact("streams", fmt::format("{}", streams_.size())));
    if (total_us_ > 0) add(page_fact("time, node by node", duration_text(total_us_)));
    add(page_fact("temporaries", bytes_text(report_.temporary_bytes)));
    add(page_fact("their memory, the peak", bytes_text(report_.reserved_bytes)));
    add(page_fact("callers' tensors", bytes_text(report_.external_bytes)));
    if (report_.result_bytes > 0) add(page_fact("results", bytes_text(report_.result_bytes)));
    if (report_.constant_bytes > 0) add(page_fact("constants", bytes_text(report_.constant_bytes)));
    add(page_fact("replays", fmt::format("{}", report_.replays)));
    add(fmt::format("</div>\n<p class=\"note\">Device: {}. Backend {}: {}.</p>\n", html_text(device_), html_text(report_.backend), html_text(report_.why)));
  }

  /// Nodes in lanes of their streams, boxes of groups, and dependencies other than on the node before.
  void write_order() {
    add("<h2>Over the nodes</h2>\n<h3>Order and dependencies</h3>\n");
    std::map<std::uint64_t, int> lanes;
    for (std::uint64_t s : streams_) lanes.emplace(s, static_cast<int>(lanes.size()));
    constexpr double kArcs = 60, kLane = 26;
    const double height = kArcs + kLane * static_cast<double>(lanes.size());
    const double width = x(1);
    begin_svg(height, static_cast<int>(height), "Nodes in the order of their calls, a lane for each stream, and dependencies");
    std::size_t edges = 0, left_out = 0;
    for (const GraphNode& node : nodes_)
      for (int before : node.dependencies) {
        if (before == node.id - 1) continue;
        if (++edges > kMostEdges) {
          ++left_out;
          continue;
        }
        const double reach = static_cast<double>(node.id - before) / static_cast<double>(nodes_.size());
        add(fmt::format("<path class=\"edge\" d=\"M{0:.2f},{2:.1f}Q{3:.2f},{4:.1f} {1:.2f},{2:.1f}\"/>", x(before + 0.5), x(node.id + 0.5), kArcs,
                        x((before + node.id + 1) / 2.0), kArcs - 2 * (8 + (kArcs - 12) * std::sqrt(reach)) + 8));
      }
    for (const GraphNode& node : nodes_) {
      const int lane = lanes.at(node.stream);
      add(fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"16\" fill=\"{}\"><title>{}: {}</title></rect>", x(node.id) + width * .1,
                      kArcs + kLane * lane + 5, width * .8, colour(node.op), node.id, html_text(node.op)));
    }
    for (std::size_t i = 0; i < nodes_.size();) {
      const int group = group_of_[i], lane = lanes.at(nodes_[i].stream);
      std::size_t end = i + 1;
      while (end < nodes_.size() && group >= 0 && group_of_[end] == group && nodes_[end].stream == nodes_[i].stream) ++end;
      if (group >= 0)
        add(fmt::format("<rect class=\"box\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"22\" stroke=\"{}\"><title>{}</title></rect>",
                        x(static_cast<double>(i)), kArcs + kLane * lane + 2, x(static_cast<double>(end - i)), group_colour(group),
                        html_text(group_title(group))));
      i = end;
    }
    ends("node 0", last_node());
    add("<div class=\"legend\">");
    for (std::size_t i = 0; i < std::min(ops_.size(), kPageColours.size()); ++i)
      add(fmt::format("<span><i style=\"background:{}\"></i>{}</span>", kPageColours.at(i), html_text(ops_[i].second)));
    if (ops_.size() > kPageColours.size()) add(fmt::format("<span><i style=\"background:{}\"></i>other ops</span>", kPageOther));
    add("</div>\n");
    add(fmt::format("<p class=\"note\">Arcs lead from a node to one that waits for it; those to the next node are not drawn{}.{}{}</p>\n",
                    left_out > 0 ? fmt::format(", nor {} more", left_out) : "",
                    lanes.size() > 1 ? " Each stream has a lane; below, s and a number are the stream." : "",
                    report_.groups.empty() ? "" : " Boxes are nodes that one launch runs."));
  }

  void write_times() {
    add("<h3>Time of each node</h3>\n");
    if (total_us_ <= 0) {
      add("<p class=\"note\">Not measured: Graph::measure() runs the graph and finds the times.</p>\n");
      return;
    }
    begin_svg(100, 80, "Time of each node");
    for (const GraphNode& node : nodes_) {
      const double part = 100 * node.measured_us / std::max(most_us_, 1e-9);
      add(fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"><title>{}: {}, {}</title></rect>", x(node.id) + x(1) * .1,
                      100 - part, x(1) * .8, part, colour(node.op), node.id, html_text(node.op), duration_text(node.measured_us)));
    }
    ends("node 0", fmt::format("up to {}", duration_text(most_us_)));
  }

  /// Bytes of temporaries that live at each node, and the places of temporaries in their segments.
  void write_memory() {
    std::vector<const GraphReport::Buffer*> temporaries;
    for (const GraphReport::Buffer& b : report_.buffers)
      if (b.kind == "temporary" && b.first >= 0 && b.last >= b.first && static_cast<std::size_t>(b.last) < nodes_.size()) temporaries.push_back(&b);
    add("<h3>Temporary memory</h3>\n");
    if (temporaries.empty()) {
      add("<p class=\"note\">The graph needs none.</p>\n");
      return;
    }
    std::vector<std::uint64_t> live(nodes_.size());
    for (const GraphReport::Buffer* b : temporaries)
      for (int n = b->first; n <= b->last; ++n) live[static_cast<std::size_t>(n)] += b->bytes;
    const auto peak = std::max_element(live.begin(), live.end());
    const double top = static_cast<double>(std::max<std::uint64_t>({*peak, report_.reserved_bytes, 1})) * 1.05;
    begin_svg(100, 110, "Bytes of temporaries that live at each node");
    std::string path = "M0,100";
    for (std::size_t n = 0; n < live.size(); ++n) {
      const double y = 100 - 100 * static_cast<double>(live[n]) / top;
      path += fmt::format("V{:.2f}H{:.2f}", y, x(static_cast<double>(n + 1)));
    }
    add(fmt::format("<path class=\"live\" d=\"{}V100Z\"/>", path));
    const double held = 100 - 100 * static_cast<double>(report_.reserved_bytes) / top;
    add(fmt::format("<line class=\"held\" x1=\"0\" x2=\"{0:.0f}\" y1=\"{1:.2f}\" y2=\"{1:.2f}\"/>", kWidth, held));
    ends("node 0", last_node());
    add(fmt::format("<p class=\"note\">{} live at most, at node {}; {} are held for them (dashed).</p>\n", bytes_text(*peak), peak - live.begin(),
                    bytes_text(report_.reserved_bytes)));

    std::map<int, std::vector<const GraphReport::Buffer*>> segments;
    for (const GraphReport::Buffer* b : temporaries) segments[b->segment].push_back(b);
    add("<h3>Places of temporaries, by address</h3>\n");
    std::size_t shown = 0, drawn = 0;
    for (const auto& [segment, buffers] : segments) {
      if (++shown > kMostSegments || drawn > kMostBlocks) {
        add(fmt::format("<p class=\"note\">{} more segments are not drawn.</p>\n", segments.size() - shown + 1));
        break;
      }
      std::uint64_t end = 1;
      for (const GraphReport::Buffer* b : buffers) end = std::max(end, b->offset + b->bytes);
      begin_svg(100, 130, fmt::format("Segment {}", segment));
      for (const GraphReport::Buffer* b : buffers) {
        if (++drawn > kMostBlocks) break;
        const double scale = 100 / static_cast<double>(end);
        const std::string& maker = nodes_[static_cast<std::size_t>(b->first)].op;
        add(
            fmt::format("<rect class=\"block\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"><title>buffer {}: {} from byte {}, "
                        "nodes {} to {}, made by "
                        "{}</title></rect>",
                        x(b->first), 100 - static_cast<double>(b->offset + b->bytes) * scale, x(b->last - b->first + 1), static_cast<double>(b->bytes) * scale,
                        colour(maker), b - report_.buffers.data(), bytes_text(b->bytes), b->offset, b->first, b->last, html_text(maker)));
      }
      ends(fmt::format("segment {}, {}", segment, bytes_text(end)), last_node());
    }
  }

  std::string group_title(int group) const {
    const GraphReport::Group& g = report_.groups[static_cast<std::size_t>(group)];
    return fmt::format("{} group of {} nodes", g.form, g.nodes.size());
  }

  static std::string label_text(const GraphLabel& label) {
    std::string text = label.name;
    for (const auto& [key, value] : label.values) text += fmt::format(" {}={}", key, value);
    return text;
  }
  static std::string chip(const std::string& text) { return fmt::format("<span class=\"chip\">{}</span>", html_text(text)); }

  void write_nodes() {
    add("<h2>Nodes, in the order of their calls</h2>\n");
    const bool grouping = !report_.groups.empty() || std::any_of(nodes_.begin(), nodes_.end(), [](const GraphNode& n) { return !n.why.empty(); });
    if (!grouping) add("<p class=\"note\">The backend runs each node by itself.</p>\n");
    std::size_t rows = 0;
    std::vector<bool> written(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size() && rows < kMostRows; ++i) {
      if (written[i]) continue;
      const int group = group_of_[i];
      if (group >= 0) begin_group(group);
      const std::vector<int> alone{static_cast<int>(i)};
      for (int n : group >= 0 ? report_.groups[static_cast<std::size_t>(group)].nodes : alone) {
        if (n < 0 || static_cast<std::size_t>(n) >= nodes_.size() || written[static_cast<std::size_t>(n)]) continue;
        written[static_cast<std::size_t>(n)] = true;
        write_node(nodes_[static_cast<std::size_t>(n)]);
        ++rows;
      }
      if (group >= 0) add("</section>\n");
    }
    if (rows < nodes_.size()) add(fmt::format("<p class=\"note\">{} more nodes are in the JSON dump alone.</p>\n", nodes_.size() - rows));
  }

  void begin_group(int group) {
    const GraphReport::Group& g = report_.groups[static_cast<std::size_t>(group)];
    double us = 0;
    std::vector<std::string> labels;
    std::set<std::string> seen;
    for (int n : g.nodes) {
      if (n < 0 || static_cast<std::size_t>(n) >= nodes_.size()) continue;
      const GraphNode& node = nodes_[static_cast<std::size_t>(n)];
      us += node.measured_us;
      for (const GraphLabel& label : node.labels)
        if (seen.insert(label_text(label)).second) labels.push_back(label_text(label));
    }
    add(fmt::format("<section class=\"group\" style=\"border-color:{}\"><header><b>{}</b><code>{}</code><span>", group_colour(group),
                    html_text(group_title(group)), html_text(g.kernel)));
    constexpr std::size_t kMostChips = 24;  // a loop has one for each iteration
    for (std::size_t i = 0; i < std::min(labels.size(), kMostChips); ++i) add(chip(labels[i]));
    if (labels.size() > kMostChips) add(fmt::format("<span class=\"soft\">and {} more</span>", labels.size() - kMostChips));
    add(fmt::format("</span><span class=\"soft\">{}</span></header>\n", us > 0 ? fmt::format("{}, its nodes one by one", duration_text(us)) : ""));
  }

  void write_node(const GraphNode& node) {
    add(fmt::format("<details class=\"node\" id=\"n{0}\"><summary><span class=\"id\">{0}{1}</span><span><i style=\"background:{2}\"></i><b>{3}</b></span>",
                    node.id, streams_.size() > 1 ? fmt::format(" s{}", node.stream) : "", colour(node.op), html_text(node.op)));
    add(fmt::format("<code class=\"kernel\">{}</code><span class=\"result soft\">{}</span><span class=\"labels\">",
                    node.kernel.empty() ? std::string(name(node.kind)) : html_text(node.kernel), html_text(result_text(node))));
    for (const GraphLabel& label : node.labels) add(chip(label_text(label)));
    add("</span><span class=\"time\">");
    if (node.measured_us > 0)
      add(fmt::format("{}<u style=\"width:{:.1f}%;background:{}\"></u>", duration_text(node.measured_us), 100 * node.measured_us / std::max(most_us_, 1e-9),
                      colour(node.op)));
    add("</span>");
    if (!node.why.empty()) add(fmt::format("<span class=\"why soft\">{}</span>", html_text(node.why)));
    add("</summary><div class=\"inside\">");
    if (!node.plan.empty()) add(fmt::format("<p><span class=\"soft\">plan</span> {}</p>", html_text(node.plan)));
    if (node.kind == GraphNodeKind::kernel) {
      const Geometry& g = node.geometry;
      add(fmt::format("<p><span class=\"soft\">global</span> {} × {} × {} · <span class=\"soft\">local</span> {} × {} × {}</p>", g.global, g.global_y,
                      g.global_z, g.local, g.local_y, g.local_z));
    }
    if (node.cost.flops > 0 || node.cost.bytes > 0)
      add(fmt::format("<p><span class=\"soft\">cost</span> {:g} FLOP, {}</p>", node.cost.flops, bytes_text(static_cast<std::uint64_t>(node.cost.bytes))));
    add("<p><span class=\"soft\">waits for</span> ");
    if (node.dependencies.empty()) add("no node");
    for (std::size_t i = 0; i < node.dependencies.size(); ++i) add(fmt::format("{0}<a href=\"#n{1}\">{1}</a>", i == 0 ? "" : ", ", node.dependencies[i]));
    add(fmt::format(" · <span class=\"soft\">stream</span> {}</p>", node.stream));
    if (!node.arguments.empty()) write_arguments(node);
    add("</div></details>\n");
  }

  void write_arguments(const GraphNode& node) {
    add("<div class=\"wide\"><table><tr><th>argument</th><th>use</th><th>value or tensor</th><th class=\"more\">strides</th><th>memory</th></tr>");
    for (const GraphArgument& a : node.arguments) {
      add(fmt::format("<tr><td>{}</td><td>{}</td>", html_text(a.name), role_text(a.kind)));
      if (a.buffer < 0) {
        add(fmt::format("<td>{}</td><td class=\"more\"></td><td></td></tr>", html_text(short_value(a.value))));
        continue;
      }
      const auto b = static_cast<std::size_t>(a.buffer);
      add(fmt::format("<td>{} {}</td><td class=\"more\">{}</td><td>{} {}, byte {}</td></tr>", name(a.dtype), to_string(a.sizes), to_string(a.strides),
                      b < report_.buffers.size() ? html_text(report_.buffers[b].kind) : "buffer", a.buffer, a.byte_offset));
    }
    add("</table></div>");
  }

  const std::vector<GraphNode>& nodes_;
  const GraphReport& report_;
  const std::string& device_;
  std::set<std::uint64_t> streams_;
  std::vector<int> group_of_;
  std::vector<std::pair<double, std::string>> ops_;
  double total_us_ = 0, most_us_ = 0;
  std::string out_;
};

}  // namespace

std::string html_dump(const GraphPage& page) { return Page(page).text(); }

}}}  // namespace clutch::v0::detail
