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
tr:target td{background:var(--panel);box-shadow:inset 0 0 0 1px #56b4e9}
.legend a{color:inherit;text-decoration:none}
.less{display:none;color:var(--soft);font-size:12px}
details{margin:8px 0}summary{cursor:pointer;font-size:13px;color:var(--soft)}
h3{font-size:14px;font-weight:500;color:var(--soft);margin:16px 0 4px}
.plot{width:100%;max-width:620px;display:block}
.plot text{font-size:9px;fill:var(--soft)}.plot .over{paint-order:stroke;stroke:var(--back);stroke-width:3px}.plot .grid{stroke:var(--line);stroke-width:.6}.plot .roof{fill:none;stroke:var(--ink);stroke-width:1.6}
.two{display:grid;gap:0 32px}.two>div{min-width:0}
@media(min-width:1000px){.two{grid-template-columns:minmax(0,1fr) minmax(0,1fr)}}
@media(max-width:700px){.plot text{font-size:11.5px}.less{display:block}}
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
    for (std::size_t i = 0; i < std::min(averages_.size(), kMostCommands); ++i) row_of_.emplace(averages_[i].key, i);
    begin_ = profile.log->start, end_ = std::max(profile.log->stop, begin_ + 1);
    for (std::uint32_t i : profile.order)
      if (is_work(profile.record(i))) end_ = std::max(end_, profile.record(i).end);
  }

  void write() {
    out_.write(page_head("clutch profile", kStyle) + "<h1>Profile</h1>\n");
    write_facts();
    write_timeline();
    write_kernels();
    out_.write("<div class=\"two\"><div>\n");
    write_roof();
    out_.write("</div><div>\n");
    write_gaps();
    out_.write("</div></div>\n</body></html>\n");
    out_.commit();
  }

 private:
  /// How much of which limit a command reaches, with what its matrix instructions multiply.
  static std::string roof_text(const profiler::RoofPoint& roof) {
    const std::string matrix = roof.matrix.empty() ? std::string() : fmt::format(" (matrix {})", roof.matrix);
    if (roof.roof_pct > 0) return fmt::format("{} {}{}", percent(roof.roof_pct), roof.binding, matrix);
    return matrix.empty() ? "–" : "not known" + matrix;
  }
  /// Where a tap on a command of a name leads: its row of the table, or the table.
  std::string row_of(std::string_view name) const {
    auto found = row_of_.find(name);
    return found == row_of_.end() ? std::string("#commands") : fmt::format("#c{}", found->second);
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
    for (const auto& [index, device] : profile_.devices) out_.write(fmt::format("<p class=\"note\">Device {}: {}</p>\n", index, html_words(device.name)));
  }

  /// Slices of one row. Those that a screen cannot tell apart are one, of the colour of the longest.
  class TimelineRow {
   public:
    TimelineRow(double begin, double end, double least) : begin_(begin), end_(end), least_(least), scale_(kWidth / (end - begin)) {}
    void add(double begin, double end, std::string_view name, const char* colour, const std::string& facts, const std::string& leads_to) {
      if (end < begin_ || begin > end_) return;
      const double x = std::max((begin - begin_) * scale_, 0.0), width = std::max(std::min((end - begin_) * scale_, kWidth) - x, 0.0);
      if (pending_ && x + width - from_ < least_) {
        to_ = std::max(to_, x + width), ++count_;
        if (end - begin <= longest_) return;
      } else {
        flush();
        pending_ = true, from_ = x, to_ = x + width, count_ = 1;
      }
      longest_ = end - begin, colour_ = colour, leads_to_ = leads_to;
      text_ = fmt::format("{}: {}", html_text(name), facts);
    }
    std::string finish() {
      flush();
      return std::move(svg_);
    }
    static constexpr double kWidth = 2000;

   private:
    void flush() {
      if (!std::exchange(pending_, false)) return;
      if (count_ > 1) text_ = fmt::format("{} in all, the longest is {}", count_, text_);
      const std::string rect = fmt::format("<rect x=\"{:.2f}\" width=\"{:.2f}\" y=\"1\" height=\"20\" fill=\"{}\"><title>{}</title></rect>", from_,
                                           std::max(to_ - from_, 0.4), colour_, text_);
      svg_ += leads_to_.empty() ? rect : fmt::format("<a href=\"{}\">{}</a>", leads_to_, rect);
    }
    double begin_, end_, least_, scale_, from_ = 0, to_ = 0, longest_ = 0;
    bool pending_ = false;
    int count_ = 0;
    const char* colour_ = kPageOther;
    std::string text_, leads_to_, svg_;
  };

  void write_timeline() {
    out_.write("<h2>Timeline</h2>\n");
    write_rows(begin_, end_);
    if (const auto [begin, end] = busiest(); end > begin && end - begin < (end_ - begin_) / 3) {
      out_.write(fmt::format("<h3>From {} to {}, with most of the device's work</h3>\n", time_text(begin), time_text(end)));
      write_rows(begin, end);
    }
    out_.write("<div class=\"legend\">");
    for (std::size_t i = 0; i < std::min(averages_.size(), kPageColours.size()); ++i)
      out_.write(fmt::format("<a href=\"#c{}\"><span><i style=\"background:{}\"></i>{}</span></a>", i, kPageColours.at(i), html_words(averages_[i].key)));
    out_.write(fmt::format("<span><i style=\"background:{}\"></i>others</span></div>\n", kPageOther));
    write_longest();
  }

  /// A time since the profile's begin.
  std::string time_text(std::uint64_t at) const { return duration_text(static_cast<double>(at > begin_ ? at - begin_ : 0) * 1e-3); }

  /// The shortest stretch that holds four fifths of the time in which a device was busy; both ends are 0 if none was.
  std::pair<std::uint64_t, std::uint64_t> busiest() const {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> work;  // in which some stream was busy
    for (std::uint32_t i : profile_.order) {
      const ProfileRecord& r = profile_.record(i);
      if (!is_work(r) || r.end <= r.begin) continue;
      if (!work.empty() && r.begin <= work.back().second)
        work.back().second = std::max(work.back().second, r.end);
      else
        work.emplace_back(r.begin, r.end);
    }
    std::uint64_t all = 0, held = 0, best = UINT64_MAX;
    for (const auto& [begin, end] : work) all += end - begin;
    std::pair<std::uint64_t, std::uint64_t> found{0, 0};
    for (std::size_t first = 0, last = 0; first < work.size(); ++first) {
      for (; last < work.size() && held * 5 < all * 4; ++last) held += work[last].second - work[last].first;
      if (held * 5 < all * 4) break;
      if (const std::uint64_t length = work[last - 1].second - work[first].first; length < best)
        best = length, found = {work[first].first, work[last - 1].second};
      held -= work[first].second - work[first].first;
    }
    if (found.second == 0) return found;
    const std::uint64_t margin = best / 20 + 1;
    return {std::max(begin_, found.first - std::min(margin, found.first)), std::min(end_, found.second + margin)};
  }

  /// A row for each thread and each stream, and the axis under them.
  void write_rows(std::uint64_t begin, std::uint64_t end) {
    constexpr std::size_t kMostRows = 32, kMostShapes = 12'000;  // rows of threads, and as many of streams
    auto is_drawn = [](const ProfileRecord& r) { return is_work(r) || r.kind == RecordKind::op || r.kind == RecordKind::sync; };
    auto key_of = [](const ProfileRecord& r) { return is_work(r) ? std::pair(1 + r.device, r.stream) : std::pair(0, std::uint64_t{r.thread}); };
    std::map<std::pair<int, std::uint64_t>, TimelineRow> rows;  // threads, then streams
    std::map<std::pair<int, std::uint64_t>, std::uint64_t> ends;
    for (std::uint32_t i : profile_.order)
      if (const ProfileRecord& r = profile_.record(i); is_drawn(r)) ends[key_of(r)] = 0;
    // Many rows have fewer shapes each, so that a browser stays quick.
    const double least = std::max(1.0, static_cast<double>(std::min(ends.size(), 2 * kMostRows)) * TimelineRow::kWidth / static_cast<double>(kMostShapes));
    for (std::uint32_t i : profile_.order) {
      const ProfileRecord& r = profile_.record(i);
      const bool device = is_work(r);
      if (!is_drawn(r)) continue;
      const std::pair<int, std::uint64_t> key = key_of(r);
      // Of nested ops the outer one is drawn.
      if (std::uint64_t& last = ends[key]; !device && r.begin < last)
        continue;
      else
        last = std::max(last, r.end);
      auto [row, fresh] = rows.try_emplace(key, static_cast<double>(begin), static_cast<double>(end), least);
      const std::string_view name = trace_name(r);
      row->second.add(static_cast<double>(r.begin), static_cast<double>(r.end), name,
                      device                       ? colour(name)
                      : r.kind == RecordKind::sync ? "#c3c8cf"
                                                   : kPageOther,
                      duration_text(static_cast<double>(r.end - r.begin) * 1e-3), device ? row_of(name) : std::string());
    }
    if (rows.empty()) out_.write("<p class=\"note\">No op and no command was recorded.</p>\n");
    std::size_t threads = 0, streams = 0, left_out = 0;
    for (auto& [key, row] : rows) {
      if (++(key.first == 0 ? threads : streams) > kMostRows) {
        ++left_out;
        continue;
      }
      out_.write(fmt::format(
          "<div class=\"row\"><span>{}</span><svg viewBox=\"0 0 {:.0f} 22\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">{}</svg></div>\n",
          key.first == 0 ? fmt::format("host, thread {}", key.second) : fmt::format("device {}, stream {}", key.first - 1, key.second), TimelineRow::kWidth,
          key.first == 0 ? "ops of a thread" : "commands of a stream", row.finish()));
    }
    if (left_out > 0) out_.write(fmt::format("<p class=\"note\">{} more threads and streams are in traces alone.</p>\n", left_out));
    out_.write(fmt::format("<div class=\"axis\"><span>{}</span><span>{}</span><span>{}</span></div>\n", begin == begin_ ? "0" : time_text(begin),
                           time_text(begin + (end - begin) / 2), time_text(end)));
  }

  /// What the timeline's tips tell, of the slices that one looks at first: a finger has no tips.
  void write_longest() {
    constexpr std::size_t kMost = 20;
    std::vector<std::uint32_t> longest;
    for (std::uint32_t i : profile_.order)
      if (is_work(profile_.record(i))) longest.push_back(i);
    if (longest.empty()) return;
    const std::size_t shown = std::min(longest.size(), kMost);
    auto length = [&](std::uint32_t i) { return profile_.record(i).end - profile_.record(i).begin; };
    std::partial_sort(longest.begin(), longest.begin() + static_cast<std::ptrdiff_t>(shown), longest.end(),
                      [&](std::uint32_t a, std::uint32_t b) { return length(a) != length(b) ? length(a) > length(b) : a < b; });
    out_.write(
        "<details><summary>The longest commands</summary><div class=\"wide\"><table><tr><th>name</th><th>begins at</th><th>time</th><th "
        "class=\"more\">device</th><th>stream</th></tr>\n");
    for (std::size_t k = 0; k < shown; ++k) {
      const ProfileRecord& r = profile_.record(longest[k]);
      const ProfileRecord* op = profile_.parent_of(r);
      out_.write(fmt::format("<tr><td>{}{}</td><td>{}</td><td>{}</td><td class=\"more\">{}</td><td>{}</td></tr>\n", html_words(trace_name(r)),
                             op ? fmt::format(" <span class=\"note\">in {}</span>", html_words(trace_name(*op))) : std::string(), time_text(r.begin),
                             duration_text(static_cast<double>(r.end - r.begin) * 1e-3), r.device, r.stream));
    }
    out_.write("</table></div></details>\n");
  }

  void write_kernels() {
    out_.write(
        "<h2 id=\"commands\">Commands by time</h2><div class=\"wide\"><table><tr><th>name</th><th>time</th><th>calls</th><th class=\"more\">average</th><th "
        "class=\"more\">GFLOP/s</th><th class=\"more\">GB/s</th><th>roof</th><th class=\"more\">roof allows</th></tr>\n");
    const double most = averages_.empty() ? 1 : averages_.front().device_time_total;
    for (std::size_t i = 0; i < std::min(averages_.size(), kMostCommands); ++i) {
      const profiler::KeyAverage& a = averages_[i];
      auto number = [](double v) { return v > 0 ? fmt::format("{:.2f}", v) : std::string("–"); };
      const double part = a.device_time_total / std::max(most, 1e-9);
      const std::string average = duration_text(a.device_time_total / static_cast<double>(a.count)),
                        allowed = a.roof.roof_us > 0 ? duration_text(a.roof.roof_us) : std::string("–");
      std::string narrow = "average " + average;  // what narrow windows have no columns for
      if (a.roof.gflops > 0) narrow += fmt::format(", {:.2f} GFLOP/s", a.roof.gflops);
      if (a.roof.gbps > 0) narrow += fmt::format(", {:.2f} GB/s", a.roof.gbps);
      if (a.roof.roof_us > 0) narrow += ", roof allows " + allowed;
      out_.write(fmt::format(
          "<tr id=\"c{}\"><td>{}<span class=\"less\">{}</span>{}</td><td>{}</td><td>{}</td><td class=\"more\">{}</td><td class=\"more\">{}</td><td "
          "class=\"more\">{}</td><td>{}</td><td class=\"more\">{}</td></tr>\n",
          i, html_words(a.key), narrow,
          part >= 0.01 ? fmt::format("<span class=\"bar\" style=\"width:{:.1f}%;background:{}\"></span>", 100 * part, colour(a.key)) : std::string(),
          duration_text(a.device_time_total), a.count, average, number(a.roof.gflops), number(a.roof.gbps), roof_text(a.roof), allowed));
    }
    out_.write("</table></div>\n");
    if (averages_.empty()) out_.write("<p class=\"note\">No command was recorded.</p>\n");
    if (averages_.size() > kMostCommands) out_.write(fmt::format("<p class=\"note\">{} more names take less.</p>\n", averages_.size() - kMostCommands));
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
    constexpr double kLeft = 46, kRight = 342, kTop = 20, kBottom = 218;
    auto x = [&](double v) { return kLeft + (kRight - kLeft) * std::log10(v / x0) / std::log10(x1 / x0); };
    auto y = [&](double v) { return kBottom - (kBottom - kTop) * std::log10(std::max(v, y0) / y0) / std::log10(y1 / y0); };
    std::string svg = "<h2>Roofline</h2><svg class=\"plot\" viewBox=\"0 0 360 258\" role=\"img\" aria-label=\"roofline\">";
    // Numbers at every decade where there is room.
    const int x_step = 1 + static_cast<int>(std::log10(x1 / x0)) / 7, y_step = 1 + static_cast<int>(std::log10(y1 / y0)) / 14;
    for (int decade_of = 0; x0 * std::pow(10, decade_of) <= x1 * 1.01; ++decade_of) {
      const double v = x0 * std::pow(10, decade_of);
      svg += fmt::format(R"(<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>)", x(v), kTop, kBottom);
      if (decade_of % x_step == 0)
        svg += fmt::format(R"(<text x="{:.1f}" y="236" text-anchor="middle">{}</text>)", x(v), v > 0.0009 && v < 999 ? fmt::format("{:g}", v) : prefixed(v));
    }
    for (int decade_of = 0; y0 * std::pow(10, decade_of) <= y1 * 1.01; ++decade_of) {
      const double v = y0 * std::pow(10, decade_of);
      svg += fmt::format(R"(<line class="grid" x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}"/>)", kLeft, kRight, y(v));
      if (decade_of % y_step == 0) svg += fmt::format(R"(<text x="{}" y="{:.1f}" text-anchor="end">{}</text>)", kLeft - 4, y(v) + 4, prefixed(v));
    }
    const double knee = roof.flops / roof.bytes, left = std::max(x0, y0 / roof.bytes);
    svg += fmt::format(R"(<polyline class="roof" points="{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}"/>)", x(left), y(left * roof.bytes), x(knee), y(roof.flops),
                       x(x1), y(roof.flops));
    if (roof.flops64 > 0 && roof.flops64 > y0)
      svg += fmt::format(R"(<line class="roof" stroke-dasharray="4 3" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>)",
                         x(std::max(x0, roof.flops64 / roof.bytes)), x(x1), y(roof.flops64), y(roof.flops64));
    std::string matrix;
    std::vector<std::pair<double, std::string>> named;  // limits by their places
    for (const auto& [numbers, flops] : roof.matrix) {
      matrix += fmt::format("{}{} {:.1f}", matrix.empty() ? "" : ", ", numbers, flops * 1e-9);
      if (flops <= y0) continue;
      // From the memory's slope on.
      const double from = std::max(x0, flops / roof.bytes);
      svg += fmt::format(R"(<polyline class="roof" stroke-dasharray="1 3" points="{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}"/>)", x(std::min(knee, from)),
                         y(std::min(knee, from) * roof.bytes), x(from), y(flops), x(x1), y(flops));
      named.emplace_back(y(flops), numbers);
    }
    // Limits that are close have one text.
    std::sort(named.begin(), named.end());
    for (std::size_t i = 0; i < named.size();) {
      const double top = named[i].first;
      std::string names = named[i].second;
      double last = top;
      for (++i; i < named.size() && named[i].first < last + 14; ++i) names += ", " + named[i].second, last = named[i].first;
      svg += fmt::format(R"(<text class="over" x="{}" y="{:.1f}" text-anchor="end">matrix {}</text>)", kRight, top - 4, html_text(names));
    }
    for (std::size_t i : shown) {
      const auto& a = averages_[i];
      svg += fmt::format(
          R"(<a href="{}"><circle cx="{:.1f}" cy="{:.1f}" r="4" fill="{}" fill-opacity=".85"><title>{}: {:.2f} GFLOP/s, {:.0f} % of the roof</title></circle></a>)",
          row_of(a.key), x(a.flops / a.bytes), y(a.roof.gflops * 1e9), colour(a.key), html_text(a.key), a.roof.gflops, a.roof.roof_pct);
    }
    svg += fmt::format(
        R"(<text x="342" y="252" text-anchor="end">FLOP per byte</text><text x="46" y="12">FLOP/s</text></svg><p class="note">Memory {:.1f} GB/s, compute {:.1f} GFLOP/s (f32){}{}, measured by clutch-bench. Caches may lift small commands over the line.</p>)",
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
                             duration_text(s.us), s.count, duration_text(s.longest), most == s.for_what.end() ? "–" : html_words(most->first)));
    }
    out_.write("</table></div>\n");
  }

  const Profile& profile_;
  OutputFile out_;
  static constexpr std::size_t kMostCommands = 30;
  std::vector<profiler::KeyAverage> averages_;
  std::map<std::string, std::size_t, std::less<>> row_of_;
  std::uint64_t begin_ = 0, end_ = 1;
};

}  // namespace

void write_html(const Profile& profile, const std::string& path) { Page(profile, path).write(); }

}}}  // namespace clutch::v0::detail
