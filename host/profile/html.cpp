// SPDX-License-Identifier: Apache-2.0
// A profile as one page that needs nothing else: no script, no network; for phones and wide screens.
#include "profile/output.hpp"
#include "profile/profile.hpp"
#include "support/html_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

constexpr std::string_view kStyle = R"(
.gaps td:first-child{overflow-wrap:normal}.gaps th:last-child,.gaps td:last-child{text-align:left;white-space:normal;overflow-wrap:anywhere}
td .bar{display:block;height:4px;border-radius:2px;margin-top:3px}
.plot{width:100%;max-width:560px;display:block}
.plot text{font-size:8.5px;fill:var(--soft)}.plot .grid{stroke:var(--line);stroke-width:.6}.plot .roof{fill:none;stroke:var(--ink);stroke-width:1.6}
@media(max-width:560px){.plot text{font-size:11px}}
)";

/// Small shares with a digit more.
std::string percent(double v) { return v < 9.95 ? fmt::format("{:.1f} %", v) : fmt::format("{:.0f} %", v); }

/// A number of 1 to 999 with its prefix: 2.5k.
std::string prefixed(double v) {
  constexpr std::string_view kPrefixes = "pnum kMGTP";
  std::size_t at = kPrefixes.find(' ');
  for (; v >= 999.5 && at + 1 < kPrefixes.size(); ++at) v /= 1000;
  for (; v < 0.9995 && v > 0 && at > 0; --at) v *= 1000;
  const char prefix = kPrefixes[at];
  return prefix == ' ' ? fmt::format("{:.3g}", v) : fmt::format("{:.3g}{}", v, prefix);
}

class Page {
 public:
  Page(const Profile& profile, const std::string& path) : profile_(profile), out_(path, "profiler::Profiler::export_html") {
    averages_ = profile_averages(profile, {});
    std::erase_if(averages_, [](const auto& a) { return !a.on_device || a.key == "Stream Wait Event"; });
    std::stable_sort(averages_.begin(), averages_.end(), [](const auto& a, const auto& b) { return a.device_time_total > b.device_time_total; });
    begin_ = profile.log->start, end_ = std::max(profile.log->stop, begin_ + 1);
    for (std::uint32_t i : profile.order)
      if (is_work(profile.record(i))) end_ = std::max(end_, profile.record(i).end);
  }

  void write() {
    out_.write(page_head("clutch profile", kStyle) + "<h1>Profile</h1>\n");
    write_facts();
    write_timeline();
    write_kernels();
    write_roof();
    write_gaps();
    out_.write("</body></html>\n");
    out_.commit();
  }

 private:
  /// How much of which limit a command reaches, with what its matrix instructions multiply.
  static std::string roof_text(const profiler::RoofPoint& roof) {
    const std::string matrix = roof.matrix.empty() ? std::string() : fmt::format(" (matrix {})", roof.matrix);
    if (roof.roof_pct > 0) return fmt::format("{} {}{}", percent(roof.roof_pct), roof.binding, matrix);
    return matrix.empty() ? "–" : "not known" + matrix;
  }
  /// The colour of a name: one of its own for those that take the device longest.
  const char* colour(std::string_view name) const {
    for (std::size_t i = 0; i < std::min(averages_.size(), kPageColours.size()); ++i)
      if (averages_[i].key == name) return kPageColours.at(i);
    return kPageOther;
  }

  void fact(std::string_view name, const std::string& value) { out_.write(page_fact(name, value)); }

  void write_facts() {
    const profiler::ProfileTotals totals = profile_.totals();
    double busy = 0, allowed = 0;
    std::int64_t launches = 0;
    for (const auto& a : averages_) busy += a.device_time_total, allowed += a.roof.roof_us, launches += a.count;
    out_.write("<div class=\"facts\">");
    fact("wall time", duration_text(totals.wall_us));
    fact("device time", duration_text(busy));
    if (allowed > 0) fact("time that the roof allows", duration_text(allowed));
    fact("commands", fmt::format("{}", launches));
    fact("events", fmt::format("{}{}", totals.events, totals.dropped > 0 ? fmt::format(" ({} dropped)", totals.dropped) : ""));
    fact("the profiler took", duration_text(totals.overhead_us));
    out_.write("</div>\n");
    for (const auto& [index, device] : profile_.devices) out_.write(fmt::format("<p class=\"note\">Device {}: {}</p>\n", index, html_text(device.name)));
  }

  /// Slices of one row, those that a screen cannot tell apart as one.
  class TimelineRow {
   public:
    TimelineRow(double begin, double end) : begin_(begin), scale_(kWidth / (end - begin)) {}
    void add(double begin, double end, std::string_view name, const char* colour, const std::string& facts) {
      const double x = (begin - begin_) * scale_, width = std::max((end - begin) * scale_, 0.0);
      if (pending_ && x + width - from_ < kLeast) {
        to_ = std::max(to_, x + width), ++count_;
        return;
      }
      flush();
      pending_ = true, from_ = x, to_ = x + width, count_ = 1, colour_ = colour;
      text_ = fmt::format("{}: {}", html_text(name), facts);
    }
    std::string finish() {
      flush();
      return std::move(svg_);
    }
    static constexpr double kWidth = 2000;

   private:
    static constexpr double kLeast = 1.0;
    void flush() {
      if (!std::exchange(pending_, false)) return;
      svg_ += fmt::format("<rect x=\"{:.2f}\" width=\"{:.2f}\" y=\"1\" height=\"20\" fill=\"{}\"><title>{}</title></rect>", from_, std::max(to_ - from_, 0.4),
                          count_ > 1 ? kPageOther : colour_, count_ > 1 ? fmt::format("{} short ones", count_) : text_);
    }
    double begin_, scale_, from_ = 0, to_ = 0;
    bool pending_ = false;
    int count_ = 0;
    const char* colour_ = kPageOther;
    std::string text_, svg_;
  };

  void write_timeline() {
    out_.write("<h2>Timeline</h2>\n");
    std::map<std::pair<int, std::uint64_t>, TimelineRow> rows;  // threads, then streams
    std::map<std::pair<int, std::uint64_t>, std::uint64_t> ends;
    for (std::uint32_t i : profile_.order) {
      const ProfileRecord& r = profile_.record(i);
      const bool device = is_work(r);
      if (!device && r.kind != RecordKind::op && r.kind != RecordKind::sync) continue;
      const std::pair<int, std::uint64_t> key = device ? std::pair(1 + r.device, r.stream) : std::pair(0, std::uint64_t{r.thread});
      // Of nested ops the outer one is drawn.
      if (std::uint64_t& last = ends[key]; !device && r.begin < last)
        continue;
      else
        last = std::max(last, r.end);
      auto [row, fresh] = rows.try_emplace(key, static_cast<double>(begin_), static_cast<double>(end_));
      const std::string_view name = trace_name(r);
      row->second.add(static_cast<double>(r.begin), static_cast<double>(r.end), name,
                      device                       ? colour(name)
                      : r.kind == RecordKind::sync ? "#c3c8cf"
                                                   : kPageOther,
                      duration_text(static_cast<double>(r.end - r.begin) * 1e-3));
    }
    for (auto& [key, row] : rows)
      out_.write(fmt::format(
          "<div class=\"row\"><span>{}</span><svg viewBox=\"0 0 {:.0f} 22\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">{}</svg></div>\n",
          key.first == 0 ? fmt::format("host, thread {}", key.second) : fmt::format("device {}, stream {}", key.first - 1, key.second), TimelineRow::kWidth,
          key.first == 0 ? "ops of a thread" : "commands of a stream", row.finish()));
    const double length = static_cast<double>(end_ - begin_) * 1e-3;
    out_.write(fmt::format("<div class=\"axis\"><span>0</span><span>{}</span><span>{}</span></div>\n", duration_text(length / 2), duration_text(length)));
    out_.write("<div class=\"legend\">");
    for (std::size_t i = 0; i < std::min(averages_.size(), kPageColours.size()); ++i)
      out_.write(fmt::format("<span><i style=\"background:{}\"></i>{}</span>", kPageColours.at(i), html_text(averages_[i].key)));
    out_.write(fmt::format("<span><i style=\"background:{}\"></i>others</span></div>\n", kPageOther));
  }

  void write_kernels() {
    constexpr std::size_t kMost = 30;
    out_.write(
        "<h2>Commands by time</h2><div class=\"wide\"><table><tr><th>name</th><th>time</th><th>calls</th><th class=\"more\">average</th><th "
        "class=\"more\">GFLOP/s</th><th class=\"more\">GB/s</th><th>roof</th><th class=\"more\">roof allows</th></tr>\n");
    const double most = averages_.empty() ? 1 : averages_.front().device_time_total;
    for (std::size_t i = 0; i < std::min(averages_.size(), kMost); ++i) {
      const profiler::KeyAverage& a = averages_[i];
      auto number = [](double v) { return v > 0 ? fmt::format("{:.2f}", v) : std::string("–"); };
      out_.write(
          fmt::format("<tr><td>{}<span class=\"bar\" style=\"width:{:.1f}%;background:{}\"></span></td><td>{}</td><td>{}</td><td class=\"more\">{}</td><td "
                      "class=\"more\">{}</td><td class=\"more\">{}</td><td>{}</td><td class=\"more\">{}</td></tr>\n",
                      html_text(a.key), 100 * a.device_time_total / std::max(most, 1e-9), colour(a.key), duration_text(a.device_time_total), a.count,
                      duration_text(a.device_time_total / static_cast<double>(a.count)), number(a.roof.gflops), number(a.roof.gbps), roof_text(a.roof),
                      a.roof.roof_us > 0 ? duration_text(a.roof.roof_us) : std::string("–")));
    }
    out_.write("</table></div>\n");
    if (averages_.size() > kMost) out_.write(fmt::format("<p class=\"note\">{} more names take less.</p>\n", averages_.size() - kMost));
  }

  void write_roof() {
    profiler::DeviceRoof roof;
    for (const auto& [index, device] : profile_.devices)
      if (device.roof.flops > 0 && device.roof.bytes > 0) roof = device.roof;
    if (roof.flops <= 0 || roof.bytes <= 0) {
      out_.write("<h2>Roofline</h2><p class=\"note\">The device's roof is not known here: clutch-bench measures it once and keeps it.</p>\n");
      return;
    }
    double least_x = 0.1, most_x = roof.flops / roof.bytes * 4, least_y = roof.flops * 1e-3;
    std::vector<std::size_t> shown;
    for (std::size_t i = 0; i < averages_.size(); ++i) {
      const auto& a = averages_[i];
      if (a.flops <= 0 || a.bytes <= 0) continue;
      shown.push_back(i);
      least_x = std::min(least_x, a.flops / a.bytes), most_x = std::max(most_x, a.flops / a.bytes * 1.5);
      least_y = std::min(least_y, a.roof.gflops * 1e9);
    }
    auto decade = [](double v, bool up) { return std::pow(10, up ? std::ceil(std::log10(v)) : std::floor(std::log10(v))); };
    double highest = roof.flops;
    for (const auto& [numbers, flops] : roof.matrix) highest = std::max(highest, flops);
    most_x = std::max(most_x, highest / roof.bytes * 2);
    const double x0 = decade(least_x, false), x1 = decade(most_x, true), y0 = decade(least_y, false), y1 = decade(highest * 1.2, true);
    auto x = [&](double v) { return 46 + 304 * std::log10(v / x0) / std::log10(x1 / x0); };
    auto y = [&](double v) { return 218 - 206 * std::log10(std::max(v, y0) / y0) / std::log10(y1 / y0); };
    std::string svg = "<h2>Roofline</h2><svg class=\"plot\" viewBox=\"0 0 360 250\" role=\"img\" aria-label=\"roofline\">";
    for (double v = x0; v <= x1 * 1.01; v *= 10)
      svg += fmt::format(R"(<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="12" y2="218"/><text x="{0:.1f}" y="231" text-anchor="middle">{1}</text>)", x(v),
                         prefixed(v));
    for (double v = y0; v <= y1 * 1.01; v *= 10)
      svg += fmt::format(R"(<line class="grid" x1="46" x2="350" y1="{0:.1f}" y2="{0:.1f}"/><text x="42" y="{1:.1f}" text-anchor="end">{2}</text>)", y(v),
                         y(v) + 4, prefixed(v));
    const double knee = roof.flops / roof.bytes, left = std::max(x0, y0 / roof.bytes);
    svg += fmt::format(R"(<polyline class="roof" points="{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}"/>)", x(left), y(left * roof.bytes), x(knee), y(roof.flops),
                       x(x1), y(roof.flops));
    if (roof.flops64 > 0 && roof.flops64 > y0)
      svg += fmt::format(R"(<line class="roof" stroke-dasharray="4 3" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>)",
                         x(std::max(x0, roof.flops64 / roof.bytes)), x(x1), y(roof.flops64), y(roof.flops64));
    std::string matrix;
    for (const auto& [numbers, flops] : roof.matrix) {
      matrix += fmt::format("{}{} {:.1f}", matrix.empty() ? "" : ", ", numbers, flops * 1e-9);
      if (flops <= y0) continue;
      // From the memory's slope on.
      const double from = std::max(x0, flops / roof.bytes);
      svg += fmt::format(R"(<polyline class="roof" stroke-dasharray="1 3" points="{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}"/>)", x(std::min(knee, from)),
                         y(std::min(knee, from) * roof.bytes), x(from), y(flops), x(x1), y(flops));
      svg += fmt::format(R"(<text x="350" y="{:.1f}" text-anchor="end">matrix {}</text>)", y(flops) - 3, html_text(numbers));
    }
    for (std::size_t i : shown) {
      const auto& a = averages_[i];
      svg +=
          fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="4" fill="{}" fill-opacity=".85"><title>{}: {:.2f} GFLOP/s, {:.0f} % of the roof</title></circle>)",
                      x(a.flops / a.bytes), y(a.roof.gflops * 1e9), colour(a.key), html_text(a.key), a.roof.gflops, a.roof.roof_pct);
    }
    svg += fmt::format(
        R"(<text x="350" y="246" text-anchor="end">FLOP per byte</text><text x="46" y="8">FLOP/s</text></svg><p class="note">Memory {:.1f} GB/s, compute {:.1f} GFLOP/s (f32){}{}, measured by clutch-bench. Caches may lift small commands over the line.</p>)",
        roof.bytes * 1e-9, roof.flops * 1e-9, roof.flops64 > 0 ? fmt::format(" and {:.1f} (f64, dashed)", roof.flops64 * 1e-9) : "",
        matrix.empty() ? std::string() : fmt::format(", matrix instructions (dotted) {} GFLOP/s", matrix));
    out_.write(svg + '\n');
  }

  void write_gaps() {
    using profiler::IdleGap;
    struct Sum {
      double us = 0, longest = 0;
      int count = 0;
      std::map<std::string, double> for_what;
    };
    std::map<IdleGap::Cause, Sum> sums;
    for (const IdleGap& gap : profile_gaps(profile_, 5)) {
      Sum& s = sums[gap.cause];
      const double us = static_cast<double>(gap.end_ns - gap.start_ns) * 1e-3;
      s.us += us, s.longest = std::max(s.longest, us), ++s.count;
      if (!gap.waits_for.empty()) s.for_what[gap.waits_for] += us;
    }
    out_.write("<h2>Idle gaps of streams</h2>\n");
    if (sums.empty()) {
      out_.write("<p class=\"note\">None of 5 µs or more.</p>\n");
      return;
    }
    out_.write(
        "<div class=\"wide\"><table class=\"gaps\"><tr><th>cause</th><th>time</th><th>gaps</th><th class=\"more\">longest</th><th>most of it for</th></tr>\n");
    for (const auto& [cause, s] : sums) {
      auto most = std::max_element(s.for_what.begin(), s.for_what.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
      constexpr std::array<std::string_view, 4> kWords{"host busy", "queue empty", "waiting for an event", "launch"};
      out_.write(fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"more\">{}</td><td>{}</td></tr>\n", kWords.at(static_cast<std::size_t>(cause)),
                             duration_text(s.us), s.count, duration_text(s.longest), most == s.for_what.end() ? "–" : html_text(most->first)));
    }
    out_.write("</table></div>\n");
  }

  const Profile& profile_;
  OutputFile out_;
  std::vector<profiler::KeyAverage> averages_;
  std::uint64_t begin_ = 0, end_ = 1;
};

}  // namespace

void write_html(const Profile& profile, const std::string& path) { Page(profile, path).write(); }

}}}  // namespace clutch::v0::detail
