// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/event.hpp>
#include <clutch/kernel.hpp>

#include "program/interned.hpp"
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

/// Work without a kernel: a function of the host on mapped memory (`task`), or a library that enqueues commands itself (`opaque`).
struct HostWork {
  const char* op = "";
  Interned plan;
  HostTask task;      ///< one of the two
  OpaqueTask opaque;  ///< is empty
  std::span<const Tensor> inputs, outputs;
  Cost cost;
};

/// Of a command that copies so many bytes: it reads and writes them.
inline Cost copy_cost(std::uint64_t bytes) noexcept { return {.bytes = 2 * static_cast<double>(bytes)}; }

/// Takes the commands of a stream, in the stream's order. QueueRecorder runs them now, a Recording keeps them. Any thread may call any function.
/// Errors: those of OpenCL for arguments that do not fit; capturing for memory without an address, and once a recording is invalid or over.
class Recorder {
 public:
  virtual ~Recorder() = default;

  /// Binds the tensor's memory and offset as the launch's next two arguments.
  virtual void operand(const StreamRef& stream, Launch& launch, const Tensor& tensor, Argument::Kind access, const char* name) = 0;
  /// Binds the buffers in which the tensors lie, and the table of words.
  virtual void table(const StreamRef& stream, Launch& launch, TableState& table, std::span<const Tensor* const> tensors) = 0;
  virtual void kernel(const StreamRef& stream, Launch& launch) = 0;
  /// Tensors that are contiguous, of equal bytes.
  virtual void copy(const StreamRef& stream, const char* op, const Tensor& destination, const Tensor& source) = 0;
  /// All of the tensor's memory.
  virtual void fill(const StreamRef& stream, const char* op, const Tensor& tensor, std::uint8_t pattern) = 0;
  virtual void upload(const StreamRef& stream, const char* op, const Tensor& destination, std::shared_ptr<std::uint8_t[]> data) = 0;
  virtual void host(const StreamRef& stream, const HostWork& work) = 0;
};

/// The point that an event of a recording stream marks: the last commands of the stream and of those that it waited for.
struct RecordMark {
  std::weak_ptr<Recording> recording;
  int last = -1;                      ///< command
  std::map<std::uint64_t, int> seen;  ///< per stream the number of its commands before here
};

/// Calls that a recording may forbid on streams and memory that are not recorded.
enum class Beside : std::uint8_t {
  waiting,     ///< waits, queries, memory from the driver
  allocation,  ///< memory from the pool of a stream that does not record
};

/// A Recorder of streams whose work does not run now. They hold it.
class Recording : public Recorder, public std::enable_shared_from_this<Recording> {
 public:
  virtual Runtime& runtime() const noexcept = 0;

  /// Memory without an address yet, for a Storage that is being made; returns the number of its buffer.
  virtual int allocate(Storage* storage, std::uint64_t bytes) = 0;
  virtual void released(int buffer) noexcept = 0;

  virtual RecordMark mark(StreamImpl& stream) = 0;
  /// Orders what the stream records from now on behind the mark; a stream that does not record joins.
  virtual void wait(const StreamRef& stream, const RecordMark& mark) = 0;
  /// Orders every run of the recording behind work outside of it, of which the caller knows nothing: what the library keeps and other streams made.
  virtual void follow(const Event& made) = 0;

  /// A call that cannot be recorded: throws and invalidates the recording, or, in a dry run, notes it and returns true.
  virtual bool illegal(std::string_view call, std::string_view why) = 0;
  /// Reason why this thread must not make the call while the recording is underway; empty if it may.
  virtual std::string forbids(Beside what) const = 0;

 protected:
  /// From begin_underway() to end_underway() forbids() is asked.
  void begin_underway();
  void end_underway() noexcept;
};

/// True, after a dry run has noted it, if the call is to do nothing. Errors: capturing if the stream records.
bool illegal_on(StreamImpl& stream, std::string_view call);
/// The same for calls on anything else that wait, query or get memory from the driver, by what is recorded meanwhile.
bool illegal_beside(std::string_view call);
/// The same for allocations on a stream that does not record, by the thread that records.
void check_allocation_beside(std::string_view op);

/// Runs what the stream is given next behind the event; while it records, every run of the recording. Never waits.
void run_behind(const Stream& stream, const Event& made);

/// While it lives, the library may run and await its own work although a recording is underway: self-tests, the default generator.
class RecordingExempt {
 public:
  RecordingExempt() noexcept;
  ~RecordingExempt();
  RecordingExempt(const RecordingExempt&) = delete;
  RecordingExempt& operator=(const RecordingExempt&) = delete;
};

}}}  // namespace clutch::v0::detail
