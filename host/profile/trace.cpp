// SPDX-License-Identifier: Apache-2.0
// The trace that Perfetto, chrome://tracing and HolisticTraceAnalysis read, with the names of PyTorch's profiler.
#include "profile/output.hpp"
#include "profile/profile.hpp"
#include "support/system.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <set>
#include <span>
#include <unordered_set>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

/// Overlaps of commands of one stream up to this are inexact clocks.
constexpr std::uint64_t kJitter = 1000;
/// Commands that really overlap on a stream get rows of their own, with so much added to the stream's number.
constexpr std::uint64_t kLane = 1'000'000;
/// The row of a stream's idle gaps has its number and this.
constexpr std::uint64_t kIdleRow = kLane / 2;
/// Gaps that a trace has, in microseconds: shorter ones are those between commands of a queue that is full.
constexpr double kLeastGap = 5;

std::string json_text(std::string_view text) { return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); }

/// Nanoseconds as microseconds with three digits: exact.
std::string micro(std::uint64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

/// A slice with its place.
struct Placed {
  std::uint32_t record = 0;
  bool is_range = false;
  std::uint16_t device = 0;
  std::uint64_t row = 0, begin = 0, end = 0;
};

/// Puts commands and ranges of one stream on rows on which slices nest.
class Lanes {
 public:
  void place(Placed& p, std::uint64_t stream) {
    for (std::size_t lane = 0;; ++lane) {
      if (lane == open_.size()) open_.emplace_back();
      if (!fits(open_[lane], p)) continue;
      open_[lane].push_back({p.end, p.is_range});
      p.row = stream + lane * kLane;
      return;
    }
  }

 private:
  struct Open {
    std::uint64_t end;
    bool is_range;
  };
  static bool fits(std::vector<Open>& open, Placed& p) {
    while (!open.empty()) {
      const Open& inner = open.back();
      const bool jitter = !inner.is_range && p.begin < inner.end && inner.end - p.begin < kJitter;
      if (inner.end > p.begin && !jitter) break;
      if (jitter) {
        p.begin = inner.end;
        p.end = std::max(p.end, p.begin);
      }
      open.pop_back();
    }
    if (open.empty()) return true;
    if (!open.back().is_range) return false;
    if (p.end <= open.back().end) return true;
    if (p.end - open.back().end >= kJitter) return false;
    p.end = open.back().end;
    return p.begin <= p.end;
  }
  std::vector<std::vector<Open>> open_;
};

std::vector<Placed> place_commands(const Profile& profile) {
  std::map<std::pair<std::uint16_t, std::uint64_t>, std::vector<Placed>> streams;
  for (const DeviceRange& range : device_ranges(profile))
    streams[{range.device, range.stream}].push_back({range.range, true, range.device, 0, range.begin - 1, range.end + 2});
  for (std::uint32_t i : profile.order)
    if (const ProfileRecord& r = profile.record(i); is_timed(r)) streams[{r.device, r.stream}].push_back({i, false, r.device, 0, r.begin, r.end});
  std::vector<Placed> all;
  for (auto& [key, list] : streams) {
    std::stable_sort(list.begin(), list.end(), [](const Placed& a, const Placed& b) { return a.begin != b.begin ? a.begin < b.begin : a.end > b.end; });
    Lanes lanes;
    for (Placed& p : list) lanes.place(p, key.second);
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

class TraceWriter {
 public:
  TraceWriter(const Profile& profile, const std::string& path, const profiler::TraceOptions& options)
      : profile_(profile), options_(options), out_(path, "profiler::Profiler::export_chrome_trace"), pid_(process_id()) {
    constexpr std::uint64_t kThreeMonths = 7'889'238'000'000'000;  // as Kineto's, so that times of several processes are of one base
    base_ = profile.log->wall_start / kThreeMonths * kThreeMonths;
  }

  void write() {
    commands_ = place_commands(profile_);
    for (const Placed& p : commands_)
      if (!p.is_range) timed_.insert(profile_.record(p.record).id);
    // HolisticTraceAnalysis finds idle times by itself, and would take these for work.
    if (!has_hta_names()) gaps_ = profile_gaps(profile_, kLeastGap);
    find_members();
    write_head();
    write_rows();
    // Threads first: HolisticTraceAnalysis takes the first slice of a range's name for the range.
    for (std::uint32_t i : profile_.order) write_host(profile_.record(i));
    for (const Placed& p : commands_) write_command(p);
    for (const Placed& p : commands_)
      if (const std::uint64_t id = profile_.record(p.record).id; !p.is_range && calls_.contains(id))
        event(R"({{"ph":"f","bp":"e","id":{},"cat":"ac2g","name":"ac2g","pid":{},"tid":{},"ts":{}}})", id, p.device, p.row, at(p.begin));
    for (const profiler::IdleGap& gap : gaps_) write_gap(gap);
    const std::uint64_t length = profile_.log->stop - std::min(profile_.log->stop, profile_.log->start);
    event(R"({{"ph":"X","cat":"Trace","name":"clutch profiler","pid":"Spans","tid":"clutch profiler","ts":{},"dur":{},"args":{{"Op count":{}}}}})",
          at(profile_.log->start), micro(length), profile_.log->size());
    event(R"({{"ph":"i","s":"g","name":"Record Window End","pid":"","tid":"","ts":{}}})", at(std::max(profile_.log->stop, profile_.log->start)));
    out_.write("\n]}\n");
    out_.commit();
  }

 private:
  std::string at(std::uint64_t host) const { return of_start(profile_.since_start(host)); }
  std::string of_start(std::uint64_t ns) const { return micro(profile_.log->wall_start - base_ + ns); }

  template <class... T>
  void event(fmt::format_string<T...> format, T&&... values) {
    text_.clear();
    text_ += first_ ? "\n" : ",\n";
    first_ = false;
    fmt::format_to(std::back_inserter(text_), format, std::forward<T>(values)...);
    out_.write(text_);
  }

  void write_head() {
    const profiler::ProfileTotals totals = profile_.totals();
    std::string head = "{\"schemaVersion\":1,\"deviceProperties\":[";
    const char* comma = "";
    for (const auto& [index, device] : profile_.devices) {
      head += fmt::format(R"({}{{"id":{},"name":{},"totalGlobalMem":{},"computeMajor":0,"computeMinor":0,"maxThreadsPerBlock":{},"numSms":{})", comma, index,
                          json_text(device.name), device.global_bytes, device.max_work_group, device.compute_units);
      if (device.roof.flops > 0 || device.roof.bytes > 0)
        head += fmt::format(R"(,"roof GFLOP/s":{:.3f},"roof GFLOP/s of f64":{:.3f},"roof GB/s":{:.3f})", device.roof.flops * 1e-9, device.roof.flops64 * 1e-9,
                            device.roof.bytes * 1e-9);
      for (const auto& [numbers, flops] : device.roof.matrix)
        head += fmt::format(R"(,{}:{:.3f})", json_text(fmt::format("roof GFLOP/s of matrix instructions of {}", numbers)), flops * 1e-9);
      head += '}';
      comma = ",";
    }
    head += fmt::format(R"(],"distributedInfo":{})", distributed_);
    for (const auto& [key, json] : profile_.metadata) head += fmt::format(",{}:{}", json_text(key), json), members_.erase(key);
    for (const auto& [key, json] : members_) head += fmt::format(",{}:{}", json_text(key), json);
    head += fmt::format(R"(,"profile_memory":{:d},"record_shapes":{:d},"with_flops":1)", (profile_.log->options.what & kProfileMemory) != 0,
                        (profile_.log->options.what & kProfileShapes) != 0);
    head += fmt::format(
        R"(,"profilerOverhead":{{"total us":{:.3f},"us per command":{:.3f},"events":{},"dropped events":{},"untimed commands":{}}},"displayTimeUnit":"ms","baseTimeNanoseconds":{},"trace_id":"{:016x}{:016x}","traceName":"clutch","traceEvents":[)",
        totals.overhead_us, totals.command_cost_us, totals.events, totals.dropped, totals.untimed, base_, profile_.log->wall_start, pid_);
    out_.write(head);
  }

  void name_row(const std::string& pid, std::uint64_t tid, std::string_view name, std::uint64_t order) {
    event(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"ts":0.000,"args":{{"name":{}}}}})", pid, tid, json_text(name));
    event(R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"ts":0.000,"args":{{"sort_index":{}}}}})", pid, tid, order);
  }

  void name_process(const std::string& pid, std::string_view name, std::string_view label, std::uint64_t order) {
    event(R"({{"ph":"M","name":"process_name","pid":{},"tid":0,"ts":0.000,"args":{{"name":{}}}}})", pid, json_text(name));
    event(R"({{"ph":"M","name":"process_labels","pid":{},"tid":0,"ts":0.000,"args":{{"labels":{}}}}})", pid, json_text(label));
    event(R"({{"ph":"M","name":"process_sort_index","pid":{},"tid":0,"ts":0.000,"args":{{"sort_index":{}}}}})", pid, order);
  }

  /// What the head says beyond the trace itself.
  void find_members() {
    // HolisticTraceAnalysis finds the rank by the space before it.
    distributed_ = fmt::format(R"({{"backend":"clutch","rank": {},"world_size":{}}})", options_.rank, options_.world_size);
    rank_ = options_.rank;
    TraceMembers& members = trace_members();
    const std::lock_guard lock(members.mutex);
    members_ = members.of;
    const auto found = members_.find("distributedInfo");
    if (found == members_.end()) return;
    if (options_.world_size == 1) {
      distributed_ = found->second;
      const nlohmann::json info = nlohmann::json::parse(distributed_);
      const auto rank = info.is_object() ? info.find("rank") : info.end();
      if (rank != info.end() && rank->is_number_integer()) rank_ = rank->get<int>();
    }
    members_.erase(found);
  }

  void write_rows() {
    std::set<std::uint32_t> threads;
    for (std::uint32_t i : profile_.order)
      if (const ProfileRecord& r = profile_.record(i); !is_command(r.kind)) threads.insert(r.thread);
    const std::string own = fmt::format("{}", pid_);
    name_process(own, fmt::format("clutch rank {}", rank_), "CPU", 0);
    for (std::uint32_t thread : threads) name_row(own, thread, fmt::format("thread {}", thread), thread);
    std::set<std::pair<std::uint16_t, std::uint64_t>> rows;
    for (const Placed& p : commands_)
      if (!p.is_range) rows.insert({profile_.record(p.record).device, p.row});
    for (const auto& [index, device] : profile_.devices)
      name_process(fmt::format("{}", index), device.name, fmt::format("GPU {}", index), 5'000'000 + static_cast<std::uint64_t>(index));
    for (const auto& [device, row] : rows)
      name_row(fmt::format("{}", device), row, row < kLane ? fmt::format("stream {} ", row) : fmt::format("stream {} overlapping {}", row % kLane, row / kLane),
               2 * row);
    std::set<std::pair<int, std::uint64_t>> idle;
    for (const profiler::IdleGap& gap : gaps_)
      if (idle.insert({gap.device_index, gap.stream}).second)
        name_row(fmt::format("{}", gap.device_index), gap.stream + kIdleRow, fmt::format("stream {} idle", gap.stream), 2 * gap.stream + 1);
  }

  static std::string link(std::uint64_t parent) { return parent == 0 ? std::string() : fmt::format(R"("External id":{},)", parent); }

  /// Operands as PyTorch's profiler writes them: lists of lists.
  static std::string operands(std::span<const ProfiledOperand> list) {
    std::string sizes, strides, dtypes;
    auto dims = [](const Dims& d) { return fmt::format("[{}],", fmt::join(d.begin(), d.end(), ",")); };
    for (const ProfiledOperand& operand : list) {
      sizes += dims(operand.sizes);
      strides += dims(operand.strides);
      dtypes += fmt::format(R"("{}",)", clutch::name(operand.dtype));
    }
    for (std::string* text : {&sizes, &strides, &dtypes})
      if (!text->empty()) text->pop_back();
    return fmt::format(R"("Input Dims":[{}],"Input Strides":[{}],"Input type":[{}],)", sizes, strides, dtypes);
  }

  void write_command(const Placed& p) {
    const ProfileRecord& r = profile_.record(p.record);
    const std::string ts = at(p.begin), dur = micro(p.end - p.begin);
    if (p.is_range) {
      event(R"({{"ph":"X","cat":"gpu_user_annotation","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{"External id":{}}}}})", json_text(trace_name(r)),
            p.device, p.row, ts, dur, r.id);
      return;
    }
    std::string args = link(r.parent);
    if (r.kind == RecordKind::wait) {
      event(
          R"({{"ph":"X","cat":"cuda_sync","name":"Stream Wait Event","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}"stream":{},"wait_on_stream":{},"correlation":{}}}}})",
          r.device, p.row, ts, dur, args, r.stream, r.graph, r.id);
    } else {
      fmt::format_to(std::back_inserter(args), R"("queued":0,"queued us":{},"device":{},"context":1,"stream":{},"correlation":{})", micro(r.begin - r.queued),
                     r.device, r.stream, r.id);
      add_facts(r, args);
      const ProfiledFacts* const facts = profile_.facts_of(r);
      if (facts) add_arguments(*facts, args);
      const bool is_renamed = facts && has_hta_names() && !facts->command_name.empty() && (r.kind == RecordKind::kernel || r.kind == RecordKind::opaque);
      event(R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})", category(r),
            json_text(is_renamed ? facts->command_name : trace_name(r)), r.device, p.row, ts, dur, args);
    }
  }

  /// A gap on the row of its stream's, named by its cause.
  void write_gap(const profiler::IdleGap& gap) {
    const std::string_view cause = profiler::name(gap.cause);
    std::string args = fmt::format(R"("cause":"{}","idle stream":{},"before":{},"after":{})", cause, gap.stream, json_text(gap.before), json_text(gap.after));
    if (!gap.waits_for.empty()) args += fmt::format(R"(,"waits for":{})", json_text(gap.waits_for));
    if (gap.cause == profiler::IdleGap::Cause::event) args += fmt::format(R"(,"waits on stream":{})", gap.wait_stream);
    const std::string named = gap.waits_for.empty() ? std::string(cause) : fmt::format("{}: {}", cause, gap.waits_for);
    event(R"({{"ph":"X","cat":"idle_gap","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})", json_text(named), gap.device_index,
          gap.stream + kIdleRow, of_start(gap.start_ns), micro(gap.end_ns - gap.start_ns), args);
  }

  bool has_hta_names() const { return options_.names == profiler::TraceNames::hta; }

  /// Behind other arguments, none of which is written twice.
  static void add_arguments(const ProfiledFacts& facts, std::string& args) {
    for (const auto& [key, json] : facts.arguments)
      if (const std::string member = json_text(key) + ':'; args.find(member) == std::string::npos)
        fmt::format_to(std::back_inserter(args), "{}{}{}", args.empty() ? "" : ",", member, json);
  }

  void add_facts(const ProfileRecord& r, std::string& args) const {
    auto out = std::back_inserter(args);
    const double seconds = static_cast<double>(r.end - r.begin) * 1e-9;
    if (r.kind == RecordKind::kernel) {
      const std::uint64_t local[] = {r.local, r.local_y, r.local_z}, items[] = {r.global, r.global_y, r.global_z};
      std::uint64_t grid[3];
      for (int d = 0; d < 3; ++d) grid[d] = r.local == 0 || local[d] == 0 ? items[d] : (items[d] + local[d] - 1) / local[d];
      fmt::format_to(out, R"(,"grid":[{},{},{}],"block":[{},{},{}])", grid[0], grid[1], grid[2], local[0], local[1], local[2]);
    } else if (r.kind != RecordKind::opaque) {
      const double bytes = r.kind == RecordKind::copy ? r.bytes / 2 : r.bytes;
      fmt::format_to(out, R"(,"bytes":{:.0f})", bytes);
      if (seconds > 0) fmt::format_to(out, R"x(,"memory bandwidth (GB/s)":{:.4f})x", bytes / seconds * 1e-9);
    }
    if (*r.plan) fmt::format_to(out, R"(,"plan":{})", json_text(r.plan));
    if (r.flops > 0) fmt::format_to(out, R"(,"flops":{:.0f},"GFLOP/s":{:.4f})", r.flops, seconds > 0 ? r.flops / seconds * 1e-9 : 0.0);
    if (r.bytes > 0) fmt::format_to(out, R"(,"bytes stated":{:.0f},"GB/s":{:.4f})", r.bytes, seconds > 0 ? r.bytes / seconds * 1e-9 : 0.0);
    const profiler::RoofPoint roof = profile_.roof_of(r);
    if (!roof.matrix.empty()) fmt::format_to(out, R"(,"matrix instructions":"{}")", roof.matrix);
    if (!roof.binding.empty())
      fmt::format_to(out, R"(,"roof":"{}","roof us":{:.3f},"roof %":{:.2f})", roof.binding, roof.roof_us, roof.roof_pct);
    else if (!roof.matrix.empty())
      fmt::format_to(out, R"(,"roof":"not known")");
    if (const std::uint64_t node = graph_node_id(r); node != 0) fmt::format_to(out, R"(,"graph id":{},"graph node id":{})", r.graph, node);
    for (const auto& [key, value] : node_labels(profile_, r))
      fmt::format_to(out, ",{}:{}", json_text(args.find(json_text(key) + ":") == std::string::npos ? key : "label " + key), json_text(value));
  }

  /// The name of a call that enqueues.
  std::string_view call_name(const ProfileRecord& r) const {
    if (!has_hta_names()) return r.name;
    const std::string_view name = r.name;
    if (name == "clEnqueueNDRangeKernel" || name == "clEnqueueCommandBufferKHR" || name == "opaque task") return "cudaLaunchKernel";
    if (name == "clEnqueueFillBuffer") return "cudaMemsetAsync";
    if (name == "clEnqueueCopyBuffer" || name == "clEnqueueReadBuffer" || name == "clEnqueueWriteBuffer") return "cudaMemcpyAsync";
    return name == "clFinish" ? "cudaStreamSynchronize" : name == "clWaitForEvents" ? "cudaEventSynchronize" : name;
  }

  void write_host(const ProfileRecord& r) {
    if (is_command(r.kind)) return;
    if (r.kind == RecordKind::memory) {
      event(
          R"({{"ph":"i","s":"t","cat":"cpu_instant_event","name":"[memory]","pid":{},"tid":{},"ts":{},"args":{{"Total Reserved":{},"Total Allocated":{},"Bytes":{:.0f},"Addr":{},"Device Id":{},"Device Type":1,"stream":{}}}}})",
          pid_, r.thread, at(r.begin), r.reserved, r.queued, r.bytes, r.global, r.device, r.stream);
      event(R"({{"ph":"C","name":"device {} memory","pid":{},"tid":0,"ts":{},"args":{{"allocated":{},"reserved":{}}}}})", r.device, pid_, at(r.begin), r.queued,
            r.reserved);
      return;
    }
    std::uint64_t begin = r.begin, end = r.end;
    nest(r.thread, begin, end);
    const bool call = r.kind == RecordKind::call;
    std::string args = link(r.kind == RecordKind::op || r.kind == RecordKind::range ? r.id : r.parent);
    if (call || r.kind == RecordKind::sync) args += fmt::format(R"("cbid":0,"correlation":{},)", r.id);
    if (r.kind == RecordKind::sync || r.kind == RecordKind::mark) args += fmt::format(R"("on_stream":{},)", r.stream);
    if (r.kind == RecordKind::op && r.global != 0) args += operands(profile_.log->operands(r.global).list);
    if (!r.finished) args += R"("finished":false,)";
    if (!args.empty()) args.pop_back();
    const ProfiledFacts* const facts = profile_.facts_of(r);
    if (facts) add_arguments(*facts, args);
    const bool is_op = facts && has_hta_names() && !facts->op_name.empty();
    // A wait of the host is a runtime call to readers, too.
    const std::string_view cat = is_op ? "cpu_op" : r.kind == RecordKind::sync ? "cuda_runtime" : category(r);
    const std::string_view name = is_op ? facts->op_name : call || r.kind == RecordKind::sync ? call_name(r) : trace_name(r);
    event(R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})", cat, json_text(name), pid_, r.thread, at(begin),
          micro(end - begin), args);
    if (!call || !timed_.contains(r.id)) return;
    event(R"({{"ph":"s","id":{},"cat":"ac2g","name":"ac2g","pid":{},"tid":{},"ts":{}}})", r.id, pid_, r.thread, at(begin));
    calls_.insert(r.id);
  }

  /// Cuts a slice of a thread to the one around it.
  void nest(std::uint32_t thread, std::uint64_t& begin, std::uint64_t& end) {
    std::vector<std::uint64_t>& open = open_[thread];
    while (!open.empty() && open.back() <= begin) open.pop_back();
    if (!open.empty()) end = std::min(end, open.back());
    open.push_back(end);
  }

  const Profile& profile_;
  const profiler::TraceOptions& options_;
  OutputFile out_;
  std::uint64_t pid_, base_ = 0;
  int rank_ = 0;
  std::string distributed_;
  std::map<std::string, std::string> members_;
  bool first_ = true;
  std::string text_;
  std::vector<Placed> commands_;
  std::vector<profiler::IdleGap> gaps_;
  std::unordered_set<std::uint64_t> timed_, calls_;
  std::map<std::uint32_t, std::vector<std::uint64_t>> open_;
};

}  // namespace

void write_trace(const Profile& profile, const std::string& path, const profiler::TraceOptions& options) {
  if (options.rank < 0 || options.world_size < 1 || options.rank >= options.world_size)
    throw Error(ErrorCode::invalid_argument, "profiler::Profiler::export_chrome_trace",
                fmt::format("rank must be in [0, world_size), got {} of {}", options.rank, options.world_size));
  TraceWriter(profile, path, options).write();
}

}}}  // namespace clutch::v0::detail
