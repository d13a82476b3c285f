// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/stream.hpp>

#include "runtime/cl_api.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

class PartitionImpl;
class Recorder;
class Recording;
class Runtime;
class Program;

/// Progress of other streams as one stream knows it: for each stream id the last ticket that is ordered before this stream's next command. Kept only with
/// CLUTCH_CHECK_STREAMS.
struct Clock {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> seen;
  std::uint64_t of(std::uint64_t stream) const;
  void raise(std::uint64_t stream, std::uint64_t ticket);
  void merge(const Clock& other);
};

/// Ring buffer that keeps its memory: allocations between those of a driver would slow both down.
template <class T>
class Ring {
 public:
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T& operator[](std::size_t i) noexcept { return slots_[(first_ + i) % slots_.size()]; }
  const T& operator[](std::size_t i) const noexcept { return slots_[(first_ + i) % slots_.size()]; }
  T& front() noexcept { return (*this)[0]; }
  T& back() noexcept { return (*this)[size_ - 1]; }
  void push_back(T value) {
    if (size_ == slots_.size()) {
      std::vector<T> bigger(std::max<std::size_t>(64, 2 * size_));
      for (std::size_t i = 0; i < size_; ++i) bigger[i] = std::move((*this)[i]);
      slots_ = std::move(bigger);
      first_ = 0;
    }
    (*this)[size_++] = std::move(value);
  }
  void pop_front() {
    front() = T{};
    first_ = (first_ + 1) % slots_.size();
    --size_;
  }
  void clear() {
    while (!empty()) pop_front();
  }

 private:
  std::vector<T> slots_;
  std::size_t first_ = 0, size_ = 0;
};

/// State of a stream's end, held by the memory that the stream's work uses. Outlives the stream and does not keep its queue alive.
class StreamEnd {
 public:
  StreamEnd(std::uint64_t stream, cl_command_queue queue) noexcept : stream_(stream), queue_(queue) {}
  std::uint64_t stream() const noexcept { return stream_; }
  /// A marker after all work so far; null if that work is done. Waits for the work if the queue gives no marker.
  ClEvent mark() noexcept;
  /// Waits for all work so far.
  void finish() noexcept;
  /// True if the stream is gone and its work is done.
  bool over() noexcept;
  /// Notes that the stream is destroyed. `last` follows all of its work (null: the work is done); `seen` is the stream's clock (empty unless checked).
  void close(ClEvent last, Clock seen) noexcept;
  Clock seen();

 private:
  const std::uint64_t stream_;
  std::mutex mutex_;
  cl_command_queue queue_;  ///< null once the stream is gone
  ClEvent last_;
  Clock seen_;
};

class StreamImpl : public std::enable_shared_from_this<StreamImpl> {
 public:
  StreamImpl(Runtime& runtime, ClQueue queue, StreamPriority priority, bool wrapped, std::shared_ptr<PartitionImpl> partition);
  ~StreamImpl();
  StreamImpl(const StreamImpl&) = delete;
  StreamImpl& operator=(const StreamImpl&) = delete;

  Runtime& runtime() const noexcept { return runtime_; }
  cl_command_queue queue() const noexcept { return queue_.get(); }
  std::uint64_t id() const noexcept { return id_; }
  StreamPriority priority() const noexcept { return priority_; }
  bool wrapped() const noexcept { return wrapped_; }
  /// The partition that the queue belongs to; null if to none.
  const std::shared_ptr<PartitionImpl>& partition() const noexcept { return partition_; }
  const std::shared_ptr<StreamEnd>& end() const noexcept { return end_; }

  /// Throws the sticky failure, if there is one. Errors: not_supported in a forked child.
  void check(std::string_view op) const {
    check_process(op);
    if (failed_.load(std::memory_order_acquire)) [[unlikely]]
      throw_sticky(op);
  }
  /// Where the driver is to store the event of the next command: `event`, or null for most commands if events cost (kQuirkEventsCost).
  cl_event* event_of_next(cl_event& event) noexcept {
    return !events_cost_ || eventless_.fetch_add(1, std::memory_order_relaxed) % kEventEach == kEventEach - 1 ? &event : nullptr;
  }
  /// Adds a command of `op` to the commands in flight. `event` may be null if event_of_next() was; a later command's event then tells of this one, too. `keep`,
  /// which needs an event, lives until the command is done.
  void submitted(ClEvent event, const char* op, std::shared_ptr<void> keep = {});
  /// The same for many commands. Asks for the status of one event alone, because asking for each would disturb the device's work.
  struct Submitted {
    ClEvent event;
    const char* op;
  };
  void submitted(std::span<Submitted> commands);
  /// Makes this the sticky failure, if there is none: of work that the queue was given from outside.
  void fail(const Error& why);
  /// The event of the last submitted command, or of a marker behind it; null if none is in flight.
  ClEvent last();
  /// Saves the program to disk when the stream is next known to be idle.
  void save_when_idle(Program* program);

  /// The Recorder of this thread's commands on the stream: the stream's Recording if it captures, else queue_recorder(); in a branch, what stands before it.
  std::shared_ptr<Recorder> recorder() const;
  /// The Recording of this stream's commands; null if the stream does not capture.
  std::shared_ptr<Recording> recording() const {
    if (!records_.load(std::memory_order_acquire)) [[likely]]
      return nullptr;
    std::lock_guard lock(mutex_);
    return recording_;
  }
  bool records() const noexcept { return records_.load(std::memory_order_acquire); }
  /// Errors: capturing if the stream already records.
  void begin_recording(std::shared_ptr<Recording> recording);
  void end_recording() noexcept;

  /// True if all enqueued commands are known to have ended.
  bool idle();
  /// Makes later commands wait for the event, which is one of the stream with the id `of`. Errors: opencl.
  void wait_for(cl_event event, const char* op, std::uint64_t of);
  bool query();
  void synchronize(std::string_view op);
  void reset();
  /// A marker after all work so far; null if the queue fails.
  ClEvent mark(std::string_view op);

  std::uint64_t next_ticket() noexcept { return ticket_.fetch_add(1, std::memory_order_relaxed) + 1; }
  std::uint64_t ticket() const noexcept { return ticket_.load(std::memory_order_relaxed); }
  /// Commands that are ordered before the stream's next one, without the stream's own last `running` commands.
  Clock clock(std::uint64_t running = 0) const;
  /// clock() if CLUTCH_CHECK_STREAMS is on, for Runtime::host_waited(); else empty.
  Clock checked_clock(std::uint64_t running = 0) const;
  void learn(const Clock& other);

 private:
  struct InFlight {
    ClEvent event;
    const char* op = "";
    std::shared_ptr<void> keep;
  };
  [[noreturn]] void throw_sticky(std::string_view op) const;
  void fail(cl_int status, const char* op);
  /// Retires finished commands from the front, by at most `most` events.
  void retire(std::size_t most, std::vector<std::shared_ptr<void>>& done);
  void pop_front(std::vector<std::shared_ptr<void>>& done);
  /// Gives the last command in flight an event if it has none.
  void mark_last() noexcept;

  Runtime& runtime_;
  const std::shared_ptr<PartitionImpl> partition_;  ///< above queue_, whose device it has
  ClQueue queue_;
  std::uint64_t id_;
  StreamPriority priority_;
  bool wrapped_;
  std::shared_ptr<StreamEnd> end_;
  const bool events_cost_;
  static constexpr std::uint32_t kEventEach = 16;
  std::atomic<std::uint32_t> eventless_{0};  // number of commands that asked for an event, if events cost
  std::atomic<std::uint64_t> ticket_{0};
  std::atomic<bool> failed_{false};
  std::atomic<bool> records_{false};
  std::shared_ptr<Recording> recording_;
  mutable std::mutex mutex_;
  Ring<InFlight> flight_;
  std::uint64_t retired_ = 0;  // number of commands that have left flight_
  std::vector<Program*> to_save_;
  std::optional<Error> sticky_;
  Clock clock_;
};

struct RecordMark;

class EventImpl {
 public:
  EventImpl(Runtime& of, ClEvent raw);
  ~EventImpl();
  Runtime& runtime;
  ClEvent event;                         ///< null if a Recording recorded the event
  std::unique_ptr<RecordMark> recorded;  ///< the recorded point in that case
  Clock clock;
  std::uint64_t stream = 0;
};

/// To be held from before a stream's next command is enqueued until it is: PartitionImpl::turn_of().
std::unique_lock<std::mutex> turn_of(StreamImpl& stream);

/// The stream that a call runs on: the given one, else this thread's current stream of the runtime.
/// Errors: device_mismatch if the given stream belongs to another runtime.
Stream resolve_stream(const Stream& stream, Runtime& runtime, std::string_view op);

}}}  // namespace clutch::v0::detail
