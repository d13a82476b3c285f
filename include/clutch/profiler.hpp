// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/device.hpp>
#include <clutch/graph.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

// Times of ops, OpenCL calls and kernels:
//   clutch::profiler::Profiler profiler;
//   profiler.start();
//   { clutch::profiler::Range step("step"); train(); }
//   profiler.stop();
//   std::cout << profiler.table();
//   profiler.export_chrome_trace("trace.json.gz");
// Any program without a change: CLUTCH_PROFILE=trace.json ./program

namespace clutch { inline namespace v0 { namespace profiler {

/// A profiler's work in a step. Source: torch.profiler.ProfilerAction.
enum class ProfilerAction : std::uint8_t {
  none,             ///< records nothing
  warmup,           ///< records, but drops what it recorded when the next action begins
  record,           ///< records
  record_and_save,  ///< records, and ends the trace at the end of the step
};
/// Returns "none", "warmup", "record" or "record_and_save".
CLUTCH_API std::string_view name(ProfilerAction action) noexcept;

/// Which steps are recorded: `wait` steps of nothing, `warmup` of warm-up and `active` recorded ones make a cycle.
/// Source: torch.profiler.schedule (PyTorch 2.12), equal for all arguments.
struct Schedule {
  int wait = 0;
  int warmup = 0;
  int active = 1;
  int repeat = 0;           ///< number of cycles; 0: as long as there are steps
  int skip_first = 0;       ///< steps before the first cycle
  int skip_first_wait = 0;  ///< not 0: the first cycle has no wait
  /// Action of a step, which counts from 0.
  /// Errors: invalid_argument if `active` is below 1, or the step or another number is negative.
  CLUTCH_API ProfilerAction operator()(std::int64_t step) const;
};

/// Arguments of a range's event in traces, and of the commands that its thread enqueues within it. A command that a
/// library enqueues by itself (Encoder::opaque()) has also those that a range gets while it does.
struct RangeFacts {
  using Value = std::variant<std::int64_t, double, std::string>;
  std::vector<std::pair<std::string, Value>> arguments = {};
  // Names with TraceNames::hta; empty: their own.
  std::string op_name = {};       ///< of the range, which is a cpu_op then
  std::string command_name = {};  ///< of kernels and opaque commands
};

/// True while a profiler records ranges: else nobody asks for their facts. One relaxed load.
CLUTCH_API bool recording() noexcept;

/// Puts a member into the head of all traces that this process writes from now on, in the place of one of that key.
/// "distributedInfo" takes the place of the one of TraceOptions, unless those say more than one rank. clutch_dist puts
/// its own there. Errors: invalid_argument if the value is not JSON.
CLUTCH_API void set_trace_member(const std::string& key, const std::string& json);

/// Names what its thread does while it lives: as a user_annotation of a profile, over the kernels of its launches too,
/// and as a GraphAnnotation of the nodes that the thread records. Costs one relaxed load while neither goes on.
/// Nesting: ranges of a thread end in the reverse order of their begin, on that thread. A destructor never throws:
///   where that does not hold, the outer range ends those within it, and Profiler::stop() throws.
/// Source: torch.profiler.record_function.
class CLUTCH_API Range {
 public:
  explicit Range(std::string_view name);
  Range(std::string_view name, const RangeFacts& facts);
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
  /// Facts in the place of those before. On the range's thread, while it is open; else it does nothing.
  void set_facts(const RangeFacts& facts) noexcept;
  /// Ends the range before its destructor does. The second call does nothing.
  /// Errors: invalid_argument if it is not the innermost range of this thread; it ends all the same.
  void end();

 private:
  std::string close() noexcept;
  std::string name_;
  std::uint64_t number_ = 0;
  std::unique_ptr<GraphAnnotation> annotation_;
};

/// Measured limits of a device.
struct DeviceRoof {
  double flops = 0;    ///< f32, per second; 0: not known
  double bytes = 0;    ///< of memory, per second; 0: not known
  double flops64 = 0;  ///< f64, per second; 0: not known, and f64 is held against `flops`
  /// Bytes per second of working sets, by their bytes, ascending: those of caches. Beyond the last one `bytes` holds.
  std::vector<std::pair<double, double>> by_size = {};
  /// Matrix instructions, FLOP per second by what they multiply: "f16", "bf16", "tf32", "i8", "f8", of 2:4 matrices by
  /// the numbers that they keep "2:4 f16", "2:4 bf16", "2:4 i8". A name that is missing: not known.
  std::vector<std::pair<std::string, double>> matrix = {};
};
/// The limits that clutch-bench measured for this device and driver and keeps in the cache folder; zeros if it has not
/// run. Never measures.
CLUTCH_API DeviceRoof kept_roof(const Device& device = {});

/// A command against its device's roof: the longer of the times that its flops and its bytes take at the limits.
struct RoofPoint {
  double gflops = 0;              ///< reached, 10^9 FLOP/s
  double gbps = 0;                ///< reached, 10^9 bytes per second
  double roof_us = 0;             ///< time that the binding limit allows; 0: not known
  double roof_pct = 0;            ///< of the binding limit
  std::string_view binding = {};  ///< "compute", "memory"; empty: not known
  /// Numbers that its matrix instructions multiply, of which DeviceRoof::matrix has the limit of compute: "f16"; empty:
  /// it has none. Where that limit is not known, neither is the binding one.
  std::string_view matrix = {};
};

/// Facts of a kernel, a copy or a wait.
/// Differences on purpose: OpenCL tells neither registers, occupancy nor blocks per unit.
struct EventMetadata {
  std::array<std::uint64_t, 3> grid{};   ///< work-groups; work-items where the driver chose the local size
  std::array<std::uint64_t, 3> block{};  ///< work-items of a group; 0: the driver chose
  std::uint64_t stream = 0;
  double queued_us = 0;                                     ///< from the enqueue to the begin
  std::uint64_t graph_id = 0;                               ///< of a replayed graph; 0: none
  std::uint64_t graph_node_id = 0;                          ///< graph_id << 32 | node; 0: none
  std::uint64_t bytes = 0;                                  ///< of copies and fills
  std::string plan;                                         ///< text of the plan that chose the kernel
  std::vector<std::pair<std::string, std::string>> labels;  ///< key-values of the node's annotations, inner ones win
  std::uint64_t wait_on_stream = 0;                         ///< of Stream::wait(): the stream whose event it waits for
};

/// One event. Fields have the names of PyTorch 2.12's FunctionEvent, of which those of autograd and Python are left
/// out; times are of one clock, from the profile's start.
struct FunctionEvent {
  std::uint64_t id = 0;                     ///< correlation id: a kernel and the call that enqueued it have one
  std::uint64_t external_id = 0;            ///< id of the op or range that a kernel or call belongs to; 0: none
  std::uint64_t linked_correlation_id = 0;  ///< of kernels: external_id; 0 of all else
  std::string name;                         ///< of steps "ProfilerStep*"
  std::string trace_name;                   ///< as in traces: "ProfilerStep#2"
  std::string
      activity_type;  ///< "cpu_op", "user_annotation", "gpu_user_annotation", "kernel", "gpu_memcpy", "gpu_memset",
                      ///< "cuda_runtime" (an OpenCL call), "cuda_sync", "cpu_instant_event", "overhead"
  std::uint64_t start_ns = 0, end_ns = 0;
  std::uint64_t thread = 0;  ///< threads count from 1; 0 of a device's events
  bool on_device = false;    ///< device_type
  int device_index = 0;
  std::uint64_t device_resource_id = 0;  ///< of a device's events the stream, else the thread
  std::uint32_t flow_id = 0;             ///< joins a call with its kernel; 0: none
  std::uint32_t flow_type = 0;           ///< 2: from the host to the device
  bool flow_start = false;
  std::string input_shapes;  ///< of ops, with record_shapes: "(256, 64), (64)"
  /// The same as numbers, and what else is known of each operand that the op's kernels take, in the kernels' order, up
  /// to 64 of them: outputs and scratch are among them.
  std::vector<Dims> structured_input_shapes, structured_input_strides;
  std::vector<DType> input_dtypes;
  double flops = 0, bytes = 0;           ///< that the op's plan states
  std::int64_t device_memory_usage = 0;  ///< bytes taken less bytes freed within the scope, with profile_memory
  bool is_user_annotation = false;
  bool finished = true;  ///< false: a scope that was open, or a command that was not done, when the profiler stopped
  std::int64_t cpu_parent = -1;            ///< index of the scope around it in the list; -1: none
  std::vector<std::int64_t> cpu_children;  ///< indices
  std::vector<std::int64_t> kernels;       ///< indices of the commands that the scope itself enqueued
  EventMetadata event_metadata;
  std::vector<std::pair<std::string, std::string>> facts;  ///< RangeFacts::arguments of ranges and commands, as JSON
  RoofPoint roof;
  double time_us() const noexcept { return static_cast<double>(end_ns - start_ns) * 1e-3; }
};

/// Sums of events of one name. Times in microseconds. Source: torch's key_averages().
struct KeyAverage {
  std::string key;
  bool on_device = false;
  bool is_user_annotation = false;
  std::string input_shapes;  ///< with group_by_input_shape
  std::int64_t count = 0;
  double cpu_time_total = 0, self_cpu_time_total = 0;  ///< self: without scopes and calls within it, never negative
  double device_time_total = 0, self_device_time_total = 0;  ///< of the commands within it; self: of its own ones
  std::int64_t device_memory_usage = 0;
  double flops = 0, bytes = 0;
  RoofPoint roof;  ///< of kernels and copies, over all of them
};

/// A time in which a stream ran nothing between two of its commands.
struct IdleGap {
  /// Why, by what fills most of the gap.
  enum class Cause : std::uint8_t {
    host_bound,   ///< the host was busy and had not enqueued the next command yet
    queue_empty,  ///< the host waited, or was outside of clutch
    event,        ///< the next command waited for another stream's event
    launch,       ///< the next command was enqueued in time: the driver and the device took so long to begin it
  };
  Cause cause = Cause::launch;
  std::uint64_t start_ns = 0, end_ns = 0;
  int device_index = 0;
  std::uint64_t stream = 0;
  std::string before, after;      ///< names of the commands around it
  std::string waits_for;          ///< the op or call that the host was in, or the command that the event marks
  std::uint64_t wait_stream = 0;  ///< of Cause::event: the stream of the event
};
/// Returns "host_bound", "queue_empty", "event" or "launch".
CLUTCH_API std::string_view name(IdleGap::Cause cause) noexcept;

/// How much was recorded, and what it cost.
struct ProfileTotals {
  std::uint64_t events = 0;    ///< kept
  std::uint64_t dropped = 0;   ///< the oldest, beyond max_events
  std::uint64_t untimed = 0;   ///< commands whose times the driver did not tell
  double wall_us = 0;          ///< from start to stop
  double overhead_us = 0;      ///< of the host: commands times the measured cost of one, and reading times
  double command_cost_us = 0;  ///< what the hooks of one launch cost its thread, measured by running them at start()
};

/// Names of events in traces.
enum class TraceNames : std::uint8_t {
  opencl,  ///< the OpenCL calls' own
  hta,     ///< those that HolisticTraceAnalysis looks for: cudaLaunchKernel, cudaMemcpyAsync, cudaMemsetAsync
};

struct TraceOptions {
  TraceNames names = TraceNames::opencl;
  int rank = 0;  ///< of a job of several processes; with a world_size of 1 what set_trace_member() has
  int world_size = 1;
};

struct KeyAverageOptions {
  bool group_by_input_shape = false;
};

struct TableOptions {
  /// "cpu_time_total", "device_time_total", "self_cpu_time_total", "self_device_time_total", "device_memory_usage",
  /// "count"; empty: device_time_total, then cpu_time_total
  std::string sort_by = {};
  int row_limit = 100;
  bool group_by_input_shape = false;
};

class Profiler;

struct ProfilerOptions {
  bool cpu_activity = true;     ///< ops, ranges and OpenCL calls
  bool device_activity = true;  ///< kernels and copies, by their events
  bool profile_memory = false;  ///< blocks of memory that are taken and freed
  bool record_shapes = false;   ///< shapes of the operands of ops
  bool graph_nodes =
      true;  ///< replays of graphs go by the queue, which tells each node's times; else as without profiler
  std::int64_t max_events = 1 << 20;  ///< kept, rounded up to 4096, of 128 bytes each; beyond them the oldest go
  std::function<ProfilerAction(std::int64_t step)> schedule = {};  ///< empty: every step is recorded
  std::function<void(Profiler&)> on_trace_ready = {};              ///< called when a trace has ended
  DeviceRoof roof = {};                                            ///< of all devices; zeros: kept_roof() of each
};

/// Records what the process does between start() and stop(): ops and ranges of all threads, OpenCL calls, kernels and
/// copies with the device's own times, memory.
/// Times: a device's are translated to the host's clock by the moments at which its commands were enqueued.
/// Memory: at most max_events events; a command's OpenCL event is kept until its times are read, which launches and
///   waits do on the side.
/// Threads: any may work while a profiler records; one calls the profiler.
/// Processes: one profiler may record at a time. A child of fork() records nothing.
/// Source: torch.profiler.profile (PyTorch 2.12).
/// Differences on purpose: nothing waits for the device but stop() and step() at the end of a trace; what was open at
///   the end says so (`finished`).
class CLUTCH_API Profiler {
 public:
  /// Errors: invalid_argument if max_events is below 1 or over 2^30, or neither cpu_activity, device_activity nor
  ///   profile_memory is on.
  explicit Profiler(const ProfilerOptions& options = {});
  /// As stop(), but without Errors and on_trace_ready.
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  /// Begins step 0.
  /// Errors: invalid_argument if this or another profiler of the process records.
  void start();
  /// Ends the last step and, if it was recorded, the trace. Waits for the recorded commands.
  /// Errors: invalid_argument if start() did not come before, or for ranges that did not nest: the trace is ended and
  ///   can be read then; capturing while a capture forbids to wait; what on_trace_ready throws.
  void stop();
  /// Ends a step and begins the next one. Waits, and throws, as stop() where a trace ends.
  void step();
  std::int64_t step_num() const noexcept;
  ProfilerAction current_action() const noexcept;
  /// A text for the trace's head.
  void add_metadata(const std::string& key, const std::string& value);
  /// The same with a value of JSON. Errors: invalid_argument if it is none.
  void add_metadata_json(const std::string& key, const std::string& json);

  // The functions below read the last trace that ended; before the first one there is nothing in it.
  /// Events by start time.
  std::vector<FunctionEvent> events() const;
  std::vector<KeyAverage> key_averages(const KeyAverageOptions& options = {}) const;
  /// key_averages() as text. Errors: invalid_argument for another sort_by, or a row_limit below 1.
  std::string table(const TableOptions& options = {}) const;
  /// Gaps of at least `least_us` microseconds, by start time.
  std::vector<IdleGap> idle_gaps(double least_us = 5) const;
  ProfileTotals totals() const;

  /// Writes the trace for Perfetto and chrome://tracing; compressed if the path ends in ".gz". Slices of one row nest.
  /// Idle gaps of 5 us and more have a row next to their stream's, with their causes; not with TraceNames::hta.
  /// Files: of this and the exports below a whole one appears at the path, or none.
  /// Errors: io if the file cannot be written, naming the system's reason, or the path is no regular file.
  void export_chrome_trace(const std::string& path, const TraceOptions& options = {}) const;
  /// Writes one page that needs nothing else: timeline, kernels by time, roofline.
  void export_html(const std::string& path) const;
  /// Writes the annotations of replayed graphs as the pickle that `python -m torch.cuda._annotate_cuda_graph_trace`
  /// merges into a trace. Traces of clutch have them already.
  void export_kernel_annotations(const std::string& path) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Times of the commands of one name.
struct KernelTimes {
  std::int64_t count = 0;
  double median_us = 0;
  double total_us = 0;
  double noise_pct = 0;  ///< 1.4826 * median absolute deviation / median
};

/// Commands of one name in two profiles.
struct KernelDifference {
  std::string key;
  KernelTimes before, after;
  double change_pct = 0;     ///< of the median
  bool significant = false;  ///< by 1 % and three standard errors of the medians, with 5 commands or more in both
};

/// Kernels and copies of two profiles by name, those whose total time changed most first. Noise is that within each
/// profile: what differs between two runs of one program besides, such as a clock rate, is not in it.
CLUTCH_API std::vector<KernelDifference> compare_events(std::span<const FunctionEvent> before,
                                                        std::span<const FunctionEvent> after);
/// The same of two traces that export_chrome_trace() wrote, plain or gzip's; what a file holds tells, not its name.
/// Errors: io for a file that cannot be read or is neither, naming what is wrong with it.
CLUTCH_API std::vector<KernelDifference> compare_traces(const std::string& before, const std::string& after);
/// A table.
CLUTCH_API std::string to_string(std::span<const KernelDifference> rows);

}}}  // namespace clutch::v0::profiler
