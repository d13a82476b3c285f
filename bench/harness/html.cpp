// SPDX-License-Identifier: Apache-2.0
// The report as one page that needs nothing else: inline SVG and CSS, no script, no network; for screens, phones and paper.
#include "harness/bench.hpp"
#include "support/html_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

namespace clutch::bench {

namespace {

using detail::html_text;

// Okabe and Ito's colours, which stay apart for the colour-blind and in grey.
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999"};

/// "addcdiv/f32" of "addcdiv/f32/1024".
std::string family(const std::string& row) { return row.substr(0, row.rfind('/')); }
std::string last_part(const std::string& row) { return row.substr(row.rfind('/') + 1); }

std::string short_number(double v) {
  if (v >= 0.999e12) return fmt::format("{:.3g}T", v * 1e-12);
  if (v >= 1e9) return fmt::format("{:.3g}G", v * 1e-9);
  if (v >= 1e6) return fmt::format("{:.3g}M", v * 1e-6);
  if (v >= 1e3) return fmt::format("{:.3g}k", v * 1e-3);
  return fmt::format("{:.3g}", v);
}

std::string time_text(double s) {
  return s < 1e-6   ? fmt::format("{:.0f} ns", s * 1e9)
         : s < 1e-3 ? fmt::format("{:.1f} µs", s * 1e6)
         : s < 1    ? fmt::format("{:.2f} ms", s * 1e3)
                    : fmt::format("{:.2f} s", s);
}

std::string colour_of(const std::string& name, std::map<std::string, std::size_t>& known) {
  auto [found, fresh] = known.emplace(name, known.size());
  return kColours[found->second % std::size(kColours)];
}

/// A logarithmic axis over whole decades.
struct Axis {
  double low, high, from, to;
  double at(double v) const { return from + (to - from) * (std::log10(v) - std::log10(low)) / (std::log10(high) - std::log10(low)); }
};
Axis axis(double least, double most, double from, double to) {
  return {std::pow(10, std::floor(std::log10(least))), std::pow(10, std::ceil(std::log10(most * 1.0001))), from, to};
}

/// FLOP/s over FLOP/byte under the device's roof; rows without FLOPs stand in the chart of bandwidth alone.
std::string roofline_plot(const Roofline& roof, const std::vector<const Result*>& rows) {
  double peak = 0, bandwidth = 0;
  for (const auto& [dtype, flops] : roof.peak_flops) peak = std::max(peak, flops);
  for (const auto& [name, bytes] : roof.bandwidth)
    if (name.starts_with("triad/")) bandwidth = std::max(bandwidth, bytes);
  auto dram = roof.bandwidth.find("triad/268435456");
  double memory = dram == roof.bandwidth.end() ? bandwidth : dram->second;
  std::vector<const Result*> shown;
  for (const Result* r : rows)
    if (r->row.flops > 0 && r->row.bytes > 0 && r->error.empty()) shown.push_back(r);
  if (peak <= 0 || bandwidth <= 0 || shown.empty()) return {};
  double least_x = 1, most_x = peak / memory * 4, least_y = peak;
  for (const Result* r : shown) {
    least_x = std::min(least_x, r->row.flops / r->row.bytes);
    least_y = std::min(least_y, r->gflops * 1e9);
  }
  Axis x = axis(least_x / 2, most_x, 70, 700), y = axis(least_y, peak * 1.5, 330, 20);
  std::string svg = "<svg viewBox=\"0 0 720 370\" role=\"img\" aria-label=\"roofline plot\">";
  for (double v = x.low; v <= x.high * 1.01; v *= 10)
    svg +=
        fmt::format("<line class=\"grid\" x1=\"{0:.1f}\" y1=\"20\" x2=\"{0:.1f}\" y2=\"330\"/><text x=\"{0:.1f}\" y=\"348\" text-anchor=\"middle\">{1}</text>",
                    x.at(v), short_number(v));
  for (double v = y.low; v <= y.high * 1.01; v *= 10)
    svg += fmt::format("<line class=\"grid\" x1=\"70\" y1=\"{0:.1f}\" x2=\"700\" y2=\"{0:.1f}\"/><text x=\"62\" y=\"{1:.1f}\" text-anchor=\"end\">{2}</text>",
                       y.at(v), y.at(v) + 4, short_number(v));
  auto roof_line = [&](double bytes, const char* style, const std::string& label) {
    double knee = peak / bytes, left = std::max(x.low, y.low / bytes);
    svg += fmt::format("<polyline class=\"{}\" points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\"/>", style, x.at(left), y.at(std::max(y.low, left * bytes)),
                       x.at(knee), y.at(peak), x.at(x.high), y.at(peak));
    double middle = std::sqrt(left * knee);
    svg += fmt::format("<text class=\"note\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>", x.at(middle) - 8, y.at(middle * bytes) - 6, label);
  };
  roof_line(memory, "roof", fmt::format("memory {:.0f} GB/s", memory * 1e-9));
  if (bandwidth > memory * 1.2) roof_line(bandwidth, "roof cache", fmt::format("cache {:.0f} GB/s", bandwidth * 1e-9));
  svg += fmt::format("<text class=\"note\" x=\"695\" y=\"{:.1f}\" text-anchor=\"end\">peak {:.0f} GFLOP/s</text>", y.at(peak) - 6, peak * 1e-9);
  std::map<std::string, std::size_t> known;
  std::string legend;
  for (const Result* r : shown) {
    std::string name = family(r->row.name);
    bool fresh = !known.contains(name);
    std::string colour = colour_of(name, known);
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"{}\"><title>{}: {:.2f} GFLOP/s</title></circle>", x.at(r->row.flops / r->row.bytes),
                       y.at(r->gflops * 1e9), colour, html_text(r->row.name), r->gflops);
    if (fresh) legend += fmt::format("<span><i style=\"background:{}\"></i>{}</span>", colour, html_text(name));
  }
  return svg +
         "<text x=\"700\" y=\"364\" text-anchor=\"end\">FLOP per byte</text><text x=\"70\" y=\"12\">FLOP/s</text></svg></div></div><div class=\"legend\">" +
         legend + "</div>";
}

/// Bars of rows: ours and each peer's, as speed relative to ours (1 is ours; longer is faster).
struct Bars {
  double height = 0, ours = 0;  ///< `ours`: where the bars of clutch end
  std::string body;
};
/// A peer's name without its build and what stands in parentheses: "torch 2.12.1 compiled flex".
std::string brief(std::string name) {
  if (const std::size_t plus = name.find("+cu"); plus != std::string::npos) name.erase(plus, name.find(' ', plus) - plus);
  return name.substr(0, name.find(" ("));
}

Bars bars(const std::vector<const Result*>& rows, std::map<std::string, std::size_t>& colours, std::string (*label_of)(const std::string&)) {
  struct Bar {
    std::string label, text;
    double value;
    bool ours;
  };
  std::vector<std::pair<std::string, std::vector<Bar>>> groups;
  double most = 1;
  for (const Result* r : rows) {
    if (!r->error.empty() || r->measured.hot.median <= 0) continue;
    std::vector<Bar> group{{"clutch", time_text(r->measured.hot.median), 1, true}};
    for (const PeerTiming& p : r->measured.peers) {
      if (p.ratio <= 0) continue;
      group.push_back({brief(p.name), fmt::format("{:.2f}x our time", p.ratio), 1 / p.ratio, false});
      most = std::max(most, std::min(1 / p.ratio, 4.0));
    }
    groups.emplace_back(label_of(r->row.name), std::move(group));
  }
  if (groups.empty()) return {};
  constexpr double kLeft = 200, kWidth = 330, kBar = 15;
  double height = 6;
  std::string body;
  for (const auto& [label, group] : groups) {
    body += fmt::format("<text x=\"6\" y=\"{:.0f}\" class=\"size\">{}</text>", height + 12, html_text(label));
    if (label.size() > 12) height += kBar;  // a line of its own
    for (const Bar& bar : group) {
      double width = kWidth * std::min(bar.value, 4.0) / most;
      std::string colour = bar.ours ? kColours[0] : kColours[1 + [&] {
        auto [found, fresh] = colours.emplace(bar.label, colours.size());
        return found->second % (std::size(kColours) - 1);
      }()];
      body += fmt::format(
          "<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text><rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"{:.0f}\" fill=\"{}\"/>"
          "<text x=\"{:.1f}\" y=\"{:.0f}\" class=\"value\">{}</text>",
          kLeft - 6, height + 12, html_text(bar.label.size() > 30 ? bar.label.substr(0, 29) + "…" : bar.label), kLeft, height + 1, std::max(width, 1.0),
          kBar - 3, colour, kLeft + width + 5, height + 12, bar.text);
      height += kBar;
    }
    height += 8;
  }
  return {height, kLeft + kWidth / most, std::move(body)};
}
std::string svg_of(const Bars& b) {
  if (b.body.empty()) return {};
  return fmt::format(
      "<svg viewBox=\"0 0 680 {0:.0f}\" role=\"img\" aria-label=\"speed beside peers\"><line class=\"one\" x1=\"{1:.1f}\" y1=\"0\" x2=\"{1:.1f}\" "
      "y2=\"{0:.0f}\"/>{2}</svg>",
      b.height, b.ours, b.body);
}

constexpr const char* kStyle = R"(
:root{color-scheme:light;font:16px/1.45 system-ui,-apple-system,"Segoe UI",sans-serif;color:#1b1f24;background:#fff}
body{max-width:60rem;margin:0 auto;padding:1rem}
h1{font-size:1.5rem;margin:.4rem 0}h2{font-size:1.2rem;margin:2rem 0 .4rem;border-bottom:2px solid #0072b2}h3{font-size:1rem;margin:1.2rem 0 .2rem}h1,h2,h3,p{overflow-wrap:anywhere}
p,.meta{color:#4a5563;margin:.3rem 0}svg{width:100%;height:auto;font:12px system-ui,sans-serif}svg text{fill:#1b1f24}
.legend span{display:inline-block;margin-right:1rem;font-size:.8rem;overflow-wrap:anywhere}.legend i{display:inline-block;width:.7em;height:.7em;border-radius:50%;margin-right:.35em;print-color-adjust:exact;-webkit-print-color-adjust:exact}
.grid{stroke:#dde2e8}.roof{fill:none;stroke:#1b1f24;stroke-width:2}.cache{stroke-dasharray:6 4}.one{stroke:#9aa4b0;stroke-dasharray:3 3}
.note,.value{fill:#4a5563!important;font-size:11px}.size{font-weight:600}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.85rem}th,td{padding:.3rem .5rem;text-align:right;white-space:nowrap;border-bottom:1px solid #dde2e8}
th:first-child,td:first-child{text-align:left}thead th{border-bottom:2px solid #1b1f24}.bad{color:#b00020;font-weight:600}.good{color:#006b4f}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:.6rem;margin:.8rem 0}.card{border:1px solid #dde2e8;border-radius:8px;padding:.6rem .8rem}.card b{display:block;font-size:1.25rem}
@media(max-width:40rem){body{padding:.6rem}.wide{min-width:40rem}th:first-child,td:first-child{white-space:normal;overflow-wrap:anywhere;min-width:9rem}}
@media print{body{max-width:none;padding:0;font-size:10pt}h2{break-before:page}h2:first-of-type{break-before:auto}h3,svg,tr{break-inside:avoid}.scroll{overflow:visible}table{font-size:7.5pt}th,td{padding:.15rem .3rem}.group{break-inside:avoid}}
)";

std::string summary_table(const std::vector<const Result*>& rows) {
  // Worst beside best, per family and peer.
  struct Range {
    double worst = INFINITY, best = 0;
    std::string worst_row, best_row;
  };
  std::map<std::pair<std::string, std::string>, Range> ranges;
  for (const Result* r : rows)
    for (const PeerTiming& p : r->measured.peers) {
      Range& range = ranges[{family(r->row.name), p.name}];
      if (p.ratio < range.worst) range.worst = p.ratio, range.worst_row = last_part(r->row.name);
      if (p.ratio > range.best) range.best = p.ratio, range.best_row = last_part(r->row.name);
    }
  if (ranges.empty()) return {};
  std::string html =
      "<h3>Worst and best against each peer</h3><p>Peer's time over ours: above 1 clutch is faster. triad is the device's own memory bound, not a "
      "rival.</p><div "
      "class=\"scroll\"><table><thead><tr><th>rows</th><th>peer</th><th>worst</th><th>at</th><th>best</th><th>at</th></tr></thead><tbody>";
  for (const auto& [key, range] : ranges) {
    bool bound = key.second == "triad";  // what the device's memory allows: no rival
    auto verdict = [&](double ratio) { return bound ? "" : ratio < 1 ? "bad" : "good"; };
    html += fmt::format("<tr><td>{}</td><td>{}</td><td class=\"{}\">{:.2f}x</td><td>{}</td><td class=\"{}\">{:.2f}x</td><td>{}</td></tr>", html_text(key.first),
                        html_text(key.second), verdict(range.worst), range.worst, html_text(range.worst_row), verdict(range.best), range.best,
                        html_text(range.best_row));
  }
  return html + "</tbody></table></div>";
}

std::string all_rows(const std::vector<const Result*>& rows) {
  std::string html =
      "<h3>All rows</h3><div "
      "class=\"scroll\"><table><thead><tr><th>row</th><th>hot</th><th>cold</th><th>noise</th><th>GB/s</th><th>GFLOP/s</th><th>roof</th><th>remarks</th></tr></"
      "thead><tbody>";
  for (const Result* r : rows) {
    if (!r->error.empty()) {
      html += fmt::format("<tr><td>{}</td><td class=\"bad\" colspan=\"7\" style=\"white-space:normal;text-align:left\">failed: {}</td></tr>",
                          html_text(r->row.name), html_text(r->error));
      continue;
    }
    std::string doubts;
    for (const std::string& doubt : r->doubts) doubts += (doubts.empty() ? "suspect: " : "; ") + doubt;
    html += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{:.1f}%</td><td>{}</td><td>{}</td><td>{}</td><td class=\"bad\">{}</td></tr>",
                        html_text(r->row.name), time_text(r->measured.hot.median), r->measured.cold ? time_text(r->measured.cold->median) : "–",
                        r->measured.hot.noise_pct, r->row.bytes > 0 ? fmt::format("{:.2f}", r->gbps) : "–",
                        r->row.flops > 0 ? fmt::format("{:.2f}", r->gflops) : "–", r->roofline_pct ? fmt::format("{:.0f}%", *r->roofline_pct) : "–",
                        html_text(doubts));
  }
  return html + "</tbody></table></div>";
}

}  // namespace

namespace {
/// All of the file or nothing.
void write_whole(const std::string& path, const std::string& text) {
  std::string temporary = path + ".tmp";
  std::ofstream out(temporary);
  out << text;
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(temporary, path, error);
  if (!out || error)
    throw Error(ErrorCode::io, "clutch-bench",
                fmt::format("the output must be a file that can be written, got {} ({})", path, error ? error.message() : "writing failed"));
}
}  // namespace

void write_html(const std::string& path, const std::vector<Context>& contexts, const std::vector<Roofline>& rooflines, const std::vector<Result>& results) {
  std::string html = fmt::format(
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><title>clutch-bench</title><style>{}</style></head><body>",
      kStyle);
  html += fmt::format("<h1>clutch-bench</h1><p class=\"meta\">clutch {} · {} · revision {}</p>", version(), contexts.empty() ? "" : contexts[0].date,
                      contexts.empty() ? "" : html_text(contexts[0].git_hash));
  for (std::size_t d = 0; d < contexts.size(); ++d) {
    const Context& c = contexts[d];
    const Roofline& roof = rooflines[d];
    std::vector<const Result*> rows;
    for (const Result& r : results)
      if (r.device == c.device) rows.push_back(&r);
    auto suspects = std::count_if(rows.begin(), rows.end(), [](const Result* r) { return r->suspect; });
    auto failures = std::count_if(rows.begin(), rows.end(), [](const Result* r) { return !r->error.empty(); });
    html += fmt::format("<h2>{}</h2><p class=\"meta\">{} {}</p><div class=\"cards\">", html_text(c.device), html_text(c.platform), html_text(c.driver));
    for (const auto& [dtype, flops] : roof.peak_flops) html += fmt::format("<div class=\"card\">{} peak<b>{:.0f} GFLOP/s</b></div>", dtype, flops * 1e-9);
    if (auto triad = roof.bandwidth.find("triad/268435456"); triad != roof.bandwidth.end())
      html += fmt::format("<div class=\"card\">triad, 256 MiB<b>{:.1f} GB/s</b></div>", triad->second * 1e-9);
    html += fmt::format(
        "<div class=\"card\">launch<b>{:.1f} µs</b></div><div class=\"card\">rows<b>{} <span class=\"{}\">{} suspect, {} failed</span></b></div></div>",
        roof.launch_us, rows.size(), suspects + failures > 0 ? "bad" : "good", suspects, failures);
    for (const std::string& line : roof.suspect) html += fmt::format("<p class=\"bad\">suspect: {}</p>", html_text(line));
    std::string plot = roofline_plot(roof, rows);
    if (!plot.empty()) html += "<h3>Roofline</h3><div class=\"scroll\"><div class=\"wide\">" + plot;
    html += summary_table(rows);
    std::vector<std::string> families;
    for (const Result* r : rows)
      if (!r->measured.peers.empty() && std::find(families.begin(), families.end(), family(r->row.name)) == families.end())
        families.push_back(family(r->row.name));
    if (!families.empty()) html += "<h3>Speed beside peers</h3><p>Longer is faster; the dashed line is clutch. Bars end at four times its speed.</p>";
    std::map<std::string, std::size_t> colours;
    for (const std::string& name : families) {
      std::vector<const Result*> of;
      for (const Result* r : rows)
        if (family(r->row.name) == name) of.push_back(r);
      html += fmt::format("<div class=\"group\"><h3>{}</h3><div class=\"scroll\"><div class=\"wide\">{}</div></div></div>", html_text(name),
                          svg_of(bars(of, colours, last_part)));
    }
    html += all_rows(rows);
  }
  html += "</body></html>\n";
  write_whole(path, html);
}

void write_picture(const std::string& path, const Context& context, const std::vector<Result>& results) {
  std::vector<const Result*> rows;
  for (const Result& r : results)
    if (r.device == context.device && std::any_of(r.measured.peers.begin(), r.measured.peers.end(), [](const PeerTiming& p) { return p.ratio > 0; }))
      rows.push_back(&r);
  std::map<std::string, std::size_t> colours;
  const Bars all = bars(rows, colours, [](const std::string& name) { return name; });
  if (all.body.empty()) throw Error(ErrorCode::invalid_argument, "clutch-bench", "a picture must have a row with a peer, got none");
  // Alone in a file, the picture has the page's style and paper of its own.
  write_whole(path,
              fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 -44 680 {0:.0f}\" role=\"img\" aria-label=\"speed beside peers\">"
                          "<style>text{{font:12px system-ui,sans-serif;fill:#1b1f24}}.value,.note{{fill:#4a5563;font-size:11px}}.size{{font-weight:600}}"
                          ".one{{stroke:#9aa4b0;stroke-dasharray:3 3}}</style><rect x=\"0\" y=\"-44\" width=\"680\" height=\"{0:.0f}\" fill=\"#fff\"/>"
                          "<text x=\"6\" y=\"-26\">Speed beside clutch (dashed line). Longer is faster; bars end at four times its speed.</text>"
                          "<text class=\"note\" x=\"6\" y=\"-10\">{1}, {2}, {3}</text>"
                          "<line class=\"one\" x1=\"{4:.1f}\" y1=\"0\" x2=\"{4:.1f}\" y2=\"{5:.0f}\"/>{6}</svg>\n",
                          all.height + 50, html_text(context.device), html_text(context.driver), html_text(context.date), all.ours, all.height, all.body));
}

}  // namespace clutch::bench
