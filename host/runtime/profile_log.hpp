// SPDX-License-Identifier: Apache-2.0
// What a profiler records. Each hook costs one relaxed load while no profiler records.
#pragma once
#include <clutch/kernel.hpp>

#include "runtime/cl_api.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

class StreamImpl;

/// What the profiler records now, a sum of these; 0: nothing.
inline constexpr unsigned kProfileHost = 1, kProfileDevice = 2, kProfileMemory = 4, kProfileShapes = 8, kProfileGraphNodes = 16;
extern std::atomic<unsigned> g_profiled;
inline unsigned profiled() noexcept { return g_profiled.load(std::memory_order_relaxed); }

enum class RecordKind : std::uint8_t {
  op,         ///< a public function, or an Encoder of one
  range,      ///< a scope that a user named
  call,       ///< an OpenCL call that enqueues
  sync,       ///< an OpenCL call that waits
  mark,       ///< Event::record()
  host_task,  ///< a host task, on the host
  overhead,   ///< the profiler's own work
  memory,     ///< a block of memory was taken (bytes > 0) or freed
  kernel,     ///< from here on: commands of a device
  copy,
  fill,
  upload,
  read,
  opaque,  ///< commands that a library enqueued by itself, or those of a command buffer
  wait,    ///< Stream::wait()
};
inline bool is_command(RecordKind kind) noexcept { return kind >= RecordKind::kernel; }

/// One event. Host times are host_now(). Times of commands are of the device's clock until ProfileLog::finish() translates them.
struct ProfileRecord {
  RecordKind kind = RecordKind::op;
  bool finished : 1 = false;  ///< of scopes: they ended; of commands: the device told their times
  bool is_f64 : 1 = false;    ///< of commands: their flops are in f64
  std::uint16_t device = 0;
  std::uint32_t thread = 0;  ///< from 1
  const char* name = "";     ///< lives as long as the log
  const char* plan = "";     ///< of commands: text of the plan; of ops: shapes of operands, if they are recorded
  std::uint64_t id = 0;      ///< from 1; a command and its call have the same
  std::uint64_t parent = 0;  ///< id of the innermost scope around it on its thread; 0: none
  std::uint64_t stream = 0;
  std::uint64_t begin = 0, end = 0;
  std::uint64_t queued = 0;    ///< of commands: begin of the call that enqueued them, a host time; of memory: bytes allocated after it
  std::uint64_t reserved = 0;  ///< of memory: bytes reserved after it
  std::uint64_t global = 0;    ///< of kernels: work-items; of marks and waits: the cl_event; of memory: number of the block; of ops: number of their operands;
                               ///< of ranges and opaque commands: number of their facts
  std::uint32_t global_y = 1, global_z = 1, local = 0;
  std::uint16_t local_y = 1, local_z = 1;
  double flops = 0, bytes = 0;
  std::uint32_t graph = 0;  ///< of commands of a replay: the graph's id; of waits: the stream that is waited for; 0: none
  std::uint32_t node = 0;   ///< of commands of a replay
};

static_assert(sizeof(ProfileRecord) == 128);

/// An operand of an op.
struct ProfiledOperand {
  Dims sizes, strides;
  DType dtype = DType::f32;
};

/// A name with key-values that a GraphAnnotation put on a node.
struct NodeLabel {
  std::string name;
  std::vector<std::pair<std::string, std::string>> values;
};

/// What a range says of itself and of commands within it.
struct ProfiledFacts {
  std::vector<std::pair<std::string, std::string>> arguments;  ///< values are JSON
  std::string op_name, command_name;                           ///< in traces with HTA's names; empty: their own
};

/// One command, as hooks describe it. Texts must live as long as the process.
struct ProfiledInfo {
  RecordKind kind;
  const char* call;  ///< OpenCL function
  const char* name;
  const char* plan = "";
  const Geometry* geometry = nullptr;
  Cost cost = {};
  std::uint32_t graph = 0, node = 0;
};

struct ProfileLogOptions {
  unsigned what = kProfileHost | kProfileDevice;
  std::size_t max_events = std::size_t{1} << 20;
};

/// Records of one profile, the oldest dropped when there are max_events. Not thread-safe: hooks hold the one lock of the profiler.
class ProfileLog {
 public:
  explicit ProfileLog(const ProfileLogOptions& options);
  ~ProfileLog();
  ProfileLog(const ProfileLog&) = delete;
  ProfileLog& operator=(const ProfileLog&) = delete;

  /// Appends a record and returns its number, for find().
  std::uint64_t add(const ProfileRecord& record);
  /// Appends an empty record, whose number is last(), to be filled before the next one.
  ProfileRecord& append();
  std::uint64_t last() const noexcept { return written_ - 1; }
  /// The record of that number; null if it was dropped.
  ProfileRecord* find(std::uint64_t number) noexcept;
  std::uint64_t next_id() noexcept { return ++last_id_; }
  /// A copy of the text that lives as long as the log.
  const char* keep(std::string_view text);
  /// Keeps operands of an op and the text of their shapes. Returns their number, from 1; equal ones have one.
  std::uint64_t keep_operands(std::span<const ProfiledOperand> operands);
  struct Operands {
    std::vector<ProfiledOperand> list;
    const char* shapes = "";
  };
  const Operands& operands(std::uint64_t number) const { return operands_[static_cast<std::size_t>(number - 1)]; }
  /// Keeps facts of a range, of as many ranges as there are records. Returns their number, from 1.
  std::uint64_t keep_facts(ProfiledFacts facts);
  /// Null if they were dropped, or if the number is 0.
  const ProfiledFacts* facts(std::uint64_t number) const noexcept;
  bool has_facts() const noexcept { return !facts_.empty(); }
  /// Keeps events of a command until its times are read. `before`, if any, is a marker at whose end the command begins; `host_begin`: of the call.
  void add_pending(std::uint64_t stream, std::uint64_t number, ClEvent event, ClEvent before, std::uint64_t host_begin);
  std::size_t pending() const noexcept { return pending_count_; }
  /// Reads times of commands that are done, of each stream from the oldest on. `most`: 0 for all. Returns how many were read.
  std::size_t drain(std::size_t most);
  /// True if so many commands wait that drain() is worth its while; false again for a while where hardly any of them was done.
  bool wants_drain(std::size_t at) const noexcept { return pending_count_ >= std::max(at, drain_at_); }
  /// Waits for the pending commands and reads their times.
  void wait();
  /// Drops all records and events of commands; ids go on.
  void clear();
  /// Ends the log at `now` and gives up the commands that are still pending.
  void end(std::uint64_t now);
  /// Of a log that has ended: open scopes end with it, times of commands become the host's.
  void finish();

  std::uint64_t size() const noexcept { return written_ - first(); }
  std::uint64_t dropped() const noexcept { return first() - cleared_; }
  /// The i-th kept record.
  const ProfileRecord& at(std::uint64_t i) const noexcept { return slot(first() + i); }
  ProfileRecord& at(std::uint64_t i) noexcept { return slot(first() + i); }

  const ProfileLogOptions options;
  std::uint64_t start = 0;                                                    ///< host time of the first record that counts
  std::uint64_t stop = 0;                                                     ///< of end()
  std::uint64_t wall_start = 0;                                               ///< of `start`: ns since the epoch, known at end()
  std::uint64_t drain_ns = 0;                                                 ///< host time of drain()
  std::uint64_t untimed = 0;                                                  ///< commands whose times the driver did not tell
  std::uint64_t ranges_before = 0;                                            ///< number of the last range that began before
  std::string problem;                                                        ///< scopes that did not nest
  std::map<std::uint32_t, std::vector<std::vector<NodeLabel>>> graph_labels;  ///< by graph and node

 private:
  static constexpr std::size_t kChunk = 4096;
  struct RecordChunk {
    alignas(ProfileRecord) std::array<std::byte, kChunk * sizeof(ProfileRecord)> bytes;  // each record is written before it is read
  };
  struct Pending {
    std::uint64_t number = 0;
    ClEvent event, before;
    std::uint64_t host_begin = 0;
  };
  /// The host's clock less the device's is at least `offset` at host time `host`, and hardly more where nothing interrupted the call.
  struct Sample {
    std::uint64_t host = 0;
    std::int64_t offset = 0;
  };
  struct Clock {
    std::vector<Sample> samples;
    std::uint64_t spacing = 100'000'000;  ///< ns that a sample stands for
    int commands = 0;                     ///< that the last sample is of
    /// True if a command that the host enqueued at `host` should be looked at.
    bool wants(std::uint64_t host) const {
      constexpr int kMost = 64;  // more of them hardly tell more
      return samples.empty() || commands < kMost || host >= samples.back().host + spacing;
    }
    void add(const Sample& sample);
    /// Drops samples that others prove to be too low: the host was interrupted between the begin of the call and the stamp.
    void settle();
    std::uint64_t to_host(std::uint64_t device) const;
  };

  std::uint64_t first() const noexcept { return std::max(cleared_, written_ - std::min<std::uint64_t>(written_, capacity_)); }
  ProfileRecord& slot(std::uint64_t number) const noexcept {
    // Behind the place of the next record, without a division.
    const std::uint64_t back = written_ - number;
    return place(back <= next_ ? next_ - back : next_ + capacity_ - back);
  }
  ProfileRecord& place(std::uint64_t at) const noexcept {
    return std::launder(reinterpret_cast<ProfileRecord*>(chunks_[at / kChunk]->bytes.data()))[at % kChunk];
  }
  /// Where the next record is made, which counts as written.
  ProfileRecord* next_place();
  /// False if the command is not done.
  bool read(Pending& pending);

  std::uint64_t capacity_;
  std::vector<std::unique_ptr<RecordChunk>> chunks_;
  std::uint64_t written_ = 0, cleared_ = 0, last_id_ = 0;
  std::uint64_t next_ = 0;  ///< place of the next record: written_ modulo capacity_
  std::unordered_set<std::string> texts_;
  std::deque<Operands> operands_;
  std::deque<ProfiledFacts> facts_;
  std::uint64_t facts_dropped_ = 0;
  std::unordered_map<std::string, std::uint64_t> operand_numbers_;  ///< by their bytes
  std::map<std::uint64_t, std::deque<Pending>> pending_;
  std::size_t pending_count_ = 0, drain_at_ = 0;
  std::map<std::uint16_t, Clock> clocks_;
};

/// Nanoseconds of a clock that never goes back.
std::uint64_t host_now() noexcept;

/// Begins to record. `owner` is named in the Error of a second profiler.
/// Errors: invalid_argument if a profiler records already.
void begin_profile(const ProfileLogOptions& options, std::string_view op);
/// Drops what was recorded so far.
void restart_profile() noexcept;
/// Ends to record and returns the log, without the times of commands that are not done. Null if none is recorded.
std::unique_ptr<ProfileLog> end_profile() noexcept;
/// Nanoseconds that the hooks of one launch cost its thread, measured by running them on a log of their own.
double measure_profile_cost();

/// This thread's scope: an op if it is named by a literal.
void begin_op(const void* owner, const char* name) noexcept;
void end_op(const void* owner) noexcept;
/// Notes an operand of the innermost op.
void note_operand(const Tensor& tensor) noexcept;
/// Begins a range on this thread, which number identifies; 0 if nothing is recorded.
std::uint64_t begin_range(std::string_view name) noexcept;
/// Gives a range of this thread facts.
void set_range_facts(std::uint64_t number, ProfiledFacts facts) noexcept;
/// Ends it. Returns the name of the innermost range if that is another one, which then ends, too, as all within `number`; "" if this thread has no such range.
enum class RangeEnd : std::uint8_t { ended, not_innermost, not_here };
RangeEnd end_range(std::uint64_t number, std::string& innermost) noexcept;
/// Notes for the profile's end that scopes did not nest.
void note_problem(std::string_view text) noexcept;

/// Scope of a public function or an Encoder.
class ProfiledOp {
 public:
  explicit ProfiledOp(const char* name) noexcept {
    if (profiled() != 0) [[unlikely]]
      begin_op(this, name);
  }
  ~ProfiledOp() {
    if (profiled() != 0) [[unlikely]]
      end_op(this);
  }
  ProfiledOp(const ProfiledOp&) = delete;
  ProfiledOp& operator=(const ProfiledOp&) = delete;
};

/// A call that enqueues a command: made before it, told of afterwards.
class ProfiledCommand {
 public:
  ProfiledCommand() noexcept : begin_(profiled() != 0 ? host_now() : 0) {}
  explicit operator bool() const noexcept { return begin_ != 0; }
  /// The call has succeeded. `event` stays the caller's; null: the command has no times.
  void enqueued(const StreamImpl& stream, cl_event event, const ProfiledInfo& info) const noexcept {
    if (begin_ != 0) [[unlikely]]
      note(stream, event, info);
  }
  /// The same with an event that is the profile's alone: neither taken twice nor given back twice, which drivers lock for.
  void enqueued_owned(const StreamImpl& stream, ClEvent event, const ProfiledInfo& info) const noexcept;
  /// A marker before commands that have no event of their own; null while nothing is recorded.
  ClEvent marker(StreamImpl& stream) const noexcept;
  void enqueued_behind(const StreamImpl& stream, ClEvent before, cl_event event, const ProfiledInfo& info) const noexcept;

 private:
  void note(const StreamImpl& stream, cl_event event, const ProfiledInfo& info) const noexcept;
  std::uint64_t begin_;
};

/// A call that waits on the host, or another span of the host's, recorded when it goes.
class ProfiledSpan {
 public:
  ProfiledSpan(RecordKind kind, const char* name, std::uint64_t stream) noexcept
      : kind_(kind), name_(name), stream_(stream), begin_(profiled() != 0 ? host_now() : 0) {}
  ~ProfiledSpan() {
    if (begin_ != 0) [[unlikely]]
      note();
  }
  ProfiledSpan(const ProfiledSpan&) = delete;
  ProfiledSpan& operator=(const ProfiledSpan&) = delete;

 private:
  void note() const noexcept;
  RecordKind kind_;
  const char* name_;
  std::uint64_t stream_, begin_;
};

/// Notes Event::record(), so that a wait for `event` can be told from others.
void note_mark(const StreamImpl& stream, cl_event event) noexcept;
/// The same for Stream::wait(): `barrier` is the event of the barrier that waits for `event` of another stream.
void note_wait(const ProfiledCommand& command, const StreamImpl& stream, cl_event barrier, cl_event event, std::uint64_t other) noexcept;
/// Notes a block of memory: `bytes` < 0 if it is freed. `block` is unique among blocks in use.
void note_memory(int device, std::uint64_t stream, const void* block, std::int64_t bytes, std::uint64_t allocated, std::uint64_t reserved) noexcept;
/// True if the profile knows the labels of the graph's nodes; else they must follow by set_graph_labels().
bool has_graph_labels(std::uint32_t graph) noexcept;
void set_graph_labels(std::uint32_t graph, std::vector<std::vector<NodeLabel>> labels) noexcept;

/// The layer profile has it: starts the profile that CLUTCH_PROFILE asks for, once in a process.
void start_environment_profile();

}}}  // namespace clutch::v0::detail
