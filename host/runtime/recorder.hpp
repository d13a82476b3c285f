// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/event.hpp>
#include <clutch/kernel.hpp>

#include "program/interned.hpp"
#include "runtime/branch.hpp"
#include "runtime/launch.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

class Recording;
class Runtime;
class Storage;
class StreamImpl;
struct TableState;

using HostTask = std::function<void(std::span<void* const>)>;
using OpaqueTask = std::function<void(void*, std::span<const Encoder::Place>)>;
using StreamRef = std::shared_ptr<StreamImpl>;

/// Work without a kernel: a host function on mapped memory (`task`), or a library that enqueues commands itself (`opaque`).
struct HostWork {
  const char* op = "";
  Interned plan;
  HostTask task;      ///< empty if `opaque` is set
  OpaqueTask opaque;  ///< empty if `task` is set
  std::span<const Tensor> inputs, outputs;
  Cost cost;
  bool knows_memory = false;  ///< `opaque` takes no places: the memory that it uses cannot be exchanged
};

/// Cost of a command that copies so many bytes: it reads and writes them.
inline Cost copy_cost(std::uint64_t bytes) noexcept { return {.bytes = 2 * static_cast<double>(bytes)}; }

/// Takes the commands of a stream, in the stream's order: QueueRecorder enqueues each at once, a Recording keeps them. Thread-safe.
/// Errors: OpenCL's for arguments that do not fit; capturing for memory without an address, and for commands to a recording that is invalid or has ended.
class Recorder {
 public:
  virtual ~Recorder() = default;

  /// Binds the tensor's memory and offset as the launch's next two arguments.
  virtual void operand(const StreamRef& stream, Launch& launch, const Tensor& tensor, Argument::Kind access, const char* name) = 0;
  /// Binds the buffers that hold the tensors, then the table's words.
  virtual void table(const StreamRef& stream, Launch& launch, TableState& table, std::span<const Tensor* const> tensors) = 0;
  virtual void kernel(const StreamRef& stream, Launch& launch) = 0;
  /// Copies `source`; both tensors are contiguous and have equal bytes.
  virtual void copy(const StreamRef& stream, const char* op, const Tensor& destination, const Tensor& source) = 0;
  /// Fills all bytes of the tensor's memory.
  virtual void fill(const StreamRef& stream, const char* op, const Tensor& tensor, std::uint8_t pattern) = 0;
  virtual void upload(const StreamRef& stream, const char* op, const Tensor& destination, std::shared_ptr<std::uint8_t[]> data) = 0;
  virtual void host(const StreamRef& stream, const HostWork& work) = 0;
  /// True if a launch should say what it computes.
  virtual bool asks_for_meaning() const noexcept { return false; }
};

/// Point in a recording that an event marks: the last commands of the stream and of the streams that it waited for.
struct RecordMark {
  std::weak_ptr<Recording> recording;
  int last = -1;                      ///< index of the command
  std::map<std::uint64_t, int> seen;  ///< for each stream id the number of its commands before this point
};

/// Goes on where a recording's host reads: see compile(). Called on the recording's thread.
class HostReads {
 public:
  virtual ~HostReads() = default;
  enum class Answer : std::uint8_t {
    refuse,    ///< the call is illegal, as in other recordings
    run,       ///< the recording has ended and its work was enqueued: the call may run
    supplied,  ///< `destination` has the value, and the recording goes on
  };
  /// A call is about to read the tensor (null: to wait for the stream).
  virtual Answer begin(std::string_view call, const Tensor* tensor, void* destination) = 0;
  /// The call has run; a recording begins.
  virtual void end(const Tensor* tensor, const void* data) = 0;
  /// The call has thrown.
  virtual void failed(std::string_view call) noexcept = 0;
};

/// Calls that a recording may forbid on streams and memory that are not recorded.
enum class Beside : std::uint8_t {
  waiting,     ///< waits, queries, and memory from the driver
  allocation,  ///< memory from the pool of a stream that is not recorded
};

/// A Recorder that keeps commands instead of running them. Its streams own it.
class Recording : public Recorder, public std::enable_shared_from_this<Recording> {
 public:
  virtual Runtime& runtime() const noexcept = 0;

  /// Reserves memory without an address for a Storage under construction. Returns the index of the memory in the recording.
  virtual int allocate(Storage* storage, std::uint64_t bytes) = 0;
  virtual void released(int buffer) noexcept = 0;

  virtual RecordMark mark(StreamImpl& stream) = 0;
  /// Orders the stream's later commands after the mark. A stream that is not recorded yet joins the recording.
  virtual void wait(const StreamRef& stream, const RecordMark& mark) = 0;
  /// Orders every run of the recording after `made`, an event of work outside of the recording, such as data that the library keeps and another stream wrote.
  virtual void follow(const Event& made) = 0;

  /// Handles a call that cannot be recorded: throws and invalidates the recording, or, in a dry run, notes the call and returns true.
  virtual bool illegal(std::string_view call, std::string_view why) = 0;
  /// Reason why this thread must not make the call while the recording is underway; empty if it may.
  virtual std::string forbids(Beside what) const = 0;

  /// Who goes on where the host reads; null: nobody. Set before the recording's thread enqueues anything.
  HostReads* reads() const noexcept { return reads_; }
  void set_reads(HostReads* reads) noexcept { reads_ = reads; }

 protected:
  /// Between begin_underway() and end_underway() calls on other streams ask forbids().
  void begin_underway();
  void end_underway() noexcept;

 private:
  HostReads* reads_ = nullptr;
};

/// A call that reads a tensor, or waits for the stream, while it runs: where the stream records, HostReads may let it.
class HostRead {
 public:
  HostRead(StreamImpl& stream, std::string_view call, const Tensor* tensor = nullptr, void* destination = nullptr);
  /// Tells HostReads of a failure, unless done() was called.
  ~HostRead();
  HostRead(const HostRead&) = delete;
  HostRead& operator=(const HostRead&) = delete;
  /// True if there is nothing left to do.
  bool supplied() const noexcept { return supplied_; }
  /// The call has succeeded.
  void done();

 private:
  std::string_view call_;
  const Tensor* tensor_;
  const void* destination_;
  HostReads* reads_ = nullptr;
  bool supplied_ = false;
};

/// True if a dry run has noted the call, which must then do nothing. Errors: capturing if the stream records; not_supported in a branch.
bool illegal_on(StreamImpl& stream, std::string_view call);
/// The same for calls that are not on a recorded stream but wait, query or get memory from the driver, while any recording is underway.
bool illegal_beside(std::string_view call);
/// The same for allocations of the recording thread on a stream that is not recorded.
void check_allocation_beside(std::string_view op);

/// True while any recording is underway.
bool recording_underway() noexcept;

/// Orders the stream's later commands after `made`; if the stream records, every run of the recording. Never waits on the host.
void run_behind(const Stream& stream, const Event& made);

/// While an exemption lives, this thread may run and await the library's own work (self-tests, the default generator) although a recording is underway, and
/// in branches.
class RecordingExempt {
 public:
  RecordingExempt() noexcept;
  ~RecordingExempt();
  RecordingExempt(const RecordingExempt&) = delete;
  RecordingExempt& operator=(const RecordingExempt&) = delete;

 private:
  OutsideBranches outside_;
};

}}}  // namespace clutch::v0::detail
