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

class Recorder;
class Recording;
class Runtime;
class Program;

/// Progress of other streams as a stream knows it: for each stream id the last ticket that is ordered before its next command. Only
/// with CLUTCH_CHECK_STREAMS.
struct Clock {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> seen;
  std::uint64_t of(std::uint64_t stream) const;
  void raise(std::uint64_t stream, std::uint64_t ticket);
  void merge(const Clock& other);
};

/// A queue in one block that grows and is kept: allocations between a driver's own ones slow both down.
template <class T>
class Ring {
 public:
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T& operator[](std::size_t i) noexcept { return slots_[(first_ + i) % slots_.size()]; }
  const T& operator[](std::size_t i) const noexcept { return slots_[(first_ + i) % slots_.size()]; }
  T& front() noexcept { return (*this)[0]; }
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

/// The end of a stream's work, kept by the memory that the work uses. It outlives the stream and does not keep its queue.
class StreamEnd {
 public:
  StreamEnd(std::uint64_t stream, cl_command_queue queue) noexcept : stream_(stream), queue_(queue) {}
  std::uint64_t stream() const noexcept { return stream_; }
  /// A marker after all work so far; null if that is done, after waiting for it where the queue gives no marker.
  ClEvent mark() noexcept;
  /// Waits for all work so far.
  void finish() noexcept;
  /// True if the stream is gone and its work done.
  bool over() noexcept;
  /// Says that the stream goes, with `last` after all of its work (null: that is done) and what that had seen, on checked streams.
  void close(ClEvent last, Clock seen) noexcept;
  Clock seen();

 private:
  const std::uint64_t stream_;
  std::mutex mutex_;
  cl_command_queue queue_;  ///< null once the stream is gone
  ClEvent last_;
  Clock seen_;
};

class StreamImpl {
 public:
  StreamImpl(Runtime& runtime, ClQueue queue, StreamPriority priority, bool wrapped);
  ~StreamImpl();
  StreamImpl(const StreamImpl&) = delete;
  StreamImpl& operator=(const StreamImpl&) = delete;

  Runtime& runtime() const noexcept { return runtime_; }
  cl_command_queue queue() const noexcept { return queue_.get(); }
  std::uint64_t id() const noexcept { return id_; }
  StreamPriority priority() const noexcept { return priority_; }
  bool wrapped() const noexcept { return wrapped_; }
  const std::shared_ptr<StreamEnd>& end() const noexcept { return end_; }

  /// Throws the sticky failure, if there is one. Errors: not_supported in a forked child.
  void check(std::string_view op) const {
    check_process(op);
    if (failed_.load(std::memory_order_acquire)) [[unlikely]]
      throw_sticky(op);
  }
  /// Takes over the event of a command of `op`; `keep` lives until the command is done.
  void submitted(ClEvent event, const char* op, std::shared_ptr<void> keep = {});
  /// The same for many commands, whose events are not looked at while the device still works on them.
  struct Submitted {
    ClEvent event;
    const char* op;
  };
  void submitted(std::span<Submitted> commands);
  /// The event of the command submitted last; null if none is under way.
  ClEvent last() const;
  /// Lets a program be saved to disk when this stream is next known to be idle.
  void save_when_idle(Program* program);

  /// The Recorder of this stream's commands: a Recording, or the one that runs them now.
  std::shared_ptr<Recorder> recorder() const;
  /// The Recording of this stream's commands; null if they run now.
  std::shared_ptr<Recording> recording() const {
    if (!records_.load(std::memory_order_acquire)) [[likely]]
      return nullptr;
    std::lock_guard lock(mutex_);
    return recording_;
  }
  bool records() const noexcept { return records_.load(std::memory_order_acquire); }
  /// Errors: capturing if it does already.
  void begin_recording(std::shared_ptr<Recording> recording);
  void end_recording() noexcept;

  bool query();
  void synchronize(std::string_view op);
  void reset();
  /// A marker after all work so far; null if the queue fails.
  ClEvent mark(std::string_view op);

  std::uint64_t next_ticket() noexcept { return ticket_.fetch_add(1, std::memory_order_relaxed) + 1; }
  std::uint64_t ticket() const noexcept { return ticket_.load(std::memory_order_relaxed); }
  /// What is ordered before the stream's next command, but for its own last `running` ones.
  Clock clock(std::uint64_t running = 0) const;
  /// The same on checked streams, for Runtime::host_waited(); else an empty one.
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
  /// Retires finished commands from the front; at most `most` of them.
  void retire(std::size_t most, std::vector<std::shared_ptr<void>>& done);

  Runtime& runtime_;
  ClQueue queue_;
  std::uint64_t id_;
  StreamPriority priority_;
  bool wrapped_;
  std::shared_ptr<StreamEnd> end_;
  std::atomic<std::uint64_t> ticket_{0};
  std::atomic<bool> failed_{false};
  std::atomic<bool> records_{false};
  std::shared_ptr<Recording> recording_;
  mutable std::mutex mutex_;
  Ring<InFlight> flight_;
  std::uint64_t retired_ = 0;  // commands that left flight_ so far
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
  ClEvent event;                         ///< null where a Recording has it
  std::unique_ptr<RecordMark> recorded;  ///< what it marks then
  Clock clock;
  std::uint64_t stream = 0;
};

/// The stream a call runs on: the given one, else this thread's current stream of the runtime. Errors: device_mismatch if
/// the given one is of another runtime.
Stream resolve_stream(const Stream& stream, Runtime& runtime, std::string_view op);

}}}  // namespace clutch::v0::detail
